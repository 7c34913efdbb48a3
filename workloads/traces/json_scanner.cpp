#include <utility>

#include "base/text.h"
#include "workloads/traces/text_scan.h"

namespace routesim::workloads {
namespace {

bool is_blank(int c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

void append_utf8(std::string& out, std::uint32_t c) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((c >> shift) & 0x3F)); };
  const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  static constexpr std::uint32_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(kLead[more] | (c >> (6 * more)));
  for (int k = more - 1; k >= 0; --k) tail(6 * k);
}

JsonScanner::JsonScanner(std::string_view text, std::int64_t line)
    : cursor_(text.data()), end_(text.data() + text.size()), line_(line) {}

JsonScanner::JsonScanner(std::istream& in) : in_(&in) {
  buffer_.resize(64U << 10U);
  cursor_ = end_ = buffer_.data();
}

bool JsonScanner::fail(std::string message) {
  if (error_.empty()) error_ = std::move(message);
  return false;
}

bool JsonScanner::fail_at(std::string message, int column) {
  if (ok()) column_ = column;
  return fail(std::move(message));
}

int JsonScanner::value_column() {
  (void)peek();
  return column_;
}

bool JsonScanner::refill() {
  if (in_ == nullptr) return false;
  in_->read(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  cursor_ = buffer_.data();
  end_ = cursor_ + in_->gcount();
  return cursor_ != end_;
}

int JsonScanner::look() {
  if (cursor_ == end_ && !refill()) return -1;
  return static_cast<unsigned char>(*cursor_);
}

int JsonScanner::get() {
  const int c = look();
  if (c < 0) return c;
  ++cursor_;
  if (c == '\n') {
    ++line_;
    column_ = 1;
  } else {
    ++column_;
  }
  return c;
}

void JsonScanner::skip_blanks() {
  while (is_blank(look())) get();
}

bool JsonScanner::expect(char c, const char* what) {
  if (!ok()) return false;
  skip_blanks();
  if (look() != c) return fail(std::string("expected ") + what);
  get();
  return true;
}

JsonScanner::Kind JsonScanner::peek() {
  if (!ok()) return Kind::kInvalid;
  skip_blanks();
  const int c = look();
  if (c < 0) return Kind::kEnd;
  if (c == '{') return Kind::kObject;
  if (c == '[') return Kind::kArray;
  if (c == '"') return Kind::kString;
  if (c == 't' || c == 'f') return Kind::kBoolean;
  if (c == 'n') return Kind::kNull;
  if (c == '-' || is_digit(c)) return Kind::kNumber;
  return Kind::kInvalid;
}

bool JsonScanner::begin(char bracket, const char* what) {
  if (!expect(bracket, what)) return false;
  if (first_.size() == kMaxDepth) return fail("nested too deeply");
  first_.push_back(true);
  return true;
}

/// False at the closing bracket, which is consumed. Otherwise the comma is consumed.
bool JsonScanner::next(char bracket, const char* what) {
  if (!ok()) return false;
  skip_blanks();
  if (look() == bracket) {
    get();
    first_.pop_back();
    return false;
  }
  if (!first_.back() && !expect(',', what)) return false;
  first_.back() = false;
  return true;
}

bool JsonScanner::next_member(std::string& key) {
  return next('}', "',' or '}'") && read_string(key) && expect(':', "':'");
}

bool JsonScanner::next_element() {
  if (!next(']', "',' or ']'")) return false;
  // [1,] is caught here: a comma must be followed by a value.
  const Kind kind = peek();
  return kind != Kind::kInvalid && kind != Kind::kEnd ? true : fail("expected a value");
}

bool JsonScanner::read_hex4(std::uint32_t& out) {
  out = 0;
  for (int i = 0; i < 4; ++i) {
    const int c = get();
    const int digit = c < 0 ? -1 : hex_value(static_cast<char>(c));
    if (digit < 0) return fail("expected four hex digits after \\u");
    out = out * 16 + static_cast<std::uint32_t>(digit);
  }
  return true;
}

bool JsonScanner::read_escape(std::string& out) {
  const int c = get();
  static constexpr std::string_view kNames = "\"\\/bfnrt";
  static constexpr std::string_view kMeaning = "\"\\/\b\f\n\r\t";
  if (c != 'u') {
    const std::size_t i = c < 0 ? std::string_view::npos : kNames.find(static_cast<char>(c));
    if (i == std::string_view::npos) return fail("unknown escape in a string");
    out.push_back(kMeaning[i]);
    return true;
  }
  std::uint32_t unit = 0;
  if (!read_hex4(unit)) return false;
  if (unit >= 0xD800 && unit < 0xDC00 && look() == '\\') {
    get();
    std::uint32_t low = 0;
    if (get() != 'u' || !read_hex4(low) || low < 0xDC00 || low > 0xDFFF)
      return fail("broken surrogate pair in a string");
    unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
  } else if (unit >= 0xD800 && unit < 0xE000) {
    unit = 0xFFFD;  // A lone surrogate is not a character; data sets do contain them.
  }
  append_utf8(out, unit);
  return true;
}

bool JsonScanner::read_string(std::string& out) {
  out.clear();
  if (!expect('"', "a string")) return false;
  for (;;) {
    const int c = get();
    if (c < 0) return fail("string without an end");
    if (c == '"') return true;
    if (c < 0x20) return fail("control character in a string");
    if (out.size() >= kMaxString) return fail("string longer than 16 MiB");
    if (c == '\\') {
      if (!read_escape(out)) return false;
    } else {
      out.push_back(static_cast<char>(c));
    }
  }
}

/// A number as it is written.
bool JsonScanner::read_number_text(std::string& out) {
  if (!ok()) return false;
  if (peek() != Kind::kNumber) return fail("expected a number");
  out.clear();
  const auto take = [&] { out.push_back(static_cast<char>(get())); };
  const auto digits = [&] {
    if (!is_digit(look())) return fail("malformed number");
    while (is_digit(look()) && out.size() < 400) take();
    return true;
  };
  if (look() == '-') take();
  const bool zero = look() == '0';
  if (!digits()) return false;
  if (zero && out.size() > (out.front() == '-' ? 2 : 1)) return fail("number with a leading zero");
  if (look() == '.') {
    take();
    if (!digits()) return false;
  }
  if (look() == 'e' || look() == 'E') {
    take();
    if (look() == '+' || look() == '-') take();
    if (!digits()) return false;
  }
  return true;
}

bool JsonScanner::read_real(double& out) {
  std::string text;
  const int column = value_column();
  if (!read_number_text(text)) return false;
  const std::optional<double> value = parse_real(text);
  if (!value) return fail_at("number out of range (got " + text + ")", column);
  out = *value;
  return true;
}

/// Reads a number that is nothing but at most 18 digits and stands whole in the buffer, as nearly
/// all numbers of a trace do. Otherwise reads nothing.
bool JsonScanner::read_digits(std::int64_t& out) {
  std::int64_t value = 0;
  const char* p = cursor_;
  for (; p != end_ && is_digit(*p) && p - cursor_ < 19; ++p) value = value * 10 + (*p - '0');
  const auto digits = static_cast<int>(p - cursor_);
  if (digits == 0 || digits > 18 || (digits > 1 && *cursor_ == '0')) return false;
  if (p == end_ ? in_ != nullptr : *p == '.' || *p == 'e' || *p == 'E') return false;
  cursor_ = p;
  column_ += digits;
  out = value;
  return true;
}

/// Reads a comma and a number of digits that another comma or the end of the array follows.
/// Otherwise reads nothing.
bool JsonScanner::read_next_digits(std::int64_t& out) {
  constexpr std::ptrdiff_t kLongest = 24;
  if (end_ - cursor_ < kLongest || *cursor_ != ',') return false;
  const char* p = cursor_ + (cursor_[1] == ' ' ? 2 : 1);
  const char* const digits = p;
  std::int64_t value = 0;
  for (; is_digit(*p) && p - digits < 19; ++p) value = value * 10 + (*p - '0');
  const std::ptrdiff_t count = p - digits;
  if (count == 0 || count > 18 || (count > 1 && *digits == '0')) return false;
  if (*p != ',' && *p != ']') return false;
  column_ += static_cast<int>(p - cursor_);
  cursor_ = p;
  out = value;
  return true;
}

bool JsonScanner::read_integers(std::vector<std::uint64_t>& out) {
  std::int64_t value = 0;
  return elements([&] {
    if (!read_integer(value)) return false;
    do out.push_back(static_cast<std::uint64_t>(value));
    while (read_next_digits(value));
    return true;
  });
}

bool JsonScanner::read_integer(std::int64_t& out) {
  if (!ok()) return false;
  skip_blanks();
  if (read_digits(out)) return true;
  std::string text;
  const int column = value_column();
  if (!read_number_text(text)) return false;
  const std::optional<std::int64_t> value = parse_integer(text);
  if (!value) return fail_at("expected a whole number (got " + text + ")", column);
  out = *value;
  return true;
}

bool JsonScanner::read_word(std::string_view word) {
  for (const char c : word)
    if (get() != c) return fail("expected " + std::string(word));
  return true;
}

bool JsonScanner::skip() {
  std::string scratch;
  switch (peek()) {
    case Kind::kObject:
      return members([this](const std::string&) { return skip(); });
    case Kind::kArray:
      return elements([this] { return skip(); });
    case Kind::kString:
      return read_string(scratch);
    case Kind::kNumber:
      return read_number_text(scratch);
    case Kind::kBoolean:
      return read_word(look() == 't' ? "true" : "false");
    case Kind::kNull:
      return read_word("null");
    case Kind::kEnd:
    case Kind::kInvalid:
      break;
  }
  return fail("expected a value");
}

bool JsonScanner::skip_raw(std::string_view line, std::string_view& out) {
  const auto begin = static_cast<std::size_t>(value_column()) - 1;
  if (!skip()) return false;
  out = line.substr(begin, static_cast<std::size_t>(column()) - 1 - begin);
  return true;
}

bool JsonScanner::at_end() {
  if (!ok()) return false;
  skip_blanks();
  return look() < 0;
}

}  // namespace routesim::workloads
