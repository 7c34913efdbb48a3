#include "tools/study/validate/measured_units.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/scalar_parse.h"
#include "base/text.h"

namespace routesim::tools {

namespace {

using Words = std::span<const std::string_view>;

constexpr std::array<std::string_view, 10> kTimes = {"ttft",
                                                     "tpot",
                                                     "ntpot",
                                                     "itl",
                                                     "request_latency",
                                                     "schedule_delay",
                                                     "benchmark_duration",
                                                     "stage_wall_time",
                                                     "stage_start_offset",
                                                     "send_duration"};
constexpr std::array<std::string_view, 6> kTimeUnits = {"s",       "ms",       "us",
                                                        "s/token", "ms/token", "s/tok"};
constexpr std::array<std::string_view, 3> kTokenRates = {"output_throughput", "input_throughput",
                                                         "total_throughput"};
constexpr std::array<std::string_view, 2> kTokenRateUnits = {"tok/s", "tokens/s"};
constexpr std::array<std::string_view, 4> kRequestRates = {
    "request_throughput", "requests_per_sec_sent", "achieved_rate", "good_request_throughput"};
constexpr std::array<std::string_view, 1> kRequestRateUnits = {"req/s"};
constexpr std::array<std::string_view, 2> kLengths = {"input_length", "output_length"};
constexpr std::array<std::string_view, 1> kLengthUnits = {"tokens"};
constexpr std::array<std::string_view, 4> kCounts = {"successful_requests", "failed_requests",
                                                     "requests_total", "preemptions"};
constexpr std::array<std::string_view, 1> kCountUnits = {"count"};
constexpr std::array<std::string_view, 4> kShares = {"prefix_cache_hit_rate", "kv_cache_usage",
                                                     "failure_rate", "goodput"};
constexpr std::array<std::string_view, 2> kShareUnits = {"ratio", "%"};

struct Quantity {
  Words metrics;
  Words units;
};
constexpr std::array<Quantity, 6> kQuantities = {{{kTimes, kTimeUnits},
                                                  {kTokenRates, kTokenRateUnits},
                                                  {kRequestRates, kRequestRateUnits},
                                                  {kLengths, kLengthUnits},
                                                  {kCounts, kCountUnits},
                                                  {kShares, kShareUnits}}};

bool has(Words words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::string why_impossible(const MeasuredRow& row, std::string_view metric, std::string_view unit) {
  const auto quantity =
      std::find_if(kQuantities.begin(), kQuantities.end(),
                   [metric](const Quantity& q) { return has(q.metrics, metric); });
  if (quantity == kQuantities.end()) return {};
  // Without a unit the number is in the metric's own.
  if (!unit.empty() && !has(quantity->units, unit))
    return printable(row.unit) + " is no unit of " + printable(row.metric);
  const double most = unit == "%" ? 100 : 1;
  if (row.value < 0 || (has(kShares, metric) && row.value > most))
    return "the published value is impossible (" + number_text(row.value) + " " +
           printable(row.unit) + ")";
  return {};
}

}  // namespace routesim::tools
