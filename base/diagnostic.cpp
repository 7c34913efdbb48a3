#include "base/diagnostic.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/text.h"

namespace routesim {

namespace {

/// Our own messages may have several lines. The later ones are indented: a name with a line break
/// in it cannot pass for another error.
std::string part(const std::string& text) {
  std::string out;
  for (const char c : escaped(shortened(text, kLongestMessage), "\n")) {
    if (!out.empty() && out.back() == '\n' && c != ' ') out += "  ";
    out += c;
  }
  return out;
}

}  // namespace

std::string to_string(const Diagnostic& d) {
  std::string out = d.where.file.empty() ? std::string("<input>") : escaped(d.where.file);
  if (d.where.line > 0)
    out += ":" + std::to_string(d.where.line) + ":" + std::to_string(d.where.column);
  out += d.severity == Severity::kError ? ": error: " : ": warning: ";
  if (!d.path.empty()) out += part(d.path) + ": ";
  out += part(d.message);
  if (!d.hint.empty()) out += "\n  hint: " + part(d.hint);
  return out;
}

namespace {

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    // Lengths that differ by as much cannot be closer; a text of megabytes is not compared at all.
    const auto [shorter, longer] = std::minmax({word.size(), candidate.size()});
    if (longer - shorter >= best_distance) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates,
                         const std::string& otherwise) {
  const std::string close = nearest(word, candidates);
  return close.empty() ? otherwise : "did you mean " + close + "?";
}

KeyUse key_use(SourceLocation where, std::string_view format, std::string path, Fate fate,
               std::string_view why, bool is_off) {
  const bool is_moot = is_off && fate == Fate::kNotModelled;
  return {.where = std::move(where),
          .format = format,
          .path = std::move(path),
          .fate = is_moot ? Fate::kNoEffect : fate,
          .why = std::string(is_moot ? "it is switched off" : why)};
}

}  // namespace routesim
