// Every described struct can be visited and says what each key is; what a model's dimensions must
// satisfy.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "models/catalogue.h"
#include "models/measured.h"
#include "models/specs.h"
#include "tests/base/messages.h"
#include "tests/models/model_fixture.h"

namespace routesim::models {
namespace {

// Every described struct of the module can be visited, and says what each key is.

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

// What a model's dimensions and a way to shard it must satisfy, each with the sentence that says
// so.

/// What is said of the catalogue's model after a change.
std::string said_of(const char* name, const std::function<void(ModelSpec&)>& change) {
  ModelSpec m = *catalogue().find_model(name);
  change(m);
  Diagnostics d;
  const bool good = check_model(m, d);
  EXPECT_EQ(good, d.items().empty());
  return messages_of(d);
}

std::string said_of(const char* name, const Parallelism& p) {
  Diagnostics d;
  const bool good = check_parallelism(*catalogue().find_model(name), p, d);
  EXPECT_EQ(good, d.items().empty());
  return messages_of(d);
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' does not say '" << part << "'";
}

TEST(ModelSpec, DimensionsMustFitTogether) {
  EXPECT_EQ(said_of("Qwen3-32B", [](ModelSpec&) {}), "");
  EXPECT_EQ(said_of("DeepSeek-R1", [](ModelSpec&) {}), "");
  expect_part(said_of("Qwen3-32B", [](ModelSpec& m) { m.layers = 0; }),
              "layers: must be at least 1 (got 0)");
  expect_part(said_of("Qwen3-32B", [](ModelSpec& m) { m.kv_heads = 7; }),
              "kv_heads: must divide the number of query heads 64 (got 7)");
  expect_part(said_of("DeepSeek-R1", [](ModelSpec& m) { m.v_head_dim = 0; }),
              "v_head_dim: must be at least 1");
  expect_part(said_of("DeepSeek-R1", [](ModelSpec& m) { m.experts_per_token = m.experts + 1; }),
              "experts_per_token: cannot exceed experts = 256 (got 257)");
  expect_part(said_of("DeepSeek-R1", [](ModelSpec& m) { m.dense_layers = 62; }),
              "dense_layers: cannot exceed layers = 61 (got 62)");
  expect_part(said_of("Qwen3-32B", [](ModelSpec& m) { m.sliding_layers = 65; }),
              "sliding_layers: cannot exceed layers = 64 (got 65)");
  expect_part(said_of("Qwen3-32B",
                      [](ModelSpec& m) {
                        m.sliding_layers = 2;
                        m.sliding_window = 0;
                      }),
              "sliding_window: must be at least 1 when sliding_layers is set");
}

TEST(ModelSpec, DegreesOfParallelismMustDivideIt) {
  EXPECT_EQ(said_of("Qwen3-32B", {.tp = 2}), "");
  expect_part(said_of("Qwen3-32B", {.tp = 0}), "tp: must be at least 1 (got 0)");
  expect_part(said_of("Qwen3-32B", {.tp = 3}), "tp: must divide the 64 attention heads");
  expect_part(said_of("Qwen3-32B", {.tp = 1, .pp = 65}), "pp: cannot exceed the 64 layers");
  expect_part(said_of("Qwen3-32B", {.tp = 1, .pp = 1, .dp = 2, .ep = 2}),
              "ep: needs a mixture-of-experts model");
  expect_part(said_of("DeepSeek-R1", {.tp = 1, .pp = 1, .dp = 8, .ep = 4}),
              "ep: must be 1 or tp * dp = 8 (got 4)");
  expect_part(said_of("DeepSeek-R1", {.tp = 8, .pp = 1, .dp = 64, .ep = 512}),
              "ep: cannot exceed the 256 experts");
  expect_part(said_of("DeepSeek-R1", {.tp = 16, .pp = 1, .dp = 3, .ep = 1}),
              "tp * dp must divide the expert width 2048");
}

}  // namespace
}  // namespace routesim::models
