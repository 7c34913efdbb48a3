// The online regression of llm-d-latency-predictor: one training server and one prediction server
// beside one router.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "policies/latency_predictor.h"
#include "sim/prediction/bayesian_ridge.h"
#include "sim/prediction/predictor_settings.h"

namespace routesim::sim {

/// The predicted latency: TTFT reads the prefix share beside the features of TPOT.
enum class LatencyTarget : std::uint8_t { kTtft, kTpot };

/// The training server's samples: 400 buckets by queue, KV usage and prefix share, each with the
/// newest ones, so that rare states are not forgotten.
class SampleBuckets {
 public:
  SampleBuckets(LatencyTarget target, std::size_t bucket_size)
      : target_(target), bucket_size_(bucket_size), buckets_(kQueues * kUsages * kShares) {}

  void add(const policies::LatencyFeatures& features, double latency_ms);
  std::int64_t size() const { return samples_; }
  /// The number of samples from servers where requests wait, or where none does.
  std::int64_t size(bool queueing) const { return queueing ? queueing_ : samples_ - queueing_; }
  /// A model of all samples, or of those of queueing or of idle servers.
  BayesianRidge fit(std::optional<bool> queueing) const;

 private:
  static constexpr std::size_t kQueues = 5, kUsages = 20, kShares = 4;
  struct Sample {
    policies::LatencyFeatures features;
    double latency_ms;
  };
  static std::size_t bucket(const policies::LatencyFeatures& f);

  LatencyTarget target_;
  std::size_t bucket_size_;
  std::vector<std::deque<Sample>> buckets_;
  std::int64_t samples_ = 0, queueing_ = 0;
};

/// Bayesian ridge regression (LATENCY_MODEL_TYPE bayesian_ridge; the chart's default is XGBoost).
/// Until the first models of its own are taken over it predicts 10 ms for every endpoint, as the
/// server's default model does. Training takes no time.
class OnlinePredictor final : public policies::LatencyPredictor {
 public:
  /// `seed` decides which samples are held out.
  OnlinePredictor(const PredictorSettings& settings, std::uint64_t seed);

  void advance(SimTime now) override;
  void predict(const policies::RequestView& request,
               std::span<const policies::LatencyFeatures> candidates,
               std::span<policies::LatencyPrediction> answers) const override;
  void observe(const policies::LatencySample& sample, SimTime now) override;

  /// Times that models were trained.
  std::int64_t trainings() const { return trainings_; }

 private:
  /// For one target: one model, and where there are enough samples one for idle servers and one for
  /// queueing ones, which go before.
  struct Models {
    std::shared_ptr<const BayesianRidge> all;
    std::array<std::shared_ptr<const BayesianRidge>, 2> split;  ///< Idle, queueing.
  };
  using Pair = std::array<Models, 2>;  ///< By LatencyTarget.
  void train();
  double answer(LatencyTarget target, const policies::LatencyFeatures& features) const;

  PredictorSettings settings_;
  std::uint64_t seed_;
  double deviations_;  ///< Added to the mean to get the quantile.
  std::array<SampleBuckets, 2> samples_;
  std::uint64_t observed_ = 0;
  bool fresh_samples_ = false;  ///< Since the last training.
  std::int64_t trainings_ = 0;
  Pair trained_, served_;
  SimTime next_training_, next_sync_;
};

}  // namespace routesim::sim
