// Threads for the k6 chat scenario: made to published totals, or chosen from the real file.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "workloads/conversations/conversations.h"
#include "workloads/prompts.h"

namespace routesim::workloads {
namespace {

/// The quantile function of the standard normal (Acklam's rational approximation; its error of
/// 1e-9 is far below what a length of whole tokens can show).
double normal_quantile(double p) {
  static constexpr double kA[] = {-3.969683028665376e+01, 2.209460984245205e+02,
                                  -2.759285104469687e+02, 1.383577518672690e+02,
                                  -3.066479806614716e+01, 2.506628277459239e+00};
  static constexpr double kB[] = {-5.447609879822406e+01, 1.615858368580409e+02,
                                  -1.556989798598866e+02, 6.680131188771972e+01,
                                  -1.328068155288572e+01};
  static constexpr double kC[] = {-7.784894002430293e-03, -3.223964580411365e-01,
                                  -2.400758277161838e+00, -2.549732539343734e+00,
                                  4.374664141464968e+00,  2.938163982698783e+00};
  static constexpr double kD[] = {7.784695709041462e-03, 3.224671290700398e-01,
                                  2.445134137142996e+00, 3.754408661907416e+00};
  const auto tail = [](double q) {
    return (((((kC[0] * q + kC[1]) * q + kC[2]) * q + kC[3]) * q + kC[4]) * q + kC[5]) /
           ((((kD[0] * q + kD[1]) * q + kD[2]) * q + kD[3]) * q + 1);
  };
  if (p < 0.02425) return tail(std::sqrt(-2 * std::log(p)));
  if (p > 1 - 0.02425) return -tail(std::sqrt(-2 * std::log(1 - p)));
  const double q = p - 0.5, r = q * q;
  return (((((kA[0] * r + kA[1]) * r + kA[2]) * r + kA[3]) * r + kA[4]) * r + kA[5]) * q /
         (((((kB[0] * r + kB[1]) * r + kB[2]) * r + kB[3]) * r + kB[4]) * r + 1);
}

/// Numbers of human messages whose sum is exactly `total`: the quantiles of a shifted lognormal
/// (so that every seed has the same heavy tail), its location chosen by bisection, the rest spread
/// one by one.
std::vector<std::int64_t> turn_counts(std::int64_t threads, std::int64_t total,
                                      const ThreadTotals& totals) {
  const auto n = static_cast<std::size_t>(threads);
  std::vector<double> shape(n);
  for (std::size_t i = 0; i < n; ++i)
    shape[i] = std::exp(totals.turns_sigma *
                        normal_quantile((static_cast<double>(i) + 0.5) / static_cast<double>(n)));
  const auto counts = [&](double scale) {
    std::vector<std::int64_t> out(n);
    for (std::size_t i = 0; i < n; ++i)
      out[i] = totals.min_messages + static_cast<std::int64_t>(scale * shape[i]);
    return out;
  };
  const auto sum = [](const std::vector<std::int64_t>& v) {
    std::int64_t s = 0;
    for (const std::int64_t x : v) s += x;
    return s;
  };
  double low = 0, high = 1;
  while (sum(counts(high)) <= total) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (sum(counts(middle)) <= total ? low : high) = middle;
  }
  std::vector<std::int64_t> out = counts(low);
  const std::int64_t missing = total - sum(out);
  for (std::int64_t i = 0; i < missing; ++i) ++out[static_cast<std::size_t>(i % threads)];
  return out;
}

/// Most answers fill max_tokens, the others end anywhere before, so that the mean is as wanted.
std::int64_t answer_tokens(const ConversationsConfig& config, RandomStream& random) {
  const auto most = static_cast<double>(config.max_tokens);
  const double mean = config.mean_completion_tokens;
  if (config.max_tokens <= 1) return 1;
  if (mean < most / 2) {
    // Uniform on 1 … 2 mean - 1.
    const auto top = std::max<std::int64_t>(std::llround(2 * mean - 1), 1);
    return 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(top)));
  }
  const double full = (mean - most / 2) / (most / 2);
  if (random.uniform() < full) return config.max_tokens;
  return 1 +
         static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(config.max_tokens - 1)));
}

/// The random shape of a thread's text before its scale is known.
struct ThreadShape {
  std::vector<double> weights{};  // Shares of the messages; they sum to 1.
  std::vector<std::int64_t> answers{};
  double excess = 0;  // Relative amount of text beyond the filter's minimum.
};

