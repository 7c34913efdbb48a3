// session-affinity-scorer and session-affinity-filter: keep a session on the endpoint it began on,
// by a token in a header or by bindings remembered here.
// llm-d-router pkg/epp/framework/plugins/scheduling/scorer/sessionaffinity.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
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

/// Shared by the scorer and the filter: which endpoint a request is bound to.
class SessionAffinity {
 public:
  SessionAffinity(const SessionAffinityParameters& p, const PluginSpec& spec,
                  BuildContext& context);

  /// The bound row among `candidates`, if it is there.
  std::optional<EndpointRow> bound(const Cycle& cycle,
                                   std::span<const EndpointRow> candidates) const;
  /// Notes whether the bound endpoint was missing: only then may the binding move.
  void note_absence(const Cycle& cycle, Decision& decision, std::uint32_t plugin) const;
  void on_routed(const RequestView& request, const Decision& decision, std::uint32_t plugin,
                 SimTime now);
  void on_endpoint_removed(EndpointRow row);
  void advance(SimTime now);
  void response_headers(const Decision& decision, const EndpointTable& endpoints,
                        std::vector<std::pair<std::string, std::string>>& headers) const;
  std::size_t bindings() const { return bindings_.size(); }

 private:
  struct Binding {
    EndpointRow row;
    SimTime last_used;
  };
  void name_headers(SignalNeeds& needs) const;
  std::string_view session_of(const RequestView& request) const;
  std::optional<EndpointRow> served_by(const Decision& decision) const;

  bool by_session_id_ = false;
  std::string header_;
  std::vector<SessionSource> sources_;
  std::int32_t profile_ = -1;  // Profile whose first target counts; -1 = the primary target.
  bool unknown_profile_ = false;
  Duration ttl_, sweep_;
  SimTime last_sweep_;
  std::map<std::string, Binding, std::less<>> bindings_;
};

class SessionAffinityScorer final : public Scorer {
 public:
  SessionAffinityScorer(const SessionAffinityParameters& p, const PluginSpec& spec,
                        BuildContext& context)
      : sessions_(p, spec, context) {}
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override;
  void on_decided(Cycle& cycle, Decision& decision) const override {
    sessions_.note_absence(cycle, decision, index());
  }
  void on_routed(const RequestView& request, const Decision& decision, const EndpointTable&,
                 SimTime now) override {
    sessions_.on_routed(request, decision, index(), now);
  }
  void on_endpoint_removed(EndpointRow row, SimTime) override {
    sessions_.on_endpoint_removed(row);
  }
  void advance(SimTime now) override { sessions_.advance(now); }
  void response_headers(const Decision& decision, const EndpointTable& endpoints,
                        std::vector<std::pair<std::string, std::string>>& h) const override {
    sessions_.response_headers(decision, endpoints, h);
  }

 private:
  SessionAffinity sessions_;
};

/// Keeps only the bound endpoint when it is present, otherwise all.
class SessionAffinityFilter final : public Filter {
 public:
  SessionAffinityFilter(const SessionAffinityParameters& p, const PluginSpec& spec,
                        BuildContext& context)
      : sessions_(p, spec, context) {}
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override {
    if (const auto row = sessions_.bound(cycle, candidates)) candidates.assign(1, *row);
  }
  void on_decided(Cycle& cycle, Decision& decision) const override {
    sessions_.note_absence(cycle, decision, index());
  }
  void on_routed(const RequestView& request, const Decision& decision, const EndpointTable&,
                 SimTime now) override {
    sessions_.on_routed(request, decision, index(), now);
  }
  void on_endpoint_removed(EndpointRow row, SimTime) override {
    sessions_.on_endpoint_removed(row);
  }
  void advance(SimTime now) override { sessions_.advance(now); }
  void response_headers(const Decision& decision, const EndpointTable& endpoints,
                        std::vector<std::pair<std::string, std::string>>& h) const override {
    sessions_.response_headers(decision, endpoints, h);
  }

 private:
  SessionAffinity sessions_;
};

}  // namespace routesim::policies
