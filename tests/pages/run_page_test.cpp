// The page of a run in a real browser.
#include <set>
#include <sstream>

#include "tests/base/slurp.h"
#include "tests/pages/page_fixture.h"

namespace routesim::pages {
namespace {

using Json = nlohmann::json;

/// Servers under a warm-up and three rates; the last one is too much for two of them.
std::string scenario(const std::vector<std::string>& balancers, int replicas,
                     const std::string& expect = {}) {
  std::string text =
      "name: tiny\nquestion: Does it run?\nworkload:\n  inference_perf:\n"
      "    api: {streaming: true}\n    load: {type: constant, stages: [{rate: 9, duration: 3},\n"
      "      {rate: 5, duration: 6}, {rate: 20, duration: 6}, {rate: 300, duration: 12}]}\n"
      "    data: {type: shared_prefix, shared_prefix: {num_groups: 4, num_prompts_per_group: 5,\n"
      "      system_prompt_len: 2048, question_len: 64, output_len: 16}}\n"
      "  options: {warmup_stages: 1}\ncluster:\n  pools:\n  - {name: a, replicas: " +
      std::to_string(replicas) +
      ",\n     accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2}\nvariants:\n";
  for (const std::string& balancer : balancers)
    text += "- {name: with-" + balancer + ", routing: {balancer: " + balancer + "}}\n";
  return text + expect;
}

class RunPage : public Page {
 protected:
  static std::filesystem::path make(const std::string& name, const std::string& yaml,
                                    const std::string& flags = {}) {
    write(name + ".yaml", yaml);
    routesim("run " + name + ".yaml -q --output html=" + name + ".html --output json=" + name +
             ".json " + flags);
    return file(name + ".html");
  }

