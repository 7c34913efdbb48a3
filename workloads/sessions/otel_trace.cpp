#include "workloads/sessions/otel_trace.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "workloads/prompts.h"
#include "workloads/sessions/json_value.h"
#include "workloads/sessions/otel_spans.h"

namespace routesim::workloads {
namespace {

constexpr std::int64_t kCharactersPerToken = 4;
/// Usage that leaves more than this many characters to a token leaves out what a cache held.
constexpr std::int64_t kMostCharactersPerToken = 10;
/// The tool's client asks for that many tokens where it is told none.
constexpr std::int64_t kClientMaxTokens = 30;
constexpr std::int64_t kToolCallTokens = 4096;

std::int64_t estimate(std::int64_t characters) {
  return std::max<std::int64_t>(1, characters / kCharactersPerToken);
}

/// The tokens of texts, each decided once for all sessions.
class TextTokens {
 public:
  /// Null when the text's length is not decided yet.
  MessageTokens find(const std::string& text) const {
    const auto known = known_.find(hash_bytes(text));
    return known == known_.end() ? nullptr : known->second;
  }
  void decide(const std::string& text, std::int64_t tokens) {
    const std::uint64_t hash = hash_bytes(text);
    known_.try_emplace(
        hash,
        std::make_shared<const std::vector<Segment>>(std::vector<Segment>{
            {.content = content_id(0, ContentKind::kText, hash), .offset = 0, .length = tokens}}));
  }

 private:
  std::unordered_map<std::uint64_t, MessageTokens> known_;  // Looked up, never iterated.
};

std::int64_t length_of(const MessageTokens& tokens) { return tokens->front().length; }

/// One session's calls, from what its spans told.
class SessionMaker {
 public:
  SessionMaker(std::vector<SpanCall> spans, const OtelTraceReplay& settings, TextTokens& texts)
      : spans_(std::move(spans)), settings_(settings), texts_(texts) {}

  ReplaySession make(std::string name) && {
    std::vector<RecordedCall> calls;
    for (SpanCall& span : spans_) calls.push_back(std::move(span.call));
    std::vector<GraphNode> nodes = build_call_graph(calls, TextUnit::kCharacters);
    ReplaySession session = {.name = std::move(name), .calls = {}};
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (settings_.disable_output_substitution)
        nodes[i].parts = {{.kind = ReplayPart::Kind::kRecorded,
                           .source = 0,
                           .messages = static_cast<std::uint32_t>(calls[i].messages.size())}};
      session.calls.push_back(make_call(calls[i], spans_[i], std::move(nodes[i]), session));
    }
    return session;
  }

 private:
  static std::int64_t answer_tokens(const RecordedCall& call, const SpanCall& span) {
    if (span.completion_tokens)
      return *span.completion_tokens > 0 ? *span.completion_tokens : kClientMaxTokens;
    return call.answer == nullptr ? 1 : estimate(count_code_points(call.answer->text));
  }

  ReplayCall make_call(const RecordedCall& recorded, const SpanCall& span, GraphNode node,
                       const ReplaySession& session) {
    ReplayCall call;
    call.predecessors = std::move(node.predecessors);
    call.wait = Duration::milliseconds(std::min(node.wait_ms, settings_.max_wait_ms));
    call.parts = std::move(node.parts);
    call.output_tokens = answer_tokens(recorded, span);
    call.max_tokens = call.output_tokens;
    // With tools on offer an answer ends where it ends.
    call.stops_by_itself = !span.tools.empty();
    if (call.stops_by_itself && span.answer_calls && settings_.override_tool_call_max_tokens)
      call.max_tokens = std::max(4 * call.output_tokens, kToolCallTokens);
    decide_texts(recorded, span, call, session);
    std::size_t message = 0;
    for (const ReplayPart& part : call.parts) {
      if (part.kind == ReplayPart::Kind::kRecorded)
        for (std::size_t m = message; m < message + part.messages; ++m)
          call.recorded.push_back(texts_.find(recorded.messages[m]->text));
      message += part.messages;
    }
    if (!span.tools.empty()) call.tools = texts_.find(span.tools)->front();
    if (recorded.answer != nullptr && !recorded.answer->text.empty())
      texts_.decide(recorded.answer->text, call.output_tokens);
    return call;
  }

