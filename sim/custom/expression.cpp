#include "sim/custom/expression.h"

#include <muParser.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/diagnostic.h"
#include "base/run_error.h"
#include "sim/custom/score_sheet.h"
#include "sim/custom/server_view.h"

namespace routesim::sim {
namespace {

/// The variables of a formula, at the addresses that the library reads.
struct Variables {
  double prefix_hit = 0, prefix_tokens = 0, waiting = 0, running = 0, kv_usage = 0, age = 0;
  double in_flight = 0, in_flight_tokens = 0, prompt_tokens = 0, max_tokens = 0, priority = 0;
  double servers = 0, server = 0, random = 0;
};

struct Name {
  ExpressionName documented;
  double Variables::*value;
  bool metrics = false, prefix = false;
};

constexpr std::array<Name, 14> kNames = {{
    {{"prefix_hit", "share of the prompt's tokens that the server has cached, 0 to 1"},
     &Variables::prefix_hit,
     false,
     true},
    {{"prefix_tokens", "prompt tokens that the server has cached, from the first on"},
     &Variables::prefix_tokens,
     false,
     true},
    {{"waiting", "requests in the engine's queue, as last scraped"}, &Variables::waiting, true},
    {{"running", "requests in the engine's batch, as last scraped"}, &Variables::running, true},
    {{"kv_usage", "share of KV blocks in use, 0 to 1, as last scraped"},
     &Variables::kv_usage,
     true},
    {{"age", "seconds since the last scrape"}, &Variables::age, true},
    {{"in_flight", "requests that this router has sent there and that are not answered"},
     &Variables::in_flight},
    {{"in_flight_tokens", "their prompt tokens"}, &Variables::in_flight_tokens},
    {{"prompt_tokens", "length of the prompt in tokens"}, &Variables::prompt_tokens},
    {{"max_tokens", "the client's cap on the answer in tokens; 0 = none"}, &Variables::max_tokens},
    {{"priority", "the request's priority"}, &Variables::priority},
    {{"servers", "number of servers"}, &Variables::servers},
    {{"server", "number of the server, from 0 on"}, &Variables::server},
    {{"random", "a new draw for each server, at least 0 and below 1"}, &Variables::random},
}};

constexpr std::array<ExpressionName, kNames.size()> kDocumented = [] {
  std::array<ExpressionName, kNames.size()> names;
  for (std::size_t i = 0; i < kNames.size(); ++i) names[i] = kNames[i].documented;
  return names;
}();

void define(mu::Parser& parser, Variables& variables) {
  for (const Name& n : kNames)
    parser.DefineVar(std::string(n.documented.name), &(variables.*n.value));
}

std::string all_names() {
  std::string out;
  for (const Name& n : kNames) out += (out.empty() ? "" : ", ") + std::string(n.documented.name);
  return out;
}

/// The place of an = that compares nothing, or npos.
std::size_t assignment(std::string_view formula) {
  for (std::size_t i = 0; i < formula.size(); ++i) {
    if (formula[i] != '=') continue;
    if (i + 1 < formula.size() && formula[i + 1] == '=')
      ++i;
    else if (i == 0 || std::string_view("<>!").find(formula[i - 1]) == std::string_view::npos)
      return i;
  }
  return std::string_view::npos;
}

/// The place of the first comma outside parentheses, or 0.
std::size_t outer_comma(std::string_view formula) {
  int depth = 0;
  for (std::size_t i = 0; i < formula.size(); ++i) {
    if (formula[i] == '(') ++depth;
    if (formula[i] == ')') --depth;
    if (formula[i] == ',' && depth == 0) return i;
  }
  return 0;
}

/// A formula over the variables that it was made with.
class Formula {
 public:
  Formula(const std::string& text, Variables& variables) : text_(text) {
    define(parser_, variables);
    parser_.SetExpr(text);
    for (const auto& [used, address] : parser_.GetUsedVar())
      for (const Name& n : kNames)
        if (n.documented.name == used) {
          used_.push_back(&n);
          inputs_.metrics = inputs_.metrics || n.metrics;
          inputs_.prefix = inputs_.prefix || n.prefix;
          uses_random_ = uses_random_ || n.value == &Variables::random;
        }
  }
  double operator()() const { return parser_.Eval(); }
  ViewInputs inputs() const { return inputs_; }
  bool uses_random() const { return uses_random_; }
  const std::string& text() const { return text_; }
  const std::vector<const Name*>& used() const { return used_; }

