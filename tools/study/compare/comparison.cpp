#include "tools/study/compare/comparison.h"

#include <algorithm>

#include "base/text.h"

namespace routesim::tools {

namespace {

std::string listed(const ResultFile& file) {
  std::string list;
  for (const VariantValues& v : file.set.variants)
    list += (list.empty() ? "" : ", ") + printable(v.name);
  return list;
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
                      "variants: " + listed(file));
  return found;
}

/// Equal workloads and equal seeds mean equal requests.
const ConfigNode* workload_of(const ResultFile& file, const VariantValues& variant) {
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
  const ConfigNode* const a = workload_of(base, *pair.base);
  const ConfigNode* const b = workload_of(changed, *pair.changed);
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
    if (a != nullptr && b != nullptr) pairs.push_back({.base = a, .changed = b, .note = {}});
  } else if (base.set.variants.size() == 1 && changed.set.variants.size() == 1) {
    pairs.push_back(
        {.base = &base.set.variants.front(), .changed = &changed.set.variants.front(), .note = {}});
  } else {
    for (const VariantValues& a : base.set.variants)
      if (const VariantValues* const b = changed.set.find_variant(a.name))
        pairs.push_back({.base = &a, .changed = b, .note = {}});
    if (pairs.empty())
      diagnostics.error({.file = changed.path}, "",
                        "has no variant in common with " + printable(base.path, 200) + " (" +
                            listed(base) + " against " + listed(changed) + ")",
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
    if (std::none_of(pairs.begin(), pairs.end(), is_its)) missing.push_back(v.name);
  }
  return missing;
}

/// A gate about a variant that was renamed or left out: nobody can say that it did not get worse.
Judgement judge_missing(const Comparison& c, const std::string& variant, const Gate& gate) {
  return {.what = "not " + gate.text,
          .scope = variant + (c.stage.empty() ? "" : ", stage " + c.stage),
          .where = {},
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
              .where = {},
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
    if (pooled.empty()) continue;
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
               .missing = {},
               .stage = request.stage,
               .gates = {}};
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

}  // namespace routesim::tools
