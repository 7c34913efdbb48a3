#include "sim/scaling/prometheus_query.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/diagnostic.h"
#include "base/text.h"

namespace routesim::sim {

namespace {

using Node = std::shared_ptr<const PromNode>;

struct Operator {
  std::string_view text;
  PromOp op;
  int precedence;
};
/// Longer ones first. The power binds to the right, the others to the left.
constexpr std::array kOperators = {
    Operator{"unless", PromOp::kUnless, 2},   Operator{"and", PromOp::kAnd, 2},
    Operator{"or", PromOp::kOr, 1},           Operator{"==", PromOp::kEqual, 3},
    Operator{"!=", PromOp::kUnequal, 3},      Operator{"<=", PromOp::kLessEqual, 3},
    Operator{">=", PromOp::kGreaterEqual, 3}, Operator{"<", PromOp::kLess, 3},
    Operator{">", PromOp::kGreater, 3},       Operator{"+", PromOp::kAdd, 4},
    Operator{"-", PromOp::kSubtract, 4},      Operator{"*", PromOp::kMultiply, 5},
    Operator{"/", PromOp::kDivide, 5},        Operator{"%", PromOp::kModulo, 5},
    Operator{"^", PromOp::kPower, 6}};

/// Types of the arguments: s(calar), v(ector), r(ange).
struct Function {
  std::string_view name;
  PromOp op;
  std::string_view args;
};
constexpr std::array kFunctions = {Function{"rate", PromOp::kRate, "r"},
                                   Function{"irate", PromOp::kIrate, "r"},
                                   Function{"increase", PromOp::kIncrease, "r"},
                                   Function{"delta", PromOp::kDelta, "r"},
                                   Function{"avg_over_time", PromOp::kAvgOverTime, "r"},
                                   Function{"min_over_time", PromOp::kMinOverTime, "r"},
                                   Function{"max_over_time", PromOp::kMaxOverTime, "r"},
                                   Function{"sum_over_time", PromOp::kSumOverTime, "r"},
                                   Function{"count_over_time", PromOp::kCountOverTime, "r"},
                                   Function{"last_over_time", PromOp::kLastOverTime, "r"},
                                   Function{"histogram_quantile", PromOp::kHistogramQuantile, "sv"},
                                   Function{"clamp", PromOp::kClamp, "vss"},
                                   Function{"clamp_min", PromOp::kClampMin, "vs"},
                                   Function{"clamp_max", PromOp::kClampMax, "vs"},
                                   Function{"vector", PromOp::kVector, "s"},
                                   Function{"scalar", PromOp::kScalar, "v"},
                                   Function{"abs", PromOp::kAbs, "v"},
                                   Function{"ceil", PromOp::kCeil, "v"},
                                   Function{"floor", PromOp::kFloor, "v"},
                                   Function{"round", PromOp::kRound, "v"},
                                   Function{"sqrt", PromOp::kSqrt, "v"}};
constexpr std::array kAggregations = {
    Function{"sum", PromOp::kSum, "v"}, Function{"avg", PromOp::kAvg, "v"},
    Function{"min", PromOp::kMin, "v"}, Function{"max", PromOp::kMax, "v"},
    Function{"count", PromOp::kCount, "v"}};

/// Labels that tell one model server from another.
constexpr std::array<std::string_view, 7> kPodLabels = {
    "pod",   "instance", "pod_name", "endpoint_name", "kubernetes_pod_name", "model_server_pod",
    "engine"};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view type_text(PromType type) {
  return type == PromType::kScalar   ? "a number"
         : type == PromType::kVector ? "an instant vector"
                                     : "a range vector";
}

/// Recursive descent. The first fault throws; a text deeper than kDeepest is one.
class Parser {
 public:
  Parser(std::string_view text, const std::vector<std::string>& rules, FleetExporters exporters)
      : text_(text), rules_(rules), exporters_(exporters) {}

  PromQuery parse() {
    query_.root = binary(1);
    skip_space();
    if (at_ < text_.size()) unexpected();
    if (query_.root->type == PromType::kRange)
      fail_at(0, "a range vector is no result", "take rate(), max_over_time() or another function");
    return std::move(query_);
  }

 private:
  static constexpr int kDeepest = 60;

