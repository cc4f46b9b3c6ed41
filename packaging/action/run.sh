#!/usr/bin/env bash
# The Action's second step: runs the command by retry. Inputs are variables: nothing of them becomes a part of this script.
# The bash of macOS is version 3.2.
set -euo pipefail
[ -n "$INPUT_COMMAND" ] || exit 0

fail() { printf '::error title=retry::%s\n' "$1"; exit 125; }

report=$RUNNER_TEMP/retry-report-$$.json
arguments=(--ci=github "--report=$report")
for flag in policy attempts backoff jitter timeout budget retry-on stop-on on-retry; do
	input=INPUT_$(tr 'a-z-' 'A-Z_' <<<"$flag")
	[ -z "${!input}" ] || arguments+=("--$flag=${!input}")
done
# Other flags, one a line.
while IFS= read -r line; do
	line=${line%$'\r'}
	[ -z "$line" ] || arguments+=("$line")
done <<<"$INPUT_ARGS"

# How GitHub's own steps call these shells; the text itself is an argument, so that annotations show it.
case $INPUT_SHELL in
bash) command=(bash -eo pipefail -c "$INPUT_COMMAND") ;;
sh) command=(sh -e -c "$INPUT_COMMAND") ;;
python) command=(python -c "$INPUT_COMMAND") ;;
pwsh | powershell)
	# shellcheck disable=SC2016 # PowerShell's variables
	{
		first='$ErrorActionPreference = "stop"'
		last='if (Test-Path -LiteralPath variable:\LASTEXITCODE) { exit $LASTEXITCODE }'
	}
	command=("$INPUT_SHELL" -NoProfile -NonInteractive -Command "$first"$'\n'"$INPUT_COMMAND"$'\n'"$last")
	;;
*'{0}'*)
	script=$RUNNER_TEMP/retry-command-$$
	printf '%s\n' "$INPUT_COMMAND" >"$script"
	command=()
	read -ra words <<<"$INPUT_SHELL"
	for word in "${words[@]}"; do
		case $word in
		*'{0}'*) command+=("${word%%'{0}'*}$script${word#*'{0}'}") ;;
		*) command+=("$word") ;;
		esac
	done
	;;
*) fail "shell: $INPUT_SHELL is unknown; want bash, sh, pwsh, powershell, python, or a command line with {0}" ;;
esac
retry=$INPUT_RETRY continue=$INPUT_CONTINUE_ON_ERROR
cd "$INPUT_WORKING_DIRECTORY" || fail "working-directory: cannot enter $INPUT_WORKING_DIRECTORY"
# The command has the environment of the job, and no more.
export -n "${!INPUT_@}"

# GitHub signals this process alone when a job is cancelled. Bash lets what runs beside it ignore INT, so that TERM stands for both.
# GitHub reads stdout and stderr apart; as one, the lines of an attempt stay in its group.
"$retry" "${arguments[@]}" -- "${command[@]}" 2>&1 &
child=$!
trap 'kill -TERM "$child" 2>/dev/null || true' INT TERM
while true; do
	status=0
	wait "$child" || status=$?
	kill -0 "$child" 2>/dev/null || break
done

value() { [ ! -f "$report" ] || sed -n "s/^  \"$1\": \"\{0,1\}\([A-Za-z0-9_]*\).*/\1/p" "$report"; }
attempts=$(value attempt_count)
{
	printf 'exit-status=%s\n' "$status"
	printf 'attempts=%s\n' "${attempts:-0}"
	printf 'outcome=%s\n' "$(value status)"
} >>"$GITHUB_OUTPUT"
[ "$continue" != true ] || exit 0
exit "$status"
