# Shared by tools/run and tools/test: installs what a bare Debian or Ubuntu lacks, configures and
# builds. Sourced, never executed. Everything here writes to stderr, so that the standard output of
# tools/run is routesim's alone.

ROOT="$(cd -P "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
BUILD="$ROOT/build/release"

# Programs are looked up as commands, so a newer one outside the package system counts too.
# Each entry is command=package.
readonly RUN_COMMANDS=(cmake=cmake ninja=ninja-build c++=g++ ccache=ccache)
readonly RUN_PACKAGES=(libboost-dev libboost-program-options-dev libyaml-cpp-dev nlohmann-json3-dev
  libfmt-dev libmuparser-dev librandom123-dev libxxhash-dev libeigen3-dev libtbb-dev)
readonly TEST_COMMANDS=(git=git dpkg-shlibdeps=dpkg-dev file=file)
readonly TEST_PACKAGES=(libgtest-dev libbenchmark-dev)
# Tests that need one of these are skipped without it, for releases that do not carry it.
readonly OPTIONAL_TEST_COMMANDS=(clang-format-14=clang-format-14 chromium=chromium zsh=zsh fish=fish
  groff=groff slurmctld=slurm-wlm munged=munge lintian=lintian pdftotext=poppler-utils
  python3-venv python3-pip)

# sysexits.h EX_UNAVAILABLE: outside routesim's own exit codes (0 to 4, 130).
readonly EXIT_UNAVAILABLE=69

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# missing_packages ENTRY...: prints the packages that provide what is not there.
missing_packages() {
  local entry status
  for entry in "$@"; do
    if [[ $entry == *=* ]]; then
      command -v "${entry%%=*}" >/dev/null 2>&1 || printf '%s\n' "${entry#*=}"
    else
      # The status abbreviation of a package that is fully installed is "ii ".
      status="$(dpkg-query -W -f '${db:Status-Abbrev}' "$entry" 2>/dev/null)" || status=""
      [[ $status == ii* ]] || printf '%s\n' "$entry"
    fi
  done
}

# ensure_packages ENTRY...: installs what is missing; does nothing, and needs no rights, otherwise.
ensure_packages() {
  if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
    say "no apt here; relying on the packages that are installed (see README.md)"
    return 0
  fi
  local list missing=()
  list="$(missing_packages "$@")"
  [[ -n $list ]] || return 0
  mapfile -t missing <<<"$list"

  local as_root=()
  if [[ $(id -u) -ne 0 ]]; then
    # Without a terminal nobody can type a password, so only ask sudo when it will not wait for one.
    if command -v sudo >/dev/null 2>&1 && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
      as_root=(sudo)
    else
      say "these packages are missing: ${missing[*]}"
      say "and neither root nor sudo is available. Have an administrator run:"
      say "  apt-get install --no-install-recommends ${missing[*]}"
      return "$EXIT_UNAVAILABLE"
    fi
  fi

  say "installing ${missing[*]}"
  local log="$ROOT/build/packages.log"
  mkdir -p "$ROOT/build" && : >"$log" || return
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 apt-get -qq
    -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
  # A broken third-party source must not stop us: whether the packages install is what counts.
  [[ -n ${APT_IS_CURRENT:-} ]] || "${apt[@]}" update </dev/null >>"$log" 2>&1 || true
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >>"$log" 2>&1 && return
  local why
  if grep -qE 'Failed to fetch|Could not (resolve|connect)|Temporary failure' "$log"; then
    why="the package mirror does not answer; is there a network?"
  else
    why="$(grep -m 1 '^E: ' "$log" || echo "apt-get failed")"
  fi
  say "cannot install ${missing[*]}: $why (build/packages.log)"
  return "$EXIT_UNAVAILABLE"
}

# try_packages ENTRY...: like ensure_packages, but goes on without what cannot be installed.
try_packages() {
  local entry
  ensure_packages "$@" 2>/dev/null && return
  # One that a release does not carry stops all; the others come one by one.
  for entry in "$@"; do
    APT_IS_CURRENT=1 ensure_packages "$entry" 2>/dev/null || true
  done
  say "going on without $(missing_packages "$@" | xargs)"
}

# check_cmake: the presets are of a form that CMake reads since 3.25.
check_cmake() {
  local version
  version="$(cmake --version 2>/dev/null | sed -n 's/^cmake version //p')"
  [[ $(printf '3.25\n%s\n' "$version" | sort -V | sed -n 1p) == 3.25 ]] && return 0
  say "$(command -v cmake) is CMake ${version:-of an unknown version}; 3.25 or newer is needed," \
    "as in Debian 12 and Ubuntu 24.04"
  return "$EXIT_UNAVAILABLE"
}

