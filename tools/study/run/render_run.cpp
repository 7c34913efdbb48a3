#include "tools/study/run/render_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/render/chart/numbers.h"
#include "tools/render/document.h"
#include "tools/results/described_json.h"
#include "tools/results/metric_name.h"
#include "tools/results/metrics.h"
#include "tools/results/report.h"
#include "tools/results/result_record.h"
#include "tools/results/text_table.h"
#include "tools/results/trust_errors.h"
#include "tools/study/run/fleet_tables.h"
#include "tools/study/run/run_document.h"
#include "tools/study/verdict/run_verdict.h"
#include "tools/study/verdict/verdict_parts.h"

namespace routesim::tools {

namespace {

constexpr std::array<std::string_view, 27> kCsvMetrics = {  // The rows of each stage, in order.
    "successful_requests",
    "failed_requests",
    "requests_per_sec_sent",
    "request_throughput",
    "input_throughput",
    "output_throughput",
    "total_throughput",
    "failure_rate",
    "goodput",
    "good_request_throughput",
    "kv_cache_usage",
    "preemptions",
    "overloaded",
    "prefix_cache_hit_rate",
    "tier_hit_rate",
    "tier_loaded_gigabytes",
    "tier_load_wait",
    "tier_pulled_gigabytes",
    "tier_pull_wait",
    "ttft",
    "tpot",
    "ntpot",
    "itl",
    "request_latency",
    "schedule_delay",
    "input_length",
    "output_length"};
constexpr std::array<std::string_view, 6> kStatistics = {"mean", "median", "p75",
                                                         "p90",  "p95",    "p99"};

class CsvWriter {
 public:
  explicit CsvWriter(const Report& report) : report_(report) {}

  std::string str() {
    out_ = "scenario,variant,stage,rate,metric,statistic,unit,value,measured,error_percent\n";
    for (const VariantReport& variant : report_.variants) {
      for (const sim::StageResult& stage : variant.result.stages)
        if (!stage.info.is_preparation) add_stage(variant, stage, stage.info.name);
      add_stage(variant, variant.result.summary, "all");
    }
    if (report_.interrupted && !report_.variants.empty())
      out_ += csv_line(report_.scenario, report_.variants.back().name, "all", "", "interrupted",
                       "count", "count", 1, "", "");
    return out_;
  }

 private:
  void add_stage(const VariantReport& variant, const sim::StageResult& stage,
                 const std::string& name) {
    for (const std::string_view key : kCsvMetrics) {
      const MetricRow& metric = *find_metric(key);
      if (!metric.has_many_values()) {
        add(variant, stage, name, metric, metric.quantity == MetricKind::kCount ? "count" : "mean");
        continue;
      }
      for (const std::string_view statistic : kStatistics)
        add(variant, stage, name, metric, statistic);
    }
  }

  void add(const VariantReport& variant, const sim::StageResult& stage, const std::string& name,
           const MetricRow& metric, std::string_view statistic) {
    const std::optional<double> value = metric_value(stage, metric.key, statistic, metric.unit());
    if (!value) return;
    const bool is_whole_run = name == "all";
    const bool has_rate = !is_whole_run && std::isfinite(stage.info.requested_rate);
    std::optional<double> measured;
    if (!is_whole_run) measured = measured_value(variant, stage, metric.key, statistic);
    const std::optional<double> error =
        measured && *measured != 0 ? std::optional(error_percent(*value, *measured)) : std::nullopt;
    out_ += csv_line(report_.scenario, variant.name, name,
                     has_rate ? std::optional(stage.info.requested_rate) : std::nullopt, metric.key,
                     statistic, metric.unit(), value, measured, error);
  }

