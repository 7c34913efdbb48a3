// The record of one decision as JSON.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "tools/results/json_writer.h"
#include "tools/study/score/score.h"

namespace routesim::tools {

namespace {

using policies::EndpointRow;

constexpr std::array<std::string_view, 3> kStateNames = {"not-run", "failed", "ok"};

class Renderer {
 public:
  explicit Renderer(const ScoreReport& report) : report_(report) {}

  std::string render() {
    const policies::EndpointPickerConfig& config = report_.scheduler.config();
    json_.begin_object();
    json_.member("era", policies::name(config.era)).member("era_origin", config.era_origin);
    json_.member("distribution", policies::name(config.distribution));
    json_.member("seed", report_.seed).member("now_s", report_.now.to_seconds());
    request();
    if (report_.kv_events) kv_events(*report_.kv_events);
    json_.key("profiles").begin_array();
    for (const policies::ProfileExplanation& p : report_.explanation.profiles) profile(p);
    profiles_not_run();
    json_.end_array();
    decision();
    json_.end_object();
    return json_.str() + "\n";
  }

 private:
  void names(std::string_view key, std::span<const EndpointRow> rows) {
    json_.key(key).begin_array();
    for (const EndpointRow row : rows) json_.value(report_.pool.names[row]);
    json_.end_array();
  }

  /// One number per endpoint; what is not a number (a scorer that abstained) is null.
  void values(std::string_view key, const std::vector<EndpointRow>& rows,
              const std::vector<double>& numbers) {
    json_.key(key).begin_object();
    for (std::size_t i = 0; i < rows.size() && i < numbers.size(); ++i)
      json_.member(report_.pool.names[rows[i]], numbers[i]);
    json_.end_object();
  }

  void request() {
    const policies::RequestView& r = report_.request;
    const policies::SignalNeeds& needs = report_.scheduler.needs();
    json_.key("request").begin_object();
    json_.member("model", r.model).member("prompt_tokens", r.prompt_tokens);
    json_.member("prompt_bytes", r.prompt_bytes);
    if (needs.block_keys) {
      const policies::BlockKeyScheme scheme = report_.scheduler.block_key_scheme();
      json_.member("key_algorithm", policies::to_string(scheme.algorithm));
      json_.member("key_block_size", scheme.block_size);
      keys("block_keys", r.block_keys);
    }
    if (needs.approx_hashes) keys("approx_hashes", r.approx_hashes);
    json_.end_object();
  }

  /// Keys are text, because many JSON readers round 64-bit numbers.
  void keys(std::string_view key, std::span<const std::uint64_t> numbers) {
    json_.key(key).begin_array();
    for (const std::uint64_t n : numbers) json_.value("0x" + hex_digits(n));
    json_.end_array();
  }

  void kv_events(const policies::KvIngestStats& s) {
    json_.key("kv_events").begin_object();
    json_.member("stored", s.stored).member("removed", s.removed).member("cleared", s.cleared);
    json_.member("tier_updates", s.tier_updates).member("skipped_group", s.skipped_group);
    json_.member("skipped_parent", s.skipped_parent);
    json_.member("skipped_partial", s.skipped_partial).member("skipped_limit", s.skipped_limit);
    json_.end_object();
  }

  void profile(const policies::ProfileExplanation& p) {
    json_.begin_object().member("name", p.profile);
    json_.member("state", kStateNames[static_cast<std::size_t>(p.state)]);
    names("candidates", p.candidates);
    json_.key("filters").begin_array();
    for (const auto& step : p.filters) {
      json_.begin_object().member("plugin", step.plugin);
      names("survivors", step.survivors);
      json_.end_object();
    }
    json_.end_array().key("scorers").begin_array();
    for (const auto& step : p.scorers) {
      json_.begin_object().member("plugin", step.plugin).member("weight", step.weight);
      values("scores", p.scored, step.scores);
      json_.end_object();
    }
    json_.end_array();
    values("totals", p.scored, p.totals);
    json_.member("picker", p.picker);
    names("picked", p.picked);
    json_.end_object();
  }

  void profiles_not_run() {
    const auto& ran = report_.explanation.profiles;
    for (const std::string& name : report_.scheduler.profile_names())
      if (std::none_of(ran.begin(), ran.end(), [&](const auto& p) { return p.profile == name; }))
        json_.begin_object().member("name", name).member("state", kStateNames[0]).end_object();
  }

  void endpoint(std::string_view key, EndpointId id) {
    json_.key(key);
    if (!id.valid()) {
      json_.null();
      return;
    }
    const policies::EndpointInfo& info = report_.pool.table.info(id.value());
    json_.begin_object().member("name", info.pod_name).member("namespace", info.name_space);
    json_.member("address", info.address).member("port", info.port);
    json_.end_object();
  }

  void decision() {
    const policies::Decision& d = report_.decision;
    json_.key("decision").begin_object();
    json_.member("outcome", policies::kOutcomeNames[static_cast<std::size_t>(d.outcome)]);
    json_.member("http_status", d.http_status).member("reason", d.reason);
    endpoint("primary", d.primary);
    endpoint("prefill", d.prefill);
    names("targets", d.targets);
    names("encode_targets", d.encode_targets);
    if (d.destination_port >= 0) json_.member("destination_port", d.destination_port);
    headers("headers", d.headers);
    if (d.routed())
      headers("response_headers", report_.scheduler.response_headers(d, report_.pool.table));
    json_.end_object();
  }

  void headers(std::string_view key, const std::vector<std::pair<std::string, std::string>>& list) {
    json_.key(key).begin_object();
    for (const auto& [name, value] : list) json_.member(name, value);
    json_.end_object();
  }

  const ScoreReport& report_;
  JsonWriter json_;
};

}  // namespace

std::string render_score(const ScoreReport& report) { return Renderer(report).render(); }

}  // namespace routesim::tools
