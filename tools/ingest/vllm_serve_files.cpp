#include "tools/ingest/vllm_serve_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace routesim::tools {

namespace {

using Ptr = ConfigNode::Ptr;
using Member = ConfigNode::Member;

/// The scalar at a path of keys, or null.
Ptr scalar_at(const ConfigNode& node, std::initializer_list<std::string_view> keys) {
  const ConfigNode* current = &node;
  Ptr found;
  for (const std::string_view key : keys) {
    const Member* member = current->find(key);
    if (member == nullptr) return nullptr;
    found = member->value;
    current = found.get();
  }
  return found != nullptr && found->is_scalar() ? found : nullptr;
}

/// The number of servers at a key, whatever stands there, so that what is no number is refused;
/// null when there is nothing.
Ptr replicas_at(const ConfigNode& node, std::string_view key) {
  const Member* member = node.find(key);
  return member == nullptr || member->value->is_null() ? nullptr : member->value;
}

std::string text_at(const ConfigNode& node, std::initializer_list<std::string_view> keys) {
  const Ptr found = scalar_at(node, keys);
  return found == nullptr ? std::string() : found->text();
}

Ptr plain(const std::string& text, const SourceLocation& where) {
  return ConfigNode::make_scalar(text, ConfigNode::Style::kPlain, where);
}

std::int64_t count_in(const Ptr& node) {
  std::int64_t n = 0;
  if (node == nullptr || !node->is_scalar()) return 0;
  const std::string& text = node->text();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  constexpr std::int64_t kMost = 1'000'000;
  return error == std::errc() && end == text.data() + text.size() && n > 0 && n <= kMost ? n : 0;
}

/// `hf://org/name` and `pvc+hf://claim/folders/org/name` name a published model.
Ptr without_scheme(const Ptr& model) {
  const std::string& text = model->text();
  const std::size_t scheme = text.find("hf://");
  if (scheme == std::string::npos) return model;
  std::string name = text.substr(scheme + 5);
  if (scheme > 0) {
    const std::size_t slash = name.rfind('/');
    const std::size_t before = slash == std::string::npos ? slash : name.rfind('/', slash - 1);
    if (before != std::string::npos) name = name.substr(before + 1);
  }
  return ConfigNode::make_scalar(name.substr(0, name.find('?')), ConfigNode::Style::kQuoted,
                                 model->where());
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

bool is_off(const ConfigNode& map) {
  return text_at(map, {"create"}) == "false" || text_at(map, {"enabled"}) == "false";
}

/// Words that only vLLM's command line has.
bool has_vllm_flag(const std::vector<Ptr>& words) {
  constexpr std::array<std::string_view, 7> kOwn = {
      "--gpu-memory-utilization", "--kv-transfer-config", "--max-model-len",
      "--max-num-batched-tokens", "--max-num-seqs",       "--model",
      "--tensor-parallel-size"};
  return std::any_of(words.begin(), words.end(), [&](const Ptr& word) {
    const std::string& text = word->text();
    const std::string flag = text.substr(0, text.find('='));
    return std::any_of(kOwn.begin(), kOwn.end(), [&](std::string_view own) {
      return flag == own || text.find(std::string(own) + ' ') != std::string::npos;
    });
  });
}

/// Whether the words start vLLM themselves, not only carry its flags.
bool names_vllm(const std::vector<Ptr>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& text = words[i]->text();
    if (text.find("vllm serve") != std::string::npos ||
        text.find("vllm.entrypoints") != std::string::npos ||
        text.find("vllm/entrypoints/openai/api_server.py") != std::string::npos)
      return true;
    const std::string name = text.substr(text.rfind('/') + 1);
    if (name == "vllm" && i + 1 < words.size() && words[i + 1]->text() == "serve") return true;
  }
  return false;
}

/// What the words of an image's own entry point begin with.
bool is_model_or_flag(const std::string& word) {
  return word.starts_with("-") ||
         (word.find('/') != std::string::npos && !word.starts_with("/") && !has_blanks(word));
}

/// Whether an image's own entry point is vLLM's.
bool is_vllm_image(const std::string& image) {
  const std::string name = image.substr(image.rfind('/') + 1);
  return name.starts_with("vllm-openai") || name.starts_with("vllm-cpu") ||
         name.starts_with("vllm-cuda") || name.starts_with("vllm:") || name == "vllm";
}

/// Walks a tree and remembers what holds for everything below.
class Walk {
 public:
  Walk(const std::string& key_path, Diagnostics& diagnostics)
      : key_path_(key_path), diagnostics_(diagnostics) {}

