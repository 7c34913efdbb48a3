#include "workloads/traces/text_blocks.h"

#include <cmath>

#include "base/rng.h"
#include "workloads/traces/text_scan.h"

namespace routesim::workloads {
namespace {

constexpr std::int64_t kToken = 1'000'000;  // Millionths.
constexpr std::int64_t kBlock = kTextBlockTokens * kToken;

}  // namespace

TextBlocks::TextBlocks(double scale)
    : narrow_(std::llround(kToken * scale / kCharactersPerToken)),
      wide_(std::llround(kToken * scale * kTokensPerWideCharacter)) {}

void TextBlocks::hash(char byte) {
  state_ = (state_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;  // FNV-1a.
}

void TextBlocks::grow(std::int64_t millionths) {
  length_ += millionths;
  while (length_ >= kBlock * (std::ssize(ids_) + 1)) ids_.push_back(mix64(state_, ids_.size()));
}

void TextBlocks::add(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    // One code point: a byte and those that continue it.
    const std::size_t begin = i;
    do hash(text[i++]);
    while (i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U);
    grow(count_wide_code_points(text.substr(begin, i - begin)) > 0 ? wide_ : narrow_);
  }
}

void TextBlocks::add_tokens(std::string_view bytes, std::int64_t tokens) {
  for (const char byte : bytes) hash(byte);
  grow(tokens * kToken);
}

std::int64_t TextBlocks::tokens() const { return (length_ + kToken - 1) / kToken; }

std::vector<std::uint64_t> TextBlocks::ids() const {
  std::vector<std::uint64_t> all = ids_;
  if (length_ > kBlock * std::ssize(ids_)) all.push_back(mix64(state_, ids_.size()));
  return all;
}

}  // namespace routesim::workloads
