// The needs of a configuration: which inputs its caller computes for each request, and how.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "policies/endpoint_picker_config.h"
#include "policies/era.h"
#include "policies/index/block_keys.h"
#include "policies/kv_events/kv_event_ingest.h"

namespace routesim::policies {

/// How the hashes of the approximate index are made.
struct ApproxScheme {
  ApproxHashing hashing = ApproxHashing::kTokens;
  std::int64_t block_size = 64;  ///< Tokens, or bytes in the byte-hashing eras.
  std::int64_t max_blocks = 0;   ///< Hashes kept per prompt; 0 = unlimited.

  /// The hashes of one prompt that a producer with this cap sees.
  std::span<const std::uint64_t> capped(std::span<const std::uint64_t> hashes) const {
    return max_blocks > 0 && std::ssize(hashes) > max_blocks
               ? hashes.first(static_cast<std::size_t>(max_blocks))
               : hashes;
  }
};

/// Settings of the approximate index, from which the scheme follows.
struct ApproxSettings {
  ApproxHashing hashing = ApproxHashing::kTokens;
  bool auto_tune = true;         ///< Take the block size from what the engines report.
  bool exact = false;            ///< Blocks may be smaller than the smallest of the indexes.
  std::int64_t block_size = 16;  ///< Without auto-tuning: tokens, or bytes in byte-hashing eras.
  std::int64_t max_tokens = 0;   ///< Cap of a prompt in tokens; 0 = unset. Wins over max_blocks.
  std::int64_t max_blocks = 0;   ///< Cap of a prompt in blocks; 0 = unlimited.

  /// Raises the caps so that prompts keep the hashes which `other` wants, too; hashes are chained,
  /// so a lower cap takes the first ones. False when the hashes differ.
  bool widen(const ApproxSettings& other) {
    const ApproxScheme mine = scheme(0), others = other.scheme(0);
    if (mine.hashing != others.hashing || mine.block_size != others.block_size) return false;
    if (max_tokens > 0 && other.max_tokens > 0) {
      max_tokens = std::max(max_tokens, other.max_tokens);
    } else {
      const bool capped = max_tokens <= 0 && other.max_tokens <= 0;
      max_blocks = capped && max_blocks > 0 && other.max_blocks > 0
                       ? std::max(max_blocks, other.max_blocks)
                       : 0;
      max_tokens = 0;
    }
    return true;
  }
  /// `reported_block_size`: tokens per KV block as an engine reports them; 0 = unknown.
  ApproxScheme scheme(std::int64_t reported_block_size) const {
    constexpr std::int64_t kCharactersPerToken = 4;
    const bool tune = auto_tune && reported_block_size > 0;
    if (hashing != ApproxHashing::kTokens)
      return {.hashing = hashing,
              .block_size = tune ? reported_block_size * kCharactersPerToken : block_size,
              .max_blocks = max_blocks};
    const std::int64_t block =
        exact ? block_size : effective_approx_block(tune ? reported_block_size : block_size);
    return {.hashing = hashing,
            .block_size = block,
            .max_blocks = max_tokens > 0 ? max_tokens / block : max_blocks};
  }
};

/// Which inputs a configuration reads, so that a caller computes no others.
struct SignalNeeds {
  bool metrics = false;        ///< EndpointTable metrics.
  bool in_flight = false;      ///< on_routed / on_response_started / on_first_token / on_completed.
  bool block_keys = false;     ///< RequestView::block_keys.
  bool kv_events = false;      ///< KV events, for the precise index.
  bool kv_replays = false;     ///< And those that were missed, from the engines' replay sockets.
  bool approx_hashes = false;  ///< RequestView::approx_hashes.
  bool prompt_tokens = false;
  bool prompt_bytes = false;
  bool predictions = false;
  bool encoder_cache = false;  ///< RequestView::items and cached_item_size.
  bool headers = false;
  bool lora = false;
  bool pool_metrics = false;  ///< EndpointTable attributes with the aggregates of whole pools.
  /// Headers whose value is taken for the id of the request's session.
  std::vector<std::string> session_id_headers = {};
  /// Headers the router adds to an answer (Scheduler::response_headers), for the client to send
  /// with the next request of the session.
  std::vector<std::string> session_token_headers = {};
};

/// Everything a caller must know before it feeds a scheduler of this configuration.
/// config/make_scheduler.h computes it.
struct Requirements {
  SignalNeeds signals;
  bool precise_index = false;  ///< A plugin has one, even where a parser leaves prompts unread.
  BlockKeyScheme block_keys;   ///< Keys of the precise index.
  KvIngestOptions kv_ingest;   ///< Meaningful when signals.kv_events.
  ApproxSettings approx;       ///< Meaningful when signals.approx_hashes.
  /// The plugins of the document in its order, then the data producers that they need and the
  /// document does not declare.
  std::vector<PluginSpec> plugins;
};

}  // namespace routesim::policies
