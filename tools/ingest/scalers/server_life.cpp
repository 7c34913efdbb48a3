#include "tools/ingest/scalers/server_life.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <tuple>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/scalers/autoscaler_yaml.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/shell_words.h"

namespace routesim::tools {

namespace {

constexpr std::int64_t kMostReplicas = 1'000'000;

std::string kind_of_object(const ConfigNode& object) { return text_at(object, {"kind"}); }

bool is_scaled_object(const ConfigNode& object) { return kind_of_object(object) == "ScaledObject"; }

bool is_scaler(const ConfigNode& object) {
  return is_scaled_object(object) || kind_of_object(object) == "HorizontalPodAutoscaler";
}

bool is_budget(const ConfigNode& object) { return kind_of_object(object) == "PodDisruptionBudget"; }

/// Whether the object says what metrics are. The ConfigMap of prometheus-adapter may stand beside
/// others, which are files of containers.
bool is_rules(const ConfigNode& object) {
  if (kind_of_object(object) == "PrometheusRule") return true;
  return kind_of_object(object) == "ConfigMap" &&
         text_at(object, {"data", "config.yaml"}).find("metricsQuery") != std::string::npos;
}

/// A whole number from 0 on; nothing for anything else.
std::optional<std::int64_t> whole_in(const ConfigNode& node) {
  std::int64_t n = 0;
  const std::string& text = node.text();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && n >= 0 && n <= kMostReplicas ? std::optional(n) : std::nullopt;
}

/// `2` or `25%`.
struct NumberOrPercent {
  std::int64_t number = 0;
  bool percent = false;
};

std::optional<NumberOrPercent> number_or_percent(const ConfigNode& node) {
  std::string text = node.text();
  const bool percent = text.ends_with('%');
  if (percent) text.pop_back();
  const auto number = whole_in(*plain(text, node.where()));
  if (!number) return std::nullopt;
  return NumberOrPercent{*number, percent};
}

bool is_in_namespace(const ConfigNode& object, const std::string& name_space) {
  const std::string own = text_at(object, {"metadata", "namespace"});
  return own.empty() || name_space.empty() || own == name_space;
}

/// KEDA takes a reference without a kind for one to a Deployment.
std::string target_kind(const ConfigNode& scaler) {
  const std::string kind = text_at(scaler, {"spec", "scaleTargetRef", "kind"});
  return kind.empty() && is_scaled_object(scaler) ? "Deployment" : kind;
}

bool scales(const ConfigNode& scaler, const ServerLife& life) {
  const std::string kind = target_kind(scaler);
  return !life.name.empty() && text_at(scaler, {"spec", "scaleTargetRef", "name"}) == life.name &&
         (kind.empty() || life.kind.empty() || kind == life.kind);
}

using Labels = std::vector<std::pair<std::string, std::string>>;

const std::string* find_label(const Labels& labels, const std::string& key) {
  for (const auto& [name, value] : labels)
    if (name == key) return &value;
  return nullptr;
}

bool fits_expression(const ConfigNode& expression, const Labels& labels) {
  const std::string* value = find_label(labels, text_at(expression, {"key"}));
  const std::string how = text_at(expression, {"operator"});
  if (how == "Exists") return value != nullptr;
  if (how == "DoesNotExist") return value == nullptr;
  const std::vector<Ptr>& values = items_at(expression, {"values"});
  const bool is_among = value != nullptr && std::ranges::any_of(values, [&](const Ptr& one) {
                          return one->text() == *value;
                        });
  return how == "In" ? is_among : how == "NotIn" && !is_among;
}

/// An empty selector fits all pods, an absent one none (policy/v1).
bool selects(const ConfigNode& budget, const Labels& labels) {
  const ConfigNode* selector = node_at(budget, {"spec", "selector"});
  if (selector == nullptr || !selector->is_map()) return false;
  const ConfigNode* wanted = selector->child("matchLabels");
  if (wanted != nullptr && !wanted->is_map() && !wanted->is_null()) return false;
  if (wanted != nullptr)
    for (const Member& label : wanted->members())
      if (const std::string* value = find_label(labels, label.key);
          value == nullptr || *value != label.value->text())
        return false;
  const std::vector<Ptr>& expressions = items_at(*selector, {"matchExpressions"});
  return std::ranges::all_of(expressions,
                             [&](const Ptr& one) { return fits_expression(*one, labels); });
}

Labels pairs_of(const std::vector<Ptr>& labels) {
  Labels pairs;
  for (const Ptr& label : labels) {
    const std::size_t equals = std::min(label->text().find('='), label->text().size());
    pairs.emplace_back(label->text().substr(0, equals),
                       label->text().substr(std::min(equals + 1, label->text().size())));
  }
  return pairs;
}

/// Seconds of `15`, `0.5`, `15s` or `2m`, as coreutils' sleep has them.
std::optional<double> sleep_seconds(std::string text) {
  constexpr std::array<std::pair<char, double>, 4> kUnits = {
      {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86'400}}};
  double factor = 1;
  for (const auto& [unit, seconds] : kUnits)
    if (text.ends_with(unit)) factor = seconds;
  if (factor != 1 || text.ends_with('s')) text.pop_back();
  const std::optional<double> number = number_from(text);
  return number ? std::optional(*number * factor) : std::nullopt;
}

/// The seconds that a hook sleeps, where it does nothing else.
std::optional<double> sleep_of(const ConfigNode& hook) {
  if (hook.members().size() != 1) return std::nullopt;
  if (const Ptr seconds = scalar_at(hook, {"sleep", "seconds"}))
    return number_from(seconds->text());
  std::vector<std::string> words;
  for (const Ptr& word : items_at(hook, {"exec", "command"})) words.push_back(word->text());
  // sh -c "sleep 15"
  if (words.size() == 3 && last_part(words[0]).ends_with("sh") && words[1].starts_with("-") &&
      words[1].ends_with('c')) {
    const std::string script = words[2];
    words.clear();
    for (const std::string_view word : words_of(script)) words.emplace_back(word);
    if (!words.empty() && words.front() == "exec") words.erase(words.begin());
    if (!words.empty() && words.back().ends_with(';')) words.back().pop_back();
  }
  if (words.size() != 2 || last_part(words[0]) != "sleep") return std::nullopt;
  return sleep_seconds(words[1]);
}

/// Reads what concerns one workload.
class LifeReader {
 public:
  LifeReader(const ServerLife& life, const std::string& key_path, Diagnostics& diagnostics)
      : life_(life), key_path_(key_path), diagnostics_(diagnostics) {}

  Ptr autoscaler() {
    if (life_.scalers.empty()) return nullptr;
    if (life_.scalers.size() > 1) {
      const ConfigNode& second = *life_.scalers[1];
      fail(second,
           described(second) + " scales " + printable(life_.name) + ", which " +
               described(*life_.scalers[0]) + " scales too: they would undo each other's work",
           "keep one of the two");
      return nullptr;
    }
    std::vector<Ptr> objects = life_.rules;
    objects.push_back(life_.scalers.front());
    const ConfigNode& scaler = *objects.back();
    const Ptr list =
        tree::map({{"kind", plain("List", scaler.where())},
                   {"items", ConfigNode::make_sequence(std::move(objects), scaler.where())}},
                  scaler.where());
    Diagnostics found;
    const std::vector<ScalerObject> read = scalers_in_tree(list, key_path_, found);
    if (read.empty() && !found.has_errors())
      found.error(scaler.where(), key_path_, described(scaler) + " has no apiVersion");
    // The scenario's reader lists the keys of its value again, and repeats the warnings.
    Diagnostics of_value;
    if (!found.has_errors()) (void)read_autoscaler(*read[0].autoscaler, key_path_, of_value);
    for (const Diagnostic& d : of_value.items())
      if (d.severity == Severity::kError) found.add(d);
    for (Diagnostic d : found.items()) {
      if (d.severity == Severity::kError && d.hint.empty())
        d.hint = "`autoscaler: null` in the pool simulates servers whose number stays";
      diagnostics_.add(std::move(d));
    }
    for (const KeyUse& use : found.keys()) diagnostics_.key(use);
    return found.has_errors() ? nullptr : read[0].autoscaler;
  }

  /// `most_evicted` or `min_available`.
  std::vector<Member> budget() {
    if (life_.budgets.empty()) return {};
    const ConfigNode& budget = *life_.budgets.front();
    if (life_.budgets.size() > 1) {
      fail(*life_.budgets[1],
           described(*life_.budgets[1]) + " selects the pods of " + printable(life_.name) +
               ", as " + described(budget) + " does: Kubernetes evicts no pod that has two",
           "keep one of the two");
      return {};
    }
    const Ptr most = value_at(budget, {"spec", "maxUnavailable"});
    const Ptr least = value_at(budget, {"spec", "minAvailable"});
    if (most != nullptr && least != nullptr) {
      fail(*least, "minAvailable stands beside maxUnavailable", "keep one of the two");
      return {};
    }
    const Ptr bound = most != nullptr ? most : least;
    if (bound == nullptr) {
      warn(budget, described(budget) + " has no bound, so it is not used");
      return {};
    }
    if (life_.pods_of_server > 1) {
      warn(budget, described(budget) + " is not used: it counts pods, and a server has " +
                       std::to_string(life_.pods_of_server));
      return {};
    }
    const bool is_most = most != nullptr;
    Members out;
    if (bounded(*bound, is_most ? "maxUnavailable" : "minAvailable"))
      add_member(out, is_most ? "most_evicted" : "min_available",
                 plain(bound->text(), bound->where()));
    return out;
  }

  Ptr grace() {
    if (life_.grace == nullptr || life_.grace->is_null()) return nullptr;
    if (whole_in(*life_.grace)) return plain(life_.grace->text(), life_.grace->where());
    fail(*life_.grace, "terminationGracePeriodSeconds must be a whole number of seconds (" +
                           got(*life_.grace) + ")");
    return nullptr;
  }

  Ptr pre_stop() {
    if (life_.pre_stop == nullptr || !life_.pre_stop->is_map()) return nullptr;
    if (const std::optional<double> seconds = sleep_of(*life_.pre_stop);
        seconds && std::isfinite(*seconds) && *seconds >= 0)
      return plain(number_text(*seconds), life_.pre_stop->where());
    constexpr std::string_view kWhy = "the simulated hook sleeps, and this one does something else";
    warn(*life_.pre_stop,
         "the preStop hook is not understood, so servers end without one: " + std::string(kWhy),
         "write termination.pre_stop into the pool, the seconds that it takes");
    diagnostics_.key(key_use(life_.pre_stop->where(), kAutoscalerFormat, key_path_ + ".preStop",
                             Fate::kNotModelled, kWhy));
    return nullptr;
  }

  /// `probe_period`, `probe_delay` and `probe_repeats` of start_up. Kubernetes' defaults are 10 s,
  /// 0 and 1 (k8s.io/api core/v1, Probe).
  std::vector<Member> probes() {
    const Ptr& first = life_.startup != nullptr ? life_.startup : life_.readiness;
    if (first == nullptr || !first->is_map()) return {};
    Members out;
    const auto add = [&](const char* key, std::int64_t seconds) {
      add_member(out, key, plain(std::to_string(seconds), first->where()));
    };
    add("probe_period", probed(first, "periodSeconds", 10));
    if (const std::int64_t delay = std::max(probed(life_.startup, "initialDelaySeconds", 0),
                                            probed(life_.readiness, "initialDelaySeconds", 0));
        delay > 0)
      add("probe_delay", delay);
    if (const std::int64_t more = probed(life_.readiness, "successThreshold", 1) - 1; more > 0)
      add("probe_repeats", more * probed(life_.readiness, "periodSeconds", 10));
    return out;
  }

  std::vector<Member> roll_out() {
    if (life_.workload == nullptr) return {};
    Members out = bounds_of_kind();
    const Ptr least = value_at(*life_.workload, {"spec", "minReadySeconds"});
    const std::string kind = kind_of_object(*life_.workload);
    if (least == nullptr || least->is_null() || (kind != "Deployment" && kind != "StatefulSet"))
      return out;
    if (whole_in(*least))
      add_member(out, "min_ready_seconds", plain(least->text(), least->where()));
    else
      fail(*least, "minReadySeconds must be a whole number of seconds (" + got(*least) + ")");
    return out;
  }

 private:
  /// A whole number of a probe; Kubernetes' default where it is absent or 0.
  std::int64_t probed(const Ptr& probe, const std::string& key, std::int64_t standard) {
    const ConfigNode* node = probe == nullptr || !probe->is_map() ? nullptr : probe->child(key);
    if (node == nullptr || node->is_null()) return standard;
    const std::optional<std::int64_t> number = whole_in(*node);
    if (!number)
      fail(*node, key + " must be a whole number" +
                      (key.ends_with("Seconds") ? " of seconds (" : " (") + got(*node) + ")");
    return number.value_or(0) == 0 ? standard : *number;
  }

  std::vector<Member> bounds_of_kind() {
    const ConfigNode& object = *life_.workload;
    const std::string kind = kind_of_object(object);
    const SourceLocation& at = object.where();
    if (kind == "StatefulSet")  // One pod after another, and the last first.
      return bounds(node_at(object, {"spec", "updateStrategy", "rollingUpdate"}), "0", "1", at);
    if (kind == "LeaderWorkerSet")
      return bounds(node_at(object, {"spec", "rolloutStrategy", "rollingUpdateConfiguration"}), "0",
                    "1", at);
    const ConfigNode* strategy = node_at(object, {"spec", "strategy"});
    if (kind != "Deployment" || strategy == nullptr) return {};
    if (text_at(*strategy, {"type"}) == "Recreate") {
      Members out;
      add_member(out, "recreate", plain("true", strategy->where()));
      return out;
    }
    const ConfigNode* update = strategy->child("rollingUpdate");
    if (update == nullptr) return {};
    return bounds(update, "25%", "25%", update->where());
  }

  void fail(const ConfigNode& at, std::string message, std::string hint = {}) {
    diagnostics_.error(at.where(), key_path_, std::move(message), std::move(hint));
  }
  void warn(const ConfigNode& at, std::string message, std::string hint = {}) {
    diagnostics_.warning(at.where(), key_path_, std::move(message), std::move(hint));
  }

  static std::string described(const ConfigNode& object) {
    const std::string name = text_at(object, {"metadata", "name"});
    return printable(kind_of_object(object)) + (name.empty() ? "" : " " + printable(name));
  }

  /// A bound that Kubernetes takes: no more than 100 %, but of surges.
  std::optional<NumberOrPercent> bounded(const ConfigNode& node, const std::string& key) {
    const auto number = number_or_percent(node);
    if (!number)
      fail(node, key + " must be a number or a percentage (" + got(node) + ")", "write 1 or 25%");
    else if (number->percent && number->number > 100 && key != "maxSurge")
      fail(node, key + " must be at most 100% (" + got(node) + ")");
    else
      return number;
    return std::nullopt;
  }

  std::vector<Member> bounds(const ConfigNode* map, const char* surge, const char* unavailable,
                             const SourceLocation& at) {
    Members out;
    bool is_zero = true;
    for (const auto& [theirs, ours, standard] :
         {std::tuple{"maxSurge", "max_surge", surge},
          std::tuple{"maxUnavailable", "max_unavailable", unavailable}}) {
      const ConfigNode* node = map == nullptr ? nullptr : map->child(theirs);
      const Ptr value = node == nullptr || node->is_null() ? plain(standard, at)
                                                           : plain(node->text(), node->where());
      const auto number = bounded(*value, theirs);
      if (!number) return {};
      is_zero = is_zero && number->number == 0;
      add_member(out, ours, value);
    }
    if (!is_zero) return out;
    diagnostics_.error(at, key_path_, "maxSurge and maxUnavailable are both 0: nothing could roll",
                       "write 1 for one of them");
    return {};
  }

  const ServerLife& life_;
  const std::string& key_path_;
  Diagnostics& diagnostics_;
};

/// Calls `visit` for each object of a file.
template <class Visit>
void each_object(const Ptr& root, Visit visit) {
  if (root == nullptr) return;
  for (const Ptr& object : root->items()) visit(object);
  if (!root->is_map()) return;
  visit(root);
  for (const Ptr& object : items_at(*root, {"items"})) visit(object);
}

bool is_about_others(const ConfigNode& object) {
  return is_scaler(object) || is_budget(object) || is_rules(object);
}

/// The number that a paused ScaledObject leaves of `replicas` (NeedToBePausedByAnnotation of KEDA);
/// nothing where it is not paused.
std::optional<Ptr> paused_replicas(const ConfigNode& scaler, const Ptr& replicas) {
  const Ptr keys = value_at(scaler, {"metadata", "annotations"});
  if (keys == nullptr || !keys->is_map()) return std::nullopt;
  if (const Ptr at = scalar_at(*keys, {"autoscaling.keda.sh/paused-replicas"}))
    return whole_in(*at) ? plain(at->text(), at->where()) : replicas;
  const Ptr paused = scalar_at(*keys, {"autoscaling.keda.sh/paused"});
  if (paused == nullptr || is_false_in_go(paused->text())) return std::nullopt;
  return replicas;
}

}  // namespace

void note_pod_life(const ConfigNode& pod, ServerLife& life) {
  if (const Ptr grace = value_at(pod, {"terminationGracePeriodSeconds"})) life.grace = grace;
}

void note_container_life(const ConfigNode& container, ServerLife& life) {
  life.pre_stop = value_at(container, {"lifecycle", "preStop"});
  life.readiness = value_at(container, {"readinessProbe"});
  life.startup = value_at(container, {"startupProbe"});
}

// helm/templates of vllm-project/production-stack@183a136: scaledobject-vllm.yaml,
// pdb-vllm-multi.yaml, _helpers.tpl (chart.engineStrategy, chart.probes); values.yaml.
void note_stack_life(const ConfigNode& values, const ConfigNode& model, ServerLife& life) {
  const SourceLocation& at = model.where();
  const auto probe = [&](std::string_view name, const char* period) {
    const Ptr said = value_at(values, {"servingEngineSpec", name});
    if (said == nullptr || !said->is_map()) return said;
    return merge_configs(tree::map({{"initialDelaySeconds", plain("15", said->where())},
                                    {"periodSeconds", plain(period, said->where())}},
                                   said->where()),
                         said);
  };
  life.startup = probe("startupProbe", "10");
  life.readiness = probe("readinessProbe", "5");
  const auto object = [&](const char* kind, const Ptr& spec) {
    return tree::map({{"apiVersion", plain("v1", spec->where())},
                      {"kind", plain(kind, spec->where())},
                      {"spec", spec}},
                     spec->where());
  };
  Ptr strategy = value_at(values, {"servingEngineSpec", "strategy"});
  if (strategy == nullptr)
    strategy = tree::map(
        {{"rollingUpdate",
          tree::map({{"maxSurge", plain("100%", at)}, {"maxUnavailable", plain("0", at)}}, at)}},
        at);
  life.workload = object("Deployment", tree::map({{"strategy", strategy}}, strategy->where()));
  if (const Ptr keda = value_at(model, {"keda"});
      keda != nullptr && text_at(*keda, {"enabled"}) == "true") {
    Members spec = without_key(keda, "enabled")->members();
    if (keda->child("triggers") == nullptr) {
      const Ptr metadata = tree::map({{"query", tree::text("vllm:num_requests_waiting{model=\"" +
                                                               text_at(model, {"name"}) + "\"}",
                                                           keda->where())},
                                      {"threshold", plain("5", keda->where())}},
                                     keda->where());
      const Ptr trigger = tree::map(
          {{"type", plain("prometheus", keda->where())}, {"metadata", metadata}}, keda->where());
      add_member(spec, "triggers", ConfigNode::make_sequence({trigger}, keda->where()));
    }
    life.scalers.push_back(
        object("ScaledObject", ConfigNode::make_map(std::move(spec), keda->where())));
  }
  if (const Ptr pdb = value_at(model, {"pdb"});
      pdb != nullptr && text_at(*pdb, {"enabled"}) == "true") {
    Members spec;
    Ptr most = scalar_at(*pdb, {"maxUnavailable"}), least = scalar_at(*pdb, {"minAvailable"});
    if (most != nullptr && most->text() == "0") most = nullptr;  // Helm's `with` leaves it out.
    if (least == nullptr) least = plain("0", pdb->where());
    add_member(spec, most != nullptr ? "maxUnavailable" : "minAvailable",
               most != nullptr ? most : least);
    life.budgets.push_back(
        object("PodDisruptionBudget", ConfigNode::make_map(std::move(spec), pdb->where())));
  }
}

void LifeObjects::add(const ConfigNode::Ptr& root) {
  each_object(root, [&](const Ptr& object) {
    if (!object->is_map()) return;
    if (is_scaler(*object)) scalers_.push_back({object});
    if (is_budget(*object)) budgets_.push_back({object});
    if (is_rules(*object)) rules_.push_back({object});
  });
}

void LifeObjects::give(ServerLife& life, const std::vector<ConfigNode::Ptr>& labels) {
  const Labels pairs = pairs_of(labels);
  const auto give_one = [&](Object& object, std::vector<Ptr>& to) {
    object.given |= is_in_namespace(*object.node, life.name_space);
    if (is_in_namespace(*object.node, life.name_space))
      to.push_back(object.node);
    else
      object.elsewhere = life.name_space;
  };
  for (Object& scaler : scalers_)
    if (scales(*scaler.node, life)) give_one(scaler, life.scalers);
  // A chart's own budget has no selector here.
  for (Object& budget : budgets_)
    if (!labels.empty() && selects(*budget.node, pairs)) give_one(budget, life.budgets);
  if (life.scalers.empty()) return;
  for (Object& rule : rules_) {
    rule.given = true;
    life.rules.push_back(rule.node);
  }
}

bool LifeObjects::was_given() const {
  const auto any = [](const std::vector<Object>& list) {
    return std::ranges::any_of(list, &Object::given);
  };
  return any(scalers_) || any(budgets_) || any(rules_);
}

void LifeObjects::warn_of_unused(const std::string& key_path, Diagnostics& diagnostics) const {
  const auto warn = [&](const Object& unused, const ConfigNode* at, const std::string& why,
                        const std::string& whose) {
    const std::string own = text_at(*unused.node, {"metadata", "namespace"});
    diagnostics.warning(
        (at != nullptr ? *at : *unused.node).where(), key_path,
        "is not used: " +
            (unused.elsewhere.empty() ? why
                                      : "its namespace is " + printable(own) + ", and that of " +
                                            whose + " is " + printable(unused.elsewhere)) +
            " (" + kind_of_object(*unused.node) + ")");
  };
  for (const Object& scaler : scalers_) {
    if (scaler.given) continue;
    const ConfigNode* target = node_at(*scaler.node, {"spec", "scaleTargetRef", "name"});
    const std::string kind = printable(target_kind(*scaler.node));
    const std::string name = target == nullptr ? "" : printable(target->text());
    warn(scaler, target,
         target == nullptr ? "it names nothing that it scales"
                           : (kind.empty() ? name + " starts none"
                                           : "no " + kind + " called " + name + " starts any") +
                                 " of the servers in this file",
         kind + (kind.empty() ? "" : " ") + name);
  }
  for (const Object& budget : budgets_)
    if (!budget.given)
      warn(budget, node_at(*budget.node, {"spec", "selector"}),
           "it selects the pods of none of the servers in this file", "the pods that it selects");
}

void LifeObjects::note_all_keys(const std::string& key_path, Diagnostics& diagnostics) const {
  for (const std::vector<Object>* list : {&scalers_, &budgets_, &rules_})
    for (const Object& object : *list) {
      for_each_key(*object.node, nullptr,
                   [&](const ConfigNode&, const std::string& below, const SourceLocation& key) {
                     // The scalers' reader warns of metrics that are not modelled.
                     const KeyRule* rule = find_rule(key_table(kAutoscalerFormat), below);
                     const bool known = object.given && rule != nullptr;
                     diagnostics.key(key_use(
                         key, kAutoscalerFormat, key_path + "." + below,
                         known ? rule->fate : Fate::kNoEffect,
                         known ? rule->why : "it is about none of the servers that are read"));
                   });
    }
}

ConfigNode::Ptr without_life_objects(const ConfigNode::Ptr& root) {
  const auto emptied = [](const Ptr& object) {
    return object->is_map() && is_about_others(*object) ? ConfigNode::make_map({}, object->where())
                                                        : object;
  };
  if (root->is_sequence()) return with_children(root, emptied);
  if (!root->is_map()) return root;
  if (is_about_others(*root)) return emptied(root);
  Members members = root->members();
  for (Member& member : members)
    if (member.key == "items" && member.value->is_sequence())
      member.value = with_children(member.value, emptied);
  return ConfigNode::make_map(std::move(members), root->where());
}

// A HorizontalPodAutoscaler leaves workloads at 0 alone (ScalingDisabled, horizontal.go of
// Kubernetes v1.36). KEDA raises them to its minimum, but those that have an idle number or are
// paused (RequestScale, pkg/scaling/executor/scale_scaledobjects.go).
ConfigNode::Ptr bounded_replicas(const ConfigNode::Ptr& replicas, const ServerLife& life) {
  if (life.scalers.size() != 1) return replicas;
  const ConfigNode& scaler = *life.scalers.front();
  const bool is_keda = is_scaled_object(scaler);
  const std::optional<std::int64_t> number =
      replicas == nullptr ? std::optional<std::int64_t>(1) : whole_in(*replicas);
  const bool is_left_at_zero =
      !is_keda || scalar_at(scaler, {"spec", "idleReplicaCount"}) != nullptr;
  if (const auto held = is_keda ? paused_replicas(scaler, replicas) : std::nullopt) return *held;
  if (!number || (*number == 0 && is_left_at_zero)) return replicas;
  const auto bound = [&](const char* key, const char* standard) {
    const Ptr value = scalar_at(scaler, {"spec", key});
    return value != nullptr && whole_in(*value) ? value : plain(standard, scaler.where());
  };
  // Kubernetes asks for maxReplicas; without it there is an error elsewhere.
  const Ptr least = is_keda ? bound("minReplicaCount", "0") : bound("minReplicas", "1");
  const Ptr most = is_keda ? bound("maxReplicaCount", "100") : bound("maxReplicas", "1000000");
  if (*whole_in(*least) > *whole_in(*most)) return replicas;  // An error elsewhere.
  if (*number < *whole_in(*least)) return least;
  return *number > *whole_in(*most) ? most : replicas;
}

std::vector<ConfigNode::Member> life_keys(const ServerLife& life,
                                          const std::function<bool(std::string_view)>& says,
                                          const std::string& key_path, Diagnostics& diagnostics) {
  LifeReader reader(life, key_path, diagnostics);
  Members keys, termination;
  if (!says("autoscaler")) add_member(keys, "autoscaler", reader.autoscaler());
  if (!says("most_evicted") && !says("min_available"))
    for (Member& bound : reader.budget()) keys.push_back(std::move(bound));
  if (!says("termination.grace")) add_member(termination, "grace", reader.grace());
  if (!says("termination.pre_stop")) add_member(termination, "pre_stop", reader.pre_stop());
  if (!termination.empty()) {
    const SourceLocation at = termination.front().key_where;
    add_member(keys, "termination", ConfigNode::make_map(std::move(termination), at));
  }
  Members start_up = reader.probes();
  std::erase_if(start_up, [&](const Member& key) { return says("start_up." + key.key); });
  if (!start_up.empty()) {
    const SourceLocation at = start_up.front().key_where;
    add_member(keys, "start_up", ConfigNode::make_map(std::move(start_up), at));
  }
  return keys;
}

// kubernetes-sigs/lws, pkg/controllers/pod_controller.go (handleRestartPolicy): any container that
// starts again has the leader deleted, unless the policy is None or Default. The webhook's default
// is RecreateGroupOnPodRestart.
ConfigNode::Ptr group_restart(const ServerLife& life) {
  if (life.workload == nullptr || life.kind != "LeaderWorkerSet") return nullptr;
  const Ptr policy = value_at(*life.workload, {"spec", "leaderWorkerTemplate", "restartPolicy"});
  const std::string text = policy == nullptr || policy->is_null() ? "" : policy->text();
  if (text.empty()) return plain("RecreateGroupOnPodRestart", life.workload->where());
  return text == "None" || text == "Default" ? nullptr : policy;
}

std::vector<ConfigNode::Member> roll_out_bounds(const ServerLife& life, const std::string& key_path,
                                                Diagnostics& diagnostics) {
  return LifeReader(life, key_path, diagnostics).roll_out();
}

}  // namespace routesim::tools
