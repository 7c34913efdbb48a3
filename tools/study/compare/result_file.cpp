#include "tools/study/compare/result_file.h"

#include <array>
#include <cmath>
#include <limits>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/config_file.h"
#include "tools/render/page_data.h"

namespace routesim::tools {

namespace {

using Ptr = ConfigNode::Ptr;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr char kHint[] = "this must be a file made by `routesim run --output json=PATH`";

/// Where a number stands in a stage report.
struct Place {
  std::string_view metric;
  std::string_view path;  ///< Dotted; for metrics with statistics, the statistic follows.
};
constexpr std::array<Place, 22> kPlaces = {{
    {"ttft", "successes.latency.time_to_first_token"},
    {"tpot", "successes.latency.time_per_output_token"},
    {"ntpot", "successes.latency.normalized_time_per_output_token"},
    {"itl", "successes.latency.inter_token_latency"},
    {"request_latency", "successes.latency.request_latency"},
    {"schedule_delay", "load_summary.schedule_delay"},
    {"input_length", "successes.prompt_len"},
    {"output_length", "successes.output_len"},
    {"kv_cache_usage", "kv_cache_usage"},
    {"output_throughput", "successes.throughput.output_tokens_per_sec"},
    {"input_throughput", "successes.throughput.input_tokens_per_sec"},
    {"total_throughput", "successes.throughput.total_tokens_per_sec"},
    {"request_throughput", "successes.throughput.requests_per_sec"},
    {"requests_per_sec_sent", "load_summary.achieved_rate"},
    {"benchmark_duration", "benchmark_time_seconds"},
    {"successful_requests", "successes.count"},
    {"failed_requests", "failures.count"},
    {"preemptions", "preemptions"},
    {"prefix_cache_hit_rate", "prefix_hit_ratio"},
    {"failure_rate", "failures.count"},
    {"goodput", "goodput.good_requests"},
    {"good_request_throughput", "goodput.requests_per_sec"},
}};

/// The node at a dotted path, or null.
const ConfigNode* descend(const ConfigNode& from, std::string_view path) {
  const ConfigNode* node = &from;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    if (!node->is_map()) return nullptr;
    const ConfigNode::Member* const member = node->find(path.substr(0, dot));
    if (member == nullptr) return nullptr;
    node = member->value.get();
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return node;
}

/// Reads one file; every complaint carries the place of the value.
class Reader {
 public:
  Reader(std::span<const MetricName> metrics, Diagnostics& diagnostics)
      : metrics_(metrics), diagnostics_(diagnostics) {}

  ResultSet read(const ConfigNode& root) {
    ResultSet set;
    set.scenario = text(root, "scenario", "");
    set.version = text(root, "version", "");
    const ConfigNode::Member* const replications = root.find("replications");
    if (replications != nullptr) {
      read_replications(*replications->value, set);
    } else {
      if (const ConfigNode* const seed = member(root, "seed", ""))
        set.seeds.push_back(seed_at(*seed, "seed"));
      set.metrics.assign(metrics_.begin(), metrics_.end());
      const std::vector<Ptr> variants = list(root, "variants", "");
      for (std::size_t v = 0; v < variants.size(); ++v)
        set.variants.push_back(variant_of(*variants[v], element_path("variants", v), nullptr));
    }
    read_trust(root, set);
    if (set.variants.empty() && !diagnostics_.has_errors())
      complain(root, "variants", "has no variant");
    return set;
  }

 private:
  /// Files of early builds do not say what their results rest on.
  static void read_trust(const ConfigNode& root, ResultSet& set) {
    const ConfigNode* const variants = descend(root, "variants");
    if (variants == nullptr || !variants->is_sequence()) return;
    for (const Ptr& variant : variants->items()) {
      const ConfigNode* const name = descend(*variant, "name");
      const ConfigNode* const trust = descend(*variant, "trust.text");
      if (name == nullptr || trust == nullptr) continue;
      for (VariantValues& values : set.variants)
        if (values.name == name->text()) values.trust = trust->text();
    }
  }

  void complain(const ConfigNode& at, const std::string& path, const std::string& what) {
    diagnostics_.error(at.where(), path, what, kHint);
  }

  const ConfigNode* member(const ConfigNode& map, std::string_view key, const std::string& path) {
    if (!map.is_map()) {
      complain(map, path, "must be a map (" + got(map) + ")");
      return nullptr;
    }
    const ConfigNode::Member* const found = map.find(key);
    if (found == nullptr) complain(map, child_path(path, key), "is missing");
    return found != nullptr ? found->value.get() : nullptr;
  }

  std::string text(const ConfigNode& map, std::string_view key, const std::string& path) {
    const ConfigNode* const node = member(map, key, path);
    if (node == nullptr) return {};
    const Parsed<std::string> parsed = parse_text(*node);
    if (!parsed.value) complain(*node, child_path(path, key), parsed.message);
    return parsed.value.value_or("");
  }

  double number_at(const ConfigNode& node, const std::string& path) {
    const Parsed<double> parsed = parse_real(node, {});
    if (!parsed.value) complain(node, path, parsed.message);
    return parsed.value.value_or(kNone);
  }

