// Faults of an input, in compiler form. Libraries collect diagnostics; only tools print them:
// `file:line:col: error: path: what (got …)` and a hint line.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/key_fate.h"

namespace routesim {

/// The place that a value came from. Line and column count from 1; 0 means "the file as a whole".
struct SourceLocation {
  std::string file;  ///< Path as the user wrote it, or "--set".
  int line = 0;
  int column = 0;
};

enum class Severity { kError, kWarning };

struct Diagnostic {
  Severity severity = Severity::kError;
  SourceLocation where = {};
  std::string path = {};  ///< Dotted key path such as `cluster.pools[0].replicas`; may be empty.
  std::string message;    ///< The fault, ending in `(got …)` where a value is wrong.
  std::string hint = {};  ///< The remedy; may be empty.
};

/// The fate of one key of a file that was read.
struct KeyUse {
  SourceLocation where;
  std::string_view format;  ///< Name of the format (a literal), as in KeyTable.
  std::string path;         ///< Dotted path below the root of the format.
  Fate fate = Fate::kUsed;
  std::string why;  ///< The rule's reason; empty for keys that are simply used.
};

/// Everything that reading inputs tells: what is wrong, in order, and what became of each key.
class Diagnostics {
 public:
  void add(Diagnostic d) { items_.push_back(std::move(d)); }
  void error(SourceLocation where, std::string path, std::string message, std::string hint = {}) {
    add({Severity::kError, std::move(where), std::move(path), std::move(message), std::move(hint)});
  }
  void warning(SourceLocation where, std::string path, std::string message, std::string hint = {}) {
    add({Severity::kWarning, std::move(where), std::move(path), std::move(message),
         std::move(hint)});
  }
  bool has_errors() const {
    for (const Diagnostic& d : items_)
      if (d.severity == Severity::kError) return true;
    return false;
  }
  const std::vector<Diagnostic>& items() const { return items_; }

  /// Records the fate of a key. The same place may be recorded many times (variants share a base);
  /// whoever prints the ledger counts it once.
  void key(KeyUse use) { keys_.push_back(std::move(use)); }
  const std::vector<KeyUse>& keys() const { return keys_; }

 private:
  std::vector<Diagnostic> items_;
  std::vector<KeyUse> keys_;
};

/// `file:line:col: error: path: message` plus, when there is one, a second line `  hint: …`.
std::string to_string(const Diagnostic& d);

/// The candidate closest to `word` by edit distance, or "" when none is close enough to suggest.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

/// `did you mean CANDIDATE?` with the nearest candidate; `otherwise` when none is close enough.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates,
                         const std::string& otherwise = {});

/// The entry of one key. `is_off` says that its value switches nothing on: what is not modelled has
/// no effect then.
KeyUse key_use(SourceLocation where, std::string_view format, std::string path, Fate fate,
               std::string_view why, bool is_off = false);

}  // namespace routesim
