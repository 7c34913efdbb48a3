// The repository as the architecture tests see it: a list of text files, and C++ without its
// comments and literals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace routesim::architecture {

/// One file of the repository.
struct SourceFile {
  std::string path;  ///< Relative to the root, with forward slashes.
  std::string text;  ///< Its bytes.
};

/// One broken rule, as `path:line: what`.
using Violations = std::vector<std::string>;

/// Every text file under the folders that belong to the project, in order of path. Build folders,
/// and whatever else lies in the root folder, are not looked at.
std::vector<SourceFile> read_repository(const std::string& root);

bool is_word(char c);  ///< Can be part of a C++ name.
bool is_header(const SourceFile& file);
bool is_cpp(const SourceFile& file);  ///< A .cpp or a .h file.

/// True when the path is `folder` or lies under it; "sim" does not match "sim_extra".
bool under(std::string_view path, std::string_view folder);

/// The text with comments, string and character literals blanked out. Line breaks stay, so line
/// numbers still hold; quotes of includes are blanked as well.
std::string strip_comments_and_literals(std::string_view text);

/// Splits at line breaks; a final line break does not start another line.
std::vector<std::string> lines_of(std::string_view text);

/// "path:line: what".
std::string at(const SourceFile& file, std::size_t line, const std::string& what);

/// One violation per line, for a test's failure message.
std::string join(const Violations& violations);

}  // namespace routesim::architecture
