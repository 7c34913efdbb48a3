// session-affinity-scorer and session-affinity-filter: keep a session on the endpoint it began on,
// by a token in a header or by bindings remembered here.
// llm-d-router pkg/epp/framework/plugins/scheduling/scorer/sessionaffinity.
#pragma once

#include <map>

#include "base/text.h"
#include "policies/build_context.h"

namespace routesim::policies {

struct EncodedHeaderParameters {
  std::string header = "x-session-token";
};
inline void describe(Describer& d, EncodedHeaderParameters& p) {
  field(d, {"header", "Header that holds the encoded endpoint."}, p.header);
}

struct SessionSource {
  std::string header, attribute, producer;
};
inline void describe(Describer& d, SessionSource& p) {
  field(d, {"header", "Take the session id from this header."}, p.header);
  field(d, {"attribute", "Or from this request attribute."}, p.attribute);
  field(d, {"producer", "Producer of the attribute."}, p.producer);
}

struct SessionIdParameters {
  std::optional<std::vector<SessionSource>> sources;
  std::int64_t eviction_ttl_seconds = 300;
  std::int64_t eviction_sweep_seconds = 10;
};
inline void describe(Describer& d, SessionIdParameters& p) {
  field(d, {"sources", "Where the session id comes from (default header x-session-id)."},
        p.sources);
  field(d, {"evictionTtlSeconds", "Idle seconds after which a binding goes; 0 = 300."},
        p.eviction_ttl_seconds, IntRange{0});
  field(d, {"evictionSweepSeconds", "Seconds between sweeps; 0 = 10."}, p.eviction_sweep_seconds,
        IntRange{0});
}

struct SessionAffinityParameters {
  std::string strategy = "encoded_endpoint_header";
  EncodedHeaderParameters encoded_header;
  SessionIdParameters session_id;
  std::string profile_name;
};
inline void describe(Describer& d, SessionAffinityParameters& p) {
  field(d, {"strategy", "encoded_endpoint_header or session_id."}, p.strategy);
  field(d, {"encodedEndpointHeaderConfig", "For encoded_endpoint_header."}, p.encoded_header);
  field(d, {"sessionIdConfig", "For session_id."}, p.session_id);
  field(d, {"profileName", "Profile whose first target the response header names."},
        p.profile_name);
}

/// Base of the scorer and the filter: which endpoint a request is bound to.
class SessionAffinity : public virtual Plugin {
 public:
  SessionAffinity(const SessionAffinityParameters& p, const PluginSpec& spec, BuildContext& context)
      : header_(p.encoded_header.header) {
    context.needs().headers = true;
    if (p.strategy == "session_id")
      by_session_id_ = true;
    else if (p.strategy != "encoded_endpoint_header" && !p.strategy.empty())
      context.error(spec, "strategy",
                    "must be encoded_endpoint_header or session_id (got '" + p.strategy + "')");
    if (header_.empty()) header_ = "x-session-token";
    sources_ = p.session_id.sources.value_or(std::vector<SessionSource>{});
    for (std::size_t i = 0; i < sources_.size(); ++i)
      if (sources_[i].header.empty() == sources_[i].attribute.empty())
        context.error(spec, "sessionIdConfig.sources",
                      "source " + std::to_string(i) + " needs either a header or an attribute");
    if (sources_.empty())
      sources_.push_back({.header = "x-session-id", .attribute = {}, .producer = {}});
    name_headers(context.needs());
    const SessionIdParameters& ids = p.session_id;
    ttl_ = Duration::seconds(ids.eviction_ttl_seconds > 0 ? ids.eviction_ttl_seconds : 300);
    sweep_ = Duration::seconds(ids.eviction_sweep_seconds > 0 ? ids.eviction_sweep_seconds : 10);
    if (p.profile_name.empty()) return;
    profile_ = context.config().profile(p.profile_name);
    unknown_profile_ = !profile_;  // Then no result has that name, and nothing is ever set.
  }

