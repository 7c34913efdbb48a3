#include "tools/ingest/servers/kustomize.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/ingest/servers/kustomize_patch.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/kubernetes_file.h"
#include "tools/ingest/tree/ledger.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

namespace {

namespace fs = std::filesystem;

/// Files of one folder and its bases; a folder that refers to itself reads more.
constexpr int kMostFiles = 1000;
/// Bytes of all files together, each time that one is read.
constexpr std::size_t kMostBytes = ConfigLimits{}.max_bytes;

constexpr std::array<std::string_view, 3> kFileNames = {"kustomization.yaml", "kustomization.yml",
                                                        "Kustomization"};

using Object = KustomizeObject;

/// Objects without a namespace are in `default`.
std::string namespace_or_default(const std::string& name) {
  return name.empty() ? "default" : name;
}

bool is_remote(const std::string& resource) {
  return resource.find("://") != std::string::npos || resource.starts_with("github.com/") ||
         resource.starts_with("git@");
}

/// The tree with every list of containers changed.
Ptr with_images(const Ptr& node, const std::function<Ptr(const Ptr&)>& change_image) {
  const auto change_container = [&](const Ptr& container) {
    return change_member(container, "image", change_image);
  };
  const auto change_list = [&](const Ptr& list) {
    return list->is_sequence() ? with_children(list, change_container) : list;
  };
  Ptr changed =
      with_children(node, [&](const Ptr& child) { return with_images(child, change_image); });
  for (const char* key : {"containers", "initContainers"})
    changed = change_member(changed, key, change_list);
  return changed;
}

/// The tree with labels or annotations at every pod below it.
Ptr with_pod_labels(const Ptr& node, const Ptr& labels) {
  const Ptr map =
      with_children(node, [&](const Ptr& child) { return with_pod_labels(child, labels); });
  return node_at(*map, {"spec", "containers"}) != nullptr ? merge_configs(map, labels) : map;
}

/// One build: reads files and changes objects, folder by folder.
class Build {
 public:
  Build(const std::string& key_path, Diagnostics& diagnostics)
      : key_path_(key_path), diagnostics_(diagnostics) {}

  /// Adds the resources of a kustomization to `objects`, then changes all of them by its rules. A
  /// component is given the objects of the folder that names it.
  void apply(const std::string& file, const SourceLocation& asked_from,
             std::vector<Object>& objects) {
    if (!count_file(file, asked_from)) return;
    const Ptr root = read_manifest_file(file, asked_from, key_path_, diagnostics_);
    if (root == nullptr) return;
    if (!root->is_map()) {
      diagnostics_.error(root->where(), key_path_, "must be a map (" + got(*root) + ")");
      return;
    }
    note_keys(*root, key_path_, key_table("kustomization"), nullptr, diagnostics_);
    check_lists(*root);
    merges_lists_ = merges_lists_ || root->find("openapi") != nullptr;
    for (const char* key : {"resources", "bases"})
      for (const Ptr& item : items_at(*root, {key})) add_resource(*item, objects);
    for (const Ptr& item : items_at(*root, {"configMapGenerator"})) add_config_map(*item, objects);
    for (const Ptr& item : items_at(*root, {"components"}))
      if (const std::string found = folder_file(*item); !found.empty())
        apply(found, item->where(), objects);
    change(*root, objects);
  }

  std::vector<std::string> files() && { return std::move(files_); }

 private:
  void check_lists(const ConfigNode& root) {
    for (const char* key : {"resources", "bases", "components", "patches", "patchesStrategicMerge",
                            "patchesJson6902", "configMapGenerator", "replicas", "images"})
      if (const ConfigNode* list = root.child(key);
          list != nullptr && !list->is_sequence() && !list->is_null())
        diagnostics_.error(list->where(), key_path_,
                           std::string(key) + " must be a list (" + got(*list) + ")");
  }

  bool count_file(const std::string& path, const SourceLocation& where) {
    if (++read_ == kMostFiles)
      diagnostics_.error(where, key_path_,
                         "leads to more than " + std::to_string(kMostFiles) + " files",
                         "a folder may not name itself, nor one that names it");
    std::error_code unknown;
    const std::uintmax_t size = fs::file_size(path, unknown);
    const bool fitted = bytes_ <= kMostBytes;
    if (!unknown) bytes_ += size;
    if (fitted && bytes_ > kMostBytes)
      diagnostics_.error(where, key_path_, "leads to files of more than 16 MiB together",
                         "name a folder that holds the servers only");
    return read_ < kMostFiles && bytes_ <= kMostBytes;
  }

