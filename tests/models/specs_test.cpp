// What a model's dimensions and a way to shard it must satisfy, each with the sentence that says
// so.
#include "models/specs.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/base/messages.h"
#include "tests/models/model_fixture.h"

namespace routesim::models {
namespace {

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
