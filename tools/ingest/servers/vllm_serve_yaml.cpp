#include "tools/ingest/servers/vllm_serve_yaml.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/servers/catalogue_file.h"
#include "tools/ingest/servers/kustomize.h"
#include "tools/ingest/servers/vllm_serve_files.h"
#include "tools/ingest/servers/vllm_serve_flags.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/kubernetes_file.h"
#include "tools/ingest/tree/ledger.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

namespace {

constexpr std::string_view kKey = "vllm_serve";

struct Spelling {
  std::string_view vllm;
  std::string_view here;
};

constexpr std::array kSpellings = {
    Spelling{"tensor_parallel_size", "tensor_parallel"},
    Spelling{"pipeline_parallel_size", "pipeline_parallel"},
    Spelling{"data_parallel_size", "data_parallel"},
    Spelling{"enable_expert_parallel", "expert_parallel"},
    Spelling{"decode_context_parallel_size", "decode_context_parallel"},
};

/// A value of an assignment: of --set, or of a sweep or a plan.
bool is_assigned(const ConfigNode& value) {
  return value.style() == ConfigNode::Style::kUntyped || is_from_command_line(value.where());
}

/// The pool with vLLM's spelling of its keys replaced. Both spellings at once are an error, unless
/// one is assigned: that one wins.
Ptr with_own_spelling(const Ptr& pool, const std::string& path, Diagnostics& diagnostics) {
  std::vector<Member> members;
  for (const Member& member : pool->members()) {
    Member renamed = member;
    for (const Spelling& spelling : kSpellings)
      if (member.key == spelling.vllm) renamed.key = std::string(spelling.here);
    Member* const same = find_member(members, renamed.key);
    const bool assigned = is_assigned(*member.value);
    if (same == nullptr) {
      members.push_back(std::move(renamed));
    } else if (assigned || is_assigned(*same->value)) {
      if (assigned) *same = std::move(renamed);
    } else {
      diagnostics.error(member.key_where, child_path(path, member.key),
                        "is another name of " + renamed.key + ", which is set too",
                        "keep one of the two");
    }
  }
  return ConfigNode::make_map(std::move(members), pool->where());
}

/// The starts of files that several pools name, so that each is read once.
using StartsOfFiles = std::map<std::string, std::vector<ServerStart>>;

/// Keys that change how pods come and go, where a run does something else: a key, the value that
/// changes nothing, and what a run does.
constexpr std::array<std::array<std::string_view, 3>, 3> kOtherLife = {{
    {"podManagementPolicy", "Parallel", "pods start and end side by side"},
    {"updateStrategy", "RollingUpdate", "a roll-out replaces every pod"},
    {"partition", "0", "a roll-out replaces every pod"},
}};

void warn_of_other_life(const ConfigNode& node, const std::string& path, Diagnostics& diagnostics) {
  for (const Member& m : node.members())
    for (const auto& [key, harmless, instead] : kOtherLife) {
      const std::string value = m.value->is_map() ? text_at(*m.value, {"type"}) : m.value->text();
      if (m.key == key && !value.empty() && value != harmless)
        diagnostics.warning(
            m.key_where, path,
            m.key + " " + printable(value) + " is not simulated: " + std::string(instead));
    }
  for (const Ptr& child : children_of(node)) warn_of_other_life(*child, path, diagnostics);
}

/// Finds the start of one pool's servers.
class Finder {
 public:
  Finder(const ConfigNode& pool, const std::string& path, StartsOfFiles& files,
         Diagnostics& diagnostics)
      : role_(text_at(pool, {"role"})),
        name_(text_at(pool, {"name"})),
        path_(path),
        files_(files),
        diagnostics_(diagnostics) {}

  std::optional<ServerStart> find(const Ptr& value) {
    if (value->is_sequence()) return start_in_list(*value, {}, path_, diagnostics_);
    if (value->is_map()) return in_tree(value);
    if (!value->is_scalar() || value->text().empty())
      return fail(value->where(), "must be a command line, its words, a map of flags or a path (" +
                                      got(*value) + ")");
    const std::string& text = value->text();
    const bool may_be_path = value->style() != ConfigNode::Style::kBlock && !text.starts_with("-");
    const bool has_blanks = text.find_first_of(" \t\n") != std::string::npos;
    if (may_be_path) {
      const std::string file = resolve_path(text, value->where());
      if (const auto read = files_.find(file); read != files_.end()) return choose(read->second);
      if (is_kustomization(file)) return in_kustomization(file, *value);
      std::error_code missing;
      if (is_config_name(text) &&
          (!has_blanks || std::filesystem::is_regular_file(file, missing))) {
        const Ptr root = read_manifest_file(file, value->where(), path_, diagnostics_);
        return root == nullptr ? std::nullopt : in_tree(root, file);
      }
      std::error_code unreadable;
      if (std::filesystem::is_directory(file, unreadable)) return in_folder(file, *value);
      if (std::filesystem::is_regular_file(file, unreadable))
        return in_script(file, value->where());
      if (!has_blanks)
        return fail(value->where(),
                    "is neither a command line nor a file (got " + in_quotes(text) + ")",
                    "write vllm serve MODEL --flags, or a path relative to this file");
    }
    return start_in_scalar(*value, {}, path_, diagnostics_);
  }

