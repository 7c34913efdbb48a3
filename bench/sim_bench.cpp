// The parts of the simulator and the size it must reach: 1,024 endpoints behind precise scoring.
// ROUTESIM_BENCH_SMOKE=1 shrinks the loads; ROUTESIM_BENCH_LONG=1 adds ten million streamed
// requests.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "models/cost_curve.h"
#include "policies/config/document.h"
#include "sim/simulation.h"
#include "workloads/groups/group_load.h"
#include "workloads/traces/trace_replay.h"

namespace routesim::sim {
namespace {

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && std::string(value) != "0";
}

void event_queue(benchmark::State& state) {
  const auto pending = static_cast<std::size_t>(state.range(0));
  EventQueue queue;
  RandomStream random(1, Stream::kTest);
  for (std::size_t i = 0; i < pending; ++i)
    queue.push(SimTime::from_ns(static_cast<std::int64_t>(random.below(1 << 20))),
               EventKind::kDelivery, static_cast<std::uint32_t>(i));
  SimTime last;
  for (auto _ : state) {
    const Event e = *queue.pop();
    if (e.time < last) state.SkipWithError("time went back");
    last = e.time;
    queue.push(e.time + Duration::nanoseconds(static_cast<std::int64_t>(random.below(1 << 20))),
               EventKind::kDelivery, e.subject);
  }
}
BENCHMARK(event_queue)->Arg(64)->Arg(4096);

/// A prompt of 128 blocks, half of it cached, comes and goes.
void kv_cache(benchmark::State& state) {
  KvCache kv(10'001, 16, FreeQueue::kAppendAll);
  std::vector<BlockKey> keys(128);
  CachedPrefix hits;
  BlockHolding holding;
  std::uint64_t round = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = mix64(i < 64 ? 7 : ++round, i) | 1;
    kv.lookup(keys, hits);
    kv.take_hits(hits, holding);
    kv.allocate(std::ssize(keys) - hits.blocks, holding);
    kv.register_keys(holding, std::span(keys).subspan(static_cast<std::size_t>(hits.blocks)));
    kv.release(holding);
  }
  if (kv.used_blocks() != 0) state.SkipWithError("blocks leaked");
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(keys.size()));
}
BENCHMARK(kv_cache);

