// Routers that know KV tiers: weights, counts per tier, pulls, and one approximate index per tier.
// Expected numbers are computed by hand from the rules of llm-d-router.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "policies/kv_events/kv_event_ingest.h"
#include "policies/plugins/context_length.h"
#include "policies/plugins/p2p_source.h"
#include "tests/policies/scheduler_fixture.h"

namespace routesim::policies {
namespace {

std::vector<std::uint64_t> keys_from(std::uint64_t first, std::size_t n) {
  std::vector<std::uint64_t> keys(n);
  std::iota(keys.begin(), keys.end(), first);
  return keys;
}

const std::string kEvents =
    "    kvEventsConfig: {zmqEndpoint: 'tcp://*:5557'}\n"
    "    tokenProcessorConfig: {blockSizeTokens: 64}\n";

/// A precise producer `precise`, its scorer, and more plugins.
std::string precise_document(const std::string& parameters, const std::string& plugins = "",
                             const std::string& profile = "") {
  return document(
      "- type: precise-prefix-cache-producer\n  name: precise\n  parameters:\n" + kEvents +
          parameters +
          "- type: prefix-cache-scorer\n  parameters: {prefixMatchInfoProducerName: precise}\n" +
          plugins,
      "  - pluginRef: prefix-cache-scorer\n" + profile);
}
std::string tier_weights(const std::string& list) {
  return "    indexerConfig: {kvCacheBackendConfigs: [" + list + "]}\n";
}

LoadOptions in(Era era) { return {.era = era, .distribution = {}, .registry = nullptr}; }

/// A scheduler over some endpoints, and one prompt.
struct Fleet {
  Fleet(const std::string& yaml, Era era, std::size_t endpoints, std::size_t blocks)
      : scheduler(make_scheduler(yaml, in(era))),
        table(make_endpoints(endpoints)),
        keys(keys_from(1000, blocks)) {
    request.id = 7;
    request.block_keys = keys;
    request.prompt_tokens = static_cast<std::int64_t>(blocks) * 64;
  }
  void hold(EndpointRow row, const std::string& medium, std::size_t first, std::size_t last) {
    const auto tier = scheduler->tiers()->intern_medium(medium);
    const auto part = std::span<const std::uint64_t>(keys).subspan(first, last - first);
    scheduler->precise_index()->stored(EndpointId(row), *tier, 0, part, part);
  }
  Decision decide() { return scheduler->schedule(request, table, SimTime::zero()); }
  std::vector<double> scores(std::size_t scorer = 0) {
    Explanation e;
    scheduler->explain(request, table, SimTime::zero(), e);
    return e.profiles[0].scorers[scorer].scores;
  }

