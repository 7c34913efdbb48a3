// Parts that several of AIBrix's routing algorithms share.
#pragma once

#include <algorithm>
#include <cmath>

#include "policies/balancers/aibrix/aibrix.h"
#include "policies/balancers/kit/choose.h"
#include "policies/balancers/kit/named_servers.h"
#include "policies/balancers/kit/text_blocks.h"

namespace routesim::policies {

/// Ready pods, in the order of the registry.
class AibrixBalancer : public Balancer {
 public:
  AibrixBalancer(const AibrixSettings& settings, const RandomStream& random)
      : settings_(settings), random_(random) {}

  /// A pod that becomes ready or unready is deleted and added again, so its count starts at 0
  /// (updatePod of pkg/cache/informers.go@e3e10f9e).
  void set_endpoints(std::span<const BalancerEndpoint> endpoints) override {
    std::vector<BalancerEndpoint> unchanged;
    for (const BalancerEndpoint& e : endpoints)
      for (const BalancerEndpoint& old : this->endpoints())
        if (old.name == e.name && old.healthy == e.healthy) unchanged.push_back(e);
    Balancer::set_endpoints(unchanged);
    Balancer::set_endpoints(endpoints);
    pods_.set(endpoints);
    ready_.clear();
    for (std::uint32_t i = 0; i < size(); ++i)
      if (endpoints[i].healthy) ready_.push_back(i);
    on_pods_changed();
  }
  BalancerAnswer pick(const BalancerRequest& request) final {
    if (ready().empty()) return std::nullopt;
    return route(request);
  }

 protected:
  virtual void on_pods_changed() {}
  /// There is at least one ready pod.
  virtual BalancerAnswer route(const BalancerRequest& request) = 0;
  const AibrixSettings& settings() const { return settings_; }
  const std::vector<std::uint32_t>& ready() const { return offered(ready_); }
  RandomStream& random() { return random_; }
  /// Pods as the product remembers them: by name.
  const NamedServers& pods() const { return pods_; }

  /// The most load a pod may have: the mean and so many sample standard deviations
  /// (algorithms/util.go).
  double load_limit(std::span<const double> loads) const {
    if (loads.empty()) return 0;
    const auto n = static_cast<double>(loads.size());
    double mean = 0, squares = 0;
    for (const double x : loads) mean += x;
    mean /= n;
    if (loads.size() == 1) return mean;
    for (const double x : loads) squares += (x - mean) * (x - mean);
    return mean + static_cast<double>(settings_.prefix_cache_standard_deviation_factor) *
                      std::sqrt(squares / (n - 1));
  }
  std::uint32_t any_pod() { return ready()[random_.below(ready().size())]; }
  /// Uniform among the pods with the fewest requests in flight.
  std::uint32_t least_request() {
    Least<std::uint32_t> least(Ties::kAllDrawn, random_);
    for (const std::uint32_t i : ready()) least.offer(i, in_flight()[i]);
    return *least.best();
  }
  /// True when the loads of pods differ by more than the limit (getTargetPodListOnLoadImbalance);
  /// then only pods with the least load may be chosen.
  bool is_imbalanced() const {
    const auto load = [this](std::uint32_t i) { return in_flight()[i]; };
    const auto [least, most] = least_and_most(ready(), load);
    double sum = 0;
    for (const std::uint32_t i : ready()) sum += load(i);
    const double mean = sum / static_cast<double>(ready().size());
    if (mean_gate_)
      return most > settings_.prefix_cache_load_imbalance_factor * (mean + 1) &&
             most - least >= settings_.prefix_cache_load_imbalance_min_gap;
    return std::int64_t{most} - std::int64_t{least} >
           settings_.prefix_cache_pod_running_request_imbalance_abs_count;
  }
  /// The pods that may be chosen then.
  std::vector<std::uint32_t> least_loaded() const {
    return all_least(ready(), [this](std::uint32_t i) { return in_flight()[i]; });
  }

 private:
  AibrixSettings settings_;
  bool mean_gate_ =
      release_of<AibrixRelease>(kAibrixReleases, settings_.release) == AibrixRelease::kMeanGate;
  RandomStream random_;
  std::vector<std::uint32_t> ready_;
  NamedServers pods_;
};

/// The block hashes of the whole fleet, in which prefix-cache and pd learn prefixes.
class AibrixPrefixTable {
 public:
  explicit AibrixPrefixTable(const AibrixSettings& s)
      : block_size_(s.prefix_cache_block_size),
        interval_(Duration::seconds(s.prefix_cache_eviction_interval_seconds)),
        duration_(Duration::seconds(60 * s.prefix_cache_eviction_duration_mins)),
        store_(static_cast<std::size_t>(s.prefix_cache_block_number)) {}

  struct Match {
    std::uint32_t pod;     ///< Its number in pods().
    std::int64_t percent;  ///< Rounded down; 0 is a match, too.
  };
  /// Pods that have the first block of the text. Valid until the next call.
  const std::vector<Match>& match(const PromptText& text, SimTime now) {
    sweep(now);
    blocks_ = cutter_.cut(text, block_units(text, block_size_), false);
    matches_.clear();
    for (const BlockStore::Match& m : store_.match(blocks_))
      matches_.push_back(
          {m.server, std::int64_t{m.blocks} * 100 / static_cast<std::int64_t>(blocks_.size())});
    return matches_;
  }
  /// Stores the text last matched.
  void add(std::uint32_t pod, SimTime now) { store_.add(blocks_, pod, now); }

 private:
  /// Blocks are dropped in rounds, one an interval.
  void sweep(SimTime now) {
    const std::int64_t rounds = (now - SimTime::zero()).ns() / interval_.ns();
    if (rounds == rounds_) return;
    rounds_ = rounds;
    store_.drop_before(SimTime::zero() + interval_ * rounds - duration_);
  }

  std::int64_t block_size_;
  Duration interval_, duration_;
  std::int64_t rounds_ = 0;
  TextBlocks cutter_;
  BlockStore store_;
  std::span<const std::uint64_t> blocks_;
  std::vector<Match> matches_;
};

std::unique_ptr<Balancer> make_aibrix_preble(const AibrixSettings& settings,
                                             const RandomStream& random);
std::unique_ptr<Balancer> make_aibrix_pd(const AibrixSettings& settings,
                                         const RandomStream& random);
std::unique_ptr<Balancer> make_aibrix_slo(const AibrixSettings& settings,
                                          const RandomStream& random);

}  // namespace routesim::policies
