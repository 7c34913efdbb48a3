#include "tools/study/score/balancer_script.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "policies/index/prefix_index.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/study/score/score.h"

namespace routesim::tools {

namespace {

constexpr std::int64_t kMostUnits = std::int64_t{1} << 40;

/// A run for each character of UTF-8. A text that is given and empty has no runs, but a place.
policies::PromptText prompt_of(const std::string& text, std::vector<policies::TextRun>& runs) {
  runs.reserve(text.size() + 1);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0) == 0x80 && !runs.empty()) {
      runs.back().content = runs.back().content << 6 | (byte & 0x3f);
      continue;
    }
    const int lead = byte < 0xc0 ? 0x7f : byte < 0xe0 ? 0x1f : byte < 0xf0 ? 0x0f : 0x07;
    runs.push_back({.content = static_cast<std::uint64_t>(byte & lead), .offset = 0, .length = 1});
  }
  return {.runs = {runs.data(), runs.size()}, .characters_per_unit = 1};
}

std::string any_of_names(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : " or ") + name;
  return out.empty() ? "nobody" : out;
}

/// Carries out one case.
class CaseRunner {
 public:
  CaseRunner(const ScriptCase& script, std::vector<ScriptDecision>& out, Diagnostics& diagnostics)
      : script_(script),
        balancer_(
            policies::make_balancer(script.routing.balancer, script.routing.settings, script.seed)),
        out_(out),
        diagnostics_(diagnostics) {}

  void run() {
    for (; step_ < script_.steps.size(); ++step_) take(script_.steps[step_]);
  }

 private:
  void error(const std::string& message) {
    diagnostics_.error({}, "cases." + script_.name + ".steps[" + std::to_string(step_) + "]",
                       message);
  }

  std::optional<std::uint32_t> find(const std::string& name) {
    const auto at = std::ranges::find(names_, name);
    if (at != names_.end()) return static_cast<std::uint32_t>(at - names_.begin());
    error("names an unknown endpoint (got " + printable(name) + ")");
    return std::nullopt;
  }

  void take(const ScriptStep& step) {
    if (step.at) now_ = std::max(now_, SimTime::zero() + *step.at);
    if (step.endpoints) set_endpoints(*step.endpoints);
    if (!step.metrics.empty()) now_ += Duration::nanoseconds(1);  // Each scrape is another one.
    for (const ScriptMetrics& m : step.metrics)
      if (const auto row = find(m.endpoint))
        table_.set_metrics(EndpointId(*row), m.waiting, m.running, m.kv_usage, now_);
    tell_blocks(step);
    if (step.request) send(*step.request, step);
    if (step.first_token) {
      if (const auto at = sent_.find(*step.first_token); at != sent_.end())
        balancer_->on_first_token(at->second.pick, static_cast<std::uint64_t>(at->first), now_);
      else
        error("first_token: no such request is in flight");
    }
    if (step.completed) complete(*step.completed);
  }

  void set_endpoints(const std::vector<ScriptEndpoint>& endpoints) {
    std::vector<policies::BalancerEndpoint> pool;
    const std::vector<std::string> before = std::exchange(names_, {});
    const policies::EndpointTable scraped = std::exchange(table_, {});
    for (const ScriptEndpoint& e : endpoints) {
      pool.push_back(e.endpoint);
      names_.push_back(e.endpoint.name);
      const EndpointId row = table_.add({.address = e.endpoint.name, .pod_name = e.endpoint.name});
      const auto old = static_cast<policies::EndpointRow>(
          std::ranges::find(before, e.endpoint.name) - before.begin());
      if (old < before.size() && scraped.has_metrics(old))
        table_.set_metrics(row, scraped.waiting()[old], scraped.running()[old],
                           scraped.kv_usage()[old], scraped.updated()[old]);
    }
    balancer_->set_endpoints(pool);
  }

