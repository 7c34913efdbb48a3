#include "workloads/client.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace routesim::workloads {

SimTime stage_end(SimTime start, SimTime last, Duration poll) {
  if (poll <= Duration::zero()) return last;
  const std::int64_t elapsed = (last - start).ns();
  const std::int64_t polls = (elapsed + poll.ns() - 1) / poll.ns();
  return start + poll * polls;
}

StagedClient::StagedClient(std::vector<StagePlan> stages, std::unique_ptr<RequestSource> source,
                           StageTiming timing, std::unique_ptr<RateSweep> sweep)
    : plans_(std::move(stages)),
      source_(std::move(source)),
      timing_(timing),
      sweep_(std::move(sweep)) {
  infos_.reserve(plans_.size());
  for (const StagePlan& plan : plans_) {
    ROUTESIM_CHECK(plan.permits >= 1, "a stage without permits would never end");
    infos_.push_back(plan.info);
    if (plan.permits != kUnlimitedPermits) infos_.back().in_flight_cap = plan.permits;
  }
  if (!plans_.empty()) start_stage(SimTime::zero());
}

void StagedClient::start_stage(SimTime start) {
  // A loop, not a recursion: stages without requests are over at once.
  for (;; start = start + timing_.interval) {
    stage_start_ = start;
    index_ = 0;
    if (is_probe())
      limit_ = start + sweep_->probe_limit();
    else if (sweep_ != nullptr)
      plans_[stage_].arrivals = sweep_->start_stage(stage_, infos_[stage_]);
    draw();
    if (!all_sent()) return;
    plans_[stage_].arrivals.reset();
    if (++stage_ == plans_.size()) return;
  }
}

void StagedClient::draw() {
  next_ = drawn_ = 0;
  for (Duration due; drawn_ < kAhead && plans_[stage_].arrivals->next(due); ++drawn_) {
    Request& request = ahead_[drawn_];
    request = {};
    request.id = RequestId(next_id_++);
    request.stage = StageId(stage_);
    request.due = stage_start_ + timing_.lead + due;
    request.timeout = plans_[stage_].timeout;
    source_->fill(stage_, index_++, request);
  }
}

void StagedClient::end_stage_if_over(SimTime now) {
  if (!all_sent() || in_flight_ > 0) return;
  plans_[stage_].arrivals.reset();
  SimTime next = stage_end(stage_start_, now, timing_.poll) + timing_.interval;
  if (is_probe()) {
    next = stage_start_ + sweep_->probe_end(now - stage_start_);
    limit_ = SimTime::max();
    if (!sweep_->finish_probe(next - stage_start_)) stage_ = plans_.size() - 1;
  }
  if (++stage_ < plans_.size()) start_stage(next);
}

void StagedClient::see() {
  if (is_probe()) sweep_->see(now_ - stage_start_, in_flight_);
}

std::vector<std::string> StagedClient::notes() const {
  if (sweep_ == nullptr || sweep_->note().empty()) return {};
  return {sweep_->note()};
}

SimTime StagedClient::next_action() const {
  if (finished() || all_sent()) return SimTime::max();
  const bool may_send = in_flight_ < plans_[stage_].permits;
  return std::max(std::min(may_send ? ahead_[next_].due : SimTime::max(), limit_), now_);
}

void StagedClient::advance(SimTime now, std::vector<Request>& out) {
  ROUTESIM_DCHECK(now >= now_, "time went back");
  now_ = now;
  if (now >= limit_ && !all_sent()) {
    next_ = drawn_ = 0;
    end_stage_if_over(now);
  }
  while (!all_sent() && ahead_[next_].due <= now && in_flight_ < plans_[stage_].permits) {
    out.push_back(std::move(ahead_[next_++]));
    if (is_probe())
      out.back().timeout =
          std::min(out.back().timeout, stage_start_ + sweep_->probe_deadline() - now);
    ++in_flight_;
    if (all_sent()) draw();
  }
  see();
}

void StagedClient::on_completed(const Request& request, Outcome, SimTime now) {
  ROUTESIM_CHECK(!finished() && request.stage == StageId(stage_) && in_flight_ > 0,
                 "completion of a request that is not in flight");
  now_ = std::max(now_, now);
  --in_flight_;
  see();
  end_stage_if_over(now);
}

}  // namespace routesim::workloads