  std::vector<ServerStart> run(const Ptr& root) {
    Context context;
    if (const Member* artifacts = root->find("modelArtifacts"))
      note_artifacts(*artifacts->value, context);
    if (root->find("servingEngineSpec") != nullptr) context.router = stack_router(*root);
    visit(root, context);
    return std::move(starts_);
  }

 private:
  struct Context {
    std::string name;
    std::string role;
    Ptr replicas;
    std::int64_t slices = 1;  ///< Copies of everything below, replicas and all.
    std::vector<Member> flags;
    ShellVariables variables;
    ShellWord image;
    std::vector<Ptr> labels;  ///< Of the pod, as `key=value`.
    RouterChoice router;
  };

  static Member routing_key(const std::string& key, const Ptr& value) {
    return {key, value->where(), value};
  }

  /// The production stack's own router, which its chart starts unless told otherwise. Without a
  /// router clients reach the Service of the engines.
  static RouterChoice stack_router(const ConfigNode& values) {
    if (text_at(values, {"routerSpec", "enableRouter"}) == "false") return {};
    const Ptr logic = scalar_at(values, {"routerSpec", "routingLogic"});
    const SourceLocation where = logic != nullptr ? logic->where() : values.where();
    RouterChoice router{.product = "the vLLM production stack", .where = where};
    if (logic != nullptr && logic->text() != "roundrobin")
      router.refused = "routerSpec.routingLogic: " + logic->text();
    else
      router.routing.push_back(routing_key("balancer", plain("round-robin", where)));
    return router;
  }

  /// KubeAI's proxy. Absent keys have the defaults of its Model resource, as those of `routing` do.
  static RouterChoice kubeai_router(const ConfigNode& model) {
    const Ptr strategy = scalar_at(model, {"loadBalancing", "strategy"});
    const SourceLocation where = strategy != nullptr ? strategy->where() : model.where();
    RouterChoice router{.product = "KubeAI", .where = where};
    const std::string name = strategy != nullptr ? strategy->text() : "LeastLoad";
    if (name == "LeastLoad") {
      router.routing.push_back(routing_key("balancer", plain("least-load", where)));
      return router;
    }
    if (name != "PrefixHash") {
      router.refused = "loadBalancing.strategy: " + name;
      return router;
    }
    router.routing.push_back(routing_key("balancer", plain("prefix-hash", where)));
    for (const auto& [theirs, ours] : {std::pair{"meanLoadFactor", "mean_load_factor"},
                                       std::pair{"replication", "hash_replication"},
                                       std::pair{"prefixCharLength", "prefix_char_length"}})
      if (const Ptr value = scalar_at(model, {"loadBalancing", "prefixHash", theirs}))
        router.routing.push_back(routing_key(ours, value));
    return router;
  }

  void note_artifacts(const ConfigNode& artifacts, Context& context) {
    Ptr model = scalar_at(artifacts, {"uri"});
    const Ptr name = scalar_at(artifacts, {"name"});
    const bool is_published = model != nullptr && model->text().find("hf://") != std::string::npos;
    if (!is_published && name != nullptr) model = name;
    if (model != nullptr) add_flag("model", without_scheme(model), context);
  }

  static void add_flag(const std::string& name, const Ptr& value, Context& context) {
    if (value != nullptr) context.flags.push_back({name, value->where(), value});
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
    add_flag("tensor-parallel-size", tensor, context);
    if (ranks > 1) add_flag("data-parallel-size", plain(std::to_string(ranks), at), context);
    if (here > 1) add_flag("data-parallel-size-local", plain(std::to_string(here), at), context);
    const auto define = [&](const std::string& name, std::int64_t value) {
      context.variables[name] = {.text = std::to_string(value), .where = at};
    };
    if (tensor != nullptr) context.variables["TP_SIZE"] = {tensor->text(), tensor->where()};
    define("DP_SIZE", ranks);
    define("DP_SIZE_LOCAL", here);
    define("LWS_GROUP_SIZE", std::max<std::int64_t>(1, ranks / here));
    define("LWS_WORKER_INDEX", 0);
  }

