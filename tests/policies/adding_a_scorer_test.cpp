// Follows "Adding a scorer" of policies/README.md with a scorer of its own.
#include <gtest/gtest.h>

#include "policies/config/factory.h"
#include "tests/policies/dummy_scorer.h"
#include "tests/policies/scheduler_fixture.h"

namespace routesim::policies {
namespace {

PluginRegistry with_dummy() {
  PluginRegistry registry = standard_registry();
  // Step 2, scorers.cpp: one row.
  registry.add(implemented<LongestQueueScorer, LongestQueueParameters>(
      "longest-queue-scorer", "Longer queues score higher (a test)."));
  return registry;
}

TEST(AddingAScorer, TheNewTypeDecides) {
  const PluginRegistry registry = with_dummy();
  LoadOptions load;
  load.registry = &registry;
  const auto scheduler =
      make_scheduler(document("- type: longest-queue-scorer\n  parameters:\n    scale: 4\n",
                              "  - pluginRef: longest-queue-scorer\n    weight: 3\n"),
                     load);
  ASSERT_NE(scheduler, nullptr);
  EndpointTable table = make_endpoints(3);
  table.set_metrics(EndpointId(1), 2, 0, 0, SimTime::zero());
  table.set_metrics(EndpointId(2), 8, 0, 0, SimTime::zero());
  const RequestView request;
  Explanation e;
  const Decision d = scheduler->explain(request, table, SimTime::zero(), e);
  EXPECT_EQ(d.primary, EndpointId(2));
  EXPECT_EQ(e.profiles[0].scorers[0].scores, (std::vector<double>{0, 0.5, 2}));
  EXPECT_EQ(e.profiles[0].totals, (std::vector<double>{0, 1.5, 3})) << "clamped before weighting";
}

TEST(AddingAScorer, ItsParametersAreCheckedLikeAllOthers) {
  const PluginRegistry registry = with_dummy();
  Diagnostics diagnostics;
  LoadOptions load;
  load.registry = &registry;
  const auto config = load_text(
      document("- type: longest-queue-scorer\n  parameters:\n    scale: -1\n    sclae: 2\n",
               "  - pluginRef: longest-queue-scorer\n"),
      diagnostics, load);
  ASSERT_TRUE(config);
  EXPECT_EQ(make_scheduler(*config, {.registry = &registry}, diagnostics), nullptr);
  const std::string text = messages_of(diagnostics);
  EXPECT_NE(text.find("scale: must be greater than 0 (got -1)"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean scale?"), std::string::npos) << text;
}

}  // namespace
}  // namespace routesim::policies
