#include "policies/cycle.h"

#include <algorithm>

namespace routesim::policies {

bool Cycle::is_candidate(EndpointRow row) const {
  if (candidates_.data() == endpoints_->candidates().data()) return endpoints_->ready(row);
  return std::binary_search(candidates_.begin(), candidates_.end(), row);
}

void PrefixMatches::reset(std::size_t rows) {
  computed = written = any = false;
  keys = total_blocks = block_size = 0;
  lowest = highest = 0;
  for (const EndpointRow r : touched) {
    raw[r] = 0;
    match[r] = cached[r] = 0;
  }
  touched.clear();
  raw.resize(rows, 0.0);
  match.resize(rows, 0);
  cached.resize(rows, 0);
}

}  // namespace routesim::policies