  /// Gives each new text of the prompt its length: together what the prompt's recorded length
  /// leaves, in proportion to their characters.
  void decide_texts(const RecordedCall& recorded, const SpanCall& span, const ReplayCall& call,
                    const ReplaySession& session) {
    std::vector<std::int64_t> lengths;  // Of the messages; of the new ones 0.
    std::vector<const std::string*> fresh;
    std::int64_t known = 0, characters = 0;
    const auto look_at = [&](const std::string& text) {
      const MessageTokens tokens = texts_.find(text);
      if (tokens != nullptr) return length_of(tokens);
      const bool repeated = std::any_of(fresh.begin(), fresh.end(),
                                        [&text](const std::string* t) { return *t == text; });
      if (!repeated) {
        fresh.push_back(&text);
        characters += count_code_points(text);
      }
      return std::int64_t{0};
    };
    if (!span.tools.empty()) known += look_at(span.tools);
    for (const ReplayPart& part : call.parts) {
      if (part.kind == ReplayPart::Kind::kAnswer) {
        lengths.push_back(session.calls[part.source].output_tokens);
      } else if (part.kind == ReplayPart::Kind::kShared) {
        const std::vector<std::int64_t>& of = lengths_[part.source];
        lengths.assign(of.begin(), of.begin() + part.messages);
      } else {
        for (std::uint32_t m = 0; m < part.messages; ++m)
          lengths.push_back(look_at(recorded.messages[lengths.size()]->text));
      }
    }
    for (const std::int64_t length : lengths) known += length;
    const std::int64_t left = span.prompt_tokens.value_or(0) - known;
    share_out(fresh, characters, left);
    for (std::size_t m = 0; m < lengths.size(); ++m)
      if (lengths[m] == 0) lengths[m] = length_of(texts_.find(recorded.messages[m]->text));
    lengths_.push_back(std::move(lengths));
  }

  void share_out(const std::vector<const std::string*>& fresh, std::int64_t characters,
                 std::int64_t left) {
    const bool usable = left > 0 && left * kMostCharactersPerToken >= characters;
    for (const std::string* text : fresh) {
      const std::int64_t own = count_code_points(*text);
      std::int64_t tokens = estimate(own);
      if (usable) {
        tokens = characters == 0
                     ? 1
                     : std::llround(static_cast<double>(left) * static_cast<double>(own) /
                                    static_cast<double>(characters));
        // What is left goes to the texts that follow, so that nothing is lost by rounding.
        left -= tokens;
        characters -= own;
      }
      texts_.decide(*text, std::max<std::int64_t>(tokens, 1));
    }
  }

  std::vector<SpanCall> spans_;
  const OtelTraceReplay& settings_;
  TextTokens& texts_;
  std::vector<std::vector<std::int64_t>> lengths_;  // Tokens of each call's messages.
};

class OtelReader final : public ReplayReader {
 public:
  explicit OtelReader(const OtelTraceReplay& settings) : settings_(settings) {}

  void read(std::istream& in, const std::string& file, bool lines, Diagnostics& out) override {
    JsonScanner json(in);
    while (json.ok() && !json.at_end()) {
      const SourceLocation where = {file, static_cast<int>(json.line()), 0};
      JsonValue document;
      if (read_value(json, document)) {
        take_document(document, where, out);
      } else {
        complain({file, static_cast<int>(json.line()), json.column()}, json.error(), {}, out);
        if (!lines || !settings_.skip_invalid_files) return;
        json.next_line();
      }
    }
  }
  ReplayCorpus take() override { return std::move(corpus_); }

 private:
  void complain(const SourceLocation& where, const std::string& what, const std::string& hint,
                Diagnostics& out) const {
    if (settings_.skip_invalid_files)
      out.warning(where, {}, what + ": left out", hint);
    else
      out.error(where, {}, what, hint);
  }

  void take_document(const JsonValue& document, const SourceLocation& where, Diagnostics& out) {
    const JsonValue* spans = document.find("spans");
    if (spans == nullptr || !spans->is_array()) {
      const char* hint = "each record is an object with a list `spans`";
      if (document.find("resourceSpans") != nullptr)
        hint = "an OTLP export is not read: the tool wants one list `spans`, attributes as a map";
      else if (document.find("request") != nullptr)
        hint = "captures of HTTP calls are not read: give OpenTelemetry spans";
      return complain(where, "a record without a list `spans`", hint, out);
    }
    std::string name(document.string("session_id"));
    if (name.empty()) name = document.string("trace_id");
    std::string problem;
    std::vector<SpanCall> calls = calls_of_spans(*spans, settings_.include_errors, problem);
    if (!problem.empty())
      out.warning(where, {},
                  "session " + (name.empty() ? "" : name + " ") + "is left out: " + problem);
    else
      corpus_.sessions.push_back(
          SessionMaker(std::move(calls), settings_, texts_).make(std::move(name)));
  }

  OtelTraceReplay settings_;
  TextTokens texts_;
  ReplayCorpus corpus_;
};

}  // namespace

std::unique_ptr<ReplayReader> make_otel_reader(const OtelTraceReplay& settings) {
  return std::make_unique<OtelReader>(settings);
}

}  // namespace routesim::workloads
