#include "policies/document_keys.h"

#include <algorithm>
#include <array>

#include "base/key_note.h"

namespace routesim::policies {
namespace {

constexpr Fate kNoEffect = Fate::kNoEffect;
constexpr std::string_view kAllKnown =
    "the router knows every server of the cluster from the start";
constexpr std::string_view kOwnState = "the replicas of a router share nothing here";

constexpr std::array kRules = {
    KeyRule{"apiVersion"},
    KeyRule{"kind"},
    KeyRule{"featureGates"},
    KeyRule{"plugins"},
    KeyRule{"plugins[].name"},
    KeyRule{"plugins[].type"},
    KeyRule{"plugins[].parameters"},
    KeyRule{"schedulingProfiles"},
    KeyRule{"schedulingProfiles[].name"},
    KeyRule{"schedulingProfiles[].plugins"},
    KeyRule{"schedulingProfiles[].plugins[].pluginRef"},
    KeyRule{"schedulingProfiles[].plugins[].weight"},
    KeyRule{"*.injectDefaults", kNoEffect,
            "metrics reach the router as routing.scrape_interval says"},
    KeyRule{"*.sources"},
    KeyRule{"*.sources[].pluginRef"},
    KeyRule{"*.sources[].extractors"},
    KeyRule{"*.sources[].extractors[].pluginRef"},
    KeyRule{"*.discovery.**", kNoEffect, kAllKnown},
    KeyRule{"discovery.**", kNoEffect, kAllKnown},
    KeyRule{"*.peerDiscovery.**", kNoEffect, kOwnState},
    KeyRule{"*.crossReplicaSyncerPluginRef", Fate::kApproximated, kOwnState},
    KeyRule{"*.crossReplicaSyncInterval", kNoEffect, kOwnState},
    KeyRule{"*.crossReplica.syncerPluginRef", Fate::kApproximated, kOwnState},
    KeyRule{"*.crossReplica.*", kNoEffect, kOwnState},
    KeyRule{"flowControl.**"},
    KeyRule{"flowControl.enableEviction", Fate::kNotModelled, "running requests are not evicted"},
    KeyRule{"saturationDetector.**"},
    KeyRule{"requestHandler.parsers"},
    KeyRule{"requestHandler.parsers[].pluginRef"},
    KeyRule{"requestHandler.propagatePriority", Fate::kNotModelled,
            "engines serve first come, first served"},
    KeyRule{"parser.pluginRef"},
};

constexpr KeyTable kTable = {
    .format = kDocumentFormat,
    .source = "llm-d-router, apix/config and pkg/epp/config, and its predecessors from v0.2.1 on",
    .rules = kRules};

bool is_off(const ParameterValue& value) {
  return value.is_null() || (value.kind() == ParameterValue::Kind::kBool && !value.boolean());
}

}  // namespace

const KeyTable& document_keys() { return kTable; }

bool is_leaf(const ParameterValue& value) {
  if (value.is_map()) return value.map().empty();
  if (!value.is_list()) return true;
  return std::none_of(value.list().begin(), value.list().end(),
                      [](const ParameterValue& v) { return v.is_map() || v.is_list(); });
}

void note_document_key(const ParameterValue& value, const std::string& path,
                       Diagnostics& diagnostics) {
  if (!is_leaf(value)) return;
  const KeyRule* rule = find_rule(kTable, path);
  if (rule == nullptr) return;
  diagnostics.key(
      key_use(value.where, kDocumentFormat, path, rule->fate, rule->why, is_off(value)));
}

}  // namespace routesim::policies
