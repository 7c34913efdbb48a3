#include "sim/router/router.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/check.h"

namespace routesim::sim {

namespace {

constexpr std::uint64_t kObjectiveSalt = 0x0b1ec71fe;

/// What a router that sees text finds in a token of this load.
double bytes_per_token(const WorkloadConfig& w) {
  if (w.options.bytes_per_token) return *w.options.bytes_per_token;
  return traits_of(w.load).random_text ? workloads::kRandomBytesPerToken
                                       : workloads::kTextBytesPerToken;
}

/// The text a prefix-hash balancer would see: two prompts agree in their first characters exactly
/// when they agree in their first tokens (about four characters each). Of a chat it sees the first
/// user message only, so that all turns of a thread look alike.
void write_prefix_text(const workloads::Prompt& prompt, std::int64_t characters, std::string& out) {
  out.clear();
  std::int64_t left = (characters + 3) / 4;
  std::int64_t preamble = prompt.preamble_tokens;  // the chat template's own, not the user's text
  const bool chat = preamble > 0;
  for (const workloads::Segment& s : prompt.segments) {
    if (left <= 0) break;
    if (preamble >= s.length) {
      preamble -= s.length;
      continue;
    }
    preamble = 0;
    char digits[17];
    const auto end = std::to_chars(digits, digits + 16,
                                   mix64(s.content, static_cast<std::uint64_t>(s.offset)), 16);
    out.append(digits, static_cast<std::size_t>(end.ptr - digits));
    left -= s.length;
    if (chat) return;
  }
}

/// A rank the router can address has its own name; one behind a front end goes by its server's.
std::string server_name(const EndpointHome& home) {
  return home.behind_front_end ? home.name.substr(0, home.name.rfind("-rank-")) : home.name;
}

policies::EndpointInfo endpoint_info(const EndpointHome& home, const ResolvedPool& pool) {
  policies::EndpointInfo info;
  info.address = "10." + std::to_string(home.replica >> 16 & 255) + "." +
                 std::to_string(home.replica >> 8 & 255) + "." + std::to_string(home.replica & 255);
  info.port = 8000 + home.rank;
  info.pod_name = server_name(home);
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

policies::BalancerOptions balancer_options(const RoutingConfig& c) {
  policies::BalancerOptions o;
  switch (c.balancer) {
    case BalancerKind::kRoundRobin:
      o.kind = policies::BalancerKind::kRoundRobin;
      break;
    case BalancerKind::kRandom:
      o.kind = policies::BalancerKind::kRandom;
      break;
    case BalancerKind::kLeastLoad:
      o.kind = policies::BalancerKind::kLeastLoad;
      break;
    case BalancerKind::kPrefixHash:
      o.kind = policies::BalancerKind::kPrefixHash;
      break;
    default:
      o.kind = policies::BalancerKind::kK8sService;
  }
  o.mode = c.service_mode == ServiceMode::kIptables ? policies::KubeProxyMode::kIptables
                                                    : policies::KubeProxyMode::kIpvsRr;
  o.connection_reuse = static_cast<std::uint32_t>(c.requests_per_connection);
  o.mean_load_percentage = static_cast<std::uint32_t>(c.mean_load_factor);
  o.replication = static_cast<std::uint32_t>(c.hash_replication);
  o.prefix_char_length = static_cast<std::uint32_t>(c.prefix_char_length);
  return o;
}

}  // namespace

/// Applies the KV events of one endpoint to the index of every router process.
class Router::IndexFeeder final : public KvEventLog::Reader {
 public:
  explicit IndexFeeder(std::vector<Instance>& instances) : instances_(instances) {}
  void set_endpoint(EndpointId endpoint) { endpoint_ = endpoint; }
  void on_stored(std::span<const BlockKey> engine_keys,
                 std::span<const std::uint64_t> request_keys) override {
    for (Instance& in : instances_)
      in.index->stored(endpoint_, policies::kGpuTier, 0, engine_keys, request_keys);
  }
  void on_removed(std::span<const BlockKey> engine_keys) override {
    for (Instance& in : instances_) in.index->removed(endpoint_, policies::kGpuTier, engine_keys);
  }

