#include "tools/study/explain/decision_study.h"

#include <algorithm>
#include <cmath>

#include "sim/simulation.h"
#include "tools/results/text_table.h"
#include "tools/study/parallel.h"

namespace routesim::tools {

namespace {

/// Takes one decision's record and ends the run.
class Inspector final : public sim::DecisionProbe {
 public:
  Inspector(std::int64_t request, sim::Progress& progress)
      : request_(request), progress_(progress) {}
  bool wants(const workloads::Request& request) override {
    return static_cast<std::int64_t>(request.id.value()) == request_;
  }
  bool wants_omniscient() const override { return true; }
  void on_decision(const sim::DecisionRecord& record) override {
    record_ = record;
    progress_.stop = true;
  }
  const std::optional<sim::DecisionRecord>& record() const { return record_; }

 private:
  std::int64_t request_;
  sim::Progress& progress_;
  std::optional<sim::DecisionRecord> record_;
};

/// Sends one request to a given row.
class Redirector final : public sim::DecisionProbe {
 public:
  Redirector(std::int64_t request, std::int64_t row) : request_(request), row_(row) {}
  bool wants(const workloads::Request&) override { return false; }
  void on_decision(const sim::DecisionRecord&) override {}
  std::int64_t forced_row(const workloads::Request& request) override {
    return static_cast<std::int64_t>(request.id.value()) == request_ ? row_ : -1;
  }

 private:
  std::int64_t request_, row_;
};

class OneRequest final : public sim::Observer {
 public:
  explicit OneRequest(std::int64_t request) : request_(request) {}
  void on_done(const sim::RequestRecord& record) override {
    if (record.id == request_) record_ = record;
  }
  const std::optional<sim::RequestRecord>& record() const { return record_; }

 private:
  std::int64_t request_;
  std::optional<sim::RequestRecord> record_;
};

Alternative try_row(const sim::RunPlan& plan, const sim::DecisionRecord& decision,
                    std::uint32_t row) {
  // The real choice is not forced: its run is the run everybody else gets.
  Redirector redirect(decision.request,
                      row == decision.picked ? -1 : static_cast<std::int64_t>(row));
  OneRequest watch(decision.request);
  Diagnostics diagnostics;
  sim::Simulation simulation(
      plan, {.seed = plan.scenario.seed, .probe = &redirect, .observers = {&watch}}, diagnostics);
  const sim::RunResult result = simulation.run();
  Alternative a{.row = row, .endpoint = decision.endpoints[row].name};
  a.mean_ttft_s = result.summary.time_to_first_token.mean();
  a.mean_latency_s = result.summary.request_latency.mean();
  if (!watch.record()) return a;
  const sim::RequestRecord& r = *watch.record();
  a.succeeded = r.outcome == workloads::Outcome::kSuccess;
  a.ttft_s = (r.first_token - r.sent).to_seconds();
  a.latency_s = (r.end - r.sent).to_seconds();
  a.cached_tokens = r.cached_tokens;
  return a;
}

/// The rows worth a run: the pick, the omniscient one, then candidates by score and by cache.
std::vector<std::uint32_t> rows_to_try(const DecisionStudy& study) {
  const sim::DecisionRecord& r = study.record;
  std::vector<std::uint32_t> rows;
  for (std::uint32_t row = 0; row < r.endpoints.size(); ++row)
    if (!r.scored || std::isfinite(r.totals[row])) rows.push_back(row);
  const auto rank = [&](std::uint32_t row) {
    const bool named = row == r.picked || static_cast<std::int64_t>(row) == study.omniscient;
    return std::tuple(!named, r.scored ? -r.totals[row] : 0.0, -r.endpoints[row].cached_tokens);
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return rank(a) < rank(b); });
  if (rows.size() > kMostAlternatives) rows.resize(kMostAlternatives);
  std::sort(rows.begin(), rows.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(a != r.picked, a) < std::pair(b != r.picked, b);
  });
  return rows;
}

}  // namespace

std::optional<DecisionStudy> study_decision(const sim::RunPlan& plan, std::int64_t request,
                                            std::size_t jobs, Diagnostics& diagnostics) {
  sim::Progress progress;
  Inspector inspector(request, progress);
  {
    sim::Simulation simulation(
        plan,
        {.seed = plan.scenario.seed, .progress = &progress, .probe = &inspector, .observers = {}},
        diagnostics);
    if (diagnostics.has_errors()) return std::nullopt;
    (void)simulation.run();
  }
  if (!inspector.record()) {
    diagnostics.error({.file = "--request"}, "",
                      "the run has no request " + std::to_string(request) + " that was routed",
                      "`run --records FILE` lists them; they count from 0");
    return std::nullopt;
  }
  DecisionStudy study;
  study.scenario = plan.scenario.name;
  study.variant = plan.scenario.variant;
  study.seed = plan.scenario.seed;
  study.record = *inspector.record();
  if (study.record.scored && study.record.omniscient_decision.routed())
    study.omniscient = study.record.omniscient_decision.primary.value();
  if (!study.record.routed) return study;
  const std::vector<std::uint32_t> rows = rows_to_try(study);
  std::size_t candidates = 0;
  for (const double total : study.record.totals)
    candidates += !study.record.scored || std::isfinite(total) ? 1 : 0;
  study.all_tried = rows.size() == candidates;
  study.alternatives.resize(rows.size());
  sim::for_each_index(rows.size(), jobs, [&](std::size_t i) {
    study.alternatives[i] = try_row(plan, study.record, rows[i]);
  });
  return study;
}

std::string why(const DecisionStudy& study) {
  const sim::DecisionRecord& r = study.record;
  if (!r.routed) return "The router turned the request away.";
  const std::string& name = r.endpoints[r.picked].name;
  if (!r.scored) return name + " was the balancer's choice; it scores nothing.";
  const double own = r.totals[r.picked];
  double best_other = -INFINITY;
  std::uint32_t runner_up = r.picked;
  int ties = 0;
  for (std::uint32_t row = 0; row < r.totals.size(); ++row) {
    if (row == r.picked || !std::isfinite(r.totals[row])) continue;
    ties += r.totals[row] == own ? 1 : 0;
    if (r.totals[row] > best_other) {
      best_other = r.totals[row];
      runner_up = row;
    }
  }
  if (runner_up == r.picked) return name + " was the only candidate.";
  if (best_other > own)
    return name + " was drawn although " + r.endpoints[runner_up].name + " scored " +
           fixed_text(best_other - own, 4) + " more: the picker does not always take the highest.";
  if (ties > 0)
    return name + " was drawn among " + std::to_string(ties + 1) +
           " endpoints with the same score.";
  return name + " won by " + fixed_text(own - best_other, 4) + " over " +
         r.endpoints[runner_up].name + ".";
}

double regret_s(const DecisionStudy& study) {
  if (study.alternatives.empty() || !study.alternatives.front().succeeded) return 0;
  double best = study.alternatives.front().ttft_s;
  for (const Alternative& a : study.alternatives)
    if (a.succeeded) best = std::min(best, a.ttft_s);
  return study.alternatives.front().ttft_s - best;
}

}  // namespace routesim::tools
