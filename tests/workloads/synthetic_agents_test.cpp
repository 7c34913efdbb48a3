// Sessions of synthetic agents: how many calls they have, what they wait for, what is in a prompt.
#include "workloads/sessions/synthetic_agents.h"

#include <algorithm>
#include <set>
#include <string>

#include "tests/workloads/inference_perf_ladder.h"

namespace routesim::workloads::inference_perf {
namespace {

using Kind = PromptPart::Kind;

/// One turn, an answer without tools, no system prompt.
SyntheticAgentic bare() {
  SyntheticAgentic t;
  t.num_sessions = 1;
  t.input_tokens_per_turn = Distribution::fixed(500);
  t.output_tokens_per_turn = Distribution::fixed(40);
  t.theme_mix = ThemeMix{};
  t.theme_mix->research_rag = ThemeWeight{1};
  t.shared_system_prompt_len = 0;
  t.tool_catalog_size_per_agent = Distribution::fixed(0);
  return t;
}

SyntheticAgentic with_tools(std::int64_t depth) {
  SyntheticAgentic t = bare();
  t.tool_catalog_size_per_agent = Distribution::fixed(8);
  t.tool_loop_depth = Distribution::fixed(depth);
  return t;
}

SyntheticAgentic with_sub_agents(std::int64_t n) {
  SyntheticAgentic t = with_tools(0);
  t.fanout_probability = 1;
  t.sub_agents_per_spawn = Distribution::fixed(n);
  t.max_depth = 1;
  return t;
}

std::vector<SessionCall> calls(const SyntheticAgentic& t, std::uint32_t index = 0) {
  return synthetic_session(t, 1, index).calls;
}

std::vector<int> messages(const std::vector<SessionCall>& all) {
  std::vector<int> out;
  for (const SessionCall& call : all) {
    int n = 0;
    for (const PromptPart& part : call.parts) n += static_cast<int>(part.messages);
    out.push_back(n);
  }
  return out;
}

std::int64_t new_tokens(const SessionCall& call) {
  std::int64_t n = 0;
  for (const MessageTokens& text : call.recorded)
    for (const Segment& s : *text) n += s.length;
  return n;
}

TEST(SyntheticAgents, ABareSessionIsOneCall) {
  const auto all = calls(bare());
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(messages(all), (std::vector<int>{1}));
  EXPECT_EQ(new_tokens(all[0]), 500);
  EXPECT_EQ(all[0].output_tokens, 40);
  EXPECT_EQ(all[0].tools.length, 0);
  EXPECT_FALSE(all[0].stops_by_itself);
}

TEST(SyntheticAgents, ATextThatDoesNotFitIsNotPadded) {
  SyntheticAgentic t = bare();
  t.input_tokens_per_turn = Distribution::fixed(10);
  const AgentTheme& theme = agent_theme(0);
  const std::int64_t task = new_tokens(calls(t)[0]) - theme.objective;
  EXPECT_TRUE(task == theme.intro[0] || task == theme.intro[1]) << task;
}

// The tool's own examples: 02_multiturn_no_tools, 04_long_tool_loop, 13_high_turn_count,
// 14_high_tool_loop_depth.
TEST(SyntheticAgents, HaveTheCallsTheToolsExamplesName) {
  SyntheticAgentic turns = bare();
  turns.turns_per_session = Distribution::fixed(3);
  EXPECT_EQ(messages(calls(turns)), (std::vector<int>{1, 3, 5}));
  // The last call of a loop also asks for an answer.
  EXPECT_EQ(messages(calls(with_tools(5))), (std::vector<int>{1, 3, 5, 7, 9, 12}));
  EXPECT_EQ(calls(with_tools(32)).size(), 33U);
  SyntheticAgentic many = with_tools(1);
  many.turns_per_session = Distribution::fixed(32);
  EXPECT_EQ(calls(many).size(), 64U);
}

TEST(SyntheticAgents, AToolLoopWaitsForItsTools) {
  SyntheticAgentic t = with_tools(2);
  t.parallel_tool_calls_per_step = Distribution::fixed(3);
  const auto all = calls(t);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(messages(all), (std::vector<int>{1, 5, 10}));
  EXPECT_EQ(all[0].wait, Duration::zero());
  EXPECT_EQ(all[1].wait, Duration::seconds(1));
  EXPECT_EQ(all[1].predecessors, (std::vector<std::uint32_t>{0}));
  const AgentTheme& theme = agent_theme(0);
  const auto result = [&](std::size_t i) { return theme.tools[i].result; };
  EXPECT_EQ(new_tokens(all[1]), result(0) + result(1) + result(2));
  // The second step calls the next three tools.
  EXPECT_EQ(all[1].output_tokens, theme.tools[1].call + theme.tools[2].call + theme.tools[3].call);
  EXPECT_EQ(all[1].max_tokens, all[1].output_tokens + 3 * kCallFrameTokens + 64);
  EXPECT_EQ(new_tokens(all[2]), result(1) + result(2) + result(3) + kAnswerDirectiveTokens);
  EXPECT_EQ(all[2].output_tokens, 40);
  for (const SessionCall& call : all) {
    EXPECT_EQ(call.tools.length, 8 * theme.definition);
    EXPECT_TRUE(call.stops_by_itself);
  }
}

TEST(SyntheticAgents, AUserThinksBetweenTurns) {
  SyntheticAgentic t = bare();
  t.turns_per_session = Distribution::fixed(2);
  EXPECT_EQ(calls(t)[1].wait, Duration::seconds(10));
  t.user_think_time_sec = Distribution::fixed(40);
  EXPECT_EQ(calls(t)[1].wait, Duration::seconds(15));  // max_wait_ms.
}

TEST(SyntheticAgents, SpawnSubAgentsAndHearTheirReportsOneByOne) {
  const auto all = calls(with_sub_agents(2));
  // 0 principal, 1 spawn, 2 and 3 sub-agents, 4 acknowledgement, 5 and 6 reports.
  ASSERT_EQ(all.size(), 7U);
  EXPECT_EQ(messages(all), (std::vector<int>{1, 2, 2, 2, 5, 6, 8}));
  using Ids = std::vector<std::uint32_t>;
  const std::vector<Ids> expected = {{}, {0}, {1}, {1}, {1}, {4, 2}, {5, 3}};
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].predecessors, expected[i]) << i;
  EXPECT_EQ(all[5].parts[1].kind, Kind::kReport);
  EXPECT_EQ(all[5].parts[1].source, 2U);
  EXPECT_EQ(all[6].parts[1].source, 3U);
  // Who spawns or hears of it has one more tool.
  for (const std::size_t i : {1U, 4U, 5U, 6U}) EXPECT_EQ(all[i].more_tools.length, kDispatchTool);
  for (const std::size_t i : {0U, 2U, 3U}) EXPECT_EQ(all[i].more_tools.length, 0);
  EXPECT_EQ(all[1].output_tokens, 2 * (agent_theme(0).objective + kDispatchCallTokens));
  EXPECT_EQ(all[4].output_tokens, 48);
  EXPECT_EQ(all[5].output_tokens, 48);
  EXPECT_EQ(all[6].output_tokens, 40);
}

