#include "workloads/traces/trace_readers.h"

#include <algorithm>
#include <utility>

#include "base/rng.h"
#include "workloads/traces/text_scan.h"

namespace routesim::workloads {
namespace {

constexpr std::int64_t kMaxTokens = 100'000'000;
/// A century: later times are mistakes, and their nanoseconds would not fit.
constexpr double kMaxSeconds = 3.2e9;

/// The base of all readers of lines: the first error ends the reading.
class LineTraceReader : public TraceReader {
 public:
  LineTraceReader(std::unique_ptr<std::istream> in, std::string file, bool from_first)
      : in_(std::move(in)), file_(std::move(file)), lines_(*in_), from_first_(from_first) {}

  bool next(TraceRecord& record) final {
    while (!over_) {
      record.hash_ids.clear();
      record.session = 0;
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
    int time = 1, input = 1, output = 1;
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
        !count("output tokens", record.output_tokens, at.output))
      return false;
    if (record.delay) return true;
    if (from_first_) {
      if (!first_) first_ = record.at;
      record.at -= *first_;
    }
    if (record.at < last_) {
      fail("the timestamp goes back", "sort the trace by time", at.time);
      return false;
    }
    last_ = record.at;
    return true;
  }

  std::unique_ptr<std::istream> in_;
  std::string file_;
  LineReader lines_;
  bool from_first_;
  std::string line_;
  Diagnostics diagnostics_;
  std::optional<Duration> first_;
  Duration last_ = Duration::zero();
  bool over_ = false;
};

std::optional<Duration> seconds(double value, double unit) {
  const double s = value * unit;
  if (!(s >= 0 && s <= kMaxSeconds)) return std::nullopt;
  return Duration::from_seconds(s);
}

/// The names of the columns or keys that a format reads.
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

/// JSONL with Mooncake's keys, or with keys of the user's choice.
class JsonlReader final : public LineTraceReader {
 public:
  JsonlReader(std::unique_ptr<std::istream> in, std::string file, const TraceReadOptions& options)
      : LineTraceReader(std::move(in), std::move(file), options.from_first),
        columns_(columns_of(options)) {}

 protected:
  Row parse(const std::string& line, TraceRecord& record) override {
    JsonScanner json(line, line_number());
    bool time = false, input = false, output = false;
    record.at = Duration::zero();
    seen_.clear();
    Columns& at = columns_of_values;
    (void)json.members([&](const std::string& key) {
      const bool is_read = key == columns_.timestamp || key == columns_.input ||
                           key == columns_.output || key == columns_.session || key == "hash_ids" ||
                           key == "delay";
      if (!is_read) return json.skip();
      const int column = json.value_column();
      if (std::find(seen_.begin(), seen_.end(), key) != seen_.end())
        return json.fail_at("the key `" + key + "` stands here twice", column);
      seen_.push_back(key);
      if (key == columns_.timestamp) {
        at.time = column;
        return time = read_time(json, record.at);
      }
      if (key == columns_.input) {
        at.input = column;
        return input = json.read_integer(record.input_tokens);
      }
      if (key == columns_.output) {
        at.output = column;
        return output = json.read_integer(record.output_tokens);
      }
      if (key == "hash_ids") {
        record.ids_column = column;
        return json.read_integers(record.hash_ids);
      }
      return key == columns_.session ? read_session(json, record.session)
                                     : read_time(json, record.delay.emplace());
    });
    if (json.ok() && !json.at_end()) json.fail("text behind the object");
    if (!json.ok()) return fail(json.error(), {}, json.column());
    if (!input) return fail("`" + columns_.input + "` is missing");
    if (!output) return fail("`" + columns_.output + "` is missing");
    if (!time && !record.delay && !columns_.timestamp.empty())
      return fail("`" + columns_.timestamp + "` is missing");
    return Row::kRecord;
  }

 private:
  bool read_time(JsonScanner& json, Duration& out) const {
    double value = 0;
    const int column = json.value_column();
    if (!json.read_real(value)) return false;
    const std::optional<Duration> at = seconds(value, columns_.timestamp_unit_s);
    if (!at) return json.fail_at("the time is negative or too large", column);
    out = *at;
    return true;
  }
  bool read_session(JsonScanner& json, std::uint64_t& session) {
    if (json.peek() == JsonScanner::Kind::kString) {
      if (!json.read_string(text_)) return false;
      session = hash_bytes(text_) | 1;
      return true;
    }
    std::int64_t id = 0;
    if (!json.read_integer(id)) return false;
    session = mix64(static_cast<std::uint64_t>(id)) | 1;
    return true;
  }

