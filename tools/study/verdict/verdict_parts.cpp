#include "tools/study/verdict/verdict_parts.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <sstream>

#include "base/scalar_parse.h"
#include "tools/render/chart/numbers.h"
#include "tools/results/report.h"
#include "tools/results/text_table.h"
#include "tools/results/trust_errors.h"
#include "tools/study/verdict/run_view.h"

namespace routesim::tools {

namespace {

/// How the stages of a load differ.
enum class StageSteps { kRates, kLevels, kNames };

/// Whether rates rise and fall within stages, whose own rates are then only means.
bool has_ramps(const VariantView& v) {
  return std::ranges::any_of(v.resolved, [](const auto& setting) {
    return setting.first == "workload.demand.interpolate" && setting.second == "linear";
  });
}

/// Rates or levels only tell stages apart that all have one, each its own.
StageSteps steps_of(const VariantView& v) {
  if (has_ramps(v)) return StageSteps::kNames;
  std::vector<double> rates, levels;
  for (const std::size_t i : reported_stages(v)) {
    if (v.stages[i].concurrency && *v.stages[i].concurrency > 0)
      levels.push_back(*v.stages[i].concurrency);
    else if (v.stages[i].rate && *v.stages[i].rate > 0)
      rates.push_back(*v.stages[i].rate);
  }
  const auto distinct = [&](std::vector<double>& values) {
    std::ranges::sort(values);
    return values.size() == reported_stages(v).size() &&
           std::ranges::adjacent_find(values) == values.end();
  };
  if (distinct(rates)) return StageSteps::kRates;
  return distinct(levels) ? StageSteps::kLevels : StageSteps::kNames;
}

std::string per_second(double rate) { return human(rate, Unit::kRequestsPerSecond); }

bool has_rates(const VariantView& v) {
  const std::vector<std::size_t> reported = reported_stages(v);
  return !reported.empty() && std::ranges::all_of(reported, [&](std::size_t i) {
    return v.stages[i].rate && *v.stages[i].rate > 0 &&
           !(v.stages[i].concurrency && *v.stages[i].concurrency > 0);
  });
}

/// Whether each stage has a rate that may be held: a ramp has only a mean.
bool is_ladder(const std::vector<const VariantView*>& variants) {
  return std::ranges::all_of(variants, [&](const VariantView* v) {
    return has_rates(*v) && (variants.size() > 1 || !has_ramps(*v));
  });
}

/// `its stages from 30 req/s on are too short to tell`, of rates in order.
std::string short_text(const std::vector<double>& rates, const std::string& and_on) {
  if (rates.size() == 1)
    return "; its stage at " + per_second(rates.front()) + " is too short to tell";
  return "; its stages from " + per_second(rates.front()) + and_on + " are too short to tell";
}

/// The stage that decides about each rate, by rate: the longest one, and the last of equal ones.
/// The first stage of a run fills its caches.
std::vector<const StageView*> deciding_stages(const std::vector<const VariantView*>& variants) {
  const auto length = [](const StageView* s) { return s->number("requests", 0); };
  std::map<double, const StageView*> by_rate;
  for (const VariantView* v : variants)
    for (const std::size_t i : reported_stages(*v)) {
      const StageView*& stage = by_rate[*v->stages[i].rate];
      if (stage == nullptr || length(&v->stages[i]) >= length(stage)) stage = &v->stages[i];
    }
  std::vector<const StageView*> stages;
  for (const auto& [rate, stage] : by_rate) stages.push_back(stage);
  return stages;
}

std::string failing_text(const StageView& s) {
  return "fails " + human(share_of_failures(s), Unit::kRatio) + " of its requests";
}

/// What the stages, by rate, show beside the rate that the servers sustain; may be empty.
std::string seen_text(const Capacity& c, const std::vector<const VariantView*>& variants) {
  const std::string overload = overload_of(*variants[0]);
  if (!is_ladder(variants)) return overload.empty() ? "" : "it is overloaded " + overload;
  const std::vector<const StageView*> stages = deciding_stages(variants);
  const auto bad = std::ranges::find_if(stages, [](const StageView* s) { return !is_held(*s); });
  if (bad != stages.end()) {
    const std::string place = per_second(*(*bad)->rate);
    if (!(*bad)->overloaded) return "its stage at " + place + " " + failing_text(**bad);
    const bool on =
        bad + 1 != stages.end() &&
        std::all_of(bad, stages.end(), [](const StageView* s) { return s->overloaded; });
    return on ? "its stages are overloaded from " + place + " on"
              : "its stage at " + place + " is overloaded";
  }
  const StageView& top = *stages.back();
  if (!c.high || *top.rate <= *c.high) return {};
  const bool one = stages.size() == 1;
  return (one ? "its stage at " : "its stages up to ") + per_second(*top.rate) +
         (is_too_short(top)
              ? (one ? " ends before its queue shows" : " end before their queue shows")
              : (one ? " shows" : " show") + std::string(" no queue that grows"));
}

/// Rates in order, for a load that keeps its rate. More load is never easier for the same servers.
Knee stage_knee(const std::vector<const VariantView*>& variants, const std::string& name) {
  const std::vector<const StageView*> stages = deciding_stages(variants);
  Knee knee{.variant = name};
  std::vector<double> below, above;  // Too short to tell, of the knee.
  const StageView *bad = nullptr, *again = nullptr;
  for (const StageView* s : stages) {
    if (is_too_short(*s)) {
      (bad == nullptr ? below : above).push_back(*s->rate);
    } else if (!is_held(*s)) {
      if (bad == nullptr) bad = s;
    } else if (bad != nullptr) {
      again = s;
    } else {
      knee.last_held = s->rate;
      below.clear();
    }
  }
  knee.too_short = !below.empty();
  const std::string top = per_second(*stages.back()->rate);
  const std::string held = knee.last_held ? "holds " + per_second(*knee.last_held) : "";
  if (bad == nullptr) {
    if (below.empty())
      knee.text = stages.size() == 1 ? held : "holds every rate, no knee up to " + top;
    else if (!held.empty())
      knee.text = held + short_text(below, " on");
    else
      knee.text = stages.size() == 1 ? "has a stage that is too short to tell at " + top
                                     : "is overloaded at no rate up to " + top +
                                           ", in stages that are too short to tell what it holds";
    return knee;
  }
  knee.first_overloaded = bad->rate;
  const std::string place = per_second(*bad->rate);
  const bool on = bad->overloaded && again == nullptr && (!held.empty() || bad != stages.front());
  knee.text = (held.empty() ? "" : held + " and ") +
              (bad->overloaded ? "is overloaded " : failing_text(*bad) + " ") +
              (on ? "from " + place + " on" : "at " + place);
  if (bad == stages.front() && stages.size() > 1) knee.text += ", the lowest rate";
  if (again != nullptr) knee.text += ", though it holds " + per_second(*again->rate) + " again";
  if (!below.empty()) knee.text += short_text(below, " to " + per_second(below.back()));
  if (!above.empty()) knee.text += short_text(above, " on");
  return knee;
}

/// A closed loop waits for its answers, so no queue grows without end; its output levels off.
std::string level_text(const VariantView& v) {
  double most = 0;
  std::string peak;
  for (const std::size_t i : reported_stages(v)) {
    const Datum* output = v.stages[i].find("output_throughput");
    if (output == nullptr || output->value <= most) continue;
    most = output->value;
    peak = human(most, Unit::kTokensPerSecond) + " with " + stage_place(v, i);
  }
  if (peak.empty()) return "is a closed loop without a knee";
  return reported_stages(v).size() == 1 ? "delivers " + peak : "delivers most, " + peak;
}

/// The quantity that validation counts a measure under: `TTFT mean` for `ttft.mean`.
std::string quantity_of(std::string_view key) {
  const std::size_t dot = key.find('.');
  const std::string_view quantity =
      trust_quantity(key.substr(0, dot), dot == key.npos ? "mean" : key.substr(dot + 1));
  return std::string(quantity.empty() ? "other metrics" : quantity);
}

void add_error(std::vector<TrustError>& errors, const std::string& quantity, double percent) {
  auto e = std::ranges::find(errors, quantity, &TrustError::quantity);
  if (e == errors.end()) e = errors.insert(e, TrustError{.quantity = quantity});
  e->mean = (static_cast<double>(e->cells) * e->mean + std::abs(percent)) /
            static_cast<double>(e->cells + 1);
  ++e->cells;
  if (std::abs(percent) > std::abs(e->worst)) e->worst = percent;
}

Knee rate_knee(const std::vector<const VariantView*>& variants, const std::string& name) {
  const std::optional<Capacity>& capacity = variants.front()->capacity;
  Knee knee = is_ladder(variants) ? stage_knee(variants, name) : Knee{.variant = name};
  if (!capacity) return knee;
  knee.seen = seen_text(*capacity, variants);
  knee.capacity = capacity;
  knee.text = "sustains " + per_second(*capacity->rate) + " " + interval_text(*capacity) +
              (capacity->limit.empty() ? "" : ", limited by " + capacity->limit) +
              (variants.front()->happened.empty() ? "" : ", without its events") +
              (knee.seen.empty() ? "" : "; " + knee.seen);
  return knee;
}

std::string count_text(std::size_t some, std::size_t all) {
  return " (" + std::to_string(some) + " of " + std::to_string(all) + " stages)";
}

}  // namespace

std::string interval_text(const Capacity& c) {
  if (c.low && c.high)
    return "(" + human(*c.low, Unit::kNone) + " to " + human(*c.high, Unit::kNone) + ")";
  return c.low ? "and more" : "or less";
}

std::string stage_place(const VariantView& variant, std::size_t stage) {
  const StageView& s = variant.stages[stage];
  const StageSteps steps = steps_of(variant);
  if (steps == StageSteps::kRates) return per_second(*s.rate);
  if (steps == StageSteps::kNames) return "stage " + s.name;
  return human(*s.concurrency, Unit::kCount) + " concurrent requests";
}

std::vector<std::size_t> in_load_order(const VariantView& variant,
                                       std::vector<std::size_t> stages) {
  const StageSteps steps = steps_of(variant);
  if (steps != StageSteps::kNames)
    std::ranges::sort(stages, {}, [&](std::size_t i) {
      const StageView& stage = variant.stages[i];
      return steps == StageSteps::kRates ? *stage.rate : *stage.concurrency;
    });
  return stages;
}

std::string overload_of(const VariantView& variant) {
  const std::vector<std::size_t> reported = reported_stages(variant);
  std::vector<std::size_t> overloaded;
  for (const std::size_t i : reported)
    if (variant.stages[i].overloaded) overloaded.push_back(i);
  if (overloaded.empty()) return {};
  if (reported.size() == 1) return "at " + stage_place(variant, reported.front());
  if (overloaded.size() == reported.size()) return "in every stage";
  // The stages from the first one on, when they are all of them and the load only grows.
  const bool grows = std::ranges::is_sorted(reported, {}, [&](std::size_t i) {
    const StageView& stage = variant.stages[i];
    return stage.rate.value_or(stage.concurrency.value_or(0));
  });
  const bool tail = grows && overloaded.front() == reported[reported.size() - overloaded.size()];
  if (tail && overloaded.size() > 1)
    return "from " + stage_place(variant, overloaded.front()) + " on" +
           count_text(overloaded.size(), reported.size());
  constexpr std::size_t kMostNamed = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMostNamed, overloaded.size()); ++i)
    text += (text.empty() ? "at " : ", ") + stage_place(variant, overloaded[i]);
  if (overloaded.size() > kMostNamed) text += ", …";
  return text + count_text(overloaded.size(), reported.size());
}

