// The facts that a product family tells the registry of balancers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace routesim::policies {

/// The role a balancer can play beside plain balancing.
enum class Disaggregation : std::uint8_t {
  kNo,        ///< Sends every request to one server.
  kPossible,  ///< Chooses a prefill server, too, where there are some.
  kRequired,  ///< Serves nothing without prefill servers.
};

/// A value that a balancer cannot be made with.
struct SettingFault {
  std::string key;  ///< `smg.release`.
  std::string message;
  std::string hint;
};

/// A product whose policies share settings. A family is a struct of such facts, its `Settings`, its
/// `releases`, its `policies`, which are an array of PolicyRow, and `make(policy, settings,
/// random)`. One with rules across its settings has `add_faults(settings, balancer, faults)`, too.
struct FamilyFacts {
  std::string_view section;  ///< Of its settings in `routing`.
  std::string_view settings;
  std::string_view product;
  std::string_view release;  ///< The release or commit whose source was read.
  Disaggregation disaggregation = Disaggregation::kNo;
};

/// One balancer of a family.
template <class Policy>
struct PolicyRow {
  Policy policy;
  std::string_view name;                 ///< In scenarios.
  std::string_view inputs;               ///< The information it decides on.
  std::string_view approximations = "";  ///< How it differs from the product, "" if it does not.
  std::string_view since = "";           ///< The first release that has it, "" = the first one.
  bool needs_prefill = false;            ///< It serves nothing without prefill servers.
};

}  // namespace routesim::policies
