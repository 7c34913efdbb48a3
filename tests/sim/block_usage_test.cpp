// The time integral of used KV blocks, by hand.
#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {
namespace {

// A stage may begin or end within a step, and what the step uses until then counts until then.
TEST(BlockUsage, CountsUpToTheInstantWithinAStep) {
  class Slow final : public models::LatencyModel {
   public:
    std::int64_t step_ticks(const models::BatchShape&) const override {
      return 100 * models::kTicksPerMillisecond;
    }
    models::Trust trust(const models::BatchShape&) const override { return models::Trust::kFitted; }
    std::string provenance() const override { return "slow"; }
  };
  EngineRules rules = plain_rules();
  rules.block_size = 4;
  Server server(rules, std::make_shared<Slow>());
  // 8 prompt tokens: 2 blocks in the step from 0 to 100 ms, 3 in the step from 100 to 200 ms.
  server.send({.parts = {{1, 8}}, .output = 2}, at_ms(0));
  for (const auto& [ms, block_ms, peak] :
       {std::array{0, 0, 2}, {40, 80, 2}, {100, 200, 3}, {150, 350, 3}}) {
    server.run_until(at_ms(ms));
    EXPECT_DOUBLE_EQ(server.replica().used_block_seconds(0, at_ms(ms)), 1e-3 * block_ms) << ms;
    EXPECT_EQ(server.replica().peak_used_blocks(0), peak) << ms;
  }
  server.run();
  EXPECT_DOUBLE_EQ(server.replica().used_block_seconds(0, at_ms(1000)), 0.5);
  EXPECT_EQ(server.replica().peak_used_blocks(0), 3);
}

}  // namespace
}  // namespace routesim::sim::testing
