#include "tools/study/capacity/capacity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "sim/engine/endpoints.h"
#include "sim/engine/replica.h"
#include "sim/observe/metrics_collector.h"
#include "sim/plan/fleet_plan.h"
#include "sim/plan/resolve.h"
#include "sim/router/router.h"
#include "tools/study/what_if.h"

namespace routesim::tools {

namespace {

constexpr std::size_t kBatches = 10;

/// Sums of a member over equal batches of the bins; what does not fill a batch is left out in
/// front.
template <class T>
std::vector<double> batch_sums(std::span<const LoadBin> bins, T LoadBin::*member) {
  const std::size_t width = bins.size() / kBatches;
  std::vector<double> sums(kBatches);
  const std::size_t first = bins.size() - width * kBatches;
  for (std::size_t i = first; i < bins.size(); ++i)
    sums[(i - first) / width] += static_cast<double>(bins[i].*member);
  return sums;
}

/// Standard error of the mean of independent values.
double error_of_mean(std::span<const double> values) {
  const double mean = sim::mean(values);
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  const auto n = static_cast<double>(values.size());
  return std::sqrt(squares / (n - 1) / n);
}

/// Drift of the batch means per batch, and its error. Means of neighbouring spans of a random walk
/// differ by two thirds of the variance that it gains in a span.
std::pair<double, double> growth_of(std::vector<double> means, double bins, double sent) {
  for (double& value : means) value /= bins;
  const auto steps = static_cast<double>(means.size() - 1);
  const double drift = (means.back() - means.front()) / steps;
  double squares = 0;
  for (std::size_t i = 1; i < means.size(); ++i) {
    const double step = means[i] - means[i - 1] - drift;
    squares += step * step;
  }
  return {drift / sent, std::sqrt(1.5 * squares / (steps - 1) / steps) / sent};
}

void measure_hits(std::span<const LoadBin> window, SteadyWindow& out) {
  const std::vector<double> prompt = batch_sums(window, &LoadBin::prompt_tokens);
  const std::vector<double> cached = batch_sums(window, &LoadBin::cached_tokens);
  std::vector<double> first, second;
  for (std::size_t i = 0; i < kBatches; ++i)
    if (prompt[i] > 0) (i < kBatches / 2 ? first : second).push_back(cached[i] / prompt[i]);
  if (first.size() < 2 || second.size() < 2) return;
  out.hit_drift = sim::mean(second) - sim::mean(first);
  out.hit_drift_error = std::hypot(error_of_mean(first), error_of_mean(second));
}

}  // namespace

std::size_t warm_up_end(std::span<const double> series) {
  double sum = 0, squares = 0, least = INFINITY;
  std::size_t best = 0;
  for (std::size_t i = series.size(); i-- > 0;) {
    sum += series[i];
    squares += series[i] * series[i];
    if (2 * i > series.size()) continue;
    const auto n = static_cast<double>(series.size() - i);
    const double error = std::max(0.0, squares - sum * sum / n) / (n * n);
    if (error > least) continue;
    least = error;
    best = i;
  }
  return best;
}

SteadyWindow steady_window(std::span<const LoadBin> bins, double bin_s) {
  ROUTESIM_CHECK(bins.size() >= 2 * kBatches && bin_s > 0, "too few bins to judge");
  std::vector<double> answers, hits, running;
  for (const LoadBin& bin : bins) {
    answers.push_back(static_cast<double>(bin.answered));
    running.push_back(static_cast<double>(bin.in_flight - bin.queued));
    if (bin.prompt_tokens > 0)
      hits.push_back(static_cast<double>(bin.cached_tokens) /
                     static_cast<double>(bin.prompt_tokens));
    else
      hits.push_back(hits.empty() ? 0 : hits.back());
  }
  SteadyWindow out;
  const std::size_t settled = std::max(warm_up_end(answers), warm_up_end(hits));
  out.is_settled = 2 * settled < bins.size();
  out.first = std::max(settled, warm_up_end(running));
  const std::span<const LoadBin> window = bins.subspan(out.first);
  const double batch_s = bin_s * static_cast<double>(window.size() / kBatches);
  const double all_s = bin_s * static_cast<double>(window.size());
  double sent = 0, answered = 0, away = 0;
  for (const LoadBin& bin : window) {
    sent += static_cast<double>(bin.sent);
    answered += static_cast<double>(bin.answered);
    away += static_cast<double>(bin.turned_away);
  }
  out.sent_per_s = sent / all_s;
  out.answered_per_s = answered / all_s;
  const std::vector<double> answers_of = batch_sums(window, &LoadBin::answered);
  const std::span<const double> batches = answers_of;
  const auto first = batches.first(kBatches / 2), second = batches.last(kBatches / 2);
  out.answered_error = error_of_mean(batches) / batch_s;
  out.answered_drift = (sim::mean(second) - sim::mean(first)) / batch_s;
  out.answered_drift_error = std::hypot(error_of_mean(first), error_of_mean(second)) / batch_s;
  out.turned_away = sent > 0 ? away / sent : 0;
  if (sent > 0) {
    const auto width = static_cast<double>(window.size() / kBatches);
    const double sent_per_batch = sent / static_cast<double>(kBatches);
    std::tie(out.growth, out.growth_error) =
        growth_of(batch_sums(window, &LoadBin::in_flight), width, sent_per_batch);
    std::tie(out.queue_growth, out.queue_growth_error) =
        growth_of(batch_sums(window, &LoadBin::queued), width, sent_per_batch);
  }
  measure_hits(window, out);
  return out;
}

namespace {

/// Bins before the first look, and between looks.
constexpr std::size_t kFirstLook = 40, kNextLook = 20;
/// A run that has not settled goes on for so many times its length.
constexpr std::int64_t kLongest = 3;
/// One whose answers take long goes on for so many times.
constexpr std::int64_t kMostSends = 12;
/// Requests in flight gained per request sent. A queue that gains more than kGrows beyond its error
/// grows; one that gains less than kCalm with its error does not. Without either, kLikely decides.
constexpr double kGrows = 0.005, kCalm = 0.02, kLikely = 0.012;
/// The most that a fleet gains whose servers all empty their queues now and then.
constexpr double kEmptied = 0.03;
/// A window has this many of its mean answers at least.
constexpr double kAnswers = 3;
/// Looks at one run are many, so each asks for more than two standard errors.
constexpr double kErrors = 2.5;
/// The most that may be turned away, and the least share of the rate that the client must send.
constexpr double kTurnedAway = 0.02, kSent = 0.97;
/// A step of twice the batch that takes more than so many times as long is not worth its seats.
constexpr double kNoGain = 1.6;

/// Whether twice the batch of this engine would take so long that more seats would not help.
bool is_bound_by_step(const sim::ResolvedPool& pool, const sim::BatchScheduler& engine) {
  const std::int64_t tokens = engine.kv().used_blocks() * pool.rules.block_size;
  const std::int64_t b = std::max<std::int64_t>(1, engine.running());
  const models::BatchShape now{.decode_requests = b, .decode_context = tokens};
  const models::BatchShape more{.decode_requests = 2 * b, .decode_context = 2 * tokens};
  return static_cast<double>(pool.latency->step_ticks(more)) >
         kNoGain * static_cast<double>(pool.latency->step_ticks(now));
}

/// Sets `stop` when it knows enough. Used by the thread of the run.
class LoadWatch final : public sim::Observer {
 public:
  LoadWatch(const WatchRules& rules, std::atomic<bool>& stop)
      : rules_(rules),
        stop_(stop),
        bin_(Duration::from_seconds(static_cast<double>(rules.most_sends) / rules.rate /
                                    static_cast<double>(kWatchBins))),
        next_(SimTime::zero() + bin_) {
    ROUTESIM_CHECK(rules.rate > 0 && rules.most_sends >= kWatchBins, "a watch without a length");
  }

