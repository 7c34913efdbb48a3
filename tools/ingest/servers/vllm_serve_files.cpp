#include "tools/ingest/servers/vllm_serve_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "policies/balancers/balancers.h"
#include "tools/ingest/servers/catalogue_file.h"
#include "tools/ingest/servers/kustomize_patch.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/nodes.h"

namespace routesim::tools {

namespace {

bool is_balancer(std::string_view name) {
  return std::ranges::find(policies::kBalancers, name, &policies::BalancerRow::name) !=
         policies::kBalancers.end();
}

/// The number of servers at a key, whatever stands there, so that what is no number is refused;
/// null when there is nothing.
Ptr replicas_at(const ConfigNode& node, std::string_view key) {
  const Member* member = node.find(key);
  return member == nullptr || member->value->is_null() ? nullptr : member->value;
}

std::int64_t count_in(const Ptr& node) {
  std::int64_t n = 0;
  if (node == nullptr || !node->is_scalar()) return 0;
  const std::string& text = node->text();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  constexpr std::int64_t kMost = 1'000'000;
  return error == std::errc() && end == text.data() + text.size() && n > 0 && n <= kMost ? n : 0;
}

/// `hf://org/name` names a published model.
Ptr without_scheme(const Ptr& model) {
  constexpr std::string_view kScheme = "hf://";
  const std::string& text = model->text();
  if (!text.starts_with(kScheme)) return model;
  return tree::text(text.substr(kScheme.size(), text.find('?') - kScheme.size()), model->where());
}

/// `tensorParallelSize` is `tensor-parallel-size`.
std::string with_dashes(const std::string& camel) {
  std::string out;
  for (const char c : camel) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0) out += '-';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

/// `prefill` or `decode` when a name says one of the two.
std::string role_in(const std::string& name) {
  const bool prefill = name.find("prefill") != std::string::npos;
  const bool decode = name.find("decode") != std::string::npos;
  return prefill == decode ? "" : prefill ? "prefill" : "decode";
}

bool has_blanks(const std::string& text) {
  return text.find_first_of(" \t\n") != std::string::npos;
}

bool is_disabled(const ConfigNode& map) {
  return text_at(map, {"create"}) == "false" || text_at(map, {"enabled"}) == "false";
}

/// Whether an image starts vLLM by itself.
bool is_vllm_image(const std::string& image) {
  const std::string_view name = last_part(image);
  return name.starts_with("vllm-openai") || name.starts_with("vllm-cpu");
}

/// Whether a command line without an engine is that of a program beside engines: Ray's worker, a
/// renderer of prompts, a frontend of Dynamo.
bool runs_beside_engines(const std::string& line) {
  constexpr std::array kPrograms = {"ray start", "RAY_START_CMD", "vllm launch", "vllm bench",
                                    "-m dynamo."};
  return std::any_of(kPrograms.begin(), kPrograms.end(),
                     [&](const char* program) { return line.find(program) != std::string::npos; });
}

/// Kinds of objects that start servers, whatever they hold.
constexpr std::string_view kServerKinds =
    "InferenceService RayService RayCluster RayClusterFleet "
    "DynamoGraphDeployment DynamoComponentDeployment DynamoGraphDeploymentRequest "
    "StormService RoleSet VLLMRuntime DisaggregatedSet Workspace";

/// Devices that containers ask for, by the names of their device plug-ins.
bool is_device(const std::string& resource) {
  return resource.find('/') != std::string::npos &&
         has_word("gpu tpu gaudi i915 xe neuron npu", last_part(resource));
}

/// Collects the catalogue's names of accelerators in what chooses the nodes of a pod.
class NodeChoice {
 public:
  /// `map` is a pod, its labels beside it, or the values of a chart.
  explicit NodeChoice(const ConfigNode& map) {
    for (const Member& member : map.members()) {
      if (member.key == "nodeSelector") add_values(*member.value);
      if (member.key == "nodeSelectorTerms") add_expressions(*member.value);
      if (const ConfigNode* nodes = member.value->child("nodeAffinity");
          member.key == "affinity" && nodes)
        add_expressions(*nodes);
      if (member.key == "acceleratorTypes") add_list(items_at(*member.value, {"labelValues"}));
      if (member.key == "acceleratorType")
        if (const Ptr label = scalar_at(*member.value, {"labelValue"}))
          add(label->text(), label->where());
      if (member.key == "resourceProfile") add_profile(*member.value);
      if (member.key == "metadata")
        if (const ConfigNode* labels = member.value->child("labels")) add_labels(*labels);
    }
  }

  std::vector<Ptr> found() && { return std::move(found_); }

 private:
  void add(const std::string& name, const SourceLocation& where) {
    const std::string accelerator = accelerator_of_node(name);
    const auto same = [&](const Ptr& other) { return other->text() == accelerator; };
    if (!accelerator.empty() && std::none_of(found_.begin(), found_.end(), same))
      found_.push_back(plain(accelerator, where));
  }

  void add_list(const std::vector<Ptr>& list) {
    for (const Ptr& item : list) add(item->text(), item->where());
  }