  std::unique_ptr<Scheduler> scheduler;
  EndpointTable table;
  std::vector<std::uint64_t> keys;
  RequestView request;
};

// ---- Weights ------------------------------------------------------------------------------------

TEST(TierWeights, AreTheBestOfABlockSummedOverTheChainAndTruncated) {
  Fleet fleet(precise_document(tier_weights("{name: gpu, weight: 1}, {name: cpu, weight: 0.4}")),
              Era::kAug2026, 4, 126);
  fleet.hold(0, "CPU", 0, 126);  // 126 · 0.4 = 50.4.
  fleet.hold(1, "GPU", 0, 60);  // 60 + 66 · 0.4 = 86.4, whichever tiers the GPU blocks are in too.
  fleet.hold(1, "CPU", 0, 126);
  fleet.hold(2, "CPU", 0, 2);  // 0.8: nothing.
  fleet.hold(3, "GPU", 1, 126);
  EXPECT_EQ(fleet.scores(), (std::vector<double>{50.0 / 126, 86.0 / 126, 0, 0}));
}

TEST(TierWeights, AWeightOfZeroKeepsTheChain) {
  Fleet fleet(precise_document(tier_weights("{name: gpu, weight: 1}, {name: cpu, weight: 0}")),
              Era::kAug2026, 1, 10);
  fleet.hold(0, "CPU", 0, 4);
  fleet.hold(0, "GPU", 4, 10);
  EXPECT_EQ(fleet.scores(), (std::vector<double>{0.6}));
}

TEST(TierWeights, OfTiersWithoutOneDependOnTheRelease) {
  struct Case {
    Era era;
    std::string weights, medium;
    double share;
  };
  const std::string cpu = tier_weights("{name: cpu, weight: 0.5}");
  const std::string upper = tier_weights("{name: CPU, weight: 0.5}");
  const std::vector<Case> cases = {
      {Era::kAug2026, "", "CPU", 0.8},         {Era::kAug2026, "", "STORAGE", 1.0},
      {Era::kAug2026, "", "OBJECT_STORE", 1},  {Era::kSep2026, "", "CPU", 0.8},
      {Era::kSep2026, "", "OBJECT_STORE", .2}, {Era::kSep2026, "", "SHARED_STORAGE", 0.4},
      {Era::kSep2026, "", "STORAGE", 0},       {Era::kLate2026, "", "STORAGE", 0.3},
      {Era::kLate2026, "", "cpu_tier1", 0},    {Era::kAug2026, cpu, "GPU", 1},
      {Era::kSep2026, cpu, "GPU", 0},          {Era::kAug2026, upper, "CPU", 1},
      {Era::kSep2026, upper, "CPU", 0.5},      {Era::kSep2026, "", "", 1},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(name(c.era)) + " " + c.weights + " " + c.medium);
    Fleet fleet(precise_document(c.weights), c.era, 1, 1000);
    fleet.hold(0, c.medium, 0, 1000);
    EXPECT_NEAR(fleet.scores()[0], c.share, 0.0015);  // Sums of doubles are truncated.
  }
}

TEST(TierWeights, TheLastOfTwoForATierCounts) {
  Fleet fleet(precise_document(tier_weights("{name: cpu, weight: 1}, {name: cpu, weight: 0.5}")),
              Era::kAug2026, 1, 10);
  fleet.hold(0, "CPU", 0, 10);
  EXPECT_EQ(fleet.scores(), std::vector<double>{0.5});
}

TEST(TierWeights, SpeculativeEntriesAlwaysWeighOne) {
  Fleet fleet(precise_document("    speculativeIndexing: true\n" +
                               tier_weights("{name: cpu, weight: 0.5}")),
              Era::kSep2026, 1, 10);
  fleet.scheduler->on_routed(fleet.request, fleet.decide(), fleet.table, SimTime::zero());
  EXPECT_EQ(fleet.scores(), std::vector<double>{1.0});
}

// ---- Who reads weighted numbers, and who does not -----------------------------------------------

TEST(TierConsumers, LoadColdnessAndScoresAreWeighted) {
  const std::string lru =
      "- type: no-hit-lru-scorer\n  parameters: {prefixMatchInfoProducerName: precise}\n";
  for (const auto& [weight, cold] : {std::pair{"0.4", false}, std::pair{"0.0", true}}) {
    Fleet fleet(
        precise_document(tier_weights("{name: cpu, weight: " + std::string(weight) + "}"),
                         lru + "- type: inflight-load-producer\n"
                               "  parameters: {prefixMatchInfoProducerName: precise}\n"
                               "- type: token-load-scorer\n",
                         "  - pluginRef: no-hit-lru-scorer\n  - pluginRef: token-load-scorer\n"),
        Era::kAug2026, 2, 10);
    fleet.hold(0, "CPU", 0, 10);
    EXPECT_EQ(fleet.scores(1) == std::vector<double>({0.5, 0.5}), !cold) << weight;
    const std::int64_t match = cold ? 0 : 3;  // Ten times 0.4 is 3.9999999999999996.
    Decision d = fleet.decide();
    fleet.scheduler->on_routed(fleet.request, d, fleet.table, SimTime::zero());
    const EndpointRow row = d.primary.value();
    EXPECT_EQ(fleet.scheduler->in_flight()->tokens(row), row == 0 ? (10 - match) * 64 : 640);
  }
  // One CPU block at 0.4 is no block at all.
  Fleet little(precise_document(tier_weights("{name: cpu, weight: 0.4}"), lru,
                                "  - pluginRef: no-hit-lru-scorer\n"),
               Era::kAug2026, 2, 10);
  little.hold(0, "CPU", 0, 1);
  EXPECT_NE(little.scores(1), (std::vector<double>{0.5, 0.5}));
}

TEST(TierConsumers, TierHitsAreCountedTierByTier) {
  Fleet fleet(precise_document("    speculativeIndexing: true\n"), Era::kAug2026, 3, 10);
  fleet.hold(0, "GPU", 0, 3);
  fleet.hold(0, "CPU", 0, 7);
  fleet.hold(1, "STORAGE", 0, 2);
  fleet.hold(1, "GPU", 2, 5);  // Not from the first block on.
  fleet.scheduler->precise_index()->match(fleet.keys, *std::make_unique<MatchScratch>());
  const auto before = fleet.scheduler->precise_index()->keys_by_recency();
  std::map<std::pair<EndpointRow, std::string>, std::int64_t> hits;
  for (const TierHits& h : fleet.scheduler->tier_hits(fleet.request, fleet.table))
    hits[{h.endpoint, h.tier}] = h.tokens;
  const std::map<std::pair<EndpointRow, std::string>, std::int64_t> expected = {
      {{0, "gpu"}, 3 * 64}, {{0, "cpu"}, 7 * 64}, {{1, "storage"}, 2 * 64}};
  EXPECT_EQ(hits, expected);
  EXPECT_EQ(fleet.scheduler->precise_index()->keys_by_recency(), before);
}

TEST(TierCounts, TellTiersSpeculationAndConfirmedChains) {
  PrefixIndex index;
  const auto keys = keys_from(1, 10);
  const std::span<const std::uint64_t> all(keys);
  const EndpointId e(3);
  index.stored(e, kGpuTier, 0, all.first(4), all.first(4));
  index.stored(e, kCpuTier, 0, all.subspan(2, 6), all.subspan(2, 6));
  index.stored(e, kCpuTier, 0, all.first(1), all.first(1), true, 5);  // Another cache group.
  const HolderEntry guess{.endpoint = e, .tier = kNoTier, .speculative = true, .group = {}};
  index.add({}, all, std::span(&guess, 1));
  std::vector<TierCount> counts;
  index.tier_counts(keys, counts);
  EXPECT_EQ(counts, (std::vector<TierCount>{
                        {.endpoint = e, .rows = TierRows::kTier, .tier = kGpuTier, .blocks = 4},
                        {.endpoint = e, .rows = TierRows::kTier, .tier = kCpuTier, .blocks = 1},
                        {.endpoint = e, .rows = TierRows::kSpeculative, .tier = {}, .blocks = 10},
                        {.endpoint = e, .rows = TierRows::kConfirmed, .tier = {}, .blocks = 8}}));
}

// ---- Events -------------------------------------------------------------------------------------

/// An index fed by decoded events with tokens at 4 per block.
struct Feed {
  BlockStored stored(std::uint64_t first, std::size_t blocks, const std::string& medium,
                     bool tokens) const {
    BlockStored event;
    event.hashes = keys_from(first, blocks);
    event.medium = medium;
    event.block_size = tokens ? 4 : 0;
    for (std::size_t i = 0; tokens && i < blocks * 4; ++i)
      event.tokens.push_back(static_cast<std::uint32_t>(first * 100 + i));
    return event;
  }
  void apply(std::uint32_t endpoint, const KvEvent& event) {
    ingestor.apply(EndpointId(endpoint), "model", event);
  }
  /// Tiers of an endpoint under the block that an engine calls `hash`.
  std::vector<std::string> tiers_of(std::uint32_t endpoint, std::uint64_t hash) {
    std::vector<std::string> names;
    for (const BlockKey key : index.request_keys_of(hash))
      for (const HolderEntry& h : index.holders(key))
        if (h.endpoint == EndpointId(endpoint)) names.push_back(tiers.name(h.tier));
    return names;
  }
  PrefixIndex index;
  TierRegistry tiers;
  KvEventIngestor ingestor{{.block_size = 4}, index, tiers};
};

TEST(TierEvents, PlaceholdersResolveByTheHashesOfAnyEndpoint) {
  Feed feed;
  feed.apply(0, feed.stored(10, 3, "GPU", true));
  feed.apply(1, feed.stored(10, 2, "CPU", false));  // Endpoint 0 told what these hashes are.
  EXPECT_EQ(feed.tiers_of(1, 10), std::vector<std::string>{"cpu"});
  EXPECT_EQ(feed.tiers_of(1, 12), std::vector<std::string>{});
  feed.apply(1, feed.stored(90, 2, "CPU", false));  // Nobody has.
  EXPECT_EQ(feed.ingestor.stats().tier_updates, 2U);
  EXPECT_EQ(feed.index.request_key_count(), 3U);
}

TEST(TierEvents, ARemovalIsOfOneTier) {
  Feed feed;
  feed.apply(0, feed.stored(10, 3, "", true));
  feed.apply(0, feed.stored(10, 3, "CPU", false));
  feed.apply(0, BlockRemoved{.hashes = {12, 11}, .medium = "GPU", .group_idx = {}});
  EXPECT_EQ(feed.tiers_of(0, 10), (std::vector<std::string>{"gpu", "cpu"}));
  EXPECT_EQ(feed.tiers_of(0, 11), std::vector<std::string>{"cpu"});
  feed.apply(0, BlockRemoved{.hashes = {11}, .medium = "CPU", .group_idx = {}});
  EXPECT_TRUE(feed.index.request_keys_of(11).empty()) << "the mapping goes with the last holder";
  // So a placeholder that comes late finds nothing, and a self-describing event does.
  feed.apply(0, feed.stored(11, 1, "CPU", false));
  EXPECT_EQ(feed.tiers_of(0, 11), std::vector<std::string>{});
  feed.apply(0, feed.stored(11, 1, "CPU", true));
  EXPECT_EQ(feed.tiers_of(0, 11), std::vector<std::string>{"cpu"});
}

TEST(TierEvents, StoresAreCountedPerTier) {
  Feed feed;
  feed.apply(0, feed.stored(10, 1, "GPU", true));
  feed.apply(0, feed.stored(10, 1, "CPU", true));
  feed.apply(0, feed.stored(10, 1, "CPU", true));  // Overlapping chunks announce a hash again.
  const BlockRemoved cpu{.hashes = {10}, .medium = "CPU", .group_idx = {}};
  feed.apply(0, cpu);
  EXPECT_EQ(feed.tiers_of(0, 10), (std::vector<std::string>{"gpu", "cpu"}));
  feed.apply(0, cpu);
  EXPECT_EQ(feed.tiers_of(0, 10), std::vector<std::string>{"gpu"});
  feed.apply(0, feed.stored(10, 1, "CPU", false));
  feed.apply(0, AllBlocksCleared{});
  EXPECT_EQ(feed.index.request_key_count(), 0U);
}

TEST(TierEvents, AnUpdateThatTookEffectCountsForAllItsHashes) {
  Feed feed;
  feed.apply(0, feed.stored(10, 1, "GPU", true));
  BlockStored both = feed.stored(10, 2, "CPU", false);  // Hash 11 is unknown yet.
  feed.apply(0, both);
  feed.apply(0, feed.stored(11, 1, "GPU", true));
  feed.apply(0, feed.stored(11, 1, "CPU", false));
  const BlockRemoved cpu{.hashes = {11}, .medium = "CPU", .group_idx = {}};
  feed.apply(0, cpu);
  EXPECT_EQ(feed.tiers_of(0, 11), (std::vector<std::string>{"gpu", "cpu"})) << "counted twice";
  feed.apply(0, cpu);
  EXPECT_EQ(feed.tiers_of(0, 11), std::vector<std::string>{"gpu"});
}

TEST(TierEvents, GroupsAreLearnedFromEventsOfTheSameEndpoint) {
  Feed feed;
  BlockStored gpu = feed.stored(10, 1, "GPU", true);
  gpu.group_idx = 0;
  gpu.kv_cache_spec_kind = "full_attention";
  feed.apply(0, gpu);
  BlockStored cpu = feed.stored(10, 1, "CPU", false);
  cpu.group_idx = 0;
  feed.apply(1, cpu);  // Endpoint 1 has not said what its group 0 is.
  EXPECT_EQ(feed.tiers_of(1, 10), std::vector<std::string>{});
  feed.apply(0, cpu);
  EXPECT_EQ(feed.tiers_of(0, 10), (std::vector<std::string>{"gpu", "cpu"}));
  feed.apply(0, BlockRemoved{.hashes = {10}, .medium = "CPU", .group_idx = 1});
  EXPECT_EQ(feed.tiers_of(0, 10).size(), 2U);
  feed.apply(0, BlockRemoved{.hashes = {10}, .medium = "CPU", .group_idx = 0});
  EXPECT_EQ(feed.tiers_of(0, 10), std::vector<std::string>{"gpu"});
}

// ---- Pulls --------------------------------------------------------------------------------------

TEST(PullSource, TheDrawIsFnvOfTheRequestId) {
  EXPECT_EQ(request_spread(""), 2166136261.0 / 4294967296.0);
  EXPECT_EQ(request_spread("a"), 0xe40c292c / 4294967296.0);  // FNV's published test value.
  EXPECT_EQ(request_spread("foobar"), 0xbf9cf968 / 4294967296.0);
  RequestView request;
  const std::vector<Header> headers = {{"X-Request-Id", "foobar"}};
  request.headers = headers;
  EXPECT_EQ(request_id_text(request), "foobar");
  double mean = 0;
  for (request.headers = {}; request.id < 1000; ++request.id)
    mean += request_spread(request_id_text(request)) / 1000;
  EXPECT_NEAR(mean, 0.5, 0.03);
}

TEST(PullSource, IsDrawnWithinOneBlockByFreeQueue) {
  // Weights 1, 1/4 and 1/2; row 3 is two blocks short.
  const std::vector<PullCandidate> c = {
      {0, 640, 0}, {1, 576, 3}, {2, 640, 1}, {3, 512, 0}, {4, 64, 0}};
  const auto choose = [&](double spread) { return choose_pull_source(c, 64, spread, true); };
  EXPECT_EQ(choose(0), 0U);
  EXPECT_EQ(choose(0.571), 0U);  // 1 / 1.75 = 0.5714.
  EXPECT_EQ(choose(0.572), 1U);
  EXPECT_EQ(choose(0.714), 1U);  // 1.25 / 1.75 = 0.7143.
  EXPECT_EQ(choose(0.715), 2U);
  EXPECT_EQ(choose(1), 2U) << "the last one when rounding leaves nobody";
  EXPECT_EQ(choose_pull_source(c, 64, 0.9, false), 0U) << "July 2026: the first of the best";
}

std::string pull_document(const std::string& pull, const std::string& precise = "",
                          const std::string& more = "", const std::string& profile = "") {
  return precise_document(precise,
                          "- type: p2p-source-producer\n  name: p2p\n  parameters:\n"
                          "    prefixMatchInfoProducerName: precise\n" +
                              pull + "- type: endpoint-attribute-scorer\n" +
                              "  parameters: {attributeKey: pick, producer: t, algorithm: {type: "
                              "linear_lower_is_better}}\n" +
                              more,
                          "  - pluginRef: endpoint-attribute-scorer\n    weight: 100\n" + profile);
}

/// A fleet that sends requests to the endpoint of choice.
struct PullFleet : Fleet {
  using Fleet::Fleet;
  Decision send_to(EndpointRow row) {
    for (EndpointRow r = 0; r < table.rows(); ++r)
      table.set_attribute("t/pick", EndpointId(r), r == row ? 0 : 1);
    Decision d = decide();
    EXPECT_TRUE(d.routed());
    EXPECT_EQ(d.primary.value(), row);
    return d;
  }
};

std::string pull_header(const Decision& d) {
  for (const auto& [header, value] : d.headers)
    if (header == kPullSourceHeader) return value;
  return "";
}

TEST(PullSource, MustHoldMoreThanTheComputingEndpointByTheDelta) {
  for (const auto& [delta, pulls] : {std::pair{128, true}, std::pair{129, false}}) {
    PullFleet fleet(pull_document("    minCachedTokenDelta: " + std::to_string(delta) + "\n"),
                    Era::kAug2026, 3, 10);
    fleet.hold(0, "CPU", 0, 6);
    fleet.hold(1, "GPU", 0, 4);
    const Decision d = fleet.send_to(1);
    EXPECT_EQ(d.pull_source.valid(), pulls);
    EXPECT_EQ(pull_header(d), pulls ? "10.0.0.1:8000" : "");
    if (pulls) {
      EXPECT_EQ(d.pull_source, EndpointId(0));
      EXPECT_EQ(d.pull_source_tokens, 6 * 64);
    }
    EXPECT_FALSE(fleet.send_to(0).pull_source.valid()) << "nobody pulls from itself";
    EXPECT_EQ(fleet.send_to(2).pull_source, EndpointId(0));
  }
}

TEST(PullSource, IsCountedInTheCpuTierSinceAugust) {
  for (const Era era : {Era::kJul2026, Era::kLateJul2026, Era::kAug2026, Era::kSep2026}) {
    SCOPED_TRACE(name(era));
    PullFleet fleet(pull_document(""), era, 3, 10);
    fleet.hold(0, "GPU", 0, 10);
    fleet.hold(1, "CPU", 0, 5);
    const Decision d = fleet.send_to(2);
    EXPECT_EQ(d.pull_source, EndpointId(era < Era::kAug2026 ? 0 : 1));
    EXPECT_EQ(d.pull_source_tokens, era < Era::kAug2026 ? 640 : 320);
  }
}

TEST(PullSource, WeightsOfTiersPlayNoPart) {
  PullFleet fleet(pull_document("", tier_weights("{name: cpu, weight: 0}")), Era::kAug2026, 2, 10);
  fleet.hold(0, "CPU", 0, 5);
  EXPECT_EQ(fleet.send_to(1).pull_source_tokens, 320);
}

TEST(PullSource, SpeculationSuppressesPullsUntilSeptember) {
  for (const Era era : {Era::kAug2026, Era::kSep2026}) {
    PullFleet fleet(pull_document("", "    speculativeIndexing: true\n"), era, 2, 10);
    fleet.hold(0, "CPU", 0, 10);
    const Decision first = fleet.send_to(1);
    EXPECT_TRUE(first.pull_source.valid());
    fleet.scheduler->on_routed(fleet.request, first, fleet.table, SimTime::zero());
    EXPECT_EQ(fleet.send_to(1).pull_source.valid(), era == Era::kSep2026) << name(era);
  }
}

TEST(PullSource, DrawsAmongReplicasOfAPrefixByQueue) {
  PullFleet fleet(pull_document(""), Era::kAug2026, 4, 10);
  fleet.hold(0, "CPU", 0, 10);
  fleet.hold(1, "CPU", 0, 9);
  fleet.hold(2, "CPU", 0, 8);
  fleet.table.set_metrics(EndpointId(1), 3, 0, 0, SimTime::zero());
  std::map<EndpointRow, int> sources;
  for (fleet.request.id = 0; fleet.request.id < 5000; ++fleet.request.id) {
    const Decision d = fleet.send_to(3);
    ++sources[d.pull_source.value()];
    EXPECT_EQ(d.pull_source_tokens, d.pull_source.value() == 0 ? 640 : 576);
  }
  EXPECT_EQ(sources.size(), 2U);
  EXPECT_NEAR(sources[1], 1000, 120) << "1/4 against 1";
  PullFleet july(pull_document(""), Era::kJul2026, 4, 10);
  july.hold(1, "GPU", 0, 9);
  july.hold(2, "GPU", 0, 10);
  for (july.request.id = 0; july.request.id < 20; ++july.request.id)
    EXPECT_EQ(july.send_to(3).pull_source, EndpointId(2));
}

TEST(PullSource, ComputesWhereThePrefillProfileSays) {
  const std::string yaml =
      "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n"
      "- type: precise-prefix-cache-producer\n  parameters:\n" +
      kEvents +
      "- type: p2p-source-producer\n  parameters:\n"
      "    prefixMatchInfoProducerName: precise-prefix-cache-producer\n"
      "- type: always-disagg-pd-decider\n"
      "- type: disagg-profile-handler\n"
      "  parameters: {deciders: {prefill: always-disagg-pd-decider}}\n"
      "- type: prefill-filter\n- type: decode-filter\n"
      "schedulingProfiles:\n"
      "- name: prefill\n  plugins:\n  - pluginRef: prefill-filter\n"
      "- name: decode\n  plugins:\n  - pluginRef: decode-filter\n";
  Fleet fleet(yaml, Era::kAug2026, 3, 10);
  for (EndpointRow r = 0; r < 3; ++r)
    fleet.table.mutable_info(EndpointId(r)).labels["llm-d.ai/role"] = r == 0 ? "prefill" : "decode";
  fleet.table.set_ready(EndpointId(2), false);
  fleet.hold(1, "CPU", 0, 10);  // The decoder is a source for the prefiller.
  const Decision d = fleet.decide();
  EXPECT_EQ(d.prefill, EndpointId(0));
  EXPECT_EQ(d.primary, EndpointId(1));
  EXPECT_EQ(d.pull_source, EndpointId(1));
  fleet.hold(0, "CPU", 0, 10);
  EXPECT_FALSE(fleet.decide().pull_source.valid());
}

TEST(PullSource, TrustsAnApproximateProducerAsItIs) {
  Fleet fleet(document("- type: p2p-source-producer\n- type: queue-scorer\n",
                       "  - pluginRef: queue-scorer\n"),
              Era::kAug2026, 2, 1);
  fleet.request.block_keys = {};
  fleet.request.approx_hashes = fleet.keys;
  fleet.table.set_metrics(EndpointId(1), 9, 0, 0, SimTime::zero());
  Decision d = fleet.decide();
  EXPECT_FALSE(d.pull_source.valid());
  fleet.scheduler->on_routed(fleet.request, d, fleet.table, SimTime::zero());
  fleet.table.set_metrics(EndpointId(0), 99, 0, 0, SimTime::zero());
  EXPECT_EQ(fleet.decide().pull_source, EndpointId(0));
}

// Decisions over random caches, against the rules written down directly.
TEST(PullSource, EqualsTheRulesOnRandomCaches) {
  constexpr std::size_t kEndpoints = 6, kBlocks = 12;
  for (const Era era : {Era::kLateJul2026, Era::kAug2026, Era::kSep2026}) {
    RandomStream random(static_cast<std::uint64_t>(era), Stream::kTest);
    int pulls = 0;
    for (std::uint64_t round = 0; round < 300; ++round) {
      const std::int64_t delta = 1 + static_cast<std::int64_t>(random.below(200));
      PullFleet fleet(pull_document("    minCachedTokenDelta: " + std::to_string(delta) + "\n",
                                    "    indexerConfig: {kvBlockIndexConfig: {inMemoryConfig: "
                                    "{podCacheSize: 12}}}\n"),
                      era, kEndpoints, kBlocks);
      fleet.request.id = round;
      // Lengths of the chains in the GPU, in the CPU, and in any of them.
      std::vector<std::int64_t> gpu, cpu, any, queue;
      for (EndpointRow r = 0; r < kEndpoints; ++r) {
        gpu.push_back(static_cast<std::int64_t>(random.below(kBlocks + 1)));
        cpu.push_back(static_cast<std::int64_t>(random.below(kBlocks + 1)));
        any.push_back(std::max(gpu[r], cpu[r]));
        queue.push_back(static_cast<std::int64_t>(random.below(4)));
        if (gpu[r] > 0) fleet.hold(r, "GPU", 0, static_cast<std::size_t>(gpu[r]));
        if (cpu[r] > 0) fleet.hold(r, "CPU", 0, static_cast<std::size_t>(cpu[r]));
        fleet.table.set_metrics(EndpointId(r), static_cast<double>(queue[r]), 0, 0,
                                SimTime::zero());
      }
      const std::vector<std::int64_t>& held = era < Era::kAug2026 ? any : cpu;
      const std::int64_t most = *std::max_element(held.begin(), held.end());
      std::vector<EndpointRow> band;
      double total = 0;
      for (EndpointRow r = 0; r < kEndpoints; ++r)
        if (held[r] > 0 && held[r] + 1 >= most) {
          band.push_back(r);
          total += 1.0 / (1.0 + static_cast<double>(queue[r]));
        }
      std::optional<EndpointRow> source;
      double left = request_spread(request_id_text(fleet.request)) * total;
      for (const EndpointRow r : band) {
        source = r;
        if (left < 1.0 / (1.0 + static_cast<double>(queue[r]))) break;
        left -= 1.0 / (1.0 + static_cast<double>(queue[r]));
      }
      const auto computing = static_cast<EndpointRow>(random.below(kEndpoints));
      const bool pull =
          source && *source != computing && (held[*source] - any[computing]) * 64 >= delta;
      const Decision d = fleet.send_to(computing);
      ASSERT_EQ(d.pull_source, pull ? EndpointId(*source) : EndpointId());
      ASSERT_EQ(d.pull_source_tokens, pull ? held[*source] * 64 : 0);
      pulls += pull ? 1 : 0;
    }
    EXPECT_GT(pulls, 50);
  }
}

TEST(PullSource, ItsParametersAreChecked) {
  const Loaded delta(pull_document("    minCachedTokenDelta: 0\n"));
  EXPECT_FALSE(delta.ok());
  EXPECT_TRUE(delta.mentions("minCachedTokenDelta")) << delta.text();
  const Loaded missing(
      document("- type: p2p-source-producer\n  parameters: {prefixMatchInfoProducerName: no}\n"
               "- type: queue-scorer\n",
               "  - pluginRef: queue-scorer\n"));
  EXPECT_TRUE(missing.mentions("references undefined plugin 'no'")) << missing.text();
}

TEST(RemainingWork, ShortensTheLengthThatRangesAreComparedWith) {
  const auto yaml = [](const std::string& label, const std::string& producer) {
    return pull_document(
        "    minCachedTokenDelta: 65\n", "",
        "- type: context-length-aware\n  parameters: {label: " + label + ", " + producer + "}\n",
        "  - pluginRef: context-length-aware\n");
  };
  const std::string by_p2p = "reusableTokensProducerName: p2p";
  PullFleet fleet(yaml("llm-d.ai/prefill-work-range", by_p2p), Era::kSep2026, 2, 10);
  PullFleet plain(yaml("llm-d.ai/prefill-work-range", "enableFiltering: false"), Era::kSep2026, 2,
                  10);
  for (PullFleet* f : {&fleet, &plain}) {
    f->table.mutable_info(EndpointId(0)).labels["llm-d.ai/prefill-work-range"] = "0-400";
    f->table.mutable_info(EndpointId(1)).labels["llm-d.ai/prefill-work-range"] = "401-900";
    f->hold(1, "CPU", 0, 6);
  }
  const auto expected = [](std::int64_t n) {
    return std::vector<double>{context_range_score({0, 400}, n),
                               context_range_score({401, 900}, n)};
  };
  EXPECT_EQ(plain.scores(2), expected(640));
  EXPECT_EQ(fleet.scores(2), expected(640 - (6 * 64 - 65 + 1)));
  fleet.request.block_keys = std::span<const std::uint64_t>(fleet.keys).last(4);
  EXPECT_EQ(fleet.scores(2), expected(640)) << "nothing to pull";
  EXPECT_TRUE(Loaded(yaml("llm-d.ai/context-length-range", by_p2p))
                  .mentions("must not be llm-d.ai/context-length-range"));
  EXPECT_TRUE(
      Loaded(yaml("x", by_p2p), in(Era::kAug2026)).mentions("does not exist in era 2026-08"));
  EXPECT_TRUE(Loaded(yaml("x", "reusableTokensProducerName: precise"))
                  .mentions("produces no reusable tokens"));
}

// ---- One approximate index per tier -------------------------------------------------------------

// llm-d's guide to tiered prefix caches: two producers, two scorers, and no-hit-lru-scorer, which
// reads a third that the framework adds.
const std::string kTwoTiers =
    "- type: approx-prefix-cache-producer\n  name: gpu\n  parameters: {maxPrefixTokensToMatch: "
    "640}\n"
    "- type: approx-prefix-cache-producer\n  name: cpu\n"
    "  parameters: {autoTune: false, lruCapacityPerServer: 30}\n"
    "- type: prefix-cache-scorer\n  name: gpu-scorer\n"
    "  parameters: {prefixMatchInfoProducerName: gpu}\n"
    "- type: prefix-cache-scorer\n  name: cpu-scorer\n"
    "  parameters: {prefixMatchInfoProducerName: cpu}\n"
    "- type: no-hit-lru-scorer\n";

TEST(TwoApproximateTiers, AddTheirScoresAndForgetApart) {
  Fleet fleet(document(kTwoTiers,
                       "  - pluginRef: gpu-scorer\n  - pluginRef: cpu-scorer\n"
                       "  - pluginRef: no-hit-lru-scorer\n"),
              Era::kAug2026, 2, 20);
  ASSERT_NE(fleet.scheduler, nullptr);
  fleet.table.mutable_info(EndpointId(0)).num_gpu_blocks = 15;
  fleet.table.mutable_info(EndpointId(1)).num_gpu_blocks = 15;
  EXPECT_EQ(fleet.scheduler->approx_scheme(fleet.table).max_blocks, 131072 / 64)
      << "the largest cap of the three";
  fleet.request.block_keys = {};
  const auto prompt = [&](std::uint64_t first) {
    fleet.keys = keys_from(first, 20);
    fleet.request.approx_hashes = fleet.keys;
  };
  const auto route = [&] {
    ++fleet.request.id;
    const Decision d = fleet.decide();
    fleet.scheduler->on_routed(fleet.request, d, fleet.table, SimTime::zero());
    return d.primary.value();
  };
  prompt(1);
  EXPECT_NE(fleet.scores(2), (std::vector<double>{0.5, 0.5})) << "cold";
  const EndpointRow home = route();
  const auto at_home = [&](std::size_t scorer) { return fleet.scores(scorer)[home]; };
  EXPECT_EQ(at_home(0), 1.0) << "10 of 10 blocks: the cap";
  EXPECT_EQ(at_home(1), 1.0) << "20 of 20";
  EXPECT_EQ(fleet.scores(2), (std::vector<double>{0.5, 0.5})) << "warm by the third producer";
  EXPECT_EQ(route(), home) << "both scores speak for it";
  Scratch scratch;
  Decision d;
  fleet.scheduler->schedule(fleet.request, fleet.table, SimTime::zero(), scratch, d);
  EXPECT_EQ(fleet.scheduler->predicted_hit_tokens(scratch, EndpointId(home)), 20 * 64);
  // A second prompt at the same endpoint: 10 more blocks in a GPU index of 15, 20 more in one
  // of 30.
  fleet.table.set_ready(EndpointId(1 - home), false);
  prompt(1001);
  route();
  fleet.table.set_ready(EndpointId(1 - home), true);
  prompt(1);
  // The heads of the first prompt have gone, in one index the first 5 blocks, in the other 10; the
  // match stops at once.
  EXPECT_EQ(at_home(0), 0.0);
  EXPECT_EQ(at_home(1), 0.0);
}

TEST(TwoApproximateTiers, MustHashAlike) {
  const Loaded loaded(
      document("- type: approx-prefix-cache-producer\n  name: gpu\n"
               "- type: approx-prefix-cache-producer\n  name: cpu\n"
               "  parameters: {autoTune: false, blockSizeTokens: 256}\n- type: queue-scorer\n",
               "  - pluginRef: queue-scorer\n"));
  EXPECT_TRUE(loaded.mentions("different block settings")) << loaded.text();
  EXPECT_TRUE(loaded.mentions("the same block size")) << loaded.text();
}

}  // namespace
}  // namespace routesim::policies
