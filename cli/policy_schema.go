package cli

import (
	"github.com/10f93571/retry/cli/policies"
)

// policySchemaCommand is `retry policy schema`.
type policySchemaCommand struct{}

func (c *policySchemaCommand) run(p *Process) (int, error) {
	text, err := policies.Schema()
	if err != nil {
		return 0, err
	}
	_, err = p.Stdout.Write(text)
	return 0, err
}
