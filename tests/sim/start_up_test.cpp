// How long servers take to start: the phases by value, and their sum against what others measured
// (scenarios/measured/start_up/start_up.csv).
#include "sim/fleet/start_up.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sim/plan/fleet_plan.h"
#include "tools/ingest/servers/catalogue_file.h"

namespace routesim::sim {
namespace {

Duration whole_seconds(std::int64_t n) { return Duration::seconds(n); }

TEST(StartUp, AddsItsPhases) {
  StartUpConfig c;
  c.node = whole_seconds(10);
  c.image_pull = whole_seconds(20);
  c.process = whole_seconds(5);
  c.load = whole_seconds(30);
  c.compile = whole_seconds(40);
  c.warm_up = whole_seconds(7);
  c.probe_period = whole_seconds(4);
  const StartUpTimes t = start_up_times(c, {});
  EXPECT_EQ(t.cold(), whole_seconds(114));
  EXPECT_EQ(t.restart(), whole_seconds(84));
}

// 9.5 s of imports; 64 GB at 1.1 GB/s and 8.3 GB/s into the GPU; 60 layers of 0.17 + 0.54 s; 2 s
// and 102 graphs of 60 * 0.55 ms.
TEST(StartUp, DerivesThePhasesOfAModel) {
  StartingServer server{.weight_bytes = 64e9, .gpu_weight_bytes = 64e9, .layers = 60};
  server.cuda_graphs = 102;
  StartUpConfig c;
  const StartUpTimes t = start_up_times(c, server);
  EXPECT_EQ(t.node, Duration::zero());
  EXPECT_EQ(t.image_pull, Duration::zero());
  EXPECT_NEAR(t.process.to_seconds(), 9.5, 1e-9);
  EXPECT_NEAR(t.cached.to_seconds(), 64 / 1.1, 1e-6);
  EXPECT_NEAR(t.load.to_seconds(), 64 / 1.1 + 64 / 8.3, 1e-6);
  EXPECT_NEAR(t.compile.to_seconds(), 42.6, 1e-6);
  EXPECT_NEAR(t.warm_up.to_seconds(), 2 + 3.366, 1e-6);
  EXPECT_NEAR(t.probe.to_seconds(), 2.5, 1e-9);
  c.compile_cache = true;
  EXPECT_NEAR(start_up_times(c, server).compile.to_seconds(), 18.9, 1e-6);
  server.compiles = false;
  server.cuda_graphs = 0;
  EXPECT_EQ(start_up_times(c, server).compile, Duration::zero());
  EXPECT_NEAR(start_up_times(c, server).warm_up.to_seconds(), 2, 1e-9);
}

double load_s(const StartUpConfig& c, const StartingServer& server) {
  return start_up_times(c, server).load.to_seconds();
}

TEST(StartUp, ReadsTheWeightsFromTheirStorage) {
  const StartingServer none_copied{.weight_bytes = 10e9};
  StartUpConfig c;
  EXPECT_NEAR(load_s(c, none_copied), 10 / 1.1, 1e-6);
  StartingServer four = none_copied;
  four.gpus = 4;  // four processes read at once
  EXPECT_NEAR(load_s(c, four), 10 / 4.4, 1e-6);
  four.gpus = 8;  // but the disk gives 5 GB/s
  EXPECT_NEAR(load_s(c, four), 2, 1e-6);
  c.storage = WeightStorage::kNetwork;
  EXPECT_NEAR(load_s(c, four), 20, 1e-6);
  c.storage = WeightStorage::kObjectStore;
  EXPECT_NEAR(load_s(c, four), 10 / 0.75, 1e-6);
  c.storage_gb_per_s = 2;
  EXPECT_NEAR(load_s(c, four), 5, 1e-6);
  c.storage = WeightStorage::kMemory;
  EXPECT_NEAR(load_s(c, four), 0, 1e-6);
}

// Of the slices that one of eight GPUs holds, 0.35 lie scattered over the file: it reads eight
// times as much of these.
TEST(StartUp, ReadsScatteredSlicesWhole) {
  StartUpConfig c;
  c.storage = WeightStorage::kMemory;
  EXPECT_NEAR(load_s(c, {.gpu_weight_bytes = 8.3e9, .slices = 1}), 1, 1e-6);
  EXPECT_NEAR(load_s(c, {.gpu_weight_bytes = 8.3e9, .slices = 8}), 1 + 0.35 * 7, 1e-6);
}

// The page cache outlives the container, the image is there, compiled code is gone with it.
TEST(StartUp, AContainerStartedAgainFindsItsWeightsInMemory) {
  StartUpConfig c;
  c.image_gb = 12.9;
  c.storage_gb_per_s = 2;
  const StartingServer server{.weight_bytes = 64e9, .gpu_weight_bytes = 8.3e9, .layers = 10};
  const StartUpTimes t = start_up_times(c, server);
  EXPECT_NEAR(t.image_pull.to_seconds(), 100, 1e-6);
  EXPECT_NEAR(t.cold().to_seconds(), 100 + 9.5 + 32 + 1 + 7.1 + 2 + 2.5, 1e-6);
  EXPECT_NEAR(t.restart().to_seconds(), 9.5 + 1 + 7.1 + 2 + 2.5, 1e-6);
  c.load = whole_seconds(30);  // a load that is given is that of every start
  EXPECT_EQ(start_up_times(c, server).cached, Duration::zero());
}

// Nobody looks for 200 s. The next look is half a period later in the mean, and three more follow.
// A container that is started again answers after 14 s, in place of 34, and waits for the rest.
TEST(StartUp, TheProbesDelayIsALowerBound) {
  StartUpConfig c;
  c.node = whole_seconds(50);
  c.process = whole_seconds(4);
  c.compile = c.warm_up = whole_seconds(5);
  c.probe_period = whole_seconds(7);
  const StartingServer server{.weight_bytes = 22e9, .layers = 1};  // 20 s at 1.1 GB/s
  EXPECT_EQ(start_up_times(c, server).cold(), Duration::milliseconds(87'500));
  c.probe_delay = whole_seconds(200);
  c.probe_repeats = whole_seconds(21);
  const StartUpTimes t = start_up_times(c, server);
  EXPECT_EQ(t.cold(), Duration::milliseconds(274'500));
  EXPECT_EQ(t.restart(), Duration::milliseconds(224'500));
  // Between the two starts, it is seen by the shorter one alone.
  c.probe_delay = whole_seconds(20);
  EXPECT_EQ(start_up_times(c, server).cold(), Duration::milliseconds(108'500));
  EXPECT_EQ(start_up_times(c, server).restart(), Duration::milliseconds(44'500));
  c.total = whole_seconds(217);  // twice as long
  EXPECT_EQ(start_up_times(c, server).cold(), whole_seconds(217));
  EXPECT_EQ(start_up_times(c, server).restart(), whole_seconds(89));
}

// 6 s for sandbox and mounts; 83.7 + 4.3 GB at 8.8 GB/s; 50 GB over PCIe at 25 GB/s.
TEST(StartUp, RestoresASnapshot) {
  StartUpConfig c;
  c.snapshot = true;
  const StartUpTimes t = start_up_times(
      c, {.weight_bytes = 83.7e9, .gpu_weight_bytes = 50e9, .layers = 60, .cuda_graphs = 100});
  EXPECT_NEAR(t.cold().to_seconds(), 6 + 10 + 2 + 2.5, 1e-6);
  EXPECT_EQ(t.restart(), t.cold());
}

TEST(StartUp, SharesAMeasuredWholeAmongThePhases) {
  StartUpConfig c;
  c.total = whole_seconds(200);
  c.image_pull = whole_seconds(20);
  c.process = whole_seconds(10);
  c.load = whole_seconds(30);
  c.compile = whole_seconds(30);
  c.warm_up = whole_seconds(10);
  c.probe_period = Duration::zero();
  const StartUpTimes t = start_up_times(c, {});
  EXPECT_EQ(t.cold(), whole_seconds(200));
  EXPECT_EQ(t.image_pull, whole_seconds(40));
  EXPECT_EQ(t.restart(), whole_seconds(160));
  // What is read from storage shrinks with the load: 32 s of 64 of which the whole is 128.
  StartUpConfig derived;
  derived.total = whole_seconds(64);
  derived.storage_gb_per_s = 1;
  derived.process = whole_seconds(64);
  derived.compile = derived.warm_up = Duration::zero();
  derived.probe_period = Duration::zero();
  const StartUpTimes half =
      start_up_times(derived, {.weight_bytes = 32e9, .gpu_weight_bytes = 32 * 8.3e9, .layers = 1});
  EXPECT_NEAR(half.cold().to_seconds(), 64, 1e-6);
  EXPECT_NEAR(half.restart().to_seconds(), 48, 1e-6);
}

// ---- Of a pool. ---------------------------------------------------------------------------------

/// The start of Qwen3-32B, 64 layers and 65.5 GB, on H100s.
StartUpTimes start_of(const PoolConfig& pool, const EngineRules& rules) {
  const models::Catalogue& catalogue = tools::builtin_catalogue();
  return start_up_of(pool, *catalogue.find_model("Qwen3-32B"),
                     *catalogue.find_accelerator("H100-SXM"), rules);
}

/// CUDA graphs that a pool captures, by the length of its warm-up.
std::int64_t graphs_of_pool(const PoolConfig& pool, const EngineRules& rules) {
  return std::llround((start_of(pool, rules).warm_up.to_seconds() - 2) / (64 * 0.55e-3));
}

TEST(StartUp, CountsTheGraphsOfAVllm) {
  PoolConfig pool;
  EngineRules rules;
  rules.max_num_seqs = 1024;
  EXPECT_EQ(graphs_of_pool(pool, rules), 102);  // 51 sizes, piecewise and full
  rules.max_num_seqs = 256;
  EXPECT_EQ(graphs_of_pool(pool, rules), 51 + 35);
  rules.max_num_seqs = 3;
  EXPECT_EQ(graphs_of_pool(pool, rules), 3 + 2);  // 1, 2, 4; 1, 2
  pool.engine.preset = EnginePreset::k2025H2;
  rules.max_num_seqs = 1024;
  EXPECT_EQ(graphs_of_pool(pool, rules), 67 + 67);  // every eighth up to 512
  pool.engine.preset = EnginePreset::k2025Q3;
  rules.max_num_seqs = 256;
  EXPECT_EQ(graphs_of_pool(pool, rules), 67);  // piecewise alone
  rules.max_num_seqs = 128;
  EXPECT_EQ(graphs_of_pool(pool, rules), 35);
  pool.engine.enforce_eager = true;
  EXPECT_EQ(graphs_of_pool(pool, rules), 0);
  EXPECT_EQ(start_of(pool, rules).compile, Duration::zero());
}

TEST(StartUp, CountsTheGraphsOfAnSglang) {
  PoolConfig pool;
  pool.engine.kind = EngineKind::kSglang;
  EngineRules rules;
  rules.sglang = SglangRules{};
  rules.sglang->largest_graph = 256;
  EXPECT_EQ(graphs_of_pool(pool, rules), 36);  // 1, 2, 4, 8, 12, and 16 to 256 by 8
  rules.sglang->largest_graph = 512;
  EXPECT_EQ(graphs_of_pool(pool, rules), 52);
  EXPECT_EQ(start_of(pool, rules).compile, Duration::zero());
}

// Two stages have 32 layers each, and four GPUs read at once; each keeps a quarter, of whose column
// slices it reads twice as much.
TEST(StartUp, SharesTheModelAmongItsGpus) {
  PoolConfig pool;
  const StartUpTimes one = start_of(pool, {});
  EXPECT_NEAR(one.cached.to_seconds(), 65.5 / 1.1, 0.2);
  EXPECT_NEAR((one.load - one.cached).to_seconds(), 65.5 / 8.3, 0.05);
  EXPECT_NEAR(one.compile.to_seconds(), 64 * 0.71, 1e-6);
  pool.tensor_parallel = 2;
  pool.pipeline_parallel = 2;
  const StartUpTimes four = start_of(pool, {});
  EXPECT_NEAR(four.cached.to_seconds(), 65.5 / 4.4, 0.05);
  EXPECT_NEAR((four.load - four.cached).to_seconds(), 65.5 / 4 * 1.35 / 8.3, 0.2);
  EXPECT_NEAR(four.compile.to_seconds(), 32 * 0.71, 1e-6);
}

// ---- Against what others measured. --------------------------------------------------------------

struct MeasuredStart {
  std::string line, storage, phase, held;
  StartUpConfig config;
  StartingServer server;
  double seconds = 0;
};

MeasuredStart parsed(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
  EXPECT_EQ(cells.size(), 15U) << line;
  cells.resize(15);
  MeasuredStart m{.line = line, .storage = cells[6], .phase = cells[11], .held = cells[13]};
  m.seconds = std::stod(cells[12]);
  m.server.layers = std::stoll(cells[1]);
  m.server.weight_bytes = std::stod(cells[2]) * 1e9;
  m.server.gpus = m.server.slices = std::stoll(cells[4]);
  m.server.gpu_weight_bytes = m.server.weight_bytes / std::stod(cells[4]);
  m.server.cuda_graphs = std::stoll(cells[10]);
  m.config.snapshot = m.storage == "snapshot";
  if (!m.config.snapshot) {
    const auto& names = EnumNames<WeightStorage>::value;
    const auto* name = std::find(names.begin(), names.end(), m.storage);
    EXPECT_NE(name, names.end()) << line;
    m.config.storage = static_cast<WeightStorage>(name - names.begin());
  }
  if (!cells[7].empty()) m.config.storage_gb_per_s = std::stod(cells[7]);
  if (!cells[8].empty()) m.config.image_gb = std::stod(cells[8]);
  m.config.compile_cache = cells[9] == "yes";
  // These logs end where the server listens; the snapshot's clock where its probe is answered.
  if (!m.config.snapshot) m.config.probe_period = Duration::zero();
  return m;
}

double simulated(const MeasuredStart& m) {
  const StartUpTimes t = start_up_times(m.config, m.server);
  if (m.phase == "process") return t.process.to_seconds();
  if (m.phase == "load") return t.load.to_seconds();
  if (m.phase == "compile") return t.compile.to_seconds();
  if (m.phase == "warm_up") return t.warm_up.to_seconds();
  if (m.phase == "engine") return (t.compile + t.warm_up).to_seconds();
  if (m.phase == "pull_and_process") return (t.image_pull + t.process).to_seconds();
  EXPECT_EQ(m.phase, "total") << m.line;
  return t.cold().to_seconds();
}

std::vector<MeasuredStart> measured_starts() {
  std::ifstream file(ROUTESIM_SOURCE_DIR "/scenarios/measured/start_up/start_up.csv");
  EXPECT_TRUE(file.is_open());
  std::vector<MeasuredStart> all;
  std::string line;
  std::getline(file, line);  // the header
  while (std::getline(file, line)) all.push_back(parsed(line));
  return all;
}

// One set of parameters for all: wholes are within 25 %, 6 % in the mean; phases within 35 % or 4
// s.
TEST(StartUp, IsWithinAQuarterOfWhatOthersMeasured) {
  int wholes = 0, phases = 0;
  double sum = 0;
  for (const MeasuredStart& m : measured_starts()) {
    if (m.held != "yes") continue;
    const double is = simulated(m), error = std::abs(is / m.seconds - 1);
    if (m.phase == "total") {
      EXPECT_LE(error, 0.25) << m.line << ": " << is;
      sum += error;
      ++wholes;
    } else {
      EXPECT_LE(std::min(error / 0.35, std::abs(is - m.seconds) / 4), 1) << m.line << ": " << is;
      ++phases;
    }
  }
  EXPECT_EQ(wholes, 53);
  EXPECT_EQ(phases, 54);
  EXPECT_LE(sum / wholes, 0.06);
}

}  // namespace
}  // namespace routesim::sim
