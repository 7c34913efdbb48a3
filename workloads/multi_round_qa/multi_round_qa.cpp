#include "workloads/multi_round_qa/multi_round_qa.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "workloads/conversations/conversation_data.h"
#include "workloads/load_stages.h"
#include "workloads/multi_round_qa/multi_round_chats.h"

namespace routesim::workloads {
namespace {

constexpr std::int64_t kWarmups = 10;
constexpr std::int64_t kWarmupTokens = 100;
/// The script looks at its users every tenth of a second.
constexpr Duration kStep = Duration::milliseconds(100);

/// The flags of one call of the script.
struct Flags {
  std::int64_t num_users, num_rounds;
  double qps, time;
  std::uint64_t first_user;  ///< The number before the first user's.
};

Flags flags_of(const MultiRoundQaConfig& c, const MultiRoundRun& run) {
  return {.num_users = run.num_users.value_or(c.num_users),
          .num_rounds = run.num_rounds.value_or(c.num_rounds),
          .qps = run.qps.value_or(c.qps),
          .time = run.time.value_or(c.time),
          .first_user = static_cast<std::uint64_t>(run.init_user_id.value_or(c.init_user_id))};
}

/// One call of the script: who is there, and who asks at a step.
class Users {
 public:
  struct User {
    std::uint64_t id = 0;
    std::int64_t first_question = 0;  ///< 0 until it asks.
    std::int64_t question = 0;        ///< The latest question; users of the start have missed some.
    bool has_asked = false;           ///< Has a time since which the gap counts.
    SimTime asked;
    bool waits = false;  ///< For an answer.
    std::vector<Segment> history{};
  };

  Users(const Flags& flags, SimTime start)
      : flags_(flags),
        gap_(static_cast<double>(flags.num_users) / flags.qps),
        gap_between_users_(gap_ * static_cast<double>(flags.num_rounds - 1) /
                           static_cast<double>(flags.num_users)),
        next_id_(flags.first_user) {
    // Users are at different points of their chats, of which nothing was sent.
    const double ramp_up = static_cast<double>(flags.num_users) * gap_between_users_;
    for (std::int64_t i = 0; i < flags.num_users; ++i) {
      User& user = add();
      const double offset = ramp_up - static_cast<double>(i) * gap_between_users_;
      if (offset < 0) break;
      const auto passed = static_cast<std::int64_t>(offset / gap_);
      user.question = passed + 1;
      user.has_asked = true;
      user.asked = start - Duration::from_seconds(
                               std::max(offset - static_cast<double>(passed) * gap_, 0.0));
    }
  }

  /// Lets a user join when it is time. Then calls `ask` for each user who asks now, and drops those
  /// who are through.
  template <class F>
  void step(SimTime now, const F& ask) {
    if (!joined_ || now - last_joined_ > Duration::from_seconds(gap_between_users_)) {
      add();
      joined_ = true;
      last_joined_ = now;
    }
    std::erase_if(users_, [&](User& user) {
      if (user.question >= flags_.num_rounds && !user.waits) return true;
      const bool is_due = !user.has_asked || now - user.asked > Duration::from_seconds(gap_);
      if (!is_due || user.waits) return false;
      ++user.question;
      if (user.first_question == 0) user.first_question = user.question;
      user.has_asked = true;
      user.asked = now;
      user.waits = true;
      ask(user);
      return false;
    });
  }

  /// The user got the answer; `history` is everything so far.
  void answered(std::uint64_t id, std::vector<Segment> history) {
    const auto user =
        std::find_if(users_.begin(), users_.end(), [&](const User& u) { return u.id == id; });
    ROUTESIM_CHECK(user != users_.end(), "an answer for a user who is gone");
    user->waits = false;
    user->history = std::move(history);
  }

 private:
  User& add() {
    users_.emplace_back();
    users_.back().id = ++next_id_;
    return users_.back();
  }

  Flags flags_;
  double gap_;                // Seconds between a user's requests.
  double gap_between_users_;  // Seconds between arrivals of users.
  std::uint64_t next_id_;
  std::vector<User> users_;
  bool joined_ = false;
  SimTime last_joined_;
};

/// The runs one after the other, each with its warm-up.
class MultiRoundQa final : public LoadGenerator {
 public:
  MultiRoundQa(std::vector<Flags> runs, const MultiRoundChats& chats,
               const MultiRoundChats& warmups, Duration interval, std::vector<StageInfo> infos)
      : runs_(std::move(runs)),
        chats_(chats),
        warmups_(warmups),
        interval_(interval),
        infos_(std::move(infos)) {}

  const std::vector<StageInfo>& stages() const override { return infos_; }
  SimTime next_action() const override { return finished() ? SimTime::max() : next_; }
  bool finished() const override { return stage_ == infos_.size(); }

