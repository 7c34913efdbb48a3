// Pages of comparisons, sweeps, plans, validations and tunings: their first sentences are true, and
// their numbers are those of their data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/base/messages.h"
#include "tools/render/chart/chart.h"
#include "tools/render/document.h"
#include "tools/render/page/html_page.h"
#include "tools/results/described_json.h"
#include "tools/study/plan/plan_record.h"
#include "tools/study/report/read_results.h"
#include "tools/study/sweep/sweep_goals.h"

namespace routesim::tools::study_pages {
namespace {

using nlohmann::json;

PageData read(const std::string& text, const std::vector<std::string>& goals = {}) {
  Diagnostics diagnostics;
  PageData data = read_results({{.file = "r", .text = text}}, diagnostics, goals);
  EXPECT_EQ(messages_of(diagnostics), "");
  return data;
}

std::string page_of_text(const std::string& text, const std::vector<std::string>& goals = {}) {
  return render_page(read(text, goals));
}

/// What stands in the large type of the first verdict.
std::string headline_of(const std::string& page) {
  const std::string open = "<p class=\"big\">";
  const std::size_t at = page.find(open);
  if (at == std::string::npos) return "no verdict";
  return page.substr(at + open.size(), page.find("</p>", at) - at - open.size());
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// Every cell with an address has the number that stands there in the page's data block.
void expect_cells_are_data(const std::string& page, int least) {
  const std::optional<std::string> block = data_block(page);
  ASSERT_TRUE(block.has_value());
  const json data = json::parse(*block);
  const std::regex cell("data-path=\"([^\"]*)\" data-value=\"([^\"]*)\"");
  int cells = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), cell), end; it != end; ++it, ++cells) {
    const json& number = data.at(json::json_pointer((*it)[1].str()));
    ASSERT_TRUE(number.is_number()) << (*it)[1];
    EXPECT_EQ(number.get<double>(), std::stod((*it)[2].str())) << (*it)[1];
  }
  EXPECT_GE(cells, least);
}

/// Whether a figure stands in the verdict, which is what a reader sees first.
bool has_picture(const std::string& page) { return page.find("<figure") < page.find("</section>"); }

json estimate(double mean, double half) {
  return {{"mean", mean}, {"low", mean - half}, {"high", mean + half}};
}

/// A metric that went from 100 to 100 + `change`.
json difference(double change, const std::string& verdict) {
  return {{"base", estimate(100, 1)},
          {"new", estimate(100 + change, 1)},
          {"difference", estimate(change, 2)},
          {"percent", estimate(change, 2)},
          {"verdict", verdict}};
}

/// One variant whose mean TTFT has this verdict, over the whole run and in two stages.
json pair_of(const std::string& name, const std::string& verdict,
             const std::vector<std::string>& stages = {"not distinguishable",
                                                       "not distinguishable"}) {
  json pair = {{"base", name}, {"new", name}, {"paired", true}, {"note", ""}};
  pair["summary"]["metrics"]["ttft_ms.mean"] = difference(20, verdict);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    json stage = {{"name", std::to_string(i)},
                  {"reported", true},
                  {"requested_rate", 10.0 * static_cast<double>(i + 1)},
                  {"base_overloaded", false},
                  {"new_overloaded", i == 1}};
    stage["metrics"]["ttft_ms.mean"] = difference(20, stages[i]);
    pair["stages"].push_back(stage);
  }
  return pair;
}

json comparison(const std::vector<json>& pairs) {
  return {{"base", {{"file", "a.json"}, {"scenario", "s"}, {"version", "1"}, {"seeds", {1, 2}}}},
          {"new", {{"file", "b.json"}, {"scenario", "s"}, {"version", "1"}, {"seeds", {1, 2}}}},
          {"gates", json::array()},
          {"remarks", json::array()},
          {"changes",
           {{{"path", "cluster.pools[0].replicas"},
             {"base", "8"},
             {"new", "7"},
             {"variants", {"v0"}}}}},
          {"pairs", pairs}};
}

/// The first sentence about variants v0, v1, ... with these verdicts.
std::string first_sentence(const std::vector<std::string>& verdicts) {
  std::vector<json> pairs;
  for (std::size_t i = 0; i < verdicts.size(); ++i)
    pairs.push_back(pair_of("v" + std::to_string(i), verdicts[i]));
  return headline_of(page_of_text(comparison(pairs).dump()));
}

