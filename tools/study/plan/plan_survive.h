// Windows of a plan: a steady fleet to which something happens, and the requests that feel it.
#pragma once

#include <vector>

#include "sim/plan/resolve.h"
#include "tools/study/plan/plan_goal.h"

namespace routesim::tools {

/// The window without `window` in the file lasts no longer, whatever the fleet needs.
inline constexpr Duration kLongestWindow = Duration::seconds(3600);

/// Until the last server that `events` touch is one that the router sends to again, by a dry run of
/// the fleet without requests; 0 where nothing comes back. O(events and starts of servers).
Duration recovery_time(const sim::RunPlan& plan, std::vector<sim::FleetEventConfig> events);

/// A steady plan with what happens in it.
struct SurvivalPlan {
  sim::RunPlan plan;
  Duration window;    ///< Judged from the beginning of the events' clock on.
  Duration recovery;  ///< recovery_time(): longer than the window where that ends before.
};

/// The measured stage of `steady`, which holds `rate`, becomes the window, and what was sent within
/// `lead` before it: requests under way when it begins are its requests, too. Servers that the
/// fleet does not have, since it is smaller than any of the space, cannot fail.
SurvivalPlan survival_plan(const sim::RunPlan& steady, const PlanSurvival& survival, double rate,
                           Duration lead);

/// The goals of a window: those of the plan without those that only a steady run has.
std::vector<PlanGoal> window_goals(const std::vector<PlanGoal>& goals,
                                   const PlanSurvival& survival);

/// Reports what cannot happen to `plan`, the smallest fleet, in entry `index` of `survives`.
/// `diagnostics` is empty.
void check_survival(const sim::RunPlan& plan, const PlanSurvival& survival, std::size_t index,
                    const Provenance& provenance, Diagnostics& diagnostics);

}  // namespace routesim::tools
