// Envoy's own files: clusters and routes of a bootstrap or of an xDS dump, and Envoy Gateway's
// BackendTrafficPolicy.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/config_node.h"
#include "base/diagnostic.h"

namespace routesim::tools {

/// Name of the format in the ledger of keys.
inline constexpr std::string_view kRouterConfigFormat = "router configuration";

/// Keys of a router's configuration that nothing reads. Its end warns of them, one warning for
/// those without effect on results and one for those that are not simulated.
class UnreadKeys {
 public:
  explicit UnreadKeys(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}
  ~UnreadKeys();
  UnreadKeys(const UnreadKeys&) = delete;
  UnreadKeys& operator=(const UnreadKeys&) = delete;

  void add(const std::string& key, const SourceLocation& where, Fate fate);

 private:
  struct List {
    std::string keys;
    SourceLocation where;  ///< The place of the first one.
  };
  Diagnostics& diagnostics_;
  List no_effect_, not_modelled_;
};

/// The first map below `node` that has one of these keys, or null.
const ConfigNode* first_with(const ConfigNode& node, std::initializer_list<std::string_view> keys);

/// How many maps below `node` have this key.
std::size_t count_with(const ConfigNode& node, std::string_view key);

/// Keys of `routing` for the first cluster that chooses a load balancer, with its circuit breakers,
/// the first hash_policy and retry_policy of the routes, and the weights of the cluster's
/// endpoints. Envoy's limits hold in clusters that do not write them, too. Null where the tree is
/// none of Envoy's, or after an error.
ConfigNode::Ptr envoy_routing(const ConfigNode& root, Diagnostics& diagnostics);

}  // namespace routesim::tools
