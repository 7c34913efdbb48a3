// What vectors cannot show: distributions of random choices, ranges, purity, memory bounds, eras.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <set>
#include <thread>

#include "base/rng.h"
#include "policies/plugins/inflight_load.h"
#include "policies/plugins/latency.h"
#include "policies/row_math.h"
#include "tests/policies/plugin_bench.h"

namespace routesim::policies {
namespace {

constexpr std::uint64_t kSeed = 20260822;

/// Upper 1e-6 point of chi-square by the Wilson-Hilferty approximation.
double chi_square_limit(double degrees) {
  const double z = 4.753;
  const double a = 2 / (9 * degrees);
  return degrees * std::pow(1 - a + z * std::sqrt(a), 3);
}

double chi_square(const std::vector<int>& counts, const std::vector<double>& probabilities) {
  const double n = std::accumulate(counts.begin(), counts.end(), 0.0);
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = n * probabilities[i];
    sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum;
}

std::vector<int> picks(Scheduler& scheduler, const EndpointTable& table, int n) {
  std::vector<int> counts(table.rows(), 0);
  Scratch scratch;
  Decision decision;
  RequestView request;
  for (int i = 0; i < n; ++i) {
    request.id = static_cast<std::uint64_t>(i);
    scheduler.schedule(request, table, SimTime::zero(), scratch, decision);
    ++counts[decision.primary.value()];
  }
  return counts;
}

TEST(Ties, AreBrokenUniformlyWhateverTheSeed) {
  for (const std::uint64_t seed : {kSeed, kSeed + 1, kSeed + 2}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SchedulerOptions options;
    options.seed = seed;
    const auto scheduler = make_scheduler(
        document("- type: queue-scorer\n", "  - pluginRef: queue-scorer\n"), {}, options);
    EndpointTable table = make_endpoints(10);
    table.set_metrics(EndpointId(3), 9, 0, 0, SimTime::zero());  // Nine of ten tie.
    std::vector<int> counts = picks(*scheduler, table, 18000);
    EXPECT_EQ(counts[3], 0);
    counts.erase(counts.begin() + 3);
    EXPECT_LT(chi_square(counts, std::vector<double>(9, 1.0 / 9)), chi_square_limit(8));
  }
}

TEST(Ties, OneUlpIsNoTie) {
  PluginBench bench("max-score-picker", {}, 2);
  const std::vector<double> totals = {1.0, std::nextafter(1.0, 2.0)};
  for (std::uint64_t id = 0; id < 100; ++id) {
    const std::vector<EndpointRow> picked = bench.picked(totals, id);
    ASSERT_EQ(picked, std::vector<EndpointRow>{1});
  }
}

TEST(Ties, OfTheTopTwoAreUniformTooAndHeimdallTakesOneOfThem) {
  for (const bool heimdall : {false, true}) {
    LoadOptions load;
    if (heimdall) load.distribution = Distribution::kHeimdall;
    PluginBench bench("max-score-picker", {{"maxNumOfEndpoints", 2}}, 4, load);
    ASSERT_TRUE(bench.built()) << bench.errors();
    const std::vector<double> totals = {5, 7, 5, 5};
    std::vector<int> first(4, 0), second(4, 0);
    for (std::uint64_t id = 0; id < 9000; ++id) {
      const std::vector<EndpointRow> picked = bench.picked(totals, id);
      ASSERT_EQ(picked.size(), heimdall ? 1U : 2U);
      ++first[picked[0]];
      if (!heimdall) ++second[picked[1]];
    }
    if (heimdall) {
      EXPECT_LT(chi_square(first, {1.0 / 6, 0.5, 1.0 / 6, 1.0 / 6}), chi_square_limit(3));
    } else {
      EXPECT_EQ(first[1], 9000);
      second.erase(second.begin() + 1);
      EXPECT_LT(chi_square(second, std::vector<double>(3, 1.0 / 3)), chi_square_limit(2));
    }
  }
}

TEST(RowMath, FindsTheValueBehindSoManyEqualOnes) {
  RandomStream random(7, Stream::kTest);
  for (const std::size_t n : {1, 15, 16, 17, 100, 1024}) {
    std::vector<double> values(n);
    for (double& v : values) v = static_cast<double>(random.below(3));
    values[n / 2] = std::numeric_limits<double>::quiet_NaN();
    std::vector<std::size_t> where;
    for (std::size_t i = 0; i < n; ++i)
      if (values[i] == 1) where.push_back(i);
    ASSERT_EQ(count_equal(values, 1), where.size());
    for (std::size_t k = 0; k < where.size(); ++k) ASSERT_EQ(position_of(values, 1, k), where[k]);
    ASSERT_EQ(position_of(values, 1, where.size()), n);
  }
}

TEST(RowMath, GivesTheBitsOfPlainLoops) {
  RandomStream random(7, Stream::kTest);
  const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
  for (const std::size_t n : {1, 15, 16, 17, 100, 1024}) {
    std::vector<double> values(n);
    for (double& v : values) v = 4 * random.uniform() - 2;
    values[n / 2] = n % 2 == 0 ? std::numeric_limits<double>::quiet_NaN() : kUnscored;
    double lowest = values[0], highest_value = values[0];
    std::vector<double> totals(n, 0.125), expected(n, 0.125), scores(n);
    add_clamped(totals, values, 0.3);
    for (std::size_t i = 0; i < n; ++i) {
      expected[i] += clamp_score(values[i]) * 0.3;
      lowest = values[i] < lowest ? values[i] : lowest;
      highest_value = values[i] > highest_value ? values[i] : highest_value;
      ASSERT_EQ(bits(totals[i]), bits(expected[i]));
    }
    ASSERT_EQ(extremes(values).lowest, lowest);
    ASSERT_EQ(extremes(values).highest, highest_value);
    ASSERT_EQ(highest(values), highest_value);
    for (const double range : {1.0, 3.0}) {
      scale_down_from(2, range, values, scores);
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(bits(scores[i]), bits((2 - values[i]) / range));
    }
  }
}

TEST(WeightedRandom, WinsInProportionToTheScore) {
  RandomStream random(kSeed, Stream::kTest);
  for (int trial = 0; trial < 5; ++trial) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " trial " + std::to_string(trial));
    std::vector<double> totals(6);
    for (double& t : totals) t = 0.05 + random.uniform();
    const double sum = std::accumulate(totals.begin(), totals.end(), 0.0);
    std::vector<double> probabilities = totals;
    for (double& p : probabilities) p /= sum;
    PluginBench bench("weighted-random-picker", {}, totals.size());
    std::vector<int> counts(totals.size(), 0);
    for (std::uint64_t id = 0; id < 20000; ++id) {
      Cycle cycle;
      Decision decision;
      RequestView request;
      request.id = mix64(id, static_cast<std::uint64_t>(trial));
      bench.begin(cycle, request, decision);
      std::vector<EndpointRow> picked;
      bench.subject<Picker>().pick(cycle, bench.table().candidates(), totals, picked);
      ++counts[picked[0]];
    }
    EXPECT_LT(chi_square(counts, probabilities), chi_square_limit(5));
  }
}

