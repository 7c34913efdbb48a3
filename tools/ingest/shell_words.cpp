#include "tools/ingest/shell_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>

namespace routesim::tools {

namespace {

/// Nesting of `${A:-${B:-...}}` and of parentheses; a person stops at two.
constexpr int kDeepest = 16;
/// Characters that expansions may add to one text: variables can double each other.
constexpr std::size_t kMostExpanded = 1U << 20;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::size_t name_length(std::string_view text) {
  if (text.empty() || !starts_name(text.front())) return 0;
  std::size_t n = 1;
  while (n < text.size() && is_in_name(text[n])) ++n;
  return n;
}

/// What stands for an expansion: its value, or the reason why there is none.
struct Expansion {
  std::string value;
  std::string unknown = {};
};

Expansion take_expansion(std::string_view text, std::size_t& pos, const ShellVariables& variables,
                         int depth);

/// Text between double quotes, or in a default: only `$` means something.
Expansion expand_all(std::string_view text, const ShellVariables& variables, int depth) {
  Expansion out;
  std::size_t pos = 0;
  while (pos < text.size()) {
    if (text[pos] != '$') {
      out.value += text[pos++];
      continue;
    }
    Expansion part = take_expansion(text, pos, variables, depth + 1);
    out.value += part.value;
    if (out.unknown.empty()) out.unknown = part.unknown;
    if (out.value.size() > kMostExpanded) return {.value = {}, .unknown = std::string(text)};
  }
  return out;
}

/// Whole numbers, names, + - * / % and parentheses: what start scripts compute ranks with.
class Arithmetic {
 public:
  Arithmetic(std::string_view text, const ShellVariables& variables)
      : text_(text), variables_(variables) {}

  std::optional<std::int64_t> value() {
    const std::optional<std::int64_t> result = sum(0);
    skip_blanks();
    return pos_ == text_.size() ? result : std::nullopt;
  }

 private:
  using Number = std::optional<std::int64_t>;
  static constexpr std::int64_t kLargest = 1'000'000'000;

  static Number apply(char op, const Number& a, const Number& b) {
    if (!a || !b || ((op == '/' || op == '%') && *b == 0)) return std::nullopt;
    const std::int64_t result = op == '+'   ? *a + *b
                                : op == '-' ? *a - *b
                                : op == '*' ? *a * *b
                                : op == '/' ? *a / *b
                                            : *a % *b;
    return result < -kLargest || result > kLargest ? std::nullopt : Number(result);
  }

  Number sum(int depth) {
    Number left = product(depth);
    while (is_next("+-")) {
      const char op = text_[pos_++];
      left = apply(op, left, product(depth));
    }
    return left;
  }

  Number product(int depth) {
    Number left = factor(depth);
    while (is_next("*/%")) {
      const char op = text_[pos_++];
      left = apply(op, left, factor(depth));
    }
    return left;
  }

  Number factor(int depth) {
    if (depth > kDeepest) return std::nullopt;
    if (is_next("(")) {
      ++pos_;
      const Number inner = sum(depth + 1);
      if (!is_next(")")) return std::nullopt;
      ++pos_;
      return inner;
    }
    skip_blanks();
    const std::string_view rest = text_.substr(pos_);
    if (const std::size_t n = name_length(rest); n > 0) {
      pos_ += n;
      const auto found = variables_.find(std::string(rest.substr(0, n)));
      return found == variables_.end() ? std::nullopt : number(found->second.text);
    }
    std::size_t n = 0;
    while (n < rest.size() && std::isdigit(static_cast<unsigned char>(rest[n])) != 0) ++n;
    pos_ += n;
    return number(rest.substr(0, n));
  }

  static Number number(std::string_view digits) {
    std::int64_t v = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), v);
    const bool whole = error == std::errc() && end == digits.data() + digits.size();
    return whole && v >= -kLargest && v <= kLargest ? Number(v) : std::nullopt;
  }

  void skip_blanks() {
    while (pos_ < text_.size() && is_blank(text_[pos_])) ++pos_;
  }
  bool is_next(std::string_view any) {
    skip_blanks();
    return pos_ < text_.size() && any.find(text_[pos_]) != std::string_view::npos;
  }

  std::string_view text_;
  const ShellVariables& variables_;
  std::size_t pos_ = 0;
};

