#include "sim/tiers/store_client.h"

#include <algorithm>
#include <utility>

namespace routesim::sim {

StoreClient::StoreClient(const TierRules& rules, std::int64_t block_size, TierCounters& counters,
                         SequenceTable& sequences, ChunkPool& store)
    : rules_(rules),
      block_size_(block_size),
      chunk_bytes_(static_cast<double>(rules.chunk_blocks) * rules.block_bytes),
      counters_(counters),
      sequences_(sequences),
      store_(store) {
  store_.add_user();
}

TierFound StoreClient::lookup(Sequence& q, Chunks chunks, std::int64_t hit) {
  std::int64_t found = store_.look_up(chunks);
  // The engine computes the last block of a prompt that is all there again.
  const std::int64_t chunk = rules_.chunk_blocks * block_size_;
  if (found * chunk == q.target) --found;
  q.tier.hit = found;
  q.tier.stored = 0;
  if (found * rules_.chunk_blocks <= hit) return {};
  return {.blocks = found * rules_.chunk_blocks - hit, .tokens = found * chunk};
}

void StoreClient::start(Copy copy, std::vector<TierCopy>& to_start) {
  std::uint32_t id = static_cast<std::uint32_t>(copies_.size());
  if (unused_.empty()) {
    copies_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  to_start.push_back(
      {.id = id,
       .direction = copy.load ? TierCopy::Direction::kToGpu : TierCopy::Direction::kToHost,
       .bytes = static_cast<double>(copy.chunks.size()) * chunk_bytes_});
  copies_[id] = std::move(copy);
  ++open_;
}

Duration StoreClient::load(SequenceSlot s, Chunks chunks, std::int64_t hit,
                           std::vector<TierCopy>& to_start) {
  const Sequence& q = sequences_[s];
  const std::int64_t first = hit / rules_.chunk_blocks;
  const Chunks loaded =
      chunks.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(q.tier.hit - first));
  store_.keep(loaded);
  ++counters_.loads;
  counters_.loaded_bytes += static_cast<double>(loaded.size()) * chunk_bytes_;
  start({.slot = s, .owner = q.tier.id, .chunks = {loaded.begin(), loaded.end()}, .load = true},
        to_start);
  return Duration::zero();
}

void StoreClient::store(SequenceSlot s, Chunks chunks, std::int64_t end) {
  Sequence& q = sequences_[s];
  const std::int64_t n = end - q.tier.stored;
  if (n <= 0) return;
  const Chunks stored =
      chunks.subspan(static_cast<std::size_t>(q.tier.stored), static_cast<std::size_t>(n));
  pass_.push_back({.slot = s, .owner = q.tier.id, .chunks = {stored.begin(), stored.end()}});
  q.tier.stored = end;
  ++q.tier.storing;
}

std::int64_t StoreClient::close_pass() {
  if (pass_.empty()) return -1;
  const auto unused =
      std::find_if(steps_.begin(), steps_.end(), [](const Step& step) { return !step.open; });
  const std::int64_t number = unused - steps_.begin();
  Step& step = unused == steps_.end() ? steps_.emplace_back() : *unused;
  step.puts = std::exchange(pass_, {});
  step.open = true;
  return number;
}

void StoreClient::end_step(std::int64_t number, TierEventSink* /*sink*/,
                           std::vector<TierCopy>& to_start) {
  Step& step = steps_[static_cast<std::size_t>(number)];
  for (Copy& put : step.puts) {
    // A request that was preempted computes what is still on its way again.
    const auto goes = [&](BlockKey key) {
      return std::any_of(copies_.begin(), copies_.end(), [&](const Copy& c) {
        return !c.load && c.owner == put.owner &&
               std::find(c.chunks.begin(), c.chunks.end(), key) != c.chunks.end();
      });
    };
    std::erase_if(put.chunks, [&](BlockKey key) { return store_.contains(key) || goes(key); });
    if (!put.chunks.empty()) {
      start(std::move(put), to_start);
    } else if (there(put)) {
      --sequences_[put.slot].tier.storing;
    }
  }
  step.puts.clear();
  step.open = false;
}

// Others find what was put from now on. What finds no room is lost.
void StoreClient::landed(std::uint32_t id) {
  Copy& copy = copies_[id];
  copy.landed = true;
  if (copy.load) return;
  const std::int64_t evictions = store_.evictions();
  const std::int64_t before = store_.size() + evictions;
  const auto lost = std::find_if_not(copy.chunks.begin(), copy.chunks.end(),
                                     [this](BlockKey key) { return store_.insert(key); });
  if (lost != copy.chunks.end()) ++counters_.refused_stores;
  counters_.stored_bytes += static_cast<double>(copy.chunks.size()) * chunk_bytes_;
  counters_.stored_chunks += store_.size() + store_.evictions() - before;
  counters_.evicted_chunks += store_.evictions() - evictions;
  copy.chunks.erase(lost, copy.chunks.end());
}

void StoreClient::copy_done(std::uint32_t id, TierEventSink* sink,
                            std::vector<SequenceSlot>& ready) {
  if (!copies_[id].landed) landed(id);
  const Copy copy = std::exchange(copies_[id], {});
  unused_.push_back(id);
  --open_;
  if (copy.load) {
    store_.release(copy.chunks);
    if (there(copy)) ready.push_back(copy.slot);
    return;
  }
  if (sink != nullptr && !copy.chunks.empty()) sink->stored_in_tier(copy.chunks);
  if (!there(copy)) return;
  const TierProgress& progress = sequences_[copy.slot].tier;
  if (--sequences_[copy.slot].tier.storing == 0 && progress.settles) ready.push_back(copy.slot);
}

}  // namespace routesim::sim
