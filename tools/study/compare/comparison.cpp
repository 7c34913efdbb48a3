#include "tools/study/compare/comparison.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

std::string listed_variants(const ResultFile& file) {
  return comma_list(file.set.variants, [](const VariantValues& v) { return printable(v.name); });
}

std::string stages_of(const VariantValues& variant) {
  std::string list;
  for (const StageValues& stage : variant.stages)
    if (!stage.stage.empty()) list += (list.empty() ? "" : ", ") + printable(stage.stage);
  return list;
}

const VariantValues* chosen(const ResultFile& file, const std::string& name,
                            Diagnostics& diagnostics) {
  const VariantValues* const found = file.set.find_variant(name);
  if (found == nullptr)
    diagnostics.error({.file = file.path}, "", "has no variant " + in_quotes(name),
                      "variants: " + listed_variants(file));
  return found;
}

/// Equal workloads and equal seeds mean equal requests.
const ConfigNode* workload_in(const ResultFile& file, const VariantValues& variant) {
  const ConfigNode* const resolved = file.resolved_of(variant);
  const ConfigNode::Member* const workload =
      resolved != nullptr && resolved->is_map() ? resolved->find("workload") : nullptr;
  return workload != nullptr ? workload->value.get() : nullptr;
}

/// Same seeds and, where both files tell, the same workload.
void decide_pairing(const ResultFile& base, const ResultFile& changed, VariantPair& pair) {
  const auto seeds_of = [](const ResultFile& file, const VariantValues& v) {
    return v.seeds.empty() ? file.set.seeds : v.seeds;
  };
  if (seeds_of(base, *pair.base) != seeds_of(changed, *pair.changed)) {
    pair.paired = false;
    pair.note = "the seeds differ, so the difference is one of independent runs";
    return;
  }
  const ConfigNode* const a = workload_in(base, *pair.base);
  const ConfigNode* const b = workload_in(changed, *pair.changed);
  if (a == nullptr || b == nullptr || same_content(*a, *b)) return;
  pair.paired = false;
  pair.note = "the workloads differ, so the difference is one of independent runs";
}

std::vector<VariantPair> find_pairs(const ResultFile& base, const ResultFile& changed,
                                    const ComparisonRequest& request, Diagnostics& diagnostics) {
  std::vector<VariantPair> pairs;
  if (!request.variants.empty()) {
    const VariantValues* const a = chosen(base, request.variants.front(), diagnostics);
    const VariantValues* const b = chosen(changed, request.variants.back(), diagnostics);
    if (a != nullptr && b != nullptr) pairs.push_back({.base = a, .changed = b});
  } else if (base.set.variants.size() == 1 && changed.set.variants.size() == 1) {
    pairs.push_back({.base = &base.set.variants.front(), .changed = &changed.set.variants.front()});
  } else {
    for (const VariantValues& a : base.set.variants)
      if (const VariantValues* const b = changed.set.find_variant(a.name))
        pairs.push_back({.base = &a, .changed = b});
    if (pairs.empty())
      diagnostics.error({.file = changed.path}, "",
                        "has no variant in common with " + printable(base.path, 200) + " (" +
                            listed_variants(base) + " against " + listed_variants(changed) + ")",
                        "give --variant twice: the one of BASE, then the one of NEW");
  }
  for (VariantPair& pair : pairs) decide_pairing(base, changed, pair);
  return pairs;
}

/// Variants of the base without a partner, where all of them are compared.
std::vector<std::string> find_missing(const ResultFile& base, const std::vector<VariantPair>& pairs,
                                      const ComparisonRequest& request) {
  std::vector<std::string> missing;
  if (!request.variants.empty()) return missing;
  for (const VariantValues& v : base.set.variants) {
    const auto is_its = [&v](const VariantPair& pair) { return pair.base == &v; };
    if (std::ranges::none_of(pairs, is_its)) missing.push_back(v.name);
  }
  return missing;
}

