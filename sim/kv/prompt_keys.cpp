#include "sim/kv/prompt_keys.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/vectorize.h"

namespace routesim::sim {

void append_engine_keys(const workloads::Prompt& prompt, std::int64_t block_size, EngineKeys& out) {
  BlockKey state = 0x5ca1ab1e;
  if (prompt.adapter != 0) state = mix64(state, prompt.adapter);
  std::int64_t filled = 0;
  out.engine_own.reserve(static_cast<std::size_t>(prompt.tokens / block_size));
  for (const workloads::Segment& segment : prompt.segments) {
    std::int64_t offset = segment.offset;
    std::int64_t left = segment.length;
    while (left > 0) {
      const std::int64_t piece = std::min(left, block_size - filled);
      state = fold_piece(state, segment.content, offset, piece);
      offset += piece;
      left -= piece;
      filled += piece;
      if (filled == block_size) {
        out.engine_own.push_back(state);
        filled = 0;
      }
    }
  }
  out.block_size = block_size;
  out.engine = out.engine_own;
  out.tail_state = state;
  out.tail_tokens = filled;
}

namespace {

// Tokens of a content from `begin` on: workloads::token_at(), two at a time.
ROUTESIM_VECTORIZED
void write_tokens(std::uint64_t content, std::int64_t begin, std::span<std::uint32_t> out) {
  std::uint32_t* token = out.data();
  auto n = static_cast<std::int64_t>(out.size());
  if (n > 0 && begin % 2 != 0) {
    *token++ = workloads::token_at(content, begin++);
    --n;
  }
  const std::int64_t first = begin / 2, pairs = n / 2;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const std::uint64_t bits = workloads::token_pair(content, first + i);
    token[2 * i] = workloads::scale_token(bits >> 32);
    token[2 * i + 1] = workloads::scale_token(bits & 0xffffffff);
  }
  if (n % 2 != 0) token[n - 1] = workloads::token_at(content, begin + n - 1);
}

// Appends the tokens [first, last) of a segment.
void append_tokens(const workloads::Segment& s, std::int64_t first, std::int64_t last,
                   TokenBuffer& out) {
  if (first >= last) return;
  write_tokens(s.content, s.offset + first, out.append(static_cast<std::size_t>(last - first)));
}

/// Prefixes, and keys of all together, that are kept for later prompts: some 60 MB. Beyond this
/// many they are forgotten and hashed again.
constexpr std::size_t kMaxPrefixes = 262'144;
constexpr std::size_t kMaxPrefixKeys = 4'194'304;

}  // namespace

std::span<std::uint32_t> TokenBuffer::append(std::size_t n) {
  if (size_ + n > capacity_) {
    capacity_ = std::max(size_ + n, 2 * capacity_);
    auto larger = std::make_unique_for_overwrite<std::uint32_t[]>(capacity_);
    std::copy_n(tokens_.get(), size_, larger.get());
    tokens_ = std::move(larger);
  }
  size_ += n;
  return {tokens_.get() + size_ - n, n};
}

void TokenBuffer::drop(std::size_t n) {
  std::copy(tokens_.get() + n, tokens_.get() + size_, tokens_.get());
  size_ -= n;
}

PromptKeyTable::PromptKeyTable(std::vector<std::int64_t> block_sizes, RouterKeyOptions router)
    : block_sizes_(std::move(block_sizes)), router_(std::move(router)) {
  if (!router_.precise) return;
  chains_.push_back(*router_.precise);
  for (const std::string& adapter : router_.adapters)
    chains_.emplace_back(router_.precise->algorithm(), router_.precise->block_size(),
                         router_.hash_seed, adapter);
}

const PromptKeys& PromptKeyTable::acquire(const workloads::Prompt& prompt) {
  if (const PromptKeys* const known = acquire_known(prompt)) return *known;
  const workloads::Prompt* const alone = &prompt;
  prepare({&alone, 1});
  return *acquire_known(prompt);
}

const PromptKeys* PromptKeyTable::acquire_known(const workloads::Prompt& prompt) {
  const auto known = entries_.find(prompt.id);
  if (known == entries_.end()) return nullptr;
  Entry* const entry = known->second;
  ++entry->users;
  if (!entry->reusable) entries_.erase(known);
  return entry;
}

void PromptKeyTable::prepare(std::span<const workloads::Prompt* const> prompts) {
  ROUTESIM_CHECK(prompts.size() <= kTogether, "no more prompts than are keyed together");
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    jobs_[i].prompt = prompts[i];
    jobs_[i].out = &new_entry(*prompts[i]);
  }
  const std::span<Job> jobs(jobs_.data(), prompts.size());
  if (router_.precise) append_request_keys(jobs);
  for (const Job& job : jobs) {
    for (std::size_t i = 0; i < block_sizes_.size(); ++i) {
      EngineKeys& keys = job.out->engines[i];
      if (one_key(block_sizes_[i]))
        keys.engine = job.out->request;
      else
        append_engine_keys(*job.prompt, block_sizes_[i], keys);
    }
    if (router_.approx_block > 0) append_approx_hashes(*job.prompt, *job.out);
  }
}

