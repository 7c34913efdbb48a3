#include "tools/study/experiment/replicate.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "tools/results/statistics.h"

namespace routesim::tools {

namespace {

/// The watched values of a plan, by replication.
using Watched = std::vector<std::optional<double>>;

/// Whether to end after these runs of every plan, and why.
std::optional<StopReason> look(const StoppingRule& rule, const std::vector<Watched>& watched) {
  bool precise = true;
  for (const Watched& plan : watched) {
    std::vector<double> values;
    for (const std::optional<double>& value : plan) {
      if (!value) return StopReason::kNoData;
      values.push_back(*value);
    }
    precise = precise && is_precise(rule, values);
  }
  if (precise) return StopReason::kPrecise;
  const bool at_limit = watched.empty() || watched.front().size() >= rule.limit;
  return at_limit ? std::optional(StopReason::kLimit) : std::nullopt;
}

}  // namespace

void replicate(const Replicated& what, const ReplicationRange& range, const ReplicationWork& work,
               Experiment& experiment) {
  const std::size_t plans = what.plans;
  // First runs that keep their order are one job.
  const bool chained = what.first_in_order && range.first == 0 && range.count > 0 && plans > 0;
  const std::size_t skipped = chained ? plans - 1 : 0;
  experiment.each(plans * range.count - skipped, [&](std::size_t job, Diagnostics& found) {
    if (chained && job == 0) {
      for (std::size_t plan = 0; plan < plans && !found.has_errors(); ++plan)
        if (!experiment.stopped()) work({.plan = plan, .number = 0}, found);
      return;
    }
    const std::size_t run = job + skipped;
    const std::size_t round = run / plans;
    // Every other round goes backwards, so that a core which got a long variant gets a short one
    // next and all cores end together.
    const std::size_t plan = round % 2 == 0 ? run % plans : plans - 1 - run % plans;
    work({.plan = plan, .number = range.first + round}, found);
  });
}

std::size_t next_look(const StoppingRule& rule, std::size_t done) {
  const std::size_t next = done < rule.first_look ? rule.first_look : done + rule.batch;
  return std::min(next, rule.limit);
}

bool is_precise(const StoppingRule& rule, std::span<const double> values) {
  const sim::Estimate e = sim::estimate(values);
  return e.half_width <= rule.relative_half_width * std::abs(e.mean);
}

StoppedAt replicate_until(const Replicated& what, const StoppingRule& rule, const WatchedWork& work,
                          Experiment& experiment) {
  ROUTESIM_CHECK(rule.batch > 0 && rule.limit > 0, "a stopping rule must make headway");
  std::vector<Watched> watched(what.plans);
  for (std::size_t done = 0;;) {
    const std::size_t next = next_look(rule, done);
    for (Watched& plan : watched) plan.resize(next);
    const auto watch = [&](const Replication& r, Diagnostics& found) {
      watched[r.plan][r.number] = work(r, found);
    };
    replicate(what, {.first = done, .count = next - done}, watch, experiment);
    done = next;
    if (const std::optional<StopReason> reason = look(rule, watched)) return {*reason, next};
  }
}

}  // namespace routesim::tools
