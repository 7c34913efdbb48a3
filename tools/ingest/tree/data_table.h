// Files of the source tree that the build compiles in: the catalogue, and beside their readers
// tables of keys, flags and fates as CSV. Any thread may ask for them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/key_fate.h"

namespace routesim::tools {

/// The text of such a file, by its path from the root of the sources.
std::string_view compiled_in(std::string_view path);

/// Records of a CSV file, each with the fields that the header names.
using DataTable = std::vector<std::vector<std::string>>;

/// The records of such a file below its header.
DataTable data_table(std::string_view path);

/// Every key table, by its format: the files `*_keys.csv`, which begin with the format and the
/// source of its keys.
const KeyTable& key_table(std::string_view format);

/// The words of a text between blanks.
std::vector<std::string_view> words_of(std::string_view text);

/// Whether one of the words of a text is this one.
bool has_word(std::string_view words, std::string_view word);

/// `no effect`, as fate_name() has it.
Fate fate_named(std::string_view name);

}  // namespace routesim::tools
