#include "workloads/traces/trace_readers.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "workloads/traces/jsonl_trace.h"
#include "workloads/traces/line_trace_reader.h"
#include "workloads/traces/text_scan.h"

namespace routesim::workloads {
namespace {

/// CSV with a header. A format says which columns it needs and how it reads times.
class CsvReader final : public LineTraceReader {
 public:
  CsvReader(std::unique_ptr<std::istream> in, std::string file, const TraceReadOptions& options)
      : LineTraceReader(std::move(in), std::move(file), options.from_first), options_(options) {
    names_ = columns_of(options);
  }

 protected:
  Row parse(const std::string& line, TraceRecord& record) override {
    if (!split_csv(line, fields_, starts_))
      return fail("a quote that does not fit", {}, starts_.back());
    if (!header_read_) {
      header_read_ = true;
      const Row header = read_header();
      if (header != Row::kRecord) return header;
    }
    if (fields_.size() != width_)
      return fail("expected " + std::to_string(width_) + " fields (got " +
                      std::to_string(fields_.size()) + ")",
                  {}, starts_[std::min(fields_.size() - 1, width_)]);
    columns_of_values = {.time = start(time_),
                         .input = start(input_),
                         .output = start(output_),
                         .prefix = start(prefix_tokens_)};
    if (wrong_model()) return Row::kSkip;
    if (!read_time(record.at)) return Row::kError;
    if (!read_count(input_, record.input_tokens) || !read_count(output_, record.output_tokens))
      return Row::kError;
    record.session = name_in(session_);
    record.prefix_group = name_in(prefix_group_);
    if (record.prefix_group != 0 && !read_count(prefix_tokens_, record.prefix_tokens))
      return Row::kError;
    if (options_.format == TraceFormat::kBurstGpt && options_.skip_failed &&
        record.output_tokens == 0)
      return Row::kSkip;
    return Row::kRecord;
  }

 private:
  const std::string& field(int column) const { return fields_[static_cast<std::size_t>(column)]; }
  int start(int column) const { return column < 0 ? 1 : starts_[static_cast<std::size_t>(column)]; }

  int find(const std::string& name) const {
    const auto it = std::find(fields_.begin(), fields_.end(), name);
    return name.empty() || it == fields_.end() ? -1 : static_cast<int>(it - fields_.begin());
  }

  /// The session or group in a column; 0 where there is none.
  std::uint64_t name_in(int column) const {
    return column < 0 || field(column).empty() ? 0 : hash_bytes(field(column)) | 1;
  }

  /// Finds the columns that may be absent. A group needs its tokens.
  bool find_optional() {
    session_ = find(names_.session);
    if (names_.session == CsvColumns().session)
      for (const std::string_view name : kSessionKeys)
        if (session_ < 0) session_ = find(std::string(name));
    prefix_group_ = find(names_.prefix_group);
    prefix_tokens_ = find(names_.prefix_tokens);
    if ((prefix_group_ < 0) == (prefix_tokens_ < 0)) return true;
    const bool group = prefix_group_ >= 0;
    fail("the column `" + (group ? names_.prefix_group : names_.prefix_tokens) +
             "` needs a column `" + (group ? names_.prefix_tokens : names_.prefix_group) + "`",
         "rows of one prefix_group share their first prefix_tokens tokens",
         start(group ? prefix_group_ : prefix_tokens_));
    return false;
  }

  /// kSkip after a header, kRecord when the line is a record already.
  Row read_header() {
    width_ = fields_.size();
    if (options_.format == TraceFormat::kAzure && parse_date_time_ns(fields_[0])) {
      // Some releases have no header; the order is fixed.
      time_ = 0, input_ = 1, output_ = 2;
      return width_ >= 3 ? Row::kRecord : fail("expected at least 3 fields");
    }
    time_ = find(names_.timestamp);
    input_ = find(names_.input);
    output_ = find(names_.output);
    model_ = find("Model");
    std::string missing;
    const auto need = [&](int column, const std::string& name) {
      if (column < 0 && !name.empty()) missing += (missing.empty() ? "`" : ", `") + name + "`";
    };
    const auto twice = [&](const std::string& name) {
      if (name.empty() || std::count(fields_.begin(), fields_.end(), name) < 2) return false;
      const auto first = std::find(fields_.begin(), fields_.end(), name);
      const auto second = std::find(first + 1, fields_.end(), name) - fields_.begin();
      fail("the header has the column `" + name + "` more than once", {},
           start(static_cast<int>(second)));
      return true;
    };
    // Every wrong column is named, not the first only.
    bool bad = !find_optional();
    need(time_, names_.timestamp);
    need(input_, names_.input);
    need(output_, names_.output);
    bad = bad || !missing.empty();
    if (!missing.empty())
      fail("the header has no column " + missing,
           width_ == 1 ? "fields are separated by commas"
                       : "name the file's own, such as columns: {timestamp: time, input: prompt, "
                         "output: answer}");
    for (const std::string* name : {&names_.timestamp, &names_.input, &names_.output,
                                    &names_.session, &names_.prefix_group, &names_.prefix_tokens})
      bad = twice(*name) || bad;
    if (!bad && (input_ < 0 || output_ < 0))
      return fail("the columns of input and output tokens need names");
    return bad ? Row::kError : Row::kSkip;
  }

