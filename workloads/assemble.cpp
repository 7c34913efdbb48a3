#include "workloads/assemble.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace routesim::workloads {

std::uint64_t template_preamble(std::uint64_t seed) {
  return content_id(seed, ContentKind::kChatTemplate, 0);
}
std::uint64_t template_header(std::uint64_t seed) {
  return content_id(seed, ContentKind::kChatTemplate, 1);
}
std::uint64_t template_reply(std::uint64_t seed) {
  return content_id(seed, ContentKind::kChatTemplate, 2);
}

std::int64_t scaled_tokens(std::int64_t tokens, double scale) {
  return static_cast<std::int64_t>(std::floor(static_cast<double>(tokens) * scale + 0.5));
}

PromptAssembler::PromptAssembler(const WorkloadOptions& options, bool chat)
    : preamble_(template_preamble(options.seed)),
      header_(template_header(options.seed)),
      reply_(template_reply(options.seed)) {
  if (chat) template_ = options.chat_template;
}

std::shared_ptr<const Prompt> PromptAssembler::single(const std::vector<Segment>& parts,
                                                      std::uint64_t id, bool reusable) const {
  PromptBuilder builder;
  builder.reserve(parts.size() + (template_ == ChatTemplate{} ? 0 : 3));
  builder.append(preamble_, template_.preamble_tokens);
  builder.append(header_, template_.message_tokens);
  builder.preamble_is_done();
  builder.append(parts);
  builder.append(reply_, template_.reply_tokens);
  return std::move(builder).build(id, reusable);
}

std::shared_ptr<const Prompt> PromptAssembler::messages(const std::vector<Segment>& texts,
                                                        std::uint64_t id) const {
  PromptBuilder builder;
  builder.append(preamble_, template_.preamble_tokens);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    builder.append(header_, template_.message_tokens);
    if (i == 0) builder.preamble_is_done();
    builder.append(texts[i]);
  }
  builder.append(reply_, template_.reply_tokens);
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

}  // namespace routesim::workloads
