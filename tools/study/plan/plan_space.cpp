#include "tools/study/plan/plan_space.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <ranges>
#include <set>
#include <utility>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "models/catalogue.h"
#include "tools/ingest/scenario/file_kind.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/servers/catalogue_file.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/results/text_table.h"
#include "tools/study/experiment/experiment.h"
#include "tools/study/plan/plan_evaluate.h"

namespace routesim::tools {

namespace {

/// `cluster.pools[POOL].KEY=VALUE`, where the key may have dots.
Assignment pool_assignment(const std::string& pool, const std::string& key,
                           const std::string& value, const SourceLocation& where) {
  Assignment a{.path = "cluster.pools[" + pool + "]." + key,
               .steps = {{.key = "cluster", .in_brackets = false, .index = std::nullopt},
                         {.key = "pools", .in_brackets = false, .index = std::nullopt},
                         {.key = pool, .in_brackets = true, .index = std::nullopt}},
               .value = ConfigNode::make_scalar(value, ConfigNode::Style::kUntyped, where),
               .where = where};
  for (const auto part : std::views::split(key, '.'))
    a.steps.push_back({.key = std::string(part.begin(), part.end()),
                       .in_brackets = false,
                       .index = std::nullopt});
  return a;
}

/// Requests that a load of `rate` sends in `duration`, rounded up. A product of two decimal numbers
/// may be a hair above the whole number it stands for, which is no request more.
std::int64_t requests_in(Duration duration, double rate) {
  constexpr double kHair = 1e-9;
  const double exact = rate * static_cast<double>(duration.ns()) / 1e9;
  const double whole = std::round(exact);
  const bool is_whole = std::abs(exact - whole) <= kHair * std::max(1.0, exact);
  return static_cast<std::int64_t>(is_whole ? whole : std::ceil(exact));
}

/// The workload's assignments at this rate, each at its place in the plan.
std::vector<Assignment> demand_assignments(const PlanSpace& space, double rate,
                                           Diagnostics& diagnostics) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const Duration duration = space.config.demand.duration;
  const std::int64_t seconds = (duration.ns() + kSecond - 1) / kSecond;
  std::vector<Assignment> all;
  for (std::size_t i = 0; i < space.config.demand.set.size(); ++i) {
    if (is_broken(diagnostics, element_path("demand.set", i))) continue;
    std::string text = space.config.demand.set[i];
    text = filled(std::move(text), "rate", number_text(rate));
    text = filled(std::move(text), "requests", std::to_string(requests_in(duration, rate)));
    text = filled(std::move(text), "seconds", std::to_string(seconds));
    std::optional<Assignment> assignment =
        parse_assignment_at(text, space.demand_places[i], diagnostics);
    if (assignment) all.push_back(std::move(*assignment));
  }
  return all;
}

/// Fills a plan's space from its file.
class SpaceReader {
 public:
  SpaceReader(const PlanRequest& request, PlanSpace& space, Diagnostics& diagnostics)
      : request_(request), space_(space), config_(space.config), diagnostics_(diagnostics) {}

  void read() {
    space_.path = request_.path;
    const ConfigNode::Ptr root = read_config_file(request_.path, diagnostics_);
    if (root == nullptr || !is_kind(*root, FileKind::kPlan, diagnostics_)) return;
    read_struct(*root, config_, diagnostics_, {.provenance = &provenance_, .format = "plan"});
    if (!root->is_map()) return;
    read_ = diagnostics_;
    if (request_.seed) config_.seed = request_.seed;
    space_.scenario_path = resolve_path(config_.scenario, provenance_.nearest("scenario"));
    space_.demand_where = provenance_.nearest("demand.set");
    note_places();
    if (config_.day) space_.day.node = root->find("day")->value;
    read_parts();
    check_demand();
    check_ranges();
    check_names();
    check_survives();
    check_day();
    look_at_scenario();
    check_accelerators();
    check_prices();
    add_families();
    // A value that could not be read has its default, and no fleet is then the one asked for.
    if (diagnostics_.has_errors()) {
      if (!loads_have_goals_) require_goals();
      check_scenario();
      return;
    }
    find_peak();
    if (constexpr double kLeast = 0.01; space_.planned_rate() < kLeast)
      error(config_.day ? "day" : "demand.rate",
            "asks for " + number_text(space_.planned_rate()) +
                " requests/s, too few to tell a steady state by (at least 0.01)");
    warn_of_sets();
    try_families();
    if (!diagnostics_.has_errors()) require_goals();
    for (const PlanSurvival& survival : config_.survives)
      space_.window_goals.push_back(window_goals(space_.goals, survival));
  }

