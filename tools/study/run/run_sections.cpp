// The sections of one run, in the order a reader needs them.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/scalar_parse.h"
#include "tools/render/page/html_page.h"
#include "tools/results/text_table.h"
#include "tools/study/run/run_charts.h"
#include "tools/study/verdict/run_verdict.h"

namespace routesim::tools {

namespace {

std::string head(const PageRun& run) {
  std::string out = "<header class=\"run\"><div class=\"kicker\">" + html(run.scenario) +
                    " · routesim " + html(run.version) + " · seed " + html(run.seed) +
                    "</div><h1>" + html(run.question.empty() ? run.scenario : run.question) +
                    "</h1></header>";
  return out;
}

/// The expectations with one decision, one item each.
std::string expectation_items(const PageRun& run, std::string_view decision) {
  const std::string style = decision == "holds" ? "good" : decision == "fails" ? "bad" : "";
  std::string out;
  for (const ExpectationView& e : run.expectations)
    if (e.decision == decision)
      out += "<li><b class=\"" + style + "\">" + html(e.decision) + "</b> " + html(e.text) +
             (e.scope.empty() ? "" : " (" + html(e.scope) + ")") +
             (e.detail.empty() ? "" : ": " + html(e.detail)) + "</li>";
  return out;
}

/// More expectations that do not fail than this are folded away.
constexpr std::ptrdiff_t kMostExpectations = 4;

std::string expectations(const PageRun& run) {
  const std::string rest = expectation_items(run, "undecided") + expectation_items(run, "holds");
  if (rest.empty()) return {};
  const std::string list = "<ul class=\"expect\">" + rest + "</ul>";
  const auto count = [&](std::string_view decision) {
    return std::count_if(run.expectations.begin(), run.expectations.end(),
                         [&](const ExpectationView& e) { return e.decision == decision; });
  };
  const auto holding = count("holds"), undecided = count("undecided");
  if (holding + undecided <= kMostExpectations) return list;
  std::string summary = std::to_string(holding) + " expectations hold";
  if (undecided > 0) summary += ", " + std::to_string(undecided) + " are undecided";
  return "<details><summary>" + summary + "</summary>" + list + "</details>";
}

/// Renders failures; they stand above everything else.
std::string failed_expectations(const PageRun& run) {
  const std::string items = expectation_items(run, "fails");
  if (items.empty()) return {};
  const auto failing =
      std::count_if(run.expectations.begin(), run.expectations.end(),
                    [](const ExpectationView& e) { return e.decision == "fails"; });
  return "<div class=\"failed\"><strong>" + std::to_string(failing) + " of " +
         std::to_string(run.expectations.size()) +
         (run.expectations.size() == 1 ? " expectation" : " expectations") +
         (failing == 1 ? " fails" : " fail") + "</strong><ul class=\"expect\">" + items +
         "</ul></div>";
}

std::string steps_list(const Verdict& verdict) {
  if (verdict.next.empty()) return {};
  std::string out = "<p class=\"label\">What to do next</p><ul>";
  for (const Step& step : verdict.next)
    out += "<li>" + html(step.why) + ": <code>" + html(step.command) + "</code></li>";
  return out + "</ul>";
}

std::string verdict_section(const PageRun& run) {
  const Verdict verdict = verdict_of(run);
  std::string out = "<section class=\"verdict\" aria-label=\"Verdict\">" +
                    failed_expectations(run) + "<p class=\"big\">" + html(verdict.headline) +
                    "</p>";
  if (!verdict.lines.empty()) {
    out += "<ul>";
    for (const VerdictLine& line : verdict.lines)
      out += std::string("<li>") +
             (!line.better   ? ""
              : *line.better ? "<b class=\"good\">better</b> "
                             : "<b class=\"bad\">worse</b> ") +
             html(line.text) + "</li>";
    out += "</ul>";
  }
  if (!verdict.ranking.empty()) out += "<p>" + html(verdict.ranking) + "</p>";
  if (!verdict.knees.empty()) {
    out += "<p class=\"label\">How much load each holds</p><ul>";
    for (const Knee& knee : verdict.knees)
      out += "<li><b>" + html(knee.variant) + "</b> " + html(knee.text) + "</li>";
    out += "</ul>";
  }
  out += expectations(run) + steps_list(verdict);
  std::string fine;
  for (const std::string* text : {&verdict.overload, &verdict.goals, &verdict.trust})
    if (!text->empty()) fine += (fine.empty() ? "" : " ") + *text;
  return out + "<p class=\"fine\">" + html(fine) + "</p></section>";
}

bool any_value(const PageRun& run, std::string_view key, bool not_zero) {
  for (const VariantView& v : run.variants) {
    const Datum* datum = v.summary.find(key);
    if (datum != nullptr && (!not_zero || datum->value != 0)) return true;
  }
  return false;
}

std::string key_numbers(const PageRun& run) {
  std::string out = "<h2>Key numbers of the whole run</h2>";
  if (std::any_of(run.variants.begin(), run.variants.end(), pools_overload))
    out +=
        "<p class=\"fine\">Overloaded stages are part of these numbers: how long such a stage "
        "lasts decides its latencies. The curves below keep stages apart.</p>";
  out += open_table(run.variants.size() + 1) + "<thead><tr><th>measure</th>";
  for (std::size_t v = 0; v < run.variants.size(); ++v)
    out += series_heading(v, run.variants[v].name,
                          v > 0 ? "change against " + run.variants[0].name : std::string());
  out += "</tr></thead><tbody>";
  for (const Shown& shown : key_measures()) {
    const bool rare = shown.key == "rejected" || shown.key == "preemptions";
    if (!any_value(run, shown.key, rare)) continue;
    const Datum* base = run.variants[0].summary.find(shown.key);
    out += "<tr><td>" + html(shown.title) + "</td>";
    for (std::size_t v = 0; v < run.variants.size(); ++v) {
      const Datum* datum = run.variants[v].summary.find(shown.key);
      out +=
          number_cell(datum, shown.unit, v > 0 ? change_note(base, datum, shown) : std::string());
    }
    out += "</tr>";
  }
  return out.append(kTableEnd);
}

/// The published value of a stage, and how far the simulation is off it.
std::string measured_cells(const StageView* stage, const Shown& shown) {
  if (stage == nullptr) return "<td>–</td><td>–</td>";
  const auto found = stage->measured.find(shown.key);
  if (found == stage->measured.end()) return "<td>–</td><td>–</td>";
  const Datum* datum = stage->find(shown.key);
  const bool known = datum != nullptr && found->second != 0;
  return "<td>" + human(found->second, shown.unit, false) + "</td><td>" +
         (known ? signed_percent(100 * (datum->value - found->second) / found->second) + " %"
                : "–") +
         "</td>";
}

/// One measure, stage by stage: simulated, and where there is one the published value beside it.
/// Warm-up stages are marked.
std::string stage_table(const PageRun& run, const Shown& shown) {
  std::vector<bool> measured;
  for (const VariantView& v : run.variants)
    measured.push_back(std::any_of(v.stages.begin(), v.stages.end(), [&](const StageView& s) {
      return s.measured.contains(shown.key);
    }));
  const auto columns =
      1 + measured.size() +
      2 * static_cast<std::size_t>(std::count(measured.begin(), measured.end(), true));
  std::string out = "<h3>" + html(shown.title) + "</h3>" + open_table(columns) + "<thead><tr><th>" +
                    html(stage_axis(run).title) + "</th>";
  for (std::size_t v = 0; v < run.variants.size(); ++v) {
    const std::string& name = run.variants[v].name;
    out += series_heading(v, name);
    if (measured[v])
      out += "<th>measured<small>" + html(name) + "</small></th><th>error<small>" + html(name) +
             "</small></th>";
  }
  out += "</tr></thead><tbody>";
  const std::vector<StageView>& stages = run.variants[0].stages;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    out += "<tr><td>" + html(stage_label(run, stages[i])) +
           (stages[i].reported ? "" : " (warm-up)") + "</td>";
    for (std::size_t v = 0; v < run.variants.size(); ++v) {
      const bool exists = i < run.variants[v].stages.size();
      const StageView* stage = exists ? &run.variants[v].stages[i] : nullptr;
      const bool marked = exists && stage->overloaded && stage->reported;
      out += number_cell(exists ? stage->find(shown.key) : nullptr, shown.unit,
                         marked ? "<small class=\"change\">overloaded</small>" : "");
      if (measured[v]) out += measured_cells(stage, shown);
    }
    out += "</tr>";
  }
  return out.append(kTableEnd);
}

std::string stages_section(const PageRun& run) {
  if (run.variants.empty() || run.variants[0].stages.size() < 2) return {};
  std::string out = "<details><summary>Stage by stage, in numbers</summary>";
  for (const Shown& shown : stage_measures()) {
    const bool known =
        std::any_of(run.variants.begin(), run.variants.end(), [&](const VariantView& v) {
          return std::any_of(v.stages.begin(), v.stages.end(),
                             [&](const StageView& s) { return s.find(shown.key) != nullptr; });
        });
    if (known) out += stage_table(run, shown);
  }
  return out + "</details>";
}

std::string published_section(const PageRun& run) {
  std::string rows;
  for (const VariantView& v : run.variants)
    for (const PublishedView& row : v.published)
      rows += "<tr><td>" + html(v.name) + "</td><td class=\"text\">" + html(row.name) + ", " +
              html(row.unit) + "</td>" + number_cell(&row.simulated, Unit::kNone) +
              number_cell(&row.measured, Unit::kNone) + "<td>" +
              change_text(row.measured.value, row.simulated.value, Unit::kNone) + "</td></tr>";
  if (rows.empty()) return {};
  return "<details><summary>Beside the published summary</summary><div class=\"scroll\"><table>"
         "<thead><tr><th>variant</th><th>row</th><th>simulated</th><th>measured</th><th>error</th>"
         "</tr></thead><tbody>" +
         rows + "</tbody></table></div></details>";
}

std::string servers_table(const PageRun& run) {
  constexpr std::array<Shown, 7> kColumns = {
      {{"requests", "requests", "", Unit::kCount, false},
       {"busy_s", "busy", "", Unit::kSeconds, false},
       {"kv_mean", "KV use, mean", "", Unit::kRatio, false},
       {"kv_max", "KV use, most", "", Unit::kRatio, false},
       {"max_running", "running, most", "", Unit::kCount, false},
       {"max_waiting", "waiting, most", "", Unit::kCount, false},
       {"evicted_blocks", "blocks evicted", "", Unit::kCount, false}}};
  std::string out = "<details><summary>Server by server, in numbers</summary>" +
                    open_table(kColumns.size() + 2) + "<thead><tr><th>server</th><th>variant</th>";
  for (const Shown& column : kColumns) out += "<th>" + html(column.title) + "</th>";
  out += "</tr></thead><tbody>";
  for (const VariantView& variant : run.variants)
    for (const ServerView& server : variant.servers) {
      out += "<tr><td>" + html(server.name) + "</td><td class=\"text\">" + html(variant.name) +
             "</td>";
      for (const Shown& column : kColumns) {
        const auto found = server.values.find(column.key);
        out += number_cell(found == server.values.end() ? nullptr : &found->second, column.unit);
      }
      out += "</tr>";
    }
  return out.append(kTableEnd) + "</details>";
}

/// The values in which the variants differ.
std::string differences(const PageRun& run) {
  std::vector<std::string> paths;
  std::vector<std::map<std::string, std::string>> values(run.variants.size());
  for (std::size_t v = 0; v < run.variants.size(); ++v)
    for (const auto& [path, value] : run.variants[v].resolved) {
      values[v][path] = value;
      if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
    }
  std::string rows;
  for (const std::string& path : paths) {
    std::set<std::string> distinct;
    for (const auto& of : values) distinct.insert(of.contains(path) ? of.at(path) : "–");
    if (distinct.size() < 2) continue;
    rows += "<tr><td class=\"text\">" + html(path) + "</td>";
    for (const auto& of : values)
      rows += "<td class=\"text\">" + html(of.contains(path) ? of.at(path) : "–") + "</td>";
    rows += "</tr>";
  }
  if (rows.empty()) return {};
  std::string out = "<h2>In what the variants differ</h2>" +
                    open_table(run.variants.size() + 1, true) + "<thead><tr><th>key</th>";
  for (std::size_t v = 0; v < run.variants.size(); ++v)
    out += series_heading(v, run.variants[v].name);
  return (out + "</tr></thead><tbody>" + rows).append(kTableEnd);
}

std::string manifest(const PageRun& run) {
  std::string out = "<h2>Manifest</h2><dl>";
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) out += std::string("<dt>") + name + "</dt><dd>" + html(value) + "</dd>";
  };
  add("scenario", run.scenario);
  add("routesim", run.version + (run.commit.empty() ? "" : " (" + run.commit + ")"));
  add("seed", run.seed + (run.replications > 1
                              ? " and following, " + std::to_string(run.replications) + " runs"
                              : ""));
  add("scenario hash", run.hash);
  out += "</dl>";
  // A note that several variants share is said once.
  std::vector<std::pair<std::string, std::vector<std::string>>> said;
  for (const VariantView& v : run.variants)
    for (const std::string& note : v.notes) {
      const auto same = std::find_if(said.begin(), said.end(),
                                     [&](const auto& entry) { return entry.first == note; });
      if (same == said.end())
        said.push_back({note, {v.name}});
      else
        same->second.push_back(v.name);
    }
  std::string notes;
  for (const auto& [note, names] : said) {
    std::string who;
    for (const std::string& name : names) who += (who.empty() ? "" : ", ") + name;
    if (names.size() > 1 && names.size() == run.variants.size()) who = "every variant";
    notes += "<li>" + html(who) + ": " + html(note) + "</li>";
  }
  if (!notes.empty()) out += "<h3>Notes</h3><ul class=\"notes\">" + notes + "</ul>";
  // Paper gets the first variant in full; the others are what the table of differences says.
  for (std::size_t i = 0; i < run.variants.size(); ++i)
    if (const VariantView& v = run.variants[i]; !v.resolved_text.empty())
      out += std::string("<details") + (i > 0 ? " class=\"screen\"" : "") +
             "><summary>Everything resolved: " + html(v.name) + "</summary><pre>" +
             html(v.resolved_text) + "</pre></details>";
  return out;
}

}  // namespace

std::string run_sections(const PageRun& run) {
  std::string out = head(run) + verdict_section(run);
  if (run.variants.empty()) return out;
  out += key_numbers(run);
  const std::string curves = rate_charts(run);
  if (!curves.empty())
    out += "<h2>How it holds as the load grows</h2><div class=\"charts\">" + curves + "</div>";
  out += stages_section(run) + published_section(run);
  const std::string distributions = distribution_charts(run);
  if (!distributions.empty())
    out += "<h2>Latency distributions</h2><div class=\"charts three\">" + distributions + "</div>";
  out += "<h2>The servers</h2>" + server_charts(run) + servers_table(run) + differences(run) +
         manifest(run);
  return out;
}

}  // namespace routesim::tools
