#include "tools/study/compare/comparison_record.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/render/document.h"
#include "tools/results/described_json.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

ComparisonRecord::File file_record(const ResultFile& file) {
  ComparisonRecord::File out{.path = file.path,
                             .scenario = file.set.scenario,
                             .version = file.set.version,
                             .seeds = file.set.seeds};
  if (file.interrupted) out.interrupted = true;
  return out;
}

ComparisonRecord::Estimate estimate_record(const sim::Estimate& e) {
  return {e.mean, e.low(), e.high()};
}

/// The verdict on a difference, unless one of the runs pools overloaded and healthy stages.
std::string comparison_verdict(const VariantPair& pair, const std::string& stage,
                               const Difference& d, const MetricName& metric) {
  if (!pooled_overload(*pair.base, stage).empty() || !pooled_overload(*pair.changed, stage).empty())
    return std::string(kNotJudged);
  return verdict_text(d, metric);
}

/// The metrics that both stages have, in the order of the base.
Named<ComparisonRecord::Metric> shared_metrics(const Comparison& c, const VariantPair& pair,
                                               const std::string& stage) {
  Named<ComparisonRecord::Metric> out;
  const StageValues* const a = find_stage(*pair.base, stage);
  const StageValues* const b = find_stage(*pair.changed, stage);
  if (a == nullptr || b == nullptr) return out;
  for (const MetricName& m : c.base->set.metrics) {
    const auto x = c.base->set.values(*a, m);
    const auto y = c.changed->set.values(*b, m);
    if (!x || !y) continue;
    const Difference d = difference_of(*x, *y, m, pair.paired);
    out.items.emplace_back(
        m.text, ComparisonRecord::Metric{.base = estimate_record(d.base),
                                         .changed = estimate_record(d.changed),
                                         .difference = estimate_record(d.difference),
                                         .percent = percent_record(d),
                                         .verdict = comparison_verdict(pair, stage, d, m)});
  }
  return out;
}

ComparisonRecord::Pair pair_record(const Comparison& c, const VariantPair& pair) {
  ComparisonRecord::Pair out{.base = pair.base->name,
                             .changed = pair.changed->name,
                             .paired = pair.paired,
                             .note = pair.note,
                             .base_trust = pair.base->trust,
                             .new_trust = pair.changed->trust,
                             .summary = {shared_metrics(c, pair, "")}};
  if (!c.stage.empty()) out.stage = c.stage;
  for (const StageValues& stage : pair.base->stages) {
    if (stage.stage.empty() || (!c.stage.empty() && stage.stage != c.stage)) continue;
    const StageValues* const other = find_stage(*pair.changed, stage.stage);
    ComparisonRecord::Stage s{.name = stage.stage,
                              .reported = stage.reported,
                              .base_overloaded = stage.overloaded,
                              .new_overloaded = other != nullptr && other->overloaded,
                              .metrics = shared_metrics(c, pair, stage.stage)};
    if (stage.rate > 0) s.requested_rate = stage.rate;
    if (stage.concurrency > 0) s.concurrency = stage.concurrency;
    out.stages.push_back(std::move(s));
  }
  return out;
}

}  // namespace

void describe(Describer& d, ComparisonRecord::File& r) {
  field(d, {"file", "Path of the result."}, r.path);
  field(d, {"scenario", "Its name."}, r.scenario);
  field(d, {"interrupted", "True when its numbers are partial. Else absent."}, r.interrupted);
  field(d, {"version", "The version that made it."}, r.version);
  field(d, {"seeds", "One per run."}, r.seeds);
}

void describe(Describer& d, ComparisonRecord::Estimate& r) {
  field(d, {"mean", "Mean over the runs, in the metric's unit."}, r.mean);
  field(d, nullable("low", "Lower end of the 95 % interval; null with one run."), r.low);
  field(d, nullable("high", "Upper end."), r.high);
}