TEST(Draws, DependOnSeedAndRequestOnly) {
  const std::string yaml = document("- type: random-picker\n", "  - pluginRef: random-picker\n");
  const auto a = make_scheduler(yaml);
  const auto b = make_scheduler(yaml);
  SchedulerOptions other;
  other.seed = 1;
  const auto c = make_scheduler(yaml, {}, other);
  const EndpointTable table = make_endpoints(64);
  int same_as_other_seed = 0;
  for (std::uint64_t id = 0; id < 200; ++id) {
    RequestView request;
    request.id = id;
    const auto first = a->schedule(request, table, SimTime::zero()).primary;
    RequestView unrelated;
    unrelated.id = 1000 + id;
    b->schedule(unrelated, table, SimTime::zero());  // Draws for others change nothing.
    EXPECT_EQ(b->schedule(request, table, SimTime::from_ns(7)).primary, first);
    same_as_other_seed += c->schedule(request, table, SimTime::zero()).primary == first ? 1 : 0;
  }
  EXPECT_LT(same_as_other_seed, 20);
}

/// A random pool state: metrics, labels, LoRA, attributes, prefix matches, predictions, load.
void randomise(PluginBench& bench, RandomStream& random) {
  EndpointTable& table = bench.table();
  bench.stub().matches.clear();
  bench.stub().latency.clear();
  const auto total = static_cast<std::int64_t>(random.below(50));
  for (EndpointRow r = 0; r < table.rows(); ++r) {
    const EndpointId id(r);
    table.set_metrics(id, static_cast<double>(random.below(20)),
                      static_cast<double>(random.below(300)), random.uniform(), SimTime::zero());
    table.mutable_info(id).labels["llm-d.ai/context-length-range"] =
        std::to_string(random.below(100)) + "-" + std::to_string(100 + random.below(9000));
    table.set_lora(id, {{"a"}, {"b"}, static_cast<std::int64_t>(random.below(4))});
    table.set_attribute("core-metrics-extractor/x", id, random.normal());
    const auto match =
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(total) + 1));
    bench.stub().matches.push_back(StubData::Match{match, total, 16, {}});
    LatencyEstimate e;
    e.present = random.below(4) != 0;
    e.ttft_headroom_ms = 100 * random.normal();
    e.tpot_headroom_ms = 10 * random.normal();
    e.dispatched = static_cast<std::int64_t>(random.below(3));
    bench.stub().latency.push_back(e);
    bench.load(r, static_cast<std::int64_t>(random.below(4)),
               static_cast<std::int64_t>(random.below(5000)));
  }
}

