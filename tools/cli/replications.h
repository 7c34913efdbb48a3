// `--replications`, `--until` and `--jobs` as the command line gives them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tools/cli/options.h"
#include "tools/study/compare/until.h"

namespace routesim::tools {

/// What the command line asks for.
struct ReplicationRequest {
  std::size_t replications = 1;    ///< With a rule: the most it may use.
  std::size_t jobs = 1;            ///< Threads; no effect on results.
  std::optional<UntilRule> until;  ///< `--until`.
  bool wanted() const { return replications > 1 || until.has_value(); }
};

/// On error sets `error` and returns false.
bool parse_replications(const OptionValues& options, ReplicationRequest& request,
                        std::string& error);

}  // namespace routesim::tools
