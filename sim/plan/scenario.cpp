#include "sim/plan/scenario.h"

namespace routesim::sim {

namespace {
/// How a server's model is spread over GPUs.
void describe_parallelism(Describer& d, PoolConfig& c) {
  field(d, {"tensor_parallel", "GPUs one engine core is sliced over."}, c.tensor_parallel,
        IntRange{1, 64});
  field(d, {"pipeline_parallel", "Pipeline stages."}, c.pipeline_parallel, IntRange{1, 64});
  field(d,
        {"data_parallel",
         "Engine cores (DP ranks) per server, each with its own scheduler and KV cache."},
        c.data_parallel, IntRange{1, 256});
  field(d,
        {"expert_parallel",
         "Spread the experts of a MoE model over all ranks; they then step in lock step."},
        c.expert_parallel);
  field(d,
        {"decode_context_parallel",
         "GPUs of tensor_parallel that share the KV of a sequence instead of keeping copies."},
        c.decode_context_parallel, IntRange{1, 64});
  field(d,
        {"data_parallel_balancing",
         "external: each rank is an endpoint of the router; internal: "
         "the server's front end chooses the rank."},
        c.data_parallel_balancing);
}

/// How the servers of a pool come and go.
void describe_life(Describer& d, PoolConfig& c) {
  field(d,
        {"autoscaler",
         "A HorizontalPodAutoscaler or a KEDA ScaledObject that changes the number of servers."},
        c.autoscaler);
  field(d, {"start_up", "How long a server takes to start, where events start some."}, c.start_up);
  field(d, {"termination", "What becomes of a server that is asked to end."}, c.termination);
  field(
      d,
      {.name = "most_evicted",
       .doc = "Servers that may be missing when one is drained, or a percentage of those that the "
              "pool is to have: maxUnavailable of a PodDisruptionBudget. Absent: none forbids a "
              "drain.",
       .plain = true},
      c.most_evicted);
  field(d,
        {.name = "min_available",
         .doc = "Instead: servers that must serve when one is drained, or a percentage: "
                "minAvailable.",
         .plain = true},
        c.min_available);
  field(d, {"gpu_price_per_hour", "US dollars that one GPU costs an hour; a plan has `prices`."},
        c.gpu_price_per_hour, RealRange{.min = 0, .max = 1e6});
}
}  // namespace

void describe(Describer& d, PoolConfig& c) {
  field(d, {"name", "Name of the pool; endpoints are called name-replica."}, c.name);
  field(d, {"role", "What the pool's servers do for a request."}, c.role);
  field(d,
        {"replicas",
         "Model servers in the pool, at the start. 0 where an autoscaler or an event starts the "
         "first. A pool that a roll-out fills (`to`) is empty until then."},
        c.replicas, IntRange{0, 65'536});
  field(d,
        {"accelerator",
         "Accelerator from the catalogue, such as H100-SXM; the node selectors in vllm_serve may "
         "name it too.",
         true},
        c.accelerator);
  field(d,
        {"model",
         "Model from the catalogue, such as Qwen3-32B, or the path of a Hugging Face config.json, "
         "relative to this file; vllm_serve may name it too.",
         true},
        c.model);
  describe_parallelism(d, c);
  field(d, {"kv_cache_dtype", "auto, bf16 or fp8."}, c.kv_cache_dtype);
  field(
      d,
      {"latency_model",
       "auto: step times that a catalogue file has (`measured`), else its fitted curve, else sums "
       "of measured kernels (`kernels`) where tables cover it, else `roofline`; or one of these."},
      c.latency_model);
  field(d, {"engine", "How each engine core schedules."}, c.engine);
  field(d, {"api_server", "What a request goes through before an engine core hears of it."},
        c.api_server);
  field(d, {"labels", "Labels as key=value, seen by the router's filters."}, c.labels);
  describe_life(d, c);
  field(d,
        {"assumed",
         "Why the pool is a guess: `routesim init` writes it where it reads no servers. It is a "
         "warning, and has no other effect."},
        c.assumed);
  field(d,
        {"vllm_serve",
         "How the servers are started, for every key above that is not written: a command line of "
         "`vllm serve` or `sglang serve` (or its words, or the flags as a map), or the path of a "
         "file with them, a Kubernetes manifest, Helm values or a kustomize folder."},
        c.vllm_serve);
}

void describe(Describer& d, TransferConfig& c) {
  field(d, {"bandwidth_gbps", "KV transfer bandwidth of one server in each direction, Gbit/s."},
        c.bandwidth_gbps, RealRange{.min = 0, .max = 1e6, .min_open = true});
  field(d, {"setup", "Fixed time of one pull."}, c.setup,
        DurationRange{Duration::zero(), Duration::seconds(3600)});
  field(d,
        {"descriptor_time",
         "What a pull costs for each block of each layer, keys and values apart (NIXL's "
         "descriptors), besides their bytes; the GPUs of a server work side by side. By default "
         "2us, which fits servers on one host (RDMA between hosts may take less), and nothing for "
         "presets of 2025, of which nobody has measured it."},
        c.descriptor_time, DurationRange{Duration::zero(), Duration::seconds(1)});
  field(d,
        {"handover",
         "From the end of a prefill until the decode server reads the request: the answer, the "
         "proxy, HTTP. By default 8ms, nothing for preset 2025-H2, whose API server is slower, and "
         "35ms for 2025-Q3, behind the example proxy."},
        c.handover, DurationRange{Duration::zero(), Duration::seconds(3600)});
  field(d, {"first_contact", "Handshake the first time two servers talk."}, c.first_contact,
        DurationRange{Duration::zero(), Duration::seconds(3600)});
  field(d,
        {"lease",
         "How long a prefill server keeps blocks nobody reads. By default 480s, and from preset "
         "2026-H2 on 30s that heartbeats of the decode server renew."},
        c.lease, DurationRange{Duration::milliseconds(1), Duration::seconds(1'000'000)});
  field(d, {"load_failure", "What a server does when KV that it loads is gone: fail or recompute."},
        c.load_failure);
}

void describe(Describer& d, HostConfig& c) {
  field(d, {"gpus", "GPUs of one machine; servers of a pool fill one after another."}, c.gpus,
        IntRange{1, 1024});
  field(d,
        {"memory_gb_per_s",
         "What copies to and from the memory of one machine reach together, 10^9 bytes/s: by "
         "default 0.75 of two sockets with eight channels of DDR5-4800."},
        c.memory_gb_per_s, RealRange{.min = 0, .max = 1e6, .min_open = true});
  field(d,
        {"disk_read_gb_per_s",
         "What the drives of one machine read, 10^9 bytes/s: by default one NVMe drive of PCIe 4 "
         "(Samsung PM9A3, data sheet)."},
        c.disk_read_gb_per_s, RealRange{.min = 0, .max = 1e6, .min_open = true});
  field(d, {"disk_write_gb_per_s", "The same for writing."}, c.disk_write_gb_per_s,
        RealRange{.min = 0, .max = 1e6, .min_open = true});
}

void describe(Describer& d, ClusterConfig& c) {
  field(d, {"pools", "Pools of identical servers.", true}, c.pools);
  field(d, {"transfer", "KV transfer between prefill and decode servers."}, c.transfer);
  field(d, {"host", "The machines, as far as tiers of KV blocks need them."}, c.host);
  field(d,
        {"frontend_latency",
         "A fixed delay between the router and a server, beside what its API server costs."},
        c.frontend_latency, DurationRange{Duration::zero(), Duration::seconds(3600)});
}

namespace {
void describe_decisions(Describer& d, RoutingConfig& c) {
  field(d,
        {"decision_latency",
         "Tokeniser, ext-proc and scheduling time of one decision, besides its service_time. By "
         "default 15ms for an endpoint picker that tokenises prompts, 2ms for one that does not "
         "and for AIBrix, 500us for other products, and nothing for a Kubernetes Service, a "
         "policy of your own and the ceiling."},
        c.decision_latency, DurationRange{Duration::zero(), Duration::seconds(3600)});
  field(d,
        {"service_time",
         "How long one decision keeps its router process busy; requests wait their turn, and "
         "router_replicas share them; 0 = it is never the bottleneck. By default 2.8ms for an "
         "endpoint picker and AIBrix, because one picker decided 324 to 388 requests/s "
         "(llm-d-router pull request 2024), and 0 for others."},
        c.service_time, DurationRange{Duration::zero(), Duration::seconds(60)});
  field(d,
        {"decision_latency_per_1000_tokens",
         "More decision_latency for each 1,000 tokens of the prompt. Where decision_latency is not "
         "stated: 1.7ms for an endpoint picker that tokenises prompts; else 0."},
        c.decision_latency_per_1000_tokens, DurationRange{Duration::zero(), Duration::seconds(60)});
  field(d,
        {"service_time_per_megabyte",
         "More service_time for each 10^6 bytes of the prompt: its JSON is parsed, its blocks are "
         "hashed. Where service_time is not stated: 22.5ms for an endpoint picker and AIBrix, "
         "because one picker decided 129 requests/s with prompts of 220 kB (llm-d-router issue "
         "1109); else 0."},
        c.service_time_per_megabyte, DurationRange{Duration::zero(), Duration::seconds(60)});
}

void describe_losses(Describer& d, RoutingConfig& c) {
  field(d, {"discovery", "When the router hears of servers that come and go."}, c.discovery);
  field(
      d,
      {"retries",
       "Retries of the router itself, without a gateway's, for a request that loses its server or "
       "finds none, at most. Absent: as the product does by default."},
      c.retries, IntRange{0, 1'000});
}
}  // namespace

void describe(Describer& d, RoutingConfig& c) {
  field(
      d,
      {"balancer",
       "How a request finds its endpoint; endpoint-picker where a document for it is given and no "
       "balancer."},
      c.balancer);
  field(d,
        {"endpoint_picker",
         "An EndpointPickerConfig (bare, or inside Helm values) for balancer "
         "endpoint-picker: a path, or the document in place."},
        c.endpoint_picker);
  field(d,
        {"era",
         "Router release whose behaviour applies, such as v0.7.0; told from the document "
         "when absent."},
        c.era);
  field(d,
        {"config",
         "The configuration of another product's router: a start command (SMG, vLLM router, "
         "production stack, Dynamo), a script or manifest with one, an Envoy cluster or "
         "BackendTrafficPolicy, Helm values with routerSpec, AIBrix's ROUTING_ALGORITHM or GPU "
         "profiles, an LLMConfig of Ray Serve, or Mooncake's proxy. It sets the balancer and its "
         "section, and for Envoy the gateway; keys beside it win."},
        c.config);
  policies::describe(d, c.balancing);
  field(d, {"expression", "Settings of balancer expression."}, c.expression);
  field(d, {"library", "Settings of balancer library."}, c.library);
  field(
      d,
      {"latency_predictor",
       "The predictor that predicted-latency-producer asks; online where a document declares that "
       "plugin and nothing is said here."},
      c.latency_predictor);
  field(d, {"router_replicas", "Router processes, each with its own index and in-flight counts."},
        c.router_replicas, IntRange{1, 64});
  field(d,
        {"leader_election",
         "One of the router_replicas serves; the others wait (--ha-enable-leader-election)."},
        c.leader_election);
  field(d,
        {"gateway",
         "The proxy in front of the servers: Envoy's limits on requests in flight and waiting, and "
         "retries. Without this section there is no limit."},
        c.gateway);
  describe_decisions(d, c);
  field(d,
        {"scrape_interval",
         "How often endpoint metrics are scraped; where absent as often as the product of the "
         "balancer does it, and every 50 ms for an endpoint picker."},
        c.scrape_interval, DurationRange{Duration::milliseconds(1), Duration::seconds(3600)});
  describe_losses(d, c);
  field(d,
        {"kv_event_delay",
         "From the end of the step that publishes a KV event to the router's "
         "index."},
        c.kv_event_delay, DurationRange{Duration::zero(), Duration::seconds(3600)});
  field(d, {"kv_event_loss", "Share of KV-event batches that never arrive."}, c.kv_event_loss,
        RealRange{.min = 0, .max = 1});
}

std::unique_ptr<policies::Balancer> make_balancer(const RoutingConfig& routing, std::uint64_t seed,
                                                  std::uint64_t process) {
  if (routing.balancer == BalancerKind::kExpression)
    return make_expression(*routing.expression, RandomStream(seed, Stream::kBalancer, process));
  if (routing.balancer == BalancerKind::kLibrary)
    return make_library(*routing.library, seed, process);
  return policies::make_balancer(routing.balancer, routing.balancing, seed, process);
}

std::vector<BalancerFault> balancer_faults(const RoutingConfig& routing) {
  std::vector<BalancerFault> out;
  const auto check_formula = [&out](const std::string& key, const std::string& formula) {
    if (const std::optional<ExpressionFault> fault = expression_fault(formula))
      out.push_back({"expression." + key,
                     fault->message + ", at character " + std::to_string(fault->position + 1),
                     fault->hint});
  };
  if (routing.balancer == BalancerKind::kExpression) {
    if (!routing.expression) {
      out.push_back({"expression", "is missing: balancer expression needs a formula",
                     "for example expression: {score: 2 * prefix_hit - waiting / 10}"});
      return out;
    }
    check_formula("score", routing.expression->score);
    if (!routing.expression->filter.empty()) check_formula("filter", routing.expression->filter);
  }
  if (routing.balancer == BalancerKind::kLibrary) {
    if (!routing.library)
      out.push_back({"library", "is missing: balancer library needs the path of a shared object",
                     "for example library: {path: ./my_policy.so}"});
    else if (const auto fault = library_fault(*routing.library))
      out.push_back({"library." + fault->key, fault->message, fault->hint});
  }
  for (const policies::SettingFault& fault :
       policies::setting_faults(routing.balancer, routing.balancing))
    out.push_back({fault.key, fault.message, fault.hint});
  return out;
}

policies::BalancerNeeds balancer_needs(const RoutingConfig& routing) {
  if (routing.balancer == BalancerKind::kEndpointPicker ||
      routing.balancer == BalancerKind::kOmniscient || !balancer_faults(routing).empty() ||
      (routing.balancer == BalancerKind::kLibrary && foreign_code() != ForeignCode::kAllowed))
    return {};
  return make_balancer(routing, 0, 0)->needs();
}

Duration default_scrape_interval(const RoutingConfig& routing) {
  const Duration own = balancer_needs(routing).metrics_interval;
  return own > Duration::zero() ? own : kScrapeInterval;
}

void describe(Describer& d, HeldRate& c) {
  constexpr Duration kMost = Duration::seconds(50 * 86'400);
  field(d, {"rate", "Requests per second.", true}, c.rate,
        RealRange{.min = 0, .max = 1e7, .min_open = true});
  field(d, {"duration", "How long requests are sent, the warm-up included.", true}, c.duration,
        DurationRange{Duration::seconds(1), kMost});
  field(d, {"warm_up", "Requests that are due before are sent, and left out of reports."},
        c.warm_up, DurationRange{Duration::zero(), kMost});
}

namespace {
constexpr RealRange kRateScales{.min = 0, .max = 1e6, .min_open = true};
}

void describe(Describer& d, MixPart& c) {
  field(d, {"name", "Name of the load; its stages are called NAME/STAGE in results.", true},
        c.name);
  describe_tools(d, c.load);
  field(d, {"demand", "As `demand` of the workload, for this load."}, c.demand);
  field(d, {"rate_scale", "Multiplies every rate of this load, beside that of the workload."},
        c.rate_scale, kRateScales);
  field(d, {"lora_traffic_split", "As that of the workload, for this load."}, c.lora_traffic_split);
  describe_treatment(d, c);
  field(d,
        {"goodput",
         "What a request of this load must meet to count as good, such as [ttft:500ms]. Where "
         "absent, the goals of the scenario, else those of the load tool's own file."},
        c.goodput);
}

void describe(Describer& d, WorkloadConfig& c) {
  describe_tools(d, c.load);
  field(d,
        {"mix",
         "Several loads in place of one, which begin together and run side by side. Each has its "
         "own prompts, sessions, stages and draws, and is a traffic class in results."},
        c.mix);
  field(d, {"options", "What the load tool's own file does not say."}, c.options);
  field(d,
        {"lora_traffic_split",
         "LoRA adapters and their shares of the requests, as in inference-perf's load, for any "
         "load; before what its own file says."},
        c.lora_traffic_split);
  field(d,
        {"classes",
         "Traffic classes, for any load: tenants, priorities, goals. Results tell them apart."},
        c.classes);
  field(d,
        {"rate_scale",
         "Multiplies every rate of the load: of inference-perf's stages, of `vllm bench`, of "
         "groups; a trace plays so much faster. Durations stay, so stages send more requests. An "
         "error where the load has no rate."},
        c.rate_scale, kRateScales);
  field(
      d,
      {"hold",
       "One steady rate in place of the stages that the load has. An error where it has no rate."},
      c.hold);
  field(d,
        {"demand",
         "Rates over a day or a week, or the arrivals of a trace, in place of the rates, stages "
         "and numbers of requests that the load has; arrivals are Poisson. An error where the load "
         "has no rate, or turns."},
        c.demand);
  field(d,
        {"sheddable_fraction",
         "Share of requests sent with a negative priority: an endpoint picker may refuse them "
         "while the pool is saturated. Other balancers know no priorities. `classes` have an "
         "`objective` instead."},
        c.sheddable_fraction, RealRange{.min = 0, .max = 1});
  field(d,
        {"output_token_scale",
         "Tokens the client counts per token generated (it tokenises the "
         "text again)."},
        c.output_token_scale, RealRange{.min = 0, .max = 10, .min_open = true});
  field(d, {"client_overhead", "Client and network time before the router has the request."},
        c.client_overhead, DurationRange{Duration::zero(), Duration::seconds(3600)});
  field(d, {"response_overhead", "Detokenise, HTTP and network time after a token."},
        c.response_overhead, DurationRange{Duration::zero(), Duration::seconds(3600)});
}

workloads::LoadTraits traits_of(const WorkloadConfig& workload) {
  if (workload.mix.empty()) return traits_of(workload.load);
  workloads::LoadTraits out{.streams = traits_of(workload.mix[0].load).streams,
                            .random_text = true};
  for (const MixPart& part : workload.mix) {
    const workloads::LoadTraits own = traits_of(part.load);
    out.random_text = out.random_text && own.random_text;
    out.finds_rates = out.finds_rates || own.finds_rates;
  }
  return out;
}

void describe(Describer& d, MeasuredConfig& c) {
  field(d,
        {"csv",
         "Measured numbers, relative to the scenario: a tidy CSV, a result file of `vllm bench "
         "serve`, "
         "or a folder of inference-perf's stage_<i>_lifecycle_metrics.json files."},
        c.csv);
  field(d, {"experiment", "Value of its experiment column; all rows when absent."}, c.experiment);
  field(d, {"policy", "Value of its policy column for this variant."}, c.policy);
}

void describe(Describer& d, ExpectConfig& c) {
  field(d,
        {"that",
         "METRIC < NUMBER (or >, <=, >=), such as ttft_ms.p99 < 500; or a comparison with another "
         "variant, such as ttft_ms.mean < 50% of NAME.",
         true},
        c.that);
  field(d, {"variant", "Only this variant; every variant when absent."}, c.variant);
  field(d, {"stage", "Name of a load stage; the whole run when absent."}, c.stage);
}

void describe(Describer& d, Scenario& s) {
  field(d, {"name", "Short name, as printed in results.", true}, s.name);
  field(d, {"question", "The question this scenario answers, in one sentence."}, s.question);
  field(d, {"seed", "Identifies the workload: the same seed gives the same bytes."}, s.seed);
  field(d,
        {"catalogue",
         "Files with more accelerators, models and fitted curves, relative to this file; their "
         "entries win over the built-in ones."},
        s.catalogue);
  field(d, {"workload", "The load.", true}, s.workload);
  field(d, {"cluster", "The servers.", true}, s.cluster);
  field(d, {"routing", "The router and what it knows."}, s.routing);
  field(d,
        {"events",
         "What happens to the fleet: crashes, lost machines, drains, slow servers, lost KV events, "
         "router restarts, roll-outs, another number of servers."},
        s.events);
  field(d, {"measured", "Published numbers to print beside."}, s.measured);
  field(d,
        {"goodput",
         "What a request must meet to count as good, such as [ttft:500ms, tpot:50ms]: bounds of "
         "ttft, tpot, itl, ntpot or request_latency."},
        s.goodput);
  field(d,
        {"expect",
         "What must hold in the results: the command fails when it does not. Bare text is `that`."},
        s.expect);
}

}  // namespace routesim::sim
