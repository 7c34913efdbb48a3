// vLLM's OffloadingConnector once more, as ObviousEngine is its scheduler: a map of chunks, a list
// of those that may be evicted, one visit per chunk. It shares no code with sim/.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/rules/engine_config.h"
#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {

struct ObviousTierState;

/// Chunks that one engine asks another one for.
struct ObviousPull {
  using Key = std::pair<std::int64_t, std::vector<std::pair<std::uint64_t, std::int64_t>>>;
  ObviousTierState* state = nullptr;  ///< Of the request that asks.
  std::uint32_t request = 0;
  std::vector<std::pair<std::uint64_t, std::int64_t>> tokens;
  std::int64_t first = 0, found = 0;     ///< Chunks. -1: ask again.
  std::vector<std::vector<Key>> room{};  ///< At the engine that asks, per stretch,
  std::vector<std::vector<Key>> kept{};  ///< and what the other one keeps.
  bool over = false;                     ///< Nobody listens any more.
};

/// How far one request is.
struct ObviousTierState {
  enum class Pull { kNone, kAsked, kAnswered, kSettled };
  Pull pull = Pull::kNone;
  ObviousPull* answer = nullptr;
  bool gone = false;            ///< The request has left the engine.
  std::int64_t cursor = 0;      ///< Chunks that need not be stored any more.
  std::int64_t hit_chunks = 0;  ///< As of the last lookup.
  std::int64_t loaded = 0;      ///< Tokens there will be when its load is done; 0 = no load.
  bool arrived = false;
  int stores = 0;  ///< Under way, at most one per pass.
  bool over =
      false;  ///< What it stores from now on, or is still to be stored, is readable at once.
};

class ObviousTiers {
 public:
  using Token = std::pair<std::uint64_t, std::int64_t>;
  using Tokens = std::vector<Token>;
  using State = ObviousTierState;
  /// Group 0 sees everything, the others have a window.
  using Key = std::pair<std::int64_t, Tokens>;
  enum Direction { kToGpu, kToHost };

  explicit ObviousTiers(const EngineRules& rules)
      : rules_(rules),
        chunk_(rules.tiers.chunk_blocks * rules.block_size),
        window_chunks_((rules.window_tokens + chunk_ - 1) / chunk_) {}

  bool in_use() const { return rules_.tiers.in_use(); }

  /// Tokens behind `computed` ones that can be loaded; nothing: ask again in the next pass.
  std::optional<std::int64_t> lookup(State& s, const Tokens& tokens, std::int64_t computed) {
    if (s.stores > 0 && !rules_.tiers.settles_at_request_end) return std::nullopt;
    std::optional<std::int64_t> found = find(tokens, computed);
    if (found.value_or(0) > 0 && loading(tokens, computed, computed + *found)) found.reset();
    s.hit_chunks = (computed + found.value_or(0)) / chunk_;
    touch(s, tokens, whole(tokens));
    return found;
  }

  /// Groups with a window load from block `window_first` on.
  void load(State& s, const Tokens& tokens, std::int64_t computed, std::int64_t all,
            std::int64_t window_first) {
    const std::int64_t end = (all + chunk_ - 1) / chunk_;
    const std::int64_t last = end * rules_.tiers.chunk_blocks;
    const std::int64_t blocks =
        last - computed / rules_.block_size + rules_.window_groups * (last - window_first);
    Copy copy{.direction = kToGpu,
              .bytes = static_cast<double>(blocks) * rules_.tiers.block_bytes,
              .parts = {}};
    for (std::int64_t g = 0; g <= rules_.window_groups; ++g) {
      const std::int64_t first =
          g == 0 ? computed / chunk_ : window_first / rules_.tiers.chunk_blocks;
      Part part{.state = &s, .keys = {}};
      for (std::int64_t i = first; i < end; ++i) {
        part.keys.push_back(key(g, tokens, i));
        Chunk& c = chunks_.at(part.keys.back());
        if (c.pins + c.readers++ == 0) idle_.remove(part.keys.back());
      }
      copy.parts.push_back(part);
    }
    s.cursor = end;
    s.loaded = all;
    s.arrived = false;
    asked_.push_back(copy);
  }

