#include "tools/study/tune/tune_sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace routesim::tools {

namespace {

Choice published_of(std::span<const Knob> knobs) {
  Choice choice;
  for (const Knob& knob : knobs) choice.push_back(knob.published);
  return choice;
}

/// The values that single_changes() tries, in their order.
std::vector<std::size_t> tried_values(const Knob& knob) {
  std::vector<std::size_t> all;
  const std::size_t last = knob.values.size() - 1;
  const std::size_t p = knob.published;
  if (knob.ordered)
    all = {p < last ? p + 1 : p, p > 0 ? p - 1 : p, last, 0};
  else
    for (std::size_t v = 0; v <= last; ++v) all.push_back(v);
  std::vector<std::size_t> out;
  for (const std::size_t v : all)
    if (v != p && std::ranges::find(out, v) == out.end()) out.push_back(v);
  return out;
}

}  // namespace

std::vector<Choice> single_changes(std::span<const Knob> knobs) {
  std::vector<Choice> out;
  bool more = true;
  for (std::size_t n = 0; more; ++n) {
    more = false;
    for (std::size_t k = 0; k < knobs.size(); ++k) {
      const std::vector<std::size_t> values = tried_values(knobs[k]);
      if (n >= values.size()) continue;
      more = true;
      out.push_back(published_of(knobs));
      out.back()[k] = values[n];
    }
  }
  return out;
}

std::vector<Choice> latin_hypercube(std::span<const Knob> knobs, std::size_t count,
                                    std::uint64_t seed) {
  std::vector<Choice> out(count, Choice(knobs.size()));
  for (std::size_t k = 0; k < knobs.size(); ++k) {
    RandomStream random(seed, kSearchStream, k);
    std::vector<std::size_t> parts(count);
    std::iota(parts.begin(), parts.end(), std::size_t{0});
    random.shuffle(parts.begin(), parts.end());
    for (std::size_t i = 0; i < count; ++i) {
      const double at = (static_cast<double>(parts[i]) + random.uniform()) /
                        static_cast<double>(count) * static_cast<double>(knobs[k].values.size());
      out[i][k] = std::min(static_cast<std::size_t>(at), knobs[k].values.size() - 1);
    }
  }
  return out;
}

Choice neighbour(std::span<const Knob> knobs, const Choice& parent, double spread,
                 RandomStream& random) {
  Choice choice = parent;
  const double probability = std::min(1.0, 2.0 / static_cast<double>(knobs.size()));
  const std::size_t forced = random.below(knobs.size());
  for (std::size_t k = 0; k < knobs.size(); ++k) {
    const bool changes = random.uniform() < probability;
    if (!changes && k != forced) continue;
    const auto size = static_cast<double>(knobs[k].values.size());
    if (!knobs[k].ordered) {
      const auto other = static_cast<std::size_t>(random.below(knobs[k].values.size() - 1));
      choice[k] = other < parent[k] ? other : other + 1;
      continue;
    }
    const double step = random.normal() * spread * size;
    const double whole = step < 0 ? std::floor(step) : std::ceil(step);
    const double at = std::clamp(static_cast<double>(parent[k]) + whole, 0.0, size - 1);
    choice[k] = static_cast<std::size_t>(at);
  }
  return choice;
}

}  // namespace routesim::tools
