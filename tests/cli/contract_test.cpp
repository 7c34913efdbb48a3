// Every number of `run --output json`, by value. Each test schedules a handful of requests by hand,
// on servers whose steps all take 10 ms, and expects the whole report: a number without an expected
// value fails, and so does an expected value without a number.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/cli_fixture.h"

namespace routesim::tools::testing {
namespace {

using Json = nlohmann::json;

/// A number, and how far off it may be: rounding to nanoseconds, unless said otherwise.
struct Value {
  double value = 0;
  double room = 1e-9;
};
using Table = std::map<std::string, Value>;

/// inference-perf's default percentiles, and the levels of `quantiles`.
const std::map<std::string, double> kPercentiles = {
    {"p0.1", 0.1}, {"p1", 1},   {"p5", 5},   {"p10", 10}, {"p25", 25},    {"median", 50},
    {"p75", 75},   {"p90", 90}, {"p95", 95}, {"p99", 99}, {"p99.9", 99.9}};
const std::vector<double> kLevels = {0,  0.5, 1,    2,  3,  5,  7.5, 10,   15,   20,   25,
                                     30, 35,  40,   45, 50, 55, 60,  65,   70,   75,   80,
                                     85, 90,  92.5, 95, 97, 98, 99,  99.5, 99.8, 99.9, 100};

/// numpy.percentile(values, q): linear interpolation between order statistics.
Value percentile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double rank = q / 100 * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(rank);
  const double next = values[std::min(low + 1, values.size() - 1)];
  return {values[low] + (next - values[low]) * (rank - static_cast<double>(low))};
}

/// The same of gaps between tokens, which are counted in buckets of 1/512 relative width: the order
/// statistic below, off by a bucket at most. Exact while all gaps are equal.
Value bucketed(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const bool equal = values.front() == values.back();
  const double rank = q / 100 * static_cast<double>(values.size() - 1);
  const double v = values[static_cast<std::size_t>(rank)];
  return {v, equal ? 1e-9 : v / 512};
}

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum;
}

/// mean, min, max and percentiles of `values`; null when there are none.
void expect_samples(Table& table, const std::string& path, const std::vector<double>& values,
                    Value (*quantile)(std::vector<double>, double) = percentile) {
  if (values.empty()) return;
  table[path + "/mean"] = {sum_of(values) / static_cast<double>(values.size())};
  table[path + "/min"] = {*std::min_element(values.begin(), values.end())};
  table[path + "/max"] = {*std::max_element(values.begin(), values.end())};
  for (const auto& [key, q] : kPercentiles) table[path + "/" + key] = quantile(values, q);
}

/// A request as the hand schedule has it; times in ms.
struct Done {
  double due = 0, sent = 0, first = 0, end = 0;
  double prompt = 0, output = 0, cached = 0;
};

/// A stage as the hand schedule has it; times in ms.
struct Stage {
  std::vector<Done> successes{};
  std::vector<Done> failed{};  ///< Their due, sent and end.
  std::vector<double> gaps{};  ///< Between tokens.
  std::map<std::string, double> failures{};
  double requested_rate = 0;
  double concurrency = 0;    ///< 0 = none.
  double block_ms = 0;       ///< KV blocks in use over time, all servers together.
  double usable_blocks = 0;  ///< Of all servers.
  double usage_max = 0;
  double preemptions = 0;
  bool overloaded = false;
  bool reported = true;
  bool summary = false;

  template <typename Get>
  std::vector<double> each(Get get) const {
    std::vector<double> out;
    for (const Done& d : successes) out.push_back(get(d));
    return out;
  }
  std::vector<Done> sent() const {
    std::vector<Done> all = successes;
    all.insert(all.end(), failed.begin(), failed.end());
    return all;
  }
  double first_send() const {
    double at = 1e18;
    for (const Done& d : sent()) at = std::min(at, d.sent);
    return at;
  }
  double last_send() const {
    double at = 0;
    for (const Done& d : sent()) at = std::max(at, d.sent);
    return at;
  }
  double total_ms() const {
    double at = 0;
    for (const Done& d : sent()) at = std::max(at, d.end);
    return at - first_send();
  }
};

void expect_load(Table& table, const std::string& path, const Stage& s) {
  const auto count = static_cast<double>(s.sent().size());
  std::vector<double> delays;
  for (const Done& d : s.sent()) delays.push_back((d.sent - d.due) / 1e3);
  table[path + "/benchmark_time_seconds"] = {s.total_ms() / 1e3};
  table[path + "/load_summary/count"] = {count};
  expect_samples(table, path + "/load_summary/schedule_delay", delays);
  const double duration = (s.last_send() - s.first_send()) / 1e3;
  if (s.summary) {
    if (duration > 0) table[path + "/requests_per_sec_sent"] = {count / duration};
    return;
  }
  table[path + "/load_summary/send_duration"] = {duration};
  table[path + "/load_summary/requested_rate"] = {s.requested_rate};
  if (duration > 0) table[path + "/load_summary/achieved_rate"] = {count / duration};
  if (s.concurrency > 0) table[path + "/load_summary/concurrency"] = {s.concurrency};
}