 private:
  /// Unless an error of reading stands there already.
  void error(const std::string& path, const std::string& what, const std::string& hint = {}) {
    if (!is_broken(read_, path)) diagnostics_.error(provenance_.nearest(path), path, what, hint);
  }

  /// Adds findings about values of the file, without those that follow from errors of reading them.
  void add_unbroken(const Diagnostics& found) {
    for (const Diagnostic& d : found.items())
      if (!is_broken(read_, d.path)) diagnostics_.add(d);
  }

  void note_places() {
    for (std::size_t i = 0; i < config_.demand.set.size(); ++i)
      space_.demand_places.push_back(provenance_.nearest(element_path("demand.set", i)));
    for (std::size_t i = 0; i < config_.pools.size(); ++i)
      space_.pool_where.push_back(provenance_.nearest(element_path("pools", i) + ".pool"));
    for (std::size_t i = 0; i < config_.autoscalers.size(); ++i) {
      auto& places = space_.day.autoscaler_places.emplace_back();
      for (std::size_t s = 0; s < config_.autoscalers[i].set.size(); ++s)
        places.push_back(
            provenance_.nearest(element_path(element_path("autoscalers", i) + ".set", s)));
    }
  }

  void read_parts() {
    space_.base = parse_assignments(config_.set, "set", &provenance_, read_, diagnostics_);
    for (Assignment& a : parse_assignments(request_.sets, {}, nullptr, read_, diagnostics_))
      space_.base.push_back(std::move(a));
    (void)demand_assignments(space_, space_.planned_rate(), diagnostics_);
    Diagnostics found;
    space_.goals = read_goals(config_, provenance_, found);
    space_.goodput = read_goodput(config_, provenance_, found);
    add_unbroken(found);
  }

  void require_goals() {
    if (!has_own_goals(space_.goals) && config_.goals.empty())
      error("goals", "there is nothing to meet", "for example goals: [ttft_ms.p99 < 500]");
  }

  /// Adds the goals of the loads of a mix, which every family must have.
  void add_goals_of_loads(const sim::Scenario& scenario) {
    sim::Scenario asked = scenario;
    asked.goodput = config_.goodput ? config_.goodput->bounds : std::vector<std::string>();
    const GoodputGoals bounds = scenario.workload.mix.empty() ? space_.goodput : goals_of(asked);
    if (std::exchange(has_goals_of_loads_, true)) {
      if (bounds.of_parts != space_.goodput.of_parts)
        error("scenario", "has loads with other goals in variant " + printable(scenario.variant),
              "a plan compares fleets under one load");
      return;
    }
    const std::vector<PlanGoal> goals = goals_of_loads(config_, scenario);
    // Before those that every fleet must meet.
    const auto at = std::ranges::find(space_.goals, PlanGoal::Kind::kFailures, &PlanGoal::kind);
    space_.goals.insert(at, goals.begin(), goals.end());
    space_.goodput = bounds;
  }

  /// Two entries of one name are a contradiction, or two rows nobody can tell apart.
  void check_names() {
    std::set<std::string> pools, hardware, policies;
    for (std::size_t i = 0; i < config_.pools.size(); ++i)
      if (!pools.insert(config_.pools[i].pool).second)
        error(element_path("pools", i) + ".pool",
              "is sized twice (got " + printable(config_.pools[i].pool) + ")",
              "give each pool one range of sizes");
    for (std::size_t i = 0; i < config_.hardware.size(); ++i)
      if (const std::string name = hardware_name(config_.hardware[i]);
          !hardware.insert(name).second)
        error(element_path("hardware", i),
              "has the name of another hardware too (got " + printable(name) + ")",
              "give each a name");
    const PlanHostMemory memory = config_.host_memory.value_or(PlanHostMemory{});
    if (config_.host_memory && memory.gib.empty())
      error("host_memory.gib", "is empty", "list at least one size, such as 100");
    for (std::size_t i = 0; i < memory.gib.size(); ++i)
      if (std::count(memory.gib.begin(), memory.gib.begin() + static_cast<std::ptrdiff_t>(i),
                     memory.gib[i]) > 0)
        error(element_path("host_memory.gib", i),
              "is there twice (got " + number_text(memory.gib[i]) + ")", "give each size once");
    for (std::size_t i = 0; i < config_.policies.size(); ++i)
      if (const std::string name = policy_name(config_.policies[i]); !policies.insert(name).second)
        error(element_path("policies", i),
              "has the name of another policy too (got " + printable(name) + ")",
              "give each a name");
  }

