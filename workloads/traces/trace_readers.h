// Traces, record by record: bytes in, records and diagnostics out. Nothing is kept but the current
// record, so a trace of any length is read in flat memory. Opening files is the caller's business.
#pragma once

#include <array>
#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "base/units.h"
#include "workloads/load_traits.h"

namespace routesim::workloads {

enum class TraceFormat {
  kMooncake,  ///< JSONL: timestamp ms, input_length, output_length, hash_ids (512 tokens each).
              ///< Also vLLM's timed_trace, and aiperf's session_id and delay (ms).
  kAzure,     ///< CSV: TIMESTAMP date-time, ContextTokens, GeneratedTokens (2023 and 2024).
  kBurstGpt,  ///< CSV: Timestamp s, Model, Request tokens, Response tokens, …
  kVidur,     ///< CSV: arrived_at s, num_prefill_tokens, num_decode_tokens.
  kCsv,       ///< Any CSV with a header; see CsvColumns.
  kJsonl,     ///< One object per line with the keys of CsvColumns.
  // Logs of other programs, which tools/ingest/traces reads.
  kLiteLlm,  ///< JSONL: logs of the LiteLLM proxy (standard payloads, spend logs).
  kOtlp,     ///< JSONL: exports of spans by OpenTelemetry's collector.
  kVllmLog,  ///< The log of vllm serve --enable-log-requests.
};

/// Whether a record is a line of JSON.
bool is_json(TraceFormat format);

/// Names of the columns (or JSON keys) of the generic formats. An absent timestamp column means
/// "all at once"; the other columns behind `output` may be absent. A session column with its
/// default name may also be called `session` or `conversation_id`.
struct CsvColumns {
  std::string timestamp = "timestamp";
  std::string input = "input_length";
  std::string output = "output_length";
  std::string session = "session_id";
  std::string prefix_group = "prefix_group";
  std::string prefix_tokens = "prefix_tokens";
  /// Keys of the prompt's and the answer's text in jsonl. Empty: one of kPromptKeys, kAnswerKeys.
  std::string text{}, answer_text{};
  double timestamp_unit_s = 1;  ///< Seconds per unit of the timestamp column.
};

/// Names under which prompts and answers stand as text: OpenAI's API, aiperf's traces.
inline constexpr std::array<std::string_view, 4> kPromptKeys = {"messages", "prompt", "text_input",
                                                                "text"};
inline constexpr std::array<std::string_view, 2> kAnswerKeys = {"response", "completion"};
/// Other names of a session column that has its default name.
inline constexpr std::array<std::string_view, 2> kSessionKeys = {"session", "conversation_id"};

void describe(Describer& d, CsvColumns& t);

/// Lengths of prompts and answers that a log does not have. 0: such a request is an error.
struct MissingLengths {
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
};

void describe(Describer& d, MissingLengths& t);

/// One request of a trace.
struct TraceRecord {
  Duration at{};  ///< Since the first record (or file zero; TraceReadOptions::from_first).
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::vector<std::uint64_t>
      hash_ids{};                   ///< One per block, the last may be partial; empty: unknown.
  std::uint64_t session = 0;        ///< 0: none.
  std::int64_t id_tokens = 0;       ///< Tokens per hash id; 0: as the replay says.
  std::int64_t text_tokens = 0;     ///< Estimated from the text, where the file states the input.
  std::uint64_t prefix_group = 0;   ///< Rows of one group begin with the same tokens; 0: none.
  std::int64_t prefix_tokens = 0;   ///< How many tokens these are, at most the input's.
  std::optional<Duration> delay{};  ///< Gap after the session's previous turn, instead of `at`.
  std::int64_t line = 0;            ///< Line of the file, from 1.
  int ids_column = 1;               ///< Column of the hash ids in the line.
  int input_column = 1;             ///< Column of the input tokens.
};

/// A source of records.
class TraceReader {
 public:
  virtual ~TraceReader() = default;
  /// Reads the next record. False at the end, and after an error, which is then in diagnostics():
  /// reading stops at the first broken line.
  virtual bool next(TraceRecord& record) = 0;
  virtual const Diagnostics& diagnostics() const = 0;
  /// Its file, as named in diagnostics; empty for records in memory.
  virtual std::string file() const { return {}; }
};

struct TraceReadOptions {
  TraceFormat format = TraceFormat::kMooncake;
  CsvColumns columns{};
  /// inference-perf's Azure reader keeps two digits of the seconds' fraction (10 ms steps).
  bool truncate_to_10ms = false;
  /// BurstGPT: rows of other models are skipped; empty keeps all.
  std::string model{};
  /// BurstGPT: rows whose response has zero tokens (failed requests) are skipped.
  bool skip_failed = true;
  /// Times count from the first record; else from the file's zero.
  bool from_first = true;
  /// Real tokens per token that is estimated from a text.
  double text_scale = 1;
  MissingLengths missing{};
};

/// The names of the columns or keys that a format reads.
CsvColumns columns_of(const TraceReadOptions& options);

/// Reads a trace that is no log from `in`. `file` names it in diagnostics. Timestamps must not go
/// backwards.
std::unique_ptr<TraceReader> make_trace_reader(std::unique_ptr<std::istream> in, std::string file,
                                               const TraceReadOptions& options);

}  // namespace routesim::workloads

template <>
struct routesim::EnumNames<routesim::workloads::TraceFormat> {
  static constexpr std::array<std::string_view, 9> value = {
      "mooncake", "azure", "burstgpt", "vidur", "csv", "jsonl", "litellm", "otlp", "vllm-log"};
};
