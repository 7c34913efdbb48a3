// Traces and conversations that stand in memory.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "workloads/conversations/conversation_data.h"
#include "workloads/traces/trace_readers.h"

namespace routesim::workloads::testing {

/// Hands out items one after the other, as the reader `Base` does.
template <class Base, class Item>
class MemoryReader final : public Base {
 public:
  explicit MemoryReader(std::vector<Item> items) : items_(std::move(items)) {}
  bool next(Item& item) override {
    if (position_ == items_.size()) return false;
    item = items_[position_++];
    return true;
  }
  const Diagnostics& diagnostics() const override { return diagnostics_; }

 private:
  std::vector<Item> items_;
  std::size_t position_ = 0;
  Diagnostics diagnostics_;
};

inline std::unique_ptr<TraceReader> reader_of(std::vector<TraceRecord> records) {
  return std::make_unique<MemoryReader<TraceReader, TraceRecord>>(std::move(records));
}
inline std::unique_ptr<ConversationReader> reader_of(std::vector<Conversation> chats) {
  return std::make_unique<MemoryReader<ConversationReader, Conversation>>(std::move(chats));
}

}  // namespace routesim::workloads::testing
