// Every described struct: unique keys, real documentation, defaults inside their own bounds.
#include <cmath>
#include <set>

#include "workloads/conversations/conversations.h"
#include "workloads/groups/group_load.h"
#include "workloads/guidellm/guidellm.h"
#include "workloads/inference_perf/inference_perf.h"
#include "workloads/multi_round_qa/multi_round_qa.h"
#include "workloads/traces/trace_replay.h"
#include "workloads/vllm_bench/vllm_bench.h"

namespace routesim::workloads {
namespace {

class Auditor final : public Describer {
 public:
  int keys() const { return keys_; }

  void boolean(const Field& f, bool&) override { note(f); }
  void integer(const Field& f, std::int64_t& v, const IntRange& range) override {
    note(f);
    EXPECT_GE(v, range.min) << path(f);
    EXPECT_LE(v, range.max) << path(f);
  }
  void real(const Field& f, double& v, const RealRange& range) override {
    note(f);
    EXPECT_TRUE(range.min_open ? v > range.min : v >= range.min) << path(f);
    EXPECT_TRUE(range.max_open ? v < range.max : v <= range.max) << path(f);
    EXPECT_TRUE(range.allow_infinity || std::isfinite(v)) << path(f);
  }
  void text(const Field& f, std::string&) override { note(f); }
  void duration(const Field& f, Duration&, const DurationRange&) override { note(f); }
  void choice(const Field& f, std::size_t& index,
              std::span<const std::string_view> names) override {
    note(f);
    EXPECT_LT(index, names.size()) << path(f);
    EXPECT_EQ(std::set<std::string_view>(names.begin(), names.end()).size(), names.size());
  }
  void document(const Field& f, Document&) override { note(f); }
  void object(const Field& f, const std::function<void(Describer&)>& members) override {
    note(f);
    const std::string outer = prefix_;
    const auto outer_names = std::exchange(names_, {});
    prefix_ = path(f) + ".";
    members(*this);
    prefix_ = outer;
    names_ = outer_names;
  }
  void list(const Field& f, ListAccess& items) override {
    note(f);
    if (items.size() == 0 && f.name != "percentiles") items.resize(1);
    // Elements are documented by their list.
    element_ = true;
    items.visit(0, *this);
  }
  void optional(const Field& f, OptionalAccess& value) override {
    note(f);
    // An absent value has no default to check; what it describes is walked for its keys.
    if (value.engaged()) return;
    value.engage(true);
    element_ = true;
    AuditElsewhere elsewhere(*this);
    value.visit(elsewhere);
    keys_ += elsewhere.keys;
    element_ = false;
    value.engage(false);
  }

 private:
  /// Looks at the keys of an optional struct only; a scalar has nothing more to check.
  struct AuditElsewhere final : Describer {
    explicit AuditElsewhere(Auditor& a) : auditor(a) {}
    void boolean(const Field&, bool&) override {}
    void integer(const Field&, std::int64_t&, const IntRange&) override {}
    void real(const Field&, double&, const RealRange&) override {}
    void text(const Field&, std::string&) override {}
    void duration(const Field&, Duration&, const DurationRange&) override {}
    void choice(const Field&, std::size_t&, std::span<const std::string_view>) override {}
    void document(const Field&, Document&) override {}
    void object(const Field&, const std::function<void(Describer&)>& members) override {
      Auditor inner;
      inner.prefix_ = auditor.prefix_;
      members(inner);
      keys += inner.keys();
    }
    void list(const Field&, ListAccess&) override {}
    void optional(const Field&, OptionalAccess&) override {}
    Auditor& auditor;
    int keys = 0;
  };

  std::string path(const Field& f) const { return prefix_ + std::string(f.name); }
  void note(const Field& f) {
    if (std::exchange(element_, false)) return;
    ++keys_;
    EXPECT_FALSE(f.name.empty()) << prefix_;
    EXPECT_TRUE(names_.insert(std::string(f.name)).second) << "twice: " << path(f);
    EXPECT_GE(f.doc.size(), 4U) << path(f);
    EXPECT_TRUE(f.doc.ends_with('.')) << path(f) << ": " << f.doc;
  }

  std::string prefix_;
  std::set<std::string> names_;
  bool element_ = false;
  int keys_ = 0;
};

template <class T>
int audit() {
  Auditor auditor;
  T value;
  describe(auditor, value);
  return auditor.keys();
}

TEST(Describe, EveryKeyIsDocumentedAndEveryDefaultIsLegal) {
  EXPECT_GT(audit<inference_perf::Config>(), 120);
  EXPECT_GT(audit<vllm_bench::Config>(), 40);
  EXPECT_GT(audit<ConversationsConfig>(), 15);
  EXPECT_GT(audit<TraceReplayConfig>(), 5);
  EXPECT_GT(audit<GroupLoadConfig>(), 15);
  EXPECT_EQ(audit<MultiRoundQaConfig>(), 16);
  EXPECT_GT(audit<guidellm::Config>(), 20);
  EXPECT_GT(audit<WorkloadOptions>(), 10);
  EXPECT_EQ(audit<CsvColumns>(), 9);
}

}  // namespace
}  // namespace routesim::workloads
