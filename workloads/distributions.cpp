#include "workloads/distributions.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace routesim::workloads {
namespace {

/// Rounds as numpy does, whatever the rounding mode of the processor.
double round_half_even(double x) {
  const double down = std::floor(x);
  const double fraction = x - down;
  if (fraction < 0.5) return down;
  if (fraction > 0.5) return down + 1;
  return std::fmod(down, 2.0) == 0 ? down : down + 1;
}

}  // namespace

double Distribution::deviation() const { return variance ? std::sqrt(*variance) : std_dev; }

void describe(Describer& d, Distribution& t) {
  field(d, {"type", "Family of the distribution."}, t.type);
  field(d, {"min", "Smallest value, inclusive."}, t.min, IntRange{0, 100'000'000});
  field(d, {"max", "Largest value, inclusive."}, t.max, IntRange{0, 100'000'000});
  field(d, {"mean", "Mean before clipping; the value itself for `fixed`."}, t.mean,
        RealRange{.min = 0, .max = 1e8});
  field(d, {"std_dev", "Standard deviation before clipping."}, t.std_dev,
        RealRange{.min = 0, .max = 1e8});
  field(d, {"variance", "Square of std_dev; wins over std_dev when given."}, t.variance,
        RealRange{.min = 0, .max = 1e16});
  field(d,
        {"skew",
         "Shape of the skew-normal (0 is symmetric), of which mean is the location, std_dev the "
         "scale."},
        t.skew, RealRange{.min = -1000, .max = 1000});
  field(d, {"total_count", "Number of samples the tool draws up front; not needed here."},
        t.total_count, IntRange{1, 1'000'000'000});
}

bool is_length_key(std::string_view name) {
  // Each name stands between blanks.
  static constexpr std::string_view kKeys =
      " system_prompt_len question_len output_len question_distribution output_distribution "
      "input_distribution dynamic_system_prompt_len turns_per_conversation "
      "input_tokens_per_turn output_tokens_per_turn tool_call_latency_sec prefix_len "
      "suffix_len natural_answer mode_a_user_prompt_len mode_a_output_len "
      "mode_b_user_prompt_len mode_b_output_len turns_per_session tool_loop_depth "
      "sub_agents_per_spawn tool_catalog_size_per_agent parallel_tool_calls_per_step "
      "user_think_time_sec trigger_tokens target_tokens ";
  return kKeys.find(std::string(" ").append(name).append(" ")) != std::string_view::npos;
}

void check_distribution(const Distribution& d, SamplerKind kind, const std::string& path,
                        Diagnostics& diagnostics) {
  auto error = [&](const char* key, std::string message, std::string hint = {}) {
    diagnostics.error({}, path + "." + key, std::move(message), std::move(hint));
  };
  if (d.type == DistributionType::kFixed) return;
  if (kind == SamplerKind::kRandomData &&
      (d.type == DistributionType::kSkewNormal || d.type == DistributionType::kPoisson))
    error("type",
          "random and synthetic data do not support this distribution (got " +
              std::string(enum_name(d.type)) + ")",
          "use normal, lognormal, uniform or fixed");
  if (d.min > d.max)
    error("min", "must not exceed max (got min " + std::to_string(d.min) + ", max " +
                     std::to_string(d.max) + ")");
  if (d.type == DistributionType::kLognormal) {
    const double shift = kind == SamplerKind::kRandomData ? static_cast<double>(d.min) : 0.0;
    if (d.mean <= shift)
      error("mean", kind == SamplerKind::kRandomData
                        ? "must exceed min for a lognormal (the tool shifts it by min)"
                        : "must be positive for a lognormal");
  }
}

void check_distributions(
    std::initializer_list<std::pair<const char*, std::optional<Distribution>>> all,
    const std::string& path, Diagnostics& diagnostics) {
  for (const auto& [key, d] : all)
    if (d) check_distribution(*d, SamplerKind::kGeneral, path + key, diagnostics);
}

LengthSampler::LengthSampler(const Distribution& d, SamplerKind kind)
    : type_(d.type),
      min_(static_cast<double>(d.min)),
      max_(static_cast<double>(d.max)),
      mean_(d.mean),
      deviation_(d.deviation()),
      alpha_(d.skew) {
  const bool random_data = kind == SamplerKind::kRandomData;
  upper_ = random_data ? max_ : max_ + 1;
  shift_ = random_data ? min_ : 0;
  if (type_ == DistributionType::kLognormal) {
    const double m = mean_ - shift_;
    const double ratio = deviation_ / m;
    const double variance = std::log(1 + ratio * ratio);
    mu_ = std::log(m) - variance / 2;
    sigma_ = std::sqrt(variance);
  }
}

double LengthSampler::draw(RandomStream& random) const {
  switch (type_) {
    case DistributionType::kNormal:
      return mean_ + deviation_ * random.normal();
    case DistributionType::kSkewNormal: {
      // Azzalini: delta |z0| + sqrt(1 - delta^2) z1 is skew-normal with shape alpha. The tool takes
      // `mean` as its location and `std_dev` as its scale, not as moments of the samples.
      const double delta = alpha_ / std::sqrt(1 + alpha_ * alpha_);
      const double z =
          delta * std::fabs(random.normal()) + std::sqrt(1 - delta * delta) * random.normal();
      return mean_ + deviation_ * z;
    }
    case DistributionType::kLognormal:
      return shift_ + std::exp(mu_ + sigma_ * random.normal());
    case DistributionType::kUniform:
      return min_ + (upper_ - min_) * random.uniform();
    case DistributionType::kPoisson:
      return static_cast<double>(random.poisson(std::min(mean_, 1e7)));
    case DistributionType::kFixed:
      break;
  }
  return mean_;
}

std::int64_t LengthSampler::sample(RandomStream& random) const {
  if (type_ == DistributionType::kFixed) return static_cast<std::int64_t>(mean_);
  const double clipped = std::clamp(draw(random), min_, max_);
  return static_cast<std::int64_t>(std::clamp(round_half_even(clipped), min_, max_));
}

double LengthSampler::sample_real(RandomStream& random) const {
  return type_ == DistributionType::kFixed ? mean_ : std::clamp(draw(random), min_, max_);
}

ZipfSampler::ZipfSampler(std::uint64_t n, double exponent) : n_(n), exponent_(exponent) {
  ROUTESIM_CHECK(n >= 1 && n <= 0xffffffffULL, "zipf needs between 1 and 2^32-1 items");
  for (std::uint64_t i = 0; i < n; ++i)
    normaliser_ += std::pow(static_cast<double>(i + 1), -exponent);
  if (exponent == 0) return;
  // Walker's alias table, built with two work lists (Vose).
  keep_.resize(n);
  alias_.assign(n, 0);
  std::vector<std::uint32_t> small, large;
  for (std::uint64_t i = 0; i < n; ++i) {
    keep_[i] = probability(i) * static_cast<double>(n);
    (keep_[i] < 1 ? small : large).push_back(static_cast<std::uint32_t>(i));
  }
  while (!small.empty() && !large.empty()) {
    const std::uint32_t s = small.back(), l = large.back();
    small.pop_back();
    alias_[s] = l;
    keep_[l] -= 1 - keep_[s];
    if (keep_[l] < 1) {
      large.pop_back();
      small.push_back(l);
    }
  }
  // The rest differs from 1 by rounding only.
  for (const std::uint32_t i : small) keep_[i] = 1;
  for (const std::uint32_t i : large) keep_[i] = 1;
}

double ZipfSampler::probability(std::uint64_t i) const {
  return std::pow(static_cast<double>(i + 1), -exponent_) / normaliser_;
}

std::uint64_t ZipfSampler::sample(RandomStream& random) const {
  const std::uint64_t i = random.below(n_);
  if (keep_.empty()) return i;
  return random.uniform() < keep_[i] ? i : alias_[i];
}

}  // namespace routesim::workloads
