// What compare says of random results: every claim is recomputed from their numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>

#include "base/rng.h"
#include "tools/render/document.h"
#include "tools/results/described_json.h"
#include "tools/results/statistics.h"
#include "tools/study/compare/comparison_record.h"

namespace routesim::tools::comparison_claims {
namespace {

constexpr std::uint64_t kSeed = 20261129;
const std::vector<std::string> kMetrics = {"output_tokens_per_s", "ttft_ms.mean", "ttft_ms.p90",
                                           "tpot_ms.mean", "request_latency_ms.mean"};

/// A base and a new result of up to three variants over up to four stages, some of them overloaded,
/// with one run or several, of the same seeds or others, some numbers missing, some keys changed.
class RandomResults {
 public:
  explicit RandomResults(std::uint64_t n) : random_(kSeed, Stream::kTest, n) {
    stages_ = random_.below(5);
    runs_ = random_.below(3) == 0 ? 1 : 2 + random_.below(4);
    const std::uint64_t variants = 1 + random_.below(3);
    const bool same_seeds = random_.below(4) != 0;
    for (ResultFile* file : {&base, &changed}) {
      const bool is_base = file == &base;
      file->path = is_base ? "a.json" : "b.json";
      file->interrupted = random_.below(8) == 0;
      file->set.scenario = "s";
      file->set.version = random_.below(4) == 0 ? "2" : "1";
      for (std::uint64_t r = 0; r < runs_; ++r)
        file->set.seeds.push_back(r + (is_base || same_seeds ? 1 : 50));
      for (const std::string& m : kMetrics)
        file->set.metrics.push_back(*parse_metric_name(m).value);
      for (std::uint64_t v = 0; v < variants; ++v)
        if (is_base || v == 0 || random_.below(6) != 0) add_variant(*file, v, is_base);
    }
    if (stages_ > 1 && random_.below(5) == 0) request.stage = "1";
    if (random_.below(8) == 0) request.variants = {"a", "a"};
  }
  ResultFile base, changed;
  ComparisonRequest request;

 private:
  /// The same noise on both sides: differences are those of pairs.
  double value(std::uint64_t v, const std::string& stage, std::uint64_t m, std::uint64_t r,
               bool is_base) {
    RandomStream both(kSeed + 1, Stream::kTest, v * 1'000 + m * 100 + stage.size() * 10 + r);
    const double effect = is_base ? 1 : effects_[(v + m + stage.size()) % effects_.size()];
    return (stage.empty() ? 100 : 80) * effect * (1 + 0.1 * both.uniform()) *
           (1 + 0.02 * random_.uniform());
  }
  void add_variant(ResultFile& file, std::uint64_t v, bool is_base) {
    VariantValues variant{.name = std::string(1, static_cast<char>('a' + v)), .stages = {}};
    if (random_.below(2) == 0) variant.trust = random_.below(2) == 0 ? "rests on x" : "rests on y";
    for (std::uint64_t s = 0; s <= stages_; ++s) {
      StageValues stage{.stage = s == stages_ ? "" : std::to_string(s), .values = {}};
      stage.rate = s == stages_ ? 0 : 10 * static_cast<double>(s + 1);
      stage.reported = s == stages_ || s > 0 || random_.below(2) == 0;
      stage.overloaded = s == stages_
                             ? std::ranges::any_of(variant.stages,
                                                   [](const StageValues& other) {
                                                     return other.reported && other.overloaded;
                                                   })
                             : random_.below(4) == 0;
      for (std::uint64_t m = 0; m < kMetrics.size(); ++m) {
        std::vector<double>& runs = stage.values.emplace_back();
        const bool still = random_.below(12) == 0;
        for (std::uint64_t r = 0; r < runs_; ++r)
          runs.push_back(still ? 90 : value(v, stage.stage, m, r, is_base));
        if (random_.below(12) == 0) runs.back() = NAN;
      }
      variant.stages.push_back(std::move(stage));
    }
    file.set.variants.push_back(std::move(variant));
    std::string resolved = "{\"workload\": {}, \"cluster\": {";
    for (const char* key : {"x", "y", "z"})
      if (random_.below(5) != 0)
        resolved += std::string(resolved.ends_with('{') ? "" : ", ") + "\"" + key +
                    "\": " + std::to_string(random_.below(2));
    file.resolved.push_back(json_tree(resolved + "}}", {}));
  }
  RandomStream random_;
  std::uint64_t stages_ = 0, runs_ = 1;
  static constexpr std::array<double, 7> effects_ = {1, 1.2, 0.8, 1, 1.01, 0.7, 1};
};

/// What the numbers of a measure allow one to say.
enum class Truth { kUnknown, kSame, kBetter, kWorse, kMixed };

/// One measure of one pair: the values of both sides where they are compared, and what they say.
struct Known {
  std::vector<double> x, y;
  bool pooled = false;
  Truth truth = Truth::kUnknown;
  std::size_t better = 0, worse = 0, stages = 0;  ///< Where the stages decide.
};

class Facts {
 public:
  Facts(const Comparison& c, const VariantPair& pair) : c_(c), pair_(pair) {
    for (const std::string& m : kMetrics)
      if (std::optional<Known> known = know(m)) measures[metric_view(m).title] = *known;
  }
  std::map<std::string, Known> measures;  ///< By title; absent where a side has no such number.

