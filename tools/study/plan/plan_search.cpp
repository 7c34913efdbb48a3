#include "tools/study/plan/plan_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/results/described_json.h"
#include "tools/results/trust_errors.h"
#include "tools/study/what_if.h"

namespace routesim::sim {

std::optional<std::int64_t> Bisection::next() const {
  if (none_) return std::nullopt;
  if (!asked_high_) return high_;
  if (low_ == high_) return std::nullopt;
  return low_ + (high_ - low_) / 2;
}

void Bisection::tell(bool holds) {
  const std::int64_t probed = next().value_or(high_);
  if (!asked_high_) {
    asked_high_ = true;
    none_ = !holds;
  } else if (holds) {
    high_ = probed;
  } else {
    low_ = probed + 1;
  }
}

std::optional<std::int64_t> Bisection::answer() const {
  if (none_ || next()) return std::nullopt;
  return high_;
}

std::optional<std::int64_t> UpwardSearch::next() const {
  if (answer_) return std::nullopt;
  if (halving_) return halving_->next();
  if (!singles_.empty()) return singles_.back();
  return next_;
}

void UpwardSearch::tell(bool holds, double shortfall) {
  const std::optional<std::int64_t> probed = next();
  if (!probed) return;
  if (halving_) {
    halving_->tell(holds);
    answer_ = halving_->answer();
  } else if (next_) {
    tell_doubling(holds, shortfall);
  } else {
    singles_.pop_back();
    if (holds) answer_ = probed;
  }
}

void UpwardSearch::tell_doubling(bool holds, double shortfall) {
  const std::int64_t probed = *next_;
  if (holds) {
    next_.reset();
    halving_.emplace(misses_.empty() ? probed : misses_.back().n + 1, probed);
    halving_->tell(true);  // Its upper end was just seen to hold.
    answer_ = halving_->answer();
    return;
  }
  misses_.push_back({.n = probed, .shortfall = shortfall});
  if (probed < high_) {
    next_ = probed > high_ / 2 ? high_ : 2 * probed;
  } else {
    next_.reset();
    list_around_nearest();
  }
}

void UpwardSearch::list_around_nearest() {
  std::size_t nearest = 0;
  for (std::size_t i = 1; i < misses_.size(); ++i)
    if (misses_[i].shortfall <= misses_[nearest].shortfall) nearest = i;
  if (nearest + 1 == misses_.size()) return;  // More helped up to the end.
  const std::int64_t from = misses_[nearest == 0 ? 0 : nearest - 1].n;
  for (std::int64_t n = misses_[nearest + 1].n - 1; n > from; --n)
    if (n != misses_[nearest].n) singles_.push_back(n);
  tried_singly_ = !singles_.empty();
}

std::optional<double> RateSearch::next() const {
  if (!fails_) {
    if (holds_ >= limit_) return std::nullopt;
    return std::min(holds_ * kGrowth, limit_);
  }
  if (*fails_ / holds_ <= 1 + tolerance_) return std::nullopt;
  return std::sqrt(holds_ * *fails_);
}

void RateSearch::tell(bool holds) {
  const std::optional<double> probed = next();
  if (!probed) return;
  if (holds) {
    holds_ = *probed;
  } else {
    fails_ = *probed;
  }
}

}  // namespace routesim::sim

namespace routesim::tools {

namespace {

/// All sizes of the space, the cheapest with its spares first; equal prices in the order of the
/// pools' sizes.
std::vector<FleetSize> sizes_by_price(const PlanSpace& space, const PlanFamily& family) {
  std::vector<FleetSize> sizes = {{}};
  for (const PlanPool& pool : space.config.pools) {
    std::vector<FleetSize> longer;
    for (const FleetSize& size : sizes)
      for (std::int64_t n = pool.min; n <= pool.max - space.config.spares; ++n) {
        longer.push_back(size);
        longer.back().push_back(n);
      }
    sizes = std::move(longer);
  }
  // By what is bought: whole nodes do not keep the order of fleets without their spares.
  std::vector<std::pair<double, FleetSize>> priced;
  for (FleetSize& size : sizes) {
    const double price = family.price(space.bought(size));
    priced.emplace_back(price, std::move(size));
  }
  std::ranges::stable_sort(priced, {}, [](const auto& p) { return p.first; });
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = std::move(priced[i].second);
  return sizes;
}

/// Searches the sizes of one family, one probe at a time.
class SizeSearch {
 public:
  SizeSearch(const PlanSpace& space, std::size_t index)
      : upward_(space.config.pools.front().min,
                space.config.pools.front().max - space.config.spares) {
    const PlanFamily& family = space.families[index];
    outcome_.method = space.config.pools.size() == 1 ? SizeMethod::kDoubling : SizeMethod::kScan;
    possible_ = family.impossible.empty();
    if (!possible_) return;
    sizes_ = sizes_by_price(space, family);
    outcome_.sizes = sizes_.size();
  }

