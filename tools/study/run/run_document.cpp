#include "tools/study/run/run_document.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/render/document.h"
#include "tools/results/metrics.h"
#include "tools/results/report.h"
#include "tools/results/text_table.h"
#include "tools/study/run/fleet_tables.h"
#include "tools/study/run/run_charts.h"
#include "tools/study/verdict/run_verdict.h"

namespace routesim::tools {

namespace {

using Value = std::optional<double>;

/// A column, or a row, of plain tables.
struct PlainNumber {
  std::string_view title;
  std::string_view key;  ///< Into StageView::values.
  double scale;          ///< Of the base unit.
  int decimals;
};

constexpr std::array<PlainNumber, 4> kLadder = {{{"Output tokens/s", "output_throughput", 1, 0},
                                                 {"TTFT mean, s", "ttft.mean", 1, 3},
                                                 {"TTFT p90, s", "ttft.p90", 1, 3},
                                                 {"ITL mean, ms", "itl.mean", 1e3, 1}}};
/// A row of the whole run. Plain outputs leave out rows without a title.
struct SummaryRow : PlainNumber {
  std::string_view needs = {};  ///< Plain outputs show it where a variant has this value.
};
constexpr std::string_view kOverloadedStages = "overloaded_stages";
constexpr std::array<SummaryRow, 31> kSummary = {
    {{{"requests", "requests", 1, 0}},
     {{"failures", "failed_requests", 1, 0}},
     {{"", "good_request_throughput", 1, 0}},
     {{"requests sent/s", "requests_per_sec_sent", 1, 2}},
     {{"output tokens/s", "output_throughput", 1, 0}},
     {{"total tokens/s", "total_throughput", 1, 0}},
     {{"", "request_throughput", 1, 0}},
     {{"TTFT mean, s", "ttft.mean", 1, 3}},
     {{"TTFT p90, s", "ttft.p90", 1, 3}},
     {{"TTFT p99, s", "ttft.p99", 1, 3}},
     {{"ITL mean, ms", "itl.mean", 1e3, 1}},
     {{"ITL p99, ms", "itl.p99", 1e3, 1}},
     {{"TPOT mean, ms", "tpot.mean", 1e3, 1}},
     {{"E2E latency mean, s", "request_latency.mean", 1, 2}},
     {{"E2E latency p99, s", "request_latency.p99", 1, 2}},
     {{"prefix cache hits, %", "prefix_cache_hit_rate", 100, 1}},
     {{"tier hits, %", "tier_hit_rate", 100, 1}, "tier_hit_rate"},
     {{"loaded from tiers, GB", "tier_loaded_gigabytes", 1, 1}, "tier_hit_rate"},
     {{"wait for a load, s", "tier_load_wait", 1, 3}, "tier_hit_rate"},
     {{"pulled from servers, GB", "tier_pulled_gigabytes", 1, 1}, "tier_hit_rate"},
     {{"wait for a pull, s", "tier_pull_wait", 1, 3}, "tier_hit_rate"},
     {{"", "kv_cache_usage.mean", 1, 0}},
     {{"requests within goals, %", "goodput", 100, 1}, "goodput"},
     {{"overloaded stages", kOverloadedStages, 1, 0}},
     {{"preemptions", "preemptions", 1, 0}},
     {{"", "rejected", 1, 0}},
     {{"regret per decision, s", "regret_s", 1, 2}, "regret_s"},
     {{"refused by the gateway", "gateway_refused", 1, 0}, "gateway_refused"},
     {{"retried by the gateway", "gateway_retries", 1, 0}, "gateway_refused"},
     {{"most in flight at the gateway", "gateway_most_in_flight", 1, 0}, "gateway_refused"},
     {{"router decisions", "decisions", 1, 0}}}};
constexpr std::array<PlainNumber, 5> kClasses = {{{"tok/s", "output_throughput", 1, 0},
                                                  {"TTFT mean s", "ttft.mean", 1, 3},
                                                  {"TTFT p99 s", "ttft.p99", 1, 3},
                                                  {"TPOT mean ms", "tpot.mean", 1000, 1},
                                                  {"latency p99 s", "request_latency.p99", 1, 2}}};

constexpr PlainNumber kClassGoodput = {"goodput %", "goodput", 100, 1};

Value stage_value(const StageView& stage, std::string_view key) {
  const Datum* const datum = stage.find(key);
  return datum == nullptr ? std::nullopt : Value(datum->value);
}

Value measured_of(const StageView& stage, std::string_view key) {
  const auto found = stage.measured.find(key);
  return found == stage.measured.end() ? std::nullopt : Value(found->second);
}

Cell plain_cell(const Value& value, const PlainNumber& number) {
  return {.text = value ? fixed_text(*value * number.scale, number.decimals) : "-"};
}

Cell plain_cell(const StageView& stage, const PlainNumber& number) {
  return plain_cell(stage_value(stage, number.key), number);
}

/// Stages are marked whose queue grew until they ended.
Cell marked(const StageView& stage, const PlainNumber& number) {
  Cell cell = plain_cell(stage, number);
  if (stage.overloaded) cell.text.insert(0, "! ");
  return cell;
}

Cell count_cell(const StageView& stage, std::string_view key) {
  return {.text = fixed_text(stage_value(stage, key).value_or(0), 0)};
}

Cell change(const Value& from, const Value& to) {
  return {.text = !from || !to || *from == 0 ? "-" : signed_percent(error_percent(*to, *from))};
}

std::string rate_text(const StageView& stage) {
  const double level = stage.concurrency.value_or(stage.part_concurrency.value_or(0));
  if (level > 0) return "c=" + number_text(level);
  const std::optional<double> asked = stage.rate ? stage.rate : stage.part_rate;
  if (!asked) return "inf";
  // A rate that was asked for is shown as it is; the mean rate of a trace has no round digits.
  const double rate = *asked;
  const std::string exact = number_text(rate);
  return exact.size() <= 7 ? exact : fixed_text(rate, rate < 0.1 ? 5 : rate < 10 ? 3 : 1);
}

std::vector<const StageView*> reported(const VariantView& variant) {
  std::vector<const StageView*> stages;
  for (const StageView& stage : variant.stages)
    if (stage.reported) stages.push_back(&stage);
  return stages;
}

/// The word for a change of 1 % or more that makes things better or worse.
Phrase change_note(const Datum* from, const Datum* to, const Measure& measure) {
  if (from == nullptr || to == nullptr) return {};
  Phrase note{.text = change_text(from->value, to->value, measure.unit)};
  const double scale = measure.unit == Unit::kRatio ? 1 : std::abs(from->value);
  const double difference = to->value - from->value;
  if (!measure.has_direction || scale == 0 || std::abs(difference) < 0.01 * scale) return note;
  const bool better = (difference < 0) == measure.less_is_better;
  note.text += better ? ", better" : ", worse";
  note.tone = better ? Tone::kGood : Tone::kBad;
  return note;
}

Cell datum_cell(const Datum* datum, Unit unit, Phrase note = {}) {
  return {.number = datum == nullptr ? std::nullopt : std::optional(*datum),
          .unit = unit,
          .note = std::move(note)};
}

Table::Column series_column(const PageRun& run, std::size_t v) {
  return {.title = run.variants[v].name, .series = v};
}

/// Mean absolute error over the stages that have a published value.
struct MeanError {
  double sum = 0;
  int count = 0;
  void add(const Value& simulated, const Value& measured) {
    if (!simulated || !measured || *measured == 0) return;
    sum += std::abs(error_percent(*simulated, *measured));
    ++count;
  }
  std::string text() const { return count > 0 ? fixed_text(sum / count, 1) : "-"; }
};

/// One number, stage by stage: every variant beside its published numbers, then each variant's
/// difference to the first. Pages have no room for the differences, and show the warm-up, too.
class Ladder {
 public:
  Ladder(const PageRun& run, const PlainNumber& number, bool on_page)
      : run_(run), number_(number), measure_(measure(number.key)), on_page_(on_page) {
    for (const VariantView& variant : run.variants) {
      stages_.push_back(on_page ? pointers(variant.stages) : reported(variant));
      has_measured_.push_back(std::ranges::any_of(stages_.back(), [&](const StageView* s) {
        return measured_of(*s, number.key).has_value();
      }));
    }
  }

