// The text-to-token cache of older precise indexers (prefixStoreConfig): meant to save tokenizer
// work, but it decides what is looked up. A prompt whose text is known up to a share of
// `minPrefixOverlapRatio` is not tokenised again, and only the known part is asked for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <mutex>
#include <span>
#include <unordered_map>

#include "policies/index/block_keys.h"

namespace routesim::policies {

/// Which chunks of text a router has tokenised before, on the grid of KV blocks: the key of a block
/// stands for the text up to its end, so a chunk is known by the first key that covers it.
class KnownText {
 public:
  struct Options {
    std::int64_t chunk_bytes = 256;       ///< prefixStoreConfig.blockSize.
    std::int64_t cache_chunks = 500'000;  ///< prefixStoreConfig.cacheSize; the oldest go first.
    double overlap_ratio = 0.8;           ///< tokenizersPoolConfig.minPrefixOverlapRatio.
    std::int64_t block_tokens = 16;       ///< Tokens per key.
  };
  /// How long a prompt is. Its tokens are taken to be of equal length.
  struct Length {
    std::int64_t tokens = 0;
    std::int64_t bytes = 0;  ///< Not positive: four per token.
  };
  explicit KnownText(const Options& options)
      : options_(options),
        capacity_(static_cast<std::size_t>(std::max<std::int64_t>(1, options.cache_chunks))) {
    options_.chunk_bytes = std::max<std::int64_t>(1, options.chunk_bytes);
    options_.block_tokens = std::max<std::int64_t>(1, options.block_tokens);
  }

  /// How many of a prompt's keys are looked up: those within the known chunks when these cover the
  /// ratio of the text, else all, and its whole chunks are remembered. Thread-safe.
  std::size_t tokenized(std::span<const BlockKey> keys, const Length& length, bool dry_run) {
    constexpr std::int64_t kBytesPerToken = 4;
    Length text = length;
    text.tokens = std::max<std::int64_t>(1, text.tokens);
    if (text.bytes <= 0) text.bytes = kBytesPerToken * text.tokens;
    const std::lock_guard lock(mutex_);
    const std::int64_t chunks = text.bytes / options_.chunk_bytes;
    std::int64_t whole = 0;
    std::size_t last = 0;
    for (; whole < chunks; ++whole) {
      const std::size_t end = covering(whole + 1, text);
      if (end > keys.size()) break;
      if (end == last) continue;
      const auto found = known_.find(keys[end - 1]);
      if (found == known_.end()) break;
      if (!dry_run) recent_.splice(recent_.begin(), recent_, found->second);
      last = end;
    }
    const auto known = static_cast<double>(whole * options_.chunk_bytes);
    if (whole > 0 && known >= options_.overlap_ratio * static_cast<double>(text.bytes))
      return std::min(static_cast<std::size_t>(tokens_of(whole, text) / options_.block_tokens),
                      keys.size());
    if (!dry_run) remember(keys, text);
    return keys.size();
  }

 private:
  void remember(std::span<const BlockKey> keys, const Length& length) {
    const std::int64_t chunks = length.bytes / options_.chunk_bytes;
    for (std::int64_t whole = 1; whole <= chunks; ++whole) {
      const std::size_t end = covering(whole, length);
      if (end > keys.size()) return;
      const BlockKey key = keys[end - 1];
      if (known_.contains(key)) continue;
      recent_.push_front(key);
      known_.emplace(key, recent_.begin());
      if (known_.size() > capacity_) {
        known_.erase(recent_.back());
        recent_.pop_back();
      }
    }
  }
  // To the nearest, because the bytes of a prompt are whole: prompts of any length must find the
  // same end for the same chunk.
  std::int64_t tokens_of(std::int64_t chunks, const Length& length) const {
    return (chunks * options_.chunk_bytes * length.tokens + length.bytes / 2) / length.bytes;
  }
  /// The number of keys that cover so many chunks.
  std::size_t covering(std::int64_t chunks, const Length& length) const {
    return static_cast<std::size_t>((tokens_of(chunks, length) + options_.block_tokens - 1) /
                                    options_.block_tokens);
  }

  Options options_;
  std::size_t capacity_ = 1;  ///< Keys.
  std::mutex mutex_;
  std::list<BlockKey> recent_;  ///< Ends of known chunks, most recently used first.
  std::unordered_map<BlockKey, std::list<BlockKey>::iterator> known_;
};

}  // namespace routesim::policies
