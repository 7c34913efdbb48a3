// Our own measurements of an H100 and an H200 (scenarios/measured/gpu_kernels): the sentences of
// their README, and what the catalogue says of these GPUs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "models/roofline_parts.h"
#include "tests/models/model_fixture.h"

namespace routesim::models {
namespace {

const std::string kFolder = ROUTESIM_SOURCE_DIR "/scenarios/measured/gpu_kernels/";

/// One row by column name.
struct Row : std::map<std::string, std::string> {
  double number(const std::string& column) const { return std::stod(at(column)); }
  bool is(const std::string& column, const std::string& value) const { return at(column) == value; }
};

std::vector<Row> rows(const std::string& name, const std::function<bool(const Row&)>& wanted) {
  std::ifstream file(kFolder + name + ".csv");
  std::string line;
  std::getline(file, line);
  const auto cells = [](const std::string& text) {
    std::vector<std::string> found;
    std::stringstream stream(text);
    for (std::string cell; std::getline(stream, cell, ',');) found.push_back(cell);
    return found;
  };
  const std::vector<std::string> columns = cells(line);
  std::vector<Row> found;
  while (std::getline(file, line)) {
    const std::vector<std::string> values = cells(line);
    Row row;
    for (std::size_t i = 0; i < columns.size(); ++i) row[columns[i]] = values.at(i);
    if (wanted(row)) found.push_back(row);
  }
  return found;
}

std::vector<double> values(const std::vector<Row>& rows,
                           const std::function<double(const Row&)>& of) {
  std::vector<double> all;
  for (const Row& row : rows) all.push_back(of(row));
  std::sort(all.begin(), all.end());
  return all;
}

std::string decimals(double value, int digits) {
  std::ostringstream out;
  out.setf(std::ios::fixed);
  out.precision(digits);
  out << value;
  return out.str();
}

std::string range(const std::vector<double>& sorted, int digits) {
  return decimals(sorted.front(), digits) + " to " + decimals(sorted.back(), digits);
}

double median(const std::vector<double>& sorted) {
  return (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
}

/// Expects the README to say `sentence`, whatever its line breaks.
void expect_said(const std::string& sentence) {
  std::ifstream file(kFolder + "README.md");
  std::string text, word;
  while (file >> word) text += word + ' ';
  EXPECT_NE(text.find(sentence), std::string::npos) << sentence;
}

const AcceleratorSpec& gpu(const Row& row) {
  return *catalogue().find_accelerator(row.at("device"));
}

/// The share of the GPU's memory bandwidth that a row's `gb_per_s` is.
double of_bandwidth(const Row& row) {
  return row.number("gb_per_s") / (gpu(row).memory_tb_per_s * 1e3);
}

TEST(GpuKernels, CopiesTakeTheirBytesAndAFixedTime) {
  const auto single = rows("copies", [](const Row& r) {
    return r.is("method", "batch") && !r.is("direction", "both") &&
           r.number("block_bytes") >= 32768;
  });
  const auto errors = values(single, [](const Row& r) {
    const double bytes = r.number("block_bytes");
    const double us = 0.44 + bytes / (gpu(r).host_link_gb_per_s * 1e3);
    return 100 * std::abs(bytes / us / 1e3 / r.number("gb_per_s") - 1);
  });
  expect_said("all " + std::to_string(single.size()) + " rows of `batch` with blocks of 32 KiB");
  expect_said("are within " + decimals(errors.back(), 1) + " % of that");
  expect_said("at " + decimals(catalogue().find_accelerator("H100-SXM")->host_link_gb_per_s, 1) +
              " GB/s");
}

TEST(GpuKernels, CopyEnginesHardlyDisturbAStepAndCopyKernelsDo) {
  const auto slower = [](const std::string& method, bool product, bool memory) {
    return values(rows("copies_beside_compute",
                       [&](const Row& r) {
                         const bool big = r.is("compute", "product of 8192 rows");
                         return r.is("method", method) && (big ? product : memory);
                       }),
                  [](const Row& r) { return 100 * r.number("slower_by"); });
  };
  expect_said("read memory " + range(slower("copy engine", false, true), 1) + " % slower");
  expect_said("product at most " + decimals(slower("copy engine", true, false).back(), 1) + " %");
  expect_said("16 thread blocks they make them " +
              range(slower("kernel of 16 blocks", true, true), 1) + " % slower");
  expect_said("64 thread blocks " + range(slower("kernel of 64 blocks", true, true), 1) + " %");
}

TEST(GpuKernels, DecodeAttentionReadsAtTheCataloguesRate) {
  const auto large = [](const std::string& file) {
    return rows(file, [](const Row& r) {
      return (!r.contains("shared_prefix") || r.is("shared_prefix", "0")) &&
             r.number("kv_bytes") >= 256e6;
    });
  };
  const auto ours = large("decode_attention"), vllm = large("flash_attention");
  expect_said("a layer reads " + range(values(ours, of_bandwidth), 2) +
              " of the memory bandwidth with our kernel and " +
              range(values(vllm, of_bandwidth), 2));
  ASSERT_EQ(ours.size(), 118U);
  ASSERT_EQ(vllm.size(), 114U);
  const auto error = [](const Row& r) {
    const double us = r.number("kv_bytes") / (gpu(r).memory_tb_per_s * gpu(r).kv_mbu) / 1e6;
    return 100 * std::abs(us / r.number("us") - 1);
  };
  expect_said("`kv_mbu`, 0.85, is within " + decimals(values(ours, error).back(), 1) + " and " +
              decimals(values(vllm, error).back(), 1) + " % of these times");
}

/// The prices in `file` of one device, of rows with `value` in `column`; "all": the whole batch.
std::vector<double> prices(const std::string& file, const std::string& device,
                           const std::string& column, const std::string& value) {
  return values(rows(file,
                     [&](const Row& r) {
                       const bool all = value == "all" && r.at("readers") == r.at("batch");
                       return r.is("device", device) && (all || r.is(column, value));
                     }),
                [](const Row& r) { return r.number("price_of_shared"); });
}

TEST(GpuKernels, ThePriceOfASharedTokenFallsWithItsReadersAndNotWithTheLength) {
  const std::string vllm = "flash_attention_groups";
  for (const std::string device : {"H100-SXM", "H200"}) {
    for (const std::string& file : {vllm, std::string("decode_attention_groups")}) {
      std::string by_readers;
      for (const std::string readers : {"2", "4", "8", "all"}) {
        if (!by_readers.empty()) by_readers += readers == "all" ? " and " : ", ";
        by_readers += decimals(median(prices(file, device, "readers", readers)), 2);
      }
      expect_said(by_readers + " on the " + device.substr(0, 4));
    }
    // What step times make of them (widely_shared), at the price that the catalogue has.
    const double many = catalogue().find_accelerator(device)->shared_context_weight;
    for (const std::int64_t readers : {2, 4, 8}) {
      const BatchShape s{.shared_context = 1000 * (readers - 1), .shared_once = 1000};
      const double priced = 1 - (1 - many) * as_real(widely_shared(s)) / as_real(s.shared_context);
      EXPECT_NEAR(median(prices(vllm, device, "readers", std::to_string(readers))), priced, 0.05)
          << device << ", " << readers << " readers";
    }
    EXPECT_NEAR(median(prices(vllm, device, "readers", "all")), many, 0.01) << device;
    std::vector<double> by_length;
    for (const std::string length : {"2048", "4096", "6000", "8192", "12288", "16000", "24000"})
      by_length.push_back(median(prices(vllm, device, "prefix", length)));
    std::sort(by_length.begin(), by_length.end());
    expect_said("between " + decimals(by_length.front(), 2) + " and " +
                decimals(by_length.back(), 2) + " on the " + device.substr(0, 4));
  }
  const auto all = values(rows(vllm, [](const Row&) { return true; }),
                          [](const Row& r) { return r.number("price_of_shared"); });
  expect_said("lie between " + decimals(all.front(), 2) + " and " + decimals(all.back(), 2));
}

TEST(GpuKernels, ExpertsReadAsFastAsTheModelSays) {
  const auto few_rows = rows("experts", [](const Row& r) {
    return r.number("tokens") * r.number("per_token") <= 8 * r.number("experts");
  });
  ASSERT_EQ(few_rows.size(), 46U);
  std::vector<double> shares;
  for (const Row& r : few_rows) {
    if (r.number("weight_bytes_touched") >= 1e9) shares.push_back(of_bandwidth(r));
    ModelSpec m;
    m.layers = 1;
    m.hidden = std::stoll(r.at("hidden"));
    m.experts = std::stoll(r.at("experts"));
    m.experts_per_token = std::stoll(r.at("per_token"));
    m.expert_ffn = std::stoll(r.at("intermediate"));
    const ExpertCost cost(gpu(r), m, {}, false);
    BatchShape shape;
    shape.decode_requests = std::stoll(r.at("tokens"));
    const double us = cost.ns(shape) / 1e3 + 2 * gpu(r).kernel_us;
    EXPECT_NEAR(us / r.number("us"), 1, 0.15)
        << r.at("device") << ", " << r.at("tokens") << " tokens, " << r.at("experts") << " experts";
  }
  std::sort(shares.begin(), shares.end());
  expect_said("are read at " + range(shares, 2) + " of the bandwidth");
}

TEST(GpuKernels, WeightsStreamAtTheCataloguesRate) {
  const auto weight_bytes = [](const Row& r) {
    return 2 * r.number("inputs") * r.number("outputs");
  };
  const auto few = rows("products", [&](const Row& r) {
    return r.number("rows") > 0 && r.number("rows") <= 32 && weight_bytes(r) >= 134e6;
  });
  ASSERT_EQ(few.size(), 24U);
  for (const Row& r : few) {
    const double us = weight_bytes(r) / (gpu(r).memory_tb_per_s * gpu(r).weight_mbu) / 1e6;
    EXPECT_NEAR((us + gpu(r).kernel_us) / r.number("us"), 1, 0.07) << r.at("device");
  }
  expect_said("stream at " + range(values(few, of_bandwidth), 2) + " of the bandwidth");
  const auto many = rows("products", [](const Row& r) { return r.number("rows") >= 2048; });
  const auto rates =
      values(many, [](const Row& r) { return r.number("tflops") / gpu(r).bf16_tflops; });
  expect_said("products reach " + range(rates, 2) + " of the data sheet");
}

/// "the median (...), 0.84 to 1.11 in four fifths": the 10th and the 90th percentile.
std::string four_fifths(const std::vector<double>& sorted) {
  const std::size_t tenth = sorted.size() / 10;
  return range({sorted[tenth], sorted[sorted.size() - 1 - tenth]}, 2);
}

std::vector<Row> mixed_calls(const std::string& version) {
  return rows("mixed_attention",
              [&](const Row& r) { return r.is("kernel", "FlashAttention " + version); });
}

double of_sum(const Row& r) {
  return r.number("mixed_us") / (r.number("prompt_us") + r.number("decodes_us"));
}

TEST(GpuKernels, FlashAttention3AddsUpAPromptAndDecodes) {
  const auto calls = mixed_calls("3");
  const auto all = values(calls, of_sum);
  expect_said("takes " + decimals(median(all), 2) + " of the prompt alone plus the decodes alone");
  expect_said("(median of " + std::to_string(calls.size()) + " rows; " + four_fifths(all) +
              " in four fifths of them)");
  const auto of_longer = values(calls, [](const Row& r) {
    return r.number("mixed_us") / std::max(r.number("prompt_us"), r.number("decodes_us"));
  });
  expect_said("and " + decimals(median(of_longer), 2) + " times the longer of the two");
  std::vector<Row> brief, cached, chunks;
  for (const Row& r : calls) {
    if (r.number("mixed_us") < 50) brief.push_back(r);
    if (r.number("prompt_tokens") >= 512)
      chunks.push_back(r);
    else if (r.number("cached_tokens") > 0)
      cached.push_back(r);
  }
  expect_said("calls under 50 us take " + range(values(brief, of_sum), 2) + " of it");
  expect_said("up to " + decimals(values(cached, of_sum).back(), 2) + " times the sum");
  expect_said("four fifths take " + four_fifths(values(chunks, of_sum)) +
              " of the sum (one row: " + decimals(values(chunks, of_sum).back(), 2) + " times)");
}

TEST(GpuKernels, FlashAttention2SlowsDecodesBesideAPrompt) {
  const auto calls = mixed_calls("2");
  const auto all = values(calls, of_sum);
  expect_said("takes " + decimals(median(all), 2) + " times the sum (median), at most " +
              decimals(all.back(), 2) + " times");
  const auto slower = values(calls, [](const Row& r) {
    return r.number("decodes_in_that_call_us") / r.number("decodes_us");
  });
  expect_said(decimals(median(slower), 2) + " times in the median, " + range(slower, 2) +
              " times in all");
  const auto again = values(calls, [](const Row& r) {
    return r.number("mixed_us") / (r.number("prompt_us") + r.number("decodes_in_that_call_us"));
  });
  expect_said("holds again: " + decimals(median(again), 2) + " (median; " + four_fifths(again) +
              " in four fifths)");
  for (const Row& r : calls) {
    if (!r.is("heads", "64") || !r.is("prompt_tokens", "16") || !r.is("cached_tokens", "0") ||
        !r.is("decodes", "64") || !r.is("decode_context", "8192"))
      continue;
    expect_said("take " + r.at("mixed_us") + " us, where the prompt alone takes " +
                r.at("prompt_us") + " and the decodes alone " + r.at("decodes_us"));
  }
}

TEST(GpuKernels, DecodesRideAlongInTheProductsOfAShortPrompt) {
  std::map<std::pair<std::string, int>, double> us;
  for (const Row& r : rows("mixed_products", [](const Row&) { return true; }))
    us[{r.at("format") + r.at("tp"), std::stoi(r.at("rows"))}] = r.number("us");
  ASSERT_EQ(us.size(), 104U);
  std::map<int, std::vector<double>> of_sums, more;
  std::vector<double> of_longer;
  for (const std::string kind : {"bf161", "bf162", "fp81", "fp82"}) {
    for (const int prompt : {16, 128, 512, 2048}) {
      for (const int decodes : {8, 32, 64, 128}) {
        const double mixed = us[{kind, prompt + decodes}];
        const double one = us[{kind, prompt}], other = us[{kind, decodes}];
        of_sums[std::max(prompt, 128)].push_back(mixed / (one + other));
        if (prompt <= 128) of_longer.push_back(mixed / std::max(one, other));
        if (prompt == 2048) more[decodes].push_back(100 * (mixed / one - 1));
      }
    }
  }
  const auto said = [](std::vector<double> found, int digits) {
    std::sort(found.begin(), found.end());
    return range(found, digits);
  };
  expect_said("take " + said(of_longer, 2) + " times the longer of the two, " +
              said(of_sums[128], 2) + " of the sum");
  expect_said("beside 512 rows " + said(of_sums[512], 2) + " of the sum, and beside 2,048 rows " +
              said(of_sums[2048], 2));
  expect_said("cost at most " + decimals(*std::max_element(more[32].begin(), more[32].end()), 1) +
              " %, 64 rows " + said(more[64], 1) + " %");
}

TEST(GpuKernels, AsynchronousSchedulingHidesTheHostBehindALongStep) {
  const auto steps = [](const std::string& model, const std::string& asynchronous) {
    return rows("host_step", [&](const Row& r) {
      return r.is("model", model) && r.is("async_scheduling", asynchronous);
    });
  };
  const auto small = steps("qwen3-0.6b", "0"), large = steps("qwen3-8b", "0");
  ASSERT_EQ(small.size(), 6U);
  ASSERT_EQ(large.size(), 6U);
  const auto ms = [](const Row& r) { return decimals(r.number("host_us") / 1e3, 1); };
  const auto each = [](const std::vector<Row>& r) {
    const double more = r.back().number("host_us") - r.front().number("host_us");
    return decimals(more / (r.back().number("batch") - r.front().number("batch")) / 1e3, 3);
  };
  expect_said("takes " + ms(small.front()) + " and " + ms(large.front()) + " ms longer");
  expect_said("and " + ms(small.back()) + " and " + ms(large.back()) + " ms longer for 256");
  expect_said("about " + each(small) + " and " + each(large) + " ms a sequence more");
  const auto hidden = values(steps("qwen3-8b", "1"),
                             [](const Row& r) { return r.number("step_us") / r.number("gpu_us"); });
  expect_said("take " + range(hidden, 2) + " times the GPU's part");
  const auto bound = steps("qwen3-0.6b", "1");
  const auto of = [&](const std::string& column) {
    return range(values(bound, [&](const Row& r) { return r.number(column) / 1e3; }), 1);
  };
  expect_said("whose part is " + of("gpu_us") + " ms, still take " + of("host_us") + " ms longer");
}

}  // namespace
}  // namespace routesim::models
