#include "workloads/guidellm/guidellm.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "workloads/prompts.h"

namespace routesim::workloads::guidellm {
namespace {

/// settings.max_concurrency, and SweepProfileArgs.max_concurrency.
constexpr std::int64_t kMostInFlight = 10'240, kMostInSweep = 512;
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

std::int64_t lowest(const Length& l) {
  return l.min.value_or(std::max<std::int64_t>(1, l.average - 5 * l.stdev.value_or(0)));
}
std::int64_t highest(const Length& l) {
  return l.max.value_or(l.average + 5 * l.stdev.value_or(0));
}

/// IntegerRangeSampler, except for Python's own random numbers.
std::int64_t sample(const Length& l, RandomStream& random) {
  const std::int64_t low = lowest(l), high = highest(l);
  if (low == high) return low;
  if (!l.stdev)
    return low +
           static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
  const Distribution normal{.type = DistributionType::kNormal,
                            .min = low,
                            .max = high,
                            .mean = static_cast<double>(l.average),
                            .std_dev = static_cast<double>(*l.stdev)};
  return LengthSampler(normal).sample(random);
}

/// One strategy: when its slots are, and what ends it.
struct Strategy {
  ProfileKind kind = ProfileKind::kSynchronous;
  double rate = 0;  ///< Of constant and poisson; 0: the sweep finds it.
  std::int64_t permits = 1;
  double rampup_s = 0;
  double seconds = 0;  ///< 0: no limit.
  std::int64_t requests = kNoLimit;
};

/// Prompts of conversations: the bucket's prefix, then in turn user texts and answers.
class Conversations {
 public:
  Conversations(const Config& config, const WorkloadOptions& options)
      : config_(config),
        frame_(config.chat ? options.chat_template : ChatTemplate{}, options.seed),
        seed_(options.seed) {
    for (const PrefixBucket& b : config.data.prefix_buckets) {
      total_ += static_cast<double>(b.bucket_weight);
      reach_.push_back(total_);
    }
  }

  const Config& config() const { return config_; }
  /// `epoch` tells the texts of one strategy from those of the others.
  void fill(std::uint64_t epoch, std::uint64_t number, std::int64_t turn,
            const std::vector<Segment>& history, Request& request) const {
    const std::uint64_t conversation = epoch << 40 | number;
    RandomStream random(seed_, Stream::kLengths,
                        mix64(conversation, static_cast<std::uint64_t>(turn)));
    PromptBuilder prompt;
    prompt.append(history);
    if (turn == 0) open(epoch, random, prompt);
    frame_.header(prompt);
    prompt.append(
        content_id(seed_, ContentKind::kTurnInput, conversation, static_cast<std::uint64_t>(turn)),
        sample(config_.data.prompt, random));
    frame_.reply(prompt);
    request.prompt = std::move(prompt).build(request.id.value());
    // The tool sets ignore_eos.
    request.max_tokens = request.output_tokens = sample(config_.data.output, random);
    request.output_content =
        content_id(seed_, ContentKind::kAnswer, conversation, static_cast<std::uint64_t>(turn));
  }

 private:
  /// A bucket by its weight, and one of its prefixes, each as likely as the others (rand.choice of
  /// a list that repeats prefixes by the weight of their bucket).
  void open(std::uint64_t epoch, RandomStream& random, PromptBuilder& prompt) const {
    frame_.preamble(prompt);
    prompt.preamble_is_done();
    if (reach_.empty()) return;
    const double at = random.uniform() * total_;
    std::size_t i = 0;
    while (i + 1 < reach_.size() && at >= reach_[i]) ++i;
    const PrefixBucket& bucket = config_.data.prefix_buckets[i];
    const std::uint64_t which = random.below(static_cast<std::uint64_t>(bucket.prefix_count));
    if (bucket.prefix_tokens == 0) return;
    frame_.header(prompt);
    prompt.append(content_id(seed_, ContentKind::kSystemPrompt, mix64(epoch, i), which),
                  bucket.prefix_tokens);
  }

  Config config_;
  ChatFrame frame_;
  std::uint64_t seed_;
  double total_ = 0;
  std::vector<double> reach_;  // Sums of the buckets' weights.
};

/// The instants of a strategy's slots (next_request_time(), whose index counts from 1).
class Slots {
 public:
  Slots(const Strategy& strategy, SimTime start, RandomStream random)
      : strategy_(strategy), start_(start), random_(random) {
    advance();
  }
  SimTime next() const { return start_ + Duration::from_seconds(std::min(at_, 1e9)); }

