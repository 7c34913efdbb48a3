// The table files inside the command: models/kernels/tables/NAME.kernels. Private to models/.
#pragma once

#include <string_view>

namespace routesim::models::kernels {

/// The bytes of a file; empty where there is none of that name.
std::string_view table_file(std::string_view name);

}  // namespace routesim::models::kernels
