#include "workloads/sessions/synthetic_agents.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/prompts.h"
#include "workloads/sessions/recording.h"
#include "workloads/traces/text_scan.h"

namespace routesim::workloads {
namespace {

/// Tokens that a tool call may take beyond its own length, and the most of any.
constexpr std::int64_t kCallMargin = 64;
/// An acknowledgement of a report while others are awaited.
constexpr std::int64_t kAcknowledgementTokens = 48;

// Search, fetch, retrieve, read, grep, sources, summary, answer.
constexpr std::array<AgentTool, 8> kResearch = {
    {{25, 125}, {25, 85}, {35, 100}, {25, 75}, {35, 80}, {25, 75}, {28, 75}, {330, 40}}};
// List, read, grep, symbol, difference, tests, command, edit, write, patch.
constexpr std::array<AgentTool, 10> kCode = {{{27, 100},
                                              {27, 110},
                                              {25, 85},
                                              {25, 65},
                                              {27, 125},
                                              {28, 150},
                                              {27, 65},
                                              {280, 105},
                                              {685, 75},
                                              {395, 50}}};

constexpr std::array<AgentTheme, 2> kThemes = {{
    {.name = "research_rag",
     .definition = 165,
     .dump = 235,
     .objective = 26,
     .follow_up = 17,
     .intro = {115, 100},
     .recap = 60,
     .tools = kResearch},
    {.name = "code_change_task",
     .definition = 165,
     .dump = 240,
     .objective = 30,
     .follow_up = 22,
     .intro = {200, 190},
     .recap = 70,
     .tools = kCode},
}};

/// Bounds for all sessions; a call takes some hundred bytes, and so does a message it adds.
constexpr std::size_t kMostCallsOfAllSessions = 500'000;
constexpr std::size_t kMostMessagesOfAllSessions = 2'000'000;

/// The purpose of a draw: each has a stream of its own.
enum class Draw : std::uint64_t {
  kTheme = 1,
  kTurns,
  kTools,
  kTrigger,
  kTarget,
  kThink,
  kIntro,
  kHead,
  kInput,
  kOutput,
  kDepth,
  kSpawn,
  kSubAgents,
  kParallel,
  kLatency,
};

/// A text all sessions share.
Segment common(std::string_view name, std::int64_t tokens) {
  return {.content = content_id(0, ContentKind::kText, hash_bytes(name)), .length = tokens};
}

MessageTokens message(std::vector<Segment> segments) {
  return std::make_shared<const std::vector<Segment>>(std::move(segments));
}

MessageTokens common_message(std::string_view name, std::int64_t tokens) {
  return message({common(name, tokens)});
}

/// The tool calls of one answer, and what they return.
struct Step {
  std::int64_t call = 0;
  std::int64_t frames = 0;  ///< Added by JSON.
  std::vector<std::int64_t> results;
};

/// Facts about a call beside the call itself.
struct Event {
  std::uint32_t messages = 0;
  std::int64_t counted = 0;  ///< Tokens of their texts as the generator counts: no tool calls.
  bool calls_tools = false;
};

/// The task of an agent, and its origin.
struct Task {
  std::int64_t depth = 0;
  std::uint64_t path = 0;                ///< Names its draws.
  std::int64_t text = 0;                 ///< Tokens its first message has at least.
  std::optional<std::uint32_t> after{};  ///< The call it waits for.
  bool continues = false;                ///< Its first prompt goes on from that call.
  Duration wait{};
  std::int64_t reserved = 0;  ///< Calls that the agents above it still have to make.
  bool is_root() const { return depth == 0; }
};

class SessionBuilder {
 public:
  SessionBuilder(const SyntheticAgentic& settings, std::uint64_t seed, std::uint32_t index)
      : settings_(settings), seed_(mix64(seed, index)), theme_(agent_theme(draw_theme())) {
    session_.name = "synthN" + std::to_string(index);
    tools_ = std::max<std::int64_t>(
        sample(settings.tool_catalog_size_per_agent, Distribution::fixed(8), 0, Draw::kTools), 0);
    catalogue_ =
        common(std::string("agent tools: ") + std::string(theme_.name), tools_ * theme_.definition);
    filler_ = content_id(seed_, ContentKind::kTurnInput, 0);
    if (settings.context_compaction) {
      trigger_ = sample(settings.context_compaction->trigger_tokens, 0, Draw::kTrigger);
      target_ = sample(settings.context_compaction->target_tokens, 0, Draw::kTarget);
    }
  }

