// Step 1 of "Adding a scorer" in policies/README.md: the file that would be
// policies/plugins/longest_queue.h, with parameters, formula and class. adding_a_scorer_test.cpp
// does step 2, a row of policies/config/scorers.cpp, and step 3.
#pragma once

#include "policies/build_context.h"

namespace routesim::policies {

struct LongestQueueParameters {
  double scale = 10;
};
inline void describe(Describer& d, LongestQueueParameters& p) {
  field(d, {"scale", "Waiting requests at which the score reaches 1."}, p.scale,
        RealRange{.min = 0, .min_open = true});
}

/// In [0, infinity); the profile clamps it to 1.
inline double longest_queue_score(double waiting, double scale) { return waiting / scale; }

class LongestQueueScorer final : public Scorer {
 public:
  LongestQueueScorer(const LongestQueueParameters& p, const PluginSpec&, BuildContext& context)
      : scale_(p.scale) {
    context.needs().metrics = true;
  }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    for (std::size_t i = 0; i < candidates.size(); ++i)
      scores[i] = longest_queue_score(cycle.endpoints().waiting()[candidates[i]], scale_);
  }

 private:
  double scale_;
};

}  // namespace routesim::policies
