#include "tools/ingest/tree/config_merge.h"

#include <array>
#include <filesystem>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

namespace {

using Node = ConfigNode;

/// Keys that can name the elements of a list, the strongest first.
constexpr std::array<std::string_view, 3> kIdentityKeys = {"name", "pluginRef", "type"};

std::string identity(const Node& element, std::string_view key) { return text_at(element, {key}); }

/// The key by which all elements of both lists can be told apart; empty when there is none.
std::string_view common_identity(const Node& a, const Node& b) {
  for (const std::string_view key : {kIdentityKeys[0], kIdentityKeys[1]}) {
    bool all = !a.items().empty() && !b.items().empty();
    for (const Node* list : {&a, &b})
      for (const Ptr& item : list->items()) all = all && !identity(*item, key).empty();
    if (all) return key;
  }
  return {};
}

Ptr merge_named_lists(const Node& base, const Node& over, std::string_view key) {
  std::vector<Ptr> items = base.items();
  for (const Ptr& item : over.items()) {
    const std::string name = identity(*item, key);
    const auto same = std::find_if(items.begin(), items.end(), [&](const Ptr& existing) {
      return identity(*existing, key) == name;
    });
    if (same == items.end())
      items.push_back(item);
    else
      *same = merge_configs(*same, item);
  }
  return Node::make_sequence(std::move(items), over.where());
}

std::string known_names(const Node& list) {
  std::string names;
  for (const Ptr& item : list.items()) {
    std::string name;
    for (const std::string_view key : kIdentityKeys)
      if (name.empty()) name = identity(*item, key);
    if (!name.empty()) add_word(names, printable(name));
  }
  return names;
}

/// Index of the element with this name, or size() when there is none.
std::size_t index_of_name(const Node& list, const std::string& name) {
  for (const std::string_view key : kIdentityKeys)
    for (std::size_t i = 0; i < list.items().size(); ++i)
      if (identity(*list.items()[i], key) == name) return i;
  return list.items().size();
}

/// Carries one assignment down the tree.
class Assigner {
 public:
  Assigner(const Assignment& assignment, Diagnostics& diagnostics, const ReferenceLoader& load)
      : assignment_(assignment), diagnostics_(diagnostics), load_(load) {}

  /// The new node for `node` (null when absent) after step `depth`; null after an error.
  Ptr assign(const Ptr& node, std::size_t depth) {
    if (depth == assignment_.steps.size()) return assignment_.value;
    const PathStep& step = assignment_.steps[depth];
    Ptr parent = node;
    if (parent != nullptr && parent->is_scalar() && load_) {
      if (const Ptr loaded = load_(*parent)) parent = loaded;
    }
    return step.in_brackets ? assign_element(parent, depth) : assign_member(parent, depth);
  }

 private:
  Ptr fail(const std::string& what, const std::string& hint = {}) {
    diagnostics_.error(assignment_.where, assignment_.path, what, hint);
    return nullptr;
  }

  Ptr assign_member(const Ptr& parent, std::size_t depth) {
    const std::string& key = assignment_.steps[depth].key;
    if (parent != nullptr && parent->is_sequence())
      return fail(in_quotes(key) + " is looked up in a list",
                  "select an element first: [0] or [name]; names: " + known_names(*parent));
    if (parent != nullptr && parent->is_scalar())
      return fail(in_quotes(key) + " is looked up in a plain value (" + got(*parent) + ")");
    Members members;
    if (parent != nullptr) members = parent->members();
    Node::Member* const same = find_member(members, key);
    const Ptr value = assign(same == nullptr ? nullptr : same->value, depth + 1);
    if (value == nullptr) return nullptr;
    if (same == nullptr)
      members.push_back({key, assignment_.where, value});
    else
      same->value = value;
    const bool is_new = parent == nullptr || parent->is_null();
    return Node::make_map(std::move(members), is_new ? assignment_.where : parent->where());
  }

