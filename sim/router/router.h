// The router as the simulation runs it: the production code of policies/, fed with what a real
// router would know - scraped metrics and KV events, each as old as it is - and nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "policies/balancers/balancers.h"
#include "policies/flow/flow_control.h"
#include "policies/scheduler.h"
#include "policies/views.h"
#include "sim/engine/earliest.h"
#include "sim/engine/kv_event_log.h"
#include "sim/engine/prompt_keys.h"
#include "sim/engine/replica.h"
#include "sim/observe/run_result.h"
#include "sim/plan/resolve.h"
#include "sim/router/client_sessions.h"
#include "sim/router/decision_probe.h"

namespace routesim::sim {

/// Where an endpoint lives.
struct EndpointHome {
  std::uint32_t replica = 0;
  int rank = 0;
  std::uint32_t pool = 0;
  /// First rank of the server when its own front end chooses among the ranks; otherwise itself. The
  /// router sees servers.
  std::uint32_t server = 0;
  bool behind_front_end = false;
  std::string name;
};

/// The outcome of routing one request.
struct Route {
  bool routed = false;
  EndpointId endpoint;                     ///< Serves the request (decodes it).
  std::optional<EndpointId> prefill;       ///< Computes the prompt first, when disaggregated.
  std::uint32_t instance = 0;              ///< Which router process decided.
  policies::BalancerPick pick;             ///< For the balancers.
  int http_status = 200;                   ///< Of a refusal, otherwise 200.
  std::int64_t predicted_hit_tokens = -1;  ///< At `endpoint`; -1 without a prefix index.
};

class Router {
 public:
  Router(const RunPlan& plan, std::uint64_t seed, std::vector<EndpointHome> endpoints,
         std::vector<std::unique_ptr<Replica>>& replicas, Diagnostics& diagnostics);

  /// Decides at `now` with what is visible then, and counts the request as in flight.
  Route route(const workloads::Request& request, const PromptKeys& keys, SimTime now);
  /// Flow control is on: requests wait at a router process until the pool has room. Then route()
  /// is not for use, but enqueue(), and decide() for what dispatch() hands out.
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
  /// The client gave up while its request was queued.
  void cancel(std::uint32_t instance, std::uint32_t handle, SimTime now);
  Route decide(std::uint32_t instance, const workloads::Request& request, const PromptKeys& keys,
               SimTime now);
  /// Requests queued at all processes.
  std::size_t queued() const;
  /// No request waits for ever: the configured time to live ends it.
  bool queue_expires() const;
  /// How full the pool looks to the first process: it dispatches below 1, or the policy's ceiling.
  double saturation(SimTime now) const;

  void on_first_token(const workloads::Request& request, const Route& route, SimTime now);
  void on_completed(const workloads::Request& request, const Route& route, SimTime now);

  /// Lets `probe` look into decisions, or make them differently; null = nobody looks.
  void set_probe(DecisionProbe* probe, const RouterKeyOptions& key_options) {
    probe_ = probe;
    key_options_ = key_options;
  }

  /// What the engines must publish and the prompts must be keyed with for this configuration.
  static RouterKeyOptions key_options(const RunPlan& plan, Diagnostics& diagnostics);
  /// What the router knows of the endpoints, as of its last decision.
  const policies::EndpointTable& table() const { return table_; }
  bool reads_metrics() const { return reads_metrics_; }
  bool reads_kv_events() const { return reads_events_; }
  bool counts_first_tokens() const { return counts_first_tokens_; }
  const std::vector<EndpointHome>& endpoints() const { return endpoints_; }
  /// The table's row of an endpoint: ranks behind one front end share it.
  std::uint32_t row(EndpointId endpoint) const { return row_of_[endpoint.value()]; }

 private:
  struct Instance {
    std::unique_ptr<policies::Scheduler> scheduler;
    policies::PrefixIndex* index = nullptr;  ///< The scheduler's precise index, if it has one.
    std::unique_ptr<policies::Balancer> balancer;
    std::unique_ptr<policies::FlowControl> flow;
    policies::Scratch scratch;
    policies::Decision decision;
  };
  class IndexFeeder;