  Truth all() const {
    std::set<Truth> seen;
    for (const auto& [title, known] : measures) seen.insert(known.truth);
    if (seen.contains(Truth::kMixed) ||
        (seen.contains(Truth::kBetter) && seen.contains(Truth::kWorse)))
      return Truth::kMixed;
    for (const Truth t : {Truth::kBetter, Truth::kWorse, Truth::kUnknown})
      if (seen.contains(t)) return t;
    return seen.empty() ? Truth::kUnknown : Truth::kSame;
  }

 private:
  std::optional<Known> values(const StageValues* a, const StageValues* b, std::size_t m) const {
    if (a == nullptr || b == nullptr) return std::nullopt;
    Known k{.x = a->values[m], .y = b->values[m]};
    for (const std::vector<double>* side : {&k.x, &k.y})
      for (const double v : *side)
        if (std::isnan(v)) return std::nullopt;
    const sim::Estimate d =
        pair_.paired ? sim::paired_difference(k.x, k.y) : sim::independent_difference(k.x, k.y);
    const bool less_is_better = m > 0;
    if (k.x.size() < 2)
      k.truth = k.x == k.y ? Truth::kSame : Truth::kUnknown;
    else if (std::abs(d.mean) <= d.half_width)
      k.truth = Truth::kSame;
    else
      k.truth = (d.mean < 0) == less_is_better ? Truth::kBetter : Truth::kWorse;
    return k;
  }
  bool pools(const VariantValues& v) const {
    std::set<bool> seen;
    for (const StageValues& s : v.stages)
      if (!s.stage.empty() && s.reported) seen.insert(s.overloaded);
    return c_.stage.empty() && seen.size() == 2;
  }
  std::optional<Known> know(const std::string& metric) const {
    const auto m = static_cast<std::size_t>(std::ranges::find(kMetrics, metric) - kMetrics.begin());
    std::optional<Known> k =
        values(find_stage(*pair_.base, c_.stage), find_stage(*pair_.changed, c_.stage), m);
    if (!k || !(pools(*pair_.base) || pools(*pair_.changed))) return k;
    k->pooled = true;
    for (const StageValues& s : pair_.base->stages) {
      const auto one = s.stage.empty() || !s.reported
                           ? std::nullopt
                           : values(&s, find_stage(*pair_.changed, s.stage), m);
      if (!one || one->truth == Truth::kUnknown) continue;
      ++k->stages;
      k->better += one->truth == Truth::kBetter ? 1 : 0;
      k->worse += one->truth == Truth::kWorse ? 1 : 0;
    }
    k->truth = k->stages == 0                  ? Truth::kUnknown
               : k->better > 0 && k->worse > 0 ? Truth::kMixed
               : k->better > 0                 ? Truth::kBetter
               : k->worse > 0                  ? Truth::kWorse
                                               : Truth::kSame;
    return k;
  }
  const Comparison& c_;
  const VariantPair& pair_;
};

/// The one of `words` that the text begins with.
template <class T>
T begins(const std::string& text, const std::vector<std::pair<const char*, T>>& words) {
  for (const auto& [word, meaning] : words)
    if (text.starts_with(word)) return meaning;
  ADD_FAILURE() << "unknown words: " << text;
  return words.front().second;
}

/// `New is better than base for a; worse than base for b and c.` puts each variant where it
/// belongs.
void expect_true_headline(const Comparison& c, std::string text) {
  std::map<std::string, Truth> said;
  if (text.starts_with("New is ")) text.erase(0, 7);
  static const std::regex kGroup(
      "(.+?) for ([a-c](?:, [a-c])*(?: and [a-c])?|all 3 variants)[;.] ?");
  std::size_t read = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), kGroup), end; it != end; ++it) {
    read += static_cast<std::size_t>(it->length());
    const Truth t = begins<Truth>((*it)[1], {{"better than base in some", Truth::kMixed},
                                             {"better than base", Truth::kBetter},
                                             {"worse than base", Truth::kWorse},
                                             {"not distinguishable", Truth::kSame},
                                             {"New and base cannot be told apart", Truth::kSame},
                                             {"No interval tells whether", Truth::kUnknown},
                                             {"not judged", Truth::kUnknown}});
    for (const VariantPair& pair : c.pairs)
      if ((*it)[2].str().starts_with("all") ||
          (" " + (*it)[2].str() + " ").find(" " + pair.base->name + " ") != std::string::npos ||
          (*it)[2].str().find(pair.base->name + ",") != std::string::npos) {
        EXPECT_TRUE(said.emplace(pair.base->name, t).second) << text;
      }
    if ((*it)[2].str().starts_with("all")) {
      EXPECT_EQ(c.pairs.size(), 3U) << text;
    }
  }
  EXPECT_EQ(read, text.size()) << text;
  for (const VariantPair& pair : c.pairs) {
    ASSERT_TRUE(said.contains(pair.base->name)) << text;
    EXPECT_EQ(said[pair.base->name], Facts(c, pair).all()) << pair.base->name << ": " << text;
  }
}

