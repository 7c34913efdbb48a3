#include "tools/study/tune/tune_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/text.h"
#include "tools/results/statistics.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

Choice published_of(std::span<const Knob> knobs) {
  Choice choice;
  for (const Knob& knob : knobs) choice.push_back(knob.published);
  return choice;
}

/// The values that single_changes() tries, in their order.
std::vector<std::size_t> tried_values(const Knob& knob) {
  std::vector<std::size_t> all;
  const std::size_t last = knob.values.size() - 1;
  const std::size_t p = knob.published;
  if (knob.ordered)
    all = {p < last ? p + 1 : p, p > 0 ? p - 1 : p, last, 0};
  else
    for (std::size_t v = 0; v <= last; ++v) all.push_back(v);
  std::vector<std::size_t> out;
  for (const std::size_t v : all)
    if (v != p && std::ranges::find(out, v) == out.end()) out.push_back(v);
  return out;
}

}  // namespace

std::vector<Choice> single_changes(std::span<const Knob> knobs) {
  std::vector<Choice> out;
  bool more = true;
  for (std::size_t n = 0; more; ++n) {
    more = false;
    for (std::size_t k = 0; k < knobs.size(); ++k) {
      const std::vector<std::size_t> values = tried_values(knobs[k]);
      if (n >= values.size()) continue;
      more = true;
      out.push_back(published_of(knobs));
      out.back()[k] = values[n];
    }
  }
  return out;
}

std::vector<Choice> latin_hypercube(std::span<const Knob> knobs, std::size_t count,
                                    std::uint64_t seed) {
  std::vector<Choice> out(count, Choice(knobs.size()));
  for (std::size_t k = 0; k < knobs.size(); ++k) {
    RandomStream random(seed, kSearchStream, k);
    std::vector<std::size_t> parts(count);
    std::iota(parts.begin(), parts.end(), std::size_t{0});
    random.shuffle(parts.begin(), parts.end());
    for (std::size_t i = 0; i < count; ++i) {
      const double at = (static_cast<double>(parts[i]) + random.uniform()) /
                        static_cast<double>(count) * static_cast<double>(knobs[k].values.size());
      out[i][k] = std::min(static_cast<std::size_t>(at), knobs[k].values.size() - 1);
    }
  }
  return out;
}

Choice neighbour(std::span<const Knob> knobs, const Choice& parent, double spread,
                 RandomStream& random) {
  Choice choice = parent;
  const double probability = std::min(1.0, 2.0 / static_cast<double>(knobs.size()));
  const std::size_t forced = random.below(knobs.size());
  for (std::size_t k = 0; k < knobs.size(); ++k) {
    const bool changes = random.uniform() < probability;
    if (!changes && k != forced) continue;
    const auto size = static_cast<double>(knobs[k].values.size());
    if (!knobs[k].ordered) {
      const auto other = static_cast<std::size_t>(random.below(knobs[k].values.size() - 1));
      choice[k] = other < parent[k] ? other : other + 1;
      continue;
    }
    const double step = random.normal() * spread * size;
    const double whole = step < 0 ? std::floor(step) : std::ceil(step);
    const double at = std::clamp(static_cast<double>(parent[k]) + whole, 0.0, size - 1);
    choice[k] = static_cast<std::size_t>(at);
  }
  return choice;
}

namespace {

/// Blocks of seeds in the last iteration, at most.
constexpr std::size_t kMostRounds = 8;
/// Blocks that the first iteration may take.
constexpr std::size_t kFirstRounds = 3;
/// Blocks that a candidate of the first iteration takes on average: one, and more of those that are
/// not clearly worse.
constexpr double kFirstBlocks = 1.6;

sim::RunPlan published_plan(const TuneSpace& space, Experiment& experiment) {
  auto plan = prepare_choice(space, space.published(), {}, experiment.diagnostics());
  if (!plan) throw Stopped{};
  return std::move(*plan);
}

class Search {
 public:
  Search(const TuneSpace& space, Experiment& experiment, TuneSearchResult& result)
      : space_(space),
        experiment_(experiment),
        result_(result),
        block_(static_cast<std::size_t>(space.config.block)),
        seed_(mix64(space.seed, kSearchSalt)) {
    result_.conditions = space.conditions;
    result_.guards = space.guards;
  }

