#include <charconv>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/ingest/traces/log_readers.h"
#include "workloads/traces/jsonl_trace.h"
#include "workloads/traces/line_trace_reader.h"
#include "workloads/traces/text_blocks.h"

namespace routesim::tools {
namespace {

using workloads::JsonScanner;
using workloads::LineReader;
using workloads::MissingLengths;
using workloads::parse_date_time_ns;
using workloads::parse_integer;
using workloads::read_prompt_text;
using workloads::TextBlocks;
using workloads::TraceReader;
using workloads::TraceReadOptions;
using workloads::TraceRecord;

constexpr std::int64_t kDayNs = 86'400'000'000'000;

/// Finds `name` in `text` and moves behind it. Whether it is there.
bool move_behind(std::string_view& text, std::string_view name) {
  const std::size_t at = text.find(name);
  if (at == std::string_view::npos) return false;
  text.remove_prefix(at + name.size());
  return true;
}

/// Reads a text as Python's repr writes it and moves behind it. False when there is none.
bool read_repr(std::string_view& text, std::string& out) {
  out.clear();
  if (text.empty() || (text[0] != '\'' && text[0] != '"')) return false;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == text[0]) {
      text.remove_prefix(i + 1);
      return true;
    }
    if (text[i] != '\\' || ++i == text.size()) {
      out += text[i < text.size() ? i : i - 1];
      continue;
    }
    const std::size_t digits = text[i] == 'x'   ? 2
                               : text[i] == 'u' ? 4
                               : text[i] == 'U' ? 8
                                                : std::size_t{0};
    const std::string_view hex = text.substr(i + 1, digits);
    std::uint32_t code = 0;
    if (digits == 0)
      out += text[i] == 'n' ? '\n' : text[i] == 't' ? '\t' : text[i] == 'r' ? '\r' : text[i];
    else if (std::from_chars(hex.data(), hex.data() + hex.size(), code, 16).ec == std::errc{})
      workloads::append_utf8(out, code);
    i += hex.size();
  }
  return false;
}

/// A text of the log: its token ids where they stand there.
struct LoggedText {
  bool has_text = false, has_ids = false, is_cut = false;
  std::string text{};
  TextBlocks blocks{};  ///< Of the ids, or else of the text.
};

/// Reads `REPR, NAME: [1, 2, 3]`, where each of the two may be None or absent.
LoggedText read_text(std::string_view rest, std::string_view ids_name) {
  LoggedText out;
  out.has_text = read_repr(rest, out.text);
  if (move_behind(rest, ids_name) && rest.starts_with('[')) {
    const std::string_view list = rest.substr(0, rest.find(']') + 1);
    JsonScanner json(list);
    out.has_ids = read_prompt_text(json, list, out.blocks);
  }
  // --max-log-len N leaves N characters and N token ids.
  constexpr std::int64_t kUnlikely = 16;
  const std::int64_t n = out.blocks.tokens();
  out.is_cut =
      out.has_ids && out.has_text && n >= kUnlikely && workloads::count_code_points(out.text) == n;
  if (!out.has_ids) out.blocks.add(out.text);
  return out;
}

class VllmLogReader final : public SortedTraceReader {
 public:
  VllmLogReader(std::unique_ptr<std::istream> in, std::string file, const TraceReadOptions& options)
      : SortedTraceReader(std::move(file), options.from_first),
        in_(std::move(in)),
        missing_(options.missing) {}

 private:
  struct Request {
    std::string id;
    TraceRecord record{};
    std::int64_t input = -1;   ///< -1: not in the log.
    std::int64_t output = -1;  ///< The same; a stream's deltas add up.
    bool has_deltas = false;
    std::string max_tokens{};
  };
  struct Counts {
    std::int64_t pooling = 0, adapters = 0, estimated = 0, no_input = 0, no_output = 0;
  };

  bool collect(std::vector<TraceRecord>& records) override {
    constexpr std::string_view kReceived = "] Received request ", kDetails = "] Request ",
                               kAnswer = "] Generated response ";
    LineReader lines(*in_);
    for (std::string line; lines.next(line);) {
      line_ = lines.line_number();
      const std::size_t at =
          std::min({line.find(kReceived), line.find(kDetails), line.find(kAnswer)});
      if (at == std::string::npos) continue;
      std::string_view rest = std::string_view(line).substr(at);
      column_ = static_cast<int>(at) + 3;
      if (move_behind(rest, kReceived)) {
        if (!read_request(std::string_view(line).substr(0, at), rest)) return false;
      } else if (rest.starts_with(kDetails)) {
        rest.remove_prefix(kDetails.size());
        read_details(rest);
      } else if (move_behind(rest, kAnswer)) {
        read_answer(rest);
      }
    }
    if (lines.too_long()) return fail("the line is longer than 16 MiB", {});
    return finish(records);
  }

