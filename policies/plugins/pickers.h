// Pickers: max-score, random, weighted-random.
// llm-d-router pkg/epp/framework/plugins/scheduling/picker.
#pragma once

#include <cmath>
#include <numeric>

#include "policies/build_context.h"
#include "policies/row_math.h"

namespace routesim::policies {

struct PickerParameters {
  std::int64_t max_num_of_endpoints = 1;
};
inline void describe(Describer& d, PickerParameters& p) {
  field(d, {"maxNumOfEndpoints", "Targets returned, best first; not positive = 1."},
        p.max_num_of_endpoints);
}

/// The key of A-Res weighted sampling (Efraimidis and Spirakis 2006): u^(1/score), 0 for scores
/// that are not positive; u = 0 counts as 1e-10.
inline double weighted_random_key(double u, double score) {
  if (!(score > 0)) return 0;
  if (u == 0) u = 1e-10;
  return std::pow(u, 1.0 / score);
}

inline void pick_uniform(Cycle& cycle, std::span<const EndpointRow> candidates, std::size_t count,
                         std::vector<EndpointRow>& picked) {
  if (count == 1) {
    picked.push_back(candidates[cycle.picker_random().below(candidates.size())]);
    return;
  }
  picked.assign(candidates.begin(), candidates.end());
  cycle.picker_random().shuffle(picked.begin(), picked.end());
  picked.resize(std::min(count, picked.size()));
}

/// Shared by the pickers: how many to return, and Heimdall's extra step, which makes one of several
/// targets the only one, uniformly at random.
class PickerBase : public Picker {
 public:
  PickerBase(const PickerParameters& p, const PluginSpec&, BuildContext& context)
      : count_(p.max_num_of_endpoints > 0 ? static_cast<std::size_t>(p.max_num_of_endpoints) : 1),
        one_of_the_best_(context.distribution() == Distribution::kHeimdall) {}

 protected:
  void finish(Cycle& cycle, std::vector<EndpointRow>& picked) const {
    if (!one_of_the_best_ || picked.size() < 2) return;
    picked.front() = picked[cycle.picker_random().below(picked.size())];
    picked.resize(1);
  }
  static std::vector<std::uint32_t>& places(Cycle& cycle, std::size_t n) {
    cycle.count_buffer().resize(n);
    std::iota(cycle.count_buffer().begin(), cycle.count_buffer().end(), 0U);
    return cycle.count_buffer();
  }
  void take_first(Cycle& cycle, std::span<const EndpointRow> candidates,
                  std::span<const std::uint32_t> order, std::vector<EndpointRow>& picked) const {
    for (const std::uint32_t i : order.first(std::min(count_, order.size())))
      picked.push_back(candidates[i]);
    finish(cycle, picked);
  }
  std::size_t count_;
  bool one_of_the_best_;
};

/// The best totals; ties, compared exactly, are uniformly random. NaN ranks below everything.
class MaxScorePicker final : public PickerBase {
 public:
  using PickerBase::PickerBase;
  void pick(Cycle& cycle, std::span<const EndpointRow> candidates, std::span<const double> totals,
            std::vector<EndpointRow>& picked) const override {
    if (count_ == 1) {
      // Upstream shuffles and sorts stably; for one target that is a uniform draw among the ties.
      const double best = highest(totals);
      const std::uint64_t ties = count_equal(totals, best);
      if (ties == 0) return pick_uniform(cycle, candidates, 1, picked);  // Only NaN.
      const std::uint64_t skip = ties > 1 ? cycle.picker_random().below(ties) : 0;
      picked.push_back(candidates[position_of(totals, best, skip)]);
      return;
    }
    std::vector<std::uint32_t>& order = places(cycle, candidates.size());
    cycle.picker_random().shuffle(order.begin(), order.end());
    std::stable_sort(order.begin(), order.end(), [&totals](std::uint32_t a, std::uint32_t b) {
      if (std::isnan(totals[a]) || std::isnan(totals[b]))
        return !std::isnan(totals[a]) && std::isnan(totals[b]);
      return totals[a] > totals[b];
    });
    take_first(cycle, candidates, order, picked);
  }
};

/// Uniform, scores ignored.
class RandomPicker final : public PickerBase {
 public:
  using PickerBase::PickerBase;
  void pick(Cycle& cycle, std::span<const EndpointRow> candidates, std::span<const double>,
            std::vector<EndpointRow>& picked) const override {
    pick_uniform(cycle, candidates, count_, picked);
    finish(cycle, picked);
  }
};

/// The first target is chosen with probability score / sum; uniform when no score is positive.
class WeightedRandomPicker final : public PickerBase {
 public:
  using PickerBase::PickerBase;
  void pick(Cycle& cycle, std::span<const EndpointRow> candidates, std::span<const double> totals,
            std::vector<EndpointRow>& picked) const override {
    if (std::none_of(totals.begin(), totals.end(), [](double t) { return t > 0; })) {
      pick_uniform(cycle, candidates, count_, picked);
      return finish(cycle, picked);
    }
    std::vector<double>& keys = cycle.value_buffer();
    keys.resize(totals.size());
    for (std::size_t i = 0; i < totals.size(); ++i)
      keys[i] = weighted_random_key(cycle.picker_random().uniform(), totals[i]);
    std::vector<std::uint32_t>& order = places(cycle, candidates.size());
    std::stable_sort(order.begin(), order.end(),
                     [&keys](std::uint32_t a, std::uint32_t b) { return keys[a] > keys[b]; });
    take_first(cycle, candidates, order, picked);
  }
};

}  // namespace routesim::policies
