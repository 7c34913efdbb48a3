#include "tools/ingest/servers/kustomize_patch.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <vector>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/nodes.h"

namespace routesim::tools {

namespace {

/// Lists of pods that merge element by element: patchMergeKey in k8s.io/api/core/v1/types.go. The
/// schema of a DisaggregatedSet adds its roles.
constexpr std::pair<std::string_view, std::string_view> kMergeKeys[] = {
    {"containers", "name"},
    {"initContainers", "name"},
    {"env", "name"},
    {"volumes", "name"},
    {"volumeMounts", "mountPath"},
    {"volumeDevices", "devicePath"},
    {"ports", "containerPort"},
    {"imagePullSecrets", "name"},
    {"hostAliases", "ip"},
    {"resourceClaims", "name"},
    {"ephemeralContainers", "name"},
    {"roles", "name"},
    {"topologySpreadConstraints", "topologyKey"}};

constexpr std::string_view kBuiltIn =
    "Deployment StatefulSet DaemonSet ReplicaSet Pod PodTemplate Job CronJob";

constexpr std::string_view kDirective = "$patch";

/// Lays a patch on a tree.
class Merge {
 public:
  explicit Merge(bool by_keys) : by_keys_(by_keys) {}

  /// Null when the patch deletes the map.
  Ptr maps(const Ptr& base, const ConfigNode& patch) const {
    const std::string directive = text_at(patch, {kDirective});
    if (directive == "delete") return nullptr;
    Members members;
    if (base != nullptr && base->is_map() && directive != "replace") members = base->members();
    for (const Member& member : patch.members()) {
      if (member.key == kDirective) continue;
      const auto same = std::ranges::find(members, member.key, &Member::key);
      const Ptr old = same == members.end() ? nullptr : same->value;
      const Ptr value = member.value->is_null() ? nullptr : values(old, member.value, member.key);
      if (value == nullptr && old != nullptr)
        members.erase(same);
      else if (value != nullptr && old != nullptr)
        *same = {member.key, member.key_where, value};
      else if (value != nullptr)
        members.push_back({member.key, member.key_where, value});
    }
    return ConfigNode::make_map(std::move(members), (base != nullptr ? *base : patch).where());
  }

 private:
  Ptr values(const Ptr& base, const Ptr& patch, const std::string& key) const {
    if (patch->is_map()) return maps(base, *patch);
    if (!patch->is_sequence()) return patch;
    return lists(base, *patch, by_keys_ ? key_of(key) : std::string_view());
  }

  static std::string_view key_of(std::string_view list) {
    for (const auto& [name, key] : kMergeKeys)
      if (name == list) return key;
    return {};
  }

  Ptr lists(const Ptr& base, const ConfigNode& patch, std::string_view key) const {
    std::vector<Ptr> result, rest;
    // The element `$patch: replace` says it of the list.
    const auto is_directive = [](const Ptr& item) {
      return item->members().size() == 1 && text_at(*item, {kDirective}) == "replace";
    };
    const bool replaces = key.empty() || base == nullptr || !base->is_sequence() ||
                          std::any_of(patch.items().begin(), patch.items().end(), is_directive);
    if (!replaces) rest = base->items();
    for (const Ptr& item : patch.items()) {
      if (is_directive(item)) continue;
      const auto same = std::find_if(rest.begin(), rest.end(), [&](const Ptr& own) {
        return item->is_map() && own->is_map() && text_at(*own, {key}) == text_at(*item, {key});
      });
      Ptr value = item->is_map() ? maps(same == rest.end() ? nullptr : *same, *item) : item;
      if (same != rest.end()) rest.erase(same);
      if (value != nullptr) result.push_back(std::move(value));
    }
    result.insert(result.end(), rest.begin(), rest.end());
    return ConfigNode::make_sequence(std::move(result), patch.where());
  }

