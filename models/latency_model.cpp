#include "models/latency_model.h"

#include <algorithm>

namespace routesim::models {

std::int64_t widely_shared(const BatchShape& s) {
  if (s.shared_once <= 0) return s.shared_context;
  struct Saving {
    double readers, of_most;
  };
  static constexpr std::array<Saving, 4> kSavings = {{{1, 0}, {2, 0.6}, {4, 0.75}, {8, 1}}};
  const auto shared = static_cast<double>(s.shared_context);
  const double readers = 1 + shared / static_cast<double>(s.shared_once);
  for (std::size_t i = 1; i < kSavings.size(); ++i) {
    const auto [low, from] = kSavings[i - 1];
    const auto [high, to] = kSavings[i];
    if (readers >= high) continue;
    const double share = from + (to - from) * (readers - low) / (high - low);
    return static_cast<std::int64_t>(shared * share);
  }
  return s.shared_context;
}

}  // namespace routesim::models
