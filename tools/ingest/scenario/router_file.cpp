#include "tools/ingest/scenario/router_file.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "tools/ingest/scalers/autoscaler_yaml.h"
#include "tools/ingest/servers/vllm_serve_files.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/ingest/tree/kubernetes_file.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

namespace {

/// Servers that a router's file starts, or only scales.
struct FileServers {
  ServerStart start;
  bool started = true;
  bool taken = false;  ///< A pool stands for them.
};

/// Whether an object of the file that makes pods has the name.
bool has_workload(const ConfigNode& root, const std::string& name) {
  const auto is_it = [&](const ConfigNode& object) {
    return text_at(object, {"metadata", "name"}) == name && node_at(object, {"spec", "template"});
  };
  return is_it(root) ||
         std::ranges::any_of(root.items(), [&](const Ptr& o) { return is_it(*o); }) ||
         std::ranges::any_of(items_at(root, {"items"}), [&](const Ptr& o) { return is_it(*o); });
}

/// The servers of one file. A workload that starts none, such as the router, is not among them.
std::vector<FileServers> servers_in(const Ptr& root, const std::string& key_path,
                                    Diagnostics& diagnostics) {
  // A fault of servers that no pool reads is none of the scenario.
  Diagnostics found;
  std::vector<FileServers> servers;
  for (ServerStart& start : starts_in_tree(root, key_path, found))
    if (start.unread.empty()) servers.push_back({.start = std::move(start)});
  for (const Diagnostic& d : found.items())
    if (d.severity != Severity::kError) diagnostics.add(d);
  for (const KeyUse& use : found.keys()) diagnostics.key(use);
  if (!servers.empty()) return servers;
  LifeObjects objects;
  objects.add(root);
  Diagnostics said_where_used;
  for (const ScalerObject& scaler : scalers_in_tree(root, key_path, said_where_used)) {
    if (has_workload(*root, scaler.target)) continue;
    ServerStart start{.where = scaler.where, .name = scaler.target};
    start.life.name = scaler.target;
    objects.give(start.life, {});
    servers.push_back({.start = std::move(start), .started = false});
  }
  objects.note_all_keys(key_path, diagnostics);
  return servers;
}

/// The names of the servers that a pool's `vllm_serve` may choose from, where it is a file.
std::vector<std::string> names_in(const ConfigNode& serve) {
  std::vector<std::string> names;
  if (!serve.is_scalar() || !is_config_name(serve.text())) return names;
  Diagnostics said_by_its_reader;
  const Ptr root = read_manifest_file(resolve_path(serve.text(), serve.where()), serve.where(), {},
                                      said_by_its_reader);
  if (root == nullptr || !is_kubernetes_object(*root)) return names;
  for (const ServerStart& start : starts_in_tree(root, {}, said_by_its_reader))
    names.push_back(start.name);
  return names;
}

/// One file, and the pools of the scenario.
class RouterFile {
 public:
  RouterFile(const ConfigNode& name, std::string key_path, Diagnostics& diagnostics)
      : key_path_(std::move(key_path)),
        written_(name.text()),
        path_(resolve_path(name.text(), name.where())),
        diagnostics_(diagnostics) {
    Diagnostics said_by_its_reader;
    const Ptr root = read_manifest_file(path_, name.where(), key_path_, said_by_its_reader);
    if (root != nullptr && !said_by_its_reader.has_errors() && root->is_map() &&
        is_kubernetes_object(*root))
      servers_ = servers_in(root, key_path_, diagnostics);
  }

  Ptr change(const Ptr& pool, std::size_t pools) {
    if (!pool->is_map() || servers_.empty()) return pool;
    const std::string name = text_at(*pool, {"name"}), role = text_at(*pool, {"role"});
    const Member* serve = pool->find("vllm_serve");
    const bool reads = serve != nullptr && serve->value->is_scalar() &&
                       resolve_path(serve->value->text(), serve->value->where()) == path_;
    const std::vector<std::string> others =
        serve != nullptr && !reads ? names_in(*serve->value) : std::vector<std::string>();
    for (FileServers& s : servers_) {
      const bool alone = pools == 1 && servers_.size() == 1;
      if (reads)
        s.taken |= alone || s.start.name == name || (!role.empty() && s.start.role == role);
      else if (s.start.name == name || std::ranges::count(others, s.start.name) > 0 ||
               (alone && s.started && serve == nullptr))
        return with_life(pool, s);
    }
    return pool;
  }

  void warn_of_the_others() const {
    for (const FileServers& s : servers_)
      if (!s.taken)
        diagnostics_.warning(
            s.start.where, key_path_,
            (s.started ? "also has the servers " : "also scales ") + printable(s.start.name) +
                ", and no pool has that name or reads them",
            s.started ? "`vllm_serve: " + written_ + "` in a pool of that name reads them"
                      : "give a pool that name, or write its `autoscaler`");
  }

 private:
  Ptr with_life(const Ptr& pool, FileServers& servers) {
    servers.taken = true;
    const Members keys = life_keys(
        servers.start.life, [&](std::string_view key) { return says_key(*pool, key); }, key_path_,
        diagnostics_);
    for (const Member& key : keys)
      if (key.key == "autoscaler")
        diagnostics_.warning(key.value->where(), key_path_,
                             "scales the servers of pool " + printable(text_at(*pool, {"name"})),
                             "`autoscaler: null` in the pool leaves that out");
    return merge_configs(ConfigNode::make_map(keys, pool->where()), pool);
  }

  std::string key_path_, written_, path_;
  Diagnostics& diagnostics_;
  std::vector<FileServers> servers_;
};

}  // namespace

Ptr with_router_file(const Ptr& scenario, Diagnostics& diagnostics) {
  Ptr changed = scenario;
  const ConfigNode* routing = scenario->child("routing");
  if (routing == nullptr) return scenario;
  for (const std::string_view key : {"config", "endpoint_picker"}) {
    const Ptr file = scalar_at(*routing, {key});
    if (file == nullptr || !is_config_name(file->text())) continue;
    RouterFile servers(*file, "routing." + std::string(key), diagnostics);
    changed = change_member(changed, "cluster", [&](const Ptr& cluster) {
      return change_member(cluster, "pools", [&](const Ptr& pools) {
        if (!pools->is_sequence()) return pools;
        std::vector<Ptr> all = pools->items();
        for (Ptr& pool : all) pool = servers.change(pool, all.size());
        return ConfigNode::make_sequence(std::move(all), pools->where());
      });
    });
    servers.warn_of_the_others();
  }
  return changed;
}

}  // namespace routesim::tools
