#include "sim/observe/invariant_checker.h"

#include <algorithm>
#include <limits>

#include "sim/engine/replica.h"
#include "sim/observe/result_check.h"
#include "sim/plan/fleet_plan.h"
#include "sim/plan/resolve.h"
#include "sim/router/router.h"

namespace routesim::sim {

namespace {

/// A full look at a server costs a visit per block; this many visits are paid per observation.
constexpr std::int64_t kVisitsPerObservation = 64;

std::string seconds(SimTime t) { return std::to_string(t.to_seconds()) + " s"; }
std::string name(std::int64_t id) { return "request " + std::to_string(id); }

/// The most tokens of one step. SGLang splits prompts or does not, and a decode has no budget.
std::int64_t most_in_step(const EngineRules& rules) {
  if (!rules.sglang) return rules.max_num_batched_tokens;
  if (rules.sglang->chunk_tokens == 0) return std::numeric_limits<std::int64_t>::max();
  return std::max(rules.sglang->chunk_tokens, rules.max_num_seqs);
}

[[noreturn]] void broken(int number, const std::string& what) {
  throw InvariantError(number, what);
}

}  // namespace

void InvariantChecker::on_start(const RunView& view) {
  start(view.endpoints.size(), view.stages, 0, 0);
  view_ = &view;
  fleet_changes_ = fleet_changes(view.plan.scenario);
  for (std::uint32_t r = 0; r < view.replicas.size(); ++r) number_[view.replicas[r].get()] = r;
  first_endpoint_.assign(view.replicas.size(), 0);
  for (std::uint32_t e = 0; e < view.endpoints.size(); ++e) {
    const EndpointHome& home = view.endpoints[e];
    if (home.rank == 0) first_endpoint_[home.replica] = e;
    const EngineRules& rules = view.plan.pools[home.pool].rules;
    endpoints_[e].max_num_seqs = rules.max_num_seqs;
    endpoints_[e].max_num_batched_tokens = most_in_step(rules);
    const int stages = view.replicas[home.replica]->stages();
    endpoints_[e].last_step.assign(static_cast<std::size_t>(stages), {});
    endpoints_[e].lock_step = view.replicas[home.replica]->ranks() > 1;
  }
}

void InvariantChecker::start(std::size_t endpoints, std::vector<workloads::StageInfo> stages,
                             std::int64_t max_num_seqs, std::int64_t max_num_batched_tokens,
                             std::size_t pipeline_stages) {
  stages_ = std::move(stages);
  counts_.assign(stages_.size(), {});
  endpoints_.assign(endpoints, {});
  for (Endpoint& e : endpoints_) {
    e.max_num_seqs = max_num_seqs;
    e.max_num_batched_tokens = max_num_batched_tokens;
    e.last_step.assign(pipeline_stages, {});
  }
}

// Invariant 5: time never goes back.
void InvariantChecker::note_time(SimTime now) {
  if (!(now >= now_)) [[unlikely]]
    broken(5, "time goes back from " + seconds(now_) + " to " + seconds(now));
  now_ = now;
}

// Invariant 1: nothing happens to a request before it is sent or after it has ended.
InvariantChecker::Pending& InvariantChecker::pending(const workloads::Request& request,
                                                     const char* event) {
  const auto it = pending_.find(request.id.value());
  if (!(it != pending_.end())) [[unlikely]]
    broken(1, name(request.id.value()) + " is " + event + " but not outstanding");
  return it->second;
}

void InvariantChecker::on_sent(const workloads::Request& request, SimTime now) {
  note_time(now);
  const std::int64_t id = request.id.value();
  const auto index = static_cast<std::size_t>(id);
  if (seen_.size() <= index) seen_.resize(index + index / 2 + 64);
  if (!(!seen_[index])) [[unlikely]]
    broken(1, name(id) + " is sent twice");
  seen_[index] = true;
  if (!(now >= request.due)) [[unlikely]]
    broken(5, name(id) + " is sent before it is due");
  const std::uint32_t stage = request.stage.value();
  if (!(stage < counts_.size())) [[unlikely]]
    broken(1, name(id) + " belongs to no stage");
  StageCount& count = counts_[stage];
  ++count.sent;
  const std::int64_t cap = stages_[stage].in_flight_cap;
  if (!(cap == 0 || count.sent - count.done <= cap)) [[unlikely]]
    broken(14, "the client has " + std::to_string(count.sent - count.done) +
                   " requests in flight, allowed are " + std::to_string(cap));
  pending_[id] = {.stage = stage,
                  .prompt = request.prompt->tokens,
                  .output = request.output_tokens,
                  .sent = now,
                  .first_token = {}};
}

void InvariantChecker::on_routed(const workloads::Request& request, const Route& route,
                                 SimTime now) {
  note_time(now);
  Pending& p = pending(request, "routed");
  if (!(p.phase == Phase::kSent)) [[unlikely]]
    broken(1, name(request.id.value()) + " is routed twice");
  if (!(route.endpoint.valid() && route.endpoint.value() < endpoints_.size())) [[unlikely]]
    broken(1, name(request.id.value()) + " is routed to nowhere");
  p.phase = Phase::kRouted;
  p.endpoint = route.endpoint.value();
  if (route.prefill) p.prefill = route.prefill->value();
  if (view_ == nullptr || !view_->router.reads_metrics()) return;
  // A request that waited for a connection was decided about earlier, as one that lost its prefill
  // server was.
  if (view_->plan.scenario.routing.gateway || p.lost) return;
  const Duration interval = view_->plan.scenario.routing.scrape_interval.value_or(kScrapeInterval);
  const policies::EndpointTable& table = view_->router.table();
  for (std::uint32_t e = 0; e < endpoints_.size(); ++e) {
    const std::uint32_t row = view_->router.row(EndpointId(e));
    if (!table.has_metrics(row) || !view_->router.is_fresh(row)) continue;
    const EndpointHome& home = view_->endpoints[e];
    const SimTime next = view_->replicas[home.replica]->next_scrape(home.rank, now);
    check_signal(table.updated()[row], next, interval, now);
  }
}

// Invariant 7: what a router acts on is the newest scrape, and none that is still to come.
void InvariantChecker::check_signal(SimTime scraped, SimTime next, Duration interval, SimTime now) {
  if (!(scraped <= now)) [[unlikely]]
    broken(7, "a gauge of " + seconds(scraped) + " is read at " + seconds(now));
  if (!(next - scraped == interval)) [[unlikely]]
    broken(7, "a gauge of " + seconds(scraped) + " is read at " + seconds(now) +
                  ", the next scrape is at " + seconds(next));
}

void InvariantChecker::on_delivered(const workloads::Request& request, EndpointId to, SimTime now) {
  note_time(now);
  Pending& p = pending(request, "delivered");
  const auto who = [&] { return name(request.id.value()); };
  const bool prefill = p.phase == Phase::kRouted && p.prefill >= 0;
  if (!(p.phase == Phase::kPrefilled || p.phase == Phase::kRouted)) [[unlikely]]
    broken(1, who() + " is delivered twice");
  const std::int64_t expected = prefill ? p.prefill : p.endpoint;
  if (!(to.value() == expected)) [[unlikely]]
    broken(1, who() + " is delivered to another endpoint than it was sent to");
  p.phase = prefill ? Phase::kPrefilling : Phase::kDelivered;
  ++endpoints_[to.value()].delivered;
}

void InvariantChecker::on_prefilled(const workloads::Request& request, SimTime now) {
  note_time(now);
  Pending& p = pending(request, "prefilled");
  if (!(p.phase == Phase::kPrefilling)) [[unlikely]]
    broken(1, name(request.id.value()) + " was prefilled without having been delivered for it");
  p.phase = Phase::kPrefilled;
  ++endpoints_[static_cast<std::size_t>(p.prefill)].open_holds;
}

void InvariantChecker::close_hold(Pending& p) {
  if (p.prefill < 0 || (p.phase != Phase::kPrefilled && p.phase != Phase::kDelivered)) return;
  --endpoints_[static_cast<std::size_t>(p.prefill)].open_holds;
}

void InvariantChecker::on_first_token(const workloads::Request& request, SimTime now) {
  note_time(now);
  Pending& p = pending(request, "answered");
  if (!(p.phase == Phase::kDelivered)) [[unlikely]]
    broken(2, name(request.id.value()) + " has a first token twice, or without an engine");
  close_hold(p);  // its KV has been read
  p.phase = Phase::kAnswering;
  p.first_token = now;
}

// The request is as it was when it had been sent. What a prefill server holds for it, it holds on.
void InvariantChecker::on_lost(const workloads::Request& request, SimTime now) {
  note_time(now);
  Pending& p = pending(request, "lost");
  // An answer that is not streamed begins anew.
  if (p.phase == Phase::kAnswering) ++counts_[p.stage].begun_anew;
  p.phase = Phase::kSent;
  p.prefill = -1;
  p.lost = true;
}

void InvariantChecker::on_done(const RequestRecord& r) {
  note_time(r.end);
  const auto it = pending_.find(r.id);
  if (!(it != pending_.end())) [[unlikely]]
    broken(1, name(r.id) + " ends but is not outstanding");
  Pending& p = it->second;
  StageCount& count = counts_[p.stage];
  ++count.done;
  if (!(r.sent == p.sent && r.end >= p.sent)) [[unlikely]]
    broken(5, name(r.id) + " ends before it was sent");
  if (r.outcome == workloads::Outcome::kSuccess) {
    check_success(p, r);
    count.gaps += r.output_tokens - 1;
  } else {
    ++count.failed;
  }
  close_hold(p);
  pending_.erase(it);
}

void InvariantChecker::check_success(const Pending& p, const RequestRecord& r) const {
  const auto who = [&] { return name(r.id); };
  if (!(p.phase == Phase::kAnswering)) [[unlikely]]
    broken(2, who() + " ends without a first token");
  if (!(r.output_tokens == p.output)) [[unlikely]]
    broken(2, who() + " got " + std::to_string(r.output_tokens) + " tokens and asked for " +
                  std::to_string(p.output));
  if (!(r.prompt_tokens == p.prompt)) [[unlikely]]
    broken(2, who() + " was sent another prompt than it has");
  if (!(r.endpoint == static_cast<std::int64_t>(p.endpoint))) [[unlikely]]
    broken(1, who() + " ends at an endpoint it was not routed to");
  if (!(r.first_token >= p.first_token && r.first_token >= r.sent)) [[unlikely]]
    broken(11, who() + " reaches the client before it was sampled");
  if (!(r.first_token <= r.end)) [[unlikely]]
    broken(11, who() + " has a TTFT longer than its E2E latency");
  if (!(r.output_tokens > 1 || r.first_token == r.end)) [[unlikely]]
    broken(11, who() + " has one token, so its TTFT is its E2E latency");
  // The last prompt token is always computed: its logits are the first answer token.
  if (!(r.cached_tokens >= 0 && r.cached_tokens < std::max<std::int64_t>(1, r.prompt_tokens)))
      [[unlikely]]
    broken(12, who() + " hit " + std::to_string(r.cached_tokens) + " of " +
                   std::to_string(r.prompt_tokens) + " prompt tokens");
}

EndpointObservation InvariantChecker::observe(std::uint32_t endpoint) const {
  const EndpointHome& home = view_->endpoints[endpoint];
  const Replica& replica = *view_->replicas[home.replica];
  const BatchScheduler& s = replica.scheduler(home.rank);
  return {.running = s.running(),
          .waiting = s.waiting(),
          .loading = s.loading(),
          .held = s.held(),
          .storing = s.storing(),
          .copying = s.has_tiers() && (!s.tiers().idle() || s.tiers().pulling()),
          .inbox = replica.inbox(home.rank),
          .used_blocks = s.kv().used_blocks(),
          .free_blocks = s.kv().free_blocks(),
          .usable_blocks = s.kv().usable_blocks(),
          .max_num_seqs = s.rules().max_num_seqs,
          .query_tokens = replica.totals(home.rank).counters.prefix_query_tokens,
          .hit_tokens = replica.totals(home.rank).counters.prefix_hit_tokens,
          .stepping = replica.stepping()};
}

void InvariantChecker::on_replica_advanced(const Replica& replica, SimTime now) {
  note_time(now);
  const std::uint32_t first = first_endpoint_[number_.at(&replica)];
  const auto ranks = static_cast<std::uint32_t>(replica.ranks());
  std::int64_t blocks = 0;
  for (std::uint32_t e = first; e < first + ranks; ++e) {
    const EndpointObservation seen = observe(e);
    check_endpoint(e, seen, now);
    blocks += seen.usable_blocks;
  }
  verify_credit_ += kVisitsPerObservation;
  if (verify_credit_ < blocks) return;
  verify_credit_ = 0;
  try {
    replica.verify();
  } catch (const InternalError& e) {
    throw InvariantError(3, view_->endpoints[first].name + " at " + seconds(now) + ": " + e.what());
  }
}

void InvariantChecker::check_endpoint(std::uint32_t endpoint, const EndpointObservation& seen,
                                      SimTime now) {
  Endpoint& e = endpoints_[endpoint];
  const auto who = [&] {
    return "endpoint " + std::to_string(endpoint) + " at " + seconds(now) + ": ";
  };
  if (!(seen.used_blocks >= 0 && seen.free_blocks >= 0 &&
        seen.used_blocks + seen.free_blocks == seen.usable_blocks)) [[unlikely]]
    broken(3, who() + "used and free blocks do not add up to num_gpu_blocks");
  const std::int64_t holders = seen.running + seen.waiting + seen.held + seen.storing;
  if (!(seen.used_blocks == 0 || holders > 0)) [[unlikely]]
    broken(3, who() + "blocks are used and nobody holds them");
  if (!(seen.running <= seen.max_num_seqs)) [[unlikely]]
    broken(4, who() + "more requests run than max_num_seqs");
  if (!(seen.stepping || seen.running == 0)) [[unlikely]]
    broken(6, who() + "requests run and no step is under way");
  const std::int64_t startable = seen.waiting - seen.loading;
  // Requests that wait for blocks of a finished prefill, or for KV on its way, cannot run.
  if (!(seen.stepping || startable <= 0 || seen.held > 0 || seen.loading > 0 || seen.copying))
      [[unlikely]]
    broken(6, who() + "requests wait and no step is under way");
  if (!(seen.query_tokens >= e.query_tokens && seen.hit_tokens >= e.hit_tokens)) [[unlikely]]
    broken(12, who() + "a prefix cache counter goes back");
  if (!(seen.hit_tokens - e.hit_tokens <= seen.query_tokens - e.query_tokens)) [[unlikely]]
    broken(12, who() + "more prompt tokens hit than were looked up");
  // A lost request's blocks are held until their lease ends, and are nobody's.
  if (!(seen.held <= e.open_holds + seen.inbox || fleet_changes_)) [[unlikely]]
    broken(13, who() + "blocks are held for " + std::to_string(seen.held) + " requests, but only " +
                   std::to_string(e.open_holds) + " still want them");
  e.query_tokens = seen.query_tokens;
  e.hit_tokens = seen.hit_tokens;
}

// Invariant 5: a stage has one batch at a time, a batch is in one stage at a time, and no more
// batches are under way than there are stages.
void InvariantChecker::check_order(Endpoint& e, std::uint32_t index, const StepSpan& span) const {
  const auto who = [&] {
    return "endpoint " + std::to_string(index) + " at " + seconds(span.begin) + ": ";
  };
  const auto stage = static_cast<std::size_t>(span.stage);
  const std::size_t stages = e.last_step.size();
  if (!(stage < stages)) [[unlikely]]
    broken(5, who() + "a step in a stage that does not exist");
  // A stage's part of a tiny step may be less than a nanosecond.
  if (!(span.begin >= e.last_step[stage] && (span.end > span.begin || stages > 1))) [[unlikely]]
    broken(5, who() + "steps overlap");
  if (!(span.end >= span.begin && (stage == 0 || span.begin >= e.last_step[stage - 1])))
      [[unlikely]]
    broken(5, who() + "a batch enters a stage before it has left the one before");
  e.last_step[stage] = span.end;
  if (stages == 1) return;
  if (stage == 0 && e.batch_ends.size() == stages) {
    if (!(span.begin >= e.batch_ends.front())) [[unlikely]]
      broken(5, who() + "more batches are under way than the pipeline has stages");
    e.batch_ends.pop_front();
  }
  if (stage + 1 == stages) e.batch_ends.push_back(span.end);
}

void InvariantChecker::on_step(const StepSpan& span) {
  const std::uint32_t index = first_endpoint_.empty() ? span.replica
                                                      : first_endpoint_[span.replica] +
                                                            static_cast<std::uint32_t>(span.rank);
  Endpoint& e = endpoints_[index];
  const auto who = [&] {
    return "endpoint " + std::to_string(index) + " at " + seconds(span.begin) + ": ";
  };
  check_order(e, index, span);
  const models::BatchShape& s = span.shape;
  if (!(s.tokens() <= e.max_num_batched_tokens)) [[unlikely]]
    broken(4,
           who() + "a step of " + std::to_string(s.tokens()) + " tokens is over the token budget");
  if (!(s.decode_requests + s.prefill_requests <= e.max_num_seqs)) [[unlikely]]
    broken(4, who() + "a step has more requests than max_num_seqs");
  // Only a rank that others wait for may run an empty batch.
  if (!(s.tokens() > 0 || e.lock_step)) [[unlikely]]
    broken(6, who() + "a step computes nothing");
}

void InvariantChecker::check_stage(std::size_t index, const StageResult& stage) const {
  const StageCount& count = counts_[index];
  const auto who = [&] { return "stage " + stages_[index].name + ": "; };
  if (!(stage.requests == count.sent && stage.successes + stage.failures == count.done &&
        stage.failures == count.failed)) [[unlikely]]
    broken(1, who() + "the result counts other requests than were sent and ended");
}

void InvariantChecker::on_result(const RunResult& result, bool complete) {
  if (!(!complete || pending_.empty())) [[unlikely]]
    broken(1, std::to_string(pending_.size()) + " requests were sent and never ended");
  std::int64_t gaps = 0, expected = 0, failed = 0;
  for (std::size_t s = 0; s < result.stages.size(); ++s) {
    check_stage(s, result.stages[s]);
    gaps += result.stages[s].inter_token_latency.count();
    expected += counts_[s].gaps;
    failed += counts_[s].failed + counts_[s].begun_anew;
  }
  // Loads side by side have theirs together.
  if (!result.stages.empty() && result.stages[0].info.part >= 0)
    gaps = result.summary.inter_token_latency.count();
  // Tokens of requests that failed on the way made gaps, too.
  const bool exact = complete && failed == 0;
  if (!(exact ? gaps == expected : !complete || gaps >= expected)) [[unlikely]]
    broken(2, std::to_string(gaps) + " gaps between tokens were counted, answers have " +
                  std::to_string(expected));
  for (std::size_t e = 0; e < result.replicas.size(); ++e) {
    const ReplicaResult& r = result.replicas[e];
    if (!(r.requests == endpoints_[e].delivered)) [[unlikely]]
      broken(1, r.name + " counts other requests than came");
  }
  check_result(result, complete);
}

}  // namespace routesim::sim
