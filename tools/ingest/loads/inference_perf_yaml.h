// inference-perf's own config file, verbatim.
#pragma once

#include <string>

#include "base/config_node.h"
#include "base/tree_reader.h"
#include "workloads/inference_perf/inference_perf.h"

namespace routesim::tools {

/// Name of the format in the ledger of keys.
inline constexpr std::string_view kInferencePerfFormat = "inference-perf";

/// The document in a file that is one or holds one: the values of inference-perf's Helm chart have
/// it at `config`, llm-d's benchmark templates at `workload.NAME`. Null with an error at `path` for
/// a Kubernetes object, which has none.
ConfigNode::Ptr inference_perf_document(const ConfigNode::Ptr& root, const std::string& path,
                                        Diagnostics& diagnostics);

/// The only map below `workload` of llm-d's benchmark templates in their run-only form, whose
/// `harness.name` is this one; `root` itself where it is no such file, and where `workload` holds
/// several, with an error at `path`.
ConfigNode::Ptr workload_of_harness(const ConfigNode::Ptr& root, std::string_view harness,
                                    const std::string& path, Diagnostics& diagnostics);

/// A bare length written as a `fixed` distribution, and a distribution's missing keys filled with
/// inference-perf's defaults: also for other parts of a scenario that hold such distributions.
ConfigNode::Ptr complete_lengths(const ConfigNode::Ptr& node);

/// The same for `workload.groups`, whose lengths are `fixed` unless a type is written: members that
/// only another type has are an error without one.
ConfigNode::Ptr complete_group_lengths(const ConfigNode::Ptr& groups, Diagnostics& diagnostics);

/// Reads the document. Errors are in `diagnostics`; the value is usable only without new ones.
workloads::inference_perf::Config load_inference_perf(const ConfigNode::Ptr& root,
                                                      const ReadOptions& options,
                                                      Diagnostics& diagnostics);

/// Adds what was found. A value that is a placeholder of llm-d-benchmark is called one.
void add_findings(const Diagnostics& found, Diagnostics& diagnostics);

}  // namespace routesim::tools
