// Reads a document as it is written. The structs mirror its schema; convert() turns them into the
// configuration.
#include <cmath>
#include <limits>

#include "base/scalar_parse.h"
#include "policies/config/document_loader.h"

namespace routesim::policies {
namespace {

constexpr std::string_view kAllKnown =
    "the router hears of servers as from Kubernetes, with the delays of routing.discovery";
constexpr std::string_view kOwnState = "the replicas of a router share nothing here";
constexpr DurationRange kAnyDuration = {
    .min = Duration::nanoseconds(std::numeric_limits<std::int64_t>::min()), .max = Duration::max()};

struct ReferenceText {
  std::string plugin;
};
void describe(Describer& d, ReferenceText& r) {
  field(d, {"pluginRef", "Name of the plugin."}, r.plugin);
}

struct PluginText {
  std::string name, type;
  Document parameters;
};
void describe(Describer& d, PluginText& p) {
  field(d, {"name", "Name of the instance; default the type."}, p.name);
  field(d, {"type", "Type of the plugin."}, p.type);
  field(d, {"parameters", "Parameters of the type."}, p.parameters);
}

struct ProfileEntryText {
  std::string plugin;
  std::optional<double> weight;
};
void describe(Describer& d, ProfileEntryText& e) {
  field(d, {"pluginRef", "Name of the plugin."}, e.plugin);
  field(d, {"weight", "Weight of a scorer; default 1."}, e.weight);
}

struct ProfileText {
  std::string name;
  std::vector<ProfileEntryText> plugins;
};
void describe(Describer& d, ProfileText& p) {
  field(d, {"name", "Name of the profile."}, p.name);
  field(d, {"plugins", "Filters, scorers and a picker."}, p.plugins);
}

struct SourceText {
  std::string plugin;
  std::vector<ReferenceText> extractors;
};
void describe(Describer& d, SourceText& s) {
  field(d, {"pluginRef", "Name of the source."}, s.plugin);
  field(d, {"extractors", "Plugins that read what the source collects."}, s.extractors);
}

/// One plugin in v1alpha1; v1 groups two kinds.
struct DiscoveryText {
  std::string plugin;
  std::optional<ReferenceText> endpoints, peers;
};
void describe(Describer& d, DiscoveryText& s) {
  field(d, {"pluginRef", "Finds the endpoints."}, s.plugin);
  field(d, {"endpoints", "Finds the endpoints."}, s.endpoints);
  field(d, {"peers", "Finds other replicas of the router."}, s.peers);
}

struct CrossReplicaText {
  std::string syncer;
  std::optional<Duration> interval, timeout;
};
void describe(Describer& d, CrossReplicaText& c) {
  field(d, approximated("syncerPluginRef", "Shares state between replicas.", kOwnState), c.syncer);
  field(d, no_effect("syncInterval", "How often.", kOwnState), c.interval, kAnyDuration);
  field(d, no_effect("publishTimeout", "For how long at most.", kOwnState), c.timeout,
        kAnyDuration);
}

struct DataLayerText {
  bool inject_defaults = true;
  std::vector<SourceText> sources;
  std::optional<DiscoveryText> discovery;
  std::optional<ReferenceText> peer_discovery;
  std::string syncer;
  std::optional<Duration> sync_interval;
  std::optional<CrossReplicaText> cross_replica;
};
void describe(Describer& d, DataLayerText& l) {
  field(d,
        no_effect("injectDefaults", "Add metrics-data-source.",
                  "metrics reach the router as routing.scrape_interval says"),
        l.inject_defaults);
  field(d, {"sources", "Where data about endpoints comes from."}, l.sources);
  field(d, no_effect("discovery", "Finds the endpoints.", kAllKnown), l.discovery);
  field(d, no_effect("peerDiscovery", "Finds other replicas of the router.", kOwnState),
        l.peer_discovery);
  field(d, approximated("crossReplicaSyncerPluginRef", "Shares state between replicas.", kOwnState),
        l.syncer);
  field(d, no_effect("crossReplicaSyncInterval", "How often.", kOwnState), l.sync_interval,
        kAnyDuration);
  field(d, {"crossReplica", "The same, grouped."}, l.cross_replica);
}

struct BandText {
  std::int32_t priority = 0;
  Document max_bytes, max_requests;
  std::optional<Duration> default_request_ttl;
  std::optional<std::string> fairness_policy, ordering_policy;
};
void describe(Describer& d, BandText& b) {
  field(d, {"priority", "Priority of the band."}, b.priority);
  field(d, {"maxBytes", "Bytes that may wait; a quantity."}, b.max_bytes);
  field(d, {"maxRequests", "Requests that may wait; a quantity."}, b.max_requests);
  field(d, {"defaultRequestTTL", "How long a request may wait."}, b.default_request_ttl,
        kAnyDuration);
  field(d, {"fairnessPolicyRef", "Chooses among flows."}, b.fairness_policy);
  field(d, {"orderingPolicyRef", "Orders a flow."}, b.ordering_policy);
}

struct FlowControlText {
  Document max_bytes, max_requests;
  std::optional<Duration> default_request_ttl, no_endpoint_request_ttl;
  std::optional<BandText> default_band, default_negative_band;
  std::vector<BandText> bands;
  std::optional<std::string> usage_limit_policy;
  std::optional<ReferenceText> saturation_detector;
  bool enable_eviction = false;
};
void describe(Describer& d, FlowControlText& f) {
  field(d, {"maxBytes", "Bytes that may wait in all bands; a quantity."}, f.max_bytes);
  field(d, {"maxRequests", "Requests that may wait in all bands; a quantity."}, f.max_requests);
  field(d, {"defaultRequestTTL", "How long a request may wait."}, f.default_request_ttl,
        kAnyDuration);
  field(d, {"noEndpointRequestTTL", "The same while there is no endpoint."},
        f.no_endpoint_request_ttl, kAnyDuration);
  field(d, {"defaultPriorityBand", "Bands that are not listed."}, f.default_band);
  field(d, {"defaultNegativePriorityBand", "The same for priorities below 0."},
        f.default_negative_band);
  field(d, {"priorityBands", "Bands of their own."}, f.bands);
  field(d, {"usageLimitPolicyPluginRef", "Limits what a band may use."}, f.usage_limit_policy);
  field(d, {"saturationDetector", "Tells when requests have to wait."}, f.saturation_detector);
  field(d, {"enableEviction", "End running requests of negative priority for waiting ones."},
        f.enable_eviction);
}

struct RequestHandlerText {
  std::vector<ReferenceText> parsers;
  bool propagate_priority = false;
};
void describe(Describer& d, RequestHandlerText& h) {
  field(d, {"parsers", "Parsers of requests, in order."}, h.parsers);
  field(d,
        not_modelled("propagatePriority", "Tell engines the priority.",
                     "engines serve first come, first served"),
        h.propagate_priority);
}

struct DocumentText {
  std::string api_version, kind;
  std::vector<std::string> feature_gates;
  std::vector<PluginText> plugins;
  std::vector<ProfileText> profiles;
  std::optional<DataLayerText> data_layer, data;
  std::optional<DiscoveryText> discovery;
  std::optional<FlowControlText> flow_control;
  Document saturation_detector;
  std::optional<RequestHandlerText> request_handler;
  std::optional<ReferenceText> parser;
};
void describe(Describer& d, DocumentText& t) {
  field(d, {"apiVersion", "Version of the schema."}, t.api_version);
  field(d, {"kind", "EndpointPickerConfig."}, t.kind);
  field(d, {"featureGates", "Gates to open, or GATE=false."}, t.feature_gates);
  field(d, {"plugins", "Instances of plugins."}, t.plugins);
  field(d, {"schedulingProfiles", "How to choose an endpoint."}, t.profiles);
  field(d, {"dataLayer", "What the router knows of endpoints."}, t.data_layer);
  field(d, {"data", "Older name of dataLayer."}, t.data);
  field(d, no_effect("discovery", "Older place of dataLayer.discovery.", kAllKnown), t.discovery);
  field(d, {"flowControl", "Queues in front of the scheduler."}, t.flow_control);
  field(d, {"saturationDetector", "Older place: a reference, or thresholds of utilization."},
        t.saturation_detector);
  field(d, {"requestHandler", "How requests are read."}, t.request_handler);
  field(d, {"parser", "Older name of the first of requestHandler.parsers."}, t.parser);
}

/// strconv.ParseBool after lower-casing and trimming: 1, t, true, 0, f, false.
std::optional<bool> go_bool(std::string_view text) {
  std::string t;
  for (const char c : text)
    if (c != ' ' && c != '\t') t += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (t == "1" || t == "t" || t == "true") return true;
  if (t == "0" || t == "f" || t == "false") return false;
  return std::nullopt;
}

/// A Kubernetes quantity as a whole number: "500", "1k", "5Mi", "1e9", "2.5G". Nothing when
/// malformed, negative or above 2^63 - 1.
std::optional<std::int64_t> kubernetes_quantity(std::string_view text) {
  constexpr std::array<std::string_view, 13> kUnits = {"",   "k",  "M",  "G",  "T",  "P", "E",
                                                       "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  constexpr std::array<double, 13> kFactors = {1,      1e3,    1e6,    1e9,    1e12,   1e15,  1e18,
                                               0x1p10, 0x1p20, 0x1p30, 0x1p40, 0x1p50, 0x1p60};
  std::size_t digits = text.find_first_not_of("0123456789.");
  if (digits < text.size() && (text[digits] == 'e' || text[digits] == 'E') &&
      digits + 1 < text.size() && text[digits + 1] >= '0' && text[digits + 1] <= '9')
    digits = text.find_first_not_of("0123456789", digits + 1);
  digits = std::min(digits, text.size());
  const std::optional<double> value = number_from(text.substr(0, digits));
  if (!value || *value < 0 || text.starts_with('-')) return std::nullopt;
  const auto unit = std::find(kUnits.begin(), kUnits.end(), text.substr(digits));
  if (unit == kUnits.end()) return std::nullopt;
  // Quantities round up to whole numbers.
  const double total =
      std::ceil(*value * kFactors[static_cast<std::size_t>(unit - kUnits.begin())]);
  return total < 9.2e18 ? std::optional(static_cast<std::int64_t>(total)) : std::nullopt;
}

/// Gates of earlier releases; what they guarded has become the only way.
bool is_retired_gate(const std::string& gate) {
  return gate == "dataLayer" || gate == "prepareDataPlugins" || gate == "experimentalDatalayer";
}

class Converter {
 public:
  Converter(const DocumentText& text, const Provenance& places, EndpointPickerConfig& config,
            DocumentReferences& references, Diagnostics& diagnostics)
      : text_(text),
        places_(places),
        config_(config),
        references_(references),
        diagnostics_(diagnostics) {}

