#include "sim/plan/fleet_plan.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "policies/config/make_scheduler.h"
#include "sim/fleet/fleet.h"
#include "sim/plan/discovery.h"
#include "sim/plan/resolve.h"

namespace routesim::sim {

namespace {

constexpr std::int64_t kMostPlaces = 65'536;
constexpr const char* kNumberOrPercent = "must be a number or a percentage (got ";

/// Sizes of batches from `first` to `last`, `step` apart, that are not above `most`.
std::int64_t sizes(std::int64_t first, std::int64_t last, std::int64_t step, std::int64_t most) {
  return most < first ? 0 : (std::min(last, most) - first) / step + 1;
}

/// vLLM: 1, 2, 4, then every eighth size; in its releases of 2026 every sixteenth above 256
/// (cudagraph_capture_sizes in its logs).
std::int64_t vllm_sizes(std::int64_t most, bool eighths) {
  const std::int64_t small = (most >= 1) + (most >= 2) + (most >= 4);
  return small +
         (eighths ? sizes(8, 512, 8, most) : sizes(8, 256, 8, most) + sizes(272, 512, 16, most));
}

/// Graphs that a server captures at its start. vLLM: of twice its sequences, 512 at most,
/// piecewise; from 0.11 on full ones for decoding, too (CUDAGraphMode.FULL_AND_PIECEWISE). SGLang
/// 0.5.9: _generate_cuda_graph_batch_sizes() in server_args.py.
std::int64_t graphs_of(const EngineConfig& engine, const EngineRules& rules) {
  if (engine.enforce_eager) return 0;
  if (rules.sglang) {
    const std::int64_t most = rules.sglang->largest_graph;
    return (most >= 1) + (most >= 2) + sizes(4, 12, 4, most) + sizes(16, 256, 8, most) +
           sizes(272, 496, 16, most) + sizes(512, most, 32, most);
  }
  const bool eighths = !from_2026(engine.preset);
  const std::int64_t most = std::min<std::int64_t>(512, 2 * rules.max_num_seqs);
  const std::int64_t full = engine.preset == EnginePreset::k2025Q3
                                ? 0
                                : vllm_sizes(std::min(most, rules.max_num_seqs), eighths);
  return vllm_sizes(most, eighths) + full;
}

bool is(const FleetEventConfig& e, FleetEventKind kind) { return e.kind == kind; }

/// Events that end pods, whose places are taken until they are gone.
bool ends_pods(const FleetEventConfig& e) {
  return is(e, FleetEventKind::kDrain) || is(e, FleetEventKind::kNodeLoss);
}

bool is_about(const Scenario& s, const FleetEventConfig& e, std::size_t pool) {
  return e.pool.empty() ? pool == 0 : e.pool == s.cluster.pools[pool].name;
}

/// Reports the faults of one event.
class EventCheck {
 public:
  EventCheck(const Scenario& s, std::size_t index, const SourceLocation& where,
             Diagnostics& diagnostics)
      : s_(s),
        e_(s.events[index]),
        path_("events[" + std::to_string(index) + "]"),
        where_(where),
        diagnostics_(diagnostics) {}

  void check() {
    check_time();
    check_target();
    check_keys();
    if (is(e_, FleetEventKind::kRollOut)) check_roll_out();
  }

 private:
  void error(const std::string& key, const std::string& message, const std::string& hint = {}) {
    diagnostics_.error(where_, key.empty() ? path_ : path_ + "." + key, message, hint);
  }
  /// The number of a pool, of all pools where there is none of this name.
  std::size_t pool(const std::string& name) const {
    std::size_t p = 0;
    while (p < s_.cluster.pools.size() && s_.cluster.pools[p].name != name) ++p;
    return p;
  }

  void check_time() {
    if (e_.at && e_.mean_time_between)
      error("mean_time_between", "stands beside `at`", "give a time or a rate");
    if (!e_.at && !e_.mean_time_between)
      error("at", "is missing: when does it happen?",
            "for example `at: 10m`, or `mean_time_between: 12h` for a rate");
    const bool at_a_time = is(e_, FleetEventKind::kScale) || is(e_, FleetEventKind::kRollOut) ||
                           is(e_, FleetEventKind::kRouterRestart);
    if (e_.mean_time_between && at_a_time)
      error("mean_time_between", "is of failures of servers", "give `at`");
  }

