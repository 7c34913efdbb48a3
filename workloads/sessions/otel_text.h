// The text of recorded messages, in each of the shapes they are recorded in. Private to workloads/.
#pragma once

#include <string>
#include <vector>

#include "workloads/sessions/json_value.h"
#include "workloads/sessions/replay_graph.h"

namespace routesim::workloads {

/// Text of a prompt's message: content (text or pieces), parts, or tool calls.
std::string input_text(const JsonValue& message);

/// Text of an answer: its content, then its tool calls.
std::string output_text(const JsonValue& message);

/// Content and tool calls of a message as parts, in that order; a message with parts as it is.
JsonValue with_parts(const JsonValue& message);

/// The pieces of an answer that has parts.
std::vector<RecordedPart> parts_of(const JsonValue& message);

/// Ids of the tool calls a message makes.
std::vector<std::string> call_ids_of(const JsonValue& message);

}  // namespace routesim::workloads
