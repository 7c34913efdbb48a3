#include "workloads/client.h"

#include "tests/workloads/drive.h"
#include "workloads/prompts.h"

namespace routesim::workloads {
namespace {

using testing::drive;
using testing::fixed_latency;
using testing::Sent;

class PlainSource final : public RequestSource {
 public:
  void fill(std::size_t, std::int64_t index, Request& request) override {
    PromptBuilder prompt;
    prompt.append(1, 10);
    request.prompt = std::move(prompt).build(static_cast<std::uint64_t>(index));
    request.output_tokens = request.max_tokens = 1;
  }
};

std::vector<Duration> ms(std::initializer_list<int> values) {
  std::vector<Duration> out;
  for (const int v : values) out.push_back(Duration::milliseconds(v));
  return out;
}

StagePlan plan(std::vector<Duration> due, std::int64_t permits = kUnlimitedPermits) {
  StagePlan p;
  p.info.requests = static_cast<std::int64_t>(due.size());
  p.permits = permits;
  auto position = std::make_shared<std::size_t>(0);
  p.arrivals = callback_arrivals([due, position](Duration& out) {
    if (*position == due.size()) return false;
    out = due[(*position)++];
    return true;
  });
  return p;
}

std::unique_ptr<StagedClient> client(std::vector<StagePlan> plans, StageTiming timing = {}) {
  return std::make_unique<StagedClient>(std::move(plans), std::make_unique<PlainSource>(), timing);
}

std::int64_t at_ms(SimTime t) { return t.ns() / 1'000'000; }

TEST(StageEnd, IsTheNextPoll) {
  const SimTime start = SimTime::from_ns(500'000'000);
  const Duration second = Duration::seconds(1);
  EXPECT_EQ(at_ms(stage_end(start, SimTime::from_ns(3'400'000'000), second)), 3500);
  EXPECT_EQ(at_ms(stage_end(start, SimTime::from_ns(3'500'000'000), second)), 3500);
  EXPECT_EQ(at_ms(stage_end(start, SimTime::from_ns(3'500'000'001), second)), 4500);
  EXPECT_EQ(stage_end(start, start, second), start);
}

TEST(StagedClient, SendsAtTheDueTimesWhilePermitsLast) {
  std::vector<StagePlan> plans;
  plans.push_back(plan(ms({0, 10, 10, 40})));
  auto load = client(std::move(plans));
  const auto sent = drive(*load, fixed_latency(Duration::milliseconds(100)));
  ASSERT_EQ(sent.size(), 4U);
  const std::vector<std::int64_t> want = {0, 10, 10, 40};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(at_ms(sent[i].sent), want[i]);
    EXPECT_EQ(sent[i].request.id, RequestId(i));
  }
  EXPECT_TRUE(load->finished());
}

TEST(StagedClient, WhatIsUpcomingIsWhatItSendsNext) {
  std::vector<StagePlan> plans;
  plans.push_back(plan(std::vector<Duration>(21, Duration::zero()), 1));
  plans.push_back(plan(ms({0, 10, 20}), 2));
  auto load = client(std::move(plans));
  std::vector<Request> batch;
  std::vector<RequestId> sent;
  SimTime now;
  while (!load->finished()) {
    for (std::size_t i = 0; const Request* next = load->upcoming(i); ++i)
      EXPECT_EQ(next->id, RequestId(sent.size() + i));
    EXPECT_NE(load->upcoming(0), nullptr) << "of an open loop something is always known";
    now = load->next_action();
    batch.clear();
    load->advance(now, batch);
    for (const Request& request : batch) sent.push_back(request.id);
    for (const Request& request : batch) load->on_completed(request, Outcome::kSuccess, now);
  }
  EXPECT_EQ(sent.size(), 24U);
  EXPECT_EQ(load->upcoming(0), nullptr);
}

TEST(StagedClient, PermitsMakeItAFifoStation) {
  // send_i = max(due_i, the instant when at most K - 1 earlier requests are unfinished).
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, Stream::kTest);
    const std::int64_t permits = 1 + static_cast<std::int64_t>(random.below(7));
    std::vector<Duration> due, latency;
    Duration t;
    for (int i = 0; i < 300; ++i) {
      t += Duration::milliseconds(static_cast<std::int64_t>(random.below(20)));
      due.push_back(t);
      latency.push_back(Duration::milliseconds(1 + static_cast<std::int64_t>(random.below(99))));
    }
    std::vector<StagePlan> plans;
    plans.push_back(plan(due, permits));
    auto load = client(std::move(plans));
    const auto sent = drive(*load, [&](const Request& r) { return latency[r.id.value()]; });
    ASSERT_EQ(sent.size(), due.size());
    std::vector<SimTime> done;
    for (std::size_t i = 0; i < due.size(); ++i) {
      SimTime want = SimTime::zero() + due[i];
      if (i >= static_cast<std::size_t>(permits)) {
        // The K-th latest completion of the earlier requests frees the permit.
        std::vector<SimTime> earlier = done;
        std::sort(earlier.begin(), earlier.end());
        want = std::max(want, earlier[i - static_cast<std::size_t>(permits)]);
      }
      EXPECT_EQ(sent[i].sent, want) << "request " << i;
      EXPECT_EQ(sent[i].request.due, SimTime::zero() + due[i]);
      done.push_back(sent[i].sent + latency[i]);
    }
  }
}

TEST(StagedClient, StagesFollowEachOtherWithLeadPollAndInterval) {
  std::vector<StagePlan> plans;
  plans.push_back(plan(ms({200, 900})));
  plans.push_back(plan({}));
  plans.push_back(plan(ms({50})));
  auto load = client(std::move(plans), {.lead = Duration::seconds(1),
                                        .poll = Duration::seconds(1),
                                        .interval = Duration::milliseconds(2500)});
  const auto sent = drive(*load, fixed_latency(Duration::milliseconds(1600)));
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(at_ms(sent[0].sent), 1200);
  EXPECT_EQ(at_ms(sent[1].sent), 1900);
  // Last completion 3.5 s, seen at 4 s; stage 1 starts at 6.5 s and is empty: over at once; stage 2
  // starts at 9 s.
  EXPECT_EQ(at_ms(sent[2].sent), 9000 + 1000 + 50);
  EXPECT_EQ(sent[2].request.stage, StageId(2));
  EXPECT_TRUE(load->finished());
}

TEST(StagedClient, AClosedLoopKeepsItsLevel) {
  std::vector<StagePlan> plans;
  StagePlan p = plan({}, 4);
  p.arrivals = immediate_arrivals(12);
  plans.push_back(std::move(p));
  auto load = client(std::move(plans));
  const auto sent = drive(*load, fixed_latency(Duration::milliseconds(100)));
  for (std::size_t i = 0; i < 12; ++i)
    EXPECT_EQ(at_ms(sent[i].sent), static_cast<std::int64_t>(i / 4) * 100);
}

TEST(StagedClient, ATimedOutRequestFreesItsPermit) {
  std::vector<StagePlan> plans;
  StagePlan p = plan(ms({0, 0}), 1);
  p.timeout = Duration::seconds(3);
  plans.push_back(std::move(p));
  auto load = client(std::move(plans));
  const auto sent = drive(*load, fixed_latency(Duration::seconds(100)));
  EXPECT_EQ(sent[0].outcome, Outcome::kTimeout);
  EXPECT_EQ(at_ms(sent[1].sent), 3000);
  EXPECT_TRUE(load->finished());
}

}  // namespace
}  // namespace routesim::workloads