  void check_prices() {
    std::map<const models::AcceleratorSpec*, std::size_t> first;
    for (std::size_t i = 0; i < config_.prices.size(); ++i) {
      const auto* const spec = catalogue_.find_accelerator(config_.prices[i].accelerator);
      if (spec == nullptr || first.try_emplace(spec, i).second) continue;
      error(element_path("prices", i) + ".accelerator",
            "has a price already (got " + printable(config_.prices[i].accelerator) + ", which is " +
                element_path("prices", first[spec]) + ")",
            "give each GPU one price");
    }
  }

  /// Without the rate in it, every fleet would get the scenario's own load, and hold any rate.
  void check_demand() {
    check_months();
    const std::vector<std::string>& set = config_.demand.set;
    const auto takes_rate = [](const std::string& text) {
      return text.find("{rate}") != std::string::npos;
    };
    if (std::ranges::any_of(set, takes_rate)) return;
    error("demand.set",
          set.empty() ? "is empty: no fleet would get the load of demand.rate"
                      : "has no {rate}: no fleet would get the load of demand.rate",
          "for example [\"workload.groups.rate={rate}\", \"workload.groups.requests={requests}\"]");
  }

  void check_months() {
    const PlanDemand& demand = config_.demand;
    if (demand.months == 0 && demand.growth_per_month > 0)
      error("demand.growth_per_month", "has no effect without demand.months", "add `months: 12`");
    if (demand.months == 0 && !demand.from.empty())
      error("demand.from", "has no effect without demand.months", "add `months: 12`");
    if (!demand.from.empty() && !parse_month(demand.from))
      error("demand.from", "is not a month (got " + printable(demand.from) + ")",
            "for example 2026-12");
  }

  /// What a window cannot be, whatever the fleet; see check_survival() for the rest.
  void check_survives() {
    std::set<std::string> names;
    for (std::size_t i = 0; i < config_.survives.size(); ++i) {
      const std::string entry = element_path("survives", i);
      const PlanSurvival& survival = config_.survives[i];
      if (!names.insert(survival.name).second)
        error(entry + ".name",
              "is the name of another entry (got " + printable(survival.name) + ")",
              "give each a name");
      if (survival.name.empty())
        error(entry + ".name", "is empty", "say what happens, such as a crash");
      if (survival.events.empty())
        error(entry + ".events", "is empty: nothing happens", "list at least one event");
    }
    if (!names.empty() && config_.demand.cold_start)
      error("survives", "asks about a warm fleet, and demand.cold_start counts a cold one",
            "leave out cold_start");
  }

  void check_day() {
    if (config_.demand.rate && config_.day)
      error("demand.rate", "stands beside `day`, whose peak is the rate to plan for",
            "leave one of them out");
    if (!config_.demand.rate && !config_.day)
      error("demand.rate", "is missing", "give requests per second, or a `day`");
    if (!config_.day && !config_.autoscalers.empty())
      error("autoscalers", "has no effect without a `day` that they scale over",
            "add day: {profile: [...]}");
    if (config_.day && !config_.day->arrivals_of.empty() && config_.demand.growth > 0)
      error("demand.growth", "stands beside day.arrivals_of: a trace can play faster, but not grow",
            "leave it out, or give the day's rates as day.csv");
    std::set<std::string> names;
    for (std::size_t i = 0; i < config_.autoscalers.size(); ++i) {
      const PlanAutoscaler& a = config_.autoscalers[i];
      const std::string entry = element_path("autoscalers", i);
      if (!names.insert(a.name).second || a.name.empty() || a.name == "fixed servers")
        error(entry + ".name",
              "is the name of another mode of the day, or empty (got " + printable(a.name) + ")",
              "give each a name");
      for (std::size_t s = 0; s < a.set.size(); ++s)
        if (a.set[s].substr(0, a.set[s].find('=')).find(".autoscaler") == std::string::npos)
          error(element_path(entry + ".set", s), "sets something else than an autoscaler",
                "for example cluster.pools.0.autoscaler.kind=hpa");
        else if (config_.pools.size() > 1 && a.set[s].find("{servers}") != std::string::npos)
          error(element_path(entry + ".set", s), "has {servers}, and several pools are sized",
                "give a number of servers");
    }
  }

  /// The peak of the day, from the first family that can run.
  void find_peak() {
    if (!config_.day) return;
    for (const PlanFamily& family : space_.families)
      if (const auto plan = day_plan(family, 0, false)) {
        Diagnostics ignored;
        measure_day(*plan->make_load(plan->scenario.seed, ignored), config_.demand.growth,
                    space_.day);
        return;
      }
  }