  const Report& report_;
  std::string out_;
};

/// One row per variant, stage and metric.
std::string replications_csv(const ResultSet& set) {
  std::string out = "scenario,variant,stage,rate,metric,n,mean,sd,low,high\n";
  for (const VariantValues& variant : set.variants)
    for (const StageValues& stage : variant.stages) {
      const auto add = [&](std::string_view metric, std::size_t n, double mean, double sd,
                           std::optional<double> low, std::optional<double> high) {
        out += csv_line(set.scenario, variant.name, stage.stage.empty() ? "all" : stage.stage,
                        stage.rate > 0 ? std::optional(stage.rate) : std::nullopt, metric, n, mean,
                        sd, low, high);
      };
      add("overloaded", set.seeds.size(), stage.overloaded ? 1 : 0, 0, {}, {});
      for (const MetricName& m : set.metrics) {
        const std::optional<std::vector<double>> values = set.values(stage, m);
        if (!values || m.metric == "overloaded") continue;  // Its row stands above.
        const sim::Estimate e = sim::estimate(*values);
        if (std::isfinite(e.half_width))
          add(m.text, e.n, e.mean, e.sd, e.low(), e.high());
        else
          add(m.text, e.n, e.mean, e.sd, {}, {});
      }
    }
  return out;
}

}  // namespace

std::string render_csv(const Report& report) {
  if (!report.replications) return CsvWriter(report).str();
  return replications_csv(*report.replications) +
         (report.interrupted
              ? csv_line(report.scenario, "", "all", "", "interrupted", 1, 1, 0, "", "")
              : "");
}

// Time series as rows of CSV.

std::string render_series_csv(const Report& report) {
  std::string out =
      "variant,endpoint,pool,time_s,waiting,running,in_flight,kv_cache_usage,prefix_hit_rate,"
      "step_time_s\n";
  for (const VariantReport& variant : report.variants) {
    if (!variant.series) continue;
    const auto known = [](double v) { return v >= 0 ? std::optional(v) : std::nullopt; };
    for (const sim::EndpointSeries& e : variant.series->endpoints)
      for (std::size_t i = 0; i < e.points.size(); ++i) {
        const sim::EndpointPoint& p = e.points[i];
        out += csv_line(variant.name, e.name, e.pool, variant.series->time_s(i), p.waiting,
                        p.running, p.in_flight, e.kv_cache_usage(i), known(e.prefix_hit_rate(i)),
                        known(e.step_time_s(i)));
      }
  }
  if (report.interrupted) out += kPartialLine;
  return out;
}

namespace {

/// Shown stage by stage.
constexpr std::array<std::string_view, 5> kLadderMetrics = {
    "output_tokens_per_s", "ttft_ms.mean", "ttft_ms.p90", "ttft_ms.p99", "itl_ms.mean"};
/// Shown of the whole run.
constexpr std::array<std::string_view, 16> kWhole = {"output_tokens_per_s",
                                                     "total_tokens_per_s",
                                                     "requests_per_s",
                                                     "ttft_ms.mean",
                                                     "ttft_ms.median",
                                                     "ttft_ms.p90",
                                                     "ttft_ms.p99",
                                                     "itl_ms.mean",
                                                     "itl_ms.p99",
                                                     "tpot_ms.mean",
                                                     "request_latency_ms.mean",
                                                     "request_latency_ms.p99",
                                                     "prefix_cache_hit_rate",
                                                     "failed_requests",
                                                     "goodput",
                                                     "preemptions"};

/// Shown in pull requests.
constexpr std::array<std::string_view, 9> kMarkdownMetrics = {
    "ttft_ms.mean",          "ttft_ms.p90",         "ttft_ms.p99",
    "itl_ms.mean",           "output_tokens_per_s", "requests_per_s",
    "prefix_cache_hit_rate", "failed_requests",     "tier_hit_rate"};

std::string load_text(const StageValues& stage) {
  if (stage.concurrency > 0) return "c=" + std::to_string(stage.concurrency);
  return stage.rate > 0 ? number_text(stage.rate) : "-";
}

/// The metric of the set that is called so; null when it has none: goodput, where nothing says what
/// is good.
const MetricName* find_metric_of(const ResultSet& set, std::string_view text) {
  const auto found = std::ranges::find(set.metrics, text, &MetricName::text);
  return found == set.metrics.end() ? nullptr : &*found;
}

/// Every variant, then every later one beside the first. A brief table has each change behind its
/// variant.
void add_columns(const ResultSet& set, bool brief, Table& table) {
  const auto changes = {Table::Column{"change %"}, {"verdict", true}};
  for (const VariantValues& variant : set.variants) {
    table.columns.push_back({printable(variant.name)});
    if (brief && &variant != &set.variants.front())
      table.columns.insert(table.columns.end(), changes);
  }
  for (std::size_t v = 1; v < set.variants.size() && !brief; ++v) {
    table.groups.push_back(
        {table.columns.size(), 3,
         printable(set.variants[v].name) + " - " + printable(set.variants[0].name)});
    table.columns.push_back({"difference"});
    table.columns.insert(table.columns.end(), changes);
  }
}

/// The cells of one metric of one stage, or of the whole run, below these columns.
void add_cells(const ResultSet& set, const MetricName& metric, std::string_view stage, bool brief,
               std::vector<Cell>& row) {
  std::vector<std::optional<std::vector<double>>> values;
  const auto add_change = [&](std::size_t v) {
    if (!values[0] || !values[v]) {
      row.insert(row.end(), brief ? 2 : 3, Cell{.text = "-"});
      return;
    }
    const Difference d =
        difference_of(*values[0], *values[v], metric, set.variants[v].unpaired.empty());
    if (!brief) row.push_back({.text = estimate_text(d.difference)});
    row.push_back({.text = percent_text(d)});
    row.push_back({.text = replication_verdict(set, v, stage, d, metric)});
  };
  for (std::size_t v = 0; v < set.variants.size(); ++v) {
    const StageValues* const found = find_stage(set.variants[v], stage);
    values.push_back(found != nullptr ? set.values(*found, metric) : std::nullopt);
    row.push_back({.text = values[v] ? (found->overloaded && !stage.empty() ? "! " : "") +
                                           estimate_text(sim::estimate(*values[v]))
                                     : "-"});
    if (brief && v > 0) add_change(v);
  }
  for (std::size_t v = 1; v < values.size() && !brief; ++v) add_change(v);
}

Table ladder_table(const ResultSet& set, std::string_view text) {
  Table table{.title = std::string(text), .columns = {{"stage", true}, {"rate"}}};
  add_columns(set, false, table);
  const MetricName* const metric = find_metric_of(set, text);
  for (const StageValues& stage : set.variants.front().stages) {
    if (stage.stage.empty() || !stage.reported || metric == nullptr) continue;
    const bool one_rate = std::ranges::all_of(set.variants, [&](const VariantValues& v) {
      const StageValues* const other = find_stage(v, stage.stage);
      return other == nullptr || other->rate == stage.rate;
    });
    std::vector<Cell>& row = table.rows.emplace_back();
    row = {{.text = printable(stage.stage)}, {.text = one_rate ? load_text(stage) : "-"}};
    add_cells(set, *metric, stage.stage, false, row);
  }
  return table;
}

Table whole_run_table(const ResultSet& set, std::span<const std::string_view> metrics, bool brief) {
  Table table{.columns = {{"whole run", true}}};
  add_columns(set, brief, table);
  for (const std::string_view text : metrics)
    if (const MetricName* const metric = find_metric_of(set, text)) {
      std::vector<Cell>& row = table.rows.emplace_back();
      row.push_back({.text = metric->text, .code = brief});
      add_cells(set, *metric, "", brief, row);
    }
  return table;
}

/// Which variants are overloaded, and what is not judged for that.
std::vector<std::string> overload_lines(const ResultSet& set) {
  std::vector<std::string> lines;
  for (const VariantValues& v : set.variants) {
    std::string stages;
    for (const StageValues& s : v.stages)
      if (!s.stage.empty() && s.reported && s.overloaded)
        stages += (stages.empty() ? "" : ", ") + printable(s.stage);
    if (stages.empty()) continue;
    lines.push_back(
        printable(v.name) + " is overloaded (!) in " + stages +
        ": more is asked than answered, so latencies depend on how long the stage lasts" +
        (pooled_overload(v, "").empty()
             ? ""
             : "; the whole run, which pools these stages, is not judged"));
  }
  return lines;
}

/// How the differences to the first variant were taken.
std::vector<std::string> pairing_lines(const ResultSet& set) {
  if (set.variants.size() < 2) return {};
  if (set.all_paired())
    return {"differences are paired: every variant faces the same load with the same seed"};
  std::vector<std::string> lines;
  for (const VariantValues& v : set.variants)
    if (!v.unpaired.empty())
      lines.push_back(printable(v.name) + " is not paired with " +
                      printable(set.variants.front().name) + ": " + v.unpaired +
                      ", so the difference is one of independent runs");
  return lines;
}

}  // namespace

void add_replications(const ResultSet& set, std::vector<Block>& blocks) {
  const auto say = [&](std::string text) { blocks.push_back({Paragraph{std::move(text)}}); };
  say("");
  say(std::to_string(set.seeds.size()) +
      " replications; mean ± half width of the 95 % interval (Student-t over runs)");
  for (std::string& line : pairing_lines(set)) say(std::move(line));
  for (std::string& line : overload_lines(set)) say(std::move(line));
  if (set.until)
    say(set.until->rule + ": " +
        (set.until->reached ? "reached" : "not reached, " + set.until->reason));
  const auto stages = std::ranges::count_if(
      set.variants.front().stages,
      [](const StageValues& stage) { return !stage.stage.empty() && stage.reported; });
  if (stages > 1)
    for (const std::string_view text : kLadderMetrics) blocks.push_back({ladder_table(set, text)});
  say("");
  blocks.push_back({whole_run_table(set, kWhole, false)});
}

// The verdict above the tables: what a terminal shows first.

namespace {

constexpr std::size_t kTextIndent = 2;

/// Terminal colours (ECMA-48), around text that is laid out already.
enum class Paint { kNone, kBold, kRed, kGreen };

std::string painted(const std::string& text, Paint paint, bool colour) {
  if (!colour || paint == Paint::kNone) return text;
  // Not around the line break: a terminal would colour the rest of the next line.
  const std::size_t end = text.ends_with('\n') ? text.size() - 1 : text.size();
  const char* const code = paint == Paint::kBold ? "1" : paint == Paint::kRed ? "31" : "32";
  return fmt::format("\x1b[{}m{}\x1b[0m{}", code, text.substr(0, end), text.substr(end));
}

std::string paragraph(const std::string& text, std::size_t width) {
  const std::string indent(kTextIndent, ' ');
  return wrapped(printable(text, 4'000), kTextIndent, indent, width) + "\n";
}

/// A reason on its line, the command below it: unbroken, so that it can be copied.
std::string next_step_text(const Step& step, std::size_t width) {
  return paragraph(step.why + ":", width) + std::string(2 * kTextIndent, ' ') +
         printable(plain_spaces(step.command), 4'000) + "\n";
}

/// A row each: what it sustains, where that was found, or else what its stages show.
std::string knees_text(const std::vector<Knee>& knees, std::size_t width) {
  if (std::ranges::any_of(knees, [](const Knee& k) { return !k.capacity; })) {
    if (knees.size() == 1) return paragraph(knees.front().text, width);
    TextTable table(2);
    for (const Knee& knee : knees)
      table.add_row({"  " + printable(knee.variant), plain_spaces(knee.text)});
    return table.str(width);
  }
  TextTable table(2);
  std::string notes;
  table.add_row({"  variant", "sustains", "interval", "limited by"});
  for (const Knee& knee : knees) {
    const Capacity& c = *knee.capacity;
    table.add_row({"  " + printable(knee.variant),
                   plain_spaces(human(*c.rate, Unit::kRequestsPerSecond)),
                   plain_spaces(interval_text(c)), c.limit});
    if (!knee.seen.empty()) notes += paragraph(knee.variant + ": " + knee.seen + ".", width);
  }
  return table.str(width) + notes;
}

}  // namespace

std::string render_verdict(const Verdict& verdict, bool colour, std::size_t width) {
  const auto heading = [colour](const char* text) {
    return std::string("\n").append(painted(text, Paint::kBold, colour)).append("\n");
  };
  std::string out = heading("Verdict");
  for (const std::string& failed : verdict.failed)
    out += painted("! " + paragraph("expectation " + failed, width).substr(kTextIndent),
                   Paint::kRed, colour);
  out += painted(paragraph(verdict.headline, width), Paint::kBold, colour);
  for (const VerdictLine& line : verdict.lines) {
    const bool better = line.better.value_or(false);
    const char* const mark = !line.better ? "  * " : better ? "  + " : "  - ";
    const Paint paint = !line.better ? Paint::kNone : better ? Paint::kGreen : Paint::kRed;
    out += painted(wrapped(printable(line.text, 1'000), 2 * kTextIndent, mark, width) + "\n", paint,
                   colour);
  }
  if (!verdict.ranking.empty()) out += paragraph(verdict.ranking, width);
  if (!verdict.knees.empty()) out += heading("Load held") + knees_text(verdict.knees, width);
  out += heading("Trust");
  if (!verdict.goals.empty()) out += paragraph(verdict.goals, width);
  out += paragraph(verdict.trust, width);
  if (!verdict.next.empty()) out += heading("Next");
  for (const Step& step : verdict.next) out += next_step_text(step, width);
  return out;
}

// A run for terminals and pull requests.

namespace {

/// Takes what a result file leaves out or rounds: its percentiles are those that the load tool
/// lists, and a stage that the load tool held back is overloaded, though no queue grew.
void take_exact(const VariantReport& variant, const sim::StageResult& result, StageView& stage) {
  stage.overloaded = result.overloaded();
  for (const std::string_view key : plain_keys()) {
    const std::size_t dot = key.find('.');
    const std::string_view metric = key.substr(0, dot);
    const std::string_view statistic = dot == key.npos ? "mean" : key.substr(dot + 1);
    stage.values.erase(std::string(key));
    stage.measured.erase(std::string(key));
    if (const auto value = metric_value(result, metric, statistic, ""))
      stage.values.emplace(key, Datum{.value = *value});
    if (const auto value = measured_value(variant, result, metric, statistic))
      stage.measured.emplace(key, *value);
  }
}

/// Adds the values of rows in which only the publication of another variant sums up its ladder.
void add_unpublished(const Report& report, std::size_t v, VariantView& view) {
  for (const VariantReport& published : report.variants)
    for (const MeasuredRow& row : published.measured.rows) {
      const std::string name = row.metric + " " + row.statistic.substr(0, row.statistic.find(" ("));
      const bool known = std::ranges::any_of(view.published, [&](const PublishedView& p) {
        return p.name == name && p.unit == row.unit;
      });
      if (row.stage != "all" || known) continue;
      const auto stages = reported_stages(report.variants[v].result);
      if (const auto value = ladder_value(stages, row.metric, row.statistic, row.unit))
        view.published.push_back({.name = name,
                                  .unit = row.unit,
                                  .simulated = {.value = *value},
                                  .measured = {.value = NAN}});
    }
}

/// The numbers of plain tables.
PageRun exact_view(const Report& report, PageRun run) {
  std::ptrdiff_t overloads = 0;
  for (std::size_t v = 0; v < run.variants.size(); ++v) {
    const VariantReport& variant = report.variants[v];
    VariantView& view = run.variants[v];
    for (std::size_t i = 0, at = 0; i < variant.result.stages.size(); ++i)
      if (!variant.result.stages[i].info.is_preparation)
        take_exact(variant, variant.result.stages[i], view.stages[at++]);
    for (std::size_t i = 0; i < view.classes.size(); ++i)
      take_exact(variant, variant.result.classes[i], view.classes[i]);
    take_exact(variant, variant.result.summary, view.summary);
    add_unpublished(report, v, view);
    const auto overloaded = std::ranges::count_if(
        view.stages, [](const StageView& s) { return s.reported && s.overloaded; });
    overloads += overloaded;
    view.summary.values["overloaded_stages"].value = static_cast<double>(overloaded);
  }
  if (overloads == 0)
    for (VariantView& view : run.variants) view.summary.values.erase("overloaded_stages");
  return run;
}

/// The meaning of a label of failed requests.
std::string_view failure_meaning(std::string_view label) {
  if (label == "prompt_too_long") return "prompt and answer are longer than engine.max_model_len";
  if (label == "kv_cache_too_small") return "the prompt does not fit into one server's KV cache";
  if (label == "no_endpoint") return "the router found no server for them";
  if (label == "TimeoutError") return "the client gave up";
  return label;
}

/// Says why requests failed, or else what explains the numbers: each sentence once with all
/// variants it is true of. The basis of step times stands in the verdict.
Notes shared_notes(const Report& report, bool failures) {
  SaidOf said;
  const auto add = [&said](const VariantReport& variant, const std::string& text) {
    if (!text.empty()) entry_of(said, text).push_back(printable(variant.name));
  };
  for (const VariantReport& variant : report.variants) {
    const sim::StageResult& all = variant.result.summary;
    if (failures)
      for (const auto& [label, count] : all.failures_by_label)
        add(variant, std::to_string(count) + " of " + std::to_string(all.requests) +
                         " requests failed: " + std::string(failure_meaning(label)));
    if (failures) continue;
    add(variant, capacity_text(variant));
    for (const std::string& note : variant.result.notes) add(variant, printable(note, 500));
  }
  Notes notes;
  for (const auto& [text, names] : said)
    notes.texts.push_back(comma_list(names, std::identity()) + ": " + text);
  return notes;
}

/// `seed 1`, or each variant's where one has a seed of its own.
std::string seeds_of(const Report& report) {
  if (report.replications) return seeds_text(*report.replications);
  std::string own;
  bool differ = false;
  for (const VariantReport& variant : report.variants) {
    differ = differ || variant.result.seed != report.variants.front().result.seed;
    own += (own.empty() ? "" : "; ") + printable(variant.name) + " seed " +
           std::to_string(variant.result.seed);
  }
  return differ ? own : "seed " + std::to_string(report.seed);
}

/// Adds the tables of one run, each behind an empty line.
void add_tables(const Report& report, const PageRun& run, std::vector<Block>& blocks) {
  const bool published = std::ranges::any_of(
      report.variants, [](const VariantReport& v) { return !v.measured.rows.empty(); });
  std::vector<Table> tables = plain_stages(run, published);
  constexpr std::size_t kMostEvents = 20, kMostMissed = 10;
  for (Table& table : std::array{published_table(run), summary_table(run, false), class_table(run),
                                 fleet_table(run, false), missed_table(run, kMostMissed),
                                 event_table(run, kMostEvents)})
    tables.push_back(std::move(table));
  for (Table& table : tables) {
    if (table.rows.empty()) continue;
    if (table.title.empty()) blocks.push_back({Paragraph{}});
    blocks.push_back({std::move(table)});
  }
}

/// The worst basis of the variants in a line, the number of notes, and what must be known anyway.
std::string brief_trust(const Report& report, const PageRun& run, std::size_t notes) {
  models::Trust worst = models::Trust::kFitted;
  for (const VariantReport& variant : report.variants)
    worst = std::max(worst, variant.result.trust());
  std::string errors;
  for (const TrustError& e : trust_errors())
    if (e.trust == worst && (e.quantity == "output tokens/s" || e.quantity == "TTFT mean"))
      errors += ", " + e.quantity + " ±" + fixed_text(e.mean, 1) + " %";
  return "Worst step times: " + std::string(enum_name(worst)) +
         (errors.empty() ? ", compared with no published number" : errors) + "; " +
         counted(notes, "note") + "." + idle_servers(run) + not_judged(run);
}

/// Leaves only the tables of the whole run; answers how many others there were.
std::size_t drop_tables(std::vector<Block>& blocks) {
  std::size_t dropped = 0;
  for (std::size_t i = 0; i < blocks.size();) {
    const auto* const table = std::get_if<Table>(&blocks[i].content);
    if (table == nullptr || table->columns.front().title == "whole run") {
      ++i;
      continue;
    }
    const auto* const gap = i > 0 ? std::get_if<Paragraph>(&blocks[i - 1].content) : nullptr;
    if (gap != nullptr && gap->text.empty()) blocks.erase(blocks.begin() + std::ptrdiff_t(--i));
    blocks.erase(blocks.begin() + std::ptrdiff_t(i));
    ++dropped;
  }
  return dropped;
}

/// The whole run in short, for a pull request: means, changes in percent and verdicts.
Table markdown_numbers(const ResultSet& set) {
  return whole_run_table(set, kMarkdownMetrics, true);
}

/// The replications, or the numbers of the first seed where there are no others.
ResultSet result_set_of(const Report& report) {
  if (report.replications) return *report.replications;
  std::vector<std::string> names;
  for (const VariantReport& variant : report.variants) names.push_back(variant.name);
  std::vector<MetricName> metrics = standard_metrics();
  if (std::ranges::any_of(report.variants, [](const VariantReport& v) {
        return v.result.summary.tiers.has_value();
      }))
    metrics = metrics_with(std::array{*parse_metric_name("tier_hit_rate").value});
  ResultSetBuilder builder(names, metrics);
  for (std::size_t v = 0; v < names.size(); ++v) builder.add(v, 0, report.variants[v].result);
  return builder.take(builder.complete());
}

}  // namespace

std::string render_text(const Report& report, const TextParts& parts) {
  const PageRun run = page_run(run_record(report), "");
  StudyDocument document;
  document.verdict.judgements = report.expectations;
  std::vector<Block>& blocks = document.blocks;
  if (report.replications) {
    if (report.interrupted)
      blocks.insert(blocks.end(),
                    {{Paragraph{}}, {Paragraph{"interrupted: not all replications were run"}}});
    add_replications(*report.replications, blocks);
  } else {
    add_tables(report, exact_view(report, run), blocks);
  }
  bool overloaded = false;
  for (const VariantReport& variant : report.variants)
    for (const sim::StageResult* stage : reported_stages(variant.result))
      overloaded = overloaded || stage->overloaded();
  const std::size_t dropped = parts.tables ? 0 : drop_tables(blocks);
  overloaded = overloaded && parts.tables;
  Notes shown = shared_notes(report, true);
  const Notes notes = shared_notes(report, false);
  const bool unanswered = std::ranges::any_of(report.variants, [](const VariantReport& v) {
    return v.result.summary.requests == 0;  // A note says why.
  });
  if (parts.explain || unanswered)
    shown.texts.insert(shown.texts.end(), notes.texts.begin(), notes.texts.end());
  if (overloaded || !shown.texts.empty()) blocks.push_back({Paragraph{}});
  if (overloaded)
    blocks.push_back(
        {Paragraph{"! overloaded: the stage is asked for more than it answers, so its latencies "
                   "depend on how long it lasts"}});
  blocks.push_back({std::move(shown)});
  Verdict verdict = verdict_of(run);
  if (!parts.explain) verdict.trust = brief_trust(report, run, notes.texts.size());
  std::string more;
  if (dropped > 0) more = "--tables shows " + counted(dropped, "more table");
  if (!parts.explain)
    more += (more.empty() ? "" : ", ") + std::string("--explain says what the numbers rest on");
  if (!more.empty()) blocks.insert(blocks.end(), {{Paragraph{}}, {Paragraph{more + "."}}});
  std::string out = printable(report.scenario, 200) + ", " + seeds_of(report) + ", routesim " +
                    report.version + "\n";
  if (!report.question.empty()) out += printable(report.question, 500) + "\n";
  return out + render_verdict(verdict, parts.colour, parts.width) +
         draw(document, "table", parts.width);
}

std::string render_markdown(const Report& report) {
  const ResultSet set = result_set_of(report);
  StudyDocument document;
  document.verdict.judgements = report.expectations;
  std::vector<Block>& blocks = document.blocks;
  if (!set.seeds.empty()) blocks.push_back({markdown_numbers(set)});
  for (const VariantValues& v : set.variants) {
    const std::string pooled = pooled_overload(v, "");
    if (!pooled.empty())
      blocks.push_back({Paragraph{"Not judged: " + pooled + "."}});
    else if (v.stages.back().overloaded)
      blocks.push_back(
          {Paragraph{"Overloaded: " + v.name +
                     "; more is asked than answered, so latencies depend on its length."}});
  }
  for (const VariantReport& variant : report.variants)
    if (const std::string band = capacity_text(variant); !band.empty())
      blocks.push_back({Paragraph{variant.name + ": " + band + "."}});
  for (const std::string& line : trust_lines(report)) blocks.push_back({Paragraph{line + "."}});
  std::string out = "### " + markdown_cell(report.scenario) + "\n\n";
  if (!report.question.empty()) out += markdown_cell(report.question) + "\n\n";
  if (report.interrupted) out += "**Interrupted: these results are partial.**\n\n";
  out += draw(document, "markdown");
  out += set.seeds.size() > 1
             ? std::to_string(set.seeds.size()) +
                   " replications; mean ± half width of the 95 % interval, " +
                   (set.all_paired() ? "paired differences."
                                     : "differences of independent runs where loads differ.")
             : "One run (seed " + std::to_string(report.seed) +
                   "), no interval: add `--replications 5` for a verdict.";
  return out + " routesim " + report.version + "\n";
}

std::string render_json(const Report& report) {
  RunRecord record = run_record(report);
  record.verdict = verdict_record(verdict_of(page_run(record, "")));
  return json_text(record);
}

}  // namespace routesim::tools
