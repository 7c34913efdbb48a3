// The radix tree of prompts by which cache-aware routers guess what their servers hold:
// lightseekorg/smg crates/kv_index/src/{string_tree.rs, token_tree.rs} @73da68ca,
// vllm-project/router src/tree.rs @1dbe5075, which is an older string_tree.rs, and Ray's
// prefix_tree.py (see ray.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "policies/balancers/kit/prompt_text.h"

namespace routesim::policies {

/// The rest of a text.
class RunCursor {
 public:
  RunCursor(std::span<const TextRun> runs, std::int64_t length) : runs_(runs), left_(length) {
    settle();
  }
  std::int64_t left() const { return left_; }
  /// The next units, all of one run.
  TextRun run() const {
    const TextRun& r = runs_.front();
    return {.content = r.content,
            .offset = r.offset + within_,
            .length = std::min(r.length - within_, left_)};
  }
  void advance(std::int64_t units) {
    left_ -= units;
    within_ += units;
    settle();
  }
  /// Advances by at most so many units and returns them.
  std::vector<TextRun> take(std::int64_t units) {
    std::vector<TextRun> out;
    while (units > 0 && left_ > 0) {
      TextRun next = run();
      next.length = std::min(next.length, units);
      units -= next.length;
      advance(next.length);
      out.push_back(next);
    }
    return out;
  }

 private:
  void settle() {
    while (left_ > 0 && within_ >= runs_.front().length) {
      within_ -= runs_.front().length;
      runs_ = runs_.subspan(1);
    }
  }
  std::span<const TextRun> runs_;
  std::int64_t within_ = 0;  ///< Units of the first run that are behind.
  std::int64_t left_;
};

/// Units that two texts have in common, from here on.
inline std::int64_t shared_units(RunCursor a, RunCursor b) {
  std::int64_t same = 0;
  while (a.left() > 0 && b.left() > 0) {
    const TextRun x = a.run(), y = b.run();
    if (x.content != y.content || x.offset != y.offset) break;
    const std::int64_t step = std::min(x.length, y.length);
    same += step;
    a.advance(step);
    b.advance(step);
  }
  return same;
}

/// How a tree counts.
enum class TenantTreeKind : std::uint8_t {
  /// Steps of one unit. A size counts what a tenant owns. One match in eight refreshes a node.
  kText,
  /// Steps of 16 units; a shorter tail is dropped. A size grows by every full node that a prompt
  /// passes, owned before or not. Matches and insertions refresh every node that they pass.
  kTokens,
  /// Steps of one unit. An insertion refreshes every node that it passes, and a match none.
  /// Evictions drop a tenant's nodes by their last insertion.
  kInsertions,
};

/// Prompts of tenants (servers, numbered densely from 0 on). A node lists the tenants that got a
/// prompt through it; a tenant of a node is a tenant of its parent. Costs grow with the runs of a
/// prompt, not with its units, and with the logarithm of the tenants.
class TenantTree {
 public:
  struct Match {
    std::optional<std::uint32_t> tenant;  ///< Nobody in a tree of nobody.
    std::int64_t matched = 0;             ///< Units.
    std::int64_t length = 0;              ///< Of the text.
    std::uint32_t node = 0;               ///< The last node, for owns(), until the next insertion.
    float rate() const {
      return length == 0 ? 0 : static_cast<float>(matched) / static_cast<float>(length);
    }
  };

  /// `salt` decides where upstream takes an arbitrary entry of a hash map.
  explicit TenantTree(TenantTreeKind kind, std::uint64_t salt = 0);

  /// The longest match of all tenants together, and one of those that own its last node: of text
  /// the one that made the node first. Part of an edge counts. Refreshes times of use.
  Match match(const PromptText& text);
  void insert(const PromptText& text, std::uint32_t tenant);
  /// The longest match of all tenants together, without effects, for owns(). kInsertions only.
  struct Place {
    std::uint32_t node = 0;
    std::int64_t matched = 0;  ///< Units.
  };
  Place find(const PromptText& text) const;
  bool owns(std::uint32_t node, std::uint32_t tenant) const;
  /// Units of the longest match of one tenant, without effects. Not of kTokens.
  std::int64_t matched_of(const PromptText& text, std::uint32_t tenant) const;
  /// The tenant owns the empty prompt from now on.
  void add_tenant(std::uint32_t tenant);
  /// Forgets a tenant. O(nodes).
  void remove_tenant(std::uint32_t tenant);
  /// Tenants with more than `most` units lose their leaves, least recently used first, until they
  /// have no more. O(nodes) where there is such a tenant.
  void evict(std::int64_t most);
  /// The same for all tenants together, the least recently used leaf of any first.
  void evict_total(std::int64_t most);
  /// The tenant loses whole insertions, the oldest first, until it has lost `units` or has nothing
  /// left. O(nodes). kInsertions only.
  void evict_insertions(std::uint32_t tenant, std::int64_t units);

  /// Units of a tenant.
  std::int64_t size_of(std::uint32_t tenant) const {
    return tenant < sizes_.size() ? sizes_[tenant] : 0;
  }
  std::size_t node_count() const { return nodes_.size() - free_.size(); }

 private:
  struct Holder {
    std::uint32_t tenant;
    std::uint32_t children;  ///< Children of the node that the tenant owns, too.
    std::uint64_t epoch;
  };
  struct Node {
    std::vector<TextRun> text;
    std::int64_t length = 0;
    std::uint32_t parent = 0;
    std::uint32_t children = 0;
    std::optional<std::uint32_t> last_tenant;
    std::vector<Holder> holders;  ///< By tenant.
  };
  struct Leaf {
    std::uint64_t epoch;
    std::uint32_t node, tenant;
  };
  class LeafQueue;

  std::int64_t usable(const PromptText& text) const;
  std::uint64_t key(std::uint32_t parent, RunCursor at) const;
  std::uint32_t child_at(std::uint32_t parent, const RunCursor& at) const;
  std::int64_t shared(const RunCursor& at, std::uint32_t child) const;
  std::uint32_t make_node(std::uint32_t parent, RunCursor text);
  std::uint32_t split(std::uint32_t child, std::int64_t at);
  Holder* holder(std::uint32_t node, std::uint32_t tenant);
  /// True when the tenant is new there.
  bool hold(std::uint32_t node, std::uint32_t tenant);
  void touch(std::uint32_t node, std::uint32_t tenant);
  std::optional<std::uint32_t> tenant_of(std::uint32_t node);
  void drop(std::uint32_t node, std::uint32_t tenant);
  void free_node(std::uint32_t node);
  bool is_leaf(std::uint32_t node, std::uint32_t tenant);
  void take_leaf(LeafQueue& leaves);
  void evict_text(std::int64_t most, LeafQueue& leaves);
  void evict_tokens(std::int64_t most, LeafQueue& leaves);

  TenantTreeKind kind_;
  std::uint64_t salt_;
  std::int64_t page_;
  std::vector<Node> nodes_;  ///< The root is the first.
  std::vector<std::uint32_t> free_;
  std::unordered_map<std::uint64_t, std::uint32_t> children_;  ///< By parent and first page.
  std::vector<std::int64_t> sizes_;                            ///< By tenant.
  std::uint64_t clock_ = 0;
};

}  // namespace routesim::policies
