#include "sim/disaggregation.h"

#include <algorithm>
#include <vector>

namespace routesim::sim {

Disaggregation::Disaggregation(const RunPlan& plan, Servers& servers, LiveRequests& live,
                               EventQueue& queue, Transfers& transfers, RequestFlow& flow)
    : plan_(plan),
      servers_(servers),
      live_(live),
      queue_(queue),
      transfers_(transfers),
      flow_(flow) {}

void Disaggregation::start_transfer(std::uint32_t handle, std::int64_t blocks, SimTime now) {
  LiveRequest& live = live_[handle];
  const EndpointHome& from = servers_.home(*live.route.prefill);
  const EndpointHome& to = servers_.home(live.route.endpoint);
  const ResolvedPool& pool = servers_.pool(to);
  const TransferConfig& transfer = plan_.scenario.cluster.transfer;
  live.pulling = true;
  const double payload =
      static_cast<double>(blocks * pool.rules.block_size) * pool.kv_bytes_per_token;
  // The set-up occupies the pull for its time; expressed in bytes so that one flow covers both.
  const double setup = transfer.setup.to_seconds() * transfer.bandwidth_gbps / 8 * 1e9;
  live.pull_bytes = payload + setup;
  // Servers that have not met shake hands in the background first, without moving anything.
  const SimTime known =
      acquainted_.emplace(std::pair(from.replica, to.replica), now + transfer.first_contact)
          .first->second;
  // The GPUs' workers post the descriptors, which takes nothing of the ports that servers share.
  const SimTime posted =
      std::max(known, now) +
      transfer.descriptor_time.value_or(default_descriptor_time(pool.config.engine.preset)) *
          (blocks * pool.descriptors);
  if (posted > now)
    queue_.push(posted, EventKind::kPull, handle, live.stamp);
  else
    begin_pull(handle, now);
}

void Disaggregation::begin_pull(std::uint32_t handle, SimTime now) {
  const LiveRequest& live = live_[handle];
  if (!live.pulling) return;  // failed meanwhile
  if (live.kv_lost) {
    fail_load(handle, now);
    return;
  }
  transfers_.start(Transfers::Kind::kPull, handle,
                   transfers_.between_gpus(servers_.home(*live.route.prefill).replica,
                                           servers_.home(live.route.endpoint).replica),
                   live.pull_bytes, now);
}

void Disaggregation::on_transferred(std::uint64_t id, SimTime now) {
  const auto handle = static_cast<std::uint32_t>(id);
  const EndpointHome& at = servers_.home(live_[handle].route.endpoint);
  live_[handle].pulling = false;
  servers_.replica(at.replica).advance_to(now);
  servers_.replica(at.replica).transfer_done(at.rank, handle, now);
  flow_.after_touch(at.replica, now);
  release_prefill(handle, now);
}

void Disaggregation::release_prefill(std::uint32_t handle, SimTime now) {
  LiveRequest& live = live_[handle];
  if (!live.route.prefill || live.kv_released) return;
  live.kv_released = true;
  const EndpointHome& at = servers_.home(*live.route.prefill);
  servers_.replica(at.replica).advance_to(now);
  servers_.replica(at.replica).release_held(at.rank, handle, now);
  flow_.after_touch(at.replica, now);
}

void Disaggregation::orphan(std::uint32_t handle, SimTime now) {
  LiveRequest& live = live_[handle];
  if (live.pulling) transfers_.cancel(Transfers::Kind::kPull, handle, now);
  live.pulling = false;
  if (!live.route.prefill || live.kv_released || live.leg == Leg::kToPrefill ||
      live.leg == Leg::kPrefill)
    return;
  const auto lease = std::find_if(leases_.begin(), leases_.end(), [&](const Lease& l) {
    return l.handle == handle && l.stamp == live.stamp;
  });
  // One that heartbeats renewed is in no list: without them it runs out.
  const SimTime end = lease != leases_.end() ? lease->end : now + lease_length(handle);
  const EndpointHome& at = servers_.home(*live.route.prefill);
  servers_.replica(at.replica).advance_to(now);
  const SequenceRef held = servers_.replica(at.replica).scheduler(at.rank).find_held(handle);
  orphans_.push_back({.end = end, .holder = *live.route.prefill, .sequence = held});
  live.kv_released = true;
  queue_.push(end, EventKind::kLeaseEnd);
}

void Disaggregation::end_orphans(SimTime now) {
  for (const Orphan& o : orphans_) {
    if (o.end > now) continue;
    const EndpointHome& at = servers_.home(o.holder);
    servers_.replica(at.replica).advance_to(now);
    servers_.replica(at.replica).release_sequence(at.rank, o.sequence, now);
    flow_.after_touch(at.replica, now);
  }
  std::erase_if(orphans_, [now](const Orphan& o) { return o.end <= now; });
}

void Disaggregation::forget_orphans(std::uint32_t first, std::uint32_t end) {
  std::erase_if(orphans_, [&](const Orphan& o) {
    return o.holder.value() >= first && o.holder.value() < end;
  });
}

void Disaggregation::lose_source(std::uint32_t handle, SimTime now) {
  LiveRequest& live = live_[handle];
  if (live.kv_released) return;
  live.kv_lost = live.kv_released = true;
  if (live.pulling) fail_load(handle, now);
}

void Disaggregation::cancel(std::uint32_t handle, SimTime now) {
  transfers_.cancel(Transfers::Kind::kPull, handle, now);
  release_prefill(handle, now);
}

bool Disaggregation::over(const Lease& lease) const {
  const LiveRequest& live = live_[lease.handle];
  return live.stamp != lease.stamp || live.kv_released;
}

EnginePreset Disaggregation::prefill_preset(std::uint32_t handle) const {
  return servers_.pool(servers_.home(*live_[handle].route.prefill)).config.engine.preset;
}

Duration Disaggregation::lease_length(std::uint32_t handle) const {
  const bool renewed = prefill_preset(handle) == EnginePreset::k2026H2;
  return plan_.scenario.cluster.transfer.lease.value_or(Duration::seconds(renewed ? 30 : 480));
}

// Leases nearly always end in the order they began, so that one booked event serves all of them.
void Disaggregation::begin_lease(std::uint32_t handle, SimTime now) {
  while (!leases_.empty() && over(leases_.front())) leases_.pop_front();
  const Lease lease{
      .end = now + lease_length(handle), .handle = handle, .stamp = live_[handle].stamp};
  leases_.insert(std::upper_bound(leases_.begin(), leases_.end(), lease,
                                  [](const Lease& a, const Lease& b) { return a.end < b.end; }),
                 lease);
  if (leases_.front().end != booked_lease_end_) book_lease_end();
}

void Disaggregation::book_lease_end() {
  booked_lease_end_ = leases_.front().end;
  queue_.push(booked_lease_end_, EventKind::kLeaseEnd);
}

void Disaggregation::end_leases(SimTime now) {
  end_orphans(now);
  if (booked_lease_end_ != now) return;
  booked_lease_end_ = SimTime::max();
  while (!leases_.empty()) {
    const Lease lease = leases_.front();
    const bool is_over = over(lease);
    if (!is_over && lease.end > now) break;
    leases_.pop_front();
    if (is_over) continue;
    // Heartbeats renew it for as long as the decode engine knows of the request: until it has read
    // the blocks, or gives them up.
    if (prefill_preset(lease.handle) == EnginePreset::k2026H2 &&
        live_[lease.handle].leg == Leg::kEngine)
      continue;
    lose_kv(lease.handle, now);
  }
  if (!leases_.empty()) book_lease_end();
}

// The prefill server frees the blocks. A pull under way fails now, a later one when it starts.
void Disaggregation::lose_kv(std::uint32_t handle, SimTime now) {
  live_[handle].kv_lost = true;
  release_prefill(handle, now);
  if (live_[handle].pulling) fail_load(handle, now);
}

void Disaggregation::fail_load(std::uint32_t handle, SimTime now) {
  LiveRequest& live = live_[handle];
  live.pulling = false;
  transfers_.cancel(Transfers::Kind::kPull, handle, now);
  if (plan_.scenario.cluster.transfer.load_failure == KvLoadFailure::kFail) {
    flow_.give_up(handle, "500 Internal Server Error", workloads::Outcome::kError, now);
    return;
  }
  const EndpointHome& at = servers_.home(live.route.endpoint);
  servers_.replica(at.replica).advance_to(now);
  servers_.replica(at.replica).transfer_failed(at.rank, handle, now);
  flow_.after_touch(at.replica, now);
}

}  // namespace routesim::sim
