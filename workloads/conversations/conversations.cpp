#include "workloads/conversations/conversations.h"

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "workloads/prompts.h"

namespace routesim::workloads {
namespace {

constexpr std::string_view kClosedLoop =
    "conversations are a closed loop: each client waits for its answers";

/// V virtual users and the threads they share (k6's shared-iterations executor).
class ConversationClient final : public LoadGenerator {
 public:
  ConversationClient(const ConversationsConfig& config, std::uint64_t seed,
                     std::vector<ChatThread> threads, std::vector<StageInfo> infos)
      : config_(config),
        frame_(config.chat_template, seed),
        seed_(seed),
        threads_(std::move(threads)),
        infos_(std::move(infos)) {
    start_stage(SimTime::zero());
  }

  const std::vector<StageInfo>& stages() const override { return infos_; }
  SimTime next_action() const override {
    return ready_.empty() ? SimTime::max() : std::max(ready_at_, now_);
  }
  bool finished() const override { return stage_ == infos_.size(); }

  void advance(SimTime now, std::vector<Request>& out) override {
    now_ = now;
    if (ready_.empty() || now < ready_at_) return;
    // Users act in the order they became ready.
    std::vector<std::size_t> ready;
    ready.swap(ready_);
    for (const std::size_t user : ready) send(user, now, out);
  }

  void on_completed(const Request& request, Outcome outcome, SimTime now) override {
    now_ = std::max(now_, now);
    const auto found = user_of_.find(request.id.value());
    ROUTESIM_CHECK(found != user_of_.end(), "completion of a request that is not in flight");
    const std::size_t index = found->second;
    user_of_.erase(found);
    --in_flight_;
    User& user = users_[index];
    const ChatThread& thread = threads_[user.thread];
    ++user.turn;
    // The script does the same: a refused request ends the thread, and after a timeout the user
    // goes on with the next message although nobody answered this one.
    const bool goes_on =
        outcome != Outcome::kError && user.turn < thread.turns.size() && now < cut_;
    if (goes_on) {
      user.history = outcome == Outcome::kSuccess ? with_answer(request) : without_reply(request);
      become_ready(index, now);
    } else if (next_thread_ < threads_.size() && now < last_start_) {
      take_thread(user);
      become_ready(index, now);
    }
    if (ready_.empty() && in_flight_ == 0) {
      ++stage_;
      if (!finished()) start_stage(now);
    }
  }

 private:
  struct User {
    std::size_t thread = 0;
    std::size_t turn = 0;
    std::vector<Segment> history{};  // Everything up to and including the last answer.
  };

  /// The prompt without the header of the answer that never came.
  std::vector<Segment> without_reply(const Request& request) const {
    std::vector<Segment> segments = request.prompt->segments;
    segments.back().length -= config_.chat_template.reply_tokens;
    if (segments.back().length == 0) segments.pop_back();
    return segments;
  }

  void start_stage(SimTime start) {
    next_thread_ = 0;
    const bool limited = config_.max_duration_s > 0;
    last_start_ = limited ? start + Duration::from_seconds(config_.max_duration_s) : SimTime::max();
    cut_ = limited ? last_start_ + Duration::from_seconds(config_.graceful_stop_s) : SimTime::max();
    users_.assign(std::min(static_cast<std::size_t>(config_.virtual_users), threads_.size()), {});
    for (std::size_t i = 0; i < users_.size(); ++i) {
      take_thread(users_[i]);
      become_ready(i, start);
    }
  }

  void take_thread(User& user) {
    user.thread = next_thread_++;
    user.turn = 0;
    user.history.clear();
  }

  void become_ready(std::size_t user, SimTime now) {
    ready_.push_back(user);
    ready_at_ = now;
  }

  void send(std::size_t index, SimTime now, std::vector<Request>& out) {
    User& user = users_[index];
    const ChatThread::Turn& turn = threads_[user.thread].turns[user.turn];
    PromptBuilder prompt;
    prompt.reserve(user.history.size() + 4);
    if (user.history.empty())
      frame_.preamble(prompt);
    else
      prompt.append(user.history);
    frame_.header(prompt);
    if (user.history.empty()) {
      prompt.preamble_is_done();
      preamble_tokens_ = prompt.tokens();
    } else {
      prompt.preamble_is(preamble_tokens_);
    }
    prompt.append(turn.content, turn.tokens);
    frame_.reply(prompt);

    Request request;
    request.id = RequestId(next_id_);
    request.prompt = std::move(prompt).build(next_id_);
    request.max_tokens = config_.max_tokens;
    request.output_tokens = turn.answer_tokens;
    // Temperature 0: the same question gets the same answer, in a preloading run too.
    request.output_content = content_id(seed_, ContentKind::kAnswer, user.thread, user.turn);
    request.stage = StageId(stage_);
    request.session = user.thread + 1;
    request.due = now;
    if (config_.request_timeout_s > 0)
      request.timeout = Duration::from_seconds(config_.request_timeout_s);
    if (cut_ != SimTime::max()) request.timeout = std::min(request.timeout, cut_ - now);
    user_of_.emplace(request.id.value(), index);
    ++next_id_;
    ++in_flight_;
    out.push_back(std::move(request));
  }

