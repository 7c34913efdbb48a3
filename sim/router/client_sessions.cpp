#include "sim/router/client_sessions.h"

#include <algorithm>

#include "base/scalar_parse.h"
#include "policies/flow/flow_control.h"

namespace routesim::sim {
namespace {

constexpr std::string_view kFairnessHeader = "x-llm-d-inference-fairness-id";

std::string text_of(std::uint64_t session) { return "session-" + std::to_string(session); }

/// Under global strict fairness the flow of a request has no influence.
bool tells_flows_apart(const policies::EndpointPickerConfig& config) {
  const auto fair = [&config](const policies::PriorityBandSpec& band) {
    const policies::PluginSpec* policy = config.find(band.fairness_policy);
    return policy != nullptr && policy->type != "global-strict-fairness-policy";
  };
  const policies::FlowControlSpec& flow = config.flow_control;
  return fair(flow.default_band) || fair(flow.default_negative_band) ||
         std::any_of(flow.bands.begin(), flow.bands.end(), fair);
}

/// A goal in milliseconds under the header's name or its older one; 0 where it is absent or no
/// number, as the router takes it (llm-d-router pkg/epp/metadata/consts.go, commit ebab687).
double goal_ms(const ClientSessions::Headers& headers, std::string_view name,
               std::string_view older) {
  for (const std::string_view wanted : {name, older})
    for (const auto& [key, value] : headers)
      if (policies::same_header(key, wanted))
        return parse_real(value, RealRange{}).value.value_or(0);
  return 0;
}

}  // namespace

ClientSessions::ClientSessions(const policies::Scheduler& scheduler, std::vector<Headers> added)
    : needs_(scheduler.needs()),
      tells_flows_apart_(tells_flows_apart(scheduler.config())),
      added_(std::move(added)) {
  for (const Headers& headers : added_)
    goals_ms_.push_back({goal_ms(headers, "x-llm-d-slo-ttft-ms", "x-slo-ttft-ms"),
                         goal_ms(headers, "x-llm-d-slo-tpot-ms", "x-slo-tpot-ms")});
}

void ClientSessions::send(const workloads::Request& request, policies::RequestView& view) {
  if (!needs_) return;
  view.slo_ttft_ms = goals_ms_[request.traffic_class][0];
  view.slo_tpot_ms = goals_ms_[request.traffic_class][1];
  headers_.clear();
  for (const auto& [name, value] : added_[request.traffic_class])
    headers_.push_back({.name = name, .value = value});
  view.headers = headers_;
  if (!needs_->headers || request.session == 0) return;
  session_ = text_of(request.session);
  view.session = session_;
  for (const std::string& name : needs_->session_id_headers)
    headers_.push_back({.name = name, .value = session_});
  if (const auto it = of_session_.find(request.session); it != of_session_.end())
    for (const auto& [name, value] : it->second) headers_.push_back({.name = name, .value = value});
  view.headers = headers_;
}

std::string ClientSessions::flow(const workloads::Request& request) const {
  policies::RequestView view;
  const std::string nobody = policies::FlowControl::flow_of(view);
  if (!tells_flows_apart_) return nobody;
  std::vector<policies::Header> headers;
  for (const auto& [name, value] : added_[request.traffic_class])
    headers.push_back({.name = name, .value = value});
  view.headers = headers;
  const std::string own = policies::FlowControl::flow_of(view);
  if (own != nobody || request.session == 0) return own;
  const std::string session = text_of(request.session);
  const policies::Header header{.name = kFairnessHeader, .value = session};
  view.headers = {&header, 1};
  return policies::FlowControl::flow_of(view);
}

void ClientSessions::on_routed(const workloads::Request& request,
                               const policies::Scheduler& scheduler,
                               const policies::Decision& decision,
                               const policies::EndpointTable& table) {
  if (!needs_ || needs_->session_token_headers.empty() || request.session == 0) return;
  Headers tokens = scheduler.response_headers(decision, table);
  const std::vector<std::string>& names = needs_->session_token_headers;
  std::erase_if(tokens, [&names](const auto& header) {
    return std::find(names.begin(), names.end(), header.first) == names.end();
  });
  of_request_[request.id.value()] = std::move(tokens);
}

void ClientSessions::on_completed(const workloads::Request& request) {
  const auto it = of_request_.find(request.id.value());
  if (it == of_request_.end()) return;
  of_session_[request.session] = std::move(it->second);
  of_request_.erase(it);
}

}  // namespace routesim::sim
