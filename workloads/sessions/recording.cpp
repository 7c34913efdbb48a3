#include "workloads/sessions/recording.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workloads/prompts.h"
#include "workloads/traces/text_scan.h"

namespace routesim::workloads {
namespace {

constexpr std::int64_t kCharactersPerEstimatedToken = 4;
/// A length that leaves more than this many characters to a token leaves out what a cache held.
constexpr std::int64_t kMostCharactersPerToken = 10;

std::int64_t estimate(std::int64_t characters) {
  return std::max<std::int64_t>(1, characters / kCharactersPerEstimatedToken);
}

std::int64_t recorded_answer(const RecordedCall& call) {
  if (call.output_tokens) return *call.output_tokens > 0 ? *call.output_tokens : kClientMaxTokens;
  return call.answer == nullptr ? 1 : estimate(count_code_points(call.answer->text));
}

std::int64_t length_of(const MessageTokens& tokens) { return tokens->front().length; }

}  // namespace

/// Null when the text's length is not decided yet.
MessageTokens SessionMaker::find(const std::string& text) const {
  const auto known = known_.find(hash_bytes(text));
  return known == known_.end() ? nullptr : known->second;
}

/// Decides the length of a text, once for all sessions.
void SessionMaker::decide(const std::string& text, std::int64_t tokens) {
  const std::uint64_t hash = hash_bytes(text);
  known_.try_emplace(
      hash,
      std::make_shared<const std::vector<Segment>>(std::vector<Segment>{
          {.content = content_id(0, ContentKind::kText, hash), .offset = 0, .length = tokens}}));
}

void SessionMaker::add(Recording recording) {
  if (recording.calls.empty()) return;
  std::vector<CallNode> nodes = build_call_graph(recording.calls, recording.unit);
  Session session = {.name = std::move(recording.name), .calls = {}};
  Lengths lengths;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const RecordedCall& recorded = recording.calls[i];
    if (rules_.repeats_answers)
      nodes[i].parts = {{.messages = static_cast<std::uint32_t>(recorded.messages.size())}};
    SessionCall call = make_call(recorded, std::move(nodes[i]));
    if (recording.unit == TextUnit::kCharacters) decide_texts(recorded, call, session, lengths);
    std::size_t message = 0;
    for (const PromptPart& part : call.parts) {
      if (part.kind == PromptPart::Kind::kRecorded)
        for (std::size_t m = message; m < message + part.messages; ++m) {
          const RecordedMessage& said = *recorded.messages[m];
          call.recorded.push_back(said.tokens != nullptr ? said.tokens : find(said.text));
        }
      message += part.messages;
    }
    if (!recorded.tools.empty()) call.tools = find(recorded.tools)->front();
    if (recorded.answer != nullptr && !recorded.answer->text.empty() &&
        recording.unit == TextUnit::kCharacters)
      decide(recorded.answer->text, call.output_tokens);
    session.calls.push_back(std::move(call));
  }
  sessions_.push_back(std::move(session));
}

SessionCall SessionMaker::make_call(const RecordedCall& recorded, CallNode node) {
  SessionCall call;
  call.predecessors = std::move(node.predecessors);
  call.wait = Duration::milliseconds(std::min(node.wait_ms, rules_.max_wait_ms));
  call.parts = std::move(node.parts);
  call.output_tokens = call.max_tokens = recorded_answer(recorded);
  // With tools on offer an answer ends where it ends.
  call.stops_by_itself = !recorded.tools.empty();
  if (call.stops_by_itself && recorded.answer_calls_tools && rules_.tool_calls_may_be_long)
    call.max_tokens = std::max(4 * call.output_tokens, kToolCallTokens);
  return call;
}

/// Gives each new text of the prompt its length: together what the prompt's recorded length
/// leaves, in proportion to their characters.
void SessionMaker::decide_texts(const RecordedCall& recorded, const SessionCall& call,
                                const Session& session, Lengths& all) {
  std::vector<std::int64_t> lengths;  // One per message; 0 for new ones.
  std::vector<const std::string*> fresh;
  std::int64_t known = 0, characters = 0;
  const auto look_at = [&](const std::string& text) {
    const MessageTokens tokens = find(text);
    if (tokens != nullptr) return length_of(tokens);
    const bool repeated = std::any_of(fresh.begin(), fresh.end(),
                                      [&text](const std::string* t) { return *t == text; });
    if (!repeated) {
      fresh.push_back(&text);
      characters += count_code_points(text);
    }
    return std::int64_t{0};
  };
  if (!recorded.tools.empty()) known += look_at(recorded.tools);
  for (const PromptPart& part : call.parts) {
    if (part.kind == PromptPart::Kind::kAnswer) {
      lengths.push_back(session.calls[part.source].output_tokens);
    } else if (part.kind == PromptPart::Kind::kShared) {
      const std::vector<std::int64_t>& of = all[part.source];
      lengths.assign(of.begin(), of.begin() + part.messages);
    } else {
      for (std::uint32_t m = 0; m < part.messages; ++m)
        lengths.push_back(look_at(recorded.messages[lengths.size()]->text));
    }
  }
  for (const std::int64_t length : lengths) known += length;
  share_out(fresh, characters, recorded.prompt_tokens.value_or(0) - known);
  for (std::size_t m = 0; m < lengths.size(); ++m)
    if (lengths[m] == 0) lengths[m] = length_of(find(recorded.messages[m]->text));
  all.push_back(std::move(lengths));
}

void SessionMaker::share_out(const std::vector<const std::string*>& fresh, std::int64_t characters,
                             std::int64_t left) {
  const bool usable = left > 0 && left * kMostCharactersPerToken >= characters;
  for (const std::string* text : fresh) {
    const std::int64_t own = count_code_points(*text);
    std::int64_t tokens = estimate(own);
    if (usable) {
      tokens = characters == 0 ? 1
                               : std::llround(static_cast<double>(left) * static_cast<double>(own) /
                                              static_cast<double>(characters));
      // The rest goes to the texts that follow, so that rounding loses nothing.
      left -= tokens;
      characters -= own;
    }
    decide(*text, std::max<std::int64_t>(tokens, 1));
  }
}

}  // namespace routesim::workloads
