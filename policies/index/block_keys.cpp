#include "policies/index/block_keys.h"

#include <algorithm>
#include <bit>
#include <cstring>

// Everything inline: no library to link for whoever installs routesim::policies.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/check.h"
#include "base/rng.h"

namespace routesim::policies {
namespace {

static_assert(std::endian::native == std::endian::little,
              "hash inputs are little-endian in memory");

constexpr std::uint64_t kFnvOffset = 0xcbf29ce484222325ULL;
constexpr std::uint64_t kFnvPrime = 0x100000001b3ULL;

// FNV-1a over canonical CBOR without ever materialising the CBOR: each function consumes the bytes
// of one item and returns the new hash state.
constexpr std::uint64_t fnv_byte(std::uint64_t h, std::uint64_t byte) {
  return (h ^ (byte & 0xff)) * kFnvPrime;
}

std::uint64_t fnv_bytes(std::uint64_t h, std::string_view bytes) {
  for (const char c : bytes) h = fnv_byte(h, static_cast<unsigned char>(c));
  return h;
}

enum CborMajor : std::uint64_t { kUint = 0, kByteString = 2, kText = 3, kArray = 4, kMap = 5 };
constexpr std::uint8_t kCborNull = 0xf6;

// Writes the head of an item to `put`, byte by byte: major type and argument in its shortest form
// (RFC 7049 section 3.9).
template <class Put>
void cbor_head(CborMajor major, std::uint64_t value, Put put) {
  const std::uint64_t type = static_cast<std::uint64_t>(major) << 5;
  if (value < 24) return put(type | value);
  const unsigned bytes = value <= 0xff ? 1 : value <= 0xffff ? 2 : value <= 0xffffffff ? 4 : 8;
  put(type | (24 + static_cast<std::uint64_t>(std::countr_zero(bytes))));
  for (unsigned i = bytes; i-- > 0;) put(value >> (8 * i));
}

std::uint64_t fnv_head(std::uint64_t h, CborMajor major, std::uint64_t value) {
  cbor_head(major, value, [&h](std::uint64_t byte) { h = fnv_byte(h, byte); });
  return h;
}

// A token id. The multiply chain is the whole cost, so the two common shapes are written out: 3
// bytes, and 5 bytes whose second is zero, where xor with zero lets two multiplications become one.
inline std::uint64_t fnv_token(std::uint64_t h, std::uint32_t token) {
  if (token < 256 || token >= (1u << 24)) [[unlikely]]
    return fnv_head(h, kUint, token);
  if (token >= 65536) {
    h = (h ^ 0x1a) * (kFnvPrime * kFnvPrime);
    h = fnv_byte(h, token >> 16);
  } else {
    h = (h ^ 0x19) * kFnvPrime;
  }
  return fnv_byte(fnv_byte(h, token >> 8), token);
}

// An id that takes 3 or 5 bytes, as nearly all do.
inline bool usual(std::uint32_t token) { return token - 256 < (1u << 24) - 256; }

// fnv_token() of such ids without a branch: several chains side by side are not held up by
// multiplications but by branches that nobody can predict. If the third byte is missing, it is
// zero, and a multiplication is taken back: by the factor 1 in place of the square.
inline std::uint64_t fnv_usual_token(std::uint64_t h, std::uint32_t token) {
  static constexpr std::array<std::uint64_t, 2> kFactors = {1, kFnvPrime * kFnvPrime};
  const std::size_t wide = token >= 65536 ? 1 : 0;
  h = (h ^ (0x19 + wide)) * kFactors[wide];
  h = (h ^ token >> 16) * kFnvPrime;
  return fnv_byte(fnv_byte(h, token >> 8), token);
}

std::uint64_t fnv_text(std::uint64_t h, std::string_view text) {
  return fnv_bytes(fnv_head(h, kText, text.size()), text);
}

std::uint64_t cbor_fnv_root(std::string_view seed, std::string_view model) {
  const std::uint64_t init = fnv_bytes(kFnvOffset, seed);
  std::uint64_t h = fnv_byte(kFnvOffset, 0x83);
  h = fnv_byte(fnv_head(h, kUint, init), kCborNull);
  return fnv_text(h, model);
}

// Everything before the token ids of a block of `count`.
std::uint64_t fnv_block_head(std::uint64_t parent, std::size_t count) {
  return fnv_head(fnv_head(fnv_byte(kFnvOffset, 0x83), kUint, parent), kArray, count);
}

// Rarely wanted, so not inlined: once per lane it would crowd the lanes' loop out of registers.
[[gnu::noinline]] std::uint64_t fnv_any_token(std::uint64_t h, std::uint32_t token) {
  return fnv_token(h, token);
}

// One plain block of each of N chains.
template <std::size_t N>
void cbor_fnv_keys(std::array<std::uint64_t, N>& keys,
                   const std::array<const std::uint32_t*, N>& tokens, std::size_t count) {
  std::array<std::uint64_t, N> h;
  for (std::size_t lane = 0; lane < N; ++lane) h[lane] = fnv_block_head(keys[lane], count);
  for (std::size_t t = 0; t < count; ++t) {
    bool all_usual = true;
    for (std::size_t lane = 0; lane < N; ++lane) all_usual &= usual(tokens[lane][t]);
    if (!all_usual) [[unlikely]] {
      for (std::size_t lane = 0; lane < N; ++lane)
        h[lane] = fnv_any_token(h[lane], tokens[lane][t]);
      continue;
    }
    for (std::size_t lane = 0; lane < N; ++lane)
      h[lane] = fnv_usual_token(h[lane], tokens[lane][t]);
  }
  for (std::size_t lane = 0; lane < N; ++lane) keys[lane] = fnv_byte(h[lane], kCborNull);
}

std::uint64_t cbor_fnv_key(std::uint64_t parent, std::span<const std::uint32_t> tokens,
                           const BlockExtra& extra) {
  std::uint64_t h = fnv_block_head(parent, tokens.size());
  for (const std::uint32_t token : tokens) h = fnv_token(h, token);
  if (extra.empty()) return fnv_byte(h, kCborNull);
  h = fnv_head(h, kArray, extra.size());
  for (const std::string& identifier : extra) {
    h = fnv_head(h, kMap, 1);
    h = fnv_text(fnv_text(h, "Hash"), identifier);
  }
  return h;
}

std::uint64_t xxh_root(std::string_view seed, std::string_view model) {
  const std::array<std::uint64_t, 2> head = {xxh64(seed), model.size()};
  std::string bytes(reinterpret_cast<const char*>(head.data()), sizeof head);
  bytes += model;
  return xxh64(bytes);
}

void append_bytes(std::string& out, const void* data, std::size_t size) {
  out.append(static_cast<const char*>(data), size);
}

std::uint64_t xxh_key(std::uint64_t parent, std::span<const std::uint32_t> tokens,
                      const BlockExtra& extra) {
  std::array<std::uint32_t, 2 + 256> small;  // Room for all usual block sizes.
  if (extra.empty() && tokens.size() + 2 <= small.size()) {
    std::memcpy(small.data(), &parent, sizeof parent);
    std::copy(tokens.begin(), tokens.end(), small.begin() + 2);
    return XXH64(small.data(), sizeof parent + tokens.size_bytes(), 0);
  }
  std::string bytes;
  append_bytes(bytes, &parent, sizeof parent);
  append_bytes(bytes, tokens.data(), tokens.size_bytes());
  for (const std::string& identifier : extra) {
    const std::uint64_t length = identifier.size();
    append_bytes(bytes, &length, sizeof length);
    bytes += identifier;
  }
  return xxh64(bytes);
}

// SHA-256 needs bytes, but one small head at a time is enough.
void sha_head(Sha256& sha, CborMajor major, std::uint64_t value) {
  std::array<std::uint8_t, 9> bytes;
  std::size_t n = 0;
  cbor_head(major, value,
            [&](std::uint64_t byte) { bytes[n++] = static_cast<std::uint8_t>(byte); });
  sha.update(bytes.data(), n);
}

BlockKey last_64_bits(const Sha256Digest& digest) {
  BlockKey key = 0;
  for (std::size_t i = 24; i < 32; ++i) key = key << 8 | digest[i];
  return key;
}

ChainState sha_root(std::string_view seed) {
  Sha256 sha;
  sha_head(sha, kText, seed.size());
  sha.update(seed.data(), seed.size());
  ChainState root;
  root.digest = sha.finish();
  root.key = last_64_bits(root.digest);
  return root;
}

void sha_extend(ChainState& state, bool wide, std::span<const std::uint32_t> tokens,
                const BlockExtra& extra) {
  Sha256 sha;
  sha_head(sha, kArray, 3);
  if (wide) {
    sha_head(sha, kByteString, state.digest.size());
    sha.update(state.digest.data(), state.digest.size());
  } else {
    sha_head(sha, kUint, state.key);
  }
  sha_head(sha, kArray, tokens.size());
  for (const std::uint32_t token : tokens) sha_head(sha, kUint, token);
  // These releases had no extra keys on the router's side; vLLM hashes them as an array of texts.
  if (extra.empty()) {
    sha.update(&kCborNull, 1);
  } else {
    sha_head(sha, kArray, extra.size());
    for (const std::string& identifier : extra) {
      sha_head(sha, kText, identifier.size());
      sha.update(identifier.data(), identifier.size());
    }
  }
  state.digest = sha.finish();
  state.key = last_64_bits(state.digest);
}

constexpr std::array<std::string_view, 4> kAlgorithmNames = {"cbor-fnv", "xxh64", "sha256-cbor",
                                                             "sha256-cbor-64bit"};

const BlockExtra kNoExtra;

}  // namespace

std::string_view to_string(KeyAlgorithm algorithm) {
  return kAlgorithmNames[static_cast<std::size_t>(algorithm)];
}

std::optional<KeyAlgorithm> parse_key_algorithm(std::string_view name) {
  for (std::size_t i = 0; i < kAlgorithmNames.size(); ++i)
    if (kAlgorithmNames[i] == name) return static_cast<KeyAlgorithm>(i);
  return std::nullopt;
}

std::uint64_t fnv1a64(std::string_view bytes) { return fnv_bytes(kFnvOffset, bytes); }
std::uint64_t xxh64(std::string_view bytes, std::uint64_t seed) {
  return XXH64(bytes.data(), bytes.size(), seed);
}
std::uint64_t sha_model_scope(std::string_view model) { return mix64(fnv1a64(model)); }

BlockKeyChain::BlockKeyChain(KeyAlgorithm algorithm, std::uint32_t block_size,
                             std::string_view seed, std::string_view model)
    : algorithm_(algorithm), block_size_(block_size) {
  ROUTESIM_CHECK(block_size >= 1, "a block holds at least one token");
  if (is_sha(algorithm)) {
    root_ = sha_root(seed);
    model_scope_ = sha_model_scope(model);
  } else {
    root_.key =
        algorithm == KeyAlgorithm::kCborFnv ? cbor_fnv_root(seed, model) : xxh_root(seed, model);
  }
}

void BlockKeyChain::extend(ChainState& state, std::span<const std::uint32_t> tokens,
                           const BlockExtra& extra) const {
  switch (algorithm_) {
    case KeyAlgorithm::kCborFnv:
      state.key = cbor_fnv_key(state.key, tokens, extra);
      break;
    case KeyAlgorithm::kXxh64:
      state.key = xxh_key(state.key, tokens, extra);
      break;
    case KeyAlgorithm::kSha256Cbor:
      sha_extend(state, true, tokens, extra);
      break;
    case KeyAlgorithm::kSha256Cbor64:
      sha_extend(state, false, tokens, extra);
      break;
  }
}

ChainState BlockKeyChain::behind(BlockKey parent) const {
  ChainState state = root_;
  if (parent == 0 || parent == root_.key) return state;
  ROUTESIM_CHECK(algorithm_ != KeyAlgorithm::kSha256Cbor,
                 "a 64-bit parent cannot continue a chain of 32-byte parents");
  state.key = parent;
  return state;
}

BlockKey BlockKeyChain::extend(BlockKey parent, std::span<const std::uint32_t> tokens,
                               const BlockExtra& extra) const {
  ChainState state = behind(parent);
  extend(state, tokens, extra);
  return state.key;
}

std::size_t BlockKeyChain::append_keys(ChainState& state, std::span<const std::uint32_t> tokens,
                                       std::vector<BlockKey>& out,
                                       std::span<const BlockExtra> extras) const {
  const std::size_t count = tokens.size() / block_size_;
  out.reserve(out.size() + count);
  for (std::size_t i = 0; i < count; ++i) {
    extend(state, tokens.subspan(i * block_size_, block_size_),
           i < extras.size() ? extras[i] : kNoExtra);
    out.push_back(state.key);
  }
  return count;
}

namespace {

// The blocks that the first N lanes all have, from block `done` on; returns where they end.
template <std::size_t N>
std::size_t append_fnv_keys(std::span<const BlockKeyChain::Lane> lanes, std::size_t block,
                            std::size_t done, std::size_t end) {
  std::array<std::uint64_t, N> keys;
  std::array<const std::uint32_t*, N> tokens;
  for (std::size_t l = 0; l < N; ++l) {
    keys[l] = lanes[l].state->key;
    tokens[l] = lanes[l].tokens.data() + done * block;
  }
  for (; done < end; ++done) {
    cbor_fnv_keys(keys, tokens, block);
    for (std::size_t l = 0; l < N; ++l) {
      lanes[l].out->push_back(keys[l]);
      tokens[l] += block;
    }
  }
  for (std::size_t l = 0; l < N; ++l) lanes[l].state->key = keys[l];
  return end;
}

}  // namespace

void BlockKeyChain::append_keys(std::span<const Lane> lanes) const {
  if (algorithm_ != KeyAlgorithm::kCborFnv || lanes.size() > kLanes) {
    for (const Lane& lane : lanes) append_keys(*lane.state, lane.tokens, *lane.out);
    return;
  }
  std::array<Lane, kLanes> open{};
  std::copy(lanes.begin(), lanes.end(), open.begin());
  const std::span<Lane> by_length(open.data(), lanes.size());
  std::sort(by_length.begin(), by_length.end(),
            [](const Lane& a, const Lane& b) { return a.tokens.size() > b.tokens.size(); });
  std::size_t done = 0;
  for (std::size_t n = lanes.size(); n > 0; --n) {
    const std::size_t end = by_length[n - 1].tokens.size() / block_size_;
    if (end == done) continue;
    static_assert(kLanes == 4);
    if (n == 4) done = append_fnv_keys<4>(by_length, block_size_, done, end);
    if (n == 3) done = append_fnv_keys<3>(by_length, block_size_, done, end);
    if (n == 2) done = append_fnv_keys<2>(by_length, block_size_, done, end);
    if (n == 1) done = append_fnv_keys<1>(by_length, block_size_, done, end);
  }
}

std::size_t BlockKeyChain::append_keys(BlockKey parent, std::span<const std::uint32_t> tokens,
                                       std::vector<BlockKey>& out,
                                       std::span<const BlockExtra> extras) const {
  ChainState state = behind(parent);
  return append_keys(state, tokens, out, extras);
}

// ---- Extra keys -------------------------------------------------------------------------------

std::vector<BlockExtra> compute_block_extras(std::span<const MultimodalItem> items,
                                             std::uint32_t block_size, std::int64_t num_tokens,
                                             std::string_view cache_salt) {
  const std::int64_t size = block_size;
  const std::int64_t count = std::max<std::int64_t>(0, num_tokens) / size;
  std::vector<BlockExtra> extras(static_cast<std::size_t>(count));
  std::vector<const MultimodalItem*> ordered;
  for (const MultimodalItem& item : items) ordered.push_back(&item);
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto* a, const auto* b) { return a->offset < b->offset; });
  for (const MultimodalItem* item : ordered) {
    if (item->length <= 0 || item->offset + item->length <= 0) continue;
    const std::int64_t first = std::max<std::int64_t>(0, item->offset) / size;
    const std::int64_t last = (item->offset + item->length - 1) / size;
    for (std::int64_t b = first; b <= last && b < count; ++b)
      extras[static_cast<std::size_t>(b)].push_back(item->identifier);
  }
  if (count > 0 && !cache_salt.empty()) extras[0].emplace_back(cache_salt);
  return extras;
}

