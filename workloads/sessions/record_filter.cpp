#include "workloads/sessions/record_filter.h"

#include <algorithm>
#include <array>
#include <deque>
#include <utility>
#include <vector>

namespace routesim::workloads {
namespace {

enum class Operation { kConstant, kRecord, kList, kItem, kGet, kLength, kNot, kAnd, kOr, kCompare };

constexpr int kMostNesting = 64;

JsonValue boolean(bool value) {
  JsonValue out;
  out.kind = JsonValue::Kind::kBoolean;
  out.text = value ? "true" : "false";
  return out;
}

JsonValue number(std::size_t value) {
  JsonValue out;
  out.kind = JsonValue::Kind::kNumber;
  out.text = std::to_string(value);
  return out;
}

bool is_number(const JsonValue& value) { return value.kind == JsonValue::Kind::kNumber; }
double number_of(const JsonValue& value) { return parse_real(value.text).value_or(0); }

bool equal(const JsonValue& a, const JsonValue& b) {
  if (is_number(a) && is_number(b)) return number_of(a) == number_of(b);
  return a.kind == b.kind && a.sorted_dump() == b.sorted_dump();
}

}  // namespace

/// An expression. Of a comparison `children` are what is compared, `signs` what stands between.
struct RecordFilter::Node {
  Operation operation = Operation::kConstant;
  JsonValue constant{};
  std::vector<Node> children{};
  std::vector<std::string> signs{};
};

namespace {

using Node = RecordFilter::Node;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  bool parse(Node& out, std::string& problem) {
    const bool good = word("lambda") && name(record_) && sign(":") && either(out) && at_end();
    if (!good) problem = "cannot be evaluated from character " + std::to_string(at_ + 1) + " on";
    return good;
  }

 private:
  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool at_end() {
    skip_blanks();
    return at_ == text_.size();
  }
  bool sign(std::string_view wanted) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  bool word(std::string_view wanted) {
    const std::size_t before = at_;
    std::string found;
    if (name(found) && found == wanted) return true;
    at_ = before;
    return false;
  }
  bool name(std::string& out) {
    skip_blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    out = text_.substr(begin, at_ - begin);
    return !out.empty() && (out[0] < '0' || out[0] > '9');
  }

  bool joined(Node& out, Operation operation, std::string_view between,
              bool (Parser::*inner)(Node&)) {
    Node first;
    if (!(this->*inner)(first)) return false;
    if (!word(between)) {
      out = std::move(first);
      return true;
    }
    out.operation = operation;
    out.children.push_back(std::move(first));
    do {
      if (!(this->*inner)(out.children.emplace_back())) return false;
    } while (word(between));
    return true;
  }
  bool either(Node& out) {
    if (++nesting_ > kMostNesting) return false;
    const bool good = joined(out, Operation::kOr, "or", &Parser::both);
    --nesting_;
    return good;
  }
  bool both(Node& out) { return joined(out, Operation::kAnd, "and", &Parser::negated); }
  bool negated(Node& out) {
    bool negative = false, any = false;
    while (word("not")) {
      negative = !negative;
      any = true;
    }
    if (!any) return compared(out);
    // Of `not not E` the truth value remains.
    Node inner;
    if (!compared(inner)) return false;
    out.operation = Operation::kNot;
    out.children.push_back(std::move(inner));
    if (negative) return true;
    Node twice = {.operation = Operation::kNot, .children = {std::move(out)}};
    out = std::move(twice);
    return true;
  }

  bool comparison(std::string& out) {
    static constexpr std::array<std::string_view, 6> kSigns = {"<=", ">=", "==", "!=", "<", ">"};
    for (const std::string_view s : kSigns)
      if (sign(s)) {
        out = s;
        return true;
      }
    const std::size_t before = at_;
    const bool negative = word("not");
    if (word("in")) {
      out = negative ? "not in" : "in";
      return true;
    }
    at_ = before;
    return false;
  }
  bool compared(Node& out) {
    Node first;
    if (!value(first)) return false;
    std::string found;
    if (!comparison(found)) {
      out = std::move(first);
      return true;
    }
    out.operation = Operation::kCompare;
    out.children.push_back(std::move(first));
    do {
      out.signs.push_back(found);
      if (!value(out.children.emplace_back())) return false;
    } while (comparison(found));
    return true;
  }

