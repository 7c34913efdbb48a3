#include "workloads/vllm_bench/vllm_bench.h"

#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "tests/workloads/drive.h"
#include "tests/workloads/memory_readers.h"

namespace routesim::workloads::vllm_bench {
namespace {

using workloads::testing::drive;
using workloads::testing::fixed_latency;
using workloads::testing::Sent;

std::unique_ptr<LoadGenerator> make(const Config& c, const LoadInputs& inputs = {},
                                    std::uint64_t seed = 1) {
  Diagnostics found;
  WorkloadOptions options;
  options.seed = seed;
  auto load = make_load_generator(c, options, inputs, found);
  for (const Diagnostic& d : found.items()) ADD_FAILURE() << to_string(d);
  return load;
}

std::string first_error(const Config& c, const LoadInputs& inputs = {}) {
  Diagnostics found;
  EXPECT_EQ(make_load_generator(c, {}, inputs, found), nullptr);
  return found.items().empty() ? "" : found.items()[0].path;
}

/// The A10G experiment: 150 prefixes of 2,048 tokens, 9,000 prompts, 512 in flight.
Config a10g() {
  Config c;
  c.dataset_name = Dataset::kPrefixRepetition;
  c.num_prompts = 9000;
  c.max_concurrency = 512;
  c.ignore_eos = true;
  c.initial_test_request = true;
  c.prefix_repetition = {
      .prefix_len = 2048, .suffix_len = 128, .num_prefixes = 150, .output_len = 256};
  return c;
}

TEST(VllmBench, PrefixRepetitionHasSixtySuffixesPerPrefixShuffled) {
  auto load = make(a10g());
  ASSERT_EQ(load->stages().size(), 2U);
  EXPECT_EQ(load->stages()[0].name, "test");
  EXPECT_FALSE(load->stages()[0].reported);
  EXPECT_TRUE(load->stages()[0].is_preparation);
  EXPECT_FALSE(load->stages()[1].is_preparation);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(20)));
  ASSERT_EQ(sent.size(), 9001U);
  // The test request goes alone, then the run begins with 512 at once.
  EXPECT_EQ(sent[1].sent, sent[0].done);
  EXPECT_EQ(sent[1].request.prompt, sent[0].request.prompt) << "request 0 is sent twice";
  EXPECT_TRUE(sent[1].request.prompt->reusable);
  std::map<std::uint64_t, int> prefixes;
  std::set<std::uint64_t> suffixes, ids;
  int same_prefix_in_a_row = 0;
  for (std::size_t i = 1; i < sent.size(); ++i) {
    const Prompt& prompt = *sent[i].request.prompt;
    ++prefixes[prompt.segments[0].content];
    suffixes.insert(prompt.segments[1].content);
    ids.insert(prompt.id);
    EXPECT_EQ(prompt.tokens, 2176);
    EXPECT_EQ(sent[i].request.output_tokens, 256);
    if (i > 1)
      same_prefix_in_a_row +=
          prompt.segments[0].content == sent[i - 1].request.prompt->segments[0].content;
    if (i <= 512) continue;
    EXPECT_EQ(sent[i].sent, sent[i - 512].done) << "closed loop of 512";
  }
  EXPECT_EQ(prefixes.size(), 150U);
  for (const auto& [content, n] : prefixes) EXPECT_EQ(n, 60);
  EXPECT_EQ(suffixes.size(), 9000U);
  EXPECT_EQ(ids.size(), 9000U);
  EXPECT_NEAR(same_prefix_in_a_row, 60, 35) << "shuffled: one in 150";
}

