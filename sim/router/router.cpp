#include "sim/router/router.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "policies/config/make_scheduler.h"
#include "sim/plan/discovery.h"
#include "sim/plan/fleet_plan.h"
#include "sim/prediction/online_predictor.h"

namespace routesim::sim {

namespace {

constexpr std::uint64_t kObjectiveSalt = 0x0b1ec71fe;

/// Bytes of text that a router sees in a token of this load.
double bytes_per_token(const WorkloadConfig& w) {
  if (w.options.bytes_per_token) return *w.options.bytes_per_token;
  return traits_of(w).random_text ? workloads::kRandomBytesPerToken : workloads::kTextBytesPerToken;
}

/// Whether an endpoint picker may refuse some requests while the pool is saturated.
bool sends_sheddable(const WorkloadConfig& w) {
  return w.sheddable_fraction > 0 || std::any_of(w.classes.begin(), w.classes.end(),
                                                 [](const auto& c) { return c.objective < 0; });
}

/// A rank the router can address has its own name; one behind a front end goes by its server's.
std::string server_name(const EndpointHome& home) {
  return home.behind_front_end ? home.name.substr(0, home.name.rfind("-rank-")) : home.name;
}

/// The name of a pod. One that takes the place of another has its own.
std::string pod_name(const EndpointHome& home, std::int64_t pod) {
  return pod == 0 ? server_name(home) : server_name(home) + "-pod-" + std::to_string(pod);
}

policies::EndpointInfo endpoint_info(const EndpointHome& home, const ResolvedPool& pool,
                                     std::int64_t pod = 0) {
  policies::EndpointInfo info;
  const std::string network =
      pod == 0 ? "10." + std::to_string(home.replica >> 16 & 255)
               : std::to_string(11 + pod % 100) + "." + std::to_string(pod / 100 % 256);
  info.address = network + "." + std::to_string(home.replica >> 8 & 255) + "." +
                 std::to_string(home.replica & 255);
  info.port = 8000 + home.rank;
  info.pod_name = pod_name(home, pod);
  info.rank = home.rank;
  info.block_size = pool.rules.block_size;
  info.num_gpu_blocks = pool.rules.num_gpu_blocks;
  info.model = pool.config.model;
  if (pool.config.role != PoolRole::kBoth) {
    const std::string role(enum_name(pool.config.role));
    info.labels["llm-d.ai/role"] = role;
    info.labels["mif.moreh.io/role"] = role;
  }
  for (const std::string& label : pool.config.labels) {
    const std::size_t equals = label.find('=');
    info.labels[label.substr(0, equals)] =
        equals == std::string::npos ? std::string() : label.substr(equals + 1);
  }
  return info;
}

}  // namespace

RouterKeyOptions Router::key_options(const RunPlan& plan, Diagnostics& diagnostics) {
  RouterKeyOptions out;
  out.model = plan.pools.front().config.model;
  out.adapters = plan.adapters;
  if (!plan.endpoint_picker) {
    const RoutingConfig& routing = plan.scenario.routing;
    const policies::BalancerNeeds needs = balancer_needs(routing);
    // Products differ in the hash, which decides nothing, and cut prompts as the engines do.
    if (needs.block_keys)
      out.precise.emplace(policies::KeyAlgorithm::kXxh64,
                          static_cast<std::uint32_t>(plan.pools.front().rules.block_size), "",
                          out.model);
    return out;
  }
  const std::optional<policies::Requirements> needed =
      policies::requirements(*plan.endpoint_picker, diagnostics);
  if (!needed) return out;
  if (needed->signals.block_keys) {
    const policies::BlockKeyScheme& scheme = needed->block_keys;
    out.precise.emplace(scheme.algorithm, static_cast<std::uint32_t>(scheme.block_size),
                        scheme.hash_seed, out.model);
    out.hash_seed = scheme.hash_seed;
  }
  if (needed->signals.approx_hashes) {
    const policies::ApproxScheme scheme =
        needed->approx.scheme(endpoint_info(EndpointHome{}, plan.pools.front()).block_size);
    const bool tokens = scheme.hashing == policies::ApproxHashing::kTokens;
    const double bytes = tokens ? 1 : bytes_per_token(plan.scenario.workload);  // Others cut text.
    out.approx_block = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(static_cast<double>(scheme.block_size) / bytes));
    out.approx_max_blocks = scheme.max_blocks;
  }
  return out;
}

