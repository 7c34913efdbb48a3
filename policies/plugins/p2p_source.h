// p2p-source-producer: names a peer to pull KV blocks from, when it holds so much more of the
// prompt than the endpoint that will compute it. llm-d-router
// pkg/epp/framework/plugins/requestcontrol/dataproducer/p2psource; EraTraits::pull_source has the
// releases. The router compares no times: minCachedTokenDelta is the only gate.
#pragma once

#include "base/rng.h"
#include "base/text.h"
#include "policies/build_context.h"

namespace routesim::policies {

inline constexpr std::string_view kPullSourceHeader = "x-kv-cache-source-host-port";

struct PullSourceParameters {
  std::string producer;
  std::int64_t min_cached_token_delta = 1;
  std::string prefill_profile;
};
inline void describe(Describer& d, PullSourceParameters& p) {
  field(d, {"prefixMatchInfoProducerName", "Producer to read; empty = the approximate one."},
        p.producer);
  field(d, {"minCachedTokenDelta", "Cached tokens that the source must have more."},
        p.min_cached_token_delta, IntRange{1});
  field(d, {"prefillProfileName", "Profile whose target computes the prompt (default prefill)."},
        p.prefill_profile);
}

/// A number in [0, 1) that depends on the identifier of a request only.
inline double request_spread(std::string_view request_id) {
  return static_cast<double>(fnv1a32(request_id)) / 4294967296.0;
}

/// The x-request-id of a request. Without one, routers make a UUID; hexadecimal digits that depend
/// on RequestView::id stand for it here.
inline std::string request_id_text(const RequestView& request) {
  if (const auto id = request.header("x-request-id"); id && !id->empty()) return std::string(*id);
  const std::string text = hex_digits(mix64(request.id));
  return {text.rbegin(), text.rend()};
}

/// An endpoint that holds some of the prompt.
struct PullCandidate {
  EndpointRow row = 0;
  std::int64_t cached_tokens = 0;
  double waiting = 0;  ///< Queue at the last scrape, 0 when unknown.
};

/// The position of the source: up to July 2026 the first with most tokens, otherwise a draw among
/// those within one block of it, by 1 / (1 + queue). `spread`: see request_spread. `candidates`
/// must not be empty.
inline std::size_t choose_pull_source(const std::vector<PullCandidate>& candidates,
                                      std::int64_t block_tokens, double spread, bool band) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < candidates.size(); ++i)
    if (candidates[i].cached_tokens > candidates[best].cached_tokens) best = i;
  if (!band) return best;
  const std::int64_t most = candidates[best].cached_tokens;
  const auto in_band = [&](const PullCandidate& c) {
    return c.cached_tokens + block_tokens >= most;
  };
  const auto weight = [](const PullCandidate& c) { return 1.0 / (1.0 + c.waiting); };
  double total = 0;
  for (const PullCandidate& c : candidates)
    if (in_band(c)) total += weight(c);
  double target = spread * total;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!in_band(candidates[i])) continue;
    best = i;  // The last one, if rounding leaves nobody.
    if (target < weight(candidates[i])) break;
    target -= weight(candidates[i]);
  }
  return best;
}

class PullSourceProducer final : public Producer {
 public:
  PullSourceProducer(const PullSourceParameters& p, const PluginSpec& spec, BuildContext& context)
      : rule_(context.traits().pull_source),
        delta_(p.min_cached_token_delta),
        slot_(context.prefix_slot_of(p.producer, spec)) {
    context.needs().metrics = true;
    if (rule_ >= PullSourceRule::kCpuBand && context.plugins().precise)
      context.plugins().precise->count_tiers();
    const std::string prefill = p.prefill_profile.empty() ? "prefill" : p.prefill_profile;
    prefill_profile_ = context.config().profile(prefill);
  }
  Facts facts() const override { return Facts::kReusableTokens; }
  /// Tokens that a pull saves the computing endpoint, at least 1; 0 = unknown.
  std::int64_t reusable_tokens(Cycle& cycle) const {
    return cycle.decision().note(index(), kReusable, 0);
  }