Knee knee_of(const std::vector<const VariantView*>& variants, const std::string& name) {
  const VariantView& first = *variants.front();
  Knee knee{.variant = name};
  if (std::ranges::any_of(variants, [](const VariantView* v) { return is_cut(v->summary); })) {
    knee.text = "refuses requests that are too long at any load";
    knee.too_short = true;
    return knee;
  }
  if (is_ladder(variants) || (variants.size() == 1 && first.capacity))
    return rate_knee(variants, name);
  if (variants.size() > 1) {
    std::vector<std::string> overloaded;
    for (const VariantView* v : variants)
      if (!overload_of(*v).empty()) overloaded.push_back(v->name);
    knee.text = overloaded.empty() ? "is overloaded in none of its runs"
                                   : "is overloaded in " + joined(overloaded);
    return knee;
  }
  const std::string overload = overload_of(first);
  if (!overload.empty()) {
    knee.text = "is overloaded " + overload;
  } else if (steps_of(first) == StageSteps::kLevels && !reported_stages(first).empty()) {
    knee.text = level_text(first);
  } else {
    const std::vector<std::size_t> stages = reported_stages(first);
    const bool tells =
        std::ranges::none_of(stages, [&](std::size_t i) { return is_too_short(first.stages[i]); });
    knee.text = tells ? "is not overloaded" : "is not overloaded in stages long enough to tell";
    for (const std::size_t i : stages)
      if (!is_held(first.stages[i]) && knee.text.starts_with("is not"))
        knee.text = failing_text(first.stages[i]) + " at " + stage_place(first, i);
  }
  return knee;
}

