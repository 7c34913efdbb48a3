#include "sim/run_recorder.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/rng.h"
#include "sim/plan/router_costs.h"

namespace routesim::sim {

RunRecorder::RunRecorder(const RunPlan& plan, const std::vector<workloads::StageInfo>& stages,
                         Servers& servers, bool keep_requests)
    : plan_(plan),
      servers_(servers),
      keep_requests_(keep_requests),
      metrics_(stages, plan.scenario.workload),
      mixed_(!stages.empty() && stages.front().part >= 0),
      outstanding_(stages.size()),
      start_usage_(stages.size()) {
  result_.routing.priced = prices_decisions(plan);
  for (const std::unique_ptr<Replica>& replica : servers.replicas())
    replica->count_gaps_in(&unattributed_gaps_);
}

void RunRecorder::enter_stage(StageId stage, SimTime now) {
  if (stage_.valid() && stage == stage_) return;
  stage_ = stage;
  const bool begins = metrics_.stage(stage).requests == 0;
  if (mixed_ && !begins) return;
  for (const std::unique_ptr<Replica>& replica : servers_.replicas()) {
    replica->advance_to(now);
    if (!mixed_) replica->count_gaps_in(&metrics_.stage(stage).inter_token_latency);
  }
  if (!begins) return;
  start_usage_[stage.value()] = servers_.kv_use(now);
  if (mixed_ && metrics_.stage(stage).info.reported && !mix_start_usage_)
    mix_start_usage_ = start_usage_[stage.value()];
}

void RunRecorder::on_gap(StageId stage, Duration gap) {
  if (mixed_)
    unattributed_gaps_.add_nano(gap.ns(), 1);
  else
    metrics_.on_gap(stage, gap);
}

void RunRecorder::on_sent(const workloads::Request& request, SimTime now) {
  ++outstanding_[request.stage.value()];
  metrics_.on_sent(request, now);
}

RequestRecord RunRecorder::on_done(const LiveRequest& live, workloads::Outcome outcome, bool served,
                                   SimTime now) {
  const workloads::Request& request = live.request;
  RequestRecord record;
  record.id = request.id.value();
  record.stage = static_cast<std::int32_t>(request.stage.value());
  if (live.route.routed) {
    record.endpoint = static_cast<std::int32_t>(live.route.endpoint.value());
    if (live.route.prefill)
      record.prefill_endpoint = static_cast<std::int32_t>(live.route.prefill->value());
  }
  record.due = request.due;
  record.sent = live.sent;
  record.first_token = live.first_token;
  record.end = now;
  if (outcome == workloads::Outcome::kSuccess) record.held_open = request.held_open;
  record.prompt_tokens = request.prompt->tokens;
  record.cached_tokens = live.cached_tokens;
  record.output_tokens = request.output_tokens;
  record.preemptions = live.preemptions;
  record.traffic_class = request.traffic_class;
  record.adapter = request.prompt->adapter;
  record.predicted_hit_tokens = live.route.predicted_hit_tokens;
  record.regret_s = live.route.regret_s;
  record.outcome = outcome;
  record.failure = live.failure;
  record.tier = live.tier;
  record.tier.pulled_tokens = std::min(record.tier.pulled_tokens, record.tier.loaded_tokens);
  metrics_.on_done(record, record.failure);
  if (served && outcome != workloads::Outcome::kSuccess && is_turned_away(record.failure))
    metrics_.on_turned_away(request.stage);
  return record;
}

void RunRecorder::close(const RequestRecord& record, StageId stage, SimTime now) {
  if (keep_requests_) result_.requests.push_back(record);
  result_.routing.prompt_tokens += record.prompt_tokens;
  result_.routing.hit_tokens += record.cached_tokens;
  result_.routing.regret_s += record.regret_s;
  result_.routing.predicted_hit_tokens += std::max<std::int64_t>(0, record.predicted_hit_tokens);
  result_.fingerprint =
      mix64(result_.fingerprint, mix64(mix64(static_cast<std::uint64_t>(record.id),
                                             static_cast<std::uint64_t>(record.first_token.ns())),
                                       mix64(static_cast<std::uint64_t>(now.ns()),
                                             static_cast<std::uint64_t>(record.endpoint))));
  if (--outstanding_[stage.value()] == 0) close_stage(stage, now);
}

namespace {

/// The mean share of KV blocks in use over `time`, of the endpoints that there are then.
double mean_use(const Servers::KvUse& from, const Servers::KvUse& to, Duration time) {
  const double up =
      static_cast<double>((to.up - from.up).ns()) / static_cast<double>(time.ns());  // Endpoints.
  return up > 0 ? (to.used_s - from.used_s) / time.to_seconds() / up : 0;
}

}  // namespace

void RunRecorder::close_stage(StageId stage, SimTime now) {
  StageResult& s = metrics_.stage(stage);
  if (now <= s.first_send) return;
  const Servers::KvUse use = servers_.kv_use(now);
  s.kv_cache_usage_mean = mean_use(start_usage_[stage.value()], use, now - s.first_send);
  if (mixed_ && s.info.reported)
    mix_usage_ = mean_use(*mix_start_usage_, use, now - metrics_.first_send());
  for (const EndpointHome& at : servers_.endpoints().homes())
    s.kv_cache_usage_max =
        std::max(s.kv_cache_usage_max,
                 static_cast<double>(servers_.replica(at.replica).peak_used_blocks(at.rank)) /
                     servers_.usable_blocks(at));
}

ReplicaResult RunRecorder::replica_result(std::uint32_t endpoint, SimTime end) const {
  const EndpointHome& at = servers_.endpoints()[endpoint];
  const ResolvedPool& pool = servers_.pool(at);
  const Replica& replica = *servers_.replicas()[at.replica];
  const BatchScheduler& s = replica.scheduler(at.rank);
  const double usable = servers_.usable_blocks(at);
  ReplicaResult r;
  r.name = at.name;
  r.pool = pool.config.name;
  r.requests = servers_.requests(endpoint);
  r.steps = replica.steps();
  r.busy_s = replica.busy().to_seconds();
  const EngineTotals did = replica.totals(at.rank);
  r.prefix_query_tokens = did.counters.prefix_query_tokens;
  r.prefix_hit_tokens = did.counters.prefix_hit_tokens;
  r.preemptions = did.counters.preemptions;
  r.num_gpu_blocks = pool.rules.num_gpu_blocks;
  r.kv_cache_tokens = pool.kv_cache_tokens;
  r.evicted_blocks = did.evictions;
  r.kv_cache_usage_mean =
      end.ns() > 0 ? replica.used_block_seconds(at.rank, end) / usable / end.to_seconds() : 0;
  r.kv_cache_usage_max = static_cast<double>(replica.peak_used_blocks(at.rank)) / usable;
  r.max_running = did.counters.max_running;
  r.max_waiting = did.counters.max_waiting;
  if (s.speculation().speculates())
    r.speculation = {.drafts = did.speculation.drafts,
                     .draft_tokens = did.speculation.draft_tokens,
                     .accepted_tokens = did.speculation.accepted_tokens,
                     .accepted_per_position = did.speculation.accepted_per_position};
  return r;
}

// No gauge of the engine shows these waits, so a note does.
void RunRecorder::note_long_waits() {
  constexpr Duration kLong = Duration::seconds(1);
  std::vector<Duration> longest(plan_.pools.size());
  for (std::uint32_t e = 0; e < servers_.endpoints().size(); ++e) {
    Duration& pool = longest[servers_.endpoints()[e].pool];
    pool = std::max(pool, servers_.api_server(servers_.api_server_of(EndpointId(e))).longest());
  }
  for (std::size_t p = 0; p < longest.size(); ++p) {
    if (longest[p] <= kLong) continue;
    result_.notes.push_back(plan_.pools[p].config.name +
                            ": before its engine heard of it a request spent up to " +
                            std::to_string(longest[p].ns() / 1'000'000) +
                            " ms in the API server (api_server), which no gauge of vLLM shows");
  }
}

std::vector<StepTimes> RunRecorder::step_times() const {
  std::vector<StepTimes> pools;
  for (const ResolvedPool& pool : plan_.pools)
    pools.push_back({.pool = pool.config.name, .trust = pool.latency->trust({})});
  for (const EndpointHome& at : servers_.endpoints().homes()) {
    if (at.rank != 0) continue;
    const Replica& replica = *servers_.replicas()[at.replica];
    pools[at.pool].busy_s += replica.busy().to_seconds();
    pools[at.pool].extrapolated_s += replica.extrapolated_s();
  }
  for (StepTimes& pool : pools)
    if (pool.extrapolated_s > kMostExtrapolated * pool.busy_s)
      pool.trust = models::Trust::kExtrapolated;
  return pools;
}

const KvTiers& RunRecorder::tiers_of(std::uint32_t endpoint) const {
  const EndpointHome& at = servers_.endpoints()[endpoint];
  return servers_.replica(at.replica).scheduler(at.rank).tiers();
}

// An engine that shares a store has as much of it as any other.
TierResult RunRecorder::tier_result(std::uint32_t endpoint, const LinkUse& links) const {
  const EndpointHome& at = servers_.endpoints()[endpoint];
  const KvTiers& tiers = tiers_of(endpoint);
  LinkUse use = links;
  if (tiers.rules().copies_in_steps) {
    const double most = tiers.rules().link_bytes_per_s * std::max(1e-9, result_.end.to_seconds());
    use.to_gpus = tiers.counters().loaded_bytes / most;
    use.to_host = tiers.counters().stored_bytes / most;
  }
  const EngineTotals totals = servers_.replica(at.replica).totals(at.rank);
  const double chunk = servers_.is_up(endpoint) ? tiers.chunk_bytes() : 0;
  const double users = tiers.shared() == nullptr ? 1 : static_cast<double>(tiers.shared()->users());
  return {.hbm_query_tokens = totals.counters.prefix_query_tokens,
          .hbm_hit_tokens = totals.counters.prefix_hit_tokens,
          .did = tiers.counters(),
          .capacity_bytes = static_cast<double>(tiers.capacity()) * chunk / users,
          .used_bytes = static_cast<double>(tiers.chunks()) * chunk / users,
          .links = use};
}

// A store that engines share counts once, and as a whole: it may outlive them.
void RunRecorder::add_tiers(const Transfers& transfers, SimTime end) {
  TierResult all;
  std::set<const ChunkPool*> stores;
  double taken = 0;
  for (std::uint32_t e = 0; e < servers_.endpoints().size(); ++e) {
    if (!servers_.has_tiers(EndpointId(e))) continue;
    const TierResult one = tier_result(e, transfers.use(e, end));
    result_.replicas[e].tiers = one;
    result_.summary.tiers.emplace();
    all.hbm_query_tokens += one.hbm_query_tokens;
    all.hbm_hit_tokens += one.hbm_hit_tokens;
    all.did.add(one.did);
    const KvTiers& tiers = tiers_of(e);
    const bool is_own = tiers.shared() == nullptr;
    if (is_own ? servers_.is_up(e) : stores.insert(tiers.shared()).second) {
      all.capacity_bytes += static_cast<double>(tiers.capacity()) * tiers.chunk_bytes();
      all.used_bytes += static_cast<double>(tiers.chunks()) * tiers.chunk_bytes();
    }
    if (!servers_.is_up(e) && servers_.requests(e) == 0) continue;  // A place that was never taken.
    ++taken;
    for (double LinkUse::*use : {&LinkUse::to_gpus, &LinkUse::to_host, &LinkUse::host_memory,
                                 &LinkUse::nic_out, &LinkUse::nic_in})
      all.links.*use += (one.links.*use - all.links.*use) / taken;
  }
  if (result_.summary.tiers) result_.summary.tiers = all;
}

void RunRecorder::note_decision_queue(const DecisionQueue& queue) {
  const RoutingConfig& routing = plan_.scenario.routing;
  const double service_s = queue.mean_service_s();
  if (service_s == 0) return;
  result_.routing.mean_wait_s = queue.mean_wait_s();
  result_.routing.longest_wait_s = queue.longest_wait().to_seconds();
  const double capacity = static_cast<double>(serving_routers(routing)) / service_s;
  result_.routing.decisions_per_s = capacity;
  if (queue.longest_wait() <= Duration::seconds(1)) return;
  const double base_s = routing.service_time.value_or(Duration::zero()).to_seconds();
  result_.notes.push_back(
      "the router is a bottleneck: requests wait up to " +
      std::to_string(std::llround(result_.routing.longest_wait_s)) +
      " s for a decision, and its processes make " + std::to_string(std::llround(capacity)) +
      " of them per second (routing.router_replicas, routing.service_time" +
      (service_s > 2 * base_s ? "_per_megabyte: most of a decision is the length of its prompt"
       : routing.service_time == kPickerService
           ? "; one endpoint picker made 324 to 388 in published tests"
           : "") +
      ")");
}

void RunRecorder::note_replays(std::int64_t failed) {
  if (failed == 0) return;
  result_.notes.push_back(
      std::to_string(failed) + (failed == 1 ? " replay" : " replays") +
      " of KV events brought less than the router asked for, so that it deleted what it knew of "
      "the server and dropped later events (replaySocketPort; an engine keeps 10000 batches)");
}

void RunRecorder::note_gateway(const Gateway& gateway) {
  result_.routing.gateway = gateway.result();
  for (std::string& note : gateway.notes(metrics_.stages()))
    result_.notes.push_back(std::move(note));
}

void RunRecorder::note_fleet(Fleet& seen, SimTime now) {
  for (std::string& note : seen.failing_queries()) result_.notes.push_back(std::move(note));
  FleetResult found = seen.take_result(now);
  FleetResult& all = fleet();
  found.lost = all.lost;
  found.sent_again = all.sent_again;
  found.fell_back = all.fell_back;
  all = std::move(found);
  for (std::size_t p = 0; p < all.pools.size(); ++p) {
    const PoolConfig& pool = plan_.pools[p].config;
    const auto gpus = static_cast<double>(pool.gpus_per_server());
    all.pools[p].gpu_hours = gpus * all.pools[p].server_hours;
    if (pool.gpu_price_per_hour) all.pools[p].price_per_hour = gpus * *pool.gpu_price_per_hour;
  }
}

void RunRecorder::note_streams(std::int64_t most_in_flight) {
  constexpr std::int64_t kStreams = 1'024;
  const RoutingConfig& routing = plan_.scenario.routing;
  if (!plan_.endpoint_picker || routing.gateway || most_in_flight <= kStreams) return;
  result_.notes.push_back(
      "up to " + std::to_string(most_in_flight) +
      " requests were in flight: Envoy keeps an ext_proc stream for each, and fails the 1,025th "
      "unless its cluster of the endpoint picker has a higher limit (llm-d/llm-d #1582, "
      "envoyproxy/ai-gateway #1884); routing.gateway with protocol: http2 simulates that");
}

RunResult RunRecorder::take_result(workloads::LoadGenerator& load, const Transfers& transfers,
                                   std::uint64_t seed, SimTime end, bool stopped) {
  result_.scenario = plan_.scenario.name;
  result_.variant = plan_.scenario.variant;
  result_.seed = seed;
  result_.end = end;
  if (stopped) result_.notes.emplace_back("stopped early: the results are partial");
  for (std::uint32_t e = 0; e < servers_.endpoints().size(); ++e)
    result_.replicas.push_back(replica_result(e, end));
  result_.step_times = step_times();
  for (const ResolvedPool& pool : plan_.pools)
    result_.notes.push_back(pool.config.name + ": " + pool.latency->provenance());
  note_long_waits();
  for (std::string& note : load.notes()) result_.notes.push_back(std::move(note));
  // A load may have found the rates of its stages by itself.
  for (std::size_t s = 0; s < metrics_.stages().size(); ++s)
    metrics_.stages()[s].info = load.stages()[s];
  metrics_.drop_gaps_without_success();
  metrics_.measure_growth();
  if (stopped) metrics_.forget_unfinished();
  result_.summary = metrics_.summary();
  if (result_.fleet)
    result_.summary.fleet = {.mean_servers = result_.fleet->mean_servers(),
                             .lost = static_cast<double>(result_.fleet->lost),
                             .cost = result_.fleet->cost()};
  if (mixed_) {
    if (!stopped) result_.summary.kv_cache_usage_mean = mix_usage_;
    if (result_.summary.successes > 0)
      result_.summary.inter_token_latency = std::move(unattributed_gaps_);
    result_.notes.emplace_back(
        "loads run side by side: gaps between tokens (ITL) are those of all requests together, of "
        "unreported stages, too; each load has its own TPOT");
  }
  result_.stages = std::move(metrics_.stages());
  result_.classes = std::move(metrics_.classes());
  add_tiers(transfers, end);
  return std::move(result_);
}

}  // namespace routesim::sim
