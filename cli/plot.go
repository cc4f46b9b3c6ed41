package cli

import (
	"errors"
	"slices"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/plot"
)

// plotCommand is `retry plot [SPEC[/JITTER]…]`.
type plotCommand struct {
	subjectFlags
	pictureFlags
	Tasks flags.Count `default:"100" placeholder:"N" help:"How many tasks fail together. Default 100."`
	Seed  uint64      `default:"1" placeholder:"N" help:"The same seed, the same figures. Default 1."`
	JSON  bool        `help:"Print JSON; its fields are stable."`
}

func (*plotCommand) usage() string {
	return `Draw what policies do to many tasks that fail together: the delay before each retry with the range that jitter gives it, when each task
retries, the load that this makes, and figures to compare. It plays the policy through with the code that runs, and runs nothing.

Usage:
  retry plot [flags] [SPEC[/JITTER]…]

A SPEC is a backoff, a preset, or the name of a policy; a /JITTER after it puts another in place of its own. Without a SPEC it is the
policy that a run here would use: the environment and the flags count. What has no limit of attempts is shown with 9, if --attempts
does not say how many.

Examples:
  retry plot exp:1s..1m                      a curve with its jitter, phase
  retry plot exp:10s/none exp:10s/full       what jitter is good for
  retry plot sidekiq zizq --html both.html   a page with sliders
  retry plot -p deploy -n 12                 a policy of the config file, with more attempts
`
}

// usualRetries is how many retries are shown of what has no limit of attempts.
const usualRetries = 8

func (c *plotCommand) Run(p *Process) (int, error) {
	files, err := c.files(p)
	if err != nil {
		return 0, err
	}
	if c.JSON && slices.ContainsFunc(files, func(f pictureFile) bool { return f.stream == p.Stdout }) {
		return 0, errors.New("--json and a picture go to the same place\nhint: give the picture a file of its own")
	}
	subjects, err := p.subjects(&c.subjectFlags)
	if err != nil {
		return 0, err
	}
	options := plot.Options{Tasks: int(c.Tasks), Retries: usualRetries, Seed: c.Seed}
	studies, err := studied(subjects, options)
	if err != nil {
		return 0, err
	}
	if err := writePictures(files, studies, options); err != nil {
		return 0, err
	}
	if len(files) > 0 {
		c.warnOfPictures(p, studies, options)
	}
	switch {
	case c.JSON:
		return 0, render.PlotJSON(p.Stdout, studies, options)
	case len(files) == 0:
		return 0, render.Plot(p.Stdout, render.ScreenOf(p.Stdout, p.Getenv), studies, options)
	}
	return 0, nil
}

// studied plays every subject through.
func studied(subjects []plot.Subject, options plot.Options) (studies []plot.Study, err error) {
	for _, s := range subjects {
		study, err := plot.NewStudy(s, options)
		if err != nil {
			return nil, err
		}
		studies = append(studies, study)
	}
	return studies, nil
}