std::vector<Knee> knees_of(const PageRun& run) {
  std::vector<Knee> knees;
  for (std::size_t i = 0; i < run.variants.size(); ++i) {
    const std::string& scan = run.variants[i].scan_of;
    const std::string& name = scan.empty() ? run.variants[i].name : scan;
    if (!scan.empty() && std::ranges::find(knees, scan, &Knee::variant) != knees.end()) continue;
    std::vector<const VariantView*> members;
    for (const VariantView& v : run.variants)
      if (&v == &run.variants[i] || (!scan.empty() && v.scan_of == scan)) members.push_back(&v);
    knees.push_back(knee_of(members, name));
  }
  return knees;
}

std::string goals_text(const VariantView& variant) {
  return comma_list(variant.goals, [](const auto& goal) {
    return goal.first + " ≤ " + human(goal.second, Unit::kSeconds);
  });
}

/// Over the whole run.
bool enough_good(const sim::Timeline& t) {
  std::int64_t ended = 0, good = 0;
  for (std::size_t i = 0; i < t.goals->good.size(); ++i) {
    ended += t.answered[i] + t.failed[i];
    good += t.goals->good[i];
  }
  return static_cast<double>(good) >= t.goals->share * static_cast<double>(ended);
}

std::vector<VerdictLine> missed_lines(const PageRun& run) {
  std::vector<const VariantView*> told;
  for (const VariantView& v : run.variants)
    if (v.timeline && v.timeline->goals && v.timeline->minutes() > 0) told.push_back(&v);
  constexpr std::size_t kMostLines = 4, kMostSpans = 2;
  const auto minutes = [](const VariantView* v) { return v->timeline->goals->missed_minutes; };
  if (told.size() > kMostLines) {
    const auto [best, worst] = std::ranges::minmax_element(told, {}, minutes);
    told = {*worst, *best};
  }
  std::vector<VerdictLine> lines;
  for (const VariantView* v : told) {
    const sim::Timeline& t = *v->timeline;
    std::vector<sim::MissedSpan> spans = t.goals->missed;
    const std::string all = human(t.minutes(), Unit::kNone) + " minutes";
    std::string text =
        v->name + " misses its goals in " +
        (spans.empty() ? "none of " + all : human(minutes(v), Unit::kNone) + " of " + all);
    if (spans.empty() && !enough_good(t))
      text = v->name + " misses its goals now and then, in no stretch of its " + all +
             " that chance would not explain";
    if (lines.empty()) text += run.replications > 1 ? " of seed " + run.seed : "";
    if (lines.empty())
      text += ", where " + human(t.goals->share, Unit::kRatio) +
              (t.goals->expected ? " within them are expected" : " within them count as enough");
    std::ranges::stable_sort(spans, std::greater(),
                             [](const sim::MissedSpan& s) { return s.sent - s.good; });
    for (std::size_t i = 0; i < std::min(kMostSpans, spans.size()); ++i)
      text += (i == 0 ? ": " : "; ") + clock_text(spans[i].from_s, v->by_clock) + " to " +
              clock_text(spans[i].to_s, v->by_clock) + ", " + spans[i].why;
    if (spans.size() > kMostSpans)
      text += "; and " + counted(spans.size() - kMostSpans, "more time");
    lines.push_back({.text = std::move(text), .better = std::nullopt});
  }
  return lines;
}

