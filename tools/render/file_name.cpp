#include "tools/render/file_name.h"

#include <map>

#include "policies/index/sha256.h"

namespace routesim::tools {

namespace {

constexpr std::size_t kMostBytes = 150;  ///< File systems allow 255, with room for a suffix.
constexpr std::string_view kUpper = "0123456789ABCDEF";
constexpr std::string_view kLower = "0123456789abcdef";

bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

void append_hex(std::string& out, unsigned byte, std::string_view digits) {
  out += digits[byte >> 4U];
  out += digits[byte & 0xFU];
}

std::string encoded(const std::string& name, bool escape_capitals) {
  if (name.empty()) return "%";
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
                       (c == '.' && !out.empty()) || (is_capital(c) && !escape_capitals);
    if (plain) {
      out += c;
    } else {
      out += '%';
      append_hex(out, static_cast<unsigned char>(c), kUpper);
    }
  }
  if (out.size() <= kMostBytes) return out;
  policies::Sha256 hash;
  hash.update(name.data(), name.size());
  const policies::Sha256Digest digest = hash.finish();
  // No other name has %~ in it.
  out.resize(kMostBytes - 2 - 2 * 8);
  out += "%~";
  for (std::size_t i = 0; i < 8; ++i) append_hex(out, digest[i], kLower);
  return out;
}

std::string lower_case(std::string text) {
  for (char& c : text)
    if (is_capital(c)) c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace

std::vector<std::string> file_names(const std::vector<std::string>& names) {
  std::map<std::string, int> sharing;
  for (const std::string& name : names) ++sharing[lower_case(encoded(name, false))];
  std::vector<std::string> files;
  files.reserve(names.size());
  for (const std::string& name : names)
    files.push_back(encoded(name, sharing[lower_case(encoded(name, false))] > 1));
  return files;
}

}  // namespace routesim::tools
