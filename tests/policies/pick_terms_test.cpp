// PickTerms of every balancer: candidates, and decisions that are replayed. The ids of endpoints in
// a balancer's prefix index.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "policies/balancers/balancers.h"
#include "policies/index/prefix_index.h"

namespace routesim::policies {
namespace {

constexpr std::uint32_t kServers = 6;

/// A pool of six servers, the odd ones of which decode where the balancer can be disaggregated.
class Pool {
 public:
  explicit Pool(const BalancerRow& row) : Pool(*find_balancer(row.name)) {
    disaggregated_ = row.disaggregation != Disaggregation::kNo;
    for (std::uint32_t i = 0; i < kServers; ++i) {
      table_.add({});
      table_.set_metrics(EndpointId(i), i % 3, i % 2, 0.1 * i, SimTime::zero());
      BalancerEndpoint e{.name = "http://decode-" + std::to_string(i)};
      if (disaggregated_) e.role = i % 2 == 1 ? ServerRole::kDecode : ServerRole::kPrefill;
      e.block_size = 16;
      servers_.push_back(e);
    }
    balancer_->set_endpoints(servers_);
    needs_ = balancer_->needs();
  }
  bool disaggregated() const { return disaggregated_; }
  Balancer& balancer() { return *balancer_; }
  /// Only servers of a role are left, or all.
  void keep(std::optional<ServerRole> role) {
    std::vector<BalancerEndpoint> left = servers_;
    std::erase_if(left, [&](const BalancerEndpoint& e) { return role && e.role != *role; });
    balancer_->set_endpoints(left);
  }

