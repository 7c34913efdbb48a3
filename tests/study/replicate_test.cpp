// Runs of many candidates: threads, replications, and what their numbers say.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/closed_form/queue_model.h"
#include "tools/results/statistics.h"
#include "tools/study/experiment/experiment.h"

namespace routesim::tools {
namespace {

TEST(ForEachIndex, CallsEveryIndexOnce) {
  for (const std::size_t jobs : {0U, 1U, 2U, 7U}) {
    std::vector<std::atomic<int>> calls(100);
    for_each_index(calls.size(), jobs, [&](std::size_t i) { ++calls[i]; });
    for (const std::atomic<int>& c : calls) EXPECT_EQ(c.load(), 1);
  }
  for_each_index(0, 4, [](std::size_t) { FAIL(); });
}

TEST(ForEachIndex, RethrowsTheLowestFailureForAnyNumberOfThreads) {
  for (const std::size_t jobs : {1U, 2U, 8U}) {
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::string what;
      try {
        for_each_index(64, jobs, [](std::size_t i) {
          if (i >= 9) throw std::runtime_error(std::to_string(i));
        });
      } catch (const std::runtime_error& e) {
        what = e.what();
      }
      EXPECT_EQ(what, "9") << jobs << " jobs";
    }
  }
}

TEST(ForEachIndex, RunsWhatIsBelowAFailure) {
  for (const std::size_t jobs : {1U, 2U, 4U}) {
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::vector<std::atomic<int>> calls(20);
      EXPECT_THROW(for_each_index(calls.size(), jobs,
                                  [&](std::size_t i) {
                                    ++calls[i];
                                    if (i == 5) throw std::runtime_error("5");
                                  }),
                   std::runtime_error);
      for (std::size_t i = 0; i <= 5; ++i) EXPECT_EQ(calls[i].load(), 1);
    }
  }
}

