#include "tools/ingest/replay_files.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <istream>

#include "base/printable.h"
#include "tools/ingest/trace_files.h"
#include "workloads/sessions/otel_trace.h"
#include "workloads/sessions/weka_trace.h"

namespace routesim::tools {

namespace {

namespace perf = workloads::inference_perf;

/// A file, and the key that asked for it.
struct Asked {
  std::string path;
  std::string key;
};

bool is_file(const std::string& path) {
  std::error_code ignored;
  // A pipe is refused where it is opened, which tells why.
  return std::filesystem::exists(path, ignored) && !std::filesystem::is_directory(path, ignored);
}

void add_folder(const std::string& path, const std::string& key, const SourceLocation& where,
                std::vector<Asked>& out, Diagnostics& diagnostics) {
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

std::vector<Asked> asked_files(const LoadedVariant& variant, Diagnostics& diagnostics) {
  std::vector<Asked> out;
  const auto& config = variant.scenario.workload.inference_perf_config;
  const perf::SessionReplay* replay = config ? perf::session_replay(*config) : nullptr;
  // Of two sources neither is read: that there are two is what is wrong.
  if (replay == nullptr || (replay->trace_directory && !replay->trace_files.empty())) return out;
  const std::string root =
      "workload.inference_perf.data." + std::string(enum_name(config->data.type)) + ".";
  if (replay->trace_directory) {
    const std::string key = root + "trace_directory";
    const SourceLocation where = variant.provenance.nearest(key);
    add_folder(resolve_path(*replay->trace_directory, where), key, where, out, diagnostics);
  }
  for (std::size_t i = 0; i < replay->trace_files.size(); ++i) {
    const std::string key = element_path(root + "trace_files", i);
    const SourceLocation where = variant.provenance.nearest(key);
    const std::string path = resolve_path(replay->trace_files[i], where);
    const std::vector<std::string> files = matching_files(path);
    for (const std::string& file : files) {
      const bool known = std::any_of(out.begin(), out.end(),
                                     [&file](const Asked& asked) { return asked.path == file; });
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

std::vector<std::string> replay_files(const LoadedVariant& variant, Diagnostics& diagnostics) {
  std::vector<std::string> out;
  for (Asked& asked : asked_files(variant, diagnostics)) out.push_back(std::move(asked.path));
  return out;
}

std::shared_ptr<const workloads::ReplayCorpus> read_replay_sessions(const LoadedVariant& variant,
                                                                    Diagnostics& diagnostics) {
  Diagnostics found;
  const std::vector<Asked> files = asked_files(variant, found);
  std::shared_ptr<const workloads::ReplayCorpus> corpus;
  if (!files.empty()) {
    const perf::Data& data = variant.scenario.workload.inference_perf_config->data;
    const std::unique_ptr<workloads::ReplayReader> reader =
        data.type == perf::DataType::kOtelTraceReplay
            ? workloads::make_otel_reader(*data.otel_trace_replay)
            : workloads::make_weka_reader(*data.weka_trace_replay);
    for (const Asked& file : files) {
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
