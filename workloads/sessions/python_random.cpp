#include "workloads/sessions/python_random.h"

#include <algorithm>
#include <array>
#include <bit>

namespace routesim::workloads {
namespace {

/// Fills the state as `init_by_array` of CPython does (Modules/_randommodule.c); std::seed_seq
/// mixes in another way.
struct PythonSeed {
  using result_type = std::uint_least32_t;
  std::uint64_t size;  ///< Of the integer, without its sign.

  template <class Iterator>
  void generate(Iterator state, Iterator end) const {
    const std::ptrdiff_t words = end - state;
    const std::array<std::uint32_t, 2> key = {static_cast<std::uint32_t>(size),
                                              static_cast<std::uint32_t>(size >> 32U)};
    const std::uint32_t length = key[1] == 0 ? 1 : 2;
    const auto mixed = [&state](std::ptrdiff_t k, std::uint32_t factor) {
      return static_cast<std::uint32_t>(state[k] ^ (state[k] >> 30U)) * factor;
    };
    state[0] = 19650218U;
    for (std::ptrdiff_t i = 1; i < words; ++i)
      state[i] = mixed(i - 1, 1812433253U) + static_cast<std::uint32_t>(i);
    std::ptrdiff_t i = 1;
    const auto step = [&] {
      if (++i < words) return;
      state[0] = state[words - 1];
      i = 1;
    };
    for (std::uint32_t k = 0; k < words; ++k, step()) {
      const std::uint32_t j = k % length;
      state[i] = (state[i] ^ mixed(i - 1, 1664525U)) + key[j] + j;
    }
    for (std::ptrdiff_t k = 1; k < words; ++k, step())
      state[i] = (state[i] ^ mixed(i - 1, 1566083941U)) - static_cast<std::uint32_t>(i);
    state[0] = 0x80000000U;
  }
};

std::mt19937 seeded(std::int64_t seed) {
  const auto bits = static_cast<std::uint64_t>(seed);
  PythonSeed words{.size = seed < 0 ? 0 - bits : bits};
  return std::mt19937(words);
}

}  // namespace

PythonRandom::PythonRandom(std::int64_t seed) : engine_(seeded(seed)) {}

std::uint32_t PythonRandom::below(std::uint32_t bound) {
  const int bits = std::bit_width(bound);
  const auto draw = [&] { return static_cast<std::uint32_t>(engine_()) >> (32 - bits); };
  std::uint32_t drawn = draw();
  while (drawn >= bound) drawn = draw();
  return drawn;
}

}  // namespace routesim::workloads
