// Vectors of whole decisions, and that every file of vectors has a test.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "policies/plugins/no_hit_lru.h"
#include "policies/plugins/session_affinity.h"
#include "policies/row_math.h"
#include "policies/scheduling_profile.h"
#include "tests/policies/plugin_bench.h"
#include "tests/policies/vector_file.h"

namespace routesim::policies {
namespace {

// Every case of scheduler_profile, session_affinity, no_hit_lru and the final scores of
// precise_prefix_cache_scorer.

using test::member;
using test::name_of;
using test::u64_list;
using test::vector_cases;

// ---- scheduler_profile --------------------------------------------------------------------------

class KeepFilter final : public Filter {
 public:
  explicit KeepFilter(std::vector<EndpointRow> keep) : keep_(std::move(keep)) {}
  void filter(Cycle&, std::vector<EndpointRow>& candidates) const override {
    ++runs;
    std::erase_if(candidates, [this](EndpointRow r) {
      return std::find(keep_.begin(), keep_.end(), r) == keep_.end();
    });
  }
  mutable int runs = 0;

 private:
  std::vector<EndpointRow> keep_;
};

class FixedScorer final : public Scorer {
 public:
  explicit FixedScorer(std::map<EndpointRow, double> scores) : scores_(std::move(scores)) {}
  void score(Cycle&, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    ++runs;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const auto it = scores_.find(candidates[i]);
      scores[i] = it == scores_.end() ? kUnscored : it->second;
    }
  }
  mutable int runs = 0;

