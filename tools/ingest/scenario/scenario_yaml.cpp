#include "tools/ingest/scenario/scenario_yaml.h"

#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "sim/plan/mix.h"
#include "sim/plan/router_costs.h"
#include "sim/plan/unsupplied_inputs.h"
#include "tools/ingest/loads/guidellm_yaml.h"
#include "tools/ingest/loads/inference_perf_yaml.h"
#include "tools/ingest/loads/vllm_bench_yaml.h"
#include "tools/ingest/routers/endpoint_picker_yaml.h"
#include "tools/ingest/routers/router_config.h"
#include "tools/ingest/scenario/demand_file.h"
#include "tools/ingest/scenario/file_kind.h"
#include "tools/ingest/scenario/router_file.h"
#include "tools/ingest/scenario/run_checks.h"
#include "tools/ingest/servers/kv_tier_files.h"
#include "tools/ingest/servers/vllm_serve_yaml.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/ingest/tree/kubernetes_file.h"
#include "tools/ingest/tree/ledger.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

namespace {

constexpr std::string_view kVariantsKey = "variants";

/// `workload.inference_perf.` and a key of the load tool's document.
bool reaches_into_load(const Assignment& assignment) {
  return assignment.steps.size() > 2 && assignment.steps[0].key == "workload" &&
         assignment.steps[1].key == "inference_perf";
}

/// The document inside `root`, to which the assignment's path leads unless it begins with a key of
/// what is around it.
Ptr load_tool_document(const Ptr& root, const Assignment& assignment, Diagnostics& diagnostics) {
  const bool around = root->is_map() && root->find(assignment.steps[2].key) != nullptr;
  if (around && !is_kubernetes_object(*root)) return root;
  return inference_perf_document(root, "workload.inference_perf", diagnostics);
}

/// The scenario whose workload is the load tool's document itself where it holds more, inline.
Ptr without_wrapper(const Ptr& scenario, const Assignment& assignment, Diagnostics& diagnostics) {
  if (!reaches_into_load(assignment)) return scenario;
  return change_member(scenario, "workload", [&](const Ptr& workload) {
    return change_member(workload, "inference_perf", [&](const Ptr& value) {
      if (!value->is_map()) return value;
      const Ptr document = load_tool_document(value, assignment, diagnostics);
      return document != nullptr ? document : value;
    });
  });
}

/// The file behind a scalar that names one, so that `--set` can reach into it.
Ptr load_reference(const ConfigNode& scalar, const Assignment& assignment,
                   Diagnostics& diagnostics) {
  if (is_vllm_bench_command(scalar) && scalar.text().find("bench serve") != std::string::npos)
    return vllm_bench_command(scalar, "workload.vllm_bench", diagnostics);
  const std::string& text = scalar.text();
  if (!is_config_name(text) || scalar.style() == ConfigNode::Style::kBlock) return nullptr;
  const std::string path = resolve_path(text, scalar.where());
  if (!reaches_into_load(assignment)) return read_config_file(path, diagnostics);
  const Ptr root = read_manifest_file(path, scalar.where(), "workload.inference_perf", diagnostics);
  return root != nullptr ? load_tool_document(root, assignment, diagnostics) : nullptr;
}

struct NamedNode {
  std::string name;
  Ptr node;
};

/// Splits the file into its variants, each still untyped.
class VariantSplitter {
 public:
  VariantSplitter(const Ptr& root, Diagnostics& diagnostics)
      : root_(root), diagnostics_(diagnostics) {}

  std::vector<NamedNode> split() {
    const ConfigNode::Member* member = root_->find(kVariantsKey);
    if (member == nullptr) return {{.name = "default", .node = root_}};
    const Ptr base = without_key(root_, kVariantsKey);
    if (!member->value->is_sequence() || member->value->items().empty()) {
      diagnostics_.error(member->value->where(), "variants",
                         "must be a list of at least one variant (" + got(*member->value) + ")",
                         "write - name: ... and below it the keys that differ");
      return {{.name = "default", .node = base}};
    }
    std::vector<NamedNode> variants;
    for (std::size_t i = 0; i < member->value->items().size(); ++i)
      add(base, member->value->items()[i], element_path("variants", i), variants);
    return variants;
  }

