#include "sim/scaling/autoscaler.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/fleet/fake_fleet.h"

namespace routesim::sim {
namespace {

SimTime moment(double seconds) { return SimTime::zero() + Duration::from_seconds(seconds); }

/// Replicas, and when they were asked for.
using Changes = std::vector<std::pair<double, std::int32_t>>;

/// Runs until `end`; `world(t, fleet)` sets what is true at each look. Pods come and go at once.
template <class World>
Changes run_until(double end, const AutoscalerConfig& config, FakeFleet& fleet,
                  const World& world) {
  Autoscaler scaler(config, SimTime::zero());
  Changes changes;
  for (SimTime now = scaler.next_look(); now <= moment(end); now = scaler.next_look()) {
    world(now.to_seconds(), fleet);
    if (const std::optional<std::int32_t> replicas = scaler.look(now, fleet)) {
      fleet.spec = *replicas;
      fleet.follow();
      changes.emplace_back(now.to_seconds(), *replicas);
    }
    EXPECT_GT(scaler.next_look(), now);
  }
  return changes;
}

AutoscalerConfig hpa_config() {
  AutoscalerConfig config;
  config.max_replicas = 8;
  config.metrics = {{ScalingMetricType::kExternal, "sum(llm_d_epp_flow_control_queue_size)",
                     ScalingTargetType::kAverageValue, 5}};
  return config;
}

TEST(Autoscaler, SeesAnHpaMetricWhenItWasScraped) {
  FakeFleet fleet;
  fleet.spec = 1;
  fleet.follow();
  const Changes changes = run_until(400, hpa_config(), fleet, [](double t, FakeFleet& f) {
    f.values[{FleetMetric::kFlowQueue, kPool}] = t >= 20 && t < 60 ? 12 : 2;
  });
  // 12 are there at 20 s, scraped at 30 s, seen by the sync of 37.5 s: three replicas. The last
  // sync that sees them is that of 67.5 s, whose sample is of 45 s; it still sees those of 60 s as
  // 2. So 52.5 s is the last recommendation of three, and it counts for 300 s.
  EXPECT_EQ(changes, (Changes{{37.5, 3}, {367.5, 1}}));
}

TEST(Autoscaler, AveragesMetricsOfPods) {
  AutoscalerConfig config = hpa_config();
  config.metrics = {{ScalingMetricType::kPods, "vllm:num_requests_waiting",
                     ScalingTargetType::kAverageValue, 10}};
  FakeFleet fleet;
  fleet.spec = 2;
  fleet.follow();
  const Changes changes = run_until(60, config, fleet, [](double, FakeFleet& f) {
    // Later pods do not answer.
    f.values[{FleetMetric::kWaiting, 0}] = 25;
    f.values[{FleetMetric::kWaiting, 1}] = 20;
  });
  // 22.5 per pod ask for five pods, and one sync allows four. Two of them count as idle then, which
  // leaves 11.25 per pod: five. 9 per pod are within the tolerance.
  EXPECT_EQ(changes, (Changes{{22.5, 4}, {37.5, 5}}));
}

AutoscalerConfig zero_config() {
  AutoscalerConfig config;
  config.kind = AutoscalerKind::kKeda;
  config.max_replica_count = 4;
  config.cooldown_period = Duration::seconds(60);
  KedaTriggerConfig queue;
  queue.query = "sum(llm_d_epp_flow_control_queue_size)";
  queue.threshold = 4;
  config.triggers = {queue};
  return config;
}

TEST(Autoscaler, KedaWakesAPoolAndLetsItSleep) {
  FakeFleet fleet;
  const Changes changes = run_until(400, zero_config(), fleet, [](double t, FakeFleet& f) {
    f.values[{FleetMetric::kFlowQueue, kPool}] = t >= 16 && t < 100 ? 10 : 0;
  });
  // Rounds at 7.5 s, 37.5 s ...; syncs at 22.5 s, 37.5 s .... The round of 37.5 s wakes the pool,
  // and the HPA's sync of the same instant asks for ceil(10 / 4). The round of 97.5 s is the last
  // that sees a queue, and is kept as 97 s; at 157.5 s its 60 s are past.
  EXPECT_EQ(changes, (Changes{{37.5, 3}, {157.5, 0}}));
}

/// A queue that never changes, and the replicas after ten minutes.
std::int32_t settled(const AutoscalerConfig& config, std::int32_t replicas, double queue) {
  FakeFleet fleet;
  fleet.spec = replicas;
  fleet.follow();
  run_until(600, config, fleet, [queue](double, FakeFleet& f) {
    if (queue >= 0) f.values[{FleetMetric::kFlowQueue, kPool}] = queue;
    f.values[{FleetMetric::kWaiting, 0}] = f.values[{FleetMetric::kWaiting, 1}] = 20;
  });
  return fleet.spec;
}

TEST(Autoscaler, AsksAsTheMetricsServersDo) {
  // Nothing is known: the HPA stays. A prometheus trigger takes it for 0, unless it must not.
  EXPECT_EQ(settled(hpa_config(), 3, -1), 3);
  EXPECT_EQ(settled(zero_config(), 3, -1), 0);
  AutoscalerConfig strict = zero_config();
  strict.triggers[0].ignore_null_values = false;
  EXPECT_EQ(settled(strict, 3, -1), 3);
  // prometheus-adapter takes NaN for 0.
  AutoscalerConfig nan = hpa_config();
  nan.metrics[0].query = "0 * sum(llm_d_epp_flow_control_queue_size) / 0";
  EXPECT_EQ(settled(nan, 3, 7), 1);
  // Two elements are an error of KEDA's, and a sum of an HPA's.
  AutoscalerConfig pods = zero_config();
  pods.triggers[0].query = "vllm:num_requests_waiting";
  EXPECT_EQ(settled(pods, 2, 0), 2);
  AutoscalerConfig summed = hpa_config();
  summed.metrics[0].query = "vllm:num_requests_waiting";
  EXPECT_EQ(settled(summed, 2, 0), 8);
}

TEST(Autoscaler, HeedsTheControllersFlags) {
  AutoscalerConfig config = hpa_config();
  config.controller.tolerance = 0.5;
  EXPECT_EQ(settled(config, 2, 15), 2);
  EXPECT_EQ(settled(config, 2, 16), 4);
  config.controller.downscale_stabilization = Duration::zero();
  FakeFleet fleet;
  fleet.spec = 4;
  fleet.follow();
  const Changes changes = run_until(60, config, fleet, [](double, FakeFleet& f) {
    f.values[{FleetMetric::kFlowQueue, kPool}] = 5;
  });
  // At its first sync the controller notes the present scale, which is not old then.
  EXPECT_EQ(changes, (Changes{{37.5, 1}}));
}

TEST(Autoscaler, AnHpaSleepsAndWakesWithItsGate) {
  AutoscalerConfig config = hpa_config();
  config.min_replicas = 0;
  config.controller.scale_to_zero = true;
  config.controller.downscale_stabilization = Duration::seconds(60);
  ASSERT_TRUE(autoscaler_faults(config).empty());
  FakeFleet fleet;
  fleet.spec = 2;
  fleet.follow();
  const Changes changes = run_until(300, config, fleet, [](double t, FakeFleet& f) {
    f.values[{FleetMetric::kFlowQueue, kPool}] = t >= 200 ? 8 : 0;
  });
  // The scale noted at 22.5 s is 60 s old at 82.5 s and still counts. From zero, the queue scraped
  // at 210 s asks for ceil(8 / 5).
  EXPECT_EQ(changes, (Changes{{97.5, 0}, {217.5, 2}}));
}

TEST(Autoscaler, DoesNotCountPodsThatTerminate) {
  Autoscaler scaler(hpa_config(), SimTime::zero());
  FakeFleet fleet;
  fleet.spec = 3;
  fleet.follow();
  fleet.spec = 2;
  fleet.all[2].state.terminating = true;
  // 10.9 over two pods are within the tolerance; over three they would not be.
  fleet.values[{FleetMetric::kFlowQueue, kPool}] = 10.9;
  while (scaler.next_look() <= moment(60))
    EXPECT_EQ(scaler.look(scaler.next_look(), fleet), std::nullopt);
}

TEST(Autoscaler, ReusesWhatTheLastRoundSaw) {
  AutoscalerConfig config = zero_config();
  config.min_replica_count = 1;
  const auto first_change = [&] {
    FakeFleet fleet;
    fleet.spec = 1;
    fleet.follow();
    const Changes changes = run_until(90, config, fleet, [](double t, FakeFleet& f) {
      f.values[{FleetMetric::kFlowQueue, kPool}] = t >= 40 ? 12 : 0;
    });
    return changes.empty() ? 0 : changes[0].first;
  };
  // Scraped at 45 s; the sync of 52.5 s asks anew. The round before was at 37.5 s, the next is at
  // 67.5 s.
  EXPECT_EQ(first_change(), 52.5);
  config.triggers[0].use_cached_metrics = true;
  EXPECT_EQ(first_change(), 67.5);
}

TEST(Autoscaler, APausedPoolHasNoHpa) {
  AutoscalerConfig config = zero_config();
  config.annotations.emplace().paused = true;
  EXPECT_EQ(settled(config, 2, 40), 2);
  config.annotations->paused_replicas = 3;
  EXPECT_EQ(settled(config, 2, 40), 3);
}

TEST(Autoscaler, CountsFailuresOfRoundsAloneWhileThereIsNoPod) {
  AutoscalerConfig config = zero_config();
  config.triggers[0].ignore_null_values = false;
  config.fallback = {3, 2, KedaFallbackBehavior::kStatic};
  FakeFleet fleet;
  const Changes changes = run_until(200, config, fleet, [](double, FakeFleet&) {});
  // The fourth failure in a row is that of the round of 97.5 s. The fallback wakes one replica, and
  // the HPA then reads two replicas' worth.
  EXPECT_EQ(changes, (Changes{{97.5, 2}}));
}

/// llm-d's guide to scaling by predicted latency, guides/workload-autoscaling/slo-aware.
AutoscalerConfig latency_config() {
  AutoscalerConfig config;
  config.kind = AutoscalerKind::kKeda;
  config.min_replica_count = 3;
  config.max_replica_count = 8;
  config.polling_interval = Duration::seconds(15);
  config.prometheus.scrape_interval = Duration::seconds(5);
  config.prometheus.recording_rules = {
      {"epp:ttft",
       "((histogram_quantile(0.9, sum(rate(llm_d_epp_request_predicted_ttft_seconds_bucket[1m])) "
       "by (le)) >= 0) or (histogram_quantile(0.9, "
       "sum(rate(llm_d_epp_request_ttft_seconds_bucket[1m])) by (le)) >= 0)) or vector(0)"},
      {"epp:tpot",
       "((histogram_quantile(0.9, sum(rate(llm_d_epp_request_predicted_tpot_seconds_bucket[1m])) "
       "by (le)) >= 0) or (histogram_quantile(0.9, "
       "sum(rate(llm_d_epp_request_streaming_tpot_seconds_bucket[1m])) by (le)) >= 0)) or "
       "vector(0)"},
      {"epp:raw", "((epp:ttft / 3.0) >= (epp:tpot / 0.1)) or (epp:tpot / 0.1)"},
      {"epp:clamped", "clamp_max(epp:raw, 2.0)"},
      {"epp:smoothed", "avg_over_time(epp:clamped[45s])"}};
  const auto trigger = [](const char* name, const char* query) {
    KedaTriggerConfig t;
    t.name = name;
    t.query = query;
    return t;
  };
  config.triggers = {trigger("saturation", "epp:smoothed"),
                     trigger("replicas", "max(kube_deployment_status_replicas)"),
                     trigger("ready", "max(kube_deployment_status_replicas_ready)")};
  config.scaling_modifiers.emplace();
  config.scaling_modifiers->formula =
      "saturation > 0.55\n? replicas + ceil(replicas * (saturation * (ready > 0 && ready < "
      "replicas ? ready / replicas : 1.0) / 0.55 - 1))\n: (saturation < 0.40 ? replicas - "
      "floor(replicas * (1 - saturation / 0.40)) : replicas)";
  config.behavior.emplace();
  config.behavior->scale_up.emplace();
  config.behavior->scale_up->stabilization_window_seconds = 30;
  config.behavior->scale_up->policies = {{HpaPolicyType::kPercent, 100, 60},
                                         {HpaPolicyType::kPods, 4, 60}};
  config.behavior->scale_down.emplace();
  config.behavior->scale_down->stabilization_window_seconds = 180;
  config.behavior->scale_down->policies = {{HpaPolicyType::kPods, 1, 120}};
  return config;
}

/// Predictions between 2 and 3 s, whose quantile is 2.9 s, if TTFT is high; TPOT's is 0.019 s.
void observe(FakeFleet& fleet, bool is_high) {
  if (is_high) fleet.histogram_of(FleetMetric::kRouterPredictedTtft).add(2.5);
  fleet.histogram_of(FleetMetric::kRouterPredictedTpot).add(0.015);
  fleet.values[{FleetMetric::kReplicas, kPool}] = fleet.spec;
}

/// What the formula asks for while nobody follows it.
std::int32_t proposal(std::int32_t replicas, std::int32_t ready, bool is_high) {
  Autoscaler scaler(latency_config(), SimTime::zero());
  FakeFleet fleet;
  fleet.spec = replicas;
  fleet.follow();
  fleet.values[{FleetMetric::kReplicasReady, kPool}] = ready;
  while (scaler.next_look() < moment(300)) {
    observe(fleet, is_high);
    scaler.look(scaler.next_look(), fleet);
  }
  return scaler.last_decision().proposed;
}

TEST(Autoscaler, ScalesByPredictedLatency) {
  ASSERT_TRUE(autoscaler_faults(latency_config()).empty());
  // 2.9 / 3 is 0.967 of the goal: 3 + ceil(3 * (0.967 / 0.55 - 1)).
  EXPECT_EQ(proposal(3, 3, true), 6);
  // Pods on their way are credited: 0.967 * 2 / 3.
  EXPECT_EQ(proposal(3, 2, true), 4);
  // TPOT alone is 0.19: 5 - floor(5 * (1 - 0.19 / 0.4)).
  EXPECT_EQ(proposal(5, 5, false), 3);
}

TEST(Autoscaler, DrainsOnePodInTwoMinutes) {
  FakeFleet fleet;
  fleet.spec = 8;
  fleet.follow();
  const Changes changes = run_until(1500, latency_config(), fleet, [](double, FakeFleet& f) {
    observe(f, false);
    f.values[{FleetMetric::kReplicasReady, kPool}] = f.spec;
  });
  // Rules at 2.5 s and every 15 s, syncs 7.5 s after them from 25 s on. The scale at the first sync
  // is the highest of 180 s.
  EXPECT_EQ(changes, (Changes{{205, 7}, {325, 6}, {445, 5}, {565, 4}, {685, 3}}));
}

TEST(Autoscaler, StaysWithinItsBounds) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    const auto up_to = [&](unsigned most) {
      return static_cast<std::int32_t>(random() % (most + 1));
    };
    AutoscalerConfig config = seed % 3 == 0   ? hpa_config()
                              : seed % 3 == 1 ? zero_config()
                                              : latency_config();
    if (config.kind == AutoscalerKind::kHpa) {
      config.min_replicas = 1 + up_to(3);
    } else if (seed % 2 == 0) {
      config.fallback = {up_to(2), up_to(20), KedaFallbackBehavior::kStatic};
      for (KedaTriggerConfig& t : config.triggers) t.ignore_null_values = false;
    }
    ASSERT_TRUE(autoscaler_faults(config).empty()) << seed;
    FakeFleet fleet;
    fleet.spec = up_to(12);
    fleet.follow();
    const Changes changes = run_until(3600, config, fleet, [&](double, FakeFleet& f) {
      f.values.clear();
      f.histograms.clear();
      if (up_to(9) > 0) f.values[{FleetMetric::kFlowQueue, kPool}] = up_to(60);
      if (up_to(9) > 0) f.values[{FleetMetric::kReplicas, kPool}] = f.spec;
      if (up_to(9) > 0) f.values[{FleetMetric::kReplicasReady, kPool}] = up_to(8);
      for (int i = up_to(40); i > 0; --i)
        f.histogram_of(FleetMetric::kRouterTtft).add(up_to(60) * 0.1);
    });
    for (const auto& [when, replicas] : changes) {
      EXPECT_GE(replicas, least_replicas(config)) << seed << " at " << when;
      EXPECT_LE(replicas, most_replicas(config)) << seed << " at " << when;
    }
  }
}

