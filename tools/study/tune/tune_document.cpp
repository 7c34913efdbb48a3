// The answer of a tuning: whether a better configuration was found, how sure that is, and the files
// to deploy.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/render/document.h"
#include "tools/results/report.h"
#include "tools/results/text_table.h"
#include "tools/study/tune/tune_record.h"

namespace routesim::tools {

namespace {

using Candidate = TuneRecord::Candidate;
using Judged = TuneRecord::Judged;

std::string gain_text(const Gain& gain, std::string_view unit) {
  return std::isfinite(gain.percent) ? percent_text(gain.percent, gain.low, gain.high, unit) : "-";
}

DotPlot::Row gain_row(const std::string& name, const Gain& gain) {
  DotPlot::Row row{.name = name, .text = gain_text(gain, " %"), .percent = gain.percent};
  if (std::isfinite(gain.low)) row.low = gain.low;
  if (std::isfinite(gain.high)) row.high = gain.high;
  if (gain.low > 0) row.style = DotPlot::Style::kGood;
  if (gain.high < 0) row.style = DotPlot::Style::kBad;
  return row;
}

Cell gain_cell(const Gain& gain, const std::string& path) {
  if (!std::isfinite(gain.percent)) return {.text = "-"};
  return {.text = gain_text(gain, ""),
          .number = Datum{.value = gain.percent, .path = path + "/percent"},
          .as_written = true,
          .tone = gain.low > 0    ? Tone::kGood
                  : gain.high < 0 ? Tone::kBad
                                  : Tone::kPlain};
}

/// A metric that plain outputs write as `text`.
Cell metric_cell(const TuneRecord::Number& value, const std::string& text, const MetricView& view,
                 const std::string& path) {
  if (!value || !std::isfinite(*value)) return {.text = "-"};
  return {.text = text.empty() ? short_number(*value) : text,
          .number = in_base_unit({.value = *value, .path = path}, view),
          .unit = view.unit};
}

/// Whether the metric is that of a goal, of a condition or of a guard.
bool is_decisive(const TuneRecord& r, const std::string& metric) {
  const auto names = [&metric](const std::string& text) {
    return (" " + text + " ").find(" " + metric + " ") != std::string::npos;
  };
  return std::ranges::any_of(r.goals, names) || std::ranges::any_of(r.subject_to, names) ||
         std::ranges::any_of(r.guards, names);
}

/// Whether plain outputs show the row: metrics that decide or get worse everywhere, the usual ones
/// only under the load as given, and none that is 0 on both sides.
bool is_shown(const TuneRecord& r, const Judged& row) {
  if (row.published == 0.0 && row.candidate == 0.0) return false;
  const auto is_this = [&row](const TuneRecord::Worse& worse) {
    return worse.load == row.load && worse.metric == row.metric;
  };
  return row.load == r.judged.front().load || is_decisive(r, row.metric) ||
         std::ranges::any_of(r.worse, is_this);
}

/// Published, judged and omniscient under each load. Without a candidate its columns are empty.
Table judged_table(const TuneRecord& r, const std::string& path, bool plain) {
  const bool has_candidate = r.candidate.value_or(1) != 0;
  Table table{.columns = {{"load", true}, {"metric", true}, {"published"}}};
  if (has_candidate) table.columns.insert(table.columns.end(), {{r.judged_name()}, {"gain, %"}});
  table.columns.push_back({"omniscient"});
  if (has_candidate) table.columns.push_back({"gap closed"});
  std::string last;
  for (std::size_t i = 0; i < r.judged.size(); ++i) {
    const Judged& row = r.judged[i];
    if (plain && !is_shown(r, row)) continue;
    const std::string here = path + "/judged/" + std::to_string(i) + "/";
    const MetricView view = metric_view(row.metric);
    std::vector<Cell> cells = {
        {.text = plain && row.load == last ? "" : row.load},
        {.text = plain ? row.metric : view.title},
        metric_cell(row.published, row.published_text, view, here + "published")};
    if (has_candidate) {
      cells.push_back(metric_cell(row.candidate, row.candidate_text, view, here + "candidate"));
      cells.push_back(gain_cell(row.gain, here + "gain"));
    }
    cells.push_back(metric_cell(row.omniscient, row.omniscient_text, view, here + "omniscient"));
    if (has_candidate)
      cells.push_back(
          row.gap_closed
              ? Cell{.text = fixed_text(std::round(100 * *row.gap_closed) + 0.0, 0) + " %",
                     .number = Datum{.value = *row.gap_closed, .path = here + "gap_closed"},
                     .unit = Unit::kRatio}
              : Cell{.text = "-"});
    table.rows.push_back(std::move(cells));
    last = row.load;
  }
  return table;
}

/// The gains under the load as given in what decides: goals, conditions and guards.
DotPlot gains_plot(const TuneRecord& r) {
  DotPlot plot{.subtitle =
                   "On fresh seeds, with their intervals. Discs are better beyond chance, "
                   "triangles worse, squares neither."};
  for (const Judged& row : r.judged) {
    if (row.load != r.judged.front().load || !is_decisive(r, row.metric)) continue;
    plot.rows.push_back(gain_row(metric_view(row.metric).title, row.gain));
  }
  if (plot.rows.empty()) return plot;
  const DotPlot::Row& goal = plot.rows.front();
  const bool good = goal.style == DotPlot::Style::kGood;
  plot.title = goal.name + " gains " + goal.text + " with " + r.judged_name() + ", " +
               (good                                 ? "beyond chance"
                : goal.style == DotPlot::Style::kBad ? "which is a loss"
                                                     : "which may be chance");
  return plot;
}

/// `1, 2, 4`; of many numbers the ends.
std::string range_text(const TuneRecord::Knob& knob) {
  constexpr std::size_t kMostListed = 8;
  if (knob.range.size() > kMostListed && knob.ordered)
    return fmt::format("{} to {}, {} values", knob.range.front(), knob.range.back(),
                       knob.range.size());
  return comma_list(knob.range, std::identity());
}

/// Each knob: its value before and after, and what taking the change back would cost.
Table knobs_table(const TuneRecord& r, const std::string& path) {
  const bool has_candidate = r.candidate.value_or(1) != 0;
  Table table{.columns = {{"knob", true}, {"published", true}}};
  if (has_candidate) {
    table.columns.push_back({r.judged_name(), true});
    for (const std::string& goal : r.goals)
      table.columns.push_back({"worth, % of " + goal.substr(goal.rfind(' ') + 1)});
  }
  table.columns.push_back({"tried", true});
  for (std::size_t k = 0; k < r.knobs.size(); ++k) {
    const TuneRecord::Knob& knob = r.knobs[k];
    const std::string here = path + "/knobs/" + std::to_string(k) + "/worth/";
    std::vector<Cell> row = {{.text = knob.name}, {.text = knob.published}};
    if (has_candidate) {
      row.push_back({.text = knob.judged() == knob.published ? "=" : knob.judged()});
      for (std::size_t g = 0; g < r.goals.size(); ++g)
        row.push_back(g < knob.worth.size() ? gain_cell(knob.worth[g], here + std::to_string(g))
                                            : Cell{.text = "-"});
    }
    row.push_back({.text = range_text(knob)});
    table.rows.push_back(std::move(row));
  }
  return table;
}

DotPlot worth_plot(const TuneRecord& r) {
  DotPlot plot{.subtitle =
                   "Loss when this change alone is taken back, on fresh seeds with 95 % "
                   "intervals."};
  for (const TuneRecord::Knob& knob : r.knobs)
    for (const TuneRecord::Worth& worth : knob.worth)
      plot.rows.push_back(
          gain_row(knob.name + " " + knob.published + " → " + knob.judged() +
                       (knob.worth.size() > 1 ? ", " + metric_view(worth.metric).title : ""),
                   worth));
  const auto dearest = std::ranges::max_element(plot.rows, {}, &DotPlot::Row::percent);
  if (dearest != plot.rows.end())
    plot.title = "The change worth most is " + dearest->name + ": " + dearest->text;
  return plot;
}

Table race_table(const TuneRecord& r) {
  Table table{.columns = {{"round"}, {"iteration"}, {"seeds"}, {"candidates"}, {"left"}}};
  for (const TuneRecord::Round& round : r.race) {
    std::vector<Cell>& row = table.rows.emplace_back();
    for (const std::int64_t n :
         {round.round, round.iteration, round.seeds, round.candidates, round.left})
      row.push_back({.text = std::to_string(n)});
  }
  return table;
}

/// How many candidates each round began and ended with.
LineChart race_chart(const TuneRecord& r) {
  LineChart chart;
  chart.x = {.title = "round", .unit = Unit::kCount};
  chart.y = {.title = "candidates", .unit = Unit::kCount, .from_zero = true};
  chart.series = {{.name = "at the start of the round"}, {.name = "left at its end", .colour = 1}};
  for (const TuneRecord::Round& round : r.race) {
    const auto at = static_cast<double>(round.round);
    chart.series[0].points.push_back({.x = at, .y = static_cast<double>(round.candidates)});
    chart.series[1].points.push_back({.x = at, .y = static_cast<double>(round.left)});
  }
  chart.title = counted(r.candidates.size(), "candidate") + " raced, " +
                std::to_string(r.race.empty() ? 0 : r.race.back().left) + " left at the end";
  chart.subtitle = "A candidate leaves when it is worse than the best one beyond chance.";
  return chart;
}

/// The knobs that are not as published, with their values.
std::string changes_text(const Named<std::string>& values, const TuneRecord& r) {
  std::string changes;
  for (const auto& [name, value] : values.items) {
    const auto knob = std::ranges::find(r.knobs, name, &TuneRecord::Knob::name);
    if (knob != r.knobs.end() && value != knob->published)
      changes += (changes.empty() ? "" : ", ") + name + " = " + value;
  }
  return changes.empty() ? "as published" : changes;
}

Table tuned_front(const TuneRecord& r, const std::string& path) {
  Table table{.columns = {{"front", true}}};
  for (const auto& [metric, estimate] : r.front.front().metrics.items)
    table.columns.push_back({metric});
  table.columns.push_back({"changes", true});
  for (std::size_t i = 0; i < r.front.size(); ++i) {
    const TuneRecord::Member& member = r.front[i];
    std::vector<Cell> row = {{.text = "candidate " + std::to_string(member.id)}};
    for (const auto& [metric, e] : member.metrics.items) {
      const sim::Estimate estimate{.n = 2, .mean = e.mean, .half_width = (e.high - e.low) / 2};
      row.push_back(
          metric_cell(e.mean, estimate_text(estimate), metric_view(metric),
                      path + "/front/" + std::to_string(i) + "/metrics/" + metric + "/mean"));
    }
    row.push_back({.text = changes_text(member.values, r)});
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// The trade between the first two goals, and others to choose: members of the front on fresh
/// seeds, and the others that stayed in the race on those of the search, which are no measure for
/// the front.
std::optional<Scatter> front_scatter(const TuneRecord& r) {
  if (r.front.empty() || r.front.front().metrics.items.size() < 2) return std::nullopt;
  const auto& names = r.front.front().metrics.items;
  const MetricView x = metric_view(names[0].first), y = metric_view(names[1].first);
  Scatter s;
  s.x = {.title = x.title, .unit = x.unit};
  s.y = {.title = y.title, .unit = y.unit};
  s.less_x = x.less_is_better;
  s.less_y = y.less_is_better;
  s.groups = {"front"};
  s.filled = "front, on fresh seeds";
  s.empty = "others that stayed in the race, on the seeds of the search";
  for (const auto& [name, estimate] : names) {
    const MetricView view = metric_view(name);
    s.choices.push_back({view.title, view.unit, view.less_is_better});
  }
  const auto values_of = [&names](auto&& number) {
    std::vector<double> values;
    for (std::size_t k = 0; k < names.size(); ++k)
      values.push_back(metric_view(names[k].first).scale * number(k));
    return values;
  };
  for (const TuneRecord::Member& member : r.front)
    if (const auto& m = member.metrics.items; m.size() == names.size())
      s.points.push_back({.x = x.scale * m[0].second.mean,
                          .y = y.scale * m[1].second.mean,
                          .tip = "candidate " + std::to_string(member.id),
                          .values = values_of([&](std::size_t k) { return m[k].second.mean; })});
  const std::size_t members = s.points.size();
  for (const Candidate& candidate : r.candidates) {
    if (candidate.dropped ||
        std::ranges::find(r.front, candidate.id, &TuneRecord::Member::id) != r.front.end())
      continue;
    const auto value = [&candidate](const std::string& name) {
      for (const auto& [metric, mean] : candidate.metrics.items)
        if (metric == name) return mean;
      return TuneRecord::Number();
    };
    const auto at = value(names[0].first), reached = value(names[1].first);
    if (at && reached)
      s.points.push_back({.x = x.scale * *at,
                          .y = y.scale * *reached,
                          .hollow = true,
                          .may_lead = false,
                          .tip = "candidate " + std::to_string(candidate.id),
                          .values = values_of(
                              [&](std::size_t k) { return value(names[k].first).value_or(NAN); })});
  }
  if (members == 0 || s.points.size() < 2) return std::nullopt;  // There is no trade.
  // The best in each goal, and the price of that in the other.
  const auto ends = std::ranges::minmax(std::span(s.points).first(members), {}, &Scatter::Point::x);
  const auto& [fast, slow] =
      x.less_is_better ? std::pair(ends.min, ends.max) : std::pair(ends.max, ends.min);
  s.title = x.title + " " + human(fast.x, x.unit) + " at " + y.title + " " + human(fast.y, y.unit);
  if (members > 1) s.title += ", or " + human(slow.x, x.unit) + " at " + human(slow.y, y.unit);
  s.subtitle = counted(r.front.size(), "configuration") + " that no other one beats in both.";
  return s;
}

Table candidates_table(const TuneRecord& r, const std::string& path) {
  // Goals and conditions come first; more columns than these do not fit a page.
  constexpr std::size_t kMostMetrics = 3;
  Table table{.columns = {{"id", true}, {"changes", true}}};
  const auto& first = r.candidates.front().metrics.items;
  const std::size_t shown = std::min(first.size(), kMostMetrics);
  for (std::size_t m = 0; m < shown; ++m)
    table.columns.push_back({metric_view(first[m].first).title});
  table.columns.insert(table.columns.end(), {{"seeds"}, {"left the race", true}});
  for (std::size_t i = 0; i < r.candidates.size(); ++i) {
    const Candidate& candidate = r.candidates[i];
    std::vector<Cell> row = {{.text = std::to_string(candidate.id)},
                             {.text = changes_text(candidate.values, r)}};
    for (std::size_t m = 0; m < shown; ++m) {
      const auto& own = candidate.metrics.items;
      row.push_back(m < own.size() ? metric_cell(own[m].second, {}, metric_view(own[m].first),
                                                 path + "/candidates/" + std::to_string(i) +
                                                     "/metrics/" + own[m].first)
                                   : Cell{.text = "-"});
    }
    row.push_back({.text = std::to_string(candidate.seeds)});
    row.push_back({.text = candidate.dropped.value_or("")});
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// `judged too, on seeds 10061 to 10120: #7 ...`, with all that it gains and loses.
Sentence passed_over(const TuneRecord::Passed& passed) {
  std::string text = fmt::format("judged too: #{}", passed.candidate);
  if (!passed.fresh_seeds.empty())
    text +=
        fmt::format(" on seeds {} to {}", passed.fresh_seeds.front(), passed.fresh_seeds.back());
  for (const TuneRecord::Worth& gain : passed.gains)
    text += ", " + gain.metric + " " + gain_text(gain, " %");
  for (const std::string& condition : passed.conditions) text += ", breaks " + condition;
  Sentence sentence = {{text}};
  for (const TuneRecord::Worse& worse : passed.worse)
    sentence.push_back(
        {fmt::format("{}{} ({}) {}{}", &worse == &passed.worse.front() ? "; worse: " : ", ",
                     worse.metric, worse.load, gain_text(worse, " %"),
                     worse.guard ? ", a guard" : ""),
         Tone::kBad});
  return sentence;
}

StudyVerdict tune_verdict(const TuneRecord& r) {
  StudyVerdict out{.headline = r.verdict.headline};
  for (const std::string& goal : r.goals) out.points.push_back({{"goal: " + goal}});
  for (const std::string& condition : r.subject_to)
    out.points.push_back({{"subject to: " + condition}});
  if (!r.guards.empty()) out.points.push_back({{"not worse beyond chance: " + joined(r.guards)}});
  for (const TuneRecord::Passed& passed : r.passed_over) out.points.push_back(passed_over(passed));
  out.fine = r.how;
  if (out.fine.empty())
    out.fine = fmt::format("{} runs searched, {} judged on {} seeds that the search has not seen.",
                           r.search_runs, r.judgement_runs, r.fresh_seeds.size());
  out.fine += " A positive gain is an improvement over the published configuration.";
  return out;
}

/// The files to deploy, and the command that repeats the judged configuration.
void add_deployment(const TuneRecord& r, std::vector<Block>& blocks) {
  if (r.epp || !r.flags.empty() || !r.command.empty())
    blocks.push_back({Heading{"What to deploy"}, For::kPages});
  if (r.epp) {
    blocks.push_back({Paragraph{"The router's configuration:"}, For::kPages});
    blocks.push_back({Listing{*r.epp, "tuned.yaml"}, For::kPages});
  }
  if (!r.flags.empty()) {
    blocks.push_back({Paragraph{"The engines' flags:"}, For::kPages});
    blocks.push_back({Listing{r.flags}, For::kPages});
  }
  if (r.command.empty()) return;
  std::string text = "To repeat " + r.judged_name();
  if (!r.command_document.empty())
    text += ", with its document from -o epp=" + shell_word(r.command_document);
  blocks.push_back({Paragraph{text + ":"}});
  blocks.push_back({Listing{r.command}});
}

}  // namespace

StudyDocument tune_document(const TuneRecord& r, const std::string& path) {
  StudyDocument out{
      .name = "tune " + r.tune,
      .kicker = "tune · " + r.scenario + " · " + r.variant + " · routesim " + r.version,
      .title = r.question.empty() ? r.tune : r.question,
      .verdict = tune_verdict(r)};
  const auto add = [&out](auto content, For outputs = For::kAll) {
    out.blocks.push_back({std::move(content), outputs});
  };
  if (std::optional<Scatter> front = front_scatter(r))
    out.verdict.picture = std::move(*front);
  else if (r.candidate.value_or(1) != 0)
    out.verdict.picture = gains_plot(r);
  const bool has_race = r.race.size() > 1;  // One round is no line.
  if (!out.verdict.picture && has_race) out.verdict.picture = race_chart(r);
  if (!r.judged.empty()) {
    add(Heading{"Published against " + r.judged_name()});
    if (r.candidate.value_or(1) != 0 && !std::holds_alternative<DotPlot>(*out.verdict.picture))
      add(Charts{{gains_plot(r)}}, For::kPages);
    add(judged_table(r, path, false), For::kPages);
    add(judged_table(r, path, true), For::kPlain);
  }
  for (const std::string& note : r.notes) add(Paragraph{note});
  if (!r.knobs.empty()) {
    add(Heading{"The knobs"});
    add(Charts{{worth_plot(r)}}, For::kPages);
    add(knobs_table(r, path));
  }
  add(Heading{"The search"});
  if (has_race && !std::holds_alternative<LineChart>(*out.verdict.picture))
    add(Charts{{race_chart(r)}}, For::kPages);
  if (!r.front.empty()) add(tuned_front(r, path));
  add(race_table(r), For::kPlain);
  if (!r.candidates.empty())
    add(Fold{"All " + std::to_string(r.candidates.size()) + " candidates",
             {{candidates_table(r, path)}},
             r.fresh_seeds.empty()},
        For::kPages);
  add_deployment(r, out.blocks);
  return out;
}

}  // namespace routesim::tools
