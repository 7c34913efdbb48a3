#include "sim/telemetry/kv_event_feed.h"

#include <algorithm>
#include <span>
#include <utility>

#include "policies/views.h"

namespace routesim::sim {

namespace {

/// Applies the events of one endpoint to the index of one process, or of each.
class IndexWriter final : public KvReplays::Index {
 public:
  IndexWriter(std::span<const KvEventFeed::Listener> listeners, std::uint32_t row)
      : listeners_(listeners), row_(row) {}
  void clear() override {
    each(
        [](policies::PrefixIndex& index, EndpointId endpoint) { index.remove_endpoint(endpoint); });
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
    for (const KvEventFeed::Listener& l : listeners_)
      if (l.index != nullptr) f(*l.index, EndpointId(l.holders[row_]));
  }
  std::span<const KvEventFeed::Listener> listeners_;
  std::uint32_t row_;
};

}  // namespace

KvEventFeed::KvEventFeed(const Endpoints& endpoints,
                         const std::vector<std::unique_ptr<Replica>>& replicas,
                         std::vector<Listener> listeners, std::optional<KvReplays> replays)
    : endpoints_(endpoints),
      replicas_(replicas),
      listeners_(std::move(listeners)),
      deaf_(endpoints.rows()),
      replays_(std::move(replays)) {
  for (std::uint32_t e = 0; e < endpoints.size(); ++e) {
    KvEventLog& log = replicas[endpoints[e].replica]->events(endpoints[e].rank);
    log.mirror_next_visible(visible_, e);
    if (replays_) log.keep_lost();
  }
  for (std::size_t r = 0; r < replicas.size(); ++r)
    replicas[r]->mirror_next_publication(publications_, r);
}

void KvEventFeed::set_deaf(std::uint32_t row, bool deaf, SimTime now) {
  deaf_[row] = deaf;
  for (std::size_t p = 0; replays_ && p < listeners_.size(); ++p) resubscribe(p, row, now);
}

void KvEventFeed::connect(std::size_t process, SimTime now) {
  for (std::uint32_t row = 0; replays_ && row < endpoints_.rows(); ++row)
    resubscribe(process, row, now);
}

void KvEventFeed::resubscribe(std::size_t process, std::uint32_t row, SimTime now) {
  const std::uint32_t first = endpoints_.first(row);
  for (std::uint32_t e = first; e < first + endpoints_.ranks(row); ++e)
    if (deaf_[row] || listeners_[process].index == nullptr)
      replays_->unsubscribe(process, e);
    else
      replays_->subscribe(process, e, now);
}

void KvEventFeed::read(SimTime now) {
  while (publications_.time() <= now) replicas_[publications_.index()]->advance_to(now);
  readable_.clear();
  while (visible_.time() <= now) {
    readable_.push_back(static_cast<std::uint32_t>(visible_.index()));
    visible_.set(readable_.back(), SimTime::max());
  }
  if (replays_) replays_->take_due(now, readable_);
  // In the order of endpoints, whichever published first.
  std::sort(readable_.begin(), readable_.end());
  readable_.erase(std::unique(readable_.begin(), readable_.end()), readable_.end());
  for (const std::uint32_t e : readable_) {
    const std::uint32_t row = endpoints_.row_of(e);
    KvEventLog& log = replicas_[endpoints_[e].replica]->events(endpoints_[e].rank);
    const std::span<const Listener> all(listeners_);
    if (!replays_) {
      IndexWriter writer(deaf_[row] ? all.first(0) : all, row);
      log.read_until(now, writer);
      continue;
    }
    log.read_batches(now, [&](const auto& batch, auto words) { replays_->add(e, batch, words); });
    for (std::size_t p = 0; p < all.size(); ++p) {
      IndexWriter writer(all.subspan(p, 1), row);
      replays_->read(p, e, now, writer);
    }
  }
}

}  // namespace routesim::sim
