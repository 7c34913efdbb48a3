// A one-line progress display on standard error, for people who wait.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "sim/simulation.h"
#include "tools/cli/console.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"
#include "tools/render/document.h"
#include "tools/study/experiment/experiment.h"

namespace routesim::tools {

/// When to show progress.
enum class ProgressMode { kAuto, kAlways, kNever };

/// Reads --progress, which --quiet overrules.
ProgressMode progress_mode(Options& options);

/// Calls a function again and again, in a thread of its own, until it is destroyed.
class Ticker {
 public:
  Ticker(std::chrono::milliseconds interval, std::function<void()> tick);
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;
  /// While the lock lives, no call is under way.
  std::unique_lock<std::mutex> hold() { return std::unique_lock(mutex_); }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};

/// Shows how far a run has come, four times a second, until it is destroyed. It only reads the
/// counters, so results do not depend on it.
class ProgressDisplay {
 public:
  /// Shows a line that is made from the seconds that have passed, and nothing while it is empty.
  /// kAuto shows it only when standard error is a terminal with cursor control; kAlways without
  /// such a terminal writes a plain line every few seconds.
  ProgressDisplay(std::function<std::string(double elapsed_s)> line, ProgressMode mode,
                  Console& console);
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;
  /// Writes a line of its own to standard error, from any thread.
  void say(std::string_view text);

 private:
  Console& console_;
  bool overwrite_;
  std::optional<Ticker> ticker_;  ///< Absent where nothing is shown.
};

/// `label: 120 of 400 requests, 30 %, 1.2 s`.
std::string run_line(const sim::Progress& progress, const std::string& label, double elapsed_s);

/// `, WHAT`: the end of the message about a study that Ctrl-C ended.
inline auto interrupted_with(std::string what) {
  return [what = ", " + std::move(what)](const ExperimentProgress&) { return what; };
}

/// What a study has found so far.
struct StudyPage {
  StudyDocument document;
  std::string json;  ///< The content of its result file.
};

/// How a command runs a study.
struct StudyRun {
  std::size_t jobs = 1;  ///< Threads; no effect on results.
  ProgressMode progress = ProgressMode::kNever;
  std::string (*line)(const ExperimentProgress& progress, double elapsed_s) = nullptr;
  /// The message about Ctrl-C, after `routesim: interrupted`.
  std::function<std::string(const ExperimentProgress&)> interrupted;
  std::string watch = {};  ///< A page that is rewritten while the study runs; empty = none.
  std::function<StudyPage()> so_far = {};  ///< For that page. Called when the study tells.
};

/// Runs the study, which Ctrl-C stops, beside a line of progress. Nothing when it came to its end;
/// otherwise the exit code, with the reason on standard error. A page that is watched then says
/// that it was stopped; otherwise the command replaces it.
std::optional<ExitCode> conduct(const StudyRun& how, Console& console,
                                const std::function<void(Experiment&)>& study);

/// `--progress` and `--watch` as every command that has them takes them.
OptionSpec progress_option();
OptionSpec watch_option();

}  // namespace routesim::tools