  [[noreturn]] static void fail_at(std::size_t at, std::string message, std::string hint = {}) {
    throw PromFault{at, std::move(message), std::move(hint)};
  }
  [[noreturn]] void fail(std::string message, std::string hint = {}) const {
    fail_at(at_, std::move(message), std::move(hint));
  }

  [[noreturn]] void unexpected() const {
    fail("unexpected `" + std::string(text_.substr(at_, utf8_length(text_, at_))) + "`");
  }

  void skip_space() {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '#') at_ = std::min(text_.find('\n', at_), text_.size());
      if (at_ >= text_.size() ||
          (text_[at_] != ' ' && text_[at_] != '\t' && text_[at_] != '\n' && text_[at_] != '\r'))
        return;
    }
  }
  bool take(std::string_view word) {
    skip_space();
    if (!text_.substr(at_).starts_with(word)) return false;
    const std::size_t end = at_ + word.size();
    if (is_letter(word[0]) && end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end])))
      return false;
    at_ = end;
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) fail("`" + std::string(word) + "` is missing");
  }
  std::string_view word() {
    skip_space();
    const std::size_t start = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || (at_ > start && is_digit(text_[at_]))))
      ++at_;
    return text_.substr(start, at_ - start);
  }

  Node binary(int least);
  Node unary();
  Node primary();
  Node number();
  Node named();
  Node call(const Function& function, std::size_t start);
  Node aggregation(const Function& function);
  void grouping(PromNode& node);
  Node selector(std::string_view name, std::size_t start);
  void matchers(PromNode& node, std::string& name);
  Duration duration();
  Node combine(PromNode node, std::size_t start);

  std::string_view text_;
  const std::vector<std::string>& rules_;
  FleetExporters exporters_;
  std::size_t at_ = 0;
  int depth_ = 0;
  PromQuery query_;
};

Node Parser::binary(int least) {
  if (++depth_ > kDeepest) fail("the query is nested too deeply");
  Node left = unary();
  skip_space();
  if (at_ < text_.size() && text_[at_] == '[')
    fail("subqueries are not simulated", "record the inner query as a rule");
  for (;;) {
    skip_space();
    const std::size_t start = at_;
    const auto found = std::ranges::find_if(
        kOperators, [&](const Operator& o) { return o.precedence >= least && take(o.text); });
    if (found == kOperators.end()) break;
    PromNode node;
    node.op = found->op;
    if (take("bool")) {
      if (found->precedence != 3) fail("`bool` belongs to comparisons");
      node.is_bool = true;
    }
    for (const char* matching : {"on", "ignoring", "group_left", "group_right"})
      if (take(matching))
        fail_at(start, "`" + std::string(matching) + "` is not simulated",
                "series of a pool differ in pod and le alone; sum() both sides");
    // The power binds to the right.
    node.args = {left,
                 binary(found->op == PromOp::kPower ? found->precedence : found->precedence + 1)};
    left = combine(std::move(node), start);
  }
  --depth_;
  return left;
}

Node Parser::combine(PromNode node, std::size_t start) {
  const PromType a = node.args[0]->type, b = node.args[1]->type;
  if (a == PromType::kRange || b == PromType::kRange)
    fail_at(start, "an operator takes no range vector", "take rate() or another function of it");
  const bool are_scalars = a == PromType::kScalar && b == PromType::kScalar;
  const bool is_set =
      node.op == PromOp::kAnd || node.op == PromOp::kOr || node.op == PromOp::kUnless;
  if (is_set && (a == PromType::kScalar || b == PromType::kScalar))
    fail_at(start, "`and`, `or` and `unless` take no numbers", "write vector(0) for the number 0");
  const bool compares = node.op >= PromOp::kEqual && node.op <= PromOp::kGreaterEqual;
  if (compares && are_scalars && !node.is_bool)
    fail_at(start, "a comparison of two numbers needs `bool`");
  node.type = are_scalars ? PromType::kScalar : PromType::kVector;
  return std::make_shared<const PromNode>(std::move(node));
}

