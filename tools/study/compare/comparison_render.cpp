#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "tools/render/render.h"
#include "tools/results/described_json.h"
#include "tools/results/result_record.h"
#include "tools/results/text_table.h"
#include "tools/study/compare/changes.h"
#include "tools/study/compare/comparison.h"

namespace routesim::tools {

namespace {

/// Metrics of the table, beside those of the gates.
constexpr std::array<std::string_view, 16> kShown = {"output_tokens_per_s",
                                                     "requests_per_s",
                                                     "ttft_ms.mean",
                                                     "ttft_ms.median",
                                                     "ttft_ms.p90",
                                                     "ttft_ms.p99",
                                                     "tpot_ms.mean",
                                                     "tpot_ms.p99",
                                                     "itl_ms.mean",
                                                     "itl_ms.p99",
                                                     "request_latency_ms.mean",
                                                     "request_latency_ms.p99",
                                                     "prefix_cache_hit_rate",
                                                     "failed_requests",
                                                     "goodput",
                                                     "preemptions"};

struct Row {
  MetricName metric;
  Difference difference;
};

/// Metrics that both stages have, in the order of the base.
std::vector<Row> rows_of(const Comparison& c, const VariantPair& pair, const std::string& stage) {
  std::vector<Row> rows;
  const StageValues* const a = find_stage(*pair.base, stage);
  const StageValues* const b = find_stage(*pair.changed, stage);
  if (a == nullptr || b == nullptr) return rows;
  for (const MetricName& m : c.base->set.metrics) {
    const auto x = c.base->set.values(*a, m);
    const auto y = c.changed->set.values(*b, m);
    if (x && y) rows.push_back({m, difference_of(*x, *y, m, pair.paired)});
  }
  return rows;
}

bool is_shown(const MetricName& m) {
  return std::find(kShown.begin(), kShown.end(), m.text) != kShown.end();
}

/// The verdict on a difference, unless one of the runs pools overloaded and healthy stages.
std::string verdict_of(const VariantPair& pair, const std::string& stage, const Row& row) {
  if (!pooled_overload(*pair.base, stage).empty() || !pooled_overload(*pair.changed, stage).empty())
    return std::string(kNotJudged);
  return verdict_text(row.difference, row.metric);
}

std::string title_of(const Comparison& c, const VariantPair& pair) {
  std::string title = printable(pair.base->name);
  if (pair.base->name != pair.changed->name) title += " to " + printable(pair.changed->name);
  return title + (c.stage.empty() ? ", whole run" : ", stage " + printable(c.stage));
}

std::string how_many(const Comparison& c, const VariantPair& pair) {
  const std::size_t n = c.base->set.seeds.size();
  const std::size_t m = c.changed->set.seeds.size();
  if (!pair.note.empty()) return pair.note;
  if (n < 2 || m < 2)
    return "single runs: no interval; run both with --replications 5 for a verdict";
  return std::to_string(n) + " pairs of runs with the same seed and load; 95 % intervals";
}

/// The basis of the compared variants' results, each sentence once with the variants it is true of.
std::vector<std::string> trust_of(const Comparison& c) {
  std::vector<std::pair<std::string, std::string>> said;  // The sentence and whose it is.
  const auto add = [&](const std::string& who, const std::string& text) {
    if (text.empty()) return;
    const auto same = std::ranges::find(said, text, &std::pair<std::string, std::string>::first);
    if (same == said.end())
      said.emplace_back(text, who);
    else
      same->second += ", " + who;
  };
  for (const VariantPair& pair : c.pairs) {
    add("base " + printable(pair.base->name), pair.base->trust);
    add("new " + printable(pair.changed->name), pair.changed->trust);
  }
  std::vector<std::string> lines;
  for (const auto& [text, who] : said)
    lines.push_back((c.pairs.size() > 1 && said.size() == 1 ? "everything" : who) + ": " +
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
  for (const Change& change : changes_of(c))
    if (change.path.starts_with("files."))
      remarks.push_back(printable(change.path.substr(6), 200) + ": " +
                        printable(change.base.value_or("nothing")) + " became " +
                        printable(change.changed.value_or("nothing")));
  for (std::string& trust : trust_of(c)) remarks.push_back(std::move(trust));
  return remarks;
}

namespace {

void write_estimate(JsonWriter& json, std::string_view key, const sim::Estimate& e) {
  json.key(key).begin_object().member("mean", e.mean);
  json.member("low", e.low()).member("high", e.high()).end_object();
}

void write_rows(JsonWriter& json, const Comparison& c, const VariantPair& pair,
                const std::string& stage) {
  json.begin_object();
  for (const Row& row : rows_of(c, pair, stage)) {
    const Difference& d = row.difference;
    json.key(row.metric.text).begin_object();
    write_estimate(json, "base", d.base);
    write_estimate(json, "new", d.changed);
    write_estimate(json, "difference", d.difference);
    write_percent(json, d);
    json.member("verdict", verdict_of(pair, stage, row)).end_object();
  }
  json.end_object();
}

void write_file_facts(JsonWriter& json, std::string_view key, const ResultFile& file) {
  json.key(key).begin_object().member("file", file.path).member("scenario", file.set.scenario);
  if (file.interrupted) json.member("interrupted", true);
  json.member("version", file.set.version).key("seeds").begin_array();
  for (const std::uint64_t seed : file.set.seeds) json.value(seed);
  json.end_array().end_object();
}

void write_changes(JsonWriter& json, const Comparison& c) {
  json.key("changes").begin_array();
  for (const Change& change : changes_of(c)) {
    json.begin_object().member("path", change.path);
    json.member("base", change.base).member("new", change.changed);
    json.list("variants", change.variants).end_object();
  }
  json.end_array();
}

}  // namespace

std::string render_comparison_text(const Comparison& c) {
  std::string out = "base: " + printable(c.base->path, 200) + " (" +
                    printable(c.base->set.scenario) + ", " + seeds_text(c.base->set) +
                    ")\nnew:  " + printable(c.changed->path, 200) + " (" +
                    printable(c.changed->set.scenario) + ", " + seeds_text(c.changed->set) + ")\n";
  for (const std::string& remark : remarks_of(c)) out += "note: " + remark + "\n";
  const std::string gates = judgements_text(c.gates);
  if (!gates.empty()) out += "\n" + gates;
  for (const VariantPair& pair : c.pairs) {
    TextTable table(1);
    table.add_row({"metric", "base", "new", "difference", "change %", "verdict"});
    for (const Row& row : rows_of(c, pair, c.stage)) {
      if (!is_shown(row.metric)) continue;
      const Difference& d = row.difference;
      table.add_row({row.metric.text, estimate_text(d.base), estimate_text(d.changed),
                     estimate_text(d.difference), percent_text(d), verdict_of(pair, c.stage, row)});
    }
    out += fmt::format("\n{}: {}\n{}", title_of(c, pair), how_many(c, pair), table.str());
  }
  return out;
}

std::string render_comparison_markdown(const Comparison& c) {
  std::string out = "### " + markdown_cell(c.changed->set.scenario) + ": what changes\n\n";
  for (const std::string& remark : remarks_of(c)) out += "**" + markdown_cell(remark) + "**\n\n";
  const std::string gates = judgements_markdown(c.gates);
  if (!gates.empty()) out += gates + "\n";
  for (const VariantPair& pair : c.pairs) {
    out += "**" + markdown_cell(title_of(c, pair)) + "**: " + how_many(c, pair) +
           "\n\n| metric | base | new | change % | verdict |\n|---|--:|--:|--:|---|\n";
    for (const Row& row : rows_of(c, pair, c.stage)) {
      if (!is_shown(row.metric)) continue;
      const Difference& d = row.difference;
      out += "| `" + row.metric.text + "` | " + estimate_text(d.base) + " | " +
             estimate_text(d.changed) + " | " + percent_text(d) + " | " +
             verdict_of(pair, c.stage, row) + " |\n";
    }
    out += "\n";
  }
  return out;
}

std::string render_comparison_json(const Comparison& c) {
  JsonWriter json;
  json.begin_object();
  write_file_facts(json, "base", *c.base);
  write_file_facts(json, "new", *c.changed);
  json.member("confidence", sim::kConfidence);
  json.member("result", decision_text(overall(c.gates)));
  json.key("gates");
  json.begin_array();
  for (Judgement gate : c.gates) write_value(json, gate);
  json.end_array();
  json.list("missing", c.missing);
  json.list("remarks", remarks_of(c));
  write_changes(json, c);
  json.key("pairs").begin_array();
  for (const VariantPair& pair : c.pairs) {
    json.begin_object().member("base", pair.base->name).member("new", pair.changed->name);
    json.member("paired", pair.paired).member("note", pair.note);
    if (!c.stage.empty()) json.member("stage", c.stage);
    json.member("base_trust", pair.base->trust).member("new_trust", pair.changed->trust);
    json.key("stages").begin_array();
    for (const StageValues& stage : pair.base->stages) {
      if (stage.stage.empty() || (!c.stage.empty() && stage.stage != c.stage)) continue;
      json.begin_object().member("name", stage.stage).member("reported", stage.reported);
      if (stage.rate > 0) json.member("requested_rate", stage.rate);
      if (stage.concurrency > 0) json.member("concurrency", stage.concurrency);
      const StageValues* const other = find_stage(*pair.changed, stage.stage);
      json.member("base_overloaded", stage.overloaded);
      json.member("new_overloaded", other != nullptr && other->overloaded).key("metrics");
      write_rows(json, c, pair, stage.stage);
      json.end_object();
    }
    json.end_array().key("summary").begin_object().key("metrics");
    write_rows(json, c, pair, "");
    json.end_object().end_object();
  }
  json.end_array().end_object();
  return json.str() + "\n";
}

}  // namespace routesim::tools
