// `vllm bench serve`: its flags as keys, and the load it makes.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "workloads/adapter_traffic.h"
#include "workloads/conversations/conversation_data.h"
#include "workloads/load_generator.h"
#include "workloads/load_stages.h"
#include "workloads/options.h"
#include "workloads/traces/trace_readers.h"

namespace routesim::workloads::vllm_bench {

enum class Dataset {
  kPrefixRepetition,
  kRandom,
  kShareGpt,
  kBurstGpt,
  kSonnet,
  kCustom,
  kTimedTrace,
};

struct PrefixRepetition {
  std::int64_t prefix_len = 256;
  std::int64_t suffix_len = 256;
  std::int64_t num_prefixes = 10;
  std::int64_t output_len = 128;
};

struct Random {
  std::int64_t input_len = 1024;
  std::int64_t output_len = 128;
  double range_ratio = 0;  ///< Lengths are uniform in [floor(len (1 - r)), ceil(len (1 + r))].
  std::optional<double> input_range_ratio{}, output_range_ratio{};  ///< Override range_ratio.
  std::int64_t prefix_len = 0;  ///< One prefix common to all requests.
};

struct ShareGpt {
  std::optional<std::int64_t> output_len{};  ///< Absent: the recorded answer's length.
  bool oversample = true;                    ///< Repeat prompts when there are too few.
};

struct Sonnet {
  std::int64_t input_len = 550;
  std::int64_t output_len = 150;
  std::int64_t prefix_len = 200;
};

struct Custom {
  std::int64_t output_len = 256;  ///< -1: take it from the file.
};

struct TimedTrace {
  std::int64_t chunk_hash_size = 16;  ///< Tokens per hash id; Mooncake traces need 512.
  double sec_multiplier = 0.001;      ///< Seconds per unit of the trace's timestamps.
  bool self_timed = true;             ///< Arrive at the trace's times instead of request_rate.
};

/// One of several invocations of the tool, one after the other, as scripts that step through rates
/// make them. What is absent is taken from the flags above it.
struct Run {
  std::optional<double> request_rate{};
  std::optional<std::int64_t> num_prompts{}, max_concurrency{};
  /// Equal seeds repeat the prompts of the run before, which then find warm caches.
  std::optional<std::int64_t> seed{};
};

void describe(Describer& d, Run& t);

/// The flags, with the tool's defaults.
struct Config {
  Dataset dataset_name = Dataset::kRandom;
  std::optional<std::string> dataset_path{};  ///< sharegpt, custom, burstgpt, timed_trace.
  std::int64_t num_prompts = 1000;
  double request_rate = std::numeric_limits<double>::infinity();
  double burstiness = 1;
  std::optional<std::int64_t> max_concurrency{};
  RampUp ramp_up_strategy = RampUp::kNone;
  std::optional<double> ramp_up_start_rps{}, ramp_up_end_rps{};
  std::int64_t seed = 0;
  std::int64_t num_warmups = 0;
  /// Send request 0 once before the run: the ready check, which the tool made by default up to
  /// December 2025. Absent: no; see set_release_defaults().
  std::optional<bool> initial_test_request{};
  bool disable_shuffle = false;
  bool chat = false;        ///< Backend openai-chat: the server's chat template is added.
  bool ignore_eos = false;  ///< `random` data forces it on.
  /// Arrivals of the versions before rescaling: first request at once, gap after each send.
  bool legacy_arrivals = false;
  std::optional<std::int64_t> input_len{}, output_len{};  ///< Map to the data set's own flags.
  PrefixRepetition prefix_repetition{};
  Random random{};
  ShareGpt sharegpt{};
  Sonnet sonnet{};
  Custom custom{};
  TimedTrace timed_trace{};
  std::vector<std::string> lora_modules{};  ///< Requests ask for one of these, in equal shares.
  LoraAssignment lora_assignment = LoraAssignment::kRandom;
  std::vector<Run> runs{};  ///< Empty: one run with the flags as they are.
};

void describe(Describer& d, Config& t);

/// The client's timeout (6 h).
Duration client_timeout();

LoadTraits traits_of(const Config& config);
std::vector<LoadFile> files_of(const Config& config);
std::string scale_rates(Config& config, double by);
std::string hold_rate(Config& config, double rate, double seconds);
void set_release_defaults(Config& config, bool old_servers);

/// Builds the load. Stages of a run: "test" and "warmup" (unreported, where configured), then
/// "main"; with `runs` the last is "rate<r>", or "main" again for a rate of inf.
/// Takes from `inputs`: conversations (sharegpt and custom data) and the trace (burstgpt and
/// timed_trace). Null when `diagnostics` received an error.
std::unique_ptr<LoadGenerator> make_load_generator(const Config& config,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics);

}  // namespace routesim::workloads::vllm_bench

template <>
struct routesim::EnumNames<routesim::workloads::RampUp> {
  static constexpr std::array<std::string_view, 3> value = {"none", "linear", "exponential"};
};
template <>
struct routesim::EnumNames<routesim::workloads::vllm_bench::Dataset> {
  static constexpr std::array<std::string_view, 7> value = {
      "prefix_repetition", "random", "sharegpt", "burstgpt", "sonnet", "custom", "timed_trace"};
};

template <>
struct routesim::workloads::LoadKey<routesim::workloads::vllm_bench::Config> {
  static constexpr Field value = {
      "vllm_bench",
      "Flags of `vllm bench serve`, its command line, or the path of a file with either."};
};