Router::Router(const RunPlan& plan, std::uint64_t seed, const Endpoints& endpoints,
               const std::vector<std::unique_ptr<Replica>>& replicas, Diagnostics& diagnostics)
    : plan_(plan),
      seed_(seed),
      bytes_per_token_(bytes_per_token(plan.scenario.workload)),
      streams_(traits_of(plan.scenario.workload).streams),
      endpoints_(endpoints),
      replicas_(replicas),
      decisions_(static_cast<std::size_t>(plan.scenario.routing.router_replicas)) {
  if (plan.scenario.routing.leader_election) decisions_.set_leader(0);
  add_instances(diagnostics);
  if (diagnostics.has_errors()) return;
  for (std::uint32_t row = 0; row < endpoints_.rows(); ++row) {
    const EndpointHome& home = endpoints_[endpoints_.first(row)];
    table_.add(endpoint_info(home, plan.pools[home.pool]));
    known_.names.push_back(server_name(home));
  }
  look_again();
  if (plan.endpoint_picker)
    read_telemetry();
  else if (plan.scenario.routing.balancer != BalancerKind::kOmniscient)
    feed_balancers();
  if (prices_decisions(plan)) omniscient_.emplace(plan_, endpoints_, replicas_);
}

void Router::add_instances(Diagnostics& diagnostics) {
  instances_.resize(static_cast<std::size_t>(plan_.scenario.routing.router_replicas));
  for (std::size_t i = 0; i < instances_.size() && !diagnostics.has_errors(); ++i)
    fill(i, diagnostics);
}

// A router process that has just started.
void Router::fill(std::size_t i, Diagnostics& diagnostics) {
  const RoutingConfig& routing = plan_.scenario.routing;
  Instance& in = instances_[i];
  if (plan_.endpoint_picker) {
    policies::SchedulerOptions options{.seed = mix64(seed_, i)};
    options.predictor = predictor(in, mix64(seed_, i));
    in.scheduler = policies::make_scheduler(*plan_.endpoint_picker, options, diagnostics);
    if (in.scheduler == nullptr) return;
    in.index = in.scheduler->precise_index();
    if (plan_.endpoint_picker->gate("flowControl"))
      in.flow = std::make_unique<policies::FlowControl>(*in.scheduler);
    return;
  }
  if (plan_.make_balancer)
    in.balancer = plan_.make_balancer(i);
  else if (routing.balancer != BalancerKind::kOmniscient)
    in.balancer = make_balancer(routing, seed_, i);
}

// The latency predictor of one process, or nullptr.
policies::LatencyPredictor* Router::predictor(Instance& in, std::uint64_t seed) {
  const std::optional<PredictorSettings>& settings = plan_.latency_predictor;
  if (!settings) return nullptr;
  if (settings->kind == PredictorKind::kPerfect) {
    if (!perfect_predictor_) perfect_predictor_.emplace(plan_, endpoints_, replicas_);
    return &*perfect_predictor_;
  }
  in.predictor = std::make_unique<OnlinePredictor>(*settings, seed);
  return in.predictor.get();
}

// Starts to read what the configuration needs, and nothing else.
void Router::read_telemetry() {
  const policies::Scheduler& first = *instances_.front().scheduler;
  sessions_ = ClientSessions(first, plan_.headers);
  const policies::SignalNeeds& needs = first.needs();
  const bool adapters = needs.lora && !plan_.adapters.empty();
  // Saturation detectors read metrics, too, but are asked only here.
  if (needs.metrics || adapters || needs.pool_metrics || holds_back() ||
      sends_sheddable(plan_.scenario.workload))
    scraper_.emplace(plan_, endpoints_, replicas_,
                     Scraper::Also{.adapters = adapters, .pools = needs.pool_metrics});
  counts_first_tokens_ = needs.in_flight;
  if (!needs.kv_events) return;
  events_.emplace(endpoints_, replicas_, listeners(), replays());
}

// A request and its answer travel as events do.
std::optional<KvReplays> Router::replays() const {
  if (!asks_for_replays(plan_)) return std::nullopt;
  std::vector<bool> answers;
  for (const EndpointHome& home : endpoints_.homes())
    answers.push_back(answers_replays(plan_.pools[home.pool].config.engine));
  return KvReplays(plan_.scenario.routing.kv_event_delay * 2, std::move(answers),
                   instances_.size());
}