  /// The page of two variants, opened at a desk.
  void open_pair() {
    static const std::filesystem::path kPair =
        make("pair", scenario({"round-robin", "prefix-hash"}, 2), "--goodput ttft:1s");
    browser().open(kPair, 1400);
  }
  static Json eval(const std::string& expression) { return browser().evaluate(expression); }
  static std::string tip() {
    const Json text = eval(
        "(e => getComputedStyle(e).display === 'none' ? '' : e.innerText)"
        "(document.getElementById('tip'))");
    return text.is_string() ? text.get<std::string>() : "no tip";
  }
  static void expect_quiet() {
    for (const std::string& complaint : browser().complaints()) ADD_FAILURE() << complaint;
  }
};

const std::vector<std::string> kEight = {
    "k8s-service", "round-robin", "random",          "least-load",
    "prefix-hash", "omniscient",  "smg-cache-aware", "vllm-router-cache-aware"};

TEST_F(RunPage, OfTwoVariantsIsClean) {
  expect_clean(make("two", scenario({"round-robin", "prefix-hash"}, 2), "--goodput ttft:1s"));
}

TEST_F(RunPage, OfOneVariantIsClean) { expect_clean(make("one", scenario({"random"}, 1))); }

TEST_F(RunPage, OfFourVariantsOnThirtyTwoServersIsClean) {
  const std::vector<std::string> four(kEight.begin(), kEight.begin() + 4);
  expect_clean(make("four", scenario(four, 32)));
}

TEST_F(RunPage, OfEightVariantsWithExpectationsIsClean) {
  expect_clean(
      make("eight", scenario(kEight, 8, "expect:\n- ttft_ms.p90 < 1\n- ttft_ms.p90 < 500000\n")));
}

TEST_F(RunPage, OfReplicationsIsClean) {
  expect_clean(make("five", scenario({"random", "prefix-hash"}, 4), "--replications 5"));
}

TEST_F(RunPage, TwoResultsOnOnePageAreClean) {
  make("before", scenario({"random", "prefix-hash"}, 2));
  make("after", scenario({"random", "prefix-hash"}, 3));
  routesim("report before.json after.json -o both.html");
  expect_clean(file("both.html"));
}

TEST_F(RunPage, VerdictComesFirstAndEveryColumnNamesTheBase) {
  for (const std::size_t n : {2U, 4U, 8U}) {
    const std::string name = "of" + std::to_string(n);
    const std::vector<std::string> some(kEight.begin(), kEight.begin() + static_cast<long>(n));
    make(name, scenario(some, 4, "expect:\n- ttft_ms.p90 < 1\n"));
    browser().open(file(name + ".html"), 1400);
    const Json data = Json::parse(slurp(file(name + ".json")));
    const std::string headline =
        eval("document.querySelector('.verdict p.big').textContent").get<std::string>();
    EXPECT_NE(headline.find("the base with-k8s-service"), std::string::npos) << headline;
    if (n > 2) {
      EXPECT_NE(headline.find(" among " + std::to_string(n)), std::string::npos) << headline;
    }
    // No variant surely sustains more than the one that the sentence begins with. Where that one
    // holds every stage it is, up to 1 %, the fastest of those that do.
    double fastest = 1e300, first = 0, most = 0, surely = 0;
    for (const Json& v : data["variants"]) {
      const double mean = v["summary"]["successes"]["latency"]["request_latency"]["mean"];
      const bool holds = std::none_of(v["stages"].begin(), v["stages"].end(), [](const Json& s) {
        return s["reported"] == true && s["overloaded"] == true;
      });
      if (holds) fastest = std::min(fastest, mean);
      const std::string name_of = v["name"];
      if (headline.starts_with(name_of + " ") || headline.starts_with(name_of + ",")) {
        first = holds ? mean : -1;
        most = v["capacity"]["high"];
      }
      surely = std::max(surely, v["capacity"]["low"].get<double>());
    }
    EXPECT_NE(first, 0) << headline;
    EXPECT_GE(most, surely) << headline;
    EXPECT_LE(first, 1.01 * fastest) << headline;
    EXPECT_EQ(eval("[...document.querySelector('#key-numbers-of-the-whole-run ~ .scroll thead')"
                   ".querySelectorAll('th')].filter(h => h.textContent.includes("
                   "'change against with-k8s-service')).length"),
              n - 1);
    // What fails stands above all.
    EXPECT_TRUE(eval("document.querySelector('.verdict').firstElementChild.matches('.failed')"));
    const auto failing = std::count_if(data["expectations"].begin(), data["expectations"].end(),
                                       [](const Json& e) { return e["decision"] == "fails"; });
    ASSERT_GT(failing, 1);
    EXPECT_EQ(eval("document.querySelector('.failed strong').textContent"),
              std::to_string(failing) + " of " + std::to_string(n) + " expectations fail");
  }
}

TEST_F(RunPage, FollowsTheTheme) {
  open_pair();
  const std::string background = "getComputedStyle(document.body).backgroundColor";
  const Json light = eval(background);
  browser().open(file("pair.html"), 1400, true);
  EXPECT_NE(eval(background), light);
}

TEST_F(RunPage, ReadsWithoutItsScript) {
  open_pair();
  std::string page = slurp(file("pair.html"));
  page.erase(page.rfind("<script>"), page.rfind("</script>") + 9 - page.rfind("<script>"));
  browser().open(write("plain.html", page), 1400);
  EXPECT_GT(eval("document.querySelectorAll('figure svg title').length"), 10)
      << "the browser's own tooltips";
  EXPECT_EQ(eval("document.querySelectorAll('button').length"), 0);
  EXPECT_GT(eval("document.querySelectorAll('nav.contents a').length"), 3);
  expect_quiet();
}

TEST_F(RunPage, ShowsValuesUnderThePointerInEveryFigure) {
  open_pair();
  const int figures = eval("document.querySelectorAll('figure > svg').length");
  ASSERT_GE(figures, 10);
  for (int i = 0; i < figures; ++i) {
    // A place in the middle of the first thing that is drawn.
    const Json at = eval(
        "(svg => { svg.scrollIntoView({block: 'center'}); const b = (svg.querySelector("
        "'.series .mark, .series .line, rect.bar, .mark, path[fill], rect.cell') || svg)"
        ".getBoundingClientRect(); return [b.x + Math.min(b.width / 2, 8), b.y + b.height / 2]; })"
        "(document.querySelectorAll('figure > svg')[" +
        std::to_string(i) + "])");
    browser().settle();
    browser().move(at[0], at[1]);
    const std::string said = tip();
    EXPECT_NE(said.find_first_of("0123456789"), std::string::npos)
        << "figure " << i << " says \"" << said << "\"";
    browser().move(2, 2);
    EXPECT_EQ(tip(), "") << "figure " << i;
  }
  expect_quiet();
}

TEST_F(RunPage, TipsNameEverySeriesWithTheNumberOfTheData) {
  open_pair();
  // The second point of the first curve: 20 requests/s.
  eval("window.p = document.querySelector('#figure-2 .series').querySelectorAll('.mark')[1], 0");
  eval("p.scrollIntoView({block: 'center'}), 0");
  browser().settle();
  const Json at = eval("(b => [b.x + b.width / 2, b.y + b.height / 2])(p.getBoundingClientRect())");
  browser().move(at[0], at[1]);
  const Json data = Json::parse(slurp(file("pair.json")));
  const double throughput =
      data["variants"][0]["stages"][2]["successes"]["throughput"]["output_tokens_per_sec"];
  EXPECT_NE(tip().find("requests/s asked for: 20"), std::string::npos) << tip();
  EXPECT_NE(tip().find("with-round-robin\t" + std::to_string(std::lround(throughput))),
            std::string::npos)
      << tip() << " is not " << throughput;
  EXPECT_NE(tip().find("with-prefix-hash\t"), std::string::npos) << tip();
}

TEST_F(RunPage, WarmUpStaysOutOfCurvesAndOverloadFadesThem) {
  open_pair();
  const Json data = Json::parse(slurp(file("pair.json")));
  ASSERT_EQ(data["variants"][0]["stages"][0]["reported"], false);
  ASSERT_EQ(data["variants"][0]["stages"][3]["overloaded"], true);
  EXPECT_EQ(eval("document.querySelector('#figure-2 .series').dataset.points.split(';')"
                 ".map(p => p.split(' ')[0] + (p.endsWith('!') ? '!' : ''))"),
            Json({"5", "20", "300!"}));
  EXPECT_EQ(eval("document.querySelectorAll('#figure-2 .series[data-name=with-round-robin] "
                 ".mark.past').length"),
            1);
  EXPECT_LT(eval("+getComputedStyle(document.querySelector('#figure-2 .series "
                 ".line.past')).strokeOpacity"),
            1);
  EXPECT_NE(eval("document.querySelector('#figure-2 .legend').textContent")
                .get<std::string>()
                .find("faded: overloaded"),
            std::string::npos);
  EXPECT_NE(eval("[...document.querySelectorAll('td')].map(c => c.textContent).join('|')")
                .get<std::string>()
                .find("(warm-up)"),
            std::string::npos)
      << "tables have it, marked";
}

TEST_F(RunPage, LegendsHideASeriesInEveryFigure) {
  open_pair();
  const std::string shown =
      "[...document.querySelectorAll('.series[data-name=\"with-prefix-hash\"]')].filter(g => "
      "getComputedStyle(g).display !== 'none').length";
  const int before = eval(shown);
  EXPECT_GT(before, 4);
  browser().click("#figure-2 .legend li:nth-child(2) button");
  EXPECT_EQ(eval(shown), 0);
  EXPECT_EQ(eval("document.querySelector('#figure-3 .legend li:nth-child(2) button')"
                 ".getAttribute('aria-pressed')"),
            "false");
  browser().click("#figure-3 .legend li:nth-child(2) button");
  EXPECT_EQ(eval(shown), before);
  expect_quiet();
}

TEST_F(RunPage, ZoomsByDragByButtonAndByKeyAndResets) {
  open_pair();
  const std::string path = "document.querySelector('#figure-2 .series .line').getAttribute('d')";
  const std::string ticks = "document.querySelector('#figure-2 .ticks').textContent";
  const Json whole = eval(path), first_ticks = eval(ticks);
  browser().middle("#figure-2 > svg");
  const Json box = eval(
      "(b => [b.x, b.y, b.width, b.height])"
      "(document.querySelector('#figure-2 > svg').getBoundingClientRect())");
  const double x = box[0], y = box[1], w = box[2], h = box[3];
  browser().drag(x + w * 0.2, y + h / 2, x + w * 0.4, y + h / 2);
  EXPECT_NE(eval(path), whole) << "drag";
  EXPECT_NE(eval(ticks), first_ticks);
  const std::string reset = "#figure-2 .tools button:nth-child(3)";
  browser().click(reset);
  EXPECT_EQ(eval(path), whole) << "reset";
  EXPECT_EQ(eval(ticks), first_ticks);
  browser().click("#figure-2 .tools button:nth-child(1)");
  EXPECT_NE(eval(path), whole) << "button";
  eval("document.querySelector('#figure-2 > svg').focus(), 0");
  browser().key("0");
  EXPECT_EQ(eval(path), whole) << "key";
  browser().key("+");
  EXPECT_NE(eval(path), whole) << "key";
  expect_quiet();
}

TEST_F(RunPage, KeysReachEverythingAndReadTheNumbers) {
  open_pair();
  eval("document.querySelectorAll('details').forEach(d => { d.open = true; }), 0");
  const int controls = eval(
      "window.want = [...document.querySelectorAll('a[href], button, input, summary, svg.live')]"
      ".filter(e => e.checkVisibility() && !e.closest('dialog')), want.length");
  ASSERT_GT(controls, 60);
  eval("window.reached = new Set(), addEventListener('focusin', e => reached.add(e.target)), 0");
  for (int i = 0; i < controls + 20; ++i) browser().key("Tab");
  EXPECT_EQ(eval("want.filter(e => !reached.has(e)).map(e => e.outerHTML.slice(0, 120))"),
            Json::array());
  eval("document.querySelector('#figure-2 > svg').focus(), 0");
  browser().settle();
  browser().key("ArrowRight");
  EXPECT_NE(tip().find("requests/s asked for: 5"), std::string::npos) << tip();
  browser().key("ArrowRight");
  EXPECT_NE(tip().find("requests/s asked for: 20"), std::string::npos) << tip();
  browser().key("Escape");
  EXPECT_EQ(tip(), "");
}

TEST_F(RunPage, EnlargesAFigureAndPutsItBack) {
  open_pair();
  const std::string width = "document.querySelector('#figure-4').getBoundingClientRect().width";
  const double before = eval(width);
  browser().click("#figure-4 .tools button:nth-child(4)");
  EXPECT_GT(eval(width), 1.5 * before);
  browser().key("Escape");
  browser().settle();
  EXPECT_EQ(eval("document.querySelectorAll('dialog').length"), 0);
  EXPECT_NEAR(eval(width), before, 1);
  EXPECT_EQ(eval("document.querySelector('#figure-3').nextElementSibling.id"), "figure-4");
  expect_quiet();
}

/// Clicks a download button and gives the text of the file.
std::string downloaded(Browser& browser, const std::string& selector) {
  browser.evaluate(
      "window.saved = null, window.make = window.make || URL.createObjectURL,"
      "URL.createObjectURL = b => { window.saved = b.text(); return make.call(URL, b); }, 0");
  browser.click(selector);
  const Json text = browser.evaluate("window.saved");
  return text.is_string() ? text.get<std::string>() : "nothing";
}

TEST_F(RunPage, DownloadsTheNumbersOfTheDataBlock) {
  open_pair();
  const Json data = Json::parse(slurp(file("pair.json")));
  // The table of key numbers: every number is the one its cell points at.
  const Json table = Json::parse(downloaded(browser(),
                                            "#key-numbers-of-the-whole-run ~ .tools "
                                            "button:last-child"));
  const Json paths = eval(
      "[...document.querySelector('#key-numbers-of-the-whole-run ~ .scroll table').tBodies[0].rows]"
      ".map(r => [...r.cells].map(c => c.dataset.path || ''))");
  ASSERT_EQ(table.size(), paths.size());
  int numbers = 0;
  for (std::size_t r = 0; r < table.size(); ++r)
    for (const auto& [column, value] : table[r].items()) {
      if (!value.is_number()) continue;
      const std::string variant = column;
      const std::size_t at = variant == "with-round-robin" ? 1 : 2;
      const std::string path = paths[r][at];
      EXPECT_EQ(data.at(Json::json_pointer(path)).get<double>(), value.get<double>()) << path;
      ++numbers;
    }
  EXPECT_GT(numbers, 20);
  // A curve, as CSV.
  std::istringstream csv(downloaded(browser(), "#figure-2 .tools button:nth-last-child(2)"));
  std::string line;
  std::getline(csv, line);
  EXPECT_EQ(line, "series,requests/s asked for,\"output, tokens/s\",low,high,overloaded\r");
  std::getline(csv, line);
  const double first =
      data["variants"][0]["stages"][1]["successes"]["throughput"]["output_tokens_per_sec"];
  std::ostringstream expected;
  EXPECT_EQ(line, "with-round-robin,5," + Json(first).dump() + ",,,no\r");
  expect_quiet();
}

TEST_F(RunPage, SortsAndFiltersTables) {
  open_pair();
  eval("document.querySelectorAll('details').forEach(d => { d.open = true; }), 0");
  // The table of servers: requests of each, downwards and upwards.
  eval(
      "window.t = [...document.querySelectorAll('table')].find(t => "
      "t.tHead.textContent.includes('KV use, mean')), t.id = 'servers', 0");
  const std::string column =
      "[...t.tBodies[0].rows].filter(r => !r.hidden).map(r => +r.cells[2].dataset.value)";
  const std::vector<double> before = eval(column);
  ASSERT_EQ(before.size(), 4U);
  browser().click("#servers th:nth-child(3) button");
  const std::vector<double> up = eval(column);
  EXPECT_TRUE(std::is_sorted(up.begin(), up.end()));
  browser().click("#servers th:nth-child(3) button");
  const std::vector<double> down = eval(column);
  EXPECT_TRUE(std::is_sorted(down.rbegin(), down.rend()));
  EXPECT_EQ(eval("t.tHead.rows[0].cells[2].getAttribute('aria-sort')"), "descending");
  browser().click("#servers th:nth-child(3) button");
  EXPECT_EQ(eval(column).get<std::vector<double>>(), before) << "as it was";
  // The table of key numbers by a word.
  browser().click("#key-numbers-of-the-whole-run ~ .tools input");
  for (const char* letter : {"f", "i", "r", "s", "t"}) browser().key(letter);
  EXPECT_EQ(eval("[...document.querySelector('#key-numbers-of-the-whole-run ~ .scroll table')"
                 ".tBodies[0].rows].filter(r => !r.hidden).map(r => r.cells[0].textContent)"),
            Json({"first token, mean", "first token, p90", "first token, p99"}));
  expect_quiet();
}

TEST_F(RunPage, ContentsLeadToTheirSections) {
  open_pair();
  const Json links = eval(
      "[...document.querySelectorAll('nav.contents a')].map(a => [a.textContent, "
      "document.querySelector(a.getAttribute('href'))?.textContent])");
  ASSERT_GE(links.size(), 4U);
  for (const Json& link : links) EXPECT_EQ(link[0], link[1]);
  EXPECT_TRUE(
      eval("(ids => ids.length === new Set(ids).size)"
           "([...document.querySelectorAll('[id]')].map(e => e.id))"));
}

}  // namespace
}  // namespace routesim::pages
