// Pipeline stages that overlap: schedules by hand. A step of 20 ms has stages of 10 ms.
#include "sim/engine/pipeline.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "tests/sim/scheduler_bench.h"
#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {
namespace {

EngineRules pipelined(std::int64_t stages, std::int64_t budget, std::int64_t blocks = 1001) {
  EngineRules rules = plain_rules(blocks);
  rules.pipeline_stages = stages;
  rules.max_num_batched_tokens = budget;
  return rules;
}

/// Every stay of every batch: stage, begin and end in ms, and what the batch computes.
class Stays final : public StepListener {
 public:
  void on_step(const Replica&, StepPlace place, const models::BatchShape& shape, SimTime begin,
               SimTime end) override {
    const auto ms = [](SimTime t) { return std::to_string(t.ns() / 1'000'000); };
    if (place.stage == 0)
      text += (text.empty() ? "" : "; ") + std::to_string(shape.prefill_tokens) + "p" +
              std::to_string(shape.decode_requests) + "d";
    text += " " + ms(begin) + "-" + ms(end);
  }
  std::string text;
};

struct Played {
  std::vector<Fate> fates;
  Samples gaps;
  std::string stays;
};

/// Requests at 0 ms with prompts of their own: the first starts alone, for the engine wakes with
/// it.
Played play(const EngineRules& rules, const std::vector<std::pair<int, int>>& requests,
            const std::shared_ptr<const models::LatencyModel>& latency) {
  Server server(rules, latency);
  Stays stays;
  server.replica().report_steps_to(&stays);
  std::uint64_t content = 0;
  for (const auto& [prompt, output] : requests)
    server.send({.parts = {{++content, prompt}}, .output = output}, at_ms(0));
  server.run();
  server.replica().verify();
  EXPECT_TRUE(server.replica().idle());
  return {server.fates, server.gaps, stays.text};
}
Played play(const EngineRules& rules, const std::vector<std::pair<int, int>>& requests) {
  return play(rules, requests, std::make_shared<FixedLatency>(20));
}

TEST(Pipeline, TwoPromptsDecodeInTwoBatches) {
  const Played two = play(pipelined(2, 100), {{100, 4}, {100, 4}});
  // The second prompt comes to an engine that waits for the first batch. At 20 ms it gets what the
  // first one's token leaves of the budget, and its last token at once in a batch of its own: from
  // then on the two are in different batches.
  EXPECT_EQ(two.stays,
            "100p0d 0-10 10-20; 99p1d 20-30 30-40; 1p0d 30-40 40-50; 0p1d 40-50 50-60; "
            "0p1d 50-60 60-70; 0p1d 60-70 70-80; 0p1d 70-80 80-90; 0p1d 90-100 100-110");
  EXPECT_EQ(two.fates[0].first, at_ms(20));
  EXPECT_EQ(two.fates[0].finish, at_ms(80));
  EXPECT_EQ(two.fates[1].first, at_ms(50));
  EXPECT_EQ(two.fates[1].finish, at_ms(110));
  EXPECT_EQ(two.gaps.count(), 6);
  EXPECT_DOUBLE_EQ(two.gaps.min(), 0.020);
  EXPECT_DOUBLE_EQ(two.gaps.max(), 0.020);
}

TEST(Pipeline, OneRequestGainsNothing) {
  for (const std::int64_t stages : {1, 2, 4}) {
    const Played one = play(pipelined(stages, 100), {{50, 5}});
    EXPECT_EQ(one.fates[0].first, at_ms(20)) << stages;
    EXPECT_EQ(one.fates[0].finish, at_ms(100)) << stages;
  }
}

TEST(Pipeline, ChunksOfOnePromptFollowEachOther) {
  // The first two enter at once, the third when the first is through: 40 ms and not 60.
  const Played two = play(pipelined(2, 100), {{300, 1}});
  EXPECT_EQ(two.stays, "100p0d 0-10 10-20; 100p0d 10-20 20-30; 100p0d 20-30 30-40");
  EXPECT_EQ(two.fates[0].finish, at_ms(40));
  EXPECT_EQ(play(pipelined(1, 100), {{300, 1}}).fates[0].finish, at_ms(60));
  const Played four = play(pipelined(4, 100), {{400, 2}}, std::make_shared<FixedLatency>(40));
  EXPECT_EQ(four.fates[0].first, at_ms(70));
  EXPECT_EQ(four.fates[0].finish, at_ms(110));
}

TEST(Pipeline, BringsAsManyTimesTheThroughputAsItHasStages) {
  // Prompts that fill a batch each. The first is alone for 20 ms; then one is through every 10 ms.
  const std::vector<std::pair<int, int>> prompts(41, {100, 1});
  EXPECT_EQ(play(pipelined(2, 100), prompts).fates.back().finish, at_ms(20 + 20 + 39 * 10));
  EXPECT_EQ(play(pipelined(1, 100), prompts).fates.back().finish, at_ms(41 * 20));
  EXPECT_EQ(play(pipelined(4, 100), prompts).fates.back().finish, at_ms(20 + 20 + 39 * 5));
  // Decodes that cost by the sequence: each batch has about half of them, and half the length.
  KneeLatency::Coefficients k;
  k.base = k.context = k.prefill_pair = k.chunk = 0;
  const auto linear = std::make_shared<KneeLatency>(k);
  const std::vector<std::pair<int, int>> answers(64, {100, 200});
  const double together =
      play(pipelined(1, 1600), answers, linear).fates.back().finish.to_seconds();
  const double apart = play(pipelined(2, 1600), answers, linear).fates.back().finish.to_seconds();
  EXPECT_GT(together / apart, 1.6);
  EXPECT_LT(together / apart, 2.0);
}

// vllm-project/vllm#41682: nothing splits a batch. What is scheduled together stays together.
TEST(Pipeline, ABurstThatFitsABatchIsNotSplit) {
  Server server(pipelined(2, 100), std::make_shared<FixedLatency>(20));
  server.send({.parts = {{1, 10}}, .output = 1}, at_ms(0));
  for (std::uint64_t i = 2; i < 6; ++i) server.send({.parts = {{i, 10}}, .output = 3}, at_ms(5));
  server.run();
  for (std::size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(server.fates[i].first, at_ms(40));
    EXPECT_EQ(server.fates[i].finish, at_ms(80));
  }
}

/// Steps of 20 ms, 4 of which are the last stage's alone.
class HeadLatency final : public models::LatencyModel {
 public:
  std::int64_t step_ticks(const models::BatchShape&) const override {
    return 20 * models::kTicksPerMillisecond;
  }
  std::int64_t last_stage_ticks(const models::BatchShape&) const override {
    return 4 * models::kTicksPerMillisecond;
  }
  models::Trust trust(const models::BatchShape&) const override { return models::Trust::kFitted; }
  std::string provenance() const override { return "head"; }
};

TEST(Pipeline, TheLastStageHasTheOutputProjection) {
  const Played one = play(pipelined(2, 100), {{300, 1}}, std::make_shared<HeadLatency>());
  EXPECT_EQ(one.stays, "100p0d 0-8 8-20; 100p0d 8-16 20-32; 100p0d 20-28 32-44");
}

TEST(Pipeline, AnEmptyBatchTakesAPlaceUntilThoseBeforeItAreThrough) {
  // Three stages of 10 ms. At 0 the first prompt alone: its batch and two empty ones. The second
  // and the third prompt, for which no place is left, are seen at 30; a batch each, then none.
  const Played three =
      play(pipelined(3, 100), {{100, 1}, {100, 1}, {100, 1}}, std::make_shared<FixedLatency>(30));
  EXPECT_EQ(three.stays,
            "100p0d 0-10 10-20 20-30; 100p0d 30-40 40-50 50-60; "
            "100p0d 40-50 50-60 60-70");
}

TEST(Pipeline, ATokenOfAPreemptedRequestIsDelivered) {
  EngineRules rules = pipelined(2, 8, 7);
  rules.block_size = 4;
  Server server(rules, std::make_shared<FixedLatency>(20));
  server.send({.parts = {{1, 8}}, .output = 6}, at_ms(0));
  server.send({.parts = {{2, 8}}, .output = 6}, at_ms(0));
  server.run();
  // Tokens of the first come at 20, 40, ... and of the second, in the other batches, at 50, 70, 90.
  // At 100 the first needs its fourth block and takes the second's, whose fourth token comes at
  // 110. Its 12 tokens need three blocks, which are there when the first ends at 120.
  EXPECT_EQ(server.fates[0].first, at_ms(20));
  EXPECT_EQ(server.fates[0].finish, at_ms(120));
  EXPECT_EQ(server.fates[1].first, at_ms(50));
  EXPECT_EQ(server.fates[1].preemptions, 1);
  EXPECT_EQ(server.fates[1].finish, at_ms(160));
  EXPECT_EQ(server.gaps.count(), 10);
  EXPECT_DOUBLE_EQ(server.gaps.max(), 0.030);
  server.replica().verify();
}

TEST(Pipeline, APreemptedRequestMayFinishWithItsTokenUnderWay) {
  EngineRules rules = pipelined(2, 8, 7);
  rules.block_size = 4;
  Server server(rules, std::make_shared<FixedLatency>(20));
  server.send({.parts = {{1, 8}}, .output = 6}, at_ms(0));
  server.send({.parts = {{2, 8}}, .output = 4}, at_ms(0));
  server.run();
  EXPECT_EQ(server.fates[1].preemptions, 1);
  EXPECT_EQ(server.fates[1].finish, at_ms(110));
  server.replica().verify();
}

// With three stages there is a pass between a preemption and the end of the victim's batch.
TEST(Pipeline, APreemptedRequestWaitsForTheEndOfItsBatch) {
  EngineRules rules = pipelined(3, 12, 6);
  rules.block_size = 4;
  SchedulerBench bench(rules);
  BatchScheduler& s = bench.scheduler;
  std::vector<EngineOutput>& out = bench.out;
  const std::uint32_t first = bench.send({.parts = {{1, 12}}, .output = 9});
  const std::uint32_t second = bench.send({.parts = {{2, 8}}, .output = 9});
  StepPlan a, b, c, d;
  s.schedule(a, nullptr, at_ms(0), out);  // The first prompt: three blocks.
  s.schedule(b, &a, at_ms(0), out);       // The second: the other two.
  EXPECT_EQ(b.shape.prefill_tokens, 8);
  s.process(a, at_ms(1), out);
  s.schedule(c, &b, at_ms(1), out);  // The first's token takes a block of the second.
  EXPECT_EQ(c.shape.decode_requests, 1);
  EXPECT_EQ(s.waiting(), 1);
  s.abort(first, nullptr);  // Everything is free, but the second is still in its batch.
  s.schedule(d, &b, at_ms(1), out);
  EXPECT_TRUE(d.empty());
  EXPECT_EQ(s.waiting(), 1);
  s.process(b, at_ms(2), out);
  EXPECT_EQ(out.back().kind, EngineOutputKind::kFirstToken);
  EXPECT_EQ(out.back().handle, second);
  s.schedule(d, &c, at_ms(2), out);  // Its prompt and that token, of which it finds a block.
  EXPECT_EQ(d.shape.prefill_context, 9);
  EXPECT_EQ(d.shape.prefill_tokens, 5);
  EXPECT_EQ(s.waiting(), 0);
  s.verify();
}

TEST(Pipeline, AnAbortLetsTheOtherBatchesBe) {
  Server server(pipelined(2, 100), std::make_shared<FixedLatency>(20));
  server.send({.parts = {{1, 100}}, .output = 4}, at_ms(0));
  const std::uint32_t second = server.send({.parts = {{2, 100}}, .output = 4}, at_ms(0));
  server.abort(second, at_ms(45));
  server.run();
  EXPECT_EQ(server.fates[0].finish, at_ms(80));
  EXPECT_FALSE(server.fates[second].finished);
  EXPECT_EQ(server.fates[second].first, at_ms(50)) << "carried out when the batch ends";
  EXPECT_EQ(server.scheduler().kv().used_blocks(), 0);
  EXPECT_TRUE(server.replica().idle());
  server.replica().verify();
}

TEST(Pipeline, SleepsAndWakes) {
  Server server(pipelined(4, 100), std::make_shared<FixedLatency>(20));
  server.send({.parts = {{1, 10}}, .output = 2}, at_ms(0));
  server.send({.parts = {{2, 10}}, .output = 2}, at_ms(1000));
  server.run();
  EXPECT_EQ(server.fates[0].finish, at_ms(40));
  EXPECT_EQ(server.fates[1].first, at_ms(1020));
  EXPECT_EQ(server.fates[1].finish, at_ms(1040));
  EXPECT_EQ(server.replica().busy(), Duration::milliseconds(80));
}

TEST(Pipeline, NoSequenceSamplesInTwoBatches) {
  Pipeline pipeline(2);
  const auto with = [](std::uint32_t slot) {
    StepPlan plan;
    plan.shape.decode_requests = 1;
    plan.verified.push_back({{slot, 1}, 0});
    return plan;
  };
  StepPlan first = with(1), second = with(2), again = with(2), out;
  pipeline.add(first, 0, 20, 0);
  pipeline.add(second, 0, 20, 0);
  EXPECT_FALSE(pipeline.has_room());
  pipeline.take_oldest(out);
  EXPECT_EQ(pipeline.end(), 20);
  EXPECT_NO_THROW(pipeline.verify(out));
  EXPECT_THROW(pipeline.verify(again), InternalError);
}

}  // namespace
}  // namespace routesim::sim::testing
