// One scheduling profile: filters in order, then weighted scorers, then a picker.
// llm-d-router pkg/epp/scheduling/scheduler_profile.go.
#pragma once

#include <string>
#include <vector>

#include "policies/plugins.h"

namespace routesim::policies {

/// The plugins of a profile in execution order. Does not own them.
struct SchedulingProfile {
  struct WeightedScorer {
    const Scorer* scorer = nullptr;
    double weight = 1;
  };
  std::string name;
  std::vector<const Filter*> filters;
  std::vector<WeightedScorer> scorers;
  const Picker* picker = nullptr;

  struct Buffers {
    std::vector<EndpointRow> survivors;
    std::vector<double> totals, scores;
  };
  /// Runs on the cycle's candidates. Totals add up clamp(score) * weight in scorer order, so that
  /// sums are the same to the last bit as upstream's. `explanation` may be null.
  ProfileState run(Cycle& cycle, Buffers& buffers, std::vector<EndpointRow>& picked,
                   ProfileExplanation* explanation) const;
};

}  // namespace routesim::policies
