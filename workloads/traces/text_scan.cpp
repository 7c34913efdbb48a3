#include "workloads/traces/text_scan.h"

#include <charconv>
#include <cmath>

#include "base/rng.h"
#include "base/text.h"

namespace routesim::workloads {
namespace {

std::string_view trim(std::string_view s) { return trimmed(s, " \t"); }

/// The digits at the front of `s` as a number of exactly `width` digits.
std::optional<int> take_digits(std::string_view& s, std::size_t width) {
  if (s.size() < width) return std::nullopt;
  int value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    if (!is_digit(s[i])) return std::nullopt;
    value = value * 10 + (s[i] - '0');
  }
  s.remove_prefix(width);
  return value;
}

bool take(std::string_view& s, char c) {
  if (s.empty() || s.front() != c) return false;
  s.remove_prefix(1);
  return true;
}

/// Days since 1970-01-01 of a date of the Gregorian calendar (Hinnant's algorithm).
std::int64_t days_from_civil(int y, int m, int d) {
  const int year = m <= 2 ? y - 1 : y;
  const int era = year / 400;
  const int year_of_era = year - era * 400;
  const int day_of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
  const int day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return static_cast<std::int64_t>(era) * 146097 + day_of_era - 719468;
}

int days_in_month(int y, int m) {
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
  return m == 2 && leap ? 29 : kDays[m - 1];
}

/// `.fraction` of a second in nanoseconds, truncated to `digits`.
std::optional<std::int64_t> take_fraction(std::string_view& s, int digits) {
  if (!take(s, '.')) return 0;
  if (s.empty() || !is_digit(s.front())) return std::nullopt;
  std::int64_t ns = 0;
  std::int64_t unit = 100'000'000;
  for (int i = 0; !s.empty() && is_digit(s.front()); ++i, unit /= 10) {
    if (i < digits) ns += (s.front() - '0') * unit;
    s.remove_prefix(1);
  }
  return ns;
}

}  // namespace

bool LineReader::refill() {
  buffer_.resize(64U << 10U);
  in_.read(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  buffer_.resize(static_cast<std::size_t>(in_.gcount()));
  at_ = 0;
  return !buffer_.empty();
}

bool LineReader::next(std::string& line) {
  for (;;) {
    line.clear();
    if (at_ == buffer_.size() && !refill()) return false;
    ++number_;
    // getline would swallow a file without newlines whole.
    for (bool ended = false; !ended && (at_ < buffer_.size() || refill());) {
      const std::size_t newline = buffer_.find('\n', at_);
      ended = newline != std::string::npos;
      const std::size_t end = ended ? newline : buffer_.size();
      if (line.size() + (end - at_) > most_bytes_) {
        too_long_ = true;
        return false;
      }
      line.append(buffer_, at_, end - at_);
      at_ = ended ? end + 1 : end;
    }
    if (number_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!trim(line).empty()) return true;
  }
}

bool split_csv(std::string_view line, std::vector<std::string>& fields, std::vector<int>& columns) {
  fields.clear();
  columns.clear();
  for (std::size_t i = 0;;) {
    std::string field;
    columns.push_back(static_cast<int>(i) + 1);
    if (i < line.size() && line[i] == '"') {
      for (++i;; ++i) {
        if (i == line.size()) return false;
        if (line[i] != '"') {
          field.push_back(line[i]);
        } else if (i + 1 < line.size() && line[i + 1] == '"') {
          field.push_back('"');
          ++i;
        } else {
          break;
        }
      }
      ++i;
      if (i < line.size() && line[i] != ',') return false;
    } else {
      const std::size_t end = std::min(line.find(',', i), line.size());
      field = trim(line.substr(i, end - i));
      if (field.find('"') != std::string::npos) return false;
      i = end;
    }
    fields.push_back(std::move(field));
    if (i >= line.size()) return true;
    ++i;
  }
}

std::optional<double> parse_real(std::string_view text) {
  text = trim(text);
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || !(is_digit(digits.front()) || digits.front() == '.')) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  text = trim(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  const std::optional<double> real = parse_real(text);
  if (!real || std::fabs(*real) > 0x1p53 || std::floor(*real) != *real) return std::nullopt;
  return static_cast<std::int64_t>(*real);
}

std::optional<std::int64_t> parse_date_time_ns(std::string_view text, int digits) {
  std::string_view s = trim(text);
  const auto year = take_digits(s, 4);
  if (!year || !take(s, '-')) return std::nullopt;
  const auto month = take_digits(s, 2);
  if (!month || !take(s, '-')) return std::nullopt;
  const auto day = take_digits(s, 2);
  if (!day || !(take(s, ' ') || take(s, 'T'))) return std::nullopt;
  const auto hour = take_digits(s, 2);
  if (!hour || !take(s, ':')) return std::nullopt;
  const auto minute = take_digits(s, 2);
  if (!minute || !take(s, ':')) return std::nullopt;
  const auto second = take_digits(s, 2);
  if (!second) return std::nullopt;
  const auto fraction = take_fraction(s, digits);
  if (!fraction || !(s.empty() || s == "Z" || s == "+00:00" || s == "+0000")) return std::nullopt;
  // The nanoseconds of later years do not fit into 64 bits.
  if (*year < 1970 || *year > 2200 || *month < 1 || *month > 12 || *day < 1 ||
      *day > days_in_month(*year, *month) || *hour > 23 || *minute > 59 || *second > 60)
    return std::nullopt;
  const std::int64_t seconds =
      days_from_civil(*year, *month, *day) * 86400 + *hour * 3600 + *minute * 60 + *second;
  return seconds * 1'000'000'000 + *fraction;
}

std::uint64_t hash_bytes(std::string_view bytes) {
  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (const char c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return mix64(h, bytes.size());
}

std::int64_t count_code_points(std::string_view utf8) {
  std::int64_t n = 0;
  for (const char c : utf8) n += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  return n;
}

std::int64_t count_wide_code_points(std::string_view utf8) {
  // U+2E80 is E2 BA 80, and code points are in the order of their bytes.
  std::int64_t n = 0;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto lead = static_cast<unsigned char>(utf8[i]);
    const auto next = i + 1 < utf8.size() ? static_cast<unsigned char>(utf8[i + 1]) : 0U;
    n += lead > 0xE2U || (lead == 0xE2U && next >= 0xBAU);
  }
  return n;
}

}  // namespace routesim::workloads