  void add_values(const ConfigNode& map) {
    for (const Member& member : map.members()) add(member.value->text(), member.value->where());
  }

  /// A model or a team may have any name; only labels about accelerators count.
  void add_labels(const ConfigNode& labels) {
    for (const Member& label : labels.members())
      if (const std::string key = lower_case(label.key);
          key.find("accelerator") != std::string::npos || key.find("gpu") != std::string::npos)
        add(label.value->text(), label.value->where());
  }

  /// `nvidia-gpu-h100:2`: the profile and how many of it.
  void add_profile(const ConfigNode& profile) {
    add(profile.text().substr(0, profile.text().find(':')), profile.where());
  }

  void add_expressions(const ConfigNode& node) {
    for (const Ptr& item : node.items()) add_expressions(*item);
    const bool excludes = text_at(node, {"operator"}) != "In";
    for (const Member& member : node.members())
      if (member.key != "values")
        add_expressions(*member.value);
      else if (!excludes)
        add_list(member.value->items());
  }

  std::vector<Ptr> found_;
};

/// A pool is chosen among all, so more would take minutes.
constexpr std::size_t kMostStarts = 1000;

/// Walks a tree and remembers what holds for everything below.
class Walk {
 public:
  Walk(const std::string& key_path, Diagnostics& diagnostics)
      : key_path_(key_path), diagnostics_(diagnostics) {}

  std::vector<ServerStart> run(const Ptr& root) {
    Context context;
    root_ = root;
    note_minimums(*root);
    for (const Ptr& object : root->items()) note_minimums(*object);
    for (const Ptr& object : items_at(*root, {"items"})) note_minimums(*object);
    objects_.add(root);
    if (const Member* artifacts = root->find("modelArtifacts"))
      note_artifacts(*artifacts->value, context);
    if (root->find("servingEngineSpec") != nullptr) context.router = stack_router(*root);
    visit(root, context);
    for (ServerStart& start : starts_) start.files = files_;
    if (!starts_.empty()) {
      objects_.warn_of_unused(key_path_, diagnostics_);
      objects_.note_all_keys(key_path_, diagnostics_);
    }
    const auto is_read = [](const ServerStart& start) { return start.unread.empty(); };
    if (std::none_of(starts_.begin(), starts_.end(), is_read)) return std::move(starts_);
    for (const ServerStart& start : starts_)
      if (!is_read(start))
        diagnostics_.warning(start.where, key_path_, printable(start.name) + " " + start.unread,
                             pool_by_hand(start));
    std::erase_if(starts_, [&](const ServerStart& start) { return !is_read(start); });
    return std::move(starts_);
  }

 private:
  struct Context {
    std::string name;
    std::string role;
    Ptr replicas;
    Ptr minimum;              ///< That of an autoscaler.
    std::string scaler;       ///< The name that an autoscaler has for it, if not its own.
    std::int64_t copies = 1;  ///< All that stands below runs so often.
    bool is_service = false;  ///< KServe writes the command of a container without one.
    Members flags;
    ShellVariables variables;
    ShellWord image;
    std::vector<Ptr> labels;  ///< Labels of the pod, as `key=value`.
    std::vector<Ptr> accelerators;
    Ptr device;
    RouterChoice router;
    ServerLife life;
  };

  /// The production stack's own router, which its chart starts unless told otherwise. Without a
  /// router clients reach the Service of the engines.
  static RouterChoice stack_router(const ConfigNode& values) {
    if (text_at(values, {"routerSpec", "enableRouter"}) == "false") return {};
    const Ptr logic = scalar_at(values, {"routerSpec", "routingLogic"});
    const SourceLocation where = logic != nullptr ? logic->where() : values.where();
    RouterChoice router{.product = "the vLLM production stack", .where = where};
    const std::string policy = logic != nullptr ? logic->text() : "roundrobin";
    const std::string balancer = with_hyphens("production-stack-" + policy);
    if (policy == "roundrobin") {
      add_member(router.routing, "balancer", plain("round-robin", where));
    } else if (!is_balancer(balancer)) {
      router.refused = "routerSpec.routingLogic: " + policy;
    } else {
      add_member(router.routing, "balancer", plain(balancer, where));
      if (const Ptr key = scalar_at(values, {"routerSpec", "sessionKey"}))
        add_member(router.routing, "production_stack",
                   tree::map({{"session_key", key}}, key->where()));
    }
    return router;
  }

  /// KubeAI's proxy. Absent keys have the defaults of its Model resource, as those of `routing` do.
  static RouterChoice kubeai_router(const ConfigNode& model) {
    const Ptr strategy = scalar_at(model, {"loadBalancing", "strategy"});
    const SourceLocation where = strategy != nullptr ? strategy->where() : model.where();
    RouterChoice router{.product = "KubeAI", .where = where};
    const std::string name = strategy != nullptr ? strategy->text() : "LeastLoad";
    if (name == "LeastLoad") {
      add_member(router.routing, "balancer", plain("least-load", where));
      return router;
    }
    if (name != "PrefixHash") {
      router.refused = "loadBalancing.strategy: " + name;
      return router;
    }
    add_member(router.routing, "balancer", plain("prefix-hash", where));
    for (const auto& [theirs, ours] : {std::pair{"meanLoadFactor", "mean_load_factor"},
                                       std::pair{"replication", "hash_replication"},
                                       std::pair{"prefixCharLength", "prefix_char_length"}})
      add_member(router.routing, ours, scalar_at(model, {"loadBalancing", "prefixHash", theirs}));
    return router;
  }