  bool fail(std::string message, std::string hint) {
    diagnostics_.error({file_, static_cast<int>(line_), column_}, "", std::move(message),
                       std::move(hint));
    return false;
  }

  void note(const std::string& name, Fate fate, std::string_view why = {}) {
    if (noted_.insert(name).second)
      diagnostics_.key(
          key_use({file_, static_cast<int>(line_), column_}, "trace", name, fate, why));
  }

  /// `ID: [prompt: REPR, ]params: …, [prompt_token_ids: …, ]lora_request: ….`
  bool read_request(std::string_view prefix, std::string_view rest) {
    Request request{.id = std::string(rest.substr(0, rest.find(": ")))};
    if (rest.find("params: PoolingParams(") != std::string_view::npos) {
      ++counts_.pooling;
      return true;
    }
    const auto time = time_of(prefix);
    if (!time)
      return fail("the line has no time", "vLLM writes INFO 02-13 11:33:33 in front of it");
    request.record.at = Duration::nanoseconds(*time);
    request.record.line = line_;
    std::string_view prompt = rest;
    if (move_behind(prompt, ": prompt: ")) set_prompt(request, prompt);
    if (const auto details = prompts_.find(request.id); details != prompts_.end()) {
      const Request& known = details->second;
      request.input = known.input;
      request.record.hash_ids = known.record.hash_ids;
      request.record.id_tokens = known.record.id_tokens;
      prompts_.erase(details);
    }
    std::string_view params = rest;
    if (move_behind(params, " max_tokens=")) {
      request.max_tokens = params.substr(0, params.find_first_of(",)"));
      note("params", Fate::kNoEffect, "answers have the length that was generated");
    }
    const std::size_t adapter = rest.rfind("lora_request: LoRARequest(");
    if (adapter != std::string_view::npos) {
      ++counts_.adapters;
      note("lora_request", Fate::kNotModelled, "requests of a log use the base model");
    }
    by_id_[request.id] = requests_.size();
    requests_.push_back(std::move(request));
    return true;
  }

  /// `ID details: prompt: REPR, prompt_token_ids: …`, in front of the request.
  void read_details(std::string_view rest) {
    Request request{.id = std::string(rest.substr(0, rest.find(' ')))};
    if (!move_behind(rest, " details: prompt: ")) return;
    set_prompt(request, rest);
    prompts_[request.id] = std::move(request);
  }

  void set_prompt(Request& request, std::string_view rest) {
    const LoggedText prompt = read_text(rest, ", prompt_token_ids: ");
    if (prompt.is_cut || (!prompt.has_ids && prompt.text.empty())) return;
    counts_.estimated += prompt.has_ids ? 0 : 1;
    note(prompt.has_ids ? "prompt_token_ids" : "prompt", Fate::kUsed);
    request.input = prompt.blocks.tokens();
    request.record.hash_ids = prompt.blocks.ids();
    request.record.id_tokens = workloads::kTextBlockTokens;
  }

  /// `ID[ (streaming delta)| (streaming complete)]: output: REPR[, output_token_ids: …], …`
  void read_answer(std::string_view rest) {
    const std::string id(rest.substr(0, rest.find_first_of(" :")));
    auto found = by_id_.find(id);
    // The completions API numbers the prompts of a request.
    if (found == by_id_.end()) found = by_id_.find(id + "-0");
    if (found == by_id_.end()) return;
    Request& request = requests_[found->second];
    const bool is_delta = rest.substr(id.size()).starts_with(" (streaming delta)");
    const bool is_whole_stream = rest.substr(id.size()).starts_with(" (streaming complete)");
    if (!move_behind(rest, ": output: ") || (is_whole_stream && request.has_deltas)) return;
    const LoggedText answer = read_text(rest, ", output_token_ids: ");
    if (answer.is_cut && !is_delta) return;
    std::int64_t tokens = answer.blocks.tokens();
    std::string_view count = answer.text;
    if (is_whole_stream && count.starts_with("<streaming_complete: ")) {
      count.remove_prefix(count.find(' ') + 1);
      tokens = parse_integer(count.substr(0, count.find(' '))).value_or(tokens);
    } else if (!answer.has_ids) {
      // Deltas without ids tell nothing: their text comes whole at the end.
      if (is_delta) return;
      ++counts_.estimated;
    }
    if (tokens < 0 || tokens > workloads::kMaxTokens) return;
    note(answer.has_ids ? "output_token_ids" : "output", Fate::kUsed);
    request.has_deltas = request.has_deltas || is_delta;
    request.output = std::max<std::int64_t>(request.output, 0) + tokens;
  }