TEST(ComparisonPage, FirstSentenceIsTrueOfAnyNumberOfVariants) {
  EXPECT_EQ(first_sentence({"better"}), "New is better than base for v0.");
  EXPECT_EQ(first_sentence({"worse", "worse"}), "New is worse than base for v0 and v1.");
  EXPECT_EQ(first_sentence({"better", "worse", "not distinguishable", "better"}),
            "New is better than base for v0 and v3; worse than base for v1; not distinguishable "
            "from base for v2.");
  EXPECT_EQ(first_sentence(std::vector<std::string>(8, "equal")),
            "New and base cannot be told apart for all 8 variants.");
  EXPECT_EQ(first_sentence({"no interval"}),
            "No interval tells whether new differs from base by more than chance for v0.");
}

TEST(ComparisonPage, StagesDecideWhereTheWholeRunIsNotJudged) {
  const std::string page =
      page_of_text(comparison({pair_of("v0", "not judged", {"better", "worse"}),
                               pair_of("v1", "not judged", {"worse", "not distinguishable"})})
                       .dump());
  EXPECT_EQ(headline_of(page),
            "New is worse than base for v1; better than base in some measures and worse in others "
            "for v0.");
  EXPECT_NE(page.find("mean TTFT in 1 of 2 stages"), std::string::npos);
}

TEST(ComparisonPage, SaysWhatChangedAndIsItsData) {
  const std::string text = comparison({pair_of("v0", "worse")}).dump();
  const std::string page = page_of_text(text);
  EXPECT_NE(
      page.find(
          "<td class=\"path\"><code>cluster.pools[0].replicas</code></td><td class=\"text\">v0</td>"
          "<td class=\"text\">8</td><td class=\"text\">7</td>"),
      std::string::npos);
  EXPECT_NE(page.find("+20.0 % [+18.0, +22.0]"), std::string::npos);
  // Three numbers each of the whole run and of two stages.
  expect_cells_are_data(page, 9);
  EXPECT_EQ(json::parse(*data_block(page)), json::parse(text));
  EXPECT_EQ(render_page(read(page)), page);
  EXPECT_LT(page.find("class=\"big\""), page.find("What changed"));
  EXPECT_TRUE(has_picture(page));
  EXPECT_NE(page.find("v0: of 1 measure, 0 better and 1 worse in new"), std::string::npos);
}

TEST(ComparisonPage, SaysNothingOfItsAuthorsDisk) {
  json result = comparison({pair_of("v0", "worse")});
  const auto shown = [&result](const char* base, const char* changed) {
    result["base"]["file"] = base;
    result["new"]["file"] = changed;
    const std::string page = page_of_text(result.dump());
    return page.substr(0, page.find("<script type"));
  };
  const std::string own = shown("/srv/me/a.json", "/srv/me/b.json");
  EXPECT_EQ(own.find("/srv"), std::string::npos);
  EXPECT_NE(own.find("base: a.json · new: b.json"), std::string::npos);
  const std::string same = shown("/srv/me/old/r.json", "/srv/me/new/r.json");
  EXPECT_EQ(same.find("/srv"), std::string::npos);
  EXPECT_NE(same.find("base: old/r.json · new: new/r.json"), std::string::npos);
}

/// A sweep of rate x servers whose p90 is 100 rate / servers ms, give or take 10; the cell of two
/// servers at rate 20 is overloaded.
std::string sweep_lines(const std::string& extra_cell = {}, double factor = 1) {
  std::string text;
  for (const char* variant : {"a", "b"})
    for (const int rate : {5, 10, 20})
      for (const int servers : {2, 4}) {
        const double p90 = factor * 100.0 * rate / servers * (*variant == 'b' ? 3 : 1);
        const json row = {
            {"sweep", "grid"},
            {"cell", json::parse("{\"rate\":" + std::to_string(rate) +
                                 ",\"servers\":" + std::to_string(servers) + extra_cell + "}")},
            {"variant", variant},
            {"replications", 3},
            {"version", "1"},
            {"summary",
             {{"overloaded", rate == 20 && servers == 2},
              {"metrics", {{"ttft_ms.p90", {{"mean", p90}, {"half_width", 10}}}}}}}};
        text += row.dump() + "\n";
      }
  return text;
}

SweepRecord record_of(std::string lines) {
  lines.pop_back();
  std::ranges::replace(lines, '\n', ',');
  Diagnostics diagnostics;
  SweepRecord record =
      read_record<SweepRecord>(*json_tree("{\"sweep_rows\":[" + lines + "]}", {}), diagnostics);
  EXPECT_EQ(messages_of(diagnostics), "");
  return record;
}

/// The cells of these lines, held to a goal.
SweepCells cells_under(const std::string& lines, const std::string& goal) {
  SweepRecord record = record_of(lines);
  record.goals = {goal};
  return cells_of(record, "");
}

