// Prefill/decode disaggregation: the sidecar's protocol between the two legs of a request, and the
// NIXL pull of KV blocks over shared links.
#include <algorithm>
#include <utility>

#include "sim/simulation.h"

namespace routesim::sim {

// The prefill server has answered: the sidecar now sends the request to the decode server.
void Simulation::prefill_finished(std::uint32_t handle, SimTime now) {
  Live& live = live_[handle];
  live.leg = Leg::kToEngine;
  for (Observer* o : options_.observers) o->on_prefilled(live.request, now);
  book_lease(handle, now);
  enter_server(handle, live.route.endpoint, now);
}

// The decode engine has blocks for `blocks` blocks of KV.
void Simulation::start_transfer(std::uint32_t handle, std::int64_t blocks, SimTime now) {
  Live& live = live_[handle];
  const EndpointHome& from = home(*live.route.prefill);
  const EndpointHome& to = home(live.route.endpoint);
  const ResolvedPool& pool = plan_.pools[to.pool];
  const TransferConfig& transfer = plan_.scenario.cluster.transfer;
  live.pulling = true;
  const double payload =
      static_cast<double>(blocks * pool.rules.block_size) * pool.kv_bytes_per_token;
  // The set-up occupies the pull for its time; expressed in bytes so that one flow covers both.
  const double setup = transfer.setup.to_seconds() * transfer.bandwidth_gbps / 8 * 1e9;
  live.pull_bytes = payload + setup;
  // Strangers shake hands in the background first, without moving anything.
  const SimTime known =
      acquainted_.emplace(std::pair(from.replica, to.replica), now + transfer.first_contact)
          .first->second;
  if (known > now)
    queue_.push(known, EventKind::kPull, handle, live.stamp);
  else
    begin_pull(handle, now);
}

void Simulation::begin_pull(std::uint32_t handle, SimTime now) {
  const Live& live = live_[handle];
  if (!live.pulling) return;  // failed meanwhile
  if (live.lost) {
    fail_load(handle, now);
    return;
  }
  fabric_.start(handle, home(*live.route.prefill).replica, home(live.route.endpoint).replica,
                live.pull_bytes, now);
  schedule_transfer_tick();
}

void Simulation::schedule_transfer_tick() {
  const SimTime next = fabric_.next_end();
  if (next == SimTime::max() || next == pending_tick_) return;
  pending_tick_ = next;
  queue_.push(next, EventKind::kTransferTick);
}

void Simulation::transfer_tick(SimTime now) {
  pending_tick_ = SimTime::max();
  std::vector<std::uint64_t> done;
  fabric_.advance(now, done);
  for (const std::uint64_t id : done) {
    const auto handle = static_cast<std::uint32_t>(id);
    const EndpointHome& at = home(live_[handle].route.endpoint);
    live_[handle].pulling = false;
    replicas_[at.replica]->advance_to(now);
    replicas_[at.replica]->transfer_done(at.rank, handle, now);
    after_touch(at.replica, now);
    release_prefill(handle, now);
  }
  schedule_transfer_tick();
}

// The decode side has read the blocks (or needs none): the prefill side may free them.
void Simulation::release_prefill(std::uint32_t handle, SimTime now) {
  Live& live = live_[handle];
  if (!live.route.prefill || live.pulled) return;
  live.pulled = true;
  const EndpointHome& at = home(*live.route.prefill);
  replicas_[at.replica]->advance_to(now);
  replicas_[at.replica]->release_held(at.rank, handle, now);
  after_touch(at.replica, now);
}

// A lease begins when the prefill server has answered. Nearly always they end in the order they
// began, so that one booked event serves all of them.
void Simulation::book_lease(std::uint32_t handle, SimTime now) {
  const auto over = [this](const Lease& l) {
    return live_[l.handle].stamp != l.stamp || live_[l.handle].pulled;
  };
  while (!leases_.empty() && over(leases_.front())) leases_.pop_front();
  const Live& live = live_[handle];
  const EngineConfig& engine = plan_.pools[home(*live.route.prefill).pool].config.engine;
  const bool renewed = engine.preset == EnginePreset::k2026H2;
  const Duration length =
      plan_.scenario.cluster.transfer.lease.value_or(Duration::seconds(renewed ? 30 : 480));
  const Lease lease{.end = now + length, .handle = handle, .stamp = live.stamp};
  leases_.insert(std::upper_bound(leases_.begin(), leases_.end(), lease,
                                  [](const Lease& a, const Lease& b) { return a.end < b.end; }),
                 lease);
  if (leases_.front().end == pending_lease_) return;
  pending_lease_ = leases_.front().end;
  queue_.push(pending_lease_, EventKind::kLeaseEnd);
}

void Simulation::end_leases(SimTime now) {
  pending_lease_ = SimTime::max();
  while (!leases_.empty()) {
    const Lease lease = leases_.front();
    const Live& live = live_[lease.handle];
    const bool over = live.stamp != lease.stamp || live.pulled;
    if (!over && lease.end > now) break;
    leases_.pop_front();
    if (over) continue;
    const EngineConfig& engine = plan_.pools[home(*live.route.prefill).pool].config.engine;
    // Heartbeats renew it for as long as the decode engine knows of the request: until it has read
    // the blocks, or gives them up.
    if (engine.preset == EnginePreset::k2026H2 && live.leg == Leg::kEngine) continue;
    lose_kv(lease.handle, now);
  }
  if (leases_.empty()) return;
  pending_lease_ = leases_.front().end;
  queue_.push(pending_lease_, EventKind::kLeaseEnd);
}

// The prefill server frees the blocks. A pull under way fails now, a later one when it starts.
void Simulation::lose_kv(std::uint32_t handle, SimTime now) {
  live_[handle].lost = true;
  release_prefill(handle, now);
  if (live_[handle].pulling) fail_load(handle, now);
}

void Simulation::fail_load(std::uint32_t handle, SimTime now) {
  Live& live = live_[handle];
  live.pulling = false;
  fabric_.cancel(handle, now);
  schedule_transfer_tick();
  if (plan_.scenario.cluster.transfer.load_failure == KvLoadFailure::kFail) {
    give_up(handle, "500 Internal Server Error", workloads::Outcome::kError, now);
    return;
  }
  const EndpointHome& at = home(live.route.endpoint);
  replicas_[at.replica]->advance_to(now);
  replicas_[at.replica]->transfer_failed(at.rank, handle, now);
  after_touch(at.replica, now);
}

}  // namespace routesim::sim