/// `-12.3 % [-14.0, -10.6]`, `in 2 of 3 stages`, `better in 1 of 3 stages, worse in 2 of 3 stages`.
void expect_true_size(const Known& k, bool paired, const std::string& text) {
  static const std::regex kStages("in (\\d) of (\\d) stages"),
      kMixed("better in (\\d) of (\\d) stages, worse in (\\d) of (\\d) stages"),
      kPercent("([-+][0-9.]+) %(?: \\[([-+][0-9.]+), ([-+][0-9.]+)\\])?");
  std::smatch m;
  if (std::regex_match(text, m, kMixed)) {
    EXPECT_EQ(std::stoul(m[1]), k.better) << text;
    EXPECT_EQ(std::stoul(m[3]), k.worse) << text;
    EXPECT_EQ(std::stoul(m[4]), k.stages) << text;
  } else if (std::regex_match(text, m, kStages)) {
    EXPECT_EQ(std::stoul(m[1]), k.truth == Truth::kBetter ? k.better : k.worse) << text;
    EXPECT_EQ(std::stoul(m[2]), k.stages) << text;
    EXPECT_TRUE(k.truth == Truth::kBetter || k.truth == Truth::kWorse) << text;
  } else if (k.pooled && k.truth != Truth::kUnknown) {
    EXPECT_EQ(text, "");
  } else {
    ASSERT_TRUE(std::regex_match(text, m, kPercent)) << text;
    EXPECT_NEAR(std::stod(m[1]), 100 * (sim::mean(k.y) / sim::mean(k.x) - 1), 0.0501) << text;
    const auto ratio = paired ? sim::paired_ratio(k.x, k.y) : std::nullopt;
    EXPECT_EQ(m[2].matched, ratio.has_value()) << text;
    if (m[2].matched && ratio) {
      EXPECT_NEAR(std::stod(m[2]), 100 * (ratio->low - 1), 0.0501) << text;
      EXPECT_NEAR(std::stod(m[3]), 100 * (ratio->high - 1), 0.0501) << text;
    }
  }
}

/// `a: new is worse than base in ...; .... new is better than base in .... not distinguishable:
/// ....`
void expect_true_point(const Comparison& c, const VariantPair& pair, const Sentence& sentence) {
  const Facts facts(c, pair);
  std::set<std::string> said;
  ASSERT_EQ(sentence.front().text, pair.base->name + ":");
  for (std::size_t i = 2; i + 1 < sentence.size(); i += 3) {
    const Truth t = begins<Truth>(sentence[i].text,
                                  {{"new is worse than base in", Truth::kWorse},
                                   {"new is better and worse than base", Truth::kMixed},
                                   {"new is better than base in", Truth::kBetter},
                                   {"not distinguishable:", Truth::kSame},
                                   {"from base to new, without intervals:", Truth::kUnknown}});
    EXPECT_EQ(sentence[i].tone, t == Truth::kWorse    ? Tone::kBad
                                : t == Truth::kBetter ? Tone::kGood
                                                      : Tone::kPlain);
    std::string list = sentence[i + 1].text.substr(1) + "; ";
    for (std::size_t end = 0; (end = list.find("; ")) != std::string::npos;
         list.erase(0, end + 2)) {
      const std::string item = list.substr(0, end);
      for (const auto& [title, known] : facts.measures) {
        if (!item.starts_with(title) || (item.size() > title.size() && item[title.size()] != ' '))
          continue;
        EXPECT_TRUE(said.insert(title).second) << item;
        EXPECT_EQ(known.truth, t) << pair.base->name << ", " << sentence[i].text << item;
        expect_true_size(known, pair.paired, item.substr(std::min(item.size(), title.size() + 1)));
      }
    }
  }
  EXPECT_EQ(said.size(), facts.measures.size());
}