  CsvColumns columns_;
  std::string text_;
  std::vector<std::string> seen_;  ///< Keys of this line that are read.
};

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
    columns_of_values = {.time = start(time_), .input = start(input_), .output = start(output_)};
    if (wrong_model()) return Row::kSkip;
    if (!read_time(record.at)) return Row::kError;
    if (!read_count(input_, record.input_tokens) || !read_count(output_, record.output_tokens))
      return Row::kError;
    if (session_ >= 0 && !field(session_).empty()) record.session = hash_bytes(field(session_)) | 1;
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
    session_ = find(names_.session);
    model_ = find("Model");
    const auto missing = [&](int column, const std::string& name) {
      if (column < 0 && !name.empty())
        fail("the header has no column `" + name + "`",
             width_ == 1 ? "fields are separated by commas"
                         : "name the file's own, such as columns: {timestamp: time, input: prompt, "
                           "output: answer}");
      return column < 0 && !name.empty();
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
    bool bad = missing(time_, names_.timestamp);
    bad = missing(input_, names_.input) || bad;
    bad = missing(output_, names_.output) || bad;
    for (const std::string* name :
         {&names_.timestamp, &names_.input, &names_.output, &names_.session})
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
    const auto time = value ? seconds(*value, names_.timestamp_unit_s) : std::nullopt;
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
};

class MemoryTraceReader final : public TraceReader {
 public:
  explicit MemoryTraceReader(std::vector<TraceRecord> records) : records_(std::move(records)) {}
  bool next(TraceRecord& record) override {
    if (position_ == records_.size()) return false;
    record = records_[position_++];
    return true;
  }
  const Diagnostics& diagnostics() const override { return diagnostics_; }

 private:
  std::vector<TraceRecord> records_;
  std::size_t position_ = 0;
  Diagnostics diagnostics_;
};

}  // namespace

void describe(Describer& d, CsvColumns& t) {
  field(d, {"timestamp", "Column (or key) of the arrival time; empty: all at once."}, t.timestamp);
  field(d, {"input", "Column of the prompt's tokens."}, t.input);
  field(d, {"output", "Column of the answer's tokens."}, t.output);
  field(d, {"session", "Column of the conversation; may be absent."}, t.session);
  field(d, {"timestamp_unit_s", "Seconds per unit of the timestamp column."}, t.timestamp_unit_s,
        RealRange{.min = 0, .max = 1e6, .min_open = true});
}

std::unique_ptr<TraceReader> make_trace_reader(std::unique_ptr<std::istream> in, std::string file,
                                               const TraceReadOptions& options) {
  if (options.format == TraceFormat::kMooncake || options.format == TraceFormat::kJsonl)
    return std::make_unique<JsonlReader>(std::move(in), std::move(file), options);
  return std::make_unique<CsvReader>(std::move(in), std::move(file), options);
}

std::vector<std::pair<std::string, bool>> trace_columns(const std::string& first_line,
                                                        const TraceReadOptions& options) {
  const CsvColumns used = columns_of(options);
  std::vector<std::pair<std::string, bool>> columns;
  const auto add = [&](const std::string& name, std::initializer_list<std::string_view> more) {
    bool is_used = std::find(more.begin(), more.end(), name) != more.end();
    for (const std::string* known : {&used.timestamp, &used.input, &used.output, &used.session})
      is_used = is_used || (!known->empty() && name == *known);
    columns.emplace_back(name, is_used);
  };
  if (options.format == TraceFormat::kMooncake || options.format == TraceFormat::kJsonl) {
    JsonScanner json(first_line, 1);
    const bool good = json.members([&](const std::string& key) {
      add(key, {"hash_ids", "delay"});
      return json.skip();
    });
    return good ? columns : std::vector<std::pair<std::string, bool>>();
  }
  std::vector<std::string> fields;
  std::vector<int> places;
  if (!split_csv(first_line, fields, places)) return {};
  if (options.format == TraceFormat::kAzure && parse_date_time_ns(fields[0])) return {};
  for (const std::string& field : fields) {
    if (options.format == TraceFormat::kBurstGpt && !options.model.empty())
      add(field, {"Model"});
    else
      add(field, {});
  }
  return columns;
}

std::unique_ptr<TraceReader> make_trace_reader(std::vector<TraceRecord> records) {
  return std::make_unique<MemoryTraceReader>(std::move(records));
}

}  // namespace routesim::workloads
