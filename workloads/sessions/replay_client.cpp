#include "workloads/sessions/replay_client.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "workloads/client.h"
#include "workloads/load_stages.h"

namespace routesim::workloads {
namespace {

/// "[SESS:" and 16 hexadecimal digits, in tokens of common vocabularies (12 to 16).
constexpr std::int64_t kMarkTokens = 14;
constexpr std::uint64_t kWorkerSalt = 0x776f726b6572ULL;
/// The tool looks whether everything has ended once a second, first after one.
constexpr Duration kTeardown = Duration::seconds(1);

}  // namespace

SessionRun::SessionRun(const Session& session) : session_(&session), calls_(session.calls.size()) {
  for (std::uint32_t c = 0; c < size(); ++c) {
    const std::vector<std::uint32_t>& predecessors = session.calls[c].predecessors;
    calls_[c].missing = static_cast<std::uint32_t>(predecessors.size());
    for (const std::uint32_t p : predecessors) calls_[p].successors.push_back(c);
  }
}

bool SessionRun::begin(std::uint32_t call) {
  Call& c = calls_[call];
  c.state = c.missing == 0 ? State::kPausing : State::kWaiting;
  return c.missing == 0;
}

void SessionRun::send(std::uint32_t call, std::int64_t answer_tokens) {
  calls_[call].state = State::kSent;
  calls_[call].answer_tokens = answer_tokens;
}

std::int64_t SessionRun::end(std::uint32_t call, bool success, std::vector<std::uint32_t>& ready) {
  std::int64_t ended = 0;
  std::vector<std::uint32_t> ending = {call};
  while (!ending.empty()) {
    Call& e = calls_[ending.back()];
    ending.pop_back();
    e.state = success ? State::kDone : State::kFailed;
    ++ended;
    for (const std::uint32_t s : e.successors) {
      Call& next = calls_[s];
      if (success) --next.missing;
      if (next.state != State::kWaiting) continue;
      if (!success) {
        next.state = State::kFailed;
        ending.push_back(s);
      } else if (next.missing == 0) {
        next.state = State::kPausing;
        ready.push_back(s);
      }
    }
  }
  ended_ += static_cast<std::size_t>(ended);
  done_ += success ? 1 : 0;
  failed_ = failed_ || !success;
  return ended;
}

SessionPrompts::SessionPrompts(std::shared_ptr<const Sessions> sessions,
                               std::vector<ReplaySlot> slots, bool mark,
                               const WorkloadOptions& options)
    : sessions_(std::move(sessions)),
      slots_(std::move(slots)),
      mark_(mark),
      seed_(options.seed),
      frame_(options.chat_template, options.seed) {}

const Session& SessionPrompts::session(std::size_t slot) const {
  return (*sessions_)[slots_[slot].session];
}

std::uint64_t SessionPrompts::answer_content(std::size_t slot, std::uint32_t call) const {
  return content_id(seed_, ContentKind::kAnswer, slot, call);
}

std::shared_ptr<const Prompt> SessionPrompts::make(std::size_t slot, std::uint32_t call,
                                                   const SessionRun& run) {
  // The calls whose messages the prompt begins with, from the last to the first, and how many
  // messages of each count.
  std::vector<std::pair<std::uint32_t, std::size_t>> chain;
  std::size_t limit = std::numeric_limits<std::size_t>::max();
  for (std::uint32_t c = call;;) {
    chain.emplace_back(c, limit);
    const std::vector<PromptPart>& parts = run.recorded(c).parts;
    if (parts.empty() || parts.front().kind != PromptPart::Kind::kShared) break;
    limit = std::min<std::size_t>(limit, parts.front().messages);
    c = parts.front().source;
  }
  const SessionCall& own = run.recorded(call);
  const bool has_tools = own.tools.length + own.more_tools.length > 0;
  const bool marked = mark_ || slots_[slot].duplicate;
  PromptBuilder prompt;
  frame_.preamble(prompt);
  prompt.preamble_is_done().append(own.tools).append(own.more_tools);
  std::size_t messages = 0;
  const auto add_message = [&](const PromptPart& part, const SessionCall& from,
                               std::size_t& recorded) {
    frame_.header(prompt);
    if (messages++ == 0 && !has_tools) prompt.preamble_is_done();
    const bool report = part.kind == PromptPart::Kind::kReport;
    if (part.kind == PromptPart::Kind::kRecorded && marked)
      prompt.append(content_id(seed_, ContentKind::kTurnInput, slot), kMarkTokens);
    if (part.kind != PromptPart::Kind::kAnswer) prompt.append(*from.recorded[recorded++]);
    if (part.kind != PromptPart::Kind::kRecorded)
      prompt.append(answer_content(slot, part.source), run.answer_tokens(part.source));
    if (report) prompt.append(*from.recorded[recorded++]);
  };
  for (auto link = chain.rbegin(); link != chain.rend(); ++link) {
    const SessionCall& from = run.recorded(link->first);
    std::size_t recorded = 0;
    for (const PromptPart& part : from.parts) {
      if (part.kind == PromptPart::Kind::kShared) continue;
      for (std::uint32_t m = 0; m < part.messages && messages < link->second; ++m)
        add_message(part, from, recorded);
    }
  }
  frame_.reply(prompt);
  return std::move(prompt).build(ids_.next());
}

ReplayClient::ReplayClient(std::shared_ptr<const Sessions> sessions, std::vector<ReplaySlot> slots,
                           std::vector<ReplayStage> stages, const ReplayClientOptions& client,
                           const WorkloadOptions& options)
    : prompts_(std::move(sessions), std::move(slots), client.mark_sessions, options),
      stages_(std::move(stages)),
      client_(client),
      seed_(options.seed),
      answer_(options.natural_answer, client.ignore_eos, options.seed),
      active_(prompts_.slots()) {
  ROUTESIM_CHECK(!client_.permits.empty(), "a client needs a worker");
  std::int64_t asked = 0;
  for (const ReplayStage& stage : stages_) {
    infos_.push_back(stage.info);
    asked += stage.sessions;
  }
  ROUTESIM_CHECK(asked <= static_cast<std::int64_t>(prompts_.slots()),
                 "the stages run more sessions than there are");
  if (!stages_.empty()) events_.add(SimTime::zero(), {What::kStage});
}

std::size_t ReplayClient::worker_of(std::size_t slot) const {
  return static_cast<std::size_t>(mix64(mix64(seed_, kWorkerSalt), slot) % client_.permits.size());
}

void ReplayClient::start_stage(SimTime start) {
  const ReplayStage& stage = stages_[stage_];
  stage_start_ = next_session_ = start;
  over_.reset();
  next_slot_ = last_slot_;
  last_slot_ += static_cast<std::size_t>(stage.sessions);
  running_ = 0;
  workers_.clear();
  for (const std::int64_t permits : client_.permits) workers_.push_back({permits, {}});
  if (stage.sessions == 0) {
    if (++stage_ < stages_.size()) events_.add(start + client_.interval, {What::kStage});
    return;
  }
  if (stage.limit != Duration::max()) events_.add(start + stage.limit, {What::kLimit});
  start_sessions();
}

void ReplayClient::start_sessions() {
  const ReplayStage& stage = stages_[stage_];
  while (next_slot_ < last_slot_ && (stage.concurrent == 0 || running_ < stage.concurrent)) {
    if (stage.session_rate && now_ < next_session_) {
      events_.add(next_session_, {What::kSession});
      return;
    }
    if (stage.session_rate)
      next_session_ = std::max(next_session_ + within_a_century(1 / *stage.session_rate), now_);
    start_session(next_slot_++);
  }
}

void ReplayClient::start_session(std::size_t slot) {
  active_[slot] = std::make_unique<SessionRun>(prompts_.session(slot));
  const std::size_t worker = worker_of(slot);
  for (std::uint32_t c = 0; c < active_[slot]->size(); ++c)
    workers_[worker].queue.emplace_back(slot, c);
  ++running_;
  pump(worker);
}

void ReplayClient::pump(std::size_t worker) {
  Worker& w = workers_[worker];
  while (w.permits > 0 && !w.queue.empty()) {
    const auto [slot, call] = w.queue.front();
    w.queue.pop_front();
    --w.permits;
    begin_call(slot, call);
  }
}

void ReplayClient::begin_call(std::size_t slot, std::uint32_t call) {
  if (active_[slot]->has_failed()) return end_call(slot, call, false);
  if (active_[slot]->begin(call)) return pause(slot, call);
  if (client_.predecessor_wait > Duration::zero())
    events_.add(now_ + client_.predecessor_wait, {What::kGiveUp, slot, call});
}

void ReplayClient::pause(std::size_t slot, std::uint32_t call) {
  events_.add(now_ + active_[slot]->recorded(call).wait, {What::kSend, slot, call});
}

void ReplayClient::end_call(std::size_t slot, std::uint32_t call, bool success) {
  SessionRun& run = *active_[slot];
  const bool first_failure = !success && !run.has_failed();
  std::vector<std::uint32_t> ready;
  workers_[worker_of(slot)].permits += run.end(call, success, ready);
  for (const std::uint32_t r : ready) pause(slot, r);
  if (first_failure || run.has_succeeded()) --running_;
  if (run.has_ended()) active_[slot].reset();
}

/// After anything that may have ended a call: others take its permit, sessions its place.
void ReplayClient::settle(std::size_t worker) {
  pump(worker);
  start_sessions();
  if (running_ == 0 && next_slot_ == last_slot_) stop_sending();
  end_stage_if_over();
}

void ReplayClient::stop_sending() {
  over_ = now_;
  events_.clear();
  for (Worker& worker : workers_) worker.queue.clear();
  for (std::unique_ptr<SessionRun>& active : active_) active.reset();
}

void ReplayClient::end_stage_if_over() {
  if (!over_ || !in_flight_.empty()) return;
  const SimTime end = stage_end(*over_, std::max(now_, *over_ + kTeardown), kTeardown);
  if (++stage_ < stages_.size()) events_.add(end + client_.interval, {What::kStage});
}

SimTime ReplayClient::next_action() const { return std::max(events_.next_at(), now_); }

void ReplayClient::advance(SimTime now, std::vector<Request>& out) {
  ROUTESIM_DCHECK(now >= now_, "time went back");
  now_ = now;
  while (events_.is_due(now)) {
    const auto due = events_.take();
    const Event& event = due.what;
    switch (event.what) {
      case What::kStage:
        start_stage(due.at);
        break;
      case What::kSession:
        start_sessions();
        break;
      case What::kSend:
        send(event.slot, event.call, out);
        break;
      case What::kGiveUp:
        if (active_[event.slot] == nullptr || !active_[event.slot]->is_waiting(event.call)) break;
        end_call(event.slot, event.call, false);
        settle(worker_of(event.slot));
        break;
      case What::kLimit:
        stop_sending();
        end_stage_if_over();
        break;
    }
  }
}

void ReplayClient::send(std::size_t slot, std::uint32_t call, std::vector<Request>& out) {
  SessionRun& run = *active_[slot];
  const SessionCall& recorded = run.recorded(call);
  const ReplayStage& stage = stages_[stage_];
  const auto entity = (static_cast<std::uint64_t>(slot) << 20U) | call;
  run.send(call, recorded.stops_by_itself ? recorded.output_tokens
                                          : answer_(recorded.output_tokens, entity));
  Request request;
  request.id = RequestId(next_id_++);
  request.prompt = prompts_.make(slot, call, run);
  request.output_tokens = run.answer_tokens(call);
  request.max_tokens = recorded.max_tokens;
  request.output_content = prompts_.answer_content(slot, call);
  request.stage = StageId(stage_);
  request.session = slot + 1;
  request.due = now_;
  request.timeout = client_.request_timeout;
  if (stage.limit != Duration::max())
    request.timeout = std::min(request.timeout, stage_start_ + stage.limit + stage.grace - now_);
  in_flight_.emplace(request.id.value(), std::pair{slot, call});
  out.push_back(std::move(request));
}

void ReplayClient::on_completed(const Request& request, Outcome outcome, SimTime now) {
  now_ = std::max(now_, now);
  const auto found = in_flight_.find(request.id.value());
  ROUTESIM_CHECK(found != in_flight_.end(), "completion of a request that is not in flight");
  const auto [slot, call] = found->second;
  in_flight_.erase(found);
  if (over_) return end_stage_if_over();
  end_call(slot, call, outcome == Outcome::kSuccess);
  settle(worker_of(slot));
}

}  // namespace routesim::workloads
