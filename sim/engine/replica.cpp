#include "sim/engine/replica.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/run_error.h"
#include "sim/tiers/tier_pulls.h"

namespace routesim::sim {

namespace {

constexpr std::int64_t kTicks = models::kTicksPerNanosecond;
/// Two steps beyond the last event still fit, so that the sums below need no check.
static_assert(kEndOfTime.ns() <= (SimTime::max().ns() - 2 * models::kLongestStepTicks) / kTicks);

/// The ticks of a step, unless it, or so many at a time, are longer than the clock can take.
std::int64_t checked_step(std::int64_t ticks, std::int64_t at_a_time = 1) {
  ROUTESIM_CHECK(ticks > 0, "a step must take time");
  if (ticks < models::kLongestStepTicks / at_a_time) return ticks;
  Diagnostic d;
  d.path = "cluster";
  d.message = "a step of an engine takes 12 hours of simulated time or more";
  d.hint = "look at the numbers of the accelerator, the model and its curve";
  throw RunError(std::move(d));
}

/// vLLM's DP engine cores look for the end of a wave only every 32 steps.
constexpr std::int64_t kFinishCheckPeriod = 32;

}  // namespace

Replica::Replica(const ReplicaOptions& options, SequenceKeySource& keys)
    : pipeline_(options.rules.pipeline_stages), range_watch_(*options.latency), options_(options) {
  ROUTESIM_CHECK(!pipeline_.in_use() || (options.ranks == 1 && !options.rules.tiers.in_use() &&
                                         !options.rules.async_scheduling),
                 "stages overlap in single engine cores without tiers, and schedule from results");
  options_.keys = &keys;
  // Ranks cannot move, so the vector is made from a range of equal options.
  const std::vector<std::reference_wrapper<const ReplicaOptions>> each(
      static_cast<std::size_t>(options.ranks), options);
  ranks_ = std::vector<Rank>(each.begin(), each.end());
  for (int i = 0; i < options.ranks; ++i) {
    Rank& r = ranks_[static_cast<std::size_t>(i)];
    // Scrapers are not synchronised: every endpoint has its own phase.
    const auto interval = static_cast<std::uint64_t>(options.scrape_interval.ns());
    const std::uint64_t endpoint =
        options.front_end.value_or(options.first_endpoint + static_cast<std::uint64_t>(i));
    const Duration phase = Duration::nanoseconds(
        static_cast<std::int64_t>(mix64(options.seed, mix64(endpoint)) % interval));
    r.scrapes = ScrapeSnapshot(phase, options.scrape_interval);
    if (options.publish_events)
      r.log =
          std::make_unique<KvEventLog>(options.one_key ? nullptr : &keys, options.rules.block_size);
    connect(r);
  }
}

// Leads from a rank's scheduler to what is around it.
void Replica::connect(Rank& r) {
  r.gauges.free_blocks = r.scheduler.kv().free_blocks();
  if (options_.one_key) r.scheduler.set_answer_keys(options_.keys);
  if (r.log != nullptr) r.scheduler.set_sink(r.log.get(), r.log.get());
}

void Replica::restart(SimTime now) {
  ROUTESIM_CHECK(!stepping_ || end_ > now, "a server ends after the steps that ended before");
  if (stepping_) busy_ += now - last_boundary_;
  const std::vector<std::reference_wrapper<const ReplicaOptions>> each(ranks_.size(), options_);
  std::vector<Rank> fresh(each.begin(), each.end());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    observe(ranks_[i], now);
    Rank& r = fresh[i];
    r.ended = totals(static_cast<int>(i));
    r.scrapes = ranks_[i].scrapes;
    r.used_integral = ranks_[i].used_integral;
    r.peak_used = ranks_[i].peak_used;
    r.log = std::move(ranks_[i].log);
    if (r.log != nullptr) r.log->restart();
    if (r.scheduler.has_tiers())
      r.scheduler.tiers().counters() = ranks_[i].scheduler.tiers().counters();
    connect(r);
  }
  ranks_ = std::move(fresh);
  stepping_ = false;
  ahead_ticks_ = 0;
  last_boundary_ = now;
  wake_ = SimTime::max();
  stretch_.stop();
  pipeline_.clear();
  outbox_ = {};
  tell_publication();
}