 private:
  std::string text_;
  mu::Parser parser_;
  std::vector<const Name*> used_;
  ViewInputs inputs_;
  bool uses_random_ = false;
};

class Expression final : public policies::Balancer, public KeepsScores {
 public:
  Expression(const ExpressionSettings& settings, const RandomStream& random)
      : score_(settings.score, variables_), view_(inputs(settings)), random_(random) {
    if (!settings.filter.empty()) filter_.emplace(settings.filter, variables_);
  }

  policies::BalancerNeeds needs() const override { return view_.needs(); }
  policies::PrefixIndex* prefix_index() override { return view_.index(); }
  void set_endpoints(std::span<const policies::BalancerEndpoint> endpoints) override {
    Balancer::set_endpoints(endpoints);
    view_.set_endpoints(*this, endpoints);
  }

  policies::BalancerAnswer pick(const policies::BalancerRequest& request) override {
    view_.update(request, in_flight());
    set_request(request);
    double best = -std::numeric_limits<double>::infinity();
    std::optional<std::uint32_t> chosen;
    std::uint64_t ties = 0;
    for (std::uint32_t i = 0; i < size(); ++i) {
      if (!serves(i, request.adapter)) continue;
      set_server(i, request);
      if (filter_ && finite(*filter_, "filter", i, request) == 0) continue;
      const double score = finite(score_, "score", i, request);
      if (sheet_ != nullptr) note(i, score);
      if (chosen && score < best) continue;
      ties = chosen && score == best ? ties + 1 : 1;
      best = score;
      if (ties == 1 || random_.below(ties) == 0) chosen = i;
    }
    if (!chosen) return policies::BalancerAnswer::refused(503);
    return pick_of(*chosen);
  }
  void keep_scores(ScoreSheet* sheet) override {
    sheet_ = sheet;
    if (sheet == nullptr) return;
    for (const Name* n : score_.used()) sheet->names.emplace_back(n->documented.name);
  }
  void on_sent(const policies::BalancerPick& pick,
               const policies::BalancerRequest& request) override {
    Balancer::on_sent(pick, request);
    view_.on_sent(pick, request);
  }
  void on_completed(const policies::BalancerPick& pick,
                    const policies::BalancerOutcome& outcome) override {
    Balancer::on_completed(pick, outcome);
    view_.on_completed(outcome);
  }