std::vector<BlockExtra> realign_extras(std::span<const BlockExtra> engine, std::size_t count) {
  std::vector<BlockExtra> canonical(count);
  if (engine.empty() || count == 0) return canonical;
  if (engine.size() <= count) {
    for (std::size_t i = 0; i < count; ++i) canonical[i] = engine[i * engine.size() / count];
    return canonical;
  }
  for (std::size_t i = 0; i < engine.size(); ++i) {
    BlockExtra& target = canonical[i * count / engine.size()];
    target.insert(target.end(), engine[i].begin(), engine[i].end());
  }
  return canonical;
}

std::vector<std::int64_t> multimodal_blocks(std::span<const MultimodalItem> items,
                                            std::uint32_t block_size) {
  std::vector<std::int64_t> blocks;
  for (const MultimodalItem& item : items) {
    if (item.length <= 0) continue;
    const std::int64_t last = (item.offset + item.length - 1) / block_size;
    for (std::int64_t b = item.offset / block_size; b <= last; ++b) blocks.push_back(b);
  }
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  return blocks;
}

std::int64_t count_matched_blocks(std::span<const std::int64_t> blocks, std::int64_t match_len) {
  return std::count_if(blocks.begin(), blocks.end(),
                       [match_len](std::int64_t b) { return b < match_len; });
}

