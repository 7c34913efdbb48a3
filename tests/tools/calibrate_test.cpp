// routesim calibrate: the committed benchmark gives back the coefficients published for it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "models/roofline.h"
#include "tests/base/messages.h"
#include "tools/cli/cli.h"
#include "tools/ingest/servers/catalogue_file.h"
#include "tools/study/calibrate/calibrate_data.h"
#include "tools/study/calibrate/calibrate_scenario.h"

namespace routesim::tools {
namespace {

namespace fs = std::filesystem;

const std::string kSteps = std::string(ROUTESIM_SOURCE_DIR) +
                           "/scenarios/measured/engine_steps/qwen3_32b_h100_vllm_measured.csv";

class TestConsole final : public Console {
 public:
  void complain(std::string_view text) override { errors += text; }
  using Console::complain;
  bool error_is_terminal() const override { return false; }
  std::string errors;
};

CalibrationTarget target(double kv_tokens = 300'000) {
  const models::Catalogue c = builtin_catalogue();
  return {.accelerator = *c.find_accelerator("H100-SXM"),
          .model = *c.find_model("Qwen3-32B"),
          .parallelism = {.tp = 2},
          .kv_tokens = kv_tokens};
}

class Calibrate : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
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
  models::Catalogue catalogue = builtin_catalogue();
  Diagnostics d;
  ASSERT_TRUE(add_catalogue_file(out, catalogue, d)) << messages_of(d);
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
  EXPECT_EQ(messages_of(d), "");
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
  models::Catalogue catalogue = builtin_catalogue();
  Diagnostics d;
  ASSERT_TRUE(add_catalogue_file(out, catalogue, d)) << messages_of(d);
  const models::CostCurveParameters& p = catalogue.curves().back().parameters;
  EXPECT_NEAR(p.step_ms, 10, 1e-3);
  EXPECT_NEAR(p.sequence_ms, 0.1, 1e-5);
  EXPECT_NEAR(p.context_us_per_ktok, 50, 5e-3);
  EXPECT_NEAR(p.shared_context_weight, 0.4, 1e-4);
  EXPECT_NEAR(p.prefill_us_per_token, 40, 4e-3);
  EXPECT_NEAR(p.prefill_pair_ns, 1, 1e-3);
}

/// Scenarios with published numbers, which are overwritten with the simulation's own.
class ScenarioFits : public Calibrate {
 protected:
  /// A small cluster under `rate` requests/s, measured as experiment `name`.
  std::string scenario(const std::string& name, int rate, const std::string& model = "Qwen3-32B",
                       const std::string& engine = "{}") const {
    write(name + ".csv", "experiment,policy,stage,rate,metric,statistic,unit,value,source\n" +
                             name + ",p,main,20,tpot,mean,ms,1,made\n" + name +
                             ",p,main,20,ttft,mean,ms,1,made\n" + name +
                             ",p,main,20,ttft,max,ms,1,made\n");
    return write(name + ".yaml",
                 "name: " + name +
                     "\nworkload:\n  groups: {requests: 40, rate: " + std::to_string(rate) +
                     ", groups: 4, prefix_len: 512, suffix_len: 64, output_len: 16}\n"
                     "cluster:\n  pools:\n"
                     "  - {name: a, replicas: 2, accelerator: H100-SXM, model: " +
                     model + ", tensor_parallel: 2, engine: " + engine +
                     "}\n"
                     "routing: {balancer: round-robin}\n"
                     "measured: {csv: " +
                     name + ".csv, experiment: " + name + ", policy: p}\n");
  }

  static void use(std::vector<ValidationInput>& inputs, double step_ms) {
    for (ValidationInput& input : inputs)
      for (ValidationVariant& variant : input.variants)
        variant.plan.pools[0].latency = std::make_shared<models::CostCurve>(
            models::CostCurveParameters{.step_ms = step_ms, .prefill_us_per_token = 40},
            models::FittedRange{}, "made");
  }

  /// Takes what the inputs give now as what was published.
  void publish(std::vector<ValidationInput>& inputs) {
    ExperimentProgress progress;
    Experiment experiment(1, progress, d_);
    const auto truth = run_validation(inputs, 1, silent_, experiment);
    ASSERT_EQ(truth.size(), inputs.size());
    for (std::size_t s = 0; s < inputs.size(); ++s)
      for (std::size_t i = 0; i < 3; ++i)
        inputs[s].variants[0].table.rows[i].value = truth[s].cells[i].mean();
  }

  /// A fit with errors of its own in `d`; nothing useful then.
  ScenarioFit fit(const std::vector<ValidationInput>& inputs, const ScenarioFitRequest& request,
                  Diagnostics& d) {
    ExperimentProgress progress;
    Diagnostics found;
    Experiment experiment(1, progress, found);
    ScenarioFit result;
    try {
      result = fit_scenarios(inputs, request, silent_, experiment);
    } catch (const Stopped&) {
      EXPECT_TRUE(found.has_errors());
    }
    append(d, found);
    return result;
  }

