// The base of all readers of traces that stand in lines.
#pragma once

#include <istream>
#include <memory>
#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "base/units.h"
#include "workloads/traces/text_scan.h"
#include "workloads/traces/trace_readers.h"

namespace routesim::workloads {

inline constexpr std::int64_t kMaxTokens = 100'000'000;
/// A century: later times are mistakes, and their nanoseconds would not fit.
inline constexpr double kMaxSeconds = 3.2e9;

/// `value` times `unit` seconds; nothing when it is negative or later than a century.
inline std::optional<Duration> trace_time(double value, double unit) {
  const double s = value * unit;
  if (!(s >= 0 && s <= kMaxSeconds)) return std::nullopt;
  return Duration::from_seconds(s);
}

/// The base of all readers of lines: the first error ends the reading.
class LineTraceReader : public TraceReader {
 public:
  LineTraceReader(std::unique_ptr<std::istream> in, std::string file, bool from_first,
                  bool in_order = true)
      : in_(std::move(in)),
        file_(std::move(file)),
        lines_(*in_),
        from_first_(from_first),
        in_order_(in_order) {}

  bool next(TraceRecord& record) final {
    while (!over_) {
      record.hash_ids.clear();
      record.session = 0;
      record.id_tokens = record.text_tokens = 0;
      record.prefix_group = 0;
      record.prefix_tokens = 0;
      record.delay.reset();
      if (!lines_.next(line_)) {
        over_ = true;
        if (lines_.too_long()) fail("the line is longer than 16 MiB");
        return false;
      }
      record.line = lines_.line_number();
      const Row row = parse(line_, record);
      if (row == Row::kError) over_ = true;
      if (row != Row::kRecord) continue;
      if (check(record)) return true;
      over_ = true;
    }
    return false;
  }
  const Diagnostics& diagnostics() const final { return diagnostics_; }
  std::string file() const final { return file_; }

 protected:
  enum class Row { kRecord, kSkip, kError };
  /// Columns of the line's values that parse() has read; 1 for a value it does not have.
  struct Columns {
    int time = 1, input = 1, output = 1, prefix = 1;
  };
  /// Fills `at` (any origin), the lengths, and what else the format has.
  virtual Row parse(const std::string& line, TraceRecord& record) = 0;
  Row fail(std::string message, std::string hint = {}, int column = 1) {
    diagnostics_.error({file_, static_cast<int>(lines_.line_number()), column}, "",
                       std::move(message), std::move(hint));
    return Row::kError;
  }
  std::int64_t line_number() const { return lines_.line_number(); }
  Columns columns_of_values;

 private:
  bool check(TraceRecord& record) {
    auto count = [&](const char* name, std::int64_t n, int column) {
      if (n >= 0 && n <= kMaxTokens) return true;
      fail(
          std::string(name) + " must lie between 0 and 100,000,000 (got " + std::to_string(n) + ")",
          {}, column);
      return false;
    };
    const Columns& at = columns_of_values;
    record.input_column = at.input;
    if (!count("input tokens", record.input_tokens, at.input) ||
        !count("output tokens", record.output_tokens, at.output) ||
        !count("prefix tokens", record.prefix_tokens, at.prefix))
      return false;
    if (!check_prefix(record)) return false;
    if (record.delay) return true;
    if (from_first_) {
      if (!first_) first_ = record.at;
      record.at -= *first_;
    }
    if (in_order_ && record.at < last_) {
      fail("the timestamp goes back", "sort the trace by time", at.time);
      return false;
    }
    last_ = record.at;
    return true;
  }

  bool check_prefix(const TraceRecord& record) {
    const int column = columns_of_values.prefix;
    if (record.prefix_tokens > 0 && record.prefix_group == 0)
      fail("prefix tokens without a prefix group", "name the rows that share them by one group",
           column);
    else if (record.prefix_group != 0 && !record.hash_ids.empty())
      fail("hash ids or a text and a prefix group: both say what the prompt shares",
           "leave one of them out", column);
    else if (record.session == 0 && record.prefix_tokens > record.input_tokens)
      fail("the prefix has " + std::to_string(record.prefix_tokens) + " tokens, the prompt only " +
               std::to_string(record.input_tokens),
           "the input tokens count the prefix, too", column);
    else
      return true;
    return false;
  }

  std::unique_ptr<std::istream> in_;
  std::string file_;
  LineReader lines_;
  bool from_first_;
  bool in_order_;  // Times must not go backwards.
  std::string line_;
  Diagnostics diagnostics_;
  std::optional<Duration> first_;
  Duration last_ = Duration::zero();
  bool over_ = false;
};

}  // namespace routesim::workloads