  void note_artifacts(const ConfigNode& artifacts, Context& context) {
    Ptr model = scalar_at(artifacts, {"uri"});
    const Ptr name = scalar_at(artifacts, {"name"});
    const bool is_published = model != nullptr && model->text().starts_with("hf://");
    if (!is_published && name != nullptr) model = name;
    if (model != nullptr) add_member(context.flags, "model", without_scheme(model));
  }

  /// A chart's `parallelism`, and the variables it gives to containers.
  static void note_parallelism(const ConfigNode& map, Context& context) {
    const Ptr tensor = scalar_at(map, {"tensor"});
    const Ptr data = scalar_at(map, {"data"});
    const Ptr local = scalar_at(map, {"dataLocal"});
    const std::int64_t workers = std::max<std::int64_t>(1, count_in(scalar_at(map, {"workers"})));
    std::int64_t ranks = count_in(data);
    if (ranks == 0) ranks = std::max<std::int64_t>(1, count_in(local) * workers);
    std::int64_t here = count_in(local);
    if (here == 0) here = std::max<std::int64_t>(1, ranks / workers);
    const SourceLocation& at = data != nullptr    ? data->where()
                               : local != nullptr ? local->where()
                                                  : map.where();
    add_member(context.flags, "tensor-parallel-size", tensor);
    add_member(context.flags, "pipeline-parallel-size", scalar_at(map, {"pipeline"}));
    add_member(context.flags, "enable-expert-parallel", scalar_at(map, {"expert"}));
    if (ranks > 1)
      add_member(context.flags, "data-parallel-size", plain(std::to_string(ranks), at));
    if (here > 1)
      add_member(context.flags, "data-parallel-size-local", plain(std::to_string(here), at));
    const auto define = [&](const std::string& name, std::int64_t value) {
      context.variables[name] = {.text = std::to_string(value), .where = at};
    };
    if (tensor != nullptr)
      for (const char* name : {"TP_SIZE", "VLLM_TENSOR_PARALLELISM"})
        context.variables[name] = {tensor->text(), tensor->where()};
    define("DP_SIZE", ranks);
    define("DP_SIZE_LOCAL", here);
    define("LWS_GROUP_SIZE", std::max<std::int64_t>(1, ranks / here));
    define("LWS_WORKER_INDEX", 0);
  }

  void visit(const Ptr& node, const Context& context) {
    if (node->is_sequence()) {
      for (const Ptr& item : node->items()) visit(item, context);
    } else if (node->is_map()) {
      visit_map(node, context);
    }
  }

  void visit_map(const Ptr& node, Context context) {
    const ConfigNode& map = *node;
    const std::string kind = text_at(map, {"kind"});
    if (kind == "ConfigMap") return note_files(map);
    if (kind == "LLMInferenceServiceConfig") return;  // Services are laid over it.
    if (const Ptr stacks = value_at(map, {"scenario"});
        stacks != nullptr && stacks->is_sequence()) {
      for (std::size_t i = 1; i < stacks->items().size(); ++i)
        diagnostics_.error(stacks->items()[i]->where(), key_path_,
                           "is one stack more, with servers and a router of its own",
                           "give a file that holds one of them");
      if (!stacks->items().empty()) visit_stack(*stacks->items().front(), context);
      return;
    }
    const std::string set = context.name;
    note_names(map, context);
    note_workload(node, kind, context);
    note_accelerators(map, context);
    if (text_at(map, {"scaling", "mode"}) == "External") {  // The role's own replicas are ignored.
      context.scaler = set + "-" + context.name;
      context.replicas = plain("1", map.where());
      context.life.kind = "DisaggregatedSetRoleScaler";
      context.life.name = context.scaler;
    }
    note_counts(map, kind, context);
    if (map.find("envs") != nullptr || map.find("env") != nullptr) read_environment(map, context);
    if (map.find("extraPodSpec") != nullptr) note_device(map, context);
    if (const Member* group = map.find("leaderWorkerTemplate"))
      return visit_group(*group->value, context);
    if (kind == "LLMInferenceService") return visit_service(node, context);
    if (map.find("compatible_strategies") != nullptr) {  // vllm-project/recipes
      std::string line = "--model " + text_at(map, {"model", "model_id"});
      for (const Ptr& flag : items_at(map, {"variants", "default", "extra_args"}))
        line += " " + flag->text();
      return keep(unread_start("is a recipe, which leaves the deployment open", line, map.where()),
                  "", context);
    }
    if (kind == "Model" && text_at(map, {"spec", "engine"}) == "VLLM")
      return add_kubeai_model(*map.find("spec")->value, context);
    const bool is_container = map.find("image") != nullptr && map.find("containers") == nullptr &&
                              (map.find("command") != nullptr || map.find("args") != nullptr);
    if (is_container) return visit_container(map, context);
    const std::size_t before = tried_;
    for (const Member& member : map.members()) visit_member(member, context);
    const bool is_server = has_word(kServerKinds, kind) ||
                           (kind == "Model" && !text_at(map, {"spec", "engine"}).empty());
    if (is_server && tried_ == before)
      keep(unread_start("is of kind " + printable(kind) + ", whose servers are not read", {},
                        map.where()),
           "", context);
  }

