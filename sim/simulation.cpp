#include "sim/simulation.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace routesim::sim {

RunResult Simulation::run() {
  try {
    return run_to_end();
  } catch (const ClockError& e) {
    Diagnostic d = e.diagnostic();
    if (plan_.where) d.where = plan_.where(d.path);
    d.message +=
        ", in variant " + plan_.scenario.variant + " with seed " + std::to_string(options_.seed);
    throw ClockError(std::move(d));
  }
}

RunResult Simulation::run_to_end() {
  if (options_.progress != nullptr) {
    std::int64_t total = 0;
    for (const workloads::StageInfo& s : load_->stages())
      total = s.requests < 0 || total < 0 ? -1 : total + s.requests;
    options_.progress->total = std::max<std::int64_t>(total, 0);
  }
  const RunView view{plan_, router_->endpoints(), replicas_, *router_, load_->stages()};
  start_observers(view);
  schedule_client(SimTime::zero());
  // Timeouts of requests long answered are still queued when the load ends; they are no part of it.
  while (!(outstanding_ == 0 && load_->finished())) {
    const std::optional<Event> event = queue_.pop();
    if (!event) break;
    if (event->time >= kEndOfTime) throw_end_of_time();
    if (next_tick_ <= event->time) tick(event->time);
    handle(*event);
    if (options_.progress != nullptr && options_.progress->stop.load(std::memory_order_relaxed)) {
      stopped_ = true;
      break;
    }
  }
  if (!stopped_ && (outstanding_ > 0 || !load_->finished())) report_stuck(queue_.now());
  if (options_.check && !stopped_) verify();
  for (Observer* o : options_.observers) o->on_end(queue_.now());
  RunResult found = result();
  for (Observer* o : options_.observers) o->on_result(found, !stopped_);
  if (!client_sees_tokens(plan_.scenario.workload)) forget_token_times(found);
  return found;
}

void Simulation::throw_end_of_time() const {
  Diagnostic d;
  d.path = "workload";
  d.message = "the run is longer than 103 days of simulated time, which is all its clock holds";
  d.hint = "send fewer requests, or use faster servers: " + std::to_string(outstanding_) +
           " requests are outstanding";
  throw ClockError(std::move(d));
}

void Simulation::handle(const Event& e) {
  const bool about_request = e.kind == EventKind::kCompletion || e.kind == EventKind::kDelivery ||
                             e.kind == EventKind::kRoute || e.kind == EventKind::kTimeout ||
                             e.kind == EventKind::kPull;
  if (about_request && (live_[e.subject].stamp != e.stamp || live_[e.subject].settled)) return;
  switch (e.kind) {
    case EventKind::kReplicaWake:
      wake(e.subject, e.time);
      break;
    case EventKind::kTransferTick:
      if (pending_tick_ == e.time) transfer_tick(e.time);
      break;
    case EventKind::kCompletion:
      complete(e.subject, workloads::Outcome::kSuccess, e.time);
      break;
    case EventKind::kClientAction:
      if (pending_client_ == e.time) client_action(e.time);
      break;
    case EventKind::kDelivery:
      deliver(e.subject, e.time);
      break;
    case EventKind::kApiRound:
      begin_round(e.subject, e.stamp, e.time);
      break;
    case EventKind::kRoute:
      route(e.subject, e.time);
      break;
    case EventKind::kRouterTick:
      router_tick(e.time);
      break;
    case EventKind::kTimeout:
      give_up(e.subject, "TimeoutError", workloads::Outcome::kTimeout, e.time);
      break;
    case EventKind::kPull:
      begin_pull(e.subject, e.time);
      break;
    case EventKind::kLeaseEnd:
      if (pending_lease_ == e.time) end_leases(e.time);
      break;
  }
}

void Simulation::schedule_client(SimTime now) {
  const SimTime next = load_->next_action();
  if (next == SimTime::max() || next == pending_client_) return;
  pending_client_ = next;
  if (pending_client_ < now) pending_client_ = now;
  queue_.push(pending_client_, EventKind::kClientAction);
}

void Simulation::client_action(SimTime now) {
  pending_client_ = SimTime::max();
  to_send_.clear();
  load_->advance(now, to_send_);
  for (std::size_t i = 0; i < to_send_.size(); ++i) {
    const workloads::Prompt& prompt = *to_send_[i].prompt;
    const PromptKeys* keys = prompt_keys_->acquire_known(prompt);
    if (keys == nullptr) {
      key_prompts(i);
      keys = &prompt_keys_->acquire(prompt);
    }
    send(std::move(to_send_[i]), *keys, now);
  }
  schedule_client(now);
}

