// What shells and `man` are told about the command, made from the table of commands.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/cli.h"

namespace routesim::tools {

/// The shells there is completion for.
inline constexpr std::array<std::string_view, 3> kShells = {"bash", "zsh", "fish"};

/// The completion script of one of `kShells`; nothing for any other name.
std::optional<std::string> completion_script(std::string_view shell,
                                             const std::vector<Command>& commands);

/// The manual page routesim(1) in roff. Has no date, so that the same build makes the same bytes.
std::string manual_page(const std::vector<Command>& commands);

}  // namespace routesim::tools
