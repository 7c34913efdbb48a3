// The content of a result file of `routesim plan`, as values that are described once: its JSON is
// written and read by that description, and its document is built from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/render/document.h"
#include "tools/results/result_record.h"
#include "tools/study/plan/plan_evaluate.h"

namespace routesim::tools {

struct PlanResult;

/// How the sizes of a family were searched.
enum class SizeMethod {
  /// One pool: more replicas mostly help, but thin out a prefix cache. So upwards by doubling, then
  /// halving below the first size that holds.
  kDoubling,
  kScan  ///< Several pools: one may starve the other, so every split is tried, by price.
};

/// The resource that a plan runs short of, just above the rate it holds.
struct Binding {
  std::string resource = {};  ///< `KV blocks`, ..., `hot prefix`; empty when nothing stands out.
  std::string goal;           ///< The goal that is missed first.
  std::optional<double> missed_by = 0;              ///< Its shortfall there ...
  std::optional<double> missed_by_with_double = 0;  ///< ... and with twice the resource.
};

struct PlanRecord {
  using Replicas = Named<std::int64_t>;  ///< By sized pool, in the order of the file.
  using Number = std::optional<double>;

  struct Goal {
    std::string goal, name;  ///< `ttft_ms.p99 < 500`, `ttft_ms.p99`.
    Number bound;
    GoalVerdict verdict = GoalVerdict::kOpen;
    double mean = 0, half_width = 0;  ///< Not finite where a run has no such number.
    std::vector<double> values = {};  ///< By run.
  };
  struct Fleet {
    Replicas replicas;
    double price_per_hour = 0;
  };
  /// The fleets that a plan would need if its steps were longer or shorter by the error that
  /// validation found for their class.
  struct Band {
    double fraction = 0;  ///< step_time_band() of the class.
    /// Bought with steps 1 + fraction, or 1 - fraction, times as long; none where no size holds.
    std::optional<Fleet> longer, shorter;
  };
  struct Capacity {
    double band = 0;
    bool holds_with_fewer = false, holds_with_more = false;
  };
  struct Without {
    double output_tokens_per_s = 0, request_latency_s = 0;
    std::vector<Goal> goals;
  };
  struct Memory {
    double gib = 0;  ///< Of one engine core.
    std::optional<Without> same_fleet_without = {};
    std::optional<Fleet> fleet_without = {};  ///< Where same_fleet_without is.
  };
  /// The fleet of a month and of those behind it, until it grows again.
  struct Month {
    std::int64_t month = 0;  ///< 0 = the first.
    double requests_per_s = 0;
    std::optional<Fleet> fleet;  ///< To buy, spares included; none where no size holds.
  };
  struct Worst {
    std::string goal, name;
    Number bound, mean, shortfall;
    std::string survival;  ///< The entry of `survives` that it is missed in; empty: none.
  };
  /// What the fleet does while something happens to it.
  struct Window {
    std::string name;
    double window_s = 0, recovery_s = 0;
    std::vector<Goal> goals;
    std::optional<Worst> unprepared_misses = {};  ///< Of the least fleet that need not survive.
  };
  struct Choice {
    std::string hardware, policy;
    Replicas replicas, needed;
    std::optional<std::int64_t> gpus, paid_gpus;
    double price_per_hour = 0;
    Number reserved_price_per_hour, spot_price_per_hour;
    models::Trust step_times = models::Trust::kFitted;
    std::vector<TrustRecord::Validation> validation;
    /// From here on absent where a plan is partial and its search did not come so far.
    std::optional<Band> step_time_band = {};
    std::optional<Capacity> kv_capacity = {};
    Number price_per_million_output_tokens, output_tokens_per_s, knee_requests_per_s = {};
    Number knee_fails_at = {};
    std::optional<std::int64_t> spare_replicas_today = {};
    Number utilisation = {};
    std::optional<Binding> binding = {};
    std::vector<Goal> goals;
    std::optional<Memory> host_memory = {};
    std::optional<Fleet> unprepared = {};  ///< Where something must be survived.
    std::optional<std::vector<Window>> survives = {};
    std::optional<std::vector<DayOfFleet>> day = {};
    std::optional<std::vector<Month>> months = {};
    Number price_of_months = {};
  };
  struct NearMiss : Fleet {
    std::vector<Goal> goals;
    std::string survival;
  };
  struct Family {
    std::string hardware, policy;
    SizeMethod method = SizeMethod::kDoubling;
    bool tried_singly = false;
    std::int64_t sizes = 0, sizes_tried = 0;
    std::optional<double> router_rate = {};      ///< Requests/s, where it is the limit.
    std::optional<std::string> impossible = {};  ///< Then what follows is absent.
    std::optional<std::string> step_times = {};
    std::optional<std::vector<std::string>> sources = {};
    std::optional<std::uint64_t> seed = {};
    std::optional<std::string> scenario_hash = {};
    std::optional<Replicas> replicas = {};
    Number price_per_hour = {};
    std::optional<NearMiss> near_miss = {};
  };
  struct Evaluated {
    std::string hardware, policy;
    Replicas replicas;
    std::int64_t gpus = 0;
    Number price_per_hour = {};
    GoalVerdict verdict = GoalVerdict::kOpen;
    std::int64_t runs = 0;
    Number ttft_p90_s, tpot_p90_s;
    std::optional<std::vector<Number>> goals = {};  ///< Means, in the order of PlanRecord::goals.
    std::optional<Worst> worst = {};
    std::optional<bool> on_front = {};  ///< Set where it meets the goals.
  };

  struct Day {
    double peak = 0, mean = 0, hours = 0, report_every_s = 0;
  };

  std::string plan, question, version, commit;
  bool met = false;
  /// `step 2 of 8, fleets to buy`: where a search that has no end yet, or none at all, stands.
  std::optional<std::string> partial = {};
  std::optional<std::string> rests_on = {}, robustness = {};  ///< Of the first of `plans`.
  std::string scenario;
  std::vector<PlanPrice> prices = {};
  Number host_memory_per_gib_hour = {};
  Number rate_today, growth, planned_rate, growth_per_month = {}, confidence;
  std::optional<std::int64_t> months = {};
  std::optional<std::string> from = {};
  std::vector<std::string> goals = {};
  std::vector<Choice> plans = {};
  std::vector<Family> families = {};
  std::vector<Evaluated> evaluated = {};
  std::int64_t runs = 0;
  std::optional<Day> day = {};
};

void describe(Describer& d, PlanRecord& r);

inline constexpr double kHoursOfYear = 8760, kHoursOfMonth = kHoursOfYear / 12;

/// The fleet by pool, and its price on demand.
PlanRecord::Fleet fleet_of(const PlanSpace& space, const PlanFamily& family, const FleetSize& size);

PlanRecord plan_record(const PlanSpace& space, const PlanResult& result);

/// The answer of the plan. `path` is where the record stands in the data block of a page.
StudyDocument plan_document(const PlanRecord& record, const std::string& path = {});

/// Four digits, for people; `-` for what is not finite.
std::string plan_number(double v);

/// `8 vllm`, `1 prefill + 2 decode`.
std::string fleet_text(const PlanRecord::Replicas& replicas);

}  // namespace routesim::tools

template <>
struct routesim::EnumNames<routesim::tools::SizeMethod> {
  static constexpr std::array<std::string_view, 2> value = {"doubling", "scan"};
};
