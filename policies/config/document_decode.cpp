#include "policies/config/document_loader.h"
#include "policies/config/document_section.h"

namespace routesim::policies {
namespace {

std::string at(const std::string& base, std::string_view key, std::size_t i) {
  return (base.empty() ? "" : base + ".") + std::string(key) + "[" + std::to_string(i) + "]";
}

std::optional<PluginReference> reference(const ParameterValue& node, const std::string& path,
                                         Diagnostics& diagnostics) {
  Section s(node, path, diagnostics);
  const std::optional<std::string> name = s.text("pluginRef");
  s.finish();
  if (!name || name->empty()) {
    diagnostics.error(node.where, path, "is missing a pluginRef");
    return std::nullopt;
  }
  return PluginReference{.name = *name, .weight = {}, .where = node.where, .path = path};
}

void decode_plugins(Section& top, EndpointPickerConfig& config, Diagnostics& diagnostics) {
  const ParameterValue::List& list = top.list("plugins");
  for (std::size_t i = 0; i < list.size(); ++i) {
    Section s(list[i], at(top.path(), "plugins", i), diagnostics);
    PluginSpec spec;
    spec.where = list[i].where;
    spec.path = s.path();
    spec.type = s.text("type").value_or("");
    spec.name = s.text("name").value_or("");
    if (spec.name.empty()) spec.name = spec.type;
    if (const ParameterValue* p = s.take("parameters")) {
      if (p->is_map() || p->is_null())
        spec.parameters = *p;
      else
        diagnostics.error(p->where, s.path() + ".parameters",
                          "must be a map (got " + p->to_text() + ")");
    }
    s.finish();
    config.plugins.push_back(std::move(spec));
  }
}

void decode_profiles(Section& top, EndpointPickerConfig& config, Diagnostics& diagnostics) {
  const ParameterValue::List& list = top.list("schedulingProfiles");
  for (std::size_t i = 0; i < list.size(); ++i) {
    Section s(list[i], at(top.path(), "schedulingProfiles", i), diagnostics);
    ProfileSpec profile;
    profile.where = list[i].where;
    profile.path = s.path();
    profile.name = s.text("name").value_or("");
    const ParameterValue::List& entries = s.list("plugins");
    for (std::size_t j = 0; j < entries.size(); ++j) {
      Section e(entries[j], at(profile.path, "plugins", j), diagnostics);
      PluginReference r;
      r.where = entries[j].where;
      r.path = e.path();
      r.name = e.text("pluginRef").value_or("");
      r.weight = e.number("weight");
      e.finish();
      if (r.name.empty())
        diagnostics.error(r.where, r.path, "is missing a pluginRef");
      else
        profile.plugins.push_back(std::move(r));
    }
    s.finish();
    config.profiles.push_back(std::move(profile));
  }
}

/// Gates of earlier releases; what they guarded has become the only way.
bool is_retired_gate(const std::string& gate) {
  return gate == "dataLayer" || gate == "prepareDataPlugins" || gate == "experimentalDatalayer";
}

void decode_feature_gates(Section& top, EndpointPickerConfig& config, Diagnostics& diagnostics) {
  config.feature_gates = {{"flowControl", false}, {"haPopulateNonLeaderDatastore", true}};
  const ParameterValue::List& list = top.list("featureGates");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = at(top.path(), "featureGates", i);
    if (!list[i].is_string()) {
      diagnostics.error(list[i].where, path, "must be a string (got " + list[i].to_text() + ")");
      continue;
    }
    const std::string& text = list[i].string();
    const std::size_t equals = text.find('=');
    const std::string gate = text.substr(0, equals);
    const std::optional<bool> value = equals == std::string::npos
                                          ? std::optional<bool>(true)
                                          : parse_go_bool(text.substr(equals + 1));
    if (is_retired_gate(gate))
      diagnostics.warning(list[i].where, path, "feature gate '" + gate + "' has no effect here",
                          "later releases always do what it switched on");
    else if (config.feature_gates.count(gate) == 0)
      diagnostics.error(list[i].where, path,
                        "feature gate '" + gate + "' is unknown or unregistered",
                        "registered: flowControl, haPopulateNonLeaderDatastore");
    else if (!value)
      diagnostics.error(
          list[i].where, path,
          "'" + text.substr(equals + 1) + "' is not a valid value of feature gate '" + gate + "'",
          "use true or false");
    else
      config.feature_gates[gate] = *value;
  }
}

PluginReference policy(Section& s, const std::string& name, std::string_view key) {
  return {.name = name, .weight = {}, .where = s.where(), .path = s.child(key)};
}

/// `discovery` is one plugin in v1alpha1 and groups two kinds in v1.
void decode_discovery(const ParameterValue& node, const std::string& path, DataLayerSpec& data,
                      Diagnostics& diagnostics) {
  if (node.find("endpoints") == nullptr && node.find("peers") == nullptr) {
    data.discovery = reference(node, path, diagnostics);
    return;
  }
  Section s(node, path, diagnostics);
  if (const ParameterValue* v = s.take("endpoints"))
    data.discovery = reference(*v, s.child("endpoints"), diagnostics);
  if (const ParameterValue* v = s.take("peers"))
    data.peer_discovery = reference(*v, s.child("peers"), diagnostics);
  s.finish();
}

void decode_data_layer(const ParameterValue& node, const std::string& path,
                       EndpointPickerConfig& config, Diagnostics& diagnostics) {
  Section s(node, path, diagnostics);
  DataLayerSpec& data = config.data_layer;
  data.inject_defaults = s.boolean("injectDefaults").value_or(true);
  const ParameterValue::List& sources = s.list("sources");
  for (std::size_t i = 0; i < sources.size(); ++i) {
    Section e(sources[i], at(path, "sources", i), diagnostics);
    DataSourceSpec source;
    source.source = {.name = e.text("pluginRef").value_or(""),
                     .weight = {},
                     .where = sources[i].where,
                     .path = e.path()};
    if (source.source.name.empty())
      diagnostics.error(sources[i].where, e.path(), "is missing a pluginRef");
    const ParameterValue::List& extractors = e.list("extractors");
    for (std::size_t j = 0; j < extractors.size(); ++j)
      if (auto r = reference(extractors[j], at(e.path(), "extractors", j), diagnostics))
        source.extractors.push_back(std::move(*r));
    e.finish();
    data.sources.push_back(std::move(source));
  }
  if (const ParameterValue* v = s.take("discovery"))
    decode_discovery(*v, s.child("discovery"), data, diagnostics);
  if (const ParameterValue* v = s.take("peerDiscovery"))
    data.peer_discovery = reference(*v, s.child("peerDiscovery"), diagnostics);
  if (const auto name = s.text("crossReplicaSyncerPluginRef"))
    data.cross_replica_syncer = {.name = *name,
                                 .weight = {},
                                 .where = s.where(),
                                 .path = s.child("crossReplicaSyncerPluginRef")};
  s.duration("crossReplicaSyncInterval");
  if (const ParameterValue* v = s.take("crossReplica")) {
    Section c(*v, s.child("crossReplica"), diagnostics);
    if (const auto name = c.text("syncerPluginRef"))
      data.cross_replica_syncer = policy(c, *name, "syncerPluginRef");
    c.duration("syncInterval");
    c.duration("publishTimeout");
    c.finish();
  }
  s.finish();
}

PriorityBandSpec decode_band(const ParameterValue& node, const std::string& path,
                             DocumentReferences& references, Diagnostics& diagnostics) {
  PriorityBandSpec band;
  Section s(node, path, diagnostics);
  band.priority = static_cast<std::int32_t>(s.integer("priority").value_or(0));
  if (const auto v = s.quantity("maxBytes")) band.max_bytes = *v;
  if (const auto v = s.quantity("maxRequests")) band.max_requests = *v;
  band.default_request_ttl = s.duration("defaultRequestTTL");
  if (const auto v = s.text("fairnessPolicyRef")) {
    band.fairness_policy = *v;
    references.fairness_policies.push_back(policy(s, *v, "fairnessPolicyRef"));
  }
  if (const auto v = s.text("orderingPolicyRef")) {
    band.ordering_policy = *v;
    references.ordering_policies.push_back(policy(s, *v, "orderingPolicyRef"));
  }
  s.finish();
  return band;
}

void decode_flow_control(const ParameterValue& node, EndpointPickerConfig& config,
                         DocumentReferences& references, Diagnostics& diagnostics) {
  Section s(node, "flowControl", diagnostics);
  FlowControlSpec& flow = config.flow_control;
  references.flow_control_where = node.where;
  if (node.is_map())
    for (const auto& [key, value] : node.map())
      references.has_flow_control = references.has_flow_control || key != "saturationDetector";
  flow.max_bytes = s.quantity("maxBytes");
  flow.max_requests = s.quantity("maxRequests");
  const auto ttl = s.duration("defaultRequestTTL");
  if (ttl) flow.default_request_ttl = flow.no_endpoint_request_ttl = *ttl;
  if (const auto v = s.duration("noEndpointRequestTTL")) flow.no_endpoint_request_ttl = *v;
  if (const ParameterValue* v = s.take("defaultPriorityBand"))
    flow.default_band = decode_band(*v, s.child("defaultPriorityBand"), references, diagnostics);
  flow.default_negative_band = flow.default_band;
  if (const ParameterValue* v = s.take("defaultNegativePriorityBand"))
    flow.default_negative_band =
        decode_band(*v, s.child("defaultNegativePriorityBand"), references, diagnostics);
  const ParameterValue::List& bands = s.list("priorityBands");
  for (std::size_t i = 0; i < bands.size(); ++i)
    flow.bands.push_back(
        decode_band(bands[i], at(s.path(), "priorityBands", i), references, diagnostics));
  if (const auto v = s.text("usageLimitPolicyPluginRef")) {
    flow.usage_limit_policy = *v;
    references.usage_limit_policy = policy(s, *v, "usageLimitPolicyPluginRef");
  }
  if (const ParameterValue* v = s.take("saturationDetector"))
    references.saturation_detector = reference(*v, s.child("saturationDetector"), diagnostics);
  flow.enable_eviction = s.boolean("enableEviction").value_or(false);
  if (flow.enable_eviction)
    diagnostics.warning(node.where, s.child("enableEviction"),
                        "evicting running requests is not modelled");
  s.finish();
}

// Before the second quarter of 2026 the detector's thresholds stood here, without a plugin.
void decode_saturation_detector(const ParameterValue& node, EndpointPickerConfig& config,
                                DocumentReferences& references, Diagnostics& diagnostics) {
  constexpr std::string_view kPath = "saturationDetector";
  if (node.find("pluginRef") != nullptr || !node.is_map()) {
    const auto r = reference(node, std::string(kPath), diagnostics);
    if (r && !references.saturation_detector) references.saturation_detector = r;
    return;
  }
  references.inline_detector = true;
  if (references.saturation_detector) return;
  PluginSpec spec;
  spec.name = spec.type = "utilization-detector";
  spec.parameters = node;
  spec.where = node.where;
  spec.implicit = true;
  config.plugins.push_back(std::move(spec));
  references.saturation_detector = PluginReference{.name = "utilization-detector",
                                                   .weight = {},
                                                   .where = node.where,
                                                   .path = std::string(kPath)};
}

void check_versions(Section& top, EndpointPickerConfig& config, Diagnostics& diagnostics) {
  config.api_version = top.text("apiVersion").value_or("");
  const std::string kind = top.text("kind").value_or("");
  if (config.api_version.empty())
    diagnostics.error(top.where(), "apiVersion", "is required but missing",
                      "write 'apiVersion: llm-d.ai/v1alpha1'");
  else if (config.api_version != "llm-d.ai/v1" && config.api_version != "llm-d.ai/v1alpha1" &&
           config.api_version != "inference.networking.x-k8s.io/v1alpha1")
    diagnostics.error(
        top.where(), "apiVersion", "is not a known version (got '" + config.api_version + "')",
        "known: llm-d.ai/v1, llm-d.ai/v1alpha1, inference.networking.x-k8s.io/v1alpha1");
  if (kind != "EndpointPickerConfig")
    diagnostics.error(top.where(), "kind", "must be 'EndpointPickerConfig' (got '" + kind + "')");
}

}  // namespace

