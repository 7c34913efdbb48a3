// The sections of `routesim tune`: whether a better configuration was found, how sure that is, and
// the files to deploy.
#include <algorithm>
#include <cmath>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/render/chart/chart.h"
#include "tools/render/json_node.h"
#include "tools/render/metric_view.h"
#include "tools/render/page/html_page.h"
#include "tools/results/report.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

std::string gain_text(const Node& gain) {
  const std::string text = percent_text(gain["percent"], gain);
  return text.empty() ? "–" : text;
}

DotPlot::Row gain_row(const std::string& name, const Node& gain) {
  DotPlot::Row row{.name = name, .text = gain_text(gain), .percent = gain["percent"].number()};
  if (gain["low"].datum()) row.low = gain["low"].number();
  if (gain["high"].datum()) row.high = gain["high"].number();
  if (row.low && *row.low > 0) row.style = DotPlot::Style::kGood;
  if (row.high && *row.high < 0) row.style = DotPlot::Style::kBad;
  return row;
}

std::string gain_cell(const Node& gain) {
  const std::optional<Datum> percent = gain["percent"].datum();
  if (!percent) return "<td>–</td>";
  const DotPlot::Style style = gain_row("", gain).style;
  return std::string("<td class=\"") +
         (style == DotPlot::Style::kGood  ? "good"
          : style == DotPlot::Style::kBad ? "bad"
                                          : "") +
         "\" data-path=\"" + html(percent->path) + "\" data-value=\"" +
         number_text(percent->value) + "\">" + html(gain_text(gain)) + "</td>";
}

std::string metric_cell(const Node& node, const MetricView& view) {
  const std::optional<Datum> datum = node.datum();
  if (!datum) return "<td>–</td>";
  const Datum shown = in_base_unit(*datum, view);
  return number_cell(&shown, view.unit);
}

/// `the best`, or the judged candidate when the published configuration is the best one.
std::string judged_name(const Node& root) {
  const std::string candidate = root["candidate"].text();
  return candidate.empty() || candidate == root["best"].text() ? "the best"
                                                               : "candidate " + candidate;
}

std::string tune_verdict(const Node& root) {
  std::string out = "<section class=\"verdict\" aria-label=\"Verdict\"><p class=\"big\">" +
                    html(root["verdict"]["headline"].text()) + "</p><ul>";
  for (const Node& goal : root["goals"].items()) out += "<li>goal: " + html(goal.text()) + "</li>";
  for (const Node& condition : root["subject_to"].items())
    out += "<li>subject to: " + html(condition.text()) + "</li>";
  return out + "</ul><p class=\"fine\">" + html(root["search_runs"].text()) + " runs searched, " +
         html(root["judgement_runs"].text()) + " judged on " +
         std::to_string(root["fresh_seeds"].items().size()) +
         " seeds that the search has not seen. A positive gain is an improvement over the "
         "published "
         "configuration; intervals are 95 %.</p></section>";
}

/// Published, judged and omniscient under each load.
std::string judged_section(const Node& root) {
  const std::string name = judged_name(root);
  DotPlot plot{.title = "What " + name + " gains over the published configuration",
               .subtitle =
                   "On fresh seeds, with 95 % intervals. Discs are better beyond chance, "
                   "triangles worse, squares neither."};
  std::string rows;
  for (const Node& row : root["judged"].items()) {
    const MetricView view = metric_view(row["metric"].text());
    plot.rows.push_back(gain_row(row["load"].text() + ": " + view.title, row["gain"]));
    const std::optional<Datum> closed = row["gap_closed"].datum();
    rows += "<tr><td>" + html(row["load"].text()) + "</td><td class=\"text\">" + html(view.title) +
            "</td>" + metric_cell(row["published"], view) + metric_cell(row["candidate"], view) +
            metric_cell(row["omniscient"], view) + gain_cell(row["gain"]) +
            number_cell(closed ? &*closed : nullptr, Unit::kRatio) + "</tr>";
  }
  std::string notes;
  for (const Node& note : root["notes"].items())
    notes += "<p class=\"fine\">" + html(note.text()) + "</p>";
  if (rows.empty()) return notes;
  return "<h2>Published against " + name + "</h2><div class=\"charts\">" + draw(plot) + "</div>" +
         open_table(7) +
         "<thead><tr><th>load</th><th class=\"text\">metric</th>"
         "<th>published</th><th>" +
         name +
         "</th><th>omniscient</th><th>gain over published</th>"
         "<th>of the gap to omniscient</th></tr></thead><tbody>" +
         rows + "</tbody></table></div>" + notes;
}

