#include "sim/custom/server_view.h"

#include <algorithm>

namespace routesim::sim {

void ServerView::set_endpoints(const policies::Balancer& balancer,
                               std::span<const policies::BalancerEndpoint> endpoints) {
  announced_.set_endpoints(balancer);
  const std::size_t n = endpoints.size();
  for (auto* column :
       {&waiting, &running, &kv_usage, &age, &in_flight, &in_flight_tokens, &prefix_tokens})
    column->assign(n, 0);
  block_size_.clear();
  for (const policies::BalancerEndpoint& e : endpoints) block_size_.push_back(e.block_size);
}

void ServerView::update(const policies::BalancerRequest& request,
                        std::span<const std::uint32_t> counts) {
  std::copy(counts.begin(), counts.end(), in_flight.begin());
  if (inputs_.metrics && request.metrics != nullptr) {
    const policies::EndpointTable& table = *request.metrics;
    for (std::uint32_t i = 0; i < size(); ++i) {
      if (!table.has_metrics(i)) continue;
      waiting[i] = table.waiting()[i];
      running[i] = table.running()[i];
      kv_usage[i] = table.kv_usage()[i];
      age[i] = (request.now - table.updated()[i]).to_seconds();
    }
  }
  if (!inputs_.prefix) return;
  std::fill(prefix_tokens.begin(), prefix_tokens.end(), 0.0);
  if (request.block_keys.empty()) return;
  for (const policies::PrefixMatch& m : announced_.match(request.block_keys)) {
    const std::uint32_t i = m.endpoint.value();
    prefix_tokens[i] = static_cast<double>(m.blocks) * static_cast<double>(block_size_[i]);
  }
}

void ServerView::on_sent(const policies::BalancerPick& pick,
                         const policies::BalancerRequest& request) {
  sent_[request.id] = {.endpoint = pick.endpoint, .tokens = request.prompt_tokens};
  in_flight_tokens[pick.endpoint] += static_cast<double>(request.prompt_tokens);
}

void ServerView::on_completed(const policies::BalancerOutcome& outcome) {
  const auto at = sent_.find(outcome.id);
  if (at == sent_.end()) return;
  in_flight_tokens[at->second.endpoint] -= static_cast<double>(at->second.tokens);
  sent_.erase(at);
}

}  // namespace routesim::sim
