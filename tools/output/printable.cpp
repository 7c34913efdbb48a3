#include "tools/output/printable.h"

namespace routesim {

std::string printable(std::string_view text, std::size_t max_bytes) {
  bool cut = false;
  if (text.size() > max_bytes) {
    std::size_t end = max_bytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    text = text.substr(0, end);
    cut = true;
  }
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F ||
               (byte == 0xC2 && i + 1 < text.size() &&
                static_cast<unsigned char>(text[i + 1]) < 0xA0)) {
      // C0 controls, DEL, and the C1 controls, which UTF-8 writes as C2 80 .. C2 9F.
      out += "\\x";
      out += kHex[byte >> 4U];
      out += kHex[byte & 0xFU];
    } else {
      out += c;
    }
  }
  if (cut) out += "...";
  return out;
}

std::string in_quotes(std::string_view text) {
  std::string out(1, '\'');
  out.append(printable(text));
  out.push_back('\'');
  return out;
}

}  // namespace routesim
