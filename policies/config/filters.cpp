// The registry of filters, saturation detectors, admitters and the policies of flow control: one
// row each.
#include "policies/plugins/filters.h"

#include "policies/config/factory.h"
#include "policies/flow/flow_policies.h"
#include "policies/plugins/detectors.h"
#include "policies/plugins/label_selector.h"
#include "policies/plugins/load_filters.h"
#include "policies/plugins/session_affinity.h"

namespace routesim::policies {
namespace {

constexpr PluginRow label_selector(std::string_view type) {
  return {.type = type,
          .note = "Keeps endpoints that a Kubernetes label selector matches.",
          .roles = kFilterRole,
          .create = [](const PluginSpec& spec, BuildContext& context) -> std::unique_ptr<Plugin> {
            std::optional<LabelSelector> selector = LabelSelector::parse(spec, context);
            if (!selector) return nullptr;
            return make_plugin<LabelSelectorFilter>(std::move(*selector));
          },
          .describe_parameters = describe_parameters<LabelSelectorKeys>};
}

constexpr PluginRow prefix_cache_affinity_filter() {
  PluginRow row = implemented<PrefixCacheAffinityFilter, PrefixAffinityParameters>(
      "prefix-cache-affinity-filter", "Endpoints that hold most of the prompt.");
  row.describe_applied = [](Describer& d, const PluginSpec& spec, Era era) {
    Diagnostics reported_elsewhere;
    describe_applied(
        d, read_parameters<PrefixAffinityParameters>(spec, Severity::kWarning, reported_elsewhere),
        era);
  };
  return row;
}

constexpr PluginRow kFilters[] = {
    implemented<RoleFilter<ServingRole::kDecode>>(
        "decode-filter", "Keeps endpoints whose role label serves decode."),
    implemented<RoleFilter<ServingRole::kPrefill>>(
        "prefill-filter", "Keeps endpoints whose role label serves prefill."),
    implemented<RoleFilter<ServingRole::kEncode>>(
        "encode-filter", "Keeps endpoints whose role label serves encode."),
    implemented<ByLabelFilter, ByLabelParameters>("by-label",
                                                  "Keeps endpoints by one label's value."),
    label_selector("label-selector-filter"),
    label_selector("by-label-selector"),
    implemented<SessionAffinityFilter, SessionAffinityParameters>(
        "session-affinity-filter", "Only the endpoint the session is bound to, if it is there."),
    implemented<SessionAffinityFilter, SessionAffinityParameters>(
        "multicluster-session-affinity-filter",
        "Only the endpoint the session is bound to, if it is there."),
    implemented<EndpointAttributeFilter, AttributeFilterParameters>(
        "endpoint-attribute-filter", "A numeric attribute against a threshold."),
    implemented<TopologyAffinityFilter, TopologyParameters>(
        "topology-affinity-filter", "Endpoints near the other stage's pick."),
    implemented<UtilizationFilter, UtilizationFilterParameters>("utilization-filter",
                                                                "Endpoints below maxima of load."),
    prefix_cache_affinity_filter(),
    implemented<SloHeadroomTierFilter, SloTierParameters>("slo-headroom-tier-filter",
                                                          "Endpoints predicted to meet the SLOs."),
    implemented<HeaderTestingFilter>("header-based-testing-filter",
                                     "Addresses listed in a header (tests)."),
};

constexpr PluginRow kAdmission[] = {
    implemented<UtilizationDetector, UtilizationDetectorParameters>(
        "utilization-detector", "Saturation by queue and KV usage."),
    implemented<ConcurrencyDetector, ConcurrencyDetectorParameters>(
        "concurrency-detector", "Saturation by requests in flight."),
    implemented<ProbabilisticAdmitter, ProbabilisticAdmitterParameters>(
        "probabilistic-admitter", "Sheds sheddable requests at random."),
    implemented<LatencySloAdmitter>("latency-slo-admitter",
                                    "Sheds sheddable requests that would be late."),
    implemented<GlobalStrictFairness>("global-strict-fairness-policy",
                                      "The best head over all flows."),
    implemented<RoundRobinFairness>("round-robin-fairness-policy", "Flows take turns."),
    implemented<ProgramAwareFairness, ProgramAwareParameters>("program-aware-fairness",
                                                              "Least attained service first."),
    implemented<FcfsOrdering>("fcfs-ordering-policy", "First come, first served."),
    implemented<EdfOrdering>("edf-ordering-policy", "Earliest expiry first."),
    implemented<SloDeadlineOrdering>("slo-deadline-ordering-policy",
                                     "Earliest TTFT objective first."),
    implemented<StaticUsageLimit, StaticLimitParameters>("static-usage-limit-policy",
                                                         "One ceiling for every band."),
    implemented<PriorityHoldback, HoldbackParameters>("priority-holdback-policy",
                                                      "Lower bands stop earlier."),
    implemented<SoftReflectiveCeiling>("soft-reflective-ceiling-policy",
                                       "Lower bands pass less often."),
};

}  // namespace

std::span<const PluginRow> filter_rows() { return kFilters; }
std::span<const PluginRow> admission_rows() { return kAdmission; }

}  // namespace routesim::policies
