// The sections of one plan: the cheapest fleet, what the others cost, and why they fail.
#include <algorithm>

#include "tools/render/chart/chart.h"
#include "tools/render/metric_view.h"
#include "tools/render/page/html_page.h"
#include "tools/results/metric_goal.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

const Datum* value_of(const PagePlan::Choice& choice, std::string_view key) {
  const auto found = choice.values.find(key);
  return found == choice.values.end() ? nullptr : &found->second;
}

std::string name_of(const PagePlan::Choice& choice) {
  return choice.fleet + " on " + choice.hardware + " with " + choice.policy;
}

std::string headline(const PagePlan& plan) {
  if (plan.plans.empty()) return "No fleet in this space meets the goals.";
  const PagePlan::Choice& best = plan.plans.front();
  std::string text = "The cheapest fleet that meets the goals is " + name_of(best);
  if (const Datum* price = value_of(best, "price_per_hour"))
    text += ", " + human(price->value, Unit::kDollars) + " an hour";
  if (const Datum* tokens = value_of(best, "price_per_million_output_tokens"))
    text += " and " + human(tokens->value, Unit::kDollars) + " per million output tokens";
  return text + ".";
}

/// The inputs that decide the answer.
std::string manifest(const PagePlan& plan) {
  std::string out = "<h2>Manifest</h2><dl>";
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) out += "<dt>" + html(name) + "</dt><dd>" + html(value) + "</dd>";
  };
  add("scenario", plan.scenario);
  add("routesim", plan.version + (plan.commit.empty() ? "" : " (" + plan.commit + ")"));
  for (const auto& [accelerator, price] : plan.prices)
    add("one " + accelerator, human(price, Unit::kDollars) + " an hour");
  for (const PagePlan::Family& family : plan.families) {
    if (family.hash.empty()) continue;
    std::string sources;
    for (const std::string& source : family.sources)
      sources += (sources.empty() ? "" : "; ") + source;
    add(family.hardware + " with " + family.policy,
        "seed " + family.seed + ", scenario hash " + family.hash + "; " + sources);
  }
  return out + "</dl>";
}

/// Goals that every plan has, in words.
MetricView goal_view(const std::string& name) {
  if (name == "queue_growth") return {.title = "growth of the queue", .unit = Unit::kRatio};
  if (name == "sent_rate_error") return {.title = "error of the rate sent", .unit = Unit::kRatio};
  if (name == "goodput") return {.title = "requests within all bounds", .unit = Unit::kRatio};
  return metric_view(name);
}

/// Goals that every plan has: they say whether a run counts at all, so nothing is to spare.
bool is_built_in(const std::string& name) {
  return name == "queue_growth" || name == "sent_rate_error" || name == "failure_rate";
}

/// Whether the number must stay below its bound.
bool is_upper(const PagePlan::GoalView& goal) { return goal.goal.find('<') != std::string::npos; }

/// How far a fleet is from a bound: `18 % to spare`, `missed by 4.2 %`; empty where the bound is 0.
std::string margin_text(const PagePlan::GoalView& goal) {
  if (!goal.bound || *goal.bound == 0 || is_built_in(goal.name)) return {};
  const double share = goal.found.value / *goal.bound;
  const double spare = 100 * (is_upper(goal) ? 1 - share : share - 1);
  return spare >= 0 ? human(spare, Unit::kPercent) + " to spare"
                    : "missed by " + human(-spare, Unit::kPercent);
}

/// `TTFT p90 412 ms of 500 ms: 18 % to spare`.
std::string goal_sentence(const PagePlan::GoalView& goal) {
  const MetricView view = goal_view(goal.name);
  std::string text = view.title + " " + human(goal.found.value * view.scale, view.unit);
  if (goal.bound)
    text += std::string(is_upper(goal) ? " of at most " : " of at least ") +
            human(*goal.bound * view.scale, view.unit);
  const std::string margin = margin_text(goal);
  return text + (margin.empty() ? "" : ": " + margin);
}

