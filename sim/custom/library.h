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

/// Whether this process may load shared objects that scenarios name, and so run their code.
enum class ForeignCode {
  kRefused,    ///< It is a fault of the scenario: nobody said yes.
  kNotLoaded,  ///< The scenario is only checked, and nothing is loaded.
  kAllowed,    ///< The user said yes on the command line.
};
/// Loading is about the whole process, so the choice is, too. Set before scenarios are read.
void set_foreign_code(ForeignCode choice);
ForeignCode foreign_code();

/// A fault of one key of the settings.
struct LibraryFault {
  std::string key;
  std::string message;
  std::string hint;
};
/// The reason why no policy can be made; nothing where one can, and where nothing may be loaded.
/// If it is allowed, this loads the library and makes one.
std::optional<LibraryFault> library_fault(const LibrarySettings& settings);

/// The library has no fault. A call that fails throws RunError with the request. A call that
/// crashes, does not return or ends the process ends it with code 3 and a message that names the
/// request.
std::unique_ptr<policies::Balancer> make_library(const LibrarySettings& settings,
                                                 std::uint64_t seed, std::uint64_t router);

}  // namespace routesim::sim
