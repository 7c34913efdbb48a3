// Python's `random.Random(seed).shuffle`, to the draw: tools written in Python choose the
// order of their data with it. Private to workloads/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace routesim::workloads {

/// MT19937 (Matsumoto and Nishimura 1998), seeded like Python seeds it with an integer. Our own,
/// because the libraries may not include <random>, whose distributions differ between platforms.
class PythonRandom {
 public:
  explicit PythonRandom(std::int64_t seed);

  /// `random.shuffle`.
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t n = items.size(); n > 1; --n)
      std::swap(items[n - 1], items[below(static_cast<std::uint32_t>(n))]);
  }

 private:
  void seed_word(std::uint32_t seed);
  void refill();
  std::uint32_t next();
  std::uint32_t below(std::uint32_t bound);

  std::array<std::uint32_t, 624> state_{};
  std::size_t used_ = 624;
};

}  // namespace routesim::workloads
