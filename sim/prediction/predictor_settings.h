// Settings of the latency predictor beside llm-d's router.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/config_node.h"
#include "base/describe.h"
#include "base/diagnostic.h"
#include "base/units.h"

namespace routesim::sim {

/// The source of the predictions of predicted-latency-producer.
enum class PredictorKind {
  kOnline,   ///< A regression that trains on what its router observes.
  kPerfect,  ///< The engines' true state and step times: an upper bound.
  kNone      ///< There is no predictor; plugins do what they do then.
};
/// The statistic that a model of latencies is fitted to.
enum class PredictionObjective { kMean, kQuantile };

/// Defaults: llm-d-router's chart (config/charts/routerlib/values.yaml, commit ebab687), then
/// llm-d-latency-predictor (training/training_server.py, commit 04e44cd).
struct PredictorSettings {
  PredictorKind kind = PredictorKind::kOnline;
  Duration retraining_interval = Duration::seconds(10);
  Duration model_sync_interval = Duration::seconds(30);
  std::int64_t min_samples = 10;  ///< Without a stored model: the FRESH minimum, from then on.
  std::int64_t min_samples_for_split = 200;
  std::int64_t bucket_size = 500;
  double test_share = 0.1;
  PredictionObjective objective = PredictionObjective::kMean;
  double quantile = 0.9;
};
void describe(Describer& d, PredictorSettings& s);

/// The settings that a chart's `environment` makes, a map of variables; absent ones keep their
/// default. Variables that nothing here reads are left alone.
PredictorSettings settings_of(const ConfigNode& environment, Diagnostics& diagnostics);

}  // namespace routesim::sim

template <>
struct routesim::EnumNames<routesim::sim::PredictorKind> {
  static constexpr std::array<std::string_view, 3> value = {"online", "perfect", "none"};
};
template <>
struct routesim::EnumNames<routesim::sim::PredictionObjective> {
  static constexpr std::array<std::string_view, 2> value = {"mean", "quantile"};
};
