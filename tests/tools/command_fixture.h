// For tests that run commands in this process: a folder of their own, and a console that listens.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "tools/cli/console.h"

namespace routesim::tools::testing {

/// Keeps what a command says on standard error; `output()` has its standard output.
class TestConsole final : public Console {
 public:
  void complain(std::string_view text) override { errors += text; }
  using Console::complain;
  bool error_is_terminal() const override { return false; }

  std::string errors;
};

/// A folder that exists as long as the test; no other test, and no other process, has the same.
class FolderTest : public ::testing::Test {
 protected:
  FolderTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string("routesim-") + info->test_suite_name() + "-" + info->name() +
                       "-" + std::to_string(::getpid());
    std::replace(name.begin(), name.end(), '/', '-');  // Tests with parameters.
    folder_ = std::filesystem::temp_directory_path() / name;
    std::filesystem::create_directories(folder_);
  }
  ~FolderTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  /// Where a file of this name is, or would be.
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// Writes a file, in folders below this one if `name` says so, and returns its path.
  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = folder_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return file.string();
  }

  std::filesystem::path folder_;
};

}  // namespace routesim::tools::testing
