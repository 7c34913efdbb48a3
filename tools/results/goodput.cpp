#include "tools/results/goodput.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "sim/plan/fleet_plan.h"
#include "sim/plan/resolve.h"
#include "tools/results/metric_name.h"

namespace routesim::tools {

namespace {

struct GoalName {
  std::string_view name;
  std::optional<double> GoodputGoals::*goal;
};
constexpr std::array<GoalName, 6> kGoals = {{{"ttft", &GoodputGoals::ttft},
                                             {"tpot", &GoodputGoals::tpot},
                                             {"itl", &GoodputGoals::itl},
                                             {"ntpot", &GoodputGoals::ntpot},
                                             {"request_latency", &GoodputGoals::request_latency},
                                             {"e2el", &GoodputGoals::request_latency}}};

/// The goals up to here (ttft, tpot, itl) are about times between tokens.
constexpr std::size_t kLastOfTokens = 2;

}  // namespace

std::vector<std::pair<std::string_view, double>> goal_list(const GoodputGoals& goals) {
  std::vector<std::pair<std::string_view, double>> list;
  for (const GoalName& g : kGoals)
    if (goals.*g.goal && g.name != "e2el") list.emplace_back(g.name, *(goals.*g.goal));
  return list;
}

std::size_t goal_index(std::string_view name) {
  std::size_t i = 0;
  while (i + 1 < kGoals.size() && kGoals[i].name != name) ++i;
  return i;
}

void ToolGoodput::add(const ToolGoodput& other) {
  good += other.good;
  good_tokens += other.good_tokens;
  for (std::size_t i = 0; i < attained.size(); ++i) attained[i] += other.attained[i];
  first_send = std::min(first_send, other.first_send);
  last_end = std::max(last_end, other.last_end);
}

std::string read_goal(const std::string& text, GoodputGoals& goals) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const auto* const found =
      std::ranges::find_if(kGoals, [&](const GoalName& g) { return g.name == name; });
  if (colon == std::string::npos || found == kGoals.end())
    return "must be NAME:BOUND, such as ttft:500ms, with ttft, tpot, itl, ntpot or request_latency "
           "(got " +
           printable(text) + ")";
  const std::string bound = text.substr(colon + 1);
  const auto node = ConfigNode::make_scalar(bound, ConfigNode::Style::kUntyped, {});
  const bool has_unit = !bound.empty() && bound.back() == 's';
  const Parsed<Duration> value = parse_duration(*node, {});
  if (!value.value || !has_unit || *value.value <= Duration())
    return "needs a bound with its unit, such as ttft:500ms (got " + printable(text) + ")";
  const double seconds = value.value->to_seconds();
  const std::optional<double>& known = goals.*found->goal;
  if (known && *known != seconds)
    return "is a second bound of " + name + " (got " + printable(text) + ")";
  goals.*found->goal = seconds;
  return {};
}

namespace {

GoodputGoals goals_in(const std::vector<std::string>& texts) {
  GoodputGoals goals;
  for (const std::string& goal : texts) (void)read_goal(goal, goals);
  return goals;
}

GoodputGoals goals_of_tool(const workloads::Load& load) {
  const workloads::GoodputConstraints c = traits_of(load).goodput;
  return {.ttft = c.ttft,
          .tpot = c.tpot,
          .itl = c.itl,
          .ntpot = c.ntpot,
          .request_latency = c.request_latency};
}

}  // namespace

GoodputGoals goals_of(const sim::Scenario& scenario) {
  GoodputGoals goals = goals_in(scenario.goodput);
  std::vector<GoodputGoals> of_parts;
  for (const sim::MixPart& part : scenario.workload.mix) {
    GoodputGoals own = goals_in(part.goodput);
    if (own.empty()) own = goals.empty() ? goals_of_tool(part.load) : goals;
    of_parts.push_back(std::move(own));
  }
  if (goals.empty() && of_parts.empty()) return goals_of_tool(scenario.workload.load);
  goals.of_parts = std::move(of_parts);
  return goals;
}

bool GoodputObserver::keeps_time(const sim::Scenario& scenario) {
  const auto has_demand = [](const sim::MixPart& part) { return part.demand.has_value(); };
  return sim::tells_fleet(scenario) || scenario.workload.demand ||
         std::ranges::any_of(scenario.workload.mix, has_demand);
}

void GoodputObserver::on_start(const sim::RunView& view) {
  if (!keeps_time(view.plan.scenario)) return;
  over_time_.emplace();
  in_run_ = &view.stages;
}

void GoodputObserver::on_sent(const workloads::Request& request, SimTime now) {
  if (!over_time_) return;
  const workloads::StageInfo& stage = (*in_run_)[request.stage.value()];
  if (!stage.reported) return;
  over_time_->on_sent(now);
  if (stage.part >= 0) loads_[stage.part].on_sent(now);
}