  Session build() && {
    const std::int64_t turns =
        sample(settings_.turns_per_session, Distribution::fixed(1), 0, Draw::kTurns);
    std::optional<std::uint32_t> last;
    for (std::int64_t r = 0; r < turns && fits(1, 0); ++r) {
      const std::optional<std::uint32_t> end = add_agent(turn(r, last));
      if (!end) break;
      last = end;
    }
    return std::move(session_);
  }

 private:
  RandomStream stream(std::uint64_t path, Draw what) const {
    return {mix64(seed_, path), Stream::kConversations, static_cast<std::uint64_t>(what)};
  }

  std::int64_t sample(const Distribution& d, std::uint64_t path, Draw what) const {
    RandomStream random = stream(path, what);
    return LengthSampler(d).sample(random);
  }

  std::int64_t sample(const std::optional<Distribution>& d, const Distribution& fallback,
                      std::uint64_t path, Draw what) const {
    return sample(d ? *d : fallback, path, what);
  }

  Duration sample_seconds(const std::optional<Distribution>& d, std::int64_t fallback,
                          std::uint64_t path, Draw what) const {
    RandomStream random = stream(path, what);
    const double seconds =
        LengthSampler(d ? *d : Distribution::fixed(fallback)).sample_real(random);
    return Duration::milliseconds(
        std::min(static_cast<std::int64_t>(seconds * 1000), settings_.max_wait_ms));
  }