/// Titles of charts, which say how many measures changed, and which way one did.
void expect_true_titles(const Comparison& c, const StudyDocument& document) {
  std::vector<Chart> charts;
  if (document.verdict.picture) charts.push_back(*document.verdict.picture);
  for (const Block& block : document.blocks)
    if (const auto* const some = std::get_if<Charts>(&block.content))
      charts.insert(charts.end(), some->charts.begin(), some->charts.end());
  static const std::regex kOf(
      "of (\\d) measures?, (\\d) better and (\\d) worse in new(?:, (\\d) both, by stage)?");
  for (const Chart& chart : charts) {
    const std::string text = std::visit([](const auto& any) { return any.title; }, chart);
    const auto pair = std::ranges::find_if(
        c.pairs, [&](const VariantPair& p) { return text.starts_with(p.base->name + ": "); });
    ASSERT_NE(pair, c.pairs.end()) << text;
    const Facts facts(c, *pair);
    const std::string rest = text.substr(3);
    const auto count = [&](Truth t) {
      return static_cast<std::size_t>(std::ranges::count_if(
          facts.measures, [t](const auto& known) { return known.second.truth == t; }));
    };
    std::smatch m;
    if (std::regex_match(rest, m, kOf)) {
      EXPECT_EQ(std::stoul(m[1]), facts.measures.size()) << text;
      EXPECT_EQ(std::stoul(m[2]), count(Truth::kBetter)) << text;
      EXPECT_EQ(std::stoul(m[3]), count(Truth::kWorse)) << text;
      EXPECT_EQ(m[4].matched ? std::stoul(m[4]) : 0, count(Truth::kMixed)) << text;
    } else if (rest == "no measure is better or worse in new beyond chance") {
      EXPECT_EQ(count(Truth::kSame), facts.measures.size()) << text;
    } else if (rest == "no interval tells whether new is better or worse") {
      EXPECT_EQ(facts.all(), Truth::kUnknown) << text;
    } else {
      const auto measure = std::ranges::find_if(
          facts.measures, [&](const auto& known) { return rest.starts_with(known.first + " "); });
      if (measure == facts.measures.end()) {
        EXPECT_TRUE(rest.ends_with("in base and in new")) << text << ": not compared";
        continue;
      }
      const std::string words = rest.substr(measure->first.size() + 1);
      EXPECT_EQ(measure->second.truth,
                begins<Truth>(words, {{"is better in new at some", Truth::kMixed},
                                      {"is better in new", Truth::kBetter},
                                      {"is worse in new", Truth::kWorse},
                                      {"does not differ by more than chance", Truth::kSame},
                                      {"in base and in new", Truth::kUnknown}}))
          << text;
    }
  }
}

/// Every key that differs is in the table with its values and its variants, and no other is.
void expect_true_changes(const Comparison& c, const StudyDocument& document) {
  std::map<std::string, std::string> expected;  // By key and both values: the variants.
  std::map<std::string, std::size_t> pairs;
  if (c.base->set.version != c.changed->set.version)
    expected["version " + c.base->set.version + " " + c.changed->set.version] = "";
  for (const VariantPair& pair : c.pairs)
    for (const char* key : {"x", "y", "z"}) {
      const auto value = [&](const ResultFile& file, const VariantValues& v) {
        const ConfigNode* const node = file.resolved_of(v)->child("cluster")->child(key);
        return node == nullptr ? std::string() : node->text();
      };
      const std::string a = value(*c.base, *pair.base), b = value(*c.changed, *pair.changed);
      if (a == b) continue;
      const std::string change = "cluster." + std::string(key) + " " + a + " " + b;
      ++pairs[change];
      std::string& variants = expected[change];
      variants += (variants.empty() ? "" : ", ") + pair.base->name;
    }
  std::size_t rows = 0;
  bool nothing = false;
  for (const Block& block : document.blocks) {
    if (const auto* const text = std::get_if<Paragraph>(&block.content))
      nothing = nothing || text->text.ends_with("are the same in base and new.");
    const auto* const table = std::get_if<Table>(&block.content);
    if (table == nullptr || table->columns.front().title != "key" || block.outputs != For::kPlain)
      continue;
    for (const std::vector<Cell>& row : table->rows) {
      const std::string change = row[0].text + " " + row[2].text + " " + row[3].text;
      ASSERT_TRUE(expected.contains(change)) << change;
      std::string variants = expected[change];
      if (pairs[change] == c.pairs.size() && c.pairs.size() > 1) variants = "all";
      if (const std::size_t last = variants.rfind(", "); last != std::string::npos)
        variants.replace(last, 1, " and");
      EXPECT_EQ(row[1].text, variants) << change;
      ++rows;
    }
  }
  EXPECT_EQ(rows, expected.size());
  EXPECT_EQ(nothing, expected.empty());
}

