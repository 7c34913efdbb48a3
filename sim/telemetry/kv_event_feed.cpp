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
  explicit IndexWriter(const std::vector<policies::PrefixIndex*>& indexes) : indexes_(indexes) {}
  void set_endpoint(EndpointId endpoint) { endpoint_ = endpoint; }
  void on_stored(std::span<const BlockKey> engine_keys,
                 std::span<const std::uint64_t> request_keys) override {
    for (policies::PrefixIndex* index : indexes_)
      index->stored(endpoint_, policies::kGpuTier, 0, engine_keys, request_keys);
  }
  void on_removed(std::span<const BlockKey> engine_keys) override {
    for (policies::PrefixIndex* index : indexes_)
      index->removed(endpoint_, policies::kGpuTier, engine_keys);
  }
  void on_stored_in_tier(std::span<const BlockKey> engine_keys) override {
    for (policies::PrefixIndex* index : indexes_)
      index->tier_updated(endpoint_, policies::kCpuTier, engine_keys);
  }
  void on_removed_from_tier(std::span<const BlockKey> engine_keys) override {
    for (policies::PrefixIndex* index : indexes_)
      index->removed(endpoint_, policies::kCpuTier, engine_keys);
  }

 private:
  const std::vector<policies::PrefixIndex*>& indexes_;
  EndpointId endpoint_;
};

}  // namespace

KvEventFeed::KvEventFeed(const Endpoints& endpoints,
                         const std::vector<std::unique_ptr<Replica>>& replicas,
                         std::vector<std::uint32_t> holders,
                         std::vector<policies::PrefixIndex*> indexes)
    : endpoints_(endpoints),
      replicas_(replicas),
      holders_(std::move(holders)),
      indexes_(std::move(indexes)) {
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
  IndexWriter writer(indexes_);
  for (const std::uint32_t e : readable_) {
    writer.set_endpoint(EndpointId(holders_[endpoints_.row_of(e)]));
    replicas_[endpoints_[e].replica]->events(endpoints_[e].rank).read_until(now, writer);
  }
}

}  // namespace routesim::sim