  void tell_blocks(const ScriptStep& step) {
    policies::PrefixIndex* index = balancer_->prefix_index();
    if (index == nullptr) {
      if (!step.stored.empty() || !step.removed.empty())
        error("the balancer reads no KV events with these settings");
      return;
    }
    for (const ScriptBlocks& b : step.stored)
      if (const auto row = find(b.endpoint))
        index->stored(EndpointId(*row), policies::kGpuTier, 0, b.keys, b.keys);
    for (const ScriptBlocks& b : step.removed)
      if (const auto row = find(b.endpoint))
        index->removed(EndpointId(*row), policies::kGpuTier, b.keys);
  }

  void send(const ScriptRequest& r, const ScriptStep& step) {
    std::vector<policies::TextRun> runs, token_runs;
    for (const std::uint32_t token : r.tokens)
      token_runs.push_back({.content = token, .offset = 0, .length = 1});
    std::vector<std::pair<std::string, std::string>> texts;
    std::vector<policies::Header> headers;
    if (r.headers.root != nullptr && r.headers.root->is_map())
      for (const ConfigNode::Member& m : r.headers.root->members())
        texts.emplace_back(m.key, m.value->is_scalar() ? m.value->text() : "");
    for (const auto& [name, value] : texts) headers.push_back({.name = name, .value = value});
    policies::BalancerRequest request;
    request.prefix = r.prefix;
    request.adapter = r.adapter;
    request.id = static_cast<std::uint64_t>(r.id);
    request.turn = request.id;
    request.now = now_;
    if (r.text) request.text = prompt_of(*r.text, runs);
    request.prompt_tokens =
        r.prompt_tokens > 0 ? r.prompt_tokens : static_cast<std::int64_t>(r.tokens.size());
    request.tokens = r.tokens;
    request.token_text = {.runs = token_runs, .characters_per_unit = 1};
    request.block_keys = r.block_keys;
    request.headers = headers;
    request.session = r.session;
    if (r.user) request.user = *r.user;
    request.max_tokens = r.max_tokens;
    request.priority = r.priority;
    request.metrics = &table_;
    const policies::BalancerAnswer answer = balancer_->pick(request);
    ScriptDecision decision;
    decision.case_name = script_.name;
    decision.step = step_;
    decision.request = r.id;
    if (answer) {
      balancer_->on_sent(*answer, request);
      sent_[r.id] = {.pick = *answer, .prompt_tokens = request.prompt_tokens};
      decision.endpoint = names_[answer->endpoint];
      if (answer->prefill) decision.prefill = names_[*answer->prefill];
    } else {
      decision.held = answer.is_held();
      decision.http_status = answer.is_held() ? 0 : answer.http_status();
    }
    judge(step, decision);
    out_.push_back(std::move(decision));
  }

  static void judge(const ScriptStep& step, ScriptDecision& d) {
    const auto compare = [&d](const auto& expected, const std::optional<std::string>& got,
                              const char* what) {
      if (!expected) return;
      const bool fits = got ? std::find(expected->begin(), expected->end(), *got) != expected->end()
                            : expected->empty();
      if (!fits)
        d.unexpected += std::string(d.unexpected.empty() ? "" : "; ") + what + " must be " +
                        any_of_names(*expected) + " (got " + got.value_or("nobody") + ")";
    };
    compare(step.expect, d.endpoint, "the endpoint");
    compare(step.expect_prefill, d.prefill, "the prefill server");
    if (step.expect_status && *step.expect_status != d.http_status)
      d.unexpected += " status " + std::to_string(d.http_status);
    if (step.expect_held && *step.expect_held != d.held) d.unexpected += " held or not";
  }

  void complete(const ScriptCompletion& c) {
    const auto at = sent_.find(c.id);
    if (at == sent_.end()) return error("completed: no such request is in flight");
    balancer_->on_completed(at->second.pick, {.id = static_cast<std::uint64_t>(c.id),
                                              .now = now_,
                                              .prompt_tokens = at->second.prompt_tokens,
                                              .output_tokens = c.output_tokens});
    sent_.erase(at);
  }

