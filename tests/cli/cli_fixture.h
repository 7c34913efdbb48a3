// The command as a user runs it: a process of its own with its streams in files.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/base/slurp.h"

namespace routesim::tools::testing {

namespace fs = std::filesystem;

struct Result {
  int code = -1;  ///< Exit code, or 128 + signal as a shell reports it.
  std::string out;
  std::string err;
};

/// A folder for one test, the command, and scenarios small enough to run in milliseconds.
class Cli : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              ("routesim-cli-" + std::string(info->name()) + "-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }

  pid_t start(const std::vector<std::string>& arguments, const std::string& out_path,
              const std::string& err_path) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    const int out = ::open(out_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int err = ::open(err_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    std::vector<char*> argv;
    std::string program = ROUTESIM_BINARY;
    argv.push_back(program.data());
    std::vector<std::string> copy = arguments;
    for (std::string& argument : copy) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }

  static int wait_for(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  Result run(const std::vector<std::string>& arguments) const {
    const std::string out = (folder_ / "stdout").string();
    const std::string err = (folder_ / "stderr").string();
    Result result;
    result.code = wait_for(start(arguments, out, err));
    result.out = slurp(out);
    result.err = slurp(err);
    return result;
  }

  std::string write(const std::string& name, const std::string& text) const {
    const fs::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

  /// A scenario but for its name: a load of `groups` on two servers, behind round-robin and the
  /// `second` variant.
  /// The text with one space in place of each run of spaces and line breaks.
  static std::string one_line(const std::string& text) {
    std::istringstream words(text);
    std::string out;
    for (std::string word; words >> word;) out += (out.empty() ? "" : " ") + word;
    return out;
  }

  static std::string two_servers(
      const std::string& groups,
      const std::string& second = "{name: chance, routing: {balancer: random}}") {
    return "workload:\n  groups: {" + groups +
           "}\n"
           "cluster:\n"
           "  pools:\n"
           "  - {name: a, replicas: 2, accelerator: H100-SXM, model: Qwen3-32B,\n"
           "     tensor_parallel: 2}\n"
           "variants:\n"
           "- {name: rotation, routing: {balancer: round-robin}}\n"
           "- " +
           second + "\n";
  }

  /// Forty requests over two servers, behind two balancers.
  std::string tiny(std::int64_t requests = 40) const {
    return write("tiny.yaml",
                 "name: tiny\n"
                 "question: Does it run?\n" +
                     two_servers("requests: " + std::to_string(requests) +
                                 ", rate: 20, groups: 4, prefix_len: 512, suffix_len: 64, "
                                 "output_len: 16"));
  }

  fs::path folder_;
};

}  // namespace routesim::tools::testing
