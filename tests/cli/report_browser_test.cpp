// The report page in a real browser: Chromium without a window, at the widths of a desk and of a
// phone, light and dark. Skipped where Chromium is not installed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/base/slurp.h"

namespace {

namespace fs = std::filesystem;

using routesim::slurp;

/// Standard output and standard error of a shell command; `code` gets its exit status.
std::string shell(const std::string& command, int& code) {
  std::string out;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return out;
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    out.append(buffer.data(), n);
  code = ::pclose(pipe);
  return out;
}

std::string chromium() {
  int code = 0;
  std::string path = shell("command -v chromium || command -v chromium-browser", code);
  while (!path.empty() && path.back() == '\n') path.pop_back();
  return code == 0 ? path : std::string();
}

class Browser : public testing::Test {
 protected:
  void SetUp() override {
    browser_ = chromium();
    if (browser_.empty()) GTEST_SKIP() << "needs Chromium (Debian: chromium)";
    folder_ = fs::temp_directory_path() / ("routesim-browser-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    std::ofstream(folder_ / "tiny.yaml")
        << "name: tiny\nquestion: Does it run?\n"
           "workload:\n  inference_perf:\n    api: {streaming: true}\n"
           "    load: {type: constant, stages: [{rate: 5, duration: 4}, {rate: 20, duration: 4}]}\n"
           "    data: {type: shared_prefix, shared_prefix: {num_groups: 4,\n"
           "      num_prompts_per_group: 5, system_prompt_len: 512, question_len: 64,\n"
           "      output_len: 16}}\n"
           "cluster:\n  pools:\n"
           "  - {name: a, replicas: 2, accelerator: H100-SXM, model: Qwen3-32B, "
           "tensor_parallel: 2}\n"
           "variants:\n- {name: rotation, routing: {balancer: round-robin}}\n"
           "- {name: chance, routing: {balancer: random}}\n";
    int code = 0;
    const std::string said =
        shell(std::string(ROUTESIM_BINARY) + " run " + (folder_ / "tiny.yaml").string() +
                  " -q --goodput ttft:1s --output html=" + (folder_ / "page.html").string(),
              code);
    ASSERT_EQ(code, 0) << said;
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  /// The page's own report on itself after it was laid out: `width:scroll:background:figures`.
  std::string look(int width, bool dark) const {
    // A frame has exactly the width asked for; a window may have a smallest one.
    std::string page = slurp(folder_ / "page.html");
    page.insert(page.rfind("</body>"),
                "<script>addEventListener('load',function(){"
                "document.querySelectorAll('details').forEach(function(d){d.open=true});"
                "parent.postMessage([innerWidth,document.documentElement.scrollWidth,"
                "getComputedStyle(document.body).backgroundColor,"
                "document.querySelectorAll('figure svg').length].join(':'),'*')})</script>");
    std::ofstream(folder_ / "framed.html", std::ios::binary) << page;
    std::ofstream(folder_ / "frame.html", std::ios::binary)
        << "<body><iframe src=framed.html width=" << width
        << " height=900></iframe><script>onmessage=function(e){document.title='['+e.data+']'}"
           "</script></body>";
    int code = 0;
    const std::string profile = (folder_ / "profile").string();
    return shell(
        "HOME=" + folder_.string() + " timeout 60 " + browser_ +
            " --headless=new --no-sandbox --disable-gpu --enable-logging=stderr"
            " --user-data-dir=" +
            profile + " --virtual-time-budget=3000" + " --host-resolver-rules='MAP * ~NOTFOUND'" +
            " --blink-settings=preferredColorScheme=" + (dark ? "0" : "1") +
            " --window-size=1400,1000 --dump-dom file://" + (folder_ / "frame.html").string(),
        code);
  }

  std::string browser_;
  fs::path folder_;
};

TEST_F(Browser, FitsTheScreenAndFollowsTheTheme) {
  std::string background[2];
  for (const int width : {390, 1280})
    for (const bool dark : {false, true}) {
      const std::string said = look(width, dark);
      EXPECT_EQ(said.find("CONSOLE"), std::string::npos) << said.substr(0, 2000);
      std::smatch seen;
      ASSERT_TRUE(std::regex_search(
          said, seen, std::regex("<title>\\[(\\d+):(\\d+):([^:\\]]*):(\\d+)\\]</title>")))
          << said.substr(0, 2000);
      EXPECT_EQ(std::stoi(seen[1]), width);
      EXPECT_LE(std::stoi(seen[2]), width) << "the page must not scroll sideways";
      EXPECT_GE(std::stoi(seen[4]), 8) << "charts";
      background[dark ? 1 : 0] = seen[3];
    }
  EXPECT_NE(background[0], background[1]) << "light and dark look the same";
}

}  // namespace