PromptKeyTable::Entry& PromptKeyTable::new_entry(const workloads::Prompt& prompt) {
  ROUTESIM_CHECK(!knows(prompt), "a prompt is keyed once");
  if (unused_.empty()) {
    const std::size_t number = pool_.size();
    Entry& made = pool_.emplace_back();
    made.number = number;
    made.engines.resize(block_sizes_.size());
    for (std::size_t i = 0; i < block_sizes_.size(); ++i)
      made.engines[i].block_size = block_sizes_[i];
    unused_.push_back(number);
  }
  Entry& entry = pool_[unused_.back()];
  unused_.pop_back();
  entries_.emplace(prompt.id, &entry);
  entry.reusable = prompt.reusable;
  for (EngineKeys& keys : entry.engines) keys.engine_own.clear();
  entry.request.clear();
  return entry;
}

void PromptKeyTable::release(const PromptKeys& keys) {
  Entry& entry = pool_[static_cast<const Entry&>(keys).number];
  if (--entry.users == 0 && !entry.reusable) unused_.push_back(entry.number);
}

// Hashes the prompts' real token ids. In each round every prompt goes on by a segment, unless
// another one is about to find out the same.
void PromptKeyTable::append_request_keys(std::span<Job> jobs) {
  const policies::BlockKeyChain& chain = *router_.precise;  // Only roots differ between adapters.
  for (Job& job : jobs) begin(job);
  std::vector<policies::BlockKeyChain::Lane> lanes;
  std::vector<Job*> round;
  while (true) {
    lanes.clear();
    round.clear();
    for (Job& job : jobs) {
      take_known_prefix(job);
      if (job.done()) continue;
      const std::uint64_t signature = job.signatures[job.segment];
      if (std::any_of(round.begin(), round.end(), [&](const Job* other) {
            return other->signatures[other->segment] == signature;
          }))
        continue;
      const workloads::Segment& s = job.prompt->segments[job.segment];
      append_tokens(s, 0, s.length, job.tokens);
      lanes.push_back({.state = &job.state, .tokens = job.tokens.view(), .out = &job.out->request});
      round.push_back(&job);
    }
    if (round.empty()) break;
    chain.append_keys(lanes);
    for (Job* job : round) end_segment(*job);
  }
  for (Job& job : jobs) {
    job.out->request_end = job.state;
    const policies::BlockKeyChain& own = chain_of(*job.prompt);
    for (std::uint64_t& key : job.out->request) key = own.index_key(key);
  }
}

void PromptKeyTable::begin(Job& job) const {
  job.signatures.clear();
  std::uint64_t signature = job.prompt->adapter;
  for (const workloads::Segment& s : job.prompt->segments) {
    signature = fold_piece(signature, s.content, s.offset, s.length);
    job.signatures.push_back(signature);
  }
  job.segment = 0;
  job.prefix = kNoPrefix;
  job.kept = 0;
  job.tokens.clear();
  job.state = chain_of(*job.prompt).start();
  job.out->request.reserve(static_cast<std::size_t>(job.prompt->tokens) /
                           router_.precise->block_size());
}

// Continues behind the longest list of leading segments that an earlier prompt began with. Where a
// list is known, so are the shorter ones (but for those that were forgotten on the way, which costs
// time and nothing else): O(log segments) look-ups.
void PromptKeyTable::take_known_prefix(Job& job) const {
  if (job.done()) return;
  // The last list is the whole prompt, which no other prompt begins with yet.
  const std::size_t last = job.prompt->segments.size() - 1;
  if (job.segment >= last || !known_.contains(job.signatures[job.segment])) return;
  std::size_t known = job.segment, unknown = last;
  while (unknown - known > 1) {
    const std::size_t middle = known + (unknown - known) / 2;
    (known_.contains(job.signatures[middle]) ? known : unknown) = middle;
  }
  job.prefix = known_.at(job.signatures[known]);
  copy_keys(job.prefix, job.out->request);
  job.kept = job.out->request.size();
  job.state = prefixes_[job.prefix].state;
  const auto keyed =
      std::ssize(job.out->request) * static_cast<std::int64_t>(router_.precise->block_size());
  std::int64_t position = 0;
  job.tokens.clear();
  for (job.segment = 0; job.segment <= known; ++job.segment) {
    const workloads::Segment& s = job.prompt->segments[job.segment];
    append_tokens(s, std::max<std::int64_t>(0, keyed - position), s.length, job.tokens);
    position += s.length;
  }
}

