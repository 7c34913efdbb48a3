// Ad-hoc scans of `run`: every variant at several rates, or with several numbers of servers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/cli/options.h"
#include "tools/ingest/scenario/scenario_yaml.h"

namespace routesim::tools {

/// A rate of a scan.
struct ScanRate {
  std::string text;  ///< `2x` or `10 req/s`.
  double value = 0;  ///< A factor, or requests/s.
  bool is_factor = false;
};

/// The scan that `--rate` and `--replicas` ask for; empty lists change nothing.
struct Scan {
  std::vector<ScanRate> rates;
  std::string pool;  ///< The pool with the counted servers; empty = the only pool.
  std::vector<std::int64_t> replicas;
  std::string judge = {};  ///< An output that is about expectations only; empty = none.

  bool empty() const { return rates.empty() && replicas.empty(); }
};

/// `--rate` and `--replicas`.
std::vector<OptionSpec> scan_options();

/// Reads them; what is wrong is a usage error.
Scan read_scan(Options& options);

/// Every variant with every value, one value after the other: `precise, 4 replicas @ 2x`. All face
/// the same draws. Published numbers and expectations belong to the scenario as it is written, so
/// numbers are left out, and expectations must not be judged.
LoadedScenario scanned(LoadedScenario scenario, const Scan& scan, Diagnostics& diagnostics);

}  // namespace routesim::tools
