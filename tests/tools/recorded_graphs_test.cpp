// Graphs of recorded sessions against those that inference-perf makes: data/replay/README.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/ingest/traces/recordings.h"

namespace routesim::workloads {
namespace {

std::string segments_of(const SessionCall& call, bool with_tokens) {
  std::string out;
  std::size_t next = 0;
  for (const PromptPart& part : call.parts) {
    const bool recorded = part.kind == PromptPart::Kind::kRecorded;
    out += recorded ? " r" : part.kind == PromptPart::Kind::kShared ? " s" : " a";
    out += std::to_string(part.messages);
    if (!recorded) out += "@" + std::to_string(part.source);
    for (std::uint32_t m = 0; recorded && with_tokens && m < part.messages; ++m) {
      std::int64_t tokens = 0;
      for (const Segment& s : *call.recorded[next]) tokens += s.length;
      ++next;
      out += (m == 0 ? ":" : ",") + std::to_string(tokens);
    }
  }
  return out;
}

std::string graph_of(const Session& session, bool with_tokens) {
  std::ostringstream out;
  for (std::size_t i = 0; i < session.calls.size(); ++i) {
    const SessionCall& call = session.calls[i];
    std::vector<std::uint32_t> predecessors = call.predecessors;
    std::sort(predecessors.begin(), predecessors.end());
    out << i << " p";
    for (const std::uint32_t p : predecessors) out << " " << p;
    out << " w " << call.wait.ns() / 1'000'000 << " o " << call.output_tokens << " s"
        << segments_of(call, with_tokens) << "\n";
  }
  return out.str();
}

TEST(ReplayGraphs, AreThoseOfTheTool) {
  const auto folder = std::filesystem::path(ROUTESIM_SOURCE_DIR) / "tests/workloads/data/replay";
  int traces = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const bool weka = entry.path().filename().string().starts_with("weka");
    WekaTraceReplay weka_settings;
    OtelTraceReplay otel_settings;
    weka_settings.max_wait_ms = otel_settings.max_wait_ms = 1'000'000'000;
    tools::SessionFiles files =
        weka ? tools::SessionFiles(weka_settings) : tools::SessionFiles(otel_settings);
    std::ifstream in(entry.path(), std::ios::binary);
    Diagnostics d;
    files.read(in, entry.path().string(), false, d);
    for (const Diagnostic& item : d.items()) ADD_FAILURE() << to_string(item);
    const Sessions sessions = files.take();
    ASSERT_EQ(sessions.size(), 1U) << entry.path();
    auto expected = entry.path();
    std::ifstream graph(expected.replace_extension(".graph"), std::ios::binary);
    std::ostringstream text;
    text << graph.rdbuf();
    EXPECT_EQ(graph_of(sessions[0], weka), text.str()) << entry.path();
    ++traces;
  }
  EXPECT_EQ(traces, 8);
}

}  // namespace
}  // namespace routesim::workloads
