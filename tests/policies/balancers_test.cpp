// Balancers of other products: the registry, their releases, and the files of decisions.
#include "policies/balancers/balancers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "policies/index/block_keys.h"
#include "tests/base/messages.h"
#include "tests/policies/vector_file.h"
#include "tools/study/score/balancer_script.h"

namespace routesim::policies {
namespace {

using test::Json;
using test::u64;
using test::vector_cases;

std::vector<BalancerEndpoint> pods(std::size_t n) {
  std::vector<BalancerEndpoint> out;
  for (std::size_t i = 0; i < n; ++i)
    out.push_back({.name = "default/pod-" + std::to_string(i), .adapters = {}});
  return out;
}

std::vector<BalancerEndpoint> endpoints_of(const Json& j) {
  std::vector<BalancerEndpoint> out;
  if (j.is_array())
    for (const Json& name : j) out.push_back({.name = name, .adapters = {}});
  else
    for (const auto& [name, adapters] : j.items())
      out.push_back({.name = name, .adapters = adapters});
  return out;
}

BalancerPick send(Balancer& b, const BalancerRequest& request = {}) {
  const auto pick = b.pick(request);
  EXPECT_TRUE(pick.has_value());
  b.on_sent(*pick);
  return *pick;
}

// ---- KubeAI's vectors
// -------------------------------------------------------------------------------

void run_steps(const Json& c, BalancerKind kind) {
  const auto endpoints = endpoints_of(c.at("endpoints"));
  auto balancer =
      make_balancer(kind,
                    {.kubernetes = {},
                     .kubeai = {.mean_load_factor = c.value("mean_load_percentage", 125),
                                .hash_replication = c.value("replication", 256)}},
                    1);
  balancer->set_endpoints(endpoints);
  for (std::uint32_t e = 0; e < endpoints.size(); ++e)
    for (int i = c.contains("initial_in_flight")
                     ? c["initial_in_flight"].value(endpoints[e].name, 0)
                     : 0;
         i > 0; --i)
      balancer->on_sent({.endpoint = e, .server = e});
  for (const Json& step : c.at("steps")) {
    const std::string prefix = step.value("prefix", "");
    const std::string adapter = step.value("adapter", "");
    std::map<std::string, int> counts;
    for (int i = 0; i < step["requests"].get<int>(); ++i) {
      const auto pick = balancer->pick({.prefix = prefix, .adapter = adapter});
      if (step.contains("expected_error")) {
        EXPECT_FALSE(pick) << "the caller has to wait";
        continue;
      }
      ASSERT_TRUE(pick);
      balancer->on_sent(*pick);
      ++counts[endpoints[pick->endpoint].name];
    }
    if (step.contains("expected_counts")) {
      EXPECT_EQ(counts, (step["expected_counts"].get<std::map<std::string, int>>()));
    }
  }
}

void run_owner_or_sequence(const Json& c) {
  const auto endpoints = endpoints_of(c.at("endpoints"));
  if (c["fn"] == "owner") {
    const HashRing ring(endpoints, c["replication"]);
    for (std::size_t i = 0; i < c["keys"].size(); ++i) {
      const std::string key = c["keys"][i];
      EXPECT_EQ(endpoints[ring.owner(ring.locate(xxh64(key)))].name,
                c["expected_owner"][i].get<std::string>());
    }
    return;
  }
  auto balancer = make_balancer(BalancerKind::kPrefixHash,
                                {.kubernetes = {},
                                 .kubeai = {.mean_load_factor = c["mean_load_percentage"],
                                            .hash_replication = c["replication"]}},
                                1);
  balancer->set_endpoints(endpoints);
  const std::string key = c["key"];
  for (const std::string expected : c["expected_sequence"])
    EXPECT_EQ(endpoints[send(*balancer, {.prefix = key, .adapter = ""}).endpoint].name, expected);
}

void run_prefix(const Json& c) {
  const Json body = Json::parse(c["body"].get<std::string>());
  std::vector<std::pair<std::string, std::string>> texts;
  for (const Json& m : test::member(body, "messages")) texts.emplace_back(m["role"], m["content"]);
  std::vector<ChatMessage> messages;
  for (const auto& [role, content] : texts) messages.push_back({role, content});
  const std::string prompt = body.value("prompt", "");
  const std::string_view source = body.contains("prompt") ? prompt : prefix_source(messages);
  EXPECT_EQ(first_code_points(source, c["prefix_char_length"]), c["expected"].get<std::string>());
}

TEST(Balancers, KubeAiVectors) {
  for (const Json& c : vector_cases("chwbl")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const std::string fn = c.value("fn", "steps");
    if (fn == "steps") {
      const std::string strategy = c["strategy"];
      run_steps(c, BalancerKind::kPrefixHash);
      if (strategy == "both") run_steps(c, BalancerKind::kLeastLoad);
    } else if (fn == "hash") {
      EXPECT_EQ(xxh64(c["input"].get<std::string>()), u64(c["expected"]));
    } else if (fn == "owner" || fn == "sequence") {
      run_owner_or_sequence(c);
    } else if (fn == "load_ok") {
      EXPECT_EQ(chwbl_load_ok(c["load"], c["total"], c["n"], c["factor"]),
                c["expected"].get<bool>());
    } else if (fn == "prefix") {
      run_prefix(c);
    } else if (fn == "parse") {
      const std::string field = Json::parse(c["body"].get<std::string>())["model"];
      const auto parts = split_model_adapter(field);
      EXPECT_EQ(parts.model, c["expected"]["model"].get<std::string>());
      EXPECT_EQ(parts.adapter, c["expected"]["adapter"].get<std::string>());
    } else {
      ADD_FAILURE() << "unknown kind " << fn;
    }
  }
}

// The walk as KubeAI writes it, over the whole ring, against the one that gives up early.
TEST(Balancers, PrefixHashEqualsTheFullWalk) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, Stream::kTest);
    auto endpoints = pods(40);
    for (auto& e : endpoints)
      if (random.below(10) == 0) e.adapters = {"rare"};
    endpoints[0].adapters = {"rare"};
    const HashRing ring(endpoints, 8);
    auto b = make_balancer(
        BalancerKind::kPrefixHash,
        {.kubernetes = {}, .kubeai = {.mean_load_factor = 100, .hash_replication = 8}}, seed);
    b->set_endpoints(endpoints);
    std::deque<BalancerPick> open;
    for (int i = 0; i < 3000; ++i) {
      const std::string prefix(1, static_cast<char>('a' + random.below(5)));
      const std::string adapter = random.below(4) == 0 ? "rare" : "";
      std::optional<std::uint32_t> expected;
      std::optional<std::uint32_t> fallback;
      std::size_t at = ring.locate(xxh64(adapter + prefix));
      for (std::size_t k = 0; k < ring.size() && !expected; ++k, at = (at + 1) % ring.size()) {
        const std::uint32_t e = ring.owner(at);
        if (!adapter.empty() && endpoints[e].adapters.empty()) continue;
        if (!fallback) fallback = e;
        if (chwbl_load_ok(b->in_flight()[e], b->total_in_flight(), 40, 1.0)) expected = e;
      }
      open.push_back(send(*b, {.prefix = prefix, .adapter = adapter}));
      ASSERT_EQ(open.back().endpoint, expected ? *expected : *fallback) << "request " << i;
      while (!open.empty() && random.below(100) < 45) {
        b->on_completed(open.front());
        open.pop_front();
      }
    }
  }
}

