#!/usr/bin/env bash
# Installs the Debian packages the build needs, and with `--tests` those of the tests, or names them when it may not.
set -euo pipefail

packages=(ccache cmake g++ libcli11-dev libfmt-dev libhwy-dev ninja-build nlohmann-json3-dev python3-venv)
if [ "${1:-}" = --tests ]; then
  packages+=(chromium chromium-driver clang-format clang-tidy libbenchmark-dev libgmock-dev libgtest-dev)
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
# A Python that comes from elsewhere brings its own venv, and cmake and ninja may too.
python3 -c 'import ensurepip' 2>/dev/null && missing=("${missing[@]/python3-venv/}")
read -ra missing <<< "${missing[*]}"
[ ${#missing[@]} -eq 0 ] && exit 0

echo "== system packages: ${missing[*]}"
run=()
if [ "$(id -u)" -ne 0 ]; then
  if sudo -n true 2>/dev/null; then run=(sudo -n); else
    echo "these Debian packages are missing and this user may not install them: ${missing[*]}" >&2
    echo "  try  sudo apt-get install ${missing[*]}" >&2
    exit 1
  fi
fi
export DEBIAN_FRONTEND=noninteractive
# Another installation may hold the lock: machines that update themselves, two set-ups at once.
wait=(-o DPkg::Lock::Timeout=600)
"${run[@]}" apt-get "${wait[@]}" update -qq
"${run[@]}" apt-get "${wait[@]}" install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
