#include "tools/study/sweep/sweep_run.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "base/run_error.h"

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
              Experiment& experiment)
      : plan_(plan), sink_(sink), experiment_(experiment) {
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
    experiment.progress().questions = rows.size();
    for (const Work& work : work_) experiment.progress().cost += work.cost;
  }

  void run() {
    experiment_.each(work_.size(),
                     [this](std::size_t i, Diagnostics& found) { run(work_[i], found); });
  }

 private:
  void run(const Work& work, Diagnostics& found) {
    ActiveRow& active = *work.active;
    const std::shared_ptr<const sim::RunPlan> plan = plan_of(active, found);
    if (plan == nullptr) return;
    const SweepRow& row = plan_.rows[active.row];
    std::optional<sim::RunResult> result;
    try {
      result = experiment_.run(
          {.plan = *plan, .seed = row.seed + work.replication, .goals = goals_of(plan->scenario)},
          found);
    } catch (RunError& e) {
      e.diagnostic().message += ", in " + plan_.grid.label(plan_.grid.cells[row.cell]);
      throw;
    }
    if (!result) return;
    experiment_.progress().cost_done += work.cost;
    finish(active, work.replication, numbers_of(*result, plan_.metrics), found);
  }

  /// The row's plan, prepared by whoever needs it first.
  std::shared_ptr<const sim::RunPlan> plan_of(ActiveRow& active, Diagnostics& found) {
    const std::lock_guard lock(active.mutex);
    if (active.plan != nullptr) return active.plan;
    std::optional<sim::RunPlan> plan = prepare_row(plan_, plan_.rows[active.row], found);
    if (plan) active.plan = std::make_shared<const sim::RunPlan>(std::move(*plan));
    return active.plan;
  }

  void finish(ActiveRow& active, std::size_t replication, RunNumbers numbers, Diagnostics& found) {
    {
      const std::lock_guard lock(active.mutex);
      active.runs[replication] = std::move(numbers);
      if (--active.left > 0) return;
    }
    active.plan = nullptr;
    SweepRowRecord record = row_record(plan_, active.row, active.runs);
    active.runs = {};
    const std::lock_guard lock(sink_mutex_);
    if (experiment_.stopped()) return;
    const std::string error = sink_(active.row, std::move(record));
    if (!error.empty()) return found.error({}, "", error);
    ++experiment_.progress().answered;
    experiment_.tell();
  }

  const SweepPlan& plan_;
  const RowSink& sink_;
  Experiment& experiment_;
  std::vector<std::unique_ptr<ActiveRow>> active_;
  std::vector<Work> work_;
  std::mutex sink_mutex_;
};

}  // namespace

void run_rows(const SweepPlan& plan, const std::vector<std::size_t>& rows, const RowSink& sink,
              Experiment& experiment) {
  SweepRunner(plan, rows, sink, experiment).run();
}

}  // namespace routesim::tools
