// Runs a shell command.
#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace routesim::pages {

/// Standard output and standard error of a command; `code` gets its exit status.
inline std::string shell(const std::string& command, int* code = nullptr) {
  std::string out;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return out;
  std::array<char, 4096> part{};
  for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    out.append(part.data(), n);
  const int status = ::pclose(pipe);
  if (code != nullptr) *code = status;
  return out;
}

/// The first line; empty when there are several.
inline std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.find('\n') == std::string::npos ? text : std::string();
}

}  // namespace routesim::pages
