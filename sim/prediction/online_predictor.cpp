#include "sim/prediction/online_predictor.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"

namespace routesim::sim {
namespace {

using policies::LatencyFeatures;
using policies::ServerStage;

/// The answer that the server's default model, made of one sample, gives everywhere.
constexpr double kDefaultMs = 10;

constexpr std::size_t kTpotFeatures = 9, kTtftFeatures = 11;

std::size_t features_of(LatencyTarget target) {
  return target == LatencyTarget::kTtft ? kTtftFeatures : kTpotFeatures;
}

/// The features of one sample. Left out are those that never vary here, whose weight is 0: tokens
/// generated (LATENCY_TPOT_ZERO_TOKEN_COUNT), decode tokens in flight (the router sends 0), and
/// what multimodal encoders hold.
std::array<double, kTtftFeatures> numbers(const LatencyFeatures& f) {
  const auto is = [&f](ServerStage stage) { return f.stage == stage ? 1.0 : 0.0; };
  const auto prompt = static_cast<double>(f.prompt_tokens);
  return {f.waiting > 0 ? 1.0 : 0.0,
          f.kv_usage,
          prompt,
          f.waiting,
          static_cast<double>(f.requests_in_flight),
          static_cast<double>(f.tokens_in_flight),
          is(ServerStage::kUnlabelled),
          is(ServerStage::kPrefill),
          is(ServerStage::kDecode),
          f.prefix_share,
          (1 - f.prefix_share) * prompt};
}

/// The standard normal distribution's quantile, by bisection: asked once per run.
double normal_quantile(double p) {
  double low = -9, high = 9;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return low;
}

std::size_t slice(double share, std::size_t slices) {
  const auto at =
      static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(slices));
  return std::min(at, slices - 1);
}

}  // namespace

std::size_t SampleBuckets::bucket(const LatencyFeatures& f) {
  constexpr std::array<double, kQueues - 1> kUpTo = {0, 2, 5, 10};
  std::size_t queue = 0;
  while (queue < kUpTo.size() && f.waiting > kUpTo[queue]) ++queue;
  return (queue * kUsages + slice(f.kv_usage, kUsages)) * kShares + slice(f.prefix_share, kShares);
}

void SampleBuckets::add(const LatencyFeatures& features, double latency_ms) {
  std::deque<Sample>& samples = buckets_[bucket(features)];
  const auto count = [this](const Sample& s, std::int64_t by) {
    samples_ += by;
    if (s.features.waiting > 0) queueing_ += by;
  };
  samples.push_back({features, latency_ms});
  count(samples.back(), 1);
  if (samples.size() <= bucket_size_) return;
  count(samples.front(), -1);
  samples.pop_front();
}

BayesianRidge SampleBuckets::fit(std::optional<bool> queueing) const {
  const std::size_t d = features_of(target_);
  std::vector<double> rows, targets;
  rows.reserve(static_cast<std::size_t>(samples_) * d);
  for (const std::deque<Sample>& samples : buckets_) {
    for (const Sample& s : samples) {
      if (queueing && *queueing != (s.features.waiting > 0)) continue;
      const auto row = numbers(s.features);
      rows.insert(rows.end(), row.begin(), row.begin() + static_cast<std::ptrdiff_t>(d));
      targets.push_back(s.latency_ms);
    }
  }
  return {rows, targets, d};
}

OnlinePredictor::OnlinePredictor(const PredictorSettings& settings, std::uint64_t seed)
    : settings_(settings),
      seed_(seed),
      deviations_(settings.objective == PredictionObjective::kQuantile
                      ? normal_quantile(settings.quantile)
                      : 0),
      samples_{SampleBuckets(LatencyTarget::kTtft, static_cast<std::size_t>(settings.bucket_size)),
               SampleBuckets(LatencyTarget::kTpot, static_cast<std::size_t>(settings.bucket_size))},
      next_training_(SimTime::zero() + settings.retraining_interval),
      next_sync_(SimTime::zero() + settings.model_sync_interval) {
  const auto constant = std::make_shared<const BayesianRidge>(kDefaultMs);
  for (Models& models : trained_) models.all = constant;
  served_ = trained_;
}

void OnlinePredictor::advance(SimTime now) {
  while (std::min(next_training_, next_sync_) <= now) {
    if (next_training_ <= next_sync_) {
      train();
      next_training_ = next_training_ + settings_.retraining_interval;
    } else {
      served_ = trained_;
      next_sync_ = next_sync_ + settings_.model_sync_interval;
    }
  }
}

void OnlinePredictor::train() {
  if (!fresh_samples_) return;
  const auto& [ttft, tpot] = samples_;
  if (ttft.size() + tpot.size() < settings_.min_samples) return;
  fresh_samples_ = false;
  ++trainings_;
  const auto fit = [](const SampleBuckets& samples, std::optional<bool> queueing) {
    return std::make_shared<const BayesianRidge>(samples.fit(queueing));
  };
  const bool split = std::min({ttft.size(false), ttft.size(true), tpot.size(false),
                               tpot.size(true)}) >= settings_.min_samples_for_split;
  for (std::size_t t = 0; t < samples_.size(); ++t) {
    if (samples_[t].size() >= settings_.min_samples) trained_[t].all = fit(samples_[t], {});
    trained_[t].split = {};
    if (split) trained_[t].split = {fit(samples_[t], false), fit(samples_[t], true)};
  }
}

double OnlinePredictor::answer(LatencyTarget target, const LatencyFeatures& features) const {
  const Models& models = served_[static_cast<std::size_t>(target)];
  const auto& own = models.split[features.waiting > 0 ? 1 : 0];
  const BayesianRidge& model = own != nullptr ? *own : *models.all;
  const auto all = numbers(features);
  const std::span<const double> row(all.data(), features_of(target));
  double latency = model.predict(row);
  if (deviations_ != 0) latency += deviations_ * model.deviation(row);
  return std::max(0.0, latency);
}

void OnlinePredictor::predict(const policies::RequestView&,
                              std::span<const LatencyFeatures> candidates,
                              std::span<policies::LatencyPrediction> answers) const {
  for (std::size_t i = 0; i < candidates.size(); ++i)
    answers[i] = {.present = true,
                  .ttft_ms = answer(LatencyTarget::kTtft, candidates[i]),
                  .tpot_ms = answer(LatencyTarget::kTpot, candidates[i])};
}

void OnlinePredictor::observe(const policies::LatencySample& sample, SimTime now) {
  advance(now);
  const std::uint64_t draw = mix64(seed_, ++observed_);
  if (static_cast<double>(draw >> 11) * 0x1.0p-53 < settings_.test_share) return;
  fresh_samples_ = true;
  if (sample.ttft_ms > 0) samples_[0].add(sample.features, sample.ttft_ms);
  if (sample.tpot_ms > 0) samples_[1].add(sample.features, sample.tpot_ms);
}

}  // namespace routesim::sim
