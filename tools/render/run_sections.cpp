// The sections of one run, in the order a reader needs them.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/scalar_parse.h"
#include "tools/render/html_page.h"
#include "tools/render/run_charts.h"
#include "tools/render/run_verdict.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

std::string head(const PageRun& run) {
  std::string out = "<header class=\"run\"><div class=\"kicker\">" + html(run.scenario) +
                    " · routesim " + html(run.version) + " · seed " + html(run.seed) +
                    "</div><h1>" + html(run.question.empty() ? run.scenario : run.question) +
                    "</h1></header>";
  return out;
}

std::string expectations(const PageRun& run) {
  if (run.expectations.empty()) return {};
  std::string out = "<ul class=\"expect\">";
  for (const ExpectationView& e : run.expectations) {
    const std::string style = e.decision == "holds" ? "good" : e.decision == "fails" ? "bad" : "";
    out += "<li><b class=\"" + style + "\">" + html(e.decision) + "</b> " + html(e.text) +
           (e.scope.empty() ? "" : " (" + html(e.scope) + ")") +
           (e.detail.empty() ? "" : ": " + html(e.detail)) + "</li>";
  }
  return out + "</ul>";
}

std::string verdict_section(const PageRun& run) {
  const Verdict verdict = verdict_of(run);
  std::string out = "<section class=\"verdict\" aria-label=\"Verdict\"><p class=\"big\">" +
                    html(verdict.headline) + "</p>";
  if (!verdict.lines.empty()) {
    out += "<ul>";
    for (const VerdictLine& line : verdict.lines)
      out += std::string("<li class=\"") + (line.better ? "good" : "bad") + "\">" +
             (line.better ? "better — " : "worse — ") + html(line.text) + "</li>";
    out += "</ul>";
  }
  out += expectations(run);
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
  std::string out =
      "<h2>Key numbers of the whole run</h2><div class=\"scroll\"><table><thead><tr>"
      "<th></th>";
  for (std::size_t v = 0; v < run.variants.size(); ++v) {
    out += series_heading(v, run.variants[v].name);
    if (v > 0) out += "<th>change</th>";
  }
  out += "</tr></thead><tbody>";
  for (const Shown& shown : key_measures()) {
    const bool rare = shown.key == "rejected" || shown.key == "preemptions";
    if (!any_value(run, shown.key, rare)) continue;
    out += "<tr><td>" + html(shown.title) + "</td>";
    for (std::size_t v = 0; v < run.variants.size(); ++v) {
      const Datum* datum = run.variants[v].summary.find(shown.key);
      out += number_cell(datum, shown.unit);
      if (v > 0) out += change_cell(run.variants[0].summary.find(shown.key), datum, shown);
    }
    out += "</tr>";
  }
  return out + "</tbody></table></div>";
}

/// One measure, stage by stage: simulated, and where there is one the published value beside it.
std::string stage_table(const PageRun& run, const Shown& shown) {
  std::vector<bool> measured;
  for (const VariantView& v : run.variants)
    measured.push_back(std::any_of(v.stages.begin(), v.stages.end(), [&](const StageView& s) {
      return s.measured.contains(shown.key);
    }));
  std::string out = "<h3>" + html(shown.title) +
                    "</h3><div class=\"scroll\"><table><thead><tr><th>" +
                    html(stage_axis(run).title) + "</th>";
  for (std::size_t v = 0; v < run.variants.size(); ++v) {
    out += series_heading(v, run.variants[v].name);
    if (measured[v]) out += "<th>measured</th><th>error</th>";
  }
  out += "</tr></thead><tbody>";
  const std::vector<StageView>& stages = run.variants[0].stages;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (!stages[i].reported) continue;
    std::string overloaded;
    for (const VariantView& v : run.variants)
      if (i < v.stages.size() && v.stages[i].overloaded)
        overloaded += (overloaded.empty() ? "" : ", ") + v.name;
    out += "<tr><td>" + html(stage_label(run, stages[i])) +
           (overloaded.empty() ? "" : " (overloaded: " + html(overloaded) + ")") + "</td>";
    for (std::size_t v = 0; v < run.variants.size(); ++v) {
      const bool exists = i < run.variants[v].stages.size();
      const StageView* stage = exists ? &run.variants[v].stages[i] : nullptr;
      const Datum* datum = exists ? stage->find(shown.key) : nullptr;
      out += number_cell(datum, shown.unit);
      if (!measured[v]) continue;
      const auto found = exists ? stage->measured.find(shown.key) : stages[i].measured.end();
      if (!exists || found == stage->measured.end()) {
        out += "<td>–</td><td>–</td>";
        continue;
      }
      out += "<td>" + human(found->second, shown.unit, false) + "</td><td>" +
             (datum != nullptr && found->second != 0
                  ? signed_percent(100 * (datum->value - found->second) / found->second) + " %"
                  : "–") +
             "</td>";
    }
    out += "</tr>";
  }
  return out + "</tbody></table></div>";
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
  std::string out = "<details><summary>Server by server, in numbers</summary>";
  for (std::size_t v = 0; v < run.variants.size(); ++v) {
    out += "<div class=\"scroll\"><table><thead><tr>" + series_heading(v, run.variants[v].name);
    for (const Shown& column : kColumns) out += "<th>" + html(column.title) + "</th>";
    out += "</tr></thead><tbody>";
    for (const ServerView& server : run.variants[v].servers) {
      out += "<tr><td>" + html(server.name) + "</td>";
      for (const Shown& column : kColumns) {
        const auto found = server.values.find(column.key);
        out += number_cell(found == server.values.end() ? nullptr : &found->second, column.unit);
      }
      out += "</tr>";
    }
    out += "</tbody></table></div>";
  }
  return out + "</details>";
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
    rows += "<tr><td>" + html(path) + "</td>";
    for (const auto& of : values)
      rows += "<td class=\"text\">" + html(of.contains(path) ? of.at(path) : "–") + "</td>";
    rows += "</tr>";
  }
  if (rows.empty()) return {};
  std::string out =
      "<h2>In what the variants differ</h2><div class=\"scroll\"><table><thead><tr><th>"
      "key</th>";
  for (std::size_t v = 0; v < run.variants.size(); ++v)
    out += series_heading(v, run.variants[v].name);
  return out + "</tr></thead><tbody>" + rows + "</tbody></table></div>";
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
  std::string notes;
  for (const VariantView& v : run.variants)
    for (const std::string& note : v.notes)
      notes += "<li>" + html(v.name) + ": " + html(note) + "</li>";
  if (!notes.empty()) out += "<h3>Notes</h3><ul class=\"notes\">" + notes + "</ul>";
  for (const VariantView& v : run.variants)
    if (!v.resolved_text.empty())
      out += "<details><summary>Everything resolved: " + html(v.name) + "</summary><pre>" +
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
  out += "<h2>The servers</h2><div class=\"charts\">" + server_charts(run) + "</div>";
  out += servers_table(run) + differences(run) + manifest(run);
  return out;
}

}  // namespace routesim::tools
