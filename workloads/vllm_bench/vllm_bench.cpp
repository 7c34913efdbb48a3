#include "workloads/vllm_bench/vllm_bench.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "workloads/client.h"
#include "workloads/load_stages.h"
#include "workloads/prompts.h"
#include "workloads/traces/trace_replay.h"
#include "workloads/vllm_bench/vllm_bench_data.h"

namespace routesim::workloads::vllm_bench {
namespace {

/// How the tool reads the file of a data set; kUnread where it reads none.
LoadFile::Kind kind_of(Dataset data_set) {
  switch (data_set) {
    case Dataset::kShareGpt:
      return LoadFile::Kind::kShareGpt;
    case Dataset::kCustom:
      return LoadFile::Kind::kPrompts;
    case Dataset::kBurstGpt:
    case Dataset::kTimedTrace:
      return LoadFile::Kind::kTrace;
    default:
      return LoadFile::Kind::kUnread;
  }
}

/// The tool has every prompt in memory before it sends the first, which bounds them there, too.
constexpr IntRange kPrompts{1, 10'000'000};

/// Sends sample 0 in the stages before the run, and every sample once in the run.
class BenchSource final : public RequestSource {
 public:
  BenchSource(const Config& config, const WorkloadOptions& options, Samples samples,
              std::size_t main_stage)
      : assembler_(options, config.chat),
        answers_(options, config.ignore_eos || config.dataset_name == Dataset::kRandom,
                 mix64(options.seed, static_cast<std::uint64_t>(config.seed))),
        samples_(std::move(samples)),
        main_stage_(main_stage) {
    first_ = make(0, /*reusable=*/true);
  }

  void fill(std::size_t stage, std::int64_t index, Request& request) override {
    const bool first = stage < main_stage_ || index == 0;
    Item item = first ? first_ : make(index, /*reusable=*/false);
    request.prompt = std::move(item.prompt);
    answers_.fill(stage, index, item.output, request);
  }

 private:
  struct Item {
    std::shared_ptr<const Prompt> prompt;
    std::int64_t output = 0;
  };
  Item make(std::int64_t i, bool reusable) {
    const Sample sample = samples_.make(i);
    return {assembler_.single(sample.text, static_cast<std::uint64_t>(i), reusable), sample.output};
  }

  PromptAssembler assembler_;
  StagedAnswers answers_;
  Samples samples_;
  std::size_t main_stage_;
  Item first_;
};

/// The sources of several runs as one: hands each stage to the run it belongs to.
class RunsSource final : public RequestSource {
 public:
  /// The next `stages` stages are those of `source`.
  void add(std::unique_ptr<RequestSource> source, std::size_t stages) {
    for (std::size_t i = 0; i < stages; ++i) homes_.push_back({sources_.size(), i});
    sources_.push_back(std::move(source));
  }
  void fill(std::size_t stage, std::int64_t index, Request& request) override {
    const Home& home = homes_[stage];
    sources_[home.source]->fill(home.stage, index, request);
  }

