// The two producers of prefix match info: precise (from KV events) and approximate (from the
// router's own decisions). In older eras a scorer is, or owns, one.
#pragma once

#include <cmath>

#include "policies/build_context.h"
#include "policies/index/known_text.h"

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

inline constexpr std::int64_t kCharactersPerToken = 4;

/// Calls `f` with the rows whose caches a routed request will fill: the primary target and the
/// first target of the profile named "prefill".
template <class F>
void for_each_cached_target(const Decision& decision, F f) {
  if (decision.primary.valid()) f(decision.primary.value());
  if (decision.prefill_profile >= 0)
    f(decision.profiles[static_cast<std::size_t>(decision.prefill_profile)].targets.front());
}

/// precise-prefix-cache-producer, and a part of the scorer that owns an index: reads the index into
/// the Cycle and feeds it speculative entries.
class PrecisePrefixProducer final : public Producer {
 public:
  /// Creates the scheduler's store, or shares the existing one if it is configured alike.
  PrecisePrefixProducer(const PrecisePrefixParameters& parameters, const PluginSpec& spec,
                        BuildContext& context, bool is_wrapper = false);
  std::size_t slot() const { return slot_; }
  Facts facts() const override { return Facts::kPrefixMatches; }
  void produce(Cycle& cycle) const override {
    PrefixMatches& m = cycle.prefix(slot_);
    if (m.computed) return;
    m.computed = true;
    const RequestView& request = cycle.request();
    if (store_ == nullptr) return;
    std::size_t looked_up = 0;
    for_each_prompt(
        request.block_keys, request.block_key_ends, [&](std::span<const BlockKey> keys) {
          if (known_text_) {
            const std::int64_t tokens = std::ssize(keys) * store_->options().scheme.block_size;
            const bool only = keys.size() == request.block_keys.size();
            keys = keys.first(known_text_->tokenized(
                keys, text_length(request, only ? std::max(tokens, request.prompt_tokens) : tokens),
                cycle.dry_run()));
          }
          looked_up += keys.size();
          add_matches(cycle, keys);
        });
    m.keys = static_cast<std::int64_t>(looked_up);
    // Newer eras write nothing for a prompt without a full block; the scorer of older ones writes
    // its state whatever the lookup gave.
    m.written = m.keys > 0 || !traits_.match_info_producers;
    m.total_blocks = m.keys;
    m.block_size = m.key_tokens = store_->options().scheme.block_size;
    const bool presence_only = traits_.precise.normalization == PreciseNormalization::kAbsolute;
    for (const EndpointRow r : m.touched)
      m.match[r] = presence_only ? (m.raw[r] > 0 ? 1 : 0) : static_cast<std::int32_t>(m.raw[r]);
    if (presence_only) m.total_blocks = m.block_size = 1;
    if (traits_.precise.normalization == PreciseNormalization::kMinMax) find_extremes(m);
  }
  void on_routed(const RequestView& request, const Decision& decision,
                 const EndpointTable& endpoints, SimTime now) override {
    if (store_ == nullptr || !store_->options().speculative || request.block_keys.empty()) return;
    for_each_cached_target(decision, [&](EndpointRow row) {
      const std::uint32_t holder = by_address_ ? endpoints.address_group(row) : row;
      store_->add_speculative(holder, request.block_keys, now);
    });
  }

