// The document loader: every case of config_loader.json, every error of llm-d's loader with its
// place, defaults, eras, and that nothing is silently ignored.
#include "policies/config/document.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>

#include "policies/config/factory.h"
#include "tests/policies/plugin_bench.h"
#include "tests/policies/scheduler_fixture.h"

namespace routesim::policies {
namespace {

using test::member;
using test::vector_cases;

void check_expected(const Loaded& loaded, const Json& expected) {
  const EndpointPickerConfig& config = *loaded.config;
  for (const auto& [key, value] : expected.items()) {
    if (key == "profiles") {
      ASSERT_EQ(config.profiles.size(), value.size());
      for (const ProfileSpec& profile : config.profiles) {
        const Json& plugins = value.at(profile.name);
        ASSERT_EQ(profile.plugins.size(), plugins.size());
        for (std::size_t i = 0; i < plugins.size(); ++i) {
          EXPECT_EQ(profile.plugins[i].name, plugins[i][0].get<std::string>());
          // The vectors show the scorer default of 1.0 as resolved and null for other kinds.
          if (plugins[i][1].is_null()) {
            EXPECT_FALSE(profile.plugins[i].weight);
          } else {
            EXPECT_EQ(profile.plugins[i].weight.value_or(1.0), plugins[i][1].get<double>());
          }
        }
      }
    } else if (key == "profile_handler") {
      EXPECT_EQ(config.profile_handler, value.get<std::string>());
    } else if (key == "profile_names") {
      std::vector<std::string> names;
      for (const ProfileSpec& p : config.profiles) names.push_back(p.name);
      EXPECT_EQ(names, value.get<std::vector<std::string>>());
    } else if (key == "features") {
      for (const auto& [gate, on] : value.items()) EXPECT_EQ(config.gate(gate), on.get<bool>());
    } else if (key == "defaultRequestTTL_s") {
      EXPECT_EQ(config.flow_control.default_request_ttl, Duration::seconds(value));
    } else if (key == "noEndpointRequestTTL_s") {
      EXPECT_EQ(config.flow_control.no_endpoint_request_ttl, Duration::seconds(value));
    } else {
      FAIL() << "unknown expectation " << key;
    }
  }
}

/// A decider that asks for another plugin by name: upstream's tagged plugin references.
class LinkedDecider final : public Decider {
 public:
  LinkedDecider(const PluginSpec& spec, BuildContext& context,
                std::vector<std::string>* built_order) {
    if (const ConfigNode* other = spec.parameters->child("pluginRef"))
      context.plugin(other->text(), spec, "pluginRef");
    built_order->push_back(spec.name);
  }
  bool disaggregate(const Cycle&, std::optional<EndpointRow>) const override { return true; }
};

std::vector<std::string> build_linked(const std::string& plugins, std::string& errors) {
  std::vector<std::string> order;
  PluginRegistry registry = standard_registry();
  PluginType linked = *registry.find("always-disagg-pd-decider");
  linked.type = "linked";
  linked.create = [&order](const PluginSpec& spec, BuildContext& context) {
    return std::make_unique<LinkedDecider>(spec, context, &order);
  };
  registry.add(linked);
  LoadOptions options;
  options.registry = &registry;
  const Loaded loaded(document(plugins + "- type: queue-scorer\n", "  - pluginRef: queue-scorer\n"),
                      options);
  errors = loaded.text();
  return order;
}

void check_dependency_order() {
  std::string errors;
  // a needs b, which is declared later.
  const auto order = build_linked(
      "- name: a\n  type: linked\n  parameters:\n    pluginRef: b\n- name: b\n  type: linked\n",
      errors);
  EXPECT_EQ(order, (std::vector<std::string>{"b", "a"})) << errors;
  build_linked(
      "- name: a\n  type: linked\n  parameters:\n    pluginRef: b\n"
      "- name: b\n  type: linked\n  parameters:\n    pluginRef: a\n",
      errors);
  EXPECT_NE(errors.find("dependency cycle"), std::string::npos) << errors;
  build_linked("- name: a\n  type: linked\n  parameters:\n    pluginRef: nobody\n", errors);
  EXPECT_NE(errors.find("references undefined plugin 'nobody'"), std::string::npos) << errors;
}

TEST(DocumentVectors, AllCases) {
  for (const Json& c : vector_cases("config_loader")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    if (c["yaml"].is_null()) {
      ASSERT_EQ(c["expected"].get<std::string>(), "topological order by pluginRef parameters");
      check_dependency_order();
      continue;
    }
    const Loaded loaded(c["yaml"].get<std::string>());
    const Json& error = member(c, "expected_error");
    if (error.is_null() || error == false) {
      ASSERT_TRUE(loaded.ok()) << loaded.text();
      if (c.contains("expected")) check_expected(loaded, c["expected"]);
      continue;
    }
    EXPECT_FALSE(loaded.ok());
    if (error.is_string()) {
      EXPECT_TRUE(loaded.mentions(error.get<std::string>())) << loaded.text();
    }
  }
}

TEST(Document, EveryErrorComesWithItsPlaceAndAllAtOnce) {
  const Loaded loaded(R"(apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
pluginz: 3
plugins:
- type: queue-scorer
  parameters:
    threshold: 5
- type: queue-scorr
- type: load-aware-scorer
  parameters:
    treshold: 5
- type: max-score-picker
  colour: blue
schedulingProfiles:
- name: default
  plugins:
  - pluginRef: max-score-picker
    weight: heavy
)");
  EXPECT_FALSE(loaded.ok());
  for (const char* line : {
           "test.yaml:3:1: error: pluginz: unknown key",
           "hint: did you mean plugins?",
           "plugins[3].colour: unknown key",
           "plugin type 'queue-scorr' is not registered",
           "did you mean 'queue-scorer'?",
           "schedulingProfiles[0].plugins[0].weight: must be a number (got heavy)",
       })
    EXPECT_TRUE(loaded.mentions(line)) << line << "\nnot in\n" << loaded.text();
}

TEST(Document, UnknownParametersAreErrorsOnlyWhereUpstreamRefusesThem) {
  const std::string yaml =
      document("- type: load-aware-scorer\n  parameters:\n    treshold: 5\n",
               "  - pluginRef: load-aware-scorer\n", "inference.networking.x-k8s.io/v1alpha1");
  const Loaded strict(yaml, {.era = Era::kAug2026, .distribution = {}, .registry = nullptr});
  EXPECT_FALSE(strict.ok());
  EXPECT_TRUE(strict.mentions("test.yaml:6:5: error: plugins[0].parameters.treshold"))
      << strict.text();
  const Loaded lenient(yaml);
  EXPECT_TRUE(lenient.ok()) << lenient.text();
  EXPECT_TRUE(lenient.mentions("warning: plugins[0].parameters.treshold: unknown key, ignored"))
      << lenient.text();
}

TEST(Document, EveryTypeOfTheCatalogueIsRunInertOrRefusedByName) {
  for (const PluginType& type : standard_registry().types()) {
    SCOPED_TRACE(std::string(type.type));
    EXPECT_FALSE(type.note.empty());
    EXPECT_NE(type.roles, 0U);
    const Loaded loaded(
        document("- type: queue-scorer\n- name: x\n  type: " + std::string(type.type) + "\n",
                 "  - pluginRef: queue-scorer\n"));
    const bool refused = type.support == PluginType::Support::kRefused;
    if (refused) {
      EXPECT_TRUE(loaded.mentions("test.yaml:5:")) << loaded.text();
      EXPECT_TRUE(loaded.mentions("is not available: " + std::string(type.note)));
    } else {
      EXPECT_TRUE(type.support == PluginType::Support::kInert || type.create);
      EXPECT_FALSE(loaded.mentions("not registered")) << loaded.text();
    }
    EXPECT_EQ(type.support == PluginType::Support::kImplemented, bool(type.create));
  }
}

// Types of the published catalogues: a new one upstream must be put into the registry by name.
constexpr std::string_view kCatalogues =
    "decode-filter prefill-filter encode-filter label-selector-filter by-label-selector "
    "by-label session-affinity-filter multicluster-session-affinity-filter "
    "endpoint-attribute-filter topology-affinity-filter utilization-filter "
    "prefix-cache-affinity-filter slo-headroom-tier-filter utilization-detector "
    "concurrency-detector context-length-aware header-based-testing-filter queue-scorer "
    "running-requests-size-scorer kv-cache-utilization-scorer load-aware-scorer "
    "active-request-scorer token-load-scorer prefix-cache-scorer precise-prefix-cache-scorer "
    "no-hit-lru-scorer lora-affinity-scorer session-affinity-scorer latency-scorer "
    "mm-embeddings-cache-scorer header-label-affinity-scorer endpoint-attribute-scorer "
    "topology-affinity-scorer multicluster-queue-scorer "
    "multicluster-kv-cache-utilization-scorer multicluster-prefix-cache-scorer lmetric-scorer "
    "max-score-picker random-picker weighted-random-picker single-profile-handler "
    "disagg-profile-handler pd-profile-handler data-parallel-profile-handler "
    "header-profile-handler always-disagg-pd-decider prefix-based-pd-decider "
    "always-disagg-multimodal-decider disagg-headers-handler prefill-header-handler "
    "approx-prefix-cache-producer multicluster-approx-prefix-cache-producer "
    "precise-prefix-cache-producer burst-prefix-cache-producer p2p-source-producer "
    "inflight-load-producer predicted-latency-producer token-producer tokenizer "
    "mm-embeddings-cache-producer session-id-producer latency-slo-admitter "
    "probabilistic-admitter disaggregatedset-rollout-screener global-strict-fairness-policy "
    "round-robin-fairness-policy program-aware-fairness fcfs-ordering-policy "
    "edf-ordering-policy slo-deadline-ordering-policy static-usage-limit-policy "
    "priority-holdback-policy soft-reflective-ceiling-policy sheddable-eviction-filter "
    "priority-then-time-eviction-order-policy metrics-data-source core-metrics-extractor "
    "models-data-source models-data-extractor dcgm-data-source dcgm-extractor "
    "topology-extractor k8s-notification-source endpoint-notification-source file-discovery "
    "multicluster-file-discovery agent-identity request-attribute-reporter openai-parser "
    "anthropic-parser vllmhttp-parser vllmgrpc-parser sglanghttp-parser vertexai-parser "
    "passthrough-parser destination-endpoint-served-verifier response-header-handler";

TEST(Document, TheCataloguesAreComplete) {
  std::istringstream types{std::string(kCatalogues)};
  int known = 0;
  for (std::string type; types >> type; ++known)
    EXPECT_NE(standard_registry().find(type), nullptr) << type;
  EXPECT_EQ(known, 97);
}

TEST(Document, DefaultsAreFilledIn) {
  const Loaded loaded(
      "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n"
      "- type: random-picker\n- type: queue-scorer\n- type: decode-filter\n");
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  const EndpointPickerConfig& c = *loaded.config;
  EXPECT_EQ(c.profile_handler, "single-profile-handler");
  EXPECT_EQ(c.saturation_detector, "utilization-detector");
  EXPECT_EQ(c.parsers, (std::vector<std::string>{"openai-parser", "anthropic-parser",
                                                 "vllmhttp-parser", "passthrough-parser"}));
  ASSERT_EQ(c.profiles.size(), 1U);
  EXPECT_EQ(c.profiles[0].plugins.size(), 3U) << "the detector must not become a filter";
  ASSERT_EQ(c.data_layer.sources.size(), 1U);
  EXPECT_EQ(c.data_layer.sources[0].source.name, "metrics-data-source");
  EXPECT_EQ(c.flow_control.default_request_ttl, Duration::seconds(60));
  EXPECT_TRUE(c.gate("haPopulateNonLeaderDatastore"));
}

TEST(Document, AProfileWithoutPickerTakesOneOfTheDocument) {
  const Loaded own(
      document("- type: queue-scorer\n- type: random-picker\n", "  - pluginRef: queue-scorer\n"));
  ASSERT_TRUE(own.ok()) << own.text();
  EXPECT_EQ(own.config->profiles[0].plugins.back().name, "random-picker");
  const Loaded none(document("- type: queue-scorer\n", "  - pluginRef: queue-scorer\n"));
  EXPECT_EQ(none.config->profiles[0].plugins.back().name, "max-score-picker");
}

TEST(Document, DeprecatedFieldsAreFolded) {
  const Loaded loaded(document("- type: queue-scorer\n- name: sat\n  type: concurrency-detector\n"
                               "- name: p\n  type: openai-parser\n",
                               "  - pluginRef: queue-scorer\n") +
                      "saturationDetector:\n  pluginRef: sat\nparser:\n  pluginRef: p\n");
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  EXPECT_EQ(loaded.config->saturation_detector, "sat");
  EXPECT_EQ(loaded.config->parsers, std::vector<std::string>{"p"});
  const Loaded inline_thresholds(
      document("- type: queue-scorer\n", "  - pluginRef: queue-scorer\n",
               "inference.networking.x-k8s.io/v1alpha1") +
      "saturationDetector:\n  queueDepthThreshold: 10\n  kvCacheUtilThreshold: 0.5\n");
  ASSERT_TRUE(inline_thresholds.ok()) << inline_thresholds.text();
  EndpointTable table = make_endpoints(1);
  table.set_metrics(EndpointId(0), 5, 0, 0.1, SimTime::zero());
  EXPECT_DOUBLE_EQ(inline_thresholds.scheduler->saturation(table, SimTime::zero()), 0.5);
}

TEST(Document, FlowControlWithoutItsGateIsSaidToHaveNoEffect) {
  const std::string base = document("- type: queue-scorer\n", "  - pluginRef: queue-scorer\n");
  const std::string flow = "flowControl:\n  maxRequests: 5k\n  defaultRequestTTL: 5s\n";
  const Loaded off(base + flow);
  ASSERT_TRUE(off.ok()) << off.text();
  EXPECT_TRUE(off.mentions("warning: flowControl: has no effect")) << off.text();
  const Loaded on(base + "featureGates: [flowControl]\n" + flow);
  ASSERT_TRUE(on.ok()) << on.text();
  EXPECT_EQ(on.text(), "");
  EXPECT_EQ(on.config->flow_control.max_requests, 5000);
  EXPECT_EQ(on.config->flow_control.no_endpoint_request_ttl, Duration::seconds(5));
}

// llm-d-router pull request 2123 of 23 July 2026.
TEST(Document, EarlierReleasesBoundNoWaiting) {
  const std::string base = document("- type: queue-scorer\n", "  - pluginRef: queue-scorer\n") +
                           "featureGates: [flowControl]\n";
  const auto flow = [&](const std::string& more, Era era) {
    return Loaded(base + more, {.era = era, .distribution = {}, .registry = nullptr})
        .config->flow_control;
  };
  for (const Era era : {Era::kV0_5_0, Era::kV0_9_0, Era::kJul2026}) {
    EXPECT_EQ(flow("", era).default_request_ttl, Duration::zero());
    EXPECT_EQ(flow("", era).default_band.max_requests, std::nullopt);
    EXPECT_EQ(flow("", era).default_band.max_bytes, 1'000'000'000);
  }
  for (const Era era : {Era::kLateJul2026, Era::kAug2026, Era::kLate2026}) {
    EXPECT_EQ(flow("", era).default_request_ttl, Duration::seconds(60));
    EXPECT_EQ(flow("", era).no_endpoint_request_ttl, Duration::seconds(60));
    EXPECT_EQ(flow("", era).default_negative_band.max_requests, 5'000);
    // Zero turns the time off, means the default to a band, and no limit to all bands together.
    const FlowControlSpec zero = flow(
        "flowControl: {defaultRequestTTL: 0s, maxRequests: 0, defaultPriorityBand: "
        "{maxRequests: 0, maxBytes: 0}}\n",
        era);
    EXPECT_EQ(zero.default_request_ttl, Duration::zero());
    EXPECT_EQ(zero.max_requests, std::nullopt);
    EXPECT_EQ(zero.default_band.max_requests, 5'000);
    EXPECT_EQ(zero.default_band.max_bytes, 1'000'000'000);
  }
}

TEST(Document, ReferencesOfTheWrongKindAreErrors) {
  const auto error_of = [](const std::string& tail, const std::string& plugins = "") {
    return Loaded(document("- type: queue-scorer\n" + plugins, "  - pluginRef: queue-scorer\n") +
                  tail)
        .text();
  };
  EXPECT_NE(error_of("saturationDetector:\n  pluginRef: queue-scorer\n")
                .find("plugin 'queue-scorer' is no saturation detector (it is a scorer)"),
            std::string::npos);
  EXPECT_NE(
      error_of("requestHandler:\n  parsers:\n  - pluginRef: queue-scorer\n").find("is no parser"),
      std::string::npos);
  EXPECT_NE(
      error_of("dataLayer:\n  sources:\n  - pluginRef: queue-scorer\n").find("is no data source"),
      std::string::npos);
  EXPECT_NE(error_of("flowControl:\n  usageLimitPolicyPluginRef: queue-scorer\n")
                .find("is no usage limit policy"),
            std::string::npos);
  EXPECT_NE(error_of("flowControl:\n  priorityBands:\n  - priority: 1\n"
                     "    orderingPolicyRef: nope\n")
                .find("references undefined plugin 'nope'"),
            std::string::npos);
  EXPECT_NE(error_of("- name: b\n  plugins:\n  - pluginRef: queue-scorer\n")
                .find("more than one profile needs a profile handler"),
            std::string::npos);
}

TEST(Document, ErasAreInferredFromTheShape) {
  const auto era = [](const std::string& plugin, const std::string& api) {
    const Loaded loaded(
        document("- type: queue-scorer\n" + plugin, "  - pluginRef: queue-scorer\n", api));
    EXPECT_TRUE(loaded.ok()) << loaded.text();
    return loaded.config ? std::string(name(loaded.config->era)) : std::string();
  };
  const std::string old_api = "inference.networking.x-k8s.io/v1alpha1";
  const std::string new_api = "llm-d.ai/v1alpha1";
  const std::string precise = "- type: precise-prefix-cache-scorer\n  parameters:\n";
  EXPECT_EQ(era("", new_api), "2026-08");
  EXPECT_EQ(era("", old_api), "v0.7.0");
  EXPECT_EQ(era(precise + "    indexerConfig:\n      tokenProcessorConfig:\n"
                          "        blockSize: 16\n",
                old_api),
            "v0.4.0");
  EXPECT_EQ(era(precise + "    indexerConfig:\n      tokenizersPoolConfig:\n"
                          "        huggingFaceToken: x\n",
                old_api),
            "v0.3.2");
  EXPECT_EQ(era(precise + "    speculativeIndexing: true\n", old_api), "v0.7.0");
  EXPECT_EQ(era("- type: always-disagg-pd-decider\n", old_api), "v0.7.0");
  EXPECT_EQ(era("- type: token-producer\n", old_api), "2026-08");
  EXPECT_EQ(era("- type: tokenizer\n", new_api), "2026-05");
  EXPECT_EQ(era("- type: always-disagg-pd-decider\n- type: disagg-profile-handler\n"
                "- type: prefix-cache-scorer\n  parameters:\n    maxPrefixBlocksToMatch: 256\n",
                old_api),
            "v0.7.0")
      << "the handler is older than the renaming";
  const std::string affinity = "- type: prefix-cache-affinity-filter\n  parameters:\n    ";
  EXPECT_EQ(era(affinity + "maxTokensInFlightPenalty: 1000\n", new_api), "2026-05");
  EXPECT_EQ(era(affinity + "peakPrefillThroughput: 1000\n", new_api), "2026-08");
  EXPECT_EQ(era("", "llm-d.ai/v1"), "2026-08");
  EXPECT_EQ(era("- type: p2p-source-producer\n", new_api), "2026-08");
  EXPECT_EQ(era("- type: p2p-source-producer\n- type: context-length-aware\n  parameters:\n"
                "    label: work\n    reusableTokensProducerName: p2p-source-producer\n",
                new_api),
            "2026-09");
}

TEST(Document, ErasGoByTheNamesOfReleasesToo) {
  const auto era = [](const std::string& text) {
    const std::optional<Era> found = parse_era(text);
    return found ? std::string(name(*found)) : std::string();
  };
  EXPECT_EQ(era("v0.3.2"), "v0.3.2");
  EXPECT_EQ(era("v0.5.1"), "v0.5.0");
  EXPECT_EQ(era("v0.8.0-rc.1"), "v0.7.0");
  EXPECT_EQ(era("v0.9.1"), "v0.9.0");
  EXPECT_EQ(era("v0.10.0"), "2026-08");
  for (const char* unknown : {"v0.11.0", "v1.0.0", "v0.9", "v0.9.0-beta", "main", "07657e922", ""})
    EXPECT_EQ(era(unknown), "") << unknown;
  EXPECT_EQ(era_note("v0.10.0"), "v0.10.0 decides like 2026-08");
  EXPECT_EQ(era_note("v0.7.0"), "");
  EXPECT_EQ(known_eras(),
            "v0.3.2, v0.4.0, v0.5.0, v0.6.0, v0.7.0, v0.8.0, v0.9.0, v0.10.0, their patch "
            "releases, 2026-05, 2026-07, 2026-07-26, 2026-08, 2026-09 and 2026-autumn");
}

TEST(Document, NamesOfTheSummerOf2025) {
  // The three documents of llm-d's "KV-cache wins you can see" (September 2025) in short.
  const std::string old_api = "inference.networking.x-k8s.io/v1alpha1";
  const Loaded estimate(
      document("- type: kv-cache-scorer\n- type: prefix-cache-scorer\n  parameters:\n"
               "    hashBlockSize: 256\n    lruCapacityPerServer: 2200\n",
               "  - pluginRef: kv-cache-scorer\n  - pluginRef: prefix-cache-scorer\n", old_api));
  ASSERT_TRUE(estimate.ok()) << estimate.text();
  EXPECT_EQ(estimate.text(), "") << "every field has a meaning";
  EXPECT_EQ(estimate.config->era, Era::kV0_3_2);
  EXPECT_EQ(estimate.config->era_origin, "inferred: prefix-cache-scorer hashBlockSize");
  EXPECT_EQ(estimate.config->find("kv-cache-scorer")->type, "kv-cache-utilization-scorer");
  const ConfigNode& index = *estimate.config->find("prefix-cache-scorer")->parameters;
  EXPECT_EQ(index.child("blockSize")->text(), "256");
  EXPECT_EQ(index.child("autoTune")->text(), "false") << "nothing was taken from engines yet";

  const Loaded precise(
      document("- type: prefix-cache-scorer\n  parameters:\n    mode: cache_tracking\n"
               "    indexerConfig:\n      tokenProcessorConfig:\n        blockSize: 64\n",
               "  - pluginRef: prefix-cache-scorer\n", old_api));
  ASSERT_TRUE(precise.ok()) << precise.text();
  EXPECT_EQ(precise.config->find("prefix-cache-scorer")->type, "precise-prefix-cache-scorer");
  const Loaded wrong(document("- type: prefix-cache-scorer\n  parameters:\n    mode: guess\n",
                              "  - pluginRef: prefix-cache-scorer\n", old_api));
  EXPECT_FALSE(wrong.ok());
  EXPECT_TRUE(
      wrong.mentions("plugins[0].parameters.mode: must be estimate or cache_tracking (got guess)"))
      << wrong.text();
}

TEST(Document, AnEraThatContradictsTheDocumentIsAnError) {
  const std::string nested = document(
      "- type: precise-prefix-cache-scorer\n  parameters:\n    indexerConfig:\n"
      "      tokenProcessorConfig:\n        blockSize: 16\n",
      "  - pluginRef: precise-prefix-cache-scorer\n");
  const Loaded loaded(nested, {.era = Era::kAug2026, .distribution = {}, .registry = nullptr});
  EXPECT_FALSE(loaded.ok());
  EXPECT_TRUE(
      loaded.mentions("test.yaml:8:9: error: "
                      "plugins[0].parameters.indexerConfig.tokenProcessorConfig"))
      << loaded.text();
  const Loaded fractional(
      document("- type: queue-scorer\n", "  - pluginRef: queue-scorer\n    weight: 2.5\n"),
      {.era = Era::kV0_5_0, .distribution = {}, .registry = nullptr});
  EXPECT_TRUE(fractional.mentions("weight must be a whole number in era v0.5.0"));
}

TEST(Document, NotAnEndpointPickerConfig) {
  EXPECT_EQ(find_endpoint_picker_config(*parse_yaml("a: 1\n")).kind,
            LocatedDocument::Kind::kNotFound);
  const Loaded wrong_kind("apiVersion: llm-d.ai/v1alpha1\nkind: Service\nplugins:\n");
  EXPECT_TRUE(wrong_kind.mentions("kind: must be 'EndpointPickerConfig' (got 'Service')"));
  const Loaded new_version("apiVersion: llm-d.ai/v2\nkind: EndpointPickerConfig\n");
  EXPECT_TRUE(new_version.mentions("is not a known version (got 'llm-d.ai/v2')"));
}

TEST(Document, TheStableVersionIsReadLikeTheLastAlphaOne) {
  const Loaded loaded(document("- type: queue-scorer\n- type: file-discovery\n",
                               "  - pluginRef: queue-scorer\n", "llm-d.ai/v1") +
                      "dataLayer:\n  discovery:\n    endpoints:\n      pluginRef: file-discovery\n"
                      "    peers:\n      pluginRef: file-discovery\n"
                      "  crossReplica:\n    syncInterval: 1s\n");
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  EXPECT_EQ(name(loaded.config->era), "2026-08");
  ASSERT_TRUE(loaded.config->data_layer.discovery.has_value());
  EXPECT_EQ(loaded.config->data_layer.discovery->path, "dataLayer.discovery.endpoints");
  EXPECT_TRUE(loaded.config->data_layer.peer_discovery.has_value());
}

TEST(Document, RetiredGatesAndRenamedTypesAreNamed) {
  const Loaded gates(document("- type: queue-scorer\n", "  - pluginRef: queue-scorer\n") +
                     "featureGates: [prepareDataPlugins, dataLayer]\n");
  EXPECT_TRUE(gates.ok()) << gates.text();
  EXPECT_TRUE(gates.mentions("feature gate 'prepareDataPlugins' has no effect here"));
  const Loaded renamed(
      document("- type: kvcache-aware-scorer\n", "  - pluginRef: kvcache-aware-scorer\n"));
  EXPECT_TRUE(renamed.mentions("it is called 'precise-prefix-cache-scorer' now")) << renamed.text();
}

TEST(Document, ADisaggregationHandlerTakesTheFlatNamesOfItsForerunner) {
  const std::string handler =
      "- type: always-disagg-pd-decider\n- type: disagg-profile-handler\n"
      "  parameters:\n    ";
  const auto load = [&](const std::string& parameter) {
    return Loaded(
        document("- type: queue-scorer\n" + handler + parameter, "  - pluginRef: queue-scorer\n"));
  };
  for (const char* key : {"deciderPluginName", "prefillDeciderPluginName"})
    EXPECT_TRUE(load(std::string(key) + ": always-disagg-pd-decider\n").ok()) << key;
  const Loaded mixed = load(
      "deciderPluginName: always-disagg-pd-decider\n    deciders:\n"
      "      prefill: always-disagg-pd-decider\n");
  EXPECT_TRUE(mixed.mentions("mixes the older flat field names")) << mixed.text();
  EXPECT_TRUE(load("deciderPluginName: nobody\n").mentions("undefined plugin 'nobody'"));
}

}  // namespace
}  // namespace routesim::policies
