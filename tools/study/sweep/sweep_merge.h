// Rows of a sweep that stand in files: joined from shards, or checked before they are shown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace routesim::tools {

/// Refuses damaged rows of a sweep, and warns when some of its rows are not in the file. A text
/// that holds no rows passes.
void check_rows(const std::string& file, std::string_view text, Diagnostics& diagnostics);

/// A file of rows as it was read.
struct RowFile {
  std::string path;
  std::string text;
};

/// All rows in grid order: the bytes that one unsharded sweep would have written. Errors: a line
/// that is no row, files of grids of different sizes or of different
/// experiments (other overrides, seeds, replications or builds), rows that are missing, and a
/// clash, which is a place in the grid or a key with two different rows. A row given twice with the
/// same bytes is a warning.
std::string merge_rows(const std::vector<RowFile>& files, Diagnostics& diagnostics);

}  // namespace routesim::tools