// ---- The others
// -------------------------------------------------------------------------------------

TEST(Balancers, WithoutEndpointsNoneIsPicked) {
  for (const auto kind :
       {BalancerKind::kRoundRobin, BalancerKind::kRandom, BalancerKind::kK8sService,
        BalancerKind::kLeastLoad, BalancerKind::kPrefixHash}) {
    auto b = make_balancer(kind, {}, 1);
    EXPECT_FALSE(b->pick({})) << "nobody to pick";
  }
}

TEST(Balancers, RoundRobinRotatesStrictly) {
  auto b = make_balancer(BalancerKind::kRoundRobin, {}, 1);
  b->set_endpoints(pods(3));
  for (std::uint32_t i = 0; i < 30; ++i) EXPECT_EQ(send(*b).endpoint, i % 3);
}

// Chi-square with 7 degrees of freedom: the 99.9 % quantile is 24.3.
double chi_square(const std::vector<int>& counts) {
  double n = 0;
  for (const int c : counts) n += c;
  const double mean = n / static_cast<double>(counts.size());
  double sum = 0;
  for (const int c : counts) sum += (c - mean) * (c - mean) / mean;
  return sum;
}

TEST(Balancers, RandomChoicesAreUniform) {
  for (const auto kind :
       {BalancerKind::kRandom, BalancerKind::kK8sService, BalancerKind::kLeastLoad}) {
    SCOPED_TRACE(enum_name(kind));
    auto b = make_balancer(kind, {}, 5);
    b->set_endpoints(pods(8));
    std::vector<int> counts(8);
    for (int i = 0; i < 40000; ++i) {
      const auto pick = send(*b);  // Completed at once, so least-load always sees a tie of 8.
      ++counts[pick.endpoint];
      b->on_completed(pick);
    }
    EXPECT_LT(chi_square(counts), 24.3);
  }
}

