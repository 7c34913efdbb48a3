#include "tools/ingest/tree/shell_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

#include "base/text.h"
#include "tools/ingest/tree/data_table.h"

namespace routesim::tools {

namespace {

constexpr std::string_view kBlanks = " \t\r\n";

/// Bound on the characters that expansions add to one text: variables can double each other.
constexpr std::size_t kMostExpanded = 1U << 20;

bool is_blank(char c) { return kBlanks.find(c) != std::string_view::npos; }

std::size_t name_length(std::string_view text) {
  std::size_t n = 0;
  for (; n < text.size(); ++n) {
    const auto c = static_cast<unsigned char>(text[n]);
    if (std::isalpha(c) == 0 && c != '_' && (n == 0 || std::isdigit(c) == 0)) break;
  }
  return n;
}

/// The value of an expansion, or its own text and the reason why there is no value.
struct Expansion {
  std::string value;
  std::string unknown = {};
};

Expansion unknown(std::string_view written) {
  return {.value = std::string(written), .unknown = std::string(written)};
}

Expansion look_up(std::string_view name, std::string_view written,
                  const ShellVariables& variables) {
  const auto found = variables.find(std::string(name));
  if (found == variables.end()) return unknown(written);
  return {.value = found->second.text, .unknown = found->second.unknown};
}

Expansion take_expansion(std::string_view text, std::size_t& pos, const ShellVariables& variables);

/// The text behind `${NAME:+`, with variables of its own.
Expansion expand_text(std::string_view text, std::string_view written,
                      const ShellVariables& variables) {
  std::string value;
  for (std::size_t pos = 0; pos < text.size();) {
    if (text[pos] != '$') {
      value += text[pos++];
      continue;
    }
    const Expansion part = take_expansion(text, pos, variables);
    if (!part.unknown.empty() || value.size() + part.value.size() > kMostExpanded)
      return unknown(written);
    value += part.value;
  }
  return {.value = std::move(value)};
}

/// `${NAME}`, `${NAME-default}`, `${NAME+other}`, and both with a colon, which takes an empty value
/// for none. A variable that nobody sets is empty, as in the shell.
Expansion expand_braces(std::string_view written, const ShellVariables& variables) {
  const std::string_view inside = written.substr(2, written.size() - 3);
  const std::size_t n = name_length(inside);
  const std::string_view name = inside.substr(0, n);
  std::string_view rest = inside.substr(n);
  if (n > 0 && rest.empty()) return look_up(name, written, variables);
  const bool colon = rest.starts_with(":");
  if (colon) rest.remove_prefix(1);
  if (n > 0 && rest.starts_with("+")) {
    const auto found = variables.find(std::string(name));
    if (found == variables.end()) return {};
    if (!found->second.unknown.empty()) return unknown(written);
    if (colon && found->second.text.empty()) return {};
    return expand_text(rest.substr(1), written, variables);
  }
  if (n == 0 || !rest.starts_with("-") || rest.find('$') != std::string_view::npos)
    return unknown(written);
  if (variables.contains(std::string(name))) return look_up(name, written, variables);
  return {.value = std::string(rest.substr(1))};
}

/// `2 * NAME * ${NAME:-0}`: the guides compute ranks as products.
std::optional<std::int64_t> multiplied(std::string_view text, const ShellVariables& variables) {
  constexpr std::int64_t kLargest = 1'000'000;
  std::int64_t result = 1;
  while (true) {
    const std::size_t star = std::min(text.find('*'), text.size());
    std::string_view factor = text.substr(0, star);
    factor.remove_prefix(std::min(factor.find_first_not_of(kBlanks), factor.size()));
    factor = factor.substr(0, factor.find_last_not_of(kBlanks) + 1);
    Expansion value{.value = std::string(factor)};
    if (factor.starts_with("${") && factor.find('}') == factor.size() - 1)
      value = expand_braces(factor, variables);
    else if (name_length(factor) > 0)
      value = look_up(factor, factor, variables);
    std::int64_t n = 0;
    const char* const last = value.value.data() + value.value.size();
    const auto [end, error] = std::from_chars(value.value.data(), last, n);
    if (error != std::errc() || end != last || n < 0 || n > kLargest) return std::nullopt;
    result *= n;
    if (result > kLargest) return std::nullopt;
    if (star == text.size()) return result;
    text.remove_prefix(star + 1);
  }
}

/// Length of the brackets that open where the text begins; npos when they do not close.
std::size_t bracket_length(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return i + 1;
  }
  return std::string_view::npos;
}

/// The expansion that opens at the `$` at `pos`; moves `pos` behind it.
Expansion take_expansion(std::string_view text, std::size_t& pos, const ShellVariables& variables) {
  const std::string_view rest = text.substr(pos);
  if (const std::size_t n = name_length(rest.substr(1)); n > 0) {
    pos += n + 1;
    return look_up(rest.substr(1, n), rest.substr(0, n + 1), variables);
  }
  const char open = rest.size() > 1 ? rest[1] : '\0';
  if (open == '{' || open == '(') {
    std::size_t end = open == '{' ? rest.find('}') : bracket_length(rest.substr(1));
    if (end != std::string_view::npos) ++end;
    if (open == '{' && end != std::string_view::npos) {
      pos += end;
      return expand_braces(rest.substr(0, end), variables);
    }
    const std::string_view written = rest.substr(0, end);
    pos += written.size();
    if (end == std::string_view::npos) return unknown(written);
    const std::string_view inside = written.substr(2, end - 3);
    if (!inside.empty() && name_length(inside) == inside.size())
      return look_up(inside, written, variables);
    if (!inside.starts_with("(") || !inside.ends_with(")")) return unknown(written);
    const auto value = multiplied(inside.substr(1, inside.size() - 2), variables);
    return value ? Expansion{.value = std::to_string(*value)} : unknown(written);
  }
  constexpr std::string_view kSpecial = "@*#?!$0123456789-";
  const bool is_special = open != '\0' && kSpecial.find(open) != std::string_view::npos;
  pos += is_special ? 2 : 1;
  return is_special ? unknown(rest.substr(0, 2)) : Expansion{.value = "$"};
}

/// Words that open and close a block, and those between a block's parts.
constexpr std::string_view kOpening = "if for while until";
constexpr std::string_view kClosing = "fi done";
constexpr std::string_view kBetween = "then else elif do !";
constexpr std::string_view kRefused = "case function";

/// Goes through a text once.
class Splitter {
 public:
  Splitter(const std::string& text, const ShellPlaces& places, ShellVariables& variables,
           const std::string& key_path, Diagnostics& diagnostics)
      : text_(text),
        places_(places),
        variables_(variables),
        key_path_(key_path),
        diagnostics_(diagnostics) {}

