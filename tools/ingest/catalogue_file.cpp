#include "tools/ingest/catalogue_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/config_node.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "models/hf_config.h"
#include "tools/ingest/builtin_catalogs.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/ingest/vllm_serve_flags.h"

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

/// Whether the file a key names can be read; if not, says so at the key.
bool readable(const std::string& path, const SourceLocation& where, const std::string& key,
              Diagnostics& diagnostics) {
  std::string text;
  return read_text_file(path, where, key, ConfigLimits{}.max_bytes, text, diagnostics);
}

/// Reports a curve whose accelerator or model is unknown: no scenario could use it.
void check_names(const models::FittedCurve& curve, const std::string& entry,
                 const models::Catalogue& catalogue, const Provenance& places,
                 Diagnostics& diagnostics) {
  Diagnostics found;
  if (catalogue.find_accelerator(curve.accelerator) == nullptr)
    found.error({}, "accelerator", "unknown accelerator (got " + printable(curve.accelerator) + ")",
                did_you_mean(catalogue.suggest_accelerator(curve.accelerator), "accelerators"));
  if (catalogue.find_model(curve.model) == nullptr)
    found.error({}, "model", "unknown model (got " + printable(curve.model) + ")",
                did_you_mean(catalogue.suggest_model(curve.model), "models"));
  add_located(found, entry, places, diagnostics);
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

void flatten(const ConfigNode& node, const std::string& path, FlatConfig& out) {
  out.places[path] = node.where();
  if (node.is_scalar()) {
    flatten_scalar(node, path, out);
  } else if (node.is_map()) {
    for (const ConfigNode::Member& member : node.members())
      flatten(*member.value, child_path(path, member.key), out);
  } else if (node.is_sequence()) {
    // A list of maps is there, too, though its elements are not kept.
    for (const ConfigNode::Ptr& item : node.items()) {
      std::vector<std::string>& list = out.config.lists[path];
      if (item->is_scalar()) list.push_back(item->text());
    }
  }
}

/// `Qwen3-32B/config.json` is Qwen3-32B, `my-model.json` is my-model.
std::string model_name(const std::string& path) {
  const std::filesystem::path file(path);
  const std::string folder = std::filesystem::absolute(file).parent_path().filename().string();
  return file.filename() == "config.json" && !folder.empty() ? folder : file.stem().string();
}

bool same_physics(const models::ModelSpec& a, const models::ModelSpec& b) {
  using models::KvDtype;
  return a.layers == b.layers && a.hidden == b.hidden && a.weights == b.weights &&
         models::total_parameters(a) == models::total_parameters(b) &&
         models::kv_bytes_per_token(a, KvDtype::kBf16) ==
             models::kv_bytes_per_token(b, KvDtype::kBf16);
}

}  // namespace

void describe(Describer& d, CatalogueFile& c) {
  field(d, {"accelerators", "Accelerators."}, c.accelerators);
  field(d, {"models", "Models."}, c.models);
  field(d, {"curves", "Fitted cost curves."}, c.curves);
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
  for (std::size_t i = 0; i < file.accelerators.size(); ++i) {
    Diagnostics entry;
    models::check_accelerator(file.accelerators[i], entry);
    add_located(entry, element_path("accelerators", i), places, found);
    catalogue.add(std::move(file.accelerators[i]));
  }
  for (std::size_t i = 0; i < file.models.size(); ++i) {
    Diagnostics entry;
    models::check_model(file.models[i], entry);
    add_located(entry, element_path("models", i), places, found);
    catalogue.add(std::move(file.models[i]));
  }
  for (std::size_t i = 0; i < file.curves.size(); ++i) {
    check_names(file.curves[i], element_path("curves", i), catalogue, places, found);
    catalogue.add(std::move(file.curves[i]));
  }
}

}  // namespace

const models::Catalogue& builtin_catalogue() {
  static const models::Catalogue kBuiltin = [] {
    models::Catalogue catalogue;
    // In the order in which they build on each other.
    for (const auto& [name, text] : {std::pair{"accelerators", kAcceleratorsYaml},
                                     {"models", kModelsYaml},
                                     {"curves", kCurvesYaml}}) {
      Diagnostics found;
      const ConfigNode::Ptr root = parse_config(
          std::string(text), {.file = fmt::format("scenarios/catalogs/{}.yaml", name)}, found);
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
    NodeTable table;
    Diagnostics found;
    const ConfigNode::Ptr root =
        parse_config(std::string(kNodesYaml), {.file = "scenarios/catalogs/nodes.yaml"}, found);
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
    found.error(root->where(), "", "must be a map with accelerators, models or curves");
  if (!found.has_errors()) add_entries(*root, "catalogue", catalogue, found);
  append(diagnostics, found);
  return !found.has_errors();
}

std::optional<models::ModelSpec> read_hf_config(const std::string& path, Diagnostics& diagnostics) {
  const ConfigNode::Ptr root = read_config_file(path, diagnostics);
  if (root == nullptr) return std::nullopt;
  if (!root->is_map()) {
    diagnostics.error(root->where(), "",
                      "must be a model's config.json: a map of its architecture");
    return std::nullopt;
  }
  FlatConfig flat;
  flatten(*root, "", flat);
  Diagnostics found;
  auto model = models::model_from_hf_config(model_name(path), flat.config, found);
  for (Diagnostic d : found.items()) {
    const auto at = flat.places.find(d.path);
    d.where = at != flat.places.end() ? at->second : root->where();
    diagnostics.add(std::move(d));
  }
  return model;
}

models::Catalogue scenario_catalogue(const LoadedVariant& variant, sim::Scenario& scenario,
                                     Diagnostics& diagnostics) {
  models::Catalogue catalogue = builtin_catalogue();
  for (std::size_t i = 0; i < scenario.catalogue.size(); ++i) {
    const std::string key = element_path("catalogue", i);
    const SourceLocation where = variant.provenance.nearest(key);
    const std::string path = resolve_path(scenario.catalogue[i], where);
    if (readable(path, where, key, diagnostics)) add_catalogue_file(path, catalogue, diagnostics);
  }
  for (std::size_t i = 0; i < scenario.cluster.pools.size(); ++i) {
    std::string& model = scenario.cluster.pools[i].model;
    if (!model.ends_with(".json")) continue;
    const std::string key = child_path(element_path("cluster.pools", i), "model");
    const SourceLocation where = variant.provenance.nearest(key);
    const std::string path = resolve_path(model, where);
    if (!readable(path, where, key, diagnostics)) continue;
    auto spec = read_hf_config(path, diagnostics);
    if (!spec) continue;
    const models::ModelSpec* taken = catalogue.find_model(spec->name);
    if (taken != nullptr && !same_physics(*taken, *spec))
      diagnostics.warning(where, key,
                          "replaces the catalogue's " + taken->name +
                              ", whose fitted curves it will use although it differs from it",
                          "give the folder of the config.json another name");
    model = spec->name;
    catalogue.add(std::move(*spec));
  }
  return catalogue;
}

}  // namespace routesim::tools
