#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/architecture/rules.h"

namespace routesim::architecture {
namespace {

/// Which folders of the project a folder may include, besides itself. A folder without a row has
/// the row of its closest parent. `x` allows headers of exactly that folder, `x/` also those below
/// it. Data flows one way: no arrow points back.
struct Direction {
  std::string_view folder;
  std::vector<std::string_view> may_include;
};

/// cli -> study -> ingest, render -> results -> sim. Inside ingest: scenario -> servers, routers,
/// loads, traces -> tree, and servers -> scalers -> tree.
std::vector<Direction> rooms_of_tools() {
  std::vector<Direction> rows = {
      {"tools/results", {"base", "models", "sim/observe", "sim/plan"}},
      {"tools/ingest/tree", {"base", "tools/results"}},
      {"tools/ingest/servers",
       {"base", "policies/balancers", "models", "sim/plan", "tools/ingest/scalers",
        "tools/ingest/tree"}},
      {"tools/ingest/routers", {"base", "policies/", "sim/plan", "tools/ingest/tree"}},
      {"tools/ingest/scalers", {"base", "sim/scaling", "tools/ingest/tree"}},
      {"tools/ingest/loads", {"base", "workloads/", "tools/ingest/tree"}},
      {"tools/ingest/traces", {"base", "workloads/", "tools/results", "tools/ingest/tree"}},
      {"tools/ingest/scenario",
       {"base", "policies/", "models", "workloads/", "sim/plan", "tools/results", "tools/ingest/"}},
      {"tools/render/chart", {"base", "tools/results"}},
      {"tools/render/page", {"base", "tools/results", "tools/render/chart"}},
      {"tools/render", {"base", "tools/results", "tools/render/chart", "tools/render/page"}},
      {"tools/render/observe", {"base", "policies/index", "sim/", "tools/results", "tools/render"}},
      {"tools/render/reports", {"base", "policies/index", "sim/", "tools/results"}},
      {"tools/study", {"base", "sim/", "tools/results"}},
      {"tools/study/experiment",
       {"base", "policies/index", "workloads/traces", "sim/", "tools/results", "tools/ingest/"}},
      {"tools/study/capacity",
       {"base", "models", "workloads/", "sim/", "tools/results", "tools/study",
        "tools/study/experiment"}}};
  const std::vector<std::string_view> command = {
      "base",          "policies/",     "models/",      "workloads/",    "sim/",
      "tools/results", "tools/ingest/", "tools/render", "tools/render/", "tools/study/"};
  rows.push_back({"tools/cli", command});
  for (const std::string_view folder : {"tools/cli/run", "tools/cli/commands"}) {
    rows.push_back({folder, command});
    rows.back().may_include.push_back("tools/cli");
  }
  std::vector<std::string_view> study = command;
  study.pop_back();  // Studies include the three below, and few others.
  study.insert(study.end(), {"tools/study", "tools/study/experiment", "tools/study/capacity"});
  for (const std::string_view folder :
       {"tools/study/compare", "tools/study/explain", "tools/study/init", "tools/study/plan",
        "tools/study/score", "tools/study/sweep", "tools/study/trace", "tools/study/validate",
        "tools/study/verdict", "tools/study/calibrate"})
    rows.push_back({folder, study});
  rows.back().may_include.push_back("tools/study/validate");
  rows.push_back({"tools/study/run", study});
  rows.back().may_include.push_back("tools/study/verdict");
  for (const std::string_view folder : {"tools/study/tune", "tools/study/report"}) {
    rows.push_back({folder, study});
    rows.back().may_include.push_back("tools/study/compare");
  }
  for (const std::string_view study_of_page :
       {"tools/study/plan", "tools/study/sweep", "tools/study/tune", "tools/study/validate",
        "tools/study/run", "tools/study/verdict"})
    rows.back().may_include.push_back(study_of_page);
  return rows;
}

std::vector<Direction> rooms_of_sim() {
  return {{"sim/statistics", {}},
          {"sim/network", {"base"}},
          {"sim/rules", {"base"}},
          {"sim/kv", {"base", "policies/index", "workloads", "sim/rules"}},
          {"sim/tiers", {"base", "sim/kv", "sim/network", "sim/rules"}},
          {"sim/engine",
           {"base", "policies/index", "models", "workloads", "sim/kv", "sim/rules",
            "sim/statistics", "sim/tiers"}},
          {"sim/custom",
           {"base", "policies", "policies/balancers", "policies/balancers/kit", "policies/index"}},
          {"sim/prediction", {"base", "policies"}},
          {"sim/scaling", {"base"}},
          {"sim/fleet", {"base", "sim/scaling"}},
          {"sim/plan",
           {"base", "policies/", "models/", "workloads/", "sim/custom", "sim/fleet", "sim/rules",
            "sim/prediction", "sim/scaling"}},
          {"sim/telemetry",
           {"base", "policies", "policies/index", "policies/kv_events", "sim/engine", "sim/plan"}},
          {"sim/router",
           {"base", "models", "policies/", "workloads/", "sim/custom", "sim/engine", "sim/kv",
            "sim/plan", "sim/prediction", "sim/telemetry"}},
          {"sim/observe",
           {"base", "models", "workloads/", "sim/fleet", "sim/statistics", "sim/network",
            "sim/engine", "sim/plan", "sim/router", "sim/tiers"}},
          {"sim",
           {"base", "policies/", "models", "workloads/", "sim/engine", "sim/fleet", "sim/kv",
            "sim/network", "sim/scaling", "sim/observe", "sim/plan", "sim/router", "sim/statistics",
            "sim/tiers"}}};
}

std::vector<Direction> all_rooms() {
  std::vector<Direction> table = {
      {"base", {}},
      {"policies/index", {"base"}},
      {"policies/kv_events", {"base", "policies/index"}},
      {"policies", {"base", "policies/index", "policies/kv_events"}},
      {"policies/plugins", {"base", "policies", "policies/index"}},
      {"policies/flow", {"base", "policies", "policies/plugins"}},
      {"policies/config",
       {"base", "policies", "policies/index", "policies/plugins", "policies/flow"}},
      {"policies/balancers/kit", {"base", "policies", "policies/index"}},
      {"policies/balancers/*", {"base", "policies", "policies/index", "policies/balancers/kit"}},
      {"policies/balancers", {"base", "policies", "policies/balancers/"}},
      {"policies/examples",
       {"base", "policies", "policies/index", "policies/kv_events", "policies/config"}},
      {"models", {"base"}},
      {"models/kernels", {"base", "models"}},
      {"workloads", {"base"}},
      {"workloads/groups", {"base", "workloads"}},
      {"workloads/multi_round_qa",
       {"base", "workloads", "workloads/conversations", "workloads/traces"}},
      {"workloads/guidellm", {"base", "workloads"}},
      {"workloads/traces", {"base", "workloads"}},
      {"workloads/conversations", {"base", "workloads", "workloads/traces"}},
      {"workloads/demand", {"base", "workloads", "workloads/traces"}},
      {"workloads/sessions", {"base", "workloads", "workloads/traces"}},
      {"workloads/vllm_bench",
       {"base", "workloads", "workloads/conversations", "workloads/traces"}},
      {"workloads/inference_perf",
       {"base", "workloads", "workloads/conversations", "workloads/sessions", "workloads/traces"}},
      {"workloads/load", {"base", "workloads/"}},
      {"workloads/mix", {"base", "workloads", "workloads/traces"}},
      {"bench", {"base", "policies/", "models/", "workloads/", "sim/", "tools/", "tests/policies"}},
      {"tests", {"base", "policies/", "models/", "workloads/", "sim/", "tools/", "tests/"}},
  };
  for (const Direction& row : rooms_of_sim()) table.push_back(row);
  for (const Direction& row : rooms_of_tools()) table.push_back(row);
  return table;
}

const std::vector<Direction>& directions() {
  static const std::vector<Direction> table = all_rooms();
  return table;
}

/// Where a third-party header may appear: path prefixes, and whether only .cpp files may have it.
/// Helper headers of the tests are nobody's interface, so that does not bind them.
struct Home {
  std::string_view header;
  std::vector<std::string_view> paths;
  bool only_cpp;
};

const std::vector<Home>& homes() {
  static const std::vector<Home> table = {
      {"yaml-cpp/", {"tools/", "tests/"}, true},
      {"nlohmann/", {"tools/", "tests/"}, true},
      {"boost/program_options", {"tools/"}, true},
      {"boost/", {"models/", "sim/", "tools/", "tests/", "bench/"}, true},
      {"fmt/", {"base/", "tools/", "tests/", "bench/"}, true},
      {"Random123/", {"base/rng.cpp"}, true},
      {"Eigen/", {"models/calibration.cpp", "sim/prediction/bayesian_ridge.cpp"}, true},
      {"tbb/", {"tools/study/experiment/experiment.cpp"}, true},
      {"xxhash.h", {"policies/", "tests/policies/"}, true},
      {"muParser.h", {"sim/custom/expression.cpp"}, true},
      {"dlfcn.h", {"sim/custom/library.cpp"}, true},
      // The header of plug-ins is C.
      {"stdint.h", {"sim/custom/routesim_policy.h"}, false},
      {"routesim_policy.h", {"docs/examples/policies/"}, true},
      {"gtest/", {"tests/"}, false},
      {"gmock/", {"tests/"}, false},
      {"benchmark/", {"bench/"}, false},
  };
  return table;
}

/// Every header of C++20, each followed by a space.
constexpr std::string_view kStandardHeaders =
    "algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv "
    "chrono cinttypes climits clocale cmath codecvt compare complex concepts "
    "condition_variable coroutine csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib "
    "cstring ctime cuchar cwchar cwctype deque exception execution filesystem forward_list "
    "fstream functional future initializer_list iomanip ios iosfwd iostream istream iterator "
    "latch limits list locale map memory memory_resource mutex new numbers numeric optional "
    "ostream queue random ranges ratio regex scoped_allocator semaphore set shared_mutex "
    "source_location span sstream stack stdexcept stop_token streambuf string string_view "
    "strstream syncstream system_error thread tuple type_traits typeindex typeinfo "
    "unordered_map unordered_set utility valarray variant vector version ";

bool is_standard(std::string_view header) {
  for (std::size_t p = kStandardHeaders.find(header); p != std::string_view::npos;
       p = kStandardHeaders.find(header, p + 1)) {
    const bool starts = p == 0 || kStandardHeaders[p - 1] == ' ';
    if (starts && kStandardHeaders[p + header.size()] == ' ') return true;
  }
  return false;
}

/// Headers of the operating system: for those who own the I/O, and for tests of them.
bool is_posix(std::string_view header) {
  static const std::set<std::string_view> headers = {
      "fcntl.h",  "malloc.h", "netinet/in.h", "pthread.h", "poll.h", "sched.h",
      "signal.h", "spawn.h",  "termios.h",    "unistd.h",  "glob.h"};
  return headers.contains(header) || header.starts_with("sys/");
}

struct Include {
  std::size_t line;
  std::string name;
  bool quoted;
};

/// Parses one line; the quotes are gone from the stripped text, so the original line is read, and
/// the stripped one only tells that the line is code.
std::optional<Include> parse(const std::string& line, const std::string& code, std::size_t number) {
  constexpr std::string_view kDirective = "#include";
  const std::size_t start = code.find_first_not_of(" \t");
  if (start == std::string::npos || code.compare(start, kDirective.size(), kDirective) != 0)
    return std::nullopt;
  const std::size_t open = line.find_first_of("\"<", start + kDirective.size());
  if (open == std::string::npos) return std::nullopt;
  const bool quoted = line[open] == '"';
  const std::size_t close = line.find(quoted ? '"' : '>', open + 1);
  if (close == std::string::npos) return std::nullopt;
  return Include{.line = number, .name = line.substr(open + 1, close - open - 1), .quoted = quoted};
}

std::string folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? "" : path.substr(0, slash));
}

