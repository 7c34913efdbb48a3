// Opens the data files a load refers to: traces and conversations.
#pragma once

#include <optional>
#include <string>

#include "sim/base/diagnostic.h"
#include "workloads/conversation_data.h"
#include "workloads/trace_readers.h"

namespace routesim::tools {

/// The format by its name (`mooncake`, `timed_trace`, `azure`, `AzurePublicDataset`, `burstgpt`,
/// `vidur`, `csv`, `jsonl`), or nothing.
std::optional<workloads::TraceReadOptions> trace_format(const std::string& name);

/// The format told from a file's first line: column names for CSV, keys for JSON lines.
workloads::TraceReadOptions sniff_trace_format(const std::string& first_line);

/// Opens the trace at `path`. `format` may be empty (told from the file). A file that cannot be
/// opened and an unknown format are errors at `where`; the opener is empty then.
workloads::TraceOpener open_trace(const std::string& path, const std::string& format,
                                  const SourceLocation& where, const std::string& key_path,
                                  Diagnostics& diagnostics);

/// Opens a ShareGPT file.
workloads::ConversationOpener open_conversations(const std::string& path,
                                                 const SourceLocation& where,
                                                 const std::string& key_path,
                                                 Diagnostics& diagnostics);

}  // namespace routesim::tools