  /// The smallest fleet over the day. Adds what is wrong with the day and, where the family can run
  /// without it, all else.
  std::optional<sim::RunPlan> day_plan(const PlanFamily& family, std::size_t mode, bool can_run) {
    Diagnostics found, resolving;
    const LoadedScenario loaded =
        load_checked(day_request(space_, family, least_size(), mode, found), found);
    append(diagnostics_, about_day(found, provenance_));
    if (found.has_errors() || loaded.variants.empty()) return std::nullopt;
    std::optional<sim::RunPlan> plan = prepare(loaded.variants.front(), resolving);
    const Diagnostics about = about_day(resolving, provenance_);
    for (Diagnostic d : about.items()) {
      if (mode > 0 && d.severity == Severity::kError)
        d.message += " (in the smallest fleet, where {servers} is " +
                     std::to_string(config_.pools.front().min) + ")";
      if (can_run || d.path.starts_with("day")) diagnostics_.add(std::move(d));
    }
    return plan;
  }

  FleetSize least_size() const {
    FleetSize least;
    for (const PlanPool& pool : config_.pools) least.push_back(pool.min);
    return least;
  }

  /// The family's windows and its day, with its smallest fleet.
  void check_changes(const PlanFamily& family, const sim::RunPlan& plan) {
    for (std::size_t i = 0; i < config_.survives.size(); ++i) {
      Diagnostics found;
      check_survival(plan, config_.survives[i], i, provenance_, found);
      append(diagnostics_, found);
    }
    sim::RunPlan held = plan;
    constexpr Duration kAny = Duration::seconds(60);
    const std::string why_not =
        config_.survives.empty() ? "" : sim::hold_rate(held, {space_.planned_rate(), kAny, {}});
    if (!why_not.empty())
      error("survives", "needs a load with a rate to hold: " + why_not,
            "choose another load, or leave out `survives`");
    if (!config_.day) check_autoscaled(space_, plan, 0, provenance_, diagnostics_);
    if (plan.scenario.workload.demand && !config_.day && !plan.scenario.workload.hold)
      error("demand.set", "has no effect: the scenario has rates by the clock (workload.demand)",
            "add \"workload.demand=null\"");
    if (!config_.day) return;
    for (std::size_t mode = 0; mode <= config_.autoscalers.size(); ++mode)
      if (const auto day = day_plan(family, mode, true))
        check_autoscaled(space_, *day, mode, provenance_, diagnostics_);
  }

  void check_ranges() {
    if (config_.pools.empty())
      error("pools", "at least one pool must be sized", "for example [{pool: vllm, max: 16}]");
    for (std::size_t i = 0; i < config_.pools.size(); ++i) {
      const PlanPool& pool = config_.pools[i];
      if (pool.min > pool.max - config_.spares)
        error(element_path("pools", i), "leaves no size between min and max less spares (got " +
                                            std::to_string(pool.min) + " to " +
                                            std::to_string(pool.max - config_.spares) + ")");
    }
    if (config_.max_replications < config_.replications)
      error(config_.max_replications == PlanConfig{}.max_replications ? "replications"
                                                                      : "max_replications",
            "replications must be at most max_replications (got " +
                std::to_string(config_.replications) + " and " +
                std::to_string(config_.max_replications) + ")");
  }

  /// A `--set` that the demand or the size of a pool sets again changes nothing.
  void warn_of_sets() {
    Diagnostics known;  // Errors of the demand are reported with the fleets.
    std::vector<Assignment> sizes;
    for (const PlanPool& pool : config_.pools)
      sizes.push_back(pool_assignment(pool.pool, "replicas", "1", {}));
    warn_overridden(space_.base, demand_assignments(space_, space_.planned_rate(), known),
                    "demand.set of the plan", pool_names_, diagnostics_);
    warn_overridden(space_.base, sizes, "the plan, whose pools have sizes,", pool_names_,
                    diagnostics_);
  }

  void check_accelerator(const std::string& name, const std::string& path) {
    if (catalogue_.find_accelerator(name) != nullptr) return;
    const std::string close = catalogue_.suggest_accelerator(name);
    error(path, "is not a known accelerator (got " + printable(name) + ")",
          close.empty() ? "see `routesim list accelerators`" : "did you mean " + close + "?");
  }