// Drops the tokens that are keyed. The segments so far are kept for other prompts; a whole prompt
// has its own entry.
void PromptKeyTable::end_segment(Job& job) {
  const std::uint32_t block = router_.precise->block_size();
  job.tokens.drop(job.tokens.size() / block * block);
  const std::uint64_t signature = job.signatures[job.segment++];
  if (job.done()) return;
  if (prefixes_.size() >= kMaxPrefixes || prefix_keys_.size() >= kMaxPrefixKeys) forget_prefixes();
  const std::vector<std::uint64_t>& keys = job.out->request;
  known_[signature] = prefixes_.size();
  prefixes_.push_back({.parent = job.prefix,
                       .first = prefix_keys_.size(),
                       .count = keys.size() - job.kept,
                       .state = job.state});
  prefix_keys_.insert(prefix_keys_.end(), keys.begin() + static_cast<std::ptrdiff_t>(job.kept),
                      keys.end());
  job.prefix = prefixes_.size() - 1;
  job.kept = keys.size();
}

// Prompts on their way keep their keys, and store all of them with their next segment.
void PromptKeyTable::forget_prefixes() {
  known_.clear();
  prefixes_.clear();
  prefix_keys_.clear();
  for (Job& job : jobs_) {
    job.prefix = kNoPrefix;
    job.kept = 0;
  }
}

void PromptKeyTable::copy_keys(std::size_t prefix, std::vector<std::uint64_t>& out) const {
  std::vector<const Prefix*> parts;
  for (; prefix != kNoPrefix; prefix = parts.back()->parent) parts.push_back(&prefixes_[prefix]);
  out.clear();
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    const auto first = prefix_keys_.begin() + static_cast<std::ptrdiff_t>((*part)->first);
    out.insert(out.end(), first, first + static_cast<std::ptrdiff_t>((*part)->count));
  }
}

// Prompts mostly differ in their last segment only: what comes before is hashed once.
void PromptKeyTable::append_approx_hashes(const workloads::Prompt& prompt, PromptKeys& out) {
  const std::int64_t limit = router_.approx_max_blocks > 0
                                 ? router_.approx_max_blocks * router_.approx_block
                                 : prompt.tokens;
  out.approx.clear();
  if (prompt.segments.size() > 1) {
    std::uint64_t signature = prompt.adapter;
    std::int64_t leading = 0;
    for (const workloads::Segment& s :
         std::span(prompt.segments).first(prompt.segments.size() - 1)) {
      signature = fold_piece(signature, s.content, s.offset, s.length);
      leading += s.length;
    }
    const auto known = approx_prefixes_.hashes.find(signature);
    if (known != approx_prefixes_.hashes.end()) {
      out.approx = known->second;
    } else {
      const std::int64_t blocks = std::min(leading, limit) / router_.approx_block;
      extend_approx_hashes(prompt, blocks * router_.approx_block, out);
      approx_prefixes_.kept += out.approx.size();
      if (approx_prefixes_.kept >= kMaxPrefixKeys) approx_prefixes_ = {};
      approx_prefixes_.hashes.emplace(signature, out.approx);
    }
  }
  extend_approx_hashes(prompt, std::min(limit, prompt.tokens), out);
}

// Hashes the tokens behind the blocks that have been, up to `end`.
void PromptKeyTable::extend_approx_hashes(const workloads::Prompt& prompt, std::int64_t end,
                                          PromptKeys& out) {
  const std::int64_t begin = std::ssize(out.approx) * router_.approx_block;
  std::int64_t position = 0;
  tokens_.clear();
  for (const workloads::Segment& s : prompt.segments) {
    append_tokens(s, std::max<std::int64_t>(0, begin - position),
                  std::min(s.length, end - position), tokens_);
    position += s.length;
  }
  const std::string& model =
      prompt.adapter == 0 ? router_.model : router_.adapters[prompt.adapter - 1];
  policies::append_approx_hashes(tokens_.view(), model, {},
                                 static_cast<std::uint32_t>(router_.approx_block),
                                 static_cast<std::size_t>(router_.approx_max_blocks), out.approx);
}

std::uint64_t PromptKeyTable::next_request_key(policies::ChainState& state,
                                               const workloads::Prompt& prompt,
                                               std::uint64_t answer, std::int64_t begin) {
  const policies::BlockKeyChain& chain = chain_of(prompt);
  const auto block = static_cast<std::int64_t>(chain.block_size());
  tokens_.clear();
  std::int64_t position = 0;
  for (const workloads::Segment& s : prompt.segments) {
    const std::int64_t first = std::max<std::int64_t>(0, begin - position);
    const std::int64_t last = std::min(s.length, begin + block - position);
    append_tokens(s, first, last, tokens_);
    position += s.length;
  }
  const auto filled = static_cast<std::int64_t>(tokens_.size());
  if (filled < block)
    write_tokens(answer, begin + filled - prompt.tokens,
                 tokens_.append(static_cast<std::size_t>(block - filled)));
  chain.extend(state, tokens_.view());
  return chain.index_key(state.key);
}

}  // namespace routesim::sim