 private:
  std::optional<ServerStart> fail(const SourceLocation& where, const std::string& what,
                                  const std::string& hint = {}) {
    diagnostics_.error(where, path_, what, hint);
    return std::nullopt;
  }

  std::optional<ServerStart> in_script(const std::string& file, const SourceLocation& asked_from) {
    std::string text;
    if (!read_text_file(file, asked_from, path_, ConfigLimits{}.max_bytes, text, diagnostics_))
      return std::nullopt;
    return start_in_text(text, places_in_file(file), asked_from, {}, path_, diagnostics_);
  }

  std::optional<ServerStart> in_folder(const std::string& folder, const ConfigNode& value) {
    const std::string file = kustomization_in(folder);
    if (!file.empty()) return in_kustomization(file, value);
    return fail(
        value.where(),
        "names a folder without a kustomization.yaml (got " + printable(value.text(), 200) + ")",
        "name a kustomize folder, or one file of it");
  }

  std::optional<ServerStart> in_kustomization(const std::string& file, const ConfigNode& value) {
    const Ptr root = build_kustomization(file, value.where(), path_, diagnostics_).objects;
    return root == nullptr ? std::nullopt : in_tree(root, file);
  }

  /// vLLM's own file, when its first keys are flags; else containers. `file` is empty for a map
  /// that stands in place.
  std::optional<ServerStart> in_tree(const Ptr& root, const std::string& file = {}) {
    if (root->is_map() && is_config_file(*root))
      return ServerStart{.where = root->where(), .flags = root->members()};
    Diagnostics found;
    std::vector<ServerStart> starts;
    if (root->is_map() || root->is_sequence()) starts = starts_in_tree(root, path_, found);
    note_keys(*without_life_objects(root), path_, key_table("server files"), nullptr, found);
    warn_of_other_life(*root, path_, found);
    append(diagnostics_, found);
    if (starts.empty() && !found.has_errors())
      return fail(root->where(), "holds no container that starts vLLM" + kinds_held(*root),
                  "give a manifest or Helm values whose container runs vllm serve, or vLLM's "
                  "--config file");
    if (!file.empty() && !found.has_errors()) files_[file] = starts;
    return choose(std::move(starts));
  }

  static bool is_config_file(const ConfigNode& root) {
    if (root.members().empty() || is_kubernetes_object(root)) return false;
    std::size_t known = 0;
    for (const Member& member : root.members()) {
      bool negated = false;
      if (find_flag_key(member.key, negated) != nullptr) ++known;
    }
    return 2 * known >= root.members().size();
  }

  std::optional<ServerStart> choose(std::vector<ServerStart> starts) {
    if (starts.empty()) return std::nullopt;
    if (starts.size() == 1) return std::move(starts.front());
    std::string names;
    for (const ServerStart& start : starts)
      add_word(names,
               printable(start.name) +
                   (start.role.empty() || start.role == start.name ? "" : " (" + start.role + ")"));
    const auto keep = [&](const auto& fits) {
      if (std::any_of(starts.begin(), starts.end(), fits))
        std::erase_if(starts, [&](const ServerStart& start) { return !fits(start); });
    };
    keep([&](const ServerStart& start) { return !role_.empty() && start.role == role_; });
    keep([&](const ServerStart& start) {
      return start.name == name_ ||
             std::find(start.others.begin(), start.others.end(), name_) != start.others.end();
    });
    if (starts.size() == 1) return std::move(starts.front());
    return fail(starts.front().where, "starts several servers: " + names,
                "give the pool the name or the role of one of them");
  }