  void check_accelerators() {
    for (std::size_t i = 0; i < config_.prices.size(); ++i)
      check_accelerator(config_.prices[i].accelerator, element_path("prices", i) + ".accelerator");
    for (std::size_t i = 0; i < config_.hardware.size(); ++i)
      if (config_.hardware[i].accelerator)
        check_accelerator(*config_.hardware[i].accelerator,
                          element_path("hardware", i) + ".accelerator");
  }

  /// A variant that a policy runs must bring the same load to every fleet.
  void check_load(const sim::Scenario& scenario) {
    if (!traits_of(scenario.workload).finds_rates) return;
    const auto runs = [&scenario](const PlanPolicy& p) {
      return p.variant.empty() || p.variant == scenario.variant;
    };
    if (!config_.policies.empty() && std::ranges::none_of(config_.policies, runs)) return;
    const std::string whose = scenario.variant == "default"
                                  ? "its load.sweep"
                                  : "the load.sweep of variant " + printable(scenario.variant);
    error("scenario", whose + " finds other rates for every fleet",
          "a plan compares fleets under one load: list the stages");
  }

  /// Reports errors of the scenario under the load of the plan, beside the errors of the plan;
  /// without its fleets.
  void check_scenario() {
    if (is_broken(diagnostics_, "scenario") || is_broken(diagnostics_, "set") ||
        is_broken(diagnostics_, "demand"))
      return;
    ScenarioRequest request{.path = space_.scenario_path, .assignments = space_.base};
    Diagnostics known;
    for (Assignment& a : demand_assignments(space_, space_.planned_rate(), known))
      request.assignments.push_back(std::move(a));
    Diagnostics found;
    const LoadedScenario loaded = load_scenario(request, found);
    for (const LoadedVariant& variant : loaded.variants) check_variant(variant, found);
    append(diagnostics_, found);
  }

  void check_pools(const std::vector<LoadedVariant>& variants) {
    for (std::size_t i = 0; i < config_.pools.size(); ++i) {
      const std::string& name = config_.pools[i].pool;
      if (std::ranges::find(pool_names_, name) != pool_names_.end()) continue;
      // Not every variant may have it.
      const bool known = std::ranges::any_of(variants, [&](const LoadedVariant& v) {
        return std::ranges::any_of(v.scenario.cluster.pools,
                                   [&](const sim::PoolConfig& p) { return p.name == name; });
      });
      if (!known)
        error(element_path("pools", i) + ".pool",
              "is no pool of the scenario (got " + printable(name) + ")",
              "pools: " + comma_list(pool_names_, [](auto& pool) { return printable(pool); }));
    }
  }

  void check_variants(const std::vector<LoadedVariant>& variants) {
    std::vector<std::string> names;
    for (const LoadedVariant& v : variants) names.push_back(v.scenario.variant);
    for (std::size_t i = 0; i < config_.policies.size(); ++i) {
      const std::string& name = config_.policies[i].variant;
      if (name.empty() || std::ranges::find(names, name) != names.end()) continue;
      error(element_path("policies", i) + ".variant",
            "is no variant of the scenario (got " + printable(name) + ")",
            did_you_mean(name, names));
    }
  }

  /// Takes accelerators from the scenario's catalogue files, and every variant as a policy when the
  /// plan names none.
  void look_at_scenario() {
    std::string text;
    if (is_broken(read_, "scenario") ||
        !read_text_file(space_.scenario_path, provenance_.nearest("scenario"), "scenario",
                        ConfigLimits{}.max_bytes, text, diagnostics_))
      return;
    Diagnostics ignored;  // Whatever is wrong is found again, and placed, by try_families().
    const LoadedScenario loaded = load_scenario({.path = space_.scenario_path}, ignored);
    if (!loaded.variants.empty()) {
      sim::Scenario scenario = loaded.variants.front().scenario;
      catalogue_ = scenario_catalogue(loaded.variants.front(), scenario, ignored);
      for (const sim::PoolConfig& pool : scenario.cluster.pools) pool_names_.push_back(pool.name);
    }
    for (const LoadedVariant& variant : loaded.variants) {
      check_load(variant.scenario);
      loads_have_goals_ |= !goals_of_loads(config_, variant.scenario).empty();
    }
    // Sets of the plan may still add or rename pools; then only the fleets can tell.
    if (!ignored.has_errors() && config_.set.empty() && request_.sets.empty()) {
      check_pools(loaded.variants);
      check_variants(loaded.variants);
    }
    if (!config_.policies.empty()) return;
    for (const LoadedVariant& variant : loaded.variants)
      config_.policies.push_back(
          {.name = variant.scenario.variant, .variant = variant.scenario.variant});
    if (config_.policies.empty()) config_.policies.emplace_back();
    // A scenario without variants has one, and no name to choose it by.
    if (config_.policies.size() == 1 && config_.policies[0].variant == "default")
      config_.policies[0].variant.clear();
  }