TEST(VllmBench, RunsFollowOneAnotherAndEqualSeedsRepeatPrompts) {
  Config c = a10g();
  c.max_concurrency.reset();
  c.runs = {{.request_rate = 20, .num_prompts = 300, .seed = 7},
            {.request_rate = 40, .num_prompts = 600, .seed = 7},
            {.request_rate = 60, .num_prompts = 150, .seed = 8}};
  auto load = make(c);
  ASSERT_EQ(load->stages().size(), 6U);
  EXPECT_EQ(load->stages()[1].name, "rate20");
  EXPECT_EQ(load->stages()[3].name, "rate40");
  EXPECT_EQ(load->stages()[5].requests, 150);
  EXPECT_EQ(load->stages()[5].requested_rate, 60);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(20)));
  ASSERT_EQ(sent.size(), 1053U);
  std::map<std::size_t, std::set<std::uint64_t>> prefixes;
  for (const Sent& s : sent)
    prefixes[s.request.stage.value()].insert(s.request.prompt->segments[0].content);
  EXPECT_EQ(prefixes[1], prefixes[3]) << "the same seed draws the same prefixes";
  for (const std::uint64_t content : prefixes[5]) EXPECT_EQ(prefixes[1].count(content), 0U);
  // Run 2 starts when run 1 has ended: its test request, then arrivals over 15 s.
  EXPECT_EQ(sent[301].sent, sent[300].done);
  EXPECT_NEAR((sent[901].sent - sent[301].done).to_seconds(), 15, 0.001);
}

TEST(VllmBench, FewerPromptsThanAskedWhenTheyDoNotDivide) {
  Config c = a10g();
  c.num_prompts = 1000;  // 1000 div 150 = 6 per prefix.
  auto load = make(c);
  EXPECT_EQ(load->stages().back().requests, 900);
  c.num_prompts = 100;
  EXPECT_EQ(first_error(c), "num_prompts");
}

TEST(VllmBench, UnshuffledIsPrefixMajor) {
  Config c = a10g();
  c.disable_shuffle = true;
  c.initial_test_request = false;
  auto load = make(c);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(1)), 121);
  EXPECT_EQ(sent[0].request.prompt->segments[0], sent[59].request.prompt->segments[0]);
  EXPECT_NE(sent[59].request.prompt->segments[0], sent[60].request.prompt->segments[0]);
  EXPECT_EQ(sent[60].request.prompt->segments[0], sent[119].request.prompt->segments[0]);
}

TEST(VllmBench, ARateRunEndsItsArrivalsExactly) {
  Config c = a10g();
  c.num_prompts = 900;
  c.max_concurrency.reset();
  c.request_rate = 20;
  c.num_warmups = 3;
  auto load = make(c);
  ASSERT_EQ(load->stages().size(), 3U);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(2)));
  ASSERT_EQ(sent.size(), 904U);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(sent[i].request.prompt, sent[4].request.prompt) << "warm-ups repeat request 0";
  // Test until 2 s, warm-ups until 4 s, then 900 / 20 = 45 s of arrivals.
  EXPECT_EQ(sent.back().sent, SimTime::zero() + Duration::seconds(49));
  EXPECT_EQ(sent.back().request.timeout, Duration::seconds(21600));
  // The tool's clock runs from before the first gap.
  EXPECT_NEAR(load->stages()[2].lead_s, (sent[4].sent - sent[3].done).to_seconds(), 1e-8);
  EXPECT_GT(load->stages()[2].lead_s, 0);
  EXPECT_EQ(load->stages()[0].lead_s, 0);
}

TEST(VllmBench, RandomLengthsAreUniformInTheirRange) {
  Config c;
  c.num_prompts = 20'000;
  c.initial_test_request = false;
  c.random.range_ratio = 0.1;
  c.random.input_len = 1000;
  c.random.output_len = 105;
  c.random.prefix_len = 64;
  auto load = make(c);
  double sum = 0;
  std::int64_t least = 1 << 30, most = 0;
  std::set<std::int64_t> outputs;
  for (const Sent& s : drive(*load, fixed_latency(Duration::seconds(1)))) {
    const Prompt& prompt = *s.request.prompt;
    EXPECT_EQ(prompt.segments[0].length, 64);
    const std::int64_t length = prompt.segments[1].length;
    sum += static_cast<double>(length);
    least = std::min(least, length);
    most = std::max(most, length);
    outputs.insert(s.request.output_tokens);
  }
  EXPECT_EQ(least, 900);
  EXPECT_EQ(most, 1100);
  EXPECT_NEAR(sum / 20'000, 1000, 2);
  EXPECT_EQ(*outputs.begin(), 94);    // floor(94.5)
  EXPECT_EQ(*outputs.rbegin(), 116);  // ceil(115.5)
}

TEST(VllmBench, SonnetSharesItsPrefix) {
  Config c;
  c.dataset_name = Dataset::kSonnet;
  c.num_prompts = 3;
  auto load = make(c);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(1)));
  EXPECT_EQ(sent[1].request.prompt->tokens, 550);
  EXPECT_EQ(sent[1].request.prompt->segments[0], sent[2].request.prompt->segments[0]);
  EXPECT_NE(sent[1].request.prompt->segments[1], sent[2].request.prompt->segments[1]);
}