void expect_latencies(Table& table, const std::string& path, const Stage& s) {
  const auto latency = s.each([](const Done& d) { return (d.end - d.sent) / 1e3; });
  const auto ttft = s.each([](const Done& d) { return (d.first - d.sent) / 1e3; });
  const auto ntpot = s.each([](const Done& d) { return (d.end - d.sent) / 1e3 / d.output; });
  std::vector<double> tpot, itl;
  for (const Done& d : s.successes)
    if (d.output > 1) tpot.push_back((d.end - d.first) / 1e3 / (d.output - 1));
  for (const double gap : s.gaps) itl.push_back(gap / 1e3);
  const std::string place = path + "/successes/latency/";
  expect_samples(table, place + "request_latency", latency);
  expect_samples(table, place + "time_to_first_token", ttft);
  expect_samples(table, place + "normalized_time_per_output_token", ntpot);
  expect_samples(table, place + "time_per_output_token", tpot);
  expect_samples(table, place + "inter_token_latency", itl, bucketed);
  for (std::size_t i = 0; i < kLevels.size(); ++i) {
    const auto at = [&](const char* metric) {
      return path + "/quantiles/" + metric + "/" + std::to_string(i);
    };
    table[at("request_latency")] = percentile(latency, kLevels[i]);
    table[at("time_to_first_token")] = percentile(ttft, kLevels[i]);
    if (!tpot.empty()) table[at("time_per_output_token")] = percentile(tpot, kLevels[i]);
    if (!itl.empty()) table[at("inter_token_latency")] = bucketed(itl, kLevels[i]);
  }
}

void expect_tokens(Table& table, const std::string& path, const Stage& s) {
  const auto prompts = s.each([](const Done& d) { return d.prompt; });
  const auto outputs = s.each([](const Done& d) { return d.output; });
  const double input = sum_of(prompts), output = sum_of(outputs);
  const double cached = sum_of(s.each([](const Done& d) { return d.cached; }));
  const double seconds = s.total_ms() / 1e3;
  const std::string place = path + "/successes/";
  table[place + "count"] = {static_cast<double>(s.successes.size())};
  table[place + "throughput/input_tokens_per_sec"] = {input / seconds};
  table[place + "throughput/output_tokens_per_sec"] = {output / seconds};
  table[place + "throughput/total_tokens_per_sec"] = {(input + output) / seconds};
  table[place + "throughput/requests_per_sec"] = {static_cast<double>(prompts.size()) / seconds};
  for (const char* key : {"prompt_len", "prompt_tokens"})
    expect_samples(table, place + key, prompts);
  for (const char* key : {"output_len", "output_tokens"})
    expect_samples(table, place + key, outputs);
  table[place + "prompt_tokens/total"] = {input};
  table[place + "prompt_tokens/cached"] = {cached};
  table[place + "prompt_tokens/uncached"] = {input - cached};
  table[place + "output_tokens/total"] = {output};
  table[path + "/prefix_hit_ratio"] = {cached / input};
}

void expect_stage(Table& table, const std::string& path, const Stage& s) {
  if (!s.summary) table[path + "/reported"] = {s.reported ? 1.0 : 0.0};
  expect_load(table, path, s);
  expect_latencies(table, path, s);
  expect_tokens(table, path, s);
  table[path + "/failures/count"] = {static_cast<double>(s.failed.size())};
  for (const auto& [label, n] : s.failures)
    table[path + "/failures/by_label/" + label + "/count"] = {n};
  table[path + "/kv_cache_usage/mean"] = {s.block_ms / s.usable_blocks / s.total_ms()};
  table[path + "/kv_cache_usage/max"] = {s.usage_max};
  table[path + "/preemptions"] = {s.preemptions};
  table[path + "/overloaded"] = {s.overloaded ? 1.0 : 0.0};
  if (s.summary || s.overloaded || s.successes.empty()) return;
  // Few requests do not tell how fast a queue grows: a hundred times as many may. A load without a
  // rate needs three of its answers.
  const auto latency = s.each([](const Done& d) { return (d.end - d.sent) / 1e3; });
  const double answers = 3 * sum_of(latency) / static_cast<double>(latency.size());
  const double duration = (s.last_send() - s.first_send()) / 1e3;
  const bool tells = s.requested_rate <= 0 && duration >= answers;
  if (duration > 0 && !tells)
    table[path + "/steady_state/telling_s"] = {
        s.requested_rate > 0 ? std::max(answers, 100 * duration) : answers};
}

