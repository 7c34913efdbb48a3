#include "sim/tiers/offload_tier.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace routesim::sim {

OffloadTier::OffloadTier(const EngineRules& rules, SequenceTable& sequences)
    : KvTiers(rules.tiers, rules.block_size, sequences),
      groups_(rules.window_groups),
      chunks_(rules),
      pulls_(*this, chunks_, sequences) {}

TierFound OffloadTier::lookup(Sequence& q, Keys keys, std::int64_t hit) {
  // A preempted request may still be stored.
  if (q.tier.storing > 0 && !rules_.settles_at_request_end) return {.wait = true};
  if (asked_.owner == q.tier.id && asked_.hit == hit && asked_.tokens == q.target &&
      asked_.changes == chunks_.changes())
    return asked_.found;
  const Keys chunks = chunk_keys(keys);
  const std::int64_t chunk = chunk_tokens();
  const std::int64_t computed = hit * block_size_;
  chunks_.scan(chunks);
  std::optional<std::int64_t> more = chunks_.find_tokens(chunks, computed, q.target);
  const std::int64_t first = computed / chunk;
  const std::int64_t end = (computed + more.value_or(0) + chunk - 1) / chunk;
  if (more.value_or(0) > 0 && chunks_.being_read(chunks, first, end)) more.reset();
  TierFound found{.wait = !more};
  if (more.value_or(0) > 0)
    found = {.blocks = end * rules_.chunk_blocks - hit, .tokens = computed + *more};
  q.tier.hit = (computed + more.value_or(0)) / chunk;
  chunks_.touch(chunks, q.tier.hit);
  asked_ = {.owner = q.tier.id,
            .hit = hit,
            .tokens = q.target,
            .found = found,
            .first = first,
            .end = end,
            .changes = chunks_.changes(),
            .scan = chunks_.scans()};
  return found;
}

std::int64_t OffloadTier::held_blocks(Keys keys, std::int64_t hit) const {
  std::vector<BlockKey> scratch;
  const Keys chunks = chunk_keys(keys, scratch);
  const std::int64_t first = hit / rules_.chunk_blocks;
  if (first >= std::ssize(chunks)) return hit;
  return std::max(hit, chunks_.held_until(chunks, first) * rules_.chunk_blocks);
}