std::string faults_text(const AutoscalerConfig& config) {
  std::string text;
  for (const AutoscalerFault& f : autoscaler_faults(config))
    text += f.path + ": " + f.message + "\n";
  return text;
}

TEST(AutoscalerConfig, NamesFaults) {
  AutoscalerConfig config = hpa_config();
  EXPECT_EQ(faults_text(config), "");
  config.min_replicas = 9;
  config.cooldown_period = Duration::seconds(1);
  config.metrics[0].query = "sum(x)";
  EXPECT_EQ(faults_text(config),
            "cooldown_period: this key is KEDA's\n"
            "max_replicas: max_replicas is below min_replicas\n"
            "metrics[0].query: metric `x` is not simulated\n");
  config = hpa_config();
  config.metrics.clear();
  config.min_replicas = 0;
  EXPECT_EQ(faults_text(config),
            "min_replicas: a HorizontalPodAutoscaler needs the gate HPAScaleToZero for 0\n"
            "metrics: without metrics Kubernetes scales by CPU, which is not simulated\n");
  config = hpa_config();
  config.min_replicas = 0;
  config.controller.scale_to_zero = true;
  config.metrics[0].type = ScalingMetricType::kPods;
  EXPECT_EQ(faults_text(config), "min_replicas: 0 needs a metric of type object or external\n");
  config = hpa_config();
  config.annotations.emplace();
  EXPECT_EQ(faults_text(config), "annotations: this key is KEDA's\n");
  config = zero_config();
  config.idle_replica_count = 0;
  config.scaling_modifiers = {"queue + 1", 1, 0, ScalingTargetType::kAverageValue};
  EXPECT_EQ(faults_text(config),
            "idle_replica_count: idle_replica_count is not below min_replica_count\n"
            "triggers[0].name: scaling_modifiers need a name here\n"
            "scaling_modifiers.formula: `queue` is no trigger's name\n");
  config = latency_config();
  config.triggers[1].name = "saturation";
  config.prometheus.recording_rules[4].record = "epp:raw";
  EXPECT_EQ(faults_text(config),
            "scaling_modifiers.formula: `replicas` is no trigger's name\n"
            "triggers[0].query: metric `epp:smoothed` is not simulated\n"
            "prometheus.recording_rules[4].record: `epp:raw` stands twice\n"
            "triggers[1].name: `saturation` stands twice\n");
}