  struct Sent {
    policies::BalancerPick pick;
    std::int64_t prompt_tokens = 0;
  };
  const ScriptCase& script_;
  std::unique_ptr<policies::Balancer> balancer_;
  std::vector<ScriptDecision>& out_;
  Diagnostics& diagnostics_;
  std::size_t step_ = 0;
  SimTime now_;
  std::vector<std::string> names_;
  policies::EndpointTable table_;
  std::map<std::int64_t, Sent> sent_;
};

}  // namespace

void describe(Describer& d, ScriptEndpoint& e) {
  policies::BalancerEndpoint& b = e.endpoint;
  field(d, {"name", "The server as the product names it; rings hash it.", true}, b.name);
  field(d, {"adapters", "LoRA adapters it serves."}, b.adapters);
  field(d, {"weight", "Its share of a weighted rotation."}, b.weight,
        RealRange{.min = 0, .max = 1e9, .min_open = true});
  field(d, {"healthy", "Whether its health checks succeed."}, b.healthy);
  field(d, {"degraded", "Envoy: it serves what healthy servers cannot."}, b.degraded);
  field(d, {"hash_key", "Envoy: metadata envoy.lb.hash_key."}, b.hash_key);
  field(d, {"role", "Prefill, decode or both."}, b.role);
  field(d, {"deployment", "The deployment it belongs to, where there are several."}, b.deployment);
  field(d, {"group", "Prefill and decode servers that belong together."}, b.group);
  field(d, {"block_size", "KV block in tokens; 0 = unknown."}, b.block_size,
        IntRange{0, kMostUnits});
  field(d, {"kv_blocks", "KV blocks; 0 = unknown."}, b.kv_blocks, IntRange{0, kMostUnits});
  field(d, {"max_batched_tokens", "max_num_batched_tokens; 0 = unknown."}, b.max_batched_tokens,
        IntRange{0, kMostUnits});
}

void describe(Describer& d, ScriptMetrics& m) {
  field(d, {"endpoint", "Name of the server.", true}, m.endpoint);
  field(d, {"waiting", "Requests in the engine's queue."}, m.waiting, RealRange{.min = 0});
  field(d, {"running", "Requests in the engine's batch."}, m.running, RealRange{.min = 0});
  field(d, {"kv_usage", "Share of KV blocks in use."}, m.kv_usage, RealRange{0, 1});
}

void describe(Describer& d, ScriptBlocks& b) {
  field(d, {"endpoint", "Name of the server.", true}, b.endpoint);
  field(d, {"keys", "Keys of the blocks, the first block of the prompt first.", true}, b.keys);
}

void describe(Describer& d, ScriptRequest& r) {
  field(d, {"id", "Unique among requests in flight.", true}, r.id, IntRange{0});
  field(d, {"text", "The prompt; balancers that read text see its characters."}, r.text);
  field(d, {"tokens", "Token ids of the prompt."}, r.tokens);
  field(d, {"prompt_tokens", "Length of the prompt; the number of `tokens` where absent."},
        r.prompt_tokens, IntRange{0, kMostUnits});
  field(d, {"block_keys", "Keys of the full blocks of the prompt."}, r.block_keys);
  field(d, {"prefix", "The text that prefix-hash hashes."}, r.prefix);
  field(d, {"adapter", "LoRA adapter."}, r.adapter);
  field(d, {"headers", "Request headers: a map of text."}, r.headers);
  field(d, {"session", "Conversation."}, r.session);
  field(d, {"user", "Tenant."}, r.user);
  field(d, {"max_tokens", "The client's cap on the answer."}, r.max_tokens,
        IntRange{0, kMostUnits});
  field(d, {"priority", "The request's priority."}, r.priority);
}

