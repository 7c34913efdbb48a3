// Links that data moves over, and how what moves at the same time shares them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"

namespace routesim::sim {

using LinkId = std::uint32_t;

/// How much of the links of an engine was used over a time, 0..1.
struct LinkUse {
  double to_gpus = 0, to_host = 0;  ///< The bus between the GPUs of an engine and its host.
  double host_memory = 0;
  double nic_out = 0, nic_in = 0;  ///< Of the server's port.
};

/// The links that one flow uses, each once; at most kMost.
class LinkPath {
 public:
  static constexpr std::size_t kMost = 6;
  LinkPath() = default;
  LinkPath(std::initializer_list<LinkId> links) {
    for (const LinkId link : links) add(link);
  }
  void add(LinkId link) { links_[size_++] = link; }
  std::span<const LinkId> links() const { return {links_.data(), size_}; }
  bool uses(LinkId link) const {
    for (const LinkId l : links())
      if (l == link) return true;
    return false;
  }

 private:
  std::array<LinkId, kMost> links_{};
  std::size_t size_ = 0;
};

/// Flows over links. All flows advance at max-min fair rates (progressive filling),
/// recomputed whenever a flow starts or ends on a link that is asked for more than it has. Times
/// are rounded up to whole nanoseconds. Starting and ending cost O(flows) where nothing is
/// recomputed, else O(links + flows * links of the busiest component).
class Links {
 public:
  Links() = default;

  /// bytes_per_second > 0, in the one direction the link has.
  LinkId add(double bytes_per_second);

  /// The link has another rate from now on, 0 for none: flows over it then stand still.
  void set_rate(LinkId link, double bytes_per_second, SimTime now);
  /// Starts moving `bytes` (> 0) over `path` (not empty) at `now`. `id` comes back when it is done.
  void start(std::uint64_t id, const LinkPath& path, double bytes, SimTime now);
  /// Drops a flow; its bytes are lost. No effect on an unknown id.
  void cancel(std::uint64_t id, SimTime now);
  /// When the next flow ends if nothing changes; SimTime::max() without flows.
  SimTime next_end() const;
  /// Moves every flow to `now` and appends the ids of those that have ended, in start order.
  void advance(SimTime now, std::vector<std::uint64_t>& done);
  std::size_t active() const { return flows_.size(); }
  /// Bytes per second that now move over a link.
  double load(LinkId link) const;
  /// Bytes moved over a link until `now` (not before the last call), over those that could have.
  double mean_use(LinkId link, SimTime now) const;

 private:
  struct Link {
    double usual = 0;   ///< Bytes per nanosecond when nothing is wrong with it,
    double rate = 0;    ///< and now.
    double wanted = 0;  ///< Sum of what its flows could take if they were alone.
    int flows = 0;
    double moved = 0;  ///< Bytes of flows that have ended.
    bool contended() const { return wanted > rate * (1 + 1e-9); }
  };
  struct Flow {
    std::uint64_t id;
    LinkPath path;
    double bytes;
    double bytes_left;  ///< May fall a little below 0 before the flow is noticed to have ended.
    double alone = 0;   ///< Rate of the slowest of its links.
    double rate = 0;    ///< Bytes per nanosecond.
  };
  void progress(SimTime now);
  double slowest_of(const LinkPath& path) const;
  bool join(const Flow& flow);
  bool leave(const Flow& flow);
  void share();

  std::vector<Link> links_;
  std::vector<Flow> flows_;  ///< In start order.
  SimTime now_;
  // Scratch of share(), by link.
  std::vector<double> left_;
  std::vector<int> unfrozen_;
  std::vector<bool> frozen_;
};

}  // namespace routesim::sim
