// The checker hears a doctored sequence of observations and names the invariant it breaks.
#include "sim/observe/invariant_checker.h"

#include <array>
#include <functional>

#include "sim/router/router.h"
#include "sim/simulation.h"
#include "tests/sim/result_fixture.h"
#include "tests/sim/sim_fixture.h"
#include "tests/sim/swarm.h"

namespace routesim::sim::testing {
namespace {

/// Which invariant `act` breaks; 0 = none.
int broken_by(const std::function<void()>& act) {
  try {
    act();
  } catch (const InvariantError& e) {
    EXPECT_EQ(std::string(e.what()).rfind("invariant " + std::to_string(e.number()) + ": ", 0), 0U)
        << e.what();
    return e.number();
  }
  return 0;
}

/// One request's story, told right unless a test tells it wrong.
class Story : public ::testing::Test {
 protected:
  Story() {
    checker.start(3, {{.name = "0", .in_flight_cap = 2}}, 4, 100);
    request.id = RequestId(7);
    request.prompt = make_prompt(1, {{5, 40}});
    request.output_tokens = request.max_tokens = 10;
    request.stage = StageId(0);
    request.due = at_ms(1);
    route.routed = true;
    route.endpoint = EndpointId(1);
    record = {.id = 7,
              .stage = 0,
              .endpoint = 1,
              .due = at_ms(1),
              .sent = at_ms(2),
              .first_token = at_ms(20),
              .end = at_ms(30),
              .prompt_tokens = 40,
              .cached_tokens = 32,
              .output_tokens = 10};
  }
  workloads::Request other(std::uint64_t id) const {
    workloads::Request r = request;
    r.id = RequestId(id);
    return r;
  }
  void tell_until_sent() { checker.on_sent(request, at_ms(2)); }
  void tell_until_routed() {
    tell_until_sent();
    checker.on_routed(request, route, at_ms(3));
  }
  void tell_until_delivered() {
    tell_until_routed();
    checker.on_delivered(request, EndpointId(1), at_ms(4));
  }
  void tell_until_answered() {
    tell_until_delivered();
    checker.on_first_token(request, at_ms(20));
  }
  int end_with(const std::function<void(RunResult&)>& doctor) {
    tell_until_answered();
    checker.on_done(record);
    RunResult r = one_request_result();
    doctor(r);
    return broken_by([&] { checker.on_result(r, true); });
  }

