#include "tools/study/compare/expectation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

constexpr char kExample[] =
    "for example ttft_ms.p99 < 500, or ttft_ms.mean < 50% of another variant's name";

/// `500`, or `50% of NAME`: fills bound and reference; returns what is wrong.
std::string read_bound(std::string_view text, Condition& condition) {
  const std::size_t percent = text.find('%');
  if (percent != std::string::npos) {
    const std::string_view rest = trimmed(text.substr(percent + 1));
    if (!rest.starts_with("of ") || trimmed(rest.substr(3)).empty())
      return "has a bound in percent, but of which variant? (got " + printable(condition.text) +
             ")";
    condition.reference = std::string(trimmed(rest.substr(3)));
    text = trimmed(text.substr(0, percent));
  }
  const Parsed<double> bound = parse_real(text, {});
  if (!bound.value) return "bound " + bound.message;
  condition.bound = *bound.value;
  return {};
}

std::vector<std::string> loaded_names(const LoadedScenario& scenario) {
  std::vector<std::string> names;
  for (const LoadedVariant& v : scenario.variants) names.push_back(v.scenario.variant);
  return names;
}

/// Whether `name` is among `names`; otherwise complains, with a suggestion.
bool is_known(const std::string& name, const std::vector<std::string>& names,
              const std::string& what, const SourceLocation& where, const std::string& path,
              Diagnostics& diagnostics) {
  if (std::ranges::find(names, name) != names.end()) return true;
  const std::string close = nearest(name, names);
  diagnostics.error(where, path, "there is no " + what + " " + in_quotes(name),
                    close.empty()
                        ? what + "s: " + comma_list(names, [](auto& n) { return printable(n); })
                        : "did you mean " + close + "?");
  return false;
}

/// Whether this name is one of a variant that is run. One that is not run is only worth a warning
/// when the user left it out.
bool is_run(const std::string& name, const LoadedScenario& scenario, bool selected,
            const SourceLocation& where, const std::string& path, Diagnostics& diagnostics) {
  const std::vector<std::string> names = loaded_names(scenario);
  if (!selected) return is_known(name, names, "variant", where, path, diagnostics);
  if (std::ranges::find(names, name) != names.end()) return true;
  diagnostics.warning(where, path,
                      "is not checked: the variant " + in_quotes(name) + " is not run");
  return false;
}

std::string estimate_of(const std::vector<double>& values) {
  return estimate_text(sim::estimate(values));
}

/// Whether two variants of a set face the same requests, seed by seed.
bool are_pairs(const ResultSet& set, const std::string& one, const std::string& other) {
  const VariantValues* const a = set.find_variant(one);
  const VariantValues* const b = set.find_variant(other);
  return a == nullptr || b == nullptr || (a->unpaired.empty() && b->unpaired.empty());
}

Judgement judge_one(const Expectation& e, const ResultSet& set) {
  const Condition& c = e.condition;
  Judgement j{.what = c.text,
              .scope = e.stage.empty() ? e.variant : e.variant + ", stage " + e.stage,
              .where = e.where,
              .decision = Decision::kFails,
              .detail = "no such number in the results"};
  const auto values_of = [&](const std::string& name) -> std::optional<std::vector<double>> {
    const VariantValues* const variant = set.find_variant(name);
    const StageValues* const stage = variant != nullptr ? find_stage(*variant, e.stage) : nullptr;
    if (stage == nullptr) return std::nullopt;
    j.detail = set.no_values(*stage, c.metric);
    return set.values(*stage, c.metric);
  };
  const std::optional<std::vector<double>> values = values_of(e.variant);
  if (!values) return j;
  j.detail = estimate_of(*values);
  sim::Estimate excess;
  if (c.reference.empty()) {
    excess = sim::estimate(*values);
    excess.mean -= c.bound;
  } else {
    const std::optional<std::vector<double>> reference = values_of(c.reference);
    if (!reference) {
      j.detail = c.reference + ": " + j.detail;
      return j;
    }
    j.detail = estimate_of(*values) + " against " + estimate_of(*reference);
    excess = are_pairs(set, e.variant, c.reference)
                 ? sim::paired_difference(*reference, *values, c.bound / 100)
                 : sim::independent_difference(*reference, *values, c.bound / 100);
  }
  if (!c.less) excess.mean = -excess.mean;
  j.decision = decide_below_zero(excess, c.or_equal);
  for (const std::string* name : {&e.variant, &c.reference}) {
    const VariantValues* const variant = set.find_variant(*name);
    const std::string pooled = variant != nullptr ? pooled_overload(*variant, e.stage) : "";
    // More time in an overloaded stage raises latencies and failures further.
    const bool worsens = c.less && c.reference.empty() && c.metric.has_direction &&
                         c.metric.direction == sim::Direction::kSmallerIsBetter;
    if (pooled.empty() || is_of_run(c.metric) || (worsens && j.decision == Decision::kFails))
      continue;
    j.decision = Decision::kUndecided;
    j.detail += "; " + pooled + ": give a stage";
  }
  return j;
}

}  // namespace