 private:
  std::map<EndpointRow, double> scores_;
};

class FirstPicker final : public Picker {
 public:
  void pick(Cycle&, std::span<const EndpointRow> candidates, std::span<const double> totals,
            std::vector<EndpointRow>& picked) const override {
    seen.clear();
    for (std::size_t i = 0; i < candidates.size(); ++i) seen[candidates[i]] = totals[i];
    picked.push_back(candidates.front());
  }
  mutable std::map<EndpointRow, double> seen;
};

TEST(ProfileVectors, FilterClampWeightSum) {
  for (const Json& c : vector_cases("scheduler_profile")) {
    SCOPED_TRACE(name_of(c));
    if (c.value("fn", "") == "clamp") {
      EXPECT_EQ(clamp_score(c["score"]), c["expected"].get<double>());
      continue;
    }
    std::map<std::string, EndpointRow> rows;
    for (const Json& pod : c["candidates"])
      rows.try_emplace(pod.get<std::string>(), static_cast<EndpointRow>(rows.size()));
    const EndpointTable table = make_endpoints(rows.size());
    SchedulingProfile profile;
    std::vector<std::unique_ptr<KeepFilter>> filters;
    for (const Json& keep : c["filters_keep"]) {
      std::vector<EndpointRow> kept;
      for (const Json& pod : keep) kept.push_back(rows.at(pod.get<std::string>()));
      filters.push_back(std::make_unique<KeepFilter>(kept));
      profile.filters.push_back(filters.back().get());
    }
    std::vector<std::unique_ptr<FixedScorer>> scorers;
    for (const Json& s : c["scorers"]) {
      std::map<EndpointRow, double> scores;
      for (const auto& [pod, row] : rows) {
        if (s.contains("score_each")) scores[row] = s["score_each"];
        if (s.contains("scores") && s["scores"].contains(pod)) scores[row] = s["scores"][pod];
      }
      scorers.push_back(std::make_unique<FixedScorer>(scores));
      profile.scorers.push_back({scorers.back().get(), s["weight"].get<double>()});
    }
    const FirstPicker picker;
    profile.picker = &picker;
    Cycle cycle;
    Decision decision;
    const RequestView request;
    cycle.begin(
        {.request = request, .endpoints = table, .now = SimTime::zero(), .decision = decision});
    SchedulingProfile::Buffers buffers;
    std::vector<EndpointRow> picked;
    const ProfileState state = profile.run(cycle, buffers, picked, nullptr);
    if (c.contains("expected_error")) {
      EXPECT_EQ(state, ProfileState::kFailed);
      EXPECT_TRUE(picker.seen.empty());
      for (const auto& s : scorers) EXPECT_EQ(s->runs, 0);
      continue;
    }
    ASSERT_EQ(state, ProfileState::kOk);
    std::map<EndpointRow, double> expected;
    for (const Json& pod : member(c, "expected_scored"))
      expected[rows.at(pod.get<std::string>())] = c["expected_total"];
    for (const auto& [pod, total] : member(c, "expected_totals").items())
      expected[rows.at(pod)] = total;
    EXPECT_EQ(picker.seen, expected) << "totals must agree to the last bit";
  }
}

// ---- session_affinity ---------------------------------------------------------------------------

class SessionBench {
 public:
  SessionBench(const Json& c, const std::vector<std::string>& profiles)
      : bench("session-affinity-scorer", parameters_of(c), 0, {}, profiles) {
    for (const Json& id : member(c, "endpoint_ids")) add(id.get<std::string>());
  }
  static Json parameters_of(const Json& c) {
    Json parameters = member(c, "params").is_null() ? Json::object() : c["params"];
    if (c.contains("strategy")) parameters["strategy"] = c["strategy"];
    return parameters;
  }
  EndpointRow add(const std::string& id) {
    const auto it = rows.find(id);
    if (it != rows.end()) return it->second;
    const std::size_t slash = id.find('/');
    EndpointInfo info;
    info.name_space = slash == std::string::npos ? "" : id.substr(0, slash);
    info.pod_name = slash == std::string::npos ? id : id.substr(slash + 1);
    return rows[id] = bench.table().add(std::move(info)).value();
  }
  PluginBench bench;
  std::map<std::string, EndpointRow> rows;
};

void check_response_header(const Json& c) {
  SessionBench session(c, {"default", "prefill"});
  ASSERT_TRUE(session.bench.built()) << session.bench.errors();
  Decision decision;
  decision.profiles.resize(2);
  if (!c["target"].is_null())
    decision.primary = EndpointId(session.add(c["target"].get<std::string>()));
  for (const auto& [profile, targets] : member(c, "profile_results").items()) {
    ASSERT_EQ(profile, "prefill");
    decision.profiles[1].state = ProfileState::kOk;
    for (const Json& t : targets)
      decision.profiles[1].targets.push_back(session.add(t.get<std::string>()));
  }
  std::map<std::string, std::string> headers;
  for (const auto& [name, value] :
       session.bench.scheduler().response_headers(decision, session.bench.table()))
    headers[name] = value;
  EXPECT_EQ(headers, (c["expected_headers"].get<std::map<std::string, std::string>>()));
}

TEST(SessionVectors, AllCases) {
  for (const Json& c : vector_cases("session_affinity")) {
    SCOPED_TRACE(name_of(c));
    const std::string fn = c.value("fn", "score");
    if (fn == "config") {
      const std::string text = c["params_json"];
      PluginBench bench("session-affinity-scorer", text.empty() ? Json() : Json::parse(text), 0);
      EXPECT_EQ(bench.built(), !c["expected_error"].get<bool>()) << bench.errors();
      continue;
    }
    if (fn == "response_header") {
      check_response_header(c);
      continue;
    }
    ASSERT_EQ(fn, "score");
    SessionBench session(c, {"default"});
    ASSERT_TRUE(session.bench.built()) << session.bench.errors();
    for (const Json& op : member(c, "ops")) {
      const std::string id = op["pre_request"]["session"];
      const Header header{"X-Session-Id", id};
      RequestView request;
      request.headers = std::span(&header, 1);
      Decision decision;
      Cycle cycle;
      session.bench.begin(cycle, request, decision);
      decision.outcome = Outcome::kRouted;
      decision.primary = EndpointId(session.add(op["pre_request"]["picked"].get<std::string>()));
      session.bench.subject<SessionAffinityScorer>().on_decided(cycle, decision);
      session.bench.scheduler().on_routed(request, decision, session.bench.table(),
                                          SimTime::zero());
    }
    std::vector<std::pair<std::string, std::string>> texts;
    for (const auto& [name, value] : member(c, "headers").items())
      texts.emplace_back(name, value.get<std::string>());
    if (const Json& query = member(c, "query_session"); query.is_string())
      texts.emplace_back("x-session-id", query.get<std::string>());
    std::vector<Header> headers;
    for (const auto& [name, value] : texts) headers.push_back({name, value});
    RequestView request;
    request.headers = headers;
    EXPECT_EQ(session.bench.scores(request), c["expected_scores"].get<std::vector<double>>());
  }
}

// ---- no_hit_lru ---------------------------------------------------------------------------------

class LruBench {
 public:
  LruBench() : bench("no-hit-lru-scorer", {}, 0) {}
  EndpointRow add(const std::string& pod) {
    const auto it = rows.find(pod);
    if (it != rows.end()) return it->second;
    EndpointInfo info;
    info.pod_name = pod;
    return rows[pod] = bench.table().add(std::move(info)).value();
  }
  void match_everywhere(bool hit) {
    bench.stub().matches.assign(bench.table().rows(), StubData::Match{0, 10, 1, {}});
    if (hit && !bench.stub().matches.empty()) bench.stub().matches[0]->match = 3;
  }
  // One request that went to `pod`, cold or warm as the stub says.
  void send(const std::string& pod) {
    RequestView request;
    Decision decision = bench.scheduler().schedule(request, bench.table(), SimTime::zero());
    decision.primary = EndpointId(rows.at(pod));
    bench.scheduler().on_routed(request, decision, bench.table(), SimTime::zero());
  }
  std::vector<std::string> order() {
    std::vector<std::string> pods;
    for (const EndpointRow r : bench.subject<NoHitLruScorer>().order().oldest_first())
      pods.push_back(bench.table().info(r).pod_name);
    return pods;
  }
  PluginBench bench;
  std::map<std::string, EndpointRow> rows;
};

TEST(NoHitLruVectors, AllCases) {
  for (const Json& c : vector_cases("no_hit_lru")) {
    SCOPED_TRACE(name_of(c));
    LruBench lru;
    ASSERT_TRUE(lru.bench.built()) << lru.bench.errors();
    if (c.value("fn", "") == "sequence") {
      for (const Json& step : c["steps"])
        for (const auto& [kind, pod] : step.items()) lru.add(pod.get<std::string>());
      for (const Json& step : c["steps"]) {
        lru.match_everywhere(step.contains("warm"));
        lru.send(step.begin().value().get<std::string>());
      }
      EXPECT_EQ(lru.order(), c["expected_lru_oldest_first"].get<std::vector<std::string>>());
      continue;
    }
    for (const Json& pod : c["endpoints"]) lru.add(pod.get<std::string>());
    const std::size_t candidates = lru.rows.size();
    for (const Json& pod : c["lru_oldest_first"]) lru.add(pod.get<std::string>());
    lru.match_everywhere(false);
    for (const Json& pod : c["lru_oldest_first"]) lru.send(pod.get<std::string>());
    for (std::size_t r = candidates; r < lru.rows.size(); ++r)
      lru.bench.table().set_ready(EndpointId(r), false);
    lru.match_everywhere(c["any_endpoint_has_match"].get<bool>());
    const auto scores = lru.bench.scores();
    EXPECT_EQ(scores, c["expected_scores"].get<std::vector<double>>());
    if (!c.contains("expected_best")) continue;
    const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
    EXPECT_EQ(lru.bench.table().info(static_cast<EndpointRow>(best)).pod_name,
              c["expected_best"].get<std::string>());
  }
}

// ---- precise_prefix_cache_scorer ----------------------------------------------------------------

/// A precise scorer whose index gives endpoint i exactly the raw score asked for: one block on a
/// tier of that weight. Endpoints without a raw score hold nothing.
std::vector<double> precise_scores(Era era, const std::vector<double>& raw, std::size_t total,
                                   std::size_t candidates) {
  Json backends = Json::array();
  for (std::size_t i = 0; i < raw.size(); ++i)
    backends.push_back({{"name", "tier" + std::to_string(i)}, {"weight", raw[i]}});
  const bool nested = traits(era).precise.token_processor_in_indexer;
  Json parameters = {{"indexerConfig", {{"kvCacheBackendConfigs", backends}}}};
  (nested ? parameters["indexerConfig"] : parameters)["tokenProcessorConfig"] = {{"blockSize", 16}};
  PluginBench bench("precise-prefix-cache-scorer", parameters, raw.size(),
                    {.era = era, .distribution = {}, .registry = nullptr});
  EXPECT_TRUE(bench.built()) << bench.errors();
  std::vector<std::uint64_t> keys(total);
  std::iota(keys.begin(), keys.end(), 100);
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] == 0) continue;
    const TierId tier = *bench.scheduler().tiers()->intern("tier" + std::to_string(i));
    const HolderEntry entry{.endpoint = EndpointId(bench.scheduler().index_holder(
                                bench.table(), static_cast<EndpointRow>(i))),
                            .tier = tier,
                            .speculative = false,
                            .group = {}};
    bench.scheduler().precise_index()->add({}, std::span(keys).first(1), std::span(&entry, 1));
  }
  for (std::size_t r = candidates; r < raw.size(); ++r)
    bench.table().set_ready(EndpointId(r), false);
  RequestView request;
  request.block_keys = keys;
  return bench.scores(request);
}

