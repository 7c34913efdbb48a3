// What a plan says, over random results: every claim is recomputed from the numbers of its record
// by rules written a second time here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tools/results/described_json.h"
#include "tools/results/text_table.h"
#include "tools/study/plan/plan_evaluate.h"
#include "tools/study/plan/plan_record.h"
#include "tools/study/plan/plan_search.h"

namespace routesim::tools {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kPlanClaimsSeed = 20261129;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A plan without a scenario, and a search's result whose numbers are random and agree.
struct PlanCase {
  PlanSpace space;
  PlanResult result;
};

class RandomPlan {
 public:
  explicit RandomPlan(std::uint64_t n) : random_(kPlanClaimsSeed, Stream::kTest, n) {}

  PlanCase make() {
    make_space();
    c_.result.steps = one_of(4) == 0 ? one_of(kPlanSteps.size()) : kPlanSteps.size();
    for (std::size_t f = 0; f < c_.space.families.size(); ++f) add_family(f);
    std::ranges::stable_sort(c_.result.plans, {},
                             [](const FoundPlan& plan) { return plan.found.price_per_hour; });
    if (c_.result.plans.size() > kMostPlans) c_.result.plans.resize(kMostPlans);
    c_.result.runs = 100;
    return std::move(c_);
  }

 private:
  std::uint64_t one_of(std::uint64_t n) { return random_.below(n); }
  bool maybe() { return one_of(2) == 0; }

  void make_space() {
    PlanConfig& config = c_.space.config;
    config.name = "p";
    config.scenario = "s.yaml";
    config.goals = {"ttft_ms.p99 < 500", "output_tokens_per_s > 100"};
    if (maybe()) config.goodput = PlanGoodput{.share = 0.9, .bounds = {"ttft:500ms"}};
    config.demand.rate = 10;
    config.demand.growth = maybe() ? 0 : 0.25;
    if (maybe()) config.demand.months = 24;
    config.demand.growth_per_month = 0.05;
    if (maybe()) config.demand.from = "2026-11";
    config.confidence = maybe() ? 0.95 : 0.9;
    config.spares = static_cast<std::int64_t>(one_of(3));
    config.pools = {{.pool = "a", .min = 1, .max = 20}};
    if (maybe()) config.pools.push_back({.pool = "b", .min = 1, .max = 20});
    Diagnostics none;
    c_.space.goals = read_goals(config, {}, none);
    for (std::uint64_t n = one_of(3); n > 0; --n) {
      config.survives.push_back({.name = "e" + std::to_string(n), .max_failure_rate = 0.02});
      c_.space.window_goals.push_back(window_goals(c_.space.goals, config.survives.back()));
    }
    if (maybe()) {
      config.day.emplace();
      config.autoscalers = {{.name = "x"}, {.name = "y"}};
      c_.space.day = {.peak = 10, .mean = 4, .hours = 24};
    }
    const std::uint64_t families = 1 + one_of(6);
    for (std::uint64_t f = 0; f < families; ++f) {
      PlanFamily& family = c_.space.families.emplace_back();
      family.hardware = "h" + std::to_string(f);
      family.policy = maybe() ? "p" : "";
      family.trust = models::Trust(one_of(3));
      if (families > 1 && one_of(8) == 0) family.impossible = "too large";
      for (std::size_t pool = 0; pool < config.pools.size(); ++pool) {
        PlanPrice price{.accelerator = "g", .per_hour = 0.5 * static_cast<double>(1 + one_of(12))};
        if (maybe()) price.reserved_per_hour = 0.6 * price.per_hour;
        price.gpus_per_node = maybe() ? 1 : 4;
        family.prices.push_back(price);
        family.costs.push_back({.price = pool, .gpus = 1});
      }
    }
  }

  FleetRun run(double quality, std::size_t survival = 0) {
    FleetRun r;
    for (const PlanGoal& goal : c_.space.goals_of(survival)) {
      const double noise = std::exp(0.05 * random_.normal());
      double value = goal.upper ? goal.bound / quality * noise : goal.bound * quality * noise;
      if (goal.kind == PlanGoal::Kind::kFailures) value = quality < 0.5 && maybe() ? 0.01 : 0;
      if (goal.kind == PlanGoal::Kind::kGrowth) value = quality < 0.7 ? 0.1 : 0;
      if (goal.kind == PlanGoal::Kind::kRate) value = 0;
      if (goal.kind == PlanGoal::Kind::kGoodput) value = std::min(1.0, value);
      r.values.push_back(quality < 0.2 && one_of(4) == 0 ? (goal.upper ? kInfinity : -kInfinity)
                                                         : value);
    }
    r.output_tokens_per_s = one_of(10) == 0 ? 0 : 1000 * random_.uniform_open();
    r.mean_latency_s = 1 + 40 * random_.uniform();
    r.send_s = 20 + 100 * random_.uniform();
    if (one_of(8) > 0) r.ttft_p90_s = 0.1 * static_cast<double>(1 + one_of(5));
    r.tpot_p90_s = 0.01 * static_cast<double>(1 + one_of(5));
    return r;
  }

