// The sections of `routesim compare`: what changed, whether it is better, and by how much.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/scalar_parse.h"
#include "tools/render/dot_plot.h"
#include "tools/render/html_page.h"
#include "tools/render/json_node.h"
#include "tools/render/metric_view.h"
#include "tools/render/svg_chart.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

/// The measures that decide the verdict.
constexpr std::array<const char*, 5> kJudged = {"output_tokens_per_s", "ttft_ms.mean",
                                                "ttft_ms.p90", "tpot_ms.mean",
                                                "request_latency_ms.mean"};

/// How a measure of one variant changed.
enum class Outcome { kUnknown, kSame, kBetter, kWorse, kMixed };

/// One measure of one variant.
struct Effect {
  MetricView view;
  Outcome outcome = Outcome::kUnknown;
  std::string how_much = {};  ///< `-12.3 % [-14.0, -10.6]`, or in how many stages.
};

struct StageCount {
  int better = 0, worse = 0, stages = 0;
};

/// The compared numbers: those of the stage that --stage names, else of the whole run.
Node metrics_of(const Node& pair) {
  const std::string chosen = pair["stage"].text();
  for (const Node& stage : pair["stages"].items())
    if (!chosen.empty() && stage["name"].text() == chosen) return stage["metrics"];
  return pair["summary"]["metrics"];
}

std::string scope_of(const Node& pair) {
  const std::string stage = pair["stage"].text();
  return stage.empty() ? "whole run" : "stage " + stage;
}

/// Counts the reported stages in which a measure got better or worse.
StageCount count_stages(const Node& pair, const std::string& metric) {
  StageCount count;
  for (const Node& stage : pair["stages"].items()) {
    if (stage["reported"].text() == "false") continue;
    const std::string verdict = stage["metrics"][metric]["verdict"].text();
    if (verdict.empty()) continue;
    ++count.stages;
    if (verdict == "better") ++count.better;
    if (verdict == "worse") ++count.worse;
  }
  return count;
}

Effect effect_of(const Node& pair, const std::string& metric) {
  Effect e{.view = metric_view(metric)};
  const Node summary = metrics_of(pair)[metric];
  const std::string verdict = summary["verdict"].text();
  e.how_much = percent_text(summary["percent"]["mean"], summary["percent"]);
  if (verdict == "better") e.outcome = Outcome::kBetter;
  if (verdict == "worse") e.outcome = Outcome::kWorse;
  if (verdict == "equal" || verdict == "not distinguishable") e.outcome = Outcome::kSame;
  if (verdict != "not judged") return e;
  // The whole run pools overloaded and healthy stages: the stages themselves decide.
  const StageCount n = count_stages(pair, metric);
  if (n.stages == 0) return e;
  const auto in = [&n](int stages) {
    return "in " + std::to_string(stages) + " of " + std::to_string(n.stages) + " stages";
  };
  e.outcome = n.better > 0 && n.worse > 0 ? Outcome::kMixed
              : n.better > 0              ? Outcome::kBetter
              : n.worse > 0               ? Outcome::kWorse
                                          : Outcome::kSame;
  e.how_much = e.outcome == Outcome::kMixed ? "better " + in(n.better) + ", worse " + in(n.worse)
                                            : in(std::max(n.better, n.worse));
  if (e.outcome == Outcome::kSame) e.how_much.clear();
  return e;
}

std::vector<Effect> effects_of(const Node& pair) {
  std::vector<Effect> effects;
  for (const char* metric : kJudged)
    if (!metrics_of(pair)[metric].keys().empty()) effects.push_back(effect_of(pair, metric));
  return effects;
}

std::size_t count(const std::vector<Effect>& effects, Outcome outcome) {
  return static_cast<std::size_t>(std::count_if(
      effects.begin(), effects.end(), [&](const Effect& e) { return e.outcome == outcome; }));
}

