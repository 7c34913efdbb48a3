// Which engine core serves which endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace routesim::sim {

/// The location of an endpoint: its replica, rank, pool and server.
struct EndpointHome {
  std::uint32_t replica = 0;
  int rank = 0;
  std::uint32_t pool = 0;
  /// First rank of the server when its own front end chooses among the ranks; otherwise itself. The
  /// router sees servers.
  std::uint32_t server = 0;
  bool behind_front_end = false;
  std::string name;
};

/// All endpoints of a run, and the rows under which a router sees them: ranks behind one front end
/// share a row. Fixed for the run.
class Endpoints {
 public:
  explicit Endpoints(std::vector<EndpointHome> homes) : homes_(std::move(homes)) {
    for (std::uint32_t e = 0; e < homes_.size(); ++e) {
      if (homes_[e].server == e) first_.push_back(e);
      row_of_.push_back(static_cast<std::uint32_t>(first_.size() - 1));
    }
  }

  const std::vector<EndpointHome>& homes() const { return homes_; }
  const EndpointHome& operator[](std::size_t endpoint) const { return homes_[endpoint]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(homes_.size()); }
  std::uint32_t rows() const { return static_cast<std::uint32_t>(first_.size()); }
  /// The first endpoint of a row.
  std::uint32_t first(std::uint32_t row) const { return first_[row]; }
  std::uint32_t row_of(std::uint32_t endpoint) const { return row_of_[endpoint]; }
  std::size_t ranks(std::uint32_t row) const {
    return (row + 1 < first_.size() ? first_[row + 1] : homes_.size()) - first_[row];
  }

 private:
  std::vector<EndpointHome> homes_;
  std::vector<std::uint32_t> first_;   ///< Per row.
  std::vector<std::uint32_t> row_of_;  ///< Per endpoint.
};

}  // namespace routesim::sim
