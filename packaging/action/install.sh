#!/bin/sh
# Puts the retry of a release into a folder: install.sh DIR. It needs curl or wget, tar (unzip on Windows), and sha256sum or shasum.
#   INSTALL_VERSION  1.2.3, v1.2.3 or latest (default)
#   INSTALL_SHA256   what the archive's sum has to be; without it, the sums that the release publishes are compared
#   INSTALL_FROM     where the releases are: a mirror's address
set -eu
directory=$1
from=${INSTALL_FROM:-https://github.com/10f93571/retry/releases}
version=${INSTALL_VERSION:-latest}
version=${version#v}

die() { echo "install retry: $1" >&2; exit 1; }

sums=SHA256SUMS
case $(uname -s) in
Linux) system=linux ;;
Darwin) system=darwin sums=SHA256SUMS.darwin ;;
MINGW* | MSYS* | CYGWIN*) system=windows ;;
*) die "there is no release for $(uname -s)" ;;
esac
case $system/$(uname -m) in
windows/*) machine=amd64 ;; # Windows on ARM runs it, too
*/x86_64 | */amd64) machine=amd64 ;;
*/aarch64 | */arm64) machine=arm64 ;;
linux/armv7* | linux/armv8*) machine=armv7 ;;
linux/riscv64) machine=riscv64 ;;
*) die "there is no release for $system on $(uname -m)" ;;
esac

fetch() {
	if command -v curl >/dev/null; then
		curl --fail --silent --show-error --location --retry 4 --output "$2" "$1"
	else
		wget -q -O "$2" "$1"
	fi || die "cannot fetch $1"
}

sum() {
	if command -v sha256sum >/dev/null; then
		sha256sum "$1"
	else
		shasum -a 256 "$1"
	fi | cut -d ' ' -f 1
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
case $version in
latest) release=latest/download ;;
*) release=download/v$version ;;
esac
fetch "$from/$release/$sums" "$scratch/sums"
# The sums name the archives, and so the version that is the latest.
line=$(grep -E "^[0-9a-f]{64}  retry_[0-9A-Za-z.+~-]+_${system}_$machine\.(tar\.gz|zip)\$" "$scratch/sums" | head -n 1)
[ -n "$line" ] || die "$from/$release/$sums names no archive for $system on $machine"
want=${line%% *} archive=${line##* }
version=${archive#retry_} version=${version%"_${system}_$machine"*}

fetch "$from/download/v$version/$archive" "$scratch/$archive"
got=$(sum "$scratch/$archive")
for want in "$want" ${INSTALL_SHA256:+"$INSTALL_SHA256"}; do
	[ "$got" = "$want" ] || die "the sum of $archive is $got, want $want"
done

mkdir "$scratch/unpacked"
mkdir -p "$directory"
case $archive in
*.zip) unzip -q "$scratch/$archive" -d "$scratch/unpacked" && mv "$scratch"/unpacked/*/retry.exe "$directory" ;;
*) tar -xzf "$scratch/$archive" -C "$scratch/unpacked" && mv "$scratch"/unpacked/*/retry "$directory" ;;
esac