/// A gate about a variant that was renamed or left out: nobody can say that it did not get worse.
Judgement judge_missing(const Comparison& c, const std::string& variant, const Gate& gate) {
  return {.what = "not " + gate.text,
          .scope = variant + (c.stage.empty() ? "" : ", stage " + c.stage),
          .decision = Decision::kUndecided,
          .detail = "NEW has no variant " + variant + " (--variant chooses others)"};
}

/// How to get results that have the metric.
std::string hint_for(const MetricName& m) {
  if (std::string owners = owners_of(m); !owners.empty()) return owners;
  if (needs_goals(m)) return "set goodput: [ttft:500ms] in the scenario, or run with --goodput";
  return "run with --replications 2 or more, and with an expect about " + m.text +
         ": replicated results list what it is about";
}

Judgement judge_pair(const Comparison& c, const VariantPair& pair, const Gate& gate) {
  std::string scope = pair.base->name;
  if (pair.base->name != pair.changed->name) scope += " to " + pair.changed->name;
  if (!c.stage.empty()) scope += ", stage " + c.stage;
  Judgement j{.what = "not " + gate.text,
              .scope = scope,
              .decision = Decision::kUndecided,
              .detail = "no such number in the results"};
  const StageValues* const a = find_stage(*pair.base, c.stage);
  const StageValues* const b = find_stage(*pair.changed, c.stage);
  if (a == nullptr || b == nullptr) return j;
  const auto x = c.base->set.values(*a, gate.metric);
  const auto y = c.changed->set.values(*b, gate.metric);
  if (!x || !y) {
    j.detail = x ? "NEW has " + c.changed->set.no_values(*b, gate.metric)
                 : "BASE has " + c.base->set.no_values(*a, gate.metric);
    return j;
  }
  const Difference d = difference_of(*x, *y, gate.metric, pair.paired);
  j.decision = judge_gate(gate, *x, *y, pair.paired);
  j.detail = estimate_text(d.base) + " to " + estimate_text(d.changed);
  if (d.percent) j.detail += ", " + percent_text(d) + " %";
  for (const VariantValues* variant : {pair.base, pair.changed}) {
    const std::string pooled = pooled_overload(*variant, c.stage);
    if (pooled.empty() || is_of_run(gate.metric)) continue;
    j.decision = Decision::kUndecided;
    j.detail +=
        std::string("; ") + (variant == pair.base ? "BASE: " : "NEW: ") + pooled + ": give --stage";
  }
  for (const ResultFile* file : {c.base, c.changed}) {
    if (!file->interrupted) continue;
    j.decision = Decision::kUndecided;
    j.detail += file == c.base ? "; BASE was interrupted" : "; NEW was interrupted";
  }
  return j;
}

}  // namespace

Comparison compare_results(const ResultFile& base, const ResultFile& changed,
                           const ComparisonRequest& request, Diagnostics& diagnostics) {
  Comparison c{.base = &base,
               .changed = &changed,
               .pairs = find_pairs(base, changed, request, diagnostics),
               .stage = request.stage};
  for (const ResultFile* file : {&base, &changed})
    for (const VariantPair& pair : c.pairs) {
      const VariantValues& variant = file == &base ? *pair.base : *pair.changed;
      if (find_stage(variant, c.stage) != nullptr) continue;
      diagnostics.error({.file = file->path}, "", "has no stage " + in_quotes(c.stage),
                        "stages: " + stages_of(variant));
      break;  // The variants of a file nearly always have the same stages.
    }
  for (const Gate& gate : request.gates)
    for (const ResultFile* file : {&base, &changed})
      if (!file->set.can_tell(gate.metric))
        diagnostics.error({.file = file->path}, "",
                          "has no " + gate.metric.text + " of every seed, which --fail-if " +
                              printable(gate.text) + " needs",
                          hint_for(gate.metric));
  if (diagnostics.has_errors()) return c;
  c.missing = find_missing(base, c.pairs, request);
  for (const VariantPair& pair : c.pairs)
    for (const Gate& gate : request.gates) c.gates.push_back(judge_pair(c, pair, gate));
  for (const std::string& variant : c.missing)
    for (const Gate& gate : request.gates) c.gates.push_back(judge_missing(c, variant, gate));
  return c;
}

