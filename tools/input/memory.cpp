#include "tools/input/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace routesim::tools {

namespace {

/// A block's record and its share of the table of keys; measured: 37 bytes per block of an idle
/// server, so an estimate with it errs on the low side.
constexpr std::int64_t kBytesPerBlock = 37;

/// Text of a size in the unit people buy memory in.
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

std::int64_t least_memory(const sim::RunPlan& plan) {
  std::int64_t blocks = 0;
  for (const sim::ResolvedPool& pool : plan.pools)
    blocks += pool.config.replicas * pool.config.data_parallel * pool.rules.num_gpu_blocks;
  return blocks * kBytesPerBlock;
}

void check_memory(const sim::RunPlan& plan, std::optional<std::int64_t> available,
                  Diagnostics& diagnostics) {
  const std::int64_t needed = least_memory(plan);
  if (!available || needed <= *available) return;
  diagnostics.error({}, "cluster.pools",
                    "the run takes at least " + gib(needed) +
                        " of memory for the servers' KV blocks, " + gib(*available) +
                        " are available",
                    "simulate fewer servers, larger blocks (engine.block_size), or use a machine "
                    "with more memory");
}

}  // namespace routesim::tools
