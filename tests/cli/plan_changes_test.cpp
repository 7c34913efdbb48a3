// Plans for fleets that change: events that must be survived, and days with autoscalers. Every step
// takes 10 ms and 10 requests of 100 tokens share one, so a server answers 10 requests/s.
#include <nlohmann/json.hpp>

#include "tests/cli/cli_fixture.h"

namespace routesim::tools::testing {
namespace {

using Json = nlohmann::json;

class PlanChanges : public Cli {
 protected:
  /// A server is ready 60 s after its pod or container starts, and the router hears of it in 5 s.
  std::string plan(const std::string& keys, const std::string& demand = "rate: 15, ",
                   const std::string& pool = "min: 1, max: 4") const {
    write("metronome.yaml",
          "accelerators:\n"
          "- {name: Metronome, source: made up, bf16_tflops: 100, memory_bytes: 80e9,\n"
          "   memory_tb_per_s: 1, link_gb_per_s: 50, nic_gb_per_s: 10, host_link_gb_per_s: 25}\n"
          "curves:\n"
          "- {accelerator: Metronome, model: Qwen3-8B, parameters: {step_ms: 10},\n"
          "   provenance: made up}\n");
    write("base.yaml",
          "name: by-hand\ncatalogue: [metronome.yaml]\n"
          "workload:\n"
          "  groups: {requests: 100, rate: 1, groups: 4, prefix_len: 16, suffix_len: 16, "
          "output_len: 100}\n"
          "cluster:\n"
          "  pools:\n"
          "  - name: vllm\n"
          "    accelerator: Metronome\n"
          "    model: Qwen3-8B\n"
          "    replicas: 2\n"
          "    engine: {max_num_seqs: 10, async_scheduling: false}\n"
          "    api_server: {request_time: 0s, prompt_token_time: 0s}\n"
          "    start_up: {process: 30s, load: 20s, compile: 0s, warm_up: 10s, probe_period: 0s,\n"
          "               storage: memory}\n"
          "    termination: {shutdown_timeout: 10s}\n"
          "routing: {balancer: round-robin, decision_latency: 0s,\n"
          "          discovery: {join: 5s, leave: 0s, leave_unseen: 0s}}\n");
    return write("plan.yaml",
                 "name: hand\nscenario: base.yaml\n"
                 "demand: {" +
                     demand +
                     "duration: 60s, set: ['workload.groups.rate={rate}', "
                     "'workload.groups.requests={requests}']}\n"
                     "goals: [ttft_ms.p90 < 2000]\nknee_limit: 1\n"
                     "prices: [{accelerator: Metronome, per_hour: 2}]\n"
                     "pools: [{pool: vllm, " +
                     pool + "}]\n" + keys);
  }
  Json answer(const std::string& file, int code = 0) const {
    const Result result = run({"plan", "-q", file, "-o", "json"});
    EXPECT_EQ(result.code, code) << result.err;
    return Json::parse(result.out);
  }
};

const char* const kCrash =
    "survives:\n"
    "- name: a crash\n"
    "  events: [{kind: crash, at: 0s, servers: [0], lasts: 100s}]\n"
    "  max_failure_rate: 0.02\n";

// 15 requests/s need two servers of 10. When one of two is gone for 100 s, 5 requests/s are left
// over, and the last of them wait for 50 s; of three, two are left, and nobody waits.
TEST_F(PlanChanges, ACrashTakesOneServerMore) {
  EXPECT_EQ(answer(plan(""))["plans"][0]["replicas"]["vllm"], 2);
  const std::string file = plan(kCrash);
  const Json found = answer(file);
  const Json& best = found["plans"][0];
  EXPECT_EQ(best["replicas"]["vllm"], 3);
  EXPECT_EQ(best["unprepared"]["replicas"]["vllm"], 2);
  EXPECT_EQ(best["unprepared"]["price_per_hour"], 4);
  const Json& window = best["survives"][0];
  EXPECT_EQ(window["name"], "a crash");
  // 100 s until it is ready again and 5 s until it is known.
  EXPECT_EQ(window["recovery_s"], 105);
  EXPECT_EQ(window["window_s"], 105);
  // Steadiness is no question of a window.
  ASSERT_EQ(window["goals"].size(), 2U);
  EXPECT_EQ(window["goals"][1]["goal"], "failure_rate <= 0.02");
  // 15 requests/s of a second each on three servers: 5 are cut off, of those sent in 105 s and in
  // the two seconds before.
  EXPECT_NEAR(window["goals"][1]["mean"], 5 / (15 * 107.0), 0.001);
  const Json& misses = window["unprepared_misses"];
  EXPECT_EQ(misses["goal"], "ttft_ms.p90 < 2000");
  // The wait of those sent behind nine tenths of 105 s.
  EXPECT_NEAR(misses["mean"].get<double>(), 1e3 * (0.9 * 105 * 0.5), 5e3);
  EXPECT_EQ(misses["survival"], "a crash");
  for (const Json& e : found["evaluated"]) {
    EXPECT_EQ(e["verdict"] == "meets", e["replicas"]["vllm"] >= 3) << e;
  }
  const std::string text = one_line(run({"plan", "-q", file}).out);
  EXPECT_NE(text.find("It also holds through a crash, which costs $2.00 an hour: 2 vllm at $4.00/h "
                      "hold the steady rate, but miss ttft_ms.p90 < 2000 in a crash ("),
            std::string::npos)
      << text;
  EXPECT_EQ(run({"plan", "-q", file, "-o", "json", "--jobs", "3"}).out,
            run({"plan", "-q", file, "-o", "json", "--jobs", "1"}).out);
}

// A roll-out with one server more replaces one after the other: each starts for 60 s.
TEST_F(PlanChanges, WindowsLastUntilAllServersAreBack) {
  const auto window = [&](const std::string& keys) {
    const Json found = answer(plan("survives:\n- {name: it, max_failure_rate: 1, " + keys + "}\n",
                                   "rate: 15, ", "min: 3, max: 3"));
    return found["plans"][0]["survives"][0];
  };
  EXPECT_EQ(
      window(
          "events: [{kind: roll-out, at: 0s, max_surge: '1', max_unavailable: '0'}]")["window_s"],
      3 * 60 + 5);
  // At once, then two at a time.
  EXPECT_EQ(
      window(
          "events: [{kind: roll-out, at: 10s, max_surge: '3', max_unavailable: '0'}]")["window_s"],
      10 + 60 + 5);
  // 1,000 requests take longer than this server does.
  const Json brief = window("events: [{kind: crash, at: 1s, servers: [2], lasts: 10s}]");
  EXPECT_EQ(brief["recovery_s"], 1 + 10 + 5);
  EXPECT_NEAR(brief["window_s"], 1000 / 15.0, 1e-6);
  // Kubernetes gives up the pod of a lost machine after 350 s.
  EXPECT_EQ(window("events: [{kind: node-loss, at: 0s, servers: [0]}]")["recovery_s"],
            350 + 60 + 5);
  // All end first: answers of a second are taken to go on for two of the ten that they may.
  EXPECT_NEAR(
      window("events: [{kind: roll-out, at: 0s, recreate: true}]")["recovery_s"].get<double>(),
      2 + 60 + 5, 0.3);
  const Json cut = window("window: 30s, events: [{kind: crash, at: 0s}]");
  EXPECT_NEAR(cut["window_s"], 30, 1e-9);
  EXPECT_EQ(cut["recovery_s"], 65);
}

TEST_F(PlanChanges, WhatCostsNothingIsSaidToCostNothing) {
  const Result result = run({"plan", "-q", plan(kCrash, "rate: 15, ", "min: 3, max: 4")});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(one_line(result.out)
                .find("It also holds through a crash, which costs nothing: "
                      "without that the fleet would be the same."),
            std::string::npos)
      << result.out;
}

// Two servers are the most: they hold the rate, and no size holds through the crash.
TEST_F(PlanChanges, ANearMissNamesItsEvent) {
  const std::string file = plan(kCrash, "rate: 15, ", "min: 1, max: 2");
  const Json found = answer(file, 1);
  const Json& miss = found["families"][0]["near_miss"];
  EXPECT_EQ(miss["replicas"]["vllm"], 2);
  EXPECT_EQ(miss["survival"], "a crash");
  const Result text = run({"plan", "-q", file});
  EXPECT_NE(one_line(text.out).find("(goal ttft_ms.p90 < 2000 in a crash)"), std::string::npos)
      << text.out;
}

// 0.5 times the profile: 256 server-hours of 1 request/s make a mean of 5.33, and the peak is 14.
const char* const kDay =
    "day:\n"
    "  profile: [{at: 0h, rate: 4}, {at: 8h, rate: 15}, {at: 12h, rate: 28}, {at: 16h, rate: 10},\n"
    "            {at: 20h, rate: 3}]\n"
    "  scale: 0.5\n";
std::string hpa(const std::string& most) {
  return "{kind: hpa, min_replicas: 1, max_replicas: " + most +
         ", metrics: [{type: pods, query: \"vllm:num_requests_running\", target: 7}]}";
}

TEST_F(PlanChanges, ADayIsPricedByTheServersThatItHas) {
  const std::string key = "cluster.pools[vllm].autoscaler=";
  const std::string file =
      plan(std::string(kDay) + "autoscalers:\n- {name: hpa, set: ['" + key + hpa("{servers}") +
               "']}\n- {name: one, set: ['" + key + hpa("1") + "']}\n",
           "");
  const std::string stored = (folder_ / "plan.json").string();
  const Result result = run({"plan", "-q", file, "-o", "table", "-o", "json=" + stored});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json found = Json::parse(slurp(stored));
  EXPECT_EQ(found["planned_rate"], 14);
  EXPECT_NEAR(found["day"]["mean"], 128 / 24.0, 1e-9);
  EXPECT_EQ(found["day"]["hours"], 24);
  const Json& best = found["plans"][0];
  EXPECT_EQ(best["replicas"]["vllm"], 2);
  ASSERT_EQ(best["day"].size(), 3U);
  const Json &fixed = best["day"][0], &scaled = best["day"][1], &one = best["day"][2];
  EXPECT_EQ(fixed["server_hours"], 48);
  EXPECT_EQ(fixed["price_per_day"], 96);
  EXPECT_EQ(fixed["missed"], 0);
  EXPECT_TRUE(fixed["meets"]);
  // The same day by `run`: its server-hours are the area below the servers over time.
  const Result day = run({"run", (folder_ / "base.yaml").string(), "-q", "--no-capacity",
                          "--no-kv-band", "-o", "json", "--set", "workload.groups.rate=14", "--set",
                          "workload.demand={scale: 0.5, profile: [{at: 0h, rate: 4}, {at: 8h, "
                          "rate: 15}, {at: 12h, rate: 28}, {at: 16h, rate: 10}, {at: 20h, "
                          "rate: 3}]}",
                          "--set", key + hpa("2")});
  ASSERT_EQ(day.code, 0) << day.err;
  const Json points = Json::parse(day.out)["variants"][0]["fleet"]["pools"][0]["over_time"];
  double seconds = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double until = i + 1 < points.size() ? points[i + 1]["at_s"].get<double>() : 86'400;
    seconds += points[i]["servers"].get<double>() * (until - points[i]["at_s"].get<double>());
  }
  EXPECT_NEAR(scaled["server_hours"], seconds / 3600, 0.01);
  EXPECT_LT(scaled["server_hours"], 40);
  const double price = scaled["price_per_day"], hours = scaled["server_hours"];
  EXPECT_NEAR(price, 2 * hours, 1e-3 * price);  // the hours begin with the first request
  EXPECT_TRUE(scaled["meets"]);
  // One server of 10 requests/s: from 12:00 on 4 each second are left over, 57,600 by 16:00, and
  // 5 each second are made up for from then on, until 19:12. Eight hours.
  EXPECT_FALSE(one["meets"]);
  EXPECT_EQ(one["missed"], 8);
  EXPECT_EQ(one["goals"][0]["missed"], 8);
  // A request of 15:54 waits for a tenth of the requests before it.
  EXPECT_NEAR(one["goals"][0]["worst"].get<double>(), 1e3 * 0.4 * 3.9 * 3600, 2e5);
  const std::string text = one_line(result.out);
  char costs[160];
  std::snprintf(costs, sizeof costs,
                "hpa costs $%.2f a day instead of $96.00 (%+.0f %%) and meets every goal in every "
                "hour.",
                price, 100 * (price / 96 - 1));
  EXPECT_NE(text.find(costs), std::string::npos) << costs << "\n" << text;
  EXPECT_NE(text.find("but misses ttft_ms.p90 in 8 of 24 hours, worst at 15:00"), std::string::npos)
      << text;
  EXPECT_NE(text.find("The cheapest that meets every goal over the day: 2 vllm"), std::string::npos)
      << text;
}

// Growth multiplies the day, and its peak with it.
TEST_F(PlanChanges, ADayGrowsAsItsPeak) {
  const Json found =
      answer(plan("day: {profile: [{at: 0h, rate: 10}, {at: 30m, rate: 5}], period: "
                  "1h, report_every: 30m}\n",
                  "growth: 0.5, "));
  EXPECT_EQ(found["day"]["peak"], 10);
  EXPECT_EQ(found["day"]["mean"], 7.5);
  EXPECT_EQ(found["rate_today"], 10);
  EXPECT_EQ(found["planned_rate"], 15);
  const Json& fixed = found["plans"][0]["day"][0];
  EXPECT_EQ(found["plans"][0]["replicas"]["vllm"], 2);
  EXPECT_EQ(fixed["server_hours"], 2);
  EXPECT_EQ(fixed["price_per_day"], 96);
  EXPECT_EQ(fixed["stages"], 2);
}

// The last stage has 36 s of the hour's rate, which is not the mean of an hour.
// The last half hour is shorter than an hour, and long enough to tell its rate.
TEST_F(PlanChanges, AHalfStageMayBeThePeak) {
  const Json found =
      answer(plan("day: {profile: [{at: 0h, rate: 5}, {at: 1h, rate: 20}], days: 0.0625}\n", ""));
  EXPECT_EQ(found["day"]["peak"], 20);
  EXPECT_NEAR(found["day"]["mean"].get<double>(), 10, 1e-9);
}

TEST_F(PlanChanges, AShortLastStageIsNoPeak) {
  const Json found = answer(
      plan("day: {profile: [{at: 0h, rate: 5}, {at: 1h, rate: 20}], days: 0.0420833333333}\n", ""));
  EXPECT_EQ(found["day"]["peak"], 5);
  EXPECT_NEAR(found["day"]["hours"], 1.01, 1e-9);
  EXPECT_EQ(found["plans"][0]["replicas"]["vllm"], 1);
}

struct WrongChange {
  const char* keys;
  const char* error;
  const char* demand = "rate: 15, ";
};
// Chats take a second and tell for themselves whether that is enough; batches take three, and
// nobody waits for them. 2 chats and a batch take 5 server-seconds of 30 and more.
TEST_F(PlanChanges, LoadsOfAMixHaveGoalsOfTheirOwn) {
  const auto mix = [this](const std::string& chats, const std::string& keys) {
    plan("");
    const std::string load = "requests: 1000, groups: 4, prefix_len: 16, suffix_len: 16, ";
    return write("mixed.yaml",
                 "name: mixed\nscenario: base.yaml\nset:\n- workload.groups=null\n"
                 "- 'workload.mix=[{name: chat, goodput: " +
                     chats + ", groups: {rate: 0.667, " + load +
                     "output_len: 100}}, {name: batch, groups: {rate: 0.333, " + load +
                     "output_len: 300}}]'\n"
                     "demand: {rate: 15, duration: 60s, set: ['workload.rate_scale={rate}']}\n"
                     "knee_limit: 1\nprices: [{accelerator: Metronome, per_hour: 2}]\n"
                     "pools: [{pool: vllm, min: 3, max: 4}]\n" +
                     keys);
  };
  const Json found = answer(mix("[request_latency:1500ms]", ""));
  EXPECT_EQ(found["plans"][0]["goals"][0]["goal"], "goodput of chat >= 0.95");
  EXPECT_GT(found["plans"][0]["goals"][0]["mean"], 0.95);
  const Json missed = answer(mix("[request_latency:900ms]", ""), 1);
  EXPECT_EQ(missed["evaluated"][0]["goals"][0], 0);
  const Json both = answer(
      mix("[request_latency:1500ms]", "goodput: {share: 0.9, bounds: [request_latency:3500ms]}\n"));
  EXPECT_EQ(both["plans"][0]["goals"][0]["goal"], "goodput >= 0.9");
  EXPECT_EQ(both["plans"][0]["goals"][1]["goal"], "goodput of chat >= 0.9");
  EXPECT_NE(run({"plan", "-q", mix("[]", "")}).err.find("goals: there is nothing to meet"),
            std::string::npos);
}

TEST_F(PlanChanges, PlacesEveryError) {
  const WrongChange cases[] = {
      {"survives: [{name: a, events: []}]", "survives[0].events: is empty"},
      {"set: ['events=[{kind: scale, at: 1s, replicas: 6}]']",
       "scenario: needs fleets that nobody scales, and events[0] changes the number of servers"},
      {"set: ['cluster.pools[vllm].autoscaler={kind: hpa, max_replicas: 3, metrics: [{type: pods, "
       "query: \"vllm:num_requests_running\", target: 7}]}']",
       "scenario: needs fleets that nobody scales, and pool vllm has an autoscaler"},
      {"set: ['workload.demand={profile: [{at: 0h, rate: 3}]}']",
       "demand.set: has no effect: the scenario has rates by the clock"},
      {"", "demand.rate: asks for 0.001 requests/s, too few", "rate: 0.001, "},
      {"day: {arrivals_of: arrivals.csv}", "demand.growth: stands beside day.arrivals_of",
       "growth: 1, "},
      {"survives: [{name: a, events: [{kind: crash, at: 0s, servers: [1]}]}]",
       "survives[0].events[0].servers: names no server of the smallest fleet (got 1)"},
      {"survives: [{name: a, events: [{kind: crash, at: 0s, pool: b}]}]",
       "survives[0].events[0].pool: is the name of no pool (got b)"},
      {"survives: [{name: a, window: 5m, events: [{kind: crash, at: 6m}]}]",
       "survives[0].events[0].at: lies behind the window of 300s (got 360s)"},
      {"survives: [{name: a, events: [{kind: crash, mean_time_between: 1h}]}]",
       "survives[0].events[0].mean_time_between: is a rate"},
      {"survives: [{name: a, events: [{kind: roll-out, at: 0s, to: b}]}]",
       "survives[0].events[0].to: names a pool, and a plan judges fleets that stay"},
      {"survives: [{name: a, events: [{kind: drain, at: 0s, lasts: 5s}]}]",
       "survives[0].events[0].lasts: means nothing for kind drain"},
      {"survives: [{name: a, events: [{kind: crash, at: 0s}]}, {name: a, events: [{kind: crash, "
       "at: 0s}]}]",
       "survives[1].name: is the name of another entry (got a)"},
      {"survives: [{name: a, events: [{kind: crash, at: 0s}]}]",
       "survives: asks about a warm fleet", "rate: 15, cold_start: true, "},
      {"autoscalers: [{name: a, set: ['x=1']}]", "autoscalers: has no effect without a `day`"},
      {"day: {profile: [{at: 0h, rate: 3}]}", "demand.rate: stands beside `day`"},
      {"", "demand.rate: is missing", ""},
      {"day: {}", "day: has no rates", ""},
      {"day: {csv: none.csv}", "day.csv: cannot open", ""},
      {"day: {profile: [{at: 1h, rate: 3}, {at: 1h, rate: 4}]}",
       "day.profile[1].at: must be later than the point before it", ""},
      {"day: {profile: [{at: 0h, rate: 3}]}\nautoscalers: [{name: a, set: ['seed=1']}]",
       "autoscalers[0].set[0]: sets something else than an autoscaler", ""},
      {"day: {profile: [{at: 0h, rate: 3}]}\nautoscalers: [{name: a, set: "
       "['cluster.pools[vllm].autoscaler.kind=hpa']}]",
       "cluster.pools[0].autoscaler.max_replicas: max_replicas is missing", ""}};
  for (const WrongChange& wrong : cases) {
    const Result r = run({"plan", "-q", plan(std::string(wrong.keys) + "\n", wrong.demand)});
    EXPECT_EQ(r.code, 2) << wrong.keys;
    EXPECT_NE(r.err.find(wrong.error), std::string::npos) << wrong.keys << "\n" << r.err;
    EXPECT_NE(r.err.find("plan.yaml:"), std::string::npos) << r.err;
  }
}

}  // namespace
}  // namespace routesim::tools::testing
