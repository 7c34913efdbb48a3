#include "workloads/inference_perf/inference_perf_data.h"

#include <algorithm>
#include <array>
#include <utility>

namespace routesim::workloads::inference_perf {
namespace {

/// Answers are never the same text twice: the tool sends no temperature, so servers sample.
std::uint64_t answer_content(std::uint64_t seed, std::size_t stage, std::int64_t index) {
  return content_id(seed, ContentKind::kAnswer, stage, static_cast<std::uint64_t>(index));
}

std::uint64_t stage_entity(std::size_t stage, std::int64_t index) {
  return (static_cast<std::uint64_t>(stage) << 40) | static_cast<std::uint64_t>(index);
}

std::uint64_t data_seed(const WorkloadOptions& options, std::optional<std::int64_t> seed) {
  return mix64(options.seed, static_cast<std::uint64_t>(seed.value_or(0)));
}

bool is_chat(const Config& config) { return config.api.type != ApiType::kCompletion; }

/// One prompt of the shared_prefix pool.
struct PoolPrompt {
  Segment prefix;
  Segment question;
  std::int64_t output = 0;
};

/// All G * P prompts in the order they are sent.
std::vector<PoolPrompt> make_pool(const SharedPrefix& data, std::uint64_t seed, double scale) {
  const auto groups = static_cast<std::uint64_t>(data.num_groups);
  const auto per_group = static_cast<std::uint64_t>(data.num_prompts_per_group);
  const LengthSampler system(data.system_prompt_len);
  const LengthSampler question(data.question_distribution.value_or(data.question_len));
  const LengthSampler output(data.output_distribution.value_or(data.output_len));
  std::vector<PoolPrompt> pool;
  pool.reserve(groups * per_group);
  for (std::uint64_t g = 0; g < groups; ++g) {
    RandomStream lengths(seed, Stream::kLengths, g);
    const Segment prefix{.content = content_id(seed, ContentKind::kSystemPrompt, g),
                         .length = scaled_tokens(system.sample(lengths), scale)};
    for (std::uint64_t p = 0; p < per_group; ++p) {
      const std::int64_t question_length = scaled_tokens(question.sample(lengths), scale);
      const std::int64_t output_length = std::max<std::int64_t>(output.sample(lengths), 1);
      pool.push_back({.prefix = prefix,
                      .question = {.content = content_id(seed, ContentKind::kQuestion, g, p),
                                   .length = question_length},
                      .output = output_length});
    }
  }
  RandomStream order(seed, Stream::kPromptOrder);
  order.shuffle(pool.begin(), pool.end());
  return pool;
}

class SharedPrefixSource final : public RequestSource {
 public:
  SharedPrefixSource(const Config& config, const WorkloadOptions& options)
      : seed_(data_seed(options, config.data.shared_prefix->seed)),
        indexing_(options.prompt_indexing),
        answer_(options.natural_answer, config.server.ignore_eos, seed_) {
    const PromptAssembler assembler(options, is_chat(config));
    PromptIds ids;
    for (const PoolPrompt& p :
         make_pool(*config.data.shared_prefix, seed_, options.prompt_token_scale))
      pool_.push_back(
          {assembler.single({p.prefix, p.question}, ids.next(), /*reusable=*/true), p.output});
  }

  void fill(std::size_t stage, std::int64_t index, Request& request) override {
    if (index == 0) {
      if (indexing_ == PromptIndexing::kRestart) next_ = 0;
    }
    const Item& item = pool_[next_];
    next_ = next_ + 1 == pool_.size() ? 0 : next_ + 1;
    request.prompt = item.prompt;
    request.max_tokens = item.output;
    request.output_tokens = answer_(item.output, stage_entity(stage, index));
    request.output_content = answer_content(seed_, stage, index);
  }

 private:
  struct Item {
    std::shared_ptr<const Prompt> prompt;
    std::int64_t output;
  };
  std::uint64_t seed_;
  PromptIndexing indexing_;
  AnswerLength answer_;
  std::vector<Item> pool_;
  std::size_t next_ = 0;
};

/// shared_prefix users who keep talking (UserSessionCompletionAPIData upstream).
class SharedPrefixSessions final : public SessionSource {
 public:
  SharedPrefixSessions(const Config& config, const WorkloadOptions& options)
      : seed_(data_seed(options, config.data.shared_prefix->seed)),
        groups_(config.data.shared_prefix->num_groups),
        style_(options.multi_turn),
        answer_(options.natural_answer, config.server.ignore_eos, seed_),
        users_(make_pool(*config.data.shared_prefix, seed_, options.prompt_token_scale)),
        contexts_(users_.size()) {}

