// Keys of prompts: what the router computes equals hashing the tokens, and what is equal in one key
// space is equal in the other.
#include "sim/kv/prompt_keys.h"

#include <algorithm>

#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

using policies::BlockKeyChain;
using policies::KeyAlgorithm;

std::vector<std::uint32_t> tokens_of(const workloads::Prompt& p) {
  std::vector<std::uint32_t> out;
  for (const workloads::Segment& s : p.segments)
    for (std::int64_t i = 0; i < s.length; ++i)
      out.push_back(workloads::token_at(s.content, s.offset + i));
  return out;
}

std::vector<std::uint64_t> hashed(const BlockKeyChain& chain, const std::vector<std::uint32_t>& t) {
  policies::ChainState state = chain.start();
  std::vector<std::uint64_t> keys;
  chain.append_keys(state, t, keys);
  for (std::uint64_t& k : keys) k = chain.index_key(k);
  return keys;
}

PromptKeyTable table(KeyAlgorithm algorithm, std::uint32_t block, std::int64_t engine_block = 16) {
  RouterKeyOptions o;
  o.model = "m";
  o.precise.emplace(algorithm, block, "", "m");
  return {{engine_block}, std::move(o)};
}

TEST(PromptKeys, RouterKeysEqualTheHashesOfTheTokens) {
  for (const KeyAlgorithm algorithm : {KeyAlgorithm::kCborFnv, KeyAlgorithm::kXxh64,
                                       KeyAlgorithm::kSha256Cbor, KeyAlgorithm::kSha256Cbor64}) {
    PromptKeyTable keys = table(algorithm, 16);
    RandomStream random(3, Stream::kTest);
    for (std::uint64_t id = 0; id < 60; ++id) {
      // Heads in common, so that most prompts continue a remembered prefix.
      std::vector<std::pair<std::uint64_t, std::int64_t>> parts;
      parts.emplace_back(1 + random.below(2), 40 + 7 * static_cast<std::int64_t>(random.below(2)));
      if (random.below(2) == 0)
        parts.emplace_back(5, 1 + static_cast<std::int64_t>(random.below(40)));
      parts.emplace_back(100 + id, 1 + static_cast<std::int64_t>(random.below(50)));
      const auto prompt = make_prompt(id, parts);
      const PromptKeys& k = keys.acquire(*prompt);
      ASSERT_EQ(k.request, hashed(*keys.router().precise, tokens_of(*prompt))) << "prompt " << id;
      keys.release(k);
    }
    EXPECT_EQ(keys.size(), 0U) << "keys of prompts that do not come back are dropped";
  }
}

TEST(PromptKeys, PromptsKeyedTogetherHaveTheirOwnKeys) {
  for (const KeyAlgorithm algorithm : {KeyAlgorithm::kCborFnv, KeyAlgorithm::kSha256Cbor}) {
    PromptKeyTable keys = table(algorithm, 16);
    RandomStream random(5, Stream::kTest);
    std::uint64_t id = 0;
    for (int round = 0; round < 60; ++round) {
      // Heads in common, one prompt that is a head of another, and short ones without a block.
      std::vector<std::shared_ptr<const workloads::Prompt>> prompts;
      std::vector<const workloads::Prompt*> list;
      const std::size_t count = 1 + random.below(PromptKeyTable::kTogether);
      while (prompts.size() < count) {
        std::vector<std::pair<std::uint64_t, std::int64_t>> parts;
        parts.emplace_back(1 + random.below(3), 40);
        if (random.below(3) > 0) parts.emplace_back(10 + random.below(2), 1 + random.below(40));
        if (random.below(3) > 0) parts.emplace_back(100 + id, 1 + random.below(50));
        prompts.push_back(make_prompt(id++, parts));
        list.push_back(prompts.back().get());
        ASSERT_FALSE(keys.knows(*list.back()));
      }
      keys.prepare(list);
      std::vector<const PromptKeys*> acquired;
      for (const auto& prompt : prompts) {
        ASSERT_TRUE(keys.knows(*prompt));
        const PromptKeys& k = keys.acquire(*prompt);
        acquired.push_back(&k);
        const std::vector<std::uint32_t> tokens = tokens_of(*prompt);
        ASSERT_EQ(k.request, hashed(*keys.router().precise, tokens)) << "prompt " << prompt->id;
        // What comes after the prompt is keyed from where it ends.
        policies::ChainState state = k.request_end;
        auto with_answer = tokens;
        const auto whole = static_cast<std::int64_t>(tokens.size() / 16 * 16);
        for (std::int64_t t = 0; t < 16; ++t) with_answer.push_back(workloads::token_at(77, t));
        ASSERT_EQ(keys.next_request_key(state, *prompt, 77, whole),
                  hashed(*keys.router().precise, with_answer)[tokens.size() / 16]);
      }
      for (const PromptKeys* used : acquired) keys.release(*used);
      ASSERT_EQ(keys.size(), 0U);
    }
  }
}

