// Events and autoscalers, as a user writes them.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/cli/cli_fixture.h"
#include "tools/results/text_table.h"

namespace routesim::tools::testing {
namespace {

using Json = nlohmann::json;

class FleetCli : public Cli {
 protected:
  /// Four servers that start in 10 s, at one request a second for two minutes.
  std::string scenario(const std::string& more, const std::string& pool = "") const {
    return write("s.yaml",
                 "name: s\n"
                 "workload:\n"
                 "  inference_perf:\n"
                 "    load: {type: constant, stages: [{rate: 1, duration: 120}]}\n"
                 "    data:\n"
                 "      type: random\n"
                 "      input_distribution: {type: fixed, mean: 100}\n"
                 "      output_distribution: {type: fixed, mean: 20}\n"
                 "cluster:\n"
                 "  pools:\n"
                 "  - {name: a, replicas: 4, accelerator: H100-SXM, model: Qwen3-8B,\n"
                 "     start_up: {total: 10s}" +
                     pool +
                     "}\n"
                     "routing: {balancer: round-robin}\n" +
                     more);
  }
  Json fleet(const std::string& file) const {
    const Result r = run({"run", file, "--quiet", "--check", "--no-capacity", "-o", "json"});
    EXPECT_EQ(r.code, 0) << r.err;
    return Json::parse(r.out)["variants"][0]["fleet"];
  }
};

TEST_F(FleetCli, TellsWhatHappened) {
  const std::string file = scenario(
      "events:\n"
      "- {kind: crash, at: 30s, servers: [2]}\n"
      "- {kind: scale, at: 60s, replicas: 2}\n");
  const Json found = fleet(file);
  const Json& pool = found["pools"][0];
  EXPECT_EQ(pool["pool"], "a");
  EXPECT_EQ(pool["min_ready"], 2);
  EXPECT_EQ(pool["max_servers"], 4);
  EXPECT_EQ(pool["starts"], 1);
  EXPECT_EQ(pool["ends"], 3);
  // Four servers for 60 s and two until the last answer, a few seconds after 120 s.
  EXPECT_NEAR(pool["mean_servers"].get<double>(), 3.0, 0.05);
  EXPECT_EQ(found["events"][0]["what"], "crashes");
  EXPECT_EQ(found["events"][0]["subject"], "a-2");
  EXPECT_EQ(found["events"][0]["at_s"], 30.0);
  EXPECT_EQ(pool["over_time"][0]["ready"], 4);
  EXPECT_EQ(pool["over_time"][1]["at_s"], 30.0);
  EXPECT_EQ(pool["over_time"][1]["ready"], 3);
  const Result text = run({"run", file, "--quiet", "--tables"});
  EXPECT_NE(text.out.find("a-2 crashes"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("servers, mean"), std::string::npos) << text.out;
}

TEST_F(FleetCli, SaysWhatItCosts) {
  const std::string file = scenario("events:\n- {kind: scale, at: 60s, replicas: 2}\n",
                                    ", tensor_parallel: 2, gpu_price_per_hour: 3.5");
  const Json pool = fleet(file)["pools"][0];
  EXPECT_EQ(pool["price_per_hour"], 7.0);
  const double hours = pool["server_hours"];
  // Four servers for 60 s and two for as long, and until the last answer.
  EXPECT_NEAR(hours * 3600, 4 * 60 + 2 * 60, 20);
  EXPECT_DOUBLE_EQ(pool["gpu_hours"].get<double>(), 2 * hours);
  EXPECT_DOUBLE_EQ(pool["cost"].get<double>(), 7 * hours);
  EXPECT_NE(run({"run", file, "--quiet", "--tables"}).out.find("cost, $"), std::string::npos);
  EXPECT_EQ(run({"run", file, "--quiet", "--set", "expect=[fleet_cost < 1]"}).code, 0);
  EXPECT_EQ(run({"run", file, "--quiet", "--set", "expect=[fleet_cost > 1]"}).code, 1);
}

// Servers are paid for over all hours of a demand: two hours of which nobody asks in the last one,
// or in the first one. An autoscaler goes on in them.
TEST_F(FleetCli, CostsAllHoursOfADemand) {
  const auto cost = [this](const std::string& profile, const std::string& pool) {
    const std::string file = write(
        "s.yaml",
        "name: s\nworkload:\n  demand: {period: 2h, days: 0.0833333333333333, profile: " + profile +
            "}\n  groups: {requests: 1, rate: 1, groups: 1, prefix_len: 16, suffix_len: 16, "
            "output_len: 4}\n"
            "cluster:\n  pools:\n  - {name: a, accelerator: H100-SXM, model: Qwen3-8B, "
            "gpu_price_per_hour: 4, " +
            pool + "}\nrouting: {balancer: round-robin}\n");
    return fleet(file)["pools"][0];
  };
  const std::string early = "[{at: 0h, rate: 0.05}, {at: 1h, rate: 0}]";
  const std::string late = "[{at: 0h, rate: 0}, {at: 1h, rate: 0.05}]";
  for (const std::string& profile : {early, late}) {
    EXPECT_DOUBLE_EQ(cost(profile, "replicas: 1")["server_hours"].get<double>(), 2.0);
    EXPECT_DOUBLE_EQ(cost(profile, "replicas: 1")["cost"].get<double>(), 8.0);
  }
  // Nothing waits: the second server goes when five minutes of that have passed.
  const Json scaled =
      cost(early,
           "replicas: 2, autoscaler: {kind: hpa, max_replicas: 2, metrics: [{type: pods, query: "
           "'vllm:num_requests_waiting', target: 100}]}");
  EXPECT_NEAR(scaled["server_hours"].get<double>(), 2 + 315 / 3600.0, 0.02);
}

// 25 of 120 requests find no server, or lose it, in 25 s of an outage: that is no overload.
TEST_F(FleetCli, CallsAnOutageNoOverload) {
  const std::string file = scenario(
      "goodput: [e2el:2s]\nevents: [{kind: crash, at: 30s, servers: [0, 1, 2, 3], lasts: 25s}]\n");
  const Json found =
      Json::parse(run({"run", file, "--quiet", "--no-capacity", "-o", "json"}).out)["variants"][0];
  EXPECT_NEAR(found["summary"]["failures"]["count"].get<double>(), 26, 2);
  EXPECT_EQ(found["stages"][0]["overloaded"], false);
}

// One server of four is away all the time, and clients give up: that is too much load all the same.
TEST_F(FleetCli, CallsAnOverloadSoWhileAServerIsMissing) {
  const std::string file = scenario("events: [{kind: crash, at: 1s, servers: [0], lasts: 300s}]\n",
                                    ", engine: {max_num_seqs: 2}");
  const Json found =
      Json::parse(run({"run", file, "--quiet", "--no-capacity", "-o", "json", "--set",
                       "workload.inference_perf.load.stages=[{rate: 100, duration: 60}]", "--set",
                       "workload.inference_perf.load.request_timeout=2"})
                      .out)["variants"][0];
  EXPECT_GT(found["summary"]["failures"]["count"].get<double>(), 1'000);
  EXPECT_EQ(found["stages"][0]["overloaded"], true);
}

// A sustained rate is a question about a fleet that stays.
TEST_F(FleetCli, FindsNoCapacityOfAFleetThatChanges) {
  const std::string file = scenario("events: [{kind: scale, at: 60s, replicas: 2}]\n");
  const Json found = Json::parse(run({"run", file, "--quiet", "-o", "json"}).out)["variants"][0];
  EXPECT_EQ(found["capacity"]["why_not"], "events change its servers");
  const std::string empty =
      scenario("events: [{kind: scale, at: 0s, replicas: 2}]\n", ", gpu_price_per_hour: 1");
  EXPECT_EQ(run({"run", empty, "--quiet", "--set", "cluster.pools[0].replicas=0"}).code, 0);
}

// A probe of many servers has as many requests for each: four times the servers hold four times the
// rate, each with prefixes of its own to fill its cache with.
TEST_F(FleetCli, FindsACapacityInProportion) {
  const auto rate = [this](int servers) {
    const std::string
        n = std::to_string(servers),
        file = write(
            "c.yaml",
            "name: c\nworkload:\n  groups: {groups: 40, prefix_len: 1000, suffix_len: 500, "
            "output_len: 50, rate: " +
                std::to_string(20 * servers) + ", requests: " + std::to_string(400 * servers) +
                "}\ncluster:\n  pools:\n  - {name: a, replicas: " + n +
                ", accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2}\n"
                "routing: {balancer: round-robin}\n");
    const Result r = run({"run", file, "--quiet", "--no-kv-band", "-o", "json"});
    return Json::parse(r.out)["variants"][0]["capacity"]["rate"].get<double>();
  };
  EXPECT_NEAR(rate(20) / rate(5), 4, 0.25);
}

// A metric of the whole run has no value in a stage, and an overloaded stage does not blur it.
TEST_F(FleetCli, DecidesAboutTheWholeRun) {
  const std::string file =
      scenario("goodput: [e2el:2s]\nevents: [{kind: crash, at: 30s, lasts: 10s}]\n",
               ", gpu_price_per_hour: 1");
  const Result staged =
      run({"run", file, "--quiet", "--set", "expect=[{that: fleet_cost < 5, stage: '0'}]"});
  EXPECT_EQ(staged.code, 2);
  EXPECT_NE(staged.err.find("stands beside fleet_cost, which no stage has"), std::string::npos)
      << staged.err;
  const std::string stages =
      "workload.inference_perf.load.stages=[{rate: 1, duration: 60}, {rate: "
      "300, duration: 60}]";
  const std::string base = write("base.json", ""), more = write("more.json", "");
  for (const std::string& out : {base, more})
    EXPECT_EQ(run({"run", file, "--quiet", "--no-capacity", "--no-kv-band", "--set", stages,
                   "--set", "cluster.pools[0].engine.max_num_seqs=1", "-o", "json=" + out})
                  .code,
              0);
  const Result compared = run({"compare", base, more, "--fail-if", "fleet_cost>+1%"});
  EXPECT_EQ(compared.code, 0);
  for (const char* row : {"fleet_mean_servers", "fleet_lost", "fleet_cost", "minutes_missed"})
    EXPECT_NE(compared.out.find(std::string("\n") + row + " "), std::string::npos) << row;
  EXPECT_EQ(run({"compare", base, more, "--fail-if", "ttft_ms.mean>+1%"}).code, 4)
      << "one stage of two is overloaded";
}

// The cost of a fleet that does not change: four servers from the first send to the last end.
TEST_F(FleetCli, SaysWhatAFixedFleetCosts) {
  const std::string priced = scenario("goodput: [e2el:2s]\n", ", gpu_price_per_hour: 3.5");
  const Result run_of = run({"run", priced, "--quiet", "-o", "json"});
  const Json found = Json::parse(run_of.out)["variants"][0];
  const Json& pool = found["fleet"]["pools"][0];
  EXPECT_EQ(pool["mean_servers"], 4.0);
  EXPECT_EQ(pool["min_ready"], 4);
  const double hours = pool["server_hours"];
  EXPECT_NEAR(hours * 3600, 4 * 120, 20);
  EXPECT_DOUBLE_EQ(pool["cost"].get<double>(), 3.5 * hours);
  EXPECT_TRUE(found["fleet"]["events"].empty());
  EXPECT_EQ(run({"run", priced, "--quiet", "--set", "expect=[minutes_missed <= 0]"}).code, 0);
  // Requests are those of the fleet without a price, to the byte.
  const Json plain =
      Json::parse(run({"run", scenario("goodput: [e2el:2s]\n", ""), "--quiet", "-o", "json"}).out);
  EXPECT_EQ(plain["variants"][0]["stages"], found["stages"]);
  EXPECT_EQ(plain["variants"][0]["replicas"], found["replicas"]);
  EXPECT_FALSE(plain["variants"][0].contains("fleet"));
}

TEST_F(FleetCli, TellsWhatHasNoEffect) {
  const auto said = [&](const std::string& routing, const std::string& events) {
    std::string text = slurp(scenario(events, ""));
    text.replace(text.find("{balancer: round-robin}"), 23, routing);
    const Result r = run({"check", write("other.yaml", text)});
    EXPECT_EQ(r.code, 0) << r.err;
    return r.err;
  };
  const std::string crash = "events: [{kind: crash, at: 1s}]\n";
  const std::string smg = "{balancer: smg-round-robin, smg: {";
  EXPECT_EQ(said(smg + "cb_failure_threshold: 3}}", crash).find("smg"), std::string::npos);
  EXPECT_NE(said(smg + "cb_failure_threshold: 3}}", "")
                .find("routing.smg: has no effect: no server fails without events"),
            std::string::npos);
  EXPECT_EQ(said(smg + "disable_circuit_breaker: true}}", crash).find("smg"), std::string::npos);
  EXPECT_NE(said(smg + "disable_circuit_breaker: true, cb_failure_threshold: 3}}", crash)
                .find("routing.smg.disable_circuit_breaker: leaves the other settings"),
            std::string::npos);
  EXPECT_NE(said("{balancer: round-robin}", "events: [{kind: kv-events-lost, at: 1s, lasts: 1s}]\n")
                .find("events[0].kind: has no effect: this router hears no KV events"),
            std::string::npos);
  write("picker.yaml",
        "apiVersion: inference.networking.x-k8s.io/v1alpha1\nkind: EndpointPickerConfig\n"
        "plugins: [{type: random-picker}, {type: concurrency-detector}]\n"
        "saturationDetector: {pluginRef: concurrency-detector}\nschedulingProfiles:\n- name: "
        "default\n"
        "  plugins: [{pluginRef: random-picker}]\n");
  EXPECT_NE(
      said("{endpoint_picker: picker.yaml}", "events: [{kind: scrapes-lost, at: 1s, lasts: 1s}]\n")
          .find("events[0].kind: has no effect: this router decides without metrics"),
      std::string::npos);
}

/// A router, servers and their autoscaler.
const char* const kObjects =
    "apiVersion: apps/v1\n"
    "kind: Deployment\n"
    "metadata: {name: router}\n"
    "spec:\n"
    "  template:\n"
    "    spec:\n"
    "      containers:\n"
    "      - {name: r, image: 'smg:1', command: [smg, --policy, round_robin]}\n"
    "---\n"
    "apiVersion: apps/v1\n"
    "kind: Deployment\n"
    "metadata: {name: servers}\n"
    "spec:\n"
    "  template:\n"
    "    metadata: {labels: {app: v}}\n"
    "    spec:\n"
    "      terminationGracePeriodSeconds: 40\n"
    "      containers:\n"
    "      - {name: v, image: 'vllm/vllm-openai:v0.10.0', command: [vllm, serve, "
    "Qwen/Qwen3-8B]}\n"
    "---\n"
    "apiVersion: autoscaling/v2\n"
    "kind: HorizontalPodAutoscaler\n"
    "metadata: {name: h}\n"
    "spec:\n"
    "  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: servers}\n"
    "  minReplicas: 1\n"
    "  maxReplicas: 3\n"
    "  metrics:\n"
    "  - type: Pods\n"
    "    pods: {metric: {name: 'vllm:num_requests_running'},\n"
    "      target: {type: AverageValue, averageValue: 50}}\n";

TEST_F(FleetCli, ReadsTheAutoscalerInARoutersFile) {
  write("router.yaml", kObjects);
  const std::string file = scenario("", "");
  std::string text = slurp(file);
  text.replace(text.find("{balancer: round-robin}"), 23, "{config: router.yaml}");
  const std::string changed = write("with_router.yaml", text);
  // It takes the server beyond its bound away at its first look.
  EXPECT_EQ(fleet(changed)["pools"][0]["max_servers"], 4);
  EXPECT_EQ(fleet(changed)["pools"][0]["min_ready"], 3);
  const Result keys = run({"check", changed, "--keys"});
  EXPECT_NE((keys.out + keys.err).find("spec.maxReplicas"), std::string::npos) << keys.out;
  EXPECT_NE(keys.err.find("scales the servers of pool a"), std::string::npos) << keys.err;
  // The pool's own keys win, also beside those of the file.
  const Result own = run({"run", changed, "--quiet", "--no-capacity", "-o", "json", "--set",
                          "cluster.pools[0].termination={pre_stop: 3s}", "--set",
                          "cluster.pools[0].autoscaler=null"});
  ASSERT_EQ(own.code, 0) << own.err;
  const Json resolved = Json::parse(own.out)["variants"][0]["resolved"]["cluster"]["pools"][0];
  EXPECT_EQ(resolved["termination"]["pre_stop"], "3s");
  EXPECT_EQ(resolved["termination"]["grace"], "40s");
  // An autoscaler of the router is none of the servers.
  std::string of_router = kObjects;
  of_router.replace(of_router.find("name: servers}\n  minReplicas"), 13, "name: router");
  write("router.yaml", of_router);
  const Result routers = run({"check", changed});
  EXPECT_EQ(routers.code, 0) << routers.err;
  EXPECT_NE(routers.err.find("is not used"), std::string::npos) << routers.err;
}

// The servers are back after 10 s of start-up.
TEST_F(FleetCli, SaysWhatHappensInVain) {
  const Json events =
      fleet(scenario("events:\n"
                     "- {kind: crash, at: 30s, servers: [0, 1, 2, 3]}\n"
                     "- {kind: drain, at: 31s}\n"
                     "- {kind: router-restart, at: 5h}\n"))["events"];
  ASSERT_EQ(events[4]["at_s"], 31.0);
  EXPECT_EQ(events[4]["what"], "sees no drain: it has no server that serves");
  EXPECT_EQ(events.back()["at_s"], 18'000.0);
  EXPECT_EQ(events.back()["what"], "sees no router-restart: the run is over");
}

TEST_F(FleetCli, IsSilentWhereNothingChanges) {
  const Result r = run({"run", scenario(""), "--quiet", "--no-capacity", "-o", "json"});
  EXPECT_FALSE(Json::parse(r.out)["variants"][0].contains("fleet"));
}

TEST_F(FleetCli, ScalesByWhatServersSay) {
  // One request a second of 20 tokens: far below 50 in each server, so one server is enough.
  const Json found = fleet(scenario("",
                                    ", autoscaler: {kind: hpa, min_replicas: 1, max_replicas: 6,\n"
                                    "     metrics: [{type: pods, query: "
                                    "\"vllm:num_requests_running\", target: 50}],\n"
                                    "     behavior: {scale_down: {stabilization_window_seconds: "
                                    "0}}}"));
  EXPECT_EQ(found["pools"][0]["min_ready"], 1);
}

/// The first error of a scenario with these events.
struct Wrong {
  const char* events;
  const char* error;
};

TEST_F(FleetCli, PlacesEveryError) {
  const Wrong cases[] = {
      {"- {kind: crash}", "events[0].at: is missing: when does it happen?"},
      {"- {kind: crash, at: 1s, mean_time_between: 5s}",
       "events[0].mean_time_between: stands beside `at`"},
      {"- {kind: crash, at: 1s, servers: [4]}",
       "events[0].servers: has no server of this number (got 4)"},
      {"- {kind: crash, at: 1s, pool: b}", "events[0].pool: is the name of no pool (got b)"},
      {"- {kind: crash, at: 1s, factor: 2}", "events[0].factor: means nothing for kind crash"},
      {"- {kind: slow, at: 1s}", "events[0].factor: is missing"},
      {"- {kind: scale, at: 1s}", "events[0].replicas: is missing"},
      {"- {kind: drain, at: 1s, lasts: 5s}", "events[0].lasts: means nothing for kind drain"},
      {"- {kind: roll-out, at: 1s, max_surge: many}",
       "events[0].max_surge: must be a number or a percentage (got many)"},
      {"- {kind: crash, at: 1s, servers: [1, 1]}",
       "events[0].servers: names a server twice (got 1)"},
      {"- {kind: roll-out, at: 1s, max_surge: 0, max_unavailable: 0%}",
       "events[0].max_unavailable: is 0 beside a max_surge of 0"},
      {"- {kind: roll-out, at: 1s, to: a}", "events[0].to: is the pool itself"},
      {"- {kind: roll-out, mean_time_between: 1h}",
       "events[0].mean_time_between: is of failures of servers"},
      {"- {kind: router-restart, at: 1s, router: 1}",
       "events[0].router: is the number of no process"},
      {"- {kind: explode, at: 1s}", "events[0].kind: must be one of"}};
  for (const Wrong& wrong : cases) {
    const Result r = run({"run", scenario("events:\n" + std::string(wrong.events) + "\n")});
    EXPECT_EQ(r.code, 2) << wrong.events;
    EXPECT_NE(r.err.find(wrong.error), std::string::npos) << wrong.events << "\n" << r.err;
    EXPECT_NE(r.err.find("s.yaml:15:"), std::string::npos) << r.err;
  }
}

// A roll-out moves a Deployment, which has one role and one autoscaler.
TEST_F(FleetCli, RefusesPoolsThatARollOutCannotFill) {
  const auto refused = [this](const std::string& first, const std::string& second) {
    const std::string to = "}\n  - {name: b, accelerator: H100-SXM, model: Qwen3-8B";
    return run({"run", scenario("events:\n- {kind: roll-out, at: 1s, pool: a, to: b}\n",
                                first + to + second)})
        .err;
  };
  EXPECT_NE(refused(", role: prefill", ", role: decode")
                .find("events[0].to: is a pool of role decode, and its servers would replace those "
                      "of role prefill"),
            std::string::npos);
  const std::string scaler =
      ", autoscaler: {kind: hpa, max_replicas: 5, metrics: [{type: pods, query: "
      "\"vllm:num_requests_running\", target: 5}]}";
  EXPECT_NE(refused("", scaler).find("cluster.pools[1].autoscaler: is of a pool that a roll-out"),
            std::string::npos);
  EXPECT_NE(refused("", ", most_evicted: 1, min_available: 1")
                .find("cluster.pools[1].min_available: stands beside most_evicted"),
            std::string::npos);
  EXPECT_NE(refused("", ", min_available: x")
                .find("cluster.pools[1].min_available: must be a number or a percentage (got x)"),
            std::string::npos);
}

TEST_F(FleetCli, RefusesAnAutoscalerThatCannotRun) {
  const Result r = run({"run", scenario("",
                                        ", autoscaler: {kind: hpa, min_replicas: 5, max_replicas: "
                                        "2, metrics: [{type: pods, query: \"nonsense(\"}]}")});
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("cluster.pools[0].autoscaler"), std::string::npos) << r.err;
}

// Events at the very beginning, two at once, and after the end.
TEST_F(FleetCli, SurvivesEventsAtOddTimes) {
  for (const char* events :
       {"- {kind: crash, at: 0s, servers: [0, 1, 2, 3]}",
        "- {kind: drain, at: 0s, servers: [0, 1]}",
        "- {kind: crash, at: 10s, servers: [1]}\n- {kind: drain, at: 10s, servers: [1]}",
        "- {kind: crash, at: 2000h}", "- {kind: scale, at: 5s, replicas: 0}",
        "- {kind: roll-out, at: 5s}\n- {kind: roll-out, at: 6s}\n- {kind: scale, at: 7s, replicas: "
        "9}",
        "- {kind: node-loss, at: 5s, servers: [0, 1, 2, 3]}"}) {
    const Result r = run({"run", scenario("events:\n" + std::string(events) + "\n"), "--quiet",
                          "--check", "--no-capacity"});
    EXPECT_EQ(r.code, 0) << events << "\n" << r.err;
  }
}

// llm-d's guide to scaling by predicted latency (guides/workload-autoscaling/slo-aware, commit
// d38c9f0): 95.8 % of requests within both goals with 5.93 servers on average, 100 % with eight.
// Nothing was fitted to it.
TEST_F(FleetCli, ComesCloseToThePublishedEpisode) {
  const Result r =
      run({"run",
           std::string(ROUTESIM_SOURCE_DIR) + "/scenarios/llm-d-qwen3-32b-16xh100-autoscale.yaml",
           "--quiet", "--no-capacity", "--no-kv-band", "-o", "json"});
  ASSERT_EQ(r.code, 0) << r.err;
  const Json found = Json::parse(r.out);
  const auto share = [&](int variant) {
    return found["variants"][variant]["summary"]["goodput"]["percentage"].get<double>();
  };
  EXPECT_NEAR(share(0), 100, 0.01);
  EXPECT_NEAR(share(1), 95.8, 5);
  const Json& pool = found["variants"][1]["fleet"]["pools"][0];
  EXPECT_NEAR(pool["mean_servers"].get<double>(), 5.93, 0.593);
}

// The places that servers may have are no servers, and a stage that an autoscaler shrinks says
// nothing of lower rates.
TEST_F(FleetCli, SaysTheServersOverTime) {
  const Result r =
      run({"run",
           std::string(ROUTESIM_SOURCE_DIR) + "/scenarios/llm-d-qwen3-32b-16xh100-autoscale.yaml",
           "--quiet", "--no-capacity", "--no-kv-band"});
  std::string text = r.out;
  std::replace(text.begin(), text.end(), '\n', ' ');
  EXPECT_NE(text.find("servers instead of 5.97 on average)"), std::string::npos) << r.out;
  EXPECT_EQ(text.find("scan lower rates"), std::string::npos) << r.out;
}

/// A shipped scenario's results, without the runs around them.
Json shipped(const std::function<Result(const std::vector<std::string>&)>& run,
             const std::string& name) {
  const Result r = run({"run", std::string(ROUTESIM_SOURCE_DIR) + "/scenarios/" + name, "--quiet",
                        "--no-capacity", "--no-kv-band", "-o", "json"});
  EXPECT_EQ(r.code, 0) << r.err;
  return Json::parse(r.out)["variants"];
}

void expect_in_readme(const std::string& sentence) {
  std::string readme = slurp(std::string(ROUTESIM_SOURCE_DIR) + "/README.md");
  std::replace(readme.begin(), readme.end(), '\n', ' ');
  EXPECT_NE(readme.find(sentence), std::string::npos) << sentence;
}

TEST_F(FleetCli, TheReadmeSaysWhatARollOutAndACrashDo) {
  const Json found =
      shipped([this](const auto& a) { return run(a); }, "fleet-rollout-and-crash-8xh100.yaml");
  std::string lost;
  for (const Json& v : found) {
    // All that is lost is lost to the crash: answers end while preStop hooks sleep.
    lost += (lost.empty() ? "" : ", ") + std::to_string(v["fleet"]["lost"].get<int>());
    // Goals are missed when 160 conversations begin a stage together, and besides at most once.
    int others = 0;
    for (const Json& span : v["timeline"]["goals"]["missed"]) {
      const std::string why = span["why"];
      others += why.starts_with("stage ") ? 0 : 1;
      EXPECT_EQ(why.find("crashes"), why.npos) << why;
    }
    EXPECT_LE(others, 1) << v["timeline"]["goals"]["missed"];
  }
  expect_in_readme("A crash of one of eight servers cuts off " + lost +
                   " of 16,000 requests behind precise, approximate and session routing, and the "
                   "roll-out none");
  for (const Json& v : found) EXPECT_EQ(v["fleet"]["pools"][0]["ends"], 9);
}

TEST_F(FleetCli, TheReadmeSaysWhatADayCosts) {
  const Json found = shipped([this](const auto& a) { return run(a); }, "fleet-day-16xh100.yaml");
  std::vector<std::string> parts;
  for (const Json& v : found) {
    double missed = 0;
    for (const Json& span : v["timeline"]["goals"]["missed"])
      missed += (span["to_s"].get<double>() - span["from_s"].get<double>()) / 60;
    parts.push_back(fixed_text(v["fleet"]["pools"][0]["mean_servers"].get<double>(), 1));
    parts.push_back(fixed_text(missed, 0));
  }
  ASSERT_EQ(parts.size(), 6U);
  expect_in_readme(parts[0] + " static servers miss the goals in " + parts[1] + " minutes, " +
                   parts[2] + " under Kubernetes' HPA in " + parts[3] + ", and " + parts[4] +
                   " under KEDA in " + parts[5] + ".");
  EXPECT_GE(found[0]["summary"]["load_summary"]["count"].get<int>(), 1'000'000);
}

}  // namespace
}  // namespace routesim::tools::testing
