// EndpointPickerConfig documents built in C++, so that the tests of sim/ need no YAML.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policies/config/document.h"

namespace routesim::sim::testing {

inline tree::Node text(const std::string& s) { return tree::text(s); }
inline tree::Node number(std::int64_t n) { return tree::number(n); }
inline tree::Node map(tree::Map members) { return tree::map(std::move(members)); }
inline tree::Node list(std::vector<tree::Node> items) { return tree::list(std::move(items)); }

/// A plugin of a profile; weight 0 is left out.
struct Reference {
  std::string name;
  double weight = 0;
};

class DocumentBuilder {
 public:
  explicit DocumentBuilder(std::string api = "llm-d.ai/v1alpha1") : api_(std::move(api)) {}

  DocumentBuilder& plugin(const std::string& type, const tree::Node& parameters = nullptr) {
    tree::Map entry{{"type", text(type)}};
    if (parameters != nullptr) entry.emplace_back("parameters", parameters);
    plugins_.push_back(map(std::move(entry)));
    return *this;
  }
  DocumentBuilder& profile(const std::string& name, const std::vector<Reference>& plugins) {
    std::vector<tree::Node> list;
    for (const Reference& r : plugins) {
      tree::Map entry{{"pluginRef", text(r.name)}};
      if (r.weight > 0) entry.emplace_back("weight", tree::number(r.weight));
      list.push_back(map(std::move(entry)));
    }
    profiles_.push_back(map({{"name", text(name)}, {"plugins", tree::list(std::move(list))}}));
    return *this;
  }
  /// Any other top-level key.
  DocumentBuilder& set(const std::string& key, const tree::Node& value) {
    rest_.emplace_back(key, value);
    return *this;
  }
  policies::EndpointPickerConfig build(const policies::LoadOptions& options = {}) const {
    tree::Map entries = {{"apiVersion", text(api_)},
                         {"kind", text("EndpointPickerConfig")},
                         {"plugins", tree::list(plugins_)},
                         {"schedulingProfiles", tree::list(profiles_)}};
    entries.insert(entries.end(), rest_.begin(), rest_.end());
    const tree::Node root = map(std::move(entries));
    Diagnostics found;
    std::optional<policies::EndpointPickerConfig> config =
        policies::load_endpoint_picker_config(*root, options, found);
    for (const Diagnostic& d : found.items())
      if (d.severity == Severity::kError) ADD_FAILURE() << to_string(d);
    return config ? *config : policies::EndpointPickerConfig{};
  }

 private:
  std::string api_;
  std::vector<tree::Node> plugins_, profiles_;
  tree::Map rest_;
};

inline tree::Node precise_parameters(std::int64_t block_size, bool speculative) {
  return map({{"tokenProcessorConfig", map({{"blockSize", tree::number(block_size)}})},
              {"kvEventsConfig", map({{"zmqEndpoint", text("tcp://*:5557")}})},
              {"speculativeIndexing", tree::boolean(speculative)}});
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

/// The same, of llm-d-router v0.10.0, which subscribes to endpoints; `port` asks for replays.
inline policies::EndpointPickerConfig replaying_config(std::int64_t block_size, bool port) {
  policies::LoadOptions options;
  options.era = policies::Era::kAug2026;
  tree::Map discovery;
  if (port) discovery.emplace_back("replaySocketPort", number(5558));
  return DocumentBuilder()
      .plugin("single-profile-handler")
      .plugin("endpoint-notification-source")
      .plugin("precise-prefix-cache-scorer",
              map({{"tokenProcessorConfig", map({{"blockSize", number(block_size)}})},
                   {"kvEventsConfig", map({{"podDiscoveryConfig", map(std::move(discovery))}})}}))
      .plugin("queue-scorer")
      .plugin("max-score-picker")
      .profile("default",
               {{"precise-prefix-cache-scorer", 3}, {"queue-scorer", 1}, {"max-score-picker"}})
      .set("dataLayer",
           map({{"sources",
                 list({map(
                     {{"pluginRef", text("endpoint-notification-source")},
                      {"extractors",
                       list({map({{"pluginRef", text("precise-prefix-cache-scorer")}})})}})})}}))
      .build(options);
}

/// Requests go anywhere; the router names the server with most of the prompt in host memory.
inline policies::EndpointPickerConfig pulling_config(std::int64_t block_size, std::int64_t delta,
                                                     bool speculative = false) {
  return DocumentBuilder()
      .plugin("single-profile-handler")
      .plugin("precise-prefix-cache-producer", precise_parameters(block_size, speculative))
      .plugin("p2p-source-producer",
              map({{"prefixMatchInfoProducerName", text("precise-prefix-cache-producer")},
                   {"prefillProfileName", text("default")},
                   {"minCachedTokenDelta", number(delta)}}))
      .plugin("queue-scorer")
      .plugin("weighted-random-picker")
      .profile("default", {{"queue-scorer", 1}, {"weighted-random-picker"}})
      .build();
}

/// Queue and cache use only; with `held_back` behind flow control.
inline policies::EndpointPickerConfig load_aware_config(bool held_back = false) {
  DocumentBuilder document;
  if (held_back) document.set("featureGates", list({text("flowControl")}));
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
