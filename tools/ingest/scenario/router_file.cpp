#include "tools/ingest/scenario/router_file.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/ingest/scalers/autoscaler_yaml.h"
#include "tools/ingest/servers/vllm_serve_files.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/ingest/tree/kubernetes_file.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

namespace {

/// The servers of one file, those of autoscalers alone included.
std::vector<ServerStart> servers_in(const Ptr& root, const std::string& key_path,
                                    Diagnostics& diagnostics) {
  // A fault of servers that no pool reads is none of the scenario.
  Diagnostics found;
  std::vector<ServerStart> starts = starts_in_tree(root, key_path, found);
  for (const Diagnostic& d : found.items())
    if (d.severity != Severity::kError) diagnostics.add(d);
  for (const KeyUse& use : found.keys()) diagnostics.key(use);
  if (!starts.empty()) {
    std::erase_if(starts, [](const ServerStart& start) { return !start.unread.empty(); });
    return starts;
  }
  LifeObjects objects;
  objects.add(root);
  Diagnostics said_where_used;
  for (const ScalerObject& scaler : scalers_in_tree(root, key_path, said_where_used)) {
    ServerStart start{.where = scaler.where, .name = scaler.target};
    start.life.name = scaler.target;
    objects.give(start.life, {});
    starts.push_back(std::move(start));
  }
  objects.note_all_keys(key_path, diagnostics);
  return starts;
}

/// One file, and the pools of the scenario.
class RouterFile {
 public:
  RouterFile(const ConfigNode& name, std::string key_path, Diagnostics& diagnostics)
      : key_path_(std::move(key_path)), written_(name.text()), diagnostics_(diagnostics) {
    const std::string path = resolve_path(name.text(), name.where());
    Diagnostics said_by_its_reader;
    const Ptr root = read_manifest_file(path, name.where(), key_path_, said_by_its_reader);
    if (root != nullptr && !said_by_its_reader.has_errors() && root->is_map() &&
        is_kubernetes_object(*root))
      servers_ = servers_in(root, key_path_, diagnostics);
    taken_.resize(servers_.size());
  }

  Ptr change(const Ptr& pool, std::size_t pools) {
    if (!pool->is_map() || servers_.empty()) return pool;
    const Member* serve = pool->find("vllm_serve");
    if (serve != nullptr) {
      if (serve->value->text() == written_) taken_.assign(taken_.size(), true);
      return pool;
    }
    const std::string name = text_at(*pool, {"name"});
    for (std::size_t i = 0; i < servers_.size(); ++i)
      if (servers_[i].name == name || (pools == 1 && servers_.size() == 1)) {
        taken_[i] = true;
        return with_life(pool, servers_[i].life);
      }
    return pool;
  }

  void warn_of_the_others() const {
    for (std::size_t i = 0; i < servers_.size(); ++i)
      if (!taken_[i])
        diagnostics_.warning(servers_[i].where, key_path_,
                             "also has the servers " + printable(servers_[i].name) +
                                 ", and no pool has that name or reads them",
                             "`vllm_serve: " + written_ + "` in a pool reads them");
  }

 private:
  Ptr with_life(const Ptr& pool, const ServerLife& life) {
    const Ptr replicas = scalar_at(*pool, {"replicas"});
    const double count = replicas == nullptr ? 1 : number_from(replicas->text()).value_or(1);
    const auto says = [&](std::string_view key) { return pool->find(key) != nullptr; };
    Members members = pool->members();
    for (Member& key :
         life_keys(life, static_cast<std::int64_t>(count), says, key_path_, diagnostics_))
      members.push_back(std::move(key));
    return ConfigNode::make_map(std::move(members), pool->where());
  }

  std::string key_path_, written_;
  Diagnostics& diagnostics_;
  std::vector<ServerStart> servers_;
  std::vector<bool> taken_;  ///< By server: a pool stands for it.
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