/// What a report has beside its variants' results, and the routing of `requests` requests.
Table run_table() {
  Table table = {{"/seed", {1}}, {"/verdict/close", {0}}};
  for (std::size_t i = 0; i < kLevels.size(); ++i)
    table["/quantile_levels/" + std::to_string(i)] = {kLevels[i]};
  return table;
}

void expect_fields(Table& table, const std::string& path,
                   const std::map<std::string, double>& fields) {
  for (const auto& [key, value] : fields) table[path + "/" + key] = {value};
}

/// A router that neither refuses nor foresees nor splits; hits are of all requests.
void expect_routing(Table& table, double decisions, double hit_tokens, double prompt_tokens) {
  expect_fields(table, "/variants/0/routing",
                {{"prefix_hit_ratio", hit_tokens / prompt_tokens},
                 {"decisions", decisions},
                 {"rejected", 0},
                 {"predicted_hit_tokens", 0},
                 {"hit_tokens", hit_tokens},
                 {"prompt_tokens", prompt_tokens},
                 {"disaggregated", 0}});
}

/// The numbers of one server, in the order of the report.
void expect_server(Table& table, const std::string& index, const std::array<double, 13>& values) {
  constexpr std::array<const char*, 13> kKeys = {"requests",
                                                 "steps",
                                                 "busy_s",
                                                 "prefix_query_tokens",
                                                 "prefix_hit_tokens",
                                                 "preemptions",
                                                 "num_gpu_blocks",
                                                 "kv_cache_tokens",
                                                 "evicted_blocks",
                                                 "kv_cache_usage/mean",
                                                 "kv_cache_usage/max",
                                                 "max_running",
                                                 "max_waiting"};
  for (std::size_t i = 0; i < kKeys.size(); ++i)
    table["/variants/0/replicas/" + index + "/" + kKeys[i]] = {values[i]};
}

/// Compares every number and every yes or no of `json` but the echo of the scenario (`resolved`).
class Comparison {
 public:
  explicit Comparison(Table expected) : expected_(std::move(expected)) {}

  void run(const Json& json) {
    walk(json, "");
    for (const auto& [path, value] : expected_)
      EXPECT_TRUE(seen_.contains(path)) << path << " is not in the report";
  }

 private:
  void walk(const Json& json, const std::string& path) {
    if (json.is_structured()) {
      for (const auto& [key, value] : json.items())
        if (key != "resolved") walk(value, path + "/" + key);
      return;
    }
    if (!json.is_number() && !json.is_boolean()) return;
    const auto found = expected_.find(path);
    if (found == expected_.end()) {
      if (path.find("/trust/") == std::string::npos)
        ADD_FAILURE() << path << " has no expected value, it is " << json;
      return;
    }
    seen_.insert(path);
    const double is = json.is_boolean() ? (json.get<bool>() ? 1 : 0) : json.get<double>();
    const Value& v = found->second;
    EXPECT_NEAR(is, v.value, v.room + 1e-12 * std::abs(v.value)) << path;
  }

  Table expected_;
  std::set<std::string> seen_;
};

class Contract : public Cli {
 protected:
  /// Runs a scenario on `servers` metronomes of 10 ms, with what `engine` says. A block of 16
  /// tokens (2,359,296 bytes) takes 0.44 us and its bytes over the host's link: 1 ms.
  Json report(const std::string& load, const std::string& servers, const std::string& engine,
              const std::string& trace = "", bool capacity = false) {
    write("metronome.yaml",
          "accelerators:\n"
          "- {name: Metronome, source: made up, bf16_tflops: 100, memory_bytes: 80e9,\n"
          "   memory_tb_per_s: 1, link_gb_per_s: 50, nic_gb_per_s: 10, host_link_gb_per_s: "
          "2.36033454720077}\n"
          "curves:\n"
          "- {accelerator: Metronome, model: Qwen3-8B, parameters: {step_ms: 10},\n"
          "   provenance: made up}\n");
    const std::string file =
        write("s.yaml", "name: by-hand\ncatalogue: [metronome.yaml]\n" + load +
                            "cluster:\n"
                            "  pools:\n"
                            "  - name: vllm\n"
                            "    accelerator: Metronome\n"
                            "    model: Qwen3-8B\n"
                            "    replicas: " +
                            servers + "\n    engine: {block_size: 16, async_scheduling: false, " +
                            engine +
                            "}\n"
                            "    api_server: {request_time: 0s, prompt_token_time: 0s}\n"
                            "routing: {balancer: round-robin, decision_latency: 0s}\n");
    std::vector<std::string> words = {"run",     file, "--no-kv-band", "--quiet",
                                      "--check", "-o", "json"};
    if (!capacity) words.push_back("--no-capacity");
    if (!trace.empty()) words.insert(words.end(), {"-o", "trace=" + trace});
    const Result run = this->run(words);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.code == 0 ? Json::parse(run.out) : Json();
  }
};