  void run(std::size_t budget) {
    result_.budget = budget;
    const auto for_races =
        static_cast<std::size_t>(static_cast<double>(budget) * (1 - kSimplifyShare));
    experiment_.progress().planned = budget;
    start();
    const std::size_t iterations = iteration_count(for_races);
    for (iteration_ = 1; iteration_ <= iterations; ++iteration_) {
      const std::size_t left = for_races - std::min(for_races, result_.runs);
      limit_ = result_.runs + left / (iterations + 1 - iteration_);
      add_candidates(iterations);
      race(iteration_ == iterations ? kMostRounds : std::max(kFirstRounds, elite_rounds() + 1));
      for (const std::size_t i : std::vector<std::size_t>(alive_))
        if (result_.candidates[i].seeds() == 0) drop(i, "no run was left for it");
      keep_elites();
    }
    limit_ = budget;
    choose_best();
    simplify();
    result_.finalists.clear();
    if (result_.best != 0) result_.finalists = {result_.best};
    for (const std::size_t i : order_)
      if (i != result_.best) result_.finalists.push_back(i);
    // The judgement finds out whether the best one, made simpler, is on the front.
    std::vector<std::size_t>& front = result_.front;
    if (!front.empty() && std::ranges::find(front, result_.best) == front.end())
      front.insert(front.begin(), result_.best);
  }

 private:
  /// irace's rule: two, and one for each doubling of the knobs; fewer where an iteration would have
  /// less than twenty blocks.
  std::size_t iteration_count(std::size_t runs) const {
    const double knobs = static_cast<double>(space_.knobs.size());
    return std::clamp<std::size_t>(2 + static_cast<std::size_t>(std::log2(knobs)), 1,
                                   std::clamp<std::size_t>(runs / (20 * block_), 1, 5));
  }

  /// Runs the published configuration, whose numbers all others are compared with.
  void start() {
    (void)add(space_.published());
    run_block(std::vector<std::size_t>{0}, 0);
    const std::vector<std::vector<double>>& values = result_.candidates[0].values;
    const auto is_missing = [&](const MetricName& metric) {
      const auto at = std::ranges::find(space_.metrics, metric) - space_.metrics.begin();
      return std::ranges::any_of(values[static_cast<std::size_t>(at)],
                                 [](double v) { return !std::isfinite(v); });
    };
    for (const TuneGoal& goal : space_.goals)
      if (is_missing(goal.metric))
        experiment_.diagnostics().error({.file = space_.path}, "goals",
                                        "the load has no " + goal.metric.text);
    for (const Condition& condition : result_.conditions)
      if (space_.config.subject_to && is_missing(condition.metric))
        experiment_.diagnostics().error({.file = space_.path}, "subject_to",
                                        "the load has no " + condition.metric.text);
    experiment_.throw_if_stopped();
    std::erase_if(result_.conditions, [&](const Condition& c) { return is_missing(c.metric); });
    std::erase_if(result_.guards, is_missing);
    alive_ = {0};
  }

  /// Index of the candidate with this choice, a new one if there was none.
  std::size_t add(const Choice& choice) {
    const auto [it, is_new] = index_.try_emplace(choice, result_.candidates.size());
    if (is_new) result_.candidates.push_back({.choice = choice});
    return it->second;
  }

  std::size_t elite_rounds() const { return result_.candidates[0].rounds; }

