#include "sim/rules/speculation_config.h"

#include <algorithm>

namespace routesim::sim {

void describe(Describer& d, SpeculationConfig& c) {
  field(d, {"method", "Kind of drafter; is needed."}, c.method);
  field(
      d,
      {"model",
       "The drafter. A draft model is one of the catalogue; the heads of the other methods are one "
       "layer like the model's own, and their name changes nothing."},
      c.model);
  field(d, {"num_speculative_tokens", "Tokens guessed per sequence and step; is needed."},
        c.num_speculative_tokens, IntRange{1, kMostDrafts});
  field(
      d,
      {"acceptance",
       "Share of steps with drafts in which the first, the first two, ... of them are accepted: "
       "vllm:spec_decode_num_accepted_tokens_per_pos over vllm:spec_decode_num_drafts. By default "
       "what was published for chats: three positions of eagle3, the first of mtp."},
      c.acceptance, RealRange{.min = 0, .max = 1});
}

// eagle3: means of what vLLM's own test expects of RedHatAI's heads for Llama-3.1-8B, Qwen3-8B and
// gpt-oss-20b on MT-Bench (tests/v1/spec_decode/test_acceptance_length.py, 2026); a head that fits
// less has 0.29, 0.06, 0.01 there. mtp: the second token of DeepSeek-V3 is accepted in 85 to 90 %
// of steps (arXiv:2412.19437, section 5.4.3), the lower end.
std::vector<double> published_acceptance(SpeculationMethod method, std::int64_t k) {
  std::vector<double> shares;
  if (method == SpeculationMethod::kEagle3) shares = {0.700, 0.477, 0.297};
  if (method == SpeculationMethod::kMtp) shares = {0.85};
  shares.resize(static_cast<std::size_t>(std::min<std::int64_t>(k, std::ssize(shares))));
  return shares;
}

SpeculationRules resolve_speculation(const SpeculationConfig& c) {
  const SpeculationMethod method = *c.method;
  SpeculationRules r;
  r.tokens = *c.num_speculative_tokens;
  r.lookahead = method == SpeculationMethod::kNgram ? 0 : r.tokens;
  r.drops_last_hit =
      method != SpeculationMethod::kDraftModel && method != SpeculationMethod::kNgram;
  r.acceptance = c.acceptance.empty() ? published_acceptance(method, r.tokens) : c.acceptance;
  return r;
}

bool schedules_ahead(SpeculationMethod method, bool early) {
  if (method == SpeculationMethod::kNgram) return false;
  return method != SpeculationMethod::kDraftModel || !early;
}

}  // namespace routesim::sim