  static std::string policy_name(const PlanPolicy& policy) {
    return policy.name.empty() ? policy.variant : policy.name;
  }

  static std::string hardware_name(const PlanHardware& hardware) {
    if (!hardware.name.empty()) return hardware.name;
    std::string name = hardware.accelerator.value_or("");
    const auto add = [&name](const char* key, const std::optional<std::int64_t>& ranks) {
      if (ranks) name += (name.empty() ? "" : " ") + (key + std::to_string(*ranks));
    };
    add("tp", hardware.tensor_parallel);
    add("dp", hardware.data_parallel);
    return name.empty() ? "as in the scenario" : name;
  }

  std::vector<Assignment> hardware_assignments(const PlanHardware& hardware,
                                               const std::string& path) {
    std::vector<Assignment> all;
    const SourceLocation where = provenance_.nearest(path);
    for (const PlanPool& pool : config_.pools) {
      const auto add = [&](const std::string& key, const std::string& value) {
        all.push_back(pool_assignment(pool.pool, key, value, where));
      };
      if (hardware.accelerator) add("accelerator", *hardware.accelerator);
      if (hardware.tensor_parallel)
        add("tensor_parallel", std::to_string(*hardware.tensor_parallel));
      if (hardware.data_parallel) add("data_parallel", std::to_string(*hardware.data_parallel));
    }
    for (Assignment& a :
         parse_assignments(hardware.set, path + ".set", &provenance_, read_, diagnostics_))
      all.push_back(std::move(a));
    return all;
  }

  void add_families() {
    std::vector<PlanHardware> all_hardware = config_.hardware;
    if (all_hardware.empty()) all_hardware.emplace_back();
    for (std::size_t h = 0; h < all_hardware.size(); ++h)
      for (std::size_t p = 0; p < config_.policies.size(); ++p) {
        const PlanPolicy& policy = config_.policies[p];
        PlanFamily family{.hardware = hardware_name(all_hardware[h]),
                          .policy = policy_name(policy),
                          .variant = policy.variant};
        family.assignments = hardware_assignments(all_hardware[h], element_path("hardware", h));
        for (Assignment& a : parse_assignments(policy.set, element_path("policies", p) + ".set",
                                               &provenance_, read_, diagnostics_))
          family.assignments.push_back(std::move(a));
        if (config_.host_memory)
          add_with_memory(family);
        else
          space_.families.push_back(std::move(family));
      }
  }

  /// The family with each size of host memory.
  void add_with_memory(const PlanFamily& bare) {
    const std::vector<double>& sizes = config_.host_memory->gib;
    const std::size_t first = space_.families.size();
    const auto zero = std::ranges::find(sizes, 0.0);
    for (const double gib : sizes) {
      PlanFamily& family = space_.families.emplace_back(bare);
      family.host_gib = gib;
      if (gib == 0) continue;
      family.hardware += " + " + number_text(gib) + " GiB";
      if (zero != sizes.end())
        family.without = first + static_cast<std::size_t>(zero - sizes.begin());
      for (const PlanPool& pool : config_.pools)
        family.assignments.push_back(pool_assignment(pool.pool, "engine.kv_tiers.cpu_gib",
                                                     number_text(gib),
                                                     provenance_.nearest("host_memory.gib")));
    }
  }

  void try_families() {
    std::string reasons;
    bool any = false;
    for (PlanFamily& family : space_.families) {
      try_family(family);
      any = any || family.impossible.empty();
      reasons += (reasons.empty() ? "" : "; ") + family.hardware + ": " + family.impossible;
    }
    if (!any && !diagnostics_.has_errors())
      error("hardware", "the model fits none of it: " + printable(reasons, 500));
  }

