#include "policies/scheduling_profile.h"

#include <algorithm>

namespace routesim::policies {

namespace {

// Writes down what was only noted.
void write_scores(const Cycle& cycle, Cycle::Noted noted, std::span<double> scores) {
  const Cycle::Alike& alike = cycle.alike();
  const Cycle::Falling& falling = cycle.falling();
  switch (noted) {
    case Cycle::Noted::kNothing:
      return;
    case Cycle::Noted::kAlike:
      std::fill(scores.begin(), scores.end(), alike.score);
      for (const auto& [i, score] : alike.others) scores[i] = score;
      return;
    case Cycle::Noted::kFalling:
      scale_down_from(falling.top, falling.range, falling.values, scores);
      return;
  }
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

void SchedulingProfile::add_scores(const Cycle& cycle, Cycle::Noted noted, double weight,
                                   Buffers& buffers) {
  const Cycle::Falling& falling = cycle.falling();
  switch (noted) {
    case Cycle::Noted::kNothing:
      return add_clamped(buffers.totals, buffers.scores, weight);
    case Cycle::Noted::kAlike:
      return add_alike(cycle.alike(), weight, buffers);
    case Cycle::Noted::kFalling:
      return add_falling(buffers.totals, falling.values, falling.top, falling.range, weight);
  }
}

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
    const Cycle::Noted noted = cycle.take_note();
    add_scores(cycle, noted, s.weight, buffers);
    if (explanation == nullptr) continue;
    write_scores(cycle, noted, buffers.scores);
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
