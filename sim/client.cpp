#include "sim/client.h"

#include <algorithm>
#include <array>

namespace routesim::sim {

void Client::schedule(SimTime now) {
  const SimTime next = load_->next_action();
  if (next == SimTime::max() || next == pending_) return;
  pending_ = std::max(next, now);
  queue_.push(pending_, EventKind::kClientAction);
}

const PromptKeys& Client::keys_of(std::size_t i) {
  const workloads::Prompt& prompt = *due_[i].prompt;
  if (const PromptKeys* known = keys_.acquire_known(prompt)) return *known;
  key_prompts(i);
  return keys_.acquire(prompt);
}

// Computes block keys for due_[i] and, in the same batch, for requests due soon.
void Client::key_prompts(std::size_t i) {
  std::array<const workloads::Prompt*, PromptKeyTable::kTogether> prompts;
  std::size_t n = 0;
  const auto take = [&](const workloads::Request* request) {
    if (request == nullptr) return false;
    const workloads::Prompt* prompt = request->prompt.get();
    const bool taken = std::any_of(prompts.begin(), prompts.begin() + n,
                                   [&](const auto* other) { return other->id == prompt->id; });
    if (!taken && !keys_.knows(*prompt)) prompts[n++] = prompt;
    return n < prompts.size();
  };
  bool more = true;
  for (; more && i < due_.size(); ++i) more = take(&due_[i]);
  for (std::size_t next = 0; more; ++next) more = take(load_->upcoming(next));
  keys_.prepare({prompts.data(), n});
}

}  // namespace routesim::sim
