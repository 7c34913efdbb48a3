// The parameters of saturation detectors, admitters and flow-control policies.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/describe.h"
#include "base/field_fates.h"
#include "base/units.h"

namespace routesim::policies {

struct UtilizationDetectorParameters {
  std::int64_t queue_depth_threshold = 5;
  double kv_cache_util_threshold = 0.8;
  Duration metrics_staleness_threshold = Duration::milliseconds(200);
  double headroom = 0;
};
inline void describe(Describer& d, UtilizationDetectorParameters& p) {
  field(d, {"queueDepthThreshold", "Waiting requests that make an endpoint full."},
        p.queue_depth_threshold, IntRange{1});
  field(d, {"kvCacheUtilThreshold", "KV usage that makes an endpoint full."},
        p.kv_cache_util_threshold, RealRange{.min = 0, .max = 1, .min_open = true});
  field(d, {"metricsStalenessThreshold", "Age from which metrics count as missing."},
        p.metrics_staleness_threshold, DurationRange{Duration::nanoseconds(1)});
  field(d, {"headroom", "Filter only: share beyond the thresholds that still passes."}, p.headroom,
        RealRange{0});
}

enum class ConcurrencyMode { kRequests, kTokens, kHybrid };

}  // namespace routesim::policies

template <>
struct routesim::EnumNames<routesim::policies::ConcurrencyMode> {
  static constexpr std::array<std::string_view, 3> value = {"requests", "tokens", "hybrid"};
};

namespace routesim::policies {

struct ConcurrencyDetectorParameters {
  std::int64_t max_concurrency = 100;
  std::int64_t max_token_concurrency = 1'000'000;
  double headroom = 0;
  ConcurrencyMode mode = ConcurrencyMode::kRequests;
  std::string in_flight_producer;
};
inline void describe(Describer& d, ConcurrencyDetectorParameters& p) {
  field(d, {"maxConcurrency", "Requests in flight that make an endpoint full."}, p.max_concurrency,
        IntRange{1});
  field(d, {"maxTokenConcurrency", "Tokens in flight that make an endpoint full."},
        p.max_token_concurrency, IntRange{1});
  field(d, {"headroom", "Filter only: share beyond the limit that still passes."}, p.headroom,
        RealRange{0});
  field(d, {"concurrencyMode", "requests, tokens or hybrid."}, p.mode);
  field(d, {"inFlightLoadProducerName", "Instance that counts."}, p.in_flight_producer);
}

struct ProbabilisticAdmitterParameters {
  std::int64_t queue_depth_threshold = 5;
  double kv_cache_util_threshold = 0.8;
  double power = 5, k = 300;
};
inline void describe(Describer& d, ProbabilisticAdmitterParameters& p) {
  field(d, {"queueDepthThreshold", "Waiting requests that make an endpoint full."},
        p.queue_depth_threshold, IntRange{1});
  field(d, {"kvCacheUtilThreshold", "KV usage that makes an endpoint full."},
        p.kv_cache_util_threshold, RealRange{.min = 0, .max = 1, .min_open = true});
  field(d, {"power", "Refusal probability min(saturation^power * k, 1)."}, p.power, RealRange{0});
  field(d, {"k", "Refusal probability min(saturation^power * k, 1)."}, p.k, RealRange{0});
}

enum class HoldbackDomain { kRank, kValue };

}  // namespace routesim::policies

template <>
struct routesim::EnumNames<routesim::policies::HoldbackDomain> {
  static constexpr std::array<std::string_view, 2> value = {"rank", "value"};
};

namespace routesim::policies {

struct HoldbackParameters {
  HoldbackDomain domain = HoldbackDomain::kRank;
  double min_ceiling = 0;
  double max_ceiling = 1;
};
inline void describe(Describer& d, HoldbackParameters& p) {
  field(d, {"domain", "Spread ceilings by rank or by value of the priority."}, p.domain);
  field(d, {"minCeiling", "Saturation at which the lowest band stops.", true}, p.min_ceiling,
        RealRange{.min = 0, .max = 1, .max_open = true});
  field(d, {"maxCeiling", "Saturation at which the highest band stops."}, p.max_ceiling,
        RealRange{0});
}

enum class FairnessStrategy { kLas, kTurnPriority };

}  // namespace routesim::policies

template <>
struct routesim::EnumNames<routesim::policies::FairnessStrategy> {
  static constexpr std::array<std::string_view, 2> value = {"las", "turn-priority"};
};

namespace routesim::policies {

inline constexpr std::string_view kIdlePrograms = "an idle program keeps no requests waiting";

struct ProgramAwareParameters {
  FairnessStrategy strategy = FairnessStrategy::kLas;
  double weight_service = 0.8, weight_head_wait = 0.2;
  double half_life_seconds = 60;
  double eviction_ttl_seconds = 3600, eviction_sweep_seconds = 300;
};
inline void describe(Describer& d, ProgramAwareParameters& p) {
  field(d, {"strategy", "Least attained service; turn-priority is not modelled."}, p.strategy);
  field(d, {"lasWeightService", "Weight of the service a program has not had."}, p.weight_service,
        RealRange{0});
  field(d, {"lasWeightHeadWait", "Weight of how long its first request waits."}, p.weight_head_wait,
        RealRange{0});
  field(d, {"lasHalfLifeSeconds", "Half-life of attained service; only 60 is modelled."},
        p.half_life_seconds, RealRange{60, 60});
  field(d, no_effect("evictionTtlSeconds", "When upstream forgets an idle program.", kIdlePrograms),
        p.eviction_ttl_seconds, RealRange{0});
  field(d, no_effect("evictionSweepSeconds", "How often it looks for them.", kIdlePrograms),
        p.eviction_sweep_seconds, RealRange{0});
}

struct StaticLimitParameters {
  double threshold = 1.0;
};
inline void describe(Describer& d, StaticLimitParameters& p) {
  field(d, {"threshold", "Saturation at which every band stops."}, p.threshold, RealRange{0});
}

}  // namespace routesim::policies
