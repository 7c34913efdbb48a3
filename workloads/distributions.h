// Length distributions as inference-perf writes and samples them.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "base/rng.h"

namespace routesim::workloads {

enum class DistributionType { kNormal, kSkewNormal, kLognormal, kUniform, kPoisson, kFixed };

/// inference-perf's distribution object, with its defaults. Lengths are tokens.
///
/// Wherever inference-perf takes "an integer or a distribution" (`is_length_key`), the reader turns
/// a bare integer n into `{type: fixed, mean: n}`.
struct Distribution {
  DistributionType type = DistributionType::kNormal;
  std::int64_t min = 10;
  std::int64_t max = 1024;
  double mean = 512;
  double std_dev = 200;
  std::optional<double> variance{};           ///< When given, std_dev is its root.
  double skew = 0;                            ///< Shape of the skew-normal (Azzalini's alpha).
  std::optional<std::int64_t> total_count{};  ///< Samples drawn by inference-perf; not needed here.

  static Distribution fixed(std::int64_t n) {
    Distribution d;
    d.type = DistributionType::kFixed;
    d.mean = static_cast<double>(n);
    d.min = d.max = n;
    d.std_dev = 0;
    return d;
  }
  double deviation() const;
  bool operator==(const Distribution&) const = default;
};

void describe(Describer& d, Distribution& t);

/// Whether the key `name` takes a distribution or, as a shorthand, a bare integer.
bool is_length_key(std::string_view name);

/// inference-perf has two samplers: `random` and `synthetic` data shift the lognormal by `min` and
/// know no skew-normal or Poisson; `shared_prefix` and `conversation_replay` use the general one.
enum class SamplerKind { kGeneral, kRandomData };

/// Adds an error for every parameter the sampler cannot use. `path` is the key of the object.
void check_distribution(const Distribution& d, SamplerKind kind, const std::string& path,
                        Diagnostics& diagnostics);

/// Checks several of one object: each that is there, and its key below `path`.
void check_distributions(
    std::initializer_list<std::pair<const char*, std::optional<Distribution>>> all,
    const std::string& path, Diagnostics& diagnostics);

/// Draws lengths. Everything but `fixed` is clipped to [min, max], rounded half to even, and
/// clipped again, as inference-perf does.
class LengthSampler {
 public:
  explicit LengthSampler(const Distribution& d, SamplerKind kind = SamplerKind::kGeneral);
  std::int64_t sample(RandomStream& random) const;
  /// The same without rounding, for quantities that are not counts.
  double sample_real(RandomStream& random) const;

 private:
  double draw(RandomStream& random) const;
  DistributionType type_;
  double min_, max_, mean_, deviation_;
  double alpha_ = 0;           // Skew-normal shape.
  double mu_ = 0, sigma_ = 0;  // Lognormal parameters.
  double shift_ = 0;           // Added to a lognormal draw.
  double upper_ = 0;           // Open upper end of the uniform.
};

/// n (>= 1) items with popularity proportional to 1 / rank^exponent; exponent 0 is uniform.
/// Constant time per draw (Walker's alias method), 12 bytes per item.
class ZipfSampler {
 public:
  ZipfSampler(std::uint64_t n, double exponent);
  std::uint64_t sample(RandomStream& random) const;
  /// The probability of item i, for tests and reports.
  double probability(std::uint64_t i) const;

 private:
  std::uint64_t n_;
  double exponent_;
  double normaliser_ = 0;
  std::vector<double> keep_;  // Empty when uniform.
  std::vector<std::uint32_t> alias_;
};

}  // namespace routesim::workloads

template <>
struct routesim::EnumNames<routesim::workloads::DistributionType> {
  static constexpr std::array<std::string_view, 6> value = {"normal",  "skew_normal", "lognormal",
                                                            "uniform", "poisson",     "fixed"};
};
