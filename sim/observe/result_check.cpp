#include "sim/observe/result_check.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/observe/invariant_checker.h"

namespace routesim::sim {

namespace {

constexpr int kOrder = 15, kParts = 16;

/// Levels of the percentiles that are held: those that any load tool prints.
constexpr std::array<double, 13> kLevels = {0.1, 1,  5,    10, 25,   50,  75,
                                            90,  95, 97.5, 99, 99.5, 99.9};

struct Metric {
  const char* name;
  Samples StageResult::*samples;
};
constexpr std::array<Metric, 8> kMetrics = {
    {{"schedule_delay", &StageResult::schedule_delay},
     {"request_latency", &StageResult::request_latency},
     {"time_to_first_token", &StageResult::time_to_first_token},
     {"time_per_output_token", &StageResult::time_per_output_token},
     {"normalized_time_per_output_token", &StageResult::normalized_time_per_output_token},
     {"inter_token_latency", &StageResult::inter_token_latency},
     {"prompt_tokens", &StageResult::prompt_tokens},
     {"output_tokens", &StageResult::output_tokens}}};

/// Integers of a stage that the summary adds up.
struct Count {
  const char* name;
  std::int64_t StageResult::*value;
};
constexpr std::array<Count, 7> kCounts = {{{"requests", &StageResult::requests},
                                           {"successes", &StageResult::successes},
                                           {"failures", &StageResult::failures},
                                           {"prompt tokens", &StageResult::prompt_tokens_total},
                                           {"cached tokens", &StageResult::cached_tokens_total},
                                           {"output tokens", &StageResult::output_tokens_total},
                                           {"preemptions", &StageResult::preemptions}}};

/// Room for the rounding of doubles: sums are exact integers, what is printed of them is not.
double room(double a, double b) { return 1e-11 * std::max({1e-3, std::abs(a), std::abs(b)}); }
bool at_most(double a, double b) { return a <= b + room(a, b); }
bool equal(double a, double b) { return std::abs(a - b) <= room(a, b); }

void require(bool holds, int number, const std::string& who, const std::string& what) {
  if (!holds) throw InvariantError(number, who + ": " + what);
}

std::string against(double a, double b) {
  return " (" + std::to_string(a) + " against " + std::to_string(b) + ")";
}

void require_equal(double a, double b, const std::string& who, const std::string& what) {
  require(equal(a, b), kParts, who, what + against(a, b));
}
void require_at_most(double a, double b, const std::string& who, const std::string& what) {
  require(at_most(a, b), kParts, who, what + against(a, b));
}
void require_share(double v, const std::string& who, const std::string& what) {
  require(v >= 0 && at_most(v, 1), kParts, who,
          what + " is " + std::to_string(v) + ", not in 0..1");
}

/// One stage, or the summary.
class StageCheck {
 public:
  /// `all_gaps_succeed`: no request had failed by the stage's end, in other stages neither, and the
  /// gaps are those of the stage's own requests.
  StageCheck(const StageResult& stage, std::string who, bool all_gaps_succeed)
      : stage_(stage),
        who_(std::move(who)),
        ended_(stage.successes + stage.failures == stage.requests),
        all_gaps_succeed_(all_gaps_succeed) {}

  void run(bool complete) const {
    for (const Metric& m : kMetrics)
      check_order(distribution_of(stage_.*m.samples), who_ + ", " + m.name);
    counts(complete);
    tokens();
    latencies();
    times();
    if (complete || ended_) usage();
  }

 private:
  void counts(bool complete) const {
    const StageResult& s = stage_;
    for (const Count& c : kCounts)
      require(s.*c.value >= 0, kParts, who_, std::string(c.name) + " are fewer than none");
    require(complete ? ended_ : s.successes + s.failures <= s.requests, kParts, who_,
            "successes and failures are not the requests sent");
    std::int64_t labelled = 0;
    for (const auto& [label, n] : s.failures_by_label) labelled += n;
    require(labelled == s.failures, kParts, who_, "failures by label do not add up");
    require(s.schedule_delay.count() == s.requests, kParts, who_,
            "schedule_delay has another count than requests sent");
    for (const Samples* samples :
         {&s.request_latency, &s.time_to_first_token, &s.normalized_time_per_output_token,
          &s.prompt_tokens, &s.output_tokens})
      require(samples->count() == s.successes, kParts, who_,
              "a metric of requests has another count than successes");
    require(s.time_per_output_token.count() <= s.successes, kParts, who_,
            "time_per_output_token counts more than the successes");
    require(s.successes > 0 || s.inter_token_latency.count() == 0, kParts, who_,
            "inter_token_latency counts without a success");
  }