std::string verdict_section(const PagePlan& plan) {
  std::string out = "<section class=\"verdict\" aria-label=\"Verdict\"><p class=\"big\">" +
                    html(headline(plan)) + "</p><ul>";
  if (plan.plans.empty()) {
    for (const std::string& goal : plan.goals) out += "<li>goal: " + html(goal) + "</li>";
  } else {
    for (const PagePlan::GoalView& goal : plan.plans.front().goals)
      if (!is_built_in(goal.name)) out += "<li>" + html(goal_sentence(goal)) + "</li>";
    if (!plan.rests_on.empty())
      out += "<li>It rests on " + html(plan.rests_on) + ". " + html(plan.robustness) + "</li>";
  }
  for (const PagePlan::Family& family : plan.families)
    if (plan.plans.empty() && !family.near_miss.empty())
      out += "<li>nearest miss: " +
             html(family.near_miss + " on " + family.hardware + " with " + family.policy) + "</li>";
  out += "</ul><p class=\"fine\">";
  if (plan.rate) out += "Planned for " + html(human(plan.rate->value, Unit::kRequestsPerSecond));
  if (plan.confidence)
    out += ", with a confidence of " + html(human(plan.confidence->value, Unit::kRatio));
  if (!plan.rests_on.empty())
    out +=
        ". The confidence covers chance between runs, not errors of step times, of KV capacity or "
        "of the load";
  return out + ".</p></section>";
}

constexpr std::array<Shown, 5> kPlanColumns = {
    {{"price_per_hour", "per hour", "", Unit::kDollars, true},
     {"price_per_million_output_tokens", "per million output tokens", "", Unit::kDollars, true},
     {"gpus", "GPUs", "", Unit::kCount, true},
     {"knee_requests_per_s", "holds up to, req/s", "", Unit::kRequestsPerSecond, false},
     {"spare_replicas_today", "replicas to spare today", "", Unit::kCount, false}}};

std::string fleet_cell(const std::string& fleet, const std::string& hardware,
                       const std::string& policy) {
  return "<td class=\"text\">" + html(fleet) + "<br><small>" + html(hardware + ", " + policy) +
         "</small></td>";
}

std::string plans_table(const PagePlan& plan) {
  std::string out =
      "<h2>Fleets that meet the goals</h2>" + open_table(8) + "<thead><tr><th>fleet</th>";
  for (const Shown& column : kPlanColumns) out += "<th>" + html(column.title) + "</th>";
  out += "<th class=\"text\">short of first</th><th>step times</th></tr></thead><tbody>";
  for (const PagePlan::Choice& choice : plan.plans) {
    out += "<tr>" + fleet_cell(choice.fleet, choice.hardware, choice.policy);
    for (const Shown& column : kPlanColumns)
      out += number_cell(value_of(choice, column.key), column.unit);
    out += "<td class=\"text\">" + html(choice.binds.empty() ? "–" : choice.binds) + "</td><td>" +
           html(choice.step_times) + "</td></tr>";
  }
  return out + "</tbody></table></div>";
}

/// Each goal of each fleet: what was found, and how far it is from the bound.
std::string goals_table(const PagePlan& plan) {
  std::string out = "<h2>Each goal, and what is to spare</h2>" + open_table(1 + plan.plans.size()) +
                    "<thead><tr>"
                    "<th>goal</th>";
  for (const PagePlan::Choice& choice : plan.plans)
    out += "<th>" + html(choice.fleet) + "<br><small>" +
           html(choice.hardware + ", " + choice.policy) + "</small></th>";
  out += "</tr></thead><tbody>";
  const std::vector<PagePlan::GoalView>& goals = plan.plans.front().goals;
  for (std::size_t g = 0; g < goals.size(); ++g) {
    const MetricView view = goal_view(goals[g].name);
    out += "<tr><td>" + html(view.title);
    if (goals[g].bound)
      out += "<br><small>" + std::string(is_upper(goals[g]) ? "at most " : "at least ") +
             html(human(*goals[g].bound * view.scale, view.unit)) + "</small>";
    out += "</td>";
    for (const PagePlan::Choice& choice : plan.plans) {
      if (g >= choice.goals.size()) {
        out += "<td>–</td>";
        continue;
      }
      const PagePlan::GoalView& goal = choice.goals[g];
      const Datum found = in_base_unit(goal.found, view);
      std::string cell = number_cell(&found, view.unit);
      const std::string margin = margin_text(goal);
      if (!margin.empty())
        cell.insert(cell.rfind("</td>"), "<br><small>" + html(margin) + "</small>");
      out += cell;
    }
    out += "</tr>";
  }
  return out + "</tbody></table></div>";
}

