#include "tools/ingest/tree/ledger.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/diagnostic.h"
#include "base/text.h"
#include "base/tree_reader.h"

namespace routesim::tools {

namespace {

/// Longest path of a key in a list of keys.
constexpr std::size_t kLongestPath = 200;

/// How much a fate says about a result.
int weight(Fate fate) {
  constexpr std::array<int, 4> kWeights = {1, 0, 2, 3};  // In the order of the enumerators.
  return kWeights.at(static_cast<std::size_t>(fate));
}

}  // namespace

void note_keys(const ConfigNode& root, const std::string& path, const KeyTable& table,
               const ConfigNode* elsewhere, Diagnostics& diagnostics) {
  for_each_key(root, elsewhere,
               [&](const ConfigNode& node, const std::string& below, const SourceLocation& key) {
                 const KeyRule* rule = find_rule(table, below);
                 KeyUse use = key_use(key, table.format, path.empty() ? below : path + "." + below,
                                      rule == nullptr ? Fate::kUsed : rule->fate,
                                      rule == nullptr ? "" : rule->why, is_off(node));
                 if (use.fate == Fate::kNotModelled)
                   diagnostics.warning(key, use.path, "is not modelled: " + use.why);
                 diagnostics.key(std::move(use));
               });
}

std::vector<KeyUse> ledger(const Diagnostics& diagnostics) {
  // A key without a line (`--set`), or in one text with others (a command), is told apart by its
  // path. Elsewhere two readers may name the same key by different paths.
  using Place = std::tuple<std::string, int, int, std::string>;
  const auto shares_text = [](std::string_view format) {
    return format == kServeFormat || format == kLaunchFormat || format == "router configuration" ||
           format.starts_with(kTransferFormat);
  };
  std::map<Place, KeyUse> once;
  for (const KeyUse& use : diagnostics.keys()) {
    Place place{use.where.file, use.where.line, use.where.column,
                use.where.line > 0 && !shares_text(use.format) ? std::string() : use.path};
    const auto [at, is_new] = once.emplace(std::move(place), use);
    if (!is_new && weight(use.fate) > weight(at->second.fate)) at->second = use;
  }
  std::vector<KeyUse> keys;
  for (auto& entry : once) keys.push_back(std::move(entry.second));
  return keys;
}

std::string summary_text(std::span<const KeyUse> keys) {
  std::array<std::size_t, 4> counts{};
  for (const KeyUse& use : keys) ++counts.at(static_cast<std::size_t>(use.fate));
  std::string text = std::to_string(counts[0]) + (counts[0] == 1 ? " key used" : " keys used");
  const auto add = [&](Fate fate, const char* words) {
    const std::size_t n = counts.at(static_cast<std::size_t>(fate));
    if (n > 0) text += ", " + std::to_string(n) + " " + words;
  };
  add(Fate::kNoEffect, "without effect");
  add(Fate::kApproximated, "approximated");
  add(Fate::kNotModelled, "not modelled");
  return text;
}

std::string keys_text(std::span<const KeyUse> keys) {
  std::string text;
  for (const KeyUse& use : keys) {
    text += printable(use.where.file, kLongestPath);
    if (use.where.line > 0)
      text.append(":")
          .append(std::to_string(use.where.line))
          .append(":")
          .append(std::to_string(use.where.column));
    text.append(": ").append(fate_name(use.fate)).append(": ");
    text += printable(use.path, kLongestPath);
    if (!use.why.empty()) text.append(" (").append(use.why).append(")");
    text += '\n';
  }
  return text;
}

}  // namespace routesim::tools
