// Where the answer of one recorded call stands in the messages of another. Private to workloads/.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "workloads/sessions/replay_graph.h"

namespace routesim::workloads {

/// The messages of one call, indexed for many answers.
class MessageIndex {
 public:
  MessageIndex(const RecordedCall& call, TextUnit unit);

  /// The first assistant message that is the text or holds it.
  struct Found {
    std::size_t message = 0;
    bool whole = false;  ///< It is the text.
  };
  std::optional<Found> find_text(std::string_view text) const;
  /// The first assistant message from `from` on that is the text.
  std::optional<std::size_t> find_whole(std::string_view text, std::size_t from) const;
  /// The first message from `from` on that makes all these tool calls.
  std::optional<std::size_t> find_calls(const std::vector<std::string>& ids,
                                        std::size_t from) const;
  /// Whether every tool call of the answer stands in some message. False without ids.
  bool has_calls(const RecordedMessage& answer) const;
  /// Whether the pieces of the answer stand in messages one after another, with or without its
  /// text, or its text before each of its tool calls.
  bool has_pieces(const RecordedMessage& answer) const;

 private:
  bool holds(std::size_t message, std::string_view text) const;
  bool is_or_holds(std::size_t message, std::string_view text) const;
  bool follow(const std::vector<const RecordedPart*>& parts, std::string_view before) const;
  bool follow_from(std::size_t message, const std::vector<const RecordedPart*>& parts,
                   std::string_view before) const;

  const RecordedCall& call_;
  TextUnit unit_;
  std::vector<std::size_t> assistants_;
  std::size_t longest_ = 0;                                               // Of their texts.
  std::unordered_map<std::string_view, std::vector<std::size_t>> whole_;  // Looked up only.
  std::unordered_map<std::string_view, std::vector<std::size_t>> calls_;  // Looked up only.
  std::unordered_set<std::string_view> symbols_;  // Of assistant texts, when made of them.
};

}  // namespace routesim::workloads
