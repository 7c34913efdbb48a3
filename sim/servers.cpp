#include "sim/servers.h"

#include <algorithm>
#include <string>
#include <utility>

namespace routesim::sim {

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

Servers::Servers(const RunPlan& plan, std::uint64_t seed, bool reference,
                 const PromptKeyTable& keys, SequenceKeySource& key_source)
    : plan_(plan), keys_(keys), key_source_(key_source) {
  const RoutingConfig& routing = plan.scenario.routing;
  common_.reference = reference;
  common_.publish_events = keys.router().precise.has_value();
  common_.kv_event_delay = routing.kv_event_delay;
  common_.kv_event_loss = routing.kv_event_loss;
  common_.scrape_interval = routing.scrape_interval.value_or(kScrapeInterval);
  common_.seed = seed;
  std::vector<EndpointHome> homes;
  for (std::uint32_t p = 0; p < plan.pools.size(); ++p) add_pool(p, homes);
  requests_.assign(homes.size(), 0);
  endpoints_.emplace(std::move(homes));
  up_.resize(server_begin_.size());
  for (std::uint32_t server = 0; server < up_.size(); ++server) start(server, SimTime::zero());
}

void Servers::add_pool(std::uint32_t index, std::vector<EndpointHome>& homes) {
  const ResolvedPool& pool = plan_.pools[index];
  const auto ranks = static_cast<int>(pool.config.data_parallel);
  const int loops = pool.lock_step ? 1 : ranks;
  const int ranks_per_loop = pool.lock_step ? ranks : 1;
  const bool internal =
      ranks > 1 && pool.config.data_parallel_balancing == DataParallelBalancing::kInternal;
  for (std::int64_t server = 0; server < pool.places(); ++server) {
    const std::size_t server_begin = homes.size();
    server_begin_.push_back(static_cast<std::uint32_t>(server_begin));
    for (int loop = 0; loop < loops; ++loop) {
      const auto replica = static_cast<std::uint32_t>(replicas_.size());
      add_replica(pool, ranks_per_loop, homes.size(),
                  internal ? std::optional<std::uint64_t>(server_begin) : std::nullopt);
      for (int rank = 0; rank < ranks_per_loop; ++rank) {
        std::string name = pool.config.name + "-" + std::to_string(server);
        if (ranks > 1) name += "-rank-" + std::to_string(pool.lock_step ? rank : loop);
        const auto self = static_cast<std::uint32_t>(homes.size());
        if (!internal || self == server_begin) api_servers_.emplace_back(pool.api_server);
        api_server_of_.push_back(static_cast<std::uint32_t>(api_servers_.size() - 1));
        server_of_.push_back(static_cast<std::uint32_t>(server_begin_.size() - 1));
        homes.push_back({.replica = replica,
                         .rank = rank,
                         .pool = index,
                         .server = internal ? static_cast<std::uint32_t>(server_begin) : self,
                         .behind_front_end = internal,
                         .name = name});
      }
    }
    if (!internal) continue;
    for (std::size_t e = server_begin; e < homes.size(); ++e)
      front_end_of_.emplace(static_cast<std::uint32_t>(e), front_ends_.size());
    front_ends_.emplace_back(static_cast<std::uint32_t>(server_begin), ranks,
                             front_end_rules(pool));
  }
}

std::string chunk_layout(const ResolvedPool& pool) {
  const TierRules& tiers = pool.rules.tiers;
  return pool.config.model + "\n" + std::to_string(tiers.chunk_blocks * pool.rules.block_size) +
         "\n" + std::to_string(tiers.block_bytes);
}

// The store of a pool's engines, null if they share none. A process of its own holds all of it
// where any pool says so, however many servers there are at first.
ChunkPool* Servers::store_of(const ResolvedPool& pool) {
  if (!pool.rules.tiers.in_use() || !pool.rules.tiers.shared_store) return nullptr;
  const std::string layout = chunk_layout(pool);
  std::int64_t whole = 0;
  for (const ResolvedPool& p : plan_.pools) {
    const TierRules& tiers = p.rules.tiers;
    if (tiers.shared_store && tiers.whole_store && chunk_layout(p) == layout)
      whole = std::max(whole, tiers.cpu_chunks);
  }
  return &stores_.try_emplace(layout, whole).first->second;
}

void Servers::add_replica(const ResolvedPool& pool, int ranks, std::uint64_t first_endpoint,
                          std::optional<std::uint64_t> front_end) {
  ReplicaOptions r = common_;
  r.rules = pool.rules;
  r.latency = pool.latency;
  r.one_key = keys_.one_key(pool.rules.block_size);
  r.ranks = ranks;
  r.store = store_of(pool);
  r.first_endpoint = first_endpoint;
  r.front_end = front_end;
  replicas_.push_back(std::make_unique<Replica>(r, key_source_));
}

void Servers::start(std::uint32_t server, SimTime now) {
  up_[server] = now;
  const Range range = endpoints_of(server);
  for (std::uint32_t e = range.first; e < range.end; ++e) {
    const ResolvedPool& pool = plan_.pools[(*endpoints_)[e].pool];
    ChunkPool* const store = store_of(pool);
    if (store == nullptr) continue;
    store->add_users(1);
    if (store->in_parts() && !pool.rules.tiers.whole_store)
      part_[e] = store->add_part(pool.rules.tiers.cpu_chunks);
  }
}

bool Servers::end(std::uint32_t server, bool leaves, SimTime now) {
  const Range range = endpoints_of(server);
  for (std::uint32_t e = range.first; e < range.end && up_[server]; ++e) {
    ran_ += now - *up_[server];
    ChunkPool* const store = store_of(plan_.pools[(*endpoints_)[e].pool]);
    if (store == nullptr) continue;
    store->add_users(-1);
    const auto part = part_.extract(e);
    if (!part) continue;
    store->lose_part(part.mapped());
    for (const std::unique_ptr<Replica>& r : replicas_)
      for (int rank = 0; rank < r->ranks(); ++rank)
        if (r->scheduler(rank).has_tiers()) r->scheduler(rank).tiers().lose_sources();
    if (leaves)
      store->forget_part(part.mapped());
    else
      lost_.push_back({.store = store, .part = part.mapped(), .at = now});
  }
  up_[server].reset();
  return !lost_.empty() && lost_.back().at == now;
}

void Servers::restart(std::uint32_t server, SimTime now) {
  const Range range = endpoints_of(server);
  for (std::uint32_t e = range.first; e < range.end; ++e) {
    const EndpointHome& at = (*endpoints_)[e];
    if (at.rank == 0) replicas_[at.replica]->restart(now);
    api_servers_[api_server_of_[e]].restart();
  }
}

void Servers::forget_lost(SimTime lost) {
  while (!lost_.empty() && lost_.front().at <= lost) {
    lost_.front().store->forget_part(lost_.front().part);
    lost_.pop_front();
  }
}

EndpointId Servers::choose_rank(EndpointId server, SimTime now) {
  const auto it = front_end_of_.find(server.value());
  if (it == front_end_of_.end()) return server;
  FrontEnd& front_end = front_ends_[it->second];
  const auto observe = [&](std::uint32_t endpoint) {
    const EndpointHome& at = (*endpoints_)[endpoint];
    replicas_[at.replica]->advance_to(now);
    const Gauges g = replicas_[at.replica]->gauges(at.rank);
    return FrontEnd::RankLoad{
        .waiting = g.waiting,
        .running = g.running,
        .kv_usage = 1.0 - static_cast<double>(g.free_blocks) / usable_blocks(at)};
  };
  return EndpointId(front_end.choose(now, observe));
}

void Servers::leave_rank(EndpointId endpoint) {
  const auto it = front_end_of_.find(endpoint.value());
  if (it != front_end_of_.end()) front_ends_[it->second].on_completed(endpoint.value());
}

Servers::KvUse Servers::kv_use(SimTime now) {
  KvUse all{.up = ran_};
  for (std::uint32_t e = 0; e < endpoints_->size(); ++e) {
    const EndpointHome& at = (*endpoints_)[e];
    replicas_[at.replica]->advance_to(now);
    all.used_s += replicas_[at.replica]->used_block_seconds(at.rank, now) / usable_blocks(at);
    if (const std::optional<SimTime>& since = up_[server_of_[e]]) all.up += now - *since;
  }
  return all;
}

}  // namespace routesim::sim