  std::size_t draw_theme() const {
    const std::vector<double> weights = theme_weights(settings_);
    double total = 0;
    for (const double w : weights) total += w;
    double left = stream(0, Draw::kTheme).uniform() * total;
    std::size_t last = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] <= 0) continue;
      last = i;
      if (left < weights[i]) break;
      left -= weights[i];
    }
    return last;
  }

  bool fits(std::int64_t calls, std::int64_t reserved) const {
    return static_cast<std::int64_t>(events_.size()) + reserved + calls <=
           settings_.max_events_per_session;
  }

  Segment own_text(std::int64_t tokens) {
    return {.content = content_id(seed_, ContentKind::kMessage, texts_++), .length = tokens};
  }

  /// A text of `fixed` tokens, padded in front to `wanted` tokens where that is possible.
  std::vector<Segment> padded(std::int64_t wanted, std::int64_t fixed) {
    const std::int64_t padding = wanted - fixed - kFillerOpenTokens - kFillerCloseTokens - 1;
    if (padding <= 0) return {own_text(fixed)};
    return {common("filler open", kFillerOpenTokens),
            {.content = filler_, .length = padding},
            common("filler close", kFillerCloseTokens),
            own_text(fixed + 1)};
  }

  /// A real system prompt, cut or padded to the length of the head.
  MessageTokens head(const Task& task) const {
    const auto& prompts = task.is_root() ? kRootPromptTokens : kSubAgentPromptTokens;
    const auto k = stream(task.path, Draw::kHead).below(prompts.size());
    const std::int64_t wanted = settings_.shared_system_prompt_len;
    const Segment text =
        common((task.is_root() ? "root prompt " : "sub-agent prompt ") + std::to_string(k),
               std::min(prompts[k], wanted));
    const std::int64_t padding = wanted - prompts[k] - kHeadFillerTokens;
    if (padding <= 0) return message({text});
    return message(
        {text, common("head filler", kHeadFillerTokens), {.content = filler_, .length = padding}});
  }

  Task turn(std::int64_t r, std::optional<std::uint32_t> last) {
    Task task{.path = mix64(1, static_cast<std::uint64_t>(r))};
    task.after = last;
    task.text = theme_.objective;
    if (r == 0) {
      task.text += theme_.intro[stream(task.path, Draw::kIntro).below(theme_.intro.size())];
      return task;
    }
    task.wait = sample_seconds(settings_.user_think_time_sec, 10, task.path, Draw::kThink);
    const bool compacts = trigger_ && events_[*last].counted + tools_ * theme_.dump >= *trigger_;
    task.continues = !compacts;
    if (compacts)
      task.text += std::max(target_, theme_.recap + kSummaryMarkTokens);
    else
      task.text = theme_.follow_up;
    return task;
  }

  Step step(const Task& task, std::int64_t t) const {
    const std::uint64_t path = mix64(task.path, static_cast<std::uint64_t>(t) + 1);
    const std::int64_t n =
        std::max<std::int64_t>(sample(settings_.parallel_tool_calls_per_step,
                                      Distribution::fixed(1), path, Draw::kParallel),
                               1);
    Step out;
    for (std::int64_t j = 0; j < n; ++j) {
      const auto tool = static_cast<std::size_t>((t + j) % tools_);
      const AgentTool& known = theme_.tools[tool % theme_.tools.size()];
      out.call += known.call;
      out.frames += kCallFrameTokens;
      out.results.push_back(tool < theme_.tools.size() ? known.result : kUnknownResultTokens);
    }
    return out;
  }

  std::uint32_t add(SessionCall call, Event event) {
    event.messages = 0;
    for (const PromptPart& part : call.parts) event.messages += part.messages;
    call.tools = catalogue_;
    call.stops_by_itself = call.tools.length + call.more_tools.length > 0;
    session_.calls.push_back(std::move(call));
    events_.push_back(event);
    return static_cast<std::uint32_t>(events_.size() - 1);
  }

  /// A call whose prompt goes on after `from` and its answer.
  SessionCall continuation(std::uint32_t from, Duration wait, Event& event) const {
    SessionCall call;
    call.predecessors = {from};
    call.wait = wait;
    call.parts = {
        {.kind = PromptPart::Kind::kShared, .source = from, .messages = events_[from].messages}};
    event.counted = events_[from].counted;
    return call;
  }

  static void add_answer(SessionCall& call, std::uint32_t of) {
    call.parts.push_back({.kind = PromptPart::Kind::kAnswer, .source = of, .messages = 1});
  }

  static void add_text(SessionCall& call, Event& event, MessageTokens text) {
    event.counted += tokens_in(*text);
    call.recorded.push_back(std::move(text));
    if (!call.parts.empty() && call.parts.back().kind == PromptPart::Kind::kRecorded)
      ++call.parts.back().messages;
    else
      call.parts.push_back({.kind = PromptPart::Kind::kRecorded, .source = 0, .messages = 1});
  }

  void add_results(SessionCall& call, Event& event, const Step& done) {
    for (const std::int64_t tokens : done.results)
      add_text(call, event, message({own_text(tokens)}));
  }

  static void add_directive(SessionCall& call, Event& event, const Task& task) {
    add_text(call, event,
             task.is_root() ? common_message("answer directive", kAnswerDirectiveTokens)
                            : common_message("report directive", kReportDirectiveTokens));
  }

  void answers(SessionCall& call, const Task& task) const {
    says(call, std::max<std::int64_t>(
                   sample(settings_.output_tokens_per_turn, task.path, Draw::kOutput), 0));
  }

  static void says(SessionCall& call, std::int64_t tokens) {
    call.output_tokens = call.max_tokens = tokens > 0 ? tokens : kClientMaxTokens;
  }

  void calls_tools(SessionCall& call, Event& event, std::int64_t tokens,
                   std::int64_t frames) const {
    event.calls_tools = true;
    call.output_tokens = tokens;
    call.max_tokens = tokens + frames + kCallMargin;
    if (settings_.override_tool_call_max_tokens)
      call.max_tokens = std::max(4 * call.max_tokens, kToolCallTokens);
  }

  /// Adds the calls of an agent. Returns the last of them, or nothing where not one more fits.
  std::optional<std::uint32_t> add_agent(const Task& task) {
    if (!fits(1, task.reserved)) return std::nullopt;
    std::int64_t depth = 0;
    if (tools_ > 0)
      depth = std::max<std::int64_t>(
          sample(settings_.tool_loop_depth, Distribution::fixed(2), task.path, Draw::kDepth), 0);
    const bool spawns = stream(task.path, Draw::kSpawn).uniform() < settings_.fanout_probability &&
                        task.depth < settings_.max_depth;
    Step asked = depth > 0 ? step(task, 0) : Step{};
    std::uint32_t last = add_principal(task, depth, spawns, asked);
    last = add_loop(task, depth, spawns, last, asked);
    if (spawns) last = add_fan_out(task, last, asked);
    // Nobody answers the tool calls of a loop that was cut: the agent says what it has.
    if (events_[last].calls_tools) {
      events_[last].calls_tools = false;
      answers(session_.calls[last], task);
    }
    return last;
  }

  std::uint32_t add_principal(const Task& task, std::int64_t depth, bool spawns,
                              const Step& first) {
    Event event;
    SessionCall call;
    if (task.continues) {
      call = continuation(*task.after, task.wait, event);
      add_answer(call, *task.after);
      event.counted += kPlaceholderTokens;
    } else {
      if (task.after) call.predecessors = {*task.after};
      call.wait = task.wait;
      if (settings_.shared_system_prompt_len > 0) add_text(call, event, head(task));
    }
    const std::int64_t wanted = sample(settings_.input_tokens_per_turn, task.path, Draw::kInput);
    add_text(call, event, message(padded(wanted, task.text)));
    if (depth > 0) {
      calls_tools(call, event, first.call, first.frames);
    } else if (spawns) {
      says(call, 0);
    } else {
      if (!task.is_root() || tools_ > 0) add_directive(call, event, task);
      answers(call, task);
    }
    return add(std::move(call), event);
  }

  /// Adds the calls from `last` on, which asked for `asked`. Returns the last of them.
  std::uint32_t add_loop(const Task& task, std::int64_t depth, bool spawns, std::uint32_t last,
                         Step& asked) {
    // An agent that spawns others does so in place of the last of these.
    const std::int64_t calls = spawns ? depth - 1 : depth;
    for (std::int64_t t = 0; t < calls && fits(1, task.reserved); ++t) {
      Event event;
      SessionCall call = continuation(
          last,
          sample_seconds(settings_.tool_call_latency_sec, 1,
                         mix64(task.path, static_cast<std::uint64_t>(t) + 1), Draw::kLatency),
          event);
      add_answer(call, last);
      add_results(call, event, asked);
      if (t == depth - 1 && !spawns) {
        add_directive(call, event, task);
        answers(call, task);
        asked = {};
      } else {
        asked = step(task, t + 1);
        calls_tools(call, event, asked.call, asked.frames);
      }
      last = add(std::move(call), event);
    }
    return last;
  }

  std::uint32_t add_fan_out(const Task& task, std::uint32_t last, const Step& asked) {
    Distribution fallback;
    fallback.type = DistributionType::kUniform;
    fallback.min = 2;
    fallback.max = 4;
    const std::int64_t n =
        sample(settings_.sub_agents_per_spawn, fallback, task.path, Draw::kSubAgents);
    if (n <= 0 || n > settings_.max_events_per_session || !fits(1 + n + n + 1, task.reserved))
      return last;
    Event event;
    SessionCall call = continuation(last, Duration::zero(), event);
    if (!asked.results.empty()) {
      add_answer(call, last);
      add_results(call, event, asked);
    }
    add_text(call, event, common_message("delegate", kDelegateTokens));
    calls_tools(call, event, n * (theme_.objective + kDispatchCallTokens), n * kCallFrameTokens);
    call.more_tools = dispatch_tool();
    const std::uint32_t spawn = add(std::move(call), event);
    const auto ends = add_sub_agents(task, spawn, n);
    if (ends && fits(n + 1, task.reserved)) return add_reports(task, spawn, *ends);
    session_.calls.resize(spawn);
    events_.resize(spawn);
    return last;
  }

  std::optional<std::vector<std::uint32_t>> add_sub_agents(const Task& task, std::uint32_t spawn,
                                                           std::int64_t n) {
    std::vector<std::uint32_t> ends;
    for (std::int64_t c = 0; c < n; ++c) {
      Task child{.depth = task.depth + 1,
                 .path = mix64(task.path, 200 + static_cast<std::uint64_t>(c)),
                 .text = theme_.objective,
                 .after = spawn};
      // Still to come: this agent's own calls, and at least one of each child after this.
      child.reserved = task.reserved + n + 1 + (n - c - 1);
      const std::optional<std::uint32_t> end = add_agent(child);
      if (!end) return std::nullopt;
      ends.push_back(*end);
    }
    return ends;
  }

  std::uint32_t add_reports(const Task& task, std::uint32_t spawn,
                            const std::vector<std::uint32_t>& ends) {
    Event event;
    SessionCall call = continuation(spawn, Duration::zero(), event);
    add_answer(call, spawn);
    for (std::size_t c = 0; c < ends.size(); ++c)
      add_text(call, event, common_message("dispatch stub", kDispatchStubTokens));
    says(call, kAcknowledgementTokens);
    call.more_tools = dispatch_tool();
    std::uint32_t last = add(std::move(call), event);
    for (std::size_t c = 0; c < ends.size(); ++c) {
      Event heard;
      SessionCall report = continuation(last, Duration::zero(), heard);
      report.predecessors.push_back(ends[c]);
      report.parts.push_back({.kind = PromptPart::Kind::kReport, .source = ends[c], .messages = 1});
      report.recorded = {common_message("report open", kReportOpenTokens),
                         common_message("report close", kReportCloseTokens)};
      heard.counted += kPlaceholderTokens;
      if (c + 1 == ends.size()) {
        add_directive(report, heard, task);
        answers(report, task);
      } else {
        says(report, kAcknowledgementTokens);
      }
      report.more_tools = dispatch_tool();
      last = add(std::move(report), heard);
    }
    return last;
  }

  Segment dispatch_tool() const { return common("agent tools: dispatch", kDispatchTool); }

  const SyntheticAgentic& settings_;
  std::uint64_t seed_;
  const AgentTheme& theme_;
  std::int64_t tools_ = 0;  // Size of the catalogue.
  Segment catalogue_;
  std::uint64_t filler_ = 0;
  std::optional<std::int64_t> trigger_;
  std::int64_t target_ = 0;
  std::uint64_t texts_ = 0;
  Session session_;
  std::vector<Event> events_;  // One per call.
};

}  // namespace

