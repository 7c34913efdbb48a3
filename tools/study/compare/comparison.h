// Two results side by side: which variants belong together, how they differ, and the gates.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/study/compare/expectation.h"
#include "tools/study/compare/result_file.h"

namespace routesim::tools {

/// One variant of the base beside one of the new result.
struct VariantPair {
  const VariantValues* base = nullptr;
  const VariantValues* changed = nullptr;
  bool paired = true;     ///< The same requests on both sides: differences are taken seed by seed.
  std::string note = {};  ///< Why not paired; empty when paired.
};

struct Comparison {
  const ResultFile* base = nullptr;
  const ResultFile* changed = nullptr;
  std::vector<VariantPair> pairs;
  std::vector<std::string> missing = {};  ///< Variants of the base that the new result has not.
  std::string stage;  ///< What tables and gates are about; empty = the whole run.
  std::vector<Judgement> gates = {};
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

// In what the resolved scenarios of two results differ, and the versions that made them.

/// One key with its values on both sides; nothing where a side does not have it.
struct Change {
  /// As `--set` takes it, `cluster.pools[0].replicas`, inside documents too; or `version` or
  /// `commit` of the routesim that made the result.
  std::string path;
  std::optional<std::string> base = {}, changed = {};
  /// Names in the base of the pairs that differ in it so; none where it is about the whole result.
  std::vector<std::string> variants = {};
};

/// Versions, then keys by pair in the order of the base, then those that only the new result has;
/// equal changes of several pairs are one. What a file does not say differs in nothing: see
/// untold_of(). A document is compared inside, whether it stands in the scenario or in a file.
std::vector<Change> changes_of(const Comparison& c);

/// What cannot be told to have changed, a sentence each: a result that does not hold its resolved
/// scenario, or not the contents of a file that it names.
std::vector<std::string> untold_of(const Comparison& c);

/// `3 became 0.1`.
std::string change_text(const Change& change);

}  // namespace routesim::tools
