// Choices that products make alike, down to their random draws.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace routesim::policies {

/// Which of equals a product takes.
enum class Ties : std::uint8_t {
  kFirst,
  kLast,
  kDrawn,     ///< Each is as likely: a draw for every equal after the first one.
  kAllDrawn,  ///< The same, and a draw for the first one, too, which decides nothing.
};

/// The least of values that are offered one by one.
template <class Value, class Candidate = std::uint32_t>
class Least {
 public:
  Least(Ties ties, RandomStream& random) : ties_(ties), random_(&random) {}
  void offer(Candidate candidate, const Value& value) {
    if (equals_ > 0 && least_ < value) return;
    equals_ = equals_ > 0 && !(value < least_) ? equals_ + 1 : 1;
    least_ = value;
    const bool draws = ties_ == Ties::kAllDrawn || (ties_ == Ties::kDrawn && equals_ > 1);
    if (draws ? random_->below(equals_) == 0 : equals_ == 1 || ties_ == Ties::kLast)
      best_ = candidate;
  }
  /// Nothing where nothing was offered.
  std::optional<Candidate> best() const {
    return equals_ > 0 ? std::optional(best_) : std::nullopt;
  }
  const Value& value() const { return least_; }

 private:
  Ties ties_;
  RandomStream* random_;
  Candidate best_{};
  Value least_{};
  std::uint64_t equals_ = 0;
};

/// All of `among` with the least value, in their order.
template <class F>
std::vector<std::uint32_t> all_least(std::span<const std::uint32_t> among, F value_of) {
  std::vector<std::uint32_t> equals;
  std::invoke_result_t<F, std::uint32_t> least{};
  for (const std::uint32_t i : among) {
    const auto own = value_of(i);
    if (!equals.empty() && own > least) continue;
    if (!equals.empty() && own < least) equals.clear();
    least = own;
    equals.push_back(i);
  }
  return equals;
}

/// The least and the most of the values of `among`, which is not empty.
template <class F>
auto least_and_most(std::span<const std::uint32_t> among, F value_of) {
  const auto first = value_of(among.front());
  std::pair ends(first, first);
  for (const std::uint32_t i : among.subspan(1)) {
    const auto own = value_of(i);
    if (own < ends.first) ends.first = own;
    if (own > ends.second) ends.second = own;
  }
  return ends;
}

/// How a product draws two different ones.
enum class TwoDraws : std::uint8_t {
  kDistance,  ///< The first, and how far the second is behind it.
  kAgain,     ///< The second until it is another one.
  kOthers,    ///< The second of the others.
};
/// Two different numbers below n, which is at least 2.
inline std::pair<std::uint64_t, std::uint64_t> draw_two(std::uint64_t n, TwoDraws how,
                                                        RandomStream& random) {
  const std::uint64_t first = random.below(n);
  if (how == TwoDraws::kDistance) return {first, (first + 1 + random.below(n - 1)) % n};
  std::uint64_t second = random.below(how == TwoDraws::kAgain ? n : n - 1);
  if (how == TwoDraws::kOthers) return {first, second + (second >= first ? 1 : 0)};
  while (second == first) second = random.below(n);
  return {first, second};
}

}  // namespace routesim::policies
