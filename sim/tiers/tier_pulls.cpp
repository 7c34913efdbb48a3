#include "sim/tiers/tier_pulls.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace routesim::sim {

void TierPulls::send_made(PullMessage::Kind kind, std::unique_ptr<KvPull> made) {
  KvPull* const pull = made.get();
  messages_.push_back({.kind = kind, .pull = pull, .made = std::move(made)});
}

void TierPulls::write_to_disk(Holdings chunks) {
  constexpr std::uint32_t kWrites = 0x8000'0000;  // Pulls have smaller numbers.
  auto made = std::make_unique<KvPull>();
  made->id = kWrites | static_cast<std::uint32_t>(tier_.counters().disk_writes++);
  made->disk = true;
  for (const BlockHolding& some : chunks) {
    chunks_.announce(some);
    chunks_.for_each_key_run(some, [&](std::span<const BlockKey> keys) {
      made->chunks.insert(made->chunks.end(), keys.begin(), keys.end());
    });
  }
  made->bytes = static_cast<double>(made->chunks.size()) * tier_.chunk_bytes();
  serving_[made->id] = std::move(chunks);
  send_made(PullMessage::Kind::kWrite, std::move(made));
}

bool TierPulls::wait(SequenceSlot s, std::span<const BlockKey> chunks, std::int64_t first,
                     SimTime now) {
  Sequence& q = sequences_[s];
  switch (q.tier.pull) {
    case PullState::kSettled:
      return false;
    case PullState::kAsked:
      return true;
    case PullState::kAnswered:
      if (make_room(*q.tier.answer)) {
        q.tier.pull = PullState::kAsked;
        return true;
      }
      send(PullMessage::Kind::kDrop, *q.tier.answer);
      end_wait(*q.tier.answer, now);
      return false;
    case PullState::kNone:
      break;
  }
  // The chunks of a private answer count, too, though nobody has them.
  if (first >= q.target / tier_.chunk_tokens()) {
    q.tier.pull = PullState::kSettled;
    return false;
  }
  ask(s, chunks, first, now);
  return true;
}

void TierPulls::ask(SequenceSlot s, std::span<const BlockKey> chunks, std::int64_t first,
                    SimTime now) {
  Sequence& q = sequences_[s];
  auto made = std::make_unique<KvPull>();
  made->handle = q.request.handle;
  made->slot = s;
  made->owner = q.tier.id;
  made->source = q.request.pull_source.value_or(0);
  made->asked = now;
  made->chunks.assign(chunks.begin(), chunks.end());
  made->first = first;
  // The tiers behind host memory are asked in turn.
  made->disk = !q.request.pull_source || q.tier.peer_asked;
  disk_lookups_ += made->disk ? 1 : 0;
  ++(made->disk ? tier_.counters().disk_lookups : tier_.counters().pulls);
  q.tier.pull = PullState::kAsked;
  send_made(PullMessage::Kind::kAsk, std::move(made));
}

// Chunks that came meanwhile are not fetched again. False when there is no room, or nothing to
// fetch.
bool TierPulls::make_room(KvPull& pull) {
  const std::int64_t end = pull.first + pull.found;
  const auto chunks = std::span<const BlockKey>(pull.chunks).first(static_cast<std::size_t>(end));
  chunks_.scan(chunks);
  const std::int64_t need = chunks_.find_missing(chunks, pull.first, end,
                                                 std::max(pull.first, chunks_.window_before(end)));
  if (need == 0 || !chunks_.has_room(need)) return false;
  chunks_.note_change();
  const std::int64_t evictions = chunks_.evictions();
  chunks_.write_missing(chunks, arriving_[pull.id]);
  tier_.counters().evicted_chunks += chunks_.evictions() - evictions;
  const TierRules& rules = tier_.rules();
  pull.bytes = static_cast<double>(need * rules.chunk_blocks) * rules.block_bytes;
  send(PullMessage::Kind::kFetch, pull);
  return true;
}

bool TierPulls::hear(PullNews news, KvPull& pull, SimTime now) {
  switch (news) {
    case PullNews::kAsked:
      serve(pull);
      send(PullMessage::Kind::kAnswer, pull);
      return false;
    case PullNews::kAnswered:
      answered(pull, now);
      return false;
    case PullNews::kFetch:
      send(PullMessage::Kind::kSend, pull);
      return false;
    case PullNews::kSent:
      ++tier_.counters().pulls_served;
      end_serving(pull);
      send(PullMessage::Kind::kDone, pull);
      return false;
    case PullNews::kArrived:
      return arrived(pull, now);
    case PullNews::kFailed:
      failed(pull, now);
      return false;
    case PullNews::kDropped:
      end_serving(pull);
      return false;
  }
  return false;
}

void TierPulls::answered(KvPull& pull, SimTime now) {
  Sequence& q = sequences_[pull.slot];
  if (pull.disk) --disk_lookups_;
  if (q.tier.id != pull.owner) {
    send(PullMessage::Kind::kDrop, pull);
    return;
  }
  if (pull.found == 0) {
    end_wait(pull, now);
    return;
  }
  q.tier.pull = PullState::kAnswered;
  q.tier.answer = &pull;
}

// True when the sequence that asked is still there.
bool TierPulls::end_wait(const KvPull& pull, SimTime now) {
  Sequence& q = sequences_[pull.slot];
  if (q.tier.id != pull.owner) return false;
  q.tier.peer_asked = true;
  q.tier.pull = pull.disk || !has_files() ? PullState::kSettled : PullState::kNone;
  TierCounters& counters = tier_.counters();
  (pull.disk ? counters.disk_waits : counters.pull_waits).add(now - pull.asked);
  return true;
}

bool TierPulls::arrived(const KvPull& pull, SimTime now) {
  chunks_.note_change();
  auto room = arriving_.extract(pull.id);
  chunks_.make_readable(room.mapped());
  TierCounters& counters = tier_.counters();
  (pull.disk ? counters.disk_reads : counters.pulls_arrived) += 1;
  (pull.disk ? counters.disk_read_bytes : counters.pulled_bytes) += pull.bytes;
  return end_wait(pull, now);
}

void TierPulls::failed(const KvPull& pull, SimTime now) {
  ++tier_.counters().pulls_failed;
  if (auto room = arriving_.extract(pull.id)) {
    chunks_.note_change();
    chunks_.discard(room.mapped());
  }
  end_wait(pull, now);
}

void TierPulls::serve(KvPull& pull) {
  const std::optional<std::int64_t> found = chunks_.readable_from(pull.chunks, pull.first);
  pull.found = found.value_or(kAskAgain);
  if (pull.found <= 0) return;
  const std::int64_t end = pull.first + pull.found;
  chunks_.take(pull.chunks, pull.first, end, std::max(pull.first, chunks_.window_before(end)),
               serving_[pull.id]);
}

void TierPulls::end_serving(const KvPull& pull) {
  auto kept = serving_.extract(pull.id);
  if (!kept) return;
  chunks_.note_change();
  chunks_.release(kept.mapped());
}

bool TierPulls::pulling() const {
  const std::vector<Sequence>& all = sequences_.all();
  return std::any_of(all.begin(), all.end(), [](const Sequence& q) {
    return q.tier.pull == PullState::kAsked || q.tier.pull == PullState::kAnswered;
  });
}

void TierPulls::add_holdings(std::vector<const BlockHolding*>& holdings) const {
  for (const auto* held : {&serving_, &arriving_})
    for (const auto& [pull, kept] : *held)
      for (const BlockHolding& chunks : kept) holdings.push_back(&chunks);
}

}  // namespace routesim::sim
