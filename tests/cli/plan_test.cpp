// Plans as a user runs them.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/scalar_parse.h"
#include "tests/cli/cli_fixture.h"
#include "tools/results/trust_errors.h"

namespace routesim::tools::testing {
namespace {

class Plan : public Cli {
 protected:
  /// Two policies on two kinds of GPU, up to 12 replicas.
  std::string plan(const std::string& goals = "[ttft_ms.p90 < 400, tpot_ms.p90 < 30]",
                   const std::string& more = "") const {
    write("base.yaml",
          "name: base\n" + two_servers("requests: 100, rate: 20, groups: 24, prefix_len: 4096, "
                                       "suffix_len: 256, output_len: 64",
                                       "{name: hashing, routing: {balancer: prefix-hash}}"));
    return write("plan.yaml",
                 "name: small\n"
                 "scenario: base.yaml\n"
                 "demand:\n"
                 "  rate: 20\n"
                 "  growth: 0.5\n"
                 "  duration: 30s\n"
                 "  set: ['workload.groups.rate={rate}', 'workload.groups.requests={requests}']\n"
                 "goals: " +
                     goals +
                     "\n"
                     "knee_limit: 2\n"
                     "prices: [{accelerator: H100-SXM, per_hour: 3}, {accelerator: H200, per_hour: "
                     "4}]\n"
                     "hardware:\n"
                     "- {accelerator: H100-SXM, tensor_parallel: 2}\n"
                     "- {accelerator: H200, tensor_parallel: 1}\n"
                     "pools: [{pool: a, min: 1, max: 12}]\n" +
                     more);
  }

  struct Spread {
    double sum = 0, squares = 0;
    void add(double x) {
      sum += x;
      squares += x * x;
    }
    double mean(double n) const { return sum / n; }
    /// One-sided 95 % bound of the mean of ten values: Student's t for 9 degrees of freedom.
    double bound_of_ten() const {
      const double variance = (squares - sum * sum / 10) / 9;
      return sum / 10 + 1.833 * std::sqrt(std::max(0.0, variance) / 10);
    }
  };

  /// 90th percentiles of n replicas at the planned rate, by `run` alone.
  void measure(const nlohmann::json& found, std::int64_t n, int seeds, Spread& ttft,
               Spread& tpot) const {
    const std::string hardware = found["hardware"];
    const bool h200 = hardware.starts_with("H200");
    for (int seed = 1; seed <= seeds; ++seed) {
      const Result result =
          run({"run",
               (folder_ / "base.yaml").string(),
               "--variant",
               found["policy"].get<std::string>(),
               "--seed",
               std::to_string(seed),
               "--output",
               "json",
               "--no-capacity",
               "--no-kv-band",
               "--set",
               "workload.groups.rate=30",
               "--set",
               "workload.groups.requests=6000",
               "--set",
               "cluster.pools[a].replicas=" + std::to_string(n),
               "--set",
               h200 ? "cluster.pools[a].accelerator=H200" : "cluster.pools[a].accelerator=H100-SXM",
               "--set",
               h200 ? "cluster.pools[a].tensor_parallel=1" : "cluster.pools[a].tensor_parallel=2"});
      EXPECT_EQ(result.code, 0) << result.err;
      const auto report = nlohmann::json::parse(result.out);
      const auto& latency = report["variants"][0]["summary"]["successes"]["latency"];
      ttft.add(1e3 * latency["time_to_first_token"]["p90"].get<double>());
      tpot.add(1e3 * latency["time_per_output_token"]["p90"].get<double>());
    }
  }

  bool holds(const nlohmann::json& found, std::int64_t n) const {
    Spread ttft, tpot;
    measure(found, n, 3, ttft, tpot);
    return ttft.mean(3) < 400 && tpot.mean(3) < 30;
  }

