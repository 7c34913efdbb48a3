#include "sim/telemetry/kv_event_feed.h"

#include <algorithm>
#include <span>
#include <utility>

#include "policies/views.h"

namespace routesim::sim {

namespace {

/// Applies the events of one endpoint to every index.
class IndexWriter final : public KvEventLog::Reader {
 public:
  explicit IndexWriter(const std::vector<KvEventFeed::Listener>& listeners)
      : listeners_(listeners) {}
  void set_row(std::uint32_t row, bool deaf) {
    row_ = row;
    deaf_ = deaf;
  }
  void on_stored(std::span<const BlockKey> engine_keys,
                 std::span<const std::uint64_t> request_keys) override {
    each([&](policies::PrefixIndex& index, EndpointId endpoint) {
      index.stored(endpoint, policies::kGpuTier, 0, engine_keys, request_keys);
    });
  }
  void on_removed(std::span<const BlockKey> engine_keys) override {
    each([&](policies::PrefixIndex& index, EndpointId endpoint) {
      index.removed(endpoint, policies::kGpuTier, engine_keys);
    });
  }
  void on_stored_in_tier(std::span<const BlockKey> engine_keys) override {
    each([&](policies::PrefixIndex& index, EndpointId endpoint) {
      index.tier_updated(endpoint, policies::kCpuTier, engine_keys);
    });
  }
  void on_removed_from_tier(std::span<const BlockKey> engine_keys) override {
    each([&](policies::PrefixIndex& index, EndpointId endpoint) {
      index.removed(endpoint, policies::kCpuTier, engine_keys);
    });
  }

 private:
  template <class F>
  void each(F f) {
    if (deaf_) return;
    for (const KvEventFeed::Listener& l : listeners_)
      if (l.index != nullptr) f(*l.index, EndpointId(l.holders[row_]));
  }
  const std::vector<KvEventFeed::Listener>& listeners_;
  std::uint32_t row_ = 0;
  bool deaf_ = false;
};

}  // namespace

KvEventFeed::KvEventFeed(const Endpoints& endpoints,
                         const std::vector<std::unique_ptr<Replica>>& replicas,
                         std::vector<Listener> listeners)
    : endpoints_(endpoints),
      replicas_(replicas),
      listeners_(std::move(listeners)),
      deaf_(endpoints.rows()) {
  for (std::uint32_t e = 0; e < endpoints.size(); ++e)
    replicas[endpoints[e].replica]->events(endpoints[e].rank).mirror_next_visible(visible_, e);
  for (std::size_t r = 0; r < replicas.size(); ++r)
    replicas[r]->mirror_next_publication(publications_, r);
}

void KvEventFeed::read(SimTime now) {
  while (publications_.time() <= now) replicas_[publications_.index()]->advance_to(now);
  readable_.clear();
  while (visible_.time() <= now) {
    readable_.push_back(static_cast<std::uint32_t>(visible_.index()));
    visible_.set(readable_.back(), SimTime::max());
  }
  // In the order of endpoints, whichever published first.
  std::sort(readable_.begin(), readable_.end());
  IndexWriter writer(listeners_);
  for (const std::uint32_t e : readable_) {
    const std::uint32_t row = endpoints_.row_of(e);
    writer.set_row(row, deaf_[row]);
    replicas_[endpoints_[e].replica]->events(endpoints_[e].rank).read_until(now, writer);
  }
}

}  // namespace routesim::sim
