// kubernetes-sigs/inference-perf: its config file, key by key, and the load it makes.
//
// The structs mirror the tool's YAML document, so that a file is accepted verbatim. Keys that a
// simulation has no use for (storage, tokenizer, server address …) are read and kept.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "workloads/adapter_traffic.h"
#include "workloads/conversations/conversation_data.h"
#include "workloads/distributions.h"
#include "workloads/load_generator.h"
#include "workloads/options.h"
#include "workloads/sessions/replay_settings.h"
#include "workloads/traces/trace_readers.h"

namespace routesim::workloads::inference_perf {

enum class ApiType { kCompletion, kChat, kAnthropicMessages, kEmbeddings, kRerank };

struct Api {
  ApiType type = ApiType::kCompletion;
  bool streaming = false;
  Document headers{};               ///< Free-form map.
  Document response_format{};       ///< Free-form.
  Document embeddings{}, rerank{};  ///< Settings of these endpoints, which are not simulated.
  std::optional<std::string> slo_unit{}, slo_tpot_header{}, slo_ttft_header{};
  std::optional<std::string> session_id_header_key{}, session_token_header_key{};
};

enum class DataType {
  kMock,
  kShareGpt,
  kSynthetic,
  kRandom,
  kSharedPrefix,
  kCnnDailymail,
  kInfinityInstruct,
  kBillsumConversations,
  kOtelTraceReplay,
  kWekaTraceReplay,
  kConversationReplay,
  kVisionArena,
  kBimodal,
  kShareGpt4Video,
  kSyntheticAgentic,
  kDatasetTrace,
};

struct SharedPrefix {
  std::int64_t num_groups = 10;             ///< Alias num_unique_system_prompts.
  std::int64_t num_prompts_per_group = 10;  ///< Alias num_users_per_system_prompt.
  Distribution system_prompt_len = Distribution::fixed(100);
  Distribution question_len = Distribution::fixed(50);
  Distribution output_len = Distribution::fixed(50);
  std::optional<std::int64_t> seed{};
  std::optional<Distribution> question_distribution{};  ///< Legacy form of question_len.
  std::optional<Distribution> output_distribution{};    ///< Legacy form of output_len.
  bool enable_multi_turn_chat = false;
  std::optional<std::int64_t> max_model_len{};  ///< Ceiling of a multi-turn context; not applied.
  Document num_tool_calls_per_turn{};           ///< A key of early 2026, drawn and never used.
  Document multimodal{};
};

/// Two kinds of requests, each with its own groups and lengths; no turns.
struct Bimodal {
  std::int64_t mode_a_system_prompt_len = 0, mode_b_system_prompt_len = 0;
  std::int64_t mode_a_groups = 1, mode_b_groups = 1;  ///< System prompts of the mode.
  Distribution mode_a_user_prompt_len = Distribution::fixed(10);
  Distribution mode_a_output_len = Distribution::fixed(10);
  Distribution mode_b_user_prompt_len = Distribution::fixed(1024);
  Distribution mode_b_output_len = Distribution::fixed(1024);
  double mode_a_ratio = 0.5;  ///< Share of the requests that are of mode A.
};

struct ConversationReplay {
  std::int64_t seed = 42;
  std::int64_t num_conversations = 200;
  std::int64_t shared_system_prompt_len = 8359;
  std::optional<Distribution> dynamic_system_prompt_len{};  ///< Absent: 0.
  std::optional<Distribution> turns_per_conversation{};     ///< Absent: 10.
  std::optional<Distribution> input_tokens_per_turn{};      ///< Absent: 512.
  std::optional<Distribution> output_tokens_per_turn{};     ///< Absent: 256.
  std::optional<Distribution> tool_call_latency_sec{};      ///< Absent: 0 s.
  std::optional<std::int64_t> max_model_len{};              ///< Absent: 225,000 tokens.
};

struct TraceFile {
  std::string file{};
  std::string format = "AzurePublicDataset";
};

struct Data {
  DataType type = DataType::kMock;
  std::optional<std::string> path{}, corpus_file_path{};
  std::optional<Distribution> input_distribution{}, output_distribution{};
  std::optional<SharedPrefix> shared_prefix{};
  std::optional<TraceFile> trace{};
  std::optional<ConversationReplay> conversation_replay{};
  Document multimodal{}, visionarena{};
  std::optional<OtelTraceReplay> otel_trace_replay{};
  std::optional<WekaTraceReplay> weka_trace_replay{};
  std::optional<Bimodal> bimodal{};
  std::optional<SyntheticAgentic> synthetic_agentic{};
  Document sharegpt4video{};
  bool use_chat_template = false;
};

enum class LoadType { kConstant, kPoisson, kTraceReplay, kConcurrent, kTraceSessionReplay };

struct Stage {
  std::optional<double> rate{};                     ///< Requests/s (> 0).
  std::optional<std::int64_t> duration{};           ///< Whole seconds (> 0).
  std::optional<std::int64_t> num_requests{};       ///< `concurrent` only.
  std::optional<std::int64_t> concurrency_level{};  ///< `concurrent` only.
  std::optional<std::int64_t>
      concurrent_sessions{};  ///< `trace_session_replay` only, like the next.
  std::optional<double> session_rate{};
  std::optional<std::int64_t> num_sessions{};
  std::optional<double> timeout{};
};

enum class SweepType { kGeometric, kLinear };

/// A probe finds the rate at which the servers drain a burst, and stages up to that rate follow.
struct Sweep {
  SweepType type = SweepType::kGeometric;  ///< Dense at the saturation, or evenly spaced.
  std::int64_t num_requests = 2000;        ///< Requests of the probe, sent in five seconds.
  double timeout = 60;                     ///< Seconds the probe may last.
  std::int64_t num_stages = 5;
  std::int64_t stage_duration = 180;
  double saturation_percentile = 95;
};

struct Load {
  LoadType type = LoadType::kConstant;
  double interval = 1;  ///< Seconds slept after every stage.
  std::vector<Stage> stages{};
  std::optional<Sweep> sweep{};
  std::optional<TraceFile> trace{};
  std::optional<std::int64_t> num_workers{};  ///< Absent: CPU count of the client. 0: one process.
  std::int64_t worker_max_concurrency = 100;
  std::int64_t worker_max_tcp_connections = 2500;
  std::vector<std::string> circuit_breakers{};
  std::optional<double> request_timeout{};  ///< Seconds; absent: the HTTP library's 300 s.
  std::int64_t request_retries = 0;
  double request_retry_backoff_sec = 0.5;
  double stage_teardown_grace_seconds = 120;
  std::optional<std::vector<LoraSplit>> lora_traffic_split{};
  std::optional<std::int64_t> base_seed{};
};

struct Server {
  std::string type = "vllm";
  std::optional<std::string> model_name{}, name{}, base_url{}, api_key{}, cert_path{}, key_path{};
  bool ignore_eos = true;
};

struct Tokenizer {
  std::optional<std::string> pretrained_model_name_or_path{}, token{};
  bool trust_remote_code = false;
  std::optional<double> load_timeout{};
};

struct PrometheusMetrics {
  double scrape_interval = 15;
  std::optional<std::string> url{};
  std::vector<std::string> filters{};
  bool google_managed = false, verify_ssl = true;
  std::optional<std::string> bearer_token{};
  Document headers{};
};

struct Metrics {
  std::string type = "default";
  std::optional<PrometheusMetrics> prometheus{};
};

struct RequestLifecycle {
  bool summary = true, per_stage = true, per_request = false;
  bool per_adapter = true, per_adapter_stage = false;
  std::vector<double> percentiles = LoadTraits{}.percentiles;
  bool use_server_output_tokens = false, metrics_only = false;
  std::int64_t max_error_messages = 100;
  Document per_request_fields{};
};

struct PrometheusReport {
  bool summary = true, per_stage = false;
};

struct SessionLifecycle {
  bool summary = true, per_stage = true, per_session = false;
};

struct Goodput {
  GoodputConstraints constraints{};
};

struct Report {
  RequestLifecycle request_lifecycle{};
  PrometheusReport prometheus{};
  SessionLifecycle session_lifecycle{};
  Goodput goodput{};
};

/// The whole document.
struct Config {
  Api api{};
  Data data{};
  Load load{};
  Server server{};
  std::optional<Tokenizer> tokenizer{};
  Report report{};
  std::optional<Metrics> metrics{};
  Document storage{};           ///< Output of the real tool; no use here.
  Document circuit_breakers{};  ///< Definitions; see make_load_generator.
  Document observability{};     ///< The real tool's own metrics; no use here.
};

void describe(Describer& d, Config& t);

/// A key of files in circulation that the present schema does not have. The reader moves or renames
/// the left to the right before it reads: paths are dotted, `*` stands for any one key.
struct KeyDrift {
  std::string_view from;      ///< The path found.
  std::string_view to;        ///< The path described; empty: the key is dropped.
  bool both_current = false;  ///< The tool itself takes either spelling: nothing to warn about.
};
std::span<const KeyDrift> key_drifts();

/// The tool in a scenario: the document as it is given, and what its reader found in it.
struct Workload {
  Document document{};
  std::optional<Config> config{};
};

LoadTraits traits_of(const Workload& workload);
std::vector<LoadFile> files_of(const Workload& workload);
std::string scale_rates(Workload& workload, double by);
std::string hold_rate(Workload& workload, double rate, double seconds);

/// The load of a document that has been read.
std::unique_ptr<LoadGenerator> make_load_generator(const Workload& workload,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics);

/// The settings of the sessions, recorded or made, that data.type asks for; null when it asks for
/// none, or they are missing.
const SessionReplay* session_replay(const Config& config);

/// The client's request timeout: load.request_timeout or 300 s.
Duration request_timeout(const Config& config);

/// Requests each stage will send: int(rate * duration), num_requests, or -1 when a trace or a sweep
/// decides.
std::vector<std::int64_t> requests_per_stage(const Config& config);

/// Builds the load. Takes from `inputs`: the trace (data.trace or load.trace), the conversations
/// (data.path of shareGPT data) and the recorded sessions. Null when `diagnostics` received an
/// error. What the tool does but a simulation cannot (data sets that are not distributable) is an
/// error; what does not change the load (circuit breakers that are defined, retries) is a warning.
/// A sweep's stages follow its probe, stage 0.
std::unique_ptr<LoadGenerator> make_load_generator(const Config& config,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics);

}  // namespace routesim::workloads::inference_perf

