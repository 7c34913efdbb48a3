// Every described struct of the module can be visited, and says what each key is.
#include <gtest/gtest.h>

#include <set>

#include "models/catalogue.h"
#include "models/measured.h"

namespace routesim::models {
namespace {

/// Notes keys, fails on a repeated or undocumented one and on a default outside its own bounds.
class Audit final : public Describer {
 public:
  void boolean(const Field& f, bool&) override { note(f); }
  void integer(const Field& f, std::int64_t& v, const IntRange& r) override {
    note(f);
    EXPECT_TRUE(f.required || (v >= r.min && v <= r.max)) << f.name;
  }
  void real(const Field& f, double& v, const RealRange& r) override {
    note(f);
    const bool inside =
        (r.min_open ? v > r.min : v >= r.min) && (r.max_open ? v < r.max : v <= r.max);
    EXPECT_TRUE(f.required || inside) << f.name;
  }
  void text(const Field& f, std::string&) override { note(f); }
  void duration(const Field& f, Duration& v, const DurationRange& r) override {
    note(f);
    EXPECT_TRUE(v >= r.min && v <= r.max) << f.name;
  }
  void choice(const Field& f, std::size_t& index,
              std::span<const std::string_view> names) override {
    note(f);
    EXPECT_LT(index, names.size()) << f.name;
  }
  void document(const Field& f, Document&) override { note(f); }
  void object(const Field& f, const std::function<void(Describer&)>& members) override {
    note(f);
    Audit inner;
    members(inner);
    EXPECT_FALSE(inner.keys.empty()) << f.name;
  }
  void list(const Field& f, ListAccess&) override { note(f); }
  void optional(const Field& f, OptionalAccess&) override { note(f); }

  std::set<std::string> keys;

 private:
  void note(const Field& f) {
    EXPECT_TRUE(keys.insert(std::string(f.name)).second) << "twice: " << f.name;
    EXPECT_FALSE(f.doc.empty()) << f.name;
  }
};

template <class T>
std::size_t audit(T value) {
  Audit a;
  describe(a, value);
  return a.keys.size();
}

TEST(Describe, EveryConfigStructOfTheModule) {
  EXPECT_EQ(audit(AcceleratorSpec{}), 38u);
  EXPECT_EQ(audit(ModelSpec{}), 44u);
  EXPECT_EQ(audit(StateLayers{}), 8u);
  EXPECT_EQ(audit(SparseLayers{}), 6u);
  EXPECT_EQ(audit(CompressedLayers{}), 2u);
  EXPECT_EQ(audit(WeightFormat{}), 3u);
  EXPECT_EQ(audit(Parallelism{}), 5u);
  EXPECT_EQ(audit(CostCurveParameters{}), 15u);
  EXPECT_EQ(audit(FittedRange{}), 4u);
  EXPECT_EQ(audit(FittedCurve{}), 9u);
  EXPECT_EQ(audit(MeasuredTable{}), 4u);
  EXPECT_EQ(audit(DecodePoint{}), 3u);
  EXPECT_EQ(audit(PrefillPoint{}), 3u);
}

}  // namespace
}  // namespace routesim::models