void expect_near(const std::vector<double>& got, const Json& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i].get<double>(), 1e-12) << "endpoint " << i;
}

// Match info of an Aug 2026 producer, seen by a scorer that reads it.
class Probe final : public Scorer {
 public:
  Probe(std::size_t slot, PrefixMatches* seen) : slot_(slot), seen_(seen) {}
  void score(Cycle& cycle, std::span<const EndpointRow>, std::span<double> scores) const override {
    *seen_ = cycle.prefix(slot_);
    std::fill(scores.begin(), scores.end(), 0.0);
  }

 private:
  std::size_t slot_;
  PrefixMatches* seen_;
};

struct ProducerBench {
  explicit ProducerBench(bool speculative = false) {
    registry = standard_registry();
    PluginType probe = *registry.find("queue-scorer");
    probe.create = [this](const PluginSpec&, BuildContext& context) {
      return std::make_unique<Probe>(context.prefix_slot("precise"), &seen);
    };
    registry.add(probe);
    scheduler = make_scheduler(
        document("- type: disagg-profile-handler\n- type: queue-scorer\n- name: precise\n"
                 "  type: precise-prefix-cache-producer\n  parameters:\n"
                 "    speculativeIndexing: " +
                     std::string(speculative ? "true" : "false") + "\n",
                 "  - pluginRef: queue-scorer\n- name: decode\n  plugins:\n"
                 "  - pluginRef: queue-scorer\n"),
        {.era = {}, .distribution = {}, .registry = &registry});
  }
  PluginRegistry registry;
  PrefixMatches seen;
  std::unique_ptr<Scheduler> scheduler;
};

