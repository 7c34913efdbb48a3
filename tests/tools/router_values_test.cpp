// What Helm values say of the router besides its document: the release, the replicas, the default.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "sim/plan/resolve.h"
#include "tests/base/messages.h"
#include "tests/tools/scenario_fixture.h"
#include "tools/ingest/tree/description.h"
#include "tools/study/explain/decision_study.h"

namespace routesim::tools {
namespace {

/// A scenario file and the values it names, in a folder of their own.
class RouterValues : public testing::ScenarioTest {
 protected:
  /// The scenario behind the router of `v.yaml`, with more keys of `routing`.
  LoadedScenario load_routed(const std::string& more, Diagnostics& diagnostics) const {
    return load("routing: {balancer: endpoint-picker, endpoint_picker: v.yaml" + more + "}\n",
                diagnostics);
  }
};

/// Helm values around a document that no shape dates.
std::string values(const std::string& epp) {
  return "router:\n  epp:\n" + epp +
         "    pluginsCustomConfig:\n"
         "      a.yaml: |\n"
         "        apiVersion: llm-d.ai/v1alpha1\n"
         "        kind: EndpointPickerConfig\n"
         "        plugins: [{type: queue-scorer}]\n";
}

TEST_F(RouterValues, TheImageTagDatesTheDocument) {
  const auto origin = [&](const std::string& epp, const std::string& era) {
    write("v.yaml", values(epp));
    Diagnostics d;
    const LoadedScenario loaded = load_routed(era, d);
    EXPECT_EQ(messages_of(d), "");
    const auto& config = loaded.variants.at(0).endpoint_picker;
    return config ? std::string(name(config->era)) + ", " + config->era_origin : std::string();
  };
  const std::string tag = "    image: {repository: llm-d-router-endpoint-picker, tag: ";
  EXPECT_EQ(origin(tag + "v0.8.0-rc.1}\n", ""),
            "v0.7.0, image tag v0.8.0-rc.1 decides like v0.7.0");
  EXPECT_EQ(origin(tag + "v0.7.0}\n", ""), "v0.7.0, image tag v0.7.0");
  EXPECT_EQ(origin(tag + "main}\n", ""),
            "2026-08, default: the head of August 2026; later ones differ in pulls and tiers");
  EXPECT_EQ(origin(tag + "v0.7.0}\n", ", era: v0.10.0"),
            "2026-08, set: v0.10.0 decides like 2026-08");
}

TEST_F(RouterValues, ADocumentAloneMakesTheRouterTheBalancer) {
  write("v.yaml", values(""));
  const auto balancer = [&](const std::string& routing) {
    Diagnostics d;
    const LoadedScenario loaded = load(routing, d);
    EXPECT_EQ(messages_of(d), "");
    return loaded.variants.at(0).scenario.routing.balancer;
  };
  EXPECT_EQ(balancer("routing: {endpoint_picker: v.yaml}\n"), sim::BalancerKind::kEndpointPicker);
  EXPECT_EQ(balancer("routing: {endpoint_picker: v.yaml, balancer: least-load}\n"),
            sim::BalancerKind::kLeastLoad)
      << "as a variant does to go without the router";
  EXPECT_EQ(balancer(""), sim::BalancerKind::kK8sService);
}

TEST_F(RouterValues, CostsOfADecisionAreDefaultsUntilTheyAreWritten) {
  write("v.yaml", values(""));
  const auto costs = [&](const std::string& routing) {
    Diagnostics d;
    const LoadedScenario loaded = load("routing: {" + routing + "}\n", d);
    EXPECT_EQ(messages_of(d), "");
    sim::Scenario scenario = loaded.variants.at(0).scenario;
    const FieldDescription values =
        describe_values([&](Describer& describer) { describe(describer, scenario); });
    std::string out;
    for (const ResolvedValue& value : resolved_values(values, loaded.variants[0].provenance))
      if (value.path == "routing.decision_latency" || value.path == "routing.service_time")
        out += value.value + (value.origin == "default" ? " (default) " : " ");
    return out;
  };
  EXPECT_EQ(costs("endpoint_picker: v.yaml"), "2ms (default) 2800us (default) ");
  EXPECT_EQ(costs("endpoint_picker: v.yaml, decision_latency: 0s"), "0s 2800us (default) ");
  EXPECT_EQ(costs("endpoint_picker: v.yaml, decision_latency: 0s, service_time: 0s"), "0s 0s ");
  EXPECT_EQ(costs("balancer: k8s-service"), "0s (default) 0s (default) ");
  EXPECT_EQ(costs("balancer: envoy-random"), "500us (default) 0s (default) ");
}

TEST_F(RouterValues, TheReplicasOfTheRouterAreTakenWhereAllOfThemServe) {
  const auto routers = [&](const std::string& epp, const std::string& more, std::string& said) {
    write("v.yaml", values(epp));
    Diagnostics d;
    const LoadedScenario loaded = load_routed(more, d);
    said = messages_of(d);
    return loaded.variants.at(0).scenario.routing.router_replicas;
  };
  const std::string all = "    flags: {ha-enable-leader-election: false}\n    replicas: 2\n";
  std::string said;
  EXPECT_EQ(routers(all, "", said), 2);
  EXPECT_NE(said.find("v.yaml:4:15: warning: routing.router_replicas: is 2, taken from"),
            std::string::npos)
      << said;
  EXPECT_EQ(routers(all, ", router_replicas: 3", said), 3);
  EXPECT_EQ(said, "");
  EXPECT_EQ(routers("    replicas: 2\n", "", said), 1) << "the charts elect a leader";
  EXPECT_NE(said.find("stays 1: of 2 replicas the elected leader routes"), std::string::npos);
  EXPECT_EQ(routers("    replicas: 1\n", "", said), 1);
  EXPECT_EQ(said, "");
  // Where the leader ends, those that wait count.
  write("v.yaml", values("    replicas: 2\n"));
  Diagnostics d;
  const LoadedScenario loaded =
      load("routing: {endpoint_picker: v.yaml}\nevents: [{kind: router-restart, at: 1s}]\n", d);
  EXPECT_EQ(loaded.variants.at(0).scenario.routing.router_replicas, 2) << messages_of(d);
  EXPECT_TRUE(loaded.variants[0].scenario.routing.leader_election);
}

TEST_F(RouterValues, ValuesThatLeaveThePluginsToTheChartGetItsDefault) {
  write("v.yaml", "router:\n  latencyPredictor: {enabled: false}\n  epp: {replicas: 1}\n");
  Diagnostics d;
  const LoadedScenario loaded = load_routed("", d);
  ASSERT_TRUE(loaded.variants.at(0).endpoint_picker.has_value()) << messages_of(d);
  EXPECT_EQ(loaded.variants[0].endpoint_picker->profiles.front().plugins[2].weight, 3.0);
  for (const char* part : {"v.yaml:1:1: warning: routing.endpoint_picker: holds no",
                           "the chart's default is used: queue-scorer 2"})
    EXPECT_NE(messages_of(d).find(part), std::string::npos) << messages_of(d);
}

// config/charts/routerlib of llm-d-router at ebab6879: values.yaml, templates/_config.yaml.
TEST_F(RouterValues, ThePredictorOfTheChartTrainsAsItsValuesSay) {
  write("v.yaml",
        "router:\n  latencyPredictor:\n    enabled: true\n    trainingServer:\n"
        "      port: 8000\n      config:\n"
        "        LATENCY_RETRAINING_INTERVAL_SEC: \"5\"\n"
        "        LATENCY_MIN_SAMPLES_FOR_RETRAIN: \"100\"\n"
        "        LATENCY_TTFT_MODEL_PATH: /models/ttft.joblib\n"
        "        LATENCY_MODEL_TYPE: xgboost\n"
        "        LATENCY_MAX_TRAINING_DATA_SIZE_PER_BUCKET: \"250\"\n"
        "        LATENCY_OBJECTIVE_TYPE: quantile\n        LATENCY_QUANTILE_ALPHA: 0.5\n"
        "    predictionServers:\n      count: 2\n      config:\n"
        "        MODEL_SYNC_INTERVAL_SEC: \"7\"\n    eppEnv: {LATENCY_MAX_SAMPLE_SIZE: \"9\"}\n"
        "  epp: {replicas: 1}\n");
  Diagnostics d;
  const LoadedScenario loaded = load_routed("", d);
  const auto& config = loaded.variants.at(0).endpoint_picker;
  ASSERT_TRUE(config.has_value()) << messages_of(d);
  std::string profile;
  for (const auto& plugin : config->profiles.front().plugins) profile += plugin.name + " ";
  EXPECT_EQ(profile,
            "strict-affinity-filter slo-headroom-tier-filter "
            "loose-affinity-filter latency-scorer weighted-random-picker ");
  const auto settings = sim::deciding_predictor({}, *config);
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(settings->retraining_interval, Duration::seconds(5));
  EXPECT_EQ(settings->model_sync_interval, Duration::seconds(7));
  EXPECT_EQ(settings->bucket_size, 250);
  EXPECT_EQ(settings->objective, sim::PredictionObjective::kQuantile);
  EXPECT_EQ(settings->quantile, 0.5);
  EXPECT_EQ(settings->min_samples, 10) << "the default";
  std::map<std::string, std::string> fates;
  for (const KeyUse& use : d.keys())
    if (const auto at = use.path.find("latencyPredictor."); at != std::string::npos)
      fates[use.path.substr(at + 17)] = fate_name(use.fate);
  EXPECT_EQ(fates, (std::map<std::string, std::string>{
                       {"enabled", "used"},
                       {"eppEnv.LATENCY_MAX_SAMPLE_SIZE", "not modelled"},
                       {"predictionServers.config.MODEL_SYNC_INTERVAL_SEC", "used"},
                       {"predictionServers.count", "not modelled"},
                       {"trainingServer.config.LATENCY_MAX_TRAINING_DATA_SIZE_PER_BUCKET", "used"},
                       {"trainingServer.config.LATENCY_MIN_SAMPLES_FOR_RETRAIN", "no effect"},
                       {"trainingServer.config.LATENCY_MODEL_TYPE", "approximated"},
                       {"trainingServer.config.LATENCY_OBJECTIVE_TYPE", "used"},
                       {"trainingServer.config.LATENCY_QUANTILE_ALPHA", "used"},
                       {"trainingServer.config.LATENCY_RETRAINING_INTERVAL_SEC", "used"},
                       {"trainingServer.config.LATENCY_TTFT_MODEL_PATH", "no effect"},
                       {"trainingServer.port", "no effect"}}));
}

TEST_F(RouterValues, AVariableOfThePredictorThatIsNoNumberIsAnError) {
  write("v.yaml",
        "router:\n  latencyPredictor:\n    enabled: true\n    trainingServer:\n      config:\n"
        "        LATENCY_RETRAINING_INTERVAL_SEC: soon\n  epp: {replicas: 1}\n");
  Diagnostics d;
  (void)load_routed("", d);
  EXPECT_NE(messages_of(d).find("v.yaml:6:42: error: "), std::string::npos) << messages_of(d);
}

// What an observer of latencies lacks.
TEST_F(RouterValues, AnObserverThatNobodyAsksIsNamed) {
  const std::string document =
      "apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\nplugins:\n"
      "- type: latency-observation-scorer-hub\n";
  const auto said = [&](const std::string& more) {
    write("v.yaml", document + more);
    Diagnostics d;
    (void)load_routed("", d);
    return messages_of(d);
  };
  EXPECT_NE(said("").find("'latency-observer-producer-hub' observes nothing, so every endpoint"),
            std::string::npos);
  EXPECT_EQ(said("- type: latency-observer-producer-hub\n"
                 "dataLayer:\n  sources:\n  - pluginRef: latency-observer-producer-hub\n"),
            "");
}

TEST_F(RouterValues, ExplainShowsWhatDecides) {
  const std::string epp = write("e.yaml",
                                "apiVersion: llm-d.ai/v1alpha1\n"
                                "kind: EndpointPickerConfig\n"
                                "featureGates: [flowControl]\n"
                                "plugins:\n"
                                "- type: queue-scorer\n"
                                "- type: prefix-cache-scorer\n"
                                "- {type: concurrency-detector, parameters: {maxConcurrency: 7}}\n"
                                "- type: prefix-based-pd-decider\n"
                                "- type: disagg-profile-handler\n"
                                "  parameters: {deciders: {prefill: prefix-based-pd-decider}}\n"
                                "schedulingProfiles:\n"
                                "- {name: prefill, plugins: [{pluginRef: queue-scorer}]}\n"
                                "- {name: decode, plugins: [{pluginRef: queue-scorer}]}\n"
                                "flowControl:\n"
                                "  maxRequests: 9\n"
                                "  defaultRequestTTL: 30s\n"
                                "  saturationDetector: {pluginRef: concurrency-detector}\n");
  Diagnostics d;
  const LoadedScenario loaded = load(
      "routing: {balancer: endpoint-picker, "
      "endpoint_picker: e.yaml, era: 2026-08}\n",
      d);
  ASSERT_TRUE(loaded.variants.at(0).endpoint_picker.has_value()) << messages_of(d);
  const std::string text = router_text(*loaded.variants[0].endpoint_picker);
  for (const std::string part :
       {"router: llm-d, era 2026-08 (set)", "profile handler: disagg-profile-handler",
        "flow control: on, detector concurrency-detector, 9 requests, unlimited bytes",
        "other priorities: 5000 requests, 1000000000 bytes, TTL 30.000 s, "
        "global-strict-fairness-policy, fcfs-ordering-policy",
        "deciders.prefill", "data producer approx-prefix-cache-producer"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  const auto row = [&](const std::string& key) {
    const std::size_t at = text.find("    " + key + " ");
    return at == std::string::npos ? std::string() : text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_NE(row("maxConcurrency").find("e.yaml:7:"), std::string::npos) << text;
  EXPECT_NE(row("maxTokenConcurrency").find("1000000"), std::string::npos) << text;
  EXPECT_NE(row("maxTokenConcurrency").find("default"), std::string::npos) << text;
}

// llm-d-router pull requests 1547 and 1639 (June 2026) changed keys and defaults.
TEST_F(RouterValues, ExplainShowsWhatTheReleaseReadsOfTheAffinityFilter) {
  const auto rows = [&](const std::string& era, const std::string& parameters) {
    write("e.yaml",
          "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n"
          "- type: prefix-cache-affinity-filter\n" +
              parameters +
              "schedulingProfiles:\n- name: default\n"
              "  plugins: [{pluginRef: prefix-cache-affinity-filter}]\n");
    Diagnostics d;
    const LoadedScenario loaded = load(
        "routing: {balancer: endpoint-picker, endpoint_picker: e.yaml, era: " + era + "}\n", d);
    EXPECT_TRUE(loaded.variants.at(0).endpoint_picker.has_value()) << messages_of(d);
    std::istringstream text(router_text(*loaded.variants[0].endpoint_picker));
    std::map<std::string, std::string> found;
    bool inside = false;
    for (std::string line; std::getline(text, line);) {
      if (line.compare(0, 4, "    ") != 0)
        inside = line.find("filter prefix-cache-affinity-filter") != std::string::npos;
      std::string key, value;
      if (inside && std::istringstream(line.substr(4)) >> key >> value) found[key] = value;
    }
    found.erase("prefix-cache-affinity-filter");
    return found;
  };
  using Rows = std::map<std::string, std::string>;
  Rows august = rows("2026-08", "");
  EXPECT_EQ(august["maxTTFTPenaltyMs"], "18000");
  EXPECT_EQ(august["explorationProbability"], "0");
  EXPECT_EQ(august["peakPrefillThroughput"], "15928");
  EXPECT_EQ(august.count("maxTokensInFlightPenalty"), 0U) << "it is gone since June 2026";
  Rows may = rows("2026-05", "");
  EXPECT_EQ(may["maxTTFTPenaltyMs"], "5000");
  EXPECT_EQ(may["explorationProbability"], "0.01");
  EXPECT_EQ(may["maxTokensInFlightPenalty"], "0");
  EXPECT_EQ(may.count("ttftSource") + may.count("peakPrefillThroughput"), 0U);
  Rows predictor = rows("2026-08", "  parameters: {ttftSource: latencyPredictor}\n");
  EXPECT_EQ(predictor["ttftSource"], "latencyPredictor");
  EXPECT_EQ(predictor.count("peakPrefillThroughput"), 0U);
}

// llm-d-router ebab6879 pkg/epp/config/loader/configloader.go; gateway-api-inference-extension has
// a default since 1.4.0.
TEST_F(RouterValues, AnEmptyDocumentIsTheRoutersDefault) {
  const auto loaded = [&](const std::string& text, const std::string& more, Diagnostics& d) {
    write("v.yaml", text);
    return load_routed(more, d).variants.at(0).endpoint_picker;
  };
  for (const std::string text :
       {"", "router:\n  epp:\n    pluginsCustomConfig: {a.yaml: \"\"}\n"}) {
    Diagnostics d;
    const auto config = loaded(text, "", d);
    ASSERT_TRUE(config.has_value()) << messages_of(d);
    EXPECT_NE(messages_of(d).find("is empty, so the router's default is used"), std::string::npos);
    ASSERT_EQ(config->profiles.size(), 1U);
    EXPECT_EQ(config->profiles[0].plugins[0].name, "queue-scorer");
    EXPECT_EQ(config->profiles[0].plugins[0].weight, 2.0);
    EXPECT_EQ(config->profiles[0].plugins[2].name, "prefix-cache-scorer");
    EXPECT_EQ(config->profiles[0].plugins[2].weight, 3.0);
    EXPECT_EQ(name(config->era), "2026-08");
  }
  Diagnostics old;
  EXPECT_FALSE(loaded("", ", era: v0.5.0", old).has_value());
  EXPECT_NE(messages_of(old).find("is empty: routers of era v0.5.0 do not start"),
            std::string::npos)
      << messages_of(old);
  Diagnostics comment;
  EXPECT_FALSE(loaded("# later\n", "", comment).has_value());
}

}  // namespace
}  // namespace routesim::tools