// ---- Approximate prefix hashes -----------------------------------------------------------------

std::uint32_t effective_approx_block(std::int64_t chosen) {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(chosen, kApproxMinBlockTokens, UINT32_MAX));
}

namespace {
std::uint64_t approx_seed(std::string_view model, std::string_view cache_salt) {
  std::string seed(model);
  seed += cache_salt;
  return xxh64(seed);
}
}  // namespace

std::vector<std::uint64_t> approx_hashes_tokens(std::span<const std::uint32_t> tokens,
                                                std::string_view model, std::string_view cache_salt,
                                                std::uint32_t block_size, std::size_t max_blocks) {
  std::vector<std::uint64_t> hashes;
  append_approx_hashes(tokens, model, cache_salt, block_size, max_blocks, hashes);
  return hashes;
}

void append_approx_hashes(std::span<const std::uint32_t> tokens, std::string_view model,
                          std::string_view cache_salt, std::uint32_t block_size,
                          std::size_t max_blocks, std::vector<std::uint64_t>& hashes) {
  ROUTESIM_CHECK(block_size >= 1, "a block holds at least one token");
  const std::size_t first = hashes.size();
  std::size_t count = first + (tokens.size() + block_size - 1) / block_size;
  if (max_blocks != 0) count = std::max(first, std::min(count, max_blocks));
  std::uint64_t previous = first > 0 ? hashes.back() : approx_seed(model, cache_salt);
  hashes.resize(count);
  for (std::size_t i = first; i < count; ++i) {
    const std::size_t from = (i - first) * block_size;
    const auto block =
        tokens.subspan(from, std::min<std::size_t>(block_size, tokens.size() - from));
    const std::array<std::uint64_t, 2> pair = {XXH64(block.data(), block.size_bytes(), 0),
                                               previous};
    hashes[i] = previous = XXH64(pair.data(), sizeof pair, 0);
  }
}

