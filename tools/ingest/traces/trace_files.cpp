#include "tools/ingest/traces/trace_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <memory>
#include <streambuf>
#include <utility>

#include "base/diagnostic.h"
#include "base/text.h"
#include "tools/ingest/traces/log_readers.h"
#include "workloads/traces/jsonl_trace.h"
#include "workloads/traces/text_scan.h"

namespace routesim::tools {

namespace {

using workloads::TraceFormat;
using workloads::TraceReadOptions;

TraceReadOptions with_format(TraceFormat format) {
  TraceReadOptions options;
  options.format = format;
  return options;
}

/// The file opened for reading, or an error.
std::unique_ptr<std::ifstream> open(const std::string& path, const SourceLocation& where,
                                    const std::string& key_path, Diagnostics& diagnostics) {
  std::error_code ignored;
  // Opening a pipe or reading a device may last for ever, and neither can be read a second time.
  if (std::filesystem::is_other(path, ignored)) {
    const bool is_pipe = std::filesystem::is_fifo(path, ignored);
    diagnostics.error(where, key_path,
                      printable(path, 200) + (is_pipe ? " is a pipe" : " is a device") +
                          ", and the file is read more than once",
                      "write it to a file first");
    return nullptr;
  }
  auto file = std::make_unique<std::ifstream>(path, std::ios::binary);
  const bool folder = std::filesystem::is_directory(path, ignored);
  if (!folder && file->good() && file->peek() != std::ifstream::traits_type::eof()) return file;
  const bool opened = file->is_open();
  std::string what = "cannot open " + printable(path, 200) + ": " + std::strerror(errno);
  if (folder)
    what = "cannot read " + printable(path, 200) + ": it is a directory";
  else if (opened)
    what = printable(path, 200) + " is empty or cannot be read";
  const bool is_placeholder = path.find("REPLACE_ENV_") != std::string::npos;
  diagnostics.error(where, key_path, what,
                    is_placeholder
                        ? "a placeholder of llm-d-benchmark: write the path, or give it with --set"
                        : "paths inside a file are relative to that file");
  return nullptr;
}

/// A JSON array of records, as APIs answer, read as one record per line. Line breaks inside a
/// record follow it, so that a record stays at its line; of an array in one line, each record is a
/// line.
class ArrayLines final : public std::streambuf {
 public:
  explicit ArrayLines(std::unique_ptr<std::ifstream> file) : file_(std::move(file)) {}

 protected:
  int_type underflow() override {
    while (out_.empty() && !over_) {
      in_.resize(64U << 10U);
      file_->read(in_.data(), static_cast<std::streamsize>(in_.size()));
      in_.resize(static_cast<std::size_t>(file_->gcount()));
      shown_.clear();
      for (const char c : in_) add(c);
      over_ = in_.empty();
      if (over_ && depth_ > 0) shown_ += "\n[";  // Cut short: what reads the lines refuses it.
      out_ = shown_;
    }
    if (out_.empty()) return traits_type::eof();
    out_.clear();
    setg(shown_.data(), shown_.data(), shown_.data() + shown_.size());
    return traits_type::to_int_type(*gptr());
  }

 private:
  void add(char c) {
    const bool quoted = quoted_;
    if (escaped_ || c == '\\')
      escaped_ = quoted && !escaped_;
    else if (c == '"')
      quoted_ = !quoted;
    if (quoted) return shown_.push_back(c);
    if (c == '\n') return add_break();
    if (depth_ < 2 && (c == ' ' || c == '\t' || c == '\r')) return;
    const bool opens = c == '[' || c == '{', closes = c == ']' || c == '}';
    if (opens && depth_ == 1 && record_ended_) {
      end_lines(1);
      --owed_;
    }
    depth_ += opens ? 1 : closes ? -1 : 0;
    if ((opens && depth_ == 1) || (closes && depth_ == 0)) return;
    if (c != ',' || depth_ != 1) return shown_.push_back(c);
    record_ended_ = true;
    if (owed_ > 0) end_lines(std::exchange(owed_, 0));
  }
  void add_break() {
    if (depth_ >= 2) {
      ++owed_;
      shown_.push_back(' ');
    } else if (owed_ < 0 && !record_ended_) {
      ++owed_;
    } else {
      end_lines(1);
    }
  }
  void end_lines(std::int64_t lines) {
    shown_.append(static_cast<std::size_t>(lines), '\n');
    record_ended_ = false;
  }

  std::unique_ptr<std::ifstream> file_;
  std::string in_, out_, shown_;
  int depth_ = 0;
  std::int64_t owed_ = 0;  // Line breaks inside records; below 0 where more lines are shown.
  bool quoted_ = false, escaped_ = false, over_ = false;
  bool record_ended_ = false;  // And its line not yet.
};

class ArrayStream final : public std::istream {
 public:
  explicit ArrayStream(std::unique_ptr<std::ifstream> file)
      : std::istream(nullptr), lines_(std::move(file)) {
    rdbuf(&lines_);
  }

