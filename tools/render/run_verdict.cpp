#include "tools/render/run_verdict.h"

#include <algorithm>
#include <cmath>

#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

double share_of_failures(const VariantView& variant) {
  const Datum* failures = variant.summary.find("failures");
  const Datum* requests = variant.summary.find("requests");
  if (failures == nullptr || requests == nullptr || requests->value == 0) return 0;
  return failures->value / requests->value;
}

/// Smaller is better; infinite when the variant has no such number.
double rank_value(const VariantView& variant, const Shown& by) {
  const Datum* datum = variant.summary.find(by.key);
  if (datum == nullptr) return INFINITY;
  return by.less_is_better ? datum->value : -datum->value;
}

constexpr Shown kGoodput = {"goodput", "requests within the goals", "", Unit::kRequestsPerSecond,
                            false};
constexpr Shown kLatency = {"request_latency.mean", "mean request latency", "", Unit::kSeconds,
                            true};
constexpr double kNoticeable = 0.01;

/// Positions of the variants, best first.
std::vector<std::size_t> ranking(const PageRun& run, const Shown& by) {
  double least = INFINITY;
  for (const VariantView& v : run.variants) least = std::min(least, share_of_failures(v));
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < run.variants.size(); ++i) order.push_back(i);
  const auto key = [&](std::size_t i) {
    const VariantView& v = run.variants[i];
    const bool fails = &by != &kGoodput && share_of_failures(v) > least + 0.01;
    return std::pair(fails, rank_value(v, by));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

/// What replications say about the pair, when they were run.
const DifferenceView* paired(const PageRun& run, const std::string& a, const std::string& b,
                             std::string_view metric) {
  for (const DifferenceView& d : run.differences)
    if (d.metric == metric && ((d.base == a && d.other == b) || (d.base == b && d.other == a)))
      return &d;
  return nullptr;
}

/// `first token, mean: 213 ms instead of 55.5 s (-99.6 %)`.
std::optional<VerdictLine> line(const Shown& shown, const VariantView& winner,
                                const VariantView& other) {
  const Datum* a = winner.summary.find(shown.key);
  const Datum* b = other.summary.find(shown.key);
  if (a == nullptr || b == nullptr || b->value == 0) return std::nullopt;
  const double change = (a->value - b->value) / b->value;
  if (std::abs(change) < kNoticeable) return std::nullopt;
  return VerdictLine{.text = std::string(shown.title) + ": " + human(a->value, shown.unit) +
                             " instead of " + human(b->value, shown.unit) + " (" +
                             change_text(b->value, a->value, shown.unit) + ")",
                     .better = (change < 0) == shown.less_is_better};
}

std::string by_how_much(const Shown& by, const VariantView& winner, const VariantView& other) {
  const Datum* a = winner.summary.find(by.key);
  const Datum* b = other.summary.find(by.key);
  if (a == nullptr || b == nullptr) return {};
  const std::string values = human(a->value, by.unit) + " instead of " + human(b->value, by.unit);
  if (by.less_is_better)
    return "its requests finish " +
           (b->value >= 1.5 * a->value
                ? times(b->value, a->value) + " sooner"
                : fixed_text(100 * (1 - a->value / b->value), 1) + " % sooner") +
           ", " + values + " on average";
  const std::string more = b->value > 0 && a->value >= 1.5 * b->value
                               ? times(a->value, b->value) + " as many"
                               : fixed_text(100 * (a->value / b->value - 1), 1) + " % more";
  return "it serves " + more + " requests within the goals, " + values;
}

/// `(ttft ≤ 1 s, tpot ≤ 60 ms)`.
std::string goals_text(const VariantView& variant) {
  std::string text;
  for (const auto& [name, bound] : variant.goals) {
    text += text.empty() ? "" : ", ";
    text += name;
    text += " ≤ ";
    text += human(bound, Unit::kSeconds);
  }
  return text;
}

/// What the variants rest on, each sentence once.
std::string rests_on(const PageRun& run) {
  std::string text;
  std::vector<std::string> said;
  for (const VariantView& v : run.variants) {
    if (v.trust.empty() || std::ranges::find(said, v.trust) != said.end()) continue;
    said.push_back(v.trust);
    text += " " + v.name + " " + v.trust + ".";
  }
  return said.size() == 1 && run.variants.size() > 1 ? " Every variant " + said.front() + "."
                                                     : text;
}

std::string trust(const PageRun& run) {
  if (run.replications > 1)
    return "Over " + std::to_string(run.replications) +
           " replications; intervals hold the true mean in 95 of 100 such experiments." +
           rests_on(run);
  return "From one run of seed " + run.seed +
         ". All variants face the same load with the same seed; small differences may still be "
         "chance: --replications gives intervals." +
         rests_on(run);
}

/// `a at 20, 40; b at 40`: which variants are overloaded where.
std::string overloaded_text(const PageRun& run) {
  std::string text;
  for (const VariantView& v : run.variants) {
    std::string stages;
    for (const StageView& s : v.stages)
      if (s.reported && s.overloaded) stages += (stages.empty() ? "" : ", ") + s.name;
    if (!stages.empty()) text += (text.empty() ? "" : "; ") + v.name + " in stage " + stages;
  }
  return text;
}

/// Whether the whole run pools stages whose queue grew until they ended with others.
bool pools_overload(const PageRun& run) {
  for (const VariantView& v : run.variants) {
    bool overloaded = false, healthy = false;
    for (const StageView& s : v.stages)
      if (s.reported) (s.overloaded ? overloaded : healthy) = true;
    if (overloaded && healthy) return true;
  }
  return false;
}

/// The verdict of a run that pools overloaded and healthy stages: counted over the stages in which
/// no variant is overloaded.
Verdict by_stage(const PageRun& run, const Shown& by) {
  std::vector<std::size_t> wins(run.variants.size());
  std::size_t healthy = 0;
  for (std::size_t i = 0; i < run.variants.front().stages.size(); ++i) {
    std::optional<std::size_t> best;
    double least = INFINITY;
    bool counts = run.variants.front().stages[i].reported;
    for (std::size_t v = 0; v < run.variants.size(); ++v) {
      const std::vector<StageView>& stages = run.variants[v].stages;
      if (i >= stages.size() || stages[i].overloaded) counts = false;
      const Datum* datum = i < stages.size() ? stages[i].find(by.key) : nullptr;
      if (datum == nullptr) continue;
      const double value = by.less_is_better ? datum->value : -datum->value;
      if (value < least) best = v;
      least = std::min(least, value);
    }
    if (!counts) continue;
    ++healthy;
    if (best) ++wins[*best];
  }
  Verdict verdict{.headline = {}, .lines = {}, .fine_print = trust(run)};
  if (healthy == 0) {
    verdict.headline = "Some variant is overloaded in every stage.";
  } else if (run.variants.size() == 1) {
    verdict.headline = run.variants.front().name + " holds " + std::to_string(healthy) +
                       (healthy == 1 ? " stage" : " stages") + " and is overloaded in others.";
  } else {
    const auto most = std::max_element(wins.begin(), wins.end());
    verdict.headline = run.variants[static_cast<std::size_t>(most - wins.begin())].name +
                       " has the best " + std::string(by.title) + " in " + std::to_string(*most) +
                       " of the " + std::to_string(healthy) +
                       " stages in which no variant is overloaded.";
  }
  verdict.fine_print =
      "Overloaded, so that latencies depend on how long a stage lasts: " + overloaded_text(run) +
      ". " + verdict.fine_print;
  return verdict;
}

/// A run of one variant has nobody to win against: it says what it holds.
Verdict alone(const PageRun& run) {
  const VariantView& v = run.variants.front();
  Verdict verdict{.headline = {}, .lines = {}, .fine_print = trust(run)};
  const Datum* first = v.summary.find("ttft.mean");
  const Datum* p99 = v.summary.find("ttft.p99");
  const Datum* output = v.summary.find("output_throughput");
  verdict.headline = v.name;
  if (first != nullptr) {
    verdict.headline +=
        " answers with a first token after " + human(first->value, Unit::kSeconds) + " on average";
    if (p99 != nullptr) verdict.headline += " (p99 " + human(p99->value, Unit::kSeconds) + ")";
  }
  if (output != nullptr)
    verdict.headline += std::string(first != nullptr ? " and delivers " : " delivers ") +
                        human(output->value, Unit::kTokensPerSecond);
  verdict.headline += ".";
  if (!overloaded_text(run).empty())
    verdict.headline += " It is overloaded: the queue grows until the run ends.";
  return verdict;
}

}  // namespace

