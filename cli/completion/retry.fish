# Completion of retry for fish: retry completion fish | source, or ~/.config/fish/completions/retry.fish. The answers are
# those of the retry in PATH; nothing that was typed is run or expanded.

function __retry_complete
    set -l typed (commandline -opc)
    set -l current (commandline -ct)
    set -l plain (string replace -r '^["\']' '' -- "$current")
    set -l answer (command retry __complete fish -- $typed[2..-1] "$plain" 2>/dev/null)
    set -l head (string split ' ' -- "$answer[1]")
    test (count $head) -eq 3; or return
    set -l before (string sub -l $head[2] -- "$plain")
    for line in $answer[2..-1]
        printf '%s\n' "$before$line"
    end
    switch $head[1]
        case command
            set -l words $typed[(math $head[3] + 2)..-1]
            complete -C (string join -- ' ' (string escape -- $words) "$current")
        case files
            set -l rest (string sub -s (math $head[2] + 1) -- "$plain")
            for path in (__fish_complete_path "$rest")
                printf '%s\n' "$before$path"
            end
        case dirs
            set -l rest (string sub -s (math $head[2] + 1) -- "$plain")
            for path in (__fish_complete_directories "$rest" '')
                printf '%s\n' "$before$path"
            end
    end
end

complete -c retry -e
complete -c retry -f -k -a '(__retry_complete)'
