#include "tools/study/tune/tune_deploy.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/text.h"
#include "tools/ingest/servers/vllm_serve_flags.h"
#include "tools/results/report.h"

namespace routesim::tools {

const TuneCandidate& best_of(const TuneReport& report) {
  return report.search.candidates[report.judgement.candidate];
}

namespace {

std::string value_text(const Assignment& a) {
  return a.value->is_scalar() ? a.value->text() : flow_text(*a.value);
}

/// The word after `--set`. A file that the tune file names is named from the working folder.
std::string set_text(const Assignment& a) {
  if (!a.value->is_scalar()) return a.path + "=" + value_text(a);
  const std::string path = resolve_path(a.value->text(), a.where);
  return a.path + "=" + (std::filesystem::is_regular_file(path) ? path : a.value->text());
}

bool is_in_document(const Assignment& a) {
  return a.steps.size() > 2 && a.steps[0].key == "routing" && a.steps[1].key == "endpoint_picker";
}

/// The assignments of the configuration to deploy.
std::vector<Assignment> deployed(const TuneReport& report) {
  return deploys_best(report) ? report.space.assignments(best_of(report).choice)
                              : std::vector<Assignment>{};
}

/// `--max-num-seqs 256` for `cluster.pools[vllm].engine.max_num_seqs=256`; a comment for a key that
/// is no flag.
std::string flag_of(const Assignment& a, sim::EngineKind engine) {
  if (a.steps[3].key == "replicas") return "# " + value_text(a) + " replicas";
  std::string key;
  for (std::size_t i = 3; i < a.steps.size(); ++i) key += (i > 3 ? "." : "") + a.steps[i].key;
  for (const FlagRule& rule : all_flags(engine))
    if (rule.key == key)
      if (std::string flag = flag_text(rule, value_text(a)); !flag.empty()) return flag;
  return "# no flag: " + a.path + "=" + value_text(a);
}

}  // namespace

bool deploys_best(const TuneReport& report) {
  return report.judgement.decision == TuneDecision::kBetter ||
         report.judgement.decision == TuneDecision::kFragile;
}

void deploy(TuneReport& report) {
  const std::optional<TunedPicker>& picker = report.space.picker;
  if (!picker) return;
  std::vector<Assignment> inside;
  for (Assignment& a : deployed(report)) {
    if (!is_in_document(a)) continue;
    a.steps.erase(a.steps.begin(), a.steps.begin() + 2);
    inside.push_back(std::move(a));
  }
  report.document = change_document(picker->root, picker->text, inside);
}

std::string deployed_flags(const TuneReport& report) {
  struct Lines {
    std::string comments, flags;
  };
  std::map<std::string, Lines> pools;
  for (const Assignment& a : deployed(report)) {
    if (a.steps.size() < 4 || a.steps[0].key != "cluster" || a.steps[1].key != "pools") continue;
    const PathStep& selector = a.steps[2];
    const std::string pool = selector.index ? std::to_string(*selector.index) : selector.key;
    const auto engine = report.space.engines.find(pool);
    const bool known = engine != report.space.engines.end();
    const std::string flag = flag_of(a, known ? engine->second : sim::EngineKind::kVllm);
    Lines& lines = pools[a.steps[2].key];
    if (flag.front() == '#')
      lines.comments += flag + "\n";
    else
      lines.flags += (lines.flags.empty() ? "" : " ") + flag;
  }
  std::string text;
  for (const auto& [pool, lines] : pools)
    text += (pools.size() > 1 ? "# pool " + printable(pool) + "\n" : "") + lines.comments +
            lines.flags + (lines.flags.empty() ? "" : "\n");
  return text;
}

RepeatCommand repeat_command(const TuneReport& report) {
  const TuneSpace& space = report.space;
  const TuneDecision decision = report.judgement.decision;
  RepeatCommand command;
  if (report.judgement.candidate == 0 || decision == TuneDecision::kNothing ||
      decision == TuneDecision::kUnmet)
    return command;
  const bool whole = space.picker && !space.picker->is_bare;
  std::vector<Assignment> all = space.base;
  for (Assignment& a : space.assignments(best_of(report).choice)) all.push_back(std::move(a));
  // The document of such a file has no key path: the file that -o epp writes takes its place.
  const bool in_document = whole && std::ranges::any_of(all, is_in_document);
  if (in_document && !deploys_best(report)) return command;
  for (const Assignment& a : all)
    if (!whole || !is_in_document(a)) command.sets.push_back(set_text(a));
  if (in_document) {
    command.document = report.document_path.empty() ? "tuned.yaml" : report.document_path;
    command.sets.push_back(std::string(kPickerPath) + "=" + command.document);
    for (const Assignment& a : space.picker->settings)
      command.sets.push_back(a.path + "=" + value_text(a));
  }
  command.text = "routesim run " + shell_word(space.scenario_path) + " --variant " +
                 shell_word(space.config.variant);
  for (const std::string& set : command.sets) command.text += " --set " + shell_word(set);
  command.text += fmt::format(" --seed {} --replications {}", report.judgement.seeds.front(),
                              report.judgement.seeds.size());
  return command;
}

}  // namespace routesim::tools