  void on_start(const sim::RunView& view) override {
    view_ = &view;
    has_flow_control_ = view.router.holds_back();
  }

  void on_sent(const workloads::Request& request, SimTime now) override {
    ++now_.sent;
    ++sent_;
    ++in_flight_;
    ++unrouted_;
    now_.lag_s = std::max(now_.lag_s, (now - request.due).to_seconds());
  }

  void on_routed(const workloads::Request&, const sim::Route&, SimTime) override { --unrouted_; }

  void on_done(const sim::RequestRecord& record) override {
    --in_flight_;
    if (record.endpoint < 0) --unrouted_;
    if (record.outcome == workloads::Outcome::kSuccess) {
      ++now_.answered;
      now_.prompt_tokens += record.prompt_tokens;
      now_.cached_tokens += record.cached_tokens;
      return;
    }
    if (sim::is_turned_away(record.failure)) ++now_.turned_away;
  }

  SimTime next_tick() const override { return next_; }

  void on_tick(SimTime now) override {
    note_queues();
    next_ = now + bin_;
    waits_.push_back(waits());
    now_.in_flight = in_flight_;
    now_.queued = waits_.back().unrouted + waits_.back().waiting;
    bins_.push_back(now_);
    now_ = {};
    if (bins_.size() >= kFirstLook && bins_.size() % kNextLook == 0) judge();
  }