std::vector<std::uint64_t> approx_hashes_bytes(std::string_view text, std::string_view model,
                                               std::string_view cache_salt, std::size_t chunk_bytes,
                                               bool hash_tail, std::size_t max_blocks) {
  ROUTESIM_CHECK(chunk_bytes >= 1, "a chunk holds at least one byte");
  std::vector<std::uint64_t> hashes;
  if (text.size() < chunk_bytes) return hashes;
  std::size_t count = text.size() / chunk_bytes;
  if (hash_tail && text.size() % chunk_bytes != 0) ++count;
  if (max_blocks != 0) count = std::min(count, max_blocks);
  std::uint64_t previous = approx_seed(model, cache_salt);
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    bytes.assign(text.substr(i * chunk_bytes, chunk_bytes));
    append_bytes(bytes, &previous, sizeof previous);
    hashes.push_back(previous = xxh64(bytes));
  }
  return hashes;
}

std::vector<std::uint32_t> estimate_tokens(std::string_view text) {
  std::vector<std::uint32_t> tokens((text.size() + 3) / 4, 0);
  if (!text.empty()) std::memcpy(tokens.data(), text.data(), text.size());
  return tokens;
}

std::uint32_t fnv1a32(std::string_view bytes) {
  std::uint32_t h = 0x811c9dc5;
  for (const char c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 0x01000193;
  return h;
}

}  // namespace routesim::policies
