// Watches a run from outside. Observers never change anything.
#pragma once

#include "sim/base/units.h"
#include "sim/run_result.h"
#include "workloads/request.h"

namespace routesim::sim {

class Replica;

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_sent(const workloads::Request&, SimTime) {}
  virtual void on_routed(const workloads::Request&, EndpointId, SimTime) {}
  virtual void on_first_token(const workloads::Request&, SimTime) {}
  virtual void on_done(const RequestRecord&) {}
  /// After a replica processed what was due at `now`.
  virtual void on_replica_advanced(const Replica&, SimTime) {}
  virtual void on_end(SimTime) {}
};

}  // namespace routesim::sim