  void on_end(SimTime) override { view_ = nullptr; }

  void on_result(const sim::RunResult& result, bool) override {
    const std::optional<sim::GatewayResult>& gateway = result.routing.gateway;
    if (gateway) gateway_wait_s_ = gateway->longest_wait.to_seconds();
    if (result.routing.decisions_per_s) decisions_per_s_ = *result.routing.decisions_per_s;
  }

  Sustains sustains() const { return sustains_; }
  const SteadyWindow& window() const { return window_; }
  std::int64_t sent() const { return sent_; }
  std::int64_t in_flight() const { return bins_.empty() ? 0 : bins_.back().in_flight; }
  double decisions_per_s() const { return decisions_per_s_; }
  double warm_up_s() const { return bin_.to_seconds() * static_cast<double>(window_.first); }

  /// The limit that most servers were at behind the warm-up.
  Limit limit() const {
    Waits all;
    double lag = 0;
    for (std::size_t i = window_.first; i < bins_.size(); ++i) {
      const Waits& w = waits_[i];
      all.servers += w.servers;
      all.seats += w.seats;
      all.blocks += w.blocks;
      all.tokens += w.tokens;
      all.decodes += w.decodes;
      all.unrouted += w.unrouted;
      all.waiting += w.waiting;
      all.in_flight += w.in_flight;
      lag = std::max(lag, bins_[i].lag_s);
    }
    if (window_.sent_per_s < kSent * rules_.rate && lag > 1) return Limit::kClient;
    if (const Limit before = limit_before_servers(all); before != Limit::kNone) return before;
    // Batches that grow although there are seats, blocks and tokens for all.
    if (all.servers == 0) return Limit::kDecode;
    const std::array<std::pair<std::int32_t, Limit>, 4> counts = {
        {{all.tokens, Limit::kPrefill},
         {all.decodes, Limit::kDecode},
         {all.blocks, Limit::kKvBlocks},
         {all.seats, Limit::kMaxNumSeqs}}};
    return std::ranges::max_element(counts, {}, &std::pair<std::int32_t, Limit>::first)->second;
  }

 private:
  /// Servers with a queue, by what its head waits for, and whole-fleet queues, in one bin.
  struct Waits {
    std::int32_t servers = 0, seats = 0, blocks = 0, tokens = 0, decodes = 0;
    std::int64_t unrouted = 0, waiting = 0, in_flight = 0;
  };

  /// The limit of requests that wait before servers, where more do so than in them.
  Limit limit_before_servers(const Waits& all) const {
    constexpr double kTenth = 0.1;
    if (all.unrouted <= all.waiting) return Limit::kNone;
    if (decisions_per_s_ < rules_.rate) return Limit::kRouter;
    if (static_cast<double>(all.unrouted) < kTenth * static_cast<double>(all.in_flight))
      return Limit::kNone;  // They are on their way.
    const double mean_s = static_cast<double>(all.unrouted) /
                          static_cast<double>(bins_.size() - window_.first) / rules_.rate;
    if (gateway_wait_s_ > mean_s) return Limit::kGateway;
    return has_flow_control_ ? Limit::kFlowControl : Limit::kBalancer;
  }