  void advance() {
    const Strategy& s = strategy_;
    const double n = ++number_;
    const auto most = static_cast<double>(s.permits);
    if (s.kind == ProfileKind::kConstant) {
      const double ramped = s.rate * s.rampup_s / 2;
      at_ = n / s.rate;
      if (s.rampup_s > 0)
        at_ = n == 1        ? 0
              : n <= ramped ? std::sqrt(2 * n * s.rampup_s / s.rate)
                            : s.rampup_s + (n - ramped) / s.rate;
    } else if (s.kind == ProfileKind::kPoisson) {
      at_ += random_.exponential(1 / s.rate);
    } else if (s.kind == ProfileKind::kConcurrent) {
      at_ = n < most ? s.rampup_s * n / most : 0;
    } else if (s.kind == ProfileKind::kThroughput) {
      at_ = s.rampup_s * std::min(n / most, 1.0);
    }
  }

 private:
  Strategy strategy_;
  SimTime start_;
  RandomStream random_;
  double number_ = 0, at_ = 0;  // Whole; seconds since the start.
};

/// The turns that a strategy can send: the next turns of conversations that have their answers,
/// oldest conversation first, and then new conversations. max_requests counts turns, conversation
/// by conversation.
class Queue {
 public:
  struct Turn {
    std::uint64_t conversation = 0;
    std::int64_t turn = 0;
    std::vector<Segment> history{};
  };

  Queue(std::int64_t turns, std::int64_t samples, std::int64_t requests)
      : turns_(turns), samples_(samples), requests_(requests) {}

  bool empty() const {
    const auto next = static_cast<std::int64_t>(next_);
    return ready_.empty() && (!is_counted(next_, 0) || (samples_ > 0 && next >= samples_));
  }
  std::uint64_t conversations() const { return next_; }

  Turn take() {
    if (ready_.empty()) {
      if (turns_ > 1) open_[next_] = 0;
      return {.conversation = next_++};
    }
    const auto oldest = ready_.begin();
    Turn turn = std::move(oldest->second);
    ready_.erase(oldest);
    return turn;
  }
  /// The conversation goes on with `history`, or ends here where that is empty.
  void answered(std::uint64_t conversation, std::vector<Segment> history) {
    const std::int64_t turn = ++open_.at(conversation);
    if (history.empty() || turn == turns_ || !is_counted(conversation, turn))
      open_.erase(conversation);
    else
      ready_[conversation] = {conversation, turn, std::move(history)};
  }

 private:
  bool is_counted(std::uint64_t conversation, std::int64_t turn) const {
    return static_cast<std::int64_t>(conversation) * turns_ + turn < requests_;
  }

  std::int64_t turns_, samples_, requests_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Turn> ready_;
  std::map<std::uint64_t, std::int64_t> open_;  // Answered turns of conversations that go on.
};

/// At each slot one request is sent; it needs a permit.
class GuidellmLoad final : public LoadGenerator {
 public:
  GuidellmLoad(const Config& config, const WorkloadOptions& options,
               std::vector<Strategy> strategies, std::vector<StageInfo> infos)
      : texts_(config, options),
        seed_(options.seed),
        strategies_(std::move(strategies)),
        infos_(std::move(infos)) {}

  const std::vector<StageInfo>& stages() const override { return infos_; }
  bool finished() const override { return stage_ == strategies_.size(); }

  std::vector<std::string> notes() const override {
    if (cut_ == 0) return {};
    return {std::to_string(cut_) +
            " requests were under way when the time of their strategy was over: they count as "
            "failures here, as incomplete in GuideLLM"};
  }

  SimTime next_action() const override {
    if (finished()) return SimTime::max();
    if (!slots_) return start_;
    if (is_over_) return SimTime::max();
    return std::min(end_, can_send() ? std::max(slots_->next(), now_) : SimTime::max());
  }

  void advance(SimTime now, std::vector<Request>& out) override {
    now_ = now;
    if (finished() || (!slots_ && now < start_)) return;
    if (!slots_) begin();
    is_over_ = is_over_ || now >= end_;
    while (!is_over_ && can_send() && now >= slots_->next()) send(out);
    end_if_over(now);
  }

