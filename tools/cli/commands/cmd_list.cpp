// routesim list: what can be named in a scenario.
#include <algorithm>
#include <filesystem>

#include "base/config_node.h"
#include "base/text.h"
#include "policies/balancers/balancers.h"
#include "policies/config/factory.h"
#include "sim/plan/unsupplied_inputs.h"
#include "tools/cli/cli.h"
#include "tools/cli/inputs.h"
#include "tools/ingest/servers/catalogue_file.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/results/described_json.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

/// A cell: a text, and the number that JSON has in its place.
struct ListCell {
  ListCell(std::string words) : text(std::move(words)) {}
  ListCell(std::string_view words) : text(words) {}
  ListCell(const char* words) : text(words) {}
  ListCell(double value, int decimals) : text(fixed_text(value, decimals)), number(value) {}
  explicit ListCell(std::int64_t value)
      : text(std::to_string(value)), number(static_cast<double>(value)) {}
  std::string text;
  std::optional<double> number = {};
};

/// One list: a table for people, and for programs an array of maps.
struct Listing {
  struct Column {
    const char* title;
    const char* key;
  };
  std::size_t left = 1;  ///< Columns of words, the first ones.
  std::vector<Column> columns = {};
  std::vector<std::vector<ListCell>> rows = {};
};

std::string text_of(const Listing& list) {
  TextTable table(list.left);
  std::vector<std::string> cells;
  for (const Listing::Column& column : list.columns) cells.emplace_back(column.title);
  table.add_row(cells);
  for (const std::vector<ListCell>& row : list.rows) {
    cells.clear();
    for (const ListCell& cell : row) cells.push_back(cell.text);
    table.add_row(cells);
  }
  return table.str();
}

std::string listing_json(const Listing& list) {
  JsonWriter json;
  json.begin_array();
  for (const std::vector<ListCell>& row : list.rows) {
    json.begin_object();
    for (std::size_t i = 0; i < row.size(); ++i) {
      json.key(list.columns[i].key);
      if (row[i].number)
        json.value(*row[i].number);
      else if (row[i].text == "-")
        json.null();
      else
        json.value(row[i].text);
    }
    json.end_object();
  }
  return json.end_array().str() + "\n";
}

Listing list_accelerators() {
  Listing list{.columns = {{"accelerator", "name"},
                           {"memory GB", "memory_gb"},
                           {"TB/s", "memory_tb_per_s"},
                           {"bf16 TFLOP/s", "bf16_tflops"},
                           {"fp8 TFLOP/s", "fp8_tflops"},
                           {"link GB/s", "link_gb_per_s"}}};
  for (const models::AcceleratorSpec& a : builtin_catalogue().accelerators())
    list.rows.push_back({a.name,
                         {a.memory_bytes / 1e9, 1},
                         {a.memory_tb_per_s, 2},
                         {a.bf16_tflops, 0},
                         a.fp8_tflops > 0 ? ListCell(a.fp8_tflops, 0) : ListCell("-"),
                         {a.link_gb_per_s, 0}});
  return list;
}

