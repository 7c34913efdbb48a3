#include "tools/ingest/servers/kustomize_select.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "tools/ingest/tree/nodes.h"

namespace routesim::tools {

namespace {

/// Cuts off and returns what stands before the next comma that is not in parentheses.
std::string_view next_part(std::string_view& rest) {
  std::size_t end = 0;
  for (int depth = 0; end < rest.size() && (depth > 0 || rest[end] != ','); ++end)
    depth += rest[end] == '(' ? 1 : rest[end] == ')' ? -1 : 0;
  const std::string_view part = trimmed(rest.substr(0, end));
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

bool is_word(const std::string& text) { return text.find_first_of(" =!()<>") == std::string::npos; }

/// The names or namespaces of an object that a pattern may fit: the first and the present one.
bool fits_an_end(const std::regex& pattern, const std::vector<std::string>& texts) {
  return std::regex_match(texts.front(), pattern) || std::regex_match(texts.back(), pattern);
}

}  // namespace

KustomizeTarget::KustomizeTarget(const ConfigNode& target, const std::string& key_path,
                                 Diagnostics& diagnostics) {
  for (const std::string_view key : {"group", "version", "kind", "name", "namespace"}) {
    const std::string pattern = text_at(target, {key});
    if (pattern.empty()) continue;
    try {
      patterns_.emplace_back(key, std::regex(pattern));
    } catch (const std::regex_error&) {
      diagnostics.error(target.child(key)->where(), key_path,
                        "is no regular expression that is read (got " + printable(pattern) + ")");
    }
  }
  for (const auto& [key, list] :
       {std::pair{"labelSelector", &labels_}, std::pair{"annotationSelector", &annotations_}})
    if (const std::string text = text_at(target, {key}); !parse_selector(text, *list))
      diagnostics.error(target.child(key)->where(), key_path,
                        "is no selector that is read (got " + printable(text, 200) + ")",
                        "KEY=VALUE, KEY!=VALUE, KEY in (A, B), KEY notin (A), KEY and !KEY are, "
                        "with commas between them");
}

/// False when a part is none of the operators below.
bool KustomizeTarget::parse_selector(const std::string& text,
                                     std::vector<Requirement>& requirements) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = next_part(rest);
    Requirement one;
    std::string_view key = part;
    if (const std::size_t equals = part.find('='); equals != std::string_view::npos) {
      one.is_negated = equals > 0 && part[equals - 1] == '!';
      key = part.substr(0, equals - (one.is_negated ? 1 : 0));
      const bool is_double = part.substr(equals).starts_with("==");
      one.values.emplace_back(trimmed(part.substr(equals + (is_double ? 2 : 1))));
    } else if (const std::size_t open = part.find('(');
               open != std::string_view::npos && part.ends_with(')')) {
      key = trimmed(part.substr(0, open));
      one.is_negated = key.ends_with(" notin");
      if (!one.is_negated && !key.ends_with(" in")) return false;
      key.remove_suffix(one.is_negated ? 6 : 3);
      std::string_view values = part.substr(open + 1, part.size() - open - 2);
      // `(a,)` has the empty value, too.
      for (bool is_more = true; is_more;) {
        is_more = values.find(',') != std::string_view::npos;
        one.values.emplace_back(next_part(values));
      }
    } else if (part.starts_with('!')) {
      one.is_negated = true;
      key.remove_prefix(1);
    }
    one.key = trimmed(key);
    if (one.key.empty() || !is_word(one.key) ||
        !std::all_of(one.values.begin(), one.values.end(), is_word))
      return false;
    requirements.push_back(std::move(one));
  }
  return true;
}

/// An absent label meets `!=`, `notin` and `!KEY` only: Requirement.Matches in
/// pkg/labels/selector.go of k8s.io/apimachinery.
bool KustomizeTarget::fits(const std::vector<Requirement>& requirements, const ConfigNode* labels) {
  return std::all_of(requirements.begin(), requirements.end(), [&](const Requirement& one) {
    const ConfigNode* label = labels != nullptr ? labels->child(one.key) : nullptr;
    const bool has_value =
        label != nullptr && (one.values.empty() || std::find(one.values.begin(), one.values.end(),
                                                             label->text()) != one.values.end());
    return has_value != one.is_negated;
  });
}

bool KustomizeTarget::selects(const KustomizeObject& object) const {
  const std::string api = text_at(*object.node, {"apiVersion"});
  const std::size_t slash = api.find('/');
  for (const auto& [key, pattern] : patterns_) {
    const bool is_met =
        key == "name"        ? fits_an_end(pattern, object.names)
        : key == "namespace" ? fits_an_end(pattern, object.namespaces)
        : key == "kind"      ? std::regex_match(text_at(*object.node, {"kind"}), pattern)
        : key == "group"
            ? std::regex_match(slash == std::string::npos ? "" : api.substr(0, slash), pattern)
            : std::regex_match(slash == std::string::npos ? api : api.substr(slash + 1), pattern);
    if (!is_met) return false;
  }
  const ConfigNode& node = *object.node;
  return fits(labels_, node_at(node, {"metadata", "labels"})) &&
         fits(annotations_, node_at(node, {"metadata", "annotations"}));
}

}  // namespace routesim::tools