 private:
  void add(const Ptr& base, const Ptr& item, const std::string& path,
           std::vector<NamedNode>& variants) {
    if (!item->is_map()) {
      diagnostics_.error(item->where(), path, "must be a map (" + got(*item) + ")");
      return;
    }
    const ConfigNode::Member* name = item->find("name");
    if (name == nullptr) {
      diagnostics_.error(item->where(), child_path(path, "name"), "is missing",
                         "every variant has a name");
      return;
    }
    Parsed<std::string> text = parse_text(*name->value);
    if (text.value && text.value->empty()) text = {{}, "must not be empty", {}};
    for (const NamedNode& other : variants)
      if (text.value && other.name == *text.value)
        text = {{}, "is the name of another variant too (" + got(*name->value) + ")", {}};
    if (!text.value) {
      diagnostics_.error(name->value->where(), child_path(path, "name"), text.message, text.hint);
      return;
    }
    variants.push_back(
        {.name = *text.value, .node = merge_configs(base, without_key(item, "name"))});
  }

  const Ptr& root_;
  Diagnostics& diagnostics_;
};

/// Assignments to `variants[...]` change the file as it was written, all others each variant.
bool targets_variants(const Assignment& assignment) {
  return assignment.steps.front().key == kVariantsKey;
}

std::vector<NamedNode> select(std::vector<NamedNode> all, const std::vector<std::string>& wanted,
                              Diagnostics& diagnostics) {
  if (wanted.empty()) return all;
  std::vector<std::string> names;
  std::string list;
  for (const NamedNode& variant : all) {
    names.push_back(variant.name);
    add_word(list, printable(variant.name));
  }
  for (const std::string& name : wanted)
    if (std::find(names.begin(), names.end(), name) == names.end())
      diagnostics.error({.file = "--variant"}, "", "there is no variant " + in_quotes(name),
                        did_you_mean(name, names, "variants: " + list));
  std::erase_if(all, [&](const NamedNode& variant) {
    return std::find(wanted.begin(), wanted.end(), variant.name) == wanted.end();
  });
  return all;
}

/// The tree of a document: the inline one, or the file it names.
Ptr document_root(const Document& document, const std::string& key_path, Diagnostics& diagnostics) {
  if (document.path.empty()) return document.root;
  const SourceLocation& where = document.root->where();
  return read_manifest_file(resolve_path(document.path, where), where, key_path, diagnostics);
}

/// An expectation written as bare text is a map with the key `that`.
Ptr complete_expectations(const Ptr& list) {
  if (!list->is_sequence()) return list;
  return with_children(list, [](const Ptr& item) {
    return item->is_scalar() ? tree::map({{"that", item}}, item->where()) : item;
  });
}

/// The map in the file that a scalar names, or the tool's part of a benchmark template there; an
/// empty one after an error.
Ptr map_in_file(const Ptr& scalar, const std::string& key, std::string_view harness,
                Diagnostics& diagnostics) {
  const Document file{.path = scalar->text(), .root = scalar};
  const Ptr map = document_root(file, key, diagnostics);
  return map != nullptr ? workload_of_harness(map, harness, key, diagnostics)
                        : ConfigNode::make_map({}, scalar->where());
}

/// Changes `workload`, or a load of its mix. Messages name keys as if it were `workload`.
using ChangeLoad = std::function<Ptr(const Ptr&, Diagnostics&)>;

/// The scenario with its workload changed, and each load of its mix.
Ptr change_loads(const Ptr& root, const ChangeLoad& change, Diagnostics& diagnostics) {
  return change_member(root, "workload", [&](const Ptr& workload) {
    return change_member(change(workload, diagnostics), "mix", [&](const Ptr& mix) {
      if (!mix->is_sequence()) return mix;
      std::size_t part = 0;
      return with_children(mix, [&](const Ptr& load) {
        Diagnostics found;
        const Ptr changed = change(load, found);
        for (Diagnostic d : found.items()) {
          if (d.path.starts_with("workload.")) d.path.replace(0, 8, sim::part_path(part));
          diagnostics.add(std::move(d));
        }
        for (const KeyUse& use : found.keys()) diagnostics.key(use);
        ++part;
        return changed;
      });
    });
  });
}

/// What load tools have as text, or in a file, in place.
Ptr with_load_files(const Ptr& load, Diagnostics& diagnostics) {
  const Ptr part = change_member(load, "guidellm", [&](const Ptr& value) {
    return value->is_scalar() ? map_in_file(value, "workload.guidellm", "guidellm", diagnostics)
                              : value;
  });
  return change_member(part, "vllm_bench", [&](const Ptr& value) {
    if (!value->is_scalar()) return value;
    const Ptr command = vllm_bench_command(*value, "workload.vllm_bench", diagnostics);
    return command != nullptr
               ? command
               : map_in_file(value, "workload.vllm_bench", "vllm-benchmark", diagnostics);
  });
}

/// `holder` with the goals of its load tool's flags, unless it states its own.
Ptr with_goodput_flag(const Ptr& holder, const ConfigNode* flags) {
  const Ptr goals = flags != nullptr ? vllm_bench_goodput(*flags) : nullptr;
  if (goals == nullptr || holder->find("goodput") != nullptr) return holder;
  return merge_configs(holder,
                       ConfigNode::make_map({{"goodput", goals->where(), goals}}, holder->where()));
}

/// The same for the scenario and each load of its mix.
Ptr with_goodput_flags(const Ptr& root) {
  const Ptr whole = change_member(root, "workload", [](const Ptr& workload) {
    return change_member(workload, "mix", [](const Ptr& mix) {
      return with_children(mix, [](const Ptr& load) {
        return load->is_map() ? with_goodput_flag(load, load->child("vllm_bench")) : load;
      });
    });
  });
  return with_goodput_flag(whole, node_at(*whole, {"workload", "vllm_bench"}));
}

/// Expands short forms of a load: flags as their tool writes them, and lengths as bare integers
/// (inference-perf allows them).
Ptr without_shorthands(const Ptr& load, Diagnostics& diagnostics) {
  Ptr part = change_member(load, "vllm_bench",
                           [&](const Ptr& value) { return vllm_bench_flags(value, diagnostics); });
  part =
      change_member(change_member(part, "options", complete_lengths), "guidellm",
                    [&](const Ptr& scenario) { return guidellm_settings(scenario, diagnostics); });
  return change_member(part, "groups", [&](const Ptr& groups) {
    return complete_group_lengths(groups, diagnostics);
  });
}

constexpr std::int64_t kMostRouters = 64;

/// Endpoints are called after their pool, so every pool has a name of its own.
void check_pool_names(const LoadedVariant& variant, Diagnostics& diagnostics) {
  const std::vector<sim::PoolConfig>& pools = variant.scenario.cluster.pools;
  std::set<std::string> names;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    if (names.insert(pools[i].name).second) continue;
    const std::string path = child_path(element_path("cluster.pools", i), "name");
    const std::string what = variant.provenance.find(path) != nullptr
                                 ? "is the name of another pool too (got "
                                 : "is missing, and another pool has the default name too (";
    diagnostics.error(variant.provenance.nearest(path), path, what + printable(pools[i].name) + ")",
                      "give each pool a name");
  }
}

