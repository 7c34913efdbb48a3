// A run for terminals and pull requests.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "tools/render/render.h"
#include "tools/results/metrics.h"
#include "tools/results/result_record.h"
#include "tools/results/trust_errors.h"
#include "tools/study/run/fleet_tables.h"
#include "tools/study/run/render_run.h"
#include "tools/study/run/replication_tables.h"
#include "tools/study/run/run_tables.h"
#include "tools/study/verdict/run_verdict.h"
#include "tools/study/verdict/verdict_parts.h"

namespace routesim::tools {

namespace {

/// Takes what a result file leaves out or rounds: its percentiles are those that the load tool
/// lists, and a stage that the load tool held back is overloaded, though no queue grew.
void take_exact(const VariantReport& variant, const sim::StageResult& result, StageView& stage) {
  stage.overloaded = result.overloaded();
  for (const std::string_view key : plain_keys()) {
    const std::size_t dot = key.find('.');
    const std::string_view metric = key.substr(0, dot);
    const std::string_view statistic = dot == key.npos ? "mean" : key.substr(dot + 1);
    stage.values.erase(std::string(key));
    stage.measured.erase(std::string(key));
    if (const auto value = metric_value(result, metric, statistic, ""))
      stage.values.emplace(key, Datum{.value = *value, .path = {}});
    if (const auto value = measured_value(variant, result, metric, statistic))
      stage.measured.emplace(key, *value);
  }
}

/// Adds the values of rows in which only the publication of another variant sums up its ladder.
void add_unpublished(const Report& report, std::size_t v, VariantView& view) {
  for (const VariantReport& published : report.variants)
    for (const MeasuredRow& row : published.measured.rows) {
      const std::string name = row.metric + " " + row.statistic.substr(0, row.statistic.find(" ("));
      const bool known = std::ranges::any_of(view.published, [&](const PublishedView& p) {
        return p.name == name && p.unit == row.unit;
      });
      if (row.stage != "all" || known) continue;
      const auto stages = reported_stages(report.variants[v].result);
      if (const auto value = ladder_value(stages, row.metric, row.statistic, row.unit))
        view.published.push_back({.name = name,
                                  .unit = row.unit,
                                  .simulated = {.value = *value, .path = {}},
                                  .measured = {.value = NAN, .path = {}}});
    }
}

/// The numbers of plain tables.
PageRun exact_view(const Report& report, PageRun run) {
  std::ptrdiff_t overloads = 0;
  for (std::size_t v = 0; v < run.variants.size(); ++v) {
    const VariantReport& variant = report.variants[v];
    VariantView& view = run.variants[v];
    for (std::size_t i = 0, at = 0; i < variant.result.stages.size(); ++i)
      if (!variant.result.stages[i].info.is_preparation)
        take_exact(variant, variant.result.stages[i], view.stages[at++]);
    for (std::size_t i = 0; i < view.classes.size(); ++i)
      take_exact(variant, variant.result.classes[i], view.classes[i]);
    take_exact(variant, variant.result.summary, view.summary);
    add_unpublished(report, v, view);
    const auto overloaded = std::ranges::count_if(
        view.stages, [](const StageView& s) { return s.reported && s.overloaded; });
    overloads += overloaded;
    view.summary.values["overloaded_stages"].value = static_cast<double>(overloaded);
  }
  if (overloads == 0)
    for (VariantView& view : run.variants) view.summary.values.erase("overloaded_stages");
  return run;
}

/// The meaning of a label of failed requests.
std::string_view failure_meaning(std::string_view label) {
  if (label == "prompt_too_long") return "prompt and answer are longer than engine.max_model_len";
  if (label == "kv_cache_too_small") return "the prompt does not fit into one server's KV cache";
  if (label == "no_endpoint") return "the router found no server for them";
  if (label == "TimeoutError") return "the client gave up";
  return label;
}

/// Says why requests failed, or else what explains the numbers: each sentence once with all
/// variants it is true of. The basis of step times stands in the verdict.
Notes notes_of(const Report& report, bool failures) {
  std::vector<std::pair<std::string, std::string>> said;  // The sentence and whose it is.
  const auto add = [&said](const VariantReport& variant, const std::string& text) {
    if (text.empty()) return;
    const auto same = std::ranges::find(said, text, &std::pair<std::string, std::string>::first);
    if (same == said.end())
      said.emplace_back(text, printable(variant.name));
    else
      same->second += ", " + printable(variant.name);
  };
  for (const VariantReport& variant : report.variants) {
    const sim::StageResult& all = variant.result.summary;
    if (failures)
      for (const auto& [label, count] : all.failures_by_label)
        add(variant, std::to_string(count) + " of " + std::to_string(all.requests) +
                         " requests failed: " + std::string(failure_meaning(label)));
    if (failures) continue;
    add(variant, capacity_text(variant));
    for (const std::string& note : variant.result.notes) add(variant, printable(note, 500));
  }
  Notes notes;
  for (const auto& [text, names] : said) notes.texts.push_back(names + ": " + text);
  return notes;
}

/// `seed 1`, or each variant's where one has a seed of its own.
std::string seeds_of(const Report& report) {
  if (report.replications) return seeds_text(*report.replications);
  std::string own;
  bool differ = false;
  for (const VariantReport& variant : report.variants) {
    differ = differ || variant.result.seed != report.variants.front().result.seed;
    own += (own.empty() ? "" : "; ") + printable(variant.name) + " seed " +
           std::to_string(variant.result.seed);
  }
  return differ ? own : "seed " + std::to_string(report.seed);
}

/// Adds the tables of one run, each behind an empty line.
void add_tables(const Report& report, const PageRun& run, std::vector<Block>& blocks) {
  const bool published = std::ranges::any_of(
      report.variants, [](const VariantReport& v) { return !v.measured.rows.empty(); });
  std::vector<Table> tables = plain_stages(run, published);
  constexpr std::size_t kMostEvents = 20, kMostMissed = 10;
  for (Table& table : std::array{published_table(run), summary_table(run, false), class_table(run),
                                 fleet_table(run, false), missed_table(run, kMostMissed),
                                 event_table(run, kMostEvents)})
    tables.push_back(std::move(table));
  for (Table& table : tables) {
    if (table.rows.empty()) continue;
    if (table.title.empty()) blocks.push_back({Paragraph{}});
    blocks.push_back({std::move(table)});
  }
}

/// The worst basis of the variants in a line, the number of notes, and what must be known anyway.
std::string brief_trust(const Report& report, const PageRun& run, std::size_t notes) {
  models::Trust worst = models::Trust::kFitted;
  for (const VariantReport& variant : report.variants)
    worst = std::max(worst, variant.result.trust());
  std::string errors;
  for (const TrustError& e : trust_errors())
    if (e.trust == worst && (e.quantity == "output tokens/s" || e.quantity == "TTFT mean"))
      errors += ", " + e.quantity + " ±" + fixed_text(e.mean, 1) + " %";
  return "Worst step times: " + std::string(enum_name(worst)) +
         (errors.empty() ? ", compared with no published number" : errors) + "; " +
         counted(notes, "note") + "." + idle_servers(run) + not_judged(run);
}

/// Leaves only the tables of the whole run; answers how many others there were.
std::size_t drop_tables(std::vector<Block>& blocks) {
  std::size_t dropped = 0;
  for (std::size_t i = 0; i < blocks.size();) {
    const auto* const table = std::get_if<Table>(&blocks[i].content);
    if (table == nullptr || table->columns.front().title == "whole run") {
      ++i;
      continue;
    }
    const auto* const gap = i > 0 ? std::get_if<Paragraph>(&blocks[i - 1].content) : nullptr;
    if (gap != nullptr && gap->text.empty()) blocks.erase(blocks.begin() + std::ptrdiff_t(--i));
    blocks.erase(blocks.begin() + std::ptrdiff_t(i));
    ++dropped;
  }
  return dropped;
}

}  // namespace

std::string render_text(const Report& report, const TextParts& parts) {
  const PageRun run = page_run(run_record(report), "");
  StudyDocument document;
  document.verdict.judgements = report.expectations;
  std::vector<Block>& blocks = document.blocks;
  if (report.replications) {
    if (report.interrupted)
      blocks.insert(blocks.end(),
                    {{Paragraph{}}, {Paragraph{"interrupted: not all replications were run"}}});
    add_replications(*report.replications, blocks);
  } else {
    add_tables(report, exact_view(report, run), blocks);
  }
  bool overloaded = false;
  for (const VariantReport& variant : report.variants)
    for (const sim::StageResult* stage : reported_stages(variant.result))
      overloaded = overloaded || stage->overloaded();
  const std::size_t dropped = parts.tables ? 0 : drop_tables(blocks);
  overloaded = overloaded && parts.tables;
  Notes shown = notes_of(report, true);
  const Notes notes = notes_of(report, false);
  const bool unanswered = std::ranges::any_of(report.variants, [](const VariantReport& v) {
    return v.result.summary.requests == 0;  // A note says why.
  });
  if (parts.explain || unanswered)
    shown.texts.insert(shown.texts.end(), notes.texts.begin(), notes.texts.end());
  if (overloaded || !shown.texts.empty()) blocks.push_back({Paragraph{}});
  if (overloaded)
    blocks.push_back(
        {Paragraph{"! overloaded: the stage is asked for more than it answers, so its latencies "
                   "depend on how long it lasts"}});
  blocks.push_back({std::move(shown)});
  Verdict verdict = verdict_of(run);
  if (!parts.explain) verdict.trust = brief_trust(report, run, notes.texts.size());
  std::string more;
  if (dropped > 0) more = "--tables shows " + counted(dropped, "more table");
  if (!parts.explain)
    more += (more.empty() ? "" : ", ") + std::string("--explain says what the numbers rest on");
  if (!more.empty()) blocks.insert(blocks.end(), {{Paragraph{}}, {Paragraph{more + "."}}});
  std::string out = printable(report.scenario, 200) + ", " + seeds_of(report) + ", routesim " +
                    report.version + "\n";
  if (!report.question.empty()) out += printable(report.question, 500) + "\n";
  return out + render_verdict(verdict, parts.colour, parts.width) +
         draw(document, "table", parts.width);
}

std::string render_markdown(const Report& report) {
  const ResultSet set = result_set_of(report);
  StudyDocument document;
  document.verdict.judgements = report.expectations;
  std::vector<Block>& blocks = document.blocks;
  if (!set.seeds.empty()) blocks.push_back({markdown_numbers(set)});
  for (const VariantValues& v : set.variants) {
    const std::string pooled = pooled_overload(v, "");
    if (!pooled.empty())
      blocks.push_back({Paragraph{"Not judged: " + pooled + "."}});
    else if (v.stages.back().overloaded)
      blocks.push_back(
          {Paragraph{"Overloaded: " + v.name +
                     "; more is asked than answered, so latencies depend on its length."}});
  }
  for (const VariantReport& variant : report.variants)
    if (const std::string band = capacity_text(variant); !band.empty())
      blocks.push_back({Paragraph{variant.name + ": " + band + "."}});
  for (const std::string& line : trust_lines(report)) blocks.push_back({Paragraph{line + "."}});
  std::string out = "### " + markdown_cell(report.scenario) + "\n\n";
  if (!report.question.empty()) out += markdown_cell(report.question) + "\n\n";
  if (report.interrupted) out += "**Interrupted: these results are partial.**\n\n";
  out += draw(document, "markdown");
  out += set.seeds.size() > 1
             ? std::to_string(set.seeds.size()) +
                   " replications; mean ± half width of the 95 % interval, " +
                   (set.all_paired() ? "paired differences."
                                     : "differences of independent runs where loads differ.")
             : "One run (seed " + std::to_string(report.seed) +
                   "), no interval: add `--replications 5` for a verdict.";
  return out + " routesim " + report.version + "\n";
}

}  // namespace routesim::tools
