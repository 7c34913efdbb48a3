#include <algorithm>
#include <array>
#include <cmath>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/render/render.h"
#include "tools/results/metrics.h"
#include "tools/results/report.h"
#include "tools/results/text_table.h"
#include "tools/study/run/render_run.h"
#include "tools/study/verdict/run_verdict.h"

namespace routesim::tools {

namespace {

using sim::StageResult;

/// A column of the tables: what to show, in which unit, with how many decimals.
struct TextColumn {
  std::string_view title;
  std::string_view metric;
  std::string_view statistic;
  double scale;  ///< Of the base unit.
  int decimals;
};

constexpr std::array<TextColumn, 4> kLadder = {{
    {"Output tokens/s", "output_throughput", "mean", 1, 0},
    {"TTFT mean, s", "ttft", "mean", 1, 3},
    {"TTFT p90, s", "ttft", "p90", 1, 3},
    {"ITL mean, ms", "itl", "mean", 1e3, 1},
}};

constexpr std::array<TextColumn, 12> kSummary = {{
    {"requests sent/s", "requests_per_sec_sent", "mean", 1, 2},
    {"output tokens/s", "output_throughput", "mean", 1, 0},
    {"total tokens/s", "total_throughput", "mean", 1, 0},
    {"TTFT mean, s", "ttft", "mean", 1, 3},
    {"TTFT p90, s", "ttft", "p90", 1, 3},
    {"TTFT p99, s", "ttft", "p99", 1, 3},
    {"ITL mean, ms", "itl", "mean", 1e3, 1},
    {"ITL p99, ms", "itl", "p99", 1e3, 1},
    {"TPOT mean, ms", "tpot", "mean", 1e3, 1},
    {"E2E latency mean, s", "request_latency", "mean", 1, 2},
    {"E2E latency p99, s", "request_latency", "p99", 1, 2},
    {"prefix cache hits, %", "prefix_cache_hit_rate", "mean", 100, 1},
}};

/// The columns of runs in which some pool has KV tiers.
constexpr std::array<TextColumn, 5> kTiers = {{
    {"tier hits, %", "tier_hit_rate", "mean", 100, 1},
    {"loaded from tiers, GB", "tier_loaded_gigabytes", "total", 1, 1},
    {"wait for a load, s", "tier_load_wait", "mean", 1, 3},
    {"pulled from servers, GB", "tier_pulled_gigabytes", "total", 1, 1},
    {"wait for a pull, s", "tier_pull_wait", "mean", 1, 3},
}};

std::string shown_text(const std::optional<double>& value, const TextColumn& shown) {
  return value ? fixed_text(*value * shown.scale, shown.decimals) : "-";
}

std::string change_text(const std::optional<double>& from, const std::optional<double>& to) {
  if (!from || !to || *from == 0) return "-";
  return signed_percent(error_percent(*to, *from));
}

/// Stages are marked so whose queue grew until they ended.
std::string marked(const StageResult& stage, const std::string& number) {
  return stage.overloaded() ? "! " + number : number;
}

std::optional<double> simulated(const StageResult& stage, const TextColumn& shown) {
  return metric_value(stage, shown.metric, shown.statistic, "");
}

std::string rate_text(const StageResult& stage) {
  if (stage.info.concurrency > 0) return "c=" + std::to_string(stage.info.concurrency);
  const double rate = stage.info.requested_rate;
  if (!std::isfinite(rate)) return "inf";
  // A rate that was asked for is shown as it is; the mean rate of a trace has no round digits.
  const std::string exact = number_text(rate);
  return exact.size() <= 7 ? exact : fixed_text(rate, rate < 0.1 ? 5 : rate < 10 ? 3 : 1);
}

bool measured_anywhere(const VariantReport& variant, const TextColumn& shown) {
  for (const StageResult* stage : reported_stages(variant.result))
    if (measured_value(variant, *stage, shown.metric, shown.statistic)) return true;
  return false;
}

/// Mean absolute error over the stages that have a published value.
struct MeanError {
  double sum = 0;
  int count = 0;
  void add(const std::optional<double>& simulated_value, const std::optional<double>& measured) {
    if (!simulated_value || !measured || *measured == 0) return;
    sum += std::abs(error_percent(*simulated_value, *measured));
    ++count;
  }
  std::string text() const { return count > 0 ? fixed_text(sum / count, 1) : "-"; }
};

/// One metric, stage by stage: every variant beside its published numbers, then each variant's
/// difference to the first.
class LadderTable {
 public:
  LadderTable(const Report& report, const TextColumn& shown) : report_(report), shown_(shown) {
    for (const VariantReport& variant : report.variants) {
      stages_.push_back(reported_stages(variant.result));
      has_measured_.push_back(measured_anywhere(variant, shown));
    }
  }

