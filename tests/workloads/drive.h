// Plays a load against a server with a given latency, as the simulation would.
#pragma once

#include <functional>
#include <queue>
#include <vector>

#include "workloads/load_generator.h"

namespace routesim::workloads::testing {

struct Sent {
  Request request;
  SimTime sent;
  SimTime done;
  Outcome outcome = Outcome::kSuccess;
};

using Latency = std::function<Duration(const Request&)>;

/// Runs to the end (or to `limit` requests). Requests that outlive their timeout end as kTimeout.
/// Completions come before sends of the same instant, like in the event loop.
inline std::vector<Sent> drive(LoadGenerator& load, const Latency& latency,
                               std::size_t limit = 100'000'000) {
  struct Done {
    SimTime at;
    std::size_t index;
    bool operator>(const Done& o) const { return at != o.at ? at > o.at : index > o.index; }
  };
  std::vector<Sent> all;
  std::priority_queue<Done, std::vector<Done>, std::greater<>> done;
  std::vector<Request> batch;
  while (all.size() < limit) {
    const SimTime next_send = load.next_action();
    if (!done.empty() && done.top().at <= next_send) {
      const Done d = done.top();
      done.pop();
      load.on_completed(all[d.index].request, all[d.index].outcome, d.at);
      continue;
    }
    if (next_send == SimTime::max()) break;
    batch.clear();
    load.advance(next_send, batch);
    for (Request& request : batch) {
      Sent s;
      const Duration wanted = latency(request);
      s.outcome = wanted > request.timeout ? Outcome::kTimeout : Outcome::kSuccess;
      s.sent = next_send;
      s.done = next_send + (wanted > request.timeout ? request.timeout : wanted);
      s.request = std::move(request);
      done.push({s.done, all.size()});
      all.push_back(std::move(s));
    }
  }
  return all;
}

/// Seconds since the start of the load.
inline double seconds(SimTime t) { return (t - SimTime::zero()).to_seconds(); }

inline Latency fixed_latency(Duration d) {
  return [d](const Request&) { return d; };
}

}  // namespace routesim::workloads::testing
