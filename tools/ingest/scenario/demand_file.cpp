#include "tools/ingest/scenario/demand_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/tree/csv_splitter.h"
#include "tools/ingest/tree/parse_config.h"
#include "workloads/traces/text_scan.h"

namespace routesim::tools {

namespace {

constexpr std::int64_t kDaySeconds = 86'400;
constexpr Duration kLatest = Duration::seconds(100 * kDaySeconds);
constexpr double kHighestRate = 1e6;

enum class TimeForm { kSeconds, kClock, kDate };

struct TimeRead {
  TimeForm form = TimeForm::kSeconds;
  Duration at;  ///< Of a date: since 1970.
};

/// `9:30`, `09:30` or `09:30:15`; hours may go on beyond 24.
std::optional<Duration> clock_time(std::string_view text) {
  std::array<std::int64_t, 3> parts{};
  std::size_t n = 0;
  for (std::size_t begin = 0; begin <= text.size(); ++n) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    const std::string_view digits = text.substr(begin, end - begin);
    const bool is_number =
        std::all_of(digits.begin(), digits.end(), [](char c) { return workloads::is_digit(c); });
    if (n == parts.size() || digits.empty() || digits.size() > 4 || !is_number) return {};
    if (n > 0 && digits.size() != 2) return {};
    for (const char c : digits) parts[n] = 10 * parts[n] + (c - '0');
    begin = end + 1;
  }
  if (n < 2 || parts[1] > 59 || parts[2] > 59) return {};
  return Duration::seconds(3600 * parts[0] + 60 * parts[1] + parts[2]);
}

std::optional<TimeRead> time_of(const std::string& text) {
  if (const auto seconds = workloads::parse_real(text))
    return TimeRead{TimeForm::kSeconds, Duration::from_seconds(*seconds)};
  if (const auto clock = clock_time(text)) return TimeRead{TimeForm::kClock, *clock};
  std::string date = text;
  // Spreadsheets write minutes only.
  const bool minutes_only = std::count(date.begin(), date.end(), ':') == 1 && date.size() == 16;
  if (minutes_only) date += ":00";
  if (const auto ns = workloads::parse_date_time_ns(date))
    return TimeRead{TimeForm::kDate, Duration::nanoseconds(*ns)};
  return std::nullopt;
}

class DemandRows {
 public:
  DemandRows(const std::string& key, Diagnostics& out) : key_(key), out_(out) {}

  /// The header: where the two columns stand. False after an error.
  bool header(const std::vector<std::string>& fields, const std::vector<SourceLocation>& places) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      std::optional<std::size_t>* column = fields[i] == "time"   ? &time_
                                           : fields[i] == "rate" ? &rate_
                                                                 : nullptr;
      if (column != nullptr && *column) out_.error(places[i], key_, "a column stands here twice");
      if (column != nullptr) *column = i;
      out_.key(key_use(places[i], "demand", key_ + "." + fields[i],
                       column != nullptr ? Fate::kUsed : Fate::kNoEffect,
                       column != nullptr ? "" : "a demand has times and rates"));
    }
    for (const auto& [column, name] : {std::pair(time_, "time"), std::pair(rate_, "rate")})
      if (!column)
        out_.error(places.front(), key_, std::string("the column `") + name + "` is missing",
                   "the first line names the columns: time,rate");
    return !out_.has_errors();
  }

  void row(const std::vector<std::string>& fields, const std::vector<SourceLocation>& places) {
    if (fields.size() == 1 && fields[0].empty()) return;
    if (fields.size() <= std::max(*time_, *rate_))
      return out_.error(places.back(), key_, "the line ends before its time and rate");
    const std::optional<Duration> at = time(fields[*time_], places[*time_]);
    const Parsed<double> rate = parse_real(fields[*rate_], {.min = 0, .max = kHighestRate});
    if (!rate.value) return out_.error(places[*rate_], key_, rate.message, rate.hint);
    if (at) points_.push_back({*at, *rate.value});
  }

  std::vector<workloads::DemandPoint> take() { return std::move(points_); }

 private:
  std::optional<Duration> time(const std::string& text, const SourceLocation& place) {
    const std::optional<TimeRead> read = time_of(text);
    std::string fault;
    if (!read)
      fault = "must be seconds, hh:mm or a date with a time (got " + printable(text) + ")";
    else if (form_ && *form_ != read->form)
      fault = "is written in another way than the times before it (got " + printable(text) + ")";
    if (fault.empty() && !form_ && read->form == TimeForm::kDate)
      midnight_ = Duration::seconds(kDaySeconds) * (read->at.ns() / (kDaySeconds * 1'000'000'000));
    const Duration at = read ? read->at - midnight_ : Duration::zero();
    if (fault.empty() && !points_.empty() && at <= points_.back().at)
      fault = "must be later than the line before it (got " + printable(text) + ")";
    if (fault.empty() && (at < Duration::zero() || at > kLatest))
      fault = "must be within 100 days (got " + printable(text) + ")";
    if (read) form_ = read->form;
    if (fault.empty()) return at;
    out_.error(place, key_, fault);
    return std::nullopt;
  }

  std::string key_;
  Diagnostics& out_;
  std::optional<std::size_t> time_, rate_;
  std::optional<TimeForm> form_;  ///< Of the first row.
  Duration midnight_;             ///< Of the first date.
  std::vector<workloads::DemandPoint> points_;
};

}  // namespace

std::vector<workloads::DemandPoint> read_demand_csv(const std::string& path,
                                                    const SourceLocation& where,
                                                    const std::string& key,
                                                    Diagnostics& diagnostics) {
  std::string text;
  if (!read_text_file(path, where, key, ConfigLimits{}.max_bytes, text, diagnostics)) return {};
  Diagnostics found;
  DemandRows rows(key, found);
  CsvSplitter splitter(std::string_view(text).substr(text.starts_with("\xEF\xBB\xBF") ? 3 : 0),
                       path, found);
  std::vector<std::string> fields;
  std::vector<SourceLocation> places;
  if (!splitter.next(fields, places))
    found.error(where, key, printable(path, 200) + " is empty");
  else if (rows.header(fields, places))
    // After the first error only the same would follow.
    while (!found.has_errors() && splitter.next(fields, places)) rows.row(fields, places);
  std::vector<workloads::DemandPoint> points = rows.take();
  if (points.empty() && !found.has_errors())
    found.error(where, key, printable(path, 200) + " has no lines below its header");
  append(diagnostics, found);
  if (found.has_errors()) points.clear();
  return points;
}

}  // namespace routesim::tools
