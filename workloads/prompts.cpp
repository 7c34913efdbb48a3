#include "workloads/prompts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace routesim::workloads {

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

std::vector<Segment> with_answer(const Request& request) {
  return PromptBuilder(*request.prompt)
      .append(request.output_content, request.output_tokens)
      .segments();
}

ChatFrame::ChatFrame(const ChatTemplate& tokens, std::uint64_t seed)
    : tokens_(tokens),
      preamble_(content_id(seed, ContentKind::kChatTemplate, 0)),
      header_(content_id(seed, ContentKind::kChatTemplate, 1)),
      reply_(content_id(seed, ContentKind::kChatTemplate, 2)) {}

std::int64_t scaled_tokens(std::int64_t tokens, double scale) {
  return static_cast<std::int64_t>(std::floor(static_cast<double>(tokens) * scale + 0.5));
}

PromptAssembler::PromptAssembler(const WorkloadOptions& options, bool chat)
    : frame_(chat ? options.chat_template : ChatTemplate{}, options.seed) {}

std::shared_ptr<const Prompt> PromptAssembler::single(const std::vector<Segment>& parts,
                                                      std::uint64_t id, bool reusable) const {
  PromptBuilder builder;
  builder.reserve(parts.size() + (frame_.tokens() == ChatTemplate{} ? 0 : 3));
  frame_.preamble(builder);
  frame_.header(builder);
  builder.preamble_is_done();
  builder.append(parts);
  frame_.reply(builder);
  return std::move(builder).build(id, reusable);
}

std::shared_ptr<const Prompt> PromptAssembler::messages(const std::vector<Segment>& texts,
                                                        std::uint64_t id) const {
  PromptBuilder builder;
  frame_.preamble(builder);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    frame_.header(builder);
    if (i == 0) builder.preamble_is_done();
    builder.append(texts[i]);
  }
  frame_.reply(builder);
  return std::move(builder).build(id);
}

AnswerLength::AnswerLength(const std::optional<Distribution>& natural, bool ignore_eos,
                           std::uint64_t seed)
    : seed_(seed) {
  if (!ignore_eos && natural) natural_.emplace(*natural);
}

std::int64_t AnswerLength::operator()(std::int64_t max_tokens, std::uint64_t entity) const {
  if (!natural_) return max_tokens;
  // A seed of its own keeps these draws apart from those of prompt lengths.
  RandomStream random(mix64(seed_, 0x616e73776572ULL), Stream::kLengths, entity);
  return std::clamp<std::int64_t>(natural_->sample(random), 1, max_tokens);
}

void StagedAnswers::fill(std::size_t stage, std::int64_t index, std::int64_t max_tokens,
                         Request& request) const {
  request.max_tokens = std::max<std::int64_t>(max_tokens, 1);
  request.output_tokens = length_(request.max_tokens, entity(stage, index));
  // Answers are never the same text twice: tools send no temperature, so servers sample.
  request.output_content =
      content_id(seed_, ContentKind::kAnswer, stage, static_cast<std::uint64_t>(index));
}

std::int64_t tokens_in(const std::vector<Segment>& segments) {
  std::int64_t sum = 0;
  for (const Segment& s : segments) sum += s.length;
  return sum;
}

void shorten(std::vector<Segment>& segments, std::int64_t tokens) {
  std::size_t kept = 0;
  while (kept < segments.size() && tokens > 0) {
    segments[kept].length = std::min(segments[kept].length, tokens);
    tokens -= segments[kept++].length;
  }
  segments.resize(kept);
}

}  // namespace routesim::workloads
