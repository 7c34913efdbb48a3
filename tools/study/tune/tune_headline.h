// The answer of a tuning in a sentence, from the numbers of its judgement.
#pragma once

#include <string>

#include "tools/study/tune/tune_judge.h"

namespace routesim::tools {

/// The answer: what is gained, everything that gets worse, and who else was judged.
std::string tune_headline(const TuneSpace& space, const TuneSearchResult& search,
                          const TuneJudgement& judgement);

/// `ttft_ms.p90 +6.6 % [+4.0, +9.1]`, of every goal.
std::string gains_text(const TuneSpace& space, const JudgedLoad& load);

/// `ttft_ms.p99 is 13.6 % worse [4.5, 23.7]`.
std::string loss_text(const JudgedMetric& metric);

}  // namespace routesim::tools
