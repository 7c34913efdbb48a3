// Watches a run from outside. Observers never change anything: with or without them a run gives the
// same bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/units.h"
#include "models/latency_model.h"
#include "sim/observe/run_result.h"
#include "sim/tiers/tier_engines.h"
#include "workloads/load_generator.h"
#include "workloads/request.h"

namespace routesim::sim {

class Replica;
class Router;
struct EndpointHome;
struct Route;
struct RunPlan;

/// The data an observer may look at. The view and all it refers to last until on_end() returns.
struct RunView {
  const RunPlan& plan;
  const std::vector<EndpointHome>& endpoints;
  const std::vector<std::unique_ptr<Replica>>& replicas;
  const Router& router;
  const std::vector<workloads::StageInfo>& stages;
};

/// One engine step of one rank, or `steps` of them in a row that differ in nothing but their
/// contexts; of a pipeline whose stages overlap, what one stage did for one batch. Spans of a rank
/// and stage come in time order and never overlap. Those of a batch come together, when it is
/// through, the first stage first.
struct StepSpan {
  std::uint32_t replica = 0;
  int rank = 0;
  int stage = 0;
  SimTime begin, end;
  std::int64_t steps = 1;
  models::BatchShape shape;  ///< Of the (last) step; empty for a lock-step rank's dummy batch.
};

class Observer {
 public:
  virtual ~Observer() = default;
  /// Before the first event.
  virtual void on_start(const RunView&) {}
  virtual void on_sent(const workloads::Request&, SimTime) {}
  /// The router chose; not called for requests it turned away.
  virtual void on_routed(const workloads::Request&, const Route&, SimTime) {}
  /// The request reached an engine's front end: the prefill server's first, if there is one.
  virtual void on_delivered(const workloads::Request&, EndpointId, SimTime) {}
  /// PD: the prefill server is done; the decode leg begins.
  virtual void on_prefilled(const workloads::Request&, SimTime) {}
  /// The engine sampled the first token; the client has it after the response overhead.
  virtual void on_first_token(const workloads::Request&, SimTime) {}
  /// Its server is gone: it ends, or is routed and delivered once more.
  virtual void on_lost(const workloads::Request&, SimTime) {}
  virtual void on_done(const RequestRecord&) {}
  /// After a replica processed what was due at `now`.
  virtual void on_replica_advanced(const Replica&, SimTime) {}
  /// Steps are reported only when somebody wants them: they cost a call each.
  virtual bool wants_steps() const { return false; }
  virtual void on_step(const StepSpan&) {}
  /// A copy of KV tiers has ended.
  virtual void on_copy(const CopySpan&) {}
  /// When on_tick() is due next, asked after on_start() and after each tick; must grow.
  virtual SimTime next_tick() const { return SimTime::max(); }
  /// Every server has processed the steps that end at or before `now`; nothing else of `now` has
  /// happened yet.
  virtual void on_tick(SimTime) {}
  /// After the last event; not called when the run ends in an exception.
  virtual void on_end(SimTime) {}
  /// The result the caller will get; `complete` is false for a run that was stopped early.
  virtual void on_result(const RunResult&, bool /*complete*/) {}
};

}  // namespace routesim::sim
