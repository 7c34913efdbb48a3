// A one-line progress display on standard error, for people who wait.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "sim/simulation.h"
#include "tools/cli/console.h"
#include "tools/cli/options.h"

namespace routesim::tools {

/// When to show progress.
enum class ProgressMode { kAuto, kAlways, kNever };

/// Reads --progress, which --quiet overrules.
ProgressMode progress_mode(Options& options);

/// Shows how far a run has come, four times a second, until it is destroyed. It only reads the
/// counters, so results do not depend on it.
class ProgressDisplay {
 public:
  /// Shows a line that is made from the seconds that have passed. kAuto shows it only when standard
  /// error is a terminal with cursor control; kAlways without such a terminal writes a plain line
  /// every few seconds.
  ProgressDisplay(std::function<std::string(double elapsed_s)> line, ProgressMode mode,
                  Console& console);
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;
  /// Writes a line of its own to standard error, from any thread.
  void say(std::string_view text);

 private:
  void loop();

  std::function<std::string(double)> line_;
  Console& console_;
  bool overwrite_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};

/// `label: 120 of 400 requests, 30 %, 1.2 s`.
std::string run_line(const sim::Progress& progress, const std::string& label, double elapsed_s);

/// `--progress` as every command that has it takes it.
OptionSpec progress_option();

}  // namespace routesim::tools