  /// Stores what is new among the first `computed` tokens. `window_first`: the first block that
  /// groups with a window still have.
  void store(State& s, const Tokens& tokens, std::int64_t computed, std::int64_t window_first) {
    const std::int64_t end = computed / chunk_;
    if (end <= s.cursor) return;
    std::vector<Part> parts;
    std::vector<Key> own;
    std::int64_t need = 0;
    for (std::int64_t g = 0; g <= rules_.window_groups; ++g) {
      parts.push_back({.state = &s, .keys = {}});
      for (std::int64_t i = s.cursor; i < end; ++i) {
        if (g > 0 && (i + 1) * rules_.tiers.chunk_blocks <= window_first) continue;
        own.push_back(key(g, tokens, i));
        if (chunks_.count(own.back()) > 0) {
          // What comes back later comes in stretches without a gap.
          if (g == 0 && !parts.back().keys.empty()) parts.push_back({.state = &s, .keys = {}});
          continue;
        }
        parts.back().keys.push_back(own.back());
        ++need;
      }
    }
    if (need == 0) {
      s.cursor = end;
      return;
    }
    if (!evict_for(need, own)) return;
    for (const Part& part : parts)
      for (const Key& k : part.keys) chunks_[k] = {};
    std::erase_if(parts, [](const Part& p) { return p.keys.empty(); });
    if (!storing_) storing_ = Copy{.direction = kToHost, .bytes = 0, .parts = {}};
    storing_->bytes +=
        static_cast<double>(need * rules_.tiers.chunk_blocks) * rules_.tiers.block_bytes;
    storing_->parts.insert(storing_->parts.end(), parts.begin(), parts.end());
    ++s.stores;
    s.cursor = end;
    touch(s, tokens, rules_.tiers.settles_at_request_end ? end : whole(tokens));
  }
  /// Stores what is new of a request that leaves the running list, answer included, in a copy of
  /// its own that starts at once.
  void store_answer(State& s, const Tokens& tokens, std::int64_t computed, std::int64_t prompt,
                    std::int64_t window_first) {
    if (rules_.tiers.prompt_only) return;
    // Of the answer a group with a window had all blocks, one after the other.
    const std::int64_t answer = prompt / chunk_ * rules_.tiers.chunk_blocks;
    store(s, tokens, computed, std::min(window_first, answer));
    if (const std::optional<Copy> copy = close_pass()) submit(*copy);
  }
  /// A message to the other side of a pull.
  enum class Say { kAsk, kAnswer, kFetch, kSend, kDone, kDrop };
  std::vector<std::pair<Say, ObviousPull*>> said;

