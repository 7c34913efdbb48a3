// A tuning as text, JSON and CSV, and the files to deploy.
#pragma once

#include <string>
#include <vector>

#include "tools/study/tune/changed_document.h"
#include "tools/study/tune/tune_judge.h"

namespace routesim::tools {

/// Everything that is known at the end.
struct TuneReport {
  const TuneSpace& space;
  const TuneSearchResult& search;
  const TuneJudgement& judgement;
  std::string document_path = "tuned.yaml";  ///< Of the file that -o epp writes.
  /// The router's document to deploy: the published text with the changed values in their places.
  /// Nothing when the variant has no document. Filled by deploy().
  std::optional<ChangedDocument> document = {};
};

/// Whether the best configuration is the one to deploy; otherwise that is the published one.
bool deploys_best(const TuneReport& report);

/// Makes the document to deploy.
void deploy(TuneReport& report);

/// The changed flags of the engines as `vllm serve` takes them, a line for each pool, and changes
/// that are no flags as comments; empty when none changed.
std::string deployed_flags(const TuneReport& report);

/// The words after `--set` that make the judged candidate from the scenario; nothing when it is not
/// better, or when they would need a document that is not the one to deploy.
std::vector<std::string> best_sets(const TuneReport& report);

/// The verdict, the judged numbers, the knobs and the race.
std::string render_tune_text(const TuneReport& report);
/// The same as one JSON object, with every candidate and the files to deploy.
std::string render_tune_json(const TuneReport& report);
/// One row for each candidate.
std::string render_tune_csv(const TuneReport& report);

}  // namespace routesim::tools
