// The names plugins and parameters had in the summer of 2025, when the best-known measurements of
// prefix-aware routing were made.

#include "base/scalar_parse.h"
#include "policies/config/document_loader.h"

namespace routesim::policies {
namespace {

/// The map with the value of `key`; without the key when the value is null.
ConfigNode::Ptr with(const ConfigNode& map, std::string_view key, const ConfigNode::Ptr& value) {
  std::vector<ConfigNode::Member> members = map.members();
  std::erase_if(members, [&](const ConfigNode::Member& m) { return m.key == key; });
  if (value != nullptr) members.push_back({std::string(key), value->where(), value});
  return ConfigNode::make_map(std::move(members), map.where());
}

/// The value of `key`, which leaves the parameters; null when they have none.
ConfigNode::Ptr take(PluginSpec& spec, std::string_view key) {
  const ConfigNode::Member* member = spec.parameters->find(key);
  if (member == nullptr) return nullptr;
  ConfigNode::Ptr value = member->value;
  spec.parameters = with(*spec.parameters, key, nullptr);
  return value;
}

void set(PluginSpec& spec, std::string_view key, const ConfigNode::Ptr& value) {
  if (spec.parameters->find(key) == nullptr) spec.parameters = with(*spec.parameters, key, value);
}

/// The interval is a number of nanoseconds upstream; a duration is taken, too.
ConfigNode::Ptr with_interval(const ConfigNode& node, std::span<const std::string_view> path) {
  const ConfigNode::Member* member = node.find(path.front());
  if (member == nullptr) return nullptr;
  const ConfigNode& value = *member->value;
  ConfigNode::Ptr changed;
  if (path.size() > 1)
    changed = with_interval(value, path.subspan(1));
  else if (value.is_scalar() && !value.is_text() && plain_type(value.text()) == PlainType::kInteger)
    changed = tree::text(value.text() + "ns", value.where());
  return changed == nullptr ? nullptr : with(node, path.front(), changed);
}

void fold_interval(PluginSpec& spec) {
  constexpr std::array<std::string_view, 3> kPath = {"indexerConfig", "kvBlockIndexConfig",
                                                     "metricsLoggingInterval"};
  if (const ConfigNode::Ptr changed = with_interval(*spec.parameters, kPath))
    spec.parameters = changed;
}

/// An index that routers share tells each of them what it would have heard itself.
void note_shared_backend(const PluginSpec& spec, Diagnostics& diagnostics) {
  const ConfigNode* indexer = spec.parameters->child("indexerConfig");
  const ConfigNode* index = indexer == nullptr ? nullptr : indexer->child("kvBlockIndexConfig");
  if (index == nullptr) return;
  for (const std::string_view key : {"redisConfig", "valkeyConfig"})
    if (const ConfigNode* backend = index->child(key))
      diagnostics.warning(
          backend->where(),
          spec.path + ".parameters.indexerConfig.kvBlockIndexConfig." + std::string(key),
          "is simulated as an index in memory: the decisions are the same, the time of its "
          "lookups is not counted",
          "add it to routing.decision_latency");
}

/// llm-d-inference-scheduler up to 0.3.0 chose between the two indexes by `mode`; the parameters
/// beside it are those of the chosen one.
void fold_mode(PluginSpec& spec, DocumentReferences& references, Diagnostics& diagnostics) {
  const ConfigNode::Ptr mode = take(spec, "mode");
  if (mode == nullptr) return;
  references.old_name = "prefix-cache-scorer mode";
  diagnostics.key(
      key_use(mode->where(), kDocumentFormat, spec.path + ".parameters.mode", Fate::kUsed, {}));
  if (mode->is_text() && mode->text() == "cache_tracking") {
    spec.type = "precise-prefix-cache-scorer";
  } else if (!mode->is_text() || (mode->text() != "estimate" && !mode->text().empty())) {
    diagnostics.error(mode->where(), spec.path + ".parameters.mode",
                      "must be estimate or cache_tracking (" + got(*mode) + ")");
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
    if (const ConfigNode::Ptr size = take(spec, "hashBlockSize")) {
      set(spec, "blockSize", size);
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
    if (spec.type == "prefix-cache-scorer") set(spec, "autoTune", tree::boolean(false));
}

}  // namespace routesim::policies
