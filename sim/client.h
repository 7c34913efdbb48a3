// The load tool of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sim/event_queue.h"
#include "sim/kv/prompt_keys.h"
#include "workloads/load_generator.h"
#include "workloads/request.h"

namespace routesim::sim {

/// Owns the load tool: calls it when it wants to act, which is booked at most once, and keys the
/// prompts that it sends, several at a time.
class Client {
 public:
  /// The references outlive this.
  Client(std::unique_ptr<workloads::LoadGenerator> load, PromptKeyTable& keys, EventQueue& queue)
      : load_(std::move(load)), keys_(keys), queue_(queue) {}

  workloads::LoadGenerator& load() { return *load_; }
  const workloads::LoadGenerator& load() const { return *load_; }
  /// Books the load tool's next action.
  void schedule(SimTime now);
  /// EventKind::kClientAction: calls `send` with each request that is due, and its keys.
  template <class Send>
  void act(SimTime now, Send send) {
    if (pending_ != now) return;
    pending_ = SimTime::max();
    due_.clear();
    load_->advance(now, due_);
    for (std::size_t i = 0; i < due_.size(); ++i) {
      const PromptKeys& keys = keys_of(i);
      send(std::move(due_[i]), keys);
    }
    schedule(now);
  }

 private:
  const PromptKeys& keys_of(std::size_t i);
  void key_prompts(std::size_t i);

  std::unique_ptr<workloads::LoadGenerator> load_;
  PromptKeyTable& keys_;
  EventQueue& queue_;
  SimTime pending_ = SimTime::max();     ///< When it is called next.
  std::vector<workloads::Request> due_;  ///< Scratch of act().
};

}  // namespace routesim::sim
