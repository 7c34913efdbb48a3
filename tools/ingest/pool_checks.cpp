#include "tools/ingest/pool_checks.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/printable.h"
#include "base/scalar_parse.h"

namespace routesim::tools {

void check_pool_names(const LoadedVariant& variant, Diagnostics& diagnostics) {
  const std::vector<sim::PoolConfig>& pools = variant.scenario.cluster.pools;
  std::set<std::string> names;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    if (names.insert(pools[i].name).second) continue;
    const std::string path = child_path(element_path("cluster.pools", i), "name");
    const std::string what = variant.provenance.find(path) != nullptr
                                 ? "is the name of another pool too (got "
                                 : "is missing, and another pool has the default name too (";
    diagnostics.error(variant.provenance.nearest(path), path, what + printable(pools[i].name) + ")",
                      "give each pool a name");
  }
}

void check_labels(const LoadedVariant& variant, Diagnostics& diagnostics) {
  const std::vector<sim::PoolConfig>& pools = variant.scenario.cluster.pools;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    std::map<std::string, std::string> seen;
    for (std::size_t l = 0; l < pools[i].labels.size(); ++l) {
      const std::string& label = pools[i].labels[l];
      const std::string path =
          element_path(child_path(element_path("cluster.pools", i), "labels"), l);
      if (is_broken(diagnostics, path)) continue;
      const std::size_t equals = label.find('=');
      if (equals == std::string::npos || equals == 0) {
        diagnostics.error(variant.provenance.nearest(path), path,
                          "must be key=value (got " + printable(label) + ")",
                          "for example labels: [llm-d.ai/model=Qwen3-32B]");
        continue;
      }
      const std::string key = label.substr(0, equals);
      const std::string value = label.substr(equals + 1);
      const auto [first, is_new] = seen.try_emplace(key, value);
      if (!is_new && first->second != value)
        diagnostics.error(variant.provenance.nearest(path), path,
                          "is another value of a label that the pool has already (got " +
                              printable(label) + " beside " + printable(key + "=" + first->second) +
                              ")",
                          "keep one of the two");
    }
  }
}

void warn_missing_labels(const LoadedVariant& variant, const std::string& path,
                         Diagnostics& diagnostics) {
  const auto has = [&](const std::string& key) {
    // Those of its role a server has of itself.
    if (key == "llm-d.ai/role" || key == "mif.moreh.io/role") return true;
    for (const sim::PoolConfig& pool : variant.scenario.cluster.pools)
      for (const std::string& label : pool.labels)
        if (label.starts_with(key + "=")) return true;
    return false;
  };
  for (const policies::PluginSpec& spec : variant.endpoint_picker->plugins) {
    if (spec.type != "by-label" && spec.type != "context-length-aware") continue;
    const ConfigNode* key = spec.parameters->child("label");
    if (key == nullptr || !key->is_text() || has(key->text())) continue;
    diagnostics.warning(spec.where, path + "." + spec.path,
                        "looks at the label " + printable(key->text()) + ", which no pool has",
                        "write labels: [" + printable(key->text()) + "=VALUE] into the pools");
  }
}

void check_one_model(const sim::Scenario& scenario, const models::Catalogue& catalogue,
                     Diagnostics& diagnostics) {
  const std::vector<sim::PoolConfig>& pools = scenario.cluster.pools;
  const auto same_architecture = [](const models::ModelSpec& a, const models::ModelSpec& b) {
    return a.layers == b.layers && a.hidden == b.hidden && a.heads == b.heads &&
           a.kv_heads == b.kv_heads && a.experts == b.experts && a.vocab == b.vocab;
  };
  const models::ModelSpec* first = nullptr;  // Of pool `of_first`.
  std::size_t of_first = 0;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    // A name that is not in the catalogue is reported where it is looked up, and the two sides of a
    // disaggregated pair by check_handover().
    const models::ModelSpec* const model = catalogue.find_model(pools[i].model);
    if (model == nullptr || pools[i].role != sim::PoolRole::kBoth) continue;
    if (first == nullptr) {
      first = model;
      of_first = i;
    } else if (!same_architecture(*first, *model)) {
      diagnostics.error(
          {}, child_path(element_path("cluster.pools", i), "model"),
          "is another model than that of pool " + printable(pools[of_first].name) +
              ", but one balancer sends every request to any pool (got " +
              printable(pools[i].model) + " in pool " + printable(pools[i].name) + " and " +
              printable(pools[of_first].model) + ")",
          "simulate the pools and the traffic of each model in a scenario of its own");
    }
  }
}

void check_handover(const sim::Scenario& scenario, const models::Catalogue& catalogue,
                    Diagnostics& diagnostics) {
  // `auto` is bf16.
  const auto format = [](const sim::PoolConfig& c) {
    return c.kv_cache_dtype.starts_with("fp8") ? "fp8" : "bf16";
  };
  const std::vector<sim::PoolConfig>& pools = scenario.cluster.pools;
  const auto prefill = std::find_if(pools.begin(), pools.end(), [](const sim::PoolConfig& p) {
    return p.role == sim::PoolRole::kPrefill;
  });
  if (prefill == pools.end()) return;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const sim::PoolConfig& pool = pools[i];
    if (pool.role == sim::PoolRole::kBoth) continue;
    const std::string path = element_path("cluster.pools", i);
    const std::string other = " of pool " + printable(prefill->name) + " (got ";
    // A name that is not in the catalogue is reported where it is looked up.
    const models::ModelSpec* const model = catalogue.find_model(pool.model);
    const models::ModelSpec* const first = catalogue.find_model(prefill->model);
    if (model != nullptr && first != nullptr && model != first)
      diagnostics.error({}, path + ".model",
                        "differs from the model" + other + printable(pool.model) + " and " +
                            printable(prefill->model) + ")",
                        "decode servers pull the KV of prefill servers, so both have one model");
    if (std::string_view(format(pool)) != format(*prefill))
      diagnostics.error(
          {}, path + ".kv_cache_dtype",
          "differs from the KV format" + other + format(pool) + " and " + format(*prefill) + ")",
          "decode servers pull the KV of prefill servers, so both have one format");
  }
}

}  // namespace routesim::tools