void Replica::set_pace(double factor) {
  options_.latency = models::slowed(options_.latency, factor);
  stretch_.stop();
  if (!stepping_) return;
  wake_ = std::min(wake_, end_of_ahead());
  next_publication_ = find_publication();
  tell_publication();
}

EngineTotals Replica::totals_of(const Rank& r) {
  return {.counters = r.scheduler.counters(),
          .speculation = r.scheduler.speculation().counters(),
          .evictions = r.scheduler.kv().evictions()};
}

EngineTotals Replica::totals(int rank) const {
  const Rank& r = ranks_[static_cast<std::size_t>(rank)];
  EngineTotals all = totals_of(r);
  all.add(r.ended);
  return all;
}

// vLLM's workers look for ended transfers once in a step, when it starts, and the scheduler hears
// of it when that step has ended: what ends during one step is known at the end of the next, and
// with async scheduling, where the next has already started, of the one after.
void Replica::input(int rank, Input in, SimTime now) {
  Rank& r = ranks_[static_cast<std::size_t>(rank)];
  const InputKind kind = in.kind;
  const EngineRequest& request = in.request;
  if (kind == InputKind::kTransferDone) in.sequence = r.scheduler.find_pulling(request.handle);
  if (is_news(kind) && stepping_) in.steps = steps_until_heard(now);
  r.inbox.push_back(in);
  stretch_.stop();
  if (!stepping_) {
    if (!is_news(kind) || listens_when_idle()) start_if_idle(now);
    return;
  }
  // The effects of the drain and the pass at end_ can be seen after the step scheduled ahead,
  // unless the effect is an answer to the input itself.
  const bool answered = kind != InputKind::kRequest || request.remote_tokens > 0 ||
                        options_.rules.tiers.in_use() ||
                        !ranks_[static_cast<std::size_t>(rank)].scheduler.can_serve(request);
  wake_ = answered ? end_ : std::min(wake_, end_of_ahead());
  // The input may put the engine to sleep at end_, which publishes.
  next_publication_ = answered ? end_ : find_publication();
  tell_publication();
}

void Replica::start_if_idle(SimTime now) {
  ROUTESIM_DCHECK(now >= last_boundary_, "time goes back");
  for (Rank& r : ranks_) observe(r, now);
  last_boundary_ = now;
  end_ticks_ = now.ns() * kTicks;
  const bool listens = listens_when_idle();
  for (Rank& r : ranks_) {
    if (listens) hear(r, now, true);
    drain(r, now);
    if (publishes(r)) flush_events(r, now);
  }
  launch(now);
  collect_copies();
  tell_publication();
}

bool Replica::listens_when_idle() const {
  return options_.rules.idle_polling ||
         std::any_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& r) { return !r.scheduler.idle(); });
}

void Replica::collect_copies() {
  if (!options_.rules.tiers.in_use()) return;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    KvTiers& tiers = ranks_[i].scheduler.tiers();
    for (const TierCopy& copy : tiers.to_start())
      outbox_.copies.push_back({.rank = static_cast<int>(i), .copy = copy});
    tiers.to_start().clear();
    if (tiers.pulls() == nullptr) continue;
    for (PullMessage& m : tiers.pulls()->messages())
      outbox_.messages.push_back({.rank = static_cast<int>(i), .message = std::move(m)});
    tiers.pulls()->messages().clear();
  }
}

// The end of the step scheduled ahead if its length is known, otherwise of the one under way.
SimTime Replica::end_of_ahead() const {
  return ahead_ticks_ > 0 ? SimTime::from_ns((end_ticks_ + ahead_ticks_) / kTicks) : end_;
}