std::optional<double> expected_share(const sim::Scenario& scenario) {
  std::optional<double> share;
  for (const sim::ExpectConfig& e : scenario.expect) {
    if (!e.stage.empty() || (!e.variant.empty() && e.variant != scenario.variant)) continue;
    const std::optional<MetricGoal> goal = parse_metric_goal(e.that).value;
    if (!goal || goal->upper || goal->metric.metric != goodput_metric().metric) continue;
    const double bound_share = goal->bound / (goal->metric.unit == "%" ? 100 : 1);
    share = std::clamp(bound_share, share.value_or(0), 1.0);
  }
  return share;
}

bool GoodputObserver::count(const sim::RequestRecord& record) {
  const auto stage = static_cast<std::size_t>(record.stage);
  const std::int64_t tokens = std::max<std::int64_t>(
      1, std::llround(static_cast<double>(record.output_tokens) * output_token_scale_));
  const double answered = (record.end - record.sent).to_seconds();
  const double latency = (record.end + record.held_open - record.sent).to_seconds();
  const double ttft = (record.first_token - record.sent).to_seconds();
  const double tpot = tokens > 1 ? (answered - ttft) / static_cast<double>(tokens - 1) : 0;
  // By goal_index().
  const std::array<double, 5> values = {ttft, tpot, tpot, latency / static_cast<double>(tokens),
                                        latency};
  ToolGoodput& tool = stages_[stage].tool;
  tool.first_send = std::min(tool.first_send, record.sent);
  tool.last_end = std::max(tool.last_end, record.end + record.held_open);
  const bool mixed = !goals_.of_parts.empty();
  const GoodputGoals& goals = goals_.of(mixed ? std::int64_t{record.traffic_class} : -1);
  bool good = true, good_for_tool = true;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::optional<double>& bound = goals.*kGoals[i].goal;
    if (!bound) continue;
    const bool about_tokens = i <= kLastOfTokens;
    const bool met = values[i] <= *bound && (sees_tokens_ || !about_tokens);
    const bool exists = tokens > 1 || !about_tokens;
    tool.attained[i] += met && exists;
    good = good && met;
    good_for_tool = good_for_tool && met && exists;
  }
  if (good_for_tool) {
    ++tool.good;
    tool.good_tokens += record.prompt_tokens + tokens;
  }
  if (!good) return false;
  ++stages_[stage].good;
  stages_[stage].good_tokens += tokens;
  return true;
}

void GoodputObserver::on_done(const sim::RequestRecord& record) {
  const auto stage = static_cast<std::size_t>(record.stage);
  if (stage >= stages_.size()) stages_.resize(stage + 1);
  const bool answered = record.outcome == workloads::Outcome::kSuccess;
  const bool good = answered && count(record);
  if (!over_time_ || !(*in_run_)[stage].reported) return;
  // A connection to a machine that is gone stays open; nothing happens to its request any more.
  const bool gone = record.outcome == workloads::Outcome::kError &&
                    record.end - record.sent >= sim::kConnectionLost;
  const SimTime end = gone ? record.end - sim::kConnectionLost : record.end;
  over_time_->on_done(record.sent, end, answered, good);
  if (const std::int64_t part = (*in_run_)[stage].part; part >= 0)
    loads_[part].on_done(record.sent, end, answered, good);
}

std::map<std::int64_t, sim::TimelineCounter> GoodputObserver::loads_over_time() const {
  std::map<std::int64_t, sim::TimelineCounter> out;
  for (const auto& [part, counts] : loads_)
    if (!goals_.of(part).empty()) out.emplace(part, counts.in_bins_of(*over_time_));
  return out;
}

void GoodputObserver::complete(sim::RunResult& run) const {
  const GoodputResult counts = result(run);
  for (std::size_t i = 0; i < run.stages.size(); ++i)
    run.stages[i].good_requests = counts.stages[i].good;
  for (std::size_t i = 0; i < counts.parts.size(); ++i)
    run.classes[i].good_requests = counts.parts[i].good;
  run.summary.good_requests = counts.summary.good;
}

GoodputResult GoodputObserver::result(const sim::RunResult& run) const {
  GoodputResult result{.goals = goals_, .stages = stages_};
  result.stages.resize(run.stages.size());
  const auto add = [](GoodputCount& to, const GoodputCount& stage) {
    to.good += stage.good;
    to.good_tokens += stage.good_tokens;
    to.tool.add(stage.tool);
  };
  for (std::size_t i = 0; i < run.stages.size(); ++i) {
    if (!run.stages[i].info.reported) continue;
    add(result.summary, result.stages[i]);
    const auto part = static_cast<std::size_t>(run.stages[i].info.part);  // None is -1.
    if (part >= run.classes.size()) continue;
    result.parts.resize(run.classes.size());
    add(result.parts[part], result.stages[i]);
  }
  return result;
}

}  // namespace routesim::tools
