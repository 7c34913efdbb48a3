// The routing algorithms of AIBrix (vllm-project/aibrix, pkg/plugins/gateway/algorithms).
#pragma once

#include "policies/balancers/kit/family.h"

namespace routesim::policies {

/// The GPU whose prefill times prefix-cache-preble assumes.
enum class AibrixGpu : std::uint8_t { kV100, kA6000 };
enum class AibrixPrefillScore : std::uint8_t { kPrefixCache, kLeastRequest };
enum class AibrixDecodeScore : std::uint8_t { kLoadBalancing, kLeastRequest };

/// Goals of a profile, in seconds where they are times; 0 = none. Names are the product's.
struct AibrixSlos {
  std::int64_t percentile = 0;
  double tput = 0, tt = 0, e2e = 0, ttft = 0, tpat = 0, tpot = 0;
};
void describe(Describer& d, AibrixSlos& s);

/// The GPU optimizer's measurements of a model on a kind of GPU, as it stores them in Redis under
/// aibrix:profile_MODEL_DEPLOYMENT. Tables have a row an answer length, a column a prompt length.
struct AibrixProfile {
  std::string gpu;
  double cost = 0, created = 0;
  std::vector<std::vector<double>> tputs, indexes, e2e, ttft, tpot;
  AibrixSlos slos;
};
void describe(Describer& d, AibrixProfile& p);
/// The reason why the profile cannot be read, or "": two axes that rise, and tables of their shape.
std::string profile_fault(const AibrixProfile& p);

/// In the order of kAibrixReleases.
enum class AibrixRelease : std::uint8_t { k0_7, kMeanGate };
inline constexpr std::array kAibrixReleases = std::to_array<ReleaseRow>({
    {"0.7.0", "2026-08", "imbalanced when loads differ by more than a number (@e3e10f9e)"},
    {"01de8a5", "", "imbalanced by factor of the mean and gap; a commit without a release"},
});

/// Settings under the names of AIBrix's environment variables, without AIBRIX_ and in lower case.
struct AibrixSettings {
  std::string release;
  bool metrics_as_intended = false;

  std::int64_t prefix_cache_block_size = 4;  ///< Bytes.
  std::int64_t prefix_cache_block_number = 200'000;
  std::int64_t prefix_cache_eviction_interval_seconds = 1;
  std::int64_t prefix_cache_eviction_duration_mins = 20;
  std::int64_t prefix_cache_pod_running_request_imbalance_abs_count = 8;
  double prefix_cache_load_imbalance_factor = 2;
  std::int64_t prefix_cache_load_imbalance_min_gap = 8;
  std::int64_t prefix_cache_standard_deviation_factor = 1;

  AibrixGpu router_preble_target_gpu = AibrixGpu::kV100;
  std::int64_t router_preble_decoding_length = 45;
  std::int64_t router_preble_sliding_window_period = 3;       ///< Minutes.
  std::int64_t router_preble_eviction_loop_interval = 1'000;  ///< Milliseconds.

  double router_vtc_basic_max_pod_load = 100;
  double router_vtc_basic_input_token_weight = 1;
  double router_vtc_basic_output_token_weight = 2;
  double router_vtc_basic_fairness_weight = 1;
  double router_vtc_basic_utilization_weight = 1;
  std::int64_t router_vtc_token_tracker_window_size = 5;  ///< Minutes.
  double router_vtc_token_tracker_min_tokens = 1'000;
  double router_vtc_token_tracker_max_tokens = 8'000;

  std::int64_t prefill_load_imbalance_min_spread = 16;
  double decode_load_imbalance_min_spread = 16;
  double decode_score_ratio_threshold = 1.5;
  AibrixPrefillScore prefill_score_policy = AibrixPrefillScore::kPrefixCache;
  AibrixDecodeScore decode_score_policy = AibrixDecodeScore::kLoadBalancing;
  double decode_lb_weight_running = 1;
  double decode_lb_weight_throughput = 1;