  std::string str() {
    std::vector<std::string> head = {"stage", "rate"};
    for (std::size_t v = 0; v < report_.variants.size(); ++v) {
      const std::size_t first = head.size();
      head.emplace_back("simulated");
      if (has_measured_[v]) head.insert(head.end(), {"measured", "err %"});
      table_.add_heading(first, head.size() - first, printable(report_.variants[v].name));
    }
    for (std::size_t v = 1; v < report_.variants.size(); ++v) {
      const std::size_t first = head.size();
      head.emplace_back("simulated");
      if (has_measured_[0] && has_measured_[v]) head.emplace_back("measured");
      table_.add_heading(first, head.size() - first, "change %");
    }
    table_.add_row(std::move(head));
    errors_.resize(report_.variants.size());
    for (std::size_t i = 0; i < stages_[0].size(); ++i) add_stage(i);
    add_errors();
    return std::string(shown_.title) + "\n" + table_.str();
  }

 private:
  std::optional<double> measured(std::size_t v, const StageResult& stage) const {
    return measured_value(report_.variants[v], stage, shown_.metric, shown_.statistic);
  }

  void add_stage(std::size_t i) {
    std::vector<std::string> row = {printable(stages_[0][i]->info.name), rates_text(i)};
    std::vector<std::optional<double>> values;
    std::vector<std::optional<double>> truths;
    for (std::size_t v = 0; v < stages_.size(); ++v) {
      const bool exists = i < stages_[v].size();
      values.push_back(exists ? simulated(*stages_[v][i], shown_) : std::nullopt);
      truths.push_back(exists ? measured(v, *stages_[v][i]) : std::nullopt);
      const std::string number = shown_text(values[v], shown_);
      row.push_back(exists ? marked(*stages_[v][i], number) : number);
      if (!has_measured_[v]) continue;
      row.push_back(shown_text(truths[v], shown_));
      row.push_back(change_text(truths[v], values[v]));
      errors_[v].add(values[v], truths[v]);
    }
    for (std::size_t v = 1; v < stages_.size(); ++v) {
      row.push_back(change_text(values[0], values[v]));
      if (has_measured_[0] && has_measured_[v]) row.push_back(change_text(truths[0], truths[v]));
    }
    table_.add_row(std::move(row));
  }