namespace {

using Scalars = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kFiles = "files";

/// The name of an item that no other item of the list has; empty without one.
std::string own_name(const ConfigNode& list, const ConfigNode& item) {
  for (const char* key : {"pluginRef", "name", "type", "kind"}) {
    const auto name_of = [key](const ConfigNode& node) {
      const ConfigNode* const name = node.is_map() ? node.child(key) : nullptr;
      return name != nullptr && name->is_scalar() ? name->text() : std::string();
    };
    const std::string name = name_of(item);
    if (name.empty()) continue;
    const auto has_it = [&](const ConfigNode::Ptr& other) { return name_of(*other) == name; };
    if (std::ranges::count_if(list.items(), has_it) == 1) return name;
  }
  return {};
}

/// The YAML that a text of several lines holds, as Helm values do with a router's document.
ConfigNode::Ptr embedded(const std::string& text) {
  if (text.find('\n') == std::string::npos) return nullptr;
  Diagnostics unsaid;
  const ConfigNode::Ptr root = parse_manifest(text, {}, unsaid);
  return root != nullptr && !unsaid.has_errors() && root->is_map() ? root : nullptr;
}

/// Adds every scalar with its path. Items of a document's lists are called by their names, so that
/// one more of them shifts no others.
void flatten(const ConfigNode& node, const std::string& path, bool in_document, Scalars& out) {
  if (node.is_map()) {
    for (const ConfigNode::Member& m : node.members())
      flatten(*m.value, path.empty() ? m.key : child_path(path, m.key), in_document, out);
  } else if (node.is_sequence()) {
    for (std::size_t i = 0; i < node.items().size(); ++i) {
      const std::string name = in_document ? own_name(node, *node.items()[i]) : "";
      flatten(*node.items()[i], name.empty() ? element_path(path, i) : path + "[" + name + "]",
              in_document, out);
    }
  } else if (const ConfigNode::Ptr inside = in_document ? embedded(node.text()) : nullptr) {
    flatten(*inside, path, in_document, out);
  } else {
    out.emplace_back(path, node.is_null() ? "null" : node.text());
  }
}

bool is_inside(std::string_view path, std::string_view key) {
  return path.starts_with(key) &&
         (path.size() == key.size() || path[key.size()] == '.' || path[key.size()] == '[');
}

/// One variant of a result, taken apart.
struct Side {
  std::map<std::string, const ConfigNode*> files;  ///< Contents by the key that names the file.
  Scalars values;                                  ///< Of the scenario itself.
  std::set<std::string> documents;                 ///< Keys where a whole document stands.