  FleetEvaluation evaluated(std::size_t family, const FleetSize& size, double quality,
                            std::size_t survival = 0) {
    FleetEvaluation e{.probe = {.family = family, .size = size, .rate = 10, .survival = survival}};
    const std::uint64_t runs = 2 + one_of(3);
    for (std::uint64_t i = 0; i < runs; ++i) e.runs.push_back(run(quality, survival));
    if (survival > 0) {
      e.window = Duration::seconds(60);
      e.recovery = Duration::seconds(30 + 60 * static_cast<std::int64_t>(one_of(2)));
    }
    if (survival == 0 && maybe())
      e.steady = SteadyProbe{.sustains = quality > 0.8, .unanswered = 0.3};
    judge_goals(c_.space, e);
    return e;
  }

  /// Asks the windows of a fleet that meets its goals.
  void survive(FleetEvaluation& e, double quality) {
    if (e.verdict != GoalVerdict::kMeets) return;
    for (std::size_t s = 1; s <= c_.space.config.survives.size(); ++s)
      e.windows.push_back(std::make_shared<const FleetEvaluation>(
          evaluated(e.probe.family, e.probe.size, quality, s)));
  }

  /// A day of the fleet in some mode, whose goals agree with each other.
  DayOfFleet day_of(const FleetSize& size, const std::string& mode) {
    DayOfFleet day{.autoscaler = mode, .meets = true, .stages = 24};
    for (const PlanPool& pool : c_.space.config.pools)
      day.servers.items.emplace_back(pool.pool, static_cast<double>(size.front()));
    day.server_hours = 24 * static_cast<double>(size.front());
    day.price_per_day = 100 + static_cast<double>(one_of(400));
    for (const PlanGoal& goal : day_goals(c_.space.goals)) {
      const auto missed = static_cast<std::int64_t>(one_of(3) == 0 ? 1 + one_of(5) : 0);
      day.goals.push_back({.goal = goal.text,
                           .name = goal.label,
                           .bound = goal.bound,
                           .value = 1,
                           .worst = 2,
                           .worst_at = "09:00",
                           .missed = missed});
      day.meets = missed == 0 && one_of(8) > 0 && day.meets;
      day.missed = std::max(day.missed, missed);
    }
    return day;
  }

  FleetSize more(FleetSize size, std::int64_t by) {
    for (std::int64_t& n : size) n += by;
    return size;
  }

  /// The sizes of a family in the order of their price until one holds, and one that is larger.
  void add_family(std::size_t f) {
    const PlanFamily& family = c_.space.families[f];
    FamilyOutcome& outcome = c_.result.families.emplace_back();
    outcome.sizes = 20;
    if (!family.impossible.empty()) return;
    const std::int64_t spares = c_.space.config.spares;
    const double needed = 1 + 8 * random_.uniform();
    const std::int64_t most = 1 + static_cast<std::int64_t>(one_of(9));
    for (std::int64_t n = 1; n <= most && !outcome.size; ++n) {
      const FleetSize size(c_.space.config.pools.size(), n);
      ++outcome.sizes_tried;
      FleetEvaluation e = evaluated(f, size, static_cast<double>(n) / needed);
      survive(e, static_cast<double>(n) / needed * (0.8 + random_.uniform()));
      const bool holds = e.holds();
      if (!holds && (!outcome.near_miss || e.distance() < outcome.near_miss->distance()))
        outcome.near_miss = e;
      c_.result.evaluated.push_back(std::move(e));
      if (!holds) continue;
      FleetEvaluation bought =
          spares == 0 ? c_.result.evaluated.back() : evaluated(f, more(size, spares), 2);
      if (bought.windows.empty()) survive(bought, 2);
      if (!bought.holds()) continue;
      if (spares > 0) c_.result.evaluated.push_back(bought);
      outcome.size = size;
      outcome.near_miss.reset();
      add_plan(f, size, std::move(bought));
    }
    if (!outcome.size && f % 2 == 1) outcome.router_rate = 10.5;
  }

  void add_plan(std::size_t f, const FleetSize& needed, FleetEvaluation bought) {
    const PlanFamily& family = c_.space.families[f];
    FoundPlan plan{.family = f, .size = bought.probe.size, .needed = needed};
    plan.found.price_per_hour = family.price(plan.size);
    plan.found.step_times = family.trust;
    const double tokens = 3600 * bought.mean_of(&FleetRun::output_tokens_per_s);
    if (tokens > 0)
      plan.found.price_per_million_output_tokens = plan.found.price_per_hour / tokens * 1e6;
    if (!bought.windows.empty()) {
      plan.unprepared = bought;
      if (maybe() && needed.front() > 1) {
        plan.unprepared = evaluated(f, more(bought.probe.size, -1), 2);
        survive(*plan.unprepared, 0.3 + random_.uniform());
      }
    }
    plan.evaluation = std::move(bought);
    add_steps(plan);
    c_.result.plans.push_back(std::move(plan));
  }