  Ptr assign_element(const Ptr& parent, std::size_t depth) {
    const PathStep& step = assignment_.steps[depth];
    if (parent == nullptr || !parent->is_sequence())
      return fail(in_quotes(step.key) + " selects from a list, but there is none (" +
                  (parent == nullptr ? std::string("got nothing") : got(*parent)) + ")");
    std::vector<Ptr> items = parent->items();
    const std::size_t index = step.index ? *step.index : index_of_name(*parent, step.key);
    if (step.index && index > items.size())
      return fail("there is no element " + in_quotes(step.key) + ", the list has " +
                  std::to_string(items.size()));
    if (!step.index && index == items.size())
      return fail("there is no element named " + in_quotes(step.key),
                  "names: " + known_names(*parent));
    const Ptr value = assign(index < items.size() ? items[index] : nullptr, depth + 1);
    if (value == nullptr) return nullptr;
    items.resize(std::max(items.size(), index + 1));
    items[index] = value;
    return Node::make_sequence(std::move(items), parent->where());
  }

  const Assignment& assignment_;
  Diagnostics& diagnostics_;
  const ReferenceLoader& load_;
};

/// Splits `a.b[0].c`; false when it is malformed.
bool split_path(std::string_view path, std::vector<PathStep>& steps) {
  std::size_t i = 0;
  while (i < path.size()) {
    if (path[i] == '[') {
      const std::size_t end = path.find(']', i);
      if (end == std::string_view::npos || end == i + 1 || steps.empty()) return false;
      PathStep step{.key = std::string(path.substr(i + 1, end - i - 1)),
                    .in_brackets = true,
                    .index = std::nullopt};
      if (step.key.size() <= 9 && plain_type(step.key) == PlainType::kInteger &&
          step.key[0] >= '0' && step.key[0] <= '9')
        step.index = static_cast<std::size_t>(std::stoul(step.key));
      steps.push_back(std::move(step));
      i = end + 1;
      if (i < path.size() && path[i] != '.' && path[i] != '[') return false;
    } else {
      if (path[i] == '.' && (i == 0 || steps.empty())) return false;
      if (path[i] == '.') ++i;
      const std::size_t end = std::min(path.find_first_of(".[", i), path.size());
      if (end == i) return false;
      steps.push_back({.key = std::string(path.substr(i, end - i)),
                       .in_brackets = false,
                       .index = std::nullopt});
      i = end;
    }
  }
  return !steps.empty();
}

Ptr parse_value(const std::string& text, Diagnostics& diagnostics) {
  const SourceLocation where{.file = "--set"};
  if (text == "null" || text == "~") return Node::make_null(where);
  if (text.empty() || std::string_view("[{\"'").find(text[0]) == std::string_view::npos)
    return untyped(text, where);
  return parse_config(text, {.file = "--set"}, diagnostics);
}

}  // namespace

Ptr merge_configs(const Ptr& base, const Ptr& over) {
  if (base == nullptr || over == nullptr) return over == nullptr ? base : over;
  if (base->is_map() && over->is_map()) {
    Members members = base->members();
    for (const Node::Member& member : over->members()) {
      if (Node::Member* const same = find_member(members, member.key))
        *same = {member.key, member.key_where, merge_configs(same->value, member.value)};
      else
        members.push_back(member);
    }
    return Node::make_map(std::move(members), over->where());
  }
  if (base->is_sequence() && over->is_sequence()) {
    const std::string_view key = common_identity(*base, *over);
    if (!key.empty()) return merge_named_lists(*base, *over, key);
  }
  return over;
}

Ptr change_member(const Ptr& map, std::string_view key,
                  const std::function<Ptr(const Ptr&)>& change) {
  if (!map->is_map() || map->find(key) == nullptr) return map;
  Members members = map->members();
  for (Node::Member& member : members)
    if (member.key == key) member.value = change(member.value);
  return Node::make_map(std::move(members), map->where());
}

Ptr moved_to(const Ptr& node, const SourceLocation& where) {
  if (node->is_null()) return Node::make_null(where);
  if (node->is_scalar()) return Node::make_scalar(node->text(), node->style(), where);
  const Ptr changed = with_children(node, [&](const Ptr& child) { return moved_to(child, where); });
  if (node->is_sequence()) return tree::list(changed->items(), where);
  Members members = changed->members();
  for (Node::Member& member : members) member.key_where = where;
  return Node::make_map(std::move(members), where);
}

bool is_from_command_line(const SourceLocation& where) { return where.file.starts_with("--"); }

std::string resolve_path(const std::string& path, const SourceLocation& written_at) {
  const std::filesystem::path given(path);
  const std::string& file = written_at.file;
  // An open descriptor of this process lies in no folder of the user's.
  const bool is_stream = file == "<stdin>" || file == "/dev/stdin" || file.starts_with("/dev/fd/");
  if (given.is_absolute() || is_from_command_line(written_at) || is_stream) return path;
  return (std::filesystem::path(file).parent_path() / given).lexically_normal().string();
}

