// The facts that every load tool tells about itself, and its files. Each tool's room has these
// functions for its settings T, found by argument-dependent lookup (workloads/load/load.h):
//
//     template <> struct LoadKey<T>: the key of the tool in a scenario, and its documentation
//     void describe(Describer& d, T& t);
//     LoadTraits traits_of(const T& t);
//     std::vector<LoadFile> files_of(const T& t);
//     std::string scale_rates(T& t, double by);
//     std::string hold_rate(T& t, double rate, double seconds);
//     std::unique_ptr<LoadGenerator> make_load_generator(const T& t, const WorkloadOptions&,
//                                                        const LoadInputs&, Diagnostics&);
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "workloads/adapter_traffic.h"

namespace routesim::workloads {

/// The key below `workload` under which a scenario has the settings T of a tool: `value`, a Field.
template <class T>
struct LoadKey;

class ArrivalStream;
class ConversationReader;
struct CsvColumns;
struct MissingLengths;
struct Session;
class TraceReader;
class TraceSurvey;

/// Opens the data from its start; called once per pass.
using ConversationOpener = std::function<std::unique_ptr<ConversationReader>()>;
using TraceOpener = std::function<std::unique_ptr<TraceReader>()>;

/// The data that a load names, opened by the caller. What the load does not name is empty.
struct LoadInputs {
  ConversationOpener conversations{};
  TraceOpener trace{};
  std::shared_ptr<TraceSurvey> survey{};  ///< Shared by all loads made of `trace`; may be null.
  std::shared_ptr<const std::vector<Session>> sessions{};
  TraceOpener demand_trace{};  ///< The trace of `workload.demand`.
  /// Makes the due times of the one stage of a load that take_demand() changed, in place of the
  /// tool's own; may be empty.
  std::function<std::unique_ptr<ArrivalStream>()> arrivals{};
};

/// A file that a load names.
struct LoadFile {
  enum class Kind {
    kTrace,          ///< Becomes LoadInputs::trace.
    kShareGpt,       ///< Becomes LoadInputs::conversations.
    kPrompts,        ///< Becomes LoadInputs::conversations, one prompt per line.
    kSessions,       ///< Part of LoadInputs::sessions; `*` and `?` stand for any characters.
    kSessionFolder,  ///< Every *.json in it is part of LoadInputs::sessions.
    kUnread,         ///< The tool reads it; here only its lengths count, which the load states.
  };
  Kind kind = Kind::kUnread;
  std::string key{};                    ///< The key that has the path, below `workload`.
  std::string path{};                   ///< The path in the file.
  std::string format{};                 ///< Format of a trace; empty: told from the file.
  std::string format_key{};             ///< The key that has the format.
  const CsvColumns* columns = nullptr;  ///< Columns of a trace; belongs to the load.
  std::string columns_key{};
  const MissingLengths* missing = nullptr;  ///< Lengths that a trace does not have; the load's.
  std::string missing_key{};
};

/// Bounds in seconds (seconds per token for tpot, itl, ntpot); a request is good when it meets all.
struct GoodputConstraints {
  std::optional<double> ttft{}, tpot{}, itl{}, ntpot{}, request_latency{};
};

void describe(Describer& d, GoodputConstraints& t);

/// The LoRA adapters that a tool's own file asks for.
struct AdapterWish {
  std::vector<LoraSplit> shares{};
  LoraAssignment assignment = LoraAssignment::kRandom;
  bool warms_up_base = false;              ///< Stages that are not reported use the base model.
  std::optional<std::string> base_name{};  ///< The tool's name of the base model.
  std::string key{};                       ///< The key of the shares, below `workload`.
};

/// Facts that others must know about a load: what its client sees, how reports call things.
struct LoadTraits {
  std::string_view report_name{};  ///< In llm-d's benchmark report; empty: not one it knows.
  bool streams = true;             ///< The client sees each token when it comes.
  bool random_text = false;        ///< Prompts are random tokens decoded to text.
  bool finds_rates = false;        ///< The load measures its rates, so they depend on the servers.
  bool rate_is_count = false;      ///< Reports give a stage's number of requests as its rate.
  bool is_chat = false;            ///< Requests are messages, not one prompt.
  bool is_trace = false;           ///< The records of one file, as they are.
  /// Why LoadInputs::arrivals cannot say when its requests are due; empty where they can.
  std::string_view own_times = "its requests have times of their own";
  double interval_s = 0;  ///< Pause after every stage.
  double burstiness = 1;  ///< Shape of the gamma gaps between arrivals.
  /// Percentiles of lifecycle reports; the default is inference-perf's.
  std::vector<double> percentiles = {0.1, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9};
  GoodputConstraints goodput{};
  Document headers{};         ///< HTTP headers of every request: a map of names to texts.
  std::string headers_key{};  ///< Below `workload`.
  AdapterWish adapters{};
};

}  // namespace routesim::workloads
