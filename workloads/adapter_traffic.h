// The LoRA adapter of each request: load tools choose one per request, whatever the load.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "workloads/load_generator.h"

namespace routesim::workloads {

/// At most so many adapters: servers tell which they have loaded in one word of bits.
inline constexpr std::size_t kMostAdapters = 63;

/// A name under which requests are sent, and its share of them.
struct LoraSplit {
  std::string name{};
  double split = 0;  ///< 0 … 1; the shares of all names add up to 1.
};
void describe(Describer& d, LoraSplit& t);

/// Checks shares and names as inference-perf does, at `path`.
void check_lora_split(const std::vector<LoraSplit>& split, const std::string& path,
                      Diagnostics& out);

/// How requests get their adapters: by chance, or one name after the other in the order of sending
/// (`vllm bench serve --lora-assignment`).
enum class LoraAssignment { kRandom, kRoundRobin };

/// An adapter that a request may ask for.
struct AdapterShare {
  std::uint32_t adapter = 0;  ///< 0 = the base model.
  double share = 0;
};

/// How a load asks for adapters.
struct AdapterTraffic {
  std::vector<AdapterShare> shares{};  ///< Empty: every request is for the base model.
  LoraAssignment assignment = LoraAssignment::kRandom;
  bool warms_up_base = false;  ///< Stages that are not reported use the base model (`vllm bench`).
};

/// `load` with an adapter chosen for each request, which computes a prompt of its own: prefixes are
/// not shared between adapters. In turn means in turn of each stage. `traffic.shares` is not empty.
std::unique_ptr<LoadGenerator> with_adapters(std::unique_ptr<LoadGenerator> load,
                                             AdapterTraffic traffic, std::uint64_t seed);

}  // namespace routesim::workloads

template <>
struct routesim::EnumNames<routesim::workloads::LoraAssignment> {
  static constexpr std::array<std::string_view, 2> value = {"random", "round-robin"};
};
