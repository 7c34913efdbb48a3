// Answers that a later prompt may contain beside answers that none does: the decode set announces
// the blocks of the former as they fill up and settles those of the latter when they leave.
#include <gtest/gtest.h>

#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {
namespace {

struct Timed {
  TestRequest request;
  SimTime at;
};

// Prompts with heads in common; some go on from an earlier public answer.
std::vector<Timed> mixed_load(std::uint64_t seed) {
  RandomStream random(seed, Stream::kTest);
  std::vector<Timed> load;
  SimTime now = at_ms(0);
  for (int i = 0; i < 120; ++i) {
    now = now + Duration::milliseconds(static_cast<std::int64_t>(random.below(90)));
    TestRequest r;
    r.parts.emplace_back(1 + random.below(3), 40);
    const std::size_t earlier = load.empty() ? 0 : random.below(load.size());
    if (!load.empty() && !load[earlier].request.private_answer && random.below(2) == 0) {
      r.parts = {load[earlier].request.parts.front()};
      r.parts.emplace_back(1'000'000 + earlier, load[earlier].request.output - 1);
    }
    r.parts.emplace_back(100 + static_cast<std::uint64_t>(i), 1 + random.below(20));
    r.output = 2 + static_cast<std::int64_t>(random.below(70));
    r.private_answer = random.below(2) == 0;
    // Only a prompt of one part is continued: its answer starts right behind the head.
    if (!r.private_answer) r.parts.resize(1);
    load.push_back({r, now});
  }
  return load;
}

// The reference looks every block up by its key, as if all answers were public.
TEST(MixedAnswers, PrivateOnesBesidePublicOnesEqualTheReference) {
  std::int64_t preemptions = 0;
  std::int64_t answers_hit = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::vector<Timed> load = mixed_load(seed);
    const auto latency = std::make_shared<FixedLatency>(10);
    Server fast(plain_rules(41), latency);
    Server reference(plain_rules(41), latency, /*reference=*/true);
    for (const Timed& t : load) {
      fast.send(t.request, t.at);
      reference.send(t.request, t.at);
      fast.scheduler().verify();
    }
    fast.run();
    reference.run();
    for (std::size_t i = 0; i < load.size(); ++i) {
      ASSERT_TRUE(fast.fates[i].finished);
      ASSERT_TRUE(fast.fates[i] == reference.fates[i]) << "request " << i;
      preemptions += fast.fates[i].preemptions;
      answers_hit += fast.fates[i].cached > 40 ? 1 : 0;
    }
  }
  EXPECT_GT(preemptions, 20) << "otherwise no private block is looked for again";
  EXPECT_GT(answers_hit, 20) << "otherwise no announced block is found";
}

}  // namespace
}  // namespace routesim::sim::testing
