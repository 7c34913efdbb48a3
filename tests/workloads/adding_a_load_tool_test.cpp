// Follows "How to add a load tool" of workloads/README.md with a tool of its own: `pings`, prompts
// of one length at a fixed rate.
#include <gtest/gtest.h>

#include "tests/workloads/drive.h"
#include "workloads/client.h"
#include "workloads/load/load.h"
#include "workloads/prompts.h"

namespace routesim::workloads {
namespace pings {

// Step 1: the settings, and the functions that load_traits.h lists.
struct Config {
  double rate = 1;
  double duration_s = 10;
  std::int64_t prompt_tokens = 100;
};

void describe(Describer& d, Config& t) {
  field(d, {"rate", "Requests per second."}, t.rate, RealRange{.min = 0, .min_open = true});
  field(d, {"duration_s", "Seconds."}, t.duration_s, RealRange{.min = 0, .min_open = true});
  field(d, {"prompt_tokens", "Tokens of each prompt."}, t.prompt_tokens, IntRange{1, 1'000'000});
}

LoadTraits traits_of(const Config&) { return {.report_name = "pings"}; }
std::vector<LoadFile> files_of(const Config&) { return {}; }

std::string scale_rates(Config& t, double by) {
  t.rate *= by;
  return {};
}

std::string hold_rate(Config& t, double rate, double seconds) {
  t.rate = rate;
  t.duration_s = seconds;
  return {};
}

class Source final : public RequestSource {
 public:
  explicit Source(std::int64_t tokens) : tokens_(tokens) {}
  void fill(std::size_t, std::int64_t index, Request& request) override {
    PromptBuilder prompt;
    prompt.append(content_id(0, ContentKind::kQuestion, static_cast<std::uint64_t>(index)),
                  tokens_);
    request.prompt = std::move(prompt).build(static_cast<std::uint64_t>(index));
    request.output_tokens = request.max_tokens = 1;
  }

 private:
  std::int64_t tokens_;
};

std::unique_ptr<LoadGenerator> make_load_generator(const Config& t, const WorkloadOptions& options,
                                                   const LoadInputs&, Diagnostics&) {
  std::vector<StagePlan> plans(1);
  plans[0].info = {.name = "0",
                   .requested_rate = t.rate,
                   .duration_s = t.duration_s,
                   .requests = requests_of_stage(t.rate, t.duration_s)};
  plans[0].arrivals =
      constant_arrivals(t.rate, t.duration_s, RandomStream(options.seed, Stream::kArrivals));
  return std::make_unique<StagedClient>(std::move(plans), std::make_unique<Source>(t.prompt_tokens),
                                        StageTiming{});
}

}  // namespace pings

template <>
struct LoadKey<pings::Config> {
  static constexpr Field value = {"pings", "Prompts of one length at a fixed rate."};
};

// Step 2 puts pings::Config into LoadTool, which accepts what satisfies this.
static_assert(LoadSettings<pings::Config>);
struct NoLoad {};
static_assert(!LoadSettings<NoLoad>);

namespace {

TEST(AddingALoadTool, ItsGeneratorSendsTheLoad) {
  pings::Config config{.rate = 4, .duration_s = 2, .prompt_tokens = 50};
  EXPECT_EQ(scale_rates(config, 2), "");
  Diagnostics found;
  const auto load = make_load_generator(config, WorkloadOptions{}, {}, found);
  const auto sent = testing::drive(*load, testing::fixed_latency(Duration::from_seconds(0.01)));
  ASSERT_EQ(sent.size(), 16U) << "8 requests/s for 2 s";
  for (const testing::Sent& s : sent) EXPECT_EQ(s.request.prompt->tokens, 50);
  EXPECT_TRUE(load->finished());
  EXPECT_LE(testing::seconds(sent.back().sent), 2);
}

}  // namespace
}  // namespace routesim::workloads