  void visit(const Ptr& node, const Context& context) {
    if (node->is_sequence()) {
      for (const Ptr& item : node->items()) visit(item, context);
    } else if (node->is_map()) {
      visit_map(*node, context);
    }
  }

  void visit_map(const ConfigNode& map, Context context) {
    note_names(map, context);
    if (const Ptr replicas = replicas_at(map, "replicas")) context.replicas = replicas;
    if (const std::int64_t slices = count_in(scalar_at(map, {"slices"})); slices > 0)
      context.slices = slices;
    if (const Member* member = map.find("parallelism"); member != nullptr)
      note_parallelism(*member->value, context);
    if (const Member* group = map.find("leaderWorkerTemplate"))
      return visit_group(*group->value, context);
    if (text_at(map, {"kind"}) == "Model" && text_at(map, {"spec", "engine"}) == "VLLM")
      return add_kubeai_model(*map.find("spec")->value, context);
    if (text_at(map, {"kind"}) == "LLMInferenceService" && map.find("spec") != nullptr &&
        !has_command(*map.find("spec")->value))
      return add_inference_service(*map.find("spec")->value, context);
    const bool is_container = map.find("image") != nullptr && map.find("containers") == nullptr &&
                              (map.find("command") != nullptr || map.find("args") != nullptr);
    if (is_container) return visit_container(map, context);
    for (const Member& member : map.members()) visit_member(member, context);
  }

  /// Names and roles that the map gives to what is below it.
  static void note_names(const ConfigNode& map, Context& context) {
    std::string name = text_at(map, {"metadata", "name"});
    if (name.empty()) name = text_at(map, {"name"});
    if (!name.empty()) context.name = name;
    std::string role = text_at(map, {"metadata", "labels", "llm-d.ai/role"});
    if (role != "prefill" && role != "decode") role = role_in(name);
    if (!role.empty()) context.role = role;
    const Member* pod = map.find("spec");
    if (pod != nullptr && pod->value->find("containers") != nullptr) note_labels(map, context);
  }

  static void note_labels(const ConfigNode& pod, Context& context) {
    const Member* metadata = pod.find("metadata");
    const Member* labels = metadata != nullptr ? metadata->value->find("labels") : nullptr;
    if (labels == nullptr) return;
    context.labels.clear();
    for (const Member& label : labels->value->members())
      if (label.value->is_scalar())
        context.labels.push_back(plain(label.key + "=" + label.value->text(), label.key_where));
  }

  void visit_member(const Member& member, const Context& context) {
    constexpr std::array<std::string_view, 5> kElsewhere = {"metadata", "status", "initContainers",
                                                            "volumes", "routerSpec"};
    if (std::find(kElsewhere.begin(), kElsewhere.end(), member.key) != kElsewhere.end()) return;
    const bool is_map = member.value->is_map();
    if (is_map && is_off(*member.value)) return;
    if (text_at(*member.value, {"engine"}) == "VLLM" && member.value->find("url") != nullptr) {
      Context model = context;  // An entry of the catalogue in the values of KubeAI's chart.
      model.name = member.key;
      return add_kubeai_model(*member.value, model);
    }
    if (member.key == "containers" && member.value->is_sequence()) {
      for (const Ptr& item : member.value->items())
        if (item->is_map()) visit_container(*item, context);
      return;
    }
    if (member.key == "modelSpec" && member.value->is_sequence()) {
      for (const Ptr& item : member.value->items())
        if (item->is_map()) add_stack_model(*item, context);
      return;
    }
    Context below = context;
    if (is_map && (member.key == "prefill" || member.key == "decode")) {
      below.role = member.key;
      below.name = member.key;
    }
    if (is_map && member.value->find("image") != nullptr) below.name = member.key;
    visit(member.value, below);
  }

