#include "base/key_fate.h"

#include <optional>
#include <sstream>

namespace routesim {

namespace {

/// Takes the first part off a path: `a`, `[]` for an index, or "" at the end.
std::string_view take_part(std::string_view& path) {
  if (path.empty()) return {};
  if (path.front() == '[') {
    const std::size_t close = path.find(']');
    path.remove_prefix(close == std::string_view::npos ? path.size() : close + 1);
    if (!path.empty() && path.front() == '.') path.remove_prefix(1);
    return "[]";
  }
  const std::size_t end = path.find_first_of(".[");
  const std::string_view part = path.substr(0, end);
  path.remove_prefix(part.size());
  if (!path.empty() && path.front() == '.') path.remove_prefix(1);
  return part;
}

/// How specific a match is: one digit per part, most significant first, compared as text.
std::optional<std::string> match(std::string_view pattern, std::string_view path) {
  std::string rank;
  while (!pattern.empty()) {
    const std::string_view wanted = take_part(pattern);
    if (wanted == "**" && pattern.empty())
      return path.empty() ? std::nullopt : std::optional(rank + '0');
    if (wanted == "**") {  // Below any keys, or none.
      for (std::optional<std::string> rest; true; (void)take_part(path)) {
        if (rest = match(pattern, path); rest) return rank + '0' + *rest;
        if (path.empty()) return std::nullopt;
      }
    }
    if (path.empty()) return std::nullopt;
    const std::string_view part = take_part(path);
    if (wanted == "*" && part != "[]")
      rank += '1';
    else if (wanted == part)
      rank += '2';
    else
      return std::nullopt;
  }
  return path.empty() ? std::optional(rank) : std::nullopt;
}

}  // namespace

GroupedTable::GroupedTable(std::string_view format, std::string_view source,
                           std::span<const KeyGroup> groups) {
  for (const KeyGroup& group : groups) {
    std::istringstream keys{std::string(group.keys)};
    const std::string before(group.prefix);
    for (std::string key; keys >> key;)
      rules_.push_back({patterns_.emplace_back(before + (before.empty() ? "" : ".") + key),
                        group.fate, group.why});
  }
  table_ = {format, source, rules_};
}

std::string_view fate_name(Fate fate) {
  switch (fate) {
    case Fate::kUsed:
      return "used";
    case Fate::kNoEffect:
      return "no effect";
    case Fate::kApproximated:
      return "approximated";
    case Fate::kNotModelled:
      return "not modelled";
  }
  return {};
}

const KeyRule* find_rule(const KeyTable& table, std::string_view path) {
  const KeyRule* best = nullptr;
  std::string best_rank;
  for (const KeyRule& rule : table.rules) {
    const std::optional<std::string> rank = match(rule.pattern, path);
    if (!rank || (best != nullptr && *rank <= best_rank)) continue;
    best = &rule;
    best_rank = *rank;
  }
  return best;
}

}  // namespace routesim