  /// Replicas, what multiplies them, and the least that an autoscaler leaves.
  static void note_counts(const ConfigNode& map, const std::string& kind, Context& context) {
    const Ptr replicas = replicas_at(map, "replicas");
    if (replicas != nullptr && context.scaler.empty()) context.replicas = replicas;
    // A set has copies of all its roles; the replicas of a role are in one of them.
    const Ptr copies = kind == "DisaggregatedSet" ? scalar_at(map, {"spec", "slices"})
                       : kind == "StormService"   ? scalar_at(map, {"spec", "replicas"})
                                                  : nullptr;
    context.copies *= std::max<std::int64_t>(1, count_in(copies));
    for (const std::string_view scaler : {"autoscaling", "scaling", "keda", "hpa"})
      for (const std::string_view key : {"minReplicas", "minReplicaCount"})
        if (const Ptr least = scalar_at(map, {scaler, key});
            least != nullptr && !is_disabled(*map.find(scaler)->value))
          context.minimum = least;
    if (const ConfigNode* sizes = map.child("parallelism")) note_parallelism(*sizes, context);
  }

  /// What other objects call this one, and what it says of its pods' ends.
  static void note_workload(const Ptr& node, const std::string& kind, Context& context) {
    const std::string name = text_at(*node, {"metadata", "name"});
    if (!kind.empty() && !name.empty())
      context.life = {.kind = kind,
                      .name = name,
                      .name_space = text_at(*node, {"metadata", "namespace"}),
                      .workload = node};
    if (node->find("containers") != nullptr) note_pod_life(*node, context.life);
  }

  /// The least that AIBrix' PodAutoscaler leaves of another object. HorizontalPodAutoscalers and
  /// ScaledObjects are read whole.
  void note_minimums(const ConfigNode& object) {
    if (text_at(object, {"kind"}) != "PodAutoscaler") return;
    const std::string target = text_at(object, {"spec", "scaleTargetRef", "name"});
    for (const std::string_view key : {"minReplicas", "minReplicaCount"})
      if (const Ptr least = scalar_at(object, {"spec", key}); least && !target.empty())
        minimums_[target] = least;
  }

  Ptr replicas_of(const Context& context, const ServerLife& life) const {
    Ptr count = bounded_replicas(context.replicas, life);
    const auto scaler = minimums_.find(context.scaler.empty() ? context.name : context.scaler);
    const Ptr least = scaler != minimums_.end() ? scaler->second : context.minimum;
    if (count_in(least) > std::max<std::int64_t>(count == nullptr ? 0 : 1, count_in(count)))
      count = least;
    const std::int64_t number = count == nullptr ? 1 : count_in(count);
    if (context.copies == 1 || number == 0) return count;
    return plain(std::to_string(number * context.copies),
                 count == nullptr ? SourceLocation{} : count->where());
  }

  /// A choice closer to the container goes before one around it.
  static void note_accelerators(const ConfigNode& map, Context& context) {
    if (std::vector<Ptr> found = NodeChoice(map).found(); !found.empty())
      context.accelerators = std::move(found);
  }

  static void note_device(const ConfigNode& container, Context& context) {
    for (const std::string_view part : {"requests", "limits"}) {
      const ConfigNode* list = node_at(container, {"resources", part});
      if (list == nullptr) continue;
      for (const Member& resource : list->members())
        if (is_device(resource.key) || resource.key == "gpu")  // Dynamo's.
          context.device =
              plain(resource.key == "gpu" ? "nvidia.com/gpu" : resource.key, resource.key_where);
    }
  }

  void note_files(const ConfigNode& config_map) {
    if (const ConfigNode* data = config_map.child("data"))
      for (const Member& file : data->members()) files_[file.key] = file.value;
  }

  /// Names and roles that the map gives to what is below it.
  static void note_names(const ConfigNode& map, Context& context) {
    std::string name = text_at(map, {"metadata", "name"});
    if (name.empty()) name = text_at(map, {"name"});
    if (!name.empty()) context.name = name;
    std::string role = text_at(map, {"metadata", "labels", "llm-d.ai/role"});
    for (const char* key : {"subComponentType", "type"})
      if (role != "prefill" && role != "decode") role = text_at(map, {key});
    if (role != "prefill" && role != "decode") role = role_in(name);
    if (!role.empty()) context.role = role;
    if (node_at(map, {"spec", "containers"}) != nullptr) note_labels(map, context);
  }