void describe(Describer& d, ComparisonRecord::Metric& r) {
  field(d, {"base", "The base."}, r.base);
  field(d, {"new", "The new result."}, r.changed);
  field(d, {"difference", "new - base, seed by seed where the runs are pairs."}, r.difference);
  field(d, nullable("percent", "The same in percent of the base; null where the base is 0."),
        r.percent);
  field(d, {"verdict", "better, worse, equal, not distinguishable and so on."}, r.verdict);
}

void describe(Describer& d, ComparisonRecord::Stage& r) {
  field(d, {"name", "Number or name of the stage."}, r.name);
  field(d, {"reported", "Part of the summary; warm-up stages are not."}, r.reported);
  field(d, {"requested_rate", "Requests/s asked for."}, r.requested_rate);
  field(d, {"concurrency", "Requests in flight asked for."}, r.concurrency);
  field(d, {"base_overloaded", "The queue of the base grows until the stage ends."},
        r.base_overloaded);
  field(d, {"new_overloaded", "That of the new result does."}, r.new_overloaded);
  field(d, {"metrics", "By name with unit and statistic."}, r.metrics);
}

void describe(Describer& d, ComparisonRecord::Pair::Summary& r) {
  field(d, {"metrics", "By name with unit and statistic."}, r.metrics);
}

void describe(Describer& d, ComparisonRecord::Pair& r) {
  field(d, {"base", "Variant of the base."}, r.base);
  field(d, {"new", "Variant of the new result."}, r.changed);
  field(d, {"paired", "Both sides face the same requests."}, r.paired);
  field(d, {"note", "Why not; empty when they do."}, r.note);
  field(d, {"stage", "The only stage compared. Absent without --stage."}, r.stage);
  field(d, {"base_trust", "The basis of the base's step times."}, r.base_trust);
  field(d, {"new_trust", "That of the new result."}, r.new_trust);
  field(d, {"stages", "By stage."}, r.stages);
  field(d, {"summary", "The whole run."}, r.summary);
}

void describe(Describer& d, Change& r) {
  field(d, {"path", "The key, as --set takes it; or version or commit of routesim."}, r.path);
  field(d, nullable("base", "Its value in the base; null where it is not there."), r.base);
  field(d, nullable("new", "Its value in the new result."), r.changed);
  field(d, {"variants", "Of the base: those that differ so; none where it is the whole result."},
        r.variants);
}

void describe(Describer& d, ComparisonRecord& r) {
  field(d, {"base", "The result to start from."}, r.base);
  field(d, {"new", "The result beside it."}, r.changed);
  field(d, {"confidence", "Of all intervals."}, r.confidence);
  field(d, {"result", "The worst decision on a gate."}, r.result);
  field(d, {"gates", "Limits on changes (--fail-if)."}, r.gates);
  field(d, {"missing", "Variants of the base that the new result does not have."}, r.missing);
  field(d, {"remarks", "Sentences to know before the numbers."}, r.remarks);
  field(d,
        {"changes", "Versions, and keys of the resolved scenarios and their files, that differ."},
        r.changes);
  field(d, {"untold", "Sentences on what cannot be told to have changed."}, r.untold);
  field(d, {"pairs", "One variant of the base beside one of the new result."}, r.pairs);
}

const Named<ComparisonRecord::Metric>& ComparisonRecord::Pair::metrics() const {
  if (stage)
    for (const Stage& s : stages)
      if (s.name == *stage) return s.metrics;
  return summary.metrics;
}

ComparisonRecord comparison_record(const Comparison& c) {
  ComparisonRecord out{.base = file_record(*c.base),
                       .changed = file_record(*c.changed),
                       .confidence = sim::kConfidence,
                       .result = overall(c.gates),
                       .gates = c.gates,
                       .missing = c.missing,
                       .remarks = remarks_of(c),
                       .changes = changes_of(c),
                       .untold = untold_of(c)};
  for (const VariantPair& pair : c.pairs) out.pairs.push_back(pair_record(c, pair));
  return out;
}

// The answer of a comparison: what changed, whether it is better, and by how much.