# use_compiler_cache: picks a cache directory that can be written to, or switches ccache off.
use_compiler_cache() {
  if [[ -z ${CCACHE_DIR:-} ]]; then
    if [[ -n ${HOME:-} ]] && mkdir -p "$HOME/.cache/ccache" 2>/dev/null &&
      [[ -w $HOME/.cache/ccache ]]; then
      CCACHE_DIR="$HOME/.cache/ccache"
    else
      CCACHE_DIR="$ROOT/build/.ccache"
    fi
  fi
  if mkdir -p "$CCACHE_DIR" 2>/dev/null && [[ -w $CCACHE_DIR ]]; then
    export CCACHE_DIR
    # Paths relative to the clone: another clone, or another build folder in it, finds the same.
    if [[ -z ${CCACHE_BASEDIR:-} && -z $(ccache --get-config base_dir 2>/dev/null) ]]; then
      export CCACHE_BASEDIR="$ROOT"
    fi
  else
    say "the compiler cache $CCACHE_DIR cannot be written to; building without it"
    export CCACHE_DISABLE=1
  fi
}

# build_jobs: one compiler per core, but never more than memory has room for (about 1 GiB each).
build_jobs() {
  local jobs free_kib
  jobs="$(nproc 2>/dev/null || echo 1)"
  free_kib="$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null)" || free_kib=""
  if [[ -n $free_kib && $((free_kib / 1048576)) -lt $jobs ]]; then
    jobs=$((free_kib / 1048576))
    [[ $jobs -ge 1 ]] || jobs=1
  fi
  echo "$jobs"
}

# lock_build: one build at a time in the build directory. Descriptor 9 holds the lock until
# unlock_build or the end of the script.
lock_build() {
  mkdir -p "$BUILD" || return
  command -v flock >/dev/null 2>&1 || return 0
  exec 9>"$BUILD/.lock" || return
  flock -n 9 && return 0
  say "waiting for another build in $BUILD"
  flock 9
}

unlock_build() { exec 9>&-; }

# cached NAME: the value of one cache variable of the build directory, or nothing.
cached() {
  sed -n "s/^$1:[A-Z]*=//p" "$BUILD/CMakeCache.txt" 2>/dev/null
}

# configure CMAKE_ARGS...: runs cmake when the build directory is not yet what the caller needs.
# A directory that also builds the tests serves tools/run as it is, so the two never undo each
# other's work; Ninja itself runs cmake again whenever a CMakeLists.txt changed.
configure() {
  if [[ -f $BUILD/CMakeCache.txt && $(cached CMAKE_HOME_DIRECTORY) != "$ROOT" ]]; then
    say "$BUILD was configured for another folder; starting it afresh"
    rm -rf "$BUILD/CMakeCache.txt" "$BUILD/CMakeFiles"
  fi
  # The stamp is there only after a configuration that succeeded.
  local stamp="$BUILD/.configured" argument name needed=0
  [[ -f $stamp && -f $BUILD/build.ninja && -f $BUILD/CMakeCache.txt ]] || needed=1
  for argument in "$@"; do
    name="${argument#-D}"
    [[ $(cached "${name%%=*}") == "${name#*=}" ]] || needed=1
  done
  [[ $needed -eq 0 ]] && return 0
  rm -f "$stamp"
  (cd "$ROOT" && cmake --preset release "$@") && touch "$stamp"
}

# build_command: builds `routesim` in the build directory, which another build may have configured.
build_command() {
  local options=()
  # The tests need more packages; leave them out unless this directory already builds them.
  if [[ $(cached ROUTESIM_BUILD_TESTS) != ON ]]; then
    options=(-DROUTESIM_BUILD_TESTS=OFF -DROUTESIM_BUILD_BENCH=OFF)
  fi
  configure "${options[@]}" || return
  NINJA_STATUS='[%f/%t] ' cmake --build "$BUILD" --target routesim -j "$(build_jobs)"
}

# follow_build: keeps the output of a build in its log and says how far the build is: on a terminal
# in one line, elsewhere once for every tenth of a first build. A few steps are not worth a word.
follow_build() {
  local line done=0 total=0 tenth=0 begun=$SECONDS
  while IFS= read -r line; do
    printf '%s\n' "$line" >&3
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] && ${BASH_REMATCH[2]} -ge 10 ]] || continue
    done=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
    if [[ -t 2 ]]; then
      printf '\r%s: building routesim %d/%d\033[K' "${0##*/}" "$done" "$total" >&2
    elif [[ -n ${FIRST_BUILD:-} && $((10 * done / total)) -gt $tenth ]]; then
      tenth=$((10 * done / total))
      say "building routesim $done/$total"
    fi
  done 3>"$BUILD/tools-run.log"
  [[ ! -t 2 || $total -eq 0 ]] || printf '\r\033[K' >&2
  [[ $done -lt $total || $total -eq 0 || -z ${FIRST_BUILD:-} ]] ||
    say "built routesim in $((SECONDS - begun)) s"
}

# build_routesim: from whatever this machine has to $BUILD/routesim. Nothing on standard output.
build_routesim() {
  ensure_packages "${RUN_COMMANDS[@]}" "${RUN_PACKAGES[@]}"
  check_cmake
  use_compiler_cache
  lock_build
  local status=0 FIRST_BUILD=""
  if [[ ! -x $BUILD/routesim ]]; then
    FIRST_BUILD=1
    say "building for some minutes; the log is build/release/tools-run.log"
  fi
  # The chatter is shown only when something went wrong.
  build_command 2>&1 | follow_build || status=$?
  if [[ $status -ne 0 ]]; then
    cat "$BUILD/tools-run.log" >&2
    return "$status"
  fi
  unlock_build
}