  void run() {
    check_versions();
    feature_gates();
    plugins();
    profiles();
    if (text_.data_layer) data_layer(*text_.data_layer, "dataLayer");
    if (text_.data) data_layer(*text_.data, "data");
    // Before it became a part of the data layer.
    if (text_.discovery) discovery(*text_.discovery, "discovery");
    if (text_.flow_control) flow_control(*text_.flow_control);
    if (text_.saturation_detector.root) saturation_detector(*text_.saturation_detector.root);
    if (text_.request_handler) request_handler(*text_.request_handler);
    if (text_.parser) {
      const auto parser = reference(text_.parser->plugin, "parser");
      if (parser && references_.parsers.empty()) references_.parsers.push_back(*parser);
    }
  }

 private:
  void error(const std::string& path, std::string message, std::string hint = {}) {
    diagnostics_.error(places_.nearest(path), path, std::move(message), std::move(hint));
  }
  PluginReference at(const std::string& name, const std::string& path) const {
    return {.name = name, .weight = {}, .where = places_.nearest(path), .path = path};
  }
  /// The reference of the map at `path`; nothing, with an error, when it names no plugin.
  std::optional<PluginReference> reference(const std::string& name, const std::string& path) {
    if (!name.empty()) return at(name, path);
    if (!is_broken(diagnostics_, path)) error(path, "is missing a pluginRef");
    return std::nullopt;
  }
  void add_references(const std::vector<ReferenceText>& list, const std::string& path,
                      std::vector<PluginReference>& out) {
    for (std::size_t i = 0; i < list.size(); ++i)
      if (auto r = reference(list[i].plugin, element_path(path, i))) out.push_back(std::move(*r));
  }

