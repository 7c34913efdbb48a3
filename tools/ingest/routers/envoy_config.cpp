#include "tools/ingest/routers/envoy_config.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "sim/plan/gateway_config.h"

namespace routesim::tools {

namespace {

using Ptr = ConfigNode::Ptr;
using Member = ConfigNode::Member;
/// Our name of a key and theirs.
using KeyPairs = std::initializer_list<std::pair<const char*, const char*>>;

/// The value at a path of keys, or null.
template <class Keys>
const ConfigNode* follow(const ConfigNode& root, const Keys& keys) {
  const ConfigNode* node = &root;
  for (const std::string_view key : keys) {
    if (!node->is_map()) return nullptr;
    node = node->child(key);
    if (node == nullptr) return nullptr;
  }
  return node;
}

const ConfigNode* at(const ConfigNode& root, std::initializer_list<std::string_view> keys) {
  return follow(root, keys);
}

Ptr copy(const ConfigNode& scalar) {
  return ConfigNode::make_scalar(scalar.text(), scalar.style(), scalar.where());
}

Ptr plain_scalar(std::string text, const SourceLocation& where) {
  return ConfigNode::make_scalar(std::move(text), ConfigNode::Style::kPlain, where);
}

class EnvoyReader {
 public:
  explicit EnvoyReader(Diagnostics& diagnostics)
      : diagnostics_(diagnostics), unread_(diagnostics) {}

  Ptr routing(const ConfigNode& root) {
    if (const ConfigNode* spec = gateway_policy(root)) return from_gateway(*spec);
    const ConfigNode* cluster = first_with(root, {"lb_policy", "load_balancing_policy"});
    if (cluster == nullptr) return nullptr;
    if (const std::size_t n = count_with(root, "lb_policy"); n > 1)
      diagnostics_.warning(cluster->where(), "routing.config",
                           "is read for the first of " + std::to_string(n) +
                               " clusters with a load balancer; the others are not read");
    if (const ConfigNode* name = cluster->child("lb_policy"))
      return from_cluster(root, *cluster, name->text(), name->where());
    const ConfigNode* config = first_with(*cluster->child("load_balancing_policy"), {"@type"});
    if (config == nullptr) return nullptr;
    return from_extension(root, *cluster, *config);
  }

