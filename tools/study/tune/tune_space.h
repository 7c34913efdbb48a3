// The choices of a tuning: the knobs of one variant, each with its values, one of them the
// published one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.h"
#include "sim/plan/resolve.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/results/metric_name.h"
#include "tools/study/compare/expectation.h"

namespace routesim::tools {

// A tune file: a scenario, what may be changed in it, and what is better.

/// One thing that may be changed. Exactly one of `set`, `weight`, `picker` and `split` says what.
struct TuneKnobConfig {
  std::string name;                ///< Empty = made from the others.
  std::string set;                 ///< A key path, as in `--set`.
  std::vector<std::string> also;   ///< Further key paths that get the same value.
  std::string weight;              ///< Name of a scorer in the router's document.
  std::string profile;             ///< Which profile's; empty = the only one that has it.
  std::string picker;              ///< Name of a profile whose picker is chosen.
  std::vector<std::string> split;  ///< Two pools that share a fixed number of GPUs.
  Document values;                 ///< A list of whatever the key may hold.
  std::vector<double> range;       ///< Lowest and highest number.
  std::optional<double> step;      ///< Distance between numbers; absent = a twentieth.
  bool log = false;                ///< Equal ratios instead of equal distances.
};
void describe(Describer& d, TuneKnobConfig& k);

/// A load that the search has not seen.
struct TuneShift {
  std::string name = {};              ///< Empty = made from the others.
  double rate = 1;                    ///< Multiplies every rate of the load.
  std::vector<std::string> set = {};  ///< Assignments made after those of the candidate.
};
void describe(Describer& d, TuneShift& s);

/// The share of the budget that is kept to take back changes that gain nothing.
inline constexpr double kSimplifyShare = 0.2;

/// A tune file.
struct TuneConfig {
  std::string name;
  std::string question;
  std::string scenario;
  std::string variant;
  std::vector<std::string> set;
  std::optional<std::int64_t> seed;
  std::vector<std::string> goals = {"minimise ttft_ms.p90"};
  std::optional<std::vector<std::string>> subject_to;  ///< Absent = nothing gets much worse.
  bool guards = true;  ///< Failures, and what lies beside the goals, may not get worse.
  std::optional<std::int64_t> budget;  ///< Runs of the search.
  std::int64_t block = 5;              ///< Seeds of one round.
  std::int64_t fresh_seeds = 60;
  double confidence = 0.95;
  std::optional<std::vector<TuneShift>> shift;  ///< Absent = rates times 1.25 and times 0.8.
  std::vector<TuneKnobConfig> knobs;            ///< Empty = derived from the scenario.
};
void describe(Describer& d, TuneConfig& c);

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
  /// Its values by knob, as text.
  Named<std::string> values_of(const Choice& choice) const;
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