  std::optional<FleetSize> next() const {
    if (!possible_ || outcome_.size || outcome_.router_rate) return std::nullopt;
    if (outcome_.method == SizeMethod::kDoubling) {
      const std::optional<std::int64_t> n = upward_.next();
      return n ? std::optional(FleetSize{*n}) : std::nullopt;
    }
    return scanned_ < sizes_.size() ? std::optional(sizes_[scanned_]) : std::nullopt;
  }

  /// `evaluation` of the size asked for or, when that holds, of it with the spares.
  void tell(const FleetEvaluation& evaluation) {
    ++outcome_.sizes_tried;
    if (!evaluation.holds() &&
        (!outcome_.near_miss || evaluation.distance() < outcome_.near_miss->distance()))
      outcome_.near_miss = evaluation;
    has_held_ = has_held_ || evaluation.holds();
    if (!has_held_) outcome_.router_rate = evaluation.router_rate();
    if (outcome_.method == SizeMethod::kDoubling) {
      upward_.tell(evaluation.holds(), evaluation.distance());
      if (const auto answer = upward_.answer()) outcome_.size = FleetSize{*answer};
    } else if (evaluation.holds()) {
      outcome_.size = sizes_[scanned_];
    } else {
      ++scanned_;
    }
  }

  FamilyOutcome outcome() const {
    FamilyOutcome outcome = outcome_;
    outcome.tried_singly = upward_.tried_singly();
    if (outcome.size) outcome.near_miss.reset();
    return outcome;
  }

 private:
  FamilyOutcome outcome_;
  sim::UpwardSearch upward_;
  std::vector<FleetSize> sizes_;
  std::size_t scanned_ = 0;
  bool possible_ = false, has_held_ = false;
};

/// The months in which a fleet that holds the first one must grow. A fleet is only ever added to:
/// the next one is the cheapest with at least as many servers in every pool.
class GrowthSearch {
 public:
  struct Question {
    FleetSize size;
    std::int64_t month = 0;
  };

  /// `needed` holds month 0. Looks at months before `end` > 0.
  GrowthSearch(const PlanSpace& space, const PlanFamily& family, const FleetSize& needed,
               std::int64_t end)
      : end_(end), fails_(end) {
    for (const FleetSize& size : sizes_by_price(space, family))
      if (std::ranges::equal(size, needed, std::ranges::greater_equal{})) larger_.push_back(size);
    steps_.emplace_back(0, needed);
    // Equal prices have no order of their own.
    at_ = static_cast<std::size_t>(std::ranges::find(larger_, needed) - larger_.begin());
  }

  std::optional<Question> next() const {
    if (at_ == larger_.size()) return std::nullopt;
    if (grows_) return Question{larger_[at_], fails_};
    if (holds_ + 1 == fails_) return std::nullopt;  // `fails_` is `end_`.
    return Question{larger_[at_],
                    seen_to_fail_ ? (holds_ + fails_) / 2 : std::min(holds_ + stride_, fails_ - 1)};
  }

  /// The answer to next().
  void tell(const FleetEvaluation& evaluation) {
    const bool holds = evaluation.holds();
    if (grows_) {
      if (evaluation.router_rate()) at_ = larger_.size() - 1;  // None of these helps.
      grow(holds);
      return;
    }
    (holds ? holds_ : fails_) = next()->month;
    stride_ *= 2;
    seen_to_fail_ = seen_to_fail_ || !holds;
    if (seen_to_fail_ && holds_ + 1 == fails_) {
      grows_ = true;
      grow(false);
    }
  }

