#include "policies/balancers/kit/tenant_tree.h"

#include <algorithm>
#include <span>

#include "base/check.h"
#include "base/rng.h"

namespace routesim::policies {
namespace {

constexpr std::uint32_t kRoot = 0;
constexpr std::uint32_t kNone = ~std::uint32_t{0};
constexpr std::int64_t kPage = 16;  // PAGE_SIZE of token_tree.rs.

}  // namespace

/// Leaves of tenants, the least recently used first.
class TenantTree::LeafQueue {
 public:
  void add(Leaf leaf) {
    heap_.push_back(leaf);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  bool empty() const { return heap_.empty(); }
  const Leaf& front() const { return heap_.front(); }
  Leaf take() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Leaf leaf = heap_.back();
    heap_.pop_back();
    return leaf;
  }

 private:
  static bool later(const Leaf& a, const Leaf& b) {
    return std::pair(a.epoch, a.node) > std::pair(b.epoch, b.node);
  }
  std::vector<Leaf> heap_;
};

TenantTree::TenantTree(TenantTreeKind kind, std::uint64_t salt)
    : kind_(kind), salt_(salt), page_(kind == TenantTreeKind::kTokens ? kPage : 1), nodes_(1) {
  nodes_[kRoot].parent = kNone;
}

std::int64_t TenantTree::usable(const PromptText& text) const {
  const std::int64_t units = text.units();
  return units - units % page_;
}

// Runs that continue each other count as one, so that a text has one key however it is cut.
std::uint64_t TenantTree::key(std::uint32_t parent, RunCursor at) const {
  TextRun whole = at.run();
  if (page_ == 1)
    return mix64(mix64(parent, whole.content), static_cast<std::uint64_t>(whole.offset));
  std::uint64_t key = parent;
  const auto close = [&key, &whole] {
    key = mix64(mix64(mix64(key, whole.content), static_cast<std::uint64_t>(whole.offset)),
                static_cast<std::uint64_t>(whole.length));
  };
  std::int64_t left = page_;
  whole.length = std::min(whole.length, left);
  while ((left -= whole.length) > 0) {
    const std::int64_t step = whole.length;
    at.advance(step);
    TextRun next = at.run();
    next.length = std::min(next.length, left);
    while (left > 0 && next.content == whole.content &&
           next.offset == whole.offset + whole.length) {
      whole.length += next.length;
      left -= next.length;
      if (left == 0) break;
      at.advance(next.length);
      next = at.run();
      next.length = std::min(next.length, left);
    }
    if (left == 0) break;
    close();
    whole = next;
  }
  close();
  return key;
}

std::uint32_t TenantTree::child_at(std::uint32_t parent, const RunCursor& at) const {
  const auto found = children_.find(key(parent, at));
  return found == children_.end() ? kNone : found->second;
}

// Whole pages only.
std::int64_t TenantTree::shared(const RunCursor& at, std::uint32_t child) const {
  const Node& node = nodes_[child];
  const std::int64_t same = shared_units(at, RunCursor(node.text, node.length));
  return same - same % page_;
}

std::uint32_t TenantTree::make_node(std::uint32_t parent, RunCursor text) {
  std::uint32_t id = static_cast<std::uint32_t>(nodes_.size());
  if (free_.empty()) {
    nodes_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
    nodes_[id] = Node();
  }
  Node& node = nodes_[id];
  node.parent = parent;
  node.length = text.left();
  children_[key(parent, text)] = id;
  ++nodes_[parent].children;
  while (text.left() > 0) {
    const TextRun run = text.run();
    if (!node.text.empty() && node.text.back().content == run.content &&
        node.text.back().offset + node.text.back().length == run.offset)
      node.text.back().length += run.length;
    else
      node.text.push_back(run);
    text.advance(run.length);
  }
  node.text.shrink_to_fit();
  return id;
}

// The new node takes the first `at` units and the place of `child`, which becomes its only child.
std::uint32_t TenantTree::split(std::uint32_t child, std::int64_t at) {
  const Node old = std::move(nodes_[child]);
  RunCursor rest(old.text, old.length);
  const std::uint32_t upper = make_node(old.parent, RunCursor(old.text, at));
  --nodes_[old.parent].children;
  nodes_[upper].holders = old.holders;
  for (Holder& h : nodes_[upper].holders) h.children = 1;
  nodes_[upper].last_tenant = old.last_tenant;
  rest.advance(at);
  // The rest gets a node of its own, whose number it then gives up for the old one.
  const std::uint32_t lower = make_node(upper, rest);
  children_[key(upper, rest)] = child;
  nodes_[child] = std::move(nodes_[lower]);
  nodes_[child].holders = old.holders;
  nodes_[child].children = old.children;
  nodes_[child].last_tenant = old.last_tenant;
  nodes_[lower] = Node();
  free_.push_back(lower);
  return upper;
}

TenantTree::Holder* TenantTree::holder(std::uint32_t node, std::uint32_t tenant) {
  auto& list = nodes_[node].holders;
  const auto at = std::lower_bound(list.begin(), list.end(), tenant,
                                   [](const Holder& h, std::uint32_t t) { return h.tenant < t; });
  return at != list.end() && at->tenant == tenant ? &*at : nullptr;
}

bool TenantTree::hold(std::uint32_t node, std::uint32_t tenant) {
  auto& list = nodes_[node].holders;
  const auto at = std::lower_bound(list.begin(), list.end(), tenant,
                                   [](const Holder& h, std::uint32_t t) { return h.tenant < t; });
  if (at != list.end() && at->tenant == tenant) return false;
  list.insert(at, {.tenant = tenant, .children = 0, .epoch = 0});
  if (node != kRoot) ++holder(nodes_[node].parent, tenant)->children;
  return true;
}

// Node::touch_tenant of token_tree.rs: one use in sixteen becomes the node's tenant.
void TenantTree::touch(std::uint32_t node, std::uint32_t tenant) {
  const std::uint64_t now = clock_++;
  holder(node, tenant)->epoch = now;
  if (now % 16 == 0) nodes_[node].last_tenant = tenant;
}

std::optional<std::uint32_t> TenantTree::tenant_of(std::uint32_t node) {
  const std::optional<std::uint32_t> last = nodes_[node].last_tenant;
  if (last && holder(node, *last) != nullptr) return last;
  std::optional<std::uint32_t> any;
  std::uint64_t least = 0;
  for (const Holder& h : nodes_[node].holders) {
    const std::uint64_t order = mix64(mix64(salt_, node), h.tenant);
    if (any && order >= least) continue;
    any = h.tenant;
    least = order;
  }
  if (kind_ == TenantTreeKind::kText) nodes_[node].last_tenant = any;
  return any;
}

TenantTree::Match TenantTree::match(const PromptText& text) {
  Match result{.tenant = {}, .matched = 0, .length = text.units()};
  std::uint32_t node = kRoot;
  for (RunCursor at(text.runs, usable(text)); at.left() > 0;) {
    const std::uint32_t child = child_at(node, at);
    const std::int64_t same = child == kNone ? 0 : shared(at, child);
    if (same == 0) break;
    node = result.node = child;
    result.matched += same;
    if (kind_ == TenantTreeKind::kTokens) {
      result.tenant = tenant_of(child);
      touch(child, *result.tenant);
    }
    if (same < nodes_[child].length) break;
    at.advance(same);
  }
  if (kind_ == TenantTreeKind::kTokens) return result;
  result.tenant = tenant_of(node);
  const std::uint64_t now = clock_++;
  if (now % 8 == 0 && result.tenant) holder(node, *result.tenant)->epoch = now;
  return result;
}

TenantTree::Place TenantTree::find(const PromptText& text) const {
  Place place{.node = kRoot, .matched = 0};
  for (RunCursor at(text.runs, text.units()); at.left() > 0;) {
    const std::uint32_t child = child_at(place.node, at);
    const std::int64_t same = child == kNone ? 0 : shared(at, child);
    if (same == 0) break;
    place.node = child;
    place.matched += same;
    if (same < nodes_[child].length) break;
    at.advance(same);
  }
  return place;
}

std::int64_t TenantTree::matched_of(const PromptText& text, std::uint32_t tenant) const {
  std::int64_t matched = 0;
  std::uint32_t node = kRoot;
  for (RunCursor at(text.runs, text.units()); at.left() > 0;) {
    node = child_at(node, at);
    if (node == kNone || !owns(node, tenant)) break;
    const std::int64_t same = shared(at, node);
    matched += same;
    if (same < nodes_[node].length) break;
    at.advance(same);
  }
  return matched;
}

bool TenantTree::owns(std::uint32_t node, std::uint32_t tenant) const {
  const auto& list = nodes_[node].holders;
  return std::any_of(list.begin(), list.end(),
                     [tenant](const Holder& h) { return h.tenant == tenant; });
}

void TenantTree::add_tenant(std::uint32_t tenant) {
  if (tenant >= sizes_.size()) sizes_.resize(tenant + std::size_t{1});
  hold(kRoot, tenant);
}

void TenantTree::insert(const PromptText& text, std::uint32_t tenant) {
  const bool tokens = kind_ == TenantTreeKind::kTokens;
  const bool insertions = kind_ == TenantTreeKind::kInsertions;
  if (insertions) ++clock_;
  add_tenant(tenant);
  std::uint32_t node = kRoot;
  for (RunCursor at(text.runs, usable(text)); at.left() > 0;) {
    std::uint32_t child = child_at(node, at);
    if (child == kNone) {
      child = make_node(node, at);
      hold(child, tenant);
      sizes_[tenant] += at.left();
      if (insertions) holder(child, tenant)->epoch = clock_;
      if (!tokens) nodes_[child].last_tenant = tenant;
      node = child;
      break;
    }
    const std::int64_t same = shared(at, child);
    if (same == 0) return;  // Two keys are equal by chance.
    const bool whole = same == nodes_[child].length;
    if (!whole) child = split(child, same);
    const bool is_new = hold(child, tenant);
    if (is_new || (tokens && whole)) sizes_[tenant] += same;
    if (tokens) touch(child, tenant);
    if (insertions) holder(child, tenant)->epoch = clock_;
    node = child;
    at.advance(same);
    if (tokens && at.left() == 0) return;
  }
  if (tokens) {
    if (node != kRoot) touch(node, tenant);
    return;
  }
  if (!insertions) holder(node, tenant)->epoch = clock_++;
}

bool TenantTree::is_leaf(std::uint32_t node, std::uint32_t tenant) {
  const Holder* h = holder(node, tenant);
  return h != nullptr && h->children == 0;
}

void TenantTree::drop(std::uint32_t node, std::uint32_t tenant) {
  Node& n = nodes_[node];
  std::erase_if(n.holders, [tenant](const Holder& h) { return h.tenant == tenant; });
  if (node == kRoot) return;
  if (Holder* above = holder(n.parent, tenant)) --above->children;
  if (n.holders.empty() && n.children == 0) free_node(node);
}

void TenantTree::free_node(std::uint32_t node) {
  Node& n = nodes_[node];
  children_.erase(key(n.parent, RunCursor(n.text, n.length)));
  --nodes_[n.parent].children;
  n = Node();
  free_.push_back(node);
}

// Below a node that nobody owns there are only nodes that nobody owns.
void TenantTree::remove_tenant(std::uint32_t tenant) {
  std::vector<std::uint32_t> ownerless;
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    auto& list = nodes_[node].holders;
    if (std::erase_if(list, [tenant](const Holder& h) { return h.tenant == tenant; }) == 0)
      continue;
    if (list.empty() && node != kRoot) ownerless.push_back(node);
  }
  for (const std::uint32_t node : ownerless) free_node(node);
  if (tenant < sizes_.size()) sizes_[tenant] = 0;
}