/// The variable's value; `written` is how it was asked for.
Expansion look_up(std::string_view name, std::string_view written,
                  const ShellVariables& variables) {
  const auto found = variables.find(std::string(name));
  if (found == variables.end())
    return {.value = std::string(written), .unknown = std::string(written)};
  return {.value = found->second.text, .unknown = found->second.unknown};
}

/// `${NAME}`, `${NAME:-default}` and `${NAME:+instead}`; `inside` is what the braces hold. A name
/// that nothing gives a value counts as not set.
Expansion expand_braces(std::string_view inside, std::string_view written,
                        const ShellVariables& variables, int depth) {
  const std::size_t n = name_length(inside);
  const std::string_view name = inside.substr(0, n);
  std::string_view rest = inside.substr(n);
  if (n > 0 && rest.empty()) return look_up(name, written, variables);
  if (rest.starts_with(":")) rest.remove_prefix(1);
  const bool is_known = variables.count(std::string(name)) > 0;
  const char form = n == 0 || rest.empty() ? '\0' : rest.front();
  if ((form != '-' && form != '=' && form != '+') || depth > kDeepest)
    return {.value = std::string(written), .unknown = std::string(written)};
  if (form == '+' && !is_known) return {};
  if (form != '+' && is_known) return look_up(name, written, variables);
  return expand_all(rest.substr(1), variables, depth);
}

/// Position after the bracket that closes the one before `pos`, or npos.
std::size_t after_closing(std::string_view text, std::size_t pos, char open, char close) {
  int depth = 1;
  for (; pos < text.size(); ++pos) {
    if (text[pos] == open) ++depth;
    if (text[pos] == close && --depth == 0) return pos + 1;
  }
  return std::string_view::npos;
}

/// The expansion that opens at the `$` at `pos`; `pos` is moved behind it.
Expansion take_expansion(std::string_view text, std::size_t& pos, const ShellVariables& variables,
                         int depth) {
  const std::size_t start = pos++;
  const std::string_view rest = text.substr(pos);
  const auto unknown = [&](std::size_t end) -> Expansion {
    pos = end;
    const std::string written(text.substr(start, end - start));
    return {.value = written, .unknown = written};
  };
  if (const std::size_t n = name_length(rest); n > 0) {
    pos += n;
    return look_up(rest.substr(0, n), text.substr(start, n + 1), variables);
  }
  const char open = rest.empty() ? '\0' : rest.front();
  if (open == '{' || open == '(') {
    const std::size_t end = after_closing(text, pos + 1, open, open == '{' ? '}' : ')');
    if (end == std::string_view::npos) return unknown(text.size());
    const std::string_view written = text.substr(start, end - start);
    const std::string_view inside = text.substr(pos + 1, end - pos - 2);
    if (open == '{') {
      pos = end;
      return expand_braces(inside, written, variables, depth);
    }
    if (!inside.empty() && name_length(inside) == inside.size()) {
      pos = end;
      return look_up(inside, written, variables);
    }
    if (inside.size() < 2 || inside.front() != '(' || inside.back() != ')' || depth > kDeepest)
      return unknown(end);
    const Expansion terms = expand_all(inside.substr(1, inside.size() - 2), variables, depth);
    const std::optional<std::int64_t> value = Arithmetic(terms.value, variables).value();
    if (!value || !terms.unknown.empty()) return unknown(end);
    pos = end;
    return {.value = std::to_string(*value)};
  }
  constexpr std::string_view kSpecial = "@*#?!$0123456789-";
  if (open != '\0' && kSpecial.find(open) != std::string_view::npos) return unknown(pos + 1);
  return {.value = "$"};
}

constexpr std::array<std::string_view, 5> kOpening = {"if", "for", "while", "until", "case"};
constexpr std::array<std::string_view, 3> kClosing = {"fi", "done", "esac"};
constexpr std::array<std::string_view, 3> kTests = {"[", "[[", "test"};
constexpr std::array<std::string_view, 4> kLeading = {"then", "else", "do", "{"};
constexpr std::array<std::string_view, 4> kDeclaring = {"export", "declare", "local", "readonly"};

