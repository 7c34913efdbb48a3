// inference-perf's conversation_replay data.
#include <algorithm>
#include <cmath>
#include <utility>

#include "workloads/inference_perf/inference_perf_data.h"

namespace routesim::workloads::inference_perf {
namespace {

constexpr std::int64_t kDefaultMaxModelLen = 225'000;
/// The tool leaves these free beside an answer: its tokens may not be the server's.
constexpr std::int64_t kPromptTokenBuffer = 200;

/// The text of a conversation so far. The tool cuts it for every request, and a cut stays: whole
/// turns, oldest first, then the end of the system prompt, then the end of the input.
struct Context {
  std::uint64_t session = ~0ULL;
  std::vector<Segment> system{};
  std::vector<std::vector<Segment>> turns{};  ///< The input and the answer of each.
  Segment input{};                            ///< The input of the current turn.

  std::int64_t tokens() const {
    std::int64_t sum = tokens_in(system);
    for (const auto& turn : turns) sum += tokens_in(turn);
    return sum;
  }
  void drop_turns_beyond(std::int64_t budget) {
    std::int64_t used = tokens();
    auto kept = turns.begin();
    for (; kept != turns.end() && used > budget; ++kept) used -= tokens_in(*kept);
    turns.erase(turns.begin(), kept);
  }
  void fit(Segment next, std::int64_t budget) {
    drop_turns_beyond(budget - next.length);
    if (tokens() + next.length > budget)
      shorten(system, std::max<std::int64_t>(budget - next.length, 0));
    next.length = std::min(next.length, budget);
    input = next;
  }
};

/// The plan of one conversation; a slot repeats it for ever.
struct Blueprint {
  Segment dynamic_prompt;
  struct Turn {
    Segment input;
    std::int64_t output = 0;
    Duration tool_latency;
  };
  std::vector<Turn> turns;
};

Blueprint make_blueprint(const ConversationReplay& r, std::uint64_t seed, std::uint64_t slot,
                         double scale) {
  const auto scaled = [scale](std::int64_t n) { return scaled_tokens(n, scale); };
  RandomStream random(seed, Stream::kConversations, slot);
  const auto draw = [&](const std::optional<Distribution>& d, std::int64_t fallback) {
    return d ? LengthSampler(*d).sample(random) : fallback;
  };
  Blueprint out;
  const std::int64_t turns = std::max<std::int64_t>(draw(r.turns_per_conversation, 10), 1);
  out.dynamic_prompt = {.content = content_id(seed, ContentKind::kSystemPrompt, 1, slot),
                        .length = scaled(draw(r.dynamic_system_prompt_len, 0))};
  for (std::int64_t t = 0; t < turns; ++t) {
    Blueprint::Turn turn;
    turn.input = {
        .content = content_id(seed, ContentKind::kTurnInput, slot, static_cast<std::uint64_t>(t)),
        .length = scaled(draw(r.input_tokens_per_turn, 512))};
    turn.output = std::max<std::int64_t>(draw(r.output_tokens_per_turn, 256), 1);
    if (r.tool_call_latency_sec)
      turn.tool_latency =
          Duration::from_seconds(LengthSampler(*r.tool_call_latency_sec).sample_real(random));
    out.turns.push_back(turn);
  }
  return out;
}

class ConversationReplaySessions final : public SessionSource {
 public:
  ConversationReplaySessions(const ConversationReplay& r, bool ignore_eos,
                             const WorkloadOptions& options)
      : seed_(mix64(options.seed, static_cast<std::uint64_t>(r.seed))),
        slots_(r.num_conversations),
        shared_tokens_(scaled_tokens(r.shared_system_prompt_len, options.prompt_token_scale)),
        max_model_len_(r.max_model_len.value_or(kDefaultMaxModelLen)),
        answers_(options, ignore_eos, seed_),
        contexts_(static_cast<std::size_t>(slots_)) {
    for (std::int64_t s = 0; s < slots_; ++s)
      blueprints_.push_back(
          make_blueprint(r, seed_, static_cast<std::uint64_t>(s), options.prompt_token_scale));
    for (Blueprint& b : blueprints_)
      for (Blueprint::Turn& turn : b.turns) turn.tool_latency += options.turn_work;
  }