// Two servers of 6 usable blocks, in turns; a request waits for the step that runs when it comes.
//
// vllm-0:   0  request 0 (32 tokens, 4 out): tokens at 10, 20, 30, 40. 2 blocks, from its second
//              step on 3: 2 * 10 + 3 * 30 = 110 block-ms.
//         100  request 2 (48, 2 out) shares 32 tokens with request 0: hits them. Tokens at 110,
//         120;
//              3 blocks, then 4: 70 block-ms.
//         200  request 4 (16, 40 out): a token every 10 ms until its client gives up at 500, after
//              30 steps and 29 gaps. 1 block in step 1, 2 in steps 2 to 17, 3 from step 18 (33
//              tokens) on: 10 + 320 + 390 = 720 block-ms. Step 31 begins at 500, before the abort
//              is read.
//         200  request 6 (32, 2 out) waits for step 210 to 220: tokens at 220, 230. It has the
//              prompt of request 0, whose last token is always computed, and so its last block:
//              hits
//              16. 2 blocks, then 3: 50 block-ms. Its third block is that which request 2 filled
//              last; the third of request 4 is the second of request 0: 2 evictions.
// vllm-1:   5  request 1 (48, 3 out): tokens at 15, 25, 35. 3, 4 and 4 blocks: 110 block-ms.
//         100  request 3: its 112 tokens are over max_model_len, so it is refused at once.
//         200  request 5 (32, 20 out): tokens at 210, ..., 400. 2 blocks, 3 in steps 2 to 17, 4
//         from
//              step 18 (49 tokens, at 370) on.
//         200  request 7 (32, 20 out) starts at 210: tokens at 220, ..., 370, which makes 16. At
//         370
//              all 6 blocks are in use and request 5 needs one: request 7 is preempted. Its prompt
//              is still there when request 5 ends at 400; it computes 16 tokens, and its others
//              come at 410 (a gap of 40), 420, 430 and 440. Both: 2 * 10 + 5 * 10 + 6 * 150 + 4 *
//              30 + 3 * 10 + 4 * 30 = 1240 block-ms. Evictions: the prompt of request 1 (3 blocks)
//              in the steps from 210 and 220; the full third block of request 5 when request 7
//              takes a fourth, at 410.
TEST_F(Contract, FailuresHitsAndAPreemption) {
  write("t.jsonl",
        R"({"timestamp": 0, "input_length": 32, "output_length": 4, "hash_ids": [1, 2]}
{"timestamp": 5, "input_length": 48, "output_length": 3, "hash_ids": [3, 4, 5]}
{"timestamp": 100, "input_length": 48, "output_length": 2, "hash_ids": [1, 2, 6]}
{"timestamp": 100, "input_length": 112, "output_length": 2, "hash_ids": [7, 8, 9, 10, 11, 12, 13]}
{"timestamp": 200, "input_length": 16, "output_length": 40, "hash_ids": [21]}
{"timestamp": 200, "input_length": 32, "output_length": 20, "hash_ids": [31, 32]}
{"timestamp": 200, "input_length": 32, "output_length": 2, "hash_ids": [1, 2]}
{"timestamp": 200, "input_length": 32, "output_length": 20, "hash_ids": [33, 34]}
)");
  Stage stage;
  stage.successes = {{0, 0, 10, 40, 32, 4, 0},        {5, 5, 15, 35, 48, 3, 0},
                     {100, 100, 110, 120, 48, 2, 32}, {200, 200, 210, 400, 32, 20, 0},
                     {200, 200, 220, 230, 32, 2, 16}, {200, 200, 220, 440, 32, 20, 0}};
  stage.failed = {{.due = 100, .sent = 100, .end = 100}, {.due = 200, .sent = 200, .end = 500}};
  stage.failures = {{"prompt_too_long", 1}, {"TimeoutError", 1}};
  // Of requests 0, 1, 2, 5, 6 and 7, and those of request 4, which count although it failed.
  stage.gaps = std::vector<double>(3 + 2 + 1 + 19 + 1 + 18 + 29, 10);
  stage.gaps.push_back(40);
  stage.requested_rate = 40;  // 8 requests in 0.2 s
  stage.block_ms = 110 + 70 + 720 + 50 + 110 + 1240;
  stage.usable_blocks = 12;
  stage.usage_max = 1;
  stage.preemptions = 1;
  Table table = run_table();
  expect_stage(table, "/variants/0/stages/0", stage);
  stage.summary = true;
  expect_stage(table, "/variants/0/summary", stage);
  // 32 + 48 + 48 + 112 + 16 + 32 + 32 + 32 tokens were sent, those of failures included.
  expect_routing(table, 8, 48, 352);
  // Most blocks of vllm-0 are in use from 220 to 230: 2 of request 4 and 3 of request 6.
  expect_server(table, "0",
                {4, 4 + 2 + 31, 0.36, 32 + 48 + 16 + 32, 48, 0, 7, 7 * 16, 2, 950.0 / 6 / 500,
                 5.0 / 6, 2, 1});
  expect_server(table, "1",
                {4, 3 + 24, 0.27, 48 + 32 + 32, 0, 1, 7, 7 * 16, 4, 1350.0 / 6 / 500, 1, 2, 1});
  table["/variants/0/simulated_s"] = {0.5};
  Comparison(table).run(
      report("workload:\n"
             "  trace: {file: t.jsonl, format: mooncake, hash_block_tokens: 16, timeout_s: 0.3}\n",
             "2", "num_gpu_blocks: 7, max_model_len: 96"));
}

