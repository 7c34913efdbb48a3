// Shared by tests that build schedulers from documents.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "policies/config/document.h"
#include "policies/config/make_scheduler.h"
#include "policies/scheduler.h"
#include "tests/base/messages.h"
#include "tests/policies/yaml_text.h"

namespace routesim::policies {

/// Finds and loads the document in a YAML text, through Helm values if need be.
inline std::optional<EndpointPickerConfig> load_text(const std::string& yaml,
                                                     Diagnostics& diagnostics,
                                                     LoadOptions options = {}) {
  const ConfigNode::Ptr root = parse_yaml(yaml);
  LocatedDocument located = find_endpoint_picker_config(*root);
  if (located.kind == LocatedDocument::Kind::kNotFound) return std::nullopt;
  if (!options.distribution) options.distribution = located.distribution;
  if (located.kind == LocatedDocument::Kind::kText) {
    const ConfigNode::Ptr inner = parse_embedded(*located.node, diagnostics);
    return load_endpoint_picker_config(*inner, options, diagnostics);
  }
  return load_endpoint_picker_config(*located.node, options, diagnostics);
}

/// A scheduler that must build.
inline std::unique_ptr<Scheduler> make_scheduler(const std::string& yaml, LoadOptions load = {},
                                                 SchedulerOptions options = {}) {
  Diagnostics diagnostics;
  const auto config = load_text(yaml, diagnostics, load);
  EXPECT_TRUE(config) << messages_of(diagnostics);
  if (!config) return nullptr;
  options.registry = load.registry;
  auto scheduler = make_scheduler(*config, options, diagnostics);
  EXPECT_NE(scheduler, nullptr) << messages_of(diagnostics);
  return scheduler;
}

/// `n` endpoints with addresses 10.0.0.1, 10.0.0.2, …
inline EndpointTable make_endpoints(std::size_t n) {
  EndpointTable table;
  for (std::size_t i = 0; i < n; ++i) {
    EndpointInfo info;
    info.address = "10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1);
    info.pod_name = "pod" + std::to_string(i);
    const EndpointId id = table.add(std::move(info));
    table.set_metrics(id, 0, 0, 0, SimTime::zero());
  }
  return table;
}

inline std::string document(const std::string& plugins, const std::string& profile_plugins,
                            const std::string& api = "llm-d.ai/v1alpha1") {
  return "apiVersion: " + api + "\nkind: EndpointPickerConfig\nplugins:\n" + plugins +
         "schedulingProfiles:\n- name: default\n  plugins:\n" + profile_plugins;
}

/// Loads and builds; the diagnostics of both.
struct Loaded {
  explicit Loaded(const std::string& yaml, LoadOptions options = {}) {
    config = load_text(yaml, diagnostics, options);
    if (!config) return;
    SchedulerOptions scheduler_options;
    scheduler_options.registry = options.registry;
    scheduler = make_scheduler(*config, scheduler_options, diagnostics);
  }
  bool ok() const { return scheduler != nullptr; }
  std::string text() const { return messages_of(diagnostics); }
  bool mentions(const std::string& words) const { return text().find(words) != std::string::npos; }
  Diagnostics diagnostics;
  std::optional<EndpointPickerConfig> config;
  std::unique_ptr<Scheduler> scheduler;
};

}  // namespace routesim::policies