const AgentTheme& agent_theme(std::size_t i) { return kThemes.at(i); }

Session synthetic_session(const SyntheticAgentic& settings, std::uint64_t seed,
                          std::uint32_t index) {
  return SessionBuilder(settings, seed, index).build();
}

std::shared_ptr<const Sessions> synthetic_sessions(const SyntheticAgentic& t,
                                                   std::uint64_t run_seed, const std::string& path,
                                                   Diagnostics& out) {
  const std::uint64_t seed = mix64(run_seed, static_cast<std::uint64_t>(t.seed));
  auto sessions = std::make_shared<Sessions>();
  std::size_t calls = 0, messages = 0;
  for (std::int64_t i = 0; i < t.num_sessions; ++i) {
    sessions->push_back(synthetic_session(t, seed, static_cast<std::uint32_t>(i)));
    const std::vector<SessionCall>& made = sessions->back().calls;
    calls += made.size();
    for (const SessionCall& call : made) messages += call.recorded.size();
    // Distributions may draw no turn at all.
    if (made.empty()) sessions->pop_back();
    if (calls <= kMostCallsOfAllSessions && messages <= kMostMessagesOfAllSessions) continue;
    out.error({}, path + "num_sessions",
              "makes more than " +
                  std::to_string(calls > kMostCallsOfAllSessions ? kMostCallsOfAllSessions
                                                                 : kMostMessagesOfAllSessions) +
                  (calls > kMostCallsOfAllSessions ? " calls" : " messages") + " (got " +
                  std::to_string(t.num_sessions) + ")",
              "make fewer sessions, or shorter ones");
    return nullptr;
  }
  return sessions;
}

}  // namespace routesim::workloads