  void tokens() const {
    const StageResult& s = stage_;
    require_equal(s.prompt_tokens.sum(), static_cast<double>(s.prompt_tokens_total), who_,
                  "prompt tokens do not add up");
    require_equal(s.output_tokens.sum(), static_cast<double>(s.output_tokens_total), who_,
                  "output tokens do not add up");
    require(s.cached_tokens_total <= s.prompt_tokens_total, kParts, who_,
            "more prompt tokens hit than were sent");
    require_share(s.prefix_hit_ratio(), who_, "prefix_hit_ratio");
  }

  // Request by request: TTFT and the gaps after it are the latency, and a time per token is a part
  // of it. Samples hold the sums of both sides exactly.
  void latencies() const {
    const StageResult& s = stage_;
    const Samples& whole = s.request_latency;
    const Samples& first = s.time_to_first_token;
    require_at_most(first.min(), whole.min(), who_, "the least TTFT is over the least latency");
    require_at_most(first.max(), whole.max(), who_, "the longest TTFT is over the longest latency");
    require_at_most(first.sum(), whole.sum(), who_, "TTFT is longer than the latency");
    // A difference of sums of days in doubles would have no digits left.
    const Samples::Wide after = whole.sum_nano() - first.sum_nano() - s.held_open.ns();
    const double after_s = static_cast<double>(after) * 1e-9;
    // Rounded to nanoseconds, one by one.
    const double rounding = 1e-9 * static_cast<double>(s.successes);
    require_at_most(s.time_per_output_token.sum(), after_s + rounding, who_,
                    "TPOT is longer than all that follows the first token");
    require_at_most(s.normalized_time_per_output_token.sum(), whole.sum() + rounding, who_,
                    "latency per token is longer than the latency");
    // Gaps of requests that failed on the way stand among those of successes. A server may hear of
    // that only when the next stage has begun, whose gaps they are then.
    if (ended_ && all_gaps_succeed_)
      require(s.inter_token_latency.sum_nano() == after, kParts, who_,
              "TTFT and inter_token_latency do not add up to the latency" +
                  against(s.inter_token_latency.sum(), after_s));
  }

  void times() const {
    const StageResult& s = stage_;
    if (s.requests == 0) return;
    require(s.first_send <= s.last_send, kParts, who_, "the last send is before the first");
    if (s.successes > 0)
      require_at_most(s.request_latency.max(), s.total_time_s(), who_,
                      "a request took longer than the stage");
    if (ended_)
      require_at_most(s.send_duration_s(), s.total_time_s(), who_,
                      "sending took longer than the stage");
  }

  void usage() const {
    const StageResult& s = stage_;
    require_share(s.kv_cache_usage_max, who_, "kv_cache_usage.max");
    require_share(s.kv_cache_usage_mean, who_, "kv_cache_usage.mean");
    require_at_most(s.kv_cache_usage_mean, s.kv_cache_usage_max, who_,
                    "kv_cache_usage has a mean over its max");
  }