std::string rests_on(const PageRun& run) {
  std::string text;
  std::vector<std::string> said;
  for (const VariantView& v : run.variants) {
    if (v.trust.empty() || std::ranges::find(said, v.trust) != said.end()) continue;
    said.push_back(v.trust);
    std::vector<std::string> names;
    for (const VariantView& other : run.variants)
      if (other.trust == v.trust) names.push_back(other.name);
    if (names.size() == 1)
      text += " " + v.name + " " + v.trust + ".";
    else if (names.size() == run.variants.size())
      text += " Every variant " + v.trust + ".";
    else
      text += " " + joined(names) + " rest" +
              (v.trust.starts_with("rests ") ? v.trust.substr(5) : " on " + v.trust) + ".";
  }
  return text;
}

std::string measured_beside(const PageRun& run) {
  std::string text;
  for (const VariantView& v : run.variants) {
    std::vector<TrustError> errors;
    for (const std::size_t i : reported_stages(v))
      for (const auto& [key, measured] : v.stages[i].measured)
        if (const Datum* simulated = v.stages[i].find(key); simulated != nullptr && measured != 0)
          add_error(errors, quantity_of(key), error_percent(simulated->value, measured));
    if (!errors.empty())
      text +=
          (text.empty() ? " Mean error beside the scenario's measured numbers (how many, worst): "
                        : "; ") +
          v.name + ": " + errors_text(errors);
  }
  return text.empty() ? text : text + ".";
}

