// The two producers of prefix match info: precise (from KV events) and approximate (from the
// router's own decisions). Each is a core that a producer plugin or, in older eras, a scorer owns.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/describe.h"
#include "base/field_fates.h"
#include "policies/build_context.h"
#include "policies/index/approx_prefix_index.h"
#include "policies/index/known_text.h"
#include "policies/index/precise_store.h"
#include "policies/plugins.h"

namespace routesim::policies {

struct PrecisePrefixParameters;

/// Approximate prefix producer, and prefix-cache-scorer of the eras in which it owned the index.
struct ApproxPrefixParameters {
  bool auto_tune = true;
  std::int64_t block_size_tokens = 16;
  std::optional<std::int64_t> block_size;
  std::optional<std::int64_t> max_prefix_blocks;
  std::int64_t max_prefix_tokens = 131'072;
  std::int64_t lru_capacity = 31'250;
  std::string hash_source;
};
inline void describe(Describer& d, ApproxPrefixParameters& p) {
  field(d, {"autoTune", "Take block size and capacity from what the engines report."}, p.auto_tune);
  field(d, {"blockSizeTokens", "Tokens per block when not auto-tuned (raised to 64)."},
        p.block_size_tokens);
  field(d, {"blockSize", "Older name; characters per block in byte-hashing eras (default 64)."},
        p.block_size);
  field(d, {"maxPrefixBlocksToMatch", "Cap in blocks; 0 = none (default 2048, older eras 256)."},
        p.max_prefix_blocks, IntRange{0});
  field(d, {"maxPrefixTokensToMatch", "Cap in tokens; wins over the cap in blocks; 0 = unset."},
        p.max_prefix_tokens, IntRange{0});
  field(d, {"lruCapacityPerServer", "Hashes kept per endpoint when not auto-tuned."},
        p.lru_capacity, IntRange{1});
  field(d,
        no_effect("prefixHashSource", "Who hashes the prompt.",
                  "either side computes the same hashes"),
        p.hash_source);
}

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

  void produce(Cycle& cycle) const;
  void on_routed(const RequestView& request, const Decision& decision,
                 const EndpointTable& endpoints);
  void on_endpoint_removed(EndpointRow row) { index_.remove_endpoint(EndpointId(row)); }

 private:
  ApproxSettings settings_;
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