template <class Words>
bool is_any(const std::string& word, const Words& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Goes through a text once.
class Splitter {
 public:
  Splitter(const std::string& text, const ShellPlaces& places, ShellVariables& variables)
      : text_(text), places_(places), variables_(variables) {}

  std::vector<ShellCommand> run(const std::string& key_path, Diagnostics& diagnostics) {
    while (pos_ < text_.size()) step();
    end_command('\n');
    if (open_quote_ != '\0')
      diagnostics.error(open_quote_at_, key_path,
                        std::string("a quote (") + open_quote_ + ") is not closed");
    return std::move(commands_);
  }

 private:
  void step() {
    const char c = text_[pos_];
    if (c == '\\') return escape();
    if (c == '\'') return single_quoted();
    if (c == '"') return double_quoted();
    if (c == '$') return expand(false);
    if (c == '`') return back_quoted();
    if (c == '#' && !in_word_) return comment();
    if (c == '<' || c == '>') return redirection();
    if (c == '\n' || c == ';' || c == '&' || c == '|' || c == '(' || c == ')') {
      end_command(c);
    } else if (is_blank(c)) {
      end_word();
    } else {
      append(c);
    }
    advance(1);
  }

  void advance(std::size_t n) {
    for (; n > 0 && pos_ < text_.size(); --n, ++pos_) {
      ++column_;
      if (text_[pos_] != '\n') continue;
      ++line_;
      column_ = 0;
    }
  }

  void begin_word() {
    if (!in_word_) word_ = {.text = {}, .where = places_(line_, column_)};
    in_word_ = true;
  }

  void append(char c) {
    begin_word();
    word_.text += c;
  }

  void escape() {
    const bool at_end = pos_ + 1 == text_.size();
    const char next = at_end ? '\n' : text_[pos_ + 1];
    const bool joins_lines = next == '\n' || text_.compare(pos_ + 1, 2, "\r\n") == 0;
    if (!joins_lines) append(next);
    advance(joins_lines && next == '\r' ? 3 : 2);
  }

  void single_quoted() {
    begin_word();
    const std::size_t end = text_.find('\'', pos_ + 1);
    if (end == std::string::npos) return unclosed('\'');
    word_.text.append(text_, pos_ + 1, end - pos_ - 1);
    advance(end + 1 - pos_);
  }

  void double_quoted() {
    begin_word();
    const SourceLocation opened = places_(line_, column_);
    advance(1);
    while (pos_ < text_.size() && text_[pos_] != '"') {
      if (text_[pos_] == '$') {
        expand(true);
        continue;
      }
      constexpr std::string_view kEscaped = "\"\\$`\n";
      const bool escaped = text_[pos_] == '\\' && pos_ + 1 < text_.size() &&
                           kEscaped.find(text_[pos_ + 1]) != std::string_view::npos;
      if (escaped) advance(1);
      if (!escaped || text_[pos_] != '\n') word_.text += text_[pos_];
      advance(1);
    }
    if (pos_ == text_.size() && open_quote_ == '\0') {
      open_quote_ = '"';
      open_quote_at_ = opened;
    }
    advance(1);
  }

  void back_quoted() {
    begin_word();
    const std::size_t end = text_.find('`', pos_ + 1);
    if (end == std::string::npos) return unclosed('`');
    const std::string written = text_.substr(pos_, end + 1 - pos_);
    word_.text += written;
    if (word_.unknown.empty()) word_.unknown = written;
    advance(end + 1 - pos_);
  }

  void unclosed(char quote) {
    if (open_quote_ == '\0') {
      open_quote_ = quote;
      open_quote_at_ = places_(line_, column_);
    }
    advance(text_.size() - pos_);
  }

  /// Without quotes the value is split at its blanks, as the shell does.
  void expand(bool in_quotes) {
    begin_word();
    std::size_t end = pos_;
    Expansion expansion = take_expansion(text_, end, variables_, 0);
    expanded_ += expansion.value.size();
    if (expanded_ > kMostExpanded) {
      expansion.unknown = text_.substr(pos_, end - pos_);
      expansion.value = expansion.unknown;
    }
    const bool splits = !in_quotes && expansion.unknown.empty();
    for (const char c : expansion.value) {
      if (splits && is_blank(c)) {
        end_word();
      } else {
        append(c);
      }
    }
    if (!expansion.unknown.empty() && word_.unknown.empty()) word_.unknown = expansion.unknown;
    if (splits && expansion.value.empty() && word_.text.empty()) in_word_ = false;
    advance(end - pos_);
  }

  void comment() {
    while (pos_ < text_.size() && text_[pos_] != '\n') advance(1);
  }

  /// `2>&1`, `> file`: neither the operator nor its target is a word of the command.
  void redirection() {
    const bool is_number = in_word_ && !word_.text.empty() &&
                           word_.text.find_first_not_of("0123456789") == std::string::npos;
    if (is_number) in_word_ = false;
    end_word();
    constexpr std::string_view kOperator = "<>&|";
    while (pos_ < text_.size() && kOperator.find(text_[pos_]) != std::string_view::npos) advance(1);
    skip_word_ = true;
  }

  void end_word() {
    if (in_word_ && !skip_word_) command_.push_back(std::move(word_));
    if (in_word_) skip_word_ = false;
    in_word_ = false;
  }

  /// `separator` is what stands behind the command.
  void end_command(char separator) {
    end_word();
    skip_word_ = false;
    const bool is_or = separator == '|' && text_.compare(pos_, 2, "||") == 0;
    if (!command_.empty()) {
      const std::string& first = command_.front().text;
      if (is_any(first, kOpening)) ++nesting_;
      const std::string loop = first == "for" && command_.size() > 1 ? command_[1].text : "";
      if (!loop.empty()) variables_[loop] = {"$" + loop, command_[1].where, "$" + loop};
      remember_assignments(separator == '(');
      if (is_any(first, kClosing)) nesting_ = std::max(0, nesting_ - 1);
      after_test_ = is_or || (separator == '&' && is_any(first, kTests));
      commands_.push_back(std::move(command_));
      if (commands_.back().empty()) commands_.pop_back();
    }
    command_.clear();
  }

  /// `NAME=VALUE` alone, or after `export`, holds for the commands after it. Whether it is reached
  /// inside `if` or behind a test is not known, so its value is not either, nor is that of a list.
  void remember_assignments(bool opens_list) {
    std::size_t first = 0;
    while (first < command_.size() && is_any(command_[first].text, kLeading)) ++first;
    if (first == command_.size()) return;
    const bool exports = is_any(command_[first].text, kDeclaring);
    for (std::size_t i = first; !exports && i < command_.size(); ++i)
      if (assigned_name(command_[i].text) == 0) return;
    const bool is_certain = nesting_ == 0 && !after_test_;
    for (const ShellWord& word : command_) {
      const std::size_t n = assigned_name(word.text);
      if (n == 0) continue;
      const std::string name = word.text.substr(0, n);
      ShellWord value{
          .text = word.text.substr(n + 1), .where = word.where, .unknown = word.unknown};
      const auto before = variables_.find(name);
      const bool is_new = before == variables_.end() || before->second.text != value.text;
      const bool is_list = opens_list && &word == &command_.back() && value.text.empty();
      if ((!is_certain && is_new) || is_list) value.text = value.unknown = "$" + name;
      variables_[name] = std::move(value);
    }
    command_.clear();
  }

  const std::string& text_;
  const ShellPlaces& places_;
  ShellVariables& variables_;
  std::size_t pos_ = 0;
  int line_ = 0;
  int column_ = 0;
  std::size_t expanded_ = 0;
  std::vector<ShellCommand> commands_;
  ShellCommand command_;
  ShellWord word_;
  bool in_word_ = false;
  bool skip_word_ = false;
  int nesting_ = 0;          ///< Of `if`, loops and `case`.
  bool after_test_ = false;  ///< The command runs if the one before succeeds, or fails.
  char open_quote_ = '\0';
  SourceLocation open_quote_at_;
};

}  // namespace

