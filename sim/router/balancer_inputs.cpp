#include "sim/router/balancer_inputs.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/rng.h"
#include "sim/plan/mix.h"

namespace routesim::sim {
namespace {

/// The text a prefix-hash balancer would see: two prompts agree in their first characters exactly
/// when they agree in their first tokens (about four characters each). Of a chat it sees the first
/// user message only, so that all turns of a thread look alike.
void write_prefix_text(const workloads::Prompt& prompt, std::int64_t characters, std::string& out) {
  out.clear();
  std::int64_t left = (characters + 3) / 4;
  std::int64_t preamble = prompt.preamble_tokens;  // the chat template's own, not the user's text
  const bool chat = preamble > 0;
  for (const workloads::Segment& s : prompt.segments) {
    if (left <= 0) break;
    if (preamble >= s.length) {
      preamble -= s.length;
      continue;
    }
    preamble = 0;
    char digits[17];
    const auto end = std::to_chars(digits, digits + 16,
                                   mix64(s.content, static_cast<std::uint64_t>(s.offset)), 16);
    out.append(digits, static_cast<std::size_t>(end.ptr - digits));
    left -= s.length;
    if (chat) return;
  }
}

policies::ServerRole server_role(PoolRole role) {
  switch (role) {
    case PoolRole::kPrefill:
      return policies::ServerRole::kPrefill;
    case PoolRole::kDecode:
      return policies::ServerRole::kDecode;
    case PoolRole::kBoth:
      break;
  }
  return policies::ServerRole::kBoth;
}

}  // namespace

policies::BalancerEndpoint balancer_endpoint(std::string name, const ResolvedPool& pool,
                                             const std::vector<std::string>& adapters) {
  policies::BalancerEndpoint out;
  out.name = std::move(name);
  out.adapters = adapters;
  out.role = server_role(pool.config.role);
  out.deployment = pool.config.name;
  out.block_size = pool.rules.block_size;
  out.kv_blocks = pool.rules.num_gpu_blocks;
  out.max_batched_tokens = pool.rules.max_num_batched_tokens;
  return out;
}

BalancerInputs::BalancerInputs(policies::BalancerNeeds needs, const RunPlan& plan,
                               double bytes_per_token)
    : needs_(std::move(needs)), plan_(&plan), bytes_per_token_(bytes_per_token) {
  const RoutingConfig& routing = plan.scenario.routing;
  if (routing.balancer == BalancerKind::kPrefixHash)
    prefix_characters_ = routing.balancing.kubeai.prefix_char_length;
  for_each_load(plan.scenario.workload,
                [this](const std::string&, const workloads::Load& load, const auto&) {
                  is_chat_.push_back(traits_of(load).is_chat);
                });
}

policies::BalancerRequest BalancerInputs::request(const workloads::Request& request,
                                                  const PromptKeys& keys, SimTime now) {
  policies::BalancerRequest out;
  out.id = request.id.value();
  out.now = now;
  out.prompt_tokens = request.prompt->tokens;
  out.max_tokens = request.max_tokens;
  out.priority = request.priority;
  if (prefix_characters_ > 0) {
    write_prefix_text(*request.prompt, prefix_characters_, prefix_);
    out.prefix = prefix_;
  }
  const bool is_chat = is_chat_[is_chat_.size() > 1 ? request.traffic_class : 0];
  const policies::ChatText seen = !is_chat        ? policies::ChatText::kMessages
                                  : has_prefill() ? needs_.chat_text_with_prefill
                                                  : needs_.chat_text;
  if (needs_.text) {
    // A router sees the messages, not the chat template around them.
    write_runs(*request.prompt, request.prompt->preamble_tokens, runs_);
    if (seen == policies::ChatText::kNone) runs_.clear();
    // The first piece stands for the first message, as in write_prefix_text().
    if (seen == policies::ChatText::kFirstMessage && runs_.size() > 1) runs_.resize(1);
    out.text = {.runs = runs_, .characters_per_unit = bytes_per_token_};
  }
  if (needs_.token_runs) {
    write_runs(*request.prompt, 0, token_runs_);
    out.token_text = {.runs = token_runs_, .characters_per_unit = bytes_per_token_};
  }
  if (needs_.leading_tokens > 0) {
    write_tokens(*request.prompt);
    out.tokens = tokens_;
  }
  if (needs_.block_keys && seen != policies::ChatText::kNone) out.block_keys = keys.request;
  if (needs_.identity) write_identity(request, out);
  return out;
}

void BalancerInputs::write_runs(const workloads::Prompt& prompt, std::int64_t skip,
                                std::vector<policies::TextRun>& out) {
  out.clear();
  for (const workloads::Segment& s : prompt.segments) {
    const std::int64_t cut = std::min(skip, s.length);
    skip -= cut;
    if (cut < s.length)
      out.push_back({.content = s.content, .offset = s.offset + cut, .length = s.length - cut});
  }
}

void BalancerInputs::write_tokens(const workloads::Prompt& prompt) {
  tokens_.clear();
  for (const workloads::Segment& s : prompt.segments)
    for (std::int64_t i = 0; i < s.length; ++i) {
      if (static_cast<std::int64_t>(tokens_.size()) == needs_.leading_tokens) return;
      tokens_.push_back(workloads::token_at(s.content, s.offset + i));
    }
}

// Every client is taken to name its session where the configuration looks for one.
void BalancerInputs::write_identity(const workloads::Request& request,
                                    policies::BalancerRequest& out) {
  headers_.clear();
  const std::vector<workloads::TrafficClass>& classes = plan_->scenario.workload.classes;
  const bool reads_body = has_prefill() || !needs_.body_with_prefill_only;
  if (reads_body && !classes.empty() && !classes[request.traffic_class].user.empty())
    out.user = classes[request.traffic_class].user;
  for (const auto& [name, value] : plan_->headers[request.traffic_class])
    headers_.push_back({.name = name, .value = value});
  if (request.session != 0) {
    session_ = "session-" + std::to_string(request.session);
    out.session = session_;
    for (const std::string& name : needs_.session_headers)
      headers_.push_back({.name = name, .value = session_});
    cookie_.clear();
    for (const std::string& name : needs_.session_cookies) cookie_ += name + "=" + session_ + "; ";
    if (!cookie_.empty()) headers_.push_back({.name = "cookie", .value = cookie_});
  }
  out.headers = headers_;
}

}  // namespace routesim::sim
