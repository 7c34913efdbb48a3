#include "policies/flow/flow_control.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "policies/plugins/filters.h"

namespace routesim::policies {
namespace {

constexpr Duration kFlowIdle = Duration::seconds(300);
constexpr Duration kBandIdle = Duration::seconds(600);
constexpr Duration kProgramIdle = Duration::seconds(3600);
constexpr double kServiceHalfLifeSeconds = 60;
// The counters of concurrency-detector fall with the stream; other detectors see room after the
// engine has freed it (250 ms) and a scrape (50 ms) that is not stale (2 s). cmd/epp/runner/
// runner.go, pkg/epp/server/options.go.
constexpr Duration kCountedGrace = Duration::milliseconds(10);
constexpr Duration kScrapedGrace = Duration::milliseconds(2'300);

int refusal(bool pool_empty) { return pool_empty ? 503 : 429; }

bool exceeds(std::int64_t used, std::int64_t more, const std::optional<std::int64_t>& limit) {
  return limit && used + more > *limit;
}

}  // namespace

FlowControl::FlowControl(Scheduler& scheduler)
    : scheduler_(scheduler), spec_(scheduler.config().flow_control) {
  ROUTESIM_CHECK(scheduler.config().gate("flowControl"), "the feature gate flowControl is off");
  usage_limit_ = dynamic_cast<UsageLimitPolicy*>(scheduler.plugin(spec_.usage_limit_policy));
  detector_ = dynamic_cast<const SaturationDetector*>(
      scheduler.plugin(scheduler.config().saturation_detector));
  ROUTESIM_CHECK(usage_limit_ != nullptr && detector_ != nullptr, "the loader checked the roles");
  const auto* detector = dynamic_cast<const Plugin*>(detector_);
  if (spec_.evicts)
    reclamation_.emplace(detector->type() == "concurrency-detector" ? kCountedGrace
                                                                    : kScrapedGrace);
  for (const PriorityBandSpec& b : spec_.bands)
    bands_.insert_or_assign(b.priority, make_band(b, true));
}

FlowControl::Band FlowControl::make_band(PriorityBandSpec spec, bool configured) const {
  Band band;
  band.ordering = dynamic_cast<const OrderingPolicy*>(scheduler_.plugin(spec.ordering_policy));
  band.fairness = dynamic_cast<const FairnessPolicy*>(scheduler_.plugin(spec.fairness_policy));
  ROUTESIM_CHECK(band.ordering != nullptr && band.fairness != nullptr,
                 "the loader checked the roles");
  band.spec = std::move(spec);
  band.configured = configured;
  return band;
}

FlowControl::Band& FlowControl::band(std::int32_t priority) {
  const auto it = bands_.find(priority);
  if (it != bands_.end()) return it->second;
  PriorityBandSpec spec = priority < 0 ? spec_.default_negative_band : spec_.default_band;
  spec.priority = priority;
  return bands_.emplace(priority, make_band(std::move(spec), false)).first->second;
}

void FlowControl::note_pool(bool empty, SimTime now) {
  if (pool_empty_ == empty) return;
  if (pool_empty_) pool_changed_ = now;
  pool_empty_ = empty;
}

int FlowControl::enqueue(QueuedRequest request, const EndpointTable& endpoints, SimTime now) {
  const bool empty = endpoints.candidates().empty();
  note_pool(empty, now);
  Band& b = band(request.priority);
  const auto queued = static_cast<std::int64_t>(where_.size());
  if (exceeds(queued, 1, spec_.max_requests) || exceeds(bytes_, request.bytes, spec_.max_bytes) ||
      exceeds(b.requests, 1, b.spec.max_requests) ||
      exceeds(b.bytes, request.bytes, b.spec.max_bytes))
    return refusal(empty);
  if (request.ttl == Duration::zero())
    request.ttl = b.spec.default_request_ttl.value_or(spec_.default_request_ttl);
  request.enqueued = now;
  Flow& flow = b.flows[request.flow];
  flow.last_active = b.last_active = now;
  const Slot slot{b.ordering->key(request), next_sequence_++};
  ROUTESIM_CHECK(where_.emplace(request.id, Position{request.priority, request.flow, slot}).second,
                 "a request is queued once");
  bytes_ += request.bytes;
  b.bytes += request.bytes;
  ++b.requests;
  flow.queue.emplace(slot, std::move(request));
  return 0;
}

QueuedRequest FlowControl::take(Band& band, Flow& flow, const Slot& slot, SimTime now) {
  const auto it = flow.queue.find(slot);
  ROUTESIM_CHECK(it != flow.queue.end(), "the queue holds what the table points to");
  QueuedRequest request = std::move(it->second);
  flow.queue.erase(it);
  where_.erase(request.id);
  bytes_ -= request.bytes;
  band.bytes -= request.bytes;
  --band.requests;
  flow.last_active = band.last_active = now;
  return request;
}

double FlowControl::service(const std::string& flow, SimTime now) const {
  const auto it = service_.find(flow);
  if (it == service_.end()) return 0;
  const double age = (now - it->second.at).to_seconds();
  return it->second.tokens * std::exp2(-age / kServiceHalfLifeSeconds);
}

std::optional<std::uint64_t> FlowControl::dispatch_from(Band& band, SimTime now) {
  std::vector<FlowQueue> queues;
  for (const auto& [name, flow] : band.flows) {
    if (flow.queue.empty()) continue;
    const auto& [slot, head] = *flow.queue.begin();
    queues.push_back({.flow = &name,
                      .head = &head,
                      .head_key = slot.key,
                      .head_sequence = slot.sequence,
                      .service = service(name, now),
                      .last_end = {}});
    const auto turns = turns_.find(name);
    if (turns == turns_.end()) continue;
    queues.back().sent = turns->second.sent;
    queues.back().in_flight = turns->second.in_flight;
    queues.back().last_end = turns->second.last_end;
  }
  if (queues.empty()) return std::nullopt;
  const FlowQueue& chosen = queues[band.fairness->choose(queues, band.last_flow, now)];
  band.last_flow = *chosen.flow;
  Flow& flow = band.flows[band.last_flow];
  return take(band, flow, flow.queue.begin()->first, now).id;
}

std::optional<std::uint64_t> FlowControl::dispatch(const EndpointTable& endpoints, SimTime now) {
  note_pool(endpoints.candidates().empty(), now);
  if (where_.empty()) return std::nullopt;
  const double sat = saturation(endpoints, now);
  std::vector<std::int32_t> priorities;
  for (const auto& [priority, b] : bands_) priorities.push_back(priority);
  std::vector<double> ceilings(priorities.size());
  usage_limit_->ceilings(priorities, sat, ceilings);
  std::size_t i = 0;
  for (auto& [priority, b] : bands_) {
    // A band over its ceiling stops the whole cycle, also for the bands below it.
    if (sat >= ceilings[i]) {
      reclaim(sat, i, ceilings, now);
      return std::nullopt;
    }
    ++i;
    if (const auto request = dispatch_from(b, now)) return request;
  }
  return std::nullopt;
}

void FlowControl::reclaim(double saturation, std::size_t blocked, std::span<const double> ceilings,
                          SimTime now) {
  if (!reclamation_) return;
  std::vector<BlockedBand> bands;
  std::size_t i = 0;
  for (const auto& [priority, b] : bands_) {
    if (i >= blocked)
      bands.push_back({.priority = priority, .ceiling = ceilings[i], .waits = b.requests > 0});
    ++i;
  }
  victims_ = reclamation_->decide(saturation, bands, now);
}

std::vector<FlowControl::Expired> FlowControl::expire(const EndpointTable& endpoints, SimTime now) {
  const bool empty = endpoints.candidates().empty();
  note_pool(empty, now);
  std::vector<Expired> expired;
  for (auto& [priority, b] : bands_) {
    for (auto& [name, flow] : b.flows) {
      std::vector<Slot> due;
      for (const auto& [slot, request] : flow.queue) {
        const Duration ttl = empty ? spec_.no_endpoint_request_ttl : request.ttl;
        const SimTime start = std::max(request.enqueued, pool_changed_);
        if (ttl > Duration::zero() && now - start >= ttl) due.push_back(slot);
      }
      for (const Slot& slot : due) expired.push_back({take(b, flow, slot, now).id, refusal(empty)});
    }
  }
  collect_idle(now);
  return expired;
}

void FlowControl::collect_idle(SimTime now) {
  for (auto& [priority, b] : bands_)
    std::erase_if(b.flows, [now](const auto& f) {
      return f.second.queue.empty() && now - f.second.last_active >= kFlowIdle;
    });
  std::erase_if(bands_, [now](const auto& b) {
    return !b.second.configured && b.second.requests == 0 &&
           now - b.second.last_active >= kBandIdle;
  });
  std::erase_if(turns_, [now](const auto& t) {
    return t.second.in_flight == 0 && now - t.second.at > kProgramIdle;
  });
  std::erase_if(service_, [now](const auto& s) { return now - s.second.at >= kBandIdle; });
}

bool FlowControl::cancel(std::uint64_t request, SimTime now) {
  const auto it = where_.find(request);
  if (it == where_.end()) return false;
  const Position position = it->second;
  Band& b = bands_.at(position.priority);
  take(b, b.flows.at(position.flow), position.slot, now);
  return true;
}

void FlowControl::on_routed(const std::string& flow, SimTime now) {
  Turns& turns = turns_[flow];
  ++turns.sent;
  ++turns.in_flight;
  turns.at = now;
}

void FlowControl::on_completed(const std::string& flow, std::int64_t prompt_tokens,
                               std::int64_t completion_tokens, SimTime now) {
  if (const auto turns = turns_.find(flow); turns != turns_.end() && turns->second.in_flight > 0) {
    --turns->second.in_flight;
    turns->second.last_end = turns->second.at = now;
  }
  const double decayed = service(flow, now);
  service_[flow] = {decayed + static_cast<double>(prompt_tokens + 2 * completion_tokens), now};
}

std::string FlowControl::flow_of(const RequestView& request, std::string_view agent) {
  for (const char* name : {"x-llm-d-inference-fairness-id", "x-gateway-inference-fairness-id"}) {
    const auto value = request.header(name);
    if (value && !value->empty()) return std::string(*value);
  }
  return agent.empty() ? "default-flow" : std::string(agent);
}

double FlowControl::saturation(const EndpointTable& endpoints, SimTime now) const {
  const auto label = std::string(role_label(scheduler_.config().distribution));
  const bool legacy = traits(scheduler_.config().era).legacy_role_sets;
  std::vector<EndpointRow> prefill, decode;
  for (const EndpointRow r : endpoints.candidates()) {
    const auto& labels = endpoints.info(r).labels;
    const auto it = labels.find(label);
    const std::string* role = it == labels.end() ? nullptr : &it->second;
    if (serves_role(ServingRole::kPrefill, role, legacy)) prefill.push_back(r);
    if (serves_role(ServingRole::kDecode, role, legacy)) decode.push_back(r);
  }
  if (prefill.empty() && decode.empty())
    return detector_->saturation(endpoints, endpoints.candidates(), now);
  double worst = 0;
  for (const auto* group : {&prefill, &decode})
    if (!group->empty()) worst = std::max(worst, detector_->saturation(endpoints, *group, now));
  return worst;
}

}  // namespace routesim::policies
