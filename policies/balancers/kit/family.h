// The header of a product family: the facts that it tells the registry of balancers, its releases
// as data, and its makers. It brings what such a header needs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/describe.h"
#include "base/rng.h"
#include "policies/balancers/kit/balancer.h"

namespace routesim::policies {

/// The role a balancer can play beside plain balancing.
enum class Disaggregation : std::uint8_t {
  kNo,        ///< Sends every request to one server.
  kPossible,  ///< Chooses a prefill server, too, where there are some.
  kRequired,  ///< Serves nothing without prefill servers.
};

/// A value that a balancer cannot be made with.
struct SettingFault {
  std::string key;  ///< `smg.release`.
  std::string message;
  std::string hint;
};

/// A product whose policies share settings. A family is a struct of such facts, its `Settings`, its
/// `releases`, its `policies`, which are an array of PolicyRow, and `make(policy, settings,
/// random)`. One with rules across its settings has `add_faults(settings, balancer, faults)`, too.
struct FamilyFacts {
  std::string_view section;  ///< Of its settings in `routing`.
  std::string_view settings;
  std::string_view product;
  std::string_view release;  ///< The release or commit whose source was read.
  Disaggregation disaggregation = Disaggregation::kNo;
};

/// One balancer of a family.
template <class Policy>
struct PolicyRow {
  Policy policy;
  std::string_view name;                 ///< In scenarios.
  std::string_view inputs;               ///< The information it decides on.
  std::string_view approximations = "";  ///< How it differs from the product, "" if it does not.
  std::string_view since = "";           ///< The first release that has it, "" = the first one.
  bool needs_prefill = false;            ///< It serves nothing without prefill servers.
};

/// A policy of class T, for a table of makers in the order of the policies. T is constructed from
/// (settings, random), from one of them, or from nothing.
template <class Base, class T, class Settings>
std::unique_ptr<Base> make_policy(const Settings& settings, const RandomStream& random) {
  if constexpr (std::is_constructible_v<T, const Settings&, const RandomStream&>)
    return std::make_unique<T>(settings, random);
  else if constexpr (std::is_constructible_v<T, const Settings&>)
    return std::make_unique<T>(settings);
  else if constexpr (std::is_constructible_v<T, const RandomStream&>)
    return std::make_unique<T>(random);
  else
    return std::make_unique<T>();
}

// ---- Releases. Products decide by different rules from release to release. A family lists them
// ---- oldest first, and its code asks whether a release is at least another.

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
