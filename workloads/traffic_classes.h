// Traffic classes: which share of the requests of a load is whose, and how urgent it is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "workloads/load_generator.h"

namespace routesim::workloads {

/// One class of requests, for any load tool.
struct TrafficClass {
  std::string name;
  double share = 1;            ///< 0 … 1; the shares of all classes add up to 1.
  std::int64_t objective = 0;  ///< Priority of the InferenceObjective that its requests name.
  std::int64_t priority = 0;   ///< vLLM's request field `priority`: the smallest goes first.
  std::string user;            ///< The request's `user`, for routers that tell users apart.
  Document headers;            ///< HTTP headers of its requests: a map of names to texts.
};
void describe(Describer& d, TrafficClass& t);
/// The keys of a class that say how its requests are treated: all but name and share.
void describe_treatment(Describer& d, TrafficClass& t);

/// Names and values of a map of headers, in the order of the file; entries that are no text are
/// left out.
std::vector<std::pair<std::string, std::string>> headers_of(const Document& headers);

/// Checks names and headers at `path`.
void check_class_names(const std::vector<TrafficClass>& classes, const std::string& path,
                       Diagnostics& out);
/// Checks names, shares and headers at `path`.
void check_traffic_classes(const std::vector<TrafficClass>& classes, const std::string& path,
                           Diagnostics& out);

/// `load` with a class chosen for each session, or for each request without one. The choice is
/// keyed by the seed and the session's or the request's id. `classes` is not empty.
std::unique_ptr<LoadGenerator> with_traffic_classes(std::unique_ptr<LoadGenerator> load,
                                                    const std::vector<TrafficClass>& classes,
                                                    std::uint64_t seed);

}  // namespace routesim::workloads
