// The scheduler: one EndpointPickerConfig made runnable. Feed it the table of endpoints, requests
// and events; it answers with decisions. It never blocks, reads no clock and owns no thread.
#pragma once

#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"
#include "policies/cycle.h"
#include "policies/decision.h"
#include "policies/endpoint_picker_config.h"
#include "policies/latency_predictor.h"
#include "policies/plugins.h"
#include "policies/requirements.h"
#include "policies/scheduling_profile.h"
#include "policies/views.h"

namespace routesim::policies {

class ConcurrentPrefixIndex;
class PluginRegistry;
class PluginSet;

struct SchedulerOptions {
  std::uint64_t seed = 0;  ///< Seed of every random draw of the scheduler.
  /// Leave candidates in table order where upstream's order is arbitrary (tests, `score`).
  bool ordered_candidates = false;
  const PluginRegistry* registry = nullptr;  ///< Absent = standard_registry().
  /// Guard plugin state with a lock and use the concurrent prefix index, so that several threads
  /// may decide and run hooks at once. Off for single-threaded use.
  bool thread_safe = false;
  /// Asked by predicted-latency-producer, and told what it observes; outlives the scheduler. None =
  /// only RequestView::predictions.
  LatencyPredictor* predictor = nullptr;
};

/// The reusable buffers of one decision maker; one per thread.
class Scratch {
 public:
  Scratch() = default;

 private:
  friend class Scheduler;
  Cycle cycle_;
  SchedulingProfile::Buffers buffers_;
  std::vector<std::uint32_t> run_;
};

/// Tokens of a prompt in one storage tier of an endpoint, as the precise index has it.
struct TierHits {
  EndpointRow endpoint = 0;
  std::string tier;  ///< "gpu", "cpu", … as engines name it, or "speculative".
  std::int64_t tokens = 0;
};

/// Thread safety with SchedulerOptions::thread_safe: schedule and explain with distinct Scratch
/// objects may run concurrently with each other and with the hooks, as long as nobody changes the
/// EndpointTable meanwhile. Without it: one thread at a time.
class Scheduler {
 public:
  /// For make_scheduler() (config/make_scheduler.h), which returns valid schedulers only.
  /// Builds every plugin from `options.registry`, which must be set. Reports bad parameters as
  /// errors; then valid() is false and the scheduler must not be used.
  Scheduler(const EndpointPickerConfig& config, const SchedulerOptions& options,
            Diagnostics& diagnostics);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  bool valid() const { return valid_; }

  /// When schedule() may be asked about a request: `now`, or later where a plugin gathers requests
  /// and places them together. Call it after advance(), and again at the time it gave.
  SimTime ready_at(const RequestView& request, const EndpointTable& endpoints, SimTime now);
  /// Whether ready_at() may give a later time.
  bool gathers() const;
  /// Decides into `decision`, whose buffers are reused. Changes no plugin state.
  /// RequestView::subset limits the candidates. RequestView::forced replays the choice of another
  /// router: hand the decision to on_routed() as any other.
  void schedule(const RequestView& request, const EndpointTable& endpoints, SimTime now,
                Scratch& scratch, Decision& decision) const;
  /// The same with a scratch of its own: convenient, allocates, still thread-safe.
  Decision schedule(const RequestView& request, const EndpointTable& endpoints, SimTime now) const;
  /// Decides as schedule() would, and records how. No side effects, not even on recency.
  Decision explain(const RequestView& request, const EndpointTable& endpoints, SimTime now,
                   Explanation& explanation) const;

  /// PreRequest hooks: call right before forwarding a routed request.
  void on_routed(const RequestView& request, const Decision& decision,
                 const EndpointTable& endpoints, SimTime now);
  /// The headers of a streamed response: the server has read the request.
  void on_response_started(std::uint64_t request, SimTime now);
  void on_first_token(std::uint64_t request, SimTime now);
  /// The whole answer is there; call before on_completed().
  void on_answered(std::uint64_t request, std::int64_t output_tokens, SimTime now);
  /// Call once for every routed request, also when it failed or was aborted.
  void on_completed(std::uint64_t request, SimTime now);
  /// Call before EndpointTable::remove.
  void on_endpoint_removed(EndpointRow row, const EndpointTable& endpoints, SimTime now);
  /// The same for one that may come back to its row and address. Up to v0.9.0 the precise index
  /// keeps its blocks then; call forget_blocks() when another endpoint takes the row. (Where ranks
  /// share entries by address it forgets them, other than the releases before v0.7.0.)
  void on_endpoint_unready(EndpointRow row, const EndpointTable& endpoints, SimTime now);
  /// The precise index forgets an endpoint. Ranks of one address share their entries, which go with
  /// the last of them.
  void forget_blocks(EndpointRow row, const EndpointTable& endpoints);
  /// Expires what is due: speculative index entries, counters with a time-out, session bindings.
  /// Call before schedule(), which is const and sees what the last call left. Cheap when nothing
  /// is due. Instants must not go back.
  void advance(SimTime now);
  /// Headers the plugins add to the response to the client.
  std::vector<std::pair<std::string, std::string>> response_headers(
      const Decision& decision, const EndpointTable& endpoints) const;

