// Configurations as people publish them: older names, what may stay undeclared, and what is not
// modelled.
#include <gtest/gtest.h>

#include <string>

#include "tests/policies/scheduler_fixture.h"

namespace routesim::policies {
namespace {

TEST(DocumentAsPublished, TheFirstNamesOfTheSummerOf2025AreStillRead) {
  const Loaded loaded(document("- type: single-profile\n- type: queue-scorer\n- type: max-score\n",
                               "  - pluginRef: queue-scorer\n  - pluginRef: max-score\n",
                               "inference.networking.x-k8s.io/v1alpha1"));
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  EXPECT_EQ(loaded.config->find("max-score")->type, "max-score-picker");
  EXPECT_EQ(loaded.config->profile_handler, "single-profile");
  EXPECT_EQ(name(loaded.config->era), "v0.3.2");
}

// llm-d-inference-scheduler deploy/config/pd-epp-config.yaml, the same from 0.2.1 to 0.5.0.
TEST(DocumentAsPublished, AHandlerWithoutADeciderIsOfTheThresholdsTime) {
  const auto config = [](const std::string& decider) {
    return Loaded(
        "apiVersion: inference.networking.x-k8s.io/v1alpha1\nkind: EndpointPickerConfig\n"
        "plugins:\n- type: prefill-header-handler\n- type: prefix-cache-scorer\n"
        "- type: prefill-filter\n- type: decode-filter\n- type: max-score-picker\n" +
        decider +
        "- type: pd-profile-handler\nschedulingProfiles:\n"
        "- name: prefill\n  plugins:\n  - pluginRef: prefill-filter\n"
        "  - pluginRef: max-score-picker\n  - pluginRef: prefix-cache-scorer\n    weight: 2\n"
        "- name: decode\n  plugins:\n  - pluginRef: decode-filter\n"
        "  - pluginRef: max-score-picker\n  - pluginRef: prefix-cache-scorer\n    weight: 2\n");
  };
  const Loaded published = config("");
  ASSERT_TRUE(published.ok()) << published.text();
  EXPECT_EQ(name(published.config->era), "v0.5.0");
  EXPECT_EQ(published.config->era_origin, "inferred: pd-profile-handler without a decider");
  EndpointTable table = make_endpoints(2);
  table.mutable_info(EndpointId(0)).labels["llm-d.ai/role"] = "prefill";
  EXPECT_EQ(published.scheduler->schedule({.id = 1}, table, SimTime::zero()).prefill,
            EndpointId(0));
  // v0.6.0 has a default decider, and its name changed in v0.7.0.
  const Loaded always = config("- type: always-disagg-pd-decider\n");
  ASSERT_TRUE(always.ok()) << always.text();
  EXPECT_EQ(name(always.config->era), "v0.6.0");
  const Loaded prefix = config("- type: prefix-based-pd-decider\n");
  ASSERT_TRUE(prefix.ok()) << prefix.text();
  EXPECT_EQ(name(prefix.config->era), "v0.7.0");
}

TEST(DocumentAsPublished, AnIntervalOfMid2025MayBeANumberOfNanoseconds) {
  const auto with = [](const std::string& mode, const char* interval) {
    return Loaded(document("- type: prefix-cache-scorer\n  parameters:\n    mode: " + mode +
                               "\n    indexerConfig:\n      kvBlockIndexConfig:\n"
                               "        metricsLoggingInterval: " +
                               interval + "\n- type: frobnicator\n",
                           "  - pluginRef: prefix-cache-scorer\n",
                           "inference.networking.x-k8s.io/v1alpha1"));
  };
  EXPECT_FALSE(with("cache_tracking", "60000000000").mentions("metricsLoggingInterval"));
  EXPECT_TRUE(with("cache_tracking", "true").mentions("metricsLoggingInterval: must be text"));
}

TEST(DocumentAsPublished, ASharedIndexIsReadAsOneInMemory) {
  const Loaded loaded(
      document("- type: precise-prefix-cache-scorer\n  parameters:\n    indexerConfig:\n"
               "      kvBlockIndexConfig:\n        metricsLoggingInterval: 60000000000\n"
               "        valkeyConfig:\n          address: \"valkey://valkey:6379\"\n"
               "          backendType: valkey\n",
               "  - pluginRef: precise-prefix-cache-scorer\n"));
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  EXPECT_TRUE(loaded.mentions("valkeyConfig: is simulated as an index in memory")) << loaded.text();
  Diagnostics d;
  EXPECT_NE(make_scheduler(*loaded.config, {}, d), nullptr);
  EXPECT_TRUE(d.items().empty());
}

TEST(DocumentAsPublished, ProducersMayStandAmongTheExtractors) {
  for (const std::string type : {"inflight-load-producer", "mm-embeddings-cache-producer"}) {
    const Loaded loaded(document("- type: queue-scorer\n- type: endpoint-notification-source\n"
                                 "- type: " +
                                     type + "\n",
                                 "  - pluginRef: queue-scorer\n") +
                        "dataLayer:\n  sources:\n  - pluginRef: endpoint-notification-source\n"
                        "    extractors:\n    - pluginRef: " +
                        type + "\n");
    EXPECT_TRUE(loaded.ok()) << loaded.text();
  }
}

TEST(DocumentAsPublished, TheEncodersOfEarly2026AreNamedAndNothingFollows) {
  const Loaded loaded(
      document("- type: queue-scorer\n- type: encoder-header-handler\n"
               "- type: always-encode-decider\n- type: ed-profile-handler\n",
               "  - pluginRef: queue-scorer\n- name: encode\n  plugins:\n"
               "  - pluginRef: queue-scorer\n"));
  EXPECT_TRUE(loaded.mentions("'always-encode-decider' is not available: encoding images apart"));
  EXPECT_TRUE(loaded.mentions("'ed-profile-handler' is not available: encoding images apart"));
  EXPECT_FALSE(loaded.mentions("did you mean")) << loaded.text();
  EXPECT_FALSE(loaded.mentions("needs a profile handler")) << loaded.text();
}

TEST(DocumentAsPublished, PoliciesThatEveryRouterHasNeedNoDeclaration) {
  const std::string plugins = "- type: queue-scorer\n";
  const std::string band =
      "flowControl:\n  priorityBands:\n  - priority: 1\n"
      "    fairnessPolicyRef: global-strict-fairness-policy\n    orderingPolicyRef: ";
  const auto with = [&](const char* gate, const char* policy) {
    return Loaded(document(plugins, "  - pluginRef: queue-scorer\n") + gate + band + policy + "\n");
  };
  for (const char* gate : {"featureGates: [flowControl]\n", ""}) {
    EXPECT_TRUE(with(gate, "fcfs-ordering-policy").ok()) << gate;
    EXPECT_TRUE(with(gate, "edf-ordering-policy")
                    .mentions("references undefined plugin 'edf-ordering-policy'"));
  }
}

TEST(DocumentAsPublished, DiscoveryStoodAtTheTopOnce) {
  const Loaded loaded(
      document("- type: queue-scorer\n- type: file-discovery\n", "  - pluginRef: queue-scorer\n") +
      "discovery:\n  pluginRef: file-discovery\n");
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  EXPECT_EQ(loaded.config->data_layer.discovery->name, "file-discovery");
}

TEST(DocumentAsPublished, WhatIsNotModelledIsNamed) {
  const std::string profile = "  - pluginRef: queue-scorer\n";
  EXPECT_TRUE(Loaded(document("- type: queue-scorer\n- type: program-aware-fairness\n"
                              "  parameters:\n    strategy: turn-priority\n",
                              profile))
                  .ok());
  for (const std::string type : {"predicted-latency-scorer", "predicted-latency-profile-handler"})
    EXPECT_TRUE(Loaded(document("- type: queue-scorer\n- type: " + type + "\n", profile))
                    .mentions("is not available: latency-scorer and predicted-latency-producer"))
        << type;
  EXPECT_TRUE(
      Loaded(document("- type: queue-scorer\n- type: disaggregatedset-rollout-screener\n", profile))
          .ok());
}

}  // namespace
}  // namespace routesim::policies