  void check_target() {
    const bool of_router = is(e_, FleetEventKind::kRouterRestart);
    if (of_router) return;
    const std::size_t target = e_.pool.empty() ? 0 : pool(e_.pool);
    if (e_.pool.empty() && s_.cluster.pools.size() > 1)
      error("pool", "is needed: there are several pools");
    if (target == s_.cluster.pools.size()) {
      error("pool", "is the name of no pool (got " + e_.pool + ")");
      return;
    }
    const std::int64_t places = places_of(s_, target);
    std::set<std::int64_t> named;
    for (const std::int64_t server : e_.servers) {
      if (!named.insert(server).second)
        error("servers", "names a server twice (got " + std::to_string(server) + ")");
      if (server >= places)
        error("servers", "has no server of this number (got " + std::to_string(server) + ")",
              "pool " + s_.cluster.pools[target].name + " has servers 0 to " +
                  std::to_string(places - 1));
    }
  }

  /// Keys that this kind does not read.
  void check_keys() {
    const bool of_router = is(e_, FleetEventKind::kRouterRestart);
    const bool of_pool = is(e_, FleetEventKind::kScale) || is(e_, FleetEventKind::kRollOut);
    const bool lasting = is(e_, FleetEventKind::kSlow) || is(e_, FleetEventKind::kKvEventsLost) ||
                         is(e_, FleetEventKind::kCrash) || is(e_, FleetEventKind::kLinkLost) ||
                         is(e_, FleetEventKind::kScrapesLost) || of_router;
    const auto unused = [this](bool given, const char* key) {
      if (given)
        error(key, "means nothing for kind " + std::string(enum_name(e_.kind)), "leave it out");
    };
    unused(!e_.pool.empty() && of_router, "pool");
    unused(!e_.servers.empty() && (of_router || of_pool), "servers");
    unused(e_.lasts && !lasting, "lasts");
    unused(e_.factor && !is(e_, FleetEventKind::kSlow), "factor");
    unused(e_.replicas && !is(e_, FleetEventKind::kScale), "replicas");
    unused(e_.router && !of_router, "router");
    unused(e_.graceful && !of_router, "graceful");
    if (e_.graceful && of_router && !s_.routing.leader_election)
      error("graceful", "is about the lease of a leader, and none is elected",
            "leave it out, or set routing.leader_election");
    const bool rolls = is(e_, FleetEventKind::kRollOut);
    unused(!e_.to.empty() && !rolls, "to");
    unused(!e_.max_surge.empty() && !rolls, "max_surge");
    unused(!e_.max_unavailable.empty() && !rolls, "max_unavailable");
    unused(e_.min_ready_seconds > Duration::zero() && !rolls, "min_ready_seconds");
    unused(e_.recreate && !rolls, "recreate");
    if (is(e_, FleetEventKind::kScale) && !e_.replicas)
      error("replicas", "is missing: how many servers from then on?");
    if (is(e_, FleetEventKind::kLinkLost) && !e_.lasts)
      error("lasts", "is missing: KV that waits for the link would wait for ever");
    if (is(e_, FleetEventKind::kLinkLost) &&
        std::ranges::count(s_.cluster.pools, PoolRole::kPrefill, &PoolConfig::role) == 0)
      error("kind", "means nothing here: KV moves between prefill and decode servers");
    if (is(e_, FleetEventKind::kScrapesLost) &&
        s_.routing.balancer != BalancerKind::kEndpointPicker && !balancer_needs(s_.routing).metrics)
      error("kind", "means nothing here: this router decides without metrics of servers",
            policies::balancer_row(s_.routing.balancer).section == "vllm_router"
                ? "with routing.vllm_router.load_monitor it reads them"
                : "");
    if (is(e_, FleetEventKind::kSlow) && !e_.factor)
      error("factor", "is missing: how many times as long do steps take?");
    if (of_router && s_.routing.balancer == BalancerKind::kK8sService)
      error("kind", "needs a router process, and a Kubernetes Service has none");
    if (of_router && e_.router && *e_.router >= s_.routing.router_replicas)
      error("router", "is the number of no process (got " + std::to_string(*e_.router) + ")",
            "routing.router_replicas is " + std::to_string(s_.routing.router_replicas));
  }