  std::uint64_t seed_at(const ConfigNode& node, const std::string& path) {
    const Parsed<std::int64_t> parsed = parse_integer(node, IntRange{0});
    if (!parsed.value) complain(node, path, parsed.message);
    return static_cast<std::uint64_t>(parsed.value.value_or(0));
  }

  std::vector<Ptr> list(const ConfigNode& map, std::string_view key, const std::string& path) {
    const ConfigNode* const node = member(map, key, path);
    if (node == nullptr) return {};
    if (node->is_sequence()) return node->items();
    complain(*node, child_path(path, key), "must be a list (" + got(*node) + ")");
    return {};
  }

  void read_replications(const ConfigNode& block, ResultSet& set) {
    const std::string path = "replications";
    for (const Ptr& seed : list(block, "seeds", path))
      set.seeds.push_back(seed_at(*seed, "replications.seeds"));
    if (set.seeds.empty()) complain(block, "replications.seeds", "has no seed");
    const std::vector<Ptr> variants = list(block, "variants", path);
    if (!variants.empty()) read_metric_names(*variants.front(), set);
    for (std::size_t v = 0; v < variants.size(); ++v)
      set.variants.push_back(
          variant_of(*variants[v], element_path("replications.variants", v), &set));
  }

  void read_metric_names(const ConfigNode& variant, ResultSet& set) {
    const ConfigNode* const metrics = descend(variant, "summary.metrics");
    if (metrics == nullptr || !metrics->is_map()) {
      complain(variant, "replications.variants[0].summary.metrics", "is missing");
      return;
    }
    for (const ConfigNode::Member& m : metrics->members()) {
      Parsed<MetricName> name = parse_metric_name(m.key);
      if (name.value) {
        set.metrics.push_back(std::move(*name.value));
      } else {
        diagnostics_.error(m.key_where, "replications.variants[0].summary.metrics", name.message,
                           name.hint);
      }
    }
  }

  /// `set` = null: a single run, whose numbers stand in its stage reports.
  VariantValues variant_of(const ConfigNode& node, const std::string& path, const ResultSet* set) {
    VariantValues out{.name = text(node, "name", path), .stages = {}};
    if (set != nullptr && node.find("seeds") != nullptr)
      for (const Ptr& seed : list(node, "seeds", path))
        out.seeds.push_back(seed_at(*seed, child_path(path, "seeds")));
    if (set == nullptr)
      if (const ConfigNode* const seed = descend(node, "resolved.seed"))
        out.seeds.push_back(seed_at(*seed, child_path(path, "resolved.seed")));
    const std::vector<Ptr> stages = list(node, "stages", path);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const std::string at = element_path(child_path(path, "stages"), s);
      StageValues stage = stage_of(*stages[s], at, set);
      stage.stage = text(*stages[s], "name", at);
      if (const ConfigNode* reported = descend(*stages[s], "reported"))
        stage.reported = reported->text() != "false";
      if (const ConfigNode* overloaded = descend(*stages[s], "overloaded"))
        stage.overloaded = overloaded->text() == "true";
      out.stages.push_back(std::move(stage));
    }
    const ConfigNode* const summary = member(node, "summary", path);
    out.stages.push_back(summary != nullptr ? stage_of(*summary, child_path(path, "summary"), set)
                                            : StageValues{});
    for (const StageValues& stage : out.stages)
      if (stage.reported && stage.overloaded) out.stages.back().overloaded = true;
    return out;
  }

  StageValues stage_of(const ConfigNode& node, const std::string& path, const ResultSet* set) {
    StageValues out;
    if (set == nullptr) {
      for (const MetricName& m : metrics_) out.values.push_back({report_value(node, m, path)});
      return out;
    }
    const ConfigNode* const metrics = member(node, "metrics", path);
    for (const MetricName& m : set->metrics)
      out.values.push_back(series(metrics, m, child_path(path, "metrics"), set->seeds.size()));
    return out;
  }

  std::vector<double> series(const ConfigNode* metrics, const MetricName& m,
                             const std::string& path, std::size_t seeds) {
    std::vector<double> values(seeds, kNone);
    // The metric's name has a dot of its own, so it is no path to descend.
    const ConfigNode* const entry = metrics != nullptr ? member(*metrics, m.text, path) : nullptr;
    if (entry == nullptr || entry->is_null()) return values;
    const std::string at = child_path(path, m.text);
    const std::vector<Ptr> items = list(*entry, "values", at);
    if (items.size() != seeds)
      complain(*entry, child_path(at, "values"),
               "must have one value per seed (got " + std::to_string(items.size()) + " for " +
                   std::to_string(seeds) + " seeds)");
    for (std::size_t i = 0; i < std::min(seeds, items.size()); ++i)
      values[i] = number_at(*items[i], child_path(at, "values"));
    return values;
  }

