// Whether a text is well-formed XML, as far as JUnit files go: one root, nested tags, quoted
// attributes, escaped text. Counts its elements.
#pragma once

#include <cctype>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace routesim::tools::testing {

/// Throws std::runtime_error at the first flaw.
class XmlCheck {
 public:
  explicit XmlCheck(std::string_view text) : text_(text) {
    expect("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    skip_space();
    element();
    skip_space();
    if (at_ != text_.size()) fail("text after the root");
  }
  /// How many elements have this name.
  int count(const std::string& name) const {
    const auto found = counts_.find(name);
    return found == counts_.end() ? 0 : found->second;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + " at byte " + std::to_string(at_));
  }
  bool starts(std::string_view token) const { return text_.substr(at_).starts_with(token); }
  void expect(std::string_view token) {
    if (!starts(token)) fail("expected " + std::string(token));
    at_ += token.size();
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  std::string name() {
    const std::size_t from = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  text_[at_] == '-' || text_[at_] == '_'))
      ++at_;
    if (at_ == from) fail("expected a name");
    return std::string(text_.substr(from, at_ - from));
  }
  /// Text up to `end`, in which `<` and a bare `&` are errors.
  void characters(char end) {
    while (at_ < text_.size() && text_[at_] != end) {
      if (text_[at_] == '<') fail("unescaped <");
      if (static_cast<unsigned char>(text_[at_]) < 0x20 && text_[at_] != '\n') fail("control");
      if (text_[at_] == '&') {
        const std::size_t semicolon = text_.find(';', at_);
        if (semicolon == std::string_view::npos || semicolon - at_ > 6) fail("bare &");
        at_ = semicolon;
      }
      ++at_;
    }
    if (at_ == text_.size()) fail("unexpected end");
  }
  void element() {
    expect("<");
    const std::string tag = name();
    ++counts_[tag];
    for (skip_space(); at_ < text_.size() && text_[at_] != '>' && text_[at_] != '/'; skip_space()) {
      (void)name();
      expect("=\"");
      characters('"');
      expect("\"");
    }
    if (starts("/>")) {
      at_ += 2;
      return;
    }
    expect(">");
    while (true) {
      characters_until_tag();
      if (starts("</")) break;
      element();
    }
    expect("</");
    if (name() != tag) fail("closes another element");
    expect(">");
  }
  void characters_until_tag() { characters('<'); }

  std::string_view text_;
  std::size_t at_ = 0;
  std::map<std::string, int> counts_;
};

}  // namespace routesim::tools::testing