  const std::string* value(std::string_view path) const {
    const auto found = std::ranges::find(values, path, &Scalars::value_type::first);
    return found == values.end() ? nullptr : &found->second;
  }
};

/// Keys that may hold a document or the name of its file.
constexpr std::array<std::string_view, 2> kDocuments = {"routing.endpoint_picker",
                                                        "workload.inference_perf"};

Side config_side(const ConfigNode& resolved) {
  Side side;
  for (const ConfigNode::Member& m : resolved.members()) {
    if (m.key == kFiles && m.value->is_map()) {
      for (const ConfigNode::Member& file : m.value->members())
        side.files[file.key] = file.value.get();
      continue;
    }
    if (!m.value->is_map()) {
      flatten(*m.value, m.key, false, side.values);
      continue;
    }
    for (const ConfigNode::Member& part : m.value->members()) {
      const std::string path = child_path(m.key, part.key);
      const bool is_document = std::ranges::find(kDocuments, path) != kDocuments.end();
      if (is_document && part.value->is_map()) side.documents.insert(path);
      flatten(*part.value, path, is_document, side.values);
    }
  }
  return side;
}

/// Whether the side names a file at this key whose contents it does not hold.
bool lacks_contents(const Side& side, const std::string& key) {
  const std::string* const name = side.value(key);
  return !side.files.contains(key) && !side.documents.contains(key) && name != nullptr &&
         is_config_name(*name);
}

/// The scalars of a side with the contents of those files that the other side has contents of too.
/// Where only one has a document at all, the name of its file says so.
Scalars scalars_of(const Side& side, const Side& other) {
  Scalars out;
  std::set<std::string> inserted;
  const auto insert = [&](const std::string& key) {
    const auto file = side.files.find(key);
    const bool both = other.files.contains(key) || other.documents.contains(key);
    if (file == side.files.end() || !both || !inserted.insert(key).second) return;
    const auto of = other.files.find(key);
    const bool hashed = file->second->is_scalar();
    if (hashed || (of != other.files.end() && of->second->is_scalar()))
      out.emplace_back(key + " (contents)", hashed ? file->second->text() : "a document");
    else
      flatten(*file->second, key, true, out);
  };
  for (const auto& [path, value] : side.values) {
    out.emplace_back(path, value);
    insert(path);
  }
  for (const auto& [key, contents] : side.files) insert(key);
  return out;
}

/// Texts of several lines as the first lines that differ.
void shorten_texts(Change& change) {
  if (!change.base || !change.changed || change.base->find('\n') == std::string::npos ||
      change.changed->find('\n') == std::string::npos)
    return;
  std::size_t from = 0;
  std::string_view a = *change.base;
  std::string_view b = *change.changed;
  for (int line = 1;; ++line) {
    const std::string_view x = a.substr(from, a.find('\n', from) - from);
    const std::string_view y = b.substr(from, b.find('\n', from) - from);
    const std::size_t next = from + x.size() + 1;
    if (x != y || next > a.size() || next > b.size()) {
      change.path += " (line " + std::to_string(line) + ")";
      change.base = std::string(x);
      change.changed = std::string(y);
      return;
    }
    from = next;
  }
}

void add(Change change, const std::string& variant, std::vector<Change>& changes) {
  shorten_texts(change);
  const auto same = std::ranges::find_if(changes, [&](const Change& c) {
    return c.path == change.path && c.base == change.base && c.changed == change.changed;
  });
  if (same != changes.end()) {
    same->variants.push_back(variant);
    return;
  }
  change.variants = {variant};
  changes.push_back(std::move(change));
}

void compare_sides(const Side& a, const Side& b, const std::string& variant,
                   std::vector<Change>& changes) {
  const Scalars before = scalars_of(a, b);
  const Scalars after = scalars_of(b, a);
  std::map<std::string, std::string> left(after.begin(), after.end());
  for (const auto& [path, value] : before) {
    const auto other = left.find(path);
    if (other == left.end())
      add({.path = path, .base = value}, variant, changes);
    else if (other->second != value)
      add({.path = path, .base = value, .changed = other->second}, variant, changes);
    if (other != left.end()) left.erase(other);
  }
  for (const auto& [path, value] : after)
    if (left.contains(path)) add({.path = path, .changed = value}, variant, changes);
}

}  // namespace

std::vector<Change> changes_of(const Comparison& c) {
  std::vector<Change> changes;
  if (c.base->set.version != c.changed->set.version)
    changes.push_back(
        {.path = "version", .base = c.base->set.version, .changed = c.changed->set.version});
  if (c.base->commit != c.changed->commit)
    changes.push_back({.path = "commit", .base = c.base->commit, .changed = c.changed->commit});
  for (const VariantPair& pair : c.pairs) {
    const ConfigNode* const a = c.base->resolved_of(*pair.base);
    const ConfigNode* const b = c.changed->resolved_of(*pair.changed);
    if (a != nullptr && b != nullptr)
      compare_sides(config_side(*a), config_side(*b), pair.base->name, changes);
  }
  return changes;
}