  bool value(Node& out) {
    if (!plain_value(out)) return false;
    for (;;) {
      Operation operation = Operation::kItem;
      if (sign("[")) {
        operation = Operation::kItem;
      } else if (sign(".")) {
        if (!word("get") || !sign("(")) return false;
        operation = Operation::kGet;
      } else {
        return true;
      }
      Node outer = {.operation = operation, .children = {std::move(out)}};
      if (!either(outer.children.emplace_back())) return false;
      if (operation == Operation::kGet && sign(",") && !either(outer.children.emplace_back()))
        return false;
      if (!sign(operation == Operation::kItem ? "]" : ")")) return false;
      out = std::move(outer);
    }
  }
  bool plain_value(Node& out) {
    skip_blanks();
    if (at_ == text_.size()) return false;
    const char c = text_[at_];
    if (c == '\'' || c == '"') return text_value(out);
    if (c == '-' || (c >= '0' && c <= '9')) return number_value(out);
    if (sign("[")) return sign("]") ? empty_list(out) : rest_of_list(std::nullopt, out, "]");
    if (sign("(")) {
      Node first;
      if (!either(first)) return false;
      if (sign(",")) return rest_of_list(std::move(first), out, ")");
      out = std::move(first);
      return sign(")");
    }
    std::string found;
    if (!name(found)) return false;
    if (found == record_) {
      out.operation = Operation::kRecord;
    } else if (found == "len") {
      out.operation = Operation::kLength;
      return sign("(") && either(out.children.emplace_back()) && sign(")");
    } else if (found == "True" || found == "False") {
      out.constant = boolean(found == "True");
    } else if (found != "None") {
      at_ -= found.size();
      return false;
    }
    return true;
  }
  static bool empty_list(Node& out) {
    out.operation = Operation::kList;
    return true;
  }
  /// Behind a `[`, or behind the first item of a tuple and its comma.
  bool rest_of_list(std::optional<Node> first, Node& out, std::string_view end) {
    out.operation = Operation::kList;
    if (first) out.children.push_back(std::move(*first));
    do {
      if (sign(end)) return true;
      if (!either(out.children.emplace_back())) return false;
    } while (sign(","));
    return sign(end);
  }
  bool text_value(Node& out) {
    const char quote = text_[at_++];
    out.constant.kind = JsonValue::Kind::kString;
    for (; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\') return false;
      out.constant.text += text_[at_];
    }
    if (at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  bool number_value(Node& out) {
    const std::size_t begin = at_;
    if (text_[at_] == '-') ++at_;
    while (at_ < text_.size() && (is_name(text_[at_]) || text_[at_] == '.')) ++at_;
    out.constant.kind = JsonValue::Kind::kNumber;
    for (const char c : text_.substr(begin, at_ - begin))
      if (c != '_') out.constant.text += c;  // 262_144
    return parse_real(out.constant.text).has_value();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  std::string record_;
};

class Evaluation {
 public:
  explicit Evaluation(const JsonValue& record) : record_(record) {}

  /// Null after a problem. Values of the record are not copied.
  const JsonValue* of(const Node& node) {
    switch (node.operation) {
      case Operation::kConstant:
        return &node.constant;
      case Operation::kRecord:
        return &record_;
      case Operation::kList:
        return list(node);
      case Operation::kItem:
      case Operation::kGet:
        return member(node);
      case Operation::kLength:
        return length(node);
      case Operation::kNot: {
        const JsonValue* inner = of(node.children[0]);
        return inner == nullptr ? nullptr : made(boolean(inner->is_empty()));
      }
      case Operation::kAnd:
      case Operation::kOr:
        return joined(node);
      case Operation::kCompare:
        return compared(node);
    }
    return nullptr;
  }
  const std::string& problem() const { return problem_; }

 private:
  const JsonValue* fail(std::string problem) {
    problem_ = std::move(problem);
    return nullptr;
  }
  const JsonValue* made(JsonValue value) { return &made_.emplace_back(std::move(value)); }

  const JsonValue* member(const Node& node) {
    const JsonValue* of_what = of(node.children[0]);
    const JsonValue* key = of_what == nullptr ? nullptr : of(node.children[1]);
    if (key == nullptr) return nullptr;
    if (of_what->is_array() && is_number(*key) && node.operation == Operation::kItem) {
      const double at = number_of(*key);
      const auto size = static_cast<double>(of_what->items.size());
      const double index = at < 0 ? at + size : at;
      if (!(index >= 0 && index < size)) return fail("no item " + key->text);
      return &of_what->items[static_cast<std::size_t>(index)];
    }
    const JsonValue* found =
        of_what->is_object() && key->is_string() ? of_what->find(key->text) : nullptr;
    if (found != nullptr) return found;
    if (node.operation == Operation::kItem) return fail("no key " + key->dump());
    return node.children.size() == 3 ? of(node.children[2]) : made(JsonValue{});
  }

  const JsonValue* list(const Node& node) {
    JsonValue out;
    out.kind = JsonValue::Kind::kArray;
    for (const Node& child : node.children) {
      const JsonValue* item = of(child);
      if (item == nullptr) return nullptr;
      out.items.push_back(*item);
    }
    return made(std::move(out));
  }

  const JsonValue* length(const Node& node) {
    const JsonValue* inner = of(node.children[0]);
    if (inner == nullptr) return nullptr;
    if (inner->is_array()) return made(number(inner->items.size()));
    if (inner->is_object()) return made(number(inner->members.size()));
    if (inner->is_string())
      return made(number(static_cast<std::size_t>(count_code_points(inner->text))));
    return fail("no length");
  }

  const JsonValue* joined(const Node& node) {
    const JsonValue* value = nullptr;
    for (const Node& child : node.children) {
      value = of(child);
      if (value == nullptr || value->is_empty() == (node.operation == Operation::kAnd))
        return value;
    }
    return value;
  }

  static std::optional<bool> holds_in(const JsonValue& a, const JsonValue& b) {
    if (b.is_object() && a.is_string()) return b.find(a.text) != nullptr;
    if (b.is_array())
      return std::any_of(b.items.begin(), b.items.end(),
                         [&a](const JsonValue& item) { return equal(item, a); });
    if (a.is_string() && b.is_string()) return b.text.find(a.text) != std::string::npos;
    return std::nullopt;
  }

  static std::optional<bool> holds(const JsonValue& a, const std::string& sign,
                                   const JsonValue& b) {
    if (sign == "==") return equal(a, b);
    if (sign == "!=") return !equal(a, b);
    if (sign == "in" || sign == "not in") {
      const std::optional<bool> found = holds_in(a, b);
      if (!found) return found;
      return *found == (sign == "in");
    }
    int order = 0;
    if (is_number(a) && is_number(b))
      order = number_of(a) < number_of(b) ? -1 : number_of(a) > number_of(b) ? 1 : 0;
    else if (a.is_string() && b.is_string())
      order = a.text.compare(b.text);
    else
      return std::nullopt;
    if (sign == "<") return order < 0;
    if (sign == "<=") return order <= 0;
    return sign == ">" ? order > 0 : order >= 0;
  }

  const JsonValue* compared(const Node& node) {
    const JsonValue* left = of(node.children[0]);
    for (std::size_t i = 0; left != nullptr && i < node.signs.size(); ++i) {
      const JsonValue* right = of(node.children[i + 1]);
      if (right == nullptr) return nullptr;
      const std::optional<bool> good = holds(*left, node.signs[i], *right);
      if (!good) return fail("values that " + node.signs[i] + " does not compare");
      if (!*good) return made(boolean(false));
      left = right;
    }
    return left == nullptr ? nullptr : made(boolean(true));
  }

  const JsonValue& record_;
  std::deque<JsonValue> made_;  // Its values keep their places.
  std::string problem_;
};

}  // namespace

std::optional<RecordFilter> RecordFilter::parse(std::string_view text, std::string& problem) {
  auto root = std::make_shared<Node>();
  if (!Parser(text).parse(*root, problem)) return std::nullopt;
  RecordFilter filter;
  filter.root_ = std::move(root);
  return filter;
}

std::optional<bool> RecordFilter::keeps(const JsonValue& record, std::string& problem) const {
  Evaluation evaluation(record);
  const JsonValue* value = evaluation.of(*root_);
  if (value != nullptr) return !value->is_empty();
  problem = evaluation.problem();
  return std::nullopt;
}

std::optional<RecordFilter> RecordFilter::of(const std::optional<std::string>& checked) {
  std::string ignored;
  return checked ? parse(*checked, ignored) : std::nullopt;
}

bool RecordFilter::accepts(const JsonValue& record, const std::string& name,
                           const SourceLocation& where, Diagnostics& out) const {
  std::string problem;
  const std::optional<bool> wanted = keeps(record, problem);
  if (!wanted) out.error(where, {}, "the filter fails on " + name + ": " + problem);
  return wanted.value_or(false);
}

}  // namespace routesim::workloads
