#include "tools/study/capacity/steady_window.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"

namespace routesim::tools {

namespace {

constexpr std::size_t kBatches = 10;

/// Sums of a member over equal batches of the bins; what does not fill a batch is left out in
/// front.
template <class T>
std::vector<double> batch_sums(std::span<const LoadBin> bins, T LoadBin::*member) {
  const std::size_t width = bins.size() / kBatches;
  std::vector<double> sums(kBatches);
  const std::size_t first = bins.size() - width * kBatches;
  for (std::size_t i = first; i < bins.size(); ++i)
    sums[(i - first) / width] += static_cast<double>(bins[i].*member);
  return sums;
}

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

/// Standard error of the mean of independent values.
double error_of_mean(std::span<const double> values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  const auto n = static_cast<double>(values.size());
  return std::sqrt(squares / (n - 1) / n);
}

/// Drift of the batch means per batch, and its error. Means of neighbouring spans of a random walk
/// differ by two thirds of the variance that it gains in a span.
void measure_growth(std::span<const double> means, double sent_per_batch, SteadyWindow& out) {
  const auto steps = static_cast<double>(means.size() - 1);
  const double drift = (means.back() - means.front()) / steps;
  double squares = 0;
  for (std::size_t i = 1; i < means.size(); ++i) {
    const double step = means[i] - means[i - 1] - drift;
    squares += step * step;
  }
  out.growth = drift / sent_per_batch;
  out.growth_error = std::sqrt(1.5 * squares / (steps - 1) / steps) / sent_per_batch;
}

void measure_hits(std::span<const LoadBin> window, SteadyWindow& out) {
  const std::vector<double> prompt = batch_sums(window, &LoadBin::prompt_tokens);
  const std::vector<double> cached = batch_sums(window, &LoadBin::cached_tokens);
  std::vector<double> first, second;
  for (std::size_t i = 0; i < kBatches; ++i)
    if (prompt[i] > 0) (i < kBatches / 2 ? first : second).push_back(cached[i] / prompt[i]);
  if (first.size() < 2 || second.size() < 2) return;
  out.hit_drift = mean_of(second) - mean_of(first);
  out.hit_drift_error = std::hypot(error_of_mean(first), error_of_mean(second));
}

}  // namespace

std::size_t warm_up_end(std::span<const double> series) {
  double sum = 0, squares = 0, least = INFINITY;
  std::size_t best = 0;
  for (std::size_t i = series.size(); i-- > 0;) {
    sum += series[i];
    squares += series[i] * series[i];
    if (2 * i > series.size()) continue;
    const auto n = static_cast<double>(series.size() - i);
    const double error = std::max(0.0, squares - sum * sum / n) / (n * n);
    if (error > least) continue;
    least = error;
    best = i;
  }
  return best;
}

SteadyWindow steady_window(std::span<const LoadBin> bins, double bin_s) {
  ROUTESIM_CHECK(bins.size() >= 2 * kBatches && bin_s > 0, "too few bins to judge");
  std::vector<double> answers, hits;
  for (const LoadBin& bin : bins) {
    answers.push_back(static_cast<double>(bin.answered));
    if (bin.prompt_tokens > 0)
      hits.push_back(static_cast<double>(bin.cached_tokens) /
                     static_cast<double>(bin.prompt_tokens));
    else
      hits.push_back(hits.empty() ? 0 : hits.back());
  }
  SteadyWindow out;
  out.first = std::max(warm_up_end(answers), warm_up_end(hits));
  out.is_settled = 2 * out.first < bins.size();
  const std::span<const LoadBin> window = bins.subspan(out.first);
  const double batch_s = bin_s * static_cast<double>(window.size() / kBatches);
  const double all_s = bin_s * static_cast<double>(window.size());
  double sent = 0, answered = 0, away = 0;
  for (const LoadBin& bin : window) {
    sent += static_cast<double>(bin.sent);
    answered += static_cast<double>(bin.answered);
    away += static_cast<double>(bin.turned_away);
  }
  out.sent_per_s = sent / all_s;
  out.answered_per_s = answered / all_s;
  const std::vector<double> answers_of = batch_sums(window, &LoadBin::answered);
  const std::span<const double> batches = answers_of;
  const auto first = batches.first(kBatches / 2), second = batches.last(kBatches / 2);
  out.answered_error = error_of_mean(batches) / batch_s;
  out.answered_drift = (mean_of(second) - mean_of(first)) / batch_s;
  out.answered_drift_error = std::hypot(error_of_mean(first), error_of_mean(second)) / batch_s;
  out.turned_away = sent > 0 ? away / sent : 0;
  std::vector<double> in_flight = batch_sums(window, &LoadBin::in_flight);
  for (double& value : in_flight) value /= static_cast<double>(window.size() / kBatches);
  if (sent > 0) measure_growth(in_flight, sent / static_cast<double>(kBatches), out);
  measure_hits(window, out);
  return out;
}

}  // namespace routesim::tools
