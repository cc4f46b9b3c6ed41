package cli

import (
	"encoding/json"
	"fmt"

	"github.com/10f93571/retry/internal/version"
	"github.com/10f93571/retry/state/sqlite"
)

type versionCommand struct {
	JSON bool `help:"Print JSON; its fields are stable."`
}

const versionUsage = `Print the version, the commit that it was built from with its date, and the versions of Go and SQLite in it.
A build that is no release has the version devel. A program named version is run by retry -- version.

Usage:
  retry version [flags]

Example:
  retry version --json
`

// Run implements command.
func (c *versionCommand) Run(p *Process) (int, error) { return 0, p.printVersion(c.JSON) }

// printVersion is also what --version does. The first line is for scripts: the name and the version.
func (p *Process) printVersion(asJSON bool) error {
	b := version.Get()
	if asJSON {
		return json.NewEncoder(p.Stdout).Encode(versionJSON{
			Version: b.Version, Commit: orNull(b.Commit), Modified: b.Modified, Date: orNull(b.Date),
			Go: b.Go, OS: b.OS, Arch: b.Arch, SQLite: sqlite.Version(),
		})
	}
	text := "retry " + b.Version + "\n"
	if b.Commit != "" {
		text += "commit " + b.Commit
		if b.Modified {
			text += " (modified)"
		}
		text += "\n"
	}
	if b.Date != "" {
		text += "date   " + b.Date + "\n"
	}
	_, err := fmt.Fprintf(p.Stdout, "%sGo     %s %s/%s\nSQLite %s\n", text, b.Go, b.OS, b.Arch, sqlite.Version())
	return err
}

type versionJSON struct {
	Version  string  `json:"version"`
	Commit   *string `json:"commit"`
	Modified bool    `json:"modified"`
	Date     *string `json:"date"`
	Go       string  `json:"go"`
	OS       string  `json:"os"`
	Arch     string  `json:"arch"`
	SQLite   string  `json:"sqlite"`
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
