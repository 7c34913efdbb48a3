#include "workloads/vllm_bench/vllm_bench_data.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "workloads/assemble.h"
#include "workloads/traces/trace_prompts.h"

namespace routesim::workloads::vllm_bench {
namespace {

Segment unique_text(std::uint64_t seed, std::int64_t i, std::int64_t length) {
  return {.content = content_id(seed, ContentKind::kUnique, static_cast<std::uint64_t>(i)),
          .length = length};
}

Segment shared_text(std::uint64_t seed, std::uint64_t which, std::int64_t length) {
  return {.content = content_id(seed, ContentKind::kSystemPrompt, which), .length = length};
}

/// prefix_repetition: num_prompts div num_prefixes prompts per prefix, shuffled once.
class PrefixRepetitionSamples final : public SampleSource {
 public:
  PrefixRepetitionSamples(const Config& c, std::uint64_t seed, double scale)
      : seed_(seed),
        per_prefix_(c.num_prompts / c.prefix_repetition.num_prefixes),
        prefix_(scaled_tokens(c.prefix_repetition.prefix_len, scale)),
        suffix_(scaled_tokens(c.prefix_repetition.suffix_len, scale)),
        output_(c.output_len.value_or(c.prefix_repetition.output_len)) {
    order_.resize(static_cast<std::size_t>(per_prefix_ * c.prefix_repetition.num_prefixes));
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<std::uint32_t>(i);
    RandomStream random(seed, Stream::kPromptOrder);
    if (!c.disable_shuffle) random.shuffle(order_.begin(), order_.end());
  }
  std::int64_t size() const override { return static_cast<std::int64_t>(order_.size()); }
  Sample make(std::int64_t i) override {
    const std::uint32_t n = order_[static_cast<std::size_t>(i)];
    const std::uint64_t prefix = n / static_cast<std::uint64_t>(per_prefix_);
    return {.text = {shared_text(seed_, prefix, prefix_), unique_text(seed_, n, suffix_)},
            .output = output_};
  }

 private:
  std::uint64_t seed_;
  std::int64_t per_prefix_, prefix_, suffix_, output_;
  std::vector<std::uint32_t> order_;  // Position sent -> position generated (prefix-major).
};

/// An integer range [floor(len (1 - r)), ceil(len (1 + r))].
struct LengthRange {
  LengthRange(std::int64_t length, double ratio)
      : low(static_cast<std::int64_t>(std::floor(static_cast<double>(length) * (1 - ratio)))),
        high(static_cast<std::int64_t>(std::ceil(static_cast<double>(length) * (1 + ratio)))) {}
  std::int64_t draw(RandomStream& random) const {
    return low +
           static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  std::int64_t low, high;
};

class RandomSamples final : public SampleSource {
 public:
  RandomSamples(const Config& c, std::uint64_t seed, double scale)
      : seed_(seed),
        size_(c.num_prompts),
        scale_(scale),
        prefix_(scaled_tokens(c.random.prefix_len, scale)),
        input_(c.input_len.value_or(c.random.input_len),
               c.random.input_range_ratio.value_or(c.random.range_ratio)),
        output_(c.output_len.value_or(c.random.output_len),
                c.random.output_range_ratio.value_or(c.random.range_ratio)) {}
  std::int64_t size() const override { return size_; }
  Sample make(std::int64_t i) override {
    RandomStream lengths(seed_, Stream::kLengths, static_cast<std::uint64_t>(i));
    const std::int64_t input = scaled_tokens(input_.draw(lengths), scale_);
    return {.text = {shared_text(seed_, 0, prefix_), unique_text(seed_, i, input)},
            .output = output_.draw(lengths)};
  }

 private:
  std::uint64_t seed_;
  std::int64_t size_;
  double scale_;
  std::int64_t prefix_;
  LengthRange input_, output_;
};

class SonnetSamples final : public SampleSource {
 public:
  SonnetSamples(const Config& c, std::uint64_t seed)
      : seed_(seed),
        size_(c.num_prompts),
        prefix_(c.sonnet.prefix_len),
        rest_(c.input_len.value_or(c.sonnet.input_len) - c.sonnet.prefix_len),
        output_(c.output_len.value_or(c.sonnet.output_len)) {}
  std::int64_t size() const override { return size_; }
  Sample make(std::int64_t i) override {
    return {.text = {shared_text(seed_, 0, prefix_), unique_text(seed_, i, rest_)},
            .output = output_};
  }

