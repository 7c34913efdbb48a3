// Running what `validate` compares: scenarios with their published numbers, over seeds and threads.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "tools/study/experiment/experiment.h"
#include "tools/study/validate/validation.h"

namespace routesim::tools {

/// Reads a scenario, its variants that name published numbers, those numbers, and the rules of the
/// `unscored.csv` beside them, when there is one. Usable only without errors in `diagnostics`; a
/// scenario that names no published numbers is an error, and so is a load tool's result of another
/// load than the scenario's, unless `force` makes it a warning.
ValidationInput load_validation_input(const std::string& path, const std::vector<std::string>& sets,
                                      const std::vector<std::string>& variants, bool force,
                                      Diagnostics& diagnostics);

/// The scenario again with every pool on `latency_model`, "kernels" or "roofline": of its variants
/// those that were fitted, and that measured kernels cover. `input` is what
/// load_validation_input() made of the same file.
ValidationInput without_fit(const ValidationInput& input, const std::string& path,
                            const std::vector<std::string>& sets, const std::string& latency_model);

/// What a blind test does without: the curves fitted to the same experiment, to any deployment of
/// the same model, or to any on the same accelerator.
enum class BlindTo { kExperiment, kModel, kHardware };

/// The scenario again without those curves: of its variants those that have other step times then.
ValidationInput leave_out(const ValidationInput& input, const std::string& path,
                          const std::vector<std::string>& sets, BlindTo what);

/// Runs every variant with `seeds` >= 1 seeds, from its scenario's on. `report` gets a line per
/// finished run, in the order they finish, from one thread at a time. Throws Stopped; an internal
/// error of a run is thrown, that of the first run in the order of the inputs.
std::vector<ScenarioValidation> run_validation(
    const std::vector<ValidationInput>& inputs, std::size_t seeds,
    const std::function<void(const std::string&)>& report, Experiment& experiment);

}  // namespace routesim::tools

namespace routesim {
template <>
struct EnumNames<tools::BlindTo> {
  static constexpr std::array<std::string_view, 3> value = {"experiment", "model", "hardware"};
};
}  // namespace routesim