  void judge() {
    window_ = steady_window(bins_, bin_.to_seconds());
    const SteadyWindow& w = window_;
    const double window_s = bin_.to_seconds() * static_cast<double>(bins_.size() - w.first);
    // Servers fill for as long as an answer takes.
    const LoadBin& last = bins_.back();
    const bool is_short =
        window_s * w.answered_per_s < kAnswers * static_cast<double>(last.in_flight - last.queued);
    const bool goes_on = is_short || 100 * last.queued < last.in_flight;
    const bool is_long = sent_ >= rules_.most_sends,
               is_longest = sent_ >= std::max((goes_on ? kMostSends : kLongest) * rules_.most_sends,
                                              rules_.least_sends);
    const bool rises = w.answered_drift > 2 * w.answered_drift_error ||
                       w.hit_drift > std::max(0.01, 2 * w.hit_drift_error);
    if (!w.is_settled || w.answered_per_s <= 0 || (rules_.patient && rises)) {
      sustains_ = Sustains::kOpen;
      stop_ = is_longest;
      return;
    }
    const double sent = std::max(1.0, w.sent_per_s * window_s);
    const bool too_few = w.sent_per_s < rules_.rate * (kSent - 2 / std::sqrt(sent));
    const double away_error = 2 * std::sqrt(w.turned_away / sent);
    // Batches that grow, and queue nothing, may be batches that fill.
    const bool grows = w.queue_growth - kErrors * w.queue_growth_error > kGrows ||
                       w.turned_away - away_error > kTurnedAway;
    const bool gains_little = w.growth + kErrors * w.growth_error < kCalm;
    const bool empties =
        all_emptied() && w.growth < kEmptied && w.growth - w.growth_error < kLikely;
    const bool calm = !is_short && (gains_little || empties) &&
                      std::abs(w.hit_drift) <= std::max(0.01, 2 * w.hit_drift_error);
    const bool is_told = w.answered_error <= rules_.answered_error * w.answered_per_s;
    if (grows || too_few) {
      sustains_ = Sustains::kNo;
      if (is_told || is_long) stop_ = true;
    } else if (calm && sent_ >= rules_.least_sends) {
      sustains_ = Sustains::kYes;
      stop_ = true;
    } else {
      sustains_ = w.growth > (goes_on ? kEmptied : kLikely) ? Sustains::kNo : Sustains::kYes;
      stop_ = is_longest;
    }
  }

  void note_queues() {
    emptied_.resize(view_->endpoints.size());
    for (std::size_t e = 0; e < emptied_.size(); ++e) {
      const sim::EndpointHome& home = view_->endpoints[e];
      if (view_->replicas[home.replica]->scheduler(home.rank).waiting() == 0)
        emptied_[e] = bins_.size();
    }
  }

  /// Whether every server had no queue at some instant of the last third of the window.
  bool all_emptied() const {
    const std::size_t last_third = bins_.size() - (bins_.size() - window_.first) / 3;
    return std::ranges::all_of(emptied_, [=](std::size_t bin) { return bin >= last_third; });
  }

  Waits waits() const {
    Waits out{.unrouted = unrouted_, .in_flight = in_flight_};
    for (const sim::EndpointHome& home : view_->endpoints) {
      const sim::BatchScheduler& engine = view_->replicas[home.replica]->scheduler(home.rank);
      if (engine.waiting() == 0) continue;
      out.waiting += engine.waiting();
      ++out.servers;
      const bool seats = engine.running() >= engine.rules().max_num_seqs;
      const bool blocks = 20 * engine.kv().free_blocks() < engine.kv().usable_blocks();
      if (!seats && !blocks)
        ++out.tokens;
      else if (is_bound_by_step(view_->plan.pools[home.pool], engine))
        ++out.decodes;
      else
        ++(seats ? out.seats : out.blocks);
    }
    return out;
  }

