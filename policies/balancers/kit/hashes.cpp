#include "policies/balancers/kit/hashes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <string>
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

// ---- BLAKE3 (github.com/BLAKE3-team/BLAKE3-specs) ----------------------------------------------

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

// ---- MD5 (RFC 1321) ----------------------------------------------------------------------------

using Md5State = std::array<std::uint32_t, 4>;

void add_md5_block(Md5State& state, const char* block) {
  static constexpr std::array<std::uint32_t, 64> kSines = {
      0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613,
      0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193,
      0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
      0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
      0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122,
      0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
      0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
      0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
      0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
      0xeb86d391};
  static constexpr std::array<std::array<int, 4>, 4> kShifts = {
      {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};
  std::array<std::uint32_t, 16> words{};
  for (std::size_t i = 0; i < 64; ++i)
    words[i / 4] |= std::uint32_t{static_cast<unsigned char>(block[i])} << (8 * (i % 4));
  auto [a, b, c, d] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    std::uint32_t f = 0;
    std::size_t word = i;
    switch (i / 16) {
      case 0:
        f = (b & c) | (~b & d);
        break;
      case 1:
        f = (d & b) | (~d & c);
        word = 5 * i + 1;
        break;
      case 2:
        f = b ^ c ^ d;
        word = 3 * i + 5;
        break;
      default:
        f = c ^ (b | ~d);
        word = 7 * i;
    }
    f += a + kSines[i] + words[word % 16];
    a = d;
    d = c;
    c = b;
    b += std::rotl(f, kShifts[i / 16][i % 4]);
  }
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
}

// ---- furc (github.com/facebook/mcrouter, mcrouter/lib/fbi/hash.c) ------------------------------

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

Md5Number md5(std::string_view bytes) {
  std::string padded(bytes);
  padded += '\x80';
  padded.append((120 - padded.size() % 64) % 64, '\0');
  for (int shift = 0; shift < 64; shift += 8)
    padded += static_cast<char>(std::uint64_t{bytes.size()} * 8 >> shift);
  Md5State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for (std::size_t at = 0; at < padded.size(); at += 64) add_md5_block(state, padded.data() + at);
  const auto big = [](std::uint32_t word) { return std::uint64_t{__builtin_bswap32(word)}; };
  return {.high = big(state[0]) << 32 | big(state[1]), .low = big(state[2]) << 32 | big(state[3])};
}

std::uint64_t fbi_hash(std::string_view key) {
  const std::uint32_t number = furc(key);
  char bytes[4];
  std::memcpy(bytes, &number, 4);
  return murmur_hash_64a({bytes, 4}, kFurcSeed);
}

}  // namespace routesim::policies