// When there may be events to publish next. The pass at end_ may bring some, but they go out with
// the step after it.
SimTime Replica::find_publication() const {
  if (ranks_.size() != 1) return end_;
  const Rank& r = ranks_.front();
  const bool stores = r.on_gpu().copying > Duration::zero();
  // SGLang caches prompts when their step has ended.
  const bool caches = options_.rules.sglang && !r.on_gpu().sampled.empty();
  const bool soon = stores || publishes(r) || caches || !r.on_gpu().finishing.empty() ||
                    !r.on_gpu().verified.empty() || !r.inbox.empty();
  return soon ? end_ : end_of_ahead();
}

void Replica::advance_to(SimTime now) {
  if (!stepping_ || end_ > now) return;
  while (stepping_ && end_ <= now) {
    if (stretch_.left() > 0)
      decode_boundaries(now);
    else
      boundary();
  }
  tell_publication();
}

// Takes the scrape snapshot, and integrates KV usage up to `now`.
void Replica::observe(Rank& r, SimTime now) {
  if (r.scrapes.next() < now) r.scrapes.take(now, r.gauges);
  const std::int64_t used = r.scheduler.kv().used_blocks();
  r.used_integral += static_cast<Wide>(used) * (now - last_boundary_).ns();
  r.peak_used = std::max(r.peak_used, used);
}

void Replica::process(Rank& r, SimTime now, Duration gap) {
  StepPlan& plan = r.on_gpu();
  if (plan.empty()) return;
  if (!plan.has_no_output() || pipeline_.in_use()) r.scheduler.process(plan, now, outbox_.outputs);
  if (gaps_ != nullptr) gaps_->add_nano(gap.ns(), plan.steady);
  r.scheduler.count_steady(plan.steady);
  r.scheduler.submit_stores(plan);
  plan.clear();
  collect_ended(r, steps_until_heard(now));
}

// The workers hear of requests that are over with the next step to be scheduled.
void Replica::collect_ended(Rank& r, int steps) {
  for (const SequenceRef ended : r.scheduler.ended_requests())
    r.inbox.push_back({.kind = InputKind::kRequestOver, .sequence = ended, .steps = steps});
  r.scheduler.ended_requests().clear();
}

void Replica::flush_events(Rank& r, SimTime now) {
  bool lost = events_lost_;
  if (options_.kv_event_loss > 0 && !lost) {
    // Keyed by the instant: which other batches exist depends on what is worth announcing.
    const std::uint64_t endpoint =
        options_.first_endpoint + static_cast<std::uint64_t>(&r - ranks_.data());
    const std::uint64_t key = mix64(endpoint, static_cast<std::uint64_t>(now.ns()));
    lost = RandomStream(options_.seed, Stream::kNetwork, key).uniform() < options_.kv_event_loss;
  }
  r.log->flush(now + options_.kv_event_delay, lost);
}

template <class Due>
void Replica::apply_if(Rank& r, SimTime now, Due due) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < r.inbox.size(); ++i) {
    Input& in = r.inbox[i];
    if (due(in))
      apply(r, in, now);
    else
      r.inbox[kept++] = in;
  }
  r.inbox.resize(kept);
}

// Reads the news that the workers send with the output of a step, as far as they are due.
void Replica::hear(Rank& r, SimTime now, bool everything) {
  apply_if(r, now,
           [everything](Input& in) { return is_news(in.kind) && (in.steps-- == 0 || everything); });
}

// Reads the requests of clients and of other servers.
void Replica::drain(Rank& r, SimTime now) {
  apply_if(r, now, [](const Input& in) { return !is_news(in.kind); });
  collect_ended(r, steps_until_heard(now) - 1);  // this boundary has been
}

