// The work of KV tiers in numbers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace routesim::sim {

/// Times that requests waited.
struct Waits {
  std::int64_t count = 0;
  Duration total, longest;
  void add(Duration wait) { add({.count = 1, .total = wait, .longest = wait}); }
  void add(const Waits& other) {
    count += other.count;
    total += other.total;
    longest = std::max(longest, other.longest);
  }
  double mean_s() const { return count > 0 ? total.to_seconds() / static_cast<double>(count) : 0; }
};

/// Counts the work of the tiers of one engine core.
struct TierCounters {
  /// Prompt tokens looked up behind the hit in GPU memory, and of these, loaded; at the first
  /// admission of each request (vLLM's external_prefix_cache_queries and _hits).
  std::int64_t query_tokens = 0, hit_tokens = 0;
  std::int64_t loads = 0;  ///< Begun, those of preempted requests included.
  std::int64_t stored_chunks = 0, evicted_chunks = 0;
  std::int64_t refused_stores = 0;  ///< Passes of a request in which nothing could make room.
  double loaded_bytes = 0, stored_bytes = 0, pulled_bytes = 0;
  std::int64_t pulls = 0;          ///< Asked for,
  std::int64_t pulls_arrived = 0;  ///< that brought chunks,
  std::int64_t pulls_failed = 0;   ///< that failed. The others found nothing, or no room.
  std::int64_t pulls_served = 0;   ///< Chunks sent to another engine.
  std::int64_t disk_lookups = 0;   ///< Requests whose chunks files may have,
  std::int64_t disk_reads = 0;     ///< and had.
  std::int64_t disk_writes = 0;    ///< Requests of one step whose chunks went to files.
  double disk_read_bytes = 0;
  Waits load_waits;  ///< From the pass that begins a load until the engine has it.
  Waits disk_waits;  ///< Of requests until the chunks are in host memory, or not.
  Waits pull_waits;  ///< From the pass that asks until there is nothing to wait for.
  void add(const TierCounters& o) {
    using T = TierCounters;
    for (std::int64_t T::*n :
         {&T::query_tokens, &T::hit_tokens, &T::loads, &T::stored_chunks, &T::evicted_chunks,
          &T::refused_stores, &T::pulls, &T::pulls_arrived, &T::pulls_failed, &T::pulls_served,
          &T::disk_lookups, &T::disk_reads, &T::disk_writes})
      this->*n += o.*n;
    for (double T::*n : {&T::loaded_bytes, &T::stored_bytes, &T::pulled_bytes, &T::disk_read_bytes})
      this->*n += o.*n;
    disk_waits.add(o.disk_waits);
    load_waits.add(o.load_waits);
    pull_waits.add(o.pull_waits);
  }
};

}  // namespace routesim::sim
