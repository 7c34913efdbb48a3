#include "policies/index/known_text.h"

#include <algorithm>

namespace routesim::policies {

namespace {

constexpr std::int64_t kBytesPerToken = 4;

KnownText::Length complete(KnownText::Length length) {
  length.tokens = std::max<std::int64_t>(1, length.tokens);
  if (length.bytes <= 0) length.bytes = kBytesPerToken * length.tokens;
  return length;
}

}  // namespace

KnownText::KnownText(const Options& options)
    : options_(options),
      capacity_(static_cast<std::size_t>(std::max<std::int64_t>(1, options.cache_chunks))) {
  options_.chunk_bytes = std::max<std::int64_t>(1, options.chunk_bytes);
  options_.block_tokens = std::max<std::int64_t>(1, options.block_tokens);
}

// To the nearest, because the bytes of a prompt are whole: prompts of any length must find the same
// end for the same chunk.
std::int64_t KnownText::tokens_of(std::int64_t chunks, const Length& length) const {
  return (chunks * options_.chunk_bytes * length.tokens + length.bytes / 2) / length.bytes;
}

/// The number of keys that cover so many chunks.
std::size_t KnownText::covering(std::int64_t chunks, const Length& length) const {
  return static_cast<std::size_t>((tokens_of(chunks, length) + options_.block_tokens - 1) /
                                  options_.block_tokens);
}

std::size_t KnownText::tokenized(std::span<const BlockKey> keys, const Length& length,
                                 bool dry_run) {
  const Length text = complete(length);
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

void KnownText::remember(std::span<const BlockKey> keys, const Length& length) {
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

}  // namespace routesim::policies