  std::string role_;
  std::string name_;
  const std::string& path_;
  StartsOfFiles& files_;
  Diagnostics& diagnostics_;
};

/// A known model for a pool whose start could not be read; nothing runs after an error.
Ptr placeholder(const SourceLocation& where) {
  return tree::map({{"model", tree::text(builtin_catalogue().models().front().name, where)}},
                   where);
}

/// A router that the file of a pool's servers names.
struct FoundRouter {
  std::string pool;  ///< The path of the pool.
  RouterChoice choice;
};

/// The words of a pool's workload about the events that happen to it.
struct FoundWorkload {
  std::string pool;        ///< Its name.
  std::string path;        ///< Of the key that names its file.
  Members roll_outs;       ///< Their bounds.
  Ptr group_restart = {};  ///< See group_restart().
};

/// What the files of all servers say of other parts of the scenario.
struct FoundBeside {
  std::vector<FoundRouter> routers;
  std::vector<FoundWorkload> workloads;
};

Ptr pool_without(const Ptr& pool, const std::string& path, StartsOfFiles& files,
                 FoundBeside& beside, Diagnostics& diagnostics) {
  if (!pool->is_map()) return pool;
  Ptr spelled =
      without_lmcache_config(with_own_spelling(pool, path, diagnostics), path, diagnostics);
  if (const Member* assumed = spelled->find("assumed"); assumed != nullptr) {
    diagnostics.warning(assumed->value->where(), child_path(path, "assumed"),
                        "the servers are assumed: " + printable(assumed->value->text(), 200),
                        "write the pool that you have, and leave this key out");
    spelled = without_key(spelled, "assumed");
  }
  const Member* serve = spelled->find(kKey);
  if (serve == nullptr) return spelled;
  const Ptr own = without_key(spelled, kKey);
  if (serve->value->is_null()) return own;
  const std::string serve_path = child_path(path, kKey);
  Diagnostics found;
  const std::optional<ServerStart> start =
      Finder(*own, serve_path, files, found).find(serve->value);
  Ptr filled = own;
  if (start && !start->router.product.empty()) beside.routers.push_back({path, start->router});
  if (start) filled = fill_pool(own, *start, serve->value->where(), serve_path, found);
  if (start)
    beside.workloads.push_back({text_at(*own, {"name"}), serve_path,
                                roll_out_bounds(start->life, serve_path, found),
                                group_restart(start->life)});
  // The errors of the start have been reported; a missing model would only follow from them.
  if (found.has_errors()) filled = merge_configs(placeholder(serve->value->where()), filled);
  append(diagnostics, found);
  return filled;
}

bool same_routing(const RouterChoice& a, const RouterChoice& b) {
  return a.refused == b.refused &&
         std::equal(a.routing.begin(), a.routing.end(), b.routing.begin(), b.routing.end(),
                    [](const Member& x, const Member& y) {
                      return x.key == y.key && x.value->text() == y.value->text();
                    });
}

/// The scenario's own words about routing go before those of the servers' files.
bool chooses_router(const ConfigNode& scenario) {
  return node_at(scenario, {"routing", "balancer"}) != nullptr ||
         node_at(scenario, {"routing", "endpoint_picker"}) != nullptr;
}

/// The scenario behind the router that its servers' files name.
Ptr with_router(const Ptr& scenario, const std::vector<FoundRouter>& routers,
                Diagnostics& diagnostics) {
  if (routers.empty() || !scenario->is_map() || chooses_router(*scenario)) return scenario;
  constexpr const char* kHint =
      "set routing.balancer in the scenario to simulate these servers behind something else";
  const RouterChoice& first = routers.front().choice;
  for (const FoundRouter& other : routers)
    if (!same_routing(first, other.choice)) {
      diagnostics.error(other.choice.where, child_path(other.pool, kKey),
                        "puts " + other.choice.product + "'s router before this pool, and " +
                            routers.front().pool +
                            " has another one: one balancer serves all pools",
                        kHint);
      return scenario;
    }
  if (!first.refused.empty()) {
    diagnostics.error(
        first.where, child_path(routers.front().pool, kKey),
        printable(first.refused) + " is a policy of " + first.product + " that is not simulated",
        kHint);
    return scenario;
  }
  const Ptr routing = ConfigNode::make_map(first.routing, first.where);
  return merge_configs(tree::map({{"routing", routing}}, first.where), scenario);
}

/// The scenario whose roll-outs have the bounds of their workloads, where they state none. Warns of
/// crashes that end more than a container.
Ptr with_workloads(const Ptr& scenario, std::vector<FoundWorkload> found,
                   Diagnostics& diagnostics) {
  if (found.empty() || !scenario->is_map()) return scenario;
  return change_member(scenario, "events", [&](const Ptr& events) {
    if (!events->is_sequence()) return events;
    return with_children(events, [&](const Ptr& event) {
      if (!event->is_map()) return event;
      const std::string kind = text_at(*event, {"kind"}), pool = text_at(*event, {"pool"});
      const auto of = std::ranges::find_if(found, [&](const FoundWorkload& one) {
        return pool.empty() ? found.size() == 1 : one.pool == pool;
      });
      if (of == found.end()) return event;
      if (kind == "crash" && of->group_restart != nullptr) {
        diagnostics.warning(of->group_restart->where(), of->path,
                            "restartPolicy " + printable(of->group_restart->text()) +
                                " is not simulated: after a crash the process starts again in its "
                                "pod, and waits for longer each time");
        of->group_restart = nullptr;  // Once.
      }
      if (kind != "roll-out") return event;
      return merge_configs(ConfigNode::make_map(of->roll_outs, event->where()), event);
    });
  });
}

}  // namespace

Ptr without_vllm_serve(const Ptr& scenario, Diagnostics& diagnostics) {
  FoundBeside beside;
  StartsOfFiles files;
  const Ptr filled = change_member(scenario, "cluster", [&](const Ptr& cluster) {
    return change_member(cluster, "pools", [&](const Ptr& pools) {
      if (!pools->is_sequence()) return pools;
      std::size_t i = 0;
      return with_children(pools, [&](const Ptr& pool) {
        return pool_without(pool, element_path("cluster.pools", i++), files, beside, diagnostics);
      });
    });
  });
  return with_workloads(with_router(filled, beside.routers, diagnostics),
                        std::move(beside.workloads), diagnostics);
}

std::string_view vllm_spelling(std::string_view key) {
  for (const Spelling& spelling : kSpellings)
    if (spelling.here == key) return spelling.vllm;
  return {};
}

}  // namespace routesim::tools
