// Published measurements: what a run is compared with.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"

namespace routesim::tools {

/// One published number.
struct MeasuredRow {
  std::string experiment;
  std::string policy;
  std::string stage;      ///< The tool's stage number or name; `all` for a summary row.
  std::string rate;       ///< Requests/s as published; may be text (`closed loop`).
  std::string metric;     ///< e.g. `ttft`, `output_throughput`.
  std::string statistic;  ///< e.g. `mean`, `p90`.
  std::string unit;       ///< e.g. `ms`, `tok/s`.
  double value = 0;
  std::string source;
  int line = 0;  ///< Of the file, from 1.
};

/// The run, as the result of a load tool states it. Absent where it says nothing.
struct StatedLoad {
  template <class T>
  struct At {
    T value;
    SourceLocation where;
  };
  std::optional<At<std::string>> model;
  std::optional<At<double>> request_rate;  ///< Infinity: all at once.
  std::optional<At<double>> requests, max_concurrency;
  std::optional<At<double>> input_tokens, output_tokens;  ///< Mean of a completed request.
};

struct MeasuredTable {
  std::string file;
  std::vector<MeasuredRow> rows;
  std::vector<StatedLoad> loads = {};  ///< Of each result of `vllm bench serve` in it.
};

}  // namespace routesim::tools