  /// What the steps of the search that came to their end found of a plan.
  void add_steps(FoundPlan& plan) {
    const std::size_t steps = c_.result.steps;
    const PlanFamily& family = c_.space.families[plan.family];
    const auto fleet = [&](const FleetSize& size) { return fleet_of(c_.space, family, size); };
    PlanRecord::Choice& found = plan.found;
    if (steps > 1)
      found.kv_capacity = {
          .band = kCapacityBand, .holds_with_fewer = maybe(), .holds_with_more = maybe()};
    if (steps > 2) {
      found.step_time_band = {.fraction = 0.03 + 0.2 * random_.uniform()};
      if (maybe())
        found.step_time_band->longer = fleet(more(plan.size, static_cast<std::int64_t>(one_of(3))));
      FleetSize smaller = plan.size;
      for (std::int64_t& n : smaller)
        n = std::max<std::int64_t>(1, n - static_cast<std::int64_t>(one_of(3)));
      if (one_of(3) > 0) found.step_time_band->shorter = fleet(smaller);
    }
    if (steps > 3) {
      found.knee_requests_per_s = 10 + static_cast<double>(one_of(9));
      if (one_of(5) > 0) found.knee_fails_at = 1.03 * *found.knee_requests_per_s;
    }
    if (steps > 4) {
      const char* const kResources[] = {"", "KV blocks", "hot prefix", "hot prefix, transfer"};
      const double missed_by = 0.9 + random_.uniform();
      found.binding = {.resource = kResources[one_of(4)],
                       .goal = "ttft_ms.p99",
                       .missed_by = missed_by,
                       .missed_by_with_double = missed_by * (0.4 + 0.6 * random_.uniform())};
    }
    if (steps > 5) found.spare_replicas_today = static_cast<std::int64_t>(one_of(4));
    if (steps < kPlanSteps.size()) return;
    if (c_.space.config.day) {
      found.day.emplace();
      for (const char* mode : {"", "x", "y"}) found.day->push_back(day_of(plan.size, mode));
    }
    if (c_.space.config.demand.months == 0) return;
    found.months.emplace();
    for (std::int64_t month = 0; month < c_.space.config.demand.months;
         month += 1 + static_cast<std::int64_t>(one_of(40)))
      found.months->push_back({.month = month,
                               .requests_per_s = c_.space.rate_in(month),
                               .fleet = fleet(more(plan.size, month))});
    if (found.months->size() > 1 && maybe()) found.months->back().fleet.reset();
  }

  RandomStream random_;
  PlanCase c_;
};

std::string fixed(double v, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, v);
  return text;
}

/// `17.3 %`.
std::string percent_words(double v) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3g %%", v);
  return text;
}

/// `$131,400`.
std::string sum_words(double v) {
  std::string digits = fixed(v, 0), out;
  for (std::size_t i = 0; i < digits.size(); ++i)
    out += (i > 0 && (digits.size() - i) % 3 == 0 ? "," : "") + digits.substr(i, 1);
  return "$" + out;
}

/// `1 a + 2 b`. The pools are called so that the order of JSON is theirs.
std::string fleet_words(const Json& replicas) {
  std::string out;
  for (const auto& [pool, n] : replicas.items())
    out += (out.empty() ? "" : " + ") + std::to_string(n.get<int>()) + " " + pool;
  return out;
}

std::string of_words(const Json& r) {
  const std::string policy = r["policy"];
  return r["hardware"].get<std::string>() + (policy.empty() ? "" : ", " + policy);
}

std::string priced_words(const Json& fleet) {
  return fleet_words(fleet["replicas"]) + " at $" + fixed(fleet["price_per_hour"], 2) + "/h";
}

struct Said {
  std::string headline, all;
  bool has(const std::string& text) const { return all.find(text) != std::string::npos; }
};

Said said_by(const PlanRecord& record) {
  const StudyDocument document = plan_document(record);
  Said said{.headline = document.verdict.headline, .all = document.verdict.headline + "\n"};
  for (const Sentence& sentence : document.verdict.points) {
    for (const auto& part : sentence) said.all += part.text;
    said.all += "\n";
  }
  for (const auto& block : document.blocks)
    if (const auto* text = std::get_if<Paragraph>(&block.content)) said.all += text->text + "\n";
  said.headline = plain_spaces(said.headline);
  said.all = plain_spaces(said.all);
  return said;
}