TEST(SweepPage, FindsTheSmallestFleetForEachRate) {
  const PageData data = read(sweep_lines(), {"ttft_ms.p90 < 300"});
  const SweepCells cells = cells_under(sweep_lines(), "ttft_ms.p90 < 300");
  const SweepGoals goals(cells);
  ASSERT_NE(goals.rate(), nullptr);
  ASSERT_NE(goals.fleet(), nullptr);
  const SweepPanel& panel = goals.panels().at(0);
  // 100 * 5 / 2 = 250 holds with 2 servers, 100 * 10 / 4 = 250 with 4, 100 * 20 / 4 = 500 with
  // none.
  EXPECT_EQ(goals.smallest_fleet(panel, "a", "5"), 0U);
  EXPECT_EQ(goals.smallest_fleet(panel, "a", "10"), 1U);
  EXPECT_EQ(goals.smallest_fleet(panel, "a", "20"), std::nullopt);
  EXPECT_EQ(goals.smallest_fleet(panel, "b", "5"), std::nullopt) << "375 ms with 4 servers";
  const std::string page = render_page(data);
  EXPECT_EQ(headline_of(page),
            "At rate 10 the goals hold with 4 servers behind a; behind b they fail even with 4 "
            "servers.");
  EXPECT_TRUE(has_picture(page));
  EXPECT_NE(page.find("At rate 10 a needs 4 servers and b needs more than 4 servers"),
            std::string::npos);
  EXPECT_NE(page.find("<tr><td>10</td><td>4 servers</td><td class=\"bad\">none up to 4</td></tr>"),
            std::string::npos);
  EXPECT_EQ(count(page, "class=\"goal-cell\""), 12U) << "one per row of the sweep";
  expect_cells_are_data(page, 12);
  EXPECT_EQ(render_page(read(page)), page) << "the goals stay with the page";
}

TEST(SweepPage, DrawsTheLineBetweenMetAndMissed) {
  const std::string page = page_of_text(sweep_lines(), {"ttft_ms.p90 < 300"});
  // Of a: (5,2), (5,4) and (10,4) are met; between them and the rest run three edges of cells. Of b
  // none is met.
  EXPECT_EQ(count(page, "class=\"goal-line\""), 3U);
  EXPECT_EQ(count(page, "class=\"crossed\""), 0U) << "the number stays free, an × is beside it";
  EXPECT_EQ(count(page, ">×\u00a0"), 2U) << "in one cell of each variant";
  // 100 rate / servers ms: 5 over 4, and 5 over 2 or 10 over 4.
  EXPECT_NE(
      page.find(
          "a: TTFT p90, goal &lt; 300\u00a0ms: 125\u00a0ms to 250\u00a0ms where the goals hold"),
      std::string::npos);
  EXPECT_NE(page.find("b: TTFT p90, goal &lt; 300\u00a0ms: the goals hold nowhere"),
            std::string::npos);
}