Outcome overall(const std::vector<Effect>& effects) {
  const bool better = count(effects, Outcome::kBetter) > 0;
  const bool worse = count(effects, Outcome::kWorse) > 0;
  if (count(effects, Outcome::kMixed) > 0 || (better && worse)) return Outcome::kMixed;
  if (better) return Outcome::kBetter;
  if (worse) return Outcome::kWorse;
  return count(effects, Outcome::kUnknown) == effects.size() ? Outcome::kUnknown : Outcome::kSame;
}

std::string name_of(const Node& pair) {
  const std::string base = pair["base"].text();
  const std::string changed = pair["new"].text();
  return base == changed ? base : base + " → " + changed;
}

/// True for any number of variants: which of them got better, worse, both or neither.
std::string headline(const std::vector<Node>& pairs) {
  struct Group {
    Outcome outcome;
    const char* one;   ///< Of the only variant.
    const char* many;  ///< Of some variants.
  };
  constexpr std::array<Group, 5> kGroups = {
      {{Outcome::kBetter, "New is better than base", "better than base"},
       {Outcome::kWorse, "New is worse than base", "worse than base"},
       {Outcome::kMixed, "New is better than base in some measures and worse in others",
        "better than base in some measures and worse in others"},
       {Outcome::kSame, "New and base cannot be told apart", "not distinguishable from base"},
       {Outcome::kUnknown,
        "Single runs cannot tell whether new differs from base by more than chance",
        "not judged"}}};
  std::string text;
  for (const Group& group : kGroups) {
    std::vector<std::string> names;
    for (const Node& pair : pairs)
      if (overall(effects_of(pair)) == group.outcome) names.push_back(name_of(pair));
    if (names.empty()) continue;
    if (names.size() == pairs.size())
      return std::string(group.one) + " for " +
             (names.size() > 2 ? "all " + std::to_string(names.size()) + " variants"
                               : joined(names)) +
             ".";
    text += (text.empty() ? "New is " : "; ") + std::string(group.many) + " for " + joined(names);
  }
  return text.empty() ? "No variant is in both results." : text + ".";
}

/// One bullet per variant: the measures that got better, those that got worse, and the rest.
std::string bullet(const Node& pair) {
  const std::vector<Effect> effects = effects_of(pair);
  std::string text;
  const auto add = [&](Outcome outcome, const std::string& style, const std::string& words) {
    std::string list;
    for (const Effect& e : effects) {
      if (e.outcome != outcome) continue;
      list += (list.empty() ? "" : "; ") + e.view.title;
      if (!e.how_much.empty()) list += " " + e.how_much;
    }
    if (list.empty()) return;
    text += (text.empty() ? "" : ". ") + std::string("<span class=\"") + style + "\">" + words +
            "</span> " + html(list);
  };
  add(Outcome::kWorse, "bad", "new is worse than base in");
  add(Outcome::kMixed, "", "new is better and worse than base, by stage, in");
  add(Outcome::kBetter, "good", "new is better than base in");
  add(Outcome::kSame, "", "not distinguishable:");
  add(Outcome::kUnknown, "", "from base to new, single runs:");
  return "<li><b>" + html(name_of(pair)) + ":</b> " + text + ".</li>";
}

/// The gate as it was given: what is judged is that it does not apply.
std::string gate_of(const Node& gate) {
  const std::string expected = gate["expected"].text();
  return expected.starts_with("not ") ? expected.substr(4) : expected;
}

std::string gates(const Node& root) {
  std::string out;
  for (const Node& gate : root["gates"].items()) {
    const std::string decision = gate["decision"].text();
    const std::string style = decision == "holds" ? "good" : decision == "fails" ? "bad" : "";
    out += "<li><b class=\"" + style + "\">" + html(decision) + "</b> " + "gate " +
           html(gate_of(gate)) + " (" + html(gate["of"].text()) +
           "): " + html(gate["found"].text()) + "</li>";
  }
  return out.empty() ? out : "<ul class=\"expect\">" + out + "</ul>";
}

