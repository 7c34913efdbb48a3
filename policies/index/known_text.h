// The text-to-token cache of older precise indexers (prefixStoreConfig): meant to save tokenizer
// work, but it decides what is looked up. A prompt whose text is known up to a share of
// `minPrefixOverlapRatio` is not tokenised again, and only the known part is asked for.
#pragma once

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
  explicit KnownText(const Options& options);

  /// How many of a prompt's keys are looked up: those within the known chunks when these cover the
  /// ratio of the text, otherwise all, and its whole chunks are remembered (unless `dry_run`).
  /// Thread-safe.
  std::size_t tokenized(std::span<const BlockKey> keys, const Length& length, bool dry_run);

 private:
  void remember(std::span<const BlockKey> keys, const Length& length);
  std::int64_t tokens_of(std::int64_t chunks, const Length& length) const;
  std::size_t covering(std::int64_t chunks, const Length& length) const;

  Options options_;
  std::size_t capacity_ = 1;  ///< Keys.
  std::mutex mutex_;
  std::list<BlockKey> recent_;  ///< Ends of known chunks, most recently used first.
  std::unordered_map<BlockKey, std::list<BlockKey>::iterator> known_;
};

}  // namespace routesim::policies