  WatchRules rules_;
  std::atomic<bool>& stop_;
  const sim::RunView* view_ = nullptr;
  Duration bin_;
  SimTime next_;
  LoadBin now_;
  std::int64_t in_flight_ = 0, sent_ = 0, unrouted_ = 0;
  std::vector<LoadBin> bins_;
  std::vector<Waits> waits_;          ///< By bin.
  std::vector<std::size_t> emptied_;  ///< By endpoint: the last bin at whose end it had no queue.
  bool has_flow_control_ = false;
  double gateway_wait_s_ = 0;  ///< The longest.
  double decisions_per_s_ = INFINITY;
  SteadyWindow window_;
  Sustains sustains_ = Sustains::kOpen;
};

/// Probes beside an estimate, as shares of it: near enough to bracket it, far enough to tell.
constexpr double kAbove = 1.05, kBelow = 0.97;
/// The first probe beside a guess. It should overload the servers.
constexpr double kFirst = 1.4;
constexpr int kMostProbes = 20;
/// The highest rate that seems to hold is tried for so many times as long, with each of so many
/// seeds: servers that preempt a little may do so for minutes before their queues grow. Of many
/// servers, one that does is met as soon by as many requests.
constexpr std::int64_t kLonger = 10;
constexpr int kSeeds = 2;
/// At most so many times.
constexpr int kMostLonger = 8;

class Search {
 public:
  explicit Search(const CapacityRules& rules) : rules_(rules) {}

  /// The rate to probe next; nothing when the interval is narrow.
  std::optional<double> next() const {
    if (!grows_) return sustained_ ? std::optional(sustained_->rate * 2) : kFirst * rules_.guess;
    const double answers = grows_->window.answered_per_s;
    if (!sustained_) {
      if (grows_->rate > 1.15 * answers && answers > 0) return kAbove * answers;
      return kBelow * std::min(answers, grows_->rate);
    }
    const double low = sustained_->rate, high = grows_->rate;
    if (high <= rules_.narrow * low) return std::nullopt;
    // What it answers when it is asked for more is the best guess, where it can be right.
    if (kBelow * answers > low * 1.01 && kBelow * answers < high) {
      if (kAbove * answers < high / 1.02) return kAbove * answers;
      return kBelow * answers;
    }
    if (answers > low * 0.99 && kAbove * answers < high / 1.02) return kAbove * answers;
    return std::sqrt(low * high);
  }

  int confirmed() const { return confirmed_; }
  /// The lowest rate that does not hold.
  const std::optional<RateProbe>& grows() const { return grows_; }
  /// The rate that is taken to hold, to be tried for longer.
  std::optional<double> unconfirmed() const {
    return sustained_ && confirmed_ < kSeeds ? std::optional(sustained_->rate) : std::nullopt;
  }

  /// Whether it held unconfirmed() for longer, too.
  bool tell_longer(const RateProbe& probe) {
    if (probe.sustains == Sustains::kYes) {
      ++confirmed_;
      return true;
    }
    sustained_.reset();
    grows_ = probe;
    return false;
  }

  void tell(const RateProbe& probe) {
    if (probe.sustains == Sustains::kYes) {
      if (sustained_ && probe.rate <= sustained_->rate) return;
      sustained_ = probe;
      confirmed_ = 0;
    } else if (!grows_ || probe.rate < grows_->rate) {
      grows_ = probe;
    }
  }

  /// The rate is one that was seen to hold; without one, a guess.
  Capacity answer() const {
    Capacity out;
    if (sustained_) out.rate = out.low = sustained_->rate;
    if (!grows_) return out;
    out.high = grows_->rate;
    const SteadyWindow& w = grows_->window;
    // Overload may make servers much slower: then only the rate itself is a bound.
    if (w.answered_per_s < (1 - kCalm) * out.low.value_or(0)) return out;
    out.high = std::min(w.answered_per_s + 2 * w.answered_error, grows_->rate);
    out.rate = std::min(out.low.value_or(INFINITY), w.answered_per_s);
    if (sustained_) out.low = out.rate;
    return out;
  }