 private:
  void add_matches(Cycle& cycle, std::span<const BlockKey> keys) const {
    if (keys.empty()) return;
    PrefixMatches& m = cycle.prefix(slot_);
    const std::span<const PrefixMatch> matches =
        store_->match(keys, cycle.match_scratch(), cycle.dry_run());
    if (store_->counts_tiers()) add_tiers(m, keys);
    const EndpointTable& table = cycle.endpoints();
    const auto give = [&m](EndpointRow r, const PrefixMatch& match) {
      if (m.cached[r] == 0) m.touched.push_back(r);
      m.raw[r] += match.weighted;
      m.cached[r] += static_cast<std::int32_t>(match.blocks);
    };
    const auto give_other = [&m](const PrefixMatch& match) {
      const std::uint32_t holder = match.endpoint.value();
      for (auto& [other, raw] : m.others)
        if (other == holder) return void(raw += match.weighted);
      m.others.emplace_back(holder, match.weighted);
    };
    if (!by_address_) {
      for (const PrefixMatch& match : matches) {
        const EndpointRow holder = match.endpoint.value();
        if (holder < m.raw.size() && cycle.is_candidate(holder))
          give(holder, match);
        else if (!traits_.precise.lookup_candidates_only)
          give_other(match);
      }
      return;
    }
    // All ranks behind one address see the entries of all of them.
    std::vector<std::uint32_t>& match_of = cycle.count_buffer();
    match_of.assign(m.raw.size(), 0);  // 1 + position in `matches`, by address group.
    for (std::uint32_t i = 0; i < matches.size(); ++i) {
      const std::uint32_t group = matches[i].endpoint.value();
      if (group < match_of.size()) match_of[group] = i + 1;
      give_other(
          matches[i]);  // One entry per address; its candidates repeat it, which is harmless.
    }
    for (const EndpointRow r : cycle.candidates())
      if (const std::uint32_t i = match_of[table.address_group(r)]; i > 0) give(r, matches[i - 1]);
  }
  void add_tiers(PrefixMatches& m, std::span<const BlockKey> keys) const {
    std::vector<TierCount> counts;
    store_->tier_counts(keys, counts);
    m.has_tiers = true;
    m.tiers.insert(m.tiers.end(), counts.begin(), counts.end());
  }
  static void find_extremes(PrefixMatches& m) {
    bool first = true;
    const auto widen = [&](double raw) {
      m.lowest = first ? raw : std::min(m.lowest, raw);
      m.highest = first ? raw : std::max(m.highest, raw);
      first = false;
    };
    for (const EndpointRow r : m.touched) widen(m.raw[r]);
    for (const auto& [holder, raw] : m.others) widen(raw);
  }
  // The length of the whole request, or of one of its prompts.
  static KnownText::Length text_length(const RequestView& request, std::int64_t tokens) {
    const bool known = request.prompt_tokens > 0 && request.prompt_bytes > 0;
    return {.tokens = tokens,
            .bytes = known ? tokens * request.prompt_bytes / request.prompt_tokens : 0};
  }

  const EraTraits& traits_;
  std::size_t slot_;
  bool by_address_;  ///< Ranks of one pod share their index entries.
  PreciseStore* store_ = nullptr;
  std::unique_ptr<KnownText> known_text_;  ///< Only where prefixStoreConfig is given.
};