 private:
  std::uint64_t seed_;
  std::int64_t size_, prefix_, rest_, output_;
};

/// Samples that stand in memory: what is left of a data set after filtering and choosing.
class ListedSamples final : public SampleSource {
 public:
  struct Item {
    std::uint64_t content = 0;
    std::int64_t input = 0, output = 0;
  };
  explicit ListedSamples(std::vector<Item> items) : items_(std::move(items)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(items_.size()); }
  Sample make(std::int64_t i) override {
    const Item& item = items_[static_cast<std::size_t>(i)];
    return {.text = {{.content = item.content, .length = item.input}}, .output = item.output};
  }

 private:
  std::vector<Item> items_;
};

/// Cuts to num_prompts, or repeats random items until there are as many.
void fit(std::vector<ListedSamples::Item>& items, std::int64_t wanted, bool oversample,
         RandomStream& random) {
  const auto n = static_cast<std::size_t>(wanted);
  const std::size_t had = items.size();
  if (had >= n) {
    items.resize(n);
  } else if (oversample) {
    items.reserve(n);
    while (items.size() < n) items.push_back(items[random.below(had)]);
  }
}

void take_over(const Diagnostics& from, Diagnostics& to) {
  for (const Diagnostic& d : from.items()) to.add(d);
}

std::unique_ptr<SampleSource> sharegpt_samples(const Config& c, std::uint64_t seed,
                                               const LoadInputs& inputs, Diagnostics& out) {
  const auto reader = inputs.conversations();
  std::vector<ListedSamples::Item> items;
  Conversation conversation;
  const std::optional<std::int64_t> fixed =
      c.sharegpt.output_len ? c.sharegpt.output_len : c.output_len;
  while (reader->next(conversation)) {
    if (conversation.messages.size() < 2) continue;
    const std::int64_t input = conversation.messages[0].tokens;
    const std::int64_t output = fixed.value_or(conversation.messages[1].tokens);
    // The tool's is_valid_sequence: too short, or too long for its default limits.
    if (input < 4 || (!fixed && output < 4) || input > 1024 || input + output > 2048) continue;
    items.push_back(
        {content_id(0, ContentKind::kText, conversation.messages[0].text), input, output});
  }
  take_over(reader->diagnostics(), out);
  if (items.empty() && !out.has_errors())
    out.error({}, "sharegpt", "the file has no conversation the tool would use");
  if (out.has_errors()) return nullptr;
  RandomStream random(seed, Stream::kPromptOrder);
  if (!c.disable_shuffle) random.shuffle(items.begin(), items.end());
  fit(items, c.num_prompts, c.sharegpt.oversample, random);
  return std::make_unique<ListedSamples>(std::move(items));
}

std::unique_ptr<SampleSource> custom_samples(const Config& c, std::uint64_t seed,
                                             const LoadInputs& inputs, Diagnostics& out) {
  const auto reader = inputs.conversations();
  const std::int64_t fixed = c.output_len.value_or(c.custom.output_len);
  std::vector<ListedSamples::Item> items;
  Conversation row;
  while (reader->next(row)) {
    if (row.messages.empty()) continue;
    const bool has_output = row.messages.size() > 1 && row.messages[1].tokens > 0;
    if (fixed < 0 && !has_output) {
      out.error({}, "custom.output_len",
                "row " + std::to_string(row.record) + " has no output_tokens",
                "give an output_len");
      return nullptr;
    }
    items.push_back({content_id(0, ContentKind::kText, row.messages[0].text),
                     row.messages[0].tokens, fixed < 0 ? row.messages[1].tokens : fixed});
  }
  take_over(reader->diagnostics(), out);
  if (items.empty() && !out.has_errors()) out.error({}, "custom", "the file has no rows");
  if (out.has_errors()) return nullptr;
  RandomStream random(seed, Stream::kPromptOrder);
  if (!c.disable_shuffle) random.shuffle(items.begin(), items.end());
  fit(items, c.num_prompts, true, random);
  return std::make_unique<ListedSamples>(std::move(items));
}

/// Only the lengths of BurstGPT's rows are used; the prompts share nothing.
std::unique_ptr<SampleSource> burstgpt_samples(const Config& c, std::uint64_t seed,
                                               const LoadInputs& inputs, Diagnostics& out) {
  const auto reader = inputs.trace();
  std::vector<ListedSamples::Item> items;
  TraceRecord row;
  while (reader->next(row))
    if (row.output_tokens > 0) items.push_back({0, row.input_tokens, row.output_tokens});
  take_over(reader->diagnostics(), out);
  if (items.empty() && !out.has_errors())
    out.error({}, "burstgpt", "the file has no GPT-4 row with an answer");
  if (out.has_errors()) return nullptr;
  RandomStream random(seed, Stream::kPromptOrder);
  random.shuffle(items.begin(), items.end());
  fit(items, c.num_prompts, true, random);
  for (std::size_t i = 0; i < items.size(); ++i)
    items[i].content = content_id(seed, ContentKind::kUnique, i);
  return std::make_unique<ListedSamples>(std::move(items));
}

/// timed_trace: each hash id expands to chunk_hash_size tokens; the prompt ends with its ids.
class TimedTraceSamples final : public SampleSource {
 public:
  TimedTraceSamples(const Config& c, std::uint64_t seed, TraceOpener open, std::int64_t size)
      : prompts_(seed, c.timed_trace.chunk_hash_size), reader_(open()), size_(size) {}
  std::int64_t size() const override { return size_; }
  Sample make(std::int64_t i) override {
    reader_->next(record_);
    Request request;
    prompts_.fill(record_, HashLengthRule::kTruncateToIds, static_cast<std::uint64_t>(i), request);
    return {.text = request.prompt->segments, .output = request.max_tokens};
  }

