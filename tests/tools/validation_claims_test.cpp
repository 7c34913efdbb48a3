// What validate says of random errors: every claim is recomputed from the published numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>

#include "base/rng.h"
#include "base/text.h"
#include "tools/render/document.h"
#include "tools/results/text_table.h"
#include "tools/study/validate/validation_record.h"

namespace routesim::tools::validation_claims {
namespace {

constexpr std::uint64_t kSeed = 20261201;
using models::Trust;

/// Up to three scenarios, fitted, held out or measured by the user, whose published numbers are
/// scored, left out or not simulated; with limits for some rows.
class RandomValidation {
 public:
  explicit RandomValidation(std::uint64_t n) : random_(kSeed, Stream::kTest, n) {
    const std::uint64_t scenarios = 1 + random_.below(3);
    for (std::uint64_t i = 0; i < scenarios; ++i) add_scenario("scenario" + std::to_string(i));
    const bool limited = random_.below(2) == 0;
    for (const ScenarioValidation& v : all)
      for (const ErrorSummary& e : v.errors) {
        if (!limited || random_.below(4) == 0) continue;
        RowLimit& limit = limits.emplace_back();
        limit.experiment = e.experiment;
        limit.policy = e.policy;
        limit.metric = e.metric;
        limit.statistic = e.statistic;
        limit.error = e.mape * (random_.below(6) == 0 ? 0.5 : 1.5);
      }
  }
  std::vector<ScenarioValidation> all;
  std::vector<RowLimit> limits;

