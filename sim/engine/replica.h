// One model server: one engine core, or several DP ranks that step in lock step because their
// experts exchange tokens. Owns the step loop: process, drain, schedule, launch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/latency_model.h"
#include "sim/engine/batch_scheduler.h"
#include "sim/engine/decode_stretch.h"
#include "sim/engine/earliest.h"
#include "sim/engine/gauges.h"
#include "sim/engine/kv_event_log.h"
#include "sim/engine/pipeline.h"
#include "sim/engine/range_watch.h"
#include "sim/statistics/samples.h"
#include "sim/tiers/kv_pull.h"

namespace routesim::sim {

class Replica;

/// Everything about a rank that is fixed for the run.
struct ReplicaOptions {
  EngineRules rules;
  std::shared_ptr<const models::LatencyModel> latency;
  int ranks = 1;                ///< Lock-step DP ranks; 1 = a single engine core.
  bool reference = false;       ///< Visit every step and every sequence.
  bool publish_events = false;  ///< Somebody reads the KV events.
  bool one_key = false;         ///< One key serves engine and router (PromptKeyTable::one_key).
  Duration kv_event_delay;
  double kv_event_loss = 0;
  Duration scrape_interval = Duration::milliseconds(50);
  ChunkPool* store = nullptr;  ///< With TierRules::shared_store: outlives the replica.
  SequenceKeySource* keys = nullptr;
  std::uint64_t seed = 0;
  std::uint64_t first_endpoint = 0;        ///< Keys this replica's random draws.
  std::optional<std::uint64_t> front_end;  ///< Its ranks are scraped together; keys their phase.
};

/// Where a step was computed.
struct StepPlace {
  int rank = 0;
  int stage = 0;  ///< Of a pipeline whose stages overlap.
};

/// Hears of every step of a server as it ends, rank by rank. Of a pipeline whose stages overlap it
/// hears of each stage then, the first one first.
class StepListener {
 public:
  virtual ~StepListener() = default;
  virtual void on_step(const Replica& replica, StepPlace place, const models::BatchShape& shape,
                       SimTime begin, SimTime end) = 0;
};

/// A server whose steps are computed when somebody looks. Simulated time moves only in advance_to()
/// and never back; between two interesting moments whole runs of decode steps cost a few
/// nanoseconds each.
class Replica {
 public:
  Replica(const ReplicaOptions& options, SequenceKeySource& keys);

  /// The process ends and another one takes its place, with empty queues and an empty KV cache: all
  /// that was in it is lost, and nobody is told. Counters go on. Call advance_to(now) first.
  void restart(SimTime now);
  /// Steps that begin from now on take `factor` times as long.
  void set_pace(double factor);
  /// KV events that are published from now on are lost, or no longer.
  void set_events_lost(bool lost) { events_lost_ = lost; }

  /// Processes every step that ends at or before `now`.
  void advance_to(SimTime now);
  /// When the replica next has to be advanced because something may become visible outside; never
  /// later than the next finish. SimTime::max() when it sleeps.
  SimTime next_wake() const { return wake_; }

  /// Keeps time number `i` of `publications` at the end of the next step that may have KV events to
  /// publish, SimTime::max() while there is none: somebody who watches many replicas need not visit
  /// them.
  void mirror_next_publication(Earliest& publications, std::size_t i) {
    publication_mirror_ = &publications;
    publication_number_ = i;
  }

  /// The calls below need advance_to(now) first; they take effect when the engine next drains its
  /// input queue, that is at the end of the running step.
  void deliver(int rank, const EngineRequest& request, SimTime now) {
    input(rank, {.kind = InputKind::kRequest, .request = request}, now);
  }
  void abort(int rank, std::uint32_t handle, SimTime now) {
    input(rank, {.kind = InputKind::kAbort, .request = {.handle = handle}}, now);
  }
  void transfer_done(int rank, std::uint32_t handle, SimTime now) {
    input(rank, {.kind = InputKind::kTransferDone, .request = {.handle = handle}}, now);
  }
  void transfer_failed(int rank, std::uint32_t handle, SimTime now) {
    input(rank, {.kind = InputKind::kTransferFailed, .request = {.handle = handle}}, now);
  }
  void release_held(int rank, std::uint32_t handle, SimTime now) {
    release_sequence(rank, scheduler(rank).find_held(handle), now);
  }
  /// The same for a sequence whose request is long over.
  void release_sequence(int rank, SequenceRef sequence, SimTime now) {
    input(rank, {.kind = InputKind::kRelease, .sequence = sequence}, now);
  }