/// Remarks name what they are true of: missing variants, interrupted files, overload, trust.
void expect_true_remarks(const Comparison& c, const StudyVerdict& verdict) {
  std::string all;
  for (const std::string& remark : verdict.remarks) all += "\n" + remark;
  const auto says = [&](const std::string& text) { return all.find("\n" + text) != all.npos; };
  EXPECT_EQ(says("the base was interrupted"), c.base->interrupted);
  EXPECT_EQ(says("the new result was interrupted"), c.changed->interrupted);
  for (const VariantValues& v : c.base->set.variants) {
    const bool is_there = std::ranges::count(c.changed->set.variants, v.name, &VariantValues::name);
    EXPECT_EQ(says("variant " + v.name + " of the base is not in the new result"),
              !is_there && c.missing.size())
        << all;
  }
  static const std::regex kPools("(\\d) overloaded and (\\d) healthy");
  for (const VariantPair& pair : c.pairs)
    for (const auto& [side, v] : {std::pair{"base", pair.base}, {"new", pair.changed}}) {
      std::size_t overloaded = 0, healthy = 0;
      for (const StageValues& s : v->stages)
        if (!s.stage.empty() && s.reported) ++(s.overloaded ? overloaded : healthy);
      const bool pools = c.stage.empty() && overloaded > 0 && healthy > 0;
      const std::string text = std::string(side) + ": the whole run of " + v->name + " pools ";
      EXPECT_EQ(says(text), pools) << all;
      EXPECT_EQ(says(text + std::to_string(overloaded) + " overloaded and " +
                     std::to_string(healthy) + " healthy stages"),
                pools)
          << all;
      const bool own = find_stage(*v, c.stage)->overloaded && !pools;
      EXPECT_EQ(says(std::string(side) + ": " + v->name + " is overloaded:"), own) << all;
      const std::string name = std::string(side) + " " + v->name;
      for (const std::string trust : {"rests on x", "rests on y"}) {
        std::string whose;
        for (const std::string& remark : verdict.remarks)
          if (remark.ends_with(": " + trust))
            whose = ", " + remark.substr(0, remark.find(":")) + ",";
        EXPECT_EQ(whose == ", everything," || whose.find(", " + name + ",") != whose.npos,
                  v->trust == trust)
            << name << all;
      }
    }
}

TEST(ComparisonClaims, AreTrueOfRandomResults) {
  std::map<Truth, int> truths;
  int changes = 0;
  for (std::uint64_t n = 0; n < 1'000; ++n) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", results " + std::to_string(n));
    const RandomResults random(n);
    Diagnostics diagnostics;
    const Comparison c = compare_results(random.base, random.changed, random.request, diagnostics);
    ASSERT_FALSE(diagnostics.has_errors());
    const StudyDocument document = comparison_document(comparison_record(c));
    expect_true_headline(c, document.verdict.headline);
    ASSERT_EQ(document.verdict.points.size(), c.pairs.size());
    for (std::size_t i = 0; i < c.pairs.size(); ++i) {
      expect_true_point(c, c.pairs[i], document.verdict.points[i]);
      ++truths[Facts(c, c.pairs[i]).all()];
    }
    expect_true_titles(c, document);
    expect_true_changes(c, document);
    expect_true_remarks(c, document.verdict);
    EXPECT_EQ(document.verdict.fine.find("independent runs") != std::string::npos,
              random.base.set.seeds != random.changed.set.seeds);
    changes += document.log.front().starts_with("what changed: nothing") ? 0 : 1;
    if (HasFailure()) return;
  }
  EXPECT_EQ(truths.size(), 5U);
  for (const auto& [truth, times] : truths) EXPECT_GT(times, 10) << static_cast<int>(truth);
  EXPECT_GT(changes, 100);
}

}  // namespace
}  // namespace routesim::tools::comparison_claims
