#!/usr/bin/env bash
# commit_test.sh CMAKE SOURCE SCRATCH: the name a build gives itself (cmake/commit.cmake). Rows of a sweep
# are kept on --resume when they carry it, so two programs that differ must not share it.
set -euo pipefail
readonly cmake="$1" source_dir="$2" scratch="$3"
command -v git >/dev/null || {
  echo "skipped: no git on this machine"
  exit 77
}

rm -rf "$scratch"
mkdir -p "$scratch/tree/sim" "$scratch/tree/docs"
cd "$scratch/tree"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
git init -q .
echo 'int a;' >sim/a.cpp
echo 'words' >docs/page.md
git add .
git -c user.name=t -c user.email=t@t commit -q -m first

# expect NAME PATTERN: the commit is what PATTERN says; it is kept in the variable NAME.
expect() {
  "$cmake" -DSOURCE="$PWD" -DOUTPUT="$scratch/commit.h" -P "$source_dir/cmake/commit.cmake"
  local found
  found=$(sed -n 's/^#define ROUTESIM_COMMIT "\(.*\)"$/\1/p' "$scratch/commit.h")
  [[ $found =~ ^$2$ ]] || {
    echo "failed: $1 is '$found', expected $2" >&2
    exit 1
  }
  printf -v "$1" '%s' "$found"
}
differ() {
  [[ $1 != "$2" ]] || {
    echo "failed: the same name '$1' twice: $3" >&2
    exit 1
  }
}
same() {
  [[ $1 == "$2" ]] || {
    echo "failed: '$1' and '$2': $3" >&2
    exit 1
  }
}
readonly clean_name='[0-9a-f]{12}' changed_name='[0-9a-f]{12}-dirty\.[0-9a-f]{12}'

expect clean "$clean_name"
touch sim/a.cpp
expect touched "$clean_name"
same "$clean" "$touched" "a time stamp is no change"

echo 'more words' >>docs/page.md
echo 'words' >sim/README.md
expect documented "$clean_name-dirty"
git checkout -q docs
rm sim/README.md

echo 'int b;' >sim/a.cpp
expect one "$changed_name"
git add sim/a.cpp
expect staged "$changed_name"
same "$one" "$staged" "staging changes no content"
echo 'int c;' >sim/a.cpp
expect two "$changed_name"
differ "$one" "$two" "two changes of one commit"
git checkout -q HEAD -- sim
expect back "$clean_name"
same "$clean" "$back" "the change was taken back"

echo 'int d;' >'sim/new file.cpp' # sources are globbed, so it is compiled before git knows it
expect added "$changed_name"
echo 'int e;' >'sim/new file.cpp'
expect other "$changed_name"
differ "$added" "$other" "two contents of a new file"
rm sim/*.cpp
expect removed "$changed_name"

cd "$scratch"
rm -rf tree/.git
cd tree
export GIT_CEILING_DIRECTORIES="$scratch"
expect without_git ''
