// What a router can know and when: KV events after their delay, gauges as of the last scrape.
#include <algorithm>

#include "sim/engine/kv_event_log.h"
#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {
namespace {

class TestKeys final : public SequenceKeySource {
 public:
  void request_keys(std::uint32_t handle, std::int64_t, std::int64_t first, std::int64_t blocks,
                    std::vector<std::uint64_t>& out) override {
    for (std::int64_t b = first; b < first + blocks; ++b)
      out.push_back(1000 * handle + static_cast<std::uint64_t>(b));
  }
  BlockKey answer_key(std::uint32_t, std::int64_t) override { return 0; }
};

/// Writes down what it reads.
class Scribe final : public KvEventLog::Reader {
 public:
  void on_stored(std::span<const BlockKey> engine,
                 std::span<const std::uint64_t> request) override {
    text += "+" + list(engine) + "=" + list(request) + " ";
  }
  void on_removed(std::span<const BlockKey> engine) override { text += "-" + list(engine) + " "; }
  void on_stored_in_tier(std::span<const BlockKey> engine) override {
    text += "host+" + list(engine) + " ";
  }
  void on_removed_from_tier(std::span<const BlockKey> engine) override {
    text += "host-" + list(engine) + " ";
  }
  std::string text;

 private:
  static std::string list(std::span<const std::uint64_t> keys) {
    std::string out;
    for (const std::uint64_t k : keys) out += (out.empty() ? "" : ",") + std::to_string(k);
    return out;
  }
};

TEST(KvEventLog, BatchesBecomeVisibleInOrderAndNotBeforeTheirTime) {
  TestKeys source;
  KvEventLog log(&source, 16);
  const BlockKey keys[] = {11, 13};
  log.stored(4, 2, keys);
  log.removed(std::vector<BlockKey>{21});
  log.removed(std::vector<BlockKey>{25});
  EXPECT_TRUE(log.pending());
  log.flush(at_ms(5), false);
  log.removed(std::vector<BlockKey>{29});
  log.flush(at_ms(8), false);
  EXPECT_EQ(log.next_visible(), at_ms(5));
  Scribe scribe;
  log.read_until(at_ms(4), scribe);
  EXPECT_EQ(scribe.text, "");
  log.read_until(at_ms(5), scribe);
  EXPECT_EQ(scribe.text, "+11,13=4002,4003 -21,25 ");
  log.read_until(at_ms(100), scribe);
  EXPECT_EQ(scribe.text, "+11,13=4002,4003 -21,25 -29 ");
  EXPECT_EQ(log.next_visible(), SimTime::max());
}

TEST(KvEventLog, TiersAreAnnouncedInOrderWithTheRest) {
  TestKeys source;
  KvEventLog log(&source, 16);
  const BlockKey keys[] = {11, 13};
  log.stored(4, 0, keys);
  log.stored_in_tier(keys);
  log.removed(keys);
  log.removed_from_tier(keys);  // the last one was evicted first
  log.removed(std::vector<BlockKey>{21});
  log.flush(at_ms(1), false);
  Scribe scribe;
  log.read_until(at_ms(1), scribe);
  EXPECT_EQ(scribe.text, "+11,13=4000,4001 host+11,13 -13,11 host-13,11 -21 ");
}

TEST(KvEventLog, LostBatchesAndEmptyOnesNeverArrive) {
  TestKeys source;
  KvEventLog log(&source, 16);
  log.flush(at_ms(1), false);
  EXPECT_EQ(log.next_visible(), SimTime::max());
  const BlockKey key[] = {11};
  log.stored(1, 0, key);
  log.flush(at_ms(2), true);
  EXPECT_EQ(log.next_visible(), SimTime::max());
  log.stored(2, 0, key);
  log.flush(at_ms(3), false);
  Scribe scribe;
  log.read_until(at_ms(3), scribe);
  EXPECT_EQ(scribe.text, "+11=2000 ");
}

TEST(KvEventLog, OneKeyServesEngineAndRouter) {
  KvEventLog log(nullptr, 16);
  const BlockKey keys[] = {5, 9};
  log.stored(1, 0, keys);
  log.removed(std::vector<BlockKey>{9});
  log.flush(at_ms(0), false);
  Scribe scribe;
  log.read_until(at_ms(0), scribe);
  EXPECT_EQ(scribe.text, "+5,9=5,9 -9 ");
}

TEST(KvEvents, PrivateBlocksAreNotAnnounced) {
  for (const bool private_answer : {true, false}) {
    TestKeys source;
    KvEventLog log(&source, 16);
    BatchScheduler scheduler(plain_rules(), false);
    scheduler.set_sink(&log, &log);
    RequestShelf shelf(16);
    std::vector<EngineOutput> out;
    // 32 tokens of prompt, 40 of answer: two public blocks, and two that are part of the answer.
    scheduler.enqueue(
        shelf.add({.parts = {{1, 32}}, .output = 40, .private_answer = private_answer}), at_ms(0),
        out);
    StepPlan plan;
    while (!scheduler.idle()) {
      scheduler.schedule(plan, nullptr, at_ms(0), out);
      scheduler.process(plan, at_ms(0), out);
    }
    log.flush(at_ms(0), false);
    Scribe scribe;
    log.read_until(at_ms(0), scribe);
    EXPECT_EQ(std::count(scribe.text.begin(), scribe.text.end(), '+'), private_answer ? 1 : 3);
  }
}

TEST(KvEventLog, SurvivesItsOwnCompaction) {
  TestKeys source;
  KvEventLog log(&source, 16);
  Scribe scribe;
  for (int round = 0; round < 40'000; ++round) {
    const BlockKey key[] = {static_cast<BlockKey>(round)};
    log.stored(0, round, key);
    log.flush(at_ms(round + 2), false);
    scribe.text.clear();
    log.read_until(at_ms(round), scribe);
    if (round < 2) continue;
    const std::string n = std::to_string(round - 2);
    ASSERT_EQ(scribe.text, "+" + n + "=" + n + " ");
  }
}

TEST(Scrapes, ShowTheGaugesOfTheScrapeInstantAndNothingNewer) {
  for (const bool reference : {true, false}) {
    EngineRules rules = plain_rules();
    rules.max_num_seqs = 3;
    Server server(rules, std::make_shared<FixedLatency>(20), reference);
    std::map<std::int64_t, Gauges> history;  // By millisecond; boundaries fall on whole ones.
    RandomStream random(5, Stream::kTest);
    bool saw_old_value = false;
    for (std::int64_t ms = 0; ms < 3000; ++ms) {
      if (ms < 2000 && random.below(60) == 0)
        server.send({.parts = {{random.below(1000), 20}},
                     .output = 1 + static_cast<std::int64_t>(random.below(20))},
                    at_ms(ms));
      server.run_until(at_ms(ms));
      history[ms] = server.replica().gauges(0);
      const SimTime scrape =
          server.replica().next_scrape(0, at_ms(ms)) - Duration::milliseconds(50);
      if (scrape < SimTime::zero()) continue;
      const Gauges seen = server.replica().scrape(0, scrape, at_ms(ms));
      ASSERT_LE(scrape, at_ms(ms));
      ASSERT_LT(at_ms(ms) - scrape, Duration::milliseconds(50));
      ASSERT_GT(server.replica().next_scrape(0, at_ms(ms)), at_ms(ms));
      const Gauges& truth = history[scrape.ns() / 1'000'000];
      ASSERT_EQ(seen.running, truth.running) << "at " << ms;
      ASSERT_EQ(seen.waiting, truth.waiting) << "at " << ms;
      ASSERT_EQ(seen.free_blocks, truth.free_blocks) << "at " << ms;
      saw_old_value = saw_old_value || seen.free_blocks != history[ms].free_blocks;
    }
    EXPECT_TRUE(saw_old_value);
  }
}

/// The gauges that the engine exports.
std::vector<std::int64_t> exported(Server& server) {
  const Gauges g = server.replica().gauges(0);
  return {g.running, g.waiting, g.free_blocks};
}
using Numbers = std::vector<std::int64_t>;

// vLLM looks for ended transfers without requests from v0.22 on; before, it hears of them with the
// output of its next step.
TEST(IdleGauges, AnIdlePrefillServerFreesWhatWasRead) {
  for (const bool polls : {true, false}) {
    EngineRules rules = plain_rules();
    rules.idle_polling = polls;
    Server server(rules, std::make_shared<FixedLatency>(10));
    const std::uint32_t leg = server.send({.parts = {{1, 64}}, .hold = true}, at_ms(0));
    server.run_until(at_ms(50));
    EXPECT_EQ(exported(server), (Numbers{0, 0, 996})) << "four blocks wait for their reader";
    server.release(leg, at_ms(60));
    EXPECT_EQ(exported(server), (Numbers{0, 0, polls ? 1000 : 996}));
    EXPECT_EQ(server.replica().true_gauges(0).free_blocks, polls ? 1000 : 996);
    server.send({.parts = {{2, 16}}, .output = 2}, at_ms(1000));
    EXPECT_EQ(server.replica().true_gauges(0).running, 1) << "what is true, it does not export yet";
    EXPECT_EQ(exported(server), (Numbers{0, 0, polls ? 1000 : 996}));
    server.run_until(at_ms(1010));
    EXPECT_EQ(exported(server), (Numbers{1, 0, 999})) << "with the output of that step";
  }
}

TEST(IdleGauges, AreRenewedWhenTheLastRequestGivesUp) {
  for (const bool async : {false, true}) {
    EngineRules rules = plain_rules();
    rules.async_scheduling = async;
    Server server(rules, std::make_shared<FixedLatency>(10));
    const std::uint32_t r = server.send({.parts = {{1, 64}}, .output = 100}, at_ms(0));
    server.abort(r, at_ms(45));
    server.run_until(at_ms(49));
    EXPECT_EQ(exported(server)[0], 1) << "its step is under way";
    server.run_until(at_ms(60));
    EXPECT_EQ(exported(server), (Numbers{0, 0, 1000}));
  }
}

}  // namespace
}  // namespace routesim::sim::testing
