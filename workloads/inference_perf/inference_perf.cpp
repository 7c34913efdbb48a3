#include "workloads/inference_perf/inference_perf.h"

#include <algorithm>
#include <string>
#include <utility>

#include "workloads/inference_perf/inference_perf_data.h"
#include "workloads/traces/trace_replay.h"

namespace routesim::workloads::inference_perf {
namespace {

/// The HTTP library's default, which the tool leaves in place.
constexpr std::int64_t kDefaultTimeoutSeconds = 300;

/// Every request waits at least this long, so that the queue is filled before the first is due.
constexpr StageTiming kTiming = {.lead = Duration::seconds(1), .poll = Duration::seconds(1)};

/// The probe's requests are due within these seconds.
constexpr double kProbeSeconds = 5;
std::unique_ptr<ArrivalStream> rate_arrivals(LoadType type, double rate, double duration_s,
                                             RandomStream random) {
  return type == LoadType::kPoisson ? poisson_arrivals(rate, duration_s, random)
                                    : constant_arrivals(rate, duration_s, random);
}

/// The parts of a stage that do not depend on the client.
struct StageLoad {
  StageInfo info{};
  std::unique_ptr<ArrivalStream> arrivals{};
};

bool has_turns(const Config& c) {
  return c.data.type == DataType::kConversationReplay ||
         (c.data.type == DataType::kSharedPrefix && c.data.shared_prefix &&
          c.data.shared_prefix->enable_multi_turn_chat);
}

/// The most requests of one stage.
constexpr std::int64_t kMostRequests = 1'000'000'000;
/// The most of a stage whose arrivals are drawn twice, to know when the last is due.
constexpr std::int64_t kMostRehearsed = 100'000'000;

/// Reports errors in load.sweep, which is given.
void check_sweep(const Config& c, Diagnostics& out) {
  const Sweep& s = *c.load.sweep;
  if (c.load.type != LoadType::kConstant && c.load.type != LoadType::kPoisson)
    out.error({}, "load.sweep",
              "needs a load type with rates (got " + std::string(enum_name(c.load.type)) + ")",
              "use constant or poisson, or list the stages");
  if (c.data.trace)
    out.error({}, "data.trace", "says how many requests a stage has: a sweep cannot",
              "list the stages");
  if (!c.load.stages.empty())
    out.warning({}, "load.stages", "has no effect: load.sweep makes the stages");
  if (c.load.num_workers == 0)
    out.error({}, "load.num_workers", "a sweep needs worker processes (got 0)",
              "without them the tool never sends the probe, and has no stages");
  // No more than all of the probe's requests can end within half a second.
  const double most = 2 * static_cast<double>(s.num_requests);
  if (most * static_cast<double>(s.stage_duration) > static_cast<double>(kMostRequests))
    out.error(
        {}, "load.sweep.stage_duration",
        "makes stages of up to 2 * num_requests * stage_duration requests, and 1000000000 are "
        "the most (got 2 * " +
            std::to_string(s.num_requests) + " * " + std::to_string(s.stage_duration) + ")");
}

void check_rate_stage(const Stage& s, std::size_t i, bool trace_decides, bool is_rehearsed,
                      Diagnostics& out) {
  const std::int64_t most = is_rehearsed ? kMostRehearsed : kMostRequests;
  if (s.num_requests)
    out.error({}, stage_path(i, "num_requests"), "belongs to load type concurrent only");
  if (s.concurrency_level)
    out.error({}, stage_path(i, "concurrency_level"), "belongs to load type concurrent only");
  if (trace_decides) return;
  if (!s.rate) out.error({}, stage_path(i, "rate"), "is missing");
  if (!s.duration) out.error({}, stage_path(i, "duration"), "is missing");
  if (s.rate && s.duration &&
      *s.rate * static_cast<double>(*s.duration) > static_cast<double>(most)) {
    out.error({}, stage_path(i, "rate"),
              "gives more than " + std::to_string(most) + " requests (got " +
                  std::to_string(*s.rate) + " * " + std::to_string(*s.duration) + ")",
              is_rehearsed ? "split the stage, or use load type poisson" : "");
    return;
  }
  if (s.rate && s.duration && requests_of_stage(*s.rate, static_cast<double>(*s.duration)) == 0)
    out.error({}, stage_path(i, "rate"),
              "gives no request: int(rate * duration) is 0 (got " + std::to_string(*s.rate) +
                  " * " + std::to_string(*s.duration) + ")");
}

void check_concurrent_stage(const Stage& s, std::size_t i, Diagnostics& out) {
  if (s.rate) out.error({}, stage_path(i, "rate"), "has no place in load type concurrent");
  if (s.duration) out.error({}, stage_path(i, "duration"), "has no place in load type concurrent");
  if (!s.num_requests) out.error({}, stage_path(i, "num_requests"), "is missing");
  if (s.num_requests && *s.num_requests > kMostRehearsed)
    out.error({}, stage_path(i, "num_requests"),
              "must be at most " + std::to_string(kMostRehearsed) + " (got " +
                  std::to_string(*s.num_requests) + ")",
              "split the stage");
  if (!s.concurrency_level) out.error({}, stage_path(i, "concurrency_level"), "is missing");
}

bool replays_sessions(const Config& c) {
  return c.data.type == DataType::kOtelTraceReplay || c.data.type == DataType::kWekaTraceReplay ||
         c.data.type == DataType::kSyntheticAgentic;
}

bool arrivals_from_trace(const Config& c) { return c.load.type == LoadType::kTraceReplay; }

void check_load(const Config& c, const LoadInputs& inputs, Diagnostics& out) {
  const Load& load = c.load;
  if (load.sweep)
    check_sweep(c, out);
  else if (load.stages.empty())
    out.error({}, "load.stages", "at least one stage is needed");
  if (load.type == LoadType::kTraceSessionReplay && !replays_sessions(c))
    out.error({}, "load.type",
              "trace_session_replay needs sessions (got data.type " +
                  std::string(enum_name(c.data.type)) + ")",
              "use otel_trace_replay, weka_trace_replay or synthetic_agentic data, or another load "
              "type");
  for (std::size_t i = 0; i < load.stages.size(); ++i) {
    if (load.type == LoadType::kTraceSessionReplay)
      check_session_stage(load.stages[i], i, out);
    else if (load.type == LoadType::kConcurrent)
      check_concurrent_stage(load.stages[i], i, out);
    else
      check_rate_stage(load.stages[i], i, arrivals_from_trace(c), load.type == LoadType::kConstant,
                       out);
  }
  if (arrivals_from_trace(c) && !inputs.trace)
    out.error({}, "load.trace", "load type trace_replay needs a trace file");
  if (!load.circuit_breakers.empty())
    out.warning({}, "load.circuit_breakers", "circuit breakers are not simulated");
  if (load.worker_max_tcp_connections < load.worker_max_concurrency)
    out.warning({}, "load.worker_max_tcp_connections",
                "is below worker_max_concurrency, which alone limits the requests in flight here",
                "set worker_max_concurrency to the same value");
  if (load.request_retries > 0)
    out.warning({}, "load.request_retries",
                "are not simulated: a request that loses its server fails, unless the router or a "
                "gateway tries again",
                "look at the errors of a run with `events`, or set it to 0");
  if (load.lora_traffic_split) {
    check_lora_split(*load.lora_traffic_split, "load.lora_traffic_split", out);
    if (c.report.request_lifecycle.per_adapter || c.report.request_lifecycle.per_adapter_stage)
      out.warning({}, "report.request_lifecycle.per_adapter",
                  "reports of single adapters are not written",
                  "run --records names the adapter of each request");
  }
}

void check_shared_prefix(const SharedPrefix& p, Diagnostics& out) {
  const std::string path = "data.shared_prefix.";
  check_distributions({{"system_prompt_len", p.system_prompt_len},
                       {"question_len", p.question_len},
                       {"output_len", p.output_len},
                       {"question_distribution", p.question_distribution},
                       {"output_distribution", p.output_distribution}},
                      path, out);
  if (p.question_distribution && p.question_len.type != DistributionType::kFixed)
    out.error({}, path + "question_distribution",
              "question_len already is a distribution; give one of them");
  if (p.output_distribution && p.output_len.type != DistributionType::kFixed)
    out.error({}, path + "output_distribution",
              "output_len already is a distribution; give one of them");
  // 10 M pool prompts are about a GiB.
  if (p.num_prompts_per_group > 10'000'000 / p.num_groups)
    out.error({}, path + "num_prompts_per_group",
              "num_groups * num_prompts_per_group must not exceed 10,000,000");
}

void check_bimodal(const Bimodal& b, Diagnostics& out) {
  check_distributions({{"mode_a_user_prompt_len", b.mode_a_user_prompt_len},
                       {"mode_a_output_len", b.mode_a_output_len},
                       {"mode_b_user_prompt_len", b.mode_b_user_prompt_len},
                       {"mode_b_output_len", b.mode_b_output_len}},
                      "data.bimodal.", out);
}

/// Reports settings of shared prefixes that the simulation does not have.
void check_prefix_extras(const SharedPrefix& p, Diagnostics& out) {
  const std::string path = "data.shared_prefix.";
  if (!p.num_tool_calls_per_turn.empty())
    out.warning({}, path + "num_tool_calls_per_turn",
                "has no effect: the tool drew these numbers, and sent no tool call",
                "agents that call tools are synthetic_agentic data");
  if (!p.multimodal.empty())
    out.error({}, path + "multimodal", "images, video and audio are not simulated",
              "leave it out: the text alone is simulated then");
  if (p.max_model_len && p.enable_multi_turn_chat)
    out.warning({}, path + "max_model_len", "has no effect: contexts grow beyond it here");
}

void check_conversation_replay(const ConversationReplay& r, Diagnostics& out) {
  check_distributions({{"dynamic_system_prompt_len", r.dynamic_system_prompt_len},
                       {"turns_per_conversation", r.turns_per_conversation},
                       {"input_tokens_per_turn", r.input_tokens_per_turn},
                       {"output_tokens_per_turn", r.output_tokens_per_turn},
                       {"tool_call_latency_sec", r.tool_call_latency_sec}},
                      "data.conversation_replay.", out);
  check_conversation_length(r, out);
}

void check_random(const Config& c, const LoadInputs& inputs, Diagnostics& out) {
  if (c.data.trace && c.data.type == DataType::kRandom) {
    if (!inputs.trace) out.error({}, "data.trace", "the trace file was not opened");
    return;
  }
  auto check = [&](const std::optional<Distribution>& d, const char* path) {
    if (d)
      check_distribution(*d, SamplerKind::kRandomData, path, out);
    else
      out.error({}, path, "is missing: this data needs it");
  };
  check(c.data.input_distribution, "data.input_distribution");
  check(c.data.output_distribution, "data.output_distribution");
}

void check_requests(const Config& c, Diagnostics& out) {
  if (!c.data.multimodal.empty())
    out.error({}, "data.multimodal", "images, video and audio are not simulated",
              "leave it out: the text alone is simulated then");
  if (c.api.type == ApiType::kEmbeddings || c.api.type == ApiType::kRerank)
    out.error({}, "api.type",
              std::string(enum_name(c.api.type)) +
                  " requests are not simulated: they generate "
                  "nothing",
              "use completion or chat");
}

void check_data(const Config& c, const WorkloadOptions& options, const LoadInputs& inputs,
                Diagnostics& out) {
  const auto is_given = [&](bool given) {
    if (!given)
      out.error({}, "data." + std::string(enum_name(c.data.type)),
                "is missing: data.type asks for it");
    return given;
  };
  switch (c.data.type) {
    case DataType::kMock:
      return;
    case DataType::kSharedPrefix:
      if (!is_given(c.data.shared_prefix.has_value())) return;
      check_shared_prefix(*c.data.shared_prefix, out);
      check_prefix_extras(*c.data.shared_prefix, out);
      return;
    case DataType::kConversationReplay:
      if (is_given(c.data.conversation_replay.has_value()))
        check_conversation_replay(*c.data.conversation_replay, out);
      return;
    case DataType::kBimodal:
      if (is_given(c.data.bimodal.has_value())) check_bimodal(*c.data.bimodal, out);
      return;
    case DataType::kRandom:
    case DataType::kSynthetic:
      check_random(c, inputs, out);
      return;
    case DataType::kShareGpt:
      if (!inputs.conversations)
        out.error({}, "data.path", "shareGPT data needs its file",
                  "download ShareGPT_V3_unfiltered_cleaned_split.json, which the tool fetches by "
                  "itself, and name it here or with --set workload.inference_perf.data.path=FILE");
      if (c.api.type != ApiType::kCompletion && !options.natural_answer)
        out.error({}, "data.type", "chat over shareGPT sets no maximum for answers",
                  "say how long answers are with natural_answer");
      return;
    case DataType::kOtelTraceReplay:
    case DataType::kWekaTraceReplay:
    case DataType::kSyntheticAgentic:
      check_replay_data(c, out);
      return;
    default:
      out.error({}, "data.type",
                "this data set is not simulated (got " + std::string(enum_name(c.data.type)) + ")",
                "use shared_prefix, bimodal, random, synthetic, shareGPT, conversation_replay, "
                "otel_trace_replay, weka_trace_replay or synthetic_agentic");
  }
}

std::int64_t workers(const Config& c, const WorkloadOptions& options) {
  return c.load.num_workers.value_or(options.default_workers);
}

/// Reads a conversation file once: broken bytes and a file without usable records are errors.
void check_conversations(const Config& c, const ConversationOpener& open, Diagnostics& out) {
  const std::unique_ptr<ConversationReader> reader = open();
  Conversation conversation;
  std::int64_t usable = 0;
  while (reader->next(conversation)) usable += sharegpt_usable(c, conversation);
  for (const Diagnostic& d : reader->diagnostics().items()) out.add(d);
  if (usable == 0 && !out.has_errors())
    out.error({}, "data.path", "no conversation fits the input and output distributions");
}

StageLoad make_stage(const Config& c, const WorkloadOptions& options, const LoadInputs& inputs,
                     std::size_t i, const TraceSummary& trace) {
  const Stage& s = c.load.stages[i];
  StageLoad out;
  out.info.name = std::to_string(i);
  out.info.reported = i >= static_cast<std::size_t>(options.warmup_stages);
  RandomStream random(options.seed, Stream::kArrivals, i);
  switch (c.load.type) {
    case LoadType::kConcurrent:
      out.info.requests = *s.num_requests;
      out.info.concurrency = *s.concurrency_level;
      // The tool fills in rate = num_requests and duration = 1, so the due times are spread over
      // the first second.
      out.arrivals = constant_arrivals(static_cast<double>(*s.num_requests), 1, random);
      break;
    case LoadType::kTraceReplay:
      out.info.requests = trace.records;
      out.info.duration_s = trace.last.to_seconds();
      out.info.requested_rate = s.rate.value_or(0);
      out.arrivals = trace_arrivals(inputs.trace);
      break;
    default: {
      const auto duration = static_cast<double>(*s.duration);
      out.info.requested_rate = *s.rate;
      out.info.duration_s = duration;
      out.info.requests = requests_of_stage(*s.rate, duration);
      out.arrivals = inputs.arrivals ? inputs.arrivals()
                                     : rate_arrivals(c.load.type, *s.rate, duration, random);
    }
  }
  return out;
}

/// The probe of load.sweep, and the stages whose arrivals and rates only make_sweep's will know.
std::vector<StageLoad> sweep_stages(const Config& c, const WorkloadOptions& options) {
  const Sweep& s = *c.load.sweep;
  std::vector<StageLoad> out(static_cast<std::size_t>(s.num_stages) + 1);
  StageInfo& probe = out.front().info;
  probe.name = "probe";
  probe.requested_rate = static_cast<double>(s.num_requests) / kProbeSeconds;
  probe.duration_s = kProbeSeconds;
  probe.requests = requests_of_stage(probe.requested_rate, kProbeSeconds);
  probe.reported = false;
  probe.is_preparation = true;
  out.front().arrivals = rate_arrivals(c.load.type, probe.requested_rate, kProbeSeconds,
                                       RandomStream(options.seed, Stream::kArrivals, 0));
  for (std::size_t i = 1; i < out.size(); ++i) {
    StageInfo& info = out[i].info;
    info.name = std::to_string(i - 1);
    info.duration_s = static_cast<double>(s.stage_duration);
    info.requests = -1;
    info.reported = i > static_cast<std::size_t>(options.warmup_stages);
  }
  return out;
}

std::unique_ptr<RateSweep> make_sweep(const Config& c, const WorkloadOptions& options) {
  const Sweep& s = *c.load.sweep;
  const auto duration = static_cast<double>(s.stage_duration);
  SweepSettings settings;
  settings.spacing = s.type == SweepType::kLinear ? RateSpacing::kLinear : RateSpacing::kGeometric;
  settings.stages = s.num_stages;
  settings.stage_duration_s = duration;
  settings.timeout_s = s.timeout;
  settings.saturation_percentile = s.saturation_percentile;
  settings.grace = Duration::from_seconds(c.load.stage_teardown_grace_seconds);
  settings.arrivals = [type = c.load.type, seed = options.seed, duration](std::size_t stage,
                                                                          double rate) {
    return rate_arrivals(type, rate, duration, RandomStream(seed, Stream::kArrivals, stage));
  };
  return std::make_unique<RateSweep>(std::move(settings));
}

/// The permits of each worker that has any, for data with turns.
std::vector<std::int64_t> worker_permits(const Config& c, const WorkloadOptions& options,
                                         const Stage& s) {
  const std::int64_t n = std::max<std::int64_t>(workers(c, options), 1);
  if (c.load.type != LoadType::kConcurrent)
    return std::vector<std::int64_t>(static_cast<std::size_t>(n), c.load.worker_max_concurrency);
  const std::int64_t each = *s.concurrency_level / n;
  const std::int64_t more = *s.concurrency_level % n;
  std::vector<std::int64_t> permits;
  for (std::int64_t w = 0; w < n && each + (w < more ? 1 : 0) > 0; ++w)
    permits.push_back(each + (w < more ? 1 : 0));
  return permits;
}

std::int64_t shared_permits(const Config& c, const WorkloadOptions& options, const Stage& s) {
  if (c.load.type == LoadType::kConcurrent) return *s.concurrency_level;
  const std::int64_t n = workers(c, options);
  return n == 0 ? kUnlimitedPermits : n * c.load.worker_max_concurrency;
}

void check_options(const Config& c, const WorkloadOptions& options, Diagnostics& out) {
  if (options.natural_answer)
    check_distribution(*options.natural_answer, SamplerKind::kGeneral, "natural_answer", out);
  const std::size_t stages =
      c.load.sweep ? static_cast<std::size_t>(c.load.sweep->num_stages) : c.load.stages.size();
  if (options.warmup_stages > 0 && static_cast<std::size_t>(options.warmup_stages) >= stages)
    out.error({}, "warmup_stages",
              "leaves no stage to report (got " + std::to_string(options.warmup_stages) + " of " +
                  std::to_string(stages) + ")");
}

std::unique_ptr<LoadGenerator> make_client(const Config& c, const WorkloadOptions& options,
                                           const LoadInputs& inputs, std::vector<StageLoad> loads) {
  StageTiming timing = kTiming;
  timing.interval = Duration::from_seconds(c.load.interval);
  std::vector<StagePlan> plans;
  std::vector<SessionClient::Stage> session_stages;
  const Stage no_stage;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const Stage& stage = c.load.sweep ? no_stage : c.load.stages[i];
    if (has_turns(c))
      session_stages.push_back({.info = std::move(loads[i].info),
                                .arrivals = std::move(loads[i].arrivals),
                                .permits = worker_permits(c, options, stage),
                                .timeout = request_timeout(c)});
    else
      plans.push_back({.info = std::move(loads[i].info),
                       .arrivals = std::move(loads[i].arrivals),
                       .permits = shared_permits(c, options, stage),
                       .timeout = request_timeout(c)});
  }
  std::unique_ptr<RateSweep> sweep;
  if (c.load.sweep) sweep = make_sweep(c, options);
  if (!has_turns(c))
    return std::make_unique<StagedClient>(std::move(plans), make_source(c, options, inputs), timing,
                                          std::move(sweep));
  return std::make_unique<SessionClient>(std::move(session_stages), make_sessions(c, options),
                                         timing, std::move(sweep));
}

}  // namespace

