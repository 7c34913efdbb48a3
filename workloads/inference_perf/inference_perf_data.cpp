// The data generators of inference-perf that send single requests, and shared_prefix with turns.
#include "workloads/inference_perf/inference_perf_data.h"

#include <algorithm>
#include <array>
#include <utility>

namespace routesim::workloads::inference_perf {
namespace {

std::uint64_t data_seed(const WorkloadOptions& options, std::optional<std::int64_t> seed = {}) {
  return mix64(options.seed, static_cast<std::uint64_t>(seed.value_or(0)));
}

bool is_chat(const Config& config) { return config.api.type != ApiType::kCompletion; }

/// One prompt of the shared_prefix pool.
struct PoolPrompt {
  Segment prefix;
  Segment question;
  std::int64_t output = 0;
};

/// All prompts of the pool in the order they are sent.
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

/// shared_prefix without turns: a pool of prompts, permuted once, cycled.
class SharedPrefixSource final : public RequestSource {
 public:
  SharedPrefixSource(const Config& config, const WorkloadOptions& options)
      : indexing_(options.prompt_indexing),
        answers_(options, config.server.ignore_eos,
                 data_seed(options, config.data.shared_prefix->seed)) {
    const PromptAssembler assembler(options, is_chat(config));
    PromptIds ids;
    for (const PoolPrompt& p :
         make_pool(*config.data.shared_prefix, answers_.seed(), options.prompt_token_scale))
      pool_.push_back(
          {assembler.single({p.prefix, p.question}, ids.next(), /*reusable=*/true), p.output});
  }

  void fill(std::size_t stage, std::int64_t index, Request& request) override {
    if (index == 0 && indexing_ == PromptIndexing::kRestart) next_ = 0;
    const Item& item = pool_[next_];
    next_ = next_ + 1 == pool_.size() ? 0 : next_ + 1;
    request.prompt = item.prompt;
    answers_.fill(stage, index, item.output, request);
  }

 private:
  struct Item {
    std::shared_ptr<const Prompt> prompt;
    std::int64_t output;
  };
  PromptIndexing indexing_;
  StagedAnswers answers_;
  std::vector<Item> pool_;
  std::size_t next_ = 0;
};

/// shared_prefix with turns: every prompt of the pool is a user who keeps talking
/// (UserSessionCompletionAPIData upstream).
class SharedPrefixSessions final : public SessionSource {
 public:
  SharedPrefixSessions(const Config& config, const WorkloadOptions& options)
      : groups_(config.data.shared_prefix->num_groups),
        style_(options.multi_turn),
        answers_(options, config.server.ignore_eos,
                 data_seed(options, config.data.shared_prefix->seed)),
        users_(make_pool(*config.data.shared_prefix, answers_.seed(), options.prompt_token_scale)),
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
    answers_.fill(stage, index, user.output, request);
    request.session = user_index + 1;
  }

  void completed(std::size_t stage, std::int64_t index, const Request& request,
                 Outcome outcome) override {
    // A failed round leaves the context of the round before.
    if (outcome == Outcome::kSuccess)
      contexts_[static_cast<std::size_t>(session_of(stage, index))] = with_answer(request);
  }

  void end_of_stage(std::size_t) override {
    for (std::vector<Segment>& context : contexts_) context.clear();
  }

 private:
  std::int64_t groups_;
  MultiTurnStyle style_;
  StagedAnswers answers_;
  PromptIds ids_;
  std::vector<PoolPrompt> users_;
  std::vector<std::vector<Segment>> contexts_;  // Empty: the user has not spoken in this stage.
};

/// Sources that make each prompt when it is sent, and never again.
class FreshSource : public RequestSource {
 public:
  FreshSource(const Config& config, const WorkloadOptions& options)
      : assembler_(options, is_chat(config)),
        answers_(options, config.server.ignore_eos, data_seed(options)),
        scale_(options.prompt_token_scale) {}

