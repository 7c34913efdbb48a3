#include "policies/balancers/kit/balancer.h"

#include <algorithm>

#include "base/check.h"
#include "policies/index/prefix_index.h"

namespace routesim::policies {
namespace {

constexpr std::uint32_t kGone = 0xffffffff;

}  // namespace

void Balancer::set_endpoints(std::span<const BalancerEndpoint> endpoints) {
  std::vector<std::uint32_t> load(index_of_.size(), 0);  // By server, wherever it is kept.
  for (std::uint32_t s = 0; s < index_of_.size(); ++s)
    load[s] = index_of_[s] == kGone ? gone_load_[s] : in_flight_[index_of_[s]];
  endpoints_.assign(endpoints.begin(), endpoints.end());
  std::fill(index_of_.begin(), index_of_.end(), kGone);
  in_flight_.assign(endpoints.size(), 0);
  server_of_.assign(endpoints.size(), 0);
  for (std::uint32_t i = 0; i < endpoints.size(); ++i) {
    const auto next = static_cast<std::uint32_t>(index_of_.size());
    const auto [at, is_new] = servers_.emplace(endpoints[i].name, next);
    if (is_new) {
      index_of_.push_back(kGone);
      load.push_back(0);
    }
    const std::uint32_t s = at->second;
    server_of_[i] = s;
    if (index_of_[s] == kGone) index_of_[s] = i;
    in_flight_[i] = load[s];
  }
  gone_load_.assign(index_of_.size(), 0);
  for (std::uint32_t s = 0; s < index_of_.size(); ++s)
    if (index_of_[s] == kGone) gone_load_[s] = load[s];
  if (PrefixIndex* index = prefix_index())
    for (const auto& [name, s] : servers_)
      if (index_of_[s] == kGone) index->remove_endpoint(EndpointId(s));
  // KubeAI internal/loadbalancer/group.go (July 2025) deletes what left, so it returns with 0.
  std::erase_if(servers_, [this](const auto& named) { return index_of_[named.second] == kGone; });
}

std::optional<std::uint32_t> Balancer::index_of(std::uint32_t server) const {
  if (index_of_[server] == kGone) return std::nullopt;
  return index_of_[server];
}

BalancerAnswer Balancer::pick(const BalancerRequest& request, const PickTerms& terms) {
  struct End {  // Also where a policy throws.
    Balancer& balancer;
    ~End() {
      balancer.terms_ = {};
      balancer.offered_.clear();
      balancer.offered_lists_.clear();
    }
  };
  const End end{*this};
  terms_ = terms;
  if (!terms.candidates.empty()) offered_.assign(size(), false);
  for (const std::uint32_t i : terms.candidates) {
    ROUTESIM_CHECK(i < size(), "a candidate is no endpoint");
    offered_[i] = true;
  }
  for (const auto& forced : {terms.forced, terms.forced_prefill})
    ROUTESIM_CHECK(!forced || (*forced < size() && offered(*forced)),
                   "a forced endpoint is no candidate");
  BalancerAnswer answer = pick(request);
  if (!answer && !terms.forced) return answer;
  BalancerPick made = answer ? *answer : BalancerPick{};
  made.endpoint = settle(made.endpoint);
  made.server = server_of_[made.endpoint];
  if (terms.forced_prefill) {
    made.prefill = terms.forced_prefill;
    made.prefill_server = server_of_[*terms.forced_prefill];
  }
  ROUTESIM_CHECK(offered(made.endpoint), "a balancer chose what was not offered");
  return made;
}

const std::vector<std::uint32_t>& Balancer::offered(const std::vector<std::uint32_t>& list) const {
  if (!restricted()) return list;
  const auto [at, is_new] = offered_lists_.try_emplace(&list);
  if (is_new)
    for (const std::uint32_t i : list)
      if (offered(i)) at->second.push_back(i);
  return at->second;
}

bool Balancer::serves(std::uint32_t i, std::string_view adapter) const {
  if (!offered(i)) return false;
  if (adapter.empty()) return true;
  const auto& list = endpoints_[i].adapters;
  return std::find(list.begin(), list.end(), adapter) != list.end();
}

std::optional<std::string_view> BalancerRequest::header(std::string_view name) const {
  for (const Header& h : headers)
    if (same_header(h.name, name)) return h.value;
  return std::nullopt;
}

BalancerAnswer BalancerAnswer::held() {
  BalancerAnswer answer = std::nullopt;
  answer.held_ = true;
  return answer;
}

BalancerAnswer BalancerAnswer::held(Duration retry_after) {
  BalancerAnswer answer = held();
  answer.retry_after_ = retry_after;
  return answer;
}

BalancerAnswer BalancerAnswer::refused(int http_status) {
  BalancerAnswer answer = std::nullopt;
  answer.http_status_ = http_status;
  return answer;
}

BalancerPick Balancer::pick_of(std::uint32_t prefill, std::uint32_t decode) const {
  BalancerPick pick = pick_of(decode);
  pick.prefill = prefill;
  pick.prefill_server = server_of_[prefill];
  return pick;
}

std::uint32_t& Balancer::load_of(std::uint32_t server) {
  const std::uint32_t i = index_of_[server];
  return i == kGone ? gone_load_[server] : in_flight_[i];
}

void Balancer::on_sent(const BalancerPick& pick, const BalancerRequest& /*request*/) {
  ++load_of(pick.server);
  if (pick.prefill) ++load_of(pick.prefill_server);
  ++total_;
}

void Balancer::on_completed(const BalancerPick& pick, const BalancerOutcome& /*outcome*/) {
  std::uint32_t& load = load_of(pick.server);
  ROUTESIM_CHECK(load > 0, "a request completed that was not in flight");
  --load;
  if (pick.prefill) --load_of(pick.prefill_server);
  --total_;
}

}  // namespace routesim::policies
