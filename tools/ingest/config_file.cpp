#include "tools/ingest/config_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace routesim {

bool read_text_file(const std::string& path, const SourceLocation& asked_from,
                    const std::string& key_path, std::size_t max_bytes, std::string& text,
                    Diagnostics& diagnostics) {
  const auto fail = [&](const std::string& why, const std::string& hint) {
    diagnostics.error(asked_from, key_path, why, hint);
    return false;
  };
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return fail("cannot open " + path + ": " + std::strerror(errno),
                key_path.empty() ? "" : "paths inside a file are relative to that file");
  if (S_ISDIR(info.st_mode)) return fail("cannot read " + path + ": it is a directory", "");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (file == nullptr) return fail("cannot open " + path + ": " + std::strerror(errno), "");
  text.clear();
  std::string chunk(1U << 16, '\0');
  while (true) {
    const std::size_t n = std::fread(chunk.data(), 1, chunk.size(), file.get());
    text.append(chunk, 0, n);
    if (text.size() > max_bytes)
      return fail(path + " is larger than the limit of " + std::to_string(max_bytes >> 20) + " MiB",
                  "");
    if (n < chunk.size()) break;
  }
  if (std::ferror(file.get()) != 0)
    return fail("cannot read " + path + ": " + std::strerror(errno), "");
  return true;
}

ConfigNode::Ptr read_config_file(const std::string& path, Diagnostics& diagnostics,
                                 const ConfigLimits& limits) {
  std::string text;
  if (!read_text_file(path, {.file = path}, "", limits.max_bytes, text, diagnostics))
    return nullptr;
  return parse_config(text, {.file = path}, diagnostics, limits);
}

ConfigNode::Ptr parse_embedded(const ConfigNode& scalar, Diagnostics& diagnostics,
                               const ConfigLimits& limits) {
  TextPlacement placement{.file = scalar.where().file};
  if (scalar.block_first_line() > 0) {
    placement.line_offset = scalar.block_first_line() - 1;
    placement.column_offset = scalar.block_indent();
  } else {
    placement.line_offset = std::max(0, scalar.where().line - 1);
  }
  return parse_config(scalar.text(), placement, diagnostics, limits);
}

}  // namespace routesim
