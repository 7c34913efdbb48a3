// LLM calls recorded as OpenTelemetry spans (gen_ai attributes), as sessions.
#pragma once

#include <memory>

#include "workloads/sessions/replay_corpus.h"
#include "workloads/sessions/replay_settings.h"

namespace routesim::workloads {

/// Reads documents with a list `spans`; each is a session. Only chat spans with messages count, of
/// equal spans the first. Texts are known to the byte and equal texts are equal tokens; how many is
/// told by the recorded usage: what a prompt has more than what is known is shared out among its
/// new texts by their characters. Without usage a token has four characters. A session whose spans
/// cannot be replayed is left out with a warning.
std::unique_ptr<ReplayReader> make_otel_reader(const OtelTraceReplay& settings);

}  // namespace routesim::workloads
