#include "policies/scheduling_profile.h"

#include <algorithm>

namespace routesim::policies {

namespace {

void fill_alike(const Cycle::Alike& alike, std::span<double> scores) {
  std::fill(scores.begin(), scores.end(), alike.score);
  for (const auto& [i, score] : alike.others) scores[i] = score;
}

}  // namespace

// The same sums as add_clamped(). Adding nothing changes no total: none is ever -0.
void SchedulingProfile::add_alike(const Cycle::Alike& alike, double weight, Buffers& buffers) {
  buffers.kept.clear();
  for (const auto& [i, score] : alike.others)
    buffers.kept.push_back(buffers.totals[i] + clamp_score(score) * weight);
  const double addend = clamp_score(alike.score) * weight;
  if (addend != 0) add_constant(buffers.totals, addend);
  for (std::size_t k = 0; k < alike.others.size(); ++k)
    buffers.totals[alike.others[k].first] = buffers.kept[k];
}

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
    if (const Cycle::Alike* alike = cycle.take_alike()) {
      add_alike(*alike, s.weight, buffers);
      if (explanation != nullptr) fill_alike(*alike, buffers.scores);
    } else {
      add_clamped(buffers.totals, buffers.scores, s.weight);
    }
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
