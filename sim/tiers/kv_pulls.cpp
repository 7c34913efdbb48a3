#include "sim/tiers/kv_pulls.h"

#include <algorithm>
#include <utility>

namespace routesim::sim {

namespace {

/// A message over ZeroMQ and the round of an idle engine's loop that reads it: loops of an engine
/// with nothing to compute sleep for 1 ms (vLLM v0.27.1 v1/engine/core.py).
constexpr Duration kMessage = Duration::milliseconds(1);
/// A source holds back its answer while chunks are being written, for at most so long.
constexpr Duration kLongestAnswer = Duration::seconds(5);
constexpr Duration kAskAgainAfter = Duration::milliseconds(5);
/// The longest that a pull takes.
constexpr Duration kLongestPull = Duration::seconds(30);
/// ZeroMQ gives up a peer that does not answer for so long (_HEARTBEAT_TIMEOUT_MS).
constexpr Duration kHeartbeat = Duration::seconds(10);

}  // namespace

void KvPulls::book(Running& r, PullNews news, bool to_asker, SimTime at) {
  r.next = news;
  r.to_asker = to_asker;
  r.at = at;
  engines_.book_step(r.pull->id, false, at);
}

void KvPulls::begin(std::uint32_t endpoint, std::unique_ptr<KvPull> pull, SimTime now) {
  const std::uint32_t id = ++pulls_;
  Running& r = running_[id];
  r.pull = std::move(pull);
  r.pull->id = id;
  r.asks = endpoint;
  r.begin = now;
  if (r.pull->disk) {
    // A thread looks while the step runs (v1/kv_offload/tiering/async_lookup.py).
    r.pull->found = disks_.find(endpoint, *r.pull);
    book(r, PullNews::kAnswered, true, now + kMessage);
    return;
  }
  r.has = r.pull->source;
  engines_.book_step(id, true, now + kLongestPull);
  if (!engines_.is_up(r.has)) {
    r.lost = r.to_asker = true;
    r.next = PullNews::kFailed;
    r.at = now + kLongestPull;
    return;
  }
  book(r, PullNews::kAsked, false, now + kMessage);
}

void KvPulls::on_message(std::uint32_t endpoint, PullMessage& message, SimTime now) {
  if (message.kind == PullMessage::Kind::kAsk) return begin(endpoint, std::move(message.made), now);
  if (message.kind == PullMessage::Kind::kWrite)
    return disks_.write(endpoint, std::move(message.made), now);
  Running& r = running_.at(message.pull->id);
  if (r.lost && r.to_asker && message.kind == PullMessage::Kind::kDrop) r.over = true;
  if (r.over || r.lost) return;
  if (r.pull->disk) {
    if (message.kind == PullMessage::Kind::kFetch) return disks_.read(endpoint, *r.pull, now);
    r.over = true;  // There was no room.
    return;
  }
  switch (message.kind) {
    case PullMessage::Kind::kAsk:
    case PullMessage::Kind::kWrite:
      break;
    case PullMessage::Kind::kAnswer:
      if (r.pull->found == kAskAgain && now - r.begin < kLongestAnswer) {
        book(r, PullNews::kAsked, false, now + kAskAgainAfter);
        break;
      }
      r.pull->found = std::max<std::int64_t>(r.pull->found, 0);
      book(r, PullNews::kAnswered, true, now + kMessage);
      break;
    case PullMessage::Kind::kFetch:
      book(r, PullNews::kFetch, false, now + kMessage);
      break;
    case PullMessage::Kind::kSend:
      r.sent = now;
      transfers_.start(Transfers::Kind::kTierPull, r.pull->id,
                       transfers_.between_hosts(r.has, r.asks), r.pull->bytes, now);
      break;
    case PullMessage::Kind::kDone:
      book(r, PullNews::kArrived, true, now + kMessage);
      break;
    case PullMessage::Kind::kDrop:
      book(r, PullNews::kDropped, false, now + kMessage);
      break;
  }
}

void KvPulls::on_transferred(std::uint64_t id, SimTime now) {
  const Running& r = running_.at(static_cast<std::uint32_t>(id));
  engines_.report({.kind = CopySpan::Kind::kPull,
                   .endpoint = r.asks,
                   .source = r.has,
                   .begin = r.sent,
                   .end = now,
                   .bytes = r.pull->bytes});
  engines_.tell(r.has, PullNews::kSent, *r.pull, now);
}

void KvPulls::on_read(std::uint32_t pull, SimTime now) {
  Running& r = running_.at(pull);
  r.over = true;
  r.pull->chunks = {};
  engines_.tell(r.asks, PullNews::kArrived, *r.pull, now);
}

void KvPulls::step(std::uint32_t id, bool deadline, SimTime now) {
  const auto it = running_.find(id);
  if (it == running_.end() || it->second.over) return;
  Running& r = it->second;
  if (deadline && !r.lost) {
    r.over = true;
    transfers_.cancel(Transfers::Kind::kTierPull, id, now);
    engines_.tell(r.has, PullNews::kDropped, *r.pull, now);
    engines_.tell(r.asks, PullNews::kFailed, *r.pull, now);
    return;
  }
  if (!deadline && now < r.at) return;  // Of a message to a side that is gone.
  const PullNews news = r.next;
  if (news == PullNews::kArrived || news == PullNews::kDropped || r.lost) r.over = true;
  if (news == PullNews::kAnswered && r.pull->found == 0) {
    r.over = true;
    r.pull->chunks = {};
  }
  engines_.tell(r.to_asker ? r.asks : r.has, news, *r.pull, now);
}

void KvPulls::drop(std::uint32_t endpoint, bool silent, SimTime now) {
  for (auto& [id, r] : running_) {
    const bool asks = r.asks == endpoint;
    if (r.over || (!asks && (r.pull->disk || r.has != endpoint))) continue;
    transfers_.cancel(Transfers::Kind::kTierPull, id, now);
    // Nobody is left who waits for something: both sides are gone, or the asker has given up.
    const bool given_up = !r.lost && r.next == PullNews::kDropped;
    r.over = r.pull->disk || (r.lost && asks == r.to_asker) || (given_up && !asks);
    if (r.over || r.lost || given_up) continue;
    r.lost = true;
    book(r, asks ? PullNews::kDropped : PullNews::kFailed, !asks,
         now + (silent ? kHeartbeat : kMessage));
  }
}

}  // namespace routesim::sim