void Replica::apply(Rank& r, const Input& in, SimTime now) {
  StepPlan* const in_flight =
      options_.rules.async_scheduling && !r.ahead().empty() ? &r.ahead() : nullptr;
  switch (in.kind) {
    case InputKind::kRequest:
      r.scheduler.enqueue(in.request, now, outbox_.outputs);
      break;
    case InputKind::kAbort:
      r.scheduler.abort(in.request.handle, in_flight);
      outbox_.outputs.push_back(
          {.kind = EngineOutputKind::kAborted, .handle = in.request.handle, .at = now});
      break;
    case InputKind::kTransferDone:
      r.scheduler.transfer_done(in.sequence);
      break;
    case InputKind::kTransferFailed:
      r.scheduler.transfer_failed(in.request.handle);
      break;
    case InputKind::kRelease:
      r.scheduler.release_held(in.sequence);
      break;
    case InputKind::kCopyDone:
      r.scheduler.copy_done(in.request.handle, now, outbox_.outputs);
      break;
    case InputKind::kPull:
      apply_pull(r, in, now);
      break;
    case InputKind::kRequestOver:
      r.scheduler.end_request(in.sequence);
      break;
  }
}

void Replica::apply_pull(Rank& r, const Input& in, SimTime now) {
  TierPulls& pulls = *r.scheduler.tiers().pulls();
  const KvPull& pull = *in.pull;
  if (!pulls.hear(in.news, *in.pull, now) || pull.disk) return;
  outbox_.outputs.push_back({.kind = EngineOutputKind::kPulled,
                             .handle = pull.handle,
                             .value = (now - pull.asked).ns(),
                             .cached_tokens = pulls.found_tokens(pull),
                             .at = now});
}