// The same for balancers. Ids in their indexes are rows.
void Router::feed_balancers() {
  const policies::BalancerNeeds needs = instances_.front().balancer->needs();
  counts_first_tokens_ = needs.first_tokens;
  balancer_inputs_ = BalancerInputs(needs, plan_, bytes_per_token_);
  // The servers that answered a poll take the place of those known before in vLLM's router
  // (src/policies/power_of_two.rs @fa999f9) and for SMG's cache-aware (model_gateway/src/worker/
  // monitor.rs at v1.9.0). SMG's other policies, and AIBrix (pkg/cache/cache_metrics.go), keep
  // them.
  const policies::BalancerRow& row = policies::balancer_row(plan_.scenario.routing.balancer);
  const bool forgets = row.section == "vllm_router" || row.name == "smg-cache-aware";
  if (needs.metrics)
    scraper_.emplace(plan_, endpoints_, replicas_, Scraper::Also{.forgets = forgets});
  if (!needs.kv_events) return;
  events_.emplace(endpoints_, replicas_, listeners());
}

// Every process hears which servers are there.
void Router::look_again() {
  known_.rows.clear();
  for (std::uint32_t row = 0; row < endpoints_.rows(); ++row)
    if (table_.live(row)) known_.rows.push_back(row);
  known_.all = known_.rows.size() == endpoints_.rows();
  if (!known_.all) {
    known_.metrics = {};
    for (const std::uint32_t row : known_.rows) known_.metrics.add(table_.info(row));
  }
  for (std::size_t i = 0; i < instances_.size(); ++i) tell(i);
}

void Router::tell(std::size_t process) {
  Instance& in = instances_[process];
  if (in.balancer != nullptr) {
    std::vector<policies::BalancerEndpoint> servers;
    for (const std::uint32_t row : known_.rows) {
      const EndpointHome& home = endpoints_[endpoints_.first(row)];
      servers.push_back(
          balancer_endpoint(known_.names[row], plan_.pools[home.pool], plan_.adapters));
      if (!plan_.has_prefill()) servers.back().role = policies::ServerRole::kBoth;
    }
    in.balancer->set_endpoints(servers);
  }
  if (events_) events_->set_listener(process, listener(in));
}

// Metrics in the order of the balancers' endpoints.
const policies::EndpointTable& Router::known_metrics() {
  if (known_.all) return table_;
  for (std::uint32_t i = 0; i < known_.rows.size(); ++i) {
    const std::uint32_t row = known_.rows[i];
    known_.metrics.forget_metrics(EndpointId(i));
    if (!table_.has_metrics(row)) continue;
    known_.metrics.set_metrics(EndpointId(i), table_.waiting()[row], table_.running()[row],
                               table_.kv_usage()[row], table_.updated()[row]);
    known_.metrics.set_lora(EndpointId(i), table_.lora(row));
  }
  return known_.metrics;
}

void Router::leave(std::uint32_t row, SimTime now) {
  if (!table_.live(row)) return;
  for (Instance& in : instances_)
    if (in.scheduler != nullptr && in.runs) in.scheduler->on_endpoint_unready(row, table_, now);
  table_.remove(EndpointId(row));
  if (events_) events_->set_deaf(row, true, now);
}

void Router::join(std::uint32_t row, std::int64_t pod, SimTime now) {
  if (table_.live(row)) return;
  const EndpointHome& home = endpoints_[endpoints_.first(row)];
  table_.add_at(row, endpoint_info(home, plan_.pools[home.pool], pod));
  const std::string name = pod_name(home, pod);
  // A container that is started again in its pod finds what the index still says of it.
  for (Instance& in : instances_)
    if (in.scheduler != nullptr && name != known_.names[row])
      in.scheduler->forget_blocks(row, table_);
  known_.names[row] = name;
  if (events_) events_->set_deaf(row, false, now);
}

// The indexes that KV events feed, and under which ids they know the servers.
KvEventFeed::Listener Router::listener(const Instance& in) const {
  KvEventFeed::Listener l;
  if (!in.runs) return l;
  l.index = in.scheduler != nullptr ? in.index : in.balancer->prefix_index();
  l.holders.resize(endpoints_.rows());
  for (std::uint32_t i = 0; i < known_.rows.size(); ++i)
    l.holders[known_.rows[i]] = in.scheduler != nullptr
                                    ? in.scheduler->index_holder(table_, known_.rows[i])
                                    : in.balancer->index_holder(i);
  return l;
}

