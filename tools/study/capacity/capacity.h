// The highest rate of a load that a fleet sustains, from simulated steady states.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/plan/resolve.h"
#include "tools/results/report.h"
#include "tools/study/capacity/load_watch.h"
#include "tools/study/experiment/experiment.h"

namespace routesim::tools {

struct CapacityRules {
  double guess = 1;                  ///< Requests/s, > 0: where to look first.
  std::int64_t sends = 6'000;        ///< Of one probe.
  std::int64_t most_sends = 60'000;  ///< Of all probes together.
  double narrow = 1.09;              ///< high / low at which the search ends.
};

/// Brackets the rate with runs that end when they have told enough. Deterministic. Errors of the
/// plan's set-up go to `found`. Throws Stopped after a stop.
Capacity find_capacity(const sim::RunPlan& plan, const CapacityRules& rules, Experiment& experiment,
                       Diagnostics& found);

/// Where to look, and how long, after a run of the load as it is. The guess is 0 without a success.
CapacityRules capacity_rules(const sim::RunResult& result);

/// A rate near the capacity, from what the stages of a run sent and answered; 0 without a success.
double guess_capacity(const sim::RunResult& result);

/// One run at `rate`; see LoadWatch.
struct RateProbe {
  std::string why_not = {};  ///< Why the load has no rate to hold; empty where it has one.
  double rate = 0;
  Sustains sustains = Sustains::kOpen;
  SteadyWindow window;
  Limit limit = Limit::kNone;
  std::int64_t sent = 0;
  double warm_up_s = 0;  ///< When the warm-up has ended.
  double answer_s = 0;   ///< How long an answer takes, by what is in flight (Little's law).
};
RateProbe probe_rate(const sim::RunPlan& plan, const WatchRules& rules, Experiment& experiment,
                     Diagnostics& found);

}  // namespace routesim::tools
