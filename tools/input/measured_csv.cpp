#include "tools/input/measured_csv.h"

#include <array>
#include <set>
#include <string_view>

#include "tools/input/config_node.h"
#include "tools/input/scalar_parse.h"
#include "tools/output/printable.h"

namespace routesim::tools {

namespace {

constexpr std::array<std::string_view, 9> kColumns = {
    "experiment", "policy", "stage", "rate", "metric", "statistic", "unit", "value", "source"};

/// Splits CSV text into records. A quoted field may hold commas, line breaks and doubled quotes.
class CsvSplitter {
 public:
  CsvSplitter(std::string_view text, const std::string& file, Diagnostics& diagnostics)
      : text_(text), file_(file), diagnostics_(diagnostics) {}

  /// The next record; false at the end of the text.
  bool next(std::vector<std::string>& fields, int& line) {
    if (pos_ >= text_.size()) return false;
    fields.clear();
    line = line_;
    do {
      fields.push_back(field());
    } while (take(','));
    take('\r');
    if (pos_ < text_.size() && !take('\n')) {
      error("unexpected text after a closing quote");
      while (pos_ < text_.size() && text_[pos_] != '\n') ++pos_;
      take('\n');
    }
    return true;
  }

 private:
  void error(const std::string& what) {
    diagnostics_.error({.file = file_, .line = line_, .column = 1}, "", what);
  }

  bool take(char c) {
    if (pos_ >= text_.size() || text_[pos_] != c) return false;
    if (c == '\n') ++line_;
    ++pos_;
    return true;
  }

  std::string field() {
    std::string out;
    if (!take('"')) {
      while (pos_ < text_.size() && text_[pos_] != ',' && text_[pos_] != '\n' &&
             !(text_[pos_] == '\r' && text_.substr(pos_, 2) == "\r\n"))
        out += text_[pos_++];
      return out;
    }
    while (pos_ < text_.size()) {
      if (take('"')) {
        if (!take('"')) return out;
        out += '"';
      } else {
        if (text_[pos_] == '\n') ++line_;
        out += text_[pos_++];
      }
    }
    error("a quoted field is never closed");
    return out;
  }

  std::string_view text_;
  const std::string& file_;
  Diagnostics& diagnostics_;
  std::size_t pos_ = 0;
  int line_ = 1;
};

bool check_header(const std::vector<std::string>& fields, const std::string& file,
                  Diagnostics& diagnostics) {
  if (std::equal(fields.begin(), fields.end(), kColumns.begin(), kColumns.end())) return true;
  const auto join = [](const auto& names) {
    std::string joined;
    for (const std::string_view name : names) joined.append(joined.empty() ? "" : ",").append(name);
    return joined;
  };
  diagnostics.error(
      {.file = file, .line = 1, .column = 1}, "",
      "the header must be " + join(kColumns) + " (got " + printable(join(fields), 100) + ")");
  return false;
}

}  // namespace

std::optional<MeasuredTable> parse_measured_csv(const std::string& text, const std::string& file,
                                                Diagnostics& diagnostics) {
  MeasuredTable table{.file = file, .rows = {}};
  Diagnostics found;
  CsvSplitter splitter(text, file, found);
  std::vector<std::string> fields;
  int line = 0;
  if (!splitter.next(fields, line)) fields.clear();
  if (check_header(fields, file, found)) {
    std::set<std::array<std::string, 6>> seen;
    while (splitter.next(fields, line)) {
      const SourceLocation where{.file = file, .line = line, .column = 1};
      if (fields.size() != kColumns.size()) {
        found.error(where, "", "must have 9 fields (got " + std::to_string(fields.size()) + ")");
        continue;
      }
      const auto number = ConfigNode::make_scalar(fields[7], ConfigNode::Style::kUntyped, where);
      const Parsed<double> value = parse_real(*number, {});
      if (!value.value) {
        found.error(where, "value", value.message, value.hint);
        continue;
      }
      if (!seen.insert({fields[0], fields[1], fields[2], fields[4], fields[5], fields[6]}).second)
        found.error(where, "", "repeats an earlier row of the same stage, metric and statistic");
      table.rows.push_back({.experiment = fields[0],
                            .policy = fields[1],
                            .stage = fields[2],
                            .rate = fields[3],
                            .metric = fields[4],
                            .statistic = fields[5],
                            .unit = fields[6],
                            .value = *value.value,
                            .source = fields[8],
                            .line = line});
    }
  }
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  if (found.has_errors()) return std::nullopt;
  return table;
}

MeasuredTable select_rows(const MeasuredTable& table, const std::string& experiment,
                          const std::string& policy) {
  MeasuredTable out{.file = table.file, .rows = {}};
  for (const MeasuredRow& row : table.rows)
    if (row.policy == policy && (experiment.empty() || row.experiment == experiment))
      out.rows.push_back(row);
  return out;
}

}  // namespace routesim::tools
