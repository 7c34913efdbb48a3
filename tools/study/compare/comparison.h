// Two results side by side: which variants belong together, how they differ, and the gates.
#pragma once

#include <string>
#include <vector>

#include "tools/study/compare/gate.h"
#include "tools/study/compare/result_file.h"

namespace routesim::tools {

/// One variant of the base beside one of the new result.
struct VariantPair {
  const VariantValues* base = nullptr;
  const VariantValues* changed = nullptr;
  bool paired = true;  ///< The same requests on both sides: differences are taken seed by seed.
  std::string note;    ///< Why not paired; empty when paired.
};

struct Comparison {
  const ResultFile* base = nullptr;
  const ResultFile* changed = nullptr;
  std::vector<VariantPair> pairs;
  std::vector<std::string> missing;  ///< Variants of the base that the new result has not.
  std::string stage;                 ///< What tables and gates are about; empty = the whole run.
  std::vector<Judgement> gates;
};

/// The choices of the command line.
struct ComparisonRequest {
  std::vector<std::string> variants;  ///< None, one for both sides, or one for each.
  std::string stage;
  std::vector<Gate> gates;
};

/// Pairs variants by name (or the only ones of both files) and judges the gates; those of a variant
/// that is missing in the new result are undecided, unless the user chose variants. Errors: no
/// common variant, an unknown variant or stage, a gate on a metric that a file does not list.
Comparison compare_results(const ResultFile& base, const ResultFile& changed,
                           const ComparisonRequest& request, Diagnostics& diagnostics);

/// A reader must know these before the numbers, a line each: partial results, overload, how far to
/// trust the sides.
std::vector<std::string> remarks_of(const Comparison& c);

}  // namespace routesim::tools
