#include "policies/scheduling_profile.h"

namespace routesim::policies {

ProfileState SchedulingProfile::run(Cycle& cycle, Buffers& buffers,
                                    std::vector<EndpointRow>& picked,
                                    ProfileExplanation* explanation) const {
  std::vector<EndpointRow>& survivors = buffers.survivors;
  survivors.assign(cycle.candidates().begin(), cycle.candidates().end());
  if (explanation != nullptr) {
    explanation->profile = name;
    explanation->candidates = survivors;
  }
  for (const Filter* filter : filters) {
    if (survivors.empty()) break;
    filter->filter(cycle, survivors);
    if (explanation != nullptr) explanation->filters.push_back({filter->name(), survivors});
  }
  if (explanation != nullptr) explanation->scored = survivors;
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