  /// A LeaderWorkerSet: its leader has the front end, if it has one of its own.
  void visit_group(const ConfigNode& group, Context context) {
    if (const Ptr size = scalar_at(group, {"size"}))
      context.variables["LWS_GROUP_SIZE"] = {.text = size->text(), .where = size->where()};
    context.variables["LWS_WORKER_INDEX"] = {.text = "0", .where = group.where()};
    const std::size_t before = starts_.size();
    for (const std::string_view part : {"leaderTemplate", "workerTemplate"})
      if (const Member* member = group.find(part); member != nullptr && starts_.size() == before)
        visit(member->value, context);
  }

  static void read_environment(const ConfigNode& container, Context& context) {
    const Member* list = container.find("env");
    if (list == nullptr) list = container.find("environment");
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
      const Member* member = container.find(key);
      if (member == nullptr) continue;
      if (member->value->is_scalar()) words.push_back(member->value);
      for (const Ptr& item : member->value->items())
        if (item->is_scalar()) words.push_back(item);
    }
    return words;
  }

  void visit_container(const ConfigNode& container, Context context) {
    const std::vector<Ptr> words = command_words(container);
    const std::string mode = text_at(container, {"modelCommand"});
    const bool by_chart = mode == "vllmServe" || mode == "imageDefault";
    const bool by_image = is_vllm_image(text_at(container, {"image"}));
    const bool flags_alone = words.empty() || by_image || is_model_or_flag(words.front()->text());
    const bool is_vllm =
        by_chart || names_vllm(words) || (flags_alone && (by_image || has_vllm_flag(words)));
    if (!is_vllm) return;
    read_environment(container, context);
    if (const Ptr image = scalar_at(container, {"image"}))
      context.image = kubernetes_word(*image, context.variables);
    // The chart writes its flags into its own commands only.
    if (!by_chart) context.flags.clear();
    const std::string name = text_at(container, {"name"});
    if (words.empty()) return keep(ServerStart{.where = container.where()}, name, context);
    std::optional<ServerStart> start;
    const bool is_line = words.size() == 1 && has_blanks(words.front()->text());
    if (is_line)
      start = start_in_scalar(*words.front(), context.variables, key_path_, diagnostics_);
    else if (by_chart)
      start = ServerStart{.where = words.front()->where(),
                          .words = chart_words(words, context.variables),
                          .environment = context.variables};
    else
      start = start_in_list(*ConfigNode::make_sequence(words, words.front()->where()),
                            context.variables, key_path_, diagnostics_);
    if (start) keep(std::move(*start), name, context);
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
    start.flags = context.flags;
    start.labels = context.labels;
    start.router = context.router;
    if (start.environment.empty()) start.environment = context.variables;
    start.replicas = context.replicas;
    if (const std::int64_t n = count_in(context.replicas); n > 0 && context.slices > 1)
      start.replicas = plain(std::to_string(n * context.slices), context.replicas->where());
    starts_.push_back(std::move(start));
  }

  /// An element of the vLLM production stack's `modelSpec`.
  void add_stack_model(const ConfigNode& spec, Context context) {
    note_names(spec, context);
    context.replicas = replicas_at(spec, "replicaCount");
    if (const Ptr model = scalar_at(spec, {"modelURL"}))
      add_flag("model", without_scheme(model), context);
    read_environment(spec, context);
    if (const Ptr tag = scalar_at(spec, {"tag"}))
      context.image = {text_at(spec, {"repository"}) + ":" + tag->text(), tag->where()};
    ServerStart start{.where = spec.where()};
    if (const Ptr lora = scalar_at(spec, {"enableLoRA"})) add_flag("enable-lora", lora, context);
    if (text_at(spec, {"lmcacheConfig", "enabled"}) == "true")
      add_flag("kv-transfer-config",
               ConfigNode::make_scalar(R"({"kv_connector": "LMCacheConnectorV1"})",
                                       ConfigNode::Style::kQuoted,
                                       spec.find("lmcacheConfig")->value->where()),
               context);
    if (const Member* config = spec.find("vllmConfig"))
      add_stack_flags(*config->value, start, context);
    keep(std::move(start), "", context);
  }

