#include "base/printable.h"

#include "base/text.h"

namespace routesim {

std::string printable(std::string_view text, std::size_t max_bytes) {
  const std::string_view head = head_of(text, max_bytes);
  return escaped(head) + (head.size() < text.size() ? "..." : "");
}

std::string in_quotes(std::string_view text) {
  std::string out(1, '\'');
  out.append(printable(text));
  out.push_back('\'');
  return out;
}

}  // namespace routesim
