#include "sim/prediction/predictor_settings.h"

#include <algorithm>
#include <vector>

#include "base/tree_reader.h"

namespace routesim::sim {

namespace {

/// The same settings under the names of the variables; intervals are seconds.
void describe_environment(Describer& d, PredictorSettings& s) {
  const DurationRange interval{Duration::milliseconds(100), Duration::seconds(1'000'000)};
  field(d, {"LATENCY_RETRAINING_INTERVAL_SEC", ""}, s.retraining_interval, interval);
  field(d, {"MODEL_SYNC_INTERVAL_SEC", ""}, s.model_sync_interval, interval);
  field(d, {"LATENCY_MIN_SAMPLES_FOR_RETRAIN_FRESH", ""}, s.min_samples, IntRange{1, 1'000'000});
  field(d, {"LATENCY_MIN_SAMPLES_FOR_ENSEMBLE_SPLIT", ""}, s.min_samples_for_split,
        IntRange{1, 1'000'000});
  field(d, {"LATENCY_MAX_TRAINING_DATA_SIZE_PER_BUCKET", ""}, s.bucket_size, IntRange{1, 100'000});
  field(d, {"LATENCY_TEST_TRAIN_RATIO", ""}, s.test_share, RealRange{.min = 0, .max = 0.99});
  field(d, {"LATENCY_OBJECTIVE_TYPE", ""}, s.objective);
  field(d, {"LATENCY_QUANTILE_ALPHA", ""}, s.quantile, RealRange{.min = 0.01, .max = 0.99});
}

constexpr std::array<std::string_view, 8> kVariables = {"LATENCY_RETRAINING_INTERVAL_SEC",
                                                        "MODEL_SYNC_INTERVAL_SEC",
                                                        "LATENCY_MIN_SAMPLES_FOR_RETRAIN_FRESH",
                                                        "LATENCY_MIN_SAMPLES_FOR_ENSEMBLE_SPLIT",
                                                        "LATENCY_MAX_TRAINING_DATA_SIZE_PER_BUCKET",
                                                        "LATENCY_TEST_TRAIN_RATIO",
                                                        "LATENCY_OBJECTIVE_TYPE",
                                                        "LATENCY_QUANTILE_ALPHA"};

}  // namespace

PredictorSettings settings_of(const ConfigNode& environment, Diagnostics& diagnostics) {
  std::vector<ConfigNode::Member> known;
  for (const ConfigNode::Member& m : environment.members()) {
    if (std::find(kVariables.begin(), kVariables.end(), m.key) == kVariables.end()) continue;
    // Variables are text for Kubernetes, whatever they hold.
    known.push_back(m);
    if (m.value->is_scalar())
      known.back().value =
          ConfigNode::make_scalar(m.value->text(), ConfigNode::Style::kUntyped, m.value->where());
  }
  PredictorSettings settings;
  read_config(*ConfigNode::make_map(std::move(known), environment.where()),
              [&settings](Describer& d) { describe_environment(d, settings); }, diagnostics,
              {.path = "latencyPredictor", .format = {}});
  return settings;
}

void describe(Describer& d, PredictorSettings& s) {
  const DurationRange interval{Duration::milliseconds(100), Duration::seconds(1'000'000)};
  field(d,
        {"kind",
         "online: a regression that trains on what its router observes; perfect: the engines' true "
         "state and step times, as an upper bound; none: no predictor."},
        s.kind);
  field(d,
        {"retraining_interval",
         "How often new models are trained (LATENCY_RETRAINING_INTERVAL_SEC)."},
        s.retraining_interval, interval);
  field(d,
        {"model_sync_interval",
         "How often the prediction server takes over the newest models (MODEL_SYNC_INTERVAL_SEC)."},
        s.model_sync_interval, interval);
  field(d,
        {"min_samples",
         "Samples below which nothing is trained (LATENCY_MIN_SAMPLES_FOR_RETRAIN_FRESH)."},
        s.min_samples, IntRange{1, 1'000'000});
  field(d,
        {"min_samples_for_split",
         "Samples of idle and of queueing servers, of TTFT and TPOT each, from which idle and "
         "queueing servers have models of their own (LATENCY_MIN_SAMPLES_FOR_ENSEMBLE_SPLIT)."},
        s.min_samples_for_split, IntRange{1, 1'000'000});
  field(d,
        {"bucket_size",
         "Samples kept per bucket of like queue, KV usage and prefix share "
         "(LATENCY_MAX_TRAINING_DATA_SIZE_PER_BUCKET)."},
        s.bucket_size, IntRange{1, 100'000});
  field(d, {"test_share", "Samples held out of the training (LATENCY_TEST_TRAIN_RATIO)."},
        s.test_share, RealRange{.min = 0, .max = 0.99});
  field(d, {"objective", "mean or quantile (LATENCY_OBJECTIVE_TYPE)."}, s.objective);
  field(d, {"quantile", "With objective quantile: which (LATENCY_QUANTILE_ALPHA)."}, s.quantile,
        RealRange{.min = 0.01, .max = 0.99});
}

}  // namespace routesim::sim