std::string_view own_times_of(const Config& config) {
  if (replays_sessions(config)) return "its sessions say when each request follows";
  return has_turns(config) ? "its turns wait for each other, and a conversation ends with its stage"
                           : "";
}

std::string stage_path(std::size_t i, const std::string& key) {
  return "load.stages[" + std::to_string(i) + "]" + (key.empty() ? "" : ".") + key;
}

Duration request_timeout(const Config& config) {
  return config.load.request_timeout ? Duration::from_seconds(*config.load.request_timeout)
                                     : Duration::seconds(kDefaultTimeoutSeconds);
}

std::vector<std::int64_t> requests_per_stage(const Config& config) {
  std::vector<std::int64_t> out;
  if (config.load.sweep) out.assign(static_cast<std::size_t>(config.load.sweep->num_stages), -1);
  if (config.load.sweep) return out;
  for (const Stage& s : config.load.stages) {
    if (config.load.type == LoadType::kConcurrent)
      out.push_back(s.num_requests.value_or(-1));
    else if (config.load.type == LoadType::kTraceReplay ||
             config.load.type == LoadType::kTraceSessionReplay || !s.rate || !s.duration)
      out.push_back(-1);
    else
      out.push_back(requests_of_stage(*s.rate, static_cast<double>(*s.duration)));
  }
  return out;
}

std::unique_ptr<LoadGenerator> make_load_generator(const Config& config,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics) {
  Diagnostics found;
  check_load(config, inputs, found);
  check_requests(config, found);
  check_data(config, options, inputs, found);
  check_options(config, options, found);
  TraceSummary trace;
  if (!found.has_errors() && inputs.trace && (arrivals_from_trace(config) || config.data.trace))
    trace = survey_trace(inputs, {.block_tokens = 1, .hash_length = HashLengthRule::kTruncateToIds},
                         "load.trace", found);
  if (!found.has_errors() && config.data.type == DataType::kShareGpt)
    check_conversations(config, inputs.conversations, found);
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  if (found.has_errors()) return nullptr;
  if (replays_sessions(config)) return make_replay_client(config, options, inputs, diagnostics);
  std::vector<StageLoad> stages;
  if (config.load.sweep)
    stages = sweep_stages(config, options);
  else
    for (std::size_t i = 0; i < config.load.stages.size(); ++i)
      stages.push_back(make_stage(config, options, inputs, i, trace));
  return make_client(config, options, inputs, std::move(stages));
}

}  // namespace routesim::workloads::inference_perf
