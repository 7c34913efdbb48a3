#!/usr/bin/env bash
# container_test.sh SOURCE SCRATCH: builds tools/container/Dockerfile with buildah, without a daemon, on a
# Debian 12 that debootstrap makes. Compiles everything, so it runs only when ROUTESIM_BARE=1.
#   ROUTESIM_BUILDAH_OPTIONS  more options for the build, such as a volume with a compiler cache
set -euo pipefail
readonly source_dir="$1" scratch="$2"
skip() {
  echo "skipped: $*"
  exit 77
}
[[ ${ROUTESIM_BARE:-0} == 1 ]] || skip "set ROUTESIM_BARE=1 to build the container image (many minutes)"
[[ $(id -u) -eq 0 ]] || skip "debootstrap needs root"
for tool in buildah debootstrap; do
  command -v "$tool" >/dev/null 2>&1 || skip "$tool is not installed"
done
mirror="${ROUTESIM_BARE_MIRROR:-http://deb.debian.org/debian}"
wget -q --spider --timeout=20 --tries=1 "$mirror/dists/bookworm/Release" || skip "no bookworm at $mirror"

export BUILDAH_ISOLATION=chroot
in_storage() { buildah --root "$scratch/storage" --runroot "$scratch/run" "$@"; }
rm -rf "$scratch/clone" "$scratch/storage" "$scratch/run"
mkdir -p "$scratch"
if [[ ! -e $scratch/base/.complete ]]; then
  debootstrap --variant=minbase bookworm "$scratch/base" "$mirror" >"$scratch/debootstrap.log"
  touch "$scratch/base/.complete"
fi
container=$(in_storage from scratch)
in_storage add -q "$container" "$scratch/base" /
in_storage commit -q --rm "$container" debian:12

git clone -q --no-hardlinks "$source_dir" "$scratch/clone"
# shellcheck disable=SC2086
in_storage bud --pull-never ${ROUTESIM_BUILDAH_OPTIONS:-} --build-arg VERSION=test \
  -f "$scratch/clone/tools/container/Dockerfile" -t routesim:test "$scratch/clone"

bytes=$(in_storage images --json routesim:test | sed -n 's/.*"size": "\(.*\)",/\1/p')
echo "the image has $bytes"
container=$(in_storage from --pull-never routesim:test)
[[ $(in_storage inspect --format '{{.OCIv1.Config.User}}' "$container") == 65532:65532 ]]
size=$(du -sm --apparent-size "$(in_storage mount "$container")" | cut -f 1)
echo "unpacked, it has $size MB"
[[ $size -le 80 ]]
in_storage run "$container" -- /usr/bin/routesim --version
in_storage run "$container" -- /usr/bin/routesim run kubeai-llama3.1-8b-2xl4 --quiet
