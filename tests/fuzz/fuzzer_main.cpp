// The entry point libFuzzer calls, for the target that the build names.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  routesim::fuzz::ROUTESIM_FUZZ_TARGET({data, size});
  return 0;
}
