#include "tools/ingest/traces/measured_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <set>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/tree/csv_splitter.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/ledger.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

namespace {

struct Named {
  std::string_view key;     ///< In the file.
  std::string_view metric;  ///< In a tidy CSV.
};
constexpr std::array<Named, 5> kLatencies = {{{"time_to_first_token", "ttft"},
                                              {"time_per_output_token", "tpot"},
                                              {"inter_token_latency", "itl"},
                                              {"normalized_time_per_output_token", "ntpot"},
                                              {"request_latency", "request_latency"}}};
constexpr std::array<Named, 4> kStatistics = {
    {{"mean", "mean"}, {"median", "p50"}, {"p90", "p90"}, {"p99", "p99"}}};
constexpr std::array<Named, 4> kBenchLatencies = {
    {{"ttft", "ttft"}, {"tpot", "tpot"}, {"itl", "itl"}, {"e2el", "request_latency"}}};

/// Collects the numbers of one file.
class ResultReader {
 public:
  ResultReader(const ConfigNode& root, std::string policy, MeasuredTable& table,
               Diagnostics& diagnostics)
      : root_(root), policy_(std::move(policy)), table_(table), diagnostics_(diagnostics) {}

  bool is_lifecycle() const { return node_at(root_, {"successes", "latency"}) != nullptr; }
  bool is_vllm_bench() const { return node_at(root_, {"mean_ttft_ms"}) != nullptr; }

  void lifecycle(const std::string& stage, const std::string& source) {
    begin(stage, source);
    for (const Named& latency : kLatencies)
      for (const Named& statistic : kStatistics)
        add(node_at(root_, {"successes", "latency", latency.key, statistic.key}), latency.metric,
            statistic.metric, "s");
    add(node_at(root_, {"successes", "throughput", "output_tokens_per_sec"}), "output_throughput",
        "mean", "tok/s");
    add(node_at(root_, {"successes", "throughput", "requests_per_sec"}), "request_throughput",
        "mean", "req/s");
  }

  void vllm_bench(const std::string& source) {
    begin("main", source);
    for (const Named& latency : kBenchLatencies)
      for (const Named& statistic : kStatistics) {
        const std::string key = std::string(statistic.key) + "_" + std::string(latency.key) + "_ms";
        add(node_at(root_, {key}), latency.metric, statistic.metric, "ms");
      }
    add(node_at(root_, {"output_throughput"}), "output_throughput", "mean", "tok/s");
    add(node_at(root_, {"request_throughput"}), "request_throughput", "mean", "req/s");
    table_.loads.push_back(stated_load());
  }

 private:
  using Stated = std::optional<StatedLoad::At<double>>;

  Stated number(std::string_view key) const {
    const ConfigNode::Ptr node = scalar_at(root_, {key});
    if (node == nullptr) return std::nullopt;
    if (node->text() == "inf")
      return StatedLoad::At<double>{std::numeric_limits<double>::infinity(), node->where()};
    const Parsed<double> value = parse_real(*node, {.min = 0});
    if (!value.value) return std::nullopt;
    return StatedLoad::At<double>{*value.value, node->where()};
  }

  StatedLoad stated_load() const {
    StatedLoad load;
    if (const ConfigNode::Ptr model = scalar_at(root_, {"model_id"});
        model != nullptr && !model->text().empty())
      load.model = {model->text(), model->where()};
    load.request_rate = number("request_rate");
    load.requests = number("num_prompts");
    load.max_concurrency = number("max_concurrency");
    const Stated completed = number("completed");
    if (!completed || completed->value <= 0) return load;
    load.input_tokens = number("total_input_tokens");
    load.output_tokens = number("total_output_tokens");
    for (Stated* tokens : {&load.input_tokens, &load.output_tokens})
      if (*tokens) (*tokens)->value /= completed->value;
    return load;
  }

  void begin(const std::string& stage, const std::string& source) {
    stage_ = stage;
    source_ = source;
  }

