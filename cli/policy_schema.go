package cli

import (
	"github.com/10f93571/retry/cli/policies"
)

// policySchemaCommand is `retry policy schema`.
type policySchemaCommand struct{}

func (*policySchemaCommand) usage() string {
	return `Print a JSON schema of the config file, for editors that complete and check TOML.

Usage:
  retry policy schema
`
}

func (c *policySchemaCommand) Run(p *Process) (int, error) {
	text, err := policies.Schema()
	if err != nil {
		return 0, err
	}
	_, err = p.Stdout.Write(text)
	return 0, err
}