TEST(AutoscalerConfig, BecomesAnHpasPlan) {
  AutoscalerConfig config = hpa_config();
  config.metrics[0].target = 0.0015;
  config.behavior.emplace();
  config.behavior->scale_up.emplace();
  config.behavior->scale_up->select_policy = HpaSelect::kMin;
  config.behavior->scale_up->tolerance = 0.25;
  const HpaSpec hpa = autoscaler_plan(config).hpa;
  EXPECT_EQ(hpa.metrics[0].target, 2);  // Quantities round up.
  EXPECT_EQ(hpa.behavior->scale_up.select, HpaSelect::kMin);
  EXPECT_EQ(hpa.behavior->scale_up.tolerance, 0.25);
  EXPECT_EQ(hpa.behavior->scale_up.policies.size(), 2U);
}

TEST(AutoscalerConfig, BecomesAPlan) {
  AutoscalerConfig config = latency_config();
  config.triggers[1].query = "max(kube_deployment_status_replicas{namespace=\"n\"})";
  const AutoscalerPlan plan = autoscaler_plan(config);
  EXPECT_EQ(plan.hpa.min_replicas, 3);
  ASSERT_EQ(plan.hpa.metrics.size(), 1U);
  EXPECT_EQ(plan.hpa.metrics[0].target, 1000);
  EXPECT_EQ(plan.hpa.behavior->scale_up.policies.size(), 2U);
  EXPECT_EQ(plan.hpa.behavior->scale_down.policies[0].period_seconds, 120);
  EXPECT_EQ(plan.keda->cooldown_seconds, 300);
  config.idle_replica_count = 1;
  config.annotations.emplace().paused_scale_out = true;
  EXPECT_EQ(autoscaler_plan(config).keda->idle_replicas, 1);
  EXPECT_EQ(autoscaler_plan(config).hpa.behavior->scale_up.select, HpaSelect::kDisabled);
  EXPECT_EQ(unused_matchers(config), std::vector<std::string>{"namespace=\"n\""});
}

}  // namespace
}  // namespace routesim::sim