  /// Pool saturation by the configured detector (over the given candidates).
  double saturation(const EndpointTable& endpoints, SimTime now) const;

  const EndpointPickerConfig& config() const { return config_; }
  const SignalNeeds& needs() const { return needs_; }
  const std::vector<std::string>& profile_names() const { return profile_names_; }

  /// The index fed by KV events, or nullptr when the configuration has no precise producer or
  /// `thread_safe` was asked for.
  PrefixIndex* precise_index() const;
  /// The same for a scheduler built with `thread_safe`.
  ConcurrentPrefixIndex* concurrent_index() const;
  /// Names of the index's storage tiers; needed to feed events.
  TierRegistry* tiers() const;
  /// The options for a KvEventIngestor over the precise index.
  KvIngestOptions kv_ingest_options() const;
  /// The keys the precise index wants; meaningful when precise_index() is not null.
  BlockKeyScheme block_key_scheme() const;
  /// Under which id the precise index knows an endpoint: its row, or in eras whose pod key is
  /// the bare address, the number all ranks of that address share.
  std::uint32_t index_holder(const EndpointTable& endpoints, EndpointRow row) const {
    return by_address_ ? endpoints.address_group(row) : row;
  }
  /// Prompt tokens that the decision just made with `scratch` expected to be cached at an endpoint,
  /// by the precise index if there is one, else by the approximate one; -1 when neither ran.
  std::int64_t predicted_hit_tokens(const Scratch& scratch, EndpointId endpoint) const;
  /// The latency that the decision just made with `scratch` expected at an endpoint; not present
  /// where no plugin predicts it.
  LatencyPrediction predicted_latency(const Scratch& scratch, EndpointId endpoint) const;
  /// Contiguous prompt tokens of a request that the precise index knows at each candidate, tier by
  /// tier; by prompt where there are several, in sum. A token in two tiers is in both. Changes
  /// nothing. Empty without a precise index.
  std::vector<TierHits> tier_hits(const RequestView& request, const EndpointTable& endpoints) const;
  /// The first approximate index, or nullptr.
  ApproxPrefixIndex* approx_index() const;
  /// The hashes the approximate producer wants for the next request: with autoTune the block size
  /// follows what the first candidate reports. Meaningful when needs().approx_hashes.
  ApproxScheme approx_scheme(const EndpointTable& endpoints) const;
  /// A plugin instance by name, or nullptr: for parts driven beside the scheduler (FlowControl).
  Plugin* plugin(const std::string& name) const;
  /// The router's own in-flight counts, or nullptr when nothing uses them.
  const InFlightCounts* in_flight() const;

 private:
  struct Flow;  // One decision under way: its cycle, buffers and record.
  void begin(Flow& flow) const;
  void decide(Flow& flow) const;
  void run_profile(Flow& flow, std::uint32_t index) const;
  void conclude(Flow& flow, const char* error) const;

  EndpointPickerConfig config_;
  SchedulerOptions options_;
  bool valid_ = false;
  bool by_address_ = false;
  bool reads_prompts_ = true;
  SignalNeeds needs_;
  std::unique_ptr<PluginSet> plugins_;
  std::shared_ptr<const char> identity_ = std::make_shared<const char>('\0');  // For Scratch.
  std::vector<SchedulingProfile> profiles_;
  std::vector<std::string> profile_names_;
  const ProfileHandler* handler_ = nullptr;
  const SaturationDetector* detector_ = nullptr;
  std::vector<const Admitter*> admitters_;
  mutable std::shared_mutex mutex_;  // Guards plugin state; used with thread_safe only.
};

}  // namespace routesim::policies
