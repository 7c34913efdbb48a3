#include <cmath>
#include <set>

#include "policies/config/document_loader.h"

namespace routesim::policies {
namespace {

PluginReference implicit_reference(const std::string& name) {
  return {.name = name, .weight = {}, .where = {}, .path = {}, .implicit = true};
}

class Completer {
 public:
  Completer(EndpointPickerConfig& config, const DocumentReferences& references,
            const PluginRegistry& registry, Diagnostics& diagnostics)
      : config_(config), references_(references), registry_(registry), diagnostics_(diagnostics) {}

  void run() {
    check_plugins();
    default_profiles();
    check_profiles();
    choose_handler();
    choose_detector();
    check_flow_control();
    check_parsers();
    check_data_layer();
  }

 private:
  std::uint32_t roles(const std::string& plugin) const {
    const PluginSpec* spec = config_.find(plugin);
    const PluginType* type = spec == nullptr ? nullptr : registry_.find(spec->type);
    return type == nullptr ? 0 : type->roles;
  }
  bool known(const std::string& plugin) const {
    const PluginSpec* spec = config_.find(plugin);
    return spec != nullptr && registry_.find(spec->type) != nullptr;
  }
  // False, with an error, unless the reference names a plugin with one of the roles.
  bool check(const PluginReference& r, std::uint32_t wanted) {
    if (config_.find(r.name) == nullptr) {
      std::vector<std::string> names;
      for (const PluginSpec& s : config_.plugins) names.push_back(s.name);
      const std::string close = nearest(r.name, names);
      diagnostics_.error(
          r.where, r.path, "references undefined plugin '" + r.name + "'",
          close.empty() ? "declare it in 'plugins'" : "did you mean '" + close + "'?");
      return false;
    }
    if (!known(r.name)) return false;  // Already reported.
    if ((roles(r.name) & wanted) != 0) return true;
    diagnostics_.error(r.where, r.path,
                       "plugin '" + r.name + "' is no " + role_names(wanted) + " (it is a " +
                           role_names(roles(r.name)) + ")");
    return false;
  }
  const std::string& add_implicit(const std::string& type) {
    PluginSpec spec;
    spec.name = spec.type = type;
    spec.implicit = true;
    config_.plugins.push_back(std::move(spec));
    return config_.plugins.back().name;
  }

  void check_plugins();
  void default_profiles();
  void check_profiles();
  void check_profile(ProfileSpec& profile);
  void choose_handler();
  void choose_detector();
  void check_flow_control();
  void bound_waiting();
  bool is_referred_to(std::string_view policy) const;
  void check_parsers();
  void check_data_layer();

