// DP ranks that step together, by hand. The number in a name refers to the list of engine test
// vectors in sim/README.md.
#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {
namespace {

TEST(LockStep, V8TheSlowestRankSetsThePaceAndIdleRanksRunDummies) {
  // 40 ms for a prefill, 10 ms for anything else.
  class TwoSpeeds final : public models::LatencyModel {
   public:
    std::int64_t step_ticks(const models::BatchShape& s) const override {
      return (s.prefill_tokens > 0 ? 40 : 10) * models::kTicksPerMillisecond;
    }
    models::Trust trust(const models::BatchShape&) const override { return models::Trust::kFitted; }
    std::string provenance() const override { return "two speeds"; }
  };
  const auto latency = std::make_shared<TwoSpeeds>();
  Server group(plain_rules(), latency, false, 2);
  const auto decoder = group.send({.parts = {{1, 8}}, .output = 4}, at_ms(0), 1);
  const auto prefill = group.send({.parts = {{2, 8}}, .output = 1}, at_ms(45), 0);
  group.run();
  // Rank 1 prefills alone (40 ms; rank 0 runs a dummy), decodes to 50, then waits for rank 0's
  // prefill until 90, and decodes its last token by 100.
  EXPECT_EQ(group.fates[decoder].first, at_ms(40));
  EXPECT_EQ(group.fates[prefill].first, at_ms(90));
  EXPECT_EQ(group.fates[decoder].finish, at_ms(100));
  // The wave ends at a finish check, every 32 steps: 5 working steps and 27 dummies.
  EXPECT_EQ(group.replica().steps(), 32);
}

TEST(LockStep, ExpertsReceiveWholeBuffersOneByOne) {
  // 1 ms per token all ranks are padded to, and 100 ms per buffer.
  class Padded final : public models::LatencyModel {
   public:
    std::int64_t step_ticks(const models::BatchShape& s) const override {
      return (s.group_tokens + 100 * s.group_rounds) * models::kTicksPerMillisecond;
    }
    models::Trust trust(const models::BatchShape&) const override { return models::Trust::kFitted; }
    std::string provenance() const override { return "padded"; }
  };
  for (const std::int64_t chunk : {0, 16}) {
    EngineRules rules = plain_rules();
    rules.moe_dp_chunk_size = chunk;
    Server group(rules, std::make_shared<Padded>(), false, 2);
    const auto request = group.send({.parts = {{1, 20}}, .output = 2}, at_ms(0), 1);
    group.run();
    // A prompt of 20 tokens fills two buffers of 16, the token after it one.
    EXPECT_EQ(group.fates[request].first, at_ms(chunk == 0 ? 20 + 100 : 32 + 200));
    EXPECT_EQ(group.fates[request].finish, at_ms(chunk == 0 ? 21 + 200 : 48 + 300));
  }
}

TEST(LockStep, RanksAreNotPaddedBeyondTheLargestGraph) {
  // 1 ms per token a rank is padded to.
  class Padded final : public models::LatencyModel {
   public:
    std::int64_t step_ticks(const models::BatchShape& s) const override {
      const std::int64_t own = s.tokens() > 0 ? s.group_tokens : s.group_tokens * 100;
      return own * models::kTicksPerMillisecond;
    }
    models::Trust trust(const models::BatchShape&) const override { return models::Trust::kFitted; }
    std::string provenance() const override { return "padded"; }
  };
  for (const std::int64_t limit : {20, 19}) {
    EngineRules rules = plain_rules();
    rules.rank_padding_limit = limit;
    Server group(rules, std::make_shared<Padded>(), false, 2);
    const auto request = group.send({.parts = {{1, 20}}, .output = 1}, at_ms(0), 1);
    group.run();
    // The other rank's dummy batch is of 20 tokens, or of one.
    EXPECT_EQ(group.fates[request].first, at_ms(limit == 20 ? 2000 : 100));
  }
}

}  // namespace
}  // namespace routesim::sim::testing
