#include "tools/ingest/request_headers.h"

#include <algorithm>

#include "base/config_node.h"
#include "base/key_note.h"
#include "base/printable.h"
#include "policies/views.h"
#include "sim/plan/unsupplied_inputs.h"
#include "tools/ingest/inference_perf_yaml.h"

namespace routesim::tools {

std::vector<std::pair<std::string, std::string>> request_headers(const LoadedVariant& variant) {
  std::vector<std::pair<std::string, std::string>> headers;
  const workloads::LoadTraits load = traits_of(variant.scenario.workload.load);
  if (load.headers.root == nullptr) return headers;
  for (const ConfigNode::Member& member : load.headers.root->members())
    if (member.value->is_scalar()) headers.emplace_back(member.key, member.value->text());
  return headers;
}

void warn_unread_headers(const LoadedVariant& variant, Diagnostics& diagnostics) {
  const sim::RoutingConfig& routing = variant.scenario.routing;
  const bool picks =
      routing.balancer == sim::BalancerKind::kEndpointPicker && variant.endpoint_picker.has_value();
  const std::vector<std::string> read =
      picks ? sim::headers_read(*variant.endpoint_picker) : std::vector<std::string>();
  std::string unread;
  const workloads::LoadTraits load = traits_of(variant.scenario.workload.load);
  const std::string path = "workload." + load.headers_key;
  for (const auto& [name, value] : request_headers(variant)) {
    const bool is_read = std::any_of(
        read.begin(), read.end(),
        [&name = name](const std::string& other) { return policies::same_header(name, other); });
    if (!is_read) unread += (unread.empty() ? "" : ", ") + printable(name);
    diagnostics.key(key_use(load.headers.root->find(name)->key_where, kInferencePerfFormat,
                            path + "." + printable(name), is_read ? Fate::kUsed : Fate::kNoEffect,
                            is_read ? "" : "nothing that routes reads it"));
  }
  if (unread.empty()) return;
  diagnostics.warning({}, path,
                      "has no effect on results: " +
                          (picks ? "no plugin of the router that is simulated reads " + unread
                                 : "the balancer " + std::string(enum_name(routing.balancer)) +
                                       " reads no headers (got " + unread + ")"));
}

}  // namespace routesim::tools
