// The scheduler by hand: small schedules a reader can redo with pencil and paper. The numbers in
// the names refer to the list of engine test vectors in sim/README.md.
#include "tests/sim/scheduler_bench.h"

namespace routesim::sim::testing {
namespace {

using Bench = SchedulerBench;

/// Every vector holds for the fast path and for the reference.
class EngineVectors : public ::testing::TestWithParam<bool> {
 protected:
  bool reference() const { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(, EngineVectors, ::testing::Bool(),
                         [](const auto& p) { return p.param ? "reference" : "fast"; });

TEST_P(EngineVectors, V1FullyCachedPromptRecomputesItsLastBlock) {
  Bench b(plain_rules(), reference());
  b.send({.parts = {{1, 64}}});
  EXPECT_EQ(b.step().prefill_tokens, 64);
  const auto again = b.send({.parts = {{1, 64}}});
  EXPECT_EQ(b.step().prefill_tokens, 16);
  EXPECT_EQ(b.cached_of(again), 48);

  b.send({.parts = {{2, 65}}});
  EXPECT_EQ(b.step().prefill_tokens, 65);
  const auto longer = b.send({.parts = {{2, 65}}});
  EXPECT_EQ(b.step().prefill_tokens, 1);
  EXPECT_EQ(b.cached_of(longer), 64);
}

TEST_P(EngineVectors, V2SecondOfTwoTwinsHitsBlocksOfTheSamePass) {
  Bench b(plain_rules(), reference());
  const auto first = b.send({.parts = {{1, 1000}}});
  const auto second = b.send({.parts = {{1, 1000}}});
  const models::BatchShape s = b.step();
  EXPECT_EQ(s.prefill_requests, 2);
  EXPECT_EQ(s.prefill_tokens, 1000 + 8);
  EXPECT_EQ(b.cached_of(first), 0);
  EXPECT_EQ(b.cached_of(second), 992);
}

TEST_P(EngineVectors, V3ChunksThatAreNotScheduledDoNotHit) {
  EngineRules rules = plain_rules();
  rules.max_num_batched_tokens = 600;
  Bench b(rules, reference());
  b.send({.parts = {{1, 1000}}});
  const auto second = b.send({.parts = {{1, 1000}}});
  models::BatchShape s = b.step();
  EXPECT_EQ(s.prefill_requests, 1);
  EXPECT_EQ(s.prefill_tokens, 600);
  s = b.step();
  EXPECT_EQ(s.prefill_requests, 2);
  EXPECT_EQ(s.prefill_tokens, 400 + 8);
  EXPECT_EQ(b.cached_of(second), 992);
}

TEST_P(EngineVectors, V4PromptLargerThanThePoolIsReported) {
  EngineRules rules = plain_rules(11);
  rules.max_num_batched_tokens = 32;
  for (const bool isl : {true, false}) {
    rules.reserve_full_isl = isl;
    Bench b(rules, reference());
    b.send({.parts = {{1, 170}}});
    ASSERT_EQ(b.out.size(), 1U);
    EXPECT_EQ(b.out[0].kind, EngineOutputKind::kUnservable);
    EXPECT_EQ(b.out[0].value, 0) << "the pool is too small, the prompt is not too long";
    EXPECT_TRUE(b.step().tokens() == 0) << "and the queue behind it is free";
  }
}

TEST_P(EngineVectors, V4WithoutReserveFullIslAPromptIsAdmittedChunkByChunk) {
  // 10 usable blocks. A holds 4 and decodes; B needs 8 for its whole prompt but 2 for its first
  // chunk.
  EngineRules rules = plain_rules(11);
  rules.max_num_batched_tokens = 32;
  for (const bool isl : {true, false}) {
    rules.reserve_full_isl = isl;
    Bench b(rules, reference());
    b.send({.parts = {{1, 60}}, .output = 40});
    b.step();
    b.step();
    const auto big = b.send({.parts = {{2, 120}}, .output = 2});
    const models::BatchShape s = b.step();
    EXPECT_EQ(s.prefill_tokens, isl ? 0 : 31) << "31: the decode takes one of the budget";
    if (isl) continue;
    // 31 + 31 + 31 tokens need 6 blocks, which are there; 120 need 8, so B preempts itself.
    while (b.scheduler.counters().preemptions == 0 && b.scheduler.running() > 0) b.step();
    EXPECT_EQ(b.scheduler.counters().preemptions, 1);
    EXPECT_EQ(b.scheduler.waiting(), 1);
    while (!b.scheduler.idle()) b.step();
    EXPECT_GE(b.preemptions_of(big), 1);
  }
}

TEST(KvCacheVectors, V5ReleaseOrderDecidesWhatIsRecycledFirst) {
  for (const FreeQueue mode : {FreeQueue::kAppendAll, FreeQueue::kUnhashedFirst}) {
    KvCache kv(11, 16, mode);
    BlockHolding holding;
    kv.allocate(4, holding);
    kv.register_keys(holding, std::vector<BlockKey>{101, 102, 103});
    kv.release(holding);
    // Blank blocks are 0: the six never used, and block 4 before or behind them.
    EXPECT_EQ(kv.free_queue(), (std::vector<BlockKey>{0, 0, 0, 0, 0, 0, 0, 103, 102, 101}));
    kv.allocate(8, holding);
    EXPECT_EQ(kv.free_queue(), (std::vector<BlockKey>{102, 101}));
    kv.release(holding);
    // The eviction makes a blank of 103. Only in the newer queue does it go before what is cached.
    const std::vector<BlockKey> blank(8, 0);
    std::vector<BlockKey> expected{102, 101};
    expected.insert(mode == FreeQueue::kAppendAll ? expected.end() : expected.begin(),
                    blank.begin(), blank.end());
    EXPECT_EQ(kv.free_queue(), expected);
    kv.verify();
  }
}

TEST_P(EngineVectors, V6LastAdmittedIsPreemptedAndNobodyIsAdmitted) {
  // Blocks of 4, 6 usable: A, B and C hold two each (7 prompt tokens and the first answer token).
  EngineRules rules = plain_rules(7);
  rules.block_size = 4;
  Bench b(rules, reference());
  for (std::uint64_t c = 1; c <= 3; ++c) b.send({.parts = {{c, 7}}, .output = 6});
  EXPECT_EQ(b.step().prefill_tokens, 21);
  EXPECT_EQ(b.step().decode_requests, 3);
  b.send({.parts = {{9, 1}}});
  // Each needs a third block for its ninth token: C falls to A, its two blocks serve A and B.
  const models::BatchShape s = b.step();
  EXPECT_EQ(s.decode_requests, 2);
  EXPECT_EQ(s.prefill_requests, 0) << "nobody is admitted in a pass with a preemption";
  EXPECT_EQ(b.scheduler.running(), 2);
  EXPECT_EQ(b.scheduler.waiting(), 2);
  EXPECT_EQ(b.scheduler.counters().preemptions, 1);
  while (!b.scheduler.idle()) b.step();
  EXPECT_EQ(b.preemptions_of(2), 1);
  EXPECT_EQ(b.preemptions_of(0), 0);
}

TEST_P(EngineVectors, V7LastVictimStandsInFront) {
  // One block per token, one token each per pass.
  EngineRules rules = plain_rules(7);
  rules.block_size = 1;
  rules.max_num_batched_tokens = 3;
  rules.long_prefill_token_threshold = 1;
  Bench c(rules, reference());
  c.send({.parts = {{1, 6}}, .output = 1});
  c.send({.parts = {{2, 1}}, .output = 6});
  c.send({.parts = {{3, 1}}, .output = 6});
  // After two passes all 6 blocks are taken. In the third, A's token costs
  // C (which held two), B's token is paid from C's second block; in the fourth, A takes B's.
  EXPECT_EQ(c.step().tokens(), 3);
  EXPECT_EQ(c.step().tokens(), 3);
  EXPECT_EQ(c.step().tokens(), 2);
  EXPECT_EQ(c.scheduler.counters().preemptions, 1);
  const models::BatchShape s = c.step();
  EXPECT_EQ(s.tokens(), 1);
  EXPECT_EQ(c.scheduler.counters().preemptions, 2);
  EXPECT_EQ(c.scheduler.running(), 1);
  while (!c.scheduler.idle()) c.step();
  // waiting = [B, C]: B was the last victim, so it is admitted and ends before C.
  EXPECT_EQ(c.finish_order(), (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST_P(EngineVectors, V9AsyncSchedulingAddsAFullStepBeforePrefill) {
  for (const bool async : {false, true}) {
    EngineRules rules = plain_rules();
    rules.async_scheduling = async;
    Server server(rules, std::make_shared<FixedLatency>(20), reference());
    server.send({.parts = {{1, 8}}, .output = 100}, at_ms(0));
    const auto late = server.send({.parts = {{2, 8}}}, at_ms(101));
    server.run();
    // 1 ms after the start of the step that ends at 120: the prefill starts 19 ms later, or 39 ms
    // when the next step is already scheduled.
    EXPECT_EQ(server.fates[late].first, at_ms(async ? 160 : 140));
  }
}

TEST_P(EngineVectors, V9AnIdleEngineStartsAtOnce) {
  EngineRules rules = plain_rules();
  rules.async_scheduling = true;
  Server server(rules, std::make_shared<FixedLatency>(20), reference());
  const auto only = server.send({.parts = {{1, 8}}, .output = 3}, at_ms(7));
  server.run();
  EXPECT_EQ(server.fates[only].first, at_ms(27));
  EXPECT_EQ(server.fates[only].finish, at_ms(67)) << "max_tokens wastes no slot";
  EXPECT_EQ(server.replica().steps(), 3);
}

TEST_P(EngineVectors, AnAnswerThatEndsByItselfWastesOneSlotUnderAsyncScheduling) {
  EngineRules rules = plain_rules();
  rules.async_scheduling = true;
  Server server(rules, std::make_shared<FixedLatency>(20), reference());
  const auto only = server.send({.parts = {{1, 8}}, .output = 3, .max_tokens = 9}, at_ms(0));
  server.run();
  EXPECT_EQ(server.fates[only].finish, at_ms(60));
  EXPECT_EQ(server.replica().steps(), 4) << "one more decode was already scheduled";
}

TEST_P(EngineVectors, V10RemoteLoadPullsOnlyWhatIsMissing) {
  Bench b(plain_rules(), reference());
  b.send({.parts = {{1, 256}}, .output = 1});
  b.step();
  RequestShelf shelf(16);
  for (int i = 0; i < 50; ++i) shelf.add({.parts = {{7, 1}}});
  EngineRequest leg = shelf.add({.parts = {{1, 256}, {2, 768}}, .output = 2});
  leg.remote_tokens = 1024;
  b.scheduler.enqueue(leg, SimTime::zero(), b.out);
  EXPECT_EQ(b.step().tokens(), 0);
  ASSERT_EQ(b.out.back().kind, EngineOutputKind::kTransferNeeded);
  EXPECT_EQ(b.out.back().value, 48);
  EXPECT_EQ(b.scheduler.running(), 0);
  EXPECT_EQ(b.scheduler.waiting(), 1) << "waiting for remote KV counts as waiting";
  EXPECT_EQ(b.scheduler.kv().used_blocks(), 64);
  b.scheduler.transfer_done(b.scheduler.find_pulling(leg.handle));
  const models::BatchShape s = b.step();
  EXPECT_EQ(s.prefill_tokens, 1) << "one token of budget samples the first token";
  EXPECT_EQ(b.step().decode_requests, 1);
  EXPECT_TRUE(b.scheduler.idle());
}

TEST_P(EngineVectors, V10OlderReleasesRoundTheTransferDownToFullBlocks) {
  EngineRules rules = plain_rules();
  rules.remote_partial_block = false;
  Bench b(rules, reference());
  RequestShelf shelf(16);
  EngineRequest leg = shelf.add({.parts = {{1, 1030}}, .output = 2});
  leg.remote_tokens = 1030;
  b.scheduler.enqueue(leg, SimTime::zero(), b.out);
  b.step();
  ASSERT_EQ(b.out.back().kind, EngineOutputKind::kTransferNeeded);
  EXPECT_EQ(b.out.back().value, 64);
  b.scheduler.transfer_done(b.scheduler.find_pulling(leg.handle));
  EXPECT_EQ(b.step().prefill_tokens, 6);
}

TEST_P(EngineVectors, BudgetIsSharedInRunningOrder) {
  // A long prompt admitted first eats the budget before the decode behind it.
  EngineRules rules = plain_rules();
  rules.max_num_batched_tokens = 16;
  Bench b(rules, reference());
  b.send({.parts = {{1, 40}}});
  b.send({.parts = {{2, 4}}, .output = 3});
  EXPECT_EQ(b.step().prefill_tokens, 16);
  EXPECT_EQ(b.step().prefill_tokens, 16);
  models::BatchShape s = b.step();  // 8 for the first, 4 for the second, which samples
  EXPECT_EQ(s.prefill_tokens, 12);
  EXPECT_EQ(s.prefill_requests, 2);
  b.send({.parts = {{3, 100}}});
  s = b.step();
  EXPECT_EQ(s.decode_requests, 1) << "the decode stands before the newcomer";
  EXPECT_EQ(s.prefill_tokens, 15);
}

TEST_P(EngineVectors, LongPrefillThresholdCapsAChunk) {
  EngineRules rules = plain_rules();
  rules.long_prefill_token_threshold = 10;
  Bench b(rules, reference());
  b.send({.parts = {{1, 25}}});
  b.send({.parts = {{2, 4}}});
  EXPECT_EQ(b.step().prefill_tokens, 14);
  EXPECT_EQ(b.step().prefill_tokens, 10);
  EXPECT_EQ(b.step().prefill_tokens, 5);
}

TEST_P(EngineVectors, WithoutChunkedPrefillAPromptWaitsForAWholeBudget) {
  EngineRules rules = plain_rules();
  rules.enable_chunked_prefill = false;
  rules.max_num_batched_tokens = 100;
  rules.max_model_len = 100;
  Bench b(rules, reference());
  b.send({.parts = {{1, 60}}});
  b.send({.parts = {{2, 60}}});
  b.send({.parts = {{3, 10}}});
  EXPECT_EQ(b.step().prefill_tokens, 60) << "the second does not fit and blocks the third";
  EXPECT_EQ(b.step().prefill_tokens, 70);
}

TEST_P(EngineVectors, WithoutChunkedPrefillAPromptBeyondTheBudgetIsReported) {
  EngineRules rules = plain_rules();
  rules.enable_chunked_prefill = false;
  rules.max_num_batched_tokens = 50;
  Bench b(rules, reference());
  b.send({.parts = {{1, 60}}});
  ASSERT_EQ(b.out.size(), 1U);
  EXPECT_EQ(b.out[0].kind, EngineOutputKind::kUnservable);
  EXPECT_TRUE(b.scheduler.idle());
}

TEST_P(EngineVectors, MaxNumSeqsCapsTheRunningList) {
  EngineRules rules = plain_rules();
  rules.max_num_seqs = 2;
  Bench b(rules, reference());
  for (std::uint64_t c = 1; c <= 3; ++c) b.send({.parts = {{c, 8}}, .output = c == 1 ? 2 : 5});
  EXPECT_EQ(b.step().prefill_requests, 2);
  EXPECT_EQ(b.scheduler.waiting(), 1);
  EXPECT_EQ(b.step().decode_requests, 2);  // ends the first
  EXPECT_EQ(b.step().prefill_requests, 1);
}

TEST_P(EngineVectors, LongerThanTheModelIsRefused) {
  EngineRules rules = plain_rules();
  rules.max_model_len = 100;
  Bench b(rules, reference());
  b.send({.parts = {{1, 90}}, .output = 11});
  ASSERT_EQ(b.out.size(), 1U);
  EXPECT_EQ(b.out[0].kind, EngineOutputKind::kUnservable);
  EXPECT_EQ(b.out[0].value, 1);
  b.send({.parts = {{1, 90}}, .output = 10});
  EXPECT_EQ(b.out.size(), 1U);
}

TEST_P(EngineVectors, WatermarkKeepsBlocksFreeWhileOthersRun) {
  // 10 usable blocks, 2 kept. Alone, a prompt may use 9; beside a running one only 8 - 1.
  EngineRules rules = plain_rules(11);
  rules.watermark_blocks = 2;
  Bench b(rules, reference());
  b.send({.parts = {{1, 9 * 16}}});
  EXPECT_EQ(b.step().prefill_tokens, 144) << "with nothing running the watermark does not count";
  b.send({.parts = {{2, 10}}, .output = 5});
  b.step();
  b.send({.parts = {{3, 8 * 16}}});
  EXPECT_EQ(b.step().prefill_tokens, 0) << "8 + 2 > 9 free";
  b.scheduler.abort(2, nullptr);
  b.send({.parts = {{4, 7 * 16}}});
  EXPECT_EQ(b.step().prefill_tokens, 112);
}

TEST_P(EngineVectors, PriorityPicksTheLeastImportantVictimAndRefundsIt) {
  // Blocks of 4, 6 usable; three sequences of two blocks each. The first is the least important and
  // has been given its token already when the third needs a block.
  EngineRules rules = plain_rules(7);
  rules.block_size = 4;
  rules.scheduling_policy = SchedulingPolicy::kPriority;
  Bench b(rules, reference());
  b.send({.parts = {{1, 6}}, .output = 8, .priority = 9});
  b.step();
  b.send({.parts = {{2, 8}}, .output = 8, .priority = 1});
  b.send({.parts = {{3, 7}}, .output = 8, .priority = 5});
  EXPECT_EQ(b.step().tokens(), 1 + 8 + 7);
  // First: its eighth token fits. Second: its ninth needs a block, there is none; the first is the
  // victim although it was already scheduled.
  const models::BatchShape s = b.step();
  EXPECT_EQ(s.decode_requests, 2);
  EXPECT_EQ(b.scheduler.counters().preemptions, 1);
  while (!b.scheduler.idle()) b.step();
  EXPECT_GE(b.preemptions_of(0), 1);
  EXPECT_EQ(b.preemptions_of(1), 0);
}

TEST_P(EngineVectors, PriorityOrdersTheQueue) {
  EngineRules rules = plain_rules();
  rules.max_num_seqs = 1;
  rules.scheduling_policy = SchedulingPolicy::kPriority;
  Bench b(rules, reference());
  for (const std::int32_t priority : {5, 3, 9, 3})
    b.send({.parts = {{static_cast<std::uint64_t>(priority), 8}}, .priority = priority});
  while (!b.scheduler.idle()) b.step();
  EXPECT_EQ(b.finish_order(), (std::vector<std::uint32_t>{1, 3, 0, 2}));
}

TEST_P(EngineVectors, PreemptedRequestHitsItsOwnBlocksAgain) {
  EngineRules rules = plain_rules(7);
  rules.block_size = 4;
  Bench b(rules, reference());
  b.send({.parts = {{1, 8}}, .output = 6});
  b.send({.parts = {{2, 8}}, .output = 9});
  EXPECT_EQ(b.step().prefill_tokens, 16);
  // Both take a third block (6 of 6), then run to the end of it; at the 13th token the first takes
  // a block of the second.
  for (int i = 0; i < 4; ++i) EXPECT_EQ(b.step().decode_requests, 2);
  EXPECT_EQ(b.step().decode_requests, 1);
  EXPECT_EQ(b.scheduler.counters().preemptions, 1);
  EXPECT_EQ(b.finish_order(), (std::vector<std::uint32_t>{0}));
  // 13 tokens known, 12 of them computed, and one of three blocks was recycled - the last, because
  // tails go first: 8 are found, 5 computed again.
  EXPECT_EQ(b.step().prefill_tokens, 5);
}

TEST_P(EngineVectors, NothingRunningTheNewestReleaseLooksPastAHeadThatCannotBeAllocated) {
  // A held transfer takes 6 of 10 blocks; the head needs 8, the one behind it 1.
  for (const bool skip : {false, true}) {
    EngineRules rules = plain_rules(11);
    rules.reserve_full_isl = true;
    rules.skip_unallocatable_head = skip;
    Bench b(rules, reference());
    RequestShelf shelf(16);
    for (int i = 0; i < 9; ++i) shelf.add({.parts = {{7, 1}}});
    EngineRequest held = shelf.add({.parts = {{1, 96}}});
    held.hold_blocks = true;
    b.scheduler.enqueue(held, SimTime::zero(), b.out);
    b.step();
    EXPECT_EQ(b.scheduler.kv().used_blocks(), 6);
    b.send({.parts = {{2, 128}}});
    b.send({.parts = {{3, 16}}});
    EXPECT_EQ(b.step().prefill_tokens, skip ? 16 : 0);
    b.scheduler.release_held(b.scheduler.find_held(held.handle));
    EXPECT_EQ(b.step().prefill_tokens, skip ? 128 : 144);
  }
}

TEST_P(EngineVectors, AFinishedPrefillLegMakesRoomInTheRunningList) {
  EngineRules rules = plain_rules();
  rules.max_num_seqs = 1;
  Bench b(rules, reference());
  RequestShelf shelf(16);
  for (std::uint64_t i = 0; i < 2; ++i) {
    EngineRequest leg = shelf.add({.parts = {{i, 32}}});
    leg.hold_blocks = true;
    b.scheduler.enqueue(leg, SimTime::zero(), b.out);
  }
  EXPECT_EQ(b.step().prefill_tokens, 32);
  EXPECT_EQ(b.step().prefill_tokens, 32) << "held blocks do not occupy a place";
  EXPECT_EQ(b.scheduler.kv().used_blocks(), 4);
}

}  // namespace
}  // namespace routesim::sim::testing
