// The names plugins and parameters had in the summer of 2025, when the best-known measurements of
// prefix-aware routing were made.
#include <algorithm>
#include <array>
#include <string>

#include "base/key_note.h"
#include "policies/config/document_loader.h"
#include "policies/document_keys.h"

namespace routesim::policies {
namespace {

/// The last value of `key`, which leaves the map; null when it has none.
ParameterValue take(ParameterValue& parameters, std::string_view key) {
  if (!parameters.is_map()) return {};
  ParameterValue::Map& map = parameters.map();
  const auto it =
      std::find_if(map.begin(), map.end(), [&](const auto& entry) { return entry.first == key; });
  if (it == map.end()) return {};
  ParameterValue value = std::move(it->second);
  map.erase(it);
  return value;
}

void set(PluginSpec& spec, std::string key, ParameterValue value) {
  if (spec.parameters.find(key) != nullptr) return;
  if (spec.parameters.is_null()) spec.parameters = ParameterValue(ParameterValue::Map{});
  spec.parameters.map().emplace_back(std::move(key), std::move(value));
}

/// The interval is a number of nanoseconds upstream; a duration is taken, too.
void fold_interval(PluginSpec& spec) {
  ParameterValue* node = &spec.parameters;
  for (const std::string_view key :
       {"indexerConfig", "kvBlockIndexConfig", "metricsLoggingInterval"}) {
    if (!node->is_map()) return;
    ParameterValue::Map& map = node->map();
    const auto it =
        std::find_if(map.begin(), map.end(), [&](const auto& entry) { return entry.first == key; });
    if (it == map.end()) return;
    node = &it->second;
  }
  if (node->kind() != ParameterValue::Kind::kInteger) return;
  const SourceLocation where = node->where;
  *node = ParameterValue(std::to_string(node->integer()) + "ns");
  node->where = where;
}

/// An index that routers share tells each of them what it would have heard itself.
void note_shared_backend(const PluginSpec& spec, Diagnostics& diagnostics) {
  const ParameterValue* indexer = spec.parameters.find("indexerConfig");
  const ParameterValue* index = indexer == nullptr ? nullptr : indexer->find("kvBlockIndexConfig");
  if (index == nullptr) return;
  for (const std::string_view key : {"redisConfig", "valkeyConfig"})
    if (const ParameterValue* backend = index->find(key))
      diagnostics.warning(
          backend->where,
          spec.path + ".parameters.indexerConfig.kvBlockIndexConfig." + std::string(key),
          "is simulated as an index in memory: the decisions are the same, the time of its "
          "lookups is not counted",
          "add it to routing.decision_latency");
}

/// llm-d-inference-scheduler up to 0.3.0 chose between the two indexes by `mode`; the parameters
/// beside it are those of the chosen one.
void fold_mode(PluginSpec& spec, DocumentReferences& references, Diagnostics& diagnostics) {
  if (spec.parameters.find("mode") == nullptr) return;
  const ParameterValue mode = take(spec.parameters, "mode");
  references.old_name = "prefix-cache-scorer mode";
  diagnostics.key(
      key_use(mode.where, kDocumentFormat, spec.path + ".parameters.mode", Fate::kUsed, {}));
  if (mode.is_string() && mode.string() == "cache_tracking") {
    spec.type = "precise-prefix-cache-scorer";
  } else if (!mode.is_string() || (mode.string() != "estimate" && !mode.string().empty())) {
    diagnostics.error(mode.where, spec.path + ".parameters.mode",
                      "must be estimate or cache_tracking (got " + mode.to_text() + ")");
  }
}

/// Types renamed in the summer of 2025 that behaved as they do under their present names.
constexpr std::array<std::array<std::string_view, 2>, 3> kRenamed = {{
    {"kv-cache-scorer", "kv-cache-utilization-scorer"},
    {"single-profile", "single-profile-handler"},
    {"max-score", "max-score-picker"},
}};

}  // namespace

void fold_old_names(EndpointPickerConfig& config, DocumentReferences& references,
                    Diagnostics& diagnostics) {
  for (PluginSpec& spec : config.plugins) {
    for (const auto& [older, present] : kRenamed)
      if (spec.type == older) {
        references.old_name = "plugin type " + spec.type;
        spec.type = present;
      }
    if (spec.type != "prefix-cache-scorer") continue;
    fold_mode(spec, references, diagnostics);
    if (spec.parameters.find("hashBlockSize") != nullptr) {
      set(spec, "blockSize", take(spec.parameters, "hashBlockSize"));
      references.old_name = "prefix-cache-scorer hashBlockSize";
    }
  }
  for (PluginSpec& spec : config.plugins) {
    if (spec.type != "precise-prefix-cache-scorer" && spec.type != "precise-prefix-cache-producer")
      continue;
    fold_interval(spec);
    note_shared_backend(spec, diagnostics);
  }
  if (references.old_name.empty()) return;
  // Block size and capacity are taken from the engines since October 2025 only.
  for (PluginSpec& spec : config.plugins)
    if (spec.type == "prefix-cache-scorer") set(spec, "autoTune", ParameterValue(false));
}

}  // namespace routesim::policies