  Table table() {
    Table table{.title = on_page_ ? measure_.title : std::string(number_.title),
                .columns = {{"stage", true}, {"rate"}}};
    const auto group = [&](std::string title, bool measured, bool error) {
      const std::size_t first = table.columns.size();
      // Columns of pages say whose they are.
      const std::string whose = on_page_ ? ", " + title : "";
      table.columns.push_back({"simulated"});
      if (measured) table.columns.push_back({"measured" + whose});
      if (measured && error) table.columns.push_back({"err %" + whose});
      table.groups.push_back({first, table.columns.size() - first, std::move(title)});
    };
    for (std::size_t v = 0; v < stages_.size(); ++v) {
      const std::size_t first = table.columns.size();
      group(printable(run_.variants[v].name), has_measured_[v], true);
      if (on_page_) table.columns[first] = series_column(run_, v);
    }
    for (std::size_t v = 1; v < stages_.size() && !on_page_; ++v)
      group("change %", has_measured_[0] && has_measured_[v], false);
    std::vector<MeanError> errors(stages_.size());
    for (std::size_t i = 0; i < stages_[0].size(); ++i) table.rows.push_back(row(i, errors));
    if (std::ranges::find(has_measured_, true) == has_measured_.end()) return table;
    std::vector<Cell>& means = table.rows.emplace_back();
    means = {{.text = "mean |err|"}, {}};
    for (std::size_t v = 0; v < stages_.size(); ++v) {
      means.emplace_back();
      if (has_measured_[v]) means.insert(means.end(), {{}, {.text = errors[v].text()}});
    }
    return table;
  }

