// A run as a Chrome trace that Perfetto opens: a process per server, a thread per DP rank with its
// engine steps, tracks of its copies of KV, every request as a nested async slice, counters.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/observe/observer.h"
#include "tools/results/output_file.h"

namespace routesim::tools {

// One line per request, written while the run lasts: memory does not grow with it.

/// How `--records PATH` writes: told from the path's suffix.
enum class RecordFormat { kCsv, kJsonLines };
/// Nothing when the suffix is neither `.csv` nor `.jsonl`.
std::optional<RecordFormat> record_format(const std::string& path);

/// Streams the requests of several runs, one after the other, in the order they end.
class RecordWriter final : public sim::Observer {
 public:
  /// `file` outlives this.
  RecordWriter(OutputFile& file, RecordFormat format);

  /// The records that follow belong to this variant.
  void begin_variant(const std::string& name) { variant_ = name; }
  /// Says in the last line that the run was interrupted.
  void mark_partial();
  void on_start(const sim::RunView& view) override;
  void on_done(const sim::RequestRecord& record) override;
  void on_end(SimTime) override { flush(); }

 private:
  void flush();

  OutputFile& file_;
  RecordFormat format_;
  std::string variant_;
  std::vector<std::string> endpoints_, stages_, adapters_;
  std::vector<std::string> classes_;
  std::string buffer_;
};

/// Collects the events of several runs, one after the other, up to a limit. Consecutive steps that
/// only decode the same number of sequences are one slice, with their number in `args.steps`.
class TraceRecorder final : public sim::Observer {
 public:
  /// About 130 bytes each.
  static constexpr std::int64_t kMaxEvents = 500'000;

  explicit TraceRecorder(std::int64_t max_events = kMaxEvents) : max_events_(max_events) {}

  /// The events that follow belong to this variant.
  void begin_variant(const std::string& name);
  void on_start(const sim::RunView& view) override;
  void on_routed(const workloads::Request& request, const sim::Route& route, SimTime now) override;
  void on_delivered(const workloads::Request& request, EndpointId to, SimTime now) override;
  void on_prefilled(const workloads::Request& request, SimTime now) override;
  void on_done(const sim::RequestRecord& record) override;
  bool wants_steps() const override { return true; }
  void on_step(const sim::StepSpan& span) override;
  void on_copy(const sim::CopySpan& span) override;
  SimTime next_tick() const override { return next_tick_; }
  void on_tick(SimTime now) override;
  void on_end(SimTime now) override;

  /// Events left out because of the limit; the trace says so itself.
  std::int64_t dropped() const { return dropped_; }
  /// The whole document.
  std::string json(bool interrupted = false) const;

 private:
  /// Instants of a request on its way.
  struct Way {
    SimTime routed, prefill_delivered, prefilled, delivered;
    bool in_prefill = false;  ///< PD: the prefill leg has not ended.
  };
  struct Counters {
    std::int64_t waiting = -1, running = -1, used_blocks = -1;
  };

  bool room();
  void add(const std::string& event);
  void name_process(std::uint32_t pid, const std::string& name);
  void name_thread(std::uint32_t pid, int tid, const std::string& name);
  void flush_step(std::size_t thread);
  /// A track of an endpoint for copies that may overlap: its number, named when it is first used.
  int lane(std::uint32_t endpoint, std::size_t kind, SimTime begin, SimTime end);
  void copy_slice(const sim::CopySpan& span, std::uint32_t endpoint, int tid,
                  const std::string& name);
  void phase(std::uint32_t pid, std::int64_t id, const char* name, SimTime begin, SimTime end,
             const std::string& args = {});
  void counter(std::uint32_t pid, const std::string& name, std::int64_t value, SimTime now);

  std::int64_t max_events_;
  std::int64_t events_ = 0;
  std::int64_t dropped_ = 0;
  std::string text_;
  std::string variant_;
  std::uint32_t first_pid_ = 1, next_pid_ = 1;
  const sim::RunView* view_ = nullptr;
  std::vector<std::size_t> first_thread_;  ///< Per replica.
  std::vector<sim::StepSpan> open_;        ///< Per thread: the slice that may still grow.
  /// Per endpoint and kind of lane: when the last copy of each lane ended.
  std::vector<std::array<std::vector<SimTime>, 4>> lanes_;
  std::int64_t flows_ = 0;
  std::vector<Counters> counters_;              ///< Per endpoint: as written last.
  std::unordered_map<std::int64_t, Way> ways_;  ///< Of outstanding requests; never iterated.
  SimTime next_tick_ = SimTime::max();
};

}  // namespace routesim::tools