  std::vector<AibrixProfile> profiles;
};
void describe(Describer& d, AibrixSettings& s);

enum class AibrixPolicy : std::uint8_t {
  kRandom,
  kLeastRequest,
  kLeastKvCache,
  kLeastGpuCache,
  kLeastLatency,
  kThroughput,
  kPowerOfTwo,
  kPrefixCache,
  kPrefixCachePreble,
  kVtcBasic,
  kPd,
  kSlo,
  kLeastBusyTime,
  kSessionAffinity,
};

std::unique_ptr<Balancer> make_aibrix(AibrixPolicy policy, const AibrixSettings& settings,
                                      const RandomStream& random);

struct AibrixFamily {
  using Settings = AibrixSettings;
  static constexpr FamilyFacts facts = {.section = "aibrix",
                                        .settings = "Settings of the aibrix-* balancers.",
                                        .product = "AIBrix",
                                        .release = "0.7.0 (@e3e10f9e)"};
  static constexpr std::span<const ReleaseRow> releases = kAibrixReleases;
  static constexpr auto make = &make_aibrix;
  static constexpr auto policies = std::to_array<PolicyRow<AibrixPolicy>>({
      {AibrixPolicy::kRandom, "aibrix-random", "nothing"},
      {AibrixPolicy::kLeastRequest, "aibrix-least-request", "own requests in flight",
       "pods have one port"},
      {AibrixPolicy::kLeastKvCache, "aibrix-least-kv-cache",
       "nothing; KV usage with metrics_as_intended",
       "random, because vLLM V1 lacks cpu_cache_usage_perc"},
      {AibrixPolicy::kLeastGpuCache, "aibrix-least-gpu-cache",
       "nothing; KV usage with metrics_as_intended",
       "random, because vLLM 0.12 lacks gpu_cache_usage_perc"},
      {AibrixPolicy::kLeastLatency, "aibrix-least-latency", "mean times of prefill and decode",
       "the gateway's own times, queue included, for the engine's histograms; the product decides "
       "at random without Prometheus"},
      {AibrixPolicy::kThroughput, "aibrix-throughput",
       "nothing; tokens of completed requests with metrics_as_intended",
       "random, because the averages are read as 0; means since the start, not of a day"},
      {AibrixPolicy::kPowerOfTwo, "aibrix-power-of-two", "own requests in flight",
       "each router counts alone, where the product shares Redis"},
      {AibrixPolicy::kPrefixCache, "aibrix-prefix-cache",
       "text sent before, own requests in flight", "no KV events"},
      {AibrixPolicy::kPrefixCachePreble, "aibrix-prefix-cache-preble",
       "text sent before, own requests in flight", "the load's tokens stand for cl100k_base"},
      {AibrixPolicy::kVtcBasic, "aibrix-vtc-basic", "users, text length, running requests",
       "a session stands for a user where the load has none"},
      {AibrixPolicy::kPd, "aibrix-pd", "text sent before, own requests in flight, KV usage, roles",
       "no prompt length buckets, combined pods or conductor scores; a "
       "prefill ends with the first token",
       "", true},
      {AibrixPolicy::kSlo, "aibrix-slo",
       "profiles of the GPU optimizer, prompt lengths, own requests in flight",
       "slo-least-load-pulling; least-request without profiles; each router has a queue of its "
       "own; a request waits for its own turn, up to 0.1 ms where another one is more urgent; the "
       "load's tokens stand for cl100k_base"},
      {AibrixPolicy::kLeastBusyTime, "aibrix-least-busy-time", "nothing",
       "random, because no engine exports gpu_busy_time_ratio"},
      {AibrixPolicy::kSessionAffinity, "aibrix-session-affinity", "headers",
       "clients name their session by x-aibrix-session-key"},
  });
};

}  // namespace routesim::policies

template <>
struct routesim::EnumNames<routesim::policies::AibrixGpu> {
  static constexpr std::array<std::string_view, 2> value = {"V100", "A6000"};
};
template <>
struct routesim::EnumNames<routesim::policies::AibrixPrefillScore> {
  static constexpr std::array<std::string_view, 2> value = {"prefix_cache", "least_request"};
};
template <>
struct routesim::EnumNames<routesim::policies::AibrixDecodeScore> {
  static constexpr std::array<std::string_view, 2> value = {"load_balancing", "least_request"};
};