 private:
  static std::vector<const StageView*> pointers(const std::vector<StageView>& stages) {
    std::vector<const StageView*> out;
    for (const StageView& stage : stages) out.push_back(&stage);
    return out;
  }

  std::vector<Cell> row(std::size_t i, std::vector<MeanError>& errors) const {
    const StageView& first = *stages_[0][i];
    std::vector<Cell> row = {{.text = printable(first.name) + (first.reported ? "" : " (warm-up)")},
                             {.text = rates(i)}};
    std::vector<Value> values, truths;
    for (std::size_t v = 0; v < stages_.size(); ++v) {
      static const StageView kNone;
      const StageView& stage = i < stages_[v].size() ? *stages_[v][i] : kNone;
      values.push_back(stage_value(stage, number_.key));
      truths.push_back(measured_of(stage, number_.key));
      row.push_back(cell(stage));
      if (!has_measured_[v]) continue;
      row.push_back(on_page_ && truths[v] ? Cell{.text = human(*truths[v], measure_.unit, false)}
                                          : plain_cell(truths[v], number_));
      row.push_back(change(truths[v], values[v]));
      if (stage.reported) errors[v].add(values[v], truths[v]);
    }
    for (std::size_t v = 1; v < stages_.size() && !on_page_; ++v) {
      row.push_back(change(values[0], values[v]));
      if (has_measured_[0] && has_measured_[v]) row.push_back(change(truths[0], truths[v]));
    }
    return row;
  }

  Cell cell(const StageView& stage) const {
    if (!on_page_) return marked(stage, number_);
    Cell cell = datum_cell(stage.find(number_.key), measure_.unit);
    if (stage.overloaded && stage.reported) cell.note.text = "overloaded";
    return cell;
  }

  /// One rate, or one of each variant where the load found them by itself.
  std::string rates(std::size_t i) const {
    const std::string first = rate_text(*stages_[0][i]);
    std::string all = first;
    bool same = true;
    for (std::size_t v = 1; v < stages_.size(); ++v) {
      const std::string other = i < stages_[v].size() ? rate_text(*stages_[v][i]) : first;
      same = same && other == first;
      all += " / " + other;
    }
    return same ? first : all;
  }

