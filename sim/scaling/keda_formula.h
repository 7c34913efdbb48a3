// The formula of a ScaledObject's scalingModifiers: the part of expr-lang that combines triggers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace routesim::sim {

enum class FormulaOp : std::uint8_t {
  kNumber,
  kVariable,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kPower,
  kEqual,
  kUnequal,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,
  kOr,
  kCoalesce,  ///< `??`: the right side where the left one is nil.
  kNegate,
  kNot,
  kChoose,  ///< `a ? b : c`.
  kLet,     ///< `let x = a; b`: appends a variable.
  kMin,
  kMax,
  kAbs,
  kCeil,
  kFloor,
  kRound,
  kFloat  ///< Nothing but an error for nil.
};

/// kAny: known at run time only.
enum class FormulaType : std::uint8_t { kNumber, kTruth, kAny };

struct FormulaNode {
  FormulaOp op = FormulaOp::kNumber;
  FormulaType type = FormulaType::kNumber;
  double number = 0;
  std::size_t variable = 0;
  std::vector<std::shared_ptr<const FormulaNode>> args = {};
};
using Formula = std::shared_ptr<const FormulaNode>;

struct FormulaFault {
  std::size_t position = 0;  ///< In the text, from 0 on.
  std::string message;
  std::string hint = {};
};

/// `triggers` are the names that the formula may use.
std::variant<Formula, FormulaFault> parse_formula(std::string_view text,
                                                  const std::vector<std::string>& triggers);

/// A number, nil, or an error: arithmetic with nil.
struct FormulaResult {
  bool failed = false;
  std::optional<double> value = {};
};
/// `values` are those of the triggers, nil where a trigger has failed too often.
FormulaResult evaluate_formula(const Formula& formula,
                               const std::vector<std::optional<double>>& values);

}  // namespace routesim::sim
