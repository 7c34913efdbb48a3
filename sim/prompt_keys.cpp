#include "sim/prompt_keys.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/vectorize.h"

namespace routesim::sim {

void append_engine_keys(const workloads::Prompt& prompt, std::int64_t block_size, PromptKeys& out) {
  BlockKey state = 0x5ca1ab1e;
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
  out.engine = out.engine_own;
  out.tail_state = state;
  out.tail_tokens = filled;
}

namespace {

// Tokens of a content from `begin` on.
ROUTESIM_VECTORIZED
void write_tokens(std::uint64_t content, std::int64_t begin, std::span<std::uint32_t> out) {
  std::uint32_t* const token = out.data();
  const auto n = static_cast<std::int64_t>(out.size());
  for (std::int64_t i = 0; i < n; ++i) token[i] = workloads::token_at(content, begin + i);
}

// Appends the tokens [first, last) of a segment.
void append_tokens(const workloads::Segment& s, std::int64_t first, std::int64_t last,
                   std::vector<std::uint32_t>& out) {
  if (first >= last) return;
  const std::size_t old = out.size();
  out.resize(old + static_cast<std::size_t>(last - first));
  write_tokens(s.content, s.offset + first, std::span(out).subspan(old));
}

/// Prefixes kept for later prompts. Beyond this many they are forgotten and hashed again.
constexpr std::size_t kMaxPrefixes = 16'384;

}  // namespace

PromptKeyTable::PromptKeyTable(std::int64_t engine_block_size, RouterKeyOptions router)
    : engine_block_size_(engine_block_size), router_(std::move(router)) {}

const PromptKeys& PromptKeyTable::acquire(const workloads::Prompt& prompt) {
  auto it = entries_.find(prompt.id);
  if (it == entries_.end()) {
    const workloads::Prompt* const alone = &prompt;
    prepare({&alone, 1});
    it = entries_.find(prompt.id);
  }
  ++it->second->users;
  return it->second->keys;
}

void PromptKeyTable::prepare(std::span<const workloads::Prompt* const> prompts) {
  ROUTESIM_CHECK(prompts.size() <= kTogether, "no more prompts than are keyed together");
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    std::unique_ptr<Entry>& entry = entries_[prompts[i]->id];
    ROUTESIM_CHECK(entry == nullptr, "a prompt is keyed once");
    entry = std::make_unique<Entry>();
    jobs_[i].prompt = prompts[i];
    jobs_[i].out = &entry->keys;
  }
  const std::span<Job> jobs(jobs_.data(), prompts.size());
  if (router_.precise) append_request_keys(jobs);
  for (const Job& job : jobs) {
    if (one_key())
      job.out->engine = job.out->request;
    else
      append_engine_keys(*job.prompt, engine_block_size_, *job.out);
    if (router_.approx_block > 0) append_approx_hashes(*job.prompt, *job.out);
  }
}

void PromptKeyTable::release(const workloads::Prompt& prompt) {
  const auto it = entries_.find(prompt.id);
  if (--it->second->users == 0 && !prompt.reusable) entries_.erase(it);
}

// Hashes the prompts' real token ids. In each round every prompt goes on by a segment, unless
// another one is about to find out the same.
void PromptKeyTable::append_request_keys(std::span<Job> jobs) {
  const policies::BlockKeyChain& chain = *router_.precise;
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
      lanes.push_back({.state = &job.state, .tokens = job.tokens, .out = &job.out->request});
      round.push_back(&job);
    }
    if (round.empty()) break;
    chain.append_keys(lanes);
    for (Job* job : round) end_segment(*job);
  }
  for (Job& job : jobs) {
    job.out->request_end = job.state;
    for (std::uint64_t& key : job.out->request) key = chain.index_key(key);
  }
}

void PromptKeyTable::begin(Job& job) const {
  job.signatures.clear();
  std::uint64_t signature = 0;
  for (const workloads::Segment& s : job.prompt->segments) {
    signature = fold_piece(signature, s.content, s.offset, s.length);
    job.signatures.push_back(signature);
  }
  job.segment = 0;
  job.tokens.clear();
  job.state = router_.precise->start();
}

// Continues behind the longest list of leading segments that an earlier prompt began with.
void PromptKeyTable::take_known_prefix(Job& job) const {
  for (std::size_t i = job.prompt->segments.size(); i-- > job.segment;) {
    const auto it = prefixes_.find(job.signatures[i]);
    if (it == prefixes_.end()) continue;
    job.out->request = it->second.keys;
    job.state = it->second.state;
    const auto keyed =
        std::ssize(job.out->request) * static_cast<std::int64_t>(router_.precise->block_size());
    std::int64_t position = 0;
    job.tokens.clear();
    for (job.segment = 0; job.segment <= i; ++job.segment) {
      const workloads::Segment& s = job.prompt->segments[job.segment];
      append_tokens(s, std::max<std::int64_t>(0, keyed - position), s.length, job.tokens);
      position += s.length;
    }
    return;
  }
}

// Drops the tokens that are keyed. The segments so far are kept for other prompts; a whole prompt
// has its own entry.
void PromptKeyTable::end_segment(Job& job) {
  const std::uint32_t block = router_.precise->block_size();
  job.tokens.erase(job.tokens.begin(), job.tokens.end() - std::ssize(job.tokens) % block);
  const std::uint64_t signature = job.signatures[job.segment++];
  if (job.done()) return;
  if (prefixes_.size() >= kMaxPrefixes) prefixes_.clear();
  prefixes_[signature] = Prefix{.keys = job.out->request, .state = job.state};
}

void PromptKeyTable::append_approx_hashes(const workloads::Prompt& prompt, PromptKeys& out) {
  tokens_.clear();
  const std::int64_t limit = router_.approx_max_blocks > 0
                                 ? router_.approx_max_blocks * router_.approx_block
                                 : prompt.tokens;
  for (const workloads::Segment& s : prompt.segments)
    for (std::int64_t t = 0; t < s.length; ++t) {
      if (static_cast<std::int64_t>(tokens_.size()) >= limit) break;
      tokens_.push_back(workloads::token_at(s.content, s.offset + t));
    }
  out.approx = policies::approx_hashes_tokens(tokens_, router_.model, {},
                                              static_cast<std::uint32_t>(router_.approx_block),
                                              static_cast<std::size_t>(router_.approx_max_blocks));
}

std::uint64_t PromptKeyTable::next_request_key(policies::ChainState& state,
                                               const workloads::Prompt& prompt,
                                               std::uint64_t answer, std::int64_t begin) {
  const policies::BlockKeyChain& chain = *router_.precise;
  const auto block = static_cast<std::int64_t>(chain.block_size());
  tokens_.clear();
  std::int64_t position = 0;
  for (const workloads::Segment& s : prompt.segments) {
    const std::int64_t first = std::max<std::int64_t>(0, begin - position);
    const std::int64_t last = std::min(s.length, begin + block - position);
    append_tokens(s, first, last, tokens_);
    position += s.length;
  }
  for (auto t = static_cast<std::int64_t>(tokens_.size()); t < block; ++t)
    tokens_.push_back(workloads::token_at(answer, begin + t - prompt.tokens));
  chain.extend(state, tokens_);
  return chain.index_key(state.key);
}

}  // namespace routesim::sim
