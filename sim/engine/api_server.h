// The API server in front of a server's engine cores: asyncio processes that parse, render and
// tokenise a request before an engine hears of it. A request waits there when others came with it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "sim/rules/engine_config.h"

namespace routesim::sim {

/// Takes requests in turn, process by process. Within a process:
///
/// *Event loop.* It serves in rounds, as asyncio does: what is ready when a round begins runs to
/// its next wait, and what comes meanwhile belongs to the next round. All of a round leave it
/// together, so that a burst of N reaches the engine after N request times, not one by one. (Of N
/// that come at once to an idle loop the first is a round of its own.)
///
/// *Tokeniser.* One thread, first come first served, at its prompt's length.
///
/// A client that hangs up takes nothing back: the work is done when the loop learns of it.
class ApiServer {
 public:
  /// A request as it waits: `handle` and `stamp` are the caller's.
  struct Visitor {
    std::uint32_t handle = 0;
    std::uint32_t stamp = 0;
    std::int64_t prompt_tokens = 0;
    SimTime arrival;
  };

  explicit ApiServer(const ApiServerTimes& times)
      : times_(times), processes_(static_cast<std::size_t>(times.processes)) {}

  /// A round that must be begun, by begin(), at `at`.
  struct Round {
    std::uint32_t process = 0;
    SimTime at;
  };

  /// A request comes at `visitor.arrival`, which never goes back from call to call. Either it is
  /// known at once when it reaches the engine, then deliver(visitor, that instant) is called; or it
  /// waits for a round, which is returned unless somebody waits for it already.
  template <class Deliver>
  std::optional<Round> arrive(const Visitor& visitor, const Deliver& deliver) {
    const auto process = static_cast<std::uint32_t>(next_++ % processes_.size());
    Process& p = processes_[process];
    if (p.waiting.empty() && visitor.arrival >= p.round_end) {
      p.round_end = visitor.arrival + times_.request;
      tokenise(p, visitor, deliver);
      return std::nullopt;
    }
    p.waiting.push_back(visitor);
    if (p.waiting.size() > 1) return std::nullopt;
    return Round{.process = process, .at = std::max(p.round_end, visitor.arrival)};
  }

  /// Begins a round now, with all that came before, or else the one that comes now. Returns the
  /// next round, if somebody waits for it already.
  template <class Deliver>
  std::optional<Round> begin(std::uint32_t process, SimTime now, const Deliver& deliver) {
    Process& p = processes_[process];
    // A round of processes that have ended.
    if (p.waiting.empty() || p.waiting.front().arrival > now || p.round_end > now)
      return std::nullopt;
    std::size_t n = 1;
    while (n < p.waiting.size() && p.waiting[n].arrival < now) ++n;
    p.round_end = now + times_.request * static_cast<std::int64_t>(n);
    for (std::size_t i = 0; i < n; ++i) tokenise(p, p.waiting[i], deliver);
    p.waiting.erase(p.waiting.begin(), p.waiting.begin() + static_cast<std::ptrdiff_t>(n));
    if (p.waiting.empty()) return std::nullopt;
    return Round{.process = process, .at = std::max(p.round_end, p.waiting.front().arrival)};
  }

  /// The processes end, and others take their place: nobody waits there. Rounds that were to begin
  /// find nobody.
  void restart() {
    for (Process& p : processes_) p = {};
  }

  /// The longest time between a request's arrival and its way into the engine.
  Duration longest() const { return longest_; }

 private:
  struct Process {
    SimTime round_end;             ///< Of the round under way, or the last one.
    SimTime tokeniser_free;        ///< When it has done all it has been given.
    std::vector<Visitor> waiting;  ///< For the next round, in order of arrival.
  };

  template <class Deliver>
  void tokenise(Process& p, const Visitor& v, const Deliver& deliver) {
    // Long queues of long prompts could add up to more than the clock holds.
    p.tokeniser_free =
        std::min(std::max(p.tokeniser_free, p.round_end) + times_.prompt_token * v.prompt_tokens,
                 kEndOfTime);
    longest_ = std::max(longest_, p.tokeniser_free - v.arrival);
    deliver(v, p.tokeniser_free);
  }

  ApiServerTimes times_;
  std::vector<Process> processes_;
  std::size_t next_ = 0;
  Duration longest_;
};

}  // namespace routesim::sim