  void make_rows();
  std::size_t rank_count(std::uint32_t row) const;
  void watch_replicas();
  void read_scrape(std::uint32_t row, SimTime now);
  void refresh(SimTime now);
  void prefetch_scrapes(SimTime now);
  void read_scrapes(SimTime now);
  void read_events(SimTime now);
  Route route_by_balancer(Instance& in, const workloads::Request& request);
  Route route_by_scheduler(Instance& in, const workloads::Request& request, const PromptKeys& keys,
                           SimTime now);
  // decision_probe.cpp
  void force(policies::Decision& decision, const workloads::Request& request);
  void force(policies::BalancerPick& pick, const workloads::Request& request);
  std::int64_t cached_tokens(std::uint32_t row, const workloads::Request& request,
                             const PromptKeys& keys) const;
  EndpointFacts facts(std::uint32_t row, const workloads::Request& request, const PromptKeys& keys,
                      SimTime now);
  void record_before(Instance& in, const workloads::Request& request, const PromptKeys& keys,
                     SimTime now, DecisionRecord& record);
  void explain_omniscient(Instance& in, const workloads::Request& request, const PromptKeys& keys,
                          SimTime now, DecisionRecord& record);
  void report_decision(Instance& in, const workloads::Request& request, const PromptKeys& keys,
                       SimTime now, const Route& route, DecisionRecord& record);
  std::string_view adapter_name(const workloads::Request& request) const;
  void tell_adapters(std::uint32_t row, const AdapterGauges& gauges,
                     policies::EndpointTable& table) const;
  std::int32_t objective(const workloads::Request& request) const;
  std::int64_t prompt_bytes(const workloads::Request& request) const;
  policies::RequestView view(const workloads::Request& request, const PromptKeys& keys);

  const RunPlan& plan_;
  std::uint64_t seed_;
  double bytes_per_token_;  ///< Of prompt text, for routers that see text.
  std::vector<EndpointHome> endpoints_;
  std::vector<std::unique_ptr<Replica>>& replicas_;
  std::vector<Instance> instances_;
  policies::EndpointTable table_;
  std::vector<std::uint32_t> rows_;    ///< Per row of the table: its first endpoint.
  std::vector<std::uint32_t> row_of_;  ///< Per endpoint.
  /// A rank as the scrapes see it.
  struct Scraped {
    Replica* replica;
    int rank;
    double usable_blocks;
  };
  std::vector<Scraped> scraped_;               ///< By row.
  static constexpr std::size_t kFetched = 16;  ///< Servers that are fetched together.
  std::vector<Scraped> due_;                   ///< Scratch.
  std::vector<std::uint32_t> first_gauge_;     ///< Per row: its first in scraped_; and the end.
  std::vector<SimTime> next_refresh_;          ///< Per row: the next scrape instant.
  std::vector<std::uint32_t> scrape_order_;    ///< Rows in the order of their scrapes, a cycle.
  std::size_t scrape_head_ = 0;                ///< Whose scrape in scrape_order_ is next.
  Earliest news_;                              ///< Per replica: Replica::mirror_next_news.
  Earliest next_visible_;                      ///< Per endpoint: KvEventLog::mirror_next_visible.
  std::vector<std::uint32_t> readable_;        ///< Scratch: endpoints with visible events.
  std::vector<std::uint32_t> holders_;         ///< Per row: its id in the precise index.
  bool reads_metrics_ = false;
  bool reads_adapters_ = false;
  bool reads_events_ = false;
  bool counts_first_tokens_ = false;
  std::uint64_t next_instance_ = 0;
  DecisionProbe* probe_ = nullptr;
  RouterKeyOptions key_options_;  ///< Set with the probe.
  std::string prefix_text_;
  ClientSessions sessions_;
};

}  // namespace routesim::sim
