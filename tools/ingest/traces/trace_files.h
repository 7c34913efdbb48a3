// Opens the data files a load refers to: traces and conversations.
#pragma once

#include <istream>
#include <memory>
#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "workloads/conversations/conversation_data.h"
#include "workloads/traces/trace_readers.h"

namespace routesim::tools {

/// The format by its name (`mooncake`, `timed_trace`, `azure`, `AzurePublicDataset`, `burstgpt`,
/// `vidur`, `csv`, `jsonl`, `litellm`, `otlp`, `vllm-log`), or nothing.
std::optional<workloads::TraceReadOptions> trace_format(const std::string& name);

/// The format told from a file's first line: column names for CSV, keys for JSON lines.
workloads::TraceReadOptions sniff_trace_format(const std::string& first_line);

/// A trace as a config names it: the path and the format, each with the key it was written at.
struct TraceReference {
  std::string path;
  SourceLocation path_where;
  std::string path_key;
  std::string format{};  ///< Empty: told from the file.
  SourceLocation format_where{};
  std::string format_key{};
  /// Names of the columns, where the config gives any; `columns_key` is where.
  std::optional<workloads::CsvColumns> columns{};
  SourceLocation columns_where{};
  std::string columns_key{};
  /// Lengths of prompts and answers that are not in the file.
  std::optional<workloads::MissingLengths> missing{};
  SourceLocation missing_where{};
  std::string missing_key{};
};

/// Opens the trace. A file that cannot be opened, an unknown format, columns for a format that
/// has its own and lengths for one that has them are errors at their keys; the opener is empty
/// then.
workloads::TraceOpener open_trace(const TraceReference& reference, Diagnostics& diagnostics);

/// Opens a file of JSON objects. Null with an error at its key when it cannot be one.
std::unique_ptr<std::istream> open_records(const std::string& path, const SourceLocation& where,
                                           const std::string& key_path, Diagnostics& diagnostics);

/// Opens a ShareGPT file.
workloads::ConversationOpener open_conversations(const std::string& path,
                                                 const SourceLocation& where,
                                                 const std::string& key_path,
                                                 Diagnostics& diagnostics);

/// Opens JSON lines of prompts, vLLM's `custom` data set.
workloads::ConversationOpener open_prompts(const std::string& path, const SourceLocation& where,
                                           const std::string& key_path, Diagnostics& diagnostics);

}  // namespace routesim::tools
