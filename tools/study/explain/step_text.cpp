#include "tools/study/explain/step_text.h"

#include <array>
#include <vector>

#include "base/text.h"
#include "models/kernels/kernel_latency.h"
#include "models/speculation.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

constexpr std::int64_t kPrompt = 2'048;
constexpr std::array<models::BatchShape, 3> kSteps = {{
    {.decode_requests = 1, .decode_context = 4'096},
    {.decode_requests = 64, .decode_context = std::int64_t{64} * 4'096},
    {.prefill_requests = 1,
     .prefill_tokens = kPrompt,
     .prefill_context = kPrompt,
     .prefill_pairs = kPrompt * kPrompt},
}};
constexpr std::array<const char*, 3> kStepNames = {"1 decode of 4096", "64 decodes of 4096",
                                                   "prompt of 2048"};

std::string_view origin_text(models::kernels::Origin origin) {
  switch (origin) {
    case models::kernels::Origin::kTable:
      return "measured";
    case models::kernels::Origin::kNearShape:
      return "scaled from a measured shape";
    case models::kernels::Origin::kPrinciples:
      break;
  }
  return "bytes and FLOP";
}

double microseconds(std::int64_t ticks) {
  return static_cast<double>(ticks) * 1e3 / static_cast<double>(models::kTicksPerMillisecond);
}

/// The batch as it is where every decoding sequence verifies `drafts`.
models::BatchShape with_drafts(models::BatchShape step, std::int64_t drafts) {
  step.draft_tokens = drafts * step.decode_requests;
  step.decode_context += step.draft_tokens;
  return step;
}

std::string speculation_text(const sim::ResolvedPool& pool,
                             const models::SpeculativeLatency& latency) {
  std::string text =
      "speculation: " + printable(latency.drafting(), 160) + "; accepted by position:";
  for (const double share : pool.rules.speculation.acceptance) text += " " + fixed_text(share, 3);
  return text + "\n";
}

/// Rows of what speculation adds to a step, and what it yields.
void add_speculation(const sim::ResolvedPool& pool, const models::SpeculativeLatency& latency,
                     std::size_t columns, TextTable& table) {
  std::vector<std::string> verify = {"drafts in the step"}, draft = {"drafting"};
  for (const models::BatchShape& step : kSteps) {
    const models::BatchShape batch = with_drafts(step, latency.tokens());
    verify.push_back(
        fixed_text(microseconds(latency.target_ticks(batch) - latency.target_ticks(step)), 0));
    draft.push_back(fixed_text(microseconds(latency.draft_ticks(batch)), 0));
  }
  std::vector<std::string> yields = {"tokens per sequence"};
  for (const models::BatchShape& step : kSteps)
    yields.push_back(
        fixed_text(step.decode_requests > 0 ? pool.rules.speculation.mean_length() : 1, 2));
  for (std::vector<std::string>* row : {&verify, &draft, &yields}) row->resize(columns);
  table.add_row(verify);
  table.add_row(draft);
  table.add_row(yields);
}

}  // namespace

std::string step_text(const sim::ResolvedPool& pool) {
  TextTable table(1);
  std::vector<std::string> header = {"operation, us"};
  header.insert(header.end(), kStepNames.begin(), kStepNames.end());
  const auto* speculative = dynamic_cast<const models::SpeculativeLatency*>(pool.latency.get());
  const models::LatencyModel* target =
      speculative != nullptr ? &speculative->target() : pool.latency.get();
  std::string text = "step times of " + printable(pool.config.name) + ": " +
                     printable(target->provenance()) + "\n";
  if (speculative != nullptr) text += speculation_text(pool, *speculative);
  const auto* kernels = dynamic_cast<const models::KernelLatency*>(target);
  if (kernels != nullptr) header.insert(header.end(), {"kernel", "known by"});
  table.add_row(header);
  if (kernels != nullptr) {
    std::vector<std::vector<models::KernelLatency::Share>> shares;
    for (const models::BatchShape& step : kSteps) shares.push_back(kernels->shares(step));
    const auto& first = shares.front();
    for (std::size_t i = 0; i < first.size(); ++i) {
      std::vector<std::string> cells = {first[i].operation};
      for (const auto& step : shares) cells.push_back(fixed_text(step[i].ns * 1e-3, 0));
      cells.push_back(first[i].kernel.empty() ? "-" : first[i].kernel);
      cells.emplace_back(origin_text(first[i].origin));
      table.add_row(cells);
    }
  }
  if (speculative != nullptr) add_speculation(pool, *speculative, header.size(), table);
  const std::int64_t drafts = speculative != nullptr ? speculative->tokens() : 0;
  std::vector<std::string> all = {"step"};
  for (const models::BatchShape& step : kSteps)
    all.push_back(fixed_text(microseconds(pool.latency->step_ticks(with_drafts(step, drafts))), 0));
  if (kernels != nullptr) all.insert(all.end(), {"", ""});
  table.add_row(all);
  return text + table.str();
}

}  // namespace routesim::tools
