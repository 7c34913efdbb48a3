#include "tools/study/explain/router_text.h"

#include <vector>

#include "base/text.h"
#include "policies/config/factory.h"
#include "policies/config/make_scheduler.h"
#include "tools/ingest/tree/description.h"
#include "tools/results/text_table.h"

namespace routesim::tools {
namespace {

using policies::EndpointPickerConfig;
using policies::PluginSpec;

std::string place(const SourceLocation& where) {
  return printable(
      where.file + ":" + std::to_string(where.line) + ":" + std::to_string(where.column), 200);
}

/// Every scalar below a node, with its dotted path.
void add_given(const ConfigNode& node, const std::string& path, TextTable& table) {
  for (const ConfigNode::Member& member : node.members())
    add_given(*member.value, child_path(path, member.key), table);
  for (std::size_t i = 0; i < node.items().size(); ++i)
    add_given(*node.items()[i], element_path(path, i), table);
  if (node.is_map() || node.is_sequence()) return;
  const std::string value = node.is_null() ? "null" : node.text();
  table.add_row({"    " + printable(path), printable(value, 60), place(node.where())});
}

/// Whether the parameters, or one of the maps on the way, give this path.
bool given(const ConfigNode& parameters, std::string_view path) {
  const ConfigNode* node = &parameters;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    node = node->child(path.substr(0, dot));
    if (node == nullptr) return false;
    if (!node->is_map()) return true;
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return true;
}

/// The type whose parameters the plugin has: the scorer owned the index before there were
/// producers.
const policies::PluginType* parameters_of(const PluginSpec& spec, policies::Era era) {
  const bool owns =
      spec.type == "prefix-cache-scorer" && !policies::traits(era).match_info_producers;
  return policies::standard_registry().find(owns ? "approx-prefix-cache-producer" : spec.type);
}

/// A plugin's name and type, its parameters as written, and the defaults of the rest.
void add_plugin(const PluginSpec& spec, std::string_view role, policies::Era era,
                TextTable& table) {
  const policies::PluginType* type = parameters_of(spec, era);
  const std::string label = spec.name == spec.type ? spec.name : spec.name + " (" + spec.type + ")";
  table.add_row({"  " + std::string(role) + " " + printable(label), "",
                 spec.implicit ? "default" : place(spec.where)});
  if (spec.parameters->is_map()) add_given(*spec.parameters, "", table);
  if (type == nullptr || !type->describe_parameters) return;
  const FieldDescription defaults = describe_values([&](Describer& d) {
    if (type->describe_applied)
      type->describe_applied(d, spec, era);
    else
      type->describe_parameters(d);
  });
  for (const ResolvedValue& v : resolved_values(defaults, {}))
    if (!v.value.empty() && !given(*spec.parameters, v.path))
      table.add_row({"    " + v.path, printable(v.value, 60), "default"});
}

std::string limit(const std::optional<std::int64_t>& value) {
  return value ? std::to_string(*value) : "unlimited";
}

std::string ttl(Duration d) {
  return d > Duration::zero() ? fixed_text(d.to_seconds(), 3) + " s" : std::string("none");
}

std::string band_text(const std::string& name, const policies::PriorityBandSpec& band,
                      Duration otherwise) {
  return "    " + name + ": " + limit(band.max_requests) + " requests, " + limit(band.max_bytes) +
         " bytes, TTL " + ttl(band.default_request_ttl.value_or(otherwise)) + ", " +
         printable(band.fairness_policy) + ", " + printable(band.ordering_policy) + "\n";
}

std::string flow_control_text(const EndpointPickerConfig& config) {
  const std::string detector = "detector " + printable(config.saturation_detector);
  if (!config.gate("flowControl"))
    return "  flow control: off; " + detector + " refuses requests of negative priority only\n";
  const policies::FlowControlSpec& flow = config.flow_control;
  std::string text = "  flow control: on, " + detector + ", " + limit(flow.max_requests) +
                     " requests, " + limit(flow.max_bytes) + " bytes, usage limit " +
                     printable(flow.usage_limit_policy) + "\n";
  for (const policies::PriorityBandSpec& band : flow.bands)
    text += band_text("priority " + std::to_string(band.priority), band, flow.default_request_ttl);
  text += band_text("other priorities", flow.default_band, flow.default_request_ttl);
  return text +
         band_text("negative priorities", flow.default_negative_band, flow.default_request_ttl);
}

std::string profiles_text(const EndpointPickerConfig& config) {
  std::string text;
  for (const policies::ProfileSpec& profile : config.profiles) {
    text.append("  scheduling profile ").append(printable(profile.name)).append(":");
    for (const policies::PluginReference& plugin : profile.plugins) {
      text.append(" ").append(printable(plugin.name));
      if (plugin.weight) text.append("*").append(fixed_text(*plugin.weight, 2));
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string router_text(const EndpointPickerConfig& config) {
  std::string text = "router: ";
  text.append(policies::name(config.distribution)).append(", era ");
  text.append(policies::name(config.era)).append(" (");
  text.append(printable(config.era_origin, 120)).append(")\n");
  text += profiles_text(config);
  text += "  profile handler: " + printable(config.profile_handler) + "\n";
  text += flow_control_text(config);
  TextTable table(3);
  table.add_row({"  plugin", "value", "origin"});
  // This list includes the data producers that others need and the document does not declare.
  const std::optional<policies::Requirements> needed = policies::requirements(config);
  for (const PluginSpec& spec : needed ? needed->plugins : config.plugins) {
    const policies::PluginType* type = policies::standard_registry().find(spec.type);
    add_plugin(spec, type != nullptr ? policies::role_names(type->roles) : "unknown", config.era,
               table);
  }
  return text + table.str();
}

}  // namespace routesim::tools
