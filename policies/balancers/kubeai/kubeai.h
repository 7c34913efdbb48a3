// KubeAI's load balancer (internal/loadbalancer): LeastLoad, PrefixHash, and how it reads requests.
// A request waits while no server serves it (group.go, getBestAddr).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/rng.h"
#include "policies/balancers/kit/balancer.h"
#include "policies/balancers/kit/ring.h"
#include "policies/index/block_keys.h"

namespace routesim::policies {

/// Settings of prefix-hash.
struct KubeAiSettings {
  std::int64_t prefix_char_length = 100;  ///< Code points of the prompt.
  std::int64_t mean_load_factor = 125;    ///< Percent (KubeAI meanLoadFactor).
  std::int64_t hash_replication = 256;
};
inline void describe(Describer& d, KubeAiSettings& s) {
  field(d, {"prefix_char_length", "prefix-hash: characters of the prompt that are hashed."},
        s.prefix_char_length, IntRange{0, 1'000'000});
  field(d, {"mean_load_factor", "prefix-hash: percent of the mean load an endpoint may reach."},
        s.mean_load_factor, IntRange{100, 100'000});
  field(d, {"hash_replication", "prefix-hash: ring points per endpoint."}, s.hash_replication,
        IntRange{1, 100'000});
}

/// The first `code_points` Unicode code points of `text` (invalid bytes count one each).
inline std::string_view first_code_points(std::string_view text, std::size_t code_points) {
  std::size_t at = 0;
  for (; code_points > 0 && at < text.size(); --code_points) {
    const auto lead = static_cast<unsigned char>(text[at]);
    std::size_t length = lead < 0x80   ? 1
                         : lead < 0xc2 ? 0
                         : lead < 0xe0 ? 2
                         : lead < 0xf0 ? 3
                         : lead < 0xf5 ? 4
                                       : 0;
    for (std::size_t k = 1; k < length; ++k)
      if (at + k >= text.size() || (static_cast<unsigned char>(text[at + k]) & 0xc0) != 0x80)
        length = 0;
    at += std::max<std::size_t>(length, 1);
  }
  return text.substr(0, at);
}

struct ChatMessage {
  std::string_view role;
  std::string_view content;  ///< Array content: its text parts, concatenated.
};
/// The text the prefix is taken from: the first user message's content, "" without one.
inline std::string_view prefix_source(std::span<const ChatMessage> messages) {
  for (const ChatMessage& m : messages)
    if (m.role == "user") return m.content;
  return {};
}

/// "model_adapter" split at the first "_"; no adapter without one.
struct ModelAndAdapter {
  std::string_view model;
  std::string_view adapter;
};
inline ModelAndAdapter split_model_adapter(std::string_view model_field) {
  const std::size_t at = model_field.find('_');
  if (at == std::string_view::npos) return {.model = model_field, .adapter = {}};
  return {.model = model_field.substr(0, at), .adapter = model_field.substr(at + 1)};
}

/// KubeAI's bounded-load test: total = 0, or load <= (total + 1) / n * factor.
inline bool chwbl_load_ok(std::uint64_t load, std::uint64_t total, std::size_t n, double factor) {
  if (total == 0) return true;
  const double mean = static_cast<double>(total + 1) / static_cast<double>(n);
  return static_cast<double>(load) <= mean * factor;
}

/// A consistent-hash ring: replication points XXH64(name + decimal(i)) per endpoint. Of two points
/// with one hash the map upstream keeps the last writer.
class HashRing : public Ring<> {
 public:
  HashRing() = default;
  HashRing(std::span<const BalancerEndpoint> endpoints, std::uint32_t replication) {
    for (std::uint32_t e = 0; e < endpoints.size(); ++e)
      for (std::uint32_t i = 0; i < replication; ++i)
        add(xxh64(endpoints[e].name + std::to_string(i)), e);
    close(true);
  }
};

/// Fewest requests in flight. Upstream breaks ties by iterating a hash map, which is arbitrary;
/// here ties are uniform.
class LeastLoad final : public Balancer {
 public:
  explicit LeastLoad(RandomStream random) : random_(random) {}
  BalancerAnswer pick(const BalancerRequest& request) override {
    const auto load = in_flight();
    const bool all = request.adapter.empty() && !restricted();
    std::uint32_t least = UINT32_MAX;
    std::uint32_t ties = 0;
    if (all) {  // Two plain passes, which compilers turn into vector code.
      for (const std::uint32_t l : load) least = std::min(least, l);
      for (const std::uint32_t l : load) ties += l == least ? 1 : 0;
    } else {
      for (std::uint32_t i = 0; i < load.size(); ++i) {
        if (!serves(i, request.adapter)) continue;
        ties = load[i] < least ? 1 : ties + (load[i] == least ? 1 : 0);
        least = std::min(least, load[i]);
      }
    }
    if (ties == 0) return BalancerAnswer::held();
    std::uint64_t chosen = ties == 1 ? 0 : random_.below(ties);
    for (std::uint32_t i = 0; i < load.size(); ++i) {
      if (load[i] != least || (!all && !serves(i, request.adapter))) continue;
      if (chosen-- == 0) return pick_of(i);
    }
    return std::nullopt;
  }

 private:
  RandomStream random_;
};

/// Consistent hashing with bounded loads.
class PrefixHash final : public Balancer {
 public:
  explicit PrefixHash(const KubeAiSettings& o)
      : replication_(static_cast<std::uint32_t>(o.hash_replication)),
        prefix_chars_(static_cast<std::uint32_t>(o.prefix_char_length)),
        factor_(static_cast<double>(o.mean_load_factor) / 100.0) {}

  void set_endpoints(std::span<const BalancerEndpoint> endpoints) override {
    Balancer::set_endpoints(endpoints);
    ring_ = HashRing(endpoints, replication_);
  }

  BalancerAnswer pick(const BalancerRequest& request) override {
    if (ring_.size() == 0) return BalancerAnswer::held();
    key_.assign(request.adapter);
    key_ += first_code_points(request.prefix, prefix_chars_);
    std::size_t at = ring_.locate(xxh64(key_));
    std::optional<std::uint32_t> fallback;  // The first suitable endpoint, whatever its load.
    for (std::size_t step = 0; step < ring_.size(); ++step) {
      // A long walk means few endpoints qualify: make sure that at least one does.
      if (step == kPatience && !anyone_accepts(request.adapter, fallback.has_value())) break;
      const std::uint32_t i = ring_.owner(at);
      if (serves(i, request.adapter)) {
        if (!fallback) fallback = i;
        if (accepts(i)) return pick_of(i);
      }
      if (++at == ring_.size()) at = 0;
    }
    if (!fallback) return BalancerAnswer::held();
    return pick_of(*fallback);
  }

 private:
  static constexpr std::size_t kPatience = 64;

  bool accepts(std::uint32_t i) const {
    return chwbl_load_ok(in_flight()[i], total_in_flight(), size(), factor_);
  }
  // Whether someone would accept, or (while there is no fallback yet) is at least suitable.
  bool anyone_accepts(std::string_view adapter, bool have_fallback) const {
    for (std::uint32_t i = 0; i < size(); ++i)
      if (serves(i, adapter) && (!have_fallback || accepts(i))) return true;
    return false;
  }

  std::uint32_t replication_;
  std::uint32_t prefix_chars_;
  double factor_;
  HashRing ring_;
  std::string key_;
};

}  // namespace routesim::policies