  /// Chooses among all candidates of the request, whatever their role.
  void produce(Cycle& cycle) const override {
    const PrefixMatches& m = cycle.prefix(slot_);
    if (!m.written) return;
    const std::vector<PullCandidate> candidates = holders(cycle, m);
    if (candidates.empty()) return;
    const PullCandidate& source = candidates[choose_pull_source(
        candidates, m.block_size, request_spread(request_id_text(cycle.request())),
        rule_ != PullSourceRule::kMost)];
    Decision& decision = cycle.decision();
    decision.set_note(index(), kSource, source.row);
    decision.set_note(index(), kCached, source.cached_tokens);
    const std::int64_t reusable = source.cached_tokens - delta_ + 1;
    if (rule_ == PullSourceRule::kConfirmed && m.has_tiers && reusable > 0)
      decision.set_note(index(), kReusable, reusable);
  }
  /// Upstream does this before the request leaves, and drops a header that the client sent.
  void on_decided(Cycle& cycle, Decision& decision) const override {
    std::erase_if(decision.headers,
                  [](const auto& header) { return header.first == kPullSourceHeader; });
    decision.pull_source = EndpointId();
    decision.pull_source_tokens = 0;
    const std::int64_t cached = decision.note(index(), kCached, 0);
    if (cached == 0) return;
    const auto source = static_cast<EndpointRow>(decision.note(index(), kSource, 0));
    const EndpointRow computing = computing_row(decision);
    if (source == computing || cached - computing_tokens(cycle.prefix(slot_), computing) < delta_)
      return;
    decision.pull_source = EndpointId(source);
    decision.pull_source_tokens = cached;
    decision.headers.emplace_back(kPullSourceHeader, cycle.endpoints().info(source).host_port());
  }

 private:
  static constexpr std::uint32_t kSource = 0, kCached = 1, kReusable = 2;  // Notes.

  // Candidates of the request with blocks that can be pulled, by ascending row.
  std::vector<PullCandidate> holders(const Cycle& cycle, const PrefixMatches& m) const {
    std::vector<PullCandidate> found;
    const auto add = [&](EndpointRow row, std::int64_t blocks) {
      if (blocks > 0 && cycle.is_candidate(row))
        found.push_back({.row = row, .cached_tokens = blocks * m.block_size});
    };
    if (rule_ >= PullSourceRule::kCpuBand && m.has_tiers) {
      for (const TierCount& c : m.tiers)
        if (c.rows == TierRows::kTier && c.tier == kCpuTier) add(c.endpoint.value(), c.blocks);
    } else {
      for (const EndpointRow row : m.touched) add(row, m.cached[row]);
    }
    std::sort(found.begin(), found.end(),
              [](const PullCandidate& a, const PullCandidate& b) { return a.row < b.row; });
    std::vector<PullCandidate> merged;  // Several prompts of one request add up.
    const EndpointTable& table = cycle.endpoints();
    for (const PullCandidate& c : found) {
      if (!merged.empty() && merged.back().row == c.row) {
        merged.back().cached_tokens += c.cached_tokens;
        continue;
      }
      merged.push_back(c);
      if (table.has_metrics(c.row)) merged.back().waiting = table.waiting()[c.row];
    }
    return merged;
  }
  // A block that is there needs no pull, whatever its tier. Up to August 2026 speculative entries
  // count, too, although their blocks may still have to be computed.
  std::int64_t computing_tokens(const PrefixMatches& m, EndpointRow row) const {
    return m.block_size * (rule_ == PullSourceRule::kConfirmed && m.has_tiers
                               ? m.tier_blocks(EndpointId(row), TierRows::kConfirmed)
                               : m.cached[row]);
  }
  EndpointRow computing_row(const Decision& decision) const {
    if (prefill_profile_ && decision.profiles[*prefill_profile_].has_target())
      return decision.profiles[*prefill_profile_].targets.front();
    return decision.primary.value();
  }

  PullSourceRule rule_;
  std::int64_t delta_;
  std::size_t slot_;
  std::optional<std::size_t> prefill_profile_;
};

}  // namespace routesim::policies
