#include "tools/compare/comparison.h"

#include <algorithm>

#include "tools/output/printable.h"

namespace routesim::tools {

namespace {

std::string listed(const ResultFile& file) {
  std::string list;
  for (const VariantValues& v : file.set.variants)
    list += (list.empty() ? "" : ", ") + printable(v.name);
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

ConfigNode::Ptr workload_of(const ResultFile& file, const VariantValues& variant) {
  const auto index = static_cast<std::size_t>(&variant - file.set.variants.data());
  return index < file.workloads.size() ? file.workloads[index] : nullptr;
}

/// Same seeds and, where both files tell, the same workload.
void decide_pairing(const ResultFile& base, const ResultFile& changed, VariantPair& pair) {
  if (base.set.seeds != changed.set.seeds) {
    pair.paired = false;
    pair.note = "the seeds differ, so the difference is one of independent runs";
    return;
  }
  const ConfigNode::Ptr a = workload_of(base, *pair.base);
  const ConfigNode::Ptr b = workload_of(changed, *pair.changed);
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

bool has_metric(const ResultFile& file, const MetricName& m) {
  return std::find(file.set.metrics.begin(), file.set.metrics.end(), m) != file.set.metrics.end();
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
  return j;
}

}  // namespace

Comparison compare_results(const ResultFile& base, const ResultFile& changed,
                           const ComparisonRequest& request, Diagnostics& diagnostics) {
  Comparison c{.base = &base,
               .changed = &changed,
               .pairs = find_pairs(base, changed, request, diagnostics),
               .stage = request.stage,
               .gates = {}};
  for (const VariantPair& pair : c.pairs) {
    if (find_stage(*pair.base, c.stage) == nullptr)
      diagnostics.error({.file = base.path}, "", "has no stage " + in_quotes(c.stage));
    if (find_stage(*pair.changed, c.stage) == nullptr)
      diagnostics.error({.file = changed.path}, "", "has no stage " + in_quotes(c.stage));
  }
  for (const Gate& gate : request.gates)
    for (const ResultFile* file : {&base, &changed})
      if (!has_metric(*file, gate.metric))
        diagnostics.error({.file = file->path}, "",
                          "has no " + gate.metric.text + " of every seed, which --fail-if " +
                              printable(gate.text) + " needs",
                          needs_goals(gate.metric)
                              ? "set goodput: [ttft:500ms] in the scenario, or run with --goodput"
                              : "replicated results list means, medians, p90, p95 and p99, and "
                                "what the scenario's expect and --until are about");
  if (diagnostics.has_errors()) return c;
  for (const VariantPair& pair : c.pairs)
    for (const Gate& gate : request.gates) c.gates.push_back(judge_pair(c, pair, gate));
  return c;
}

}  // namespace routesim::tools
