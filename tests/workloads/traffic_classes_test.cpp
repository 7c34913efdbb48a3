#include "workloads/traffic_classes.h"

#include <gtest/gtest.h>

#include <map>

#include "base/config_node.h"
#include "tests/base/messages.h"
#include "tests/workloads/drive.h"
#include "workloads/groups/group_load.h"
#include "workloads/multi_round_qa/multi_round_qa.h"

namespace routesim::workloads {
namespace {

using namespace testing;

std::vector<TrafficClass> two_classes(double first) {
  return {{.name = "chat", .share = first, .priority = 0, .user = {}, .headers = {}},
          {.name = "batch", .share = 1 - first, .priority = 7, .user = {}, .headers = {}}};
}

std::unique_ptr<LoadGenerator> groups(std::int64_t requests) {
  GroupLoadConfig c;
  c.requests = requests;
  c.groups = 10;
  Diagnostics d;
  return make_load_generator(c, {.seed = 3}, {}, d);
}

std::vector<Request> sent(LoadGenerator& load) {
  std::vector<Request> out;
  for (const Sent& s : drive(load, fixed_latency(Duration::milliseconds(10))))
    out.push_back(s.request);
  return out;
}

TEST(TrafficClasses, RequestsAreSharedOutAndTheLoadIsTheSame) {
  const auto classed = sent(*with_traffic_classes(groups(10'000), two_classes(0.7), 3));
  const auto plain = sent(*groups(10'000));
  ASSERT_EQ(classed.size(), plain.size());
  int chats = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(classed[i].id, plain[i].id);
    EXPECT_EQ(classed[i].prompt->id, plain[i].prompt->id);
    EXPECT_EQ(classed[i].due, plain[i].due);
    EXPECT_EQ(classed[i].priority, classed[i].traffic_class == 1 ? 7 : 0);
    chats += classed[i].traffic_class == 0 ? 1 : 0;
  }
  // The deviation of a binomial count is sqrt(10,000 * 0.7 * 0.3) = 46.
  EXPECT_NEAR(chats, 7000, 4 * 46);
}

TEST(TrafficClasses, ASessionStaysInItsClass) {
  MultiRoundQaConfig c;
  c.num_users = 60;
  c.qps = 20;
  c.time = 60;
  Diagnostics d;
  const auto load =
      with_traffic_classes(make_load_generator(c, {.seed = 3}, {}, d), two_classes(0.5), 3);
  std::map<std::uint64_t, std::uint32_t> class_of;
  std::size_t first_class = 0;
  std::size_t requests = 0;
  for (const Request& r : sent(*load)) {
    if (r.session == 0) continue;  // A warm-up request.
    ++requests;
    const auto [at, is_new] = class_of.emplace(r.session, r.traffic_class);
    EXPECT_EQ(at->second, r.traffic_class);
    if (is_new && r.traffic_class == 0) ++first_class;
  }
  EXPECT_GT(requests, 2 * class_of.size()) << "sessions have several turns";
  EXPECT_GT(first_class, 0U);
  EXPECT_LT(first_class, class_of.size());
}

/// One request at once with each number below 200, in the session of that number where there are
/// sessions.
class Numbered final : public LoadGenerator {
 public:
  explicit Numbered(bool sessions) : sessions_(sessions) {}
  const std::vector<StageInfo>& stages() const override { return stages_; }
  SimTime next_action() const override { return finished() ? SimTime::max() : SimTime::zero(); }
  void advance(SimTime, std::vector<Request>& out) override {
    for (; next_ < 200; ++next_) {
      out.emplace_back().id = RequestId(next_);
      if (sessions_) out.back().session = next_;
    }
  }
  void on_completed(const Request&, Outcome, SimTime) override {}
  bool finished() const override { return next_ == 200; }

 private:
  bool sessions_;
  std::uint64_t next_ = 1;
  std::vector<StageInfo> stages_{1};
};

TEST(TrafficClasses, ASessionsNumberIsNoRequestsNumber) {
  const auto classes = two_classes(0.5);
  const auto sessions = sent(*with_traffic_classes(std::make_unique<Numbered>(true), classes, 3));
  const auto single = sent(*with_traffic_classes(std::make_unique<Numbered>(false), classes, 3));
  int equal = 0;
  for (std::size_t i = 0; i < 199; ++i)
    equal += sessions[i].traffic_class == single[i].traffic_class ? 1 : 0;
  // Half of 199 independent draws, of which the deviation is 7.
  EXPECT_NEAR(equal, 100, 4 * 7);
}

TEST(TrafficClasses, FaultsAreNamed) {
  std::vector<TrafficClass> classes = two_classes(0.5);
  classes[1].share = 0.4;
  classes[1].name = "chat";
  classes[0].headers.root = ConfigNode::make_scalar("x", ConfigNode::Style::kPlain, {});
  Diagnostics d;
  check_traffic_classes(classes, "workload.classes", d);
  EXPECT_EQ(messages_of(d),
            "<input>: error: workload.classes[0].headers: must be a map of names to texts\n"
            "<input>: error: workload.classes[1].name: is listed twice\n"
            "<input>: error: workload.classes: shares must add up to 1 (got 0.900000)\n");
}

}  // namespace
}  // namespace routesim::workloads