/// Every slice of a trace on the tracks that `title` begins: its start and length in ms, its bytes.
std::vector<std::array<double, 3>> slices(const Json& trace, const std::string& title) {
  std::set<std::pair<int, int>> tracks;
  for (const Json& e : trace["traceEvents"])
    if (e["name"] == "thread_name" && e["args"]["name"].get<std::string>().starts_with(title))
      tracks.emplace(e["pid"], e["tid"]);
  std::vector<std::array<double, 3>> found;
  for (const Json& e : trace["traceEvents"])
    if (e["ph"] == "X" && tracks.contains({e["pid"], e["tid"]}))
      found.push_back({e["ts"].get<double>() / 1e3, e["dur"].get<double>() / 1e3,
                       e["args"]["bytes"].get<double>()});
  return found;
}

/// What the tier of ATierInHostMemory did, whose blocks have so many bytes.
void expect_tiers(Table& table, double block) {
  for (const char* at : {"/variants/0/kv_tiers", "/variants/0/replicas/0/kv_tiers"})
    expect_fields(table, at,
                  {{"hit_ratio", 48.0 / 288},
                   {"hbm_query_tokens", 288},
                   {"hbm_hit_tokens", 64},
                   {"query_tokens", 48 + 96 + 64 + 16},
                   {"hit_tokens", 48},
                   {"loads", 1},
                   {"loaded_bytes", 3 * block},
                   {"stored_chunks", 3 + 6 + 1 + 1},
                   {"stored_bytes", 11 * block},
                   {"evicted_chunks", 2},
                   {"refused_stores", 0},
                   {"pulls", 0},
                   {"pulls_arrived", 0},
                   {"pulls_failed", 0},
                   {"pulls_served", 0},
                   {"pulled_bytes", 0},
                   {"load_wait_s/count", 1},
                   {"load_wait_s/mean", 0.003},
                   {"load_wait_s/max", 0.003},
                   {"pull_wait_s/count", 0},
                   {"pull_wait_s/mean", 0},
                   {"pull_wait_s/max", 0},
                   {"capacity_bytes", 9 * block},
                   {"used_bytes", 9 * block},
                   {"link_use/to_gpus", 3.0 / 310},
                   {"link_use/to_host", (3.0 + 6 + 1) / 310},
                   {"link_use/host_memory", 13 * block / (460e9 * 0.310)},
                   {"link_use/nic_out", 0},
                   {"link_use/nic_in", 0}});
}