TEST(Balancers, RandomChoosesAmongThoseThatServeTheAdapter) {
  auto b = make_balancer(BalancerKind::kRandom, {}, 5);
  EXPECT_FALSE(b->pick({})) << "nobody is there";
  std::vector<BalancerEndpoint> endpoints = pods(9);
  for (std::size_t i = 2; i < 9; i += 3) endpoints[i].adapters = {"rare"};
  b->set_endpoints(endpoints);
  std::vector<int> counts(9);
  for (int i = 0; i < 9000; ++i) ++counts[send(*b, {.prefix = "", .adapter = "rare"}).endpoint];
  for (std::size_t i = 0; i < 9; ++i)
    EXPECT_NEAR(counts[i], i % 3 == 2 ? 3000 : 0, i % 3 == 2 ? 200 : 0) << "endpoint " << i;
  EXPECT_FALSE(b->pick({.prefix = "", .adapter = "unknown"}));
}

TEST(Balancers, SameSeedSamePicksAndEntitiesDiffer) {
  const auto picks = [](std::uint64_t seed, std::uint64_t entity) {
    auto b = make_balancer(BalancerKind::kRandom, {}, seed, entity);
    b->set_endpoints(pods(64));
    std::vector<std::uint32_t> out;
    for (int i = 0; i < 32; ++i) out.push_back(send(*b).endpoint);
    return out;
  };
  EXPECT_EQ(picks(1, 0), picks(1, 0));
  EXPECT_NE(picks(1, 0), picks(2, 0));
  EXPECT_NE(picks(1, 0), picks(1, 1));
}

TEST(Balancers, LeastLoadPicksAMinimum) {
  auto b = make_balancer(BalancerKind::kLeastLoad, {}, 9);
  b->set_endpoints(pods(16));
  RandomStream random(9, Stream::kTest);
  std::vector<BalancerPick> open;
  for (int i = 0; i < 5000; ++i) {
    const auto load = b->in_flight();
    const std::uint32_t least = *std::min_element(load.begin(), load.end());
    const auto pick = b->pick({});
    ASSERT_TRUE(pick);
    ASSERT_EQ(load[pick->endpoint], least);
    b->on_sent(*pick);
    open.push_back(*pick);
    if (random.below(2) == 0) {
      const std::size_t k = random.below(open.size());
      b->on_completed(open[k]);
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(k));
    }
    ASSERT_EQ(b->total_in_flight(), open.size());
  }
}

TEST(Balancers, ServiceKeepsConnectionsWithTheirEndpoint) {
  auto b = make_balancer(
      BalancerKind::kK8sService,
      {.kubernetes = {.service_mode = ServiceMode::kIpvsRoundRobin, .requests_per_connection = 3},
       .kubeai = {}},
      1);
  b->set_endpoints(pods(4));
  // One client at a time: three requests per connection, connections in rotation.
  std::vector<std::uint32_t> seen;
  for (int i = 0; i < 12; ++i) {
    const auto pick = send(*b);
    seen.push_back(pick.endpoint);
    b->on_completed(pick);
  }
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3}));
  // Two at once need two connections.
  const auto first = send(*b);
  const auto second = send(*b);
  EXPECT_NE(first.connection, second.connection);
  EXPECT_NE(first.endpoint, second.endpoint);
  b->on_completed(first);
  EXPECT_EQ(send(*b).endpoint, first.endpoint) << "the idle connection is used again";
}

