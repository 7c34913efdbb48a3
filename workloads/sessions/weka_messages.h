// The messages of a session, rebuilt from the hashes of its prompts' blocks. Private to workloads/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/sessions/replay_graph.h"
#include "workloads/sessions/weka_trace.h"

namespace routesim::workloads {

/// One conversation of a trace, request by request: what two prompts in a row have in common is
/// kept, the first new blocks are the previous answer, the rest is the user's. As inference-perf's
/// ConversationReconstructor, to the token, where the prefix ends within a message too.
class WekaMessages {
 public:
  /// Texts that no block covers belong to `conversation` of `trace`.
  WekaMessages(std::uint64_t trace, std::uint64_t conversation, std::int64_t block_size);

  /// Goes to the next request. Its tool and system prompt count for the first one only.
  void advance(const WekaRequest& request, std::int64_t prefix_tokens);

  /// The prompt's messages now.
  const std::vector<RecordedMessagePtr>& messages() const { return messages_; }
  /// The last message that is an answer; empty text when there is none.
  RecordedMessagePtr last_answer() const;
  /// An answer of that many tokens that stands in no prompt.
  RecordedMessagePtr final_answer(std::int64_t tokens) const;

 private:
  struct Stretch {
    const char* role = "user";
    std::int64_t blocks = 0;
    std::vector<Segment> tokens;
  };

  void begin(const WekaRequest& request, std::int64_t prefix_tokens);
  void truncate(std::int64_t blocks, std::int64_t previous_tail);
  void keep(std::size_t stretches);
  void cut(std::size_t stretch, std::int64_t tokens);
  void append(const char* role, std::int64_t blocks, std::vector<Segment> tokens);
  std::vector<Segment> blocks_of(const WekaRequest& request, std::int64_t from,
                                 std::int64_t to) const;
  void add_tail(std::vector<Segment>& tokens, std::int64_t length) const;

  std::uint64_t trace_, conversation_;
  std::int64_t block_size_;
  std::uint64_t turn_ = 0;  // Requests so far.
  const WekaRequest* previous_ = nullptr;
  std::vector<Stretch> stretches_;
  std::vector<RecordedMessagePtr> messages_;  // Of the stretches.
};

}  // namespace routesim::workloads