  void add_candidates(std::size_t iterations) {
    const std::size_t left = limit_ - std::min(limit_, result_.runs);
    // A candidate faces one block, and those that are not clearly worse the blocks of the elites.
    const double blocks =
        iteration_ == 1 ? kFirstBlocks : 1.2 + 0.4 * static_cast<double>(elite_rounds());
    const double cost = blocks * static_cast<double>(block_);
    const auto count =
        std::max<std::size_t>(2, static_cast<std::size_t>(static_cast<double>(left) / cost));
    std::vector<Choice> choices;
    if (iteration_ == 1) {
      choices = single_changes(space_.knobs);
      choices.resize(std::min(choices.size(), std::max<std::size_t>(1, count / 2)));
      for (Choice& c :
           latin_hypercube(space_.knobs, count - std::min(count, choices.size()), seed_))
        choices.push_back(std::move(c));
    } else {
      choices = near_elites(count, iterations);
    }
    for (const Choice& drawn : choices)
      if (const Choice choice = space_.possible(drawn); !index_.contains(choice))
        alive_.push_back(add(choice));
    prepare();
  }

  /// Choices near those in the race, the better ones more often (irace's linear weights).
  std::vector<Choice> near_elites(std::size_t count, std::size_t iterations) {
    const std::vector<std::size_t> order = ranked();
    const double spread = 0.4 / static_cast<double>(iteration_);
    std::vector<Choice> out;
    std::set<Choice> now;
    const std::size_t n = order.size();
    for (std::size_t i = 0; i < 20 * count && out.size() < count; ++i) {
      RandomStream random(seed_, kSearchStream, (iteration_ * iterations << 32U) + i);
      auto draw = static_cast<std::size_t>(random.below(n * (n + 1) / 2));
      std::size_t parent = 0;
      while (draw >= n - parent) draw -= n - parent++;
      Choice choice =
          neighbour(space_.knobs, result_.candidates[order[parent]].choice, spread, random);
      if (!index_.contains(choice) && now.insert(choice).second) out.push_back(std::move(choice));
    }
    return out;
  }

  /// Resolves those in the race that have no plan yet. One that cannot run leaves.
  void prepare() {
    std::vector<std::string> problems(result_.candidates.size());
    experiment_.each(alive_.size(), [&](std::size_t i, Diagnostics&) {
      TuneCandidate& candidate = result_.candidates[alive_[i]];
      if (candidate.plan != nullptr) return;
      Diagnostics found;
      if (auto plan = prepare_choice(space_, candidate.choice, {}, found))
        candidate.plan = std::make_shared<const sim::RunPlan>(std::move(*plan));
      problems[alive_[i]] = problem_of(found);
    });
    for (std::size_t i = 0; i < problems.size(); ++i)
      if (!problems[i].empty()) drop(i, "cannot run: " + problems[i]);
  }

  void drop(std::size_t index, const std::string& why) {
    result_.candidates[index].dropped = why;
    result_.candidates[index].plan.reset();
    std::erase(alive_, index);
  }

  /// Runs block number `round` for these candidates, as far as they have not faced it.
  void run_block(const std::vector<std::size_t>& indices, std::size_t round) {
    std::vector<std::size_t> missing;
    for (const std::size_t i : indices)
      if (result_.candidates[i].rounds == round) missing.push_back(i);
    if (result_.candidates[0].plan == nullptr)
      result_.candidates[0].plan =
          std::make_shared<const sim::RunPlan>(published_plan(space_, experiment_));
    std::vector<std::uint64_t> seeds(block_);
    std::iota(seeds.begin(), seeds.end(), space_.seed + round * block_);
    std::vector<SeedRuns> runs;
    for (const std::size_t i : missing) {
      TuneCandidate& candidate = result_.candidates[i];
      ++candidate.rounds;
      runs.push_back({.plan = candidate.plan.get(), .seeds = seeds, .values = &candidate.values});
    }
    run_candidates(space_, runs, experiment_);
    result_.runs += missing.size() * block_;
  }

  /// Entries of candidates that are compared with each other.
  std::vector<RaceEntry> entries(const std::vector<std::size_t>& indices, std::size_t seeds) const {
    std::vector<const SeedValues*> values;
    for (const std::size_t i : indices) values.push_back(&result_.candidates[i].values);
    return entries_of(space_, result_.conditions, values, result_.candidates[0].values, seeds,
                      result_.guards);
  }