  static void note_labels(const ConfigNode& pod, Context& context) {
    const ConfigNode* labels = node_at(pod, {"metadata", "labels"});
    if (labels == nullptr) return;
    context.labels.clear();
    for (const Member& label : labels->members())
      if (label.value->is_scalar())
        context.labels.push_back(plain(label.key + "=" + label.value->text(), label.key_where));
  }

  void visit_member(const Member& member, const Context& context) {
    if (has_word("metadata status initContainers volumes routerSpec", member.key)) return;
    const bool is_map = member.value->is_map();
    if (is_map && is_disabled(*member.value)) return;
    if (member.key == "mainContainer" && is_map) return visit_container(*member.value, context);
    const bool is_models = member.key == "modelSpec";
    if (member.value->is_sequence() && (is_models || member.key == "containers")) {
      for (const Ptr& item : member.value->items())
        if (item->is_map())
          is_models ? add_stack_model(*item, context) : visit_container(*item, context);
      return;
    }
    Context below = context;
    if (is_map && (member.key == "prefill" || member.key == "decode")) {
      below.role = member.key;
      below.name = member.key;
    }
    if (is_map &&
        (member.value->find("image") != nullptr || member.value->find("componentType") != nullptr))
      below.name = member.key;
    visit(member.value, below);
  }

  /// A LeaderWorkerSet: its leader has the front end, if it has one of its own.
  void visit_group(const ConfigNode& group, Context context) {
    if (const Ptr size = scalar_at(group, {"size"})) {
      context.life.pods_of_server = std::max<std::int64_t>(1, count_in(size));
      context.variables["LWS_GROUP_SIZE"] = {.text = size->text(), .where = size->where()};
    }
    context.variables["LWS_WORKER_INDEX"] = {.text = "0", .where = group.where()};
    const std::size_t before = starts_.size();
    for (const std::string_view part : {"leaderTemplate", "workerTemplate"})
      if (const Member* member = group.find(part); member != nullptr && starts_.size() == before)
        visit(member->value, context);
  }

  /// A service of KServe, as its controller completes it (pkg/controller/v1alpha2/llmisvc and
  /// config/llmisvcconfig of kserve/kserve@aaac4e2).
  void visit_service(const Ptr& service, Context context) {
    const Ptr whole = with_configurations(service);
    const Ptr spec = value_at(*whole, {"spec"}), prefill = value_at(*whole, {"spec", "prefill"});
    if (spec == nullptr || !spec->is_map()) return;
    const Ptr uri = scalar_at(*spec, {"model", "uri"}), name = scalar_at(*spec, {"model", "name"});
    const bool is_published = name == nullptr || (uri != nullptr && uri->text().starts_with("hf:"));
    if (uri != nullptr)
      add_member(context.flags, "model", is_published ? without_scheme(uri) : name);
    if (const Ptr lora = value_at(*spec, {"model", "lora"})) {
      add_member(context.flags, "enable-lora", plain("true", lora->where()));
      add_member(context.flags, "max-loras", scalar_at(*lora, {"maxAdapters"}));
      add_member(context.flags, "max-lora-rank", scalar_at(*lora, {"maxRank"}));
      add_member(context.flags, "max-cpu-loras", scalar_at(*lora, {"maxCpuAdapters"}));
    }
    context.is_service = true;
    for (const Ptr& workload : {spec, prefill}) {
      if (workload == nullptr || !workload->is_map()) continue;
      Context below = context;
      if (prefill != nullptr) below.role = workload == prefill ? "prefill" : "decode";
      if (workload == prefill) below.name += "-prefill";
      // ChildName(service, "-kserve" or "-kserve-prefill") is the Deployment that it makes.
      below.life = {
          .kind = "Deployment",
          .name = context.life.name + (workload == prefill ? "-kserve-prefill" : "-kserve"),
          .name_space = context.life.name_space};
      note_counts(*workload, {}, below);
      if (const Ptr memory = scalar_at(*workload, {"kvCacheOffloading", "cpu"}))
        add_member(below.flags, "kv-offloading-size",
                   plain(memory->text().substr(0, memory->text().find("Gi")), memory->where()));
      const Ptr pod = value_at(*workload, {"template"});
      if (pod != nullptr) note_accelerators(*pod, below);
      if (pod != nullptr) note_pod_life(*pod, below.life);
      Ptr main = ConfigNode::make_map({}, workload->where());
      const std::vector<Ptr>& list = items_at(*workload, {"template", "containers"});
      for (const Ptr& item : list)
        if (text_at(*item, {"name"}) == "main" || list.size() == 1) main = item;
      visit_container(*main, below);
    }
  }

  /// The service laid over the configurations that it names.
  Ptr with_configurations(const Ptr& service) {
    Ptr base;
    for (const Ptr& reference : items_at(*service, {"spec", "baseRefs"})) {
      const std::string name = text_at(*reference, {"name"});
      Ptr found;
      for (const Ptr& object : items_at(*root_, {"items"}))
        if (text_at(*object, {"kind"}) == "LLMInferenceServiceConfig" &&
            text_at(*object, {"metadata", "name"}) == name)
          found = object;
      if (found == nullptr)
        diagnostics_.warning(reference->where(), key_path_,
                             "names a configuration that this file does not hold, so its settings "
                             "are not known (got " +
                                 in_quotes(name) + ")",
                             "put the LLMInferenceServiceConfig into the same file");
      else
        base = base == nullptr ? found : merged_strategically(base, *found, true);
    }
    return base == nullptr ? service : merged_strategically(base, *service, true);
  }

