#include "sim/kv/sequence_blocks.h"

#include <algorithm>

#include "base/check.h"

namespace routesim::sim {

SequenceBlocks::SequenceBlocks(const EngineRules& rules)
    : block_(rules.block_size),
      prefix_caching_(rules.enable_prefix_caching),
      drops_last_hit_(rules.speculation.drops_last_hit),
      names_answers_(rules.tiers.disk.in_use()),
      kv_(rules.num_gpu_blocks, rules.block_size, rules.free_queue),
      windows_(rules, kv_) {}

std::int64_t SequenceBlocks::find_prefix(Sequence& q, SequenceRef ref) {
  if (!prefix_caching_ || q.request.keys == nullptr) {
    hits_.clear();
    return 0;
  }
  if (found_version_ == kv_.version() && found_for_.slot == ref.slot &&
      found_for_.stamp == ref.stamp)
    return hits_.blocks;
  found_version_ = 0;
  look_up_prefix(q, ref);
  if (drops_last_hit_) hits_.drop_last();
  return hits_.blocks;
}

void SequenceBlocks::look_up_prefix(Sequence& q, SequenceRef ref) {
  // At least one token must be computed to sample from, so never the whole prompt.
  const std::int64_t limit = block_.quotient(q.target - 1);
  const std::span<const BlockKey> prompt = q.request.keys->engine;
  const std::int64_t prompt_blocks = std::ssize(prompt);
  if (limit <= prompt_blocks || q.request.private_answer) {
    const std::int64_t known = std::min(limit, prompt_blocks);
    kv_.lookup(prompt.first(static_cast<std::size_t>(known)), hits_);
    if (windows_.groups() > 0) {
      windows_.lookup(prompt, hits_);
    } else if (limit <= prompt_blocks) {
      found_for_ = ref;
      found_version_ = kv_.version();
    } else {
      append_given_up_blocks(q, prompt_blocks, limit);
    }
    return;
  }
  keys_.assign(prompt.begin(), prompt.end());
  for (auto b = static_cast<std::int64_t>(prompt.size()); b < limit; ++b)
    keys_.push_back(block_key(q, b, keys_.empty() ? 0 : keys_.back()));
  kv_.lookup(keys_, hits_);
  if (windows_.groups() > 0) windows_.lookup(keys_, hits_);
}

// A private block is in no table: the sequence remembers the runs that were its own, and vLLM would
// find what is left of them. That is always one stretch that starts behind the prompt, because
// - nobody else ever holds these blocks, so a preemption puts all of them into the free queue at
//   once, last block first and the prompt's behind them: evictions start at the end of the answer
//   and reach the prompt after it;
// - hits_ therefore holds all that is left, and what is computed anew continues it: the next run
//   starts where the hits ended.
void SequenceBlocks::append_given_up_blocks(Sequence& q, std::int64_t prompt_blocks,
                                            std::int64_t limit) {
  std::erase_if(q.given_up, [this](const PrivateRun& f) { return kv_.blocks_of(f.run) == 0; });
  ROUTESIM_CHECK(q.given_up.empty() || hits_.blocks == prompt_blocks,
                 "an answer's blocks outlived the prompt's");
  for (const PrivateRun& f : q.given_up) {
    ROUTESIM_CHECK(f.position == hits_.blocks, "an answer's blocks were evicted out of order");
    const std::int64_t n = kv_.blocks_of(f.run);
    hits_.pieces.push_back({.run = f.run.run, .blocks = static_cast<std::int32_t>(n)});
    hits_.blocks += n;
  }
  ROUTESIM_CHECK(hits_.blocks <= limit, "more of a sequence was cached than it has tokens");
}

std::int64_t SequenceBlocks::unreferenced_hits() const {
  const std::int64_t n = kv_.count_unreferenced(hits_);
  return hits_.blocks == 0 ? n : n + windows_.unreferenced_hits();
}

void SequenceBlocks::take(Sequence& q, std::int64_t hit, std::int64_t need) {
  if (hit > 0) {
    q.registered = hit;
    kv_.take_hits(hits_, q.holding);
    windows_.take_hits(q, hit);
  }
  kv_.allocate(need, q.holding);
  windows_.allocate(q, need);
}

void SequenceBlocks::take_for_load(Sequence& q, std::int64_t hit, std::int64_t need) {
  if (hit > 0) {
    q.registered = hit;
    kv_.take_hits(hits_, q.holding);
  }
  windows_.take_hits(q, hit, hit + need);
  kv_.allocate(need, q.holding);
  windows_.allocate(q, hit + need - windows_.first_loaded(hit, hit + need));
}

std::span<const BlockKey> SequenceBlocks::keys_of(const Sequence& q, std::int64_t blocks) {
  if (!prefix_caching_ || q.request.keys == nullptr) return {};
  const std::span<const BlockKey> prompt = q.request.keys->engine;
  const bool unknown = q.request.private_answer && q.preemptions == 0 && !names_answers_;
  if (blocks <= std::ssize(prompt) || unknown) return prompt;
  keys_.assign(prompt.begin(), prompt.end());
  while (std::ssize(keys_) < blocks)
    keys_.push_back(block_key(q, std::ssize(keys_), keys_.empty() ? 0 : keys_.back()));
  return keys_;
}

BlockKey SequenceBlocks::block_key(const Sequence& q, std::int64_t block, BlockKey previous) const {
  const EngineKeys& keys = *q.request.keys;
  const auto prompt_blocks = static_cast<std::int64_t>(keys.engine.size());
  if (block < prompt_blocks) return keys.engine[static_cast<std::size_t>(block)];
  if (answer_keys_ != nullptr) return answer_keys_->answer_key(q.request.handle, block);
  const std::int64_t size = block_.divisor();
  return block == prompt_blocks
             ? fold_piece(keys.tail_state, q.request.output_content, 0, size - keys.tail_tokens)
             : fold_piece(previous, q.request.output_content,
                          block * size - q.request.prompt_tokens, size);
}

bool SequenceBlocks::register_up_to(Sequence& q, std::int64_t tokens) {
  const std::int64_t full = block_.quotient(tokens);
  if (!prefix_caching_ || full <= q.registered) return false;
  const std::span<const BlockKey> prompt = q.request.keys->engine;
  const std::int64_t known = q.request.private_answer ? std::min(full, std::ssize(prompt)) : full;
  if (q.registered < known) {
    std::span<const BlockKey> keys = prompt;
    if (known > std::ssize(prompt)) {
      keys_.assign(prompt.begin() + std::min(q.registered, std::ssize(prompt)), prompt.end());
      BlockKey previous = q.registered > 0 ? kv_.last_key(q.holding) : 0;
      for (std::int64_t b = q.registered + std::ssize(keys_); b < known; ++b)
        keys_.push_back(previous = block_key(q, b, previous));
      keys = keys_;
    } else {
      keys = prompt.subspan(static_cast<std::size_t>(q.registered),
                            static_cast<std::size_t>(known - q.registered));
    }
    windows_.register_keys(q, keys);
    kv_.register_keys(q.holding, keys);
    if (sink_ != nullptr) sink_->stored(q.request.handle, q.registered, keys);
    q.registered = known;
  }
  if (q.registered == full) return true;
  const RunRef run = kv_.register_private(q.holding, full - q.registered);
  q.given_up.push_back({.position = q.registered, .run = run});
  q.registered = full;
  return true;
}

void SequenceBlocks::release(Sequence& q) {
  kv_.release(q.holding);
  windows_.release(q);
  q.registered = 0;
}

void SequenceBlocks::verify(const std::vector<Sequence>& sequences, std::int64_t unassigned) const {
  kv_.verify();
  std::vector<const BlockHolding*> holdings;
  for (const Sequence& q : sequences) {
    holdings.push_back(&q.holding);
    for (const BlockHolding& w : q.windows) holdings.push_back(&w);
  }
  kv_.verify_holdings(holdings, unassigned);
}

}  // namespace routesim::sim