/// Labels are key=value, each key once in a pool.
void check_labels(const LoadedVariant& variant, Diagnostics& diagnostics) {
  const std::vector<sim::PoolConfig>& pools = variant.scenario.cluster.pools;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    std::map<std::string, std::string> seen;
    for (std::size_t l = 0; l < pools[i].labels.size(); ++l) {
      const std::string& label = pools[i].labels[l];
      const std::string path =
          element_path(child_path(element_path("cluster.pools", i), "labels"), l);
      if (is_broken(diagnostics, path)) continue;
      const std::size_t equals = label.find('=');
      if (equals == std::string::npos || equals == 0) {
        diagnostics.error(variant.provenance.nearest(path), path,
                          "must be key=value (got " + printable(label) + ")",
                          "for example labels: [llm-d.ai/model=Qwen3-32B]");
        continue;
      }
      const std::string key = label.substr(0, equals);
      const std::string value = label.substr(equals + 1);
      const auto [first, is_new] = seen.try_emplace(key, value);
      if (!is_new && first->second != value)
        diagnostics.error(variant.provenance.nearest(path), path,
                          "is another value of a label that the pool has already (got " +
                              printable(label) + " beside " + printable(key + "=" + first->second) +
                              ")",
                          "keep one of the two");
    }
  }
}