std::string verdict_section(const Node& root) {
  const std::vector<Node> pairs = root["pairs"].items();
  std::string out = "<section class=\"verdict\" aria-label=\"Verdict\"><p class=\"big\">" +
                    html(headline(pairs)) + "</p>" + gates(root) + "<ul>";
  for (const Node& pair : pairs) out += bullet(pair);
  for (const Node& remark : root["remarks"].items())
    out += "<li class=\"remark\">" + html(remark.text()) + "</li>";
  std::string measures;
  for (const char* metric : kJudged)
    measures += (measures.empty() ? "" : ", ") + metric_view(metric).title;
  out += "</ul><p class=\"fine\">The verdict is about " + html(measures) +
         ". A measure is better or worse when its 95 % interval of new − base leaves zero out; "
         "where a whole run pools overloaded and healthy stages, its stages decide.";
  for (const Node& pair : pairs)
    if (!pair["note"].text().empty())
      out += " " + html(name_of(pair) + ": " + pair["note"].text()) + ".";
  return out + "</p></section>";
}

std::string changes_section(const Node& root) {
  const std::vector<Node> changes = root["changes"].items();
  std::string out = "<h2>What changed</h2>";
  if (changes.empty())
    return out +
           "<p>The resolved scenarios of base and new are the same, or a file does not "
           "state them.</p>";
  const std::size_t pairs = root["pairs"].items().size();
  out += open_table(4) +
         "<thead><tr><th>key</th><th class=\"text\">variants</th>"
         "<th class=\"text\">base</th><th class=\"text\">new</th></tr></thead><tbody>";
  const auto cell = [](const Node& value) {
    return "<td class=\"text\">" + (value.text().empty() ? "–" : html(value.text())) + "</td>";
  };
  for (const Node& change : changes) {
    std::vector<std::string> names;
    for (const Node& name : change["variants"].items()) names.push_back(name.text());
    out += "<tr><td class=\"path\"><code>" + html(change["path"].text()) +
           "</code></td><td class=\"text\">" +
           (names.size() == pairs && pairs > 1 ? "all" : html(joined(names))) + "</td>" +
           cell(change["base"]) + cell(change["new"]) + "</tr>";
  }
  return out + "</tbody></table></div>";
}

/// An estimate in base units with its interval.
std::optional<Datum> estimate(const Node& node, const MetricView& view) {
  std::optional<Datum> datum = node["mean"].datum();
  if (!datum) return datum;
  if (node["low"].datum() && node["high"].datum()) {
    datum->low = node["low"].number();
    datum->high = node["high"].number();
  }
  return in_base_unit(std::move(*datum), view);
}

std::string verdict_cell(const std::string& verdict) {
  const std::string style = verdict == "better" ? "good" : verdict == "worse" ? "bad" : "";
  return "<td class=\"" + style + "\">" + html(verdict) + "</td>";
}

std::string difference_cells(const Node& of, const MetricView& view) {
  const auto cell = [&](const char* side) {
    const std::optional<Datum> datum = estimate(of[side], view);
    return number_cell(datum ? &*datum : nullptr, view.unit);
  };
  std::optional<Datum> percent = of["percent"]["mean"].datum();
  std::string change = "<td>–</td>";
  if (percent)
    change = "<td data-path=\"" + html(percent->path) + "\" data-value=\"" +
             number_text(percent->value) + "\">" +
             html(percent_text(of["percent"]["mean"], of["percent"])) + "</td>";
  return cell("base") + cell("new") + change + verdict_cell(of["verdict"].text());
}

constexpr char kDifferenceHeads[] =
    "<th>base</th><th>new</th><th>change from base to new</th><th>new against base</th>";