 protected:
  std::uint64_t seed() const { return answers_.seed(); }
  /// A text of about that many tokens.
  Segment text(ContentKind kind, std::uint64_t a, std::uint64_t b, std::int64_t tokens) const {
    return {.content = content_id(seed(), kind, a, b), .length = scaled_tokens(tokens, scale_)};
  }
  void send(std::size_t stage, std::int64_t index, const std::vector<Segment>& texts,
            std::int64_t output, Request& request) {
    request.prompt = assembler_.single(texts, ids_.next(), /*reusable=*/false);
    answers_.fill(stage, index, output, request);
  }

 private:
  PromptAssembler assembler_;
  StagedAnswers answers_;
  double scale_;
  PromptIds ids_;
};

/// bimodal: request n is of the same mode and group with the same text in every stage.
class BimodalSource final : public FreshSource {
 public:
  BimodalSource(const Config& config, const WorkloadOptions& options)
      : FreshSource(config, options), indexing_(options.prompt_indexing) {
    const Bimodal& b = *config.data.bimodal;
    ratio_ = b.mode_a_ratio;
    modes_ = {{.system_prompt = b.mode_a_system_prompt_len,
               .groups = b.mode_a_groups,
               .text = LengthSampler(b.mode_a_user_prompt_len),
               .output = LengthSampler(b.mode_a_output_len)},
              {.system_prompt = b.mode_b_system_prompt_len,
               .groups = b.mode_b_groups,
               .text = LengthSampler(b.mode_b_user_prompt_len),
               .output = LengthSampler(b.mode_b_output_len)}};
  }

  void fill(std::size_t stage, std::int64_t index, Request& request) override {
    if (index == 0 && indexing_ == PromptIndexing::kRestart) next_ = 0;
    const std::uint64_t n = next_++;
    RandomStream draws(seed(), Stream::kLengths, n);
    const std::uint64_t which = draws.uniform() < ratio_ ? 0 : 1;
    const Mode& mode = modes_[which];
    const std::uint64_t group = draws.below(static_cast<std::uint64_t>(mode.groups));
    const Segment prefix = text(ContentKind::kSystemPrompt, which, group, mode.system_prompt);
    const Segment own = text(ContentKind::kQuestion, which, n, mode.text.sample(draws));
    send(stage, index, {prefix, own}, mode.output.sample(draws), request);
  }

 private:
  /// One of the two kinds of requests.
  struct Mode {
    std::int64_t system_prompt;
    std::int64_t groups;
    LengthSampler text, output;
  };
  PromptIndexing indexing_;
  double ratio_ = 0;
  std::vector<Mode> modes_;
  std::uint64_t next_ = 0;
};

/// random, synthetic and mock: unshared prompts with drawn lengths.
class RandomSource final : public FreshSource {
 public:
  RandomSource(const Config& config, const WorkloadOptions& options)
      : FreshSource(config, options),
        input_(config.data.input_distribution.value_or(Distribution::fixed(3)),
               SamplerKind::kRandomData),
        // 30 tokens is what the tool asks for when nothing says otherwise (mock data).
        output_(config.data.output_distribution.value_or(Distribution::fixed(30)),
                SamplerKind::kRandomData) {}

  void fill(std::size_t stage, std::int64_t index, Request& request) override {
    // Lengths are drawn up front, once: request n has the same lengths in every stage.
    const auto n = static_cast<std::uint64_t>(index);
    RandomStream lengths(seed(), Stream::kLengths, n);
    const Segment own = text(ContentKind::kUnique, stage, n, input_.sample(lengths));
    send(stage, index, {own}, output_.sample(lengths), request);
  }

 private:
  LengthSampler input_, output_;
};

/// random with data.trace: unshared prompts with the lengths of the trace's rows, cycled.
class TraceLengthSource final : public FreshSource {
 public:
  TraceLengthSource(const Config& config, const WorkloadOptions& options, TraceOpener trace)
      : FreshSource(config, options), trace_(std::move(trace)) {}

