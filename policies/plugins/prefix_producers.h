// The two producers of prefix match info: precise (from KV events) and approximate (from the
// router's own decisions). Each is a core that a producer plugin or, in older eras, a scorer owns.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policies/config/factory.h"
#include "policies/config/known_text.h"
#include "policies/index/approx_prefix_index.h"
#include "policies/index/prefix_index.h"
#include "policies/plugins.h"

namespace routesim::policies {

/// The precise index of a scheduler, in its single-threaded or its concurrent form.
class PreciseStore {
 public:
  struct Options {
    BlockKeyScheme scheme;
    PrefixIndexOptions index;
    bool tiers = true;
    bool speculative = false;
    Duration speculative_ttl = Duration::seconds(2);
  };
  PreciseStore(Options options, TierRegistry tiers, bool concurrent);

  const Options& options() const { return options_; }
  PrefixIndex* index() const { return single_.get(); }
  ConcurrentPrefixIndex* concurrent() const { return concurrent_.get(); }
  TierRegistry& tiers() { return tiers_; }

  /// Longest-prefix matches of one prompt. A dry run walks the holders key by key, slowly, and
  /// leaves the recency of the keys alone.
  std::span<const PrefixMatch> match(std::span<const BlockKey> keys, MatchScratch& scratch,
                                     bool dry_run, std::vector<PrefixMatch>& dry_result) const;
  void add_speculative(std::uint32_t holder, std::span<const BlockKey> keys, SimTime now);
  void expire(SimTime now);
  void remove(std::uint32_t holder);

 private:
  Options options_;
  TierRegistry tiers_;
  std::unique_ptr<PrefixIndex> single_;
  std::unique_ptr<ConcurrentPrefixIndex> concurrent_;
  SpeculativeEntries speculative_;
};

/// Reads the index into the Cycle and feeds it speculative entries.
class PrecisePrefix {
 public:
  /// Creates the scheduler's store, or shares the existing one if it is configured alike.
  PrecisePrefix(const PrecisePrefixParameters& parameters, const PluginSpec& spec,
                BuildContext& context, bool is_wrapper);
  std::size_t slot() const { return slot_; }
  void produce(Cycle& cycle) const;
  void on_routed(const RequestView& request, const Decision& decision,
                 const EndpointTable& endpoints, SimTime now);

 private:
  void add_matches(Cycle& cycle, std::span<const BlockKey> keys) const;
  static void find_extremes(PrefixMatches& m);
  static KnownText::Length text_length(const RequestView& request, std::int64_t tokens);

  const EraTraits& traits_;
  std::size_t slot_;
  bool by_address_;  ///< Ranks of one pod share their index entries.
  PreciseStore* store_ = nullptr;
  std::unique_ptr<KnownText> known_text_;  ///< Only where prefixStoreConfig is given.
};

/// Type precise-prefix-cache-producer.
class PrecisePrefixProducer final : public Producer {
 public:
  PrecisePrefixProducer(const PrecisePrefixParameters& p, const PluginSpec& spec,
                        BuildContext& context)
      : core_(p, spec, context, false) {}
  void produce(Cycle& cycle) const override { core_.produce(cycle); }
  Facts facts() const override { return Facts::kPrefixMatches; }
  void on_routed(const RequestView& request, const Decision& decision,
                 const EndpointTable& endpoints, SimTime now) override {
    core_.on_routed(request, decision, endpoints, now);
  }

 private:
  PrecisePrefix core_;
};

/// The approximate index with its settings.
class ApproxPrefix {
 public:
  ApproxPrefix(const ApproxPrefixParameters& parameters, const PluginSpec& spec,
               BuildContext& context);
  std::size_t slot() const { return slot_; }
  ApproxScheme scheme(std::int64_t reported_block_size) const;
  ApproxPrefixIndex& index() { return index_; }
  const ApproxPrefixParameters& parameters() const { return parameters_; }

  void produce(Cycle& cycle) const;
  void on_routed(const RequestView& request, const Decision& decision,
                 const EndpointTable& endpoints);
  void on_endpoint_removed(EndpointRow row) { index_.remove_endpoint(EndpointId(row)); }

 private:
  ApproxPrefixParameters parameters_;
  ApproxHashing hashing_;
  std::size_t slot_;
  ApproxPrefixIndex index_;
};

/// Type approx-prefix-cache-producer.
class ApproxPrefixProducer final : public Producer {
 public:
  ApproxPrefixProducer(const ApproxPrefixParameters& p, const PluginSpec& spec,
                       BuildContext& context)
      : core_(p, spec, context) {}
  void produce(Cycle& cycle) const override { core_.produce(cycle); }
  Facts facts() const override { return Facts::kPrefixMatches; }
  void on_routed(const RequestView& request, const Decision& decision,
                 const EndpointTable& endpoints, SimTime) override {
    core_.on_routed(request, decision, endpoints);
  }
  void on_endpoint_removed(EndpointRow row, SimTime) override { core_.on_endpoint_removed(row); }
  ApproxPrefix& core() { return core_; }

 private:
  ApproxPrefix core_;
};

/// Scores candidates by what they hold of the prompt: `score_of(row)`, which must be 0 for a row
/// without a match. Of a large fleet few have one.
template <class F>
void score_holders(Cycle& cycle, const PrefixMatches& m, std::span<const EndpointRow> candidates,
                   std::span<double> scores, F score_of) {
  if (!consecutive(candidates)) {
    for (std::size_t i = 0; i < candidates.size(); ++i) scores[i] = score_of(candidates[i]);
    return;
  }
  cycle.score_alike(0, scores, [&](auto set) {
    for (const EndpointRow r : m.touched) {
      const std::size_t i = r - candidates.front();
      if (r >= candidates.front() && i < candidates.size()) set(i, score_of(r));
    }
  });
}

/// The endpoints whose caches a routed request will fill: the primary target and the first target
/// of the profile named "prefill".
struct CachedTargets {
  std::optional<EndpointRow> primary, prefill;
};
CachedTargets cached_targets(const Decision& decision);

}  // namespace routesim::policies
