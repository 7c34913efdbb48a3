#include "workloads/sessions/record_filter.h"

#include <gtest/gtest.h>

#include <sstream>

#include "workloads/sessions/otel_trace.h"
#include "workloads/sessions/weka_trace.h"

namespace routesim::workloads {
namespace {

constexpr const char* kRecord =
    R"({"benchmark": "gsm8k", "max_tokens": 900, "spans": [{"a": 1}, {"a": 2}], "none": null})";

/// "yes", "no", or what is wrong.
std::string result(const std::string& expression) {
  std::string problem;
  const auto filter = RecordFilter::parse("lambda x: " + expression, problem);
  if (!filter) return problem;
  const auto keeps = filter->keeps(*parse_value(kRecord), problem);
  return !keeps ? problem : *keeps ? "yes" : "no";
}

TEST(RecordFilter, ComparesAsPythonDoes) {
  EXPECT_EQ(result("x['benchmark'] == 'gsm8k'"), "yes");
  EXPECT_EQ(result("'spans' in x and len(x['spans']) > 5"), "no");
  EXPECT_EQ(result("\"other\" in x or not x['max_tokens'] >= 901"), "yes");
  EXPECT_EQ(result("100 < x['max_tokens'] <= 9_00"), "yes");
  EXPECT_EQ(result("0 < x['max_tokens'] < 900.0"), "no");
  EXPECT_EQ(result("x.get('none') != None"), "no");
  EXPECT_EQ(result("x.get('nothing', 7) == 7"), "yes");
  EXPECT_EQ(result("x['spans'][-1]['a'] == 2 and 'sm8' in x['benchmark']"), "yes");
  EXPECT_EQ(result("x['benchmark'] not in x and (x['max_tokens'] or False)"), "yes");
  EXPECT_EQ(result("not not x['spans']"), "yes");
  EXPECT_EQ(result("x['benchmark'] < 'h'"), "yes");
  EXPECT_EQ(result("-1 == -1 and True"), "yes");
  EXPECT_EQ(result("x['benchmark'] in ['a', 'gsm8k']"), "yes");
  EXPECT_EQ(result("x['benchmark'] in ('a', 'b',) or x['max_tokens'] in []"), "no");
}

TEST(RecordFilter, FailsWherePythonRaises) {
  EXPECT_EQ(result("x['nothing'] > 5"), "no key \"nothing\"");
  EXPECT_EQ(result("x['benchmark'] > 5"), "values that > does not compare");
  EXPECT_EQ(result("len(x['max_tokens']) > 5"), "no length");
  EXPECT_EQ(result("x['spans'][2]"), "no item 2");
  EXPECT_EQ(result("'nothing' in x and x['nothing'] > 5"), "no")
      << "the right side is not looked at";
}

TEST(RecordFilter, SaysFromWhereOnItDoesNotUnderstand) {
  EXPECT_EQ(result("any(x)"), "cannot be evaluated from character 11 on");
  EXPECT_EQ(result("x['a'] +"), "cannot be evaluated from character 18 on");
  EXPECT_EQ(result("x['a"), "cannot be evaluated from character 15 on");
  EXPECT_EQ(result(std::string(100, '(') + "1"), "cannot be evaluated from character 75 on");
  std::string problem;
  EXPECT_FALSE(RecordFilter::parse("x['a'] == 1", problem).has_value());
}

TEST(RecordFilter, SelectsTracesByWhatTheToolAdds) {
  inference_perf::WekaTraceReplay settings;
  settings.filter = "lambda t: t['max_tokens'] < 100 and t['num_turns'] == 2 and t['kind'] == 'k'";
  const auto trace = [](const std::string& id, int second) {
    return R"({"id": ")" + id + R"(", "kind": "k", "block_size": 4, "requests": [)" +
           R"({"t": 0, "type": "n", "in": 3, "out": 2}, {"t": 1, "type": "n", "in": )" +
           std::to_string(second) + R"(, "out": 2}]})" + "\n";
  };
  Diagnostics d;
  const auto reader = make_weka_reader(settings);
  std::istringstream in(trace("a", 98) + trace("b", 97));
  reader->read(in, "t.jsonl", true, d);
  const ReplayCorpus corpus = reader->take();
  ASSERT_EQ(corpus.sessions.size(), 1U);
  EXPECT_EQ(corpus.sessions[0].name, "b");
  EXPECT_FALSE(d.has_errors());
}

TEST(RecordFilter, SelectsSpansByWhatTheToolAdds) {
  inference_perf::OtelTraceReplay settings;
  settings.filter = "lambda x: x['total_tokens'] == 12 and 'm' in x['models']";
  const std::string record =
      R"({"spans": [{"span_id": "1", "name": "chat m", "start_time": "2026-01-01T00:00:00Z",
          "attributes": {"gen_ai.input.messages": [{"role": "user", "content": "a"}],
          "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 7,
          "gen_ai.usage.output_tokens": 5}}]})";
  const auto kept = [&](const std::string& filter) {
    settings.filter = filter;
    Diagnostics d;
    const auto reader = make_otel_reader(settings);
    std::istringstream in(record);
    reader->read(in, "t.json", false, d);
    if (d.has_errors()) return to_string(d.items()[0]);
    return std::to_string(reader->take().sessions.size());
  };
  EXPECT_EQ(kept(*settings.filter), "1");
  EXPECT_EQ(kept("lambda x: x['harness'] != 'unknown'"), "0");
  EXPECT_EQ(kept("lambda x: x['tier'] == 1"),
            "t.json:1:0: error: the filter fails on this record: no key \"tier\"");
}

}  // namespace
}  // namespace routesim::workloads
