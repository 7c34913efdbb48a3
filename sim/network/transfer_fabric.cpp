#include "sim/network/transfer_fabric.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/clock.h"

namespace routesim::sim {

namespace {

/// Flows with less than this left have ended: rounding to nanoseconds moves less than a byte.
constexpr double kDoneBytes = 0.5;

}  // namespace

TransferFabric::TransferFabric(std::size_t nodes, double bytes_per_second)
    : port_rate_(bytes_per_second * 1e-9), nodes_(nodes) {}

void TransferFabric::progress(SimTime now) {
  const auto elapsed = static_cast<double>((now - now_).ns());
  for (Flow& f : flows_) f.bytes_left -= f.rate * elapsed;
  now_ = now;
}

// Max-min fairness by progressive filling: the port with the smallest share per unfrozen flow
// freezes its flows at that share, until none is left.
void TransferFabric::share() {
  std::vector<double> left(2 * nodes_, port_rate_);
  std::vector<int> unfrozen(2 * nodes_, 0);
  std::vector<bool> frozen(flows_.size(), false);
  for (const Flow& f : flows_) {
    ++unfrozen[f.from];
    ++unfrozen[nodes_ + f.to];
  }
  for (std::size_t remaining = flows_.size(); remaining > 0;) {
    std::size_t tightest = 0;
    double smallest = std::numeric_limits<double>::infinity();
    for (std::size_t port = 0; port < left.size(); ++port) {
      if (unfrozen[port] == 0) continue;
      const double each = left[port] / unfrozen[port];
      if (each < smallest) {
        smallest = each;
        tightest = port;
      }
    }
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      Flow& f = flows_[i];
      if (frozen[i] || (f.from != tightest && nodes_ + f.to != tightest)) continue;
      f.rate = smallest;
      frozen[i] = true;
      --remaining;
      for (const std::size_t port : {std::size_t{f.from}, nodes_ + f.to}) {
        left[port] = std::max(0.0, left[port] - smallest);
        --unfrozen[port];
      }
    }
  }
}

void TransferFabric::start(std::uint64_t id, std::uint32_t from, std::uint32_t to, double bytes,
                           SimTime now) {
  ROUTESIM_CHECK(from < nodes_ && to < nodes_, "transfer between unknown nodes");
  progress(now);
  flows_.push_back({.id = id, .from = from, .to = to, .bytes_left = bytes});
  share();
}

void TransferFabric::cancel(std::uint64_t id, SimTime now) {
  const auto it =
      std::find_if(flows_.begin(), flows_.end(), [id](const Flow& f) { return f.id == id; });
  if (it == flows_.end()) return;
  progress(now);
  flows_.erase(it);
  share();
}

SimTime TransferFabric::next_end() const {
  double earliest = std::numeric_limits<double>::infinity();
  for (const Flow& f : flows_) earliest = std::min(earliest, std::max(0.0, f.bytes_left) / f.rate);
  if (flows_.empty()) return SimTime::max();
  // A pull may take longer than the clock holds.
  if (earliest >= static_cast<double>((kEndOfTime - now_).ns())) return kEndOfTime;
  return now_ + Duration::nanoseconds(static_cast<std::int64_t>(std::ceil(earliest)));
}

void TransferFabric::advance(SimTime now, std::vector<std::uint64_t>& done) {
  progress(now);
  const std::size_t before = flows_.size();
  std::erase_if(flows_, [&done](const Flow& f) {
    if (f.bytes_left > kDoneBytes) return false;
    done.push_back(f.id);
    return true;
  });
  if (flows_.size() != before) share();
}

}  // namespace routesim::sim
