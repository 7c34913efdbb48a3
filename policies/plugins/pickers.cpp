#include "policies/plugins/pickers.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "policies/row_math.h"

namespace routesim::policies {
namespace {

void pick_uniform(Cycle& cycle, std::span<const EndpointRow> candidates, std::size_t count,
                  std::vector<EndpointRow>& picked) {
  if (count == 1) {
    picked.push_back(candidates[cycle.picker_random().below(candidates.size())]);
    return;
  }
  picked.assign(candidates.begin(), candidates.end());
  cycle.picker_random().shuffle(picked.begin(), picked.end());
  picked.resize(std::min(count, picked.size()));
}

}  // namespace

double weighted_random_key(double u, double score) {
  if (!(score > 0)) return 0;
  if (u == 0) u = 1e-10;
  return std::pow(u, 1.0 / score);
}

PickerBase::PickerBase(const PickerParameters& p, BuildContext& context)
    : count_(p.max_num_of_endpoints > 0 ? static_cast<std::size_t>(p.max_num_of_endpoints) : 1),
      one_of_the_best_(context.distribution() == Distribution::kHeimdall) {}

void PickerBase::finish(Cycle& cycle, std::vector<EndpointRow>& picked) const {
  if (!one_of_the_best_ || picked.size() < 2) return;
  picked.front() = picked[cycle.picker_random().below(picked.size())];
  picked.resize(1);
}

void MaxScorePicker::pick(Cycle& cycle, std::span<const EndpointRow> candidates,
                          std::span<const double> totals, std::vector<EndpointRow>& picked) const {
  if (count_ == 1) {
    // Upstream shuffles and sorts stably; for one target that is a uniform draw among the ties.
    const double best = highest(totals);
    const std::uint64_t ties = count_equal(totals, best);
    if (ties == 0) return pick_uniform(cycle, candidates, 1, picked);  // Only NaN.
    const std::uint64_t skip = ties > 1 ? cycle.picker_random().below(ties) : 0;
    picked.push_back(candidates[position_of(totals, best, skip)]);
    return;
  }
  std::vector<std::uint32_t>& order = cycle.count_buffer();
  order.resize(candidates.size());
  std::iota(order.begin(), order.end(), 0U);
  cycle.picker_random().shuffle(order.begin(), order.end());
  std::stable_sort(order.begin(), order.end(), [&totals](std::uint32_t a, std::uint32_t b) {
    if (std::isnan(totals[a]) || std::isnan(totals[b]))
      return !std::isnan(totals[a]) && std::isnan(totals[b]);
    return totals[a] > totals[b];
  });
  for (std::size_t i = 0; i < std::min(count_, order.size()); ++i)
    picked.push_back(candidates[order[i]]);
  finish(cycle, picked);
}

void RandomPicker::pick(Cycle& cycle, std::span<const EndpointRow> candidates,
                        std::span<const double>, std::vector<EndpointRow>& picked) const {
  pick_uniform(cycle, candidates, count_, picked);
  finish(cycle, picked);
}

void WeightedRandomPicker::pick(Cycle& cycle, std::span<const EndpointRow> candidates,
                                std::span<const double> totals,
                                std::vector<EndpointRow>& picked) const {
  if (std::none_of(totals.begin(), totals.end(), [](double t) { return t > 0; })) {
    pick_uniform(cycle, candidates, count_, picked);
    return finish(cycle, picked);
  }
  std::vector<double>& keys = cycle.value_buffer();
  keys.resize(totals.size());
  for (std::size_t i = 0; i < totals.size(); ++i)
    keys[i] = weighted_random_key(cycle.picker_random().uniform(), totals[i]);
  std::vector<std::uint32_t>& order = cycle.count_buffer();
  order.resize(candidates.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&keys](std::uint32_t a, std::uint32_t b) { return keys[a] > keys[b]; });
  for (std::size_t i = 0; i < std::min(count_, order.size()); ++i)
    picked.push_back(candidates[order[i]]);
  finish(cycle, picked);
}

}  // namespace routesim::policies
