// Loads side by side, and the traffic classes and adapters of one.
#include "workloads/mix/mixed_load.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/config_node.h"
#include "tests/base/messages.h"
#include "tests/workloads/drive.h"
#include "workloads/adapter_traffic.h"
#include "workloads/groups/group_load.h"
#include "workloads/multi_round_qa/multi_round_qa.h"
#include "workloads/traffic_classes.h"
#include "workloads/vllm_bench/vllm_bench.h"

namespace routesim::workloads {
namespace {

using namespace testing;

constexpr std::uint64_t kSeed = 7;

/// Groups whose prompts come from pools.
MixedPart pools(const std::string& name) {
  GroupLoadConfig c;
  c.requests = 400;
  c.rate = 20;
  c.groups = 5;
  c.prompts_per_group = 10;
  Diagnostics d;
  return {.name = name,
          .priority = 3,
          .load = make_load_generator(c, {.seed = seed_of_part(kSeed, name)}, {}, d)};
}

/// A closed loop of users with sessions, behind warm-up requests that are not reported.
MixedPart chats(const std::string& name) {
  MultiRoundQaConfig c;
  c.num_users = 6;
  c.qps = 3;
  c.time = 20;
  Diagnostics d;
  return {.name = name, .load = make_load_generator(c, {.seed = seed_of_part(kSeed, name)}, {}, d)};
}

/// One request at a time.
MixedPart one_by_one(const std::string& name) {
  vllm_bench::Config c;
  c.num_prompts = 30;
  c.max_concurrency = 1;
  Diagnostics d;
  return {.name = name, .load = make_load_generator(c, {.seed = seed_of_part(kSeed, name)}, {}, d)};
}

std::unique_ptr<LoadGenerator> mix(bool with_third) {
  std::vector<MixedPart> parts;
  parts.push_back(pools("pools"));
  parts.push_back(chats("chats"));
  if (with_third) parts.push_back(one_by_one("one by one"));
  return mix_loads(std::move(parts));
}

/// What was sent and when, of each part; ids as they are.
std::map<std::uint32_t, std::vector<Sent>> by_part(LoadGenerator& load) {
  std::map<std::uint32_t, std::vector<Sent>> out;
  for (Sent& s : drive(load, fixed_latency(Duration::milliseconds(40))))
    out[s.request.traffic_class].push_back(std::move(s));
  EXPECT_TRUE(load.finished());
  return out;
}

void expect_same_text(const Sent& a, const Sent& b) {
  EXPECT_EQ(a.sent, b.sent);
  EXPECT_EQ(a.request.due, b.request.due);
  EXPECT_EQ(a.request.prompt->segments, b.request.prompt->segments);
  EXPECT_EQ(a.request.output_tokens, b.request.output_tokens);
  EXPECT_EQ(a.request.output_content, b.request.output_content);
  EXPECT_EQ(a.request.timeout, b.request.timeout);
}

TEST(MixedLoad, AnotherLoadBehindChangesNothing) {
  const auto two = by_part(*mix(false)), three = by_part(*mix(true));
  ASSERT_EQ(two.size(), 2U);
  ASSERT_EQ(three.size(), 3U);
  for (const auto& [part, sent] : two) {
    ASSERT_EQ(sent.size(), three.at(part).size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const Request& a = sent[i].request;
      const Request& b = three.at(part)[i].request;
      expect_same_text(sent[i], three.at(part)[i]);
      EXPECT_EQ(a.id, b.id);
      EXPECT_EQ(a.prompt->id, b.prompt->id);
      EXPECT_EQ(a.session, b.session);
      EXPECT_EQ(a.stage, b.stage);
    }
  }
}

TEST(MixedLoad, EachLoadSendsWhatItSendsAlone) {
  const auto mixed = by_part(*mix(true));
  const auto alone = [](MixedPart part) { return by_part(*part.load).at(0); };
  const std::vector<Sent> own[] = {alone(pools("pools")), alone(chats("chats")),
                                   alone(one_by_one("one by one"))};
  for (std::uint32_t p = 0; p < 3; ++p) {
    ASSERT_EQ(mixed.at(p).size(), own[p].size());
    for (std::size_t i = 0; i < own[p].size(); ++i) {
      expect_same_text(mixed.at(p)[i], own[p][i]);
      EXPECT_EQ(mixed.at(p)[i].request.id.value(), 16 * own[p][i].request.id.value() + p);
      EXPECT_EQ(mixed.at(p)[i].request.priority, p == 0 ? 3 : 0);
    }
  }
}

TEST(MixedLoad, NothingIsSharedByTwoLoads) {
  // Two loads of the same settings: only their names differ.
  std::vector<MixedPart> parts;
  for (const char* name : {"a", "b"}) parts.push_back(chats(name));
  for (const char* name : {"c", "d"}) parts.push_back(pools(name));
  const auto sent = by_part(*mix_loads(std::move(parts)));
  std::set<std::uint32_t> ids;
  std::map<std::uint64_t, std::uint32_t> sessions, contents;
  std::map<std::uint64_t, const Prompt*> prompts;
  for (const auto& [part, requests] : sent)
    for (const Sent& s : requests) {
      const Request& r = s.request;
      EXPECT_TRUE(ids.insert(r.id.value()).second);
      const auto known = prompts.emplace(r.prompt->id, r.prompt.get()).first;
      EXPECT_EQ(known->second->segments, r.prompt->segments) << "one id, two prompts";
      EXPECT_TRUE(!r.prompt->reusable || known->second == r.prompt.get()) << "one object for all";
      EXPECT_TRUE(r.session == 0 || sessions.emplace(r.session, part).first->second == part);
      for (const Segment& text : r.prompt->segments)
        EXPECT_EQ(contents.emplace(text.content, part).first->second, part);
    }
  EXPECT_NE(sent.at(0).front().request.output_content, sent.at(1).front().request.output_content);
}

TEST(MixedLoad, StagesCarryTheNameOfTheirLoad) {
  const auto load = mix(true);
  std::vector<std::string> names, reported;
  for (const StageInfo& stage : load->stages()) {
    names.push_back(stage.name);
    if (stage.reported) reported.push_back(stage.name);
    EXPECT_EQ(stage.name.substr(0, stage.name.find('/')),
              (std::vector<std::string>{"pools", "chats", "one by one"})[stage.part]);
  }
  const auto own = chats("chats").load;
  ASSERT_EQ(own->stages().size(), 2U) << "warm-up, and the run";
  ASSERT_GE(names.size(), 4U);
  EXPECT_EQ(names[0], "pools/0");
  EXPECT_EQ(names[1], "chats/" + own->stages()[0].name);
  EXPECT_EQ(names[2], "chats/" + own->stages()[1].name);
  EXPECT_TRUE(load->stages()[0].reported);
  EXPECT_FALSE(load->stages()[1].reported) << "a warm-up stays one";
  EXPECT_EQ(reported.size(), 3U);
  for (const auto& [part, requests] : by_part(*load))
    for (const Sent& s : requests)
      EXPECT_EQ(load->stages()[s.request.stage.value()].part, static_cast<std::int32_t>(part));
}

TEST(MixedLoad, SeedsAreByName) {
  EXPECT_NE(seed_of_part(1, "a"), seed_of_part(1, "b"));
  EXPECT_NE(seed_of_part(1, "a"), seed_of_part(2, "a"));
}

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

using namespace testing;

std::vector<Request> sent(std::vector<AdapterShare> shares, LoraAssignment assignment,
                          std::int64_t prompts_per_group = 0) {
  GroupLoadConfig c;
  c.requests = 10'000;
  c.groups = 10;
  c.prompts_per_group = prompts_per_group;
  Diagnostics d;
  const auto load = with_adapters(make_load_generator(c, {.seed = 3}, {}, d),
                                  {.shares = std::move(shares), .assignment = assignment}, 3);
  std::vector<Request> out;
  for (const Sent& s : drive(*load, fixed_latency(Duration::milliseconds(10))))
    out.push_back(s.request);
  return out;
}

TEST(AdapterTraffic, SharesAreKept) {
  std::map<std::uint32_t, int> count;
  std::set<std::uint64_t> ids;
  for (const Request& r : sent({{0, 0.5}, {1, 0.3}, {2, 0.2}}, LoraAssignment::kRandom)) {
    ++count[r.prompt->adapter];
    ids.insert(r.prompt->id);
  }
  EXPECT_EQ(ids.size(), 10'000U) << "every prompt has an id of its own";
  EXPECT_NEAR(count[0], 5000, 200);
  EXPECT_NEAR(count[1], 3000, 200);
  EXPECT_NEAR(count[2], 2000, 200);
}

TEST(AdapterTraffic, InTurn) {
  const auto requests = sent({{1, 0.5}, {2, 0.5}}, LoraAssignment::kRoundRobin);
  for (std::size_t i = 0; i < requests.size(); ++i)
    ASSERT_EQ(requests[i].prompt->adapter, 1 + i % 2);
}

TEST(AdapterTraffic, PreparationsOfVllmBenchUseTheBaseModelAndEveryRunBeginsAnew) {
  vllm_bench::Config c;
  c.num_prompts = 4;
  c.num_warmups = 3;
  c.initial_test_request = true;
  c.runs.resize(2);
  Diagnostics d;
  const auto load = with_adapters(vllm_bench::make_load_generator(c, {.seed = 3}, {}, d),
                                  {.shares = {{1, 0.3}, {2, 0.3}, {3, 0.4}},
                                   .assignment = LoraAssignment::kRoundRobin,
                                   .warms_up_base = true},
                                  3);
  std::map<std::string, std::vector<std::uint32_t>> by_stage;
  for (const Sent& s : drive(*load, fixed_latency(Duration::milliseconds(10)))) {
    const auto stage = static_cast<std::size_t>(s.request.stage.value());
    by_stage[std::to_string(stage) + load->stages()[stage].name].push_back(
        s.request.prompt->adapter);
  }
  int mains = 0;
  for (const auto& [name, adapters] : by_stage) {
    if (name.find("main") == std::string::npos) {
      EXPECT_EQ(adapters, std::vector<std::uint32_t>(adapters.size(), 0)) << name;
    } else {
      EXPECT_EQ(adapters, (std::vector<std::uint32_t>{1, 2, 3, 1})) << name;
      ++mains;
    }
  }
  EXPECT_EQ(mains, 2);
}

TEST(AdapterTraffic, WhatIsSentBeforeTheRunUsesTheBaseModelInEveryLoad) {
  vllm_bench::Config c;
  c.num_prompts = 3;
  c.initial_test_request = true;
  Diagnostics d;
  const auto load = with_adapters(vllm_bench::make_load_generator(c, {.seed = 3}, {}, d),
                                  {.shares = {{1, 1}}, .warms_up_base = false}, 3);
  std::vector<std::uint32_t> adapters;
  for (const Sent& s : drive(*load, fixed_latency(Duration::milliseconds(10))))
    adapters.push_back(s.request.prompt->adapter);
  EXPECT_EQ(adapters, (std::vector<std::uint32_t>{0, 1, 1, 1}));
}

TEST(AdapterTraffic, APoolPromptStaysOneObjectPerAdapter) {
  std::map<std::pair<std::uint64_t, std::uint32_t>, const Prompt*> known;
  std::set<std::uint64_t> ids;
  for (const Request& r : sent({{0, 0.4}, {1, 0.6}}, LoraAssignment::kRandom, 5)) {
    const Prompt& p = *r.prompt;
    EXPECT_TRUE(p.reusable);
    const auto [at, is_new] = known.try_emplace({p.segments.back().content, p.adapter}, &p);
    if (!is_new) {
      ASSERT_EQ(at->second, &p);
    }
    ids.insert(p.id);
  }
  EXPECT_EQ(ids.size(), known.size());
  EXPECT_EQ(known.size(), 100U) << "10 groups of 5 prompts under 2 names";
}

TEST(AdapterTraffic, SharesMustMakeSense) {
  const auto said = [](const std::vector<LoraSplit>& split) {
    Diagnostics d;
    check_lora_split(split, "s", d);
    return messages_of(d);
  };
  EXPECT_EQ(said({{"a", 0.25}, {"b", 0.75}}), "");
  EXPECT_NE(said({{"a", 0.25}, {"b", 0.7}}).find("s: shares must add up to 1"), std::string::npos);
  EXPECT_NE(said({{"a", 0.5}, {"a", 0.5}}).find("s[1].name: is listed twice"), std::string::npos);
  EXPECT_NE(said({{"", 1}}).find("s[0].name: must not be empty"), std::string::npos);
}

}  // namespace
}  // namespace routesim::workloads
