// What a sweep file says: a scenario, and the values that some of its keys take in turn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.h"

namespace routesim::tools {

/// Numbers at equal distances, both ends included when the step meets them.
struct SweepRange {
  double from = 0;
  double to = 0;
  double step = 1;   ///< Above 0; the range may also fall, from high to low.
  std::string unit;  ///< Written behind each number: `ms` makes durations.
};
void describe(Describer& d, SweepRange& r);

/// Numbers at equal ratios, both ends included.
struct SweepLogRange {
  double from = 1;
  double to = 1;
  std::int64_t points = 2;
  bool integer = false;  ///< Round to whole numbers; numbers that become equal are kept once.
  std::string unit;      ///< Written behind each number.
};
void describe(Describer& d, SweepLogRange& r);

/// One key of the scenario and the values it takes. Exactly one of the three forms is given.
struct SweepAxis {
  std::string path;                 ///< Key path as in `--set`.
  std::string name;                 ///< Name in rows; empty = the path.
  Document values;                  ///< A list of anything the key may hold.
  std::vector<std::string> labels;  ///< Names of the values in rows, one each; may be empty.
  std::optional<SweepRange> range;
  std::optional<SweepLogRange> log_range;
};
void describe(Describer& d, SweepAxis& a);

/// One dimension of the grid: an axis, or several that move together.
struct SweepDimension : SweepAxis {
  std::vector<SweepAxis> zip;  ///< Axes of equal length; nothing else is given then.
};
void describe(Describer& d, SweepDimension& a);

/// A sweep file.
struct SweepConfig {
  std::string name;
  std::string question;
  std::string scenario;               ///< Path of the base scenario, relative to this file.
  std::vector<std::string> set;       ///< Assignments made in every cell before its own values.
  std::vector<std::string> variants;  ///< Of the scenario; empty = all.
  std::optional<std::int64_t> seed;   ///< Of the first replication; absent = the scenario's.
  std::int64_t replications = 1;      ///< Runs per row, with consecutive seeds.
  std::vector<std::string> metrics;   ///< `ttft_ms.p99`, ...; empty = the usual ones.
  std::vector<SweepDimension> axes;
  std::vector<Document>
      exclude;  ///< Maps from axis names to a value, a list of values, or a bound.
};
void describe(Describer& d, SweepConfig& c);

}  // namespace routesim::tools