namespace {

using Pair = ComparisonRecord::Pair;
using Stage = ComparisonRecord::Stage;
using Metric = ComparisonRecord::Metric;
using Metrics = Named<Metric>;

/// The measures that decide the verdict.
constexpr std::array<const char*, 5> kJudged = {"output_tokens_per_s", "ttft_ms.mean",
                                                "ttft_ms.p90", "tpot_ms.mean",
                                                "request_latency_ms.mean"};

/// The metrics of the tables of plain outputs; pages have all.
constexpr std::array<std::string_view, 20> kShown = {"output_tokens_per_s",
                                                     "requests_per_s",
                                                     "ttft_ms.mean",
                                                     "ttft_ms.median",
                                                     "ttft_ms.p90",
                                                     "ttft_ms.p99",
                                                     "tpot_ms.mean",
                                                     "tpot_ms.p99",
                                                     "itl_ms.mean",
                                                     "itl_ms.p99",
                                                     "request_latency_ms.mean",
                                                     "request_latency_ms.p99",
                                                     "prefix_cache_hit_rate",
                                                     "failed_requests",
                                                     "goodput",
                                                     "preemptions",
                                                     "fleet_mean_servers",
                                                     "fleet_lost",
                                                     "fleet_cost",
                                                     "minutes_missed"};

/// How a measure of one variant changed.
enum class Outcome { kUnknown, kSame, kBetter, kWorse, kMixed };

/// One measure of one variant.
struct Effect {
  MetricView view;
  Outcome outcome = Outcome::kUnknown;
  std::string how_much = {};  ///< `-12.3 % [-14.0, -10.6]`, or in how many stages.
};

struct StageCount {
  int better = 0, worse = 0, stages = 0;
};

const Metric* find_metric_in(const Metrics& metrics, std::string_view name) {
  const auto found = std::ranges::find(metrics.items, name, &std::pair<std::string, Metric>::first);
  return found == metrics.items.end() ? nullptr : &found->second;
}

std::string percent_of(const Metric& metric) {
  if (!metric.percent) return {};
  return percent_text(metric.percent->mean, metric.percent->low, metric.percent->high);
}

std::string scope_of(const Pair& pair) { return pair.stage ? "stage " + *pair.stage : "whole run"; }

std::string pair_name(const Pair& pair) {
  return pair.base == pair.changed ? pair.base : pair.base + " → " + pair.changed;
}

Outcome outcome_named(const std::string& verdict) {
  if (verdict == "better") return Outcome::kBetter;
  if (verdict == "worse") return Outcome::kWorse;
  return verdict == "equal" || verdict == "not distinguishable" ? Outcome::kSame
                                                                : Outcome::kUnknown;
}

/// Counts the reported stages in which a measure got better or worse, among those that tell.
StageCount count_stages(const Pair& pair, const std::string& name) {
  StageCount count;
  for (const Stage& stage : pair.stages) {
    const Metric* const metric = find_metric_in(stage.metrics, name);
    if (!stage.reported || metric == nullptr) continue;
    const Outcome outcome = outcome_named(metric->verdict);
    if (outcome != Outcome::kUnknown) ++count.stages;
    if (outcome == Outcome::kBetter) ++count.better;
    if (outcome == Outcome::kWorse) ++count.worse;
  }
  return count;
}

Effect effect_of(const Pair& pair, const std::string& name, const Metric& metric) {
  Effect e{.view = metric_view(name),
           .outcome = outcome_named(metric.verdict),
           .how_much = percent_of(metric)};
  if (metric.verdict != kNotJudged) return e;
  // The whole run pools overloaded and healthy stages: the stages themselves decide.
  const StageCount n = count_stages(pair, name);
  if (n.stages == 0) return e;
  const auto in = [&n](int stages) {
    return "in " + std::to_string(stages) + " of " + std::to_string(n.stages) + " stages";
  };
  e.outcome = n.better > 0 && n.worse > 0 ? Outcome::kMixed
              : n.better > 0              ? Outcome::kBetter
              : n.worse > 0               ? Outcome::kWorse
                                          : Outcome::kSame;
  e.how_much = e.outcome == Outcome::kMixed ? "better " + in(n.better) + ", worse " + in(n.worse)
                                            : in(std::max(n.better, n.worse));
  if (e.outcome == Outcome::kSame) e.how_much.clear();
  return e;
}

std::vector<Effect> effects_of(const Pair& pair) {
  std::vector<Effect> effects;
  for (const char* name : kJudged)
    if (const Metric* const metric = find_metric_in(pair.metrics(), name))
      effects.push_back(effect_of(pair, name, *metric));
  return effects;
}

Outcome overall(const std::vector<Effect>& effects) {
  const auto some = [&](Outcome outcome) {
    return std::ranges::count(effects, outcome, &Effect::outcome) > 0;
  };
  if (some(Outcome::kMixed) || (some(Outcome::kBetter) && some(Outcome::kWorse)))
    return Outcome::kMixed;
  for (const Outcome outcome : {Outcome::kBetter, Outcome::kWorse, Outcome::kUnknown})
    if (some(outcome)) return outcome;
  return effects.empty() ? Outcome::kUnknown : Outcome::kSame;
}

/// True for any number of variants: which of them got better, worse, both or neither.
std::string comparison_headline(const std::vector<Pair>& pairs) {
  struct Group {
    Outcome outcome;
    const char* one;   ///< Of the only variant.
    const char* many;  ///< Of some variants.
  };
  constexpr std::array<Group, 5> kGroups = {
      {{Outcome::kBetter, "New is better than base", "better than base"},
       {Outcome::kWorse, "New is worse than base", "worse than base"},
       {Outcome::kMixed, "New is better than base in some measures and worse in others",
        "better than base in some measures and worse in others"},
       {Outcome::kSame, "New and base cannot be told apart", "not distinguishable from base"},
       {Outcome::kUnknown, "No interval tells whether new differs from base by more than chance",
        "not judged"}}};
  std::string text;
  for (const Group& group : kGroups) {
    std::vector<std::string> names;
    for (const Pair& pair : pairs)
      if (overall(effects_of(pair)) == group.outcome) names.push_back(pair_name(pair));
    if (names.empty()) continue;
    if (names.size() == pairs.size())
      return std::string(group.one) + " for " +
             (names.size() > 2 ? "all " + std::to_string(names.size()) + " variants"
                               : joined(names)) +
             ".";
    text += (text.empty() ? "New is " : "; ") + std::string(group.many) + " for " + joined(names);
  }
  return text.empty() ? "No variant is in both results." : text + ".";
}

/// One sentence per variant: the measures that got worse, those that got better, and the rest.
Sentence pair_point(const Pair& pair) {
  struct Part {
    Outcome outcome;
    Tone tone;
    const char* words;
  };
  constexpr std::array<Part, 5> kParts = {
      {{Outcome::kWorse, Tone::kBad, "new is worse than base in"},
       {Outcome::kMixed, Tone::kPlain, "new is better and worse than base, by stage, in"},
       {Outcome::kBetter, Tone::kGood, "new is better than base in"},
       {Outcome::kSame, Tone::kPlain, "not distinguishable:"},
       {Outcome::kUnknown, Tone::kPlain, "from base to new, without intervals:"}}};
  Sentence sentence = {{.text = pair_name(pair) + ":", .strong = true}};
  const std::vector<Effect> effects = effects_of(pair);
  for (const Part& part : kParts) {
    std::string list;
    for (const Effect& e : effects) {
      if (e.outcome != part.outcome) continue;
      list += (list.empty() ? " " : "; ") + e.view.title;
      if (!e.how_much.empty()) list += " " + e.how_much;
    }
    if (list.empty()) continue;
    sentence.push_back({.text = sentence.size() == 1 ? " " : ". "});
    sentence.push_back({.text = part.words, .tone = part.tone});
    sentence.push_back({.text = list});
  }
  sentence.push_back({.text = "."});
  return sentence;
}

StudyVerdict comparison_verdict(const ComparisonRecord& record) {
  StudyVerdict verdict{.headline = comparison_headline(record.pairs),
                       .judgements = record.gates,
                       .remarks = record.remarks};
  for (const Pair& pair : record.pairs) verdict.points.push_back(pair_point(pair));
  std::vector<std::string> measures;
  for (const char* name : kJudged) measures.push_back(metric_view(name).title);
  verdict.fine = "The verdict is about " + joined(measures) +
                 ". A measure is better or worse when its 95 % interval of new − base leaves zero "
                 "out; where a whole run pools overloaded and healthy stages, its stages decide.";
  for (const Pair& pair : record.pairs)
    if (!pair.note.empty()) verdict.fine += " " + pair_name(pair) + ": " + pair.note + ".";
  return verdict;
}

/// The variants of a change; empty where it is about the whole result.
std::string whose(const ComparisonRecord& record, const Change& change) {
  const bool all = change.variants.size() == record.pairs.size() && record.pairs.size() > 1;
  return all ? "all" : joined(change.variants);
}

constexpr std::size_t kMostPlainChanges = 40;

/// `and 7 more, which the outputs json and html have`; empty when there are no more.
std::string more_changes(const ComparisonRecord& record) {
  if (record.changes.size() <= kMostPlainChanges) return {};
  return "and " + std::to_string(record.changes.size() - kMostPlainChanges) +
         " more, which the outputs json and html have";
}

void add_changes(const ComparisonRecord& record, std::vector<Block>& blocks) {
  blocks.push_back({Heading{"What changed"}});
  for (const std::string& sentence : record.untold) blocks.push_back({Paragraph{sentence + "."}});
  if (record.changes.empty() && record.untold.empty())
    blocks.push_back(
        {Paragraph{"The versions, the resolved scenarios and the documents they name are the same "
                   "in base and new."}});
  if (record.changes.empty()) return;
  Table table{.columns = {{"key", true}, {"variants", true}, {"base", true}, {"new", true}}};
  for (const Change& change : record.changes)
    table.rows.push_back({{.text = change.path, .code = true},
                          {.text = whose(record, change)},
                          {.text = change.base.value_or("")},
                          {.text = change.changed.value_or("")}});
  const std::string more = more_changes(record);
  Table plain = table;
  plain.rows.resize(std::min(plain.rows.size(), kMostPlainChanges));
  blocks.push_back({std::move(table), For::kPages});
  blocks.push_back({std::move(plain), For::kPlain});
  if (!more.empty()) blocks.push_back({Paragraph{more}, For::kPlain});
}

/// The same as lines of one entry, for outputs without tables.
std::string change_log(const ComparisonRecord& record) {
  std::string log;
  for (const std::string& sentence : record.untold) log += "\n" + sentence;
  for (std::size_t i = 0; i < std::min(record.changes.size(), kMostPlainChanges); ++i) {
    const Change& change = record.changes[i];
    const std::string variants = whose(record, change);
    log += "\n" + printable(change.path, 200) +
           (variants.empty() || record.pairs.size() < 2 ? "" : " of " + printable(variants, 200)) +
           ": " + printable(change_text(change), 400);
  }
  if (const std::string more = more_changes(record); !more.empty()) log += "\n" + more;
  return log.empty() ? "what changed: nothing, and the version is the same" : "what changed:" + log;
}

/// The place of a metric in the data block.
std::string metric_path(const std::string& owner, const std::string& name) {
  return owner + "/metrics/" + name;
}

std::optional<Datum> datum_of(const ComparisonRecord::Estimate& e, const MetricView& view,
                              const std::string& path) {
  if (std::isnan(e.mean)) return std::nullopt;
  Datum datum{.value = e.mean, .path = path + "/mean"};
  if (std::isfinite(e.low) && std::isfinite(e.high)) {
    datum.low = e.low;
    datum.high = e.high;
  }
  return in_base_unit(std::move(datum), view);
}

std::string estimate_words(const ComparisonRecord::Estimate& e) {
  const double half = std::isfinite(e.high) ? e.high - e.mean : INFINITY;
  return estimate_text({.n = 0, .mean = e.mean, .sd = 0, .half_width = half});
}

std::vector<Table::Column> difference_columns(const char* first, bool absolute = false) {
  std::vector<Table::Column> columns = {{first, true}, {"base"}, {"new"}};
  if (absolute) columns.push_back({"difference"});
  columns.push_back({"change from base to new"});
  columns.push_back({"new against base"});
  return columns;
}

/// A row of a table of differences behind its first cell; `absolute` adds the difference itself.
std::vector<Cell> difference_row(Cell first, const Metric& metric, const MetricView& view,
                                 const std::string& path, bool absolute = false) {
  std::vector<Cell> row = {std::move(first)};
  for (const auto& [side, estimate] :
       {std::pair{"/base", &metric.base}, std::pair{"/new", &metric.changed}})
    row.push_back({.text = estimate_words(*estimate),
                   .number = datum_of(*estimate, view, path + side),
                   .unit = view.unit});
  if (absolute) row.push_back({.text = estimate_words(metric.difference)});
  Cell change{.text = metric.percent ? percent_of(metric) : "-", .as_written = true};
  if (metric.percent)
    change.number = Datum{.value = metric.percent->mean, .path = path + "/percent/mean"};
  row.push_back(std::move(change));
  row.push_back({.text = metric.verdict,
                 .tone = metric.verdict == "better"  ? Tone::kGood
                         : metric.verdict == "worse" ? Tone::kBad
                                                     : Tone::kPlain});
  return row;
}

/// The place of the numbers of Pair::metrics().
std::string numbers_path(const Pair& pair, const std::string& path) {
  for (std::size_t i = 0; pair.stage && i < pair.stages.size(); ++i)
    if (pair.stages[i].name == *pair.stage) return path + "/stages/" + std::to_string(i);
  return path + "/summary";
}

Block table_of(const ComparisonRecord& record, const Pair& pair, const std::string& path,
               bool on_pages) {
  Table table{.title = pair_name(pair) + ", " + scope_of(pair),
              .columns = difference_columns("metric", !on_pages)};
  const std::size_t n = record.base.seeds.size();
  if (!on_pages)
    table.title +=
        ": " +
        (!pair.note.empty() ? pair.note
         : n < 2 || record.changed.seeds.size() < 2
             ? "single runs: no interval; run both with --replications 5 for a verdict"
             : std::to_string(n) + " pairs of runs with the same seed and load; 95 % intervals");
  for (const auto& [name, metric] : pair.metrics().items) {
    if (!on_pages && std::ranges::find(kShown, name) == kShown.end()) continue;
    const MetricView view = metric_view(name);
    table.rows.push_back(difference_row({.text = on_pages ? view.title : name, .code = !on_pages},
                                        metric, view, metric_path(numbers_path(pair, path), name),
                                        !on_pages));
  }
  return {std::move(table), on_pages ? For::kPages : For::kPlain};
}

std::string stage_text(const Stage& stage) {
  std::string label = stage.requested_rate ? number_text(*stage.requested_rate) + " req/s"
                      : stage.concurrency  ? "concurrency " + std::to_string(*stage.concurrency)
                                           : "stage " + stage.name;
  if (!stage.reported) label += ", warm-up";
  if (stage.base_overloaded || stage.new_overloaded)
    label += std::string(" (overloaded: ") +
             (stage.base_overloaded && stage.new_overloaded ? "both"
              : stage.base_overloaded                       ? "base"
                                                            : "new") +
             ")";
  return label;
}

Table changed_stages(const Pair& pair, const std::string& name, const std::string& path) {
  const MetricView view = metric_view(name);
  Table table{.title = pair_name(pair) + ": " + view.title, .columns = difference_columns("load")};
  for (std::size_t i = 0; i < pair.stages.size(); ++i)
    if (const Metric* const metric = find_metric_in(pair.stages[i].metrics, name))
      table.rows.push_back(
          difference_row({.text = stage_text(pair.stages[i])}, *metric, view,
                         metric_path(path + "/stages/" + std::to_string(i), name)));
  return table;
}

/// Base and new against the load. Nothing when the stages do not say what they ask for.
std::optional<LineChart> stage_curve(const Pair& pair, const std::string& name) {
  const MetricView view = metric_view(name);
  LineChart chart;
  chart.y = {.title = view.title, .unit = view.unit, .from_zero = true};
  chart.x = {.title = "requests/s asked for", .unit = Unit::kRequestsPerSecond};
  chart.series = {{.name = "base", .colour = 0}, {.name = "new", .colour = 1}};
  for (const Stage& stage : pair.stages) {
    const Metric* const metric = find_metric_in(stage.metrics, name);
    if (!stage.reported || metric == nullptr) continue;
    if (!stage.requested_rate) chart.x = {.title = "concurrency", .unit = Unit::kCount};
    if (!stage.requested_rate && !stage.concurrency) continue;
    const double x =
        stage.requested_rate ? *stage.requested_rate : static_cast<double>(*stage.concurrency);
    for (std::size_t side = 0; side < 2; ++side) {
      if (const auto y = datum_of(side == 0 ? metric->base : metric->changed, view, ""))
        chart.series[side].points.push_back(
            point_of(x, *y, side == 0 ? stage.base_overloaded : stage.new_overloaded));
    }
  }
  for (ChartSeries& s : chart.series) std::ranges::stable_sort(s.points, {}, &ChartPoint::x);
  const auto& points = chart.series.front().points;
  if (points.size() < 2 || points.front().x == points.back().x) return std::nullopt;
  chart.y.log = view.unit == Unit::kSeconds && spreads_wide(chart);
  const Metric* const whole = find_metric_in(pair.metrics(), name);
  const Outcome outcome = whole ? effect_of(pair, name, *whole).outcome : Outcome::kUnknown;
  chart.title = pair_name(pair) + ": " + view.title + " " +
                (outcome == Outcome::kBetter  ? "is better in new"
                 : outcome == Outcome::kWorse ? "is worse in new"
                 : outcome == Outcome::kMixed ? "is better in new at some loads, worse at others"
                 : outcome == Outcome::kSame  ? "does not differ by more than chance"
                                              : "in base and in new");
  chart.subtitle = "Bars are 95 % intervals.";
  return chart;
}

/// The changes of the judged measures of one variant with their intervals, around no change.
DotPlot interval_chart(const Pair& pair) {
  DotPlot plot{
      .subtitle =
          "Change from base to new in percent of base, " + scope_of(pair) +
          ", with 95 % intervals. Discs are better, triangles worse, by stage where the whole run "
          "is not judged; squares are neither. Beyond ±100 % a point stands at the frame."};
  std::vector<Effect> drawn;
  for (const char* name : kJudged) {
    const Metric* const metric = find_metric_in(pair.metrics(), name);
    if (metric == nullptr || !metric->percent) continue;
    drawn.push_back(effect_of(pair, name, *metric));
    const Outcome outcome = drawn.back().outcome;
    plot.rows.push_back({.name = metric_view(name).title,
                         .text = percent_of(*metric),
                         .style = outcome == Outcome::kBetter  ? DotPlot::Style::kGood
                                  : outcome == Outcome::kWorse ? DotPlot::Style::kBad
                                                               : DotPlot::Style::kUnsure,
                         .percent = metric->percent->mean,
                         .low = metric->percent->low,
                         .high = metric->percent->high});
  }
  const auto count = [&drawn](Outcome outcome, const char* words) {
    const auto n = std::ranges::count(drawn, outcome, &Effect::outcome);
    return outcome != Outcome::kMixed ? std::to_string(n) + words
           : n > 0                    ? ", " + std::to_string(n) + words
                                      : "";
  };
  const Outcome all = overall(drawn);
  plot.title = pair_name(pair) + ": " +
               (all == Outcome::kUnknown ? "no interval tells whether new is better or worse"
                : all == Outcome::kSame  ? "no measure is better or worse in new beyond chance"
                                         : "of " + counted(drawn.size(), "measure") + ", " +
                                              count(Outcome::kBetter, " better and ") +
                                              count(Outcome::kWorse, " worse in new") +
                                              count(Outcome::kMixed, " both, by stage"));
  return plot;
}

/// The end of a path that tells the two files apart: a page says no more of its author's disk.
std::string short_path(const ComparisonRecord& record, const ComparisonRecord::File& file) {
  const std::filesystem::path base = record.base.path, changed = record.changed.path;
  const std::filesystem::path own = file.path;
  // A descriptor has no name of its own; a caller of the process knows it by its path.
  if (file.path.starts_with("/dev/") || file.path.starts_with("/proc/")) return file.path;
  if (base.filename() != changed.filename()) return own.filename().string();
  return (own.parent_path().filename() / own.filename()).string();
}

std::string file_facts(const ComparisonRecord& record, const ComparisonRecord::File& file) {
  return short_path(record, file) + " (" + file.scenario + ", routesim " + file.version + ", " +
         seeds_text(file.seeds) + ")";
}

/// The first variant's changes are the picture of the verdict.
void add_charts(const ComparisonRecord& record, StudyDocument& document) {
  std::vector<Block>& blocks = document.blocks;
  Charts intervals;
  for (const Pair& pair : record.pairs)
    if (DotPlot plot = interval_chart(pair); !plot.rows.empty())
      intervals.charts.emplace_back(std::move(plot));
  Charts curves;
  for (const char* name : kJudged)
    for (const Pair& pair : record.pairs)
      if (std::optional<LineChart> chart = stage_curve(pair, name))
        curves.charts.emplace_back(std::move(*chart));
  const auto add = [&](const char* heading, Charts charts) {
    if (charts.charts.empty()) return;
    blocks.push_back({Heading{heading}, For::kPages});
    blocks.push_back({std::move(charts), For::kPages});
  };
  if (!intervals.charts.empty()) {
    document.verdict.picture = std::move(intervals.charts.front());
    intervals.charts.erase(intervals.charts.begin());
  }
  add("How much changed for the others", std::move(intervals));
  add("Base and new as the load grows", std::move(curves));
}

}  // namespace