/// The row of a folder, or of its closest parent that has one. A row that ends in an asterisk is
/// that of all folders below its own that have none.
const Direction* row_of(std::string folder) {
  for (;; folder = folder_of(folder)) {
    const auto named = [&](const std::string& name) {
      return std::find_if(directions().begin(), directions().end(),
                          [&](const Direction& d) { return d.folder == name; });
    };
    auto row = named(folder);
    if (row == directions().end()) row = named(folder_of(folder) + "/*");
    if (row != directions().end()) return &*row;
    if (folder.empty()) return nullptr;
  }
}

std::optional<std::string> check_project(const SourceFile& file, const std::string& name) {
  const std::string here = folder_of(file.path), there = folder_of(name);
  const Direction* row = row_of(here);
  if (row == nullptr) return "this folder has no row in the table of directions";
  if (here == there) return std::nullopt;
  for (const std::string_view folder : row->may_include)
    if (folder == there ||
        (folder.ends_with('/') && under(name, folder.substr(0, folder.size() - 1))))
      return std::nullopt;
  return here + " may not include \"" + name +
         "\" (includes start at the root and follow the arrows of the design)";
}

std::optional<std::string> check_system(const SourceFile& file, const std::string& name) {
  if (is_standard(name)) return std::nullopt;
  if (is_posix(name)) {
    const bool owns_io =
        under(file.path, "tools") || under(file.path, "tests") || under(file.path, "bench") ||
        file.path == "sim/custom/call_guard.cpp";  // It reports the crashes of plug-ins.
    if (owns_io) return std::nullopt;
    return "<" + name + "> belongs to tools: libraries do no I/O";
  }
  const auto home = std::find_if(homes().begin(), homes().end(),
                                 [&](const Home& h) { return name.starts_with(h.header); });
  if (home == homes().end()) return "<" + name + "> has no row in the table of homes";
  if (home->only_cpp && is_header(file) && !under(file.path, "tests"))
    return "<" + name + "> may only be in .cpp files";
  for (const std::string_view path : home->paths)
    if (file.path.starts_with(path)) return std::nullopt;
  return "<" + name + "> may not be here; its home is " + std::string(home->paths.front());
}

}  // namespace

Violations check_includes(const SourceFile& file) {
  Violations violations;
  if (!is_cpp(file)) return violations;
  const std::vector<std::string> lines = lines_of(file.text);
  const std::vector<std::string> code = lines_of(strip_comments_and_literals(file.text));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::optional<Include> include = parse(lines[i], code[i], i + 1);
    if (!include) continue;
    const std::optional<std::string> what =
        include->quoted ? check_project(file, include->name) : check_system(file, include->name);
    if (what) violations.push_back(at(file, include->line, *what));
  }
  return violations;
}

}  // namespace routesim::architecture
