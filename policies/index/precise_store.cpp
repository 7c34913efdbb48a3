#include "policies/index/precise_store.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace routesim::policies {
namespace {

// Longest prefix by reading holders only: what PrefixIndex::match computes, without its effects.
void match_by_holders(const PrefixIndex& index, std::span<const BlockKey> keys,
                      std::vector<PrefixMatch>& out) {
  const std::vector<double>& weights = index.options().tier_weights;
  out.clear();
  std::vector<std::uint32_t> alive;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::vector<HolderEntry> holders = index.holders(keys[i]);
    const auto best = [&](EndpointId endpoint) {
      std::optional<double> weight;
      for (const HolderEntry& h : holders) {
        if (h.endpoint != endpoint) continue;
        const double w = h.tier < weights.size() ? weights[h.tier] : 1.0;
        weight = weight ? std::max(*weight, w) : w;
      }
      return weight;
    };
    if (i == 0) {
      for (const HolderEntry& h : holders) {
        const bool known = std::any_of(
            out.begin(), out.end(), [&](const PrefixMatch& m) { return m.endpoint == h.endpoint; });
        if (!known) out.emplace_back().endpoint = h.endpoint;
      }
      for (std::uint32_t m = 0; m < out.size(); ++m) alive.push_back(m);
    }
    std::erase_if(alive, [&](std::uint32_t m) {
      const std::optional<double> w = best(out[m].endpoint);
      if (!w) return true;
      out[m].weighted += *w;
      ++out[m].blocks;
      return false;
    });
    if (alive.empty()) return;
  }
}

}  // namespace

PreciseStore::PreciseStore(Options options, TierRegistry tiers, bool concurrent)
    : options_(std::move(options)),
      tiers_(std::move(tiers)),
      speculative_(options_.speculative_ttl) {
  if (concurrent)
    concurrent_ = std::make_unique<ConcurrentPrefixIndex>(options_.index);
  else
    single_ = std::make_unique<PrefixIndex>(options_.index);
}

std::span<const PrefixMatch> PreciseStore::match(std::span<const BlockKey> keys,
                                                 MatchScratch& scratch, bool dry_run,
                                                 std::vector<PrefixMatch>& dry_result) const {
  use([&](PrefixIndex& index) {
    dry_run ? match_by_holders(index, keys, dry_result) : index.match(keys, scratch);
  });
  return dry_run ? dry_result : scratch.matches();
}

void PreciseStore::add_speculative(std::uint32_t holder, std::span<const BlockKey> keys,
                                   SimTime now) {
  use([&](PrefixIndex& index) { speculative_.add(index, EndpointId(holder), keys, now); });
}

void PreciseStore::expire(SimTime now) {
  if (speculative_.pending() == 0) return;
  use([&](PrefixIndex& index) { speculative_.expire(index, now); });
}

void PreciseStore::remove(std::uint32_t holder) {
  use([&](PrefixIndex& index) { index.remove_endpoint(EndpointId(holder)); });
}

}  // namespace routesim::policies
