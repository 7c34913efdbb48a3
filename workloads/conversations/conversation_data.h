// Conversations as data: who said how much. Texts are known by a hash and a length, never kept.
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "workloads/load_traits.h"
#include "workloads/traces/text_blocks.h"

namespace routesim::workloads {

/// One message of a conversation.
struct Message {
  bool human = false;
  std::int64_t characters = 0;  ///< Unicode code points.
  std::int64_t tokens = 0;      ///< Estimated from the characters unless the file says.
  std::uint64_t text = 0;       ///< Hash of the bytes: equal texts are equal contents.
};

struct Conversation {
  std::vector<Message> messages{};
  std::int64_t record = 0;  ///< Position in the file, from 1.
};

/// A stream of conversations.
class ConversationReader {
 public:
  virtual ~ConversationReader() = default;
  /// False at the end, and after an error, which is then in diagnostics().
  virtual bool next(Conversation& conversation) = 0;
  virtual const Diagnostics& diagnostics() const = 0;
};

/// ShareGPT: a JSON array of {id, conversations: [{from, value}]}, read record by record. `from` is
/// `human` or `user` for the human's side; everything else answers. Tokens are estimated from
/// the characters: `characters_per_token` of them, but wide ones by their own number. A
/// `num_tokens` of a message counts instead (the production stack's data_preprocessing.py).
std::unique_ptr<ConversationReader> make_sharegpt_reader(
    std::unique_ptr<std::istream> in, std::string file,
    double characters_per_token = kCharactersPerToken);

/// `vllm bench` custom data: one {"prompt": text, "output_tokens": n} per line, as a conversation
/// of one human message and, when output_tokens is there, an answer of that length.
std::unique_ptr<ConversationReader> make_prompt_reader(
    std::unique_ptr<std::istream> in, std::string file,
    double characters_per_token = kCharactersPerToken);

}  // namespace routesim::workloads