std::vector<KvEventFeed::Listener> Router::listeners() const {
  std::vector<KvEventFeed::Listener> all;
  for (const Instance& in : instances_) all.push_back(listener(in));
  return all;
}

void Router::set_up(std::uint32_t row, bool up, SimTime now) {
  if (scraper_) scraper_->set_up(row, up, now);
}

void Router::set_scraped(std::uint32_t row, bool works, SimTime now) {
  if (!scraper_ || scraper_->works(row) == works) return;
  scraper_->read(now, table_);
  scraper_->set_works(row, works, now);
}

void Router::stop(std::uint32_t process) {
  Instance& in = instances_[process];
  in.runs = false;
  if (decisions_.leader() == process) decisions_.set_leader({});
  decisions_.set_stopped(process, true);
  if (events_) events_->set_listener(process, {});
}

// Before llm-d-router pull request 1884 a process that does not lead knows nothing.
void Router::lead(std::uint32_t process, SimTime now) {
  const policies::EndpointPickerConfig& picker = *plan_.endpoint_picker;
  if (!policies::traits(picker.era).ha_standby || !picker.gate("haPopulateNonLeaderDatastore"))
    start(process, now);
  decisions_.set_leader(process);
}

bool Router::runs() const {
  if (plan_.scenario.routing.leader_election) return decisions_.leader().has_value();
  return instances_.empty() || std::any_of(instances_.begin(), instances_.end(),
                                           [](const Instance& in) { return in.runs; });
}

void Router::start(std::uint32_t process, SimTime now) {
  const std::uint32_t life = instances_[process].life + 1;
  instances_[process] = Instance{};
  Instance& in = instances_[process];
  in.life = life;
  decisions_.set_stopped(process, false);
  Diagnostics none;  // The same configuration was accepted when the run began.
  fill(process, none);
  tell(process);
  if (events_) events_->connect(process, now);
}

void Router::set_probe(DecisionProbe& probe, const RouterKeyOptions& key_options) {
  reporter_.emplace(probe, key_options, plan_, endpoints_, replicas_,
                    scraper_ ? &*scraper_ : nullptr);
}

// Brings the router's knowledge up to `now`: what was scraped and published by then, not more.
void Router::refresh(SimTime now) {
  if (scraper_) scraper_->read(now, table_);
  if (events_) events_->read(now);
}

// Clients go from one process to the next, and pass over those that do not run.
std::uint32_t Router::next_instance() {
  if (const auto leader = decisions_.leader()) return *leader;
  auto next = static_cast<std::uint32_t>(next_instance_++ % instances_.size());
  for (std::size_t i = 1; i < instances_.size() && !instances_[next].runs; ++i)
    next = static_cast<std::uint32_t>(next_instance_++ % instances_.size());
  return next;
}

std::size_t Router::tried_together() const {
  // Requests that a scheduler gathers wait for a time, not for each other.
  if (!instances_.empty() && instances_.front().scheduler != nullptr &&
      instances_.front().scheduler->gathers())
    return std::numeric_limits<std::size_t>::max();
  if (instances_.empty() || instances_.front().balancer == nullptr) return 1;
  const policies::BalancerNeeds needs = instances_.front().balancer->needs();
  const auto all = needs.tried_per_endpoint * static_cast<std::int64_t>(endpoints_.rows());
  return static_cast<std::size_t>(std::clamp<std::int64_t>(all, 1, needs.tried_at_most));
}

bool Router::serves_in_order() const {
  return !instances_.empty() && instances_.front().balancer != nullptr &&
         instances_.front().balancer->needs().in_order;
}

Route Router::decide(std::uint32_t which, const workloads::Request& request, const PromptKeys& keys,
                     SimTime now, std::optional<std::uint64_t> turn) {
  Instance& in = instances_[which];
  Route route;
  refresh(now);
  const auto choose = [&] {
    Route made = in.scheduler != nullptr ? route_by_scheduler(in, request, keys, now)
                 : in.balancer != nullptr
                     ? route_by_balancer(in, request, keys, now, turn.value_or(request.id.value()))
                     : route_by_omniscient(request, keys, now);
    if (omniscient_ && made.routed) price(made, request, keys, now);
    return made;
  };
  if (!reporter_ || !reporter_->wants(request)) {
    route = choose();
    route.instance = which;
    route.life = in.life;
    return route;
  }
  const DecisionSubject subject{.scheduler = in.scheduler.get(),
                                .table = table_,
                                .request = request,
                                .keys = keys,
                                .now = now,
                                .view = [&] { return view(request, keys); }};
  DecisionRecord record = reporter_->before(subject);
  auto* const scores = dynamic_cast<KeepsScores*>(in.balancer.get());
  if (scores != nullptr) scores->keep_scores(&record.sheet);
  route = choose();
  if (scores != nullptr) scores->keep_scores(nullptr);
  for (const ScoreSheet::Row& row : record.sheet.rows) record.totals[row.endpoint] = row.score;
  route.instance = which;
  route.life = in.life;
  if (!route.held) reporter_->after(subject, in.scratch, route, record);
  return route;
}