ThreadShape make_shape(const ConversationsConfig& config, std::int64_t turns, std::uint64_t seed,
                       std::uint64_t thread) {
  RandomStream random(seed, Stream::kConversations, thread + 1);
  const double sigma = config.totals.lengths_sigma;
  ThreadShape shape;
  double sum = 0;
  for (std::int64_t t = 0; t < turns; ++t) {
    shape.weights.push_back(std::exp(sigma * random.normal()));
    sum += shape.weights.back();
    shape.answers.push_back(answer_tokens(config, random));
  }
  for (double& w : shape.weights) w /= sum;
  // Longer threads carry more text.
  shape.excess = static_cast<double>(turns) * std::exp(sigma * random.normal() - sigma * sigma / 2);
  return shape;
}

ChatThread make_thread(const ConversationsConfig& config, const ThreadShape& shape, double scale,
                       std::uint64_t seed, std::uint64_t thread) {
  const ThreadTotals& totals = config.totals;
  const double least = static_cast<double>(totals.min_characters) / totals.characters_per_token;
  const double human = std::min(least + scale * shape.excess,
                                std::max(least, static_cast<double>(totals.max_thread_tokens)));
  ChatThread out;
  for (std::size_t t = 0; t < shape.weights.size(); ++t)
    out.turns.push_back({.content = content_id(seed, ContentKind::kMessage, thread, t),
                         .tokens = std::max<std::int64_t>(
                             static_cast<std::int64_t>(std::ceil(human * shape.weights[t])), 1),
                         .answer_tokens = shape.answers[t]});
  return out;
}

std::int64_t total_prompt_tokens(const std::vector<ChatThread>& threads,
                                 const ChatTemplate& chat_template) {
  std::int64_t sum = 0;
  for (const ChatThread& thread : threads) sum += prompt_tokens(thread, chat_template);
  return sum;
}

}  // namespace

std::vector<ChatThread> synthetic_threads(const ConversationsConfig& config, std::uint64_t seed) {
  const double share = static_cast<double>(config.threads) / 1000;
  const auto requests =
      std::max(std::llround(static_cast<double>(config.totals.requests) * share),
               static_cast<long long>(config.threads * config.totals.min_messages));
  const auto tokens = std::llround(static_cast<double>(config.totals.prompt_tokens) * share);
  std::vector<std::int64_t> turns = turn_counts(config.threads, requests, config.totals);
  RandomStream order(seed, Stream::kConversations, 0);
  order.shuffle(turns.begin(), turns.end());
  std::vector<ThreadShape> shapes;
  shapes.reserve(turns.size());
  for (std::size_t i = 0; i < turns.size(); ++i)
    shapes.push_back(make_shape(config, turns[i], seed, i));
  const auto threads_at = [&](double scale) {
    std::vector<ChatThread> out;
    out.reserve(shapes.size());
    for (std::size_t i = 0; i < shapes.size(); ++i)
      out.push_back(make_thread(config, shapes[i], scale, seed, i));
    return out;
  };
  // More text, more prompt tokens: bisection. The upper end is where every thread is at its cap.
  double low = 0, high = static_cast<double>(config.totals.max_thread_tokens);
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    const bool fewer = total_prompt_tokens(threads_at(middle), config.chat_template) <= tokens;
    (fewer ? low : high) = middle;
  }
  return threads_at(low);
}

std::vector<ChatThread> sharegpt_threads(const ConversationsConfig& config, std::uint64_t seed,
                                         ConversationReader& reader) {
  // The scenario keeps the first 2,000 that pass and iteration i takes thread i mod kept.
  constexpr std::size_t kKept = 2000;
  const auto wanted = static_cast<std::size_t>(config.threads);
  std::vector<ChatThread> kept;
  Conversation conversation;
  while (kept.size() < std::min(kKept, wanted) && reader.next(conversation)) {
    const std::vector<Message>& messages = conversation.messages;
    if (messages.empty() || !messages[0].human || messages[0].characters == 0) continue;
    std::int64_t characters = 0, count = 0;
    for (const Message& m : messages) {
      if (!m.human) continue;
      characters += m.characters;
      ++count;
    }
    if (characters < config.totals.min_characters || count < config.totals.min_messages) continue;
    RandomStream random(seed, Stream::kConversations, kept.size() + 1);
    ChatThread thread;
    for (const Message& m : messages)
      if (m.human)
        thread.turns.push_back({.content = content_id(0, ContentKind::kText, m.text),
                                .tokens = std::max<std::int64_t>(m.tokens, 1),
                                .answer_tokens = answer_tokens(config, random)});
    kept.push_back(std::move(thread));
  }
  return kept;
}

void repeat_threads(std::size_t wanted, std::vector<ChatThread>& threads) {
  const std::size_t had = threads.size();
  for (std::size_t i = had; had > 0 && i < wanted; ++i) threads.push_back(threads[i % had]);
}

}  // namespace routesim::workloads
