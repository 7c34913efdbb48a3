#include "tools/study/tune/tune_deploy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "base/text.h"
#include "tools/ingest/servers/vllm_serve_flags.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/results/report.h"
#include "tools/study/compare/result_file.h"

namespace routesim::tools {

namespace {

using Ptr = ConfigNode::Ptr;

Ptr element_of(const ConfigNode& list, const PathStep& step) {
  if (step.index) return *step.index < list.items().size() ? list.items()[*step.index] : nullptr;
  for (const std::string_view key : {"name", "pluginRef", "type"})
    for (const Ptr& item : list.items()) {
      const ConfigNode* const name = item->is_map() ? item->child(key) : nullptr;
      if (name != nullptr && name->text() == step.key) return item;
    }
  return nullptr;
}

/// Replacements of pieces of a text, each found at a line and a column.
class TextEdits {
 public:
  explicit TextEdits(const std::string& text) : text_(text) {
    starts_.push_back(0);
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n') starts_.push_back(i + 1);
  }

  /// False when the change cannot be made as an edit.
  bool assign(const Ptr& root, const Assignment& assignment) {
    const std::span<const PathStep> steps = assignment.steps;
    if (const Ptr old = node_at(root, steps)) return replace(*old, *assignment.value);
    // The deepest map that is there gets the key, and below it the maps that are not.
    for (std::size_t depth = steps.size(); depth-- > 0;) {
      if (steps[depth].in_brackets) return false;
      const Ptr parent = node_at(root, steps.first(depth));
      if (parent == nullptr) continue;
      if (!parent->is_map() || parent->members().empty()) return false;
      std::string value = flow_text(*assignment.value);
      for (std::size_t i = steps.size(); i-- > depth + 1;) {
        if (steps[i].in_brackets) return false;
        value = "{" + steps[i].key + ": " + value + "}";
      }
      return insert(*parent, steps[depth].key + ": " + value);
    }
    return false;
  }

  std::string result() const {
    std::string out = text_;
    for (auto edit = edits_.rbegin(); edit != edits_.rend(); ++edit)
      out.replace(edit->first, edit->second.first, edit->second.second);
    return out;
  }

 private:
  std::optional<std::size_t> offset(const SourceLocation& where) const {
    if (where.line < 1 || static_cast<std::size_t>(where.line) > starts_.size()) return {};
    const std::size_t at = starts_[static_cast<std::size_t>(where.line) - 1] +
                           static_cast<std::size_t>(where.column) - 1;
    return at < text_.size() ? std::optional(at) : std::nullopt;
  }

  /// Bytes of a scalar as it is written: plain text, or text between quotes without escapes.
  std::optional<std::size_t> length(const ConfigNode& scalar, std::size_t at) const {
    const bool quoted = text_[at] == '"' || text_[at] == '\'';
    const std::size_t begin = at + (quoted ? 1 : 0);
    if (!scalar.is_scalar() || text_.compare(begin, scalar.text().size(), scalar.text()) != 0)
      return std::nullopt;
    return scalar.text().size() + (quoted ? 2 : 0);
  }

  bool replace(const ConfigNode& old, const ConfigNode& value) {
    const std::optional<std::size_t> at = offset(old.where());
    const std::optional<std::size_t> size = at ? length(old, *at) : std::nullopt;
    return size && edits_.try_emplace(*at, *size, flow_text(value)).second;
  }

  /// Puts the entry behind the first key of the map, where that has a scalar, else before it.
  bool insert(const ConfigNode& map, const std::string& entry) {
    const ConfigNode::Member& first = map.members().front();
    const std::optional<std::size_t> key = offset(first.key_where);
    const std::optional<std::size_t> open = offset(map.where());
    if (!key || !open) return false;
    if (text_[*open] == '{') return edits_.try_emplace(*key, 0, entry + ", ").second;
    const std::string indent(static_cast<std::size_t>(first.key_where.column) - 1, ' ');
    if (!first.value->is_scalar() || first.value->where().line != first.key_where.line)
      return edits_.try_emplace(*key, 0, entry + "\n" + indent).second;
    const std::size_t end = std::min(text_.find('\n', *key), text_.size());
    const auto [it, is_new] = edits_.try_emplace(end, 0, "\n" + indent + entry);
    if (!is_new) it->second.second += "\n" + indent + entry;
    return true;
  }