/// The headline, the costs and what may be gone.
void expect_true_answer(const PlanCase& c, const Json& r, const Said& said) {
  if (r["plans"].empty()) {
    EXPECT_FALSE(r["met"]);
    EXPECT_EQ(said.headline.rfind("No fleet", 0), 0U) << said.headline;
    for (const Json& e : r["evaluated"])
      if (e["verdict"] == "meets" && c.space.config.spares == 0) ADD_FAILURE() << e;
    return;
  }
  const Json& best = r["plans"][0];
  const std::int64_t spares = c.space.config.spares;
  std::string kind = "The cheapest fleet" + std::string(r.contains("partial") ? " so far" : "") +
                     " that meets the goals";
  if (spares > 0)
    kind += " with " + std::to_string(spares) + (spares == 1 ? " replica" : " replicas") +
            (best["replicas"].size() > 1 ? " of each pool" : "") + " to spare";
  const double price = best["price_per_hour"];
  std::string answer = kind + " is " + fleet_words(best["replicas"]) + " of " + of_words(best) +
                       ", $" + fixed(price, 2) + " an hour";
  const double tokens = best["output_tokens_per_s"];
  if (tokens > 0)
    answer += " and $" + fixed(price / (3600 * tokens) * 1e6, 2) + " per million output tokens" +
              (r.contains("day") ? " at the peak" : "");
  EXPECT_EQ(said.headline, answer + ".");
  // Nothing that was tried and holds is cheaper, unless its spares were not enough.
  for (const Json& plan : r["plans"]) EXPECT_GE(plan["price_per_hour"], price);
  for (const Json& e : r["evaluated"])
    if (spares == 0 && e["verdict"] == "meets") {
      EXPECT_GE(e["price_per_hour"], price) << e;
    }
  EXPECT_TRUE(said.has(
      "It costs " + sum_words(price * 730) + " a month and " + sum_words(price * 8760) + " a year" +
      (best.contains("reserved_price_per_hour")
           ? ", " + sum_words(best["reserved_price_per_hour"].get<double>() * 730) +
                 " a month reserved."
           : ".")))
      << said.all;
  const int idle = best["paid_gpus"].get<int>() - best["gpus"].get<int>();
  EXPECT_EQ(said.has(" are idle."), idle > 0);
  EXPECT_TRUE(idle == 0 || said.has("whole nodes, " + std::to_string(idle) + " are idle."));
  if (!best.contains("spare_replicas_today")) {
    EXPECT_FALSE(said.has("At today's rate"));
    return;
  }
  const int gone = best["spare_replicas_today"];
  const std::string holds =
      gone == 0 ? "it needs every replica."
                : "it holds without any " +
                      (gone == 1 ? "one replica" : std::to_string(gone) + " replicas") +
                      (best["replicas"].size() > 1 ? " of one pool." : ".");
  EXPECT_TRUE(said.has("At today's rate " + holds)) << said.all;
}

/// The next month in which the fleet must grow, and the sum of all months, 730 hours each.
void expect_true_months(const Json& r, const Said& said) {
  const bool looks = !r["plans"].empty() && r["plans"][0].contains("months");
  EXPECT_EQ(said.has("more each month"), looks) << said.all;
  if (!looks) return;
  const Json& months = r["plans"][0]["months"];
  double sum = 0;
  for (std::size_t i = 0; i < months.size(); ++i) {
    const int end = i + 1 < months.size() ? months[i + 1]["month"].get<int>() : 24;
    if (!months[i]["fleet"].is_null())
      sum += months[i]["fleet"]["price_per_hour"].get<double>() * 730 *
             (end - months[i]["month"].get<int>());
  }
  const bool holds = !months.back()["fleet"].is_null();
  EXPECT_EQ(r["plans"][0].contains("price_of_months"), holds);
  if (holds) {
    EXPECT_TRUE(said.has((months.size() == 1 ? " costs " : " cost ") + sum_words(sum)))
        << sum << "\n"
        << said.all;
  }
  if (months.size() == 1) {
    EXPECT_TRUE(said.has("no server is due within 24 months")) << said.all;
    return;
  }
  const int month = months[1]["month"];
  const char* const kNames[] = {"November", "December", "January",   "February",
                                "March",    "April",    "May",       "June",
                                "July",     "August",   "September", "October"};
  const std::string when = r.contains("from") ? std::string(kNames[month % 12]) + " " +
                                                    std::to_string(2026 + (month + 10) / 12)
                                              : "month " + std::to_string(month + 1);
  EXPECT_TRUE(said.has(months[1]["fleet"].is_null() ? "no size of this space holds " + when + ","
                                                    : "the next server is due in " + when + ","))
      << when << "\n"
      << said.all;
}

/// A fleet that holds is on the front unless another is better somewhere and worse nowhere.
void expect_true_front(const PlanCase& c, const Json& r) {
  const auto comparable = [&](const Json& e) {
    Json left = e["replicas"];
    for (Json& n : left) n = n.get<std::int64_t>() - c.space.config.spares;
    const bool spared = std::ranges::any_of(r["evaluated"], [&](const Json& other) {
      return other["verdict"] == "meets" && other["replicas"] == left &&
             other["hardware"] == e["hardware"] && other["policy"] == e["policy"];
    });
    return spared && e["verdict"] == "meets" && !e["ttft_s.p90"].is_null() &&
           !e["tpot_s.p90"].is_null();
  };
  for (const Json& e : r["evaluated"]) {
    ASSERT_EQ(e.contains("on_front"), e["verdict"] == "meets");
    bool on = comparable(e);
    for (const Json& other : r["evaluated"]) {
      if (!on || !comparable(other)) continue;
      int better = 0, worse = 0;
      for (const char* key : {"price_per_hour", "ttft_s.p90", "tpot_s.p90"}) {
        better += other[key] < e[key] ? 1 : 0;
        worse += other[key] > e[key] ? 1 : 0;
      }
      on = !(better > 0 && worse == 0);
    }
    if (e.contains("on_front")) {
      EXPECT_EQ(e["on_front"], on) << e;
    }
  }
}

