// The policies of smg.h, one leg each. For smg.cpp and the sources beside it.
#pragma once

#include <memory>

#include "policies/balancers/legs.h"
#include "policies/balancers/smg.h"

namespace routesim::policies {

std::shared_ptr<LegPolicy> make_smg_cache_aware(const SmgSettings& s, const RandomStream& random);
std::shared_ptr<LegPolicy> make_smg_manual(const SmgSettings& s, const RandomStream& random);
std::shared_ptr<LegPolicy> make_smg_bucket(const SmgSettings& s, const RandomStream& random);

}  // namespace routesim::policies
