#include "tools/results/report.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/results/metrics.h"
#include "tools/results/text_table.h"
#include "tools/results/trust_errors.h"

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
  if (report.interrupted) {
    Judgement& ends = all.emplace_back();
    ends.what = "the run ends";
    ends.decision = Decision::kFails;
    ends.detail = "an interrupted run: the results are partial";
  }
  return all;
}

std::string shell_word(const std::string& text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./=:,@%+").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

double error_percent(double simulated, double measured) {
  return 100 * (simulated - measured) / measured;
}

std::vector<std::string> trust_lines(const Report& report) {
  SaidOf said;
  for (const VariantReport& variant : report.variants)
    entry_of(said, trust_text(variant.result)).push_back(printable(variant.name));
  std::vector<std::string> lines;
  for (const auto& [text, names] : said)
    lines.push_back(comma_list(names, std::identity()) + ": " + text);
  return lines;
}

namespace {

/// How much the mean TTFT of a stage moves, as a ratio of at least 1.
double movement(const StageBand& band) {
  const double as_is = band.as_is.ttft_mean_s;
  const auto ratio = [as_is](double other) {
    return as_is > 0 && other > 0 ? std::max(other / as_is, as_is / other) : 1;
  };
  return std::max(ratio(band.fewer.ttft_mean_s), ratio(band.more.ttft_mean_s));
}

/// `from stage 3 on` where all later ones are overloaded too, else `in 2 of 9 stages, the first is
/// 3`; `in no stage` when all are healthy.
std::string overloaded_stages(const std::vector<StageBand>& bands, StageSide StageBand::*side) {
  const auto is_bad = [side](const StageBand& band) { return (band.*side).overloaded; };
  const auto first = std::ranges::find_if(bands, is_bad);
  if (first == bands.end()) return "in no stage";
  if (std::all_of(first, bands.end(), is_bad))
    return "from stage " + printable(first->stage) + " on";
  return "in " + std::to_string(std::ranges::count_if(bands, is_bad)) + " of " +
         std::to_string(bands.size()) + " stages, the first is " + printable(first->stage);
}

}  // namespace

std::string capacity_text(const VariantReport& variant) {
  const std::vector<StageBand>& bands = variant.capacity_band;
  if (bands.empty()) return {};
  if (std::ranges::none_of(bands, [](const StageBand& b) { return b.as_is.ttft_mean_s > 0; }))
    return {};  // The client sees no first token.
  const auto most = std::ranges::max_element(bands, {}, movement);
  const std::string percent = number_text(std::round(100 * kCapacityBand)) + " %";
  constexpr double kNoticed = 1.01;
  if (movement(*most) < kNoticed)
    return percent + " of the KV blocks, fewer or more, move the mean TTFT of no stage by 1 %";
  const auto seconds = [](double v) { return fixed_text(v, v < 1 ? 3 : 2) + " s"; };
  std::string text = percent + " of the KV blocks move the mean TTFT of " +
                     (bands.size() > 1 ? "stage " + printable(most->stage) : "the run") + " from " +
                     seconds(most->as_is.ttft_mean_s) + " to " + seconds(most->fewer.ttft_mean_s) +
                     " (fewer) or " + seconds(most->more.ttft_mean_s) + " (more)";
  const std::string as_is = overloaded_stages(bands, &StageBand::as_is);
  const std::string fewer = overloaded_stages(bands, &StageBand::fewer);
  const std::string more = overloaded_stages(bands, &StageBand::more);
  if (as_is == fewer && as_is == more)
    return text + (as_is == "in no stage" ? "; no stage is overloaded in any of the three"
                                          : "; all three are overloaded " + as_is);
  return text + "; it is overloaded " + as_is + ", with fewer " + fewer + ", with more " + more;
}

}  // namespace routesim::tools
