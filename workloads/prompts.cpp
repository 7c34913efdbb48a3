#include "workloads/prompts.h"

#include <utility>

#include "base/check.h"

namespace routesim::workloads {

void describe(Describer& d, ChatTemplate& t) {
  const IntRange tokens{0, 1'000'000};
  field(d, {"preamble_tokens", "Tokens once at the start of every prompt (begin-of-text …)."},
        t.preamble_tokens, tokens);
  field(d, {"message_tokens", "Tokens before each message's text (role header, separators)."},
        t.message_tokens, tokens);
  field(d, {"reply_tokens", "Tokens at the end, the header of the answer to come."}, t.reply_tokens,
        tokens);
}

namespace {

/// The token of a prompt that has none.
Segment stand_in() {
  return {.content = content_id(0, ContentKind::kChatTemplate, ~0ULL), .offset = 0, .length = 1};
}

}  // namespace

bool is_stand_in(const Prompt& prompt) {
  return prompt.tokens == 1 && prompt.segments.front().content == stand_in().content;
}

PromptBuilder::PromptBuilder(const Prompt& start)
    : segments_(start.segments), tokens_(start.tokens), preamble_tokens_(start.preamble_tokens) {}

PromptBuilder& PromptBuilder::append(Segment segment) {
  ROUTESIM_DCHECK(segment.length >= 0 && segment.offset >= 0, "segment out of range");
  if (segment.length == 0) return *this;
  tokens_ += segment.length;
  if (!segments_.empty()) {
    Segment& last = segments_.back();
    if (last.content == segment.content && last.offset + last.length == segment.offset) {
      last.length += segment.length;
      return *this;
    }
  }
  segments_.push_back(segment);
  return *this;
}

PromptBuilder& PromptBuilder::append(const std::vector<Segment>& segments) {
  for (const Segment& segment : segments) append(segment);
  return *this;
}

std::shared_ptr<const Prompt> PromptBuilder::build(std::uint64_t id, bool reusable) && {
  if (tokens_ == 0) append(stand_in());
  auto prompt = std::make_shared<Prompt>();
  prompt->id = id;
  prompt->segments = std::move(segments_);
  prompt->tokens = tokens_;
  prompt->reusable = reusable;
  prompt->preamble_tokens = preamble_tokens_;
  return prompt;
}

}  // namespace routesim::workloads
