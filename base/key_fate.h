// The ledger of input keys: what becomes of each key that a file may hold. Every format has one
// table of rules next to its reader; a described struct (describe.h) is its own table.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace routesim {

/// The fate of a key.
enum class Fate : std::uint8_t {
  kUsed,          ///< The result depends on it, as it does in the real system.
  kNoEffect,      ///< The result would not depend on it in the real system either.
  kApproximated,  ///< Used, but more simply than the real system uses it.
  kNotModelled,   ///< The real system uses it and routesim does not: a warning or an error.
};

/// "used", "no effect", "approximated", "not modelled".
std::string_view fate_name(Fate fate);

/// The fate of all keys whose path matches a pattern.
struct KeyRule {
  /// Dotted path below the format's root. `*` stands for any one key, `[]` for any index, and
  /// `**` for any keys: as the last part for at least one, elsewhere for none, too.
  std::string_view pattern;
  Fate fate = Fate::kUsed;
  /// A reason, required unless the key is used: why it has no effect, how it is approximated, what
  /// is left out.
  std::string_view why = {};
};

/// Keys that share a fate, separated by blanks.
struct KeyGroup {
  Fate fate;
  std::string_view why;     ///< Empty where the keys are used.
  std::string_view prefix;  ///< Stands before each key, with a dot; may be empty.
  std::string_view keys;
};

/// All rules of one format.
struct KeyTable {
  std::string_view format;  ///< `inference-perf`, as messages and the reference page name it.
  std::string_view source;  ///< Where the keys come from: project, file and releases.
  std::span<const KeyRule> rules;
};

/// A table whose rules are those of groups, in their order.
class GroupedTable {
 public:
  GroupedTable(std::string_view format, std::string_view source, std::span<const KeyGroup> groups);
  const KeyTable& table() const { return table_; }

 private:
  std::deque<std::string> patterns_;  ///< The rules refer to them, and the table to the rules.
  std::vector<KeyRule> rules_;
  KeyTable table_;
};

/// The most specific rule of the table for a path such as `a.b[3].c`, or nullptr: a literal key is
/// more specific than `*`, and any of them than `**`. Linear in the table.
const KeyRule* find_rule(const KeyTable& table, std::string_view path);

}  // namespace routesim