template <>
struct routesim::EnumNames<routesim::workloads::inference_perf::ApiType> {
  static constexpr std::array<std::string_view, 5> value = {
      "completion", "chat", "anthropic_messages", "embeddings", "rerank"};
};
template <>
struct routesim::EnumNames<routesim::workloads::inference_perf::DataType> {
  static constexpr std::array<std::string_view, 16> value = {"mock",
                                                             "shareGPT",
                                                             "synthetic",
                                                             "random",
                                                             "shared_prefix",
                                                             "cnn_dailymail",
                                                             "infinity_instruct",
                                                             "billsum_conversations",
                                                             "otel_trace_replay",
                                                             "weka_trace_replay",
                                                             "conversation_replay",
                                                             "visionarena",
                                                             "bimodal",
                                                             "sharegpt4video",
                                                             "synthetic_agentic",
                                                             "dataset_trace"};
};
template <>
struct routesim::EnumNames<routesim::workloads::inference_perf::SweepType> {
  static constexpr std::array<std::string_view, 2> value = {"geometric", "linear"};
};
template <>
struct routesim::EnumNames<routesim::workloads::inference_perf::LoadType> {
  static constexpr std::array<std::string_view, 5> value = {"constant", "poisson", "trace_replay",
                                                            "concurrent", "trace_session_replay"};
};

template <>
struct routesim::workloads::LoadKey<routesim::workloads::inference_perf::Workload> {
  static constexpr Field value = {
      "inference_perf", "An inference-perf config, verbatim: a path, or the document in place."};
};
