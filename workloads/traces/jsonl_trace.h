// Traces of JSON lines. Private to workloads/traces.
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/traces/line_trace_reader.h"
#include "workloads/traces/text_blocks.h"

namespace routesim::workloads {

/// The meaning of a key of a line to the reader of JSON lines.
enum class TraceKey {
  kNone,
  kTime,
  kInput,
  kOutput,
  kSession,
  kHashIds,
  kDelay,
  kPrefixGroup,
  kPrefixTokens,
  kText,
  kAnswerText,
};

/// The meaning of a key under these names.
TraceKey meaning_of(std::string_view key, const CsvColumns& columns);

/// Reads a prompt's text: a string, an array of token ids, or an array of chat messages, whose
/// texts are joined as the ChatML template does. `line` is the text that the scanner reads.
bool read_prompt_text(JsonScanner& json, std::string_view line, TextBlocks& out);

/// Reads a time in units of `unit_s` seconds, or a date and time in UTC.
bool read_trace_time(JsonScanner& json, double unit_s, Duration& out);
/// Reads the name of a session or a group: a text or a whole number. 0 for null and an empty text,
/// and for nothing else.
bool read_trace_name(JsonScanner& json, std::uint64_t& name);

/// JSON lines with the keys of `columns`.
std::unique_ptr<TraceReader> make_jsonl_reader(std::unique_ptr<std::istream> in, std::string file,
                                               const TraceReadOptions& options,
                                               const CsvColumns& columns);

}  // namespace routesim::workloads
