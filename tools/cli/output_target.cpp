#include "tools/cli/output_target.h"

#include <algorithm>

#include "tools/output/printable.h"

namespace routesim::tools {

std::optional<NamedOutput> parse_named_output(const std::string& text,
                                              std::span<const std::string_view> formats,
                                              std::string& error) {
  const std::size_t equals = text.find('=');
  NamedOutput output{.format = text.substr(0, equals), .path = {}};
  if (equals != std::string::npos) output.path = text.substr(equals + 1);
  if (equals != std::string::npos && output.path.empty()) {
    error = "--output " + printable(text) + " has no path; without = it is standard output";
    return std::nullopt;
  }
  if (output.path == "-") output.path.clear();
  if (std::find(formats.begin(), formats.end(), output.format) != formats.end()) return output;
  const std::vector<std::string> names(formats.begin(), formats.end());
  std::string list;
  for (const std::string& name : names) list.append(list.empty() ? "" : ", ").append(name);
  const std::string close = nearest(output.format, names);
  error = "--output: unknown format " + printable(output.format) +
          (close.empty() ? ", one of " + list : ", did you mean " + close + "?");
  return std::nullopt;
}

// Devices take any number of texts; of a file the last one would be all that is left.
bool is_same_file(const std::string& a, const std::string& b) {
  return !a.empty() && a == b && !a.starts_with("/dev/");
}

std::optional<std::vector<NamedOutput>> parse_named_outputs(
    const std::vector<std::string>& texts, std::span<const std::string_view> formats,
    std::string& error) {
  std::vector<NamedOutput> outputs;
  if (texts.empty()) outputs.push_back({.format = std::string(formats.front()), .path = {}});
  for (const std::string& text : texts) {
    std::optional<NamedOutput> output = parse_named_output(text, formats, error);
    if (!output) return std::nullopt;
    for (const NamedOutput& other : outputs)
      if (is_same_file(output->path, other.path)) {
        error = "--output: two formats go to " + printable(other.path, 200);
        return std::nullopt;
      }
    outputs.push_back(std::move(*output));
  }
  const auto on_stdout = std::count_if(outputs.begin(), outputs.end(),
                                       [](const NamedOutput& o) { return o.path.empty(); });
  if (on_stdout <= 1) return outputs;
  error = "--output: only one format can go to standard output, add =PATH";
  return std::nullopt;
}

bool finish_file(const std::string& path, const std::string& error, Console& console) {
  if (error.empty()) return true;
  console.complain("routesim: cannot write " + printable(path, 200) + ": " + error + "\n");
  return false;
}

bool write_named_outputs(const std::vector<NamedOutput>& outputs,
                         const std::function<std::string(const std::string& format)>& render,
                         Console& console) {
  bool ok = true;
  for (const NamedOutput& output : outputs) {
    const std::string text = render(output.format);
    if (output.path.empty()) {
      console.print(text);
      continue;
    }
    ok = finish_file(output.path, write_file(output.path, text), console) && ok;
  }
  return ok;
}

}  // namespace routesim::tools
