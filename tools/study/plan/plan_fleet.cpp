#include "tools/study/plan/plan_fleet.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "sim/plan/mix.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/servers/catalogue_file.h"
#include "tools/ingest/servers/vllm_serve_files.h"
#include "tools/ingest/servers/vllm_serve_flags.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/study/plan/plan_record.h"

namespace routesim::tools {

namespace {

namespace fs = std::filesystem;

Ptr map_of(std::initializer_list<std::pair<std::string, Ptr>> members) {
  Members out;
  for (const auto& [key, value] : members) add_member(out, key, value);
  return ConfigNode::make_map(std::move(out), {});
}
Ptr word(std::string text) { return plain(std::move(text), {}); }

Ptr pool_tree(sim::PoolConfig pool) {
  return to_node(describe_values([&pool](Describer& d) { describe(d, pool); }));
}

/// The values of `wanted` that `said` does not have; null for those that only `said` has.
Ptr lacking(const ConfigNode& wanted, const ConfigNode& said) {
  Members members;
  for (const Member& m : wanted.members()) {
    const ConfigNode* const other = said.child(m.key);
    if (other != nullptr && to_yaml(*m.value) == to_yaml(*other)) continue;
    const bool inside = other != nullptr && m.value->is_map() && other->is_map();
    members.push_back({m.key, {}, inside ? lacking(*m.value, *other) : m.value});
  }
  for (const Member& m : said.members())
    if (wanted.child(m.key) == nullptr) members.push_back({m.key, {}, ConfigNode::make_null({})});
  return ConfigNode::make_map(std::move(members), {});
}

/// The value of `engine.block_size`; null where there is none.
const ConfigNode* at_key(const ConfigNode* node, std::string_view key) {
  for (std::size_t dot = 0; node != nullptr && dot != key.npos; key.remove_prefix(dot + 1)) {
    dot = key.find('.');
    node = node->child(key.substr(0, dot));
    if (dot == key.npos) break;
  }
  return node;
}

/// Writes the Deployment of one pool.
class ServersOfPool {
 public:
  ServersOfPool(const sim::PoolConfig& pool, const models::Catalogue& catalogue)
      : pool_(pool),
        catalogue_(catalogue),
        changed_(lacking(*pool_tree(pool), *pool_tree(sim::PoolConfig{}))) {}

  Ptr deployment() const {
    const std::int64_t gpus = pool_.gpus_per_server();
    const auto [label, node] = node_label();
    const bool is_amd = label.starts_with("amd");
    const Ptr container =
        map_of({{"name", word(pool_.name)},
                {"image", word(is_sglang() ? std::string("lmsysorg/sglang:v0.5.9")
                                           : image_of(pool_.engine.preset, is_amd))},
                {"command", command()},
                {"args", tree::list(args())},
                {"env", environment()},
                {"lifecycle", pre_stop()},
                {"resources", map_of({{"limits", map_of({{is_amd ? "amd.com/gpu" : "nvidia.com/gpu",
                                                          tree::number(gpus)}})}})}});
    const std::int64_t grace = whole_seconds(pool_.termination.grace);
    const bool usual = grace == whole_seconds(sim::TerminationConfig{}.grace);
    const Ptr pod =
        map_of({{"nodeSelector", label.empty() ? nullptr : map_of({{label, node}})},
                {"terminationGracePeriodSeconds", usual ? nullptr : tree::number(grace)},
                {"containers", tree::list({container})}});
    Members labels;
    for (const std::string& text : pool_.labels)
      add_member(labels, text.substr(0, text.find('=')), word(text.substr(text.find('=') + 1)));
    if (labels.empty()) add_member(labels, "app", word(pool_.name));
    const Ptr selected = ConfigNode::make_map(labels, {});
    const bool is_one = pool_.role == sim::PoolRole::kBoth;
    const Ptr role =
        is_one ? nullptr : map_of({{"llm-d.ai/role", word(std::string(enum_name(pool_.role)))}});
    return map_of(
        {{"apiVersion", word("apps/v1")},
         {"kind", word("Deployment")},
         {"metadata", map_of({{"name", word(pool_.name)}, {"labels", role}})},
         {"spec", map_of({{"replicas", tree::number(pool_.replicas)},
                          {"selector", map_of({{"matchLabels", selected}})},
                          {"template", map_of({{"metadata", map_of({{"labels", selected}})},
                                               {"spec", pod}})}})}});
  }

