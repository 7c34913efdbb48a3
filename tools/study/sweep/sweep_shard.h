// Which part of a sweep this process computes.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace routesim::tools {

/// Shard `index` of `count`: the rows whose number modulo `count` is `index`, so that neighbours,
/// which take similar time, fall to different shards.
struct SweepShard {
  std::size_t index = 0;
  std::size_t count = 1;
  std::string origin;  ///< `--shard` or the variable that chose it; empty = none.
  bool holds(std::size_t row) const { return row % count == index; }
  /// `I/N` as the option is written; empty for the whole sweep.
  std::string text() const {
    return count > 1 ? std::to_string(index + 1) + "/" + std::to_string(count) : std::string();
  }
};

/// The value of an environment variable; nothing when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// `I/N` with I from 1 to N, or `none`. Without an option, the array variables of Slurm
/// (SLURM_ARRAY_TASK_ID, _MIN, _MAX, _COUNT, which describe the array that was submitted: a lost
/// task that is submitted alone is an array of one, so only 0-(N-1) and 1-N with N > 1 say the
/// share) or of a Kubernetes Indexed Job (JOB_COMPLETION_INDEX, which counts from 0, and
/// JOB_COMPLETIONS, which the manifest must set to the same number as `completions`, since
/// Kubernetes does not tell). On error sets `error` and returns nothing.
std::optional<SweepShard> choose_shard(const std::optional<std::string>& option,
                                       const Environment& environment, std::string& error);

}  // namespace routesim::tools
