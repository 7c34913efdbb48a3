// The bytes of a prompt that a router hashes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "base/rng.h"
#include "base/text.h"
#include "policies/balancers/kit/prompt_text.h"

namespace routesim::policies {

/// The first characters of a text in UTF-8. A simulated text has no characters: it gets a name of
/// more than 100 bytes, which two texts share exactly when they begin alike.
inline std::string text_name(const PromptText& text, std::int64_t characters = 1LL << 50) {
  std::string name;
  bool real = true;
  std::uint64_t hash = 0;
  auto left = static_cast<std::int64_t>(
      std::ceil(static_cast<double>(characters) / text.characters_per_unit));
  for (const TextRun& r : text.runs) {
    const std::int64_t length = std::min(r.length, left);
    if (length <= 0) break;
    left -= length;
    real = real && r.length == 1 && r.offset == 0 && r.content < 0x110000;
    const int tails = r.content < 0x80 ? 0 : r.content < 0x800 ? 1 : r.content < 0x10000 ? 2 : 3;
    constexpr std::array<int, 4> kLead = {0, 0xc0, 0xe0, 0xf0};
    for (int t = tails; real && t >= 0; --t) {
      const auto bits = static_cast<int>(r.content >> (6 * t));
      name += static_cast<char>(t == tails ? kLead[tails] | bits : 0x80 | (bits & 0x3f));
    }
    hash = mix64(mix64(mix64(hash, r.content), static_cast<std::uint64_t>(r.offset)),
                 static_cast<std::uint64_t>(length));
  }
  return real ? name : "simulated " + hex_digits(hash) + std::string(100, '.');
}

}  // namespace routesim::policies
