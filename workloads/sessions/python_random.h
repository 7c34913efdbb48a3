// Python's `random.Random(seed).shuffle`, to the draw: tools written in Python choose the
// order of their data with it. Private to workloads/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace routesim::workloads {

/// std::mt19937, seeded like Python seeds it with an integer.
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
  std::uint32_t below(std::uint32_t bound);

  std::mt19937 engine_;
};

}  // namespace routesim::workloads
