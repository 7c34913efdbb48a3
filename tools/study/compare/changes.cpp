#include "tools/study/compare/changes.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

namespace {

using Scalars = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kFiles = "files";

/// The name of an item that no other item of the list has; empty without one.
std::string own_name(const ConfigNode& list, const ConfigNode& item) {
  for (const char* key : {"pluginRef", "name", "type", "kind"}) {
    const auto name_of = [key](const ConfigNode& node) {
      const ConfigNode* const name = node.is_map() ? node.child(key) : nullptr;
      return name != nullptr && name->is_scalar() ? name->text() : std::string();
    };
    const std::string name = name_of(item);
    if (name.empty()) continue;
    const auto has_it = [&](const ConfigNode::Ptr& other) { return name_of(*other) == name; };
    if (std::ranges::count_if(list.items(), has_it) == 1) return name;
  }
  return {};
}

/// The YAML that a text of several lines holds, as Helm values do with a router's document.
ConfigNode::Ptr embedded(const std::string& text) {
  if (text.find('\n') == std::string::npos) return nullptr;
  Diagnostics unsaid;
  const ConfigNode::Ptr root = parse_manifest(text, {}, unsaid);
  return root != nullptr && !unsaid.has_errors() && root->is_map() ? root : nullptr;
}

/// Adds every scalar with its path. Items of a document's lists are called by their names, so that
/// one more of them shifts no others.
void flatten(const ConfigNode& node, const std::string& path, bool in_document, Scalars& out) {
  if (node.is_map()) {
    for (const ConfigNode::Member& m : node.members())
      flatten(*m.value, path.empty() ? m.key : child_path(path, m.key), in_document, out);
  } else if (node.is_sequence()) {
    for (std::size_t i = 0; i < node.items().size(); ++i) {
      const std::string name = in_document ? own_name(node, *node.items()[i]) : "";
      flatten(*node.items()[i], name.empty() ? element_path(path, i) : path + "[" + name + "]",
              in_document, out);
    }
  } else if (const ConfigNode::Ptr inside = in_document ? embedded(node.text()) : nullptr) {
    flatten(*inside, path, in_document, out);
  } else {
    out.emplace_back(path, node.is_null() ? "null" : node.text());
  }
}

bool is_inside(std::string_view path, std::string_view key) {
  return path.starts_with(key) &&
         (path.size() == key.size() || path[key.size()] == '.' || path[key.size()] == '[');
}

/// One variant of a result, taken apart.
struct Side {
  std::map<std::string, const ConfigNode*> files;  ///< Contents by the key that names the file.
  Scalars values;                                  ///< Of the scenario itself.
  std::set<std::string> documents;                 ///< Keys where a whole document stands.