/// Each knob: its value before and after, and what taking the change back would cost.
std::string knobs_section(const Node& root) {
  DotPlot plot{.title = "What each change is worth",
               .subtitle =
                   "Loss when this change alone is taken back, on fresh seeds with 95 % "
                   "intervals."};
  const std::vector<Node> goals = root["goals"].items();
  std::string rows;
  for (const Node& knob : root["knobs"].items()) {
    const std::string name = knob["name"].text();
    const std::string judged = knob[knob["candidate"].text().empty() ? "best" : "candidate"].text();
    const bool changed = knob["published"].text() != judged;
    const std::vector<Node> worth = knob["worth"].items();
    for (const Node& gain : worth)
      plot.rows.push_back(
          gain_row(name + " " + knob["published"].text() + " → " + judged +
                       (worth.size() > 1 ? ", " + metric_view(gain["metric"].text()).title : ""),
                   gain));
    std::string worths;
    for (std::size_t g = 0; g < goals.size(); ++g)
      worths += g < worth.size() ? gain_cell(worth[g]) : "<td>–</td>";
    std::string range;
    for (const Node& value : knob["range"].items())
      range += (range.empty() ? "" : ", ") + value.text();
    rows += "<tr><td>" + html(name) + "</td><td class=\"text\">" + html(knob["published"].text()) +
            "</td><td class=\"text\">" + (changed ? "<b>" + html(judged) + "</b>" : "same") +
            "</td>" + worths + "<td class=\"text\">" + html(range) + "</td></tr>";
  }
  if (rows.empty()) return {};
  std::string heads;
  for (const Node& goal : goals)
    heads += "<th>worth" + (goals.size() > 1 ? ": " + html(goal.text()) : "") + "</th>";
  return "<h2>The knobs</h2><div class=\"charts\">" + draw(plot) + "</div>" +
         open_table(4 + goals.size()) +
         "<thead><tr><th>knob</th><th class=\"text\">published</th>"
         "<th class=\"text\">" +
         judged_name(root) + "</th>" + heads +
         "<th class=\"text\">values tried</th></tr>"
         "</thead><tbody>" +
         rows + "</tbody></table></div>";
}

/// How many candidates each round began and ended with.
std::string race_section(const Node& root) {
  LineChart chart;
  chart.x = {.title = "round", .unit = Unit::kCount};
  chart.y = {.title = "candidates", .unit = Unit::kCount, .from_zero = true};
  chart.series = {{.name = "at the start of the round"}, {.name = "left at its end", .colour = 1}};
  for (const Node& round : root["race"].items()) {
    const double at = round["round"].number();
    chart.series[0].points.push_back({.x = at, .y = round["candidates"].number()});
    chart.series[1].points.push_back({.x = at, .y = round["left"].number()});
  }
  chart.title = std::to_string(root["candidates"].items().size()) + " candidates raced";
  chart.subtitle = "A candidate leaves when it is worse than the best one beyond chance.";
  return draw(chart);
}

/// The trade between two goals: members of the front on fresh seeds, and the others that stayed in
/// the race on those of the search, which are no measure for the front.
std::string front_section(const Node& root) {
  const std::vector<Node> members = root["front"].items();
  if (members.empty()) return {};
  const std::vector<std::string> metrics = members.front()["metrics"].keys();
  if (metrics.size() != 2) return {};
  const MetricView x = metric_view(metrics[0]);
  const MetricView y = metric_view(metrics[1]);
  Scatter s;
  s.x = {.title = x.title, .unit = x.unit};
  s.y = {.title = y.title, .unit = y.unit};
  s.less_x = x.less_is_better;
  s.less_y = y.less_is_better;
  s.groups = {"front"};
  s.filled = "front, on fresh seeds";
  s.empty = "others that stayed in the race, on the seeds of the search";
  for (const Node& member : members)
    s.points.push_back({.x = x.scale * member["metrics"][metrics[0]]["mean"].number(),
                        .y = y.scale * member["metrics"][metrics[1]]["mean"].number(),
                        .tip = "candidate " + member["id"].text()});
  for (const Node& candidate : root["candidates"].items()) {
    const auto is_this = [&](const Node& member) {
      return member["id"].text() == candidate["id"].text();
    };
    if (!candidate["dropped"].text().empty() || std::ranges::any_of(members, is_this)) continue;
    const double at = x.scale * candidate["metrics"][metrics[0]].number();
    const double value = y.scale * candidate["metrics"][metrics[1]].number();
    if (std::isfinite(at) && std::isfinite(value))
      s.points.push_back({.x = at,
                          .y = value,
                          .hollow = true,
                          .may_lead = false,
                          .tip = "candidate " + candidate["id"].text()});
  }
  s.title = "The trade between " + x.title + " and " + y.title;
  s.subtitle = std::to_string(members.size()) + " configurations that no other one beats in both.";
  return draw(s);
}

