// What results rest on, and the table of errors that they carry.
#include <gtest/gtest.h>

#include "base/describe.h"
#include "tools/results/trust_errors.h"
#include "tools/study/validate/validation_record.h"

namespace routesim::tools {
namespace {

using models::Trust;

ValidationCell cell(Trust trust, const std::string& metric, const std::string& statistic,
                    double measured, double simulated) {
  ValidationCell c;
  c.row.metric = metric;
  c.row.statistic = statistic;
  c.row.stage = "1";
  c.row.value = measured;
  c.variant = "a";
  c.status = CellStatus::kScored;
  c.samples = {simulated};
  c.trust = trust;
  return c;
}

TEST(Trust, CellsArePooledByClassAndQuantity) {
  ScenarioValidation v;
  v.cells = {cell(Trust::kFitted, "output_tokens_per_sec", "mean", 100, 90),   // -10 %
             cell(Trust::kFitted, "output_tokens_per_sec", "mean", 100, 104),  // +4 %
             cell(Trust::kRoofline, "output_tokens_per_sec", "mean", 100, 150),
             cell(Trust::kRoofline, "time_per_token", "mean", 200, 150),  // -25 %
             cell(Trust::kRoofline, "itl", "mean", 200, 190),             // -5 %
             cell(Trust::kRoofline, "ttft", "p99", 10, 12),
             cell(Trust::kRoofline, "ttft", "p50", 10, 20)};
  v.cells.push_back(cell(Trust::kFitted, "output_tokens_per_sec", "mean", 100, 900));
  v.cells.back().status = CellStatus::kShown;
  v.cells.push_back(cell(Trust::kFitted, "output_tokens_per_sec", "mean", 100, 900));
  v.cells.back().row.stage = "all";
  v.cells.push_back(cell(Trust::kFitted, "output_tokens_per_sec", "mean", 100, 900));
  v.cells.back().variant.clear();
  EXPECT_EQ(render_trust_csv(trust_table({v})),
            std::string(kTrustHeader) +
                "\nfitted,output tokens/s,2,7.0,-10.0\n"
                "roofline,output tokens/s,1,50.0,50.0\n"
                "roofline,TTFT p90 and above,1,20.0,20.0\n"
                "roofline,time per output token,2,15.0,-25.0\n");
}

TEST(Trust, TheTableOfTheProgramReadsBack) {
  EXPECT_EQ(parse_trust_errors(render_trust_csv(trust_errors())).size(), trust_errors().size());
  EXPECT_FALSE(trust_errors().empty());
  for (const TrustError& e : trust_errors()) {
    EXPECT_GT(e.cells, 0U);
    EXPECT_LE(e.mean, std::abs(e.worst)) << e.quantity;
  }
}

// Less known step times are further off; else the classes would say nothing.
TEST(Trust, TheBandWidensFromClassToClass) {
  EXPECT_GT(step_time_band(Trust::kFitted), 0);
  EXPECT_LT(step_time_band(Trust::kFitted), step_time_band(Trust::kExtrapolated));
  EXPECT_LT(step_time_band(Trust::kExtrapolated), step_time_band(Trust::kRoofline));
  EXPECT_LT(step_time_band(Trust::kRoofline), step_time_band(Trust::kDataSheet));
}

TEST(Trust, ARunIsAsKnownAsItsLeastKnownPool) {
  sim::RunResult result;
  result.step_times = {{.pool = "p", .trust = Trust::kFitted, .busy_s = 10},
                       {.pool = "d", .trust = Trust::kRoofline, .busy_s = 10}};
  EXPECT_EQ(result.trust(), Trust::kRoofline);
  EXPECT_NE(trust_text(result).find("rests on a roofline that was not fitted"), std::string::npos);
  EXPECT_EQ(trust_text(result).find("fitted to (how many"), std::string::npos);
  result.step_times = {
      {.pool = "p", .trust = Trust::kExtrapolated, .busy_s = 10, .extrapolated_s = 4}};
  EXPECT_NE(trust_text(result).find("p was outside it for 40 % of its time"), std::string::npos)
      << trust_text(result);
}

TEST(Trust, ATwentiethOfTheTimeOutsideTheRangePassesAsFitted) {
  EXPECT_EQ(sim::kMostExtrapolated, 0.05);
}

TEST(Trust, TheClassesHaveTheirNames) {
  EXPECT_EQ(enum_name(Trust::kFitted), "fitted");
  EXPECT_EQ(enum_name(Trust::kExtrapolated), "outside the fitted range");
  EXPECT_EQ(enum_name(Trust::kRoofline), "roofline");
  EXPECT_EQ(enum_name(Trust::kDataSheet), "data sheet");
}

}  // namespace
}  // namespace routesim::tools
