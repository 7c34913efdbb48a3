// What sweeps and validations say of random results: every claim is recomputed from their numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>

#include "base/rng.h"
#include "base/scalar_parse.h"
#include "tools/render/chart/numbers.h"
#include "tools/render/document.h"
#include "tools/results/text_table.h"
#include "tools/study/sweep/sweep_goals.h"

namespace routesim::tools::sweep_claims {
namespace {

constexpr std::uint64_t kSeed = 20261130;

/// A sweep over one to three axes, with some cells left out, some overloaded, some numbers missing,
/// with and without goals and replications.
class RandomSweep {
 public:
  explicit RandomSweep(std::uint64_t n) : random_(kSeed, Stream::kTest, n) {
    const std::vector<std::pair<std::string, std::vector<std::string>>> all = {
        {"rate", {"10", "20", "40", "80"}},
        {"replicas", {"2", "4", "8"}},
        {"policy", {"\"x\"", "\"y\""}},
        {"tp", {"1", "2"}}};
    for (const auto& axis : all)
      if (axes_.size() < 3 && (n % 4 == 0 ? axis.first == "rate" : random_.below(2) == 0))
        axes_.push_back(axis);
    if (axes_.empty()) axes_.push_back(all[random_.below(4)]);
    variants_ = 1 + random_.below(3);
    runs_ = random_.below(2) == 0 ? 1 : 3;
    holes_ = random_.below(2) == 0 ? 0 : 5;
    luck_ = random_.below(5);
    if (random_.below(3) != 0) record.goals = {"ttft_ms.p90 < 500"};
    if (record.goals.size() == 1 && random_.below(3) == 0)
      record.goals.emplace_back("output_tokens_per_s > 300");
    std::vector<std::string> cell;
    add(cell);
  }
  SweepRecord record;