 private:
  void add_scenario(const std::string& name) {
    ScenarioValidation v{.scenario = name, .held_out = random_.below(3) == 0, .seeds = 2};
    v.own = !v.held_out && random_.below(3) == 0;
    v.policies = {"p", "q"};
    const bool one_stage = random_.below(4) == 0;
    for (const std::string& policy : v.policies)
      for (const auto& [metric, statistic] :
           {std::pair{"ttft", "mean"}, {"ttft", "p90"}, {"output_throughput", "mean"}})
        for (const char* stage : {"1", "2", "3"})
          if (random_.below(5) != 0 && (!one_stage || stage[0] == '1'))
            v.cells.push_back(cell(name, policy, stage, metric, statistic));
    random_.shuffle(v.cells.begin(), v.cells.end());
    summarise(v);
    all.push_back(std::move(v));
  }
  ValidationCell cell(const std::string& experiment, const std::string& policy,
                      const std::string& stage, const std::string& metric,
                      const std::string& statistic) {
    ValidationCell c{.row = {.experiment = experiment,
                             .policy = policy,
                             .stage = random_.below(12) == 0 ? "all" : stage,
                             .rate = stage,
                             .metric = metric,
                             .statistic = statistic,
                             .unit = metric == "ttft" ? "ms" : "tokens/s",
                             .value = 100 * random_.uniform_open(),
                             .source = "x"},
                     .variant = random_.below(12) == 0 ? "" : policy};
    c.status = random_.below(6) == 0 ? CellStatus::kShown : CellStatus::kScored;
    c.trust = static_cast<Trust>(random_.below(5));
    for (int s = 0; s < 2; ++s) c.samples.push_back(c.row.value * (1 + 0.3 * random_.normal()));
    if (random_.below(8) == 0) {
      c.status = CellStatus::kNotSimulated;
      c.samples.clear();
    }
    return c;
  }
  RandomStream random_;
};

double error_of(const ValidationCell& c) {
  return 100 * ((c.samples[0] + c.samples[1]) / 2 / c.row.value - 1);
}

struct Errors {
  double sum = 0, worst = 0;
  std::size_t n = 0;
  std::string worst_stage;
  void add(double error, const std::string& stage) {
    sum += std::abs(error);
    if (++n == 1 || std::abs(error) > std::abs(worst)) {
      worst = error;
      worst_stage = stage;
    }
  }
  double mean() const { return sum / static_cast<double>(n); }
};

std::string quantity_of(const MeasuredRow& row) {
  return row.metric == "output_throughput" ? "output tokens/s"
         : row.statistic == "mean"         ? "TTFT mean"
                                           : "TTFT p90 and above";
}

const std::map<std::string, Trust> kClasses = {
    {"fitted step times", Trust::kFitted},
    {"step times beyond the fitted range", Trust::kExtrapolated},
    {"step times of measured kernels", Trust::kKernels},
    {"step times of a roofline", Trust::kRoofline},
    {"step times of a data sheet", Trust::kDataSheet}};

/// The errors by class: what was held out or not, the basis, the quantity.
using ByClass = std::map<std::tuple<bool, Trust, std::string>, Errors>;
ByClass by_class(const std::vector<ScenarioValidation>& all) {
  ByClass out;
  for (const ScenarioValidation& v : all)
    for (const ValidationCell& c : v.cells)
      if (!c.variant.empty() && c.status == CellStatus::kScored && c.row.stage != "all")
        out[{v.held_out, c.trust, quantity_of(c.row)}].add(error_of(c), c.row.stage);
  return out;
}

/// `Mean error with fitted step times, held out: TTFT mean 2.5 % (2), ...` and the points like it.
void expect_true_classes(const ByClass& truth, const StudyVerdict& verdict) {
  static const std::regex kFirst("Mean error with (.+?)(, held out)?: (.*)\\."),
      kPoint("(held out, )?(.+?): (.*)"), kError("([^,]+?) ([0-9.]+) % \\((\\d+)\\)(?:, |$)");
  std::set<std::tuple<bool, Trust, std::string>> said;
  const auto read = [&](const std::string& basis, bool held_out, const std::string& list) {
    ASSERT_TRUE(kClasses.contains(basis)) << basis;
    for (std::sregex_iterator it(list.begin(), list.end(), kError), end; it != end; ++it) {
      const auto found = truth.find({held_out, kClasses.at(basis), (*it)[1]});
      ASSERT_NE(found, truth.end()) << basis << ": " << list;
      EXPECT_TRUE(said.insert(found->first).second) << list;
      EXPECT_NEAR(std::stod((*it)[2]), found->second.mean(), 0.0501) << list;
      EXPECT_EQ(std::stoul((*it)[3]), found->second.n) << list;
    }
  };
  std::smatch m;
  const std::string headline = plain_spaces(verdict.headline);
  if (std::regex_match(headline, m, kFirst))
    read(m[1], m[2].matched, m[3]);
  else
    EXPECT_EQ(headline, "No published number of these scenarios is scored by class.");
  for (const Sentence& point : verdict.points) {
    const std::string text = plain_spaces(point.front().text);
    if (text.find("limit") != std::string::npos) continue;
    ASSERT_TRUE(std::regex_match(text, m, kPoint)) << text;
    read(m[2], m[1].matched, m[3]);
  }
  EXPECT_EQ(said.size(), truth.size());
}

void expect_true_limits(const std::vector<ScenarioValidation>& all,
                        const std::vector<RowLimit>& limits, const StudyVerdict& verdict) {
  std::size_t beyond = 0;
  for (const RowLimit& limit : limits) {
    Errors row;
    for (const ScenarioValidation& v : all)
      for (const ValidationCell& c : v.cells)
        if (c.status == CellStatus::kScored && c.row.experiment == limit.experiment &&
            c.row.policy == limit.policy && c.row.metric == limit.metric &&
            c.row.statistic == limit.statistic)
          row.add(error_of(c), c.row.stage);
    beyond += row.mean() > limit.error ? 1 : 0;
  }
  std::string said;
  for (const Sentence& point : verdict.points)
    if (point.front().text.find("limit") != std::string::npos) said = point.front().text;
  const std::string n = std::to_string(limits.size());
  EXPECT_EQ(said, limits.empty() ? ""
                  : beyond == 0
                      ? "All " + n + " mean errors stay within their limits."
                      : std::to_string(beyond) + " of " + n + " mean errors exceed their limit.");
}

/// `Nearest is fitted: TTFT mean 2.5 % off, farthest * roofline: TTFT mean 20 % off`.
void expect_true_picture(const ByClass& truth, const StudyVerdict& verdict) {
  ASSERT_EQ(verdict.picture.has_value(), !truth.empty());
  if (!verdict.picture) return;
  const auto& chart = std::get<BarChart>(*verdict.picture);
  const auto name_of = [](const ByClass::value_type& e) {
    const auto& [held_out, trust, quantity] = e.first;
    return (held_out ? "* " : "") + std::string(enum_name(trust)) + ": " + quantity + " " +
           plain_spaces(human(e.second.mean(), Unit::kPercent)) + " off";
  };
  const auto [least, most] =
      std::ranges::minmax_element(truth, {}, [](const auto& e) { return e.second.mean(); });
  EXPECT_EQ(plain_spaces(chart.title),
            "Nearest is " + name_of(*least) + ", farthest " + name_of(*most));
  EXPECT_EQ(chart.bars.size(), truth.size());
}

/// Nothing that had a part in a fit is said to have had none, and nothing unseen to have had one.
void expect_true_fine(const std::vector<ScenarioValidation>& all, const std::string& fine) {
  const auto says = [&](const char* text) { return fine.find(text) != std::string::npos; };
  const bool held_out = std::ranges::any_of(all, &ScenarioValidation::held_out);
  const bool own = std::ranges::any_of(all, &ScenarioValidation::own);
  const bool fitted = std::ranges::any_of(all, [](const auto& v) { return !v.held_out && !v.own; });
  EXPECT_EQ(says("our own measurements"), own) << fine;
  EXPECT_EQ(says("the others did"), fitted) << fine;
  EXPECT_TRUE(held_out ? says("eld-out experiments") : !own || !says("eld-out")) << fine;
}

std::string title_of(const MeasuredRow& row) {
  return metric_view(row.metric == "ttft" ? "ttft." + row.statistic : row.metric).title;
}

/// `p: TTFT p90 is farthest off, 8.3 % on average`.
void expect_farthest(const ScenarioValidation& v, const std::string& policy,
                     const std::string& title, double error) {
  std::map<std::string, Errors> rows;
  for (const ValidationCell& c : v.cells)
    if (c.status == CellStatus::kScored && c.row.policy == policy)
      rows[title_of(c.row)].add(error_of(c), c.row.stage);
  EXPECT_NEAR(error, rows[title].mean(), 0.0501) << title;
  for (const auto& [name, errors] : rows)
    EXPECT_LE(errors.mean(), rows[title].mean() + 1e-9) << title;
}

struct Drawn {
  int curves = 0, plots = 0, rows = 0;
};

/// `TTFT mean: 8.3 % off on average` of an experiment; rows of the error tables, largest first.
void expect_true_blocks(const std::vector<ScenarioValidation>& all, const StudyDocument& document,
                        Drawn& drawn) {
  static const std::regex kOff("(.+): ([0-9.]+) % off on average"),
      kFarthest("([pq]): (.+) is farthest off, ([0-9.]+) % on average");
  const ScenarioValidation* scenario = nullptr;
  std::string heading;
  for (const Block& block : document.blocks) {
    if (const auto* const h = std::get_if<Heading>(&block.content)) {
      heading = h->text;
      const auto is_it = [&](const ScenarioValidation& v) {
        return heading == v.scenario + (v.held_out ? " (held out)" : "");
      };
      const auto found = std::ranges::find_if(all, is_it);
      scenario = found == all.end() ? nullptr : &*found;
    }
    if (const auto* const charts = std::get_if<Charts>(&block.content))
      for (const Chart& chart : charts->charts) {
        const std::string title = std::visit([](const auto& any) { return any.title; }, chart);
        std::smatch m;
        ASSERT_NE(scenario, nullptr);
        if (std::regex_match(title, m, kFarthest)) {
          ++drawn.plots;
          expect_farthest(*scenario, m[1], m[2], std::stod(m[3]));
          continue;
        }
        ASSERT_TRUE(std::regex_match(title, m, kOff)) << title;
        Errors errors;
        for (const ValidationCell& c : scenario->cells)
          if (!c.variant.empty() && c.status == CellStatus::kScored && c.row.stage != "all" &&
              title_of(c.row) == m[1])
            errors.add(error_of(c), c.row.stage);
        EXPECT_NEAR(std::stod(m[2]), errors.mean(), 0.0501) << title;
        ++drawn.curves;
      }
    const auto* const table = std::get_if<Table>(&block.content);
    if (table == nullptr || !heading.ends_with(": errors, largest first")) continue;
    double last = INFINITY;
    for (const std::vector<Cell>& row : table->rows) {
      const auto v = std::ranges::find(all, row[0].text, &ScenarioValidation::scenario);
      ASSERT_NE(v, all.end());
      EXPECT_EQ(heading.starts_with("Held-out"), v->held_out);
      EXPECT_EQ(heading.starts_with("Your own"), v->own);
      Errors errors;
      for (const ValidationCell& c : v->cells)
        if (c.status == CellStatus::kScored && c.row.policy == row[1].text &&
            title_of(c.row) == row[2].text)
          errors.add(error_of(c), c.row.stage);
      EXPECT_EQ(row[3].text, std::to_string(errors.n));
      EXPECT_NEAR(row[4].number->value, errors.mean(), 1e-9);
      EXPECT_EQ(row.back().text, errors.worst_stage);
      EXPECT_LE(row[4].number->value, last) << "the largest first";
      last = row[4].number->value;
      ++drawn.rows;
    }
  }
}

TEST(ValidationClaims, AreTrueOfRandomErrors) {
  Drawn drawn;
  for (std::uint64_t n = 0; n < 300; ++n) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", validation " + std::to_string(n));
    const RandomValidation random(n);
    const StudyDocument document =
        validation_document(validation_record(random.all, random.limits, "1"));
    const ByClass truth = by_class(random.all);
    expect_true_classes(truth, document.verdict);
    expect_true_limits(random.all, random.limits, document.verdict);
    expect_true_picture(truth, document.verdict);
    expect_true_fine(random.all, document.verdict.fine);
    expect_true_blocks(random.all, document, drawn);
    if (HasFailure()) return;
  }
  EXPECT_GT(drawn.curves, 300);
  EXPECT_GT(drawn.rows, 1'500);
  EXPECT_GT(drawn.plots, 15);
}

}  // namespace
}  // namespace routesim::tools::validation_claims
