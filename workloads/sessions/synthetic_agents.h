// Sessions of agents that were never recorded, as graphs of calls. Private to workloads/.
//
// The tool writes real texts from templates. A simulation needs their lengths, and which of them
// are equal. The lengths were estimated from the templates of August 2026; the tool's own count
// says 235 to 376 tokens per tool definition.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "workloads/sessions/replay_settings.h"
#include "workloads/sessions/session.h"

namespace routesim::workloads {

/// In tokens.
struct AgentTool {
  std::int64_t call = 0;    ///< Its name and arguments.
  std::int64_t result = 0;  ///< Its answer.
};

/// In tokens.
struct AgentTheme {
  std::string_view name;
  std::int64_t definition = 0;          ///< One tool in a prompt.
  std::int64_t dump = 0;                ///< One tool as the generator counts it: twice.
  std::int64_t objective = 0;           ///< The task of an agent.
  std::int64_t follow_up = 0;           ///< A later question of the user.
  std::array<std::int64_t, 2> intro{};  ///< Documents a session may begin with.
  std::int64_t recap = 0;               ///< The least that a compacted context says.
  std::span<const AgentTool> tools{};   ///< A longer catalogue repeats them by other names.
};

/// 0: research_rag, 1: code_change_task.
const AgentTheme& agent_theme(std::size_t i);

/// System prompts to draw one from, of agents that talk to the user and of those they spawn.
inline constexpr std::array<std::int64_t, 3> kRootPromptTokens = {670, 650, 650};
inline constexpr std::array<std::int64_t, 3> kSubAgentPromptTokens = {620, 650, 670};

/// Texts that all themes share.
inline constexpr std::int64_t kFillerOpenTokens = 38;  ///< Before padding.
inline constexpr std::int64_t kFillerCloseTokens = 5;  ///< After padding.
inline constexpr std::int64_t kHeadFillerTokens = 6;   ///< Before the padding of a system prompt.
inline constexpr std::int64_t kSummaryMarkTokens = 5;  ///< "Summary of prior context:"
inline constexpr std::int64_t kAnswerDirectiveTokens = 32;  ///< Asks the root for its answer.
inline constexpr std::int64_t kReportDirectiveTokens = 42;  ///< Asks a sub-agent for its report.
inline constexpr std::int64_t kDelegateTokens = 24;         ///< Asks an agent to spawn others.
inline constexpr std::int64_t kDispatchTool = 190;          ///< Definition of the tool that spawns.
inline constexpr std::int64_t kDispatchCallTokens = 18;     ///< Its call, without the objective.
inline constexpr std::int64_t kDispatchStubTokens = 15;     ///< Its result.
inline constexpr std::int64_t kReportOpenTokens = 9;        ///< Around a report that comes in.
inline constexpr std::int64_t kReportCloseTokens = 10;
inline constexpr std::int64_t kPlaceholderTokens = 6;  ///< An answer, to who counts the transcript.
inline constexpr std::int64_t kUnknownResultTokens = 16;  ///< A tool with another name.
inline constexpr std::int64_t kCallFrameTokens = 25;      ///< Around a call in its JSON.

/// Session `index` of the tool's generator of August 2026 (sub-agents report one by one): a
/// function of the settings, `seed` and `index`. Its random numbers are ours, its distributions the
/// tool's.
///
/// A turn of the root: a principal call, then a call per result of its tools, the last of which
/// answers. With sub-agents: a call that spawns them, one that acknowledges, and one per report, in
/// the order of the sub-agents; the last answers. Each call's prompt is the one before, its answer,
/// and what is new. No more than max_events_per_session calls: a turn that does not fit is left
/// out, sub-agents that do not fit are not spawned.
Session synthetic_session(const SyntheticAgentic& settings, std::uint64_t seed,
                          std::uint32_t index);

/// All sessions of the settings, which have been checked. Null, with an error at
/// `path`num_sessions, where they are too many to keep in memory.
std::shared_ptr<const Sessions> synthetic_sessions(const SyntheticAgentic& settings,
                                                   std::uint64_t run_seed, const std::string& path,
                                                   Diagnostics& out);

}  // namespace routesim::workloads
