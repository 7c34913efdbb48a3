#include "tools/study/sweep/sweep_journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/config_node.h"
#include "base/text.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/results/output_file.h"
#include "tools/study/sweep/sweep_row.h"

namespace routesim::tools {

namespace {

constexpr std::size_t kMostJournalBytes = std::size_t{1} << 40U;

bool exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

double now_s() {
  const std::chrono::duration<double> t = std::chrono::steady_clock::now().time_since_epoch();
  return t.count();
}

/// `shard 2/8`, or `the whole sweep`.
std::string shard_text(std::string_view shard) {
  return shard.empty() ? "the whole sweep" : "shard " + std::string(shard);
}

}  // namespace

SweepJournal::SweepJournal(std::string output, std::string shard)
    : output_(std::move(output)), partial_(output_ + ".partial"), shard_(std::move(shard)) {}

SweepJournal::~SweepJournal() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  // Nothing was computed: leave nothing behind that a later sweep would stumble over.
  if (size_ == 0) ::unlink(partial_.c_str());
}

void SweepJournal::take_row(std::string_view line, const SourceLocation& where,
                            const std::set<std::string>& keys, Diagnostics& diagnostics) {
  const std::optional<StoredRow> row = parse_row(line);
  const auto at = [&](int column) {
    return SourceLocation{.file = where.file, .line = where.line, .column = column};
  };
  if (!row) {
    diagnostics.error(at(damage_column(line)), "", "is not a row of a sweep",
                      "the file is damaged");
  } else if (!row->is_intact) {
    diagnostics.error(at(column_of(line, "checksum")), "", kDamagedRow,
                      "remove this line, and --resume computes the row again");
  } else if (row->shard != shard_) {
    diagnostics.error(
        at(column_of(line, "shard")), "",
        "this row was written by " + shard_text(row->shard) + ", and this is " + shard_text(shard_),
        row->shard.empty() ? "give --shard none" : "give --shard " + std::string(row->shard));
  } else if (!keys.contains(row->key)) {
    diagnostics.error(at(column_of(line, "key")), "",
                      "this row belongs to no cell of the sweep and would be lost",
                      "write to another file, or finish the sweep this file was made by");
  } else {
    const std::string tail(row->tail);
    const auto [it, is_new] = tails_.try_emplace(row->key, tail);
    if (!is_new && it->second != tail)
      diagnostics.error(at(column_of(line, "key")), "",
                        "another row has this key but other results",
                        "the files come from different builds; remove one of them");
  }
}

bool SweepJournal::take_up(const std::string& path, bool may_be_torn,
                           const std::set<std::string>& keys, Diagnostics& diagnostics) {
  std::string text;
  if (!read_text_file(path, {.file = path}, "", kMostJournalBytes, text, diagnostics)) return false;
  std::string_view rest = text;
  for (int line = 1; !rest.empty(); ++line) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos && may_be_torn) break;
    const std::string_view whole = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    take_row(whole, {.file = path, .line = line, .column = 1}, keys, diagnostics);
    if (may_be_torn && end != std::string_view::npos) size_ = text.size() - rest.size();
  }
  return !diagnostics.has_errors();
}

bool SweepJournal::open(bool resume, const std::set<std::string>& keys, Diagnostics& diagnostics) {
  const auto fail = [&](const std::string& what, const std::string& hint = {}) {
    diagnostics.error({.file = partial_}, "", what, hint);
    return false;
  };
  descriptor_ = ::open(partial_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) return fail(std::string("cannot be written: ") + std::strerror(errno));
  size_ = 1;  // Until it is known to be empty it is not ours to remove.
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0)
    return fail("another sweep is writing this file");
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0) return fail(std::strerror(errno));
  if (info.st_size > 0 && !resume)
    return fail("holds the rows of a sweep that was interrupted",
                "continue it with --resume, or remove the file");
  size_ = 0;
  if (!resume) return true;
  if (exists(output_) && !take_up(output_, false, keys, diagnostics)) {
    size_ = static_cast<std::size_t>(info.st_size);
    return false;
  }
  if (!take_up(partial_, true, keys, diagnostics)) {
    size_ = static_cast<std::size_t>(info.st_size);
    return false;
  }
  if (::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0)
    return fail(std::string("cannot be written: ") + std::strerror(errno));
  return true;
}

const std::string* SweepJournal::find(const std::string& key) const {
  const auto it = tails_.find(key);
  return it == tails_.end() ? nullptr : &it->second;
}

std::string SweepJournal::append(const std::string& key, const std::string& head,
                                 const std::string& tail) {
  const std::string line = sealed_row(head, tail, shard_);
  if (const int error = write_all(descriptor_, line); error != 0) {
    const int restored = ::ftruncate(descriptor_, static_cast<off_t>(size_));
    return std::string(std::strerror(error)) + (restored == 0 ? "" : " (its last line is torn)");
  }
  size_ += line.size();
  tails_[key] = tail;
  // Against a power cut; a kill cannot undo what was written.
  if (const double now = now_s(); now - synced_at_s_ > 1) {
    (void)::fdatasync(descriptor_);
    synced_at_s_ = now;
  }
  return {};
}

std::string SweepJournal::finish(std::string_view content) {
  // A process of the same number, killed while it wrote (in containers that number is always 1),
  // has left its temporary file; we hold the lock, so nobody else is writing it.
  ::unlink((output_ + ".tmp-" + std::to_string(::getpid())).c_str());
  std::string error = write_file(output_, content);
  if (!error.empty()) return error;
  ::unlink(partial_.c_str());
  ::close(descriptor_);
  descriptor_ = -1;
  return {};
}