Node Parser::unary() {
  skip_space();
  const std::size_t start = at_;
  while (take("+")) continue;
  if (!take("-")) return primary();
  PromNode node;
  node.op = PromOp::kNegate;
  node.args = {binary(6)};  // -2^2 is -4.
  node.type = node.args[0]->type;
  if (node.type == PromType::kRange) fail_at(start, "`-` takes no range vector");
  return std::make_shared<const PromNode>(std::move(node));
}

Node Parser::primary() {
  skip_space();
  if (at_ >= text_.size()) fail("the query ends too early");
  if (take("(")) {
    Node inner = binary(1);
    expect(")");
    return inner;
  }
  const char c = text_[at_];
  if (is_digit(c) || c == '.') return number();
  if (c == '{') return selector("", at_);
  if (c == '$') fail("the query has a variable of Grafana", "write the duration or the label");
  if (!is_letter(c)) unexpected();
  return named();
}

Node Parser::number() {
  PromNode node;
  const char* begin = text_.data() + at_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), node.number);
  if (error != std::errc()) fail("this is no number");
  at_ += static_cast<std::size_t>(end - begin);
  if (at_ < text_.size() && is_letter(text_[at_])) fail("this is no number");
  return std::make_shared<const PromNode>(std::move(node));
}

Node Parser::named() {
  const std::size_t start = at_;
  const std::string_view name = word();
  for (const Function& f : kAggregations)
    if (f.name == name) return aggregation(f);
  for (const Function& f : kFunctions)
    if (f.name == name) return call(f, start);
  if (name == "Inf" || name == "inf" || name == "NaN") {
    PromNode node;
    node.number = name == "NaN" ? std::numeric_limits<double>::quiet_NaN()
                                : std::numeric_limits<double>::infinity();
    return std::make_shared<const PromNode>(std::move(node));
  }
  skip_space();
  if (at_ < text_.size() && text_[at_] == '(') {
    std::vector<std::string> known;
    for (const Function& f : kAggregations) known.emplace_back(f.name);
    for (const Function& f : kFunctions) known.emplace_back(f.name);
    fail_at(start, "function `" + std::string(name) + "` is not simulated",
            did_you_mean(std::string(name), known, "take sum, avg, max, rate or quantiles"));
  }
  return selector(name, start);
}

Node Parser::call(const Function& function, std::size_t start) {
  PromNode node;
  node.op = function.op;
  expect("(");
  for (std::size_t i = 0; i < function.args.size(); ++i) {
    if (i > 0) expect(",");
    skip_space();
    const std::size_t place = at_;
    node.args.push_back(binary(1));
    const PromType want = function.args[i] == 's'   ? PromType::kScalar
                          : function.args[i] == 'v' ? PromType::kVector
                                                    : PromType::kRange;
    const PromType got = node.args.back()->type;
    if (got != want)
      fail_at(place,
              std::string(function.name) + "() takes " + std::string(type_text(want)) + " (got " +
                  std::string(type_text(got)) + ")",
              want == PromType::kRange ? "add a range such as [1m]" : "");
  }
  if (!take(")")) fail_at(start, std::string(function.name) + "() is not closed");
  node.type = function.op == PromOp::kScalar ? PromType::kScalar : PromType::kVector;
  return std::make_shared<const PromNode>(std::move(node));
}

/// `by (…)` and `without (…)`. Labels that all series of a pool share make no groups.
void Parser::grouping(PromNode& node) {
  const bool by = take("by");
  if (!by && !take("without")) return;
  expect("(");
  bool names_pod = false, names_le = false;
  while (!take(")")) {
    skip_space();
    const std::string_view label = word();
    if (label.empty()) fail("a label is missing");
    names_pod |= std::ranges::find(kPodLabels, label) != kPodLabels.end();
    names_le |= label == "le";
    take(",");
  }
  node.keeps_pod = names_pod == by;
  node.keeps_le = names_le == by;
}

Node Parser::aggregation(const Function& function) {
  PromNode node;
  node.op = function.op;
  node.type = PromType::kVector;
  grouping(node);
  expect("(");
  skip_space();
  const std::size_t place = at_;
  node.args = {binary(1)};
  if (node.args[0]->type != PromType::kVector)
    fail_at(place, std::string(function.name) + "() takes an instant vector (got " +
                       std::string(type_text(node.args[0]->type)) + ")");
  expect(")");
  grouping(node);
  return std::make_shared<const PromNode>(std::move(node));
}

