// Closed-loop chats with growing context: KubeAI's k6 scenario (`benchmarks/chat/k6.js`).
//
// V virtual users share a number of threads. A user takes the next thread, sends its human messages
// one by one, each time with the whole conversation so far including the real answers, without
// think time, then takes the next thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "workloads/conversations/conversation_data.h"
#include "workloads/load_generator.h"
#include "workloads/options.h"

namespace routesim::workloads {

/// Totals the synthetic threads are made to match. Defaults: what KubeAI's runs over ShareGPT
/// reported (7,341 requests, 4.99 M prompt tokens, 68 k completion tokens in 1,000 threads).
struct ThreadTotals {
  std::int64_t requests = 7341;
  std::int64_t prompt_tokens = 4'990'000;  ///< Over all requests, histories and template included.
  std::int64_t min_messages = 5;           ///< The scenario's filter on human messages per thread.
  std::int64_t min_characters = 2500;      ///< The scenario's filter on human characters.
  double characters_per_token = kCharactersPerToken;
  double turns_sigma = 0.96;   ///< Log-sd of the messages beyond the minimum (heavy tail).
  double lengths_sigma = 1.0;  ///< Log-sd of message lengths and of a thread's share of text.
  std::int64_t max_thread_tokens = 12'000;  ///< Human tokens of the longest thread.
};

void describe(Describer& d, ThreadTotals& t);

struct ConversationsConfig {
  std::optional<std::string> sharegpt_path{};  ///< The real conversations; absent: synthetic ones.
  std::int64_t virtual_users = 80;
  std::int64_t threads = 1000;  ///< Iterations shared by the users; each thread runs once.
  std::int64_t max_tokens = 10;
  double mean_completion_tokens = 9.27;  ///< Some answers end early; in [1, max_tokens].
  double max_duration_s = 600;           ///< No new thread starts after this; 0: no limit.
  double graceful_stop_s = 30;           ///< Threads still running are cut this long after that.
  double request_timeout_s = 60;         ///< k6's default for HTTP requests; 0: none.
  bool preloaded = false;                ///< An unreported run of the same threads comes first.
  ThreadTotals totals{};                 ///< Totals of the synthetic threads.
  /// Llama 3.1's: begin-of-text and the dated system header, role header and end-of-turn per
  /// message.
  ChatTemplate chat_template = {.preamble_tokens = 25, .message_tokens = 5, .reply_tokens = 4};
};

void describe(Describer& d, ConversationsConfig& t);

/// One thread: the tokens and content of each human message.
struct ChatThread {
  struct Turn {
    std::uint64_t content = 0;
    std::int64_t tokens = 0;
    std::int64_t answer_tokens = 0;
  };
  std::vector<Turn> turns{};
};

/// Threads whose sum of requests is exactly `totals.requests` and whose prompt tokens come within
/// 1 % of `totals.prompt_tokens`. Fewer or more threads than 1,000 scale both in proportion.
std::vector<ChatThread> synthetic_threads(const ConversationsConfig& config, std::uint64_t seed);

/// The scenario's own selection from a real file, in file order; at most the 2,000 it keeps.
std::vector<ChatThread> sharegpt_threads(const ConversationsConfig& config, std::uint64_t seed,
                                         ConversationReader& reader);

/// Goes round the threads until there are `wanted`, as the scenario's iterations do.
void repeat_threads(std::size_t wanted, std::vector<ChatThread>& threads);

/// The prompt tokens all requests of a thread send together.
std::int64_t prompt_tokens(const ChatThread& thread, const ChatTemplate& chat_template);

LoadTraits traits_of(const ConversationsConfig& config);
std::vector<LoadFile> files_of(const ConversationsConfig& config);
std::string scale_rates(ConversationsConfig& config, double by);
std::string hold_rate(ConversationsConfig& config, double rate, double seconds);

/// Without conversations in `inputs`, synthetic threads are used. Null after an error.
std::unique_ptr<LoadGenerator> make_load_generator(const ConversationsConfig& config,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics);

}  // namespace routesim::workloads

template <>
struct routesim::workloads::LoadKey<routesim::workloads::ConversationsConfig> {
  static constexpr Field value = {"conversations", "Closed-loop chats with growing context."};
};
