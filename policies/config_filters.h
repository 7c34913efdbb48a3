// The parameters of filters, profile handlers, deciders, detectors and flow-control policies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/describe.h"

namespace routesim::policies {

struct ByLabelParameters {
  std::string label;
  std::vector<std::string> valid_values;
  bool allows_no_label = false;
};
inline void describe(Describer& d, ByLabelParameters& p) {
  field(d, {"label", "Label to look at.", true}, p.label);
  field(d, {"validValues", "Values that pass."}, p.valid_values);
  field(d, {"allowsNoLabel", "Endpoints without the label pass too."}, p.allows_no_label);
}

struct PdProfileParameters {
  std::string decode_profile = "decode", prefill_profile = "prefill";
  std::int64_t primary_port = 0;
  std::optional<std::string> decider;
  std::string prefix_producer, prefix_plugin_name, prefix_plugin_type;
  double threshold = 0;
  std::int64_t hash_block_size = 64;
};
inline void describe(Describer& d, PdProfileParameters& p) {
  field(d, {"decodeProfile", "Profile that picks the decode endpoint."}, p.decode_profile);
  field(d, {"prefillProfile", "Profile that picks the prefill endpoint."}, p.prefill_profile);
  field(d, {"primaryPort", "Port of the data-parallel side-car; 0 = none."}, p.primary_port,
        IntRange{0, 65535});
  field(d, {"deciderPluginName", "Decider instance (v0.6.0 and later)."}, p.decider);
  field(d, {"prefixMatchInfoProducerName", "Accepted; deciders read the default producer."},
        p.prefix_producer);
  field(d, {"prefixPluginName", "Prefix plugin of the threshold (up to v0.5.0)."},
        p.prefix_plugin_name);
  field(d, {"prefixPluginType", "Its type (default prefix-cache-scorer)."}, p.prefix_plugin_type);
  field(d, {"threshold", "Uncached bytes from which prefill is separate; 0 = always."},
        p.threshold, RealRange{0});
  field(d, {"hashBlockSize", "Bytes per matched block for the threshold."}, p.hash_block_size,
        IntRange{1});
}

struct DataParallelParameters {
  std::int64_t primary_port = 8000;
};
inline void describe(Describer& d, DataParallelParameters& p) {
  field(d, {"primaryPort", "Port of the side-car that forwards to the rank."}, p.primary_port,
        IntRange{0, 65535});
}

struct PrefixDeciderParameters {
  std::int64_t non_cached_tokens = 0, prompt_tokens = 0;
};
inline void describe(Describer& d, PrefixDeciderParameters& p) {
  field(d, {"nonCachedTokens", "Uncached tokens from which a prefill endpoint is used; 0 = never "
                               "(v0.6.0: always)."},
        p.non_cached_tokens, IntRange{0});
  field(d, {"promptTokens", "Prompts shorter than this are never disaggregated."},
        p.prompt_tokens, IntRange{0});
}

struct DisaggProfiles {
  std::optional<std::string> decode, prefill, encode;
};
inline void describe(Describer& d, DisaggProfiles& p) {
  field(d, {"decode", "Profile of the decode stage (default decode)."}, p.decode);
  field(d, {"prefill", "Profile of the prefill stage (default prefill)."}, p.prefill);
  field(d, {"encode", "Profile of the encode stage (default encode)."}, p.encode);
}

struct DisaggDeciders {
  std::optional<std::string> prefill, encode;
};
inline void describe(Describer& d, DisaggDeciders& p) {
  field(d, {"prefill", "Decider instance of the prefill stage; none = skipped."}, p.prefill);
  field(d, {"encode", "Decider instance of the encode stage; none = skipped."}, p.encode);
}

struct DisaggProfileParameters {
  std::string stage_order = "decode-first";
  std::optional<DisaggProfiles> profiles;
  std::optional<DisaggDeciders> deciders;
  std::optional<std::string> decode_profile, prefill_profile, encode_profile;
  std::optional<std::string> prefill_decider, encode_decider;
};
inline void describe(Describer& d, DisaggProfileParameters& p) {
  field(d, {"stageOrder", "decode-first or prefill-first."}, p.stage_order);
  field(d, {"profiles", "Names of the stages' profiles."}, p.profiles);
  field(d, {"deciders", "Deciders of the optional stages."}, p.deciders);
  field(d, {"decodeProfile", "Older name of profiles.decode."}, p.decode_profile);
  field(d, {"prefillProfile", "Older name of profiles.prefill."}, p.prefill_profile);
  field(d, {"encodeProfile", "Older name of profiles.encode."}, p.encode_profile);
  field(d, {"pdDeciderPluginName", "Older name of deciders.prefill."}, p.prefill_decider);
  field(d, {"encodeDeciderPluginName", "Older name of deciders.encode."}, p.encode_decider);
}

struct HeaderProfileParameters {
  std::string header_name = "EPP-Profile", default_profile = "decode";
};
inline void describe(Describer& d, HeaderProfileParameters& p) {
  field(d, {"headerName", "Request header that names the profile to run."}, p.header_name);
  field(d, {"defaultProfile", "Profile without that header."}, p.default_profile);
}

}  // namespace routesim::policies