  double report_value(const ConfigNode& stage, const MetricName& m, const std::string& path) {
    for (const Place& place : kPlaces) {
      if (place.metric != m.metric) continue;
      const ConfigNode* node = descend(stage, place.path);
      if (node != nullptr && node->is_map()) {
        const ConfigNode::Member* const statistic = node->find(m.statistic);
        node = statistic != nullptr ? statistic->value.get() : nullptr;
      }
      if (node == nullptr || node->is_null()) return kNone;
      const double value = number_at(*node, child_path(path, place.path));
      if (m.metric == "failure_rate" || m.metric == "goodput") {
        const ConfigNode* const sent = descend(stage, "load_summary.count");
        const double requests = sent != nullptr ? number_at(*sent, path) : 0;
        return requests > 0 ? value / requests * scale(m) : kNone;
      }
      return value * scale(m);
    }
    return kNone;
  }

  static double scale(const MetricName& m) {
    if (m.unit == "ms") return 1e3;
    if (m.unit == "us") return 1e6;
    return m.unit == "%" ? 100 : 1;
  }

  std::span<const MetricName> metrics_;
  Diagnostics& diagnostics_;
};

/// A JSON result, or the data block of a report page.
Ptr read_tree(const std::string& path, const ConfigLimits& limits, Diagnostics& diagnostics) {
  if (!path.ends_with(".html") && !path.ends_with(".html.partial"))
    return read_config_file(path, diagnostics, limits);
  const SourceLocation where{.file = path, .line = 1, .column = 1};
  std::string text;
  if (!read_text_file(path, where, "", limits.max_bytes, text, diagnostics)) return nullptr;
  const std::optional<std::string> block = data_block(text);
  if (!block) {
    diagnostics.error(where, "", "is not a page made by `routesim report`", kHint);
    return nullptr;
  }
  return parse_config(*block, {.file = path}, diagnostics, limits);
}

/// What only the first run of a variant says: its resolved scenario, and the load of its stages.
void take_first_run(const ConfigNode& node, ResultFile& file) {
  const ConfigNode* const name = descend(node, "name");
  for (std::size_t v = 0; v < file.set.variants.size(); ++v) {
    VariantValues& variant = file.set.variants[v];
    if (name == nullptr || name->text() != variant.name) continue;
    if (const ConfigNode::Member* resolved = node.is_map() ? node.find("resolved") : nullptr)
      file.resolved[v] = resolved->value;
    const ConfigNode* const stages = descend(node, "stages");
    if (stages == nullptr) continue;
    for (std::size_t s = 0; s < std::min(stages->items().size(), variant.stages.size()); ++s) {
      const ConfigNode& stage = *stages->items()[s];
      if (const ConfigNode* const rate = descend(stage, "load_summary.requested_rate"))
        variant.stages[s].rate = parse_real(*rate, {}).value.value_or(0);
      if (const ConfigNode* const level = descend(stage, "load_summary.concurrency"))
        variant.stages[s].concurrency = parse_integer(*level, {}).value.value_or(0);
    }
  }
}

}  // namespace

const ConfigNode* ResultFile::resolved_of(const VariantValues& variant) const {
  const auto index = static_cast<std::size_t>(&variant - set.variants.data());
  return index < resolved.size() ? resolved[index].get() : nullptr;
}

std::optional<ResultFile> read_result_file(const std::string& path,
                                           std::span<const MetricName> more,
                                           Diagnostics& diagnostics) {
  Diagnostics found;
  ConfigLimits limits;
  limits.max_bytes = 256U << 20;
  limits.max_nodes = 50'000'000;
  ResultFile file{.path = path, .set = {}, .interrupted = false, .resolved = {}};
  const Ptr root = read_tree(path, limits, found);
  if (root != nullptr && !root->is_map())
    found.error(root->where(), "", "must be a map (" + got(*root) + ")", kHint);
  if (!found.has_errors() && root != nullptr && is_kind(*root, FileKind::kResult, found)) {
    const std::vector<MetricName> metrics = metrics_with(more);
    file.set = Reader(metrics, found).read(*root);
    const ConfigNode* const interrupted = descend(*root, "interrupted");
    file.interrupted = interrupted != nullptr && interrupted->text() == "true";
    file.resolved.resize(file.set.variants.size());
    if (const ConfigNode* const variants = descend(*root, "variants"))
      for (const Ptr& node : variants->items()) take_first_run(*node, file);
  }
  const bool ok = root != nullptr && !found.has_errors();
  append(diagnostics, found);
  return ok ? std::optional(std::move(file)) : std::nullopt;
}

bool same_content(const ConfigNode& a, const ConfigNode& b) {
  if (a.kind() != b.kind() || a.text() != b.text() || a.items().size() != b.items().size() ||
      a.members().size() != b.members().size())
    return false;
  for (std::size_t i = 0; i < a.items().size(); ++i)
    if (!same_content(*a.items()[i], *b.items()[i])) return false;
  for (const ConfigNode::Member& m : a.members()) {
    const ConfigNode::Member* const other = b.find(m.key);
    if (other == nullptr || !same_content(*m.value, *other->value)) return false;
  }
  return true;
}

}  // namespace routesim::tools
