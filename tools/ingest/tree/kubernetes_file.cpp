#include "tools/ingest/tree/kubernetes_file.h"

#include <algorithm>

#include "base/text.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/ingest/tree/shell_words.h"

namespace routesim::tools {

namespace {

class Search {
 public:
  explicit Search(const DocumentSearch& wanted) : wanted_(wanted) {}

  void visit(const Ptr& node, const std::string& name) {
    if (node->is_scalar()) {
      if (wanted_.may_hold(node->text())) found_.push_back({name, node});
    } else if (node->is_sequence()) {
      note_arguments(node->items());
      for (const Ptr& item : node->items()) visit(item, name);
    } else if (node->is_map() && wanted_.is_document(*node)) {
      found_.push_back({name, node});
    } else {
      for (const ConfigNode::Member& member : node->members()) visit_member(member);
    }
  }

  FoundDocument result() const {
    if (found_.size() == 1) return {.node = found_.front().node, .hint = {}};
    std::vector<const Candidate*> named;
    std::string names;
    for (const Candidate& candidate : found_) {
      if (std::ranges::count(files_, candidate.name) > 0) named.push_back(&candidate);
      add_word(names, printable(candidate.name));
    }
    if (named.size() == 1) return {.node = named.front()->node, .hint = {}};
    if (found_.empty()) return {};
    return {.node = nullptr,
            .hint = "it holds several (" + names +
                    ") and no container's arguments say which is read: put one into a file of "
                    "its own"};
  }

 private:
  struct Candidate {
    std::string name;  ///< The key it stands under.
    Ptr node;
  };

  void visit_member(const ConfigNode::Member& member) {
    // An annotation of kubectl repeats the whole object.
    if (member.key == "metadata" || member.key == "status") return;
    if (names_file(member.key) && member.value->is_scalar())
      files_.emplace_back(last_part(member.value->text()));
    visit(member.value, member.key);
  }

  bool names_file(std::string_view key) const {
    return std::ranges::count(wanted_.file_keys, key) > 0;
  }

  /// Remembers the files that a container's arguments name: `--flag=path` or `--flag`, `path`.
  void note_arguments(const std::vector<Ptr>& items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!items[i]->is_scalar() || !items[i]->text().starts_with("-")) continue;
      const std::string& text = items[i]->text();
      const std::size_t equals = std::min(text.find('='), text.size());
      const std::size_t start = std::min(text.find_first_not_of('-'), equals);
      const std::string_view flag = std::string_view(text).substr(start, equals - start);
      if (!names_file(flag)) continue;
      if (equals < text.size())
        files_.emplace_back(last_part(std::string_view(text).substr(equals + 1)));
      else if (i + 1 < items.size() && items[i + 1]->is_scalar())
        files_.emplace_back(last_part(items[i + 1]->text()));
    }
  }

  const DocumentSearch& wanted_;
  std::vector<Candidate> found_;
  std::vector<std::string> files_;
};

}  // namespace

Ptr read_manifest_file(const std::string& path, const SourceLocation& asked_from,
                       const std::string& key_path, Diagnostics& diagnostics) {
  std::string text;
  if (!read_text_file(path, asked_from, key_path, ConfigLimits{}.max_bytes, text, diagnostics))
    return nullptr;
  return parse_manifest(text, {.file = path}, diagnostics);
}

bool is_kubernetes_object(const ConfigNode& node) {
  return scalar_at(node, {"kind"}) != nullptr && node.find("apiVersion") != nullptr;
}

std::string kinds_held(const ConfigNode& root) {
  std::string kinds;
  for (const Ptr& object : items_at(root, {"items"}))
    if (const ConfigNode* kind = object->child("kind");
        kind != nullptr &&
        (", " + kinds + ",").find(", " + kind->text() + ",") == std::string::npos)
      add_word(kinds, printable(kind->text()));
  if (root.child("items") == nullptr && is_kubernetes_object(root))
    kinds = printable(root.child("kind")->text());
  return kinds.empty() ? kinds : " (it holds " + kinds + ")";
}

FoundDocument find_in_objects(const ConfigNode::Ptr& root, const DocumentSearch& search) {
  Search walk(search);
  walk.visit(root, "");
  return walk.result();
}

}  // namespace routesim::tools
