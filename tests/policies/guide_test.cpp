// The published configuration files load as they are, and the llm-d guide's plugins decide.
#include <gtest/gtest.h>

#include <numeric>

#include "policies/plugins/inflight_load.h"
#include "tests/policies/scheduler_fixture.h"

namespace routesim::policies {
namespace {

std::unique_ptr<Scheduler> guide(LoadOptions load = {}) {
  return make_scheduler(read_repository_file("tests/policies/data/llm-d-precise.values.yaml"),
                        load);
}

std::vector<std::uint64_t> keys_from(std::uint64_t first, std::size_t n) {
  std::vector<std::uint64_t> keys(n);
  std::iota(keys.begin(), keys.end(), first);
  return keys;
}

TEST(GuideFiles, LoadWithTheirEras) {
  const auto era_of = [](const char* file) {
    return make_scheduler(read_repository_file(std::string("tests/policies/data/") + file))
        ->config()
        .era;
  };
  EXPECT_EQ(era_of("heimdall-values.yaml"), Era::kV0_3_2);
  EXPECT_EQ(era_of("heimdall-values-random.yaml"), Era::kV0_3_2);
  EXPECT_EQ(era_of("llm-d-precise-2026-01.values.yaml"), Era::kV0_5_0);
  EXPECT_EQ(era_of("llm-d-precise.values.yaml"), Era::kMay2026);
}

TEST(GuideFiles, HeimdallUsesItsOwnKeysAndPods) {
  const auto s = make_scheduler(read_repository_file("tests/policies/data/heimdall-values.yaml"));
  EXPECT_EQ(s->config().distribution, Distribution::kHeimdall);
  EXPECT_EQ(s->block_key_scheme().algorithm, KeyAlgorithm::kSha256Cbor);
  EXPECT_EQ(s->block_key_scheme().block_size, 32);
  EXPECT_EQ(s->block_key_scheme().hash_seed, "12345");
  ASSERT_NE(s->precise_index(), nullptr);
  EXPECT_EQ(s->precise_index()->options().pod_cache_size, 10U);
}

TEST(Guide, SaysWhatItNeeds) {
  const auto s = guide();
  EXPECT_TRUE(s->needs().metrics);
  EXPECT_TRUE(s->needs().block_keys);
  EXPECT_FALSE(s->needs().approx_hashes);
  EXPECT_FALSE(s->needs().predictions);
  EXPECT_EQ(s->block_key_scheme().algorithm, KeyAlgorithm::kCborFnv);
  EXPECT_EQ(s->block_key_scheme().block_size, 64);
  EXPECT_EQ(s->profile_names(), std::vector<std::string>{"default"});
}

TEST(Guide, SpeculativeEntriesKeepARepeatWhereItWentUntilTheyExpire) {
  const auto s = guide();
  const EndpointTable table = make_endpoints(8);
  const auto keys = keys_from(1000, 118);
  RequestView request{.id = 1, .model = "m", .prompt_tokens = 7552, .block_keys = keys};
  const Decision first = s->schedule(request, table, SimTime::zero());
  ASSERT_TRUE(first.routed());
  s->on_routed(request, first, table, SimTime::zero());
  for (std::uint64_t id = 2; id < 40; ++id) {
    request.id = id;
    const Decision again = s->schedule(request, table, SimTime::zero());
    EXPECT_EQ(again.primary, first.primary) << "request " << id;
  }
  s->advance(SimTime::zero() + Duration::seconds(2));
  std::vector<int> picked(8, 0);
  for (std::uint64_t id = 100; id < 900; ++id) {
    request.id = id;
    ++picked[s->schedule(request, table, SimTime::from_ns(2'000'000'000)).primary.value()];
  }
  // Cold again: the endpoint that had the last cold request comes last, the seven others tie only
  // by chance of the arbitrary order.
  EXPECT_EQ(picked[first.primary.value()], 0);
  for (std::size_t i = 0; i < 8; ++i) {
    if (i == first.primary.value()) continue;
    EXPECT_GT(picked[i], 60) << i;
  }
}

TEST(Guide, TotalsFollowFromTheFormulas) {
  const auto s = guide();
  EndpointTable table = make_endpoints(3);
  const auto keys = keys_from(1, 10);
  // Endpoint 0 holds 4 of 10 blocks, endpoint 1 all of them, endpoint 2 none.
  s->precise_index()->stored(EndpointId(0), kGpuTier, 0, std::span(keys).first(4),
                             std::span(keys).first(4));
  s->precise_index()->stored(EndpointId(1), kGpuTier, 0, keys, keys);
  table.set_metrics(EndpointId(0), 2, 0, 0.25, SimTime::zero());
  table.set_metrics(EndpointId(1), 6, 0, 0.5, SimTime::zero());
  table.set_metrics(EndpointId(2), 4, 0, 0.0, SimTime::zero());
  const RequestView request{.id = 7, .model = "m", .prompt_tokens = 640, .block_keys = keys};
  Explanation e;
  const Decision d = s->explain(request, table, SimTime::zero(), e);
  ASSERT_EQ(e.profiles.size(), 1U);
  ASSERT_EQ(e.profiles[0].totals.size(), 3U);
  // kv 2·(1-u) + queue 2·(6-q)/4 + precise 3·raw/10 + no-hit-lru 2·0.5.
  EXPECT_DOUBLE_EQ(e.profiles[0].totals[0], 1.5 + 2.0 + 1.2 + 1.0);
  EXPECT_DOUBLE_EQ(e.profiles[0].totals[1], 1.0 + 0.0 + 3.0 + 1.0);
  EXPECT_DOUBLE_EQ(e.profiles[0].totals[2], 2.0 + 1.0 + 0.0 + 1.0);
  EXPECT_EQ(d.primary, EndpointId(0));
}

TEST(Guide, MinMaxErasGiveTheWeakestMatchNothing) {
  const auto s = guide({.era = Era::kV0_7_0, .distribution = {}, .registry = nullptr});
  EndpointTable table = make_endpoints(3);
  const auto keys = keys_from(1, 50);
  s->precise_index()->stored(EndpointId(0), kGpuTier, 0, std::span(keys).first(49),
                             std::span(keys).first(49));
  s->precise_index()->stored(EndpointId(1), kGpuTier, 0, keys, keys);
  const RequestView request{.id = 7, .model = "m", .prompt_tokens = 3200, .block_keys = keys};
  Explanation e;
  s->explain(request, table, SimTime::zero(), e);
  const auto& scorers = e.profiles[0].scorers;
  const auto it = std::find_if(scorers.begin(), scorers.end(), [](const auto& step) {
    return step.plugin == "precise-prefix-cache-scorer";
  });
  ASSERT_NE(it, scorers.end());
  EXPECT_EQ(it->scores, (std::vector<double>{0, 1, 0}));
}

TEST(Guide, ExplainRepeatsTheDecisionAndChangesNothing) {
  const auto s = guide();
  const EndpointTable table = make_endpoints(16);
  const auto keys = keys_from(5, 20);
  s->precise_index()->stored(EndpointId(3), kGpuTier, 0, keys, keys);
  const auto before = s->precise_index()->keys_by_recency();
  for (std::uint64_t id = 0; id < 50; ++id) {
    const RequestView request{.id = id, .model = "m", .prompt_tokens = 1280, .block_keys = {}};
    Explanation e;
    const Decision explained = s->explain(request, table, SimTime::zero(), e);
    EXPECT_EQ(explained.primary, s->schedule(request, table, SimTime::zero()).primary);
  }
  const RequestView request{
      .id = 1, .model = "m", .prompt_tokens = 640, .block_keys = std::span(keys).first(10)};
  Explanation e;
  const Decision explained = s->explain(request, table, SimTime::zero(), e);
  EXPECT_EQ(explained.primary, EndpointId(3));
  EXPECT_EQ(s->precise_index()->keys_by_recency(), before);
}

TEST(Guide, DecodeFilterDropsPrefillEndpoints) {
  const auto s = guide();
  EndpointTable table = make_endpoints(2);
  table.mutable_info(EndpointId(0)).labels["llm-d.ai/role"] = "prefill";
  const RequestView request{.id = 1, .model = "m"};
  EXPECT_EQ(s->schedule(request, table, SimTime::zero()).primary, EndpointId(1));
  table.mutable_info(EndpointId(1)).labels["llm-d.ai/role"] = "prefill";
  const Decision none = s->schedule(request, table, SimTime::zero());
  EXPECT_EQ(none.outcome, Outcome::kFilteredOut);
  EXPECT_FALSE(none.primary.valid());
}

}  // namespace
}  // namespace routesim::policies