  void fill(std::size_t stage, std::int64_t index, Request& request) override {
    if (index == 0 || !reader_->next(record_)) {
      reader_ = trace_();
      reader_->next(record_);
    }
    // The rows say tokens of the server: they are not scaled.
    const Segment own{.content = content_id(seed(), ContentKind::kUnique, stage,
                                            static_cast<std::uint64_t>(index)),
                      .length = record_.input_tokens};
    send(stage, index, {own}, record_.output_tokens, request);
  }

 private:
  TraceOpener trace_;
  std::unique_ptr<TraceReader> reader_;
  TraceRecord record_;
};

bool within(std::int64_t n, const std::optional<Distribution>& d) {
  return !d || (n >= d->min && n <= d->max);
}

/// shareGPT: the file in order, cycled, its first record discarded.
class ShareGptSource final : public RequestSource {
 public:
  ShareGptSource(const Config& config, const WorkloadOptions& options, ConversationOpener open)
      : assembler_(options, is_chat(config)),
        // A chat asks for no maximum: its answers are as long as they are.
        answers_(options, config.server.ignore_eos || is_chat(config), data_seed(options)),
        config_(config),
        open_(std::move(open)) {
    if (is_chat(config)) natural_.emplace(*options.natural_answer);
  }

  void fill(std::size_t stage, std::int64_t index, Request& request) override {
    read_usable();
    std::vector<Segment> texts;
    for (const Message& m : current_.messages) {
      texts.push_back({.content = content_id(0, ContentKind::kText, m.text), .length = m.tokens});
      if (!natural_) break;
    }
    request.prompt = assembler_.messages(texts, ids_.next());
    std::int64_t output = current_.messages[1].tokens;
    if (natural_) {
      RandomStream random(answers_.seed(), Stream::kLengths, StagedAnswers::entity(stage, index));
      output = natural_->sample(random);
    }
    answers_.fill(stage, index, output, request);
  }

 private:
  /// The next usable conversation; the file starts again at its end. `make_load_generator` has
  /// made sure that there is one.
  void read_usable() {
    do {
      if (reader_ && reader_->next(current_)) continue;
      const bool first_pass = reader_ == nullptr;
      reader_ = open_();
      // The tool consumes one record when it starts.
      if (first_pass) reader_->next(current_);
      reader_->next(current_);
    } while (!sharegpt_usable(config_, current_));
  }

  PromptAssembler assembler_;
  StagedAnswers answers_;
  std::optional<LengthSampler> natural_;
  Config config_;
  ConversationOpener open_;
  std::unique_ptr<ConversationReader> reader_;
  Conversation current_;
  PromptIds ids_;
};

}  // namespace

bool sharegpt_usable(const Config& config, const Conversation& conversation) {
  if (conversation.messages.size() < 2) return false;
  return is_chat(config) ||
         (within(conversation.messages[0].tokens, config.data.input_distribution) &&
          within(conversation.messages[1].tokens, config.data.output_distribution));
}

std::unique_ptr<RequestSource> make_source(const Config& config, const WorkloadOptions& options,
                                           const LoadInputs& inputs) {
  if (config.data.type == DataType::kSharedPrefix)
    return std::make_unique<SharedPrefixSource>(config, options);
  if (config.data.type == DataType::kBimodal)
    return std::make_unique<BimodalSource>(config, options);
  if (config.data.type == DataType::kShareGpt)
    return std::make_unique<ShareGptSource>(config, options, inputs.conversations);
  if (config.data.type == DataType::kRandom && config.data.trace)
    return std::make_unique<TraceLengthSource>(config, options, inputs.trace);
  return std::make_unique<RandomSource>(config, options);
}

std::unique_ptr<SessionSource> make_sessions(const Config& config, const WorkloadOptions& options) {
  if (config.data.type == DataType::kSharedPrefix)
    return std::make_unique<SharedPrefixSessions>(config, options);
  return conversation_replay_sessions(config, options);
}

}  // namespace routesim::workloads::inference_perf
