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

namespace {

/// The page of a study that is under way: what it has found, and how far it is.
class WatchedPage {
 public:
  WatchedPage(const StudyRun& how, ExperimentProgress& progress)
      : how_(how), progress_(progress), start_(Clock::now()) {
    if (how_.watch.empty()) return;
    found_ = how_.so_far();
    write("Not finished" + line(), true);
    progress_.look = [this] {
      StudyPage found = how_.so_far();
      const std::unique_lock lock = ticker_->hold();
      found_ = std::move(found);
    };
    progress_.awaited = true;
    ticker_.emplace(kInterval, [this] {
      write("Not finished" + line(), true);
      progress_.awaited = true;
    });
  }
  WatchedPage(const WatchedPage&) = delete;
  WatchedPage& operator=(const WatchedPage&) = delete;

  /// The study has stopped before its end: the page says so, and no longer reloads itself.
  void end(const std::string& why) {
    if (how_.watch.empty()) return;
    ticker_.reset();
    found_ = how_.so_far();
    write(why, false);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kInterval{2};

  /// `: 12 of 32 rows, 1.2 s`.
  std::string line() const {
    const std::chrono::duration<double> elapsed = Clock::now() - start_;
    const std::string text = how_.line(progress_, elapsed.count());
    return text.empty() ? text : ": " + text;
  }

  /// A page that cannot be written is complained about when the final one is.
  void write(const std::string& state, bool reloads) const {
    StudyDocument document = found_.document;
    StudyVerdict& verdict = document.verdict;
    if (!verdict.headline.empty())
      verdict.points.insert(verdict.points.begin(), Sentence{{"So far: " + verdict.headline}});
    verdict.headline = state + ".";
    std::string page = document_page(document, found_.json);
    constexpr std::string_view kHead = "<head>\n";
    const std::size_t head = page.find(kHead);
    if (reloads && head != std::string::npos)
      page.insert(head + kHead.size(), "<meta http-equiv=\"refresh\" content=\"3\">\n");
    (void)write_file(how_.watch, page);
  }

  const StudyRun& how_;
  ExperimentProgress& progress_;
  Clock::time_point start_;
  StudyPage found_;               ///< Written under the lock of `ticker_`.
  std::optional<Ticker> ticker_;  ///< The last member: its thread uses the others.
};

}  // namespace

std::optional<ExitCode> conduct(const StudyRun& how, Console& console,
                                const std::function<void(Experiment&)>& study) {
  ExperimentProgress progress;
  Diagnostics late;
  Experiment experiment(how.jobs, progress, late);
  WatchedPage page(how, progress);
  try {
    const InterruptGuard guard(progress.run.stop);
    const ProgressDisplay display([&](double elapsed_s) { return how.line(progress, elapsed_s); },
                                  how.line != nullptr ? how.progress : ProgressMode::kNever,
                                  console);
    study(experiment);
    return std::nullopt;
  } catch (const Stopped&) {
    if (!late.has_errors()) {
      page.end("Interrupted" + how.interrupted(progress));
      console.complain("routesim: interrupted" + how.interrupted(progress) + "\n");
      return ExitCode::kInterrupted;
    }
    page.end("Ended by an error");
    console.complain(tidy(late));
    return ExitCode::kInvalid;
  } catch (...) {
    page.end("Ended by an error");
    throw;
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

OptionSpec watch_option() {
  return {"watch", "PATH", "Rewrite a page while it runs; in the end that of -o html=PATH."};
}

Ticker::Ticker(std::chrono::milliseconds interval, std::function<void()> tick) {
  thread_ = std::thread([this, interval, tick = std::move(tick)] {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, interval, [this] { return done_; })) tick();
  });
}

Ticker::~Ticker() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

ProgressDisplay::ProgressDisplay(std::function<std::string(double)> line, ProgressMode mode,
                                 Console& console)
    : console_(console), overwrite_(console.error_is_terminal()) {
  using Clock = std::chrono::steady_clock;
  if (mode == ProgressMode::kNever || (mode == ProgressMode::kAuto && !overwrite_)) return;
  ticker_.emplace(overwrite_ ? std::chrono::milliseconds(250) : std::chrono::seconds(5),
                  [this, line = std::move(line), start = Clock::now()] {
                    const std::chrono::duration<double> elapsed = Clock::now() - start;
                    const std::string text = escaped(line(elapsed.count()));
                    if (!text.empty()) console_.draw(overwrite_ ? "\r\x1b[K" + text : text + "\n");
                  });
}

ProgressDisplay::~ProgressDisplay() {
  if (!ticker_) return;
  ticker_.reset();
  if (overwrite_) console_.draw("\r\x1b[K");
}

void ProgressDisplay::say(std::string_view text) {
  std::unique_lock<std::mutex> lock;
  if (ticker_) lock = ticker_->hold();
  if (ticker_ && overwrite_) console_.draw("\r\x1b[K");
  console_.complain(text);
}

}  // namespace routesim::tools
