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
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/nodes.h"

namespace routesim::tools {

namespace {

/// Our name of a key and theirs.
using KeyPairs = std::initializer_list<std::pair<const char*, const char*>>;

/// A load balancer: its name in clusters, a part of its extension's type, its name in Envoy Gateway
/// (where a consistent hash is Maglev), and ours.
struct Policy {
  std::string_view name, part_of_type, of_gateway;
  const char* balancer;
};
constexpr std::array<Policy, 5> kPolicies = {
    {{"ROUND_ROBIN", "round_robin", "RoundRobin", "envoy-round-robin"},
     {"LEAST_REQUEST", "least_request", "LeastRequest", "envoy-least-request"},
     {"RING_HASH", "ring_hash", "", "envoy-ring-hash"},
     {"MAGLEV", "maglev", "ConsistentHash", "envoy-maglev"},
     {"RANDOM", "random", "Random", "envoy-random"}}};

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
    if (value != nullptr && expect_scalar(*value, key)) add_member(settings_, key, copy_of(*value));
  }
  /// Whether the value is what it must be (`a map`), or an error as Envoy's own.
  bool expect(bool is_so, const ConfigNode& value, const std::string& key, const char* what) {
    if (!is_so)
      diagnostics_.error(value.where(), "routing.config",
                         printable(key) + " must be " + what + " (" + got(value) + ")");
    return is_so;
  }
  bool expect_scalar(const ConfigNode& value, const std::string& key) {
    return expect(value.is_scalar(), value, key, "a scalar");
  }
  bool expect_map(const ConfigNode& value, const std::string& key) {
    return expect(value.is_map(), value, key, "a map");
  }
  /// The settings of one balancer, under the keys of Envoy's API.
  void take(const ConfigNode& config) {
    set("choice_count", config.child("choice_count"));
    set("selection_method", config.child("selection_method"));
    set("active_request_bias", node_at(config, {"active_request_bias", "default_value"}));
    set("minimum_ring_size", config.child("minimum_ring_size"));
    set("maximum_ring_size", config.child("maximum_ring_size"));
    set("hash_function", config.child("hash_function"));
    set("table_size", config.child("table_size"));
    set("hash_balance_factor",
        node_at(config, {"consistent_hashing_lb_config", "hash_balance_factor"}));
    name_unread(config, "load balancer");
  }
  /// Names the keys of an object that the table has not.
  void name_unread(const ConfigNode& map, std::string_view object) {
    static const DataTable kRead = data_table("tools/ingest/routers/envoy_objects.csv");
    const auto row = std::ranges::find(kRead, object, [](const auto& r) { return r[0]; });
    for (const Member& m : map.members())
      if (!has_word(row->at(1), m.key)) unread_.add(m.key, m.key_where, Fate::kNotModelled);
  }
  /// Keys of a cluster beside its load balancer, and its limits.
  void take_cluster(const ConfigNode& root, const ConfigNode& cluster) {
    name_unread(cluster, "cluster");
    if (const Member* timeout = cluster.find("connect_timeout"))
      diagnostics_.key(key_use(timeout->key_where, kRouterConfigFormat, timeout->key,
                               Fate::kApproximated,
                               "a machine that does not answer is given up after 10 s"));
    take_hosts(cluster);
    take_hash_policy(root);
    if (const ConfigNode* http2 = first_with(cluster, {"http2_protocol_options"}))
      add_member(limits_, "protocol", plain("http2", http2->where()));
    take_thresholds(cluster);
    if (const ConfigNode* route = first_with(root, {"retry_policy"}))
      take_retry_policy(*route->child("retry_policy"));
  }
  /// Scalars of `from`, as pairs of our key and theirs.
  static void take_scalars(Members& into, const ConfigNode& from, KeyPairs keys) {
    for (const auto& [ours, theirs] : keys) {
      if (const Ptr value = scalar_at(from, {theirs})) add_member(into, ours, copy_of(*value));
    }
  }
  /// The thresholds of default priority: simulated requests have no other.
  void take_thresholds(const ConfigNode& cluster) {
    const ConfigNode* breakers = cluster.child("circuit_breakers");
    if (breakers == nullptr) return;
    if (!expect_map(*breakers, "circuit_breakers")) return;
    name_unread(*breakers, "circuit breakers");
    const ConfigNode* list = node_at(*breakers, {"thresholds"});
    if (list == nullptr) return;
    if (!expect(list->is_sequence(), *list, "circuit_breakers.thresholds", "a list")) return;
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
        Members keys;
        if (const ConfigNode* percent = node_at(*budget, {"budget_percent"}))
          take_scalars(keys, *percent, {{"budget_percent", "value"}});
        take_scalars(keys, *budget, {{"min_retry_concurrency", "min_retry_concurrency"}});
        add_member(limits_, "retry_budget", ConfigNode::make_map(std::move(keys), budget->where()));
      }
      name_unread(*entry, "thresholds");
      return;
    }
  }
  /// Conditions of gRPC never hold, and are left out.
  void take_retry_on(Members& keys, const std::vector<std::string>& conditions,
                     const SourceLocation& where) {
    std::vector<Ptr> known;
    for (const std::string& name : conditions) {
      const auto& names = EnumNames<sim::RetryOn>::value;
      if (std::find(names.begin(), names.end(), name) != names.end())
        known.push_back(plain(name, where));
      else
        unread_.add(name, where, Fate::kNoEffect);
    }
    add_member(keys, "retry_on", tree::list(std::move(known), where));
  }
  static void take_list(Members& keys, const char* key, const ConfigNode* list) {
    if (list != nullptr && list->is_sequence())
      add_member(keys, key, tree::list(list->items(), list->where()));
  }
  void take_retry_policy(const ConfigNode& policy) {
    if (!policy.is_map()) return;
    Members keys;
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
    name_unread(policy, "retry policy");
    add_member(limits_, "retry", ConfigNode::make_map(std::move(keys), policy.where()));
  }

  Ptr from_cluster(const ConfigNode& root, const ConfigNode& cluster, const std::string& policy,
                   const SourceLocation& where) {
    for (const char* key :
         {"least_request_lb_config", "ring_hash_lb_config", "maglev_lb_config", "common_lb_config"})
      if (const ConfigNode* config = cluster.child(key); config && expect_map(*config, key))
        take(*config);
    set("healthy_panic_threshold",
        node_at(cluster, {"common_lb_config", "healthy_panic_threshold", "value"}));
    take_cluster(root, cluster);
    // The cluster sends a request where its header says, and an ext_proc sets the header.
    const ConfigNode* by_header = node_at(cluster, {"original_dst_lb_config", "use_http_header"});
    if (policy == "CLUSTER_PROVIDED" && by_header != nullptr && by_header->text() == "true")
      return with_balancer("endpoint-picker", where);
    return finish(policy, where);
  }

  Ptr from_extension(const ConfigNode& root, const ConfigNode& cluster, const ConfigNode& config) {
    const ConfigNode& type = *config.child("@type");
    take(config);
    take_cluster(root, cluster);
    for (const Policy& policy : kPolicies)
      if (type.text().find(policy.part_of_type) != std::string::npos)
        return finish(std::string(policy.name), type.where());
    return finish(type.text(), type.where());
  }

  static const ConfigNode* gateway_policy(const ConfigNode& root) {
    if (text_at(root, {"kind"}) == "BackendTrafficPolicy") return root.child("spec");
    for (const Ptr& item : items_at(root, {"items"}))
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
    name_unread(spec, "BackendTrafficPolicy");
    const ConfigNode* policy = spec.child("loadBalancer");
    if (policy == nullptr) return with_balancer("", spec.where());
    return from_gateway_balancer(*policy);
  }

  void take_gateway_breaker(const ConfigNode* breaker, const SourceLocation& where) {
    if (breaker == nullptr || !breaker->is_map())
      return add_member(limits_, "max_retries", plain("1024", where));
    take_scalars(limits_, *breaker,
                 {{"max_connections", "maxConnections"},
                  {"max_pending_requests", "maxPendingRequests"},
                  {"max_requests", "maxParallelRequests"},
                  {"max_retries", "maxParallelRetries"}});
    if (breaker->child("maxParallelRetries") == nullptr)
      add_member(limits_, "max_retries", plain("1024", where));
    name_unread(*breaker, "circuitBreaker");
  }

  void take_gateway_retry(const ConfigNode& retry) {
    Members keys;
    const SourceLocation& where = retry.where();
    const ConfigNode* triggers = node_at(retry, {"retryOn", "triggers"});
    if (triggers != nullptr && triggers->is_sequence()) {
      std::vector<std::string> conditions;
      for (const Ptr& trigger : triggers->items()) conditions.push_back(trigger->text());
      take_retry_on(keys, conditions, triggers->where());
    } else {
      take_retry_on(keys, {"connect-failure", "refused-stream", "retriable-status-codes"}, where);
    }
    if (node_at(retry, {"retryOn"}) != nullptr)
      take_list(keys, "retriable_status_codes", node_at(retry, {"retryOn", "httpStatusCodes"}));
    else
      add_member(keys, "retriable_status_codes", tree::list({plain("503", where)}, where));
    take_scalars(keys, retry, {{"num_retries", "numRetries"}});
    if (node_at(retry, {"numRetries"}) == nullptr)
      add_member(keys, "num_retries", plain("2", where));
    if (const ConfigNode* back_off = node_at(retry, {"perRetry", "backOff"}))
      take_scalars(keys, *back_off,
                   {{"base_interval", "baseInterval"}, {"max_interval", "maxInterval"}});
    if (const ConfigNode* each = node_at(retry, {"perRetry"})) name_unread(*each, "perRetry");
    name_unread(retry, "retry");
    add_member(limits_, "retry", ConfigNode::make_map(std::move(keys), where));
  }

  /// ConsistentHash becomes Maglev (its table size is a key of its own).
  Ptr from_gateway_balancer(const ConfigNode& policy) {
    const ConfigNode* type = policy.child("type");
    if (type == nullptr) return nullptr;
    if (const ConfigNode* hash = policy.child("consistentHash")) {
      set("table_size", hash->child("tableSize"));
      Members entry;
      if (const ConfigNode* name = node_at(*hash, {"header", "name"}))
        add_member(entry, "header", copy_of(*name));
      else if (const ConfigNode* cookie = node_at(*hash, {"cookie", "name"}))
        entry = {{"cookie", cookie->where(), copy_of(*cookie)},
                 {"has_ttl", cookie->where(), tree::boolean(true, cookie->where())}};
      else
        add_member(entry, "source_ip", tree::boolean(true, hash->where()));
      add_hash_policies({ConfigNode::make_map(std::move(entry), hash->where())}, hash->where());
    }
    for (const Policy& known : kPolicies)
      if (type->text() == known.of_gateway) return finish(std::string(known.name), type->where());
    return finish(type->text(), type->where());
  }

  /// Weights, health and hash keys of the hosts, in their order, which is that of the servers.
  void take_hosts(const ConfigNode& cluster) {
    const ConfigNode* assignment = node_at(cluster, {"load_assignment"});
    const ConfigNode* endpoints = node_at(cluster, {"load_assignment", "endpoints"});
    if (assignment == nullptr || !expect_map(*assignment, "load_assignment")) return;
    name_unread(*assignment, "load assignment");
    if (endpoints == nullptr || !endpoints->is_sequence()) return;
    struct HostKey {
      const char* setting;
      const ConfigNode* (*of)(const ConfigNode& host);
      const char* otherwise;
      std::vector<Ptr> values = {};
      bool any = false;
    };
    std::array<HostKey, 3> keys = {
        {{"weights", [](const ConfigNode& h) { return h.child("load_balancing_weight"); }, "1"},
         {"health_status", [](const ConfigNode& h) { return h.child("health_status"); }, "UNKNOWN"},
         {"hash_keys",
          [](const ConfigNode& h) {
            return node_at(h, {"metadata", "filter_metadata", "envoy.lb", "hash_key"});
          },
          ""}}};
    for (const Ptr& locality : endpoints->items()) {
      if (!expect_map(*locality, "endpoints[]")) continue;
      const ConfigNode* hosts = locality->child("lb_endpoints");
      // Nothing stands out where all hosts have the highest priority.
      const ConfigNode* priority = locality->child("priority");
      const bool is_first = priority != nullptr && priority->text() == "0";
      name_unread(*locality, is_first ? "first locality" : "locality");
      if (hosts == nullptr || !hosts->is_sequence()) continue;
      for (const Ptr& host : hosts->items()) {
        if (!expect_map(*host, "lb_endpoints[]")) continue;
        name_unread(*host, "host");
        for (HostKey& key : keys) {
          const ConfigNode* value = key.of(*host);
          if (value != nullptr && !expect_scalar(*value, key.setting)) value = nullptr;
          key.any = key.any || value != nullptr;
          key.values.push_back(value != nullptr ? copy_of(*value)
                                                : untyped(key.otherwise, host->where()));
        }
      }
    }
    for (HostKey& key : keys)  // One list of the hosts' values, where any host has one.
      if (key.any)
        add_member(settings_, key.setting, tree::list(std::move(key.values), endpoints->where()));
  }

  void take_hash_policy(const ConfigNode& root) {
    const ConfigNode* route = first_with(root, {"hash_policy"});
    if (route == nullptr || !route->child("hash_policy")->is_sequence()) return;
    const ConfigNode& list = *route->child("hash_policy");
    std::vector<Ptr> entries;
    for (const Ptr& policy : list.items()) {
      Members entry;
      if (const ConfigNode* name = node_at(*policy, {"header", "header_name"}))
        add_member(entry, "header", copy_of(*name));
      if (const ConfigNode* name = node_at(*policy, {"cookie", "name"})) {
        add_member(entry, "cookie", copy_of(*name));
        if (node_at(*policy, {"cookie", "ttl"}) != nullptr)
          add_member(entry, "has_ttl", tree::boolean(true, name->where()));
      }
      if (const ConfigNode* ip = node_at(*policy, {"connection_properties", "source_ip"}))
        add_member(entry, "source_ip", copy_of(*ip));
      if (const ConfigNode* terminal = policy->child("terminal"))
        add_member(entry, "terminal", copy_of(*terminal));
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
    add_member(settings_, "hash_policy", tree::list(std::move(entries), where));
  }

  Ptr finish(const std::string& policy, const SourceLocation& where) {
    for (const Policy& known : kPolicies)
      if (policy == known.name) return with_balancer(known.balancer, where);
    diagnostics_.error(
        where, "routing.config",
        "names a load balancer that is not simulated (got " + printable(policy) + ")",
        "simulated: ROUND_ROBIN, LEAST_REQUEST, RING_HASH, MAGLEV, RANDOM");
    return nullptr;
  }

  /// Nothing is said of the balancer where the name is empty.
  Ptr with_balancer(const char* name, const SourceLocation& where) {
    Members routing;
    if (*name != 0) add_member(routing, "balancer", plain(name, where));
    if (!settings_.empty()) add_member(routing, "envoy", ConfigNode::make_map(settings_, where));
    add_member(routing, "gateway", ConfigNode::make_map(limits_, where));
    return ConfigNode::make_map(std::move(routing), where);
  }

  Diagnostics& diagnostics_;
  UnreadKeys unread_;
  Members settings_;  ///< The balancer's.
  Members limits_;    ///< The gateway's.
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
  add_word(list.keys, printable(key));
  diagnostics_.key(key_use(where, kRouterConfigFormat, key, fate,
                           fate == Fate::kNoEffect ? "nothing that is simulated depends on it"
                                                   : "routesim does not simulate it"));
}

std::size_t count_with(const ConfigNode& node, std::string_view key) {
  std::size_t n = node.find(key) != nullptr ? 1 : 0;
  for (const Ptr& child : children_of(node)) n += count_with(*child, key);
  return n;
}

const ConfigNode* first_with(const ConfigNode& node, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (node.find(key) != nullptr) return &node;
  for (const Ptr& child : children_of(node))
    if (const ConfigNode* found = first_with(*child, keys)) return found;
  return nullptr;
}

Ptr envoy_routing(const ConfigNode& root, Diagnostics& diagnostics) {
  return EnvoyReader(diagnostics).routing(root);
}

}  // namespace routesim::tools