  std::vector<ShellCommand> run() {
    while (pos_ < text_.size()) step();
    end_command(false);
    return std::move(commands_);
  }

 private:
  /// The place of the character at `pos_`.
  SourceLocation here() {
    for (; counted_ < pos_; ++counted_)
      if (text_[counted_] == '\n') {
        ++line_;
        line_start_ = counted_ + 1;
      }
    return places_(line_, static_cast<int>(pos_ - line_start_));
  }

  void step() {
    const char c = text_[pos_];
    if (c == '\\') return escape();
    if (c == '\'') return single_quoted();
    if (c == '"') return double_quoted();
    if (c == '$') return expand(false);
    if (c == '`' || c == '(' || c == ')') return refuse(here(), std::string(1, c));
    if (c == '#' && !in_word_) {
      pos_ = std::min(text_.find('\n', pos_), text_.size());
      return;
    }
    if (c == '<' || c == '>') return redirection();
    if (c == '\n' || c == ';' || c == '&' || c == '|')
      end_command(c == '|');
    else if (is_blank(c))
      end_word();
    else
      append(c);
    ++pos_;
  }

  void refuse(const SourceLocation& where, const std::string& written) {
    diagnostics_.error(where, key_path_,
                       in_quotes(written) + " is not read: only plain commands and variables are",
                       "write the one command as it runs, with values in place of variables");
    stop();
  }

  void stop() {
    pos_ = text_.size();
    command_.clear();
    commands_.clear();
    in_word_ = false;
  }

  void begin_word() {
    if (!in_word_) word_ = {.text = {}, .where = here()};
    in_word_ = true;
  }

  void append(char c) {
    begin_word();
    word_.text += c;
  }

  void escape() {
    const char next = pos_ + 1 < text_.size() ? text_[pos_ + 1] : '\n';
    const bool is_windows = text_.compare(pos_ + 1, 2, "\r\n") == 0;
    if (next != '\n' && !is_windows) append(next);
    pos_ = std::min(pos_ + (is_windows ? 3 : 2), text_.size());
  }