  const StageResult& stage_;
  std::string who_;
  bool ended_;
  bool all_gaps_succeed_;
};

/// TTFT can grow by no more than its maximum within a third of the sending, and what is in flight
/// by no more than what is sent in two of them.
void check_growth(const StageResult& s) {
  if (s.queue_growth <= 2) return;
  require_at_most(s.queue_growth * s.send_duration_s() / 3, s.time_to_first_token.max(),
                  "stage " + s.info.name, "the queue grew by more than the longest TTFT");
}

void check_summary_samples(const RunResult& result, const Metric& metric) {
  const Samples& all = result.summary.*metric.samples;
  std::int64_t count = 0;
  double sum = 0, least = 0, most = 0;
  for (const StageResult& s : result.stages) {
    const Samples& part = s.*metric.samples;
    if (!s.info.reported || part.count() == 0) continue;
    least = count == 0 ? part.min() : std::min(least, part.min());
    most = std::max(most, part.max());
    count += part.count();
    sum += part.sum();
  }
  const std::string what = std::string(metric.name) + " does not pool its stages";
  require(all.count() == count, kParts, "summary", what);
  require_equal(all.sum(), sum, "summary", what);
  require(all.min() == least && all.max() == most, kParts, "summary", what);
}

/// Loads ran side by side: the summary has the gaps of all their requests, and stages have none.
bool has_mix(const RunResult& result) {
  return !result.stages.empty() && result.stages[0].info.part >= 0;
}

/// The summary pools the reported stages.
void check_summary(const RunResult& result, bool complete) {
  const StageResult& all = result.summary;
  for (const Count& c : kCounts) {
    std::int64_t sum = 0;
    for (const StageResult& s : result.stages) sum += s.info.reported ? s.*c.value : 0;
    require(all.*c.value == sum, kParts, "summary",
            std::string(c.name) + " are not those of the stages");
  }
  for (const Metric& m : kMetrics)
    if (!has_mix(result) || m.samples != &StageResult::inter_token_latency)
      check_summary_samples(result, m);
  SimTime first = SimTime::max(), last_send, last_end;
  double growth = 0, away = 0, most = 0, least_mean = 1, most_mean = 0;
  for (const StageResult& s : result.stages) {
    if (!s.info.reported || s.requests == 0) continue;
    first = std::min(first, s.first_send);
    last_send = std::max(last_send, s.last_send);
    last_end = std::max(last_end, s.last_end);
    growth = std::max(growth, s.queue_growth);
    away = std::max(away, s.turned_away);
    most = std::max(most, s.kv_cache_usage_max);
    least_mean = std::min(least_mean, s.kv_cache_usage_mean);
    most_mean = std::max(most_mean, s.kv_cache_usage_mean);
  }
  if (all.requests == 0) return;
  require(all.first_send == first && all.last_send == last_send && all.last_end == last_end, kParts,
          "summary", "its time is not from the first send of a stage to the last end");
  require(all.queue_growth == growth, kParts, "summary", "queue growth is not the worst stage's");
  require(all.turned_away == away, kParts, "summary",
          "requests turned away are not the worst stage's");
  if (!complete) return;
  require(all.kv_cache_usage_max == most, kParts, "summary",
          "kv_cache_usage.max is not the highest of the stages");
  require(has_mix(result) || (at_most(least_mean, all.kv_cache_usage_mean) &&
                              at_most(all.kv_cache_usage_mean, most_mean)),
          kParts, "summary", "kv_cache_usage.mean is none between those of the stages");
}

void check_tiers(const ReplicaResult& r) {
  const TierResult& t = *r.tiers;
  require(t.did.hit_tokens <= t.did.query_tokens, kParts, r.name,
          "its tiers hit more prompt tokens than they looked up");
  require(t.did.pulls_arrived + t.did.pulls_failed <= t.did.pulls, kParts, r.name,
          "more pulls ended than began");
  require_at_most(t.used_bytes, t.capacity_bytes, r.name,
                  "its tiers hold more than they have room");
  for (const double use :
       {t.links.to_gpus, t.links.to_host, t.links.host_memory, t.links.nic_out, t.links.nic_in})
    require_share(use, r.name, "kv_tiers.link_use");
}

void check_replica(const ReplicaResult& r, double end_s) {
  require(r.steps > 0 || r.busy_s == 0, kParts, r.name, "it was busy without a step");
  require_at_most(r.busy_s, end_s, r.name, "it was busy for longer than the run");
  require(r.prefix_hit_tokens >= 0 && r.prefix_hit_tokens <= r.prefix_query_tokens, kParts, r.name,
          "it hit more prompt tokens than it looked up");
  require_share(r.kv_cache_usage_max, r.name, "kv_cache_usage.max");
  require_share(r.kv_cache_usage_mean, r.name, "kv_cache_usage.mean");
  require_at_most(r.kv_cache_usage_mean, r.kv_cache_usage_max, r.name,
                  "kv_cache_usage has a mean over its max");
  require(r.max_running <= r.requests, kParts, r.name, "more requests ran at once than came");
  if (r.tiers) check_tiers(r);
}

/// Servers and router against all requests, those of unreported stages included.
void check_servers(const RunResult& result, bool complete) {
  std::int64_t came = 0, preempted = 0, looked_up = 0, hit = 0, loaded = 0;
  for (const ReplicaResult& r : result.replicas) {
    check_replica(r, result.end.to_seconds());
    came += r.requests;
    preempted += r.preemptions;
    looked_up += r.prefix_query_tokens;
    hit += r.prefix_hit_tokens;
    loaded += (r.tiers ? r.tiers->did.hit_tokens : 0);
  }
  std::int64_t failures = 0, successes = 0, preemptions = 0, prompt = 0, cached = 0;
  for (const StageResult& s : result.stages) {
    failures += s.failures;
    successes += s.successes;
    preemptions += s.preemptions;
    prompt += s.prompt_tokens_total;
    cached += s.cached_tokens_total;
  }
  const RoutingResult& router = result.routing;
  const auto routing = [](bool holds, const char* what) {
    require(holds, kParts, "routing", what);
  };
  routing(router.disaggregated <= router.decisions, "more decisions were disaggregated than made");
  routing(router.rejected <= failures, "more requests were rejected than failed");
  if (router.gateway) {
    const GatewayResult& g = *router.gateway;
    routing(router.rejected + g.refused <= failures, "the gateway refused more than failed");
    routing(g.most_waiting <= g.waited, "more waited at the gateway at once than in all");
    routing((g.waited > 0 || g.longest_wait == Duration::zero()), "nobody waited for long");
  }
  routing(router.hit_tokens <= router.prompt_tokens, "more prompt tokens hit than were sent");
  // A request that loses its servers comes to two more at most.
  const auto& fleet = result.fleet;
  const std::int64_t more = fleet ? 2 * (fleet->sent_again + fleet->fell_back) : 0;
  routing(came <= router.decisions + router.disaggregated + more,
          "servers got more than was decided");
  routing(came >= successes, "more requests succeeded than came to servers");
  routing(router.prompt_tokens >= prompt && router.hit_tokens >= cached,
          "it has fewer prompt tokens than the stages");
  require(preemptions <= preempted, kParts, "replicas", "stages have more preemptions");
  if (!complete || failures > 0) return;
  routing(router.prompt_tokens == prompt && router.hit_tokens == cached,
          "its prompt tokens are not those of the stages");
  if (router.disaggregated > 0) return;
  // Refusals that are retried are decisions, too.
  const std::int64_t again =
      (router.gateway ? router.gateway->retries : 0) + (fleet ? fleet->sent_again : 0);
  routing(came <= router.decisions && came + again >= router.decisions,
          "servers got other requests than were decided");
  // Servers have counted the work for an answer that is begun anew.
  if (fleet && fleet->sent_again > 0) return;
  require(preemptions == preempted, kParts, "replicas", "stages have other preemptions");
  if (preempted > 0 || looked_up == 0) return;
  // A prompt that is loaded as a whole counts without its last token.
  require(hit <= cached && cached <= hit + loaded && looked_up == prompt, kParts, "replicas",
          "the prompt tokens that they looked up and hit are not those of the stages");
}

}  // namespace

Distribution distribution_of(const Samples& samples) {
  Distribution d{.count = samples.count(),
                 .sum = samples.sum(),
                 .min = samples.min(),
                 .mean = samples.mean(),
                 .max = samples.max()};
  for (const double level : kLevels) d.percentiles.push_back(samples.percentile(level));
  return d;
}

void check_order(const Distribution& samples, const std::string& who) {
  if (samples.count == 0) return;
  double below = samples.min;
  for (std::size_t i = 0; i < samples.percentiles.size(); ++i) {
    require(at_most(below, samples.percentiles[i]), kOrder, who,
            "percentiles do not rise" + against(below, samples.percentiles[i]));
    below = samples.percentiles[i];
  }
  require(at_most(below, samples.max), kOrder, who,
          "a percentile is over the maximum" + against(below, samples.max));
  require(at_most(samples.min, samples.mean) && at_most(samples.mean, samples.max), kOrder, who,
          "the mean " + std::to_string(samples.mean) + " is outside " +
              std::to_string(samples.min) + " to " + std::to_string(samples.max));
}

namespace {

/// Whether requests of both were under way at once. Gaps between tokens count for the stage that
/// sends when they come, so those of stages that overlap do not belong to their requests alone.
bool overlap(const StageResult& a, const StageResult& b) {
  return &a != &b && a.requests > 0 && b.requests > 0 && a.first_send < b.last_end &&
         b.first_send < a.last_end;
}

}  // namespace

void check_result(const RunResult& result, bool complete) {
  for (const StageResult& s : result.stages) check_growth(s);
  // An answer that is not streamed makes its gaps anew when it is sent again.
  bool failed = result.fleet && result.fleet->sent_again > 0;
  bool mixed = false;  // A stage that is reported has gaps of one that is not.
  for (const StageResult& s : result.stages) {
    failed = failed || s.failures > 0;
    bool alone = true;
    for (const StageResult& other : result.stages) {
      alone = alone && !overlap(s, other);
      if (s.info.reported && !other.info.reported && overlap(s, other)) mixed = true;
    }
    if (has_mix(result)) alone = false;
    if (has_mix(result) && !s.info.reported && s.requests > 0) mixed = true;
    StageCheck(s, "stage " + s.info.name, alone && !failed).run(complete);
  }
  StageCheck(result.summary, "summary", !mixed && !failed).run(complete);
  check_summary(result, complete);
  check_servers(result, complete);
}

}  // namespace routesim::sim
