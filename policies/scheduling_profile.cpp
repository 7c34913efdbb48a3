#include "policies/scheduling_profile.h"

#include "policies/row_math.h"

namespace routesim::policies {

ProfileState SchedulingProfile::run(Cycle& cycle, Buffers& buffers,
                                    std::vector<EndpointRow>& picked,
                                    ProfileExplanation* explanation) const {
  std::span<const EndpointRow> survivors = cycle.candidates();
  if (explanation != nullptr) {
    explanation->profile = name;
    explanation->candidates.assign(survivors.begin(), survivors.end());
  }
  if (!filters.empty()) {
    buffers.survivors.assign(survivors.begin(), survivors.end());
    for (const Filter* filter : filters) {
      if (buffers.survivors.empty()) break;
      filter->filter(cycle, buffers.survivors);
      if (explanation != nullptr)
        explanation->filters.push_back({filter->name(), buffers.survivors});
    }
    survivors = buffers.survivors;
  }
  if (explanation != nullptr) explanation->scored.assign(survivors.begin(), survivors.end());
  if (survivors.empty()) return ProfileState::kFailed;

  buffers.totals.assign(survivors.size(), 0.0);
  buffers.scores.resize(survivors.size());
  for (const WeightedScorer& s : scorers) {
    s.scorer->score(cycle, survivors, buffers.scores);
    add_clamped(buffers.totals, buffers.scores, s.weight);
    if (explanation != nullptr)
      explanation->scorers.push_back({s.scorer->name(), s.weight, buffers.scores});
  }
  picker->pick(cycle, survivors, buffers.totals, picked);
  if (explanation != nullptr) {
    explanation->totals = buffers.totals;
    explanation->picker = picker->name();
    explanation->picked = picked;
  }
  return ProfileState::kOk;
}

}  // namespace routesim::policies
