#!/usr/bin/env bash
# The Action's first step: the program that its second step runs, in the PATH of all later steps, too.
set -euo pipefail

fail() { printf '::error title=retry::%s\n' "$1"; exit 1; }

# Bash on Windows has paths of its own; the runner wants the system's.
unix() { if command -v cygpath >/dev/null; then cygpath -u "$1"; else printf '%s\n' "$1"; fi; }
native() { if command -v cygpath >/dev/null; then cygpath -w "$1"; else printf '%s\n' "$1"; fi; }

if [ -n "$INPUT_PATH" ]; then
	INPUT_PATH=$(unix "$INPUT_PATH")
	[ -x "$INPUT_PATH" ] || fail "path: $INPUT_PATH is no program"
	retry=$(cd "$(dirname "$INPUT_PATH")" && pwd)/${INPUT_PATH##*/}
	directory=${retry%/*}
else
	[[ $INPUT_VERSION =~ ^[0-9A-Za-z.+-]+$ ]] || fail "version: $INPUT_VERSION is none; want 1.2.3 or latest"
	directory=$RUNNER_TEMP/retry-action/$INPUT_VERSION
	retry=$directory/retry
	[ "${RUNNER_OS:-}" != Windows ] || retry+=.exe
	if ! [ -x "$retry" ]; then
		INSTALL_VERSION=$INPUT_VERSION INSTALL_SHA256=$INPUT_SHA256 INSTALL_FROM=$INPUT_DOWNLOAD_FROM \
			sh "$GITHUB_ACTION_PATH/install.sh" "$directory" 2>"$RUNNER_TEMP/retry-install" || fail "$(tail -n 1 "$RUNNER_TEMP/retry-install")"
	fi
fi
native "$directory" >>"$GITHUB_PATH"
printf 'retry=%s\n' "$retry" >>"$GITHUB_OUTPUT"
