// From a trace record to a request: equal hash ids become equal tokens. Private to workloads/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "workloads/prompts.h"
#include "workloads/traces/trace_replay.h"

namespace routesim::workloads {

/// Makes prompts of trace records. A hash id stands for a block with its whole prefix, so each id
/// becomes a segment of its own content; a record without ids shares nothing.
class TracePrompts {
 public:
  TracePrompts(std::uint64_t seed, std::int64_t block_tokens);
  /// Why the record's ids do not fit its length; empty when they do.
  std::string problem(const TraceRecord& record, HashLengthRule rule) const;
  /// Makes the prompt, with id `number`.
  std::shared_ptr<const Prompt> prompt(const TraceRecord& record, HashLengthRule rule,
                                       std::uint64_t number, bool reusable = false) const;
  /// Fills the prompt (with id `number`) and the answer.
  void fill(const TraceRecord& record, HashLengthRule rule, std::uint64_t number,
            Request& request) const;
  /// Fills the answer of request `number`.
  void fill_answer(const TraceRecord& record, std::uint64_t number, Request& request) const;
  /// Equal for records with equal prompts. Nothing where a part of the prompt is its own text.
  std::optional<std::uint64_t> signature(const TraceRecord& record, HashLengthRule rule) const;

 private:
  std::uint64_t seed_;
  std::int64_t block_tokens_;
};

struct TraceSummary {
  std::int64_t records = 0;
  Duration last{};          ///< Of the last record with a time of its own.
  bool has_delays = false;  ///< Some record waits for its session.
};

/// Reads a trace through once and reports what is wrong with it.
TraceSummary survey_trace(const TraceOpener& open, const TracePrompts& prompts, HashLengthRule rule,
                          std::int64_t max_requests, Diagnostics& out);

}  // namespace routesim::workloads
