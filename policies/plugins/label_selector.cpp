#include "policies/plugins/label_selector.h"

#include <algorithm>
#include <array>

#include "base/key_note.h"
#include "policies/document_keys.h"

namespace routesim::policies {

bool LabelSelector::parse_expressions(const ParameterValue& list, const PluginSpec& spec,
                                      BuildContext& context) {
  constexpr std::array<std::string_view, 4> kOperators = {"In", "NotIn", "Exists", "DoesNotExist"};
  if (!list.is_list()) {
    context.error(spec, "matchExpressions", "must be a list (got " + list.to_text() + ")");
    return false;
  }
  bool ok = true;
  for (std::size_t i = 0; i < list.list().size(); ++i) {
    const ParameterValue& item = list.list()[i];
    const std::string path = "matchExpressions[" + std::to_string(i) + "]";
    const auto refuse = [&](const std::string& message) {
      context.diagnostics().error(item.where, spec.path + ".parameters." + path, message);
      ok = false;
    };
    LabelExpression e;
    ParameterReader reader(item, spec.path + ".parameters." + path, context.unknown_keys(),
                           context.diagnostics());
    describe(reader, e);
    reader.finish();
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

std::optional<LabelSelector> LabelSelector::parse(const PluginSpec& spec, BuildContext& context) {
  LabelSelector selector;
  bool ok = true;
  if (spec.parameters.is_map()) {
    for (const auto& [key, value] : spec.parameters.map()) {
      if (key == "matchExpressions" && !value.is_null()) {
        ok = selector.parse_expressions(value, spec, context) && ok;
      } else if (key == "matchLabels" && value.is_map()) {
        for (const auto& [label, wanted] : value.map()) {
          context.diagnostics().key(key_use(wanted.where, kDocumentFormat,
                                            spec.path + ".parameters.matchLabels." + label,
                                            Fate::kUsed, {}));
          if (!wanted.is_string()) {
            context.error(spec, "matchLabels." + label,
                          "must be a string (got " + wanted.to_text() + ")");
            ok = false;
            continue;
          }
          selector.requirements_.push_back({label, Operator::kIn, {wanted.string()}});
        }
      } else if (key != "matchLabels" && key != "matchExpressions") {
        context.error(spec, key, "unknown field", "known: matchLabels, matchExpressions");
        ok = false;
      } else if (!value.is_null()) {
        context.error(spec, key, "must be a map (got " + value.to_text() + ")");
        ok = false;
      }
    }
  }
  return ok ? std::optional(std::move(selector)) : std::nullopt;
}

bool LabelSelector::matches(const std::map<std::string, std::string>& labels) const {
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

}  // namespace routesim::policies
