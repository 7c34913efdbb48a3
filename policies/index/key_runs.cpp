#include "policies/index/key_runs.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/vectorize.h"

namespace routesim::policies {

namespace {

using KeyLanes = std::uint64_t __attribute__((vector_size(32)));

// all_differences |= what differs between `a` and `b`. (Vectors are no parameters by value: their
// passing depends on the processor.)
[[gnu::always_inline]] inline void add_differences(const std::uint64_t* a, const std::uint64_t* b,
                                                   KeyLanes& all_differences) {
  KeyLanes x, y;
  std::memcpy(&x, a, sizeof x);
  std::memcpy(&y, b, sizeof y);
  all_differences |= x ^ y;
}

// How many of two lists of keys are equal, from the first on. Groups of 16 are compared without a
// branch per key.
ROUTESIM_VECTORIZED
std::size_t equal_keys(const std::uint64_t* a, const std::uint64_t* b, std::size_t n) {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    KeyLanes differ = {};
    for (std::size_t k = 0; k < 16; k += 4) add_differences(a + i + k, b + i + k, differ);
    if ((differ[0] | differ[1] | differ[2] | differ[3]) != 0) break;
  }
  while (i < n && a[i] == b[i]) ++i;
  return i;
}

// Whether two runs are one but for what they have been through. Recency matters on levels the keys
// have.
bool alike(const KeyRun& left, const KeyRun& right) {
  return left.set == right.set && left.mapping == right.mapping && left.flags == right.flags &&
         (left.set == 0 || left.request_recency + left.length == right.request_recency) &&
         (left.mapping == 0 || left.engine_recency + left.length == right.engine_recency);
}

}  // namespace

std::size_t KeyRuns::common_of(std::size_t s, std::span<const BlockKey> keys) const {
  return equal_keys(keys_.data() + s, keys.data(), keys.size());
}

KeyRuns::RunId KeyRuns::new_run(const KeyRun& run) {
  if (run.set != 0) sets_.acquire(run.set);
  if (free_runs_.empty()) {
    runs_.push_back(run);
    return static_cast<RunId>(runs_.size() - 1);
  }
  const RunId id = free_runs_.back();
  free_runs_.pop_back();
  runs_[id] = run;
  return id;
}

void KeyRuns::drop_run(RunId id) {
  if (runs_[id].set != 0) sets_.release(runs_[id].set);
  free_runs_.push_back(id);
}

void KeyRuns::label(std::uint32_t first, std::uint32_t length, RunId id) {
  std::fill_n(run_of_.begin() + first, length, id);
}

// The shorter part gets a new number.
void KeyRuns::split_before(std::uint32_t s) {
  const RunId id = run_of_[s];
  KeyRun left = runs_[id];
  if (left.first == s) return;
  KeyRun right = left;
  left.length = s - left.first;
  left.hint = s;
  right.first = s;
  right.length -= left.length;
  right.request_recency += left.length;
  right.engine_recency += left.length;
  const bool new_left = left.length < right.length;
  const KeyRun& small = new_left ? left : right;
  label(small.first, small.length, new_run(small));
  runs_[id] = new_left ? right : left;
}

KeyRun& KeyRuns::cut_out(std::uint32_t s, std::size_t n) {
  const auto end = s + static_cast<std::uint32_t>(n);
  const std::uint32_t run_end = (*this)[s].end();
  ROUTESIM_DCHECK(end <= run_end, "what is cut out of a run is part of it");
  split_before(s);
  if (end < run_end) split_before(end);
  return runs_[run_of_[s]];
}

void KeyRuns::join(std::uint32_t s) {
  const RunId left_id = run_of_[s - 1];
  const RunId right_id = run_of_[s];
  KeyRun& left = runs_[left_id];
  KeyRun& right = runs_[right_id];
  if (!joining_ || left_id == 0 || !alike(left, right)) return;
  if (left.length >= right.length) {
    label(right.first, right.length, left_id);
    left.length += right.length;
    left.hint = right.hint;
    drop_run(right_id);
  } else {
    label(left.first, left.length, right_id);
    right.first = left.first;
    right.length += left.length;
    right.request_recency = left.request_recency;
    right.engine_recency = left.engine_recency;
    drop_run(left_id);
  }
}

void KeyRuns::isolate_all() {
  joining_ = false;
  for (std::uint32_t s = 0; s < keys_.size(); ++s)
    if (live(s)) isolate(s);
}

std::uint32_t KeyRuns::append(std::uint64_t key, std::uint32_t flags) {
  const auto s = static_cast<std::uint32_t>(keys_.size());
  ROUTESIM_CHECK(s < kNone - 1, "too many keys");
  keys_.push_back(key);
  run_of_.push_back(new_run({.first = s, .length = 1, .flags = flags}));
  return s;
}

void KeyRuns::reuse(std::uint32_t s, std::uint64_t key, std::uint32_t flags) {
  keys_[s] = key;
  run_of_[s] = new_run({.first = s, .length = 1, .flags = flags});
}

void KeyRuns::free(std::uint32_t s, std::size_t n) {
  cut(s, n);
  drop_run(run_of_[s]);
  label(s, static_cast<std::uint32_t>(n), 0);
}

}  // namespace routesim::policies
