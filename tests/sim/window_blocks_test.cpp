// Layers with a window, by hand: blocks of their own, given up as the window moves on, and needed
// for a hit.
#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {
namespace {

/// Blocks of 16 tokens, a window of 32.
EngineRules windowed(std::int64_t groups, std::int64_t usable_blocks) {
  EngineRules rules = plain_rules(usable_blocks + 1);
  rules.window_groups = groups;
  rules.window_tokens = 32;
  return rules;
}

/// A scheduler without a clock.
class Engine {
 public:
  explicit Engine(const EngineRules& rules) : shelf_(rules.block_size), scheduler(rules, false) {}
  /// Sends a request and steps until all is done; the prompt tokens it found.
  std::int64_t serve(const TestRequest& t) {
    const EngineRequest r = shelf_.add(t);
    scheduler.enqueue(r, SimTime::zero(), out_);
    while (!scheduler.idle()) step();
    for (const EngineOutput& o : out_)
      if (o.kind == EngineOutputKind::kFinished && o.handle == r.handle) return o.cached_tokens;
    return -1;
  }
  void send(const TestRequest& t) { scheduler.enqueue(shelf_.add(t), SimTime::zero(), out_); }
  /// Sends a request whose prompt lies on another server; the blocks it pulls.
  std::int64_t pull(const TestRequest& t) {
    EngineRequest r = shelf_.add(t);
    r.remote_tokens = r.prompt_tokens;
    scheduler.enqueue(r, SimTime::zero(), out_);
    step();
    return out_.back().kind == EngineOutputKind::kTransferNeeded ? out_.back().value : -1;
  }
  void step() {
    StepPlan plan;
    scheduler.schedule(plan, nullptr, SimTime::zero(), out_);
    scheduler.verify();
    scheduler.process(plan, SimTime::zero(), out_);
    scheduler.verify();
  }

 private:
  RequestShelf shelf_;
  std::vector<EngineOutput> out_;

 public:
  BatchScheduler scheduler;
};

// A prompt of ten blocks and 40 tokens of answer: its keys grow, its states do not.
TEST(WindowBlocks, AStateIsOneBlockOfEachGroup) {
  EngineRules rules = plain_rules(1001);
  rules.window_groups = 3;
  rules.state_groups = true;
  rules.enable_prefix_caching = false;
  Engine e(rules);
  e.send({.parts = {{1, 160}}, .output = 40});
  e.step();
  EXPECT_EQ(e.scheduler.kv().used_blocks(), 10 + 3);
  for (int i = 0; i < 20; ++i) e.step();
  EXPECT_EQ(e.scheduler.kv().used_blocks(), 12 + 3) << "180 tokens";
  rules.num_gpu_blocks = 1 + 10 + 2;
  EngineRequest long_one{.prompt_tokens = 160, .output_tokens = 1};
  EXPECT_FALSE(BatchScheduler(rules, false).can_serve(long_one)) << "no room for three states";
  rules.num_gpu_blocks += 1;
  EXPECT_TRUE(BatchScheduler(rules, false).can_serve(long_one));
}

TEST(WindowBlocks, AreGivenUpAsTheWindowMovesOn) {
  for (const std::int64_t groups : {0, 1, 6}) {
    Engine e(windowed(groups, 1000));
    e.send({.parts = {{1, 160}}, .output = 40});
    e.step();
    EXPECT_EQ(e.scheduler.kv().used_blocks(), 10 + groups * 10) << "the whole prompt in each group";
    e.step();
    // Token 161 begins a block and sees 129 ... 160, which are in the last two.
    EXPECT_EQ(e.scheduler.kv().used_blocks(), 11 + groups * 3);
  }
}

/// 160 tokens and an answer of two: 18 blank blocks are left of 40, and in the free queue behind
/// them the eight that left the window, then the others. 13 blocks in each group then evict the
/// eight.
std::int64_t hit_after_eviction(std::int64_t groups, const TestRequest& probe) {
  Engine e(windowed(groups, groups == 0 ? 24 : 40));
  e.serve({.parts = {{1, 160}}, .output = 2});
  e.serve({.parts = {{9, 208}}, .output = 1});
  return e.serve(probe);
}

TEST(WindowBlocks, AHitNeedsTheWindowBeforeItsEnd) {
  EXPECT_EQ(hit_after_eviction(1, {.parts = {{1, 160}, {2, 16}}}), 160)
      << "the last two blocks were given up last";
  EXPECT_EQ(hit_after_eviction(1, {.parts = {{1, 80}, {2, 16}}}), 0)
      << "nothing of the window before token 80 is left, nor of any before";
  EXPECT_EQ(hit_after_eviction(0, {.parts = {{1, 80}, {2, 16}}}), 80) << "one group has it all";
}

TEST(WindowBlocks, AreFoundWhileTheyLast) {
  Engine e(windowed(2, 1000));
  e.serve({.parts = {{1, 160}}, .output = 2});
  EXPECT_EQ(e.serve({.parts = {{1, 80}, {2, 16}}}), 80);
  EXPECT_EQ(e.serve({.parts = {{1, 16}, {3, 64}}}), 16) << "a window cut short by the beginning";
}

TEST(WindowBlocks, OnlyTheWindowIsPulled) {
  for (const std::int64_t groups : {0, 1, 6}) {
    Engine e(windowed(groups, 1000));
    EXPECT_EQ(e.pull({.parts = {{1, 160}}, .output = 4}), 10 + groups * 2);
  }
}

TEST(WindowBlocks, SharingThemIsNoSharedContext) {
  Engine e(windowed(1, 1000));
  e.send({.parts = {{1, 160}}, .output = 40});
  e.step();
  e.send({.parts = {{1, 160}, {2, 16}}, .output = 40});
  e.step();
  EXPECT_EQ(e.scheduler.kv().shared_tokens(), 160);
}

}  // namespace
}  // namespace routesim::sim::testing
