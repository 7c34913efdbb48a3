// CSV (RFC 4180), taken apart.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace routesim::tools {

/// Splits CSV text into records. A quoted field may hold commas, line breaks and doubled quotes.
class CsvSplitter {
 public:
  CsvSplitter(std::string_view text, const std::string& file, Diagnostics& diagnostics)
      : text_(text), file_(file), diagnostics_(diagnostics) {}

  /// The next record; false at the end of the text, and after a quoted field without an end.
  /// `places` receives where each field begins, and the end of the record.
  bool next(std::vector<std::string>& fields, std::vector<SourceLocation>& places) {
    if (pos_ >= text_.size()) return false;
    fields.clear();
    places.clear();
    do {
      places.push_back(here());
      fields.push_back(field());
    } while (take(','));
    places.push_back(here());
    take('\r');
    if (pos_ < text_.size() && !take('\n')) {
      error(here(), "unexpected text after a closing quote");
      while (pos_ < text_.size() && text_[pos_] != '\n') ++pos_;
      take('\n');
    }
    return !is_open_;
  }

 private:
  SourceLocation here() const {
    return {.file = file_, .line = line_, .column = static_cast<int>(pos_ - line_start_) + 1};
  }

  void error(const SourceLocation& where, const std::string& what) {
    diagnostics_.error(where, "", what);
  }

  bool take(char c) {
    if (pos_ >= text_.size() || text_[pos_] != c) return false;
    step();
    return true;
  }

  void step() {
    if (text_[pos_++] != '\n') return;
    ++line_;
    line_start_ = pos_;
  }

  std::string field() {
    std::string out;
    const SourceLocation begin = here();
    if (!take('"')) {
      while (pos_ < text_.size() && text_[pos_] != ',' && text_[pos_] != '\n' &&
             !(text_[pos_] == '\r' && text_.substr(pos_, 2) == "\r\n"))
        out += text_[pos_++];
      return out;
    }
    while (pos_ < text_.size()) {
      if (take('"')) {
        if (!take('"')) return out;
        out += '"';
      } else {
        out += text_[pos_];
        step();
      }
    }
    error(begin, "a quoted field is never closed");
    is_open_ = true;
    return out;
  }

  std::string_view text_;
  const std::string& file_;
  Diagnostics& diagnostics_;
  std::size_t pos_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
  bool is_open_ = false;
};

}  // namespace routesim::tools