 private:
  std::vector<Instance>& instances_;
  EndpointId endpoint_;
};

RouterKeyOptions Router::key_options(const RunPlan& plan, Diagnostics& diagnostics) {
  RouterKeyOptions out;
  out.model = plan.pools.front().config.model;
  out.adapters = plan.adapters;
  if (!plan.endpoint_picker) return out;
  const policies::Scheduler probe(*plan.endpoint_picker, {}, diagnostics);
  if (!probe.valid()) return out;
  if (probe.needs().block_keys) {
    const policies::BlockKeyScheme& scheme = probe.block_key_scheme();
    out.precise.emplace(scheme.algorithm, static_cast<std::uint32_t>(scheme.block_size),
                        scheme.hash_seed, out.model);
    out.hash_seed = scheme.hash_seed;
  }
  if (probe.needs().approx_hashes) {
    policies::EndpointTable table;
    table.add(endpoint_info(EndpointHome{}, plan.pools.front()));
    const policies::ApproxScheme scheme = probe.approx_scheme(table);
    const bool tokens = scheme.hashing == policies::ApproxHashing::kTokens;
    const double bytes = tokens ? 1 : bytes_per_token(plan.scenario.workload);  // Others cut text.
    out.approx_block = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(static_cast<double>(scheme.block_size) / bytes));
    out.approx_max_blocks = scheme.max_blocks;
  }
  return out;
}

Router::Router(const RunPlan& plan, std::uint64_t seed, std::vector<EndpointHome> endpoints,
               std::vector<std::unique_ptr<Replica>>& replicas, Diagnostics& diagnostics)
    : plan_(plan),
      seed_(seed),
      bytes_per_token_(bytes_per_token(plan.scenario.workload)),
      endpoints_(std::move(endpoints)),
      replicas_(replicas) {
  const RoutingConfig& routing = plan.scenario.routing;
  make_rows();
  instances_.resize(static_cast<std::size_t>(routing.router_replicas));
  for (std::size_t i = 0; i < instances_.size(); ++i) {
    Instance& in = instances_[i];
    if (plan.endpoint_picker) {
      in.scheduler = std::make_unique<policies::Scheduler>(
          *plan.endpoint_picker, policies::SchedulerOptions{.seed = mix64(seed, i)}, diagnostics);
      if (!in.scheduler->valid()) return;
      in.index = in.scheduler->precise_index();
      if (plan.endpoint_picker->gate("flowControl"))
        in.flow = std::make_unique<policies::FlowControl>(*in.scheduler);
    } else {
      in.balancer = policies::make_balancer(balancer_options(routing), seed, i);
      std::vector<policies::BalancerEndpoint> named;
      for (const std::uint32_t e : rows_)
        named.push_back({.name = server_name(endpoints_[e]), .adapters = plan.adapters});
      in.balancer->set_endpoints(named);
    }
  }
  for (const std::uint32_t e : rows_)
    table_.add(endpoint_info(endpoints_[e], plan.pools[endpoints_[e].pool]));
  if (!plan.endpoint_picker) return;
  sessions_ = ClientSessions(*instances_.front().scheduler, plan_.headers);
  const policies::SignalNeeds& needs = instances_.front().scheduler->needs();
  // Saturation detectors read metrics, too, but are asked only here.
  reads_adapters_ = needs.lora && !plan.adapters.empty();
  reads_metrics_ = needs.metrics || reads_adapters_ || holds_back() ||
                   plan.scenario.workload.sheddable_fraction > 0;
  reads_events_ = needs.kv_events;
  counts_first_tokens_ = needs.in_flight;
  for (std::uint32_t row = 0; row < rows_.size(); ++row)
    holders_.push_back(instances_.front().scheduler->index_holder(table_, row));
  watch_replicas();
}

void Router::make_rows() {
  for (std::uint32_t e = 0; e < endpoints_.size(); ++e) {
    if (endpoints_[e].server == e) rows_.push_back(e);
    row_of_.push_back(static_cast<std::uint32_t>(rows_.size() - 1));
  }
}

std::size_t Router::rank_count(std::uint32_t row) const {
  return (row + 1 < rows_.size() ? rows_[row + 1] : endpoints_.size()) - rows_[row];
}

// Between two decisions few of many servers say anything new. All are scraped at the same interval,
// so their scrapes are due in a fixed cyclic order, and servers say when it is worth asking them.
void Router::watch_replicas() {
  for (std::uint32_t row = 0; row < rows_.size(); ++row) {
    const EndpointHome& home = endpoints_[rows_[row]];
    next_refresh_.push_back(replicas_[home.replica]->next_scrape(home.rank, SimTime::from_ns(-1)));
    scrape_order_.push_back(row);
    first_gauge_.push_back(static_cast<std::uint32_t>(scraped_.size()));
    for (std::size_t e = rows_[row]; e < rows_[row] + rank_count(row); ++e) {
      const EndpointHome& at = endpoints_[e];
      const std::int64_t blocks = plan_.pools[at.pool].rules.num_gpu_blocks - 1;
      scraped_.push_back({.replica = replicas_[at.replica].get(),
                          .rank = at.rank,
                          .usable_blocks = static_cast<double>(blocks)});
    }
  }
  first_gauge_.push_back(static_cast<std::uint32_t>(scraped_.size()));
  for (std::uint32_t e = 0; e < endpoints_.size() && reads_events_; ++e)
    replicas_[endpoints_[e].replica]
        ->events(endpoints_[e].rank)
        .mirror_next_visible(next_visible_, e);
  std::stable_sort(
      scrape_order_.begin(), scrape_order_.end(),
      [this](std::uint32_t a, std::uint32_t b) { return next_refresh_[a] < next_refresh_[b]; });
  for (std::size_t r = 0; r < replicas_.size() && reads_events_; ++r)
    replicas_[r]->mirror_next_news(news_, r);
}

// Brings the router's knowledge up to `now`: what was scraped and published by then, not more.
void Router::refresh(SimTime now) {
  if (reads_metrics_) read_scrapes(now);
  if (reads_events_) read_events(now);
}

// Ranks behind one front end are scraped together: requests are summed, cache use is the mean.
void Router::read_scrape(std::uint32_t row, SimTime now) {
  const Duration interval = plan_.scenario.routing.scrape_interval;
  SimTime at = next_refresh_[row];
  if (now - at >= interval) at = at + interval * ((now - at).ns() / interval.ns());
  next_refresh_[row] = at + interval;
  double waiting = 0, running = 0, usage = 0;
  AdapterGauges adapters;
  const std::uint32_t first = first_gauge_[row], end = first_gauge_[row + 1];
  for (std::uint32_t i = first; i < end; ++i) {
    const Scraped& s = scraped_[i];
    const Gauges g = s.replica->scrape(s.rank, at, now);
    waiting += static_cast<double>(g.waiting);
    running += static_cast<double>(g.running);
    usage += 1.0 - static_cast<double>(g.free_blocks) / s.usable_blocks;
    if (reads_adapters_) adapters.add(g.adapters);
  }
  if (end - first > 1) usage /= static_cast<double>(end - first);
  table_.set_metrics(EndpointId(row), waiting, running, usage, at);
  if (reads_adapters_) tell_adapters(row, adapters, table_);
}

// Of many servers none is in the processor's caches when its turn comes. Those that are due are
// fetched together, and then what they refer to, instead of one after another.
void Router::prefetch_scrapes(SimTime now) {
  due_.clear();
  std::size_t turn = scrape_head_;
  while (due_.size() < kFetched && next_refresh_[scrape_order_[turn]] <= now) {
    due_.push_back(scraped_[first_gauge_[scrape_order_[turn]]]);
    due_.back().replica->prefetch();
    turn = turn + 1 == scrape_order_.size() ? 0 : turn + 1;
  }
  for (const Scraped& s : due_) s.replica->prefetch(s.rank);
  for (const Scraped& s : due_) s.replica->scheduler(s.rank).prefetch_crossings();
}

void Router::read_scrapes(SimTime now) {
  if (scrape_order_.size() > 2 * kFetched) prefetch_scrapes(now);
  std::size_t read = 0;
  for (; read < scrape_order_.size(); ++read) {
    const std::uint32_t row = scrape_order_[scrape_head_];
    if (next_refresh_[row] > now) break;
    read_scrape(row, now);
    scrape_head_ = scrape_head_ + 1 == scrape_order_.size() ? 0 : scrape_head_ + 1;
  }
  if (read < scrape_order_.size()) return;
  // After a pause of more than an interval the cycle goes on at another place.
  const auto first = std::min_element(
      scrape_order_.begin(), scrape_order_.end(),
      [this](std::uint32_t a, std::uint32_t b) { return next_refresh_[a] < next_refresh_[b]; });
  scrape_head_ = static_cast<std::size_t>(first - scrape_order_.begin());
}

void Router::read_events(SimTime now) {
  while (news_.time() <= now) replicas_[news_.index()]->advance_to(now);
  readable_.clear();
  while (next_visible_.time() <= now) {
    readable_.push_back(static_cast<std::uint32_t>(next_visible_.index()));
    next_visible_.set(readable_.back(), SimTime::max());
  }
  // In the order of endpoints, whoever spoke first.
  std::sort(readable_.begin(), readable_.end());
  IndexFeeder feeder(instances_);
  for (const std::uint32_t e : readable_) {
    feeder.set_endpoint(EndpointId(holders_[row_of_[e]]));
    replicas_[endpoints_[e].replica]->events(endpoints_[e].rank).read_until(now, feeder);
  }
}

Route Router::route(const workloads::Request& request, const PromptKeys& keys, SimTime now) {
  return decide(static_cast<std::uint32_t>(next_instance_++ % instances_.size()), request, keys,
                now);
}

Route Router::decide(std::uint32_t which, const workloads::Request& request, const PromptKeys& keys,
                     SimTime now) {
  Instance& in = instances_[which];
  Route route;
  if (in.index != nullptr && !keys.request.empty()) in.index->expect(keys.request.front());
  if (in.balancer == nullptr) refresh(now);
  const bool probed = probe_ != nullptr && probe_->wants(request);
  DecisionRecord record;
  if (probed) record_before(in, request, keys, now, record);
  route = in.balancer != nullptr ? route_by_balancer(in, request)
                                 : route_by_scheduler(in, request, keys, now);
  route.instance = which;
  if (probed) report_decision(in, request, keys, now, route, record);
  return route;
}

Route Router::route_by_balancer(Instance& in, const workloads::Request& request) {
  const RoutingConfig& routing = plan_.scenario.routing;
  if (routing.balancer == BalancerKind::kPrefixHash)
    write_prefix_text(*request.prompt, routing.prefix_char_length, prefix_text_);
  Route route;
  std::optional<policies::BalancerPick> pick =
      in.balancer->pick({.prefix = prefix_text_, .adapter = adapter_name(request)});
  if (!pick) return route;
  force(*pick, request);
  in.balancer->on_sent(*pick);
  route.routed = true;
  route.pick = *pick;
  route.endpoint = EndpointId(rows_[pick->endpoint]);
  return route;
}

// The InferenceObjective the client names. The engine's own priority is another matter.
std::int32_t Router::objective(const workloads::Request& request) const {
  const double share = plan_.scenario.workload.sheddable_fraction;
  if (share <= 0) return 0;
  const std::uint64_t draw = mix64(mix64(seed_, kObjectiveSalt), request.id.value());
  return static_cast<double>(draw >> 11) * 0x1.0p-53 < share ? -1 : 0;
}

std::int64_t Router::prompt_bytes(const workloads::Request& request) const {
  return static_cast<std::int64_t>(static_cast<double>(request.prompt->tokens) * bytes_per_token_);
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
  sessions_.send(request, v);
  return v;
}

Route Router::route_by_scheduler(Instance& in, const workloads::Request& request,
                                 const PromptKeys& keys, SimTime now) {
  const policies::RequestView v = view(request, keys);
  in.scheduler->advance(now);
  in.scheduler->schedule(v, table_, now, in.scratch, in.decision);
  Route route;
  if (!in.decision.routed()) {
    route.http_status = in.decision.http_status;
    return route;
  }
  force(in.decision, request);
  in.scheduler->on_routed(v, in.decision, table_, now);
  sessions_.on_routed(request, *in.scheduler, in.decision, table_);
  route.routed = true;
  route.endpoint = EndpointId(rows_[in.decision.primary.value()]);
  route.predicted_hit_tokens = in.scheduler->predicted_hit_tokens(in.scratch, in.decision.primary);
  if (in.decision.prefill.valid() && in.decision.prefill != in.decision.primary)
    route.prefill = EndpointId(rows_[in.decision.prefill.value()]);
  return route;
}

void Router::on_first_token(const workloads::Request& request, const Route& route, SimTime now) {
  if (!counts_first_tokens_) return;
  instances_[route.instance].scheduler->on_first_token(request.id.value(), now);
}

void Router::on_completed(const workloads::Request& request, const Route& route, SimTime now) {
  Instance& in = instances_[route.instance];
  if (in.balancer != nullptr) {
    in.balancer->on_completed(route.pick);
    return;
  }
  in.scheduler->on_completed(request.id.value(), now);
  sessions_.on_completed(request);
  if (in.flow != nullptr)
    in.flow->on_completed(sessions_.flow(request), request.prompt->tokens, request.output_tokens,
                          now);
}

Router::Arrival Router::enqueue(std::uint32_t handle, const workloads::Request& request,
                                SimTime now) {
  Arrival arrival;
  arrival.instance = static_cast<std::uint32_t>(next_instance_++ % instances_.size());
  refresh(now);
  policies::QueuedRequest queued;
  queued.id = handle;
  queued.priority = objective(request);
  queued.flow = sessions_.flow(request);
  queued.bytes = prompt_bytes(request);
  queued.received = now;
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

void Router::cancel(std::uint32_t instance, std::uint32_t handle, SimTime now) {
  const bool found = instances_[instance].flow->cancel(handle, now);
  ROUTESIM_CHECK(found, "a request that waits at a router is in its queue");
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
  return holds_back() ? instances_.front().flow->saturation(table_, now) : 0;
}

}  // namespace routesim::sim
