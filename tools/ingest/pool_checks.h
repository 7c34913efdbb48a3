// What the pools of a scenario must have of their own, and what two of them must have in common.
#pragma once

#include "models/catalogue.h"
#include "tools/ingest/scenario_yaml.h"

namespace routesim::tools {

/// Every pool has a name of its own: endpoints are called after it, and balancers know them by it.
/// Labels are key=value, each key once in a pool.
void check_labels(const LoadedVariant& variant, Diagnostics& diagnostics);

void check_pool_names(const LoadedVariant& variant, Diagnostics& diagnostics);

/// Warns of plugins of the variant's router document, read from the key `path`, that look at a
/// label no pool has.
void warn_missing_labels(const LoadedVariant& variant, const std::string& path,
                         Diagnostics& diagnostics);

/// A balancer sends every request to any of the servers behind it, so these serve one model. Its
/// weights may have several formats.
void check_one_model(const sim::Scenario& scenario, const models::Catalogue& catalogue,
                     Diagnostics& diagnostics);

/// What a prefill server computed is read by decode servers: both have one model and one KV format.
void check_handover(const sim::Scenario& scenario, const models::Catalogue& catalogue,
                    Diagnostics& diagnostics);

}  // namespace routesim::tools
