// Figures in the documents that come from the validation tables: each stands in a block between
// `<!-- generated: NAME -->` and `<!-- end: NAME -->`, and the block is made here from
// docs/reference/validation.md, which another test holds to what `routesim validate` prints.
// ROUTESIM_UPDATE_EXPECTED=1 writes the blocks anew.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "tests/docs/console_blocks.h"

namespace routesim::docs {
namespace {

/// A row of a Markdown table of the validation page, by column.
struct TableRow {
  bool held_out = false;
  std::map<std::string, std::string> cells;

  const std::string& at(const std::string& column) const { return cells.at(column); }
  double number(const std::string& column) const { return std::stod(at(column)); }
};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (std::size_t at = 2, end = line.find(" |", at); end != std::string::npos;
       at = end + 3, end = line.find(" |", at)) {
    cells.push_back(line.substr(at, end - at));
    std::erase(cells.back(), '\\');  // Markdown writes `_` as `\_`.
  }
  return cells;
}

/// The rows below every bold line `title`.
std::vector<TableRow> tables(const std::string& title) {
  std::vector<TableRow> rows;
  bool held_out = false, inside = false;
  std::vector<std::string> columns;
  for (const std::string& line : lines_of(read(kRoot / "docs/reference/validation.md"))) {
    if (line == "# Held out") held_out = true;
    if (line.starts_with("#") || line.starts_with("**")) {
      inside = line == "**" + title + "**";
      columns.clear();
    }
    if (!inside || !line.starts_with("| ")) continue;
    const std::vector<std::string> cells = cells_of(line);
    if (columns.empty()) {
      columns = cells;
      continue;
    }
    rows.push_back({.held_out = held_out, .cells = {}});
    for (std::size_t i = 0; i < columns.size(); ++i) rows.back().cells[columns[i]] = cells.at(i);
  }
  return rows;
}

std::vector<TableRow> errors() { return tables("Errors"); }
std::vector<TableRow> differences() { return tables("Errors of what the policy changes"); }

using Names = std::vector<std::string>;

bool is_one_of(const std::string& name, const Names& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Rows of a measured policy; the others compare two.
bool is_policy(const TableRow& row) {
  const std::string& policy = row.at("policy");
  return policy.find('/') == std::string::npos && policy.find("_vs_") == std::string::npos;
}

std::string fixed(double value, int decimals) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

/// The errors of each policy, one policy per row.
std::string accuracy(bool held_out) {
  struct Column {
    const char* title;
    const char* metric;
    Names statistics;
  };
  const std::vector<Column> columns = {{"tok/s", "output_throughput", {"mean"}},
                                       {"TTFT mean", "ttft", {"mean"}},
                                       {"TTFT p50", "ttft", {"p50", "median"}},
                                       {"TTFT p75", "ttft", {"p75"}},
                                       {"TTFT p90", "ttft", {"p90"}},
                                       {"TTFT p99", "ttft", {"p99"}},
                                       {"ITL mean", "itl", {"mean", "mean_over_ladder"}},
                                       {"TPOT mean", "tpot", {"mean"}},
                                       {"time per token", "ntpot", {"mean"}}};
  const std::vector<TableRow> rows = errors();
  std::string out = "| experiment | policy |";
  std::string rule = "|---|---|";
  for (const Column& c : columns) {
    out += std::string(" ") + c.title + " |";
    rule += "---:|";
  }
  out += "\n" + rule + "\n";
  std::vector<std::pair<std::string, std::string>> seen;
  for (const TableRow& row : rows) {
    const std::pair<std::string, std::string> name = {row.at("experiment"), row.at("policy")};
    if (row.held_out != held_out || !is_policy(row) ||
        std::find(seen.begin(), seen.end(), name) != seen.end())
      continue;
    seen.push_back(name);
    out += "| `" + name.first + "` | `" + name.second + "` |";
    for (const Column& c : columns) {
      std::string cell;
      for (const TableRow& r : rows)
        if (r.at("experiment") == name.first && r.at("policy") == name.second &&
            r.at("metric") == c.metric && is_one_of(r.at("statistic"), c.statistics))
          cell = r.at("MAPE %") + " (" + r.at("cells") + ")";
      out += cell.empty() ? " |" : " " + cell + " |";
    }
    out += "\n";
  }
  return out;
}

/// The errors of what a policy changes, of the metrics that decide.
std::string gains() {
  std::string out =
      "| | experiment | policy | against | metric | signs agree | mean error, points | worst, "
      "points "
      "| ratio error % |\n|---|---|---|---|---|---:|---:|---:|---:|\n";
  bool held_out = false, first = true;
  for (const TableRow& row : differences()) {
    if (row.at("statistic") != "mean" ||
        !is_one_of(row.at("metric"),
                   {"output_throughput", "output_throughput_per_node", "ttft", "ntpot"}))
      continue;
    const bool label = first || row.held_out != held_out;
    held_out = row.held_out;
    first = false;
    out += label ? held_out ? "| held out |" : "| in sample |" : "| |";
    for (const char* column : {"experiment", "policy", "against"})
      out += " `" + row.at(column) + "` |";
    out += " " + row.at("metric") + " | " + row.at("signs agree") + " | " +
           row.at("mean error, points") + " | " + row.at("worst, points") + " at " +
           row.at("at stage") + " | " + row.at("mean ratio error %") + " |\n";
  }
  return out;
}

/// `2.6 to 18.9 % in 9 rows, worst cell 43.1 %`.
std::string range(const std::vector<TableRow>& rows, const std::string& mean,
                  const std::string& worst, const std::string& unit) {
  if (rows.empty()) return "not measured";
  double low = rows[0].number(mean), high = low, most = 0;
  for (const TableRow& row : rows) {
    low = std::min(low, row.number(mean));
    high = std::max(high, row.number(mean));
    most = std::max(most, std::abs(row.number(worst)));
  }
  const std::string count = std::to_string(rows.size());
  std::string out = rows.size() == 1
                        ? fixed(low, 1) + unit + " in 1 row"
                        : fixed(low, 1) + " to " + fixed(high, 1) + unit + " in " + count + " rows";
  return out + ", worst cell " + fixed(most, 1) + unit;
}

std::string error_range(bool held_out, const Names& metrics, const Names& statistics) {
  std::vector<TableRow> rows;
  for (const TableRow& row : errors())
    if (row.held_out == held_out && is_policy(row) && is_one_of(row.at("metric"), metrics) &&
        is_one_of(row.at("statistic"), statistics))
      rows.push_back(row);
  return range(rows, "MAPE %", "worst %", " %");
}

std::vector<TableRow> throughput_gains(bool held_out) {
  std::vector<TableRow> rows;
  for (const TableRow& row : differences())
    if (row.held_out == held_out && row.at("metric") == "output_throughput" &&
        row.at("statistic") == "mean")
      rows.push_back(row);
  return rows;
}

std::string signs(bool held_out) {
  int agree = 0, all = 0;
  for (const TableRow& row : throughput_gains(held_out)) {
    const std::string& text = row.at("signs agree");  // `15 of 16`.
    agree += std::stoi(text);
    all += std::stoi(text.substr(text.find("of ") + 3));
  }
  return std::to_string(agree) + " of " + std::to_string(all) + " cells";
}

/// How far to trust each kind of answer.
std::string trust() {
  std::string out = "| question | in sample | held out |\n|---|---|---|\n";
  const auto add = [&](const std::string& question,
                       const std::function<std::string(bool held_out)>& answer) {
    out += "| " + question + " | " + answer(false) + " | " + answer(true) + " |\n";
  };
  const auto add_error = [&](const std::string& question, const Names& metrics,
                             const Names& statistics) {
    add(question, [&](bool held_out) { return error_range(held_out, metrics, statistics); });
  };
  add("which of two policies gives more output tokens/s: signs that agree", signs);
  add("by how much", [](bool held_out) {
    return range(throughput_gains(held_out), "mean error, points", "worst, points", " points");
  });
  add_error("output tokens/s", {"output_throughput"}, {"mean"});
  add_error("TTFT mean", {"ttft"}, {"mean"});
  add_error("TTFT median", {"ttft"}, {"p50", "median"});
  add_error("TTFT tails (p90, p99)", {"ttft"}, {"p90", "p99"});
  add_error("ITL, TPOT, time per token: mean", {"itl", "tpot", "ntpot"},
            {"mean", "mean_over_ladder"});
  add_error("ITL p99.9", {"itl"}, {"p99p9"});
  return out;
}

/// A policy of the sweep over all of them: means and half widths of 95 % intervals.
struct PolicyRow {
  struct Number {
    double mean = 0, half_width = 0;
  };
  std::string policy;
  Number throughput, ttft_mean, ttft_p90, hits;
};

/// What `routesim ARGUMENTS` prints in the repository.
std::string printed(const std::string& arguments) {
  const fs::path folder =
      fs::temp_directory_path() / ("routesim-figures-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  fs::create_symlink(ROUTESIM_BINARY, folder / "routesim");
  const CommandResult result = run_command("routesim " + arguments, kRoot, folder, folder);
  fs::remove_all(folder);
  EXPECT_EQ(result.code, 0) << result.err;
  return result.out;
}

/// Every policy has a row, the best first.
const std::vector<PolicyRow>& policy_rows() {
  static std::vector<PolicyRow> rows;
  if (!rows.empty()) return rows;
  for (const std::string& line :
       lines_of(printed("sweep -q scenarios/sweeps/all-policies.yaml -o jsonl"))) {
    const auto row = nlohmann::json::parse(line);
    const auto& metrics = row["summary"]["metrics"];
    const auto number = [&](const char* metric) {
      return PolicyRow::Number{metrics[metric]["mean"], metrics[metric]["half_width"]};
    };
    rows.push_back({row["cell"]["policy"], number("output_tokens_per_s"), number("ttft_ms.mean"),
                    number("ttft_ms.p90"), number("prefix_cache_hit_rate")});
  }
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [](const PolicyRow& r) { return r.throughput.mean; });
  return rows;
}

/// One row per policy that is `shown`, or of all. The gain counts from `random` to `omniscient`.
std::string policies(const std::set<std::string>& shown = {}) {
  const std::vector<PolicyRow>& rows = policy_rows();
  const auto throughput_of = [&](const std::string& policy) {
    const auto at = std::find_if(rows.begin(), rows.end(),
                                 [&](const PolicyRow& r) { return r.policy == policy; });
    EXPECT_NE(at, rows.end()) << policy;
    return at == rows.end() ? 0 : at->throughput.mean;
  };
  const double low = throughput_of("random"), high = throughput_of("omniscient");
  std::string out =
      "| policy | output tok/s | of the gain, % | TTFT mean, s | TTFT p90, s | cache hits, % |\n"
      "|---|---:|---:|---:|---:|---:|\n";
  const auto number = [](const PolicyRow::Number& n, double scale, int decimals) {
    return fixed(n.mean * scale, decimals) + " ± " + fixed(n.half_width * scale, decimals);
  };
  for (const PolicyRow& r : rows) {
    if (!shown.empty() && !shown.contains(r.policy)) continue;
    const std::string name = r.policy == "omniscient" ? "**`omniscient`**" : "`" + r.policy + "`";
    out += "| " + name + " | " + number(r.throughput, 1, 0) + " | " +
           fixed(100 * (r.throughput.mean - low) / (high - low), 0) + " | " +
           number(r.ttft_mean, 1e-3, r.ttft_mean.mean < 1000 ? 3 : 1) + " | " +
           number(r.ttft_p90, 1e-3, r.ttft_p90.mean < 1000 ? 3 : 1) + " | " +
           number(r.hits, 100, 1) + " |\n";
  }
  return out;
}

/// The policies whose results differ by more than chance, one of each kind.
std::string ten_policies() {
  return policies({"mooncake-proxy", "ray-prefix-cache-affinity", "llm-d precise prefix",
                   "omniscient", "vllm-router-cache-aware", "dynamo-kv", "aibrix-prefix-cache",
                   "round-robin", "smg-cache-aware", "random"});
}

// A new balancer belongs into the table, unless it serves nothing there.
TEST(Figures, TheTableOfPoliciesHasEveryBalancer) {
  const std::set<std::string> others = {
      "endpoint-picker",                         // llm-d's configurations have rows.
      "expression", "library",                   // Yours.
      "production-stack-disaggregated-prefill",  // These two need prefill servers.
      "aibrix-pd"};
  const std::string sweep = read(kRoot / "scenarios/sweeps/all-policies.yaml");
  const std::vector<std::string> lines = lines_of(printed("list balancers"));
  ASSERT_GT(lines.size(), 50U);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::string name = lines[i].substr(0, lines[i].find(' '));
    if (others.contains(name)) continue;
    EXPECT_NE(sweep.find("{balancer: " + name), std::string::npos) << name;
  }
}

/// Errors of blind runs by what was left out: one seed, to be cheap.
std::string left_out() {
  std::string out =
      "| left out | step times then | quantity | published numbers | mean absolute error % | worst "
      "% "
      "|\n|---|---|---|---:|---:|---:|\n";
  for (const std::string what : {"experiment", "model", "hardware"}) {
    const std::vector<std::string> rows = lines_of(
        printed("validate --trust -q --seeds 1 -o csv --leave-out " + what + " scenarios/*.yaml"));
    for (std::size_t i = 1; i < rows.size(); ++i) {
      std::string cells = "| " + what + " | " + rows[i];
      for (std::size_t at = 0; (at = cells.find(',', at)) != std::string::npos; at += 3)
        cells.replace(at, 1, " | ");
      out += cells + " |\n";
    }
  }
  return out;
}

struct Block {
  const char* page;
  const char* name;
  std::string (*make)();
};

constexpr Block kBlocks[] = {
    {"scenarios/README.md", "accuracy", [] { return accuracy(false); }},
    {"scenarios/README.md", "held-out accuracy", [] { return accuracy(true); }},
    {"scenarios/README.md", "gains", gains},
    {"docs/limits.md", "trust", trust},
    {"docs/limits.md", "left out", left_out},
    {"docs/policies.md", "policies", [] { return policies(); }},
    {"README.md", "ten policies", ten_policies}};

TEST(Figures, GeneratedBlocksAreCurrent) {
  for (const Block& block : kBlocks) {
    SCOPED_TRACE(std::string(block.page) + ", " + block.name);
    std::string page = read(kRoot / block.page);
    const std::string name = block.name;
    const std::string begin = "<!-- generated: " + name + " -->\n";
    const std::size_t from = page.find(begin);
    const std::size_t to = page.find("<!-- end: " + name + " -->");
    ASSERT_NE(from, std::string::npos);
    ASSERT_NE(to, std::string::npos);
    const std::size_t start = from + begin.size();
    const std::string made = block.make();
    if (std::getenv("ROUTESIM_UPDATE_EXPECTED") != nullptr)
      write(kRoot / block.page, page.replace(start, to - start, made));
    else
      EXPECT_EQ(page.substr(start, to - start), made)
          << "ROUTESIM_UPDATE_EXPECTED=1 docs_tests writes it, after the validation page";
  }
}

// Every block that a page marks is one that the test above makes.
TEST(Figures, EveryGeneratedBlockHasAMaker) {
  for (const fs::path& page : markdown_pages(kRoot))
    for (const std::string& line : lines_of(read(page))) {
      const std::string mark = "<!-- generated: ";
      if (!line.starts_with(mark)) continue;
      const std::string name = line.substr(mark.size(), line.size() - mark.size() - 4);
      const bool made = std::any_of(std::begin(kBlocks), std::end(kBlocks), [&](const Block& b) {
        return name == b.name && page == kRoot / b.page;
      });
      EXPECT_TRUE(made) << page << ": " << name;
    }
}

}  // namespace
}  // namespace routesim::docs