 private:
  struct Home {
    std::size_t source = 0;
    std::size_t stage = 0;
  };
  std::vector<std::unique_ptr<RequestSource>> sources_;
  std::vector<Home> homes_;
};

/// The flags of one run.
Config with(const Config& flags, const Run& run) {
  Config c = flags;
  c.runs.clear();
  if (run.request_rate) c.request_rate = *run.request_rate;
  if (run.num_prompts) c.num_prompts = *run.num_prompts;
  if (run.max_concurrency) c.max_concurrency = run.max_concurrency;
  if (run.seed) c.seed = *run.seed;
  return c;
}

std::string run_name(const Config& c) {
  return std::isinf(c.request_rate) ? "main" : "rate" + short_number(c.request_rate);
}

void check_arrivals(const Config& c, Diagnostics& out) {
  for (const LoadFile& file : files_of(c))
    if (file.kind == LoadFile::Kind::kUnread && c.dataset_name != Dataset::kSonnet)
      out.error({}, "dataset_path",
                "data set " + std::string(enum_name(c.dataset_name)) + " has no file (got " +
                    printable(*c.dataset_path) + ")");
  if (std::find(c.lora_modules.begin(), c.lora_modules.end(), "") != c.lora_modules.end())
    out.error({}, "lora_modules", "a name is empty");
  const bool ramp = c.ramp_up_strategy != RampUp::kNone;
  if (ramp && !std::isinf(c.request_rate))
    out.error({}, "request_rate", "excludes ramp_up_strategy", "leave request_rate out");
  if (ramp && !c.ramp_up_start_rps)
    out.error({}, "ramp_up_start_rps", "is missing: ramp_up_strategy needs it");
  if (ramp && !c.ramp_up_end_rps)
    out.error({}, "ramp_up_end_rps", "is missing: ramp_up_strategy needs it");
  if (!ramp && (c.ramp_up_start_rps || c.ramp_up_end_rps))
    out.error({}, "ramp_up_strategy", "is missing: start and end rates need it");
  if (c.ramp_up_start_rps && c.ramp_up_end_rps && *c.ramp_up_start_rps > *c.ramp_up_end_rps)
    out.error({}, "ramp_up_start_rps", "must not exceed ramp_up_end_rps");
}

StagePlan stage(const char* name, std::int64_t requests, const Config& c) {
  StagePlan plan;
  plan.info.name = name;
  plan.info.requests = requests;
  plan.info.reported = false;
  plan.info.is_preparation = true;
  plan.info.concurrency = c.max_concurrency.value_or(0);
  plan.permits = c.max_concurrency.value_or(kUnlimitedPermits);
  plan.timeout = client_timeout();
  plan.arrivals = immediate_arrivals(requests);
  return plan;
}

/// Gives a stage its arrivals, and the time before the first of them. The stream is made once:
/// one that rescales its gaps draws them all beforehand.
void set_arrivals(std::shared_ptr<ArrivalStream> arrivals, StagePlan& plan) {
  Duration first;
  const bool has_first = arrivals->next(first);
  plan.info.lead_s = has_first ? first.to_seconds() : 0;
  plan.arrivals = callback_arrivals(
      [arrivals = std::move(arrivals), first, is_held = has_first](Duration& due) mutable {
        if (!std::exchange(is_held, false)) return arrivals->next(due);
        due = first;
        return true;
      });
}

StagePlan main_stage(const Config& c, const WorkloadOptions& options, const LoadInputs& inputs,
                     std::int64_t n) {
  StagePlan plan = stage("main", n, c);
  plan.info.reported = true;
  plan.info.is_preparation = false;
  if (c.dataset_name == Dataset::kTimedTrace && c.timed_trace.self_timed) {
    // The reader takes timestamps as milliseconds.
    set_arrivals(trace_arrivals(inputs.trace, c.timed_trace.sec_multiplier / 0.001, n), plan);
    return plan;
  }
  plan.info.requested_rate =
      c.ramp_up_strategy == RampUp::kNone ? c.request_rate : *c.ramp_up_end_rps;
  if (!std::isinf(plan.info.requested_rate))
    plan.info.duration_s = static_cast<double>(n) / plan.info.requested_rate;
  if (inputs.arrivals) {
    plan.arrivals = inputs.arrivals();
    return plan;
  }
  const std::uint64_t seed = mix64(options.seed, static_cast<std::uint64_t>(c.seed));
  const VllmArrivals arrivals{.requests = n,
                              .rate = c.request_rate,
                              .burstiness = c.burstiness,
                              .ramp_up = c.ramp_up_strategy,
                              .ramp_start = c.ramp_up_start_rps.value_or(0),
                              .ramp_end = c.ramp_up_end_rps.value_or(0),
                              .legacy = c.legacy_arrivals};
  set_arrivals(vllm_arrivals(arrivals, RandomStream(seed, Stream::kArrivals)), plan);
  return plan;
}

/// Data whose prompts are made one by one has as many as are asked for.
std::string_view own_times_of(const Config& c) {
  if (c.dataset_name == Dataset::kTimedTrace && c.timed_trace.self_timed)
    return "a timed trace has the times of its records";
  if (c.dataset_name != Dataset::kRandom && c.dataset_name != Dataset::kSonnet)
    return "this data set of vllm_bench has a number of prompts that is known beforehand (random "
           "and sonnet have not)";
  return c.burstiness == 1 ? "" : "burstiness makes its arrivals other than Poisson";
}

}  // namespace

Duration client_timeout() { return Duration::seconds(6 * 60 * 60); }

std::unique_ptr<LoadGenerator> make_load_generator(const Config& config,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics) {
  Diagnostics found;
  check_arrivals(config, found);
  if (options.natural_answer)
    check_distribution(*options.natural_answer, SamplerKind::kGeneral, "natural_answer", found);
  if (config.ramp_up_strategy != RampUp::kNone && !config.runs.empty())
    found.error({}, "runs", "excludes ramp_up_strategy");
  std::vector<Config> runs;
  for (const Run& run : config.runs) runs.push_back(with(config, run));
  if (runs.empty()) runs.push_back(config);
  std::vector<StagePlan> plans;
  auto source = std::make_unique<RunsSource>();
  for (const Config& run : runs) {
    Samples samples = make_samples(run, options, inputs, found);
    if (found.has_errors()) break;
    const std::size_t first = plans.size();
    if (run.initial_test_request.value_or(false)) plans.push_back(stage("test", 1, run));
    if (run.num_warmups > 0) plans.push_back(stage("warmup", run.num_warmups, run));
    const std::size_t main = plans.size() - first;
    plans.push_back(main_stage(run, options, inputs, samples.size));
    if (!config.runs.empty()) plans.back().info.name = run_name(run);
    source->add(std::make_unique<BenchSource>(run, options, std::move(samples), main), main + 1);
  }
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  if (found.has_errors()) return nullptr;
  return std::make_unique<StagedClient>(std::move(plans), std::move(source), StageTiming{});
}

LoadTraits traits_of(const Config& c) {
  LoadTraits traits;
  traits.report_name = "vllm-benchmark";
  traits.random_text =
      c.dataset_name == Dataset::kRandom || c.dataset_name == Dataset::kPrefixRepetition;
  traits.is_chat = c.chat;
  traits.burstiness = c.burstiness;
  traits.own_times = own_times_of(c);
  for (const std::string& name : c.lora_modules)
    traits.adapters.shares.push_back(
        {.name = name, .split = 1.0 / static_cast<double>(c.lora_modules.size())});
  traits.adapters.assignment = c.lora_assignment;
  traits.adapters.warms_up_base = true;
  traits.adapters.key = "vllm_bench.lora_modules";
  return traits;
}

std::vector<LoadFile> files_of(const Config& c) {
  if (!c.dataset_path) return {};
  const std::string key = "vllm_bench.dataset_path";
  LoadFile file{.kind = kind_of(c.dataset_name), .key = key, .path = *c.dataset_path};
  if (file.kind == LoadFile::Kind::kTrace) {
    file.format = std::string(enum_name(c.dataset_name));
    file.format_key = key;
  }
  return {file};
}

std::string scale_rates(Config& c, double by) {
  if (c.dataset_name == Dataset::kTimedTrace && c.timed_trace.self_timed) {
    c.timed_trace.sec_multiplier /= by;
    return {};
  }
  bool scaled = false;
  const auto scale = [&](double& rate) {
    if (!std::isfinite(rate)) return;
    rate *= by;
    scaled = true;
  };
  scale(c.request_rate);
  for (auto* rate : {&c.ramp_up_start_rps, &c.ramp_up_end_rps})
    if (*rate) scale(**rate);
  for (Run& run : c.runs)
    if (run.request_rate) scale(*run.request_rate);
  return scaled ? "" : "request_rate is inf: all requests are sent at once";
}

std::string hold_rate(Config& c, double rate, double seconds) {
  if (c.dataset_name == Dataset::kTimedTrace && c.timed_trace.self_timed)
    return "a timed trace has the times of its records";
  const auto is_open = [&](const Run& run) {
    return std::isfinite(run.request_rate.value_or(c.request_rate));
  };
  if (c.runs.empty() ? !is_open(Run{}) : std::ranges::none_of(c.runs, is_open))
    return "request_rate is inf: all requests are sent at once";
  for (const Run& run : c.runs)
    if (is_open(run) && run.max_concurrency) c.max_concurrency = run.max_concurrency;
  c.runs.clear();
  c.ramp_up_strategy = RampUp::kNone;
  c.ramp_up_start_rps.reset();
  c.ramp_up_end_rps.reset();
  c.request_rate = rate;
  c.num_prompts = std::max<std::int64_t>(2, std::llround(rate * seconds));
  return {};
}

void set_release_defaults(Config& c, bool old_servers) {
  if (!c.initial_test_request) c.initial_test_request = old_servers;
}

void describe(Describer& d, PrefixRepetition& t) {
  const IntRange tokens{0, 100'000'000};
  field(d, {"prefix_len", "Tokens of a prefix."}, t.prefix_len, tokens);
  field(d, {"suffix_len", "Tokens of a prompt's own."}, t.suffix_len, tokens);
  field(d, {"num_prefixes", "Prefixes."}, t.num_prefixes, IntRange{1, 10'000'000});
  field(d, {"output_len", "Tokens asked for."}, t.output_len, IntRange{1, 100'000'000});
}

void describe(Describer& d, Random& t) {
  const RealRange ratio{.min = 0, .max = 1, .max_open = true};
  field(d, {"input_len", "Tokens of a prompt."}, t.input_len, IntRange{1, 100'000'000});
  field(d, {"output_len", "Tokens asked for."}, t.output_len, IntRange{1, 100'000'000});
  field(d, {"range_ratio", "Lengths vary uniformly by this share up and down."}, t.range_ratio,
        ratio);
  field(d, {"input_range_ratio", "range_ratio of prompts."}, t.input_range_ratio, ratio);
  field(d, {"output_range_ratio", "range_ratio of answers."}, t.output_range_ratio, ratio);
  field(d, {"prefix_len", "Tokens all prompts start with."}, t.prefix_len,
        IntRange{0, 100'000'000});
}

void describe(Describer& d, ShareGpt& t) {
  field(d, {"output_len", "Tokens asked for (absent: the recorded answer's)."}, t.output_len,
        IntRange{1, 100'000'000});
  field(d, {"oversample", "Repeat prompts when there are too few."}, t.oversample);
}

void describe(Describer& d, Sonnet& t) {
  field(d, {"input_len", "Tokens of a prompt."}, t.input_len, IntRange{1, 100'000'000});
  field(d, {"output_len", "Tokens asked for."}, t.output_len, IntRange{1, 100'000'000});
  field(d, {"prefix_len", "Tokens all prompts start with."}, t.prefix_len,
        IntRange{0, 100'000'000});
}

void describe(Describer& d, Custom& t) {
  field(d, {"output_len", "Tokens asked for; -1 takes them from the file."}, t.output_len,
        IntRange{-1, 100'000'000});
}

void describe(Describer& d, TimedTrace& t) {
  field(d, {"chunk_hash_size", "Tokens per hash id (Mooncake: 512)."}, t.chunk_hash_size,
        IntRange{1, 1'000'000});
  field(d, {"sec_multiplier", "Seconds per unit of the timestamps."}, t.sec_multiplier,
        RealRange{.min = 0, .max = 1e6, .min_open = true});
  field(d, {"self_timed", "Arrive at the trace's own times."}, t.self_timed);
}

void describe(Describer& d, Run& t) {
  const IntRange count{1, 1'000'000'000};
  field(d, {"request_rate", "Requests per second of this run."}, t.request_rate,
        RealRange{.min = 0, .min_open = true, .allow_infinity = true});
  field(d, {"num_prompts", "Requests of this run."}, t.num_prompts, kPrompts);
  field(d, {"max_concurrency", "Requests in flight at most."}, t.max_concurrency, count);
  field(d, {"seed", "Seed of data and arrivals; equal seeds repeat the prompts."}, t.seed);
}

void describe(Describer& d, Config& t) {
  const RealRange rate{.min = 0, .min_open = true, .allow_infinity = true};
  const RealRange finite{.min = 0, .max = 1e9, .min_open = true};
  const IntRange count{1, 1'000'000'000};
  field(d, {"dataset_name", "Data set."}, t.dataset_name);
  field(d, {"dataset_path", "File of sharegpt, custom, burstgpt and timed_trace data."},
        t.dataset_path);
  field(d, {"num_prompts", "Requests of the run."}, t.num_prompts, kPrompts);
  field(d, {"request_rate", "Requests per second; inf sends all at once."}, t.request_rate, rate);
  field(d, {"burstiness", "Shape of the gamma gaps: 1 is Poisson, inf is even."}, t.burstiness,
        rate);
  field(d, {"max_concurrency", "Requests in flight at most."}, t.max_concurrency, count);
  field(d, {"ramp_up_strategy", "How the rate rises over the run."}, t.ramp_up_strategy);
  field(d, {"ramp_up_start_rps", "Rate of the first request."}, t.ramp_up_start_rps, finite);
  field(d, {"ramp_up_end_rps", "Rate of the last request."}, t.ramp_up_end_rps, finite);
  field(d, {"seed", "Seed of data and arrivals."}, t.seed);
  field(d, {"num_warmups", "Copies of request 0 sent before the run."}, t.num_warmups,
        IntRange{0, 1'000'000});
  field(d,
        {"initial_test_request",
         "Send request 0 once before everything, as ready-check-timeout-sec > 0 does (absent: "
         "if the first pool's preset is 2025-H2)."},
        t.initial_test_request);
  field(d, {"disable_shuffle", "Keep the data set's order."}, t.disable_shuffle);
  field(d, {"ignore_eos", "Answers run to their maximum (random data: always)."}, t.ignore_eos);
  field(d, {"chat", "Use the chat endpoint, which adds the chat template."}, t.chat);
  field(d, {"legacy_arrivals", "Arrivals of versions that did not rescale."}, t.legacy_arrivals);
  field(d, {"input_len", "Overrides the data set's input length."}, t.input_len, count);
  field(d, {"output_len", "Overrides the data set's output length."}, t.output_len, count);
  field(d, {"prefix_repetition", "Settings of prefix_repetition."}, t.prefix_repetition);
  field(d, {"random", "Settings of random."}, t.random);
  field(d, {"sharegpt", "Settings of sharegpt."}, t.sharegpt);
  field(d, {"sonnet", "Settings of sonnet."}, t.sonnet);
  field(d, {"custom", "Settings of custom."}, t.custom);
  field(d, {"timed_trace", "Settings of timed_trace."}, t.timed_trace);
  field(d, {"lora_modules", "LoRA adapters; each request asks for one of them."}, t.lora_modules);
  field(d, {"lora_assignment", "By chance, or in turn."}, t.lora_assignment);
  field(d, {"runs", "Invocations of the tool one after the other, each with its own rate."},
        t.runs);
}

}  // namespace routesim::workloads::vllm_bench