TEST(Scores, StayInRangeInRandomStates) {
  const std::vector<std::pair<std::string, Json>> scorers = {
      {"queue-scorer", {}},
      {"running-requests-size-scorer", {}},
      {"kv-cache-utilization-scorer", {}},
      {"load-aware-scorer", {{"threshold", 7}}},
      {"active-request-scorer", {{"idleThreshold", 1}, {"maxBusyScore", 0.5}}},
      {"token-load-scorer", {{"queueThresholdTokens", 3000}}},
      {"prefix-cache-scorer", {{"matchLengthWeight", 0.5}, {"matchLengthScaleTokens", 100}}},
      {"no-hit-lru-scorer", {}},
      {"lora-affinity-scorer", {}},
      {"context-length-aware", {}},
      {"session-affinity-scorer", {}},
      {"latency-scorer", {}},
      {"lmetric-scorer", {}},
      {"endpoint-attribute-scorer",
       {{"attributeKey", "x"}, {"algorithm", {{"type", "linear_lower_is_better"}}}}},
      {"multicluster-queue-scorer", {}},
      {"topology-affinity-scorer", {}},
      {"mm-embeddings-cache-scorer", {}}};
  RandomStream random(kSeed, Stream::kTest);
  for (const auto& [type, parameters] : scorers) {
    SCOPED_TRACE(type + " seed " + std::to_string(kSeed));
    PluginBench bench(type, parameters, 12, {}, {"default"},
                      Json::array({{{"type", "inflight-load-producer"}},
                                   {{"type", "multicluster-metrics-extractor"}}}));
    ASSERT_TRUE(bench.built()) << bench.errors();
    for (int trial = 0; trial < 20; ++trial) {
      randomise(bench, random);
      RequestView request;
      request.id = static_cast<std::uint64_t>(trial);
      request.model = "b";
      request.prompt_tokens = static_cast<std::int64_t>(random.below(3000));
      const auto scores = bench.scores(request);
      ASSERT_EQ(scores.size(), 12U);
      for (const double s : scores) {
        if (s == kUnscored) continue;
        // latency-scorer's w/100 may reach 1.01, which the profile clamps.
        EXPECT_GE(s, 0.0);
        EXPECT_LE(s, type == "latency-scorer" ? 1.01 : 1.0);
      }
    }
  }
}

// Prompts of one request are looked up one by one and their scores added; the extremes of the
// min-max eras are those of the sums, and in v0.6.0 of endpoints that are no candidates too.
TEST(PreciseScores, AreNormalisedAfterAddingUpAllPrompts) {
  for (const Era era : {Era::kV0_6_0, Era::kV0_7_0}) {
    SCOPED_TRACE(std::string(name(era)));
    PluginBench bench("precise-prefix-cache-scorer", {}, 4,
                      {.era = era, .distribution = {}, .registry = nullptr});
    ASSERT_TRUE(bench.built()) << bench.errors();
    std::vector<std::uint64_t> keys(8);
    std::iota(keys.begin(), keys.end(), 1);
    const auto hold = [&](EndpointRow row, std::size_t first, std::size_t count) {
      const HolderEntry entry{
          .endpoint = EndpointId(bench.scheduler().index_holder(bench.table(), row)),
          .tier = kGpuTier,
          .speculative = false,
          .group = {}};
      bench.scheduler().precise_index()->add({}, std::span(keys).subspan(first, count),
                                             std::span(&entry, 1));
    };
    hold(0, 0, 2);  // 2 + 3 of the two prompts of four blocks.
    hold(0, 4, 3);
    hold(1, 0, 4);  // 4 + 0.
    hold(3, 0, 1);  // 1 + 1, but no candidate.
    hold(3, 4, 1);
    bench.table().set_ready(EndpointId(3), false);
    const std::vector<std::uint32_t> ends = {4, 8};
    RequestView request;
    request.block_keys = keys;
    request.block_key_ends = ends;
    const auto scores = bench.scores(request);
    ASSERT_EQ(scores.size(), 3u);
    EXPECT_EQ(scores[0], 1.0);
    EXPECT_EQ(scores[1], era == Era::kV0_6_0 ? 2.0 / 3 : 0.0);
    EXPECT_EQ(scores[2], 0.0);
  }
}

