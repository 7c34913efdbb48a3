#include "tools/ingest/servers/catalogue_file.h"

#include <filesystem>
#include <string_view>

#include "base/check.h"
#include "base/config_node.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "models/hf_config.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

namespace {

/// Adds what a check of one entry found, at the entry's place in the file.
void add_located(const Diagnostics& found, const std::string& entry, const Provenance& places,
                 Diagnostics& diagnostics) {
  for (Diagnostic d : found.items()) {
    d.path = d.path.empty() ? entry : child_path(entry, d.path);
    d.where = places.nearest(d.path);
    diagnostics.add(std::move(d));
  }
}

std::string did_you_mean(const std::string& name, const std::string& list) {
  return name.empty() ? "see `routesim list " + list + "`" : "did you mean " + name + "?";
}

/// Reports an entry whose accelerator or model is unknown: no scenario could use it.
template <typename Entry>
void check_names(const Entry& curve, const models::Catalogue& catalogue, Diagnostics& found) {
  if (catalogue.find_accelerator(curve.accelerator) == nullptr)
    found.error({}, "accelerator", "unknown accelerator (got " + printable(curve.accelerator) + ")",
                did_you_mean(catalogue.suggest_accelerator(curve.accelerator), "accelerators"));
  if (catalogue.find_model(curve.model) == nullptr)
    found.error({}, "model", "unknown model (got " + printable(curve.model) + ")",
                did_you_mean(catalogue.suggest_model(curve.model), "models"));
}

/// The tree of a config.json as the flat tables models/ reads, and where each key stands.
struct FlatConfig {
  models::HfConfig config;
  std::map<std::string, SourceLocation> places;
};

void flatten_scalar(const ConfigNode& node, const std::string& path, FlatConfig& out) {
  const std::string& text = node.text();
  if (node.style() == ConfigNode::Style::kPlain) {
    if (const std::optional<double> value = number_from(text)) {
      out.config.numbers[path] = *value;
      return;
    }
    if (text == "true" || text == "false") {
      out.config.numbers[path] = text == "true" ? 1 : 0;
      return;
    }
  }
  out.config.strings[path] = text;
}

void flatten_config(const ConfigNode& node, const std::string& path, FlatConfig& out) {
  out.places[path] = node.where();
  if (node.is_scalar()) {
    flatten_scalar(node, path, out);
  } else if (node.is_map()) {
    for (const ConfigNode::Member& member : node.members())
      flatten_config(*member.value, child_path(path, member.key), out);
  } else if (node.is_sequence()) {
    // A list of maps is there, too; its elements are found by their number.
    for (std::size_t i = 0; i < node.items().size(); ++i) {
      std::vector<std::string>& list = out.config.lists[path];
      const ConfigNode& item = *node.items()[i];
      if (item.is_scalar())
        list.push_back(item.text());
      else
        flatten_config(item, child_path(path, std::to_string(i)), out);
    }
  }
}

constexpr std::string_view kQuantisation = "hf_quant_config.json";

/// Model Optimizer writes the format of the weights into a file of its own beside config.json;
/// newer checkpoints say it in both.
void add_quantisation(const std::string& path, FlatConfig& out, Diagnostics& diagnostics) {
  constexpr std::string_view kOwn = "config.json";
  if (!path.ends_with(kOwn)) return;
  const std::string beside = path.substr(0, path.size() - kOwn.size()) + std::string(kQuantisation);
  const std::string of = "quantization_config";
  const auto said = out.config.strings.lower_bound(of);
  if (said != out.config.strings.end() && said->first.starts_with(of)) return;
  if (!std::filesystem::exists(beside)) return;
  const ConfigNode::Ptr root = read_config_file(beside, diagnostics);
  const ConfigNode* node = root != nullptr ? root->child("quantization") : nullptr;
  if (node == nullptr) return;
  flatten_config(*node, of, out);
  out.config.strings[of + ".quant_method"] = "modelopt";
}

/// `Qwen3-32B/config.json` is Qwen3-32B, `my-model.json` is my-model.
std::string model_name(const std::string& path) {
  const std::filesystem::path file(path);
  const std::string folder = std::filesystem::absolute(file).parent_path().filename().string();
  return file.filename() == "config.json" && !folder.empty() ? folder : file.stem().string();
}

}  // namespace

void describe(Describer& d, CatalogueFile& c) {
  field(d, {"accelerators", "Accelerators."}, c.accelerators);
  field(d, {"models", "Models."}, c.models);
  field(d, {"curves", "Fitted cost curves."}, c.curves);
  field(d, {"step_times", "Step times that were measured: grids, linear between their points."},
        c.step_times);
}

