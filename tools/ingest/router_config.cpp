#include "tools/ingest/router_config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "policies/balancers/balancers.h"
#include "tools/ingest/config_file.h"
#include "tools/ingest/config_merge.h"
#include "tools/ingest/description.h"
#include "tools/ingest/envoy_config.h"
#include "tools/ingest/kubernetes_file.h"
#include "tools/ingest/scenario_yaml.h"
#include "tools/ingest/shell_words.h"

namespace routesim::tools {

namespace {

using Ptr = ConfigNode::Ptr;
using Member = ConfigNode::Member;

constexpr const char* kPath = "routing.config";

/// A router that is started by a command.
struct Product {
  std::string_view name;
  std::string_view section;      ///< Also the begin of its balancers' names, with hyphens.
  std::string_view policy_flag;  ///< Without dashes.
  std::string_view default_policy;
};

constexpr std::array<Product, 5> kProducts = {{
    {"SMG", "smg", "policy", "cache_aware"},
    {"the vLLM router", "vllm_router", "policy", "cache_aware"},
    {"the vLLM production stack", "production_stack", "routing-logic", ""},
    {"Dynamo", "dynamo", "router-mode", "round-robin"},
    {"Mooncake's proxy", "mooncake", "", "proxy"},
}};

const Product& product(std::string_view section) {
  return *std::find_if(kProducts.begin(), kProducts.end(),
                       [&](const Product& p) { return p.section == section; });
}

/// Flags whose meaning the scenario's pools have, or that change no decision.
constexpr std::array<std::string_view, 34> kHarmless = {"host",
                                                        "port",
                                                        "http-port",
                                                        "worker-urls",
                                                        "prefill",
                                                        "decode",
                                                        "model-path",
                                                        "model-name",
                                                        "log-dir",
                                                        "log-level",
                                                        "log-stats",
                                                        "log-stats-interval",
                                                        "prometheus-host",
                                                        "prometheus-port",
                                                        "service-discovery",
                                                        "static-backends",
                                                        "static-models",
                                                        "k8s-namespace",
                                                        "k8s-label-selector",
                                                        "pd-disaggregation",
                                                        "prefiller-hosts",
                                                        "prefiller-ports",
                                                        "prefiller-host",
                                                        "prefiller-port",
                                                        "prefiller-instance-ids",
                                                        "prefiller-registration",
                                                        "decoder-hosts",
                                                        "decoder-ports",
                                                        "decoder-host",
                                                        "decoder-port",
                                                        "conductor-address",
                                                        "modelname",
                                                        "block-size",
                                                        "query-timeout-seconds"};

bool has_flag(const ShellCommand& command, std::string_view flag) {
  return std::any_of(command.begin(), command.end(), [flag](const ShellWord& w) {
    return w.text == flag || w.text.starts_with(std::string(flag) + "=");
  });
}

/// The product that a command starts, by the names of its programs and modules.
const Product* product_of(const ShellCommand& command) {
  for (const ShellWord& word : command) {
    const std::string_view program = last_part(word.text);
    if (program == "smg" || program == "sgl-model-gateway" || program == "sglang-router" ||
        word.text.starts_with("sglang_router"))
      return &product("smg");
    if (word.text == "vllm_router.app" ||
        (program == "vllm-router" && has_flag(command, "--routing-logic")))
      return &product("production_stack");
    if (program == "vllm-router" || word.text.starts_with("vllm_router"))
      return &product("vllm_router");
    if (word.text == "dynamo.frontend") return &product("dynamo");
    if (program == "cache_aware_disagg_proxy.py") return &product("mooncake");
  }
  return nullptr;
}

std::string with_hyphens(std::string text) {
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

/// The keys of a section of `routing`; empty where no balancer has it.
std::vector<std::string> section_keys(std::string_view section) {
  policies::BalancerSettings settings;
  const FieldDescription all =
      describe_types([&settings](Describer& d) { policies::describe(d, settings); });
  std::vector<std::string> keys;
  for (const FieldDescription& field : all.members)
    if (field.name == section)
      for (const FieldDescription& key : field.members) keys.push_back(key.name);
  return keys;
}

/// One flag with its value, `true` where it has none.
struct Flag {
  std::string name;
  SourceLocation where;
  Ptr value;
};

std::vector<Flag> flags_of(const ShellCommand& command) {
  std::vector<Flag> flags;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const ShellWord& word = command[i];
    if (!word.text.starts_with("--")) continue;
    const std::size_t equals = word.text.find('=');
    Flag flag{.name = word.text.substr(2, equals == std::string::npos ? equals : equals - 2),
              .where = word.where,
              .value = nullptr};
    const auto scalar = [](const std::string& text, const SourceLocation& where) {
      return ConfigNode::make_scalar(text, ConfigNode::Style::kUntyped, where);
    };
    if (equals != std::string::npos)
      flag.value = scalar(word.text.substr(equals + 1), word.where);
    else if (i + 1 < command.size() && !command[i + 1].text.starts_with("--"))
      flag.value = scalar(command[i + 1].text, command[i + 1].where);
    else
      flag.value = scalar("true", word.where);
    flags.push_back(std::move(flag));
  }
  return flags;
}

/// Collects the keys of `routing`.
class RouterKeys {
 public:
  explicit RouterKeys(Diagnostics& diagnostics) : unread_(diagnostics) {}

