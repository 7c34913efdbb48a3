// The places of a document in files, and how its parts are wired.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <numeric>
#include <string>

#include "policies/config/document.h"
#include "policies/config/document_loader.h"
#include "policies/index/prefix_index.h"
#include "tests/policies/scheduler_fixture.h"

namespace routesim::policies {
namespace {

// Where an EndpointPickerConfig stands in the files that people have.

TEST(DocumentLocation, IsFoundWhereverAChartKeepsIt) {
  const std::string files =
      "pluginsConfigFile: b.yaml\n@pluginsCustomConfig:\n@  a.yaml: x\n@  b.yaml: y\n";
  for (const std::string chart : {"inferenceExtension", "inferencePool", "router.epp"}) {
    std::string indent = "  ", head = chart + ":\n";
    if (const std::size_t dot = chart.find('.'); dot != std::string::npos) {
      head = chart.substr(0, dot) + ":\n  " + chart.substr(dot + 1) + ":\n";
      indent = "    ";
    }
    std::string body = "@" + files;
    for (std::size_t i; (i = body.find('@')) != std::string::npos;) body.replace(i, 1, indent);
    const ConfigNode::Ptr root = parse_yaml(head + body);
    const LocatedDocument found = find_endpoint_picker_config(*root);
    ASSERT_EQ(found.kind, LocatedDocument::Kind::kText) << head + body;
    EXPECT_EQ(found.path, chart + ".pluginsCustomConfig[b.yaml]");
    EXPECT_EQ(found.node->text(), "y");
  }
}

TEST(DocumentLocation, SaysWhatAFileWithoutOneIs) {
  const auto hint = [](const std::string& text) {
    return find_endpoint_picker_config(*parse_yaml(text)).hint;
  };
  EXPECT_NE(hint("router:\n  epp:\n    pluginsConfigFile: mine.yaml\n").find("name 'mine.yaml'"),
            std::string::npos);
  EXPECT_NE(hint("a: 1\n").find("expected kind: EndpointPickerConfig"), std::string::npos);
}

TEST(DocumentLocation, ValuesTellTheReleaseAndTheReplicas) {
  const auto chart = [](const std::string& values) {
    const ConfigNode::Ptr root =
        parse_yaml("inferenceExtension:\n" + values + "  pluginsCustomConfig:\n    a.yaml: x\n");
    return find_endpoint_picker_config(*root).chart;
  };
  const std::string tag = "    tag: v0.7.0\n";
  EXPECT_EQ(chart("  image:\n    name: llm-d-inference-scheduler\n" + tag).image_tag, "v0.7.0");
  EXPECT_EQ(chart("  image:\n" + tag).image_tag, "v0.7.0");
  EXPECT_EQ(chart("  image:\n    name: epp\n" + tag).image_tag, "") << "of another product";
  EXPECT_FALSE(chart("  replicas: 2\n").all_replicas_serve);
  EXPECT_TRUE(chart("  flags:\n    ha-enable-leader-election: false\n").all_replicas_serve);
  EXPECT_TRUE(chart("  flags:\n    ha-enable-leader-election=false: \"\"\n").all_replicas_serve);
}

TEST(DocumentLocation, ValuesWithoutADocumentGetTheChartsDefault) {
  const ConfigNode::Ptr root = parse_yaml(
      "router:\n  latencyPredictor:\n    enabled: false\n  epp:\n    image:\n      tag: v0.8.0\n");
  EXPECT_EQ(chart_predictor(*root), nullptr);
  const LocatedDocument found = find_endpoint_picker_config(*root);
  ASSERT_EQ(found.kind, LocatedDocument::Kind::kChartDefault);
  EXPECT_EQ(found.chart.image_tag, "v0.8.0");
  Diagnostics d;
  const auto config = load_endpoint_picker_config(*chart_default_document(*root), {}, d);
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(name(config->era), "2026-08");
  ASSERT_EQ(config->profiles.front().plugins.size(), 4U);
  const std::vector<std::pair<std::string, double>> weights = {
      {"queue-scorer", 2}, {"kv-cache-utilization-scorer", 2}, {"prefix-cache-scorer", 3}};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    EXPECT_EQ(config->profiles.front().plugins[i].name, weights[i].first);
    EXPECT_EQ(config->profiles.front().plugins[i].weight, weights[i].second);
  }
}

// What plugins need from each other without naming it, and what they do without it. Checked against
// llm-d-inference-scheduler 0.3.2 to 0.8.0 and of May 2026, llm-d-kv-cache 0.3.2 to 0.8.1 and
// llm-d-router at ebab6879 (August 2026).

constexpr const char* kOldApi = "inference.networking.x-k8s.io/v1alpha1";

LoadOptions of_era(Era era) { return {.era = era, .distribution = {}, .registry = nullptr}; }

// ---- Who names the prefill endpoint
// ---------------------------------------------------------------------------

/// A document with profiles prefill and decode.
std::string split(const std::string& plugins, const std::string& api = "llm-d.ai/v1alpha1") {
  return "apiVersion: " + api + "\nkind: EndpointPickerConfig\nplugins:\n" + plugins +
         "- type: prefill-filter\n- type: decode-filter\n- type: max-score-picker\n"
         "schedulingProfiles:\n"
         "- name: prefill\n  plugins:\n  - pluginRef: prefill-filter\n"
         "- name: decode\n  plugins:\n  - pluginRef: decode-filter\n";
}

const std::string kAlways = "- type: always-disagg-pd-decider\n";
const std::string kPd =
    kAlways +
    "- type: pd-profile-handler\n  parameters:\n    deciderPluginName: always-disagg-pd-decider\n";
const std::string kDisagg = kAlways +
                            "- type: disagg-profile-handler\n  parameters:\n    deciders:\n"
                            "      prefill: always-disagg-pd-decider\n";

/// What becomes of a request behind the document: the prefill endpoint's address, or "".
std::string prefilled_at(const Loaded& loaded) {
  if (!loaded.ok()) return "the document is refused: " + loaded.text();
  EndpointTable table = make_endpoints(2);
  table.mutable_info(EndpointId(0)).labels["llm-d.ai/role"] = "prefill";
  table.mutable_info(EndpointId(1)).labels["llm-d.ai/role"] = "decode";
  const Decision d = loaded.scheduler->schedule({.id = 1}, table, SimTime::zero());
  EXPECT_EQ(d.primary, EndpointId(1));
  EXPECT_EQ(d.prefill_profile, 0) << "the profile runs, whoever hears of it";
  const std::map<std::string, std::string> headers(d.headers.begin(), d.headers.end());
  const auto header = headers.find("x-prefiller-host-port");
  EXPECT_EQ(header != headers.end(), d.prefill.valid());
  return header == headers.end() ? std::string() : header->second;
}

constexpr const char* kUnnamed = "picks a prefill endpoint, but nothing names it to the side-car";

TEST(Wiring, PdProfileHandlerNamesNoPrefillEndpointByItself) {
  for (const Era era : {Era::kV0_6_0, Era::kV0_7_0, Era::kMay2026, Era::kAug2026}) {
    SCOPED_TRACE(name(era));
    const Loaded alone(split(kPd), of_era(era));
    EXPECT_EQ(prefilled_at(alone), "");
    EXPECT_TRUE(alone.mentions(kUnnamed)) << alone.text();
    const Loaded named(split(kPd + "- type: prefill-header-handler\n"), of_era(era));
    EXPECT_EQ(prefilled_at(named), "10.0.0.1:8000");
    EXPECT_FALSE(named.mentions(kUnnamed)) << named.text();
  }
  EXPECT_EQ(prefilled_at(Loaded(split(kPd + "- type: disagg-headers-handler\n"))), "10.0.0.1:8000");
  const Loaded old(split("- type: pd-profile-handler\n", kOldApi), of_era(Era::kV0_3_2));
  EXPECT_EQ(prefilled_at(old), "");
  EXPECT_TRUE(old.mentions("declare a plugin of type prefill-header-handler")) << old.text();
}

TEST(Wiring, AHeaderHandlerNamesTheTargetOfItsOwnProfile) {
  const std::string other =
      "- type: prefill-header-handler\n  parameters:\n    prefillProfile: elsewhere\n";
  EXPECT_EQ(prefilled_at(Loaded(split(kPd + other))), "");
}

// disagg-profile-handler has had a PreRequest of its own since May 2026, not in 0.7.0 and 0.8.0.
TEST(Wiring, DisaggProfileHandlerNamesItSinceMay2026) {
  for (const Era era : {Era::kMay2026, Era::kAug2026})
    EXPECT_EQ(prefilled_at(Loaded(split(kDisagg), of_era(era))), "10.0.0.1:8000");
  const Loaded alone(split(kDisagg, kOldApi), of_era(Era::kV0_7_0));
  EXPECT_EQ(prefilled_at(alone), "");
  EXPECT_TRUE(alone.mentions(kUnnamed)) << alone.text();
  const Loaded named(split(kDisagg + "- type: disagg-headers-handler\n", kOldApi),
                     of_era(Era::kV0_7_0));
  EXPECT_EQ(prefilled_at(named), "10.0.0.1:8000");
  EXPECT_FALSE(named.mentions(kUnnamed)) << named.text();
}

// ---- What feeds a precise index
// -------------------------------------------------------------------------------

struct Feed {
  std::string parameters;  ///< Of kvEventsConfig, one per line, indented by six.
  bool notified = false;
};

Loaded precise(const Feed& feed, Era era, const std::string& type = "precise-prefix-cache-scorer") {
  std::string plugins =
      "- type: endpoint-notification-source\n- type: queue-scorer\n- type: " + type +
      "\n  parameters:\n    kvEventsConfig:\n      topicFilter: kv@\n" + feed.parameters;
  std::string yaml = document(plugins, "  - pluginRef: queue-scorer\n");
  if (feed.notified)
    yaml +=
        "dataLayer:\n  sources:\n  - pluginRef: endpoint-notification-source\n"
        "    extractors:\n    - pluginRef: " +
        type + "\n";
  return Loaded(yaml, of_era(era));
}

TEST(Wiring, APreciseIndexIsFedAsItsReleaseListens) {
  const std::string socket = "      zmqEndpoint: tcp://*:5557\n";
  const std::string no_discovery = "      discoverPods: false\n";
  const std::string no_socket = "      zmqEndpoint: ''\n";
  struct Case {
    Feed feed;
    bool by_socket, by_scoring, by_notification;  ///< Fed up to 0.4.0, up to May 2026, since.
  };
  const std::vector<Case> cases = {
      {{.parameters = ""}, true, true, false},
      {{.parameters = "", .notified = true}, true, true, true},
      {{.parameters = socket}, true, true, true},
      {{.parameters = no_discovery}, true, false, false},
      {{.parameters = no_discovery, .notified = true}, true, false, false},
      {{.parameters = no_discovery + socket}, true, true, true},
      {{.parameters = no_socket}, false, true, false},
      {{.parameters = no_socket + no_discovery}, false, false, false},
  };
  for (std::size_t e = 0; e < kEraNames.size(); ++e) {
    const auto era = static_cast<Era>(e);
    for (const Case& c : cases) {
      SCOPED_TRACE(std::string(name(era)) + "\n" + c.feed.parameters +
                   (c.feed.notified ? "notified" : ""));
      const bool fed = era <= Era::kV0_4_0    ? c.by_socket
                       : era <= Era::kMay2026 ? c.by_scoring
                                              : c.by_notification;
      const Loaded loaded = precise(c.feed, era);
      ASSERT_TRUE(loaded.ok()) << loaded.text();
      EXPECT_EQ(loaded.scheduler->needs().kv_events, fed);
      EXPECT_TRUE(loaded.scheduler->needs().block_keys);
      EXPECT_EQ(loaded.mentions("receives no KV events, so every endpoint scores 0"), !fed)
          << loaded.text();
    }
  }
}

TEST(Wiring, TheProducerIsTheOneToBeNotified) {
  const std::string type = "precise-prefix-cache-producer";
  EXPECT_FALSE(precise({}, Era::kAug2026, type).scheduler->needs().kv_events);
  EXPECT_TRUE(precise({.parameters = "", .notified = true}, Era::kAug2026, type)
                  .scheduler->needs()
                  .kv_events);
  // A scorer beside a producer owns no index: nothing is said of it.
  const Loaded both(
      document("- type: precise-prefix-cache-producer\n  parameters:\n"
               "    kvEventsConfig:\n      zmqEndpoint: tcp://*:5557\n"
               "- type: precise-prefix-cache-scorer\n",
               "  - pluginRef: precise-prefix-cache-scorer\n"));
  ASSERT_TRUE(both.ok()) << both.text();
  EXPECT_FALSE(both.mentions("receives no KV events")) << both.text();
}

TEST(Wiring, AnUnfedIndexMayHaveSpeculativeEntries) {
  const Loaded loaded(
      document("- type: precise-prefix-cache-scorer\n  parameters:\n"
               "    speculativeIndexing: true\n",
               "  - pluginRef: precise-prefix-cache-scorer\n"));
  EXPECT_TRUE(loaded.mentions("its index has only speculative entries")) << loaded.text();
}

/// A precise index that dials or binds in every release, with this topic filter.
Loaded filtered(const std::string& filter, Era era, bool speculative = false) {
  std::string plugins =
      "- type: queue-scorer\n- type: precise-prefix-cache-scorer\n  parameters:\n";
  if (speculative) plugins += "    speculativeIndexing: true\n";
  plugins += "    kvEventsConfig:\n      zmqEndpoint: tcp://*:5557\n      topicFilter: " + filter +
             "\n      podDiscoveryConfig:\n        podLabelSelector: app=nobody\n";
  return Loaded(document(plugins, "  - pluginRef: queue-scorer\n"), of_era(era));
}

// A subscription hears topics that begin with its filter, and engines publish as kv@POD@MODEL. No
// release reads podLabelSelector.
TEST(Wiring, AFilterThatHearsNoTopicFeedsNoIndex) {
  for (const Era era : {Era::kV0_3_2, Era::kV0_7_0, Era::kMay2026, Era::kAug2026}) {
    for (const char* filter : {"''", "k", "kv", "kv@"}) {
      const Loaded loaded = filtered(filter, era);
      ASSERT_TRUE(loaded.ok()) << loaded.text();
      EXPECT_TRUE(loaded.scheduler->needs().kv_events) << filter;
      EXPECT_FALSE(loaded.mentions("topicFilter")) << loaded.text();
    }
    for (const char* filter : {"kv.", "kv-events", "topic", "KV@", "kx@"}) {
      const Loaded loaded = filtered(filter, era);
      ASSERT_TRUE(loaded.ok()) << loaded.text();
      EXPECT_FALSE(loaded.scheduler->needs().kv_events) << filter;
      EXPECT_TRUE(
          loaded.mentions("plugins[1].parameters.kvEventsConfig.topicFilter: hears only "
                          "topics that begin with '" +
                          std::string(filter) +
                          "', and engines publish as kv@POD@MODEL, so every endpoint "
                          "scores 0"))
          << loaded.text();
      EXPECT_FALSE(loaded.mentions("receives no KV events")) << "one warning is enough";
    }
    const Loaded narrow = filtered("kv@10.0.0.1:8000@", era);
    EXPECT_TRUE(narrow.scheduler->needs().kv_events);
    EXPECT_TRUE(
        narrow.mentions("hears only topics that begin with 'kv@10.0.0.1:8000@'; here the "
                        "events of every engine arrive"))
        << narrow.text();
  }
  EXPECT_TRUE(filtered("topic", Era::kAug2026, true)
                  .mentions("publish as kv@POD@MODEL: its index has only speculative entries"));
}

TEST(Wiring, PublishedDocumentsAreFed) {
  for (const char* file :
       {"llm-d-precise.values.yaml", "llm-d-precise-2026-01.values.yaml", "heimdall-values.yaml"}) {
    const Loaded loaded(read_repository_file(std::string("tests/policies/data/") + file));
    ASSERT_TRUE(loaded.ok()) << loaded.text();
    EXPECT_TRUE(loaded.scheduler->needs().kv_events) << file;
    EXPECT_FALSE(loaded.mentions("receives no KV events")) << loaded.text();
  }
}

// ---- Who reads the prompt
// ---------------------------------------------------------------------------------------

/// A document whose one scorer reads tokens, behind a list of parsers.
Loaded parsed_by(const std::vector<std::string>& parsers) {
  std::string plugins =
      "- type: inflight-load-producer\n- type: token-load-scorer\n  parameters:\n"
      "    queueThresholdTokens: 1000\n";
  std::string list;
  for (const std::string& parser : parsers) {
    plugins += "- type: " + parser + "\n";
    list += "  - pluginRef: " + parser + "\n";
  }
  return Loaded(document(plugins, "  - pluginRef: token-load-scorer\n") +
                "requestHandler:\n  parsers:\n" + list);
}

double score_of_500_tokens(const Loaded& loaded) {
  EXPECT_TRUE(loaded.ok()) << loaded.text();
  const EndpointTable table = make_endpoints(1);
  Explanation e;
  loaded.scheduler->explain({.id = 1, .prompt_tokens = 500}, table, SimTime::zero(), e);
  return e.profiles[0].scorers[0].scores[0];
}

TEST(Wiring, PassthroughParserLeavesNoTokens) {
  const Loaded read = parsed_by({"openai-parser", "passthrough-parser"});
  EXPECT_EQ(score_of_500_tokens(read), 0.5);
  EXPECT_TRUE(read.scheduler->needs().prompt_tokens);
  EXPECT_EQ(read.text(), "");
  // The parser without paths of its own ends the list.
  for (const auto& parsers :
       {std::vector<std::string>{"passthrough-parser"},
        std::vector<std::string>{"anthropic-parser", "passthrough-parser", "openai-parser"}}) {
    const Loaded unread = parsed_by(parsers);
    EXPECT_EQ(score_of_500_tokens(unread), 1);
    EXPECT_FALSE(unread.scheduler->needs().prompt_tokens);
    EXPECT_TRUE(unread.mentions("leaves prompts unread")) << unread.text();
  }
}

TEST(Wiring, PassthroughParserLeavesNoPrefix) {
  const auto scores = [](const std::string& tail) {
    const Loaded loaded(
        document("- type: passthrough-parser\n- type: precise-prefix-cache-scorer\n"
                 "  parameters:\n    speculativeIndexing: true\n    kvEventsConfig:\n"
                 "      zmqEndpoint: tcp://*:5557\n",
                 "  - pluginRef: precise-prefix-cache-scorer\n") +
        tail);
    EXPECT_TRUE(loaded.ok()) << loaded.text();
    std::vector<std::uint64_t> keys(4);
    std::iota(keys.begin(), keys.end(), 7);
    loaded.scheduler->precise_index()->stored(EndpointId(1), kGpuTier, 0, keys, keys);
    RequestView request;
    request.block_keys = keys;
    const EndpointTable table = make_endpoints(2);
    Explanation e;
    const Decision d = loaded.scheduler->explain(request, table, SimTime::zero(), e);
    const std::vector<double> first = e.profiles[0].scorers[0].scores;
    loaded.scheduler->on_routed(request, d, table, SimTime::zero());
    loaded.scheduler->explain(request, table, SimTime::zero(), e);
    EXPECT_EQ(e.profiles[0].scorers[0].scores, first) << "no speculative entry of an unread prompt";
    return first;
  };
  EXPECT_EQ(scores(""), (std::vector<double>{0, 1}));
  EXPECT_EQ(scores("parser:\n  pluginRef: passthrough-parser\n"), (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace routesim::policies