  /// What the pool has besides what the start, and `own`, say of it.
  Ptr rest(const ServerStart& start, const Ptr& own) const {
    Diagnostics unsaid;
    sim::PoolConfig read;
    read_struct(*fill_pool(own, start, {}, "", unsaid), read, unsaid);
    const auto same = [](const auto* a, const auto* b) { return a != nullptr && a == b; };
    if (same(catalogue_.find_model(read.model), catalogue_.find_model(pool_.model)))
      read.model = pool_.model;
    if (same(catalogue_.find_accelerator(read.accelerator),
             catalogue_.find_accelerator(pool_.accelerator)))
      read.accelerator = pool_.accelerator;
    return lacking(*pool_tree(pool_), *pool_tree(read));
  }

 private:
  bool is_sglang() const { return pool_.engine.kind == sim::EngineKind::kSglang; }

  Ptr command() const {
    if (!is_sglang()) return tree::list({word("vllm"), word("serve"), word(model())});
    return tree::list({word("python3"), word("-m"), word("sglang.launch_server"),
                       word("--model-path"), word(model())});
  }

  /// The model's name on Hugging Face where the catalogue knows it.
  std::string model() const {
    constexpr std::string_view kHub = "huggingface.co/";
    const models::ModelSpec* const spec = catalogue_.find_model(pool_.model);
    if (spec == nullptr || !spec->source.starts_with(kHub)) return pool_.model;
    const std::string name = spec->source.substr(kHub.size(), spec->source.find(' ') - kHub.size());
    return catalogue_.find_model(name) == spec ? name : spec->name;
  }

  /// The label that the GPU operators give to nodes with this accelerator; empty if not known.
  std::pair<std::string, Ptr> node_label() const {
    const models::AcceleratorSpec* const spec = catalogue_.find_accelerator(pool_.accelerator);
    for (std::string name : spec == nullptr ? std::vector<std::string>{} : spec->aliases) {
      const bool is_amd = name.starts_with("AMD ");
      if (!is_amd && !name.starts_with("NVIDIA ")) continue;
      std::ranges::replace(name, ' ', is_amd ? '_' : '-');
      return {is_amd ? "amd.com/gpu.product-name" : "nvidia.com/gpu.product", word(name)};
    }
    return {};
  }

  std::vector<Ptr> args() const {
    std::vector<Ptr> out;
    const auto add = [&](std::string flag) { out.push_back(word(std::move(flag))); };
    const bool is_pair = pool_.role != sim::PoolRole::kBoth;
    std::set<std::string_view> said;
    for (const FlagRule& rule : all_flags(pool_.engine.kind)) {
      const ConfigNode* const value = at_key(changed_.get(), rule.key);
      if (rule.key.empty() || value == nullptr || rule.key == "model") continue;
      // Some flags have several names: those of SGLang, and one of vLLM.
      if (is_sglang() ? !said.insert(rule.key).second : rule.name == "device-memory-utilization")
        continue;
      if (rule.use == FlagUse::kExpertRanks)
        add("--" + std::string(rule.name) + "=" + std::to_string(pool_.tensor_parallel));
      std::string text =
          flag_text(rule, rule.key == "termination.shutdown_timeout"
                              ? std::to_string(whole_seconds(pool_.termination.shutdown_timeout))
                              : value->text());
      if (const std::size_t gap = text.find(' '); gap != text.npos) text[gap] = '=';
      if (!text.empty()) add(std::move(text));
    }
    if (pool_.engine.max_loras) add("--enable-lora");
    if (pool_.engine.max_loras) add("--max-loras=" + std::to_string(*pool_.engine.max_loras));
    if (pool_.data_parallel > 1 &&
        pool_.data_parallel_balancing == sim::DataParallelBalancing::kExternal)
      add("--data-parallel-multi-port-external-lb");
    if (is_pair)
      add(R"(--kv-transfer-config={"kv_connector":"NixlConnector","kv_role":"kv_both"})");
    const auto& tiers = pool_.engine.kv_tiers;
    const bool is_lmcache = tiers && tiers->connector == sim::KvConnector::kLmcache;
    if (!is_pair && tiers && tiers->cpu_gib &&
        (is_lmcache || tiers->connector == sim::KvConnector::kOffloading)) {
      add("--kv-offloading-size=" + number_text(*tiers->cpu_gib));
      add(std::string("--kv-offloading-backend=") + (is_lmcache ? "lmcache" : "native"));
    }
    return out;
  }