  /// Seeds that all candidates in the race have faced.
  std::size_t common_seeds() const {
    std::size_t seeds = std::numeric_limits<std::size_t>::max();
    for (const std::size_t i : alive_) seeds = std::min(seeds, result_.candidates[i].seeds());
    return seeds;
  }

  void race(std::size_t most_rounds) {
    for (std::size_t round = 0; round < most_rounds && alive_.size() > 1; ++round) {
      experiment_.progress().candidates = alive_.size();
      if (!fit_to_budget(round)) return;
      const std::size_t before = alive_.size();
      run_block(alive_, round);
      decide(round);
      if (round + 1 >= elite_rounds() || alive_.size() < before)
        result_.rounds.push_back({.round = std::ssize(result_.rounds) + 1,
                                  .iteration = static_cast<std::int64_t>(iteration_),
                                  .seeds = static_cast<std::int64_t>((round + 1) * block_),
                                  .candidates = static_cast<std::int64_t>(before),
                                  .left = std::ssize(alive_)});
      choose_best();
      result_.finalists = order_;
      experiment_.tell();
    }
  }

  /// Leaves out the worst when a block for all would cost more than is left. False when it is not
  /// enough for two.
  bool fit_to_budget(std::size_t round) {
    const auto needs = [&](std::size_t i) { return result_.candidates[i].rounds <= round; };
    const auto cost = [&] {
      return block_ * static_cast<std::size_t>(std::ranges::count_if(alive_, needs));
    };
    const std::size_t left = limit_ - std::min(limit_, result_.runs);
    if (cost() <= left) return true;
    if (2 * block_ > left) return false;
    const std::vector<std::size_t> order = ranked();
    for (std::size_t i = order.size(); i-- > 1 && cost() > left;)
      if (order[i] != 0) drop(order[i], "not among the best when the runs ran out");
    return true;
  }

  void decide(std::size_t round) {
    const std::size_t seeds = (round + 1) * block_;
    for (const std::size_t i : std::vector<std::size_t>(alive_)) {
      const RaceEntry e = entries({i}, seeds).front();
      const auto missing = [](const std::vector<double>& values) {
        return std::ranges::any_of(values, [](double v) { return !std::isfinite(v); });
      };
      if (i != 0 &&
          (std::ranges::any_of(e.costs, missing) || std::ranges::any_of(e.excesses, missing) ||
           std::ranges::any_of(e.guards, missing)))
        drop(i, "some run has no value to compare");
    }
    std::ranges::sort(alive_);
    const std::vector<RaceDecision> decisions =
        decide_round(entries(alive_, seeds), 1 - space_.config.confidence);
    const std::vector<std::size_t> in_race = alive_;
    for (std::size_t i = 0; i < in_race.size(); ++i) {
      const std::string other = fmt::format("#{}", in_race[decisions[i].by]);
      if (decisions[i].exit == RaceExit::kWorse) drop(in_race[i], "worse than " + other);
      if (decisions[i].exit == RaceExit::kSame) drop(in_race[i], "same results as " + other);
      if (decisions[i].exit == RaceExit::kBreaksCondition) drop(in_race[i], "breaks a condition");
      if (decisions[i].exit == RaceExit::kBreaksGuard) drop(in_race[i], "breaks a guard");
    }
  }

