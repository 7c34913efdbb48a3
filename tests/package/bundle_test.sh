#!/usr/bin/env bash
# bundle_test.sh SOURCE BUILD SCRATCH PLUGIN: the folder that tools/bundle makes runs elsewhere, and
# the root of the container image is small and complete: as an unknown user in a chroot, it runs a
# scenario, a policy of one's own (PLUGIN, a shared object) and a shell for build servers.
set -euo pipefail
readonly source_dir="$1" build="$2" scratch="$3" plugin="$4"
if [[ $(realpath "$build") != "$(realpath "$source_dir")/build/release" ]]; then
  echo "skipped: tools/bundle builds in build/release, and this is $build"
  exit 77
fi
if [[ ! -e /proc/self/exe ]]; then
  echo "skipped: the loader finds libraries beside a program through /proc"
  exit 77
fi
fail() {
  echo "failed: $*" >&2
  exit 1
}
rm -rf "$scratch"
mkdir -p "$scratch"
"$source_dir/tools/bundle" "$scratch/bundle"
mv "$scratch/bundle" "$scratch/moved here"
ldd "$scratch/moved here/bin/routesim" | grep "moved here/bin/../lib/routesim/libyaml-cpp" ||
  fail "the command does not take the libraries beside it"
(cd / && env -i "$scratch/moved here/bin/routesim" check llm-d-qwen3-32b-16xh100) ||
  fail "the bundle does not find its scenarios"

if ! command -v busybox >/dev/null 2>&1 || ldd "$(command -v busybox)" >/dev/null 2>&1; then
  echo "no busybox-static: the image is not tried"
  exit 0
fi
"$source_dir/tools/container/rootfs" "$scratch/moved here" "$scratch/image"
size=$(du -sm --apparent-size "$scratch/image" | cut -f 1)
echo "the image has $size MB"
[[ $size -le 80 ]] || fail "the image is larger than 80 MB"
[[ $(id -u) -eq 0 ]] || { echo "a chroot needs root: the image is not run"; exit 0; }

cat >"$scratch/image/data/scenario.yaml" <<'SCENARIO'
name: image
workload:
  groups: {requests: 40, rate: 20, groups: 4, prefix_len: 512, suffix_len: 64, output_len: 16}
cluster:
  pools:
  - {name: a, replicas: 2, accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2}
routing: {balancer: library, library: {path: policy.so, options: "0.1"}}
SCENARIO
cp "$plugin" "$scratch/image/data/policy.so"
chroot --userspec=4711:4711 "$scratch/image" /bin/sh -ec '
  cd /data
  routesim run scenario.yaml --quiet --check
  routesim check h100-rate-map
  test "$(routesim list scenarios | wc -l)" -gt 5
  ! touch /etc/written' >"$scratch/run.out" || fail "the image does not run"
grep -q '^image, seed 1' "$scratch/run.out" || fail "the image did not simulate"