  void on_completed(const Request& request, Outcome outcome, SimTime now) override {
    ROUTESIM_CHECK(in_flight_ > 0, "completion of a request that is not in flight");
    now_ = now;
    --in_flight_;
    is_over_ = is_over_ || now >= end_;
    cut_ += outcome == Outcome::kTimeout ? 1 : 0;
    const bool counts = !is_over_ && outcome == Outcome::kSuccess;
    if (counts) {
      ++successes_;
      last_success_ = now;
    }
    if (request.session != 0)
      queue_->answered(request.session - first_session_,
                       counts ? with_answer(request) : std::vector<Segment>());
    end_if_over(now);
  }

 private:
  const Strategy& strategy() const { return strategies_[stage_]; }
  bool can_send() const { return in_flight_ < strategy().permits && !queue_->empty(); }
  bool is_sweep() const { return strategies_[0].kind != strategies_.back().kind; }

  void begin() {
    slots_.emplace(strategy(), start_, RandomStream(seed_, Stream::kArrivals, stage_));
    is_over_ = false;
    end_ = strategy().seconds > 0 ? start_ + Duration::from_seconds(strategy().seconds)
                                  : SimTime::max();
    first_session_ += queue_ ? queue_->conversations() : 1;
    const Config& c = texts_.config();
    queue_.emplace(c.data.turns, c.samples, strategy().requests);
    successes_ = 0;
  }

  void send(std::vector<Request>& out) {
    const Queue::Turn turn = queue_->take();
    Request& request = out.emplace_back();
    request.id = RequestId(next_id_++);
    request.stage = StageId(stage_);
    const Config& c = texts_.config();
    if (c.data.turns > 1) request.session = first_session_ + turn.conversation;
    request.due = slots_->next();
    // At the end of the time the tool cancels what is under way.
    if (end_ != SimTime::max()) request.timeout = end_ - now_;
    texts_.fill(c.samples > 0 ? 0 : stage_, turn.conversation, turn.turn, turn.history, request);
    ++in_flight_;
    slots_->advance();
  }

  void end_if_over(SimTime now) {
    if (!slots_ || in_flight_ > 0 || (!is_over_ && !queue_->empty())) return;
    const double seconds = ((is_over_ ? end_ : last_success_) - start_).to_seconds();
    if (is_sweep() && stage_ < 2)
      measured_[stage_] = seconds > 0 ? static_cast<double>(successes_) / seconds : 0;
    slots_.reset();
    start_ = now;
    ++stage_;
    if (finished() || !is_sweep() || stage_ < 2) return;
    // numpy.linspace from the synchronous to the throughput rate, without the former.
    const auto steps = static_cast<double>(strategies_.size() - 2);
    const double rate =
        measured_[0] + (measured_[1] - measured_[0]) * static_cast<double>(stage_ - 1) / steps;
    strategies_[stage_].rate = infos_[stage_].requested_rate = rate;
    if (rate <= 0) stage_ = strategies_.size();
  }

