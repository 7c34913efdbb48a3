// Prefill/decode disaggregation: the sidecar's protocol between the two legs of a request, and the
// NIXL pull of KV blocks over shared links.
#include <utility>

#include "sim/simulation.h"

namespace routesim::sim {

// The prefill server has answered: the sidecar now sends the request to the decode server.
void Simulation::prefill_finished(std::uint32_t handle, SimTime now) {
  Live& live = live_[handle];
  live.leg = Leg::kToEngine;
  for (Observer* o : options_.observers) o->on_prefilled(live.request, now);
  queue_.push(now + plan_.scenario.cluster.frontend_latency, EventKind::kDelivery, handle,
              live.stamp);
}

void Simulation::start_transfer(std::uint32_t handle, std::int64_t blocks, SimTime now) {
  const Live& live = live_[handle];
  const EndpointHome& from = home(*live.route.prefill);
  const EndpointHome& to = home(live.route.endpoint);
  const ResolvedPool& pool = plan_.pools[to.pool];
  const TransferConfig& transfer = plan_.scenario.cluster.transfer;
  const double payload =
      static_cast<double>(blocks * pool.rules.block_size) * pool.kv_bytes_per_token;
  // The set-up occupies the pull for its time; expressed in bytes so that one flow covers both.
  const double setup = transfer.setup.to_seconds() * transfer.bandwidth_gbps / 8 * 1e9;
  fabric_.start(handle, from.replica, to.replica, payload + setup, now);
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

}  // namespace routesim::sim
