// LMCache in an engine's workers once more, as ObviousEngine is vLLM's scheduler: a list of chunks
// by their tokens. It shares no code with sim/.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <list>
#include <map>
#include <utility>
#include <vector>

#include "sim/rules/engine_config.h"
#include "tests/sim/obvious_tiers.h"

namespace routesim::sim::testing {

class ObviousWorkerCache {
 public:
  using Tokens = ObviousTiers::Tokens;
  using State = ObviousTierState;
  /// What one step copies.
  struct Copies {
    std::vector<Tokens> loads;
    std::vector<std::vector<Tokens>> stores;  ///< By request.
  };

  explicit ObviousWorkerCache(const EngineRules& rules)
      : rules_(rules.tiers), chunk_(rules.tiers.chunk_blocks * rules.block_size) {}

  bool in_use() const { return rules_.in_use() && rules_.copies_in_steps; }

  /// Tokens behind `computed` ones that the next step can load.
  std::int64_t lookup(State& s, const Tokens& tokens, std::int64_t computed) {
    std::int64_t n = 0;
    while ((n + 1) * chunk_ <= std::ssize(tokens) && there(chunk(tokens, n))) ++n;
    // The first one becomes the youngest.
    for (std::int64_t i = n; i-- > 0;) {
      order_.remove(chunk(tokens, i));
      order_.push_back(chunk(tokens, i));
    }
    s.hit_chunks = s.cursor = n;
    std::int64_t more = n * chunk_ - computed;
    if (n * chunk_ == std::ssize(tokens)) --more;
    return more >= std::max<std::int64_t>(1, rules_.min_hit_tokens) ? more : 0;
  }
  void load(const State& s, const Tokens& tokens, std::int64_t computed) {
    for (std::int64_t i = computed / chunk_; i < s.hit_chunks; ++i) {
      pass_.loads.push_back(chunk(tokens, i));
      ++kept_[pass_.loads.back()];
    }
  }
  void store(State& s, const Tokens& tokens, std::int64_t computed) {
    std::vector<Tokens> stored;
    for (; (s.cursor + 1) * chunk_ <= computed; ++s.cursor)
      stored.push_back(chunk(tokens, s.cursor));
    pass_.stores.push_back(stored);
  }
  Copies close_pass() { return std::exchange(pass_, {}); }
  std::int64_t nanoseconds(const Copies& c) const {
    double stores = 0;
    for (const std::vector<Tokens>& s : c.stores) stores += static_cast<double>(s.size());
    const auto loads = static_cast<double>(c.loads.size());
    const double bytes =
        (loads + stores) * (static_cast<double>(rules_.chunk_blocks) * rules_.block_bytes);
    return std::llround(1e9 * (bytes / rules_.link_bytes_per_s + loads * rules_.load_chunk_s +
                               stores * rules_.store_chunk_s));
  }
  void end_step(const Copies& c) {
    for (const Tokens& t : c.loads) --kept_[t];
    for (const std::vector<Tokens>& request : c.stores) {
      std::vector<Tokens> own;
      for (const Tokens& t : request) {
        if (!there(t) && !make_room()) break;
        if (!there(t)) order_.push_back(t);
        own.push_back(t);
        ++kept_[t];
      }
      for (const Tokens& t : own) --kept_[t];
    }
  }

 private:
  Tokens chunk(const Tokens& tokens, std::int64_t i) const {
    return Tokens(tokens.begin(), tokens.begin() + (i + 1) * chunk_);
  }
  bool there(const Tokens& t) const {
    return std::find(order_.begin(), order_.end(), t) != order_.end();
  }
  bool make_room() {
    if (std::ssize(order_) < rules_.cpu_chunks) return true;
    const auto victim = std::find_if(order_.begin(), order_.end(),
                                     [this](const Tokens& t) { return kept_[t] == 0; });
    if (victim == order_.end()) return false;
    order_.erase(victim);
    return true;
  }

  TierRules rules_;
  std::int64_t chunk_;       ///< Tokens.
  std::list<Tokens> order_;  ///< The first is evicted first.
  std::map<Tokens, int> kept_;
  Copies pass_;
};

}  // namespace routesim::sim::testing