std::vector<ShellCommand> split_shell(const std::string& text, const ShellPlaces& places,
                                      ShellVariables& variables, const std::string& key_path,
                                      Diagnostics& diagnostics) {
  return Splitter(text, places, variables).run(key_path, diagnostics);
}

ShellWord kubernetes_word(const ConfigNode& scalar, const ShellVariables& variables) {
  ShellWord word{.text = {}, .where = scalar.where()};
  const std::string& text = scalar.text();
  for (std::size_t pos = 0; pos < text.size();) {
    const std::size_t n =
        text.compare(pos, 2, "$(") == 0 ? name_length(std::string_view(text).substr(pos + 2)) : 0;
    if (n == 0 || text.compare(pos + 2 + n, 1, ")") != 0) {
      word.text += text[pos++];
      continue;
    }
    const std::string_view written = std::string_view(text).substr(pos, n + 3);
    const Expansion value = look_up(written.substr(2, n), written, variables);
    word.text += value.value;
    if (word.unknown.empty()) word.unknown = value.unknown;
    pos += n + 3;
  }
  return word;
}

std::size_t assigned_name(std::string_view word) {
  const std::size_t n = name_length(word);
  return n > 0 && n < word.size() && word[n] == '=' ? n : 0;
}

}  // namespace routesim::tools
