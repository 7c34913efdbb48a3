// Plans with several seeds. Replication r of every plan has the same seed (where plans have), so
// all plans face the same requests and their results can be subtracted pair by pair.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "tools/study/experiment/experiment.h"

namespace routesim::tools {

/// A block of replications: `count` of them from number `first` on.
struct ReplicationRange {
  std::size_t first = 0;
  std::size_t count = 1;
};

/// One run of a plan.
struct Replication {
  std::size_t plan = 0;    ///< Index into the plans.
  std::size_t number = 0;  ///< The r of seed + r.
};

/// The plans to replicate.
struct Replicated {
  std::size_t plans = 1;
  /// Replication 0 of a plan begins after that of the plan before it: they write to one place.
  bool first_in_order = false;
};

/// Makes one run. Called from any thread, several at a time, in no fixed order: what it writes must
/// belong to that plan and replication alone.
using ReplicationWork = std::function<void(const Replication&, Diagnostics& found)>;

/// Runs every plan with every replication of the range, all as one wave: a free thread takes the
/// next run of any plan, replication 0 of every plan first. Throws as Experiment::each().
void replicate(const Replicated& what, const ReplicationRange& range, const ReplicationWork& work,
               Experiment& experiment);

/// How long to go on: until the 95 % interval of one number of every plan is narrow enough. The
/// interval is looked at after fixed numbers of replications, so that the answer cannot depend on
/// the threads. Looking often and stopping at the first narrow interval makes it a little too
/// optimistic; the first look is late enough to keep its coverage (measured by
/// tests/statistics/coverage_test.cpp).
struct StoppingRule {
  double relative_half_width = 0.02;  ///< As a share of the mean: 0.02 is +-2 %.
  std::size_t first_look = 10;
  std::size_t batch = 5;    ///< Replications between looks.
  std::size_t limit = 200;  ///< Most replications; a last look is taken there.
};

/// Why it ended.
enum class StopReason {
  kPrecise,  ///< Every interval is narrow enough.
  kLimit,    ///< The limit was reached first.
  kNoData    ///< Some run had no value to look at.
};

struct StoppedAt {
  StopReason reason = StopReason::kLimit;
  std::size_t replications = 0;  ///< Complete ones, from replication 0 on.
};

/// The number of replications at which the rule looks next, after `done` of them.
std::size_t next_look(const StoppingRule& rule, std::size_t done);

/// Whether the interval of these values is as narrow as the rule wants.
bool is_precise(const StoppingRule& rule, std::span<const double> values);

/// Makes one run and returns the number that the rule is about.
using WatchedWork = std::function<std::optional<double>(const Replication&, Diagnostics& found)>;

/// replicate() in batches, from replication 0 on, until the rule is met.
StoppedAt replicate_until(const Replicated& what, const StoppingRule& rule, const WatchedWork& work,
                          Experiment& experiment);

}  // namespace routesim::tools