const std::vector<Shown>& key_measures() {
  static const std::vector<Shown> kMeasures = {
      {"requests", "requests", "", Unit::kCount, false},
      {"failures", "failures", "", Unit::kCount, true},
      {"goodput", "within goals, req/s", "", Unit::kRequestsPerSecond, false},
      {"output_throughput", "output, tokens/s", "", Unit::kTokensPerSecond, false},
      {"request_throughput", "requests/s answered", "", Unit::kRequestsPerSecond, false},
      {"ttft.mean", "first token, mean", "", Unit::kSeconds, true},
      {"ttft.p90", "first token, p90", "", Unit::kSeconds, true},
      {"ttft.p99", "first token, p99", "", Unit::kSeconds, true},
      {"itl.mean", "gap between tokens, mean", "", Unit::kSeconds, true},
      {"itl.p99", "gap between tokens, p99", "", Unit::kSeconds, true},
      {"tpot.mean", "time per output token, mean", "", Unit::kSeconds, true},
      {"request_latency.mean", "request latency, mean", "", Unit::kSeconds, true},
      {"request_latency.p99", "request latency, p99", "", Unit::kSeconds, true},
      {"hit_ratio", "prefix cache hits", "", Unit::kRatio, false},
      {"tier_hit_ratio", "hits in tiers", "", Unit::kRatio, false},
      {"tier_load_wait", "wait for a load, mean", "", Unit::kSeconds, true},
      {"tier_pull_wait", "wait for a pull, mean", "", Unit::kSeconds, true},
      {"kv_mean", "KV cache in use, mean", "", Unit::kRatio, true},
      {"preemptions", "preemptions", "", Unit::kCount, true},
      {"rejected", "refused by the router", "", Unit::kCount, true},
  };
  return kMeasures;
}

