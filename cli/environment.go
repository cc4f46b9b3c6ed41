package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/10f93571/retry/task"
)

// environmentFlags say what of the environment goes into the journal.
type environmentFlags struct {
	KeepEnv []string
}

// kept returns the variables to keep: NAME=value, or NAME for one that is not set.
func (f *environmentFlags) kept(p *Process) ([]string, error) {
	var kept []string
	for _, name := range f.KeepEnv {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return nil, fmt.Errorf("--keep-env: %q is no name of a variable\nhint: give names alone, such as --keep-env HOME,LANG", name)
		}
		kept = append(kept, lookUp(p.Environ, name))
	}
	return kept, nil
}

// lookUp returns NAME=value, the last one as for a child, or NAME.
func lookUp(environ []string, name string) string {
	for _, kv := range slices.Backward(environ) {
		if strings.HasPrefix(kv, name+"=") {
			return kv
		}
	}
	return name
}

// environment returns that of a task's attempts: this process's, with what was kept in its place.
func environment(environ []string, t *task.Task) []string {
	if len(t.Environment) == 0 {
		return environ
	}
	kept := map[string]bool{}
	for _, kv := range t.Environment {
		name, _, _ := strings.Cut(kv, "=")
		kept[name] = true
	}
	var result []string
	for _, kv := range environ {
		if name, _, _ := strings.Cut(kv, "="); !kept[name] {
			result = append(result, kv)
		}
	}
	for _, kv := range t.Environment {
		if strings.Contains(kv, "=") {
			result = append(result, kv)
		}
	}
	return result
}

// nameOf is the NAME of NAME=value.
func nameOf(variable string) string {
	name, _, _ := strings.Cut(variable, "=")
	return name
}