  void check_roll_out() {
    for (const auto& [key, text] :
         {std::pair<const char*, const std::string&>{"max_surge", e_.max_surge},
          {"max_unavailable", e_.max_unavailable}})
      if (!text.empty() && !servers_of(text, 1, true))
        error(key, kNumberOrPercent + text + ")", "for example 1, or 25%");
    if (const auto all = servers_of(e_.max_unavailable, 100, false);
        e_.max_unavailable.ends_with('%') && all && *all > 100)
      error("max_unavailable", "must be at most 100% (got " + e_.max_unavailable + ")");
    // Kubernetes refuses it, too. A percentage above 0 is at least one server when rounded up.
    if (servers_of(e_.max_surge, 1, true) == 0 && servers_of(e_.max_unavailable, 1, true) == 0)
      error("max_unavailable", "is 0 beside a max_surge of 0: nothing could roll",
            "write 1 for one of them");
    if (e_.to.empty()) return;
    const std::size_t to = pool(e_.to);
    if (to == s_.cluster.pools.size()) {
      error("to", "is the name of no pool (got " + e_.to + ")");
    } else if (e_.to == (e_.pool.empty() ? s_.cluster.pools.front().name : e_.pool)) {
      error("to", "is the pool itself", "leave it out to replace its servers by the same ones");
    } else if (const std::size_t from = e_.pool.empty() ? 0 : pool(e_.pool);
               from < s_.cluster.pools.size() &&
               s_.cluster.pools[from].role != s_.cluster.pools[to].role) {
      error("to",
            "is a pool of role " + std::string(enum_name(s_.cluster.pools[to].role)) +
                ", and its servers would replace those of role " +
                std::string(enum_name(s_.cluster.pools[from].role)),
            "name a pool of the same role");
    }
  }