 private:
  void set(const char* key, const ConfigNode* value) {
    if (value != nullptr && expect_scalar(*value, key))
      settings_.push_back({key, value->where(), copy(*value)});
  }
  bool expect_scalar(const ConfigNode& value, const std::string& key) {
    if (!value.is_scalar())
      diagnostics_.error(value.where(), "routing.config",
                         printable(key) + " must be a scalar (" + got(value) + ")");
    return value.is_scalar();
  }
  /// Whether the value is a map, or an error as Envoy's own.
  bool expect_map(const ConfigNode& value, const std::string& key) {
    if (!value.is_map())
      diagnostics_.error(value.where(), "routing.config",
                         printable(key) + " must be a map (" + got(value) + ")");
    return value.is_map();
  }
  /// The settings of one balancer, under the keys of Envoy's API.
  void take(const ConfigNode& config) {
    set("choice_count", config.child("choice_count"));
    set("selection_method", config.child("selection_method"));
    set("active_request_bias", at(config, {"active_request_bias", "default_value"}));
    set("minimum_ring_size", config.child("minimum_ring_size"));
    set("maximum_ring_size", config.child("maximum_ring_size"));
    set("hash_function", config.child("hash_function"));
    set("table_size", config.child("table_size"));
    set("hash_balance_factor", at(config, {"consistent_hashing_lb_config", "hash_balance_factor"}));
    name_unread(config, {"@type", "choice_count", "selection_method", "active_request_bias",
                         "minimum_ring_size", "maximum_ring_size", "hash_function", "table_size",
                         "consistent_hashing_lb_config", "healthy_panic_threshold"});
  }
  void name_unread(const ConfigNode& map, std::initializer_list<std::string_view> read) {
    if (!map.is_map()) return;
    for (const Member& m : map.members())
      if (std::find(read.begin(), read.end(), m.key) == read.end())
        unread_.add(m.key, m.key_where, Fate::kNotModelled);
  }
  /// Keys of a cluster beside its load balancer, and its limits.
  void take_cluster(const ConfigNode& root, const ConfigNode& cluster) {
    name_unread(cluster, {"name", "type", "lb_policy", "load_balancing_policy", "load_assignment",
                          "least_request_lb_config", "ring_hash_lb_config", "maglev_lb_config",
                          "common_lb_config", "connect_timeout", "dns_lookup_family",
                          "circuit_breakers", "http2_protocol_options",
                          "typed_extension_protocol_options", "original_dst_lb_config"});
    take_hosts(cluster);
    take_hash_policy(root);
    if (const ConfigNode* http2 = first_with(cluster, {"http2_protocol_options"}))
      limit("protocol", plain_scalar("http2", http2->where()));
    take_thresholds(cluster);
    if (const ConfigNode* route = first_with(root, {"retry_policy"}))
      take_retry_policy(*route->child("retry_policy"));
  }
  void limit(const char* key, Ptr value) {
    const SourceLocation where = value->where();
    limits_.push_back({key, where, std::move(value)});
  }
  /// Scalars of `from`, as pairs of our key and theirs.
  static void take_scalars(std::vector<Member>& into, const ConfigNode& from, KeyPairs keys) {
    for (const auto& [ours, theirs] : keys) {
      const ConfigNode* value = from.is_map() ? from.child(theirs) : nullptr;
      if (value != nullptr && value->is_scalar())
        into.push_back({ours, value->where(), copy(*value)});
    }
  }
  /// The thresholds of default priority: simulated requests have no other.
  void take_thresholds(const ConfigNode& cluster) {
    const ConfigNode* breakers = cluster.child("circuit_breakers");
    if (breakers == nullptr) return;
    if (!expect_map(*breakers, "circuit_breakers")) return;
    name_unread(*breakers, {"thresholds"});
    const ConfigNode* list = at(*breakers, {"thresholds"});
    if (list == nullptr) return;
    if (!list->is_sequence())
      return diagnostics_.error(list->where(), "routing.config",
                                "circuit_breakers.thresholds must be a list (" + got(*list) + ")");
    for (const Ptr& entry : list->items()) {
      if (!expect_map(*entry, "thresholds[]")) continue;
      const ConfigNode* priority = entry->child("priority");
      if (priority != nullptr && priority->text() != "DEFAULT") continue;
      take_scalars(limits_, *entry,
                   {{"max_connections", "max_connections"},
                    {"max_pending_requests", "max_pending_requests"},
                    {"max_requests", "max_requests"},
                    {"max_retries", "max_retries"}});
      if (const ConfigNode* budget = entry->child("retry_budget")) {
        std::vector<Member> keys;
        if (const ConfigNode* percent = at(*budget, {"budget_percent"}))
          take_scalars(keys, *percent, {{"budget_percent", "value"}});
        take_scalars(keys, *budget, {{"min_retry_concurrency", "min_retry_concurrency"}});
        limit("retry_budget", ConfigNode::make_map(std::move(keys), budget->where()));
      }
      name_unread(*entry, {"priority", "max_connections", "max_pending_requests", "max_requests",
                           "max_retries", "retry_budget", "track_remaining"});
      return;
    }
  }
  /// Conditions of gRPC never hold, and are left out.
  void take_retry_on(std::vector<Member>& keys, const std::vector<std::string>& conditions,
                     const SourceLocation& where) {
    std::vector<Ptr> known;
    for (const std::string& name : conditions) {
      const auto& names = EnumNames<sim::RetryOn>::value;
      if (std::find(names.begin(), names.end(), name) != names.end())
        known.push_back(plain_scalar(name, where));
      else
        unread_.add(name, where, Fate::kNoEffect);
    }
    keys.push_back({"retry_on", where, ConfigNode::make_sequence(std::move(known), where)});
  }
  static void take_list(std::vector<Member>& keys, const char* key, const ConfigNode* list) {
    if (list != nullptr && list->is_sequence())
      keys.push_back({key, list->where(), ConfigNode::make_sequence(list->items(), list->where())});
  }
  void take_retry_policy(const ConfigNode& policy) {
    if (!policy.is_map()) return;
    std::vector<Member> keys;
    if (const ConfigNode* on = policy.child("retry_on")) {
      std::vector<std::string> conditions;
      std::istringstream text(on->text());
      for (std::string name; std::getline(text, name, ',');) conditions.emplace_back(trimmed(name));
      take_retry_on(keys, conditions, on->where());
    }
    take_scalars(keys, policy, {{"num_retries", "num_retries"}});
    take_list(keys, "retriable_status_codes", policy.child("retriable_status_codes"));
    if (const ConfigNode* back_off = policy.child("retry_back_off"))
      take_scalars(keys, *back_off,
                   {{"base_interval", "base_interval"}, {"max_interval", "max_interval"}});
    name_unread(policy, {"retry_on", "num_retries", "retriable_status_codes", "retry_back_off"});
    limit("retry", ConfigNode::make_map(std::move(keys), policy.where()));
  }