  const std::string* value(std::string_view path) const {
    const auto found = std::ranges::find(values, path, &Scalars::value_type::first);
    return found == values.end() ? nullptr : &found->second;
  }
};

/// Keys that may hold a document or the name of its file.
constexpr std::array<std::string_view, 2> kDocuments = {"routing.endpoint_picker",
                                                        "workload.inference_perf"};

Side side_of(const ConfigNode& resolved) {
  Side side;
  for (const ConfigNode::Member& m : resolved.members()) {
    if (m.key == kFiles && m.value->is_map()) {
      for (const ConfigNode::Member& file : m.value->members())
        side.files[file.key] = file.value.get();
      continue;
    }
    if (!m.value->is_map()) {
      flatten(*m.value, m.key, false, side.values);
      continue;
    }
    for (const ConfigNode::Member& part : m.value->members()) {
      const std::string path = child_path(m.key, part.key);
      const bool is_document = std::ranges::find(kDocuments, path) != kDocuments.end();
      if (is_document && part.value->is_map()) side.documents.insert(path);
      flatten(*part.value, path, is_document, side.values);
    }
  }
  return side;
}

/// Whether the side names a file at this key whose contents it does not hold.
bool lacks_contents(const Side& side, const std::string& key) {
  const std::string* const name = side.value(key);
  return !side.files.contains(key) && !side.documents.contains(key) && name != nullptr &&
         is_config_name(*name);
}

/// The scalars of a side with the contents of those files that the other side has contents of too.
/// Where only one has a document at all, the name of its file says so.
Scalars scalars_of(const Side& side, const Side& other) {
  Scalars out;
  std::set<std::string> inserted;
  const auto insert = [&](const std::string& key) {
    const auto file = side.files.find(key);
    const bool both = other.files.contains(key) || other.documents.contains(key);
    if (file == side.files.end() || !both || !inserted.insert(key).second) return;
    const auto of = other.files.find(key);
    const bool hashed = file->second->is_scalar();
    if (hashed || (of != other.files.end() && of->second->is_scalar()))
      out.emplace_back(key + " (contents)", hashed ? file->second->text() : "a document");
    else
      flatten(*file->second, key, true, out);
  };
  for (const auto& [path, value] : side.values) {
    out.emplace_back(path, value);
    insert(path);
  }
  for (const auto& [key, contents] : side.files) insert(key);
  return out;
}

/// Texts of several lines as the first lines that differ.
void shorten_texts(Change& change) {
  if (!change.base || !change.changed || change.base->find('\n') == std::string::npos ||
      change.changed->find('\n') == std::string::npos)
    return;
  std::size_t from = 0;
  std::string_view a = *change.base;
  std::string_view b = *change.changed;
  for (int line = 1;; ++line) {
    const std::string_view x = a.substr(from, a.find('\n', from) - from);
    const std::string_view y = b.substr(from, b.find('\n', from) - from);
    const std::size_t next = from + x.size() + 1;
    if (x != y || next > a.size() || next > b.size()) {
      change.path += " (line " + std::to_string(line) + ")";
      change.base = std::string(x);
      change.changed = std::string(y);
      return;
    }
    from = next;
  }
}

void add(Change change, const std::string& variant, std::vector<Change>& changes) {
  shorten_texts(change);
  const auto same = std::find_if(changes.begin(), changes.end(), [&](const Change& c) {
    return c.path == change.path && c.base == change.base && c.changed == change.changed;
  });
  if (same != changes.end()) {
    same->variants.push_back(variant);
    return;
  }
  change.variants = {variant};
  changes.push_back(std::move(change));
}

void compare_sides(const Side& a, const Side& b, const std::string& variant,
                   std::vector<Change>& changes) {
  const Scalars before = scalars_of(a, b);
  const Scalars after = scalars_of(b, a);
  std::map<std::string, std::string> left(after.begin(), after.end());
  for (const auto& [path, value] : before) {
    const auto other = left.find(path);
    if (other == left.end())
      add({.path = path, .base = value}, variant, changes);
    else if (other->second != value)
      add({.path = path, .base = value, .changed = other->second}, variant, changes);
    if (other != left.end()) left.erase(other);
  }
  for (const auto& [path, value] : after)
    if (left.contains(path)) add({.path = path, .changed = value}, variant, changes);
}

}  // namespace

std::vector<Change> changes_of(const Comparison& c) {
  std::vector<Change> changes;
  if (c.base->set.version != c.changed->set.version)
    changes.push_back(
        {.path = "version", .base = c.base->set.version, .changed = c.changed->set.version});
  if (c.base->commit != c.changed->commit)
    changes.push_back({.path = "commit", .base = c.base->commit, .changed = c.changed->commit});
  for (const VariantPair& pair : c.pairs) {
    const ConfigNode* const a = c.base->resolved_of(*pair.base);
    const ConfigNode* const b = c.changed->resolved_of(*pair.changed);
    if (a != nullptr && b != nullptr)
      compare_sides(side_of(*a), side_of(*b), pair.base->name, changes);
  }
  return changes;
}

std::vector<std::string> untold_of(const Comparison& c) {
  std::vector<std::string> untold;
  const auto say = [&](std::string text) {
    if (std::ranges::find(untold, text) == untold.end()) untold.push_back(std::move(text));
  };
  for (const VariantPair& pair : c.pairs) {
    const std::array<std::pair<const ResultFile*, const VariantValues*>, 2> sides = {
        {{c.base, pair.base}, {c.changed, pair.changed}}};
    bool whole = true;
    for (const auto& [file, variant] : sides) {
      if (file->resolved_of(*variant) != nullptr) continue;
      whole = false;
      say("no key can be told to have changed: " + printable(file->path, 200) +
          " does not hold its resolved scenario");
    }
    if (!whole) continue;
    for (const auto& [file, variant] : sides) {
      const Side side = side_of(*file->resolved_of(*variant));
      for (const auto& [path, value] : side.values) {
        const bool names_a_file =
            std::ranges::find(kDocuments, path) != kDocuments.end() || is_inside(path, "catalogue");
        if (names_a_file && lacks_contents(side, path))
          say(printable(path, 200) + " may have changed: " + printable(file->path, 200) +
              " does not hold the contents of " + printable(value, 200));
      }
    }
  }
  return untold;
}

std::string change_text(const Change& change) {
  return change.base.value_or("nothing") + " became " + change.changed.value_or("nothing");
}

}  // namespace routesim::tools