  /// A stack of llm-d-benchmark, by config/templates of llm-d/llm-d-benchmark@8bc9f1d.
  void visit_stack(const ConfigNode& stack, Context context) {
    context.name = text_at(stack, {"name"});
    for (const char* method : {"kustomize", "fma", "nok8s", "standalone"})
      if (text_at(stack, {method, "enabled"}) == "true")
        return keep(unread_start(std::string("is deployed by ") + method +
                                     ", so that its servers are not in this file",
                                 {}, stack.find(method)->key_where),
                    "", context);
    const auto part = [&](std::string_view group, std::string_view key) {
      const Ptr inside = value_at(stack, {group, key});
      const Ptr found = inside != nullptr ? inside : value_at(stack, {key});
      return found != nullptr ? found : ConfigNode::make_map({}, stack.where());
    };
    const Ptr model = part("common", "model"), shared = part("common", "vllmCommon");
    const Ptr id = scalar_at(*model, {"huggingfaceId"});
    add_member(context.flags, "model", id != nullptr ? id : scalar_at(*model, {"name"}));
    struct Setting {
      std::string_view key, variable, standard, flag;
    };
    for (const Setting& s :
         {Setting{"blockSize", "VLLM_BLOCK_SIZE", "64", "block-size"},
          Setting{"maxModelLen", "VLLM_MAX_MODEL_LEN", "16384", "max-model-len"},
          Setting{"gpuMemoryUtilization", "VLLM_ACCELERATOR_MEM_UTIL", "0.95",
                  "gpu-memory-utilization"},
          Setting{"maxNumSeq", "VLLM_MAX_NUM_SEQ", "256", {}},
          Setting{"maxNumBatchedTokens", "VLLM_MAX_NUM_BATCHED_TOKENS", "256", {}},
          Setting{"name", "MODEL_NAME", "", {}}, Setting{"path", "MODEL_PATH", "model", {}}}) {
      Ptr value = scalar_at(*model, {s.key});
      if (value == nullptr) value = plain(std::string(s.standard), model->where());
      context.variables[std::string(s.variable)] = {value->text(), value->where()};
      if (!s.flag.empty()) add_member(context.flags, std::string(s.flag), value);
    }
    if (text_at(*shared, {"flags", "enforceEager"}) != "false")
      add_member(context.flags, "enforce-eager", plain("true", model->where()));
    const Ptr images = part("common", "images"), device = part("common", "accelerator");
    if (const Ptr tag = scalar_at(*images, {"vllm", "tag"}))
      context.image = {text_at(*images, {"vllm", "repository"}) + ":" + tag->text(), tag->where()};
    const Ptr asked = scalar_at(*device, {"resource"});
    if (asked != nullptr && asked->text() != "auto") context.device = asked;
    if (text_at(*device, {"count"}) == "0") context.device = plain("cpu", device->where());
    for (const char* role : {"prefill", "decode"})
      if (const Ptr servers = part("modelservice", role);
          text_at(*servers, {"enabled"}) == "true" ||
          (text_at(*servers, {"enabled"}).empty() &&
           count_in(scalar_at(*servers, {"replicas"})) > 0))
        visit_stack_role(*servers, role, context);
  }

  void visit_stack_role(const ConfigNode& servers, const std::string& role, Context context) {
    context.role = role;
    note_accelerators(servers, context);
    note_counts(servers, {}, context);
    if (const Ptr more = value_at(servers, {"extraEnvVars"}))
      read_environment(*tree::map({{"env", more}}, more->where()), context);
    std::optional<ServerStart> start;
    const Ptr command = scalar_at(servers, {"vllm", "customCommand"});
    if (command == nullptr) {
      start = ServerStart{.where = servers.where()};
      for (const Ptr& flag : items_at(servers, {"vllm", "additionalFlags"}))
        add_words(flag->text(), flag->where(), context.variables, *start);
    } else {
      // Settings of the accelerator's profile, which are empty or harmless for GPUs.
      std::string text = command->text();
      for (std::size_t at = 0; (at = text.find("${accelerator.", at)) != std::string::npos;)
        text.erase(at, text.find('}', at) - at + 1);
      start = start_in_text(text, places_in(*command), command->where(), context.variables,
                            key_path_, diagnostics_);
      context.flags.clear();
    }
    if (start) keep(std::move(*start), role, context);
  }

  /// Appends the words of a text.
  void add_words(const std::string& text, const SourceLocation& where, ShellVariables variables,
                 ServerStart& start) {
    const auto at = [&](int, int) { return where; };
    for (const ShellCommand& words : split_shell(text, at, variables, key_path_, diagnostics_))
      start.words.insert(start.words.end(), words.begin(), words.end());
  }

