// Block keys of prompts and answers. A prompt is hashed once, however often it is sent, and a
// prefix that several prompts begin with is hashed once for all of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "policies/index/block_keys.h"
#include "sim/kv/kv_cache.h"
#include "workloads/request.h"

namespace routesim::sim {

/// Folds one piece of text into a block key: `length` tokens of `content` from `offset` on. Equal
/// token ranges are equal pieces (workloads::Segment), so no token needs to be looked at.
constexpr BlockKey fold_piece(BlockKey state, std::uint64_t content, std::int64_t offset,
                              std::int64_t length) {
  const std::uint64_t piece =
      mix64(content + 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(offset),
            static_cast<std::uint64_t>(length));
  return mix64(state, piece) | 1;  // never 0, which means "not hashed"
}

/// The keys of one prompt at one engine block size.
struct EngineKeys {
  std::int64_t block_size = 0;
  std::span<const BlockKey> engine;  ///< One per full block of the prompt.
  std::vector<BlockKey> engine_own;  ///< Backs `engine` unless PromptKeys::request does.
  BlockKey tail_state = 0;           ///< Key state after the tokens behind the last full block.
  std::int64_t tail_tokens = 0;      ///< How many those are, 0 … block_size - 1.
};

/// The keys of one prompt at each block size that engines have, and at the router's canonical one.
/// Neither copied nor moved: EngineKeys::engine may view `request`.
struct PromptKeys {
  PromptKeys() = default;
  PromptKeys(const PromptKeys&) = delete;
  PromptKeys& operator=(const PromptKeys&) = delete;

  /// The keys of engines with blocks of so many tokens.
  const EngineKeys& of(std::int64_t block_size) const {
    const EngineKeys* keys = engines.data();
    while (keys->block_size != block_size) ++keys;
    return *keys;
  }

  std::vector<EngineKeys> engines;     ///< Mostly one.
  std::vector<std::uint64_t> request;  ///< The router's keys; empty when nobody asks for them.
  std::vector<std::uint64_t> approx;   ///< Hashes of the approximate index; likewise.
  policies::ChainState request_end;    ///< Chain state after `request`.
};

/// Engine-side keys of a prompt: the same chain vLLM's hashing yields, up to the hash function.
/// Fills `out`, whose `engine_own` is empty.
void append_engine_keys(const workloads::Prompt& prompt, std::int64_t block_size, EngineKeys& out);

/// Keys that depend on a live request, named by its slot.
class SequenceKeySource {
 public:
  virtual ~SequenceKeySource() = default;
  /// Appends the router's keys of `blocks` engine blocks of `block_size` tokens of the sequence.
  virtual void request_keys(std::uint32_t handle, std::int64_t block_size, std::int64_t first_block,
                            std::int64_t blocks, std::vector<std::uint64_t>& out) = 0;
  /// The key of a block that holds part of the answer, where one key serves engine and router.
  virtual BlockKey answer_key(std::uint32_t handle, std::int64_t block) = 0;
};

/// The keys that the router hashes, if any.
struct RouterKeyOptions {
  std::optional<policies::BlockKeyChain> precise;  ///< Chain of the precise index.
  std::int64_t approx_block = 0;                   ///< Tokens per approximate block; 0 = none.
  std::int64_t approx_max_blocks = 0;              ///< 0 = unlimited.
  std::string model;
  std::string hash_seed;              ///< The hash seed of `precise`.
  std::vector<std::string> adapters;  ///< Names of the LoRA adapters, from 1 on.
};

/// Tokens about to be hashed, written once: a vector would set them to zero first.
class TokenBuffer {
 public:
  void clear() { size_ = 0; }
  /// Room for `n` more at the end, for the caller to fill.
  std::span<std::uint32_t> append(std::size_t n);
  /// Drops the first `n`.
  void drop(std::size_t n);
  std::size_t size() const { return size_; }
  std::span<const std::uint32_t> view() const { return {tokens_.get(), size_}; }

 private:
  std::unique_ptr<std::uint32_t[]> tokens_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

/// Owns the keys of every prompt that is in use or will come back. Single-threaded.
class PromptKeyTable {
 public:
  /// `block_sizes`: of all engines, each once.
  PromptKeyTable(std::vector<std::int64_t> block_sizes, RouterKeyOptions router);

