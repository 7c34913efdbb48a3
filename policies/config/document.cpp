#include "policies/config/document.h"

#include "base/scalar_parse.h"
#include "base/text.h"
#include "policies/config/document_loader.h"
#include "policies/config/factory.h"
#include "policies/config/inert_keys.h"

namespace routesim::policies {

namespace {

/// Builds the plugins of a document, only to report what is wrong with their parameters.
void build_plugins(EndpointPickerConfig config, const PluginRegistry& registry,
                   Diagnostics& diagnostics) {
  PluginSet plugins;
  SignalNeeds needs;
  BuildContext(config, registry, plugins, needs, false, diagnostics).build_all();
}

}  // namespace

std::optional<EndpointPickerConfig> load_endpoint_picker_config(const ConfigNode& root,
                                                                const LoadOptions& options,
                                                                Diagnostics& diagnostics) {
  EndpointPickerConfig config;
  DocumentReferences references;
  Diagnostics found;
  decode_document(root, config, references, found);
  fold_old_names(config, references, found);
  if (options.distribution) config.distribution = *options.distribution;
  if (options.era) {
    config.era = *options.era;
    config.era_origin = options.era_origin;
  } else {
    infer_era(root, config, references, found);
  }
  const PluginRegistry& registry =
      options.registry != nullptr ? *options.registry : standard_registry();
  if (root.is_map()) complete_document(config, references, registry, found);
  for (const PluginSpec& spec : config.plugins)
    if (const PluginType* type = registry.find(spec.type);
        type != nullptr && type->support == PluginType::Support::kInert)
      check_inert_parameters(spec, unknown_keys(traits(config.era)), found);
  if (!found.has_errors()) check_wiring(config, found);
  // A scheduler checks the parameters, but nobody will build one.
  if (found.has_errors() && root.is_map()) build_plugins(config, registry, found);
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  for (const KeyUse& use : found.keys()) diagnostics.key(use);
  if (found.has_errors()) return std::nullopt;
  return config;
}

namespace {

using Kind = LocatedDocument::Kind;

/// Charts put pluginsCustomConfig below `inferenceExtension`, `inferencePool` or `router.epp`.
constexpr int kChartDepth = 2;
constexpr std::string_view kChartDefaultFile = "default-plugins.yaml";

/// The text of a value; empty when there is none, or when it is no text.
std::string_view text_of(const ConfigNode* value) {
  return value != nullptr && value->is_text() ? std::string_view(value->text())
                                              : std::string_view();
}

bool is_document(const ConfigNode& v) { return text_of(v.child("kind")) == "EndpointPickerConfig"; }

std::string below(const std::string& base, const std::string& key) {
  return base.empty() ? key : base + "." + key;
}

/// The document in `files`, a map of file names to documents or their text.
LocatedDocument chosen_file(const ConfigNode& files, const ConfigNode* wanted,
                            const std::string& path) {
  const ConfigNode::Member* chosen = &files.members().front();
  if (const ConfigNode::Member* named = files.find(text_of(wanted))) chosen = named;
  const ConfigNode& node = *chosen->value;
  if (!node.is_text() && !node.is_map()) return {};
  return {.kind = node.is_map() ? Kind::kDocument : Kind::kText,
          .node = &node,
          .path = path + "[" + chosen->key + "]"};
}

/// Whether the image is the endpoint picker of llm-d; charts name it or leave it to their default.
bool is_router_image(const ConfigNode& image) {
  bool named = false;
  for (const char* key : {"name", "repository"}) {
    const std::string_view name = text_of(image.child(key));
    named = named || !name.empty();
    for (const char* product : {"llm-d-inference-scheduler", "llm-d-router"})
      if (name.find(product) != std::string_view::npos) return true;
  }
  return !named;
}

ChartValues chart_values(const ConfigNode& chart) {
  ChartValues values;
  const ConfigNode* image = chart.child("image");
  if (image != nullptr && is_router_image(*image)) values.image_tag = text_of(image->child("tag"));
  values.replicas = chart.child("replicas");
  // The second form is how a flag with a value passes through charts that only write names.
  const ConfigNode* flags = chart.child("flags");
  if (flags == nullptr) return values;
  const ConfigNode* elect = flags->child("ha-enable-leader-election");
  values.all_replicas_serve = (elect != nullptr && elect->is_scalar() && !elect->is_text() &&
                               parse_bool(*elect).value == false) ||
                              flags->find("ha-enable-leader-election=false") != nullptr;
  return values;
}

LocatedDocument find_in_values(const ConfigNode& chart, const std::string& path, int depth) {
  const ConfigNode* files = chart.child("pluginsCustomConfig");
  if (files != nullptr && files->is_map() && !files->members().empty()) {
    LocatedDocument found =
        chosen_file(*files, chart.child("pluginsConfigFile"), below(path, "pluginsCustomConfig"));
    found.chart = chart_values(chart);
    if (found.kind != Kind::kNotFound) return found;
  }
  if (depth == 0) return {};
  for (const ConfigNode::Member& member : chart.members()) {
    LocatedDocument found = find_in_values(*member.value, below(path, member.key), depth - 1);
    if (found.kind != Kind::kNotFound) return found;
  }
  return {};
}

/// The values of the endpoint picker itself, which stand below another key in each chart.
const ConfigNode* picker_values(const ConfigNode& root) {
  if (const ConfigNode* router = root.child("router")) return router->child("epp");
  return root.child("inferenceExtension");
}

LocatedDocument without_document(const ConfigNode& root) {
  bool is_chart = false;
  for (const char* chart : {"inferenceExtension", "inferencePool", "router"})
    is_chart = is_chart || root.find(chart) != nullptr;
  if (!is_chart)
    return {.path = {},
            .hint =
                "expected kind: EndpointPickerConfig, or Helm values with config: or "
                "pluginsCustomConfig:"};
  const ConfigNode* picker = picker_values(root);
  const ConfigNode* file = picker == nullptr ? nullptr : picker->child("pluginsConfigFile");
  if (file != nullptr && text_of(file) != kChartDefaultFile)
    return {.path = {},
            .hint = "these Helm values name " +
                    (file->is_scalar() ? in_quotes(file->text()) : "a file") +
                    ", which they do not hold: write the EndpointPickerConfig out"};
  LocatedDocument found{.kind = Kind::kChartDefault, .node = &root, .path = {}};
  if (picker != nullptr) found.chart = chart_values(*picker);
  return found;
}

ConfigNode::Ptr one_profile(const std::string& api_version, std::vector<ConfigNode::Ptr> plugins,
                            std::vector<ConfigNode::Ptr> entries, const SourceLocation& at) {
  const ConfigNode::Ptr profile = tree::map(
      {{"name", tree::text("default", at)}, {"plugins", tree::list(std::move(entries), at)}}, at);
  return tree::map({{"apiVersion", tree::text(api_version, at)},
                    {"kind", tree::text("EndpointPickerConfig", at)},
                    {"plugins", tree::list(std::move(plugins), at)},
                    {"schedulingProfiles", tree::list({profile}, at)}},
                   at);
}

}  // namespace

LocatedDocument find_endpoint_picker_config(const ConfigNode& root) {
  if (is_document(root)) return {.kind = Kind::kDocument, .node = &root, .path = ""};
  if (const ConfigNode* config = root.child("config"); config && is_document(*config))
    return {.kind = Kind::kDocument,
            .node = config,
            .path = "config",
            .distribution = Distribution::kHeimdall};
  LocatedDocument found = find_in_values(root, "", kChartDepth);
  if (found.kind != Kind::kNotFound) return found;
  // A document with a wrong or missing kind is better reported than not found.
  if (root.find("plugins") != nullptr || root.find("schedulingProfiles") != nullptr)
    return {.kind = Kind::kDocument, .node = &root, .path = ""};
  return without_document(root);
}

// llm-d-router pkg/epp/config/loader/defaults.go, config/charts/routerlib/templates/_config.yaml.
ConfigNode::Ptr default_document(const SourceLocation& at, const std::string& api_version) {
  std::vector<ConfigNode::Ptr> plugins, entries;
  for (const auto& [type, weight] : {std::pair("queue-scorer", std::int64_t{2}),
                                     std::pair("kv-cache-utilization-scorer", std::int64_t{2}),
                                     std::pair("prefix-cache-scorer", std::int64_t{3})}) {
    plugins.push_back(tree::map({{"type", tree::text(type, at)}}, at));
    entries.push_back(
        tree::map({{"pluginRef", tree::text(type, at)}, {"weight", tree::number(weight, at)}}, at));
  }
  return one_profile(api_version, plugins, entries, at);
}

namespace {

ConfigNode::Ptr plugin_entry(const char* type, const char* affinity_name, double threshold,
                             const SourceLocation& at) {
  tree::Map entry = {{"type", tree::text(type, at)}};
  if (*affinity_name != 0) {
    entry.emplace_back("name", tree::text(affinity_name, at));
    entry.emplace_back("parameters",
                       tree::map({{"affinityThreshold", tree::number(threshold, at)},
                                  {"ttftSource", tree::text("latencyPredictor", at)},
                                  {"maxTTFTPenaltyMs", tree::number(std::int64_t{5000}, at)}},
                                 at));
  }
  return tree::map(std::move(entry), at);
}

// The same template at ebab6879 (August 2026), where router.latencyPredictor.enabled is true. Its
// profile lists the producer, too, which has no part there.
ConfigNode::Ptr predictor_document(const SourceLocation& at) {
  std::vector<ConfigNode::Ptr> plugins, entries;
  for (const char* type : {"queue-scorer", "kv-cache-utilization-scorer", "prefix-cache-scorer",
                           "predicted-latency-producer", "latency-scorer", "weighted-random-picker",
                           "slo-headroom-tier-filter", "latency-slo-admitter"})
    plugins.push_back(plugin_entry(type, "", 0, at));
  for (const auto& [name, threshold] :
       {std::pair("strict-affinity-filter", 0.99), std::pair("loose-affinity-filter", 0.80)})
    plugins.push_back(plugin_entry("prefix-cache-affinity-filter", name, threshold, at));
  for (const char* name : {"strict-affinity-filter", "slo-headroom-tier-filter",
                           "loose-affinity-filter", "latency-scorer", "weighted-random-picker"})
    entries.push_back(tree::map({{"pluginRef", tree::text(name, at)}}, at));
  return one_profile("llm-d.ai/v1alpha1", plugins, entries, at);
}

}  // namespace

const ConfigNode* chart_predictor(const ConfigNode& values) {
  for (const char* chart : {"router", "inferenceExtension"}) {
    const ConfigNode* router = values.child(chart);
    const ConfigNode* predictor = router == nullptr ? nullptr : router->child("latencyPredictor");
    const ConfigNode* enabled = predictor == nullptr ? nullptr : predictor->child("enabled");
    if (enabled != nullptr && enabled->is_scalar() && parse_bool(*enabled).value == true)
      return predictor;
  }
  return nullptr;
}

ConfigNode::Ptr chart_default_document(const ConfigNode& values) {
  if (values.find("router") != nullptr && chart_predictor(values) != nullptr)
    return predictor_document(values.where());
  return default_document(values.where(), values.find("router") != nullptr
                                              ? "llm-d.ai/v1alpha1"
                                              : "inference.networking.x-k8s.io/v1alpha1");
}

}  // namespace routesim::policies
