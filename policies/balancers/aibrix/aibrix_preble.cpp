// AIBrix's prefix-cache-preble (algorithms/prefix_cache_preble.go, prefixcacheindexer/tree.go).
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

#include "policies/balancers/aibrix/aibrix_parts.h"
#include "policies/balancers/kit/tenant_tree.h"

namespace routesim::policies {
namespace {

constexpr std::uint32_t kPrebleNone = 0xffffffff;
constexpr Duration kPrebleTimeToLive = Duration::seconds(300);
constexpr double kPrebleSecondsPerToken = 0.15;

/// A run of tokens, with the pods that were sent a prompt through it and the requests of the window
/// that end at it.
struct PrebleNode {
  std::uint32_t parent = kPrebleNone;
  std::map<std::pair<std::uint64_t, std::int64_t>, std::uint32_t> children;  ///< By first token.
  std::vector<TextRun> key;
  std::int64_t tokens = 0;   ///< Of the key.
  std::int64_t context = 0;  ///< From the root to the end of the key.
  SimTime used{};
  std::vector<std::uint32_t> pods;  ///< Their numbers, ascending.
  bool alive = true;
  std::int64_t window_context = 0, window_count = 0, window_hits = 0;

  bool has_pod(std::uint32_t pod) const {
    return std::binary_search(pods.begin(), pods.end(), pod);
  }
  void add_pod(std::uint32_t pod) {
    const auto at = std::lower_bound(pods.begin(), pods.end(), pod);
    if (at == pods.end() || *at != pod) pods.insert(at, pod);
  }
};

/// The radix tree. Node 0 is the root.
class PrebleTree {
 public:
  PrebleTree() : nodes_(1) {}

  struct Found {
    std::uint32_t node;
    std::int64_t matched;  ///< Tokens that were there before.
  };
  Found insert(const PromptText& text, SimTime now) {
    RunCursor rest(text.runs, text.units());
    std::uint32_t at = 0;
    std::int64_t matched = 0;
    for (;;) {
      nodes_[at].used = now;
      if (rest.left() == 0) return {at, matched};
      const TextRun front = rest.run();
      const auto found = nodes_[at].children.find({front.content, front.offset});
      if (found == nodes_[at].children.end())
        return {new_node(at, rest.take(rest.left()), now), matched};
      const std::uint32_t child = found->second;
      const std::int64_t n = shared_units(RunCursor(nodes_[child].key, nodes_[child].tokens), rest);
      at = n < nodes_[child].tokens ? split(child, n, now) : child;
      matched += n;
      rest.advance(n);
    }
  }
  PrebleNode& operator[](std::uint32_t node) { return nodes_[node]; }
  const PrebleNode& operator[](std::uint32_t node) const { return nodes_[node]; }
  /// One more than the largest number of a node.
  std::uint32_t bound() const { return static_cast<std::uint32_t>(nodes_.size()); }

  /// Drops nodes that were not used since `limit`, with what is below them. Their pods also leave
  /// the nodes above, whatever else put them there.
  void drop_before(SimTime limit) {
    for (std::uint32_t node = 1; node < nodes_.size(); ++node)
      if (nodes_[node].alive && nodes_[node].used < limit) drop(node);
  }

