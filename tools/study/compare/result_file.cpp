#include "tools/study/compare/result_file.h"

#include <cmath>
#include <limits>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/scenario/file_kind.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/render/page/html_page.h"
#include "tools/results/described_json.h"
#include "tools/results/metrics.h"
#include "tools/results/result_record.h"

namespace routesim::tools {

namespace {

using Ptr = ConfigNode::Ptr;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr char kHint[] = "this must be a file made by `routesim run --output json=PATH`";

/// The numbers of a record; complaints are placed in the tree that it was read from.
class Taker {
 public:
  Taker(const ConfigNode& root, std::span<const MetricName> metrics, Diagnostics& diagnostics)
      : root_(root), metrics_(metrics), diagnostics_(diagnostics) {}

  ResultSet take(const RunRecord& run) {
    ResultSet set{.scenario = run.scenario, .version = run.version};
    if (run.replications) {
      take_replications(*run.replications, set);
    } else {
      set.seeds.push_back(run.seed);
      set.metrics.assign(metrics_.begin(), metrics_.end());
      for (const VariantRecord& variant : run.variants) set.variants.push_back(single(variant));
      drop_unknown(run, set);
    }
    for (const VariantRecord& first : run.variants)
      for (VariantValues& variant : set.variants)
        if (variant.name == first.name) add_first_run(first, variant);
    if (set.variants.empty())
      diagnostics_.error(root_.where(), "variants", "has no variant", kHint);
    return set;
  }

 private:
  /// Adds facts that only a variant's first run says: what it rests on, and the load of its stages.
  static void add_first_run(const VariantRecord& first, VariantValues& variant) {
    variant.trust = first.trust.text;
    for (std::size_t s = 0; s < std::min(first.stages.size(), variant.stages.size()); ++s) {
      const std::optional<LoadRecord::Stage>& load = first.stages[s].lifecycle.load.stage;
      if (!load || first.stages[s].part) continue;  // The loads of a mix are no ladder.
      variant.stages[s].rate = std::isfinite(load->requested_rate) ? load->requested_rate : 0;
      variant.stages[s].concurrency = load->concurrency.value_or(0);
    }
  }

  static void add_overload(VariantValues& variant) {
    StageValues& whole = variant.stages.back();
    for (const StageValues& stage : variant.stages)
      whole.overloaded = whole.overloaded || (stage.reported && stage.overloaded);
  }

  VariantValues single(const VariantRecord& variant) const {
    VariantValues out{.name = variant.name};
    if (const ConfigNode* const resolved = variant.resolved.root.get())
      if (const ConfigNode* const seed = resolved->child("seed"))
        out.seeds.push_back(
            static_cast<std::uint64_t>(parse_integer(*seed, IntRange{0}).value.value_or(0)));
    for (const StageRecord& stage : variant.stages) out.stages.push_back(single(stage));
    out.stages.push_back(single(variant.summary));
    for (std::size_t m = 0; m < metrics_.size(); ++m)
      out.stages.back().values[m] = {stored_value(variant, metrics_[m]).value_or(kNone)};
    add_overload(out);
    return out;
  }

  /// Leaves out asked metrics that no variant with an answered request has a value of: the file
  /// does not hold them. Standard ones stay.
  static void drop_unknown(const RunRecord& run, ResultSet& set) {
    for (std::size_t m = set.metrics.size(); m-- > standard_metrics().size();) {
      bool answered = false;
      bool known = false;
      for (std::size_t v = 0; v < set.variants.size(); ++v) {
        answered = answered || run.variants[v].summary.lifecycle.successes.count > 0;
        for (const StageValues& stage : set.variants[v].stages)
          known = known || !std::isnan(stage.values[m].front());
      }
      if (known || !answered) continue;
      const auto at = static_cast<std::ptrdiff_t>(m);
      set.metrics.erase(set.metrics.begin() + at);
      for (VariantValues& variant : set.variants)
        for (StageValues& stage : variant.stages) stage.values.erase(stage.values.begin() + at);
    }
  }