  /// Whether all runs a plan may spend on a fleet show, with its confidence, that the goals hold.
  bool surely_holds(const nlohmann::json& found, std::int64_t n) const {
    Spread ttft, tpot;
    measure(found, n, 10, ttft, tpot);
    return ttft.bound_of_ten() < 400 && tpot.bound_of_ten() < 30;
  }
};

// Host memory is a choice with a price, and the plan says what it gains: here prefixes fit a
// server's host memory and not its GPU memory.
TEST_F(Plan, HostMemoryIsPricedAndItsGainIsSaid) {
  write("base.yaml",
        "name: base\n" + two_servers("requests: 100, rate: 20, groups: 24, prefix_len: 4096, "
                                     "suffix_len: 256, output_len: 64"));
  const auto plan = [&](const std::string& sizes) {
    return write("plan.yaml",
                 "name: small\nscenario: base.yaml\n"
                 "set: ['cluster.pools[a].engine.kv_cache_tokens=24000']\n"
                 "demand: {rate: 16, duration: 60s, set: ['workload.groups.rate={rate}', "
                 "'workload.groups.requests={requests}']}\n"
                 "goals: [ttft_ms.p90 < 1000]\nknee_limit: 2\n"
                 "prices: [{accelerator: H100-SXM, per_hour: 3}]\n"
                 "host_memory: {gib: [" +
                     sizes +
                     "], per_gib_hour: 0.01}\n"
                     "hardware: [{accelerator: H100-SXM, tensor_parallel: 2}]\n"
                     "policies: [{variant: chance}]\n"
                     "pools: [{pool: a, min: 1, max: 12}]\n");
  };
  const Result result = run({"plan", plan("0, 40"), "--output", "json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto found = nlohmann::json::parse(result.out);
  EXPECT_EQ(found["host_memory_per_gib_hour"], 0.01);
  ASSERT_EQ(found["plans"].size(), 2U);
  std::size_t with = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& p = found["plans"][i];
    const double gib = p["host_memory"]["gib"];
    EXPECT_NEAR(p["price_per_hour"], p["replicas"]["a"].get<double>() * (2 * 3 + gib * 0.01), 1e-9);
    if (gib > 0) with = i;
  }
  EXPECT_EQ(with, 0U) << "the tier makes the cheaper fleet";
  const auto& memory = found["plans"][0]["host_memory"];
  EXPECT_EQ(memory["fleet_without"]["replicas"], found["plans"][1]["replicas"]);
  EXPECT_EQ(memory["fleet_without"]["price_per_hour"], found["plans"][1]["price_per_hour"]);
  const auto& same = memory["same_fleet_without"];
  EXPECT_GT(same["goals"][0]["mean"], found["plans"][0]["goals"][0]["mean"]);
  EXPECT_GT(same["output_tokens_per_s"], 0);
  EXPECT_GT(same["request_latency_s"], 0);
  const Result text = run({"plan", plan("0, 40")});
  EXPECT_NE(
      one_line(text.out).find("40 GiB of host memory per engine: without it the same fleet has"),
      std::string::npos)
      << text.out;
  EXPECT_EQ(run({"plan", plan("40, 40")}).code, 2);
}

// A load of one request per second becomes that of the demand.
TEST_F(Plan, TheDemandsRateMayBeAScale) {
  const auto found = [&](const std::string& rate, const std::string& set) {
    write("base.yaml", "name: base\n" + two_servers("requests: 100, rate: " + rate +
                                                    ", groups: 24, prefix_len: 4096, "
                                                    "suffix_len: 256, output_len: 64"));
    const std::string file = write("plan.yaml",
                                   "name: small\nscenario: base.yaml\n"
                                   "demand: {rate: 20, duration: 30s, set: ['" +
                                       set +
                                       "', 'workload.groups.requests={requests}']}\n"
                                       "goals: [ttft_ms.p90 < 400]\n"
                                       "prices: [{accelerator: H100-SXM, per_hour: 3}]\n"
                                       "hardware: [{accelerator: H100-SXM, tensor_parallel: 2}]\n"
                                       "pools: [{pool: a, min: 1, max: 6}]\n");
    const Result result = run({"plan", file, "--output", "json"});
    EXPECT_EQ(result.code, 0) << result.err;
    return result.code == 0 ? nlohmann::json::parse(result.out)["plans"].dump() : result.err;
  };
  EXPECT_EQ(found("1", "workload.rate_scale={rate}"), found("20", "workload.groups.rate={rate}"));
}

// A fleet is judged by what it does without end, so the length of the demand is no part of it.
TEST_F(Plan, TheAnswerDoesNotDependOnTheDurationOfTheDemand) {
  write("base.yaml",
        "name: base\n" + two_servers("requests: 100, rate: 20, groups: 24, prefix_len: "
                                     "4096, suffix_len: 256, output_len: 64"));
  const auto servers = [&](const std::string& demand) {
    const Result result = run(
        {"plan", "-q", "--output", "json",
         write("plan.yaml",
               "name: small\nscenario: base.yaml\ndemand: {rate: 50, " + demand +
                   "set: ['workload.groups.rate={rate}', 'workload.groups.requests={requests}']}\n"
                   "goals: [ttft_ms.p90 < 1500]\nknee_limit: 1\n"
                   "policies: [{variant: chance}]\n"
                   "prices: [{accelerator: H100-SXM, per_hour: 3}]\n"
                   "pools: [{pool: a, min: 1, max: 12}]\n")});
    EXPECT_EQ(result.code, 0) << result.err;
    const auto plan = nlohmann::json::parse(result.out)["plans"][0];
    // 50 answers of 64 tokens a second, whatever comes behind the last request.
    const double price = plan["price_per_hour"].get<double>() / (3600 * 50 * 64 / 1e6);
    if (demand.find("cold_start") == demand.npos) {
      EXPECT_NEAR(plan["price_per_million_output_tokens"].get<double>(), price, 0.03 * price);
    }
    return plan["replicas"]["a"].get<int>();
  };
  const int unset = servers("");
  for (const char* duration : {"5s", "60s", "300s"})
    EXPECT_EQ(servers("duration: " + std::string(duration) + ", "), unset) << duration;
  EXPECT_GT(unset, 1);
  EXPECT_GT(servers("duration: 5s, cold_start: true, "), unset) << "every prefix is computed first";
}

TEST_F(Plan, TheCheapestFleetIsTheSmallestThatHolds) {
  const Result result = run({"plan", plan(), "--output", "json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto answer = nlohmann::json::parse(result.out);
  EXPECT_EQ(answer["met"], true);
  EXPECT_EQ(answer["planned_rate"], 30);
  ASSERT_GE(answer["plans"].size(), 2U);
  double price = 0;
  for (const auto& found : answer["plans"]) {
    EXPECT_GE(found["price_per_hour"].get<double>(), price) << "the cheapest comes first";
    price = found["price_per_hour"];
    const std::int64_t n = found["replicas"]["a"];
    const bool h200 = found["hardware"].get<std::string>().starts_with("H200");
    EXPECT_DOUBLE_EQ(price, static_cast<double>(n) * (h200 ? 4 : 6));
    EXPECT_EQ(found["gpus"], n * (h200 ? 1 : 2));
    EXPECT_TRUE(holds(found, n));
    if (n > 1) {
      EXPECT_FALSE(surely_holds(found, n - 1)) << found["hardware"] << found["policy"];
    }
    EXPECT_GE(found["knee_requests_per_s"].get<double>(), 30);
    EXPECT_LT(found["spare_replicas_today"].get<std::int64_t>(), n);
    const double tokens = found["output_tokens_per_s"];
    EXPECT_NEAR(found["price_per_million_output_tokens"].get<double>(),
                price / (3600 * tokens) * 1e6, 1e-9);
    // Steps that are longer by the error of their class need no smaller fleet, shorter ones no
    // larger one.
    const bool unfitted = found["step_times"] == "kernels";
    const auto& band = found["step_time_band"];
    const models::Trust trust = unfitted ? models::Trust::kKernels : models::Trust::kFitted;
    EXPECT_NEAR(band["fraction"].get<double>(), step_time_band(trust), 1e-9);
    EXPECT_EQ(found["validation"][0]["quantity"], "output tokens/s");
    if (!band["longer"].is_null()) {
      EXPECT_GE(band["longer"]["price_per_hour"], price);
    }
    ASSERT_FALSE(band["shorter"].is_null());
    EXPECT_LE(band["shorter"]["price_per_hour"], price);
  }
}

TEST_F(Plan, TheFirstScreenSaysWhatTheAnswerRestsOn) {
  const std::string file = plan("[ttft_ms.p90 < 400]", "max_replications: 3\n");
  const std::string page = (folder_ / "page.html").string();
  const std::string stored = (folder_ / "plan.json").string();
  const Result result = run({"plan", "-q", file, "-o", "table", "-o", "json=" + stored});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto answer = nlohmann::json::parse(slurp(stored));
  const auto& best = answer["plans"][0];
  const bool h200 = best["hardware"].get<std::string>().starts_with("H200");
  // Qwen3-32B has a fitted curve on the H100 with tensor parallelism 2, and none on the H200.
  EXPECT_EQ(best["step_times"], h200 ? "kernels" : "fitted");
  EXPECT_EQ(answer["rests_on"],
            h200 ? "sums of measured kernels, with nothing fitted to this deployment"
                 : "step times that were fitted to measurements");
  const std::string head =
      one_line(result.out.substr(0, result.out.find("Fleets that meet the goals")));
  EXPECT_NE(head.find("It rests on " + answer["rests_on"].get<std::string>()), std::string::npos)
      << head;
  EXPECT_NE(one_line(result.out)
                .find("The 95 % confidence covers chance between runs, not errors of step times"),
            std::string::npos);
  EXPECT_NE(head.find(answer["robustness"].get<std::string>()), std::string::npos) << head;
  EXPECT_NE(head.find("mean error against published numbers"), std::string::npos) << head;
  for (const auto& found : answer["plans"]) {
    EXPECT_EQ(found["kv_capacity"]["band"], 0.03);
    EXPECT_TRUE(found["kv_capacity"]["holds_with_more"].is_boolean());
  }
  const bool fewer = best["kv_capacity"]["holds_with_fewer"];
  EXPECT_EQ(
      answer["robustness"].get<std::string>().find("not hold with 3 % fewer") == std::string::npos,
      fewer);
  EXPECT_EQ(answer["scenario"], "base.yaml");
  EXPECT_EQ(answer["prices"][1]["accelerator"], "H200");
  EXPECT_EQ(answer["prices"][1]["per_hour"], 4);
  for (const auto& family : answer["families"]) {
    const bool fitted = family["hardware"].get<std::string>().starts_with("H100");
    EXPECT_EQ(family["step_times"], fitted ? "fitted" : "kernels");
    EXPECT_NE(
        family["sources"][0].get<std::string>().find(fitted ? "cost curve" : "measured kernels"),
        std::string::npos);
    EXPECT_EQ(family["seed"], 1);
    EXPECT_GE(family["scenario_hash"].get<std::string>().size(), 16U);
  }
  ASSERT_EQ(run({"report", stored, "-o", page}).code, 0);
  const std::string html = slurp(page);
  const std::size_t basis = html.find("It rests on " + answer["rests_on"].get<std::string>());
  EXPECT_LT(basis, html.find("Fleets that meet the goals"));
  EXPECT_NE(html.find(answer["families"][0]["scenario_hash"].get<std::string>() + "; "),
            std::string::npos);
}

TEST_F(Plan, TheAnswerDoesNotDependOnTheThreads) {
  const std::string file = plan();
  const Result one = run({"plan", file, "--jobs", "1"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(run({"plan", file, "--jobs", "3"}).out, one.out);
}

TEST_F(Plan, TheMostReplicasDoNotHideTheFew) {
  // One server keeps every prefix; eight behind a plain Service compute each of them eight times.
  write("base.yaml", "name: base\n" + two_servers("requests: 100, rate: 20, groups: 8, prefix_len: "
                                                  "2048, suffix_len: 64, output_len: 16"));
  const auto plan = [&](int most) {
    const Result result =
        run({"plan", "-q", "--output", "json",
             write("plan.yaml",
                   "name: dilution\n"
                   "scenario: base.yaml\n"
                   "demand:\n"
                   "  rate: 3\n"
                   "  duration: 100s\n"
                   "  set: ['workload.groups.rate={rate}', 'workload.groups.requests={requests}']\n"
                   "goals: [ttft_ms.mean < 50]\n"
                   "knee_limit: 1\n"
                   "policies: [{variant: chance}]\n"
                   "prices: [{accelerator: H100-SXM, per_hour: 3}]\n"
                   "pools: [{pool: a, min: 1, max: " +
                       std::to_string(most) + "}]\n")});
    EXPECT_EQ(result.code, 0) << most << result.out;
    return nlohmann::json::parse(result.out);
  };
  for (const int most : {1, 3, 8, 12}) {
    const auto answer = plan(most);
    EXPECT_EQ(answer["plans"][0]["replicas"]["a"], 1) << most;
    EXPECT_EQ(answer["families"][0]["sizes_tried"], 1);
    EXPECT_EQ(answer["families"][0]["method"], "doubling");
  }
}

TEST_F(Plan, FailuresHaveNoLatencyAndNoPrice) {
  write("base.yaml", "name: base\n" + two_servers("requests: 100, rate: 20, groups: 8, prefix_len: "
                                                  "512, suffix_len: 64, output_len: 200, "
                                                  "timeout_s: 0.2"));
  const auto plan = [&](const std::string& goal) {
    return run({"plan", "-q", "--output", "json",
                write("plan.yaml",
                      "name: late\n"
                      "scenario: base.yaml\n"
                      "demand: {rate: 10, duration: 10s, set: ['workload.groups.rate={rate}']}\n"
                      "goals: [" +
                          goal +
                          "]\n"
                          "max_failure_rate: 1\n"
                          "knee_limit: 1\n"
                          "policies: [{variant: chance}]\n"
                          "prices: [{accelerator: H100-SXM, per_hour: 3}]\n"
                          "pools: [{pool: a, min: 1, max: 2}]\n")});
  };
  const Result gaps = plan("itl_ms.mean < 50");
  EXPECT_EQ(gaps.code, 1) << gaps.out;
  const Result any = plan("failure_rate > 0.5");
  EXPECT_EQ(any.code, 0) << any.out;
  const auto answer = nlohmann::json::parse(any.out);
  EXPECT_TRUE(answer["plans"][0]["price_per_million_output_tokens"].is_null()) << any.out;
}

TEST_F(Plan, ALoadLastsAsLongAsIsAsked) {
  // 3 s are 3000000000 ns, whose product with 1e-9 is a hair above 3; so is 0.1 times 30.
  write("base.yaml", "name: base\n" + two_servers("requests: 100, rate: 20, groups: 8, prefix_len: "
                                                  "512, suffix_len: 64, output_len: 2"));
  const auto wrong = [&](const std::string& demand) {
    return run({"plan", "-q",
                write("plan.yaml",
                      "name: seconds\n"
                      "scenario: base.yaml\n"
                      "demand: {" +
                          demand +
                          ", set: ['workload.groups.rate={rate}', "
                          "'workload.groups.requests={seconds}{requests}x']}\n"
                          "goals: [ttft_ms.p99 < 50000]\n"
                          "prices: [{accelerator: H100-SXM, per_hour: 3}]\n"
                          "pools: [{pool: a, max: 1}]\n")})
        .err;
  };
  // The error names what was put in.
  EXPECT_NE(wrong("rate: 0.1, duration: 30s").find("303x"), std::string::npos)
      << wrong("rate: 0.1, duration: 30s");
  EXPECT_NE(wrong("rate: 2, duration: 3s").find("36x"), std::string::npos);
  EXPECT_NE(wrong("rate: 2, duration: 2.6s").find("36x"), std::string::npos);
}

TEST_F(Plan, ASetThatThePlanReplacesIsNamed) {
  const std::string file = plan("[ttft_ms.p90 < 400]", "max_replications: 3\n");
  const Result result =
      run({"plan", file, "--jobs", "2", "--progress", "never", "--set", "workload.groups.rate=5",
           "--set", "cluster.pools[0].replicas=3", "--set", "workload.groups.output_len=16"});
  EXPECT_NE(result.err.find("workload.groups.rate: has no effect: demand.set"), std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("cluster.pools[0].replicas: has no effect: the plan"),
            std::string::npos)
      << result.err;
  EXPECT_EQ(result.err.find("output_len: has no effect"), std::string::npos) << result.err;
}

TEST_F(Plan, NoPlanIsAnAnswer) {
  const Result result = run({"plan", plan("[ttft_ms.p90 < 20]")});
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.out.find("No fleet in this space meets the goals.\n  Nearest: "),
            std::string::npos)
      << result.out;
  const Result as_json = run({"plan", plan("[ttft_ms.p90 < 20]"), "--output", "json"});
  const auto answer = nlohmann::json::parse(as_json.out);
  EXPECT_EQ(answer["met"], false);
  EXPECT_EQ(answer["plans"].size(), 0U);
  for (const auto& family : answer["families"]) EXPECT_TRUE(family.contains("near_miss"));
}

// The rate grows by a tenth each month. A search of its own, at the rate of the month and from the
// size before on, finds the same fleet; and the size before still holds the month before.
TEST_F(Plan, TheMonthsInWhichItMustGrow) {
  const std::string text = slurp(plan());
  const auto with = [&](const std::string& rate, const std::string& months, const char* least) {
    std::string changed = text;
    const auto swap = [&changed](const std::string& a, const std::string& b) {
      ASSERT_NE(changed.find(a), std::string::npos) << a;
      changed.replace(changed.find(a), a.size(), b);
    };
    swap("  rate: 20\n  growth: 0.5\n", "  rate: " + rate + "\n" + months);
    swap("- {accelerator: H200, tensor_parallel: 1}\n", "policies: [{variant: hashing}]\n");
    swap("min: 1, max: 12", "min: " + std::string(least) + ", max: 12");
    const Result r = run({"plan", write("months.yaml", changed), "--output", "json", "--quiet"});
    EXPECT_EQ(r.code, 0) << r.err;
    return nlohmann::json::parse(r.out)["plans"][0];
  };
  const auto best = with("30", "  growth_per_month: 0.1\n  months: 12\n  from: 2026-12\n", "1");
  const auto& months = best["months"];
  ASSERT_GE(months.size(), 3U);
  EXPECT_EQ(months[0]["month"], 0);
  EXPECT_EQ(months[0]["fleet"]["replicas"], best["replicas"]);
  double sum = 0;
  for (std::size_t i = 0; i < months.size(); ++i) {
    const int month = months[i]["month"];
    EXPECT_DOUBLE_EQ(months[i]["requests_per_s"], 30 * std::pow(1.1, month));
    const int end = i + 1 < months.size() ? months[i + 1]["month"].get<int>() : 12;
    sum += months[i]["fleet"]["price_per_hour"].get<double>() * 730 * (end - month);
    if (i == 0 || i > 2) continue;
    const std::string before = std::to_string(months[i - 1]["fleet"]["replicas"]["a"].get<int>());
    const auto rate = [&](int m) { return number_text(30 * std::pow(1.1, m)); };
    EXPECT_EQ(with(rate(month), "", before.c_str())["needed"], months[i]["fleet"]["replicas"]);
    EXPECT_EQ(with(rate(month - 1), "", before.c_str())["needed"],
              months[i - 1]["fleet"]["replicas"]);
  }
  EXPECT_NEAR(best["price_of_months"], sum, 1e-6);
}

// A router that decides in 40 ms makes 25 decisions a second, for one server and for 12.
TEST_F(Plan, MoreServersDoNotHelpARouter) {
  std::string text = slurp(plan("[ttft_ms.p90 < 400]"));
  text.replace(text.find("- {accelerator: H200, tensor_parallel: 1}\n"), 42,
               "policies: [{variant: hashing, set: ['routing.service_time=40ms']}]\n");
  const Result result = run({"plan", write("router.yaml", text), "--output", "json", "--quiet"});
  EXPECT_EQ(result.code, 1);
  const auto family = nlohmann::json::parse(result.out)["families"][0];
  EXPECT_NEAR(family["router_requests_per_s"].get<double>(), 25, 1e-9);
  EXPECT_LE(family["sizes_tried"], 3);
  const Result told = run({"plan", write("router.yaml", text), "--quiet"});
  EXPECT_NE(told.out.find("No number of servers meets the goals with hashing: its router decides"),
            std::string::npos)
      << told.out;
}

TEST_F(Plan, SparesAreBought) {
  const auto none = nlohmann::json::parse(run({"plan", plan(), "--output", "json"}).out);
  const Result result = run(
      {"plan", plan("[ttft_ms.p90 < 400, tpot_ms.p90 < 30]", "spares: 2\n"), "--output", "json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto spare = nlohmann::json::parse(result.out);
  const auto& first = none["plans"][0];
  for (const auto& found : spare["plans"])
    if (found["hardware"] == first["hardware"] && found["policy"] == first["policy"]) {
      EXPECT_EQ(found["replicas"]["a"], first["replicas"]["a"].get<std::int64_t>() + 2);
      EXPECT_EQ(found["needed"], first["needed"]);
      EXPECT_GE(found["spare_replicas_today"].get<std::int64_t>(), 2);
    }
}

TEST_F(Plan, WhatIsWrongIsSaidAtOnce) {
  plan();
  const std::string file = write("wrong.yaml",
                                 "name: wrong\n"
                                 "scenario: base.yaml\n"
                                 "demand: {rate: 20, set: ['workload.groups.rat={rate}']}\n"
                                 "goals: [tftt_ms.p99 < 500]\n"
                                 "prices: [{accelerator: H1000, per_hour: 3}]\n"
                                 "pools: [{pool: a, min: 4, max: 3}]\n");
  const Result result = run({"plan", file});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  for (const char* text : {"wrong.yaml:4:", "goals[0]", "prices[0].accelerator", "pools[0]"})
    EXPECT_NE(result.err.find(text), std::string::npos) << text << result.err;
  // What is wrong with its fleets is said with it.
  const std::string fleet = write("fleet.yaml",
                                  "name: wrong\n"
                                  "scenario: base.yaml\n"
                                  "demand: {rate: 20, set: ['workload.groups.rat={rate}']}\n"
                                  "goals: [ttft_ms.p99 < 500]\n"
                                  "prices: [{accelerator: L4, per_hour: 3}]\n"
                                  "pools: [{pool: b}]\n");
  const Result unknown = run({"plan", fleet});
  EXPECT_EQ(unknown.code, 2);
  for (const char* text :
       {"pools[0].pool: is no pool of the scenario (got b)", "workload.groups.rat"})
    EXPECT_NE(unknown.err.find(text), std::string::npos) << text << unknown.err;
}

TEST_F(Plan, ALoadWithoutTheRateIsRefused) {
  write("base.yaml", "name: base\n" + two_servers("requests: 100, rate: 20, groups: 8, prefix_len: "
                                                  "512, suffix_len: 64, output_len: 2"));
  const auto plan = [&](const std::string& demand) {
    return run({"plan", "-q",
                write("plan.yaml",
                      "name: million\n"
                      "scenario: base.yaml\n"
                      "demand:\n"
                      "  rate: 1000000\n"
                      "  " +
                          demand +
                          "\n"
                          "goals: [ttft_ms.p99 < 50000]\n"
                          "policies: [{variant: chance}]\n"
                          "prices: [{accelerator: H100-SXM, per_hour: 3}]\n"
                          "pools: [{pool: a, max: 2}]\n")});
  };
  const Result empty = plan("set: []");
  EXPECT_EQ(empty.code, 2) << empty.out;
  EXPECT_NE(empty.err.find("plan.yaml:5:"), std::string::npos) << empty.err;
  EXPECT_NE(empty.err.find("demand.set: is empty"), std::string::npos) << empty.err;
  EXPECT_NE(empty.err.find("workload.groups.rate={rate}"), std::string::npos) << empty.err;
  const Result without = plan("set: ['workload.groups.output_len=3']");
  EXPECT_EQ(without.code, 2) << without.out;
  EXPECT_NE(without.err.find("demand.set: has no {rate}"), std::string::npos) << without.err;
  // The rate is used, but not as the load's rate.
  const Result misplaced = plan("set: ['workload.groups.prefix_len={rate}']");
  EXPECT_EQ(misplaced.code, 2) << misplaced.out;
  EXPECT_NE(misplaced.err.find("its stages ask for 20 requests/s, the plan for 1000000"),
            std::string::npos)
      << misplaced.err;
  EXPECT_NE(misplaced.err.find("plan.yaml:5:"), std::string::npos) << misplaced.err;
}

TEST_F(Plan, ALoadThatFindsItsOwnRatesComparesNoFleets) {
  const std::string examples = ROUTESIM_SOURCE_DIR "/docs/examples/";
  const std::string base =
      "name: loads\n"
      "cluster: {pools: [{name: vllm, accelerator: H100-SXM, model: Qwen3-8B}]}\n"
      "routing: {balancer: round-robin}\n";
  const std::string steady = "workload: {inference_perf: " + examples + "inference-perf.yaml}";
  const std::string probing =
      "workload: {inference_perf: " + examples + "rates.inference-perf.yaml}";
  write("alone.yaml", base + probing + "\n");
  write("both.yaml",
        base + "variants:\n- {name: steady, " + steady + "}\n- {name: probing, " + probing + "}\n");
  const auto plan = [&](const std::string& scenario, const std::string& more) {
    return run({"plan", write("plan.yaml",
                              "name: fleet\n"
                              "scenario: " +
                                  scenario +
                                  "\n"
                                  "demand: {rate: 1, duration: 2s, set: ['workload.inference_perf."
                                  "load.stages=[{rate: {rate}, duration: {seconds}}]']}\n"
                                  "goals: [ttft_ms.p99 < 500000]\n"
                                  "prices: [{accelerator: H100-SXM, per_hour: 3}]\n"
                                  "pools: [{pool: vllm, min: 1, max: 1}]\n" +
                                  more)});
  };
  const Result alone = plan("alone.yaml", "");
  EXPECT_EQ(alone.code, 2);
  EXPECT_NE(alone.err.find("its load.sweep finds other rates"), std::string::npos) << alone.err;
  const Result both = plan("both.yaml", "");
  EXPECT_EQ(both.code, 2);
  EXPECT_NE(both.err.find("load.sweep of variant probing finds"), std::string::npos) << both.err;
  EXPECT_EQ(both.err.find("of variant steady"), std::string::npos) << both.err;
  const Result one = plan("both.yaml", "policies: [{variant: steady}]\n");
  EXPECT_EQ(one.code, 0) << one.err;
}

TEST_F(Plan, TwoPrefixAwareNodesReplaceFiveRandomOnes) {
  const std::string file = ROUTESIM_SOURCE_DIR "/scenarios/plans/moreh-2-nodes-beat-5.yaml";
  const Result result = run({"plan", file, "--output", "json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto answer = nlohmann::json::parse(result.out);
  ASSERT_EQ(answer["plans"].size(), 1U);
  EXPECT_EQ(answer["plans"][0]["policy"], "prefix-aware");
  EXPECT_EQ(answer["plans"][0]["replicas"]["prefill"], 1);
  EXPECT_EQ(answer["plans"][0]["replicas"]["decode"], 1);
  // Random routing does not get there with five nodes, and every smaller split was tried.
  const auto& random = answer["families"][0];
  EXPECT_EQ(random["policy"], "random");
  EXPECT_EQ(random["method"], "scan");
  EXPECT_EQ(random["sizes_tried"], 4);
  EXPECT_FALSE(random.contains("replicas"));
}

// What a plan writes is the fleet that it judged: the same servers, and the same runs. The readers
// of manifests and of scenarios take the files back.
class WrittenFleet : public Plan {
 protected:
  /// A result of `run`, without searches beside it.
  nlohmann::json result_of(const std::string& file, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"run",           file,          "-q", "--output", "json",
                                          "--no-capacity", "--no-kv-band"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.code == 0 ? nlohmann::json::parse(result.out)["variants"][0] : nlohmann::json();
  }

  /// Plans, and compares the files with the answer: `sets` make its fleet of the base scenario.
  /// Goal `g` is the p90 of TTFT, in `unit` s. Every policy is a variant of its name.
  void expect_written(const std::string& plan, const std::string& base,
                      std::vector<std::string> sets, std::size_t g = 0, double unit = 1e-3) {
    const std::string folder = (folder_ / "fleet").string();
    const Result planned = run({"plan", "-q", plan, "-o", "json", "--write", folder});
    ASSERT_EQ(planned.code, 0) << planned.err;
    const auto best = nlohmann::json::parse(planned.out)["plans"][0];
    const std::string written = folder + "/scenario.yaml";
    EXPECT_EQ(run({"check", written}).code, 0) << run({"check", written}).err;
    EXPECT_EQ(run({"check", folder + "/servers.yaml"}).code, 0);
    for (const auto& [pool, n] : best["replicas"].items())
      sets.push_back("cluster.pools[" + pool + "].replicas=" + std::to_string(n.get<int>()));
    const std::string policy = best["policy"];
    std::vector<std::string> more = {"--variant",
                                     policy == "prefix-aware" ? "prefix-aware-1p1d" : policy};
    for (const std::string& set : sets) more.insert(more.end(), {"--set", set});
    const auto asked = result_of(base, more);
    const auto& values = best["goals"][g]["values"];
    const std::string seed = std::to_string(asked["resolved"]["seed"].get<int>());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto found =
          result_of(written, {"--seed", std::to_string(std::stoi(seed) + static_cast<int>(i))});
      auto cluster = found["resolved"]["cluster"];
      for (auto& pool : cluster["pools"]) {  // Hugging Face's names are the catalogue's, too.
        const std::string model = pool["model"];
        pool["model"] = model.substr(model.find('/') + 1);
      }
      EXPECT_EQ(cluster, asked["resolved"]["cluster"]);
      for (const char* key : {"balancer", "decision_latency", "scrape_interval"})
        EXPECT_EQ(found["resolved"]["routing"][key], asked["resolved"]["routing"][key]);
      const char* const router = "routing.endpoint_picker";
      EXPECT_EQ(found["resolved"].value("/files"_json_pointer / router, nlohmann::json()),
                asked["resolved"].value("/files"_json_pointer / router, nlohmann::json()));
      const auto& latency = found["summary"]["successes"]["latency"];
      EXPECT_DOUBLE_EQ(latency["time_to_first_token"]["p90"].get<double>() / unit, values[i]);
    }
  }
};

TEST_F(WrittenFleet, RunsAsThePlanSays) {
  expect_written(plan(), (folder_ / "base.yaml").string(), {});
  const std::string servers = slurp((folder_ / "fleet/servers.yaml").string());
  for (const char* text : {"kind: Deployment", "nvidia.com/gpu.product: NVIDIA-H100",
                           "--tensor-parallel-size=2", "Qwen/Qwen3-32B"})
    EXPECT_NE(servers.find(text), std::string::npos) << servers;
  EXPECT_FALSE(fs::exists(folder_ / "fleet/router.yaml"));
}

// A prefill and a decode pool of many flags, behind a router with a document.
TEST_F(WrittenFleet, HasRolesFlagsAndTheRouter) {
  const std::string scenarios = ROUTESIM_SOURCE_DIR "/scenarios/";
  expect_written(scenarios + "plans/moreh-2-nodes-beat-5.yaml",
                 scenarios + "moreh-deepseek-r1-mi300x.yaml", {}, 1, 1);
  const std::string servers = slurp((folder_ / "fleet/servers.yaml").string());
  for (const char* text :
       {"vllm/vllm-openai-rocm:v0.12.0", "--data-parallel-size=8", "--enable-expert-parallel",
        "--no-enable-chunked-prefill", "--num-gpu-blocks-override=17300", "llm-d.ai/role: prefill",
        "amd.com/gpu: 8", "#   role: decode", "NixlConnector"})
    EXPECT_NE(servers.find(text), std::string::npos) << text << "\n" << servers;
  EXPECT_TRUE(fs::exists(folder_ / "fleet/router.yaml"));
}

// Host memory has flags; the size of the KV cache, as the log counts it, has none.
TEST_F(WrittenFleet, SaysApartWhatNoFlagSays) {
  write("base.yaml",
        "name: base\n" + two_servers("requests: 100, rate: 20, groups: 24, prefix_len: 4096, "
                                     "suffix_len: 256, output_len: 64"));
  expect_written(
      write("plan.yaml",
            "name: small\nscenario: base.yaml\n"
            "set: ['cluster.pools[a].engine.kv_cache_tokens=24000', "
            "'cluster.pools[a].termination={pre_stop: 15s, shutdown_timeout: 60s, grace: "
            "90s}']\n"
            "demand: {rate: 16, set: ['workload.groups.rate={rate}', "
            "'workload.groups.requests={requests}']}\n"
            "goals: [ttft_ms.p90 < 1000]\nknee_limit: 1\n"
            "prices: [{accelerator: H100-SXM, per_hour: 3}]\n"
            "host_memory: {gib: [40], per_gib_hour: 0.01}\n"
            "policies: [{variant: chance}]\npools: [{pool: a, min: 1, max: 12}]\n"),
      (folder_ / "base.yaml").string(),
      {"cluster.pools[a].engine.kv_cache_tokens=24000",
       "cluster.pools[a].termination={pre_stop: 15s, shutdown_timeout: 60s, grace: 90s}",
       "cluster.pools[a].engine.kv_tiers.cpu_gib=40"});
  const std::string servers = slurp((folder_ / "fleet/servers.yaml").string());
  for (const char* text :
       {"--kv-offloading-size=40", "only scenario.yaml says", "#     kv_cache_tokens: 24000",
        "--shutdown-timeout=60\"", "terminationGracePeriodSeconds: 90", "seconds: 15"})
    EXPECT_NE(servers.find(text), std::string::npos) << text << "\n" << servers;
}

TEST_F(WrittenFleet, StartsSglangWhereThePlanDoes) {
  const std::string engine = "cluster.pools[a].engine.";
  const std::vector<std::string> sets = {
      engine + "kind=sglang", engine + "enable_prefix_caching=false",
      engine + "sglang.page_size=16", engine + "sglang.chunked_prefill_size=4096"};
  std::string list;
  for (const std::string& set : sets) list += (list.empty() ? "'" : ", '") + set + "'";
  write("base.yaml",
        "name: base\n" + two_servers("requests: 100, rate: 20, groups: 24, prefix_len: 4096, "
                                     "suffix_len: 256, output_len: 64"));
  expect_written(
      write("plan.yaml", "name: small\nscenario: base.yaml\nset: [" + list +
                             "]\n"
                             "demand: {rate: 8, set: ['workload.groups.rate={rate}', "
                             "'workload.groups.requests={requests}']}\n"
                             "goals: [ttft_ms.p90 < 2000]\nknee_limit: 1\n"
                             "prices: [{accelerator: H100-SXM, per_hour: 3}]\n"
                             "policies: [{variant: chance}]\npools: [{pool: a, min: 1, max: 8}]\n"),
      (folder_ / "base.yaml").string(), sets);
  const std::string servers = slurp((folder_ / "fleet/servers.yaml").string());
  for (const char* text : {"lmsysorg/sglang:v0.5.9", "sglang.launch_server", "--page-size=16",
                           "--chunked-prefill-size=4096", "--disable-radix-cache"})
    EXPECT_NE(servers.find(text), std::string::npos) << text << "\n" << servers;
}

// Nothing appears where nothing was found, or where a file of the plan would be replaced.
TEST_F(WrittenFleet, ReplacesNoInputAndWritesNoMiss) {
  const std::string folder = (folder_ / "none").string();
  const Result missed = run({"plan", "-q", plan("[ttft_ms.p90 < 1]"), "--write", folder});
  EXPECT_EQ(missed.code, 1);
  EXPECT_NE(missed.err.find("is not written: no fleet meets the goals"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder));
  fs::rename(folder_ / "base.yaml", folder_ / "scenario.yaml");
  std::string text = slurp((folder_ / "plan.yaml").string());
  const Result input = run(
      {"plan", "-q", write("plan.yaml", text.replace(text.find("base.yaml"), 9, "scenario.yaml")),
       "--write", folder_.string()});
  EXPECT_EQ(input.code, 2);
  EXPECT_NE(input.err.find("would replace the input"), std::string::npos) << input.err;
}

}  // namespace
}  // namespace routesim::tools::testing
