# Sourced: the LLVM tools whose findings the repository follows are Debian 12's. Other versions break
# lines differently and know other checks.

# llvm_tool NAME: sets `tool` to the command of the wanted version, or ends the script as skipped.
llvm_tool() {
  local wanted=14 candidate
  for candidate in "$1-$wanted" "$1"; do
    if command -v "$candidate" >/dev/null 2>&1 &&
      [[ $("$candidate" --version) =~ version\ $wanted\. ]]; then
      tool="$candidate"
      return
    fi
  done
  echo "skipped: $1 $wanted is not installed"
  exit 77
}
