// Limits on the error tables: how they are read and judged, and the two files that hold every row
// of the published tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "models/cost_curve.h"
#include "tests/base/messages.h"
#include "tests/base/slurp.h"
#include "tests/tools/command_fixture.h"
#include "tools/cli/cli.h"
#include "tools/study/validate/validation_record.h"
#include "tools/study/validate/validation_run.h"

namespace routesim::tools {
namespace {

namespace fs = std::filesystem;

const fs::path kScenarios = fs::path(ROUTESIM_SOURCE_DIR) / "scenarios";

std::vector<ValidationInput> load(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<ValidationInput> inputs;
  for (const fs::path& file : files) {
    // Questions without published numbers stand beside the experiments.
    if (slurp(file).find("\nmeasured:") == std::string::npos) continue;
    Diagnostics d;
    inputs.push_back(load_validation_input(file.string(), {}, {}, false, d));
    EXPECT_FALSE(d.has_errors()) << messages_of(d);
  }
  return inputs;
}

std::vector<ScenarioValidation> simulate(const std::vector<ValidationInput>& inputs,
                                         std::size_t seeds) {
  Diagnostics d;
  ExperimentProgress progress;
  Experiment experiment(2, progress, d);
  const auto silent = [](const std::string&) {};
  auto all = run_validation(inputs, seeds, silent, experiment);
  EXPECT_FALSE(d.has_errors()) << messages_of(d);
  return all;
}

std::vector<RowLimit> limits_of(const fs::path& file) {
  Diagnostics d;
  std::vector<RowLimit> limits = parse_limits_csv(slurp(file), file.filename().string(), d);
  EXPECT_FALSE(d.has_errors()) << messages_of(d);
  return limits;
}

TEST(ValidationInput, NumbersThatNoFitSawAreTheUsersOwn) {
  for (const fs::path& folder : {kScenarios, kScenarios / "holdout"})
    for (const ValidationInput& input : load(folder)) EXPECT_FALSE(input.own) << input.scenario;
  const fs::path csv = fs::path(::testing::TempDir()) / "own.csv";
  std::string text = slurp(kScenarios / "measured" / "kubeai_blog.csv");
  const std::string published = "kubeai_l4_2r_llama31_8b_fp8";
  for (std::size_t p = text.find(published); p != std::string::npos; p = text.find(published))
    text.replace(p, published.size(), "pier");
  std::ofstream(csv) << text;
  Diagnostics d;
  const ValidationInput own = load_validation_input(
      (kScenarios / "kubeai-llama3.1-8b-2xl4.yaml").string(),
      {"measured.csv=" + csv.string(), "measured.experiment=pier"}, {}, false, d);
  EXPECT_FALSE(d.has_errors()) << messages_of(d);
  EXPECT_TRUE(own.own);
}

// The test of docs/reference/validation.md holds every row to these files.
TEST(ValidationLimits, EveryPublishedRowHasOne) {
  EXPECT_EQ(limits_of(kScenarios / "limits.csv").size(), 250U);
  EXPECT_EQ(limits_of(kScenarios / "holdout" / "limits.csv").size(), 75U);
}

/// The curve with every time of the GPU `factor` times as long.
models::CostCurveParameters bent(models::CostCurveParameters p, double factor) {
  for (double* const time : {&p.step_ms, &p.sequence_ms, &p.context_us_per_ktok,
                             &p.prefill_us_per_token, &p.prefill_pair_ns, &p.prefill_chunk_ms,
                             &p.group_round_ms, &p.group_padding_us, &p.group_token_us})
    *time *= factor;
  return p;
}

/// A published curve that somebody bends, either way, breaks a limit of every experiment with it.
TEST(ValidationLimits, ABentCurveBreaksALimitOfItsExperiment) {
  const std::vector<RowLimit> limits = limits_of(kScenarios / "limits.csv");
  for (const double factor : {0.85, 1.2}) {
    std::vector<ValidationInput> inputs = load(kScenarios);
    // Kernels and rooflines have no curve to bend.
    std::erase_if(inputs, [](const ValidationInput& input) {
      return input.scenario.find("gpt-oss-120b") != std::string::npos ||
             input.scenario.find("speculative") != std::string::npos;
    });
    for (ValidationInput& input : inputs)
      for (ValidationVariant& variant : input.variants)
        for (sim::ResolvedPool& pool : variant.plan.pools) {
          const auto curve = std::dynamic_pointer_cast<const models::CostCurve>(pool.latency);
          ASSERT_NE(curve, nullptr) << input.scenario;
          pool.latency = std::make_shared<models::CostCurve>(bent(curve->parameters(), factor),
                                                             curve->range(), "bent");
        }
    LimitFindings findings;
    check_limits(limits, "limits.csv", simulate(inputs, 1), findings);
    const std::string found = messages_of(findings.exceeded);
    std::set<std::string> experiments;
    for (const RowLimit& limit : limits)
      if (limit.experiment != "llmd_pd_multitier_gptoss120b_h200" &&
          limit.experiment != "p2p_docqa_8xh200" &&
          limit.experiment != "specdec_qwen3_32b_eagle3_2xh200")
        experiments.insert(limit.experiment);
    EXPECT_EQ(experiments.size(), 8U);
    for (const std::string& experiment : experiments)
      EXPECT_NE(found.find(experiment), std::string::npos) << experiment << " at " << factor;
  }
}

/// One row of each table: 8 % off at the mean, -12.5 % at the worst; 3.04 points, 1 of 2 signs.
std::vector<ScenarioValidation> two_rows() {
  ScenarioValidation v;
  v.scenario = "hand";
  ErrorSummary& e = v.errors.emplace_back(ErrorSummary{{"e", "smart", "", "ttft", "p50"}});
  e.cells = 2;
  e.mape = 8;
  e.worst = -12.5;
  e.worst_stage = "1";
  DifferenceSummary& s =
      v.difference_errors.emplace_back(DifferenceSummary{{"e", "smart", "rr", "ttft", "p50"}});
  s.cells = 2;
  s.signs_agree = 1;
  s.mean_points = 3.04;
  s.worst_points = 20;
  s.worst_stage = "1";
  return {v};
}

constexpr char kHeader[] =
    "experiment,policy,against,metric,statistic,cells,error,worst,ratio,signs\n";

TEST(ValidationLimits, AFileIsThePresentValueAndATenthAtLeastAPoint) {
  // 8 + 1 (a tenth were 0.8); 12.5 x 1.1 = 13.75; 3.04 + 1 = 4.04; 20 x 1.1; 0 + 1.
  EXPECT_EQ(render_limits_csv(two_rows()),
            kHeader + std::string("e,smart,,ttft,p50,2,9,13.8,,\n"
                                  "e,smart,rr,ttft,p50,2,4.1,22,1,1\n"));
}

LimitFindings findings_of(const std::string& rows) {
  Diagnostics d;
  LimitFindings findings;
  check_limits(parse_limits_csv(kHeader + rows, "limits.csv", d), "limits.csv", two_rows(),
               findings);
  EXPECT_EQ(messages_of(d), "");
  return findings;
}

TEST(ValidationLimits, EachNumberIsHeld) {
  const LimitFindings exact =
      findings_of("e,smart,,ttft,p50,2,8,12.5,,\ne,smart,rr,ttft,p50,2,3.04,20,0,1\n");
  EXPECT_EQ(messages_of(exact.exceeded) + messages_of(exact.unmatched), "");
  const LimitFindings tight =
      findings_of("e,smart,,ttft,p50,3,7.9,12.4,,\ne,smart,rr,ttft,p50,2,3,19,0,2\n");
  EXPECT_EQ(messages_of(tight.unmatched), "");
  EXPECT_EQ(
      messages_of(tight.exceeded),
      "limits.csv:2:1: error: error: e, smart, ttft p50: the mean error is 8 %, the limit is "
      "7.9 %\n"
      "limits.csv:2:1: error: worst: e, smart, ttft p50: the worst error is 12.5 %, the limit "
      "is 12.4 %\n"
      "limits.csv:2:1: error: cells: e, smart, ttft p50: 2 cells, not 3\n"
      "limits.csv:3:1: error: error: e, smart against rr, ttft p50: the mean error is 3.04 "
      "points, the limit is 3 points\n"
      "limits.csv:3:1: error: worst: e, smart against rr, ttft p50: the worst error is 20 "
      "points, the limit is 19 points\n"
      "limits.csv:3:1: error: signs: e, smart against rr, ttft p50: 1 signs agree, the limit "
      "is 2\n");
}

TEST(ValidationLimits, RowsAndLimitsMustMatch) {
  const LimitFindings findings =
      findings_of("e,smart,,ttft,p50,2,9,13,,\ne,gone,,ttft,p50,1,1,1,,\n");
  EXPECT_EQ(messages_of(findings.exceeded), "");
  const std::string said = messages_of(findings.unmatched);
  EXPECT_NE(said.find("limits.csv:3:1: error: the error tables have no row e, gone, ttft p50"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("limits.csv: error: has no limit for e, smart against rr, ttft p50"),
            std::string::npos)
      << said;
}

TEST(ValidationLimits, MalformedFilesAreRefusedAllAtOnce) {
  Diagnostics d;
  (void)parse_limits_csv(kHeader + std::string("e,p,,ttft,p50,1,-1,x,,\n"
                                               "e,p,,ttft,p50,1,1,1,,\n"
                                               "e,p,,ttft,p50\n"
                                               "e,p,,ttft,p90,1,1,1,2,\n"),
                         "l.csv", d);
  EXPECT_EQ(d.items().size(), 5U) << messages_of(d);
  Diagnostics header;
  EXPECT_TRUE(parse_limits_csv("", "l.csv", header).empty());
  EXPECT_EQ(header.items().size(), 1U);
}

std::string gate_says(const std::string& text) {
  Diagnostics wrong;
  const std::optional<ErrorGate> gate = parse_error_gate(text, wrong);
  if (!gate) return wrong.items().front().message;
  LimitFindings findings;
  check_gate(*gate, two_rows(), findings);
  return messages_of(findings.unmatched) + messages_of(findings.exceeded);
}

TEST(ValidationLimits, AGateHoldsTheMeanErrorOfTheRowsItNames) {
  const std::string beyond = "e, smart, ttft p50: the mean error is 8 %\n";
  EXPECT_EQ(gate_says("ttft>7.9%"), "--fail-if: error: ttft>7.9%: " + beyond);
  EXPECT_EQ(gate_says("smart:ttft.median > 5 %"),
            "--fail-if: error: smart:ttft.median > 5 %: " + beyond);
  EXPECT_EQ(gate_says("e:time_to_first_token.p50>1%"),
            "--fail-if: error: e:time_to_first_token.p50>1%: " + beyond);
  EXPECT_EQ(gate_says("ttft.p50>8%"), "");
  for (const char* nothing : {"ttft.p90>1%", "rr:ttft>1%", "itl>1%"})
    EXPECT_NE(gate_says(nothing).find("names no row"), std::string::npos) << nothing;
  for (const char* wrong : {"ttft", "ttft>8", "ttft<8%", ">8%", "ttft>-1%", "ttft>x%", "p:>3%"})
    EXPECT_NE(gate_says(wrong).find("(got "), std::string::npos) << wrong;
}

/// A scenario with numbers "published" for it, far from what it gives.
class ValidateLimitsCommand : public testing::FolderTest {
 protected:
  void SetUp() override {
    write("tiny.yaml",
          "name: tiny\n"
          "workload:\n"
          "  groups: {requests: 40, rate: 20, groups: 4, prefix_len: 512, suffix_len: 64,\n"
          "           output_len: 16}\n"
          "cluster:\n"
          "  pools:\n"
          "  - {name: a, replicas: 2, accelerator: H100-SXM, model: Qwen3-32B,\n"
          "     tensor_parallel: 2}\n"
          "routing: {balancer: round-robin}\n"
          "measured: {csv: tiny.csv, experiment: e, policy: rr}\n");
    write("tiny.csv",
          "experiment,policy,stage,rate,metric,statistic,unit,value,source\n"
          "e,rr,main,20,ttft,mean,ms,1000,made\n");
  }

  ExitCode validate(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"validate", path("tiny.yaml"), "--seeds", "1", "-q"};
    words.insert(words.end(), more.begin(), more.end());
    testing::TestConsole console;
    const ExitCode code = run_command_line(words, console);
    output_ = console.output();
    errors_ = console.errors;
    return code;
  }

  std::string output_, errors_;
};

TEST_F(ValidateLimitsCommand, TheExitCodeTells) {
  EXPECT_EQ(validate({"--fail-if", "ttft.mean>100%"}), ExitCode::kSuccess) << errors_;
  EXPECT_EQ(validate({"--fail-if", "ttft.mean>1%"}), ExitCode::kFailed);
  EXPECT_NE(errors_.find("--fail-if: error: ttft.mean>1%: e, rr, ttft mean: the mean error is "),
            std::string::npos)
      << errors_;
  EXPECT_NE(output_.find("Errors"), std::string::npos) << "the tables are printed all the same";
  EXPECT_EQ(validate({"--fail-if", "itl>1%"}), ExitCode::kInvalid);
  EXPECT_EQ(validate({"--fail-if", "ttft=1%"}), ExitCode::kInvalid);
  EXPECT_EQ(output_, "") << "found before anything runs";
}

TEST_F(ValidateLimitsCommand, AWrittenFileHoldsWhatItWasWrittenFrom) {
  ASSERT_EQ(validate({"-o", "limits=" + path("limits.csv")}), ExitCode::kSuccess) << errors_;
  EXPECT_EQ(validate({"--limits", path("limits.csv")}), ExitCode::kSuccess) << errors_;
  EXPECT_EQ(validate({"--limits", path("limits.csv"), "--set", "cluster.pools[0].replicas=1"}),
            ExitCode::kSuccess)
      << "a smaller error breaks no limit: " << errors_;
  write("tight.csv", kHeader + std::string("e,rr,,ttft,mean,1,1,1,,\n"));
  EXPECT_EQ(validate({"--limits", path("tight.csv")}), ExitCode::kFailed);
  EXPECT_NE(errors_.find("tight.csv:2:1: error: error: e, rr, ttft mean"), std::string::npos);
  write("empty.csv", kHeader);
  EXPECT_EQ(validate({"--limits", path("empty.csv")}), ExitCode::kInvalid);
  write("bad.csv", "what\n");
  EXPECT_EQ(validate({"--limits", path("bad.csv")}), ExitCode::kInvalid);
  EXPECT_EQ(output_, "") << "found before anything runs";
  EXPECT_EQ(validate({"--limits", path("missing.csv")}), ExitCode::kInvalid);
  EXPECT_EQ(validate({"--limits", path("limits.csv"), "-o", "limits=" + path("limits.csv")}),
            ExitCode::kInvalid)
      << "an input is never overwritten";
}

}  // namespace
}  // namespace routesim::tools
