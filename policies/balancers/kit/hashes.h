// Hash functions that other products' routers place servers and requests with.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

namespace routesim::policies {

/// The first 8 bytes of BLAKE3, little-endian.
std::uint64_t blake3_64(std::string_view bytes);

/// XXH3 of 64 bits with seed 0.
std::uint64_t xxh3_64(std::string_view bytes);

std::uint64_t murmur_hash_64a(std::string_view bytes, std::uint64_t seed);

/// A digest as one big-endian number of 128 bits.
struct Md5Number {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const Md5Number&) const = default;
};

/// MD5 (RFC 1321), which hash rings of Python libraries use. Our own for the reasons that stand at
/// Sha256; a ring hashes once per request.
Md5Number md5(std::string_view bytes);

/// The hash of Facebook's mcrouter as vllm-project/router (src/policies/consistent_hash.rs
/// @080589a0) has it: furc with 2^23 - 1 buckets, widened by MurmurHash64A.
std::uint64_t fbi_hash(std::string_view key);

}  // namespace routesim::policies