 private:
  ArrayLines lines_;
};

/// The file's records as lines. An array is one of maps: the lines of a log can begin with `[`,
/// too.
std::unique_ptr<std::istream> record_lines(const std::string& path) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  auto file = std::make_unique<std::ifstream>(path, std::ios::binary);
  std::string mark(kMark.size(), '\0');
  file->read(mark.data(), static_cast<std::streamsize>(mark.size()));
  file->clear();
  const std::streamoff start = mark == kMark ? static_cast<std::streamoff>(kMark.size()) : 0;
  file->seekg(start);
  char bracket = '\0', next = '\0';
  *file >> bracket;
  const bool is_array = bracket == '[' && (!(*file >> next) || next == '{' || next == ']');
  file->clear();
  file->seekg(is_array ? start : 0);
  if (!is_array) return file;
  return std::make_unique<ArrayStream>(std::move(file));
}

/// The start of the first line. A device that never ends a line is not read for ever.
std::string first_line(std::istream& in) {
  constexpr std::size_t kEnough = 64U << 10U;
  std::string line;
  for (int c = in.get(); c != std::char_traits<char>::eof() && c != '\n' && line.size() < kEnough;
       c = in.get())
    line.push_back(static_cast<char>(c));
  if (line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
  return line;
}

std::string plain_seconds(double seconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%.10g", seconds);
  return text;
}

/// Says why the line cannot begin a text file of records; empty when it can. A log may begin with
/// anything.
std::string wrong_kind(const std::string& line, bool is_log, std::string& hint) {
  if (line.starts_with("\x1F\x8B") || line.starts_with("\x28\xB5\x2F\xFD") ||
      line.starts_with("PK\x03\x04")) {
    hint = "unpack it first";
    return "is compressed";
  }
  if (!is_log && line.starts_with('[')) {
    hint = "write one object per line, for example with jq -c '.[]'";
    return "is one JSON array, not lines of objects";
  }
  if (line.find('\0') != std::string::npos) {
    hint = "a trace is text: CSV with a header, or one JSON object per line";
    return "is no text";
  }
  return {};
}

/// Says what a reader of the trace's times may not expect: a long time before the first request,
/// which is left out, and milliseconds that may be meant as seconds (`unsure`).
void check_times(const TraceReference& reference, TraceReadOptions options, bool unsure,
                 Diagnostics& diagnostics) {
  constexpr std::int64_t kEnough = 1000;
  constexpr double kLongSilence = 60, kImplausibleRate = 100;
  const bool counts_from_zero =
      options.format == TraceFormat::kMooncake || options.format == TraceFormat::kVidur;
  if (!options.from_first || !counts_from_zero) return;
  options.from_first = false;
  const auto reader = make_any_trace_reader(record_lines(reference.path), reference.path, options);
  workloads::TraceRecord record;
  std::int64_t n = 0;
  Duration first, last;
  for (; n < kEnough && reader->next(record); ++n) {
    if (n == 0) first = record.at;
    last = record.at;
  }
  if (first.to_seconds() > kLongSilence)
    diagnostics.warning(reference.path_where, reference.path_key,
                        "the trace begins at " + plain_seconds(first.to_seconds()) +
                            " s: its requests are sent from 0 s on");
  const double span = (last - first).to_seconds();
  if (!unsure || options.format != TraceFormat::kMooncake || span <= 0 ||
      static_cast<double>(n - 1) <= kImplausibleRate * span)
    return;
  diagnostics.warning(reference.path_where, reference.path_key,
                      "its timestamps are read as milliseconds, as in a Mooncake trace: " +
                          std::to_string(n) + " requests in " + plain_seconds(span) + " s",
                      "set format: jsonl if they are seconds, format: mooncake if not");
}

/// Real tokens per token that is estimated from a text, over the first rows that state both; 1
/// where none does.
double text_scale(const TraceReference& reference, const TraceReadOptions& options) {
  constexpr std::int64_t kEnough = 1000;
  const auto reader = make_any_trace_reader(record_lines(reference.path), reference.path, options);
  workloads::TraceRecord record;
  std::int64_t stated = 0, estimated = 0;
  for (std::int64_t n = 0; n < kEnough && reader->next(record); ++n) {
    if (record.text_tokens == 0) continue;
    stated += record.input_tokens;
    estimated += record.text_tokens;
  }
  return stated > 0 ? static_cast<double>(stated) / static_cast<double>(estimated) : 1;
}

/// A column of a header or a key of a record.
struct Column {
  std::string name;
  int place = 1;         ///< In its line, in bytes from 1.
  bool is_used = false;  ///< A reader with the trace's options reads it.
};

/// The keys of a record. None where it is no object.
std::vector<Column> keys_of(std::string_view line, const TraceReadOptions& options) {
  const workloads::CsvColumns used = workloads::columns_of(options);
  std::vector<Column> keys;
  workloads::JsonScanner json(line);
  std::size_t at = 0;
  const bool good = json.members([&](const std::string& key) {
    // A key stands behind the end of the value before it.
    const int place = static_cast<int>(line.find('"', at)) + 1;
    const bool is_used =
        options.format == TraceFormat::kLiteLlm
            ? std::find(kLiteLlmKeys.begin(), kLiteLlmKeys.end(), key) != kLiteLlmKeys.end()
            : workloads::meaning_of(key, used) != workloads::TraceKey::kNone;
    keys.push_back({key, place, is_used});
    const bool skipped = json.skip();
    at = static_cast<std::size_t>(json.column()) - 1;
    return skipped;
  });
  return good ? keys : std::vector<Column>();
}

/// The columns of a CSV file. None where its first line is no header.
std::vector<Column> columns_of_header(const std::string& line, const TraceReadOptions& options) {
  using workloads::TraceKey;
  const workloads::CsvColumns used = workloads::columns_of(options);
  std::vector<std::string> names;
  std::vector<int> places;
  if (!workloads::split_csv(line, names, places)) return {};
  if (options.format == TraceFormat::kAzure && workloads::parse_date_time_ns(names[0])) return {};
  std::vector<Column> columns;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const TraceKey meaning = workloads::meaning_of(names[i], used);
    const bool is_model =
        options.format == TraceFormat::kBurstGpt && !options.model.empty() && names[i] == "Model";
    // These are keys of JSON lines only.
    const bool is_json_key = meaning == TraceKey::kHashIds || meaning == TraceKey::kDelay ||
                             meaning == TraceKey::kText || meaning == TraceKey::kAnswerText;
    columns.push_back(
        {names[i], places[i], is_model || (meaning != TraceKey::kNone && !is_json_key)});
  }
  return columns;
}

/// Notes what becomes of the trace's columns, or of the keys of its first record.
void note_columns(const TraceReference& reference, const std::string& line,
                  const TraceReadOptions& options, Diagnostics& diagnostics) {
  if (options.format == TraceFormat::kOtlp || options.format == TraceFormat::kVllmLog) {
    const auto reader =
        make_any_trace_reader(record_lines(reference.path), reference.path, options);
    workloads::TraceRecord record;
    (void)reader->next(record);
    for (KeyUse key : reader->diagnostics().keys()) {
      key.path = reference.path_key + "." + key.path;
      diagnostics.key(std::move(key));
    }
    return;
  }
  for (const Column& c :
       is_json(options.format) ? keys_of(line, options) : columns_of_header(line, options))
    diagnostics.key(
        key_use({.file = reference.path, .line = 1, .column = c.place}, "trace",
                reference.path_key + "." + c.name, c.is_used ? Fate::kUsed : Fate::kNoEffect,
                c.is_used ? "" : "requests have times, lengths, prefixes, texts and sessions"));
}

}  // namespace

