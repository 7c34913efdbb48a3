#include "sim/tiers/worker_cache.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace routesim::sim {

TierFound WorkerCache::lookup(Sequence& q, Keys keys, std::int64_t hit) {
  const std::int64_t found = pool_.look_up(chunk_keys(keys));
  q.tier.hit = q.tier.stored = found;
  std::int64_t tokens = found * chunk_tokens();
  // The last token has to be computed.
  if (tokens == q.target) --tokens;
  if (tokens - hit * block_size_ < std::max<std::int64_t>(1, rules_.min_hit_tokens)) return {};
  return {.blocks = found * rules_.chunk_blocks - hit, .tokens = tokens};
}

std::int64_t WorkerCache::held_blocks(Keys keys, std::int64_t hit) const {
  std::vector<BlockKey> scratch;
  return std::max(hit, pool_.leading(chunk_keys(keys, scratch)) * rules_.chunk_blocks);
}

WorkerCache::Step& WorkerCache::this_pass() {
  if (pass_ < 0) {
    const auto unused =
        std::find_if(steps_.begin(), steps_.end(), [](const Step& step) { return !step.open; });
    pass_ = unused - steps_.begin();
    if (unused == steps_.end()) steps_.emplace_back();
    steps_[static_cast<std::size_t>(pass_)].open = true;
  }
  return steps_[static_cast<std::size_t>(pass_)];
}

Duration WorkerCache::load(SequenceSlot s, Keys keys, std::int64_t hit,
                           std::int64_t /*window_first*/) {
  const Sequence& q = sequences_[s];
  const Keys chunks = chunk_keys(keys);
  // A chunk of which GPU memory has a part is loaded as a whole.
  const std::int64_t first = hit / rules_.chunk_blocks;
  const std::int64_t n = q.tier.hit - first;
  const Keys loaded = chunks.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(n));
  Step& step = this_pass();
  step.loads.insert(step.loads.end(), loaded.begin(), loaded.end());
  pool_.keep(loaded);
  ++counters_.loads;
  counters_.loaded_bytes += static_cast<double>(n) * chunk_bytes();
  const Duration time = time_of(n, 0);
  counters_.load_waits.add(time);
  return time;
}

bool WorkerCache::store(SequenceSlot s, Keys keys, std::int64_t blocks) {
  Sequence& q = sequences_[s];
  const std::int64_t end = blocks / rules_.chunk_blocks;
  const std::int64_t n = end - q.tier.stored;
  if (n <= 0) return true;
  const Keys chunks = chunk_keys(keys);
  const Keys stored =
      chunks.subspan(static_cast<std::size_t>(q.tier.stored), static_cast<std::size_t>(n));
  Step& step = this_pass();
  step.stores.emplace_back(stored.begin(), stored.end());
  step.stored += n;
  q.tier.stored = end;
  return true;
}

std::int64_t WorkerCache::close_pass() { return std::exchange(pass_, -1); }

// The bytes cross the link in any case; each chunk is gathered or scattered, and waited for.
Duration WorkerCache::time_of(std::int64_t loads, std::int64_t stores) const {
  const double seconds =
      static_cast<double>(loads + stores) * chunk_bytes() / rules_.link_bytes_per_s +
      static_cast<double>(loads) * rules_.load_chunk_s +
      static_cast<double>(stores) * rules_.store_chunk_s;
  return Duration::nanoseconds(std::llround(seconds * 1e9));
}

Duration WorkerCache::copy_time(std::int64_t step) const {
  if (step < 0) return Duration::zero();
  const Step& s = steps_[static_cast<std::size_t>(step)];
  return time_of(std::ssize(s.loads), s.stored);
}

// A request whose chunks find no room is stored as far as there is some, and not tried again.
void WorkerCache::end_step(std::int64_t step) {
  Step& s = steps_[static_cast<std::size_t>(step)];
  pool_.release(s.loads);
  const std::int64_t evictions = pool_.evictions();
  for (const std::vector<BlockKey>& stored : s.stores) {
    const std::int64_t before = pool_.size() + pool_.evictions();
    std::size_t n = 0;
    for (; n < stored.size() && pool_.insert(stored[n]); ++n) pool_.keep({&stored[n], 1});
    const Keys there(stored.data(), n);
    pool_.release(there);
    if (n < stored.size()) ++counters_.refused_stores;
    counters_.stored_chunks += pool_.size() + pool_.evictions() - before;
    counters_.stored_bytes += static_cast<double>(n) * chunk_bytes();
    if (sink_ != nullptr && n > 0) sink_->stored_in_tier(there);
  }
  counters_.evicted_chunks += pool_.evictions() - evictions;
  s.loads.clear();
  s.stores.clear();
  s.stored = 0;
  s.open = false;
}

}  // namespace routesim::sim
