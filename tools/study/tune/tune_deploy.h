// A tuning names what to deploy: the document, the flags, and the command that repeats it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/study/tune/tune_judge.h"

namespace routesim::tools {

// A YAML document with some of its values changed and everything else, comments included, as it
// was.

/// The value at the end of a key path, or null. An element of a list is chosen by its index, or by
/// its `name`, `pluginRef` or `type`.
ConfigNode::Ptr node_at(const ConfigNode::Ptr& root, std::span<const PathStep> steps);

/// A tree on one line, in flow style.
std::string flow_text(const ConfigNode& node);

/// `root` with the assignments made, as text. `text` is where `root` was read from; its lines are
/// kept where they can be. Otherwise (anchors, a map without a block or flow style of its own) the
/// document is written anew, without comments; then `kept` is false.
struct ChangedDocument {
  std::string text = {};
  ConfigNode::Ptr root = {};
  bool kept = true;
};
ChangedDocument change_document(const ConfigNode::Ptr& root, const std::string& text,
                                std::span<const Assignment> assignments);

/// Everything that is known at the end.
struct TuneReport {
  const TuneSpace& space;
  const TuneSearchResult& search;
  const TuneJudgement& judgement;
  std::string document_path = {};  ///< Of the file that -o epp writes; empty when none is written.
  /// The router's document to deploy: the published text with the changed values in their places.
  /// Nothing when the variant has no document. Filled by deploy().
  std::optional<ChangedDocument> document = {};
};

/// The judged candidate.
const TuneCandidate& best_of(const TuneReport& report);

/// Whether the best configuration is the one to deploy; otherwise that is the published one.
bool deploys_best(const TuneReport& report);

/// Makes the document to deploy.
void deploy(TuneReport& report);

/// The changed flags of the engines as `vllm serve` takes them, a line for each pool, and changes
/// that are no flags as comments; empty when none changed.
std::string deployed_flags(const TuneReport& report);

/// How `routesim run` repeats the judged candidate on the fresh seeds.
struct RepeatCommand {
  std::vector<std::string> sets = {};  ///< The words after `--set`, those of every run first.
  std::string text = {};  ///< The whole line; empty when there is no candidate worth repeating, or
                          ///< it would need a document that is not the one to deploy.
  std::string document = {};  ///< The file with the document to deploy that the line reads, if any.
};
RepeatCommand repeat_command(const TuneReport& report);

}  // namespace routesim::tools
