#include "tools/study/capacity/load_watch.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/check.h"
#include "sim/engine/endpoints.h"
#include "sim/engine/replica.h"
#include "sim/plan/resolve.h"

namespace routesim::tools {

namespace {

/// Bins before the first look, and between looks.
constexpr std::size_t kFirstLook = 40, kNextLook = 20;
/// A run that has not settled goes on for so many times its length.
constexpr std::int64_t kLongest = 3;
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

}  // namespace

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
    case Limit::kClient:
      return "client";
    case Limit::kNone:
      break;
  }
  return "";
}

LoadWatch::LoadWatch(const WatchRules& rules, std::atomic<bool>& stop)
    : rules_(rules),
      stop_(stop),
      bin_(Duration::from_seconds(static_cast<double>(rules.most_sends) / rules.rate /
                                  static_cast<double>(kWatchBins))),
      next_(SimTime::zero() + bin_) {
  ROUTESIM_CHECK(rules.rate > 0 && rules.most_sends >= kWatchBins, "a watch without a length");
}

void LoadWatch::on_sent(const workloads::Request& request, SimTime now) {
  ++now_.sent;
  ++sent_;
  ++in_flight_;
  ++unrouted_;
  now_.lag_s = std::max(now_.lag_s, (now - request.due).to_seconds());
}

void LoadWatch::on_done(const sim::RequestRecord& record) {
  --in_flight_;
  if (record.endpoint < 0) --unrouted_;
  if (record.outcome == workloads::Outcome::kSuccess) {
    ++now_.answered;
    now_.prompt_tokens += record.prompt_tokens;
    now_.cached_tokens += record.cached_tokens;
    return;
  }
  const std::string_view label = record.failure;
  if (label == "TimeoutError" || label.starts_with("429") || label.starts_with("503"))
    ++now_.turned_away;
}

void LoadWatch::on_result(const sim::RunResult& result, bool) {
  const std::optional<sim::GatewayResult>& gateway = result.routing.gateway;
  gateway_waits_ = gateway && gateway->longest_wait.to_seconds() > result.routing.longest_wait_s;
}

void LoadWatch::on_tick(SimTime now) {
  note_queues();
  next_ = now + bin_;
  now_.in_flight = in_flight_;
  bins_.push_back(now_);
  waits_.push_back(waits());
  now_ = {};
  if (bins_.size() >= kFirstLook && bins_.size() % kNextLook == 0) judge();
}

void LoadWatch::note_queues() {
  emptied_.resize(view_->endpoints.size());
  for (std::size_t e = 0; e < emptied_.size(); ++e) {
    const sim::EndpointHome& home = view_->endpoints[e];
    if (view_->replicas[home.replica]->scheduler(home.rank).waiting() == 0)
      emptied_[e] = bins_.size();
  }
}

bool LoadWatch::all_emptied() const {
  const std::size_t last_third = bins_.size() - (bins_.size() - window_.first) / 3;
  return std::ranges::all_of(emptied_, [=](std::size_t bin) { return bin >= last_third; });
}

LoadWatch::Waits LoadWatch::waits() const {
  Waits out{.unrouted = unrouted_, .in_flight = in_flight_};
  for (const sim::EndpointHome& home : view_->endpoints) {
    const sim::BatchScheduler& engine = view_->replicas[home.replica]->scheduler(home.rank);
    if (engine.waiting() == 0) continue;
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

void LoadWatch::judge() {
  window_ = steady_window(bins_, bin_.to_seconds());
  const SteadyWindow& w = window_;
  const bool is_long = sent_ >= rules_.most_sends,
             is_longest = sent_ >= kLongest * rules_.most_sends;
  const double window_s = bin_.to_seconds() * static_cast<double>(bins_.size() - w.first);
  const bool is_short =
      window_s * w.answered_per_s < kAnswers * static_cast<double>(bins_.back().in_flight);
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
  const bool grows =
      w.growth - kErrors * w.growth_error > kGrows || w.turned_away - away_error > kTurnedAway;
  const bool gains_little = w.growth + kErrors * w.growth_error < kCalm;
  const bool empties = all_emptied() && w.growth < kEmptied && w.growth - w.growth_error < kLikely;
  const bool calm = !is_short && (gains_little || empties) &&
                    std::abs(w.hit_drift) <= std::max(0.01, 2 * w.hit_drift_error);
  const bool is_told = w.answered_error <= rules_.answered_error * w.answered_per_s;
  if (grows || too_few) {
    sustains_ = Sustains::kNo;
    if (is_told || is_long) stop_ = true;
  } else if (calm) {
    sustains_ = Sustains::kYes;
    stop_ = true;
  } else {
    sustains_ = w.growth > kLikely ? Sustains::kNo : Sustains::kYes;
    stop_ = is_longest;
  }
}

Limit LoadWatch::limit() const {
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
    all.in_flight += w.in_flight;
    lag = std::max(lag, bins_[i].lag_s);
  }
  if (window_.sent_per_s < kSent * rules_.rate && lag > 1) return Limit::kClient;
  if (2 * all.unrouted > all.in_flight) return gateway_waits_ ? Limit::kGateway : Limit::kRouter;
  if (all.servers == 0) return Limit::kNone;
  const std::array<std::pair<std::int32_t, Limit>, 4> counts = {{{all.tokens, Limit::kPrefill},
                                                                 {all.decodes, Limit::kDecode},
                                                                 {all.blocks, Limit::kKvBlocks},
                                                                 {all.seats, Limit::kMaxNumSeqs}}};
  return std::ranges::max_element(counts, {}, &std::pair<std::int32_t, Limit>::first)->second;
}

}  // namespace routesim::tools
