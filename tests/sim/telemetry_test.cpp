// What a router can know and when: KV events after their delay, gauges as of the last scrape.
#include "sim/kv_event_log.h"
#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {
namespace {

class TestKeys final : public KvEventLog::RequestKeySource {
 public:
  void request_keys(std::uint32_t handle, std::int64_t first, std::span<const BlockKey> keys,
                    std::vector<std::uint64_t>& out) override {
    for (std::size_t i = 0; i < keys.size(); ++i)
      out.push_back(1000 * handle + static_cast<std::uint64_t>(first) + i);
  }
};

/// Writes down what it reads.
class Scribe final : public KvEventLog::Reader {
 public:
  void on_stored(std::span<const BlockKey> engine,
                 std::span<const std::uint64_t> request) override {
    text += "+" + list(engine) + "=" + list(request) + " ";
  }
  void on_removed(std::span<const BlockKey> engine) override { text += "-" + list(engine) + " "; }
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
  KvEventLog log(source, true);
  const BlockKey keys[] = {11, 13};
  log.stored(4, 2, keys);
  log.removed(21);
  log.removed(25);
  EXPECT_TRUE(log.pending());
  log.flush(at_ms(5), false);
  log.removed(29);
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

TEST(KvEventLog, LostBatchesAndEmptyOnesNeverArrive) {
  TestKeys source;
  KvEventLog log(source, true);
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

TEST(KvEventLog, PrivateBlocksAreNotAnnouncedUnlessAskedFor) {
  TestKeys source;
  KvEventLog quiet(source, false), chatty(source, true);
  const BlockKey keys[] = {5, mark_private(9)};
  Scribe heard_quiet, heard_chatty;
  for (KvEventLog* log : {&quiet, &chatty}) {
    log->stored(1, 0, keys);
    log->removed(mark_private(9));
    log->flush(at_ms(0), false);
    log->read_until(at_ms(0), log == &quiet ? heard_quiet : heard_chatty);
  }
  EXPECT_EQ(heard_quiet.text, "+5=1000 ");
  EXPECT_EQ(heard_chatty.text, "+5,11=1000,1001 -11 ");
}

TEST(KvEventLog, SurvivesItsOwnCompaction) {
  TestKeys source;
  KvEventLog log(source, true);
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
      SimTime scrape;
      const Gauges seen = server.replica().scraped(0, at_ms(ms), scrape);
      if (scrape < SimTime::zero()) continue;
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

}  // namespace
}  // namespace routesim::sim::testing
