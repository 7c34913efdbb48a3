// Open-loop replay of a trace: each record is a request at its own time.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "workloads/load_generator.h"
#include "workloads/load_stages.h"
#include "workloads/options.h"
#include "workloads/traces/trace_readers.h"

namespace routesim::workloads {

/// The rule for hash ids that disagree with the input length.
enum class HashLengthRule {
  kStrict,         ///< ceil or floor of input / block ids, else an error that names the line.
  kTruncateToIds,  ///< vLLM timed_trace: the prompt ends where the ids end, without a word.
};

/// The texts that the input length of a later turn counts, where a row names its session and
/// nothing tells which texts it shares.
enum class SessionHistory {
  kIncluded,  ///< The earlier turns and answers, too: lengths as a server logs them.
  kAdded,     ///< The turn's own text only: the history comes on top.
  kNone,      ///< Turns share nothing.
};

struct TraceReplayConfig {
  double time_scale = 1;                 ///< Multiplies trace times: 0.5 plays twice as fast. > 0.
  std::int64_t max_requests = 0;         ///< Stop after this many; 0: all.
  std::int64_t max_concurrency = 0;      ///< Permits of the client; 0: unlimited.
  std::int64_t hash_block_tokens = 512;  ///< Tokens a hash id stands for.
  HashLengthRule hash_length = HashLengthRule::kStrict;
  SessionHistory history = SessionHistory::kIncluded;
  double timeout_s = 0;  ///< Client timeout; 0: none.
};

void describe(Describer& d, TraceReplayConfig& t);

/// Makes prompts of trace records. A hash id stands for a block with its whole prefix, so each id
/// becomes a segment of its own content. Rows of one prefix group begin with the same tokens. A
/// record with neither shares only its session's history, if there is one.
class TracePrompts {
 public:
  TracePrompts(std::uint64_t seed, std::int64_t block_tokens);
  /// Why the record's ids do not fit its length; empty when they do.
  std::string problem(const TraceRecord& record, HashLengthRule rule) const;
  /// Makes the prompt, with id `number`. `history` holds the tokens of the session so far.
  std::shared_ptr<const Prompt> prompt(const TraceRecord& record, HashLengthRule rule,
                                       std::uint64_t number, bool reusable = false,
                                       const std::vector<Segment>* history = nullptr) const;
  /// Fills the answer of request `number`.
  void fill_answer(const TraceRecord& record, std::uint64_t number, Request& request) const;
  /// Equal for records with equal prompts. Nothing where a part of the prompt is its own text.
  std::optional<std::uint64_t> signature(const TraceRecord& record, HashLengthRule rule) const;

 private:
  std::int64_t block_of(const TraceRecord& record) const;

  std::uint64_t seed_;
  std::int64_t block_tokens_;
};

/// The rules that decide how a trace is read through.
struct TraceRules {
  std::int64_t block_tokens = 512;
  HashLengthRule hash_length = HashLengthRule::kStrict;
  std::int64_t max_requests = 0;  ///< 0: all.
  SessionHistory history = SessionHistory::kNone;
  bool operator==(const TraceRules&) const = default;
};

/// The result of one reading of a trace.
struct TraceSummary {
  std::int64_t records = 0;
  Duration last{};          ///< Time of the last record that has one.
  bool has_delays = false;  ///< Some record waits for its session.
  std::int64_t empty_prompts = 0;
  SourceLocation first_empty{};
  std::int64_t later_turns = 0;  ///< Turns that continue a session, where history is included.
  std::int64_t short_turns = 0;  ///< Those of them whose prompt is shorter than the last one.
  Diagnostics found{};           ///< Errors; reading ends at the first.
};

/// Reads a trace through and keeps what it found: the loads that one plan makes share a survey and
/// read the file once. Thread-safe.
class TraceSurvey {
 public:
  TraceSummary read(const TraceOpener& open, const TraceRules& rules);

 private:
  std::mutex mutex_;
  std::optional<TraceRules> asked_;
  TraceSummary summary_;
};

/// Surveys the trace of `inputs` and reports what is wrong with it; `key` is to name a trace.
TraceSummary survey_trace(const LoadInputs& inputs, const TraceRules& rules, const std::string& key,
                          Diagnostics& out);

/// Due times of the first `most` records: their times, multiplied.
std::unique_ptr<ArrivalStream> trace_arrivals(
    const TraceOpener& open, double scale = 1,
    std::int64_t most = std::numeric_limits<std::int64_t>::max());

/// Streams the trace: one record in memory, the history of each session that has one, and, only
/// when the trace has delays, the turns that wait. Records with the same hash id share that block's
/// tokens. A record with a `delay` is sent that long after its session's
/// previous request completed.
std::unique_ptr<LoadGenerator> make_load_generator(const TraceReplayConfig& config,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics);

/// A trace file and how to replay it.
struct TraceWorkload {
  std::string file;                   ///< Path, relative to the scenario.
  std::string format;                 ///< Empty = told from the file's name and first line.
  std::optional<CsvColumns> columns;  ///< Column names of csv and jsonl traces.
  std::optional<MissingLengths> missing;
  TraceReplayConfig replay;
};

void describe(Describer& d, TraceWorkload& t);
LoadTraits traits_of(const TraceWorkload& t);
std::vector<LoadFile> files_of(const TraceWorkload& t);
std::string scale_rates(TraceWorkload& t, double by);
std::string hold_rate(TraceWorkload& t, double rate, double seconds);

std::unique_ptr<LoadGenerator> make_load_generator(const TraceWorkload& t,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics);

}  // namespace routesim::workloads

template <>
struct routesim::EnumNames<routesim::workloads::HashLengthRule> {
  static constexpr std::array<std::string_view, 2> value = {"strict", "truncate_to_ids"};
};

template <>
struct routesim::EnumNames<routesim::workloads::SessionHistory> {
  static constexpr std::array<std::string_view, 3> value = {"included", "added", "none"};
};

template <>
struct routesim::workloads::LoadKey<routesim::workloads::TraceWorkload> {
  static constexpr Field value = {"trace", "Replay of a recorded trace."};
};
