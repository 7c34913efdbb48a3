#include "sim/telemetry/kv_replays.h"

#include <algorithm>
#include <utility>

namespace routesim::sim {

KvReplays::KvReplays(Duration round_trip, std::vector<bool> answers, std::size_t processes)
    : round_trip_(round_trip), answers_(std::move(answers)), streams_(answers_.size()) {
  for (Stream& s : streams_) s.by_process.resize(processes);
}

void KvReplays::ask(Subscription& s, std::uint32_t endpoint, std::uint64_t from, SimTime now) {
  s.ask = Ask{.answered = now + round_trip_, .from = from};
  due_.push_back({s.ask->answered, endpoint});
}

void KvReplays::subscribe(std::size_t process, std::uint32_t endpoint, SimTime now) {
  Stream& stream = streams_[endpoint];
  Subscription& s = stream.by_process[process];
  s = {.since = now, .next = stream.gone};
  ask(s, endpoint, 0, now);
}

void KvReplays::unsubscribe(std::size_t process, std::uint32_t endpoint) {
  Subscription& s = streams_[endpoint].by_process[process];
  s.open = false;
  s.ask.reset();
}

void KvReplays::add(std::uint32_t endpoint, const KvEventLog::Batch& batch,
                    std::span<const std::uint64_t> words) {
  Stream& stream = streams_[endpoint];
  const std::uint32_t before = stream.stored.empty() ? 0 : stream.stored.back().life;
  stream.stored.push_back({.batch = batch,
                           .life = before + (batch.number == 0 ? 1 : 0),
                           .words = {words.begin(), words.end()}});
  forget_old(stream);
}

// Batches stay until every process has read them.
void KvReplays::forget_old(Stream& stream) {
  if (stream.stored.size() <= kBufferSteps + kBufferSteps / 10) return;
  for (const Subscription& s : stream.by_process)
    if (s.open && s.next <= stream.gone) return;
  stream.stored.pop_front();
  ++stream.gone;
}

void KvReplays::take_due(SimTime now, std::vector<std::uint32_t>& endpoints) {
  std::erase_if(due_, [&](const Due& due) {
    if (due.at > now) return false;
    endpoints.push_back(due.endpoint);
    return true;
  });
}

void KvReplays::read(std::size_t process, std::uint32_t endpoint, SimTime now, Index& index) {
  Stream& stream = streams_[endpoint];
  Subscription& s = stream.by_process[process];
  while (s.open) {
    if (s.ask) {
      if (s.ask->answered > now) return;
      finish(s, endpoint, index);
    }
    if (s.next == stream.gone + stream.stored.size()) return;
    const Stored& b = stream.stored[s.next - stream.gone];
    if (b.batch.lost || b.batch.visible <= s.since) {
      ++s.next;
      continue;
    }
    const SimTime at = std::max(b.batch.visible, s.free);
    const policies::SequenceVerdict verdict = s.tracker.observe(b.batch.number, at, s.asked);
    using Action = policies::SequenceAction;
    s.asked = verdict.action == Action::kReplay || verdict.action == Action::kClearAndReplay;
    if (verdict.action == Action::kClearAndReplay) index.clear();
    if (verdict.action == Action::kDeliver) KvEventLog::read(b.words, index);
    if (s.asked)
      ask(s, endpoint, verdict.replay_from, at);
    else
      ++s.next;
  }
}

// The engine reads a request half a round trip after it was sent, and sends what it has then.
void KvReplays::finish(Subscription& s, std::uint32_t endpoint, Index& index) {
  const Ask ask = *std::exchange(s.ask, std::nullopt);
  s.free = ask.answered;
  const std::deque<Stored>& stored = streams_[endpoint].stored;
  const auto end = std::partition_point(stored.begin(), stored.end(), [&](const Stored& b) {
    return b.batch.visible <= ask.answered;
  });
  auto begin = end;
  while (begin != stored.begin() && std::prev(begin)->life == std::prev(end)->life &&
         static_cast<std::size_t>(end - begin) < kBufferSteps)
    --begin;
  while (begin != end && begin->batch.number < ask.from) ++begin;
  const bool whole = ask.from == (begin == end ? 0 : begin->batch.number);
  if (!whole || !answers_[endpoint]) {
    ++failed_;
    index.clear();
    s.tracker.on_replay_failed(ask.answered);
    return;
  }
  std::for_each(begin, end, [&](const Stored& b) { KvEventLog::read(b.words, index); });
  s.tracker.on_replayed(begin == end ? std::nullopt : std::optional(std::prev(end)->batch.number));
}

}  // namespace routesim::sim