  /// Months and the fleets that hold from then on; none where no size does.
  const std::vector<std::pair<std::int64_t, std::optional<FleetSize>>>& steps() const {
    return steps_;
  }

 private:
  /// The size that was asked for the month that failed.
  void grow(bool holds) {
    if (!holds) {
      const FleetSize& least = *steps_.back().second;
      do ++at_;
      while (at_ < larger_.size() &&
             !std::ranges::equal(larger_[at_], least, std::ranges::greater_equal{}));
      if (at_ == larger_.size()) steps_.emplace_back(fails_, std::nullopt);
      return;
    }
    steps_.emplace_back(fails_, larger_[at_]);
    holds_ = fails_;
    fails_ = end_;
    stride_ = 1;
    grows_ = seen_to_fail_ = false;
  }

  std::int64_t end_;
  std::vector<FleetSize> larger_;  ///< The cheapest first.
  std::size_t at_ = 0;             ///< The fleet that is asked about.
  std::int64_t holds_ = 0, fails_, stride_ = 1;
  bool seen_to_fail_ = false;
  bool grows_ = false;  ///< A larger fleet is looked for, for month `fails_`.
  std::vector<std::pair<std::int64_t, std::optional<FleetSize>>> steps_;
};

class PlanSearch {
 public:
  PlanSearch(const PlanSpace& space, FleetEvaluator& evaluator, PlanResult& found)
      : space_(space), evaluator_(evaluator), found_(found) {}

  void run() {
    find_sizes();
    rank(result_);
    begin_step(1);
    evaluate_bought();
    for (FoundPlan& plan : result_.plans)
      plan.found.kv_capacity = {.band = kCapacityBand,
                                .holds_with_fewer = holds_with_blocks(plan, 1 - kCapacityBand),
                                .holds_with_more = holds_with_blocks(plan, 1 + kCapacityBand)};
    begin_step(2);
    find_bands();
    begin_step(3);
    find_knees();
    begin_step(4);
    find_bindings();
    begin_step(5);
    for (FoundPlan& plan : result_.plans) plan.found.spare_replicas_today = spares_of(plan);
    begin_step(6);
    run_days();
    begin_step(7);
    find_months();
    result_.steps = kPlanSteps.size();
    keep();
  }

  /// Leaves what is known in `found_`.
  void keep() {
    found_ = result_;
    found_.evaluated = evaluator_.at_planned_rate();
    found_.runs = evaluator_.runs();
    if (found_.steps < 2) keep_smallest();
  }

 private:
  void begin_step(std::size_t step) {
    result_.steps = step;
    evaluator_.begin_step(step);
    evaluator_.tell([this] { keep(); });
  }

  /// Before the fleets to buy are known: the cheapest of each family that holds so far.
  void keep_smallest() {
    found_.plans.clear();
    found_.families.assign(space_.families.size(), {});
    for (std::size_t f = 0; f < space_.families.size(); ++f)
      found_.families[f] = SizeSearch(space_, f).outcome();
    for (const FleetEvaluation& e : found_.evaluated) {
      FamilyOutcome& family = found_.families[e.probe.family];
      ++family.sizes_tried;
      const auto price = [&](const FleetSize& n) {
        return space_.families[e.probe.family].price(n);
      };
      if (bought(e) != nullptr && (!family.size || price(e.probe.size) < price(*family.size)))
        family.size = e.probe.size;
      if (!e.holds() && (!family.near_miss || e.distance() < family.near_miss->distance()))
        family.near_miss = e;
    }
    for (FamilyOutcome& family : found_.families)
      if (family.size) family.near_miss.reset();
    rank(found_);
    for (FoundPlan& plan : found_.plans)
      for (const FleetEvaluation& e : found_.evaluated)
        if (e.probe.family == plan.family && e.probe.size == plan.size) take(plan, e);
  }

  /// The evaluation of the fleet with its spares where both hold; otherwise null.
  const FleetEvaluation* bought(const FleetEvaluation& needed) const {
    const FleetSize size = space_.bought(needed.probe.size);
    for (const FleetEvaluation& e : found_.evaluated)
      if (e.probe.family == needed.probe.family && e.probe.size == size && e.holds() &&
          needed.holds())
        return &e;
    return nullptr;
  }