std::string idle_servers(const PageRun& run) {
  std::string text;
  for (const VariantView& v : run.variants) {
    if (!v.pools.empty()) continue;  // Some servers are only there for a while.
    std::vector<std::string> idle;
    for (const ServerView& server : v.servers)
      if (const auto requests = server.values.find("requests");
          requests != server.values.end() && requests->second.value == 0)
        idle.push_back(server.name);
    if (!idle.empty() && idle.size() < v.servers.size())
      text += " " + v.name + " sends nothing to " + joined(idle) + ".";
  }
  return text;
}

std::string not_judged(const PageRun& run) {
  const auto is_expectation = [](const auto& setting) {
    return setting.first.starts_with("expect[") && setting.first.ends_with("].that");
  };
  for (const VariantView& v : run.variants)
    if ((!v.scan_of.empty() || !v.fleet_of.empty()) &&
        std::ranges::any_of(v.resolved, is_expectation))
      return " A scan judges no expectation: those of the file are about its own load and servers.";
  return {};
}

std::string listed(const std::vector<std::string>& texts) {
  const bool commas = std::ranges::any_of(
      texts, [](const std::string& text) { return text.find(", ") != std::string::npos; });
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : commas ? "; " : ", ") + text;
  return list;
}

// The next steps after a run: commands that answer what its verdict leaves open.

namespace {

/// A p99 so many times the mean has a tail worth explaining.
constexpr double kLongTail = 4;
constexpr std::int64_t kFirstReplications = 5;

class NextSteps {
 public:
  NextSteps(const PageRun& run, const Verdict& verdict) : run_(run), verdict_(verdict) {
    for (const VariantView& v : run.variants) scans_ = scans_ || !v.scan_of.empty();
  }

  std::vector<Step> steps() {
    if (run_.interrupted) {
      add("Run it to its end", again(""));
      return std::move(steps_);
    }
    more_seeds();
    more_load();
    fewer_servers();
    failures();
    slowest_request();
    return std::move(steps_);
  }

