// The texts that `routesim new-scorer` fills in. @Name@, @name@ and @type@ stand for the scorer's
// names in C++ and in configurations. Private to tools/cli.
#pragma once

#include <string_view>

namespace routesim::tools {

/// policies/plugins/@name@.h. @constructor@ is broken for the length of the name.
inline constexpr std::string_view kScorerHeader =
    R"~(// @type@: half / (half + waiting requests).
// Origin: say where the formula comes from (product, file, commit or paper).
#pragma once

#include "base/describe.h"
#include "policies/build_context.h"

namespace routesim::policies {

struct @Name@Parameters {
  double half = 4;
};
inline void describe(Describer& d, @Name@Parameters& p) {
  field(d, {"half", "Waiting requests at which the score is one half."}, p.half,
        RealRange{.min = 0, .min_open = true});
}

/// In (0, 1]; `half` > 0.
inline double @name@_score(double waiting, double half) {
  // Higher is better. A profile clamps scores to [0, 1] and multiplies them by the weight.
  return half / (half + waiting);
}

class @Name@Scorer final : public Scorer {
 public:
@constructor@
    context.needs().metrics = true;  // The router reads waiting requests from metrics.
  }
  /// O(candidates). Other numbers of an endpoint are columns of the table, too (policies/views.h).
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    const std::span<const double> waiting = cycle.endpoints().waiting();
    for (std::size_t i = 0; i < candidates.size(); ++i)
      scores[i] = @name@_score(waiting[candidates[i]], half_);
  }

 private:
  double half_;
};

}  // namespace routesim::policies
)~";

/// tests/policies/@name@_scorer_test.cpp. The scores are exact in binary.
inline constexpr std::string_view kScorerTest =
    R"~(// @type@: scores computed by hand, through the loader and a profile.
#include <gtest/gtest.h>

#include "tests/policies/scheduler_fixture.h"

namespace routesim::policies {
namespace {

const std::string kType = "@type@";

TEST(@Name@Scorer, ScoresByHand) {
  const auto scheduler = make_scheduler(document("- {type: " + kType + ", parameters: {half: 2}}\n",
                                                 "  - {pluginRef: " + kType + ", weight: 3}\n"));
  ASSERT_NE(scheduler, nullptr);
  EndpointTable table = make_endpoints(3);
  table.set_metrics(EndpointId(0), 6, 0, 0, SimTime::zero());
  table.set_metrics(EndpointId(1), 2, 0, 0, SimTime::zero());
  Explanation e;
  const Decision d = scheduler->explain(RequestView(), table, SimTime::zero(), e);
  // 2 / (2 + 6), 2 / (2 + 2), 2 / (2 + 0), each times the weight.
  EXPECT_EQ(e.profiles[0].scorers[0].scores, (std::vector<double>{0.25, 0.5, 1}));
  EXPECT_EQ(e.profiles[0].totals, (std::vector<double>{0.75, 1.5, 3}));
  EXPECT_EQ(d.primary, EndpointId(2));
}

TEST(@Name@Scorer, ItsParameterHasBounds) {
  const Loaded loaded(document("- {type: " + kType + ", parameters: {half: 0}}\n",
                               "  - {pluginRef: " + kType + "}\n"));
  EXPECT_TRUE(loaded.mentions("half: must be greater than 0 (got 0)")) << loaded.text();
}

}  // namespace
}  // namespace routesim::policies
)~";

}  // namespace routesim::tools
