// The same numbers from every compiler and build type: fingerprints of whole loads, pinned. Whoever
// changes one on purpose changes results, and says so in the CHANGELOG.
#include "tests/workloads/inference_perf_ladder.h"
#include "workloads/conversations/conversations.h"
#include "workloads/groups/group_load.h"
#include "workloads/vllm_bench/vllm_bench.h"

namespace routesim::workloads {
namespace {

using testing::drive;
using testing::fixed_latency;
using testing::Sent;

std::uint64_t fingerprint(LoadGenerator& load, Duration latency) {
  std::uint64_t h = 0;
  const auto add = [&h](auto x) { h = mix64(h, static_cast<std::uint64_t>(x)); };
  for (const Sent& s : drive(load, fixed_latency(latency), 20'000)) {
    add(s.sent.ns());
    add(s.request.due.ns());
    add(s.request.prompt->id);
    for (const Segment& segment : s.request.prompt->segments) {
      add(segment.content);
      add(segment.length);
    }
    add(s.request.output_tokens);
    add(s.request.output_content);
  }
  return h;
}

TEST(Fingerprint, InferencePerfLadder) {
  auto load = inference_perf::make(inference_perf::ladder());
  EXPECT_EQ(fingerprint(*load, Duration::seconds(20)), 12129196299822806962ULL);
}

TEST(Fingerprint, VllmBenchWithGammaGaps) {
  vllm_bench::Config c;
  c.dataset_name = vllm_bench::Dataset::kPrefixRepetition;
  c.num_prompts = 3000;
  c.request_rate = 25;
  c.burstiness = 0.7;
  c.initial_test_request = true;
  Diagnostics found;
  auto load = vllm_bench::make_load_generator(c, {}, {}, found);
  EXPECT_EQ(fingerprint(*load, Duration::seconds(3)), 1735734452338225604ULL);
}

TEST(Fingerprint, Conversations) {
  Diagnostics found;
  auto load = make_load_generator(ConversationsConfig{}, {}, {}, found);
  EXPECT_EQ(fingerprint(*load, Duration::milliseconds(700)), 12964639442312899390ULL);
}

TEST(Fingerprint, GroupLoadWithDistributions) {
  GroupLoadConfig c;
  c.zipf_exponent = 0.9;
  c.suffix_len.type = DistributionType::kLognormal;
  c.suffix_len.min = 1;
  c.suffix_len.max = 5000;
  c.suffix_len.std_dev = 100;
  c.output_len.type = DistributionType::kSkewNormal;
  c.output_len.min = 1;
  c.output_len.max = 500;
  c.output_len.std_dev = 60;
  c.output_len.skew = 3;
  Diagnostics found;
  auto load = make_load_generator(c, {}, {}, found);
  EXPECT_EQ(fingerprint(*load, Duration::seconds(1)), 12797659188819251465ULL);
}

}  // namespace
}  // namespace routesim::workloads
