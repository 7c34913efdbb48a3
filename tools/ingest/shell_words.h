// Command lines as people paste them: text split into commands and words the way a POSIX shell
// does it, with what can be said of its variables.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "tools/ingest/shell_places.h"

namespace routesim::tools {

/// One word of a command, quotes removed and known variables replaced.
struct ShellWord {
  std::string text = {};
  SourceLocation where = {};
  /// The first `$NAME`, `$(...)` in it whose value is not known here; it stands in `text` as it was
  /// written. Empty when everything is known.
  std::string unknown = {};
};

using ShellCommand = std::vector<ShellWord>;
using ShellVariables = std::map<std::string, ShellWord>;

/// Splits `text` into its commands, in order, without empty ones: quotes, backslashes, comments,
/// redirections (left out), `NAME=VALUE` and `export` (which fill `variables` for what follows),
/// `$NAME`, `${NAME:-default}`, `$((1 + NAME))` and Kubernetes' `$(NAME)`. A quote that is not
/// closed is an error, named with `key_path`. Words of a control structure stay words.
std::vector<ShellCommand> split_shell(const std::string& text, const ShellPlaces& places,
                                      ShellVariables& variables, const std::string& key_path,
                                      Diagnostics& diagnostics);

/// A word that no shell reads: only Kubernetes' `$(NAME)` is replaced.
ShellWord kubernetes_word(const ConfigNode& scalar, const ShellVariables& variables);

/// Length of the name that a word which opens with `NAME=` assigns to, else 0.
std::size_t assigned_name(std::string_view word);

}  // namespace routesim::tools
