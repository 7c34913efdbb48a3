// The sections of one plan: the cheapest fleet, what the others cost, and why they fail.
#include <algorithm>

#include "tools/render/html_page.h"
#include "tools/render/svg_chart.h"

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
  if (!plan.rests_on.empty()) text += ". It rests on " + plan.rests_on;
  return text + "." + (plan.robustness.empty() ? "" : " " + plan.robustness);
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

std::string verdict_section(const PagePlan& plan) {
  std::string out = "<section class=\"verdict\" aria-label=\"Verdict\"><p class=\"big\">" +
                    html(headline(plan)) + "</p><ul>";
  for (const std::string& goal : plan.goals) out += "<li>goal: " + html(goal) + "</li>";
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

constexpr std::array<Shown, 6> kPlanColumns = {
    {{"price_per_hour", "price per hour", "", Unit::kDollars, true},
     {"price_per_million_output_tokens", "per million output tokens", "", Unit::kDollars, true},
     {"gpus", "GPUs", "", Unit::kCount, true},
     {"output_tokens_per_s", "output, tokens/s", "", Unit::kTokensPerSecond, false},
     {"knee_requests_per_s", "holds up to, req/s", "", Unit::kRequestsPerSecond, false},
     {"spare_replicas_today", "replicas to spare today", "", Unit::kCount, false}}};

std::string plans_table(const PagePlan& plan) {
  if (plan.plans.empty()) return {};
  std::string out =
      "<h2>Fleets that meet the goals</h2><div class=\"scroll\"><table><thead><tr>"
      "<th>fleet</th><th>step times</th>";
  for (const Shown& column : kPlanColumns) out += "<th>" + html(column.title) + "</th>";
  out += "<th>binds</th></tr></thead><tbody>";
  for (const PagePlan::Choice& choice : plan.plans) {
    out += "<tr><td>" + html(name_of(choice)) + "</td><td class=\"text\">" +
           html(choice.step_times) + "</td>";
    for (const Shown& column : kPlanColumns)
      out += number_cell(value_of(choice, column.key), column.unit);
    out += "<td class=\"text\">" + html(choice.binds) + "</td></tr>";
  }
  out +=
      "</tbody></table></div><details><summary>Goal by goal</summary><div class=\"scroll\">"
      "<table><thead><tr><th>fleet</th><th>goal</th><th>found</th><th></th></tr></thead><tbody>";
  for (const PagePlan::Choice& choice : plan.plans)
    for (const PagePlan::GoalView& goal : choice.goals)
      out += "<tr><td>" + html(name_of(choice)) + "</td><td class=\"text\">" + html(goal.goal) +
             "</td>" + number_cell(&goal.found, Unit::kNone) + "<td>" + html(goal.verdict) +
             "</td></tr>";
  return out + "</tbody></table></div></details>";
}

/// What each family's cheapest fleet costs; those without one are named in the table.
std::string price_chart(const PagePlan& plan) {
  BarChart chart;
  for (const PagePlan::Family& family : plan.families)
    if (family.price)
      chart.bars.push_back({.name = family.hardware + ", " + family.policy,
                            .value = family.price->value,
                            .colour = 0});
  if (chart.bars.empty()) return {};
  std::stable_sort(chart.bars.begin(), chart.bars.end(),
                   [](const auto& a, const auto& b) { return a.value < b.value; });
  chart.title = "The goals cost " + human(chart.bars.front().value, Unit::kDollars) +
                " an hour on " + chart.bars.front().name;
  if (chart.bars.size() > 1)
    chart.title +=
        ", " + human(chart.bars.back().value, Unit::kDollars) + " on " + chart.bars.back().name;
  chart.subtitle = "Price per hour of the cheapest fleet of each kind that meets the goals.";
  chart.unit = Unit::kDollars;
  return draw(chart);
}

/// Money against what it holds.
std::string frontier_chart(const PagePlan& plan) {
  LineChart chart;
  chart.x = {.title = "requests/s it holds",
             .unit = Unit::kRequestsPerSecond,
             .log = false,
             .from_zero = true,
             .min = {},
             .max = {}};
  chart.y = {.title = "price per hour",
             .unit = Unit::kDollars,
             .log = false,
             .from_zero = true,
             .min = {},
             .max = {}};
  const PagePlan::Choice* best = nullptr;
  double least = 0;
  for (std::size_t i = 0; i < plan.plans.size(); ++i) {
    const Datum* price = value_of(plan.plans[i], "price_per_hour");
    const Datum* knee = value_of(plan.plans[i], "knee_requests_per_s");
    if (price == nullptr || knee == nullptr || knee->value <= 0) continue;
    const double per_request = price->value / knee->value;
    if (best == nullptr || per_request < least) {
      best = &plan.plans[i];
      least = per_request;
    }
    chart.series.push_back(
        {.name = name_of(plan.plans[i]),
         .colour = i,
         .measured = false,
         .markers = true,
         .steps = false,
         .points = {{.x = knee->value, .y = price->value, .low = {}, .high = {}}}});
  }
  if (best == nullptr) return {};
  chart.title = "Most load for the money: " + name_of(*best);
  chart.subtitle = "Price per hour against the highest rate each plan holds.";
  return draw(chart);
}

std::string families_table(const PagePlan& plan) {
  if (plan.families.empty()) return {};
  std::string out =
      "<h2>Everything that was tried</h2><div class=\"scroll\"><table><thead><tr>"
      "<th>hardware</th><th>policy</th><th>smallest fleet</th><th>per hour</th>"
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
  out += verdict_section(plan) + plans_table(plan);
  const std::string charts = price_chart(plan) + frontier_chart(plan);
  if (!charts.empty()) out += "<h2>What it costs</h2><div class=\"charts\">" + charts + "</div>";
  return out + families_table(plan) + manifest(plan);
}

}  // namespace routesim::tools
