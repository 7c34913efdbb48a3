#include "tools/study/calibrate/free_numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/ingest/tree/description.h"

namespace routesim::tools {

namespace {

using models::CostCurveParameters;
using Kind = FieldDescription::Kind;

struct NamedCoefficient {
  std::string_view name;
  double CostCurveParameters::*member;
};
constexpr std::array<NamedCoefficient, 14> kCoefficients = {{
    {"step_ms", &CostCurveParameters::step_ms},
    {"sequence_ms", &CostCurveParameters::sequence_ms},
    {"context_us_per_ktok", &CostCurveParameters::context_us_per_ktok},
    {"shared_context_weight", &CostCurveParameters::shared_context_weight},
    {"mixed_context_us_per_ktok", &CostCurveParameters::mixed_context_us_per_ktok},
    {"prefill_us_per_token", &CostCurveParameters::prefill_us_per_token},
    {"prefill_pair_ns", &CostCurveParameters::prefill_pair_ns},
    {"prefill_chunk_ms", &CostCurveParameters::prefill_chunk_ms},
    {"token_us", &CostCurveParameters::token_us},
    {"cpu_step_ms", &CostCurveParameters::cpu_step_ms},
    {"cpu_sequence_ms", &CostCurveParameters::cpu_sequence_ms},
    {"group_round_ms", &CostCurveParameters::group_round_ms},
    {"group_padding_us", &CostCurveParameters::group_padding_us},
    {"group_token_us", &CostCurveParameters::group_token_us},
}};

bool is_number(Kind kind) {
  return kind == Kind::kInteger || kind == Kind::kReal || kind == Kind::kDuration;
}

/// The value of a scalar field in its base unit (durations in seconds); nothing when it has none.
std::optional<double> present_value(const FieldDescription& field) {
  if (!field.engaged || field.value.empty()) return std::nullopt;
  if (field.kind == Kind::kDuration) {
    const auto node = ConfigNode::make_scalar(field.value, ConfigNode::Style::kUntyped, {});
    const Parsed<Duration> value = parse_duration(*node, {});
    return value.value ? std::optional(value.value->to_seconds()) : std::nullopt;
  }
  return parse_real(field.value, {}).value;
}

/// The member of an object, or the element of a list, that a step leads to; null when there is
/// none.
const FieldDescription* step_into(const FieldDescription& at, const PathStep& step) {
  if (step.in_brackets && at.element != nullptr) return at.element.get();  // Types: all are alike.
  if (step.index) return *step.index < at.members.size() ? &at.members[*step.index] : nullptr;
  for (const FieldDescription& member : at.members) {
    const bool is_it =
        step.in_brackets
            ? std::any_of(member.members.begin(), member.members.end(),
                          [&](const auto& m) { return m.name == "name" && m.value == step.key; })
            : member.name == step.key;
    if (is_it) return &member;
  }
  return nullptr;
}

/// The field at the end of a key path; null when there is none.
const FieldDescription* field_at(const FieldDescription& root, const std::string& path) {
  const auto steps = parse_key_path(path);
  const FieldDescription* at = steps ? &root : nullptr;
  for (std::size_t i = 0; at != nullptr && i < steps->size(); ++i) at = step_into(*at, (*steps)[i]);
  return at;
}

/// A struct's types, and its values, which lack what is optional and absent.
struct Described {
  FieldDescription types;
  FieldDescription values;
};

template <class T>
Described described(T value) {
  T throw_away = value;
  return {describe_types([&throw_away](Describer& d) { sim::describe(d, throw_away); }),
          describe_values([&value](Describer& d) { sim::describe(d, value); })};
}

std::vector<std::string> names_of_numbers() {
  std::vector<std::string> names;
  names.reserve(kCoefficients.size());
  for (const NamedCoefficient& c : kCoefficients) names.emplace_back(c.name);
  for (const FieldDescription& f : described(sim::EngineConfig{}).types.members)
    if (is_number(f.kind)) names.push_back(f.name);
  return names;
}

}  // namespace

FreeNumbers::FreeNumbers(const std::vector<FreeNumber>& free, const CostCurveParameters& start,
                         const std::vector<ValidationInput>& inputs, Diagnostics& diagnostics)
    : start_(start) {
  for (const FreeNumber& f : free) {
    const auto coefficient =
        std::find_if(kCoefficients.begin(), kCoefficients.end(),
                     [&f](const NamedCoefficient& c) { return c.name == f.name; });
    if (coefficient != kCoefficients.end()) {
      add_coefficient(f, coefficient->member, diagnostics);
    } else if (!add_key(f, inputs, diagnostics)) {
      diagnostics.error({}, "--free",
                        "unknown coefficient or number of the scenario " + printable(f.name),
                        did_you_mean(f.name, names_of_numbers()));
    }
  }
}

void FreeNumbers::add_coefficient(const FreeNumber& free, double CostCurveParameters::*member,
                                  Diagnostics& diagnostics) {
  const double value = start_.*member;
  double low = free.low;
  double high = free.high;
  if (!(low < high)) {
    low = value / 2;
    high = value * 2;
  }
  if (member == &CostCurveParameters::shared_context_weight) high = std::min(high, 1.0);
  if (!(low < high && low >= 0 && low <= value && value <= high))
    diagnostics.error({}, "--free",
                      free.name + " is " + number_text(value) + " now, which its bounds must hold",
                      "write --free " + free.name + "=LOW..HIGH");
  bounds_.push_back({.name = free.name, .start = value, .low = low, .high = high});
  places_.push_back({.member = member, .paths = {}});
}

/// False when no scenario has such a number.
bool FreeNumbers::add_key(const FreeNumber& free, const std::vector<ValidationInput>& inputs,
                          Diagnostics& diagnostics) {
  const sim::RunPlan& plan = inputs.front().variants.front().plan;
  const sim::ResolvedPool& pool = plan.pools.front();
  const Described engine = described(pool.config.engine);
  const bool of_engine = field_at(engine.types, free.name) != nullptr;
  const Described from = of_engine ? engine : described(plan.scenario);
  const FieldDescription* type = field_at(from.types, free.name);
  if (type == nullptr || !is_number(type->kind)) return false;
  const FieldDescription* present = field_at(from.values, free.name);
  // Without a present value the bounds must be given, and the search starts in their middle.
  double value = (free.low + free.high) / 2;
  if (present != nullptr) value = present_value(*present).value_or(value);
  if (of_engine && free.name == "num_gpu_blocks")
    value = static_cast<double>(pool.kv_plan.num_gpu_blocks);
  if (of_engine && free.name == "kv_cache_tokens")
    value = static_cast<double>(pool.kv_cache_tokens);
  const bool bounded = free.low < free.high;
  const double low = bounded ? free.low : value / 2;
  const double high = bounded ? free.high : value * 2;
  if (!(low < high && low >= 0)) {
    diagnostics.error({}, "--free", free.name + " needs bounds",
                      "write --free " + free.name + "=LOW..HIGH");
    return true;
  }
  std::set<std::string> pools;
  for (const ValidationInput& input : inputs)
    for (const ValidationVariant& variant : input.variants)
      for (const sim::ResolvedPool& p : variant.plan.pools) pools.insert(p.config.name);
  Place place{.paths = {}, .whole = type->kind == Kind::kInteger};
  if (!of_engine) place.paths.push_back(free.name);
  if (of_engine)
    for (const std::string& name : pools)
      place.paths.push_back("cluster.pools[" + name + "].engine." + free.name);
  bounds_.push_back({.name = free.name,
                     .start = std::clamp(value, low, high),
                     .low = low,
                     .high = high,
                     .step = place.whole ? std::max(1.0, 0.02 * (high - low)) : 0});
  places_.push_back(std::move(place));
  return true;
}

bool FreeNumbers::changes_scenarios() const {
  return std::any_of(places_.begin(), places_.end(),
                     [](const Place& p) { return p.member == nullptr; });
}

CostCurveParameters FreeNumbers::parameters(const std::vector<double>& x) const {
  CostCurveParameters p = start_;
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (places_[i].member != nullptr) p.*places_[i].member = x[i];
  return p;
}

std::vector<std::string> FreeNumbers::sets(const std::vector<double>& x) const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < places_.size(); ++i)
    for (const std::string& path : places_[i].paths) {
      std::string argument = path;
      argument += '=';
      argument += number_text(places_[i].whole ? std::round(x[i]) : x[i]);
      out.push_back(std::move(argument));
    }
  return out;
}

std::vector<double> FreeNumbers::rounded(std::vector<double> x) const {
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = std::clamp(places_[i].whole ? std::round(x[i]) : with_digits(x[i], 4), bounds_[i].low,
                      bounds_[i].high);
  return x;
}

}  // namespace routesim::tools
