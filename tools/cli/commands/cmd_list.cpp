// routesim list: what can be named in a scenario.
#include <algorithm>
#include <filesystem>

#include "base/config_node.h"
#include "base/text.h"
#include "policies/balancers/balancers.h"
#include "policies/config/factory.h"
#include "sim/plan/unsupplied_inputs.h"
#include "tools/cli/cli.h"
#include "tools/cli/shipped_files.h"
#include "tools/ingest/servers/catalogue_file.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

std::string list_accelerators() {
  TextTable table(1);
  table.add_row({"accelerator", "memory GB", "TB/s", "bf16 TFLOP/s", "fp8 TFLOP/s", "link GB/s"});
  for (const models::AcceleratorSpec& a : builtin_catalogue().accelerators())
    table.add_row({a.name, fixed_text(a.memory_bytes / 1e9, 1), fixed_text(a.memory_tb_per_s, 2),
                   fixed_text(a.bf16_tflops, 0),
                   a.fp8_tflops > 0 ? fixed_text(a.fp8_tflops, 0) : "-",
                   fixed_text(a.link_gb_per_s, 0)});
  return table.str();
}

std::string list_models() {
  TextTable table(2);
  table.add_row({"model", "weights", "params, B", "active, B", "layers", "max context"});
  for (const models::ModelSpec& m : builtin_catalogue().models())
    table.add_row({m.name, std::string(enum_name(m.weights)),
                   fixed_text(models::total_parameters(m) / 1e9, 1),
                   fixed_text(models::active_parameters(m) / 1e9, 1), std::to_string(m.layers),
                   std::to_string(m.max_context)});
  return table.str();
}

std::string_view support_name(policies::PluginType::Support support) {
  switch (support) {
    case policies::PluginType::Support::kImplemented:
      return "yes";
    case policies::PluginType::Support::kInert:
      return "inert";
    case policies::PluginType::Support::kRefused:
      break;
  }
  return "refused";
}

std::string list_plugins() {
  TextTable table(4);
  table.add_row({"plugin", "roles", "here", "note"});
  for (const policies::PluginType& type : policies::standard_registry().types()) {
    const std::string lacks = sim::unsupplied_input(type.type);
    table.add_row({std::string(type.type), policies::role_names(type.roles),
                   lacks.empty() ? std::string(support_name(type.support)) : "in part",
                   std::string(type.note) + (lacks.empty() ? "" : " But " + lacks + ".")});
  }
  return table.str();
}

std::string list_balancers() {
  TextTable table(5);
  table.add_row({"balancer", "product", "release read", "decides on", "differs from the product"});
  for (const policies::BalancerRow& row : policies::kBalancers) {
    std::string inputs(row.inputs);
    if (row.disaggregation == policies::Disaggregation::kPossible) inputs += "; prefill and decode";
    if (row.disaggregation == policies::Disaggregation::kRequired)
      inputs += "; prefill and decode only";
    table.add_row({std::string(row.name), std::string(row.product), std::string(row.release),
                   inputs, std::string(row.approximations)});
  }
  return table.str();
}

/// The text of a top-level key, or "".
std::string text_of(const ConfigNode& root, std::string_view key) {
  const ConfigNode::Member* member = root.is_map() ? root.find(key) : nullptr;
  return member != nullptr && member->value->is_scalar() ? member->value->text() : std::string();
}

/// Scenario files of a folder, by name, with the question each answers.
std::string list_scenarios(const std::string& folder, Console& console) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path().string());
  if (error) {
    console.complain("routesim: cannot list " + printable(folder, 200) + ": " + error.message() +
                     "\n");
    return {};
  }
  std::sort(paths.begin(), paths.end());
  TextTable table(2);
  table.add_row({"scenario", "question"});
  for (const std::string& path : paths) {
    Diagnostics ignored;
    const ConfigNode::Ptr root = read_config_file(path, ignored);
    // A scenario has a workload; other files of the folder (values, catalogues) do not.
    if (root == nullptr || !root->is_map() || root->find("workload") == nullptr) continue;
    table.add_row({path, printable(text_of(*root, "question"), 200)});
  }
  return table.str();
}

ExitCode run_list(Options& options, Console& console) {
  if (options.positionals().empty()) {
    for (const char* what : {"models", "accelerators", "plugins", "balancers", "scenarios"})
      console.print(std::string("routesim list ") + what + "\n");
    return ExitCode::kSuccess;
  }
  const std::string& what = options.positionals().front();
  if (what == "accelerators") console.print(list_accelerators());
  if (what == "models") console.print(list_models());
  if (what == "plugins") console.print(list_plugins());
  if (what == "balancers") console.print(list_balancers());
  if (what != "scenarios") return ExitCode::kSuccess;
  const std::string text = list_scenarios(scenario_folder(options), console);
  console.print(text);
  return text.empty() ? ExitCode::kInvalid : ExitCode::kSuccess;
}

}  // namespace

Command list_command() {
  return {
      .name = "list",
      .summary = "List models, accelerators, plugins, balancers or scenarios.",
      .positional = {.name = "models|accelerators|plugins|balancers|scenarios", .min = 0, .max = 1},
      .options = {folder_option("Where scenarios are looked for")},
      .examples = {{"routesim list models", "What a scenario can name."},
                   {"routesim list balancers",
                    "What each policy decides on, and how it differs from its product."}},
      .run = &run_list};
}

}  // namespace routesim::tools
