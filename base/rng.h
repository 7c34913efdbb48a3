// Random numbers keyed by (seed, stream, entity): drawing more or fewer numbers in one place can
// never change another place, so two policies always face the same workload (design law 6).
#pragma once

#include <array>
#include <cstdint>

namespace routesim {

/// The purpose of a draw. The numbers are part of the results: never renumber, only append.
enum class Stream : std::uint32_t {
  kArrivals = 1,         ///< Inter-arrival gaps of a load stage.
  kPromptOrder = 2,      ///< Shuffle of a prompt pool.
  kLengths = 3,          ///< Prompt, question and answer lengths.
  kTokens = 4,           ///< Token ids of a prompt's text.
  kPicker = 5,           ///< Tie-breaking and random picks of a router.
  kCandidateOrder = 6,   ///< Order of a hash map that upstream iterates: arbitrary.
  kBalancer = 7,         ///< Non-EPP balancers (random, kube-proxy).
  kExploration = 8,      ///< Exploring filters.
  kNetwork = 9,          ///< Delays and losses of messages.
  kTest = 10,            ///< Tests and swarm scenarios.
  kConversations = 11,   ///< Synthetic conversations.
  kAdapters = 12,        ///< LoRA adapters of requests.
  kGateway = 13,         ///< Back-off of retries.
  kTrafficClasses = 14,  ///< Traffic classes of requests.
  kSpeculation = 15,     ///< Drafts that the target accepts.
  kFleet = 16,           ///< Failures of servers.
  kRouterRetry = 17,     ///< Back-off of a router's own retries.
};

/// Philox4x32-10 keyed by the seed, with (stream, entity) in the counter. 2^66 bytes per stream.
/// Copying a stream copies its position. Distributions are our own so that gcc and clang, and any
/// standard library, give the same numbers (design law 7).
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, Stream stream, std::uint64_t entity = 0);

  /// 64 uniform bits.
  std::uint64_t next();
  /// Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// Uniform in (0, 1): safe as an argument of log.
  double uniform_open() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1.0p-53; }
  /// Unbiased integer in [0, bound); bound must be at least 1.
  std::uint64_t below(std::uint64_t bound);
  /// Exponential with the given mean (> 0).
  double exponential(double mean);
  /// Standard normal (Box-Muller; two uniforms per draw, nothing cached).
  double normal();
  /// Poisson count with the given mean in [0, 1e7]; inversion below 30, PTRS above.
  std::int64_t poisson(double mean);
  /// Gamma with shape > 0 and scale > 0 (Marsaglia-Tsang).
  double gamma(double shape, double scale);

  /// Fisher-Yates, uniform over permutations.
  template <class RandomIt>
  void shuffle(RandomIt first, RandomIt last) {
    for (auto n = static_cast<std::uint64_t>(last - first); n > 1; --n) {
      const std::uint64_t j = below(n);
      using std::swap;
      swap(first[static_cast<std::ptrdiff_t>(n - 1)], first[static_cast<std::ptrdiff_t>(j)]);
    }
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
};

/// A fixed 64-bit mixer (SplitMix64 finaliser) for derived ids and fingerprints.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Order-dependent combination of two 64-bit values.
constexpr std::uint64_t mix64(std::uint64_t a, std::uint64_t b) {
  return mix64(a ^ mix64(b + 0x632be59bd9b4e019ULL));
}

}  // namespace routesim
