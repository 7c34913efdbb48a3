#include "policies/balancers/kit/family.h"

#include <charconv>

namespace routesim::policies {
namespace {

using Version = std::array<std::uint32_t, 3>;

/// "v1.13", "1.13.0", "1.13.0rc1" or "1.13.0.post1"; the parts behind the third do not count.
std::optional<Version> version_of(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  Version version{};
  for (std::size_t part = 0; part < version.size(); ++part) {
    const auto read = std::from_chars(text.data(), text.data() + text.size(), version[part]);
    if (read.ec != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
    if (!text.starts_with('.') || text.size() < 2 || text[1] < '0' || text[1] > '9')
      return part > 0 ? std::optional(version) : std::nullopt;
    text.remove_prefix(1);
  }
  return version;
}

}  // namespace

std::optional<std::size_t> find_release(std::span<const ReleaseRow> rows, std::string_view text) {
  if (text.empty()) {
    std::size_t newest = rows.size() - 1;
    while (newest > 0 && !version_of(rows[newest].version)) --newest;
    return newest;
  }
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (text == rows[i].version || (!rows[i].alias.empty() && text == rows[i].alias)) return i;
  const std::optional<Version> version = version_of(text);
  if (!version) return std::nullopt;
  std::size_t found = 0;
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (const auto own = version_of(rows[i].version); own && *own <= *version) found = i;
  return found;
}

std::string known_releases(std::span<const ReleaseRow> rows) {
  std::string text;
  for (const ReleaseRow& row : rows) {
    text.append(text.empty() ? "" : ", ").append(row.version);
    if (!row.alias.empty()) text.append(" (").append(row.alias).append(")");
  }
  return text;
}

}  // namespace routesim::policies