  const std::string& text_;
  std::vector<std::size_t> starts_;  ///< Of the lines.
  std::map<std::size_t, std::pair<std::size_t, std::string>> edits_;
};

/// The map at this place of a text; an inner one before the one that holds it.
Ptr map_at(const Ptr& node, const SourceLocation& where) {
  for (const Ptr& item : node->items())
    if (const Ptr found = map_at(item, where)) return found;
  for (const ConfigNode::Member& m : node->members())
    if (const Ptr found = map_at(m.value, where)) return found;
  const SourceLocation& here = node->where();
  const bool is_here = here.line == where.line && here.column == where.column;
  return node->is_map() && is_here ? node : nullptr;
}

}  // namespace

std::string flow_text(const ConfigNode& node) {
  std::string out;
  if (node.is_null()) return "null";
  if (node.is_scalar()) {
    std::string text = to_yaml(node);
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }
  for (const Ptr& item : node.items()) out += (out.empty() ? "" : ", ") + flow_text(*item);
  for (const ConfigNode::Member& m : node.members())
    out += (out.empty() ? "" : ", ") + m.key + ": " + flow_text(*m.value);
  return node.is_map() ? "{" + out + "}" : "[" + out + "]";
}

Ptr node_at(const Ptr& root, std::span<const PathStep> steps) {
  Ptr node = root;
  for (const PathStep& step : steps) {
    if (node == nullptr) return nullptr;
    if (step.in_brackets) {
      node = node->is_sequence() ? element_of(*node, step) : nullptr;
      continue;
    }
    const ConfigNode::Member* const member = node->is_map() ? node->find(step.key) : nullptr;
    node = member != nullptr ? member->value : nullptr;
  }
  return node;
}

ChangedDocument change_document(const Ptr& root, const std::string& text,
                                std::span<const Assignment> assignments) {
  ChangedDocument changed{.text = text, .root = root};
  Diagnostics ignored;
  for (const Assignment& assignment : assignments)
    changed.root = apply_assignment(changed.root, assignment, ignored);
  TextEdits edits(text);
  changed.kept = !text.empty() && std::ranges::all_of(assignments, [&](const Assignment& a) {
    return edits.assign(root, a);
  });
  if (changed.kept) changed.text = edits.result();
  // A text that could not be edited, or was edited into something else, is written anew.
  const Ptr read = changed.kept ? parse_config(changed.text, {.file = "tuned"}, ignored) : nullptr;
  const Ptr again = read != nullptr ? map_at(read, root->where()) : nullptr;
  if (again != nullptr && same_content(*again, *changed.root)) return changed;
  changed.kept = false;
  changed.text = to_yaml(*changed.root);
  return changed;
}

const TuneCandidate& best_of(const TuneReport& report) {
  return report.search.candidates[report.judgement.candidate];
}

namespace {

std::string assigned_text(const Assignment& a) {
  return a.value->is_scalar() ? a.value->text() : flow_text(*a.value);
}

/// The word after `--set`. A file that the tune file names is named from the working folder.
std::string set_text(const Assignment& a) {
  if (!a.value->is_scalar()) return a.path + "=" + assigned_text(a);
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
  if (a.steps[3].key == "replicas") return "# " + assigned_text(a) + " replicas";
  std::string key;
  for (std::size_t i = 3; i < a.steps.size(); ++i) key += (i > 3 ? "." : "") + a.steps[i].key;
  for (const FlagRule& rule : all_flags(engine))
    if (rule.key == key)
      if (std::string flag = flag_text(rule, assigned_text(a)); !flag.empty()) return flag;
  return "# no flag: " + a.path + "=" + assigned_text(a);
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
      command.sets.push_back(a.path + "=" + assigned_text(a));
  }
  command.text = "routesim run " + shell_word(space.scenario_path) + " --variant " +
                 shell_word(space.config.variant);
  for (const std::string& set : command.sets) command.text += " --set " + shell_word(set);
  command.text += fmt::format(" --seed {} --replications {}", report.judgement.seeds.front(),
                              report.judgement.seeds.size());
  return command;
}

}  // namespace routesim::tools