  StageValues single(const StageRecord& stage) const {
    StageValues out;
    out.stage = stage.name.value_or("");
    out.reported = stage.reported.value_or(true);
    out.overloaded = stage.overloaded.value_or(false);
    for (const MetricName& m : metrics_)
      out.values.push_back({stored_value(stage, m).value_or(kNone)});
    return out;
  }

  void take_replications(const ReplicationsRecord& runs, ResultSet& set) {
    set.seeds = runs.seeds;
    if (set.seeds.empty()) complain({"replications", "seeds"}, "has no seed");
    if (!runs.variants.empty()) take_metrics(runs.variants.front(), set);
    for (const ReplicationsRecord::Variant& variant : runs.variants) {
      VariantValues& out = set.variants.emplace_back();
      out.name = variant.name;
      out.seeds = variant.seeds;
      for (const ReplicationsRecord::Stage& stage : variant.stages)
        out.stages.push_back(replicated(stage, set));
      out.stages.push_back(replicated(variant.summary, set));
      add_overload(out);
    }
  }

  void take_metrics(const ReplicationsRecord::Variant& variant, ResultSet& set) {
    for (const auto& [key, metric] : variant.summary.metrics.items) {
      Parsed<MetricName> name = parse_metric_name(key);
      if (name.value)
        set.metrics.push_back(std::move(*name.value));
      else
        diagnostics_.error(place({"replications", "variants", "0", "summary", "metrics", key}),
                           "replications.variants[0].summary.metrics", name.message, name.hint);
    }
  }

  StageValues replicated(const ReplicationsRecord::Stage& stage, const ResultSet& set) {
    StageValues out;
    out.stage = stage.name.value_or("");
    out.reported = stage.reported.value_or(true);
    out.overloaded = stage.overloaded;
    for (const MetricName& m : set.metrics) {
      std::vector<double>& values = out.values.emplace_back(set.seeds.size(), kNone);
      for (const auto& [key, metric] : stage.metrics.items) {
        if (key != m.text || !metric) continue;
        if (metric->values.size() == values.size())
          values = metric->values;
        else
          complain({"replications"}, m.text + " must have one value per seed (got " +
                                         std::to_string(metric->values.size()) + " for " +
                                         std::to_string(values.size()) + " seeds)");
      }
    }
    return out;
  }

  void complain(std::initializer_list<std::string_view> keys, const std::string& what) {
    std::string path;
    for (const std::string_view key : keys) path = child_path(path, key);
    diagnostics_.error(place(keys), path, what, kHint);
  }

  /// The place of the last of these keys, each below the one before; a number counts the elements
  /// of a list.
  SourceLocation place(std::initializer_list<std::string_view> keys) const {
    const ConfigNode* node = &root_;
    SourceLocation where = root_.where();
    for (const std::string_view key : keys) {
      if (node->is_sequence()) {
        node = node->items().at(std::stoul(std::string(key))).get();
        where = node->where();
      } else if (const ConfigNode::Member* const member = node->find(key)) {
        node = member->value.get();
        where = member->key_where;
      }
    }
    return where;
  }

  const ConfigNode& root_;
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
  ResultFile file{.path = path};
  const Ptr root = read_tree(path, limits, found);
  if (root != nullptr && !root->is_map())
    found.error(root->where(), "", "must be a map (" + got(*root) + ")", kHint);
  if (!found.has_errors() && root != nullptr && is_kind(*root, FileKind::kResult, found)) {
    const RunRecord run = read_record<RunRecord>(*root, found);
    std::vector<MetricName> asked(more.begin(), more.end());
    for (const char* of_run : {"fleet_mean_servers", "fleet_lost", "fleet_cost", "minutes_missed"})
      asked.push_back(*parse_metric_name(of_run).value);
    const std::vector<MetricName> metrics = metrics_with(asked);
    if (!found.has_errors()) file.set = Taker(*root, metrics, found).take(run);
    file.commit = run.commit.value_or("");
    file.interrupted = run.interrupted.value_or(false);
    for (const VariantValues& variant : file.set.variants) {
      file.resolved.emplace_back();
      for (const VariantRecord& first : run.variants)
        if (first.name == variant.name) file.resolved.back() = first.resolved.root;
    }
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
