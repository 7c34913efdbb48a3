// Everything known by name: accelerators, models, fitted curves. tools/ingest reads the built-in
// entries and those of users from catalogue files; this library holds and finds them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/cost_curve.h"
#include "models/measured.h"
#include "models/specs.h"

namespace routesim::models {

/// One fitted curve and what it holds for.
struct FittedCurve {
  std::string accelerator;
  std::string model;
  Parallelism parallelism;
  std::string preset;  ///< Engine preset it was fitted on ("2025-H2"); empty fits any.
  /// KV format it was fitted on: what a token of context costs depends on it. None fits any.
  std::optional<KvDtype> kv_cache_dtype = {};
  CostCurveParameters parameters;
  FittedRange range;
  /// Published experiments, or folders of measurements, that had a part in the fit.
  std::vector<std::string> fitted_to = {};
  std::string provenance;  ///< From what data, by what command.
};

void describe(Describer& d, FittedCurve& c);

/// Step times that a user measured, and what they hold for.
struct MeasuredSteps {
  std::string accelerator;
  std::string model;
  Parallelism parallelism;
  MeasuredTable table;
};

void describe(Describer& d, MeasuredSteps& s);

/// A lookup by name. Names are compared without case, punctuation and an organisation prefix
/// ("Qwen/Qwen3-32B" is "qwen3 32b"). Entries added later win over earlier ones of the same name.
class Catalogue {
 public:
  void add(AcceleratorSpec a) { accelerators_.push_back(std::move(a)); }
  /// Adds the model, and one entry for each of its `formats` as "NAME-FP8", "NAME-AWQ" or
  /// "NAME-NVFP4", which also answers to the names that such checkpoints are published under.
  void add(ModelSpec m);
  void add(FittedCurve c) { curves_.push_back(std::move(c)); }
  /// Forgets the curves of which `left_out` is true, as a blind test does.
  void forget_curves(const std::function<bool(const FittedCurve&)>& left_out) {
    std::erase_if(curves_, left_out);
  }
  /// `s.table` must form a grid (MeasuredLatency::make).
  void add(MeasuredSteps s) { steps_.push_back(std::move(s)); }

  /// The entry, or null. Pointers stay valid until the next add().
  const AcceleratorSpec* find_accelerator(std::string_view name) const;
  /// A path of Hugging Face that is no entry is taken for the entry that its name holds with its
  /// size ("NousResearch/Hermes-3-Llama-3.1-8B" is Llama-3.1-8B), unless its other words state
  /// another size, kind or weight format.
  const ModelSpec* find_model(std::string_view name) const;
  /// `find_model` takes the name for that of a model made from an entry.
  bool is_fine_tune(std::string_view name) const;

  /// The curve for this deployment: the exact preset first, then one for any preset, then (when
  /// `any_preset`) the same deployment under another preset; null when there is none. Model names
  /// with another weight format do not match, nor, when `kv` is given, curves of another KV format.
  const FittedCurve* find_cost_curve(std::string_view accelerator, std::string_view model,
                                     const Parallelism& p, std::string_view preset,
                                     bool any_preset = true, std::optional<KvDtype> kv = {}) const;

  /// The step times measured for this deployment, or null.
  const MeasuredSteps* find_measured_steps(std::string_view accelerator, std::string_view model,
                                           const Parallelism& p) const;

  /// The known name closest to a wrong one among those of the same generation, or "".
  std::string suggest_accelerator(std::string_view name) const;
  std::string suggest_model(std::string_view name) const;

  const std::vector<AcceleratorSpec>& accelerators() const { return accelerators_; }
  const std::vector<ModelSpec>& models() const { return models_; }
  const std::vector<FittedCurve>& curves() const { return curves_; }

 private:
  const ModelSpec* base_of(std::string_view name) const;

  std::vector<AcceleratorSpec> accelerators_;
  std::vector<ModelSpec> models_;
  std::vector<FittedCurve> curves_;
  std::vector<MeasuredSteps> steps_;
};

/// Names a part of the model that is not simulated, as "sparse attention"; "" where none is known.
std::string_view unsimulated_part(std::string_view model);

}  // namespace routesim::models
