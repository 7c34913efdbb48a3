// EndpointPickerConfig documents built in C++, so that the tests of sim/ need no YAML.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policies/config/document.h"
#include "policies/parameter_value.h"

namespace routesim::sim::testing {

using policies::ParameterValue;

inline ParameterValue text(const std::string& s) { return ParameterValue(s); }
inline ParameterValue map(ParameterValue::Map m) { return ParameterValue(std::move(m)); }

/// A plugin of a profile; weight 0 is left out.
struct Reference {
  std::string name;
  double weight = 0;
};

class DocumentBuilder {
 public:
  explicit DocumentBuilder(std::string api = "llm-d.ai/v1alpha1") : api_(std::move(api)) {}

  DocumentBuilder& plugin(const std::string& type, ParameterValue parameters = {}) {
    ParameterValue::Map entry{{"type", text(type)}};
    if (!parameters.is_null()) entry.emplace_back("parameters", std::move(parameters));
    plugins_.push_back(map(std::move(entry)));
    return *this;
  }
  DocumentBuilder& profile(const std::string& name, const std::vector<Reference>& plugins) {
    ParameterValue::List list;
    for (const Reference& r : plugins) {
      ParameterValue::Map entry{{"pluginRef", text(r.name)}};
      if (r.weight > 0) entry.emplace_back("weight", ParameterValue(r.weight));
      list.push_back(map(std::move(entry)));
    }
    profiles_.push_back(map({{"name", text(name)}, {"plugins", ParameterValue(std::move(list))}}));
    return *this;
  }
  /// Any other top-level key.
  DocumentBuilder& set(const std::string& key, ParameterValue value) {
    rest_.emplace_back(key, std::move(value));
    return *this;
  }
  policies::EndpointPickerConfig build(const policies::LoadOptions& options = {}) const {
    ParameterValue::Map entries = {{"apiVersion", text(api_)},
                                   {"kind", text("EndpointPickerConfig")},
                                   {"plugins", ParameterValue(plugins_)},
                                   {"schedulingProfiles", ParameterValue(profiles_)}};
    entries.insert(entries.end(), rest_.begin(), rest_.end());
    const ParameterValue root = map(std::move(entries));
    Diagnostics found;
    std::optional<policies::EndpointPickerConfig> config =
        policies::load_endpoint_picker_config(root, options, found);
    for (const Diagnostic& d : found.items())
      if (d.severity == Severity::kError) ADD_FAILURE() << to_string(d);
    return config ? *config : policies::EndpointPickerConfig{};
  }

 private:
  std::string api_;
  ParameterValue::List plugins_, profiles_;
  ParameterValue::Map rest_;
};

inline ParameterValue precise_parameters(std::int64_t block_size, bool speculative) {
  return map({{"tokenProcessorConfig", map({{"blockSize", ParameterValue(block_size)}})},
              {"kvEventsConfig", map({{"zmqEndpoint", text("tcp://*:5557")}})},
              {"speculativeIndexing", ParameterValue(speculative)}});
}

/// Precise prefix scoring beside queue and cache use, as in llm-d's guide.
inline policies::EndpointPickerConfig precise_config(std::int64_t block_size,
                                                     bool speculative = false) {
  return DocumentBuilder()
      .plugin("single-profile-handler")
      .plugin("precise-prefix-cache-scorer", precise_parameters(block_size, speculative))
      .plugin("kv-cache-utilization-scorer")
      .plugin("queue-scorer")
      .plugin("no-hit-lru-scorer")
      .plugin("max-score-picker")
      .profile("default", {{"kv-cache-utilization-scorer", 2},
                           {"queue-scorer", 2},
                           {"precise-prefix-cache-scorer", 3},
                           {"no-hit-lru-scorer", 2},
                           {"max-score-picker"}})
      .build();
}

/// Queue and cache use only; with `held_back` behind flow control.
inline policies::EndpointPickerConfig load_aware_config(bool held_back = false) {
  DocumentBuilder document;
  if (held_back)
    document.set("featureGates", ParameterValue(ParameterValue::List{text("flowControl")}));
  return document.plugin("single-profile-handler")
      .plugin("kv-cache-utilization-scorer")
      .plugin("queue-scorer")
      .plugin("max-score-picker")
      .profile("default",
               {{"kv-cache-utilization-scorer", 1}, {"queue-scorer", 1}, {"max-score-picker"}})
      .build();
}

/// Every request is prefilled on one server and decoded on another.
inline policies::EndpointPickerConfig disaggregated_config(std::int64_t block_size) {
  const std::vector<Reference> scorers = {
      {"queue-scorer", 1}, {"precise-prefix-cache-scorer", 2}, {"max-score-picker"}};
  std::vector<Reference> prefill = scorers, decode = scorers;
  prefill.insert(prefill.begin(), {"prefill-filter"});
  decode.insert(decode.begin(), {"decode-filter"});
  return DocumentBuilder()
      .plugin("always-disagg-pd-decider")
      .plugin("prefill-header-handler")
      .plugin("pd-profile-handler", map({{"deciderPluginName", text("always-disagg-pd-decider")}}))
      .plugin("prefill-filter")
      .plugin("decode-filter")
      .plugin("queue-scorer")
      .plugin("precise-prefix-cache-scorer", precise_parameters(block_size, false))
      .plugin("max-score-picker")
      .profile("prefill", prefill)
      .profile("decode", decode)
      .build();
}

}  // namespace routesim::sim::testing