StudyDocument comparison_document(const ComparisonRecord& record, const std::string& path) {
  const std::string& base = record.base.scenario;
  const std::string& changed = record.changed.scenario;
  StudyDocument document{
      .name = "compare " + changed,
      .kicker = "base: " + short_path(record, record.base) +
                " · new: " + short_path(record, record.changed),
      .title = (base == changed ? base : base + " → " + changed) + ": before and after",
      .verdict = comparison_verdict(record),
      .facts = {{"base", file_facts(record, record.base)},
                {"new", file_facts(record, record.changed)}},
      .log = {change_log(record)}};
  add_changes(record, document.blocks);
  if (!record.pairs.empty() && record.pairs.front().stage)
    document.title += ", " + scope_of(record.pairs.front());
  add_charts(record, document);
  document.blocks.push_back({Heading{"Every metric"}, For::kPages});
  Fold stages{.title = "Stage by stage, in numbers"};
  for (std::size_t i = 0; i < record.pairs.size(); ++i) {
    const Pair& pair = record.pairs[i];
    const std::string at = path + "/pairs/" + std::to_string(i);
    document.blocks.push_back(table_of(record, pair, at, true));
    document.blocks.push_back(table_of(record, pair, at, false));
    if (pair.stages.size() < 2) continue;
    for (const char* name : kJudged)
      if (Table table = changed_stages(pair, name, at); !table.rows.empty())
        stages.blocks.push_back({std::move(table)});
  }
  if (!stages.blocks.empty()) document.blocks.push_back({std::move(stages), For::kPages});
  return document;
}

}  // namespace routesim::tools