/// One pass and its processing with a full batch of decodes.
void scheduler_step(benchmark::State& state) {
  const bool reference = state.range(1) != 0;
  EngineRules rules;
  rules.num_gpu_blocks = 2'000'001;
  rules.async_scheduling = false;
  rules.enable_prefix_caching = false;
  rules.max_model_len = 1 << 30;
  BatchScheduler scheduler(rules, reference);
  std::vector<EngineOutput> out;
  for (std::int64_t i = 0; i < state.range(0); ++i)
    scheduler.enqueue({.handle = static_cast<std::uint32_t>(i),
                       .prompt_tokens = 100 + i,
                       .output_tokens = 100'000,
                       .max_tokens = 100'000,
                       .arrival_order = static_cast<std::uint64_t>(i)},
                      SimTime::zero(), out);
  StepPlan plan;
  for (auto _ : state) {
    scheduler.schedule(plan, nullptr, SimTime::zero(), out);
    scheduler.process(plan, SimTime::zero(), out);
    out.clear();
  }
  if (scheduler.decoding() != state.range(0)) state.SkipWithError("every sequence must decode");
}
BENCHMARK(scheduler_step)
    ->ArgsProduct({{64, 256}, {0, 1}})
    ->ArgNames({"batch", "reference"})
    ->Iterations(20'000);

/// Precise prefix scoring beside queue and cache use, as in llm-d's guide.
std::optional<policies::EndpointPickerConfig> precise_config(Diagnostics& diagnostics) {
  const auto entry = [](const char* key, const char* value) {
    return tree::map({{key, tree::text(value)}});
  };
  std::vector<tree::Node> plugins, references;
  for (const char* type : {"single-profile-handler", "kv-cache-utilization-scorer", "queue-scorer",
                           "max-score-picker"}) {
    plugins.push_back(entry("type", type));
    if (plugins.size() > 1) references.push_back(entry("pluginRef", type));
  }
  const auto size = tree::map({{"blockSize", tree::number(std::int64_t{64})}});
  const auto parameters = tree::map(
      {{"tokenProcessorConfig", size}, {"kvEventsConfig", entry("zmqEndpoint", "tcp://*:5557")}});
  const char* precise = "precise-prefix-cache-scorer";
  plugins.insert(plugins.begin() + 1,
                 tree::map({{"type", tree::text(precise)}, {"parameters", parameters}}));
  references.insert(references.begin(), entry("pluginRef", precise));
  const auto profile =
      tree::map({{"name", tree::text("default")}, {"plugins", tree::list(references)}});
  const auto root = tree::map({{"apiVersion", tree::text("llm-d.ai/v1alpha1")},
                               {"kind", tree::text("EndpointPickerConfig")},
                               {"plugins", tree::list(plugins)},
                               {"schedulingProfiles", tree::list({profile})}});
  return policies::load_endpoint_picker_config(*root, {}, diagnostics);
}

/// A fleet at 3 requests/s per endpoint, prefixes of 2,048 tokens, five groups per endpoint.
RunPlan fleet(std::int64_t endpoints, std::int64_t requests, Diagnostics& diagnostics) {
  RunPlan plan;
  plan.endpoint_picker = precise_config(diagnostics);
  plan.scenario.routing.balancer = BalancerKind::kEndpointPicker;
  ResolvedPool pool;
  pool.config.name = "pool";
  pool.config.model = "model";
  pool.config.replicas = endpoints;
  EngineConfig engine;
  engine.block_size = 64;
  pool.rules = resolve_engine_rules(engine, 131'072, true);
  set_kv_blocks(pool.rules, engine, 5000);
  pool.latency =
      std::make_shared<models::CostCurve>(models::CostCurveParameters{.step_ms = 12,
                                                                      .sequence_ms = 0.02,
                                                                      .context_us_per_ktok = 20,
                                                                      .prefill_us_per_token = 80},
                                          models::FittedRange{}, "bench");
  plan.pools.push_back(pool);
  plan.make_load = [=](std::uint64_t seed, Diagnostics& d) {
    workloads::GroupLoadConfig c;
    c.requests = requests;
    c.rate = 3.0 * static_cast<double>(endpoints);
    c.groups = 5 * endpoints;
    workloads::WorkloadOptions options;
    options.seed = seed;
    return workloads::make_load_generator(c, options, {}, d);
  };
  return plan;
}

/// A ladder of shared prefixes, such as the published ones: 113 blocks of 64 tokens per prompt, and
/// each prompt is sent some ten times.
workloads::GroupLoadConfig ladder(std::int64_t requests) {
  workloads::GroupLoadConfig c;
  c.requests = requests;
  c.rate = 24;
  c.groups = 150;
  c.prompts_per_group = std::max<std::int64_t>(1, requests / 1500);
  c.prefix_len = workloads::Distribution::fixed(6016);
  c.suffix_len = workloads::Distribution::fixed(1216);
  return c;
}

/// The same requests as a Mooncake trace.
std::string mooncake_ladder(std::int64_t requests) {
  Diagnostics d;
  const auto load = workloads::make_load_generator(ladder(requests), {}, {}, d);
  std::unordered_map<std::uint64_t, std::int64_t> ids;  // By content: the first of its blocks.
  std::int64_t next_id = 0;
  std::string text;
  std::vector<workloads::Request> sent;
  while (load->next_action() != SimTime::max()) {
    const SimTime now = load->next_action();
    load->advance(now, sent);
    for (const workloads::Request& r : sent) {
      text += "{\"timestamp\": " + std::to_string(now.to_seconds() * 1e3) +
              ", \"input_length\": " + std::to_string(r.prompt->tokens) +
              ", \"output_length\": " + std::to_string(r.output_tokens) + ", \"hash_ids\": [";
      for (const workloads::Segment& s : r.prompt->segments) {
        const auto [first, is_new] = ids.emplace(s.content, next_id);
        if (is_new) next_id += s.length / 64;
        for (std::int64_t b = 0; b < s.length / 64; ++b)
          text += std::to_string(first->second + b) + ", ";
      }
      text.erase(text.size() - 2);
      text += "]}\n";
    }
    sent.clear();
  }
  return text;
}

/// The ladder on 16 endpoints, generated (0) or read from a trace (1).
void ladder_requests(benchmark::State& state) {
  const std::int64_t requests = is_set("ROUTESIM_BENCH_SMOKE") ? 1'500 : 15'000;
  Diagnostics d;
  RunPlan plan = fleet(16, requests, d);
  if (state.range(0) == 0) {
    plan.make_load = [=](std::uint64_t seed, Diagnostics& found) {
      return workloads::make_load_generator(ladder(requests), {.seed = seed}, {}, found);
    };
  } else {
    plan.make_load = [text = mooncake_ladder(requests),
                      survey = std::make_shared<workloads::TraceSurvey>()](std::uint64_t seed,
                                                                           Diagnostics& found) {
      workloads::TraceReplayConfig c;
      c.hash_block_tokens = 64;
      const auto open = [&text] {
        return workloads::make_trace_reader(std::make_unique<std::istringstream>(text), "ladder",
                                            {});
      };
      return workloads::make_load_generator(c, {.seed = seed}, {.trace = open, .survey = survey},
                                            found);
    };
  }
  for (auto _ : state) {
    Simulation simulation(plan, RunOptions{}, d);
    const RunResult result = simulation.run();
    if (d.has_errors() || result.summary.successes != requests)
      state.SkipWithError("every request must succeed");
    state.counters["hit"] = result.summary.prefix_hit_ratio();
  }
  state.counters["requests/s"] = benchmark::Counter(
      static_cast<double>(requests * static_cast<std::int64_t>(state.iterations())),
      benchmark::Counter::kIsRate);
}
BENCHMARK(ladder_requests)->Arg(0)->Arg(1)->Iterations(5)->Unit(benchmark::kMillisecond);

/// Runs the fleet once and returns the hit ratio, or nothing when a request failed.
std::optional<double> run_once(std::int64_t endpoints, std::int64_t requests) {
  Diagnostics diagnostics;
  const RunPlan plan = fleet(endpoints, requests, diagnostics);
  Simulation simulation(plan, RunOptions{}, diagnostics);
  const RunResult result = simulation.run();
  if (diagnostics.has_errors() || result.summary.successes != requests) return std::nullopt;
  return result.summary.prefix_hit_ratio();
}

void run_fleet(benchmark::State& state, std::int64_t endpoints, std::int64_t requests) {
  for (auto _ : state) {
    const std::optional<double> hit = run_once(endpoints, requests);
    if (!hit) state.SkipWithError("every request must succeed");
    state.counters["hit"] = hit.value_or(0);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MB"] = static_cast<double>(usage.ru_maxrss) / 1024;
  state.counters["requests/s"] = benchmark::Counter(
      static_cast<double>(requests * static_cast<std::int64_t>(state.iterations())),
      benchmark::Counter::kIsRate);
}

std::int64_t fleet_requests() { return is_set("ROUTESIM_BENCH_SMOKE") ? 2'000 : 50'000; }

/// Cost per request by fleet size, in a process that has its memory: a virtual machine may take
/// 8 us to hand out 4 KiB for the first time, which is the machine's cost and not a request's.
void requests_by_endpoints(benchmark::State& state) {
  if (!run_once(state.range(0), fleet_requests())) state.SkipWithError("the first run failed");
  run_fleet(state, state.range(0), fleet_requests());
}
BENCHMARK(requests_by_endpoints)
    ->Arg(8)
    ->Arg(128)
    ->Arg(1024)
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);

/// What a request costs at 1,024 endpoints over what it costs at 8. The two take turns, so that
/// neighbours on the machine slow both: `ratio` is that of the medians.
void cost_ratio(benchmark::State& state) {
  const auto median = [](std::vector<double>& seconds) {
    std::ranges::nth_element(seconds, seconds.begin() + std::ssize(seconds) / 2);
    return seconds[seconds.size() / 2];
  };
  std::vector<double> few, many;
  for (auto _ : state)
    for (int turn = 0; turn < 10; ++turn) {
      const auto begin = std::chrono::steady_clock::now();
      const bool good = run_once(turn % 2 == 0 ? 8 : 1024, fleet_requests()).has_value();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      if (!good) state.SkipWithError("every request must succeed");
      if (turn >= 2) (turn % 2 == 0 ? few : many).push_back(took.count());
    }
  state.counters["ratio"] = median(many) / median(few);
}
BENCHMARK(cost_ratio)->Iterations(1)->Unit(benchmark::kSecond);

void million_requests(benchmark::State& state) {
  run_fleet(state, 1024, is_set("ROUTESIM_BENCH_SMOKE") ? 5'000 : 1'000'000);
}
BENCHMARK(million_requests)->Iterations(1)->Unit(benchmark::kSecond);

/// Memory must not grow with the number of requests: compare peak_MB with the runs above.
void streamed(benchmark::State& state) {
  const std::int64_t short_run = is_set("ROUTESIM_BENCH_SMOKE") ? 2'000 : 100'000;
  run_fleet(state, 64, is_set("ROUTESIM_BENCH_LONG") ? 10'000'000 : short_run);
}
BENCHMARK(streamed)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace routesim::sim
