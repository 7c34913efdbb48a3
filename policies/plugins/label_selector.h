// label-selector-filter: Kubernetes label selectors (apimachinery meta/v1 LabelSelector).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.h"
#include "policies/build_context.h"

namespace routesim::policies {

/// One entry of matchExpressions, as in Kubernetes.
struct LabelExpression {
  std::string key, comparison;
  std::vector<std::string> values;
};
inline void describe(Describer& d, LabelExpression& p) {
  field(d, {"key", "Label to look at.", true}, p.key);
  field(d, {"operator", "In, NotIn, Exists or DoesNotExist.", true}, p.comparison);
  field(d, {"values", "Values of In and NotIn."}, p.values);
}

/// matchLabels and matchExpressions, all of which must hold.
class LabelSelector {
 public:
  /// Reads the two keys; nothing when one is malformed, with errors in the context.
  static std::optional<LabelSelector> parse(const PluginSpec& spec, BuildContext& context);
  bool matches(const std::map<std::string, std::string>& labels) const;

 private:
  enum class Operator { kIn, kNotIn, kExists, kDoesNotExist };
  struct Requirement {
    std::string key;
    Operator op;
    std::vector<std::string> values;
  };
  bool parse_expressions(const ConfigNode& list, const PluginSpec& spec, BuildContext& context);
  std::vector<Requirement> requirements_;
};

/// Type label-selector-filter and its older names.
class LabelSelectorFilter final : public Filter {
 public:
  explicit LabelSelectorFilter(LabelSelector selector) : selector_(std::move(selector)) {}
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override {
    std::erase_if(candidates, [&](EndpointRow r) {
      return !selector_.matches(cycle.endpoints().info(r).labels);
    });
  }

 private:
  LabelSelector selector_;
};

}  // namespace routesim::policies
