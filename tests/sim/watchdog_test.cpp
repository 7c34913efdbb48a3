// A run that can go no further ends with an error that says who waits for what.
#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

std::string stuck(const RunPlan& plan) {
  for (const bool reference : {true, false}) {
    try {
      Diagnostics found;
      Simulation simulation(plan, {.reference = reference, .check = true, .observers = {}}, found);
      for (const Diagnostic& d : found.items()) ADD_FAILURE() << to_string(d);
      simulation.run();
      ADD_FAILURE() << "the run ended";
    } catch (const StuckError& e) {
      if (!reference) return e.what();
    }
  }
  return {};
}

void expect_says(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
}

TEST(Watchdog, NamesALoadThatNeverEnds) {
  class Endless final : public workloads::LoadGenerator {
   public:
    const std::vector<workloads::StageInfo>& stages() const override { return stages_; }
    SimTime next_action() const override { return SimTime::max(); }
    void advance(SimTime, std::vector<workloads::Request>&) override {}
    void on_completed(const workloads::Request&, workloads::Outcome, SimTime) override {}
    bool finished() const override { return false; }

   private:
    std::vector<workloads::StageInfo> stages_ = {{.name = "0"}};
  };
  RunPlan plan = hand_made_plan({}, 1);
  plan.scenario.routing.balancer = BalancerKind::kRoundRobin;
  plan.make_load = [](std::uint64_t, Diagnostics&) { return std::make_unique<Endless>(); };
  expect_says(stuck(plan), {"0 requests are outstanding", "the load generator has not finished"});
}

TEST(Watchdog, NamesWhoWaitsForRoomThatNeverComes) {
  // Band -1 is let through below a saturation of 0, which no pool reaches; nothing expires.
  RunPlan plan = hand_made_plan({{.at_ms = 250, .parts = {{1, 16}}}}, 1);
  plan.scenario.workload.sheddable_fraction = 1;
  const auto band = [](std::int64_t priority) {
    return map({{"priority", tree::number(priority)}});
  };
  plan.endpoint_picker =
      DocumentBuilder()
          .plugin("single-profile-handler")
          .plugin("queue-scorer")
          .plugin("priority-holdback-policy", map({{"minCeiling", tree::number(0.0)}}))
          .plugin("max-score-picker")
          .profile("default", {{"queue-scorer", 1}, {"max-score-picker"}})
          .set("featureGates", list({text("flowControl")}))
          .set("flowControl", map({{"defaultRequestTTL", text("0s")},
                                   {"usageLimitPolicyPluginRef", text("priority-holdback-policy")},
                                   {"priorityBands", list({band(0), band(-1)})}}))
          .build();
  expect_says(stuck(plan), {"1 requests are outstanding",
                            "request 0, sent at 0.250000 s, waits for room in the pool",
                            "saturation is 0.0", "router: 1 requests are held back"});
}

}  // namespace
}  // namespace routesim::sim::testing
