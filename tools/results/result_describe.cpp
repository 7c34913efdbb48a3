// The keys of a result file, once: the JSON writer, the reader of result files and the schema are
// visitors of this.
#include <cmath>
#include <string>

#include "tools/results/described_json.h"
#include "tools/results/result_record.h"

namespace routesim {

namespace {

using tools::derived;
using tools::nullable;

constexpr std::string_view kPreemptions =
    "Requests thrown out of a batch for lack of KV blocks; each counts every time.";
constexpr std::string_view kOverloaded =
    "The queue grows until the stage ends, so latencies depend on how long it lasts.";
constexpr std::string_view kByMetric =
    "By name with unit and statistic, such as ttft_ms.p99. Null where the stage has no such value.";

/// A derived value, or part, that only some objects have.
template <class T>
void shown(Describer& d, const Field& f, const T& v, bool is_there) {
  std::optional<T> copy = is_there ? std::optional<T>(v) : std::nullopt;
  field(d, f, copy);
}

void seconds(Describer& d, const Field& f, Duration& v) {
  double s = v.to_seconds();
  field(d, f, s);
  v = std::isnan(s) ? Duration::zero() : Duration::from_seconds(s);
}

/// A list of numbers on one line of the file.
constexpr Field one_line_list(std::string_view name, std::string_view doc) {
  Field f{.name = name, .doc = doc};
  f.null = true;
  f.one_line = true;
  return f;
}

bool is_percentile(std::string_view key) {
  return key == "median" ||
         (key.size() > 1 && key[0] == 'p' && key.find_first_not_of("0123456789.", 1) == key.npos);
}
constexpr OwnKeys kPercentiles{"^(median|p[0-9]+(\\.[0-9]+)?)$", is_percentile};

bool is_attainment(std::string_view key) { return key.ends_with("_attainment_percentage"); }
constexpr OwnKeys kAttainments{"^[a-z_]+_attainment_percentage$", is_attainment};

}  // namespace

namespace sim {

void describe(Describer& d, Waits& w) {
  field(d, {"count", "Waits."}, w.count);
  double mean_s = w.mean_s();
  field(d, {"mean", "Mean, s."}, mean_s);
  // Of a file, which has no total.
  if (w.total == Duration::zero())
    w.total = Duration::from_seconds(mean_s * static_cast<double>(w.count));
  seconds(d, {"max", "Longest, s."}, w.longest);
}

void describe(Describer& d, LinkUse& l) {
  field(d, {"to_gpus", "The bus from host to GPU memory."}, l.to_gpus);
  field(d, {"to_host", "The bus back."}, l.to_host);
  field(d, {"host_memory", "Host memory."}, l.host_memory);
  field(d, {"nic_out", "The network card, sending."}, l.nic_out);
  field(d, {"nic_in", "The network card, receiving."}, l.nic_in);
}

void describe(Describer& d, TierResult& t) {
  TierCounters& did = t.did;
  derived(d, {"hit_ratio", "hit_tokens / hbm_query_tokens."}, t.hit_ratio());
  field(d, {"hbm_query_tokens", "Prompt tokens looked up in GPU memory."}, t.hbm_query_tokens);
  field(d, {"hbm_hit_tokens", "Prompt tokens found there."}, t.hbm_hit_tokens);
  field(d, {"query_tokens", "Prompt tokens looked up in the tiers."}, did.query_tokens);
  field(d, {"hit_tokens", "Prompt tokens loaded from the tiers."}, did.hit_tokens);
  field(d, {"loads", "Requests that loaded."}, did.loads);
  field(d, {"loaded_bytes", "Bytes they loaded."}, did.loaded_bytes);
  field(d, {"stored_chunks", "Chunks that got room in host memory."}, did.stored_chunks);
  field(d, {"stored_bytes", "Their bytes."}, did.stored_bytes);
  field(d, {"evicted_chunks", "Chunks that made room."}, did.evicted_chunks);
  field(d, {"refused_stores", "Passes of a request in which nothing could make room."},
        did.refused_stores);
  field(d, {"pulls", "Pulls from other servers asked for."}, did.pulls);
  field(d, {"pulls_arrived", "Pulls that brought chunks."}, did.pulls_arrived);
  field(d, {"pulls_failed", "Pulls that took too long, or whose source ended."}, did.pulls_failed);
  field(d, {"pulls_served", "Pulls of others that were sent."}, did.pulls_served);
  field(d, {"pulled_bytes", "Bytes that pulls brought."}, did.pulled_bytes);
  const bool files = did.disk_lookups + did.disk_writes > 0;
  shown(d, {"disk_lookups", "Requests that asked files. Absent without files, like the next four."},
        did.disk_lookups, files);
  shown(d, {"disk_reads", "Requests that files had chunks for."}, did.disk_reads, files);
  shown(d, {"disk_read_bytes", "Bytes these brought."}, did.disk_read_bytes, files);
  shown(d, {"disk_writes", "Requests whose chunks went to files, per step."}, did.disk_writes,
        files);
  shown(d, {"disk_wait_s", "Until the chunks are in host memory, or not."}, did.disk_waits, files);
  field(d, {"load_wait_s", "From the pass that begins a load until the engine has it."},
        did.load_waits);
  field(d, {"pull_wait_s", "From the pass that asks until there is nothing to wait for."},
        did.pull_waits);
  field(d, {"capacity_bytes", "Room for chunks."}, t.capacity_bytes);
  field(d, {"used_bytes", "Bytes they take at the end."}, t.used_bytes);
  field(d, {"link_use", "Bytes moved / bytes that could have been moved, 0 to 1."}, t.links);
}

// Names as in vLLM's metrics vllm:spec_decode_*.
static void describe(Describer& d, SpeculationResult& s) {
  derived(
      d,
      {"mean_acceptance_length", "1 + num_accepted_tokens / num_drafts: tokens of a verification."},
      s.mean_length());
  field(d, {"num_drafts", "Verifications with drafts, one per sequence and step."}, s.drafts);
  field(d, {"num_draft_tokens", "Tokens guessed."}, s.draft_tokens);
  field(d, {"num_accepted_tokens", "Tokens of these that were accepted."}, s.accepted_tokens);
  field(d, {"num_accepted_tokens_per_pos", "The same by position."}, s.accepted_per_position);
}

void describe(Describer& d, ReplicaResult& r) {
  field(d, {"name", "Name of the server."}, r.name);
  field(d, {"pool", "Its pool."}, r.pool);
  field(d, {"requests", "Requests it served."}, r.requests);
  field(d, {"steps", "Engine steps."}, r.steps);
  field(d, {"busy_s", "Time in steps, s."}, r.busy_s);
  field(d, {"prefix_query_tokens", "Prompt tokens looked up in its prefix cache."},
        r.prefix_query_tokens);
  field(d, {"prefix_hit_tokens", "Prompt tokens found there."}, r.prefix_hit_tokens);
  field(d, {"preemptions", kPreemptions}, r.preemptions);
  field(d, {"num_gpu_blocks", "KV blocks in GPU memory."}, r.num_gpu_blocks);
  field(d, {"kv_cache_tokens", "Tokens that they hold."}, r.kv_cache_tokens);
  field(d, {"evicted_blocks", "Cached blocks that made room."}, r.evicted_blocks);
  d.object({"kv_cache_usage", "Share of its KV blocks in use, 0 to 1."}, [&r](Describer& usage) {
    field(usage, {"mean", "Over time."}, r.kv_cache_usage_mean);
    field(usage, {"max", "The largest at any time."}, r.kv_cache_usage_max);
  });
  field(d, {"max_running", "Most requests in its batch."}, r.max_running);
  field(d, {"max_waiting", "Most requests in its queue."}, r.max_waiting);
  field(d, {"kv_tiers", "Its KV tiers beside GPU memory."}, r.tiers);
  field(d, {"speculation", "Its drafts. Absent without speculative decoding."}, r.speculation);
}

void describe(Describer& d, GatewayResult& g) {
  field(d, {"refused", "Requests refused by a limit."}, g.refused);
  field(d, {"retries", "Attempts made again."}, g.retries);
  field(d, {"retries_refused", "Retries refused by the retry budget."}, g.retries_refused);
  field(d, {"waited", "Requests that waited for a connection or a slot."}, g.waited);
  seconds(d, {"max_wait_s", "Longest such wait, s."}, g.longest_wait);
  field(d, {"max_in_flight", "Most requests in flight to one server."}, g.most_in_flight);
  field(d, {"max_waiting", "Most requests that waited at a time."}, g.most_waiting);
}

void describe(Describer& d, RoutingResult& r) {
  derived(d,
          {"prefix_hit_ratio",
           "Prompt tokens that engines found cached / prompt tokens, of all requests routed."},
          r.prefix_hit_ratio());
  field(d, {"decisions", "Requests decided about."}, r.decisions);
  field(d, {"rejected", "Requests refused by the router."}, r.rejected);
  field(d,
        {"predicted_hit_tokens", "Cached tokens the router expected where it sent the requests."},
        r.predicted_hit_tokens);
  field(d, {"hit_tokens", "Cached tokens the engines found."}, r.hit_tokens);
  field(d, {"prompt_tokens", "Tokens of all prompts routed."}, r.prompt_tokens);
  field(d, {"disaggregated", "Requests sent through a prefill server."}, r.disaggregated);
  field(d, {"mean_wait_s", "Mean wait in the router's own queue, s. Absent without one."},
        r.mean_wait_s);
  shown(d, {"max_wait_s", "Longest such wait, s."}, r.longest_wait_s, r.mean_wait_s.has_value());
  field(d,
        {"decisions_per_s", "The most that its processes decide in a second. Absent without one."},
        r.decisions_per_s);
  field(d, {"gateway", "What the proxy in front of the servers did."}, r.gateway);
  shown(d,
        {"mean_regret_s",
         "Mean regret of a decision against the omniscient one, client-seconds. With --regret."},
        r.mean_regret_s(), r.priced);
}

static void describe(Describer& d, FleetPoint& p) {
  field(d, {"at_s", "From the start of the run, s."}, p.at_s);
  field(d, {"servers", "Servers that exist from then on."}, p.servers);
  field(d, {"ready", "Servers that serve from then on."}, p.ready);
  field(d, {"wanted", "Servers that its Deployment is to have from then on."}, p.wanted);
}

static void describe(Describer& d, FleetPoolResult& r) {
  field(d, {"pool", "Its name."}, r.pool);
  field(d,
        {"mean_servers",
         "Servers that exist, over time: what is paid for. From the first reported stage on."},
        r.mean_servers);
  field(d, {"mean_ready", "Servers that serve, over time."}, r.mean_ready);
  field(d, {"max_servers", "Most servers at a time."}, r.most_servers);
  field(d, {"min_ready", "Fewest that served at a time."}, r.least_ready);
  field(d, {"starts", "Times that a server became ready."}, r.starts);
  field(d, {"ends", "Times that one ended."}, r.ends);
  field(d, {"server_hours", "Hours that its servers exist, from the first reported stage on."},
        r.server_hours);
  field(d, {"gpu_hours", "The same of its GPUs."}, r.gpu_hours);
  field(d, {"price_per_hour", "US dollars of one server; where the scenario has prices."},
        r.price_per_hour);
  shown(d, {"cost", "US dollars of its server hours."}, r.cost().value_or(0),
        r.price_per_hour.has_value());
  field(d, {"over_time", "Its servers at each change, from the start of the run."}, r.points);
}

static void describe(Describer& d, FleetMark& m) {
  field(d, {"at_s", "From the start of the run, s."}, m.at_s);
  field(d, {"subject", "A server, a pool or a router process."}, m.subject);
  field(d, {"what", "What happened to it."}, m.what);
}

void describe(Describer& d, FleetResult& r) {
  field(d, {"pools", "What became of each pool."}, r.pools);
  field(d, {"lost", "Times that a request lost its server."}, r.lost);
  field(d, {"sent_again", "Times that the gateway or the router then sent it once more."},
        r.sent_again);
  field(d,
        {"fell_back", "Prompts that decode servers computed because the prefill server was gone."},
        r.fell_back);
  field(d, {"events", "What happened, in time order."}, r.marks);
  field(d, {"events_left_out", "Events beyond those listed."}, r.unmarked);
}

static void describe(Describer& d, MissedSpan& s) {
  field(d, {"from_s", "From the start of the run, s."}, s.from_s);
  field(d, {"to_s", "Its end, s."}, s.to_s);
  field(d, {"sent", "Requests sent in it."}, s.sent);
  field(d, {"good", "Those of them that meet every goal."}, s.good);
  field(d, {"why", "What happened at that time, and how many servers serve."}, s.why);
}

static void describe(Describer& d, Timeline::Goals& g) {
  field(d, {"good", "Requests of each bin that meet every goal."}, g.good);
  field(d, {"share", "Share of requests that should."}, g.share);
  field(d, {"expected", "Whether the scenario expects that share; else it is the usual one."},
        g.expected);
  field(d, {"missed", "Adjacent times below that share, where chance does not explain it."},
        g.missed);
  field(d, {"missed_minutes", "Minutes of these in which requests were sent."}, g.missed_minutes);
}

static void describe(Describer& d, Timeline& t) {
  field(d, {"bin_s", "Width of a bin, s. The first one begins with the run."}, t.bin_s);
  field(d, {"sent", "Requests of reported stages sent in each bin."}, t.sent);
  field(d, {"answered", "Of these, those that are answered."}, t.answered);
  field(d, {"failed", "Of these, those that fail."}, t.failed);
  field(d, {"goals", "Absent without goodput goals."}, t.goals);
}

}  // namespace sim

namespace tools {

void describe(Describer& d, SamplesRecord& r) {
  field(d, {"mean", "Arithmetic mean."}, r.mean);
  field(d, {"min", "Smallest value."}, r.min);
  field(d, {"max", "Largest value."}, r.max);
  field(d, {"", "Percentile: p90 is above nine tenths of the values."}, r.percentiles,
        kPercentiles);
}

void describe(Describer& d, LoadRecord::Stage& r) {
  field(d, {"send_duration", "First send to last send, s."}, r.send_duration);
  field(d,
        nullable("requested_rate",
                 "What the stage asked for, requests/s; null when all are sent at once."),
        r.requested_rate);
  field(d,
        nullable("achieved_rate",
                 "count / send_duration, requests/s; null when all were sent at once."),
        r.achieved_rate);
  field(d,
        {"concurrency",
         "Requests that the stage keeps in flight, where it is driven by concurrency."},
        r.concurrency);
}

void describe(Describer& d, LoadRecord& r) {
  field(d, {"count", "Requests sent.", true}, r.count);
  field(d,
        nullable("schedule_delay",
                 "Due time to send, s: how late the load tool itself was. Null when there is no "
                 "value."),
        r.schedule_delay);
  if (r.stage) describe(d, *r.stage);
}

void describe(Describer& d, LatencyRecord& r) {
  field(d, nullable("request_latency", "Send to last token, s. Null when there is no value."),
        r.request_latency);
  field(d,
        nullable("normalized_time_per_output_token",
                 "(end - send) / output tokens, s; one value per request. Null when there is no "
                 "value."),
        r.normalized_time_per_output_token);
  field(d,
        nullable("time_per_output_token",
                 "(end - first token) / (output tokens - 1), s; one value per request with at "
                 "least two tokens. Null when there is no value."),
        r.time_per_output_token);
  field(d,
        nullable("time_to_first_token",
                 "Send to first token, s. Null without streaming, and when there is no value."),
        r.time_to_first_token);
  field(d,
        nullable("inter_token_latency",
                 "Gap between two consecutive tokens, s, all pooled. Null when there is no "
                 "value."),
        r.inter_token_latency);
}

void describe(Describer& d, ThroughputRecord& r) {
  field(d, {"input_tokens_per_sec", "Prompt tokens of successful requests, tokens/s."},
        r.input_tokens);
  field(d, {"output_tokens_per_sec", "Output tokens of successful requests, tokens/s."},
        r.output_tokens);
  field(d, {"total_tokens_per_sec", "Both together, tokens/s."}, r.total_tokens);
  field(d, {"requests_per_sec", "Successful requests, requests/s."}, r.requests);
}

void describe(Describer& d, TokensRecord& r) {
  field(d, {"mean", "Arithmetic mean."}, r.mean);
  field(d, {"min", "Smallest value."}, r.min);
  field(d, {"max", "Largest value."}, r.max);
  field(d, {"", "Percentile."}, r.percentiles, kPercentiles);
  field(d, {"total", "Tokens of all of them."}, r.total);
  if (!r.cache) return;
  field(d, {"cached", "Those that engines took from a cache."}, r.cache->cached);
  field(d, {"uncached", "Those that engines computed."}, r.cache->uncached);
}

void describe(Describer& d, ToolGoodputRecord& r) {
  field(d, {"goodput_percentage", "Successes within all goals, %."}, r.percentage);
  field(d, {"request_goodput", "Those requests, requests/s."}, r.requests_per_s);
  field(d, {"token_goodput", "Their prompt and output tokens, tokens/s."}, r.tokens_per_s);
  field(d, {"good_requests", "Successes within all goals."}, r.good);
  field(d, {"total_requests", "Successes."}, r.total);
  field(d, {"", "Successes within the goal of that name, %. Absent without that goal."}, r.attained,
        kAttainments);
}

void describe(Describer& d, SuccessesRecord& r) {
  field(d, {"count", "Requests.", true}, r.count);
  field(d, {"latency", "Latencies of successful requests as the client sees them, s.", true},
        r.latency);
  field(d, {"throughput", "Per second of the time from the first send to the last end.", true},
        r.throughput);
  field(d,
        nullable("prompt_len",
                 "Tokens per prompt; an older name of what prompt_tokens holds. Null when there "
                 "is no value."),
        r.prompt_len);
  field(d,
        {"prompt_tokens",
         "Tokens of the prompts: statistics, which are absent without a success, and totals."},
        r.prompt_tokens);
  field(d,
        {"output_tokens",
         "Tokens of the answers: statistics, which are absent without a success, and their "
         "total."},
        r.output_tokens);
  field(d,
        nullable("output_len",
                 "Tokens per answer; an older name of what output_tokens holds. Null when there "
                 "is no value."),
        r.output_len);
  field(d,
        {"goodput_metrics",
         "Goodput as inference-perf's own reports count it: shares of the successes."},
        r.goodput);
}

void describe(Describer& d, FailuresRecord::Label& r) {
  field(d, {"count", "Requests."}, r.count);
  field(d, {"messages", "Always empty."}, r.messages);
}

void describe(Describer& d, FailuresRecord& r) {
  field(d, {"count", "Requests.", true}, r.count);
  field(d, nullable("request_latency", "Always null: failed requests have no latency here."),
        r.request_latency);
  field(d, nullable("prompt_tokens", "Always null."), r.prompt_tokens);
  field(d, {"by_label", "By reason."}, r.by_label);
}

void describe(Describer& d, LifecycleRecord& r) {
  field(d, {"benchmark_time_seconds", "First send to the end of the last request, s."},
        r.benchmark_time_s);
  field(d, {"load_summary", "The requests that were sent, as inference-perf counts them.", true},
        r.load);
  field(d, {"successes", "Requests that received all of their output.", true}, r.successes);
  field(d,
        {"failures",
         "Requests that timed out, were refused, or were longer than the engine "
         "accepts.",
         true},
        r.failures);
}

void describe(Describer& d, UsageRecord& r) {
  field(d, nullable("mean", "Over servers and time. Null of a stage that was interrupted."),
        r.mean);
  field(d, {"max", "The largest at any time."}, r.max);
}

void describe(Describer& d, QuantilesRecord& r) {
  field(d, nullable("time_to_first_token", "Send to first token, s."), r.time_to_first_token);
  field(d, nullable("inter_token_latency", "Gap between two tokens, s."), r.inter_token_latency);
  field(d, nullable("time_per_output_token", "Mean gap of a request, s."), r.time_per_output_token);
  field(d, nullable("request_latency", "Send to last token, s."), r.request_latency);
}

void describe(Describer& d, GoodputRecord& r) {
  field(d, {"good_requests", "Requests within all goals."}, r.good);
  field(d, {"sent_requests", "Requests sent."}, r.sent);
  field(d, nullable("percentage", "good_requests / sent_requests, %; null when none was sent."),
        r.percentage);
  field(d, {"requests_per_sec", "Good requests, requests/s."}, r.requests_per_s);
  field(d, {"output_tokens_per_sec", "Their output tokens, tokens/s."}, r.output_tokens_per_s);
}

void describe(Describer& d, MeasuredRecord& r) {
  field(d, {"metric", "Name of the metric, as in docs/metrics.md."}, r.metric);
  field(d, {"statistic", "mean, p90 and so on; empty where there is one value."}, r.statistic);
  field(d, {"value", "In base units: s, tokens/s, requests/s."}, r.value);
  field(d, {"source", "Where it was published."}, r.source);
}

void describe(Describer& d, StageRecord::Steady& r) {
  field(
      d,
      {"state", "steady: no queue grows. growing: overloaded. too-short: it ends before it tells."},
      r.state);
  field(d, {"telling_s", "Seconds for which it should send to tell. Absent where it tells."},
        r.telling_s);
}

void describe(Describer& d, StageRecord& r) {
  if (r.name) field(d, {"name", "Number or name of the stage, or name of the class."}, *r.name);
  if (r.reported)
    field(d, {"reported", "Part of the summary; warm-up stages are not."}, *r.reported);
  if (r.reported)
    field(d, {"part", "The load that has the stage. Absent where there is no mix."}, r.part);
  describe(d, r.lifecycle);
  field(d,
        {"prefix_hit_ratio",
         "Prompt tokens from caches / prompt tokens of successful requests, 0 to 1."},
        r.prefix_hit_ratio);
  if (r.kv_cache_usage)
    field(d, {"kv_cache_usage", "Share of the KV blocks in use, 0 to 1."}, *r.kv_cache_usage);
  field(d, {"preemptions", kPreemptions}, r.preemptions);
  if (r.overloaded) field(d, {"overloaded", kOverloaded}, *r.overloaded);
  if (r.reported)
    field(d, {"steady_state", "Whether it shows what its load would do without end."}, r.steady);
  if (r.overloaded && !r.name)
    field(d, {"requests_per_sec_sent", "The offered rate: requests / first to last send, /s."},
          r.requests_sent_per_s);
  field(d, {"quantiles", "Latencies at each of quantile_levels, s. Null when there is no value."},
        r.quantiles);
  field(d,
        {"goodput",
         "Requests that succeeded within every goal of goodput_goals. Of traffic classes only the "
         "loads of a mix have it."},
        r.goodput);
  if (r.reported)
    field(d, {"measured", "Published numbers of this stage. Absent when the scenario has none."},
          r.measured);
}

void describe(Describer& d, ClassRecord& r) {
  describe(d, static_cast<StageRecord&>(r));
  field(d,
        {"goodput_goals",
         "Latency goals that good requests of this load meet: bounds, s. Absent without a mix."},
        r.goodput_goals);
}

void describe(Describer& d, TrustRecord::Pool& r) {
  field(d, {"pool", "Name of the pool."}, r.name);
  field(d, {"class", "The basis of its step times."}, r.step_times);
  field(d, {"outside_fitted_range", "Share of its busy time outside the range of the fit, 0 to 1."},
        r.outside_fitted_range);
}

void describe(Describer& d, TrustRecord::Validation& r) {
  field(d, {"quantity", "What was compared."}, r.quantity);
  field(d, {"published_numbers", "How many."}, r.published_numbers);
  field(d, {"mean_absolute_error_percent", "Mean of their absolute errors, %."},
        r.mean_absolute_error_percent);
  field(d, {"worst_error_percent", "The largest error with its sign, %."}, r.worst_error_percent);
}

void describe(Describer& d, TrustRecord& r) {
  field(d, {"class", "The weakest basis of step times of all pools."}, r.step_times);
  field(d, {"text", "The same in a sentence."}, r.text);
  field(d, {"pools", "By pool."}, r.pools);
  field(d, {"validation", "What validation found for this class."}, r.validation);
}

void describe(Describer& d, StageSide& r) {
  field(d, nullable("ttft_mean_s", "Mean TTFT, s."), r.ttft_mean_s);
  field(d, {"overloaded", "The queue grows until the stage ends."}, r.overloaded);
}

void describe(Describer& d, StageBand& r) {
  field(d, {"name", "Name of the stage."}, r.stage);
  field(d, {"as_is", "With the KV capacity as it is."}, r.as_is);
  field(d, {"fewer", "With fewer blocks."}, r.fewer);
  field(d, {"more", "With more blocks."}, r.more);
}

void describe(Describer& d, CapacityBandRecord& r) {
  field(d, {"band", "Share of the blocks taken or added, 0 to 1."}, r.band);
  field(d, {"text", "The finding in a sentence."}, r.text);
  field(d, {"stages", "Stages that change."}, r.stages);
}

void describe(Describer& d, Capacity& r) {
  field(d, {"rate", "Requests/s that the servers sustain without end: the best estimate."}, r.rate);
  field(d, {"low", "Requests/s: the highest rate that was simulated and sustained."}, r.low);
  field(d,
        {"high",
         "Requests/s: the lowest rate at which the queue grew, or what was answered then, with two "
         "standard errors, if that is less."},
        r.high);
  field(d, {"limit", "What binds there; empty where nothing was seen."}, r.limit);
  field(d, {"why_not", "Why the load has no such rate; empty where it has one."}, r.why_not);
  field(d, {"requests", "Requests simulated to find it."}, r.requests);
}

void describe(Describer& d, SeriesRecord::Cluster& r) {
  field(d, one_line_list("sent", "Requests sent so far."), r.sent);
  field(d, one_line_list("done", "Requests that ended so far."), r.done);
  field(d, one_line_list("failed", "Requests that failed so far."), r.failed);
  field(d, one_line_list("outstanding", "Requests sent and not ended."), r.outstanding);
  field(d, one_line_list("unrouted", "Requests that wait in the router."), r.unrouted);
}

void describe(Describer& d, SeriesRecord::Endpoint& r) {
  field(d, {"name", "Name of the endpoint."}, r.name);
  field(d, {"pool", "Its pool."}, r.pool);
  field(d, one_line_list("waiting", "Requests in its queue."), r.waiting);
  field(d, one_line_list("running", "Requests in its batch."), r.running);
  field(d, one_line_list("in_flight", "Requests that the router counts."), r.in_flight);
  field(d, one_line_list("kv_cache_usage", "Share of KV blocks in use."), r.kv_cache_usage);
  field(d,
        one_line_list("prefix_hit_rate",
                      "Cache hits of the interval, 0 to 1; null without a lookup."),
        r.prefix_hit_rate);
  field(d, one_line_list("step_time_s", "Mean step of the interval, s; null without a step."),
        r.step_time_s);
}

void describe(Describer& d, SeriesRecord& r) {
  field(d, {"interval_s", "Time between two points, s."}, r.interval_s);
  field(d, one_line_list("time_s", "The points, s of simulated time."), r.time_s);
  field(d, {"cluster", "Counters of the cluster at each point of time_s."}, r.cluster);
  field(d, {"endpoints", "Every endpoint at each point of time_s."}, r.endpoints);
}

void describe(Describer& d, PublishedRecord& r) {
  field(d, {"metric", "As published."}, r.metric);
  field(d, {"statistic", "How the publication sums up."}, r.statistic);
  field(d, {"unit", "Unit of both values."}, r.unit);
  field(d, nullable("simulated", "What the simulation gives."), r.simulated);
  field(d, {"measured", "What was published."}, r.measured);
  field(d, {"source", "Where."}, r.source);
}

void describe(Describer& d, VariantRecord& r) {
  field(d, {"name", "Name of the variant.", true}, r.name);
  field(d, {"scan_of", "The variant whose load this one changes. Absent without a scan."},
        r.scan_of);
  field(d,
        {"fleet_of", "The variant whose fleet this one changes. Absent without a scan of fleets."},
        r.fleet_of);
  field(d, {"goodput_goals", "Latency goals that good requests meet: bounds, s."}, r.goodput_goals);
  field(d, {"stages", "The stages of the load, warm-up stages included.", true}, r.stages);
  field(d, {"summary", "The whole run: the requests of all reported stages, pooled.", true},
        r.summary);
  field(d,
        {"classes",
         "The requests of each traffic class, of the reported stages. Absent without "
         "classes."},
        r.classes);
  field(d, {"routing", "What the router decided in the whole run."}, r.routing);
  field(d, {"kv_tiers", "KV tiers beside GPU memory, whole run, unreported stages included."},
        r.kv_tiers);
  field(d, {"fleet", "What happened to the servers. Absent where nothing did."}, r.fleet);
  field(d,
        {"timeline",
         "Requests by when they were sent. Absent where neither the fleet nor the load changes."},
        r.timeline);
  field(d, {"replicas", "Every server, or data-parallel rank of one, in the whole run."},
        r.replicas);
  field(d, {"trust", "What the result rests on."}, r.trust);
  field(d, {"kv_capacity_band", "What a few per cent of the KV blocks change near a knee."},
        r.capacity_band);
  field(d, {"capacity", "The highest rate of the load that the servers sustain without end."},
        r.capacity);
  field(d, {"preparation", "Requests that the load tool sends before its run, without a report."},
        r.preparation);
  field(d, {"series", "Samples over time, at most 600 points. With --series."}, r.series);
  field(d, {"published", "Published summary rows beside the simulation."}, r.published);
  field(d, {"simulated_s", "Simulated time, s."}, r.simulated_s);
  field(d,
        {.name = "fingerprint",
         .doc = "64 bits over every event of the run, in hexadecimal digits.",
         .plain = true},
        r.fingerprint);
  field(d, {"notes", "Remarks on the run."}, r.notes);
  field(d,
        {"resolved",
         "The scenario of this variant with every default filled in; see "
         "scenario.schema.json."},
        r.resolved);
}

void describe(Describer& d, ReplicationsRecord::Spread& r) {
  field(d, {"mean", "Mean over the runs."}, r.mean);
  field(d, nullable("sd", "Standard deviation between runs; null with one run."), r.sd);
  field(d,
        nullable("half_width", "Half width of the 95 % interval (Student-t); null with one run."),
        r.half_width);
  field(d, nullable("low", "Lower end; null with one run."), r.low);
  field(d, nullable("high", "Upper end; null with one run."), r.high);
}

void describe(Describer& d, ReplicationsRecord::Metric& r) {
  describe(d, static_cast<ReplicationsRecord::Spread&>(r));
  field(d, {"median", "Median over the runs."}, r.median);
  field(d, {"median_low", "Lower end of its rank interval."}, r.median_low);
  field(d, {"median_high", "Upper end."}, r.median_high);
  field(d, {"values", "By seed."}, r.values);
}

void describe(Describer& d, ReplicationsRecord::Stage& r) {
  if (r.name) field(d, {"name", "Name of the stage."}, *r.name);
  if (r.reported) field(d, {"reported", "Part of the summary."}, *r.reported);
  field(d, {"overloaded", "In the mean of the runs."}, r.overloaded);
  field(d, nullable("metrics", kByMetric), r.metrics);
}

void describe(Describer& d, ReplicationsRecord::Variant& r) {
  field(d, {"name", "Name of the variant."}, r.name);
  field(d, {"seeds", "Seeds of its runs."}, r.seeds);
  field(d, {"stages", "By stage."}, r.stages);
  field(d, {"summary", "The whole run over all runs."}, r.summary);
}

void describe(Describer& d, ReplicationsRecord::Percent& r) {
  field(d, {"mean", "100 (new - base) / base, %."}, r.mean);
  field(d, {"low", "Lower end of Fieller's 95 % interval, %."}, r.low);
  field(d, {"high", "Upper end, %."}, r.high);
}

void describe(Describer& d, ReplicationsRecord::Change& r) {
  describe(d, static_cast<ReplicationsRecord::Spread&>(r));
  field(d, nullable("percent", "Relative change; null when the base is zero."), r.percent);
  field(d,
        {"verdict",
         "better, worse, larger, smaller, not distinguishable, equal, no interval or "
         "not judged."},
        r.verdict);
}

void describe(Describer& d, ReplicationsRecord::StageChanges& r) {
  if (r.name) field(d, {"name", "Name of the stage."}, *r.name);
  field(d, {"metrics", "By name with unit and statistic."}, r.metrics);
}

void describe(Describer& d, ReplicationsRecord::Pair& r) {
  field(d, {"base", "Name of the first variant."}, r.base);
  field(d, {"variant", "Name of the other."}, r.variant);
  field(d, {"paired", "Both faced the same requests with each seed."}, r.paired);
  field(d, {"note", "The reason, where they did not; else empty."}, r.note);
  field(d, {"stages", "By stage."}, r.stages);
  field(d, {"summary", "Differences of the whole run."}, r.summary);
}

void describe(Describer& d, UntilOutcome& r) {
  field(d, {"rule", "As given."}, r.rule);
  field(d, {"reached", "Every interval is as narrow."}, r.reached);
  field(d, {"reason", "The reason, where it is not reached; else empty."}, r.reason);
}

void describe(Describer& d, ReplicationsRecord& r) {
  field(d, {"count", "Runs per variant."}, r.count);
  field(d, {"seeds", "Seeds of the runs.", true}, r.seeds);
  field(d, {"confidence", "Confidence of the intervals, 0 to 1."}, r.confidence);
  field(d, {"until", "The stopping rule of --until."}, r.until);
  field(d, {"variants", "By variant.", true}, r.variants);
  field(d, {"differences", "Every later variant against the first."}, r.differences);
}

void describe(Describer& d, Judgement& j) {
  field(d, {"expected", "The condition, such as ttft_ms.p99 < 500."}, j.what);
  field(d, {"of", "Variant and stage."}, j.scope);
  field(d, {"decision", "Whether it holds."}, j.decision);
  field(d, {"found", "What was found."}, j.detail);
  field(d, {"file", "Where it is written."}, j.where.file);
  field(d, {"line", "Line in that file."}, j.where.line);
}

void describe(Describer& d, VerdictRecord::Line& r) {
  field(d, {"text", "It names the variant that this one is compared with."}, r.text);
  field(d,
        nullable("better",
                 "Whether this variant has the better value; null where neither has, as "
                 "far as can be told."),
        r.better);
}

void describe(Describer& d, VerdictRecord::Knee& r) {
  field(d, {"variant", "Name of the variant."}, r.variant);
  field(d, {"text", "The finding in a few words."}, r.text);
  field(
      d,
      nullable("last_held", "Highest rate below the knee, requests/s; null when no stage is held."),
      r.last_held);
  field(d,
        nullable("first_overloaded",
                 "Lowest rate that is overloaded or fails more than 1 % of its requests, "
                 "requests/s; null when no knee was found."),
        r.first_overloaded);
}

void describe(Describer& d, VerdictRecord& r) {
  field(d, {"headline", "One or two sentences."}, r.headline);
  field(d, {"base", "The variant that all others are compared with: the first."}, r.base);
  field(d, nullable("winner", "Name of the variant that wins; null where none does."), r.winner);
  field(d, {"close", "More seeds may change who wins."}, r.close);
  field(d, {"failed", "Expectations that fail or are undecided."}, r.failed);
  field(d,
        {"lines",
         "What the winner does better and worse; without a winner, the best variant "
         "besides the base."},
        r.lines);
  field(d, {"ranking", "All variants, the best first; empty for fewer than three."}, r.ranking);
  field(d, {"knees", "By variant."}, r.knees);
  field(d, {"overload", "Which variants are overloaded where; empty for none."}, r.overload);
  field(d, {"goals", "The latency goals that goodput counts by; may be empty."}, r.goals);
  field(d, {"trust", "What step times rest on, and how far such results were off."}, r.trust);
  field(d, {"next", "What to do now, each with a command."}, r.next);
}

void describe(Describer& d, RunCommand& r) {
  field(d, {"input", "The scenario and its --set options, as given."}, r.input);
  field(d, {"variants", "The --variant options."}, r.variants);
  field(d, {"options", "The other options that decide what is run."}, r.options);
  field(d, {"scan", "The options of a scan: --rate and --replicas."}, r.scan);
}

void describe(Describer& d, RunRecord& r) {
  field(d, {"scenario", "Name of the scenario.", true}, r.scenario);
  field(d, {"question", "The question it answers."}, r.question);
  field(d, {"seed", "Seed of the first run."}, r.seed);
  field(d, {.name = "version", .doc = "Version of routesim.", .plain = true}, r.version);
  field(d,
        {.name = "commit", .doc = "Commit it was built from. Absent when unknown.", .plain = true},
        r.commit);
  field(d,
        {.name = "scenario_hash",
         .doc = "SHA-256 of the resolved scenario and the files it names, in hexadecimal digits.",
         .plain = true},
        r.scenario_hash);
  field(d,
        {"interrupted",
         "True when the run was interrupted and the results are partial; else "
         "absent."},
        r.interrupted);
  field(d, {"command", "The arguments that decide what is run."}, r.command);
  field(d, {"quantile_levels", "Levels of every `quantiles`, %."}, r.quantile_levels);
  field(d, {"variants", "Every variant, in the order of the scenario.", true}, r.variants);
  field(d, {"replications", "All runs together. With --replications or --until."}, r.replications);
  field(d,
        {"expectations",
         "The expectations of the scenario, judged. Absent when nothing is "
         "expected."},
        r.expectations);
  field(d, {"verdict", "Which variant wins, by how much, and what to do next, in sentences."},
        r.verdict);
}

}  // namespace tools

}  // namespace routesim