/// Every metric that is compared.
std::string summary_table(const Node& pair) {
  const Node metrics = metrics_of(pair);
  std::string out = "<h3>" + html(name_of(pair) + ", " + scope_of(pair)) + "</h3>" + open_table(5) +
                    "<thead><tr><th>metric</th>" + kDifferenceHeads + "</tr></thead><tbody>";
  for (const std::string& metric : metrics.keys()) {
    const MetricView view = metric_view(metric);
    out +=
        "<tr><td>" + html(view.title) + "</td>" + difference_cells(metrics[metric], view) + "</tr>";
  }
  return out + "</tbody></table></div>";
}

std::string stage_label(const Node& stage) {
  const std::string rate = stage["requested_rate"].text();
  const std::string level = stage["concurrency"].text();
  if (!rate.empty()) return rate + " req/s";
  return level.empty() ? "stage " + stage["name"].text() : "concurrency " + level;
}

std::string stage_table(const Node& pair, const std::string& metric) {
  const MetricView view = metric_view(metric);
  std::string rows;
  for (const Node& stage : pair["stages"].items()) {
    const Node of = stage["metrics"][metric];
    if (of.keys().empty()) continue;
    std::string label = stage_label(stage);
    if (stage["reported"].text() == "false") label += ", warm-up";
    const bool base = stage["base_overloaded"].is_true();
    const bool changed = stage["new_overloaded"].is_true();
    if (base || changed)
      label += std::string(" (overloaded: ") +
               (base && changed ? "both"
                : base          ? "base"
                                : "new") +
               ")";
    rows += "<tr><td>" + html(label) + "</td>" + difference_cells(of, view) + "</tr>";
  }
  if (rows.empty()) return {};
  return "<h3>" + html(name_of(pair) + ": " + view.title) + "</h3>" + open_table(5) +
         "<thead><tr><th>load</th>" + kDifferenceHeads + "</tr></thead><tbody>" + rows +
         "</tbody></table></div>";
}