namespace {

std::string place_text(const SourceLocation& where) {
  return where.file + ":" + std::to_string(where.line);
}

/// Collects rows by their place in the grid.
class Merger {
 public:
  explicit Merger(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void add(const RowFile& file) {
    std::string_view rest = file.text;
    for (int line = 1; !rest.empty(); ++line) {
      const std::size_t end = rest.find('\n');
      const SourceLocation where{.file = file.path, .line = line, .column = 1};
      if (end == std::string_view::npos) {
        diagnostics_.error(at(where, static_cast<int>(rest.size()) + 1), "", "the last row is torn",
                           "finish this shard with --resume first");
        return;
      }
      add_row(rest.substr(0, end), where);
      rest.remove_prefix(end + 1);
    }
  }

  std::string finish() {
    report_gaps();
    if (diagnostics_.has_errors()) return {};
    std::string text;
    for (const auto& [index, row] : rows_) text += row.line;
    return text;
  }

 private:
  struct Row {
    std::string line;  ///< The line of an unsharded sweep, with its line break.
    SourceLocation where;
  };

  static SourceLocation at(const SourceLocation& line, int column) {
    return {.file = line.file, .line = line.line, .column = column};
  }

  void add_row(std::string_view line, const SourceLocation& where) {
    const std::optional<StoredRow> row = parse_row(line);
    if (row && !row->is_intact) {
      diagnostics_.error(at(where, column_of(line, "checksum")), "", kDamagedRow,
                         "remove this line, and finish the shard with --resume");
      return;
    }
    const std::optional<RowPlace> place = row ? place_of(row->head) : std::nullopt;
    if (!row || !place) {
      diagnostics_.error(at(where, damage_column(line)), "", "is not a row of a sweep");
      return;
    }
    if (!of_) of_ = place->of;
    if (place->of != *of_ || place->index >= place->of) {
      diagnostics_.error(at(where, column_of(line, place->of != *of_ ? "of" : "index")), "",
                         "row " + std::to_string(place->index) + " of " +
                             std::to_string(place->of) + " among rows of a grid of " +
                             std::to_string(*of_),
                         "the files come from different sweeps");
      return;
    }
    if (first_.file.empty()) {
      first_ = where;
      experiment_ = place->experiment;
    }
    if (place->experiment == experiment_) {
      note(line, *row, place->index, where);
    } else if (strangers_.insert(where.file).second) {
      diagnostics_.error(
          at(where, column_of(line, "experiment")), "",
          "is a row of another experiment than " + place_text(first_),
          "shards have the same sweep file, --set, --seed, --replications and build");
    }
  }

  void note(std::string_view stored, const StoredRow& row, std::size_t index,
            const SourceLocation& where) {
    const std::string line = sealed_row(row.head, row.tail, {});
    const std::string& key = row.key;
    const auto [entry, is_new] = rows_.try_emplace(index, Row{.line = line, .where = where});
    const auto [same_key, new_key] = keys_.try_emplace(key, &entry->second);
    const Row& other = is_new ? *same_key->second : entry->second;
    if (is_new && new_key) return;
    const SourceLocation cell = at(where, column_of(stored, is_new ? "key" : "index"));
    if (other.line == line) {
      diagnostics_.warning(cell, "",
                           "the same row stands at " + place_text(other.where) + ": kept once");
      return;
    }
    const std::string what =
        is_new ? "key " + key : "row " + std::to_string(index) + " of the grid";
    diagnostics_.error(cell, "", what + " has another row at " + place_text(other.where),
                       "the files come from different builds or different sweeps");
  }

  void report_gaps() {
    if (!strangers_.empty()) return;  // Then missing rows are not reported.
    if (!of_) {
      diagnostics_.error({.file = "--merge"}, "", "there are no rows");
      return;
    }
    constexpr std::size_t kShown = 20;
    std::string missing;
    std::size_t count = 0;
    std::size_t ranges = 0;
    for (std::size_t i = 0; i < *of_; ++i) {
      if (rows_.contains(i)) continue;
      std::size_t last = i;
      while (last + 1 < *of_ && !rows_.contains(last + 1)) ++last;
      if (++ranges <= kShown) {
        missing.append(missing.empty() ? "" : ", ").append(std::to_string(i));
        if (last > i) missing.append("-").append(std::to_string(last));
      }
      count += last - i + 1;
      i = last;
    }
    if (ranges > kShown) missing += ", ...";
    if (count > 0)
      diagnostics_.error(
          {.file = "--merge"}, "",
          std::to_string(count) + " of " + std::to_string(*of_) + " rows are missing: " + missing,
          "is a shard's file not named, or a shard not finished?");
  }

  Diagnostics& diagnostics_;
  std::optional<std::size_t> of_;
  std::string experiment_;           ///< Experiment of the first row, which stands at `first_`.
  SourceLocation first_;             ///< Without a file before the first row.
  std::set<std::string> strangers_;  ///< Files with rows of other experiments, each named once.
  std::map<std::size_t, Row> rows_;
  std::map<std::string, const Row*> keys_;
};

}  // namespace

std::string merge_rows(const std::vector<RowFile>& files, Diagnostics& diagnostics) {
  Diagnostics found;
  Merger merger(found);
  for (const RowFile& file : files) merger.add(file);
  std::string text = merger.finish();
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  return text;
}

}  // namespace routesim::tools