  void try_family(PlanFamily& family) {
    Diagnostics found;
    const LoadedScenario loaded = load_checked(
        fleet_request(space_, family, least_size(), space_.planned_rate(), found), found);
    append(diagnostics_, found);
    if (found.has_errors() || loaded.variants.empty()) return;
    Diagnostics resolving;
    const std::optional<sim::RunPlan> plan = prepare(loaded.variants.front(), resolving);
    if (plan) {
      set_prices(family, *plan);
      if (family.host_gib == 0.0 &&
          std::ranges::any_of(plan->pools, [](const auto& p) { return p.rules.tiers.in_use(); }))
        error("host_memory.gib", "has 0, and the scenario has kv_tiers",
              "choose a variant of the scenario without kv_tiers, or leave out 0");
      check_host_memory(family, *plan);
      add_goals_of_loads(loaded.variants.front().scenario);
      check_changes(family, *plan);
      family.scenario_hash = scenario_hash(loaded);
      family.seed = plan->scenario.seed;
      for (const sim::ResolvedPool& pool : plan->pools) {
        family.trust = std::max(family.trust, pool.latency->trust({}));
        family.step_times.push_back(pool.config.name + ": " + pool.latency->provenance());
      }
      return;
    }
    for (const Diagnostic& d : resolving.items())
      if (d.severity == Severity::kError && family.impossible.empty())
        family.impossible = d.path + ": " + d.message;
    // Without hardware to choose from, what does not fit is simply wrong.
    if (config_.hardware.empty()) append(diagnostics_, resolving);
  }

  void check_host_memory(const PlanFamily& family, const sim::RunPlan& plan) {
    if (family.host_gib.value_or(0) <= 0) return;
    const auto& pools = plan.pools;
    if (std::ranges::none_of(pools, [](const auto& p) { return p.rules.tiers.in_use(); }))
      error("host_memory.gib", "has no effect: no tier of the scenario's servers is simulated",
            "choose connector offloading or lmcache in engine.kv_tiers");
    if (std::ranges::any_of(pools, [](const auto& p) { return p.rules.tiers.shared_store; }))
      error("host_memory.gib", "is memory of each engine, and mooncake-store is one for all",
            "choose connector offloading or lmcache in engine.kv_tiers");
  }

  /// Host memory of one engine core.
  static double host_gib_of(const sim::ResolvedPool& pool) {
    const auto& tiers = pool.config.engine.kv_tiers;
    if (!tiers || !pool.rules.tiers.in_use()) return 0;
    if (!tiers->cpu_chunks)
      return sim::host_gib(*tiers, pool.config.tensor_parallel * pool.config.pipeline_parallel);
    const sim::TierRules& r = pool.rules.tiers;
    return static_cast<double>(r.cpu_chunks * r.chunk_blocks) * r.block_bytes / (1 << 30);
  }

  void set_prices(PlanFamily& family, const sim::RunPlan& plan) {
    family.prices = config_.prices;
    family.costs.assign(config_.pools.size(), {});
    for (const sim::ResolvedPool& pool : plan.pools) {
      if (pool.config.gpu_price_per_hour && &family == &space_.families.front())
        diagnostics_.warning(provenance_.nearest("scenario"), "scenario",
                             "has gpu_price_per_hour of " + printable(pool.config.name) +
                                 ", which is not used: a plan has `prices`");
      const std::int64_t gpus = pool.config.gpus_per_server();
      const double host_gib =
          config_.host_memory ? host_gib_of(pool) * static_cast<double>(pool.config.data_parallel)
                              : 0;
      const ReplicaCost cost{
          .price = price_of(pool.config.accelerator),
          .gpus = gpus,
          .others_per_hour = host_gib > 0 ? host_gib * config_.host_memory->per_gib_hour : 0};
      const auto sized = std::ranges::find_if(
          config_.pools, [&](const PlanPool& p) { return p.pool == pool.config.name; });
      if (sized == config_.pools.end())
        family.fixed.emplace_back(cost, pool.config.replicas);
      else
        family.costs[static_cast<std::size_t>(sized - config_.pools.begin())] = cost;
    }
  }

  std::size_t price_of(const std::string& accelerator) {
    const models::AcceleratorSpec* const spec = catalogue_.find_accelerator(accelerator);
    for (std::size_t i = 0; i < config_.prices.size(); ++i)
      if (catalogue_.find_accelerator(config_.prices[i].accelerator) == spec) return i;
    error("prices", "has no price of " + printable(accelerator),
          "add {accelerator: " + printable(accelerator) + ", per_hour: ...}");
    return 0;
  }

  const PlanRequest& request_;
  PlanSpace& space_;
  PlanConfig& config_;
  Diagnostics& diagnostics_;
  Provenance provenance_;
  Diagnostics read_;                     ///< Errors of reading the file.
  std::vector<std::string> pool_names_;  ///< Pools of the scenario.
  bool loads_have_goals_ = false;        ///< In the scenario without `set`.
  bool has_goals_of_loads_ = false;      ///< They are in the space.
  models::Catalogue catalogue_ = builtin_catalogue();
};

}  // namespace

