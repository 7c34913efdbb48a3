#include "sim/simulation.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/run_error.h"
#include "sim/plan/fleet_plan.h"
#include "sim/watchdog.h"

namespace routesim::sim {

namespace {

/// The label under which the load tools count a refusal.
const char* refusal_label(int http_status) {
  switch (http_status) {
    case 404:
      return "404 Not Found";
    case 412:
      return "412 Precondition Failed";
    case 429:
      return "429 Too Many Requests";
    case 503:
      return "503 Service Unavailable";
    case 529:  // Not registered: Dynamo's own.
      return "529";
    default:
      return "500 Internal Server Error";
  }
}

/// When the rates by the clock of a load end; zero where it has none.
SimTime end_of_demand(const WorkloadConfig& w, const std::vector<workloads::StageInfo>& stages) {
  double longest = 0;
  std::map<std::int32_t, double> seconds;  // By load of a mix. Those of a caller have no demand.
  for (const workloads::StageInfo& s : stages) {
    const auto part = static_cast<std::size_t>(s.part);  // None is -1.
    const bool has = part < w.mix.size() ? w.mix[part].demand.has_value() : w.demand.has_value();
    if (has && !w.hold) longest = std::max(longest, seconds[s.part] += s.duration_s);
  }
  return SimTime::zero() + Duration::from_seconds(longest);
}

/// The label under which aiohttp's users count a request whose server is gone. A gateway answers in
/// the server's place until headers have been sent.
const char* loss_label(Loss loss, bool answered, bool gateway) {
  if (gateway) return answered ? "ClientPayloadError" : "503 Service Unavailable";
  if (loss == Loss::kRefused) return "ClientConnectorError";
  return answered ? "ClientPayloadError" : "ServerDisconnectedError";
}

}  // namespace

Simulation::Simulation(const RunPlan& plan, const RunOptions& options, Diagnostics& diagnostics)
    : plan_(plan), options_(options), observers_(options.observers, options.check) {
  std::unique_ptr<workloads::LoadGenerator> load = plan.make_load(options.seed, diagnostics);
  const RouterKeyOptions key_options = Router::key_options(plan, diagnostics);
  if (load == nullptr || diagnostics.has_errors()) return;
  std::vector<std::int64_t> block_sizes;
  for (const ResolvedPool& pool : plan.pools)
    if (std::find(block_sizes.begin(), block_sizes.end(), pool.rules.block_size) ==
        block_sizes.end())
      block_sizes.push_back(pool.rules.block_size);
  prompt_keys_.emplace(block_sizes, key_options);
  client_.emplace(std::move(load), *prompt_keys_, queue_);
  live_keys_.emplace(live_, *prompt_keys_);
  // With unequal block sizes one event maps several blocks to one key, private ones included.
  // Blocks of layers with a window, and of sequences that speculate or are in the batches of a
  // pipeline, are visited one by one. A router that counts batches must see all of them.
  private_answers_ =
      !options.reference && !asks_for_replays(plan) &&
      std::all_of(plan.pools.begin(), plan.pools.end(), [&](const ResolvedPool& pool) {
        return pool.rules.window_groups == 0 && !pool.rules.by_result() &&
               (!key_options.precise || prompt_keys_->one_key(pool.rules.block_size));
      });
  servers_.emplace(plan, options.seed, options.reference, *prompt_keys_, *live_keys_);
  router_.emplace(plan, options.seed, servers_->endpoints(), servers_->replicas(), diagnostics);
  if (options.probe != nullptr) router_->set_probe(*options.probe, key_options);
  recorder_.emplace(plan, client_->load().stages(), *servers_, options.keep_requests);
  RequestFlow& flow = *this;
  moves_.emplace(plan, *servers_, live_, queue_, flow);
  at_router_.by_balancer.emplace(*router_, live_, queue_, flow);
  at_router_.by_flow.emplace(*router_, live_, queue_, *at_router_.by_balancer, flow);
  if (plan.scenario.routing.gateway)
    at_router_.gateway.emplace(plan.scenario.routing, options.seed, servers_->endpoints().rows(),
                               client_->load().stages().size());
  if (tells_fleet(plan.scenario))
    outages_.emplace(plan, options.seed, *servers_, *router_, live_, *moves_, queue_, flow);
}

Simulation::~Simulation() = default;

RunResult Simulation::run() {
  try {
    return run_to_end();
  } catch (RunError& e) {
    Diagnostic& d = e.diagnostic();
    if (plan_.where) d.where = plan_.where(d.path);
    d.message +=
        ", in variant " + plan_.scenario.variant + " with seed " + std::to_string(options_.seed);
    throw;
  }
}

RunResult Simulation::run_to_end() {
  if (options_.progress != nullptr) {
    std::int64_t total = 0;
    for (const workloads::StageInfo& s : client_->load().stages())
      total = s.requests < 0 || total < 0 ? -1 : total + s.requests;
    options_.progress->total = std::max<std::int64_t>(total, 0);
  }
  const RunView view{plan_, router_->endpoints(), servers_->replicas(), *router_,
                     client_->load().stages()};
  observers_.start(view);
  const SimTime least =
      outages_ ? end_of_demand(plan_.scenario.workload, view.stages) : SimTime::zero();
  if (outages_) outages_->begin();
  if (least > SimTime::zero()) outages_->fleet().begin_report(SimTime::zero());
  client_->schedule(SimTime::zero());
  // Timeouts of requests long answered are still queued when the load ends; they are no part of it.
  while (!(live_.outstanding() == 0 && client_->load().finished())) {
    const std::optional<Event> event = queue_.pop();
    if (!event) break;
    if (event->time >= kEndOfTime) throw_end_of_time();
    if (observers_.next_tick() <= event->time) observers_.tick(event->time, servers_->replicas());
    handle(*event);
    if (options_.progress != nullptr && options_.progress->stop.load(std::memory_order_relaxed)) {
      stopped_ = true;
      break;
    }
  }
  if (!stopped_ && (live_.outstanding() > 0 || !client_->load().finished()))
    report_stuck(queue_.now());
  const SimTime end = stopped_ ? queue_.now() : idle_until(least);
  if (options_.check && !stopped_) verify();
  for (Observer* o : observers_) o->on_end(end);
  recorder_->note_decision_queue(router_->decision_queue());
  recorder_->note_replays(router_->failed_replays());
  if (at_router_.gateway) recorder_->note_gateway(*at_router_.gateway);
  recorder_->note_streams(live_.most_outstanding());
  if (outages_) recorder_->note_fleet(outages_->fleet(), end);
  RunResult found =
      recorder_->take_result(client_->load(), moves_->links(), options_.seed, end, stopped_);
  for (Observer* o : observers_) o->on_result(found, !stopped_);
  if (!client_sees_tokens(plan_.scenario.workload)) forget_token_times(found);
  return found;
}

// Servers are there, and are scaled, until the hours of a demand end in which nobody asks any more.
SimTime Simulation::idle_until(SimTime least) {
  const SimTime end = std::max(queue_.now(), least);
  while (queue_.now() < end) {
    const std::optional<Event> event = queue_.pop();
    const SimTime next = event ? std::min(event->time, end) : end;
    if (observers_.next_tick() <= next) observers_.tick(next, servers_->replicas());
    if (!event || event->time >= end) break;
    handle(*event);
  }
  return end;
}

void Simulation::throw_end_of_time() const {
  Diagnostic d;
  d.path = "workload";
  d.message = "the run is longer than 103 days of simulated time, which is all its clock holds";
  d.hint = "send fewer requests, or use faster servers: " + std::to_string(live_.outstanding()) +
           " requests are outstanding";
  throw RunError(std::move(d));
}

void Simulation::handle(const Event& e) {
  if (is_about_request(e.kind) && (live_[e.subject].stamp != e.stamp || !live_[e.subject].open()))
    return;
  switch (e.kind) {
    case EventKind::kReplicaWake:
      servers_->replica(e.subject).advance_to(e.time);
      after_touch(e.subject, e.time);
      break;
    case EventKind::kTransferTick:
      moves_->links().tick(e.time);
      break;
    case EventKind::kCompletion:
      complete(e.subject, workloads::Outcome::kSuccess, e.time);
      break;
    case EventKind::kClientAction:
      client_->act(e.time, [&](workloads::Request&& sent, const PromptKeys& keys) {
        send(std::move(sent), keys, e.time);
      });
      break;
    case EventKind::kDelivery:
      deliver(e.subject, e.time);
      break;
    case EventKind::kHandOver:
      enter_server(e.subject, live_[e.subject].route.endpoint, e.time);
      break;
    case EventKind::kApiRound:
      begin_round(e.subject, e.stamp, e.time);
      break;
    case EventKind::kRoute:
      route(e.subject, e.time);
      break;
    case EventKind::kTryAgain:
      go_again(e.subject, e.time);
      break;
    case EventKind::kFleet:
      outages_->tick(e.time, load_waits());
      break;
    case EventKind::kLost:
      lose_connection(e.subject, e.time);
      break;
    case EventKind::kRouterTick:
      at_router_.by_flow->tick(e.time);
      break;
    case EventKind::kRetry:
      at_router_.by_balancer->retry(e.time);
      break;
    case EventKind::kTimeout:
      give_up(e.subject, "TimeoutError", workloads::Outcome::kTimeout, e.time);
      break;
    case EventKind::kPull:
      moves_->disaggregation().begin_pull(e.subject, e.time);
      break;
    case EventKind::kPullStep:
      moves_->step_pull(e.subject, e.stamp == 1, e.time);
      break;
    case EventKind::kLeaseEnd:
      moves_->disaggregation().end_leases(e.time);
      break;
  }
}

void Simulation::send(workloads::Request&& sent, const PromptKeys& keys, SimTime now) {
  if (outages_ && client_->load().stages()[sent.stage.value()].reported)
    outages_->fleet().begin_report(now);
  recorder_->enter_stage(sent.stage, now);
  const std::uint32_t handle = live_.open();
  LiveRequest& live = live_[handle];
  live.request = std::move(sent);
  const workloads::Request& request = live.request;
  live.keys = &keys;
  live.sent = now;
  recorder_->on_sent(request, now);
  for (Observer* o : observers_) o->on_sent(request, now);
  book_decision(handle, now + plan_.scenario.workload.client_overhead);
  if (request.timeout < Duration::max())
    queue_.push(now + request.timeout, EventKind::kTimeout, handle, live.stamp);
}

// A request reaches the router at `arrival`.
void Simulation::book_decision(std::uint32_t handle, SimTime arrival) {
  LiveRequest& live = live_[handle];
  if (outages_ && !router_->runs()) {  // Nobody listens.
    queue_.push(arrival, EventKind::kRoute, handle, live.stamp);
    return;
  }
  const DecisionQueue::Turn turn = router_->admit(live.request, arrival);
  live.leg = Leg::kDeciding;
  live.entered = arrival;
  live.route.instance = turn.process;
  queue_.push(turn.end, EventKind::kRoute, handle, live.stamp);
}

void Simulation::route(std::uint32_t handle, SimTime now) {
  if (outages_ && !router_->runs()) {
    if (outages_->proxies())
      fail(handle, loss_label(Loss::kRefused, false, false), workloads::Outcome::kError, now);
    else
      refuse(handle, 500, now);
    return;
  }
  if (router_->holds_back())
    at_router_.by_flow->add(handle, now);
  else
    at_router_.by_balancer->add(handle, now);
}

void Simulation::refuse(std::uint32_t handle, int http_status, SimTime now) {
  if (at_router_.gateway && try_again(handle, http_status, now)) return;
  ++recorder_->routing().rejected;
  fail(handle, refusal_label(http_status), workloads::Outcome::kError, now);
}

// The gateway sends a refused request to the router again, after its back-off.
bool Simulation::try_again(std::uint32_t handle, int http_status, SimTime now) {
  LiveRequest& live = live_[handle];
  const std::optional<Duration> after =
      at_router_.gateway->retry(live.request.id, live.retries, http_status);
  if (!after) return false;
  live.leg = Leg::kToRouter;
  live.route = {};
  queue_.push(now + *after, EventKind::kTryAgain, handle, live.stamp);
  return true;
}

void Simulation::apply_route(std::uint32_t handle, const Route& route, SimTime now) {
  LiveRequest& live = live_[handle];
  live.route = route;
  ++recorder_->routing().decisions;
  if (FleetMeters* meters = outages_ ? outages_->meters() : nullptr)
    meters->on_decided(route.routed);
  if (!route.routed) {
    if (outages_ && route.http_status != 404)
      if (const auto after = outages_->retry(live, RetriedByRouter::kUnserved)) {
        ++recorder_->fleet().sent_again;
        back_off(handle, route.instance, now + *after);
        return;
      }
    refuse(handle, route.http_status, now);
    return;
  }
  if (at_router_.gateway)
    enter_gateway(handle, now);
  else
    dispatch(handle, now);
}

// The router process tries again by itself.
void Simulation::back_off(std::uint32_t handle, std::uint32_t instance, SimTime until) {
  LiveRequest& live = live_[handle];
  live.leg = Leg::kBackingOff;
  live.route = {};
  live.route.instance = instance;
  queue_.push(until, EventKind::kTryAgain, handle, live.stamp);
}

void Simulation::enter_gateway(std::uint32_t handle, SimTime now) {
  LiveRequest& live = live_[handle];
  live.leg = Leg::kAtGateway;
  const std::uint32_t host = router_->row(live.route.endpoint);
  if (at_router_.gateway->enter(handle, live.request.stage, host, now)) {
    leave_gateway(now);
    return;
  }
  unroute(handle, now);
  fail(handle, refusal_label(503), workloads::Outcome::kError, now);
}

// Requests that have a connection now go on.
void Simulation::leave_gateway(SimTime now) {
  while (const std::optional<std::uint32_t> ready = at_router_.gateway->take_ready()) {
    at_router_.gateway->end_retry(live_[*ready].retries);
    dispatch(*ready, now);
  }
}

// The router hears that a request it sent will not arrive.
void Simulation::unroute(std::uint32_t handle, SimTime now) {
  LiveRequest& live = live_[handle];
  const Route route = std::exchange(live.route, Route{});
  router_->on_completed(live.request, route, false, now);
  at_router_.by_balancer->changed(route.instance, now);
}

void Simulation::dispatch(std::uint32_t handle, SimTime now) {
  LiveRequest& live = live_[handle];
  live.route.endpoint = servers_->choose_rank(live.route.endpoint, now);
  if (live.route.prefill) live.route.prefill = servers_->choose_rank(*live.route.prefill, now);
  if (router_->holds_back()) router_->track(live.route.instance, handle, live.request);
  for (Observer* o : observers_) o->on_routed(live.request, live.route, now);
  if (live.route.prefill) {
    // A decision that holds for several attempts counts once.
    if (!live.retries.kept) ++recorder_->routing().disaggregated;
    live.leg = Leg::kToPrefill;
    enter_server(handle, *live.route.prefill, now);
  } else {
    live.leg = Leg::kToEngine;
    enter_server(handle, live.route.endpoint, now);
  }
}

// When a request reaches its engine is known as soon as its round at the API server begins.
void Simulation::enter_server(std::uint32_t handle, EndpointId endpoint, SimTime now) {
  if (outages_ && !outages_->answers(endpoint)) {
    outages_->refuse(handle, endpoint, now);
    return;
  }
  LiveRequest& live = live_[handle];
  live.entered = now;
  const std::uint32_t server = servers_->api_server_of(endpoint);
  const ApiServer::Visitor visitor{.handle = handle,
                                   .stamp = live.stamp,
                                   .prompt_tokens = live.request.prompt->tokens,
                                   .arrival = now + plan_.scenario.cluster.frontend_latency};
  book_round(server, servers_->api_server(server).arrive(visitor, booking()));
}

void Simulation::begin_round(std::uint32_t server, std::uint32_t process, SimTime now) {
  book_round(server, servers_->api_server(server).begin(process, now, booking()));
}

void Simulation::book_round(std::uint32_t server, const std::optional<ApiServer::Round>& round) {
  if (round) queue_.push(round->at, EventKind::kApiRound, server, round->process);
}

EngineRequest Simulation::engine_request(std::uint32_t handle) const {
  const LiveRequest& live = live_[handle];
  EngineRequest r;
  r.handle = handle;
  r.prompt_tokens = live.request.prompt->tokens;
  r.output_tokens = live.request.output_tokens;
  r.max_tokens = live.request.max_tokens;
  r.output_content = live.request.output_content;
  r.draws = live.request.id.value();
  r.private_answer = private_answers_ && live.request.session == 0;
  r.priority = live.request.priority;
  r.adapter = live.request.prompt->adapter;
  return r;
}

void Simulation::deliver(std::uint32_t handle, SimTime now) {
  LiveRequest& live = live_[handle];
  const EndpointId target = live.leg == Leg::kToPrefill ? *live.route.prefill : live.route.endpoint;
  if (!servers_->is_up(target.value())) return;  // Its machine was lost while it was on its way.
  EngineRequest r = engine_request(handle);
  r.arrival_order = ++arrivals_;
  if (live.leg == Leg::kToPrefill) {
    live.leg = Leg::kPrefill;
    r.output_tokens = r.max_tokens = 1;
    r.hold_blocks = true;
  } else {
    live.leg = Leg::kEngine;
    if (live.route.prefill) r.remote_tokens = r.prompt_tokens;
    router_->on_request_read(live.request, live.route, now);
  }
  const std::optional<EndpointId>& source = live.route.pull_source;
  const bool computes = live.leg == Leg::kPrefill || !live.route.prefill;
  if (computes && source && *source != target && servers_->can_pull(*source) &&
      servers_->can_pull(target))
    r.pull_source = source->value();
  servers_->count_request(target);
  const EndpointHome& at = servers_->home(target);
  r.keys = &live.keys->of(servers_->pool(at).rules.block_size);
  Replica& replica = servers_->replica(at.replica);
  replica.advance_to(now);
  for (Observer* o : observers_) o->on_delivered(live.request, target, now);
  replica.deliver(at.rank, r, now);
  after_touch(at.replica, now);
}

// Reads what the replica has to say and books its next wake.
void Simulation::after_touch(std::uint32_t replica, SimTime now) {
  collect(replica, now);
  moves_->collect(replica, now);
  queue_.push(servers_->replica(replica).next_wake(), EventKind::kReplicaWake, replica);
  for (Observer* o : observers_) o->on_replica_advanced(servers_->replica(replica), now);
}

// One output may make the same server say more: that is collected inside.
void Simulation::collect(std::uint32_t replica, SimTime now) {
  std::vector<EngineOutput>& outputs = servers_->replica(replica).outputs();
  if (outputs.empty()) return;
  std::vector<EngineOutput> batch = std::move(outputs_);
  batch.clear();
  batch.swap(outputs);
  for (const EngineOutput& o : batch) on_output(o, now);
  outputs_ = std::move(batch);
}

void Simulation::on_output(const EngineOutput& o, SimTime now) {
  ROUTESIM_DCHECK(o.at == now, "a server woke too late for what it had to say");
  LiveRequest& live = live_[o.handle];
  if (o.kind == EngineOutputKind::kAborted) recycle(o.handle);
  if (!live.open()) return;
  switch (o.kind) {
    case EngineOutputKind::kFirstToken:
      if (live.leg != Leg::kEngine) return;  // a prefill server's token is dropped
      live.first_token = o.at + plan_.scenario.workload.response_overhead;
      if (FleetMeters* meters = outages_ ? outages_->meters() : nullptr)
        meters->on_first_token(live, o.at);
      router_->on_first_token(live.request, live.route, o.at);
      if (router_->counts_first_tokens()) at_router_.by_balancer->changed(live.route.instance, now);
      for (Observer* w : observers_) w->on_first_token(live.request, o.at);
      break;
    case EngineOutputKind::kResumedToken:
      recorder_->on_gap(live.request.stage, Duration::nanoseconds(o.value));
      for (std::int64_t i = 0; i < o.together; ++i)
        recorder_->on_gap(live.request.stage, Duration::zero());
      break;
    case EngineOutputKind::kFinished:
      if (live.leg == Leg::kPrefill || !live.route.prefill)
        live.tier.hbm_tokens = o.cached_tokens - live.tier.loaded_tokens;
      if (live.leg == Leg::kPrefill)
        prefill_finished(o.handle, o.at);
      else if (live.leg == Leg::kEngine)
        on_finished(o.handle, o);
      break;
    case EngineOutputKind::kTransferNeeded:
      moves_->disaggregation().start_transfer(o.handle, o.value, now);
      break;
    case EngineOutputKind::kNothingToPull:
      moves_->disaggregation().release_prefill(o.handle, now);
      break;
    case EngineOutputKind::kLoaded:
      live.tier.loaded_tokens += o.cached_tokens;
      live.tier.load_wait += Duration::nanoseconds(o.value);
      break;
    case EngineOutputKind::kPulled:
      live.tier.pulled_tokens = o.cached_tokens;
      live.tier.pull_wait = Duration::nanoseconds(o.value);
      break;
    case EngineOutputKind::kUnservable:
      // No decode server will pull the blocks that the prefill server holds for it.
      if (live.leg == Leg::kEngine) moves_->disaggregation().release_prefill(o.handle, now);
      fail(o.handle, o.value == 1 ? "prompt_too_long" : "kv_cache_too_small",
           workloads::Outcome::kError, now);
      break;
    case EngineOutputKind::kAborted:
      break;
  }
}

// The prefill server has answered: the sidecar now sends the request to the decode server.
void Simulation::prefill_finished(std::uint32_t handle, SimTime now) {
  LiveRequest& live = live_[handle];
  live.leg = Leg::kToEngine;
  if (FleetMeters* meters = outages_ ? outages_->meters() : nullptr)
    meters->on_prefilled(live, now);
  for (Observer* o : observers_) o->on_prefilled(live.request, now);
  moves_->disaggregation().begin_lease(handle, now);
  const EnginePreset preset =
      servers_->pool(servers_->home(live.route.endpoint)).config.engine.preset;
  const Duration handover =
      plan_.scenario.cluster.transfer.handover.value_or(default_handover(preset));
  queue_.push(now + handover, EventKind::kHandOver, handle, live.stamp);
}

void Simulation::on_finished(std::uint32_t handle, const EngineOutput& o) {
  LiveRequest& live = live_[handle];
  live.leg = Leg::kToClient;
  live.preemptions = static_cast<std::int32_t>(o.value);
  live.cached_tokens = o.cached_tokens;
  live.end = o.at + plan_.scenario.workload.response_overhead;
  if (FleetMeters* meters = outages_ ? outages_->meters() : nullptr)
    meters->on_finished(live, o.at);
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
  LiveRequest& live = live_[handle];
  const Leg leg = live.leg;
  if (leg == Leg::kQueued &&
      !(router_->holds_back() && router_->cancel(live.route.instance, handle, now)))
    at_router_.by_balancer->cancel(handle, now);
  if (leg == Leg::kAtGateway) {
    at_router_.gateway->cancel(handle, router_->row(live.route.endpoint), now);
    unroute(handle, now);
  }
  if (leg == Leg::kEngine || leg == Leg::kToEngine) moves_->disaggregation().cancel(handle, now);
  live.failure = label;
  settle(handle, outcome, now);
  end_at_engine(handle, leg, now);
}

// The slot of a request that is settled lives on until its engine has drained the abort.
void Simulation::end_at_engine(std::uint32_t handle, Leg leg, SimTime now) {
  const Route& route = live_[handle].route;
  if (leg != Leg::kPrefill && leg != Leg::kEngine) {
    recycle(handle);
    return;
  }
  const EndpointHome& at = servers_->home(leg == Leg::kPrefill ? *route.prefill : route.endpoint);
  servers_->replica(at.replica).advance_to(now);
  collect(at.replica, now);
  servers_->replica(at.replica).abort(at.rank, handle, now);
  after_touch(at.replica, now);
}

// ---- The fleet changes. -------------------------------------------------------------------------

// After a back-off: to the server that was chosen, or to a decision.
void Simulation::go_again(std::uint32_t handle, SimTime now) {
  const LiveRequest& live = live_[handle];
  if (live.leg == Leg::kBackingOff)
    at_router_.by_balancer->add(handle, live.route.instance, now);
  else if (live.route.routed)
    enter_gateway(handle, now);
  else
    book_decision(handle, now);
}

// A connection is refused, or nobody has answered for too long.
void Simulation::lose_connection(std::uint32_t handle, SimTime now) {
  const LiveRequest& live = live_[handle];
  switch (live.leg) {
    case Leg::kToPrefill:
    case Leg::kPrefill:
      if (outages_->answers(live.route.endpoint))
        fall_back(handle, now);
      else
        lose(handle, Loss::kRefused, now);
      break;
    case Leg::kToEngine:
      lose(handle, Loss::kRefused, now);
      break;
    case Leg::kEngine:
      lose(handle, Loss::kReset, now);
      break;
    default:
      break;
  }
}

// What the old server still knows belongs to the old slot; the request goes on in another one.
std::uint32_t Simulation::succeed(std::uint32_t handle) {
  live_.settle(handle);
  const std::uint32_t next = live_.open();
  LiveRequest& now_live = live_[next];
  const LiveRequest& old = live_[handle];
  now_live.request = old.request;
  now_live.keys = &prompt_keys_->acquire(*old.request.prompt);
  now_live.retries = old.retries;
  now_live.route = old.route;
  now_live.sent = old.sent;
  if (now_live.request.timeout < Duration::max())
    queue_.push(std::max(queue_.now(), old.sent + old.request.timeout), EventKind::kTimeout, next,
                now_live.stamp);
  return next;
}

void Simulation::lose(std::uint32_t handle, Loss loss, SimTime now) {
  const Leg leg = live_[handle].leg;
  for (Observer* o : observers_) o->on_lost(live_[handle].request, now);
  moves_->disaggregation().orphan(handle, now);
  outages_->find_dead(live_[handle].route, now);
  // vLLM sends the headers of a stream as soon as it has the request, of another answer at its end.
  const bool answered = leg == Leg::kEngine && client_sees_tokens(plan_.scenario.workload);
  std::optional<Duration> after;
  if (!answered) {
    outages_->count_failure(live_[handle].route, false, now);
    after = outages_->retry(
        live_[handle], loss == Loss::kRefused ? RetriedByRouter::kRefused : RetriedByRouter::kLost);
  }
  const bool by_router = after.has_value();
  if (!by_router && at_router_.gateway && !answered)
    after = at_router_.gateway->retry_lost(live_[handle].request.id, live_[handle].retries, loss);
  ++recorder_->fleet().lost;
  if (!after) {
    give_up(handle, loss_label(loss, answered, at_router_.gateway.has_value()),
            workloads::Outcome::kError, now);
    return;
  }
  ++recorder_->fleet().sent_again;
  const std::uint32_t next = succeed(handle);
  Route& old = live_[handle].route;
  servers_->leave_rank(old.endpoint);
  if (old.prefill) servers_->leave_rank(*old.prefill);
  router_->forget(old.instance, handle, now);
  if (at_router_.gateway) at_router_.gateway->leave(router_->row(old.endpoint), now);
  // A picker's choice holds for every attempt; other proxies choose again.
  live_[next].retries.kept = !by_router && at_router_.gateway->keeps_choice();
  if (!live_[next].retries.kept) {
    if (by_router)
      router_->end_try(live_[handle].request, old, now);
    else
      router_->on_completed(live_[handle].request, old, false, now);
    at_router_.by_balancer->changed(old.instance, now);
    live_[next].route = {};
  }
  if (by_router) {
    back_off(next, old.instance, now + *after);
  } else {
    live_[next].leg = Leg::kToRouter;
    queue_.push(now + *after, EventKind::kTryAgain, next, live_[next].stamp);
  }
  end_at_engine(handle, leg, now);
  if (at_router_.gateway) leave_gateway(now);
}

void Simulation::fall_back(std::uint32_t handle, SimTime now) {
  ++recorder_->fleet().fell_back;
  for (Observer* o : observers_) o->on_lost(live_[handle].request, now);
  const Leg leg = live_[handle].leg;
  const std::uint32_t next = succeed(handle);
  Route& route = live_[next].route;
  outages_->find_dead(route, now);
  outages_->count_failure(route, true, now);
  servers_->leave_rank(*route.prefill);
  route.prefill.reset();
  live_[next].leg = Leg::kToEngine;
  for (Observer* o : observers_) o->on_routed(live_[next].request, route, now);
  queue_.push(now, EventKind::kHandOver, next, live_[next].stamp);
  end_at_engine(handle, leg, now);
}

void Simulation::fleet_changed(SimTime now) {
  for (std::uint32_t i = 0; i < router_->instances(); ++i) at_router_.by_balancer->changed(i, now);
}

void Simulation::complete(std::uint32_t handle, workloads::Outcome outcome, SimTime now) {
  settle(handle, outcome, now);
  recycle(handle);
}

void Simulation::recycle(std::uint32_t handle) {
  prompt_keys_->release(*live_[handle].keys);
  live_.recycle(handle);
  queue_.drop_timeouts([this](const Event& e) { return live_[e.subject].stamp != e.stamp; });
}

// Closes the client's books on a request and lets the load tool go on.
void Simulation::settle(std::uint32_t handle, workloads::Outcome outcome, SimTime now) {
  LiveRequest& live = live_[handle];
  const workloads::Request& request = live.request;
  live_.settle(handle);
  if (at_router_.gateway) at_router_.gateway->end_retry(live.retries);
  if (!live.route.routed) {
    router_->end_tries(request, now);
  } else {
    router_->on_completed(request, live.route, outcome == workloads::Outcome::kSuccess, now);
    router_->forget(live.route.instance, handle, now);
    at_router_.by_balancer->changed(live.route.instance, now);
    servers_->leave_rank(live.route.endpoint);
    if (live.route.prefill) servers_->leave_rank(*live.route.prefill);
  }
  if (FleetMeters* meters = outages_ ? outages_->meters() : nullptr)
    if (outcome != workloads::Outcome::kSuccess) meters->on_failed();
  const bool served = !outages_ || outages_->fleet().serves_since(live.sent);
  const RequestRecord record = recorder_->on_done(live, outcome, served, now);
  for (Observer* o : observers_) o->on_done(record);
  recorder_->close(record, request.stage, now);
  if (at_router_.gateway && live.route.routed) {
    at_router_.gateway->leave(router_->row(live.route.endpoint), now);
    leave_gateway(now);
  }
  if (options_.progress != nullptr)
    options_.progress->completed.fetch_add(1, std::memory_order_relaxed);
  client_->load().on_completed(request, outcome, now);
  client_->schedule(now);
}

std::optional<std::size_t> Simulation::awaited_pool() const {
  if (!outages_ || live_.outstanding() == 0) return std::nullopt;
  for (const LiveRequest& live : live_.all())
    if (live.open() && live.leg != Leg::kQueued) return std::nullopt;
  for (std::size_t pool = 0; pool < plan_.pools.size(); ++pool)
    if (outages_->fleet().ready(static_cast<std::uint32_t>(pool)) == 0) return pool;
  return std::nullopt;
}

void Simulation::report_stuck(SimTime now) const {
  if (const auto pool = awaited_pool()) {
    Diagnostic d;
    d.path = "cluster.pools[" + std::to_string(*pool) + "]";
    const std::int64_t n = live_.outstanding();
    d.message = "has no server at " + std::to_string(now.to_seconds()) +
                " s, and gets none: " + std::to_string(n) +
                (n == 1 ? " request waits" : " requests wait") + " for ever";
    d.hint =
        "bring servers back (`scale`, or an autoscaler that counts what waits), or give the client "
        "a timeout";
    throw NoServerError(std::move(d));
  }
  throw StuckError(describe_stuck(now, live_, *servers_, *router_, client_->load().finished()));
}

void Simulation::verify() const {
  for (const std::unique_ptr<Replica>& replica : servers_->replicas()) replica->verify();
  const auto open = std::count_if(live_.all().begin(), live_.all().end(),
                                  [](const LiveRequest& live) { return live.open(); });
  ROUTESIM_CHECK(open == live_.outstanding(), "requests are not conserved");
}

}  // namespace routesim::sim
