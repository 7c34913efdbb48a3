#include "tools/results/trust_errors.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/describe.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/results/text_table.h"
#include "tools/results/trust_errors_csv.h"

namespace routesim::tools {

namespace {

using models::Trust;

std::vector<std::string_view> pieces(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Trust trust_named(std::string_view name) {
  for (const Trust trust : trust_classes())
    if (enum_name(trust) == name) return trust;
  ROUTESIM_CHECK(false, "unknown class of step times");
  return Trust::kDataSheet;
}

double known_number(std::string_view text) {
  const std::optional<double> value = number_from(text);
  ROUTESIM_CHECK(value.has_value(), "a table of errors has a cell that is no number");
  return *value;
}

double mean_error(Trust trust, std::string_view quantity) {
  for (const TrustError& e : trust_errors())
    if (e.trust == trust && e.quantity == quantity) return e.mean;
  return 0;
}

}  // namespace

std::span<const Trust> trust_classes() {
  static constexpr std::array kClasses = {Trust::kFitted, Trust::kExtrapolated, Trust::kKernels,
                                          Trust::kRoofline, Trust::kDataSheet};
  static_assert(kClasses.size() == EnumNames<Trust>::value.size());
  return kClasses;
}

std::vector<TrustError> parse_trust_errors(std::string_view csv) {
  std::vector<TrustError> errors;
  for (const std::string_view line : pieces(csv, '\n')) {
    if (line.empty() || line == kTrustHeader) continue;
    const std::vector<std::string_view> cells = pieces(line, ',');
    ROUTESIM_CHECK(cells.size() == 5, "a row of the table of errors must have five cells");
    errors.push_back({.trust = trust_named(cells[0]),
                      .quantity = std::string(cells[1]),
                      .cells = static_cast<std::size_t>(known_number(cells[2])),
                      .mean = known_number(cells[3]),
                      .worst = known_number(cells[4])});
  }
  return errors;
}

const std::vector<TrustError>& trust_errors() {
  static const std::vector<TrustError> errors = parse_trust_errors(kTrustErrorsCsv);
  return errors;
}

std::string_view trust_clause(Trust trust) {
  switch (trust) {
    case Trust::kFitted:
      return "step times that were fitted to measurements";
    case Trust::kExtrapolated:
      return "fitted step times, outside the range of the measurements";
    case Trust::kKernels:
      return "sums of measured kernels, with nothing fitted to this deployment";
    case Trust::kRoofline:
      return "a roofline that was not fitted to this deployment";
    case Trust::kDataSheet:
      break;
  }
  return "a roofline of a data sheet, with no measurement of this accelerator";
}

std::string_view trust_quantity(std::string_view metric, std::string_view statistic) {
  if (metric == "output_throughput" && statistic == "mean") return "output tokens/s";
  if (metric == "ttft" && statistic == "mean") return "TTFT mean";
  if (metric == "ttft" && statistic.starts_with("p9")) return "TTFT p90 and above";
  if ((metric == "tpot" || metric == "itl" || metric == "ntpot") && statistic == "mean")
    return "time per output token";
  return {};
}

std::string errors_text(std::span<const TrustError> errors) {
  return comma_list(errors, [](const TrustError& e) {
    return e.quantity + " " + fixed_text(e.mean, 1) + " % (" + std::to_string(e.cells) +
           ", worst " + fixed_text(e.worst, 1) + " %)";
  });
}

std::string trust_errors_text(Trust trust) {
  std::vector<TrustError> errors = trust_errors();
  std::erase_if(errors, [trust](const TrustError& e) { return e.trust != trust; });
  return trust_errors_text(trust, errors);
}

std::string trust_errors_text(Trust trust, std::span<const TrustError> errors) {
  const std::string text = errors_text(errors);
  if (text.empty()) return "no published number of this class was compared";
  const bool in_sample = trust == Trust::kFitted || trust == Trust::kExtrapolated;
  return std::string("mean error against published numbers") +
         (in_sample ? ", some of which were fitted to" : "") + " (how many, worst): " + text;
}

double step_time_band(Trust trust) {
  for (auto t = static_cast<int>(trust); t >= 0; --t) {
    const auto known = static_cast<Trust>(t);
    const double band =
        std::max(mean_error(known, "output tokens/s"), mean_error(known, "time per output token"));
    if (band > 0) return std::min(0.9, band / 100);
  }
  return 0;
}

std::string trust_text(const sim::RunResult& result) {
  const Trust trust = result.trust();
  std::string text = "rests on " + std::string(trust_clause(trust));
  for (const sim::StepTimes& pool : result.step_times)
    if (pool.trust == Trust::kExtrapolated)
      text += "; " + printable(pool.pool) + " was outside it for " +
              fixed_text(100 * pool.extrapolated_s / pool.busy_s, 0) + " % of its time";
  return text + "; " + trust_errors_text(trust);
}

}  // namespace routesim::tools
