// Everything a run found, in the form the renderers share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/run_result.h"
#include "tools/input/measured_csv.h"

namespace routesim::tools {

/// One variant's result, beside the published numbers it is compared with.
struct VariantReport {
  std::string name;
  sim::RunResult result;
  MeasuredTable measured;  ///< Rows of this variant's policy; empty when there are none.
};

struct Report {
  std::string scenario;
  std::string question;
  std::uint64_t seed = 0;
  std::string version;
  std::vector<VariantReport> variants;
};

/// The published value of a stage in the metric's base unit. A row belongs to the stage whose name
/// it carries, or else to the only reported stage with its rate.
std::optional<double> measured_value(const VariantReport& variant, const sim::StageResult& stage,
                                     std::string_view metric, std::string_view statistic);

/// 100 (simulated - measured) / measured.
double error_percent(double simulated, double measured);

/// A table for people: per metric, simulated beside measured for every variant, and the difference
/// between the variants; then the summary rows.
std::string render_text(const Report& report);

/// One JSON object; its stages are inference-perf lifecycle reports.
std::string render_json(const Report& report);

/// Tidy CSV: one number per row, beside the published one where there is one.
std::string render_csv(const Report& report);

}  // namespace routesim::tools