TEST(ForEachIndex, OneThreadKeepsTheOrder) {
  std::vector<std::size_t> order;
  for_each_index(5, 1, [&](std::size_t i) { order.push_back(i); });
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

TEST(DefaultJobs, IsAtLeastOne) { EXPECT_GE(default_jobs(), 1U); }

using sim::RunPlan;
using sim::testing::md1_plan;

struct Seen {
  std::uint64_t seed = 0;
  std::uint64_t fingerprint = 0;
  double ttft_s = 0;
  bool operator==(const Seen&) const = default;
};
using Results = std::map<std::pair<std::size_t, std::size_t>, Seen>;

/// Plans with seeds from 1 on, and what their runs leave, by plan and replication.
class Runs {
 public:
  explicit Runs(std::vector<const RunPlan*> plans, std::size_t jobs = 1)
      : plans_(std::move(plans)), experiment_(jobs, progress_, diagnostics_) {}

  /// One run; its mean TTFT.
  std::optional<double> run(const Replication& r, Diagnostics& found) {
    const auto result =
        experiment_.run({.plan = *plans_[r.plan], .seed = 1 + r.number, .check = true}, found);
    if (!result) return std::nullopt;
    const std::lock_guard lock(mutex_);
    const double ttft_s = result->summary.time_to_first_token.mean();
    const bool is_new =
        results_.insert({{r.plan, r.number}, {result->seed, result->fingerprint, ttft_s}}).second;
    EXPECT_TRUE(is_new) << "run twice";
    if (results_.size() == stop_after_) progress_.run.stop = true;
    return ttft_s;
  }

  void replicate(const ReplicationRange& range) {
    tools::replicate({.plans = plans_.size()}, range, work(), experiment_);
  }

  StoppedAt replicate_until(const StoppingRule& rule) {
    return tools::replicate_until({.plans = plans_.size()}, rule, work(), experiment_);
  }

  void stop_after(std::size_t runs) { stop_after_ = runs; }
  Experiment& experiment() { return experiment_; }
  const Diagnostics& diagnostics() const { return diagnostics_; }
  const Results& results() const { return results_; }

 private:
  WatchedWork work() {
    return [this](const Replication& r, Diagnostics& found) { return run(r, found); };
  }

  std::vector<const RunPlan*> plans_;
  ExperimentProgress progress_;
  Diagnostics diagnostics_;
  Experiment experiment_;
  std::mutex mutex_;
  Results results_;
  std::size_t stop_after_ = 0;
};

TEST(Replicate, GivesTheSameResultsForAnyNumberOfThreads) {
  const RunPlan slow = md1_plan(0.8, 300);
  const RunPlan quick = md1_plan(0.4, 300);
  Results expected;
  for (const std::size_t jobs : {1U, 2U, 5U}) {
    Runs runs({&slow, &quick}, jobs);
    runs.replicate({.first = 2, .count = 4});
    EXPECT_TRUE(runs.diagnostics().items().empty());
    ASSERT_EQ(runs.results().size(), 8U);
    EXPECT_EQ(runs.results().begin()->second.seed, 3U) << "replication 2 of seed 1";
    if (expected.empty()) expected = runs.results();
    EXPECT_EQ(runs.results(), expected) << jobs;
  }
  EXPECT_NE(expected.at({0, 2}).fingerprint, expected.at({0, 3}).fingerprint);
}

TEST(Replicate, AStoppedExperimentBeginsNoRun) {
  const RunPlan plan = md1_plan(0.5, 1000);
  Runs runs({&plan});
  runs.stop_after(3);
  EXPECT_THROW(runs.replicate({.first = 0, .count = 50}), Stopped);
  EXPECT_EQ(runs.results().size(), 3U);
}

TEST(Replicate, FirstRunsKeepTheirOrderWhenAsked) {
  for (const std::size_t jobs : {1U, 2U, 4U}) {
    Runs runs({}, jobs);
    std::mutex mutex;
    std::vector<std::size_t> firsts;
    std::size_t all = 0;
    replicate(
        {.plans = 3, .first_in_order = true}, {.first = 0, .count = 3},
        [&](const Replication& r, Diagnostics&) {
          const std::lock_guard lock(mutex);
          ++all;
          if (r.number == 0) firsts.push_back(r.plan);
        },
        runs.experiment());
    EXPECT_EQ(firsts, (std::vector<std::size_t>{0, 1, 2}));
    EXPECT_EQ(all, 9U);
  }
}

/// Ends the experiment with the first request.
class Stopper final : public sim::Observer {
 public:
  explicit Stopper(ExperimentProgress& progress) : progress_(progress) {}
  void on_done(const sim::RequestRecord&) override { progress_.run.stop = true; }

 private:
  ExperimentProgress& progress_;
};

TEST(Experiment, HandsOverAPartialRunOnlyWhenAsked) {
  const RunPlan plan = md1_plan(0.5, 1000);
  for (const bool partial : {false, true}) {
    Runs runs({});
    Stopper stopper(runs.experiment().progress());
    Diagnostics found;
    const auto result =
        runs.experiment().run({.plan = plan, .partial = partial, .observers = {&stopper}}, found);
    ASSERT_EQ(result.has_value(), partial);
    if (partial) {
      EXPECT_LT(result->summary.requests, 1000);
    }
  }
}

TEST(Experiment, ReportsTheErrorsOfTheLowestRunThatHasAny) {
  RunPlan plan = md1_plan(0.5, 10);
  const auto make = plan.make_load;
  plan.make_load = [make](std::uint64_t seed, Diagnostics& d) {
    if (seed >= 3) d.error({}, "workload", "cannot draw seed " + std::to_string(seed));
    return make(seed, d);
  };
  for (const std::size_t jobs : {1U, 4U}) {
    Runs runs({&plan}, jobs);
    EXPECT_THROW(runs.replicate({.first = 0, .count = 6}), Stopped);
    ASSERT_EQ(runs.diagnostics().items().size(), 1U);
    EXPECT_EQ(runs.diagnostics().items().front().message, "cannot draw seed 3");
  }
}

TEST(Experiment, ALaterErrorOfAHigherRunIsNotTheOneThatIsTold) {
  Runs runs({}, 2);
  std::atomic<bool> low_has_begun{false}, high_has_begun{false};
  const auto wait_for = [](const std::atomic<bool>& flag) {
    while (!flag) std::this_thread::yield();
  };
  const auto work = [&](std::size_t i, Diagnostics& found) {
    (i == 0 ? low_has_begun : high_has_begun) = true;
    wait_for(i == 0 ? high_has_begun : low_has_begun);
    // Run 1 was under way when run 0 failed, and fails after it.
    if (i == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    found.error({}, "", "run " + std::to_string(i));
  };
  EXPECT_THROW(runs.experiment().each(2, work), Stopped);
  ASSERT_EQ(runs.diagnostics().items().size(), 1U);
  EXPECT_EQ(runs.diagnostics().items().front().message, "run 0");
}

/// A load that breaks an invariant of the simulation when its seed is 3.
TEST(Experiment, NamesTheVariantAndTheSeedThatBreaks) {
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
  Runs runs({&plan}, 3);
  std::string what;
  try {
    runs.replicate({.first = 0, .count = 6});
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
  EXPECT_TRUE(is_precise({}, std::vector<double>{0, 0, 0})) << "no spread, whatever the mean";
}

TEST(ReplicateUntil, StopsAtTheFirstLookThatIsPreciseWhateverTheThreads) {
  const RunPlan plan = md1_plan(0.6, 200);
  const StoppingRule rule{.relative_half_width = 0.03};
  std::size_t expected = 0;
  for (const std::size_t jobs : {1U, 2U, 3U}) {
    Runs runs({&plan}, jobs);
    const StoppedAt end = runs.replicate_until(rule);
    EXPECT_EQ(end.reason, StopReason::kPrecise);
    EXPECT_EQ(runs.results().size(), end.replications);
    if (expected == 0) expected = end.replications;
    EXPECT_EQ(end.replications, expected);
    std::vector<double> values;
    for (const auto& [key, seen] : runs.results()) values.push_back(seen.ttft_s);
    EXPECT_TRUE(is_precise(rule, values));
    values.resize(end.replications - rule.batch);
    EXPECT_TRUE(values.size() < rule.first_look || !is_precise(rule, values));
  }
  EXPECT_GT(expected, rule.first_look) << "the case is too easy to test the batches";
}

TEST(ReplicateUntil, SaysWhyItGaveUp) {
  const RunPlan plan = md1_plan(0.8, 50);
  Runs runs({&plan});
  const StoppedAt limit = runs.replicate_until({.relative_half_width = 1e-6, .limit = 12});
  EXPECT_EQ(limit.reason, StopReason::kLimit);
  EXPECT_EQ(limit.replications, 12U);
  const StoppedAt empty = replicate_until(
      {}, {}, [](const Replication&, Diagnostics&) { return std::optional<double>(); },
      runs.experiment());
  EXPECT_EQ(empty.reason, StopReason::kNoData);
}

}  // namespace
}  // namespace routesim::tools
