// KV events of one engine core on their way to the router: batched per step, visible after a delay.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/units.h"
#include "sim/engine/earliest.h"
#include "sim/kv/sequence_blocks.h"
#include "sim/tiers/kv_tiers.h"

namespace routesim::sim {

/// Collects a step's events and releases them, in order, when their delay is over. Keys that a
/// stored event implies for the router are computed when the event is written, because the request
/// may be gone when it is read.
class KvEventLog final : public BlockEventSink, public TierEventSink {
 public:
  struct Batch {
    SimTime visible;
    std::size_t end = 0;       ///< One past its last word.
    std::uint64_t number = 0;  ///< Of its engine's batches, from 0.
    bool lost = false;
  };
  /// Receives events in order.
  class Reader {
   public:
    virtual ~Reader() = default;
    virtual void on_stored(std::span<const BlockKey> engine_keys,
                           std::span<const std::uint64_t> request_keys) = 0;
    virtual void on_removed(std::span<const BlockKey> engine_keys) = 0;
    /// The same for the tier in host memory; the events carry no tokens.
    virtual void on_stored_in_tier(std::span<const BlockKey> engine_keys) = 0;
    virtual void on_removed_from_tier(std::span<const BlockKey> engine_keys) = 0;
  };

  /// `keys` is null where the engine's keys are the router's: readers then get the same span twice.
  /// `block_size`: of the engine, tokens.
  KvEventLog(SequenceKeySource* keys, std::int64_t block_size)
      : keys_(keys), block_size_(block_size) {}

  void stored(std::uint32_t handle, std::int64_t first_block,
              std::span<const BlockKey> keys) override;
  void removed(std::span<const BlockKey> keys) override;
  void stored_in_tier(std::span<const BlockKey> keys) override;
  void removed_from_tier(std::span<const BlockKey> keys) override;

  /// Somebody asks for what was lost.
  void keep_lost() { keeps_lost_ = true; }
  /// Publishes what was collected since the last flush as one batch, visible at `visible`; dropped
  /// instead when `lost`.
  void flush(SimTime visible, bool lost);
  /// The engine is gone: what it has collected since the last flush is never published. The next
  /// one counts its batches from 0.
  void restart();
  /// When the oldest unread batch becomes visible; SimTime::max() if there is none.
  SimTime next_visible() const {
    return batches_.empty() ? SimTime::max() : batches_.front().visible;
  }
  /// Keeps time number `i` of `visible` at next_visible(), for somebody who watches many logs.
  void mirror_next_visible(Earliest& visible, std::size_t i) {
    mirror_ = &visible;
    number_ = i;
  }
  /// True when something was collected and not yet flushed.
  bool pending() const { return open_begin_ != words_.size(); }
  /// Hands every batch visible at `now` to `f`, with its words. Lost ones come only from a log that
  /// keeps them.
  template <class F>
  void read_batches(SimTime now, F f) {
    for (; !batches_.empty() && batches_.front().visible <= now; batches_.pop_front()) {
      const Batch& batch = batches_.front();
      f(batch, std::span<const std::uint64_t>(words_).subspan(read_, batch.end - read_));
      read_ = batch.end;
    }
    reclaim();
  }
  /// Hands their events to `reader`.
  void read_until(SimTime now, Reader& reader) {
    read_batches(now, [&reader](const Batch&, auto words) { read(words, reader); });
  }
  /// Hands the events in the words of a batch to `reader`.
  static void read(std::span<const std::uint64_t> words, Reader& reader);

 private:
  void reclaim();

  SequenceKeySource* keys_;
  std::int64_t block_size_;
  Earliest* mirror_ = nullptr;
  std::size_t number_ = 0;
  // Events as words: header (kind bits, counts), engine keys, request keys.
  std::vector<std::uint64_t> words_;
  std::size_t read_ = 0;          ///< First unread word.
  std::size_t open_begin_ = 0;    ///< First word not yet flushed.
  std::size_t last_removed_ = 0;  ///< Header of an open removal that can still grow, + 1.
  std::deque<Batch> batches_;
  std::uint64_t next_number_ = 0;
  bool keeps_lost_ = false;
  std::vector<std::uint64_t> request_keys_;
};

}  // namespace routesim::sim
