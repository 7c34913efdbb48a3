// The laws of the tree that a program can check. Each rule looks at one file and lists what it
// finds, so that the rules themselves are tested on snippets (rules_test.cpp).
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/architecture/source_file.h"

namespace routesim::architecture {

/// What a folder may include of the project, and which third-party header may appear where. The
/// two tables are at the top of include_rules.cpp.
Violations check_includes(const SourceFile& file);

/// Headers start with `#pragma once` and bring no `using namespace`.
Violations check_header_form(const SourceFile& file);

/// The libraries (sim, policies, models, workloads) never print, exit, read a wall clock, or draw
/// from the standard library's random numbers, whose results differ between implementations.
Violations check_library_purity(const SourceFile& file);

/// No option that lets a compiler change floating-point results.
Violations check_build_flags(const SourceFile& file);

/// A shell script with `pipefail` pipes to no reader that stops early (`grep -q`, `head`): the
/// writer may then die of SIGPIPE, and the pipeline fails although the answer is yes.
Violations check_early_readers(const SourceFile& file);

/// A note to self names the issue that tracks it: `TODO(#12)`.
Violations check_notes(const SourceFile& file);

/// No absolute path of the machine somebody worked on.
Violations check_machine_paths(const SourceFile& file);

/// Line feeds only, no tabs in C++, no trailing white space, a final line break, at most
/// `kMaxColumns` columns in C++.
Violations check_whitespace(const SourceFile& file);
inline constexpr std::size_t kMaxColumns = 100;

/// At most `kMaxFunctionLines` lines between the braces of a function, both included.
Violations check_function_length(const SourceFile& file);
inline constexpr std::size_t kMaxFunctionLines = 60;

/// Folders of the product whose includes lead back to themselves.
std::set<std::string> folders_in_circles(const std::vector<SourceFile>& files);

/// How many data members each class of a product file has. A data member ends in an underscore;
/// plain structs are records, not state.
std::map<std::string, std::size_t> members_of_classes(const SourceFile& file);
inline constexpr std::size_t kMaxMembers = 20;

/// The .cpp files that define member functions, by class.
std::map<std::string, std::set<std::string>> files_of_classes(const std::vector<SourceFile>& files);
inline constexpr std::size_t kMaxFilesPerClass = 2;

}  // namespace routesim::architecture
