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
  EXPECT_TRUE(with("cache_tracking", "true").mentions("metricsLoggingInterval: must be a string"));
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
  EXPECT_TRUE(Scheduler(*loaded.config, {}, d).valid());
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
                  .mentions("strategy: turn-priority is not modelled"));
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
