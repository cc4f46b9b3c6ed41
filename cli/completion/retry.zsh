#compdef retry
# Completion of retry for zsh: a file named _retry in a directory of $fpath, or source <(retry completion zsh) after
# compinit. The answers are those of the retry in PATH; nothing that was typed is run or expanded.

_retry() {
    local -a typed answer head whole whole_shown begun begun_shown
    local line value text found=1 width=0
    typed=("${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}")
    answer=("${(@f)$(command retry __complete zsh -- "${(@)typed}" 2>/dev/null)}")
    head=(${=answer[1]})
    shift answer
    for line in "${(@)answer}"; do
        value=${line%%$'\t'*}
        (( $#value > width )) && width=$#value
    done
    for line in "${(@)answer}"; do
        value=${line%%$'\t'*}
        text=$value
        [[ $line == *$'\t'* ]] && text="${(r:width:)value}  -- ${line#*$'\t'}"
        text=${text[1,COLUMNS-2]}
        if [[ $value == *[=:,] ]]; then # more is to follow without a blank
            begun+=("$value") begun_shown+=("$text")
        else
            whole+=("$value") whole_shown+=("$text")
        fi
    done
    if [[ $head[1] != command ]] && (( head[2] > 0 )); then
        compset -p $head[2]
    fi
    # One list, in the order of the answer: the newest tasks come first.
    (( $#whole )) && compadd -V retry -l -d whole_shown -a whole && found=0
    (( $#begun )) && compadd -V retry -l -S '' -d begun_shown -a begun && found=0
    case $head[1] in
    command)
        words=("${(@)words[head[3]+2,-1]}")
        (( CURRENT -= head[3] + 1 ))
        _normal && found=0
        ;;
    files) _files && found=0 ;;
    dirs) _files -/ && found=0 ;;
    esac
    return found
}

if [[ $funcstack[1] == _retry ]]; then
    _retry "$@"
else
    compdef _retry retry
fi
