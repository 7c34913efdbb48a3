#include "workloads/sessions/session_client.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace routesim::workloads {

SessionClient::SessionClient(std::vector<Stage> stages, std::unique_ptr<SessionSource> source,
                             StageTiming timing, std::unique_ptr<RateSweep> sweep)
    : StageClient(timing, std::move(sweep)), plans_(std::move(stages)), source_(std::move(source)) {
  for (const Stage& plan : plans_) {
    ROUTESIM_CHECK(!plan.permits.empty(), "a stage needs a worker");
    for (const std::int64_t permits : plan.permits)
      ROUTESIM_CHECK(permits >= 1, "an active worker needs a permit");
    infos_.push_back(plan.info);
    infos_.back().in_flight_cap =
        std::accumulate(plan.permits.begin(), plan.permits.end(), std::int64_t{0});
  }
  if (!plans_.empty()) start_stage(SimTime::zero());
}

std::size_t SessionClient::worker_of(std::int64_t index) const {
  return static_cast<std::size_t>(source_->worker_of(index)) % plans_[stage_].permits.size();
}

void SessionClient::start_stage(SimTime start) {
  // A loop, not a recursion: stages without requests are skipped.
  for (;; start = stage_start_ + timing_.interval, ++stage_) {
    if (finished()) return;
    begin_stage(start, plans_[stage_].arrivals);
    due_.clear();
    if (is_probe()) events_.add(limit_, {What::kLimit, 0});
    Duration due;
    while (plans_[stage_].arrivals->next(due)) due_.push_back(start + timing_.lead + due);
    if (!due_.empty()) break;
  }
  unfinished_ = static_cast<std::int64_t>(due_.size());
  locks_.clear();
  const std::size_t workers = plans_[stage_].permits.size();
  queues_.assign(workers, {});
  heads_.assign(workers, 0);
  for (std::int64_t i = 0; i < unfinished_; ++i) queues_[worker_of(i)].push_back(i);
  for (std::size_t w = 0; w < workers; ++w) {
    const std::int64_t count = std::min<std::int64_t>(plans_[stage_].permits[w],
                                                      static_cast<std::int64_t>(queues_[w].size()));
    for (std::int64_t k = 0; k < count; ++k) admit(w);
  }
}

void SessionClient::admit(std::size_t worker) {
  if (heads_[worker] == queues_[worker].size()) return;
  const std::int64_t index = queues_[worker][heads_[worker]++];
  events_.add(std::max(due_[static_cast<std::size_t>(index)], now_), {What::kDue, index});
}

SimTime SessionClient::next_action() const { return std::max(events_.next_at(), now_); }

void SessionClient::advance(SimTime now, std::vector<Request>& out) {
  ROUTESIM_DCHECK(now >= now_, "time went back");
  now_ = now;
  while (events_.is_due(now)) {
    const Event event = events_.take().what;
    switch (event.what) {
      case What::kDue: {
        change_under_way(1);
        Lock& lock = locks_[source_->session_of(stage_, event.index)];
        if (lock.held) {
          lock.waiting.push_back(event.index);
        } else {
          lock.held = true;
          send(event.index, out);
        }
        break;
      }
      case What::kSend:
        send(event.index, out);
        break;
      case What::kRelease:
        release(event.index);
        break;
      case What::kLimit:
        cut();
        break;
    }
  }
}

void SessionClient::send(std::int64_t index, std::vector<Request>& out) {
  Request request;
  request.id = RequestId(next_id_++);
  request.stage = StageId(stage_);
  request.due = due_[static_cast<std::size_t>(index)];
  request.timeout = timeout(plans_[stage_].timeout);
  source_->fill(stage_, index, request);
  index_of_.emplace(request.id.value(), index);
  out.push_back(std::move(request));
}

void SessionClient::on_completed(const Request& request, Outcome outcome, SimTime now) {
  now_ = std::max(now_, now);
  const auto found = index_of_.find(request.id.value());
  ROUTESIM_CHECK(found != index_of_.end(), "completion of a request that is not in flight");
  const std::int64_t index = found->second;
  index_of_.erase(found);
  source_->completed(stage_, index, request, outcome);
  const Duration hold = outcome == Outcome::kSuccess ? request.held_open : Duration::zero();
  if (hold > Duration::zero() && now < limit_) {
    events_.add(now + hold, {What::kRelease, index});
  } else {
    release(index);
  }
}

void SessionClient::release(std::int64_t index) {
  change_under_way(-1);
  const std::uint64_t session = source_->session_of(stage_, index);
  Lock& lock = locks_[session];
  if (lock.waiting.empty() || now_ >= limit_) {
    locks_.erase(session);
  } else {
    // The lock passes straight to the next round; it leaves at the next advance, which is now.
    events_.add(now_, {What::kSend, lock.waiting.front()});
    lock.waiting.pop_front();
  }
  admit(worker_of(index));
  if (--unfinished_ == 0) end_stage();
}

void SessionClient::change_under_way(std::int64_t by) {
  if (is_probe()) see(under_way_ += by);
}

/// The tool sends no more in a probe that takes too long; what is under way has timeouts.
void SessionClient::cut() {
  events_.clear();
  for (std::size_t w = 0; w < queues_.size(); ++w) heads_[w] = queues_[w].size();
  unfinished_ = static_cast<std::int64_t>(index_of_.size());
  if (unfinished_ == 0) end_stage();
}

void SessionClient::end_stage() {
  source_->end_of_stage(stage_);
  if (is_probe()) events_.clear();
  start_stage(next_stage());
}

}  // namespace routesim::workloads