Listing list_models() {
  Listing list{.left = 2,
               .columns = {{"model", "name"},
                           {"weights", "weights"},
                           {"params, B", "parameters_billions"},
                           {"active, B", "active_parameters_billions"},
                           {"layers", "layers"},
                           {"max context", "max_context"}}};
  for (const models::ModelSpec& m : builtin_catalogue().models())
    list.rows.push_back({m.name,
                         enum_name(m.weights),
                         {models::total_parameters(m) / 1e9, 1},
                         {models::active_parameters(m) / 1e9, 1},
                         ListCell(std::int64_t{m.layers}),
                         ListCell(std::int64_t{m.max_context})});
  return list;
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

Listing list_plugins() {
  Listing list{
      .left = 4,
      .columns = {{"plugin", "name"}, {"roles", "roles"}, {"here", "here"}, {"note", "note"}}};
  for (const policies::PluginType& type : policies::standard_registry().types()) {
    const std::string lacks = sim::unsupplied_input(type.type);
    list.rows.push_back({type.type, policies::role_names(type.roles),
                         lacks.empty() ? support_name(type.support) : "in part",
                         std::string(type.note) + (lacks.empty() ? "" : " But " + lacks + ".")});
  }
  return list;
}

Listing list_balancers() {
  Listing list{.left = 5,
               .columns = {{"balancer", "name"},
                           {"product", "product"},
                           {"release read", "release"},
                           {"decides on", "decides_on"},
                           {"differs from the product", "differs"}}};
  for (const policies::BalancerRow& row : policies::kBalancers) {
    std::string inputs(row.inputs);
    if (row.disaggregation == policies::Disaggregation::kPossible) inputs += "; prefill and decode";
    if (row.disaggregation == policies::Disaggregation::kRequired)
      inputs += "; prefill and decode only";
    list.rows.push_back({row.name, row.product, row.release, inputs, row.approximations});
  }
  return list;
}

/// The text of a top-level key, or "".
std::string text_of(const ConfigNode& root, std::string_view key) {
  const ConfigNode::Member* member = root.is_map() ? root.find(key) : nullptr;
  return member != nullptr && member->value->is_scalar() ? member->value->text() : std::string();
}

/// Scenario files of a folder, by name, with the question each answers. Nothing, with a message,
/// when the folder cannot be read.
std::optional<Listing> list_scenarios(const std::string& folder, Console& console) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path().string());
  if (error) {
    console.complain("routesim: cannot list " + printable(folder, 200) + ": " + error.message() +
                     "\n");
    return std::nullopt;
  }
  std::sort(paths.begin(), paths.end());
  Listing list{.left = 2, .columns = {{"scenario", "file"}, {"question", "question"}}};
  for (const std::string& path : paths) {
    Diagnostics ignored;
    const ConfigNode::Ptr root = read_config_file(path, ignored);
    // A scenario has a workload; other files of the folder (values, catalogues) do not.
    if (root == nullptr || !root->is_map() || root->find("workload") == nullptr) continue;
    list.rows.push_back({shown_path(path), printable(text_of(*root, "question"), 200)});
  }
  return list;
}

/// Nothing after a message.
std::optional<Listing> listing_of(const std::string& what, const Options& options,
                                  Console& console) {
  if (what == "accelerators") return list_accelerators();
  if (what == "models") return list_models();
  if (what == "plugins") return list_plugins();
  if (what == "balancers") return list_balancers();
  return list_scenarios(scenario_folder(options), console);
}

ExitCode run_list(Options& options, Console& console) {
  const bool is_json = options.choice("output") == "json";
  if (is_json && options.positionals().empty()) options.fail("--output json needs what to list");
  if (!options.ok()) return refuse(options, console);
  if (options.positionals().empty()) {
    for (const char* what : {"models", "accelerators", "plugins", "balancers", "scenarios"})
      console.print(std::string("routesim list ") + what + "\n");
    return ExitCode::kSuccess;
  }
  const auto list = listing_of(options.positionals().front(), options, console);
  if (!list) return ExitCode::kInvalid;
  console.print(is_json ? listing_json(*list) : text_of(*list));
  return ExitCode::kSuccess;
}

}  // namespace

Command list_command() {
  return {
      .name = "list",
      .summary = "List models, accelerators, plugins, balancers or scenarios.",
      .positional = {.name = "models|accelerators|plugins|balancers|scenarios", .min = 0, .max = 1},
      .options = {folder_option("Where scenarios are looked for"),
                  {.name = "output,o",
                   .value_name = "FORMAT",
                   .help = "text (default), or json: an array with a map for each.",
                   .choices = {"text", "json"}}},
      .examples = {{"routesim list models", "What a scenario can name."},
                   {"routesim list balancers",
                    "What each policy decides on, and how it differs from its product."},
                   {"routesim list accelerators -o json", "The same for a program."}},
      .run = &run_list};
}

}  // namespace routesim::tools
