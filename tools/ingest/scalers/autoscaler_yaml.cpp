#include "tools/ingest/scalers/autoscaler_yaml.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <regex>
#include <utility>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/tree/kubernetes_file.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

namespace {

/// What becomes of a key: ours, or nothing, with the reason.
enum class Take { kText, kNumber, kQuantity, kName, kByHand, kIgnored };
struct KeyRow {
  std::string_view theirs;
  Take take = Take::kByHand;
  std::string_view ours = {};  ///< Of kIgnored: why.
};
using KeyRows = std::initializer_list<KeyRow>;

/// `CurrentReplicasIfHigher` and `scaleUp` as our names have them.
std::string snake_case(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    if (is_upper && !out.empty()) out += '_';
    out += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

/// A Kubernetes quantity: `500m`, `2`, `0.8`, `1k`, `1Ki`, `1e3`. Nothing where it is none.
std::optional<double> quantity_in(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, double>, 13> kSuffixes = {{{"", 1},
                                                                              {"n", 1e-9},
                                                                              {"u", 1e-6},
                                                                              {"m", 1e-3},
                                                                              {"k", 1e3},
                                                                              {"M", 1e6},
                                                                              {"G", 1e9},
                                                                              {"T", 1e12},
                                                                              {"Ki", 1024},
                                                                              {"Mi", 1048576},
                                                                              {"Gi", 1073741824},
                                                                              {"Ti", 1099511627776},
                                                                              {"P", 1e15}}};
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  for (const auto& [known, factor] : kSuffixes)
    if (suffix == known) return factor < 1 ? number / (1 / factor) : number * factor;
  return std::nullopt;
}

class ScalerReader {
 public:
  ScalerReader(const std::string& path, Diagnostics& diagnostics)
      : path_(path), diagnostics_(diagnostics) {}

  void add_rules(const ConfigNode& object);
  void add_adapter_rules(const ConfigNode& rules);
  std::optional<ScalerObject> read(const ConfigNode& object);

 private:
  static constexpr std::string_view kNotAsked = "it says how to ask Prometheus, not what";

  void fail(const ConfigNode& at, std::string message, std::string hint = {}) {
    diagnostics_.error(at.where(), path_, std::move(message), std::move(hint));
  }
  void add_adapter_rule(const ConfigNode& rule, const ConfigNode& query);
  void ignore(const Member& key, std::string_view why) {
    diagnostics_.key(
        key_use(key.key_where, kAutoscalerFormat, path_ + "." + key.key, Fate::kNoEffect, why));
  }
  /// Copies the keys of a map by their rows; others are errors.
  void take(const ConfigNode& map, Members& into, KeyRows rows);
  void take_one(const Member& member, const KeyRow& row, Members& into);
  bool is_map(const ConfigNode* node, const char* what) {
    if (node == nullptr) return false;
    if (!node->is_map()) fail(*node, std::string(what) + " must be a map (" + got(*node) + ")");
    return node->is_map();
  }

  Members hpa(const ConfigNode& spec);
  void hpa_v1(const ConfigNode& spec);
  Ptr hpa_metric(const ConfigNode& metric);
  void metric_target(const ConfigNode& target, const std::string& of, Members& into);
  Ptr metric_query(const ConfigNode& metric, const std::string& type);
  Members keda(const ConfigNode& object, const ConfigNode& spec);
  Ptr trigger(const ConfigNode& node);
  void advanced(const ConfigNode& node, Members& into);
  void annotations(const ConfigNode& object, Members& into);
  Ptr behavior(const ConfigNode& node);
  Ptr scaling_rules(const ConfigNode& node);

  std::string path_;
  Diagnostics& diagnostics_;
  std::vector<Ptr> rules_;
  /// Of prometheus-adapter: its name of a metric, and the query with its template.
  std::vector<std::pair<std::string, Ptr>> adapter_;
};

/// Puts `by` in place of each `what`.
void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

/// A regular expression of Go, as far as it is one of ECMAScript, too. Counted repetitions and long
/// ones are refused: std::regex goes deeper with each state.
std::regex regex_of(const std::string& text) {
  constexpr std::size_t kLongest = 200;
  if (text.size() > kLongest || text.find('{') != text.npos)
    throw std::regex_error(std::regex_constants::error_complexity);
  // Go reads some things otherwise: groups with a question mark but `(?:`, and escapes of its own.
  for (std::size_t at = 0; (at = text.find("(?", at)) != text.npos; at += 2)
    if (text.compare(at, 3, "(?:") != 0) throw std::regex_error(std::regex_constants::error_paren);
  for (const char* const escape : {"\\A", "\\z", "\\p", "\\P", "\\Q", "\\C"})
    if (text.find(escape) != text.npos) throw std::regex_error(std::regex_constants::error_escape);
  auto flags = std::regex::ECMAScript;
#ifdef __GLIBCXX__
  flags |= std::regex_constants::__polynomial;  // Otherwise it tries all ways.
#endif
  return std::regex(text, flags);
}

/// The names of series, and of their metrics, by a rule of prometheus-adapter (kubernetes-sigs/
/// prometheus-adapter, pkg/naming/metric_namer.go). Throws std::regex_error.
class AdapterNames {
 public:
  explicit AdapterNames(const ConfigNode& rule) {
    read_query(text_at(rule, {"seriesQuery"}));
    for (const Ptr& filter : items_at(rule, {"seriesFilters"}))
      for (const bool is : {true, false})
        if (const std::string text = text_at(*filter, {is ? "is" : "isNot"}); !text.empty())
          add([re = regex_of(text), is](const std::string& name) {
            return std::regex_search(name, re) == is;
          });
    const std::string matches = text_at(rule, {"name", "matches"});
    matches_ = regex_of(matches.empty() ? ".*" : matches);
    as_ = text_at(rule, {"name", "as"});
    // More groups need an `as`: the adapter does not start without it.
    if (as_.empty() && matches_.mark_count() > 1)
      throw std::regex_error(std::regex_constants::error_backref);
    if (as_.empty()) as_ = matches_.mark_count() == 0 ? "$0" : "$1";
  }

  /// The one name of `name{...}` and `{__name__="name"}`; empty for expressions.
  const std::string& exact() const { return exact_; }

  /// The metric that the adapter makes of a series; nothing for those that it leaves out.
  std::optional<std::string> metric_of(const std::string& series) const {
    std::smatch groups;
    for (const auto& fits : tests_)
      if (!fits(series)) return std::nullopt;
    if (!std::regex_search(series, groups, matches_)) return std::nullopt;
    return expanded(groups);
  }

 private:
  void add(std::function<bool(const std::string&)> test) { tests_.push_back(std::move(test)); }

  /// The matchers of `__name__` in a selector; Prometheus anchors their expressions.
  void read_query(const std::string& query) {
    constexpr std::string_view kLabel = "__name__";
    exact_ = query.substr(0, query.find('{'));
    for (std::size_t at = query.find(kLabel); at != query.npos; at = query.find(kLabel, at)) {
      at += kLabel.size();
      const std::size_t quote = query.find_first_of("\"'`", at);
      if (quote == query.npos) break;
      std::string op(trimmed(std::string_view(query).substr(at, quote - at))), value;
      for (at = quote + 1; at < query.size() && query[at] != query[quote]; ++at) {
        if (query[at] == '\\' && query[quote] != '`') ++at;
        if (at < query.size()) value += query[at];
      }
      if (op == "=") exact_ = value;
      if (op == "!=") add([value](const std::string& name) { return name != value; });
      if (op == "=~" || op == "!~")
        add([re = regex_of(value), is = op == "=~"](const std::string& name) {
          return std::regex_match(name, re) == is;
        });
    }
    if (!exact_.empty()) add([exact = exact_](const std::string& name) { return name == exact; });
  }

  /// Go's Regexp.Expand: `$1` and `${1}`, and `$1x` is a group called 1x, which is empty.
  std::string expanded(const std::smatch& groups) const {
    std::string out;
    for (std::size_t at = 0; at < as_.size();) {
      const bool braced = as_[at] == '$' && as_.substr(at + 1, 1) == "{";
      const std::size_t from = at + (braced ? 2 : 1);
      constexpr std::string_view kWord =
          "0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
      const std::size_t end = std::min(as_.find_first_not_of(kWord, from), as_.size());
      const bool closed = !braced || (end < as_.size() && as_[end] == '}');
      if (as_[at] != '$' || end == from || !closed) {
        out += as_[at++];
        continue;
      }
      std::size_t number = groups.size();
      const char* const last = as_.data() + end;
      if (std::from_chars(as_.data() + from, last, number).ptr == last && number < groups.size())
        out += groups[number].str();
      at = end + (braced ? 1 : 0);
    }
    return out;
  }

  std::string exact_, as_;
  std::vector<std::function<bool(const std::string&)>> tests_;
  std::regex matches_;
};

/// The names of all series that exist here.
std::vector<std::string> series_names() {
  std::vector<std::string> names;
  for (const std::string& name : sim::fleet_metric_names())
    for (const char* part : {"", "_bucket", "_sum", "_count"})
      if (sim::series_of(name + part)) names.push_back(name + part);
  return names;
}

void ScalerReader::take_one(const Member& member, const KeyRow& row, Members& into) {
  if (row.take == Take::kByHand) return;
  if (row.take == Take::kIgnored) return ignore(member, row.ours);
  const ConfigNode& value = *member.value;
  if (value.is_null()) return;
  if (!value.is_scalar())
    return fail(value, printable(member.key) + " must be a scalar (" + got(value) + ")");
  Ptr ours = member.value;
  if (row.take == Take::kNumber) ours = plain(value.text(), value.where());
  if (row.take == Take::kName) ours = plain(snake_case(value.text()), value.where());
  if (row.take == Take::kQuantity) {
    const std::optional<double> number = quantity_in(value.text());
    if (!number)
      return fail(value, printable(member.key) + " must be a quantity (" + got(value) + ")",
                  "write 5, 0.8 or 800m");
    ours = plain(number_text(*number), value.where());
  }
  put_member(into, {std::string(row.ours), member.key_where, ours});
}

void ScalerReader::take(const ConfigNode& map, Members& into, KeyRows rows) {
  for (const Member& member : map.members()) {
    const auto row = std::ranges::find(rows, std::string_view(member.key), &KeyRow::theirs);
    if (row != rows.end()) {
      take_one(member, *row, into);
      continue;
    }
    std::vector<std::string> known;
    for (const KeyRow& r : rows) known.emplace_back(r.theirs);
    diagnostics_.error(member.key_where, path_, "unknown key `" + printable(member.key) + "`",
                       did_you_mean(member.key, known));
  }
}

/// Rules that alert record nothing.
void ScalerReader::add_rules(const ConfigNode& object) {
  for (const Ptr& group : items_at(object, {"spec", "groups"}))
    for (const Ptr& rule : items_at(*group, {"rules"})) {
      if (rule->child("record") == nullptr) continue;
      Members keys;
      take(*rule, keys,
           {{"record", Take::kText, "record"},
            {"expr", Take::kText, "expr"},
            {"labels", Take::kIgnored, "all series of a pool share it"}});
      rules_.push_back(ConfigNode::make_map(std::move(keys), rule->where()));
    }
}

/// kubernetes-sigs/prometheus-adapter docs/config.md: templates in double angles. Its resources say
/// to which objects a series belongs; here all belong to the pool.
void ScalerReader::add_adapter_rule(const ConfigNode& rule, const ConfigNode& query) {
  try {
    const AdapterNames names(rule);
    std::vector<std::string> series = series_names();
    for (const Ptr& recorded : rules_) series.push_back(text_at(*recorded, {"record"}));
    if (!names.exact().empty()) series = {names.exact()};
    for (const std::string& name : series) {
      const std::optional<std::string> metric = names.metric_of(name);
      if (!metric) continue;
      std::string text = query.text();
      const std::pair<std::string_view, std::string_view> parts[] = {{"<< .", "<<."},
                                                                     {" >>", ">>"},
                                                                     {"<<.Series>>", name},
                                                                     {"<<.LabelMatchers>>,", ""},
                                                                     {"<<.LabelMatchers>>", ""},
                                                                     {"<<.GroupBy>>", "pod"}};
      for (const auto& [what, by] : parts) replace_all(text, what, by);
      adapter_.emplace_back(*metric, plain(text, query.where()));
    }
  } catch (const std::regex_error&) {
    diagnostics_.warning(rule.where(), path_,
                         "prometheus-adapter's rule is not read: a regular expression in it is "
                         "not understood, or leaves open what the metric is called",
                         "write the query under `autoscaler.metrics` of the pool");
  }
}

void ScalerReader::add_adapter_rules(const ConfigNode& rules) {
  for (const Ptr& rule : children_of(rules))
    if (const ConfigNode* query = node_at(*rule, {"metricsQuery"});
        query != nullptr && query->is_scalar())
      add_adapter_rule(*rule, *query);
}

Ptr ScalerReader::scaling_rules(const ConfigNode& node) {
  if (!is_map(&node, "the rules")) return nullptr;
  Members keys;
  take(node, keys,
       {{"stabilizationWindowSeconds", Take::kNumber, "stabilization_window_seconds"},
        {"selectPolicy", Take::kName, "select_policy"},
        {"tolerance", Take::kQuantity, "tolerance"},
        {"policies"}});
  std::vector<Ptr> policies;
  for (const Ptr& policy : items_at(node, {"policies"})) {
    if (!is_map(policy.get(), "a policy")) continue;
    Members entry;
    take(*policy, entry,
         {{"type", Take::kName, "type"},
          {"value", Take::kNumber, "value"},
          {"periodSeconds", Take::kNumber, "period_seconds"}});
    policies.push_back(ConfigNode::make_map(std::move(entry), policy->where()));
  }
  if (!policies.empty())
    add_member(keys, "policies", ConfigNode::make_sequence(std::move(policies), node.where()));
  return ConfigNode::make_map(std::move(keys), node.where());
}

Ptr ScalerReader::behavior(const ConfigNode& node) {
  if (!is_map(&node, "behavior")) return nullptr;
  Members keys;
  take(node, keys, {{"scaleUp"}, {"scaleDown"}});
  if (const ConfigNode* up = node.child("scaleUp"))
    add_member(keys, "scale_up", scaling_rules(*up));
  if (const ConfigNode* down = node.child("scaleDown"))
    add_member(keys, "scale_down", scaling_rules(*down));
  return ConfigNode::make_map(std::move(keys), node.where());
}

/// pkg/controller/podautoscaler/horizontal.go of Kubernetes 1.36: the type decides for an object
/// only. An external metric has one of the two keys, and those of pods need the average.
void ScalerReader::metric_target(const ConfigNode& target, const std::string& of, Members& into) {
  if (!is_map(&target, "target")) return;
  const std::string type = text_at(target, {"type"});
  const bool average = target.child("averageValue") != nullptr;
  if (of == "External" && average && target.child("value") != nullptr)
    fail(target, "may not set both a target value for metric and a per-pod target",
         "leave out `value` or `averageValue`");
  const std::vector<std::string> types = {"Value", "AverageValue", "Utilization"};
  const bool decides = of == "Object" && !type.empty();
  if (const auto known = std::ranges::find(types, type);
      !type.empty() && (known == types.end() || (decides && type == types.back())))
    fail(*target.child("type"), "a target of type `" + printable(type) + "` is not possible here",
         did_you_mean(type, types, "known are Value and AverageValue"));
  const bool by_value = decides ? type == "Value" : of != "Pods" && !average;
  const Take other = Take::kIgnored;
  constexpr std::string_view kOther = "the controller reads the other key of the target";
  take(target, into,
       {decides ? KeyRow{"type"}
                : KeyRow{"type", other, "the controller reads the key that is there"},
        by_value ? KeyRow{"value", Take::kQuantity, "target"} : KeyRow{"value", other, kOther},
        by_value ? KeyRow{"averageValue", other, kOther}
                 : KeyRow{"averageValue", Take::kQuantity, "target"}});
  add_member(into, "target_type", plain(by_value ? "value" : "average_value", target.where()));
}

/// prometheus-adapter cannot serve colons, so its rules rename `vllm:x` to `vllm_x`.
Ptr ScalerReader::metric_query(const ConfigNode& metric, const std::string& type) {
  const ConfigNode* name = node_at(metric, {"name"});
  if (name == nullptr || !name->is_scalar()) return nullptr;
  if (metric.child("selector") != nullptr)
    ignore(*metric.find("selector"), "all series are taken as the pool's own");
  for (const auto& [as, query] : adapter_)
    if (as == name->text()) return query;
  std::string series = name->text();
  const std::size_t underscore = series.find('_');
  if (!sim::series_of(series) && underscore != series.npos) series[underscore] = ':';
  if (!sim::series_of(series)) {
    fail(*name, "metric `" + printable(name->text()) + "` is not simulated",
         did_you_mean(name->text(), sim::fleet_metric_names(),
                      "put prometheus-adapter's ConfigMap into the file, or write the query under "
                      "`autoscaler.metrics` of the pool"));
    return nullptr;
  }
  return plain(type == "Pods" ? series : "sum(" + series + ")", name->where());
}

Ptr ScalerReader::hpa_metric(const ConfigNode& metric) {
  if (!is_map(&metric, "a metric")) return nullptr;
  const std::string type = text_at(metric, {"type"});
  if (type == "Resource" || type == "ContainerResource") {
    diagnostics_.warning(metric.where(), path_,
                         "is not modelled: CPU and memory of model servers are not simulated, and "
                         "the other metrics decide alone");
    return nullptr;
  }
  const std::string key = type.empty() ? "" : snake_case(type);
  const ConfigNode* source = metric.child(key);
  if (source == nullptr || !is_map(source, "a metric")) {
    fail(metric, "a metric of type `" + printable(type) + "` is not simulated",
         "known are Pods, Object and External, each with a key of its name");
    return nullptr;
  }
  Members keys;
  take(*source, keys,
       {{"metric"},
        {"target"},
        {"describedObject", Take::kIgnored, "all series are taken as the pool's own"}});
  add_member(keys, "type", plain(key, metric.where()));
  if (const ConfigNode* named = source->child("metric"))
    add_member(keys, "query", metric_query(*named, type));
  if (const ConfigNode* target = source->child("target")) metric_target(*target, type, keys);
  if (find_member(keys, "query") == nullptr) return nullptr;
  return ConfigNode::make_map(std::move(keys), metric.where());
}

void ScalerReader::hpa_v1(const ConfigNode& spec) {
  if (const ConfigNode* cpu = spec.child("targetCPUUtilizationPercentage"))
    fail(*cpu, "CPU of model servers is not simulated",
         "scale by waiting requests: autoscaling/v2 with a metric of Pods or External");
}

Members ScalerReader::hpa(const ConfigNode& spec) {
  Members keys;
  add_member(keys, "kind", plain("hpa", spec.where()));
  take(spec, keys,
       {{"scaleTargetRef"},
        {"minReplicas", Take::kNumber, "min_replicas"},
        {"maxReplicas", Take::kNumber, "max_replicas"},
        {"targetCPUUtilizationPercentage"},
        {"metrics"},
        {"behavior"}});
  hpa_v1(spec);
  std::vector<Ptr> metrics;
  for (const Ptr& metric : items_at(spec, {"metrics"}))
    if (Ptr read = hpa_metric(*metric)) metrics.push_back(std::move(read));
  add_member(keys, "metrics", ConfigNode::make_sequence(std::move(metrics), spec.where()));
  if (const ConfigNode* rules = spec.child("behavior"))
    add_member(keys, "behavior", behavior(*rules));
  return keys;
}

Ptr ScalerReader::trigger(const ConfigNode& node) {
  if (!is_map(&node, "a trigger")) return nullptr;
  if (const std::string type = text_at(node, {"type"}); type != "prometheus") {
    fail(node, "trigger type `" + printable(type) + "` is not simulated",
         "prometheus triggers are");
    return nullptr;
  }
  Members keys;
  take(node, keys,
       {{"type"},
        {"metadata"},
        {"name", Take::kText, "name"},
        {"metricType", Take::kName, "metric_type"},
        {"useCachedMetrics", Take::kNumber, "use_cached_metrics"},
        {"authenticationRef", Take::kIgnored, kNotAsked}});
  const ConfigNode* metadata = node.child("metadata");
  if (!is_map(metadata, "metadata")) return nullptr;
  take(*metadata, keys,
       {{"query", Take::kText, "query"},
        {"threshold", Take::kNumber, "threshold"},
        {"activationThreshold", Take::kNumber, "activation_threshold"},
        {"ignoreNullValues", Take::kNumber, "ignore_null_values"},
        {"serverAddress", Take::kIgnored, kNotAsked},
        {"metricName", Take::kIgnored, "KEDA names its metrics itself"},
        {"namespace", Take::kIgnored, kNotAsked},
        {"unsafeSsl", Take::kIgnored, kNotAsked},
        {"authModes", Take::kIgnored, kNotAsked},
        {"customHeaders", Take::kIgnored, kNotAsked},
        {"queryParameters", Take::kIgnored, kNotAsked},
        {"cortexOrgID", Take::kIgnored, kNotAsked},
        {"awsRegion", Take::kIgnored, kNotAsked},
        {"identityOwner", Take::kIgnored, kNotAsked},
        {"timeout", Take::kIgnored, kNotAsked}});
  // prometheus_scaler.go of KEDA. It wants a serverAddress, too, which no run reads.
  if (text_at(*metadata, {"threshold"}).empty())
    fail(*metadata, "`threshold` is missing: KEDA does not take the trigger");
  return ConfigNode::make_map(std::move(keys), node.where());
}

void ScalerReader::advanced(const ConfigNode& node, Members& into) {
  if (!is_map(&node, "advanced")) return;
  take(node, into,
       {{"restoreToOriginalReplicaCount", Take::kIgnored, "the object is never deleted"},
        {"horizontalPodAutoscalerConfig"},
        {"scalingModifiers"}});
  if (const ConfigNode* config = node.child("horizontalPodAutoscalerConfig");
      is_map(config, "horizontalPodAutoscalerConfig")) {
    take(*config, into, {{"name", Take::kIgnored, "it is a name"}, {"behavior"}});
    if (const ConfigNode* rules = config->child("behavior"))
      add_member(into, "behavior", behavior(*rules));
  }
  if (const ConfigNode* modifiers = node.child("scalingModifiers");
      is_map(modifiers, "scalingModifiers") && !modifiers->members().empty()) {
    Members keys;
    take(*modifiers, keys,
         {{"formula", Take::kText, "formula"},
          {"target", Take::kNumber, "target"},
          {"activationTarget", Take::kNumber, "activation_target"},
          {"metricType", Take::kName, "metric_type"}});
    add_member(into, "scaling_modifiers",
               ConfigNode::make_map(std::move(keys), modifiers->where()));
  }
}

void ScalerReader::annotations(const ConfigNode& object, Members& into) {
  constexpr std::string_view kPrefix = "autoscaling.keda.sh/";
  constexpr std::array<std::string_view, 5> kKnown = {
      "paused", "paused-replicas", "paused-scale-in", "paused-scale-out", "force-activation"};
  const ConfigNode* map = node_at(object, {"metadata", "annotations"});
  if (map == nullptr || !map->is_map()) return;
  Members keys;
  for (const Member& member : map->members()) {
    if (!member.key.starts_with(kPrefix)) continue;
    const std::string name = member.key.substr(kPrefix.size());
    if (std::ranges::find(kKnown, name) == kKnown.end()) {
      ignore(member, "it does not scale");
      continue;
    }
    const std::string value = name == "paused-replicas"              ? member.value->text()
                              : is_false_in_go(member.value->text()) ? "false"
                                                                     : "true";
    add_member(keys, with_underscores(name), plain(value, member.value->where()));
  }
  if (!keys.empty())
    add_member(into, "annotations", ConfigNode::make_map(std::move(keys), map->where()));
}

Members ScalerReader::keda(const ConfigNode& object, const ConfigNode& spec) {
  Members keys;
  add_member(keys, "kind", plain("keda", spec.where()));
  take(spec, keys,
       {{"scaleTargetRef"},
        {"pollingInterval", Take::kNumber, "polling_interval"},
        {"cooldownPeriod", Take::kNumber, "cooldown_period"},
        {"initialCooldownPeriod", Take::kNumber, "initial_cooldown_period"},
        {"idleReplicaCount", Take::kNumber, "idle_replica_count"},
        {"minReplicaCount", Take::kNumber, "min_replica_count"},
        {"maxReplicaCount", Take::kNumber, "max_replica_count"},
        {"fallback"},
        {"advanced"},
        {"triggers"}});
  if (const ConfigNode* fallback = spec.child("fallback"); is_map(fallback, "fallback")) {
    Members entry;
    take(*fallback, entry,
         {{"failureThreshold", Take::kNumber, "failure_threshold"},
          {"replicas", Take::kNumber, "replicas"},
          {"behavior", Take::kName, "behavior"}});
    add_member(keys, "fallback", ConfigNode::make_map(std::move(entry), fallback->where()));
  }
  if (const ConfigNode* more = spec.child("advanced")) advanced(*more, keys);
  std::vector<Ptr> triggers;
  for (const Ptr& node : items_at(spec, {"triggers"}))
    if (Ptr read = trigger(*node)) triggers.push_back(std::move(read));
  add_member(keys, "triggers", ConfigNode::make_sequence(std::move(triggers), spec.where()));
  annotations(object, keys);
  return keys;
}

std::optional<ScalerObject> ScalerReader::read(const ConfigNode& object) {
  ScalerObject found;
  found.kind = text_at(object, {"kind"});
  found.where = object.where();
  found.name = text_at(object, {"metadata", "name"});
  found.target = text_at(object, {"spec", "scaleTargetRef", "name"});
  const ConfigNode* spec = object.child("spec");
  if (spec == nullptr) {
    fail(object, found.kind + " has no spec");
    return std::nullopt;
  }
  if (!is_map(spec, "spec")) return std::nullopt;
  Members keys = found.kind == "ScaledObject" ? keda(object, *spec) : hpa(*spec);
  if (!rules_.empty())
    add_member(keys, "prometheus",
               ConfigNode::make_map({{"recording_rules", rules_[0]->where(),
                                      ConfigNode::make_sequence(rules_, rules_[0]->where())}},
                                    rules_[0]->where()));
  found.autoscaler = ConfigNode::make_map(std::move(keys), spec->where());
  return found;
}

/// The place of a character of a scalar. Folded and quoted texts of several lines have no lines of
/// their own, so that the scalar stands for all of them.
SourceLocation place_of_character(const ConfigNode& scalar, std::size_t position) {
  SourceLocation where = scalar.where();
  const std::string_view before = std::string_view(scalar.text()).substr(0, position);
  const auto lines = static_cast<int>(std::ranges::count(before, '\n'));
  const std::size_t start = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
  const auto column = static_cast<int>(position - std::min(start, position));
  if (scalar.block_first_line() > 0) {
    where.line = scalar.block_first_line() + lines;
    where.column = scalar.block_indent() + column + 1;
  } else if (scalar.style() == ConfigNode::Style::kPlain && lines == 0) {
    where.column += column;
  } else if (scalar.style() == ConfigNode::Style::kQuoted && lines == 0) {
    where.column += column + 1;
  }
  return where;
}

/// The value at a path such as `triggers[1].query`; null where there is none.
const ConfigNode* value_at_path(const ConfigNode& root, std::string_view path) {
  const ConfigNode* node = &root;
  while (node != nullptr && !path.empty()) {
    const std::size_t end = std::min(path.find_first_of(".["), path.size());
    if (end > 0) node = node->child(path.substr(0, end));
    path.remove_prefix(end);
    if (path.starts_with('[')) {
      std::size_t index = 0;
      const std::size_t close = path.find(']');
      std::from_chars(path.data() + 1, path.data() + close, index);
      if (node != nullptr)
        node = index < node->items().size() ? node->items()[index].get() : nullptr;
      path.remove_prefix(close + 1);
    }
    if (path.starts_with('.')) path.remove_prefix(1);
  }
  return node;
}

}  // namespace

bool is_false_in_go(std::string_view text) {
  constexpr std::array<std::string_view, 6> kFalse = {"0", "f", "F", "false", "FALSE", "False"};
  return std::ranges::find(kFalse, text) != kFalse.end();
}

std::vector<ScalerObject> scalers_in_tree(const ConfigNode::Ptr& root, const std::string& key_path,
                                          Diagnostics& diagnostics,
                                          const ConfigNode::Ptr& adapter) {
  std::vector<Ptr> objects = {root};
  if (text_at(*root, {"kind"}) == "List") objects = items_at(*root, {"items"});
  ScalerReader reader(key_path, diagnostics);
  const auto is_kind = [](const ConfigNode& object, std::initializer_list<const char*> kinds) {
    if (!object.is_map() || !is_kubernetes_object(object)) return false;
    return std::ranges::find(kinds, text_at(object, {"kind"})) != kinds.end();
  };
  for (const Ptr& object : objects)
    if (is_kind(*object, {"PrometheusRule"})) reader.add_rules(*object);
  // Its chart writes the rules into a ConfigMap, under other keys than its values have.
  std::vector<Ptr> adapters;
  if (adapter != nullptr) adapters.push_back(adapter);
  for (const Ptr& object : objects)
    if (is_kind(*object, {"ConfigMap"}))
      if (const Ptr text = scalar_at(*object, {"data", "config.yaml"}))
        if (text->text().find("metricsQuery") != std::string::npos)
          if (Ptr config = parse_embedded(*text, diagnostics))
            adapters.push_back(std::move(config));
  for (const Ptr& rules : adapters)
    for (const ConfigNode* list :
         {node_at(*rules, {"rules", "external"}), node_at(*rules, {"rules", "custom"}),
          node_at(*rules, {"externalRules"}), node_at(*rules, {"rules"})})
      if (list != nullptr && list->is_sequence()) reader.add_adapter_rules(*list);
  std::vector<ScalerObject> found;
  for (const Ptr& object : objects)
    if (is_kind(*object, {"HorizontalPodAutoscaler", "ScaledObject"}))
      if (std::optional<ScalerObject> scaler = reader.read(*object))
        found.push_back(std::move(*scaler));
  return found;
}

std::optional<sim::AutoscalerConfig> read_autoscaler(const ConfigNode& node,
                                                     const std::string& key_path,
                                                     Diagnostics& diagnostics) {
  sim::AutoscalerConfig config;
  Diagnostics found;
  read_struct(node, config, found, {.path = key_path});
  if (!found.has_errors()) {
    for (const sim::AutoscalerFault& fault : sim::autoscaler_faults(config)) {
      const ConfigNode* value = value_at_path(node, fault.path);
      found.error(value != nullptr && value->is_scalar()
                      ? place_of_character(*value, fault.position)
                  : value != nullptr ? value->where()
                                     : node.where(),
                  child_path(key_path, fault.path), fault.message, fault.hint);
    }
  }
  const bool is_broken = found.has_errors();
  append(diagnostics, found);
  if (is_broken) return std::nullopt;
  std::string labels;
  for (const std::string& matcher : sim::unused_matchers(config)) add_word(labels, matcher);
  if (!labels.empty())
    diagnostics.warning(node.where(), key_path,
                        "labels select nothing here, since all series are the pool's own: " +
                            printable(labels, 200));
  return config;
}

}  // namespace routesim::tools