  /// Metrics without data are null in the file, and 0 where no request had any.
  void add(const ConfigNode* node, std::string_view metric, std::string_view statistic,
           std::string_view unit) {
    if (node == nullptr || node->is_null()) return;
    if (node->is_scalar() && node->text() == "NaN") return;  // Python's way to say it.
    const Parsed<double> value = parse_real(*node, {.min = 0});
    if (!value.value)
      diagnostics_.error(node->where(), "", std::string(metric) + " " + value.message);
    if (!value.value || *value.value <= 0) return;
    table_.rows.push_back({.experiment = {},
                           .policy = policy_,
                           .stage = stage_,
                           .rate = {},
                           .metric = std::string(metric),
                           .statistic = std::string(statistic),
                           .unit = std::string(unit),
                           .value = *value.value,
                           .source = source_,
                           .line = static_cast<int>(table_.rows.size()) + 1});
  }

  const ConfigNode& root_;
  std::string policy_;
  MeasuredTable& table_;
  Diagnostics& diagnostics_;
  std::string stage_;
  std::string source_;
};

/// The `<i>` of `stage_<i>_lifecycle_metrics.json`, or "".
std::string stage_number(const std::string& name) {
  constexpr std::string_view kBefore = "stage_";
  constexpr std::string_view kAfter = "_lifecycle_metrics.json";
  if (!name.starts_with(kBefore) || !name.ends_with(kAfter)) return {};
  if (name.size() <= kBefore.size() + kAfter.size()) return {};
  const std::string number =
      name.substr(kBefore.size(), name.size() - kBefore.size() - kAfter.size());
  const bool digits =
      std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits ? number : std::string();
}

void read_tool_result(const std::string& path, const std::string& policy, MeasuredTable& table,
                      Diagnostics& diagnostics) {
  const ConfigNode::Ptr root = read_config_file(path, diagnostics);
  if (root == nullptr) return;
  const std::string name = std::filesystem::path(path).filename().string();
  if (const ConfigNode* const mark = root->child("interrupted");
      mark != nullptr && mark->text() == "true") {
    diagnostics.error(mark->where(), "interrupted",
                      "is a result of an interrupted run: its numbers are partial",
                      "name the result of a complete run");
    return;
  }
  ResultReader reader(*root, policy, table, diagnostics);
  if (reader.is_vllm_bench()) {
    note_keys(*root, {}, key_table("vllm bench result"), nullptr, diagnostics);
    return reader.vllm_bench(name);
  }
  const std::string stage = stage_number(name);
  if (reader.is_lifecycle())
    note_keys(*root, {}, key_table("inference-perf report"), nullptr, diagnostics);
  if (reader.is_lifecycle() && !stage.empty()) return reader.lifecycle(stage, name);
  diagnostics.error(root->where(), "",
                    "is neither inference-perf's stage_<i>_lifecycle_metrics.json nor a result of "
                    "`vllm bench serve`",
                    reader.is_lifecycle() ? "it sums up all stages: name the folder it is in" : "");
}

/// Names a kind of result that is not read; "" when the text may be a CSV.
std::string other_result(std::string_view text) {
  const bool has_version = text.starts_with("version:") || text.find("\nversion:") < text.size();
  return has_version && text.find("\nscenario:") < text.size() ? "a Benchmark Report" : "";
}

std::vector<std::string> stage_files(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(folder, code))
    if (!stage_number(entry.path().filename().string()).empty())
      paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

MeasuredTable read_measured(const std::string& path, const std::string& policy,
                            const SourceLocation& where, const std::string& key,
                            Diagnostics& diagnostics) {
  std::error_code code;
  const bool folder = std::filesystem::is_directory(path, code);
  MeasuredTable table{.file = path, .rows = {}};
  std::string text;
  if (!folder && !read_text_file(path, where, key, ConfigLimits{}.max_bytes, text, diagnostics))
    return {};
  if (const std::string kind = other_result(text); !kind.empty()) {
    diagnostics.error({.file = path, .line = 1, .column = 1}, "",
                      "is " + kind + ", which is not read",
                      "name the results of the load tool it was made from");
    return {};
  }
  if (!folder && !path.ends_with(".json"))
    return parse_measured_csv(text, path, diagnostics).value_or(MeasuredTable{});
  if (policy.empty()) {
    diagnostics.error(where, "measured.policy", "is missing: results of a load tool need a name",
                      "any name will do, it tells which variant the results are of");
    return {};
  }
  const std::vector<std::string> files = folder ? stage_files(path) : std::vector{path};
  if (files.empty())
    diagnostics.error(where, key,
                      "no stage_<i>_lifecycle_metrics.json is in " + printable(path, 200));
  for (const std::string& file : files) read_tool_result(file, policy, table, diagnostics);
  return table;
}

namespace {

constexpr std::array<std::string_view, 9> kColumns = {
    "experiment", "policy", "stage", "rate", "metric", "statistic", "unit", "value", "source"};

bool check_header(const std::vector<std::string>& fields, const std::vector<SourceLocation>& places,
                  const std::string& file, Diagnostics& diagnostics) {
  if (std::equal(fields.begin(), fields.end(), kColumns.begin(), kColumns.end())) return true;
  std::size_t wrong = 0;
  while (wrong < std::min(fields.size(), kColumns.size()) && fields[wrong] == kColumns[wrong])
    ++wrong;
  const auto join = [](const auto& names) {
    std::string joined;
    for (const std::string_view name : names) joined.append(joined.empty() ? "" : ",").append(name);
    return joined;
  };
  diagnostics.error(
      wrong < places.size() ? places[wrong] : SourceLocation{.file = file, .line = 1, .column = 1},
      "", "the header must be " + join(kColumns) + " (got " + printable(join(fields), 100) + ")");
  return false;
}

}  // namespace

std::optional<MeasuredTable> parse_measured_csv(const std::string& text, const std::string& file,
                                                Diagnostics& diagnostics) {
  MeasuredTable table{.file = file, .rows = {}};
  Diagnostics found;
  CsvSplitter splitter(text, file, found);
  std::vector<std::string> fields;
  std::vector<SourceLocation> places;
  (void)splitter.next(fields, places);
  if (check_header(fields, places, file, found)) {
    std::set<std::array<std::string, 6>> seen;
    while (splitter.next(fields, places)) {
      if (fields.size() != kColumns.size()) {
        // At the first field too many, or where the next one is missing.
        found.error(places[std::min(fields.size(), kColumns.size())], "",
                    "must have 9 fields (got " + std::to_string(fields.size()) + ")");
        continue;
      }
      const Parsed<double> value = parse_real(*untyped(fields[7], places[7]), {});
      if (!value.value) {
        found.error(places[7], "value", value.message, value.hint);
        continue;
      }
      if (!seen.insert({fields[0], fields[1], fields[2], fields[4], fields[5], fields[6]}).second)
        found.error(places[0], "",
                    "repeats an earlier row of the same stage, metric and statistic");
      table.rows.push_back({.experiment = fields[0],
                            .policy = fields[1],
                            .stage = fields[2],
                            .rate = fields[3],
                            .metric = fields[4],
                            .statistic = fields[5],
                            .unit = fields[6],
                            .value = *value.value,
                            .source = fields[8],
                            .line = places[0].line});
    }
  }
  append(diagnostics, found);
  if (found.has_errors()) return std::nullopt;
  return table;
}

MeasuredTable select_rows(const MeasuredTable& table, const std::string& experiment,
                          const std::string& policy) {
  MeasuredTable out{.file = table.file, .rows = {}};
  for (const MeasuredRow& row : table.rows)
    if (row.policy == policy && (experiment.empty() || row.experiment == experiment))
      out.rows.push_back(row);
  return out;
}

}  // namespace routesim::tools
