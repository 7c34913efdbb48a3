#include "tests/pages/browser.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <stdexcept>

#include "tests/pages/shell.h"

namespace routesim::pages {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A page that takes longer than this to answer is broken.
constexpr int kPatienceMs = 60'000;

std::string program() {
  return one_line(shell("command -v chromium || command -v chromium-browser"));
}

std::string base64(const std::string& text) {
  std::string out;
  unsigned bits = 0;
  int held = 0;
  for (const char c : text) {
    const std::string_view kLetters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t at = kLetters.find(c);
    if (at == std::string_view::npos) continue;
    bits = bits << 6 | static_cast<unsigned>(at);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out += static_cast<char>(bits >> held & 0xff);
  }
  return out;
}

}  // namespace

Browser::Browser() {
  const std::string path = program();
  if (path.empty()) {
    missing_ = "needs Chromium (Debian: chromium)";
    return;
  }
  if (!fs::exists("/proc/cpuinfo")) {
    missing_ = "Chromium needs /proc";
    return;
  }
  folder_ = fs::temp_directory_path() / ("routesim-pages-" + std::to_string(::getpid()));
  fs::create_directories(folder_);
  std::array<int, 2> down{}, up{};
  if (::pipe2(down.data(), O_CLOEXEC) != 0 || ::pipe2(up.data(), O_CLOEXEC) != 0) {
    missing_ = "no pipes left";
    return;
  }
  const std::string profile = "--user-data-dir=" + (folder_ / "profile").string();
  child_ = ::fork();
  if (child_ == 0) {
    // Chromium reads commands from descriptor 3 and answers on 4. Copies that are in the way of
    // neither come first.
    const int in = ::fcntl(down[0], F_DUPFD, 10), out = ::fcntl(up[1], F_DUPFD, 10);
    ::dup2(in, 3);
    ::dup2(out, 4);
    ::close(in);
    ::close(out);
    const int null = ::open("/dev/null", O_RDWR);
    for (const int fd : {0, 1, 2}) ::dup2(null, fd);
    ::setenv("HOME", folder_.c_str(), 1);
    ::setpgid(0, 0);
    ::execl(path.c_str(), path.c_str(), "--headless=new", "--no-sandbox", "--disable-gpu",
            "--hide-scrollbars", "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND",
            "--remote-debugging-pipe", profile.c_str(), "about:blank", nullptr);
    ::_exit(127);
  }
  ::close(down[0]);
  ::close(up[1]);
  to_ = down[1];
  from_ = up[0];
  std::string target;
  for (int i = 0; i < 100 && target.empty(); ++i) {
    const Json targets = call("Target.getTargets");
    for (const Json& t : targets["targetInfos"])
      if (t["type"] == "page") target = t["targetId"];
    if (target.empty()) ::usleep(50'000);
  }
  session_ = call("Target.attachToTarget", {{"targetId", target}, {"flatten", true}})["sessionId"];
  for (const char* domain : {"Page.enable", "Runtime.enable", "Log.enable", "Network.enable"})
    call(domain);
}

Browser::~Browser() {
  if (child_ > 0) {
    ::close(to_);
    ::close(from_);
    ::kill(-child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

Json Browser::next_message() {
  for (;;) {
    const std::size_t end = buffer_.find('\0');
    if (end != std::string::npos) {
      Json message = Json::parse(buffer_.substr(0, end));
      buffer_.erase(0, end + 1);
      return message;
    }
    pollfd waiting{.fd = from_, .events = POLLIN, .revents = 0};
    std::array<char, 65536> part{};
    const bool heard = ::poll(&waiting, 1, kPatienceMs) > 0;
    const ssize_t n = heard ? ::read(from_, part.data(), part.size()) : 0;
    if (n <= 0) throw std::runtime_error("the browser says nothing");
    buffer_.append(part.data(), static_cast<std::size_t>(n));
  }
}

/// Keeps what a quiet page never causes.
void Browser::note(const Json& event) {
  const std::string method = event.value("method", "");
  const Json& p = event.contains("params") ? event["params"] : Json();
  if (method == "Runtime.consoleAPICalled" || method == "Runtime.exceptionThrown")
    complaints_.push_back("console: " + p.dump().substr(0, 600));
  if (method == "Log.entryAdded")
    complaints_.push_back("log: " + p["entry"].value("text", "").substr(0, 600));
  if (method == "Network.requestWillBeSent") {
    const std::string url = p["request"].value("url", "");
    const bool own = p.value("type", "") == "Document" && url.starts_with("file:");
    if (!own && !url.starts_with("data:") && !url.starts_with("blob:"))
      complaints_.push_back("request: " + url);
  }
}

Json Browser::call(const std::string& method, Json parameters) {
  Json message = {{"id", ++last_id_}, {"method", method}, {"params", std::move(parameters)}};
  if (!session_.empty()) message["sessionId"] = session_;
  const std::string text = message.dump() + '\0';
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t n = ::write(to_, text.data() + sent, text.size() - sent);
    if (n <= 0) throw std::runtime_error("the browser is gone");
    sent += static_cast<std::size_t>(n);
  }
  for (;;) {
    const Json answer = next_message();
    if (answer.contains("id") && answer["id"] == last_id_) {
      if (answer.contains("error")) complaints_.push_back(method + ": " + answer["error"].dump());
      return answer.value("result", Json::object());
    }
    note(answer);
  }
}

void Browser::open(const fs::path& page, int width, bool dark) {
  width_ = width;
  // From one page to the same with another #fragment nothing would be loaded.
  call("Page.navigate", {{"url", "about:blank"}});
  call("Emulation.setDeviceMetricsOverride",
       {{"width", width}, {"height", 900}, {"deviceScaleFactor", 1}, {"mobile", false}});
  call("Emulation.setEmulatedMedia",
       {{"features",
         Json::array({{{"name", "prefers-color-scheme"}, {"value", dark ? "dark" : "light"}}})}});
  complaints_.clear();
  call("Page.navigate", {{"url", "file://" + fs::absolute(page).string()}});
  evaluate(
      "new Promise(done => document.readyState === 'complete' ? done(1) : "
      "addEventListener('load', () => done(1)))");
}

Json Browser::evaluate(const std::string& expression) {
  const Json answer =
      call("Runtime.evaluate",
           {{"expression", expression}, {"awaitPromise", true}, {"returnByValue", true}});
  if (answer.contains("exceptionDetails"))
    complaints_.push_back("error: " + answer["exceptionDetails"].dump().substr(0, 600));
  return answer.contains("result") ? answer["result"].value("value", Json()) : Json();
}

void Browser::settle() {
  evaluate(
      "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => "
      "setTimeout(() => r(1)))))");
}

void Browser::run_program(const std::string& text) {
  call("Runtime.evaluate", {{"expression", text + "\n;0"}});
}

void Browser::key(const std::string& name) {
  Json press = {{"type", "keyDown"}, {"key", name}, {"code", name}};
  const std::map<std::string, int> kCodes = {{"Tab", 9},         {"Enter", 13},     {"Escape", 27},
                                             {" ", 32},          {"ArrowLeft", 37}, {"ArrowUp", 38},
                                             {"ArrowRight", 39}, {"ArrowDown", 40}};
  if (kCodes.contains(name)) press["windowsVirtualKeyCode"] = kCodes.at(name);
  if (name.size() == 1) press["text"] = name;
  if (name == "Enter") press["text"] = "\r";
  call("Input.dispatchKeyEvent", press);
  press["type"] = "keyUp";
  press.erase("text");
  call("Input.dispatchKeyEvent", press);
}

void Browser::mouse(const char* type, double x, double y, int buttons) {
  call("Input.dispatchMouseEvent", {{"type", type},
                                    {"x", x},
                                    {"y", y},
                                    {"button", buttons != 0 ? "left" : "none"},
                                    {"buttons", buttons},
                                    {"clickCount", 1}});
}

void Browser::move(double x, double y) { mouse("mouseMoved", x, y, 0); }

void Browser::click(double x, double y) {
  mouse("mousePressed", x, y, 1);
  mouse("mouseReleased", x, y, 1);
}

void Browser::drag(double from_x, double from_y, double to_x, double to_y) {
  mouse("mousePressed", from_x, from_y, 1);
  for (int step = 1; step <= 8; ++step)
    mouse("mouseMoved", from_x + (to_x - from_x) * step / 8, from_y + (to_y - from_y) * step / 8,
          1);
  mouse("mouseReleased", to_x, to_y, 1);
}

std::pair<double, double> Browser::middle(const std::string& selector) {
  const Json at = evaluate("(() => { const e = document.querySelector(" + Json(selector).dump() +
                           "); e.scrollIntoView({block: 'center'});"
                           "const b = e.getBoundingClientRect();"
                           "return [b.x + b.width / 2, b.y + b.height / 2]; })()");
  settle();
  if (!at.is_array()) throw std::runtime_error("the page has no " + selector);
  return {at[0], at[1]};
}

void Browser::click(const std::string& selector) {
  const auto [x, y] = middle(selector);
  click(x, y);
}

void Browser::print(const fs::path& pdf) {
  const Json page = call("Page.printToPDF", {{"paperWidth", 8.27},
                                             {"paperHeight", 11.69},
                                             {"preferCSSPageSize", true},
                                             {"printBackground", true}});
  std::ofstream(pdf, std::ios::binary) << base64(page.value("data", ""));
}

void Browser::screenshot(const fs::path& png, int height, double top) {
  const Json picture =
      call("Page.captureScreenshot",
           {{"captureBeyondViewport", true},
            {"clip", {{"x", 0}, {"y", top}, {"width", width_}, {"height", height}, {"scale", 1}}}});
  std::ofstream(png, std::ios::binary) << base64(picture.value("data", ""));
}

}  // namespace routesim::pages
