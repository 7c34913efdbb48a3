#include "tools/ingest/replay_files.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <istream>

#include "base/printable.h"
#include "tools/ingest/trace_files.h"

namespace routesim::tools {

namespace {

bool is_file(const std::string& path) {
  std::error_code ignored;
  // A pipe is refused where it is opened, which tells why.
  return std::filesystem::exists(path, ignored) && !std::filesystem::is_directory(path, ignored);
}

void add_folder(const std::string& path, const std::string& key, const SourceLocation& where,
                std::vector<ReplayFile>& out, Diagnostics& diagnostics) {
  std::error_code error;
  std::vector<std::string> found;
  bool lines = false;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!is_file(entry->path().string())) continue;
    lines = lines || entry->path().extension() == ".jsonl";
    if (entry->path().extension() == ".json") found.push_back(entry->path().string());
  }
  if (error)
    diagnostics.error(where, key,
                      "cannot read the folder " + printable(path, 200) + ": " + error.message(),
                      "paths inside a file are relative to that file");
  else if (found.empty())
    diagnostics.error(where, key, "no *.json is in " + printable(path, 200),
                      lines ? "name its *.jsonl as trace_files" : "");
  std::sort(found.begin(), found.end());
  for (std::string& file : found) out.push_back({std::move(file), key});
}

}  // namespace

bool is_pattern(const std::string& path) { return path.find_first_of("*?") != std::string::npos; }

std::vector<std::string> matching_files(const std::string& path) {
  if (!is_pattern(path)) {
    if (is_file(path)) return {path};
    return {};
  }
  std::vector<std::string> out;
  glob_t found{};
  if (::glob(path.c_str(), 0, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i)
      if (is_file(found.gl_pathv[i])) out.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<ReplayFile> replay_files(const LoadedVariant& variant, Diagnostics& diagnostics) {
  using Kind = workloads::LoadFile::Kind;
  std::vector<ReplayFile> out;
  for (const workloads::LoadFile& named : files_of(variant.scenario.workload.load)) {
    if (named.kind != Kind::kSessions && named.kind != Kind::kSessionFolder) continue;
    const std::string key = "workload." + named.key;
    const SourceLocation where = variant.provenance.nearest(key);
    const std::string path = resolve_path(named.path, where);
    if (named.kind == Kind::kSessionFolder) {
      add_folder(path, key, where, out, diagnostics);
      continue;
    }
    const std::vector<std::string> files = matching_files(path);
    for (const std::string& file : files) {
      const bool known = std::any_of(
          out.begin(), out.end(), [&file](const ReplayFile& asked) { return asked.path == file; });
      if (!known) out.push_back({file, key});
    }
    if (!files.empty()) continue;
    if (is_pattern(path))
      diagnostics.error(where, key, "no file matches " + printable(path, 200));
    else
      out.push_back({path, key});  // Opening it tells why it cannot be read.
  }
  return out;
}

std::shared_ptr<const workloads::ReplayCorpus> read_replay_sessions(const LoadedVariant& variant,
                                                                    Diagnostics& diagnostics) {
  Diagnostics found;
  const std::vector<ReplayFile> files = replay_files(variant, found);
  std::shared_ptr<const workloads::ReplayCorpus> corpus;
  if (!files.empty()) {
    const std::unique_ptr<workloads::ReplayReader> reader =
        session_reader(variant.scenario.workload.load);
    for (const ReplayFile& file : files) {
      const std::unique_ptr<std::istream> in =
          open_records(file.path, variant.provenance.nearest(file.key), file.key, found);
      // After an error only what else is missing matters.
      if (in != nullptr && !found.has_errors())
        reader->read(*in, file.path, file.path.ends_with(".jsonl"), found);
    }
    if (!found.has_errors())
      corpus = std::make_shared<const workloads::ReplayCorpus>(reader->take());
  }
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  return corpus;
}

}  // namespace routesim::tools