  void advance(SimTime now, std::vector<Request>& out) override {
    if (finished() || now < next_) return;
    if (is_warmup()) {
      for (std::uint64_t i = 0; i < kWarmups; ++i) {
        Request& request = make(now, 0, out);
        warmups_.fill(warmups_.warmup(i), ~0ULL, i, kWarmupTokens, request);
      }
      next_ = SimTime::max();
      return;
    }
    users_->step(now, [&](const Users::User& user) {
      Request& request = make(now, user.id, out);
      const std::uint64_t question = static_cast<std::uint64_t>(user.first_question) << 32 |
                                     static_cast<std::uint64_t>(user.question);
      chats_.fill(user.history.empty() ? chats_.opening(user.id, user.question)
                                       : chats_.next(user.history, user.id, user.question),
                  user.id, question, chats_.answer_tokens(user.id, user.question), request);
    });
    next_ = now + kStep;
    if (next_ <= end_) return;
    next_ = SimTime::max();
    if (in_flight_ == 0) end_stage(now);
  }

  void on_completed(const Request& request, Outcome outcome, SimTime now) override {
    ROUTESIM_CHECK(in_flight_ > 0, "completion of a request that is not in flight");
    --in_flight_;
    // After an error the script's user waits for ever.
    if (request.session != 0 && outcome == Outcome::kSuccess)
      users_->answered(request.session, with_answer(request));
    if (in_flight_ == 0 && next_ == SimTime::max()) end_stage(now);
  }

 private:
  bool is_warmup() const { return stage_ % 2 == 0; }

  /// Requests under way at the end of a run end by themselves; the script drops them.
  void end_stage(SimTime now) {
    ++stage_;
    if (finished()) return;
    next_ = now;
    if (is_warmup()) {
      next_ = std::max(now, end_ + interval_);
      return;
    }
    const Flags& run = runs_[stage_ / 2];
    users_.emplace(run, now);
    end_ = now + Duration::from_seconds(run.time);
  }

  Request& make(SimTime now, std::uint64_t session, std::vector<Request>& out) {
    Request& request = out.emplace_back();
    request.id = RequestId(next_id_++);
    request.stage = StageId(stage_);
    request.session = session;
    request.due = now;
    ++in_flight_;
    return request;
  }