  /// What is asked of every fleet of a search.
  enum class Asked {
    kRate,    ///< The goals at its rate.
    kSpares,  ///< The same, and with its spares.
    kAll      ///< The same, and that both survive the file's events.
  };

  /// A family whose least size is wanted, with steps so many times as long.
  struct SizeQuestion {
    std::size_t family = 0;
    double step_factor = 1;
  };

  void evaluate(const std::vector<FleetProbe>& probes, Asked asked) {
    evaluator_.evaluate(probes);
    if (asked == Asked::kAll) evaluator_.survive(probes);
  }
  FleetEvaluation judged(const FleetProbe& probe, Asked asked) const {
    FleetEvaluation evaluation = evaluator_.at(probe);
    if (asked != Asked::kAll) evaluation.windows.clear();
    return evaluation;
  }

  /// Every search proposes something that `probe_of(search's index, proposal)` makes a fleet of;
  /// all are run together, and told to their searches, until none has one left to propose.
  template <class Search, class ProbeOf, class Tell>
  void ask_together(std::vector<Search>& searches, Asked what, const ProbeOf& probe_of,
                    const Tell& tell) {
    while (true) {
      std::vector<FleetProbe> probes;
      std::vector<std::size_t> asked;
      for (std::size_t i = 0; i < searches.size(); ++i)
        if (const auto next = searches[i].next()) {
          probes.push_back(probe_of(i, *next));
          asked.push_back(i);
        }
      evaluator_.tell_open(probes.size(), searches.size());
      if (probes.empty()) return;
      evaluate(probes, what);
      if (what != Asked::kRate) add_spares(probes, what);
      for (std::size_t p = 0; p < probes.size(); ++p)
        tell(searches[asked[p]], judged(probes[p], what));
      evaluator_.tell([this] { keep(); });
    }
  }

  std::vector<FamilyOutcome> least_sizes(const std::vector<SizeQuestion>& questions,
                                         Asked asked = Asked::kAll) {
    std::vector<SizeSearch> searches;
    for (const SizeQuestion& q : questions) searches.emplace_back(space_, q.family);
    ask_together(
        searches, asked,
        [&](std::size_t i, const FleetSize& size) {
          return FleetProbe{.family = questions[i].family,
                            .size = size,
                            .rate = space_.planned_rate(),
                            .step_factor = questions[i].step_factor};
        },
        [](SizeSearch& search, const FleetEvaluation& e) { search.tell(e); });
    std::vector<FamilyOutcome> outcomes;
    for (const SizeSearch& search : searches) outcomes.push_back(search.outcome());
    return outcomes;
  }

  void find_sizes() {
    std::vector<SizeQuestion> questions;
    for (std::size_t f = 0; f < space_.families.size(); ++f) questions.push_back({.family = f});
    result_.families = least_sizes(questions);
    if (!space_.config.survives.empty()) find_unprepared(questions);
  }

  /// The least sizes if nothing had to be survived: the same searches, which mostly ask again.
  void find_unprepared(const std::vector<SizeQuestion>& questions) {
    const std::vector<FamilyOutcome> outcomes = least_sizes(questions, Asked::kSpares);
    for (std::size_t f = 0; f < outcomes.size(); ++f) {
      FamilyOutcome& family = result_.families[f];
      if (!family.size) continue;
      family.unprepared = outcomes[f].size;
      const auto price = [&](const FleetSize& n) { return space_.families[f].price(n); };
      // More servers may do worse, so each search can pass over what the other finds.
      if (!family.unprepared || price(*family.unprepared) > price(*family.size))
        family.unprepared = family.size;
      std::vector<FleetProbe> probes = {
          {.family = f, .size = *family.unprepared, .rate = space_.planned_rate()}};
      evaluate(probes, Asked::kAll);
      add_spares(probes, Asked::kAll);
      if (evaluator_.at(probes.front()).holds()) family.size = family.unprepared;
    }
  }

