#include "workloads/vllm_bench/vllm_bench_data.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "workloads/prompts.h"
#include "workloads/traces/trace_replay.h"

namespace routesim::workloads::vllm_bench {
namespace {

Segment unique_text(std::uint64_t seed, std::int64_t i, std::int64_t length) {
  return {.content = content_id(seed, ContentKind::kUnique, static_cast<std::uint64_t>(i)),
          .length = length};
}

Segment shared_text(std::uint64_t seed, std::uint64_t which, std::int64_t length) {
  return {.content = content_id(seed, ContentKind::kSystemPrompt, which), .length = length};
}

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

/// prefix_repetition: num_prompts div num_prefixes prompts per prefix, shuffled once.
Samples prefix_repetition_samples(const Config& c, std::uint64_t seed, double scale) {
  const PrefixRepetition& p = c.prefix_repetition;
  const std::int64_t per_prefix = c.num_prompts / p.num_prefixes;
  const std::int64_t prefix = scaled_tokens(p.prefix_len, scale);
  const std::int64_t suffix = scaled_tokens(p.suffix_len, scale);
  // Position sent -> position generated, prefix by prefix.
  std::vector<std::uint32_t> order(static_cast<std::size_t>(per_prefix * p.num_prefixes));
  std::iota(order.begin(), order.end(), 0U);
  RandomStream random(seed, Stream::kPromptOrder);
  if (!c.disable_shuffle) random.shuffle(order.begin(), order.end());
  return {.size = std::ssize(order),
          .make = [=, output = c.output_len.value_or(p.output_len),
                   order = std::move(order)](std::int64_t i) -> Sample {
            const std::uint32_t n = order[static_cast<std::size_t>(i)];
            const std::uint64_t which = n / static_cast<std::uint64_t>(per_prefix);
            return {{shared_text(seed, which, prefix), unique_text(seed, n, suffix)}, output};
          }};
}

Samples random_samples(const Config& c, std::uint64_t seed, double scale) {
  const LengthRange inputs(c.input_len.value_or(c.random.input_len),
                           c.random.input_range_ratio.value_or(c.random.range_ratio));
  const LengthRange outputs(c.output_len.value_or(c.random.output_len),
                            c.random.output_range_ratio.value_or(c.random.range_ratio));
  const std::int64_t prefix = scaled_tokens(c.random.prefix_len, scale);
  return {
      .size = c.num_prompts, .make = [=](std::int64_t i) -> Sample {
        RandomStream lengths(seed, Stream::kLengths, static_cast<std::uint64_t>(i));
        const std::int64_t input = scaled_tokens(inputs.draw(lengths), scale);
        return {{shared_text(seed, 0, prefix), unique_text(seed, i, input)}, outputs.draw(lengths)};
      }};
}

Samples sonnet_samples(const Config& c, std::uint64_t seed) {
  const std::int64_t prefix = c.sonnet.prefix_len;
  const std::int64_t rest = c.input_len.value_or(c.sonnet.input_len) - prefix;
  const std::int64_t output = c.output_len.value_or(c.sonnet.output_len);
  return {.size = c.num_prompts, .make = [=](std::int64_t i) -> Sample {
            return {{shared_text(seed, 0, prefix), unique_text(seed, i, rest)}, output};
          }};
}

/// A row of a data set, in memory.
struct Item {
  std::uint64_t content = 0;
  std::int64_t input = 0, output = 0;
};

Samples listed_samples(std::vector<Item> items) {
  return {.size = std::ssize(items), .make = [items = std::move(items)](std::int64_t i) -> Sample {
            const Item& item = items[static_cast<std::size_t>(i)];
            return {{{.content = item.content, .length = item.input}}, item.output};
          }};
}

/// Cuts to num_prompts, or repeats random items until there are as many.
void fit(std::vector<Item>& items, std::int64_t wanted, bool oversample, RandomStream& random) {
  const auto n = static_cast<std::size_t>(wanted);
  const std::size_t had = items.size();
  if (had >= n) {
    items.resize(n);
  } else if (oversample) {
    items.reserve(n);
    while (items.size() < n) items.push_back(items[random.below(had)]);
  }
}

/// Chooses and orders what was read of a data set, unless an error was found while reading it.
Samples chosen(std::vector<Item> items, const Config& c, std::uint64_t seed, bool oversample,
               const Diagnostics& found, const char* key, const char* nothing, Diagnostics& out) {
  for (const Diagnostic& d : found.items()) out.add(d);
  if (items.empty() && !out.has_errors()) out.error({}, key, nothing);
  if (out.has_errors()) return {};
  RandomStream random(seed, Stream::kPromptOrder);
  const bool shuffles = !c.disable_shuffle || c.dataset_name == Dataset::kBurstGpt;
  if (shuffles) random.shuffle(items.begin(), items.end());
  fit(items, c.num_prompts, oversample, random);
  if (c.dataset_name == Dataset::kBurstGpt)
    for (std::size_t i = 0; i < items.size(); ++i)
      items[i].content = content_id(seed, ContentKind::kUnique, i);
  return listed_samples(std::move(items));
}

Samples sharegpt_samples(const Config& c, std::uint64_t seed, const LoadInputs& inputs,
                         Diagnostics& out) {
  const auto reader = inputs.conversations();
  std::vector<Item> items;
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
  return chosen(std::move(items), c, seed, c.sharegpt.oversample, reader->diagnostics(), "sharegpt",
                "the file has no conversation the tool would use", out);
}

Samples custom_samples(const Config& c, std::uint64_t seed, const LoadInputs& inputs,
                       Diagnostics& out) {
  const auto reader = inputs.conversations();
  const std::int64_t fixed = c.output_len.value_or(c.custom.output_len);
  std::vector<Item> items;
  Conversation row;
  while (reader->next(row)) {
    if (row.messages.empty()) continue;
    const bool has_output = row.messages.size() > 1 && row.messages[1].tokens > 0;
    if (fixed < 0 && !has_output) {
      out.error({}, "custom.output_len",
                "row " + std::to_string(row.record) + " has no output_tokens",
                "give an output_len");
      return {};
    }
    items.push_back({content_id(0, ContentKind::kText, row.messages[0].text),
                     row.messages[0].tokens, fixed < 0 ? row.messages[1].tokens : fixed});
  }
  return chosen(std::move(items), c, seed, true, reader->diagnostics(), "custom",
                "the file has no rows", out);
}

/// Only the lengths of BurstGPT's rows are used; the prompts share nothing.
Samples burstgpt_samples(const Config& c, std::uint64_t seed, const LoadInputs& inputs,
                         Diagnostics& out) {
  const auto reader = inputs.trace();
  std::vector<Item> items;
  TraceRecord row;
  while (reader->next(row))
    if (row.output_tokens > 0) items.push_back({0, row.input_tokens, row.output_tokens});
  return chosen(std::move(items), c, seed, true, reader->diagnostics(), "burstgpt",
                "the file has no GPT-4 row with an answer", out);
}

/// timed_trace: each hash id expands to chunk_hash_size tokens; the prompt ends with its ids.
Samples timed_samples(const Config& c, std::uint64_t seed, const LoadInputs& inputs,
                      Diagnostics& out) {
  const TraceSummary summary = survey_trace(inputs,
                                            {.block_tokens = c.timed_trace.chunk_hash_size,
                                             .hash_length = HashLengthRule::kTruncateToIds,
                                             .max_requests = c.num_prompts},
                                            "trace", out);
  if (out.has_errors()) return {};
  const TracePrompts prompts(seed, c.timed_trace.chunk_hash_size);
  return {.size = summary.records,
          .make = [prompts, reader = std::shared_ptr<TraceReader>(inputs.trace()),
                   record = TraceRecord()](std::int64_t i) mutable -> Sample {
            reader->next(record);
            const auto prompt = prompts.prompt(record, HashLengthRule::kTruncateToIds,
                                               static_cast<std::uint64_t>(i));
            return {prompt->segments, std::max<std::int64_t>(record.output_tokens, 1)};
          }};
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

Samples make_samples(const Config& c, const WorkloadOptions& options, const LoadInputs& inputs,
                     Diagnostics& out) {
  const std::uint64_t seed = mix64(options.seed, static_cast<std::uint64_t>(c.seed));
  const double scale = options.prompt_token_scale;
  if (!check_lengths(c, out)) return {};
  const bool needs_conversations =
      c.dataset_name == Dataset::kShareGpt || c.dataset_name == Dataset::kCustom;
  const bool needs_trace =
      c.dataset_name == Dataset::kBurstGpt || c.dataset_name == Dataset::kTimedTrace;
  if ((needs_conversations && !inputs.conversations) || (needs_trace && !inputs.trace)) {
    out.error({}, "dataset_name",
              "this data set needs a file (got " + std::string(enum_name(c.dataset_name)) + ")",
              "name it in dataset_path");
    return {};
  }
  switch (c.dataset_name) {
    case Dataset::kPrefixRepetition:
      return prefix_repetition_samples(c, seed, scale);
    case Dataset::kRandom:
      return random_samples(c, seed, scale);
    case Dataset::kSonnet:
      return sonnet_samples(c, seed);
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
