// The router as the simulation runs it: the production code of policies/, fed with what a real
// router would know - scraped metrics and KV events, each as old as it is - and nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "policies/balancers/balancers.h"
#include "policies/flow/flow_control.h"
#include "policies/scheduler.h"
#include "policies/views.h"
#include "sim/engine/endpoints.h"
#include "sim/engine/replica.h"
#include "sim/kv/prompt_keys.h"
#include "sim/plan/resolve.h"
#include "sim/router/balancer_inputs.h"
#include "sim/router/client_sessions.h"
#include "sim/router/decision_probe.h"
#include "sim/router/decision_queue.h"
#include "sim/router/decision_reporter.h"
#include "sim/router/omniscient.h"
#include "sim/router/perfect_predictor.h"
#include "sim/router/route.h"
#include "sim/telemetry/kv_event_feed.h"
#include "sim/telemetry/scraper.h"

namespace routesim::sim {

/// The router processes of a run. They share what scrapes and events have shown; each has its own
/// scheduler or balancer.
class Router {
 public:
  /// The references outlive the router.
  Router(const RunPlan& plan, std::uint64_t seed, const Endpoints& endpoints,
         const std::vector<std::unique_ptr<Replica>>& replicas, Diagnostics& diagnostics);

  /// The process that gets the next request.
  std::uint32_t next_instance();
  /// A request arrives at `now`; the decision about it is known at the time returned, which is
  /// later where the router processes are busy and where the prompt is long.
  DecisionQueue::Turn admit(const workloads::Request& request, SimTime now);
  const DecisionQueue& decision_queue() const { return decisions_; }
  /// Decides at `now` with what is visible then, and counts the request as in flight, unless it is
  /// held. `turn` is BalancerRequest::turn, the request's own id where absent.
  Route decide(std::uint32_t instance, const workloads::Request& request, const PromptKeys& keys,
               SimTime now, std::optional<std::uint64_t> turn = {});
  /// Requests held by the balancer of one process that it tries at once; the rest wait for them.
  std::size_t tried_together() const;
  bool serves_in_order() const;
  /// Flow control is on: requests wait at a router process until the pool has room. They go through
  /// enqueue(), and decide() is for those that dispatch() hands out.
  bool holds_back() const { return !instances_.empty() && instances_.front().flow != nullptr; }
  std::uint32_t instances() const { return static_cast<std::uint32_t>(instances_.size()); }
  /// The process that got a request, and the HTTP status if it refused it (0 = queued).
  struct Arrival {
    std::uint32_t instance = 0;
    int http_status = 0;
  };
  Arrival enqueue(std::uint32_t handle, const workloads::Request& request, SimTime now);
  /// One dispatch attempt of one process: the request it lets go.
  std::optional<std::uint32_t> dispatch(std::uint32_t instance, SimTime now);
  /// Requests of one process whose time in the queue is over.
  std::vector<policies::FlowControl::Expired> expire(std::uint32_t instance, SimTime now);
  /// The client gave up while its request was queued; false when it is not in the queue.
  bool cancel(std::uint32_t instance, std::uint32_t handle, SimTime now);
  /// A request that dispatch() let go was sent to a server.
  void track(std::uint32_t instance, std::uint32_t handle, const workloads::Request& request);
  /// A routed request has ended.
  void forget(std::uint32_t instance, std::uint32_t handle, SimTime now);
  /// Requests that the last dispatch of a process wants ended.
  std::vector<std::uint64_t> take_victims(std::uint32_t instance);
  /// Requests queued at all processes.
  std::size_t queued() const;
  /// No request waits for ever: the configured time to live ends it.
  bool queue_expires() const;
  /// How full the pool looks to the first process: it dispatches below 1, or the policy's ceiling.
  double saturation(SimTime now) const;

  // ---- The fleet changes. ---------------------------------------------------------------------

  /// The routers learn that the servers of a row are gone: they forget what they knew of them.
  void leave(std::uint32_t row, SimTime now);
  /// They learn of servers in a row. `pod` > 0: others than those that were there at first, with
  /// names and addresses of their own.
  void join(std::uint32_t row, std::int64_t pod, SimTime now);
  /// Tells every process, after one or more of these calls. O(rows) for each process.
  void look_again();
  /// The servers of a row answer scrapes, or no longer.
  void set_up(std::uint32_t row, bool up, SimTime now);
  /// The metrics of a row, which has some, are those of the process that answers now.
  bool is_fresh(std::uint32_t row) const {
    return scraper_ && scraper_->is_fresh(row, table_.updated()[row]);
  }
  /// The scrapes of a row fail, or no longer, while its servers serve.
  void set_scraped(std::uint32_t row, bool works, SimTime now);
  /// A router process ends; another one takes its place, which knows nothing but the servers.
  void stop(std::uint32_t process);
  void start(std::uint32_t process, SimTime now);
  /// Requests go to this process from now on.
  void lead(std::uint32_t process, SimTime now);
  /// Some process serves.
  bool runs() const;