  void unclosed(const SourceLocation& where, char quote) {
    diagnostics_.error(where, key_path_, std::string("a quote (") + quote + ") is not closed");
    stop();
  }

  void single_quoted() {
    begin_word();
    const std::size_t end = text_.find('\'', pos_ + 1);
    if (end == std::string::npos) return unclosed(here(), '\'');
    word_.text.append(text_, pos_ + 1, end - pos_ - 1);
    pos_ = end + 1;
  }

  void double_quoted() {
    begin_word();
    const SourceLocation opened = here();
    ++pos_;
    while (pos_ < text_.size() && text_[pos_] != '"') {
      if (text_[pos_] == '$') {
        expand(true);
        continue;
      }
      constexpr std::string_view kEscaped = "\"\\$`\n";
      const bool escaped = text_[pos_] == '\\' && pos_ + 1 < text_.size() &&
                           kEscaped.find(text_[pos_ + 1]) != std::string_view::npos;
      if (escaped) ++pos_;
      if (!escaped || text_[pos_] != '\n') word_.text += text_[pos_];
      ++pos_;
    }
    if (pos_ >= text_.size()) return unclosed(opened, '"');
    ++pos_;
  }

  /// Without quotes the value is split at its blanks, as the shell does.
  void expand(bool in_quotes) {
    begin_word();
    const std::size_t start = pos_;
    Expansion expansion = take_expansion(text_, pos_, variables_);
    expanded_ += expansion.value.size();
    if (expanded_ > kMostExpanded) expansion = unknown(text_.substr(start, pos_ - start));
    const bool splits = !in_quotes && expansion.unknown.empty();
    for (const char c : expansion.value) {
      if (splits && is_blank(c))
        end_word();
      else
        append(c);
    }
    if (!expansion.unknown.empty() && word_.unknown.empty()) word_.unknown = expansion.unknown;
    if (splits && expansion.value.empty() && word_.text.empty()) in_word_ = false;
  }

  /// `2>&1`, `> file`: neither the operator nor its target is a word of the command.
  void redirection() {
    const bool is_number =
        in_word_ && word_.text.find_first_not_of("0123456789") == std::string::npos;
    if (is_number) in_word_ = false;
    end_word();
    pos_ = std::min(text_.find_first_not_of("<>&", pos_), text_.size());
    skip_word_ = true;
  }

  void end_word() {
    if (!in_word_) return;
    in_word_ = false;
    if (!skip_word_) command_.push_back(std::move(word_));
    skip_word_ = false;
  }

  void end_command(bool before_or) {
    end_word();
    skip_word_ = false;
    const bool after_or = std::exchange(after_or_, before_or);
    if (command_.empty()) {
      after_or_ = after_or_ || after_or;
      return;
    }
    const auto is_one_of = [this](std::string_view words) {
      return !command_.empty() && has_word(words, command_.front().text);
    };
    while (is_one_of(kBetween)) command_.erase(command_.begin());
    if (is_one_of(kRefused)) return refuse(command_.front().where, command_.front().text);
    if (is_one_of(kClosing)) --blocks_;
    const bool opens = is_one_of(kOpening);
    // Each turn of a loop has another value.
    if (command_.size() > 1 && is_one_of("for"))
      variables_[command_[1].text] = unknown_value("$" + command_[1].text, command_[1].where);
    const bool is_command = !command_.empty() && !opens && !is_one_of(kClosing);
    if (is_command && !remember_assignments(after_or || blocks_ > 0))
      commands_.push_back(std::move(command_));
    if (opens) ++blocks_;
    command_.clear();
  }

  /// `NAME=VALUE` alone, or after `export`, holds for later commands; whether one after `||` or in
  /// a block does is not known (`unsure`). Returns whether the command is an assignment.
  bool remember_assignments(bool unsure) {
    const bool exports = command_.front().text == "export";
    const auto assigns = [](const ShellWord& word) { return assigned_name(word.text) > 0; };
    if (!exports && !std::all_of(command_.begin(), command_.end(), assigns)) return false;
    for (const ShellWord& word : command_)
      if (const std::size_t n = assigned_name(word.text); n > 0) {
        const std::string name = word.text.substr(0, n);
        if (unsure)
          variables_[name] = unknown_value("$" + name, word.where);
        else
          variables_[name] = {
              .text = word.text.substr(n + 1), .where = word.where, .unknown = word.unknown};
      }
    return true;
  }