TEST(Balancers, EndpointsMayLeaveWithRequestsInFlight) {
  auto b = make_balancer(BalancerKind::kLeastLoad, {}, 1);
  b->set_endpoints(pods(2));
  const auto one = send(*b);
  const auto two = send(*b);
  ASSERT_NE(one.endpoint, two.endpoint);
  auto remaining = pods(2);
  remaining.erase(remaining.begin() + one.endpoint);
  b->set_endpoints(remaining);
  EXPECT_EQ(b->total_in_flight(), 2u) << "KubeAI does not subtract a removed endpoint's requests";
  EXPECT_EQ(b->in_flight()[0], 1u);
  b->on_completed(one);
  EXPECT_EQ(b->total_in_flight(), 1u);
  b->set_endpoints(pods(2));
  EXPECT_EQ(b->in_flight()[one.endpoint], 0u);
  EXPECT_EQ(b->in_flight()[two.endpoint], 1u);
  b->on_completed(two);
  EXPECT_EQ(b->total_in_flight(), 0u);
}

// KubeAI internal/loadbalancer/group.go (July 2025) makes a new counter for a name it does not
// know.
TEST(Balancers, AnEndpointThatReturnsStartsWithNothingInFlight) {
  auto b = make_balancer(BalancerKind::kLeastLoad, {}, 1);
  b->set_endpoints(pods(1));
  const auto before = send(*b);
  b->set_endpoints({});
  b->set_endpoints(pods(1));
  EXPECT_EQ(b->in_flight()[0], 0u);
  EXPECT_EQ(b->total_in_flight(), 1u);
  const auto after = send(*b);
  EXPECT_EQ(b->in_flight()[0], 1u);
  b->on_completed(before);
  EXPECT_EQ(b->in_flight()[0], 1u) << "it was not sent to this one";
  EXPECT_EQ(b->total_in_flight(), 1u);
  b->on_completed(after);
  EXPECT_EQ(b->in_flight()[0], 0u);
  EXPECT_EQ(b->total_in_flight(), 0u);
}

TEST(Balancers, CodePointsOfBrokenTextCountOneEach) {
  EXPECT_EQ(first_code_points("\xff\xfe"
                              "abc",
                              3),
            "\xff\xfe"
            "a");
  EXPECT_EQ(first_code_points("\xe4\xb8", 1), "\xe4");  // A cut-off sequence.
  EXPECT_EQ(first_code_points("\xf0\x9f\x98\x80z", 1), "\xf0\x9f\x98\x80");
  EXPECT_EQ(first_code_points("abc", 100), "abc");
}

// Releases of other products' routers: the row of a version, the faults of settings, and the
// factory that refuses them.

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

namespace routesim::tools {
namespace {

// Decisions of other products' balancers, computed by hand or taken from upstream tests: the files
// of tests/policies/data/balancers, in the format of `routesim score --steps`.

constexpr const char* kFolder = ROUTESIM_SOURCE_DIR "/tests/policies/data/balancers";

std::vector<std::string> vector_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

bool is_judged(const ScriptStep& s) {
  return s.expect || s.expect_prefill || s.expect_status || s.expect_held;
}

TEST(BalancerVectors, EveryDecisionIsAsExpected) {
  for (const std::string& file : vector_files()) {
    Diagnostics diagnostics;
    const auto script = read_balancer_script(file, diagnostics);
    ASSERT_TRUE(script) << messages_of(diagnostics);
    for (const ScriptDecision& d : run_balancer_script(*script, diagnostics))
      EXPECT_EQ(d.unexpected, "") << file << ", " << d.case_name << ", step " << d.step;
    EXPECT_FALSE(diagnostics.has_errors()) << messages_of(diagnostics);
  }
}

// Each policy of another product has at least 20 judged decisions.
TEST(BalancerVectors, EveryPolicyIsCovered) {
  std::map<policies::BalancerKind, int> judged;
  for (const std::string& file : vector_files()) {
    Diagnostics diagnostics;
    const auto script = read_balancer_script(file, diagnostics);
    ASSERT_TRUE(script) << messages_of(diagnostics);
    EXPECT_FALSE(script->source.empty()) << file;
    for (const ScriptCase& c : script->cases)
      judged[c.routing.balancer] +=
          static_cast<int>(std::count_if(c.steps.begin(), c.steps.end(), is_judged));
  }
  for (std::size_t i = 0; i < policies::kBalancers.size(); ++i) {
    const auto& row = policies::kBalancers[i];
    // Formulas and plug-ins have tests of their own.
    if (row.section.empty() || row.make == nullptr) continue;
    EXPECT_GE(judged[static_cast<policies::BalancerKind>(i)], 20) << row.name;
  }
}

}  // namespace
}  // namespace routesim::tools