  bool by_keys_;
};

/// `/spec/template/metadata/labels/llm-d.ai~1role` in parts.
std::vector<std::string> pointer_parts(std::string_view path) {
  std::vector<std::string> parts;
  while (path.starts_with('/')) {
    path.remove_prefix(1);
    std::string part(path.substr(0, path.find('/')));
    path.remove_prefix(part.size());
    for (const auto& [code, sign] : {std::pair{"~1", "/"}, std::pair{"~0", "~"}})
      for (std::size_t at = 0; (at = part.find(code, at)) != std::string::npos; ++at)
        part.replace(at, 2, sign);
    parts.push_back(std::move(part));
  }
  return parts;
}

/// The index that a part of a path stands for; `-` is the end of the list.
std::optional<std::size_t> index_of(const std::string& part, std::size_t size) {
  if (part == "-") return size;
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  const bool good = error == std::errc() && end == part.data() + part.size() && index <= size;
  return good ? std::optional(index) : std::nullopt;
}

/// One operation; `value` is null for remove.
struct Operation {
  bool adds = false;
  Ptr value = {};
};

/// The tree with the operation done at `path`; null when there is no such place.
Ptr changed(const Ptr& node, std::span<const std::string> path, const Operation& operation) {
  if (path.empty()) return operation.value;
  const bool is_last = path.size() == 1;
  if (node->is_sequence()) {
    std::vector<Ptr> items = node->items();
    const std::optional<std::size_t> index = index_of(path[0], items.size());
    if (!index || (*index == items.size() && !(is_last && operation.adds))) return nullptr;
    const auto at = items.begin() + static_cast<std::ptrdiff_t>(*index);
    if (!is_last) {
      *at = changed(*at, path.subspan(1), operation);
      if (*at == nullptr) return nullptr;
    } else if (operation.adds) {
      items.insert(at, operation.value);
    } else if (operation.value == nullptr) {
      items.erase(at);
    } else {
      *at = operation.value;
    }
    return ConfigNode::make_sequence(std::move(items), node->where());
  }
  Members members = node->members();
  const auto same = std::ranges::find(members, path[0], &Member::key);
  if (!node->is_map() || (same == members.end() && !(is_last && operation.adds))) return nullptr;
  if (same == members.end()) {
    members.push_back({path[0], operation.value->where(), operation.value});
  } else if (is_last && operation.value == nullptr) {
    members.erase(same);
  } else {
    same->value = is_last ? operation.value : changed(same->value, path.subspan(1), operation);
    if (same->value == nullptr) return nullptr;
  }
  return ConfigNode::make_map(std::move(members), node->where());
}

}  // namespace

Ptr merged_strategically(const Ptr& object, const ConfigNode& patch, bool all_kinds) {
  const bool is_built_in = has_word(kBuiltIn, text_at(*object, {"kind"}));
  const Ptr merged = Merge(all_kinds || is_built_in).maps(object, patch);
  const Ptr name = value_at(*object, {"metadata", "name"});
  if (merged == nullptr || name == nullptr) return merged;
  // The name in a patch selects the object, which may have got a prefix since.
  return change_member(merged, "metadata", [&](const Ptr& after) {
    return change_member(after, "name", [&](const Ptr&) { return name; });
  });
}

Ptr patched_by_operations(const Ptr& object, const ConfigNode& operations,
                          const std::string& key_path, Diagnostics& diagnostics) {
  Ptr result = object;
  for (const Ptr& item : operations.items()) {
    const std::string name = text_at(*item, {"op"}), path = text_at(*item, {"path"});
    const Member* value = item->find("value");
    const bool is_known = name == "add" || name == "replace" || name == "remove";
    if (!is_known || (name != "remove" && value == nullptr) || path.empty()) {
      diagnostics.error(item->where(), key_path,
                        "is no operation that is read (" + got(*item) + ")",
                        "add and replace with path and value are, and remove with path");
      continue;
    }
    const Ptr next =
        changed(result, pointer_parts(path),
                {.adds = name == "add", .value = name == "remove" ? nullptr : value->value});
    if (next == nullptr)
      diagnostics.error(item->where(), key_path,
                        "has no place in the object: there is no " + printable(path, 200));
    else
      result = next;
  }
  return result;
}

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