 private:
  void add(std::string why, std::string command) {
    steps_.push_back({.why = std::move(why), .command = std::move(command)});
  }

  std::string input() const { return run_.command.input.empty() ? "SCENARIO" : run_.command.input; }
  /// The same run with one option more.
  std::string again(const std::string& option) const {
    const RunCommand& c = run_.command;
    return "routesim run " + input() + c.variants + c.options + c.scan + option;
  }
  /// The same without the scan.
  std::string scan(const std::string& variants, const std::string& option) const {
    return "routesim run " + input() + variants + run_.command.options + option;
  }

  /// Suggests more seeds when chance may have decided between two variants.
  void more_seeds() {
    if (!verdict_.close) return;
    if (run_.replications < 2)
      add("One run is one draw of the load; intervals over " + std::to_string(kFirstReplications) +
              " seeds say what is chance",
          again(" --replications " + std::to_string(kFirstReplications)));
    else if (verdict_.winner.empty())
      add("More seeds narrow the intervals",
          again(" --replications " + std::to_string(4 * run_.replications)));
  }

  /// Variants that share a bound on their load, in requests/s.
  using Bounds = std::vector<std::pair<double, std::vector<std::string>>>;

  static void add_bound(Bounds& bounds, double bound, const std::string& variant) {
    auto at = std::ranges::find(bounds, bound, &Bounds::value_type::first);
    if (at == bounds.end()) at = bounds.insert(at, {bound, {}});
    at->second.push_back(variant);
  }
  /// ` of a, b up to 4 req/s, of c up to 8 req/s`.
  static std::string bounds_text(const Bounds& bounds, const std::string& direction) {
    std::string text;
    for (const auto& [bound, variants] : bounds)
      text += (text.empty() ? " of " : ", of ") + listed(variants) + direction +
              human(bound, Unit::kRequestsPerSecond);
    return text;
  }

  /// The number of its servers changes, so that a stage says little of another rate.
  bool changes(const std::string& variant) const {
    return std::ranges::any_of(
        run_.variants, [&](const VariantView& v) { return v.name == variant && !v.pools.empty(); });
  }

  /// A ladder that ends before the knee, or begins behind it.
  void more_load() {
    Bounds open, low;
    for (const Knee& knee : verdict_.knees) {
      if (knee.capacity) continue;
      if (knee.last_held && !knee.first_overloaded && !knee.too_short)
        add_bound(open, *knee.last_held, knee.variant);
      if (knee.first_overloaded && !knee.last_held && !knee.too_short && !changes(knee.variant))
        add_bound(low, *knee.first_overloaded, knee.variant);
    }
    const auto [least, most] = scanned();
    if (!open.empty())
      add("No knee" + bounds_text(open, " up to ") + "; scan higher rates",
          scan(run_.command.variants,
               (most.empty() ? " --rate 2x" : " --rate " + scaled(most, 1.5, 2)) + fleets()));
    if (!low.empty())
      add("No held rate" + bounds_text(low, " down to ") + "; scan lower rates",
          scan(run_.command.variants,
               (least.empty() ? " --rate 0.25x,0.5x" : " --rate " + scaled(least, 0.25, 0.5)) +
                   fleets()));
  }

  /// The least and the most of the scanned rates, or of their factors; empty without a scan.
  std::pair<std::string, std::string> scanned() const {
    const std::string& scan = run_.command.scan;
    const std::size_t at = scan.find(" --rate ");
    if (at == std::string::npos) return {};
    std::vector<std::string> rates;
    std::istringstream list(scan.substr(at + 8, scan.find(' ', at + 8) - at - 8));
    for (std::string rate; std::getline(list, rate, ',');) rates.push_back(rate);
    const auto [least, most] = std::ranges::minmax_element(
        rates, {}, [](const std::string& rate) { return std::strtod(rate.c_str(), nullptr); });
    return {*least, *most};
  }