  /// The rules in the order in which kustomize applies them.
  void change(const ConfigNode& root, std::vector<Object>& objects) {
    for (const Ptr& item : items_at(root, {"patchesStrategicMerge"}))
      patch_by(item->text().find('\n') == std::string::npos ? read_patch(*item)
                                                            : parse_embedded(*item, diagnostics_),
               nullptr, objects);
    for (const Ptr& item : items_at(root, {"patches"})) patch_item(*item, objects);
    if (const std::string name = text_at(root, {"namespace"}); !name.empty())
      for (Object& object : objects) object.namespaces.push_back(name);
    rename(text_at(root, {"namePrefix"}), text_at(root, {"nameSuffix"}), objects);
    if (const Member* labels = root.find("commonLabels"))
      label("labels", labels->value, true, objects);
    for (const Ptr& item : items_at(root, {"labels"})) {
      const Member* pairs = item->find("pairs");
      const bool pods = text_at(*item, {"includeTemplates"}) == "true" ||
                        text_at(*item, {"includeSelectors"}) == "true";
      if (pairs != nullptr) label("labels", pairs->value, pods, objects);
    }
    if (const Member* annotations = root.find("commonAnnotations"))
      label("annotations", annotations->value, true, objects);
    for (const Ptr& item : items_at(root, {"patchesJson6902"})) patch_item(*item, objects);
    for (const Ptr& item : items_at(root, {"replicas"})) scale(*item, objects);
    for (const Ptr& item : items_at(root, {"images"})) set_image(*item, objects);
  }

  /// The kustomization in the folder that an item names; empty, with an error, when there is none.
  std::string folder_file(const ConfigNode& item) {
    if (is_remote(item.text())) {
      diagnostics_.warning(item.where(), key_path_,
                           "is remote, which is not read (got " + printable(item.text()) + ")",
                           "clone it, and name its folder");
      return {};
    }
    const std::string folder = resolve_path(item.text(), item.where());
    std::string file = kustomization_in(folder);
    if (file.empty())
      diagnostics_.error(
          item.where(), key_path_,
          "names a folder without a kustomization.yaml (got " + printable(item.text(), 200) + ")");
    return file;
  }

  void add_resource(const ConfigNode& item, std::vector<Object>& objects) {
    const std::string path = resolve_path(item.text(), item.where());
    std::error_code unreadable;
    if (is_remote(item.text()) || fs::is_directory(path, unreadable)) {
      std::vector<Object> own;
      if (const std::string file = folder_file(item); !file.empty()) apply(file, item.where(), own);
      objects.insert(objects.end(), own.begin(), own.end());
      return;
    }
    if (!count_file(path, item.where())) return;
    const Ptr root = read_manifest_file(path, item.where(), key_path_, diagnostics_);
    if (root == nullptr) return;
    files_.push_back(path);
    if (text_at(*root, {"kind"}) != "List") return add_object(root, objects);
    for (const Ptr& object : items_at(*root, {"items"})) add_object(object, objects);
  }

  static void add_object(const Ptr& object, std::vector<Object>& objects) {
    if (object->is_map())
      objects.push_back({object,
                         {text_at(*object, {"metadata", "name"})},
                         {namespace_or_default(text_at(*object, {"metadata", "namespace"}))}});
  }

  static bool is_called(const Object& object, const std::string& name) {
    return std::find(object.names.begin(), object.names.end(), name) != object.names.end();
  }

  void add_config_map(const ConfigNode& item, std::vector<Object>& objects) {
    std::vector<Member> data;
    for (const Ptr& entry : items_at(item, {"files"})) {
      const std::size_t equals = entry->text().find('=');
      const std::string written =
          entry->text().substr(equals == std::string::npos ? 0 : equals + 1);
      const std::string path = resolve_path(written, entry->where());
      const std::string key = equals == std::string::npos ? fs::path(path).filename().string()
                                                          : entry->text().substr(0, equals);
      std::string text;
      if (!count_file(path, entry->where()) ||
          !read_text_file(path, entry->where(), key_path_, ConfigLimits{}.max_bytes, text,
                          diagnostics_))
        continue;
      files_.push_back(path);
      const SourceLocation start{.file = path, .line = 1, .column = 1};
      data.push_back({key, entry->where(), ConfigNode::make_block(text, start, 1, 0)});
    }
    for (const Ptr& entry : items_at(item, {"literals"})) {
      const std::size_t equals = entry->text().find('=');
      if (equals == std::string::npos)
        diagnostics_.error(entry->where(), key_path_,
                           "must be KEY=VALUE (got " + printable(entry->text()) + ")");
      else
        data.push_back({entry->text().substr(0, equals), entry->where(),
                        tree::text(entry->text().substr(equals + 1), entry->where())});
    }
    place_config_map(item, ConfigNode::make_map(std::move(data), item.where()), objects);
  }

