// A scenario from the files that a user has.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace routesim::tools {

/// NVIDIA's accelerators that may be assumed, in the order in which they are tried: the weights
/// must fit.
inline constexpr std::array<std::string_view, 3> kAssumedAccelerators = {"H100-SXM", "H200",
                                                                         "B200"};

struct InitRequest {
  std::vector<std::string> paths;  ///< Files and folders.
  std::string output;              ///< The scenario's file; the paths in it are relative to it.
  std::string name;                ///< Empty: that of the first servers.
  /// Taken where no file names one and the servers do not ask for another vendor's.
  std::string accelerator = std::string(kAssumedAccelerators.front());
};

struct InitScenario {
  std::string text;                       ///< A commented scenario.
  std::vector<std::string> inputs = {};   ///< Which file plays which part.
  std::vector<std::string> assumed = {};  ///< `key: value   # assumed: why`.
  std::vector<std::string> unused = {};   ///< Files, and why they play no part.
  std::vector<std::string> reads = {};    ///< Files that the scenario reads.
  bool assumes_accelerator = false;       ///< The scenario has that of the request.
};

/// Writes the scenario: it names the user's files and copies nothing out of them, except numbers
/// of a result file. What no file says is assumed and marked so. The text is of use only without
/// errors in `diagnostics`.
InitScenario make_scenario(const InitRequest& request, Diagnostics& diagnostics);

}  // namespace routesim::tools