void describe(Describer& d, ScriptCompletion& c) {
  field(d, {"id", "Id of a request in flight.", true}, c.id, IntRange{0});
  field(d, {"output_tokens", "Tokens of its answer."}, c.output_tokens, IntRange{0, kMostUnits});
}

void describe(Describer& d, ScriptStep& s) {
  field(d, {"at", "Time since the start."}, s.at, DurationRange{});
  field(d, {"endpoints", "The pool from now on."}, s.endpoints);
  field(d, {"metrics", "A scrape."}, s.metrics);
  field(d, {"stored", "KV blocks that servers store."}, s.stored);
  field(d, {"removed", "KV blocks that servers drop."}, s.removed);
  field(d, {"request", "A request to send."}, s.request);
  field(d, {"expect", "Names of which one must be picked; [] = none may be."}, s.expect);
  field(d, {"expect_prefill", "The same for the prefill server."}, s.expect_prefill);
  field(d, {"expect_status", "HTTP status of a refusal."}, s.expect_status, IntRange{0, 599});
  field(d, {"expect_held", "Whether the request waits in the router."}, s.expect_held);
  field(d, {"first_token", "Id of a request whose first token comes."}, s.first_token, IntRange{0});
  field(d, {"completed", "A request whose answer ends."}, s.completed);
}

void describe(Describer& d, ScriptRouting& r) {
  field(d, {"balancer", "The balancer, as in a scenario.", true}, r.balancer);
  policies::describe(d, r.settings);
}

void describe(Describer& d, ScriptCase& c) {
  field(d, {"name", "Unique name.", true}, c.name);
  field(d, {"note", "Why the expectations are what they are."}, c.note);
  field(d, {"routing", "The balancer and its settings, as in a scenario.", true}, c.routing);
  field(d, {"seed", "Identifies the balancer's random numbers."}, c.seed);
  field(d, {"steps", "What happens, in order.", true}, c.steps);
}

void describe(Describer& d, BalancerScript& s) {
  field(d, {"source", "Where the expectations come from."}, s.source);
  field(d, {"cases", "Each begins with a new balancer.", true}, s.cases);
}

std::optional<BalancerScript> read_balancer_script(const std::string& path,
                                                   Diagnostics& diagnostics) {
  Diagnostics found;
  const ConfigNode::Ptr root = read_config_file(path, found);
  BalancerScript script;
  if (root != nullptr) read_struct(*root, script, found, {.format = kScoreStepsFormat});
  for (const ScriptCase& c : script.cases) {
    Diagnostics faults;
    if (policies::make_balancer(c.routing.balancer, c.routing.settings, 1, 0, faults) != nullptr)
      continue;
    for (const Diagnostic& d : faults.items())
      found.error({.file = path}, "cases." + c.name + "." + d.path, d.message, d.hint);
  }
  append(diagnostics, found);
  if (found.has_errors()) return std::nullopt;
  return script;
}

std::vector<ScriptDecision> run_balancer_script(const BalancerScript& script,
                                                Diagnostics& diagnostics) {
  std::vector<ScriptDecision> decisions;
  for (const ScriptCase& c : script.cases) CaseRunner(c, decisions, diagnostics).run();
  return decisions;
}

std::string render_decisions(const std::vector<ScriptDecision>& decisions) {
  std::string out;
  for (const ScriptDecision& d : decisions) {
    nlohmann::ordered_json line = {{"case", d.case_name}, {"step", d.step}, {"request", d.request}};
    line["endpoint"] = d.endpoint ? nlohmann::ordered_json(*d.endpoint) : nullptr;
    if (d.prefill) line["prefill"] = *d.prefill;
    if (d.held) line["held"] = true;
    if (d.http_status != 0) line["http_status"] = d.http_status;
    if (!d.unexpected.empty()) line["unexpected"] = d.unexpected;
    out += line.dump() + "\n";
  }
  return out;
}

}  // namespace routesim::tools
