package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/session"
	"github.com/10f93571/retry/internal/files"
	"github.com/10f93571/retry/state"
)

type metricsCommand struct {
	flags.StateFlag
	Textfile string `placeholder:"FILE" help:"Replace FILE at once, whole, instead of printing: for node_exporter's textfile collector. Its name has to end in .prom."`
}

const metricsUsage = `Print figures of the journal as OpenMetrics. Only tasks that have a name (--id) are told apart.

Usage:
  retry metrics [flags]

Example, for node_exporter's textfile collector:
  * * * * *  retry metrics --textfile /var/lib/node_exporter/retry.prom
`

func (c *metricsCommand) Run(p *Process) (int, error) {
	if absent := session.JournalAbsent(&p.Host, c.State); absent != nil {
		p.printError(absent) // the figures are zeros then, which is what a collector needs
	}
	var text bytes.Buffer
	err := p.withJournal(session.ReadJournal, c.State, func(ctx context.Context, journal state.Store) error {
		done := p.Busy("counts the tasks")
		figures, err := journal.Figures(ctx)
		done()
		if err != nil {
			return err
		}
		return render.Metrics(&text, &figures)
	})
	if err != nil {
		return 0, err
	}
	stream := p.Stream(c.Textfile)
	if c.Textfile == "" {
		stream = p.Stdout
	}
	if stream != nil {
		_, err := stream.Write(text.Bytes())
		return 0, err
	}
	if filepath.Ext(c.Textfile) != ".prom" {
		return 0, fmt.Errorf("--textfile: the name of %s does not end in .prom"+
			"\nhint: the collector reads no other", c.Textfile)
	}
	if err := writeTextfile(c.Textfile, text.Bytes()); err != nil {
		return 0, fmt.Errorf("--textfile: %w\nhint: give a file in a directory that can be written", err)
	}
	return 0, nil
}

// writeTextfile replaces a file, which keeps its mode. Everybody may read a new one, whatever the umask is: the
// collector runs as another user.
func writeTextfile(path string, content []byte) error {
	_, absent := os.Stat(path)
	path, err := files.Target(path)
	if err != nil {
		return err
	}
	if err := files.Replace(path, content); err != nil || absent == nil {
		return err
	}
	return os.Chmod(path, 0o644)
}