  void check_versions() {
    config_.api_version = text_.api_version;
    if (text_.api_version.empty())
      error("apiVersion", "is required but missing", "write 'apiVersion: llm-d.ai/v1alpha1'");
    else if (text_.api_version != "llm-d.ai/v1" && text_.api_version != "llm-d.ai/v1alpha1" &&
             text_.api_version != "inference.networking.x-k8s.io/v1alpha1")
      diagnostics_.error(
          places_.nearest(""), "apiVersion",
          "is not a known version (got '" + text_.api_version + "')",
          "known: llm-d.ai/v1, llm-d.ai/v1alpha1, inference.networking.x-k8s.io/v1alpha1");
    if (text_.kind != "EndpointPickerConfig")
      diagnostics_.error(places_.nearest(""), "kind",
                         "must be 'EndpointPickerConfig' (got '" + text_.kind + "')");
  }

  void feature_gates() {
    config_.feature_gates = {{"flowControl", false}, {"haPopulateNonLeaderDatastore", true}};
    for (std::size_t i = 0; i < text_.feature_gates.size(); ++i) {
      const std::string& text = text_.feature_gates[i];
      const std::string path = element_path("featureGates", i);
      if (is_broken(diagnostics_, path)) continue;
      const std::size_t equals = text.find('=');
      const std::string gate = text.substr(0, equals);
      const std::optional<bool> value = equals == std::string::npos
                                            ? std::optional<bool>(true)
                                            : go_bool(text.substr(equals + 1));
      if (is_retired_gate(gate))
        diagnostics_.warning(places_.nearest(path), path,
                             "feature gate '" + gate + "' has no effect here",
                             "later releases always do what it switched on");
      else if (config_.feature_gates.count(gate) == 0)
        error(path, "feature gate '" + gate + "' is unknown or unregistered",
              "registered: flowControl, haPopulateNonLeaderDatastore");
      else if (!value)
        error(
            path,
            "'" + text.substr(equals + 1) + "' is not a valid value of feature gate '" + gate + "'",
            "use true or false");
      else
        config_.feature_gates[gate] = *value;
    }
  }

