#include "tools/ingest/routers/router_config.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "policies/balancers/balancers.h"
#include "tools/ingest/routers/endpoint_picker_yaml.h"
#include "tools/ingest/routers/envoy_config.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/kubernetes_file.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/ingest/tree/shell_words.h"

namespace routesim::tools {

namespace {

constexpr const char* kPath = "routing.config";

/// A router that is started by a command, and where its release may stand.
struct Product {
  std::string_view section;      ///< Its balancers' names begin so, with hyphens.
  std::string_view policy_flag;  ///< Without dashes.
  std::string_view default_policy;
  std::string_view variables;  ///< Its environment variables begin so.
  std::string_view packages;   ///< On package registries.
  std::string_view images;     ///< Last parts of image names.
};

const std::vector<Product>& products() {
  static const DataTable kRows = data_table("tools/ingest/routers/router_products.csv");
  static const std::vector<Product> kProducts = [] {
    std::vector<Product> products;
    for (const auto& row : kRows)
      products.push_back({row.at(0), row.at(1), row.at(2), row.at(3), row.at(4), row.at(5)});
    return products;
  }();
  return kProducts;
}

/// Second names of flags and variables: a product's section, the name, and the setting, `!` before
/// one that they switch off. Names without a setting are those of flags and variables whose meaning
/// the scenario's pools have, or that change no decision.
const DataTable& flag_names() {
  static const DataTable kRows = data_table("tools/ingest/routers/router_flags.csv");
  return kRows;
}

/// Dynamo's --load-aware (components/src/dynamo/common/configuration/groups/kv_router_args.py).
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kLoadAware = {{
    {"router_kv_overlap_score_credit", "0"},
    {"router_kv_events", "false"},
    {"router_track_active_blocks", "true"},
    {"router_assume_kv_reuse", "false"},
    {"router_track_prefill_tokens", "true"},
}};

const Product& product(std::string_view section) {
  return *std::ranges::find(products(), section, &Product::section);
}

bool is_harmless(const std::string& name) {
  return std::ranges::any_of(
      flag_names(), [&](const auto& row) { return row[2].empty() && has_word(row[1], name); });
}

bool has_flag(const ShellCommand& command, std::string_view flag) {
  return std::any_of(command.begin(), command.end(), [flag](const ShellWord& w) {
    return w.text == flag || w.text.starts_with(std::string(flag) + "=");
  });
}

/// The product that a command starts, by the names of its programs, modules and images.
const Product* product_of(const ShellCommand& command) {
  for (const ShellWord& word : command) {
    std::string_view program = last_part(word.text);
    program = program.substr(0, program.find(':'));
    if (program == "smg" || program == "sgl-model-gateway" || program == "sglang-router" ||
        word.text.starts_with("sglang_router") || word.text.starts_with("smg.launch_"))
      return &product("smg");
    if (word.text == "vllm_router.app" || program == "lmstack-router" ||
        (program == "vllm-router" && has_flag(command, "--routing-logic")))
      return &product("production_stack");
    if (program == "vllm-router" || word.text.starts_with("vllm_router"))
      return &product("vllm_router");
    if (word.text == "dynamo.frontend") return &product("dynamo");
    if (program == "cache_aware_disagg_proxy.py") return &product("mooncake");
  }
  return nullptr;
}

/// The keys of a section of `routing`; empty where no balancer has it.
std::vector<FieldDescription> section_fields(std::string_view section) {
  policies::BalancerSettings settings;
  const FieldDescription all =
      describe_types([&settings](Describer& d) { policies::describe(d, settings); });
  for (const FieldDescription& field : all.members)
    if (field.name == section) return field.members;
  return {};
}
bool has_key(const std::vector<FieldDescription>& fields, std::string_view name) {
  return std::any_of(fields.begin(), fields.end(),
                     [&](const FieldDescription& f) { return f.name == name; });
}

/// One flag or variable with its value, `true` where it has none.
struct Flag {
  std::string name;  ///< As a flag: lower case, hyphens.
  SourceLocation where;
  Ptr value;
  std::string written;  ///< `--flag` or `VARIABLE`.
};

/// The flags of a command; with a prefix only those that have it.
std::vector<Flag> flags_of(const ShellCommand& command, std::string_view prefix) {
  std::vector<Flag> flags;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const ShellWord& word = command[i];
    if (!word.text.starts_with("--")) continue;
    const std::size_t equals = word.text.find('=');
    const std::string name = word.text.substr(2, equals == std::string::npos ? equals : equals - 2);
    const bool has_value = i + 1 < command.size() && !command[i + 1].text.starts_with("--");
    const Ptr value = equals != std::string::npos
                          ? untyped(word.text.substr(equals + 1), word.where)
                      : has_value ? untyped(command[i + 1].text, command[i + 1].where)
                                  : untyped("true", word.where);
    if (name.starts_with(prefix))
      flags.push_back({name.substr(prefix.size()), word.where, value, "--" + name});
  }
  return flags;
}

/// Variables before a command's program, as flags: `VAR=x command`, `env VAR=x command`.
std::vector<Flag> variables_of(const ShellCommand& command, const Product& product) {
  std::vector<Flag> flags;
  for (const ShellWord& word : command) {
    const std::size_t n = assigned_name(word.text);
    if (word.text.starts_with("--") || product.variables.empty()) break;
    if (n == 0 || !word.text.starts_with(product.variables)) continue;
    const std::string name =
        word.text.substr(product.variables.size(), n - product.variables.size());
    flags.push_back({with_hyphens(lower_case(name)), word.where,
                     untyped(word.text.substr(n + 1), word.where), word.text.substr(0, n)});
  }
  return flags;
}

/// Collects the keys of `routing` for the balancer of one product.
class RouterKeys {
 public:
  RouterKeys(std::string_view section, Diagnostics& diagnostics)
      : section_(section), diagnostics_(diagnostics), unread_(diagnostics) {}

