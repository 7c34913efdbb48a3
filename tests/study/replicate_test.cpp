#include "tools/study/replicate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "tests/closed_form/queue_model.h"
#include "tools/results/statistics.h"

namespace routesim::sim {
namespace {

using testing::md1_plan;

struct Seen {
  std::uint64_t seed = 0;
  std::uint64_t fingerprint = 0;
  double ttft_s = 0;
  bool operator==(const Seen&) const = default;
};
using Results = std::map<std::pair<std::size_t, std::size_t>, Seen>;

/// Keeps what it is given, by plan and replication.
class Collector {
 public:
  ReplicationSink sink() {
    return [this](const Replication& r, RunResult&& result) {
      const std::lock_guard lock(mutex_);
      const bool is_new = results_
                              .insert({{r.plan, r.number},
                                       {result.seed, result.fingerprint,
                                        result.summary.time_to_first_token.mean()}})
                              .second;
      EXPECT_TRUE(is_new) << "handed over twice";
    };
  }
  const Results& results() const { return results_; }

 private:
  std::mutex mutex_;
  Results results_;
};

double ttft(const RunResult& result) { return result.summary.time_to_first_token.mean(); }

TEST(Replicate, GivesTheSameResultsForAnyNumberOfThreads) {
  const RunPlan slow = md1_plan(0.8, 300);
  const RunPlan quick = md1_plan(0.4, 300);
  const std::array<const RunPlan*, 2> plans = {&slow, &quick};
  Results expected;
  for (const std::size_t jobs : {1U, 2U, 5U}) {
    Collector collector;
    Diagnostics diagnostics;
    replicate(plans, {.first = 2, .count = 4}, {.seed = 7, .jobs = jobs, .check = true},
              collector.sink(), diagnostics);
    EXPECT_TRUE(diagnostics.items().empty());
    ASSERT_EQ(collector.results().size(), 8U);
    EXPECT_EQ(collector.results().begin()->second.seed, 9U) << "replication 2 of seed 7";
    if (expected.empty()) expected = collector.results();
    EXPECT_EQ(collector.results(), expected) << jobs;
  }
  EXPECT_NE(expected.at({0, 2}).fingerprint, expected.at({0, 3}).fingerprint);
}

TEST(Replicate, AStoppedExperimentHandsOverNothingPartial) {
  const RunPlan plan = md1_plan(0.5, 1000);
  const std::array<const RunPlan*, 1> plans = {&plan};
  Progress progress;
  Diagnostics diagnostics;
  std::size_t handed = 0;
  replicate(
      plans, {.first = 0, .count = 50}, {.progress = &progress},
      [&](const Replication&, RunResult&& result) {
        EXPECT_EQ(result.summary.requests, 1000);
        if (++handed == 3) progress.stop = true;
      },
      diagnostics);
  EXPECT_EQ(handed, 3U);
}

/// Follow-ups see the result of replication 0 of their plan, and first_in_order keeps the first
/// runs of the plans apart.
TEST(Replicate, FollowUpsAndOrderedFirstRunsKeepTheirOrder) {
  const RunPlan plan = md1_plan(0.5, 200);
  const std::array<const RunPlan*, 3> plans = {&plan, &plan, &plan};
  for (const std::size_t jobs : {1U, 2U, 4U}) {
    std::mutex mutex;
    std::vector<std::size_t> firsts;
    std::vector<std::size_t> follow_ups;
    ReplicationOptions options{.jobs = jobs, .first_in_order = true, .follow_ups = 2};
    options.follow = [&](std::size_t p, std::size_t i, Diagnostics&) {
      const std::lock_guard lock(mutex);
      EXPECT_GT(firsts.size(), p) << "a follow-up needs the result of its plan";
      follow_ups.push_back(2 * p + i);
    };
    Diagnostics diagnostics;
    replicate(
        plans, {.first = 0, .count = 3}, options,
        [&](const Replication& r, RunResult&&) {
          const std::lock_guard lock(mutex);
          if (r.number == 0) firsts.push_back(r.plan);
        },
        diagnostics);
    EXPECT_EQ(firsts, (std::vector<std::size_t>{0, 1, 2}));
    std::sort(follow_ups.begin(), follow_ups.end());
    EXPECT_EQ(follow_ups, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5}));
  }
}

TEST(Replicate, HandsOverAPartialFirstRunWhenAsked) {
  const RunPlan plan = md1_plan(0.5, 1000);
  const std::array<const RunPlan*, 2> plans = {&plan, &plan};
  Progress progress;
  Diagnostics diagnostics;
  ReplicationOptions options{.progress = &progress, .partial_first = true};
  std::vector<std::size_t> handed;
  class Stopper final : public RunWatcher, public Observer {
   public:
    explicit Stopper(Progress& progress) : progress_(progress) {}
    std::vector<Observer*> observers() override { return {this}; }
    void complete(RunResult&) override {}
    void on_done(const RequestRecord&) override { progress_.stop = true; }

   private:
    Progress& progress_;
  };
  options.watch = [&](const Replication&) { return std::make_unique<Stopper>(progress); };
  replicate(
      plans, {.first = 0, .count = 2}, options,
      [&](const Replication& r, RunResult&& result) {
        EXPECT_LT(result.summary.requests, 1000);
        handed.push_back(r.plan);
      },
      diagnostics);
  EXPECT_EQ(handed, (std::vector<std::size_t>{0})) << "the second plan does not begin";
}

