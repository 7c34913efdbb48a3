#include "policies/plugins/inflight_load.h"

#include <algorithm>
#include <cmath>

namespace routesim::policies {

std::int64_t estimate_output_tokens(std::int64_t input_tokens, double ratio,
                                    std::optional<std::int64_t> client_cap,
                                    std::optional<std::int64_t> operator_cap) {
  if (input_tokens <= 0) return 0;
  const double estimate = std::round(static_cast<double>(input_tokens) * ratio);
  auto tokens = estimate >= 9e18 ? std::int64_t{9'000'000'000'000'000'000}
                                 : static_cast<std::int64_t>(estimate);
  if (client_cap && *client_cap >= 0) tokens = std::min(tokens, *client_cap);
  if (operator_cap && *operator_cap >= 0) tokens = std::min(tokens, *operator_cap);
  return tokens;
}

std::int64_t uncached_tokens(std::int64_t input_tokens, std::int64_t match, std::int64_t total,
                             std::int64_t block_size) {
  return std::max<std::int64_t>(0, total - match) * block_size +
         std::max<std::int64_t>(0, input_tokens - total * block_size);
}

InFlightLoad::InFlightLoad(const InFlightLoadParameters& parameters, const PluginSpec& spec,
                           BuildContext& context)
    : parameters_(parameters) {
  context.needs().in_flight = context.needs().prompt_tokens = true;
  // Prefix info is optional: without a producer the slot stays empty and every token counts.
  prefix_slot_ = parameters.prefix_producer.empty()
                     ? context.prefix_slot("approx-prefix-cache-producer")
                     : context.prefix_slot_of(parameters.prefix_producer, spec);
  for (const ProfileSpec& p : context.config().profiles)
    is_prefill_profile_.push_back(p.name == "prefill" ? 1 : 0);
  if (context.plugins().in_flight == nullptr) context.plugins().in_flight = this;
}

InFlightLoad* in_flight_load(BuildContext& context, const std::string& name,
                             const PluginSpec& user) {
  return dynamic_cast<InFlightLoad*>(
      context.producer(name, Facts::kLoad, user, "inFlightLoadProducerName"));
}

std::int64_t InFlightLoad::request_tokens(const Cycle& cycle, EndpointRow row) const {
  const RequestView& request = cycle.request();
  const std::int64_t n = request.prompt_tokens;
  std::int64_t tokens = n;
  const PrefixMatches& m = cycle.prefix(prefix_slot_);
  if (m.written) tokens = uncached_tokens(n, m.match[row], m.total_blocks, m.block_size);
  if (parameters_.add_estimated_output_tokens)
    tokens += estimate_output_tokens(n, parameters_.output_ratio, request.max_tokens,
                                     parameters_.max_estimated_output_tokens);
  return tokens;
}

void InFlightLoad::on_decided(Cycle& cycle, Decision& decision) const {
  for (const ProfileResult& result : decision.profiles) {
    if (!result.has_target()) continue;
    const EndpointRow row = result.targets.front();
    decision.set_note(index(), row, request_tokens(cycle, row));
  }
}

void InFlightLoad::on_routed(const RequestView& request, const Decision& decision,
                             const EndpointTable& endpoints, SimTime) {
  if (load_.size() < endpoints.rows()) load_.resize(endpoints.rows());
  std::vector<Share>& shares = live_[request.id];
  for (std::size_t p = 0; p < decision.profiles.size(); ++p) {
    const ProfileResult& result = decision.profiles[p];
    if (!result.has_target()) continue;
    const EndpointRow row = result.targets.front();
    const std::int64_t tokens = decision.note(index(), row, request.prompt_tokens);
    load_[row].requests += 1;
    load_[row].tokens += tokens;
    shares.push_back({.row = row,
                      .generation = load_[row].generation,
                      .tokens = tokens,
                      .prefill = p < is_prefill_profile_.size() && is_prefill_profile_[p] != 0,
                      .counted = true});
  }
}

void InFlightLoad::release_tokens(Share& share) {
  Load& load = load_[share.row];
  if (load.generation == share.generation)
    load.tokens = std::max<std::int64_t>(0, load.tokens - share.tokens);
  share.tokens = 0;
}

void InFlightLoad::release_request(Share& share) {
  Load& load = load_[share.row];
  if (share.counted && load.generation == share.generation)
    load.requests = std::max<std::int64_t>(0, load.requests - 1);
  share.counted = false;
}

void InFlightLoad::on_first_token(std::uint64_t request, SimTime) {
  const auto it = live_.find(request);
  if (it == live_.end()) return;
  for (Share& share : it->second) {
    if (!parameters_.add_estimated_output_tokens || share.prefill) release_tokens(share);
    if (share.prefill) release_request(share);
  }
}

void InFlightLoad::on_completed(std::uint64_t request, SimTime) {
  const auto it = live_.find(request);
  if (it == live_.end()) return;
  for (Share& share : it->second) {
    release_tokens(share);
    release_request(share);
  }
  live_.erase(it);
}

void InFlightLoad::on_endpoint_removed(EndpointRow row, SimTime) {
  if (row >= load_.size()) return;
  load_[row] = {.requests = 0, .tokens = 0, .generation = load_[row].generation + 1};
}

}  // namespace routesim::policies
