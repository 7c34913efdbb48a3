#include "tools/study/validate/stated_load.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "models/catalogue.h"
#include "tools/ingest/run_checks.h"

namespace routesim::tools {

namespace {

constexpr std::size_t kSample = 256;     ///< Requests whose lengths are averaged.
constexpr double kRateTolerance = 0.01;  ///< Result files round rates.
constexpr double kLengthTolerance = 0.2;
constexpr double kLengthSlack = 64;

/// The same stage of load, as the plan has it. Absent where the load has no such number.
struct PlannedLoad {
  std::optional<double> request_rate, requests, max_concurrency;
  double input_tokens = 0, output_tokens = 0;  ///< Means; 0 when nothing is sent by itself.
};

PlannedLoad planned_load(const sim::RunPlan& plan) {
  PlannedLoad out;
  Diagnostics ignored;  // The plan's load was made before.
  const auto load = plan.make_load(plan.scenario.seed, ignored);
  if (load == nullptr) return out;
  std::vector<workloads::StageInfo> stages;
  for (const workloads::StageInfo& stage : load->stages())
    if (stage.reported) stages.push_back(stage);
  if (stages.size() != 1) return out;
  const workloads::StageInfo& stage = stages.front();
  const bool open = stage.requested_rate > 0 && std::isfinite(stage.requested_rate);
  out.request_rate = open ? stage.requested_rate : std::numeric_limits<double>::infinity();
  if (stage.requests > 0) out.requests = static_cast<double>(stage.requests);
  const std::int64_t most = std::max(stage.concurrency, stage.in_flight_cap);
  if (most > 0) out.max_concurrency = static_cast<double>(most);
  const std::vector<workloads::Request> sample = first_requests(plan, kSample);
  for (const workloads::Request& request : sample) {
    const auto n = static_cast<double>(sample.size());
    out.input_tokens += static_cast<double>(request.prompt->tokens) / n;
    out.output_tokens += static_cast<double>(request.output_tokens) / n;
  }
  return out;
}

std::string shown(double value) { return std::isinf(value) ? "inf" : number_text(value); }

/// Says what differs between one result and the plan.
class Comparison {
 public:
  Comparison(const PlannedLoad& planned, bool force, Diagnostics& diagnostics)
      : planned_(planned), force_(force), diagnostics_(diagnostics) {}

  void compare(const StatedLoad& stated) {
    using Stated = std::optional<StatedLoad::At<double>>;
    const auto exact = [&](const char* key, const Stated& theirs, const std::optional<double>& ours,
                           double tolerance) {
      if (!theirs || !ours || same(theirs->value, *ours, tolerance)) return;
      differ(theirs->where, key, shown(theirs->value), shown(*ours));
    };
    exact("request_rate", stated.request_rate, planned_.request_rate, kRateTolerance);
    exact("num_prompts", stated.requests, planned_.requests, 0);
    exact("max_concurrency", stated.max_concurrency, planned_.max_concurrency, 0);
    const auto about = [&](const char* key, const Stated& theirs, double ours) {
      if (!theirs || ours <= 0) return;
      if (std::abs(theirs->value - ours) <= kLengthSlack) return;
      if (same(theirs->value, ours, kLengthTolerance)) return;
      differ(theirs->where, key, number_text(std::round(theirs->value)) + " per request",
             number_text(std::round(ours)));
    };
    about("total_input_tokens", stated.input_tokens, planned_.input_tokens);
    about("total_output_tokens", stated.output_tokens, planned_.output_tokens);
  }

  void differ(const SourceLocation& where, const std::string& key, const std::string& theirs,
              const std::string& ours) {
    const std::string what = "is of another load than the scenario's (got " + theirs +
                             ", the scenario has " + ours + ")";
    if (force_)
      diagnostics_.warning(where, key, what);
    else
      diagnostics_.error(where, key, what,
                         "name the result of this scenario's load, or compare anyway by --force");
  }

 private:
  static bool same(double a, double b, double tolerance) {
    return a == b || std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
  }

  const PlannedLoad& planned_;
  bool force_;
  Diagnostics& diagnostics_;
};

/// A model that the catalogue does not know can be told by its name only.
bool same_model(const std::string& a, const std::string& b, const models::Catalogue& catalogue) {
  const models::ModelSpec* const first = catalogue.find_model(a);
  const models::ModelSpec* const second = catalogue.find_model(b);
  if (first == nullptr || second == nullptr) return true;  // A folder, or a name of one's own.
  return first == second;
}

}  // namespace

void compare_stated_load(const sim::RunPlan& plan, const models::Catalogue& catalogue,
                         const MeasuredTable& table, bool force, Diagnostics& diagnostics) {
  if (table.loads.empty()) return;
  const PlannedLoad planned = planned_load(plan);
  Comparison comparison(planned, force, diagnostics);
  for (const StatedLoad& stated : table.loads) {
    const bool known = std::any_of(plan.pools.begin(), plan.pools.end(), [&](const auto& pool) {
      return !stated.model || same_model(stated.model->value, pool.config.model, catalogue);
    });
    if (!known && !plan.pools.empty())
      comparison.differ(stated.model->where, "model_id", printable(stated.model->value),
                        printable(plan.pools.front().config.model));
    comparison.compare(stated);
  }
}

}  // namespace routesim::tools