Verdict verdict_of(const PageRun& run) {
  if (run.variants.empty())
    return {.headline = "No variant was run.", .lines = {}, .fine_print = {}};
  bool goals = false;
  for (const VariantView& v : run.variants) goals = goals || v.summary.find("goodput") != nullptr;
  const Shown& by = goals ? kGoodput : kLatency;
  if (pools_overload(run)) return by_stage(run, by);
  if (run.variants.size() == 1) return alone(run);
  const std::vector<std::size_t> order = ranking(run, by);
  const VariantView& winner = run.variants[order[0]];
  const VariantView& other = run.variants[order[0] == 0 ? order[1] : 0];
  Verdict verdict{.headline = {}, .lines = {}, .fine_print = trust(run)};
  if (const std::string overloaded = overloaded_text(run); !overloaded.empty())
    verdict.fine_print =
        "Overloaded, so that latencies depend on how long the run lasts: " + overloaded + ". " +
        verdict.fine_print;
  if (goals) verdict.fine_print = "Goals: " + goals_text(winner) + ". " + verdict.fine_print;
  const Datum* a = winner.summary.find(by.key);
  const Datum* b = run.variants[order[1]].summary.find(by.key);
  const DifferenceView* difference = paired(run, winner.name, run.variants[order[1]].name, by.key);
  if (difference != nullptr && difference->verdict == "not distinguishable") {
    verdict.headline = winner.name + " and " + run.variants[order[1]].name +
                       " are not distinguishable in " + std::string(by.title) + ".";
  } else if (a == nullptr || b == nullptr ||
             std::abs(a->value - b->value) < kNoticeable * std::abs(b->value)) {
    verdict.headline = winner.name + " and " + run.variants[order[1]].name +
                       " differ by less than 1 % in " + std::string(by.title) + ".";
  } else {
    verdict.headline =
        winner.name + " wins against " + other.name + ": " + by_how_much(by, winner, other) + ".";
  }
  for (const std::string_view key :
       {"ttft.mean", "ttft.p99", "output_throughput", "itl.mean", "hit_ratio"})
    for (const Shown& shown : key_measures())
      if (shown.key == key)
        if (std::optional<VerdictLine> l = line(shown, winner, other)) {
          const DifferenceView* d = paired(run, winner.name, other.name, shown.key);
          if (d == nullptr || d->verdict != "not distinguishable")
            verdict.lines.push_back(std::move(*l));
        }
  return verdict;
}

}  // namespace routesim::tools