  Ptr from_cluster(const ConfigNode& root, const ConfigNode& cluster, const std::string& policy,
                   const SourceLocation& where) {
    for (const char* key :
         {"least_request_lb_config", "ring_hash_lb_config", "maglev_lb_config", "common_lb_config"})
      if (const ConfigNode* config = cluster.child(key); config && expect_map(*config, key))
        take(*config);
    set("healthy_panic_threshold",
        at(cluster, {"common_lb_config", "healthy_panic_threshold", "value"}));
    take_cluster(root, cluster);
    // The cluster sends a request where its header says, and an ext_proc sets the header.
    const ConfigNode* by_header = at(cluster, {"original_dst_lb_config", "use_http_header"});
    if (policy == "CLUSTER_PROVIDED" && by_header != nullptr && by_header->text() == "true")
      return with_balancer("endpoint-picker", where);
    return finish(policy, where);
  }

  Ptr from_extension(const ConfigNode& root, const ConfigNode& cluster, const ConfigNode& config) {
    const ConfigNode& type = *config.child("@type");
    take(config);
    take_cluster(root, cluster);
    constexpr std::array<std::pair<std::string_view, const char*>, 5> kTypes = {{
        {"round_robin", "ROUND_ROBIN"},
        {"least_request", "LEAST_REQUEST"},
        {"ring_hash", "RING_HASH"},
        {"maglev", "MAGLEV"},
        {"random", "RANDOM"},
    }};
    for (const auto& [part, name] : kTypes)
      if (type.text().find(part) != std::string::npos) return finish(name, type.where());
    return finish(type.text(), type.where());
  }

  static const ConfigNode* gateway_policy(const ConfigNode& root) {
    if (root.is_map() && root.child("kind") != nullptr &&
        root.child("kind")->text() == "BackendTrafficPolicy")
      return at(root, {"spec"});
    if (root.is_map() && root.child("items") != nullptr)
      for (const Ptr& item : root.child("items")->items())
        if (const ConfigNode* found = gateway_policy(*item)) return found;
    return nullptr;
  }

  /// Envoy Gateway allows as many retries as requests, and retries 503 twice by default
  /// (internal/xds/translator/cluster.go and route.go, @d32f2829). A policy may leave the load
  /// balancer to something else.
  Ptr from_gateway(const ConfigNode& spec) {
    if (!spec.is_map()) return nullptr;
    take_gateway_breaker(spec.child("circuitBreaker"), spec.where());
    if (const ConfigNode* retry = spec.child("retry")) take_gateway_retry(*retry);
    name_unread(spec, {"targetRef", "targetRefs", "targetSelectors", "loadBalancer",
                       "circuitBreaker", "retry"});
    const ConfigNode* policy = spec.child("loadBalancer");
    if (policy == nullptr) return with_balancer("", spec.where());
    return from_gateway_balancer(*policy);
  }

