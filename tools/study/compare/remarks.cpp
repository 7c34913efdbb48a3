#include <algorithm>

#include "base/text.h"
#include "tools/study/compare/comparison.h"

namespace routesim::tools {

namespace {

/// The basis of the compared variants' results, each sentence once with the variants it is true of.
std::vector<std::string> trust_of(const Comparison& c) {
  std::vector<std::pair<std::string, std::string>> said;  // The sentence and whose it is.
  const auto add = [&](const std::string& who, const std::string& text) {
    if (text.empty()) return;
    const auto same = std::ranges::find(said, text, &std::pair<std::string, std::string>::first);
    if (same == said.end())
      said.emplace_back(text, who);
    else
      same->second += ", " + who;
  };
  for (const VariantPair& pair : c.pairs) {
    add("base " + printable(pair.base->name), pair.base->trust);
    add("new " + printable(pair.changed->name), pair.changed->trust);
  }
  const bool everything =
      c.pairs.size() > 1 && !said.empty() && std::ranges::all_of(c.pairs, [&](const auto& pair) {
        return pair.base->trust == said.front().first && pair.changed->trust == said.front().first;
      });
  std::vector<std::string> lines;
  for (const auto& [text, who] : said)
    lines.push_back((everything ? "everything" : who) + ": " + printable(text, 500));
  return lines;
}

}  // namespace

std::vector<std::string> remarks_of(const Comparison& c) {
  std::vector<std::string> remarks;
  if (c.base->interrupted)
    remarks.emplace_back("the base was interrupted, its numbers are partial");
  if (c.changed->interrupted)
    remarks.emplace_back("the new result was interrupted, its numbers are partial");
  for (const std::string& name : c.missing)
    remarks.push_back("variant " + printable(name) + " of the base is not in the new result");
  const auto add = [&](const char* side, const VariantValues& v) {
    if (const std::string pooled = pooled_overload(v, c.stage); !pooled.empty())
      remarks.push_back(std::string(side) + ": " + printable(pooled, 300) +
                        ", so it is not judged; --stage compares one");
    const StageValues* const stage = find_stage(v, c.stage);
    if (stage != nullptr && stage->overloaded && pooled_overload(v, c.stage).empty())
      remarks.push_back(std::string(side) + ": " + printable(v.name) +
                        " is overloaded: its latencies depend on how long the stage lasts");
  };
  for (const VariantPair& pair : c.pairs) {
    add("base", *pair.base);
    add("new", *pair.changed);
  }
  for (std::string& trust : trust_of(c)) remarks.push_back(std::move(trust));
  return remarks;
}

}  // namespace routesim::tools