  /// Its chart turns prefix caching off unless told otherwise (deployment-vllm-multi.yaml).
  static void add_stack_flags(const ConfigNode& config, ServerStart& start, Context& context) {
    for (const Member& member : config.members()) {
      if (member.key == "extraArgs") {
        start.words = chart_words(member.value->items(), context.variables);
      } else if (member.key == "v0" && member.value->is_scalar() && member.value->text() == "1") {
        context.variables["VLLM_USE_V1"] = {.text = "0", .where = member.value->where()};
      } else if (member.key != "v0" && member.key != "v1") {
        context.flags.push_back({with_dashes(member.key), member.key_where, member.value});
      }
    }
    if (config.is_map() && config.find("enablePrefixCaching") == nullptr)
      context.flags.push_back(
          {"enable-prefix-caching", config.where(), plain("false", config.where())});
  }

  void add_kubeai_model(const ConfigNode& spec, Context context) {
    if (const Ptr model = scalar_at(spec, {"url"}))
      add_flag("model", without_scheme(model), context);
    context.replicas = replicas_at(spec, "replicas");
    if (context.replicas == nullptr && count_in(scalar_at(spec, {"minReplicas"})) > 0)
      context.replicas = scalar_at(spec, {"minReplicas"});
    read_environment(spec, context);
    context.router = kubeai_router(spec);
    ServerStart start{.where = spec.where()};
    if (const Member* args = spec.find("args"))
      start.words = chart_words(args->value->items(), context.variables);
    keep(std::move(start), "", context);
  }

  /// Whether a container anywhere below says itself what it runs.
  static bool has_command(const ConfigNode& node) {
    if (node.find("command") != nullptr || node.find("args") != nullptr) return true;
    const auto is_one = [](const auto& child) { return has_command(child); };
    return std::any_of(node.members().begin(), node.members().end(),
                       [&](const Member& member) {
                         return member.key != "router" && is_one(*member.value);
                       }) ||
           std::any_of(node.items().begin(), node.items().end(),
                       [&](const Ptr& item) { return is_one(*item); });
  }

  /// KServe's: its template starts vLLM with the model, the parallelism and VLLM_ADDITIONAL_ARGS.
  void add_inference_service(const ConfigNode& spec, Context context) {
    if (const Member* model = spec.find("model")) note_artifacts(*model->value, context);
    const Member* prefill = spec.find("prefill");
    Context decode = context;
    if (prefill != nullptr) decode.role = decode.name = "decode";
    add_workload(spec, decode);
    if (prefill == nullptr) return;
    context.role = context.name = "prefill";
    add_workload(*prefill->value, context);
  }

  /// The servers of one role of it.
  void add_workload(const ConfigNode& workload, Context context) {
    context.replicas = replicas_at(workload, "replicas");
    if (const Member* parallelism = workload.find("parallelism"))
      note_parallelism(*parallelism->value, context);
    const Member* pod = workload.find("template");
    const Member* containers = pod != nullptr ? pod->value->find("containers") : nullptr;
    if (containers != nullptr)
      for (const Ptr& item : containers->value->items()) {
        if (!item->is_map() || text_at(*item, {"name"}) != "main") continue;
        read_environment(*item, context);
        if (const Ptr image = scalar_at(*item, {"image"}))
          context.image = kubernetes_word(*image, context.variables);
      }
    ServerStart start{.where = workload.where()};
    const auto more = context.variables.find("VLLM_ADDITIONAL_ARGS");
    if (more != context.variables.end() && !more->second.text.empty()) {
      const Ptr flags = ConfigNode::make_scalar(more->second.text, ConfigNode::Style::kQuoted,
                                                more->second.where);
      std::optional<ServerStart> read =
          start_in_scalar(*flags, context.variables, key_path_, diagnostics_);
      if (!read) return;
      start.words = std::move(read->words);
    }
    keep(std::move(start), "", context);
  }

  const std::string& key_path_;
  Diagnostics& diagnostics_;
  std::vector<ServerStart> starts_;
};

}  // namespace

std::vector<ServerStart> starts_in_tree(const ConfigNode::Ptr& root, const std::string& key_path,
                                        Diagnostics& diagnostics) {
  return Walk(key_path, diagnostics).run(root);
}

}  // namespace routesim::tools
