#include "base/rng.h"

#include <Random123/philox.h>

#include <cmath>

#include "base/check.h"

namespace routesim {

RandomStream::RandomStream(std::uint64_t seed, Stream stream, std::uint64_t entity)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
      counter_{0, static_cast<std::uint32_t>(entity), static_cast<std::uint32_t>(entity >> 32),
               static_cast<std::uint32_t>(stream)} {}

std::uint64_t RandomStream::next() {
  if (used_ > 2) {
    const r123::Philox4x32 philox;
    const r123::Philox4x32::ctr_type in = {{counter_[0], counter_[1], counter_[2], counter_[3]}};
    const r123::Philox4x32::key_type key = {{key_[0], key_[1]}};
    const r123::Philox4x32::ctr_type out = philox(in, key);
    for (std::size_t i = 0; i < 4; ++i) block_[i] = out.v[i];
    ROUTESIM_DCHECK(counter_[0] != 0xffffffffU, "random stream exhausted");
    ++counter_[0];
    used_ = 0;
  }
  const auto i = static_cast<std::size_t>(used_);
  used_ += 2;
  return (static_cast<std::uint64_t>(block_[i + 1]) << 32) | block_[i];
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  ROUTESIM_DCHECK(bound > 0, "below(0)");
  // Lemire's multiplication method with rejection.
  for (;;) {
    const std::uint64_t x = next();
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(x) * bound;
    const auto low = static_cast<std::uint64_t>(product);
    if (low >= bound || low >= (0 - bound) % bound)
      return static_cast<std::uint64_t>(product >> 64);
  }
}

double RandomStream::exponential(double mean) { return -mean * std::log(uniform_open()); }

double RandomStream::normal() {
  const double u = uniform_open();
  const double v = uniform();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v);
}

std::int64_t RandomStream::poisson(double mean) {
  ROUTESIM_CHECK(mean >= 0 && mean <= 1e7, "poisson mean out of range");
  if (mean < 30) {
    const double limit = std::exp(-mean);
    std::int64_t count = 0;
    double product = uniform_open();
    while (product > limit) {
      ++count;
      product *= uniform_open();
    }
    return count;
  }
  // Hoermann's PTRS (1993), transformed rejection with squeeze.
  const double slam = std::sqrt(mean);
  const double loglam = std::log(mean);
  const double b = 0.931 + 2.53 * slam;
  const double a = -0.059 + 0.02483 * b;
  const double inv_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double vr = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = uniform() - 0.5;
    const double v = uniform_open();
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= vr) return static_cast<std::int64_t>(k);
    if (k < 0 || (us < 0.013 && v > us)) continue;
    int sign = 0;  // Not lgamma(): it keeps the sign in a variable that all threads share.
    if (std::log(v) + std::log(inv_alpha) - std::log(a / (us * us) + b) <=
        -mean + k * loglam - ::lgamma_r(k + 1, &sign))
      return static_cast<std::int64_t>(k);
  }
}

double RandomStream::gamma(double shape, double scale) {
  ROUTESIM_CHECK(shape > 0 && scale > 0, "gamma parameters must be positive");
  if (shape < 1) {
    const double boost = std::pow(uniform_open(), 1 / shape);
    return gamma(shape + 1, scale) * boost;
  }
  const double d = shape - 1.0 / 3.0;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal();
    const double t = 1 + c * x;
    if (t <= 0) continue;
    const double v = t * t * t;
    if (std::log(uniform_open()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v * scale;
  }
}

}  // namespace routesim
