// Names of endpoints in vector files as ids.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/ids.h"

namespace routesim::test {

/// Ids count from 0 in the order in which names appear.
class EndpointNames {
 public:
  EndpointId intern(const std::string& name) {
    const auto at = std::find(names_.begin(), names_.end(), name);
    if (at != names_.end()) return EndpointId(at - names_.begin());
    names_.push_back(name);
    return EndpointId(names_.size() - 1);
  }
  const std::string& name(EndpointId id) const { return names_[id.value()]; }

 private:
  std::vector<std::string> names_;
};

}  // namespace routesim::test
