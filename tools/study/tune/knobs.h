// Knobs: those that a variant has by itself, and those that a tune file lists.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/tree_reader.h"
#include "sim/plan/resolve.h"
#include "tools/study/tune/tune_space.h"

namespace routesim::tools {

/// The inputs that knobs are made from.
struct KnobSource {
  const LoadedVariant& variant;
  const sim::RunPlan& plan;
  const std::optional<TunedPicker>& picker;
};

/// The knobs of the variant: weights of scorers and types of pickers and deciders in its document,
/// parameters of the plugins there (a table of plausible values), the settings of any other
/// balancer, the split of GPUs between a prefill and a decode pool, and the engine's max_num_seqs
/// and max_num_batched_tokens. Some values may be impossible.
std::vector<Knob> derive_knobs(const KnobSource& source);

/// The knob that the entry `path` of a tune file describes; nothing with an error.
std::optional<Knob> read_knob(const TuneKnobConfig& config, const std::string& path,
                              const KnobSource& source, const Provenance& provenance,
                              Diagnostics& diagnostics);

/// The numbers of a range, both ends included.
std::vector<double> range_values(double low, double high, std::optional<double> step, bool log,
                                 bool whole);

}  // namespace routesim::tools