  /// More servers may do worse, so a search with other step times can pass over the size that the
  /// plan has; that counts where it holds and is cheaper.
  void prefer_found_size(const FoundPlan& plan, const SizeQuestion& q, FamilyOutcome& outcome) {
    const PlanFamily& family = space_.families[q.family];
    if (outcome.size && family.price(*outcome.size) <= family.price(plan.needed)) return;
    std::vector<FleetProbe> probes = {{.family = q.family,
                                       .size = plan.needed,
                                       .rate = space_.planned_rate(),
                                       .step_factor = q.step_factor}};
    evaluate(probes, Asked::kAll);
    add_spares(probes, Asked::kAll);
    if (evaluator_.at(probes.front()).holds()) outcome.size = plan.needed;
  }

  /// The fleet of every found plan at the ends of its error band. Two searches per plan, of about
  /// log2(sizes) fleets each.
  void find_bands() {
    std::vector<SizeQuestion> questions;
    for (const FoundPlan& plan : result_.plans)
      for (const int side : {1, -1})
        questions.push_back({plan.family, 1 + side * step_time_band(plan.found.step_times)});
    std::vector<FamilyOutcome> outcomes = least_sizes(questions);
    for (std::size_t i = 0; i < questions.size(); ++i)
      prefer_found_size(result_.plans[i / 2], questions[i], outcomes[i]);
    for (std::size_t i = 0; i < result_.plans.size(); ++i) {
      FoundPlan& plan = result_.plans[i];
      plan.found.step_time_band = {.fraction = step_time_band(plan.found.step_times),
                                   .longer = bought_fleet(plan, outcomes[2 * i].size),
                                   .shorter = bought_fleet(plan, outcomes[2 * i + 1].size)};
    }
  }

  /// Of the plan's family, where `needed` holds; nothing where no size does.
  std::optional<PlanRecord::Fleet> bought_fleet(const FoundPlan& plan,
                                                const std::optional<FleetSize>& needed) const {
    if (!needed) return std::nullopt;
    return fleet_of(space_, space_.families[plan.family], space_.bought(*needed));
  }

  /// The fleet must hold with its spares, too, not only without them.
  void add_spares(std::vector<FleetProbe>& probes, Asked asked) {
    if (space_.config.spares == 0) return;
    std::vector<FleetProbe> bought;
    for (FleetProbe& probe : probes) {
      if (!judged(probe, asked).holds()) continue;
      probe.size = space_.bought(probe.size);
      bought.push_back(probe);
    }
    evaluate(bought, asked);
  }

  void rank(PlanResult& result) const {
    for (std::size_t f = 0; f < result.families.size(); ++f) {
      const FamilyOutcome& outcome = result.families[f];
      if (!outcome.size) continue;
      FoundPlan plan{.family = f, .size = space_.bought(*outcome.size), .needed = *outcome.size};
      plan.found.price_per_hour = space_.families[f].price(plan.size);
      result.plans.push_back(std::move(plan));
    }
    std::ranges::stable_sort(result.plans, {},
                             [](const FoundPlan& plan) { return plan.found.price_per_hour; });
    if (result.plans.size() > kMostPlans) result.plans.resize(kMostPlans);
  }

  static void take(FoundPlan& plan, const FleetEvaluation& evaluation) {
    plan.evaluation = evaluation;
    plan.found.step_times = evaluation.trust();
    const double tokens_per_hour = 3600 * evaluation.mean_of(&FleetRun::output_tokens_per_s);
    if (tokens_per_hour > 0)
      plan.found.price_per_million_output_tokens =
          plan.found.price_per_hour / tokens_per_hour * 1e6;
  }

  void evaluate_bought() {
    std::vector<FleetProbe> probes;
    for (const FoundPlan& plan : result_.plans)
      probes.push_back({.family = plan.family, .size = plan.size, .rate = space_.planned_rate()});
    for (const FoundPlan& plan : result_.plans)
      if (const auto without = space_.families[plan.family].without)
        probes.push_back({.family = *without, .size = plan.size, .rate = space_.planned_rate()});
    evaluator_.evaluate(probes);
    auto bare = probes.begin() + std::ssize(result_.plans);
    for (std::size_t i = 0; i < result_.plans.size(); ++i) {
      FoundPlan& plan = result_.plans[i];
      if (space_.families[plan.family].without) plan.without = evaluator_.at(*bare++);
      take(plan, evaluator_.at(probes[i]));
      if (std::optional<FleetSize> size = result_.families[plan.family].unprepared) {
        const std::vector<FleetProbe> bare_probes = {
            {.family = plan.family, .size = space_.bought(*size), .rate = space_.planned_rate()}};
        evaluate(bare_probes, Asked::kAll);
        plan.unprepared = evaluator_.at(bare_probes.front());
      }
    }
  }