 private:
  std::uint32_t new_node(std::uint32_t parent, std::vector<TextRun> key, SimTime now) {
    std::uint32_t node = bound();
    if (free_.empty()) {
      nodes_.emplace_back();
    } else {
      node = free_.back();
      free_.pop_back();
      nodes_[node] = {};
    }
    PrebleNode& n = nodes_[node];
    n.parent = parent;
    for (const TextRun& r : key) n.tokens += r.length;
    n.context = nodes_[parent].context + n.tokens;
    n.key = std::move(key);
    n.used = now;
    nodes_[parent].children[{n.key.front().content, n.key.front().offset}] = node;
    return node;
  }
  /// Puts a node with the first `length` tokens of `child` above it.
  std::uint32_t split(std::uint32_t child, std::int64_t length, SimTime now) {
    const std::vector<TextRun> old = std::move(nodes_[child].key);
    RunCursor cursor(old, nodes_[child].tokens);
    const std::uint32_t node = new_node(nodes_[child].parent, cursor.take(length), now);
    PrebleNode& lower = nodes_[child];
    lower.key = cursor.take(cursor.left());
    lower.tokens -= length;
    lower.parent = node;
    nodes_[node].children[{lower.key.front().content, lower.key.front().offset}] = child;
    nodes_[node].pods = lower.pods;
    return node;
  }
  void drop(std::uint32_t node) {
    const PrebleNode& gone = nodes_[node];
    for (std::uint32_t up = gone.parent; up != kPrebleNone; up = nodes_[up].parent)
      std::erase_if(nodes_[up].pods, [&](std::uint32_t pod) { return gone.has_pod(pod); });
    nodes_[gone.parent].children.erase({gone.key.front().content, gone.key.front().offset});
    std::vector<std::uint32_t> stack = {node};
    while (!stack.empty()) {
      const std::uint32_t at = stack.back();
      stack.pop_back();
      for (const auto& [first, child] : nodes_[at].children) stack.push_back(child);
      nodes_[at] = {};
      nodes_[at].alive = false;
      free_.push_back(at);
    }
  }

  std::deque<PrebleNode> nodes_;
  std::vector<std::uint32_t> free_;
};

/// Seconds to compute a node's tokens on Mistral 7B: a linear, an attention and a quadratic part.
double preble_prefill_seconds(AibrixGpu gpu, std::int64_t own, std::int64_t context) {
  struct Model {
    double slope, base, middle_base, middle_slope, middle_square, small;  ///< Linear, ms.
    double short_attention, attention_slope, attention_base;
    double quad_base, quad_slope, quad_square;
  };
  constexpr Model kV100 = {0.27106428, 10.52444263, -295,  3.125,   6.4e-3,  55,
                           0.80,       4.65e-4,     0.398, -18.425, 9.65e-3, 5.4e-6};
  constexpr Model kA6000 = {0.10842571, 4.209777054806409, -118,  1.25,  2.56e-3, 22,
                            0.32,       1.86e-4,           0.159, -7.37, 3.86e-3, 2.16e-6};
  const Model& m = gpu == AibrixGpu::kA6000 ? kA6000 : kV100;
  const auto t = static_cast<double>(own), c = static_cast<double>(context);
  double ms = m.small;
  if (own >= 384)
    ms = m.slope * t + m.base;
  else if (own >= 192)
    ms = m.middle_base + m.middle_slope * t - m.middle_square * t * t;
  double attention = m.short_attention;
  if (context > 1024) {
    attention = m.attention_slope * c + m.attention_base;
    if ((own == 0 ? context : own) <= 1024) attention /= 2;
  }
  ms += attention;
  if (own >= 4096) ms += m.quad_base + m.quad_slope * t + m.quad_square * t * t;
  return ms / 1000 / 0.9;
}

class AibrixPreble final : public AibrixBalancer {
 public:
  using AibrixBalancer::AibrixBalancer;
  BalancerNeeds needs() const override { return {.text = true}; }

 private:
  struct Entry {
    SimTime at{};
    std::uint32_t node;
  };

  BalancerAnswer route(const BalancerRequest& request) override {
    sweep(request.now);
    const PrebleTree::Found found = tree_.insert(request.text, request.now);
    if (is_imbalanced())
      candidates_ = least_loaded();
    else
      candidates_ = ready();
    std::optional<std::uint32_t> pod;
    if (2 * found.matched > request.text.units()) pod = by_prefix(found.node);
    const BalancerPick pick = pick_of(settle(pod ? *pod : by_cost()));
    for (std::uint32_t n = found.node; n != kPrebleNone; n = tree_[n].parent)
      tree_[n].add_pod(pods().number(pick.endpoint));
    PrebleNode& node = tree_[found.node];
    if (node.window_context <= 0 && node.window_count <= 0) in_window_.push_back(found.node);
    node.window_context += node.context;
    ++node.window_count;
    node.window_hits += node.context - node.tokens;
    window_.push_back({request.now, found.node});
    return pick;
  }