std::optional<TraceReadOptions> trace_format(const std::string& name) {
  constexpr std::pair<std::string_view, TraceFormat> kFormats[] = {
      {"mooncake", TraceFormat::kMooncake}, {"timed_trace", TraceFormat::kMooncake},
      {"azure", TraceFormat::kAzure},       {"AzurePublicDataset", TraceFormat::kAzure},
      {"burstgpt", TraceFormat::kBurstGpt}, {"vidur", TraceFormat::kVidur},
      {"csv", TraceFormat::kCsv},           {"jsonl", TraceFormat::kJsonl},
      {"litellm", TraceFormat::kLiteLlm},   {"otlp", TraceFormat::kOtlp},
      {"vllm-log", TraceFormat::kVllmLog}};
  for (const auto& [known, format] : kFormats) {
    if (name != known) continue;
    TraceReadOptions options = with_format(format);
    // vLLM waits for the first request's time, too.
    if (name == "timed_trace") options.from_first = false;
    options.truncate_to_10ms = name == "AzurePublicDataset";
    return options;
  }
  return std::nullopt;
}

TraceReadOptions sniff_trace_format(const std::string& first_line) {
  const auto has = [&](std::string_view text) {
    return first_line.find(text) != std::string::npos;
  };
  if (first_line.starts_with('{') && has("\"resourceSpans\""))
    return with_format(TraceFormat::kOtlp);
  // A server's log begins with any line of its start.
  for (const char* level : {"INFO ", "INFO:", "DEBUG ", "WARNING "})
    if (!first_line.starts_with('{') && has(level)) return with_format(TraceFormat::kVllmLog);
  // Qwen's usage traces have Mooncake's keys and more, and times in seconds.
  if (first_line.starts_with('{') && has("\"call_type\"") && has("\"startTime\""))
    return with_format(TraceFormat::kLiteLlm);
  if (first_line.starts_with('{') && has("\"chat_id\"")) return with_format(TraceFormat::kJsonl);
  if (first_line.starts_with('{'))
    return with_format(has("\"hash_ids\"") || has("\"input_length\"") || has("\"text_input\"")
                           ? TraceFormat::kMooncake
                           : TraceFormat::kJsonl);
  if (has("ContextTokens")) return with_format(TraceFormat::kAzure);
  if (has("Request tokens")) return with_format(TraceFormat::kBurstGpt);
  if (has("arrived_at")) return with_format(TraceFormat::kVidur);
  return with_format(TraceFormat::kCsv);
}