  /// Nanoseconds of the line: a stamp that a container runtime put in front, or vLLM's own.
  std::optional<std::int64_t> time_of(std::string_view prefix) {
    if (const auto stamp = parse_date_time_ns(prefix.substr(0, prefix.find(' ')))) return stamp;
    std::string word, before;
    for (std::string_view rest = prefix; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      word = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (const std::size_t comma = word.find(','); comma != std::string::npos) word[comma] = '.';
      if (const auto full = parse_date_time_ns(before + ' ' + word)) return full;
      if (const auto in_year = parse_date_time_ns("2024-" + before + ' ' + word))
        return with_year(*in_year);
      before = word;
    }
    return std::nullopt;
  }

  /// Times without a year: the log goes on in the next one where it jumps back by half a year, and
  /// a year without a line of 29 February has no such day.
  std::int64_t with_year(std::int64_t in_2024) {
    constexpr std::int64_t kLeapDay = 1'709'164'800'000'000'000;
    if (last_ != 0 && in_2024 < last_ - 180 * kDayNs) shift_ += 366 * kDayNs;
    if (last_ != 0 && last_ < kLeapDay && in_2024 >= kLeapDay + kDayNs) shift_ -= kDayNs;
    last_ = in_2024;
    return in_2024 + shift_;
  }

  bool finish(std::vector<TraceRecord>& records) {
    for (Request& request : requests_) {
      TraceRecord& record = request.record;
      line_ = record.line;
      column_ = 1;
      if (request.input < 0) ++counts_.no_input;
      if (request.output < 0) ++counts_.no_output;
      record.input_tokens = request.input < 0 ? missing_.input_tokens : request.input;
      record.output_tokens = request.output < 0 ? missing_.output_tokens : request.output;
      if (record.input_tokens <= 0 && request.input < 0)
        return fail("the prompt of " + request.id + " is not in the log, or cut",
                    "record with VLLM_LOGGING_LEVEL=DEBUG and without --max-log-len, or say how "
                    "long such prompts are (missing.input_tokens)");
      if (record.output_tokens <= 0 && request.output < 0)
        return fail("the answer of " + request.id + " is not in the log, or cut (max_tokens was " +
                        request.max_tokens + ")",
                    "record with --enable-log-outputs and without --max-log-len, or say how long "
                    "such answers are (missing.output_tokens)");
      records.push_back(std::move(record));
    }
    if (requests_.empty()) {
      column_ = 1;
      return fail("no line has a request",
                  "start vllm serve with --enable-log-requests --enable-log-outputs");
    }
    warn();
    return true;
  }

  void warn() {
    const std::string all = std::to_string(requests_.size());
    const auto say = [&](std::int64_t n, const std::string& text) {
      if (n > 0) diagnostics_.warning({.file = file_}, "", std::to_string(n) + text);
    };
    say(counts_.no_input, " of " + all + " prompts are not in the log: each is new and has " +
                              std::to_string(missing_.input_tokens) + " tokens");
    say(counts_.no_output, " of " + all + " answers are not in the log: each has " +
                               std::to_string(missing_.output_tokens) + " tokens");
    say(counts_.estimated,
        " texts have no token ids: their lengths are estimated, 4.3 characters to a token");
    say(counts_.pooling, " requests without answers, such as embeddings, are left out");
    say(counts_.adapters, " requests ask for LoRA adapters, which are not read");
  }

  std::unique_ptr<std::istream> in_;
  MissingLengths missing_;
  std::int64_t line_ = 0;
  int column_ = 1;
  std::int64_t last_ = 0, shift_ = 0;  ///< Of times without a year, in nanoseconds.
  std::vector<Request> requests_;
  std::unordered_map<std::string, std::size_t> by_id_;
  std::unordered_map<std::string, Request> prompts_;  ///< Whose request line is to come.
  std::set<std::string> noted_;
  Counts counts_;
};

}  // namespace

std::unique_ptr<TraceReader> make_vllm_log_reader(std::unique_ptr<std::istream> in,
                                                  std::string file,
                                                  const TraceReadOptions& options) {
  return std::make_unique<VllmLogReader>(std::move(in), std::move(file), options);
}

}  // namespace routesim::tools
