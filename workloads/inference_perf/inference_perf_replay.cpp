// inference-perf's replay of recorded sessions: settings, what can be wrong with them, the client.
#include "workloads/inference_perf/inference_perf_replay.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/field_fates.h"
#include "workloads/inference_perf/inference_perf_data.h"
#include "workloads/sessions/python_random.h"
#include "workloads/sessions/record_filter.h"
#include "workloads/sessions/replay_client.h"

namespace routesim::workloads::inference_perf {
namespace {

const IntRange kCount{1, 1'000'000'000};

constexpr std::string_view kOneModel = "all requests go to the scenario's servers";
constexpr std::string_view kReadOnly = "the tool reads it, no more";

void describe_sources(Describer& d, SessionReplay& t) {
  field(d, {"trace_directory", "Folder whose *.json are replayed."}, t.trace_directory);
  field(d,
        {"trace_files", "Files to replay; *.jsonl hold a record per line; * and ? are any text."},
        t.trace_files);
  field(d, {"hf_dataset_path", "Data set of Hugging Face; name its download as trace_files."},
        t.hf_dataset_path);
  field(d, {"filter", "Python lambda that selects records; comparisons with constants only."},
        t.filter);
}

std::string stage_key(std::size_t i, const char* key) {
  return "load.stages[" + std::to_string(i) + "]" + (*key == '\0' ? "" : ".") + key;
}

void check_source(const SessionReplay& r, const std::string& path, Diagnostics& out) {
  const bool files = !r.trace_files.empty();
  if (r.trace_directory && files)
    out.error({}, path + "trace_files", "trace_directory is set, too", "keep one of the two");
  else if (!r.hf_dataset_path.empty() && !files && !r.trace_directory)
    out.error({}, path + "hf_dataset_path", "a data set is not downloaded by a simulation",
              "download its files and name them: --set workload.inference_perf." + path +
                  "trace_files=[FILE]");
  else if (!files && !r.trace_directory)
    out.error({}, path + "trace_files", "is missing: there is nothing to replay",
              "give trace_files or trace_directory");
  std::string problem;
  if (r.filter && !RecordFilter::parse(*r.filter, problem))
    out.error({}, path + "filter", problem,
              "comparisons of a record's members with constants are: lambda x: x['max_tokens'] < "
              "131072 and x['benchmark'] in ['a', 'b']");
}

void check_models(const SessionReplay& r, const std::string& path, Diagnostics& out) {
  if (r.use_static_model && r.static_model_name.empty())
    out.error({}, path + "static_model_name", "is missing: use_static_model asks for it");
  if (!r.use_static_model && !r.static_model_name.empty() && r.model_mapping.empty())
    out.error({}, path + "static_model_name", "needs use_static_model, or a model_mapping");
}

void check_otel(const OtelTraceReplay& r, const std::string& path, Diagnostics& out) {
  const bool marked = r.inject_random_session_id || r.duplicate_sessions_target;
  if (r.disable_output_substitution && marked)
    out.error({}, path + "disable_output_substitution",
              std::string("excludes ") + (r.inject_random_session_id ? "inject_random_session_id"
                                                                     : "duplicate_sessions_target"),
              "either repeats real answers in later prompts");
}

void check_weka(const WekaTraceReplay& r, const std::string& path, Diagnostics& out) {
  const char* const hint = "for calls without pauses set max_wait_ms: 0";
  if (r.ignore_trace_delays)
    out.warning({}, path + "ignore_trace_delays", "has no effect: the tool reads it, no more",
                hint);
  if (r.use_think_time_only)
    out.warning({}, path + "use_think_time_only", "has no effect: the tool reads it, no more",
                hint);
}

std::vector<ReplaySlot> slots_of(const SessionReplay& replay, std::size_t sessions,
                                 std::optional<std::int64_t> seed) {
  std::vector<ReplaySlot> slots(sessions);
  for (std::size_t i = 0; i < sessions; ++i) slots[i].session = static_cast<std::uint32_t>(i);
  if (seed) PythonRandom(*seed).shuffle(slots);
  const auto target = static_cast<std::size_t>(replay.duplicate_sessions_target.value_or(0));
  for (std::size_t i = 0; slots.size() < target; ++i)
    slots.push_back({.session = slots[i].session, .duplicate = true});
  return slots;
}

ReplayStage make_stage(const Config& c, std::size_t i, bool reported) {
  const Stage& s = c.load.stages[i];
  ReplayStage stage;
  stage.info.name = std::to_string(i);
  stage.info.reported = reported;
  stage.info.concurrency = *s.concurrent_sessions;
  stage.concurrent = *s.concurrent_sessions;
  stage.session_rate = s.session_rate;
  if (s.duration) stage.limit = Duration::seconds(*s.duration);
  if (s.timeout) stage.limit = std::min(stage.limit, Duration::from_seconds(*s.timeout));
  stage.grace = Duration::from_seconds(c.load.stage_teardown_grace_seconds);
  return stage;
}

}  // namespace

void describe_replay(Describer& d, SessionReplay& t, bool recorded) {
  if (recorded) describe_sources(d, t);
  field(d, no_effect("use_static_model", "One model for all requests.", kOneModel),
        t.use_static_model);
  field(d, no_effect("static_model_name", "Its name.", kOneModel), t.static_model_name);
  field(d, no_effect("model_mapping", "Names of models.", kOneModel), t.model_mapping);
  field(d, no_effect("default_max_tokens", "Tokens of an answer without a limit.", kReadOnly),
        t.default_max_tokens, kCount);
  field(d, {"override_tool_call_max_tokens", "Answers that call a tool may take 4,096 tokens."},
        t.override_tool_call_max_tokens);
  field(d,
        no_effect("tool_choice_mode", "Which tools an answer may call.",
                  "answers have the length that was recorded"),
        t.tool_choice_mode);
  field(d,
        {"inject_random_session_id",
         "Each session puts a text of its own before its recorded messages."},
        t.inject_random_session_id);
  field(d, {"duplicate_sessions_target", "Sessions to reach by repeating those there are."},
        t.duplicate_sessions_target, IntRange{1, 10'000'000});
  field(d, {"max_wait_ms", "Longest pause after a call's predecessors, in milliseconds."},
        t.max_wait_ms, IntRange{0, 1'000'000'000'000});
  field(d,
        {"predecessor_wait_timeout_sec",
         "Seconds a call waits for its predecessors before it fails; 0: for ever."},
        t.predecessor_wait_timeout_sec, RealRange{.min = 0, .max = 1e9});
  if (recorded) {
    field(d,
          {"include_errors", "Replay calls that failed when they were recorded (OpenTelemetry)."},
          t.include_errors);
    field(d, {"skip_invalid_files", "Leave out what cannot be read, with a warning."},
          t.skip_invalid_files);
  }
  field(d,
        no_effect("bad_tool_call_handling", "What to do about broken tool calls.",
                  "answers are counted in tokens here, not parsed"),
        t.bad_tool_call_handling);
}

void describe(Describer& d, OtelTraceReplay& t) {
  describe_replay(d, t, /*recorded=*/true);
  field(d, {"disable_output_substitution", "Later prompts repeat recorded answers, not real ones."},
        t.disable_output_substitution);
  field(d,
        no_effect("attribute_to_header_map", "HTTP headers.",
                  "no policy of a balancer reads headers here"),
        t.attribute_to_header_map);
  field(d,
        no_effect("attribute_to_label_map", "Labels of the tool's metrics.",
                  "it is about the metrics of the tool itself"),
        t.attribute_to_label_map);
}

void describe(Describer& d, WekaTraceReplay& t) {
  describe_replay(d, t, /*recorded=*/true);
  field(d,
        {"trace_idle_gap_cap_seconds",
         "Longest gap between starts of a session's calls, in seconds; 0: no limit."},
        t.trace_idle_gap_cap_seconds, RealRange{.min = -1e9, .max = 1e9});
  field(d, no_effect("ignore_trace_delays", "Leave recorded pauses out.", kReadOnly),
        t.ignore_trace_delays);
  field(d, no_effect("use_think_time_only", "Keep pauses of people only.", kReadOnly),
        t.use_think_time_only);
  field(d, {"default_block_size", "Tokens of a block where a trace says 0."}, t.default_block_size,
        IntRange{1, 1'000'000});
  field(d, {"num_dataset_entries", "Most records to take of a file of lines."},
        t.num_dataset_entries, kCount);
  field(d,
        no_effect("datagen_workers", "Processes that prepare sessions.",
                  "sessions cost no time to prepare here"),
        t.datagen_workers, kCount);
}

const SessionReplay* session_replay(const Config& c) {
  if (c.data.type == DataType::kOtelTraceReplay && c.data.otel_trace_replay)
    return &*c.data.otel_trace_replay;
  if (c.data.type == DataType::kWekaTraceReplay && c.data.weka_trace_replay)
    return &*c.data.weka_trace_replay;
  if (c.data.type == DataType::kSyntheticAgentic && c.data.synthetic_agentic)
    return &*c.data.synthetic_agentic;
  return nullptr;
}

void check_session_stage(const Stage& s, std::size_t i, Diagnostics& out) {
  const auto refuse = [&](bool given, const char* key) {
    if (given) out.error({}, stage_key(i, key), "has no place in load type trace_session_replay");
  };
  refuse(s.rate.has_value(), "rate");
  refuse(s.num_requests.has_value(), "num_requests");
  refuse(s.concurrency_level.has_value(), "concurrency_level");
  if (!s.concurrent_sessions)
    out.error({}, stage_key(i, "concurrent_sessions"), "is missing");
  else if (s.session_rate && *s.concurrent_sessions > 0 &&
           *s.session_rate > static_cast<double>(*s.concurrent_sessions))
    out.error({}, stage_key(i, "session_rate"), "exceeds concurrent_sessions",
              "the tool does not start sessions at a higher rate than there may be at once");
}

void check_replay_data(const Config& c, Diagnostics& out) {
  const std::string key = "data." + std::string(enum_name(c.data.type));
  const SessionReplay* replay = session_replay(c);
  if (replay == nullptr) {
    out.error({}, key, "is missing: data.type asks for it");
    return;
  }
  if (c.data.type == DataType::kSyntheticAgentic)
    check_agents(*c.data.synthetic_agentic, out);
  else
    check_source(*replay, key + ".", out);
  check_models(*replay, key + ".", out);
  if (c.data.type == DataType::kOtelTraceReplay)
    check_otel(*c.data.otel_trace_replay, key + ".", out);
  else if (c.data.type == DataType::kWekaTraceReplay)
    check_weka(*c.data.weka_trace_replay, key + ".", out);
  if (c.api.type == ApiType::kCompletion)
    out.error({}, "api.type", "sessions are replayed over a chat API (got completion)",
              "set api: {type: chat}");
  if (c.load.type != LoadType::kTraceSessionReplay)
    out.error({}, "load.type",
              "sessions need load type trace_session_replay (got " +
                  std::string(enum_name(c.load.type)) + ")");
}

std::unique_ptr<LoadGenerator> make_replay_client(const Config& c, const WorkloadOptions& options,
                                                  const LoadInputs& inputs, Diagnostics& out) {
  const SessionReplay& replay = *session_replay(c);
  const std::string key = "data." + std::string(enum_name(c.data.type));
  const bool synthetic = c.data.type == DataType::kSyntheticAgentic;
  const std::shared_ptr<const ReplayCorpus> corpus =
      synthetic ? make_agents(*c.data.synthetic_agentic, options, out) : inputs.sessions;
  if (synthetic && corpus == nullptr) return nullptr;
  if (corpus == nullptr || corpus->sessions.empty()) {
    out.error(
        {}, key,
        synthetic ? "makes no session: no turn was drawn" : "no session to replay is in the files");
    return nullptr;
  }
  const std::vector<ReplaySession>& sessions = corpus->sessions;
  std::vector<ReplaySlot> slots = slots_of(
      replay, sessions.size(),
      synthetic
          ? std::nullopt
          : std::optional(c.load.base_seed.value_or(static_cast<std::int64_t>(options.seed))));
  ReplayClientOptions client;
  client.permits.assign(static_cast<std::size_t>(std::max<std::int64_t>(
                            c.load.num_workers.value_or(options.default_workers), 1)),
                        c.load.worker_max_concurrency);
  client.request_timeout = request_timeout(c);
  client.interval = Duration::from_seconds(c.load.interval);
  client.predecessor_wait = Duration::from_seconds(replay.predecessor_wait_timeout_sec);
  client.mark_sessions = replay.inject_random_session_id;
  client.ignore_eos = c.server.ignore_eos;
  const std::string more = key + (synthetic ? ".num_sessions" : ".duplicate_sessions_target");
  std::vector<ReplayStage> stages;
  std::size_t next = 0;
  for (std::size_t i = 0; i < c.load.stages.size(); ++i) {
    ReplayStage stage = make_stage(c, i, i >= static_cast<std::size_t>(options.warmup_stages));
    const auto left = static_cast<std::int64_t>(slots.size() - next);
    const std::int64_t asked = c.load.stages[i].num_sessions.value_or(left);
    stage.sessions = std::min(asked, left);
    if (left == 0)
      out.warning({}, stage_key(i, ""), "no session is left for it: the tool skips it",
                  "earlier stages took all: set their num_sessions, or " + more);
    else if (asked > left)
      out.warning({}, stage_key(i, "num_sessions"),
                  "only " + std::to_string(left) + " left (got " + std::to_string(asked) + ")",
                  "set " + more);
    for (std::int64_t s = 0; s < stage.sessions; ++s)
      stage.info.requests +=
          static_cast<std::int64_t>(sessions[slots[next++].session].calls.size());
    if (stage.limit != Duration::max()) stage.info.requests = -1;
    stages.push_back(std::move(stage));
  }
  return std::make_unique<ReplayClient>(corpus, std::move(slots), std::move(stages), client,
                                        options);
}

}  // namespace routesim::workloads::inference_perf