  static void read_environment(const ConfigNode& container, Context& context) {
    const Member* list = container.find("env");
    for (const char* key : {"envs", "environment"})
      if (list == nullptr) list = container.find(key);
    if (list == nullptr) return;
    for (const Member& member : list->value->members())
      if (member.value->is_scalar())
        context.variables[member.key] = {member.value->text(), member.value->where()};
    for (const Ptr& item : list->value->items()) {
      const std::string name = item->is_map() ? text_at(*item, {"name"}) : std::string();
      const Ptr value = item->is_map() ? scalar_at(*item, {"value"}) : nullptr;
      if (!name.empty() && value != nullptr)
        context.variables[name] = kubernetes_word(*value, context.variables);
      const std::size_t n = item->is_scalar() ? assigned_name(item->text()) : 0;
      if (n > 0)
        context.variables[item->text().substr(0, n)] = {item->text().substr(n + 1), item->where()};
    }
  }

  /// `command` and `args` in a row; a text (as compose files have it) is split where it is read.
  static std::vector<Ptr> command_words(const ConfigNode& container) {
    std::vector<Ptr> words;
    for (const std::string_view key : {"entrypoint", "command", "args"}) {
      if (const Ptr line = scalar_at(container, {key})) words.push_back(line);
      for (const Ptr& item : items_at(container, {key}))
        if (item->is_scalar()) words.push_back(item);
    }
    return words;
  }

  void visit_container(const ConfigNode& container, Context context) {
    const std::vector<Ptr> words = command_words(container);
    const std::string mode = text_at(container, {"modelCommand"});
    const std::string image = text_at(container, {"image"});
    const bool by_chart = mode == "vllmServe" || mode == "imageDefault" ||
                          (context.is_service && container.find("command") == nullptr);
    std::string line;
    for (const Ptr& word : words) line += word->text() + ' ';
    const Ptr around = context.device;
    note_device(container, context);
    note_container_life(container, context.life);
    const std::string name = text_at(container, {"name"});
    std::string_view engine = engine_in(line);
    if (engine.empty() && runs_beside_engines(line)) return;
    if (engine.empty() && (by_chart || is_vllm_image(image))) engine = kVllmEngine;
    if (engine.empty() && !words.empty()) engine = engine_in({}, image);
    if (engine.empty() && context.device == around) return;  // It asks for no device.
    ++tried_;
    read_environment(container, context);
    if (const Ptr found = scalar_at(container, {"image"}))
      context.image = kubernetes_word(*found, context.variables);
    const std::string unread = engine.empty() ? "asks for " + context.device->text() +
                                                    " and starts no program that is known"
                                              : not_simulated(engine);
    const std::optional<sim::EngineKind> simulated = simulated_engine(engine);
    if (!simulated) return keep(unread_start(unread, line, container.where()), name, context);
    // The chart writes its flags into its own commands only.
    if (!by_chart) context.flags.clear();
    std::optional<ServerStart> start;
    const bool is_line = words.size() == 1 && has_blanks(words.front()->text());
    if (words.empty())
      start = ServerStart{.where = container.where()};
    else if (is_line)
      start = start_in_scalar(*words.front(), context.variables, key_path_, diagnostics_);
    else if (by_chart)
      start = ServerStart{.where = words.front()->where(),
                          .words = chart_words(words, context.variables),
                          .environment = context.variables};
    else
      start = start_in_list(*ConfigNode::make_sequence(words, words.front()->where()),
                            context.variables, key_path_, diagnostics_);
    const auto more = context.variables.find("VLLM_ADDITIONAL_ARGS");
    if (start && context.is_service && by_chart && more != context.variables.end()) {
      add_words(more->second.text, more->second.where, context.variables, *start);
      start->environment.erase(more->first);  // Its words are noted as flags.
      context.variables.erase(more);
    }
    if (!start) return;
    start->engine = *simulated;
    keep(std::move(*start), name, context);
  }

  static std::vector<ShellWord> chart_words(const std::vector<Ptr>& words,
                                            const ShellVariables& variables) {
    std::vector<ShellWord> out;
    for (const Ptr& word : words)
      if (word->is_scalar()) out.push_back(kubernetes_word(*word, variables));
    return out;
  }

  void keep(ServerStart start, const std::string& container, const Context& context) {
    start.image = context.image;
    start.name = context.name.empty() ? container : context.name;
    for (const std::string& other : {container, context.role})
      if (!other.empty() && other != start.name) start.others.push_back(other);
    start.role = context.role;
    if (start.environment.empty()) start.environment = context.variables;
    if (const auto mode = start.environment.find("DYN_VLLM_DISAGGREGATION_MODE");
        start.role.empty() && mode != start.environment.end())
      start.role = role_in(mode->second.text);
    for (std::size_t i = 0; start.role.empty() && i < start.words.size(); ++i) {  // Dynamo's.
      const std::string& flag = start.words[i].text;
      const bool has_value = flag == "--disaggregation-mode" && i + 1 < start.words.size();
      start.role = flag == "--is-prefill-worker"  ? "prefill"
                   : flag == "--is-decode-worker" ? "decode"
                   : has_value                    ? role_in(start.words[i + 1].text)
                                                  : "";
    }
    if (start.unread.empty()) start.flags = context.flags;
    start.labels = context.labels;
    start.router = context.router;
    start.accelerators = context.accelerators;
    start.device = context.device;
    start.life = context.life;
    objects_.give(start.life, start.labels);
    start.replicas = replicas_of(context, start.life);
    const bool is_for_cpu = last_part(start.image.text).find("vllm-cpu") != std::string::npos;
    if (start.device == nullptr && is_for_cpu) start.device = plain("cpu", start.image.where);
    if (starts_.size() == kMostStarts)
      diagnostics_.error(start.where, key_path_, "is a server more than the 1000 that are read",
                         "name a file or a folder of fewer");
    if (starts_.size() <= kMostStarts) starts_.push_back(std::move(start));
  }