 private:
  static ViewInputs inputs(const ExpressionSettings& settings) {
    Variables unused;
    ViewInputs all = Formula(settings.score, unused).inputs();
    if (settings.filter.empty()) return all;
    const ViewInputs more = Formula(settings.filter, unused).inputs();
    return {.metrics = all.metrics || more.metrics, .prefix = all.prefix || more.prefix};
  }
  void set_request(const policies::BalancerRequest& request) {
    variables_.prompt_tokens = static_cast<double>(request.prompt_tokens);
    variables_.max_tokens = static_cast<double>(request.max_tokens.value_or(0));
    variables_.priority = request.priority;
    variables_.servers = static_cast<double>(size());
  }
  void set_server(std::uint32_t i, const policies::BalancerRequest& request) {
    Variables& v = variables_;
    v.prefix_tokens = view_.prefix_tokens[i];
    v.prefix_hit = request.prompt_tokens > 0 ? v.prefix_tokens / v.prompt_tokens : 0;
    v.waiting = view_.waiting[i];
    v.running = view_.running[i];
    v.kv_usage = view_.kv_usage[i];
    v.age = view_.age[i];
    v.in_flight = view_.in_flight[i];
    v.in_flight_tokens = view_.in_flight_tokens[i];
    v.server = i;
    if (score_.uses_random() || (filter_ && filter_->uses_random())) v.random = random_.uniform();
  }
  void note(std::uint32_t i, double score) {
    ScoreSheet::Row row{.endpoint = i, .score = score, .inputs = {}};
    for (const Name* n : score_.used()) row.inputs.push_back(variables_.*(n->value));
    sheet_->rows.push_back(std::move(row));
  }
  /// The formula's value. Infinite ones tie at every server, so that chance would route; NaN
  /// compares with nothing.
  double finite(const Formula& formula, const char* key, std::uint32_t i,
                const policies::BalancerRequest& request) const {
    const double value = formula();
    if (std::isfinite(value)) return value;
    Diagnostic d;
    d.path = std::string("routing.expression.") + key;
    d.message = (std::isnan(value) ? "is not a number for request " : "is infinite for request ") +
                std::to_string(request.id) + " at " + endpoints()[i].name + " (got " +
                formula.text() + ")";
    d.hint =
        "a division by 0, log(0) or the root of a negative number gives no finite number: use "
        "max(x, 1)";
    throw RunError(std::move(d));
  }

  Variables variables_;
  Formula score_;
  std::optional<Formula> filter_;
  ServerView view_;
  RandomStream random_;
  ScoreSheet* sheet_ = nullptr;  ///< The decision that is explained writes here.
};

}  // namespace

void describe(Describer& d, ExpressionSettings& s) {
  field(d,
        {"score",
         "expression: a formula such as `2 * prefix_hit - waiting / 10`; the server with the "
         "highest value gets the request.",
         true},
        s.score);
  field(d, {"filter", "expression: servers where this formula is 0 are left out."}, s.filter);
}

std::span<const ExpressionName> expression_names() { return kDocumented; }

std::optional<ExpressionFault> expression_fault(const std::string& formula) {
  ExpressionFault fault;
  // The library takes `x = 0` as an assignment to the variable, and the last of several values
  // that commas separate: `0,5 * x` would mean 5 x.
  if (const std::size_t at = assignment(formula); at != std::string::npos) {
    fault.position = at;
    fault.message = "assigns to a quantity with =, and a formula only compares";
    fault.hint = "write == to compare";
    return fault;
  }
  try {
    Variables variables;
    mu::Parser parser;
    define(parser, variables);
    parser.SetExpr(formula);
    int values = 0;
    parser.Eval(values);
    if (values == 1) return std::nullopt;
    fault.position = outer_comma(formula);
    fault.message = "gives " + std::to_string(values) + " values, with a comma between them";
    fault.hint = "a number has a decimal point, 0.5; a comma separates what max(x, y) takes";
    return fault;
  } catch (const mu::Parser::exception_type& e) {
    fault.position = std::min(static_cast<std::size_t>(e.GetPos()), formula.size());
    if (e.GetCode() == mu::ecUNASSIGNABLE_TOKEN) {
      fault.message = "names an unknown quantity (got " + e.GetToken() + ")";
      std::vector<std::string> known;
      for (const Name& n : kNames) known.emplace_back(n.documented.name);
      const std::string near = nearest(e.GetToken(), known);
      fault.hint = near.empty() ? "known: " + all_names() : "did you mean " + near + "?";
    } else {
      fault.message = "is no formula: " + e.GetMsg();
      fault.hint = "known: " + all_names();
    }
    return fault;
  }
}

std::unique_ptr<policies::Balancer> make_expression(const ExpressionSettings& settings,
                                                    const RandomStream& random) {
  return std::make_unique<Expression>(settings, random);
}

}  // namespace routesim::sim
