// Names from users' files as names of files and folders.
#pragma once

#include <string>
#include <vector>

namespace routesim::tools {

/// A file name for each of `names`, in their order: different names never share a file, also on
/// file systems that ignore case. Letters, digits, `-`, `_` and `.` stay, other bytes become `%XX`,
/// and so do a leading dot and, where two names differ in case only, capital letters. A long name
/// is cut and ends in a hash of the whole. No result is longer than 150 bytes.
std::vector<std::string> file_names(const std::vector<std::string>& names);

}  // namespace routesim::tools