  /// Whether the fleet, with its spares and without them, meets every goal with `factor` times its
  /// KV blocks, with the same seeds.
  bool holds_with_blocks(const FoundPlan& plan, double factor) {
    const auto all_hold = [&](const FleetEvaluation& e) {
      return run_with_blocks(e, factor) && std::ranges::all_of(e.windows, [&](const auto& window) {
               return run_with_blocks(*window, factor);
             });
    };
    return all_hold(plan.evaluation) &&
           (plan.needed == plan.size ||
            all_hold(evaluator_.at(
                {.family = plan.family, .size = plan.needed, .rate = space_.planned_rate()})));
  }

  bool run_with_blocks(const FleetEvaluation& evaluation, double factor) {
    std::vector<sim::RunPlan> plans;
    for (std::size_t r = 0; r < evaluation.runs.size(); ++r) {
      plans.push_back(sim::with_kv_blocks(*evaluation.plan, factor));
      plans.back().scenario.seed += r;
    }
    FleetEvaluation changed{
        .probe = evaluation.probe,
        .runs = evaluator_.run_once(plans, space_.planned_rate(), evaluation.probe.survival)};
    judge_goals(space_, changed);
    return changed.holds();
  }

  void find_knees() {
    const double rate = space_.planned_rate();
    std::vector<sim::RateSearch> searches(
        result_.plans.size(),
        sim::RateSearch(rate, space_.config.knee_limit * rate, kKneeTolerance));
    ask_together(
        searches, Asked::kRate,
        [&](std::size_t i, double next) {
          const FoundPlan& plan = result_.plans[i];
          return FleetProbe{.family = plan.family, .size = plan.size, .rate = next};
        },
        [](sim::RateSearch& search, const FleetEvaluation& e) { search.tell(e.holds()); });
    for (std::size_t i = 0; i < searches.size(); ++i) {
      result_.plans[i].found.knee_requests_per_s = searches[i].holds();
      result_.plans[i].found.knee_fails_at = searches[i].fails();
    }
  }

  void find_bindings() {
    for (FoundPlan& plan : result_.plans) {
      const std::optional<double> fails = plan.found.knee_fails_at;
      plan.found.binding.emplace();
      if (fails)
        plan.found.binding =
            bind(evaluator_.at({.family = plan.family, .size = plan.size, .rate = *fails}));
    }
  }

  /// When each fleet must grow. Some three fleets for each server that is added.
  void find_months() {
    if (space_.config.demand.months == 0) return;
    std::vector<GrowthSearch> searches;
    for (const FoundPlan& plan : result_.plans)
      searches.emplace_back(space_, space_.families[plan.family], plan.needed,
                            space_.config.demand.months);
    ask_together(
        searches, Asked::kAll,
        [&](std::size_t i, const GrowthSearch::Question& q) {
          return FleetProbe{
              .family = result_.plans[i].family, .size = q.size, .rate = space_.rate_in(q.month)};
        },
        [](GrowthSearch& search, const FleetEvaluation& e) { search.tell(e); });
    for (std::size_t i = 0; i < searches.size(); ++i) {
      FoundPlan& plan = result_.plans[i];
      plan.found.months.emplace();
      for (const auto& [month, size] : searches[i].steps())
        plan.found.months->push_back({month, space_.rate_in(month), bought_fleet(plan, size)});
    }
  }

