#include "tools/study/run/run_document.h"

#include <algorithm>
#include <utility>

#include "tools/render/render.h"
#include "tools/results/text_table.h"
#include "tools/study/run/fleet_tables.h"
#include "tools/study/run/run_charts.h"
#include "tools/study/run/run_tables.h"
#include "tools/study/verdict/run_verdict.h"

namespace routesim::tools {

namespace {

/// `seed 1`, `seeds 1 to 5`.
std::string seeds_of(const PageRun& run) {
  if (run.replications < 2) return "seed " + run.seed;
  const std::uint64_t first = std::stoull(run.seed);
  return seeds_text({first, first + static_cast<std::uint64_t>(run.replications) - 1});
}

StudyVerdict study_verdict(const PageRun& run) {
  const Verdict verdict = verdict_of(run);
  StudyVerdict out{.headline = verdict.headline,
                   .picture = answer_chart(run, verdict.knees),
                   .judgements = run.expectations};
  for (const VerdictLine& line : verdict.lines) {
    Sentence& point = out.points.emplace_back();
    if (line.better)
      point = {{.text = *line.better ? "better" : "worse",
                .tone = *line.better ? Tone::kGood : Tone::kBad,
                .strong = true},
               {.text = " "}};
    point.push_back({.text = line.text});
  }
  if (!verdict.ranking.empty()) out.points.push_back({{.text = verdict.ranking}});
  StudyVerdict::Part knees{.title = "How much load each holds", .points = {}};
  for (const Knee& knee : verdict.knees)
    knees.points.push_back({{.text = knee.variant, .strong = true}, {.text = " " + knee.text}});
  StudyVerdict::Part next{.title = "What to do next", .points = {}};
  for (const Step& step : verdict.next)
    next.points.push_back({{.text = step.why + ": "}, {.text = step.command, .code = true}});
  for (StudyVerdict::Part* const part : {&knees, &next})
    if (!part->points.empty()) out.parts.push_back(std::move(*part));
  for (const std::string* const text : {&verdict.overload, &verdict.goals, &verdict.trust})
    if (!text->empty()) out.fine += (out.fine.empty() ? "" : " ") + *text;
  return out;
}

std::vector<std::pair<std::string, std::string>> facts_of(const PageRun& run) {
  std::vector<std::pair<std::string, std::string>> facts = {
      {"scenario", run.scenario},
      {"routesim", run.version + (run.commit.empty() ? "" : " (" + run.commit + ")")},
      {run.replications > 1 ? "seeds" : "seed", seeds_of(run).substr(seeds_of(run).find(' ') + 1)},
      {"scenario hash", run.hash}};
  std::erase_if(facts, [](const auto& fact) { return fact.second.empty(); });
  return facts;
}

/// The notes of the variants; one that several share is said once.
Notes notes_of(const PageRun& run) {
  std::vector<std::pair<std::string, std::vector<std::string>>> said;
  for (const VariantView& v : run.variants)
    for (const std::string& note : v.notes) {
      auto same = std::ranges::find(said, note, [](const auto& entry) { return entry.first; });
      if (same == said.end()) same = said.insert(same, {note, {}});
      same->second.push_back(v.name);
    }
  Notes notes;
  for (const auto& [note, names] : said) {
    std::string who;
    for (const std::string& name : names) who += (who.empty() ? "" : ", ") + name;
    const bool all = names.size() > 1 && names.size() == run.variants.size();
    notes.texts.push_back((all ? "every variant" : who) + ": " + note);
  }
  return notes;
}

/// The curves over the load, without the first where that is the picture of the verdict, and the
/// numbers behind them.
void add_stages(const PageRun& run, bool without_first, std::vector<Block>& blocks) {
  Charts curves_over_load;
  for (NamedChart& curve : load_curves(run))
    if (!std::exchange(without_first, false))
      curves_over_load.charts.emplace_back(std::move(curve.chart));
  if (!curves_over_load.charts.empty()) {
    blocks.push_back({Heading{"How it holds as the load grows"}});
    blocks.push_back({std::move(curves_over_load)});
  }
  Fold numbers{.title = "Stage by stage, in numbers", .blocks = {}};
  if (run.variants[0].stages.size() > 1)
    for (const Curve& curve : curves())
      if (Table table = stage_table(run, curve.key); !table.rows.empty())
        numbers.blocks.push_back({std::move(table)});
  blocks.push_back({std::move(numbers)});
}

/// Everything behind a run: servers, settings, notes.
void add_details(const PageRun& run, std::vector<Block>& blocks) {
  if (Charts over_time = time_charts(run); !over_time.charts.empty()) {
    blocks.push_back({Heading{"What happened over time"}});
    blocks.push_back({std::move(over_time)});
    if (Table missed = missed_table(run, 0); !missed.rows.empty())
      blocks.push_back({Fold{"When goals are missed", {{std::move(missed)}}, true}});
  }
  if (Table fleet = fleet_table(run, true); !fleet.rows.empty()) {
    blocks.push_back({std::move(fleet)});
    blocks.push_back({Fold{.title = "Event by event", .blocks = {{event_table(run, 0)}}}});
  }
  blocks.push_back({Heading{"The servers"}});
  for (Block& block : server_charts(run)) blocks.push_back(std::move(block));
  blocks.push_back({Fold{"Server by server, in numbers", {{server_table(run)}}}});
  if (Table settings = setting_table(run); !settings.rows.empty()) {
    blocks.push_back({Heading{"In what the variants differ"}});
    blocks.push_back({std::move(settings)});
  }
  if (Notes notes = notes_of(run); !notes.texts.empty()) {
    blocks.push_back({Heading{"Notes"}});
    blocks.push_back({std::move(notes)});
  }
  // Paper gets the first variant in full; the others are what the table of differences says.
  for (const VariantView& v : run.variants)
    if (!v.resolved_text.empty())
      blocks.push_back({Fold{.title = "Everything resolved: " + v.name,
                             .blocks = {{Listing{v.resolved_text}}},
                             .only_on_screen = &v != &run.variants.front()}});
}

}  // namespace

StudyDocument run_document(const PageRun& run) {
  StudyDocument document{
      .name = run.scenario,
      .kicker = run.scenario + " · routesim " + run.version + " · " + seeds_of(run),
      .title = run.question.empty() ? run.scenario : run.question,
      .verdict = study_verdict(run),
      .facts = facts_of(run),
      .blocks = {}};
  if (run.variants.empty()) return document;
  std::vector<Block>& blocks = document.blocks;
  blocks.push_back({Heading{"Key numbers of the whole run"}});
  if (std::ranges::any_of(run.variants, pools_overload))
    blocks.push_back(
        {Paragraph{"Overloaded stages are part of these numbers: how long such a stage lasts "
                   "decides its latencies. The curves below keep stages apart.",
                   true}});
  blocks.push_back({summary_table(run, true)});
  if (Table classes = class_table(run); !classes.rows.empty())
    blocks.push_back({Fold{"Traffic classes, in numbers", {{std::move(classes)}}}});
  const std::optional<Chart>& picture = document.verdict.picture;
  add_stages(run, picture && std::holds_alternative<LineChart>(*picture), blocks);
  if (Table published = published_rows(run); !published.rows.empty())
    blocks.push_back({Fold{"Beside the published summary", {{std::move(published)}}}});
  Charts distributions{.charts = distribution_charts(run), .small = true};
  if (!distributions.charts.empty()) {
    blocks.push_back({Heading{"Latency distributions"}});
    blocks.push_back({std::move(distributions)});
  }
  add_details(run, blocks);
  return document;
}

}  // namespace routesim::tools
