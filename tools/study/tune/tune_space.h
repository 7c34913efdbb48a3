// The choices of a tuning: the knobs of one variant, each with its values, one of them the
// published one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/resolve.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/results/metric_name.h"
#include "tools/study/compare/expectation.h"
#include "tools/study/tune/tune_config.h"

namespace routesim::tools {

/// One value of a knob, and the assignments that make it; the published value has none.
struct KnobValue {
  std::string text = {};
  std::vector<Assignment> assignments = {};
};

/// One thing to choose.
struct Knob {
  std::string name = {};
  std::vector<KnobValue> values = {};
  std::size_t published = 0;  ///< Index of the published value.
  bool ordered = false;       ///< Values are numbers, ascending: neighbours are alike.
  SourceLocation where = {};  ///< Of a knob that the file lists.
  /// The knob of the plugin's type, for a plugin's parameter. With another type than the published
  /// one there is no such parameter.
  std::string type_knob = {};
};

/// An index of a value per knob.
using Choice = std::vector<std::size_t>;

/// A number to make small or large.
struct TuneGoal {
  MetricName metric = {};
  std::string text = {};  ///< `minimise ttft_ms.p90`.
};

/// The router's document, where the variant has one.
struct TunedPicker {
  std::string path = {};      ///< Of its file; empty when it stands in the scenario.
  ConfigNode::Ptr root = {};  ///< The EndpointPickerConfig.
  std::string text = {};      ///< Where `root` stands; empty when it stands in the scenario.
  bool is_bare = true;        ///< Key paths of the scenario lead into it.
  /// Other settings of the file; made with the document where it is not bare.
  std::vector<Assignment> settings = {};
};

/// A load that the search has not seen.
struct ShiftedLoad {
  std::string name = {};
  std::vector<Assignment> extra = {};  ///< Made after those of the candidate.
};

struct TuneSpace {
  TuneConfig config;
  std::string path;  ///< Of the tune file, or of the scenario.
  std::string scenario_path;
  std::string scenario_name;
  std::uint64_t seed = 1;
  /// Made in every run, before those of the candidate (and after a document that is not bare).
  std::vector<Assignment> base;
  std::vector<TuneGoal> goals;
  std::vector<Condition> conditions;
  std::vector<MetricName> guards;   ///< May not get worse beyond chance, under any load.
  std::vector<MetricName> metrics;  ///< Of goals, conditions and guards, then the usual ones.
  std::vector<Knob> knobs;
  /// Engines of the pools, by their names and by their places in the list.
  std::map<std::string, sim::EngineKind> engines;
  std::vector<ShiftedLoad> shifts;
  std::optional<TunedPicker> picker;
  std::vector<std::string> inputs;  ///< Every file that was read.

  Choice published() const;
  /// The same, with parameters as published that their plugin's new type does not have.
  Choice possible(Choice choice) const;
  std::vector<Assignment> assignments(const Choice& choice) const;
  /// The knobs that are not as published.
  std::vector<std::size_t> changed(const Choice& choice) const;
};

/// A tune file, or a scenario, and the options of the command line.
struct TuneRequest {
  std::string path;
  std::vector<std::string> sets = {};
  std::string variant = {};
  std::vector<std::string> goals = {};
  std::optional<std::int64_t> seed = {};
  std::optional<std::int64_t> budget = {};
  std::optional<std::int64_t> fresh_seeds = {};
};

/// Reads the file and makes the knobs. Usable only without errors.
TuneSpace load_tune(const TuneRequest& request, Diagnostics& diagnostics);

/// The variant with these choices, and `extra` made after them. Nothing with errors.
std::optional<sim::RunPlan> prepare_choice(const TuneSpace& space, const Choice& choice,
                                           const std::vector<Assignment>& extra,
                                           Diagnostics& diagnostics);

/// `PATH=VALUE`; the value is a bare word. The path must be well formed.
Assignment make_assignment(const std::string& path, const std::string& value,
                           const SourceLocation& where = {.file = "tune"});

/// The key paths of the scenario lead into the router's document from here.
inline constexpr char kPickerPath[] = "routing.endpoint_picker";

}  // namespace routesim::tools