// One server with 11 usable blocks, room for 11 in its host, and one thread that reads or writes a
// block in 1 ms.
//
//    0  request 0 (10 blocks) asks the files until 1. Its step ends at 11; its blocks are in the
//       host by 21 and in files by 31.
//   50  request 1 (11 blocks) asks until 51, and takes all of GPU and host memory.
//  150  request 2 (11) has the prompt of request 0 and a block more: known at 151, in host memory
//       at 161. The run ends before its own block is written.
TEST_F(Contract, ATierInFiles) {
  write("t.jsonl",
        R"({"timestamp": 0, "input_length": 160, "output_length": 1, "hash_ids": [1,2,3,4,5,6,7,8,)"
        R"(9,10]}
{"timestamp": 50, "input_length": 176, "output_length": 1, "hash_ids": [21,22,23,24,25,26,27,28,)"
        R"(29,30,31]}
{"timestamp": 150, "input_length": 176, "output_length": 1, "hash_ids": [1,2,3,4,5,6,7,8,9,10,11]}
)");
  constexpr double kBlock = 36 * 2 * 8 * 128 * 2 * 16;
  const Json made = report(
      "workload:\n"
      "  trace: {file: t.jsonl, format: mooncake, hash_block_tokens: 16}\n",
      "1",
      "preset: 2026-H2, num_gpu_blocks: 12, kv_tiers: {cpu_chunks: 11, disk: {root: /kv, "
      "read_threads: 1, write_threads: 1, thread_gb_per_s: 2.359296}}");
  for (const Json& tiers :
       {made["variants"][0]["kv_tiers"], made["variants"][0]["replicas"][0]["kv_tiers"]}) {
    EXPECT_EQ(tiers["disk_lookups"], 3);
    EXPECT_EQ(tiers["disk_reads"], 1);
    EXPECT_EQ(tiers["disk_read_bytes"], 10 * kBlock);
    EXPECT_EQ(tiers["disk_writes"], 2);
    EXPECT_EQ(tiers["disk_wait_s"]["count"], 3);
    EXPECT_NEAR(tiers["disk_wait_s"]["mean"], 0.013 / 3, 1e-9);
    EXPECT_NEAR(tiers["disk_wait_s"]["max"], 0.011, 1e-9);
  }
}

// One server with 6 usable blocks and room for 9 in its host. A block of Qwen3-8B is 36 layers * 2
// * 8 heads * 128 * 2 bytes * 16 tokens, and moves between GPU and host in 1 ms.
//
//    0  request 0 (48 tokens): a step to 10, then its 3 blocks go to the host, until 13.
//  100  request 1 (96) takes all 6 blocks, the 3 of request 0 among them: 3 evictions. A step to
//       110; 6 blocks go to the host until 116, which is full with them.
//  200  request 2 (64) has the prompt of request 0 and a block more. It finds nothing of it in GPU
//       memory, 3 blocks in the host, and waits for them until 203. A step to 213 with 4 blocks,
//       which request 1 filled: 4 evictions. The new block goes to the host, until 214, in the
//       place of one of request 1.
//  300  request 3 (80) has the prompt of request 2 and a block more: hits 64 tokens in GPU memory,
//       so that 16 are looked up in the host. A step to 310, an eviction; the run ends before its
//       new block, for which one of request 1 gives way, is in the host.
TEST_F(Contract, ATierInHostMemory) {
  write("t.jsonl",
        R"({"timestamp": 0, "input_length": 48, "output_length": 1, "hash_ids": [1, 2, 3]}
{"timestamp": 100, "input_length": 96, "output_length": 1, "hash_ids": [11, 12, 13, 14, 15, 16]}
{"timestamp": 200, "input_length": 64, "output_length": 1, "hash_ids": [1, 2, 3, 4]}
{"timestamp": 300, "input_length": 80, "output_length": 1, "hash_ids": [1, 2, 3, 4, 5]}
)");
  constexpr double kBlock = 36 * 2 * 8 * 128 * 2 * 16;
  Stage stage;
  stage.successes = {{0, 0, 10, 10, 48, 1, 0},
                     {100, 100, 110, 110, 96, 1, 0},
                     {200, 200, 213, 213, 64, 1, 48},
                     {300, 300, 310, 310, 80, 1, 64}};
  stage.requested_rate = 4 / 0.3;
  stage.block_ms = 3 * 10 + 6 * 10 + (3 * 3 + 4 * 10) + 5 * 10;
  stage.usable_blocks = 6;
  stage.usage_max = 1;
  Table table = run_table();
  expect_stage(table, "/variants/0/stages/0", stage);
  stage.summary = true;
  expect_stage(table, "/variants/0/summary", stage);
  expect_routing(table, 4, 48 + 64, 288);
  expect_server(table, "0",
                {4, 4, 0.04, 288, 64, 0, 7, 7 * 16, 3 + 4 + 1, stage.block_ms / 6 / 310, 1, 1, 1});
  expect_tiers(table, kBlock);
  table["/variants/0/simulated_s"] = {0.31};
  const std::string trace = (folder_ / "trace.json").string();
  Comparison(table).run(
      report("workload:\n"
             "  trace: {file: t.jsonl, format: mooncake, hash_block_tokens: 16}\n",
             "1", "preset: 2026-H2, num_gpu_blocks: 7, kv_tiers: {cpu_gib: 0.0198}", trace));
  const Json drawn = Json::parse(slurp(trace));
  using Slices = std::vector<std::array<double, 3>>;
  EXPECT_EQ(slices(drawn, "loads of"), (Slices{{200, 3, 3 * kBlock}}));
  EXPECT_EQ(slices(drawn, "stores of"),
            (Slices{{10, 3, 3 * kBlock}, {110, 6, 6 * kBlock}, {213, 1, kBlock}}));
}

/// Shares of successes that met each goal, as inference-perf counts them, and goodput as
/// docs/metrics.md has it. Every good request has 16 + 3 tokens.
void expect_goodput(Table& table, const std::string& path, double seconds, double total,
                    double good, double ttft, double ntpot, double latency) {
  expect_fields(table, path + "/goodput",
                {{"good_requests", good},
                 {"sent_requests", total},
                 {"percentage", 100 * good / total},
                 {"requests_per_sec", good / seconds},
                 {"output_tokens_per_sec", 3 * good / seconds}});
  expect_fields(table, path + "/successes/goodput_metrics",
                {{"goodput_percentage", 100 * good / total},
                 {"request_goodput", good / seconds},
                 {"token_goodput", 19 * good / seconds},
                 {"good_requests", good},
                 {"total_requests", total},
                 {"ttft_attainment_percentage", 100 * ttft / total},
                 {"tpot_attainment_percentage", 100},
                 {"ntpot_attainment_percentage", 100 * ntpot / total},
                 {"request_latency_attainment_percentage", 100 * latency / total}});
}

/// The requests of TwoRunsWithGoalsAndPublishedNumbers: its warm-ups and its two runs.
Stage warm_up(double at) {
  Stage s;
  s.successes = {{at, at, at + 10, at + 30, 16, 3, 0}};
  s.gaps = {10, 10};
  s.block_ms = 50;
  s.usable_blocks = 10;
  s.usage_max = 0.2;
  s.reported = false;
  return s;
}

Stage run_of_40() {
  Stage s;
  s.successes = {
      {55, 55, 65, 85, 16, 3, 0}, {80, 80, 95, 115, 16, 3, 0}, {105, 105, 125, 145, 16, 3, 0}};
  s.gaps = std::vector<double>(6, 10);
  s.requested_rate = 40;
  s.block_ms = 150;
  s.usable_blocks = 10;
  s.usage_max = 0.2;
  return s;
}

Stage run_of_100() {
  Stage s;
  s.successes = {{185, 185, 195, 215, 16, 3, 0},
                 {195, 195, 215, 235, 16, 3, 0},
                 {205, 215, 235, 255, 16, 3, 0}};
  s.gaps = std::vector<double>(6, 10);
  s.requested_rate = 100;
  s.concurrency = 2;
  s.block_ms = 150;
  s.usable_blocks = 10;
  s.usage_max = 0.3;
  return s;
}

// One server of 10 usable blocks; prompts of 16 tokens, answers of 3: 1 block in the first step, 2
// in the two after it, 50 block-ms in all. Gaps between arrivals are even, and one stands before
// the first. Each run follows a copy of the first request, sent alone.
//
//    0  warm-up: tokens at 10, 20, 30.
//   30  run of 40 requests/s. 55: tokens at 65, 75, 85. 80, in the step until 85: 95, 105, 115.
//       105, when the next step has just begun: 125, 135, 145.
//  145  warm-up: 155, 165, 175.
//  175  run of 100 requests/s, at most 2 at a time. 185: tokens at 195, 205, 215. 195, when a step
//       has just begun: 215, 225, 235. Due at 205, sent when the first ends at 215, when a step has
//       just begun: 235, 245, 255. From 205 to 215 and from 225 to 235 it is 2 + 1 blocks.
//
// The first five requests take the 10 blocks; the three of the second run each find a block without
// a key and one with the prompt of an older request, in this order: 3 evictions.
TEST_F(Contract, TwoRunsWithGoalsAndPublishedNumbers) {
  write("m.csv",
        "experiment,policy,stage,rate,metric,statistic,unit,value,source\n"
        "by_hand,service,rate40,40,ttft,mean,ms,12,by hand\n"
        "by_hand,service,all,,output_throughput,simple_mean,tok/s,90,by hand\n");
  const Stage first = run_of_40(), second = run_of_100();
  Stage all = first;
  all.successes.insert(all.successes.end(), second.successes.begin(), second.successes.end());
  all.gaps.resize(12, 10);
  all.usage_max = 0.3;
  all.summary = true;
  // The mean over the time of the stages, 90 + 70 ms, not over what lies between them.
  all.block_ms = 300.0 / 160 * all.total_ms();
  Table table = run_table();
  expect_stage(table, "/variants/0/stages/0", first);
  expect_stage(table, "/variants/0/stages/1", second);
  expect_stage(table, "/variants/0/summary", all);
  expect_stage(table, "/variants/0/preparation/0", warm_up(0));
  Stage last = warm_up(145);
  last.concurrency = 2;
  expect_stage(table, "/variants/0/preparation/1", last);
  // TTFT 10, 15, 20 and 10, 20, 20 ms; latencies 30, 35, 40 and 30, 40, 40 ms, a third per token.
  expect_goodput(table, "/variants/0/stages/0", 0.09, 3, 1, 2, 2, 1);
  expect_goodput(table, "/variants/0/stages/1", 0.07, 3, 1, 1, 1, 1);
  expect_goodput(table, "/variants/0/summary", 0.2, 6, 2, 3, 3, 2);
  for (const char* i : {"0", "1"})
    expect_goodput(table, std::string("/variants/0/preparation/") + i, 0.03, 1, 1, 1, 1, 1);
  expect_fields(table, "/variants/0/goodput_goals",
                {{"ttft", 0.016}, {"tpot", 0.011}, {"ntpot", 0.012}, {"request_latency", 0.032}});
  table["/variants/0/stages/0/measured/0/value"] = {0.012};
  // 9 tokens in 90 ms, and 9 in 70 ms.
  expect_fields(table, "/variants/0/published/0",
                {{"simulated", (100 + 9 / 0.07) / 2}, {"measured", 90}});
  expect_routing(table, 8, 0, 8 * 16);
  expect_server(
      table, "0",
      {8, 3 + 9 + 3 + 7, 0.22, 8 * 16, 0, 0, 11, 11 * 16, 3, 8 * 50 / 10.0 / 255, 0.3, 2, 1});
  table["/variants/0/simulated_s"] = {0.255};
  Comparison(table).run(
      report("goodput: [ttft:16ms, tpot:11ms, ntpot:12ms, request_latency:32ms]\n"
             "measured: {csv: m.csv, policy: service}\n"
             "workload:\n"
             "  vllm_bench:\n"
             "    burstiness: .inf\n"
             "    num_warmups: 1\n"
             "    initial_test_request: false\n"
             "    random: {input_len: 16, output_len: 3}\n"
             "    runs:\n"
             "    - {request_rate: 40, num_prompts: 3}\n"
             "    - {request_rate: 100, num_prompts: 3, max_concurrency: 2}\n",
             "1", "num_gpu_blocks: 11"));
}

// D/D/1: a request every 5 ms, the first at 5 ms, and a server that takes 10 ms for each. Request i
// waits 5 i ms, so TTFT grows by a second per second. At 305 ms all 60 have come and 30 have begun;
// the other 30 wait until the step that begins then takes one. From the eleventh on, each takes the
// only block of an older prompt: 50 evictions.
TEST_F(Contract, AnOverloadedServer) {
  Stage stage;
  for (int i = 0; i < 60; ++i)
    stage.successes.push_back({5 + 5.0 * i, 5 + 5.0 * i, 15 + 10.0 * i, 15 + 10.0 * i, 16, 1, 0});
  stage.requested_rate = 200;
  stage.block_ms = 600;
  stage.usable_blocks = 10;
  stage.usage_max = 0.1;
  stage.overloaded = true;
  Table table = run_table();
  expect_stage(table, "/variants/0/stages/0", stage);
  stage.summary = true;
  expect_stage(table, "/variants/0/summary", stage);
  expect_routing(table, 60, 0, 960);
  expect_server(table, "0", {60, 60, 0.6, 960, 0, 0, 11, 176, 50, 60.0 / 605, 0.1, 1, 30});
  table["/variants/0/simulated_s"] = {0.605};
  table["/verdict/knees/0/first_overloaded"] = {200};
  // A server that takes 10 ms answers 100 requests/s. Three runs of 1,000 requests look for it: the
  // first above 1.4 times what the stage answered, then 5 % above and 3 % below what servers answer
  // there. Two of 60,000, and up to 500 between two looks, hold the last of these.
  expect_fields(table, "/variants/0/capacity", {{"rate", 97}, {"low", 97}, {"high", 100}});
  table["/variants/0/capacity/rate"].room = 0.5;
  table["/variants/0/capacity/low"].room = 0.5;
  table["/variants/0/capacity/high"].room = 1;
  table["/variants/0/capacity/requests"] = {3 * 1'000 + 2 * 60'500};
  Comparison(table).run(
      report("workload:\n"
             "  vllm_bench:\n"
             "    burstiness: .inf\n"
             "    initial_test_request: false\n"
             "    request_rate: 200\n"
             "    num_prompts: 60\n"
             "    random: {input_len: 16, output_len: 1}\n",
             "1", "num_gpu_blocks: 11, max_num_seqs: 1", "", true));
}

}  // namespace
}  // namespace routesim::tools::testing
