#include "sim/prompt_keys.h"

#include <algorithm>
#include <utility>

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

/// Prefixes kept for later prompts. Beyond this many they are forgotten and hashed again.
constexpr std::size_t kMaxPrefixes = 16'384;

}  // namespace

PromptKeyTable::PromptKeyTable(std::int64_t engine_block_size, RouterKeyOptions router)
    : engine_block_size_(engine_block_size), router_(std::move(router)) {}

const PromptKeys& PromptKeyTable::acquire(const workloads::Prompt& prompt) {
  std::unique_ptr<Entry>& entry = entries_[prompt.id];
  if (entry == nullptr) {
    entry = std::make_unique<Entry>();
    if (router_.precise) append_request_keys(prompt, entry->keys);
    if (one_key())
      entry->keys.engine = entry->keys.request;
    else
      append_engine_keys(prompt, engine_block_size_, entry->keys);
    if (router_.approx_block > 0) append_approx_hashes(prompt, entry->keys);
  }
  ++entry->users;
  return entry->keys;
}

void PromptKeyTable::release(const workloads::Prompt& prompt) {
  const auto it = entries_.find(prompt.id);
  if (--it->second->users == 0 && !prompt.reusable) entries_.erase(it);
}

// Hashes the prompt's real token ids, continuing from the longest list of leading segments that an
// earlier prompt began with.
void PromptKeyTable::append_request_keys(const workloads::Prompt& prompt, PromptKeys& out) {
  const policies::BlockKeyChain& chain = *router_.precise;
  const auto block = static_cast<std::int64_t>(chain.block_size());
  std::vector<std::uint64_t> signatures;
  std::uint64_t signature = 0;
  for (const workloads::Segment& s : prompt.segments) {
    signature = fold_piece(signature, s.content, s.offset, s.length);
    signatures.push_back(signature);
  }
  policies::ChainState state = chain.start();
  std::size_t known = 0;  // segments whose full blocks are already keyed
  for (std::size_t i = prompt.segments.size(); i-- > 0;) {
    const auto it = prefixes_.find(signatures[i]);
    if (it == prefixes_.end()) continue;
    out.request = it->second.keys;
    state = it->second.state;
    known = i + 1;
    break;
  }
  const std::int64_t start = static_cast<std::int64_t>(out.request.size()) * block;
  std::int64_t position = 0;
  tokens_.clear();
  for (std::size_t i = 0; i < prompt.segments.size(); ++i) {
    const workloads::Segment& s = prompt.segments[i];
    append_tokens(s, std::max<std::int64_t>(0, start - position), s.length);
    position += s.length;
    if (i < known) continue;
    const std::size_t keyed = chain.append_keys(state, tokens_, out.request);
    tokens_.erase(tokens_.begin(),
                  tokens_.begin() + static_cast<std::ptrdiff_t>(keyed * chain.block_size()));
    if (i + 1 == prompt.segments.size()) break;  // a whole prompt is kept by its own entry
    if (prefixes_.size() >= kMaxPrefixes) prefixes_.clear();
    prefixes_[signatures[i]] = Prefix{.keys = out.request, .state = state};
  }
  out.request_end = state;
  for (std::uint64_t& key : out.request) key = chain.index_key(key);
}

// Tokens [first, last) of a segment.
void PromptKeyTable::append_tokens(const workloads::Segment& s, std::int64_t first,
                                   std::int64_t last) {
  if (first >= last) return;
  const std::size_t old = tokens_.size();
  tokens_.resize(old + static_cast<std::size_t>(last - first));
  write_tokens(s.content, s.offset + first, std::span(tokens_).subspan(old));
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
    append_tokens(s, first, last);
    position += s.length;
  }
  for (auto t = static_cast<std::int64_t>(tokens_.size()); t < block; ++t)
    tokens_.push_back(workloads::token_at(answer, begin + t - prompt.tokens));
  chain.extend(state, tokens_);
  return chain.index_key(state.key);
}

}  // namespace routesim::sim