TEST(Replicate, ReportsTheErrorsOfTheFirstRunThatHasAny) {
  RunPlan plan = md1_plan(0.5, 10);
  const auto make = plan.make_load;
  plan.make_load = [make](std::uint64_t seed, Diagnostics& d) {
    if (seed >= 3) d.error({}, "workload", "cannot draw seed " + std::to_string(seed));
    return make(seed, d);
  };
  const std::array<const RunPlan*, 1> plans = {&plan};
  for (const std::size_t jobs : {1U, 4U}) {
    Diagnostics diagnostics;
    Collector collector;
    replicate(plans, {.first = 0, .count = 6}, {.seed = 1, .jobs = jobs, .check = true},
              collector.sink(), diagnostics);
    ASSERT_EQ(diagnostics.items().size(), 1U);
    EXPECT_EQ(diagnostics.items().front().message, "cannot draw seed 3");
  }
}

/// A load that breaks an invariant of the simulation when its seed is 3.
TEST(Replicate, NamesTheVariantAndTheSeedThatBreaks) {
  RunPlan plan = md1_plan(0.5, 10);
  plan.scenario.variant = "fragile";
  const auto make = plan.make_load;
  plan.make_load = [make](std::uint64_t seed, Diagnostics& d) {
    class Breaking final : public workloads::LoadGenerator {
     public:
      explicit Breaking(std::unique_ptr<workloads::LoadGenerator> inner)
          : inner_(std::move(inner)) {}
      const std::vector<workloads::StageInfo>& stages() const override { return inner_->stages(); }
      SimTime next_action() const override { return inner_->next_action(); }
      void advance(SimTime, std::vector<workloads::Request>&) override {
        throw InternalError("it breaks");
      }
      void on_completed(const workloads::Request&, workloads::Outcome, SimTime) override {}
      bool finished() const override { return inner_->finished(); }

     private:
      std::unique_ptr<workloads::LoadGenerator> inner_;
    };
    std::unique_ptr<workloads::LoadGenerator> load = make(seed, d);
    if (seed == 3) load = std::make_unique<Breaking>(std::move(load));
    return load;
  };
  const std::array<const RunPlan*, 1> plans = {&plan};
  Diagnostics diagnostics;
  Collector collector;
  std::string what;
  try {
    replicate(plans, {.first = 0, .count = 6}, {.seed = 1, .jobs = 3}, collector.sink(),
              diagnostics);
  } catch (const InternalError& e) {
    what = e.what();
  }
  EXPECT_EQ(what, "it breaks\n  in variant fragile with seed 3");
}

TEST(StoppingRule, LooksAtFixedNumbers) {
  const StoppingRule rule{.first_look = 10, .batch = 5, .limit = 22};
  EXPECT_EQ(next_look(rule, 0), 10U);
  EXPECT_EQ(next_look(rule, 10), 15U);
  EXPECT_EQ(next_look(rule, 20), 22U);
  EXPECT_EQ(next_look({.limit = 3}, 0), 3U);
}

TEST(StoppingRule, WantsTheHalfWidthRelativeToTheMean) {
  // 99, 101: sd sqrt 2, half width 12.706 * sqrt 2 / sqrt 2 = 12.7 on a mean of 100.
  const std::vector<double> values = {99, 101};
  EXPECT_TRUE(is_precise({.relative_half_width = 0.128}, values));
  EXPECT_FALSE(is_precise({.relative_half_width = 0.126}, values));
  EXPECT_FALSE(is_precise({.relative_half_width = 1e9}, std::vector<double>{1}));
}

TEST(ReplicateUntil, StopsAtTheFirstLookThatIsPreciseWhateverTheThreads) {
  const RunPlan plan = md1_plan(0.6, 200);
  const std::array<const RunPlan*, 1> plans = {&plan};
  const StoppingRule rule{.relative_half_width = 0.03};
  std::size_t expected = 0;
  for (const std::size_t jobs : {1U, 2U, 3U}) {
    Collector collector;
    Diagnostics diagnostics;
    const StoppedAt end = replicate_until(plans, rule, ttft, {.jobs = jobs, .check = true},
                                          collector.sink(), diagnostics);
    EXPECT_EQ(end.reason, StopReason::kPrecise);
    EXPECT_EQ(collector.results().size(), end.replications);
    if (expected == 0) expected = end.replications;
    EXPECT_EQ(end.replications, expected);
    std::vector<double> values;
    for (const auto& [key, seen] : collector.results()) values.push_back(seen.ttft_s);
    EXPECT_TRUE(is_precise(rule, values));
    values.resize(end.replications - rule.batch);
    EXPECT_TRUE(values.size() < rule.first_look || !is_precise(rule, values));
  }
  EXPECT_GT(expected, rule.first_look) << "the case is too easy to test the batches";
}

TEST(ReplicateUntil, SaysWhyItGaveUp) {
  const RunPlan plan = md1_plan(0.8, 50);
  const std::array<const RunPlan*, 1> plans = {&plan};
  const ReplicationSink ignore = [](const Replication&, RunResult&&) {};
  Diagnostics diagnostics;
  const StoppedAt limit = replicate_until(plans, {.relative_half_width = 1e-6, .limit = 12}, ttft,
                                          {}, ignore, diagnostics);
  EXPECT_EQ(limit.reason, StopReason::kLimit);
  EXPECT_EQ(limit.replications, 12U);
  const StoppedAt empty = replicate_until(
      plans, {}, [](const RunResult&) { return std::optional<double>(); }, {}, ignore, diagnostics);
  EXPECT_EQ(empty.reason, StopReason::kNoData);
}

}  // namespace
}  // namespace routesim::sim