  /// The server that answers has read the request: a stream's headers are on their way.
  void on_request_read(const workloads::Request& request, const Route& route, SimTime now);
  void on_first_token(const workloads::Request& request, const Route& route, SimTime now);
  /// `answered`: the client has the whole answer.
  void on_completed(const workloads::Request& request, const Route& route, bool answered,
                    SimTime now);
  /// A server of a route (BalancerPick::server) has answered, or failed before it did. True: its
  /// circuit breaker in this process opens.
  bool on_outcome(const Route& route, std::uint32_t server, bool success, SimTime now);
  /// A try has failed, and the process makes another one.
  void end_try(const workloads::Request& request, const Route& route, SimTime now);
  /// The request ends, wherever it is: its failed tries are no longer in flight.
  void end_tries(const workloads::Request& request, SimTime now);

  /// Lets `probe` look into decisions, or make them differently.
  void set_probe(DecisionProbe& probe, const RouterKeyOptions& key_options);

  /// The keys that engines must publish and prompts must have for this configuration.
  static RouterKeyOptions key_options(const RunPlan& plan, Diagnostics& diagnostics);
  /// The router's knowledge of the endpoints, as of its last decision.
  const policies::EndpointTable& table() const { return table_; }
  std::int64_t failed_replays() const { return events_ ? events_->failed_replays() : 0; }
  bool reads_metrics() const { return scraper_.has_value(); }
  bool counts_first_tokens() const { return counts_first_tokens_; }
  const std::vector<EndpointHome>& endpoints() const { return endpoints_.homes(); }
  /// The table's row of an endpoint: ranks behind one front end share it.
  std::uint32_t row(EndpointId endpoint) const { return endpoints_.row_of(endpoint.value()); }

 private:
  struct Instance {
    std::unique_ptr<policies::LatencyPredictor> predictor;  ///< Kind online.
    std::unique_ptr<policies::Scheduler> scheduler;
    policies::PrefixIndex* index = nullptr;  ///< The scheduler's precise index, if it has one.
    std::unique_ptr<policies::Balancer> balancer;
    std::unique_ptr<policies::FlowControl> flow;
    policies::Scratch scratch;
    policies::Decision decision;
    bool runs = true;
    std::uint32_t life = 0;  ///< How often it was started again.
  };
  /// The servers that balancers know, where some rows have none.
  struct Known {
    std::vector<std::string> names;   ///< By row, also of the server that left it.
    std::vector<std::uint32_t> rows;  ///< By index of a balancer's endpoint.
    policies::EndpointTable metrics;  ///< The same order, where it is not that of the rows.
    bool all = true;                  ///< Every row has a server, so that indexes are rows.
  };

  policies::LatencyPredictor* predictor(Instance& in, std::uint64_t seed);
  void add_instances(Diagnostics& diagnostics);
  void fill(std::size_t process, Diagnostics& diagnostics);
  void tell(std::size_t process);
  KvEventFeed::Listener listener(const Instance& in) const;
  std::vector<KvEventFeed::Listener> listeners() const;
  std::optional<KvReplays> replays() const;
  const policies::EndpointTable& known_metrics();
  void read_telemetry();
  void feed_balancers();
  void refresh(SimTime now);
  Route route_by_balancer(Instance& in, const workloads::Request& request, const PromptKeys& keys,
                          SimTime now, std::uint64_t turn);
  Route route_by_omniscient(const workloads::Request& request, const PromptKeys& keys, SimTime now);
  void price(Route& route, const workloads::Request& request, const PromptKeys& keys, SimTime now);
  Route route_by_scheduler(Instance& in, const workloads::Request& request, const PromptKeys& keys,
                           SimTime now);
  void succeed(const Route& route, SimTime now);
  std::string_view adapter_name(const workloads::Request& request) const;
  std::int32_t objective(const workloads::Request& request) const;
  std::int64_t prompt_bytes(const workloads::Request& request) const;
  policies::RequestView view(const workloads::Request& request, const PromptKeys& keys);

  const RunPlan& plan_;
  std::uint64_t seed_;
  double bytes_per_token_;  ///< Of prompt text, for routers that see text.
  bool streams_;            ///< Whether clients see each token when it comes.
  const Endpoints& endpoints_;
  const std::vector<std::unique_ptr<Replica>>& replicas_;
  std::vector<Instance> instances_;
  policies::EndpointTable table_;
  Known known_;
  std::optional<Scraper> scraper_;     ///< Where the configuration reads metrics.
  std::optional<KvEventFeed> events_;  ///< Where it reads KV events.
  bool counts_first_tokens_ = false;
  DecisionQueue decisions_;
  std::uint64_t next_instance_ = 0;
  std::optional<Omniscient> omniscient_;  ///< Where it decides, or prices the decisions.
  std::optional<PerfectPredictor> perfect_predictor_;  ///< Of all processes.
  std::optional<DecisionReporter> reporter_;
  BalancerInputs balancer_inputs_;
  ClientSessions sessions_;
  /// Failed tries of open requests, where the product counts them as in flight.
  std::vector<std::pair<RequestId, Route>> tries_;
};

}  // namespace routesim::sim
