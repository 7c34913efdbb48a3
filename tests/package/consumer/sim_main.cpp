// Uses routesim::sim, which brings policies, models and workloads with it.
#include <cstdio>

#include "models/specs.h"
#include "policies/views.h"
#include "sim/plan/scenario.h"

int main() {
  const routesim::sim::PoolConfig pool;
  routesim::policies::EndpointTable endpoints;
  endpoints.add({});
  std::printf("pool %s, %zu candidate\n", pool.name.c_str(), endpoints.candidates().size());
  return pool.replicas == 1 && endpoints.candidates().size() == 1 ? 0 : 1;
}
