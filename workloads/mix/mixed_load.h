// Several loads in one run: they begin together and run side by side against the same servers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/load_generator.h"

namespace routesim::workloads {

/// Ids of requests have 32 bits. With so many loads each has room for 268 million requests.
inline constexpr std::size_t kMostMixed = 16;

/// A load of a mix.
struct MixedPart {
  std::string name{};         ///< Its stages are called NAME/STAGE.
  std::int32_t priority = 0;  ///< Of its requests: vLLM's request field.
  std::unique_ptr<LoadGenerator> load{};
};

/// The seed of a load that is called `name`: it does not depend on the other loads of the mix.
std::uint64_t seed_of_part(std::uint64_t seed, std::string_view name);

/// `parts` side by side, from one to kMostMixed. A request's traffic class is the index of its
/// part. The ids of its request, its prompt and its session depend on that index and on its own
/// load alone, so that another part behind it changes nothing.
std::unique_ptr<LoadGenerator> mix_loads(std::vector<MixedPart> parts);

}  // namespace routesim::workloads