  /// The least loaded candidate of the deepest node that has one.
  std::optional<std::uint32_t> by_prefix(std::uint32_t node) {
    for (; node != kPrebleNone; node = tree_[node].parent) {
      Least<std::int64_t> least(Ties::kAllDrawn, random());
      for (const std::uint32_t i : candidates_)
        if (const std::uint32_t number = pods().number(i); tree_[node].has_pod(number))
          least.offer(i, window_load(number));
      if (least.best()) return least.best();
    }
    return std::nullopt;
  }
  /// Requests of the window at nodes that list the pod.
  std::int64_t window_load(std::uint32_t pod) const {
    std::int64_t sum = 0;
    for (const std::uint32_t n : in_window_)
      if (tree_[n].has_pod(pod)) sum += tree_[n].window_count;
    return sum;
  }
  std::uint32_t by_cost() {
    costs_.clear();
    for (const std::uint32_t n : in_window_) {
      const double cost = node_cost(tree_[n]);
      for (const std::uint32_t pod : tree_[n].pods) {
        if (costs_.size() <= pod) costs_.resize(pod + std::size_t{1}, 0);
        costs_[pod] += cost;
      }
    }
    const auto cost_of = [this](std::uint32_t i) {
      const std::uint32_t number = pods().number(i);
      return number < costs_.size() ? costs_[number] : 0;
    };
    return *std::min_element(
        candidates_.begin(), candidates_.end(),
        [&](std::uint32_t a, std::uint32_t b) { return cost_of(a) < cost_of(b); });
  }
  double node_cost(const PrebleNode& n) const {
    const double hits = static_cast<double>(n.window_hits);
    const double misses =
        n.window_context > 0 ? 1 - hits / static_cast<double>(n.window_context) : 1;
    const double prefill =
        misses * static_cast<double>(n.window_count) *
        preble_prefill_seconds(settings().router_preble_target_gpu, n.tokens, n.context);
    return prefill +
           static_cast<double>(settings().router_preble_decoding_length) * kPrebleSecondsPerToken;
  }

  /// The eviction loop, up to its last round before `now`.
  void sweep(SimTime now) {
    const auto interval = Duration::milliseconds(settings().router_preble_eviction_loop_interval);
    const std::int64_t rounds = (now - SimTime::zero()) / interval;
    if (rounds == rounds_) return;
    rounds_ = rounds;
    const SimTime round = SimTime::zero() + interval * rounds;
    tree_.drop_before(round - kPrebleTimeToLive);
    std::erase_if(window_, [this](const Entry& e) { return !tree_[e.node].alive; });
    const auto period = Duration::seconds(60 * settings().router_preble_sliding_window_period);
    while (!window_.empty() && window_.front().at <= round - period) {
      PrebleNode& n = tree_[window_.front().node];
      n.window_context -= n.context;
      --n.window_count;
      n.window_hits -= n.context - n.tokens;
      if (n.window_context <= 0) n.window_context = n.window_count = n.window_hits = 0;
      window_.pop_front();
    }
    std::erase_if(in_window_, [this](std::uint32_t n) {
      return !tree_[n].alive || (tree_[n].window_context <= 0 && tree_[n].window_count <= 0);
    });
  }
  /// Forgets pods that left, when the number of pods has changed.
  void on_pods_changed() override {
    if (ready().size() == known_pods_) return;
    known_pods_ = ready().size();
    for (std::uint32_t n = 0; n < tree_.bound(); ++n)
      std::erase_if(tree_[n].pods, [this](std::uint32_t pod) {
        const auto i = pods().index(pod);
        return !i || !endpoints()[*i].healthy;
      });
    // The counts of such requests stay, as they do in the product.
    std::erase_if(window_, [this](const Entry& e) { return tree_[e.node].pods.empty(); });
  }

  PrebleTree tree_;
  std::deque<Entry> window_;              ///< Oldest first.
  std::vector<std::uint32_t> in_window_;  ///< Nodes with requests in the window.
  std::int64_t rounds_ = 0;
  std::size_t known_pods_ = 0;
  std::vector<std::uint32_t> candidates_;
  std::vector<double> costs_;  ///< By number.
};

}  // namespace

std::unique_ptr<Balancer> make_aibrix_preble(const AibrixSettings& settings,
                                             const RandomStream& random) {
  return std::make_unique<AibrixPreble>(settings, random);
}

}  // namespace routesim::policies