std::vector<std::string> untold_of(const Comparison& c) {
  std::vector<std::string> untold;
  const auto say = [&](std::string text) {
    if (std::ranges::find(untold, text) == untold.end()) untold.push_back(std::move(text));
  };
  for (const VariantPair& pair : c.pairs) {
    const std::array<std::pair<const ResultFile*, const VariantValues*>, 2> sides = {
        {{c.base, pair.base}, {c.changed, pair.changed}}};
    bool whole = true;
    for (const auto& [file, variant] : sides) {
      if (file->resolved_of(*variant) != nullptr) continue;
      whole = false;
      say("no key can be told to have changed: " + printable(file->path, 200) +
          " does not hold its resolved scenario");
    }
    if (!whole) continue;
    for (const auto& [file, variant] : sides) {
      const Side side = config_side(*file->resolved_of(*variant));
      for (const auto& [path, value] : side.values) {
        const bool names_a_file =
            std::ranges::find(kDocuments, path) != kDocuments.end() || is_inside(path, "catalogue");
        if (names_a_file && lacks_contents(side, path))
          say(printable(path, 200) + " may have changed: " + printable(file->path, 200) +
              " does not hold the contents of " + printable(value, 200));
      }
    }
  }
  return untold;
}

std::string change_text(const Change& change) {
  return change.base.value_or("nothing") + " became " + change.changed.value_or("nothing");
}

namespace {

/// The basis of the compared variants' results, each sentence once with the variants it is true of.
std::vector<std::string> trust_sentences(const Comparison& c) {
  SaidOf said;
  const auto add = [&](const std::string& who, const std::string& text) {
    if (!text.empty()) entry_of(said, text).push_back(who);
  };
  for (const VariantPair& pair : c.pairs) {
    add("base " + printable(pair.base->name), pair.base->trust);
    add("new " + printable(pair.changed->name), pair.changed->trust);
  }
  const bool everything =
      c.pairs.size() > 1 && !said.empty() && std::ranges::all_of(c.pairs, [&](const auto& pair) {
        return pair.base->trust == said.front().first && pair.changed->trust == said.front().first;
      });
  std::vector<std::string> lines;
  for (const auto& [text, who] : said)
    lines.push_back((everything ? "everything" : comma_list(who, std::identity())) + ": " +
                    printable(text, 500));
  return lines;
}

}  // namespace

std::vector<std::string> remarks_of(const Comparison& c) {
  std::vector<std::string> remarks;
  if (c.base->interrupted)
    remarks.emplace_back("the base was interrupted, its numbers are partial");
  if (c.changed->interrupted)
    remarks.emplace_back("the new result was interrupted, its numbers are partial");
  for (const std::string& name : c.missing)
    remarks.push_back("variant " + printable(name) + " of the base is not in the new result");
  const auto add = [&](const char* side, const VariantValues& v) {
    if (const std::string pooled = pooled_overload(v, c.stage); !pooled.empty())
      remarks.push_back(std::string(side) + ": " + printable(pooled, 300) +
                        ", so it is not judged; --stage compares one");
    const StageValues* const stage = find_stage(v, c.stage);
    if (stage != nullptr && stage->overloaded && pooled_overload(v, c.stage).empty())
      remarks.push_back(std::string(side) + ": " + printable(v.name) +
                        " is overloaded: its latencies depend on how long the stage lasts");
  };
  for (const VariantPair& pair : c.pairs) {
    add("base", *pair.base);
    add("new", *pair.changed);
  }
  for (std::string& trust : trust_sentences(c)) remarks.push_back(std::move(trust));
  return remarks;
}

}  // namespace routesim::tools
