// One function, two builds: for any processor and for AVX2; the processor chooses at run time.
#pragma once

/// Before a function whose loops gain from longer vectors. Both builds give the same bits:
/// compilers may neither reorder nor fuse floating-point operations here (-ffp-contract=off).
/// Sanitizers run code before they are ready for the function that chooses, and clang 14 cannot do
/// it.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ROUTESIM_VECTORIZED __attribute__((target_clones("avx2", "default")))
#else
#define ROUTESIM_VECTORIZED
#endif