// Keys the prompt of to_send_[i], which is not known, and with it others that will soon be sent.
void Simulation::key_prompts(std::size_t i) {
  std::array<const workloads::Prompt*, PromptKeyTable::kTogether> prompts;
  std::size_t n = 0;
  const auto take = [&](const workloads::Request* request) {
    if (request == nullptr) return false;
    const workloads::Prompt* prompt = request->prompt.get();
    const bool taken = std::any_of(prompts.begin(), prompts.begin() + n,
                                   [&](const auto* other) { return other->id == prompt->id; });
    if (!taken && !prompt_keys_->knows(*prompt)) prompts[n++] = prompt;
    return n < prompts.size();
  };
  bool more = true;
  for (; more && i < to_send_.size(); ++i) more = take(&to_send_[i]);
  for (std::size_t next = 0; more; ++next) more = take(load_->upcoming(next));
  prompt_keys_->prepare({prompts.data(), n});
}

std::uint32_t Simulation::acquire_slot() {
  if (!free_live_.empty()) {
    const std::uint32_t handle = free_live_.back();
    free_live_.pop_back();
    return handle;
  }
  live_.emplace_back();
  return static_cast<std::uint32_t>(live_.size() - 1);
}

void Simulation::send(workloads::Request&& sent, const PromptKeys& keys, SimTime now) {
  if (!current_stage_.valid() || sent.stage != current_stage_) enter_stage(sent.stage, now);
  const std::uint32_t handle = acquire_slot();
  Live& live = live_[handle];
  live.request = std::move(sent);
  const workloads::Request& request = live.request;
  live.keys = &keys;
  live.in_use = true;
  live.sent = now;
  ++outstanding_;
  ++stage_outstanding_;
  metrics_->on_sent(request, now);
  for (Observer* o : options_.observers) o->on_sent(request, now);
  queue_.push(
      now + plan_.scenario.workload.client_overhead + plan_.scenario.routing.decision_latency,
      EventKind::kRoute, handle, live.stamp);
  if (request.timeout < Duration::max())
    queue_.push(now + request.timeout, EventKind::kTimeout, handle, live.stamp);
}

EngineRequest Simulation::engine_request(std::uint32_t handle) const {
  const Live& live = live_[handle];
  EngineRequest r;
  r.handle = handle;
  r.keys = live.keys;
  r.prompt_tokens = live.request.prompt->tokens;
  r.output_tokens = live.request.output_tokens;
  r.max_tokens = live.request.max_tokens;
  r.output_content = live.request.output_content;
  r.private_answer = private_answers_ && live.request.session == 0;
  r.priority = live.request.priority;
  r.adapter = live.request.prompt->adapter;
  return r;
}

void Simulation::deliver(std::uint32_t handle, SimTime now) {
  Live& live = live_[handle];
  EngineRequest r = engine_request(handle);
  r.arrival_order = ++arrivals_;
  EndpointId target = live.route.endpoint;
  if (live.leg == Leg::kToPrefill) {
    live.leg = Leg::kPrefill;
    target = *live.route.prefill;
    r.output_tokens = r.max_tokens = 1;
    r.hold_blocks = true;
  } else {
    live.leg = Leg::kEngine;
    if (live.route.prefill) r.remote_tokens = r.prompt_tokens;
  }
  ++endpoint_requests_[target.value()];
  const EndpointHome& at = home(target);
  Replica& replica = *replicas_[at.replica];
  replica.advance_to(now);
  for (Observer* o : options_.observers) o->on_delivered(live.request, target, now);
  replica.deliver(at.rank, r, now);
  after_touch(at.replica, now);
}

void Simulation::wake(std::uint32_t replica, SimTime now) {
  replicas_[replica]->advance_to(now);
  after_touch(replica, now);
}

// Reads what the replica has to say and books its next wake.
void Simulation::after_touch(std::uint32_t replica, SimTime now) {
  collect(replica, now);
  queue_.push(replicas_[replica]->next_wake(), EventKind::kReplicaWake, replica);
  for (Observer* o : options_.observers) o->on_replica_advanced(*replicas_[replica], now);
}