TEST(SyntheticAgents, ASpawnerMakesTheLastOfItsToolCallsToSubAgents) {
  SyntheticAgentic t = with_sub_agents(1);
  t.tool_loop_depth = Distribution::fixed(2);
  const auto all = calls(t);
  // Principal, one of the loop, spawn with the second's results, sub-agent of three calls, two
  // more.
  EXPECT_EQ(messages(all), (std::vector<int>{1, 3, 6, 1, 3, 6, 8, 10}));
  EXPECT_EQ(all[7].predecessors, (std::vector<std::uint32_t>{6, 5}));
}

// 16_budget_cap: the tree is cut so that every session has exactly ten calls.
TEST(SyntheticAgents, StayWithinTheirBudget) {
  SyntheticAgentic t = with_tools(2);
  t.fanout_probability = 1;
  t.sub_agents_per_spawn = Distribution::fixed(3);
  t.max_depth = 3;
  t.max_events_per_session = 10;
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(calls(t, i).size(), 10U);
  t.max_events_per_session = 9;  // Not enough for three reports: no one is spawned.
  EXPECT_EQ(messages(calls(t)), (std::vector<int>{1, 3}));
  EXPECT_EQ(calls(t).back().output_tokens, 40);
  t.max_events_per_session = 10'000;
  // 3 calls of a leaf; 7 and three children of the others.
  EXPECT_EQ(calls(t).size(), 7U + 3 * (7U + 3 * (7U + 3 * 3U)));
}