  /// Repeats a miss with each resource doubled, and names the one that helps most.
  Binding bind(const FleetEvaluation& miss) {
    constexpr double kNoHelp =
        0.95;  // Share of the shortfall; a smaller improvement names nothing.
    constexpr double kLopsided = 1.5;  // Requests of the busiest endpoint over the mean.
    const std::size_t goal = miss.worst_goal();
    std::vector<sim::RunPlan> plans = {*miss.plan};
    std::vector<sim::Resource> resources;
    for (const sim::Resource r : sim::kResources)
      if (sim::has_resource(*miss.plan, r)) {
        resources.push_back(r);
        plans.push_back(sim::with_doubled(*miss.plan, r));
      }
    const std::size_t changes = plans.size();
    // A queue that grows is told by a probe; all else by as many runs of each as an undecided fleet
    // has first.
    const bool by_probe =
        space_.goals[goal].kind == PlanGoal::Kind::kGrowth && miss.steady.has_value();
    const std::vector<double> queues =
        by_probe ? evaluator_.queue_shortfalls(plans, miss.probe.rate) : std::vector<double>();
    if (by_probe) plans.resize(1);
    for (std::int64_t r = 1; r < space_.config.replications && !by_probe; ++r)
      for (std::size_t i = 0; i < changes; ++i) {
        plans.push_back(plans[i]);
        plans.back().scenario.seed += static_cast<std::uint64_t>(r);
      }
    const std::vector<FleetRun> runs = evaluator_.run_once(plans, miss.probe.rate);
    const auto shortfall = [&](std::size_t change) {
      if (by_probe) return queues[change];
      std::vector<double> values;
      for (std::size_t i = change; i < runs.size(); i += changes)
        values.push_back(runs[i].values[goal]);
      return judge(space_.goals[goal], values, space_.config.confidence).shortfall;
    };
    const double missed = miss.states[goal].shortfall;
    Binding binding{
        .goal = space_.goals[goal].label, .missed_by = missed, .missed_by_with_double = missed};
    double least = kNoHelp * shortfall(0);
    for (std::size_t i = 0; i < resources.size(); ++i) {
      const double with_double = shortfall(i + 1);
      if (with_double >= least) continue;
      binding.resource = sim::resource_name(resources[i]);
      binding.missed_by_with_double = least = with_double;
    }
    // One endpoint that everybody is sent to runs short long before the fleet does.
    if (runs[0].imbalance >= kLopsided) {
      binding.resource =
          binding.resource.empty() ? "hot prefix" : "hot prefix, " + binding.resource;
    }
    return binding;
  }

  /// How many replicas may be gone at today's rate, whichever pool loses them. Nothing where the
  /// whole fleet misses a goal then: today's load may be too little for one of throughput.
  std::optional<std::int64_t> spares_of(const FoundPlan& plan) {
    const FleetProbe whole{.family = plan.family, .size = plan.size, .rate = space_.rate_today()};
    evaluate({whole}, Asked::kAll);
    if (!evaluator_.at(whole).holds()) return std::nullopt;
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
    for (std::size_t pool = 0; pool < plan.size.size(); ++pool)
      fewest = std::min(fewest, spares_of(plan, pool));
    return fewest;
  }

  std::int64_t spares_of(const FoundPlan& plan, std::size_t pool) {
    sim::Bisection search(1, plan.size[pool]);
    search.tell(true);  // The whole fleet holds.
    while (const auto n = search.next()) {
      FleetProbe probe{.family = plan.family, .size = plan.size, .rate = space_.rate_today()};
      probe.size[pool] = *n;
      // At the planned rate the smallest fleet is known already, and nothing below it holds.
      const bool known_to_fail = space_.config.demand.growth == 0 && plan.size.size() == 1 &&
                                 *n < plan.needed[pool] && *n >= space_.config.pools[pool].min;
      if (known_to_fail) {
        search.tell(false);
        continue;
      }
      evaluate({probe}, Asked::kAll);
      search.tell(evaluator_.at(probe).holds());
    }
    return plan.size[pool] - search.answer().value_or(plan.size[pool]);
  }

  void run_days() {
    std::vector<DayFleet> fleets;
    for (const FoundPlan& plan : result_.plans) fleets.push_back({plan.family, plan.size});
    std::vector<std::vector<DayOfFleet>> found = run_day(space_, fleets, evaluator_.experiment());
    for (std::size_t i = 0; i < found.size(); ++i) result_.plans[i].found.day = std::move(found[i]);
  }

  const PlanSpace& space_;
  FleetEvaluator& evaluator_;
  PlanResult& found_;  ///< For the caller.
  PlanResult result_;
};

}  // namespace

void search_plan(const PlanSpace& space, FleetEvaluator& evaluator, PlanResult& result) {
  PlanSearch search(space, evaluator, result);
  try {
    search.run();
  } catch (const Stopped&) {
    search.keep();
    throw;
  }
}

}  // namespace routesim::tools
