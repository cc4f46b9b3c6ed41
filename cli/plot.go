package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/term"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/cli/render/chart"
	"github.com/10f93571/retry/internal/files"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/plot/page"
	"github.com/10f93571/retry/plot/page/model"
	"github.com/10f93571/retry/plot/picture"
)

type plotCommand struct {
	subjectFlags
	pictureFlags
	Tasks flags.Count `default:"100" placeholder:"N" help:"How many tasks fail together. Default 100."`
	Seed  uint64      `default:"1" placeholder:"N" help:"The same seed, the same figures. Default 1."`
	JSON  bool        `help:"Print JSON; its fields are stable."`
}

const plotUsage = `Draw what policies do to many tasks that fail together: the delay before each retry with the range that jitter gives it, when each task
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

// defaultRetries is how many retries are shown of a policy without a limit of attempts.
const defaultRetries = 8

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
	options := plot.Options{Tasks: int(c.Tasks), Retries: defaultRetries, Seed: c.Seed}
	studies := make([]plot.Study, len(subjects))
	for i, s := range subjects {
		if studies[i], err = plot.NewStudy(s, options); err != nil {
			return 0, err
		}
	}
	if err := writePictures(files, studies, options); err != nil {
		return 0, err
	}
	if len(files) > 0 {
		c.warnOfPictures(p, studies, options)
	}
	switch {
	case c.JSON:
		return 0, chart.PlotJSON(p.Stdout, studies, options)
	case len(files) == 0:
		return 0, chart.Plot(p.Stdout, render.ScreenOf(p.Stdout, p.Getenv), studies, options)
	}
	return 0, nil
}

// pictureFlags write the picture to files instead of the terminal.
type pictureFlags struct {
	SVG  string `name:"svg" group:"Files" placeholder:"FILE|-" help:"Write the picture as SVG; it follows the reader's light or dark theme."`
	PNG  string `name:"png" group:"Files" placeholder:"FILE|-" help:"Write the picture as PNG."`
	HTML string `name:"html" group:"Files" placeholder:"FILE|-" help:"Write one page with sliders for every parameter, which needs no network."`
}

// pictureFile is a file or a stream that a picture is written to.
type pictureFile struct {
	flag   string
	path   string
	stream *os.File // instead of a path; nil for a file
	write  func(io.Writer, []plot.Study, plot.Options) error
}

// files returns the files that the flags name. Each path is tried before the figures are computed.
func (f *pictureFlags) files(p *Process) (pictures []pictureFile, err error) {
	for _, file := range []pictureFile{
		{flag: "--svg", path: f.SVG, write: func(w io.Writer, studies []plot.Study, _ plot.Options) error {
			_, err := io.WriteString(w, picture.SVG(studies))
			return err
		}},
		{flag: "--png", path: f.PNG, write: func(w io.Writer, studies []plot.Study, _ plot.Options) error {
			return picture.PNG(w, studies)
		}},
		{flag: "--html", path: f.HTML, write: func(w io.Writer, studies []plot.Study, options plot.Options) error {
			return page.Write(w, pageRequest(studies, options))
		}},
	} {
		if file.path == "" {
			continue
		}
		if file.stream = p.Stream(file.path); file.stream == nil {
			if file.path, err = files.Target(file.path); err != nil {
				return nil, fmt.Errorf("%s: %w\nhint: give a file in a directory that can be written", file.flag, err)
			}
		} else if file.flag == "--png" && term.IsTerminal(int(file.stream.Fd())) {
			return nil, errors.New("--png: a terminal cannot show the bytes of a PNG" +
				"\nhint: give a file, or send them into a pipe")
		}
		pictures = append(pictures, file)
	}
	for i, file := range pictures {
		for _, other := range pictures[:i] {
			if file.stream == other.stream && (file.stream != nil || files.Same(file.path, other.path)) {
				return nil, fmt.Errorf("%s and %s go to the same place"+
					"\nhint: give each a file of its own", other.flag, file.flag)
			}
		}
	}
	return pictures, nil
}

// writePictures writes the studies, which were made with these options, to the files.
func writePictures(pictures []pictureFile, studies []plot.Study, options plot.Options) error {
	for _, picture := range pictures {
		var content bytes.Buffer
		err := picture.write(&content, studies, options)
		switch {
		case err != nil:
		case picture.stream != nil:
			_, err = picture.stream.Write(content.Bytes())
		default:
			err = files.Replace(picture.path, content.Bytes())
		}
		if err != nil {
			return fmt.Errorf("%s: %w", picture.flag, err)
		}
	}
	return nil
}

func pageRequest(studies []plot.Study, options plot.Options) model.Request {
	r := model.Request{Tasks: options.Tasks, Seed: options.Seed}
	for _, s := range studies {
		policy := s.Subject.Policy
		attempts := policy.Attempts
		if attempts == 0 {
			attempts = options.Retries + 1
		}
		r.Specs = append(r.Specs, model.Spec{
			Label: s.Subject.Label, Backoff: policy.Backoff.Curve(), Jitter: policy.Backoff.Jitter(), Attempts: attempts,
			BudgetMS: policy.Budget.Milliseconds(),
		})
	}
	r.Fit()
	return r
}

// warnOfPictures says what the files leave out; on a terminal the picture itself says so.
func (c *plotCommand) warnOfPictures(p *Process, studies []plot.Study, options plot.Options) {
	for _, s := range studies {
		if len(s.Subject.Policy.Rules) > 0 {
			p.warn(fmt.Errorf("%s: its rules are left out: the picture is of the policy's own curve",
				text.Escape(s.Subject.Label)))
		}
	}
	if c.HTML == "" {
		return
	}
	if r := pageRequest(studies, options); r.Tasks < options.Tasks {
		p.warn(fmt.Errorf("--html: the page plays %d tasks through, not %d, so that its sliders stay quick",
			r.Tasks, options.Tasks))
	}
}
