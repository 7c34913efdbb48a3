#include "workloads/groups/group_load.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "workloads/client.h"
#include "workloads/prompts.h"

namespace routesim::workloads {
namespace {

class GroupSource final : public RequestSource {
 public:
  GroupSource(const GroupLoadConfig& config, std::uint64_t seed)
      : seed_(seed),
        pool_per_group_(config.prompts_per_group),
        suffix_(config.suffix_len),
        output_(config.output_len),
        popularity_(static_cast<std::uint64_t>(config.groups), config.zipf_exponent),
        // Two streams, so that lengths do not depend on how a group is drawn.
        choice_(seed, Stream::kPromptOrder),
        lengths_(seed, Stream::kLengths) {
    const LengthSampler prefix(config.prefix_len);
    prefixes_.reserve(static_cast<std::size_t>(config.groups));
    RandomStream prefix_lengths(seed, Stream::kLengths, 1);
    for (std::int64_t g = 0; g < config.groups; ++g)
      prefixes_.push_back(
          {.content = content_id(seed, ContentKind::kSystemPrompt, static_cast<std::uint64_t>(g)),
           .length = prefix.sample(prefix_lengths)});
  }

  void fill(std::size_t, std::int64_t index, Request& request) override {
    const std::uint64_t group = popularity_.sample(choice_);
    if (pool_per_group_ > 0) {
      const std::uint64_t p = choice_.below(static_cast<std::uint64_t>(pool_per_group_));
      request.prompt =
          pool_prompt(group, p, group * static_cast<std::uint64_t>(pool_per_group_) + p);
    } else {
      PromptBuilder prompt;
      prompt.reserve(2);
      prompt.append(prefixes_[group]);
      prompt.append(content_id(seed_, ContentKind::kUnique, static_cast<std::uint64_t>(index)),
                    suffix_.sample(lengths_));
      request.prompt = std::move(prompt).build(static_cast<std::uint64_t>(index));
    }
    request.max_tokens = std::max<std::int64_t>(output_.sample(lengths_), 1);
    request.output_tokens = request.max_tokens;
    request.output_content =
        content_id(seed_, ContentKind::kAnswer, static_cast<std::uint64_t>(index));
  }

 private:
  const std::shared_ptr<const Prompt>& pool_prompt(std::uint64_t group, std::uint64_t p,
                                                   std::uint64_t slot) {
    std::shared_ptr<const Prompt>& prompt = pool_[slot];
    if (!prompt) {
      // Keyed by the slot: what a pool prompt is does not depend on when it is first drawn.
      RandomStream lengths(seed_, Stream::kLengths, 2 + slot);
      PromptBuilder builder;
      builder.reserve(2);
      builder.append(prefixes_[group]);
      builder.append(content_id(seed_, ContentKind::kQuestion, group, p), suffix_.sample(lengths));
      prompt = std::move(builder).build(next_prompt_++, /*reusable=*/true);
    }
    return prompt;
  }

  std::uint64_t seed_;
  std::int64_t pool_per_group_;
  LengthSampler suffix_, output_;
  ZipfSampler popularity_;
  RandomStream choice_, lengths_;
  std::vector<Segment> prefixes_;
  std::unordered_map<std::uint64_t, std::shared_ptr<const Prompt>> pool_;  // By slot, once drawn.
  std::uint64_t next_prompt_ = 0;
};

}  // namespace

void describe(Describer& d, GroupLoadConfig& t) {
  const IntRange permits{0, 1'000'000'000};
  field(d, {"requests", "Requests to send."}, t.requests, IntRange{1, 4'000'000'000});
  field(d, {"rate", "Requests per second (Poisson); inf sends all at once."}, t.rate,
        RealRange{.min = 0, .min_open = true, .allow_infinity = true});
  field(d, {"groups", "Groups; each shares a prefix."}, t.groups, IntRange{1, 10'000'000});
  field(d, {"zipf_exponent", "Popularity of groups ~ 1 / rank^exponent; 0 is uniform."},
        t.zipf_exponent, RealRange{.min = 0, .max = 10});
  field(d, {"prompts_per_group", "Pool prompts per group; 0 makes every suffix unique."},
        t.prompts_per_group, IntRange{0, 10'000'000});
  field(d,
        {"prefix_len",
         "Tokens a group shares: a number, or a distribution. With a type that is not fixed the "
         "other keys have inference-perf's defaults: min 10, max 1024, mean 512, std_dev 200."},
        t.prefix_len);
  field(d, {"suffix_len", "Tokens of the request's own, written likewise."}, t.suffix_len);
  field(d, {"output_len", "Tokens of the answer, written likewise."}, t.output_len);
  field(d, {"max_concurrency", "Requests the client keeps in flight; 0 is no limit."},
        t.max_concurrency, permits);
  field(d, {"timeout_s", "Seconds after which the client gives up; 0 is never."}, t.timeout_s,
        RealRange{.min = 0, .max = 1e9});
}

LoadTraits traits_of(const GroupLoadConfig&) { return {.own_times = {}}; }

std::vector<LoadFile> files_of(const GroupLoadConfig&) { return {}; }

std::string scale_rates(GroupLoadConfig& config, double by) {
  if (std::isinf(config.rate)) return "groups.rate is infinite: all requests are sent at once";
  config.rate *= by;
  return {};
}

std::string hold_rate(GroupLoadConfig& config, double rate, double seconds) {
  config.rate = rate;
  config.requests = std::max<std::int64_t>(1, std::llround(rate * seconds));
  return {};
}

std::unique_ptr<LoadGenerator> make_load_generator(const GroupLoadConfig& config,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics) {
  Diagnostics found;
  check_distribution(config.prefix_len, SamplerKind::kGeneral, "prefix_len", found);
  check_distribution(config.suffix_len, SamplerKind::kGeneral, "suffix_len", found);
  check_distribution(config.output_len, SamplerKind::kGeneral, "output_len", found);
  // The same bound as for inference-perf: a pool prompt stays in memory once it was sent.
  constexpr std::int64_t kMostPoolPrompts = 10'000'000;
  if (config.prompts_per_group > kMostPoolPrompts / config.groups)
    found.error({}, "prompts_per_group", "groups * prompts_per_group must not exceed 10,000,000",
                "0 makes every prompt unique and keeps none");
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  if (found.has_errors()) return nullptr;
  StagePlan plan;
  plan.info.name = "0";
  plan.info.requests = config.requests;
  plan.info.requested_rate = config.rate;
  plan.info.duration_s =
      std::isinf(config.rate) ? 0 : static_cast<double>(config.requests) / config.rate;
  plan.info.concurrency = config.max_concurrency;
  if (config.max_concurrency > 0) plan.permits = config.max_concurrency;
  if (config.timeout_s > 0) plan.timeout = Duration::from_seconds(config.timeout_s);
  plan.arrivals = inputs.arrivals
                      ? inputs.arrivals()
                      : exponential_arrivals(config.rate, config.requests,
                                             RandomStream(options.seed, Stream::kArrivals));
  std::vector<StagePlan> plans;
  plans.push_back(std::move(plan));
  return std::make_unique<StagedClient>(
      std::move(plans), std::make_unique<GroupSource>(config, options.seed), StageTiming{});
}

}  // namespace routesim::workloads
