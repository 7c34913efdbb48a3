// balancer: expression. A formula gives every server a score, and the highest wins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/rng.h"
#include "policies/balancers/balancer.h"

namespace routesim::sim {

/// Settings of balancer `expression`.
struct ExpressionSettings {
  std::string score;   ///< Required; the highest wins, ties are drawn.
  std::string filter;  ///< Servers where it is 0 are left out; "" = none.
};
void describe(Describer& d, ExpressionSettings& s);

/// One quantity that a formula can name.
struct ExpressionName {
  std::string_view name;
  std::string_view meaning;  ///< With its unit.
};
/// All of them, in the order in which they are documented.
std::span<const ExpressionName> expression_names();

/// The fault of a formula.
struct ExpressionFault {
  std::size_t position = 0;  ///< Of the wrong token, from 0 on.
  std::string message;
  std::string hint;
};
/// Nothing where the formula can be evaluated.
std::optional<ExpressionFault> expression_fault(const std::string& formula);

/// The formulas of `settings` have no fault.
std::unique_ptr<policies::Balancer> make_expression(const ExpressionSettings& settings,
                                                    const RandomStream& random);

}  // namespace routesim::sim
