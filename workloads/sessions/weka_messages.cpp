#include "workloads/sessions/weka_messages.h"

#include <algorithm>
#include <utility>

#include "workloads/prompts.h"
#include "workloads/traces/text_scan.h"

namespace routesim::workloads {
namespace {

std::int64_t total(const std::vector<Segment>& tokens) {
  std::int64_t sum = 0;
  for (const Segment& s : tokens) sum += s.length;
  return sum;
}

/// Keeps the first `tokens`.
void shorten(std::vector<Segment>& segments, std::int64_t tokens) {
  std::size_t kept = 0;
  while (kept < segments.size() && tokens > 0) {
    segments[kept].length = std::min(segments[kept].length, tokens);
    tokens -= segments[kept++].length;
  }
  segments.resize(kept);
}

/// Eight bytes for each block or rest of one: equal bytes, equal tokens.
std::string symbols(const std::vector<Segment>& tokens) {
  std::string text;
  for (const Segment& s : tokens) {
    const std::uint64_t symbol = mix64(mix64(s.content, static_cast<std::uint64_t>(s.offset)),
                                       static_cast<std::uint64_t>(s.length));
    for (int byte = 0; byte < 8; ++byte)
      text.push_back(static_cast<char>((symbol >> (8 * byte)) & 0xffU));
  }
  return text;
}

RecordedMessagePtr message_of(const char* role, const std::vector<Segment>& tokens) {
  auto message = std::make_shared<RecordedMessage>();
  message->role = role;
  message->text = symbols(tokens);
  message->tokens = std::make_shared<const std::vector<Segment>>(tokens);
  return message;
}

std::int64_t blocks_for(std::int64_t tokens, std::int64_t block_size) {
  return (tokens + block_size - 1) / block_size;
}

}  // namespace

WekaMessages::WekaMessages(std::uint64_t trace, std::uint64_t conversation, std::int64_t block_size)
    : trace_(trace), conversation_(conversation), block_size_(block_size) {}

std::vector<Segment> WekaMessages::blocks_of(const WekaRequest& request, std::int64_t from,
                                             std::int64_t to) const {
  std::vector<Segment> tokens;
  for (std::int64_t i = from; i < to; ++i)
    tokens.push_back({.content = content_id(0, ContentKind::kTraceBlock, trace_,
                                            static_cast<std::uint64_t>(
                                                request.hash_ids[static_cast<std::size_t>(i)])),
                      .offset = 0,
                      .length = block_size_});
  return tokens;
}

/// Tokens behind the last whole block with a hash: of this request alone.
void WekaMessages::add_tail(std::vector<Segment>& tokens, std::int64_t length) const {
  if (length > 0)
    tokens.push_back({.content = content_id(0, ContentKind::kUnique, conversation_, turn_),
                      .offset = 0,
                      .length = length});
}

void WekaMessages::append(const char* role, std::int64_t blocks, std::vector<Segment> tokens) {
  messages_.push_back(message_of(role, tokens));
  stretches_.push_back({role, blocks, std::move(tokens)});
}

void WekaMessages::keep(std::size_t stretches) {
  if (stretches >= stretches_.size()) return;
  stretches_.resize(stretches);
  messages_.resize(stretches);
}

void WekaMessages::cut(std::size_t stretch, std::int64_t tokens) {
  Stretch& s = stretches_[stretch];
  if (tokens >= total(s.tokens)) return;
  shorten(s.tokens, tokens);
  messages_[stretch] = message_of(s.role, s.tokens);
}

void WekaMessages::begin(const WekaRequest& request, std::int64_t prefix_tokens) {
  const auto hashes = static_cast<std::int64_t>(request.hash_ids.size());
  const std::int64_t whole = request.input / block_size_;
  const std::int64_t covered = std::min(whole, hashes);
  const std::int64_t prefix = std::min(blocks_for(prefix_tokens, block_size_), hashes);
  if (prefix > 0) append("system", prefix, blocks_of(request, 0, prefix));
  std::vector<Segment> tokens = blocks_of(request, prefix, covered);
  add_tail(tokens, (whole - covered) * block_size_ + request.input % block_size_);
  // Fewer blocks than the prefix make the count negative, with the tool as here.
  append("user", covered - prefix, std::move(tokens));
}

/// Keeps the first `blocks` blocks, and takes the previous prompt's tail off the stretch that ends
/// with them.
void WekaMessages::truncate(std::int64_t blocks, std::int64_t previous_tail) {
  if (blocks <= 0) return keep(0);
  std::int64_t before = 0;
  for (std::size_t i = 0; i < stretches_.size(); ++i) {
    const std::int64_t end = before + stretches_[i].blocks;
    if (end < blocks) {
      before = end;
    } else if (end == blocks) {
      keep(i + 1);
      return cut(i, std::max<std::int64_t>(total(stretches_[i].tokens) - previous_tail, 0));
    } else if (before == blocks) {
      return keep(i);
    } else {
      keep(i + 1);
      stretches_[i].blocks = blocks - before;
      return cut(i, (blocks - before) * block_size_);
    }
  }
}

void WekaMessages::advance(const WekaRequest& request, std::int64_t prefix_tokens) {
  if (previous_ == nullptr) {
    begin(request, prefix_tokens);
  } else {
    const std::vector<std::int64_t>& was = previous_->hash_ids;
    const std::vector<std::int64_t>& is = request.hash_ids;
    const auto differ = std::mismatch(was.begin(), was.end(), is.begin(), is.end());
    const std::int64_t common = differ.second - is.begin();
    const auto hashes = static_cast<std::int64_t>(is.size());
    truncate(common, previous_->input % block_size_);
    const std::int64_t answer =
        std::min(blocks_for(previous_->output, block_size_), hashes - common);
    if (answer > 0) append("assistant", answer, blocks_of(request, common, common + answer));
    std::vector<Segment> rest = blocks_of(request, common + answer, hashes);
    const std::int64_t missing = std::max<std::int64_t>(request.input / block_size_ - hashes, 0);
    add_tail(rest, missing * block_size_ + request.input % block_size_);
    if (!rest.empty()) append("user", hashes - common - answer, std::move(rest));
  }
  previous_ = &request;
  ++turn_;
}

RecordedMessagePtr WekaMessages::last_answer() const {
  for (std::size_t i = messages_.size(); i-- > 0;)
    if (messages_[i]->role == "assistant") return messages_[i];
  return message_of("assistant", {});
}

RecordedMessagePtr WekaMessages::final_answer(std::int64_t tokens) const {
  if (tokens <= 0) return message_of("assistant", {});
  return message_of("assistant",
                    {{.content = content_id(0, ContentKind::kAnswer, conversation_, turn_),
                      .offset = 0,
                      .length = tokens}});
}

}  // namespace routesim::workloads