/// Base and new against the load. Empty when the stages do not say what they ask for.
std::string curve(const Node& pair, const std::string& metric) {
  const MetricView view = metric_view(metric);
  LineChart chart;
  chart.y = {.title = view.title, .unit = view.unit, .from_zero = true};
  chart.x = {.title = "requests/s asked for", .unit = Unit::kRequestsPerSecond};
  chart.series = {{.name = "base", .colour = 0}, {.name = "new", .colour = 1}};
  double most = 0;
  double least = INFINITY;
  for (const Node& stage : pair["stages"].items()) {
    if (stage["reported"].text() == "false") continue;
    std::optional<Datum> at = stage["requested_rate"].datum();
    if (!at) {
      at = stage["concurrency"].datum();
      chart.x = {.title = "concurrency", .unit = Unit::kCount};
    }
    for (std::size_t side = 0; side < 2; ++side) {
      const Node of = stage["metrics"][metric][side == 0 ? "base" : "new"];
      const std::optional<Datum> y = estimate(of, view);
      if (!at || !y) continue;
      most = std::max(most, y->value);
      least = std::min(least, y->value);
      const bool over = stage[side == 0 ? "base_overloaded" : "new_overloaded"].is_true();
      chart.series[side].points.push_back(
          {.x = at->value,
           .y = y->value,
           .low = y->low ? std::optional(std::max(0.0, *y->low)) : std::nullopt,
           .high = y->high,
           .overloaded = over});
    }
  }
  for (ChartSeries& s : chart.series)
    std::stable_sort(s.points.begin(), s.points.end(),
                     [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
  const auto& points = chart.series.front().points;
  if (points.size() < 2 || points.front().x == points.back().x) return {};
  chart.y.log = view.unit == Unit::kSeconds && least > 0 && most > 12 * least;
  const Effect e = effect_of(pair, metric);
  chart.title = name_of(pair) + ": " + view.title + " " +
                (e.outcome == Outcome::kBetter  ? "is better in new"
                 : e.outcome == Outcome::kWorse ? "is worse in new"
                 : e.outcome == Outcome::kMixed ? "is better in new at some loads, worse at others"
                 : e.outcome == Outcome::kSame  ? "does not differ by more than chance"
                                                : "in base and in new");
  chart.subtitle = "Bars are 95 % intervals.";
  return draw(chart);
}

/// The changes of the judged measures of one variant with their intervals, around no change.
std::string interval_chart(const Node& pair) {
  DotPlot plot{
      .title = name_of(pair) + ": change from base to new",
      .subtitle =
          "In percent of base, " + scope_of(pair) +
          ", with 95 % intervals. Discs are better, triangles worse, by stage where the whole run "
          "is not judged; squares are neither. Beyond ±100 % a point stands at the frame."};
  for (const char* metric : kJudged) {
    const Node percent = metrics_of(pair)[metric]["percent"];
    if (!percent["mean"].datum()) continue;
    const Outcome outcome = effect_of(pair, metric).outcome;
    DotPlot::Row row{.name = metric_view(metric).title,
                     .text = percent_text(percent["mean"], percent),
                     .style = outcome == Outcome::kBetter  ? DotPlot::Style::kGood
                              : outcome == Outcome::kWorse ? DotPlot::Style::kBad
                                                           : DotPlot::Style::kUnsure,
                     .percent = percent["mean"].number()};
    if (percent["low"].datum()) row.low = percent["low"].number();
    if (percent["high"].datum()) row.high = percent["high"].number();
    plot.rows.push_back(std::move(row));
  }
  return draw(plot);
}

std::string files_section(const Node& root) {
  std::string out = "<h2>Manifest</h2><dl>";
  for (const char* side : {"base", "new"}) {
    const Node file = root[side];
    std::vector<std::string> seeds;
    for (const Node& seed : file["seeds"].items()) seeds.push_back(seed.text());
    out += std::string("<dt>") + side + "</dt><dd>" + html(file["file"].text()) + " (" +
           html(file["scenario"].text()) + ", routesim " + html(file["version"].text()) +
           (seeds.size() == 1 ? ", seed " : ", seeds ") + html(joined(seeds)) + ")</dd>";
  }
  return out + "</dl>";
}

}  // namespace

std::string comparison_sections(const PageDocument& document) {
  const JsonDocument json(document.text);
  const Node root = json.root(document.path);
  const std::vector<Node> pairs = root["pairs"].items();
  const std::string base = root["base"]["scenario"].text();
  const std::string changed = root["new"]["scenario"].text();
  std::string out =
      "<header class=\"run\"><div class=\"kicker\">base: " + html(root["base"]["file"].text()) +
      " · new: " + html(root["new"]["file"].text()) + "</div><h1>" +
      html(base == changed ? base : base + " → " + changed) + ": before and after" +
      (pairs.empty() || pairs[0]["stage"].text().empty() ? "" : html(", " + scope_of(pairs[0]))) +
      "</h1></header>";
  out += verdict_section(root) + changes_section(root);
  std::string intervals;
  for (const Node& pair : pairs) intervals += interval_chart(pair);
  if (!intervals.empty())
    out += "<h2>How much changed</h2><div class=\"charts\">" + intervals + "</div>";
  std::string curves;
  for (const char* metric : kJudged)
    for (const Node& pair : pairs) curves += curve(pair, metric);
  if (!curves.empty())
    out += "<h2>Base and new as the load grows</h2><div class=\"charts\">" + curves + "</div>";
  out += "<h2>Every metric</h2>";
  for (const Node& pair : pairs) out += summary_table(pair);
  std::string stages;
  for (const Node& pair : pairs)
    if (pair["stages"].items().size() > 1)
      for (const char* metric : kJudged) stages += stage_table(pair, metric);
  if (!stages.empty())
    out += "<details><summary>Stage by stage, in numbers</summary>" + stages + "</details>";
  return out + files_section(root);
}

}  // namespace routesim::tools