/// approx-prefix-cache-producer: the approximate index with its settings.
class ApproxPrefixProducer : public Producer {
 public:
  ApproxPrefixProducer(const ApproxPrefixParameters& p, const PluginSpec& spec,
                       BuildContext& context)
      : slot_(context.prefix_slot(spec.name)),
        index_(static_cast<std::size_t>(std::max<std::int64_t>(1, p.lru_capacity))) {
    settings_.hashing = context.traits().approx_hashing;
    settings_.auto_tune = p.auto_tune;
    if (settings_.hashing == ApproxHashing::kTokens) {
      const bool old_name = p.block_size && p.block_size_tokens == 16;
      settings_.block_size = old_name ? *p.block_size : p.block_size_tokens;
      settings_.max_tokens = p.max_prefix_tokens;
      settings_.max_blocks = p.max_prefix_blocks.value_or(2048);
      if (!p.auto_tune && settings_.block_size <= 0)
        context.error(spec, "blockSizeTokens",
                      "must be greater than 0 when autoTune is off (got " +
                          std::to_string(settings_.block_size) + ")");
    } else {
      settings_.block_size = p.block_size.value_or(64);
      settings_.max_blocks = p.max_prefix_blocks.value_or(256);
      if (settings_.block_size <= 0)
        context.error(spec, "blockSize",
                      "must be greater than 0 (got " + std::to_string(settings_.block_size) + ")");
    }
    context.needs().approx_hashes = true;
    ApproxStore& shared = context.plugins().approx;
    if (shared.index == nullptr) shared.index = &index_;
    if (!shared.want(settings_))
      context.error(spec, "",
                    "two approximate prefix producers with different block settings are "
                    "not supported",
                    "give all of them the same block size");
    shared.slots.push_back(slot_);
  }
  std::size_t slot() const { return slot_; }
  Facts facts() const override { return Facts::kPrefixMatches; }
  void produce(Cycle& cycle) const override {
    PrefixMatches& m = cycle.prefix(slot_);
    if (m.computed) return;
    m.computed = m.written = true;
    const RequestView& request = cycle.request();
    std::vector<std::uint32_t>& counts = cycle.count_buffer();
    counts.assign(m.raw.size(), 0);
    const std::span<const EndpointRow> candidates = cycle.candidates();
    const ApproxScheme scheme =
        settings_.scheme(reported_block_size(candidates, cycle.endpoints()));
    for_each_prompt(request.approx_hashes, request.approx_hash_ends,
                    [&](std::span<const std::uint64_t> hashes) {
                      const auto own = scheme.capped(hashes);
                      index_.add_matches(own, counts);
                      m.keys += std::ssize(own);
                    });
    m.total_blocks = m.keys;
    m.block_size = m.key_tokens = scheme.block_size;
    if (settings_.hashing != ApproxHashing::kTokens)
      m.key_tokens = request.prompt_bytes > 0
                         ? m.block_size * request.prompt_tokens / request.prompt_bytes
                         : m.block_size / kCharactersPerToken;
    for (const EndpointRow r : candidates) {
      if (counts[r] == 0) continue;
      m.touched.push_back(r);
      m.raw[r] = counts[r];
      m.match[r] = m.cached[r] = static_cast<std::int32_t>(counts[r]);
    }
  }
  void on_routed(const RequestView& request, const Decision& decision,
                 const EndpointTable& endpoints, SimTime) override {
    if (request.approx_hashes.empty()) return;
    std::vector<std::uint64_t> buffer;
    const auto hashes = own_hashes(
        request, settings_.scheme(reported_block_size(endpoints.candidates(), endpoints)), buffer);
    for_each_cached_target(decision, [&](EndpointRow row) {
      const std::int64_t reported = settings_.auto_tune ? endpoints.info(row).num_gpu_blocks : 0;
      index_.add(EndpointId(row), hashes, static_cast<std::size_t>(reported));
    });
  }
  void on_endpoint_removed(EndpointRow row, SimTime) override {
    index_.remove_endpoint(EndpointId(row));
  }

 private:
  static std::int64_t reported_block_size(std::span<const EndpointRow> candidates,
                                          const EndpointTable& endpoints) {
    return candidates.empty() ? 0 : endpoints.info(candidates.front()).block_size;
  }
  // The hashes of all prompts, without those that only another producer with a larger cap wants.
  static std::span<const std::uint64_t> own_hashes(const RequestView& request,
                                                   const ApproxScheme& scheme,
                                                   std::vector<std::uint64_t>& buffer) {
    const auto prompts = [&](auto f) {
      for_each_prompt(request.approx_hashes, request.approx_hash_ends,
                      [&](std::span<const std::uint64_t> all) { f(all, scheme.capped(all)); });
    };
    bool whole = true;
    prompts([&](auto all, auto own) { whole = whole && all.size() == own.size(); });
    if (whole) return request.approx_hashes;
    prompts([&](auto, auto own) { buffer.insert(buffer.end(), own.begin(), own.end()); });
    return buffer;
  }

  ApproxSettings settings_;
  std::size_t slot_;
  ApproxPrefixIndex index_;
};

/// Scores candidates by what they hold of the prompt: `score_of(row)`, which must be 0 for a row
/// without a match. Few of a large fleet have one.
template <class F>
void score_holders(const PrefixMatches& m, std::span<const EndpointRow> candidates,
                   std::span<double> scores, F score_of) {
  if (!consecutive(candidates)) {
    for (std::size_t i = 0; i < candidates.size(); ++i) scores[i] = score_of(candidates[i]);
    return;
  }
  std::fill(scores.begin(), scores.end(), 0.0);
  for (const EndpointRow r : m.touched) {
    const std::size_t i = r - candidates.front();
    if (r >= candidates.front() && i < candidates.size()) scores[i] = score_of(r);
  }
}

}  // namespace routesim::policies