/// Four digits, as the plan writes numbers.
std::string digits_of(double v) {
  const double size = std::abs(v);
  return fixed(v, size >= 1000 || size == 0 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

/// Of all misses (that cost less, where there is an answer) the one with the least shortfall.
void expect_true_miss(const Json& r, const Said& said) {
  const bool met = !r["plans"].empty();
  const Json* nearest = nullptr;
  const auto shortfall = [](const Json& e) {
    const Json &v = e["worst"]["shortfall"], &mean = e["worst"]["mean"];
    const double by = v.is_null() ? kInfinity : v.get<double>();
    if (!e["worst"].contains("survival")) return 1 + by;
    // What holds the rate is nearer than what does not; without end, the larger mean is farther.
    if (std::isfinite(by)) return by / (1 + by);
    return mean.is_null() ? 1 : 1 - 1 / (1 + 1e6 * (1 + std::abs(mean.get<double>())));
  };
  for (const Json& e : r["evaluated"]) {
    EXPECT_EQ(e.contains("worst"), e["verdict"] != "meets");
    if (e["verdict"] == "meets" || (met && e["price_per_hour"] >= r["plans"][0]["price_per_hour"]))
      continue;
    if (nearest == nullptr || shortfall(e) < shortfall(*nearest)) nearest = &e;
  }
  const std::string begin = met ? "Nearest of what costs less: " : "Nearest: ";
  const bool says = nearest != nullptr && !(met && std::isinf(shortfall(*nearest)));
  ASSERT_EQ(said.has(begin), says) << said.all;
  if (!says) return;
  const Json& worst = (*nearest)["worst"];
  const Json& mean = worst["mean"];
  const std::string found =
      worst["name"] == "queue_growth" && !mean.is_null()
          ? "which does not answer " + percent_words(100 * mean.get<double>()) + " of what is sent"
          : "with " + worst["name"].get<std::string>() + " " +
                (mean.is_null() ? "-" : digits_of(mean)) + " (goal " +
                worst["goal"].get<std::string>() +
                (worst.contains("survival") ? " in " + worst["survival"].get<std::string>() : "") +
                ")";
  EXPECT_TRUE(said.has(
      begin + fleet_words((*nearest)["replicas"]) + " of " + of_words(*nearest) + " at $" +
      fixed((*nearest)["price_per_hour"], 2) + "/h, " + found +
      ((*nearest)["verdict"] == "open" ? ", which the interval does not decide" : "") + "."))
      << said.all;
  // What is named as a miss does miss, beyond what the interval allows.
  const Json& by = worst["shortfall"];
  if ((*nearest)["verdict"] == "misses" && !mean.is_null() && !by.is_null() && by > 0) {
    EXPECT_GT(by, 1) << *nearest;
  }
}

/// The share that each goal of the answer has to spare.
void expect_true_margins(const Json& r, const Said& said) {
  if (r["plans"].empty()) return;
  for (const Json& goal : r["plans"][0]["goals"]) {
    const std::string name = goal["name"];
    if (name == "queue_growth" || name == "sent_rate_error" || name == "failure_rate") continue;
    const double mean = goal["mean"], bound = goal["bound"];
    const bool upper = goal["goal"].get<std::string>().find('<') != std::string::npos;
    EXPECT_EQ(goal["verdict"], "meets");
    const double spare = 100 * (upper ? 1 - mean / bound : mean / bound - 1);
    const std::regex pattern(std::string(upper ? " of at most " : " of at least ") +
                             "[^\n:]*: ([0-9.]+)[^\n]%(?: to spare)\n");
    bool found = false;
    for (std::sregex_iterator m(said.all.begin(), said.all.end(), pattern), end; m != end; ++m)
      found = found || std::abs(std::stod((*m)[1]) - spare) <= 0.006 * std::max(10.0, spare);
    EXPECT_TRUE(found) << name << " has " << spare << " to spare\n" << said.all;
  }
}

/// What errors of step times and of the KV capacity change.
void expect_true_robustness(const Json& r, const Said& said) {
  if (!r.contains("robustness")) return;
  const Json& best = r["plans"][0];
  const Json& band = best["step_time_band"];
  const std::string percent = fixed(100 * band["fraction"].get<double>(), 0) + " %";
  const auto end = [](const Json& fleet, const std::string& verb) {
    return fleet.is_null() ? "no size of this space would do" : verb + priced_words(fleet);
  };
  const auto same = [&](const Json& fleet) {
    return !fleet.is_null() && fleet["replicas"] == best["replicas"];
  };
  if (same(band["longer"]) && same(band["shorter"]))
    EXPECT_TRUE(said.has("It takes as many with steps " + percent + " longer or shorter."));
  else
    EXPECT_TRUE(said.has("Were its steps " + percent + " longer, " +
                         end(band["longer"], "it would take ") + "; " + percent + " shorter, " +
                         end(band["shorter"], "") + "."))
        << said.all;
  const double most =
      band["longer"].is_null() ? kInfinity : band["longer"]["price_per_hour"].get<double>();
  bool flips = false;
  for (std::size_t i = 1; i < r["plans"].size(); ++i) {
    const Json& shorter = r["plans"][i]["step_time_band"]["shorter"];
    const bool rival = !shorter.is_null() && shorter["price_per_hour"] < most;
    flips = flips || rival;
    const std::string named =
        priced_words(rival ? shorter : best) + " of " + of_words(r["plans"][i]);
    if (rival) {
      EXPECT_TRUE(said.has(named)) << named << "\n" << said.all;
    }
  }
  EXPECT_EQ(said.has("can flip the answer"), flips) << said.all;
  EXPECT_EQ(said.has("No other plan gets cheaper"),
            !flips && r["plans"].size() > 1 && !band["longer"].is_null());
  EXPECT_EQ(said.has("No other plan holds"),
            !flips && r["plans"].size() > 1 && band["longer"].is_null());
  EXPECT_EQ(said.has("No other hardware or policy met the goals"),
            r["plans"].size() == 1 && r["families"].size() > 1);
  EXPECT_EQ(said.has("No other hardware or policy was tried"), r["families"].size() == 1);
  const bool fewer = best["kv_capacity"]["holds_with_fewer"],
             more = best["kv_capacity"]["holds_with_more"];
  EXPECT_EQ(said.has("It holds with 3 % fewer and with 3 % more KV blocks"), fewer && more);
  EXPECT_EQ(said.has("does not hold with 3 % fewer KV"), !fewer && more);
  EXPECT_EQ(said.has("does not hold with 3 % more KV"), fewer && !more);
  EXPECT_EQ(said.has("does not hold with 3 % fewer or more KV"), !fewer && !more);
}

/// A run that sends for less than three answers is said to be too short.
void expect_true_length(const PlanCase& c, const Json& r, const Said& said) {
  if (!r.contains("robustness")) return;
  const FleetEvaluation& best = c.result.plans.front().evaluation;
  double sent = 0, answer = 0;
  for (const FleetRun& run : best.runs) {
    sent += run.send_s / static_cast<double>(best.runs.size());
    answer += run.mean_latency_s / static_cast<double>(best.runs.size());
  }
  EXPECT_EQ(said.has("Too short to tell: a run sends for " + digits_of(sent) +
                     " s and an answer takes " + digits_of(answer) + " s"),
            sent < 3 * answer)
      << said.all;
}

/// What each plan runs short of.
void expect_true_bindings(const Json& r, const Said& said) {
  for (const Json& plan : r["plans"]) {
    if (!plan.contains("binding")) continue;
    const Json& b = plan["binding"];
    const std::string name = fleet_words(plan["replicas"]) + " of " + of_words(plan) + ": ";
    if (plan["knee_fails_at"].is_null()) {
      EXPECT_TRUE(said.has(name + "no rate up to " + digits_of(plan["knee_requests_per_s"]) +
                           " req/s fails."))
          << said.all;
      continue;
    }
    const std::string what = b["resource"];
    const double missed = b["missed_by"], twice = b["missed_by_with_double"];
    const bool helps = !what.empty() && what != "hot prefix";
    std::string text = name + (what.empty() ? "nothing alone" : what) +
                       (what.ends_with("blocks") ? " bind" : " binds") + ": at " +
                       digits_of(plan["knee_fails_at"]) + " req/s ttft_ms.p99 ";
    if (missed > 1)
      text += "misses by a factor of " + digits_of(missed) +
              (helps ? ", with twice as much by " + digits_of(twice) : "") +
              (helps && twice <= 1 ? ", which meets it" : "");
    else
      text += "is at " + digits_of(missed) + " of its bound, too near for the confidence" +
              (helps ? ", with twice as much at " + digits_of(twice) : "");
    EXPECT_TRUE(said.has(text + ".")) << text << "\n" << said.all;
  }
}

/// What the events cost, and what the fleet that need not survive them misses.
void expect_true_survival(const Json& r, const Said& said) {
  const bool asked = !r["plans"].empty() && r["plans"][0].contains("survives");
  ASSERT_EQ(said.has("It also holds through "), asked) << said.all;
  if (!asked) return;
  const Json &best = r["plans"][0], &bare = best["unprepared"];
  std::string names, misses;
  bool open = true;  // Every miss is one that the interval does not decide.
  for (const Json& window : best["survives"]) {
    for (const Json& goal : window["goals"]) EXPECT_EQ(goal["verdict"], "meets");
    const std::string name = window["name"];
    names += (names.empty() ? "" : " and through ") + name;
    EXPECT_EQ(said.has("Through " + name +
                       " it is judged for 60 s only; all servers are back after 90 s."),
              window["recovery_s"] == 90)
        << said.all;
    if (!window.contains("unprepared_misses")) continue;
    const Json& w = window["unprepared_misses"];
    EXPECT_EQ(w["survival"], name);
    open = open && w["shortfall"].is_number() && w["shortfall"] <= 0;
    misses += (misses.empty() ? "" : " and ") + w["goal"].get<std::string>() + " in " + name +
              " (" + (w["mean"].is_null() ? "-" : digits_of(w["mean"])) + ")";
  }
  const double more = best["price_per_hour"].get<double>() - bare["price_per_hour"].get<double>();
  const bool same = bare["replicas"] == best["replicas"];
  // Whole nodes may have room for what the events take.
  EXPECT_TRUE(same ? more == 0 : more >= 0);
  const bool one = fleet_words(bare["replicas"]) == "1 a";
  EXPECT_TRUE(said.has("It also holds through " + names +
                       (same ? ", which costs nothing: without that the fleet would be the same."
                             : ", which costs $" + fixed(more, 2) +
                                   " an hour: " + fleet_words(bare["replicas"]) + " at $" +
                                   fixed(bare["price_per_hour"], 2) + "/h " +
                                   (one ? "holds" : "hold") + " the steady rate, but " +
                                   (misses.empty() ? "not through the events while a spare is gone"
                                    : open         ? "may not meet " + misses
                                                   : (one ? "misses " : "miss ") + misses) +
                                   ".")))
      << said.all;
}

/// Policies whose router is the limit.
void expect_true_routers(const Json& r, const Said& said) {
  bool some = false;
  for (const Json& family : r["families"]) {
    if (!family.contains("router_requests_per_s")) continue;
    some = true;
    EXPECT_FALSE(family.contains("replicas"));
    EXPECT_TRUE(said.has("No number of servers meets the goals with " +
                         family["policy"].get<std::string>() + ": its router decides 10.5 req/s."))
        << said.all;
  }
  EXPECT_EQ(said.has("No number of servers meets the goals"), some) << said.all;
}

/// What each mode of the day costs, and the cheapest that meets every goal.
void expect_true_days(const Json& r, const Said& said) {
  const bool asked = !r["plans"].empty() && r["plans"][0].contains("day");
  EXPECT_EQ(said.has("With fixed servers the fleet costs "), asked) << said.all;
  if (!asked) return;
  double least = kInfinity;
  for (const Json& plan : r["plans"])
    for (const Json& day : plan["day"])
      if (day["meets"]) least = std::min(least, day["price_per_day"].get<double>());
  EXPECT_EQ(said.has("No fleet and autoscaler of these meets every goal"), std::isinf(least));
  EXPECT_EQ(said.has("The cheapest that meets every goal over the day"), std::isfinite(least));
  if (std::isfinite(least)) {
    EXPECT_TRUE(said.has(", $" + fixed(least, 2) + " a day.")) << said.all;
  }
  const Json& modes = r["plans"][0]["day"];
  const double all = modes[0]["price_per_day"];
  for (std::size_t i = 1; i < modes.size(); ++i) {
    const Json& day = modes[i];
    const double price = day["price_per_day"];
    char change[32];
    std::snprintf(change, sizeof change, "%+.0f %%", 100 * (price / all - 1));
    std::string text = day["autoscaler"].get<std::string>() + " costs $" + fixed(price, 2) +
                       " a day instead of $" + fixed(all, 2) + " (" + change + ") ";
    const bool some = std::ranges::any_of(r["goals"], [](const Json& goal) {
      return goal.get<std::string>().find("_per_s") != std::string::npos;
    });
    text += !day["meets"] ? "but misses "
            : some        ? "and meets every goal but those of throughput in every hour."
                          : "and meets every goal in every hour.";
    EXPECT_TRUE(said.has(text)) << text << "\n" << said.all;
    for (const Json& goal : day["goals"])
      if (goal["missed"] > 0) {
        EXPECT_TRUE(said.has(goal["name"].get<std::string>() + " in " +
                             std::to_string(goal["missed"].get<int>()) +
                             " of 24 hours, worst at 09:00"))
            << said.all;
      }
  }
}

/// The rate, the goals and the confidence that they have.
void expect_true_demand(const Json& r, const Said& said) {
  std::string goals, failures;
  for (const std::string goal : r["goals"])
    if (goal.rfind("failure_rate", 0) == 0)
      failures = goal;
    else if (goal.rfind("queue_growth", 0) != 0 && goal.rfind("sent_rate", 0) != 0)
      goals += (goals.empty() ? "" : ", ") + goal;
  EXPECT_TRUE(said.has("Goals, each with " + fixed(100 * r["confidence"].get<double>(), 0) +
                       " % confidence: " + goals + "; and " + failures + "."))
      << said.all;
  EXPECT_NEAR(r["planned_rate"].get<double>(),
              r["rate_today"].get<double>() * (1 + r["growth"].get<double>()), 1e-9);
  EXPECT_EQ(said.has(" growth)"), r["growth"] > 0);
}

/// Titles of charts: what money buys.
void expect_true_titles(const PlanRecord& record, const Json& r) {
  double least = kInfinity;
  for (const Json& e : r["evaluated"])
    if (e["verdict"] == "meets") least = std::min(least, e["price_per_hour"].get<double>());
  const StudyDocument document = plan_document(record);
  std::vector<const Chart*> charts;
  if (document.verdict.picture) charts.push_back(&*document.verdict.picture);
  for (const auto& block : document.blocks)
    if (const auto* more = std::get_if<Charts>(&block.content))
      for (const Chart& chart : more->charts) charts.push_back(&chart);
  for (const Chart* chart : charts)
    if (const auto* front = std::get_if<Scatter>(chart)) {
      EXPECT_EQ(front->title.rfind("No fleet meets", 0) == 0, std::isinf(least)) << front->title;
      double found = kInfinity;
      for (const Scatter::Point& p : front->points)
        if (!p.hollow) found = std::min(found, p.x);
      EXPECT_EQ(found, least);
    }
}

TEST(PlanClaims, EverySentenceFollowsFromTheNumbers) {
  std::map<std::string, int> seen;
  for (std::uint64_t n = 0; n < 500; ++n) {
    SCOPED_TRACE("case " + std::to_string(n) + " of seed " + std::to_string(kPlanClaimsSeed));
    const PlanCase c = RandomPlan(n).make();
    PlanRecord record = plan_record(c.space, c.result);
    const Json r = Json::parse(json_text(record));
    const Said said = said_by(record);
    ++seen[r["plans"].empty() ? "none" : r.contains("partial") ? "partial" : "met"];
    for (const char* branch : {"can flip",
                               "No other plan gets",
                               "No other plan holds",
                               "met the goals.",
                               "was tried.",
                               "Too short",
                               "does not decide",
                               "which meets it",
                               "nothing alone",
                               "to spare is",
                               "It takes as many",
                               "no size of this space",
                               "next server is due",
                               "no server is due",
                               "are idle",
                               "a month reserved",
                               "which costs nothing",
                               "hold the steady",
                               "while a spare",
                               " in e1 (",
                               "it is judged for",
                               "and meets every goal",
                               "but misses",
                               "The cheapest that meets",
                               "a goal over the day as a whole",
                               "No number of servers"})
      seen[branch] += said.has(branch) ? 1 : 0;
    expect_true_answer(c, r, said);
    expect_true_miss(r, said);
    expect_true_margins(r, said);
    expect_true_robustness(r, said);
    expect_true_length(c, r, said);
    expect_true_bindings(r, said);
    expect_true_demand(r, said);
    expect_true_survival(r, said);
    expect_true_routers(r, said);
    expect_true_days(r, said);
    expect_true_titles(record, r);
    expect_true_months(r, said);
    expect_true_front(c, r);
    if (HasFailure()) break;
  }
  for (const auto& [branch, count] : seen) EXPECT_GE(count, 5) << branch << " is hardly tested";
}

// Nodes of 8 GPUs. Five replicas of 3 GPUs fill two nodes with two each and leave 2 GPUs in each,
// the fifth leaves 5 in a third; of three replicas of 2 GPUs two go where 2 are left. One replica
// of 12 GPUs takes two nodes of its own.
TEST(PlanFamily, PaysForWholeNodes) {
  PlanFamily family;
  family.prices = {{.accelerator = "g", .per_hour = 2, .gpus_per_node = 8}};
  family.costs = {{.gpus = 3}, {.gpus = 2}, {.gpus = 12, .others_per_hour = 0.5}};
  EXPECT_EQ(family.gpus({5, 3, 0}), 21);
  EXPECT_EQ(family.paid_gpus({5, 3, 0}), 24);
  EXPECT_EQ(family.paid_gpus({5, 4, 0}), 24);  // 2, 2, and two of the five
  EXPECT_EQ(family.paid_gpus({5, 5, 0}), 32);  // one GPU of the third node is left
  EXPECT_EQ(family.paid_gpus({0, 0, 1}), 16);
  EXPECT_DOUBLE_EQ(family.price({5, 5, 1}), 48 * 2 + 0.5);
  EXPECT_EQ(family.price({1, 0, 0}, Contract::kSpot), std::nullopt);
  family.prices[0].spot_per_hour = 0.5;
  EXPECT_EQ(family.price({1, 0, 0}, Contract::kSpot), 4);
}

}  // namespace
}  // namespace routesim::tools