  void take_gateway_breaker(const ConfigNode* breaker, const SourceLocation& where) {
    if (breaker == nullptr || !breaker->is_map())
      return limit("max_retries", plain_scalar("1024", where));
    take_scalars(limits_, *breaker,
                 {{"max_connections", "maxConnections"},
                  {"max_pending_requests", "maxPendingRequests"},
                  {"max_requests", "maxParallelRequests"},
                  {"max_retries", "maxParallelRetries"}});
    if (breaker->child("maxParallelRetries") == nullptr)
      limit("max_retries", plain_scalar("1024", where));
    name_unread(*breaker, {"maxConnections", "maxPendingRequests", "maxParallelRequests",
                           "maxParallelRetries"});
  }

  void take_gateway_retry(const ConfigNode& retry) {
    std::vector<Member> keys;
    const SourceLocation& where = retry.where();
    const ConfigNode* triggers = at(retry, {"retryOn", "triggers"});
    if (triggers != nullptr && triggers->is_sequence()) {
      std::vector<std::string> conditions;
      for (const Ptr& trigger : triggers->items()) conditions.push_back(trigger->text());
      take_retry_on(keys, conditions, triggers->where());
    } else {
      take_retry_on(keys, {"connect-failure", "refused-stream", "retriable-status-codes"}, where);
    }
    if (at(retry, {"retryOn"}) != nullptr)
      take_list(keys, "retriable_status_codes", at(retry, {"retryOn", "httpStatusCodes"}));
    else
      keys.push_back({"retriable_status_codes", where,
                      ConfigNode::make_sequence({plain_scalar("503", where)}, where)});
    take_scalars(keys, retry, {{"num_retries", "numRetries"}});
    if (at(retry, {"numRetries"}) == nullptr)
      keys.push_back({"num_retries", where, plain_scalar("2", where)});
    if (const ConfigNode* back_off = at(retry, {"perRetry", "backOff"}))
      take_scalars(keys, *back_off,
                   {{"base_interval", "baseInterval"}, {"max_interval", "maxInterval"}});
    if (const ConfigNode* each = at(retry, {"perRetry"})) name_unread(*each, {"backOff"});
    name_unread(retry, {"retryOn", "numRetries", "perRetry"});
    limit("retry", ConfigNode::make_map(std::move(keys), where));
  }

  /// ConsistentHash becomes Maglev (its table size is a key of its own).
  Ptr from_gateway_balancer(const ConfigNode& policy) {
    const ConfigNode* type = policy.child("type");
    if (type == nullptr) return nullptr;
    constexpr std::array<std::pair<std::string_view, const char*>, 4> kTypes = {{
        {"RoundRobin", "ROUND_ROBIN"},
        {"LeastRequest", "LEAST_REQUEST"},
        {"ConsistentHash", "MAGLEV"},
        {"Random", "RANDOM"},
    }};
    if (const ConfigNode* hash = policy.child("consistentHash")) {
      set("table_size", hash->child("tableSize"));
      std::vector<Member> entry;
      if (const ConfigNode* name = at(*hash, {"header", "name"}))
        entry.push_back({"header", name->where(), copy(*name)});
      else if (const ConfigNode* cookie = at(*hash, {"cookie", "name"}))
        entry = {{"cookie", cookie->where(), copy(*cookie)},
                 {"has_ttl", cookie->where(), plain_scalar("true", cookie->where())}};
      else
        entry.push_back({"source_ip", hash->where(), plain_scalar("true", hash->where())});
      add_hash_policies({ConfigNode::make_map(std::move(entry), hash->where())}, hash->where());
    }
    for (const auto& [theirs, name] : kTypes)
      if (type->text() == theirs) return finish(name, type->where());
    return finish(type->text(), type->where());
  }

