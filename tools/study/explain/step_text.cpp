#include "tools/study/explain/step_text.h"

#include <array>
#include <vector>

#include "base/text.h"
#include "models/kernels/kernel_latency.h"
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

}  // namespace

std::string step_text(const sim::ResolvedPool& pool) {
  std::string text = "step times of " + printable(pool.config.name) + ": " +
                     printable(pool.latency->provenance()) + "\n";
  TextTable table(1);
  std::vector<std::string> header = {"operation, us"};
  header.insert(header.end(), kStepNames.begin(), kStepNames.end());
  const auto* kernels = dynamic_cast<const models::KernelLatency*>(pool.latency.get());
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
  std::vector<std::string> all = {"step"};
  for (const models::BatchShape& step : kSteps)
    all.push_back(fixed_text(static_cast<double>(pool.latency->step_ticks(step)) * 1e3 /
                                 static_cast<double>(models::kTicksPerMillisecond),
                             0));
  if (kernels != nullptr) all.insert(all.end(), {"", ""});
  table.add_row(all);
  return text + table.str();
}

}  // namespace routesim::tools
