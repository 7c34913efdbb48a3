// The journal of a study that is under way, safe from a kill at any moment: one row for each of its
// candidates, by the candidate's key.
//
//   {"key":"…", what the study says of the candidate's place,"variant":"…", its values,
//    "shard":"2/8","checksum":"…"}
//
// Rows are appended to OUTPUT.partial in the order they finish; when all are there, OUTPUT is
// written whole, in grid order, and the partial file goes away. A kill leaves either the partial
// file, whose last line may be torn, or a complete OUTPUT, or both. Taking rows up again drops a
// torn last line and nothing else.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace routesim::tools {

/// The byte behind a row's key, which has 32 digits.
inline constexpr std::size_t kKeyEnd = 40;

/// The line of a row: head, tail and seal, with a line break. `shard` is `I/N`, or empty.
std::string sealed_row(std::string_view head, std::string_view tail, std::string_view shard);

/// A stored row, taken apart without being interpreted. The views point into the line.
struct StoredRow {
  std::string key;
  std::string_view head;
  std::string_view tail;
  std::string_view shard;  ///< Empty in rows of a whole sweep.
  bool is_intact = false;  ///< Whether the checksum fits the line.
};

/// Nothing when `line` (without its line break) is not a row of a sweep. A line with a checksum
/// that does not fit is a row that is not intact, whatever else it holds.
std::optional<StoredRow> parse_row(std::string_view line);

/// The error about a row that is not intact.
inline constexpr char kDamagedRow[] = "this row is damaged: its checksum does not fit";

/// The column of a member's value in its line, in bytes from 1: the end of the object when it has
/// none, or the place where the line stops being JSON when that comes first.
int column_of(std::string_view line, std::string_view member);
/// The column where a line that is not a row stops being one.
int damage_column(std::string_view line);

/// Not copyable: it holds the partial file open, and locked against a second sweep.
class Journal {
 public:
  /// `shard` is the one that this process computes, `I/N`; empty = the whole sweep.
  Journal(std::string output, std::string shard);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

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

}  // namespace routesim::tools
