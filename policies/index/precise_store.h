// The precise prefix index of one scheduler, single-threaded or concurrent, with its speculative
// entries.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/units.h"
#include "policies/index/block_keys.h"
#include "policies/index/prefix_index.h"
#include "policies/index/tier_registry.h"

namespace routesim::policies {

class PreciseStore {
 public:
  struct Options {
    BlockKeyScheme scheme;
    PrefixIndexOptions index;
    bool tiers = true;
    bool speculative = false;
    Duration speculative_ttl = Duration::seconds(2);
  };
  PreciseStore(Options options, TierRegistry tiers, bool concurrent)
      : options_(std::move(options)),
        tiers_(std::move(tiers)),
        speculative_(options_.speculative_ttl) {
    if (concurrent)
      concurrent_ = std::make_unique<ConcurrentPrefixIndex>(options_.index);
    else
      single_ = std::make_unique<PrefixIndex>(options_.index);
  }

  const Options& options() const { return options_; }
  PrefixIndex* index() const { return single_.get(); }
  ConcurrentPrefixIndex* concurrent() const { return concurrent_.get(); }
  TierRegistry& tiers() { return tiers_; }
  /// Whether decisions read blocks per tier, which takes a second look at the index.
  bool counts_tiers() const { return counts_tiers_; }
  void count_tiers() { counts_tiers_ = true; }

  /// Longest-prefix matches of one prompt, in `scratch`. See PrefixIndex::match.
  std::span<const PrefixMatch> match(std::span<const BlockKey> keys, MatchScratch& scratch,
                                     bool dry_run) const {
    use([&](PrefixIndex& index) { index.match(keys, scratch, dry_run); });
    return scratch.matches();
  }
  void tier_counts(std::span<const BlockKey> keys, std::vector<TierCount>& counts) const {
    use([&](const PrefixIndex& index) { index.tier_counts(keys, counts); });
  }
  void add_speculative(std::uint32_t holder, std::span<const BlockKey> keys, SimTime now) {
    use([&](PrefixIndex& index) { speculative_.add(index, EndpointId(holder), keys, now); });
  }
  void expire(SimTime now) {
    if (speculative_.pending() == 0) return;
    use([&](PrefixIndex& index) { speculative_.expire(index, now); });
  }
  void remove(std::uint32_t holder) {
    use([&](PrefixIndex& index) { index.remove_endpoint(EndpointId(holder)); });
  }

 private:
  /// Runs `f` on the index, alone where it is concurrent.
  template <class F>
  void use(F f) const {
    single_ ? f(*single_) : concurrent_->exclusive(f);
  }

  Options options_;
  TierRegistry tiers_;
  bool counts_tiers_ = false;
  std::unique_ptr<PrefixIndex> single_;
  std::unique_ptr<ConcurrentPrefixIndex> concurrent_;
  SpeculativeEntries speculative_;
};

}  // namespace routesim::policies
