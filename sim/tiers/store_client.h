// An engine core's side of a store of KV chunks that all servers read and write.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/tiers/chunk_pool.h"
#include "sim/tiers/kv_tiers.h"

namespace routesim::sim {

/// Mooncake's store as an engine uses it. The store answers lookups at once; a request that hits
/// waits outside the running list while its blocks come over the network into GPU memory. When a
/// step has ended, the prompt blocks it computed go out, except those that the store has: every key
/// is there once. The GPU keeps them until they are out. Who looks a block up makes it young; the
/// least recently used make room.
///
/// A load whose source is lost fails when it has ended: what it has in front of the first lost
/// chunk counts, or the request fails.
///
/// Sources: vLLM v0.27.1 kv_connector/v1/mooncake/store/scheduler.py (get_num_new_matched_tokens,
/// build_connector_meta) and worker.py (KVCacheStoreSendingThread, KVCacheStoreRecvingThread),
/// v0.33.0 likewise. Left out: the time of a lookup; the master's leases; a put takes its place
/// when it is over, not when it begins, and never in a part that is lost; the servers whose memory
/// holds the store need no bandwidth for it.
class StoreClient final : public KvTiers {
 public:
  /// Everything outlives this.
  StoreClient(const TierRules& rules, std::int64_t block_size, SequenceTable& sequences,
              ChunkPool& store)
      : KvTiers(rules, block_size, sequences), store_(store) {}
  ~StoreClient() override;

  TierFound lookup(Sequence& q, Keys keys, std::int64_t hit) override;
  std::int64_t held_blocks(Keys keys, std::int64_t hit) const override;
  Duration load(SequenceSlot s, Keys keys, std::int64_t hit, std::int64_t window_first) override;
  bool store(SequenceSlot s, Keys keys, std::int64_t blocks) override;
  std::int64_t close_pass() override;
  void end_step(std::int64_t step) override;
  std::optional<std::uint32_t> landed(std::uint32_t copy) override;
  void lose_sources() override;
  void copy_done(std::uint32_t copy, std::vector<SequenceSlot>& ready) override;
  bool idle() const override { return open_ == 0; }
  const ChunkPool* shared() const override { return &store_; }
  std::int64_t chunks() const override { return store_.size(); }
  std::int64_t capacity() const override { return store_.capacity(); }
  void verify() const override { store_.verify(); }

 private:
  struct Copy {
    SequenceSlot slot = 0;
    std::uint64_t owner = 0;       ///< TierProgress::id; another one has the slot since.
    std::vector<BlockKey> chunks;  ///< Of a load: that it keeps.
    bool load = false;
    bool landed = false;
    std::int64_t first = 0, end = 0;  ///< Of a load: in chunks from the sequence's start.
    std::int64_t readable = 0;        ///< Likewise: where it ends because one is lost.
  };
  struct Step {
    std::vector<Copy> puts;
    bool open = false;
  };
  Copy& start(Copy copy);
  void cut(Copy& load);
  void shorten(Sequence& q, std::int64_t chunks);
  bool there(const Copy& copy) const { return sequences_[copy.slot].tier.id == copy.owner; }

  ChunkPool& store_;
  std::vector<Copy> copies_;  ///< By id.
  std::vector<std::uint32_t> unused_;
  std::int64_t open_ = 0;
  std::vector<Copy> pass_;   ///< What this pass stores.
  std::vector<Step> steps_;  ///< Two at most are under way.
};

}  // namespace routesim::sim