namespace {

/// Adds the entries of a parsed catalogue. `format` is what the ledger of keys lists them under.
void add_entries(const ConfigNode& root, std::string_view format, models::Catalogue& catalogue,
                 Diagnostics& found) {
  CatalogueFile file;
  Provenance places;
  read_struct(root, file, found,
              {.path = {}, .provenance = &places, .ignored_keys = {}, .format = format});
  if (found.has_errors()) return;  // Checks of half-read entries would repeat the errors.
  const auto add = [&](auto& entries, const char* list, const auto& check) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      Diagnostics entry;
      check(entries[i], entry);
      add_located(entry, element_path(list, i), places, found);
      catalogue.add(std::move(entries[i]));
    }
  };
  add(file.accelerators, "accelerators", models::check_accelerator);
  add(file.models, "models", models::check_model);
  add(file.curves, "curves", [&](const models::FittedCurve& curve, Diagnostics& entry) {
    check_names(curve, catalogue, entry);
  });
  add(file.step_times, "step_times", [&](const models::MeasuredSteps& steps, Diagnostics& entry) {
    check_names(steps, catalogue, entry);
    models::MeasuredLatency::make(steps.table, entry);
  });
}

}  // namespace

const models::Catalogue& builtin_catalogue() {
  static const models::Catalogue kBuiltin = [] {
    models::Catalogue catalogue;
    // They build on each other.
    for (const char* name : {"scenarios/catalogs/accelerators.yaml",
                             "scenarios/catalogs/models.yaml", "scenarios/catalogs/curves.yaml"}) {
      Diagnostics found;
      const ConfigNode::Ptr root =
          parse_config(std::string(compiled_in(name)), {.file = name}, found);
      if (root != nullptr) add_entries(*root, {}, catalogue, found);
      ROUTESIM_CHECK(root != nullptr && !found.has_errors(), "a built-in catalogue is wrong");
    }
    return catalogue;
  }();
  return kBuiltin;
}

namespace {

/// The names of nodes with one accelerator.
struct NodeNames {
  std::string accelerator;
  std::vector<std::string> names;
};

void describe(Describer& d, NodeNames& n) {
  field(d, {"accelerator", "Name in the catalogue.", true}, n.accelerator);
  field(d, {"names", "Names, in any case; `*` at the end stands for any rest.", true}, n.names);
}

struct NodeTable {
  std::vector<NodeNames> nodes;
};

void describe(Describer& d, NodeTable& t) { field(d, {"nodes", "Rows."}, t.nodes); }

const NodeTable& builtin_nodes() {
  static const NodeTable kTable = [] {
    constexpr const char* kNodes = "scenarios/catalogs/nodes.yaml";
    NodeTable table;
    Diagnostics found;
    const ConfigNode::Ptr root =
        parse_config(std::string(compiled_in(kNodes)), {.file = kNodes}, found);
    if (root != nullptr) read_struct(*root, table, found);
    ROUTESIM_CHECK(root != nullptr && !found.has_errors(), "the built-in table of nodes is wrong");
    return table;
  }();
  return kTable;
}

}  // namespace

std::string accelerator_of_node(std::string_view name) {
  const std::string wanted = lower_case(std::string(name));
  for (const NodeNames& row : builtin_nodes().nodes)
    for (const std::string& written : row.names) {
      const std::string pattern = lower_case(written);
      const bool fits = pattern.ends_with('*')
                            ? wanted.starts_with(pattern.substr(0, pattern.size() - 1))
                            : wanted == pattern;
      if (fits) return row.accelerator;
    }
  const models::AcceleratorSpec* known = builtin_catalogue().find_accelerator(name);
  return known != nullptr ? known->name : std::string();
}

bool add_catalogue_file(const std::string& path, models::Catalogue& catalogue,
                        Diagnostics& diagnostics) {
  Diagnostics found;
  const ConfigNode::Ptr root = read_config_file(path, found);
  if (root != nullptr && !root->is_map())
    found.error(root->where(), "", "must be a map with accelerators, models, curves or step_times");
  if (!found.has_errors()) add_entries(*root, "catalogue", catalogue, found);
  append(diagnostics, found);
  return !found.has_errors();
}

std::optional<models::ModelSpec> read_hf_config(const std::string& path, Diagnostics& diagnostics) {
  if (path.ends_with(kQuantisation)) {
    diagnostics.error({.file = path}, "", "is the format of a model's weights, not the model",
                      "name the config.json beside it, which is read together with this file");
    return std::nullopt;
  }
  const ConfigNode::Ptr root = read_config_file(path, diagnostics);
  if (root == nullptr) return std::nullopt;
  if (!root->is_map()) {
    diagnostics.error(root->where(), "",
                      "must be a model's config.json: a map of its architecture");
    return std::nullopt;
  }
  FlatConfig flat;
  flatten_config(*root, "", flat);
  add_quantisation(path, flat, diagnostics);
  Diagnostics found;
  auto model = models::model_from_hf_config(model_name(path), flat.config, found);
  for (Diagnostic d : found.items()) {
    const auto at = flat.places.find(d.path);
    d.where = at != flat.places.end() ? at->second : root->where();
    diagnostics.add(std::move(d));
  }
  return model;
}

}  // namespace routesim::tools