  static std::int64_t whole_seconds(Duration d) { return (d.ns() + 999'999'999) / 1'000'000'000; }

  Ptr pre_stop() const {
    const std::int64_t sleeps = whole_seconds(pool_.termination.pre_stop);
    if (sleeps == 0) return nullptr;
    return map_of({{"preStop", map_of({{"sleep", map_of({{"seconds", tree::number(sleeps)}})}})}});
  }

  Ptr environment() const {
    const std::int64_t chunk = pool_.engine.moe_dp_chunk_size;
    if (chunk == 0) return nullptr;
    return tree::list({map_of(
        {{"name", word("VLLM_MOE_DP_CHUNK_SIZE")}, {"value", tree::text(std::to_string(chunk))}})});
  }

  const sim::PoolConfig& pool_;
  const models::Catalogue& catalogue_;
  Ptr changed_;  ///< What the pool has other than by default.
};

/// Whether Kubernetes takes it for the name of an object.
bool is_dns_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= 63 && std::ranges::all_of(name, fits) &&
         !name.starts_with('-') && !name.ends_with('-');
}

/// Turns the variant that was judged into files.
class FleetWriter {
 public:
  FleetWriter(const LoadedVariant& variant, const std::string& folder)
      : variant_(variant), folder_(fs::absolute(folder).lexically_normal()) {
    for (const ReferencedFile& file : referenced_files(variant)) read_.insert(file.path);
    sim::for_each_load(variant.scenario.workload, [this](const std::string& place,
                                                         const workloads::Load& load, const auto&) {
      for (const workloads::LoadFile& file : files_of(load))
        read_.insert(
            resolve_path(file.path, variant_.provenance.nearest(child_path(place, file.key))));
    });
    if (const auto& library = variant.scenario.routing.library) read_.insert(library->path);
  }

  std::vector<FolderFile> write(const PlanSpace& space, const FoundPlan& plan,
                                Diagnostics& diagnostics) {
    const PlanConfig& config = space.config;
    const std::string head =
        fmt::format("# The fleet that `routesim plan` chose for {}: {} for ${:.2f} an hour.\n",
                    printable(config.name), printable(space.families[plan.family].hardware),
                    plan.found.price_per_hour);
    const Ptr pools = write_servers(head, diagnostics);
    Ptr node = variant_.node;
    for (const char* key : {"name", "question", "seed", "measured", "expect", "goodput"})
      node = without_key(node, key);
    std::vector<Ptr> bounds;
    if (config.goodput)
      for (const std::string& bound : config.goodput->bounds) bounds.push_back(word(bound));
    const sim::Scenario& judged = plan.evaluation.plan->scenario;
    Ptr workload = nullptr;
    if (auto hold = judged.workload.hold)
      workload = map_of(
          {{"hold", to_node(describe_values([&hold](Describer& d) { describe(d, *hold); }))},
           {"rate_scale", variant_.scenario.workload.rate_scale == 1 ? nullptr : plain("1", {})}});
    node = merge_configs(
        map_of({{"name", word(config.name)},
                {"question", config.question.empty() ? nullptr : word(config.question)},
                {"seed", word(std::to_string(judged.seed))},
                {"goodput", bounds.empty() ? nullptr : tree::list(bounds)}}),
        node);
    node = merge_configs(node, map_of({{"workload", workload}}));
    node = change_member(node, "cluster", [&](const Ptr& cluster) {
      return change_member(cluster, "pools", [&](const Ptr&) { return pools; });
    });
    node = change_member(node, "routing", [this](const Ptr& routing) {
      return change_member(routing, "endpoint_picker",
                           [this](const Ptr& value) { return write_router(value); });
    });
    files_.push_back(
        {"scenario.yaml", head + "# Its runs are those of `routesim run scenario.yaml " +
                              "--replications " + std::to_string(plan.evaluation.runs.size()) +
                              "`.\n" + to_yaml(*as_seen(node))});
    return std::move(files_);
  }