  /// An element of the vLLM production stack's `modelSpec`.
  void add_stack_model(const ConfigNode& spec, Context context) {
    note_names(spec, context);
    note_accelerators(spec, context);
    context.device = scalar_at(spec, {"requestGPUType"});
    context.replicas = replicas_at(spec, "replicaCount");
    if (const Ptr model = scalar_at(spec, {"modelURL"}))
      add_member(context.flags, "model", without_scheme(model));
    read_environment(spec, context);
    if (const Ptr tag = scalar_at(spec, {"tag"}))
      context.image = {text_at(spec, {"repository"}) + ":" + tag->text(), tag->where()};
    note_stack_life(*root_, spec, context.life);
    ServerStart start{.where = spec.where()};
    if (const Ptr lora = scalar_at(spec, {"enableLoRA"}))
      add_member(context.flags, "enable-lora", lora);
    if (text_at(spec, {"lmcacheConfig", "enabled"}) == "true")
      add_lmcache(*spec.find("lmcacheConfig")->value, context);
    if (const Member* config = spec.find("vllmConfig"))
      add_stack_flags(*config->value, start, context);
    keep(std::move(start), "", context);
  }

  /// Its chart turns these into the connector and LMCache's environment
  /// (deployment-vllm-multi.yaml).
  static void add_lmcache(const ConfigNode& config, Context& context) {
    add_member(context.flags, "kv-transfer-config",
               tree::text(R"({"kv_connector": "LMCacheConnectorV1"})", config.where()));
    if (const Ptr size = scalar_at(config, {"cpuOffloadingBufferSize"}))
      context.variables["LMCACHE_MAX_LOCAL_CPU_SIZE"] = {size->text(), size->where()};
    if (const Ptr size = scalar_at(config, {"diskOffloadingBufferSize"}))
      context.variables["LMCACHE_MAX_LOCAL_DISK_SIZE"] = {size->text(), size->where()};
  }

  /// Its chart turns prefix caching off unless told otherwise (deployment-vllm-multi.yaml).
  static void add_stack_flags(const ConfigNode& config, ServerStart& start, Context& context) {
    for (const Member& member : config.members()) {
      if (member.key == "extraArgs") {
        start.words = chart_words(member.value->items(), context.variables);
      } else if (member.key != "v1") {
        context.flags.push_back({with_dashes(member.key), member.key_where, member.value});
      }
    }
    if (config.is_map() && config.find("enablePrefixCaching") == nullptr)
      context.flags.push_back(
          {"enable-prefix-caching", config.where(), plain("false", config.where())});
  }

  void add_kubeai_model(const ConfigNode& spec, Context context) {
    note_accelerators(spec, context);
    if (const Ptr model = scalar_at(spec, {"url"}))
      add_member(context.flags, "model", without_scheme(model));
    context.replicas = replicas_at(spec, "replicas");
    context.minimum = scalar_at(spec, {"minReplicas"});
    // Profiles are named by vendors: nvidia-gpu-l4, amd-gpu-mi300x, google-tpu-v5e-1x1, cpu.
    if (const Ptr profile = scalar_at(spec, {"resourceProfile"}))
      context.device = plain(profile->text().starts_with("nvidia") ? "nvidia.com/gpu"
                             : profile->text().starts_with("amd")  ? "amd.com/gpu"
                                                                   : profile->text(),
                             profile->where());
    read_environment(spec, context);
    context.router = kubeai_router(spec);
    ServerStart start{.where = spec.where()};
    start.words = chart_words(items_at(spec, {"args"}), context.variables);
    keep(std::move(start), "", context);
  }

  const std::string& key_path_;
  Diagnostics& diagnostics_;
  Ptr root_;
  std::vector<ServerStart> starts_;
  std::size_t tried_ = 0;  ///< Containers that start an engine, read or not.
  MountedFiles files_;
  std::map<std::string, Ptr> minimums_;  ///< By the name of the object that is scaled.
  LifeObjects objects_;
};

}  // namespace

std::vector<ServerStart> starts_in_tree(const ConfigNode::Ptr& root, const std::string& key_path,
                                        Diagnostics& diagnostics) {
  return Walk(key_path, diagnostics).run(root);
}

}  // namespace routesim::tools
