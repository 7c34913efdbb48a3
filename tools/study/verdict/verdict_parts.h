// The parts of a verdict that need no comparison: knees, overload, goals, and what to do next.
#pragma once

#include <string>
#include <vector>

#include "tools/study/verdict/run_verdict.h"
#include "tools/study/verdict/run_view.h"

namespace routesim::tools {

/// `(20.2 to 21)`, the interval of the rate; `and more` where no rate overloaded the servers.
std::string interval_text(const Capacity& capacity);

/// A stage as readers know it: `20 req/s`, `8 concurrent requests` or `stage warm`.
std::string stage_place(const VariantView& variant, std::size_t stage);

/// The stages by rate or concurrency where each has its own; else as they are.
std::vector<std::size_t> in_load_order(const VariantView& variant, std::vector<std::size_t> stages);

/// Names the stages that overload a variant: `from 20 req/s on (13 of 16 stages)`; empty for none.
std::string overload_of(const VariantView& variant);

/// How much load the variants hold, which differ in nothing but their rates.
Knee knee_of(const std::vector<const VariantView*>& variants, const std::string& name);

/// The knee of each variant; the variants of a scan of rates share one.
std::vector<Knee> knees_of(const PageRun& run);

/// `ttft ≤ 1 s, tpot ≤ 60 ms`.
std::string goals_text(const VariantView& variant);

/// In how many minutes each variant misses its goals, when, and what happened then; of more than
/// four variants the worst and the best. Nothing where neither the fleet nor the load changes.
std::vector<VerdictLine> missed_lines(const PageRun& run);

/// The basis of the variants' results, each sentence once.
std::string rests_on(const PageRun& run);

/// How far the variants are off the measured numbers of their scenario, in the stages that ended.
std::string measured_beside(const PageRun& run);

/// The servers of each variant that got no request; empty for none.
std::string idle_servers(const PageRun& run);

/// Expectations of the scenario that a scan does not judge; empty for none.
std::string not_judged(const PageRun& run);

/// `a, b`; `a, 2 replicas; a, 4 replicas` where a name has a comma.
std::string listed(const std::vector<std::string>& texts);

/// Commands that answer what the verdict leaves open.
std::vector<Step> next_steps(const PageRun& run, const Verdict& verdict);

}  // namespace routesim::tools