/// The cost of each family's cheapest fleet; families without one are named in the table.
std::string price_chart(const PagePlan& plan) {
  BarChart chart;
  for (const PagePlan::Family& family : plan.families)
    if (family.price)
      chart.bars.push_back({.name = family.hardware + ", " + family.policy,
                            .value = family.price->value,
                            .colour = 0});
  if (chart.bars.size() < 2) return {};
  std::stable_sort(chart.bars.begin(), chart.bars.end(),
                   [](const auto& a, const auto& b) { return a.value < b.value; });
  chart.title = "The goals cost " + human(chart.bars.front().value, Unit::kDollars) +
                " an hour on " + chart.bars.front().name + ", " +
                human(chart.bars.back().value, Unit::kDollars) + " on " + chart.bars.back().name;
  chart.subtitle = "Price per hour of the cheapest fleet of each kind that meets the goals.";
  chart.unit = Unit::kDollars;
  return draw(chart);
}

/// The bound on a metric, in base units, where a goal has one.
std::optional<double> bound_on(const PagePlan& plan, const std::string& metric) {
  for (const std::string& text : plan.goals)
    if (const auto goal = parse_metric_goal(text).value)
      if (goal->metric.metric + "." + goal->metric.statistic == metric && goal->upper)
        return goal->bound * metric_view(goal->metric.text).scale;
  return std::nullopt;
}

/// Price against a latency, for every fleet that the search ran.
std::string front_chart(const PagePlan& plan, const std::string& metric,
                        std::optional<Datum> PagePlan::Evaluated::*latency) {
  const MetricView view = metric_view(metric);
  Scatter s;
  s.x = {.title = "price per hour", .unit = Unit::kDollars};
  s.y = {.title = view.title, .unit = Unit::kSeconds, .log = true};
  for (const PagePlan::Evaluated& fleet : plan.evaluated) {
    const std::optional<Datum>& y = fleet.*latency;
    if (!y || !fleet.price) continue;
    const std::string family = fleet.hardware + ", " + fleet.policy;
    const auto at = std::find(s.groups.begin(), s.groups.end(), family);
    const auto group = static_cast<std::size_t>(at - s.groups.begin());
    if (at == s.groups.end()) s.groups.push_back(family);
    const bool meets = fleet.verdict == "meets";
    s.points.push_back({.x = fleet.price->value,
                        .y = y->value,
                        .group = group,
                        .hollow = !meets,
                        .tip = fleet.fleet + ", " + family + ": " + view.title + " " +
                               human(y->value, Unit::kSeconds) + " for " +
                               human(fleet.price->value, Unit::kDollars) + " an hour, " +
                               (meets         ? std::string("meets the goals")
                                : fleet.worst ? "misses " + fleet.worst->goal
                                              : "misses a goal")});
  }
  const std::size_t front = pareto_front(s).size();
  s.title = view.title + " against price: " + std::to_string(front) + " of " +
            std::to_string(s.points.size()) + " fleets are on the front";
  s.subtitle = "Every fleet that the search ran at the planned rate.";
  s.filled = "meets the goals";
  s.empty = "misses a goal";
  s.goal = bound_on(plan, metric);
  s.goal_text = "goal";
  return draw(s);
}

