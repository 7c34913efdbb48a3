// Idealised caches over a stream of prompts.
#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "tools/study/explain/hit_study.h"

namespace routesim::tools {

namespace {

constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

std::size_t distinct(const std::vector<std::uint32_t>& keys) {
  std::uint32_t most = 0;
  for (const std::uint32_t key : keys) most = std::max(most, key);
  return keys.empty() ? 0 : std::size_t{most} + 1;
}

/// Per position of the stream: the next request that touches the same key, or kNever.
std::vector<std::uint32_t> next_uses(const std::vector<std::uint32_t>& keys,
                                     const std::vector<KeyedRequest>& requests) {
  std::vector<std::uint32_t> next(keys.size(), kNever);
  std::vector<std::uint32_t> seen(distinct(keys), kNever);
  for (std::size_t r = requests.size(); r-- > 0;) {
    for (std::size_t i = requests[r].begin; i < requests[r].end; ++i) next[i] = seen[keys[i]];
    for (std::size_t i = requests[r].begin; i < requests[r].end; ++i)
      seen[keys[i]] = static_cast<std::uint32_t>(r);
  }
  return next;
}

}  // namespace

// A prompt's blocks are touched from the front, so a block is needed again no later than those
// behind it: evicting the block needed last, the deepest one among equals, never leaves a gap.
std::int64_t belady_hits(const std::vector<std::uint32_t>& keys,
                         const std::vector<KeyedRequest>& requests, std::int64_t capacity) {
  const std::vector<std::uint32_t> next = next_uses(keys, requests);
  struct Place {
    bool held = false;
    std::uint32_t next = 0, depth = 0;
  };
  std::vector<Place> places(distinct(keys));
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> held;  // next, depth, key
  std::int64_t hits = 0;
  for (const KeyedRequest& request : requests) {
    for (std::size_t i = request.begin; i < request.hit_end && places[keys[i]].held; ++i) ++hits;
    for (std::size_t i = request.begin; i < request.end; ++i) {
      Place& place = places[keys[i]];
      if (place.held) held.erase({place.next, place.depth, keys[i]});
      place = {.held = next[i] != kNever,
               .next = next[i],
               .depth = static_cast<std::uint32_t>(i - request.begin)};
      if (place.held) held.insert({place.next, place.depth, keys[i]});
    }
    while (std::ssize(held) > capacity) {
      const auto last = std::prev(held.end());
      places[std::get<2>(*last)].held = false;
      held.erase(last);
    }
  }
  return hits;
}

std::int64_t infinite_hits(const std::vector<std::uint32_t>& keys,
                           const std::vector<KeyedRequest>& requests) {
  std::vector<std::int64_t> touched(distinct(keys), 0);
  std::vector<std::int64_t> can_hit(distinct(keys), 0);
  for (const KeyedRequest& request : requests)
    for (std::size_t i = request.begin; i < request.end; ++i) {
      ++touched[keys[i]];
      if (i < request.hit_end) ++can_hit[keys[i]];
    }
  std::int64_t hits = 0;
  // Somebody computes the block first; best is somebody who could not have hit it.
  for (std::size_t k = 0; k < touched.size(); ++k)
    if (touched[k] > 0) hits += std::min(can_hit[k], touched[k] - 1);
  return hits;
}

}  // namespace routesim::tools