  std::uint64_t session_of(std::size_t, std::int64_t index) const override {
    // Each conversation of a slot has its own lock: the next one may start when it is due.
    const std::int64_t turns = turns_of(slot_of(index));
    return static_cast<std::uint64_t>(index % slots_ + slots_ * (index / slots_ / turns));
  }
  std::int64_t worker_of(std::int64_t index) const override { return index % slots_; }

  void fill(std::size_t stage, std::int64_t index, Request& request) override {
    const std::size_t slot = slot_of(index);
    const Blueprint& blueprint = blueprints_[slot];
    const auto turn_index = static_cast<std::size_t>(index / slots_ % turns_of(slot));
    const Blueprint::Turn& turn = blueprint.turns[turn_index];
    Context& context = contexts_[slot];
    const std::uint64_t session = session_of(stage, index);
    if (turn_index == 0 || context.session != session)
      context = {
          .session = session,
          // Every stage has a shared prompt of its own.
          .system = {{.content = content_id(seed_, ContentKind::kSystemPrompt, 0, stage),
                      .length = shared_tokens_},
                     blueprint.dynamic_prompt},
      };
    context.fit(turn.input,
                std::max<std::int64_t>(max_model_len_ - turn.output - kPromptTokenBuffer, 0));
    PromptBuilder prompt;
    prompt.append(context.system);
    for (const auto& said : context.turns) prompt.append(said);
    prompt.append(context.input);
    request.prompt = std::move(prompt).build(ids_.next());
    answers_.fill(stage, index, turn.output, request);
    request.session = session + 1;
    request.held_open = turn.tool_latency;
  }

  void completed(std::size_t stage, std::int64_t index, const Request& request,
                 Outcome outcome) override {
    // After a failure the context stays and no tool is called.
    if (outcome != Outcome::kSuccess) return;
    Context& context = contexts_[slot_of(index)];
    if (context.session != session_of(stage, index)) return;
    context.turns.push_back(
        {context.input, {.content = request.output_content, .length = request.output_tokens}});
  }

  void end_of_stage(std::size_t) override {
    for (Context& context : contexts_) context = {};
  }

 private:
  std::size_t slot_of(std::int64_t index) const { return static_cast<std::size_t>(index % slots_); }
  std::int64_t turns_of(std::size_t slot) const {
    return static_cast<std::int64_t>(blueprints_[slot].turns.size());
  }

  std::uint64_t seed_;
  std::int64_t slots_;
  std::int64_t shared_tokens_;
  std::int64_t max_model_len_;
  StagedAnswers answers_;
  std::vector<Blueprint> blueprints_;
  std::vector<Context> contexts_;
  PromptIds ids_;
};

}  // namespace

void check_conversation_length(const ConversationReplay& r, Diagnostics& out) {
  const Distribution answer = r.output_tokens_per_turn.value_or(Distribution::fixed(256));
  const std::int64_t longest =
      answer.type == DistributionType::kFixed ? std::llround(answer.mean) : answer.max;
  const std::int64_t limit = r.max_model_len.value_or(kDefaultMaxModelLen);
  if (longest + kPromptTokenBuffer < limit) return;
  out.error({}, "data.conversation_replay.max_model_len",
            "leaves no room for a prompt beside an answer of " + std::to_string(longest) +
                " tokens and the " + std::to_string(kPromptTokenBuffer) +
                " the tool leaves free (got " + std::to_string(limit) + ")",
            "raise it, or lower output_tokens_per_turn");
}

std::unique_ptr<SessionSource> conversation_replay_sessions(const Config& config,
                                                            const WorkloadOptions& options) {
  return std::make_unique<ConversationReplaySessions>(*config.data.conversation_replay,
                                                      config.server.ignore_eos, options);
}

}  // namespace routesim::workloads::inference_perf
