// Uses routesim::policies and the vocabulary it stands on, and nothing of the simulator.
#include <cstdio>

#include "policies/views.h"
#include "sim/base/rng.h"

int main() {
  routesim::policies::EndpointTable endpoints;
  for (int i = 0; i < 4; ++i) {
    routesim::policies::EndpointInfo info;
    info.address = "10.0.0." + std::to_string(i + 1);
    endpoints.add(info);
  }
  endpoints.set_ready(routesim::EndpointId(2), false);
  routesim::RandomStream stream(1, routesim::Stream::kPicker);
  const auto candidates = endpoints.candidates();
  const routesim::policies::EndpointRow row = candidates[stream.below(candidates.size())];
  std::printf("%zu candidates, picked %s\n", candidates.size(),
              endpoints.info(row).host_port().c_str());
  return candidates.size() == 3 && row != 2 ? 0 : 1;
}