std::string filled(std::string text, const std::string& name, const std::string& value) {
  const std::string mark = "{" + name + "}";
  for (std::size_t at = text.find(mark); at != std::string::npos;
       at = text.find(mark, at + value.size()))
    text.replace(at, mark.size(), value);
  return text;
}

std::vector<std::int64_t> PlanFamily::paid(const FleetSize& size) const {
  std::vector<std::pair<ReplicaCost, std::int64_t>> all = fixed;
  for (std::size_t i = 0; i < size.size(); ++i) all.emplace_back(costs[i], size[i]);
  std::ranges::stable_sort(all, std::ranges::greater{},
                           [](const auto& part) { return part.first.gpus; });
  std::vector<std::int64_t> out(prices.size());
  std::map<std::pair<std::size_t, std::int64_t>, std::int64_t> nodes;  ///< By price and free GPUs.
  for (const auto& [cost, replicas] : all) {
    const std::int64_t node = prices[cost.price].gpus_per_node;
    if (cost.gpus >= node) {
      out[cost.price] += replicas * ((cost.gpus + node - 1) / node) * node;
      continue;
    }
    for (std::int64_t left = replicas; left > 0;) {
      const auto open = nodes.lower_bound({cost.price, cost.gpus});
      const bool is_open = open != nodes.end() && open->first.first == cost.price;
      const std::int64_t free = is_open ? open->first.second : node;
      const std::int64_t each = free / cost.gpus;
      // Nodes that are alike are filled together.
      const std::int64_t alike = is_open ? open->second : std::max<std::int64_t>(1, left / each);
      const std::int64_t filled = std::min(alike, std::max<std::int64_t>(1, left / each));
      const std::int64_t here = std::min(left, each);
      left -= here * filled;
      if (!is_open) out[cost.price] += node * filled;
      if (is_open && (open->second -= filled) == 0) nodes.erase(open);
      if (const std::int64_t rest = free - here * cost.gpus; rest > 0)
        nodes[{cost.price, rest}] += filled;
    }
  }
  return out;
}

std::optional<double> PlanFamily::price(const FleetSize& size, Contract contract) const {
  const std::vector<std::int64_t> gpus = paid(size);
  double sum = 0;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const std::optional<double> each = contract == Contract::kReserved ? prices[i].reserved_per_hour
                                       : contract == Contract::kSpot   ? prices[i].spot_per_hour
                                                                       : prices[i].per_hour;
    if (gpus[i] > 0 && !each) return std::nullopt;
    sum += static_cast<double>(gpus[i]) * each.value_or(0);
  }
  for (const auto& [cost, replicas] : fixed)
    sum += cost.others_per_hour * static_cast<double>(replicas);
  for (std::size_t i = 0; i < size.size(); ++i)
    sum += costs[i].others_per_hour * static_cast<double>(size[i]);
  return sum;
}

std::int64_t PlanFamily::gpus(const FleetSize& size) const {
  std::int64_t sum = 0;
  for (const auto& [cost, replicas] : fixed) sum += cost.gpus * replicas;
  for (std::size_t i = 0; i < size.size(); ++i) sum += costs[i].gpus * size[i];
  return sum;
}

std::int64_t PlanFamily::paid_gpus(const FleetSize& size) const {
  const std::vector<std::int64_t> gpus = paid(size);
  return std::accumulate(gpus.begin(), gpus.end(), std::int64_t{0});
}

double PlanSpace::rate_in(std::int64_t months) const {
  return planned_rate() * std::pow(1 + config.demand.growth_per_month, static_cast<double>(months));
}

PlanSpace load_plan(const PlanRequest& request, Diagnostics& diagnostics) {
  PlanSpace space;
  Diagnostics found;
  SpaceReader(request, space, found).read();
  append(diagnostics, tidy(found));
  return space;
}

ScenarioRequest fleet_request(const PlanSpace& space, const PlanFamily& family,
                              const FleetSize& size, double rate, Diagnostics& diagnostics) {
  ScenarioRequest request{.path = space.scenario_path, .assignments = space.base};
  if (!family.variant.empty()) request.variants = {family.variant};
  if (space.config.seed) request.seed = static_cast<std::uint64_t>(*space.config.seed);
  std::vector<Assignment>& all = request.assignments;
  all.insert(all.end(), family.assignments.begin(), family.assignments.end());
  for (std::size_t i = 0; i < size.size(); ++i)
    all.push_back(pool_assignment(space.config.pools[i].pool, "replicas", std::to_string(size[i]),
                                  space.pool_where[i]));
  for (Assignment& a : demand_assignments(space, rate, diagnostics)) all.push_back(std::move(a));
  return request;
}

}  // namespace routesim::tools
