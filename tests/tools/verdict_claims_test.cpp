// What a verdict says, over random runs: every claim is recomputed from their numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tools/render/chart/numbers.h"
#include "tools/render/document.h"
#include "tools/results/text_table.h"
#include "tools/study/verdict/run_verdict.h"
#include "tools/study/verdict/run_view.h"

namespace routesim::tools {
namespace {

constexpr std::uint64_t kSeed = 20261128;

/// A ladder of up to five rates for up to four variants, some of them overloaded, some failing,
/// with or without the rates that they sustain.
class RandomRun {
 public:
  explicit RandomRun(std::uint64_t n) : random_(kSeed, Stream::kTest, n) {
    run.seed = "1";
    run.command = {.input = "x.yaml", .variants = "", .options = "", .scan = ""};
    const std::uint64_t stages = 1 + random_.below(5), variants = 1 + random_.below(4);
    const bool capacities = random_.below(2) == 0;
    for (std::uint64_t v = 0; v < variants; ++v) add_variant(v, stages, capacities);
  }
  PageRun run;

 private:
  void fill(StageView& s, double requests) {
    const auto put = [&](const char* key, double value) {
      s.values[key] = Datum{.value = value, .path = {}};
    };
    const double latency = 1 + 20 * random_.uniform();
    put("requests", requests);
    put("failed_requests",
        random_.below(4) == 0 ? std::floor(requests * random_.uniform() / 20) : 0);
    put("request_latency.mean", latency);
    put("ttft.mean", latency * random_.uniform_open());
    put("ttft.p99", latency * (1 + random_.uniform()));
    put("itl.mean", 0.1 * random_.uniform_open());
    put("output_throughput", 5'000 * random_.uniform_open());
    put("prefix_cache_hit_rate", random_.uniform());
    put("send_duration", 100);
  }
  void add_variant(std::uint64_t n, std::uint64_t stages, bool capacity) {
    VariantView v{.name = std::string(1, static_cast<char>('a' + n))};
    const double knee = 5 + 60 * random_.uniform();
    for (std::uint64_t i = 0; i < stages; ++i) {
      StageView s{.name = std::to_string(i)};
      fill(s, 1'000);
      s.rate = 10 * static_cast<double>(i + 1);
      s.overloaded = *s.rate > knee && random_.below(3) > 0;
      if (!s.overloaded && random_.below(4) == 0) s.telling_s = 400;
      v.stages.push_back(std::move(s));
    }
    fill(v.summary, 1'000.0 * static_cast<double>(stages));
    if (capacity)
      v.capacity =
          Capacity{.rate = knee, .low = 0.97 * knee, .high = 1.03 * knee, .limit = "KV blocks"};
    run.variants.push_back(std::move(v));
  }
  RandomStream random_;
};

const VariantView& named(const PageRun& run, const std::string& name) {
  return *std::ranges::find(run.variants, name, &VariantView::name);
}

std::string shown(double value, Unit unit) { return plain_spaces(human(value, unit)); }

/// No text says of a variant that it holds more than it sustains.
void expect_no_false_hold(const PageRun& run, const Verdict& verdict) {
  static const std::regex kHolds("holds ([0-9.]+) req/s");
  for (const Knee& knee : verdict.knees) {
    const VariantView& v = named(run, knee.variant);
    const std::string text = plain_spaces(knee.text);
    std::smatch match;
    if (std::regex_search(text, match, kHolds)) {
      EXPECT_FALSE(v.capacity) << text << ": what it sustains is known";
      for (const StageView& s : v.stages) {
        if (shown(*s.rate, Unit::kNone) == match[1]) {
          EXPECT_TRUE(is_held(s)) << text;
        }
      }
    }
    if (v.capacity) {
      EXPECT_NE(text.find("sustains " + shown(*v.capacity->rate, Unit::kRequestsPerSecond)),
                std::string::npos)
          << text;
    }
    if (knee.first_overloaded) {
      const auto stage = std::ranges::find(v.stages, knee.first_overloaded, &StageView::rate);
      ASSERT_NE(stage, v.stages.end());
      EXPECT_FALSE(is_held(*stage)) << text;
    }
  }
}

/// What the stages show beside the rate that is sustained.
void expect_true_stages(const PageRun& run, const Verdict& verdict) {
  static const std::regex kFrom("^its stages are overloaded from ([0-9.]+) req/s on$"),
      kOne("^its stage at ([0-9.]+) req/s is overloaded$"),
      kFails("^its stage at ([0-9.]+) req/s fails .*% of its requests$"),
      kNone("^its stages? (?:up to|at) ([0-9.]+) req/s (ends?|shows?) .*$");
  for (const Knee& knee : verdict.knees) {
    if (knee.seen.empty()) continue;
    const VariantView& v = named(run, knee.variant);
    const std::string text = plain_spaces(knee.seen);
    std::smatch m;
    const bool from = std::regex_match(text, m, kFrom),
               one = !from && std::regex_match(text, m, kOne);
    const bool fails = !from && !one && std::regex_match(text, m, kFails);
    ASSERT_TRUE(from || one || fails || std::regex_match(text, m, kNone)) << text;
    for (const StageView& s : v.stages) {
      const bool is_it = shown(*s.rate, Unit::kNone) == m[1];
      const bool is_above = *s.rate >= std::stod(m[1]);
      if (from && is_above) {
        EXPECT_TRUE(s.overloaded) << text;
      }
      if (one && is_it) {
        EXPECT_TRUE(s.overloaded) << text;
      }
      if (fails && is_it) {
        EXPECT_GT(share_of_failures(s), 0.01) << text;
      }
      if (!from && !one && !fails) {
        EXPECT_TRUE(is_held(s)) << text;
        EXPECT_LE(*s.rate, std::stod(m[1])) << text;
        if (is_it && m[2].str().starts_with("end")) {
          EXPECT_TRUE(is_too_short(s)) << text;
        }
      }
    }
  }
}

/// `first token, mean at 20 req/s: 1 s instead of 2 s with the base a (-50.0 %)` has both values of
/// one stage, which both hold, or of the whole run.
void expect_true_line(const PageRun& run, const VerdictLine& line, const std::string& winner) {
  static const std::regex kLine(
      "^(.+?)(?: at ([0-9.]+) req/s)?: (.+?)(?: with (?:the base )?([a-d]))? instead of (.+?) with "
      "(?:the base |the runner-up )?([a-d])(?: \\(.*\\))?(, which may be chance)?$");
  const std::string text = plain_spaces(line.text);
  std::smatch m;
  ASSERT_TRUE(std::regex_match(text, m, kLine)) << text;
  const std::string one = m[4].matched ? m[4].str() : winner;
  const VariantView &a = named(run, one), &b = named(run, m[6]);
  bool found = false;
  for (const char* key : {"failed_requests", "ttft.mean", "ttft.p99", "output_throughput",
                          "itl.mean", "prefix_cache_hit_rate"}) {
    const Measure shown_measure = measure(key);
    if (plain_spaces(shown_measure.title) != m[1]) continue;
    const auto holds = [&](const StageView& x, const StageView& y) {
      const double p = x.find(key)->value, q = y.find(key)->value;
      if (shown(p, shown_measure.unit) != m[3] || shown(q, shown_measure.unit) != m[5])
        return false;
      if (line.better) {
        EXPECT_EQ(*line.better, (p < q) == shown_measure.less_is_better) << text;
      }
      return true;
    };
    if (!m[2].matched) found = found || holds(a.summary, b.summary);
    for (std::size_t i = 0; m[2].matched && i < a.stages.size(); ++i) {
      if (shown(*a.stages[i].rate, Unit::kNone) != m[2]) continue;
      found = found || holds(a.stages[i], b.stages[i]);
      if (shown_measure.unit == Unit::kSeconds) {
        EXPECT_TRUE(holds_stage(a, i) && holds_stage(b, i)) << text << ": a latency of a queue";
      }
    }
  }
  EXPECT_TRUE(found) << text;
}

/// Nobody who fails no more holds a tenth more load than the winner, or as much with less latency.
void expect_true_winner(const PageRun& run, const Verdict& verdict) {
  if (verdict.winner.empty()) return;
  const VariantView& won = named(run, verdict.winner);
  double least = 1;
  for (const VariantView& v : run.variants) least = std::min(least, share_of_failures(v.summary));
  EXPECT_LE(share_of_failures(won.summary), least + 0.01 + 1e-9);
  for (const VariantView& v : run.variants) {
    if (share_of_failures(v.summary) > least + 0.01 || !v.capacity) continue;
    EXPECT_LE(*v.capacity->rate, 1.1 * *won.capacity->rate) << v.name << " sustains more";
  }
}

/// The sentence about overload names exactly the variants that have an overloaded stage.
void expect_true_overload(const PageRun& run, const Verdict& verdict) {
  for (const VariantView& v : run.variants) {
    const bool overloaded = std::ranges::any_of(v.stages, &StageView::overloaded);
    const bool said = verdict.overload.find(": " + v.name + " ") != std::string::npos ||
                      verdict.overload.find("; " + v.name + " ") != std::string::npos;
    EXPECT_EQ(said, overloaded) << verdict.overload;
  }
}

/// `it sustains 20 req/s of this load, the base a 8 req/s` has what both sustain.
void expect_true_headline(const PageRun& run, const Verdict& verdict) {
  static const std::regex kSustains(
      "it sustains (\\S+ req/s) of this load, (?:the base |the runner-up )?([a-d]) (\\S+ req/s)");
  const std::string text = plain_spaces(verdict.headline);
  std::smatch m;
  if (!std::regex_search(text, m, kSustains)) return;
  const double mine = *named(run, verdict.winner).capacity->rate;
  const double theirs = *named(run, m[2]).capacity->rate;
  EXPECT_EQ(m[1], shown(mine, Unit::kRequestsPerSecond)) << text;
  EXPECT_EQ(m[3], shown(theirs, Unit::kRequestsPerSecond)) << text;
  EXPECT_GT(mine, theirs) << text;
}

TEST(VerdictClaims, AreTrueOfRandomRuns) {
  std::size_t winners = 0, sustained = 0, lines = 0;
  for (std::uint64_t n = 0; n < 2'000; ++n) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", run " + std::to_string(n));
    const PageRun run = RandomRun(n).run;
    const Verdict verdict = verdict_of(run);
    expect_no_false_hold(run, verdict);
    expect_true_stages(run, verdict);
    expect_true_winner(run, verdict);
    expect_true_overload(run, verdict);
    expect_true_headline(run, verdict);
    for (const VerdictLine& line : verdict.lines) expect_true_line(run, line, verdict.winner);
    winners += verdict.winner.empty() ? 0 : 1;
    sustained += plain_spaces(verdict.headline).find("it sustains") != std::string::npos ? 1 : 0;
    lines += verdict.lines.size();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(winners, 200U);
  EXPECT_GT(sustained, 50U);
  EXPECT_GT(lines, 1'000U);
}

}  // namespace
}  // namespace routesim::tools
