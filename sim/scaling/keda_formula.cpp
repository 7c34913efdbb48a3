#include "sim/scaling/keda_formula.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/diagnostic.h"
#include "base/text.h"

namespace routesim::sim {

namespace {

struct FormulaOperator {
  std::string_view text;
  FormulaOp op;
  int precedence;
};
/// Those of expr-lang; longer ones first. The power binds to the right, the others to the left.
constexpr std::array kFormulaOperators = {FormulaOperator{"||", FormulaOp::kOr, 1},
                                          FormulaOperator{"or", FormulaOp::kOr, 1},
                                          FormulaOperator{"&&", FormulaOp::kAnd, 2},
                                          FormulaOperator{"and", FormulaOp::kAnd, 2},
                                          FormulaOperator{"==", FormulaOp::kEqual, 3},
                                          FormulaOperator{"!=", FormulaOp::kUnequal, 3},
                                          FormulaOperator{"<=", FormulaOp::kLessEqual, 3},
                                          FormulaOperator{">=", FormulaOp::kGreaterEqual, 3},
                                          FormulaOperator{"<", FormulaOp::kLess, 3},
                                          FormulaOperator{">", FormulaOp::kGreater, 3},
                                          FormulaOperator{"+", FormulaOp::kAdd, 4},
                                          FormulaOperator{"-", FormulaOp::kSubtract, 4},
                                          FormulaOperator{"**", FormulaOp::kPower, 7},
                                          FormulaOperator{"*", FormulaOp::kMultiply, 5},
                                          FormulaOperator{"/", FormulaOp::kDivide, 5},
                                          FormulaOperator{"^", FormulaOp::kPower, 7},
                                          FormulaOperator{"??", FormulaOp::kCoalesce, 8}};

struct FormulaFunction {
  std::string_view name;
  FormulaOp op;
};
constexpr std::array kFormulaFunctions = {
    FormulaFunction{"min", FormulaOp::kMin},     FormulaFunction{"max", FormulaOp::kMax},
    FormulaFunction{"abs", FormulaOp::kAbs},     FormulaFunction{"ceil", FormulaOp::kCeil},
    FormulaFunction{"floor", FormulaOp::kFloor}, FormulaFunction{"round", FormulaOp::kRound},
    FormulaFunction{"float", FormulaOp::kFloat}};

bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool continues_name(char c) { return starts_name(c) || (c >= '0' && c <= '9'); }

/// Recursive descent; the first fault throws.
class FormulaParser {
 public:
  FormulaParser(std::string_view text, std::vector<std::string> names)
      : text_(text), names_(std::move(names)), types_(names_.size(), FormulaType::kNumber) {}

  Formula parse() {
    Formula root = sequence();
    skip_space();
    // KEDA wraps formulas in float(), but those with `??`, so that nil reaches its fallback.
    const bool may_be_nil = text_.find("??") != text_.npos;
    // expr-lang's % takes whole numbers only, and triggers are none.
    if (at_ < text_.size())
      unexpected(text_[at_] == '%' ? "KEDA refuses % because triggers are no whole numbers" : "");
    at_ = 0;
    if (root->type == FormulaType::kTruth)
      fail("the formula must be a number (it is true or false)", "write ... ? 1 : 0");
    return may_be_nil ? root : make(FormulaOp::kFloat, {root}, 0);
  }

 private:
  static constexpr int kDeepest = 200;

  [[noreturn]] void fail(std::string message, std::string hint = {}) const {
    throw FormulaFault{at_, std::move(message), std::move(hint)};
  }
  [[noreturn]] void unexpected(std::string hint = {}) const {
    fail("unexpected `" + std::string(text_.substr(at_, utf8_length(text_, at_))) + "`",
         std::move(hint));
  }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  bool take(std::string_view word) {
    skip_space();
    if (!text_.substr(at_).starts_with(word)) return false;
    const std::size_t end = at_ + word.size();
    if (starts_name(word[0]) && end < text_.size() && continues_name(text_[end])) return false;
    at_ = end;
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) fail("`" + std::string(word) + "` is missing");
  }
  std::string name() {
    skip_space();
    const std::size_t start = at_;
    if (at_ < text_.size() && starts_name(text_[at_]))
      while (at_ < text_.size() && continues_name(text_[at_])) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }
  /// `at` is where a fault of its arguments' types is shown.
  Formula make(FormulaOp op, std::vector<Formula> args, std::size_t at) {
    const FormulaType type = type_of(op, args, at);
    return std::make_shared<const FormulaNode>(FormulaNode{op, type, 0, 0, std::move(args)});
  }
  FormulaType type_of(FormulaOp op, const std::vector<Formula>& args, std::size_t at);

  Formula sequence();
  Formula choice();
  Formula binary(int least);
  Formula unary();
  Formula primary();
  Formula named();

