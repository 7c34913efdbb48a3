// What is fuzzed. A target takes any bytes and must neither crash, hang nor break a promise; a
// broken promise is a ROUTESIM_CHECK, which throws.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/diagnostic.h"

namespace routesim::fuzz {

using Bytes = std::span<const std::uint8_t>;

void config(Bytes input);    ///< YAML and JSON text; what was read is written and read again.
void scenario(Bytes input);  ///< `routesim check` of a scenario file.
void endpoint_picker(Bytes input);  ///< An EndpointPickerConfig, and one decision under it.
void inference_perf(Bytes input);   ///< `routesim check` of a scenario with this load.
void json(Bytes input);             ///< The scanner of big JSON files, ShareGPT and prompts.
void measured(Bytes input);         ///< Published numbers.
void trace(Bytes input);            ///< A trace, read as every format.
void sessions(Bytes input);         ///< Recorded sessions of both formats, replayed for a while.
void kv_events(Bytes input);        ///< KV event messages: decoded, encoded, decoded, indexed.
void vllm_serve(Bytes input);       ///< A command line of `vllm serve`, and a file that holds one.
void autoscaler(Bytes input);       ///< A manifest of autoscalers, each at work for a while.
void score(Bytes input);   ///< The endpoints, the request and the events of `routesim score`.
void engine(Bytes input);  ///< A small random scenario run to its end, invariants checked, twice.

/// What targets share: the input as text; and that every diagnostic can be printed, saying
/// something.
std::string text_of(Bytes input);
void print_all(const Diagnostics& diagnostics);

struct Target {
  std::string_view name;
  void (*run)(Bytes input);
};
inline constexpr std::array<Target, 13> kTargets = {{{"config", &config},
                                                     {"scenario", &scenario},
                                                     {"endpoint_picker", &endpoint_picker},
                                                     {"inference_perf", &inference_perf},
                                                     {"json", &json},
                                                     {"measured", &measured},
                                                     {"trace", &trace},
                                                     {"sessions", &sessions},
                                                     {"kv_events", &kv_events},
                                                     {"vllm_serve", &vllm_serve},
                                                     {"autoscaler", &autoscaler},
                                                     {"score", &score},
                                                     {"engine", &engine}}};

}  // namespace routesim::fuzz
