// The scorer of the recipe in policies/README.md ("Adding a scorer"), step by step, as a test: one
// file with the formula and the class. Its parameters struct would stand in
// policies/plugins/config.h and its registry line in policies/config/factory.cpp;
// adding_a_scorer_test.cpp does both from outside.
#pragma once

#include "policies/config/factory.h"

namespace routesim::policies {

// Step 1, config.h: the parameters, described once.
struct LongestQueueParameters {
  double scale = 10;
};
inline void describe(Describer& d, LongestQueueParameters& p) {
  field(d, {"scale", "Waiting requests at which the score reaches 1."}, p.scale,
        RealRange{.min = 0, .min_open = true});
}

// Step 2, plugins/longest_queue.h: the formula, then the plugin.
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
