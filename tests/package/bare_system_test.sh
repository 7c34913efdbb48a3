#!/usr/bin/env bash
# bare_system_test.sh SOURCE SCRATCH SUITE: the promise of the README, tried out. In a fresh Debian 12
# (SUITE bookworm), Debian 13 (trixie) or Ubuntu 24.04 (noble) with nothing but git and a shell, a clone
# of this repository runs a scenario, passes its tests, and makes a package that installs and runs in a
# second fresh system. Takes many minutes, so it runs only when ROUTESIM_BARE=1; needs root, debootstrap and a mirror.
#   ROUTESIM_BARE_MIRROR         Debian's mirror; by default the one this machine uses
#   ROUTESIM_BARE_UBUNTU_MIRROR  Ubuntu's; by default the public archive
#   ROUTESIM_BARE_SCENARIO       what tools/run is given; by default the smallest scenario there is
set -euo pipefail
readonly source_dir="$1" scratch="$2" suite="$3"

skip() {
  echo "skipped: $*"
  exit 77
}
[[ ${ROUTESIM_BARE:-0} == 1 ]] || skip "set ROUTESIM_BARE=1 to try a bare system (many minutes)"
[[ $(id -u) -eq 0 ]] || skip "a chroot needs root"
command -v debootstrap >/dev/null 2>&1 || skip "debootstrap is not installed"
git -C "$source_dir" rev-parse HEAD >/dev/null 2>&1 || skip "the source is not a git repository"

# The mirror this machine takes its own packages from, if it says so.
own_mirror() {
  grep -rhoE 'https?://[^ ]*/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d \
    2>/dev/null | sed -n 1p | tr -d ' ' || true
}

bootstrap=(--variant=minbase --include=git)
case "$suite" in
  bookworm | trixie)
    mirror="${ROUTESIM_BARE_MIRROR:-$(own_mirror)}"
    mirror="${mirror:-http://deb.debian.org/debian}"
    recipe="$suite"
    ;;
  noble)
    mirror="${ROUTESIM_BARE_UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}"
    bootstrap+=("--components=main,universe")
    recipe=gutsy # What every later Ubuntu is built by; an older debootstrap does not know noble.
    # Debian does not ship Ubuntu's keys. What is installed is thrown away after the test.
    [[ -e /usr/share/keyrings/ubuntu-archive-keyring.gpg ]] || bootstrap+=(--no-check-gpg)
    ;;
  *)
    echo "unknown suite $suite" >&2
    exit 1
    ;;
esac
wget -q --spider --timeout=20 --tries=1 "$mirror/dists/$suite/Release" || skip "no $suite at $mirror"

# in_root ROOT COMMAND: runs a shell command with an empty environment: no HOME, no TERM.
in_root() {
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin CI=true chroot "$1" /bin/sh -c "$2" </dev/null
}

base="$scratch/base"
if [[ ! -e $base/.complete ]]; then
  rm -rf "$base"
  mkdir -p "$base"
  debootstrap "${bootstrap[@]}" "$suite" "$base" "$mirror" \
    "/usr/share/debootstrap/scripts/$recipe" >"$scratch/debootstrap.log" ||
    { tail -n 20 "$scratch/debootstrap.log"; exit 1; }
  touch "$base/.complete"
fi
builder="$scratch/builder"
runner="$scratch/runner"
rm -rf "$builder" "$runner"
cp -a "$base" "$builder"
cp -a "$base" "$runner"

# A path with a space, as people have.
readonly clone="/srv/my clones/routesim"
git clone -q --no-hardlinks "$source_dir" "$builder$clone"

scenario="${ROUTESIM_BARE_SCENARIO:-}"
if [[ -z $scenario ]]; then
  scenario="$(cd "$source_dir" && git ls-files ':(glob)scenarios/*.yaml' | xargs -r ls -S | tail -n 1)"
fi
echo "== tools/run $scenario"
in_root "$builder" "cd '$clone' && ./tools/run '$scenario'" >"$scratch/run.out"
[[ -s $scratch/run.out ]] || { echo "tools/run printed nothing" >&2; exit 1; }
if grep -Eq '^\[[0-9]+/[0-9]+\]|^-- |^Setting up' "$scratch/run.out"; then
  echo "build chatter on standard output" >&2
  exit 1
fi
cat "$scratch/run.out"

echo "== tools/test"
in_root "$builder" "cd / && '$clone/tools/test'" >"$scratch/test.out" ||
  { tail -n 60 "$scratch/test.out"; exit 1; }
grep '^100% tests passed, 0 tests failed out of ' "$scratch/test.out"

echo "== the Debian package"
in_root "$builder" "apt-get -qq install -y --no-install-recommends dpkg-dev file >/dev/null 2>&1 &&
  cd '$clone/build/release' && cpack -G DEB >/dev/null"
cp "$builder$clone"/build/release/routesim_*.deb "$runner/tmp/"
in_root "$runner" "apt-get -qq update && apt-get -qq install -y --no-install-recommends \
  /tmp/routesim_*.deb >/dev/null 2>&1"
in_root "$runner" "routesim --version"
in_root "$runner" "routesim run '/usr/share/routesim/$scenario'" >"$scratch/package.out"
cmp "$scratch/package.out" "$scratch/run.out"
echo "the package prints the same bytes as the build it came from"
