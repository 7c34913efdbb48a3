// Splits command lines into commands and words, as a POSIX shell does for the part of its language
// that published start scripts use.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"

namespace routesim::tools {

/// The place of a character of a text, from its line and its column, both from 0.
using ShellPlaces = std::function<SourceLocation(int line, int column)>;

/// The places inside a scalar: exact in a literal block, else the scalar's own.
ShellPlaces places_in(const ConfigNode& scalar);
ShellPlaces places_in_file(const std::string& path);

/// The text of a scalar as a shell reads it. YAML joins the lines of a plain or folded scalar, so a
/// backslash before a blank stood at the end of a line.
std::string shell_text(const ConfigNode& scalar);

/// One word of a command, quotes removed and known variables replaced.
struct ShellWord {
  std::string text = {};
  SourceLocation where = {};
  /// The first expansion in the word whose value is not known; `text` has it as written.
  std::string unknown = {};
};

using ShellCommand = std::vector<ShellWord>;
using ShellVariables = std::map<std::string, ShellWord>;

/// Splits `text` into its commands, in order, without empty ones. Reads quotes, backslashes,
/// comments, redirections (left out), `NAME=VALUE` and `export` (which set `variables` for later
/// commands), `$NAME`, `${NAME:-default}`, `${NAME:+other}`, `$((2 * NAME))` and Kubernetes'
/// `$(NAME)`. The commands of `if`, `for` and `while` are commands like others, and what they
/// assign is not known. `case`, functions, lists and back quotes are errors, named with `key_path`.
std::vector<ShellCommand> split_shell(const std::string& text, const ShellPlaces& places,
                                      ShellVariables& variables, const std::string& key_path,
                                      Diagnostics& diagnostics);

/// A word that no shell reads: only Kubernetes' `$(NAME)` is replaced.
ShellWord kubernetes_word(const ConfigNode& scalar, const ShellVariables& variables);

/// Length of NAME in a word that begins with `NAME=`, else 0.
std::size_t assigned_name(std::string_view word);

/// Makes one command of commands that all begin with dashes: a text of flags alone is one, whatever
/// its lines. False when they do not.
bool join_flags(std::vector<ShellCommand>& commands, std::string_view dashes);

/// Index of SCRIPT in `bash -c SCRIPT`, `sh -ec`, `bash -l -o pipefail -c --` and their like, after
/// whatever starts the shell; 0 when the words start none with a script.
std::size_t script_index(const ShellCommand& words);

/// The flags that `begin` stands for among `names`, as Python's argparse has it: the exact name
/// alone, else all that begin so. More than one is ambiguous.
std::vector<std::string> flags_beginning(std::string_view begin,
                                         const std::vector<std::string>& names);

/// The part of a path after its last slash.
std::string_view last_part(std::string_view path);

}  // namespace routesim::tools
