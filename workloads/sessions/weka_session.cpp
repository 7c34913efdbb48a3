#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "workloads/prompts.h"
#include "workloads/sessions/replay_graph.h"
#include "workloads/sessions/weka_messages.h"
#include "workloads/sessions/weka_trace.h"
#include "workloads/traces/text_scan.h"

namespace routesim::workloads {
namespace {

/// Requests that follow one another: the session's own, or those of a sub-agent.
struct Conversation {
  std::string call_prefix;  ///< Of the names by which calls that start together are ordered.
  std::string id;
  std::int64_t prefix_tokens = 0;
  std::vector<const WekaRequest*> requests;
  std::vector<double> starts;  ///< Of each request, in seconds of the session.
};

/// Compresses the gaps between starts that are longer than `cap` seconds.
class IdleGaps {
 public:
  IdleGaps(std::vector<double> starts, double cap) {
    if (cap <= 0) return;
    std::sort(starts.begin(), starts.end());
    double shift = 0;
    for (std::size_t i = 1; i < starts.size(); ++i) {
      const double excess = starts[i] - starts[i - 1] - cap;
      if (excess <= 0) continue;
      shift += excess;
      ends_.emplace_back(starts[i], shift);
    }
  }
  /// Of a start: no other instant is asked for.
  double map(double start) const {
    const auto after = std::upper_bound(
        ends_.begin(), ends_.end(), start,
        [](double t, const std::pair<double, double>& end) { return t < end.first; });
    return after == ends_.begin() ? start : start - std::prev(after)->second;
  }

 private:
  std::vector<std::pair<double, double>> ends_;  // End of a gap, and what is cut until then.
};

/// A sub-agent may have several requests under way: as many conversations.
void add_subagent(const WekaTrace& trace, const WekaSubagent& agent,
                  std::vector<Conversation>& out) {
  std::vector<const WekaRequest*> sorted;
  for (const WekaRequest& r : agent.requests) sorted.push_back(&r);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const WekaRequest* a, const WekaRequest* b) { return a->t < b->t; });
  std::vector<Conversation> streams;
  std::vector<double> ends;
  for (const WekaRequest* r : sorted) {
    std::size_t s = 0;
    while (s < ends.size() && ends[s] > r->t) ++s;
    if (s == ends.size()) {
      streams.push_back(
          {.call_prefix = "sa_" + agent.agent_id + "_s" + std::to_string(s) + "_turn_",
           .id = trace.id + "::sa:" + agent.agent_id,
           .prefix_tokens = agent.tool_tokens + agent.system_tokens,
           .requests = {},
           .starts = {}});
      ends.push_back(0);
    }
    ends[s] = r->t + r->api_time;
    streams[s].requests.push_back(r);
    streams[s].starts.push_back(r->t + 1e-6 < agent.t ? agent.t + r->t : r->t);
  }
  for (std::size_t s = 0; s < streams.size(); ++s) {
    if (streams.size() > 1) streams[s].id += ":s" + std::to_string(s);
    out.push_back(std::move(streams[s]));
  }
}

std::vector<Conversation> conversations_of(const WekaTrace& trace) {
  std::vector<Conversation> out;
  Conversation parent = {.call_prefix = "parent_turn_",
                         .id = trace.id,
                         .prefix_tokens = trace.tool_tokens + trace.system_tokens,
                         .requests = {},
                         .starts = {}};
  for (const WekaRequest& r : trace.requests) {
    parent.requests.push_back(&r);
    parent.starts.push_back(r.t);
  }
  out.push_back(std::move(parent));
  for (const WekaSubagent& agent : trace.subagents) add_subagent(trace, agent, out);
  return out;
}

/// A call with the name that orders it.
struct NamedCall {
  std::string name;
  RecordedCall call;
  const WekaRequest* request = nullptr;
};

std::int64_t to_ms(double seconds) { return static_cast<std::int64_t>(seconds * 1000.0); }

void add_calls(const WekaTrace& trace, const Conversation& c, std::int64_t block_size,
               const IdleGaps& gaps, std::vector<NamedCall>& out) {
  WekaMessages messages(hash_bytes(trace.id), mix64(hash_bytes(c.id), hash_bytes(c.call_prefix)),
                        block_size);
  for (std::size_t k = 0; k < c.requests.size(); ++k) {
    const WekaRequest& request = *c.requests[k];
    messages.advance(request, c.prefix_tokens);
    // An answer is seen in the next prompt only.
    if (k > 0) out.back().call.answer = messages.last_answer();
    NamedCall named = {c.call_prefix + std::to_string(k), {}, &request};
    named.call.start_ms = to_ms(gaps.map(c.starts[k]));
    named.call.end_ms = named.call.start_ms + to_ms(request.api_time);
    named.call.messages = messages.messages();
    out.push_back(std::move(named));
  }
  if (!c.requests.empty())
    out.back().call.answer = messages.final_answer(c.requests.back()->output);
}

/// The tool's client asks for that many tokens where it is told none.
constexpr std::int64_t kClientMaxTokens = 30;

ReplayCall replay_call(const RecordedCall& recorded, std::int64_t output, GraphNode node,
                       std::int64_t max_wait_ms) {
  ReplayCall call;
  call.predecessors = std::move(node.predecessors);
  call.wait = Duration::milliseconds(std::min(node.wait_ms, max_wait_ms));
  std::size_t message = 0;
  for (const ReplayPart& part : node.parts) {
    if (part.kind == ReplayPart::Kind::kRecorded)
      for (std::size_t m = message; m < message + part.messages; ++m)
        call.recorded.push_back(recorded.messages[m]->tokens);
    message += part.messages;
  }
  call.parts = std::move(node.parts);
  call.output_tokens = output > 0 ? output : kClientMaxTokens;
  call.max_tokens = call.output_tokens;
  return call;
}

}  // namespace

ReplaySession weka_session(const WekaTrace& trace, const WekaTraceReplay& settings) {
  const std::int64_t block_size =
      trace.block_size > 0 ? trace.block_size : settings.default_block_size;
  const std::vector<Conversation> conversations = conversations_of(trace);
  std::vector<double> starts;
  for (const Conversation& c : conversations)
    starts.insert(starts.end(), c.starts.begin(), c.starts.end());
  const IdleGaps gaps(std::move(starts), settings.trace_idle_gap_cap_seconds);
  std::vector<NamedCall> named;
  for (const Conversation& c : conversations) add_calls(trace, c, block_size, gaps, named);
  std::stable_sort(named.begin(), named.end(), [](const NamedCall& a, const NamedCall& b) {
    return a.call.start_ms != b.call.start_ms ? a.call.start_ms < b.call.start_ms : a.name < b.name;
  });
  std::vector<RecordedCall> calls;
  calls.reserve(named.size());
  for (NamedCall& n : named) calls.push_back(std::move(n.call));
  std::vector<GraphNode> nodes = build_call_graph(calls, TextUnit::kSymbols);
  ReplaySession session = {.name = trace.id, .calls = {}};
  for (std::size_t i = 0; i < named.size(); ++i)
    session.calls.push_back(
        replay_call(calls[i], named[i].request->output, std::move(nodes[i]), settings.max_wait_ms));
  return session;
}

}  // namespace routesim::workloads
