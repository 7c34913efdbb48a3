// routesim calibrate: the committed benchmark gives back the coefficients published for it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "models/roofline.h"
#include "tools/calibrate/calibrate_data.h"
#include "tools/calibrate/calibrate_scenario.h"
#include "tools/cli/cli.h"
#include "tools/input/catalogue_file.h"

namespace routesim::tools {
namespace {

namespace fs = std::filesystem;

const std::string kSteps = std::string(ROUTESIM_SOURCE_DIR) +
                           "/scenarios/measured/engine_steps/qwen3_32b_h100_vllm_measured.csv";

std::string all(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics.items()) out += to_string(d) + "\n";
  return out;
}

class TestConsole final : public Console {
 public:
  void complain(std::string_view text) override { errors += text; }
  using Console::complain;
  bool error_is_terminal() const override { return false; }
  std::string errors;
};

CalibrationTarget target(double kv_tokens = 300'000) {
  const models::Catalogue c = models::Catalogue::builtin();
  return {.accelerator = *c.find_accelerator("H100-SXM"),
          .model = *c.find_model("Qwen3-32B"),
          .parallelism = {.tp = 2},
          .kv_tokens = kv_tokens};
}

class Calibrate : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / ("routesim-calibrate-" + std::string(info->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  fs::path folder_;
};

TEST_F(Calibrate, TheCommittedBenchmarkGivesItsPublishedCoefficients) {
  const std::string out = (folder_ / "curve.yaml").string();
  TestConsole console;
  ASSERT_EQ(run_command_line({"calibrate", kSteps, "--model", "Qwen3-32B", "--accelerator",
                              "H100-SXM", "--tp", "2", "--preset", "test-preset", "--out", out},
                             console),
            ExitCode::kSuccess)
      << console.errors;
  EXPECT_NE(console.output().find("25 samples"), std::string::npos) << console.output();
  EXPECT_NE(console.output().find("5 rows are left out"), std::string::npos);
  EXPECT_NE(console.output().find("shared_context_weight is the prior's"), std::string::npos);

  // The entry reads back into a catalogue, and wins over the built-in curve of its preset.
  models::Catalogue catalogue = models::Catalogue::builtin();
  Diagnostics d;
  ASSERT_TRUE(add_catalogue_file(out, catalogue, d)) << all(d);
  const models::FittedCurve* curve =
      catalogue.find_cost_curve("H100-SXM", "Qwen3-32B", {.tp = 2}, "test-preset", false);
  ASSERT_NE(curve, nullptr);
  EXPECT_NEAR(curve->parameters.step_ms, 14.3, 0.02 * 14.3);
  EXPECT_NEAR(curve->parameters.sequence_ms, 0.068, 0.02 * 0.068);
  EXPECT_NEAR(curve->parameters.context_us_per_ktok, 44, 0.02 * 44);
  EXPECT_NEAR(curve->parameters.prefill_us_per_token, 47.8, 0.02 * 47.8);
  EXPECT_EQ(curve->range.max_decode_requests, 128);
  EXPECT_EQ(curve->range.max_prefill_context, 4096);
  EXPECT_NE(curve->provenance.find("routesim calibrate qwen3_32b_h100_vllm_measured.csv"),
            std::string::npos);
}

TEST(CalibrationData, LeavesOutWhatIsNotOfTheDeployment) {
  const std::string text =
      "model,system,precision,tp,isl,osl,concurrency,tpot_ms\n"
      "Qwen/Qwen3-32B,h100_sxm,bf16,2,1024,128,8,18\n"
      "Qwen/Qwen3-32B,h100_sxm,bf16,4,1024,128,8,12\n"
      "Qwen/Qwen3-32B,h100_sxm,fp8,2,1024,128,8,11\n"
      "Qwen/Qwen3-32B,h200_sxm,bf16,2,1024,128,8,13\n"
      "Qwen/Qwen3-32B,h100_sxm,bf16,2,4096,512,64,70\n";  // 294,912 tokens.
  CalibrationData data;
  Diagnostics d;
  read_calibration_csv(text, "a.csv", target(), data, d);
  EXPECT_EQ(all(d), "");
  ASSERT_EQ(data.samples.size(), 1U);
  EXPECT_EQ(data.samples[0].ms, 18);
  EXPECT_EQ(data.range.max_decode_context, 8 * 1152);
  EXPECT_EQ(data.range.max_prefill_tokens, 8192);
  EXPECT_EQ(data.notes.size(), 4U);
  CalibrationData roomy;
  read_calibration_csv(text, "a.csv", target(320'000), roomy, d);
  EXPECT_EQ(roomy.samples.size(), 2U);
}

TEST_F(Calibrate, StepTimesGiveBackTheCurveTheyWereMadeWith) {
  std::string text =
      "decode_requests,decode_context,shared_context,prefill_requests,"
      "prefill_tokens,prefill_context,prefill_pairs,ms\n";
  // 10 ms + 0.1 per sequence + 50 us per 1000 private, 20 us per 1000 shared tokens
  // + 40 us per prompt token + 1 ns per pair.
  for (const int b : {1, 8, 32, 64})
    for (const int context : {1000, 4000})
      for (const int share : {0, 2})
        for (const int prompt : {0, 1000, 4000}) {
          const int shared = share == 0 ? 0 : b * context / share;
          const double ms = 10 + 0.1 * b + 50e-6 * (b * context - shared) + 20e-6 * shared +
                            0.04 * prompt + 1e-6 * prompt * prompt;
          std::ostringstream line;
          line.precision(17);
          line << b << ',' << b * context << ',' << shared << ',' << (prompt > 0) << ',' << prompt
               << ',' << prompt << ',' << prompt * prompt << ',' << ms << "\n";
          text += line.str();
        }
  TestConsole console;
  const std::string out = (folder_ / "curve.yaml").string();
  ASSERT_EQ(
      run_command_line({"calibrate", write("steps.csv", text), "--model", "Qwen3-32B",
                        "--accelerator", "H100-SXM", "--tp", "2", "--prior-sd", "0", "--out", out},
                       console),
      ExitCode::kSuccess)
      << console.errors;
  models::Catalogue catalogue = models::Catalogue::builtin();
  Diagnostics d;
  ASSERT_TRUE(add_catalogue_file(out, catalogue, d)) << all(d);
  const models::CostCurveParameters& p = catalogue.curves().back().parameters;
  EXPECT_NEAR(p.step_ms, 10, 1e-3);
  EXPECT_NEAR(p.sequence_ms, 0.1, 1e-5);
  EXPECT_NEAR(p.context_us_per_ktok, 50, 5e-3);
  EXPECT_NEAR(p.shared_context_weight, 0.4, 1e-4);
  EXPECT_NEAR(p.prefill_us_per_token, 40, 4e-3);
  EXPECT_NEAR(p.prefill_pair_ns, 1, 1e-3);
}

/// The simulation's own numbers, taken as measured: the fit must find the curve they came from.
TEST_F(Calibrate, AScenarioFitFindsTheCurveBehindTheNumbers) {
  write("s.csv",
        "experiment,policy,stage,rate,metric,statistic,unit,value,source\n"
        "e,p,main,20,tpot,mean,ms,1,made\n"
        "e,p,main,20,ttft,mean,ms,1,made\n"
        "e,p,main,20,ttft,max,ms,1,made\n");
  const std::string path = write(
      "s.yaml",
      "name: s\n"
      "workload:\n"
      "  groups: {requests: 40, rate: 20, groups: 4, prefix_len: 512, suffix_len: 64,\n"
      "           output_len: 16}\n"
      "cluster:\n"
      "  pools:\n"
      "  - {name: a, replicas: 2, accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2}\n"
      "routing: {balancer: round-robin}\n"
      "measured: {csv: s.csv, experiment: e, policy: p}\n");
  Diagnostics d;
  ValidationInput input = load_validation_input(path, {}, {}, d);
  ASSERT_EQ(all(d), "");
  const ValidationEffort effort{.seeds = 1, .jobs = 1};
  const auto silent = [](const std::string&) {};
  const auto use = [&](double step_ms) {
    input.variants[0].plan.pools[0].latency = std::make_shared<models::CostCurve>(
        models::CostCurveParameters{.step_ms = step_ms, .prefill_us_per_token = 40},
        models::FittedRange{}, "made");
  };
  use(13);
  sim::Progress progress;
  const auto truth = run_validation({input}, effort, silent, progress, d);
  ASSERT_EQ(truth.size(), 1U);
  for (std::size_t i = 0; i < 3; ++i)
    input.variants[0].table.rows[i].value = truth[0].cells[i].mean();
  use(20);
  const ScenarioFit fit = fit_scenario(input, {{.name = "step_ms"}}, effort, 40, silent, d);
  EXPECT_EQ(all(d), "");
  EXPECT_EQ(fit.cells, 2U) << "an extreme is not fitted to";
  EXPECT_NEAR(fit.curve.parameters.step_ms, 13, 0.13);
  EXPECT_EQ(fit.curve.parameters.prefill_us_per_token, 40);
  EXPECT_GT(std::abs(fit.before.errors.at(0).mape), 20);
  EXPECT_LT(std::abs(fit.after.errors.at(0).mape), 1);
  EXPECT_NE(scenario_fit_text(fit).find("residuals, %: mean absolute 0."), std::string::npos)
      << scenario_fit_text(fit);
  (void)fit_scenario(input, {{.name = "steps_ms"}}, effort, 40, silent, d);
  (void)fit_scenario(input, {{.name = "step_ms", .low = 30, .high = 40}}, effort, 40, silent, d);
  EXPECT_EQ(d.items().size(), 2U) << all(d);
}

TEST_F(Calibrate, RefusesBadInput) {
  const std::string good = "isl,osl,concurrency,tpot_ms\n1024,128,8,18\n1024,128,16,20\n";
  const std::vector<std::pair<std::string, std::string>> files = {
      {"no_tpot.csv", "isl,osl,concurrency\n1,1,1\n"},
      {"text.csv", "isl,osl,concurrency,tpot_ms\n1024,128,eight,18\n"},
      {"negative.csv", "isl,osl,concurrency,tpot_ms\n1024,128,8,-18\n"},
      {"short.csv", "isl,osl,concurrency,tpot_ms\n1024,128,8\n"},
      {"unknown.csv", "decode_requests,decode_kontext,ms\n1,1,1\n"},
      {"one.csv", "isl,osl,concurrency,tpot_ms\n1024,128,8,18\n"},
      {"empty.csv", ""}};
  for (const auto& [name, text] : files) {
    TestConsole console;
    EXPECT_EQ(run_command_line({"calibrate", write(name, text), "--model", "Qwen3-32B",
                                "--accelerator", "H100-SXM", "--tp", "2"},
                               console),
              ExitCode::kInvalid)
        << name;
    EXPECT_EQ(console.output(), "");
    EXPECT_NE(console.errors.find("error"), std::string::npos) << name;
  }
  const std::string file = write("good.csv", good);
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {"--accelerator", "H100-SXM", "--tp", "2"},
           {"--model", "Qwen3-32", "--accelerator", "H100-SXM", "--tp", "2"},
           {"--model", "Qwen3-32B", "--accelerator", "H100-SXM", "--tp", "7"},
           {"--model", "Qwen3-32B", "--accelerator", "H100-SXM", "--tp", "0"}}) {
    std::vector<std::string> line = {"calibrate", file};
    line.insert(line.end(), wrong.begin(), wrong.end());
    TestConsole console;
    EXPECT_EQ(run_command_line(line, console), ExitCode::kInvalid) << wrong.back();
  }
}

}  // namespace
}  // namespace routesim::tools
