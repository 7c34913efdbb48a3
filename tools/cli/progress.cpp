#include "tools/cli/progress.h"

#include <fmt/format.h>

#include <chrono>

#include "base/text.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/results/output_file.h"

namespace routesim::tools {

std::string run_line(const sim::Progress& progress, const std::string& label, double elapsed_s) {
  const auto completed = progress.completed.load(std::memory_order_relaxed);
  const auto total = progress.total.load(std::memory_order_relaxed);
  if (total <= 0) return fmt::format("{}: {} requests, {:.1f} s", label, completed, elapsed_s);
  const double share = 100.0 * static_cast<double>(completed) / static_cast<double>(total);
  return fmt::format("{}: {} of {} requests, {:.0f} %, {:.1f} s", label, completed, total, share,
                     elapsed_s);
}

std::optional<ExitCode> conduct(const StudyRun& how, Console& console,
                                const std::function<void(Experiment&)>& study) {
  ExperimentProgress progress;
  Diagnostics late;
  Experiment experiment(how.jobs, progress, late);
  try {
    const InterruptGuard guard(progress.run.stop);
    const ProgressDisplay display([&](double elapsed_s) { return how.line(progress, elapsed_s); },
                                  how.line != nullptr ? how.progress : ProgressMode::kNever,
                                  console);
    study(experiment);
    return std::nullopt;
  } catch (const Stopped&) {
    if (!late.has_errors()) {
      console.complain("routesim: interrupted" + how.interrupted(progress) + "\n");
      return ExitCode::kInterrupted;
    }
    console.complain(tidy(late));
    return ExitCode::kInvalid;
  }
}

OptionSpec progress_option() {
  return {.name = "progress",
          .value_name = "WHEN",
          .help = "auto (default), always or never.",
          .choices = {"auto", "always", "never"}};
}

ProgressMode progress_mode(Options& options) {
  const std::string when = options.choice("progress");
  if (when == "never" || options.has("quiet")) return ProgressMode::kNever;
  return when == "always" ? ProgressMode::kAlways : ProgressMode::kAuto;
}

ProgressDisplay::ProgressDisplay(std::function<std::string(double)> line, ProgressMode mode,
                                 Console& console)
    : line_(std::move(line)), console_(console), overwrite_(console.error_is_terminal()) {
  const bool show = mode == ProgressMode::kAlways || (mode == ProgressMode::kAuto && overwrite_);
  if (show) thread_ = std::thread([this] { loop(); });
}

ProgressDisplay::~ProgressDisplay() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_one();
  thread_.join();
  if (overwrite_) console_.draw("\r\x1b[K");
}

void ProgressDisplay::say(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable() && overwrite_) console_.draw("\r\x1b[K");
  console_.complain(text);
}

void ProgressDisplay::loop() {
  using Clock = std::chrono::steady_clock;
  const auto interval = overwrite_ ? std::chrono::milliseconds(250) : std::chrono::seconds(5);
  const auto start = Clock::now();
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, interval, [this] { return done_; })) {
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    const std::string text = escaped(line_(elapsed.count()));
    if (text.empty()) continue;
    console_.draw(overwrite_ ? "\r\x1b[K" + text : text + "\n");
  }
}

}  // namespace routesim::tools
