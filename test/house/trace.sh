#!/usr/bin/env bash
# Lists the files and frames that runs of retry go through: trace.sh CHECKOUT. An empty line ends each list.
# Files: those of the module with at least one executed statement, in whatever function: main, init, a goroutine.
# Frames: the module's functions on the stack, inlined ones too, between main.main and the first such query.
set -euo pipefail
cd -P "$1"
module=github.com/10f93571/retry
driver=github.com/mattn/go-sqlite3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# A copy of the driver prints the stack. An overlay would be shorter, but must not change the module cache.
original=$(go list -m -f '{{.Dir}}' "$driver")
cp -R "$original" "$scratch/driver"
chmod -R u+w "$scratch/driver"
sed <"$original/sqlite3.go" >"$scratch/driver/sqlite3.go" \
	's/^func (c \*SQLiteConn) \(exec\|query\|prepare\)(ctx .* {$/&printStack(query);/'
cat >"$scratch/driver/printstack.go" <<'GO'
package sqlite3

import (
	"os"
	"regexp"
	"runtime/debug"
)

func printStack(query string) {
	if regexp.MustCompile(os.Getenv("HOUSE_QUERY")).MatchString(query) {
		debug.PrintStack()
	}
}
GO
cp go.mod go.sum "$scratch"
go mod edit -replace "$driver=$scratch/driver" "$scratch/go.mod"
CGO_CFLAGS=-O0 go build -trimpath -modfile "$scratch/go.mod" -cover -coverpkg=./... -o "$scratch/retry" .

# run WHAT QUERY ARGUMENT… runs retry; the journal is there already.
run() {
	local what=$1 query=$2
	shift 2
	rm -rf "$scratch/covered"
	mkdir "$scratch/covered"
	env -i PATH="$PATH" HOME="$scratch" RETRY_STATE_DIR="$scratch/state" GOCOVERDIR="$scratch/covered" \
		HOUSE_QUERY="$query" "$scratch/retry" "$@" >"$scratch/stdout" 2>"$scratch/stacks"
	grep -q '^main\.main(' "$scratch/stacks" || { echo "trace.sh: no query of retry $* matches $query" >&2; exit 1; }
	go tool covdata textfmt -i="$scratch/covered" -o="$scratch/profile"
	echo "files with a statement that \`retry $*\` executes"
	sed -n "s,^$module/\(.*\.go\):.* [1-9][0-9]*\$,\1,p" "$scratch/profile" | sort -u
	echo
	echo "frames of \`retry $*\` from main.main to $what"
	sed '/^main\.main(/q' "$scratch/stacks" | sed -n "s,^$module/,,p; /^main\.main(/d; /^main\./p"
	echo
}
run '' '^\s*INSERT' -- true >"$scratch/first"
run 'the first INSERT' '^\s*INSERT' -- true
run 'the first SELECT of tasks' '(?s)^\s*(SELECT|WITH).*\btasks\b' status
