#include "tools/ingest/file_kind.h"

#include <algorithm>
#include <array>

#include "policies/config/document.h"
#include "tools/ingest/config_file.h"
#include "tools/ingest/endpoint_picker_yaml.h"

namespace routesim::tools {

namespace {

bool has_map(const ConfigNode& root, std::string_view key) {
  const ConfigNode::Member* member = root.find(key);
  return member != nullptr && member->value->is_map();
}

bool has_any(const ConfigNode& root, std::initializer_list<std::string_view> keys) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](std::string_view key) { return root.find(key) != nullptr; });
}

bool holds_router_document(const ConfigNode& root) {
  if (is_kubernetes_object(root)) return true;
  if (has_any(root, {"plugins", "schedulingProfiles"})) return true;
  using Kind = policies::LocatedDocument::Kind;
  return policies::find_endpoint_picker_config(root).kind != Kind::kNotFound;
}

}  // namespace

std::string_view kind_name(FileKind kind) {
  constexpr std::array<std::string_view, 6> kNames = {
      "scenario", "plan", "sweep", "catalogue", "inference-perf", "EndpointPickerConfig"};
  return kNames.at(static_cast<std::size_t>(kind));
}

FileKind kind_of(const ConfigNode& root) {
  if (!root.is_map() || root.find("cluster") != nullptr) return FileKind::kScenario;
  if (root.find("scenario") != nullptr && root.find("scenario")->value->is_scalar())
    return has_any(root, {"demand", "goals", "prices"}) ? FileKind::kPlan : FileKind::kSweep;
  if (root.find("variants") != nullptr) return FileKind::kScenario;
  if (has_any(root, {"accelerators", "models", "curves"})) return FileKind::kCatalogue;
  if (has_map(root, "load") && has_map(root, "data")) return FileKind::kInferencePerf;
  return holds_router_document(root) ? FileKind::kEndpointPicker : FileKind::kScenario;
}

}  // namespace routesim::tools
