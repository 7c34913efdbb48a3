// The scores that a policy of one's own gave the servers in one decision, for `explain`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace routesim::sim {

/// One decision: the score of each endpoint, and the inputs that the score was made of.
struct ScoreSheet {
  struct Row {
    std::size_t endpoint = 0;
    double score = 0;
    std::vector<double> inputs;  ///< As `names`.
  };
  std::vector<std::string> names;
  std::vector<Row> rows;  ///< Those that were scored; a filter leaves out others.
};

/// A policy that scores every server.
class KeepsScores {
 public:
  virtual ~KeepsScores() = default;
  /// The next picks fill the sheet; null ends that.
  virtual void keep_scores(ScoreSheet* sheet) = 0;
};

}  // namespace routesim::sim
