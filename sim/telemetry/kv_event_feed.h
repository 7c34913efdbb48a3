// The engines' KV events on their way into the routers' prefix indexes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/units.h"
#include "policies/index/prefix_index.h"
#include "sim/engine/earliest.h"
#include "sim/engine/endpoints.h"
#include "sim/engine/replica.h"

namespace routesim::sim {

/// Applies published events to the index of every router process once they are visible. Between two
/// decisions few of many servers publish anything, so servers say when they next may, and a read
/// costs O(servers with events).
class KvEventFeed {
 public:
  /// `holders`: per row of the router's table, its id in the indexes. `endpoints`, `replicas` and
  /// the indexes outlive the feed.
  KvEventFeed(const Endpoints& endpoints, const std::vector<std::unique_ptr<Replica>>& replicas,
              std::vector<std::uint32_t> holders, std::vector<policies::PrefixIndex*> indexes);
  KvEventFeed(const KvEventFeed&) = delete;
  KvEventFeed& operator=(const KvEventFeed&) = delete;

  /// Applies every event visible at `now`, endpoint by endpoint.
  void read(SimTime now);

 private:
  const Endpoints& endpoints_;
  const std::vector<std::unique_ptr<Replica>>& replicas_;
  std::vector<std::uint32_t> holders_;
  std::vector<policies::PrefixIndex*> indexes_;
  Earliest publications_;                ///< Per replica: Replica::mirror_next_publication.
  Earliest visible_;                     ///< Per endpoint: KvEventLog::mirror_next_visible.
  std::vector<std::uint32_t> readable_;  ///< Scratch: endpoints with visible events.
};

}  // namespace routesim::sim