LoadInputs conversations(const std::vector<std::pair<std::int64_t, std::int64_t>>& lengths) {
  std::vector<Conversation> items;
  std::uint64_t text = 0;
  for (const auto& [input, output] : lengths) {
    Conversation conversation;
    conversation.messages = {{.human = true, .tokens = input, .text = ++text},
                             {.human = false, .tokens = output, .text = ++text}};
    items.push_back(conversation);
  }
  return {.conversations = [items] { return workloads::testing::reader_of(items); }, .trace = {}};
}

TEST(VllmBench, ShareGptFiltersAndOversamples) {
  Config c;
  c.dataset_name = Dataset::kShareGpt;
  c.num_prompts = 10;
  c.ignore_eos = true;
  c.initial_test_request = false;
  // Kept: 100/50 and 1024/1024. Dropped: prompt < 4, answer < 4, prompt > 1024, sum > 2048.
  const LoadInputs inputs =
      conversations({{100, 50}, {3, 50}, {50, 3}, {1025, 10}, {1024, 1025}, {1024, 1024}});
  auto load = make(c, inputs);
  std::map<std::int64_t, int> seen;
  for (const Sent& s : drive(*load, fixed_latency(Duration::seconds(1))))
    ++seen[s.request.prompt->tokens];
  EXPECT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[100] + seen[1024], 10);
  c.sharegpt.oversample = false;
  EXPECT_EQ(make(c, inputs)->stages().back().requests, 2);
  c.sharegpt.output_len = 7;  // A fixed length makes two more usable.
  EXPECT_EQ(make(c, inputs)->stages().back().requests, 4);
  EXPECT_EQ(first_error(c, conversations({{1, 1}})), "sharegpt");
  EXPECT_EQ(first_error(c), "dataset_name");
}

TEST(VllmBench, CustomTakesLengthsFromTheFile) {
  Config c;
  c.dataset_name = Dataset::kCustom;
  c.num_prompts = 2;
  c.disable_shuffle = true;
  c.initial_test_request = false;
  const LoadInputs inputs{
      .conversations =
          [] {
            return make_prompt_reader(
                std::make_unique<std::istringstream>(
                    "{\"prompt\": \"0123456789\", \"output_tokens\": 77}\n{\"prompt\": \"ab\"}\n"),
                "rows.jsonl", 2);
          },
      .trace = {}};
  auto load = make(c, inputs);
  auto sent = drive(*load, fixed_latency(Duration::seconds(1)));
  EXPECT_EQ(sent[0].request.prompt->tokens, 5);
  EXPECT_EQ(sent[0].request.max_tokens, 256);
  c.custom.output_len = -1;
  EXPECT_EQ(first_error(c, inputs), "custom.output_len") << "row 2 has none";
}

TEST(VllmBench, BurstGptUsesOnlyTheLengths) {
  Config c;
  c.dataset_name = Dataset::kBurstGpt;
  c.num_prompts = 4;
  c.initial_test_request = false;
  const auto open = [] {
    TraceReadOptions options;
    options.format = TraceFormat::kBurstGpt;
    options.model = "GPT-4";
    return make_trace_reader(
        std::make_unique<std::istringstream>(
            "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
            "5,ChatGPT,472,18,490,Conversation log\n45,GPT-4,1087,230,1317,API log\n"
            "118,GPT-4,417,276,693,API log\n130,GPT-4,417,0,417,API log\n"),
        "burst.csv", options);
  };
  auto load = make(c, {.conversations = {}, .trace = open});
  std::set<std::int64_t> lengths;
  std::set<std::uint64_t> contents;
  for (const Sent& s : drive(*load, fixed_latency(Duration::seconds(1)))) {
    lengths.insert(s.request.prompt->tokens);
    contents.insert(s.request.prompt->segments[0].content);
    EXPECT_EQ(s.sent, SimTime::zero()) << "timestamps are ignored";
  }
  EXPECT_EQ(lengths, (std::set<std::int64_t>{417, 1087}));
  EXPECT_EQ(contents.size(), 4U);
}