  /// One list of the hosts' values, where any host has one.
  void set_list(const char* key, std::vector<Ptr> values, bool any, const SourceLocation& where) {
    if (any) settings_.push_back({key, where, ConfigNode::make_sequence(std::move(values), where)});
  }
  /// Weights, health and hash keys of the hosts, in their order, which is that of the servers.
  void take_hosts(const ConfigNode& cluster) {
    const ConfigNode* assignment = at(cluster, {"load_assignment"});
    const ConfigNode* endpoints = at(cluster, {"load_assignment", "endpoints"});
    if (assignment == nullptr || !expect_map(*assignment, "load_assignment")) return;
    name_unread(*assignment, {"cluster_name", "endpoints"});
    if (endpoints == nullptr || !endpoints->is_sequence()) return;
    struct HostKey {
      const char* setting;
      std::vector<std::string_view> path;
      const char* otherwise;
      std::vector<Ptr> values = {};
      bool any = false;
    };
    std::array<HostKey, 3> keys = {
        {{"weights", {"load_balancing_weight"}, "1"},
         {"health_status", {"health_status"}, "UNKNOWN"},
         {"hash_keys", {"metadata", "filter_metadata", "envoy.lb", "hash_key"}, ""}}};
    for (const Ptr& locality : endpoints->items()) {
      if (!expect_map(*locality, "endpoints[]")) continue;
      const ConfigNode* hosts = locality->child("lb_endpoints");
      // Nothing stands out where all hosts have the highest priority.
      const ConfigNode* priority = locality->child("priority");
      name_unread(*locality, {"lb_endpoints", "locality",
                              priority != nullptr && priority->text() == "0" ? "priority" : ""});
      if (hosts == nullptr || !hosts->is_sequence()) continue;
      for (const Ptr& host : hosts->items()) {
        if (!expect_map(*host, "lb_endpoints[]")) continue;
        name_unread(*host, {"endpoint", "load_balancing_weight", "health_status", "metadata"});
        for (HostKey& key : keys) {
          const ConfigNode* value = follow(*host, key.path);
          if (value != nullptr && !expect_scalar(*value, key.setting)) value = nullptr;
          key.any = key.any || value != nullptr;
          key.values.push_back(
              value != nullptr ? copy(*value)
                               : ConfigNode::make_scalar(key.otherwise, ConfigNode::Style::kUntyped,
                                                         host->where()));
        }
      }
    }
    for (HostKey& key : keys)
      set_list(key.setting, std::move(key.values), key.any, endpoints->where());
  }

  void take_hash_policy(const ConfigNode& root) {
    const ConfigNode* route = first_with(root, {"hash_policy"});
    if (route == nullptr || !route->child("hash_policy")->is_sequence()) return;
    const ConfigNode& list = *route->child("hash_policy");
    std::vector<Ptr> entries;
    for (const Ptr& policy : list.items()) {
      std::vector<Member> entry;
      if (const ConfigNode* name = at(*policy, {"header", "header_name"}))
        entry.push_back({"header", name->where(), copy(*name)});
      if (const ConfigNode* name = at(*policy, {"cookie", "name"})) {
        entry.push_back({"cookie", name->where(), copy(*name)});
        if (at(*policy, {"cookie", "ttl"}) != nullptr)
          entry.push_back({"has_ttl", name->where(), plain_scalar("true", name->where())});
      }
      if (const ConfigNode* ip = at(*policy, {"connection_properties", "source_ip"}))
        entry.push_back({"source_ip", ip->where(), copy(*ip)});
      if (const ConfigNode* terminal = policy->is_map() ? policy->child("terminal") : nullptr)
        entry.push_back({"terminal", terminal->where(), copy(*terminal)});
      if (entry.empty())
        diagnostics_.error(policy->where(), "routing.config",
                           "has a hash policy that is not simulated",
                           "simulated: header, cookie and connection_properties.source_ip");
      else
        entries.push_back(ConfigNode::make_map(std::move(entry), policy->where()));
    }
    add_hash_policies(std::move(entries), list.where());
  }
  void add_hash_policies(std::vector<Ptr> entries, const SourceLocation& where) {
    settings_.push_back(
        {"hash_policy", where, ConfigNode::make_sequence(std::move(entries), where)});
  }

