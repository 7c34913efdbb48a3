// The model servers of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/engine/api_server.h"
#include "sim/engine/endpoints.h"
#include "sim/engine/front_end.h"
#include "sim/engine/replica.h"
#include "sim/kv/prompt_keys.h"
#include "sim/plan/resolve.h"
#include "sim/tiers/chunk_pool.h"

namespace routesim::sim {

/// Names what the chunks of a pool's tiers hold. Other models, and other layouts of one, have keys
/// of their own, and stores and files of their own.
std::string chunk_layout(const ResolvedPool& pool);

/// Owns the engines, the API servers in front of them, and the front ends of servers that balance
/// their own DP ranks. Ranks in lock step share one step loop (Replica); independent ranks are
/// replicas of their own.
class Servers {
 public:
  /// The arguments outlive this.
  Servers(const RunPlan& plan, std::uint64_t seed, bool reference, const PromptKeyTable& keys,
          SequenceKeySource& key_source);

  const Endpoints& endpoints() const { return *endpoints_; }
  const EndpointHome& home(EndpointId e) const { return (*endpoints_)[e.value()]; }
  const ResolvedPool& pool(const EndpointHome& at) const { return plan_.pools[at.pool]; }
  const std::vector<std::unique_ptr<Replica>>& replicas() const { return replicas_; }
  Replica& replica(std::uint32_t i) { return *replicas_[i]; }

  /// Servers are numbered as a Fleet does: pool by pool, place by place. These are the endpoints of
  /// one, which are in a row.
  struct Range {
    std::uint32_t first = 0, end = 0;
  };
  Range endpoints_of(std::uint32_t server) const {
    return {server_begin_[server],
            server + 1 < server_begin_.size() ? server_begin_[server + 1] : endpoints_->size()};
  }
  std::uint32_t server_of(EndpointId e) const { return server_of_[e.value()]; }
  /// A server's processes end: no engine can be asked for KV, and its part of a store is lost.
  /// `leaves`: it tells the store, which forgets the part at once; else true if there is one.
  bool end(std::uint32_t server, bool leaves, SimTime now);
  /// Other processes take their place (Replica::restart), and wait for start().
  void restart(std::uint32_t server, SimTime now);
  void start(std::uint32_t server, SimTime now);
  bool is_up(std::uint32_t endpoint) const { return up_[server_of_[endpoint]].has_value(); }
  /// Stores forget the chunks of parts that were lost at `lost` or before.
  void forget_lost(SimTime lost);

  /// Its engine keeps KV outside GPU memory.
  bool has_tiers(EndpointId e) const { return pool(home(e)).rules.tiers.in_use(); }
  /// Its tiers can pull from those of another endpoint, and the other way round.
  bool can_pull(EndpointId e) const { return pool(home(e)).rules.tiers.pulls(); }

  /// The API server of an endpoint.
  std::uint32_t api_server_of(EndpointId e) const { return api_server_of_[e.value()]; }
  ApiServer& api_server(std::uint32_t i) { return api_servers_[i]; }
  const ApiServer& api_server(std::uint32_t i) const { return api_servers_[i]; }

  /// The rank that a server's own front end chooses. It decides when the router does: what it knows
  /// is older than the way from one to the other is long.
  EndpointId choose_rank(EndpointId server, SimTime now);
  /// A request has left the rank that choose_rank() returned.
  void leave_rank(EndpointId endpoint);

  void count_request(EndpointId e) { ++requests_[e.value()]; }
  std::int64_t requests(std::uint32_t e) const { return requests_[e]; }
  /// Blocks of a pool's engines that can hold KV.
  double usable_blocks(const EndpointHome& at) const {
    return static_cast<double>(pool(at).rules.num_gpu_blocks - 1);
  }
  /// Sums over endpoints: of the integral of KV use (0..1) over time, seconds, and of the time for
  /// which their processes ran. Advances all servers.
  struct KvUse {
    double used_s = 0;
    Duration up = Duration::zero();
  };
  KvUse kv_use(SimTime now);

 private:
  ChunkPool* store_of(const ResolvedPool& pool);
  void add_pool(std::uint32_t index, std::vector<EndpointHome>& homes);
  void add_replica(const ResolvedPool& pool, int ranks, std::uint64_t first_endpoint,
                   std::optional<std::uint64_t> front_end);

  struct LostPart {
    ChunkPool* store = nullptr;
    std::uint32_t part = 0;
    SimTime at;
  };

  const RunPlan& plan_;
  std::map<std::string, ChunkPool> stores_;      ///< That servers share, by what is in them.
  std::map<std::uint32_t, std::uint32_t> part_;  ///< By endpoint: of the store, that it gives.
  std::deque<LostPart> lost_;                    ///< Oldest first.
  std::vector<std::optional<SimTime>> up_;       ///< By server: since when.
  Duration ran_ = Duration::zero();              ///< KvUse::up of processes that have ended.
  ReplicaOptions common_;                        ///< Options that all replicas share.
  const PromptKeyTable& keys_;
  SequenceKeySource& key_source_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::optional<Endpoints> endpoints_;
  std::vector<ApiServer> api_servers_;
  std::vector<std::uint32_t> api_server_of_;  ///< By endpoint.
  std::vector<FrontEnd> front_ends_;
  std::unordered_map<std::uint32_t, std::size_t> front_end_of_;  ///< By endpoint.
  std::vector<std::int64_t> requests_;                           ///< By endpoint.
  std::vector<std::uint32_t> server_begin_;                      ///< By server: first endpoint.
  std::vector<std::uint32_t> server_of_;                         ///< By endpoint.
};

}  // namespace routesim::sim
