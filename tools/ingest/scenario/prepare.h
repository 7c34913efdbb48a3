// From a scenario file to something that can run: the one place where `run`, `check` and the
// commands after them turn what was read into a plan.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/plan/resolve.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/ingest/traces/measured_file.h"

namespace routesim::tools {

/// The built-in catalogue with what the scenario's `catalogue` files add. A pool whose `model` ends
/// in `.json` gets the model read from there, and its name; a warning says so when that name was
/// taken. `scenario` is changed accordingly.
models::Catalogue scenario_catalogue(const LoadedVariant& variant, sim::Scenario& scenario,
                                     Diagnostics& diagnostics);

/// The variant resolved against the catalogues, its data files opened. Errors carry the place of
/// the key they are about; nothing is returned then.
/// `change`, where given, changes the catalogue that the variant is resolved with.
std::optional<sim::RunPlan> prepare(const LoadedVariant& variant, Diagnostics& diagnostics,
                                    const std::function<void(models::Catalogue&)>& change = {});

/// Adds what is wrong with the variant beside what `diagnostics` holds: with errors of reading,
/// which left defaults in their places, only files, names, goals and measured numbers are looked
/// at, and nothing is said of a key that has an error already.
void check_variant(const LoadedVariant& variant, Diagnostics& diagnostics);

/// Every value of the variant, defaults included, as JSON text.
std::string resolved_json(const LoadedVariant& variant);

/// The same as text (the document's path) and as a tree, and under `files` what the files beside it
/// hold, by the key that names them: documents of up to 32 KiB, and the SHA-256 of others.
Document resolved_with_files(const LoadedVariant& variant);

/// SHA-256, in hexadecimal, of the resolved values of all variants and the text of the documents
/// they refer to: equal hashes mean the same question.
std::string scenario_hash(const LoadedScenario& scenario);

/// A file that a variant names, and the key that names it.
struct ReferencedFile {
  std::string key;   ///< `routing.endpoint_picker`.
  std::string path;  ///< Resolved against the file it was written in.
};

/// Every file that reading this scenario has read or will read, published numbers included.
std::vector<std::string> files_read(const LoadedScenario& scenario);
/// The same of the scenarios in these files. What is wrong with them is not said here.
std::vector<std::string> files_read(std::span<const std::string> scenario_paths);

/// Files that the values of assignments may name.
std::vector<std::string> files_named(const std::vector<Assignment>& assignments);

/// Every file whose contents decide what the variant does, in the order of their keys. Published
/// numbers do not, and are left out.
std::vector<ReferencedFile> referenced_files(const LoadedVariant& variant);

/// The published numbers this variant is compared with; an empty table when it names none.
MeasuredTable load_measured(const LoadedVariant& variant, Diagnostics& diagnostics);

}  // namespace routesim::tools