TEST(PromptKeys, EngineKeysAgreeExactlyWhereTheTokensDo) {
  EngineKeys a, b, c;
  append_engine_keys(*make_prompt(1, {{1, 40}, {2, 40}}), 16, a);
  append_engine_keys(*make_prompt(2, {{1, 40}, {3, 40}}), 16, b);
  append_engine_keys(*make_prompt(3, {{1, 80}}), 16, c);
  ASSERT_EQ(a.engine.size(), 5U);
  EXPECT_EQ(a.tail_tokens, 0);
  // Blocks 0 and 1 hold tokens 0-31 of content 1; block 2 holds the border at token 40.
  EXPECT_EQ(std::vector(a.engine.begin(), a.engine.begin() + 2),
            std::vector(b.engine.begin(), b.engine.begin() + 2));
  EXPECT_EQ(a.engine[1], c.engine[1]);
  for (std::size_t i = 2; i < 5; ++i) {
    EXPECT_NE(a.engine[i], b.engine[i]);
    EXPECT_NE(a.engine[i], c.engine[i]);
  }
}

// Pools may differ in their block size: a prompt has the keys of each.
TEST(PromptKeys, EachBlockSizeHasTheKeysItWouldHaveAlone) {
  RouterKeyOptions o;
  o.model = "m";
  o.precise.emplace(KeyAlgorithm::kCborFnv, 64, "", "m");
  PromptKeyTable keys({128, 16, 64}, std::move(o));
  for (std::uint64_t id = 0; id < 3; ++id) {
    const auto prompt = make_prompt(id, {{1, 300}, {100 + id, 90}});
    const PromptKeys& k = keys.acquire(*prompt);
    for (const std::int64_t block : {128, 16}) {
      EngineKeys alone;
      append_engine_keys(*prompt, block, alone);
      EXPECT_FALSE(keys.one_key(block));
      EXPECT_EQ(std::ssize(k.of(block).engine), 390 / block);
      EXPECT_TRUE(std::ranges::equal(k.of(block).engine, alone.engine));
      EXPECT_EQ(k.of(block).tail_state, alone.tail_state);
      EXPECT_EQ(k.of(block).tail_tokens, 390 % block);
    }
    EXPECT_TRUE(keys.one_key(64));
    EXPECT_TRUE(std::ranges::equal(k.of(64).engine, k.request)) << "the router's own";
    keys.release(k);  // The next prompt gets its memory.
  }
}

// Behind a pool with blocks of 128 a server with blocks of 16 hits what it would hit alone, in GPU
// memory and in tiers.
TEST(PromptKeys, PoolsOfUnlikeBlockSizesHitTheirOwnBlocks) {
  for (const bool tiers : {false, true}) {
    std::vector<Sent> script;
    for (std::uint64_t i = 0; i < 6; ++i)
      script.push_back({.at_ms = 100 * static_cast<std::int64_t>(i),
                        .parts = {{1, 300}, {10 + i, 20}},
                        .output = 4});
    RunPlan plan = hand_made_plan(script, 1);
    plan.scenario.routing.balancer = BalancerKind::kRoundRobin;
    plan.pools[0].rules.block_size = 128;
    plan.pools.push_back(plan.pools[0]);
    plan.pools[1].config.name = "small blocks";
    plan.pools[1].rules.block_size = 16;
    if (tiers) {
      TierRules& store = plan.pools[1].rules.tiers;
      store.cpu_chunks = 100;
      store.block_bytes = 1000;
      store.link_bytes_per_s = 1e9;
      store.shared_store = true;
    }
    const RunResult r = run_by_hand(plan);
    for (std::size_t i = 0; i < 6; ++i) {
      const std::int64_t hit = i % 2 == 0 ? 256 : 288;  // Of 300 shared tokens, in whole blocks.
      EXPECT_EQ(r.requests[i].cached_tokens, i < 2 ? 0 : hit) << "request " << i;
    }
  }
}