  std::string_view text_;
  std::vector<std::string> names_;
  std::vector<FormulaType> types_;  ///< Of `names_`.
  std::size_t at_ = 0;
  int depth_ = 0;
};

/// expr-lang's checker (checker/checker.go of 1.17), with which KEDA compiles formulas.
FormulaType FormulaParser::type_of(FormulaOp op, const std::vector<Formula>& args, std::size_t at) {
  const auto expect_none = [&](FormulaType wrong, const char* message) {
    if (std::ranges::find(args, wrong, &FormulaNode::type) == args.end()) return;
    at_ = at;
    fail(message, "KEDA does not take the formula");
  };
  const auto common = [](FormulaType a, FormulaType b) { return a == b ? a : FormulaType::kAny; };
  constexpr const char* kNoNumber = "this takes true or false, and not a number";
  constexpr const char* kNoTruth = "this takes numbers, and not true or false";
  switch (op) {
    case FormulaOp::kAnd:
    case FormulaOp::kOr:
    case FormulaOp::kNot:
      expect_none(FormulaType::kNumber, kNoNumber);
      return FormulaType::kTruth;
    case FormulaOp::kEqual:
    case FormulaOp::kUnequal:
      if (args[0]->type == FormulaType::kTruth) expect_none(FormulaType::kNumber, kNoNumber);
      if (args[0]->type == FormulaType::kNumber) expect_none(FormulaType::kTruth, kNoTruth);
      return FormulaType::kTruth;
    case FormulaOp::kChoose:
      if (args[0]->type == FormulaType::kNumber) {
        at_ = at;
        fail("`?` takes true or false, and not a number", "compare it: ... > 0 ? 1 : 0");
      }
      return common(args[1]->type, args[2]->type);
    case FormulaOp::kCoalesce:
      return common(args[0]->type, args[1]->type);
    case FormulaOp::kLet:
      return args[1]->type;
    default:
      expect_none(FormulaType::kTruth, kNoTruth);
      const bool compares = op >= FormulaOp::kLess && op <= FormulaOp::kGreaterEqual;
      return compares ? FormulaType::kTruth : FormulaType::kNumber;
  }
}

Formula FormulaParser::sequence() {
  if (++depth_ > kDeepest) fail("the formula is nested too deeply");
  Formula result;
  if (take("let")) {
    const std::string variable = name();
    if (variable.empty()) fail("a name is missing after `let`");
    expect("=");
    Formula value = choice();
    expect(";");
    names_.push_back(variable);
    types_.push_back(value->type);
    Formula rest = sequence();
    names_.pop_back();
    types_.pop_back();
    result = make(FormulaOp::kLet, {std::move(value), std::move(rest)}, at_);
  } else {
    result = choice();
  }
  --depth_;
  return result;
}

Formula FormulaParser::choice() {
  if (++depth_ > kDeepest) fail("the formula is nested too deeply");
  Formula result = binary(1);
  skip_space();
  const std::size_t start = at_;
  if (!text_.substr(at_).starts_with("??") && take("?")) {
    Formula yes = choice();
    expect(":");
    Formula no = choice();
    result = make(FormulaOp::kChoose, {std::move(result), std::move(yes), std::move(no)}, start);
  }
  --depth_;
  return result;
}

Formula FormulaParser::binary(int least) {
  if (++depth_ > kDeepest) fail("the formula is nested too deeply");
  Formula left = unary();
  for (;;) {
    skip_space();
    const std::size_t start = at_;
    const auto found = std::ranges::find_if(kFormulaOperators, [&](const FormulaOperator& o) {
      return o.precedence >= least && take(o.text);
    });
    if (found == kFormulaOperators.end()) break;
    Formula right =
        binary(found->op == FormulaOp::kPower ? found->precedence : found->precedence + 1);
    left = make(found->op, {std::move(left), std::move(right)}, start);
  }
  --depth_;
  return left;
}

Formula FormulaParser::unary() {
  while (take("+")) continue;
  skip_space();
  const std::size_t start = at_;
  if (take("-")) return make(FormulaOp::kNegate, {binary(6)}, start);
  if (!text_.substr(at_).starts_with("!=") && (take("!") || take("not")))
    return make(FormulaOp::kNot, {binary(6)}, start);
  return primary();
}

Formula FormulaParser::primary() {
  skip_space();
  if (at_ >= text_.size()) fail("the formula ends too early");
  if (take("(")) {
    Formula inner = sequence();
    expect(")");
    return inner;
  }
  if (starts_name(text_[at_])) return named();
  FormulaNode node;
  const char* begin = text_.data() + at_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), node.number);
  if (error != std::errc()) unexpected();
  at_ += static_cast<std::size_t>(end - begin);
  return std::make_shared<const FormulaNode>(std::move(node));
}