  std::uint64_t session_of(std::size_t, std::int64_t index) const override {
    return static_cast<std::uint64_t>(index) % users_.size();
  }
  std::int64_t worker_of(std::int64_t index) const override { return index % groups_; }

  void fill(std::size_t stage, std::int64_t index, Request& request) override {
    const auto user_index = static_cast<std::size_t>(session_of(stage, index));
    const PoolPrompt& user = users_[user_index];
    PromptBuilder prompt;
    prompt.append(contexts_[user_index]);
    if (contexts_[user_index].empty() || style_ == MultiTurnStyle::kRepeatPrompt)
      prompt.append(user.prefix);
    prompt.append(user.question);
    request.prompt = std::move(prompt).build(ids_.next());
    request.max_tokens = user.output;
    request.output_tokens = answer_(user.output, stage_entity(stage, index));
    request.output_content = answer_content(seed_, stage, index);
    request.session = user_index + 1;
  }

  Duration completed(std::size_t stage, std::int64_t index, const Request& request,
                     Outcome outcome) override {
    // A failed round leaves the context of the round before.
    if (outcome == Outcome::kSuccess)
      contexts_[static_cast<std::size_t>(session_of(stage, index))] =
          PromptBuilder(*request.prompt)
              .append(request.output_content, request.output_tokens)
              .segments();
    return Duration::zero();
  }

  void end_of_stage(std::size_t) override {
    for (std::vector<Segment>& context : contexts_) context.clear();
  }

 private:
  std::uint64_t seed_;
  std::int64_t groups_;
  MultiTurnStyle style_;
  AnswerLength answer_;
  PromptIds ids_;
  std::vector<PoolPrompt> users_;
  std::vector<std::vector<Segment>> contexts_;  // Empty: the user has not spoken in this stage.
};

/// One of the two kinds of requests of bimodal data.
struct Mode {
  std::int64_t system_prompt;
  std::int64_t groups;
  LengthSampler text, output;
};

class BimodalSource final : public RequestSource {
 public:
  BimodalSource(const Config& config, const WorkloadOptions& options)
      : seed_(mix64(options.seed, 0)),
        indexing_(options.prompt_indexing),
        assembler_(options, is_chat(config)),
        answer_(options.natural_answer, config.server.ignore_eos, seed_),
        scale_(options.prompt_token_scale),
        ratio_(config.data.bimodal->mode_a_ratio),
        modes_{{{.system_prompt = config.data.bimodal->mode_a_system_prompt_len,
                 .groups = config.data.bimodal->mode_a_groups,
                 .text = LengthSampler(config.data.bimodal->mode_a_user_prompt_len),
                 .output = LengthSampler(config.data.bimodal->mode_a_output_len)},
                {.system_prompt = config.data.bimodal->mode_b_system_prompt_len,
                 .groups = config.data.bimodal->mode_b_groups,
                 .text = LengthSampler(config.data.bimodal->mode_b_user_prompt_len),
                 .output = LengthSampler(config.data.bimodal->mode_b_output_len)}}} {}

  void fill(std::size_t stage, std::int64_t index, Request& request) override {
    if (index == 0 && indexing_ == PromptIndexing::kRestart) next_ = 0;
    const std::uint64_t n = next_++;
    RandomStream draws(seed_, Stream::kLengths, n);
    const std::uint64_t which = draws.uniform() < ratio_ ? 0 : 1;
    const Mode& mode = modes_[which];
    const std::uint64_t group = draws.below(static_cast<std::uint64_t>(mode.groups));
    const Segment prefix{.content = content_id(seed_, ContentKind::kSystemPrompt, which, group),
                         .length = scaled_tokens(mode.system_prompt, scale_)};
    const Segment text{.content = content_id(seed_, ContentKind::kQuestion, which, n),
                       .length = scaled_tokens(mode.text.sample(draws), scale_)};
    const std::int64_t output = std::max<std::int64_t>(mode.output.sample(draws), 1);
    request.prompt = assembler_.single({prefix, text}, ids_.next(), /*reusable=*/false);
    request.max_tokens = output;
    request.output_tokens = answer_(output, stage_entity(stage, index));
    request.output_content = answer_content(seed_, stage, index);
  }