Parsed<Condition> parse_condition(const std::string& text) {
  const std::size_t at = text.find_first_of("<>");
  if (at == std::string::npos)
    return {
        {}, "must be METRIC < NUMBER or METRIC > NUMBER (got " + printable(text) + ")", kExample};
  Parsed<MetricName> metric = parse_metric_name(trimmed(std::string_view(text).substr(0, at)));
  if (!metric.value) return {{}, metric.message, metric.hint};
  Condition condition{.text = std::string(trimmed(text)),
                      .metric = std::move(*metric.value),
                      .less = text[at] == '<',
                      .or_equal = at + 1 < text.size() && text[at + 1] == '='};
  const std::size_t from = at + (condition.or_equal ? 2 : 1);
  const std::string error = read_bound(trimmed(std::string_view(text).substr(from)), condition);
  if (!error.empty()) return {{}, error, kExample};
  return {std::move(condition), {}, {}};
}

void check_conditions(const LoadedVariant& variant, Diagnostics& diagnostics) {
  const Diagnostics known = diagnostics;
  for (std::size_t i = 0; i < variant.scenario.expect.size(); ++i) {
    const std::string path = element_path("expect", i);
    const Parsed<Condition> condition = parse_condition(variant.scenario.expect[i].that);
    if (!condition.value && !is_broken(known, path))
      diagnostics.error(variant.provenance.nearest(child_path(path, "that")), path,
                        condition.message, condition.hint);
  }
}

std::vector<Expectation> load_expectations(const LoadedScenario& scenario,
                                           const LoadedVariant& variant, const sim::RunPlan& plan,
                                           bool selected, Diagnostics& diagnostics) {
  std::vector<Expectation> out;
  const std::string& own = variant.scenario.variant;
  for (std::size_t i = 0; i < variant.scenario.expect.size(); ++i) {
    const sim::ExpectConfig& config = variant.scenario.expect[i];
    const std::string path = element_path("expect", i);
    const auto at = [&](const char* key) {
      return variant.provenance.nearest(child_path(path, key));
    };
    const Parsed<Condition> condition = parse_condition(config.that);
    if (!condition.value) diagnostics.error(at("that"), path, condition.message, condition.hint);
    const bool applies =
        config.variant.empty() || (is_run(config.variant, scenario, selected, at("variant"),
                                          child_path(path, "variant"), diagnostics) &&
                                   config.variant == own);
    bool known = true;
    if (!config.stage.empty()) {
      Diagnostics ignored;  // The run itself reports what is wrong with its load.
      std::vector<std::string> stages;
      if (const auto load = plan.make_load(plan.scenario.seed, ignored))
        for (const workloads::StageInfo& stage : load->stages()) stages.push_back(stage.name);
      known = is_known(config.stage, stages, "stage", at("stage"), child_path(path, "stage"),
                       diagnostics);
    }
    if (condition.value && is_of_run(condition.value->metric) && !config.stage.empty())
      diagnostics.error(at("stage"), child_path(path, "stage"),
                        "stands beside " + condition.value->metric.text +
                            ", which no stage has: it is of the whole run",
                        "leave it out");
    if (!condition.value || !known || !applies) continue;
    const std::string& reference = condition.value->reference;
    if (!reference.empty() && !is_run(reference, scenario, selected, at("that"), path, diagnostics))
      continue;
    // Written for all variants, it cannot mean the one the others are compared with.
    if (reference == own && config.variant.empty()) continue;
    out.push_back({*condition.value, own, config.stage, at("that")});
  }
  return out;
}