  /// The keys of `prompt`, computed at first use. Pair with release().
  const PromptKeys& acquire(const workloads::Prompt& prompt);
  /// The same where it has nothing to compute; otherwise null.
  const PromptKeys* acquire_known(const workloads::Prompt& prompt);
  /// True where acquire() has nothing to compute.
  bool knows(const workloads::Prompt& prompt) const { return entries_.contains(prompt.id); }
  /// How many prompts prepare() takes.
  static constexpr std::size_t kTogether = policies::BlockKeyChain::kLanes;
  /// Computes the keys of several prompts that will be acquired and are not known yet, in less time
  /// than one after another. Each is named once.
  void prepare(std::span<const workloads::Prompt* const> prompts);
  /// One user less of what acquire() returned; keys of prompts that will not come back are dropped
  /// with the last one.
  void release(const PromptKeys& keys);
  /// Prompts whose keys are kept.
  std::size_t size() const { return pool_.size() - unused_.size(); }

  /// The router's key of the block that follows `state` and holds `tokens` of the sequence made of
  /// the prompt and then `answer`, starting at token `begin`. Advances `state`.
  std::uint64_t next_request_key(policies::ChainState& state, const workloads::Prompt& prompt,
                                 std::uint64_t answer, std::int64_t begin);
  const RouterKeyOptions& router() const { return router_; }
  /// True where engines of this block size and the router cut prompts into the same blocks: then
  /// one key serves both, and an index needs no map between them. (That a key is 0, "not hashed",
  /// has a chance of 2^-64.)
  bool one_key(std::int64_t block_size) const {
    return router_.precise &&
           static_cast<std::int64_t>(router_.precise->block_size()) == block_size;
  }

 private:
  struct Entry : PromptKeys {
    std::size_t number = 0;  ///< In pool_.
    bool reusable = false;
    std::int64_t users = 0;
  };
  static constexpr std::size_t kNoPrefix = ~std::size_t{0};
  /// Keys of a list of leading segments, shared by the prompts that begin with it: the keys of a
  /// shorter list (`parent`), and then `count` of its own in prefix_keys_.
  struct Prefix {
    std::size_t parent = kNoPrefix;  ///< In prefixes_.
    std::size_t first = 0;
    std::size_t count = 0;
    policies::ChainState state;
  };

  /// A prompt on its way to its router's keys, segment by segment.
  struct Job {
    const workloads::Prompt* prompt = nullptr;
    PromptKeys* out = nullptr;
    std::vector<std::uint64_t> signatures;  ///< Of the lists of leading segments.
    std::size_t segment = 0;                ///< The next one to key.
    std::size_t prefix = kNoPrefix;         ///< The longest known list it begins with.
    std::size_t kept = 0;                   ///< Keys of that list.
    TokenBuffer tokens;                     ///< Behind the last full block so far.
    policies::ChainState state;
    bool done() const { return segment == prompt->segments.size(); }
  };

  /// The chain of the model or adapter that computes the prompt: no two share keys.
  const policies::BlockKeyChain& chain_of(const workloads::Prompt& prompt) const {
    return chains_[prompt.adapter];
  }
  Entry& new_entry(const workloads::Prompt& prompt);
  void append_request_keys(std::span<Job> jobs);
  void begin(Job& job) const;
  void take_known_prefix(Job& job) const;
  void copy_keys(std::size_t prefix, std::vector<std::uint64_t>& out) const;
  void forget_prefixes();
  void end_segment(Job& job);
  void append_approx_hashes(const workloads::Prompt& prompt, PromptKeys& out);
  void extend_approx_hashes(const workloads::Prompt& prompt, std::int64_t end, PromptKeys& out);

  std::vector<std::int64_t> block_sizes_;
  RouterKeyOptions router_;
  std::vector<policies::BlockKeyChain> chains_;  ///< By adapter, where the router hashes.
  std::deque<Entry> pool_;
  std::vector<std::size_t> unused_;  ///< Of prompts that are gone; their memory is reused.
  /// By prompt, those that will be acquired. Few, where prompts do not come back.
  std::unordered_map<std::uint64_t, Entry*> entries_;
  std::unordered_map<std::uint64_t, std::size_t> known_;  ///< Signature to place in prefixes_.
  std::vector<Prefix> prefixes_;
  std::vector<std::uint64_t> prefix_keys_;
  /// Hashes of all full blocks in front of a prompt's last segment, by their signature.
  struct ApproxPrefixes {
    std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> hashes;
    std::size_t kept = 0;  ///< Hashes in all.
  };
  ApproxPrefixes approx_prefixes_;
  std::array<Job, kTogether> jobs_;
  TokenBuffer tokens_;
};

}  // namespace routesim::sim
