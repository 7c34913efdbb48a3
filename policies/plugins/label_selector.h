// label-selector-filter: Kubernetes label selectors (apimachinery meta/v1 LabelSelector).
#pragma once

#include <map>

#include "base/scalar_parse.h"
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

/// Any keys: they are listed by name only.
struct FreeForm {};
inline void describe(Describer&, FreeForm&) {}

/// The keys of a selector, for descriptions only: LabelSelector::parse() reads them.
struct LabelSelectorKeys {
  FreeForm labels;
  std::vector<LabelExpression> expressions;
};
inline void describe(Describer& d, LabelSelectorKeys& p) {
  field(d, {"matchLabels", "Labels that must have these values."}, p.labels);
  field(d, {"matchExpressions", "What else labels must satisfy."}, p.expressions);
}

/// matchLabels and matchExpressions, all of which must hold.
class LabelSelector {
 public:
  /// Reads the two keys; nothing when one is malformed, with errors in the context.
  static std::optional<LabelSelector> parse(const PluginSpec& spec, BuildContext& context) {
    LabelSelector selector;
    bool ok = true;
    const auto refuse = [&](const std::string& key, std::string message, std::string hint = {}) {
      context.error(spec, key, std::move(message), std::move(hint));
      ok = false;
    };
    for (const auto& [key, key_where, value] : spec.parameters->members()) {
      if (key != "matchLabels" && key != "matchExpressions") {
        refuse(key, "unknown key", "known: matchLabels, matchExpressions");
      } else if (value->is_null()) {
        continue;
      } else if (key == "matchExpressions") {
        ok = selector.parse_expressions(*value, spec, context) && ok;
      } else if (!value->is_map()) {
        refuse(key, "must be a map (" + got(*value) + ")");
      } else {
        for (const auto& [label, label_where, wanted] : value->members()) {
          context.diagnostics().key(key_use(label_where, kDocumentFormat,
                                            spec.path + ".parameters.matchLabels." + label,
                                            Fate::kUsed, {}));
          Parsed<std::string> text = parse_text(*wanted);
          if (text.value)
            selector.requirements_.push_back({label, Operator::kIn, {std::move(*text.value)}});
          else
            refuse("matchLabels." + label, std::move(text.message), std::move(text.hint));
        }
      }
    }
    return ok ? std::optional(std::move(selector)) : std::nullopt;
  }
  bool matches(const std::map<std::string, std::string>& labels) const {
    return std::all_of(requirements_.begin(), requirements_.end(), [&](const Requirement& r) {
      const auto it = labels.find(r.key);
      const bool present = it != labels.end();
      const auto listed = [&] {
        return std::find(r.values.begin(), r.values.end(), it->second) != r.values.end();
      };
      switch (r.op) {
        case Operator::kIn:
          return present && listed();
        case Operator::kNotIn:
          return !present || !listed();
        case Operator::kExists:
          return present;
        case Operator::kDoesNotExist:
          return !present;
      }
      return false;
    });
  }

 private:
  enum class Operator { kIn, kNotIn, kExists, kDoesNotExist };
  struct Requirement {
    std::string key;
    Operator op;
    std::vector<std::string> values;
  };
  bool parse_expressions(const ConfigNode& list, const PluginSpec& spec, BuildContext& context) {
    constexpr std::array<std::string_view, 4> kOperators = {"In", "NotIn", "Exists",
                                                            "DoesNotExist"};
    if (!list.is_sequence()) {
      context.error(spec, "matchExpressions", "must be a list (" + got(list) + ")");
      return false;
    }
    bool ok = true;
    for (std::size_t i = 0; i < list.items().size(); ++i) {
      const ConfigNode& item = *list.items()[i];
      const std::string path = element_path(spec.path + ".parameters.matchExpressions", i);
      const auto refuse = [&](const std::string& message) {
        context.diagnostics().error(item.where(), path, message);
        ok = false;
      };
      LabelExpression e;
      read_struct(item, e, context.diagnostics(), document_options(path, context.unknown_keys()));
      const auto it = std::find(kOperators.begin(), kOperators.end(), e.comparison);
      if (e.key.empty() || it == kOperators.end()) {
        refuse("needs a key and an operator In, NotIn, Exists or DoesNotExist");
        continue;
      }
      Requirement r{e.key, static_cast<Operator>(it - kOperators.begin()), e.values};
      const bool wants_values = r.op == Operator::kIn || r.op == Operator::kNotIn;
      if (wants_values == r.values.empty())
        refuse("operator " + e.comparison +
               (wants_values ? " needs string values" : " takes no values"));
      requirements_.push_back(std::move(r));
    }
    return ok;
  }
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
