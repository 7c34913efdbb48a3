// Facts about a load tool that its own config file does not say.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/describe.h"
#include "workloads/distributions.h"

namespace routesim::workloads {

/// The source of the prompt of a stage's first request in shared_prefix data. The tool's source
/// restarts at prompt 0 in every stage; published descriptions of runs say that the list goes on.
enum class PromptIndexing { kRestart, kContinue };

/// inference-perf multi-turn chat over the releases. `kRepeatPrompt`: every round sends the context
/// so far and then the whole prompt (prefix and question) again. `kAppendQuestion` (v0.3, and again
/// in the newest): the context starts as the prefix and each round appends the question.
enum class MultiTurnStyle { kRepeatPrompt, kAppendQuestion };

/// English text; the estimate that routers themselves make.
inline constexpr double kTextBytesPerToken = 4;
/// Tokens drawn evenly from the vocabulary and decoded: most entries are rare, long words.
/// 40,000 tokens of cl100k_base, which the vocabularies of Llama 3 and Qwen extend, give 6.445
/// bytes each, and 1.049 tokens each when tokenised again (inference-perf's log: 1.053).
/// o200k_base: 6.8.
inline constexpr double kRandomBytesPerToken = 6.1;

/// Tokens a server's chat template wraps around messages. All zero (the default) means that
/// lengths already count them, or that the completion API is used.
struct ChatTemplate {
  std::int64_t preamble_tokens = 0;  ///< Once at the start (begin-of-text, default system prompt).
  std::int64_t message_tokens = 0;   ///< Per message, before its text (role header, separators).
  std::int64_t reply_tokens = 0;     ///< Once at the end (header of the answer to come).
  bool operator==(const ChatTemplate&) const = default;
};

void describe(Describer& d, ChatTemplate& t);

/// Options of every load tool.
struct WorkloadOptions {
  std::uint64_t seed = 1;  ///< Seed of the run. Not described: the scenario sets it.
  /// Worker processes when the file does not say: inference-perf takes the CPU count of the client
  /// pod, which no published report states. 224 is what the January 2026 llm-d template used.
  std::int32_t default_workers = 224;
  PromptIndexing prompt_indexing = PromptIndexing::kRestart;
  MultiTurnStyle multi_turn = MultiTurnStyle::kRepeatPrompt;
  /// Server tokens per token asked for, in random-token system prompts and questions. Older tools
  /// send decoded text, and re-tokenising makes it longer: 7,584 for 7,200 asked is 1.0533.
  double prompt_token_scale = 1;
  /// Bytes of prompt text per server token, for routers that cut text. Absent: kRandomBytesPerToken
  /// where the tool decodes random tokens, else kTextBytesPerToken.
  std::optional<double> bytes_per_token{};
  /// The first stages are warm-up: they run, and are left out of reports (inference-perf).
  std::int32_t warmup_stages = 0;
  /// Length of the answer the model would give by itself; used (capped at max_tokens) only where
  /// the tool does not ignore end-of-sequence. Absent: answers run to max_tokens.
  std::optional<Distribution> natural_answer{};
  /// Client time after each answer of inference-perf's conversation_replay, as the tool call that
  /// follows it: the tool has not taken the end time yet.
  Duration turn_work{};
  ChatTemplate chat_template{};  ///< Added to every prompt of a chat API.
};

void describe(Describer& d, WorkloadOptions& t);

}  // namespace routesim::workloads

template <>
struct routesim::EnumNames<routesim::workloads::PromptIndexing> {
  static constexpr std::array<std::string_view, 2> value = {"restart", "continue"};
};
template <>
struct routesim::EnumNames<routesim::workloads::MultiTurnStyle> {
  static constexpr std::array<std::string_view, 2> value = {"repeat_prompt", "append_question"};
};