 private:
  /// The pools of the scenario; adds the file that they read.
  Ptr write_servers(const std::string& head, Diagnostics& diagnostics) {
    sim::Scenario scenario = variant_.scenario;
    const models::Catalogue catalogue = scenario_catalogue(variant_, scenario, diagnostics);
    std::string text, apart;
    std::vector<Ptr> pools;
    for (std::size_t i = 0; i < variant_.scenario.cluster.pools.size(); ++i) {
      const sim::PoolConfig& pool = variant_.scenario.cluster.pools[i];
      const ServersOfPool servers(pool, catalogue);
      const std::string deployment = to_yaml(*servers.deployment());
      text += "---\n" + deployment;
      const Ptr name = map_of({{"name", word(pool.name)}});
      Diagnostics unsaid;
      const std::vector<ServerStart> starts =
          starts_in_tree(parse_config(deployment, {.file = "servers.yaml"}, unsaid), "", unsaid);
      Ptr rest = starts.empty() ? pool_tree(pool) : servers.rest(starts.front(), name);
      if (pool.model.ends_with(".json"))
        rest = merge_configs(rest, map_of({{"model", plain(pool.model, place_of(i, "model"))}}));
      // Keys beside `vllm_serve` may change what it means: then it says nothing.
      const bool is_said =
          !starts.empty() &&
          servers.rest(starts.front(), merge_configs(name, rest))->members().empty();
      if (!is_said) rest = pool_tree(pool);
      const Ptr serve = is_said ? word("servers.yaml") : nullptr;
      pools.push_back(
          merge_configs(map_of({{"name", word(pool.name)}, {"vllm_serve", serve}}), rest));
      if (!is_dns_name(pool.name))
        apart += "# Kubernetes takes no name such as " + printable(pool.name) +
                 ": give the pool one of a-z, 0-9 and -.\n";
      // Pods of a Deployment have a label that it selects; nobody asks for this one.
      const Ptr told = pool.labels.empty() ? without_key(rest, "labels") : rest;
      if (told->members().empty()) continue;
      apart += "# Of pool " + printable(pool.name) + " only scenario.yaml says:\n";
      std::string lines = "\n" + to_yaml(*told);
      lines.pop_back();
      for (std::size_t at = 0; (at = lines.find('\n', at)) != lines.npos; at += 5)
        lines.insert(at + 1, "#   ");
      apart += lines.substr(1) + "\n";
    }
    files_.push_back({"servers.yaml", head + apart + text});
    return tree::list(std::move(pools));
  }

  SourceLocation place_of(std::size_t pool, const char* key) const {
    return variant_.provenance.nearest(element_path("cluster.pools", pool) + "." + key);
  }

  /// The name of the file that the document is in now; a text in place stays there.
  Ptr write_router(const Ptr& value) {
    std::string text = value->is_map() ? to_yaml(*value) : "";
    Diagnostics unread;
    if (value->is_scalar() && value->style() != ConfigNode::Style::kBlock)
      (void)read_text_file(resolve_path(value->text(), value->where()), value->where(), "",
                           ConfigLimits{}.max_bytes, text, unread);
    if (text.empty()) return value;
    files_.push_back({"router.yaml", std::move(text)});
    return word("router.yaml");
  }

  /// The tree with each path as the folder sees it.
  Ptr as_seen(const Ptr& node) const {
    if (!node->is_scalar())
      return with_children(node, [this](const Ptr& child) { return as_seen(child); });
    if (!node->is_text()) return node;
    const std::string path = resolve_path(node->text(), node->where());
    if (!read_.contains(path)) return node;
    return word(fs::absolute(path).lexically_normal().lexically_relative(folder_).string());
  }

  const LoadedVariant& variant_;
  fs::path folder_;
  std::set<std::string> read_;  ///< Files that the variant reads.
  std::vector<FolderFile> files_;
};

}  // namespace

std::vector<FolderFile> fleet_files(const PlanSpace& space, const FoundPlan& plan,
                                    const std::string& folder, Diagnostics& diagnostics) {
  const LoadedScenario loaded =
      load_scenario(fleet_request(space, space.families[plan.family], plan.size,
                                  space.planned_rate(), diagnostics),
                    diagnostics);
  if (diagnostics.has_errors()) return {};
  return FleetWriter(loaded.variants.front(), folder).write(space, plan, diagnostics);
}

}  // namespace routesim::tools
