// The meaning of the process's exit status.
#pragma once

#include <array>
#include <string_view>

namespace routesim::tools {

/// The documented exit codes of every command.
enum class ExitCode {
  kSuccess = 0,        ///< Ran, and every expectation held.
  kFailed = 1,         ///< Ran, and an expectation, gate or comparison failed.
  kInvalid = 2,        ///< Usage error, invalid input, or an output that cannot be written.
  kInternalError = 3,  ///< A broken invariant: a bug of ours.
  kInconclusive = 4,   ///< Ran, but the interval does not decide.
  kInterrupted = 130,  ///< Stopped by SIGINT or SIGTERM.
};

/// The same in words, for --help and the manual page.
struct ExitMeaning {
  ExitCode code;
  std::string_view meaning;
};
inline constexpr std::array<ExitMeaning, 6> kExitMeanings = {{
    {ExitCode::kSuccess, "success"},
    {ExitCode::kFailed, "an expectation or comparison failed"},
    {ExitCode::kInvalid, "usage error, invalid input or an output that cannot be written"},
    {ExitCode::kInternalError, "internal error"},
    {ExitCode::kInconclusive, "inconclusive"},
    {ExitCode::kInterrupted, "interrupted; what was printed is partial and says so"},
}};

}  // namespace routesim::tools