  /// True while the request waits for chunks of another engine. `more`: what lookup() has found.
  bool wait_for_pull(State& s, std::uint32_t request, const Tokens& tokens, std::int64_t computed,
                     std::int64_t more) {
    using Pull = ObviousTierState::Pull;
    if (s.pull == Pull::kSettled) return false;
    if (s.pull == Pull::kAsked) return true;
    if (s.pull == Pull::kAnswered) {
      const bool fits = make_room(*s.answer);
      say(fits ? Say::kFetch : Say::kDrop, *s.answer);
      s.pull = fits ? Pull::kAsked : Pull::kSettled;
      return fits;
    }
    const std::int64_t first =
        more > 0 ? (computed + more + chunk_ - 1) / chunk_ : computed / chunk_;
    s.pull = first < whole(tokens) ? Pull::kAsked : Pull::kSettled;
    if (s.pull == Pull::kSettled) return false;
    pulls_.push_back(std::make_unique<ObviousPull>(
        ObviousPull{.state = &s, .request = request, .tokens = tokens, .first = first}));
    say(Say::kAsk, *pulls_.back());
    return true;
  }
  /// The engine that has the chunks looks for them, and keeps what it finds.
  void serve(ObviousPull& p) {
    p.found = prefix(p.tokens, p.first, whole(p.tokens));
    for (std::int64_t g = 1; g <= rules_.window_groups && p.found >= 0; ++g)
      p.found = suffix(g, p.tokens, p.first, p.first + p.found);
    if (p.found > 0) {
      const std::int64_t end = p.first + p.found;
      for (std::int64_t g = 0; g <= rules_.window_groups; ++g) {
        p.kept.emplace_back();
        for (std::int64_t i = g == 0 ? p.first : std::max(p.first, end - window_chunks_); i < end;
             ++i) {
          Chunk& c = chunks_.at(key(g, p.tokens, i));
          if (c.readers + c.pins++ == 0) idle_.remove(key(g, p.tokens, i));
          p.kept.back().push_back(key(g, p.tokens, i));
        }
      }
    }
    say(Say::kAnswer, p);
  }
  void end_serving(ObviousPull& p) {
    for (const std::vector<Key>& keys : p.kept)
      for (std::size_t i = keys.size(); i-- > 0;) {
        Chunk& c = chunks_.at(keys[i]);
        if (--c.pins + c.readers == 0) idle_.push_back(keys[i]);
      }
    p.kept.clear();
  }
  void answered(ObviousPull& p) {
    if (p.state->gone) {
      say(Say::kDrop, p);
    } else if (p.found == 0) {
      p.state->pull = ObviousTierState::Pull::kSettled;
    } else {
      p.state->pull = ObviousTierState::Pull::kAnswered;
      p.state->answer = &p;
    }
  }
  void end_pull(ObviousPull& p, bool arrived) {
    for (const std::vector<Key>& keys : p.room) {
      if (arrived) release({.state = nullptr, .keys = keys});
      for (const Key& k : keys)
        if (!arrived) chunks_.erase(k);
    }
    p.room.clear();
    p.state->pull = ObviousTierState::Pull::kSettled;
  }
  void say(Say what, ObviousPull& p) { said.emplace_back(what, &p); }

  struct Part {
    State* state;
    std::vector<Key> keys;
  };
  struct Copy {
    Direction direction;
    double bytes;
    std::vector<Part> parts;
  };
  /// Ends the pass: the copy of all it stored.
  std::optional<Copy> close_pass() { return std::exchange(storing_, std::nullopt); }
  /// The step of that pass has ended.
  void submit(const Copy& copy) { asked_.push_back(copy); }

  /// Starts what was asked for. An engine does one copy at a time per direction.
  void start_copies(SimTime now) {
    for (Copy& c : asked_) {
      Queue& q = queues_[c.direction];
      q.copies.push_back(c);
      if (q.copies.size() == 1) begin(q, now);
    }
    asked_.clear();
  }
  SimTime next_end() const { return std::min(queues_[kToGpu].end, queues_[kToHost].end); }
  /// Takes out the copy that ends next; of two at once, the one that began first.
  Copy pop_copy() {
    const auto when = [](const Queue& q) { return std::pair(q.end, q.begun); };
    Queue& q = queues_[when(queues_[kToGpu]) < when(queues_[kToHost]) ? kToGpu : kToHost];
    const Copy done = q.copies.front();
    q.copies.pop_front();
    const SimTime now = std::exchange(q.end, SimTime::max());
    if (!q.copies.empty()) begin(q, now);
    return done;
  }

  /// The scheduler hears that a copy is done.
  void copy_done(const Copy& c) {
    State* last = nullptr;
    for (const Part& part : c.parts) {
      if (c.direction == kToHost && part.state != last) --part.state->stores;
      last = part.state;
      if (c.direction == kToGpu) part.state->arrived = true;
      if (c.direction == kToHost && rules_.tiers.settles_at_request_end && !part.state->over)
        unsettled_[part.state].push_back(part);
      else
        release(part);
    }
  }
  bool unsettled(State& s) const { return s.stores > 0 || unsettled_.count(&s) > 0; }
  /// What a request has stored becomes readable.
  void settle(State& s) {
    for (const Part& part : unsettled_[&s]) release(part);
    unsettled_.erase(&s);
  }