std::optional<std::vector<PathStep>> parse_key_path(std::string_view path) {
  std::vector<PathStep> steps;
  if (!split_path(path, steps)) return std::nullopt;
  return steps;
}

std::optional<Assignment> parse_assignment(const std::string& argument, Diagnostics& diagnostics) {
  const SourceLocation where{.file = "--set"};
  const std::size_t equals = argument.find('=');
  Assignment assignment;
  assignment.path = printable(argument.substr(0, equals), 200);
  if (equals == std::string::npos) {
    diagnostics.error(where, assignment.path, "must be KEY=VALUE (got no '=')",
                      "for example cluster.pools[0].replicas=4");
    return std::nullopt;
  }
  if (!split_path(std::string_view(argument).substr(0, equals), assignment.steps)) {
    diagnostics.error(where, assignment.path, "is not a key path",
                      "write keys with dots and list elements in brackets: a.b[0].c or a[name].c");
    return std::nullopt;
  }
  assignment.value = parse_value(argument.substr(equals + 1), diagnostics);
  if (assignment.value == nullptr) return std::nullopt;
  return assignment;
}

Ptr apply_assignment(const Ptr& root, const Assignment& assignment, Diagnostics& diagnostics,
                     const ReferenceLoader& load) {
  Assigner assigner(assignment, diagnostics, load);
  const Ptr changed = assigner.assign(root, 0);
  return changed == nullptr ? root : changed;
}

namespace {

/// The steps as text, each list element by its name where it has one.
std::vector<std::string> plain_steps(const Assignment& assignment,
                                     const std::vector<std::string>& pools) {
  std::vector<std::string> out;
  for (const PathStep& step : assignment.steps) {
    const bool is_pool = step.index && *step.index < pools.size() && out.size() == 2 &&
                         out[0] == "cluster" && out[1] == "pools";
    out.push_back(is_pool ? pools[*step.index] : step.key);
  }
  return out;
}

}  // namespace

void warn_overridden(const std::vector<Assignment>& early, const std::vector<Assignment>& late,
                     const std::string& by, const std::vector<std::string>& pools,
                     Diagnostics& diagnostics) {
  for (const Assignment& assignment : early) {
    if (!is_from_command_line(assignment.where)) continue;
    const std::vector<std::string> steps = plain_steps(assignment, pools);
    const auto replaces = [&](const Assignment& other) {
      const std::vector<std::string> its = plain_steps(other, pools);
      return its.size() <= steps.size() && std::equal(its.begin(), its.end(), steps.begin());
    };
    const auto found = std::find_if(late.begin(), late.end(), replaces);
    if (found != late.end())
      diagnostics.warning(assignment.where, assignment.path,
                          "has no effect: " + by + " sets " + found->path + " after it");
  }
}

std::optional<Assignment> parse_assignment_at(const std::string& text, const SourceLocation& where,
                                              Diagnostics& diagnostics) {
  Diagnostics found;
  std::optional<Assignment> assignment = parse_assignment(text, found);
  for (Diagnostic d : found.items()) {
    d.where = where;
    diagnostics.add(std::move(d));
  }
  if (!assignment) return std::nullopt;
  assignment->where = where;
  assignment->value = moved_to(assignment->value, where);
  return assignment;
}

std::vector<Assignment> parse_assignments(const std::vector<std::string>& texts,
                                          const std::string& path, const Provenance* provenance,
                                          const Diagnostics& read, Diagnostics& diagnostics) {
  std::vector<Assignment> all;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string element = element_path(path, i);
    if (provenance != nullptr && is_broken(read, element)) continue;
    Diagnostics found;
    std::optional<Assignment> assignment =
        provenance == nullptr ? parse_assignment(texts[i], found)
                              : parse_assignment_at(texts[i], provenance->nearest(element), found);
    for (Diagnostic d : found.items()) {
      if (provenance != nullptr) {
        d.message = d.path + ": " + d.message;
        d.path = element;
      }
      diagnostics.add(std::move(d));
    }
    if (assignment) all.push_back(std::move(*assignment));
  }
  return all;
}

}  // namespace routesim::tools
