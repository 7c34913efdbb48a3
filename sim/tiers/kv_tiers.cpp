#include "sim/tiers/kv_tiers.h"

#include "base/check.h"
#include "sim/tiers/offload_tier.h"
#include "sim/tiers/store_client.h"
#include "sim/tiers/worker_cache.h"

namespace routesim::sim {

std::span<const BlockKey> KvTiers::chunk_keys(std::span<const BlockKey> keys,
                                              std::vector<BlockKey>& scratch) const {
  if (rules_.chunk_blocks == 1) return keys;
  scratch.clear();
  const auto step = static_cast<std::size_t>(rules_.chunk_blocks);
  for (std::size_t i = step; i <= keys.size(); i += step) scratch.push_back(keys[i - 1]);
  return scratch;
}

void KvTiers::store_answer(SequenceSlot s, std::span<const BlockKey> keys, std::int64_t blocks) {
  if (rules_.prompt_only) return;
  store(s, keys, blocks);
  if (const std::int64_t copy = close_pass(); copy >= 0) end_step(copy);
}

std::unique_ptr<KvTiers> make_kv_tiers(const EngineRules& rules, SequenceTable& sequences,
                                       ChunkPool* store) {
  if (!rules.tiers.in_use()) return nullptr;
  if (rules.tiers.copies_in_steps)
    return std::make_unique<WorkerCache>(rules.tiers, rules.block_size, sequences);
  if (!rules.tiers.shared_store) return std::make_unique<OffloadTier>(rules, sequences);
  ROUTESIM_CHECK(store != nullptr, "an engine has no store to share");
  return std::make_unique<StoreClient>(rules.tiers, rules.block_size, sequences, *store);
}

}  // namespace routesim::sim
