// KV block keys, bit for bit as production routers compute them. A prompt is cut into full blocks
// of `block_size` tokens; the key of a block depends on all tokens before it, so equal keys mean
// equal prefixes. Algorithms and their origin:
//   cbor-fnv          FNV-1a 64 over canonical CBOR; llm-d-kv-cache 0.5.0 and later (default)
//   xxh64             llm-d-router August 2026
//   sha256-cbor       32-byte parents; kv-cache-manager 0.3.2 - 0.4.x = vLLM `sha256_cbor`
//   sha256-cbor-64bit uint64 parents; kv-cache-manager 0.2.0 - 0.3.1 = vLLM `sha256_cbor_64bit`
// The approximate prefix hashes of llm-d's approx-prefix-cache-producer are here too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policies/index/sha256.h"

namespace routesim::policies {

/// A block key: the last 64 bits of whatever the algorithm computes.
using BlockKey = std::uint64_t;

enum class KeyAlgorithm : std::uint8_t { kCborFnv, kXxh64, kSha256Cbor, kSha256Cbor64 };

/// "cbor-fnv", "xxh64", "sha256-cbor", "sha256-cbor-64bit".
std::string_view to_string(KeyAlgorithm algorithm);
/// The inverse of to_string; nothing for any other name.
std::optional<KeyAlgorithm> parse_key_algorithm(std::string_view name);

inline bool is_sha(KeyAlgorithm a) { return a >= KeyAlgorithm::kSha256Cbor; }

/// How the keys of a precise index are made: the arguments of BlockKeyChain.
struct BlockKeyScheme {
  /// With a SHA-256 algorithm the index is keyed by the engines' own hashes.
  KeyAlgorithm algorithm = KeyAlgorithm::kCborFnv;
  std::int64_t block_size = 16;  ///< Canonical block size in tokens.
  std::string hash_seed;

  bool operator==(const BlockKeyScheme&) const = default;
};

/// The identifiers mixed into one block: multimodal item hashes in order of their start, then
/// (block 0 only) the cache salt. Empty means a plain text block.
using BlockExtra = std::vector<std::string>;

/// The state of a chain: enough to compute the key of the next block.
struct ChainState {
  BlockKey key = 0;       ///< Key of the last block, or the root before the first one.
  Sha256Digest digest{};  ///< Full digest; only sha256-cbor uses it.
};

/// Computes the chain of block keys of one (model, seed). Immutable and cheap to copy: after
/// construction only the root is kept, so one object may serve many threads.
class BlockKeyChain {
 public:
  /// `block_size` in tokens, at least 1. `model` is the request's target model, or the LoRA
  /// adapter's name when one is used: it goes into the root, so models never share keys. The
  /// SHA-256 eras do not hash the model; see index_key().
  BlockKeyChain(KeyAlgorithm algorithm, std::uint32_t block_size, std::string_view seed,
                std::string_view model);

  KeyAlgorithm algorithm() const { return algorithm_; }
  std::uint32_t block_size() const { return block_size_; }

  /// The parent of the first block.
  BlockKey root() const { return root_.key; }
  ChainState start() const { return root_; }

  /// Key of one block given its parent's key; parent 0 means the root. `tokens` is normally exactly
  /// one block. With sha256-cbor the parent must be a root (0 or root()), because 64 bits do not
  /// hold the 32-byte parent: use the ChainState forms there.
  BlockKey extend(BlockKey parent, std::span<const std::uint32_t> tokens,
                  const BlockExtra& extra = {}) const;
  /// Advances `state` by one block of `tokens`.
  void extend(ChainState& state, std::span<const std::uint32_t> tokens,
              const BlockExtra& extra = {}) const;

  /// Appends the keys of all full blocks of `tokens` to `out` and returns their number; the tail is
  /// dropped. `parent` 0 starts at the root, anything else continues a chain (seed and model are
  /// then not used). `extras[i]`, where present, belongs to block i of this call.
  std::size_t append_keys(BlockKey parent, std::span<const std::uint32_t> tokens,
                          std::vector<BlockKey>& out,
                          std::span<const BlockExtra> extras = {}) const;
  /// The same, continuing from and advancing `state`.
  std::size_t append_keys(ChainState& state, std::span<const std::uint32_t> tokens,
                          std::vector<BlockKey>& out,
                          std::span<const BlockExtra> extras = {}) const;