 private:
  struct Chunk {
    bool ready = false;
    int readers = 0;  ///< Loads.
    int pins = 0;     ///< Pulls of other engines.
  };
  struct Queue {
    std::deque<Copy> copies;  ///< The first one is under way.
    SimTime end = SimTime::max();
    int begun = 0;  ///< Orders beginnings.
  };

  Key key(std::int64_t group, const Tokens& tokens, std::int64_t chunk) const {
    return {group, Tokens(tokens.begin(), tokens.begin() + (chunk + 1) * chunk_)};
  }
  // Room for `need` chunks, at the cost of others than `own`. False: there is none.
  bool evict_for(std::int64_t need, const std::vector<Key>& own) {
    std::list<Key> others = idle_;
    for (const Key& k : own) others.remove(k);
    const std::int64_t room = rules_.tiers.cpu_chunks - std::ssize(chunks_);
    if (need > room + std::ssize(others)) return false;
    for (std::int64_t i = room; i < need; ++i) {
      chunks_.erase(others.front());
      idle_.remove(others.front());
      others.pop_front();
    }
    return true;
  }
  // For the chunks of an answer that have not come meanwhile. Those that have become the youngest.
  bool make_room(ObviousPull& p) {
    const std::int64_t end = p.first + p.found;
    std::vector<Key> own;
    std::int64_t need = 0;
    p.room.emplace_back();
    for (std::int64_t g = 0; g <= rules_.window_groups; ++g) {
      if (!p.room.back().empty()) p.room.emplace_back();
      for (std::int64_t i = g == 0 ? p.first : std::max(p.first, end - window_chunks_); i < end;
           ++i) {
        own.push_back(key(g, p.tokens, i));
        if (chunks_.count(own.back()) > 0) {
          if (g == 0 && !p.room.back().empty()) p.room.emplace_back();
          continue;
        }
        p.room.back().push_back(own.back());
        ++need;
      }
    }
    if (need == 0 || !evict_for(need, own)) {
      p.room.clear();
      return false;
    }
    for (const std::vector<Key>& keys : p.room)
      for (const Key& k : keys) chunks_[k] = {};
    for (std::size_t i = own.size(); i-- > 0;) {
      const auto it = std::find(idle_.begin(), idle_.end(), own[i]);
      if (it != idle_.end()) idle_.splice(idle_.end(), idle_, it);
    }
    return true;
  }
  std::int64_t whole(const Tokens& tokens) const { return std::ssize(tokens) / chunk_; }