// evict_tenant_by_lru. Insertions of children pass their parent, so it goes with or after them.
void TenantTree::evict_insertions(std::uint32_t tenant, std::int64_t units) {
  if (units <= 0) return;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> nodes;  // By last insertion.
  for (std::uint32_t node = kRoot + 1; node < nodes_.size(); ++node)
    if (const Holder* h = holder(node, tenant)) nodes.emplace_back(h->epoch, node);
  std::sort(nodes.begin(), nodes.end());
  std::vector<std::uint32_t> ownerless;
  std::int64_t lost = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (lost >= units && nodes[i].first != nodes[i - 1].first) break;
    Node& node = nodes_[nodes[i].second];
    lost += node.length;
    std::erase_if(node.holders, [tenant](const Holder& h) { return h.tenant == tenant; });
    if (node.holders.empty()) ownerless.push_back(nodes[i].second);
  }
  for (const std::uint32_t node : ownerless) free_node(node);
  sizes_[tenant] -= lost;
}

void TenantTree::evict_total(std::int64_t most) {
  std::int64_t total = 0;
  for (const std::int64_t size : sizes_) total += size;
  if (total <= most) return;
  LeafQueue leaves;
  for (std::uint32_t node = kRoot + 1; node < nodes_.size(); ++node)
    for (const Holder& h : nodes_[node].holders)
      if (h.children == 0) leaves.add({.epoch = h.epoch, .node = node, .tenant = h.tenant});
  while (total > most && !leaves.empty()) {
    total -= nodes_[leaves.front().node].length;
    take_leaf(leaves);
  }
}

