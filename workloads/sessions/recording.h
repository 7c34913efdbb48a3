// From what a recorder saw of a session to the session itself. Recorders differ in their files;
// readers in tools/ingest make a Recording of each.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "workloads/sessions/session.h"

namespace routesim::workloads {

/// A piece of an answer that was recorded in pieces.
struct RecordedPart {
  bool tool_call = false;
  std::string text;
  std::string id;  ///< Id of a tool call; may be empty.
};

/// One message as it was recorded. Only an answer has `parts`.
struct RecordedMessage {
  std::string role;
  std::string text;                     ///< Messages with equal texts are equal.
  std::vector<std::string> call_ids{};  ///< Ids of the tool calls it makes.
  std::vector<RecordedPart> parts{};
  MessageTokens tokens{};  ///< Null where only the text is known.
};
using RecordedMessagePtr = std::shared_ptr<const RecordedMessage>;

/// The facts about one call.
struct RecordedCall {
  std::int64_t start_ms = 0, end_ms = 0;
  std::vector<RecordedMessagePtr> messages;
  RecordedMessagePtr answer;  ///< Null when none was recorded.
  std::optional<std::int64_t> prompt_tokens{};
  std::optional<std::int64_t> output_tokens{};
  std::string tools{};              ///< Definitions of tools as text; empty without any.
  bool answer_calls_tools = false;  ///< The recorded answer does.
};

/// How texts are written: in characters, or in symbols of 8 bytes, of which a text holds whole
/// ones only. Messages of symbols know their tokens.
enum class TextUnit { kCharacters, kSymbols };

/// One session as it was recorded: its calls in the order of their starts.
struct Recording {
  std::string name;
  TextUnit unit = TextUnit::kCharacters;
  std::vector<RecordedCall> calls;
};

/// Output tokens of a call whose record gives none: the default of the tool's client.
inline constexpr std::int64_t kClientMaxTokens = 30;
/// The tool's client allows a call that uses tools at least this many output tokens.
inline constexpr std::int64_t kToolCallTokens = 4096;

/// The largest session: beyond these numbers its graph takes gigabytes.
inline constexpr std::size_t kMostCalls = 20'000;
inline constexpr std::size_t kMostMessages = 30'000'000;  ///< In all its calls together.

struct CallNode {
  std::vector<std::uint32_t> predecessors;  ///< First the ones found by their answers.
  std::int64_t wait_ms = 0;                 ///< From the end of the last predecessor to the start.
  std::vector<PromptPart> parts;
};

/// A call depends on each earlier one whose answer stands in its messages (as a text, by the ids of
/// its tool calls, or piece by piece), unless that one is an ancestor of another such; and on the
/// latest to start that had ended when it started. Follows inference-perf's replay_graph_builder.
std::vector<CallNode> build_call_graph(const std::vector<RecordedCall>& calls, TextUnit unit);

/// The changes that a replay makes to a recording.
struct RecordingRules {
  std::int64_t max_wait_ms = 15000;     ///< Longest wait after the last predecessor.
  bool repeats_answers = false;         ///< Later prompts hold recorded answers, not real ones.
  bool tool_calls_may_be_long = false;  ///< Answers that call tools may take kToolCallTokens.
};

/// Makes sessions of recordings. Where only texts are known, equal texts are equal tokens in all
/// sessions; how many is told by the recorded prompts: what a prompt has more than what is known is
/// shared out among its new texts by their characters. Without a prompt's tokens a token has four
/// characters.
class SessionMaker {
 public:
  explicit SessionMaker(const RecordingRules& rules) : rules_(rules) {}

  /// Adds the session of a recording; one without calls is left out.
  void add(Recording recording);
  /// Takes all sessions.
  Sessions take() { return std::move(sessions_); }

 private:
  using Lengths = std::vector<std::vector<std::int64_t>>;  // Tokens of each call's messages.

  SessionCall make_call(const RecordedCall& recorded, CallNode node);
  void decide_texts(const RecordedCall& recorded, const SessionCall& call, const Session& session,
                    Lengths& lengths);
  void share_out(const std::vector<const std::string*>& fresh, std::int64_t characters,
                 std::int64_t left);
  MessageTokens find(const std::string& text) const;
  void decide(const std::string& text, std::int64_t tokens);

  RecordingRules rules_;
  Sessions sessions_;
  std::unordered_map<std::uint64_t, MessageTokens> known_;  // By hash of the text; looked up only.
};

}  // namespace routesim::workloads