Route Router::route_by_balancer(Instance& in, const workloads::Request& request,
                                const PromptKeys& keys, SimTime now, std::uint64_t turn) {
  policies::BalancerRequest seen = balancer_inputs_.request(request, keys, now);
  seen.turn = turn;
  seen.adapter = adapter_name(request);
  seen.metrics = scraper_ ? &known_metrics() : nullptr;
  Route route;
  policies::BalancerAnswer answer = in.balancer->pick(seen);
  if (!answer) {
    route.held = answer.is_held();
    route.retry_after = answer.retry_after();
    route.http_status = answer.http_status();
    if (known_.rows.empty() && !balancer_inputs_.has_prefill() &&
        policies::balancer_row(plan_.scenario.routing.balancer).section == "smg")
      route.http_status = 404;
    return route;
  }
  if (reporter_) reporter_->force(*answer, request);
  in.balancer->on_sent(*answer, seen);
  route.routed = true;
  route.pick = *answer;
  route.endpoint = EndpointId(endpoints_.first(known_.rows[answer->endpoint]));
  if (answer->prefill && *answer->prefill != answer->endpoint)
    route.prefill = EndpointId(endpoints_.first(known_.rows[*answer->prefill]));
  return route;
}

Route Router::route_by_omniscient(const workloads::Request& request, const PromptKeys& keys,
                                  SimTime now) {
  Omniscient::Choice choice = omniscient_->best(request, keys, now);
  if (reporter_) {
    policies::BalancerPick pick{.endpoint = choice.row, .server = choice.row};
    reporter_->force(pick, request);
    choice.row = pick.endpoint;
  }
  Route route;
  route.routed = true;
  route.endpoint = EndpointId(endpoints_.first(choice.row));
  if (choice.prefill && *choice.prefill != choice.row)
    route.prefill = EndpointId(endpoints_.first(*choice.prefill));
  return route;
}

void Router::price(Route& route, const workloads::Request& request, const PromptKeys& keys,
                   SimTime now) {
  Omniscient::Choice choice{.row = row(route.endpoint), .prefill = {}};
  if (route.prefill) choice.prefill = row(*route.prefill);
  route.regret_s = omniscient_->regret_s(choice, request, keys, now);
  omniscient_->on_sent(choice, request);
}

// The InferenceObjective the client names. The engine's own priority is another matter.
std::int32_t Router::objective(const workloads::Request& request) const {
  const auto& classes = plan_.scenario.workload.classes;
  if (!classes.empty()) return static_cast<std::int32_t>(classes[request.traffic_class].objective);
  const double share = plan_.scenario.workload.sheddable_fraction;
  if (share <= 0) return 0;
  const std::uint64_t draw = mix64(mix64(seed_, kObjectiveSalt), request.id.value());
  return static_cast<double>(draw >> 11) * 0x1.0p-53 < share ? -1 : 0;
}

DecisionQueue::Turn Router::admit(const workloads::Request& request, SimTime now) {
  const RoutingConfig& routing = plan_.scenario.routing;
  const auto grown = [](std::optional<Duration> base, std::optional<Duration> growth,
                        double units) {
    const double more = static_cast<double>(growth.value_or(Duration::zero()).ns()) * units;
    return base.value_or(Duration::zero()) + Duration::nanoseconds(std::llround(more));
  };
  const Duration service = grown(routing.service_time, routing.service_time_per_megabyte,
                                 static_cast<double>(prompt_bytes(request)) / 1e6);
  DecisionQueue::Turn turn = decisions_.admit(now, service);
  turn.end += grown(routing.decision_latency, routing.decision_latency_per_1000_tokens,
                    static_cast<double>(request.prompt->tokens) / 1e3);
  return turn;
}

