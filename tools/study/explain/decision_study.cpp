#include "tools/study/explain/decision_study.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "models/kernels/kernel_latency.h"
#include "models/speculation.h"
#include "policies/config/factory.h"
#include "policies/config/make_scheduler.h"
#include "policies/row_math.h"
#include "policies/scheduling_profile.h"
#include "tools/ingest/tree/description.h"
#include "tools/results/described_json.h"
#include "tools/results/text_table.h"
#include "tools/study/experiment/experiment.h"

namespace routesim::tools {

namespace {

constexpr std::int64_t kPrompt = 2'048;
constexpr std::array<models::BatchShape, 3> kSteps = {{
    {.decode_requests = 1, .decode_context = 4'096},
    {.decode_requests = 64, .decode_context = std::int64_t{64} * 4'096},
    {.prefill_requests = 1,
     .prefill_tokens = kPrompt,
     .prefill_context = kPrompt,
     .prefill_pairs = kPrompt * kPrompt},
}};
constexpr std::array<const char*, 3> kStepNames = {"1 decode of 4096", "64 decodes of 4096",
                                                   "prompt of 2048"};

std::string_view origin_text(models::kernels::Origin origin) {
  switch (origin) {
    case models::kernels::Origin::kTable:
      return "measured";
    case models::kernels::Origin::kNearShape:
      return "scaled from a measured shape";
    case models::kernels::Origin::kPrinciples:
      break;
  }
  return "bytes and FLOP";
}

double microseconds(std::int64_t ticks) {
  return static_cast<double>(ticks) * 1e3 / static_cast<double>(models::kTicksPerMillisecond);
}

/// The batch as it is where every decoding sequence verifies `drafts`.
models::BatchShape with_drafts(models::BatchShape step, std::int64_t drafts) {
  step.draft_tokens = drafts * step.decode_requests;
  step.decode_context += step.draft_tokens;
  return step;
}

std::string speculation_text(const sim::ResolvedPool& pool,
                             const models::SpeculativeLatency& latency) {
  std::string text =
      "speculation: " + printable(latency.drafting(), 160) + "; accepted by position:";
  for (const double share : pool.rules.speculation.acceptance) text += " " + fixed_text(share, 3);
  return text + "\n";
}

/// Rows of what speculation adds to a step, and what it yields.
void add_speculation(const sim::ResolvedPool& pool, const models::SpeculativeLatency& latency,
                     std::size_t columns, TextTable& table) {
  std::vector<std::string> verify = {"drafts in the step"}, draft = {"drafting"};
  for (const models::BatchShape& step : kSteps) {
    const models::BatchShape batch = with_drafts(step, latency.tokens());
    verify.push_back(
        fixed_text(microseconds(latency.target_ticks(batch) - latency.target_ticks(step)), 0));
    draft.push_back(fixed_text(microseconds(latency.draft_ticks(batch)), 0));
  }
  std::vector<std::string> yields = {"tokens per sequence"};
  for (const models::BatchShape& step : kSteps)
    yields.push_back(
        fixed_text(step.decode_requests > 0 ? pool.rules.speculation.mean_length() : 1, 2));
  for (std::vector<std::string>* row : {&verify, &draft, &yields}) row->resize(columns);
  table.add_row(verify);
  table.add_row(draft);
  table.add_row(yields);
}

}  // namespace

std::string step_text(const sim::ResolvedPool& pool) {
  TextTable table(1);
  std::vector<std::string> header = {"operation, us"};
  header.insert(header.end(), kStepNames.begin(), kStepNames.end());
  const auto* speculative = dynamic_cast<const models::SpeculativeLatency*>(pool.latency.get());
  const models::LatencyModel* target =
      speculative != nullptr ? &speculative->target() : pool.latency.get();
  std::string text = "step times of " + printable(pool.config.name) + ": " +
                     printable(target->provenance()) + "\n";
  if (speculative != nullptr) text += speculation_text(pool, *speculative);
  const auto* kernels = dynamic_cast<const models::KernelLatency*>(target);
  if (kernels != nullptr) header.insert(header.end(), {"kernel", "known by"});
  table.add_row(header);
  if (kernels != nullptr) {
    std::vector<std::vector<models::KernelLatency::Share>> shares;
    for (const models::BatchShape& step : kSteps) shares.push_back(kernels->shares(step));
    const auto& first = shares.front();
    for (std::size_t i = 0; i < first.size(); ++i) {
      std::vector<std::string> cells = {first[i].operation};
      for (const auto& step : shares) cells.push_back(fixed_text(step[i].ns * 1e-3, 0));
      cells.push_back(first[i].kernel.empty() ? "-" : first[i].kernel);
      cells.emplace_back(origin_text(first[i].origin));
      table.add_row(cells);
    }
  }
  if (speculative != nullptr) add_speculation(pool, *speculative, header.size(), table);
  const std::int64_t drafts = speculative != nullptr ? speculative->tokens() : 0;
  std::vector<std::string> all = {"step"};
  for (const models::BatchShape& step : kSteps)
    all.push_back(fixed_text(microseconds(pool.latency->step_ticks(with_drafts(step, drafts))), 0));
  if (kernels != nullptr) all.insert(all.end(), {"", ""});
  table.add_row(all);
  return text + table.str();
}

namespace {

using policies::EndpointPickerConfig;
using policies::PluginSpec;

std::string place(const SourceLocation& where) {
  return printable(
      where.file + ":" + std::to_string(where.line) + ":" + std::to_string(where.column), 200);
}

/// Every scalar below a node, with its dotted path.
void add_given(const ConfigNode& node, const std::string& path, TextTable& table) {
  for (const ConfigNode::Member& member : node.members())
    add_given(*member.value, child_path(path, member.key), table);
  for (std::size_t i = 0; i < node.items().size(); ++i)
    add_given(*node.items()[i], element_path(path, i), table);
  if (node.is_map() || node.is_sequence()) return;
  const std::string value = node.is_null() ? "null" : node.text();
  table.add_row({"    " + printable(path), printable(value, 60), place(node.where())});
}

/// Whether the parameters, or one of the maps on the way, give this path.
bool given(const ConfigNode& parameters, std::string_view path) {
  const ConfigNode* node = &parameters;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    node = node->child(path.substr(0, dot));
    if (node == nullptr) return false;
    if (!node->is_map()) return true;
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return true;
}

/// The type whose parameters the plugin has: the scorer owned the index before there were
/// producers.
const policies::PluginType* parameters_of(const PluginSpec& spec, policies::Era era) {
  const bool owns =
      spec.type == "prefix-cache-scorer" && !policies::traits(era).match_info_producers;
  return policies::standard_registry().find(owns ? "approx-prefix-cache-producer" : spec.type);
}

/// A plugin's name and type, its parameters as written, and the defaults of the rest.
void add_plugin(const PluginSpec& spec, std::string_view role, policies::Era era,
                TextTable& table) {
  const policies::PluginType* type = parameters_of(spec, era);
  const std::string label = spec.name == spec.type ? spec.name : spec.name + " (" + spec.type + ")";
  table.add_row({"  " + std::string(role) + " " + printable(label), "",
                 spec.implicit ? "default" : place(spec.where)});
  if (spec.parameters->is_map()) add_given(*spec.parameters, "", table);
  if (type == nullptr || !type->describe_parameters) return;
  const FieldDescription defaults = describe_values([&](Describer& d) {
    if (type->describe_applied)
      type->describe_applied(d, spec, era);
    else
      type->describe_parameters(d);
  });
  for (const ResolvedValue& v : resolved_values(defaults, {}))
    if (!v.value.empty() && !given(*spec.parameters, v.path))
      table.add_row({"    " + v.path, printable(v.value, 60), "default"});
}

std::string limit(const std::optional<std::int64_t>& value) {
  return value ? std::to_string(*value) : "unlimited";
}

std::string ttl(Duration d) {
  return d > Duration::zero() ? fixed_text(d.to_seconds(), 3) + " s" : std::string("none");
}

std::string band_text(const std::string& name, const policies::PriorityBandSpec& band,
                      Duration otherwise) {
  return "    " + name + ": " + limit(band.max_requests) + " requests, " + limit(band.max_bytes) +
         " bytes, TTL " + ttl(band.default_request_ttl.value_or(otherwise)) + ", " +
         printable(band.fairness_policy) + ", " + printable(band.ordering_policy) + "\n";
}

std::string flow_control_text(const EndpointPickerConfig& config) {
  const std::string detector = "detector " + printable(config.saturation_detector);
  if (!config.gate("flowControl"))
    return "  flow control: off; " + detector + " refuses requests of negative priority only\n";
  const policies::FlowControlSpec& flow = config.flow_control;
  std::string text = "  flow control: on, " + detector + ", " + limit(flow.max_requests) +
                     " requests, " + limit(flow.max_bytes) + " bytes, usage limit " +
                     printable(flow.usage_limit_policy) + "\n";
  for (const policies::PriorityBandSpec& band : flow.bands)
    text += band_text("priority " + std::to_string(band.priority), band, flow.default_request_ttl);
  text += band_text("other priorities", flow.default_band, flow.default_request_ttl);
  return text +
         band_text("negative priorities", flow.default_negative_band, flow.default_request_ttl);
}

std::string profiles_text(const EndpointPickerConfig& config) {
  std::string text;
  for (const policies::ProfileSpec& profile : config.profiles) {
    text.append("  scheduling profile ").append(printable(profile.name)).append(":");
    for (const policies::PluginReference& plugin : profile.plugins) {
      text.append(" ").append(printable(plugin.name));
      if (plugin.weight) text.append("*").append(fixed_text(*plugin.weight, 2));
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string router_text(const EndpointPickerConfig& config) {
  std::string text = "router: ";
  text.append(policies::name(config.distribution)).append(", era ");
  text.append(policies::name(config.era)).append(" (");
  text.append(printable(config.era_origin, 120)).append(")\n");
  text += profiles_text(config);
  text += "  profile handler: " + printable(config.profile_handler) + "\n";
  text += flow_control_text(config);
  TextTable table(3);
  table.add_row({"  plugin", "value", "origin"});
  // This list includes the data producers that others need and the document does not declare.
  const std::optional<policies::Requirements> needed = policies::requirements(config);
  for (const PluginSpec& spec : needed ? needed->plugins : config.plugins) {
    const policies::PluginType* type = policies::standard_registry().find(spec.type);
    add_plugin(spec, type != nullptr ? policies::role_names(type->roles) : "unknown", config.era,
               table);
  }
  return text + table.str();
}

namespace {

/// Takes one decision's record and ends the run.
class Inspector final : public sim::DecisionProbe {
 public:
  Inspector(std::int64_t request, sim::Progress& progress)
      : request_(request), progress_(progress) {}
  bool wants(const workloads::Request& request) override {
    return static_cast<std::int64_t>(request.id.value()) == request_;
  }
  bool wants_omniscient() const override { return true; }
  void on_decision(const sim::DecisionRecord& record) override {
    record_ = record;
    progress_.stop = true;
  }
  const std::optional<sim::DecisionRecord>& record() const { return record_; }

 private:
  std::int64_t request_;
  sim::Progress& progress_;
  std::optional<sim::DecisionRecord> record_;
};

/// Sends one request to a given row.
class Redirector final : public sim::DecisionProbe {
 public:
  Redirector(std::int64_t request, std::int64_t row) : request_(request), row_(row) {}
  bool wants(const workloads::Request&) override { return false; }
  void on_decision(const sim::DecisionRecord&) override {}
  std::int64_t forced_row(const workloads::Request& request) override {
    return static_cast<std::int64_t>(request.id.value()) == request_ ? row_ : -1;
  }

 private:
  std::int64_t request_, row_;
};

class OneRequest final : public sim::Observer {
 public:
  explicit OneRequest(std::int64_t request) : request_(request) {}
  void on_done(const sim::RequestRecord& record) override {
    if (record.id == request_) record_ = record;
  }
  const std::optional<sim::RequestRecord>& record() const { return record_; }

 private:
  std::int64_t request_;
  std::optional<sim::RequestRecord> record_;
};

Alternative try_row(const sim::RunPlan& plan, const sim::DecisionRecord& decision,
                    std::uint32_t row) {
  // The real choice is not forced: its run is the run everybody else gets.
  Redirector redirect(decision.request,
                      row == decision.picked ? -1 : static_cast<std::int64_t>(row));
  OneRequest watch(decision.request);
  Diagnostics diagnostics;
  const std::optional<sim::RunResult> result = simulate(
      plan, {.seed = plan.scenario.seed, .probe = &redirect, .observers = {&watch}}, diagnostics);
  Alternative a{.row = row, .endpoint = decision.endpoints[row].name};
  if (!result) return a;
  a.mean_ttft_s = result->summary.time_to_first_token.mean();
  a.mean_latency_s = result->summary.request_latency.mean();
  if (!watch.record()) return a;
  const sim::RequestRecord& r = *watch.record();
  a.succeeded = r.outcome == workloads::Outcome::kSuccess;
  a.ttft_s = (r.first_token - r.sent).to_seconds();
  a.latency_s = (r.end - r.sent).to_seconds();
  a.cached_tokens = r.cached_tokens;
  return a;
}

/// The rows worth a run: the pick, the omniscient one, then candidates by score and by cache.
std::vector<std::uint32_t> rows_to_try(const DecisionStudy& study) {
  const sim::DecisionRecord& r = study.record;
  std::vector<std::uint32_t> rows;
  for (std::uint32_t row = 0; row < r.endpoints.size(); ++row)
    if (!r.scored || std::isfinite(r.totals[row])) rows.push_back(row);
  const auto rank = [&](std::uint32_t row) {
    const bool named = row == r.picked || static_cast<std::int64_t>(row) == study.omniscient;
    return std::tuple(!named, r.scored ? -r.totals[row] : 0.0, -r.endpoints[row].cached_tokens);
  };
  std::ranges::stable_sort(rows,
                           [&](std::uint32_t a, std::uint32_t b) { return rank(a) < rank(b); });
  if (rows.size() > kMostAlternatives) rows.resize(kMostAlternatives);
  std::ranges::sort(rows, [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(a != r.picked, a) < std::pair(b != r.picked, b);
  });
  return rows;
}

}  // namespace

std::optional<RequestChoice> parse_request_choice(const std::string& text) {
  if (text == "worst") return RequestChoice{RequestChoice::By::kRegret, 1};
  RequestChoice choice;
  std::string number = text;
  for (const auto& [prefix, by] : {std::pair{"slowest:", RequestChoice::By::kSlowest},
                                   std::pair{"regret:", RequestChoice::By::kRegret}})
    if (text.starts_with(prefix)) {
      choice.by = by;
      number = text.substr(std::string_view(prefix).size());
    }
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), choice.value);
  const bool whole = error == std::errc() && end == number.data() + number.size();
  const std::int64_t least = choice.by == RequestChoice::By::kNumber ? 0 : 1;
  if (!whole || choice.value < least) return std::nullopt;
  return choice;
}

std::vector<std::int64_t> find_requests(const sim::RunPlan& plan, const RequestChoice& choice,
                                        Diagnostics& diagnostics) {
  if (choice.by == RequestChoice::By::kNumber) return {choice.value};
  sim::RunPlan priced = plan;
  priced.price_decisions = true;
  const std::optional<sim::RunResult> result = simulate(
      priced, {.seed = plan.scenario.seed, .keep_requests = true, .observers = {}}, diagnostics);
  if (!result) return {};
  std::vector<std::pair<double, std::int64_t>> found;
  for (const sim::RequestRecord& r : result->requests) {
    if (r.endpoint < 0 || r.outcome != workloads::Outcome::kSuccess) continue;
    const double by = choice.by == RequestChoice::By::kRegret
                          ? r.regret_s
                          : (r.first_token - r.sent).to_seconds();
    found.emplace_back(-by, r.id);
  }
  std::ranges::sort(found);
  std::vector<std::int64_t> ids;
  for (const auto& [by, id] : found)
    if (static_cast<std::int64_t>(ids.size()) < choice.value) ids.push_back(id);
  return ids;
}

std::optional<DecisionStudy> study_decision(const sim::RunPlan& plan, std::int64_t request,
                                            std::size_t jobs, Diagnostics& diagnostics) {
  sim::Progress progress;
  Inspector inspector(request, progress);
  if (!simulate(
          plan,
          {.seed = plan.scenario.seed, .progress = &progress, .probe = &inspector, .observers = {}},
          diagnostics))
    return std::nullopt;
  if (!inspector.record()) {
    diagnostics.error({.file = "--request"}, "",
                      "the run has no request " + std::to_string(request) + " that was routed",
                      "`run --records FILE` lists them; they count from 0");
    return std::nullopt;
  }
  DecisionStudy study;
  study.scenario = plan.scenario.name;
  study.variant = plan.scenario.variant;
  study.seed = plan.scenario.seed;
  study.record = *inspector.record();
  if (study.record.scored && study.record.omniscient_decision.routed())
    study.omniscient = study.record.omniscient_decision.primary.value();
  if (!study.record.routed) return study;
  const std::vector<std::uint32_t> rows = rows_to_try(study);
  std::size_t candidates = 0;
  for (const double total : study.record.totals)
    candidates += !study.record.scored || std::isfinite(total) ? 1 : 0;
  study.all_tried = rows.size() == candidates;
  study.alternatives.resize(rows.size());
  for_each_index(rows.size(), jobs, [&](std::size_t i) {
    study.alternatives[i] = try_row(plan, study.record, rows[i]);
  });
  return study;
}

std::string why(const DecisionStudy& study) {
  const sim::DecisionRecord& r = study.record;
  if (!r.routed) return "The router turned the request away.";
  const std::string& name = r.endpoints[r.picked].name;
  if (!r.scored && r.sheet.rows.empty())
    return name + " was the balancer's choice; it scores nothing.";
  const double own = r.totals[r.picked];
  double best_other = -INFINITY;
  std::uint32_t runner_up = r.picked;
  int ties = 0;
  for (std::uint32_t row = 0; row < r.totals.size(); ++row) {
    if (row == r.picked || !std::isfinite(r.totals[row])) continue;
    ties += r.totals[row] == own ? 1 : 0;
    if (r.totals[row] > best_other) {
      best_other = r.totals[row];
      runner_up = row;
    }
  }
  if (runner_up == r.picked) return name + " was the only candidate.";
  if (best_other > own)
    return name + " was drawn although " + r.endpoints[runner_up].name + " scored " +
           fixed_text(best_other - own, 4) + " more: the picker does not always take the highest.";
  if (ties > 0)
    return name + " was drawn among " + std::to_string(ties + 1) +
           " endpoints with the same score.";
  return name + " won by " + fixed_text(own - best_other, 4) + " over " +
         r.endpoints[runner_up].name + ".";
}

double regret_s(const DecisionStudy& study) {
  if (study.alternatives.empty() || !study.alternatives.front().succeeded) return 0;
  double best = study.alternatives.front().ttft_s;
  for (const Alternative& a : study.alternatives)
    if (a.succeeded) best = std::min(best, a.ttft_s);
  return study.alternatives.front().ttft_s - best;
}

namespace {

using sim::DecisionRecord;
using sim::EndpointFacts;

std::string score_text(double score) {
  return std::isfinite(score) ? fixed_text(score, 4) : std::string("-");
}

/// One profile: a row per endpoint that was scored, a column per scorer.
std::string profile_table(const DecisionRecord& record,
                          const policies::ProfileExplanation& profile) {
  TextTable table(1);
  std::vector<std::string> head = {"endpoint"};
  for (const auto& step : profile.scorers)
    head.push_back(printable(step.plugin) + " x" + fixed_text(step.weight, 2));
  head.emplace_back("total");
  head.emplace_back("");
  table.add_row(std::move(head));
  for (std::size_t i = 0; i < profile.scored.size(); ++i) {
    const policies::EndpointRow row = profile.scored[i];
    std::vector<std::string> cells = {printable(record.endpoints[row].name)};
    for (const auto& step : profile.scorers) cells.push_back(score_text(step.scores[i]));
    cells.push_back(score_text(profile.totals[i]));
    const bool picked = !profile.picked.empty() && profile.picked.front() == row;
    cells.emplace_back(picked ? "<- picked" : "");
    table.add_row(std::move(cells));
  }
  std::string filters;
  for (const auto& step : profile.filters)
    filters += "  filter " + printable(step.plugin) + " left " +
               std::to_string(step.survivors.size()) + " of " +
               std::to_string(profile.candidates.size()) + "\n";
  return "  profile " + printable(profile.profile) + ", picker " + printable(profile.picker) +
         "\n" + filters + table.str();
}

/// The score of each server, and of each quantity in a formula.
std::string sheet_table(const DecisionRecord& record) {
  TextTable table(1);
  std::vector<std::string> head = {"endpoint"};
  head.insert(head.end(), record.sheet.names.begin(), record.sheet.names.end());
  head.insert(head.end(), {"score", ""});
  table.add_row(std::move(head));
  for (const sim::ScoreSheet::Row& row : record.sheet.rows) {
    std::vector<std::string> cells = {printable(record.endpoints[row.endpoint].name)};
    for (const double input : row.inputs) cells.push_back(number_text(input));
    cells.push_back(std::isfinite(row.score) ? fixed_text(row.score, 4) : number_text(row.score));
    cells.emplace_back(row.endpoint == record.picked ? "<- picked" : "");
    table.add_row(std::move(cells));
  }
  return table.str();
}

std::string known_and_true(const std::string& known, double truth, int decimals) {
  return known + " / " + fixed_text(truth, decimals);
}

std::string facts_table(const DecisionRecord& record) {
  TextTable table(1);
  table.add_row(
      {"endpoint", "scrape age, ms", "waiting", "running", "KV use, %", "prefix, tokens"});
  for (const EndpointFacts& f : record.endpoints) {
    if (!f.is_known) continue;
    const auto known = [&](double value, int decimals) {
      return f.scraped ? fixed_text(value, decimals) : std::string("?");
    };
    table.add_row(
        {printable(f.name),
         f.scraped ? fixed_text((record.now - f.scraped_at).to_seconds() * 1e3, 1) : "-",
         known_and_true(known(f.known_waiting, 0), f.waiting, 0),
         known_and_true(known(f.known_running, 0), f.running, 0),
         known_and_true(known(100 * f.known_kv_usage, 1), 100 * f.kv_usage, 1),
         known_and_true(f.predicted_tokens >= 0 ? std::to_string(f.predicted_tokens) : "?",
                        static_cast<double>(f.cached_tokens), 0)});
  }
  return table.str();
}

std::string alternatives_table(const DecisionStudy& study) {
  TextTable table(1);
  table.add_row({"endpoint", "TTFT, ms", "change", "latency, s", "cached tokens",
                 "all: mean TTFT, ms", "change"});
  const Alternative& real = study.alternatives.front();
  for (const Alternative& a : study.alternatives) {
    const bool first = &a == &real;
    table.add_row({printable(a.endpoint) + (first ? " (as it was)" : ""),
                   a.succeeded ? fixed_text(a.ttft_s * 1e3, 1) : "failed",
                   first || real.ttft_s == 0 || !a.succeeded
                       ? ""
                       : signed_percent(100 * (a.ttft_s / real.ttft_s - 1)) + " %",
                   fixed_text(a.latency_s, 3), std::to_string(a.cached_tokens),
                   fixed_text(a.mean_ttft_s * 1e3, 2),
                   first || real.mean_ttft_s == 0
                       ? ""
                       : signed_percent(100 * (a.mean_ttft_s / real.mean_ttft_s - 1)) + " %"});
  }
  return table.str();
}

std::string omniscient_text(const DecisionStudy& study) {
  if (!study.record.scored) return {};
  std::string text = "\nWith every queue, KV use and cache known as it is (";
  if (study.omniscient == static_cast<std::int64_t>(study.record.picked))
    text += "the same pick";
  else if (study.omniscient >= 0)
    text += "it would have been " +
            printable(study.record.endpoints[static_cast<std::size_t>(study.omniscient)].name);
  else
    text += "no endpoint";
  text += ")\n";
  for (const auto& profile : study.record.omniscient.profiles)
    text += profile_table(study.record, profile);
  return text;
}

}  // namespace

std::string render_decision_text(const DecisionStudy& study) {
  const DecisionRecord& r = study.record;
  std::string out = "variant " + printable(study.variant) + ", request " +
                    std::to_string(r.request) + " of " + std::to_string(r.prompt_tokens) +
                    " prompt tokens, decided at " + fixed_text(r.now.to_seconds(), 6) +
                    " s by router process " + std::to_string(r.instance) + "\n" +
                    printable(why(study), 400) + "\n";
  if (r.scored) {
    out += "\nAs the router saw it\n";
    for (const auto& profile : r.seen.profiles) out += profile_table(r, profile);
  } else if (!r.sheet.rows.empty()) {
    out += (r.sheet.names.empty() ? "\nThe policy's score for each server\n"
                                  : "\nThe formula's value for each server\n") +
           sheet_table(r);
  }
  out += "\nWhat it knew / what was true\n" + facts_table(r) + omniscient_text(study);
  if (study.alternatives.empty()) return out;
  const double regret = regret_s(study);
  out += "\nThe same run with this request elsewhere";
  if (!study.all_tried)
    out.append(" (the best ").append(std::to_string(study.alternatives.size())).append(")");
  out.append("\n").append(alternatives_table(study));
  out += "\nrealised regret: " + fixed_text(regret * 1e3, 1) + " ms of TTFT" +
         (regret > 0 ? "\n" : ": no other choice was faster for this request\n");
  return out;
}

namespace {

void write_profile(JsonWriter& json, const DecisionRecord& record,
                   const policies::ProfileExplanation& profile) {
  json.begin_object().member("profile", profile.profile).member("picker", profile.picker);
  json.key("filters").begin_array();
  for (const auto& step : profile.filters) {
    json.begin_object().member("plugin", step.plugin).key("survivors").begin_array();
    for (const auto row : step.survivors) json.value(record.endpoints[row].name);
    json.end_array().end_object();
  }
  json.end_array().key("endpoints").begin_array();
  for (std::size_t i = 0; i < profile.scored.size(); ++i) {
    json.begin_object().member("endpoint", record.endpoints[profile.scored[i]].name);
    json.member("total", profile.totals[i]).key("scores").begin_array();
    for (const auto& step : profile.scorers) {
      json.begin_object().member("plugin", step.plugin).member("weight", step.weight);
      json.member("score", step.scores[i]);
      json.member("contribution", policies::clamp_score(step.scores[i]) * step.weight).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().key("picked").begin_array();
  for (const auto row : profile.picked) json.value(record.endpoints[row].name);
  json.end_array().end_object();
}

void write_facts(JsonWriter& json, const DecisionRecord& record, const EndpointFacts& f) {
  json.begin_object().member("endpoint", f.name);
  json.key("scrape_age_s");
  if (f.scraped) {
    json.value((record.now - f.scraped_at).to_seconds());
    json.key("known").begin_object().member("waiting", f.known_waiting);
    json.member("running", f.known_running).member("kv_cache_usage", f.known_kv_usage);
    json.end_object();
  } else {
    json.null();
  }
  json.member("predicted_tokens",
              f.predicted_tokens >= 0 ? std::optional(f.predicted_tokens) : std::nullopt);
  json.key("true").begin_object().member("waiting", f.waiting).member("running", f.running);
  json.member("kv_cache_usage", f.kv_usage).member("cached_tokens", f.cached_tokens);
  json.end_object().end_object();
}

void write_sheet(JsonWriter& json, const DecisionRecord& record) {
  json.key("scores").begin_array();
  for (const sim::ScoreSheet::Row& row : record.sheet.rows) {
    json.begin_object().member("endpoint", record.endpoints[row.endpoint].name);
    json.member("score", row.score).key("inputs").begin_object();
    for (std::size_t i = 0; i < row.inputs.size(); ++i)
      json.member(record.sheet.names[i], row.inputs[i]);
    json.end_object().end_object();
  }
  json.end_array();
}

void write_alternatives(JsonWriter& json, const DecisionStudy& study) {
  json.key("alternatives").begin_array();
  for (const Alternative& a : study.alternatives) {
    json.begin_object().member("endpoint", a.endpoint);
    json.member("chosen", a.row == study.record.picked).member("succeeded", a.succeeded);
    json.member("ttft_s", a.ttft_s).member("request_latency_s", a.latency_s);
    json.member("cached_tokens", a.cached_tokens).member("run_ttft_mean_s", a.mean_ttft_s);
    json.member("run_request_latency_mean_s", a.mean_latency_s).end_object();
  }
  json.end_array().member("all_candidates_tried", study.all_tried);
  json.member("regret_ttft_s", regret_s(study));
}

}  // namespace

std::string render_decision_json(const DecisionStudy& study) {
  const DecisionRecord& r = study.record;
  JsonWriter json;
  json.begin_object().member("scenario", study.scenario).member("variant", study.variant);
  json.member("seed", study.seed).member("request", r.request);
  json.member("time_s", r.now.to_seconds()).member("prompt_tokens", r.prompt_tokens);
  json.member("router_process", static_cast<std::int64_t>(r.instance)).member("routed", r.routed);
  if (r.routed) json.member("picked", r.endpoints[r.picked].name);
  json.member("why", why(study));
  json.key("seen").begin_array();
  for (const auto& profile : r.seen.profiles) write_profile(json, r, profile);
  json.end_array().key("omniscient").begin_array();
  for (const auto& profile : r.omniscient.profiles) write_profile(json, r, profile);
  json.end_array();
  if (!r.sheet.rows.empty()) write_sheet(json, r);
  if (study.omniscient >= 0)
    json.member("omniscient_pick", r.endpoints[static_cast<std::size_t>(study.omniscient)].name);
  json.key("endpoints").begin_array();
  for (const EndpointFacts& f : r.endpoints) write_facts(json, r, f);
  json.end_array();
  write_alternatives(json, study);
  json.end_object();
  return json.str() + "\n";
}

}  // namespace routesim::tools
