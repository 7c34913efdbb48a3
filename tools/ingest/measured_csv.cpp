#include "tools/ingest/measured_csv.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/config_node.h"
#include "base/printable.h"
#include "base/scalar_parse.h"
#include "tools/ingest/csv_splitter.h"

namespace routesim::tools {

namespace {

constexpr std::array<std::string_view, 9> kColumns = {
    "experiment", "policy", "stage", "rate", "metric", "statistic", "unit", "value", "source"};

bool check_header(const std::vector<std::string>& fields, const std::vector<SourceLocation>& places,
                  const std::string& file, Diagnostics& diagnostics) {
  if (std::equal(fields.begin(), fields.end(), kColumns.begin(), kColumns.end())) return true;
  std::size_t wrong = 0;
  while (wrong < std::min(fields.size(), kColumns.size()) && fields[wrong] == kColumns[wrong])
    ++wrong;
  const auto join = [](const auto& names) {
    std::string joined;
    for (const std::string_view name : names) joined.append(joined.empty() ? "" : ",").append(name);
    return joined;
  };
  diagnostics.error(
      wrong < places.size() ? places[wrong] : SourceLocation{.file = file, .line = 1, .column = 1},
      "", "the header must be " + join(kColumns) + " (got " + printable(join(fields), 100) + ")");
  return false;
}

}  // namespace

std::optional<MeasuredTable> parse_measured_csv(const std::string& text, const std::string& file,
                                                Diagnostics& diagnostics) {
  MeasuredTable table{.file = file, .rows = {}};
  Diagnostics found;
  CsvSplitter splitter(text, file, found);
  std::vector<std::string> fields;
  std::vector<SourceLocation> places;
  (void)splitter.next(fields, places);
  if (check_header(fields, places, file, found)) {
    std::set<std::array<std::string, 6>> seen;
    while (splitter.next(fields, places)) {
      if (fields.size() != kColumns.size()) {
        // At the first field too many, or where the next one is missing.
        found.error(places[std::min(fields.size(), kColumns.size())], "",
                    "must have 9 fields (got " + std::to_string(fields.size()) + ")");
        continue;
      }
      const auto number =
          ConfigNode::make_scalar(fields[7], ConfigNode::Style::kUntyped, places[7]);
      const Parsed<double> value = parse_real(*number, {});
      if (!value.value) {
        found.error(places[7], "value", value.message, value.hint);
        continue;
      }
      if (!seen.insert({fields[0], fields[1], fields[2], fields[4], fields[5], fields[6]}).second)
        found.error(places[0], "",
                    "repeats an earlier row of the same stage, metric and statistic");
      table.rows.push_back({.experiment = fields[0],
                            .policy = fields[1],
                            .stage = fields[2],
                            .rate = fields[3],
                            .metric = fields[4],
                            .statistic = fields[5],
                            .unit = fields[6],
                            .value = *value.value,
                            .source = fields[8],
                            .line = places[0].line});
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