/// Warns of plugins of the router document at the key `path` that look at a label no pool has.
void warn_missing_labels(const LoadedVariant& variant, const std::string& path,
                         Diagnostics& diagnostics) {
  const auto has = [&](const std::string& key) {
    // Role labels are added automatically.
    if (key == "llm-d.ai/role" || key == "mif.moreh.io/role") return true;
    for (const sim::PoolConfig& pool : variant.scenario.cluster.pools)
      for (const std::string& label : pool.labels)
        if (label.starts_with(key + "=")) return true;
    return false;
  };
  for (const policies::PluginSpec& spec : variant.endpoint_picker->plugins) {
    if (spec.type != "by-label" && spec.type != "context-length-aware") continue;
    const ConfigNode* key = spec.parameters->child("label");
    if (key == nullptr || !key->is_text() || has(key->text())) continue;
    diagnostics.warning(spec.where, path + "." + spec.path,
                        "looks at the label " + printable(key->text()) + ", which no pool has",
                        "write labels: [" + printable(key->text()) + "=VALUE] into the pools");
  }
}

/// The copies that the Helm values around the document ask for, where the scenario says nothing;
/// those that stand by only where the leader ends.
void take_replicas(LoadedVariant& variant, Diagnostics& diagnostics) {
  const std::string path = "routing.router_replicas";
  const policies::RouterReplicas& asked = variant.endpoint_picker->replicas;
  if (asked.count <= 1 || variant.provenance.find(path) != nullptr) return;
  const auto restarts = [](const sim::FleetEventConfig& e) {
    return e.kind == sim::FleetEventKind::kRouterRestart;
  };
  if (!asked.all_serve && std::ranges::any_of(variant.scenario.events, restarts) &&
      variant.provenance.find("routing.leader_election") == nullptr) {
    variant.scenario.routing.leader_election = true;
    variant.provenance.record("routing.leader_election", asked.where);
  } else if (!asked.all_serve && !variant.scenario.routing.leader_election) {
    diagnostics.warning(asked.where, path,
                        "stays 1: of " + std::to_string(asked.count) +
                            " replicas the elected leader routes, the others wait",
                        "set routing.router_replicas, or ha-enable-leader-election: false in the "
                        "values' flags, if all of them serve");
    return;
  }
  variant.scenario.routing.router_replicas = std::min(asked.count, kMostRouters);
  variant.provenance.record(path, asked.where);
  diagnostics.warning(asked.where, path,
                      "is " + std::to_string(variant.scenario.routing.router_replicas) +
                          ", taken from the replicas of these values",
                      "set routing.router_replicas to say otherwise");
}

/// A router's document without a balancer selects the router.
void take_balancer(LoadedVariant& variant) {
  if (variant.provenance.find("routing.balancer") != nullptr) return;
  variant.scenario.routing.balancer = sim::BalancerKind::kEndpointPicker;
  variant.provenance.record("routing.balancer",
                            variant.provenance.nearest("routing.endpoint_picker"));
}

/// Settings of another family than the balancer's have no effect.
void warn_other_sections(const LoadedVariant& variant, Diagnostics& diagnostics) {
  const std::string_view own = policies::balancer_row(variant.scenario.routing.balancer).section;
  for (const policies::BalancerRow& row : policies::kBalancers) {
    const std::string path = "routing." + std::string(row.section);
    if (row.section.empty() || row.section == own || &row == policies::kBalancers.data()) continue;
    const bool seen = std::any_of(policies::kBalancers.data(), &row, [&row](const auto& other) {
      return other.section == row.section;
    });
    if (seen || variant.provenance.find(path) == nullptr) continue;
    diagnostics.warning(variant.provenance.nearest(path), path,
                        "has no effect on the balancer " +
                            std::string(enum_name(variant.scenario.routing.balancer)),
                        "set routing.balancer to one of this section's");
  }
}