  Ptr finish(const std::string& policy, const SourceLocation& where) {
    constexpr std::array<std::pair<std::string_view, const char*>, 5> kNames = {{
        {"ROUND_ROBIN", "envoy-round-robin"},
        {"LEAST_REQUEST", "envoy-least-request"},
        {"RING_HASH", "envoy-ring-hash"},
        {"MAGLEV", "envoy-maglev"},
        {"RANDOM", "envoy-random"},
    }};
    for (const auto& [theirs, ours] : kNames)
      if (policy == theirs) return with_balancer(ours, where);
    diagnostics_.error(
        where, "routing.config",
        "names a load balancer that is not simulated (got " + printable(policy) + ")",
        "simulated: ROUND_ROBIN, LEAST_REQUEST, RING_HASH, MAGLEV, RANDOM");
    return nullptr;
  }

  /// Nothing is said of the balancer where the name is empty.
  Ptr with_balancer(const char* name, const SourceLocation& where) {
    std::vector<Member> routing;
    if (*name != 0) routing.push_back({"balancer", where, plain_scalar(name, where)});
    if (!settings_.empty())
      routing.push_back({"envoy", where, ConfigNode::make_map(settings_, where)});
    routing.push_back({"gateway", where, ConfigNode::make_map(limits_, where)});
    return ConfigNode::make_map(std::move(routing), where);
  }

  Diagnostics& diagnostics_;
  UnreadKeys unread_;
  std::vector<Member> settings_;  ///< The balancer's.
  std::vector<Member> limits_;    ///< The gateway's.
};

}  // namespace

UnreadKeys::~UnreadKeys() {
  if (!no_effect_.keys.empty())
    diagnostics_.warning(no_effect_.where, "routing.config",
                         "has no effect on results: " + no_effect_.keys);
  if (!not_modelled_.keys.empty())
    diagnostics_.warning(not_modelled_.where, "routing.config",
                         "is not simulated: " + not_modelled_.keys);
}

void UnreadKeys::add(const std::string& key, const SourceLocation& where, Fate fate) {
  List& list = fate == Fate::kNoEffect ? no_effect_ : not_modelled_;
  if (list.keys.empty()) list.where = where;
  list.keys += (list.keys.empty() ? "" : ", ") + printable(key);
  diagnostics_.key(key_use(where, kRouterConfigFormat, key, fate,
                           fate == Fate::kNoEffect ? "nothing that is simulated depends on it"
                                                   : "routesim does not simulate it"));
}

std::size_t count_with(const ConfigNode& node, std::string_view key) {
  std::size_t n = node.is_map() && node.find(key) != nullptr ? 1 : 0;
  for (const ConfigNode::Ptr& item : node.items()) n += count_with(*item, key);
  for (const ConfigNode::Member& m : node.members()) n += count_with(*m.value, key);
  return n;
}

const ConfigNode* first_with(const ConfigNode& node, std::initializer_list<std::string_view> keys) {
  if (node.is_map()) {
    for (const std::string_view key : keys)
      if (node.find(key) != nullptr) return &node;
    for (const Member& m : node.members())
      if (const ConfigNode* found = first_with(*m.value, keys)) return found;
  }
  if (node.is_sequence())
    for (const Ptr& item : node.items())
      if (const ConfigNode* found = first_with(*item, keys)) return found;
  return nullptr;
}

Ptr envoy_routing(const ConfigNode& root, Diagnostics& diagnostics) {
  return EnvoyReader(diagnostics).routing(root);
}

}  // namespace routesim::tools
