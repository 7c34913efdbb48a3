// A page in a real browser: Chromium without a window, driven over its debugging pipe, with real
// mouse and keyboard input. Tests that use it are skipped where Chromium is not installed.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace routesim::pages {

/// One browser with one tab. Start it once per test suite: a start takes about a second.
class Browser {
 public:
  using Json = nlohmann::json;

  Browser();
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  /// Why tests cannot run here; empty when they can.
  const std::string& missing() const { return missing_; }

  /// Loads a file with a window of this width and forgets earlier complaints.
  void open(const std::filesystem::path& page, int width, bool dark = false);
  /// What an expression gives; promises are awaited. A thrown error is a complaint.
  Json evaluate(const std::string& expression);
  /// Waits until what was started is on the screen: scrolling, closing.
  void settle();
  /// Runs the text of a program in the page, outside its content-security policy.
  void run_program(const std::string& text);
  /// Presses a key: `Tab`, `Enter`, `ArrowRight`, `+`, ...
  void key(const std::string& name);
  void move(double x, double y);
  void click(double x, double y);
  void drag(double from_x, double from_y, double to_x, double to_y);
  /// Scrolls the first element that fits into view and gives its middle.
  std::pair<double, double> middle(const std::string& selector);
  void click(const std::string& selector);
  /// Prints on A4 into a file.
  void print(const std::filesystem::path& pdf);
  /// A picture of the page from `top` on, for a person to look at.
  void screenshot(const std::filesystem::path& png, int height, double top = 0);

  /// What happened since open() that should not: console messages, errors, requests.
  const std::vector<std::string>& complaints() const { return complaints_; }
  /// A folder that goes with the browser.
  const std::filesystem::path& folder() const { return folder_; }

 private:
  Json call(const std::string& method, Json parameters = Json::object());
  Json next_message();
  void note(const Json& event);
  void mouse(const char* type, double x, double y, int buttons);

  std::filesystem::path folder_;
  std::string missing_;
  pid_t child_ = -1;
  int to_ = -1, from_ = -1;
  int last_id_ = 0;
  int width_ = 0;
  std::string session_;
  std::string buffer_;
  std::vector<std::string> complaints_;
};

/// Everything wrong with a page, one sentence each: axe-core at three widths, light and dark; text
/// or drawings cut or overlapping at 390, 1400 and 1920 px; text missing from or outside the paper
/// on A4; console messages and requests. What cannot be looked at here, such as axe-core without a
/// copy of it, is left out; `skipped` says so.
std::vector<std::string> audit(Browser& browser, const std::filesystem::path& page,
                               std::vector<std::string>& skipped);

/// The program text of axe-core: the file that ROUTESIM_AXE names, or the one of npm's package
/// `axe-core` or pip's `axe-playwright-python`, fetched once per build folder; empty where none can
/// be had.
const std::string& axe();

}  // namespace routesim::pages
