// A routing policy in C++: the server with the least work, where work is the prompt tokens it still
// has to compute for this request and for those in flight.
//
//   c++ -std=c++17 -O2 -fPIC -shared -I. least_tokens.cpp -o least_tokens.so
#include <string>

#include <routesim_policy.h>

namespace {

struct Policy {
  double load_weight;  // Of the tokens in flight, against those of this prompt.
};

}  // namespace

extern "C" {

uint32_t routesim_policy_abi(void) { return ROUTESIM_POLICY_ABI; }
uint32_t routesim_policy_inputs(void) { return ROUTESIM_INPUT_PREFIX; }

void* routesim_policy_create(const char* options, uint64_t, uint32_t) {
  const std::string text(options);
  try {
    return new Policy{text.empty() ? 0.1 : std::stod(text)};
  } catch (...) {
    return nullptr;
  }
}
void routesim_policy_destroy(void* policy) { delete static_cast<Policy*>(policy); }

int32_t routesim_policy_score(void* policy, const routesim_request* request,
                              const routesim_servers* servers, double* scores) {
  const double weight = static_cast<Policy*>(policy)->load_weight;
  for (uint32_t i = 0; i < servers->count; ++i) {
    const double to_compute =
        static_cast<double>(request->prompt_tokens) - servers->prefix_tokens[i];
    scores[i] = -(to_compute + weight * servers->in_flight_tokens[i]);
  }
  return ROUTESIM_SCORED;
}

}  // extern "C"