  /// `20,40` of 10 times 2 and 4, `0.3x` of 0.2x; with three digits, so that none is noise.
  static std::string scaled(const std::string& rate, double one, double other) {
    std::string text;
    for (const double factor : {one, other}) {
      const double value = factor * std::strtod(rate.c_str(), nullptr);
      const double digits = std::pow(10, std::max(0.0, 2 - std::floor(std::log10(value))));
      text.append(text.empty() ? "" : ",").append(number_text(std::round(value * digits) / digits));
      if (rate.ends_with('x')) text += 'x';
    }
    return text;
  }

  /// The part of a scan that says how many servers.
  std::string fleets() const {
    const std::size_t at = run_.command.scan.find(" --replicas ");
    return at == std::string::npos ? "" : run_.command.scan.substr(at);
  }

  /// The winner, or the first that holds the load, has room where another one is overloaded.
  void fewer_servers() {
    if (scans_ || verdict_.overload.empty() || !run_.command.scan.empty()) return;
    for (const VariantView& v : run_.variants) {
      const auto servers = static_cast<std::int64_t>(v.servers.size());
      if (!verdict_.winner.empty() && v.name != verdict_.winner) continue;
      if (!holds_all(v) || servers < 2 || pools_of(v) != 1 || !v.pools.empty()) continue;
      const std::int64_t half = std::max<std::int64_t>(1, servers / 2);
      const std::int64_t most = std::max<std::int64_t>(1, servers * 3 / 4);
      add(v.name + " may need fewer servers than " + std::to_string(servers),
          scan(" --variant " + shell_word(v.name),
               " --replicas " + std::to_string(half) +
                   (most > half ? "," + std::to_string(most) : "")));
      return;
    }
  }

  static std::int64_t pools_of(const VariantView& v) {
    std::int64_t pools = 0;
    for (const auto& [path, value] : v.resolved)
      pools += path.starts_with("cluster.pools[") && path.ends_with("].replicas") ? 1 : 0;
    return pools;
  }

  void failures() {
    for (const VariantView& v : run_.variants) {
      if (v.summary.number("failed_requests", 0) == 0) continue;
      // Records are of the first seed, in which perhaps none fails.
      const auto all = v.summary.seeds.find("failed_requests");
      std::uint64_t r = 0;
      while (all != v.summary.seeds.end() && r < all->second.size() && all->second[r] == 0) ++r;
      std::string which, command = again(" --records requests.csv");
      if (r > 0) {
        const std::string old = " --seed " + run_.seed;
        const std::string seed = std::to_string(std::stoull(run_.seed) + r);
        if (const auto at = command.find(old); at != command.npos) command.erase(at, old.size());
        which = " in seed " + seed;
        command += " --seed " + seed;
      }
      add("Each failed request of " + v.name + which + " with its reason", command);
      return;
    }
  }

  /// `explain` has no option of a scan.
  void slowest_request() {
    if (scans_ || !run_.command.scan.empty()) return;
    std::vector<const VariantView*> variants;  // The winner first.
    for (const VariantView& v : run_.variants)
      variants.insert(v.name == verdict_.winner ? variants.begin() : variants.end(), &v);
    for (const VariantView* const candidate : variants) {
      const VariantView& v = *candidate;
      const double tail = v.summary.number("ttft.p99") / v.summary.number("ttft.mean");
      if (!(tail >= kLongTail)) continue;
      if (!overload_of(v).empty()) continue;  // The queue explains its slowest request.
      add("The p99 of " + v.name + "'s first token is " + human(tail, Unit::kNone) +
              " times the mean; how its slowest request was routed",
          "routesim explain " + input() + " --variant " + shell_word(v.name) +
              " --request slowest:1" +
              (run_.command.options.find(" --seed ") == std::string::npos
                   ? ""
                   : " --set seed=" + run_.seed));
      return;
    }
  }

  const PageRun& run_;
  const Verdict& verdict_;
  bool scans_ = false;
  std::vector<Step> steps_;
};

}  // namespace

std::vector<Step> next_steps(const PageRun& run, const Verdict& verdict) {
  return NextSteps(run, verdict).steps();
}

}  // namespace routesim::tools
