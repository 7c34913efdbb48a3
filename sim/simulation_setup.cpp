// Building a simulation from its plan, and reading its result off.
#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "sim/observe/invariant_checker.h"
#include "sim/simulation.h"

namespace routesim::sim {

/// Computes the router's keys of stored blocks while their request is alive.
class Simulation::Keys final : public SequenceKeySource {
 public:
  Keys(std::vector<Live>& live, PromptKeyTable& table, std::int64_t engine_block)
      : live_(live), table_(table), engine_block_(engine_block) {}

  void request_keys(std::uint32_t handle, std::int64_t first_block,
                    std::span<const BlockKey> engine_keys,
                    std::vector<std::uint64_t>& out) override {
    if (!table_.router().precise) return;
    Live& live = live_[handle];
    const auto block = static_cast<std::int64_t>(table_.router().precise->block_size());
    const std::int64_t begin = first_block * engine_block_;
    const std::int64_t end = begin + static_cast<std::int64_t>(engine_keys.size()) * engine_block_;
    // Only whole canonical blocks inside the event, on the canonical grid, become visible.
    if (begin % block != 0) return;
    const std::vector<std::uint64_t>& prompt = live.keys->request;
    for (std::int64_t b = begin / block; (b + 1) * block <= end; ++b) {
      if (b < static_cast<std::int64_t>(prompt.size()))
        out.push_back(prompt[static_cast<std::size_t>(b)]);
      else
        out.push_back(answer_key(live, b));
    }
  }

  BlockKey answer_key(std::uint32_t handle, std::int64_t block) override {
    return answer_key(live_[handle], block);
  }

 private:
  // Blocks of the answer. Only a follow-up turn can ask for them, so for requests without a session
  // a unique stand-in serves as well as hashing the tokens.
  std::uint64_t answer_key(Live& live, std::int64_t block) {
    if (live.request.session == 0)
      return mix64(live.request.output_content, static_cast<std::uint64_t>(block)) | 1;
    const auto first = static_cast<std::int64_t>(live.keys->request.size());
    if (live.answer_keys.empty()) live.answer_state = live.keys->request_end;
    while (first + std::ssize(live.answer_keys) <= block) {
      const std::int64_t begin = (first + std::ssize(live.answer_keys)) *
                                 static_cast<std::int64_t>(table_.router().precise->block_size());
      live.answer_keys.push_back(table_.next_request_key(live.answer_state, *live.request.prompt,
                                                         live.request.output_content, begin));
    }
    return live.answer_keys[static_cast<std::size_t>(block - first)];
  }

  std::vector<Live>& live_;
  PromptKeyTable& table_;
  std::int64_t engine_block_;
};

/// Passes the servers' steps on to the observers that want them.
class Simulation::StepRelay final : public StepListener {
 public:
  StepRelay(const std::vector<std::unique_ptr<Replica>>& replicas,
            const std::vector<Observer*>& observers) {
    for (std::uint32_t i = 0; i < replicas.size(); ++i) number_.emplace(replicas[i].get(), i);
    for (Observer* o : observers)
      if (o->wants_steps()) observers_.push_back(o);
  }
  bool needed() const { return !observers_.empty(); }
  void on_step(const Replica& replica, int rank, const models::BatchShape& shape, SimTime begin,
               SimTime end) override {
    const StepSpan span{.replica = number_.at(&replica),
                        .rank = rank,
                        .begin = begin,
                        .end = end,
                        .steps = 1,
                        .shape = shape};
    for (Observer* o : observers_) o->on_step(span);
  }

