// The engines' KV events on their way into the routers' prefix indexes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"
#include "policies/index/prefix_index.h"
#include "sim/engine/earliest.h"
#include "sim/engine/endpoints.h"
#include "sim/engine/replica.h"
#include "sim/telemetry/kv_replays.h"

namespace routesim::sim {

/// Applies published events to the index of every router process once they are visible. Between two
/// decisions few of many servers publish anything, so servers say when they next may, and a read
/// costs O(servers with events).
class KvEventFeed {
 public:
  /// The index of one router process.
  struct Listener {
    policies::PrefixIndex* index = nullptr;  ///< Null: the process does not run.
    std::vector<std::uint32_t> holders;      ///< Per row of the router's table: its id there.
  };
  /// `endpoints`, `replicas` and the indexes outlive the feed. `replays` where the processes ask
  /// for what they missed.
  KvEventFeed(const Endpoints& endpoints, const std::vector<std::unique_ptr<Replica>>& replicas,
              std::vector<Listener> listeners, std::optional<KvReplays> replays = {});
  KvEventFeed(const KvEventFeed&) = delete;
  KvEventFeed& operator=(const KvEventFeed&) = delete;

  /// The routers listen to a row's server, or no longer: what it publishes then is lost.
  void set_deaf(std::uint32_t row, bool deaf, SimTime now);
  /// A process has another index, or its ids have changed.
  void set_listener(std::size_t process, Listener listener) {
    listeners_[process] = std::move(listener);
  }
  /// A process has started, and listens to all servers that it knows.
  void connect(std::size_t process, SimTime now);

  std::int64_t failed_replays() const { return replays_ ? replays_->failed() : 0; }
  /// Applies every event visible at `now`, endpoint by endpoint.
  void read(SimTime now);

 private:
  /// A process listens to a row's server anew, or no longer.
  void resubscribe(std::size_t process, std::uint32_t row, SimTime now);

  const Endpoints& endpoints_;
  const std::vector<std::unique_ptr<Replica>>& replicas_;
  std::vector<Listener> listeners_;  ///< Per process.
  std::vector<bool> deaf_;           ///< Per row: nobody listens.
  std::optional<KvReplays> replays_;
  Earliest publications_;                ///< Per replica: Replica::mirror_next_publication.
  Earliest visible_;                     ///< Per endpoint: KvEventLog::mirror_next_visible.
  std::vector<std::uint32_t> readable_;  ///< Scratch: endpoints with visible events.
};

}  // namespace routesim::sim