  /// Candidates in the race, the best first, by the seeds that all of them have faced.
  std::vector<std::size_t> ranked() const {
    const std::size_t seeds = common_seeds();
    if (seeds == 0) return alive_;
    const std::vector<RaceEntry> all = entries(alive_, seeds);
    std::vector<std::size_t> places(all.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::ranges::stable_sort(
        places, [&](std::size_t a, std::size_t b) { return comes_first(all[a], all[b]); });
    std::vector<std::size_t> order;
    for (const std::size_t place : places) order.push_back(alive_[place]);
    return order;
  }

  /// irace's number of elites, and with two goals all on the front.
  void keep_elites() {
    const std::size_t most =
        3 + static_cast<std::size_t>(std::log2(static_cast<double>(space_.knobs.size())));
    const std::vector<std::size_t> order = ranked();
    const std::vector<std::size_t> kept = front();
    for (std::size_t i = most; i < order.size(); ++i)
      if (order[i] != 0 && std::ranges::find(kept, order[i]) == kept.end())
        drop(order[i], fmt::format("not among the {} best of its iteration", most));
  }

  /// With two goals, the candidates in the race that no other one beats in both.
  std::vector<std::size_t> front() const {
    std::vector<std::size_t> out;
    if (space_.goals.size() < 2) return out;
    for (const std::size_t i : front_of(entries(alive_, common_seeds()))) out.push_back(alive_[i]);
    return out;
  }

  void choose_best() {
    order_ = ranked();
    std::erase(order_, std::size_t{0});
    result_.best = order_.empty() ? 0 : order_.front();
    result_.front = front();
  }

  /// Takes back every change of the best one that gains nothing. When all go back, none does: then
  /// the judgement shows that the best one gains nothing.
  void simplify() {
    if (result_.best == 0) return;
    const TuneCandidate& best = result_.candidates[result_.best];
    const std::vector<std::size_t> changed = space_.changed(best.choice);
    const std::size_t left = limit_ - std::min(limit_, result_.runs);
    const std::size_t rounds = std::min(best.rounds, left / (changed.size() * block_));
    if (changed.size() < 2 || rounds == 0) return;
    const std::size_t seeds = rounds * block_;
    std::size_t simple = result_.best;
    iteration_ = 0;
    for (const std::size_t knob : changed) {
      Choice choice = result_.candidates[simple].choice;
      choice[knob] = space_.knobs[knob].published;
      if (choice == space_.published()) continue;
      const std::size_t trial = add(choice);
      if (!race_again(trial, rounds)) continue;
      if (is_as_good(entries({trial, result_.best}, seeds)))
        simple = trial;
      else
        drop(trial,
             fmt::format("worse than #{}, which has {} than this one", result_.best,
                         counted(changed.size() - space_.changed(choice).size(), "more change")));
    }
    result_.best = simple;
  }

  /// Runs the blocks that a candidate, in the race or not, has not faced. False when it cannot run.
  bool race_again(std::size_t index, std::size_t rounds) {
    if (std::ranges::find(alive_, index) == alive_.end()) alive_.push_back(index);
    result_.candidates[index].dropped.clear();
    prepare();
    if (result_.candidates[index].plan == nullptr) return false;
    for (std::size_t round = result_.candidates[index].rounds; round < rounds; ++round)
      run_block({index}, round);
    return true;
  }

  /// Whether the first of two is as good as the second.
  bool is_as_good(const std::vector<RaceEntry>& both) const {
    const RaceEntry& trial = both[0];
    const RaceEntry& full = both[1];
    if (trial.violation() > full.violation()) return false;
    for (std::size_t g = 0; g < trial.costs.size(); ++g) {
      std::vector<double> more = trial.costs[g];
      for (std::size_t s = 0; s < more.size(); ++s) more[s] -= full.costs[g][s];
      const double tiny = trial.by_ratio[g] ? kTinyGain : kTinyGain * std::abs(full.mean_cost(g));
      if (!(sim::mean(more) <= tiny) || is_above_zero(more, 1 - space_.config.confidence))
        return false;
    }
    return true;
  }

  const TuneSpace& space_;
  Experiment& experiment_;
  TuneSearchResult& result_;
  std::size_t block_;                    ///< Seeds of one round.
  std::uint64_t seed_;                   ///< Of the draws of the search.
  std::map<Choice, std::size_t> index_;  ///< Of the candidates.
  std::vector<std::size_t> alive_;       ///< In the race, the published one included.
  std::vector<std::size_t> order_;       ///< The others at the end of the race, the best first.
  std::size_t iteration_ = 0;
  std::size_t limit_ = 0;  ///< Runs that may have been made at the end of this iteration.
};

}  // namespace

std::size_t TuneSearchResult::tried() const {
  const auto ran = [](const TuneCandidate& c) { return c.seeds() > 0; };
  return static_cast<std::size_t>(std::ranges::count_if(candidates, ran)) - 1;
}

bool is_ratio_metric(const MetricName& metric) {
  return metric.text.ends_with("_per_s") ||
         (!metric.statistic.empty() && metric.statistic != "min" && metric.statistic != "std");
}

std::vector<RaceEntry> entries_of(const TuneSpace& space, std::span<const Condition> conditions,
                                  std::span<const SeedValues* const> values,
                                  const SeedValues& published, std::size_t seeds,
                                  std::span<const MetricName> guards) {
  const auto index = [&](const MetricName& metric) {
    return static_cast<std::size_t>(std::ranges::find(space.metrics, metric) -
                                    space.metrics.begin());
  };
  const auto is_by_ratio = [&](const MetricName& metric) {
    const auto is_positive = [m = index(metric), seeds](const SeedValues& all) {
      return std::ranges::none_of(std::span(all[m]).first(seeds), [](double v) { return v <= 0; });
    };
    return is_ratio_metric(metric) && is_positive(published) &&
           std::ranges::all_of(values, [&](const SeedValues* v) { return is_positive(*v); });
  };
  std::vector<RaceEntry> entries(values.size());
  for (const TuneGoal& goal : space.goals) {
    const bool by_ratio = is_by_ratio(goal.metric);
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::vector<double>& costs = entries[i].costs.emplace_back();
      for (const double v : std::span((*values[i])[index(goal.metric)]).first(seeds))
        costs.push_back(cost_of(v, goal.metric.direction, by_ratio));
      entries[i].by_ratio.push_back(by_ratio);
    }
  }
  for (const Condition& condition : conditions) {
    const bool by_ratio = condition.bound > 0 && is_by_ratio(condition.metric);
    const std::size_t m = index(condition.metric);
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::vector<double>& excesses = entries[i].excesses.emplace_back();
      for (std::size_t s = 0; s < seeds; ++s) {
        const double value = (*values[i])[m][s];
        const double bound =
            condition.reference.empty() ? condition.bound : condition.bound / 100 * published[m][s];
        const double over = by_ratio ? std::log(value / bound) : value - bound;
        excesses.push_back(condition.less ? over : -over);
      }
    }
  }
  for (const MetricName& guard : guards) {
    const bool by_ratio = is_by_ratio(guard);
    const std::size_t m = index(guard);
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::vector<double>& more = entries[i].guards.emplace_back();
      for (std::size_t s = 0; s < seeds; ++s)
        more.push_back(cost_of((*values[i])[m][s], guard.direction, by_ratio) -
                       cost_of(published[m][s], guard.direction, by_ratio));
    }
  }
  return entries;
}

