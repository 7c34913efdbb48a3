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

ReplayClient::ReplayClient(std::shared_ptr<const ReplayCorpus> corpus,
                           std::vector<ReplaySlot> slots, std::vector<ReplayStage> stages,
                           const ReplayClientOptions& client, const WorkloadOptions& options)
    : corpus_(std::move(corpus)),
      slots_(std::move(slots)),
      stages_(std::move(stages)),
      client_(client),
      seed_(options.seed),
      template_(options.chat_template),
      answer_(options.natural_answer, client.ignore_eos, options.seed),
      active_(slots_.size()) {
  ROUTESIM_CHECK(!client_.permits.empty(), "a client needs a worker");
  std::int64_t sessions = 0;
  for (const ReplayStage& stage : stages_) {
    infos_.push_back(stage.info);
    sessions += stage.sessions;
  }
  ROUTESIM_CHECK(sessions <= static_cast<std::int64_t>(slots_.size()),
                 "the stages run more sessions than there are");
  if (!stages_.empty()) events_.add(SimTime::zero(), {What::kStage});
}

std::size_t ReplayClient::worker_of(std::size_t slot) const {
  return static_cast<std::size_t>(mix64(mix64(seed_, kWorkerSalt), slot) % client_.permits.size());
}

std::uint64_t ReplayClient::answer_content(std::size_t slot, std::uint32_t call) const {
  return content_id(seed_, ContentKind::kAnswer, slot, call);
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
  auto active = std::make_unique<Active>();
  active->session = &corpus_->sessions[slots_[slot].session];
  const std::vector<ReplayCall>& calls = active->session->calls;
  active->calls.resize(calls.size());
  active->successors.resize(calls.size());
  const std::size_t worker = worker_of(slot);
  for (std::uint32_t c = 0; c < calls.size(); ++c) {
    active->calls[c].missing = static_cast<std::uint32_t>(calls[c].predecessors.size());
    for (const std::uint32_t p : calls[c].predecessors) active->successors[p].push_back(c);
    workers_[worker].queue.emplace_back(slot, c);
  }
  active_[slot] = std::move(active);
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
  Active& active = *active_[slot];
  if (active.failed) return end_call(slot, call, false);
  Call& c = active.calls[call];
  if (c.missing == 0) {
    c.state = State::kPausing;
    events_.add(now_ + active.session->calls[call].wait, {What::kSend, slot, call});
    return;
  }
  c.state = State::kWaiting;
  if (client_.predecessor_wait > Duration::zero())
    events_.add(now_ + client_.predecessor_wait, {What::kGiveUp, slot, call});
}

void ReplayClient::end_call(std::size_t slot, std::uint32_t call, bool success) {
  Active& active = *active_[slot];
  std::vector<std::uint32_t> ended = {call};  // And those that fail with it.
  while (!ended.empty()) {
    const std::uint32_t e = ended.back();
    ended.pop_back();
    active.calls[e].state = success ? State::kDone : State::kFailed;
    ++active.ended;
    ++workers_[worker_of(slot)].permits;
    for (const std::uint32_t s : active.successors[e]) {
      Call& next = active.calls[s];
      if (success) --next.missing;
      if (next.state != State::kWaiting) continue;
      if (!success) {
        next.state = State::kFailed;
        ended.push_back(s);
      } else if (next.missing == 0) {
        next.state = State::kPausing;
        events_.add(now_ + active.session->calls[s].wait, {What::kSend, slot, s});
      }
    }
  }
  if (success) ++active.done;
  const bool over = success ? active.done == active.calls.size() : !active.failed;
  active.failed = active.failed || !success;
  if (active.ended == active.calls.size()) active_[slot].reset();
  if (over) --running_;
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
  for (std::unique_ptr<Active>& active : active_) active.reset();
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
        if (active_[event.slot] == nullptr ||
            active_[event.slot]->calls[event.call].state != State::kWaiting)
          break;
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
  Call& c = active_[slot]->calls[call];
  const ReplayCall& recorded = active_[slot]->session->calls[call];
  const ReplayStage& stage = stages_[stage_];
  c.state = State::kSent;
  const auto entity = (static_cast<std::uint64_t>(slot) << 20U) | call;
  c.answer_tokens =
      recorded.stops_by_itself ? recorded.output_tokens : answer_(recorded.output_tokens, entity);
  Request request;
  request.id = RequestId(next_id_++);
  request.prompt = prompt_of(slot, call);
  request.output_tokens = c.answer_tokens;
  request.max_tokens = recorded.max_tokens;
  request.output_content = answer_content(slot, call);
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

std::shared_ptr<const Prompt> ReplayClient::prompt_of(std::size_t slot, std::uint32_t call) {
  const Active& active = *active_[slot];
  const std::vector<ReplayCall>& calls = active.session->calls;
  // Whose messages the prompt begins with, and whose those begin with, …; and how many of each.
  std::vector<std::pair<std::uint32_t, std::size_t>> chain;
  std::size_t limit = std::numeric_limits<std::size_t>::max();
  for (std::uint32_t c = call;;) {
    chain.emplace_back(c, limit);
    const std::vector<ReplayPart>& parts = calls[c].parts;
    if (parts.empty() || parts.front().kind != ReplayPart::Kind::kShared) break;
    limit = std::min<std::size_t>(limit, parts.front().messages);
    c = parts.front().source;
  }
  PromptBuilder prompt;
  prompt.append(template_preamble(seed_), template_.preamble_tokens).preamble_is_done();
  prompt.append(calls[call].tools).append(calls[call].more_tools);
  std::size_t messages = 0;
  const bool marked = client_.mark_sessions || slots_[slot].duplicate;
  const auto header = [&] {
    prompt.append(template_header(seed_), template_.message_tokens);
    const bool has_tools = calls[call].tools.length + calls[call].more_tools.length > 0;
    if (messages++ == 0 && !has_tools) prompt.preamble_is_done();
  };
  for (auto link = chain.rbegin(); link != chain.rend(); ++link) {
    const ReplayCall& from = calls[link->first];
    std::size_t recorded = 0;
    for (const ReplayPart& part : from.parts) {
      if (part.kind == ReplayPart::Kind::kShared) continue;
      for (std::uint32_t m = 0; m < part.messages && messages < link->second; ++m) {
        header();
        if (part.kind == ReplayPart::Kind::kAnswer) {
          prompt.append(answer_content(slot, part.source), active.calls[part.source].answer_tokens);
          continue;
        }
        if (part.kind == ReplayPart::Kind::kReport) {
          prompt.append(*from.recorded[recorded++]);
          prompt.append(answer_content(slot, part.source), active.calls[part.source].answer_tokens);
          prompt.append(*from.recorded[recorded++]);
          continue;
        }
        if (marked) prompt.append(content_id(seed_, ContentKind::kTurnInput, slot), kMarkTokens);
        prompt.append(*from.recorded[recorded++]);
      }
    }
  }
  prompt.append(template_reply(seed_), template_.reply_tokens);
  return std::move(prompt).build(prompts_.next());
}

}  // namespace routesim::workloads
