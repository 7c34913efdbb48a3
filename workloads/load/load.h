// The load of a scenario: one of the load tools. Only this room and tools/ingest ask which one.
//
// A new tool takes two edits: its settings in LoadTool, and, where it has files of its own, a row
// in tools/ingest that reads them. Its room has the functions that workloads/load_traits.h lists.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "workloads/conversations/conversations.h"
#include "workloads/demand/demand.h"
#include "workloads/groups/group_load.h"
#include "workloads/guidellm/guidellm.h"
#include "workloads/inference_perf/inference_perf.h"
#include "workloads/load_generator.h"
#include "workloads/load_traits.h"
#include "workloads/multi_round_qa/multi_round_qa.h"
#include "workloads/options.h"
#include "workloads/traces/trace_replay.h"
#include "workloads/vllm_bench/vllm_bench.h"

namespace routesim::workloads {

/// Settings that LoadTool accepts: a key and the functions that load_traits.h lists. A tool whose
/// own file is read by tools/ingest has a `document`; the others have `describe`.
template <class T>
concept LoadSettings = requires(T& t, const T& c, const WorkloadOptions& options,
                                const LoadInputs& inputs, Diagnostics& diagnostics) {
  LoadKey<T>::value.name;
  { traits_of(c) } -> std::same_as<LoadTraits>;
  { files_of(c) } -> std::same_as<std::vector<LoadFile>>;
  { scale_rates(t, 1.0) } -> std::same_as<std::string>;
  { hold_rate(t, 1.0, 1.0) } -> std::same_as<std::string>;
  {
    make_load_generator(c, options, inputs, diagnostics)
    } -> std::same_as<std::unique_ptr<LoadGenerator>>;
}
&&(
    requires(T& t) { t.document; } || requires(T & t, Describer& d) { describe(d, t); });

/// The settings of a load tool; empty until one is given.
using LoadTool =
    std::variant<std::monostate, inference_perf::Workload, vllm_bench::Config, ConversationsConfig,
                 TraceWorkload, GroupLoadConfig, MultiRoundQaConfig, guidellm::Config>;

/// The load of a scenario. A scenario that gives several tools is in error; the last one is kept.
struct Load {
  LoadTool tool{};
  std::int32_t tools_given = 0;  ///< Counted while the scenario is read.

  template <class T>
  T& emplace() {
    tools_given = 1;
    return tool.emplace<T>();
  }
  template <class T>
  const T* get() const {
    return std::get_if<T>(&tool);
  }
  template <class T>
  T* get() {
    return std::get_if<T>(&tool);
  }
};

/// Describes one key per tool. Not `describe`: the keys stand beside others of `workload`.
void describe_tools(Describer& d, Load& load);

/// The keys of all tools, as in `workload.KEY`.
std::vector<std::string> load_keys();
/// The key of the tool that the load has; empty without one.
std::string_view load_key(const Load& load);
/// The document of a tool that has a configuration file of its own; else null.
const Document* document_of(const Load& load);

LoadTraits traits_of(const Load& load);

/// The files that the load names, in the order in which they are opened.
std::vector<LoadFile> files_of(const Load& load);

/// Multiplies every rate of the load. Returns why there is no rate to multiply, or "".
std::string scale_rates(Load& load, double by);

/// Makes the load one reported stage that sends the same requests at `rate` requests/s for
/// `seconds`: what it would be if it never ended. Returns why it has no rate to hold, or "".
std::string hold_rate(Load& load, double rate, double seconds);

/// Makes the load one reported stage, whose requests come when a demand says. Returns why the load
/// cannot, or "".
std::string take_demand(Load& load);

/// Sets what a tool does by default and its file does not say. `old_servers`: the servers are of
/// 2025, and so is the tool.
void set_release_defaults(Load& load, bool old_servers);

/// Null when `diagnostics` received an error. The load must have a tool.
std::unique_ptr<LoadGenerator> make_load_generator(const Load& load, const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics);

/// The same for a load that take_demand() changed: `demand` says when its requests come.
std::unique_ptr<LoadGenerator> make_load_generator(const Load& load, const Demand& demand,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics);

}  // namespace routesim::workloads