void check_produce(const Json& c) {
  ProducerBench producer;
  EndpointTable table = make_endpoints(c["endpoints"].size());
  const auto keys = u64_list(c["keys"]);
  for (const auto& [key, holders] : c["lookup"].items()) {
    const BlockKey k = std::stoull(key);
    for (const Json& holder : holders) {
      const auto& all = c["endpoints"];
      const auto row =
          static_cast<std::size_t>(std::find(all.begin(), all.end(), holder) - all.begin());
      HolderEntry entry;
      entry.endpoint = EndpointId(row);
      producer.scheduler->precise_index()->add({}, std::span(&k, 1), std::span(&entry, 1));
    }
  }
  RequestView request;
  request.block_keys = keys;
  producer.scheduler->schedule(request, table, SimTime::zero());
  for (std::size_t i = 0; i < c["expected"].size(); ++i) {
    EXPECT_EQ(producer.seen.match[i], c["expected"][i]["match"].get<std::int32_t>());
    EXPECT_EQ(producer.seen.total_blocks, c["expected"][i]["total"].get<std::int64_t>());
  }
}

// Prompts given by their token counts: keys of their full blocks, prompt by prompt.
void check_produce_lengths(const Json& c) {
  ProducerBench producer;
  EndpointTable table = make_endpoints(1);
  const BlockKeyScheme scheme = producer.scheduler->block_key_scheme();
  ASSERT_EQ(scheme.block_size, c["block_size"].get<std::int64_t>());
  const BlockKeyChain chain(scheme.algorithm, static_cast<std::uint32_t>(scheme.block_size),
                            scheme.hash_seed, "model");
  std::vector<BlockKey> keys;
  std::vector<std::uint32_t> ends;
  for (const Json& n : c["prompts_token_counts"]) {
    const auto tokens = test::counting_tokens(n.get<std::size_t>());
    chain.append_keys(BlockKey{0}, tokens, keys);
    ends.push_back(static_cast<std::uint32_t>(keys.size()));
  }
  RequestView request;
  request.block_keys = keys;
  request.block_key_ends = ends;
  producer.scheduler->schedule(request, table, SimTime::zero());
  if (c.contains("expected_attribute_written")) {
    EXPECT_EQ(producer.seen.written, c["expected_attribute_written"].get<bool>());
  } else {
    EXPECT_EQ(producer.seen.total_blocks, c["expected_total_blocks"].get<std::int64_t>());
  }
}