void read_router(LoadedVariant& variant, Diagnostics& diagnostics) {
  sim::RoutingConfig& routing = variant.scenario.routing;
  warn_other_sections(variant, diagnostics);
  if (routing.library)
    routing.library->path =
        resolve_path(routing.library->path, variant.provenance.nearest("routing.library.path"));
  if (!routing.endpoint_picker.empty()) {
    take_balancer(variant);
    const Ptr root = document_root(routing.endpoint_picker, "routing.endpoint_picker", diagnostics);
    policies::LoadOptions options;
    if (!routing.era.empty()) options.era = policies::parse_era(routing.era);
    if (!routing.era.empty() && !options.era)
      diagnostics.error(variant.provenance.nearest("routing.era"), "routing.era",
                        "is not a router release (got " + printable(routing.era) + ")",
                        "known: " + policies::known_eras());
    if (const std::string note = policies::era_note(routing.era); !note.empty())
      options.era_origin = "set: " + note;
    if (root != nullptr)
      variant.endpoint_picker =
          load_endpoint_picker(root, options, diagnostics, "routing.endpoint_picker");
    if (variant.endpoint_picker) {
      check_plugins(*variant.endpoint_picker, diagnostics, "routing.endpoint_picker");
      // With another balancer the document has no effect.
      if (routing.balancer == sim::BalancerKind::kEndpointPicker) {
        std::vector<std::string> sent;
        for (auto& [name, value] : request_headers(variant)) sent.push_back(std::move(name));
        const std::vector<sim::PoolConfig>& pools = variant.scenario.cluster.pools;
        const bool tiers = std::any_of(pools.begin(), pools.end(), [](const sim::PoolConfig& p) {
          return p.engine.kv_tiers.has_value();
        });
        sim::warn_unsupplied_inputs(
            *variant.endpoint_picker, "routing.endpoint_picker", diagnostics,
            {.headers = sent,
             .predictions = sim::deciding_predictor(routing, *variant.endpoint_picker).has_value(),
             .tiers = tiers,
             .streams = traits_of(variant.scenario.workload).streams});
        warn_missing_labels(variant, "routing.endpoint_picker", diagnostics);
        take_replicas(variant, diagnostics);
      }
    }
  }
}

void read_load(LoadedVariant& variant, const std::string& place, workloads::Load& load,
               Diagnostics& diagnostics) {
  auto* workload = load.get<workloads::inference_perf::Workload>();
  if (workload == nullptr) return;
  const std::string key = child_path(place, "inference_perf");
  const Ptr root = document_root(workload->document, key, diagnostics);
  const ReadOptions options{.path = key,
                            .provenance = &variant.provenance,
                            .ignored_keys = {},
                            .format = kInferencePerfFormat};
  if (root != nullptr) workload->config = load_inference_perf(root, options, diagnostics);
}

/// The rows of the demand's file become its profile.
void read_demand(const Provenance& provenance, const std::string& place,
                 std::optional<workloads::Demand>& demand, Diagnostics& diagnostics) {
  if (!demand || demand->csv.empty()) return;
  const std::string key = place + ".demand.csv";
  const SourceLocation where = provenance.nearest(key);
  if (!demand->profile.empty())
    diagnostics.error(where, key, "takes the place of profile, and both are given",
                      "leave out one of the two");
  else
    demand->profile = read_demand_csv(resolve_path(demand->csv, where), where, key, diagnostics);
}

