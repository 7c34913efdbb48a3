#include "base/text.h"

namespace routesim {

namespace {

/// Whether a C1 control in UTF-8 begins at `i`.
bool is_c1(std::string_view text, std::size_t i) {
  return text[i] == '\xC2' && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

}  // namespace

std::string escaped(std::string_view text, std::string_view keep) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    // C0 controls, DEL, and the C1 controls, which UTF-8 writes as C2 80 .. C2 9F.
    const bool c1 = is_c1(text, i) || (i > 0 && is_c1(text, i - 1));
    const bool control = byte < 0x20 || byte == 0x7F || c1;
    if (!control || keep.find(c) != std::string_view::npos) {
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      out += "\\x";
      out += kHex[byte >> 4U];
      out += kHex[byte & 0xFU];
    }
  }
  return out;
}

std::string_view head_of(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  std::size_t end = max_bytes;
  while (end > 0 && is_continuation(text[end])) --end;
  return text.substr(0, end);
}

std::string shortened(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  constexpr std::string_view kGap = " [...] ";
  const std::size_t tail = max_bytes / 4;
  std::size_t begin = text.size() - tail;
  while (begin < text.size() && is_continuation(text[begin])) ++begin;
  std::string out(head_of(text, max_bytes - tail - kGap.size()));
  out += kGap;
  out += text.substr(begin);
  return out;
}

}  // namespace routesim
