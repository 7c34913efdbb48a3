#include "tests/policies/mini_yaml.h"

#include <charconv>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace routesim::policies {
namespace {

struct Line {
  int number = 0;
  int indent = 0;
  std::string text;  // Without indentation and comment.
  std::string raw;
};

std::string strip_comment(const std::string& s) {
  char quote = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (quote != 0) {
      if (s[i] == quote) quote = 0;
    } else if (s[i] == '"' || s[i] == '\'') {
      quote = s[i];
    } else if (s[i] == '#' && (i == 0 || s[i - 1] == ' ')) {
      return s.substr(0, i);
    }
  }
  return s;
}

std::string trim(std::string s) {
  while (!s.empty() && (s.back() == ' ' || s.back() == '\r')) s.pop_back();
  std::size_t i = 0;
  while (i < s.size() && s[i] == ' ') ++i;
  return s.substr(i);
}

class Parser {
 public:
  Parser(const std::string& text, std::string file) : file_(std::move(file)) {
    std::istringstream in(text);
    std::string raw;
    for (int number = 1; std::getline(in, raw); ++number) {
      const std::size_t first = raw.find_first_not_of(' ');
      Line line{number, first == std::string::npos ? 0 : static_cast<int>(first),
                trim(strip_comment(raw)), raw};
      lines_.push_back(line);
    }
  }

  ParameterValue document() {
    skip_blank();
    if (at_ == lines_.size()) return ParameterValue();
    return block(lines_[at_].indent);
  }

 private:
  void skip_blank() {
    while (at_ < lines_.size() && lines_[at_].text.empty()) ++at_;
  }
  bool at_level(int indent) {
    skip_blank();
    return at_ < lines_.size() && lines_[at_].indent == indent;
  }
  ParameterValue placed(ParameterValue v, int line, int column) const {
    v.where = {file_, line, column};
    return v;
  }

  ParameterValue block(int indent) {
    const Line& first = lines_[at_];
    if (first.text.rfind("- ", 0) == 0 || first.text == "-") return list(indent);
    return map(indent);
  }

  ParameterValue list(int indent) {
    ParameterValue::List items;
    const int line = lines_[at_].number;
    while (at_level(indent) && lines_[at_].text[0] == '-') {
      Line& l = lines_[at_];
      const std::string rest = trim(l.text.substr(1));
      if (rest.empty()) {
        ++at_;
        skip_blank();
        items.push_back(block(lines_[at_].indent));
        continue;
      }
      const int inner = l.indent + static_cast<int>(l.text.find_first_not_of(' ', 1));
      if (key_end(rest) != std::string::npos) {
        l.indent = inner;  // The rest of the line begins a map at its own column.
        l.text = rest;
        items.push_back(map(inner));
      } else {
        items.push_back(scalar(rest, l.number, inner + 1));
        ++at_;
      }
    }
    return placed(ParameterValue(std::move(items)), line, indent + 1);
  }

  static std::size_t key_end(const std::string& s) {
    if (s.empty() || s[0] == '[' || s[0] == '"' || s[0] == '\'') return std::string::npos;
    for (std::size_t i = 0; i < s.size(); ++i)
      if (s[i] == ':' && (i + 1 == s.size() || s[i + 1] == ' ')) return i;
    return std::string::npos;
  }

  ParameterValue map(int indent) {
    ParameterValue::Map members;
    const int line = lines_[at_].number;
    while (at_level(indent) && lines_[at_].text[0] != '-') {
      const Line l = lines_[at_];
      const std::size_t colon = key_end(l.text);
      if (colon == std::string::npos)
        throw std::runtime_error("mini YAML: no key in line " + std::to_string(l.number));
      const std::string key = l.text.substr(0, colon);
      const std::string rest = trim(l.text.substr(colon + 1));
      ++at_;
      const int column = l.indent + static_cast<int>(colon) + 3;
      members.emplace_back(key, value(rest, l, column));
    }
    return placed(ParameterValue(std::move(members)), line, indent + 1);
  }

  ParameterValue value(const std::string& rest, const Line& l, int column) {
    if (rest == "|") return literal(l);
    if (!rest.empty()) return scalar(rest, l.number, column);
    skip_blank();
    if (at_ < lines_.size() && lines_[at_].indent > l.indent) return block(lines_[at_].indent);
    const bool same = at_ < lines_.size() && lines_[at_].indent == l.indent;
    if (same && lines_[at_].text[0] == '-') return list(l.indent);
    return placed(ParameterValue(), l.number, column);
  }

  ParameterValue literal(const Line& key) {
    const int line = key.number + 1;
    int indent = -1;
    std::string text;
    for (; at_ < lines_.size(); ++at_) {
      const Line& l = lines_[at_];
      if (!l.raw.empty() && l.raw.find_first_not_of(' ') != std::string::npos) {
        if (l.indent <= key.indent) break;
        if (indent < 0) indent = l.indent;
      }
      text += indent >= 0 && l.raw.size() >= static_cast<std::size_t>(indent)
                  ? l.raw.substr(static_cast<std::size_t>(indent))
                  : std::string();
      text += '\n';
    }
    return placed(ParameterValue(text), line, indent + 1);
  }

  ParameterValue scalar(const std::string& s, int line, int column) {
    if (s.front() == '[') {
      if (s.back() != ']') throw std::runtime_error("mini YAML: open flow list");
      ParameterValue::List items;
      std::istringstream in(s.substr(1, s.size() - 2));
      for (std::string item; std::getline(in, item, ',');)
        items.push_back(scalar(trim(item), line, column));
      return placed(ParameterValue(std::move(items)), line, column);
    }
    if (s.front() == '"' || s.front() == '\'')
      return placed(ParameterValue(s.substr(1, s.size() - 2)), line, column);
    if (s == "null" || s == "~") return placed(ParameterValue(), line, column);
    if (s == "true" || s == "false") return placed(ParameterValue(s == "true"), line, column);
    std::int64_t integer = 0;
    const char* end = s.data() + s.size();
    if (std::from_chars(s.data(), end, integer).ptr == end)
      return placed(ParameterValue(integer), line, column);
    double real = 0;
    if (std::from_chars(s.data(), end, real).ptr == end)
      return placed(ParameterValue(real), line, column);
    return placed(ParameterValue(s), line, column);
  }

  std::string file_;
  std::vector<Line> lines_;
  std::size_t at_ = 0;
};

}  // namespace

ParameterValue parse_mini_yaml(const std::string& text, const std::string& file) {
  return Parser(text, file).document();
}

std::string read_repository_file(const std::string& path) {
  std::ifstream in(std::string(ROUTESIM_SOURCE_DIR) + "/" + path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace routesim::policies