LoadedVariant read_variant(const NamedNode& named, const ScenarioRequest& request,
                           const std::vector<Assignment>& assignments, Diagnostics& diagnostics) {
  LoadedVariant variant;
  variant.node = named.node;
  for (const Assignment& assignment : assignments)
    if (!targets_variants(assignment))
      variant.node = apply_assignment(without_wrapper(variant.node, assignment, diagnostics),
                                      assignment, diagnostics, [&](const ConfigNode& scalar) {
                                        return load_reference(scalar, assignment, diagnostics);
                                      });
  const ReadOptions options{
      .path = {}, .provenance = &variant.provenance, .ignored_keys = {std::string(kVariantsKey)}};
  Ptr whole = with_router_file(variant.node, diagnostics);
  whole = change_loads(with_router_config(whole, diagnostics), with_load_files, diagnostics);
  whole = without_vllm_serve(with_goodput_flags(whole), diagnostics);
  whole = change_loads(change_member(whole, "expect", complete_expectations), without_shorthands,
                       diagnostics);
  Diagnostics found;
  read_struct(*whole, variant.scenario, found, options);
  add_findings(found, diagnostics);
  variant.scenario.variant = named.name;
  if (request.seed) variant.scenario.seed = *request.seed;
  check_pool_names(variant, diagnostics);
  check_labels(variant, diagnostics);
  warn_of_left_out_tiers(variant.scenario, variant.provenance, diagnostics);
  Diagnostics load;  // Read first, since it sends what the router reads; said last.
  sim::for_each_load(variant.scenario.workload,
                     [&](const std::string& place, workloads::Load& tool, auto& demand) {
                       read_demand(variant.provenance, place, demand, diagnostics);
                       read_load(variant, place, tool, load);
                     });
  read_router(variant, diagnostics);
  // Printed with the other settings.
  if (sim::RoutingConfig& routing = variant.scenario.routing; !routing.scrape_interval)
    routing.scrape_interval = sim::default_scrape_interval(routing);
  sim::set_default_costs(variant.scenario.routing, variant.endpoint_picker);
  append(diagnostics, load);
  return variant;
}

}  // namespace

LoadedScenario load_scenario(const ScenarioRequest& request, Diagnostics& diagnostics) {
  LoadedScenario loaded{.path = request.path, .variants = {}};
  Diagnostics found;
  std::vector<Assignment> assignments;
  for (const std::string& text : request.sets)
    if (std::optional<Assignment> assignment = parse_assignment(text, found))
      assignments.push_back(std::move(*assignment));
  assignments.insert(assignments.end(), request.assignments.begin(), request.assignments.end());
  Ptr root = request.text ? parse_config(*request.text, {.file = request.path}, found)
                          : read_config_file(request.path, found);
  if (found.has_errors()) {
    Diagnostics unread;  // Only a manifest may have several documents.
    const Ptr manifest = request.text
                             ? parse_manifest(*request.text, {.file = request.path}, unread)
                             : read_manifest_file(request.path, {}, {}, unread);
    if (manifest != nullptr && !unread.has_errors() && is_kubernetes_object(*manifest)) {
      found = {};
      root = manifest;
    }
  }
  if (root != nullptr && !root->is_map()) {
    found.error(root->where(), "", "must be a map (" + got(*root) + ")",
                root->is_scalar() && root->text().find(',') != std::string::npos
                    ? "in a scenario, the key of a table of requests is workload.trace.file"
                    : "a scenario has the keys workload, cluster and routing");
    root = nullptr;
  }
  if (root != nullptr && !is_kind(*root, FileKind::kScenario, found)) root = nullptr;
  if (root != nullptr) {
    for (const Assignment& assignment : assignments)
      if (targets_variants(assignment)) root = apply_assignment(root, assignment, found);
    for (const NamedNode& named :
         select(VariantSplitter(root, found).split(), request.variants, found))
      loaded.variants.push_back(read_variant(named, request, assignments, found));
  }
  append(diagnostics, tidy(found));
  return loaded;
}

Diagnostics tidy(const Diagnostics& diagnostics) {
  std::vector<std::string> files;  // In order of first mention.
  std::set<std::string> seen;
  std::vector<std::tuple<std::size_t, int, int, const Diagnostic*>> order;
  for (const Diagnostic& d : diagnostics.items()) {
    if (!seen.insert(to_string(d)).second) continue;
    const auto file = std::find(files.begin(), files.end(), d.where.file);
    const auto index = static_cast<std::size_t>(file - files.begin());
    if (file == files.end()) files.push_back(d.where.file);
    order.emplace_back(index, d.where.line, d.where.column, &d);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a), std::get<2>(a)) <
           std::tie(std::get<0>(b), std::get<1>(b), std::get<2>(b));
  });
  Diagnostics out;
  for (const auto& entry : order) {
    Diagnostic d = *std::get<3>(entry);
    for (std::string* text : {&d.path, &d.message, &d.hint})
      *text = shortened(*text, kLongestMessage);
    out.add(std::move(d));
  }
  for (KeyUse& use : ledger(diagnostics)) out.key(std::move(use));
  return out;
}

}  // namespace routesim::tools