  std::vector<Flags> runs_;
  MultiRoundChats chats_;
  MultiRoundChats warmups_;
  Duration interval_;
  std::vector<StageInfo> infos_;
  std::size_t stage_ = 0;
  std::optional<Users> users_;  // Of the run.
  SimTime next_;                // The next step; max() while only answers are waited for.
  SimTime end_;                 // No request of the run is sent later.
  std::int64_t in_flight_ = 0;
  std::uint64_t next_id_ = 0;
};

/// Users whom a run can have: those of its start, and one each gap between users.
double most_users(const Flags& run) {
  const double gap_between_users = static_cast<double>(run.num_rounds - 1) / run.qps;
  return static_cast<double>(run.num_users) + 2 + run.time / std::max(gap_between_users, 0.1);
}

/// The questions of --sharegpt: chats of more than two messages per round, by user. A chat of an
/// odd number of messages is taken to begin with an answer.
std::shared_ptr<const MultiRoundChats::Exchanges> read_sharegpt(const std::vector<Flags>& runs,
                                                                const LoadInputs& inputs,
                                                                Diagnostics& diagnostics) {
  double users = 0;
  for (const Flags& run : runs)
    users = std::max(users, static_cast<double>(run.first_user) + most_users(run));
  const std::int64_t rounds = runs.front().num_rounds;
  auto out = std::make_shared<MultiRoundChats::Exchanges>();
  const auto reader = inputs.conversations();
  for (Conversation chat; static_cast<double>(out->size()) < users + 1 && reader->next(chat);) {
    if (static_cast<std::int64_t>(chat.messages.size()) <= 2 * rounds) continue;
    std::vector<MultiRoundChats::Exchange>& exchanges = out->emplace_back();
    for (std::size_t i = chat.messages.size() % 2;
         exchanges.size() < static_cast<std::size_t>(rounds); i += 2)
      exchanges.push_back(
          {chat.messages[i].text, chat.messages[i].tokens, chat.messages[i + 1].tokens});
  }
  for (const Diagnostic& d : reader->diagnostics().items()) diagnostics.add(d);
  if (static_cast<double>(out->size()) < users + 1 && !diagnostics.has_errors())
    diagnostics.error({}, "multi_round_qa.sharegpt",
                      std::to_string(out->size()) + " of its chats have more than " +
                          std::to_string(2 * rounds) + " messages, and up to " +
                          std::to_string(static_cast<std::int64_t>(users) + 1) + " are needed",
                      "shorten `time`, or ask fewer users or rounds");
  return out;
}

constexpr IntRange kUsers{1, 1'000'000}, kRounds{1, 1'000'000}, kFirst{0, 1'000'000'000};
constexpr IntRange kTokens{0, 100'000'000};
constexpr RealRange kRate{.min = 0, .max = 1e6, .min_open = true};
constexpr RealRange kSeconds{.min = 0, .max = 1e7, .min_open = true};

}  // namespace

void describe(Describer& d, MultiRoundRun& t) {
  field(d, {"qps", "Requests/s of the run."}, t.qps, kRate);
  field(d, {"time", "Seconds of the run."}, t.time, kSeconds);
  field(d, {"num_users", "Users at a time."}, t.num_users, kUsers);
  field(d, {"num_rounds", "Questions per user."}, t.num_rounds, kRounds);
  field(d, {"init_user_id", "The number before the first user's."}, t.init_user_id, kFirst);
}

void describe(Describer& d, MultiRoundQaConfig& t) {
  field(d, {"num_users", "Users at a time."}, t.num_users, kUsers);
  field(d, {"num_rounds", "Questions per user."}, t.num_rounds, kRounds);
  field(d, {"qps", "Requests/s of all users together."}, t.qps, kRate);
  field(d, {"shared_system_prompt", "Tokens that all users share."}, t.shared_system_prompt,
        kTokens);
  field(d, {"user_history_prompt", "Tokens of each user's own text."}, t.user_history_prompt,
        kTokens);
  field(d, {"answer_len", "Tokens asked for per answer."}, t.answer_len, IntRange{1, 100'000'000});
  field(d, {"time", "Seconds in which requests are sent."}, t.time, kSeconds);
  field(d, {"init_user_id", "The number before the first user's; equal users have equal texts."},
        t.init_user_id, kFirst);
  field(d, {"interval", "Seconds between runs (run.sh sleeps 10)."}, t.interval,
        RealRange{.min = 0, .max = 1e7});
  field(d,
        {"sharegpt",
         "Users ask the questions of this file (--sharegpt; ShareGPT.json as the script's "
         "data_preprocessing.py writes it)."},
        t.sharegpt);
  field(d, {"runs", "Calls of the script, one after the other; empty: one."}, t.runs);
}

LoadTraits traits_of(const MultiRoundQaConfig& config) {
  return {.is_chat = true,
          .own_times = "each user of multi_round_qa asks when the last answer has come",
          .interval_s = config.interval};
}

std::vector<LoadFile> files_of(const MultiRoundQaConfig& config) {
  if (config.sharegpt.empty()) return {};
  return {{.kind = LoadFile::Kind::kShareGpt,
           .key = "multi_round_qa.sharegpt",
           .path = config.sharegpt}};
}

std::string scale_rates(MultiRoundQaConfig& config, double by) {
  config.qps *= by;
  for (MultiRoundRun& run : config.runs)
    if (run.qps) *run.qps *= by;
  return {};
}

std::string hold_rate(MultiRoundQaConfig& config, double rate, double seconds) {
  if (!config.runs.empty()) {
    const Flags last = flags_of(config, config.runs.back());
    config.num_users = last.num_users;
    config.num_rounds = last.num_rounds;
    config.runs.clear();
  }
  config.qps = rate;
  config.time = seconds;
  return {};
}

std::unique_ptr<LoadGenerator> make_load_generator(const MultiRoundQaConfig& config,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics) {
  std::vector<Flags> runs;
  for (const MultiRoundRun& run : config.runs) runs.push_back(flags_of(config, run));
  if (runs.empty()) runs.push_back(flags_of(config, {}));
  std::vector<StageInfo> infos;
  for (const Flags& run : runs) {
    infos.push_back({.name = "warmup", .requests = kWarmups, .reported = false});
    infos.push_back({.name = short_number(run.qps),
                     .requested_rate = run.qps,
                     .duration_s = run.time,
                     .requests = -1});
  }
  if (options.natural_answer)
    check_distribution(*options.natural_answer, SamplerKind::kGeneral, "natural_answer",
                       diagnostics);
  std::shared_ptr<const MultiRoundChats::Exchanges> exchanges;
  if (!config.sharegpt.empty()) {
    for (const Flags& run : runs)
      if (run.num_rounds != runs.front().num_rounds)
        diagnostics.error({}, "multi_round_qa.runs",
                          "runs of one ShareGPT file must have the same num_rounds");
    if (!inputs.conversations) diagnostics.error({}, "multi_round_qa.sharegpt", "needs its file");
    if (!diagnostics.has_errors()) exchanges = read_sharegpt(runs, inputs, diagnostics);
  }
  if (diagnostics.has_errors()) return nullptr;
  const MultiRoundChats chats(config.shared_system_prompt, config.user_history_prompt,
                              config.answer_len, options, std::move(exchanges));
  const MultiRoundChats warmups(0, 0, kWarmupTokens, options);
  return std::make_unique<MultiRoundQa>(std::move(runs), chats, warmups,
                                        Duration::from_seconds(config.interval), std::move(infos));
}

}  // namespace routesim::workloads