  /// One rate, or one of each variant where the load found them by itself.
  std::string rates_text(std::size_t i) const {
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

  void add_errors() {
    bool any = false;
    std::vector<std::string> row = {"mean |err|", ""};
    for (std::size_t v = 0; v < stages_.size(); ++v) {
      row.emplace_back("");
      if (!has_measured_[v]) continue;
      row.emplace_back("");
      row.push_back(errors_[v].text());
      any = true;
    }
    if (any) table_.add_row(std::move(row));
  }

  const Report& report_;
  const TextColumn& shown_;
  std::vector<std::vector<const StageResult*>> stages_;
  std::vector<bool> has_measured_;
  std::vector<MeanError> errors_;
  TextTable table_{1};
};

/// One variant, nothing to compare with: one row per stage, one column per metric.
std::string plain_stages(const VariantReport& variant) {
  TextTable table(1);
  std::vector<std::string> head = {"stage", "rate", "requests", "failed"};
  for (const TextColumn& shown : kLadder) head.emplace_back(shown.title);
  head.emplace_back("hits, %");
  table.add_row(std::move(head));
  for (const StageResult* stage : reported_stages(variant.result)) {
    std::vector<std::string> row = {printable(stage->info.name), rate_text(*stage),
                                    std::to_string(stage->requests),
                                    std::to_string(stage->failures)};
    for (const TextColumn& shown : kLadder)
      row.push_back(marked(*stage, shown_text(simulated(*stage, shown), shown)));
    row.push_back(fixed_text(100 * stage->prefix_hit_ratio(), 1));
    table.add_row(std::move(row));
  }
  return table.str();
}

struct PublishedRow {
  std::string metric;
  std::string statistic;
  std::string unit;
};

/// The rows in which the publication sums up its ladder, in the order of the file.
std::vector<PublishedRow> published_summary(const Report& report) {
  std::vector<PublishedRow> rows;
  for (const VariantReport& variant : report.variants)
    for (const MeasuredRow& row : variant.measured.rows) {
      const auto same = [&](const PublishedRow& other) {
        return other.metric == row.metric && other.statistic == row.statistic &&
               other.unit == row.unit;
      };
      const auto stages = reported_stages(variant.result);
      if (row.stage == "all" && std::none_of(rows.begin(), rows.end(), same) &&
          ladder_value(stages, row.metric, row.statistic, row.unit))
        rows.push_back({row.metric, row.statistic, row.unit});
    }
  return rows;
}

std::optional<double> published(const VariantReport& variant, const PublishedRow& wanted) {
  for (const MeasuredRow& row : variant.measured.rows)
    if (row.stage == "all" && row.metric == wanted.metric && row.statistic == wanted.statistic &&
        row.unit == wanted.unit)
      return row.value;
  return std::nullopt;
}

std::string published_table(const Report& report) {
  const std::vector<PublishedRow> rows = published_summary(report);
  if (rows.empty()) return {};
  TextTable table(1);
  std::vector<std::string> head = {"published summary row"};
  for (const VariantReport& variant : report.variants) {
    table.add_heading(head.size(), 3, printable(variant.name));
    head.insert(head.end(), {"simulated", "measured", "err %"});
  }
  for (std::size_t v = 1; v < report.variants.size(); ++v) {
    table.add_heading(head.size(), 2, "change %");
    head.insert(head.end(), {"simulated", "measured"});
  }
  table.add_row(std::move(head));
  for (const PublishedRow& row : rows) {
    const std::string statistic = row.statistic.substr(0, row.statistic.find(" ("));
    std::vector<std::string> cells = {row.metric + " " + statistic + ", " + row.unit};
    std::vector<std::optional<double>> values;
    std::vector<std::optional<double>> truths;
    for (const VariantReport& variant : report.variants) {
      values.push_back(
          ladder_value(reported_stages(variant.result), row.metric, row.statistic, row.unit));
      truths.push_back(published(variant, row));
      const int decimals = values.back() && std::abs(*values.back()) >= 1000 ? 0 : 3;
      cells.push_back(values.back() ? fixed_text(*values.back(), decimals) : "-");
      cells.push_back(truths.back() ? fixed_text(*truths.back(), decimals) : "-");
      cells.push_back(change_text(truths.back(), values.back()));
    }
    for (std::size_t v = 1; v < values.size(); ++v) {
      cells.push_back(change_text(values[0], values[v]));
      cells.push_back(change_text(truths[0], truths[v]));
    }
    table.add_row(std::move(cells));
  }
  return table.str();
}

std::string summary_table(const Report& report) {
  TextTable table(1);
  std::vector<std::string> head = {"whole run"};
  for (const VariantReport& variant : report.variants) head.push_back(printable(variant.name));
  table.add_row(std::move(head));
  const auto add = [&](const std::string& title, const auto& cell) {
    std::vector<std::string> row = {title};
    for (const VariantReport& variant : report.variants) row.push_back(cell(variant));
    table.add_row(std::move(row));
  };
  add("requests", [](const auto& v) { return std::to_string(v.result.summary.requests); });
  add("failures", [](const auto& v) { return std::to_string(v.result.summary.failures); });
  for (const TextColumn& shown : kSummary)
    add(std::string(shown.title),
        [&](const auto& v) { return shown_text(simulated(v.result.summary, shown), shown); });
  const bool tiers = std::any_of(report.variants.begin(), report.variants.end(),
                                 [](const auto& v) { return v.result.summary.tiers.has_value(); });
  for (const TextColumn& shown : kTiers)
    if (tiers)
      add(std::string(shown.title),
          [&](const auto& v) { return shown_text(simulated(v.result.summary, shown), shown); });
  constexpr TextColumn kGoodput{"requests within goals, %", "goodput", "mean", 100, 1};
  if (std::any_of(report.variants.begin(), report.variants.end(),
                  [](const auto& v) { return v.result.summary.good_requests.has_value(); }))
    add(std::string(kGoodput.title),
        [&](const auto& v) { return shown_text(simulated(v.result.summary, kGoodput), kGoodput); });
  if (std::any_of(report.variants.begin(), report.variants.end(),
                  [](const auto& v) { return v.result.summary.overloaded(); }))
    add("overloaded stages", [](const auto& v) {
      const auto stages = reported_stages(v.result);
      const auto n = std::count_if(stages.begin(), stages.end(),
                                   [](const StageResult* s) { return s->overloaded(); });
      return std::to_string(n) + " of " + std::to_string(stages.size());
    });
  add("preemptions", [](const auto& v) { return std::to_string(v.result.summary.preemptions); });
  if (std::any_of(report.variants.begin(), report.variants.end(),
                  [](const auto& v) { return v.result.routing.priced; }))
    add("regret per decision, s", [](const auto& v) {
      return v.result.routing.priced ? fixed_text(v.result.routing.mean_regret_s(), 2) : "-";
    });
  constexpr std::array<std::pair<const char*, std::int64_t sim::GatewayResult::*>, 3> kGateway = {
      {{"refused by the gateway", &sim::GatewayResult::refused},
       {"retried by the gateway", &sim::GatewayResult::retries},
       {"most in flight at the gateway", &sim::GatewayResult::most_in_flight}}};
  if (std::any_of(report.variants.begin(), report.variants.end(),
                  [](const auto& v) { return v.result.routing.gateway.has_value(); }))
    for (const auto& [title, value] : kGateway)
      add(title, [value = value](const auto& v) {
        const auto& gateway = v.result.routing.gateway;
        return gateway ? std::to_string((*gateway).*value) : std::string("-");
      });
  add("router decisions", [](const auto& v) { return std::to_string(v.result.routing.decisions); });
  return table.str();
}

/// The traffic classes of every variant; empty without classes.
std::string class_table(const Report& report) {
  constexpr std::array<TextColumn, 5> kShown = {
      {{"tok/s", "output_throughput", "mean", 1, 0},
       {"TTFT mean s", "ttft", "mean", 1, 3},
       {"TTFT p99 s", "ttft", "p99", 1, 3},
       {"TPOT mean ms", "tpot", "mean", 1000, 1},
       {"latency p99 s", "request_latency", "p99", 1, 2}}};
  if (std::all_of(report.variants.begin(), report.variants.end(),
                  [](const auto& v) { return v.result.classes.empty(); }))
    return {};
  TextTable table(2);
  std::vector<std::string> head = {"traffic class", "variant", "requests", "failures"};
  for (const TextColumn& shown : kShown) head.emplace_back(shown.title);
  table.add_row(std::move(head));
  for (const VariantReport& variant : report.variants)
    for (const StageResult& requests : variant.result.classes) {
      std::vector<std::string> row = {printable(requests.info.name), printable(variant.name),
                                      std::to_string(requests.requests),
                                      std::to_string(requests.failures)};
      for (const TextColumn& shown : kShown)
        row.push_back(shown_text(simulated(requests, shown), shown));
      table.add_row(std::move(row));
    }
  return "\n" + table.str();
}

/// The meaning of a label of failed requests.
std::string_view failure_meaning(std::string_view label) {
  if (label == "prompt_too_long") return "prompt and answer are longer than engine.max_model_len";
  if (label == "kv_cache_too_small") return "the prompt does not fit into one server's KV cache";
  if (label == "no_endpoint") return "the router found no server for them";
  if (label == "TimeoutError") return "the client gave up";
  return label;
}

/// The notes that explain the numbers, each sentence once with all variants it is true of. The
/// basis of step times stands in the verdict.
std::string notes(const Report& report) {
  std::vector<std::pair<std::string, std::string>> said;  // The sentence and whose it is.
  const auto add = [&said](const VariantReport& variant, const std::string& text) {
    if (text.empty()) return;
    const auto same = std::ranges::find(said, text, &std::pair<std::string, std::string>::first);
    if (same == said.end())
      said.emplace_back(text, printable(variant.name));
    else
      same->second += ", " + printable(variant.name);
  };
  bool overloaded = false;
  for (const VariantReport& variant : report.variants) {
    const sim::StageResult& all = variant.result.summary;
    for (const auto& [label, count] : all.failures_by_label)
      add(variant, std::to_string(count) + " of " + std::to_string(all.requests) +
                       " requests failed: " + std::string(failure_meaning(label)));
    for (const StageResult* stage : reported_stages(variant.result))
      overloaded = overloaded || stage->overloaded();
    add(variant, capacity_text(variant));
    for (const std::string& note : variant.result.notes) add(variant, printable(note, 500));
  }
  std::string out;
  if (overloaded)
    out +=
        "! overloaded: the stage is asked for more than it answers, so its latencies depend on how "
        "long it lasts\n";
  for (const auto& [text, names] : said)
    out.append("note: ").append(names).append(": ").append(text).append("\n");
  return out;
}

/// `seed 1`, or each variant's where one has a seed of its own.
std::string seeds_of(const Report& report) {
  std::string own;
  bool differ = false;
  for (const VariantReport& variant : report.variants) {
    differ = differ || variant.result.seed != report.variants.front().result.seed;
    own += (own.empty() ? "" : "; ") + printable(variant.name) + " seed " +
           std::to_string(variant.result.seed);
  }
  return differ ? own : "seed " + std::to_string(report.seed);
}

/// Many variants, or several loads: one row per stage and variant, because columns of all variants
/// are wider than a screen. Variants that face the same stages stand below each other.
std::string stage_rows(const Report& report) {
  TextTable table(3);
  std::vector<std::string> head = {"stage", "rate", "variant", "requests", "failed"};
  for (const TextColumn& shown : kLadder) head.emplace_back(shown.title);
  head.emplace_back("hits, %");
  table.add_row(std::move(head));
  std::vector<std::pair<std::size_t, const VariantReport*>> rows;
  for (const VariantReport& variant : report.variants)
    for (std::size_t i = 0; i < reported_stages(variant.result).size(); ++i)
      rows.emplace_back(i, &variant);
  const bool scan = !report.variants.front().scan_of.empty();
  if (!scan) std::ranges::stable_sort(rows, {}, [](const auto& row) { return row.first; });
  for (const auto& [i, variant] : rows) {
    const StageResult& stage = *reported_stages(variant->result)[i];
    std::vector<std::string> row = {printable(stage.info.name), rate_text(stage),
                                    printable(variant->name), std::to_string(stage.requests),
                                    std::to_string(stage.failures)};
    for (const TextColumn& shown : kLadder)
      row.push_back(marked(stage, shown_text(simulated(stage, shown), shown)));
    row.push_back(fixed_text(100 * stage.prefix_hit_ratio(), 1));
    table.add_row(std::move(row));
  }
  return table.str();
}

/// The stages of the first seed.
std::string stages_text(const Report& report) {
  constexpr std::size_t kMostSideBySide = 3;
  bool measured = false;
  for (const VariantReport& variant : report.variants)
    measured = measured || !variant.measured.rows.empty();
  if (report.variants.empty()) return {};
  if (report.variants.size() == 1 && !measured) return "\n" + plain_stages(report.variants.front());
  if (!measured && (report.variants.size() > kMostSideBySide || !report.command.scan.empty()))
    return "\n" + stage_rows(report);
  std::string out;
  for (const TextColumn& shown : kLadder) out.append("\n").append(LadderTable(report, shown).str());
  return out;
}

}  // namespace

std::string render_text(const Report& report, bool colour) {
  const std::string seeds =
      report.replications ? seeds_text(*report.replications) : seeds_of(report);
  std::string out =
      printable(report.scenario, 200) + ", " + seeds + ", routesim " + report.version + "\n";
  if (!report.question.empty()) out += printable(report.question, 500) + "\n";
  const std::string expected = judgements_text(report.expectations);
  if (!expected.empty()) out.append("\n").append(expected);
  if (report.replications) {
    if (report.interrupted) out += "\ninterrupted: not all replications were run\n";
    out.append("\n").append(replications_text(*report.replications));
  } else {
    out += stages_text(report);
    const std::string published_rows = published_table(report);
    if (!published_rows.empty()) out.append("\n").append(published_rows);
    out.append("\n").append(summary_table(report)).append(class_table(report));
  }
  const std::string note_lines = notes(report);
  if (!note_lines.empty()) out.append("\n").append(note_lines);
  return out + render_verdict(verdict_of(report), colour);
}

}  // namespace routesim::tools