TEST(VllmBench, BurstGptRowsWithoutAnAnswerAreNotSent) {
  Config c;
  c.dataset_name = Dataset::kBurstGpt;
  c.num_prompts = 30;
  std::vector<TraceRecord> rows(3);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].input_tokens = 100 + static_cast<std::int64_t>(i);
    rows[i].output_tokens = i == 1 ? 0 : 9;
  }
  auto load =
      make(c, {.conversations = {}, .trace = [&] { return workloads::testing::reader_of(rows); }});
  std::set<std::int64_t> lengths;
  for (const Sent& s : drive(*load, fixed_latency(Duration::seconds(1))))
    lengths.insert(s.request.prompt->tokens);
  EXPECT_EQ(lengths, (std::set<std::int64_t>{100, 102})) << "repeated up to num_prompts";
}

TEST(VllmBench, TimedTraceEndsWithItsIdsWithoutAWord) {
  const auto open = [] {
    return make_trace_reader(
        std::make_unique<std::istringstream>(
            "{\"timestamp\": 0, \"input_length\": 1000, \"output_length\": 5, "
            "\"hash_ids\": [7, 8]}\n"
            "{\"timestamp\": 3052, \"input_length\": 600, \"output_length\": 6, "
            "\"hash_ids\": [7, 9]}\n"),
        "trace.jsonl", TraceReadOptions{});
  };
  Config c;
  c.dataset_name = Dataset::kTimedTrace;
  c.ignore_eos = true;
  c.initial_test_request = false;
  auto load = make(c, {.conversations = {}, .trace = open});
  auto sent = drive(*load, fixed_latency(Duration::seconds(1)));
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].request.prompt->tokens, 32) << "the default of 16 tokens per id";
  EXPECT_EQ(sent[1].sent, SimTime::zero() + Duration::milliseconds(3052));
  EXPECT_EQ(sent[0].request.prompt->segments[0], sent[1].request.prompt->segments[0]);
  c.timed_trace.chunk_hash_size = 512;
  load = make(c, {.conversations = {}, .trace = open});
  sent = drive(*load, fixed_latency(Duration::seconds(1)));
  EXPECT_EQ(sent[0].request.prompt->tokens, 1000);
  EXPECT_EQ(sent[1].request.prompt->tokens, 600);
}

TEST(VllmBench, ArrivalFlagsThatExcludeEachOther) {
  Config c = a10g();
  c.ramp_up_strategy = RampUp::kLinear;
  c.request_rate = 5;
  Diagnostics found;
  EXPECT_EQ(make_load_generator(c, {}, {}, found), nullptr);
  EXPECT_EQ(found.items().size(), 3U) << "rate excluded, start and end missing";
  c = a10g();
  c.ramp_up_start_rps = 1;
  EXPECT_EQ(first_error(c), "ramp_up_strategy");
}

TEST(VllmBench, ARampIsNamedByTheRateItEndsAt) {
  Config c = a10g();
  c.num_prompts = 900;
  c.initial_test_request = false;
  c.ramp_up_strategy = RampUp::kLinear;
  c.ramp_up_start_rps = 3;
  c.ramp_up_end_rps = 9;
  const auto load = make(c);
  EXPECT_EQ(load->stages()[0].requested_rate, 9);
  EXPECT_EQ(load->stages()[0].duration_s, 900 / 9);
}

TEST(VllmBench, SeedsOfTheToolAndOfTheRunBothCount) {
  Config c = a10g();
  auto a = make(c, {}, 1), b = make(c, {}, 2);
  c.seed = 5;
  auto other = make(c, {}, 1), again = make(c, {}, 1);
  const auto first = [](LoadGenerator& load) {
    return drive(load, fixed_latency(Duration::seconds(1)), 5)[4].request.prompt->segments;
  };
  const auto sa = first(*a), sb = first(*b), so = first(*other), sg = first(*again);
  EXPECT_NE(sa, sb);
  EXPECT_NE(sa, so);
  EXPECT_EQ(so, sg);
}

}  // namespace
}  // namespace routesim::workloads::vllm_bench
