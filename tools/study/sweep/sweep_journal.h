// The rows of a sweep that is under way, safe from a kill at any moment.
//
// Rows are appended to OUTPUT.partial in the order they finish; when all are there, OUTPUT is
// written whole, in grid order, and the partial file goes away. A kill leaves either the partial
// file, whose last line may be torn, or a complete OUTPUT, or both. Taking rows up again drops a
// torn last line and nothing else.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace routesim::tools {

/// Not copyable: it holds the partial file open, and locked against a second sweep.
class SweepJournal {
 public:
  /// `shard` is the one that this process computes, `I/N`; empty = the whole sweep.
  SweepJournal(std::string output, std::string shard);
  ~SweepJournal();
  SweepJournal(const SweepJournal&) = delete;
  SweepJournal& operator=(const SweepJournal&) = delete;

  /// Opens the partial file. With `resume` takes up the tails of the rows in it and in OUTPUT;
  /// without, it is an error that the partial file has rows. A line that is no row or whose
  /// checksum does not fit, a row of another shard, a key that is not among `keys` (its row would
  /// be lost) and two rows of one key with different tails are errors. False after an error.
  bool open(bool resume, const std::set<std::string>& keys, Diagnostics& diagnostics);

  /// The tail of the row with this key, from before or appended since; null when there is none.
  const std::string* find(const std::string& key) const;
  std::size_t size() const { return tails_.size(); }

  /// Adds a finished row. Returns what went wrong, or nothing; then the file ends as it did before.
  std::string append(const std::string& key, const std::string& head, const std::string& tail);

  /// Writes OUTPUT and removes the partial file. Returns what went wrong, or nothing.
  std::string finish(std::string_view content);

  const std::string& partial_path() const { return partial_; }

 private:
  bool take_up(const std::string& path, bool may_be_torn, const std::set<std::string>& keys,
               Diagnostics& diagnostics);

  /// Takes up one stored line, or says why not.
  void take_row(std::string_view line, const SourceLocation& where,
                const std::set<std::string>& keys, Diagnostics& diagnostics);

  std::string output_;
  std::string partial_;
  std::string shard_;
  int descriptor_ = -1;
  std::size_t size_ = 0;    ///< Bytes of whole rows in the partial file.
  double synced_at_s_ = 0;  ///< When the file last went to the disk.
  std::map<std::string, std::string> tails_;
};

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
