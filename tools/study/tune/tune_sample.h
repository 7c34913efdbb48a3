// The points where a search looks: choices that fill a space evenly, and choices near a good one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"
#include "tools/study/tune/tune_space.h"

namespace routesim::tools {

/// The stream of a search. Its seeds are mixed with a constant, so that no run has the same draws.
inline constexpr Stream kSearchStream = Stream::kExploration;
inline constexpr std::uint64_t kSearchSalt = 0x7475'6e65;

/// The published choice with one knob changed: of each knob that is ordered the lowest value, the
/// highest and those next to the published one, of any other all values. Those that change most
/// different knobs come first.
std::vector<Choice> single_changes(std::span<const Knob> knobs);

/// A Latin hypercube (McKay, Beckman and Conover 1979): of `count` choices, each knob takes every
/// part of its values equally often.
std::vector<Choice> latin_hypercube(std::span<const Knob> knobs, std::size_t count,
                                    std::uint64_t seed);

/// A choice near `parent`: each knob changes with the probability that changes two on average, an
/// ordered one by a normal step of `spread` times its range, any other to any value. At least one
/// changes.
Choice neighbour(std::span<const Knob> knobs, const Choice& parent, double spread,
                 RandomStream& random);

}  // namespace routesim::tools