  enum class Answer { kMiss, kHit, kPending };
  Answer ask(std::int64_t group, const Tokens& tokens, std::int64_t i) const {
    const auto it = chunks_.find(key(group, tokens, i));
    if (it == chunks_.end()) return Answer::kMiss;
    if (it->second.ready) return Answer::kHit;
    return rules_.tiers.waits_for_writes ? Answer::kPending : Answer::kMiss;
  }
  // Chunks that one group has of [first, end): -1 where that is not certain.
  std::int64_t prefix(const Tokens& tokens, std::int64_t first, std::int64_t end) const {
    bool pending = false;
    std::int64_t i = first;
    for (; i < end; ++i) {
      const Answer a = ask(0, tokens, i);
      if (a == Answer::kMiss) break;
      pending = pending || a == Answer::kPending;
    }
    return pending ? -1 : i - first;
  }
  std::int64_t suffix(std::int64_t g, const Tokens& tokens, std::int64_t first,
                      std::int64_t end) const {
    bool pending = false;
    std::int64_t row = 0;
    for (std::int64_t i = end - 1; i >= first; --i) {
      const Answer a = ask(g, tokens, i);
      row = a == Answer::kMiss ? 0 : row + 1;
      pending = pending || a == Answer::kPending;
      if (row == window_chunks_) return pending ? -1 : i + row - first;
    }
    return pending ? -1 : row;
  }
  // vLLM v0.27.1, OffloadingConnectorScheduler._lookup: every group may shorten the hit, and what
  // shortens it makes others look again.
  std::optional<std::int64_t> find(const Tokens& tokens, std::int64_t computed) const {
    std::int64_t most = std::ssize(tokens);
    if (rules_.window_groups > 0) --most;
    const std::int64_t first = computed / chunk_;
    std::int64_t hit = 0;
    bool defer = false;
    std::vector<std::int64_t> all, windows;
    for (std::int64_t g = 0; g <= rules_.window_groups; ++g) all.push_back(g);
    for (std::int64_t g = 1; g <= rules_.window_groups; ++g) windows.push_back(g);
    std::vector<std::int64_t> round = all;
    while (!round.empty()) {
      const std::vector<std::int64_t> groups = std::exchange(round, {});
      bool looked_at_window = false;
      for (const std::int64_t g : groups) {
        most = std::min(most, whole(tokens) * chunk_);
        if (most - computed < chunk_) return 0;
        const std::int64_t end = std::min((most + chunk_ - 1) / chunk_, whole(tokens));
        const std::int64_t n = g == 0 ? prefix(tokens, first, end) : suffix(g, tokens, first, end);
        if (n == 0) return 0;
        if (n < 0)
          defer = true;
        else
          most = std::min(most, chunk_ * (first + n));
        const std::int64_t now = most - computed;
        if (now < chunk_) return 0;
        if (now < hit) {
          if (defer) {
            defer = false;
            round = all;
          } else if (looked_at_window && round.empty()) {
            round = windows;
          }
        }
        looked_at_window = looked_at_window || g > 0;
        hit = now;
      }
    }
    if (defer) return std::nullopt;
    return hit;
  }
  bool loading(const Tokens& tokens, std::int64_t computed, std::int64_t all) const {
    const std::int64_t end = (all + chunk_ - 1) / chunk_;
    for (std::int64_t g = 0; g <= rules_.window_groups; ++g)
      for (std::int64_t i = computed / chunk_; i < end; ++i)
        if ((g == 0 || i >= end - window_chunks_) && chunks_.at(key(g, tokens, i)).readers > 0)
          return true;
    return false;
  }
  void touch(const State& s, const Tokens& tokens, std::int64_t end) {
    for (std::int64_t g = 0; g <= rules_.window_groups; ++g)
      for (std::int64_t i = end - 1; i >= 0; --i) {
        if (g > 0 && i < s.hit_chunks - window_chunks_) break;
        const auto it = std::find(idle_.begin(), idle_.end(), key(g, tokens, i));
        if (it != idle_.end()) idle_.splice(idle_.end(), idle_, it);
      }
  }
  // vLLM goes over a set here, so its order is nobody's business. As it touches: the head youngest.
  void release(const Part& part) {
    for (std::size_t i = part.keys.size(); i-- > 0;) {
      Chunk& c = chunks_.at(part.keys[i]);
      if (c.ready && --c.readers > 0) continue;
      c.ready = true;
      if (c.pins > 0) continue;
      idle_.push_back(part.keys[i]);
    }
  }
  void begin(Queue& q, SimTime now) {
    q.begun = ++begun_;
    const double ns = q.copies.front().bytes / (rules_.tiers.link_bytes_per_s * 1e-9);
    q.end = now + Duration::nanoseconds(static_cast<std::int64_t>(std::ceil(ns)));
  }

  EngineRules rules_;
  std::int64_t chunk_;  ///< Tokens.
  std::int64_t window_chunks_;
  std::map<Key, Chunk> chunks_;
  std::list<Key> idle_;  ///< Ready, and nobody reads them: the first is evicted first.
  std::optional<Copy> storing_;
  std::vector<Copy> asked_;
  std::array<Queue, 2> queues_;
  int begun_ = 0;
  std::map<State*, std::vector<Part>> unsettled_;
  std::vector<std::unique_ptr<ObviousPull>> pulls_;
};

}  // namespace routesim::sim::testing