std::size_t least_candidates(const TuneSpace& space) {
  const std::size_t most = 2 * space.knobs.size();
  std::size_t choices = 1;
  for (const Knob& knob : space.knobs)
    choices = std::min(choices * knob.values.size(), most + 1);  // Cannot overflow.
  return std::min(choices - 1, most);
}

std::size_t least_budget(const TuneSpace& space) {
  const double blocks = 1 + kFirstBlocks * static_cast<double>(least_candidates(space));
  return static_cast<std::size_t>(
      std::ceil(blocks * static_cast<double>(space.config.block) / (1 - kSimplifyShare)));
}

std::size_t budget_of(const TuneSpace& space, Experiment& experiment) {
  if (space.config.budget) return static_cast<std::size_t>(*space.config.budget);
  const sim::RunPlan plan = published_plan(space, experiment);
  SeedValues values;
  const SeedRuns run{.plan = &plan, .seeds = {space.seed}, .values = &values};
  const double work = run_candidates(space, std::span(&run, 1), experiment);
  const double runs = std::min(kDefaultWork / work, static_cast<double>(kDefaultBudget));
  return std::max(static_cast<std::size_t>(runs), least_budget(space));
}

void search_tune(const TuneSpace& space, std::size_t budget, Experiment& experiment,
                 TuneSearchResult& result) {
  Search(space, experiment, result).run(budget);
}

}  // namespace routesim::tools