  /// Creates, merges or replaces by the item's `behavior`. The errors are those of
  /// appendReplaceOrMerge in api/resmap/reswrangler.go of kustomize v5.8.1.
  void place_config_map(const ConfigNode& item, const Ptr& data, std::vector<Object>& objects) {
    const SourceLocation& at = item.where();
    const std::string name = text_at(item, {"name"}), behavior = text_at(item, {"behavior"});
    const std::string space = namespace_or_default(text_at(item, {"namespace"}));
    const bool creates = behavior != "merge" && behavior != "replace";
    const auto old = std::find_if(objects.begin(), objects.end(), [&](const Object& object) {
      const std::vector<std::string>& spaces = object.namespaces;
      return is_called(object, name) && text_at(*object.node, {"kind"}) == "ConfigMap" &&
             (!creates || std::find(spaces.begin(), spaces.end(), space) != spaces.end());
    });
    if (creates != (old == objects.end())) {
      const ConfigNode* said = item.child("behavior");
      diagnostics_.error((said != nullptr ? *said : item).where(), key_path_,
                         (creates ? "creates a ConfigMap that is there already: "
                                  : "changes a ConfigMap that is not there: ") +
                             printable(name),
                         creates ? "set behavior: merge or replace" : "");
      return;
    }
    if (behavior == "merge") {
      old->node = merge_configs(old->node, tree::map({{"data", data}}, at));
      return;
    }
    const Member* metadata = creates ? nullptr : old->node->find("metadata");
    const Ptr map = tree::map(
        {{"apiVersion", tree::text("v1", at)},
         {"kind", tree::text("ConfigMap", at)},
         {"metadata",
          metadata != nullptr ? metadata->value : tree::map({{"name", tree::text(name, at)}}, at)},
         {"data", data}},
        at);
    if (creates)
      objects.push_back({map, {name}, {space}});
    else
      old->node = map;
  }

  Ptr read_patch(const ConfigNode& path) {
    const std::string file = resolve_path(path.text(), path.where());
    if (!count_file(file, path.where())) return nullptr;
    return read_manifest_file(file, path.where(), key_path_, diagnostics_);
  }

  /// An element of `patches` or `patchesJson6902`.
  void patch_item(const ConfigNode& item, std::vector<Object>& objects) {
    const ConfigNode* text = item.child("patch");
    const ConfigNode* path = item.child("path");
    const Ptr patch = text != nullptr   ? parse_embedded(*text, diagnostics_)
                      : path != nullptr ? read_patch(*path)
                                        : nullptr;
    patch_by(patch, item.child("target"), objects);
  }

  void patch_by(const Ptr& patch, const ConfigNode* target, std::vector<Object>& objects) {
    if (patch == nullptr) return;
    if (text_at(*patch, {"kind"}) == "List") {
      for (const Ptr& one : items_at(*patch, {"items"})) patch_by(one, target, objects);
      return;
    }
    if (patch->is_sequence() && target == nullptr) {
      diagnostics_.error(patch->where(), key_path_, "is a list of operations without a target");
      return;
    }
    std::optional<KustomizeTarget> selector;
    if (target != nullptr) selector.emplace(*target, key_path_, diagnostics_);
    bool found = false;
    for (Object& object : objects) {
      if (object.node == nullptr) continue;
      const bool meant = selector ? selector->selects(object)
                                  : text_at(*patch, {"kind"}) == text_at(*object.node, {"kind"}) &&
                                        is_called(object, text_at(*patch, {"metadata", "name"}));
      if (!meant) continue;
      found = true;
      object.node = patch->is_sequence()
                        ? patched_by_operations(object.node, *patch, key_path_, diagnostics_)
                        : merged_strategically(object.node, *patch, merges_lists_);
    }
    std::erase_if(objects, [](const Object& object) { return object.node == nullptr; });
    if (found) return;
    const ConfigNode& wanted = target != nullptr ? *target : *patch;
    const std::string kind = text_at(wanted, {"kind"});
    const std::string name =
        target != nullptr ? text_at(wanted, {"name"}) : text_at(wanted, {"metadata", "name"});
    diagnostics_.warning(wanted.where(), key_path_,
                         "changes no object: there is no " +
                             (kind.empty() ? std::string("object") : printable(kind)) +
                             (name.empty() ? " that it selects" : " called " + printable(name)));
  }