TEST(SyntheticAgents, EveryGraphHoldsTogether) {
  SyntheticAgentic t = with_tools(2);
  t.theme_mix.reset();
  t.turns_per_session = Distribution::fixed(3);
  t.fanout_probability = 0.5;
  t.tool_loop_depth.reset();
  t.max_events_per_session = 40;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const auto all = calls(t, i);
    ASSERT_FALSE(all.empty());
    EXPECT_LE(all.size(), 40U);
    const std::vector<int> counts = messages(all);
    for (std::size_t c = 0; c < all.size(); ++c) {
      std::size_t recorded = 0;
      for (const PromptPart& part : all[c].parts) {
        recorded += part.kind == Kind::kRecorded ? part.messages
                    : part.kind == Kind::kReport ? 2
                                                 : 0;
        if (part.kind == Kind::kRecorded) continue;
        // What it holds of another call is there when this one may be sent.
        const auto& known = all[c].predecessors;
        EXPECT_NE(std::find(known.begin(), known.end(), part.source), known.end());
        EXPECT_LT(part.source, c);
        if (part.kind == Kind::kShared) {
          EXPECT_EQ(static_cast<int>(part.messages), counts[part.source]);
        }
      }
      EXPECT_EQ(all[c].recorded.size(), recorded);
      EXPECT_GE(all[c].max_tokens, all[c].output_tokens);
      EXPECT_GE(all[c].output_tokens, 1);
    }
  }
}

TEST(SyntheticAgents, ACompactedContextBeginsAnew) {
  SyntheticAgentic t = bare();
  t.turns_per_session = Distribution::fixed(4);
  t.context_compaction = ContextCompaction{.trigger_tokens = Distribution::fixed(900),
                                           .target_tokens = Distribution::fixed(700)};
  const auto all = calls(t);
  ASSERT_EQ(all.size(), 4U);
  // 500 tokens, then 500 + 6 (its answer's place) + 500: the third turn would begin beyond 900.
  EXPECT_EQ(messages(all), (std::vector<int>{1, 3, 1, 3}));
  EXPECT_EQ(all[2].predecessors, (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(all[2].parts[0].kind, Kind::kRecorded);
  EXPECT_EQ(new_tokens(all[2]), 700 + agent_theme(0).objective);
}

TEST(SyntheticAgents, ToolDefinitionsCountForTheCompaction) {
  SyntheticAgentic t = with_tools(0);
  t.turns_per_session = Distribution::fixed(2);
  // A turn is 500 tokens and 32 that ask for its answer; eight tools count 235 each: 2,412.
  const auto second_begins_anew = [&t](std::int64_t trigger) {
    t.context_compaction = ContextCompaction{.trigger_tokens = Distribution::fixed(trigger),
                                             .target_tokens = Distribution::fixed(700)};
    return calls(t).at(1).parts.at(0).kind == Kind::kRecorded;
  };
  EXPECT_TRUE(second_begins_anew(2412));
  EXPECT_FALSE(second_begins_anew(2413));
}

TEST(SyntheticAgents, DifferByIndexAndSeedOnly) {
  SyntheticAgentic t = with_tools(2);
  t.input_tokens_per_turn.type = DistributionType::kUniform;
  t.input_tokens_per_turn.min = 400;
  t.input_tokens_per_turn.max = 100'000;
  const auto tokens = [&](std::uint64_t seed, std::uint32_t index) {
    return new_tokens(synthetic_session(t, seed, index).calls[0]);
  };
  EXPECT_EQ(tokens(1, 0), tokens(1, 0));
  EXPECT_NE(tokens(1, 0), tokens(1, 1));
  EXPECT_NE(tokens(1, 0), tokens(2, 0));
}

Config agents(SyntheticAgentic t) {
  Config c;
  c.api.type = ApiType::kChat;
  c.data.type = DataType::kSyntheticAgentic;
  c.data.synthetic_agentic = std::move(t);
  c.load.type = LoadType::kTraceSessionReplay;
  c.load.stages = {{.concurrent_sessions = 0}};
  return c;
}

TEST(SyntheticAgents, AreSentWhenTheirToolsAndUsersAreReady) {
  SyntheticAgentic t = with_tools(1);
  t.turns_per_session = Distribution::fixed(2);
  auto load = make(agents(t));
  EXPECT_EQ(load->stages()[0].requests, 4);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(2)));
  ASSERT_EQ(sent.size(), 4U);
  // 2 s per call, 1 s for a tool, 10 s for the user.
  EXPECT_DOUBLE_EQ(seconds(sent[1].sent), 3);
  EXPECT_DOUBLE_EQ(seconds(sent[2].sent), 15);
  EXPECT_DOUBLE_EQ(seconds(sent[3].sent), 18);
}

