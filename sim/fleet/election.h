// Which of several endpoint pickers serves, where they elect a leader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"

namespace routesim::sim {

/// Knows who holds the lease, and when another one gets it. The process with number 0 has it at
/// first. Its owner books the times. O(processes) per call.
class Election {
 public:
  /// From the drain of a process that was asked to end (--drain-timeout, llm-d-router pull request
  /// 1885) to its end.
  static constexpr Duration kDrain = Duration::seconds(30);

  /// `drains`: a process that is asked to end goes on for kDrain.
  Election(std::size_t processes, bool drains, std::uint64_t seed)
      : drains_(drains), seed_(seed), candidates_(processes) {}

  /// Somebody has the lease, or will; the gateway sends to them from `ready` on.
  struct Term {
    std::uint32_t leader = 0;
    SimTime ready{};
  };
  const std::optional<Term>& term() const { return term_; }
  /// The same where it is another one than at the last call.
  std::optional<Term> take_term() {
    return std::exchange(told_, number_) != number_ ? term_ : std::nullopt;
  }
  /// Grows with every term, so that what was booked for an older one is void.
  std::int64_t number() const { return number_; }
  /// A process ends, and gives up its lease where it has one and is asked to end.
  void end(std::uint32_t process, bool asked, SimTime now);
  /// A process has started.
  void begin(std::uint32_t process, SimTime now);

  /// The gateway sends to a process from now on, and to none other.
  void serve(std::uint32_t process) { serves_ = process; }
  std::uint32_t serves() const { return serves_; }

  bool drains() const { return drains_; }
  /// A process was asked to end, and goes on; true where it was not before.
  bool begin_drain(std::uint32_t process);
  /// The same is over; false where there was none.
  bool end_drain(std::uint32_t process);

 private:
  struct Candidate {
    bool runs = true;
    bool drains = false;
    SimTime acquires = SimTime::max();  ///< The lease, if nobody else does before.
  };
  double draw(std::uint32_t process, std::uint64_t turn) const;
  SimTime acquires(std::uint32_t process, SimTime seen) const;
  void choose();

  bool drains_;
  std::uint64_t seed_;
  std::vector<Candidate> candidates_;
  std::optional<Term> term_ = Term{};
  SimTime acquired_{};  ///< By the leader of the term.
  std::uint32_t serves_ = 0;
  bool released_ = false;  ///< Nobody has the lease, and nobody need wait for its end.
  std::int64_t number_ = 0, told_ = 0;
};

}  // namespace routesim::sim