  EndpointPickerConfig& config_;
  const DocumentReferences& references_;
  const PluginRegistry& registry_;
  Diagnostics& diagnostics_;
};

void Completer::check_plugins() {
  std::set<std::string> names;
  for (const PluginSpec& spec : config_.plugins) {
    if (spec.type.empty()) {
      diagnostics_.error(spec.where, spec.path, "plugin '" + spec.name + "' is missing a type");
      continue;
    }
    if (!names.insert(spec.name).second)
      diagnostics_.error(spec.where, spec.path, "duplicate plugin name '" + spec.name + "'",
                         "give one of them a 'name'");
    const PluginType* type = registry_.find(spec.type);
    if (type == nullptr) {
      const std::string close = nearest(spec.type, registry_.type_names());
      diagnostics_.error(spec.where, spec.path, "plugin type '" + spec.type + "' is not registered",
                         close.empty() ? std::string() : "did you mean '" + close + "'?");
    } else if (type->support == PluginType::Support::kRefused) {
      diagnostics_.error(
          spec.where, spec.path,
          "plugin type '" + spec.type + "' is not available: " + std::string(type->note));
    }
  }
}

// Upstream fills the default profile in hash-map order; here it is document order.
void Completer::default_profiles() {
  if (!config_.profiles.empty()) return;
  ProfileSpec profile;
  profile.name = "default";
  bool has_picker = false;
  for (const PluginSpec& spec : config_.plugins) {
    if (spec.implicit) continue;
    const std::uint32_t r = roles(spec.name);
    if ((r & (kFilterRole | kScorerRole | kPickerRole)) == 0) continue;
    if ((r & kPickerRole) != 0 && has_picker) {
      diagnostics_.warning(spec.where, spec.path,
                           "a second picker is left out of the default profile",
                           "write schedulingProfiles: upstream would take one of them by chance");
      continue;
    }
    has_picker = has_picker || (r & kPickerRole) != 0;
    profile.plugins.push_back(implicit_reference(spec.name));
  }
  config_.profiles.push_back(std::move(profile));
}

void Completer::check_profiles() {
  std::set<std::string> names;
  for (ProfileSpec& profile : config_.profiles) {
    if (profile.name.empty())
      diagnostics_.error(profile.where, profile.path, "scheduling profile is missing a name");
    else if (!names.insert(profile.name).second)
      diagnostics_.error(profile.where, profile.path,
                         "scheduling profile '" + profile.name + "' has duplicate name");
    check_profile(profile);
  }
}

void Completer::check_profile(ProfileSpec& profile) {
  bool has_picker = false;
  for (const PluginReference& r : profile.plugins) {
    if (config_.find(r.name) == nullptr) {
      check(r, 0);
      continue;
    }
    const std::uint32_t role = roles(r.name);
    if (known(r.name) && (role & (kFilterRole | kScorerRole | kPickerRole)) == 0)
      diagnostics_.warning(
          r.where, r.path,
          "plugin '" + r.name + "' has no part in a profile (it is a " + role_names(role) + ")");
    if (r.weight && known(r.name) && (role & kScorerRole) == 0)
      diagnostics_.warning(r.where, r.path, "a weight has no effect on a plugin that is no scorer");
    if (r.weight && traits(config_.era).integer_weights && std::floor(*r.weight) != *r.weight)
      diagnostics_.error(r.where, r.path,
                         "weight must be a whole number in era " + std::string(name(config_.era)));
    if ((role & kPickerRole) == 0) continue;
    if (has_picker)
      diagnostics_.error(r.where, r.path, "profile '" + profile.name + "' already has a picker");
    has_picker = true;
  }
  if (has_picker) return;
  for (const PluginSpec& spec : config_.plugins)
    if ((roles(spec.name) & kPickerRole) != 0)
      return profile.plugins.push_back(implicit_reference(spec.name));
  profile.plugins.push_back(implicit_reference(add_implicit("max-score-picker")));
}

void Completer::choose_handler() {
  const PluginSpec* handler = nullptr;
  for (const PluginSpec& spec : config_.plugins) {
    if ((roles(spec.name) & kProfileHandlerRole) == 0) continue;
    if (handler != nullptr) {
      diagnostics_.error(
          spec.where, spec.path,
          "multiple profile handlers: '" + handler->name + "' and '" + spec.name + "'");
      return;
    }
    handler = &spec;
  }
  if (handler == nullptr) {
    if (config_.profiles.size() == 1)
      config_.profile_handler = add_implicit("single-profile-handler");
    else
      diagnostics_.error(config_.profiles.front().where, "schedulingProfiles",
                         "more than one profile needs a profile handler plugin");
    return;
  }
  config_.profile_handler = handler->name;
  if (handler->type == "single-profile-handler" && config_.profiles.size() > 1)
    diagnostics_.error(handler->where, handler->path,
                       "single-profile-handler cannot be used with more than one profile");
}

void Completer::choose_detector() {
  if (references_.saturation_detector) {
    if (check(*references_.saturation_detector, kDetectorRole))
      config_.saturation_detector = references_.saturation_detector->name;
    return;
  }
  for (const PluginSpec& spec : config_.plugins) {
    if (spec.type != "utilization-detector" || spec.name != spec.type) continue;
    config_.saturation_detector = spec.name;
    return;
  }
  if (registry_.find("utilization-detector") != nullptr)
    config_.saturation_detector = add_implicit("utilization-detector");
}

// Zero is no limit for all bands together, and the default for one band.
void Completer::bound_waiting() {
  const bool bounded = traits(config_.era).bounds_waiting;
  FlowControlSpec& flow = config_.flow_control;
  flow.default_request_ttl =
      references_.request_ttl.value_or(bounded ? Duration::seconds(60) : Duration::zero());
  flow.no_endpoint_request_ttl =
      references_.no_endpoint_request_ttl.value_or(flow.default_request_ttl);
  for (std::optional<std::int64_t>* limit : {&flow.max_bytes, &flow.max_requests})
    if (*limit == 0) limit->reset();
  const auto bound = [bounded](PriorityBandSpec& band) {
    if (band.max_bytes == 0) band.max_bytes = PriorityBandSpec().max_bytes;
    if (band.max_requests == 0) band.max_requests.reset();
    if (!band.max_requests && bounded) band.max_requests = 5'000;
  };
  bound(flow.default_band);
  bound(flow.default_negative_band);
  for (PriorityBandSpec& band : flow.bands) bound(band);
}

void Completer::check_flow_control() {
  bound_waiting();
  if (references_.has_flow_control && !config_.gate("flowControl"))
    diagnostics_.warning(references_.flow_control_where, "flowControl",
                         "has no effect while the feature gate flowControl is off",
                         "add 'flowControl' to featureGates");
  // Policies that every router has need no declaration.
  for (const char* type :
       {"fcfs-ordering-policy", "global-strict-fairness-policy", "static-usage-limit-policy"})
    if (config_.find(type) == nullptr && registry_.find(type) != nullptr &&
        (config_.gate("flowControl") || is_referred_to(type)))
      add_implicit(type);
  for (const PluginReference& r : references_.fairness_policies) check(r, kFairnessPolicyRole);
  for (const PluginReference& r : references_.ordering_policies) check(r, kOrderingPolicyRole);
  if (references_.usage_limit_policy) check(*references_.usage_limit_policy, kUsageLimitPolicyRole);
}

bool Completer::is_referred_to(std::string_view policy) const {
  const auto named = [&](const PluginReference& r) { return r.name == policy; };
  const auto any = [&](const auto& list) { return std::any_of(list.begin(), list.end(), named); };
  return any(references_.fairness_policies) || any(references_.ordering_policies) ||
         (references_.usage_limit_policy && named(*references_.usage_limit_policy));
}

void Completer::check_parsers() {
  for (const PluginReference& r : references_.parsers)
    if (check(r, kParserRole)) config_.parsers.push_back(r.name);
  if (!references_.parsers.empty()) return;
  config_.parsers = {"openai-parser", "anthropic-parser", "vllmhttp-parser", "passthrough-parser"};
}

void Completer::check_data_layer() {
  bool has_metrics = false;
  for (const DataSourceSpec& source : config_.data_layer.sources) {
    check(source.source, kDataSourceRole);
    const PluginSpec* spec = config_.find(source.source.name);
    has_metrics = has_metrics || (spec != nullptr && spec->type == "metrics-data-source");
    for (const PluginReference& r : source.extractors) check(r, kExtractorRole);
  }
  if (config_.data_layer.discovery) check(*config_.data_layer.discovery, kDiscoveryRole);
  if (config_.data_layer.peer_discovery) check(*config_.data_layer.peer_discovery, kDiscoveryRole);
  if (has_metrics || !config_.data_layer.inject_defaults) return;
  config_.data_layer.sources.push_back(
      {implicit_reference("metrics-data-source"), {implicit_reference("core-metrics-extractor")}});
}

}  // namespace

void complete_document(EndpointPickerConfig& config, const DocumentReferences& references,
                       const PluginRegistry& registry, Diagnostics& diagnostics) {
  Completer(config, references, registry, diagnostics).run();
}

}  // namespace routesim::policies
