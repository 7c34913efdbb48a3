#include "tools/cli/standard_input.h"

#include <iostream>
#include <iterator>

#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

ScenarioRequest scenario_request(Options& options, const std::string& file) {
  ScenarioRequest request{
      .path = file, .sets = options.all("set"), .variants = options.all("variant")};
  if (file != kStandardInput) return request;
  request.path = "<stdin>";  // resolve_path() knows the name.
  const std::size_t most = ConfigLimits{}.max_bytes;
  std::string text;
  for (auto c = std::istreambuf_iterator<char>(std::cin);
       c != std::istreambuf_iterator<char>() && text.size() <= most; ++c)
    text.push_back(*c);
  if (std::cin.bad()) options.fail("standard input cannot be read");
  if (text.size() > most)
    options.fail("standard input has more than " + std::to_string(most >> 20) + " MiB");
  request.text = std::move(text);
  return request;
}

}  // namespace routesim::tools
