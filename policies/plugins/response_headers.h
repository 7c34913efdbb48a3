// response-header-handler of Heimdall generation 1: tells the client who served it.
#pragma once

#include "policies/build_context.h"

namespace routesim::policies {

class ResponseHeaderHandler final : public Plugin {
 public:
  void response_headers(const Decision& decision, const EndpointTable& endpoints,
                        std::vector<std::pair<std::string, std::string>>& headers) const override {
    if (decision.primary.valid())
      headers.emplace_back("x-decoder-host-port",
                           endpoints.info(decision.primary.value()).host_port());
    if (decision.prefill.valid())
      headers.emplace_back("x-prefiller-host-port",
                           endpoints.info(decision.prefill.value()).host_port());
  }
};

}  // namespace routesim::policies
