// Demand by the clock: closed forms of the rates, counts against them, and what loads make of it.
#include "workloads/demand/demand.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "tests/workloads/drive.h"
#include "tests/workloads/memory_readers.h"
#include "workloads/load/load.h"

namespace routesim::workloads {
namespace {

constexpr Duration hours(double h) { return Duration::from_seconds(h * 3600); }

Demand profile(std::vector<DemandPoint> points, RateShape shape = RateShape::kSteps) {
  Demand demand;
  demand.profile = std::move(points);
  demand.interpolate = shape;
  return demand;
}

Demand office_day() { return profile({{hours(0), 0.5}, {hours(9), 2}, {hours(17), 1}}); }

double expected(const Demand& demand, double from_h, double to_h) {
  return DemandCurve(demand).expected(hours(from_h), hours(to_h));
}

std::vector<Duration> all_of(ArrivalStream& stream) {
  std::vector<Duration> out;
  for (Duration due; stream.next(due);) out.push_back(due);
  return out;
}

std::vector<Duration> arrivals(const Demand& demand, std::uint64_t seed = 1) {
  return all_of(*curve_arrivals(DemandCurve(demand), RandomStream(seed, Stream::kArrivals)));
}

std::vector<std::string> faults(const Demand& demand, const LoadInputs& inputs = {}) {
  Diagnostics found;
  EXPECT_FALSE(demand_arrivals(demand, 1, inputs, found).has_value());
  std::vector<std::string> out;
  for (const Diagnostic& d : found.items()) out.push_back(d.path + ": " + d.message);
  return out;
}

LoadInputs with_trace(std::vector<TraceRecord> records) {
  LoadInputs inputs;
  inputs.demand_trace = [records] { return testing::reader_of(records); };
  return inputs;
}

TEST(DemandCurve, OfStepsIsASumOfRectangles) {
  const Demand day = office_day();
  EXPECT_EQ(DemandCurve(day).length(), hours(24));
  EXPECT_DOUBLE_EQ(expected(day, 0, 24), 3600 * (9 * 0.5 + 8 * 2 + 7 * 1));
  EXPECT_DOUBLE_EQ(expected(day, 8.5, 9.25), 3600 * (0.5 * 0.5 + 0.25 * 2));
  // Before its first point a day has the rate that the day before ended with.
  const Demand late = profile({{hours(6), 10}, {hours(18), 2}});
  EXPECT_DOUBLE_EQ(expected(late, 0, 6), 3600 * 6 * 2);
  EXPECT_DOUBLE_EQ(expected(late, 0, 24), 3600 * (12 * 2 + 12 * 10));
  EXPECT_DOUBLE_EQ(expected(profile({{hours(5), 3}}), 0, 24), 3600 * 24 * 3);
}

TEST(DemandCurve, OfLinesIsASumOfTrapezoids) {
  const Demand day = profile({{hours(0), 4}, {hours(12), 16}}, RateShape::kLinear);
  EXPECT_DOUBLE_EQ(expected(day, 0, 6), 6 * 3600 * (4 + 10) / 2.0);
  EXPECT_DOUBLE_EQ(expected(day, 0, 12), 12 * 3600 * 10);
  EXPECT_DOUBLE_EQ(expected(day, 18, 24), 6 * 3600 * (10 + 4) / 2.0) << "back to the first point";
  // From 18:00 to 6:00 the line goes on over midnight: 6 at midnight.
  const Demand late = profile({{hours(6), 10}, {hours(18), 2}}, RateShape::kLinear);
  EXPECT_DOUBLE_EQ(expected(late, 0, 6), 6 * 3600 * (6 + 10) / 2.0);
  EXPECT_DOUBLE_EQ(expected(late, 18, 24), 6 * 3600 * (2 + 6) / 2.0);
  // A point at the end says where the line goes, and the next day jumps to its own first point.
  Demand saw = profile({{hours(0), 0}, {hours(24), 8}}, RateShape::kLinear);
  saw.days = 2;
  EXPECT_DOUBLE_EQ(expected(saw, 0, 24), 24 * 3600 * 4);
  EXPECT_DOUBLE_EQ(expected(saw, 24, 30), 6 * 3600 * 1);
}

TEST(DemandCurve, RepeatsAndGrowsByTheDay) {
  Demand demand = office_day();
  demand.days = 62;
  demand.scale = 3;
  const double first = 3600 * (9 * 0.5 + 8 * 2 + 7 * 1) * 3;
  EXPECT_DOUBLE_EQ(expected(demand, 0, 24), first);
  EXPECT_DOUBLE_EQ(expected(demand, 24 * 61, 24 * 62), first);
  demand.growth_per_month = 0.1;
  EXPECT_DOUBLE_EQ(expected(demand, 0, 24), first) << "it begins as written";
  EXPECT_NEAR(expected(demand, 24 * 61, 24 * 62) / first, std::pow(1.1, 61 / (365.25 / 12)), 1e-12);
  EXPECT_NEAR(expected(demand, 24, 25) / expected(demand, 23, 24),
              0.5 / 1 * std::pow(1.1, 1 / (365.25 / 12)), 1e-12);
  Demand two_days = profile({{hours(0), 1}});
  two_days.period = hours(48);
  two_days.growth_per_month = 0.1;
  EXPECT_NEAR(expected(two_days, 24, 48) / expected(two_days, 0, 24),
              std::pow(1.1, 1 / (365.25 / 12)), 1e-12)
      << "at midnight, whatever the period";
}

TEST(DemandCurve, LastsAsLongAsItsPointsNeed) {
  const auto length = [](const Demand& d) { return DemandCurve(d).length(); };
  EXPECT_EQ(length(profile({{hours(0), 1}, {hours(24), 2}})), hours(48));
  EXPECT_EQ(length(profile({{hours(0), 1}, {hours(24), 2}}, RateShape::kLinear)), hours(24));
  EXPECT_EQ(length(profile({{hours(0), 1}, {hours(150), 2}})), hours(168)) << "a week";
  Demand short_one = profile({{hours(0), 1}});
  short_one.period = hours(2);
  EXPECT_EQ(length(short_one), hours(2));
  short_one.days = 0.5;
  EXPECT_EQ(length(short_one), hours(12));
}

/// The integral of the rates up to each arrival is a Poisson process of rate 1 with the very gaps
/// that were drawn.
void expect_exact(const Demand& demand, std::size_t checked) {
  const DemandCurve curve(demand);
  RandomStream gaps(7, Stream::kArrivals);
  const std::unique_ptr<ArrivalStream> stream =
      curve_arrivals(curve, RandomStream(7, Stream::kArrivals));
  double sum = 0;
  Duration due, last;
  for (std::size_t i = 0; i < checked && stream->next(due); ++i) {
    sum += gaps.exponential(1);
    ASSERT_GE(due, last);
    ASSERT_NEAR(curve.expected(Duration::zero(), due), sum, 1e-6 * std::max(1.0, sum)) << i;
    last = due;
  }
  EXPECT_GT(sum, 0);
}

TEST(DemandArrivals, InvertTheIntegralOfTheRates) {
  Demand demand = profile({{hours(0), 0.001}, {hours(1), 0.02}, {hours(2), 0}, {hours(5), 0.01}});
  demand.days = 20;
  demand.growth_per_month = 0.3;
  expect_exact(demand, 3000);
  demand.interpolate = RateShape::kLinear;
  expect_exact(demand, 3000);
}

TEST(DemandArrivals, AreAsManyAsTheProfileSaysInEachHour) {
  for (const RateShape shape : {RateShape::kSteps, RateShape::kLinear}) {
    Demand demand = office_day();
    demand.interpolate = shape;
    std::vector<double> count(24);
    const std::vector<Duration> all = arrivals(demand);
    for (const Duration due : all) count.at(static_cast<std::size_t>(due / hours(1))) += 1;
    for (int h = 0; h < 24; ++h) {
      const double mean = expected(demand, h, h + 1);
      EXPECT_NEAR(count[static_cast<std::size_t>(h)], mean, 4.5 * std::sqrt(mean)) << h;
    }
    const double mean = expected(demand, 0, 24);
    EXPECT_NEAR(static_cast<double>(all.size()), mean, 4 * std::sqrt(mean));
    EXPECT_EQ(all, arrivals(demand)) << "the same seed";
    EXPECT_NE(all, arrivals(demand, 2));
  }
}

TEST(DemandArrivals, RestWhereTheRateIsZero) {
  const Demand demand = profile({{hours(0), 0}, {hours(8), 0.1}, {hours(18), 0}});
  for (const Duration due : arrivals(demand)) {
    EXPECT_GE(due, hours(8));
    EXPECT_LE(due, hours(18));
  }
}

TEST(DemandArrivals, OfATraceAreItsOwnTimes) {
  const std::vector<TraceRecord> records = {{.at = Duration::milliseconds(0)},
                                            {.at = Duration::milliseconds(1500)},
                                            {.at = hours(1)},
                                            {.at = hours(3) + Duration::milliseconds(2)}};
  Demand demand;
  demand.arrivals_of = "t.csv";
  Diagnostics found;
  auto made = demand_arrivals(demand, 1, with_trace(records), found);
  ASSERT_TRUE(made);
  const std::vector<Duration> due = all_of(*made->make());
  ASSERT_EQ(due.size(), records.size());
  for (std::size_t i = 0; i < due.size(); ++i) EXPECT_EQ(due[i], records[i].at);
  EXPECT_EQ(made->requests, (std::vector<double>{2, 1, 0, 1}));
  demand.scale = 2;
  made = demand_arrivals(demand, 1, with_trace(records), found);
  EXPECT_EQ(all_of(*made->make())[1], Duration::milliseconds(750)) << "twice as fast";
  EXPECT_EQ(made->length, hours(1.5) + Duration::milliseconds(1));
  EXPECT_EQ(made->requests, (std::vector<double>{3, 1}));
  // What comes at the very end belongs to the last stage.
  demand.scale = 1;
  made = demand_arrivals(demand, 1, with_trace({{.at = hours(0)}, {.at = hours(1)}}), found);
  EXPECT_EQ(made->requests, (std::vector<double>{2}));
  EXPECT_FALSE(found.has_errors());
}

TEST(DemandFaults, NameTheKeyAndSayWhy) {
  using Faults = std::vector<std::string>;
  EXPECT_EQ(faults({}), Faults{"workload.demand: has no rates"});
  EXPECT_EQ(faults(profile({{hours(1), 1}, {hours(1), 2}})),
            Faults{"workload.demand.profile[1].at: must be later than the point before it (got "
                   "3600s after 3600s)"});
  Demand beyond = profile({{hours(0), 1}, {hours(2), 2}});
  beyond.period = hours(2);
  EXPECT_EQ(faults(beyond), Faults{"workload.demand.profile[1].at: lies behind the period of "
                                   "7200s (got 7200s)"});
  EXPECT_EQ(faults(profile({{hours(0), 0}})),
            Faults{"workload.demand: asks for less than one request (0 are expected)"});
  Demand many = profile({{hours(0), 1e6}});
  EXPECT_EQ(faults(many), Faults{"workload.demand: asks for more than 10^9 requests (86400000000 "
                                 "are expected)"});
  Demand fine = profile({{hours(0), 1}});
  fine.report_every = Duration::seconds(1);
  EXPECT_EQ(faults(fine), Faults{"workload.demand.report_every: makes 86400 stages, and a report "
                                 "has at most 2400 (got 1s)"});
  Demand both = office_day();
  both.arrivals_of = "t.csv";
  both.days = 3;
  EXPECT_EQ(faults(both, with_trace({{}})).size(), 2U) << "profile, days";
  Demand trace;
  trace.arrivals_of = "t.csv";
  EXPECT_EQ(faults(trace, with_trace({})),
            Faults{"workload.demand.arrivals_of: the trace has no records"});
  EXPECT_EQ(faults(trace, with_trace({{}, {.delay = hours(1)}})),
            Faults{"workload.demand.arrivals_of: a record waits for the answer before it, and has "
                   "no time of its own"});
}

/// The load with the demand in place of its rates, sent to servers that answer in two seconds.
struct Played {
  std::vector<StageInfo> stages;
  std::vector<testing::Sent> sent;
};
Played play(Load load, const Demand& demand) {
  EXPECT_EQ(take_demand(load), "");
  Diagnostics found;
  const auto made = make_load_generator(load, demand, {}, {}, found);
  EXPECT_FALSE(found.has_errors());
  if (made == nullptr) return {};
  Played out;
  out.sent = testing::drive(*made, [](const Request&) { return Duration::seconds(2); });
  out.stages = made->stages();
  EXPECT_TRUE(made->finished());
  return out;
}

Demand two_hours() {
  Demand demand = profile({{hours(0), 0.1}, {hours(1), 0.3}});
  demand.period = hours(1.5);
  return demand;
}

/// All requests of the reported stages come when the demand says, `lead` later, in their stages.
void expect_demanded(const Played& played, const Demand& demand, std::size_t preparation) {
  const std::vector<Duration> due = arrivals(demand);
  std::size_t i = 0;
  SimTime origin;
  for (const testing::Sent& s : played.sent) {
    if (s.request.stage.value() < preparation) continue;
    if (i == 0) origin = s.request.due - due[0];
    ASSERT_LT(i, due.size());
    EXPECT_EQ(s.request.due - origin, due[i]);
    EXPECT_EQ(s.sent, s.request.due);
    EXPECT_EQ(s.request.stage.value(), preparation + (due[i] < hours(1) ? 0 : 1));
    ++i;
  }
  EXPECT_EQ(i, due.size());
  ASSERT_EQ(played.stages.size(), preparation + 2);
  const StageInfo& first = played.stages[preparation];
  const StageInfo& second = played.stages[preparation + 1];
  EXPECT_EQ(first.name, "00:00");
  EXPECT_EQ(second.name, "01:00");
  EXPECT_DOUBLE_EQ(first.duration_s, 3600);
  EXPECT_DOUBLE_EQ(second.duration_s, 1800) << "the rest";
  EXPECT_DOUBLE_EQ(first.requested_rate, 0.1);
  EXPECT_DOUBLE_EQ(second.requested_rate, 0.3);
  EXPECT_TRUE(first.reported && second.reported);
  EXPECT_EQ(first.requests, -1);
}

TEST(DemandedLoad, HasThePromptsOfTheLoadAtTheTimesOfTheDemand) {
  Load groups;
  groups.emplace<GroupLoadConfig>() = {.requests = 3, .rate = 100, .groups = 5};
  const Played played = play(groups, two_hours());
  expect_demanded(played, two_hours(), 0);
  groups.get<GroupLoadConfig>()->requests = 900;
  Diagnostics found;
  const auto plain = make_load_generator(groups, {}, {}, found);
  const auto same = testing::drive(*plain, [](const Request&) { return Duration::zero(); });
  ASSERT_GT(played.sent.size(), 700U);
  ASSERT_LT(played.sent.size(), same.size());
  for (std::size_t i = 0; i < played.sent.size(); ++i) {
    EXPECT_EQ(played.sent[i].request.prompt->segments, same[i].request.prompt->segments);
    EXPECT_EQ(played.sent[i].request.output_tokens, same[i].request.output_tokens);
  }
}

TEST(DemandedLoad, CountsFromTheToolsOwnStart) {
  Load perf;
  auto& config = perf.emplace<inference_perf::Workload>().config.emplace();
  config.data.type = inference_perf::DataType::kRandom;
  config.data.input_distribution = config.data.output_distribution = Distribution::fixed(20);
  config.load.stages = {{.rate = 1, .duration = 10}, {.rate = 2, .duration = 10}};
  const Played led = play(perf, two_hours());
  expect_demanded(led, two_hours(), 0);
  EXPECT_EQ(led.sent[0].request.due,
            SimTime::zero() + Duration::seconds(1) + arrivals(two_hours())[0]);

  Load bench;
  auto& flags = bench.emplace<vllm_bench::Config>();
  flags.dataset_name = vllm_bench::Dataset::kRandom;
  flags.request_rate = 5;
  flags.initial_test_request = true;
  flags.num_warmups = 2;
  const Played prepared = play(bench, two_hours());
  EXPECT_EQ(prepared.stages[0].name, "test");
  expect_demanded(prepared, two_hours(), 2);
}

TEST(DemandedLoad, IsRefusedWhereRequestsHaveTimesOfTheirOwn) {
  const auto refusal = [](auto tool) {
    Load load;
    load.emplace<decltype(tool)>() = std::move(tool);
    return take_demand(load);
  };
  EXPECT_NE(refusal(ConversationsConfig()).find("closed loop"), std::string::npos);
  EXPECT_NE(refusal(TraceWorkload()).find("times of its records"), std::string::npos);
  EXPECT_NE(refusal(MultiRoundQaConfig()).find("multi_round_qa"), std::string::npos);
  EXPECT_NE(refusal(guidellm::Config()).find("guidellm"), std::string::npos);
  vllm_bench::Config bench;
  bench.dataset_name = vllm_bench::Dataset::kRandom;
  EXPECT_NE(refusal(bench).find("request_rate is inf"), std::string::npos);
  bench.request_rate = 3;
  EXPECT_EQ(refusal(bench), "");
  bench.burstiness = 2;
  EXPECT_NE(refusal(bench).find("burstiness"), std::string::npos);
  bench.dataset_name = vllm_bench::Dataset::kShareGpt;
  EXPECT_NE(refusal(bench).find("known beforehand"), std::string::npos);
  inference_perf::Workload perf;
  auto& config = perf.config.emplace();
  config.data.type = inference_perf::DataType::kConversationReplay;
  EXPECT_NE(refusal(perf).find("turns"), std::string::npos);
  config.data.type = inference_perf::DataType::kSyntheticAgentic;
  EXPECT_NE(refusal(perf).find("sessions"), std::string::npos);
  config.data.type = inference_perf::DataType::kRandom;
  config.load.type = inference_perf::LoadType::kConcurrent;
  EXPECT_NE(refusal(perf).find("closed loop"), std::string::npos);
}

}  // namespace
}  // namespace routesim::workloads
