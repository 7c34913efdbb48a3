// Speculative decoding in one engine core: schedules that can be computed by hand.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"
#include "sim/rules/speculation_config.h"
#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {
namespace {

EngineRules speculating(std::int64_t blocks, std::vector<double> acceptance, bool async = false) {
  EngineRules rules = plain_rules(blocks);
  rules.block_size = 4;
  rules.max_model_len = 100;
  rules.async_scheduling = async;
  rules.speculation.tokens = rules.speculation.lookahead = std::ssize(acceptance);
  rules.speculation.acceptance = std::move(acceptance);
  return rules;
}

/// The batches of every step.
class DraftSteps final : public StepListener {
 public:
  void on_step(const Replica&, StepPlace, const models::BatchShape& shape, SimTime,
               SimTime) override {
    text += (text.empty() ? "" : ", ") + std::to_string(shape.prefill_tokens) + "p " +
            std::to_string(shape.decode_requests) + "+" + std::to_string(shape.draft_tokens) +
            " of " + std::to_string(shape.decode_context);
  }
  std::string text;
};

struct Played {
  std::vector<Fate> fates;
  std::string steps;
  Samples gaps;
  SpeculationCounters did;
};

/// Requests at 0 ms with prompts of their own, steps of 10 ms.
Played play(const EngineRules& rules, const std::vector<std::pair<int, int>>& requests) {
  Server server(rules, std::make_shared<FixedLatency>(10));
  DraftSteps steps;
  server.replica().report_steps_to(&steps);
  std::uint64_t content = 0;
  for (const auto& [prompt, output] : requests)
    server.send({.parts = {{++content, prompt}}, .output = output}, at_ms(0));
  server.run();
  server.replica().verify();
  return {server.fates, steps.text, server.gaps, server.scheduler().speculation().counters()};
}

TEST(Speculation, AStepYieldsTheAcceptedDraftsAndOneMore) {
  // One token, then 1 + 2 drafts a step. Answers of 6: all drafts good: 1, 4, and 2 of 3.
  const Played all = play(speculating(100, {1, 1}), {{4, 6}});
  EXPECT_EQ(all.steps, "4p 0+0 of 0, 0p 1+2 of 7, 0p 1+2 of 10");
  EXPECT_EQ(all.fates[0].first, at_ms(10));
  EXPECT_EQ(all.fates[0].finish, at_ms(30));
  EXPECT_EQ(all.gaps.count(), 5);
  EXPECT_DOUBLE_EQ(all.gaps.sum(), 0.020) << "tokens of one step come together";
  EXPECT_EQ(all.did.drafts, 2);
  EXPECT_EQ(all.did.draft_tokens, 4);
  EXPECT_EQ(all.did.accepted_tokens, 4) << "counted before the answer's end cuts them, as in vLLM";
  // The first good, the second not: 1, 3, 5, and 1 of 2. What is rejected is computed again.
  const Played half = play(speculating(100, {1, 0}), {{4, 6}});
  EXPECT_EQ(half.steps, "4p 0+0 of 0, 0p 1+2 of 7, 0p 1+2 of 9, 0p 1+2 of 11");
  EXPECT_EQ(half.fates[0].finish, at_ms(40));
  EXPECT_EQ(half.did.accepted_per_position, (std::vector<std::int64_t>{3, 0}));
  const Played none = play(speculating(100, {0, 0}), {{4, 6}});
  EXPECT_EQ(none.fates[0].finish, at_ms(60));
  EXPECT_EQ(none.did.accepted_tokens, 0);
}

TEST(Speculation, AsyncSchedulingTakesAllDraftsForAcceptedUntilItHears) {
  // Pass n is scheduled when step n - 1 starts. With nothing accepted the third pass stands 2
  // further than the second: 4 + 1 + 2 = 7 tokens, then 10, back by 2 each time.
  const Played none = play(speculating(100, {0, 0}, true), {{4, 3}});
  EXPECT_EQ(none.steps, "4p 0+0 of 0, 0p 1+2 of 7, 0p 1+2 of 10");
  EXPECT_EQ(none.fates[0].finish, at_ms(30)) << "as without async scheduling";
  const Played all = play(speculating(100, {1, 1}, true), {{4, 6}});
  EXPECT_EQ(all.fates[0].finish, at_ms(30));
  EXPECT_EQ(all.steps, "4p 0+0 of 0, 0p 1+2 of 7, 0p 1+2 of 10, 0p 1+2 of 13");
}

TEST(Speculation, DraftsCountInTheBudget) {
  EngineRules rules = speculating(100, {1, 1});
  rules.max_num_batched_tokens = 4;
  // The first takes 3 tokens a step, so the second has one: of its prompt, then to decode, without
  // its drafts.
  const Played tight = play(rules, {{4, 30}, {4, 30}});
  EXPECT_TRUE(tight.steps.starts_with(
      "4p 0+0 of 0, 1p 1+2 of 7, 1p 1+2 of 10, 1p 1+2 of 13, 1p 1+2 of 16, 0p 2+2 of 24, "
      "0p 2+2 of 28"))
      << tight.steps;
  EXPECT_EQ(tight.did.accepted_tokens, tight.did.draft_tokens);
}

TEST(Speculation, ASequenceHoldsSlotsForTheDrafterToo) {
  // Prompt 4, answer 6, k = 2, blocks of 4: the step to 7 tokens looks 2 ahead, so 9 tokens, 3
  // blocks; one that looks up its drafts in the text needs 2.
  EngineRules rules = speculating(100, {0, 0});
  Server ahead(rules, std::make_shared<FixedLatency>(10));
  ahead.send({.parts = {{1, 4}}, .output = 6}, at_ms(0));
  ahead.run_until(at_ms(15));
  EXPECT_EQ(ahead.scheduler().kv().used_blocks(), 3);
  rules.speculation.lookahead = 0;
  Server text(rules, std::make_shared<FixedLatency>(10));
  text.send({.parts = {{1, 4}}, .output = 6}, at_ms(0));
  text.run_until(at_ms(15));
  EXPECT_EQ(text.scheduler().kv().used_blocks(), 2);
}

TEST(Speculation, HeadsComputeTheLastBlockOfAHitAgain) {
  for (const bool head : {false, true}) {
    EngineRules rules = speculating(100, {0, 0});
    rules.speculation.drops_last_hit = head;
    Server server(rules, std::make_shared<FixedLatency>(10));
    server.send({.parts = {{1, 14}}, .output = 1}, at_ms(0));
    server.send({.parts = {{1, 14}}, .output = 1}, at_ms(100));
    server.run();
    EXPECT_EQ(server.fates[1].cached, head ? 8 : 12);
  }
}

TEST(Speculation, DrawsBelongToTheRequest) {
  // The share of accepted drafts follows the given ones, the same with and without async scheduling
  // and whatever runs beside.
  std::vector<std::pair<int, int>> many(40, {4, 60});
  const EngineRules rules = speculating(4'000, {0.8, 0.5, 0.2});
  const Played sync = play(rules, many);
  const auto drafts = static_cast<double>(sync.did.drafts);
  ASSERT_EQ(sync.did.accepted_per_position.size(), 3u);
  EXPECT_NEAR(static_cast<double>(sync.did.accepted_per_position[0]) / drafts, 0.8, 0.04);
  EXPECT_NEAR(static_cast<double>(sync.did.accepted_per_position[1]) / drafts, 0.5, 0.04);
  EXPECT_NEAR(static_cast<double>(sync.did.accepted_per_position[2]) / drafts, 0.2, 0.04);
  EngineRules ahead = rules;
  ahead.async_scheduling = true;
  const Played async = play(ahead, many);
  const Played alone = play(rules, {many.front()});
  EXPECT_EQ(alone.fates[0].finish, sync.fates[0].finish);
  for (std::size_t i = 0; i < many.size(); ++i)
    EXPECT_EQ((async.fates[i].finish - async.fates[i].first).ns(),
              (sync.fates[i].finish - sync.fates[i].first).ns())
        << "request " << i;
}

TEST(SpeculationRules, FollowTheMethod) {
  SpeculationConfig c;
  c.method = SpeculationMethod::kEagle3;
  c.num_speculative_tokens = 3;
  const SpeculationRules eagle = resolve_speculation(c);
  EXPECT_EQ(eagle.lookahead, 3);
  EXPECT_TRUE(eagle.drops_last_hit);
  EXPECT_EQ(eagle.acceptance, (std::vector<double>{0.700, 0.477, 0.297}));
  EXPECT_DOUBLE_EQ(eagle.mean_length(), 2.474);
  c.method = SpeculationMethod::kDraftModel;
  c.acceptance = {0.7, 0.5, 0.3};
  const SpeculationRules model = resolve_speculation(c);
  EXPECT_EQ(model.lookahead, 3);
  EXPECT_FALSE(model.drops_last_hit);
  c.method = SpeculationMethod::kNgram;
  EXPECT_EQ(resolve_speculation(c).lookahead, 0);
  EXPECT_TRUE(published_acceptance(SpeculationMethod::kNgram, 2).empty());
  EXPECT_EQ(published_acceptance(SpeculationMethod::kMtp, 2).size(), 1u);
  EXPECT_EQ(published_acceptance(SpeculationMethod::kEagle3, 5).size(), 3u);
}

TEST(SpeculationRules, SchedulingAheadNeedsADrafterOnTheGpu) {
  EngineConfig c;
  c.preset = EnginePreset::k2026H1;
  const auto ahead = [&c](SpeculationMethod method) {
    c.speculative.emplace().method = method;
    c.speculative->num_speculative_tokens = 1;
    return resolve_engine_rules(c, 4096, true).async_scheduling;
  };
  EXPECT_TRUE(ahead(SpeculationMethod::kEagle3));
  EXPECT_TRUE(ahead(SpeculationMethod::kMtp));
  EXPECT_FALSE(ahead(SpeculationMethod::kDraftModel));
  EXPECT_FALSE(ahead(SpeculationMethod::kNgram));
  c.preset = EnginePreset::k2026H2;
  EXPECT_TRUE(ahead(SpeculationMethod::kDraftModel));
  EXPECT_FALSE(ahead(SpeculationMethod::kNgram));
}

}  // namespace
}  // namespace routesim::sim::testing
