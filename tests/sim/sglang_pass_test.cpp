// SGLang's scheduler: schedules a reader can redo with pencil and paper, and the engine against the
// obvious one.
#include "sim/engine/sglang_pass.h"

#include "base/rng.h"
#include "tests/sim/obvious_sglang.h"
#include "tests/sim/scheduler_bench.h"

namespace routesim::sim::testing {
namespace {

/// Without overlap, pages of one token, chunks and batches without a limit.
EngineRules sglang_rules(std::int64_t tokens = 100'000) {
  EngineRules r;
  r.sglang = SglangRules{.policy = SglangPolicy::kFcfs,
                         .chunk_tokens = 0,
                         .max_prefill_tokens = 16384,
                         .largest_graph = 256,
                         .first_ratio = 0.7,
                         .least_ratio = 0.098};
  r.block_size = 1;
  r.num_gpu_blocks = tokens + 1;
  r.max_num_seqs = 256;
  r.reserve_full_isl = false;
  r.async_scheduling = false;
  r.free_queue = FreeQueue::kUnhashedFirst;
  return r;
}

/// A scheduler stepped by hand, without overlap.
class Steps : public SchedulerBench {
 public:
  using SchedulerBench::SchedulerBench;

  /// Prompt tokens of the next step; -1 where it decodes.
  std::int64_t prompt_tokens() {
    const models::BatchShape s = step();
    EXPECT_TRUE(s.prefill_tokens == 0 || s.decode_requests == 0) << "prompts and decodes never mix";
    return s.prefill_tokens > 0 ? s.prefill_tokens : -1;
  }
};

class SglangVectors : public ::testing::TestWithParam<bool> {
 protected:
  bool reference() const { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(, SglangVectors, ::testing::Bool(),
                         [](const auto& p) { return p.param ? "reference" : "fast"; });

TEST_P(SglangVectors, PromptsGoFirstAndAlone) {
  Steps b(sglang_rules(), reference());
  const auto first = b.send({.parts = {{1, 10}}, .output = 4});
  EXPECT_EQ(b.prompt_tokens(), 10);
  EXPECT_EQ(b.prompt_tokens(), -1);
  const auto second = b.send({.parts = {{2, 20}}, .output = 2});
  EXPECT_EQ(b.prompt_tokens(), 20) << "the first one waits, with two of its four tokens";
  const models::BatchShape both = b.step();
  EXPECT_EQ(both.decode_requests, 2);
  EXPECT_EQ(both.decode_context, 12 + 21);
  EXPECT_NE(b.finished(second), nullptr);
  EXPECT_EQ(b.finished(first), nullptr);
  EXPECT_EQ(b.step().decode_requests, 1);
  EXPECT_NE(b.finished(first), nullptr);
  EXPECT_EQ(b.step().tokens(), 0);
}

TEST_P(SglangVectors, ChunksFillABatch) {
  EngineRules rules = sglang_rules();
  rules.sglang->chunk_tokens = 64;
  Steps b(rules, reference());
  b.send({.parts = {{1, 100}}, .output = 5});
  b.send({.parts = {{2, 50}}, .output = 5});
  EXPECT_EQ(b.step().prefill_requests, 1) << "64 of the first prompt";
  const models::BatchShape second = b.step();
  EXPECT_EQ(second.prefill_requests, 2);
  EXPECT_EQ(second.prefill_tokens, 36 + 28);
  EXPECT_EQ(second.prefill_context, 100 + 28);
  EXPECT_EQ(b.prompt_tokens(), 22) << "no decode of the first one comes between";
  EXPECT_EQ(b.step().decode_requests, 2);
}

TEST_P(SglangVectors, BudgetsCountWholePages) {
  EngineRules rules = sglang_rules();
  rules.sglang->chunk_tokens = 64;
  rules.block_size = 16;
  Steps b(rules, reference());
  b.send({.parts = {{1, 100}}});
  b.send({.parts = {{2, 50}}});
  EXPECT_EQ(b.prompt_tokens(), 64);
  EXPECT_EQ(b.prompt_tokens(), 36 + 16) << "36 tokens take three pages of four";
  EXPECT_EQ(b.prompt_tokens(), 34);
}

TEST_P(SglangVectors, NoPromptIsAddedToAFullBatch) {
  EngineRules rules = sglang_rules();
  rules.sglang->max_prefill_tokens = 100;
  Steps b(rules, reference());
  b.send({.parts = {{1, 300}}});
  b.send({.parts = {{2, 60}}});
  b.send({.parts = {{3, 40}}});
  EXPECT_EQ(b.prompt_tokens(), 300) << "the first one may be of any length";
  EXPECT_EQ(b.prompt_tokens(), 60) << "40 are not less than the 40 that are left";
  EXPECT_EQ(b.prompt_tokens(), 40);
}

// 1,000 tokens. The first request has 300 and may make 399 more, of which 0.7 are kept free.
TEST_P(SglangVectors, AdmissionKeepsAShareOfTheAnswersFree) {
  const auto admitted = [&](std::int64_t output) {
    Steps b(sglang_rules(1000), reference());
    b.send({.parts = {{1, 300}}, .output = 400});
    EXPECT_EQ(b.prompt_tokens(), 300);
    b.send({.parts = {{2, 300}}, .output = output});
    return b.prompt_tokens() == 300;
  };
  EXPECT_TRUE(admitted(120)) << "420 < 700 - 279.3";
  EXPECT_FALSE(admitted(121));
}

// After 60 of 600 steps the share is 0.7 - 0.602 / 10 = 0.6398: of 339 tokens, 216.9.
TEST_P(SglangVectors, TheShareFallsWithEveryDecode) {
  const auto admitted = [&](std::int64_t prompt) {
    Steps b(sglang_rules(1000), reference());
    b.send({.parts = {{1, 300}}, .output = 400});
    EXPECT_EQ(b.prompt_tokens(), 300);
    for (int i = 0; i < 60; ++i) EXPECT_EQ(b.prompt_tokens(), -1);
    b.send({.parts = {{2, prompt}}, .output = 100});
    return b.prompt_tokens() == prompt;
  };
  EXPECT_TRUE(admitted(323)) << "423 < 640 - 216.9";
  EXPECT_FALSE(admitted(324));
}

// A request that found no room is not looked at again before somebody leaves: after 60 decodes 350
// would be less than 840 - 0.6398 * 739.
TEST_P(SglangVectors, AFullBatchStaysFull) {
  Steps b(sglang_rules(1000), reference());
  b.send({.parts = {{1, 100}}, .output = 800});
  EXPECT_EQ(b.prompt_tokens(), 100);
  b.send({.parts = {{2, 200}}, .output = 150});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(b.prompt_tokens(), -1) << "350 > 900 - 0.7 * 799";
}

TEST_P(SglangVectors, TheBatchAfterAnEndNoticesIt) {
  EngineRules rules = sglang_rules();
  rules.max_num_seqs = 2;
  Steps b(rules, reference());
  b.send({.parts = {{1, 10}}, .output = 3});
  b.send({.parts = {{2, 10}}, .output = 9});
  b.send({.parts = {{3, 10}}, .output = 9});
  EXPECT_EQ(b.prompt_tokens(), 20);
  EXPECT_EQ(b.step().decode_requests, 2);
  EXPECT_EQ(b.step().decode_requests, 2) << "the first one ends";
  EXPECT_EQ(b.step().decode_requests, 1) << "its place is still taken";
  EXPECT_EQ(b.prompt_tokens(), 10);
}

TEST_P(SglangVectors, AnEmptyEngineGoesRoundAtOnce) {
  EngineRules rules = sglang_rules();
  rules.max_num_seqs = 1;
  Steps b(rules, reference());
  b.send({.parts = {{1, 10}}, .output = 3});
  b.send({.parts = {{2, 20}}});
  EXPECT_EQ(b.prompt_tokens(), 10);
  EXPECT_EQ(b.prompt_tokens(), -1);
  EXPECT_EQ(b.prompt_tokens(), -1);
  EXPECT_EQ(b.prompt_tokens(), 20);
}

// 101 tokens: two prompts of 40, and room for ten tokens each.
TEST_P(SglangVectors, TheLastAdmittedOfEqualsIsRetracted) {
  EngineRules rules = sglang_rules(101);
  rules.sglang->first_ratio = rules.sglang->least_ratio = 0;
  Steps b(rules, reference());
  const auto first = b.send({.parts = {{1, 40}}, .output = 20});
  EXPECT_EQ(b.prompt_tokens(), 40);
  const auto second = b.send({.parts = {{2, 40}}, .output = 20});
  EXPECT_EQ(b.prompt_tokens(), 40);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(b.step().decode_requests, 2);
  EXPECT_EQ(b.scheduler.kv().free_blocks(), 1);
  EXPECT_EQ(b.step().decode_requests, 1);
  EXPECT_EQ(b.scheduler.waiting(), 1);
  EXPECT_EQ(b.scheduler.kv().free_blocks(), 101 - 51);
  // Its prompt is cached: 11 tokens and 9 of answer, not less than 50 - 1.0 * 8 - 40.
  for (int i = 0; i < 8; ++i) EXPECT_EQ(b.step().decode_requests, 1);
  EXPECT_EQ(b.finished(first)->value, 0);
  EXPECT_EQ(b.prompt_tokens(), 11);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(b.step().decode_requests, 1);
  EXPECT_EQ(b.finished(second)->value, 1);
  EXPECT_EQ(b.finished(second)->cached_tokens, 0) << "at its first admission";
}

TEST_P(SglangVectors, ThoseWithTheFewestTokensAreRetractedFirst) {
  EngineRules rules = sglang_rules(101);
  rules.sglang->first_ratio = rules.sglang->least_ratio = 0;
  Steps b(rules, reference());
  b.send({.parts = {{1, 30}}, .output = 30});
  EXPECT_EQ(b.prompt_tokens(), 30);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(b.step().decode_requests, 1);
  const auto younger = b.send({.parts = {{2, 30}}, .output = 30});
  EXPECT_EQ(b.prompt_tokens(), 30);
  for (int i = 0; i < 18; ++i) EXPECT_EQ(b.step().decode_requests, 2);
  EXPECT_EQ(b.scheduler.kv().free_blocks(), 101 - 53 - 48);
  EXPECT_EQ(b.step().decode_requests, 1);
  for (int i = 0; i < 60 && b.finished(younger) == nullptr; ++i) b.step();
  EXPECT_EQ(b.finished(younger)->value, 1);
}

// As many tokens of answer each, and 45 + 11 and 35 + 11 in the cache.
TEST_P(SglangVectors, OfEqualsTheLongestPromptIsRetracted) {
  EngineRules rules = sglang_rules(101);
  rules.sglang->first_ratio = rules.sglang->least_ratio = 0;
  Steps b(rules, reference());
  b.send({.parts = {{1, 45}}, .output = 20});
  EXPECT_EQ(b.prompt_tokens(), 45);
  b.send({.parts = {{2, 35}}, .output = 20});
  EXPECT_EQ(b.prompt_tokens(), 35);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(b.step().decode_requests, 2);
  EXPECT_EQ(b.step().decode_context, 35 + 11);
}

TEST_P(SglangVectors, LpmPutsCachedPrefixesFirst) {
  for (const SglangPolicy policy : {SglangPolicy::kFcfs, SglangPolicy::kLpm}) {
    EngineRules rules = sglang_rules();
    rules.sglang->policy = policy;
    rules.max_num_seqs = 1;
    Steps b(rules, reference());
    b.send({.parts = {{1, 64}}});
    EXPECT_EQ(b.prompt_tokens(), 64);
    b.send({.parts = {{2, 50}}});
    b.send({.parts = {{1, 64}, {3, 10}}});
    EXPECT_EQ(b.prompt_tokens(), policy == SglangPolicy::kLpm ? 10 : 50);
  }
}

// Two that share 40 tokens which nobody has: one goes first, and the other finds them.
TEST_P(SglangVectors, LpmLetsOneOfASharedPrefixGoFirst) {
  EngineRules rules = sglang_rules();
  rules.sglang->policy = SglangPolicy::kLpm;
  rules.max_num_seqs = 2;
  Steps b(rules, reference());
  b.send({.parts = {{1, 40}, {2, 1}}});
  b.send({.parts = {{1, 40}, {3, 2}}});
  b.send({.parts = {{4, 60}}});
  EXPECT_EQ(b.prompt_tokens(), 41 + 60);
  EXPECT_EQ(b.prompt_tokens(), 2);
}

TEST_P(SglangVectors, PromptsCanBeFoundWhenTheirStepHasEnded) {
  Steps b(sglang_rules(), reference());
  b.send({.parts = {{1, 64}}});
  b.send({.parts = {{1, 64}}});
  EXPECT_EQ(b.prompt_tokens(), 128) << "not in the same batch";
  EXPECT_EQ(b.scheduler.kv().findable_blocks(), 64) << "of two copies one is freed";
  b.send({.parts = {{1, 64}}});
  EXPECT_EQ(b.prompt_tokens(), 1) << "one token must be computed";
}

TEST_P(SglangVectors, RequestsHaveRoomForOneTokenMore) {
  Steps b(sglang_rules(100), reference());
  const auto fits = b.send({.parts = {{1, 60}}, .output = 38});
  b.send({.parts = {{1, 60}}, .output = 39});
  EXPECT_EQ(b.out.size(), 1U) << "60 + 39 + 1 > 99";
  EXPECT_EQ(b.out.front().kind, EngineOutputKind::kUnservable);
  for (int i = 0; i < 38; ++i) b.step();
  EXPECT_NE(b.finished(fits), nullptr);
}

// With overlap a batch is made while the one before runs: a request that has ended is in one more.
TEST_P(SglangVectors, OverlapRunsOneBatchInVain) {
  for (const bool overlap : {false, true}) {
    EngineRules rules = sglang_rules();
    rules.async_scheduling = overlap;
    Server s(rules, std::make_shared<FixedLatency>(10), reference());
    s.send({.parts = {{1, 10}}, .output = 3}, at_ms(0));
    s.run();
    EXPECT_EQ(s.fates[0].first, at_ms(10));
    EXPECT_EQ(s.fates[0].finish, at_ms(30));
    EXPECT_EQ(s.replica().steps(), overlap ? 4 : 3);
  }
}

TEST_P(SglangVectors, OverlapAdmitsTwoBatchesLater) {
  EngineRules rules = sglang_rules();
  rules.async_scheduling = true;
  Server s(rules, std::make_shared<FixedLatency>(10), reference());
  s.send({.parts = {{1, 64}}, .output = 9}, at_ms(0));
  s.send({.parts = {{1, 64}, {2, 1}}, .output = 2}, at_ms(5));
  s.run();
  EXPECT_EQ(s.fates[1].first, at_ms(30)) << "the batch at 10 ms was made at 0 ms";
  EXPECT_EQ(s.fates[0].finish, at_ms(100)) << "its decodes wait for one prompt";
  EXPECT_EQ(s.gaps.count(), 9);
  EXPECT_EQ(s.gaps.max(), 0.020);
}

struct SglangCase {
  EngineRules rules;
  std::shared_ptr<const models::LatencyModel> latency;
  std::vector<std::pair<SimTime, TestRequest>> arrivals;
};

std::int64_t drawn(RandomStream& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

SglangCase sglang_case(std::uint64_t seed) {
  RandomStream random(seed, Stream::kTest, 11);
  SglangCase c;
  c.rules = sglang_rules(drawn(random, 120, random.below(2) ? 300 : 2000));
  EngineRules& r = c.rules;
  r.block_size = random.below(2) ? 1 : drawn(random, 2, 16);
  r.num_gpu_blocks = (r.num_gpu_blocks - 1) / r.block_size + 1;
  r.max_num_seqs = drawn(random, 1, random.below(2) ? 5 : 40);
  r.max_model_len = drawn(random, 100, 400);
  r.async_scheduling = random.below(3) != 0;
  r.enable_prefix_caching = random.below(6) != 0;
  r.sglang->policy = random.below(3) == 0 ? SglangPolicy::kLpm : SglangPolicy::kFcfs;
  r.sglang->chunk_tokens = random.below(3) == 0 ? 0 : r.block_size * drawn(random, 1, 80);
  r.sglang->max_prefill_tokens = drawn(random, 1, 300);
  r.sglang->first_ratio = random.below(3) == 0 ? random.uniform() : 0.1 * random.uniform();
  r.sglang->least_ratio = 0.14 * r.sglang->first_ratio;
  KneeLatency::Coefficients k;
  if (random.below(2) == 0) k.floor = drawn(random, 0, 4'000'000'000);
  c.latency = std::make_shared<KneeLatency>(k);
  const std::int64_t n = drawn(random, 2, 40);
  const double gap_ms = random.uniform() * 20;
  double now = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (random.below(3) != 0) now += random.exponential(gap_ms + 1e-3);
    TestRequest t;
    t.parts.push_back({1 + random.below(3), drawn(random, 1, 60)});
    if (random.below(3) != 0)
      t.parts.push_back({100 + static_cast<std::uint64_t>(i), drawn(random, 1, 60)});
    t.output = random.below(6) == 0 ? 1 : drawn(random, 1, 60);
    if (random.below(4) == 0) t.max_tokens = t.output + drawn(random, 1, 40);
    c.arrivals.emplace_back(SimTime::from_ns(static_cast<std::int64_t>(now * 1e6)), t);
  }
  return c;
}

void expect_same_as_obvious(const SglangCase& c, bool reference, std::int64_t& retractions) {
  ObviousSglang obvious(c.rules, c.latency);
  Server server(c.rules, c.latency, reference);
  for (const auto& [at, request] : c.arrivals) {
    obvious.advance_to(at);
    server.run_until(at);
    const Gauges g = server.replica().gauges(0);
    const ObviousSglang::Gauges seen{g.running, g.waiting, g.free_blocks};
    ASSERT_TRUE(obvious.gauges == seen)
        << "at " << at.ns() << " obvious: running " << obvious.gauges.running << " waiting "
        << obvious.gauges.waiting << " free " << obvious.gauges.free << " engine: running "
        << seen.running << " waiting " << seen.waiting << " free " << seen.free;
    obvious.send(request, at);
    server.send(request, at);
  }
  obvious.run();
  server.run();
  ASSERT_NO_THROW(server.replica().verify());
  for (std::size_t i = 0; i < obvious.fates.size(); ++i) {
    const Fate &a = obvious.fates[i], &b = server.fates[i];
    retractions += a.preemptions;
    ASSERT_TRUE(a == b) << "request " << i << "\n  obvious: first " << a.first.ns() << " finish "
                        << a.finish.ns() << " retractions " << a.preemptions << " cached "
                        << a.cached << "\n  engine:  first " << b.first.ns() << " finish "
                        << b.finish.ns() << " retractions " << b.preemptions << " cached "
                        << b.cached;
  }
  ASSERT_EQ(obvious.gaps.count(), server.gaps.count());
  ASSERT_EQ(obvious.gaps.sum(), server.gaps.sum());
  ASSERT_EQ(obvious.gaps.max(), server.gaps.max());
  ASSERT_EQ(obvious.evictions(), server.scheduler().kv().evictions());
}

TEST(ObviousSglang, AgreesWithTheFastAndTheReferenceEngine) {
  std::int64_t retractions = 0;
  for (std::uint64_t seed = 1; seed <= 1200; ++seed) {
    const SglangCase c = sglang_case(seed);
    for (const bool reference : {true, false}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + (reference ? " reference" : " fast") +
                   " page " + std::to_string(c.rules.block_size) + " pages " +
                   std::to_string(c.rules.num_gpu_blocks) + " seqs " +
                   std::to_string(c.rules.max_num_seqs) + " chunk " +
                   std::to_string(c.rules.sglang->chunk_tokens) + " input " +
                   std::to_string(c.rules.sglang->max_prefill_tokens) + " overlap " +
                   std::to_string(c.rules.async_scheduling) + " lpm " +
                   std::to_string(c.rules.sglang->policy == SglangPolicy::kLpm) + " caching " +
                   std::to_string(c.rules.enable_prefix_caching));
      expect_same_as_obvious(c, reference, retractions);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(retractions, 500) << "the cases must be tight enough to mean something";
}

}  // namespace
}  // namespace routesim::sim::testing