  /// Picks for request number `id` of user `id % 5`, whose prompts begin alike.
  BalancerAnswer pick(std::uint64_t id, const PickTerms& terms = {}) {
    const std::string user = "user-" + std::to_string(id % 5);
    const std::vector<TextRun> runs = {{.content = 1'000 + id % 5, .offset = 0, .length = 64},
                                       {.content = 5'000 + id, .offset = 0, .length = 5}};
    std::vector<BlockKey> keys;
    for (std::uint64_t k = 0; k < 4; ++k) keys.push_back(1 + 8 * (id % 5) + k);
    const std::vector<std::uint32_t> tokens(8, static_cast<std::uint32_t>(id % 5));
    const std::vector<Header> headers = {{.name = "x-session-id", .value = user},
                                         {.name = "x-smg-routing-key", .value = user},
                                         {.name = "x-aibrix-session-key", .value = user}};
    BalancerRequest request{.prefix = user, .id = id, .turn = id, .now = now_};
    if (needs_.text) request.text = {.runs = runs, .characters_per_unit = 4};
    if (needs_.token_runs) request.token_text = {.runs = runs};
    request.prompt_tokens = 69;
    request.tokens = tokens;
    request.block_keys = keys;
    request.headers = headers;
    request.session = request.user = user;
    request.metrics = &table_;
    now_ = now_ + Duration::milliseconds(10);
    BalancerAnswer answer = balancer_->pick(request, terms);
    if (answer) {
      balancer_->on_sent(*answer, request);
      if (id % 3 == 0)
        balancer_->on_completed(*answer, {.id = id, .now = now_, .prompt_tokens = 69});
    }
    return answer;
  }

 private:
  explicit Pool(BalancerKind kind) {
    BalancerSettings settings;
    settings.production_stack.emplace().session_key = "x-session-id";
    settings.dynamo.emplace().kv_events = false;
    settings.envoy.emplace().hash_policy = {{.header = "x-session-id"}};
    settings.ray.emplace().max_ongoing_requests = 1'000;
    balancer_ = make_balancer(kind, settings, 7);
  }
  std::unique_ptr<Balancer> balancer_;
  BalancerNeeds needs_;
  bool disaggregated_ = false;
  std::vector<BalancerEndpoint> servers_;
  EndpointTable table_;
  SimTime now_ = SimTime::zero() + Duration::seconds(1);
};

std::vector<BalancerRow> rows() {
  std::vector<BalancerRow> out;
  for (const BalancerRow& row : kBalancers)
    if (row.make != nullptr) out.push_back(row);
  return out;
}

// Routers that were started with prefill servers need one of each leg; the last servers of a leg
// may leave and come back.
TEST(PickTerms, DisaggregatedRoutersStayDisaggregated) {
  for (const BalancerRow& row : rows()) {
    if (row.section != "smg" && row.section != "vllm_router") continue;
    Pool pool(row);
    if (!pool.pick(1)) continue;  // smg-prefix-hash serves nothing in some releases.
    for (const ServerRole left : {ServerRole::kDecode, ServerRole::kPrefill}) {
      pool.keep(left);
      EXPECT_FALSE(pool.pick(2)) << row.name;
    }
    pool.keep(std::nullopt);
    const BalancerAnswer answer = pool.pick(3);
    ASSERT_TRUE(answer) << row.name;
    EXPECT_TRUE(answer->prefill) << row.name;
  }
}

TEST(PickTerms, EveryBalancerChoosesAmongTheCandidates) {
  const std::vector<std::uint32_t> candidates = {5, 1, 2};
  for (const BalancerRow& row : rows()) {
    Pool pool(row);
    for (std::uint64_t id = 0; id < 60; ++id) {
      const BalancerAnswer answer = pool.pick(id, {.candidates = candidates});
      if (!answer) continue;  // smg-prefix-hash serves nothing in some releases.
      EXPECT_EQ(std::count(candidates.begin(), candidates.end(), answer->endpoint), 1) << row.name;
      EXPECT_EQ(answer->prefill.value_or(2), 2U) << row.name;
    }
    // Nothing is left of the terms: a decision without them may be forced to any endpoint.
    EXPECT_EQ(pool.pick(60, {.forced = 3})->endpoint, 3U) << row.name;
  }
}

TEST(PickTerms, EveryBalancerGoesOnAfterAReplay) {
  for (const BalancerRow& row : rows()) {
    Pool original(row), replay(row);
    for (std::uint64_t id = 0; id < 40; ++id) {
      const BalancerAnswer made = original.pick(id);
      ASSERT_TRUE(made) << row.name;
      const BalancerAnswer again =
          replay.pick(id, {.forced = made->endpoint, .forced_prefill = made->prefill});
      ASSERT_TRUE(again) << row.name;
      EXPECT_EQ(again->endpoint, made->endpoint) << row.name;
      EXPECT_EQ(again->server, made->server) << row.name;
      EXPECT_EQ(again->connection, made->connection) << row.name;
      EXPECT_EQ(again->prefill, made->prefill) << row.name;
    }
    // The replay has drawn and remembered the same, so that free decisions are the same, too.
    for (std::uint64_t id = 40; id < 80; ++id)
      EXPECT_EQ(original.pick(id)->endpoint, replay.pick(id)->endpoint) << row.name << " " << id;
    EXPECT_TRUE(std::ranges::equal(original.balancer().in_flight(), replay.balancer().in_flight()));
  }
}

TEST(PickTerms, AForcedChoiceIsRemembered) {
  for (const char* name :
       {"smg-cache-aware", "smg-manual", "vllm-router-cache-aware",
        "vllm-router-sticky-least-loaded", "production-stack-prefixaware", "aibrix-prefix-cache",
        "aibrix-prefix-cache-preble", "ray-prefix-cache-affinity", "dynamo-kv"}) {
    Pool pool(balancer_row(*find_balancer(name)));
    const std::uint32_t forced = 3;
    const PickTerms terms{.forced = forced, .forced_prefill = pool.disaggregated() ? 4U : forced};
    for (const std::uint64_t id : {0U, 15U, 30U}) EXPECT_EQ(pool.pick(id, terms)->endpoint, forced);
    const BalancerAnswer free = pool.pick(45);
    EXPECT_EQ(pool.disaggregated() && name != std::string("smg-manual") ? *free->prefill + 0U
                                                                        : free->endpoint,
              pool.disaggregated() && name != std::string("smg-manual") ? 4U : forced)
        << name;
  }
}

TEST(PickTerms, AForcedChoiceIsMadeWhereTheRulesRefuseOrHold) {
  BalancerSettings settings;
  settings.ray.emplace().max_ongoing_requests = 1;
  const auto ray = make_balancer(*find_balancer("ray-power-of-two"), settings, 1);
  const std::vector<BalancerEndpoint> servers = {{.name = "a"}, {.name = "b"}};
  ray->set_endpoints(servers);
  Balancer& balancer = *ray;
  for (std::uint64_t id = 1; id <= 2; ++id) {
    const BalancerRequest request{.id = id, .turn = id};
    balancer.on_sent(*balancer.pick(request), request);
  }
  const BalancerRequest third{.id = 3, .turn = 3};
  EXPECT_TRUE(balancer.pick(third).is_held());
  const BalancerAnswer forced = balancer.pick(third, {.forced = 1});
  ASSERT_TRUE(forced);
  balancer.on_sent(*forced, third);
  EXPECT_EQ(balancer.in_flight()[1], 2U);
}

TEST(IndexHolder, IsKeptForAsLongAsTheEndpointIsThere) {
  const auto made = make_balancer(*find_balancer("mooncake-proxy"), {}, 1);
  Balancer& balancer = *made;
  const BalancerEndpoint a{.name = "a", .block_size = 16}, b{.name = "b", .block_size = 16},
      c{.name = "c", .block_size = 16};
  const auto set = [&](const std::vector<BalancerEndpoint>& servers) {
    balancer.set_endpoints(servers);
  };
  set({a, b});
  EXPECT_EQ(balancer.index_holder(0), 0U);
  EXPECT_EQ(balancer.index_holder(1), 1U);
  const std::vector<BlockKey> keys = {11, 12, 13};
  PrefixIndex& index = *balancer.prefix_index();
  index.stored(EndpointId(balancer.index_holder(1)), kGpuTier, 0, keys, keys);
  const auto pick = [&] { return balancer.pick({.prompt_tokens = 48, .block_keys = keys}); };
  EXPECT_EQ(pick()->endpoint, 1U);
  // b is in another place, and c in its old one.
  set({b, c, a});
  EXPECT_EQ(balancer.index_holder(0), 1U);
  EXPECT_EQ(balancer.index_holder(1), 2U);
  EXPECT_EQ(balancer.index_holder(2), 0U);
  EXPECT_EQ(pick()->endpoint, 0U);
  // The index forgets what left. Nobody gets its id, not even itself when it returns.
  set({c, a});
  EXPECT_EQ(index.block_count(EndpointId(1)), 0U);
  set({c, a, b});
  EXPECT_EQ(balancer.index_holder(2), 3U);
}

}  // namespace
}  // namespace routesim::policies
