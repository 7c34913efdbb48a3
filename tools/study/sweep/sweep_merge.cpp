#include "tools/study/sweep/sweep_merge.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/study/experiment/journal.h"

namespace routesim::tools {

namespace {

/// A row's place in its grid.
struct RowPlace {
  std::size_t index = 0;
  std::size_t of = 0;
  std::string experiment;  ///< Which sweep of which grid; empty in rows of early builds.
};

/// Nothing when the head does not say it.
std::optional<RowPlace> place_of(std::string_view head) {
  constexpr std::string_view kIndex = "\",\"index\":";
  if (head.substr(std::min(head.size(), kKeyEnd), kIndex.size()) != kIndex) return std::nullopt;
  const nlohmann::json row = nlohmann::json::parse(std::string(head) + "}", nullptr, false);
  if (row.is_discarded() || !row.contains("index") || !row.contains("of") ||
      !row["index"].is_number_unsigned() || !row["of"].is_number_unsigned())
    return std::nullopt;
  const auto experiment = row.find("experiment");
  const bool named = experiment != row.end() && experiment->is_string();
  return RowPlace{.index = row["index"].get<std::size_t>(),
                  .of = row["of"].get<std::size_t>(),
                  .experiment = named ? experiment->get<std::string>() : std::string()};
}

}  // namespace

void check_rows(const std::string& file, std::string_view text, Diagnostics& diagnostics) {
  std::size_t rows = 0, of = 0;
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::optional<StoredRow> row = parse_row(rest.substr(0, end));
    rest.remove_prefix(std::min(rest.size(), end + 1));
    if (!row) continue;
    const SourceLocation where{.file = file, .line = number, .column = 1};
    if (!row->is_intact) diagnostics.error(where, "", kDamagedRow);
    const std::optional<RowPlace> place = place_of(row->head);
    ++rows;
    if (place) of = place->of;
  }
  if (rows < of)
    diagnostics.warning({.file = file, .line = 1, .column = 1}, "",
                        "is partial: it has " + std::to_string(rows) + " of the " +
                            std::to_string(of) + " rows of the sweep",
                        "finish the sweep with --resume, or join its shards with --merge");
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