  ConversationsConfig config_;
  ChatFrame frame_;
  std::uint64_t seed_;
  std::vector<ChatThread> threads_;
  std::vector<StageInfo> infos_;
  std::size_t stage_ = 0;
  SimTime now_;
  SimTime last_start_ = SimTime::max();  // No thread starts at or after this.
  SimTime cut_ = SimTime::max();         // Whatever still runs is cancelled then.
  std::size_t next_thread_ = 0;
  std::vector<User> users_;
  std::vector<std::size_t> ready_;
  SimTime ready_at_;
  std::int64_t preamble_tokens_ = 0;
  std::int64_t in_flight_ = 0;
  std::uint64_t next_id_ = 0;
  std::unordered_map<std::uint32_t, std::size_t> user_of_;  // Looked up, never iterated.
};

/// All threads are in memory, some 75 bytes per request: at most 750 MB.
constexpr std::int64_t kMostRequests = 10'000'000;

void refuse_memory(const char* path, double requests, Diagnostics& out) {
  if (requests <= static_cast<double>(kMostRequests)) return;
  const std::string shown =
      requests < 1e15 ? std::to_string(static_cast<std::int64_t>(requests)) : "more than 10^15";
  out.error({}, path,
            "the threads have " + shown + " requests, and all are kept in memory: at most " +
                std::to_string(kMostRequests),
            "take fewer threads, or workload.groups, which sends any number");
}

void check(const ConversationsConfig& c, bool synthetic, Diagnostics& out) {
  if (c.mean_completion_tokens > static_cast<double>(c.max_tokens))
    out.error({}, "mean_completion_tokens", "must not exceed max_tokens");
  const auto threads = static_cast<double>(c.threads);
  if (synthetic)
    refuse_memory("threads",
                  threads * std::max(static_cast<double>(c.totals.requests) / 1000,
                                     static_cast<double>(c.totals.min_messages)),
                  out);
}

std::int64_t total_requests(const std::vector<ChatThread>& threads) {
  std::int64_t n = 0;
  for (const ChatThread& thread : threads) n += static_cast<std::int64_t>(thread.turns.size());
  return n;
}

std::vector<ChatThread> read_threads(const ConversationsConfig& config, std::uint64_t seed,
                                     const ConversationOpener& open, Diagnostics& out) {
  const std::unique_ptr<ConversationReader> reader = open();
  std::vector<ChatThread> threads = sharegpt_threads(config, seed, *reader);
  for (const Diagnostic& d : reader->diagnostics().items()) out.add(d);
  if (!threads.empty() && !out.has_errors()) {
    refuse_memory("threads",
                  static_cast<double>(total_requests(threads)) /
                      static_cast<double>(threads.size()) * static_cast<double>(config.threads),
                  out);
    if (!out.has_errors()) repeat_threads(static_cast<std::size_t>(config.threads), threads);
  }
  if (threads.empty() && !out.has_errors())
    out.error({}, "conversations", "no conversation of the file passes the scenario's filter");
  return threads;
}

/// Synthetic threads are made to totals; say so when they cannot be reached.
void check_totals(const ConversationsConfig& config, const std::vector<ChatThread>& threads,
                  Diagnostics& out) {
  std::int64_t tokens = 0;
  for (const ChatThread& thread : threads) tokens += prompt_tokens(thread, config.chat_template);
  const double share = static_cast<double>(config.threads) / 1000;
  const double wanted = static_cast<double>(config.totals.prompt_tokens) * share;
  const double got = static_cast<double>(tokens);
  if (got < 0.98 * wanted || got > 1.02 * wanted)
    out.warning({}, "totals.prompt_tokens",
                "the threads come to " + std::to_string(tokens) + " prompt tokens (wanted " +
                    std::to_string(static_cast<std::int64_t>(wanted)) + ")",
                "the filter's minimum or max_thread_tokens leave no room");
}

}  // namespace

std::int64_t prompt_tokens(const ChatThread& thread, const ChatTemplate& t) {
  std::int64_t history = t.preamble_tokens;
  std::int64_t total = 0;
  for (const ChatThread::Turn& turn : thread.turns) {
    history += t.message_tokens + turn.tokens + t.reply_tokens;
    total += history;
    history += turn.answer_tokens;
  }
  return total;
}

void describe(Describer& d, ThreadTotals& t) {
  const IntRange count{1, 1'000'000'000'000};
  const RealRange sigma{.min = 0, .max = 3};
  field(d, {"requests", "Requests of 1,000 threads."}, t.requests, count);
  field(d, {"prompt_tokens", "Prompt tokens of all requests of 1,000 threads."}, t.prompt_tokens,
        count);
  field(d, {"min_messages", "Fewest human messages of a thread."}, t.min_messages,
        IntRange{1, 10'000});
  field(d, {"min_characters", "Fewest human characters of a thread."}, t.min_characters,
        IntRange{0, 10'000'000});
  field(d, {"characters_per_token", "Characters per token."}, t.characters_per_token,
        RealRange{.min = 0.1, .max = 100});
  field(d, {"turns_sigma", "Log-deviation of messages beyond the minimum."}, t.turns_sigma, sigma);
  field(d, {"lengths_sigma", "Log-deviation of message and thread lengths."}, t.lengths_sigma,
        sigma);
  field(d, {"max_thread_tokens", "Human tokens of the longest thread."}, t.max_thread_tokens,
        count);
}

void describe(Describer& d, ConversationsConfig& t) {
  const RealRange seconds{.min = 0, .max = 1e8};
  field(d, {"sharegpt_path", "A ShareGPT file; synthetic conversations when absent."},
        t.sharegpt_path);
  field(d, {"virtual_users", "Users who talk at the same time."}, t.virtual_users,
        IntRange{1, 10'000'000});
  field(d, {"threads", "Conversations, each held once."}, t.threads, IntRange{1, 10'000'000});
  field(d, {"max_tokens", "Tokens asked for per answer."}, t.max_tokens, IntRange{1, 1'000'000});
  field(d, {"mean_completion_tokens", "Mean tokens of the answers that come."},
        t.mean_completion_tokens, RealRange{.min = 1, .max = 1e6});
  field(d, {"max_duration_s", "Seconds after which no conversation starts; 0 is no limit."},
        t.max_duration_s, seconds);
  field(d, {"graceful_stop_s", "Seconds after that until running ones are cut."}, t.graceful_stop_s,
        seconds);
  field(d, {"request_timeout_s", "Seconds after which the client gives up; 0 is never."},
        t.request_timeout_s, seconds);
  field(d, {"preloaded", "Run the same threads once before, unreported, to fill the caches."},
        t.preloaded);
  field(d, {"totals", "What the synthetic threads add up to."}, t.totals);
  field(d, {"chat_template", "Tokens the server's chat template adds."}, t.chat_template);
}

LoadTraits traits_of(const ConversationsConfig&) {
  return {.is_chat = true, .own_times = kClosedLoop};
}

std::vector<LoadFile> files_of(const ConversationsConfig& config) {
  if (!config.sharegpt_path) return {};
  return {{.kind = LoadFile::Kind::kShareGpt,
           .key = "conversations.sharegpt_path",
           .path = *config.sharegpt_path}};
}

std::string scale_rates(ConversationsConfig&, double) { return std::string(kClosedLoop); }

std::string hold_rate(ConversationsConfig&, double, double) { return std::string(kClosedLoop); }

std::unique_ptr<LoadGenerator> make_load_generator(const ConversationsConfig& config,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics) {
  const ConversationOpener& conversations = inputs.conversations;
  Diagnostics found;
  check(config, !conversations, found);
  std::vector<ChatThread> threads;
  if (!found.has_errors()) {
    if (conversations) {
      threads = read_threads(config, options.seed, conversations, found);
    } else {
      threads = synthetic_threads(config, options.seed);
      check_totals(config, threads, found);
    }
  }
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  if (found.has_errors()) return nullptr;
  StageInfo info;
  info.name = "main";
  info.requests = config.max_duration_s > 0 ? -1 : total_requests(threads);
  info.concurrency = info.in_flight_cap = config.virtual_users;
  std::vector<StageInfo> infos = {info};
  if (config.preloaded) {
    StageInfo preload = info;
    preload.name = "preload";
    preload.reported = false;
    preload.is_preparation = true;
    infos.insert(infos.begin(), preload);
  }
  return std::make_unique<ConversationClient>(config, options.seed, std::move(threads),
                                              std::move(infos));
}

}  // namespace routesim::workloads