 private:
  std::uint64_t seed_;
  PromptIndexing indexing_;
  PromptAssembler assembler_;
  AnswerLength answer_;
  double scale_;
  double ratio_;
  std::array<Mode, 2> modes_;
  std::uint64_t next_ = 0;
  PromptIds ids_;
};

class RandomSource final : public RequestSource {
 public:
  RandomSource(const Config& config, const WorkloadOptions& options)
      : seed_(mix64(options.seed, 0)),
        assembler_(options, is_chat(config)),
        answer_(options.natural_answer, config.server.ignore_eos, seed_),
        scale_(options.prompt_token_scale),
        input_(config.data.input_distribution.value_or(Distribution::fixed(3)),
               SamplerKind::kRandomData),
        // 30 tokens is what the tool asks for when nothing says otherwise (mock data).
        output_(config.data.output_distribution.value_or(Distribution::fixed(30)),
                SamplerKind::kRandomData) {}

  void fill(std::size_t stage, std::int64_t index, Request& request) override {
    // Lengths are drawn up front, once: request n has the same lengths in every stage.
    RandomStream lengths(seed_, Stream::kLengths, static_cast<std::uint64_t>(index));
    const std::int64_t input = scaled_tokens(input_.sample(lengths), scale_);
    const std::int64_t output = std::max<std::int64_t>(output_.sample(lengths), 1);
    const Segment text{.content = content_id(seed_, ContentKind::kUnique, stage,
                                             static_cast<std::uint64_t>(index)),
                       .length = input};
    request.prompt = assembler_.single({text}, ids_.next(), /*reusable=*/false);
    request.max_tokens = output;
    request.output_tokens = answer_(output, stage_entity(stage, index));
    request.output_content = answer_content(seed_, stage, index);
  }

 private:
  std::uint64_t seed_;
  PromptAssembler assembler_;
  AnswerLength answer_;
  double scale_;
  LengthSampler input_, output_;
  PromptIds ids_;
};

class TraceLengthSource final : public RequestSource {
 public:
  TraceLengthSource(const Config& config, const WorkloadOptions& options, TraceOpener trace)
      : seed_(mix64(options.seed, 0)),
        assembler_(options, is_chat(config)),
        answer_(options.natural_answer, config.server.ignore_eos, seed_),
        trace_(std::move(trace)) {}

  void fill(std::size_t stage, std::int64_t index, Request& request) override {
    if (index == 0 || !reader_->next(record_)) {
      reader_ = trace_();
      reader_->next(record_);
    }
    const Segment text{.content = content_id(seed_, ContentKind::kUnique, stage,
                                             static_cast<std::uint64_t>(index)),
                       .length = record_.input_tokens};
    request.prompt = assembler_.single({text}, ids_.next(), /*reusable=*/false);
    request.max_tokens = std::max<std::int64_t>(record_.output_tokens, 1);
    request.output_tokens = answer_(request.max_tokens, stage_entity(stage, index));
    request.output_content = answer_content(seed_, stage, index);
  }

 private:
  std::uint64_t seed_;
  PromptAssembler assembler_;
  AnswerLength answer_;
  TraceOpener trace_;
  std::unique_ptr<TraceReader> reader_;
  TraceRecord record_;
  PromptIds ids_;
};

}  // namespace

std::unique_ptr<RequestSource> shared_prefix_source(const Config& config,
                                                    const WorkloadOptions& options) {
  return std::make_unique<SharedPrefixSource>(config, options);
}

std::unique_ptr<SessionSource> shared_prefix_sessions(const Config& config,
                                                      const WorkloadOptions& options) {
  return std::make_unique<SharedPrefixSessions>(config, options);
}

std::unique_ptr<RequestSource> bimodal_source(const Config& config,
                                              const WorkloadOptions& options) {
  return std::make_unique<BimodalSource>(config, options);
}

std::unique_ptr<RequestSource> random_source(const Config& config, const WorkloadOptions& options) {
  return std::make_unique<RandomSource>(config, options);
}

std::unique_ptr<RequestSource> trace_length_source(const Config& config,
                                                   const WorkloadOptions& options,
                                                   TraceOpener trace) {
  return std::make_unique<TraceLengthSource>(config, options, std::move(trace));
}

}  // namespace routesim::workloads::inference_perf
