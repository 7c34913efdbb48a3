// Reads the catalogue: files with accelerators, models and fitted curves, built in or added by
// users, and the config.json of a Hugging Face model.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "models/catalogue.h"

namespace routesim::tools {

/// A catalogue file: entries that add to the built-in ones, or replace those of the same name.
struct CatalogueFile {
  std::vector<models::AcceleratorSpec> accelerators;
  std::vector<models::ModelSpec> models;
  std::vector<models::FittedCurve> curves;
  std::vector<models::MeasuredSteps> step_times;
};
void describe(Describer& d, CatalogueFile& c);

/// The built-in entries: scenarios/catalogs/*.yaml, compiled in and read at the first call. Any
/// thread may call it.
const models::Catalogue& builtin_catalogue();

/// The catalogue's name of the accelerator that a node, a GPU or a resource profile of this name
/// has (scenarios/catalogs/nodes.yaml, then the built-in accelerators and their aliases); empty
/// when it is not known. Any thread may call it.
std::string accelerator_of_node(std::string_view name);

/// Reads a catalogue file and adds its entries. A curve for a model or an accelerator that neither
/// the file nor `catalogue` knows is an error, as is every malformed entry, at its line. False
/// after any error.
bool add_catalogue_file(const std::string& path, models::Catalogue& catalogue,
                        Diagnostics& diagnostics);

/// Reads a model's config.json. The model is called like the folder the file is in, or like the
/// file when that is not `config.json`.
std::optional<models::ModelSpec> read_hf_config(const std::string& path, Diagnostics& diagnostics);

}  // namespace routesim::tools
