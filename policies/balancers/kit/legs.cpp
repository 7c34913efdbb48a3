#include "policies/balancers/kit/legs.h"

#include "policies/balancers/kit/choose.h"

namespace routesim::policies {
namespace {

void add_needs(BalancerNeeds& all, const BalancerNeeds& more) {
  all.metrics = all.metrics || more.metrics;
  all.metrics_interval = std::max(all.metrics_interval, more.metrics_interval);
  all.text = all.text || more.text;
  all.token_runs = all.token_runs || more.token_runs;
  all.leading_tokens = std::max(all.leading_tokens, more.leading_tokens);
  all.block_keys = all.block_keys || more.block_keys;
  all.kv_events = all.kv_events || more.kv_events;
  all.first_tokens = all.first_tokens || more.first_tokens;
  all.chat_text = std::max(all.chat_text, more.chat_text);
  all.chat_text_with_prefill = std::max(all.chat_text_with_prefill, more.chat_text_with_prefill);
  all.body_with_prefill_only = all.body_with_prefill_only || more.body_with_prefill_only;
  all.identity = all.identity || more.identity;
  for (const auto& names : {&BalancerNeeds::session_headers, &BalancerNeeds::other_headers})
    for (const std::string& name : more.*names)
      if (std::find((all.*names).begin(), (all.*names).end(), name) == (all.*names).end())
        (all.*names).push_back(name);
}

}  // namespace

LegBalancer::LegBalancer(LegPolicies policies)
    : policies_(std::move(policies)), breakers_(policies_.breaker) {
  prefill_.name = "prefill";
  if (needs().kv_events) blocks_.emplace();
  for (LegPolicy* p : {policies_.single.get(), policies_.prefill.get(), policies_.decode.get()})
    p->use_blocks(blocks_ ? &*blocks_ : nullptr);
}

BalancerNeeds LegBalancer::needs() const {
  BalancerNeeds all = policies_.single->needs();
  add_needs(all, policies_.prefill->needs());
  add_needs(all, policies_.decode->needs());
  if (policies_.overload)
    add_needs(all, {.metrics = true, .metrics_interval = policies_.overload->interval});
  return all;
}

void LegBalancer::set_endpoints(std::span<const BalancerEndpoint> given) {
  Balancer::set_endpoints(given);
  if (blocks_) blocks_->set_endpoints(*this);
  for (const BalancerEndpoint& e : given) disaggregated_ |= e.role != ServerRole::kBoth;
  decode_.name = disaggregated_ ? "decode" : "";
  for (Leg* leg : {&prefill_, &decode_}) {
    leg->endpoints = endpoints();
    leg->in_flight = in_flight();
    leg->workers.clear();
    leg->healthy.clear();
    leg->has.assign(size(), false);
  }
  for (std::uint32_t i = 0; i < size(); ++i) {
    Leg& leg = given[i].role == ServerRole::kPrefill ? prefill_ : decode_;
    leg.workers.push_back(i);
    leg.has[i] = true;
    if (given[i].healthy) leg.healthy.push_back(i);
  }
  if (disaggregated_) policies_.prefill->on_workers(prefill_);
  (disaggregated_ ? policies_.decode : policies_.single)->on_workers(decode_);
}

std::optional<std::uint32_t> LegBalancer::pick_leg(LegPolicy& policy, const Leg& whole,
                                                   std::optional<std::uint32_t> forced,
                                                   const BalancerRequest& request) {
  std::optional<Leg> bounded;
  if (restricted() || forced || breakers_.any_open()) {
    bounded = whole;
    bounded->healthy = offered(whole.healthy);
    bounded->forced = forced;
    std::erase_if(bounded->healthy, [&](std::uint32_t w) {
      return !breakers_.lets_through(index_holder(w), request.now);
    });
  }
  const Leg& leg = bounded ? *bounded : whole;
  if (leg.healthy.empty()) return std::nullopt;
  const EndpointTable* metrics = policies_.overload ? request.metrics : nullptr;
  const auto overloaded = [&](std::uint32_t w) {
    return metrics != nullptr && metrics->has_metrics(w) &&
           (metrics->waiting()[w] >= policies_.overload->waiting ||
            metrics->kv_usage()[w] >= policies_.overload->kv_usage);
  };
  if (std::none_of(leg.healthy.begin(), leg.healthy.end(), overloaded))
    return policy.pick(leg, request);
  Leg free = leg;
  std::erase_if(free.healthy, overloaded);
  if (!free.healthy.empty()) return policy.pick(free, request);
  free.healthy = all_least(leg.healthy, [&](std::uint32_t w) { return leg.load(w); });
  return free.healthy[policies_.overload->random.below(free.healthy.size())];
}

BalancerAnswer LegBalancer::pick(const BalancerRequest& request) {
  if (!disaggregated_) {
    const auto at = pick_leg(*policies_.single, decode_, terms().forced, request);
    return at ? BalancerAnswer(pick_of(*at)) : std::nullopt;
  }
  const auto prefill = pick_leg(*policies_.prefill, prefill_, terms().forced_prefill, request);
  if (!prefill) return std::nullopt;
  const auto decode = pick_leg(*policies_.decode, decode_, terms().forced, request);
  return decode ? BalancerAnswer(pick_of(*prefill, *decode)) : std::nullopt;
}

void LegBalancer::on_sent(const BalancerPick& pick, const BalancerRequest& request) {
  Balancer::on_sent(pick, request);
  if (pick.prefill) policies_.prefill->on_sent(prefill_, *pick.prefill, request);
  (disaggregated_ ? policies_.decode : policies_.single)->on_sent(decode_, pick.endpoint, request);
}

void LegBalancer::on_first_token(const BalancerPick& /*pick*/, std::uint64_t id, SimTime /*now*/) {
  for (LegPolicy* p : {policies_.single.get(), policies_.prefill.get(), policies_.decode.get()})
    p->on_first_token(id);
}

bool LegBalancer::on_outcome(std::uint32_t server, bool success, SimTime now) {
  return (policies_.breaks_with_prefill || !disaggregated_) &&
         breakers_.record(server, success, now);
}

void LegBalancer::on_completed(const BalancerPick& pick, const BalancerOutcome& outcome) {
  Balancer::on_completed(pick, outcome);
  if (pick.prefill) policies_.prefill->on_completed(prefill_, outcome.id);
  (disaggregated_ ? policies_.decode : policies_.single)->on_completed(decode_, outcome.id);
}

std::uint32_t least_loaded(const Leg& leg) {
  return *std::min_element(leg.healthy.begin(), leg.healthy.end(),
                           [&leg](auto a, auto b) { return leg.load(a) < leg.load(b); });
}

bool Periodic::due(SimTime now) {
  if (interval_ <= Duration::zero()) return false;
  const std::int64_t passed = (now - last_) / interval_;
  if (passed < 1) return false;
  last_ += interval_ * passed;
  return true;
}

}  // namespace routesim::policies
