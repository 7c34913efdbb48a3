#include "tools/ingest/tree/data_table.h"

#include <algorithm>
#include <deque>

#include "base/check.h"
#include "tools/ingest/tree/csv_splitter.h"
#include "tools/ingest/tree/data_files.h"

namespace routesim::tools {

namespace {

DataTable records_of(std::string_view path) {
  DataTable records;
  Diagnostics found;
  const std::string file(path);
  CsvSplitter splitter(compiled_in(path), file, found);
  std::vector<std::string> fields;
  for (std::vector<SourceLocation> places; splitter.next(fields, places);)
    records.push_back(fields);
  ROUTESIM_CHECK(!found.has_errors(), "a table that is compiled in is no CSV");
  return records;
}

/// Groups behind the format, the source and the header.
std::vector<KeyGroup> key_groups(const DataTable& records) {
  constexpr std::size_t kFirst = 3;
  std::vector<KeyGroup> groups;
  for (std::size_t i = kFirst; i < records.size(); ++i) {
    const std::vector<std::string>& row = records[i];
    groups.push_back({fate_named(row.at(0)), row.at(1), row.at(2), row.at(3)});
  }
  return groups;
}

/// The table refers to the records.
struct KeyFile {
  explicit KeyFile(std::string_view path)
      : records(records_of(path)),
        table(records.at(0).at(1), records.at(1).at(1), key_groups(records)) {}

  DataTable records;
  GroupedTable table;
};

}  // namespace

std::string_view compiled_in(std::string_view path) {
  const auto* const file =
      std::ranges::find(kEmbedded, path, [](const auto& f) { return f.first; });
  ROUTESIM_CHECK(file != std::end(kEmbedded), "a file is not compiled in");
  return file->second;
}

DataTable data_table(std::string_view path) {
  DataTable records = records_of(path);
  records.erase(records.begin());
  return records;
}

const KeyTable& key_table(std::string_view format) {
  static const std::deque<KeyFile> kFiles = [] {
    std::deque<KeyFile> files;
    for (const auto& [path, text] : kEmbedded)
      if (path.ends_with("_keys.csv")) files.emplace_back(path);
    return files;
  }();
  const auto file =
      std::ranges::find(kFiles, format, [](const KeyFile& f) { return f.table.table().format; });
  ROUTESIM_CHECK(file != kFiles.end(), "a format has no key table");
  return file->table.table();
}

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  std::vector<std::string_view> words;
  for (std::size_t at = text.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

bool has_word(std::string_view words, std::string_view word) {
  return std::ranges::count(words_of(words), word) > 0;
}

Fate fate_named(std::string_view name) {
  for (const Fate fate : {Fate::kUsed, Fate::kNoEffect, Fate::kApproximated, Fate::kNotModelled})
    if (fate_name(fate) == name) return fate;
  ROUTESIM_CHECK(false, "a table has an unknown fate");
  return Fate::kUsed;
}

}  // namespace routesim::tools
