#include "tools/study/tune/race.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/results/statistics.h"

namespace routesim::tools {

namespace {

std::vector<double> seed_differences(std::span<const double> a, std::span<const double> b) {
  std::vector<double> out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = a[i] - b[i];
  return out;
}

bool is_same(const RaceEntry& a, const RaceEntry& b) {
  return a.costs == b.costs && a.excesses == b.excesses && a.guards == b.guards;
}

/// Whether `other` beats `entry`: worse in no mean, and better beyond chance in one.
bool is_beaten(const RaceEntry& entry, const RaceEntry& other, double level) {
  if (other.violation() > 0) return false;
  bool beyond_chance = false;
  for (std::size_t g = 0; g < entry.costs.size(); ++g) {
    const std::vector<double> more = seed_differences(entry.costs[g], other.costs[g]);
    if (sim::mean(more) < 0) return false;
    beyond_chance = beyond_chance || is_above_zero(more, level);
  }
  return beyond_chance;
}

}  // namespace

bool is_above_zero(std::span<const double> differences, double level) {
  if (differences.size() < 2) return false;
  const double mean = sim::mean(differences);
  const auto n = static_cast<double>(differences.size());
  const double error = sim::sample_sd(differences) / std::sqrt(n);
  return mean > 0 && mean > sim::student_t_quantile(1 - level, n - 1) * error;
}

bool is_condition_broken(std::span<const double> excesses, double level) {
  return std::ranges::any_of(excesses, [](double e) { return std::isnan(e); }) ||
         is_above_zero(excesses, level);
}

double cost_of(double value, sim::Direction direction, bool by_ratio) {
  const double cost = by_ratio ? std::log(value) : value;
  return direction == sim::Direction::kSmallerIsBetter ? cost : -cost;
}

double RaceEntry::mean_cost(std::size_t goal) const { return sim::mean(costs[goal]); }

double RaceEntry::total_cost() const {
  double sum = 0;
  for (std::size_t g = 0; g < costs.size(); ++g) sum += mean_cost(g);
  return sum;
}

double RaceEntry::violation() const {
  double sum = 0;
  for (const std::vector<double>& excess : excesses) {
    const double mean = sim::mean(excess);
    sum += std::isnan(mean) ? std::numeric_limits<double>::infinity() : std::max(0.0, mean);
  }
  return sum;
}

bool comes_first(const RaceEntry& a, const RaceEntry& b) {
  const double over_a = a.violation();
  const double over_b = b.violation();
  return over_a != over_b ? over_a < over_b : a.total_cost() < b.total_cost();
}

std::vector<RaceDecision> decide_round(std::span<const RaceEntry> entries, double level) {
  std::vector<RaceDecision> out(entries.size());
  if (entries.size() < 2) return out;
  const double goals = entries.front().costs.size() > 1 ? 2 : 1;
  const double each = level / static_cast<double>(entries.size() - 1) / goals;
  const bool guarded = goals == 1 && entries.front().violation() == 0;
  const auto is_broken = [&](const auto& excess) { return is_condition_broken(excess, each); };
  const auto breaks_guard = [&](std::size_t i) {
    return guarded && std::ranges::any_of(entries[i].guards, is_broken);
  };
  std::size_t best = 0;  // One that breaks a guard is no measure for others.
  for (std::size_t i = 1; i < entries.size(); ++i)
    if (comes_first(entries[i], entries[best]) && !breaks_guard(i)) best = i;
  const auto beaten_by = [&](std::size_t i) {
    if (goals == 1) return i != best && is_beaten(entries[i], entries[best], each) ? best : i;
    for (std::size_t other = 0; other < entries.size(); ++other)
      if (other != i && is_beaten(entries[i], entries[other], each)) return other;
    return i;
  };
  for (std::size_t i = 1; i < entries.size(); ++i) {
    const auto same =
        std::find_if(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(i),
                     [&](const RaceEntry& e) { return is_same(e, entries[i]); });
    const auto earlier = static_cast<std::size_t>(same - entries.begin());
    const std::size_t by = beaten_by(i);
    if (earlier != i)
      out[i] = {RaceExit::kSame, earlier};
    else if (std::ranges::any_of(entries[i].excesses, is_broken))
      out[i] = {RaceExit::kBreaksCondition, i};
    else if (by != i)
      out[i] = {RaceExit::kWorse, by};
    else if (breaks_guard(i))
      out[i] = {RaceExit::kBreaksGuard, i};
  }
  return out;
}

std::vector<std::size_t> front_of(std::span<const RaceEntry> entries) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto beats = [&](const RaceEntry& other) {
      bool better = false;
      for (std::size_t g = 0; g < other.costs.size(); ++g) {
        const double less = entries[i].mean_cost(g) - other.mean_cost(g);
        if (less < 0) return false;
        better = better || less > 0;
      }
      return better && other.violation() <= entries[i].violation();
    };
    if (std::ranges::none_of(entries, beats)) out.push_back(i);
  }
  return out;
}

namespace {

/// One run of one configuration.
struct SeedRun {
  const SeedRuns* of = nullptr;
  std::uint64_t seed = 0;
  std::vector<double> values = {};
  double work = 0;
};

void run_one(const TuneSpace& space, SeedRun& run, Experiment& experiment, Diagnostics& found) {
  const sim::RunPlan& plan = *run.of->plan;
  run.values.assign(space.metrics.size(), std::numeric_limits<double>::quiet_NaN());
  try {
    const auto result =
        experiment.run({.plan = plan, .seed = run.seed, .goals = goals_of(plan.scenario)}, found);
    if (!result) return;
    for (const sim::ReplicaResult& replica : result->replicas)
      run.work += static_cast<double>(replica.prefix_query_tokens + 1000 * replica.requests);
    for (std::size_t m = 0; m < space.metrics.size(); ++m)
      if (const auto value = metric_value(result->summary, space.metrics[m]))
        run.values[m] = *value;
  } catch (const sim::StuckError&) {
    // Its values stay absent, so the candidate leaves the race.
    ++experiment.progress().runs;
  } catch (const sim::NoServerError&) {
    ++experiment.progress().runs;
  }
}

}  // namespace

double run_candidates(const TuneSpace& space, std::span<const SeedRuns> candidates,
                      Experiment& experiment) {
  std::vector<SeedRun> runs;
  for (const SeedRuns& candidate : candidates)
    for (const std::uint64_t seed : candidate.seeds)
      runs.push_back({.of = &candidate, .seed = seed});
  experiment.each(runs.size(), [&](std::size_t i, Diagnostics& found) {
    run_one(space, runs[i], experiment, found);
  });
  double work = 0;
  for (const SeedRun& run : runs) {
    run.of->values->resize(space.metrics.size());
    for (std::size_t m = 0; m < space.metrics.size(); ++m)
      (*run.of->values)[m].push_back(run.values[m]);
    work += run.work;
  }
  return work;
}

std::string problem_of(const Diagnostics& found) {
  const auto is_error = [](const Diagnostic& d) { return d.severity == Severity::kError; };
  const auto first = std::ranges::find_if(found.items(), is_error);
  return first == found.items().end() ? std::string() : first->path + " " + first->message;
}

}  // namespace routesim::tools