Formula FormulaParser::named() {
  const std::size_t start = at_;
  const std::string word = name();
  if (take("(")) {
    const auto function = std::ranges::find(kFormulaFunctions, word, &FormulaFunction::name);
    if (function == kFormulaFunctions.end()) {
      at_ = start;
      fail("function `" + word + "` is not simulated",
           "known are min, max, abs, ceil, floor, round and float");
    }
    std::vector<Formula> args = {choice()};
    while (take(",")) args.push_back(choice());
    expect(")");
    const bool takes_many = word == "min" || word == "max";
    if (args.size() > 1 && !takes_many) fail("`" + word + "` takes one number");
    return make(function->op, std::move(args), start);
  }
  // The youngest `let` of a name hides others.
  const auto found = std::find(names_.rbegin(), names_.rend(), word);
  if (found == names_.rend()) {
    at_ = start;
    fail("`" + word + "` is no trigger's name",
         did_you_mean(word, names_, "each trigger that the formula uses has a `name`"));
  }
  FormulaNode node;
  node.op = FormulaOp::kVariable;
  node.variable = static_cast<std::size_t>(names_.rend() - found) - 1;
  node.type = types_[node.variable];
  return std::make_shared<const FormulaNode>(std::move(node));
}

constexpr FormulaResult kFormulaError = {.failed = true};

FormulaResult number_of(double value) { return {.value = value}; }

double operate(FormulaOp op, double a, double b) {
  switch (op) {
    case FormulaOp::kAdd:
      return a + b;
    case FormulaOp::kSubtract:
      return a - b;
    case FormulaOp::kMultiply:
      return a * b;
    case FormulaOp::kDivide:
      return a / b;
    case FormulaOp::kPower:
      return std::pow(a, b);
    case FormulaOp::kLess:
      return a < b;
    case FormulaOp::kLessEqual:
      return a <= b;
    case FormulaOp::kGreater:
      return a > b;
    case FormulaOp::kGreaterEqual:
      return a >= b;
    case FormulaOp::kMin:
      return std::min(a, b);
    default:
      return std::max(a, b);
  }
}

double change(FormulaOp op, double x) {
  switch (op) {
    case FormulaOp::kNegate:
      return -x;
    case FormulaOp::kNot:
      return x == 0;
    case FormulaOp::kAbs:
      return std::abs(x);
    case FormulaOp::kCeil:
      return std::ceil(x);
    case FormulaOp::kFloor:
      return std::floor(x);
    case FormulaOp::kRound:
      return std::round(x);
    default:
      return x;
  }
}

class FormulaRun {
 public:
  explicit FormulaRun(const std::vector<std::optional<double>>& values) : values_(values) {}

  FormulaResult run(const FormulaNode& node) {
    switch (node.op) {
      case FormulaOp::kNumber:
        return number_of(node.number);
      case FormulaOp::kVariable:
        return {.value = values_[node.variable]};
      case FormulaOp::kLet:
      case FormulaOp::kChoose:
      case FormulaOp::kCoalesce:
      case FormulaOp::kAnd:
      case FormulaOp::kOr:
        return lazy(node);
      default:
        return eager(node);
    }
  }

 private:
  FormulaResult lazy(const FormulaNode& node) {
    const FormulaResult first = run(*node.args[0]);
    if (first.failed) return first;
    if (node.op == FormulaOp::kCoalesce) return first.value ? first : run(*node.args[1]);
    if (node.op == FormulaOp::kLet) {
      values_.push_back(first.value);
      const FormulaResult rest = run(*node.args[1]);
      values_.pop_back();
      return rest;
    }
    if (!first.value) return kFormulaError;
    const bool holds = *first.value != 0;
    if (node.op == FormulaOp::kChoose) return run(*node.args[holds ? 1 : 2]);
    return holds == (node.op == FormulaOp::kOr) ? first : run(*node.args[1]);
  }

  FormulaResult eager(const FormulaNode& node) {
    std::vector<std::optional<double>> args;
    for (const Formula& arg : node.args) {
      const FormulaResult result = run(*arg);
      if (result.failed) return result;
      args.push_back(result.value);
    }
    // Nil can be compared for equality, and nothing else.
    if (node.op == FormulaOp::kEqual) return number_of(args[0] == args[1]);
    if (node.op == FormulaOp::kUnequal) return number_of(args[0] != args[1]);
    for (const std::optional<double>& arg : args)
      if (!arg) return kFormulaError;
    if (args.size() == 1) return number_of(change(node.op, *args[0]));
    double result = *args[0];
    for (std::size_t i = 1; i < args.size(); ++i) result = operate(node.op, result, *args[i]);
    return number_of(result);
  }

  std::vector<std::optional<double>> values_;
};

}  // namespace

std::variant<Formula, FormulaFault> parse_formula(std::string_view text,
                                                  const std::vector<std::string>& triggers) {
  try {
    return FormulaParser(text, triggers).parse();
  } catch (const FormulaFault& fault) {
    return fault;
  }
}

FormulaResult evaluate_formula(const Formula& formula,
                               const std::vector<std::optional<double>>& values) {
  return FormulaRun(values).run(*formula);
}

}  // namespace routesim::sim