workloads::TraceOpener open_trace(const TraceReference& reference, Diagnostics& diagnostics) {
  std::optional<TraceReadOptions> options;
  if (!reference.format.empty()) {
    options = trace_format(reference.format);
    if (!options)
      diagnostics.error(reference.format_where, reference.format_key,
                        "is not a trace format (got " + printable(reference.format) + ")",
                        "one of mooncake, timed_trace, azure, burstgpt, vidur, csv, jsonl, "
                        "litellm, otlp, vllm-log");
  }
  const auto file = open(reference.path, reference.path_where, reference.path_key, diagnostics);
  if (file == nullptr || (!reference.format.empty() && !options)) return {};
  const std::unique_ptr<std::istream> lines = record_lines(reference.path);
  if (lines->peek() == '\n') *lines >> std::ws;  // Before the first record of an array.
  const std::string line = first_line(*lines);
  std::string hint;
  if (const std::string wrong = wrong_kind(line, reference.format == "vllm-log", hint);
      !wrong.empty()) {
    diagnostics.error(reference.path_where, reference.path_key,
                      printable(reference.path, 200) + " " + wrong, hint);
    return {};
  }
  if (reference.columns) {
    if (!options)
      options = with_format(line.starts_with('{') ? TraceFormat::kJsonl : TraceFormat::kCsv);
    if (options->format != TraceFormat::kCsv && options->format != TraceFormat::kJsonl) {
      diagnostics.error(reference.columns_where, reference.columns_key,
                        "the format " + printable(reference.format) + " has columns of its own",
                        "leave out the format, or set it to csv or jsonl");
      return {};
    }
    options->columns = *reference.columns;
  }
  const bool is_guess = !options;
  if (!options) options = sniff_trace_format(line);
  if (reference.missing && options->format != TraceFormat::kVllmLog) {
    diagnostics.error(
        reference.missing_where, reference.missing_key,
        "a trace in the format " + std::string(enum_name(options->format)) + " has all lengths",
        "leave it out; it is for the format vllm-log");
    return {};
  }
  if (reference.missing) options->missing = *reference.missing;
  note_columns(reference, line, *options, diagnostics);
  check_times(reference, *options, is_guess && line.find("\"hash_ids\"") == std::string::npos,
              diagnostics);
  if (is_json(options->format)) options->text_scale = text_scale(reference, *options);
  return [path = reference.path, options = *options]() {
    return make_any_trace_reader(record_lines(path), path, options);
  };
}

std::unique_ptr<std::istream> open_records(const std::string& path, const SourceLocation& where,
                                           const std::string& key_path, Diagnostics& diagnostics) {
  std::unique_ptr<std::ifstream> file = open(path, where, key_path, diagnostics);
  if (file == nullptr) return nullptr;
  std::string hint;
  const std::string wrong = wrong_kind(first_line(*file), false, hint);
  file->clear();
  file->seekg(0);
  if (wrong.empty()) return file;
  diagnostics.error(where, key_path, printable(path, 200) + " " + wrong, hint);
  return nullptr;
}

workloads::ConversationOpener open_conversations(const std::string& path,
                                                 const SourceLocation& where,
                                                 const std::string& key_path,
                                                 Diagnostics& diagnostics) {
  if (open(path, where, key_path, diagnostics) == nullptr) return {};
  return [path]() {
    return workloads::make_sharegpt_reader(std::make_unique<std::ifstream>(path, std::ios::binary),
                                           path);
  };
}

workloads::ConversationOpener open_prompts(const std::string& path, const SourceLocation& where,
                                           const std::string& key_path, Diagnostics& diagnostics) {
  if (open(path, where, key_path, diagnostics) == nullptr) return {};
  return [path]() {
    return workloads::make_prompt_reader(std::make_unique<std::ifstream>(path, std::ios::binary),
                                         path);
  };
}

}  // namespace routesim::tools
