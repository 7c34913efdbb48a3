// One resolved question: this workload, on this cluster, behind this router. What a scenario file
// says, described once for every reader and writer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "policies/balancers/balancers.h"
#include "sim/custom/expression.h"
#include "sim/custom/library.h"
#include "sim/fleet/fleet_config.h"
#include "sim/plan/gateway_config.h"
#include "sim/prediction/predictor_settings.h"
#include "sim/rules/engine_config.h"
#include "sim/scaling/autoscaler_config.h"
#include "workloads/load/load.h"
#include "workloads/options.h"
#include "workloads/traffic_classes.h"

namespace routesim::sim {

/// The work that a pool's servers do for a request.
enum class PoolRole { kBoth, kPrefill, kDecode };
/// The chooser of the DP rank: the router (each rank is an endpoint) or the server's own front end.
enum class DataParallelBalancing { kExternal, kInternal };

/// Identical model servers.
struct PoolConfig {
  std::string name = "default";
  PoolRole role = PoolRole::kBoth;
  std::int64_t replicas = 1;
  std::string accelerator;  ///< Catalogue name, e.g. `H100-SXM`.
  std::string model;        ///< Catalogue name, e.g. `Qwen3-32B`, or the path of a config.json.
  std::int64_t tensor_parallel = 1;
  std::int64_t pipeline_parallel = 1;
  std::int64_t data_parallel = 1;
  bool expert_parallel = false;
  std::int64_t decode_context_parallel = 1;
  DataParallelBalancing data_parallel_balancing = DataParallelBalancing::kExternal;
  std::string kv_cache_dtype = "auto";  ///< auto, bf16 or fp8.
  std::string latency_model = "auto";   ///< auto, measured, kernels or roofline.
  EngineConfig engine;
  ApiServerConfig api_server;
  std::vector<std::string> labels;  ///< `key=value`, as the router's filters see them.
  std::optional<AutoscalerConfig> autoscaler;
  StartUpConfig start_up;
  TerminationConfig termination;
  /// A PodDisruptionBudget's bounds, each a number or a percentage, of which one is given. Neither:
  /// one server may be missing.
  std::string most_evicted, min_available;
  std::optional<double> gpu_price_per_hour;  ///< US dollars.
  std::int64_t gpus_per_server() const {
    return tensor_parallel * pipeline_parallel * data_parallel;
  }
  Document assumed;  ///< Why there is this pool; readers make a warning of it.
  /// How the servers are started. Readers turn it into the keys above, so it is empty by then.
  Document vllm_serve;
};
void describe(Describer& d, PoolConfig& c);

/// Reaction of a server when KV that it was to load is gone: vLLM's kv_load_failure_policy.
enum class KvLoadFailure { kFail, kRecompute };

/// KV transfer between prefill and decode servers.
struct TransferConfig {
  double bandwidth_gbps = 200;  ///< Per server and direction, Gbit/s.
  Duration setup = Duration::microseconds(500);
  std::optional<Duration> descriptor_time;  ///< NIXL's. Absent: default_descriptor_time().
  std::optional<Duration> handover;         ///< Absent: default_handover().
  Duration first_contact = Duration::milliseconds(100);
  /// How long a prefill server keeps blocks nobody has read. Absent: 480 s, or from 2026-H2 on 30 s
  /// that the decode server's heartbeats renew for as long as it knows of the request.
  std::optional<Duration> lease;
  KvLoadFailure load_failure = KvLoadFailure::kFail;
};
void describe(Describer& d, TransferConfig& c);

/// The machines that servers run on. Only servers with tiers ask.
struct HostConfig {
  std::int64_t gpus = 8;
  double memory_gb_per_s = 460;  ///< Of all copies to and from the host's memory, 10^9 bytes/s.
  double disk_read_gb_per_s = 6.9, disk_write_gb_per_s = 4.1;  ///< Of the host's drives.
};
void describe(Describer& d, HostConfig& c);

struct ClusterConfig {
  std::vector<PoolConfig> pools;
  TransferConfig transfer;
  std::optional<HostConfig> host;
  Duration frontend_latency;  ///< From the router to a server's API server, the same for all.
};
void describe(Describer& d, ClusterConfig& c);

using policies::BalancerKind;

/// How often llm-d's router scrapes its endpoints.
inline constexpr Duration kScrapeInterval = Duration::milliseconds(50);

/// The router: which decision code, and how old what it knows is.
struct RoutingConfig {
  BalancerKind balancer = BalancerKind::kK8sService;
  Document endpoint_picker;  ///< An EndpointPickerConfig, bare or inside Helm values.
  std::string era;           ///< Router release, e.g. `v0.7.0`; empty = from the document.
  policies::BalancerSettings balancing;
  std::optional<ExpressionSettings> expression;
  std::optional<LibrarySettings> library;
  /// Absent: as an endpoint picker with predicted-latency-producer has it by default.
  std::optional<PredictorSettings> latency_predictor;
  std::int64_t router_replicas = 1;
  bool leader_election = false;  ///< One of them serves, the others stand by.
  /// Another product's configuration. tools/ turns it into the keys beside it.
  Document config;
  std::optional<GatewayConfig> gateway;  ///< Absent: no limits and no retries.
  /// Tokeniser, ext-proc and scheduling, per request; and how long one process is busy with one
  /// decision, while requests queue (0 = not). Absent: as router_costs.h says; resolve() decides.
  std::optional<Duration> decision_latency, service_time;
  /// How both grow with the prompt. Absent: as router_costs.h says where the time that grows is
  /// absent, too, and not at all where it is stated.
  std::optional<Duration> decision_latency_per_1000_tokens, service_time_per_megabyte;
  /// Absent: as the product does, or kScrapeInterval; resolve() decides.
  std::optional<Duration> scrape_interval;
  std::optional<DiscoveryConfig> discovery;
  std::optional<std::int64_t> retries;  ///< Of the router itself. Absent: as the product does.
  Duration kv_event_delay = Duration::milliseconds(1);
  double kv_event_loss = 0;  ///< Fraction of event batches that never arrive.
};
void describe(Describer& d, RoutingConfig& c);
inline std::int64_t serving_routers(const RoutingConfig& c) {
  return c.leader_election ? 1 : c.router_replicas;
}
/// Makes the balancer of one router process. It is no endpoint picker and not omniscient, and its
/// settings have no fault.
std::unique_ptr<policies::Balancer> make_balancer(const RoutingConfig& routing, std::uint64_t seed,
                                                  std::uint64_t process);
/// One fault of the settings of a balancer.
struct BalancerFault {
  std::string key;  ///< Below `routing`.
  std::string message;
  std::string hint;
};
std::vector<BalancerFault> balancer_faults(const RoutingConfig& routing);
/// How often this router scrapes where `scrape_interval` is absent.
Duration default_scrape_interval(const RoutingConfig& routing);
/// The inputs of the balancer; none for an endpoint picker, and where the settings have a fault.
policies::BalancerNeeds balancer_needs(const RoutingConfig& routing);

/// One steady rate in place of the rates that a load has.
struct HeldRate {
  double rate = 1;  ///< Requests/s.
  Duration duration = Duration::seconds(60);
  Duration warm_up;  ///< What is due before is sent, and left out of reports.
};
void describe(Describer& d, HeldRate& c);

/// One of several loads that run side by side, each a traffic class of its own.
struct MixPart : workloads::TrafficClass {
  workloads::Load load;
  std::optional<workloads::Demand> demand;
  double rate_scale = 1;  ///< Beside that of the workload.
  std::optional<std::vector<workloads::LoraSplit>> lora_traffic_split;
  std::vector<std::string> goodput;  ///< As Scenario::goodput, which it takes the place of.
};
void describe(Describer& d, MixPart& c);

/// The load tool and what the client measures. Exactly one source of load is given.
struct WorkloadConfig {
  workloads::Load load;
  std::vector<MixPart> mix;  ///< In place of `load`; empty: one load.
  workloads::WorkloadOptions options;
  /// Adapters of any load; where absent, those of the load tool's own file.
  std::optional<std::vector<workloads::LoraSplit>> lora_traffic_split;
  /// Classes of requests; empty: all requests are alike. resolve() makes them of a mix.
  std::vector<workloads::TrafficClass> classes;
  double rate_scale = 1;                    ///< Multiplies every rate of the load.
  std::optional<HeldRate> hold;             ///< Instead of its stages.
  std::optional<workloads::Demand> demand;  ///< The same; `hold` goes before it.
  double sheddable_fraction = 0;    ///< Share of requests the router may refuse (priority -1).
  double output_token_scale = 1.0;  ///< Tokens the client counts per token generated.
  Duration client_overhead;         ///< Client and network time before the router has a request.
  Duration response_overhead;       ///< Detokenise, HTTP and network time after a token.
};
void describe(Describer& d, WorkloadConfig& c);
/// What holds for all loads of the workload. The loads of a mix that can run stream alike.
workloads::LoadTraits traits_of(const WorkloadConfig& workload);

/// Published numbers a scenario is compared with.
struct MeasuredConfig {
  std::string csv;         ///< Tidy CSV, or results of a load tool, relative to the scenario.
  std::string experiment;  ///< Value of its `experiment` column; empty = all.
  std::string policy;      ///< Value of its `policy` column for this variant.
};
void describe(Describer& d, MeasuredConfig& c);

/// Something that must hold in the results, checked after the run. The simulator only carries it.
struct ExpectConfig {
  std::string that;     ///< `ttft_ms.p99 < 500`, or `ttft_ms.mean < 50% of VARIANT`.
  std::string variant;  ///< Empty = every variant.
  std::string stage;    ///< Name of a load stage; empty = the whole run.
};
void describe(Describer& d, ExpectConfig& c);

struct Scenario {
  std::string name;
  std::string question;  ///< The question the scenario answers, one sentence.
  std::string variant;   ///< Filled by the reader from `variants[].name`.
  std::uint64_t seed = 1;
  std::vector<std::string> catalogue;  ///< Files with more accelerators, models and curves.
  WorkloadConfig workload;
  ClusterConfig cluster;
  RoutingConfig routing;
  std::vector<FleetEventConfig> events;
  MeasuredConfig measured;
  /// Latency goals a request must meet to count as good: `ttft:500ms`. The simulator only carries
  /// them.
  std::vector<std::string> goodput;
  std::vector<ExpectConfig> expect;
};
void describe(Describer& d, Scenario& s);

}  // namespace routesim::sim

template <>
struct routesim::EnumNames<routesim::sim::PoolRole> {
  static constexpr std::array<std::string_view, 3> value = {"both", "prefill", "decode"};
};
template <>
struct routesim::EnumNames<routesim::sim::KvLoadFailure> {
  static constexpr std::array<std::string_view, 2> value = {"fail", "recompute"};
};
template <>
struct routesim::EnumNames<routesim::sim::DataParallelBalancing> {
  static constexpr std::array<std::string_view, 2> value = {"external", "internal"};
};
