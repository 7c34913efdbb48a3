// Releases of other products' routers: the row of a version, the faults of settings, and the
// factory that refuses them.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "policies/balancers/balancers.h"
#include "tests/base/messages.h"

namespace routesim::policies {
namespace {

constexpr std::array kRows = std::to_array<ReleaseRow>({
    {"0.9.0", "old", "a"},
    {"1.2.0", "", "b"},
    {"1.10.0", "", "c"},
    {"0a1b2c3", "", "a commit"},
});

TEST(Releases, AVersionFollowsTheLastRowThatIsNotLarger) {
  EXPECT_EQ(find_release(kRows, ""), 2U) << "the newest version, not the commit behind it";
  EXPECT_EQ(find_release(kRows, "0.1.0"), 0U) << "older than all";
  EXPECT_EQ(find_release(kRows, "0.9"), 0U);
  EXPECT_EQ(find_release(kRows, "old"), 0U);
  EXPECT_EQ(find_release(kRows, "v1.2.0rc1"), 1U);
  EXPECT_EQ(find_release(kRows, "1.9.9"), 1U) << "numbers, not texts";
  EXPECT_EQ(find_release(kRows, "1.10.0.post1"), 2U);
  EXPECT_EQ(find_release(kRows, "99.0"), 2U);
  EXPECT_EQ(find_release(kRows, "0a1b2c3"), 3U);
  for (const char* text : {"newest", "1", "v", "1.", "-1.0", "june"})
    EXPECT_EQ(find_release(kRows, text), std::nullopt) << text;
}

TEST(Releases, EachFamilySaysItsRule) {
  for (std::size_t i = 0; i < kBalancers.size(); ++i) {
    const auto kind = static_cast<BalancerKind>(i);
    EXPECT_EQ(find_balancer(kBalancers[i].name), kind);
    EXPECT_EQ(release_note(kind, {}).empty(), kBalancers[i].releases.empty()) << kBalancers[i].name;
    EXPECT_EQ(kBalancers[i].releases.empty(), kBalancers[i].stated_release == nullptr);
  }
  EXPECT_EQ(find_balancer("no such"), std::nullopt);
  BalancerSettings settings;
  settings.smg.emplace().release = "1.11.2";
  const std::string note = release_note(*find_balancer("smg-cache-aware"), settings);
  EXPECT_TRUE(note.starts_with("SGLang gateway 1.11.2, by the rules of 1.10.0 (")) << note;
}

// Four kinds are made by the simulator or by make_scheduler.
TEST(MakeBalancer, RefusesWhatSomeoneElseMakes) {
  int others = 0;
  for (std::size_t i = 0; i < kBalancers.size(); ++i) {
    if (kBalancers[i].make != nullptr) continue;
    ++others;
    Diagnostics found;
    EXPECT_EQ(make_balancer(static_cast<BalancerKind>(i), {}, 1, 0, found), nullptr);
    EXPECT_EQ(found.items().size(), 1U) << kBalancers[i].name;
    EXPECT_EQ(make_balancer(static_cast<BalancerKind>(i), {}, 1), nullptr);
  }
  EXPECT_EQ(others, 4);
}

TEST(MakeBalancer, RefusesSettingsOutOfBounds) {
  BalancerSettings settings;
  settings.envoy.emplace();
  settings.envoy->choice_count = 1;
  settings.envoy->weights = {1, 0};
  settings.smg.emplace().cache_threshold = std::numeric_limits<double>::quiet_NaN();
  settings.ray.emplace().initial_backoff_s = 0;
  settings.dynamo.emplace().release = "june";
  Diagnostics found;
  EXPECT_EQ(make_balancer(*find_balancer("dynamo-kv"), settings, 1, 0, found), nullptr);
  const std::string text = routesim::messages_of(found);
  for (const char* key : {"envoy.choice_count", "envoy.weights[1]", "smg.cache_threshold",
                          "ray.initial_backoff_s", "dynamo.release"})
    EXPECT_NE(text.find(key), std::string::npos) << key << " in " << text;
}

TEST(MakeBalancer, RefusesATableThatEndsNoWalk) {
  BalancerSettings settings;
  settings.envoy.emplace().table_size = 65'536;
  settings.envoy->minimum_ring_size = settings.envoy->maximum_ring_size + 1;
  Diagnostics found;
  EXPECT_EQ(make_balancer(*find_balancer("envoy-maglev"), settings, 1, 0, found), nullptr);
  const std::string text = routesim::messages_of(found);
  EXPECT_NE(text.find("must be a prime number (got 65536)"), std::string::npos) << text;
  EXPECT_NE(text.find("the next one is 65537"), std::string::npos) << text;
  EXPECT_NE(text.find("is above maximum_ring_size"), std::string::npos) << text;
}

TEST(MakeBalancer, RefusesALegsPolicyThatTheReleaseHasNot) {
  BalancerSettings settings;
  settings.vllm_router.emplace().release = "0.1.15";
  settings.vllm_router->prefill_policy = VllmRouterPolicy::kKvAware;
  Diagnostics found;
  EXPECT_EQ(make_balancer(*find_balancer("vllm-router-cache-aware"), settings, 1, 0, found),
            nullptr);
  EXPECT_NE(routesim::messages_of(found).find("vllm_router.prefill_policy"), std::string::npos);
  settings.vllm_router->release = "0.1.17";
  EXPECT_NE(make_balancer(*find_balancer("vllm-router-cache-aware"), settings, 1), nullptr);
}

TEST(MakeBalancer, RefusesAPolicyThatTheReleaseHasNot) {
  BalancerSettings settings;
  settings.vllm_router.emplace().release = "0.1.15";
  EXPECT_EQ(make_balancer(*find_balancer("vllm-router-kv-aware"), settings, 1), nullptr);
  EXPECT_NE(make_balancer(*find_balancer("vllm-router-cache-aware"), settings, 1), nullptr);
  EXPECT_EQ(make_balancer(*find_balancer("production-stack-session"), {}, 1), nullptr);
}

}  // namespace
}  // namespace routesim::policies
