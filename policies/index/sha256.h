// SHA-256 (FIPS 180-4), for the block keys of the releases that hashed with it. Not for secrets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace routesim::policies {

using Sha256Digest = std::array<std::uint8_t, 32>;

/// A running SHA-256. Feed bytes with update(), read the digest once with finish().
///
/// OpenSSL's libcrypto (3.0) hashes 64 to 300 bytes in three fifths to a tenth of the time where
/// the processor knows SHA, but loading it adds 2.7 million instructions to the 4.0 million of
/// `routesim --version`, and 4.7 MB to a bundle. A run spends 0.1 % of its instructions here.
class Sha256 {
 public:
  Sha256();
  void update(const void* data, std::size_t size);
  /// Pads and returns the digest. The object must not be used afterwards.
  Sha256Digest finish();

 private:
  void compress(const std::uint8_t* block);

  std::array<std::uint32_t, 8> state_;
  std::array<std::uint8_t, 64> pending_{};
  std::uint64_t total_ = 0;
};

Sha256Digest sha256(std::span<const std::uint8_t> bytes);

}  // namespace routesim::policies
