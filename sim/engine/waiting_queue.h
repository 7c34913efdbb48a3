// The requests of one engine core that do not run yet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "sim/kv/sequence.h"
#include "sim/rules/engine_config.h"

namespace routesim::sim {

/// Owns vLLM's waiting queue, in the order of its scheduling policy, and beside it the requests
/// that wait for remote KV, oldest first. Remembers whether a pass needs to try the head of the
/// queue again.
class WaitingQueue {
 public:
  WaitingQueue(SchedulingPolicy policy, SequenceTable& sequences)
      : policy_(policy), sequences_(sequences) {}
  WaitingQueue(const WaitingQueue&) = delete;
  WaitingQueue& operator=(const WaitingQueue&) = delete;

  /// Requests in the queue; without those that wait for remote KV.
  const std::deque<SequenceSlot>& queue() const { return queue_; }
  const std::vector<SequenceSlot>& loading() const { return loading_; }
  bool empty() const { return queue_.empty() && loading_.empty(); }
  std::int64_t size() const { return static_cast<std::int64_t>(queue_.size() + loading_.size()); }

  /// Adds a request at its place, behind its equals.
  void add(SequenceSlot s) {
    if (policy_ == SchedulingPolicy::kPriority) {
      queue_.insert(std::upper_bound(queue_.begin(), queue_.end(), s, ByPriority{sequences_}), s);
      retry_head();
    } else {
      if (queue_.empty()) retry_head();
      queue_.push_back(s);
    }
  }
  /// Puts a preempted request before its equals.
  void put_back(SequenceSlot s) {
    if (policy_ == SchedulingPolicy::kFcfs)
      queue_.push_front(s);
    else
      queue_.insert(std::lower_bound(queue_.begin(), queue_.end(), s, ByPriority{sequences_}), s);
    retry_head();
  }
  void add_loading(SequenceSlot s) { loading_.push_back(s); }
  void remove_at(std::size_t position) {
    if (position == 0)
      queue_.pop_front();
    else
      queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(position));
  }
  /// Puts another order, place by place.
  void set_at(std::size_t position, SequenceSlot s) { queue_[position] = s; }
  void remove(SequenceSlot s) { queue_.erase(std::find(queue_.begin(), queue_.end(), s)); }
  void remove_loading_at(std::size_t position) {
    loading_.erase(loading_.begin() + static_cast<std::ptrdiff_t>(position));
  }
  void remove_loading(SequenceSlot s) {
    loading_.erase(std::find(loading_.begin(), loading_.end(), s));
  }

  /// Some remote KV has arrived: the next pass can admit its request.
  bool any_arrived() const {
    return std::any_of(loading_.begin(), loading_.end(), [this](SequenceSlot s) {
      return sequences_[s].remote != RemoteKv::kMissing;
    });
  }

  /// The head of the queue did not fit, and nothing has changed since: the next pass need not try.
  bool head_blocked() const { return head_ == Head::kBlocked; }
  void block_head() { head_ = Head::kBlocked; }
  void retry_head() { head_ = Head::kUntried; }

 private:
  enum class Head : std::uint8_t { kUntried, kBlocked };
  struct ByPriority {
    const SequenceTable& sequences;
    bool operator()(SequenceSlot a, SequenceSlot b) const {
      const EngineRequest& x = sequences[a].request;
      const EngineRequest& y = sequences[b].request;
      return std::pair(x.priority, x.arrival_order) < std::pair(y.priority, y.arrival_order);
    }
  };

  SchedulingPolicy policy_;
  Head head_ = Head::kUntried;
  std::deque<SequenceSlot> queue_;
  std::vector<SequenceSlot> loading_;
  SequenceTable& sequences_;
};

}  // namespace routesim::sim
