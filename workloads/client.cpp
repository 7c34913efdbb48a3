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

StageClient::StageClient(StageTiming timing, std::unique_ptr<RateSweep> sweep)
    : timing_(timing), sweep_(std::move(sweep)) {}

std::vector<std::string> StageClient::notes() const {
  if (sweep_ == nullptr || sweep_->note().empty()) return {};
  return {sweep_->note()};
}

void StageClient::begin_stage(SimTime start, std::unique_ptr<ArrivalStream>& arrivals) {
  stage_start_ = start;
  if (is_probe())
    limit_ = start + sweep_->probe_limit();
  else if (sweep_ != nullptr)
    arrivals = sweep_->start_stage(stage_, infos_[stage_]);
}

void StageClient::see(std::int64_t under_way) {
  if (is_probe()) sweep_->see(now_ - stage_start_, under_way);
}

Duration StageClient::timeout(Duration own) const {
  return is_probe() ? std::min(own, stage_start_ + sweep_->probe_deadline() - now_) : own;
}

SimTime StageClient::next_stage() {
  SimTime next = stage_end(stage_start_, now_, timing_.poll) + timing_.interval;
  if (is_probe()) {
    next = stage_start_ + sweep_->probe_end(now_ - stage_start_);
    limit_ = SimTime::max();
    if (!sweep_->finish_probe(next - stage_start_)) stage_ = infos_.size() - 1;
  }
  ++stage_;
  return next;
}

StagedClient::StagedClient(std::vector<StagePlan> stages, std::unique_ptr<RequestSource> source,
                           StageTiming timing, std::unique_ptr<RateSweep> sweep)
    : StageClient(timing, std::move(sweep)), plans_(std::move(stages)), source_(std::move(source)) {
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
    begin_stage(start, plans_[stage_].arrivals);
    index_ = 0;
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

void StagedClient::end_stage_if_over() {
  if (!all_sent() || in_flight_ > 0) return;
  plans_[stage_].arrivals.reset();
  const SimTime next = next_stage();
  if (!finished()) start_stage(next);
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
    end_stage_if_over();
  }
  while (!all_sent() && ahead_[next_].due <= now && in_flight_ < plans_[stage_].permits) {
    out.push_back(std::move(ahead_[next_++]));
    out.back().timeout = timeout(out.back().timeout);
    ++in_flight_;
    if (all_sent()) draw();
  }
  see(in_flight_);
}

void StagedClient::on_completed(const Request& request, Outcome, SimTime now) {
  ROUTESIM_CHECK(!finished() && request.stage == StageId(stage_) && in_flight_ > 0,
                 "completion of a request that is not in flight");
  now_ = std::max(now_, now);
  --in_flight_;
  see(in_flight_);
  end_stage_if_over();
}

}  // namespace routesim::workloads