/// A link that needs neither script nor network.
std::string data_link(const std::string& text, const std::string& name) {
  const std::string encoded =
      percent_encoded(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
  return "<a download=\"" + html(name) + "\" href=\"data:text/plain;charset=utf-8," + encoded +
         "\">Download " + html(name) + "</a>";
}

std::string deploy_section(const Node& root) {
  std::string out;
  if (const std::string epp = root["epp"].text(); !epp.empty())
    out += "<h3>The router's configuration</h3><p>" + data_link(epp, "tuned.yaml") +
           "</p><pre tabindex=\"0\">" + html(epp) + "</pre>";
  if (const std::string flags = root["flags"].text(); !flags.empty())
    out += "<h3>The engines' flags</h3><pre tabindex=\"0\">" + html(flags) + "</pre>";
  if (const std::string command = root["command"].text(); !command.empty()) {
    const std::string path = root["command_document"].text();
    out += "<h3>To repeat " + judged_name(root) + "</h3>" +
           (path.empty() ? "" : "<p>Save the router's configuration as " + html(path) + ".</p>") +
           "<pre tabindex=\"0\">" + html(command) + "</pre>";
  }
  return out.empty() ? out : "<h2>What to deploy</h2>" + out;
}

/// The knobs of a candidate that are not as published, with their values.
std::string changes_of(const Node& candidate, const Node& root) {
  std::string changes;
  for (const Node& knob : root["knobs"].items()) {
    const std::string name = knob["name"].text();
    const std::string value = candidate["values"][name].text();
    if (value != knob["published"].text())
      changes += (changes.empty() ? "" : ", ") + name + " = " + value;
  }
  return changes.empty() ? "as published" : changes;
}

std::string candidates_table(const Node& root) {
  const std::vector<Node> candidates = root["candidates"].items();
  if (candidates.empty()) return {};
  // Goals and conditions come first; more columns than these do not fit a page.
  std::vector<std::string> metrics = candidates.front()["metrics"].keys();
  metrics.resize(std::min<std::size_t>(metrics.size(), 3));
  std::string out = "<details><summary>All " + std::to_string(candidates.size()) +
                    " candidates</summary>" + open_table(4 + metrics.size()) +
                    "<thead><tr><th>id</th><th class=\"text\">changes</th>";
  for (const std::string& metric : metrics)
    out += "<th>" + html(metric_view(metric).title) + "</th>";
  out += "<th>seeds</th><th class=\"text\">left the race</th></tr></thead><tbody>";
  for (const Node& candidate : candidates) {
    out += "<tr><td>" + html(candidate["id"].text()) + "</td><td class=\"text\">" +
           html(changes_of(candidate, root)) + "</td>";
    for (const std::string& metric : metrics)
      out += metric_cell(candidate["metrics"][metric], metric_view(metric));
    out += "<td>" + html(candidate["seeds"].text()) + "</td><td class=\"text\">" +
           html(candidate["dropped"].text()) + "</td></tr>";
  }
  return out + "</tbody></table></div></details>";
}

}  // namespace

std::string tune_sections(const PageDocument& document) {
  const JsonDocument json(document.text);
  const Node root = json.root(document.path);
  const std::string question = root["question"].text();
  std::string out = "<header class=\"run\"><div class=\"kicker\">tune · " +
                    html(root["scenario"].text()) + " · " + html(root["variant"].text()) +
                    " · routesim " + html(root["version"].text()) + "</div><h1>" +
                    html(question.empty() ? root["tune"].text() : question) + "</h1></header>";
  out += tune_verdict(root) + judged_section(root) + knobs_section(root);
  const std::string charts = race_section(root) + front_section(root);
  if (!charts.empty()) out += "<h2>The search</h2><div class=\"charts\">" + charts + "</div>";
  return out + candidates_table(root) + deploy_section(root);
}

}  // namespace routesim::tools