 private:
  TracePrompts prompts_;
  std::unique_ptr<TraceReader> reader_;
  std::int64_t size_;
  TraceRecord record_;
};

std::unique_ptr<SampleSource> timed_samples(const Config& c, std::uint64_t seed,
                                            const LoadInputs& inputs, Diagnostics& out) {
  const TraceSummary summary =
      survey_trace(inputs.trace, TracePrompts(seed, c.timed_trace.chunk_hash_size),
                   HashLengthRule::kTruncateToIds, c.num_prompts, out);
  if (out.has_errors()) return nullptr;
  return std::make_unique<TimedTraceSamples>(c, seed, inputs.trace, summary.records);
}

bool check_lengths(const Config& c, Diagnostics& out) {
  if (c.dataset_name == Dataset::kPrefixRepetition &&
      c.num_prompts < c.prefix_repetition.num_prefixes)
    out.error({}, "num_prompts",
              "must be at least prefix_repetition.num_prefixes (got " +
                  std::to_string(c.num_prompts) + " < " +
                  std::to_string(c.prefix_repetition.num_prefixes) + ")");
  if (c.dataset_name == Dataset::kSonnet &&
      c.input_len.value_or(c.sonnet.input_len) < c.sonnet.prefix_len)
    out.error({}, "sonnet.input_len", "must be at least sonnet.prefix_len");
  return !out.has_errors();
}

}  // namespace

std::unique_ptr<SampleSource> make_samples(const Config& c, const WorkloadOptions& options,
                                           const LoadInputs& inputs, Diagnostics& out) {
  const std::uint64_t seed = mix64(options.seed, static_cast<std::uint64_t>(c.seed));
  const double scale = options.prompt_token_scale;
  if (!check_lengths(c, out)) return nullptr;
  const bool needs_conversations =
      c.dataset_name == Dataset::kShareGpt || c.dataset_name == Dataset::kCustom;
  const bool needs_trace =
      c.dataset_name == Dataset::kBurstGpt || c.dataset_name == Dataset::kTimedTrace;
  if ((needs_conversations && !inputs.conversations) || (needs_trace && !inputs.trace)) {
    out.error({}, "dataset_name",
              "this data set needs a file (got " + std::string(enum_name(c.dataset_name)) + ")",
              "name it in dataset_path");
    return nullptr;
  }
  switch (c.dataset_name) {
    case Dataset::kPrefixRepetition:
      return std::make_unique<PrefixRepetitionSamples>(c, seed, scale);
    case Dataset::kRandom:
      return std::make_unique<RandomSamples>(c, seed, scale);
    case Dataset::kSonnet:
      return std::make_unique<SonnetSamples>(c, seed);
    case Dataset::kShareGpt:
      return sharegpt_samples(c, seed, inputs, out);
    case Dataset::kCustom:
      return custom_samples(c, seed, inputs, out);
    case Dataset::kBurstGpt:
      return burstgpt_samples(c, seed, inputs, out);
    case Dataset::kTimedTrace:
      break;
  }
  return timed_samples(c, seed, inputs, out);
}

}  // namespace routesim::workloads::vllm_bench
