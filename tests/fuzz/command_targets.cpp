// Targets that go through the command itself, with the input as one of its files.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/config_node.h"
#include "tests/fuzz/targets.h"
#include "tools/cli/cli.h"
#include "tools/ingest/loads/inference_perf_yaml.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/study/score/score.h"

namespace routesim::fuzz {

namespace {

namespace fs = std::filesystem;

/// A folder of this process, removed at its end; in memory where the system has such a place.
class Folder {
 public:
  Folder() {
    const fs::path base = fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
    path_ = base / ("routesim-fuzz-" + std::to_string(::getpid()));
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string write(const std::string& name, Bytes bytes) const {
    const fs::path file = path_ / name;
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    return file.string();
  }
  std::string write(const std::string& name, const std::string& text) const {
    return write(name, Bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
  }

 private:
  fs::path path_;
};

const Folder& folder() {
  static const Folder instance;
  return instance;
}

/// Keeps what the command says.
class QuietConsole final : public tools::Console {
 public:
  void complain(std::string_view text) override { said_ += text; }
  bool error_is_terminal() const override { return false; }
  const std::string& said() const { return said_; }

 private:
  std::string said_;
};

/// The command either succeeds, or complains and prints nothing.
void run_command(const std::vector<std::string>& arguments) {
  QuietConsole console;
  const tools::ExitCode code = tools::run_command_line(arguments, console);
  if (code == tools::ExitCode::kInternalError) throw InternalError(console.said());
  if (code == tools::ExitCode::kSuccess) return;
  ROUTESIM_CHECK(code == tools::ExitCode::kInvalid,
                 "an exit code that is neither success nor invalid input");
  ROUTESIM_CHECK(console.output().empty(), "an error, yet something on standard output");
  ROUTESIM_CHECK(console.said().find("error: ") != std::string::npos,
                 "invalid input without an error message");
}

/// The input as one document, or nothing and an error.
ConfigNode::Ptr parse_whole(Bytes input, Diagnostics& diagnostics) {
  const ConfigNode::Ptr node = parse_config(text_of(input), {.file = "input"}, diagnostics);
  return diagnostics.has_errors() ? nullptr : node;
}

std::string repository_file(const std::string& path) { return ROUTESIM_SOURCE_DIR "/" + path; }

}  // namespace

void scenario(Bytes input) { run_command({"check", folder().write("scenario.yaml", input)}); }

void inference_perf(Bytes input) {
  static const std::string scenario = folder().write("load.yaml",
                                                     "name: load\n"
                                                     "workload: {inference_perf: input.yaml}\n"
                                                     "cluster:\n"
                                                     "  pools:\n"
                                                     "  - {name: a, replicas: 2, accelerator: "
                                                     "H100-SXM, model: Qwen3-32B,\n"
                                                     "     tensor_parallel: 2}\n"
                                                     "routing: {balancer: round-robin}\n");
  // The reader alone is fast; the whole command only gets what it takes.
  Diagnostics diagnostics;
  const ConfigNode::Ptr node = parse_whole(input, diagnostics);
  if (node != nullptr) (void)tools::load_inference_perf(node, {}, diagnostics);
  print_all(diagnostics);
  if (node == nullptr || diagnostics.has_errors()) return;
  folder().write("input.yaml", input);
  run_command({"check", scenario});
}

void score(Bytes input) {
  static const std::string config = repository_file("tests/tools/score/precise.yaml");
  static const std::string endpoints = repository_file("tests/tools/score/endpoints.json");
  static const std::string request = repository_file("tests/tools/score/request.json");
  Diagnostics known;
  static const auto pool = tools::read_score_pool(endpoints, SimTime::zero(), known);
  const std::string file = folder().write("score.json", input);
  // The readers alone are fast; the whole command only gets what one of them takes.
  Diagnostics as_document, as_pool, as_request, as_events;
  if (parse_whole(input, as_document) != nullptr) {
    if (tools::read_score_pool(file, SimTime::zero(), as_pool) && !as_pool.has_errors())
      run_command({"score", "--config", config, "--endpoints", file, "--request", request});
    if (tools::read_score_request(file, &*pool, as_request) && !as_request.has_errors())
      run_command({"score", "--config", config, "--endpoints", endpoints, "--request", file});
  }
  for (const Diagnostics* said : {&as_document, &as_pool, &as_request}) print_all(*said);
  if (tools::read_kv_messages(file, &*pool, as_events) && !as_events.has_errors())
    run_command({"score", "--config", config, "--endpoints", endpoints, "--request", request,
                 "--events", file});
  print_all(as_events);
}

}  // namespace routesim::fuzz
