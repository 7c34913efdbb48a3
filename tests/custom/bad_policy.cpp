// A policy that misbehaves as its option says.
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "sim/custom/routesim_policy.h"

extern "C" {

uint32_t routesim_policy_abi(void) { return ROUTESIM_POLICY_ABI; }

void* routesim_policy_create(const char* options, uint64_t, uint32_t) {
  if (std::string(options) == "crash at once") std::abort();
  return std::string(options) == "refuse" ? nullptr : new std::string(options);
}
void routesim_policy_destroy(void* policy) { delete static_cast<std::string*>(policy); }

int32_t routesim_policy_score(void* policy, const routesim_request*,
                              const routesim_servers* servers, double* scores) {
  const std::string& mode = *static_cast<std::string*>(policy);
  if (mode == "print") std::puts("{ nothing that JSON has");
  if (mode == "unwritten") return ROUTESIM_SCORED;
  if (mode == "exit") std::exit(0);
  for (uint32_t i = 0; i < servers->count + (mode == "one more" ? 1 : 0); ++i)
    scores[i] = mode == "nobody" ? -INFINITY : mode == "infinite" ? INFINITY : 0;
  if (mode == "nan") scores[1] = NAN;
  if (mode == "throw") throw std::runtime_error("oh");
  while (mode == "block") sleep(1);
  if (mode == "crash") std::abort();
  if (mode == "refuse it") return ROUTESIM_REFUSED;
  return mode == "error" ? 7 : ROUTESIM_SCORED;
}

}  // extern "C"