void check_speculative(const Json& c) {
  ProducerBench producer(true);
  const EndpointTable table = make_endpoints(3);
  const auto keys = u64_list(c["keys"]);
  RequestView request;
  request.block_keys = keys;
  Decision decision;
  decision.outcome = Outcome::kRouted;
  decision.primary = EndpointId(0);
  decision.profiles.resize(2);
  if (!c["prefill"].is_null()) {
    decision.prefill_profile = 1;
    decision.profiles[1].state = ProfileState::kOk;
    decision.profiles[1].targets = {1};
  }
  producer.scheduler->on_routed(request, decision, table, SimTime::zero());
  std::vector<HolderEntry> expected;
  for (std::size_t i = 0; i < c["expected_added"].size(); ++i) {
    EXPECT_EQ(u64_list(c["expected_added"][i][1]), keys);
    expected.push_back(
        {.endpoint = EndpointId(i), .tier = kNoTier, .speculative = true, .group = {}});
  }
  for (const std::uint64_t key : keys)
    EXPECT_EQ(producer.scheduler->precise_index()->holders(key), expected);
}

TEST(PreciseVectors, FinalScoresAndProducer) {
  int run = 0;
  for (const Json& c : vector_cases("precise_prefix_cache_scorer")) {
    SCOPED_TRACE(name_of(c));
    const std::string fn = c["fn"];
    if (fn == "longest_prefix" || fn == "matched_block_count") continue;  // prefix_index_test.cpp
    ++run;
    if (fn == "final_score_truncated" || fn == "final_score_absolute") {
      const auto raw = c["raw_weighted_scores"].get<std::vector<double>>();
      expect_near(precise_scores(fn == "final_score_truncated" ? Era::kAug2026 : Era::kMay2026, raw,
                                 c["total_blocks"], raw.size()),
                  c["expected_scores"]);
    } else if (fn == "final_score_minmax") {
      std::vector<double> raw;
      for (const Json& pod : c["candidates"])
        raw.push_back(c["raw_scores_of_all_indexed_pods"][pod.get<std::string>()]);
      for (const auto& [pod, score] : c["raw_scores_of_all_indexed_pods"].items()) {
        const auto& all = c["candidates"];
        if (std::find(all.begin(), all.end(), Json(pod)) == all.end()) raw.push_back(score);
      }
      for (const Era era : {Era::kV0_4_0, Era::kV0_5_0, Era::kV0_6_0})
        expect_near(precise_scores(era, raw, 8, c["candidates"].size()), c["expected_scores"]);
    } else if (fn == "produce") {
      check_produce(c);
    } else if (fn == "produce_noop" || fn == "produce_totals") {
      check_produce_lengths(c);
    } else if (fn == "speculative") {
      check_speculative(c);
    } else {
      FAIL() << "unknown case kind " << fn;
    }
  }
  EXPECT_EQ(run, 16);
}

}  // namespace
}  // namespace routesim::policies

namespace routesim::test {
namespace {

// Every vector file has a test that runs it.

TEST(VectorCoverage, EveryFileHasARunner) {
  std::set<std::string> tests;
  const auto& program = *testing::UnitTest::GetInstance();
  for (int s = 0; s < program.total_test_suite_count(); ++s) {
    const auto& suite = *program.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t)
      tests.insert(std::string(suite.name()) + "." + suite.GetTestInfo(t)->name());
  }
  std::set<std::string> run;
  for (const VectorRunner& r : kVectorRunners) {
    const std::string name = std::string(r.suite) + "." + std::string(r.test);
    EXPECT_EQ(tests.count(name), 1u) << name << " is to run " << r.file << " but is no test";
    run.insert(std::string(r.file));
  }
  std::set<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(ROUTESIM_SOURCE_DIR) + "/tests/vectors"))
    if (entry.path().extension() == ".json") files.insert(entry.path().stem().string());
  EXPECT_GE(files.size(), 34u);
  EXPECT_EQ(files, run) << "a file without a runner, or a runner without a file";
}

}  // namespace
}  // namespace routesim::test
