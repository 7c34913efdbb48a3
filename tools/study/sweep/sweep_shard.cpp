#include "tools/study/sweep/sweep_shard.h"

#include <charconv>
#include <cstdint>
#include <string_view>

#include "base/text.h"

namespace routesim::tools {

namespace {

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t v = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, v);
  if (read.ec != std::errc{} || read.ptr != end || v < 0) return std::nullopt;
  return v;
}

/// A shard counted from 0; `what` names the source in messages.
std::optional<SweepShard> make_shard(std::int64_t index, std::int64_t count,
                                     const std::string& what, std::string& error) {
  if (index < 0 || index >= count) {
    const std::string shown = index < 0 ? std::to_string(index + 1)
                                        : std::to_string(static_cast<std::uint64_t>(index) + 1);
    error = what + " names shard " + shown + " of " + std::to_string(count) +
            (count > 0 ? "; shards count from 1 to " + std::to_string(count) : "");
    return std::nullopt;
  }
  return SweepShard{.index = static_cast<std::size_t>(index),
                    .count = static_cast<std::size_t>(count),
                    .origin = what};
}

std::optional<SweepShard> from_option(const std::string& text, std::string& error) {
  if (text == "none") return SweepShard{.index = 0, .count = 1, .origin = "--shard"};
  const std::size_t slash = text.find('/');
  const std::optional<std::int64_t> index = whole_number(text.substr(0, slash));
  const std::optional<std::int64_t> count =
      slash == std::string::npos ? std::nullopt : whole_number(text.substr(slash + 1));
  if (!index || !count) {
    error = "--shard must be I/N, the first of 8 being 1/8 and the last 8/8, or none (got " +
            printable(text) + ")";
    return std::nullopt;
  }
  return make_shard(*index - 1, *count, "--shard", error);
}

/// The variable as a number; `fallback` when it is not set.
std::optional<std::int64_t> variable(const Environment& environment, const std::string& name,
                                     std::optional<std::int64_t> fallback, std::string& error) {
  const std::optional<std::string> text = environment(name);
  if (!text && !fallback) error = name + " is not set";
  if (!text) return fallback;
  const std::optional<std::int64_t> v = whole_number(*text);
  if (!v) error = name + " is not a whole number (got " + printable(*text) + ")";
  return v;
}

std::optional<SweepShard> from_slurm(const Environment& environment, std::string& error) {
  const auto id = variable(environment, "SLURM_ARRAY_TASK_ID", std::nullopt, error);
  const auto count = variable(environment, "SLURM_ARRAY_TASK_COUNT", std::nullopt, error);
  const auto first = variable(environment, "SLURM_ARRAY_TASK_MIN", std::nullopt, error);
  const auto last = variable(environment, "SLURM_ARRAY_TASK_MAX", std::nullopt, error);
  if (!id || !count || !first || !last) {
    error += ": give --shard I/N";
    return std::nullopt;
  }
  const bool whole = *count > 1 && *first <= 1 && *last - *first == *count - 1;
  if (!whole) {
    error = "the Slurm array has " + std::to_string(*count) + " tasks from " +
            std::to_string(*first) + " to " + std::to_string(*last) +
            ", which may be a part of a larger array, so it does not say the share of task " +
            std::to_string(*id) + ": give --shard I/N, or --shard none for all rows";
    return std::nullopt;
  }
  return make_shard(*id - *first, *count, "SLURM_ARRAY_TASK_ID", error);
}

std::optional<SweepShard> from_kubernetes(const Environment& environment, std::string& error) {
  const auto index = variable(environment, "JOB_COMPLETION_INDEX", std::nullopt, error);
  const auto count = variable(environment, "JOB_COMPLETIONS", std::nullopt, error);
  if (!index || !count) {
    error +=
        ": a sweep in a Kubernetes Indexed Job needs JOB_COMPLETION_INDEX and "
        "JOB_COMPLETIONS, the job's `completions`; or give --shard";
    return std::nullopt;
  }
  return make_shard(*index, *count, "JOB_COMPLETION_INDEX", error);
}

}  // namespace

std::optional<SweepShard> choose_shard(const std::optional<std::string>& option,
                                       const Environment& environment, std::string& error) {
  if (option) return from_option(*option, error);
  if (environment("SLURM_ARRAY_TASK_ID")) return from_slurm(environment, error);
  if (environment("JOB_COMPLETION_INDEX")) return from_kubernetes(environment, error);
  return SweepShard{};
}

}  // namespace routesim::tools
