// Pages of compare, sweep, plan, validate and tune in a real browser.
#include "tests/base/slurp.h"
#include "tests/pages/page_fixture.h"

namespace routesim::pages {
namespace {

/// A small chat service with this many variants, all but the first behind other balancers.
std::string service(std::size_t variants) {
  const std::vector<std::string> balancers = {
      "k8s-service", "round-robin", "prefix-hash",     "least-load",
      "random",      "omniscient",  "smg-cache-aware", "vllm-router-cache-aware"};
  std::string text =
      "name: chat\nquestion: Does it run?\nworkload:\n  inference_perf:\n"
      "    api: {streaming: true}\n    load: {type: constant, stages: [{rate: 9, duration: 3},\n"
      "      {rate: 5, duration: 6}, {rate: 20, duration: 6}, {rate: 300, duration: 9}]}\n"
      "    data: {type: shared_prefix, shared_prefix: {num_groups: 4, num_prompts_per_group: 5,\n"
      "      system_prompt_len: 2048, question_len: 64, output_len: 16}}\n"
      "  options: {warmup_stages: 1}\ncluster:\n  pools:\n"
      "  - {name: vllm, replicas: 2, accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2}\n"
      "variants:\n";
  for (std::size_t v = 0; v < variants; ++v)
    text += "- {name: with-" + balancers[v] + ", routing: {balancer: " + balancers[v] + "}}\n";
  return text;
}

class StudyPage : public Page {
 protected:
  static void compare(std::size_t variants, const std::string& flags) {
    write("chat.yaml", service(variants));
    routesim("run chat.yaml -q " + flags + " -o json=before.json");
    routesim("run chat.yaml -q " + flags +
             " --set cluster.pools[vllm].replicas=3 -o json=after.json");
    // A gate that the intervals do not decide ends with 4.
    routesim(
        "compare before.json after.json --fail-if 'ttft_ms.p90>+5%' -o html=change.html || [ $? = "
        "4 ]");
    expect_clean(file("change.html"));
  }
};

TEST_F(StudyPage, BeforeAndAfterOfTwoVariantsIsClean) { compare(2, "--replications 3"); }

TEST_F(StudyPage, BeforeAndAfterOfEightVariantsIsClean) { compare(8, ""); }

TEST_F(StudyPage, SweepOverRatesAndFleetsIsClean) {
  write("chat.yaml", service(2));
  write("grid.yaml",
        "name: grid\nscenario: chat.yaml\nreplications: 2\ngoals: [ttft_ms.p90 < 200]\n"
        "set: [\"workload.inference_perf.load.stages=[{rate: 9, duration: 3}, {rate: 5, duration: "
        "6}]\"]\naxes:\n"
        "- {name: rate, path: \"workload.inference_perf.load.stages[1].rate\", values: [5, 20, "
        "200]}\n"
        "- {name: servers, path: \"cluster.pools[vllm].replicas\", values: [1, 2, 4]}\n"
        "- {name: batch, path: \"cluster.pools[vllm].engine.max_num_seqs\", values: [16, 256]}\n"
        "metrics: [output_tokens_per_s, ttft_ms.mean]\n");
  routesim("sweep grid.yaml -q -o html=grid.html");
  expect_clean(file("grid.html"));
  // The script of the kit reads every map out.
  browser().open(file("grid.html"), 1400);
  EXPECT_GE(browser().evaluate("document.querySelectorAll('svg.rows[tabindex]').length"), 4);
}

TEST_F(StudyPage, SweepOverNamesAndOneOverRatesAreClean) {
  write("chat.yaml", service(1));
  write("names.yaml",
        "name: names\nscenario: chat.yaml\ngoals: [ttft_ms.mean < 300]\naxes:\n"
        "- {name: policy, path: routing, labels: [a rather long name of a policy, short],\n"
        "   values: [{balancer: random}, {balancer: prefix-hash}]}\nmetrics: [ttft_ms.mean]\n");
  routesim("sweep names.yaml -q -o html=names.html");
  expect_clean(file("names.html"));
  write("servers.yaml",
        "name: servers\nscenario: chat.yaml\naxes:\n"
        "- {name: servers, path: \"cluster.pools[vllm].replicas\", values: [1, 2, 3]}\n"
        "metrics: [ttft_ms.mean, output_tokens_per_s]\n");
  routesim("sweep servers.yaml -q -o jsonl=servers.jsonl");
  routesim("report servers.jsonl --goal 'ttft_ms.mean<300' -o servers.html");
  expect_clean(file("servers.html"));
}

TEST_F(StudyPage, PlanIsClean) {
  routesim("plan " + std::string(ROUTESIM_SOURCE_DIR) +
           "/docs/examples/plan.yaml -q -o html=plan.html");
  expect_clean(file("plan.html"));
  const std::string page = slurp(file("plan.html"));
  EXPECT_NE(page.find("are on the front"), std::string::npos);
  // A reader puts the GPUs across; more of them cost more, so that the order of the marks stays.
  browser().open(file("plan.html"), 1400);
  const std::string places =
      "[...document.querySelectorAll('#figure-1 [data-lead]')].map(m => "
      "+m.getAttribute('transform').match(/[-\\d.]+/)[0])";
  const std::vector<double> before = browser().evaluate(places);
  const std::string choose =
      "(at => { const list = document.querySelector('#figure-1 select'); list.selectedIndex = at < "
      "0 "
      "? list.length - 1 : at; list.dispatchEvent(new Event('change')); })";
  browser().evaluate(choose + "(-1), 0");
  const std::string title =
      "[...document.querySelectorAll('#figure-1 text.unit')].map(t => t.textContent)";
  EXPECT_EQ(browser().evaluate(title), nlohmann::json({"TTFT p90", "GPUs"}));
  const std::vector<double> after = browser().evaluate(places);
  ASSERT_EQ(after.size(), before.size());
  EXPECT_NE(after, before);
  // Two GPUs a server: places go from 0 with their number.
  const std::vector<double> gpus = browser().evaluate(
      "[...document.querySelectorAll('#figure-1 [data-lead]')].map(m => "
      "+m.dataset.lead.split(' ').at(-1))");
  for (std::size_t i = 1; i < after.size(); ++i)
    EXPECT_NEAR((after[i] - after[0]) * (gpus[1] - gpus[0]),
                (after[1] - after[0]) * (gpus[i] - gpus[0]), 0.01 * gpus[i] * 440);
  browser().evaluate(choose + "(0), 0");
  EXPECT_EQ(browser().evaluate(places).get<std::vector<double>>(), before) << "as it was";
  for (const std::string& complaint : browser().complaints()) ADD_FAILURE() << complaint;
}

TEST_F(StudyPage, TuningIsClean) {
  const std::string examples = std::string(ROUTESIM_SOURCE_DIR) + "/docs/examples/";
  routesim("tune " + examples + "question.yaml --variant prefix-aware --budget 40 " +
           "--fresh-seeds 5 -q -o html=tune.html -o epp=epp.yaml");
  expect_clean(file("tune.html"));
  EXPECT_NE(slurp(file("tune.html")).find("Nothing beats your file"), std::string::npos);
  routesim(
      "tune " + examples + "question.yaml --variant prefix-aware --budget 40 --fresh-seeds 5 " +
      "--goal 'minimise ttft_ms.p90' --goal 'maximise output_throughput' -q -o html=front.html");
  expect_clean(file("front.html"));
}

TEST_F(StudyPage, ValidationIsClean) {
  const std::string folder = std::string(ROUTESIM_SOURCE_DIR) + "/scenarios/";
  routesim("validate " + folder + "qwen2.5-7b-8xa10g-rates.yaml " + folder +
           "holdout/gpt-oss-120b-16xh100.yaml --seeds 1 -q -o html=errors.html");
  expect_clean(file("errors.html"));
  EXPECT_NE(slurp(file("errors.html")).find("(held out)"), std::string::npos);
}

}  // namespace
}  // namespace routesim::pages
