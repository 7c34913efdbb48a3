#include "sim/network/links.h"

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

LinkId Links::add(double bytes_per_second) {
  links_.push_back({.usual = bytes_per_second * 1e-9, .rate = bytes_per_second * 1e-9});
  return static_cast<LinkId>(links_.size() - 1);
}

void Links::progress(SimTime now) {
  const auto elapsed = static_cast<double>((now - now_).ns());
  for (Flow& f : flows_) f.bytes_left -= f.rate * elapsed;
  now_ = now;
}

// True when somebody has to give way.
bool Links::join(const Flow& flow) {
  bool contended = false;
  for (const LinkId l : flow.path.links()) {
    Link& link = links_[l];
    link.wanted += flow.alone;
    ++link.flows;
    contended = contended || link.contended();
  }
  return contended;
}

// True when somebody may have what it leaves.
bool Links::leave(const Flow& flow) {
  bool contended = false;
  for (const LinkId l : flow.path.links()) {
    Link& link = links_[l];
    contended = contended || link.contended();
    link.wanted = --link.flows == 0 ? 0 : link.wanted - flow.alone;
    link.moved += flow.bytes - std::max(0.0, flow.bytes_left);
  }
  return contended;
}

// Max-min fairness by progressive filling: the link with the smallest share per unfrozen flow
// freezes its flows at that share, until none is left.
void Links::share() {
  left_.resize(links_.size());
  unfrozen_.resize(links_.size());
  for (std::size_t l = 0; l < links_.size(); ++l) {
    left_[l] = links_[l].rate;
    unfrozen_[l] = links_[l].flows;
  }
  frozen_.assign(flows_.size(), false);
  for (std::size_t remaining = flows_.size(); remaining > 0;) {
    LinkId tightest = 0;
    double smallest = std::numeric_limits<double>::infinity();
    for (std::size_t l = 0; l < links_.size(); ++l) {
      if (unfrozen_[l] == 0) continue;
      const double each = left_[l] / unfrozen_[l];
      if (each < smallest) {
        smallest = each;
        tightest = static_cast<LinkId>(l);
      }
    }
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      Flow& f = flows_[i];
      if (frozen_[i] || !f.path.uses(tightest)) continue;
      f.rate = smallest;
      frozen_[i] = true;
      --remaining;
      for (const LinkId l : f.path.links()) {
        left_[l] = std::max(0.0, left_[l] - smallest);
        --unfrozen_[l];
      }
    }
  }
}

double Links::slowest_of(const LinkPath& path) const {
  double rate = std::numeric_limits<double>::infinity();
  for (const LinkId l : path.links()) {
    ROUTESIM_CHECK(l < links_.size(), "transfer over an unknown link");
    rate = std::min(rate, links_[l].rate);
  }
  return rate;
}

void Links::set_rate(LinkId link, double bytes_per_second, SimTime now) {
  progress(now);
  links_[link].rate = bytes_per_second * 1e-9;
  for (Link& l : links_) l.wanted = 0;
  for (Flow& f : flows_) {
    f.rate = f.alone = slowest_of(f.path);
    for (const LinkId l : f.path.links()) links_[l].wanted += f.alone;
  }
  if (std::ranges::any_of(links_, &Link::contended)) share();
}

void Links::start(std::uint64_t id, const LinkPath& path, double bytes, SimTime now) {
  ROUTESIM_CHECK(!path.links().empty() && bytes > 0, "a flow without links or bytes");
  progress(now);
  Flow flow{.id = id, .path = path, .bytes = bytes, .bytes_left = bytes};
  flow.alone = slowest_of(path);
  flow.rate = flow.alone;
  flows_.push_back(flow);
  if (join(flow)) share();
}

void Links::cancel(std::uint64_t id, SimTime now) {
  const auto it =
      std::find_if(flows_.begin(), flows_.end(), [id](const Flow& f) { return f.id == id; });
  if (it == flows_.end()) return;
  progress(now);
  const bool contended = leave(*it);
  flows_.erase(it);
  if (contended) share();
}

SimTime Links::next_end() const {
  double earliest = std::numeric_limits<double>::infinity();
  for (const Flow& f : flows_)
    if (f.rate > 0 || f.bytes_left <= kDoneBytes)
      earliest = std::min(earliest, f.rate > 0 ? std::max(0.0, f.bytes_left) / f.rate : 0);
  if (std::isinf(earliest)) return SimTime::max();
  // A transfer may take longer than the clock holds.
  if (earliest >= static_cast<double>((kEndOfTime - now_).ns())) return kEndOfTime;
  return now_ + Duration::nanoseconds(static_cast<std::int64_t>(std::ceil(earliest)));
}

void Links::advance(SimTime now, std::vector<std::uint64_t>& done) {
  progress(now);
  bool contended = false;
  std::erase_if(flows_, [&](const Flow& f) {
    if (f.bytes_left > kDoneBytes) return false;
    done.push_back(f.id);
    contended = leave(f) || contended;
    return true;
  });
  if (contended) share();
}

double Links::load(LinkId link) const {
  double total = 0;
  for (const Flow& f : flows_)
    if (f.path.uses(link)) total += f.rate * 1e9;
  return total;
}

double Links::mean_use(LinkId link, SimTime now) const {
  const auto elapsed = static_cast<double>((now - now_).ns());
  double moved = links_[link].moved;
  for (const Flow& f : flows_)
    if (f.path.uses(link)) moved += f.bytes - std::max(0.0, f.bytes_left - f.rate * elapsed);
  return now.ns() > 0 ? moved / (links_[link].usual * static_cast<double>(now.ns())) : 0;
}

}  // namespace routesim::sim