TEST(SweepText, HasEveryRowWithItsInterval) {
  const std::string text = draw(sweep_document(record_of(sweep_lines()), "Why?"), "table");
  for (const char* line : {"grid · sweep · routesim 1 · 12 cells\nWhy?\n",
                           "12 cells: 10 not overloaded", "5     2        a        250.0 ±10.0\n",
                           "20    2        b         ! 3000 ±10\n", "  20  4 servers  4 servers\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << " in\n" << text;
}

TEST(SweepPage, AnIntervalAroundTheBoundDecidesNothing) {
  const SweepCells cells = cells_under(sweep_lines(), "ttft_ms.p90 < 255");
  const SweepGoals goals(cells);
  const auto at = [&](const char* rate, const char* servers) {
    return goals.state_of(*goals.row_at(goals.panels()[0], "a", {rate, servers}));
  };
  EXPECT_EQ(at("5", "4"), CellState::kMet) << "125 ms";
  EXPECT_EQ(at("5", "2"), CellState::kOpen) << "240 to 260 ms";
  EXPECT_EQ(at("10", "2"), CellState::kMissed) << "500 ms";
  EXPECT_EQ(at("20", "2"), CellState::kOverloaded);
}

TEST(SweepPage, WithoutGoalsSaysWhereQueuesGrow) {
  const std::string page = page_of_text(sweep_lines());
  EXPECT_EQ(
      headline_of(page),
      "At rate 20 no queue grows without end with 4 servers behind a and with 4 servers behind "
      "b.");
  EXPECT_NE(page.find("12 cells: 10 not overloaded, 2 overloaded"), std::string::npos);
  EXPECT_NE(page.find(">Where no queue grows without end<"), std::string::npos);
  const std::string body = page.substr(page.find("<header"));
  for (const char* words : {"the goals", "\tmet\t", ", met<", "✓", "A goal is met"})
    EXPECT_EQ(body.find(words), std::string::npos) << words;
  EXPECT_EQ(count(page, "\tnot overloaded\t"), 10U) << "the cells of both maps";
}

TEST(SweepPage, FurtherAxesMakePanels) {
  const std::string text = sweep_lines(",\"tp\":1") + sweep_lines(",\"tp\":2", 0.5);
  const PageData data = read(text, {"ttft_ms.p90 < 300"});
  const SweepCells cells = cells_under(text, "ttft_ms.p90 < 300");
  const SweepGoals goals(cells);
  ASSERT_EQ(goals.panels().size(), 2U);
  EXPECT_EQ(goals.panels()[1].title, "tp 2");
  EXPECT_EQ(goals.smallest_fleet(goals.panels()[1], "a", "20"), 1U) << "half of 500 ms";
  EXPECT_TRUE(headline_of(render_page(data))
                  .starts_with("At rate 20 the goals hold with 4 servers behind a, tp 2; "))
      << headline_of(render_page(data));
}

TEST(SweepPage, StagesOfOneLoadAreAnAxis) {
  std::string text;
  for (const int servers : {2, 4}) {
    json row = {{"sweep", "ladder"}, {"cell", {{"servers", servers}}}, {"variant", "a"}};
    row["summary"] = {{"overloaded", false}, {"metrics", {{"ttft_ms.p90", {{"mean", 1}}}}}};
    for (const int rate : {5, 10})
      row["stages"].push_back({{"name", std::to_string(rate)},
                               {"requested_rate", rate},
                               {"reported", true},
                               {"overloaded", false},
                               {"metrics", {{"ttft_ms.p90", {{"mean", 100 * rate / servers}}}}}});
    text += row.dump() + "\n";
  }
  const PageData data = read(text, {"ttft_ms.p90 < 300"});
  const SweepCells cells = cells_under(text, "ttft_ms.p90 < 300");
  const SweepGoals goals(cells);
  EXPECT_EQ(cells.rows.size(), 4U);
  EXPECT_EQ(goals.smallest_fleet(goals.panels()[0], "a", "10"), 1U);
  EXPECT_EQ(headline_of(render_page(data)),
            "At stage rate 10 the goals hold with 4 servers behind a.");
  // A name with the letters of a rate is none.
  for (std::size_t at = 0; (at = text.find("\"servers\"", at)) != std::string::npos;)
    text.replace(at, 9, "\"load.generated_tokens\"");
  EXPECT_EQ(cells_under(text, "ttft_ms.p90 < 300").rows.size(), 4U);
  for (std::size_t at = 0; (at = text.find("generated_tokens", at)) != std::string::npos;)
    text.replace(at, 16, "request_rate");
  EXPECT_EQ(cells_under(text, "ttft_ms.p90 < 300").rows.size(), 2U);
}

TEST(SweepPage, RefusesGoalsOnMetricsItDoesNotHave) {
  Diagnostics diagnostics;
  (void)read_results({{"s.jsonl", sweep_lines()}}, diagnostics, {"itl_ms.p99 < 3", "ttft_ms.p90"});
  const std::string said = messages_of(diagnostics);
  EXPECT_NE(said.find("s.jsonl:1:1: error: has no itl_ms.p99, which --goal needs"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("must be METRIC < NUMBER"), std::string::npos) << said;
}

TEST(SweepPage, RefusesGoalsOfTheFileAtTheirPlaces) {
  std::string text = sweep_lines();
  text.insert(1,
              "\n\"goals\": [\"ttft_ms.p90 < 300\", \"ttft_ms.p90 = 3\",\n \"tpot_ms.p99 < 9\"],");
  text = "{\"sweep_rows\": [" + text.substr(0, text.find("}\n")) + "}]}\n";
  Diagnostics diagnostics;
  (void)read_results({{"s.json", text}}, diagnostics);
  EXPECT_EQ(messages_of(diagnostics),
            "s.json:2:32: error: must be METRIC < NUMBER or METRIC > NUMBER (got ttft_ms.p90 = 3)\n"
            "  hint: for example ttft_ms.p99 < 500 or output_tokens_per_s > 8000\n"
            "s.json:3:2: error: has no tpot_ms.p99, which a goal needs\n"
            "  hint: its metrics are ttft_ms.p90\n");
}

Scatter points(const std::vector<std::pair<double, double>>& list) {
  Scatter s;
  for (const auto& [x, y] : list) s.points.push_back({.x = x, .y = y});
  return s;
}

TEST(Front, HasWhatNothingBeatsInBoth) {
  Scatter s = points({{1, 9}, {2, 4}, {2, 5}, {3, 4}, {4, 1}, {5, 2}});
  EXPECT_EQ(pareto_front(s), (std::vector<std::size_t>{0, 1, 4}));
  s.less_y = false;  // Cheap and large: the largest y of each price that beats all cheaper ones.
  EXPECT_EQ(pareto_front(s), (std::vector<std::size_t>{0}));
  s.less_x = false;
  EXPECT_EQ(pareto_front(s), (std::vector<std::size_t>{5, 3, 2, 0}));
  s.points[3].may_lead = false;
  EXPECT_EQ(pareto_front(s), (std::vector<std::size_t>{5, 2, 0}));
}

json fleet(int replicas, double price, double ttft, const std::string& verdict) {
  json f = {
      {"hardware", "H100"},      {"policy", "precise"},      {"replicas", {{"vllm", replicas}}},
      {"price_per_hour", price}, {"verdict", verdict},       {"runs", 3},
      {"ttft_s.p90", ttft},      {"tpot_s.p90", ttft / 100}, {"goals", {1000 * ttft, nullptr}}};
  if (verdict != "meets")
    f["worst"] = {{"goal", "ttft_ms.p99 < 500"},
                  {"name", "ttft_ms.p99"},
                  {"bound", 500},
                  {"mean", 1000 * ttft}};
  return f;
}

TEST(PlanPage, SaysWhatIsToSpareAndWhatMissedByHowMuch) {
  const json plan = {
      {"plan", "p"},
      {"goals", {"ttft_ms.p99 < 500", "ttft_ms.p90 < 450"}},
      {"planned_rate", 10},
      {"plans",
       {{{"hardware", "H100"},
         {"policy", "precise"},
         {"replicas", {{"vllm", 2}}},
         {"price_per_hour", 9.2},
         {"goals",
          {{{"goal", "ttft_ms.p99 < 500"},
            {"name", "ttft_ms.p99"},
            {"bound", 500},
            {"verdict", "meets"},
            {"mean", 412},
            {"half_width", 20}},
           {{"goal", "output_tokens_per_s > 6000"},
            {"name", "output_tokens_per_s"},
            {"bound", 6000},
            {"verdict", "meets"},
            {"mean", 6600}}}}}}},
      {"families", json::array()},
      {"evaluated",
       {fleet(1, 4.6, 2.0, "misses"), fleet(2, 9.2, 0.4, "meets"), fleet(4, 18.4, 0.41, "meets")}}};
  const std::string page = page_of_text(plan.dump());
  EXPECT_NE(page.find("TTFT p99 412\u00a0ms of at most 500\u00a0ms: 17.6\u00a0% to spare"),
            std::string::npos);
  EXPECT_NE(page.find("output tokens/s 6600\u00a0tok/s of at least 6000\u00a0tok/s: 10\u00a0% to "
                      "spare"),
            std::string::npos);
  EXPECT_TRUE(has_picture(page));
  EXPECT_NE(page.find("$9.2 an hour meets the goals, spares left out, with TTFT p99 400\u00a0ms"),
            std::string::npos);
  EXPECT_NE(page.find("2 of 3 are on the front"), std::string::npos);
  EXPECT_EQ(page.find("TPOT p90"), std::string::npos) << "no goal is on it";
  EXPECT_NE(page.find("hardware</td><td>H100</td>"), std::string::npos) << "a fleet is a column";
  EXPECT_NE(page.find("missed by 300\u00a0%"), std::string::npos) << "2000 ms of 500 ms";
  expect_cells_are_data(page, 5);
}

TEST(PlanPage, ABoundOfZeroIsNoNearMiss) {
  json failing = fleet(1, 4.6, 2.0, "misses"), slow = fleet(12, 55, 2.0, "misses");
  failing["worst"] = {
      {"goal", "failure_rate <= 0"}, {"name", "failure_rate"}, {"bound", 0}, {"mean", 0.324}};
  slow["worst"] = {
      {"goal", "itl_ms.mean < 14"}, {"name", "itl_ms.mean"}, {"bound", 14}, {"mean", 22.7}};
  const json plan = {{"plan", "p"},
                     {"goals", {"itl_ms.mean < 14"}},
                     {"plans", json::array()},
                     {"families", json::array()},
                     {"evaluated", {failing, slow}}};
  const std::string page = page_of_text(plan.dump());
  const std::size_t table = page.find("The nearest misses");
  ASSERT_NE(table, std::string::npos);
  EXPECT_NE(page.find("12 vllm", table), std::string::npos) << "1.6 times its bound";
  EXPECT_EQ(page.substr(table, 700).find(">1 vllm"), std::string::npos);
  const json alone = {{"plan", "p"},
                      {"goals", json::array()},
                      {"plans", json::array()},
                      {"families", json::array()},
                      {"evaluated", {failing}}};
  EXPECT_EQ(page_of_text(alone.dump()).find("<td></td></tr>"), std::string::npos)
      << "it says by how much";
}

/// A plan whose numbers all differ.
constexpr char kFullPlan[] = R"({
  "plan": "p", "version": "1", "met": true, "rests_on": "fitted step times",
  "robustness": "It holds.", "rate_today": 10, "growth": 0.5, "planned_rate": 15,
  "confidence": 0.9, "goals": ["ttft_ms.p99 < 500"],
  "plans": [{
    "hardware": "H100 tp2", "policy": "precise", "replicas": {"prefill": 1, "decode": 2},
    "gpus": 6, "price_per_hour": 15.5, "step_times": "roofline",
    "validation": [{"quantity": "TTFT mean", "published_numbers": 7,
                    "mean_absolute_error_percent": 3.25, "worst_error_percent": -9.5}],
    "step_time_band": {"fraction": 0.1, "longer": {"replicas": {"decode": 3},
                       "price_per_hour": 20.25}, "shorter": null},
    "price_per_million_output_tokens": 1.125, "output_tokens_per_s": 3000,
    "knee_requests_per_s": 17.25, "knee_fails_at": 18.5, "utilisation": 0.87,
    "spare_replicas_today": 4,
    "binding": {"resource": "KV blocks", "goal": "ttft_ms.p99", "missed_by": 1.75,
                "missed_by_with_double": 0.625},
    "goals": [{"goal": "ttft_ms.p99 < 500", "name": "ttft_ms.p99", "bound": 500,
               "verdict": "meets", "mean": 412.5, "half_width": 20.5}],
    "host_memory": {"gib": 40, "same_fleet_without": {"output_tokens_per_s": 2900,
                    "request_latency_s": 9, "goals": [{"goal": "ttft_ms.p99 < 500",
                    "name": "ttft_ms.p99", "bound": 500, "verdict": "misses", "mean": 712.5}]},
                    "fleet_without": {"replicas": {"decode": 5}, "price_per_hour": 30.75}}}],
  "families": [{"hardware": "H100 tp2", "policy": "precise", "method": "scan", "sizes": 64,
                "sizes_tried": 9, "replicas": {"decode": 2}, "price_per_hour": 14.5}],
  "evaluated": [{"hardware": "H100 tp2", "policy": "precise", "replicas": {"decode": 1},
                 "price_per_hour": 5.5, "verdict": "misses",
                 "worst": {"goal": "ttft_ms.p99 < 500", "name": "ttft_ms.p99", "bound": 500,
                           "mean": 1250, "shortfall": 2.5}}],
  "runs": 321})";

PlanRecord full_plan() {
  Diagnostics diagnostics;
  PlanRecord plan = read_record<PlanRecord>(*json_tree(kFullPlan, {}), diagnostics);
  EXPECT_EQ(messages_of(diagnostics), "");
  return plan;
}

TEST(PlanText, HasEveryNumberOfTheRecord) {
  const std::string text = plain_spaces(draw(plan_document(full_plan()), "table", 10'000));
  for (const char* line :
       {"is 1 prefill + 2 decode of H100 tp2, precise, $15.50 an hour and $1.12 per million output",
        "  TTFT p99 412 ms of at most 500 ms: 17.5 % to spare\n",
        "TTFT mean 3.2 % (7, worst -9.5 %).\n",
        "Planned for 15 req/s (10 req/s today, 50 % growth). Goals, each with 90 % ",
        "  roofline       6  15.50       17.25  87 %            4       KV blocks\n",
        "15.50   11,315  135,780        - to 20.25        1.12\n",
        "It costs $11,315 a month and $135,780 a year. At today's rate it holds without any 4 "
        "replicas of one pool.\n",
        "Nearest of what costs less: 1 decode of H100 tp2, precise at $5.50/h, with ttft_ms.p99 "
        "1250 (goal ttft_ms.p99 < 500).\n",
        "KV blocks bind: at 18.50 req/s ttft_ms.p99 misses by a factor of 1.750, with twice as "
        "much "
        "by 0.625, which meets it.\n",
        "40 GiB of host memory per engine: without it the same fleet has ttft_ms.p99 712.5, 2900 "
        "output tokens/s instead of 3000; the goals take 5 decode at $30.75/h without it, $15.50/h "
        "with it.\n",
        "ttft_ms.p99 < 500              412.5 ±20.50, 17.5 % to spare",
        "1 decode of H100 tp2, precise  5.50  ttft_ms.p99 < 500   1250  missed by 150 %",
        "14.50            9            64  splits in the order of their price",
        "The search took 321 runs.\n", "The 90 % confidence covers chance between runs"})
    EXPECT_NE(text.find(line), std::string::npos) << line << " in\n" << text;
}

TEST(PlanText, NamesTheNearestMissHoweverFar) {
  PlanRecord plan = full_plan();
  plan.plans.clear();
  plan.evaluated.front().worst->shortfall.reset();  // Without end: null in the file.
  EXPECT_NE(
      draw(plan_document(plan), "table", 10'000)
          .find("  Nearest: 1 decode of H100 tp2, precise at $5.50/h, with ttft_ms.p99 1250 (goal "
                "ttft_ms.p99 < 500).\n"),
      std::string::npos);
}

json error_row(const std::string& policy, double mape) {
  return {{"policy", policy},       {"metric", "ttft"},
          {"statistic", "p90"},     {"cells", 2},
          {"mape_percent", mape},   {"bias_percent", -mape},
          {"worst_percent", -mape}, {"worst_stage", "2"},
          {"limit_percent", 10}};
}

/// A published number of TTFT p90 and the simulated one.
json published_cell(const std::string& stage, double measured, double simulated) {
  return json{{"experiment", "e"},
              {"policy", "p"},
              {"variant", "v"},
              {"stage", stage},
              {"metric", "ttft"},
              {"statistic", "p90"},
              {"unit", "ms"},
              {"rate", stage},
              {"measured", measured},
              {"simulated", simulated},
              {"samples", {simulated}},
              {"seed_sd", 0},
              {"error_percent", 100 * (simulated - measured) / measured},
              {"status", "scored"}};
}

TEST(ValidationPage, SaysTheErrorsByClassAndSortsThem) {
  const json all = {{"version", "1"},
                    {"by_class",
                     {{{"held_out", false},
                       {"step_times", "fitted"},
                       {"quantity", "TTFT mean"},
                       {"published_numbers", 2},
                       {"mean_absolute_error_percent", 2.5},
                       {"worst_error_percent", -5}},
                      {{"held_out", true},
                       {"step_times", "roofline"},
                       {"quantity", "TTFT mean"},
                       {"published_numbers", 3},
                       {"mean_absolute_error_percent", 20},
                       {"worst_error_percent", 40}}}},
                    {"scenarios",
                     {{{"scenario", "ladder"},
                       {"held_out", false},
                       {"cells", {published_cell("5", 100, 105), published_cell("10", 200, 180)}},
                       {"errors", {error_row("small", 2), error_row("large", 12)}},
                       {"notes", json::array()}},
                      {{"scenario", "unseen"},
                       {"held_out", true},
                       {"cells", json::array()},
                       {"errors", {error_row("other", 20)}},
                       {"notes", json::array()}}}}};
  const std::string page = page_of_text(all.dump());
  EXPECT_EQ(headline_of(page), "Mean error with fitted step times: TTFT mean 2.5\u00a0% (2).");
  EXPECT_NE(page.find("held out, step times of a roofline: TTFT mean 20.0\u00a0% (3)"),
            std::string::npos);
  EXPECT_NE(page.find("2 of 3 mean errors exceed their limit."), std::string::npos);
  EXPECT_NE(page.find("TTFT p90: 7.5 % off on average"), std::string::npos) << "5 % and 10 %";
  const std::size_t table = page.find("Experiments that curves were fitted to: errors");
  ASSERT_NE(table, std::string::npos);
  EXPECT_LT(page.find(">large<", table), page.find(">small<", table));
  EXPECT_LT(page.find(">unseen (held out)<"), table);
  EXPECT_NE(page.find("the others did, so"), std::string::npos);
  json own = all;
  own["scenarios"] = {all["scenarios"][0]};
  own["scenarios"][0]["own_measurements"] = true;
  const std::string mine = page_of_text(own.dump());
  EXPECT_NE(mine.find("Your own measurements, not fitted: errors"), std::string::npos);
  EXPECT_EQ(mine.find("fitted to:"), std::string::npos);
  EXPECT_EQ(mine.find("the others did, so"), std::string::npos);
  expect_cells_are_data(page, 15);
}

TEST(TunePage, ShowsGainsAndGivesTheFile) {
  const json tuned = {
      {"tune", "t"},
      {"scenario", "s"},
      {"variant", "precise"},
      {"goals", {"minimise ttft_ms.p90"}},
      {"verdict", {{"headline", "The best configuration is better."}, {"decision", "better"}}},
      {"search_runs", 90},
      {"judgement_runs", 30},
      {"fresh_seeds", {10001, 10002}},
      {"knobs",
       {{{"name", "queue weight"},
         {"published", "1"},
         {"best", "3"},
         {"range", {"1", "2", "3"}},
         {"worth", {{{"metric", "ttft_ms.p90"}, {"percent", 4}, {"low", 3}, {"high", 5}}}}}}},
      {"race",
       {{{"round", 1}, {"candidates", 8}, {"left", 4}},
        {{"round", 2}, {"candidates", 4}, {"left", 1}}}},
      {"candidates",
       {{{"id", 0},
         {"values", {{"queue weight", "1"}}},
         {"metrics", {{"ttft_ms.p90", 250}}},
         {"seeds", 6},
         {"dropped", nullptr}}}},
      {"judged",
       {{{"load", "as given"},
         {"metric", "ttft_ms.p90"},
         {"published", 250},
         {"candidate", 230},
         {"omniscient", nullptr},
         {"gain", {{"percent", 8}, {"low", 5}, {"high", 11}}}}}},
      {"front", json::array()},
      {"epp", "kind: EndpointPickerConfig\n"},
      {"flags", "--max-num-seqs 256\n"},
      {"notes", {"small GPUs: #1 cannot run: it does not fit."}},
      {"command", "routesim run s.yaml --set a=b"},
      {"command_document", "t.yaml"}};
  const std::string page = page_of_text(tuned.dump());
  EXPECT_EQ(headline_of(page), "The best configuration is better.");
  EXPECT_TRUE(has_picture(page));
  EXPECT_NE(page.find("TTFT p90 gains +8.0 % [+5.0, +11.0] with "), std::string::npos);
  EXPECT_NE(page.find("+8.0 % [+5.0, +11.0]"), std::string::npos);
  EXPECT_NE(page.find("href=\"data:text/plain;charset=utf-8,kind%3A%20EndpointPickerConfig%0A\""),
            std::string::npos);
  EXPECT_NE(page.find("<pre tabindex=\"0\">kind: EndpointPickerConfig\n</pre>"), std::string::npos);
  EXPECT_NE(page.find(">small GPUs: #1 cannot run: it does not fit.<"), std::string::npos);
  EXPECT_NE(page.find("with its document from -o epp=t.yaml:</p>"), std::string::npos);
  EXPECT_NE(page.find(">routesim run s.yaml --set a=b</pre>"), std::string::npos);
  expect_cells_are_data(page, 5);
}

// Candidate 3 left the race after few seeds, and 4 is compared on other seeds than the front.
TEST(TunePage, TheFrontIsOfThoseThatFinished) {
  const auto candidate = [](int id, double ttft, double rate, const json& dropped) {
    return json{{"id", id},
                {"metrics", {{"ttft_ms.p90", ttft}, {"output_tokens_per_s", rate}}},
                {"dropped", dropped}};
  };
  const auto member = [](int id, double ttft, double rate) {
    return json{{"id", id},
                {"metrics",
                 {{"ttft_ms.p90", {{"mean", ttft}}}, {"output_tokens_per_s", {{"mean", rate}}}}}};
  };
  const json tuned = {{"tune", "t"},
                      {"best", 0},
                      {"candidate", 1},
                      {"judged",
                       {{{"load", "as given"},
                         {"metric", "ttft_ms.p90"},
                         {"published", 250},
                         {"candidate", 200},
                         {"gain", {{"percent", 20}, {"low", 15}, {"high", 25}}}}}},
                      {"candidates",
                       {candidate(0, 250, 90, nullptr), candidate(1, 200, 80, nullptr),
                        candidate(3, 10, 900, "worse than #1"), candidate(4, 20, 800, nullptr)}},
                      {"front", {member(0, 250, 90), member(1, 200, 80)}}};
  const std::string page = page_of_text(tuned.dump());
  EXPECT_NE(page.find("output tokens/s 90\u00a0tok/s at TTFT p90 250\u00a0ms, or 80\u00a0tok/s at "
                      "200\u00a0ms"),
            std::string::npos);
  EXPECT_EQ(page.find("data-row=\"candidate 3"), std::string::npos);
  EXPECT_NE(page.find("data-row=\"candidate 4"), std::string::npos);
  const std::size_t front = page.rfind("<path class=\"front\"");  // The first is in the legend.
  ASSERT_NE(front, std::string::npos);
  const std::string path = page.substr(front, page.find("/>", front) - front);
  EXPECT_EQ(std::ranges::count(path, 'H'), 1) << "two points: " << path;
  EXPECT_NE(page.find("<th>candidate 1</th>"), std::string::npos) << "it is not the best one";
}

TEST(MetricView, KnowsTitlesUnitsAndDirections) {
  EXPECT_EQ(metric_view("ttft_ms.p90").title, "TTFT p90");
  EXPECT_EQ(metric_view("ttft_ms.p90").scale, 1e-3);
  EXPECT_EQ(metric_view("itl_s.mean").title, "mean ITL");
  EXPECT_EQ(metric_view("output_tokens_per_s").title, "output tokens/s");
  EXPECT_FALSE(metric_view("output_tokens_per_s").less_is_better);
  EXPECT_EQ(metric_view("prefix_cache_hit_rate").unit, Unit::kRatio);
  EXPECT_EQ(metric_view("nonsense").title, "nonsense");
}

}  // namespace
}  // namespace routesim::tools::study_pages