  static ShellWord unknown_value(const std::string& written, const SourceLocation& where) {
    return {.text = written, .where = where, .unknown = written};
  }

  const std::string& text_;
  const ShellPlaces& places_;
  ShellVariables& variables_;
  const std::string& key_path_;
  Diagnostics& diagnostics_;
  std::size_t pos_ = 0;
  std::size_t counted_ = 0;  ///< Lines are counted up to here.
  int line_ = 0;
  std::size_t line_start_ = 0;
  std::size_t expanded_ = 0;
  std::vector<ShellCommand> commands_;
  ShellCommand command_;
  ShellWord word_;
  bool in_word_ = false;
  int blocks_ = 0;          ///< Open ones: `if`, `for`, `while`.
  bool after_or_ = false;   ///< `||` or a pipe stands before the command.
  bool skip_word_ = false;  ///< The next word is the target of a redirection.
};

}  // namespace

ShellPlaces places_in(const ConfigNode& scalar) {
  return [at = scalar.where(), first_line = scalar.block_first_line(),
          indent = scalar.block_indent()](int line, int column) {
    if (first_line == 0) return at;
    return SourceLocation{
        .file = at.file, .line = first_line + line, .column = indent + column + 1};
  };
}

ShellPlaces places_in_file(const std::string& path) {
  return [path](int line, int column) {
    return SourceLocation{.file = path, .line = line + 1, .column = column + 1};
  };
}

std::string shell_text(const ConfigNode& scalar) {
  std::string text = scalar.text();
  if (scalar.block_first_line() == 0)
    for (std::size_t p = text.find("\\ "); p != std::string::npos; p = text.find("\\ ", p))
      text[p] = ' ';
  return text;
}

std::vector<ShellCommand> split_shell(const std::string& text, const ShellPlaces& places,
                                      ShellVariables& variables, const std::string& key_path,
                                      Diagnostics& diagnostics) {
  return Splitter(text, places, variables, key_path, diagnostics).run();
}

ShellWord kubernetes_word(const ConfigNode& scalar, const ShellVariables& variables) {
  ShellWord word{.text = {}, .where = scalar.where()};
  const std::string_view text = scalar.text();
  for (std::size_t pos = 0; pos < text.size();) {
    const std::size_t n = text.substr(pos, 2) == "$(" ? name_length(text.substr(pos + 2)) : 0;
    if (n == 0 || text.substr(pos + 2 + n, 1) != ")") {
      word.text += text[pos++];
      continue;
    }
    const Expansion value = look_up(text.substr(pos + 2, n), text.substr(pos, n + 3), variables);
    word.text += value.value;
    if (word.unknown.empty()) word.unknown = value.unknown;
    pos += n + 3;
  }
  return word;
}

std::size_t assigned_name(std::string_view word) {
  const std::size_t n = name_length(word);
  return n < word.size() && word[n] == '=' ? n : 0;
}

bool join_flags(std::vector<ShellCommand>& commands, std::string_view dashes) {
  const auto is_flag = [&](const ShellCommand& c) { return c.front().text.starts_with(dashes); };
  if (commands.empty() || !std::ranges::all_of(commands, is_flag)) return false;
  for (std::size_t i = 1; i < commands.size(); ++i)
    commands[0].insert(commands[0].end(), commands[i].begin(), commands[i].end());
  commands.resize(1);
  return true;
}

std::size_t script_index(const ShellCommand& words) {
  auto word = std::ranges::find_if(words, [&](const ShellWord& w) {
    return has_word("sh bash dash ash ksh zsh", last_part(w.text));
  });
  if (word == words.end()) return 0;
  bool has_script = false;
  for (++word; word != words.end() && word->text.starts_with('-'); ++word) {
    const bool is_end = word->text == "--";
    const bool is_long = word->text.starts_with("--");
    has_script |= !is_long && word->text.find('c') != std::string::npos;
    // `-o` and its like take the name of an option.
    if (!is_long && word->text.find('o') != std::string::npos && word + 1 != words.end()) ++word;
    if (is_end && ++word != words.end()) break;
    if (word == words.end()) return 0;
  }
  return has_script && word != words.end() ? static_cast<std::size_t>(word - words.begin()) : 0;
}

std::vector<std::string> flags_beginning(std::string_view begin,
                                         const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (name == begin) return {name};
    if (name.starts_with(begin)) found.push_back(name);
  }
  return found;
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace routesim::tools
