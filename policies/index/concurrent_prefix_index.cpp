// ConcurrentPrefixIndex: a "big reader" lock around the single-threaded index.
#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "policies/index/prefix_index.h"

namespace routesim::policies {
namespace {
constexpr std::size_t kStripes = 16;
}  // namespace

// A reader locks its own stripe, a writer all of them, always in the same order. Unlike with a
// shared mutex, readers do not write to a common cache line. A mutex alone would let a reader that
// comes straight back overtake a writer again and again, so a reader that sees a writer waiting
// lets one go first, but only one.
struct ConcurrentPrefixIndex::Stripes {
  struct alignas(64) Stripe {
    std::mutex mutex;
  };
  std::array<Stripe, kStripes> stripes;
  // Scratches get stripes in turn, so few readers share one.
  std::atomic<std::uint32_t> readers{0};
  alignas(64) std::atomic<std::uint32_t> waiting_writers{0};
  std::atomic<std::uint32_t> writes{0};  // Grows when a writer leaves.

  void let_a_writer_pass() const {
    const std::uint32_t before = writes.load();
    if (waiting_writers.load() != 0) writes.wait(before);
  }
};

ConcurrentPrefixIndex::ExclusiveLock::ExclusiveLock(const ConcurrentPrefixIndex& owner)
    : owner_(owner) {
  owner_.stripes_->waiting_writers.fetch_add(1);
  for (auto& stripe : owner_.stripes_->stripes) stripe.mutex.lock();
}

ConcurrentPrefixIndex::ExclusiveLock::~ExclusiveLock() {
  Stripes& s = *owner_.stripes_;
  for (std::size_t i = kStripes; i-- > 0;) s.stripes[i].mutex.unlock();
  s.waiting_writers.fetch_sub(1);
  s.writes.fetch_add(1);
  s.writes.notify_all();
}

ConcurrentPrefixIndex::ConcurrentPrefixIndex(PrefixIndexOptions options)
    : index_(std::move(options)), stripes_(std::make_unique<Stripes>()) {}
ConcurrentPrefixIndex::~ConcurrentPrefixIndex() = default;

bool ConcurrentPrefixIndex::stored(EndpointId endpoint, TierId tier, std::uint64_t parent,
                                   std::span<const std::uint64_t> engine_keys,
                                   std::span<const BlockKey> request_keys, bool tokens_present,
                                   std::optional<std::uint32_t> group) {
  ExclusiveLock lock(*this);
  return index_.stored(endpoint, tier, parent, engine_keys, request_keys, tokens_present, group);
}

void ConcurrentPrefixIndex::removed(EndpointId endpoint, TierId tier,
                                    std::span<const std::uint64_t> engine_keys,
                                    std::optional<std::uint32_t> group) {
  ExclusiveLock lock(*this);
  index_.removed(endpoint, tier, engine_keys, group);
}

void ConcurrentPrefixIndex::cleared(EndpointId endpoint) {
  ExclusiveLock lock(*this);
  index_.cleared(endpoint);
}

void ConcurrentPrefixIndex::remove_endpoint(EndpointId endpoint) {
  ExclusiveLock lock(*this);
  index_.remove_endpoint(endpoint);
}

void ConcurrentPrefixIndex::add(std::span<const std::uint64_t> engine_keys,
                                std::span<const BlockKey> request_keys,
                                std::span<const HolderEntry> entries) {
  ExclusiveLock lock(*this);
  index_.add(engine_keys, request_keys, entries);
}

void ConcurrentPrefixIndex::match(std::span<const BlockKey> keys, MatchScratch& scratch) {
  if (scratch.stripe_ == 0)
    scratch.stripe_ = 1 + stripes_->readers.fetch_add(1, std::memory_order_relaxed) % kStripes;
  {
    stripes_->let_a_writer_pass();
    const std::lock_guard lock(stripes_->stripes[scratch.stripe_ - 1].mutex);
    if (index_.supports_shared_match() && index_.match_shared(keys, scratch)) return;
  }
  // A lookup that parts the keys of a prompt from those of another is a writer, and so is every one
  // that relinks keys, once a cap has bound.
  ExclusiveLock lock(*this);
  index_.match(keys, scratch);
}

std::optional<BlockKey> ConcurrentPrefixIndex::resolve_engine_key(std::uint64_t engine_key) {
  ExclusiveLock lock(*this);
  return index_.resolve_engine_key(engine_key);
}

std::size_t ConcurrentPrefixIndex::request_key_count() const {
  const std::lock_guard lock(stripes_->stripes[0].mutex);
  return index_.request_key_count();
}

}  // namespace routesim::policies
