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

}  // namespace
}  // namespace routesim::models