  InvariantChecker checker;
  workloads::Request request;
  Route route;
  RequestRecord record;
};

TEST_F(Story, ToldRightBreaksNothing) {
  EXPECT_EQ(end_with([](RunResult&) {}), 0);
}

TEST_F(Story, Invariant1ARequestEndsExactlyOnce) {
  tell_until_answered();
  checker.on_done(record);
  EXPECT_EQ(broken_by([&] { checker.on_done(record); }), 1);
}
TEST_F(Story, Invariant1ARequestIsSentOnce) {
  tell_until_answered();
  checker.on_done(record);
  EXPECT_EQ(broken_by([&] { checker.on_sent(request, at_ms(40)); }), 1);
}
TEST_F(Story, Invariant1NothingHappensToWhatWasNotSent) {
  EXPECT_EQ(broken_by([&] { checker.on_routed(request, route, at_ms(3)); }), 1);
  EXPECT_EQ(broken_by([&] { checker.on_done(record); }), 1);
}
TEST_F(Story, Invariant1ARequestArrivesWhereItWasRouted) {
  tell_until_routed();
  EXPECT_EQ(broken_by([&] { checker.on_delivered(request, EndpointId(2), at_ms(4)); }), 1);
}
TEST_F(Story, Invariant1ARequestIsRoutedAndDeliveredOnce) {
  tell_until_delivered();
  EXPECT_EQ(broken_by([&] { checker.on_routed(request, route, at_ms(5)); }), 1);
  EXPECT_EQ(broken_by([&] { checker.on_delivered(request, EndpointId(1), at_ms(5)); }), 1);
}
TEST_F(Story, Invariant1NobodyIsLeftAtTheEnd) {
  tell_until_answered();
  RunResult r = one_request_result();
  StageResult unanswered;
  unanswered.info = r.stages[0].info;
  unanswered.requests = 1;
  r.stages[0] = unanswered;
  r.stages[0].first_send = r.stages[0].last_send = at_ms(2);
  r.stages[0].schedule_delay.add(0.001);
  r.summary = r.stages[0];
  r.routing = {.decisions = 1};
  r.replicas[1] = {.name = "pool-1", .requests = 1};
  EXPECT_EQ(broken_by([&] { checker.on_result(r, true); }), 1);
  EXPECT_EQ(broken_by([&] { checker.on_result(r, false); }), 0) << "a stopped run may leave some";
}
TEST_F(Story, Invariant1TheResultCountsWhatHappened) {
  EXPECT_EQ(end_with([](RunResult& r) { ++r.stages[0].requests; }), 1);
}
TEST_F(Story, Invariant1EndpointsCountWhatCame) {
  EXPECT_EQ(end_with([](RunResult& r) { ++r.replicas[2].requests; }), 1);
}

TEST_F(Story, Invariant2AllTokensAskedForAreDelivered) {
  tell_until_answered();
  record.output_tokens = 9;
  EXPECT_EQ(broken_by([&] { checker.on_done(record); }), 2);
}
TEST_F(Story, Invariant2AnAnswerHasOneFirstToken) {
  tell_until_answered();
  EXPECT_EQ(broken_by([&] { checker.on_first_token(request, at_ms(21)); }), 2);
}
TEST_F(Story, Invariant2NoAnswerWithoutAFirstToken) {
  tell_until_delivered();
  EXPECT_EQ(broken_by([&] { checker.on_done(record); }), 2);
}
TEST_F(Story, Invariant2EveryFurtherTokenMakesAGap) {
  EXPECT_EQ(end_with([](RunResult& r) { r.stages[0].inter_token_latency.add_nano(5, 1); }), 2);
}
TEST_F(Story, Invariant16TheResultAddsUp) {
  EXPECT_EQ(end_with([](RunResult& r) { ++r.stages[0].output_tokens_total; }), 16);
}

TEST_F(Story, Invariant5TimeNeverGoesBack) {
  tell_until_answered();
  EXPECT_EQ(broken_by([&] { checker.on_sent(other(8), at_ms(19)); }), 5);
}
TEST_F(Story, Invariant5NobodySendsAheadOfTime) {
  EXPECT_EQ(broken_by([&] { checker.on_sent(request, at_ms(0)); }), 5);
}
TEST_F(Story, Invariant5StepsDoNotOverlap) {
  StepSpan span;
  span.replica = 2;
  span.end = at_ms(10);
  span.shape.decode_requests = 1;
  checker.on_step(span);
  span.begin = at_ms(9);
  span.end = at_ms(19);
  EXPECT_EQ(broken_by([&] { checker.on_step(span); }), 5);
}

/// The number of the invariant that spans of (stage, begin, end) of two stages break, in ms.
int broken_by_stays(const std::vector<std::array<int, 3>>& stays) {
  InvariantChecker two;
  two.start(1, {}, 4, 100, 2);
  return broken_by([&] {
    for (const auto& [stage, begin, end] : stays) {
      StepSpan span;
      span.stage = stage;
      span.begin = at_ms(begin);
      span.end = at_ms(end);
      span.shape.decode_requests = 1;
      two.on_step(span);
    }
  });
}
TEST(InvariantChecker, Invariant5BatchesGoThroughTheStagesInOrder) {
  EXPECT_EQ(broken_by_stays({{0, 0, 10}, {1, 10, 20}, {0, 10, 20}, {1, 20, 30}, {0, 20, 30}}), 0);
  // Two batches in the first stage, two in the second, one in both.
  EXPECT_EQ(broken_by_stays({{0, 0, 10}, {1, 10, 20}, {0, 9, 19}}), 5);
  EXPECT_EQ(broken_by_stays({{0, 0, 10}, {1, 10, 20}, {0, 10, 20}, {1, 19, 30}}), 5);
  EXPECT_EQ(broken_by_stays({{0, 0, 10}, {1, 9, 20}}), 5);
  // A third batch while the first is in the second stage; a stage too many; time that goes back.
  EXPECT_EQ(broken_by_stays({{0, 0, 10}, {1, 10, 40}, {0, 10, 20}, {1, 40, 50}, {0, 20, 30}}), 5);
  EXPECT_EQ(broken_by_stays({{0, 0, 10}, {1, 10, 20}, {2, 20, 30}}), 5);
  EXPECT_EQ(broken_by_stays({{0, 0, 10}, {1, 20, 15}}), 5);
}

TEST_F(Story, Invariant11FirstTokensComeBeforeLastOnes) {
  tell_until_answered();
  record.first_token = at_ms(31);
  EXPECT_EQ(broken_by([&] { checker.on_done(record); }), 11);
}
TEST_F(Story, Invariant11NoTokenReachesTheClientBeforeItExists) {
  tell_until_answered();
  record.first_token = at_ms(19);
  EXPECT_EQ(broken_by([&] { checker.on_done(record); }), 11);
}

TEST_F(Story, Invariant12NoMoreHitsThanPrompt) {
  tell_until_answered();
  record.cached_tokens = 40;
  EXPECT_EQ(broken_by([&] { checker.on_done(record); }), 12);
}

TEST_F(Story, Invariant14TheClientKeepsToItsCap) {
  tell_until_sent();
  checker.on_sent(other(8), at_ms(2));
  EXPECT_EQ(broken_by([&] { checker.on_sent(other(9), at_ms(2)); }), 14);
}

TEST_F(Story, Invariant13HeldBlocksHaveAReader) {
  route.prefill = EndpointId(0);
  tell_until_routed();
  checker.on_delivered(request, EndpointId(0), at_ms(4));
  checker.on_prefilled(request, at_ms(9));
  EndpointObservation seen{.held = 1, .used_blocks = 3, .free_blocks = 7, .usable_blocks = 10};
  seen.max_num_seqs = 4;
  EXPECT_EQ(broken_by([&] { checker.check_endpoint(0, seen, at_ms(9)); }), 0);
  checker.on_delivered(request, EndpointId(1), at_ms(10));
  checker.on_first_token(request, at_ms(20));
  seen.inbox = 1;
  EXPECT_EQ(broken_by([&] { checker.check_endpoint(0, seen, at_ms(20)); }), 0) << "on its way";
  seen.inbox = 0;
  EXPECT_EQ(broken_by([&] { checker.check_endpoint(0, seen, at_ms(20)); }), 13);
}

/// A healthy server with work.
EndpointObservation healthy() {
  return {.running = 2,
          .waiting = 1,
          .used_blocks = 6,
          .free_blocks = 4,
          .usable_blocks = 10,
          .max_num_seqs = 4,
          .query_tokens = 100,
          .hit_tokens = 50,
          .stepping = true};
}

int broken_by(const std::function<void(EndpointObservation&)>& doctor) {
  InvariantChecker checker;
  checker.start(1, {}, 4, 100);
  checker.check_endpoint(0, healthy(), at_ms(1));
  EndpointObservation seen = healthy();
  doctor(seen);
  return broken_by([&] { checker.check_endpoint(0, seen, at_ms(2)); });
}

using Seen = EndpointObservation;

TEST(InvariantChecker, LooksAtServers) {
  EXPECT_EQ(broken_by([](Seen&) {}), 0);
  EXPECT_EQ(broken_by([](Seen& s) { --s.free_blocks; }), 3);
  EXPECT_EQ(broken_by([](Seen& s) { s.running = s.waiting = 0; }), 3);
  EXPECT_EQ(broken_by([](Seen& s) { s.running = 5; }), 4);
  EXPECT_EQ(broken_by([](Seen& s) { s.stepping = false; }), 6);
  EXPECT_EQ(broken_by([](Seen& s) {
              s.stepping = false;
              s.running = 0;
            }),
            6);
  EXPECT_EQ(broken_by([](Seen& s) { s.query_tokens = 99; }), 12);
  EXPECT_EQ(broken_by([](Seen& s) { ++s.hit_tokens; }), 12);
}

TEST(InvariantChecker, LooksAtSteps) {
  const auto step = [](std::int64_t prefill_tokens, std::int64_t decodes) {
    InvariantChecker checker;
    checker.start(1, {}, 4, 100);
    StepSpan span;
    span.end = at_ms(2);
    span.shape.prefill_tokens = prefill_tokens;
    span.shape.prefill_requests = prefill_tokens > 0 ? 1 : 0;
    span.shape.decode_requests = decodes;
    return broken_by([&] { checker.on_step(span); });
  };
  EXPECT_EQ(step(97, 3), 0);
  EXPECT_EQ(step(98, 3), 4);
  EXPECT_EQ(step(1, 4), 4);
  EXPECT_EQ(step(0, 0), 6);
}

TEST(InvariantChecker, LooksAtSignals) {
  const auto read = [](std::int64_t scraped, std::int64_t next) {
    return broken_by([&] {
      InvariantChecker::check_signal(at_ms(scraped), at_ms(next), Duration::milliseconds(50),
                                     at_ms(100));
    });
  };
  EXPECT_EQ(read(60, 110), 0);
  EXPECT_EQ(read(101, 151), 7) << "of the future";
  EXPECT_EQ(read(30, 110), 7) << "not the newest scrape";
}

TEST(InvariantChecker, SitsInEveryCheckedRun) {
  // A load tool that sends above the cap it declares.
  class Greedy final : public workloads::LoadGenerator {
   public:
    const std::vector<workloads::StageInfo>& stages() const override { return stages_; }
    SimTime next_action() const override { return sent_ < 3 ? SimTime::zero() : SimTime::max(); }
    void advance(SimTime, std::vector<workloads::Request>& out) override {
      for (; sent_ < 3; ++sent_) {
        workloads::Request r;
        r.id = RequestId(static_cast<std::uint64_t>(sent_));
        r.prompt = make_prompt(static_cast<std::uint64_t>(sent_), {{1, 20}});
        r.output_tokens = r.max_tokens = 3;
        r.stage = StageId(0);
        out.push_back(r);
      }
    }
    void on_completed(const workloads::Request&, workloads::Outcome, SimTime) override { ++done_; }
    bool finished() const override { return done_ == 3; }

   private:
    std::vector<workloads::StageInfo> stages_ = {{.name = "0", .in_flight_cap = 2}};
    int sent_ = 0, done_ = 0;
  };
  RunPlan plan = swarm_plan(8);
  plan.make_load = [](std::uint64_t, Diagnostics&) { return std::make_unique<Greedy>(); };
  const auto run = [&](bool check) {
    Diagnostics found;
    Simulation simulation(plan, {.check = check, .observers = {}}, found);
    simulation.run();
  };
  EXPECT_EQ(broken_by([&] { run(true); }), 14);
  EXPECT_EQ(broken_by([&] { run(false); }), 0);
}

}  // namespace
}  // namespace routesim::sim::testing
