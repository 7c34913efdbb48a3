#include "sim/engine/kv_event_log.h"

namespace routesim::sim {

namespace {

constexpr std::uint64_t kStoredBit = std::uint64_t{1} << 63;
constexpr std::uint64_t kOneKeyBit = std::uint64_t{1} << 62;
constexpr std::uint64_t kTierBit = std::uint64_t{1} << 61;
constexpr std::uint64_t kCountMask = 0x7fffffff;

}  // namespace

// The parent of a chunk's first block is not announced: the sequence's blocks reach the router in
// order, so the router's chain is already known to the key source.
void KvEventLog::stored(std::uint32_t handle, std::int64_t first_block,
                        std::span<const BlockKey> keys) {
  last_removed_ = 0;
  if (keys_ == nullptr) {
    words_.push_back(kStoredBit | kOneKeyBit | keys.size());
    words_.insert(words_.end(), keys.begin(), keys.end());
    return;
  }
  request_keys_.clear();
  keys_->request_keys(handle, block_size_, first_block, std::ssize(keys), request_keys_);
  words_.push_back(kStoredBit | (static_cast<std::uint64_t>(request_keys_.size()) << 31) |
                   keys.size());
  words_.insert(words_.end(), keys.begin(), keys.end());
  words_.insert(words_.end(), request_keys_.begin(), request_keys_.end());
}

void KvEventLog::removed(std::span<const BlockKey> keys) {
  if (last_removed_ == 0) {
    words_.push_back(0);
    last_removed_ = words_.size();
  }
  words_[last_removed_ - 1] += keys.size();
  words_.insert(words_.end(), keys.rbegin(), keys.rend());
}

void KvEventLog::stored_in_tier(std::span<const BlockKey> keys) {
  last_removed_ = 0;
  words_.push_back(kTierBit | kStoredBit | keys.size());
  words_.insert(words_.end(), keys.begin(), keys.end());
}

void KvEventLog::removed_from_tier(std::span<const BlockKey> keys) {
  last_removed_ = 0;
  words_.push_back(kTierBit | keys.size());
  words_.insert(words_.end(), keys.rbegin(), keys.rend());
}

void KvEventLog::flush(SimTime visible, bool lost) {
  last_removed_ = 0;
  if (!pending()) return;
  if (lost && !keeps_lost_) {
    words_.resize(open_begin_);
    return;
  }
  open_begin_ = words_.size();
  batches_.push_back(
      {.visible = visible, .end = words_.size(), .number = next_number_++, .lost = lost});
  if (mirror_ != nullptr) mirror_->set(number_, next_visible());
}

void KvEventLog::restart() {
  last_removed_ = 0;
  words_.resize(open_begin_);
  next_number_ = 0;
}

void KvEventLog::read(std::span<const std::uint64_t> words, Reader& reader) {
  for (std::size_t at = 0; at < words.size();) {
    const std::uint64_t header = words[at++];
    const std::span<const std::uint64_t> engine = words.subspan(at, header & kCountMask);
    at += engine.size();
    if ((header & kTierBit) != 0) {
      if ((header & kStoredBit) != 0)
        reader.on_stored_in_tier(engine);
      else
        reader.on_removed_from_tier(engine);
    } else if ((header & kStoredBit) == 0) {
      reader.on_removed(engine);
    } else if ((header & kOneKeyBit) != 0) {
      reader.on_stored(engine, engine);
    } else {
      const auto requests = static_cast<std::size_t>((header & ~kStoredBit) >> 31);
      reader.on_stored(engine, words.subspan(at, requests));
      at += requests;
    }
  }
}

// Frees the read part once it dominates; batches are short, so this moves little.
void KvEventLog::reclaim() {
  if (mirror_ != nullptr) mirror_->set(number_, next_visible());
  if (batches_.empty() && read_ == open_begin_ && read_ > 0) {
    words_.erase(words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(read_));
    if (last_removed_ > 0) last_removed_ -= read_;
    open_begin_ = 0;
    read_ = 0;
  } else if (read_ > 65'536) {
    words_.erase(words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(read_));
    for (Batch& batch : batches_) batch.end -= read_;
    if (last_removed_ > 0) last_removed_ -= read_;
    open_begin_ -= read_;
    read_ = 0;
  }
}

}  // namespace routesim::sim
