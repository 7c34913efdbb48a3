#include "policies/balancers/hashes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"

namespace routesim::policies {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie");
__extension__ using Wide = unsigned __int128;

std::uint32_t read_32(const char* at) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, 4);
  return word;
}
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
constexpr std::uint32_t kChunkStart = 1, kChunkEnd = 2, kParent = 4, kRoot = 8;
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

// ---- XXH3 (github.com/Cyan4973/xxHash, doc/xxhash_spec.md).
// --------------------------------------

constexpr std::uint64_t kPrime32a = 0x9E3779B1, kPrime32b = 0x85EBCA77, kPrime32c = 0xC2B2AE3D;
constexpr std::uint64_t kPrime64a = 0x9E3779B185EBCA87, kPrime64b = 0xC2B2AE3D27D4EB4F,
                        kPrime64c = 0x165667B19E3779F9, kPrime64d = 0x85EBCA77C2B2AE63,
                        kPrime64e = 0x27D4EB2F165667C5;
constexpr std::array<std::uint64_t, 24> kSecretWords = {
    0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072,
    0x78e5c0cc4ee679cb, 0x2172ffcc7dd05a82, 0x8e2443f7744608b8, 0x4c263a81e69035e0,
    0xcb00c391bb52283c, 0xa32e531b8b65d088, 0x4ef90da297486471, 0xd8acdea946ef1938,
    0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a, 0x647378d9c97e9fc8,
    0xc3ebd33483acc5ea, 0xeb6313faffa081c5, 0x49daf0b751dd0d17, 0x9e68d429265516d3,
    0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af};

std::uint64_t secret(std::size_t at) {
  return read_64(reinterpret_cast<const char*>(kSecretWords.data()) + at);
}
std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}
std::uint64_t avalanche(std::uint64_t h) {
  h = (h ^ (h >> 37)) * 0x165667919E3779F9ULL;
  return h ^ (h >> 32);
}
std::uint64_t mix_16(const char* at, std::size_t key) {
  return fold(read_64(at) ^ secret(key), read_64(at + 8) ^ secret(key + 8));
}

std::uint64_t xxh3_short(const char* p, std::size_t n) {
  if (n <= 8) {
    const std::uint64_t word = read_32(p + n - 4) + (std::uint64_t{read_32(p)} << 32);
    std::uint64_t h = word ^ secret(8) ^ secret(16);
    h ^= std::rotl(h, 49) ^ std::rotl(h, 24);
    h *= 0x9FB21C651E98DF25ULL;
    h = (h ^ ((h >> 35) + n)) * 0x9FB21C651E98DF25ULL;
    return h ^ (h >> 28);
  }
  const std::uint64_t low = read_64(p) ^ secret(24) ^ secret(32);
  const std::uint64_t high = read_64(p + n - 8) ^ secret(40) ^ secret(48);
  return avalanche(n + __builtin_bswap64(low) + high + fold(low, high));
}

std::uint64_t xxh3_middle(const char* p, std::size_t n) {
  std::uint64_t sum = n * kPrime64a;
  if (n <= 128) {
    for (std::size_t i = (n - 1) / 32 + 1; i-- > 0;)
      sum += mix_16(p + 16 * i, 32 * i) + mix_16(p + n - 16 * (i + 1), 32 * i + 16);
    return avalanche(sum);
  }
  for (std::size_t i = 0; i < 8; ++i) sum += mix_16(p + 16 * i, 16 * i);
  sum = avalanche(sum);
  for (std::size_t i = 8; i < n / 16; ++i) sum += mix_16(p + 16 * i, 16 * (i - 8) + 3);
  return avalanche(sum + mix_16(p + n - 16, 136 - 17));
}

using Xxh3Sums = std::array<std::uint64_t, 8>;
void xxh3_stripe(Xxh3Sums& sums, const char* p, std::size_t key) {
  for (std::size_t i = 0; i < 8; ++i) {
    const std::uint64_t word = read_64(p + 8 * i);
    const std::uint64_t keyed = word ^ secret(key + 8 * i);
    sums[i ^ 1] += word;
    sums[i] += (keyed & 0xffffffff) * (keyed >> 32);
  }
}

std::uint64_t xxh3_long(const char* p, std::size_t n) {
  constexpr std::size_t kStripe = 64, kStripes = 16, kKeyEnd = 192 - kStripe;
  Xxh3Sums sums = {kPrime32c, kPrime64a, kPrime64b, kPrime64c,
                   kPrime64d, kPrime32b, kPrime64e, kPrime32a};
  for (std::size_t stripe = 0; stripe < (n - 1) / kStripe; ++stripe) {
    xxh3_stripe(sums, p + stripe * kStripe, stripe % kStripes * 8);
    if (stripe % kStripes + 1 < kStripes) continue;
    for (std::size_t i = 0; i < 8; ++i)
      sums[i] = (sums[i] ^ (sums[i] >> 47) ^ secret(kKeyEnd + 8 * i)) * kPrime32a;
  }
  xxh3_stripe(sums, p + n - kStripe, kKeyEnd - 7);
  std::uint64_t sum = n * kPrime64a;
  for (std::size_t i = 0; i < 4; ++i)
    sum += fold(sums[2 * i] ^ secret(11 + 16 * i), sums[2 * i + 1] ^ secret(19 + 16 * i));
  return avalanche(sum);
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
  const Blake3Words root = blake3_tree(bytes, 0, kRoot);
  return root[0] | (std::uint64_t{root[1]} << 32);
}

std::uint64_t xxh3_64(std::string_view bytes) {
  ROUTESIM_CHECK(bytes.size() >= 4, "XXH3 of fewer than 4 bytes is another rule");
  if (bytes.size() <= 16) return xxh3_short(bytes.data(), bytes.size());
  if (bytes.size() <= 240) return xxh3_middle(bytes.data(), bytes.size());
  return xxh3_long(bytes.data(), bytes.size());
}

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