  const PageRun& run_;
  const PlainNumber& number_;
  Measure measure_;
  bool on_page_;
  std::vector<std::vector<const StageView*>> stages_;
  std::vector<bool> has_measured_;
};

/// One row per stage and variant, because columns of many variants are wider than a screen.
/// Variants that face the same stages stand below each other.
Table stage_rows(const PageRun& run) {
  const bool several = run.variants.size() > 1;
  Table table{.columns = {{"stage", true}, {"rate", several}}};
  if (several) table.columns.push_back({"variant", true});
  table.columns.insert(table.columns.end(), {{"requests"}, {"failed"}});
  for (const PlainNumber& number : kLadder) table.columns.push_back({std::string(number.title)});
  table.columns.push_back({"hits, %"});
  std::vector<std::pair<std::size_t, const VariantView*>> rows;
  for (const VariantView& variant : run.variants)
    for (std::size_t i = 0; i < reported(variant).size(); ++i) rows.emplace_back(i, &variant);
  const bool scan = !run.variants.front().scan_of.empty();
  if (!scan) std::ranges::stable_sort(rows, {}, [](const auto& row) { return row.first; });
  for (const auto& [i, variant] : rows) {
    const StageView& stage = *reported(*variant)[i];
    std::vector<Cell> row = {{.text = printable(stage.name)}, {.text = rate_text(stage)}};
    if (several) row.push_back({.text = printable(variant->name)});
    row.insert(row.end(), {count_cell(stage, "requests"), count_cell(stage, "failed_requests")});
    for (const PlainNumber& number : kLadder) row.push_back(marked(stage, number));
    row.push_back(plain_cell(stage, {"", "prefix_cache_hit_rate", 100, 1}));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::vector<std::string_view> plain_keys() {
  std::vector<std::string_view> keys;
  for (const PlainNumber& number : kLadder) keys.push_back(number.key);
  for (const PlainNumber& number : kSummary)
    if (find_metric(number.key.substr(0, number.key.find('.'))) != nullptr)
      keys.push_back(number.key);
  return keys;
}

std::vector<Table> plain_stages(const PageRun& run, bool beside_published) {
  constexpr std::size_t kMostSideBySide = 3;
  if (run.variants.empty()) return {};
  const std::size_t n = run.variants.size();
  if (!beside_published && (n == 1 || n > kMostSideBySide || !run.command.scan.empty()))
    return {stage_rows(run)};
  std::vector<Table> tables;
  for (const PlainNumber& number : kLadder) tables.push_back(Ladder(run, number, false).table());
  return tables;
}

Table published_table(const PageRun& run) {
  Table table{.columns = {{"published summary row", true}}};
  std::vector<std::string> names;  // In the order of the files.
  for (const VariantView& variant : run.variants) {
    const std::size_t first = table.columns.size();
    for (const char* title : {"simulated", "measured", "err %"}) table.columns.push_back({title});
    table.groups.push_back({first, 3, printable(variant.name)});
    for (const PublishedView& row : variant.published)
      if (std::ranges::find(names, row.name + ", " + row.unit) == names.end())
        names.push_back(row.name + ", " + row.unit);
  }
  for (std::size_t v = 1; v < run.variants.size(); ++v) {
    table.groups.push_back({table.columns.size(), 2, "change %"});
    for (const char* title : {"simulated", "measured"}) table.columns.push_back({title});
  }
  for (const std::string& name : names) {
    std::vector<Cell> row = {{.text = name}};
    std::vector<Value> values, truths;
    for (const VariantView& variant : run.variants) {
      const auto found = std::ranges::find_if(
          variant.published, [&](const auto& p) { return p.name + ", " + p.unit == name; });
      const PublishedView* const p = found == variant.published.end() ? nullptr : &*found;
      values.push_back(p == nullptr ? std::nullopt : Value(p->simulated.value));
      const bool measured = p != nullptr && std::isfinite(p->measured.value);
      truths.push_back(measured ? Value(p->measured.value) : std::nullopt);
      const int decimals = values.back() && std::abs(*values.back()) >= 1000 ? 0 : 3;
      for (const Value& value : {values.back(), truths.back()})
        row.push_back({.text = value ? fixed_text(*value, decimals) : "-"});
      row.push_back(change(truths.back(), values.back()));
    }
    for (std::size_t v = 1; v < values.size(); ++v)
      row.insert(row.end(), {change(values[0], values[v]), change(truths[0], truths[v])});
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table class_table(const PageRun& run) {
  Table table{.columns = {{"traffic class", true}, {"variant", true}, {"requests"}, {"failures"}}};
  for (const PlainNumber& number : kClasses) table.columns.push_back({std::string(number.title)});
  const bool has_goals = std::ranges::any_of(run.variants, [](const VariantView& v) {
    return std::ranges::any_of(v.classes,
                               [](const StageView& c) { return c.find("goodput") != nullptr; });
  });
  if (has_goals) table.columns.push_back({std::string(kClassGoodput.title)});
  for (const VariantView& variant : run.variants)
    for (const StageView& requests : variant.classes) {
      std::vector<Cell> row = {{.text = printable(requests.name)},
                               {.text = printable(variant.name)},
                               count_cell(requests, "requests"),
                               count_cell(requests, "failed_requests")};
      for (const PlainNumber& number : kClasses) row.push_back(plain_cell(requests, number));
      if (has_goals) row.push_back(plain_cell(requests, kClassGoodput));
      table.rows.push_back(std::move(row));
    }
  return table;
}

Table summary_table(const PageRun& run, bool on_page) {
  Table table{.columns = {{on_page ? "measure" : "whole run", true}}};
  for (std::size_t v = 0; v < run.variants.size(); ++v) {
    table.columns.push_back(on_page ? series_column(run, v)
                                    : Table::Column{printable(run.variants[v].name)});
    if (on_page && v > 0) table.columns.back().note = "change against " + run.variants[0].name;
  }
  for (const SummaryRow& number : kSummary) {
    const bool rare = number.key == "rejected" || number.key == "preemptions";
    const auto has = [&](std::string_view key) {
      return std::ranges::any_of(run.variants, [&](const VariantView& v) {
        const Value value = stage_value(v.summary, key);
        return value && (!on_page || !rare || *value != 0);
      });
    };
    const bool is_shown =
        on_page || number.key == kOverloadedStages
            ? has(number.key)
            : !number.title.empty() && (number.needs.empty() || has(number.needs));
    if (!is_shown) continue;
    const Measure shown = measure(number.key);
    const bool is_metric = shown.title != number.key;
    std::vector<Cell>& row = table.rows.emplace_back();
    row.push_back({.text = on_page && is_metric       ? shown.title
                           : number.key == "rejected" ? "refused by the router"
                                                      : std::string(number.title)});
    const Datum* const base = run.variants[0].summary.find(number.key);
    for (const VariantView& v : run.variants) {
      const Datum* const datum = v.summary.find(number.key);
      row.push_back(on_page ? datum_cell(datum, shown.unit, change_note(base, datum, shown))
                            : plain_cell(v.summary, number));
      if (on_page && &v == &run.variants[0]) row.back().note = {};
      if (!on_page && number.key == kOverloadedStages && datum != nullptr)
        row.back().text += " of " + std::to_string(reported(v).size());
    }
  }
  return table;
}

Table page_stages(const PageRun& run, std::string_view key) {
  const bool known = std::ranges::any_of(run.variants, [&](const VariantView& v) {
    return std::ranges::any_of(v.stages,
                               [&](const StageView& s) { return s.find(key) != nullptr; });
  });
  return known ? Ladder(run, {"", key, 1, 0}, true).table() : Table{};
}

namespace {

/// `seed 1`, `seeds 1 to 5`.
std::string page_seeds(const PageRun& run) {
  if (run.replications < 2) return "seed " + run.seed;
  const std::uint64_t first = std::stoull(run.seed);
  return seeds_text({first, first + static_cast<std::uint64_t>(run.replications) - 1});
}

StudyVerdict study_verdict(const PageRun& run) {
  const Verdict verdict = verdict_of(run);
  StudyVerdict out{.headline = verdict.headline,
                   .picture = answer_chart(run, verdict.knees),
                   .judgements = run.expectations};
  for (const VerdictLine& line : verdict.lines) {
    Sentence& point = out.points.emplace_back();
    if (line.better)
      point = {{.text = *line.better ? "better" : "worse",
                .tone = *line.better ? Tone::kGood : Tone::kBad,
                .strong = true},
               {.text = " "}};
    point.push_back({.text = line.text});
  }
  if (!verdict.ranking.empty()) out.points.push_back({{.text = verdict.ranking}});
  StudyVerdict::Part knees{.title = "How much load each holds"};
  for (const Knee& knee : verdict.knees)
    knees.points.push_back({{.text = knee.variant, .strong = true}, {.text = " " + knee.text}});
  StudyVerdict::Part next{.title = "What to do next"};
  for (const Step& step : verdict.next)
    next.points.push_back({{.text = step.why + ": "}, {.text = step.command, .code = true}});
  for (StudyVerdict::Part* const part : {&knees, &next})
    if (!part->points.empty()) out.parts.push_back(std::move(*part));
  for (const std::string* const text : {&verdict.overload, &verdict.goals, &verdict.trust})
    if (!text->empty()) out.fine += (out.fine.empty() ? "" : " ") + *text;
  return out;
}

std::vector<std::pair<std::string, std::string>> run_facts(const PageRun& run) {
  std::vector<std::pair<std::string, std::string>> facts = {
      {"scenario", run.scenario},
      {"routesim", run.version + (run.commit.empty() ? "" : " (" + run.commit + ")")},
      {run.replications > 1 ? "seeds" : "seed",
       page_seeds(run).substr(page_seeds(run).find(' ') + 1)},
      {"scenario hash", run.hash}};
  std::erase_if(facts, [](const auto& fact) { return fact.second.empty(); });
  return facts;
}

/// The notes of the variants; one that several share is said once.
Notes notes_of(const PageRun& run) {
  SaidOf said;
  for (const VariantView& v : run.variants)
    for (const std::string& note : v.notes) entry_of(said, note).push_back(v.name);
  Notes notes;
  for (const auto& [note, names] : said) {
    const bool all = names.size() > 1 && names.size() == run.variants.size();
    notes.texts.push_back((all ? "every variant" : comma_list(names, std::identity())) + ": " +
                          note);
  }
  return notes;
}

/// The curves over the load, without the first where that is the picture of the verdict, and the
/// numbers behind them.
void add_stages(const PageRun& run, bool without_first, std::vector<Block>& blocks) {
  Charts curves_over_load;
  for (NamedChart& curve : load_curves(run))
    if (!std::exchange(without_first, false))
      curves_over_load.charts.emplace_back(std::move(curve.chart));
  if (!curves_over_load.charts.empty()) {
    blocks.push_back({Heading{"How it holds as the load grows"}});
    blocks.push_back({std::move(curves_over_load)});
  }
  Fold numbers{.title = "Stage by stage, in numbers"};
  if (run.variants[0].stages.size() > 1)
    for (const Curve& curve : curves())
      if (Table table = page_stages(run, curve.key); !table.rows.empty())
        numbers.blocks.push_back({std::move(table)});
  blocks.push_back({std::move(numbers)});
}

Table server_table(const PageRun& run) {
  struct ServerNumber {
    std::string_view key, title;
    Unit unit;
  };
  constexpr std::array<ServerNumber, 7> kServerNumbers = {
      {{"requests", "requests", Unit::kCount},
       {"busy_s", "busy", Unit::kSeconds},
       {"kv_mean", "KV use, mean", Unit::kRatio},
       {"kv_max", "KV use, most", Unit::kRatio},
       {"max_running", "running, most", Unit::kCount},
       {"max_waiting", "waiting, most", Unit::kCount},
       {"evicted_blocks", "blocks evicted", Unit::kCount}}};
  Table table{.columns = {{"server", true}, {"variant", true}}};
  std::vector<ServerNumber> numbers(kServerNumbers.begin(), kServerNumbers.end());
  const bool speculates = std::ranges::any_of(run.variants, [](const VariantView& variant) {
    return std::ranges::any_of(variant.servers, [](const ServerView& server) {
      return server.values.contains("acceptance_length");
    });
  });
  if (speculates) numbers.push_back({"acceptance_length", "tokens per verification", Unit::kNone});
  for (const ServerNumber& number : numbers) table.columns.push_back({std::string(number.title)});
  for (const VariantView& variant : run.variants)
    for (const ServerView& server : variant.servers) {
      std::vector<Cell>& row = table.rows.emplace_back();
      row = {{.text = server.name}, {.text = variant.name}};
      for (const ServerNumber& number : numbers) {
        const auto found = server.values.find(number.key);
        row.push_back(
            datum_cell(found == server.values.end() ? nullptr : &found->second, number.unit));
      }
    }
  return table;
}

/// The settings in which the variants differ; may have no rows.
Table setting_table(const PageRun& run) {
  Table table{.columns = {{"key", true}}};
  std::vector<std::string> paths;
  std::vector<std::map<std::string, std::string>> values(run.variants.size());
  for (std::size_t v = 0; v < run.variants.size(); ++v) {
    table.columns.push_back(series_column(run, v));
    table.columns.back().words = true;
    for (const auto& [path, value] : run.variants[v].resolved) {
      values[v][path] = value;
      if (std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
    }
  }
  for (const std::string& path : paths) {
    std::vector<Cell> row = {{.text = path}};
    std::set<std::string> distinct;
    for (const auto& of : values) {
      row.push_back({.text = of.contains(path) ? of.at(path) : "–"});
      distinct.insert(row.back().text);
    }
    if (distinct.size() > 1) table.rows.push_back(std::move(row));
  }
  return table;
}

/// Everything behind a run: servers, settings, notes.
void add_details(const PageRun& run, std::vector<Block>& blocks) {
  if (Charts over_time = time_charts(run); !over_time.charts.empty()) {
    blocks.push_back({Heading{"What happened over time"}});
    blocks.push_back({std::move(over_time)});
    if (Table missed = missed_table(run, 0); !missed.rows.empty())
      blocks.push_back({Fold{"When goals are missed", {{std::move(missed)}}, true}});
  }
  if (Table fleet = fleet_table(run, true); !fleet.rows.empty()) {
    blocks.push_back({std::move(fleet)});
    blocks.push_back({Fold{.title = "Event by event", .blocks = {{event_table(run, 0)}}}});
  }
  blocks.push_back({Heading{"The servers"}});
  for (Block& block : server_charts(run)) blocks.push_back(std::move(block));
  blocks.push_back({Fold{"Server by server, in numbers", {{server_table(run)}}}});
  if (Table settings = setting_table(run); !settings.rows.empty()) {
    blocks.push_back({Heading{"In what the variants differ"}});
    blocks.push_back({std::move(settings)});
  }
  if (Notes notes = notes_of(run); !notes.texts.empty()) {
    blocks.push_back({Heading{"Notes"}});
    blocks.push_back({std::move(notes)});
  }
  // Paper gets the first variant in full; the others are what the table of differences says.
  for (const VariantView& v : run.variants)
    if (!v.resolved_text.empty())
      blocks.push_back({Fold{.title = "Everything resolved: " + v.name,
                             .blocks = {{Listing{v.resolved_text}}},
                             .only_on_screen = &v != &run.variants.front()}});
}

/// The same for pages, a row for each variant: many variants are wider than a page.
Table published_rows(const PageRun& run) {
  Table table{
      .columns = {{"variant", true}, {"row", true}, {"simulated"}, {"measured"}, {"err %"}}};
  for (const VariantView& variant : run.variants)
    for (const PublishedView& row : variant.published)
      table.rows.push_back({{.text = variant.name},
                            {.text = row.name + ", " + row.unit},
                            datum_cell(&row.simulated, Unit::kNone),
                            datum_cell(&row.measured, Unit::kNone),
                            change(row.measured.value, row.simulated.value)});
  return table;
}

}  // namespace

StudyDocument run_document(const PageRun& run) {
  StudyDocument document{
      .name = run.scenario,
      .kicker = run.scenario + " · routesim " + run.version + " · " + page_seeds(run),
      .title = run.question.empty() ? run.scenario : run.question,
      .verdict = study_verdict(run),
      .facts = run_facts(run)};
  if (run.variants.empty()) return document;
  std::vector<Block>& blocks = document.blocks;
  blocks.push_back({Heading{"Key numbers of the whole run"}});
  if (std::ranges::any_of(run.variants, pools_overload))
    blocks.push_back(
        {Paragraph{"Overloaded stages are part of these numbers: how long such a stage lasts "
                   "decides its latencies. The curves below keep stages apart.",
                   true}});
  blocks.push_back({summary_table(run, true)});
  if (Table classes = class_table(run); !classes.rows.empty())
    blocks.push_back({Fold{"Traffic classes, in numbers", {{std::move(classes)}}}});
  const std::optional<Chart>& picture = document.verdict.picture;
  add_stages(run, picture && std::holds_alternative<LineChart>(*picture), blocks);
  if (Table published = published_rows(run); !published.rows.empty())
    blocks.push_back({Fold{"Beside the published summary", {{std::move(published)}}}});
  Charts distributions{.charts = distribution_charts(run), .small = true};
  if (!distributions.charts.empty()) {
    blocks.push_back({Heading{"Latency distributions"}});
    blocks.push_back({std::move(distributions)});
  }
  add_details(run, blocks);
  return document;
}

}  // namespace routesim::tools
