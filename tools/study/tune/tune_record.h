// The content of a result file of `routesim tune`, as values that are described once: its JSON is
// written and read by that description, and its document and its CSV are built from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/render/document.h"
#include "tools/study/tune/tune_deploy.h"
#include "tools/study/tune/tune_judge.h"

namespace routesim::tools {

struct TuneRecord {
  using Number = std::optional<double>;

  struct Verdict {
    std::string headline;
    TuneDecision decision = TuneDecision::kNothing;
  };
  using Worth = MetricGain;
  struct Knob {
    std::string name, published, best = {};
    std::string candidate = {};  ///< Empty in files of early builds: the best is the judged one.
    bool ordered = false;
    std::vector<std::string> range = {};
    std::vector<Worth> worth = {};  ///< By goal; empty for a knob that is as published.

    const std::string& judged() const { return candidate.empty() ? best : candidate; }
  };
  using Round = TuneRound;
  struct Candidate {
    std::int64_t id = 0;
    Named<std::string> values;
    Named<Number> metrics = {};  ///< Empty when it had no run.
    std::int64_t rounds = 0, seeds = 0;
    std::optional<std::string> dropped = {};
  };
  struct Judged {
    std::string load, metric;
    std::int64_t seeds = 0;
    Number published, candidate, omniscient = {};
    JudgedMean difference;
    Gain gain;
    Number gap_closed;
    /// The first three with their intervals; empty in a record that was read.
    std::string published_text = {}, candidate_text = {}, omniscient_text = {};
  };
  /// A metric that is worse beyond chance.
  struct Worse : Gain {
    std::string load, metric;
    bool guard = false;
  };
  using Load = LoadLacks;
  using Member = FrontMember;
  /// A candidate that was judged too, on seeds of its own, and is not the best one.
  struct Passed {
    std::int64_t candidate = 0;
    std::vector<std::uint64_t> fresh_seeds;
    std::vector<std::string> conditions;  ///< That it breaks.
    std::vector<Worth> gains = {};        ///< By goal, under the load as given.
    std::vector<Worse> worse;
  };

  std::string tune, question, scenario, variant;
  std::uint64_t seed = 0;
  std::string version;
  std::vector<std::string> goals, subject_to, guards;
  std::int64_t budget = 0, search_runs = 0, judgement_runs = 0;
  Verdict verdict;
  std::int64_t best = 0;
  std::optional<std::int64_t> candidate;
  std::vector<Knob> knobs;
  std::vector<Round> race;
  std::vector<Candidate> candidates;
  std::vector<std::uint64_t> fresh_seeds;
  std::vector<Judged> judged;
  std::vector<Worse> worse;
  std::vector<Passed> passed_over;
  std::vector<Load> loads;
  std::string no_omniscient;
  std::vector<std::string> notes;
  std::vector<Member> front;
  std::optional<std::string> epp;
  std::string flags;
  std::vector<std::string> set;
  std::string command, command_document;
  std::string how = {};  ///< How the search went; empty in a record that was read.

  /// `the best`, or `candidate 3` when the published configuration is the best one.
  std::string judged_name() const;
};

void describe(Describer& d, TuneRecord& r);

/// Before the judgement the record is of the race as it stands, the best candidates first.
TuneRecord tune_record(const TuneReport& report);

/// One row for each candidate.
std::string tune_csv(const TuneRecord& record);

/// The answer of the tuning. `path` is where the record stands in the data block of a page.
StudyDocument tune_document(const TuneRecord& record, const std::string& path = {});

}  // namespace routesim::tools