void TenantTree::evict(std::int64_t most) {
  if (std::all_of(sizes_.begin(), sizes_.end(), [most](std::int64_t s) { return s <= most; }))
    return;
  LeafQueue leaves;
  for (std::uint32_t node = kRoot + 1; node < nodes_.size(); ++node)
    for (const Holder& h : nodes_[node].holders)
      if (h.children == 0 && sizes_[h.tenant] > most)
        leaves.add({.epoch = h.epoch, .node = node, .tenant = h.tenant});
  if (kind_ == TenantTreeKind::kText)
    evict_text(most, leaves);
  else
    evict_tokens(most, leaves);
}

// The parent takes the place of the leaf where it has become one.
void TenantTree::take_leaf(LeafQueue& leaves) {
  const Leaf leaf = leaves.take();
  const std::uint32_t parent = nodes_[leaf.node].parent;
  sizes_[leaf.tenant] -= nodes_[leaf.node].length;
  drop(leaf.node, leaf.tenant);
  if (parent != kRoot && is_leaf(parent, leaf.tenant))
    leaves.add(
        {.epoch = holder(parent, leaf.tenant)->epoch, .node = parent, .tenant = leaf.tenant});
}

void TenantTree::evict_text(std::int64_t most, LeafQueue& leaves) {
  while (!leaves.empty())
    if (sizes_[leaves.front().tenant] <= most)
      leaves.take();
    else
      take_leaf(leaves);
}

// TokenTree::evict_tenant. Two quirks of it: the parent of a leaf that others still own does not
// become a leaf, and sizes count too much, so that a tenant may lose everything and keep a size.
void TenantTree::evict_tokens(std::int64_t most, LeafQueue& leaves) {
  std::vector<std::int64_t> evicted(sizes_.size());
  while (!leaves.empty()) {
    const Leaf leaf = leaves.take();
    if (evicted[leaf.tenant] >= sizes_[leaf.tenant] - most) continue;
    const std::uint32_t parent = nodes_[leaf.node].parent;
    const bool alone = nodes_[leaf.node].holders.size() == 1;
    evicted[leaf.tenant] += nodes_[leaf.node].length;
    drop(leaf.node, leaf.tenant);
    if (alone && parent != kRoot && is_leaf(parent, leaf.tenant))
      leaves.add(
          {.epoch = holder(parent, leaf.tenant)->epoch, .node = parent, .tenant = leaf.tenant});
  }
  for (std::size_t t = 0; t < sizes_.size(); ++t)
    sizes_[t] = std::max<std::int64_t>(sizes_[t] - evicted[t], 0);
}

}  // namespace routesim::policies