 private:
  std::unordered_map<const Replica*, std::uint32_t> number_;
  std::vector<Observer*> observers_;
};

void Simulation::start_observers(const RunView& view) {
  for (Observer* o : options_.observers) o->on_start(view);
  step_relay_ = std::make_unique<StepRelay>(replicas_, options_.observers);
  if (step_relay_->needed())
    for (const std::unique_ptr<Replica>& replica : replicas_)
      replica->report_steps_to(step_relay_.get());
  book_tick();
}

void Simulation::book_tick() {
  next_tick_ = SimTime::max();
  for (const Observer* o : options_.observers) next_tick_ = std::min(next_tick_, o->next_tick());
}

// Ticks are no events: they must neither keep a run alive nor change the order of anything.
void Simulation::tick(SimTime until) {
  while (next_tick_ <= until) {
    const SimTime now = next_tick_;
    for (const std::unique_ptr<Replica>& replica : replicas_) replica->advance_to(now);
    for (Observer* o : options_.observers)
      if (o->next_tick() == now) o->on_tick(now);
    book_tick();
    ROUTESIM_CHECK(next_tick_ > now, "an observer's ticks must grow");
  }
}

Simulation::Simulation(const RunPlan& plan, const RunOptions& options, Diagnostics& diagnostics)
    : plan_(plan), options_(options) {
  load_ = plan.make_load(options.seed, diagnostics);
  const RouterKeyOptions key_options = Router::key_options(plan, diagnostics);
  if (load_ == nullptr || diagnostics.has_errors()) return;
  const std::int64_t block = plan.pools.front().rules.block_size;
  prompt_keys_ = std::make_unique<PromptKeyTable>(block, key_options);
  key_source_ = std::make_unique<Keys>(live_, *prompt_keys_, block);
  // With unequal block sizes one event maps several blocks to one key, private ones included.
  // Blocks of layers with a window are visited one by one.
  const bool windows = std::any_of(plan.pools.begin(), plan.pools.end(),
                                   [](const auto& pool) { return pool.rules.window_groups > 0; });
  private_answers_ =
      !options.reference && !windows && (!key_options.precise || prompt_keys_->one_key());

  if (options.check) {
    checker_ = std::make_unique<InvariantChecker>();
    options_.observers.push_back(checker_.get());
  }
  std::vector<EndpointHome> endpoints;
  for (std::uint32_t p = 0; p < plan.pools.size(); ++p) add_pool(p, endpoints);
  endpoint_requests_.assign(endpoints.size(), 0);
  router_ =
      std::make_unique<Router>(plan, options.seed, std::move(endpoints), replicas_, diagnostics);
  if (options.probe != nullptr) router_->set_probe(*options.probe, key_options);
  metrics_ = std::make_unique<MetricsCollector>(load_->stages(),
                                                plan.scenario.workload.output_token_scale);
  fabric_ =
      TransferFabric(replicas_.size(), plan.scenario.cluster.transfer.bandwidth_gbps / 8 * 1e9);
}

namespace {

// In preset 2026-H1 only ranks of a mixture of experts step together.
FrontEndRules front_end_rules(const ResolvedPool& pool) {
  const EnginePreset preset = pool.config.engine.preset;
  const bool newest = preset == EnginePreset::k2026H2;
  return {.newest_score = newest,
          .rotates = newest,
          .sees_counts = preset != EnginePreset::k2026H1 || pool.lock_step};
}

}  // namespace

// Ranks in lock step share one step loop; independent ranks are servers of their own.
void Simulation::add_pool(std::uint32_t index, std::vector<EndpointHome>& endpoints) {
  const ResolvedPool& pool = plan_.pools[index];
  const auto ranks = static_cast<int>(pool.config.data_parallel);
  const int loops = pool.lock_step ? 1 : ranks;
  const int ranks_per_loop = pool.lock_step ? ranks : 1;
  const bool internal =
      ranks > 1 && pool.config.data_parallel_balancing == DataParallelBalancing::kInternal;
  for (std::int64_t server = 0; server < pool.config.replicas; ++server) {
    std::size_t server_begin = 0;
    for (int loop = 0; loop < loops; ++loop) {
      const auto replica = static_cast<std::uint32_t>(replicas_.size());
      const std::size_t first = endpoints.size();
      if (loop == 0) server_begin = first;
      add_replica(pool, ranks_per_loop, first,
                  internal ? std::optional<std::uint64_t>(server_begin) : std::nullopt);
      for (int rank = 0; rank < ranks_per_loop; ++rank) {
        std::string name = pool.config.name + "-" + std::to_string(server);
        if (ranks > 1) name += "-rank-" + std::to_string(pool.lock_step ? rank : loop);
        const auto self = static_cast<std::uint32_t>(endpoints.size());
        if (!internal || self == server_begin) api_servers_.emplace_back(pool.api_server);
        api_server_of_.push_back(static_cast<std::uint32_t>(api_servers_.size() - 1));
        endpoints.push_back({.replica = replica,
                             .rank = rank,
                             .pool = index,
                             .server = internal ? static_cast<std::uint32_t>(server_begin) : self,
                             .behind_front_end = internal,
                             .name = name});
      }
    }
    if (!internal) continue;
    for (std::size_t e = server_begin; e < endpoints.size(); ++e)
      front_end_of_.emplace(static_cast<std::uint32_t>(e), front_ends_.size());
    front_ends_.emplace_back(static_cast<std::uint32_t>(server_begin), ranks,
                             front_end_rules(pool));
  }
}

void Simulation::add_replica(const ResolvedPool& pool, int ranks, std::uint64_t first_endpoint,
                             std::optional<std::uint64_t> front_end) {
  const RoutingConfig& routing = plan_.scenario.routing;
  ReplicaOptions r;
  r.rules = pool.rules;
  r.latency = pool.latency;
  r.ranks = ranks;
  r.reference = options_.reference;
  r.publish_events = prompt_keys_->router().precise.has_value();
  r.one_key = prompt_keys_->one_key();
  r.kv_event_delay = routing.kv_event_delay;
  r.kv_event_loss = routing.kv_event_loss;
  r.scrape_interval = routing.scrape_interval;
  r.seed = options_.seed;
  r.first_endpoint = first_endpoint;
  r.front_end = front_end;
  replicas_.push_back(std::make_unique<Replica>(r, *key_source_));
  replicas_.back()->count_gaps_in(&unattributed_gaps_);
}

Simulation::~Simulation() = default;

// The engine's own gauges do not show them, so that nobody would look there.
void Simulation::note_long_waits() {
  constexpr Duration kLong = Duration::seconds(1);
  std::vector<Duration> longest(plan_.pools.size());
  for (std::size_t e = 0; e < router_->endpoints().size(); ++e) {
    Duration& pool = longest[router_->endpoints()[e].pool];
    pool = std::max(pool, api_servers_[api_server_of_[e]].longest());
  }
  for (std::size_t p = 0; p < longest.size(); ++p) {
    if (longest[p] <= kLong) continue;
    result_.notes.push_back(plan_.pools[p].config.name +
                            ": before its engine heard of it a request spent up to " +
                            std::to_string(longest[p].ns() / 1'000'000) +
                            " ms in the API server (api_server), which no gauge of vLLM shows");
  }
}

std::vector<StepTimes> Simulation::step_times() const {
  std::vector<StepTimes> pools;
  for (const ResolvedPool& pool : plan_.pools)
    pools.push_back({.pool = pool.config.name, .trust = pool.latency->trust({})});
  for (const EndpointHome& at : router_->endpoints()) {
    if (at.rank != 0) continue;
    pools[at.pool].busy_s += replicas_[at.replica]->busy().to_seconds();
    pools[at.pool].extrapolated_s += replicas_[at.replica]->extrapolated_s();
  }
  for (StepTimes& pool : pools)
    if (pool.extrapolated_s > kMostExtrapolated * pool.busy_s)
      pool.trust = models::Trust::kExtrapolated;
  return pools;
}

RunResult Simulation::result() {
  const SimTime end = queue_.now();
  result_.scenario = plan_.scenario.name;
  result_.variant = plan_.scenario.variant;
  result_.seed = options_.seed;
  result_.end = end;
  if (stopped_) result_.notes.emplace_back("stopped early: the results are partial");
  for (std::uint32_t e = 0; e < router_->endpoints().size(); ++e) {
    const EndpointHome& at = router_->endpoints()[e];
    const ResolvedPool& pool = plan_.pools[at.pool];
    const Replica& replica = *replicas_[at.replica];
    const BatchScheduler& s = replica.scheduler(at.rank);
    const auto usable = static_cast<double>(pool.rules.num_gpu_blocks - 1);
    ReplicaResult r;
    r.name = at.name;
    r.pool = pool.config.name;
    r.requests = endpoint_requests_[e];
    r.steps = replica.steps();
    r.busy_s = replica.busy().to_seconds();
    r.prefix_query_tokens = s.counters().prefix_query_tokens;
    r.prefix_hit_tokens = s.counters().prefix_hit_tokens;
    r.preemptions = s.counters().preemptions;
    r.num_gpu_blocks = pool.rules.num_gpu_blocks;
    r.kv_cache_tokens = pool.kv_cache_tokens;
    r.evicted_blocks = s.kv().evictions();
    r.kv_cache_usage_mean =
        end.ns() > 0 ? replica.used_block_seconds(at.rank, end) / usable / end.to_seconds() : 0;
    r.kv_cache_usage_max = static_cast<double>(replica.peak_used_blocks(at.rank)) / usable;
    r.max_running = s.counters().max_running;
    r.max_waiting = s.counters().max_waiting;
    result_.replicas.push_back(std::move(r));
  }
  result_.step_times = step_times();
  for (std::size_t p = 0; p < plan_.pools.size(); ++p) {
    result_.notes.push_back(plan_.pools[p].config.name + ": " +
                            plan_.pools[p].latency->provenance());
  }
  note_long_waits();
  for (std::string& note : load_->notes()) result_.notes.push_back(std::move(note));
  // A load may have found the rates of its stages by itself.
  for (std::size_t s = 0; s < metrics_->stages().size(); ++s)
    metrics_->stages()[s].info = load_->stages()[s];
  metrics_->drop_gaps_without_success();
  metrics_->measure_growth();
  if (stopped_) metrics_->forget_unfinished();
  result_.summary = metrics_->summary();
  result_.stages = std::move(metrics_->stages());
  return std::move(result_);
}

}  // namespace routesim::sim
