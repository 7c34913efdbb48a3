#include "workloads/options.h"

namespace routesim::workloads {

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
  field(d, {"chat_template", "Tokens the server's chat template adds to chat prompts."},
        t.chat_template);
}

}  // namespace routesim::workloads
