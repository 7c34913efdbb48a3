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