  void set(const std::string& key, const Ptr& value) {
    members_.push_back({key, value->where(), value});
  }
  void unread(const std::string& key, const SourceLocation& where, Fate fate) {
    unread_.add(key, where, fate);
  }
  Ptr map(const SourceLocation& where) { return ConfigNode::make_map(std::move(members_), where); }

 private:
  UnreadKeys unread_;
  std::vector<Member> members_;
};

/// The balancer of a policy by its product's name, or an error.
Ptr balancer_node(std::string_view section, const std::string& policy, const SourceLocation& where,
                  Diagnostics& diagnostics) {
  const std::string name = with_hyphens(std::string(section) + "-" + policy);
  std::string known;
  for (const policies::BalancerRow& row : policies::kBalancers) {
    if (row.section == section) known += (known.empty() ? "" : ", ") + std::string(row.name);
    if (row.name == name) return ConfigNode::make_scalar(name, ConfigNode::Style::kPlain, where);
  }
  diagnostics.error(where, kPath,
                    "names a policy that is not simulated (got " + printable(policy) + ")",
                    "simulated: " + known);
  return nullptr;
}

/// The key of a section that a flag sets, and its value; `--no-NAME` sets NAME to false. The key is
/// empty where the section has none.
std::pair<std::string, Ptr> setting_of(const Flag& flag, const std::vector<std::string>& known) {
  std::string key = flag.name;
  std::replace(key.begin(), key.end(), '-', '_');
  const auto is_known = [&known](const std::string& name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  };
  if (is_known(key)) return {key, flag.value};
  if (key.starts_with("no_") && is_known(key.substr(3)))
    return {key.substr(3),
            ConfigNode::make_scalar("false", ConfigNode::Style::kUntyped, flag.where)};
  return {};
}

Ptr from_command(const ShellCommand& command, const Product& product, Diagnostics& diagnostics) {
  RouterKeys keys(diagnostics);
  const std::vector<std::string> known = section_keys(product.section);
  std::vector<Member> settings;
  std::string policy(product.default_policy);
  SourceLocation where = command.front().where;
  for (const Flag& flag : flags_of(command)) {
    if (flag.name == product.policy_flag) {
      policy = flag.value->text();
      where = flag.value->where();
      diagnostics.key(key_use(flag.where, kRouterConfigFormat, flag.name, Fate::kUsed, ""));
      continue;
    }
    const auto [key, value] = setting_of(flag, known);
    if (key.empty()) {
      const bool harmless =
          std::find(kHarmless.begin(), kHarmless.end(), flag.name) != kHarmless.end();
      keys.unread("--" + flag.name, flag.where, harmless ? Fate::kNoEffect : Fate::kNotModelled);
      continue;
    }
    diagnostics.key(key_use(flag.where, kRouterConfigFormat, flag.name, Fate::kUsed, ""));
    settings.push_back({key, flag.where, value});
  }
  if (policy.empty()) {
    diagnostics.error(where, kPath, "does not say --" + std::string(product.policy_flag));
    return nullptr;
  }
  const Ptr balancer = balancer_node(product.section, policy, where, diagnostics);
  if (balancer == nullptr) return nullptr;
  keys.set("balancer", balancer);
  if (!settings.empty())
    keys.set(std::string(product.section), ConfigNode::make_map(std::move(settings), where));
  return keys.map(where);
}

/// The variable with which AIBrix's gateway is started, and the header with which a client chooses
/// (pkg/plugins/gateway/{util,types}.go @e3e10f9e).
constexpr std::string_view kAibrixVariable = "ROUTING_ALGORITHM";
constexpr std::string_view kAibrixHeader = "routing-strategy";
constexpr std::string_view kAibrixPrefix = "AIBRIX_";

bool is_aibrix_name(std::string_view name) {
  return name == kAibrixVariable || name == kAibrixHeader || name.starts_with(kAibrixPrefix);
}

/// Environment variables and headers of AIBrix in manifests and Helm values: a list of `name` and
/// `value`, or a map.
void find_aibrix_values(const ConfigNode& node, std::vector<Member>& out) {
  if (node.is_sequence())
    for (const Ptr& item : node.items()) find_aibrix_values(*item, out);
  if (!node.is_map()) return;
  const Member* name = node.find("name");
  const Member* value = node.find("value");
  if (name != nullptr && value != nullptr && value->value->is_scalar() &&
      is_aibrix_name(name->value->text())) {
    out.push_back({name->value->text(), name->value->where(), value->value});
    return;
  }
  for (const Member& m : node.members())
    if (is_aibrix_name(m.key) && m.value->is_scalar())
      out.push_back(m);
    else
      find_aibrix_values(*m.value, out);
}

/// The same in a command or a script: `export NAME=VALUE`, `-H "routing-strategy: VALUE"`.
void find_aibrix_values(const ShellCommand& command, std::vector<Member>& out) {
  for (const ShellWord& word : command) {
    const std::size_t end = word.text.find_first_of("=:");
    if (end == std::string::npos || !is_aibrix_name(word.text.substr(0, end))) continue;
    const std::string value(trimmed(std::string_view(word.text).substr(end + 1)));
    out.push_back({word.text.substr(0, end), word.where,
                   ConfigNode::make_scalar(value, ConfigNode::Style::kUntyped, word.where)});
  }
}

/// Null, without an error, where nothing chooses AIBrix's algorithm. A header goes before the
/// variable, as in the gateway.
Ptr from_aibrix(const std::vector<Member>& values, Diagnostics& diagnostics) {
  const Member* chosen = nullptr;
  for (const std::string_view key : {kAibrixHeader, kAibrixVariable})
    for (const Member& m : values)
      if (chosen == nullptr && m.key == key) chosen = &m;
  if (chosen == nullptr) return nullptr;
  const Ptr balancer =
      balancer_node("aibrix", chosen->value->text(), chosen->value->where(), diagnostics);
  if (balancer == nullptr) return nullptr;
  RouterKeys keys(diagnostics);
  keys.set("balancer", balancer);
  const std::vector<std::string> known = section_keys("aibrix");
  std::vector<Member> settings;
  for (const Member& m : values) {
    if (!m.key.starts_with(kAibrixPrefix)) continue;
    std::string key = m.key.substr(kAibrixPrefix.size());
    std::transform(key.begin(), key.end(), key.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      keys.unread(m.key, m.key_where, Fate::kNotModelled);
      continue;
    }
    diagnostics.key(key_use(m.key_where, kRouterConfigFormat, m.key, Fate::kUsed, ""));
    const std::string text = m.value->text();  // Kubernetes has variables in quotes.
    settings.push_back(
        {key, m.key_where,
         ConfigNode::make_scalar(text, ConfigNode::Style::kUntyped, m.value->where())});
  }
  if (!settings.empty())
    keys.set("aibrix", ConfigNode::make_map(std::move(settings), chosen->key_where));
  return keys.map(chosen->key_where);
}

Ptr from_text(const std::string& text, const ShellPlaces& places, const SourceLocation& where,
              Diagnostics& diagnostics) {
  ShellVariables variables;
  std::vector<Member> aibrix;
  for (const ShellCommand& command : split_shell(text, places, variables, kPath, diagnostics)) {
    if (const Product* started = product_of(command))
      return from_command(command, *started, diagnostics);
    find_aibrix_values(command, aibrix);
  }
  for (const auto& [name, value] : variables)
    if (is_aibrix_name(name))
      aibrix.push_back(
          {name, value.where,
           ConfigNode::make_scalar(value.text, ConfigNode::Style::kUntyped, value.where)});
  if (Ptr routing = from_aibrix(aibrix, diagnostics)) return routing;
  if (diagnostics.has_errors()) return nullptr;
  diagnostics.error(where, kPath, "starts no router that is simulated",
                    "known programs: smg, sgl-model-gateway, sglang_router, vllm-router, "
                    "vllm_router.app, dynamo.frontend, cache_aware_disagg_proxy.py; AIBrix's "
                    "ROUTING_ALGORITHM; and Envoy's and Kubernetes' files");
  return nullptr;
}

/// Arguments of containers in a manifest or in Helm values, as one command each.
void find_commands(const ConfigNode& node, std::vector<ShellCommand>& out) {
  if (node.is_sequence())
    for (const Ptr& item : node.items()) find_commands(*item, out);
  if (!node.is_map()) return;
  ShellCommand command;
  for (const char* key : {"command", "args"}) {
    const ConfigNode* words = node.child(key);
    if (words == nullptr || !words->is_sequence()) continue;
    for (const Ptr& word : words->items())
      if (word->is_scalar()) command.push_back({.text = word->text(), .where = word->where()});
  }
  if (!command.empty()) out.push_back(std::move(command));
  for (const Member& m : node.members()) find_commands(*m.value, out);
}

/// Helm values of the production stack.
Ptr from_stack_values(const ConfigNode& root, Diagnostics& diagnostics) {
  const ConfigNode* spec = root.child("routerSpec");
  const ConfigNode* logic = spec != nullptr ? spec->child("routingLogic") : nullptr;
  if (logic == nullptr) return nullptr;
  RouterKeys keys(diagnostics);
  const Ptr balancer =
      balancer_node("production_stack", logic->text(), logic->where(), diagnostics);
  if (balancer == nullptr) return nullptr;
  keys.set("balancer", balancer);
  const std::vector<std::string> known = section_keys("production_stack");
  std::vector<Member> settings;
  if (const ConfigNode* key = spec->child("sessionKey"); key != nullptr && key->is_scalar())
    settings.push_back({"session_key", key->where(),
                        ConfigNode::make_scalar(key->text(), key->style(), key->where())});
  for (const Member& m : spec->members())
    if (m.key != "routingLogic" && m.key != "sessionKey")
      keys.unread("routerSpec." + m.key, m.key_where,
                  m.key == "extraArgs" ? Fate::kNotModelled : Fate::kNoEffect);
  if (!settings.empty())
    keys.set("production_stack", ConfigNode::make_map(std::move(settings), spec->where()));
  return keys.map(spec->where());
}

/// The policy of a class of Ray's, by the last part of its path; the class itself where it has
/// none.
std::string ray_policy(const std::string& path) {
  const std::string name = path.substr(path.find_last_of(".:") + 1);
  if (name == "PowerOfTwoChoicesRequestRouter") return "power-of-two";
  if (name == "PrefixCacheAffinityRouter") return "prefix-cache-affinity";
  return name;
}

/// Ray Serve LLM: a Serve config, an LLMConfig, or the deployment's part of one.
Ptr from_ray(const ConfigNode& root, Diagnostics& diagnostics) {
  const ConfigNode* llm = first_with(root, {"model_loading_config"});
  const ConfigNode* deployment = first_with(root, {"request_router_config"});
  if (deployment == nullptr && llm != nullptr) deployment = llm->child("deployment_config");
  if (llm == nullptr && deployment == nullptr) return nullptr;
  if (const ConfigNode* pd = first_with(root, {"prefill_config", "decode_config"})) {
    diagnostics.error(pd->where(), kPath, "has prefill and decode deployments of Ray Serve LLM",
                      "simulated: one deployment; name the router of one in its place");
    return nullptr;
  }
  if (count_with(root, "model_loading_config") > 1 ||
      count_with(root, "request_router_config") > 1) {
    diagnostics.error(root.where(), kPath, "holds several deployments of Ray Serve",
                      "one balancer serves all pools: give the configuration of one deployment");
    return nullptr;
  }
  RouterKeys keys(diagnostics);
  const std::vector<std::string> known = section_keys("ray");
  std::vector<Member> settings;
  std::string policy = "power-of-two";
  SourceLocation where = root.where();
  const auto take = [&](const Member& m, Fate otherwise) {
    if (std::find(known.begin(), known.end(), m.key) != known.end())
      settings.push_back(m);
    else
      keys.unread(m.key, m.key_where, otherwise);
  };
  const auto members = [](const ConfigNode* map) {
    return map != nullptr && map->is_map() ? map->members() : std::vector<Member>();
  };
  for (const Member& m : members(llm))
    if (m.key != "deployment_config") keys.unread(m.key, m.key_where, Fate::kNoEffect);
  for (const Member& m : members(deployment))
    if (m.key != "request_router_config")
      take(m, m.key == "max_queued_requests" || m.key == "autoscaling_config" ? Fate::kNotModelled
                                                                              : Fate::kNoEffect);
  const ConfigNode* router =
      deployment != nullptr ? deployment->child("request_router_config") : nullptr;
  for (const Member& m : members(router)) {
    if (m.key == "request_router_class") {
      policy = ray_policy(m.value->text());
      where = m.value->where();
    } else if (m.key == "request_router_kwargs") {
      for (const Member& k : members(m.value.get())) take(k, Fate::kNotModelled);
    } else {
      take(m, Fate::kNoEffect);
    }
  }
  const Ptr balancer = balancer_node("ray", policy, where, diagnostics);
  if (balancer == nullptr) return nullptr;
  keys.set("balancer", balancer);
  if (!settings.empty()) keys.set("ray", ConfigNode::make_map(std::move(settings), where));
  return keys.map(where);
}

/// The configuration of Mooncake's proxy: it names servers, and nothing that it decides by.
Ptr from_mooncake(const ConfigNode& root, Diagnostics& diagnostics) {
  if (!root.is_map() || root.find("conductor") == nullptr || root.find("prefill") == nullptr)
    return nullptr;
  RouterKeys keys(diagnostics);
  keys.set("balancer", balancer_node("mooncake", "proxy", root.where(), diagnostics));
  for (const Member& m : root.members()) keys.unread(m.key, m.key_where, Fate::kNoEffect);
  return keys.map(root.where());
}

/// A profile of AIBrix's GPU optimizer, or a list of them.
Ptr from_aibrix_profiles(const Ptr& root, Diagnostics& diagnostics) {
  const auto is_profile = [](const Ptr& node) {
    return node->is_map() && node->find("tputs") != nullptr && node->find("indexes") != nullptr;
  };
  const bool is_list = root->is_sequence() && !root->items().empty();
  if (!is_profile(is_list ? root->items().front() : root)) return nullptr;
  RouterKeys keys(diagnostics);
  keys.set("balancer", balancer_node("aibrix", "slo", root->where(), diagnostics));
  const Ptr list = is_list ? root : ConfigNode::make_sequence({root}, root->where());
  keys.set("aibrix", ConfigNode::make_map({{"profiles", root->where(), list}}, root->where()));
  return keys.map(root->where());
}

Ptr from_tree(const Ptr& root, Diagnostics& diagnostics) {
  if (Ptr envoy = envoy_routing(*root, diagnostics)) return envoy;
  if (Ptr stack = from_stack_values(*root, diagnostics)) return stack;
  if (Ptr ray = from_ray(*root, diagnostics)) return ray;
  if (Ptr mooncake = from_mooncake(*root, diagnostics)) return mooncake;
  if (Ptr profiles = from_aibrix_profiles(root, diagnostics)) return profiles;
  if (diagnostics.has_errors()) return nullptr;
  std::vector<Member> aibrix;
  find_aibrix_values(*root, aibrix);
  if (Ptr routing = from_aibrix(aibrix, diagnostics)) return routing;
  if (diagnostics.has_errors()) return nullptr;
  std::vector<ShellCommand> commands;
  find_commands(*root, commands);
  for (const ShellCommand& command : commands)
    if (const Product* started = product_of(command))
      return from_command(command, *started, diagnostics);
  diagnostics.error(root->where(), kPath, "holds no router configuration that is simulated",
                    "known: a cluster or a BackendTrafficPolicy of Envoy, Helm values with "
                    "routerSpec, AIBrix's ROUTING_ALGORITHM or GPU profiles, an LLMConfig of Ray "
                    "Serve, Mooncake's proxy, and containers that start SMG, the vLLM router or "
                    "Dynamo");
  return nullptr;
}

bool is_yaml(const std::string& path) {
  return path.ends_with(".yaml") || path.ends_with(".yml") || path.ends_with(".json");
}

/// A path, a command, or a document in place.
Ptr read(const Ptr& value, Diagnostics& diagnostics) {
  if (!value->is_scalar()) return from_tree(value, diagnostics);
  const std::string& text = value->text();
  const bool is_path = text.find_first_of(" \n") == std::string::npos;
  if (!is_path)
    return from_text(shell_text(*value), places_in(*value), value->where(), diagnostics);
  const std::string path = resolve_path(text, value->where());
  if (is_yaml(path)) {
    const Ptr root = read_manifest_file(path, value->where(), kPath, diagnostics);
    return root != nullptr ? from_tree(root, diagnostics) : nullptr;
  }
  std::string script;
  if (!read_text_file(path, value->where(), kPath, ConfigLimits{}.max_bytes, script, diagnostics))
    return nullptr;
  return from_text(script, places_in_file(path), value->where(), diagnostics);
}

}  // namespace

Ptr with_router_config(const Ptr& root, Diagnostics& diagnostics) {
  return change_member(root, "routing", [&](const Ptr& routing) -> Ptr {
    if (!routing->is_map() || routing->find("config") == nullptr) return routing;
    std::vector<Member> own;
    for (const Member& m : routing->members())
      if (m.key != "config") own.push_back(m);
    const Ptr beside = ConfigNode::make_map(std::move(own), routing->where());
    const Ptr said = read(routing->find("config")->value, diagnostics);
    return said != nullptr ? merge_configs(said, beside) : beside;
  });
}

}  // namespace routesim::tools
