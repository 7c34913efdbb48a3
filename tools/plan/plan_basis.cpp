#include "tools/plan/plan_basis.h"

#include <algorithm>

#include "models/accelerators.h"
#include "models/catalogue.h"

namespace routesim::tools {

namespace {

/// Whether the efficiencies of a built-in accelerator come from measurements of it.
bool is_measured(const std::string& accelerator) {
  const models::Catalogue builtin = models::Catalogue::builtin();
  const models::AcceleratorSpec* const spec = builtin.find_accelerator(accelerator);
  if (spec == nullptr) return false;
  return std::ranges::none_of(models::data_sheet_accelerators(),
                              [spec](const auto& known) { return known.name == spec->name; });
}

}  // namespace

Basis basis_of(const sim::ResolvedPool& pool) {
  if (pool.latency->trust({}) != models::Trust::kRoofline) return Basis::kFitted;
  return is_measured(pool.config.accelerator) ? Basis::kRoofline : Basis::kDataSheet;
}

std::string basis_name(Basis basis) {
  if (basis == Basis::kFitted) return "fitted";
  return basis == Basis::kRoofline ? "roofline" : "data sheet";
}

std::string basis_text(Basis basis) {
  if (basis == Basis::kFitted) return "step times that were fitted to measurements";
  if (basis == Basis::kRoofline) return "a roofline that was not fitted to this deployment";
  return "a roofline of a data sheet, with no measurement of this accelerator";
}

}  // namespace routesim::tools
