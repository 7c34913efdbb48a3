// Recorded sessions: what the readers make of any bytes can be replayed.
#include <memory>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "tests/fuzz/targets.h"
#include "tests/workloads/drive.h"
#include "tools/ingest/traces/recordings.h"
#include "workloads/sessions/replay_client.h"
#include "workloads/sessions/synthetic_agents.h"

namespace routesim::fuzz {

namespace {

using workloads::PromptPart;
using workloads::ReplayClient;
using workloads::ReplayClientOptions;
using workloads::ReplaySlot;
using workloads::ReplayStage;
using workloads::Session;
using workloads::SessionCall;
using workloads::Sessions;
using workloads::WorkloadOptions;

constexpr std::size_t kRequests = 200;

void check_call(const SessionCall& call, std::size_t number) {
  std::size_t recorded = 0;
  for (const std::uint32_t p : call.predecessors)
    ROUTESIM_CHECK(p < number, "a call waits for a later one");
  for (const PromptPart& part : call.parts) {
    const bool own = part.kind == PromptPart::Kind::kRecorded;
    ROUTESIM_CHECK(own || part.source < number, "a prompt holds what comes later");
    ROUTESIM_CHECK(part.kind != PromptPart::Kind::kShared || &part == &call.parts.front(),
                   "a shared part is not the first");
    if (own) recorded += part.messages;
    if (part.kind == PromptPart::Kind::kReport) recorded += 2;
  }
  ROUTESIM_CHECK(recorded == call.recorded.size(), "parts and messages disagree");
  ROUTESIM_CHECK(call.output_tokens >= 1 && call.max_tokens >= call.output_tokens,
                 "an answer longer than what is asked for");
}

void replay(Sessions played) {
  std::vector<ReplaySlot> slots;
  for (const Session& session : played) {
    ROUTESIM_CHECK(!session.calls.empty(), "a session without calls");
    for (std::size_t i = 0; i < session.calls.size(); ++i) check_call(session.calls[i], i);
    slots.push_back(
        {.session = static_cast<std::uint32_t>(slots.size()), .duplicate = slots.size() % 2 == 1});
  }
  if (slots.empty()) return;
  std::vector<ReplayStage> stages(1);
  stages[0].sessions = static_cast<std::int64_t>(slots.size());
  stages[0].concurrent = 2;
  ReplayClientOptions client;
  client.permits = {3, 2};
  client.request_timeout = Duration::seconds(300);
  ReplayClient load(std::make_shared<const Sessions>(std::move(played)), std::move(slots),
                    std::move(stages), client, WorkloadOptions{});
  const auto sent = workloads::testing::drive(
      load, workloads::testing::fixed_latency(Duration::seconds(1)), kRequests);
  ROUTESIM_CHECK(sent.size() >= kRequests || load.finished(), "the replay got stuck");
  for (const auto& s : sent)
    ROUTESIM_CHECK(s.request.prompt->tokens >= 1, "a prompt without tokens");
}

template <class Settings>
void read(const Settings& settings, const std::string& text, bool lines) {
  std::istringstream in(text);
  Diagnostics diagnostics;
  tools::SessionFiles files(settings);
  files.read(in, "input", lines, diagnostics);
  print_all(diagnostics);
  replay(files.take());
}

/// Synthetic agents whose shape the first bytes decide.
void replay_agents(Bytes input) {
  const auto byte = [&](std::size_t i) { return i < input.size() ? input[i] : 0; };
  const auto up_to = [&](std::size_t i, std::int64_t most) {
    workloads::Distribution d;
    d.type = workloads::DistributionType::kUniform;
    d.min = byte(i) % 2;
    d.max = d.min + byte(i) % most;
    return d;
  };
  workloads::SyntheticAgentic t;
  t.input_tokens_per_turn = up_to(0, 200);
  t.output_tokens_per_turn = up_to(1, 90);
  t.turns_per_session = up_to(2, 6);
  t.tool_loop_depth = up_to(3, 5);
  t.sub_agents_per_spawn = up_to(4, 4);
  t.tool_catalog_size_per_agent = up_to(5, 20);
  t.parallel_tool_calls_per_step = up_to(6, 4);
  t.fanout_probability = byte(7) / 255.0;
  t.max_depth = byte(8) % 4;
  t.max_events_per_session = 1 + byte(9);
  t.shared_system_prompt_len = 8 * byte(10);
  if (byte(11) % 2 == 1)
    t.context_compaction = {.trigger_tokens = workloads::Distribution::fixed(40 * byte(12)),
                            .target_tokens = workloads::Distribution::fixed(4 * byte(13))};
  Sessions made;
  for (std::uint32_t i = 0; i < 3; ++i) {
    Session session = workloads::synthetic_session(t, byte(14), i);
    ROUTESIM_CHECK(std::ssize(session.calls) <= t.max_events_per_session, "a budget is exceeded");
    if (!session.calls.empty()) made.push_back(std::move(session));
  }
  replay(std::move(made));
}

}  // namespace

void sessions(Bytes input) {
  replay_agents(input);
  const std::string text = text_of(input);
  for (const bool lines : {false, true}) {
    workloads::WekaTraceReplay weka;
    workloads::OtelTraceReplay otel;
    weka.skip_invalid_files = otel.skip_invalid_files = lines;
    read(weka, text, lines);
    read(otel, text, lines);
  }
}

}  // namespace routesim::fuzz