  // Notes whether the bound endpoint is there: only when it is missing may the binding move.
  void on_decided(Cycle& cycle, Decision& decision) const override {
    if (!by_session_id_) return;
    const bool present = bound(cycle, cycle.candidates()).has_value();
    decision.set_note(index(), 0, present ? 1 : 0);
  }
  void on_routed(const RequestView& request, const Decision& decision, const EndpointTable&,
                 SimTime now) override {
    if (!by_session_id_) return;
    const std::string_view session = session_of(request);
    const std::optional<EndpointRow> picked = served_by(decision);
    if (session.empty() || !picked) return;
    const bool was_present = decision.note(index(), 0, 0) != 0;
    const auto it = bindings_.find(session);
    if (it == bindings_.end()) {
      bindings_.emplace(session, Binding{*picked, now});
      return;
    }
    it->second.last_used = now;
    if (!was_present) it->second.row = *picked;
  }
  void on_endpoint_removed(EndpointRow row, SimTime) override {
    std::erase_if(bindings_, [row](const auto& b) { return b.second.row == row; });
  }
  void advance(SimTime now) override {
    if (bindings_.empty() || now - last_sweep_ < sweep_) return;
    last_sweep_ = now;
    std::erase_if(bindings_, [&](const auto& b) { return now - b.second.last_used >= ttl_; });
  }
  void response_headers(const Decision& decision, const EndpointTable& endpoints,
                        std::vector<std::pair<std::string, std::string>>& headers) const override {
    if (by_session_id_) return;
    if (const auto row = served_by(decision))
      headers.emplace_back(header_, encode_base64(endpoints.info(*row).id()));
  }
  std::size_t bindings() const { return bindings_.size(); }

 protected:
  /// The bound row among `candidates`, if it is there.
  std::optional<EndpointRow> bound(const Cycle& cycle,
                                   std::span<const EndpointRow> candidates) const {
    if (by_session_id_) {
      const auto it = bindings_.find(session_of(cycle.request()));
      if (it == bindings_.end()) return std::nullopt;
      const auto found = std::find(candidates.begin(), candidates.end(), it->second.row);
      return found == candidates.end() ? std::nullopt : std::optional(*found);
    }
    const auto token = cycle.request().header(header_);
    if (!token || token->empty()) return std::nullopt;
    const std::optional<std::string> id = decode_base64(*token);
    if (!id) return std::nullopt;
    for (const EndpointRow r : candidates) {
      const EndpointInfo& info = cycle.endpoints().info(r);
      // Compared in parts, because building "namespace/name" for every endpoint would allocate.
      const std::size_t slash = info.name_space.size();
      if (id->size() == slash + 1 + info.pod_name.size() && (*id)[slash] == '/' &&
          id->compare(0, slash, info.name_space) == 0 &&
          id->compare(slash + 1, std::string::npos, info.pod_name) == 0)
        return r;
    }
    return std::nullopt;
  }

 private:
  struct Binding {
    EndpointRow row;
    SimTime last_used;
  };
  void name_headers(SignalNeeds& needs) const {
    if (!by_session_id_) needs.session_token_headers.push_back(header_);
    for (const SessionSource& source : sources_)
      if (by_session_id_ && !source.header.empty())
        needs.session_id_headers.push_back(source.header);
  }
  std::string_view session_of(const RequestView& request) const {
    for (const SessionSource& source : sources_) {
      if (!source.header.empty()) {
        const auto value = request.header(source.header);
        if (value && !value->empty()) return *value;
      } else if (!request.session.empty()) {
        return request.session;
      }
    }
    return {};
  }
  std::optional<EndpointRow> served_by(const Decision& decision) const {
    if (unknown_profile_) return std::nullopt;
    if (profile_) {
      const ProfileResult& result = decision.profiles[*profile_];
      return result.has_target() ? std::optional(result.targets.front()) : std::nullopt;
    }
    return decision.primary.valid() ? std::optional(decision.primary.value()) : std::nullopt;
  }

  bool by_session_id_ = false;
  std::string header_;
  std::vector<SessionSource> sources_;
  std::optional<std::size_t> profile_;  // Its first target counts; none = the primary target.
  bool unknown_profile_ = false;
  Duration ttl_, sweep_;
  SimTime last_sweep_;
  std::map<std::string, Binding, std::less<>> bindings_;
};

/// 1 for the endpoint that the session is bound to.
class SessionAffinityScorer final : public SessionAffinity, public Scorer {
 public:
  using SessionAffinity::SessionAffinity;
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    const std::optional<EndpointRow> row = bound(cycle, candidates);
    for (std::size_t i = 0; i < candidates.size(); ++i)
      scores[i] = row == candidates[i] ? 1.0 : 0.0;
  }
};

/// Keeps only the bound endpoint when it is present, otherwise all.
class SessionAffinityFilter final : public SessionAffinity, public Filter {
 public:
  using SessionAffinity::SessionAffinity;
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override {
    if (const auto row = bound(cycle, candidates)) candidates.assign(1, *row);
  }
};

}  // namespace routesim::policies