 private:
  void add(std::vector<std::string>& cell) {
    if (cell.size() < axes_.size()) {
      for (const std::string& value : axes_[cell.size()].second) {
        cell.push_back(value);
        add(cell);
        cell.pop_back();
      }
      return;
    }
    for (std::uint64_t v = 0; v < variants_; ++v)
      if (holes_ == 0 || random_.below(holes_) != 0 || record.sweep_rows.empty())
        record.sweep_rows.push_back(row(cell, std::string(1, static_cast<char>('a' + v))));
  }
  SweepRowRecord row(const std::vector<std::string>& cell, const std::string& variant) {
    SweepRowRecord row{.variant = variant, .replications = static_cast<std::int64_t>(runs_)};
    for (std::size_t a = 0; a < axes_.size(); ++a)
      row.cell.items.emplace_back(axes_[a].first, Document{.path = cell[a], .root = nullptr});
    row.sweep = "s";
    row.version = "1";
    row.step_times =
        std::array{"fitted", "outside the fitted range", "roofline", ""}[random_.below(4)];
    row.summary.overloaded = luck_ == 4 || random_.below(2 + luck_) == 0;
    for (const char* metric : {"ttft_ms.p90", "output_tokens_per_s"}) {
      const double mean = 900 * random_.uniform_open();
      row.summary.metrics.items.push_back(
          {metric,
           {.mean = random_.below(15) == 0 ? NAN : mean,
            .half_width = runs_ == 1 ? NAN : 100 * random_.uniform()}});
    }
    return row;
  }
  RandomStream random_;
  std::vector<std::pair<std::string, std::vector<std::string>>> axes_;
  std::uint64_t variants_ = 1, runs_ = 1, holes_ = 0, luck_ = 0;
};

/// Whether a row meets every goal with its whole interval, and no queue of it grows.
bool is_good(const SweepRowRecord& row, const std::vector<std::string>& goals) {
  bool good = !row.summary.overloaded;
  for (std::size_t g = 0; g < goals.size(); ++g) {
    const SweepRowRecord::Metric& m = row.summary.metrics.items[g].second;
    const double half = std::isnan(m.half_width) ? 0 : m.half_width;
    good = good && (g == 0 ? m.mean + half <= 500 : m.mean - half >= 300);
  }
  return good;
}

/// The rows that one name of a sentence stands for, by rate and by fleet.
struct Group {
  struct Tried {
    std::optional<double> rate, fleet;
    bool good = false;
  };
  std::vector<Tried> rows;
  std::size_t good() const {
    return static_cast<std::size_t>(std::ranges::count(rows, true, &Tried::good));
  }
};

/// The rows by name: the variant, and the axes that are not drawn.
std::map<std::string, Group> groups_of(const SweepRecord& record, const SweepGoals& goals,
                                       const SweepCells& cells) {
  std::map<std::string, Group> groups;
  for (const SweepPanel& panel : goals.panels())
    for (const std::string& variant : goals.variants())
      groups[variant + (panel.title.empty() ? "" : ", " + panel.title)];
  for (std::size_t i = 0; i < record.sweep_rows.size(); ++i) {
    const SweepRowRecord& row = record.sweep_rows[i];
    const auto panel = std::ranges::find_if(goals.panels(), [&](const SweepPanel& p) {
      return std::ranges::count(p.rows, &cells.rows[i]) > 0;
    });
    Group::Tried tried{.good = is_good(row, record.goals)};
    for (const auto& [axis, value] : row.cell.items) {
      if (axis == "rate" && goals.rate() != nullptr) tried.rate = number_from(value.path);
      if (axis == "replicas" && goals.fleet() != nullptr) tried.fleet = number_from(value.path);
    }
    groups[row.variant + (panel->title.empty() ? "" : ", " + panel->title)].rows.push_back(tried);
  }
  return groups;
}

/// What a sentence says of one name: `with 4 replicas`, `up to rate 40`, `even at rate 10`, `in 2
/// of 3 cells`. `at` is the rate that the sentence is about.
void expect_true_reach(const Group& group, const std::string& words, std::optional<double> at,
                       const std::string& text) {
  static const std::regex kFleet("(even )?with ([0-9]+) replicas"),
      kRate("(even at|up to) rate ([0-9]+)(, the highest tried,)?"),
      kCells("in (\\d+) of (\\d+) cells");
  std::smatch m;
  if (std::regex_match(words, m, kFleet)) {
    const double n = std::stod(m[2]);
    bool tried = false;
    for (const Group::Tried& row : group.rows) {
      if (at && row.rate != at) continue;
      if (m[1].matched || *row.fleet < n) {
        EXPECT_FALSE(row.good) << text;
      }
      EXPECT_TRUE(!m[1].matched || *row.fleet <= n) << text << ": more were tried";
      tried = tried || *row.fleet == n;
      if (*row.fleet == n) {
        EXPECT_EQ(row.good, !m[1].matched) << text;
      }
    }
    EXPECT_TRUE(tried) << text << ": not run";
  } else if (std::regex_match(words, m, kRate)) {
    const double rate = std::stod(m[2]);
    bool tried = false, more = false;
    double next = INFINITY;
    for (const Group::Tried& row : group.rows)
      if (*row.rate > rate) next = std::min(next, *row.rate);
    for (const Group::Tried& row : group.rows) {
      tried = tried || *row.rate == rate;
      more = more || *row.rate > rate;
      if (m[1] == "up to") {
        EXPECT_TRUE(row.good || *row.rate > rate) << text;
        EXPECT_TRUE(!row.good || *row.rate != next) << text << ": the next holds too";
      } else {
        EXPECT_TRUE(!row.good || *row.rate > rate) << text;
        EXPECT_GE(*row.rate, rate) << text << ": less was tried";
      }
    }
    EXPECT_TRUE(tried) << text << ": not run";
    if (m[1] == "up to") {
      EXPECT_EQ(m[3].matched, !more) << text;
    }
  } else {
    ASSERT_TRUE(std::regex_match(words, m, kCells)) << text;
    EXPECT_EQ(std::stoul(m[1]), group.good()) << text;
    EXPECT_EQ(std::stoul(m[2]), group.rows.size()) << text;
  }
}

/// Reads `... with 4 replicas behind a and with 8 replicas behind b; behind c they fail even with 8
/// replicas.`
std::map<std::string, std::string> reaches_of(const std::map<std::string, Group>& groups,
                                              const std::string& text) {
  std::string names;
  for (auto it = groups.rbegin(); it != groups.rend(); ++it)
    names += (names.empty() ? "" : "|") + it->first;
  const std::string yes =
      "(with [0-9]+ replicas|up to rate [0-9]+(?:, the highest tried,)?|in \\d+ of \\d+ cells)";
  const std::string no = "(even (?:with [0-9]+ replicas|at rate [0-9]+))";
  std::map<std::string, std::string> said;
  const auto read = [&](const std::string& pattern, int name, int words) {
    const std::regex regex(pattern);
    for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
      if ((*it)[1] == "even ") continue;
      EXPECT_TRUE(said.emplace((*it)[name], (*it)[words]).second) << text;
    }
  };
  read("(even )?" + yes + " behind (" + names + ")", 3, 2);
  read(no + " behind (" + names + ")", 2, 1);
  read("; behind (" + names + ") (?:they fail|queues grow) " + no, 1, 2);
  return said;
}

struct Seen {
  int fleets = 0, rates = 0, cells = 0, worst = 0, maps = 0, needs = 0, curves = 0, bars = 0;
};

void expect_true_headline(const SweepRecord& record, const SweepGoals& goals,
                          const SweepCells& cells, const std::string& text, Seen& seen) {
  static const std::regex kAt("^At rate ([0-9]+) "), kAll("as behind all (\\d+)\\.$"),
      kWorst("the best of (\\d+)(?:;|, and) .*, the worst\\.$");
  const std::map<std::string, Group> groups = groups_of(record, goals, cells);
  std::smatch m;
  std::optional<double> at;
  if (std::regex_search(text, m, kAt)) at = std::stod(m[1]);
  EXPECT_EQ(text.find(record.goals.empty() ? "the goals" : "queue"), std::string::npos) << text;
  EXPECT_EQ(text.find("run"), std::string::npos) << text;
  std::map<std::string, std::string> said;
  for (const auto& [name, words] : reaches_of(groups, text)) {
    ASSERT_TRUE(groups.contains(name)) << text;
    expect_true_reach(groups.at(name), words, at, text);
    said[name] = words;
    seen.fleets += words.find("with") != std::string::npos ? 1 : 0;
    seen.rates += words.find("rate") != std::string::npos ? 1 : 0;
    seen.cells += words.find("cells") != std::string::npos ? 1 : 0;
  }
  std::map<std::string, Group> run;  // Those that have a row where the sentence looks.
  for (const auto& [name, group] : groups)
    if (std::ranges::any_of(group.rows, [&](const auto& row) { return !at || row.rate == at; }))
      run.emplace(name, group);
  if (std::regex_search(text, m, kAll)) {
    EXPECT_EQ(std::stoul(m[1]), run.size()) << text;
    for (const auto& [name, group] : run)
      expect_true_reach(group, said.begin()->second, at, name + ": " + text);
  } else if (std::regex_search(text, m, kWorst)) {
    EXPECT_EQ(std::stoul(m[1]), run.size()) << text;
    ASSERT_EQ(said.size(), 2U) << text;
    ++seen.worst;
    // Share of cells, or the smallest fleet at this rate, or the first rate that fails.
    const auto score = [&](const Group& g) {
      if (said.begin()->second.find("cells") != std::string::npos)
        return static_cast<double>(g.good()) / static_cast<double>(g.rows.size());
      double best = goals.fleet() != nullptr ? -INFINITY : 0;
      double fails = INFINITY;
      for (const Group::Tried& row : g.rows)
        if (!row.good && row.rate) fails = std::min(fails, *row.rate);
      for (const Group::Tried& row : g.rows) {
        if (goals.fleet() != nullptr && row.good && (!at || row.rate == at))
          best = std::max(best, -*row.fleet);
        if (goals.fleet() == nullptr && row.good && *row.rate < fails)
          best = std::max(best, *row.rate);
      }
      return best;
    };
    const std::size_t first = text.find("behind " + said.begin()->first);
    const bool in_order = first < text.find("behind " + said.rbegin()->first);
    const Group &best = groups.at(in_order ? said.begin()->first : said.rbegin()->first),
                &worst = groups.at(in_order ? said.rbegin()->first : said.begin()->first);
    for (const auto& [name, group] : run) {
      EXPECT_LE(score(group), score(best)) << name << ": " << text;
      EXPECT_GE(score(group), score(worst)) << name << ": " << text;
    }
  } else {
    EXPECT_EQ(said.size(), run.size()) << text;
  }
}

/// `3 of 8 rows rest on ...`, `12 cells: 3 met, 9 missed`.
void expect_true_counts(const SweepRecord& record, const StudyVerdict& verdict) {
  std::map<std::string, std::size_t> by_trust, by_state;
  static const std::regex kRows("(\\d+) of (\\d+) rows rest on .*"), kState("(\\d+) (\\w[a-z ]*)");
  for (const SweepRowRecord& row : record.sweep_rows) {
    if (!row.step_times.empty()) ++by_trust[row.step_times];
    const bool good = is_good(row, record.goals);
    bool misses = false;
    for (std::size_t g = 0; g < record.goals.size(); ++g) {
      const SweepRowRecord::Metric& m = row.summary.metrics.items[g].second;
      const double half = std::isnan(m.half_width) ? 0 : m.half_width;
      misses = misses || !(g == 0 ? m.mean - half <= 500 : m.mean + half >= 300);
    }
    ++by_state[row.summary.overloaded ? "overloaded"
               : good                 ? record.goals.empty() ? "not overloaded" : "met"
               : misses               ? "missed"
                                      : "undecided"];
  }
  std::smatch m;
  std::multiset<std::size_t> counts, expected;
  for (const std::string& remark : verdict.remarks) {
    ASSERT_TRUE(std::regex_match(remark, m, kRows)) << remark;
    counts.insert(std::stoul(m[1]));
    EXPECT_EQ(std::stoul(m[2]), record.sweep_rows.size()) << remark;
  }
  for (const auto& [trust, n] : by_trust) expected.insert(n);
  EXPECT_EQ(counts, expected);
  const std::string text = verdict.points.back().front().text;
  const std::size_t colon = text.find(": ");
  EXPECT_EQ(text.substr(0, colon), std::to_string(record.sweep_rows.size()) + " cells");
  std::map<std::string, std::size_t> said;
  const std::string list = text.substr(colon + 2);
  for (std::sregex_iterator it(list.begin(), list.end(), kState), end; it != end; ++it)
    said[(*it)[2]] = std::stoul((*it)[1]);
  EXPECT_EQ(said, by_state) << text;
}

/// `TTFT p90: 320 ms behind b and 560 ms behind a at rate 40`, `...: 320 ms at rate 10, 1 s at rate
/// 40`, `...: 320 ms with x, 560 ms with y`: numbers of rows, the better first.
void expect_true_numbers(const SweepGoals& goals, const SweepCells& cells, const std::string& text,
                         Seen& seen) {
  static const std::regex kPart(
      "(?:^|, | and )([^,]+?) (behind|with|at) ([a-c]\\b|[xy]\\b|(?:rate|tp) "
      "\\d+|\\d+ replicas)"),
      kPlace(" at (?:(?:rate|tp) (\\d+)|(\\d+) replicas)(?:, |$)"), kDigits("\\d+");
  const std::size_t axis = goals.drawn()[0].axis;
  const std::string metric = text.starts_with("TTFT p90") ? "ttft_ms.p90" : "output_tokens_per_s";
  const MetricView view = metric_view(metric);
  const std::size_t colon = text.find(": ");
  if (colon == std::string::npos) return;  // No number is known, or none at a place of all.
  const std::string list = text.substr(colon + 2);
  std::smatch place;
  std::regex_search(list, place, kPlace);
  std::vector<double> values;
  std::string kind;
  std::set<std::string> names;
  for (std::sregex_iterator it(list.begin(), list.end(), kPart), end; it != end; ++it) {
    kind = (*it)[2];
    std::string name = (*it)[3], at = name;
    if (kind == "behind") at = place[1].matched ? place[1] : place[2];
    std::smatch digits;
    if (kind == "at" && std::regex_search(name, digits, kDigits)) at = digits[0];
    bool found = false;
    for (const SweepCells::Row& row : cells.rows) {
      const auto value = row.values.find(metric);
      if (row.cell[axis] != at || (kind == "behind" && row.variant != name) ||
          value == row.values.end() ||
          plain_spaces(human(value->second.value * view.scale, view.unit)) != (*it)[1])
        continue;
      if (!found) values.push_back(value->second.value);
      found = true;
    }
    EXPECT_TRUE(found) << (*it)[0] << " of " << text;
    EXPECT_TRUE(names.insert(name).second) << text;
  }
  EXPECT_FALSE(values.empty()) << text;
  if (kind != "at" && goals.panels().size() == 1) {
    if (!view.less_is_better) std::ranges::reverse(values);
    EXPECT_TRUE(std::ranges::is_sorted(values)) << text;
    EXPECT_TRUE(kind != "behind" || values.size() == goals.variants().size()) << text;
  }
  ++(kind == "with" ? seen.bars : seen.curves);
}

/// Titles of charts: what each needs at one rate, the range where the goals hold, and who is best.
void expect_true_title(const SweepRecord& record, const SweepGoals& goals, const SweepCells& cells,
                       const std::string& title, Seen& seen) {
  static const std::regex kNeeds("^At rate ([0-9]+) (.*)$"),
      kEach("([a-c]) needs (more than )?([0-9]+) replicas"),
      kHeld(
          "^([a-c]): (.*?)(?:, goal [<>] .*?)?: (?:(.+?)(?: to (.+?))? where (?:no queue grows|the "
          "goals hold)|every queue grows|the goals hold nowhere|no number where.*|not run)$");
  const std::string text = plain_spaces(title);
  const std::map<std::string, Group> groups = groups_of(record, goals, cells);
  std::smatch m;
  if (std::regex_match(text, m, kNeeds)) {
    const std::string list = m[2];
    const double at = std::stod(m[1]);
    for (std::sregex_iterator it(list.begin(), list.end(), kEach), end; it != end; ++it) {
      for (const auto& [name, group] : groups)
        if (name == (*it)[1] ||
            (name.starts_with((*it)[1].str() + ", ") && list.ends_with(name.substr(1))))
          expect_true_reach(
              group, ((*it)[2].matched ? "even with " : "with ") + (*it)[3].str() + " replicas", at,
              text);
      ++seen.needs;
    }
  } else if (goals.drawn().size() == 1) {
    expect_true_numbers(goals, cells, text, seen);
  } else if (goals.drawn().size() == 2) {
    ASSERT_TRUE(std::regex_match(text, m, kHeld)) << text;
    const std::string metric = m[2] == "TTFT p90" ? "ttft_ms.p90" : "output_tokens_per_s";
    const MetricView view = metric_view(metric);
    std::set<std::string> shown;  // The least and the most of each panel, as the title has them.
    bool holds_somewhere = true, numbers = true, runs = true;  // In every panel.
    for (const SweepPanel& panel : goals.panels()) {
      double least = INFINITY, most = -INFINITY;
      std::size_t good = 0;
      for (std::size_t i = 0; i < cells.rows.size(); ++i) {
        if (cells.rows[i].variant != m[1] || std::ranges::count(panel.rows, &cells.rows[i]) == 0 ||
            !is_good(record.sweep_rows[i], record.goals))
          continue;
        ++good;
        const auto value = cells.rows[i].values.find(metric);
        if (value == cells.rows[i].values.end()) continue;
        least = std::min(least, value->second.value * view.scale);
        most = std::max(most, value->second.value * view.scale);
      }
      if (good == 0) holds_somewhere = false;
      numbers = numbers && least <= most;
      runs = runs && std::ranges::count(panel.rows, m[1].str(), [](const SweepCells::Row* row) {
                       return row->variant;
                     }) > 0;
      shown.insert(least > most ? "|"
                                : plain_spaces(human(least, view.unit)) + "|" +
                                      (least < most ? plain_spaces(human(most, view.unit)) : ""));
    }
    EXPECT_TRUE(shown.contains((m[3] == "no number" ? "" : m[3].str()) + "|" + m[4].str())) << text;
    if (text.ends_with("every queue grows") || text.ends_with("hold nowhere")) {
      EXPECT_FALSE(holds_somewhere) << text;
    }
    EXPECT_FALSE(text.find("no number where") != std::string::npos && numbers) << text;
    EXPECT_FALSE(text.ends_with("not run") && runs) << text;
    ++seen.maps;
  }
}

void each_title(const std::vector<Block>& blocks, const auto& visit) {
  for (const Block& block : blocks) {
    if (const auto* const charts = std::get_if<Charts>(&block.content))
      for (const Chart& chart : charts->charts)
        visit(std::visit([](const auto& any) { return any.title; }, chart));
    if (const auto* const fold = std::get_if<Fold>(&block.content)) each_title(fold->blocks, visit);
  }
}

TEST(SweepClaims, AreTrueOfRandomSweeps) {
  Seen seen;
  for (std::uint64_t n = 0; n < 800; ++n) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", sweep " + std::to_string(n));
    const SweepRecord record = RandomSweep(n).record;
    const SweepCells cells = cells_of(record, "");
    const SweepGoals goals(cells);
    const StudyDocument document = sweep_document(record, "");
    expect_true_headline(record, goals, cells, document.verdict.headline, seen);
    expect_true_counts(record, document.verdict);
    if (document.verdict.picture && goals.panels().size() == 1)
      expect_true_title(
          record, goals, cells,
          std::visit([](const auto& any) { return any.title; }, *document.verdict.picture), seen);
    each_title(document.blocks, [&](const std::string& title) {
      expect_true_title(record, goals, cells, title, seen);
    });
    if (HasFailure()) return;
  }
  EXPECT_GT(seen.fleets, 50);
  EXPECT_GT(seen.rates, 50);
  EXPECT_GT(seen.cells, 50);
  EXPECT_GT(seen.worst, 5);
  EXPECT_GT(seen.maps, 50);
  EXPECT_GT(seen.needs, 50);
  EXPECT_GT(seen.curves, 50);
  EXPECT_GT(seen.bars, 10);
}

}  // namespace
}  // namespace routesim::tools::sweep_claims