TEST(SyntheticAgents, ReportsHoldWhatSubAgentsReallySaid) {
  auto load = make(agents(with_sub_agents(2)));
  const auto sent = drive(*load, fixed_latency(Duration::seconds(1)));
  ASSERT_EQ(sent.size(), 7U);
  // The acknowledgement does not wait for the sub-agents, which run side by side.
  for (const std::size_t i : {2U, 3U, 4U}) EXPECT_EQ(seconds(sent[i].sent), 2);
  const auto tokens = [&](std::size_t i) { return sent[i].request.prompt->tokens; };
  // What the spawner acknowledged is no part of what follows.
  EXPECT_EQ(tokens(5), tokens(4) + kReportOpenTokens + 40 + kReportCloseTokens);
  EXPECT_EQ(tokens(6),
            tokens(5) + kReportOpenTokens + 40 + kReportCloseTokens + kAnswerDirectiveTokens);
  const auto& segments = sent[5].request.prompt->segments;
  std::set<std::uint64_t> contents;
  for (const Segment& s : segments) contents.insert(s.content);
  EXPECT_TRUE(contents.contains(sent[2].request.output_content));
  EXPECT_FALSE(contents.contains(sent[3].request.output_content));
}

TEST(SyntheticAgents, ShareToolsAndSystemPromptsWithinATheme) {
  SyntheticAgentic t = with_tools(0);
  t.num_sessions = 40;
  t.shared_system_prompt_len = 300;
  auto load = make(agents(t));
  const auto sent = drive(*load, fixed_latency(Duration::seconds(1)));
  ASSERT_EQ(sent.size(), 40U);
  std::set<std::uint64_t> tools, heads, rest;
  for (const Sent& s : sent) {
    const auto& segments = s.request.prompt->segments;
    EXPECT_EQ(segments[0].length, 8 * agent_theme(0).definition);
    EXPECT_EQ(segments[1].length, 300);
    tools.insert(segments[0].content);
    heads.insert(segments[1].content);
    rest.insert(segments[3].content);
  }
  EXPECT_EQ(tools.size(), 1U);
  EXPECT_EQ(heads.size(), 3U);
  EXPECT_EQ(rest.size(), 40U);
}

TEST(SyntheticAgents, KeepTheirOrder) {
  SyntheticAgentic t = bare();
  t.num_sessions = 20;
  Config c = agents(t);
  c.load.stages = {{.concurrent_sessions = 1}};
  const auto sent = drive(*make(c), fixed_latency(Duration::seconds(1)));
  ASSERT_EQ(sent.size(), 20U);
  for (std::size_t i = 0; i < sent.size(); ++i) EXPECT_EQ(sent[i].request.session, i + 1);
}

TEST(SyntheticAgents, SayWhatIsWrong) {
  const auto first = [](const SyntheticAgentic& t) { return errors_of(agents(t)).at(0).path; };
  SyntheticAgentic t = bare();
  t.theme_mix = ThemeMix{};
  EXPECT_EQ(first(t), "data.synthetic_agentic.theme_mix");
  t = bare();
  t.duplicate_sessions_target = 5;
  EXPECT_EQ(first(t), "data.synthetic_agentic.duplicate_sessions_target");
  t = bare();
  t.turns_per_session = Distribution::fixed(0);
  EXPECT_EQ(first(t), "data.synthetic_agentic");
  t = bare();
  t.turns_per_session = Distribution::fixed(1000);
  t.max_events_per_session = 1000;
  t.num_sessions = 501;
  EXPECT_EQ(first(t), "data.synthetic_agentic.num_sessions");
  t = with_tools(1);
  t.parallel_tool_calls_per_step = Distribution::fixed(65);
  EXPECT_EQ(first(t), "data.synthetic_agentic.parallel_tool_calls_per_step");
  Config c = agents(bare());
  c.api.type = ApiType::kCompletion;
  EXPECT_EQ(errors_of(c).at(0).path, "api.type");
}

TEST(SyntheticAgents, RefuseWhatTheModelCannotTake) {
  SyntheticAgentic t = with_tools(2);
  t.shared_system_prompt_len = 1000;
  // 1,000 + 8 * 380 + 500 + 2 * (40 + 40) + 40.
  t.max_model_len = 4740;
  make(agents(t));
  t.max_model_len = 4739;
  EXPECT_EQ(errors_of(agents(t)).at(0).path, "data.synthetic_agentic.max_model_len");
}

}  // namespace
}  // namespace routesim::workloads::inference_perf