  static void rename(const std::string& prefix, const std::string& suffix,
                     std::vector<Object>& objects) {
    if (prefix.empty() && suffix.empty()) return;
    const auto renamed = [&](const Ptr& name) {
      return tree::text(prefix + name->text() + suffix, name->where());
    };
    std::vector<std::string> before;
    for (Object& object : objects) {
      before.push_back(text_at(*object.node, {"metadata", "name"}));
      object.node = change_member(object.node, "metadata", [&](const Ptr& metadata) {
        return change_member(metadata, "name", renamed);
      });
      object.names.push_back(text_at(*object.node, {"metadata", "name"}));
    }
    // Kustomize knows the references of built-in kinds: a ScaledObject keeps the old name.
    for (Object& object : objects)
      if (text_at(*object.node, {"kind"}) == "HorizontalPodAutoscaler")
        object.node = change_member(object.node, "spec", [&](const Ptr& spec) {
          return change_member(spec, "scaleTargetRef", [&](const Ptr& target) {
            const bool known = std::ranges::count(before, text_at(*target, {"name"})) > 0;
            return known ? change_member(target, "name", renamed) : target;
          });
        });
  }

  /// `key` is `labels` or `annotations`.
  static void label(const char* key, const Ptr& pairs, bool pods, std::vector<Object>& objects) {
    const Ptr labels =
        tree::map({{"metadata", tree::map({{key, pairs}}, pairs->where())}}, pairs->where());
    for (Object& object : objects) {
      object.node = merge_configs(object.node, labels);
      if (pods) object.node = with_pod_labels(object.node, labels);
    }
  }

  static void scale(const ConfigNode& item, std::vector<Object>& objects) {
    const Member* count = item.find("count");
    if (count == nullptr) return;
    const Ptr replicas =
        tree::map({{"spec", tree::map({{"replicas", count->value}}, count->value->where())}},
                  count->value->where());
    constexpr std::array<std::string_view, 4> kScaled = {"Deployment", "StatefulSet", "ReplicaSet",
                                                         "ReplicationController"};
    for (Object& object : objects)
      if (is_called(object, text_at(item, {"name"})) &&
          std::find(kScaled.begin(), kScaled.end(), text_at(*object.node, {"kind"})) !=
              kScaled.end())
        object.node = merge_configs(object.node, replicas);
  }

  static void set_image(const ConfigNode& item, std::vector<Object>& objects) {
    const std::string name = text_at(item, {"name"}), digest = text_at(item, {"digest"});
    const auto changed = [&](const Ptr& image) -> Ptr {
      const std::string& text = image->text();
      // A colon before a slash is that of a port.
      const std::size_t slash = text.rfind('/');
      const std::size_t end =
          std::min(text.find_first_of(":@", slash == std::string::npos ? 0 : slash), text.size());
      if (text.substr(0, end) != name) return image;
      const ConfigNode* said = item.child("newName");
      const ConfigNode* tag = item.child("newTag");
      std::string written = said != nullptr ? said->text() : name;
      if (!digest.empty())
        written += "@" + digest;
      else
        written += tag != nullptr ? ":" + tag->text() : text.substr(end);
      return tree::text(written, (tag != nullptr ? *tag : item).where());
    };
    for (Object& object : objects) object.node = with_images(object.node, changed);
  }

  const std::string& key_path_;
  Diagnostics& diagnostics_;
  std::vector<std::string> files_;
  int read_ = 0;
  std::uintmax_t bytes_ = 0;
  bool merges_lists_ = false;  ///< A schema of resources that are not built in was named.
};

}  // namespace

std::string kustomization_in(const std::string& folder) {
  std::error_code unreadable;
  for (const std::string_view name : kFileNames)
    if (const fs::path file = fs::path(folder) / name; fs::is_regular_file(file, unreadable))
      return file.lexically_normal().string();
  return {};
}

bool is_kustomization(const std::string& path) {
  return std::find(kFileNames.begin(), kFileNames.end(), fs::path(path).filename()) !=
         kFileNames.end();
}

Kustomized build_kustomization(const std::string& file, const SourceLocation& asked_from,
                               const std::string& key_path, Diagnostics& diagnostics) {
  Diagnostics found;
  Build build(key_path, found);
  std::vector<Object> objects;
  build.apply(file, asked_from, objects);
  append(diagnostics, found);
  if (found.has_errors()) return {};
  std::vector<Ptr> items;
  for (const Object& object : objects) items.push_back(object.node);
  const SourceLocation where{.file = file, .line = 1, .column = 1};
  return {.objects = tree::map({{"apiVersion", tree::text("v1", where)},
                                {"kind", tree::text("List", where)},
                                {"items", ConfigNode::make_sequence(std::move(items), where)}},
                               where),
          .files = std::move(build).files()};
}

}  // namespace routesim::tools