void decode_document(const ParameterValue& root, EndpointPickerConfig& config,
                     DocumentReferences& references, Diagnostics& diagnostics) {
  Section top(root, "", diagnostics);
  if (!root.is_map()) {
    if (root.is_null()) diagnostics.error(root.where, "", "the document is empty");
    return;
  }
  check_versions(top, config, diagnostics);
  decode_feature_gates(top, config, diagnostics);
  decode_plugins(top, config, diagnostics);
  decode_profiles(top, config, diagnostics);
  for (const std::string_view key : {"dataLayer", "data"})
    if (const ParameterValue* v = top.take(key))
      decode_data_layer(*v, std::string(key), config, diagnostics);
  // Before it became a part of the data layer.
  if (const ParameterValue* v = top.take("discovery"))
    decode_discovery(*v, "discovery", config.data_layer, diagnostics);
  if (const ParameterValue* v = top.take("flowControl"))
    decode_flow_control(*v, config, references, diagnostics);
  if (const ParameterValue* v = top.take("saturationDetector"))
    decode_saturation_detector(*v, config, references, diagnostics);
  if (const ParameterValue* v = top.take("requestHandler")) {
    Section s(*v, "requestHandler", diagnostics);
    const ParameterValue::List& parsers = s.list("parsers");
    for (std::size_t i = 0; i < parsers.size(); ++i)
      if (auto r = reference(parsers[i], at("requestHandler", "parsers", i), diagnostics))
        references.parsers.push_back(std::move(*r));
    if (s.boolean("propagatePriority").value_or(false))
      diagnostics.warning(v->where, s.child("propagatePriority"),
                          "has no effect here: engines serve first come, first served");
    s.finish();
  }
  if (const ParameterValue* v = top.take("parser")) {
    const auto r = reference(*v, "parser", diagnostics);
    if (r && references.parsers.empty()) references.parsers.push_back(*r);
  }
  top.finish();
}

}  // namespace routesim::policies
