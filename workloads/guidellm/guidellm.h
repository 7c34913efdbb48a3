// GuideLLM's synthetic benchmarks: a profile of strategies, run one after the other.
//
// Source: vllm-project/guidellm at ee7a7745 (0.7): scheduler/strategies.py, scheduler/worker.py,
// benchmark/profiles, data/deserializers/synthetic.py, utils/random.py.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "workloads/load_generator.h"
#include "workloads/load_traits.h"
#include "workloads/options.h"

namespace routesim::workloads::guidellm {

enum class ProfileKind { kSynchronous, kConcurrent, kThroughput, kConstant, kPoisson, kSweep };

struct Profile {
  ProfileKind kind = ProfileKind::kSweep;
  std::vector<std::int64_t> streams{};            ///< Of `concurrent`: a strategy each.
  std::vector<double> rate{};                     ///< Of `constant` and `poisson`: a strategy each.
  std::optional<std::int64_t> max_concurrency{};  ///< Absent: 10,240, or 512 in a sweep.
  double rampup_duration = 0;                     ///< Seconds.
  std::int64_t sweep_size = 10;                   ///< Strategies of a sweep.
  ProfileKind strategy_type = ProfileKind::kConstant;  ///< Of a sweep's rates.
};

void describe(Describer& d, Profile& t);

struct PrefixBucket {
  std::int64_t bucket_weight = 100, prefix_count = 1, prefix_tokens = 0;
};

void describe(Describer& d, PrefixBucket& t);

/// A length as the tool draws it: the average, a clipped normal, or whole numbers from min to max.
struct Length {
  std::int64_t average = 0;
  std::optional<std::int64_t> stdev{}, min{}, max{};
};

struct Data {
  Length prompt{}, output{};
  std::int64_t turns = 1;
  std::vector<PrefixBucket> prefix_buckets{};
};

void describe(Describer& d, Data& t);

struct Config {
  Profile profile{};
  Data data{};
  /// Limits of each strategy; the last one holds for the rest. Empty: none.
  std::vector<double> max_seconds{};
  std::vector<std::int64_t> max_requests{};
  std::int64_t samples = -1;  ///< Conversations that are made once and sent in every strategy.
  bool chat = true;           ///< The server's chat template is added.
};

void describe(Describer& d, Config& t);

LoadTraits traits_of(const Config& config);
std::vector<LoadFile> files_of(const Config& config);
std::string scale_rates(Config& config, double by);
std::string hold_rate(Config& config, double rate, double seconds);

std::unique_ptr<LoadGenerator> make_load_generator(const Config& config,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics);

}  // namespace routesim::workloads::guidellm

template <>
struct routesim::EnumNames<routesim::workloads::guidellm::ProfileKind> {
  static constexpr std::array<std::string_view, 6> value = {
      "synchronous", "concurrent", "throughput", "constant", "poisson", "sweep"};
};

template <>
struct routesim::workloads::LoadKey<routesim::workloads::guidellm::Config> {
  static constexpr Field value = {"guidellm",
                                  "A scenario file of GuideLLM, inline or the path of one."};
};