// In May 2026 the precise scorer wrote "one block of one token" as match info; what the decision
// expected to be cached is the whole prefix nevertheless.
TEST(PreciseScores, TellTheExpectedHitInTokensInEveryEra) {
  for (const Era era : {Era::kV0_5_0, Era::kV0_7_0, Era::kMay2026, Era::kAug2026}) {
    SCOPED_TRACE(std::string(name(era)));
    PluginBench bench("precise-prefix-cache-scorer", {}, 2,
                      {.era = era, .distribution = {}, .registry = nullptr});
    ASSERT_TRUE(bench.built()) << bench.errors();
    const std::vector<std::uint64_t> keys = {1, 2, 3, 4};
    bench.scheduler().precise_index()->stored(
        EndpointId(bench.scheduler().index_holder(bench.table(), 1)), kGpuTier, 0,
        std::span(keys).first(3), std::span(keys).first(3));
    RequestView request;
    request.block_keys = keys;
    Scratch scratch;
    Decision decision;
    bench.scheduler().schedule(request, bench.table(), SimTime::zero(), scratch, decision);
    EXPECT_EQ(bench.scheduler().predicted_hit_tokens(scratch, EndpointId(1)), 3 * 16);
    EXPECT_EQ(bench.scheduler().predicted_hit_tokens(scratch, EndpointId(0)), 0);
  }
}

// One thread may serve several schedulers with one scratch.
TEST(Scratch, KeepsNothingOfAnotherScheduler) {
  const auto only = [](const std::string& filter) {
    return make_scheduler(
        document("- type: " + filter + "\n- type: random-picker\n",
                 "  - pluginRef: " + filter + "\n  - pluginRef: random-picker\n"));
  };
  const auto decode = only("decode-filter");
  const auto prefill = only("prefill-filter");
  EndpointTable table = make_endpoints(2);
  table.mutable_info(EndpointId(0)).labels["llm-d.ai/role"] = "decode";
  table.mutable_info(EndpointId(1)).labels["llm-d.ai/role"] = "prefill";
  Scratch scratch;
  Decision decision;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const Scheduler& scheduler = i % 2 == 0 ? *decode : *prefill;
    scheduler.schedule({}, table, SimTime::zero(), scratch, decision);
    EXPECT_EQ(decision.primary, EndpointId(i % 2));
  }
  table.mutable_info(EndpointId(0)).labels["llm-d.ai/role"] = "both";
  table.mutable_info(EndpointId(1)).labels.clear();
  prefill->schedule({}, table, SimTime::zero(), scratch, decision);
  EXPECT_EQ(decision.primary, EndpointId(0)) << "labels have changed";
}

TEST(InFlight, IsConservedUnderRandomLifecycles) {
  const auto scheduler = make_scheduler(
      document("- type: active-request-scorer\n- type: random-picker\n",
               "  - pluginRef: active-request-scorer\n  - pluginRef: random-picker\n"));
  EndpointTable table = make_endpoints(5);
  RandomStream random(kSeed, Stream::kTest);
  struct Live {
    std::uint64_t id;
    EndpointRow row;
    std::int64_t tokens;
  };
  std::vector<Live> live;
  Scratch scratch;
  Decision decision;
  for (std::uint64_t step = 0; step < 5000; ++step) {
    const auto now = SimTime::from_ns(static_cast<std::int64_t>(step));
    const std::uint64_t action = random.below(10);
    if (action < 5) {
      RequestView request;
      request.id = step;
      request.prompt_tokens = static_cast<std::int64_t>(random.below(100));
      scheduler->schedule(request, table, now, scratch, decision);
      scheduler->on_routed(request, decision, table, now);
      live.push_back({step, decision.primary.value(), request.prompt_tokens});
    } else if (!live.empty()) {
      Live& r = live[random.below(live.size())];
      scheduler->on_first_token(r.id, now);
      r.tokens = 0;
      if (action < 9) {
        scheduler->on_completed(r.id, now);
        r = live.back();
        live.pop_back();
      }
    }
    if (random.below(500) == 0) {
      // An endpoint is replaced: its requests still finish, and must not count against the new one.
      const auto row = static_cast<EndpointRow>(random.below(5));
      scheduler->on_endpoint_removed(row, table, now);
      EndpointInfo info = table.info(row);
      table.remove(EndpointId(row));
      ASSERT_EQ(table.add(std::move(info)).value(), row);
      for (Live& r : live)
        if (r.row == row) r.row = Id<int>::kInvalid;
    }
    std::vector<std::int64_t> requests(5, 0), tokens(5, 0);
    for (const Live& r : live) {
      if (r.row == Id<int>::kInvalid) continue;
      ++requests[r.row];
      tokens[r.row] += r.tokens;
    }
    for (EndpointRow r = 0; r < 5; ++r) {
      ASSERT_EQ(scheduler->in_flight()->requests(r), requests[r]) << "seed " << kSeed;
      ASSERT_EQ(scheduler->in_flight()->tokens(r), tokens[r]) << "seed " << kSeed;
    }
    ASSERT_EQ(scheduler->in_flight()->tracked_requests(), live.size());
  }
}

