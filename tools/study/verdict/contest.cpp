#include "tools/study/verdict/contest.h"

#include <algorithm>
#include <cmath>

#include "tools/results/statistics.h"

namespace routesim::tools {

namespace {

constexpr std::string_view kGoodput = "good_request_throughput";
constexpr std::string_view kLatency = "request_latency.mean";
constexpr std::string_view kOutput = "output_throughput";
constexpr double kMoreFailures = 0.01;  ///< Share of the requests; fewer are no difference.
/// Two values this close may change places with other seeds.
constexpr double kClose = 1.25;
constexpr double kMoreLoad = 1.1;     ///< Less than so much more load is no more load.
constexpr int kFailingLevel = 1'000;  ///< Above every level of a variant that does not fail.

/// A number of a variant, and its value of every replication where there are several.
struct Sample {
  double value = 0;
  std::vector<double> seeds;
};

std::optional<Sample> sample_of(const StageView& stage, std::string_view key) {
  const Datum* datum = stage.find(key);
  if (datum == nullptr) return std::nullopt;
  const auto seeds = stage.seeds.find(key);
  return Sample{datum->value, seeds == stage.seeds.end() ? std::vector<double>{} : seeds->second};
}

/// The mean over stages, each weighted by its requests.
std::optional<Sample> sample_of(const VariantView& v, const Yardstick& yardstick) {
  if (yardstick.stages.empty()) return sample_of(v.summary, yardstick.by.key);
  Sample mean;
  double weights = 0;
  bool has_seeds = true;  // Every stage has the same number of seeds.
  for (const std::size_t i : yardstick.stages) {
    const std::optional<Sample> one = sample_of(v.stages[i], yardstick.by.key);
    if (!one) return std::nullopt;
    const Datum* requests = v.stages[i].find("requests");
    const double weight = requests != nullptr ? requests->value : 1;
    weights += weight;
    mean.value += weight * one->value;
    if (i == yardstick.stages.front()) mean.seeds.resize(one->seeds.size());
    has_seeds = has_seeds && mean.seeds.size() == one->seeds.size();
    if (!has_seeds) mean.seeds.clear();
    for (std::size_t s = 0; s < mean.seeds.size(); ++s) mean.seeds[s] += weight * one->seeds[s];
  }
  if (weights <= 0) return std::nullopt;
  mean.value /= weights;
  for (double& seed : mean.seeds) seed /= weights;
  return mean;
}

Apart difference(const Sample& a, const Sample& b) {
  if (a.seeds.size() > 1 && a.seeds.size() == b.seeds.size() &&
      sim::paired_difference(a.seeds, b.seeds).holds(0))
    return a.seeds == b.seeds ? Apart::kEqual : Apart::kUndecided;
  const double change = std::abs(a.value - b.value);
  const double scale = std::max(std::abs(a.value), std::abs(b.value));
  if (change <= kNoticeable * scale) return Apart::kEqual;
  return a.seeds.size() < 2 && change < kClearChange * scale ? Apart::kSlight : Apart::kClear;
}

/// Smaller is better.
double rank_value(const std::optional<double>& value, const Measure& by) {
  if (!value) return INFINITY;
  return by.less_is_better ? *value : -*value;
}

/// How much load a variant holds: what it sustains where that was found for all; else the highest
/// rate below the first that it does not hold, or the number of stages that it holds where stages
/// have no rate.
double load_held(const PageRun& run, const VariantView& v) {
  if (std::ranges::all_of(run.variants,
                          [](const VariantView& other) { return other.capacity.has_value(); }))
    return *v.capacity->rate;
  std::vector<std::size_t> stages = reported_stages(v);
  // A variant that was interrupted may hold the stages that it did not reach.
  std::erase_if(stages, [&](std::size_t i) {
    return std::ranges::any_of(run.variants, [i](const VariantView& other) {
      return i < other.stages.size() && other.stages[i].unfinished;
    });
  });
  double first = INFINITY, held = 0;
  std::size_t healthy = 0;
  bool rates = true;
  for (const std::size_t i : stages) {
    const StageView& stage = v.stages[i];
    rates = rates && stage.rate && !stage.concurrency;
    healthy += is_held(stage) ? 1 : 0;
    if (!is_held(stage) && stage.rate) first = std::min(first, *stage.rate);
  }
  if (!rates) return static_cast<double>(healthy);
  for (const std::size_t i : stages)
    if (*v.stages[i].rate < first) held = std::max(held, *v.stages[i].rate);
  return held;
}

bool share_goals(const PageRun& run, const std::vector<std::size_t>& members) {
  const VariantView& first = run.variants[members.front()];
  return std::ranges::all_of(members, [&](std::size_t i) {
    const VariantView& v = run.variants[i];
    return v.summary.find(kGoodput) != nullptr && v.goals == first.goals;
  });
}

std::vector<const VariantView*> views(const PageRun& run, const std::vector<std::size_t>& which) {
  std::vector<const VariantView*> all;
  for (const std::size_t i : which) all.push_back(&run.variants[i]);
  return all;
}

/// The measure that decides among variants that hold as much load.
Yardstick yardstick_of(const PageRun& run, const std::vector<std::size_t>& members, bool by_goals) {
  const std::vector<const VariantView*> all = views(run, members);
  const auto over = [&](std::string_view key, std::vector<std::size_t> stages) {
    if (are_whole_runs(all, stages)) stages.clear();
    Yardstick yardstick{.by = measure(key), .stages = std::move(stages)};
    // Sentences name them so.
    yardstick.by.title = key == kGoodput ? "goodput" : metric_view(key).title;
    return yardstick;
  };
  const std::vector<std::size_t> common = common_stages(all);
  if (by_goals) return over(kGoodput, common);
  std::vector<std::size_t> held = common;
  bool overloaded = false;
  for (const std::size_t v : members)
    for (const StageView& stage : run.variants[v].stages)
      overloaded = overloaded || (stage.reported && stage.overloaded);
  std::erase_if(held, [&](std::size_t i) {
    return std::ranges::any_of(all, [&](const VariantView* v) { return !holds_stage(*v, i); });
  });
  return held.empty() && overloaded ? over(kOutput, common) : over(kLatency, held);
}

}  // namespace

double too_long(const StageView& stage) {
  const Datum* found = stage.find("too_long");
  return found == nullptr ? 0 : found->value;
}

double share_of_failures(const StageView& stage) {
  const Datum* failures = stage.find("failed_requests");
  const Datum* requests = stage.find("requests");
  if (failures == nullptr || requests == nullptr || requests->value == 0) return 0;
  return std::max(0.0, failures->value - too_long(stage)) / requests->value;
}

bool is_cut(const StageView& stage) {
  const Datum* requests = stage.find("requests");
  return requests != nullptr && too_long(stage) > kMoreFailures * requests->value;
}

bool is_held(const StageView& stage) {
  return !stage.overloaded && share_of_failures(stage) <= kMoreFailures;
}

bool is_too_short(const StageView& stage) {
  if (stage.telling_s) return is_held(stage);
  const Datum *sent = stage.find("send_duration"), *answer = stage.find("request_latency.mean");
  return stage.rate.value_or(0) > 0 && is_held(stage) && sent != nullptr && answer != nullptr &&
         sent->value < sim::kFewestAnswers * answer->value;
}

bool holds_stage(const VariantView& variant, std::size_t stage) {
  const StageView& s = variant.stages[stage];
  return is_held(s) && (!variant.capacity || !s.rate || *s.rate <= *variant.capacity->rate);
}

bool holds_all(const VariantView& variant) {
  return std::ranges::all_of(reported_stages(variant), [&](std::size_t i) {
    return holds_stage(variant, i) && (variant.capacity || !is_too_short(variant.stages[i]));
  });
}

std::vector<std::size_t> reported_stages(const VariantView& variant) {
  std::vector<std::size_t> reported;
  for (std::size_t i = 0; i < variant.stages.size(); ++i)
    if (variant.stages[i].reported && !variant.stages[i].unfinished) reported.push_back(i);
  return reported;
}

bool are_whole_runs(const std::vector<const VariantView*>& variants,
                    const std::vector<std::size_t>& stages) {
  return std::ranges::all_of(variants, [&](const VariantView* v) {
    return std::ranges::count_if(v->stages, &StageView::reported) == std::ssize(stages);
  });
}

std::vector<std::size_t> common_stages(const std::vector<const VariantView*>& variants) {
  const VariantView& first = *variants.front();
  std::vector<std::size_t> common = reported_stages(first);
  std::erase_if(common, [&](std::size_t i) {
    return std::ranges::any_of(variants, [&](const VariantView* v) {
      return i >= v->stages.size() || v->stages[i].unfinished ||
             v->stages[i].rate != first.stages[i].rate ||
             v->stages[i].concurrency != first.stages[i].concurrency;
    });
  });
  return common;
}

Apart apart(const StageView& a, const StageView& b, const Measure& by) {
  const std::optional<Sample> x = sample_of(a, by.key);
  const std::optional<Sample> y = sample_of(b, by.key);
  if (!x || !y) return x || y ? Apart::kClear : Apart::kEqual;
  return difference(*x, *y);
}

Contest::Contest(const PageRun& run, std::vector<std::size_t> members)
    : run_(run),
      base_(members.front()),
      by_goals_(share_goals(run, members)),
      level_(run.variants.size()) {
  if (by_goals_) {
    rank(std::move(members), 0);
    yardstick_ = yardstick_of(run, order_, true);
    return;
  }
  double least = INFINITY;
  for (const std::size_t i : members)
    least = std::min(least, share_of_failures(run.variants[i].summary));
  const auto fails = std::stable_partition(members.begin(), members.end(), [&](std::size_t i) {
    return share_of_failures(run.variants[i].summary) <= least + kMoreFailures;
  });
  rank({members.begin(), fails}, 0);
  if (fails != members.end()) rank({fails, members.end()}, kFailingLevel);
  yardstick_ = yardstick_of(run, peers(), false);
}

void Contest::rank(std::vector<std::size_t> members, int level) {
  while (!members.empty()) {
    double most = 0;
    for (const std::size_t i : members) most = std::max(most, load_held(run_, run_.variants[i]));
    const auto less = std::stable_partition(members.begin(), members.end(), [&](std::size_t i) {
      return by_goals_ || load_held(run_, run_.variants[i]) * kMoreLoad >= most;
    });
    std::vector<std::size_t> same(members.begin(), less);
    members.erase(members.begin(), less);
    const Yardstick yardstick = yardstick_of(run_, same, by_goals_);
    const auto rank_of = [&](std::size_t i) {
      const std::optional<Sample> sample = sample_of(run_.variants[i], yardstick);
      return rank_value(sample ? std::optional(sample->value) : std::nullopt, yardstick.by);
    };
    std::ranges::stable_sort(same, {}, rank_of);
    for (const std::size_t i : same) level_[i] = level;
    order_.insert(order_.end(), same.begin(), same.end());
    ++level;
  }
}

std::vector<std::size_t> Contest::peers() const {
  std::vector<std::size_t> same;
  for (const std::size_t i : order_)
    if (level_[i] == level_[winner()]) same.push_back(i);
  std::ranges::sort(same);
  return same;
}

Reason Contest::reason(std::size_t better, std::size_t worse) const {
  if (level_[better] == level_[worse]) return Reason::kMeasure;
  return level_[better] < kFailingLevel && level_[worse] >= kFailingLevel ? Reason::kFailures
                                                                          : Reason::kLoad;
}

Apart Contest::apart(std::size_t a, std::size_t b) const {
  if (level_[a] != level_[b]) return Apart::kClear;
  const std::optional<Sample> x = sample_of(run_.variants[a], yardstick_);
  const std::optional<Sample> y = sample_of(run_.variants[b], yardstick_);
  if (!x || !y) return x || y ? Apart::kClear : Apart::kEqual;
  return difference(*x, *y);
}

std::optional<double> Contest::value(std::size_t variant) const {
  const std::optional<Sample> sample = sample_of(run_.variants[variant], yardstick_);
  return sample ? std::optional(sample->value) : std::nullopt;
}

std::vector<std::size_t> Contest::leaders() const {
  std::vector<std::size_t> same = {winner()};
  for (const std::size_t i : order_) {
    if (i == winner()) continue;
    const Apart how = apart(winner(), i);
    if (how == Apart::kEqual || how == Apart::kUndecided) same.push_back(i);
  }
  return same;
}

std::vector<std::size_t> Contest::contested_stages() const {
  if (yardstick_.by.key == kOutput) return {};
  return yardstick_.stages.empty() ? common_stages(views(run_, peers())) : yardstick_.stages;
}

bool Contest::is_close() const {
  if (order_.size() < 2) return false;
  const Apart how = apart(winner(), order_[1]);
  if (run_.replications > 1) return how == Apart::kUndecided;  // Else the seeds have decided.
  if (how != Apart::kClear) return true;
  const std::optional<double> a = value(winner());
  const std::optional<double> b = value(order_[1]);
  return reason(winner(), order_[1]) == Reason::kMeasure && a && b &&
         std::max(*a, *b) < kClose * std::min(*a, *b);
}

std::optional<std::size_t> Contest::leader_at(std::size_t stage,
                                              std::optional<std::size_t> before) const {
  const auto stage_of = [&](std::size_t v) -> const StageView& {
    return run_.variants[v].stages[stage];
  };
  std::optional<std::size_t> best;
  double least = INFINITY;
  for (const std::size_t v : peers()) {
    const std::optional<Sample> sample = sample_of(stage_of(v), yardstick_.by.key);
    const double value =
        rank_value(sample ? std::optional(sample->value) : std::nullopt, yardstick_.by);
    if (value < least) best = v;
    least = std::min(least, value);
  }
  if (!best) return before;
  const auto clear = [&](std::size_t v) {
    return tools::apart(stage_of(*best), stage_of(v), yardstick_.by) == Apart::kClear;
  };
  if (before) return clear(*before) ? best : before;
  for (const std::size_t v : peers())
    if (v != *best && !clear(v)) return std::nullopt;
  return best;
}

}  // namespace routesim::tools
