// The ring of consistent hashing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace routesim::policies {

/// Points of servers in a circle of hashes.
template <class Hash = std::uint64_t>
class Ring {
 public:
  void clear() { points_.clear(); }
  void add(const Hash& at, std::uint32_t owner) { points_.emplace_back(at, owner); }
  /// Call after the last add(). Of points with one hash all stay, in the order of their adding, or
  /// the last one alone, as in products whose ring is a map.
  void close(bool one_per_hash = false) {
    std::stable_sort(points_.begin(), points_.end(),
                     [](const Point& a, const Point& b) { return a.first < b.first; });
    if (!one_per_hash) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < points_.size(); ++i)
      if (i + 1 == points_.size() || points_[i + 1].first != points_[i].first)
        points_[kept++] = points_[i];
    points_.resize(kept);
  }
  std::size_t size() const { return points_.size(); }
  /// The first point whose hash is not smaller, 0 behind the last one. O(log points).
  std::size_t locate(const Hash& hash) const {
    const auto at = std::lower_bound(points_.begin(), points_.end(), hash,
                                     [](const Point& p, const Hash& h) { return p.first < h; });
    return at == points_.end() ? 0 : static_cast<std::size_t>(at - points_.begin());
  }
  /// The same for the first point whose hash is greater.
  std::size_t locate_after(const Hash& hash) const {
    const auto at = std::upper_bound(points_.begin(), points_.end(), hash,
                                     [](const Hash& h, const Point& p) { return h < p.first; });
    return at == points_.end() ? 0 : static_cast<std::size_t>(at - points_.begin());
  }
  /// Positions go round and round.
  std::uint32_t owner(std::size_t position) const {
    return points_[position % points_.size()].second;
  }
  /// The first owner from a position on that `fits`. There is one.
  template <class F>
  std::uint32_t owner(std::size_t position, F fits) const {
    while (!fits(owner(position))) ++position;
    return owner(position);
  }

 private:
  using Point = std::pair<Hash, std::uint32_t>;
  std::vector<Point> points_;
};

}  // namespace routesim::policies
