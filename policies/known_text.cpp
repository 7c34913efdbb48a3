#include "policies/known_text.h"

#include <algorithm>

namespace routesim::policies {

namespace {

constexpr std::int64_t kBytesPerToken = 4;

}  // namespace

KnownText::KnownText(const Options& options)
    : options_(options),
      stride_(static_cast<std::size_t>(std::max<std::int64_t>(
          1, options.chunk_bytes /
                 (kBytesPerToken * std::max<std::int64_t>(1, options.block_tokens))))),
      capacity_(static_cast<std::size_t>(std::max<std::int64_t>(1, options.cache_chunks))) {}

std::size_t KnownText::tokenized(std::span<const BlockKey> keys, std::int64_t prompt_tokens,
                                 bool dry_run) {
  const std::lock_guard lock(mutex_);
  std::size_t end = 0;
  while (end + stride_ <= keys.size()) {
    const auto found = known_.find(keys[end + stride_ - 1]);
    if (found == known_.end()) break;
    if (!dry_run) recent_.splice(recent_.begin(), recent_, found->second);
    end += stride_;
  }
  const double known = static_cast<double>(static_cast<std::int64_t>(end) * options_.block_tokens);
  if (end > 0 && known >= options_.overlap_ratio * static_cast<double>(prompt_tokens)) return end;
  if (!dry_run) remember(keys);
  return keys.size();
}

void KnownText::remember(std::span<const BlockKey> keys) {
  for (std::size_t end = stride_; end <= keys.size(); end += stride_) {
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
