#include "policies/balancers/kit/hashes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

// Everything inline: no library to link for whoever installs routesim::policies.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace routesim::policies {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie");

std::uint64_t read_64(const char* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, 8);
  return word;
}

// ---- BLAKE3 (github.com/BLAKE3-team/BLAKE3-specs).
// -----------------------------------------------

using Blake3Words = std::array<std::uint32_t, 8>;
constexpr Blake3Words kBlake3Start = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                                      0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};
constexpr std::array<std::size_t, 16> kBlake3Order = {2, 6,  3,  10, 7, 0,  4,  13,
                                                      1, 11, 12, 5,  9, 14, 15, 8};
constexpr std::uint32_t kChunkStart = 1, kChunkEnd = 2, kParent = 4, kRootFlag = 8;
constexpr std::size_t kChunk = 1024, kBlake3Block = 64;

Blake3Words blake3_compress(const Blake3Words& chain, std::array<std::uint32_t, 16> message,
                            std::uint64_t counter, std::uint32_t length, std::uint32_t flags) {
  std::array<std::uint32_t, 16> v{};
  std::copy(chain.begin(), chain.end(), v.begin());
  std::copy(kBlake3Start.begin(), kBlake3Start.begin() + 4, v.begin() + 8);
  v[12] = static_cast<std::uint32_t>(counter);
  v[13] = static_cast<std::uint32_t>(counter >> 32);
  v[14] = length;
  v[15] = flags;
  const auto mix = [&](std::size_t a, std::size_t b, std::size_t c, std::size_t d, std::size_t m) {
    v[a] += v[b] + message[m];
    v[d] = std::rotr(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = std::rotr(v[b] ^ v[c], 12);
    v[a] += v[b] + message[m + 1];
    v[d] = std::rotr(v[d] ^ v[a], 8);
    v[c] += v[d];
    v[b] = std::rotr(v[b] ^ v[c], 7);
  };
  for (int round = 0; round < 7; ++round) {
    for (std::size_t i = 0; i < 4; ++i) mix(i, 4 + i, 8 + i, 12 + i, 2 * i);
    for (std::size_t i = 0; i < 4; ++i)
      mix(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, 8 + 2 * i);
    std::array<std::uint32_t, 16> next{};
    for (std::size_t i = 0; i < 16; ++i) next[i] = message[kBlake3Order[i]];
    message = next;
  }
  Blake3Words out{};
  for (std::size_t i = 0; i < 8; ++i) out[i] = v[i] ^ v[i + 8];
  return out;
}

/// The tree over `bytes`, whose first chunk is number `chunk`.
Blake3Words blake3_tree(std::string_view bytes, std::uint64_t chunk, std::uint32_t flags) {
  if (bytes.size() > kChunk) {
    const std::size_t left = std::bit_floor((bytes.size() - 1) / kChunk) * kChunk;
    const Blake3Words a = blake3_tree(bytes.substr(0, left), chunk, 0);
    const Blake3Words b = blake3_tree(bytes.substr(left), chunk + left / kChunk, 0);
    std::array<std::uint32_t, 16> both{};
    std::copy(a.begin(), a.end(), both.begin());
    std::copy(b.begin(), b.end(), both.begin() + 8);
    return blake3_compress(kBlake3Start, both, 0, kBlake3Block, kParent | flags);
  }
  Blake3Words chain = kBlake3Start;
  std::uint32_t start = kChunkStart;
  for (std::size_t at = 0;; at += kBlake3Block) {
    const std::size_t length = std::min(bytes.size() - at, kBlake3Block);
    std::array<std::uint32_t, 16> message{};
    std::memcpy(message.data(), bytes.data() + at, length);
    const bool last = at + length == bytes.size();
    chain = blake3_compress(chain, message, chunk, static_cast<std::uint32_t>(length),
                            start | (last ? kChunkEnd | flags : 0));
    if (last) return chain;
    start = 0;
  }
}

// ---- furc (github.com/facebook/mcrouter, mcrouter/lib/fbi/hash.c).
// -------------------------------

constexpr std::uint32_t kFurcSeed = 4'193'360'111U;
constexpr std::uint32_t kFurcBuckets = (1U << 23) - 1;

/// An endless row of bits: the hash of the key, the hash of that hash, and so on.
class FurcBits {
 public:
  explicit FurcBits(std::string_view key) { words_.push_back(murmur_hash_64a(key, kFurcSeed)); }
  bool operator[](std::uint32_t at) {
    while (words_.size() <= at / 64) {
      char bytes[8];
      std::memcpy(bytes, &words_.back(), 8);
      words_.push_back(murmur_hash_64a({bytes, 8}, kFurcSeed));
    }
    return ((words_[at / 64] >> (at % 64)) & 1) != 0;
  }

 private:
  std::vector<std::uint64_t> words_;
};

std::uint32_t furc(std::string_view key) {
  constexpr std::uint32_t kShift = 23;
  constexpr int kTries = 32;
  FurcBits bits(key);
  std::uint32_t depth = 23;  // 2^23 is the first power of two from kFurcBuckets on.
  std::uint32_t at = depth;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    while (!bits[at]) {
      if (depth == 0) return 0;
      at = --depth;
    }
    at += kShift;
    std::uint32_t number = 1;
    for (std::uint32_t i = 1; i < depth; ++i) {
      number = (number << 1) | static_cast<std::uint32_t>(bits[at]);
      at += kShift;
    }
    if (number < kFurcBuckets) return number;
  }
  return 0;
}

}  // namespace

std::uint64_t blake3_64(std::string_view bytes) {
  const Blake3Words root = blake3_tree(bytes, 0, kRootFlag);
  return root[0] | (std::uint64_t{root[1]} << 32);
}

std::uint64_t xxh3_64(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::uint64_t murmur_hash_64a(std::string_view bytes, std::uint64_t seed) {
  constexpr std::uint64_t kMultiplier = 0xc6a4a7935bd1e995ULL;
  const auto mix = [](std::uint64_t v) { return v ^ (v >> 47); };
  const std::size_t whole = bytes.size() & ~std::size_t{7};
  std::uint64_t hash = seed ^ (bytes.size() * kMultiplier);
  for (std::size_t at = 0; at < whole; at += 8)
    hash = (hash ^ (mix(read_64(bytes.data() + at) * kMultiplier) * kMultiplier)) * kMultiplier;
  if (bytes.size() > whole) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + whole, bytes.size() - whole);
    hash = (hash ^ word) * kMultiplier;
  }
  return mix(mix(hash) * kMultiplier);
}

std::uint64_t fbi_hash(std::string_view key) {
  const std::uint32_t number = furc(key);
  char bytes[4];
  std::memcpy(bytes, &number, 4);
  return murmur_hash_64a({bytes, 4}, kFurcSeed);
}

}  // namespace routesim::policies
