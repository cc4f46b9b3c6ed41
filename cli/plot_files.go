package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/10f93571/retry/internal/files"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/plot"
	"github.com/10f93571/retry/plot/page"
	"github.com/10f93571/retry/plot/page/model"
	"github.com/10f93571/retry/plot/picture"
)

// pictureFlags ask for files with pictures, instead of one on the terminal.
type pictureFlags struct {
	SVG  string `name:"svg" group:"Files" placeholder:"FILE|-" help:"Write the picture as SVG; it follows the reader's light or dark theme."`
	PNG  string `name:"png" group:"Files" placeholder:"FILE|-" help:"Write the picture as PNG."`
	HTML string `name:"html" group:"Files" placeholder:"FILE|-" help:"Write one page with sliders for every parameter, which needs no network."`
}

// pictureFile is a file to be written, or a stream.
type pictureFile struct {
	flag   string
	path   string
	stream *os.File // instead of a path; nil for a file
	write  func(io.Writer, []plot.Study, plot.Options) error
}

// files returns what is asked for. Each path is tried before anything is computed.
func (f *pictureFlags) files(p *Process) (pictures []pictureFile, err error) {
	for _, file := range []pictureFile{
		{flag: "--svg", path: f.SVG, write: writeSVG}, {flag: "--png", path: f.PNG, write: writePNG}, {flag: "--html", path: f.HTML, write: writePage},
	} {
		if file.path == "" {
			continue
		}
		if file.stream = p.Stream(file.path); file.stream == nil {
			if file.path, err = files.Target(file.path); err != nil {
				return nil, fmt.Errorf("%s: %w\nhint: give a file in a directory that can be written", file.flag, err)
			}
		} else if file.flag == "--png" && term.IsTerminal(int(file.stream.Fd())) {
			return nil, errors.New("--png: a terminal cannot show the bytes of a PNG\nhint: give a file, or send them into a pipe")
		}
		pictures = append(pictures, file)
	}
	return pictures, checkApart(pictures)
}

// checkApart returns an error where one file would follow or replace another.
func checkApart(files []pictureFile) error {
	for i, file := range files {
		for _, other := range files[:i] {
			if file.path == other.path || file.stream != nil && file.stream == other.stream {
				return fmt.Errorf("%s and %s go to the same place\nhint: give each a file of its own", other.flag, file.flag)
			}
		}
	}
	return nil
}

// writePictures writes the studies, played through with these options, to the files.
func writePictures(files []pictureFile, studies []plot.Study, options plot.Options) error {
	for _, file := range files {
		if err := file.put(studies, options); err != nil {
			return fmt.Errorf("%s: %w", file.flag, err)
		}
	}
	return nil
}

func (f pictureFile) put(studies []plot.Study, options plot.Options) error {
	var content bytes.Buffer
	if err := f.write(&content, studies, options); err != nil {
		return err
	}
	if f.stream != nil {
		_, err := f.stream.Write(content.Bytes())
		return err
	}
	return files.Replace(f.path, content.Bytes())
}

func writeSVG(w io.Writer, studies []plot.Study, _ plot.Options) error {
	_, err := io.WriteString(w, picture.SVG(studies))
	return err
}

func writePNG(w io.Writer, studies []plot.Study, _ plot.Options) error {
	return picture.PNG(w, studies)
}

func writePage(w io.Writer, studies []plot.Study, options plot.Options) error {
	return page.Write(w, pageRequest(studies, options))
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

// warnOfPictures says what files do not show, as the terminal says it below its pictures.
func (c *plotCommand) warnOfPictures(p *Process, studies []plot.Study, options plot.Options) {
	for _, s := range studies {
		if len(s.Subject.Policy.Rules) > 0 {
			p.warn(fmt.Errorf("%s: its rules are left out: the picture is of the policy's own curve", text.Escape(s.Subject.Label)))
		}
	}
	if c.HTML == "" {
		return
	}
	if r := pageRequest(studies, options); r.Tasks < options.Tasks {
		p.warn(fmt.Errorf("--html: the page plays %d tasks through, not %d, so that its sliders stay quick", r.Tasks, options.Tasks))
	}
}