/// The nearest miss of each family: of its fleets that miss, the one with the smallest shortfall.
std::string misses_table(const PagePlan& plan) {
  std::vector<const PagePlan::Evaluated*> nearest;
  const auto shortfall = [](const PagePlan::Evaluated& e) {
    // A bound of 0 is missed by a factor without end, as the search itself has it.
    const double found = e.worst->found.value, bound = e.worst->bound.value_or(0);
    const double over = is_upper(*e.worst) ? found : bound;
    const double under = is_upper(*e.worst) ? bound : found;
    return under > 0 ? over / under : (over > under ? 1e300 : 0);
  };
  for (const PagePlan::Evaluated& e : plan.evaluated) {
    if (e.verdict == "meets" || !e.worst) continue;
    const auto same = std::find_if(nearest.begin(), nearest.end(), [&](const auto* other) {
      return other->hardware == e.hardware && other->policy == e.policy;
    });
    if (same == nearest.end())
      nearest.push_back(&e);
    else if (shortfall(e) < shortfall(**same))
      *same = &e;
  }
  if (nearest.empty()) return {};
  std::string out =
      "<h2>The nearest misses</h2>" + open_table(5) +
      "<thead><tr><th>fleet</th>"
      "<th>per hour</th><th class=\"text\">goal that failed</th><th>found</th><th>by how "
      "much</th></tr></thead><tbody>";
  for (const PagePlan::Evaluated* e : nearest) {
    const MetricView view = goal_view(e->worst->name);
    const Datum found = in_base_unit(e->worst->found, view);
    std::string why = margin_text(*e->worst);
    if (why.empty()) why = human(std::abs(found.value - e->worst->bound.value_or(0)), view.unit);
    if (e->verdict == "open") why = "the interval does not decide";
    out += "<tr>" + fleet_cell(e->fleet, e->hardware, e->policy) +
           number_cell(e->price ? &*e->price : nullptr, Unit::kDollars) + "<td class=\"text\">" +
           html(view.title) +
           (e->worst->bound ? std::string(is_upper(*e->worst) ? " at most " : " at least ") +
                                  html(human(*e->worst->bound * view.scale, view.unit))
                            : "") +
           "</td>" + number_cell(&found, view.unit) + "<td>" + html(why) + "</td></tr>";
  }
  return out + "</tbody></table></div>";
}

std::string families_table(const PagePlan& plan) {
  if (plan.families.empty()) return {};
  std::string out = "<h2>Everything that was tried</h2>" + open_table(6) +
                    "<thead><tr>"
                    "<th>hardware</th><th class=\"text\">policy</th><th class=\"text\">smallest "
                    "fleet</th><th>per hour</th>"
                    "<th>sizes tried</th><th>how</th></tr></thead><tbody>";
  for (const PagePlan::Family& family : plan.families) {
    const std::string fleet = !family.impossible.empty()  ? "impossible: " + family.impossible
                              : !family.fleet.empty()     ? family.fleet
                              : !family.near_miss.empty() ? "none; nearest " + family.near_miss
                                                          : "none";
    out += "<tr><td>" + html(family.hardware) + "</td><td class=\"text\">" + html(family.policy) +
           "</td><td class=\"text\">" + html(fleet) + "</td>" +
           number_cell(family.price ? &*family.price : nullptr, Unit::kDollars) +
           number_cell(family.tried ? &*family.tried : nullptr, Unit::kCount) + "<td>" +
           html(family.method) + "</td></tr>";
  }
  return out + "</tbody></table></div>";
}

}  // namespace

std::string plan_sections(const PagePlan& plan) {
  std::string out = "<header class=\"run\"><div class=\"kicker\">" + html(plan.name) +
                    " · plan · routesim " + html(plan.version) + "</div><h1>" +
                    html(plan.question.empty() ? plan.name : plan.question) + "</h1></header>";
  out += verdict_section(plan);
  if (!plan.plans.empty()) out += plans_table(plan) + goals_table(plan);
  const std::string charts = front_chart(plan, "ttft.p90", &PagePlan::Evaluated::ttft) +
                             front_chart(plan, "tpot.p90", &PagePlan::Evaluated::tpot) +
                             price_chart(plan);
  if (!charts.empty()) out += "<h2>What money buys</h2><div class=\"charts\">" + charts + "</div>";
  return out + misses_table(plan) + families_table(plan) + manifest(plan);
}

}  // namespace routesim::tools
