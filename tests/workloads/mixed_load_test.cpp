#include "workloads/mix/mixed_load.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/workloads/drive.h"
#include "workloads/groups/group_load.h"
#include "workloads/multi_round_qa/multi_round_qa.h"
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

}  // namespace
}  // namespace routesim::workloads
