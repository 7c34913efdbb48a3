// One full precise decision, as the llm-d guide configures it: role filter, four scorers, picker,
// over an index that a pool's KV events have filled. The goals on one core: at most 2 µs for 8
// endpoints and 50 µs for 1,024.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "base/rng.h"
#include "policies/config/make_scheduler.h"
#include "tools/ingest/routers/endpoint_picker_yaml.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::policies {
namespace {

constexpr std::size_t kPromptKeys = 118;  // 7,552 tokens: one more turn of the guide's workload.
constexpr std::size_t kSharedKeys = 94;   // Its system prompt, common to a group of requests.
constexpr std::size_t kGroups = 150;
constexpr std::size_t kPerGroup = 5;

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("benchmark answer is wrong: " + what);
}

EndpointPickerConfig guide() {
  Diagnostics diagnostics;
  const ConfigNode::Ptr root = read_config_file(
      std::string(ROUTESIM_SOURCE_DIR) + "/scenarios/inputs/llm-d-precise.endpoint-picker.yaml",
      diagnostics);
  require(root != nullptr, "the guide's file can be read");
  auto config = tools::load_endpoint_picker(root, {}, diagnostics);
  require(config.has_value(), "the guide's document loads");
  return *std::move(config);
}

/// A router of `n` endpoints in the middle of its work.
class Router {
 public:
  Router(std::uint32_t n, bool thread_safe)
      : scheduler_(make_scheduler(guide(), {.seed = 1, .thread_safe = thread_safe}, diagnostics_)) {
    require(scheduler_ != nullptr, "the scheduler builds");
    RandomStream random(7, Stream::kTest);
    for (std::uint32_t e = 0; e < n; ++e) {
      const std::string name = "10.0." + std::to_string(e / 250) + "." + std::to_string(e % 250);
      const EndpointId id = table.add(
          {.address = name, .pod_name = "pod-" + name, .labels = {{"llm-d.ai/role", "decode"}}});
      table.set_metrics(id, static_cast<double>(random.below(7)), 12, 0.9 * random.uniform(), {});
    }
    for (std::size_t g = 0; g < kGroups; ++g)
      for (std::size_t p = 0; p < kPerGroup; ++p) {
        std::vector<BlockKey>& keys = prompts.emplace_back(kPromptKeys);
        for (std::size_t i = 0; i < kPromptKeys; ++i)
          keys[i] = mix64(i < kSharedKeys ? g + 1 : mix64(g + 1, p + 1000), i);
        for (int copy = 0; copy < 2; ++copy) store(EndpointId(random.below(n)), keys);
      }
  }

  /// What explain() says must be what schedule() does, and it must be worth timing.
  void check() {
    Scratch scratch;
    Decision decision;
    std::size_t warm = 0;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const RequestView view = request(i);
      Explanation explanation;
      const Decision told = scheduler_->explain(view, table, now, explanation);
      scheduler_->schedule(view, table, now, scratch, decision);
      require(decision.routed() && decision.primary == told.primary, "explain repeats schedule");
      require(explanation.profiles.size() == 1, "one profile runs");
      require(explanation.profiles[0].scorers.size() == 4, "four scorers run");
      for (const auto& step : explanation.profiles[0].scorers)
        if (step.plugin.starts_with("precise"))
          warm += *std::max_element(step.scores.begin(), step.scores.end()) > 0 ? 1 : 0;
    }
    require(warm == prompts.size(), "somebody holds part of every prompt");
  }

  RequestView request(std::size_t i) const {
    return {.id = i,
            .model = "Qwen/Qwen3-32B",
            .prompt_tokens = 64 * kPromptKeys,
            .block_keys = prompts[i % prompts.size()]};
  }
  Scheduler& scheduler() { return *scheduler_; }

  EndpointTable table;
  std::vector<std::vector<BlockKey>> prompts;
  SimTime now = SimTime::zero() + Duration::seconds(1);

 private:
  void store(EndpointId holder, const std::vector<BlockKey>& keys) {
    if (ConcurrentPrefixIndex* index = scheduler_->concurrent_index())
      index->exclusive(
          [&](PrefixIndex& inner) { return inner.stored(holder, kGpuTier, 0, keys, keys); });
    else
      scheduler_->precise_index()->stored(holder, kGpuTier, 0, keys, keys);
  }

  Diagnostics diagnostics_;
  std::unique_ptr<Scheduler> scheduler_;
};

constexpr std::size_t kStride = 7;  // Successive requests come from different groups mostly.

void decide(benchmark::State& state) {
  Router router(static_cast<std::uint32_t>(state.range(0)), false);
  router.check();
  Scratch scratch;
  Decision decision;
  std::size_t next = 0;
  for (auto _ : state) {
    router.scheduler().schedule(router.request(next), router.table, router.now, scratch, decision);
    benchmark::DoNotOptimize(decision.primary);
    next += kStride;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(decide)->Arg(8)->Arg(16)->Arg(64)->Arg(1024)->Unit(benchmark::kMicrosecond);

// A prompt nobody holds: every key is looked up in vain, and no-hit-lru ranks the endpoints.
void decide_cold(benchmark::State& state) {
  Router router(static_cast<std::uint32_t>(state.range(0)), false);
  for (auto& keys : router.prompts)
    for (BlockKey& key : keys) key = mix64(key);
  Scratch scratch;
  Decision decision;
  std::size_t next = 0;
  for (auto _ : state) {
    router.scheduler().schedule(router.request(next), router.table, router.now, scratch, decision);
    benchmark::DoNotOptimize(decision.primary);
    next += kStride;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(decide_cold)->Arg(8)->Arg(1024)->Unit(benchmark::kMicrosecond);

// The whole life of a request: expire, decide, routed (the speculative entries of its 118 blocks),
// first token, completed. 50 requests a second, so about 100 requests are speculative at a time.
void whole_request(benchmark::State& state) {
  Router router(static_cast<std::uint32_t>(state.range(0)), false);
  Scratch scratch;
  Decision decision;
  std::size_t next = 0;
  for (auto _ : state) {
    Scheduler& s = router.scheduler();
    const RequestView view = router.request(next);
    router.now = router.now + Duration::milliseconds(20);
    s.advance(router.now);
    s.schedule(view, router.table, router.now, scratch, decision);
    s.on_routed(view, decision, router.table, router.now);
    s.on_first_token(view.id, router.now);
    s.on_completed(view.id, router.now);
    next += kStride;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(whole_request)->Arg(8)->Arg(1024)->Unit(benchmark::kMicrosecond);

// Several threads decide at once, as a live router does.
void decide_threads(benchmark::State& state) {
  static std::unique_ptr<Router> router;
  if (state.thread_index() == 0) router = std::make_unique<Router>(16, true);
  Scratch scratch;
  Decision decision;
  std::size_t next = static_cast<std::size_t>(state.thread_index()) * 101;
  for (auto _ : state) {
    router->scheduler().schedule(router->request(next), router->table, router->now, scratch,
                                 decision);
    benchmark::DoNotOptimize(decision.primary);
    next += kStride;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(decide_threads)->ThreadRange(1, 4)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace routesim::policies
