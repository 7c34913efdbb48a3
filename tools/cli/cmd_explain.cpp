// routesim explain: every resolved value with its origin, and the numbers derived from them.
#include "tools/cli/cli.h"
#include "tools/input/description.h"
#include "tools/input/prepare.h"
#include "tools/input/scenario_yaml.h"
#include "tools/output/printable.h"
#include "tools/output/text_table.h"

namespace routesim::tools {

namespace {

FieldDescription scenario_values(const LoadedVariant& variant) {
  sim::Scenario scenario = variant.scenario;
  return describe_values([&scenario](Describer& d) { describe(d, scenario); });
}

std::string values_table(const LoadedVariant& variant) {
  TextTable table(3);
  for (const ResolvedValue& value : resolved_values(scenario_values(variant), variant.provenance))
    table.add_row({value.path, printable(value.value, 80), printable(value.origin, 120)});
  return table.str();
}

std::string derived_table(const sim::RunPlan& plan) {
  TextTable table(1);
  table.add_row({"pool", "GPUs", "KV blocks", "block size", "KV tokens", "batched tokens", "seqs",
                 "max length"});
  for (const sim::ResolvedPool& pool : plan.pools) {
    const sim::PoolConfig& config = pool.config;
    const std::int64_t gpus =
        config.replicas * config.tensor_parallel * config.pipeline_parallel * config.data_parallel;
    // One block is the engine's null block and never holds a token.
    const std::int64_t tokens = (pool.rules.num_gpu_blocks - 1) * pool.rules.block_size;
    table.add_row({printable(config.name), std::to_string(gpus),
                   std::to_string(pool.rules.num_gpu_blocks), std::to_string(pool.rules.block_size),
                   std::to_string(tokens), std::to_string(pool.rules.max_num_batched_tokens),
                   std::to_string(pool.rules.max_num_seqs),
                   std::to_string(pool.rules.max_model_len)});
  }
  return table.str();
}

std::string router_text(const LoadedVariant& variant) {
  if (!variant.endpoint_picker) return {};
  const policies::EndpointPickerConfig& config = *variant.endpoint_picker;
  std::string text = "router: ";
  text.append(policies::name(config.distribution)).append(", era ");
  text.append(policies::name(config.era)).append(" (").append(config.era_origin).append(")\n");
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

ExitCode run_explain(const OptionValues& options, Console& console) {
  Diagnostics diagnostics;
  const LoadedScenario loaded = load_scenario({.path = options.positionals.front(),
                                               .sets = options.all("set"),
                                               .variants = options.all("variant"),
                                               .seed = {}},
                                              diagnostics);
  if (!diagnostics.has_errors()) {
    for (const LoadedVariant& variant : loaded.variants) {
      const std::optional<sim::RunPlan> plan = prepare(variant, diagnostics);
      if (!plan) continue;
      console.print("variant " + printable(variant.scenario.variant) + "\n\n");
      if (options.has("yaml")) {
        console.print(to_yaml(*to_node(scenario_values(variant))) + "\n");
        continue;
      }
      console.print(values_table(variant) + "\n" + derived_table(*plan) + "\n" +
                    router_text(variant) + "\n");
    }
  }
  console.complain(tidy(diagnostics));
  return diagnostics.has_errors() ? ExitCode::kInvalid : ExitCode::kSuccess;
}

}  // namespace

Command explain_command() {
  return {.name = "explain",
          .summary = "Print every resolved value with its origin, and what follows from them.",
          .positional = {.name = "SCENARIO", .min = 1, .max = 1},
          .options = {{"variant", "NAME", "Only this variant.", true},
                      {"set", "KEY=VALUE", "Override a value, as in `run`.", true},
                      {"yaml", "", "Print the resolved values as YAML instead.", false}},
          .run = &run_explain};
}

}  // namespace routesim::tools