  /// Takes the balancer by its product's name; false, with an error, when there is none.
  bool choose(const std::string& policy, const SourceLocation& where) {
    const std::string name = with_hyphens(std::string(section_) + "-" + policy);
    std::string known;
    for (const policies::BalancerRow& row : policies::kBalancers) {
      if (row.section == section_) add_word(known, row.name);
      if (row.name == name) balancer_ = plain(name, where);
    }
    if (balancer_ == nullptr)
      diagnostics_.error(where, kPath,
                         "names a policy that is not simulated (got " + printable(policy) + ")",
                         "simulated: " + known);
    return balancer_ != nullptr;
  }
  void unread(const std::string& key, const SourceLocation& where, Fate fate) {
    unread_.add(key, where, fate);
  }
  /// Takes a flag about retries; false where it is none. Their number counts tries, of which there
  /// is always one (model_gateway/src/routers/common/retry.rs of smg).
  bool take_retries(const Flag& flag) {
    if (section_ != "smg" && section_ != "vllm_router") return false;
    if (flag.name == "disable-retries") {
      if (flag.value->text() == "true") retries_ = plain("0", flag.where);
      return true;
    }
    if (flag.name != "retry-max-retries") return false;
    const Parsed<std::int64_t> tries = parse_integer(*flag.value, {0, 1'000});
    if (!tries.value)
      diagnostics_.error(flag.where, kPath, flag.written + " " + tries.message, tries.hint);
    else if (retries_ == nullptr || retries_->text() != "0")
      retries_ = plain(std::to_string(std::max<std::int64_t>(1, *tries.value) - 1), flag.where);
    return true;
  }
  /// The keys, those of the section at `where`.
  Ptr map(const SourceLocation& where) {
    Members members;
    add_member(members, "balancer", balancer_);
    add_member(members, "retries", retries_);
    if (!settings.empty())
      members.push_back(
          {std::string(section_), where, ConfigNode::make_map(std::move(settings), where)});
    return ConfigNode::make_map(std::move(members), where);
  }

  Members settings;  ///< Those of the section; a later value takes the place of an earlier one.

 private:
  std::string_view section_;
  Diagnostics& diagnostics_;
  UnreadKeys unread_;
  Ptr balancer_, retries_;
};

/// The key of a section that a name sets, `!` before one that it switches off; "" where the section
/// has none.
std::string key_of(const Product& product, std::string name,
                   const std::vector<FieldDescription>& known) {
  name = with_underscores(std::move(name));
  if (has_key(known, name)) return name;
  for (const auto& row : flag_names())
    if (row[0] == product.section && row[1] == name) return row[2];
  for (const std::string_view unit : {"_secs", "_seconds"})
    if (name.ends_with(unit) && has_key(known, name.substr(0, name.size() - unit.size())))
      return name.substr(0, name.size() - unit.size());
  if (name.starts_with("no_") && has_key(known, name.substr(3))) return "!" + name.substr(3);
  return {};
}

/// The same for the unambiguous beginning of a flag, which Python's argparse takes.
std::string key_that_begins(const Product& product, const Flag& flag,
                            const std::vector<FieldDescription>& known, Diagnostics& diagnostics) {
  std::string key = key_of(product, flag.name, known);
  if (!key.empty() || flag.name.size() < 3 || is_harmless(flag.name)) return key;
  const std::string beginning = with_underscores(flag.name);
  std::string names;
  const auto add = [&](const std::string& name, const std::string& setting) {
    if (!name.starts_with(beginning)) return;
    key = setting;
    names += (names.empty() ? "--" : ", --") + with_hyphens(name);
  };
  for (const FieldDescription& field : known)
    if (field.name != "release") add(field.name, field.name);  // No product has it as a flag.
  add(with_underscores(std::string(product.policy_flag)), std::string(product.policy_flag));
  for (const auto& row : flag_names())
    if (row[0] == product.section) add(row[1], row[2]);
  if (names.find(',') == std::string::npos) return key;
  diagnostics.error(flag.where, kPath,
                    "is the beginning of several flags (got " + flag.written + ")", names);
  return {};
}

/// Words that switch something on or off, as the products' readers of variables take them.
Ptr as_boolean(const Ptr& value) {
  std::string text = lower_case(value->text());
  if (text == "1" || text == "yes" || text == "on") text = "true";
  if (text == "0" || text == "no" || text == "off") text = "false";
  return untyped(text, value->where());
}

/// A command with the variables that it is started with, and the release that its file states.
struct Launch {
  ShellCommand command;
  Ptr release = nullptr;
};

/// The release of a product in `NAME==1.2`, `NAME[extra]==1.2` or an image `…/NAME:v1.2-tag`.
std::string release_in(std::string_view word, const Product& product) {
  const auto is_named = [](std::string_view names, std::string_view name) {
    return has_word(names, with_hyphens(std::string(name)));
  };
  const auto digits = [](std::string_view version) {
    const std::size_t v = version.starts_with('v') ? 1 : 0;
    return std::string(version.substr(v, version.find_first_not_of("0123456789.", v) - v));
  };
  if (const std::size_t at = word.find("=="); at != std::string_view::npos) {
    const std::string_view name = word.substr(0, std::min(at, word.find('[')));
    return is_named(product.packages, name) ? digits(word.substr(at + 2)) : "";
  }
  const std::string_view image = last_part(word);
  const std::size_t colon = image.find(':');
  if (colon == std::string_view::npos || !is_named(product.images, image.substr(0, colon)))
    return {};
  return digits(image.substr(colon + 1));
}

/// A release with a point in it; null for other text.
Ptr release_node(std::string_view word, const Product& product, const SourceLocation& where) {
  const std::string release = release_in(word, product);
  return release.find('.') != std::string::npos ? untyped(release, where) : nullptr;
}

/// The first release of a product below a node.
Ptr find_release_below(const ConfigNode& node, const Product& product) {
  for (const std::string_view word : words_of(node.text()))
    if (Ptr release = release_node(word, product, node.where())) return release;
  const Ptr image = scalar_at(node, {"repository"}), tag = scalar_at(node, {"tag"});
  if (image != nullptr && tag != nullptr)
    if (Ptr release = release_node(image->text() + ":" + tag->text(), product, tag->where()))
      return release;
  for (const Ptr& child : children_of(node))
    if (Ptr found = find_release_below(*child, product)) return found;
  return nullptr;
}

bool starts(const ShellCommand& command, std::string_view program) {
  return std::any_of(command.begin(), command.end(), [program](const ShellWord& w) {
    return w.text == program || last_part(w.text) == program;
  });
}
bool starts_servers(const ShellCommand& command) {
  return starts(command, "sglang_router.launch_server") ||
         (starts(command, "smg") && starts(command, "serve"));
}

/// Launchers also start the servers, which the scenario's pools stand for.
void warn_of_servers(const ShellCommand& command, Diagnostics& diagnostics) {
  std::string model, count = "1", engine = "SGLang";
  for (const Flag& flag : flags_of(command, "")) {
    if (flag.name == "model-path" || flag.name == "model") model = flag.value->text();
    if (flag.name == "dp-size" || flag.name == "data-parallel-size") count = flag.value->text();
    if (flag.name == "backend") engine = flag.value->text();
  }
  diagnostics.warning(command.front().where, kPath,
                      "also starts servers, which are not read: " + count + " of " + engine +
                          (model.empty() ? "" : " with " + printable(model)),
                      "the scenario's pools stand for them");
}

/// Launchers in Python, whose argparse takes the beginnings of flags.
bool is_sglang_python(const ShellCommand& command) {
  return std::any_of(command.begin(), command.end(), [](const ShellWord& w) {
    return w.text.starts_with("sglang_router") || last_part(w.text) == "sglang-router" ||
           w.text.starts_with("smg.launch_");
  });
}
bool is_argparse(const ShellCommand& command, const Product& product) {
  return is_sglang_python(command) || product.section == "dynamo" ||
         product.section == "production_stack" || starts(command, "python3") ||
         starts(command, "python");
}

/// Sets what a program has before its flags are read, and the release that its file states.
void set_launch_defaults(const Launch& launch, Members& settings) {
  const ShellCommand& command = launch.command;
  const SourceLocation& where = command.front().where;
  const bool is_python = is_sglang_python(command);
  // sglang-router ends at 0.3.2.
  if ((is_python && !starts(command, "smg.launch_router")) || starts(command, "sgl-model-gateway"))
    put_member(settings, {"release", where, untyped("0.3.2", where)});
  if (is_python) put_member(settings, {"eviction_interval", where, untyped("60s", where)});
  if (launch.release != nullptr)
    put_member(settings, {"release", launch.release->where(), launch.release});
}

/// A flag without a setting.
void warn_of_flag(const Flag& flag, const Product& product, RouterKeys& keys,
                  Diagnostics& diagnostics) {
  if (has_word("worker-urls static-backends prefill decode", flag.name) ||
      (flag.name == "service-discovery" && flag.value->text() == "static"))
    return diagnostics.key(key_use(flag.where, kRouterConfigFormat, flag.written,
                                   Fate::kApproximated,
                                   "the router hears of servers as from Kubernetes, unless "
                                   "routing.discovery says otherwise"));
  keys.unread(flag.written, flag.where,
              is_harmless(flag.name) ? Fate::kNoEffect : Fate::kNotModelled);
  if (product.section == "dynamo" &&
      (flag.name == "router-policy-config" || flag.name == "router-prefill-policy" ||
       flag.name == "router-decode-policy"))
    diagnostics.warning(flag.where, kPath,
                        "chooses another policy than the KV cost function, which is simulated in "
                        "its place: " +
                            flag.written);
}

/// Puts the value of a flag under its key, `!` before one that it switches off.
void set_flag(Members& settings, const std::string& key, const Flag& flag,
              const std::vector<FieldDescription>& known) {
  const auto at = std::ranges::find(known, key, &FieldDescription::name);
  if (key.starts_with('!'))
    put_member(settings, {key.substr(1), flag.where, untyped("false", flag.where)});
  else if (at->kind == FieldDescription::Kind::kBool)
    put_member(settings, {key, flag.where, as_boolean(flag.value)});
  else if (flag.value->text() != "None")
    put_member(settings, {key, flag.where, flag.value});
}

Ptr from_launch(const Launch& launch, const Product& product, Diagnostics& diagnostics) {
  RouterKeys keys(product.section, diagnostics);
  const ShellCommand& command = launch.command;
  const std::vector<FieldDescription> known = section_fields(product.section);
  set_launch_defaults(launch, keys.settings);
  std::string policy(product.default_policy);
  SourceLocation where = command.front().where;
  std::vector<Flag> flags = variables_of(command, product);
  const bool with_servers = product.section == "smg" && starts_servers(command);
  for (Flag& flag : flags_of(command, with_servers ? "router-" : ""))
    flags.push_back(std::move(flag));
  if (with_servers) warn_of_servers(command, diagnostics);
  for (const Flag& flag : flags) {
    const std::string key = flag.name == product.policy_flag ? flag.name
                            : is_argparse(command, product)
                                ? key_that_begins(product, flag, known, diagnostics)
                                : key_of(product, flag.name, known);
    const bool is_policy = !key.empty() && key == product.policy_flag;
    const bool retries = keys.take_retries(flag);
    const bool by_load =
        key == "load_aware" || (product.section == "dynamo" && flag.name == "load-aware");
    if (!is_policy && !by_load && !retries && key.empty()) {
      warn_of_flag(flag, product, keys, diagnostics);
      continue;
    }
    diagnostics.key(key_use(flag.where, kRouterConfigFormat, flag.name, Fate::kUsed, ""));
    if (is_policy) {
      policy = flag.value->text();
      where = flag.value->where();
    } else if (!by_load && !retries) {
      set_flag(keys.settings, key, flag, known);
    } else if (by_load && as_boolean(flag.value)->text() == "true") {
      policy = "kv";
      for (const auto& [name, value] : kLoadAware)
        put_member(keys.settings,
                   {std::string(name), flag.where, untyped(std::string(value), flag.where)});
    }
  }
  if (policy.empty()) {
    diagnostics.error(where, kPath, "does not say --" + std::string(product.policy_flag));
    return nullptr;
  }
  return keys.choose(policy, where) ? keys.map(where) : nullptr;
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
void find_aibrix_values(const ConfigNode& node, Members& out) {
  const Member* name = node.find("name");
  const Ptr value = scalar_at(node, {"value"});
  if (name != nullptr && value != nullptr && is_aibrix_name(name->value->text())) {
    out.push_back({name->value->text(), name->value->where(), value});
    return;
  }
  for (const Ptr& item : node.items()) find_aibrix_values(*item, out);
  for (const Member& m : node.members())
    if (is_aibrix_name(m.key) && m.value->is_scalar())
      out.push_back(m);
    else
      find_aibrix_values(*m.value, out);
}

/// The same in a command or a script: `export NAME=VALUE`, `-H "routing-strategy: VALUE"`.
void find_aibrix_values(const ShellCommand& command, Members& out) {
  for (const ShellWord& word : command) {
    const std::size_t end = word.text.find_first_of("=:");
    if (end == std::string::npos || !is_aibrix_name(word.text.substr(0, end))) continue;
    const std::string value(trimmed(std::string_view(word.text).substr(end + 1)));
    out.push_back({word.text.substr(0, end), word.where, untyped(value, word.where)});
  }
}

/// Null, without an error, where nothing chooses AIBrix's algorithm. A header goes before the
/// variable, as in the gateway.
Ptr from_aibrix(const Members& values, const Ptr& release, Diagnostics& diagnostics) {
  const Member* chosen = nullptr;
  for (const std::string_view key : {kAibrixHeader, kAibrixVariable})
    for (const Member& m : values)
      if (chosen == nullptr && m.key == key) chosen = &m;
  if (chosen == nullptr) return nullptr;
  RouterKeys keys("aibrix", diagnostics);
  if (!keys.choose(chosen->value->text(), chosen->value->where())) return nullptr;
  const std::vector<FieldDescription> known = section_fields("aibrix");
  add_member(keys.settings, "release", release);
  for (const Member& m : values) {
    if (!m.key.starts_with(kAibrixPrefix)) continue;
    const std::string key = lower_case(m.key.substr(kAibrixPrefix.size()));
    if (!has_key(known, key)) {
      keys.unread(m.key, m.key_where, Fate::kNotModelled);
      continue;
    }
    diagnostics.key(key_use(m.key_where, kRouterConfigFormat, m.key, Fate::kUsed, ""));
    // Kubernetes has variables in quotes.
    keys.settings.push_back({key, m.key_where, untyped(m.value->text(), m.value->where())});
  }
  return keys.map(chosen->key_where);
}

/// The routers that a script starts or sets up.
struct Script {
  std::optional<Launch> launch;
  Members aibrix;  ///< Its variables and headers before the launch.
  Ptr aibrix_release;
};

/// The first command of a script that starts a router; variables that it exports count.
/// `variables` are known before.
Script read_script(const std::string& text, const ShellPlaces& places, ShellVariables& variables,
                   Diagnostics& diagnostics) {
  Script script;
  std::map<std::string_view, Ptr> releases;  // By the section.
  for (ShellCommand& command : split_shell(text, places, variables, kPath, diagnostics)) {
    for (const ShellWord& word : command)
      for (const Product& p : products())
        if (const Ptr said = release_node(word.text, p, word.where)) releases[p.section] = said;
    if (script.launch) continue;
    const bool installs = starts(command, "install") || starts(command, "pull");
    if (product_of(command) != nullptr && !installs)
      script.launch = Launch{.command = std::move(command)};
    else
      find_aibrix_values(command, script.aibrix);
  }
  if (script.launch) script.launch->release = releases[product_of(script.launch->command)->section];
  script.aibrix_release = releases["aibrix"];
  return script;
}

/// Variables of a shell or of a container, before the words of a command.
void put_variables_before(const ShellVariables& variables, ShellCommand& command) {
  ShellCommand words;
  for (const auto& [name, value] : variables)
    words.push_back({.text = name + "=" + value.text, .where = value.where});
  command.insert(command.begin(), words.begin(), words.end());
}

Ptr from_text(const std::string& text, const ShellPlaces& places, const SourceLocation& where,
              Diagnostics& diagnostics) {
  ShellVariables variables;
  Script script = read_script(text, places, variables, diagnostics);
  if (script.launch) {
    const Product& started = *product_of(script.launch->command);
    put_variables_before(variables, script.launch->command);
    return from_launch(*script.launch, started, diagnostics);
  }
  for (const auto& [name, value] : variables)
    if (is_aibrix_name(name))
      script.aibrix.push_back({name, value.where, untyped(value.text, value.where)});
  if (Ptr routing = from_aibrix(script.aibrix, script.aibrix_release, diagnostics)) return routing;
  if (diagnostics.has_errors()) return nullptr;
  diagnostics.error(where, kPath, "starts no router that is simulated",
                    "known programs: smg, sgl-model-gateway, sglang_router, vllm-router, "
                    "vllm_router.app, dynamo.frontend, cache_aware_disagg_proxy.py; AIBrix's "
                    "ROUTING_ALGORITHM; and Envoy's and Kubernetes' files");
  return nullptr;
}

/// Adds the variables of `env` and `envs`: a list of `name` and `value`, or a map.
void read_environment(const ConfigNode& node, ShellVariables& out) {
  for (const char* key : {"env", "envs"}) {
    for (const Ptr& item : items_at(node, {key})) {
      const Ptr name = scalar_at(*item, {"name"}), value = scalar_at(*item, {"value"});
      if (name != nullptr && value != nullptr)
        out[name->text()] = {.text = value->text(), .where = value->where()};
    }
    if (const ConfigNode* map = node.child(key))
      for (const Member& m : map->members())
        if (m.value->is_scalar()) out[m.key] = {.text = m.value->text(), .where = m.value->where()};
  }
}

/// Commands of containers in a manifest or in Helm values that start a router, with the variables
/// of the container and of what stands around it.
void find_launches(const ConfigNode& node, ShellVariables variables, std::vector<Launch>& out,
                   Diagnostics& diagnostics) {
  for (const Ptr& item : node.items()) find_launches(*item, variables, out, diagnostics);
  if (!node.is_map()) return;
  read_environment(node, variables);
  const std::size_t before = out.size();
  ShellCommand command;
  for (const char* key : {"command", "args"}) {
    for (const Ptr& word : items_at(node, {key})) {
      if (!word->is_scalar()) continue;
      command.push_back({.text = word->text(), .where = word->where()});
      if (word->text().find_first_of(" \n") == std::string::npos || !out.empty()) continue;
      // A script for `sh -c`. What no router starts is none of our business.
      Diagnostics unsaid;
      ShellVariables own = variables;
      auto launch = read_script(shell_text(*word), places_in(*word), own, unsaid).launch;
      if (!launch) continue;
      put_variables_before(own, launch->command);
      out.push_back(std::move(*launch));
      append(diagnostics, unsaid);
    }
  }
  const Ptr image = scalar_at(node, {"image"});
  if (product_of(command) == nullptr && image != nullptr)
    command.insert(command.begin(), {.text = image->text(), .where = image->where()});
  if (out.size() == before && product_of(command) != nullptr) {
    put_variables_before(variables, command);
    out.push_back({.command = std::move(command)});
  }
  for (const Member& m : node.members()) find_launches(*m.value, variables, out, diagnostics);
  // The operator starts a frontend that states no command.
  const ConfigNode* type =
      node.child("componentType") != nullptr ? node.child("componentType") : node.child("type");
  if (out.size() == before && type != nullptr && type->text() == "frontend") {
    ShellCommand frontend = {{.text = "dynamo.frontend", .where = type->where()}};
    for (const char* key : {"podTemplate", "extraPodSpec", "mainContainer"})
      if (const ConfigNode* below = first_with(node, {key}))
        for (const Member& m : below->members())
          if (m.key == key) read_environment(*m.value, variables);
    put_variables_before(variables, frontend);
    out.push_back({.command = std::move(frontend)});
  }
}

/// Helm values of the production stack.
Ptr from_stack_values(const ConfigNode& root, Diagnostics& diagnostics) {
  const ConfigNode* logic = node_at(root, {"routerSpec", "routingLogic"});
  if (logic == nullptr) return nullptr;
  const ConfigNode& spec = *root.child("routerSpec");
  RouterKeys keys("production_stack", diagnostics);
  if (!keys.choose(logic->text(), logic->where())) return nullptr;
  add_member(keys.settings, "release", find_release_below(root, product("production_stack")));
  if (const Ptr key = scalar_at(spec, {"sessionKey"}))
    add_member(keys.settings, "session_key", copy_of(*key));
  for (const Member& m : spec.members())
    if (m.key != "routingLogic" && m.key != "sessionKey")
      keys.unread("routerSpec." + m.key, m.key_where,
                  m.key == "extraArgs" ? Fate::kNotModelled : Fate::kNoEffect);
  return keys.map(spec.where());
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
  RouterKeys keys("ray", diagnostics);
  const std::vector<FieldDescription> known = section_fields("ray");
  add_member(keys.settings, "release", find_release_below(root, product("ray")));
  std::string policy = "power-of-two";
  SourceLocation where = root.where();
  const auto take = [&](const Member& m, Fate otherwise) {
    if (has_key(known, m.key))
      keys.settings.push_back(m);
    else
      keys.unread(m.key, m.key_where, otherwise);
  };
  const auto members = [](const ConfigNode* map) {
    return map != nullptr ? map->members() : Members();
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
  return keys.choose(policy, where) ? keys.map(where) : nullptr;
}

/// The configuration of Mooncake's proxy: it names servers, and nothing that it decides by.
Ptr from_mooncake(const ConfigNode& root, Diagnostics& diagnostics) {
  if (!root.is_map() || root.find("conductor") == nullptr || root.find("prefill") == nullptr)
    return nullptr;
  RouterKeys keys("mooncake", diagnostics);
  (void)keys.choose("proxy", root.where());
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
  RouterKeys keys("aibrix", diagnostics);
  (void)keys.choose("slo", root->where());
  add_member(keys.settings, "profiles", is_list ? root : tree::list({root}, root->where()));
  return keys.map(root->where());
}

Ptr from_tree(const Ptr& root, Diagnostics& diagnostics) {
  if (Ptr envoy = envoy_routing(*root, diagnostics)) return envoy;
  if (Ptr stack = from_stack_values(*root, diagnostics)) return stack;
  if (Ptr ray = from_ray(*root, diagnostics)) return ray;
  if (Ptr mooncake = from_mooncake(*root, diagnostics)) return mooncake;
  if (Ptr profiles = from_aibrix_profiles(root, diagnostics)) return profiles;
  if (diagnostics.has_errors()) return nullptr;
  Members aibrix;
  find_aibrix_values(*root, aibrix);
  const Ptr release = find_release_below(*root, product("aibrix"));
  if (Ptr routing = from_aibrix(aibrix, release, diagnostics)) return routing;
  if (diagnostics.has_errors()) return nullptr;
  std::vector<Launch> launches;
  find_launches(*root, {}, launches, diagnostics);
  if (!launches.empty()) {
    Launch& launch = launches.front();
    const Product& started = *product_of(launch.command);
    if (launch.release == nullptr) launch.release = find_release_below(*root, started);
    return from_launch(launch, started, diagnostics);
  }
  diagnostics.error(root->where(), kPath, "holds no router configuration that is simulated",
                    "known: an EndpointPickerConfig in a file, a cluster or a "
                    "BackendTrafficPolicy of Envoy, Helm values with "
                    "routerSpec, AIBrix's ROUTING_ALGORITHM or GPU profiles, an LLMConfig of Ray "
                    "Serve, Mooncake's proxy, and containers that start SMG, the vLLM router or "
                    "Dynamo");
  return nullptr;
}

/// A path, a command, or a document in place.
Ptr read(const Ptr& value, Diagnostics& diagnostics) {
  if (!value->is_scalar()) return from_tree(value, diagnostics);
  const std::string& text = value->text();
  const bool is_path = text.find_first_of(" \n") == std::string::npos;
  if (!is_path)
    return from_text(shell_text(*value), places_in(*value), value->where(), diagnostics);
  const std::string path = resolve_path(text, value->where());
  if (is_config_name(path) && !path.ends_with(".in")) {
    const Ptr root = read_manifest_file(path, value->where(), kPath, diagnostics);
    if (root == nullptr) return nullptr;
    Diagnostics found;
    const Ptr routing = from_tree(root, found);
    const auto is_picker = [](const Ptr& object) {
      return text_at(*object, {"kind"}) == "EndpointPickerConfig";
    };
    if (routing == nullptr &&
        (find_picker_document(path) || std::ranges::any_of(children_of(*root), is_picker)))
      return tree::map({{"endpoint_picker", value}}, value->where());
    append(diagnostics, found);
    return routing;
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
    const Ptr beside = without_key(routing, "config");
    const Ptr said = read(routing->find("config")->value, diagnostics);
    if (said != nullptr && said->find("endpoint_picker") != nullptr)
      for (const std::string_view key : {"endpoint_picker", "balancer"})
        if (const Member* wins = beside->find(key);
            wins != nullptr && wins->value->text() != "endpoint-picker")
          diagnostics.warning(
              routing->find("config")->value->where(), kPath,
              "names an EndpointPickerConfig, and `" + std::string(key) + "` beside it wins");
    return said != nullptr ? merge_configs(said, beside) : beside;
  });
}

}  // namespace routesim::tools
