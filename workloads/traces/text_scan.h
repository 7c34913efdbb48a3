// Reading text strictly and without keeping it: lines, CSV fields, numbers, dates, and a JSON pull
// parser that works on a line or on a stream of any length. Private to workloads/.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace routesim::workloads {

/// Lines of a stream, read in pieces of 64 KiB, without their ends (\n or \r\n) and without a byte
/// order mark. Blank lines are skipped.
class LineReader {
 public:
  explicit LineReader(std::istream& in, std::size_t most_bytes = 16U << 20U)
      : in_(in), most_bytes_(most_bytes) {}
  /// False at the end, or when a line is longer than `most_bytes` (then too_long()).
  bool next(std::string& line);
  std::int64_t line_number() const { return number_; }
  bool too_long() const { return too_long_; }

 private:
  bool refill();

  std::istream& in_;
  std::size_t most_bytes_;
  std::string buffer_;
  std::size_t at_ = 0;  // Index of the next byte in buffer_.
  std::int64_t number_ = 0;
  bool too_long_ = false;
};

inline bool is_digit(int c) { return c >= '0' && c <= '9'; }

/// Splits a CSV line (RFC 4180: quoted fields, doubled quotes). `columns` receives where each field
/// begins, in bytes from 1. False for a stray quote, in the last of them.
bool split_csv(std::string_view line, std::vector<std::string>& fields, std::vector<int>& columns);

/// The whole of `text` as a finite decimal number; no sign other than '-', no hex, no "inf".
std::optional<double> parse_real(std::string_view text);
/// A real that is a whole number in [-2^53, 2^53], or an int64 in full.
std::optional<std::int64_t> parse_integer(std::string_view text);
/// `YYYY-MM-DD HH:MM:SS[.fraction][Z|+00:00]` in nanoseconds since 1970 (UTC), fraction truncated
/// to `digits` (0 … 9). 'T' may stand for the blank.
std::optional<std::int64_t> parse_date_time_ns(std::string_view text, int digits = 9);

/// A strict JSON pull parser. After the first error every call returns false.
class JsonScanner {
 public:
  enum class Kind { kObject, kArray, kString, kNumber, kBoolean, kNull, kEnd, kInvalid };

  /// Parses `text`, which must outlive the scanner; its first line has this number.
  explicit JsonScanner(std::string_view text, std::int64_t line = 1);
  /// Parses a stream, which must outlive the scanner, through a 64 KiB buffer.
  explicit JsonScanner(std::istream& in);

  /// The kind of the next value.
  Kind peek();
  /// Reads an object: calls `f(key)` for each member, which reads the value and says whether to go
  /// on. False after an error.
  template <class F>
  bool members(const F& f) {
    if (!begin_object()) return false;
    std::string key;
    while (next_member(key))
      if (!f(key)) return false;
    return ok();
  }
  /// Reads an array likewise.
  template <class F>
  bool elements(const F& f) {
    if (!begin_array()) return false;
    while (next_element())
      if (!f()) return false;
    return ok();
  }
  bool begin_object() { return begin('{', "an object"); }
  /// Reads the next key and its colon. False at the end of the object, which is consumed.
  bool next_member(std::string& key);
  bool begin_array() { return begin('[', "an array"); }
  /// False at the end of the array, which is consumed.
  bool next_element();
  bool read_string(std::string& out);
  bool read_real(double& out);
  bool read_integer(std::int64_t& out);
  /// Reads an array of whole numbers and appends them.
  bool read_integers(std::vector<std::uint64_t>& out);
  /// Reads an object, behind which nothing may follow, likewise.
  template <class F>
  bool document(const F& f) {
    (void)members(f);
    return ok() && (at_end() || fail("text behind the object"));
  }
  /// Skips a value of any kind.
  bool skip();
  /// Skips a value and returns it as it stands in `line`, the one line that the scanner reads.
  bool skip_raw(std::string_view line, std::string_view& out);
  /// True when only blanks are left.
  bool at_end();
  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }
  /// The place of the error, or else the place of the scanner. Columns count bytes from 1.
  std::int64_t line() const { return line_; }
  int column() const { return column_; }
  bool fail(std::string message);
  /// The same, for what began at this column of the current line.
  bool fail_at(std::string message, int column);
  /// The column of the next value.
  int value_column();

 private:
  static constexpr int kMaxDepth = 64;
  static constexpr std::size_t kMaxString = 16U << 20U;
  bool refill();
  int get();   // Next byte, or -1 at the end.
  int look();  // The byte get() would return.
  void skip_blanks();
  bool expect(char c, const char* what);
  bool begin(char bracket, const char* what);
  bool next(char bracket, const char* what);
  bool read_number_text(std::string& out);
  bool read_escape(std::string& out);
  bool read_hex4(std::uint32_t& out);
  bool read_word(std::string_view word);
  bool read_digits(std::int64_t& out);
  bool read_next_digits(std::int64_t& out);

  std::istream* in_ = nullptr;
  std::string buffer_;
  const char* cursor_ = nullptr;
  const char* end_ = nullptr;
  std::int64_t line_ = 1;
  int column_ = 1;
  std::string error_;
  std::vector<bool> first_;  // Per open container: nothing read yet.
};

/// A 64-bit hash of bytes, the same on every platform (FNV-1a, then mixed).
std::uint64_t hash_bytes(std::string_view bytes);

/// Appends a code point, at most 21 bits of it, as UTF-8.
void append_utf8(std::string& out, std::uint32_t c);
/// Unicode code points of UTF-8 text (bytes that are not continuation bytes).
std::int64_t count_code_points(std::string_view utf8);
/// Code points from U+2E80 on: Chinese, Japanese and Korean script (and emoji).
std::int64_t count_wide_code_points(std::string_view utf8);

}  // namespace routesim::workloads
