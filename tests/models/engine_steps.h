// The measured static-batch rows, read from scenarios/measured.
#pragma once

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "models/calibration.h"
#include "models/latency_model.h"

namespace routesim::models {

/// The bf16 rows of one TP degree; rows that queued for KV (see the data's README) are left out.
inline std::vector<StaticBatchRow> engine_steps(int tp) {
  std::ifstream file(ROUTESIM_SOURCE_DIR
                     "/scenarios/measured/engine_steps/qwen3_32b_h100_vllm_measured.csv");
  std::vector<StaticBatchRow> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::vector<std::string> cells;
    std::stringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
    if (cells.size() < 23 || cells[4] == "fp8" || cells[9] != std::to_string(tp)) continue;
    const StaticBatchRow row{.isl = std::stoll(cells[6]),
                             .osl = std::stoll(cells[7]),
                             .concurrency = std::stoll(cells[8]),
                             .tpot_ms = std::stod(cells[22]),
                             .label = cells[0]};
    const bool queued = tp == 2 && row.isl == 4096 &&
                        (row.concurrency == 128 || (row.concurrency == 64 && row.osl >= 512));
    if (!queued) rows.push_back(row);
  }
  return rows;
}

/// TPOT of a row as a latency model sees it: its prompts prefilled one per mixed step, the other
/// steps pure decode.
inline double predicted_tpot_ms(const LatencyModel& r, const StaticBatchRow& row) {
  const double per_step = static_cast<double>(row.concurrency - 1) / static_cast<double>(row.osl);
  const auto prompts = static_cast<std::int64_t>(std::ceil(std::max(1.0, per_step)));
  const BatchShape pure{.decode_requests = row.concurrency,
                        .decode_context = row.concurrency * (row.isl + row.osl / 2)};
  BatchShape mixed = pure;
  mixed.prefill_requests = prompts;
  mixed.prefill_tokens = mixed.prefill_context = prompts * row.isl;
  mixed.prefill_pairs = prompts * row.isl * row.isl;
  const auto ms = [&](const BatchShape& s) {
    return static_cast<double>(r.step_ticks(s)) / kTicksPerMillisecond;
  };
  const double share = per_step / static_cast<double>(prompts);
  return (1 - share) * ms(pure) + share * ms(mixed);
}

}  // namespace routesim::models
