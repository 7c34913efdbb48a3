#include "policies/cycle.h"

namespace routesim::policies {

bool Cycle::is_candidate(EndpointRow row) const {
  if (candidates_.data() == endpoints_->candidates().data()) return endpoints_->ready(row);
  return std::binary_search(candidates_.begin(), candidates_.end(), row);
}

void Cycle::begin(const Start& start) {
  request_ = &start.request;
  endpoints_ = &start.endpoints;
  now_ = start.now;
  decision_ = &start.decision;
  dry_run_ = start.dry_run;
  ordered_ = start.ordered_candidates;
  seed_ = start.seed;
  peer_.reset();
  picker_stream_.reset();
  exploration_stream_.reset();
  order_stream_.reset();
  candidates_ = endpoints_->candidates();
  if (!request_->subset.empty()) {
    buffers_.subset.clear();
    for (const EndpointRow r : request_->subset)
      if (endpoints_->ready(r)) buffers_.subset.push_back(r);
    std::sort(buffers_.subset.begin(), buffers_.subset.end());
    buffers_.subset.erase(std::unique(buffers_.subset.begin(), buffers_.subset.end()),
                          buffers_.subset.end());
    candidates_ = buffers_.subset;
  }
  if (start.plugins == nullptr || *start.plugins != plugins_) {
    flags_.clear();
    plugins_ = start.plugins == nullptr ? nullptr : *start.plugins;
  }
  latency_.clear();
  prefix_.resize(start.prefix_slots);
  for (PrefixMatches& m : prefix_) m.reset(endpoints_->rows());
}

void PrefixMatches::reset(std::size_t rows) {
  computed = written = has_tiers = false;
  keys = total_blocks = block_size = key_tokens = 0;
  lowest = highest = 0;
  for (const EndpointRow r : touched) {
    raw[r] = 0;
    match[r] = cached[r] = 0;
  }
  touched.clear();
  others.clear();
  tiers.clear();
  raw.resize(rows, 0.0);
  match.resize(rows, 0);
  cached.resize(rows, 0);
}

}  // namespace routesim::policies
