#include "tools/study/sweep/sweep_config.h"

namespace routesim::tools {

void describe(Describer& d, SweepRange& r) {
  field(d, {"from", "First number.", true}, r.from);
  field(d, {"to", "Last number, included when a step ends there.", true}, r.to);
  field(d, {"step", "Distance between numbers."}, r.step, RealRange{.min = 0, .min_open = true});
  field(d, {"unit", "Written behind each number, such as ms for a duration."}, r.unit);
}

void describe(Describer& d, SweepLogRange& r) {
  const RealRange positive{.min = 0, .min_open = true};
  field(d, {"from", "First number.", true}, r.from, positive);
  field(d, {"to", "Last number.", true}, r.to, positive);
  field(d, {"points", "How many numbers, both ends included.", true}, r.points,
        IntRange{2, 10'000});
  field(d, {"integer", "Round to whole numbers; what becomes equal is kept once."}, r.integer);
  field(d, {"unit", "Written behind each number, such as ms for a duration."}, r.unit);
}

void describe(Describer& d, SweepAxis& a) {
  field(d, {"path", "Key of the scenario, as in --set: cluster.pools[vllm].replicas."}, a.path);
  field(d, {"name", "Name of the axis in rows and exclusions; the path when absent."}, a.name);
  field(d, {"values", "The values, a list of whatever the key may hold."}, a.values);
  field(d, {"labels", "Names of the values in rows, one each, for values that are long."},
        a.labels);
  field(d, {"range", "Numbers at equal distances."}, a.range);
  field(d, {"log_range", "Numbers at equal ratios."}, a.log_range);
}

void describe(Describer& d, SweepDimension& a) {
  describe(d, static_cast<SweepAxis&>(a));
  field(d, {"zip", "Axes of equal length that move together, instead of a path of its own."},
        a.zip);
}

void describe(Describer& d, SweepConfig& c) {
  field(d, {"name", "Name of the sweep, as printed in results.", true}, c.name);
  field(d, {"question", "The question the sweep answers, one sentence."}, c.question);
  field(d, {"scenario", "The base scenario, a path relative to this file.", true}, c.scenario);
  field(d, {"set", "Assignments made in every cell first: KEY=VALUE, as --set."}, c.set);
  field(d, {"variants", "Variants of the scenario; all of them when absent."}, c.variants);
  field(d, {"seed", "Seed of the first replication; the scenario's when absent."}, c.seed,
        IntRange{0});
  field(d, {"replications", "Runs per row, with consecutive seeds."}, c.replications,
        IntRange{1, 10'000});
  field(d, {"metrics", "What stands in a row, such as ttft_ms.p99; the usual ones when absent."},
        c.metrics);
  field(d, {"axes", "The grid's dimensions; the first one varies slowest.", true}, c.axes);
  field(d,
        {"exclude",
         "Cells to leave out: maps from axis names to a value, a list of values, or a bound such "
         "as \">= 40\"; all of a map's conditions must hold."},
        c.exclude);
}

}  // namespace routesim::tools