  /// A copy of a rank's tiers has ended: the bytes are there, though the rank does not know yet.
  /// Returns the handle of the request whose load failed.
  std::optional<std::uint32_t> land_copy(int rank, std::uint32_t copy) {
    return ranks_[static_cast<std::size_t>(rank)].scheduler.tiers().landed(copy);
  }
  /// A copy of a rank's tiers is done.
  void copy_done(int rank, std::uint32_t copy, SimTime now) {
    input(rank, {.kind = InputKind::kCopyDone, .request = {.handle = copy}}, now);
  }
  /// A message about a pull reaches a rank, which hears it at the end of the running step.
  void tell_pull(int rank, PullNews news, KvPull& pull, SimTime now) {
    input(rank, {.kind = InputKind::kPull, .pull = &pull, .news = news}, now);
  }
  /// Messages to send since the last call; the caller clears it.
  struct RankMessage {
    int rank = 0;
    PullMessage message;
  };
  std::vector<RankMessage>& messages() { return outbox_.messages; }
  /// Copies to start since the last call; the caller clears it.
  struct RankCopy {
    int rank = 0;
    TierCopy copy;
  };
  std::vector<RankCopy>& copies() { return outbox_.copies; }

  /// The outputs since the last call, in time order; the caller clears them.
  std::vector<EngineOutput>& outputs() { return outbox_.outputs; }
  /// Sets the samples that collect gaps between tokens of steadily decoding sequences; may be null.
  void count_gaps_in(Samples* gaps) { gaps_ = gaps; }

  /// Sets the listener that hears of the steps; null (the default) costs nothing.
  void report_steps_to(StepListener* listener) { listener_ = listener; }

  /// The gauges as the scrape at `at` saw them, the last one at or before `now`. Needs no
  /// advance_to(), and leaves the steps where it can tell what they come to.
  Gauges scrape(int rank, SimTime at, SimTime now);
  /// Fetches into the processor's caches what scrape() reads first; then, once that has come, what
  /// it reads of a rank.
  void prefetch() const {
    for (std::size_t line = 0; line < 3; ++line)
      __builtin_prefetch(reinterpret_cast<const char*>(this) + 64 * line);
  }
  void prefetch(int rank) const {
    const Rank& r = ranks_[static_cast<std::size_t>(rank)];
    __builtin_prefetch(&r.gauges);
    __builtin_prefetch(&r.scheduler);
  }
  /// The gauges that the engine exports, as it last published them.
  Gauges gauges(int rank) const { return ranks_[static_cast<std::size_t>(rank)].gauges; }
  /// The gauges if it published them now; requests that it has not read yet wait.
  Gauges true_gauges(int rank) const;
  /// The next instant after `now` at which a scrape of this rank happens.
  SimTime next_scrape(int rank, SimTime now) const;

  KvEventLog& events(int rank) { return *ranks_[static_cast<std::size_t>(rank)].log; }
  const BatchScheduler& scheduler(int rank) const {
    return ranks_[static_cast<std::size_t>(rank)].scheduler;
  }
  /// The counters of a rank, those of processes that ended included.
  EngineTotals totals(int rank) const;
  /// Inputs that wait for the end of the running step.
  std::int64_t inbox(int rank) const {
    return std::ssize(ranks_[static_cast<std::size_t>(rank)].inbox);
  }
  int ranks() const { return static_cast<int>(ranks_.size()); }
  /// Pipeline stages that overlap; 1 = none.
  int stages() const { return static_cast<int>(pipeline_.stages()); }
  /// Steps begun.
  std::int64_t steps() const { return steps_; }
  /// A step is under way.
  bool stepping() const { return stepping_; }
  Duration busy() const { return busy_; }
  /// Length of the steps whose batch lies outside the range the latency model was fitted on,
  /// seconds; the one under way counts as a whole.
  double extrapolated_s() const {
    return static_cast<double>(range_watch_.ticks()) / (1e9 * models::kTicksPerNanosecond);
  }
  /// Integral of used blocks over time up to `now`, in block-seconds. Call advance_to(now) first:
  /// between two boundaries the number of used blocks does not change.
  double used_block_seconds(int rank, SimTime now) const;
  /// The most blocks in use at any time so far.
  std::int64_t peak_used_blocks(int rank) const;
  /// True when no request is anywhere in the server.
  bool idle() const;
  void verify() const;

