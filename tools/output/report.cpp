#include "tools/output/report.h"

#include <array>

#include "tools/input/scalar_parse.h"
#include "tools/output/metrics.h"

namespace routesim::tools {

namespace {

bool has_rate(const MeasuredRow& row, double rate) { return number_from(row.rate) == rate; }

/// Whether some reported stage carries this row's stage as its name.
bool names_a_stage(const VariantReport& variant, const MeasuredRow& row) {
  for (const sim::StageResult& stage : variant.result.stages)
    if (stage.info.name == row.stage) return true;
  return false;
}

bool belongs_to(const VariantReport& variant, const MeasuredRow& row,
                const sim::StageResult& stage) {
  if (row.stage == stage.info.name) return true;
  if (row.stage == "all" || names_a_stage(variant, row)) return false;
  int same_rate = 0;
  for (const sim::StageResult* other : reported_stages(variant.result))
    if (has_rate(row, other->info.requested_rate)) ++same_rate;
  return same_rate == 1 && stage.info.reported && has_rate(row, stage.info.requested_rate);
}

}  // namespace

std::optional<double> measured_value(const VariantReport& variant, const sim::StageResult& stage,
                                     std::string_view metric, std::string_view statistic) {
  for (const MeasuredRow& row : variant.measured.rows)
    if (row.statistic == statistic && canonical_metric(row.metric) == canonical_metric(metric) &&
        belongs_to(variant, row, stage))
      return to_base_unit(row.value, row.unit);
  return std::nullopt;
}

std::optional<double> measured_row_value(const VariantReport& variant, const MeasuredRow& row,
                                         const sim::StageResult& stage) {
  return belongs_to(variant, row, stage) ? to_base_unit(row.value, row.unit) : std::nullopt;
}

std::span<const double> quantile_levels() {
  static constexpr std::array<double, 33> kLevels = {
      0,  0.5, 1,  2,  3,  5,  7.5, 10,   15, 20, 25, 30, 35,   40,   45,   50, 55,
      60, 65,  70, 75, 80, 85, 90,  92.5, 95, 97, 98, 99, 99.5, 99.8, 99.9, 100};
  return kLevels;
}

std::vector<Judgement> judgements_of(const Report& report) {
  std::vector<Judgement> all = report.expectations;
  if (report.interrupted)
    all.push_back({.what = "the run ends",
                   .scope = {},
                   .where = {},
                   .decision = Decision::kFails,
                   .detail = "an interrupted run: the results are partial"});
  return all;
}

double error_percent(double simulated, double measured) {
  return 100 * (simulated - measured) / measured;
}

}  // namespace routesim::tools
