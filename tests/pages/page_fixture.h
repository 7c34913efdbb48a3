// Makes pages with the command and looks at them in one browser per test suite.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/pages/browser.h"
#include "tests/pages/shell.h"

namespace routesim::pages {

class Page : public testing::Test {
 protected:
  static void SetUpTestSuite() { browser_ = std::make_unique<Browser>(); }
  static void TearDownTestSuite() { browser_.reset(); }
  void SetUp() override {
    if (!browser_->missing().empty()) GTEST_SKIP() << browser_->missing();
  }

  static Browser& browser() { return *browser_; }
  static std::filesystem::path file(const std::string& name) { return browser_->folder() / name; }
  static std::filesystem::path write(const std::string& name, const std::string& text) {
    std::ofstream(file(name), std::ios::binary) << text;
    return file(name);
  }
  /// Runs the command with these arguments in the browser's folder; a failed expectation or gate
  /// (exit status 1) is an answer, too.
  static void routesim(const std::string& arguments) {
    int code = 0;
    const std::string said = shell("cd " + browser_->folder().string() + " && " +
                                       std::string(ROUTESIM_BINARY) + " " + arguments,
                                   &code);
    // A gate that fails, or a study that decides nothing, has a page too.
    ASSERT_TRUE(code == 0 || WEXITSTATUS(code) == 1 || WEXITSTATUS(code) == 4) << arguments << "\n"
                                                                               << said;
  }

  /// Nothing is wrong with the page in any window, on paper, or for assistive technology.
  static void expect_clean(const std::filesystem::path& page) {
    std::vector<std::string> skipped;
    const std::vector<std::string> problems = audit(browser(), page, skipped);
    std::string all;
    for (std::size_t i = 0; i < problems.size() && i < 30; ++i) all += problems[i] + "\n";
    EXPECT_EQ(problems.size(), 0U) << page.filename() << "\n" << all;
    for (const std::string& reason : skipped) std::cout << "not looked at: " << reason << "\n";
  }

 private:
  static inline std::unique_ptr<Browser> browser_;
};

}  // namespace routesim::pages
