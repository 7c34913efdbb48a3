#include "sim/kv_moves.h"

#include <optional>
#include <utility>

namespace routesim::sim {

namespace {

HostConfig host_of(const RunPlan& plan) {
  return plan.scenario.cluster.host.value_or(HostConfig{});
}

Transfers make_links(const RunPlan& plan, const Servers& servers, EventQueue& queue) {
  std::vector<EngineSite> sites;
  for (const EndpointHome& at : servers.endpoints().homes()) {
    const ResolvedPool& pool = plan.pools[at.pool];
    sites.push_back({.replica = at.replica,
                     .pool = at.pool,
                     .has_tiers = pool.rules.tiers.in_use(),
                     .gpus = pool.config.tensor_parallel * pool.config.pipeline_parallel,
                     .bus_bytes_per_s = pool.rules.tiers.link_bytes_per_s});
  }
  const HostConfig host = host_of(plan);
  return {sites,
          {.port = plan.scenario.cluster.transfer.bandwidth_gbps / 8 * 1e9,
           .host_memory = host.memory_gb_per_s * 1e9,
           .host_gpus = host.gpus},
          [&queue](SimTime at) { queue.push(at, EventKind::kTransferTick); }};
}

}  // namespace

KvMoves::KvMoves(const RunPlan& plan, Servers& servers, LiveRequests& live, EventQueue& queue,
                 RequestFlow& flow)
    : servers_(servers),
      live_(live),
      fails_loads_(plan.scenario.cluster.transfer.load_failure == KvLoadFailure::kFail),
      queue_(queue),
      flow_(flow),
      first_endpoint_(servers.replicas().size()),
      links_(make_links(plan, servers, queue)),
      disaggregation_(plan, servers, live, queue, links_, flow),
      copies_(servers.endpoints().size(), links_, *this),
      disks_(servers.endpoints().size(), links_, *this),
      pulls_(links_, disks_, *this) {
  for (std::uint32_t e = servers.endpoints().size(); e-- > 0;)
    first_endpoint_[servers.endpoints()[e].replica] = e;
  links_.set_owner(Transfers::Kind::kPull, disaggregation_);
  links_.set_owner(Transfers::Kind::kTierCopy, copies_);
  links_.set_owner(Transfers::Kind::kTierPull, pulls_);
  links_.set_owner(Transfers::Kind::kDisk, disks_);
  disks_.set_reader(pulls_);
  add_files(plan);
}

void KvMoves::add_files(const RunPlan& plan) {
  const HostConfig host = host_of(plan);
  const KvDisks::Rates drives = {host.disk_read_gb_per_s * 1e9, host.disk_write_gb_per_s * 1e9};
  for (std::uint32_t e = 0; e < servers_.endpoints().size(); ++e)
    if (rules(e).disk.in_use())
      disks_.add_engine(e, chunk_layout(servers_.pool(servers_.endpoints()[e])), drives);
}

void KvMoves::start_copies(std::uint32_t replica, SimTime now) {
  std::vector<Replica::RankCopy>& asked = servers_.replica(replica).copies();
  for (const Replica::RankCopy& c : asked)
    copies_.start(first_endpoint_[replica] + static_cast<std::uint32_t>(c.rank), c.copy, now);
  asked.clear();
}

void KvMoves::send_messages(std::uint32_t replica, SimTime now) {
  std::vector<Replica::RankMessage> messages =
      std::exchange(servers_.replica(replica).messages(), {});
  for (Replica::RankMessage& m : messages)
    pulls_.on_message(first_endpoint_[replica] + static_cast<std::uint32_t>(m.rank), m.message,
                      now);
}

void KvMoves::end_copy(std::uint32_t endpoint, std::uint32_t copy, SimTime now) {
  const EndpointHome& at = servers_.endpoints()[endpoint];
  Replica& replica = servers_.replica(at.replica);
  replica.advance_to(now);
  const std::optional<std::uint32_t> failed = replica.land_copy(at.rank, copy);
  if (failed && fails_loads_ && live_[*failed].open())
    flow_.give_up(*failed, "500 Internal Server Error", workloads::Outcome::kError, now);
  replica.copy_done(at.rank, copy, now);
  flow_.after_touch(at.replica, now);
}

void KvMoves::drop(Servers::Range endpoints, bool vanished, SimTime now) {
  for (std::uint32_t e = endpoints.first; e < endpoints.end; ++e) {
    copies_.drop(e, now);
    disks_.drop(e, now);
    pulls_.drop(e, vanished, now);
  }
}

void KvMoves::tell(std::uint32_t endpoint, PullNews news, KvPull& pull, SimTime now) {
  const EndpointHome& at = servers_.endpoints()[endpoint];
  servers_.replica(at.replica).advance_to(now);
  servers_.replica(at.replica).tell_pull(at.rank, news, pull, now);
  flow_.after_touch(at.replica, now);
}

}  // namespace routesim::sim