std::vector<Judgement> judge(const std::vector<Expectation>& expectations, const ResultSet& set) {
  std::vector<Judgement> out;
  out.reserve(expectations.size());
  for (const Expectation& e : expectations) out.push_back(judge_one(e, set));
  return out;
}

namespace {

constexpr char kGateExample[] =
    "for example ttft_ms.p99>+5%, output_tokens_per_s<-2%, ttft_ms.p99>+20 or ttft_ms.p99>500";

}  // namespace

Parsed<Gate> parse_gate(const std::string& text) {
  const std::size_t at = text.find_first_of("<>");
  if (at == std::string::npos || (at + 1 < text.size() && text[at + 1] == '='))
    return {{}, "must be METRIC>BOUND or METRIC<BOUND (got " + printable(text) + ")", kGateExample};
  Parsed<MetricName> metric = parse_metric_name(trimmed(std::string_view(text).substr(0, at)));
  if (!metric.value) return {{}, metric.message, metric.hint};
  Gate gate{.text = std::string(trimmed(text)),
            .metric = std::move(*metric.value),
            .greater = text[at] == '>',
            .kind = Gate::Kind::kValue};
  std::string_view number = trimmed(std::string_view(text).substr(at + 1));
  if (number.starts_with('+') || number.starts_with('-')) gate.kind = Gate::Kind::kAbsolute;
  if (number.ends_with('%')) {
    gate.kind = Gate::Kind::kRelative;
    number = trimmed(number.substr(0, number.size() - 1));
  }
  if (number.starts_with('+')) number.remove_prefix(1);
  if (number.starts_with('+'))
    return {{}, "has two signs (got " + printable(text) + ")", kGateExample};
  const Parsed<double> bound = parse_real(number, {});
  if (!bound.value) return {{}, "bound " + bound.message, kGateExample};
  gate.bound = *bound.value;
  return {std::move(gate), {}, {}};
}

Decision judge_gate(const Gate& gate, std::span<const double> base, std::span<const double> changed,
                    bool paired) {
  const double factor = gate.kind == Gate::Kind::kRelative   ? 1 + gate.bound / 100
                        : gate.kind == Gate::Kind::kAbsolute ? 1
                                                             : 0;
  const double offset = gate.kind == Gate::Kind::kRelative ? 0 : gate.bound;
  sim::Estimate excess = gate.kind == Gate::Kind::kValue ? sim::estimate(changed)
                         : paired ? sim::paired_difference(base, changed, factor)
                                  : sim::independent_difference(base, changed, factor);
  excess.mean -= offset;
  if (!gate.greater) excess.mean = -excess.mean;
  return decide_below_zero(excess, true);
}

namespace {

constexpr char kUntilExample[] = "for example ttft_ms.mean±2%, or ttft_ms.mean+-2%";

}  // namespace

Parsed<UntilRule> parse_until(const std::string& text) {
  constexpr std::array<std::string_view, 3> kSigns = {"±", "+/-", "+-"};
  std::size_t at = std::string::npos;
  std::string_view sign;
  for (const std::string_view s : kSigns)
    if (at == std::string::npos && (at = text.find(s)) != std::string::npos) sign = s;
  if (at == std::string::npos || !text.ends_with('%'))
    return {{}, "must be METRIC±NUMBER% (got " + printable(text) + ")", kUntilExample};
  Parsed<MetricName> metric = parse_metric_name(trimmed(std::string_view(text).substr(0, at)));
  if (!metric.value) return {{}, metric.message, metric.hint};
  const std::size_t from = at + sign.size();
  const Parsed<double> percent =
      parse_real(trimmed(std::string_view(text).substr(from, text.size() - from - 1)),
                 {.min = 0, .max = 100, .min_open = true, .max_open = true});
  if (!percent.value) return {{}, "width " + percent.message, kUntilExample};
  UntilRule rule{.text = metric.value->text + "±" + number_text(*percent.value) + "%",
                 .metric = *metric.value};
  rule.rule.relative_half_width = *percent.value / 100;
  return {std::move(rule), {}, {}};
}

}  // namespace routesim::tools
