// The answer of a plan: the cheapest fleet, what the others cost, and why they fail.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/render/document.h"
#include "tools/results/metric_name.h"
#include "tools/results/text_table.h"
#include "tools/results/trust_errors.h"
#include "tools/study/plan/plan_record.h"

namespace routesim::tools {

namespace {

using Choice = PlanRecord::Choice;
using Evaluated = PlanRecord::Evaluated;
using Family = PlanRecord::Family;
using Goal = PlanRecord::Goal;

/// `$131,400`, for sums that no cent is counted in.
std::string sum_text(double v) {
  std::string text = fixed_text(v, 0);
  for (std::size_t at = text.size(); at > 3; text.insert(at, ",")) at -= 3;
  return "$" + text;
}

std::string dollars(double v) { return "$" + fixed_text(v, 2); }

/// `H100 tp2, precise`.
template <class T>
std::string family_text(const T& of) {
  return of.policy.empty() ? of.hardware : of.hardware + ", " + of.policy;
}

std::string name_of(const Choice& choice) {
  return fleet_text(choice.replicas) + " of " + family_text(choice);
}

Cell number(std::optional<double> value, Unit unit, const std::string& path, std::string text) {
  if (!value || !std::isfinite(*value)) return {.text = "-"};
  return {.text = std::move(text), .number = Datum{.value = *value, .path = path}, .unit = unit};
}
Cell price(std::optional<double> value, const std::string& path) {
  return number(value, Unit::kDollars, path, value ? fixed_text(*value, 2) : "");
}
Cell count(std::optional<std::int64_t> value, const std::string& path) {
  if (!value) return {.text = "-"};
  return number(static_cast<double>(*value), Unit::kCount, path, std::to_string(*value));
}

// ------------------------------------------------------------------------------ goals

/// Goals that every plan has: they say whether a run counts at all, so nothing is to spare.
bool is_built_in(const std::string& name) {
  return name == "queue_growth" || name == "sent_rate_error" || name == "failure_rate";
}

MetricView goal_view(const std::string& name) {
  if (name == "queue_growth") return {.title = "growth of the queue", .unit = Unit::kRatio};
  if (name == "sent_rate_error") return {.title = "error of the rate sent", .unit = Unit::kRatio};
  if (name == "goodput") return {.title = "requests within all bounds", .unit = Unit::kRatio};
  if (const std::string_view of = "goodput of "; name.starts_with(of))
    return {.title = "requests of " + name.substr(of.size()) + " within its bounds",
            .unit = Unit::kRatio};
  return metric_view(name);
}

/// Whether the number must stay below its bound.
bool is_upper(const std::string& goal) { return goal.find('<') != std::string::npos; }

/// How far a fleet is from a bound: `18 % to spare`, `missed by 4.2 %`; empty where the bound is 0.
std::string margin_text(const std::string& goal, const std::string& name,
                        std::optional<double> bound, double found) {
  if (!bound || *bound == 0 || is_built_in(name) || !std::isfinite(found)) return {};
  const double share = found / *bound;
  const double spare = 100 * (is_upper(goal) ? 1 - share : share - 1);
  return spare >= 0 ? human(spare, Unit::kPercent) + " to spare"
                    : "missed by " + human(-spare, Unit::kPercent);
}

/// `TTFT p90 412 ms of at most 500 ms: 18 % to spare`.
std::string goal_sentence(const Goal& goal) {
  const MetricView view = goal_view(goal.name);
  std::string text = view.title + " " + human(goal.mean * view.scale, view.unit);
  if (goal.bound)
    text += std::string(is_upper(goal.goal) ? " of at most " : " of at least ") +
            human(*goal.bound * view.scale, view.unit);
  const std::string margin = margin_text(goal.goal, goal.name, goal.bound, goal.mean);
  return text + (margin.empty() ? "" : ": " + margin);
}

std::string state_text(const Goal& goal) {
  std::string text = plan_number(goal.mean);
  if (std::isfinite(goal.half_width) && goal.half_width > 0)
    text += " ±" + plan_number(goal.half_width);
  return text;
}

Cell goal_cell(const Goal& goal, const std::string& path) {
  if (!std::isfinite(goal.mean)) return {.text = "-"};
  const MetricView view = goal_view(goal.name);
  Datum datum{.value = goal.mean, .path = path + "/mean"};
  if (std::isfinite(goal.half_width)) {
    datum.low = goal.mean - goal.half_width;
    datum.high = goal.mean + goal.half_width;
  }
  const std::string margin = margin_text(goal.goal, goal.name, goal.bound, goal.mean);
  return {.text = state_text(goal) + (margin.empty() ? "" : ", " + margin),
          .number = in_base_unit(std::move(datum), view),
          .unit = view.unit,
          .note = {.text = margin}};
}

// ------------------------------------------------------------------------------ verdict

/// The replicas that the plan was asked to do without: ` with 1 replica to spare`.
std::string spares_text(const Choice& plan) {
  if (plan.needed.items.empty() || plan.replicas.items.empty()) return "";
  const auto spares = plan.replicas.items.front().second - plan.needed.items.front().second;
  return spares == 0 ? ""
                     : " with " + counted(static_cast<std::size_t>(spares), "replica") +
                           (plan.needed.items.size() > 1 ? " of each pool" : "") + " to spare";
}

std::string headline(const PlanRecord& r) {
  if (r.plans.empty() && r.partial)
    return r.evaluated.empty() ? "No fleet was tried yet."
                               : "No fleet that was tried so far meets the goals.";
  if (r.plans.empty()) return "No fleet in this space meets the goals.";
  const Choice& best = r.plans.front();
  std::string text = std::string(r.partial ? "The cheapest fleet so far that meets the goals"
                                           : "The cheapest fleet that meets the goals") +
                     spares_text(best) + " is " + name_of(best) + ", " +
                     dollars(best.price_per_hour) + " an hour";
  if (best.price_per_million_output_tokens)
    text += " and " + dollars(*best.price_per_million_output_tokens) +
            " per million output tokens" + (r.day ? " at the peak" : "");
  return text + ".";
}

/// `failure_rate <= 0.01 in a roll-out`.
std::string worst_text(const PlanRecord::Worst& worst) {
  return worst.goal + (worst.survival.empty() ? "" : " in " + printable(worst.survival));
}

/// `with ttft_ms.p90 612 (goal ttft_ms.p90 < 500)`, `which does not answer 1.9 % of what is sent`.
std::string found_text(const PlanRecord::Worst& worst) {
  if (worst.name == "queue_growth" && worst.mean)
    return "which does not answer " + human(100 * *worst.mean, Unit::kPercent) + " of what is sent";
  return fmt::format("with {} {} (goal {})", worst.name,
                     worst.mean ? plan_number(*worst.mean) : "-", worst_text(worst));
}

/// The nearest of all misses, and of which goal; with a plan, of the fleets that cost less.
std::string nearest_miss(const PlanRecord& r) {
  // A shortfall without end is null in the file.
  const auto shortfall = [](const Evaluated& e) {
    double v = e.worst->shortfall.value_or(INFINITY);
    if (std::isnan(v)) v = INFINITY;
    return e.worst->survival.empty() ? 1 + v : window_distance(v, e.worst->mean.value_or(INFINITY));
  };
  const double most = r.plans.empty() ? INFINITY : r.plans.front().price_per_hour;
  const Evaluated* nearest = nullptr;
  for (const Evaluated& e : r.evaluated)
    if (e.worst && (r.plans.empty() || e.price_per_hour.value_or(INFINITY) < most) &&
        (nearest == nullptr || shortfall(e) < shortfall(*nearest)))
      nearest = &e;
  if (nearest == nullptr || (!r.plans.empty() && std::isinf(shortfall(*nearest)))) return {};
  return fmt::format(
      "{}: {} of {}{}, {}{}.", r.plans.empty() ? "Nearest" : "Nearest of what costs less",
      fleet_text(nearest->replicas), family_text(*nearest),
      nearest->price_per_hour ? " at " + dollars(*nearest->price_per_hour) + "/h" : "",
      found_text(*nearest->worst),
      nearest->verdict == GoalVerdict::kOpen ? ", which the interval does not decide" : "");
}

/// What the fleet costs for longer, and what of it may be gone.
std::string cost_sentence(const Choice& best) {
  std::string text = "It costs " + sum_text(best.price_per_hour * kHoursOfMonth) + " a month and " +
                     sum_text(best.price_per_hour * kHoursOfYear) + " a year";
  for (const auto& [price, how] : {std::pair(best.reserved_price_per_hour, " reserved"),
                                   {best.spot_price_per_hour, " on spot GPUs"}})
    if (price) text += ", " + sum_text(*price * kHoursOfMonth) + " a month" + how;
  text += ".";
  if (best.paid_gpus && best.gpus && *best.paid_gpus > *best.gpus)
    text += fmt::format(" Of the {} GPUs of its whole nodes, {} are idle.", *best.paid_gpus,
                        *best.paid_gpus - *best.gpus);
  if (!best.spare_replicas_today) return text;
  const std::int64_t spare = *best.spare_replicas_today;
  if (spare == 0) return text + " At today's rate it needs every replica.";
  text += " At today's rate it holds without any " +
          (spare == 1 ? "one replica" : std::to_string(spare) + " replicas");
  return text + (best.replicas.items.size() > 1 ? " of one pool." : ".");
}

/// `March 2027`, or `month 4` where the plan names no first month.
std::string month_text(const PlanRecord& r, std::int64_t month) {
  constexpr std::array<const char*, 12> kNames = {"January",   "February", "March",    "April",
                                                  "May",       "June",     "July",     "August",
                                                  "September", "October",  "November", "December"};
  const auto first = r.from ? parse_month(*r.from) : std::nullopt;
  if (!first) return "month " + std::to_string(month + 1);
  const auto at = static_cast<std::size_t>(*first + month);
  return std::string(kNames[at % 12]) + " " + std::to_string(at / 12);
}

/// When the fleet must grow, and the sum of all months.
std::string months_sentence(const PlanRecord& r, const Choice& best) {
  if (!best.months) return {};
  const std::vector<PlanRecord::Month>& months = *best.months;
  const std::string rate =
      human(100 * r.growth_per_month.value_or(0), Unit::kPercent) + " more each month";
  const std::string all = counted(static_cast<std::size_t>(r.months.value_or(0)), "month");
  if (months.size() < 2)
    return fmt::format("With {}, no server is due within {}; that costs {}.", rate, all,
                       sum_text(best.price_of_months.value_or(0)));
  const PlanRecord::Month& next = months[1];
  std::string text = next.fleet ? fmt::format("With {}, the next server is due in {}, at {}: {}.",
                                              rate, month_text(r, next.month),
                                              human(next.requests_per_s, Unit::kRequestsPerSecond),
                                              fleet_text(next.fleet->replicas))
                                : fmt::format("With {}, no size of this space holds {}, at {}.",
                                              rate, month_text(r, next.month),
                                              human(next.requests_per_s, Unit::kRequestsPerSecond));
  if (!next.fleet) return text;
  const PlanRecord::Month& last = months.back();
  if (!last.fleet)
    return text +
           fmt::format(" From {} on, no size of this space holds.", month_text(r, last.month));
  return text + fmt::format(" The {} cost {}; the last takes {} at {} a month.", all,
                            sum_text(best.price_of_months.value_or(0)),
                            fleet_text(last.fleet->replicas),
                            sum_text(last.fleet->price_per_hour * kHoursOfMonth));
}

// ------------------------------------------------------------------------------ windows

/// What it costs that the fleet holds through the events.
std::string survives_sentence(const Choice& best) {
  if (!best.survives || !best.unprepared) return {};
  std::vector<std::string> names, misses;
  bool open = true;
  std::string late;
  for (const PlanRecord::Window& w : *best.survives) {
    names.push_back(printable(w.name));
    open = open && !(w.unprepared_misses && w.unprepared_misses->shortfall.value_or(1) > 0);
    if (w.unprepared_misses)
      misses.push_back(
          fmt::format("{} ({})", worst_text(*w.unprepared_misses),
                      w.unprepared_misses->mean ? plan_number(*w.unprepared_misses->mean) : "-"));
    if (w.recovery_s > w.window_s)
      late += fmt::format(" Through {} it is judged for {} only; all servers are back after {}.",
                          printable(w.name), human(w.window_s, Unit::kSeconds),
                          human(w.recovery_s, Unit::kSeconds));
  }
  const auto& bare = best.unprepared->replicas.items;
  const bool one = bare.size() == 1 && bare.front().second == 1;
  const std::string through = fmt::format("{}", fmt::join(names, " and through "));
  if (bare == best.replicas.items)
    return "It also holds through " + through +
           ", which costs nothing: without that the fleet would be the same." + late;
  return fmt::format(
      "It also holds through {}, which costs {} an hour: {} at {}/h {} the steady rate, but {}.{}",
      through, dollars(best.price_per_hour - best.unprepared->price_per_hour),
      fleet_text(best.unprepared->replicas), dollars(best.unprepared->price_per_hour),
      one ? "holds" : "hold",
      misses.empty() ? "not through the events while a spare is gone"
                     : fmt::format("{} {}",
                                   open  ? "may not meet"
                                   : one ? "misses"
                                         : "miss",
                                   fmt::join(misses, " and ")),
      late);
}

/// Each fleet through each event.
Table windows_table(const PlanRecord& r, const std::string& path) {
  Table table{.columns = {{"fleet", true}, {"event", true}, {"judged for"}, {"all back after"}}};
  const auto& first = r.plans.front().survives;
  if (!first || first->empty()) return table;
  for (const Goal& goal : first->front().goals) table.columns.push_back({goal.name});
  for (std::size_t i = 0; i < r.plans.size(); ++i)
    for (std::size_t w = 0; r.plans[i].survives && w < r.plans[i].survives->size(); ++w) {
      const PlanRecord::Window& window = (*r.plans[i].survives)[w];
      const std::string here =
          path + "/plans/" + std::to_string(i) + "/survives/" + std::to_string(w);
      const auto time = [&](double seconds, const char* key) {
        return number(seconds, Unit::kSeconds, here + key, human(seconds, Unit::kSeconds));
      };
      std::vector<Cell> row = {{.text = name_of(r.plans[i])},
                               {.text = window.name},
                               time(window.window_s, "/window_s"),
                               time(window.recovery_s, "/recovery_s")};
      for (std::size_t g = 0; g < window.goals.size(); ++g)
        row.push_back(goal_cell(window.goals[g], here + "/goals/" + std::to_string(g)));
      table.rows.push_back(std::move(row));
    }
  return table;
}

// ------------------------------------------------------------------------------ days

/// `hour`, or `stage` where the day is reported in others.
std::string stage_word(const PlanRecord& r) {
  return r.day && r.day->report_every_s == 3600 ? "hour" : "stage";
}

/// `meets every goal in every hour`, `misses ttft_ms.p99 in 2 of 24 hours, worst at 09:00`.
std::string day_text(const PlanRecord& r, const DayOfFleet& day) {
  const bool some =
      std::ranges::any_of(r.goals, [](const std::string& g) { return g.find("_per_s") != g.npos; });
  if (day.meets)
    return std::string("meets every goal ") + (some ? "but those of throughput " : "") +
           "in every " + stage_word(r);
  std::vector<std::string> misses;
  for (const DayGoal& goal : day.goals)
    if (goal.missed > 0)
      misses.push_back(fmt::format("{} in {} of {}, worst at {} ({})", goal.name, goal.missed,
                                   counted(static_cast<std::size_t>(day.stages), stage_word(r)),
                                   goal.worst_at, goal.worst ? plan_number(*goal.worst) : "-"));
  return misses.empty() ? "misses a goal over the day as a whole"
                        : fmt::format("misses {}", fmt::join(misses, "; "));
}

/// `hpa costs $400.00 a day instead of $540.00 (-26 %) and meets every goal in every hour.`
std::string autoscaled_text(const PlanRecord& r, const DayOfFleet& fixed, const DayOfFleet& day) {
  std::string change;
  if (fixed.price_per_day > 0)
    change = fmt::format(" ({:+.0f} %)", 100 * (day.price_per_day / fixed.price_per_day - 1));
  return fmt::format("{} costs {} a day instead of {}{} {} {}.", printable(day.autoscaler),
                     dollars(day.price_per_day), dollars(fixed.price_per_day), change,
                     day.meets ? "and" : "but", day_text(r, day)) +
         (day.note.empty() ? "" : " But " + printable(day.note, 500) + ".");
}

std::string mode_text(const DayOfFleet& day) {
  return day.autoscaler.empty() ? "fixed servers" : printable(day.autoscaler);
}

std::vector<std::string> day_sentences(const PlanRecord& r) {
  const Choice& best = r.plans.front();
  if (!r.day || !best.day || best.day->empty()) return {};
  const std::vector<DayOfFleet>& modes = *best.day;
  const double grown = 1 + r.growth.value_or(0);
  std::vector<std::string> out = {fmt::format(
      "The day's peak, the mean of its busiest {}, is {}; the day's mean is {}. With fixed servers "
      "the fleet costs {} a day and {}.",
      stage_word(r), human(r.day->peak * grown, Unit::kRequestsPerSecond),
      human(r.day->mean * grown, Unit::kRequestsPerSecond), dollars(modes.front().price_per_day),
      day_text(r, modes.front()))};
  for (std::size_t i = 1; i < modes.size(); ++i)
    out.push_back(autoscaled_text(r, modes.front(), modes[i]));
  std::string cheapest;
  double least = INFINITY;
  for (const Choice& plan : r.plans)
    for (std::size_t m = 0; plan.day && m < plan.day->size(); ++m) {
      const DayOfFleet& day = (*plan.day)[m];
      if (!day.meets || day.price_per_day >= least) continue;
      least = day.price_per_day;
      cheapest = name_of(plan) + " with " + mode_text(day) + ", " + dollars(least) + " a day";
    }
  if (std::size_t total = modes.size() * r.plans.size(); total > 1)
    out.push_back(cheapest.empty()
                      ? "No fleet and autoscaler of these meets every goal in every " +
                            stage_word(r) + "."
                      : "The cheapest that meets every goal over the day: " + cheapest + "." +
                            (best.survives ? " Events were asked of fixed servers alone." : ""));
  return out;
}

/// Each fleet over the day, with fixed servers and with each autoscaler.
Table day_table(const PlanRecord& r, const std::string& path) {
  Table table{.columns = {{"fleet", true},
                          {"servers", true},
                          {"mean servers"},
                          {"server-hours"},
                          {"$/day"},
                          {stage_word(r) + "s that miss"}}};
  const auto& first = r.plans.front().day;
  if (!first || first->empty()) return table;
  for (const DayGoal& goal : first->front().goals)
    table.columns.push_back({goal.name + " at worst"});
  for (std::size_t i = 0; i < r.plans.size(); ++i)
    for (std::size_t m = 0; r.plans[i].day && m < r.plans[i].day->size(); ++m) {
      const DayOfFleet& day = (*r.plans[i].day)[m];
      const std::string here =
          path + "/plans/" + std::to_string(i) + "/day/" + std::to_string(m) + "/";
      double servers = 0;
      for (const auto& [pool, mean] : day.servers.items) servers += mean;
      std::vector<Cell> row = {{.text = name_of(r.plans[i])},
                               {.text = mode_text(day)},
                               {.text = plan_number(servers)},
                               number(day.server_hours, Unit::kCount, here + "server_hours",
                                      plan_number(day.server_hours)),
                               price(day.price_per_day, here + "price_per_day"),
                               {.text = fmt::format("{} of {}", day.missed, day.stages)}};
      for (std::size_t g = 0; g < day.goals.size(); ++g) {
        const DayGoal& goal = day.goals[g];
        const MetricView view = goal_view(goal.name);
        Cell cell{.text = "- at " + goal.worst_at};
        if (goal.worst && std::isfinite(*goal.worst))
          cell = {.text = plan_number(*goal.worst) + " at " + goal.worst_at,
                  .number = in_base_unit({.value = *goal.worst,
                                          .path = here + "goals/" + std::to_string(g) + "/worst"},
                                         view),
                  .unit = view.unit};
        row.push_back(std::move(cell));
      }
      table.rows.push_back(std::move(row));
    }
  return table;
}

std::string errors_sentence(const Choice& best) {
  std::vector<TrustError> errors;
  for (const TrustRecord::Validation& v : best.validation)
    errors.push_back({.trust = best.step_times,
                      .quantity = v.quantity,
                      .cells = static_cast<std::size_t>(v.published_numbers),
                      .mean = v.mean_absolute_error_percent,
                      .worst = v.worst_error_percent});
  return "For such step times, " + trust_errors_text(best.step_times, errors) + ".";
}

std::string demand_sentence(const PlanRecord& r) {
  std::vector<std::string> goals;
  std::string failures;  // They are counted: no confidence is about them.
  for (const std::string& goal : r.goals)
    if (!is_built_in(goal.substr(0, goal.find(' '))) || goal.find("<=") == goal.npos)
      goals.push_back(goal);
    else if (goal.starts_with("failure_rate"))
      failures = "; and " + goal;
  std::string text = "Planned for " + human(r.planned_rate.value_or(0), Unit::kRequestsPerSecond);
  if (r.rate_today && r.growth.value_or(0) > 0)
    text += " (" + human(*r.rate_today, Unit::kRequestsPerSecond) + " today, " +
            human(100 * *r.growth, Unit::kPercent) + " growth)";
  return text + fmt::format(". Goals, each with {} % confidence: {}{}.",
                            number_text(100 * r.confidence.value_or(0)), fmt::join(goals, ", "),
                            failures);
}

/// A sentence about each policy whose router is the limit.
std::vector<std::string> router_sentences(const PlanRecord& r) {
  std::map<std::string, double> rates;
  for (const Family& family : r.families)
    if (family.router_rate)
      rates[family.policy] = std::max(rates[family.policy], *family.router_rate);
  std::vector<std::string> out;
  for (const auto& [policy, rate] : rates)
    out.push_back(fmt::format(
        "No number of servers meets the goals with {}: its router decides {} req/s. More of "
        "its processes (routing.router_replicas) may.",
        printable(policy), human(rate, Unit::kNone)));
  return out;
}

StudyVerdict verdict(const PlanRecord& r) {
  StudyVerdict out{.headline = headline(r)};
  const auto say = [&out](std::string text) {
    if (!text.empty()) out.points.push_back({{std::move(text)}});
  };
  if (r.partial)
    say("This plan is partial: the search is in " + *r.partial +
        ". A cheaper fleet may be left to try, and what later steps find is not known.");
  if (r.plans.empty()) {
    say(nearest_miss(r));
    for (std::string& text : router_sentences(r)) say(std::move(text));
  } else {
    if (r.rests_on)
      say("It rests on " + *r.rests_on + "." + (r.robustness ? " " + *r.robustness : ""));
    say(cost_sentence(r.plans.front()));
    say(survives_sentence(r.plans.front()));
    for (std::string& text : day_sentences(r)) say(std::move(text));
    say(months_sentence(r, r.plans.front()));
    say(nearest_miss(r));
    for (std::string& text : router_sentences(r)) say(std::move(text));
    for (const Goal& goal : r.plans.front().goals)
      if (!is_built_in(goal.name)) say(goal_sentence(goal));
    say(errors_sentence(r.plans.front()));
  }
  say(demand_sentence(r));
  out.fine = fmt::format(
      "The {} % confidence covers chance between runs, not errors of step times, of KV capacity or "
      "of the load.",
      number_text(100 * r.confidence.value_or(0)));
  return out;
}

// ------------------------------------------------------------------------------ tables

/// `36.00 to 54.00`: at the ends of the error band; `-` where no size holds.
std::string band_prices(const std::optional<PlanRecord::Band>& band) {
  if (!band) return "-";
  const auto end = [](const std::optional<PlanRecord::Fleet>& fleet) {
    return fleet ? fixed_text(fleet->price_per_hour, 2) : "-";
  };
  return end(band->shorter) + " to " + end(band->longer);
}

/// Columns as rows, for a phone: its first column names what the others have.
Table turned(const Table& table) {
  Table out{.columns = {{"fleet", true}}};
  for (const std::vector<Cell>& row : table.rows) out.columns.push_back({row.front().text});
  for (std::size_t c = 1; c < table.columns.size(); ++c) {
    std::vector<Cell>& row = out.rows.emplace_back();
    row.push_back({.text = table.columns[c].title});
    for (const std::vector<Cell>& from : table.rows) row.push_back(from[c]);
  }
  return out;
}

Table plans_table(const PlanRecord& r, const std::string& path) {
  Table table{.columns = {{"fleet", true},
                          {"hardware", true},
                          {"policy", true},
                          {"step times", true},
                          {"GPUs"},
                          {"$/h"},
                          {"knee req/s"},
                          {"used"},
                          {"spare today"},
                          {"short of first"}}};
  for (std::size_t i = 0; i < r.plans.size(); ++i) {
    const Choice& plan = r.plans[i];
    const std::string here = path + "/plans/" + std::to_string(i) + "/";
    const std::string binds = plan.binding ? plan.binding->resource : "";
    table.rows.push_back(
        {{.text = fleet_text(plan.replicas)},
         {.text = plan.hardware},
         {.text = plan.policy},
         {.text = std::string(enum_name(plan.step_times))},
         count(plan.gpus, here + "gpus"),
         price(plan.price_per_hour, here + "price_per_hour"),
         plan.knee_fails_at
             ? number(plan.knee_requests_per_s, Unit::kRequestsPerSecond,
                      here + "knee_requests_per_s", plan_number(*plan.knee_requests_per_s))
             : Cell{.text = "over " + plan_number(plan.knee_requests_per_s.value_or(0))},
         number(plan.utilisation, Unit::kRatio, here + "utilisation",
                plan.utilisation ? human(100 * *plan.utilisation, Unit::kPercent) : ""),
         count(plan.spare_replicas_today, here + "spare_replicas_today"),
         {.text = binds.empty() ? "-" : binds}});
  }
  return table;
}

/// What each fleet costs, in every measure that a budget is made in.
Table costs_table(const PlanRecord& r, const std::string& path) {
  const auto has = [&r](PlanRecord::Number Choice::*price) {
    return std::ranges::any_of(r.plans, [&](const Choice& c) { return (c.*price).has_value(); });
  };
  const bool reserved = has(&Choice::reserved_price_per_hour);
  const bool spot = has(&Choice::spot_price_per_hour);
  Table table{
      .columns = {
          {"fleet", true}, {"$/h"}, {"$/month"}, {"$/year"}, {"$/h within error"}, {"$/M tokens"}}};
  if (reserved) table.columns.push_back({"$/h reserved"});
  if (spot) table.columns.push_back({"$/h spot"});
  for (std::size_t i = 0; i < r.plans.size(); ++i) {
    const Choice& plan = r.plans[i];
    const std::string here = path + "/plans/" + std::to_string(i) + "/";
    std::vector<Cell>& row = table.rows.emplace_back();
    row = {{.text = name_of(plan)},
           price(plan.price_per_hour, here + "price_per_hour"),
           {.text = sum_text(plan.price_per_hour * kHoursOfMonth).substr(1)},
           {.text = sum_text(plan.price_per_hour * kHoursOfYear).substr(1)},
           {.text = band_prices(plan.step_time_band)},
           price(plan.price_per_million_output_tokens, here + "price_per_million_output_tokens")};
    if (reserved)
      row.push_back(price(plan.reserved_price_per_hour, here + "reserved_price_per_hour"));
    if (spot) row.push_back(price(plan.spot_price_per_hour, here + "spot_price_per_hour"));
  }
  return table;
}

/// The months in which a fleet must grow, of every fleet that was found.
Table months_table(const PlanRecord& r, const std::string& path) {
  Table table{.columns = {{"of", true}, {"month", true}, {"req/s"}, {"fleet", true}, {"$/month"}}};
  for (std::size_t i = 0; i < r.plans.size(); ++i) {
    if (!r.plans[i].months) continue;
    for (std::size_t m = 0; m < r.plans[i].months->size(); ++m) {
      const PlanRecord::Month& month = (*r.plans[i].months)[m];
      const std::string here =
          path + "/plans/" + std::to_string(i) + "/months/" + std::to_string(m) + "/";
      table.rows.push_back(
          {{.text = m == 0 ? family_text(r.plans[i]) : ""},
           {.text = month_text(r, month.month)},
           number(month.requests_per_s, Unit::kRequestsPerSecond, here + "requests_per_s",
                  plan_number(month.requests_per_s)),
           {.text = month.fleet ? fleet_text(month.fleet->replicas) : "no size holds"},
           {.text = month.fleet ? sum_text(month.fleet->price_per_hour * kHoursOfMonth).substr(1)
                                : "-"}});
    }
  }
  return table;
}

/// Fleets that meet the goals and that none other beats, the cheapest first.
Table front_table(const PlanRecord& r, const std::string& path) {
  constexpr std::size_t kMostRows = 15;
  std::vector<std::size_t> front;
  for (std::size_t i = 0; i < r.evaluated.size(); ++i)
    if (const Evaluated& e = r.evaluated[i];
        e.on_front.value_or(false) && e.price_per_hour && e.ttft_p90_s && e.tpot_p90_s)
      front.push_back(i);
  const auto price_of = [&r](std::size_t i) { return *r.evaluated[i].price_per_hour; };
  std::ranges::stable_sort(front, {}, price_of);
  Table table{.columns = {{"fleet", true}, {"$/h"}, {"TTFT p90, ms"}, {"TPOT p90, ms"}}};
  if (front.size() < 2) return table;
  front.resize(std::min(front.size(), kMostRows));
  for (const std::size_t i : front) {
    const Evaluated& e = r.evaluated[i];
    const std::string here = path + "/evaluated/" + std::to_string(i) + "/";
    table.rows.push_back({{.text = fleet_text(e.replicas) + " of " + family_text(e)},
                          price(e.price_per_hour, here + "price_per_hour"),
                          number(e.ttft_p90_s, Unit::kSeconds, here + "ttft_s.p90",
                                 plan_number(1e3 * *e.ttft_p90_s)),
                          number(e.tpot_p90_s, Unit::kSeconds, here + "tpot_s.p90",
                                 plan_number(1e3 * *e.tpot_p90_s))});
  }
  return table;
}

/// The resource that a plan runs short of, just above its knee.
std::string binding_sentence(const Choice& plan) {
  const Binding& b = *plan.binding;
  if (!plan.knee_fails_at)
    return "no rate up to " + plan_number(plan.knee_requests_per_s.value_or(0)) + " req/s fails.";
  const double missed_by = b.missed_by.value_or(INFINITY);
  const double with_double = b.missed_by_with_double.value_or(INFINITY);
  const std::string what = b.goal.empty()       ? "nothing up to the limit"
                           : b.resource.empty() ? "nothing alone"
                                                : b.resource;
  std::string text =
      fmt::format("{} {}: at {} req/s {} ", what, what.ends_with("blocks") ? "bind" : "binds",
                  plan_number(*plan.knee_fails_at), b.goal);
  // A larger share of a lower bound is better.
  const auto goal = std::ranges::find(plan.goals, b.goal, &Goal::name);
  const bool is_lower = goal != plan.goals.end() && !is_upper(goal->goal);
  const auto of_bound = [&](double shortfall) {
    return plan_number(is_lower ? 1 / shortfall : shortfall);
  };
  const bool is_missed = missed_by > 1;
  text += is_missed ? "misses by a factor of " + plan_number(missed_by)
                    : "is at " + of_bound(missed_by) + " of its bound, too near for the confidence";
  if (!b.resource.empty() && b.resource != "hot prefix") {
    text += (is_missed ? ", with twice as much by " : ", with twice as much at ") +
            (is_missed ? plan_number(with_double) : of_bound(with_double));
    if (is_missed && with_double <= 1) text += ", which meets it";
  }
  return text + ".";
}

/// The gain from host memory: against the same fleet without it, and against the fleet that does
/// without.
std::string memory_sentence(const Choice& plan) {
  const PlanRecord::Memory& memory = *plan.host_memory;
  const PlanRecord::Without& without = *memory.same_fleet_without;
  std::vector<std::string> changes;
  for (const Goal& goal : without.goals)
    if (!is_built_in(goal.name)) changes.push_back(goal.name + " " + plan_number(goal.mean));
  changes.push_back(fmt::format("{} output tokens/s instead of {}",
                                plan_number(without.output_tokens_per_s),
                                plan_number(plan.output_tokens_per_s.value_or(NAN))));
  const std::string text =
      fmt::format("{} GiB of host memory per engine: without it the same fleet has {}; ",
                  number_text(memory.gib), fmt::join(changes, ", "));
  if (!memory.fleet_without) return text + "no size of this space meets the goals without it.";
  return text + fmt::format("the goals take {} at {}/h without it, {}/h with it.",
                            fleet_text(memory.fleet_without->replicas),
                            dollars(memory.fleet_without->price_per_hour),
                            dollars(plan.price_per_hour));
}

/// Each goal of each fleet: what was found, and how far it is from the bound.
Table goals_table(const PlanRecord& r, const std::string& path) {
  Table table{.columns = {{"goal", true}}};
  for (const Choice& plan : r.plans)
    table.columns.push_back({fleet_text(plan.replicas) + " of " + family_text(plan)});
  const std::vector<Goal>& goals = r.plans.front().goals;
  for (std::size_t g = 0; g < goals.size(); ++g) {
    std::vector<Cell>& row = table.rows.emplace_back();
    row.push_back({.text = goals[g].goal});
    for (std::size_t i = 0; i < r.plans.size(); ++i)
      row.push_back(g < r.plans[i].goals.size()
                        ? goal_cell(r.plans[i].goals[g], path + "/plans/" + std::to_string(i) +
                                                             "/goals/" + std::to_string(g))
                        : Cell{.text = "-"});
  }
  return table;
}

/// The nearest miss of each family: of its fleets that miss, the one with the smallest shortfall.
Table misses_table(const PlanRecord& r, const std::string& path) {
  // A bound of 0 is missed by a factor without end, as the search itself has it.
  const auto shortfall = [](const Evaluated& e) {
    if (!e.worst->survival.empty())
      return window_distance(e.worst->shortfall.value_or(INFINITY), *e.worst->mean);
    const double found = *e.worst->mean, bound = e.worst->bound.value_or(0);
    const double over = is_upper(e.worst->goal) ? found : bound;
    const double under = is_upper(e.worst->goal) ? bound : found;
    return 1 + (under > 0 ? over / under : (over > under ? 1e300 : 0));
  };
  std::vector<std::size_t> nearest;
  for (std::size_t i = 0; i < r.evaluated.size(); ++i) {
    const Evaluated& e = r.evaluated[i];
    if (e.verdict == GoalVerdict::kMeets || !e.worst || !std::isfinite(e.worst->mean.value_or(NAN)))
      continue;
    const auto same = std::ranges::find_if(nearest, [&](std::size_t other) {
      return family_text(r.evaluated[other]) == family_text(e);
    });
    if (same == nearest.end())
      nearest.push_back(i);
    else if (shortfall(e) < shortfall(r.evaluated[*same]))
      *same = i;
  }
  Table table{
      .columns = {
          {"fleet", true}, {"$/h"}, {"goal that failed", true}, {"found"}, {"by how much"}}};
  for (const std::size_t i : nearest) {
    const Evaluated& e = r.evaluated[i];
    const std::string here = path + "/evaluated/" + std::to_string(i);
    const PlanRecord::Worst& worst = *e.worst;
    const MetricView view = goal_view(worst.name);
    std::string why = margin_text(worst.goal, worst.name, worst.bound, *worst.mean);
    if (why.empty())
      why = human(std::abs(*worst.mean - worst.bound.value_or(0)) * view.scale, view.unit);
    if (worst.name == "queue_growth") why = "of what is sent is not answered";
    if (e.verdict == GoalVerdict::kOpen) why = "the interval does not decide";
    table.rows.push_back(
        {{.text = fleet_text(e.replicas) + " of " + family_text(e)},
         price(e.price_per_hour, here + "/price_per_hour"),
         {.text = worst_text(worst)},
         {.text = plan_number(*worst.mean),
          .number = in_base_unit({.value = *worst.mean, .path = here + "/worst/mean"}, view),
          .unit = view.unit},
         {.text = why}});
  }
  return table;
}

std::string method_text(const Family& family) {
  if (family.method == SizeMethod::kScan) return "splits in the order of their price";
  if (family.router_rate) return "sizes by doubling, until its router was the limit";
  if (family.tried_singly) return "sizes by doubling, then all around the nearest";
  return family.replicas ? "sizes by doubling, then halving" : "sizes by doubling";
}

Table families_table(const PlanRecord& r, const std::string& path) {
  Table table{.columns = {{"hardware", true},
                          {"policy", true},
                          {"smallest fleet", true},
                          {"$/h"},
                          {"sizes tried"},
                          {"in the space"},
                          {"how", true}}};
  for (std::size_t i = 0; i < r.families.size(); ++i) {
    const Family& family = r.families[i];
    const std::string here = path + "/families/" + std::to_string(i) + "/";
    const std::string fleet =
        family.impossible  ? "cannot run, " + printable(*family.impossible, 200)
        : family.replicas  ? fleet_text(*family.replicas)
        : family.near_miss ? "none; nearest " + fleet_text(family.near_miss->replicas)
                           : "none";
    table.rows.push_back({{.text = family.hardware},
                          {.text = family.policy},
                          {.text = fleet},
                          price(family.price_per_hour, here + "price_per_hour"),
                          count(family.sizes_tried, here + "sizes_tried"),
                          count(family.sizes, here + "sizes"),
                          {.text = family.impossible ? "-" : method_text(family)}});
  }
  return table;
}

/// The inputs that decide the answer.
Table manifest(const PlanRecord& r) {
  Table table{.columns = {{"input", true}, {"value", true}}};
  const auto add = [&table](const std::string& name, const std::string& value) {
    if (!value.empty()) table.rows.push_back({{.text = name}, {.text = value}});
  };
  add("scenario", r.scenario);
  add("routesim", r.version + (r.commit.empty() ? "" : " (" + r.commit + ")"));
  for (const PlanPrice& p : r.prices)
    add("one " + p.accelerator,
        dollars(p.per_hour) + " an hour" +
            (p.reserved_per_hour ? ", " + dollars(*p.reserved_per_hour) + " reserved" : "") +
            (p.spot_per_hour ? ", " + dollars(*p.spot_per_hour) + " spot" : "") +
            (p.gpus_per_node > 1 ? fmt::format(", in nodes of {}", p.gpus_per_node) : ""));
  for (const Family& family : r.families)
    if (family.scenario_hash)
      add(family_text(family),
          fmt::format("seed {}, scenario hash {}; {}", family.seed.value_or(0),
                      *family.scenario_hash,
                      fmt::join(family.sources.value_or(std::vector<std::string>{}), "; ")));
  return table;
}

// ------------------------------------------------------------------------------ charts

/// The cost of each family's cheapest fleet; families without one are named in the table.
std::optional<BarChart> price_chart(const PlanRecord& r) {
  BarChart chart;
  for (const Family& family : r.families)
    if (family.price_per_hour)
      chart.bars.push_back(
          {.name = family_text(family), .value = *family.price_per_hour, .colour = 0});
  if (chart.bars.size() < 2) return std::nullopt;
  std::ranges::stable_sort(chart.bars, {}, &BarChart::Bar::value);
  chart.title = "The goals cost " + human(chart.bars.front().value, Unit::kDollars) +
                " an hour on " + chart.bars.front().name + ", " +
                human(chart.bars.back().value, Unit::kDollars) + " on " + chart.bars.back().name;
  chart.subtitle = "Price per hour of the cheapest fleet of each kind that meets the goals.";
  chart.unit = Unit::kDollars;
  return chart;
}

/// The metrics that goals are on, with the goals' indices.
std::vector<std::pair<std::size_t, Scatter::Choice>> metrics_of_goals(const PlanRecord& r) {
  std::vector<std::pair<std::size_t, Scatter::Choice>> out;
  for (std::size_t goal = 0; goal < r.goals.size(); ++goal) {
    const auto parsed = parse_metric_goal(r.goals[goal]).value;
    if (!parsed || is_built_in(parsed->metric.text)) continue;
    const MetricView view = metric_view(parsed->metric.text);
    out.push_back({goal, {view.title, view.unit, parsed->upper}});
  }
  return out;
}

std::optional<double> goal_mean(const PlanRecord& r, const Evaluated& fleet, std::size_t goal) {
  if (!fleet.goals || goal >= fleet.goals->size() || !(*fleet.goals)[goal]) return std::nullopt;
  return *(*fleet.goals)[goal] *
         metric_view(parse_metric_goal(r.goals[goal]).value->metric.text).scale;
}

/// The price, the metrics of the goals and the GPUs, for a reader to choose from.
void add_choices(const PlanRecord& r, std::size_t drawn, Scatter& s) {
  const auto metrics = metrics_of_goals(r);
  s.choices = {{"price per hour", Unit::kDollars}};
  for (const auto& [goal, choice] : metrics) {
    if (goal == drawn) s.chosen_y = s.choices.size();
    s.choices.push_back(choice);
  }
  s.choices.push_back({"GPUs", Unit::kCount});
  std::size_t at = 0;
  for (const Evaluated& fleet : r.evaluated) {
    if (!goal_mean(r, fleet, drawn) || !fleet.price_per_hour) continue;
    std::vector<double>& values = s.points[at++].values;
    values = {*fleet.price_per_hour};
    for (const auto& [goal, choice] : metrics)
      values.push_back(goal_mean(r, fleet, goal).value_or(NAN));
    values.push_back(static_cast<double>(fleet.gpus));
  }
}

/// Price against the metric of a goal, for every fleet that the search ran; nothing where no file
/// has its numbers, or the goal is one of every plan.
std::optional<Scatter> front_chart(const PlanRecord& r, std::size_t goal) {
  const auto parsed = parse_metric_goal(r.goals[goal]).value;
  if (!parsed || is_built_in(parsed->metric.text)) return std::nullopt;
  const MetricView view = metric_view(parsed->metric.text);
  Scatter s;
  s.x = {.title = "price per hour", .unit = Unit::kDollars};
  s.y = {.title = view.title, .unit = view.unit, .log = view.unit == Unit::kSeconds};
  s.less_y = parsed->upper;
  const Scatter::Point* cheapest = nullptr;
  for (const Evaluated& fleet : r.evaluated) {
    const std::optional<double> y = goal_mean(r, fleet, goal);
    if (!y || !fleet.price_per_hour) continue;
    const std::string family = family_text(fleet);
    const auto at = std::ranges::find(s.groups, family);
    const auto group = static_cast<std::size_t>(at - s.groups.begin());
    if (at == s.groups.end()) s.groups.push_back(family);
    const bool meets = fleet.verdict == GoalVerdict::kMeets;
    s.points.push_back({.x = *fleet.price_per_hour,
                        .y = *y,
                        .group = group,
                        .hollow = !meets,
                        .tip = fleet_text(fleet.replicas) + ", " + family + ": " + view.title +
                               " " + human(*y, view.unit) + " for " +
                               human(*fleet.price_per_hour, Unit::kDollars) + " an hour, " +
                               (meets         ? std::string("meets the goals")
                                : fleet.worst ? "misses " + worst_text(*fleet.worst)
                                              : "misses a goal")});
  }
  if (s.points.empty()) return std::nullopt;
  add_choices(r, goal, s);
  for (const Scatter::Point& p : s.points)
    if (!p.hollow && (cheapest == nullptr || p.x < cheapest->x ||
                      (p.x == cheapest->x && (p.y < cheapest->y) == parsed->upper)))
      cheapest = &p;
  if (cheapest == nullptr) {
    s.title = "No fleet meets the goals; " + view.title + " against price";
  } else {
    const bool spares =
        !r.plans.empty() && r.plans.front().replicas.items != r.plans.front().needed.items;
    s.title = human(cheapest->x, Unit::kDollars) +
              (spares ? " an hour meets the goals, spares left out, with "
                      : " an hour buys the goals, with ") +
              view.title + " " + human(cheapest->y, view.unit);
    const auto front = pareto_front(s);
    const Scatter::Point& best = s.points[front.back()];
    if (best.x > cheapest->x)
      s.title += "; " + human(best.x, Unit::kDollars) + " buys " + human(best.y, view.unit);
  }
  s.subtitle = "Every fleet that the search ran at the planned rate. " +
               std::to_string(pareto_front(s).size()) + " of " + std::to_string(s.points.size()) +
               " are on the front.";
  s.filled = "meets the goals";
  s.empty = "misses a goal";
  s.goal = parsed->bound * view.scale;
  s.goal_text = "goal: " + r.goals[goal];
  return s;
}

// ------------------------------------------------------------------------------ data

ExportTable data_of(const PlanRecord& r) {
  const auto as_number = [](const std::optional<std::int64_t>& n) {
    return n ? std::optional(static_cast<double>(*n)) : std::nullopt;
  };
  ExportTable table{.name = "plan",
                    .columns = {"plan", "hardware", "policy", "fleet", "metric", "value"}};
  for (const Choice& c : r.plans)
    for (const auto& [name, value] :
         {std::pair<const char*, PlanRecord::Number>("gpus", as_number(c.gpus)),
          {"knee_requests_per_s", c.knee_requests_per_s},
          {"output_tokens_per_s", c.output_tokens_per_s},
          {"price_per_hour", c.price_per_hour},
          {"price_per_million_output_tokens", c.price_per_million_output_tokens},
          {"spare_replicas_today", as_number(c.spare_replicas_today)}})
      if (value)
        table.rows.push_back(
            {r.plan, c.hardware, c.policy, fleet_text(c.replicas), std::string(name), value});
  for (const Family& f : r.families)
    if (f.price_per_hour)
      table.rows.push_back({r.plan, f.hardware, f.policy,
                            fleet_text(f.replicas.value_or(PlanRecord::Replicas())),
                            std::string("cheapest_price_per_hour"), f.price_per_hour});
  return table;
}

}  // namespace

StudyDocument plan_document(const PlanRecord& r, const std::string& path) {
  StudyDocument out{.name = "plan " + r.plan,
                    .kicker = r.plan + " · plan · routesim " + r.version,
                    .title = r.question.empty() ? r.plan : r.question,
                    .verdict = verdict(r),
                    .data = {data_of(r)}};
  const auto add_table = [&out](const char* heading, Table table, For outputs = For::kAll) {
    if (table.rows.empty()) return;
    out.blocks.push_back({Heading{heading}, outputs});
    out.blocks.push_back({std::move(table), outputs});
  };
  if (!r.plans.empty()) {
    add_table("Fleets that meet the goals", plans_table(r, path), For::kPlain);
    add_table("The fleets that meet the goals", turned(plans_table(r, path)), For::kPages);
    for (const Choice& plan : r.plans) {
      if (plan.binding)
        out.blocks.push_back({Paragraph{name_of(plan) + ": " + binding_sentence(plan)}});
      if (plan.host_memory && plan.host_memory->same_fleet_without)
        out.blocks.push_back({Paragraph{name_of(plan) + ": " + memory_sentence(plan)}});
    }
    add_table("Through each event", windows_table(r, path));
    add_table("Over the day", day_table(r, path));
    add_table("What they cost", costs_table(r, path));
    add_table("When they must grow", months_table(r, path));
    add_table("Price against latency: nothing that was tried is better in both",
              front_table(r, path));
    add_table("Each goal, and what is to spare", goals_table(r, path));
  }
  Charts charts;
  for (std::size_t goal = 0; goal < r.goals.size(); ++goal)
    if (std::optional<Scatter> front = front_chart(r, goal))
      charts.charts.emplace_back(std::move(*front));
  if (std::optional<BarChart> prices = price_chart(r)) charts.charts.emplace_back(*prices);
  if (!charts.charts.empty()) {
    out.verdict.picture = std::move(charts.charts.front());
    charts.charts.erase(charts.charts.begin());
  }
  if (!charts.charts.empty()) out.blocks.push_back({Heading{"What money buys"}, For::kPages});
  out.blocks.push_back({std::move(charts), For::kPages});
  add_table("The nearest misses", misses_table(r, path));
  add_table("Everything that was tried", families_table(r, path));
  if (r.runs > 0)
    out.blocks.push_back({Paragraph{fmt::format("The search took {} runs.", r.runs)}});
  add_table("Manifest", manifest(r), For::kPages);
  return out;
}

}  // namespace routesim::tools
