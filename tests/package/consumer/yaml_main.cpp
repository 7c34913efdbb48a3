// A router's YAML as a scheduler: routesim::yaml reads it, routesim::policies runs it.
#include <cstdio>

#include "policies/config/document.h"
#include "policies/config/make_scheduler.h"
#include "tools/ingest/tree/parse_config.h"

namespace {

constexpr const char* kYaml = R"(
apiVersion: inference.networking.x-k8s.io/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: queue-scorer
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: queue-scorer, weight: 2}
)";

}  // namespace

int main() {
  routesim::Diagnostics diagnostics;
  const auto tree = routesim::parse_config(kYaml, {.file = "epp.yaml"}, diagnostics);
  const auto config =
      tree ? routesim::policies::load_endpoint_picker_config(*tree, {}, diagnostics) : std::nullopt;
  const auto scheduler =
      config ? routesim::policies::make_scheduler(*config, {.seed = 1}, diagnostics) : nullptr;
  for (const routesim::Diagnostic& d : diagnostics.items())
    std::fprintf(stderr, "%s\n", routesim::to_string(d).c_str());
  return scheduler == nullptr ? 1 : 0;
}
