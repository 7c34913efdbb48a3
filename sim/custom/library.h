// balancer: library. A shared object behind the C interface of routesim_policy.h decides.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/describe.h"
#include "base/rng.h"
#include "base/units.h"
#include "policies/balancers/balancer.h"

namespace routesim::sim {

/// Settings of balancer `library`.
struct LibrarySettings {
  std::string path;     ///< Required: the shared object, relative to the file that names it.
  std::string options;  ///< Handed to the policy as it is.
  Duration call_timeout = Duration::seconds(10);  ///< Wall time, not simulated time.
};
void describe(Describer& d, LibrarySettings& s);

/// A fault of one key of the settings.
struct LibraryFault {
  std::string key;
  std::string message;
};
/// The reason why no policy can be made; nothing where one can. Loads the library and makes one.
std::optional<LibraryFault> library_fault(const LibrarySettings& settings);

/// The library has no fault. A call that fails throws RunError with the request. A call that
/// crashes or does not return ends the process with a message that names the request.
std::unique_ptr<policies::Balancer> make_library(const LibrarySettings& settings,
                                                 std::uint64_t seed, std::uint64_t router);

}  // namespace routesim::sim
