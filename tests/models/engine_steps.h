// The measured static-batch rows, read from scenarios/measured.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "models/calibration.h"

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
                             .ttft_ms = std::stod(cells[21]),
                             .tpot_ms = std::stod(cells[22]),
                             .label = cells[0]};
    const bool queued = tp == 2 && row.isl == 4096 &&
                        (row.concurrency == 128 || (row.concurrency == 64 && row.osl >= 512));
    if (!queued) rows.push_back(row);
  }
  return rows;
}

}  // namespace routesim::models