std::uint32_t OffloadTier::open_copy(TierCopy::Direction direction) {
  auto id = static_cast<std::uint32_t>(copies_.size());
  if (unused_.empty()) {
    copies_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  copies_[id].direction = direction;
  ++open_;
  chunks_.note_change();
  return id;
}

OffloadTier::Part& OffloadTier::add_part(Copy& copy, SequenceSlot s) {
  return copy.parts.emplace_back(Part{.slot = s, .owner = sequences_[s].tier.id, .chunks = {}});
}

void OffloadTier::start(std::int64_t id) {
  const Copy& copy = copies_[static_cast<std::size_t>(id)];
  to_start_.push_back(
      {.id = static_cast<std::uint32_t>(id), .direction = copy.direction, .bytes = copy.bytes});
}

Duration OffloadTier::load(SequenceSlot s, Keys keys, std::int64_t hit, std::int64_t window_first) {
  const Keys chunks = chunk_keys(keys);
  const std::int64_t end = asked_.end;
  const bool scanned = asked_.scan == chunks_.scans();
  const std::uint32_t id = open_copy(TierCopy::Direction::kToGpu);
  Copy& copy = copies_[id];
  if (!scanned) chunks_.scan(chunks.first(static_cast<std::size_t>(end)));
  Part& part = add_part(copy, s);
  chunks_.take(chunks, asked_.first, end, window_first / rules_.chunk_blocks, part.chunks);
  chunks_.begin_read(part.chunks);
  const std::int64_t last = end * rules_.chunk_blocks;
  const std::int64_t blocks = last - hit + groups_ * (last - window_first);
  copy.bytes = static_cast<double>(blocks) * rules_.block_bytes;
  sequences_[s].tier.stored = end;
  ++counters_.loads;
  counters_.loaded_bytes += copy.bytes;
  start(id);
  return Duration::zero();
}

// A group with a window has blocks from Sequence::window_first on only; of the answer it had all of
// them, one after the other.
std::int64_t OffloadTier::first_window_chunk(const Sequence& q) const {
  const std::int64_t answer = q.request.prompt_tokens / chunk_tokens();
  return std::max(q.tier.stored, std::min(answer, q.window_first / rules_.chunk_blocks));
}

bool OffloadTier::store(SequenceSlot s, Keys keys, std::int64_t blocks) {
  Sequence& q = sequences_[s];
  const std::int64_t end = blocks / rules_.chunk_blocks;
  if (end <= q.tier.stored) return true;
  const Keys all = chunk_keys(keys);
  const Keys chunks = all.first(static_cast<std::size_t>(std::min(end, std::ssize(all))));
  chunks_.scan(chunks);
  const std::int64_t need = chunks_.find_missing(chunks, q.tier.stored, end, first_window_chunk(q));
  if (need == 0) {
    q.tier.stored = end;
    return true;
  }
  if (!chunks_.has_room(need)) {
    ++counters_.refused_stores;
    return false;
  }
  if (pass_copy_ < 0) pass_copy_ = open_copy(TierCopy::Direction::kToHost);
  Copy& copy = copies_[static_cast<std::size_t>(pass_copy_)];
  const std::int64_t evictions = chunks_.evictions();
  chunks_.write_missing(chunks, add_part(copy, s).chunks);
  q.tier.stored = end;
  ++q.tier.storing;
  const double bytes = static_cast<double>(need * rules_.chunk_blocks) * rules_.block_bytes;
  copy.bytes += bytes;
  counters_.stored_chunks += need;
  counters_.stored_bytes += bytes;
  counters_.evicted_chunks += chunks_.evictions() - evictions;
  // Until v0.20 vLLM touches what is stored or was, since then all the request's chunks. New chunks
  // have a copy and are not touched.
  chunks_.touch(rules_.settles_at_request_end ? chunks : all, q.tier.hit);
  return true;
}

std::int64_t OffloadTier::close_pass() { return std::exchange(pass_copy_, -1); }

void OffloadTier::end_step(std::int64_t step) { start(step); }

void OffloadTier::copy_done(std::uint32_t id, std::vector<SequenceSlot>& ready) {
  chunks_.note_change();
  Copy& copy = copies_[id];
  const bool load = copy.direction == TierCopy::Direction::kToGpu;
  for (Part& part : copy.parts) {
    Sequence& q = sequences_[part.slot];
    const bool there = q.tier.id == part.owner;
    if (there && !load) --q.tier.storing;
    if (there && (load || (q.tier.settles && q.tier.storing == 0))) ready.push_back(part.slot);
    if (load)
      chunks_.end_read(part.chunks);
    else if (there && rules_.settles_at_request_end && !q.tier.settles)
      std::move(part.chunks.begin(), part.chunks.end(), std::back_inserter(q.tier.unsettled));
    else if (rules_.disk.in_use())
      pulls_.write_to_disk(std::move(part.chunks));
    else
      chunks_.make_readable(part.chunks);
  }
  copy = {};
  unused_.push_back(id);
  --open_;
}

void OffloadTier::settle(Sequence& q) {
  if (q.tier.unsettled.empty()) return;
  chunks_.note_change();
  chunks_.make_readable(q.tier.unsettled);
  q.tier.unsettled.clear();
}

// Chunks behind those that the last lookup found.
bool OffloadTier::pull(SequenceSlot s, Keys keys, SimTime now) {
  return pulls_.wait(s, chunk_keys(keys), asked_.found.blocks > 0 ? asked_.end : asked_.first, now);
}

void OffloadTier::verify() const {
  std::vector<const BlockHolding*> holdings;
  for (const Copy& copy : copies_)
    for (const Part& part : copy.parts)
      for (const BlockHolding& chunks : part.chunks) holdings.push_back(&chunks);
  pulls_.add_holdings(holdings);
  for (const Sequence& q : sequences_.all())
    for (const BlockHolding& chunks : q.tier.unsettled) holdings.push_back(&chunks);
  chunks_.verify(holdings);
}

}  // namespace routesim::sim