 private:
  using Wide = DecodeStretch::Wide;
  enum class InputKind : std::uint8_t {
    kRequest,
    kAbort,
    kTransferDone,
    kTransferFailed,
    kRelease,
    kCopyDone,
    kPull,
    kRequestOver  ///< The workers know that it has finished.
  };
  /// Workers say so with the output of a step; the others stand in the engine's input queue.
  static bool is_news(InputKind kind) {
    return kind == InputKind::kTransferDone || kind == InputKind::kRelease ||
           kind == InputKind::kCopyDone || kind == InputKind::kRequestOver;
  }
  struct Input {
    InputKind kind = InputKind::kRequest;
    EngineRequest request{};
    SequenceRef sequence{};  ///< Of what is told about transfers, and of kRequestOver.
    KvPull* pull = nullptr;
    PullNews news = PullNews::kAsked;
    int steps = 0;  ///< Ends of steps that still pass before the scheduler hears of it.
  };
  /// The results that nobody has collected yet.
  struct Outbox {
    std::vector<EngineOutput> outputs;
    std::vector<RankCopy> copies;
    std::vector<RankMessage> messages;
  };
  struct Rank {
    explicit Rank(const ReplicaOptions& o) : scheduler(o.rules, o.reference, o.store, o.seed) {}
    EngineTotals ended;  ///< Of processes that ended.
    Gauges gauges;
    ScrapeSnapshot scrapes;
    BatchScheduler scheduler;
    std::unique_ptr<KvEventLog> log;
    StepPlan plans[2];
    int running = 0;  ///< Which plan is on the GPU; the other one is scheduled ahead (async).
    std::vector<Input> inbox;
    Wide used_integral = 0;
    std::int64_t peak_used = 0;
    StepPlan& on_gpu() { return plans[running]; }
    StepPlan& ahead() { return plans[1 - running]; }
    const StepPlan& on_gpu() const { return plans[running]; }
    const StepPlan& ahead() const { return plans[1 - running]; }
  };

  static Gauges gauges_now(const Rank& r) {
    return {.running = r.scheduler.running(),
            .waiting = r.scheduler.waiting(),
            .free_blocks = r.scheduler.kv().free_blocks(),
            .adapters = r.scheduler.adapters()};
  }
  /// The step under way has something to publish at its end.
  static bool publishes(const Rank& r) { return r.log != nullptr && r.log->pending(); }
  /// Ends of steps until the scheduler hears what a worker sees from now on.
  int steps_until_heard(SimTime now) const {
    // All workers of a pipeline must have seen it: those of the first stage see it last.
    if (pipeline_.in_use()) return pipeline_.begun(now);
    return options_.rules.async_scheduling ? 2 : 1;
  }
  void connect(Rank& r);
  static EngineTotals totals_of(const Rank& r);
  void input(int rank, Input in, SimTime now);
  /// With nothing to compute it still looks for ended transfers.
  bool listens_when_idle() const;
  void start_if_idle(SimTime now);
  void boundary();
  void report_step();
  void observe(Rank& r, SimTime now);
  void process(Rank& r, SimTime now, Duration gap);
  void apply_pull(Rank& r, const Input& in, SimTime now);
  void collect_copies();
  void collect_ended(Rank& r, int steps);
  template <class Due>
  void apply_if(Rank& r, SimTime now, Due due);
  void hear(Rank& r, SimTime now, bool everything = false);
  void drain(Rank& r, SimTime now);
  void apply(Rank& r, const Input& in, SimTime now);
  void launch(SimTime now);
  bool schedule_step(SimTime now);
  bool schedule_batches(SimTime now);
  void fill_pipeline(SimTime now);
  std::int64_t step_ticks();
  void schedule_ahead(SimTime now);
  void flush_events(Rank& r, SimTime now);
  void look_ahead();
  bool begin_stretch(Rank& r);
  SimTime find_publication() const;
  SimTime publication_in_stretch(const Rank& r) const;
  SimTime stretch_end(std::int64_t boundary) const;
  std::optional<Gauges> stretch_gauges(SimTime at) const;
  SimTime end_of_ahead() const;
  void tell_publication() {
    if (publication_mirror_ != nullptr)
      publication_mirror_->set(publication_number_, stepping_ ? next_publication_ : SimTime::max());
  }
  void decode_boundaries(SimTime now);
  void boundaries_without_events(Rank& r, SimTime now);
  void advance_plans(Rank& r, std::int64_t passes);

  // The fields that a visit looks at first: of many servers, none is in the processor's caches.
  alignas(64) bool stepping_ = false;
  std::int64_t end_ticks_ = 0;
  SimTime end_;                   ///< end_ticks_ in whole nanoseconds.
  std::int64_t ahead_ticks_ = 0;  ///< Length of the step scheduled ahead; 0 = none, or not known.
  SimTime last_boundary_;
  SimTime next_publication_ = SimTime::max();  ///< When there may be events to publish next.
  SimTime wake_ = SimTime::max();
  DecodeStretch stretch_;
  std::vector<Rank> ranks_;
  Pipeline pipeline_;  ///< The batches behind the one that is waited for, which is on_gpu().

  Outbox outbox_;
  Samples* gaps_ = nullptr;
  StepListener* listener_ = nullptr;
  Earliest* publication_mirror_ = nullptr;
  std::size_t publication_number_ = 0;
  std::int64_t steps_ = 0;
  Duration busy_;
  RangeWatch range_watch_;
  ReplicaOptions options_;
  bool events_lost_ = false;
};

}  // namespace routesim::sim
