// What the process's exit status means.
#pragma once

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

}  // namespace routesim::tools
