// The engines and the loop, as those who move KV chunks see them.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace routesim::sim {

struct KvPull;
enum class PullNews : std::uint8_t;
struct TierRules;

/// KV that moved between the GPUs of an engine and its host, or from host to host.
struct CopySpan {
  enum class Kind : std::uint8_t { kToGpus, kToHost, kPull, kFromDisk, kToDisk };
  Kind kind = Kind::kToGpus;
  std::uint32_t endpoint = 0;
  std::uint32_t source = 0;  ///< Endpoint that a pull comes from.
  SimTime begin, end;
  double bytes = 0;
};

/// Reaches the engine cores of a run, by endpoint.
class TierEngines {
 public:
  virtual ~TierEngines() = default;
  virtual const TierRules& rules(std::uint32_t endpoint) const = 0;
  /// The engine takes messages.
  virtual bool is_up(std::uint32_t endpoint) const = 0;
  /// A copy that an engine wanted has ended.
  virtual void end_copy(std::uint32_t endpoint, std::uint32_t copy, SimTime now) = 0;
  /// A message about a pull reaches an engine.
  virtual void tell(std::uint32_t endpoint, PullNews news, KvPull& pull, SimTime now) = 0;
  /// KvPulls::step() is due at a time.
  virtual void book_step(std::uint32_t pull, bool deadline, SimTime at) = 0;
  /// For the observers.
  virtual void report(const CopySpan& span) = 0;
};

}  // namespace routesim::sim
