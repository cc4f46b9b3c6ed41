# Completion of retry for bash 3.2 or later: eval "$(retry completion bash)", or a file named retry where the package
# bash-completion looks for it. The answers are those of the retry in PATH; nothing that was typed is run or expanded.

_retry() {
    local line=${COMP_LINE:0:COMP_POINT} word= piece= i kind= offset first item
    local -a words=() at=() shown=() values=()
    COMPREPLY=()
    # bash cuts words at = and : as well. Pieces without a blank between them are one word for retry.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        piece=${COMP_WORDS[i]}
        if [[ $i -eq 0 || $line == [[:blank:]]* ]]; then
            line=${line#"${line%%[![:blank:]]*}"}
            at+=("$i")
            word=
        fi
        ((i < COMP_CWORD)) || piece=$line
        word+=$piece
        words[${#at[@]} - 1]=$word
        line=${line#"$piece"}
    done
    # What bash keeps of the word at the cursor, since it replaces the last piece alone; a = or : is no part of it.
    [[ -n $piece && -z ${piece//[=:@<>]/} ]] && piece=
    local kept=$((${#word} - ${#piece}))

    while IFS= read -r item; do
        if [[ -z $kind ]]; then
            read -r kind offset first <<<"$item"
            continue
        fi
        values+=("${item%%$'\t'*}")
        if [[ $item == *$'\t'* ]]; then
            shown+=("${item%%$'\t'*}  (${item#*$'\t'})")
        else
            shown+=("$item")
        fi
    done < <(command retry __complete bash "$kept" -- "${words[@]:1}" 2>/dev/null)

    case $kind in
    command)
        i=${at[first + 1]}
        if declare -F _comp_command_offset >/dev/null; then
            _comp_command_offset "$i"
        elif declare -F _command_offset >/dev/null; then
            _command_offset "$i"
        elif ((first + 2 == ${#words[@]})); then # the name of the command itself
            while IFS= read -r item; do COMPREPLY+=("$item"); done < <(compgen -c -- "$word")
            _retry_option filenames
        else
            _retry_option default
        fi
        ;;
    files) _retry_option default ;;
    dirs) _retry_option dirnames ;;
    esac
    # Explanations are shown where bash lists what there is, and never where it puts it on the line.
    case $COMP_TYPE:${#values[@]} in
    *:0) return ;;
    63:1 | 33:1 | 64:1) ;;
    63:* | 33:* | 64:*)
        COMPREPLY+=("${shown[@]}")
        return
        ;;
    esac
    COMPREPLY+=("${values[@]}")
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=:,] ]] && _retry_option nospace
    return 0
}

# _retry_option changes how bash goes on with a completion. The bash of macOS has no compopt.
_retry_option() {
    ! type -t compopt >/dev/null || compopt -o "$1"
}

complete -F _retry retry
