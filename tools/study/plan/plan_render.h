// A plan's answer for people and for programs.
#pragma once

#include <string>

#include "tools/study/plan/plan_search.h"

namespace routesim::tools {

/// The verdict, the plans as a table, what binds each, and how they were found.
std::string render_plan_text(const PlanSpace& space, const PlanResult& result);

/// The same as one JSON object.
std::string render_plan_json(const PlanSpace& space, const PlanResult& result);

}  // namespace routesim::tools
