// bucket of the SGLang gateway: model_gateway/src/policies/bucket.rs of lightseekorg/smg @73da68ca.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "policies/balancers/smg/smg_policies.h"

namespace routesim::policies {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

/// Prompts of like length go to the same prefill server. Boundaries follow the lengths of a window.
class Bucket final : public LegPolicy {
 public:
  Bucket(const SmgSettings& s, const RandomStream& random)
      : settings_(s),
        counts_tokens_(s.grpc && smg_release(s) >= SmgRelease::k1_13),
        random_(random),
        adjustment_(s.bucket_adjust_interval) {}

  BalancerNeeds needs() const override {
    return {.text = true, .chat_text_with_prefill = smg_chat_text(smg_release(settings_))};
  }
  // Upstream starts the buckets anew with every server that registers, and from the second one on
  // over all lengths (src/core/steps/worker/shared/update_policies.rs of sglang-router 0.3.2), so
  // that the first bucket takes every real prompt. Only prefill servers have buckets.
  void on_workers(const Leg& leg) override {
    names_.update(leg);
    if (leg.name != "prefill") return;
    buckets_.clear();
    characters_.clear();
    for (const std::uint32_t w : leg.workers) buckets_.push_back({.tenant = names_.tenant(w)});
    if (buckets_.empty()) return;
    const std::uint64_t gap = kMost / buckets_.size();
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      buckets_[i].first = i * gap;
      buckets_[i].last = i + 1 == buckets_.size() ? kMost : (i + 1) * gap - 1;
      count(buckets_[i].tenant) = 0;
    }
  }
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) override {
    if (buckets_.empty()) return leg.healthy[random_.below(leg.healthy.size())];
    if (adjustment_.due(request.now)) adjust();
    // From release 1.13 on tokens where there are some.
    const auto length = static_cast<std::uint64_t>(
        counts_tokens_ ? request.prompt_tokens : std::llround(request.text.characters()));
    std::uint64_t least = kMost, most = 0;
    for (const Bucket::Range& b : buckets_) {
      least = std::min(least, count(b.tenant));
      most = std::max(most, count(b.tenant));
    }
    std::uint32_t tenant = 0;
    if (imbalanced(least, most, settings_.balance_abs_threshold, settings_.balance_rel_threshold))
      tenant = idlest();
    else if (const Range* bucket = find(length))
      tenant = bucket->tenant;
    else
      tenant = names_.tenant(leg.healthy[random_.below(leg.healthy.size())]);
    if (leg.forced) tenant = names_.tenant(*leg.forced);
    record(request.now, length, tenant);
    // Upstream looks for the server among those that may get requests, and fails without it.
    const auto at = names_.endpoint(leg, tenant);
    return at && leg.can_serve(*at) ? at : std::nullopt;
  }

 private:
  struct Range {
    std::uint32_t tenant;
    std::uint64_t first = 0, last = 0;  ///< Characters, both included.
  };
  struct Sent {
    SimTime at;
    std::uint64_t length;
    std::uint32_t tenant;
  };
  std::uint64_t& count(std::uint32_t tenant) {
    if (tenant >= characters_.size()) characters_.resize(tenant + std::size_t{1});
    return characters_[tenant];
  }
  // Upstream takes the first of a hash map: the same one each time, but an arbitrary one.
  std::uint32_t idlest() {
    const auto order = [this](const Range& b) {
      return std::pair(count(b.tenant), mix64(salt_, b.tenant));
    };
    return std::min_element(buckets_.begin(), buckets_.end(),
                            [&order](const auto& a, const auto& b) { return order(a) < order(b); })
        ->tenant;
  }
  // Buckets may overlap by rounding, so that the way of the search matters.
  const Range* find(std::uint64_t length) const {
    std::size_t left = 0, right = buckets_.size();
    while (left < right) {
      const std::size_t middle = left + (right - left) / 2;
      if (length < buckets_[middle].first)
        right = middle;
      else if (length > buckets_[middle].last)
        left = middle + 1;
      else
        return &buckets_[middle];
    }
    return nullptr;
  }
  // Requests that have left the window are taken off after the new one has been counted.
  void record(SimTime now, std::uint64_t length, std::uint32_t tenant) {
    count(tenant) += length;
    while (!window_.empty() && now - window_.front().at > settings_.bucket_adjust_interval) {
      const Sent& old = window_.front();
      total_ -= old.length;
      count(old.tenant) -= std::min(count(old.tenant), old.length);
      window_.pop_front();
    }
    window_.push_back({.at = now, .length = length, .tenant = tenant});
    total_ += length;
  }
  void adjust() {
    if (window_.empty()) return;
    const std::uint64_t share = total_ / buckets_.size();
    if (share <= 2 * share_ && share_ <= 2 * share && share_ != 0) return;
    share_ = share;
    std::vector<std::uint64_t> lengths;
    for (const Sent& s : window_) lengths.push_back(s.length);
    std::sort(lengths.begin(), lengths.end());
    std::uint64_t lower = 0;
    std::size_t next = 0;
    for (Range& bucket : buckets_) {
      bucket.first = lower;
      if (&bucket == &buckets_.back()) {
        bucket.last = kMost;
        return;
      }
      bucket.last = lower + share;
      for (std::uint64_t sum = 0; next < lengths.size();) {
        const std::uint64_t length = lengths[next++];
        sum += length;
        if (sum < share) continue;
        if (length > lower) bucket.last = length;
        break;
      }
      lower = bucket.last + 1;
    }
  }

  SmgSettings settings_;
  bool counts_tokens_;
  RandomStream random_;
  std::uint64_t salt_ = RandomStream(random_).next();
  Periodic adjustment_;
  TenantNames names_;
  std::vector<Range> buckets_;             ///< In the order of registration.
  std::vector<std::uint64_t> characters_;  ///< In the window, by tenant.
  std::deque<Sent> window_;
  std::uint64_t total_ = 0;  ///< Characters of the window.
  std::uint64_t share_ = 0;  ///< Characters per server at the last adjustment.
};

}  // namespace

std::unique_ptr<LegPolicy> make_smg_bucket(const SmgSettings& s, const RandomStream& random) {
  return std::make_unique<Bucket>(s, random);
}

}  // namespace routesim::policies
