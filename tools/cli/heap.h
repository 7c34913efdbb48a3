// How a program that runs many simulations treats its heap.
#pragma once

namespace routesim::tools {

/// Asks the C library to keep freed memory for the next simulation instead of giving it back, and
/// the system to back the heap with huge pages where it has them: a run reads tables of many
/// megabytes at random places, and most of these reads would first look for the page. For main(),
/// before anything large is allocated; where the system knows nothing of all this, nothing happens.
/// Saves 6 % of the H100 ladder (bench/ladder_bench).
void keep_heap();

}  // namespace routesim::tools