  Conversations texts_;
  std::uint64_t seed_;
  std::vector<Strategy> strategies_;
  std::vector<StageInfo> infos_;
  std::array<double, 2> measured_{};  // Requests/s of a sweep's first strategies.
  std::size_t stage_ = 0;
  std::optional<Slots> slots_;  // Of the strategy that runs.
  std::optional<Queue> queue_;
  SimTime start_, end_, now_, last_success_;
  bool is_over_ = false;  // The time is; an answer that comes now is too late.
  std::int64_t successes_ = 0, in_flight_ = 0, cut_ = 0;
  std::uint64_t first_session_ = 0, next_id_ = 0;
};

std::string name_of(const Strategy& s) {
  char text[40];
  if (s.kind == ProfileKind::kConcurrent)
    std::snprintf(text, sizeof text, "concurrent@%lld", static_cast<long long>(s.permits));
  else if (s.rate > 0)
    std::snprintf(text, sizeof text, "%s@%.2f", std::string(enum_name(s.kind)).c_str(), s.rate);
  else
    return std::string(enum_name(s.kind));
  return text;
}

std::vector<Strategy> strategies_of(const Profile& p) {
  std::vector<Strategy> all;
  const bool is_sweep = p.kind == ProfileKind::kSweep;
  const std::int64_t most = p.max_concurrency.value_or(is_sweep ? kMostInSweep : kMostInFlight);
  const auto add = [&](ProfileKind kind, double rate, std::int64_t permits, bool ramps) {
    all.push_back({.kind = kind,
                   .rate = rate,
                   .permits = permits,
                   .rampup_s = ramps ? p.rampup_duration : 0});
  };
  if (p.kind == ProfileKind::kConcurrent)
    for (const std::int64_t streams : p.streams) add(p.kind, 0, streams, true);
  if (p.kind == ProfileKind::kConstant || p.kind == ProfileKind::kPoisson)
    for (const double rate : p.rate) add(p.kind, rate, most, p.kind == ProfileKind::kConstant);
  if (p.kind == ProfileKind::kSynchronous || is_sweep) add(ProfileKind::kSynchronous, 0, 1, false);
  // Without a limit the tool has no ramp here.
  if (p.kind == ProfileKind::kThroughput || is_sweep)
    add(ProfileKind::kThroughput, 0, most, p.max_concurrency || is_sweep);
  for (std::int64_t i = 2; is_sweep && i < p.sweep_size; ++i) add(p.strategy_type, 0, most, false);
  return all;
}

bool check(const Config& c, Diagnostics& out) {
  const auto fail = [&](const std::string& key, std::string what, std::string hint) {
    out.error({}, "guidellm." + key, std::move(what), std::move(hint));
  };
  const Profile& p = c.profile;
  if (p.kind == ProfileKind::kConcurrent && p.streams.empty())
    fail("profile.streams", "is missing", "say how many streams, such as [1, 50, 100]");
  if ((p.kind == ProfileKind::kConstant || p.kind == ProfileKind::kPoisson) && p.rate.empty())
    fail("profile.rate", "is missing", "say how many requests per second, such as [1, 2, 4]");
  const auto positive = [&](const std::string& key, const auto& list) {
    for (const auto value : list)
      if (value <= 0) fail(key, "must be greater than 0 (got 0)", "");
  };
  positive("profile.streams", p.streams);
  positive("profile.rate", p.rate);
  positive("max_seconds", c.max_seconds);
  positive("max_requests", c.max_requests);
  if (c.max_seconds.empty() && c.max_requests.empty() && c.samples <= 0)
    fail("max_seconds", "nothing ends the strategies",
         "add a constraint: max_duration, max_requests, or samples");
  if (p.strategy_type != ProfileKind::kConstant && p.strategy_type != ProfileKind::kPoisson)
    fail("profile.strategy_type", "must be constant or poisson", "");
  for (const auto& [key, length] :
       {std::pair{"prompt_tokens", &c.data.prompt}, {"output_tokens", &c.data.output}})
    if (length->average < 1 || lowest(*length) > highest(*length))
      fail("data." + std::string(key), "must be at least 1, between its min and max",
           "say how long texts are on average");
  return !out.has_errors();
}

void describe_length(Describer& d, Length& l, const char* const (&keys)[4], const char* what) {
  constexpr IntRange kTokens{1, 100'000'000};
  field(d, {keys[0], what}, l.average, IntRange{0, 100'000'000});
  field(d, {keys[1], "Standard deviation; absent: none."}, l.stdev, kTokens);
  field(d, {keys[2], "Least; absent: the average less 5 deviations."}, l.min, kTokens);
  field(d, {keys[3], "Most; absent: the average and 5 deviations."}, l.max, kTokens);
}

constexpr IntRange kCount{1, 1'000'000'000};
/// The range of elements of lists; check() refuses 0.
constexpr IntRange kCounts{0, 1'000'000'000};
constexpr RealRange kPositives{.min = 0, .max = 1e7};

}  // namespace

void describe(Describer& d, Profile& t) {
  field(d, {"kind", "Strategies: one request at a time, streams, all at once, a rate, or a sweep."},
        t.kind);
  field(d, {"streams", "Streams of concurrent; a list runs one after the other."}, t.streams,
        kCounts);
  field(d, {"rate", "Requests/s of constant and poisson; a list runs one after the other."}, t.rate,
        kPositives);
  field(d, {"max_concurrency", "Requests in flight at most; absent: 10,240, or 512 in a sweep."},
        t.max_concurrency, kCount);
  field(d, {"rampup_duration", "Seconds in which streams or the rate grow."}, t.rampup_duration,
        RealRange{.min = 0, .max = 1e7});
  field(d, {"sweep_size", "Strategies of a sweep: synchronous, throughput and rates between them."},
        t.sweep_size, IntRange{2, 1000});
  field(d, {"strategy_type", "Arrivals of a sweep's rates: constant or poisson."}, t.strategy_type);
}

void describe(Describer& d, PrefixBucket& t) {
  field(d, {"bucket_weight", "Weight of the bucket."}, t.bucket_weight, kCount);
  field(d, {"prefix_count", "Different prefixes of the bucket."}, t.prefix_count, kCount);
  field(d, {"prefix_tokens", "Tokens of each."}, t.prefix_tokens, IntRange{0, 100'000'000});
}

void describe(Describer& d, Data& t) {
  describe_length(
      d, t.prompt,
      {"prompt_tokens", "prompt_tokens_stdev", "prompt_tokens_min", "prompt_tokens_max"},
      "Tokens of a user's text on average.");
  describe_length(
      d, t.output,
      {"output_tokens", "output_tokens_stdev", "output_tokens_min", "output_tokens_max"},
      "Tokens of an answer on average.");
  field(d, {"turns", "Turns of each conversation."}, t.turns, IntRange{1, 10'000});
  field(d, {"prefix_buckets", "Prefixes that conversations share; empty: none."}, t.prefix_buckets);
}

void describe(Describer& d, Config& t) {
  field(d, {"profile", "Which strategies run."}, t.profile);
  field(d, {"data", "Synthetic texts."}, t.data);
  field(d, {"max_seconds", "Seconds of each strategy (max_duration); the last holds for the rest."},
        t.max_seconds, kPositives);
  field(d, {"max_requests", "Requests of each strategy; the last holds for the rest."},
        t.max_requests, kCounts);
  field(d, {"samples", "Conversations made once and sent in every strategy; -1: new ones always."},
        t.samples, IntRange{-1, 1'000'000'000});
  field(d, {"chat", "The chat API is used: the server's template is added."}, t.chat);
}

LoadTraits traits_of(const Config& config) {
  LoadTraits traits;
  traits.report_name = "guidellm";
  traits.is_chat = config.chat;
  traits.finds_rates = config.profile.kind == ProfileKind::kSweep;
  traits.own_times = "guidellm sends by the slots and limits of its strategies";
  return traits;
}

std::vector<LoadFile> files_of(const Config&) { return {}; }

std::string scale_rates(Config& config, double by) {
  for (double& rate : config.profile.rate) rate *= by;
  return config.profile.rate.empty() ? "its profile has no rate" : "";
}

std::string hold_rate(Config& config, double rate, double seconds) {
  Profile& p = config.profile;
  if (p.kind == ProfileKind::kSynchronous || p.kind == ProfileKind::kConcurrent)
    return "its profile is a closed loop: each stream waits for its answers";
  if (p.kind == ProfileKind::kThroughput) return "its profile sends everything at once";
  p.max_concurrency =
      p.max_concurrency.value_or(p.kind == ProfileKind::kSweep ? kMostInSweep : kMostInFlight);
  if (p.kind == ProfileKind::kSweep) p.kind = p.strategy_type;
  p.rate = {rate};
  p.rampup_duration = 0;
  config.max_seconds = {seconds};
  config.max_requests.clear();
  return {};
}

std::unique_ptr<LoadGenerator> make_load_generator(const Config& config,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs&, Diagnostics& diagnostics) {
  if (!check(config, diagnostics)) return nullptr;
  std::vector<Strategy> strategies = strategies_of(config.profile);
  std::vector<StageInfo> infos;
  for (Strategy& s : strategies) {
    const std::size_t i = infos.size();
    const auto at = [i](const auto& list) { return list[std::min(i, list.size() - 1)]; };
    if (!config.max_seconds.empty()) s.seconds = at(config.max_seconds);
    if (!config.max_requests.empty()) s.requests = at(config.max_requests);
    StageInfo& info = infos.emplace_back();
    info.name = name_of(s);
    info.requested_rate =
        s.kind == ProfileKind::kThroughput ? std::numeric_limits<double>::infinity() : s.rate;
    info.duration_s = s.seconds;
    info.requests =
        s.seconds == 0 && s.requests != kNoLimit && config.samples <= 0 ? s.requests : -1;
    const bool is_closed =
        s.kind == ProfileKind::kSynchronous || s.kind == ProfileKind::kConcurrent;
    info.concurrency = is_closed ? s.permits : 0;
    info.in_flight_cap = s.permits;
  }
  return std::make_unique<GuidellmLoad>(config, options, std::move(strategies), std::move(infos));
}

}  // namespace routesim::workloads::guidellm
