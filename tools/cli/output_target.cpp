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

std::string shared_place(std::span<const std::string> paths) {
  for (auto path = paths.begin(); path != paths.end(); ++path) {
    if (std::find(paths.begin(), path, *path) == path) continue;
    if (path->empty()) return "--output: only one format can go to standard output, add =PATH";
    // Devices take any number of texts; of a file the last one would be all that is left.
    if (!path->starts_with("/dev/")) return "--output: two formats go to " + printable(*path, 200);
  }
  return {};
}

std::optional<std::vector<NamedOutput>> parse_named_outputs(
    const std::vector<std::string>& texts, std::span<const std::string_view> formats,
    std::string& error) {
  std::vector<NamedOutput> outputs;
  std::vector<std::string> paths;
  if (texts.empty()) outputs.push_back({.format = std::string(formats.front()), .path = {}});
  for (const std::string& text : texts) {
    std::optional<NamedOutput> output = parse_named_output(text, formats, error);
    if (!output) return std::nullopt;
    paths.push_back(output->path);
    outputs.push_back(std::move(*output));
  }
  error = shared_place(paths);
  if (!error.empty()) return std::nullopt;
  return outputs;
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