TEST(PromptKeys, AFollowUpFindsTheAnswerInBothKeySpaces) {
  const auto first = make_prompt(1, {{1, 50}});
  const auto follow = make_prompt(2, {{1, 50}, {9, 30}, {2, 20}});  // 9: the answer
  PromptKeyTable keys = table(KeyAlgorithm::kCborFnv, 16);
  const PromptKeys& a = keys.acquire(*first);
  const PromptKeys& b = keys.acquire(*follow);
  // Router: blocks 3 and 4 are made of the prompt's tail and the answer (80 tokens).
  policies::ChainState state = a.request_end;
  EXPECT_EQ(keys.next_request_key(state, *first, 9, 48), b.request[3]);
  EXPECT_EQ(keys.next_request_key(state, *first, 9, 64), b.request[4]);
  // Engine: the same two blocks are hits once the first request has run.
  Server server(plain_rules(), std::make_shared<FixedLatency>(10));
  server.send({.parts = {{1, 50}}, .output = 31, .private_answer = false}, at_ms(0));
  server.run_until(at_ms(1000));
  const auto turn = server.send({.parts = {{1, 50}, {1'000'000, 30}, {2, 20}}}, at_ms(1000));
  server.run();
  EXPECT_EQ(server.fates[turn].cached, 80) << "5 blocks: 50 prompt and 30 answer tokens";
}

// Hashed are no more tokens than the limit asks for, wherever segments end.
TEST(PromptKeys, ApproximateHashesEqualThoseOfTheTokens) {
  for (const std::int64_t most : {0, 1, 3, 1000}) {
    RouterKeyOptions o;
    o.model = "m";
    o.approx_block = 64;
    o.approx_max_blocks = most;
    PromptKeyTable keys({16}, o);
    RandomStream random(9, Stream::kTest);
    for (std::uint64_t id = 0; id < 40; ++id) {
      std::vector<std::pair<std::uint64_t, std::int64_t>> parts;
      for (std::uint64_t part = 0, n = 1 + random.below(4); part < n; ++part)
        parts.emplace_back(10 * part + random.below(2), 1 + random.below(160));
      const auto prompt = make_prompt(id, parts);
      const PromptKeys& k = keys.acquire(*prompt);
      ASSERT_EQ(k.approx, policies::approx_hashes_tokens(tokens_of(*prompt), "m", {}, 64,
                                                         static_cast<std::size_t>(most)))
          << "prompt " << id << ", at most " << most << " blocks";
      EXPECT_TRUE(k.request.empty());
      keys.release(k);
    }
  }
}

// More heads than are kept: they are forgotten and hashed again.
TEST(PromptKeys, HeadsThatWereForgottenAreHashedAgain) {
  PromptKeyTable keys = table(KeyAlgorithm::kCborFnv, 16);
  const auto check = [&keys](std::uint64_t id, std::uint64_t head) {
    const auto prompt = make_prompt(id, {{head, 20}, {1'000'000 + id, 20}});
    const PromptKeys& k = keys.acquire(*prompt);
    ASSERT_EQ(k.request, hashed(*keys.router().precise, tokens_of(*prompt))) << "prompt " << id;
    keys.release(k);
  };
  for (std::uint64_t id = 0; id < 263'000 && !HasFatalFailure(); ++id) check(id, 1 + id);
  for (std::uint64_t id = 263'000; id < 263'100 && !HasFatalFailure(); ++id)
    check(id, 1 + (id - 263'000) * 2630);
}

TEST(PromptKeys, ReusablePromptsAreHashedOnce) {
  PromptKeyTable keys = table(KeyAlgorithm::kCborFnv, 16);
  workloads::PromptBuilder builder;
  builder.append(1, 64);
  const auto prompt = std::move(builder).build(7, /*reusable=*/true);
  const PromptKeys* first = &keys.acquire(*prompt);
  keys.release(*first);
  EXPECT_EQ(keys.size(), 1U);
  EXPECT_EQ(first, &keys.acquire(*prompt));
}

}  // namespace
}  // namespace routesim::sim::testing
