#include "tools/study/tune/tune_render.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/ingest/servers/vllm_serve_flags.h"
#include "tools/render/render.h"
#include "tools/results/json_writer.h"
#include "tools/results/report.h"
#include "tools/results/text_table.h"
#include "tools/results/version.h"

namespace routesim::tools {

namespace {

const TuneCandidate& best_of(const TuneReport& report) {
  return report.search.candidates[report.search.best];
}

/// `best`, or the number of the judged candidate when the best one is the published one.
std::string judged_name(const TuneReport& report) {
  return deploys_best(report) ? "best" : fmt::format("#{}", report.search.best);
}

std::string value_text(const Assignment& a) {
  return a.value->is_scalar() ? a.value->text() : flow_text(*a.value);
}

/// The word after `--set`. A file that the tune file names is named from the working folder.
std::string set_text(const Assignment& a) {
  if (!a.value->is_scalar()) return a.path + "=" + value_text(a);
  const std::string path = resolve_path(a.value->text(), a.where);
  return a.path + "=" + (std::filesystem::is_regular_file(path) ? path : a.value->text());
}

bool is_in_document(const Assignment& a) {
  return a.steps.size() > 2 && a.steps[0].key == "routing" && a.steps[1].key == "endpoint_picker";
}

/// The assignments of the configuration to deploy.
std::vector<Assignment> deployed(const TuneReport& report) {
  return deploys_best(report) ? report.space.assignments(best_of(report).choice)
                              : std::vector<Assignment>{};
}

/// `--max-num-seqs 256` for `cluster.pools[vllm].engine.max_num_seqs=256`; a comment for a key that
/// is no flag.
std::string flag_text(const Assignment& a) {
  if (a.steps[3].key == "replicas") return "# " + value_text(a) + " replicas";
  std::string key;
  for (std::size_t i = 3; i < a.steps.size(); ++i) key += (i > 3 ? "." : "") + a.steps[i].key;
  for (const FlagRule& rule : all_flags()) {
    if (rule.key != key) continue;
    const std::string name = std::string(rule.name);
    if (rule.use == FlagUse::kCopied || rule.use == FlagUse::kCount)
      return "--" + name + " " + value_text(a);
    if (rule.use == FlagUse::kSwitch) return (value_text(a) == "true" ? "--" : "--no-") + name;
  }
  return "# no flag: " + a.path + "=" + value_text(a);
}

std::string gain_text(const Gain& gain) {
  return percent_text(gain.percent, gain.low, gain.high, "");
}

/// Whether the table shows the metric: those that decide everywhere, the usual ones only under the
/// load as given, and none that is 0 on both sides.
bool is_shown(const TuneReport& report, const JudgedMetric& metric, bool as_given) {
  const Difference& d = metric.difference;
  if (d.base.mean == 0 && d.changed.mean == 0) return false;
  return as_given || decides(report.space, report.search, metric.metric);
}

/// The worth of a knob's change: the loss when it is taken back.
Gain worth_of(const KnobWorth& worth, const TuneSpace& space, std::size_t goal) {
  const Gain back = gain_of(worth.by_goal[goal], space.goals[goal].metric);
  return {.percent = -back.percent, .low = -back.high, .high = -back.low};
}

const KnobWorth* find_worth(const TuneJudgement& judgement, std::size_t knob) {
  const auto at = std::ranges::find(judgement.worth, knob, &KnobWorth::knob);
  return at == judgement.worth.end() ? nullptr : &*at;
}

/// Sentences about numbers that the judgement lacks.
std::vector<std::string> notes_of(const TuneReport& report) {
  std::vector<std::string> notes;
  for (const JudgedLoad& load : report.judgement.loads) {
    if (!load.why_not.empty()) notes.push_back(load.load + ": " + load.why_not + ".");
    for (const auto& [name, lacks] : {std::pair(std::string("your file"), load.published_lacks),
                                      std::pair(judged_name(report), load.best_lacks)})
      if (!lacks.empty())
        notes.push_back(fmt::format("{}: {} has no {} in some run.", load.load, name, lacks));
  }
  if (!report.judgement.no_omniscient.empty())
    notes.push_back("There is no omniscient ceiling: " + report.judgement.no_omniscient + ".");
  return notes;
}

std::string judged_table(const TuneReport& report) {
  const bool has_candidate = report.search.best != 0;
  TextTable table(2);
  // Without a candidate its columns are empty.
  const auto add_row = [&](std::vector<std::string> row) {
    if (!has_candidate) {
      row.erase(row.begin() + 3, row.begin() + 5);
      row.pop_back();
    }
    table.add_row(row);
  };
  add_row({"load", "metric", "published", judged_name(report), "gain, %", "omniscient",
           "gap closed, %"});
  for (const JudgedLoad& load : report.judgement.loads) {
    bool first = true;
    for (const JudgedMetric& metric : load.metrics) {
      if (!is_shown(report, metric, &load == &report.judgement.loads.front())) continue;
      add_row(
          {first ? load.load : "", metric.metric.text, estimate_text(metric.difference.base),
           estimate_text(metric.difference.changed),
           gain_text(gain_of(metric.difference, metric.metric)),
           metric.omniscient ? estimate_text(*metric.omniscient) : "-",
           metric.gap_closed ? fixed_text(std::round(100 * *metric.gap_closed) + 0.0, 0) : "-"});
      first = false;
    }
  }
  std::string text = table.str();
  for (const std::string& note : notes_of(report)) text += note + "\n";
  return text;
}

std::string knobs_table(const TuneReport& report) {
  TextTable table(1);
  const bool has_candidate = report.search.best != 0;
  std::vector<std::string> head = {"knob", "published"};
  if (has_candidate) {
    head.push_back(judged_name(report));
    for (const TuneGoal& goal : report.space.goals)
      head.push_back("worth, % of " + goal.metric.text);
  }
  head.push_back("tried");
  table.add_row(head);
  for (std::size_t k = 0; k < report.space.knobs.size(); ++k) {
    const Knob& knob = report.space.knobs[k];
    const std::string& published = knob.values[knob.published].text;
    const std::string& best = knob.values[best_of(report).choice[k]].text;
    std::vector<std::string> row = {knob.name, published};
    if (has_candidate) {
      row.push_back(best == published ? "=" : best);
      const KnobWorth* const worth = find_worth(report.judgement, k);
      for (std::size_t g = 0; g < report.space.goals.size(); ++g)
        row.push_back(worth == nullptr ? "" : gain_text(worth_of(*worth, report.space, g)));
    }
    row.push_back(knob.ordered ? knob.values.front().text + " to " + knob.values.back().text
                               : fmt::format("{} values", knob.values.size()));
    table.add_row(row);
  }
  return table.str();
}

std::string race_table(const TuneReport& report) {
  TextTable table(0);
  table.add_row({"round", "iteration", "seeds", "candidates", "left"});
  for (std::size_t r = 0; r < report.search.rounds.size(); ++r) {
    const TuneRound& round = report.search.rounds[r];
    table.add_row({std::to_string(r + 1), std::to_string(round.iteration),
                   std::to_string(round.seeds), std::to_string(round.candidates),
                   std::to_string(round.left)});
  }
  return table.str();
}

std::string front_table(const TuneReport& report) {
  TextTable table(1);
  std::vector<std::string> head = {"front"};
  for (const TuneGoal& goal : report.space.goals) head.push_back(goal.metric.text);
  head.push_back("changes");
  table.add_row(head);
  for (const FrontMember& member : report.judgement.front) {
    const Choice& choice = report.search.candidates[member.candidate].choice;
    std::vector<std::string> row = {fmt::format("#{}", member.candidate)};
    for (const sim::Estimate& e : member.goals) row.push_back(estimate_text(e));
    std::string changes;
    for (const std::size_t k : report.space.changed(choice))
      changes += (changes.empty() ? "" : ", ") + report.space.knobs[k].name + " " +
                 report.space.knobs[k].values[choice[k]].text;
    row.push_back(changes.empty() ? "none: as published" : changes);
    table.add_row(row);
  }
  return table.str();
}

/// Whether a metric is 0 in some run of the search, and not in all.
bool is_zero_in_some_run(const TuneReport& report, std::size_t m) {
  std::size_t runs = 0;
  std::size_t zeros = 0;
  for (const TuneCandidate& candidate : report.search.candidates) {
    if (candidate.values.empty()) continue;
    runs += candidate.seeds();
    zeros += static_cast<std::size_t>(std::ranges::count(candidate.values[m], 0.0));
  }
  return zeros > 0 && zeros < runs;
}

std::string how_text(const TuneReport& report) {
  const TuneConfig& config = report.space.config;
  std::string conditions;
  for (const Condition& c : report.search.conditions)
    conditions += (conditions.empty() ? "" : ", ") + c.text;
  std::string with_zeros;
  for (std::size_t m = 0; m < report.space.metrics.size(); ++m)
    if (const MetricName& metric = report.space.metrics[m];
        decides(report.space, report.search, metric) && is_ratio_metric(metric) &&
        is_zero_in_some_run(report, m))
      with_zeros += (with_zeros.empty() ? "" : ", ") + metric.text;
  if (!with_zeros.empty())
    with_zeros = "Where " + with_zeros + " is 0 in a run, differences are compared, not ratios. ";
  return fmt::format(
      "{} and your file in {} of {} runs, then {} to judge. A candidate left the race when a "
      "one-sided paired t-test at {:.3g} %, divided by the number of comparisons (Bonferroni), "
      "said that it "
      "was worse than the best one{}. {}Gains count on seeds {} to {}, which the search has not "
      "seen; "
      "intervals are 95 %.\n",
      counted(report.search.tried(), "candidate"), report.search.runs, report.search.budget,
      counted(report.judgement.runs, "run"), 100 * (1 - config.confidence),
      conditions.empty() ? "" : " or that it broke a condition (" + conditions + ")", with_zeros,
      report.judgement.seeds.front(), report.judgement.seeds.back());
}

void write_gain(JsonWriter& json, const Gain& gain) {
  json.begin_object()
      .member("percent", gain.percent)
      .member("low", gain.low)
      .member("high", gain.high)
      .end_object();
}

void write_values(JsonWriter& json, const TuneSpace& space, const Choice& choice) {
  json.key("values").begin_object();
  for (std::size_t k = 0; k < space.knobs.size(); ++k)
    json.member(space.knobs[k].name, space.knobs[k].values[choice[k]].text);
  json.end_object();
}

void write_knobs(JsonWriter& json, const TuneReport& report) {
  json.key("knobs").begin_array();
  for (std::size_t k = 0; k < report.space.knobs.size(); ++k) {
    const Knob& knob = report.space.knobs[k];
    json.begin_object().member("name", knob.name);
    json.member("published", knob.values[knob.published].text);
    const std::string& candidate = knob.values[best_of(report).choice[k]].text;
    json.member("best", deploys_best(report) ? candidate : knob.values[knob.published].text);
    json.member("candidate", candidate);
    json.member("ordered", knob.ordered).key("range").begin_array();
    for (const KnobValue& value : knob.values) json.value(value.text);
    json.end_array().key("worth").begin_array();
    if (const KnobWorth* const worth = find_worth(report.judgement, k))
      for (std::size_t g = 0; g < report.space.goals.size(); ++g) {
        const Gain gain = worth_of(*worth, report.space, g);
        json.begin_object().member("metric", report.space.goals[g].metric.text);
        json.member("percent", gain.percent).member("low", gain.low).member("high", gain.high);
        json.end_object();
      }
    json.end_array().end_object();
  }
  json.end_array();
}

void write_race(JsonWriter& json, const TuneReport& report) {
  json.key("race").begin_array();
  for (std::size_t r = 0; r < report.search.rounds.size(); ++r) {
    const TuneRound& round = report.search.rounds[r];
    json.begin_object().member("round", static_cast<std::int64_t>(r + 1));
    json.member("iteration", static_cast<std::int64_t>(round.iteration));
    json.member("seeds", static_cast<std::int64_t>(round.seeds));
    json.member("candidates", static_cast<std::int64_t>(round.candidates));
    json.member("left", static_cast<std::int64_t>(round.left)).end_object();
  }
  json.end_array();
}

void write_candidates(JsonWriter& json, const TuneReport& report) {
  json.key("candidates").begin_array();
  for (std::size_t i = 0; i < report.search.candidates.size(); ++i) {
    const TuneCandidate& candidate = report.search.candidates[i];
    json.begin_object().member("id", static_cast<std::int64_t>(i));
    write_values(json, report.space, candidate.choice);
    json.key("metrics").begin_object();
    for (std::size_t m = 0; m < candidate.values.size(); ++m)
      json.member(report.space.metrics[m].text, sim::mean(candidate.values[m]));
    json.end_object();
    json.member("rounds", static_cast<std::int64_t>(candidate.rounds));
    json.member("seeds", static_cast<std::int64_t>(candidate.seeds()));
    json.key("dropped");
    if (candidate.dropped.empty())
      json.null();
    else
      json.value(candidate.dropped);
    json.end_object();
  }
  json.end_array();
}

void write_judged(JsonWriter& json, const TuneReport& report) {
  json.key("judged").begin_array();
  for (const JudgedLoad& load : report.judgement.loads)
    for (const JudgedMetric& metric : load.metrics) {
      const Difference& d = metric.difference;
      json.begin_object().member("load", load.load).member("metric", metric.metric.text);
      json.member("seeds", static_cast<std::int64_t>(report.judgement.seeds.size()));
      json.member("published", d.base.mean).member("candidate", d.changed.mean).key("omniscient");
      if (metric.omniscient)
        json.value(metric.omniscient->mean);
      else
        json.null();
      json.key("difference").begin_object().member("mean", d.difference.mean);
      json.member("low", d.difference.low()).member("high", d.difference.high()).end_object();
      json.key("gain");
      write_gain(json, gain_of(d, metric.metric));
      json.member("gap_closed", metric.gap_closed).end_object();
    }
  json.end_array().key("loads").begin_array();
  for (const JudgedLoad& load : report.judgement.loads) {
    json.begin_object().member("load", load.load).member("why_not", load.why_not);
    json.member("published_lacks", load.published_lacks);
    json.member("candidate_lacks", load.best_lacks).end_object();
  }
  json.end_array().member("no_omniscient", report.judgement.no_omniscient);
  json.list("notes", notes_of(report));
}

void write_front(JsonWriter& json, const TuneReport& report) {
  json.key("front").begin_array();
  for (const FrontMember& member : report.judgement.front) {
    json.begin_object().member("id", static_cast<std::int64_t>(member.candidate));
    write_values(json, report.space, report.search.candidates[member.candidate].choice);
    json.key("metrics").begin_object();
    for (std::size_t g = 0; g < member.goals.size(); ++g)
      json.key(report.space.goals[g].metric.text)
          .begin_object()
          .member("mean", member.goals[g].mean)
          .member("low", member.goals[g].low())
          .member("high", member.goals[g].high())
          .end_object();
    json.end_object().end_object();
  }
  json.end_array();
}

}  // namespace

bool deploys_best(const TuneReport& report) {
  return report.judgement.decision == TuneDecision::kBetter ||
         report.judgement.decision == TuneDecision::kFragile;
}

void deploy(TuneReport& report) {
  const std::optional<TunedPicker>& picker = report.space.picker;
  if (!picker) return;
  std::vector<Assignment> inside;
  for (Assignment& a : deployed(report)) {
    if (!is_in_document(a)) continue;
    a.steps.erase(a.steps.begin(), a.steps.begin() + 2);
    inside.push_back(std::move(a));
  }
  report.document = change_document(picker->root, picker->text, inside);
}

std::string deployed_flags(const TuneReport& report) {
  struct Lines {
    std::string comments, flags;
  };
  std::map<std::string, Lines> pools;
  for (const Assignment& a : deployed(report)) {
    if (a.steps.size() < 4 || a.steps[0].key != "cluster" || a.steps[1].key != "pools") continue;
    const std::string flag = flag_text(a);
    Lines& lines = pools[a.steps[2].key];
    if (flag.front() == '#')
      lines.comments += flag + "\n";
    else
      lines.flags += (lines.flags.empty() ? "" : " ") + flag;
  }
  std::string text;
  for (const auto& [pool, lines] : pools)
    text += (pools.size() > 1 ? "# pool " + printable(pool) + "\n" : "") + lines.comments +
            lines.flags + (lines.flags.empty() ? "" : "\n");
  return text;
}

RepeatCommand repeat_command(const TuneReport& report) {
  const TuneSpace& space = report.space;
  const TuneDecision decision = report.judgement.decision;
  RepeatCommand command;
  if (report.search.best == 0 || decision == TuneDecision::kNothing ||
      decision == TuneDecision::kUnmet)
    return command;
  const bool whole = space.picker && !space.picker->is_bare;
  std::vector<Assignment> all = space.base;
  for (Assignment& a : space.assignments(best_of(report).choice)) all.push_back(std::move(a));
  // The document of such a file has no key path: the file that -o epp writes takes its place.
  const bool in_document = whole && std::ranges::any_of(all, is_in_document);
  if (in_document && !deploys_best(report)) return command;
  for (const Assignment& a : all)
    if (!whole || !is_in_document(a)) command.sets.push_back(set_text(a));
  if (in_document) {
    command.document = report.document_path.empty() ? "tuned.yaml" : report.document_path;
    command.sets.push_back(std::string(kPickerPath) + "=" + command.document);
    for (const Assignment& a : space.picker->settings)
      command.sets.push_back(a.path + "=" + value_text(a));
  }
  command.text = "routesim run " + shell_word(space.scenario_path) + " --variant " +
                 shell_word(space.config.variant);
  for (const std::string& set : command.sets) command.text += " --set " + shell_word(set);
  command.text += fmt::format(" --seed {} --replications {}", report.judgement.seeds.front(),
                              report.judgement.seeds.size());
  return command;
}

std::string render_tune_text(const TuneReport& report) {
  const TuneSpace& space = report.space;
  std::string goals;
  for (const TuneGoal& goal : space.goals) goals += (goals.empty() ? "" : ", ") + goal.text;
  std::string text = fmt::format("{}, {}, routesim {}: {}\n", printable(space.config.name),
                                 printable(space.config.variant), version(), goals);
  text += report.judgement.headline + "\n\n" + judged_table(report) + "\n" + knobs_table(report);
  if (!report.judgement.front.empty()) text += "\n" + front_table(report);
  text += "\n" + race_table(report) + "\n" + how_text(report);
  const RepeatCommand command = repeat_command(report);
  if (command.text.empty()) return text;
  text += "To repeat " + (deploys_best(report) ? "the best configuration" : judged_name(report));
  if (!command.document.empty() && report.document_path.empty())
    text += ", write its document first, with -o epp=" + shell_word(command.document);
  return text + ":\n" + command.text + "\n";
}

std::string render_tune_json(const TuneReport& report) {
  const TuneSpace& space = report.space;
  JsonWriter json;
  json.begin_object().member("tune", space.config.name).member("question", space.config.question);
  json.member("scenario", space.scenario_name).member("variant", space.config.variant);
  json.member("seed", space.seed).member("version", version());
  json.key("goals").begin_array();
  for (const TuneGoal& goal : space.goals) json.value(goal.text);
  json.end_array().key("subject_to").begin_array();
  for (const Condition& condition : report.search.conditions) json.value(condition.text);
  json.end_array().member("budget", static_cast<std::int64_t>(report.search.budget));
  json.member("search_runs", static_cast<std::int64_t>(report.search.runs));
  json.member("judgement_runs", static_cast<std::int64_t>(report.judgement.runs));
  json.key("verdict").begin_object().member("headline", report.judgement.headline);
  json.member("decision", decision_name(report.judgement.decision)).end_object();
  const auto candidate = static_cast<std::int64_t>(report.search.best);
  json.member("best", deploys_best(report) ? candidate : 0).member("candidate", candidate);
  write_knobs(json, report);
  write_race(json, report);
  write_candidates(json, report);
  json.list("fresh_seeds", report.judgement.seeds);
  write_judged(json, report);
  write_front(json, report);
  json.key("epp");
  if (report.document)
    json.value(report.document->text);
  else
    json.null();
  json.member("flags", deployed_flags(report));
  const RepeatCommand command = repeat_command(report);
  json.list("set", command.sets);
  json.member("command", command.text).member("command_document", command.document);
  return json.end_object().str() + "\n";
}

std::string render_tune_csv(const TuneReport& report) {
  std::string text = "id";
  for (const Knob& knob : report.space.knobs) text += "," + csv_field(knob.name);
  for (const MetricName& metric : report.space.metrics) text += "," + csv_field(metric.text);
  text += ",rounds,seeds,dropped\n";
  for (std::size_t i = 0; i < report.search.candidates.size(); ++i) {
    const TuneCandidate& candidate = report.search.candidates[i];
    text += std::to_string(i);
    for (std::size_t k = 0; k < report.space.knobs.size(); ++k)
      text += "," + csv_field(report.space.knobs[k].values[candidate.choice[k]].text);
    for (std::size_t m = 0; m < report.space.metrics.size(); ++m) {
      const double mean = candidate.values.empty() ? NAN : sim::mean(candidate.values[m]);
      text.append(",").append(std::isfinite(mean) ? number_text(mean) : std::string());
    }
    text += fmt::format(",{},{},{}\n", candidate.rounds, candidate.seeds(),
                        csv_field(candidate.dropped));
  }
  return text;
}

}  // namespace routesim::tools
