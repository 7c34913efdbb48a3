#include "sim/prediction/predictor_settings.h"

namespace routesim::sim {

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