std::int64_t Router::prompt_bytes(const workloads::Request& request) const {
  return static_cast<std::int64_t>(static_cast<double>(request.prompt->tokens) * bytes_per_token_);
}

std::string_view Router::adapter_name(const workloads::Request& request) const {
  const std::uint32_t adapter = request.prompt->adapter;
  return adapter == 0 ? std::string_view() : std::string_view(plan_.adapters[adapter - 1]);
}

policies::RequestView Router::view(const workloads::Request& request, const PromptKeys& keys) {
  policies::RequestView v;
  v.id = request.id.value();
  v.model = request.prompt->adapter == 0 ? std::string_view(plan_.pools.front().config.model)
                                         : adapter_name(request);
  v.prompt_tokens = request.prompt->tokens;
  v.prompt_bytes = prompt_bytes(request);
  v.block_keys = keys.request;
  v.approx_hashes = keys.approx;
  v.priority = objective(request);
  v.max_tokens = request.max_tokens;
  v.streaming = streams_;
  sessions_.send(request, v);
  return v;
}

Route Router::route_by_scheduler(Instance& in, const workloads::Request& request,
                                 const PromptKeys& keys, SimTime now) {
  const policies::RequestView v = view(request, keys);
  if (perfect_predictor_) perfect_predictor_->set_prompt(keys, now);
  in.scheduler->advance(now);
  Route route;
  if (in.scheduler->gathers()) {
    const SimTime ready = in.scheduler->ready_at(v, table_, now);
    route.held = ready > now;
    route.retry_after = ready - now;
    if (route.held) return route;
  }
  in.scheduler->schedule(v, table_, now, in.scratch, in.decision);
  if (!in.decision.routed()) {
    route.http_status = in.decision.http_status;
    return route;
  }
  if (reporter_) reporter_->force(in.decision, request);
  in.scheduler->on_routed(v, in.decision, table_, now);
  sessions_.on_routed(request, *in.scheduler, in.decision, table_);
  if (in.flow != nullptr) in.flow->on_routed(sessions_.flow(request), now);
  if (perfect_predictor_)
    perfect_predictor_->on_routed(
        v.id,
        in.decision.prefill.valid() ? in.decision.prefill.value() : in.decision.primary.value(),
        v.prompt_tokens);
  route.routed = true;
  route.endpoint = EndpointId(endpoints_.first(in.decision.primary.value()));
  route.predicted_hit_tokens = in.scheduler->predicted_hit_tokens(in.scratch, in.decision.primary);
  route.predicted = in.scheduler->predicted_latency(in.scratch, in.decision.primary);
  if (in.decision.prefill.valid() && in.decision.prefill != in.decision.primary)
    route.prefill = EndpointId(endpoints_.first(in.decision.prefill.value()));
  if (in.decision.pull_source.valid())
    route.pull_source = EndpointId(endpoints_.first(in.decision.pull_source.value()));
  return route;
}

// The headers of an answer that is not streamed come with the answer.
void Router::on_request_read(const workloads::Request& request, const Route& route, SimTime now) {
  if (!streams_) return;
  succeed(route, now);
  if (!counts_first_tokens_) return;
  const Instance& in = instances_[route.instance];
  if (in.scheduler != nullptr) in.scheduler->on_response_started(request.id.value(), now);
}

void Router::on_first_token(const workloads::Request& request, const Route& route, SimTime now) {
  if (omniscient_) omniscient_->on_first_token(request);
  if (perfect_predictor_) perfect_predictor_->on_computed(request.id.value());
  if (!counts_first_tokens_) return;
  const Instance& in = instances_[route.instance];
  if (in.life != route.life) return;
  if (in.balancer != nullptr) in.balancer->on_first_token(route.pick, request.id.value(), now);
  if (in.scheduler != nullptr) in.scheduler->on_first_token(request.id.value(), now);
}

void Router::on_completed(const workloads::Request& request, const Route& route, bool answered,
                          SimTime now) {
  if (omniscient_) omniscient_->on_completed(request);
  end_tries(request, now);
  if (answered && !streams_) succeed(route, now);
  Instance& in = instances_[route.instance];
  if (in.life != route.life) return;
  if (in.balancer != nullptr)
    in.balancer->on_completed(route.pick, {.id = request.id.value(),
                                           .now = now,
                                           .prompt_tokens = request.prompt->tokens,
                                           .output_tokens = request.output_tokens});
  if (in.scheduler == nullptr) return;
  if (perfect_predictor_) perfect_predictor_->on_computed(request.id.value());
  if (answered) in.scheduler->on_answered(request.id.value(), request.output_tokens, now);
  in.scheduler->on_completed(request.id.value(), now);
  sessions_.on_completed(request);
  if (in.flow != nullptr)
    in.flow->on_completed(sessions_.flow(request), request.prompt->tokens, request.output_tokens,
                          now);
}

