#include "tools/ingest/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace routesim::tools {

namespace {

// Measured on idle fleets of 20,000 and 60,000 ranks, and with full caches on 1,024; estimates err
// on the low side.
constexpr std::int64_t kBytesPerRank = 3500;
constexpr std::int64_t kBytesPerBucket = 24;  ///< A rank has one per token of a block.
constexpr std::int64_t kBytesPerCachedBlock = 10;
constexpr std::int64_t kBytesPerIndexedBlock = 50;

/// Products of counts, before they are bounded.
__extension__ using Wide = __int128;

/// At most what 64 bits hold, with room for a factor of ten.
std::int64_t bounded(Wide bytes) {
  return static_cast<std::int64_t>(std::min<Wide>(bytes, std::int64_t{1} << 59U));
}

/// A size in GiB, with one decimal.
std::string gib(std::int64_t bytes) {
  const std::int64_t tenths = bytes * 10 / (std::int64_t{1} << 30U);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

}  // namespace

std::optional<std::int64_t> available_memory() {
  std::optional<std::int64_t> least;
  const auto limit = [&least](std::int64_t bytes) {
    least = std::min(least.value_or(bytes), bytes);
  };
  std::ifstream meminfo("/proc/meminfo");
  for (std::string key, unit; meminfo >> key; std::getline(meminfo, unit)) {
    std::int64_t kib = 0;
    if (key == "MemAvailable:" && meminfo >> kib) limit(kib * 1024);
  }
  std::int64_t group = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> group) limit(group);
  struct rlimit space {};
  if (::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY &&
      space.rlim_cur <= static_cast<rlim_t>(std::numeric_limits<std::int64_t>::max()))
    limit(static_cast<std::int64_t>(space.rlim_cur));
  return least;
}

MemoryNeed memory_need(const sim::RunPlan& plan) {
  Wide idle = 0, blocks = 0;
  for (const sim::ResolvedPool& pool : plan.pools) {
    const Wide ranks = static_cast<Wide>(pool.config.replicas) * pool.config.data_parallel;
    idle += ranks * (kBytesPerRank + kBytesPerBucket * pool.rules.block_size);
    if (pool.rules.enable_prefix_caching) blocks += ranks * pool.rules.num_gpu_blocks;
  }
  Wide full = idle + blocks * kBytesPerCachedBlock;
  if (plan.endpoint_picker)
    full += blocks * kBytesPerIndexedBlock * plan.scenario.routing.router_replicas;
  return {.idle = bounded(idle), .full = bounded(full)};
}

void check_memory(const sim::RunPlan& plan, std::optional<std::int64_t> available,
                  Diagnostics& diagnostics) {
  if (!available) return;
  const MemoryNeed need = memory_need(plan);
  if (need.idle > *available) {
    diagnostics.error({}, "cluster.pools",
                      "the run takes at least " + gib(need.idle) + " of memory for its servers, " +
                          gib(*available) + " are available",
                      "simulate fewer servers, or use a machine with more memory");
  } else if (need.full > *available) {
    diagnostics.warning({}, "cluster.pools",
                        "the run may come to take " + gib(need.full) +
                            " of memory: that much once every server's prefix cache is full; " +
                            gib(*available) + " are available",
                        "simulate fewer servers or requests, or larger blocks (engine.block_size)");
  }
}

}  // namespace routesim::tools
