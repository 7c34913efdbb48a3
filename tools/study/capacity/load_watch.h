// Watches a run at one rate and ends it as soon as it has told whether the servers sustain it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/observe/observer.h"
#include "tools/study/capacity/steady_window.h"

namespace routesim::tools {

/// What keeps a fleet from answering more.
enum class Limit { kPrefill, kDecode, kKvBlocks, kMaxNumSeqs, kRouter, kGateway, kClient, kNone };

/// `prefill compute`, `decode step`, `KV blocks`, `max_num_seqs`, ...; empty for kNone.
std::string_view limit_name(Limit limit);

/// Whether servers keep up with a rate.
enum class Sustains { kYes, kNo, kOpen };

struct WatchRules {
  double rate = 0;               ///< Requests/s asked for, > 0.
  std::int64_t most_sends = 0;   ///< The run ends then in any case; at least kWatchBins.
  double answered_error = 0.01;  ///< Standard error at which an overload has told its answers.
  /// Take no queue for one that grows while answers or hits still rise: caches and batches may
  /// fill.
  bool patient = false;
};

inline constexpr std::int64_t kWatchBins = 240;

/// Sets `stop` when it knows enough. Used by the thread of the run.
class LoadWatch final : public sim::Observer {
 public:
  LoadWatch(const WatchRules& rules, std::atomic<bool>& stop);

  void on_start(const sim::RunView& view) override { view_ = &view; }
  void on_sent(const workloads::Request& request, SimTime now) override;
  void on_routed(const workloads::Request&, const sim::Route&, SimTime) override { --unrouted_; }
  void on_done(const sim::RequestRecord& record) override;
  SimTime next_tick() const override { return next_; }
  void on_tick(SimTime now) override;
  void on_end(SimTime) override { view_ = nullptr; }
  void on_result(const sim::RunResult& result, bool complete) override;

  Sustains sustains() const { return sustains_; }
  const SteadyWindow& window() const { return window_; }
  std::int64_t sent() const { return sent_; }
  std::int64_t in_flight() const { return bins_.empty() ? 0 : bins_.back().in_flight; }
  double warm_up_s() const { return bin_.to_seconds() * static_cast<double>(window_.first); }
  /// The limit that most servers were at behind the warm-up.
  Limit limit() const;

 private:
  /// Servers with a queue, by what its head waits for, and whole-fleet queues, in one bin.
  struct Waits {
    std::int32_t servers = 0, seats = 0, blocks = 0, tokens = 0, decodes = 0;
    std::int64_t unrouted = 0, in_flight = 0;
  };

  void judge();
  void note_queues();
  /// Whether every server had no queue at some instant of the last third of the window.
  bool all_emptied() const;
  Waits waits() const;

  WatchRules rules_;
  std::atomic<bool>& stop_;
  const sim::RunView* view_ = nullptr;
  Duration bin_;
  SimTime next_;
  LoadBin now_;
  std::int64_t in_flight_ = 0, sent_ = 0, unrouted_ = 0;
  std::vector<LoadBin> bins_;
  std::vector<Waits> waits_;          ///< By bin.
  std::vector<std::size_t> emptied_;  ///< By endpoint: the last bin at whose end it had no queue.
  bool gateway_waits_ = false;        ///< For connections longer than the router for decisions.
  SteadyWindow window_;
  Sustains sustains_ = Sustains::kOpen;
};

}  // namespace routesim::tools