void Parser::matchers(PromNode& node, std::string& name) {
  while (!take("}")) {
    skip_space();
    const std::size_t start = at_;
    const std::string_view label = word();
    if (label.empty()) fail("a label is missing");
    std::string_view op;
    for (const std::string_view candidate : {"=~", "!~", "!=", "="})
      if (op.empty() && take(candidate)) op = candidate;
    if (op.empty()) fail("`=`, `!=`, `=~` or `!~` is missing");
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '"' && quote != '\'' && quote != '`') fail("the label's value has no quotes");
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) fail("the label's value does not end");
    const std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    if (label == "__name__" && op == "=") {
      name = value;
    } else if (label == "le" && op == "=") {
      double le = std::numeric_limits<double>::infinity();
      const char* last = value.data() + value.size();
      if (value != "+Inf" && std::from_chars(value.data(), last, le).ptr != last)
        fail_at(start, "le is no number");
      node.le = le;
    } else {
      query_.matchers.emplace_back(text_.substr(start, at_ - start));
    }
    take(",");
  }
}

Node Parser::selector(std::string_view written, std::size_t start) {
  PromNode node;
  node.op = PromOp::kSelect;
  node.type = PromType::kVector;
  std::string name(written);
  if (take("{")) matchers(node, name);
  const auto rule = std::ranges::find(rules_, name);
  if (rule != rules_.end()) {
    node.series = kFirstRule + static_cast<SeriesId>(rule - rules_.begin());
  } else if (const std::optional<SeriesName> series = series_of(name)) {
    const bool exported = has_exporter(exporters_, exporter_of(name));
    node.series = exported ? id_of(*series) : kNoSeries;
    if (!exported) query_.missing.push_back(name);
  } else {
    std::vector<std::string> known = fleet_metric_names();
    known.insert(known.end(), rules_.begin(), rules_.end());
    const bool is_histogram = std::ranges::find(known, name) != known.end();
    fail_at(start, "metric `" + name + "` is not simulated",
            is_histogram
                ? "add _bucket, _sum or _count"
                : did_you_mean(name, known,
                               "known are metrics of vLLM, SGLang, the endpoint picker and "
                               "kube-state-metrics, and rules in `recording_rules`"));
  }
  if (take("[")) {
    node.range = duration();
    node.type = PromType::kRange;
    if (take(":")) fail("subqueries are not simulated", "record the inner query as a rule");
    expect("]");
    query_.longest_range = std::max(query_.longest_range, node.range);
  }
  if (take("offset") || take("@"))
    fail("`offset` and `@` are not simulated", "ask for the present");
  if (node.series != kNoSeries) query_.series.push_back(node.series);
  return std::make_shared<const PromNode>(std::move(node));
}

Duration Parser::duration() {
  constexpr std::array<std::pair<std::string_view, double>, 6> units = {
      {{"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800}}};
  skip_space();
  double seconds = 0;
  const std::size_t start = at_;
  while (at_ < text_.size() && is_digit(text_[at_])) {
    double count = 0;
    const char* begin = text_.data() + at_;
    at_ += static_cast<std::size_t>(
        std::from_chars(begin, text_.data() + text_.size(), count, std::chars_format::fixed).ptr -
        begin);
    const auto unit = std::ranges::find_if(
        units, [&](const auto& u) { return text_.substr(at_).starts_with(u.first); });
    if (unit != units.end()) at_ += unit->first.size();
    seconds += count * (unit != units.end() ? unit->second : 1);
  }
  if (at_ == start && at_ < text_.size() && text_[at_] == '$')
    fail("the query has a variable of Grafana", "write the duration, such as [1m]");
  if (!(seconds > 0) || seconds > 30.0 * 86400)
    fail_at(start, "a range is a duration above 0 and of at most 30d");
  return Duration::from_seconds(seconds);
}

}  // namespace

std::variant<PromQuery, PromFault> parse_promql(std::string_view text,
                                                const std::vector<std::string>& rules,
                                                FleetExporters exporters) {
  try {
    return Parser(text, rules, exporters).parse();
  } catch (const PromFault& fault) {
    return fault;
  }
}

}  // namespace routesim::sim