 private:
  CapacityRules rules_;
  std::optional<RateProbe> sustained_, grows_;
  int confirmed_ = 0;  ///< Longer probes of `sustained_` that it held.
};

/// Prefix caches and batches of more servers take more requests to fill, and a queue that grows
/// until they are shows no overload. Few endpoints have as many requests each as so many have.
double probe_factor(const sim::RunPlan& plan) {
  constexpr double kEndpoints = 5;
  double endpoints = 0;
  for (const sim::ResolvedPool& pool : plan.pools)
    endpoints += static_cast<double>(pool.config.replicas * pool.config.data_parallel);
  return std::max(1.0, endpoints / kEndpoints);
}

/// The resource whose double lets the servers answer most of a rate above the one that they do not
/// hold; of a still higher one where several do. The limit of `grows` where it is as good, where
/// none helps, and where it is no such resource.
Limit doubled_limit(const sim::RunPlan& plan, const RateProbe& grows, std::int64_t sends,
                    Experiment& experiment, Diagnostics& found) {
  constexpr double kHelps = 1.03, kAsGood = 0.98;
  std::vector<std::pair<Limit, sim::Resource>> left = {
      {Limit::kPrefill, sim::Resource::kPrefillCompute},
      {Limit::kDecode, sim::Resource::kDecodeBandwidth},
      {Limit::kKvBlocks, sim::Resource::kKvBlocks}};
  const auto is_left = [&] {
    return std::ranges::any_of(left, [&](const auto& l) { return l.first == grows.limit; });
  };
  if (!is_left()) return grows.limit;
  for (const double more : {1.3, 1.6, 2.0}) {
    std::vector<double> answers;
    for (const auto& [limit, resource] : left) {
      const RateProbe probe =
          probe_rate(sim::with_doubled(plan, resource),
                     {.rate = more * grows.rate, .most_sends = sends, .answered_error = 0.02},
                     experiment, found);
      experiment.throw_if_stopped();
      answers.push_back(probe.sustains == Sustains::kYes ? probe.rate
                                                         : probe.window.answered_per_s);
    }
    const double best = std::ranges::max(answers);
    if (best < kHelps * grows.window.answered_per_s) return grows.limit;
    for (std::size_t i = left.size(); i-- > 0;)
      if (answers[i] < kAsGood * best) left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
    if (left.size() == 1) break;
  }
  return is_left() ? grows.limit : left.front().first;
}

/// A rate near the capacity, from what the stages of a run sent and answered; 0 without a success.
double guess_capacity(const sim::RunResult& result) {
  double guess = 0;
  for (const sim::StageResult& s : result.stages) {
    if (!s.info.reported || s.successes == 0 || s.total_time_s() <= 0) continue;
    const double answered = s.per_second(static_cast<double>(s.successes));
    guess = std::max(guess, s.keeps_rate() && !s.overloaded()
                                ? std::min(s.info.requested_rate, 1.5 * answered)
                                : answered);
  }
  return guess;
}

/// `prefill compute`, `decode step`, `KV blocks`, `max_num_seqs`, ...; empty for kNone.
std::string_view limit_name(Limit limit) {
  switch (limit) {
    case Limit::kPrefill:
      return "prefill compute";
    case Limit::kDecode:
      return "decode step";
    case Limit::kKvBlocks:
      return "KV blocks";
    case Limit::kMaxNumSeqs:
      return "max_num_seqs";
    case Limit::kRouter:
      return "router";
    case Limit::kGateway:
      return "gateway";
    case Limit::kFlowControl:
      return "flow control";
    case Limit::kBalancer:
      return "requests that its balancer holds back";
    case Limit::kClient:
      return "client";
    case Limit::kNone:
      break;
  }
  return "";
}

}  // namespace

RateProbe probe_rate(const sim::RunPlan& plan, const WatchRules& asked, Experiment& experiment,
                     Diagnostics& found) {
  WatchRules rules = asked;
  rules.most_sends =
      static_cast<std::int64_t>(probe_factor(plan) * static_cast<double>(asked.most_sends));
  sim::RunPlan held = plan;
  sim::forget_events(held);
  // The watch ends it before, unless a client falls behind.
  const double seconds = static_cast<double>((kMostSends + 1) * rules.most_sends) / rules.rate;
  constexpr double kMostSeconds = 50 * 86'400.0;  // Within what the clock of a run holds.
  RateProbe probe{.rate = rules.rate};
  probe.why_not = seconds > kMostSeconds
                      ? "its requests come too rarely"
                      : sim::hold_rate(held, {rules.rate, Duration::from_seconds(seconds), {}});
  if (!probe.why_not.empty()) return probe;
  sim::Progress progress;
  LoadWatch watch(rules, progress.stop);
  experiment.probe(held, plan.scenario.seed, watch, progress, found);
  probe.sustains = watch.sustains();
  probe.window = watch.window();
  probe.limit = watch.limit();
  probe.decisions_per_s = watch.decisions_per_s();
  probe.sent = watch.sent();
  probe.warm_up_s = watch.warm_up_s();
  if (probe.window.answered_per_s > 0)
    probe.answer_s = static_cast<double>(watch.in_flight()) / probe.window.answered_per_s;
  return probe;
}

Capacity find_capacity(const sim::RunPlan& plan, const CapacityRules& rules, Experiment& experiment,
                       Diagnostics& found) {
  for (const sim::ResolvedPool& pool : plan.pools)
    if (pool.config.autoscaler) return {.why_not = "an autoscaler changes its servers"};
  if (std::ranges::any_of(plan.scenario.events, sim::changes_servers))
    return {.why_not = "events change its servers"};
  Search search(rules);
  std::int64_t requests = 0, narrowing = 0;
  const double most = probe_factor(plan) * static_cast<double>(rules.most_sends);
  int longer = 0;
  for (int probes = 0; probes < kMostProbes; ++probes) {
    std::optional<double> rate =
        static_cast<double>(narrowing) < most ? search.next() : std::nullopt;
    const bool is_longer = !rate;
    if (is_longer && longer++ < kMostLonger) rate = search.unconfirmed();
    if (!rate) break;
    sim::RunPlan tried = plan;
    if (is_longer) tried.scenario.seed += static_cast<std::uint64_t>(search.confirmed());
    const RateProbe probe = probe_rate(tried,
                                       {.rate = *rate,
                                        .most_sends = std::max(rules.sends, kWatchBins),
                                        .least_sends = is_longer ? kLonger * rules.sends : 0},
                                       experiment, found);
    if (!probe.why_not.empty() || found.has_errors()) return {.why_not = probe.why_not};
    experiment.throw_if_stopped();
    requests += probe.sent;
    if (probe.sustains == Sustains::kOpen) break;
    if (!is_longer) {
      narrowing += probe.sent;
      search.tell(probe);
    } else if (!search.tell_longer(probe)) {
      narrowing = 0;
    }
  }
  Capacity out = search.answer();
  if (search.grows())
    out.limit = limit_name(
        doubled_limit(plan, *search.grows(), std::max(rules.sends, kWatchBins), experiment, found));
  out.requests = requests;
  if (!out.rate) out.why_not = "no probe of it settled";
  return out;
}

CapacityRules capacity_rules(const sim::RunResult& result) {
  // A run of many tokens takes long; a short one of few tokens may take twenty times as long.
  constexpr double kFloor = 50'000, kTokens = 3'000;
  const sim::StageResult& all = result.summary;
  const double tokens = all.prompt_tokens.mean() + all.output_tokens.mean();
  const double floor = kFloor * std::min(1.0, kTokens / std::max(1.0, tokens));
  const double most = std::max(2.0 * static_cast<double>(all.requests), floor);
  return {.guess = guess_capacity(result), .most_sends = static_cast<std::int64_t>(most)};
}

}  // namespace routesim::tools
