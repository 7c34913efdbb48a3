// Demand from files: the forms that a CSV writes times in, and a whole run by the hour.
#include "tools/ingest/scenario/demand_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/simulation.h"
#include "tests/base/messages.h"
#include "tests/tools/scenario_fixture.h"
#include "tools/ingest/scenario/prepare.h"

namespace routesim::tools {
namespace {

class DemandFile : public testing::FolderTest {
 protected:
  /// `seconds:rate` of each point, or what was said.
  std::string read(const std::string& text) const {
    Diagnostics d;
    const std::string file = write("d.csv", text);
    std::string out;
    for (const workloads::DemandPoint& p : read_demand_csv(file, {}, "k", d))
      out += std::to_string(std::llround(p.at.to_seconds())) + ":" +
             std::to_string(std::llround(p.rate)) + " ";
    for (const Diagnostic& item : d.items())
      out += std::to_string(item.where.line) + ":" + std::to_string(item.where.column) + ": " +
             item.message;
    return out;
  }
};

TEST_F(DemandFile, HasTimesInThreeForms) {
  EXPECT_EQ(read("time,rate\n0,4\n3600,20\n"), "0:4 3600:20 ");
  EXPECT_EQ(read("time,rate\n0:00,4\n09:30,20\n33:00:05,1\n"), "0:4 34200:20 118805:1 ");
  EXPECT_EQ(read("time,rate\n2026-03-01T08:00:00Z,4\n2026-03-02 09:30:00,20\n"),
            "28800:4 120600:20 ")
      << "from the first day's midnight";
  EXPECT_EQ(read("time,rate\n2026-03-01 08:00,4\n"), "28800:4 ");
  EXPECT_EQ(read("rate,note,time\r\n4,\"a, b\",0\r\n5,,60\r\n\r\n"), "0:4 60:5 ");
  EXPECT_EQ(read("\xEF\xBB\xBFtime,rate\n0,1\n"), "0:1 ");
}

TEST_F(DemandFile, IsRefusedAtItsPlace) {
  EXPECT_EQ(read("at,rate\n0,1\n"), "1:1: the column `time` is missing");
  EXPECT_EQ(read("time,rate\n"), "0:0: " + path("d.csv") + " has no lines below its header");
  EXPECT_EQ(read("time,rate\n0,1\nnoon,2\n"),
            "3:1: must be seconds, hh:mm or a date with a time (got noon)");
  EXPECT_EQ(read("time,rate\n0,1\n9:5,2\n"),
            "3:1: must be seconds, hh:mm or a date with a time (got 9:5)");
  EXPECT_EQ(read("time,rate\n0,1\n09:00,2\n"),
            "3:1: is written in another way than the times before it (got 09:00)");
  EXPECT_EQ(read("time,rate\n60,1\n60,2\n"), "3:1: must be later than the line before it (got 60)");
  EXPECT_EQ(read("time,rate\n-1,1\n"), "2:1: must be within 100 days (got -1)");
  EXPECT_EQ(read("time,rate\n0,-2\n").substr(0, 21), "2:3: must be at least");
  EXPECT_EQ(read("time,rate\n0\n"), "2:2: the line ends before its time and rate");
}

class DemandScenario : public testing::ScenarioTest {
 protected:
  /// The run of base() with this demand.
  sim::RunResult run(const std::string& demand) const {
    Diagnostics d;
    const std::string text = base();
    const std::string groups = "output_len: 2, prefix_len: 100}";
    const std::size_t at = text.find("prefix_len: 100}");
    const LoadedScenario loaded =
        load_scenario({.path = write("s.yaml", text.substr(0, at) + groups + ", demand: {" +
                                                   demand + "}" + text.substr(at + 16)),
                       .sets = {},
                       .variants = {},
                       .seed = {}},
                      d);
    std::optional<sim::RunPlan> plan;
    if (!d.has_errors()) plan = prepare(loaded.variants.front(), d);
    EXPECT_TRUE(plan) << messages_of(d);
    if (!plan) return sim::RunResult();
    sim::Simulation simulation(*plan, {.seed = 1, .check = true, .observers = {}}, d);
    return simulation.run();
  }
};

TEST_F(DemandScenario, HasResultsByTheHour) {
  write("d.csv", "time,rate\n00:00,0.05\n01:00,0.2\n02:00,0.1\n");
  const sim::RunResult result = run("csv: d.csv, period: 3h, scale: 2");
  ASSERT_EQ(result.stages.size(), 3U);
  const double rates[] = {0.1, 0.4, 0.2};
  for (std::size_t i = 0; i < 3; ++i) {
    const sim::StageResult& stage = result.stages[i];
    EXPECT_EQ(stage.info.name, "0" + std::to_string(i) + ":00");
    EXPECT_DOUBLE_EQ(stage.info.requested_rate, rates[i]);
    const double mean = 3600 * rates[i];
    EXPECT_NEAR(static_cast<double>(stage.requests), mean, 4 * std::sqrt(mean));
    EXPECT_EQ(stage.successes, stage.requests);
  }
}

// Run with every check, although answers go on when the next stage has begun.
TEST_F(DemandScenario, MayHaveStagesThatOverlap) {
  const sim::RunResult result = run("profile: [{at: 0h, rate: 40}], period: 40s, report_every: 1s");
  ASSERT_EQ(result.stages.size(), 40U);
  std::int64_t overlapping = 0;
  for (std::size_t i = 0; i + 1 < result.stages.size(); ++i)
    overlapping += result.stages[i].last_end > result.stages[i + 1].first_send;
  EXPECT_GT(overlapping, 10);
  EXPECT_EQ(result.summary.successes, result.summary.requests);
}

TEST_F(DemandScenario, TakesTheTimesOfATrace) {
  write("t.csv",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:00:00,374,44\n"
        "2023-11-16 18:10:00,300,10\n2023-11-16 18:35:00,300,10\n");
  const sim::RunResult result = run("arrivals_of: t.csv, report_every: 30m");
  ASSERT_EQ(result.stages.size(), 2U);
  EXPECT_EQ(result.stages[0].requests, 2);
  EXPECT_EQ(result.stages[1].requests, 1);
  EXPECT_EQ(result.stages[1].info.name, "00:30");
}

}  // namespace
}  // namespace routesim::tools
