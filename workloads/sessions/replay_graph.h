// From recorded calls to a graph: which call waits for which, and what of its prompt comes from
// them. Follows inference-perf's replay_graph_builder. Private to workloads/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "workloads/sessions/replay_corpus.h"

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

/// The facts about a call that the graph needs.
struct RecordedCall {
  std::int64_t start_ms = 0, end_ms = 0;
  std::vector<RecordedMessagePtr> messages;
  RecordedMessagePtr answer;  ///< Null when none was recorded.
};

/// How texts are written: in characters, or in symbols of 8 bytes, of which a text holds whole
/// ones only.
enum class TextUnit { kCharacters, kSymbols };

struct GraphNode {
  std::vector<std::uint32_t> predecessors;  ///< First the ones found by their answers.
  std::int64_t wait_ms = 0;                 ///< From the end of the last predecessor to the start.
  std::vector<ReplayPart> parts;
};

/// A call depends on each earlier one whose answer stands in its messages (as a text, by the ids of
/// its tool calls, or piece by piece), unless that one is an ancestor of another such; and on the
/// latest to start that had ended when it started. `calls` are in the order of their starts.
std::vector<GraphNode> build_call_graph(const std::vector<RecordedCall>& calls, TextUnit unit);

/// Output tokens of a call whose record gives none: the default of the tool's client.
inline constexpr std::int64_t kClientMaxTokens = 30;
/// The tool's client allows a call that uses tools at least this many output tokens.
inline constexpr std::int64_t kToolCallTokens = 4096;

/// The largest session: beyond these numbers its graph takes gigabytes.
inline constexpr std::size_t kMostCalls = 20'000;
inline constexpr std::size_t kMostMessages = 30'000'000;  ///< In all its calls together.

}  // namespace routesim::workloads
