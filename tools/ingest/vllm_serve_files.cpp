#include "tools/ingest/vllm_serve_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "policies/balancers/balancers.h"
#include "tools/ingest/catalogue_file.h"
#include "tools/ingest/vllm_serve_flags.h"

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

bool is_balancer(std::string_view name) {
  return std::any_of(policies::kBalancers.begin(), policies::kBalancers.end(),
                     [name](const policies::BalancerRow& row) { return row.name == name; });
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

/// `hf://org/name` names a published model.
Ptr without_scheme(const Ptr& model) {
  constexpr std::string_view kScheme = "hf://";
  const std::string& text = model->text();
  if (!text.starts_with(kScheme)) return model;
  const std::string name = text.substr(kScheme.size(), text.find('?') - kScheme.size());
  return ConfigNode::make_scalar(name, ConfigNode::Style::kQuoted, model->where());
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

/// A program that serves a model, by the last parts of its words.
struct ServerProgram {
  std::string_view words;
  std::string_view engine = {};  ///< Empty: vLLM, or what takes its flags.
};

constexpr std::array kServerPrograms = {
    ServerProgram{"vllm serve"},
    ServerProgram{"-m vllm.entrypoints.openai.api_server"},
    ServerProgram{"-m vllm.entrypoints.api_server"},
    ServerProgram{"-m vllm.entrypoints.grpc_server"},
    ServerProgram{"-m vllm.entrypoints.cli.main serve"},
    ServerProgram{"-m dynamo.vllm"},
};

/// Whether the words start vLLM themselves.
bool names_vllm(const std::vector<Ptr>& words) {
  std::string line;
  for (const Ptr& word : words) line += word->text() + ' ';
  return starts_vllm(line);
}

/// Whether an image starts vLLM by itself.
bool is_vllm_image(const std::string& image) {
  const std::string_view name = last_part(image);
  return name.starts_with("vllm-openai") || name.starts_with("vllm-cpu");
}

/// Number of words at `begin` that are those of `program`; 0 when they are others.
std::size_t length_of(const ServerProgram& program, const std::vector<ShellWord>& words,
                      std::size_t begin) {
  std::string_view rest = program.words;
  std::size_t i = begin;
  for (; !rest.empty(); ++i) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (i == words.size() || last_part(words[i].text) != rest.substr(0, end)) return 0;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return i - begin;
}

/// Index of the first word after the ones that start the server; 0 when there are none.
std::size_t after_serve(const std::vector<ShellWord>& words) {
  if (!words.empty() && words.front().text == "echo") return 0;
  for (std::size_t i = 0; i < words.size(); ++i)
    for (const ServerProgram& program : kServerPrograms)
      if (const std::size_t n = length_of(program, words, i); n > 0) return i + n;
  return 0;
}

ServerStart start_of(const std::vector<ShellWord>& words, std::size_t first,
                     const ShellVariables& variables) {
  const auto begin = words.begin() + static_cast<std::ptrdiff_t>(first);
  ServerStart start{
      .where = words.front().where, .words = {begin, words.end()}, .environment = variables};
  for (auto word = words.begin(); word != begin; ++word)  // NAME=VALUE before the command.
    if (const std::size_t n = assigned_name(word->text); n > 0)
      start.environment[word->text.substr(0, n)] = {
          .text = word->text.substr(n + 1), .where = word->where, .unknown = word->unknown};
  return start;
}

bool is_option(const ShellWord& word) { return word.text.starts_with("-"); }

/// Puts the arguments of a script where it says `"$@"`.
void set_arguments(const std::vector<ShellWord>& arguments, ServerStart& start) {
  std::vector<ShellWord> words;
  for (const ShellWord& word : start.words) {
    if (word.text == "$@")
      words.insert(words.end(), arguments.begin(), arguments.end());
    else
      words.push_back(word);
  }
  start.words = std::move(words);
}

/// A model and flags: the `args` of a container whose image starts the server.
bool is_model_and_flags(const std::vector<ShellWord>& words) {
  return is_option(words.front()) || (words.front().text.find('/') != std::string::npos &&
                                      (words.size() == 1 || is_option(words[1])));
}

/// Devices that containers ask for, by the names of their device plug-ins.
bool is_device(const std::string& resource) {
  const std::string_view name = last_part(resource);
  constexpr std::array<std::string_view, 7> kDevices = {"gpu", "tpu",    "gaudi", "i915",
                                                        "xe",  "neuron", "npu"};
  return resource.find('/') != std::string::npos &&
         std::find(kDevices.begin(), kDevices.end(), name) != kDevices.end();
}

/// Collects the catalogue's names of accelerators in what chooses the nodes of a pod.
class NodeChoice {
 public:
  /// `map` is a pod, its labels beside it, or the values of a chart.
  explicit NodeChoice(const ConfigNode& map) {
    for (const Member& member : map.members()) {
      if (member.key == "nodeSelector") add_values(*member.value);
      if (member.key == "nodeSelectorTerms") add_expressions(*member.value);
      if (const Member* nodes = member.value->find("nodeAffinity");
          member.key == "affinity" && nodes)
        add_expressions(*nodes->value);
      if (member.key == "acceleratorTypes")
        if (const Member* values = member.value->find("labelValues")) add_list(*values->value);
      if (member.key == "resourceProfile") add_profile(*member.value);
      if (member.key == "metadata")
        if (const Member* labels = member.value->find("labels")) add_labels(*labels->value);
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

  void add_list(const ConfigNode& list) {
    for (const Ptr& item : list.items()) add(item->text(), item->where());
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
        add_list(*member.value);
  }

  std::vector<Ptr> found_;
};

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
    for (ServerStart& start : starts_) start.files = files_;
    return std::move(starts_);
  }

 private:
  struct Context {
    std::string name;
    std::string role;
    Ptr replicas;
    std::vector<Member> flags;
    ShellVariables variables;
    ShellWord image;
    std::vector<Ptr> labels;  ///< Labels of the pod, as `key=value`.
    std::vector<Ptr> accelerators;
    Ptr device;
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
    const std::string policy = logic != nullptr ? logic->text() : "roundrobin";
    std::string balancer = "production-stack-" + policy;
    std::replace(balancer.begin(), balancer.end(), '_', '-');
    if (policy == "roundrobin") {
      router.routing.push_back(routing_key("balancer", plain("round-robin", where)));
    } else if (!is_balancer(balancer)) {
      router.refused = "routerSpec.routingLogic: " + policy;
    } else {
      router.routing.push_back(routing_key("balancer", plain(balancer, where)));
      if (const Ptr key = scalar_at(values, {"routerSpec", "sessionKey"}))
        router.routing.push_back(
            routing_key("production_stack",
                        ConfigNode::make_map({{"session_key", key->where(), key}}, key->where())));
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
    const bool is_published = model != nullptr && model->text().starts_with("hf://");
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
    if (text_at(map, {"kind"}) == "ConfigMap") return note_files(map);
    note_names(map, context);
    note_accelerators(map, context);
    if (const Ptr replicas = replicas_at(map, "replicas")) context.replicas = replicas;
    if (const Member* member = map.find("parallelism"); member != nullptr)
      note_parallelism(*member->value, context);
    if (const Member* group = map.find("leaderWorkerTemplate"))
      return visit_group(*group->value, context);
    if (text_at(map, {"kind"}) == "Model" && text_at(map, {"spec", "engine"}) == "VLLM")
      return add_kubeai_model(*map.find("spec")->value, context);
    const bool is_container = map.find("image") != nullptr && map.find("containers") == nullptr &&
                              (map.find("command") != nullptr || map.find("args") != nullptr);
    if (is_container) return visit_container(map, context);
    for (const Member& member : map.members()) visit_member(member, context);
  }

  /// A choice closer to the container goes before one around it.
  static void note_accelerators(const ConfigNode& map, Context& context) {
    if (std::vector<Ptr> found = NodeChoice(map).found(); !found.empty())
      context.accelerators = std::move(found);
  }

  static void note_device(const ConfigNode& container, Context& context) {
    const Member* resources = container.find("resources");
    for (const std::string_view part : {"requests", "limits"}) {
      const Member* list = resources == nullptr ? nullptr : resources->value->find(part);
      if (list == nullptr) continue;
      for (const Member& resource : list->value->members())
        if (is_device(resource.key)) context.device = plain(resource.key, resource.key_where);
    }
  }

  void note_files(const ConfigNode& config_map) {
    const Member* data = config_map.find("data");
    if (data == nullptr) return;
    for (const Member& file : data->value->members()) files_[file.key] = file.value;
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
    if (is_map && is_disabled(*member.value)) return;
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
    const bool is_vllm = by_chart || by_image || names_vllm(words);
    if (!is_vllm) return;
    read_environment(container, context);
    note_device(container, context);
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
    start.accelerators = context.accelerators;
    start.device = context.device;
    if (start.environment.empty()) start.environment = context.variables;
    start.replicas = context.replicas;
    starts_.push_back(std::move(start));
  }

  /// An element of the vLLM production stack's `modelSpec`.
  void add_stack_model(const ConfigNode& spec, Context context) {
    note_names(spec, context);
    note_accelerators(spec, context);
    context.device = scalar_at(spec, {"requestGPUType"});
    context.replicas = replicas_at(spec, "replicaCount");
    if (const Ptr model = scalar_at(spec, {"modelURL"}))
      add_flag("model", without_scheme(model), context);
    read_environment(spec, context);
    if (const Ptr tag = scalar_at(spec, {"tag"}))
      context.image = {text_at(spec, {"repository"}) + ":" + tag->text(), tag->where()};
    ServerStart start{.where = spec.where()};
    if (const Ptr lora = scalar_at(spec, {"enableLoRA"})) add_flag("enable-lora", lora, context);
    if (text_at(spec, {"lmcacheConfig", "enabled"}) == "true")
      add_lmcache(*spec.find("lmcacheConfig")->value, context);
    if (const Member* config = spec.find("vllmConfig"))
      add_stack_flags(*config->value, start, context);
    keep(std::move(start), "", context);
  }

  /// Its chart turns these into the connector and LMCache's environment
  /// (deployment-vllm-multi.yaml).
  static void add_lmcache(const ConfigNode& config, Context& context) {
    add_flag("kv-transfer-config",
             ConfigNode::make_scalar(R"({"kv_connector": "LMCacheConnectorV1"})",
                                     ConfigNode::Style::kQuoted, config.where()),
             context);
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

  const std::string& key_path_;
  Diagnostics& diagnostics_;
  std::vector<ServerStart> starts_;
  MountedFiles files_;
};

}  // namespace

bool starts_vllm(const std::string& text) {
  return std::any_of(kServerPrograms.begin(), kServerPrograms.end(), [&](const auto& program) {
    return text.find(program.words) != std::string::npos;
  });
}

std::optional<ServerStart> start_in_text(const std::string& text, const ShellPlaces& places,
                                         const SourceLocation& where, const ShellVariables& known,
                                         const std::string& key_path, Diagnostics& diagnostics) {
  ShellVariables variables = known;
  Diagnostics found;
  std::vector<ShellCommand> commands = split_shell(text, places, variables, key_path, found);
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  if (found.has_errors()) return std::nullopt;
  for (std::size_t i = 0; i < commands.size(); ++i)
    if (const std::size_t script = script_index(commands[i]); script > 0) {
      const ShellWord& word = commands[i][script];
      const auto at = [&](int, int) { return word.where; };
      const std::vector<ShellCommand> inner =
          split_shell(word.text, at, variables, key_path, diagnostics);
      commands.insert(commands.begin() + static_cast<std::ptrdiff_t>(i) + 1, inner.begin(),
                      inner.end());
    }
  // Flags alone, one or more per line, are one command.
  if (!commands.empty() && std::all_of(commands.begin(), commands.end(),
                                       [](const auto& c) { return is_option(c.front()); })) {
    for (std::size_t i = 1; i < commands.size(); ++i)
      commands[0].insert(commands[0].end(), commands[i].begin(), commands[i].end());
    return start_of(commands[0], 0, variables);
  }
  std::vector<ServerStart> starts;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const std::size_t first = after_serve(commands[i]);
    if (first == 0) continue;
    starts.push_back(start_of(commands[i], first, variables));
    const ShellCommand* next = i + 1 < commands.size() ? &commands[i + 1] : nullptr;
    if (next != nullptr && next->front().text.starts_with("--"))
      diagnostics.error(
          next->front().where, key_path,
          "is no part of the command before it (got " + in_quotes(next->front().text) + ")",
          "end the line before with a backslash, and nothing after it");
  }
  if (starts.empty() && commands.size() == 1 && is_model_and_flags(commands.front()))
    return start_of(commands.front(), 0, variables);
  if (starts.empty())
    diagnostics.error(where, key_path, "starts no vLLM server",
                      "write vllm serve MODEL --flags, or the path of a file that does");
  if (starts.size() > 1)
    diagnostics.error(
        starts[1].where, key_path,
        "starts a second server, after the one on line " + std::to_string(starts[0].where.line),
        "give the command of one");
  return starts.size() == 1 ? std::optional<ServerStart>(std::move(starts.front())) : std::nullopt;
}

std::optional<ServerStart> start_in_scalar(const ConfigNode& scalar, const ShellVariables& known,
                                           const std::string& key_path, Diagnostics& diagnostics) {
  return start_in_text(shell_text(scalar), places_in(scalar), scalar.where(), known, key_path,
                       diagnostics);
}

std::optional<ServerStart> start_in_list(const ConfigNode& list, const ShellVariables& known,
                                         const std::string& key_path, Diagnostics& diagnostics) {
  std::vector<ShellWord> words;
  for (const Ptr& item : list.items()) {
    if (!item->is_scalar()) {
      diagnostics.error(item->where(), key_path, "must be a list of words (" + got(*item) + ")");
      return std::nullopt;
    }
    words.push_back(kubernetes_word(*item, known));
  }
  // [bash, -c, SCRIPT, NAME, ARGUMENT...]
  if (const std::size_t script = script_index(words); script > 0) {
    std::optional<ServerStart> start =
        start_in_scalar(*list.items()[script], known, key_path, diagnostics);
    const auto arguments = words.begin() + static_cast<std::ptrdiff_t>(script) + 2;
    if (start && words.size() > script + 2) set_arguments({arguments, words.end()}, *start);
    return start;
  }
  if (const std::size_t first = after_serve(words); first > 0) return start_of(words, first, known);
  const bool is_subcommand = !words.empty() && words.front().text == "serve";
  if (is_subcommand || (!words.empty() && is_model_and_flags(words)))
    return start_of(words, is_subcommand ? 1 : 0, known);
  diagnostics.error(list.where(), key_path, "starts no vLLM server (" + got(list) + ")",
                    "write the words of vllm serve MODEL --flags, or the flags alone");
  return std::nullopt;
}

std::vector<ServerStart> starts_in_tree(const ConfigNode::Ptr& root, const std::string& key_path,
                                        Diagnostics& diagnostics) {
  return Walk(key_path, diagnostics).run(root);
}

}  // namespace routesim::tools
