#include "policies/index/block_keys.h"
#include "tools/study/score/score.h"

namespace routesim::tools {

namespace {

/// Bytes of one token, as the token producer's estimate backend takes it.
constexpr std::int64_t kBytesPerToken = 4;

}  // namespace

KeyedRequest::KeyedRequest(const ScoreRequest& request, const ScorePool& pool,
                           const policies::Scheduler& scheduler, Diagnostics& diagnostics)
    : request_(request) {
  if (request.text) tokens_ = policies::estimate_tokens(*request.text);
  if (request.token_ids) tokens_ = *request.token_ids;
  for (const auto& [name, value] : request.headers)
    headers_.push_back({.name = name, .value = value});
  for (const ScoreItem& item : request.items)
    items_.push_back({.hash = item.hash, .size = item.size});
  view_.id = static_cast<std::uint64_t>(request.id);
  view_.model = request.model;
  view_.prompt_tokens = request.prompt_tokens.value_or(static_cast<std::int64_t>(tokens_.size()));
  view_.prompt_bytes = request.text
                           ? static_cast<std::int64_t>(request.text->size())
                           : request.prompt_bytes.value_or(view_.prompt_tokens * kBytesPerToken);
  view_.headers = headers_;
  view_.subset = request.subset;
  view_.predictions = request.predictions;
  view_.multimodal = !items_.empty();
  view_.items = items_;
  view_.cached_item_size = request.cached_item_size;
  view_.priority = request.priority;
  view_.session = request.session;
  view_.cache_salt = request.cache_salt;
  view_.max_tokens = request.max_tokens;
  view_.slo_ttft_ms = request.slo_ttft_ms;
  view_.slo_tpot_ms = request.slo_tpot_ms;
  const policies::SignalNeeds& needs = scheduler.needs();
  if (needs.block_keys) add_block_keys(scheduler, diagnostics);
  if (needs.approx_hashes) add_approx_hashes(scheduler.approx_scheme(pool.table), diagnostics);
  if (needs.predictions && request.predictions.empty())
    diagnostics.warning(request.where, "predictions", "is read by this configuration and missing",
                        "without predictions its latency scores are those of a silent side-car");
}

void KeyedRequest::add_block_keys(const policies::Scheduler& scheduler, Diagnostics& diagnostics) {
  const policies::BlockKeyScheme scheme = scheduler.block_key_scheme();
  const auto block = static_cast<std::uint32_t>(scheme.block_size);
  const policies::BlockKeyChain chain(scheme.algorithm, block, scheme.hash_seed, request_.model);
  if (request_.block_keys) {
    block_keys_ = *request_.block_keys;
    // Keys say how long the prompt is, at least.
    if (!request_.prompt_tokens) {
      view_.prompt_tokens = static_cast<std::int64_t>(block_keys_.size()) * scheme.block_size;
      if (!request_.prompt_bytes) view_.prompt_bytes = view_.prompt_tokens * kBytesPerToken;
    }
  } else if (!tokens_.empty()) {
    std::vector<policies::BlockExtra> extras;
    // The SHA-256 releases hashed tokens only.
    if (!request_.cache_salt.empty() && !is_sha(scheme.algorithm))
      extras = policies::compute_block_extras({}, block, static_cast<std::int64_t>(tokens_.size()),
                                              request_.cache_salt);
    chain.append_keys(policies::BlockKey{0}, tokens_, block_keys_, extras);
  } else if (!request_.text && !request_.token_ids) {
    diagnostics.warning(request_.where, "", "has no block keys, which this configuration reads",
                        "give token_ids, text or block_keys; the prefix counts as not cached");
  }
  for (std::uint64_t& key : block_keys_) key = chain.index_key(key);
  view_.block_keys = block_keys_;
}

void KeyedRequest::add_approx_hashes(const policies::ApproxScheme& scheme,
                                     Diagnostics& diagnostics) {
  const auto most = static_cast<std::size_t>(scheme.max_blocks);
  const bool by_tokens = scheme.hashing == policies::ApproxHashing::kTokens;
  if (request_.approx_hashes) {
    approx_hashes_ = *request_.approx_hashes;
  } else if (by_tokens && (request_.text || request_.token_ids)) {
    approx_hashes_ =
        policies::approx_hashes_tokens(tokens_, request_.model, request_.cache_salt,
                                       static_cast<std::uint32_t>(scheme.block_size), most);
  } else if (!by_tokens && request_.text) {
    approx_hashes_ =
        policies::approx_hashes_bytes(*request_.text, request_.model, request_.cache_salt,
                                      static_cast<std::size_t>(scheme.block_size),
                                      scheme.hashing == policies::ApproxHashing::kBytesTail, most);
  } else {
    diagnostics.warning(request_.where, "",
                        "has no hashes for the approximate index, which this configuration reads",
                        by_tokens ? "give token_ids, text or approx_hashes"
                                  : "this release hashes bytes: give text or approx_hashes");
  }
  view_.approx_hashes = approx_hashes_;
}

}  // namespace routesim::tools