  const Scenario& s_;
  const FleetEventConfig& e_;
  std::string path_;
  const SourceLocation& where_;
  Diagnostics& diagnostics_;
};

/// Metrics that a simulation has.
bool is_simulated(FleetMetric metric) {
  switch (metric) {
    case FleetMetric::kInflightTokens:
    case FleetMetric::kServerItl:
    case FleetMetric::kServerQueueTime:
    case FleetMetric::kFlowQueueBytes:
    case FleetMetric::kRouterRunning:
      return false;
    default:
      return true;
  }
}

/// The exporters of metrics around the servers of a pool. A router that is nobody's product stands
/// in an endpoint picker, but for the plain ones, which export nothing.
FleetExporters exporters_of(const RoutingConfig& routing, const PoolConfig& pool) {
  const policies::BalancerRow& row = policies::balancer_row(routing.balancer);
  FleetExporter router = FleetExporter::kKubernetes;
  if (row.product == "KubeAI") router = FleetExporter::kKubeAi;
  if (row.section == "production_stack") router = FleetExporter::kProductionStack;
  if (row.product == "yours" || routing.balancer == BalancerKind::kEndpointPicker ||
      routing.balancer == BalancerKind::kOmniscient)
    router = FleetExporter::kEndpointPicker;
  const bool sglang = pool.engine.kind == EngineKind::kSglang;
  const FleetExporter engine = sglang ? FleetExporter::kSglang : FleetExporter::kVllm;
  return static_cast<FleetExporters>(static_cast<int>(FleetExporter::kKubernetes) |
                                     static_cast<int>(router) | static_cast<int>(engine));
}

std::optional<AutoscalerConfig> autoscaler_of(const RoutingConfig& routing,
                                              const PoolConfig& pool) {
  std::optional<AutoscalerConfig> config = pool.autoscaler;
  if (config) config->exporters = exporters_of(routing, pool);
  return config;
}

void check_autoscaler(const AutoscalerConfig& config, const SourceLocation& where,
                      const std::string& path, Diagnostics& diagnostics) {
  const std::vector<AutoscalerFault> faults = autoscaler_faults(config);
  for (const AutoscalerFault& f : faults)
    diagnostics.error(where, f.path.empty() ? path : path + "." + f.path, f.message, f.hint);
  if (!faults.empty()) return;
  for (const std::string& matcher : unused_matchers(config))
    diagnostics.warning(
        where, path,
        "the label matcher " + matcher + " selects nothing: all series are the pool's own");
  for (const std::string& name : missing_series(config))
    diagnostics.warning(where, path,
                        "reads " + name + ", which nobody exports here: it has no series",
                        "take a metric of this router or of these servers");
  const AutoscalerPlan plan = autoscaler_plan(config);
  for (std::size_t i = 0; i < plan.queries.size(); ++i)
    for (const SeriesId id : plan.queries[i].series)
      if (id < kFirstRule && !is_simulated(name_of(id).metric))
        diagnostics.error(
            where, path,
            "its query number " + std::to_string(i + 1) + " reads a metric that is not simulated",
            "simulated are waiting, running, KV use, tokens, requests, TTFT, TPOT, "
            "latency and the endpoint picker's means of its pool");
}

void check_budget(const PoolConfig& pool, const SourceLocation& where, const std::string& path,
                  Diagnostics& diagnostics) {
  for (const auto& [key, text] :
       {std::pair<const char*, const std::string&>{"most_evicted", pool.most_evicted},
        {"min_available", pool.min_available}})
    if (!text.empty() && !servers_of(text, 1, true))
      diagnostics.error(where, path + key, kNumberOrPercent + text + ")", "for example 1, or 25%");
  if (!pool.most_evicted.empty() && !pool.min_available.empty())
    diagnostics.error(where, path + "min_available", "stands beside most_evicted",
                      "keep one of the two");
}

void check_leader_election(const RoutingConfig& routing, const SourceLocation& where,
                           Diagnostics& diagnostics) {
  const std::string key = "routing.leader_election";
  if (!routing.leader_election) return;
  if (routing.balancer != BalancerKind::kEndpointPicker)
    diagnostics.error(where, key, "is of endpoint pickers", "leave it out");
  else if (routing.router_replicas < 2)
    diagnostics.error(where, key, "needs another process that stands by",
                      "set routing.router_replicas to 2 or more, or leave it out");
}

/// Surge of a roll-out, at most.
std::int64_t surge_of(const FleetEventConfig& e, std::int64_t replicas) {
  return servers_of(e.max_surge.empty() ? "25%" : e.max_surge, replicas, true).value_or(0);
}

/// The pool has its servers from a roll-out: the first one that it takes part in leads to it.
bool is_filled(const Scenario& s, std::size_t pool) {
  const FleetEventConfig* first = nullptr;
  for (const FleetEventConfig& e : s.events)
    if (is(e, FleetEventKind::kRollOut) && e.at &&
        (is_about(s, e, pool) || e.to == s.cluster.pools[pool].name) &&
        (first == nullptr || *e.at < *first->at))
      first = &e;
  return first != nullptr && !is_about(s, *first, pool);
}

/// By pool: the most servers that somebody wants of it, or of a pool whose servers roll-outs bring
/// to it, by way of others, too. O(events x pools^2).
std::vector<std::int64_t> most_wanted(const Scenario& s) {
  const std::vector<PoolConfig>& pools = s.cluster.pools;
  std::vector<std::int64_t> most;
  for (std::size_t p = 0; p < pools.size(); ++p) {
    most.push_back(pools[p].replicas);
    if (pools[p].autoscaler)
      most[p] = std::max<std::int64_t>(most[p], most_replicas(*pools[p].autoscaler));
    for (const FleetEventConfig& e : s.events)
      if (is(e, FleetEventKind::kScale) && is_about(s, e, p))
        most[p] = std::max(most[p], e.replicas.value_or(0));
  }
  // Each round brings the largest number at least one pool further.
  for (std::size_t round = 0; round < pools.size(); ++round)
    for (const FleetEventConfig& e : s.events)
      for (std::size_t to = 0; is(e, FleetEventKind::kRollOut) && to < pools.size(); ++to)
        for (std::size_t from = 0; e.to == pools[to].name && from < pools.size(); ++from)
          if (is_about(s, e, from)) most[to] = std::max(most[to], most[from]);
  return most;
}

/// Servers that `scale` takes away: each keeps its place until its grace period is over.
std::int64_t scaled_away(const Scenario& s, std::size_t pool) {
  std::vector<const FleetEventConfig*> steps;
  for (const FleetEventConfig& e : s.events)
    if (is(e, FleetEventKind::kScale) && is_about(s, e, pool) && e.at && e.replicas)
      steps.push_back(&e);
  std::ranges::stable_sort(steps, {}, [](const FleetEventConfig* e) { return *e->at; });
  std::int64_t now = s.cluster.pools[pool].replicas, away = 0;
  for (const FleetEventConfig* e : steps) {
    away += std::max<std::int64_t>(0, now - *e->replicas);
    now = *e->replicas;
  }
  return away;
}

/// Servers that drains at a rate have left in one grace period: four standard deviations above the
/// mean, and at least one for each server.
std::int64_t drained(const FleetEventConfig& e, const PoolConfig& pool) {
  constexpr double kMostDrained = 1'000;
  const double mean = static_cast<double>(pool.replicas) * pool.termination.grace.to_seconds() /
                      e.mean_time_between->to_seconds();
  const double many = std::min(kMostDrained, mean + 4 * std::sqrt(mean));
  return std::max(pool.replicas, static_cast<std::int64_t>(many));
}

}  // namespace

bool fleet_changes(const Scenario& s) {
  return !s.events.empty() ||
         std::ranges::any_of(s.cluster.pools, [](auto& p) { return !!p.autoscaler; });
}

bool has_price(const Scenario& s) {
  return std::ranges::any_of(s.cluster.pools, [](auto& p) { return !!p.gpu_price_per_hour; });
}

void set_events(RunPlan& plan, std::vector<FleetEventConfig> events) {
  plan.scenario.events = std::move(events);
  for (std::size_t i = 0; i < plan.pools.size(); ++i)
    plan.pools[i].extra_places =
        places_of(plan.scenario, i) - plan.scenario.cluster.pools[i].replicas;
}

void forget_events(RunPlan& plan) {
  if (!plan.scenario.events.empty()) set_events(plan, {});
}

std::int64_t places_of(const Scenario& s, std::size_t index) {
  const PoolConfig& pool = s.cluster.pools[index];
  std::int64_t most = most_wanted(s)[index], extra = 0;
  bool ends_many = pool.autoscaler.has_value();
  for (const FleetEventConfig& e : s.events) {
    const bool here = is_about(s, e, index);
    if (ends_pods(e) && here)
      extra +=
          e.mean_time_between ? drained(e, pool) : std::max<std::int64_t>(1, std::ssize(e.servers));
    const bool rolls = is(e, FleetEventKind::kRollOut) && (e.to.empty() ? here : e.to == pool.name);
    if (rolls) extra += surge_of(e, most);
    ends_many |= rolls || (is(e, FleetEventKind::kScale) && here);
  }
  // Pods that end keep their places while new ones start.
  return std::min(kMostPlaces,
                  most + extra + (ends_many ? std::max(most, scaled_away(s, index)) : 0));
}

void check_fleet(const Scenario& s, const SourceLocation& where, Diagnostics& diagnostics) {
  if (s.cluster.pools.empty()) return;
  check_leader_election(s.routing, where, diagnostics);
  for (std::size_t i = 0; i < s.events.size(); ++i) EventCheck(s, i, where, diagnostics).check();
  for (std::size_t p = 0; p < s.cluster.pools.size(); ++p) {
    const PoolConfig& pool = s.cluster.pools[p];
    const std::string path = "cluster.pools[" + std::to_string(p) + "].";
    if (places_of(s, p) == 0)
      diagnostics.error(where, path + "replicas", "is 0, and nothing starts a server",
                        "give 1 or more, an `autoscaler`, or an event that starts servers (scale, "
                        "or a roll-out `to` this pool)");
    if (!pool.gpu_price_per_hour && has_price(s))
      diagnostics.warning(where, path + "gpu_price_per_hour",
                          "is missing, and other pools have it: the fleet as a whole has no cost");
    check_budget(pool, where, path, diagnostics);
    if (pool.autoscaler && is_filled(s, p))
      diagnostics.error(where, path + "autoscaler",
                        "is of a pool that a roll-out fills, whose servers the autoscaler of the "
                        "pool before it goes on to scale",
                        "write it into the pool where the servers come from");
    if (const auto autoscaler = autoscaler_of(s.routing, pool))
      check_autoscaler(*autoscaler, where, path + "autoscaler", diagnostics);
  }
  if (fleet_changes(s))
    if (const std::string_view missing = discovery_facts(s.routing.balancer).not_simulated;
        !missing.empty())
      diagnostics.warning(where, "routing.balancer",
                          "is simulated without " + std::string(missing));
  if (fleet_changes(s) && s.routing.balancer == BalancerKind::kOmniscient)
    diagnostics.error(where, "routing.balancer", "omniscient prices a fleet that never changes",
                      "take out the events, and `autoscaler`");
}

StartUpTimes start_up_of(const PoolConfig& pool, const models::ModelSpec& model,
                         const models::AcceleratorSpec& gpu, const EngineRules& rules) {
  const models::Parallelism split{
      .tp = pool.tensor_parallel,
      .pp = pool.pipeline_parallel,
      .dp = pool.data_parallel,
      .ep = pool.expert_parallel ? pool.tensor_parallel * pool.data_parallel : 1};
  return start_up_times(
      pool.start_up,
      {.weight_bytes = models::weight_bytes(model),
       .gpu_weight_bytes = models::weight_bytes_per_gpu(model, split),
       .layers = (model.layers + split.pp - 1) / split.pp,
       .gpus = split.gpus(),
       // Experts are stored one by one, and a GPU holds whole ones.
       .slices = pool.expert_parallel ? 1 : split.tp,
       .compiles = pool.engine.kind == EngineKind::kVllm && !pool.engine.enforce_eager,
       .cuda_graphs = graphs_of(pool.engine, rules),
       .host_link_gb_per_s = gpu.host_link_gb_per_s});
}

Discovery discovery_of(const RoutingConfig& routing) {
  const DiscoveryFacts& facts = discovery_facts(routing.balancer);
  const DiscoveryConfig c = routing.discovery.value_or(DiscoveryConfig{});
  const Duration unseen = c.leave_unseen.value_or(facts.leave_unseen);
  return {.join = c.join.value_or(facts.join),
          .leave = c.leave.value_or(facts.leave),
          .leave_unseen = unseen,
          .leave_vanished = facts.by_lease ? unseen : Fleet::kNodeGrace + unseen,
          .by_checks = facts.by_checks};
}

bool carries_requests(const RoutingConfig& routing) {
  return routing.balancer != BalancerKind::kEndpointPicker &&
         routing.balancer != BalancerKind::kK8sService &&
         policies::balancer_row(routing.balancer).section != "aibrix";
}

std::vector<FleetPool> fleet_pools(const RunPlan& plan) {
  std::vector<FleetPool> pools;
  for (std::size_t p = 0; p < plan.pools.size(); ++p) {
    const ResolvedPool& pool = plan.pools[p];
    pools.push_back({.name = pool.config.name,
                     .replicas = is_filled(plan.scenario, p) ? 0 : pool.config.replicas,
                     .places = pool.places(),
                     .start_up = pool.start_up,
                     .termination = pool.config.termination,
                     .autoscaler = autoscaler_of(plan.scenario.routing, pool.config),
                     .most_evicted = pool.config.most_evicted,
                     .min_available = pool.config.min_available});
  }
  return pools;
}

bool asks_for_replays(const RunPlan& plan) {
  const Scenario& s = plan.scenario;
  if (!plan.endpoint_picker || (!fleet_changes(s) && s.routing.kv_event_loss == 0)) return false;
  const std::optional<policies::Requirements> needed =
      policies::requirements(*plan.endpoint_picker);
  return needed && needed->signals.kv_replays;
}

void elect_leader(Fleet& fleet, const RunPlan& plan) {
  const RoutingConfig& routing = plan.scenario.routing;
  if (routing.leader_election)
    fleet.elect_leader(static_cast<std::size_t>(routing.router_replicas),
                       policies::traits(plan.endpoint_picker->era).ha_standby);
}

std::vector<FleetEventConfig> fleet_events(const Scenario& s) {
  std::vector<FleetEventConfig> events = s.events;
  for (FleetEventConfig& e : events)
    if (e.pool.empty() && e.kind != FleetEventKind::kRouterRestart)
      e.pool = s.cluster.pools.front().name;
  return events;
}

}  // namespace routesim::sim
