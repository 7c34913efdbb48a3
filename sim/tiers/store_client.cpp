#include "sim/tiers/store_client.h"

#include <algorithm>
#include <utility>

namespace routesim::sim {

StoreClient::~StoreClient() {
  for (const Copy& c : copies_)
    if (c.load) store_.release(c.chunks);
}

TierFound StoreClient::lookup(Sequence& q, Keys keys, std::int64_t hit) {
  std::int64_t found = store_.look_up(chunk_keys(keys));
  // The engine computes the last block of a prompt that is all there again.
  const std::int64_t chunk = chunk_tokens();
  if (found * chunk == q.target) --found;
  q.tier.hit = found;
  q.tier.stored = 0;
  if (found * rules_.chunk_blocks <= hit) return {};
  return {.blocks = found * rules_.chunk_blocks - hit, .tokens = found * chunk};
}

std::int64_t StoreClient::held_blocks(Keys keys, std::int64_t hit) const {
  std::vector<BlockKey> scratch;
  return std::max(hit, store_.leading(chunk_keys(keys, scratch)) * rules_.chunk_blocks);
}

StoreClient::Copy& StoreClient::start(Copy copy) {
  std::uint32_t id = static_cast<std::uint32_t>(copies_.size());
  if (unused_.empty()) {
    copies_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  to_start_.push_back(
      {.id = id,
       .direction = copy.load ? TierCopy::Direction::kToGpu : TierCopy::Direction::kToHost,
       .bytes = static_cast<double>(copy.chunks.size()) * chunk_bytes()});
  ++open_;
  return copies_[id] = std::move(copy);
}

// Chunks from the first lost one on never come.
void StoreClient::cut(Copy& load) {
  const std::int64_t n = store_.readable(load.chunks);
  if (n == std::ssize(load.chunks)) return;
  if (!load.landed) load.readable = load.first + n;
  store_.release(load.chunks);
  load.chunks.clear();
}

void StoreClient::lose_sources() {
  for (Copy& c : copies_)
    if (c.load) cut(c);
}

// Only so many chunks of what a sequence has and loads are there (vLLM v0.27.1 v1/core/sched/
// scheduler.py, _handle_invalid_blocks). Hits that were counted are none.
void StoreClient::shorten(Sequence& q, std::int64_t chunks) {
  q.tier.loading_tokens = std::max(chunks * chunk_tokens(), q.registered * block_size_);
  const std::int64_t in_gpu = q.cached - q.tier.hit_tokens;
  const std::int64_t lost = q.cached - std::max(in_gpu, std::min(q.cached, q.tier.loading_tokens));
  q.cached -= lost;
  q.tier.hit_tokens -= lost;
  counters_.hit_tokens -= lost;
}

Duration StoreClient::load(SequenceSlot s, Keys keys, std::int64_t hit,
                           std::int64_t /*window_first*/) {
  const Sequence& q = sequences_[s];
  const Keys chunks = chunk_keys(keys);
  const std::int64_t first = hit / rules_.chunk_blocks;
  const Keys loaded =
      chunks.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(q.tier.hit - first));
  store_.keep(loaded);
  ++counters_.loads;
  cut(start({.slot = s,
             .owner = q.tier.id,
             .chunks = {loaded.begin(), loaded.end()},
             .load = true,
             .first = first,
             .end = q.tier.hit,
             .readable = q.tier.hit}));
  return Duration::zero();
}

bool StoreClient::store(SequenceSlot s, Keys keys, std::int64_t blocks) {
  Sequence& q = sequences_[s];
  const std::int64_t end = blocks / rules_.chunk_blocks;
  const std::int64_t n = end - q.tier.stored;
  if (n <= 0) return true;
  const Keys chunks = chunk_keys(keys);
  const Keys stored =
      chunks.subspan(static_cast<std::size_t>(q.tier.stored), static_cast<std::size_t>(n));
  pass_.push_back({.slot = s, .owner = q.tier.id, .chunks = {stored.begin(), stored.end()}});
  q.tier.stored = end;
  ++q.tier.storing;
  return true;
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

void StoreClient::end_step(std::int64_t number) {
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
      start(std::move(put));
    } else if (there(put)) {
      --sequences_[put.slot].tier.storing;
    }
  }
  step.puts.clear();
  step.open = false;
}

// Others find what was put from now on. What finds no room is lost.
std::optional<std::uint32_t> StoreClient::landed(std::uint32_t id) {
  Copy& copy = copies_[id];
  copy.landed = true;
  if (copy.load) {
    counters_.loaded_bytes += static_cast<double>(copy.readable - copy.first) * chunk_bytes();
    if (copy.readable == copy.end || !there(copy)) return std::nullopt;
    shorten(sequences_[copy.slot], copy.readable);
    return sequences_[copy.slot].request.handle;
  }
  const std::int64_t evictions = store_.evictions();
  const std::int64_t before = store_.size() + evictions;
  const auto lost = std::find_if_not(copy.chunks.begin(), copy.chunks.end(),
                                     [this](BlockKey key) { return store_.insert(key); });
  if (lost != copy.chunks.end()) ++counters_.refused_stores;
  counters_.stored_bytes += static_cast<double>(copy.chunks.size()) * chunk_bytes();
  counters_.stored_chunks += store_.size() + store_.evictions() - before;
  counters_.evicted_chunks += store_.evictions() - evictions;
  copy.chunks.erase(lost, copy.chunks.end());
  return std::nullopt;
}

void StoreClient::copy_done(std::uint32_t id, std::vector<SequenceSlot>& ready) {
  if (!copies_[id].landed) landed(id);
  const Copy copy = std::exchange(copies_[id], {});
  unused_.push_back(id);
  --open_;
  if (copy.load) {
    store_.release(copy.chunks);
    if (there(copy)) ready.push_back(copy.slot);
    return;
  }
  if (sink_ != nullptr && !copy.chunks.empty()) sink_->stored_in_tier(copy.chunks);
  if (!there(copy)) return;
  const TierProgress& progress = sequences_[copy.slot].tier;
  if (--sequences_[copy.slot].tier.storing == 0 && progress.settles) ready.push_back(copy.slot);
}

}  // namespace routesim::sim