  /// One of several chains that are continued side by side.
  struct Lane {
    ChainState* state;
    std::span<const std::uint32_t> tokens;
    std::vector<BlockKey>* out;
  };
  /// append_keys() of plain blocks for several chains. A chain of multiplications is all latency,
  /// so kLanes of them take hardly longer than one.
  static constexpr std::size_t kLanes = 4;
  void append_keys(std::span<const Lane> lanes) const;

  /// The key under which an index shared by several models files a block. The SHA-256 eras index by
  /// (model name, hash), folded here into 64 bits; the other algorithms already contain the model.
  BlockKey index_key(BlockKey key) const { return key ^ model_scope_; }
  std::uint64_t model_scope() const { return model_scope_; }

 private:
  /// The state behind the block with this key; 0 = the root.
  ChainState behind(BlockKey parent) const;

  KeyAlgorithm algorithm_;
  std::uint32_t block_size_;
  std::uint64_t model_scope_ = 0;
  ChainState root_;
};

std::uint64_t fnv1a64(std::string_view bytes);
std::uint64_t xxh64(std::string_view bytes, std::uint64_t seed = 0);
/// The value that index_key() xors into the keys of a model in the SHA-256 eras.
std::uint64_t sha_model_scope(std::string_view model);

// ---- Extra keys -------------------------------------------------------------------------------

/// One multimodal item of a prompt: its content identifier and the token range it stands for.
struct MultimodalItem {
  std::string identifier;
  std::int64_t offset = 0;  ///< First token.
  std::int64_t length = 0;  ///< Number of tokens; <= 0 covers nothing.
};

/// Identifiers per full block: block b gets every item whose range overlaps it, ordered by start; a
/// non-empty `cache_salt` is appended to block 0. Empty result lists mean plain blocks.
std::vector<BlockExtra> compute_block_extras(std::span<const MultimodalItem> items,
                                             std::uint32_t block_size, std::int64_t num_tokens,
                                             std::string_view cache_salt = {});

/// Maps identifiers given per engine block to `count` canonical blocks: replicated when there are
/// fewer engine blocks, merged in order when there are more; index rule floor(i * from / to).
std::vector<BlockExtra> realign_extras(std::span<const BlockExtra> engine, std::size_t count);

/// Indices of the blocks any item overlaps, ascending and distinct.
std::vector<std::int64_t> multimodal_blocks(std::span<const MultimodalItem> items,
                                            std::uint32_t block_size);
/// How many of `blocks` lie within the first `match_len` blocks.
std::int64_t count_matched_blocks(std::span<const std::int64_t> blocks, std::int64_t match_len);

// ---- Approximate prefix hashes (approx-prefix-cache-producer) ----------------------------------

/// Smallest block of the token variant: shorter configured sizes are raised to it.
inline constexpr std::uint32_t kApproxMinBlockTokens = 64;

/// max(64, chosen): what every path of the August 2026 producer applies.
std::uint32_t effective_approx_block(std::int64_t chosen);

/// Token variant (from May 2026). `block_size` in tokens is used as given (apply
/// effective_approx_block first); the tail is hashed too; stops after `max_blocks` (0 = never).
std::vector<std::uint64_t> approx_hashes_tokens(std::span<const std::uint32_t> tokens,
                                                std::string_view model, std::string_view cache_salt,
                                                std::uint32_t block_size,
                                                std::size_t max_blocks = 0);
/// The same for a prompt whose leading full blocks have `hashes`: appends those of the tokens
/// behind them. `max_blocks` counts all.
void append_approx_hashes(std::span<const std::uint32_t> tokens, std::string_view model,
                          std::string_view cache_salt, std::uint32_t block_size,
                          std::size_t max_blocks, std::vector<std::uint64_t>& hashes);

/// Byte-chunk variant (older releases, Heimdall generation 1). Texts shorter than one chunk have no
/// hashes. `hash_tail`: hash the last partial chunk too (18 Apr 2026 to May 2026).
std::vector<std::uint64_t> approx_hashes_bytes(std::string_view text, std::string_view model,
                                               std::string_view cache_salt, std::size_t chunk_bytes,
                                               bool hash_tail, std::size_t max_blocks = 0);

/// The token-producer's `estimate` backend: UTF-8 bytes packed four at a time into little-endian
/// words, the last one zero padded.
std::vector<std::uint32_t> estimate_tokens(std::string_view text);

std::uint32_t fnv1a32(std::string_view bytes);

}  // namespace routesim::policies
