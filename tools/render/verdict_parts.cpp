#include "tools/render/verdict_parts.h"

#include <algorithm>
#include <cmath>

#include "base/scalar_parse.h"
#include "tools/render/contest.h"
#include "tools/render/numbers.h"
#include "tools/results/text_table.h"
#include "tools/results/trust_errors.h"

namespace routesim::tools {

namespace {

/// How the stages of a load differ.
enum class StageSteps { kRates, kLevels, kNames };

/// Rates or levels only tell stages apart that all have one, each its own.
StageSteps steps_of(const VariantView& v) {
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

/// An open loop that stops sending before its servers fill up shows no steady state: they take all
/// its requests at once, at any rate, and answer them later. The answers take in all more than a
/// third longer than the sending, and first tokens wait for over a quarter of it. Long answers
/// alone delay no first token.
bool is_too_short(const StageView& stage) {
  const Datum *wait = stage.find("ttft.mean"), *requests = stage.find("requests");
  const Datum* answered = stage.find("request_throughput");
  return wait != nullptr && requests != nullptr && answered != nullptr &&
         4 * wait->value * *stage.rate > requests->value && answered->value < 0.75 * *stage.rate;
}

/// Stages in order of their rate, for a load that keeps its rate.
Knee rate_knee(const std::vector<const VariantView*>& variants, const std::string& name) {
  std::vector<const StageView*> stages;
  for (const VariantView* v : variants)
    for (const std::size_t i : reported_stages(*v)) stages.push_back(&v->stages[i]);
  std::ranges::stable_sort(stages, {}, [](const StageView* s) { return *s->rate; });
  const auto knee_at =
      std::ranges::find_if(stages, [](const StageView* s) { return !is_held(*s); });
  const auto open_at = std::ranges::find_if(
      stages, [](const StageView* s) { return is_held(*s) && is_too_short(*s); });
  Knee knee{.variant = name, .text = {}};
  knee.too_short = knee_at == stages.end() && open_at != stages.end();
  for (auto s = stages.begin(); s != (knee.too_short ? open_at : knee_at); ++s)
    if (!is_too_short(**s)) knee.last_held = *(*s)->rate;
  const std::string top = per_second(*stages.back()->rate);
  const std::string held = knee.last_held ? "holds " + per_second(*knee.last_held) : "";
  if (knee.too_short) {
    const std::string place = per_second(*(*open_at)->rate);
    knee.text = !held.empty() ? held + "; its stages from " + place + " on are too short to tell"
                : stages.size() == 1
                    ? "has a stage that is too short to tell at " + place
                    : "has stages that are too short to tell from " + place + " on";
    return knee;
  }
  if (knee_at == stages.end()) {
    knee.text = stages.size() == 1 ? held : "holds every rate, no knee up to " + top;
    return knee;
  }
  knee.first_overloaded = *(*knee_at)->rate;
  const bool fails = !(*knee_at)->overloaded;
  const std::string what =
      fails ? "fails " + human(share_of_failures(**knee_at), Unit::kRatio) + " of its requests"
            : "is overloaded";
  const std::string place = per_second(*knee.first_overloaded);
  if (held.empty())
    knee.text = what + " at " + place +
                (stages.size() > 1 && knee_at == stages.begin() ? ", the lowest rate" : "");
  else
    knee.text = held + " and " + what + (fails ? " at " + place : " from " + place + " on");
  const auto again = std::find_if(stages.rbegin(), std::reverse_iterator(knee_at),
                                  [](const StageView* s) { return is_held(*s); });
  if (again != std::reverse_iterator(knee_at) && *(*again)->rate > *knee.first_overloaded)
    knee.text += ", though it holds " + per_second(*(*again)->rate) + " again";
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

std::string count_text(std::size_t some, std::size_t all) {
  return " (" + std::to_string(some) + " of " + std::to_string(all) + " stages)";
}

}  // namespace

std::string stage_place(const VariantView& variant, std::size_t stage) {
  const StageView& s = variant.stages[stage];
  switch (steps_of(variant)) {
    case StageSteps::kRates:
      return per_second(*s.rate);
    case StageSteps::kLevels:
      return human(*s.concurrency, Unit::kCount) + " concurrent requests";
    case StageSteps::kNames:
      break;
  }
  return "stage " + s.name;
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
  if (std::ranges::all_of(variants, [](const VariantView* v) { return has_rates(*v); }))
    return rate_knee(variants, name);
  Knee knee{.variant = name, .text = {}};
  const std::string overload = overload_of(first);
  if (!overload.empty()) {
    knee.text = "is overloaded " + overload;
  } else if (steps_of(first) == StageSteps::kLevels && !reported_stages(first).empty()) {
    knee.text = level_text(first);
  } else {
    knee.text = "is not overloaded";
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

/// The step times that the variants rest on, each sentence once and with all that it is about.
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

std::string plain_spaces(const std::string& text) {
  constexpr std::string_view kNoBreak = "\u00a0";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool no_break = text.compare(i, kNoBreak.size(), kNoBreak) == 0;
    out += no_break ? ' ' : text[i];
    if (no_break) i += kNoBreak.size() - 1;
  }
  return out;
}

std::string listed(const std::vector<std::string>& texts) {
  const bool commas = std::ranges::any_of(
      texts, [](const std::string& text) { return text.find(", ") != std::string::npos; });
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : commas ? "; " : ", ") + text;
  return list;
}

}  // namespace routesim::tools
