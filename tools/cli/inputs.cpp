#include "tools/cli/inputs.h"

#include <sys/auxv.h>

#include <filesystem>
#include <iostream>
#include <iterator>
#include <vector>

#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

ScenarioRequest scenario_request(Options& options, const std::string& file) {
  ScenarioRequest request{
      .path = file, .sets = options.all("set"), .variants = options.all("variant")};
  if (file != kStandardInput) return request;
  request.path = "<stdin>";  // resolve_path() knows the name.
  const std::size_t most = ConfigLimits{}.max_bytes;
  std::string text;
  for (auto c = std::istreambuf_iterator<char>(std::cin);
       c != std::istreambuf_iterator<char>() && text.size() <= most; ++c)
    text.push_back(*c);
  if (std::cin.bad()) options.fail("standard input cannot be read");
  if (text.size() > most)
    options.fail("standard input has more than " + std::to_string(most >> 20) + " MiB");
  request.text = std::move(text);
  return request;
}

namespace {

namespace fs = std::filesystem;

/// PREFIX/share/routesim of a command that lies in PREFIX/bin: a package, an image or a Python
/// wheel, wherever it was unpacked. Empty when that folder is not there.
fs::path installed_folder() {
  // The path that was executed; unlike /proc/self/exe it is there without /proc.
  const auto* executed = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  if (executed == nullptr) return {};
  std::error_code error;
  const fs::path program = fs::canonical(executed, error);
  if (error) return {};
  const fs::path folder = program.parent_path().parent_path() / "share" / "routesim";
  return fs::is_directory(folder, error) ? folder : fs::path();
}

}  // namespace

std::string find_shipped(const std::string& name) {
  std::error_code error;
  if (name.empty() || name.front() == '/' || fs::exists(name, error)) return name;
  std::vector<fs::path> scenarios = {"scenarios"};
  if (const fs::path installed = installed_folder(); !installed.empty())
    scenarios.insert(scenarios.end(), {installed / "scenarios", installed});
  for (const fs::path& root : scenarios)
    for (const char* folder : {"", "sweeps", "plans", "holdout"})
      for (const char* ending : {".yaml", ""})
        if (const fs::path path = root / folder / (name + ending); fs::is_regular_file(path, error))
          return path.string();
  return name;
}

std::string shown_path(const std::string& path) {
  const fs::path installed = installed_folder();
  const std::string folder = installed.empty() ? std::string() : installed.string() + "/";
  return !folder.empty() && path.starts_with(folder) ? path.substr(folder.size()) : path;
}

std::string with_shown_paths(std::string text) {
  static const fs::path kInstalled = installed_folder();
  if (kInstalled.empty()) return text;
  const std::string folder = kInstalled.string() + "/";
  for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at))
    text.erase(at, folder.size());
  return text;
}

std::string scenario_folder(const Options& options) {
  std::error_code error;
  const fs::path installed = installed_folder();
  const bool is_here = installed.empty() || fs::is_directory("scenarios", error);
  return options.get("folder", is_here ? "scenarios" : (installed / "scenarios").string());
}

OptionSpec folder_option(const std::string& help) {
  return {"folder", "PATH", help + " (default: ./scenarios, or the installed ones)."};
}

}  // namespace routesim::tools