  bool wrong_model() const {
    return options_.format == TraceFormat::kBurstGpt && !options_.model.empty() && model_ >= 0 &&
           field(model_) != options_.model;
  }

  bool read_time(Duration& at) {
    at = Duration::zero();
    if (time_ < 0) return true;
    const std::string& text = field(time_);
    if (options_.format == TraceFormat::kAzure) {
      const auto ns = parse_date_time_ns(text, options_.truncate_to_10ms ? 2 : 9);
      if (ns) at = Duration::nanoseconds(*ns);
      if (!ns) fail("not a date and time (got \"" + text + "\")", {}, start(time_));
      return ns.has_value();
    }
    const auto value = parse_real(text);
    auto time = value ? trace_time(*value, names_.timestamp_unit_s) : std::nullopt;
    if (const auto ns = parse_date_time_ns(text); !value && ns) time = Duration::nanoseconds(*ns);
    if (!time) {
      fail("not a time (got \"" + text + "\")", {}, start(time_));
      return false;
    }
    at = *time;
    return true;
  }

  bool read_count(int column, std::int64_t& out) {
    const auto n = parse_integer(field(column));
    if (!n) {
      fail("not a whole number (got \"" + field(column) + "\")", {}, start(column));
      return false;
    }
    out = *n;
    return true;
  }

  TraceReadOptions options_;
  CsvColumns names_;
  std::vector<std::string> fields_;
  std::vector<int> starts_;  ///< Columns at which the fields begin, from 1.
  bool header_read_ = false;
  std::size_t width_ = 0;
  int time_ = -1, input_ = -1, output_ = -1, session_ = -1, model_ = -1;
  int prefix_group_ = -1, prefix_tokens_ = -1;
};

}  // namespace

CsvColumns columns_of(const TraceReadOptions& options) {
  switch (options.format) {
    case TraceFormat::kMooncake: {
      CsvColumns columns;
      columns.timestamp_unit_s = 1e-3;
      return columns;
    }
    case TraceFormat::kAzure:
      return {.timestamp = "TIMESTAMP",
              .input = "ContextTokens",
              .output = "GeneratedTokens",
              .session = ""};
    case TraceFormat::kBurstGpt:
      return {.timestamp = "Timestamp",
              .input = "Request tokens",
              .output = "Response tokens",
              .session = "Session ID"};
    case TraceFormat::kVidur:
      return {.timestamp = "arrived_at",
              .input = "num_prefill_tokens",
              .output = "num_decode_tokens",
              .session = ""};
    default:
      return options.columns;
  }
}

void describe(Describer& d, CsvColumns& t) {
  field(d, {"timestamp", "Column (or key) of the arrival time; empty: all at once."}, t.timestamp);
  field(d, {"input", "Column of the prompt's tokens."}, t.input);
  field(d, {"output", "Column of the answer's tokens."}, t.output);
  field(d, {"session", "Column of the conversation; may be absent."}, t.session);
  field(d,
        {"prefix_group",
         "Column of the group of rows whose prompts begin with the same tokens; may be absent."},
        t.prefix_group);
  field(d, {"prefix_tokens", "Column of how many tokens these are."}, t.prefix_tokens);
  field(d,
        {"text",
         "Key of the prompt's text in jsonl: a text, token ids or chat messages. Empty: messages, "
         "prompt, text_input or text, whichever is there."},
        t.text);
  field(d,
        {"answer_text",
         "Key of the answer's text in jsonl, which gives its length where `output` is absent. "
         "Empty: response or completion."},
        t.answer_text);
  field(d, {"timestamp_unit_s", "Seconds per unit of the timestamp column."}, t.timestamp_unit_s,
        RealRange{.min = 0, .max = 1e6, .min_open = true});
}

void describe(Describer& d, MissingLengths& t) {
  field(d, {"input_tokens", "Tokens of a prompt that the log does not have; 0 refuses it."},
        t.input_tokens, IntRange{0, kMaxTokens});
  field(d, {"output_tokens", "Tokens of an answer that the log does not have; 0 refuses it."},
        t.output_tokens, IntRange{0, kMaxTokens});
}

std::unique_ptr<TraceReader> make_trace_reader(std::unique_ptr<std::istream> in, std::string file,
                                               const TraceReadOptions& options) {
  ROUTESIM_CHECK(options.format < TraceFormat::kLiteLlm, "a log is no trace of lines");
  if (options.format == TraceFormat::kMooncake || options.format == TraceFormat::kJsonl)
    return make_jsonl_reader(std::move(in), std::move(file), options, columns_of(options));
  return std::make_unique<CsvReader>(std::move(in), std::move(file), options);
}

bool is_json(TraceFormat format) {
  return format == TraceFormat::kMooncake || format == TraceFormat::kJsonl ||
         format == TraceFormat::kLiteLlm || format == TraceFormat::kOtlp;
}

}  // namespace routesim::workloads