  void plugins() {
    for (std::size_t i = 0; i < text_.plugins.size(); ++i) {
      const PluginText& text = text_.plugins[i];
      PluginSpec spec;
      spec.path = element_path("plugins", i);
      spec.where = places_.nearest(spec.path);
      spec.type = text.type;
      spec.name = text.name.empty() ? text.type : text.name;
      const ConfigNode::Ptr& parameters = text.parameters.root;
      if (parameters != nullptr && parameters->is_map())
        spec.parameters = parameters;
      else if (parameters != nullptr)
        error(spec.path + ".parameters", "must be a map (" + got(*parameters) + ")");
      config_.plugins.push_back(std::move(spec));
    }
  }

  void profiles() {
    for (std::size_t i = 0; i < text_.profiles.size(); ++i) {
      ProfileSpec profile;
      profile.name = text_.profiles[i].name;
      profile.path = element_path("schedulingProfiles", i);
      profile.where = places_.nearest(profile.path);
      for (std::size_t j = 0; j < text_.profiles[i].plugins.size(); ++j) {
        const ProfileEntryText& entry = text_.profiles[i].plugins[j];
        auto r = reference(entry.plugin, element_path(profile.path + ".plugins", j));
        if (!r) continue;
        r->weight = entry.weight;
        profile.plugins.push_back(std::move(*r));
      }
      config_.profiles.push_back(std::move(profile));
    }
  }

  void discovery(const DiscoveryText& text, const std::string& path) {
    DataLayerSpec& data = config_.data_layer;
    if (!text.endpoints && !text.peers) data.discovery = reference(text.plugin, path);
    if (text.endpoints) data.discovery = reference(text.endpoints->plugin, path + ".endpoints");
    if (text.peers) data.peer_discovery = reference(text.peers->plugin, path + ".peers");
  }

  void data_layer(const DataLayerText& text, const std::string& path) {
    DataLayerSpec& data = config_.data_layer;
    data.inject_defaults = text.inject_defaults;
    for (std::size_t i = 0; i < text.sources.size(); ++i) {
      const std::string at_source = element_path(path + ".sources", i);
      DataSourceSpec source;
      source.source = reference(text.sources[i].plugin, at_source).value_or(at("", at_source));
      add_references(text.sources[i].extractors, at_source + ".extractors", source.extractors);
      data.sources.push_back(std::move(source));
    }
    if (text.discovery) discovery(*text.discovery, path + ".discovery");
    if (text.peer_discovery)
      data.peer_discovery = reference(text.peer_discovery->plugin, path + ".peerDiscovery");
  }

  void quantity(const Document& text, const std::string& path, std::optional<std::int64_t>& value) {
    if (text.root == nullptr) return;
    const auto parsed =
        text.root->is_scalar() ? kubernetes_quantity(text.root->text()) : std::nullopt;
    if (parsed)
      value = parsed;
    else
      error(path, "must be a quantity such as 500 or 1Gi (" + got(*text.root) + ")");
  }

