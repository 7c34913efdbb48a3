// inference-perf's replay of sessions, recorded or synthetic: its stages and its client.
#include <algorithm>
#include <string>
#include <utility>

#include "workloads/inference_perf/inference_perf_data.h"
#include "workloads/sessions/python_random.h"
#include "workloads/sessions/replay_client.h"
#include "workloads/sessions/synthetic_agents.h"

namespace routesim::workloads::inference_perf {
namespace {

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

ReplayStage session_stage(const Config& c, std::size_t i, bool reported) {
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
    if (given) out.error({}, stage_path(i, key), "has no place in load type trace_session_replay");
  };
  refuse(s.rate.has_value(), "rate");
  refuse(s.num_requests.has_value(), "num_requests");
  refuse(s.concurrency_level.has_value(), "concurrency_level");
  if (!s.concurrent_sessions)
    out.error({}, stage_path(i, "concurrent_sessions"), "is missing");
  else if (s.session_rate && *s.concurrent_sessions > 0 &&
           *s.session_rate > static_cast<double>(*s.concurrent_sessions))
    out.error({}, stage_path(i, "session_rate"), "exceeds concurrent_sessions",
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
    check(*c.data.synthetic_agentic, key + ".", out);
  else if (c.data.type == DataType::kOtelTraceReplay)
    check(*c.data.otel_trace_replay, key + ".", out);
  else
    check(*c.data.weka_trace_replay, key + ".", out);
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
  const std::shared_ptr<const Sessions> sessions =
      synthetic ? synthetic_sessions(*c.data.synthetic_agentic, options.seed, key + ".", out)
                : inputs.sessions;
  if (synthetic && sessions == nullptr) return nullptr;
  if (sessions == nullptr || sessions->empty()) {
    out.error(
        {}, key,
        synthetic ? "makes no session: no turn was drawn" : "no session to replay is in the files");
    return nullptr;
  }
  std::vector<ReplaySlot> slots = slots_of(
      replay, sessions->size(),
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
    ReplayStage stage = session_stage(c, i, i >= static_cast<std::size_t>(options.warmup_stages));
    const auto left = static_cast<std::int64_t>(slots.size() - next);
    const std::int64_t asked = c.load.stages[i].num_sessions.value_or(left);
    stage.sessions = std::min(asked, left);
    if (left == 0)
      out.warning({}, stage_path(i), "no session is left for it: the tool skips it",
                  "earlier stages took all: set their num_sessions, or " + more);
    else if (asked > left)
      out.warning({}, stage_path(i, "num_sessions"),
                  "only " + std::to_string(left) + " left (got " + std::to_string(asked) + ")",
                  "set " + more);
    for (std::int64_t s = 0; s < stage.sessions; ++s)
      stage.info.requests +=
          static_cast<std::int64_t>((*sessions)[slots[next++].session].calls.size());
    if (stage.limit != Duration::max()) stage.info.requests = -1;
    stages.push_back(std::move(stage));
  }
  return std::make_unique<ReplayClient>(sessions, std::move(slots), std::move(stages), client,
                                        options);
}

}  // namespace routesim::workloads::inference_perf
