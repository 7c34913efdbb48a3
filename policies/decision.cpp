#include "policies/decision.h"

namespace routesim::policies {

void Decision::clear() {
  outcome = Outcome::kNoEndpoints;
  http_status = 503;
  reason = "";
  primary = prefill = EndpointId();
  targets.clear();
  encode_targets.clear();
  primary_profile = prefill_profile = destination_port = -1;
  for (ProfileResult& r : profiles) {
    r.state = ProfileState::kNotRun;
    r.targets.clear();
  }
  headers.clear();
  notes.clear();
}

std::int64_t Decision::note(std::uint32_t plugin, std::uint32_t key, std::int64_t fallback) const {
  for (const Note& n : notes)
    if (n.plugin == plugin && n.key == key) return n.value;
  return fallback;
}

void Decision::set_note(std::uint32_t plugin, std::uint32_t key, std::int64_t value) {
  for (Note& n : notes) {
    if (n.plugin == plugin && n.key == key) {
      n.value = value;
      return;
    }
  }
  notes.push_back({plugin, key, value});
}

}  // namespace routesim::policies