  PriorityBandSpec band(const BandText& text, const std::string& path) {
    PriorityBandSpec band;
    band.priority = text.priority;
    quantity(text.max_bytes, path + ".maxBytes", band.max_bytes);
    quantity(text.max_requests, path + ".maxRequests", band.max_requests);
    band.default_request_ttl = text.default_request_ttl;
    if (text.fairness_policy) {
      band.fairness_policy = *text.fairness_policy;
      references_.fairness_policies.push_back(
          at(*text.fairness_policy, path + ".fairnessPolicyRef"));
    }
    if (text.ordering_policy) {
      band.ordering_policy = *text.ordering_policy;
      references_.ordering_policies.push_back(
          at(*text.ordering_policy, path + ".orderingPolicyRef"));
    }
    return band;
  }

  void flow_control(const FlowControlText& text) {
    const std::string path = "flowControl";
    FlowControlSpec& flow = config_.flow_control;
    quantity(text.max_bytes, path + ".maxBytes", flow.max_bytes);
    quantity(text.max_requests, path + ".maxRequests", flow.max_requests);
    references_.request_ttl = text.default_request_ttl;
    references_.no_endpoint_request_ttl = text.no_endpoint_request_ttl;
    if (text.default_band)
      flow.default_band = band(*text.default_band, path + ".defaultPriorityBand");
    flow.default_negative_band = flow.default_band;
    if (text.default_negative_band)
      flow.default_negative_band =
          band(*text.default_negative_band, path + ".defaultNegativePriorityBand");
    for (std::size_t i = 0; i < text.bands.size(); ++i)
      flow.bands.push_back(band(text.bands[i], element_path(path + ".priorityBands", i)));
    if (text.usage_limit_policy) {
      flow.usage_limit_policy = *text.usage_limit_policy;
      references_.usage_limit_policy =
          at(*text.usage_limit_policy, path + ".usageLimitPolicyPluginRef");
    }
    if (text.saturation_detector)
      references_.saturation_detector =
          reference(text.saturation_detector->plugin, path + ".saturationDetector");
    flow.evicts = text.enable_eviction;
  }

  /// Before the second quarter of 2026 the detector's thresholds stood here, without a plugin.
  void saturation_detector(const ConfigNode& node) {
    const std::string path = "saturationDetector";
    if (node.find("pluginRef") != nullptr || !node.is_map()) {
      ReferenceText text;
      read_struct(node, text, diagnostics_, document_options(path));
      const auto r = reference(text.plugin, path);
      if (r && !references_.saturation_detector) references_.saturation_detector = r;
      return;
    }
    references_.inline_detector = true;
    if (references_.saturation_detector) return;
    PluginSpec spec;
    spec.name = spec.type = "utilization-detector";
    spec.parameters = text_.saturation_detector.root;
    spec.where = node.where();
    spec.implicit = true;
    config_.plugins.push_back(std::move(spec));
    references_.saturation_detector = at("utilization-detector", path);
  }

  void request_handler(const RequestHandlerText& text) {
    add_references(text.parsers, "requestHandler.parsers", references_.parsers);
    if (text.propagate_priority)
      diagnostics_.warning(places_.nearest("requestHandler"), "requestHandler.propagatePriority",
                           "has no effect here: engines serve first come, first served");
  }

  const DocumentText& text_;
  const Provenance& places_;
  EndpointPickerConfig& config_;
  DocumentReferences& references_;
  Diagnostics& diagnostics_;
};

}  // namespace

void describe_document(Describer& d) {
  DocumentText text;
  describe(d, text);
}

void decode_document(const ConfigNode& root, EndpointPickerConfig& config,
                     DocumentReferences& references, Diagnostics& diagnostics) {
  if (root.is_null()) return diagnostics.error(root.where(), "", "the document is empty");
  DocumentText text;
  Provenance places;
  ReadOptions options = document_options({});
  options.provenance = &places;
  read_struct(root, text, diagnostics, options);
  if (!root.is_map()) return;
  if (const ConfigNode* flow = root.child("flowControl")) {
    references.flow_control_where = flow->where();
    for (const ConfigNode::Member& member : flow->members())
      references.has_flow_control |= member.key != "saturationDetector";
  }
  Converter(text, places, config, references, diagnostics).run();
}

}  // namespace routesim::policies