// What one output sets off may make the same server say more: that is collected inside.
void Simulation::collect(std::uint32_t replica, SimTime now) {
  std::vector<EngineOutput>& outputs = replicas_[replica]->outputs();
  if (outputs.empty()) return;
  std::vector<EngineOutput> batch = std::move(spare_outputs_);
  batch.clear();
  batch.swap(outputs);
  for (const EngineOutput& o : batch) on_output(o, now);
  spare_outputs_ = std::move(batch);
}

void Simulation::on_output(const EngineOutput& o, SimTime now) {
  ROUTESIM_DCHECK(o.at == now, "a server woke too late for what it had to say");
  Live& live = live_[o.handle];
  if (o.kind == EngineOutputKind::kAborted) recycle(o.handle);
  if (live.settled || !live.in_use) return;
  switch (o.kind) {
    case EngineOutputKind::kFirstToken:
      if (live.leg != Leg::kEngine) return;  // a prefill server's token is dropped
      live.first_token = o.at + plan_.scenario.workload.response_overhead;
      router_->on_first_token(live.request, live.route, o.at);
      for (Observer* w : options_.observers) w->on_first_token(live.request, o.at);
      break;
    case EngineOutputKind::kResumedToken:
      metrics_->on_gap(live.request.stage, Duration::nanoseconds(o.value));
      break;
    case EngineOutputKind::kFinished:
      if (live.leg == Leg::kPrefill)
        prefill_finished(o.handle, o.at);
      else if (live.leg == Leg::kEngine)
        on_finished(o.handle, o);
      break;
    case EngineOutputKind::kTransferNeeded:
      start_transfer(o.handle, o.value, now);
      break;
    case EngineOutputKind::kNothingToPull:
      release_prefill(o.handle, now);
      break;
    case EngineOutputKind::kUnservable:
      // Nobody will pull what a prefill server holds for it.
      if (live.leg == Leg::kEngine) release_prefill(o.handle, now);
      fail(o.handle, o.value == 1 ? "prompt_too_long" : "kv_cache_too_small",
           workloads::Outcome::kError, now);
      break;
    case EngineOutputKind::kAborted:
      break;
  }
}

void Simulation::on_finished(std::uint32_t handle, const EngineOutput& o) {
  Live& live = live_[handle];
  live.leg = Leg::kToClient;
  live.preemptions = static_cast<std::int32_t>(o.value);
  live.cached_tokens = o.cached_tokens;
  live.end = o.at + plan_.scenario.workload.response_overhead;
  queue_.push(live.end, EventKind::kCompletion, handle, live.stamp);
}

void Simulation::fail(std::uint32_t handle, const char* label, workloads::Outcome outcome,
                      SimTime now) {
  live_[handle].failure = label;
  complete(handle, outcome, now);
}

// The client gives up, or is told to: its books are closed at once, but the slot lives on until the
// engine has drained the abort, because its steps may still touch the request's blocks.
void Simulation::give_up(std::uint32_t handle, const char* label, workloads::Outcome outcome,
                         SimTime now) {
  Live& live = live_[handle];
  const Leg leg = live.leg;
  std::optional<EndpointId> engine;
  if (leg == Leg::kQueued) router_->cancel(live.route.instance, handle, now);
  if (leg == Leg::kPrefill) engine = live.route.prefill;
  if (leg == Leg::kEngine) engine = live.route.endpoint;
  if (leg == Leg::kEngine || leg == Leg::kToEngine) {
    fabric_.cancel(handle, now);
    schedule_transfer_tick();  // the others share what it leaves
    release_prefill(handle, now);
  }
  live.failure = label;
  settle(handle, outcome, now);
  if (!engine) {
    recycle(handle);
    return;
  }
  const EndpointHome& at = home(*engine);
  replicas_[at.replica]->advance_to(now);
  collect(at.replica, now);
  replicas_[at.replica]->abort(at.rank, handle, now);
  after_touch(at.replica, now);
}

void Simulation::complete(std::uint32_t handle, workloads::Outcome outcome, SimTime now) {
  settle(handle, outcome, now);
  recycle(handle);
}

void Simulation::recycle(std::uint32_t handle) {
  Live& live = live_[handle];
  prompt_keys_->release(*live.keys);
  const std::uint32_t stamp = live.stamp + 1;
  live = Live{};
  live.stamp = stamp;
  free_live_.push_back(handle);
  queue_.drop_timeouts([this](const Event& e) { return live_[e.subject].stamp != e.stamp; });
}

