package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/10f93571/retry/cli/policies"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/server/access"
)

// tokenFlags name the file of retry serve --token-file.
type tokenFlags struct {
	TokenFile string `placeholder:"FILE" help:"The file that retry serve --token-file reads. Default $RETRY_TOKEN_FILE."`
}

type tokenAddCommand struct {
	tokenFlags
	Scope string `default:"write" placeholder:"S" help:"read, write, or admin (which also adds commands, with --allow-exec). Default write."`
	Name  string `arg:"" help:"Whose token it is."`
}

type tokenListCommand struct {
	tokenFlags
}

type tokenRemoveCommand struct {
	tokenFlags
	Names []string `arg:"" name:"name" help:"Whose tokens end."`
}

const tokenUsage = `Make, list and end the tokens with which others call the API of retry serve.

Usage:
  retry token add|list|rm [flags]

Example:
  retry token add billing --scope write --token-file /etc/retry/tokens
`

const tokenAddUsage = `Make a token for the API, and print it: only this once, as the file keeps a hash of it. A server that runs knows it at once.

Usage:
  retry token add NAME --scope read|write|admin --token-file FILE

Example:
  retry token add billing --token-file /etc/retry/tokens
  curl -H "Authorization: Bearer $TOKEN" https://retry.example.org:7470/retry-tasks
`

const tokenListUsage = `List whose tokens a file has, what each may do, and the part of each that is no secret.

Usage:
  retry token list --token-file FILE

Example:
  retry token list --token-file /etc/retry/tokens
`

const tokenRemoveUsage = `End tokens. A server that runs refuses them at once.

Usage:
  retry token rm NAME… --token-file FILE

Example:
  retry token rm billing --token-file /etc/retry/tokens
`

func (f *tokenFlags) file(p *Process) (string, error) {
	file := cmp.Or(f.TokenFile, p.Getenv(policies.Variable("token-file")))
	if file == "" {
		return "", errors.New("no file of tokens\nhint: --token-file FILE, the one of retry serve --token-file")
	}
	return file, nil
}

// Run implements command.
func (c *tokenAddCommand) Run(p *Process) (int, error) {
	file, err := c.file(p)
	if err != nil {
		return 0, err
	}
	scope, err := access.ParseScope(c.Scope)
	if err != nil {
		return 0, fmt.Errorf("--scope: %w", err)
	}
	token, err := access.Add(file, c.Name, scope)
	if err != nil {
		return 0, fmt.Errorf("add a token: %w", err)
	}
	if _, err = fmt.Fprintln(p.Stdout, token); err != nil {
		return 0, errors.Join(fmt.Errorf("print the token: %w", err), access.Remove(file, c.Name))
	}
	return 0, nil
}

// Run implements command.
func (c *tokenListCommand) Run(p *Process) (int, error) {
	file, err := c.file(p)
	if err != nil {
		return 0, err
	}
	list, err := access.List(file)
	if len(list) == 0 && err == nil {
		_, err = fmt.Fprintln(p.Stdout, "no tokens")
		return 0, err
	}
	rows := [][]string{{"NAME", "SCOPE", "ID"}}
	for _, t := range list {
		rows = append(rows, []string{t.Name, t.Scope.String(), t.ID})
	}
	if len(list) > 0 {
		err = errors.Join(err, render.ScreenOf(p.Stdout, p.Getenv).WriteRows(p.Stdout, rows))
	}
	return 0, err
}

// Run implements command.
func (c *tokenRemoveCommand) Run(p *Process) (int, error) {
	file, err := c.file(p)
	if err != nil {
		return 0, err
	}
	return 0, each(c.Names, func(name string) error {
		if err := access.Remove(file, name); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.Stdout, "removed the token of %s\n", name)
		return err
	})
}
