#include "tools/study/sweep/sweep_run.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "sim/observe/metrics_collector.h"
#include "tools/results/goodput.h"
#include "tools/study/parallel.h"
#include "tools/study/sweep/sweep_row.h"

namespace routesim::tools {

namespace {

/// A row under way.
struct ActiveRow {
  std::size_t row = 0;
  std::mutex mutex;  ///< Held while the plan is prepared and when a run is counted.
  std::shared_ptr<const sim::RunPlan> plan;
  std::vector<RunNumbers> runs;  ///< By replication.
  std::size_t left = 0;
};

struct Work {
  ActiveRow* active = nullptr;
  std::size_t replication = 0;
  double cost = 0;
};

class SweepRunner {
 public:
  SweepRunner(const SweepPlan& plan, const std::vector<std::size_t>& rows, const RowSink& sink,
              SweepProgress& progress, Diagnostics& diagnostics)
      : plan_(plan), sink_(sink), progress_(progress), diagnostics_(diagnostics) {
    const auto replications = static_cast<std::size_t>(plan.config.replications);
    for (const std::size_t row : rows) {
      ActiveRow& active = *active_.emplace_back(std::make_unique<ActiveRow>());
      active.row = row;
      active.runs.resize(replications);
      active.left = replications;
      for (std::size_t r = 0; r < replications; ++r)
        work_.push_back({.active = &active, .replication = r, .cost = plan.rows[row].cost});
    }
    std::stable_sort(work_.begin(), work_.end(),
                     [](const Work& a, const Work& b) { return a.cost > b.cost; });
    progress.rows = rows.size();
    for (const Work& work : work_) progress.cost += work.cost;
  }

  void run(std::size_t jobs) {
    sim::for_each_index(work_.size(), jobs, [this](std::size_t i) { run(work_[i]); });
  }

 private:
  void run(const Work& work) {
    if (progress_.run.stop) return;
    ActiveRow& active = *work.active;
    const std::shared_ptr<const sim::RunPlan> plan = plan_of(active);
    if (plan == nullptr) return;
    Diagnostics late;
    RunNumbers numbers;
    {
      const std::uint64_t seed = plan_.rows[active.row].seed + work.replication;
      const GoodputGoals goals = goals_of(plan->scenario);
      const sim::WorkloadConfig& workload = plan->scenario.workload;
      GoodputObserver goodput(goals, workload.output_token_scale,
                              sim::client_sees_tokens(workload));
      std::vector<sim::Observer*> observers;
      if (!goals.empty()) observers.push_back(&goodput);
      sim::Simulation simulation(
          *plan, {.seed = seed, .progress = &progress_.run, .observers = observers}, late);
      if (late.has_errors()) {
        fail(late);
        return;
      }
      sim::RunResult result = simulation.run();
      if (!goals.empty()) goodput.complete(result);
      numbers = numbers_of(result, plan_.metrics);
    }
    // A run that was stopped is not a result.
    if (progress_.run.stop) return;
    progress_.cost_done += work.cost;
    finish(active, work.replication, std::move(numbers));
  }

  /// The row's plan, prepared by whoever needs it first.
  std::shared_ptr<const sim::RunPlan> plan_of(ActiveRow& active) {
    const std::lock_guard lock(active.mutex);
    if (active.plan != nullptr) return active.plan;
    Diagnostics found;
    std::optional<sim::RunPlan> plan = prepare_row(plan_, plan_.rows[active.row], found);
    if (!plan) {
      fail(found);
      return nullptr;
    }
    active.plan = std::make_shared<const sim::RunPlan>(std::move(*plan));
    return active.plan;
  }

  void finish(ActiveRow& active, std::size_t replication, RunNumbers numbers) {
    {
      const std::lock_guard lock(active.mutex);
      active.runs[replication] = std::move(numbers);
      if (--active.left > 0) return;
    }
    active.plan = nullptr;
    std::string tail = row_tail(plan_, plan_.rows[active.row], active.runs);
    active.runs = {};
    const std::lock_guard lock(sink_mutex_);
    if (progress_.run.stop) return;
    const std::string error = sink_(active.row, std::move(tail));
    if (error.empty()) {
      ++progress_.rows_done;
      return;
    }
    diagnostics_.error({}, "", error);
    progress_.run.stop = true;
  }

  void fail(const Diagnostics& found) {
    const std::lock_guard lock(sink_mutex_);
    append(diagnostics_, found);
    progress_.run.stop = true;
  }

  const SweepPlan& plan_;
  const RowSink& sink_;
  SweepProgress& progress_;
  Diagnostics& diagnostics_;
  std::vector<std::unique_ptr<ActiveRow>> active_;
  std::vector<Work> work_;
  std::mutex sink_mutex_;
};

}  // namespace

void run_rows(const SweepPlan& plan, const std::vector<std::size_t>& rows, std::size_t jobs,
              const RowSink& sink, SweepProgress& progress, Diagnostics& diagnostics) {
  SweepRunner(plan, rows, sink, progress, diagnostics).run(jobs);
}

}  // namespace routesim::tools