  ScenarioFitRequest request(std::vector<FreeNumber> free) const {
    return {.free = std::move(free), .tolerances = {}, .seeds = 1, .reload = {}};
  }

  std::vector<ValidationInput> load(const std::vector<std::string>& paths,
                                    const std::vector<std::string>& sets) {
    std::vector<ValidationInput> inputs;
    for (const std::string& path : paths)
      inputs.push_back(load_validation_input(path, sets, {}, false, d_));
    return inputs;
  }

  std::function<void(const std::string&)> silent_ = [](const std::string&) {};
  Diagnostics d_;
};

TEST_F(ScenarioFits, FindTheCurveBehindTheNumbers) {
  auto inputs = load({scenario("s", 20)}, {});
  ASSERT_EQ(messages_of(d_), "");
  use(inputs, 13);
  publish(inputs);
  use(inputs, 20);
  const ScenarioFit fitted = fit(inputs, request({{.name = "step_ms"}}), d_);
  EXPECT_EQ(messages_of(d_), "");
  EXPECT_EQ(fitted.cells, 2U) << "an extreme is not fitted to";
  EXPECT_NEAR(fitted.curve.parameters.step_ms, 13, 0.13);
  EXPECT_EQ(fitted.curve.parameters.prefill_us_per_token, 40);
  EXPECT_TRUE(fitted.sets.empty());
  EXPECT_GT(std::abs(fitted.before.at(0).errors.at(0).mape), 20);
  EXPECT_LT(std::abs(fitted.after.at(0).errors.at(0).mape), 1);
  EXPECT_NE(scenario_fit_text(fitted).find("residuals, %: mean absolute 0."), std::string::npos)
      << scenario_fit_text(fitted);
  (void)fit(inputs, request({{.name = "steps_ms"}}), d_);
  (void)fit(inputs, request({{.name = "step_ms", .low = 30, .high = 40}}), d_);
  (void)fit(inputs, request({{.name = "watermark"}}), d_);
  EXPECT_EQ(d_.items().size(), 3U) << messages_of(d_);
}

/// One curve under two loads: the experiment with the wider tolerance gives way.
TEST_F(ScenarioFits, WeighExperimentsByTheirTolerances) {
  auto inputs = load({scenario("s", 20), scenario("t", 60)}, {});
  ASSERT_EQ(messages_of(d_), "");
  use(inputs, 13);
  publish(inputs);
  auto other = load({scenario("t", 60)}, {});
  use(other, 20);
  publish(other);
  inputs[1] = other[0];
  use(inputs, 15);
  const auto fitted = [&](const std::string& experiment, double percent) {
    ScenarioFitRequest r = request({{.name = "step_ms", .low = 10, .high = 25}});
    r.tolerances.push_back({.scope = experiment, .metric = "ttft", .percent = percent});
    r.tolerances.push_back({.scope = experiment, .metric = "tpot", .percent = percent});
    r.explore = 8;
    return fit(inputs, r, d_).curve.parameters.step_ms;
  };
  EXPECT_NEAR(fitted("t", 1000), 13, 0.3);
  EXPECT_NEAR(fitted("s", 1000), 20, 0.3);
  const double between = fitted("s", 10);
  EXPECT_GT(between, 14);
  EXPECT_LT(between, 19);
  EXPECT_EQ(messages_of(d_), "");
  (void)fitted("nobody", 10);
  EXPECT_NE(messages_of(d_).find("names no number that is fitted to (nobody:ttft.)"),
            std::string::npos)
      << messages_of(d_);
}

/// The number of KV blocks is no coefficient, and comes back as what to set.
TEST_F(ScenarioFits, FindTheBlocksBehindTheNumbers) {
  const std::string path = scenario("s", 400, "Qwen3-32B", "{num_gpu_blocks: 150, block_size: 16}");
  auto truth = load({path}, {});
  ASSERT_FALSE(d_.has_errors()) << messages_of(d_);
  publish(truth);
  auto inputs = load({path}, {"cluster.pools[a].engine.num_gpu_blocks=400"});
  inputs[0].variants[0].table = truth[0].variants[0].table;
  ScenarioFitRequest r = request({{.name = "num_gpu_blocks", .low = 60, .high = 500}});
  r.explore = 20;
  r.reload = [&](const std::vector<std::string>& sets, Diagnostics&) {
    auto again = load({path}, sets);
    again[0].variants[0].table = truth[0].variants[0].table;
    return again;
  };
  const ScenarioFit fitted = fit(inputs, r, d_);
  EXPECT_FALSE(d_.has_errors()) << messages_of(d_);
  ASSERT_EQ(fitted.sets.size(), 1U);
  const std::string key = "cluster.pools[a].engine.num_gpu_blocks=";
  ASSERT_EQ(fitted.sets[0].substr(0, key.size()), key);
  EXPECT_NEAR(std::stod(fitted.sets[0].substr(key.size())), 150, 12);
  EXPECT_GT(fitted.before.at(0).errors.at(1).mape, 5);
  EXPECT_LT(fitted.after.at(0).errors.at(1).mape, 2);
  EXPECT_NE(scenario_fit_text(fitted).find("  --set " + fitted.sets[0]), std::string::npos);
  // Whole paths work, too; a duration is in seconds.
  EXPECT_EQ(
      FreeNumbers({{.name = "cluster.frontend_latency", .low = 0.001, .high = 1}}, {}, inputs, d_)
          .sets({0.25}),
      std::vector<std::string>{"cluster.frontend_latency=0.25"});
  EXPECT_FALSE(d_.has_errors()) << messages_of(d_);
}

TEST_F(ScenarioFits, WantOneCurveForAllServers) {
  const auto inputs = load({scenario("s", 20), scenario("t", 20, "Qwen3-8B")}, {});
  ASSERT_EQ(messages_of(d_), "");
  (void)fit(inputs, request({{.name = "step_ms"}}), d_);
  ASSERT_EQ(d_.items().size(), 1U);
  EXPECT_NE(messages_of(d_).find("pool a of t, "), std::string::npos) << messages_of(d_);
  EXPECT_NE(messages_of(d_).find(
                "uses another cost curve (measured kernels of H100-SXM with vLLM 0.24: Qwen3-8B"),
            std::string::npos)
      << messages_of(d_);
  auto different = load({scenario("s", 20), scenario("t", 20)}, {});
  different[1].variants[0].plan.pools[0].latency = std::make_shared<models::CostCurve>(
      models::CostCurveParameters{.step_ms = 5}, models::FittedRange{}, "another");
  Diagnostics two;
  (void)fit(different, request({{.name = "step_ms"}}), two);
  EXPECT_NE(messages_of(two).find("uses another cost curve (another) than pool a of s"),
            std::string::npos)
      << messages_of(two);
}

TEST_F(ScenarioFits, StartFromKernelsOrTheRooflineWhereNothingWasFitted) {
  for (const char* unfitted : {"kernels", "roofline"}) {
    SCOPED_TRACE(unfitted);
    auto inputs = load({scenario("s", 20, "Qwen3-8B")},
                       {std::string("cluster.pools[0].latency_model=") + unfitted});
    ASSERT_EQ(messages_of(d_), "");
    const auto start = inputs[0].variants[0].plan.pools[0].latency;
    use(inputs, 13);
    publish(inputs);
    inputs[0].variants[0].plan.pools[0].latency = start;
    const auto free = request({{.name = "step_ms", .low = 1, .high = 30}});
    const ScenarioFit fitted = fit(inputs, free, d_);
    EXPECT_EQ(messages_of(d_), "");
    EXPECT_EQ(fitted.curve.model, "Qwen3-8B");
    EXPECT_GT(fitted.curve.parameters.step_ms, 10);
    EXPECT_GT(fitted.curve.parameters.context_us_per_ktok, 0) << "the rest is the start's";
    EXPECT_LT(std::abs(fitted.after.at(0).errors.at(0).mape),
              fitted.before.at(0).errors.at(0).mape);
  }
}

TEST_F(ScenarioFits, AreACommandThatNamesItsTolerancesAndRanges) {
  const std::string path = scenario("s", 20);
  const std::string out = (folder_ / "curve.yaml").string();
  TestConsole console;
  ASSERT_EQ(run_command_line({"calibrate", "--scenario", path, "--scenario", scenario("t", 40),
                              "--free", "step_ms=5..30", "--tolerance", "t:ttft.mean=40", "--seeds",
                              "1", "--explore", "3", "--evaluations", "4", "--out", out},
                             console),
            ExitCode::kSuccess)
      << console.errors;
  std::ostringstream entry;
  entry << std::ifstream(out).rdbuf();
  EXPECT_NE(entry.str().find("routesim calibrate --scenario s.yaml --scenario t.yaml --free "
                             "step_ms=5..30 --tolerance t:ttft.mean=40 --seeds 1 --explore 3 "
                             "--evaluations 4"),
            std::string::npos)
      << entry.str();
  for (const char* const wrong :
       {"ttft", "ttft=", "ttft=0", "ttft=-1", "=5", "t:=5", "ttft=many"}) {
    TestConsole refused;
    EXPECT_EQ(
        run_command_line(
            {"calibrate", "--scenario", path, "--free", "step_ms", "--tolerance", wrong}, refused),
        ExitCode::kInvalid)
        << wrong;
    EXPECT_NE(refused.errors.find("--tolerance must be"), std::string::npos) << refused.errors;
  }
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
  TestConsole other;
  std::string many = "{\n";
  for (int i = 0; i < 50; ++i) many += "a,b\n";
  (void)run_command_line(
      {"calibrate", write("many.csv", many), "--model", "Qwen3-32B", "--accelerator", "H100-SXM"},
      other);
  EXPECT_NE(other.errors.find("has 50 rows of another length than the header"), std::string::npos);
  EXPECT_LT(std::count(other.errors.begin(), other.errors.end(), '\n'), 12) << other.errors;
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