// Closes the client's books on a request and lets the load tool go on.
void Simulation::settle(std::uint32_t handle, workloads::Outcome outcome, SimTime now) {
  Live& live = live_[handle];
  const workloads::Request& request = live.request;
  live.settled = true;
  RequestRecord record;
  record.id = request.id.value();
  record.stage = static_cast<std::int32_t>(request.stage.value());
  if (live.route.routed) {
    record.endpoint = static_cast<std::int32_t>(live.route.endpoint.value());
    if (live.route.prefill)
      record.prefill_endpoint = static_cast<std::int32_t>(live.route.prefill->value());
    router_->on_completed(request, live.route, now);
    leave_rank(live.route.endpoint);
    if (live.route.prefill) leave_rank(*live.route.prefill);
  }
  record.due = request.due;
  record.sent = live.sent;
  record.first_token = live.first_token;
  record.end = now;
  record.prompt_tokens = request.prompt->tokens;
  record.cached_tokens = live.cached_tokens;
  record.output_tokens = request.output_tokens;
  record.preemptions = live.preemptions;
  record.adapter = request.prompt->adapter;
  record.predicted_hit_tokens = live.route.predicted_hit_tokens;
  record.outcome = outcome;
  record.failure = live.failure;
  metrics_->on_done(record, record.failure);
  for (Observer* o : options_.observers) o->on_done(record);
  if (options_.keep_requests) result_.requests.push_back(record);
  result_.routing.prompt_tokens += record.prompt_tokens;
  result_.routing.hit_tokens += record.cached_tokens;
  result_.routing.predicted_hit_tokens += std::max<std::int64_t>(0, record.predicted_hit_tokens);
  result_.fingerprint =
      mix64(result_.fingerprint, mix64(mix64(static_cast<std::uint64_t>(record.id),
                                             static_cast<std::uint64_t>(record.first_token.ns())),
                                       mix64(static_cast<std::uint64_t>(now.ns()),
                                             static_cast<std::uint64_t>(record.endpoint))));

  --outstanding_;
  if (--stage_outstanding_ == 0) close_stage(request.stage, now);
  if (options_.progress != nullptr)
    options_.progress->completed.fetch_add(1, std::memory_order_relaxed);
  load_->on_completed(request, outcome, now);
  schedule_client(now);
}

double Simulation::used_block_seconds(SimTime now) {
  double total = 0;
  for (std::uint32_t e = 0; e < router_->endpoints().size(); ++e) {
    const EndpointHome& at = router_->endpoints()[e];
    replicas_[at.replica]->advance_to(now);
    total += replicas_[at.replica]->used_block_seconds(at.rank, now) /
             static_cast<double>(plan_.pools[at.pool].rules.num_gpu_blocks - 1);
  }
  return total;
}

void Simulation::enter_stage(StageId stage, SimTime now) {
  current_stage_ = stage;
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    replica->advance_to(now);
    replica->count_gaps_in(&metrics_->stage(stage).inter_token_latency);
  }
  if (metrics_->stage(stage).requests == 0) stage_start_usage_ = used_block_seconds(now);
}

void Simulation::close_stage(StageId stage, SimTime now) {
  StageResult& s = metrics_->stage(stage);
  const double seconds = (now - s.first_send).to_seconds();
  if (seconds <= 0) return;
  const auto endpoints = static_cast<double>(router_->endpoints().size());
  s.kv_cache_usage_mean = (used_block_seconds(now) - stage_start_usage_) / seconds / endpoints;
  for (const EndpointHome& at : router_->endpoints())
    s.kv_cache_usage_max =
        std::max(s.kv_cache_usage_max,
                 static_cast<double>(replicas_[at.replica]->peak_used_blocks(at.rank)) /
                     static_cast<double>(plan_.pools[at.pool].rules.num_gpu_blocks - 1));
}

void Simulation::verify() const {
  for (const std::unique_ptr<Replica>& replica : replicas_) replica->verify();
  std::int64_t in_use = 0;
  for (const Live& live : live_) in_use += live.in_use && !live.settled ? 1 : 0;
  ROUTESIM_CHECK(in_use == outstanding_, "requests are not conserved");
}

}  // namespace routesim::sim