bool Router::on_outcome(const Route& route, std::uint32_t server, bool success, SimTime now) {
  const Instance& in = instances_[route.instance];
  return in.life == route.life && in.balancer != nullptr &&
         in.balancer->on_outcome(server, success, now);
}

// Routers see the status with the headers: a stream that breaks later has succeeded. Both servers
// of a pair get the status of the answer (smg v1.9.0 model_gateway/src/routers/http/pd_router.rs).
void Router::succeed(const Route& route, SimTime now) {
  (void)on_outcome(route, route.pick.server, true, now);
  if (route.prefill) (void)on_outcome(route, route.pick.prefill_server, true, now);
}

void Router::end_try(const workloads::Request& request, const Route& route, SimTime now) {
  if (!discovery_facts(plan_.scenario.routing.balancer).retries.keeps_tries) {
    on_completed(request, route, false, now);
    return;
  }
  if (omniscient_) omniscient_->on_completed(request);
  tries_.emplace_back(request.id, route);
}

void Router::end_tries(const workloads::Request& request, SimTime now) {
  std::erase_if(tries_, [&](const auto& one) {
    const auto& [id, route] = one;
    const Instance& in = instances_[route.instance];
    if (id != request.id) return false;
    if (in.life == route.life)
      in.balancer->on_completed(route.pick, {.id = id.value(), .now = now});
    return true;
  });
}

Router::Arrival Router::enqueue(std::uint32_t handle, const workloads::Request& request,
                                SimTime now) {
  Arrival arrival;
  arrival.instance = next_instance();
  refresh(now);
  policies::QueuedRequest queued;
  queued.id = handle;
  queued.priority = objective(request);
  queued.flow = sessions_.flow(request);
  queued.bytes = prompt_bytes(request);
  queued.received = now;
  queued.slo_ttft_ms = sessions_.ttft_goal_ms(request);
  arrival.http_status = instances_[arrival.instance].flow->enqueue(std::move(queued), table_, now);
  return arrival;
}

std::optional<std::uint32_t> Router::dispatch(std::uint32_t instance, SimTime now) {
  Instance& in = instances_[instance];
  if (in.flow->queued() == 0) return std::nullopt;
  refresh(now);
  in.scheduler->advance(now);
  const std::optional<std::uint64_t> request = in.flow->dispatch(table_, now);
  if (!request) return std::nullopt;
  return static_cast<std::uint32_t>(*request);
}

std::vector<policies::FlowControl::Expired> Router::expire(std::uint32_t instance, SimTime now) {
  return instances_[instance].flow->expire(table_, now);
}

bool Router::cancel(std::uint32_t instance, std::uint32_t handle, SimTime now) {
  return instances_[instance].flow->cancel(handle, now);
}

void Router::track(std::uint32_t instance, std::uint32_t handle,
                   const workloads::Request& request) {
  instances_[instance].flow->track(handle, objective(request));
}

void Router::forget(std::uint32_t instance, std::uint32_t handle, SimTime now) {
  if (holds_back()) instances_[instance].flow->end(handle, now);
}

std::vector<std::uint64_t> Router::take_victims(std::uint32_t instance) {
  return instances_[instance].flow->take_victims();
}

std::size_t Router::queued() const {
  std::size_t all = 0;
  for (const Instance& in : instances_) all += in.flow != nullptr ? in.flow->queued() : 0;
  return all;
}

bool Router::queue_expires() const {
  const policies::FlowControlSpec& flow = plan_.endpoint_picker->flow_control;
  const auto expires = [&flow](const policies::PriorityBandSpec& band) {
    return band.default_request_ttl.value_or(flow.default_request_ttl) > Duration::zero();
  };
  return expires(flow.default_band) || expires(flow.default_negative_band) ||
         std::any_of(flow.bands.begin(), flow.bands.end(), expires);
}

double Router::saturation(SimTime now) const {
  return holds_back() ? instances_[decisions_.leader().value_or(0)].flow->saturation(table_, now)
                      : 0;
}

}  // namespace routesim::sim
