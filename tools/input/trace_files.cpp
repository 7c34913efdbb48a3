#include "tools/input/trace_files.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "tools/output/printable.h"

namespace routesim::tools {

namespace {

using workloads::TraceFormat;
using workloads::TraceReadOptions;

TraceReadOptions with_format(TraceFormat format) {
  TraceReadOptions options;
  options.format = format;
  return options;
}

/// The file opened for reading, or an error.
std::unique_ptr<std::ifstream> open(const std::string& path, const SourceLocation& where,
                                    const std::string& key_path, Diagnostics& diagnostics) {
  auto file = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (file->good() && file->peek() != std::ifstream::traits_type::eof()) return file;
  const bool opened = file->is_open();
  diagnostics.error(where, key_path,
                    opened ? printable(path, 200) + " is empty or cannot be read"
                           : "cannot open " + printable(path, 200) + ": " + std::strerror(errno),
                    "paths inside a file are relative to that file");
  return nullptr;
}

}  // namespace

std::optional<TraceReadOptions> trace_format(const std::string& name) {
  if (name == "mooncake" || name == "timed_trace") return with_format(TraceFormat::kMooncake);
  if (name == "azure") return with_format(TraceFormat::kAzure);
  if (name == "AzurePublicDataset") {
    TraceReadOptions options = with_format(TraceFormat::kAzure);
    options.truncate_to_10ms = true;
    return options;
  }
  if (name == "burstgpt") return with_format(TraceFormat::kBurstGpt);
  if (name == "vidur") return with_format(TraceFormat::kVidur);
  if (name == "csv") return with_format(TraceFormat::kCsv);
  if (name == "jsonl") return with_format(TraceFormat::kJsonl);
  return std::nullopt;
}

TraceReadOptions sniff_trace_format(const std::string& first_line) {
  const auto has = [&](std::string_view text) {
    return first_line.find(text) != std::string::npos;
  };
  if (first_line.starts_with('{'))
    return with_format(has("\"hash_ids\"") || has("\"input_length\"") ? TraceFormat::kMooncake
                                                                      : TraceFormat::kJsonl);
  if (has("ContextTokens")) return with_format(TraceFormat::kAzure);
  if (has("Request tokens")) return with_format(TraceFormat::kBurstGpt);
  if (has("arrived_at")) return with_format(TraceFormat::kVidur);
  return with_format(TraceFormat::kCsv);
}

workloads::TraceOpener open_trace(const TraceReference& reference, Diagnostics& diagnostics) {
  std::optional<TraceReadOptions> options;
  if (!reference.format.empty()) {
    options = trace_format(reference.format);
    if (!options)
      diagnostics.error(reference.format_where, reference.format_key,
                        "is not a trace format (got " + printable(reference.format) + ")",
                        "one of mooncake, timed_trace, azure, burstgpt, vidur, csv, jsonl");
  }
  const auto file = open(reference.path, reference.path_where, reference.path_key, diagnostics);
  if (file == nullptr || (!reference.format.empty() && !options)) return {};
  if (!options) {
    std::string line;
    std::getline(*file, line);
    options = sniff_trace_format(line);
  }
  return [path = reference.path, options = *options]() {
    return workloads::make_trace_reader(std::make_unique<std::ifstream>(path, std::ios::binary),
                                        path, options);
  };
}

workloads::ConversationOpener open_conversations(const std::string& path,
                                                 const SourceLocation& where,
                                                 const std::string& key_path,
                                                 Diagnostics& diagnostics) {
  if (open(path, where, key_path, diagnostics) == nullptr) return {};
  return [path]() {
    return workloads::make_sharegpt_reader(std::make_unique<std::ifstream>(path, std::ios::binary),
                                           path);
  };
}

workloads::ConversationOpener open_prompts(const std::string& path, const SourceLocation& where,
                                           const std::string& key_path, Diagnostics& diagnostics) {
  if (open(path, where, key_path, diagnostics) == nullptr) return {};
  return [path]() {
    return workloads::make_prompt_reader(std::make_unique<std::ifstream>(path, std::ios::binary),
                                         path);
  };
}

}  // namespace routesim::tools
