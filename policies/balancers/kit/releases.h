// Releases of products whose routers decide by different rules. A family lists them as data, oldest
// first, and its code asks whether a release is at least another: it never compares versions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/describe.h"

namespace routesim::policies {

/// The first release of a product with these rules.
struct ReleaseRow {
  std::string_view version;  ///< Or a commit that no release is known to have; said by name only.
  std::string_view alias;    ///< Another name of the row in scenarios, "" for none.
  std::string_view rules;    ///< The change against the row before, for messages.
};

/// The row of a release: by version or alias, else the last row whose version is not larger, and
/// the first one for older versions. "" stands for the newest row that is a version. Nothing for a
/// text that is no version.
std::optional<std::size_t> find_release(std::span<const ReleaseRow> rows, std::string_view text);
/// The versions of the rows and their other names, for messages.
std::string known_releases(std::span<const ReleaseRow> rows);

/// The setting that names a release.
inline void release_field(Describer& d, std::string& text) {
  field(d,
        {.name = "release",
         .doc = "Version of the product whose rules apply; the newest known where absent.",
         .plain = true},
        text);
}

/// The same as an enumerator; the newest for a text that setting_faults() refuses.
template <class Release>
Release release_of(std::span<const ReleaseRow> rows, std::string_view text) {
  return static_cast<Release>(find_release(rows, text).value_or(*find_release(rows, "")));
}

}  // namespace routesim::policies
