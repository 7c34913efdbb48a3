#include "workloads/sessions/python_random.h"

#include <algorithm>
#include <bit>

namespace routesim::workloads {
namespace {

constexpr std::size_t kWords = 624, kMiddle = 397;

}  // namespace

void PythonRandom::seed_word(std::uint32_t seed) {
  state_[0] = seed;
  for (std::size_t i = 1; i < kWords; ++i)
    state_[i] =
        1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30U)) + static_cast<std::uint32_t>(i);
}

PythonRandom::PythonRandom(std::int64_t seed) {
  const std::uint64_t size =
      seed < 0 ? 0 - static_cast<std::uint64_t>(seed) : static_cast<std::uint64_t>(seed);
  const std::array<std::uint32_t, 2> key = {static_cast<std::uint32_t>(size),
                                            static_cast<std::uint32_t>(size >> 32U)};
  const std::size_t length = key[1] == 0 ? 1 : 2;
  seed_word(19650218U);
  std::size_t i = 1, j = 0;
  const auto step = [&i, this] {
    if (++i < kWords) return;
    state_[0] = state_[kWords - 1];
    i = 1;
  };
  for (std::size_t k = std::max(kWords, length); k > 0; --k) {
    const std::uint32_t before = state_[i - 1] ^ (state_[i - 1] >> 30U);
    state_[i] = (state_[i] ^ (before * 1664525U)) + key[j] + static_cast<std::uint32_t>(j);
    step();
    if (++j == length) j = 0;
  }
  for (std::size_t k = kWords - 1; k > 0; --k) {
    const std::uint32_t before = state_[i - 1] ^ (state_[i - 1] >> 30U);
    state_[i] = (state_[i] ^ (before * 1566083941U)) - static_cast<std::uint32_t>(i);
    step();
  }
  state_[0] = 0x80000000U;
}

void PythonRandom::refill() {
  for (std::size_t i = 0; i < kWords; ++i) {
    const std::uint32_t y = (state_[i] & 0x80000000U) | (state_[(i + 1) % kWords] & 0x7fffffffU);
    state_[i] = state_[(i + kMiddle) % kWords] ^ (y >> 1U) ^ ((y & 1U) != 0 ? 0x9908b0dfU : 0U);
  }
  used_ = 0;
}

std::uint32_t PythonRandom::next() {
  if (used_ == kWords) refill();
  std::uint32_t y = state_[used_++];
  y ^= y >> 11U;
  y ^= (y << 7U) & 0x9d2c5680U;
  y ^= (y << 15U) & 0xefc60000U;
  return y ^ (y >> 18U);
}

std::uint32_t PythonRandom::below(std::uint32_t bound) {
  const int bits = std::bit_width(bound);
  std::uint32_t drawn = next() >> (32 - bits);
  while (drawn >= bound) drawn = next() >> (32 - bits);
  return drawn;
}

}  // namespace routesim::workloads