TEST(Threads, MayDecideAndRunHooksAtOnce) {
  SchedulerOptions options;
  options.thread_safe = true;
  const auto scheduler = make_scheduler(
      document("- type: queue-scorer\n- type: active-request-scorer\n- type: no-hit-lru-scorer\n"
               "- type: precise-prefix-cache-producer\n  parameters:\n"
               "    speculativeIndexing: true\n"
               "- type: prefix-cache-scorer\n  parameters:\n"
               "    prefixMatchInfoProducerName: precise-prefix-cache-producer\n",
               "  - pluginRef: queue-scorer\n  - pluginRef: active-request-scorer\n"
               "  - pluginRef: no-hit-lru-scorer\n  - pluginRef: prefix-cache-scorer\n"),
      {}, options);
  ASSERT_EQ(scheduler->precise_index(), nullptr);
  ASSERT_NE(scheduler->concurrent_index(), nullptr);
  const EndpointTable table = make_endpoints(8);
  const auto work = [&](std::uint64_t thread) {
    Scratch scratch;
    Decision decision;
    std::vector<std::uint64_t> keys(20);
    for (std::uint64_t i = 0; i < 300; ++i) {
      std::iota(keys.begin(), keys.end(), 1000 * (i % 7));
      RequestView request;
      request.id = thread * 1'000'000 + i;
      request.block_keys = keys;
      request.approx_hashes = keys;
      const auto now = SimTime::from_ns(static_cast<std::int64_t>(i));
      scheduler->schedule(request, table, now, scratch, decision);
      scheduler->on_routed(request, decision, table, now);
      scheduler->on_first_token(request.id, now);
      scheduler->concurrent_index()->exclusive([&](PrefixIndex& index) {
        return index.stored(decision.primary, kGpuTier, 0, keys, keys);
      });
      scheduler->on_completed(request.id, now);
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) threads.emplace_back(work, t);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(scheduler->in_flight()->tracked_requests(), 0U);
  for (EndpointRow r = 0; r < 8; ++r) EXPECT_EQ(scheduler->in_flight()->requests(r), 0);
  EXPECT_EQ(scheduler->concurrent_index()->exclusive(
                [](PrefixIndex& index) { return index.request_key_count(); }),
            7U * 20U);
}

TEST(ForcedRow, IsChosenAndLearned) {
  const auto scheduler = make_scheduler(document(
      "- type: queue-scorer\n- type: prefix-cache-scorer\n",
      "  - pluginRef: queue-scorer\n  - pluginRef: prefix-cache-scorer\n    weight: 10\n"));
  EndpointTable table = make_endpoints(3);
  for (std::uint32_t row = 0; row < 3; ++row)
    table.set_metrics(EndpointId(row), 2.0 * row, 0, 0, SimTime::zero());
  const std::vector<std::uint64_t> hashes = {1, 2, 3};
  RequestView request{.id = 1, .prompt_tokens = 192, .prompt_bytes = 768, .approx_hashes = hashes};
  EXPECT_EQ(scheduler->schedule(request, table, SimTime::zero()).primary, EndpointId(0));
  request.forced = 2;
  Explanation explanation;
  EXPECT_EQ(scheduler->explain(request, table, SimTime::zero(), explanation).primary,
            EndpointId(2));
  EXPECT_EQ(explanation.profiles.front().picked.front(), 0U) << "its own choice is shown";
  const Decision forced = scheduler->schedule(request, table, SimTime::zero());
  EXPECT_EQ(forced.targets.front(), 2U);
  scheduler->on_routed(request, forced, table, SimTime::zero());
  request.id = 2;
  request.forced.reset();
  EXPECT_EQ(scheduler->schedule(request, table, SimTime::zero()).primary, EndpointId(2));
}

}  // namespace
}  // namespace routesim::policies
