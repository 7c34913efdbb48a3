// The document of inference-perf, key by key, and what others must know of it. Defaults stand in
// the structs.
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/describe.h"
#include "workloads/inference_perf/inference_perf.h"
#include "workloads/inference_perf/inference_perf_data.h"

namespace routesim::workloads::inference_perf {
namespace {

const RealRange kPositive{.min = 0, .max = 1e7, .min_open = true};
const RealRange kSeconds{.min = 0, .max = 1e9};
const IntRange kCount{1, 1'000'000'000};

constexpr std::string_view kOwnClient = "it is about how the client reaches the server";
constexpr std::string_view kOwnReports = "routesim writes all of its reports in any case";
constexpr std::string_view kNoScraping = "server metrics come from the simulation itself";
constexpr std::string_view kTextOnly = "prompts are text here";
constexpr std::string_view kGenerative = "only requests that generate text are simulated";
constexpr std::string_view kTokenCounts = "prompts are counted in tokens here, not in text";

std::string key_of(std::string_view rest) { return "inference_perf." + std::string(rest); }

/// The files of recorded sessions. Two sources are an error, and neither is read.
void add_sessions(const Config& config, std::vector<LoadFile>& out) {
  const SessionReplay* replay = session_replay(config);
  if (replay == nullptr || (replay->trace_directory && !replay->trace_files.empty())) return;
  const std::string root = key_of("data.") + std::string(enum_name(config.data.type)) + ".";
  if (replay->trace_directory)
    out.push_back({.kind = LoadFile::Kind::kSessionFolder,
                   .key = root + "trace_directory",
                   .path = *replay->trace_directory});
  for (std::size_t i = 0; i < replay->trace_files.size(); ++i)
    out.push_back({.kind = LoadFile::Kind::kSessions,
                   .key = root + "trace_files[" + std::to_string(i) + "]",
                   .path = replay->trace_files[i]});
}

/// Multiplies a rate that is there and finite; says whether it did.
bool scale(std::optional<double>& rate, double by) {
  if (!rate || !std::isfinite(*rate)) return false;
  *rate *= by;
  return true;
}

}  // namespace

void describe(Describer& d, Api& t) {
  field(d, {"type", "Endpoint the tool talks to."}, t.type);
  field(d, {"streaming", "Stream answers; TTFT, TPOT and ITL exist only then."}, t.streaming);
  field(d,
        {"headers", "HTTP headers of every request; an endpoint picker's plugins may read them."},
        t.headers);
  field(d,
        no_effect(
            "slo_unit", "Unit of the SLO headers.",
            "the tool reads it for its report; routers read the headers, reports report.goodput"),
        t.slo_unit);
  field(d,
        no_effect(
            "slo_tpot_header", "Header with the TPOT goal.",
            "the tool reads it for its report; routers read the headers, reports report.goodput"),
        t.slo_tpot_header);
  field(d,
        no_effect(
            "slo_ttft_header", "Header with the TTFT goal.",
            "the tool reads it for its report; routers read the headers, reports report.goodput"),
        t.slo_ttft_header);
  field(d,
        no_effect("response_format", "Structured output.",
                  "answers have the length that is asked for, in any format"),
        t.response_format);
  field(d,
        no_effect("session_id_header_key", "Header with the session.",
                  "requests name their session without a header here"),
        t.session_id_header_key);
  field(d,
        no_effect("session_token_header_key", "Header with the session token.",
                  "requests name their session without a header here"),
        t.session_token_header_key);
  field(d, not_modelled("embeddings", "Settings of the embeddings endpoint.", kGenerative),
        t.embeddings);
  field(d, not_modelled("rerank", "Settings of the rerank endpoint.", kGenerative), t.rerank);
}

void describe(Describer& d, SharedPrefix& t) {
  field(d, {"num_groups", "Groups; each has one system prompt."}, t.num_groups, kCount);
  field(d, {"num_prompts_per_group", "Questions per group."}, t.num_prompts_per_group, kCount);
  field(d, {"system_prompt_len", "Tokens of a group's system prompt."}, t.system_prompt_len);
  field(d, {"question_len", "Tokens of a question."}, t.question_len);
  field(d, {"output_len", "Tokens asked for as answer."}, t.output_len);
  field(d, {"seed", "Seed of the data."}, t.seed);
  field(d, {"question_distribution", "Legacy form of question_len."}, t.question_distribution);
  field(d, {"output_distribution", "Legacy form of output_len."}, t.output_distribution);
  field(d, {"enable_multi_turn_chat", "Each prompt is a user who keeps talking."},
        t.enable_multi_turn_chat);
  field(d,
        not_modelled("max_model_len", "Ceiling of a multi-turn context.",
                     "contexts grow beyond it here"),
        t.max_model_len, kCount);
  field(d,
        no_effect("num_tool_calls_per_turn", "Of early 2026.",
                  "the tool draws these numbers and sends no tool call"),
        t.num_tool_calls_per_turn);
  field(d, not_modelled("multimodal", "Images and the like.", kTextOnly), t.multimodal);
}

void describe(Describer& d, Bimodal& t) {
  const IntRange length{0, 100'000'000};
  field(d, {"mode_a_system_prompt_len", "Tokens of a system prompt of mode A."},
        t.mode_a_system_prompt_len, length);
  field(d, {"mode_a_groups", "System prompts of mode A."}, t.mode_a_groups, kCount);
  field(d, {"mode_a_user_prompt_len", "Tokens of a request's own text, mode A."},
        t.mode_a_user_prompt_len);
  field(d, {"mode_a_output_len", "Tokens asked for as answer, mode A."}, t.mode_a_output_len);
  field(d, {"mode_b_system_prompt_len", "Tokens of a system prompt of mode B."},
        t.mode_b_system_prompt_len, length);
  field(d, {"mode_b_groups", "System prompts of mode B."}, t.mode_b_groups, kCount);
  field(d, {"mode_b_user_prompt_len", "Tokens of a request's own text, mode B."},
        t.mode_b_user_prompt_len);
  field(d, {"mode_b_output_len", "Tokens asked for as answer, mode B."}, t.mode_b_output_len);
  field(d, {"mode_a_ratio", "Share of the requests that are of mode A."}, t.mode_a_ratio,
        RealRange{.min = 0, .max = 1});
}

void describe(Describer& d, ConversationReplay& t) {
  field(d, {"seed", "Seed of the conversations."}, t.seed);
  field(d, {"num_conversations", "Slots; each runs one conversation at a time."},
        t.num_conversations, IntRange{1, 10'000'000});
  field(d, {"shared_system_prompt_len", "Tokens all conversations start with."},
        t.shared_system_prompt_len, IntRange{0, 100'000'000});
  field(d, {"dynamic_system_prompt_len", "Tokens of each conversation's own system prompt."},
        t.dynamic_system_prompt_len);
  field(d, {"turns_per_conversation", "Turns (absent: 10)."}, t.turns_per_conversation);
  field(d, {"input_tokens_per_turn", "Tokens a turn adds (absent: 512)."}, t.input_tokens_per_turn);
  field(d, {"output_tokens_per_turn", "Tokens a turn asks for (absent: 256)."},
        t.output_tokens_per_turn);
  field(d, {"tool_call_latency_sec", "Pause after each answer, in seconds."},
        t.tool_call_latency_sec);
  field(d, {"max_model_len", "Longest context; the oldest turns are dropped (absent: 225,000)."},
        t.max_model_len, kCount);
}

void describe(Describer& d, TraceFile& t) {
  field(d, {"file", "Path of the trace.", true}, t.file);
  field(d, {"format", "Its format."}, t.format);
}

void describe(Describer& d, Data& t) {
  field(d, {"type", "What prompts are made of."}, t.type);
  field(d, {"path", "File of a data set."}, t.path);
  field(d, no_effect("corpus_file_path", "Text synthetic data is cut from.", kTokenCounts),
        t.corpus_file_path);
  field(d, {"input_distribution", "Prompt tokens (random, synthetic)."}, t.input_distribution);
  field(d, {"output_distribution", "Answer tokens (random, synthetic)."}, t.output_distribution);
  field(d, {"shared_prefix", "Settings of shared_prefix data."}, t.shared_prefix);
  field(d, not_modelled("multimodal", "Images and the like.", kTextOnly), t.multimodal);
  field(d, {"trace", "Trace that gives the lengths."}, t.trace);
  field(d, {"otel_trace_replay", "Settings of otel_trace_replay data."}, t.otel_trace_replay);
  field(d, {"weka_trace_replay", "Settings of weka_trace_replay data."}, t.weka_trace_replay);
  field(d, {"conversation_replay", "Settings of conversation_replay data."}, t.conversation_replay);
  field(d, not_modelled("visionarena", "Settings of VisionArena data.", kTextOnly), t.visionarena);
  field(d, {"bimodal", "Settings of bimodal data."}, t.bimodal);
  field(d, not_modelled("sharegpt4video", "Settings of ShareGPT4Video data.", kTextOnly),
        t.sharegpt4video);
  field(d, {"synthetic_agentic", "Settings of synthetic agents."}, t.synthetic_agentic);
  field(d,
        no_effect("use_chat_template", "Input lengths count the chat template.",
                  "no template is added here, so lengths are what the file says"),
        t.use_chat_template);
}

void describe(Describer& d, Stage& t) {
  field(d, {"rate", "Requests per second."}, t.rate, kPositive);
  field(d, {"duration", "Seconds; of session replay: when the stage sends no more."}, t.duration,
        IntRange{1, 100'000'000});
  field(d, {"num_requests", "Requests of a concurrent stage."}, t.num_requests, kCount);
  field(d, {"concurrency_level", "Requests in flight in a concurrent stage."}, t.concurrency_level,
        kCount);
  field(d, {"concurrent_sessions", "Sessions at once; 0: all (session replay)."},
        t.concurrent_sessions, IntRange{0, 1'000'000'000});
  field(d, {"session_rate", "Session starts per second (session replay)."}, t.session_rate,
        kPositive);
  field(d, {"num_sessions", "Sessions of the stage; absent: all that are left (session replay)."},
        t.num_sessions, kCount);
  field(d, {"timeout", "Seconds after which the stage is cut (session replay)."}, t.timeout,
        kPositive);
}

void describe(Describer& d, Sweep& t) {
  field(d, {"type", "Spacing of the rates: dense at the saturation, or linear."}, t.type);
  field(d, {"num_requests", "Requests of the probe, sent in 5 seconds."}, t.num_requests,
        IntRange{1, 1'000'000});
  field(d, {"timeout", "Seconds the probe may last."}, t.timeout, kPositive);
  field(d, {"num_stages", "Stages to make, from 1 request/s to the saturation."}, t.num_stages,
        IntRange{1, 100'000});
  field(d, {"stage_duration", "Seconds per stage."}, t.stage_duration, kCount);
  field(d, {"saturation_percentile", "Percentile of the drain rates that counts as saturation."},
        t.saturation_percentile, RealRange{.min = 0, .max = 100});
}

void describe(Describer& d, Load& t) {
  field(d, {"type", "Arrival process."}, t.type);
  field(d, {"interval", "Seconds slept after every stage."}, t.interval, kSeconds);
  field(d, {"stages", "Stages, run one after another."}, t.stages);
  field(d, {"sweep", "Finds the rates of its stages itself, by a probe."}, t.sweep);
  field(d, {"trace", "Trace that gives the arrivals."}, t.trace);
  field(d, {"num_workers", "Worker processes; absent: CPUs of the client; 0: no permits."},
        t.num_workers, IntRange{0, 1'000'000});
  field(d, {"worker_max_concurrency", "Requests in flight per worker."}, t.worker_max_concurrency,
        kCount);
  field(d,
        approximated("worker_max_tcp_connections", "TCP connections per worker.",
                     "only worker_max_concurrency limits the requests in flight"),
        t.worker_max_tcp_connections, kCount);
  field(d,
        not_modelled("circuit_breakers", "Names of the breakers to use.",
                     "no stage is cut short here"),
        t.circuit_breakers);
  field(d, {"request_timeout", "Seconds after which the client gives up (absent: 300)."},
        t.request_timeout, kPositive);
  field(d,
        not_modelled("request_retries", "Extra attempts when no connection was made.",
                     "a request whose connection `events` break fails at once"),
        t.request_retries, IntRange{0, 1000});
  field(d,
        no_effect("request_retry_backoff_sec", "Seconds before the first retry.",
                  "request_retries are not simulated"),
        t.request_retry_backoff_sec, kSeconds);
  field(d, {"stage_teardown_grace_seconds", "Seconds a cut stage may take to end."},
        t.stage_teardown_grace_seconds, kSeconds);
  field(d, {"lora_traffic_split", "Shares of LoRA adapters."}, t.lora_traffic_split);
  field(d, {"base_seed", "Seed of the tool (absent: the clock)."}, t.base_seed);
}

void describe(Describer& d, Server& t) {
  field(d, no_effect("type", "Kind of server.", "the servers are the scenario's"), t.type);
  field(d, {"model_name", "Model asked for."}, t.model_name);
  field(d,
        no_effect("name", "Older name of model_name.",
                  "a request names no model unless adapters share the load"),
        t.name);
  field(d, no_effect("base_url", "Address.", kOwnClient), t.base_url);
  field(d, {"ignore_eos", "Answers run to their maximum."}, t.ignore_eos);
  field(d, no_effect("api_key", "Credential.", kOwnClient), t.api_key);
  field(d, no_effect("cert_path", "TLS certificate.", kOwnClient), t.cert_path);
  field(d, no_effect("key_path", "TLS key.", kOwnClient), t.key_path);
}

void describe(Describer& d, Tokenizer& t) {
  field(d, no_effect("pretrained_model_name_or_path", "Tokenizer.", kTokenCounts),
        t.pretrained_model_name_or_path);
  field(d, no_effect("trust_remote_code", "Run the tokenizer's own code.", kTokenCounts),
        t.trust_remote_code);
  field(d, no_effect("token", "Credential.", kTokenCounts), t.token);
  field(d, no_effect("load_timeout", "Seconds to load it.", kTokenCounts), t.load_timeout,
        kSeconds);
}

void describe(Describer& d, PrometheusMetrics& t) {
  field(d, no_effect("scrape_interval", "Seconds between scrapes.", kNoScraping), t.scrape_interval,
        kSeconds);
  field(d, no_effect("url", "Address.", kNoScraping), t.url);
  field(d, no_effect("filters", "Labels to filter by.", kNoScraping), t.filters);
  field(d, no_effect("google_managed", "Google's service.", kNoScraping), t.google_managed);
  field(d, no_effect("bearer_token", "Credential.", kNoScraping), t.bearer_token);
  field(d, no_effect("verify_ssl", "Check certificates.", kNoScraping), t.verify_ssl);
  field(d, no_effect("headers", "HTTP headers.", kNoScraping), t.headers);
}

void describe(Describer& d, Metrics& t) {
  field(d, no_effect("type", "prometheus or default.", kNoScraping), t.type);
  field(d, {"prometheus", "Settings of the scraper."}, t.prometheus);
}

void describe(Describer& d, RequestLifecycle& t) {
  field(d, no_effect("summary", "Write the summary report.", kOwnReports), t.summary);
  field(d, no_effect("per_stage", "Write one report per stage.", kOwnReports), t.per_stage);
  field(d, no_effect("per_request", "Write one record per request.", kOwnReports), t.per_request);
  field(d, no_effect("per_adapter", "Write one report per adapter.", kOwnReports), t.per_adapter);
  field(d, no_effect("per_adapter_stage", "Write one report per adapter and stage.", kOwnReports),
        t.per_adapter_stage);
  field(d, {"percentiles", "Percentiles to report."}, t.percentiles,
        RealRange{.min = 0, .max = 100});
  field(d,
        no_effect("use_server_output_tokens", "Count the server's tokens, not re-tokenised text.",
                  kTokenCounts),
        t.use_server_output_tokens);
  field(d, no_effect("max_error_messages", "Error texts kept per label.", kOwnReports),
        t.max_error_messages, IntRange{0, 1'000'000});
  field(d, no_effect("metrics_only", "Drop the texts from per-request records.", kOwnReports),
        t.metrics_only);
  field(d, no_effect("per_request_fields", "Parts of per-request records.", kOwnReports),
        t.per_request_fields);
}

void describe(Describer& d, PrometheusReport& t) {
  field(d, no_effect("summary", "Write the summary report.", kOwnReports), t.summary);
  field(d, no_effect("per_stage", "Write one report per stage.", kOwnReports), t.per_stage);
}

void describe(Describer& d, SessionLifecycle& t) {
  field(d, no_effect("summary", "Write the summary report.", kOwnReports), t.summary);
  field(d, no_effect("per_stage", "Write one report per stage.", kOwnReports), t.per_stage);
  field(d, no_effect("per_session", "Write one record per session.", kOwnReports), t.per_session);
}

void describe(Describer& d, Goodput& t) {
  field(d, {"constraints", "A request is good when it meets all."}, t.constraints);
}

void describe(Describer& d, Report& t) {
  field(d, {"request_lifecycle", "Reports about requests."}, t.request_lifecycle);
  field(d, {"prometheus", "Reports from server metrics."}, t.prometheus);
  field(d, {"session_lifecycle", "Reports about sessions."}, t.session_lifecycle);
  field(d, {"goodput", "Service-level goals."}, t.goodput);
}

void describe(Describer& d, Config& t) {
  field(d, {"api", "How the tool talks to the server."}, t.api);
  field(d, {"data", "What it sends."}, t.data);
  field(d, {"load", "When it sends."}, t.load);
  field(d, {"server", "Whom it sends to."}, t.server);
  field(d, {"tokenizer", "Tokenizer of the client."}, t.tokenizer);
  field(d, {"report", "What it reports."}, t.report);
  field(d, {"metrics", "Where it reads server metrics."}, t.metrics);
  field(d, no_effect("storage", "Where it writes.", kOwnReports), t.storage);
  field(d,
        no_effect("circuit_breakers", "Definitions of circuit breakers.",
                  "they count where load.circuit_breakers names them"),
        t.circuit_breakers);
  field(d,
        no_effect("observability", "The tool's own metrics.",
                  "it is about the metrics of the tool itself"),
        t.observability);
}

std::span<const KeyDrift> key_drifts() {
  static constexpr std::array<KeyDrift, 15> kDrifts = {{
      {"data.shared_prefix.num_unique_system_prompts", "data.shared_prefix.num_groups", true},
      {"data.shared_prefix.num_users_per_system_prompt", "data.shared_prefix.num_prompts_per_group",
       true},
      {"load.auto_stage.gen_type", "load.auto_stage.type"},
      {"load.auto_stage", "load.sweep"},
      // A theme may be a plain weight.
      {"data.synthetic_agentic.theme_mix.research_rag",
       "data.synthetic_agentic.theme_mix.research_rag.weight", true},
      {"data.synthetic_agentic.theme_mix.code_change_task",
       "data.synthetic_agentic.theme_mix.code_change_task.weight", true},
      {"data.*.std", ""},
      {"data.*.*.std", ""},
      {"tokenizer.type", "data.type"},
      {"tokenizer.shared_prefix", "data.shared_prefix"},
      {"tokenizer.input_distribution", "data.input_distribution"},
      {"tokenizer.output_distribution", "data.output_distribution"},
      // Older files have a plain boolean there.
      {"report.prometheus", "report.prometheus.summary"},
      {"report.request_lifecycle.per_worker", ""},
      {"report.goodput.percentile", ""},
  }};
  return kDrifts;
}

LoadTraits traits_of(const Workload& workload) {
  LoadTraits traits;
  if (!workload.config) return traits;
  const Config& c = *workload.config;
  traits.report_name = "inference-perf";
  traits.streams = c.api.streaming;
  traits.is_chat = c.api.type == ApiType::kChat || c.api.type == ApiType::kAnthropicMessages;
  traits.random_text = c.data.type == DataType::kRandom || c.data.type == DataType::kSharedPrefix;
  traits.finds_rates = c.load.sweep.has_value();
  traits.rate_is_count = c.load.type == LoadType::kConcurrent;
  traits.own_times = own_times_of(c);
  traits.interval_s = c.load.interval;
  traits.percentiles = c.report.request_lifecycle.percentiles;
  traits.goodput = c.report.goodput.constraints;
  traits.headers = c.api.headers;
  traits.headers_key = key_of("api.headers");
  if (c.load.lora_traffic_split) traits.adapters.shares = *c.load.lora_traffic_split;
  traits.adapters.base_name = c.server.model_name;
  traits.adapters.key = key_of("load.lora_traffic_split");
  return traits;
}

std::vector<LoadFile> files_of(const Workload& workload) {
  std::vector<LoadFile> out;
  if (!workload.config) return out;
  const Config& c = *workload.config;
  const auto add_trace = [&out](const std::optional<TraceFile>& trace, const std::string& key) {
    if (trace)
      out.push_back({.kind = LoadFile::Kind::kTrace,
                     .key = key + ".file",
                     .path = trace->file,
                     .format = trace->format,
                     .format_key = key + ".format"});
  };
  add_trace(c.load.trace, key_of("load.trace"));
  add_trace(c.data.trace, key_of("data.trace"));
  if (c.data.path)
    out.push_back({.kind = c.data.type == DataType::kShareGpt ? LoadFile::Kind::kShareGpt
                                                              : LoadFile::Kind::kUnread,
                   .key = key_of("data.path"),
                   .path = *c.data.path});
  add_sessions(c, out);
  return out;
}

std::string scale_rates(Workload& workload, double by) {
  if (!workload.config) return {};
  Load& load = workload.config->load;
  if (load.sweep) return "load.sweep finds its rates itself";
  if (load.type == LoadType::kTraceReplay)
    return "load type trace_replay has the times of its file";
  bool scaled = false;
  for (Stage& stage : load.stages) {
    const bool requests = scale(stage.rate, by);
    const bool sessions = scale(stage.session_rate, by);
    scaled = scaled || requests || sessions;
  }
  return scaled || load.stages.empty() ? "" : "its stages have a concurrency, and no rate";
}

std::string hold_rate(Workload& workload, double rate, double seconds) {
  if (!workload.config) return {};
  Load& load = workload.config->load;
  switch (load.type) {
    case LoadType::kTraceReplay:
      return "load type trace_replay has the times of its file";
    case LoadType::kTraceSessionReplay:
      return "load type trace_session_replay starts sessions, whose requests follow each other";
    case LoadType::kConcurrent:
      return "load type concurrent is a closed loop: each client waits for its answers";
    case LoadType::kConstant:
    case LoadType::kPoisson:
      break;
  }
  load.sweep.reset();
  load.stages = {{.rate = rate, .duration = std::max<std::int64_t>(1, std::llround(seconds))}};
  return {};
}

std::unique_ptr<LoadGenerator> make_load_generator(const Workload& workload,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics) {
  ROUTESIM_CHECK(workload.config.has_value(), "an inference-perf document that was not read");
  return make_load_generator(*workload.config, options, inputs, diagnostics);
}

}  // namespace routesim::workloads::inference_perf
