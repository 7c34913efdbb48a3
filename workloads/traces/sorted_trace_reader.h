// The base of readers of files that do not hold requests in the order of their times.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "workloads/traces/trace_readers.h"

namespace routesim::workloads {

/// Reads the whole file, then hands out the records in the order of their times, counted from the
/// first. Records of one instant keep the file's order. All records are in memory.
class SortedTraceReader : public TraceReader {
 public:
  explicit SortedTraceReader(bool from_first) : from_first_(from_first) {}

  bool next(TraceRecord& record) final {
    if (!read_) read_all();
    if (position_ == records_.size()) return false;
    record = std::move(records_[position_++]);
    return true;
  }

 protected:
  /// Appends the records in the file's order. Whether there was no error.
  virtual bool collect(std::vector<TraceRecord>& records) = 0;

 private:
  void read_all() {
    read_ = true;
    // Rows before a broken one are of no use: the error ends the run.
    if (!collect(records_)) records_.clear();
    std::stable_sort(records_.begin(), records_.end(),
                     [](const TraceRecord& a, const TraceRecord& b) { return a.at < b.at; });
    if (!from_first_ || records_.empty()) return;
    const Duration first = records_.front().at;
    for (TraceRecord& record : records_) record.at -= first;
  }

  bool from_first_;
  bool read_ = false;
  std::vector<TraceRecord> records_;
  std::size_t position_ = 0;
};

}  // namespace routesim::workloads
