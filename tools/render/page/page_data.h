// Numbers of a page. Every one keeps the place it has in the page's data block, so that a test (or
// a reader) can hold the tables against the data.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace routesim::tools {

/// One number of the data block.
struct Datum {
  double value = 0;                     ///< In base units: seconds, tokens, ratios.
  std::string path;                     ///< JSON pointer into the data block.
  std::optional<double> low{}, high{};  ///< 95 % interval over replications, where there is one.
  std::optional<double> raw{};          ///< As it stands in the block, where that has another unit.
};

/// Numbers for other programs: a file of `report --export`.
struct ExportTable {
  using Value = std::variant<std::string, std::optional<double>>;
  std::string name;
  std::vector<std::string> columns;
  std::vector<std::vector<Value>> rows;
};

}  // namespace routesim::tools
