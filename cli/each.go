package cli

import "errors"

// each does the same for every task that a command line names: one that fails does not keep the others.
func each(tasks []string, do func(ref string) error) error {
	var failures []error
	for _, ref := range tasks {
		if err := do(ref); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}
