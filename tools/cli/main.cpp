#include <string>
#include <vector>

#include "sim/base/heap.h"
#include "tools/cli/cli.h"
#include "tools/cli/console.h"

int main(int argc, char** argv) {
  using namespace routesim::tools;
  routesim::keep_heap();
  install_signal_handlers();
  SystemConsole console;
  ExitCode code =
      run_command_line(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), console);
  if (!console.flush()) code = ExitCode::kInvalid;
  return static_cast<int>(code);
}