// Tells who listens about the step that ends now, before its plan is consumed.
void Replica::report_step() {
  if (listener_ == nullptr) return;
  if (pipeline_.in_use()) {
    StepPlace place;
    for (const Pipeline::Stay& stay : pipeline_.awaited()) {
      listener_->on_step(*this, place, ranks_.front().on_gpu().shape,
                         SimTime::from_ns(stay.enters / kTicks),
                         SimTime::from_ns(stay.leaves / kTicks));
      ++place.stage;
    }
    return;
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    listener_->on_step(*this, {.rank = static_cast<int>(i)}, ranks_[i].on_gpu().shape,
                       last_boundary_, end_);
}

void Replica::boundary() {
  const SimTime now = end_;
  const Duration gap = now - last_boundary_;
  report_step();
  for (Rank& r : ranks_) {
    observe(r, now);
    process(r, now, gap);
    if (!r.inbox.empty()) hear(r, now);
    r.gauges = gauges_now(r);
    if (publishes(r)) flush_events(r, now);
  }
  busy_ += gap;
  last_boundary_ = now;
  for (Rank& r : ranks_)
    if (!r.inbox.empty()) drain(r, now);
  launch(now);
  collect_copies();
}

// Puts the next step on the GPU, or goes to sleep.
void Replica::launch(SimTime now) {
  stretch_.stop();
  bool work = schedule_step(now);
  // With nothing to compute vLLM goes round at once, looking for ended transfers each time.
  while (!work && std::any_of(ranks_.begin(), ranks_.end(),
                              [](const Rank& r) { return !r.inbox.empty(); })) {
    for (Rank& r : ranks_) hear(r, now, true);
    work = schedule_step(now);
  }
  if (!work) {
    stepping_ = false;
    wake_ = SimTime::max();
    // An engine that has nothing to run goes round once more, which publishes.
    for (Rank& r : ranks_) {
      r.gauges = gauges_now(r);
      if (publishes(r)) flush_events(r, now);
    }
    return;
  }
  stepping_ = true;
  ++steps_;
  if (pipeline_.in_use()) {
    range_watch_.add_step(ranks_.front().on_gpu().shape, pipeline_.end() - end_ticks_);
    end_ticks_ = pipeline_.end();
  } else {
    end_ticks_ += ahead_ticks_ > 0 ? ahead_ticks_ : step_ticks();
  }
  end_ = SimTime::from_ns(end_ticks_ / kTicks);
  ahead_ticks_ = 0;
  if (options_.rules.async_scheduling) schedule_ahead(now);
  look_ahead();
}

// How long the step will take is known at once, unless it depends on those of other ranks.
void Replica::schedule_ahead(SimTime now) {
  for (Rank& r : ranks_) r.scheduler.schedule(r.ahead(), &r.on_gpu(), now, outbox_.outputs);
  if (ranks_.size() != 1 || ranks_.front().ahead().empty()) return;
  const models::BatchShape& shape = ranks_.front().ahead().shape;
  ahead_ticks_ = checked_step(options_.latency->step_ticks(shape) +
                              ranks_.front().ahead().copying.ns() * kTicks);
  range_watch_.add_step(shape, ahead_ticks_);
}

// Decides what runs next on every rank; false when there is nothing to do at all.
bool Replica::schedule_step(SimTime now) {
  if (pipeline_.in_use()) return schedule_batches(now);
  bool work = false;
  for (Rank& r : ranks_) {
    if (options_.rules.async_scheduling && !r.ahead().empty()) {
      r.running = 1 - r.running;
    } else {
      // The plan being filled is the empty one; under async scheduling nothing is in flight here.
      r.scheduler.schedule(r.on_gpu(), nullptr, now, outbox_.outputs);
    }
    work = work || !r.on_gpu().empty();
  }
  // Lock step: a wave ends only at a finish check, so idle ranks spin with dummy batches till then.
  return work || (ranks_.size() > 1 && steps_ % kFinishCheckPeriod != 0);
}

// vLLM's step_with_batch_queue(): passes while there is room and somebody wants something, then it
// waits for the oldest batch. An empty one is through at once, and makes room for another pass.
bool Replica::schedule_batches(SimTime now) {
  for (;;) {
    fill_pipeline(now);
    if (!pipeline_.computes()) break;
    if (pipeline_.oldest_computes()) {
      pipeline_.take_oldest(ranks_.front().on_gpu());
      return true;
    }
    pipeline_.drop_oldest();
  }
  pipeline_.clear();
  return false;
}

void Replica::fill_pipeline(SimTime now) {
  Rank& r = ranks_.front();
  StepPlan& plan = r.ahead();  // Nothing else is scheduled ahead.
  while (pipeline_.has_room() && !r.scheduler.idle()) {
    // A pass that only preempted goes round at once, unless there are batches to wait for.
    r.scheduler.schedule(plan, pipeline_.computes() ? &r.on_gpu() : nullptr, now, outbox_.outputs);
    const std::int64_t step =
        plan.empty() ? 0 : checked_step(options_.latency->step_ticks(plan.shape), stages());
    pipeline_.add(plan, end_ticks_, step,
                  plan.empty() ? 0 : options_.latency->last_stage_ticks(plan.shape));
  }
}

std::int64_t Replica::step_ticks() {
  std::int64_t largest = 0, total = 0, rounds = 1;
  if (ranks_.size() > 1) {
    for (const Rank& r : ranks_) {
      const std::int64_t tokens = std::max<std::int64_t>(1, r.on_gpu().shape.tokens());
      largest = std::max(largest, tokens);
      total += tokens;
    }
    const std::int64_t chunk = options_.rules.moe_dp_chunk_size;
    if (chunk > 0) {
      rounds = (largest + chunk - 1) / chunk;
      largest = rounds * chunk;
    }
  }
  // A single core has no group, and buffers of fixed size are filled up in any case.
  const bool padded = ranks_.size() == 1 || options_.rules.moe_dp_chunk_size > 0 ||
                      largest <= options_.rules.rank_padding_limit;
  std::int64_t ticks = 0;
  Duration copying;  // The next exchange between ranks waits for the last of them.
  bool outside = false;
  for (Rank& r : ranks_) {
    copying = std::max(copying, r.on_gpu().copying);
    models::BatchShape& shape = r.on_gpu().shape;
    shape.group_tokens = padded ? largest : std::max<std::int64_t>(1, shape.tokens());
    shape.group_total_tokens = total;
    shape.group_rounds = rounds;
    ticks = std::max(ticks, options_.latency->step_ticks(shape));
    outside = outside || range_watch_.is_outside(shape);
  }
  if (outside) range_watch_.add_outside(ticks);
  return checked_step(ticks + copying.ns() * kTicks);
}

// After a launch: when somebody must look next. A step can be seen from outside at its end if
// sequences sample their first or last tokens in it; what needs remote KV speaks up in any pass.
void Replica::look_ahead() {
  wake_ = end_;
  next_publication_ = find_publication();
  if (options_.reference || ranks_.size() != 1 || pipeline_.in_use()) return;
  Rank& r = ranks_.front();
  if (begin_stretch(r)) return;
  if (r.on_gpu().sampled.empty() && r.on_gpu().finishing.empty() && r.on_gpu().verified.empty() &&
      !r.scheduler.pulls())
    wake_ = end_of_ahead();
}

// How many boundaries from here on are certain to be pure decode, and when the step after them
// ends.
bool Replica::begin_stretch(Rank& r) {
  const std::int64_t members = r.scheduler.decoding();
  const auto pure = [members](const StepPlan& plan) {
    return plan.has_no_output() && plan.stores < 0 && plan.steady == members &&
           plan.shape.prefill_requests == 0 && plan.shape.decode_requests == members;
  };
  const bool async = options_.rules.async_scheduling;
  if (members == 0 || gaps_ == nullptr || !r.inbox.empty() || !pure(r.on_gpu())) return false;
  if (async && !pure(r.ahead())) return false;
  const BatchScheduler::Forecast forecast = r.scheduler.forecast(std::int64_t{1} << 30);
  if (forecast.pure_decode == 0 && !forecast.then_finishes) return false;
  models::BatchShape next = async ? r.ahead().shape : r.on_gpu().shape;
  next.decode_context = r.scheduler.decode_context() + members;
  if (r.scheduler.kv().shared_tokens() > next.decode_context) return false;
  next.shared_context = r.scheduler.kv().shared_tokens();
  next.shared_once = r.scheduler.kv().shared_once();
  const models::DecodeRun run = options_.latency->decode_run(next);
  if (run.first >= models::kLongestStepTicks) return false;  // The next launch refuses it.
  const std::int64_t boundaries = std::min(forecast.pure_decode, run.steps);
  // The last token of a sequence can be seen when its step ends; before, nothing can.
  const bool to_finish = forecast.then_finishes && run.steps > forecast.pure_decode;
  if (boundaries == 0 && !to_finish) return false;
  stretch_.begin(run, boundaries, gauges_now(r));
  range_watch_.begin_stretch(next, boundaries);
  wake_ = stretch_end(boundaries + (to_finish ? (async ? 2 : 1) : 0));
  next_publication_ = publication_in_stretch(r);
  return true;
}

// When the `boundary`-th boundary of the stretch from now will be, 0 = the next.
SimTime Replica::stretch_end(std::int64_t boundary) const {
  if (boundary == 0) return end_;
  const std::int64_t n = options_.rules.async_scheduling ? boundary - 1 : boundary;
  // Far ends may lie beyond the clock; an event there ends the run.
  const Wide ticks = static_cast<Wide>(end_ticks_) + ahead_ticks_ + stretch_.ticks_of(n);
  const auto ns = static_cast<std::int64_t>(
      std::min<Wide>(ticks / kTicks, std::numeric_limits<std::int64_t>::max() / kTicks));
  return SimTime::from_ns(ns);
}

// find_publication() in a stretch, where it can be seen further. What a pass brings goes out at the
// boundary after it.
SimTime Replica::publication_in_stretch(const Rank& r) const {
  if (r.log == nullptr) return wake_;
  if (publishes(r)) return end_;
  const std::int64_t silent = r.scheduler.passes_without_events(stretch_.left() + 1);
  return silent > stretch_.left() ? wake_ : std::min(wake_, stretch_end(silent + 1));
}

// Boundaries up to `now` at which every sequence gets one token and nothing else happens.
void Replica::decode_boundaries(SimTime now) {
  Rank& r = ranks_.front();
  if (listener_ == nullptr && end_ < next_publication_ && r.scheduler.takes_blank_blocks())
    return boundaries_without_events(r,
                                     std::min(now, next_publication_ - Duration::nanoseconds(1)));
  const std::int64_t steady = r.on_gpu().steady;
  while (stretch_.left() > 0 && end_ <= now) {
    report_step();
    const SimTime at = end_;
    observe(r, at);
    r.gauges = stretch_.gauges();
    if (publishes(r)) flush_events(r, at);
    const Duration gap = at - last_boundary_;
    gaps_->add_nano(gap.ns(), steady);
    r.scheduler.count_steady(steady);
    busy_ += gap;
    last_boundary_ = at;
    ++steps_;
    r.scheduler.run_decode_pass();
    stretch_.set_free_blocks(r.scheduler.kv().free_blocks());
    end_ticks_ +=
        ahead_ticks_ > 0 ? std::exchange(ahead_ticks_, stretch_.ticks(0)) : stretch_.ticks(0);
    end_ = SimTime::from_ns(end_ticks_ / kTicks);
    range_watch_.add_stretch(stretch_.run(), stretch_.index(), stretch_.index() + 1);
    stretch_.advance(1);
    advance_plans(r, 1);
  }
  next_publication_ = stretch_.left() > 0 ? publication_in_stretch(r) : find_publication();
  ROUTESIM_DCHECK(wake_ >= end_, "a stretch of decode steps was longer than foreseen");
}

// The same before next_publication_: since nobody can see when a block was taken, those of all
// passes are taken at once. Most steps of a run end here, so everything is in local variables.
void Replica::boundaries_without_events(Rank& r, SimTime now) {
  const bool async = options_.rules.async_scheduling;
  const KvCache& kv = r.scheduler.kv();
  std::array<std::int64_t, 32> gaps;
  std::int64_t passes = 0, taken = 0, used = kv.used_blocks();
  std::int64_t last = last_boundary_.ns(), end = end_.ns(), ticks = end_ticks_;
  std::int64_t ahead = ahead_ticks_, step = stretch_.ticks(0);
  Wide used_integral = 0;
  Gauges gauges = r.gauges;
  Gauges next = stretch_.gauges();
  const std::int64_t most = std::min(stretch_.left(), std::ssize(gaps));
  do {
    if (r.scrapes.next().ns() < end) r.scrapes.take(SimTime::from_ns(end), gauges);
    gauges = next;
    const std::int64_t gap = end - last;
    gaps[static_cast<std::size_t>(passes++)] = gap;
    used_integral += static_cast<Wide>(used) * gap;
    taken = r.scheduler.crossings_in(passes);
    used += taken;
    next.free_blocks -= taken;
    last = end;
    ticks += async ? std::exchange(ahead, step) : step;
    step += stretch_.run().increment;
    end = ticks / kTicks;
  } while (passes < most && end <= now.ns());
  r.gauges = gauges;
  stretch_.set_free_blocks(next.free_blocks);
  r.used_integral += used_integral;
  r.peak_used = std::max(r.peak_used, used - taken);
  r.scheduler.run_decode_passes(passes, used - kv.used_blocks());
  gaps_->add_nanos({gaps.data(), static_cast<std::size_t>(passes)}, r.on_gpu().steady);
  r.scheduler.count_steady(passes * r.on_gpu().steady);
  busy_ += Duration::nanoseconds(last - last_boundary_.ns());
  last_boundary_ = SimTime::from_ns(last);
  end_ = SimTime::from_ns(end);
  end_ticks_ = ticks;
  ahead_ticks_ = ahead;
  range_watch_.add_stretch(stretch_.run(), stretch_.index(), stretch_.index() + passes);
  stretch_.advance(passes);
  steps_ += passes;
  advance_plans(r, passes);
  ROUTESIM_DCHECK(wake_ >= end_, "a stretch of decode steps was longer than foreseen");
  ROUTESIM_DCHECK(!publishes(r) || next_publication_ == end_,
                  "events are published a step too late");
}

// Passes of a stretch differ in their number and in their contexts, which have grown.
void Replica::advance_plans(Rank& r, std::int64_t passes) {
  if (passes == 0) return;
  const bool async = options_.rules.async_scheduling;
  StepPlan& last = async ? r.ahead() : r.on_gpu();
  const models::BatchShape before = last.shape;
  last.shape.shared_context = r.scheduler.kv().shared_tokens();
  last.shape.shared_once = r.scheduler.kv().shared_once();
  last.shape.decode_context += passes * before.decode_requests;
  last.pass += passes;
  if (!async) return;
  StepPlan& gpu = r.on_gpu();
  gpu.shape = passes == 1 ? before : last.shape;
  gpu.shape.decode_context = last.shape.decode_context - before.decode_requests;
  gpu.pass += passes;
}

Gauges Replica::scrape(int rank, SimTime at, SimTime now) {
  if (stepping_ && end_ <= at) {
    if (const std::optional<Gauges> certain = stretch_gauges(at)) return *certain;
    advance_to(now);
  }
  const Rank& r = ranks_[static_cast<std::size_t>(rank)];
  if (at >= last_boundary_) return r.gauges;
  ROUTESIM_DCHECK(r.scrapes.taken_at() == at, "a scrape instant was passed without a snapshot");
  return r.scrapes.gauges();
}

// The gauges at `at`, which is not before end_, if all boundaries until then belong to the stretch.
std::optional<Gauges> Replica::stretch_gauges(SimTime at) const {
  if (stretch_.left() == 0) return std::nullopt;
  const BatchScheduler& scheduler = ranks_.front().scheduler;
  const std::int64_t too_late = (at.ns() + 1) * kTicks;
  const bool async = ahead_ticks_ > 0;
  std::int64_t ticks = end_ticks_;
  std::int64_t step = async ? ahead_ticks_ : stretch_.ticks(0);
  std::int64_t next_step = stretch_.ticks(async ? 0 : 1);
  Gauges gauges = stretch_.gauges();
  for (std::int64_t n = 1;; ++n) {
    ticks += step;
    if (ticks >= too_late) return gauges;
    if (n == stretch_.left()) return std::nullopt;
    gauges.free_blocks -= scheduler.crossings_in(n);
    step = std::exchange(next_step, next_step + stretch_.run().increment);
  }
}

Gauges Replica::true_gauges(int rank) const {
  const Rank& r = ranks_[static_cast<std::size_t>(rank)];
  Gauges gauges = gauges_now(r);
  gauges.waiting += std::count_if(r.inbox.begin(), r.inbox.end(),
                                  [](const Input& in) { return in.kind == InputKind::kRequest; });
  return gauges;
}

SimTime Replica::next_scrape(int rank, SimTime now) const {
  return ranks_[static_cast<std::size_t>(rank)].scrapes.next_after(now);
}

double Replica::used_block_seconds(int rank, SimTime now) const {
  const Rank& r = ranks_[static_cast<std::size_t>(rank)];
  const Wide since_boundary =
      static_cast<Wide>(r.scheduler.kv().used_blocks()) * (now - last_boundary_).ns();
  return static_cast<double>(r.used_integral + since_boundary) * 1e-9;
}

std::int64_t Replica::peak_used_blocks(int rank) const {
  const Rank& r = ranks_[static_cast<std::size_t>(rank)];
  return std::max(r.peak_used, r.scheduler.kv().used_blocks());
}

bool Replica::idle() const {
  for (const Rank& r : ranks_)
    if (!r.scheduler.idle() || !r.inbox.empty()) return false;
  return true;
}

void Replica::verify() const {
  for (const Rank& r : ranks_) {
    r.scheduler.verify();
    if (pipeline_.in_use()) pipeline_.verify(r.on_gpu());
    ROUTESIM_CHECK(stepping_ || r.scheduler.running() == 0,
                   "a replica with running requests is idle: " + r.scheduler.describe_queues());
  }
}

}  // namespace routesim::sim
