// One decision taken apart, and the hit-rate ladder of a run.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "sim/simulation.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/study/explain/decision_study.h"
#include "tools/study/explain/hit_study.h"

namespace routesim::tools {
namespace {

using nlohmann::json;

/// Groups that share prefixes, more of them than one server's cache holds.
std::string scenario_text(int requests, int blocks, const std::string& routing) {
  return "name: small\nworkload:\n  groups: {requests: " + std::to_string(requests) +
         ", rate: 30, groups: 12, prefix_len: 1024, suffix_len: 64, output_len: 24}\n"
         "cluster:\n  pools:\n"
         "  - {name: a, replicas: 3, accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2,\n"
         "     engine: {block_size: 64, num_gpu_blocks: " +
         std::to_string(blocks) + "}}\n" + "routing: " + routing + "\n";
}

std::string precise(const std::string& more = "") {
  return "{balancer: endpoint-picker, endpoint_picker: " + std::string(ROUTESIM_SOURCE_DIR) +
         "/scenarios/inputs/llm-d-precise.endpoint-picker.yaml" + more + "}";
}

sim::RunPlan plan_of(const std::string& text) {
  static int number = 0;
  const auto path =
      std::filesystem::temp_directory_path() /
      ("routesim-explain-" + std::to_string(::getpid()) + "-" + std::to_string(number++) + ".yaml");
  std::ofstream(path) << text;
  Diagnostics diagnostics;
  const LoadedScenario loaded =
      load_scenario({.path = path.string(), .sets = {}, .variants = {}, .seed = {}}, diagnostics);
  std::filesystem::remove(path);
  std::optional<sim::RunPlan> plan;
  if (!diagnostics.has_errors()) plan = prepare(loaded.variants.front(), diagnostics);
  for (const Diagnostic& d : diagnostics.items())
    if (d.path.find("num_gpu_blocks") == std::string::npos) ADD_FAILURE() << to_string(d);
  return plan.value();
}

sim::RunResult run(const sim::RunPlan& plan, sim::DecisionProbe* probe, bool keep = false) {
  Diagnostics diagnostics;
  sim::Simulation simulation(
      plan, {.seed = plan.scenario.seed, .keep_requests = keep, .probe = probe, .observers = {}},
      diagnostics);
  return simulation.run();
}

class RecordAll : public sim::DecisionProbe {
 public:
  bool wants(const workloads::Request&) override { return true; }
  void on_decision(const sim::DecisionRecord& record) override { records.push_back(record); }
  std::vector<sim::DecisionRecord> records;
};

TEST(DecisionProbe, LookingChangesNothing) {
  for (const std::string& routing :
       {precise(), precise(", router_replicas: 2"), std::string("{balancer: least-load}")}) {
    const sim::RunPlan plan = plan_of(scenario_text(200, 100, routing));
    RecordAll probe;
    EXPECT_EQ(run(plan, nullptr).fingerprint, run(plan, &probe).fingerprint) << routing;
    EXPECT_EQ(probe.records.size(), 200U);
  }
}

TEST(DecisionProbe, TheRecordIsTheDecision) {
  const sim::RunPlan plan = plan_of(scenario_text(200, 100, precise()));
  RecordAll probe;
  const sim::RunResult result = run(plan, &probe, true);
  std::vector<std::int32_t> went(200, -1);
  for (const sim::RequestRecord& r : result.requests)
    went[static_cast<std::size_t>(r.id)] = r.endpoint;
  std::int64_t most_promised = 0;
  for (const sim::DecisionRecord& r : probe.records) {
    for (const sim::EndpointFacts& f : r.endpoints)
      most_promised = std::max(most_promised, f.predicted_tokens);
    EXPECT_EQ(static_cast<std::int32_t>(r.picked), went[static_cast<std::size_t>(r.request)]);
    // explain() draws as the decision did, so its pick is the pick.
    EXPECT_EQ(r.seen.profiles.back().picked.front(), r.picked);
    for (const double total : r.totals) EXPECT_LE(total, r.totals[r.picked]);
    for (const sim::EndpointFacts& f : r.endpoints) {
      EXPECT_LE(f.scraped_at, r.now);
      EXPECT_LE(f.cached_tokens, r.prompt_tokens - 1);
    }
  }
  EXPECT_EQ(most_promised, 1024) << "the prefix of a group, in tokens";
}

TEST(RequestChoice, IsANumberOrAWord) {
  const auto is = [](const std::string& text, RequestChoice::By by, std::int64_t value) {
    const auto choice = parse_request_choice(text);
    return choice && choice->by == by && choice->value == value;
  };
  EXPECT_TRUE(is("17", RequestChoice::By::kNumber, 17));
  EXPECT_TRUE(is("0", RequestChoice::By::kNumber, 0));
  EXPECT_TRUE(is("worst", RequestChoice::By::kRegret, 1));
  EXPECT_TRUE(is("slowest:3", RequestChoice::By::kSlowest, 3));
  EXPECT_TRUE(is("regret:20", RequestChoice::By::kRegret, 20));
  for (const char* bad : {"", "-1", "slowest", "slowest:", "slowest:0", "regret:x", "1.5", "best"})
    EXPECT_FALSE(parse_request_choice(bad)) << bad;
}

TEST(RequestChoice, FindsTheSlowestAndTheMostRegretted) {
  sim::RunPlan plan = plan_of(scenario_text(200, 100, "{balancer: random}"));
  plan.price_decisions = true;
  std::vector<sim::RequestRecord> records = run(plan, nullptr, true).requests;
  Diagnostics found;
  const auto ids = [&](RequestChoice::By by) { return find_requests(plan, {by, 5}, found); };
  const auto worst = [&records](auto value) {
    std::sort(records.begin(), records.end(), [&value](const auto& a, const auto& b) {
      return std::pair(-value(a), a.id) < std::pair(-value(b), b.id);
    });
    std::vector<std::int64_t> out;
    for (std::size_t i = 0; i < 5; ++i) out.push_back(records[i].id);
    return out;
  };
  EXPECT_EQ(ids(RequestChoice::By::kSlowest),
            worst([](const auto& r) { return (r.first_token - r.sent).to_seconds(); }));
  EXPECT_EQ(ids(RequestChoice::By::kRegret), worst([](const auto& r) { return r.regret_s; }));
  EXPECT_GT(records.front().regret_s, 0);
}

TEST(DecisionStudy, ForcingTheRealChoiceIsTheRealRun) {
  const sim::RunPlan plan = plan_of(scenario_text(150, 100, precise()));
  class Same final : public RecordAll {
   public:
    std::int64_t forced_row(const workloads::Request& request) override {
      return static_cast<std::int64_t>(request.id.value()) == 70 ? row : -1;
    }
    std::int64_t row = -1;
  } probe;
  const std::uint64_t real = run(plan, &probe).fingerprint;
  std::uint32_t picked = 0;
  for (const sim::DecisionRecord& r : probe.records)
    if (r.request == 70) picked = r.picked;
  probe.row = picked;
  EXPECT_EQ(run(plan, &probe).fingerprint, real);
  probe.row = (picked + 1) % 3;
  probe.records.clear();
  EXPECT_NE(run(plan, &probe).fingerprint, real);
  for (const sim::DecisionRecord& r : probe.records) {
    if (r.request != 70) continue;
    EXPECT_EQ(r.picked, (picked + 1) % 3);
  }
}

TEST(DecisionStudy, RegretIsWhatTheRunsSay) {
  const sim::RunPlan plan = plan_of(scenario_text(150, 100, precise()));
  Diagnostics diagnostics;
  double most = 0;
  for (const std::int64_t request : {0, 40, 90, 149}) {
    const auto study = study_decision(plan, request, 2, diagnostics);
    ASSERT_TRUE(study.has_value());
    ASSERT_EQ(study->alternatives.size(), 3U);
    EXPECT_EQ(study->alternatives.front().row, study->record.picked);
    double best = INFINITY;
    for (const Alternative& a : study->alternatives) {
      EXPECT_TRUE(a.succeeded);
      best = std::min(best, a.ttft_s);
    }
    EXPECT_EQ(regret_s(*study), study->alternatives.front().ttft_s - best);
    EXPECT_GE(regret_s(*study), 0);
    most = std::max(most, regret_s(*study));
    const json made = json::parse(render_decision_json(*study));
    EXPECT_EQ(made["alternatives"].size(), 3U);
    EXPECT_EQ(made["picked"], study->record.endpoints[study->record.picked].name);
    for (const auto& profile : made["seen"])
      for (const auto& endpoint : profile["endpoints"]) {
        double sum = 0;
        for (const auto& score : endpoint["scores"]) sum += score["contribution"].get<double>();
        EXPECT_NEAR(sum, endpoint["total"].get<double>(), 1e-12) << "the parts are the total";
      }
    EXPECT_NE(render_decision_text(*study).find("realised regret"), std::string::npos);
  }
  EXPECT_FALSE(study_decision(plan, 150, 1, diagnostics).has_value());
  EXPECT_TRUE(diagnostics.has_errors()) << "there is no such request";
}

TEST(DecisionStudy, AFormulaShowsItsScores) {
  const sim::RunPlan plan = plan_of(
      scenario_text(20, 100, "{balancer: expression, expression: {score: 3 - 2 * in_flight}}"));
  Diagnostics diagnostics;
  const auto study = study_decision(plan, 0, 2, diagnostics);
  ASSERT_TRUE(study.has_value());
  const json scores = json::parse(render_decision_json(*study))["scores"];
  ASSERT_EQ(scores.size(), 3U);
  EXPECT_EQ(scores[2]["endpoint"], study->record.endpoints[2].name);
  EXPECT_EQ(scores[2]["score"], 3) << "nothing is in flight at the first request";
  EXPECT_EQ(scores[2]["inputs"], (json{{"in_flight", 0}}));
  EXPECT_NE(render_decision_text(*study).find("The formula's value"), std::string::npos);
}

TEST(DecisionStudy, TheOmniscientViewSeesTheTruth) {
  // Nothing published ever arrives: the index is empty, the caches are not.
  const sim::RunPlan plan = plan_of(scenario_text(150, 1000, precise(", kv_event_delay: 1h")));
  Diagnostics diagnostics;
  const auto study = study_decision(plan, 140, 2, diagnostics);
  ASSERT_TRUE(study.has_value());
  ASSERT_TRUE(study->record.scored);
  std::int64_t held = 0;
  for (const sim::EndpointFacts& f : study->record.endpoints)
    held = std::max(held, f.cached_tokens);
  EXPECT_EQ(held, 1024) << "somebody has the whole prefix of the group";
  ASSERT_GE(study->omniscient, 0);
  bool seen_by_truth = false;
  for (const auto& profile : study->record.omniscient.profiles)
    for (const auto& step : profile.scorers)
      if (step.plugin.find("prefix") != std::string::npos)
        for (const double score : step.scores) seen_by_truth = seen_by_truth || score > 0;
  EXPECT_TRUE(seen_by_truth);
}

void expect_ladder(const HitStudy& s) {
  const HitLadder& l = s.ladder;
  EXPECT_LE(l.infinite, l.prompt);
  EXPECT_LE(l.one_cache, l.infinite);
  EXPECT_LE(l.best_routing, l.one_cache);
  EXPECT_LE(l.predicted, l.best_routing);
  EXPECT_LE(l.delivered, l.predicted);
  EXPECT_GE(l.delivered, 0);
  const HitLosses& x = s.losses;
  EXPECT_EQ(x.capacity + x.split + x.stale + x.load + x.tie + x.blind + x.waiting,
            l.infinite - l.delivered)
      << "every lost token has one cause";
  for (const std::int64_t part : {x.capacity, x.split, x.stale, x.load, x.tie, x.blind, x.waiting})
    EXPECT_GE(part, 0);
}

TEST(HitLadder, NeverRises) {
  for (const int blocks : {24, 36, 80, 250, 5000})
    for (const std::string& routing :
         {precise(), precise(", kv_event_delay: 2s"), std::string("{balancer: random}"),
          std::string("{balancer: round-robin}"), std::string("{balancer: prefix-hash}")}) {
      Diagnostics diagnostics;
      const sim::RunPlan plan = plan_of(scenario_text(250, blocks, routing));
      const auto study = study_hits(plan, diagnostics);
      ASSERT_TRUE(study.has_value());
      SCOPED_TRACE(std::to_string(blocks) + " blocks, " + routing);
      expect_ladder(*study);
      EXPECT_EQ(study->ladder.delivered, run(plan, nullptr).routing.hit_tokens);
      EXPECT_EQ(study->requests, 250);
    }
}

TEST(HitLadder, NamesTheCause) {
  Diagnostics diagnostics;
  const auto random =
      study_hits(plan_of(scenario_text(250, 5000, "{balancer: random}")), diagnostics);
  EXPECT_GT(random->losses.blind, 0);
  EXPECT_EQ(random->losses.stale + random->losses.load + random->losses.tie, 0);
  // With room for everything and everything arriving late, the loss is staleness.
  std::string plain = precise(", kv_event_delay: 1h");
  const auto stale = study_hits(plan_of(scenario_text(250, 5000, plain)), diagnostics);
  EXPECT_GT(stale->losses.stale, 0);
  EXPECT_EQ(stale->losses.blind, 0);
  // 12 groups of 16 blocks never fit into 3 x 24.
  const auto tight = study_hits(plan_of(scenario_text(250, 24, precise())), diagnostics);
  EXPECT_GT(tight->losses.capacity, tight->losses.stale);
  // All prefixes fit in every server: all but the first of each group could hit.
  EXPECT_EQ(random->ladder.infinite, (250 - 12) * 1024);
  EXPECT_EQ(random->ladder.one_cache, random->ladder.infinite);
}

// Hits are those of the run, tier by tier, and every request tells its own.
TEST(HitLadder, SplitsHitsByTier) {
  std::string text = scenario_text(250, 24, precise());
  text.replace(text.find("num_gpu_blocks"), 0, "preset: 2026-H2, kv_tiers: {cpu_gib: 4}, ");
  const sim::RunPlan plan = plan_of(text);
  Diagnostics diagnostics;
  const auto study = study_hits(plan, diagnostics);
  ASSERT_TRUE(study.has_value());
  expect_ladder(*study);
  const json made = json::parse(render_hits_json(*study));
  const sim::RunResult result = run(plan, nullptr);
  const sim::TierResult& tiers = result.summary.tiers.value();
  EXPECT_GT(tiers.did.hit_tokens, 0);
  EXPECT_EQ(made["tiers"]["hbm"]["tokens"], tiers.hbm_hit_tokens);
  EXPECT_EQ(made["tiers"]["host"]["tokens"], tiers.did.hit_tokens);
  EXPECT_EQ(made["tiers"]["pulled"]["tokens"], 0);
  EXPECT_NEAR(made["tiers"]["host"]["wait_s"].get<double>(),
              tiers.did.load_waits.total.to_seconds(), 1e-6);
  EXPECT_EQ(made["tier_requests"].size(), 250U);
  std::int64_t expected_in_host = 0;
  for (const json& r : made["tier_requests"]) {
    for (const char* tier : {"hbm", "host"}) {
      const json& share = r[tier];
      EXPECT_EQ(share["tokens"].get<std::int64_t>() > 0, share["recompute_s"].get<double>() > 0);
    }
    EXPECT_LE(r["hbm"]["tokens"].get<int>() + r["host"]["tokens"].get<int>(), 1088);
    if (r.contains("expected")) expected_in_host += r["expected"].value("cpu", 0);
  }
  EXPECT_GT(expected_in_host, 0) << "KV events name the host's blocks";
  EXPECT_NE(render_hits_text(*study).find("host memory"), std::string::npos);
}

/// Requests over a few chains of blocks; the truth by trying every eviction.
TEST(IdealCaches, BeladyIsTheBestOfAllPolicies) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    // Two chains, 0 1 2 and 3 4 5; a request touches the front of one.
    std::vector<std::uint32_t> keys;
    std::vector<StreamRequest> requests;
    for (int r = 0; r < 7; ++r) {
      const std::uint32_t base = random() % 2 * 3;
      const std::size_t length = 1 + random() % 3;
      StreamRequest request{.begin = keys.size()};
      for (std::uint32_t i = 0; i < length; ++i) keys.push_back(base + i);
      request.hit_end = request.end = keys.size();
      requests.push_back(request);
    }
    const auto capacity = static_cast<std::int64_t>(1 + random() % 5);
    // Best hits from request r on with this content, over every content a cache may keep.
    const std::function<std::int64_t(std::size_t, std::uint32_t)> best =
        [&](std::size_t r, std::uint32_t content) -> std::int64_t {
      if (r == requests.size()) return 0;
      std::int64_t hits = 0;
      std::uint32_t after = content;
      bool run_on = true;
      for (std::size_t i = requests[r].begin; i < requests[r].end; ++i) {
        run_on = run_on && (content >> keys[i] & 1U) != 0;
        hits += run_on ? 1 : 0;
        after |= 1U << keys[i];
      }
      std::int64_t most = 0;
      for (std::uint32_t keep = after;; keep = (keep - 1) & after) {
        if (std::popcount(keep) == std::min<int>(std::popcount(after), static_cast<int>(capacity)))
          most = std::max(most, best(r + 1, keep));
        if (keep == 0) break;
      }
      return hits + most;
    };
    EXPECT_EQ(belady_hits(keys, requests, capacity), best(0, 0)) << "round " << round;
    EXPECT_EQ(belady_hits(keys, requests, 6), infinite_hits(keys, requests));
  }
}

}  // namespace
}  // namespace routesim::tools
