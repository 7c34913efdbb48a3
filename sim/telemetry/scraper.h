// The router's scrapes of the engines' gauges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/units.h"
#include "policies/views.h"
#include "sim/engine/endpoints.h"
#include "sim/engine/replica.h"
#include "sim/plan/resolve.h"

namespace routesim::sim {

/// Reads every scrape that is due into the router's endpoint table, with the time it was taken. All
/// endpoints are scraped at the same interval, so their scrapes are due in a fixed cyclic order: a
/// read costs O(scrapes due). Ranks behind one front end are scraped together.
class Scraper {
 public:
  /// The values that the router reads besides load and KV usage.
  struct Also {
    bool adapters = false;  ///< The LoRA gauges.
    bool pools = false;     ///< Each server stands for a cluster: the means of its own router.
    bool forgets = false;   ///< A scrape that fails leaves no values.
  };
  /// The references outlive the scraper.
  Scraper(const RunPlan& plan, const Endpoints& endpoints,
          const std::vector<std::unique_ptr<Replica>>& replicas, Also also);

  /// Writes what scrapes saw until `now`, not more.
  void read(SimTime now, policies::EndpointTable& table);
  /// A row's server answers scrapes from `now` on, or no longer: then the router keeps what it saw
  /// last.
  void set_up(std::uint32_t row, bool up, SimTime now) {
    up_since_[row] = up ? now : SimTime::max();
  }
  /// The same for scrapes that fail while the server serves. Call after read().
  void set_works(std::uint32_t row, bool works, SimTime now) {
    works_since_[row] = works ? now : SimTime::max();
  }
  bool works(std::uint32_t row) const { return works_since_[row] != SimTime::max(); }
  /// The server that answers now was scraped at `at`, and no scrape has failed since.
  bool is_fresh(std::uint32_t row, SimTime at) const {
    return up_since_[row] <= at && works_since_[row] <= at;
  }
  /// Writes what a row's engines say of their adapters; nothing where the router does not ask.
  void write_adapters(std::uint32_t row, const AdapterGauges& gauges,
                      policies::EndpointTable& table) const;

 private:
  /// A rank as the scrapes see it.
  struct Source {
    Replica* replica;
    int rank;
    double usable_blocks;
  };
  static constexpr std::size_t kFetched = 16;  ///< Servers that are fetched together.

  void write_pool(std::uint32_t row, double waiting, double usage, SimTime at,
                  policies::EndpointTable& table);
  void read_row(std::uint32_t row, SimTime now, policies::EndpointTable& table);
  void prefetch(SimTime now);

  const RunPlan& plan_;
  const Endpoints& endpoints_;
  Also also_;
  std::vector<Source> sources_;       ///< By row.
  std::vector<Source> due_;           ///< Scratch of prefetch().
  std::vector<std::uint32_t> first_;  ///< Per row: its first in sources_; and the end.
  std::vector<SimTime> next_;         ///< Per row: the next scrape.
  std::vector<SimTime> next_flush_;   ///< Per row: when its cluster's means are published next.
  std::vector<SimTime> up_since_;     ///< Per row; never = SimTime::max().
  std::vector<SimTime> works_since_;  ///< The same for scrapes.
  std::vector<std::uint32_t> order_;  ///< Rows in the order of their scrapes, a cycle.
  std::size_t head_ = 0;              ///< Position in order_ of the next scrape.
};

}  // namespace routesim::sim
