#include "workloads/options.h"

#include "workloads/load_traits.h"

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

void describe(Describer& d, GoodputConstraints& t) {
  const RealRange seconds{.min = 0, .max = 1e9};
  field(d, {"ttft", "Seconds to the first token."}, t.ttft, seconds);
  field(d, {"tpot", "Seconds per output token after the first."}, t.tpot, seconds);
  field(d, {"itl", "Seconds between tokens."}, t.itl, seconds);
  field(d, {"ntpot", "Seconds of latency per output token."}, t.ntpot, seconds);
  field(d, {"request_latency", "Seconds to the last token."}, t.request_latency, seconds);
}

void describe(Describer& d, WorkloadOptions& t) {
  field(d,
        {"default_workers",
         "Worker processes of the load tool when its file leaves them out (it then takes the "
         "client's CPU count)."},
        t.default_workers, IntRange{1, 100'000});
  field(d,
        {"prompt_indexing",
         "Whether each stage starts again at the first prompt of the pool or goes on where "
         "the previous stage stopped."},
        t.prompt_indexing);
  field(d,
        {"multi_turn",
         "What a later round of a multi-turn user appends: the whole prompt again (as the tool did "
         "until August 2026), or the question only."},
        t.multi_turn);
  field(d,
        {"prompt_token_scale",
         "Server tokens per random prompt token asked for (re-tokenised text is longer)."},
        t.prompt_token_scale, RealRange{.min = 0.01, .max = 100});
  field(d,
        {"bytes_per_token",
         "Bytes of prompt text per server token, for routers that cut text into blocks; 6.1 when "
         "absent and the tool sends random tokens, else 4."},
        t.bytes_per_token, RealRange{.min = 0.1, .max = 100});
  field(d, {"warmup_stages", "Leading stages that run but are left out of reports."},
        t.warmup_stages, IntRange{0, 100'000});
  field(d,
        {"natural_answer",
         "Tokens of an answer that ends by itself, where end-of-sequence is not ignored."},
        t.natural_answer);
  field(d,
        {"turn_work",
         "Client time after each answer of inference-perf's conversation_replay (it tokenises "
         "again), which the tool counts as latency and the next turn waits for; no other load has "
         "it."},
        t.turn_work, DurationRange{Duration::zero(), Duration::seconds(3600)});
  field(d, {"chat_template", "Tokens the server's chat template adds to chat prompts."},
        t.chat_template);
}

}  // namespace routesim::workloads
