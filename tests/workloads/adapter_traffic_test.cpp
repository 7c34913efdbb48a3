#include "workloads/adapter_traffic.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/base/messages.h"
#include "tests/workloads/drive.h"
#include "workloads/groups/group_load.h"
#include "workloads/vllm_bench/vllm_bench.h"

namespace routesim::workloads {
namespace {

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
