package cmdexec

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// probe writes what a process inherits that is not handed to it on purpose.
var probe = []string{"sh", "-c", `ls /proc/self/fd; grep -E '^(SigBlk|SigIgn|SigPnd|ShdPnd|NoNewPrivs|Seccomp|Cpus_allowed):' /proc/self/status
	umask; ulimit -Sa; ulimit -Ha; pwd; cat /proc/self/oom_score_adj; nice`}

// A command inherits all that it would inherit without retry.
func TestInheritsTheSame(t *testing.T) {
	callers := map[string][]string{
		"plainly":              {"env"},
		"under nohup":          {"nohup"},
		"in the background":    {"sh", "-c", `trap '' INT; exec "$@"`, "sh"},
		"with a file open":     {"sh", "-c", `exec 7</dev/null; exec "$@"`, "sh"},
		"with limits":          {"sh", "-c", `umask 027; ulimit -n 200; ulimit -Sc 0; exec "$@"`, "sh"},
		"with a lower limit":   {"sh", "-c", `ulimit -Sn 100; exec "$@"`, "sh"},
		"nicely":               {"nice", "-n", "5"},
		"with signals blocked": role("block"),
	}
	for name, caller := range callers {
		t.Run(name, func(t *testing.T) {
			bare := output(t, slices.Concat(caller, probe))
			wrapped := output(t, slices.Concat(caller, role("execute", probe...)))
			if bare != wrapped {
				t.Errorf("without retry:\n%s\nwith it:\n%s", bare, wrapped)
			}
		})
	}
}

func output(t *testing.T, argv []string) string {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = new(strings.Builder)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, cmd.Stderr)
	}
	return string(out)
}
