#include "tools/study/explain/explain_text.h"

#include "base/text.h"
#include "models/kernels/kernel_latency.h"
#include "models/speculation.h"
#include "policies/config/factory.h"
#include "policies/config/make_scheduler.h"
#include "tools/ingest/tree/description.h"
#include "tools/results/text_table.h"
#include <array>
#include <vector>

namespace routesim::tools {

namespace {

constexpr std::int64_t kPrompt = 2'048;
constexpr std::array<models::BatchShape, 3> kSteps = {{
    {.decode_requests = 1, .decode_context = 4'096},
    {.decode_requests = 64, .decode_context = std::int64_t{64} * 4'096},
    {.prefill_requests = 1,
     .prefill_tokens = kPrompt,
     .prefill_context = kPrompt,
     .prefill_pairs = kPrompt * kPrompt},
}};
constexpr std::array<const char*, 3> kStepNames = {"1 decode of 4096", "64 decodes of 4096",
                                                   "prompt of 2048"};

std::string_view origin_text(models::kernels::Origin origin) {
  switch (origin) {
    case models::kernels::Origin::kTable:
      return "measured";
    case models::kernels::Origin::kNearShape:
      return "scaled from a measured shape";
    case models::kernels::Origin::kPrinciples:
      break;
  }
  return "bytes and FLOP";
}

double microseconds(std::int64_t ticks) {
  return static_cast<double>(ticks) * 1e3 / static_cast<double>(models::kTicksPerMillisecond);
}

/// The batch as it is where every decoding sequence verifies `drafts`.
models::BatchShape with_drafts(models::BatchShape step, std::int64_t drafts) {
  step.draft_tokens = drafts * step.decode_requests;
  step.decode_context += step.draft_tokens;
  return step;
}

std::string speculation_text(const sim::ResolvedPool& pool,
                             const models::SpeculativeLatency& latency) {
  std::string text =
      "speculation: " + printable(latency.drafting(), 160) + "; accepted by position:";
  for (const double share : pool.rules.speculation.acceptance) text += " " + fixed_text(share, 3);
  return text + "\n";
}

/// Rows of what speculation adds to a step, and what it yields.
void add_speculation(const sim::ResolvedPool& pool, const models::SpeculativeLatency& latency,
                     std::size_t columns, TextTable& table) {
  std::vector<std::string> verify = {"drafts in the step"}, draft = {"drafting"};
  for (const models::BatchShape& step : kSteps) {
    const models::BatchShape batch = with_drafts(step, latency.tokens());
    verify.push_back(
        fixed_text(microseconds(latency.target_ticks(batch) - latency.target_ticks(step)), 0));
    draft.push_back(fixed_text(microseconds(latency.draft_ticks(batch)), 0));
  }
  std::vector<std::string> yields = {"tokens per sequence"};
  for (const models::BatchShape& step : kSteps)
    yields.push_back(
        fixed_text(step.decode_requests > 0 ? pool.rules.speculation.mean_length() : 1, 2));
  for (std::vector<std::string>* row : {&verify, &draft, &yields}) row->resize(columns);
  table.add_row(verify);
  table.add_row(draft);
  table.add_row(yields);
}

}  // namespace

std::string step_text(const sim::ResolvedPool& pool) {
  TextTable table(1);
  std::vector<std::string> header = {"operation, us"};
  header.insert(header.end(), kStepNames.begin(), kStepNames.end());
  const auto* speculative = dynamic_cast<const models::SpeculativeLatency*>(pool.latency.get());
  const models::LatencyModel* target =
      speculative != nullptr ? &speculative->target() : pool.latency.get();
  std::string text = "step times of " + printable(pool.config.name) + ": " +
                     printable(target->provenance()) + "\n";
  if (speculative != nullptr) text += speculation_text(pool, *speculative);
  const auto* kernels = dynamic_cast<const models::KernelLatency*>(target);
  if (kernels != nullptr) header.insert(header.end(), {"kernel", "known by"});
  table.add_row(header);
  if (kernels != nullptr) {
    std::vector<std::vector<models::KernelLatency::Share>> shares;
    for (const models::BatchShape& step : kSteps) shares.push_back(kernels->shares(step));
    const auto& first = shares.front();
    for (std::size_t i = 0; i < first.size(); ++i) {
      std::vector<std::string> cells = {first[i].operation};
      for (const auto& step : shares) cells.push_back(fixed_text(step[i].ns * 1e-3, 0));
      cells.push_back(first[i].kernel.empty() ? "-" : first[i].kernel);
      cells.emplace_back(origin_text(first[i].origin));
      table.add_row(cells);
    }
  }
  if (speculative != nullptr) add_speculation(pool, *speculative, header.size(), table);
  const std::int64_t drafts = speculative != nullptr ? speculative->tokens() : 0;
  std::vector<std::string> all = {"step"};
  for (const models::BatchShape& step : kSteps)
    all.push_back(fixed_text(microseconds(pool.latency->step_ticks(with_drafts(step, drafts))), 0));
  if (kernels != nullptr) all.insert(all.end(), {"", ""});
  table.add_row(all);
  return text + table.str();
}

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
