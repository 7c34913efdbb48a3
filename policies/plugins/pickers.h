// Pickers: max-score, random, weighted-random.
// llm-d-router pkg/epp/framework/plugins/scheduling/picker.
#pragma once

#include <cstdint>

#include "base/describe.h"
#include "policies/build_context.h"

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
double weighted_random_key(double u, double score);

/// Shared by the pickers: how many to return, and Heimdall's extra step, which makes one of several
/// targets the only one, uniformly at random.
class PickerBase : public Picker {
 public:
  PickerBase(const PickerParameters& p, BuildContext& context);

 protected:
  void finish(Cycle& cycle, std::vector<EndpointRow>& picked) const;
  std::size_t count_;
  bool one_of_the_best_;
};

/// The best totals; ties, compared exactly, are uniformly random. NaN ranks below everything.
class MaxScorePicker final : public PickerBase {
 public:
  MaxScorePicker(const PickerParameters& p, const PluginSpec&, BuildContext& c)
      : PickerBase(p, c) {}
  void pick(Cycle& cycle, std::span<const EndpointRow> candidates, std::span<const double> totals,
            std::vector<EndpointRow>& picked) const override;
};

/// Uniform, scores ignored.
class RandomPicker final : public PickerBase {
 public:
  RandomPicker(const PickerParameters& p, const PluginSpec&, BuildContext& c) : PickerBase(p, c) {}
  void pick(Cycle& cycle, std::span<const EndpointRow> candidates, std::span<const double> totals,
            std::vector<EndpointRow>& picked) const override;
};

/// The first target is chosen with probability score / sum; uniform when no score is positive.
class WeightedRandomPicker final : public PickerBase {
 public:
  WeightedRandomPicker(const PickerParameters& p, const PluginSpec&, BuildContext& c)
      : PickerBase(p, c) {}
  void pick(Cycle& cycle, std::span<const EndpointRow> candidates, std::span<const double> totals,
            std::vector<EndpointRow>& picked) const override;
};

}  // namespace routesim::policies
